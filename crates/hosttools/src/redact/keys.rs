//! Private keys: blocks of many lines, from `-----BEGIN … PRIVATE KEY-----` to its end.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// The end of a block is looked for so far behind its beginning; of a longer one, all lines that look like a key's are taken.
pub(super) const LONGEST: usize = 16 << 10;

static BEGIN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"));
static END: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"));
/// A line of a key without its end: the beginning of the output was asked for, or the rest was cut.
static BODY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\A[^\n]*(?:[A-Za-z0-9+/]{40,}|Proc-Type:|DEK-Info:)[^\n]*(?:\n|\z)"));
static BLANK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A[ \t\r]*\n"));

/// All keys in a text.
pub(super) fn find(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut ends = Ends::of(text);
    let mut from = 0;
    while let Some(begin) = BEGIN.find_at(text, from) {
        let end = ends.behind(begin.end()).unwrap_or_else(|| end_of_body(text, begin.end()));
        found.push(begin.start()..end);
        from = end;
    }
    found
}

/// Ends of keys, each looked for once however many begin.
struct Ends<'t> {
    text: &'t [u8],
    /// The first behind the place last asked about, none if there is none.
    next: Option<Range<usize>>,
}

impl<'t> Ends<'t> {
    fn of(text: &'t [u8]) -> Ends<'t> {
        Ends { text, next: END.find(text).map(|end| end.range()) }
    }

    /// The end of a key whose beginning ends here. Places are asked about in order.
    fn behind(&mut self, begin: usize) -> Option<usize> {
        if self.next.as_ref().is_some_and(|next| next.start < begin) {
            self.next = END.find_at(self.text, begin).map(|end| end.range());
        }
        self.next.as_ref().map(|next| next.end).filter(|end| *end <= begin + LONGEST)
    }
}

/// Behind the last of the lines that look like a key's.
fn end_of_body(text: &[u8], begin: usize) -> usize {
    let mut end = begin;
    let mut next =
        text[begin..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| begin + at + 1);
    // What stands behind the beginning on its own line may be all of it, with \n written out.
    if BODY.is_match(&text[begin..next]) {
        end = next;
    }
    loop {
        let rest = &text[next..];
        if let Some(line) = BODY.find(rest).filter(|line| !line.is_empty()) {
            next += line.end();
            end = next;
        } else if let Some(line) = BLANK.find(rest) {
            next += line.end();
        } else {
            return end;
        }
    }
}

/// Where a key begins that may not have ended yet.
pub(super) fn open_at(text: &[u8]) -> Option<usize> {
    let mut ends = Ends::of(text);
    let mut from = 0;
    while let Some(begin) = BEGIN.find_at(text, from) {
        from = match ends.behind(begin.end()) {
            Some(end) => end,
            None if text.len() < begin.end() + LONGEST => return Some(begin.start()),
            None => end_of_body(text, begin.end()),
        };
    }
    None
}

/// Whether a key whose end was not seen reaches up to `place`, and so perhaps beyond.
pub(super) fn reaches(text: &[u8], place: usize) -> bool {
    let mut ends = Ends::of(text);
    let mut from = 0;
    while let Some(begin) = BEGIN.find_at(text, from) {
        let end = ends.behind(begin.end());
        from = end.unwrap_or_else(|| end_of_body(text, begin.end()));
        if end.is_none() && from == place {
            return true;
        }
    }
    false
}

/// How much of a text that follows lines of a key are more of them, and whether the key has ended. A line counts when it
/// is whole, or nothing comes any more (`complete`).
pub(super) fn continued(text: &[u8], complete: bool) -> (usize, bool) {
    let (mut end, mut next) = (0, 0);
    loop {
        let rest = &text[next..];
        if rest.is_empty() || !(complete || rest.contains(&b'\n')) {
            return (end, false);
        }
        if let Some(line) = BODY.find(rest) {
            next += line.end();
            end = next;
        } else if let Some(line) = BLANK.find(rest) {
            next += line.end();
        } else {
            return (end, true);
        }
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(&format!("(?-u){text}")).expect("every pattern is tried by a test")
}
