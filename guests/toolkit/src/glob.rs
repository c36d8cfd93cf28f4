//! Shell patterns, as `fnmatch` matches them: `*` and `?` also match slashes and leading dots.

/// Whether a name matches a pattern.
pub fn matches(pattern: &[u8], name: &[u8], fold_case: bool) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where to go on after a mismatch: the last star, and the name from the next byte on.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            retry = Some((p + 1, n));
            p += 1;
            continue;
        }
        if n == name.len() && p == pattern.len() {
            return true;
        }
        if n < name.len()
            && let Some(length) = one(&pattern[p..], name[n], fold_case)
        {
            // A question mark takes a whole character.
            n += if pattern[p] == b'?' || pattern[p] == b'[' { char_length(&name[n..]) } else { 1 };
            p += length;
            continue;
        }
        match retry {
            Some((after_star, from)) if from < name.len() => {
                retry = Some((after_star, from + 1));
                (p, n) = (after_star, from + 1);
            }
            _ => return false,
        }
    }
}

fn char_length(name: &[u8]) -> usize {
    let length = match name[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if name.get(..length).is_some_and(|bytes| std::str::from_utf8(bytes).is_ok()) { length } else { 1 }
}

/// Whether the pattern's first element matches a byte: how long the element is.
fn one(pattern: &[u8], byte: u8, fold_case: bool) -> Option<usize> {
    let fold = |byte: u8| if fold_case { byte.to_ascii_lowercase() } else { byte };
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', ..] if let Some(length) = set_length(pattern) => {
            set_contains(&pattern[1..length - 1], byte, fold_case).then_some(length)
        }
        [b'\\', escaped, ..] => (fold(*escaped) == fold(byte)).then_some(2),
        [literal, ..] => (fold(*literal) == fold(byte)).then_some(1),
    }
}

/// The length of `[…]`; `None` when it is never closed and so only a bracket.
fn set_length(pattern: &[u8]) -> Option<usize> {
    let mut at = 1 + usize::from(matches!(pattern.get(1), Some(b'!' | b'^')));
    let first = at;
    loop {
        match pattern.get(at)? {
            b']' if at > first => return Some(at + 1),
            b'[' if pattern.get(at + 1) == Some(&b':') => {
                let end = pattern[at + 2..].windows(2).position(|pair| pair == b":]");
                at += end.map_or(1, |end| end + 4);
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn set_contains(set: &[u8], byte: u8, fold_case: bool) -> bool {
    let (negated, mut rest) = match set {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, set),
    };
    let candidates =
        if fold_case { [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] } else { [byte, byte] };
    let mut found = false;
    while let [first, after @ ..] = rest {
        if let Some(end) = class_end(rest) {
            found |= candidates.iter().any(|byte| in_class(&rest[2..end], *byte));
            rest = &rest[end + 2..];
            continue;
        }
        let (low, after) = match (first, after) {
            (b'\\', [escaped, after @ ..]) => (*escaped, after),
            _ => (*first, after),
        };
        let (high, after) = match after {
            [b'-', b'\\', high, after @ ..] => (*high, after),
            [b'-', high, after @ ..] => (*high, after),
            _ => (low, after),
        };
        found |= candidates.iter().any(|byte| (low..=high).contains(byte));
        rest = after;
    }
    found != negated
}

/// Where the name of a `[:class:]` at the front ends.
fn class_end(rest: &[u8]) -> Option<usize> {
    rest.strip_prefix(b"[:")?.windows(2).position(|pair| pair == b":]").map(|end| end + 2)
}

fn in_class(class: &[u8], byte: u8) -> bool {
    match class {
        b"alpha" => byte.is_ascii_alphabetic(),
        b"digit" => byte.is_ascii_digit(),
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"upper" => byte.is_ascii_uppercase(),
        b"lower" => byte.is_ascii_lowercase(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"blank" => byte == b' ' || byte == b'\t',
        b"punct" => byte.is_ascii_punctuation(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"graph" => byte.is_ascii_graphic(),
        b"cntrl" => byte.is_ascii_control(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_fnmatch_does() {
        let yes =
            [("*.rs", "a.rs"), ("*", ""), ("a?c", "aéc"), ("[a-c]*", "b.txt"), ("[!a]", "b"), ("[]]", "]")];
        let no = [("*.rs", "a.rsx"), ("?", ""), ("[!a]", "a"), ("a*b*c", "aXbX"), ("A", "a")];
        assert!(yes.iter().all(|(pattern, name)| matches(pattern.as_bytes(), name.as_bytes(), false)));
        assert!(!no.iter().any(|(pattern, name)| matches(pattern.as_bytes(), name.as_bytes(), false)));
        assert!(
            matches(b"*.R[S]", b"x.rs", true)
                && matches(b"a\\*", b"a*", false)
                && matches(b"[[:digit:]]", b"7", false)
        );
    }
}
