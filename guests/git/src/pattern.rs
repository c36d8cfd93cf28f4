//! Patterns for paths, as `.gitignore` and pathspecs have them.

/// Whether a path matches a pattern. With `slashes`, `*` and `?` do not match a slash and `**` does, as in `.gitignore`;
/// without, a star matches everything.
pub fn matches(pattern: &[u8], path: &[u8], slashes: bool, fold: bool) -> bool {
    let mut budget = 100_000;
    step(pattern, path, path, slashes, fold, &mut budget)
}

/// `whole` is there to know what stands before the rest of the path. The budget ends patterns that would take for ever.
fn step(
    mut pattern: &[u8],
    mut path: &[u8],
    whole: &[u8],
    slashes: bool,
    fold: bool,
    budget: &mut u32,
) -> bool {
    let same = |a: u8, b: u8| a == b || fold && a.eq_ignore_ascii_case(&b);
    loop {
        *budget = budget.saturating_sub(1);
        if *budget == 0 {
            return false;
        }
        match pattern {
            [] => return path.is_empty(),
            [b'*', ..] => return star(pattern, path, whole, slashes, fold, budget),
            [b'?', rest @ ..] => match path {
                [byte, after @ ..] if !(slashes && *byte == b'/') => (pattern, path) = (rest, after),
                _ => return false,
            },
            [b'[', ..] if set(pattern, 0, fold).is_some() => match path {
                [byte, after @ ..] if !(slashes && *byte == b'/') => match set(pattern, *byte, fold) {
                    Some((true, length)) => (pattern, path) = (&pattern[length..], after),
                    _ => return false,
                },
                _ => return false,
            },
            [b'\\', escaped, rest @ ..] => match path {
                [byte, after @ ..] if same(*byte, *escaped) => (pattern, path) = (rest, after),
                _ => return false,
            },
            [literal, rest @ ..] => match path {
                [byte, after @ ..] if same(*byte, *literal) => (pattern, path) = (rest, after),
                _ => return false,
            },
        }
    }
}

fn star(pattern: &[u8], path: &[u8], whole: &[u8], slashes: bool, fold: bool, budget: &mut u32) -> bool {
    let count = pattern.iter().take_while(|&&byte| byte == b'*').count();
    let rest = &pattern[count..];
    let at_start = whole.len() == path.len() || whole[whole.len() - path.len() - 1] == b'/';
    let deep = !slashes || count == 2 && at_start && (rest.is_empty() || rest[0] == b'/');
    if slashes && deep && rest.first() == Some(&b'/') && step(&rest[1..], path, whole, slashes, fold, budget)
    {
        return true;
    }
    if rest.is_empty() {
        return deep || !path.contains(&b'/');
    }
    for at in 0..=path.len() {
        if step(rest, &path[at..], whole, slashes, fold, budget) {
            return true;
        }
        if !deep && path.get(at) == Some(&b'/') || *budget == 0 {
            return false;
        }
    }
    false
}

/// Whether a set `[…]` at the front contains a byte, and how long the set is; none if it is never closed.
fn set(pattern: &[u8], byte: u8, fold: bool) -> Option<(bool, usize)> {
    let mut at = 1;
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    at += usize::from(negated);
    let first = at;
    let mut found = false;
    let candidates = if fold { [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] } else { [byte, byte] };
    loop {
        let mut low = *pattern.get(at)?;
        if low == b']' && at > first {
            return Some((found != negated, at + 1));
        }
        if low == b'[' && pattern.get(at + 1) == Some(&b':') {
            let end = pattern[at + 2..].windows(2).position(|pair| pair == b":]")?;
            let class = &pattern[at + 2..at + 2 + end];
            found |= candidates.iter().any(|byte| in_class(class, *byte));
            at += end + 4;
            continue;
        }
        if low == b'\\' {
            at += 1;
            low = *pattern.get(at)?;
        }
        at += 1;
        let mut high = low;
        if pattern.get(at) == Some(&b'-') && pattern.get(at + 1).is_some_and(|byte| *byte != b']') {
            at += 1;
            at += usize::from(pattern.get(at) == Some(&b'\\'));
            high = *pattern.get(at)?;
            at += 1;
        }
        found |= candidates.iter().any(|byte| (low..=high).contains(byte));
    }
}

fn in_class(class: &[u8], byte: u8) -> bool {
    match class {
        b"alpha" => byte.is_ascii_alphabetic(),
        b"digit" => byte.is_ascii_digit(),
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"upper" => byte.is_ascii_uppercase(),
        b"lower" => byte.is_ascii_lowercase(),
        b"space" => byte.is_ascii_whitespace(),
        b"punct" => byte.is_ascii_punctuation(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => false,
    }
}

/// Whether a text has signs of a pattern.
pub fn is_glob(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_slashes() {
        let yes = [
            ("*.c", "a.c"),
            ("**/a", "x/y/a"),
            ("**/a", "a"),
            ("a/**", "a/b/c"),
            ("a/**/b", "a/b"),
            ("a/**/b", "a/x/y/b"),
            ("[a-c]?", "bz"),
            ("\\*", "*"),
        ];
        let no =
            [("*.c", "x/a.c"), ("a/*", "a/b/c"), ("?", "/"), ("a/**", "a"), ("[!a]", "a"), ("**a", "x/a")];
        for (pattern, path) in yes {
            assert!(matches(pattern.as_bytes(), path.as_bytes(), true, false), "{pattern} {path}");
        }
        for (pattern, path) in no {
            assert!(!matches(pattern.as_bytes(), path.as_bytes(), true, false), "{pattern} {path}");
        }
        assert!(matches(b"*.c", b"x/a.c", false, false));
        assert!(!matches(&b"*a".repeat(40), &b"a".repeat(30), false, false));
    }
}
