//! Words, patterns and references in the text of makefiles. Text is bytes, as everywhere in Unix.

/// Whether a byte is a blank: what separates words.
pub fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// The words of a text.
pub fn words(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.split(|&byte| is_space(byte)).filter(|word| !word.is_empty())
}

/// Words with one blank between two.
pub fn join<T: AsRef<[u8]>>(words: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut text = Vec::new();
    for word in words {
        if !text.is_empty() {
            text.push(b' ');
        }
        text.extend_from_slice(word.as_ref());
    }
    text
}

pub fn trim_start(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| !is_space(byte)).unwrap_or(text.len());
    &text[start..]
}

pub fn trim_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| !is_space(byte)).map_or(0, |at| at + 1);
    &text[..end]
}

pub fn trim(text: &[u8]) -> &[u8] {
    trim_end(trim_start(text))
}

/// Where `wanted` stands first.
pub fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    (!wanted.is_empty()).then(|| text.windows(wanted.len()).position(|window| window == wanted)).flatten()
}

/// Every `from` in `text` as `to`.
pub fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    if from.is_empty() {
        return [text, to].concat();
    }
    let (mut result, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(at) = find(rest, from) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    result.extend_from_slice(rest);
    result
}

/// The length of the reference that `text`, after a `$`, begins with.
pub fn reference_length(text: &[u8]) -> Option<usize> {
    let (open, close) = match text.first()? {
        b'(' => (b'(', b')'),
        b'{' => (b'{', b'}'),
        _ => return Some(1),
    };
    let mut depth = 0usize;
    for (at, &byte) in text.iter().enumerate() {
        if byte == open {
            depth += 1;
        } else if byte == close {
            depth -= 1;
            if depth == 0 {
                return Some(at + 1);
            }
        }
    }
    None
}

/// Where the first byte stands that `wanted` accepts, outside of references and not after a backslash.
pub fn find_outside(text: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'$' => at += 1 + reference_length(&text[at + 1..]).unwrap_or(text.len() - at - 1),
            b'\\' if text.get(at + 1).is_some_and(|&next| wanted(next)) => at += 2,
            byte if wanted(byte) => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// A pattern: at most one `%` that is not escaped, standing for a stem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub before: Vec<u8>,
    /// What follows the `%`; `None` without one.
    pub after: Option<Vec<u8>>,
}

impl Pattern {
    pub fn new(text: &[u8]) -> Pattern {
        let mut before = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            match text[at] {
                b'\\' => {
                    // Backslashes count only before a `%`: two of them are one, an odd one more quotes it.
                    let count = text[at..].iter().take_while(|&&byte| byte == b'\\').count();
                    if text.get(at + count) != Some(&b'%') {
                        before.extend_from_slice(&text[at..at + count]);
                        at += count;
                        continue;
                    }
                    before.extend(std::iter::repeat_n(b'\\', count / 2));
                    at += count;
                    if count % 2 == 1 {
                        before.push(b'%');
                        at += 1;
                    }
                }
                b'%' => return Pattern { before, after: Some(text[at + 1..].to_vec()) },
                byte => {
                    before.push(byte);
                    at += 1;
                }
            }
        }
        Pattern { before, after: None }
    }

    pub fn has_stem(&self) -> bool {
        self.after.is_some()
    }

    /// The stem with which the pattern is `word`; for a pattern without `%` that is `word`, an empty one.
    pub fn stem<'a>(&self, word: &'a [u8]) -> Option<&'a [u8]> {
        match &self.after {
            None => (word == self.before).then_some(&[]),
            Some(after) => {
                let enough = word.len() >= self.before.len() + after.len();
                (enough && word.starts_with(&self.before) && word.ends_with(after))
                    .then(|| &word[self.before.len()..word.len() - after.len()])
            }
        }
    }

    /// The pattern with a stem in place of `%`.
    pub fn fill(&self, stem: &[u8]) -> Vec<u8> {
        match &self.after {
            None => self.before.clone(),
            Some(after) => [&self.before, stem, after].concat(),
        }
    }

    /// `%` as a path may have it: the stem's directory goes before the whole.
    pub fn fill_path(&self, directory: &[u8], stem: &[u8]) -> Vec<u8> {
        match self.has_stem() {
            true => [directory, &self.fill(stem)].concat(),
            false => self.before.clone(),
        }
    }
}

/// A word changed as `patsubst` does, or as it was.
pub fn substitute(word: &[u8], from: &Pattern, to: &Pattern) -> Vec<u8> {
    match from.stem(word) {
        None => word.to_vec(),
        Some(stem) if from.has_stem() => to.fill(stem),
        Some(_) => match &to.after {
            None => to.before.clone(),
            Some(after) => [&to.before[..], b"%", after].concat(),
        },
    }
}

/// The directory of a path with its slash, and the rest.
pub fn split_path(path: &[u8]) -> (&[u8], &[u8]) {
    let at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    path.split_at(at)
}

/// Text for a message.
pub fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
