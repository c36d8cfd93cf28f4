//! Private keys: blocks of many lines, from `-----BEGIN … PRIVATE KEY-----` to its end.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// A block that goes on for longer is none; its lines are still taken for what they look like.
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
    let mut from = 0;
    while let Some(begin) = BEGIN.find_at(text, from) {
        let reach = text.len().min(begin.end() + LONGEST);
        let end = match END.find(&text[begin.end()..reach]) {
            Some(end) => begin.end() + end.end(),
            None => end_of_body(text, begin.end()),
        };
        found.push(begin.start()..end);
        from = end;
    }
    found
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
    let mut from = 0;
    while let Some(begin) = BEGIN.find_at(text, from) {
        let reach = text.len().min(begin.end() + LONGEST);
        match END.find(&text[begin.end()..reach]) {
            Some(end) => from = begin.end() + end.end(),
            None if text.len() < begin.end() + LONGEST => return Some(begin.start()),
            None => from = end_of_body(text, begin.end()),
        }
    }
    None
}

fn pattern(text: &str) -> Regex {
    Regex::new(&format!("(?-u){text}")).expect("every pattern is tried by a test")
}
