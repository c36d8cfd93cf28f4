//! Private keys: blocks of many lines, from `-----BEGIN … PRIVATE KEY-----` to its end.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// How far after its beginning the end of a block is searched; of a longer one, all lines that look like a key are
/// taken.
pub(super) const LONGEST: usize = 16 << 10;

static BEGIN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"));
static END: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"));
/// A line of a key without its end: only the beginning of the output was requested, or the rest was truncated.
static BODY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\A[^\n]*(?:[A-Za-z0-9+/]{40,}|Proc-Type:|DEK-Info:)[^\n]*(?:\n|\z)"));
static BLANK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A[ \t\r]*\n"));
/// A key's last line, and nothing else: perhaps in quotes, as in code, or after a sign, as in a diff.
static SHORT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"\A[\s"'`+#>|*-]*[A-Za-z0-9+/]{1,64}={0,2}(?:\\[nr])*[\s"'`+,;)\\.]*\z"#));
/// What may follow the beginning, on its line.
static NOTHING: LazyLock<Regex> = LazyLock::new(|| pattern(r#"\A(?:\\[nr]|[\s"'`+,;.\\])*\z"#));
/// Enough of a key to be one, if it begins and ends on one line.
static SOME: LazyLock<Regex> = LazyLock::new(|| pattern(r"[A-Za-z0-9+/]{16,}"));

/// Returns all keys in a text, and all beginnings, after `from`.
pub(super) fn find(text: &[u8], from: usize) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let blocks = || Blocks { text, from };
    let keys = blocks().filter_map(|block| Some(block.begin.start..block.end?)).collect();
    (keys, blocks().map(|block| block.begin).collect())
}

/// What follows a beginning. Code may contain one without a key after it: that is left unchanged.
struct Block {
    begin: Range<usize>,
    /// Where the key ends, if there is one.
    end: Option<usize>,
    /// Whether its end was found.
    ended: bool,
    /// Whether more text could make a difference.
    open: bool,
}

/// Returns all beginnings in a text, in order.
struct Blocks<'t> {
    text: &'t [u8],
    from: usize,
}

impl Iterator for Blocks<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let begin = BEGIN.find_at(self.text, self.from)?;
        let block = Block::read(self.text, begin.range());
        self.from = block.end.unwrap_or(begin.end());
        Some(block)
    }
}

impl Block {
    fn read(text: &[u8], begin: Range<usize>) -> Block {
        let (ended, open) = match whole(text, begin.end) {
            Whole::Ended(end) => {
                return Block { begin, end: Some(end), ended: true, open: false };
            }
            Whole::Open => (false, true),
            Whole::None => (false, false),
        };
        Block { end: end_of_body(text, begin.end), begin, ended, open }
    }
}

/// Whether a key is complete, with nothing else between its beginning and end.
enum Whole {
    Ended(usize),
    /// The text ends before that is known.
    Open,
    None,
}

fn whole(text: &[u8], begin: usize) -> Whole {
    let limit = begin + LONGEST;
    let mut line = first_line(text, begin);
    let mut rest = beginning(&text[line.clone()]);
    if let Some(end) = END.find(rest) {
        let key = SOME.is_match(&rest[..end.start()]);
        return if key { Whole::Ended(begin + end.end()) } else { Whole::None };
    }
    // Another begins before this one's line has ended: whatever follows is that one's.
    if interrupted(text, &line) {
        return Whole::None;
    }
    let (mut body, mut short) = (BODY.is_match(rest), false);
    if !body && !NOTHING.is_match(rest) {
        return if line.end == text.len() && rest.len() < LONGEST { Whole::Open } else { Whole::None };
    }
    let mut strange = false;
    loop {
        if line.end >= text.len() {
            return if line.end < limit { Whole::Open } else { Whole::None };
        }
        line = line_at(text, line.end);
        rest = &text[line.clone()];
        let complete = rest.ends_with(b"\n");
        if let Some(end) = END.find(rest).filter(|end| line.start + end.end() <= limit) {
            return if body || short { Whole::Ended(line.start + end.end()) } else { Whole::None };
        }
        if !complete {
            return if line.end < limit { Whole::Open } else { Whole::None };
        }
        if strange || line.end > limit {
            return Whole::None;
        }
        if BODY.is_match(rest) {
            body = true;
        } else if SHORT.is_match(rest) {
            short = true;
        } else if !BLANK.is_match(rest) {
            // One line that is no key's may be its last, behind whatever a program puts before each.
            strange = true;
            if !body {
                return Whole::None;
            }
        }
    }
}

/// Returns the rest of the line of a beginning, up to the next beginning on it.
fn first_line(text: &[u8], begin: usize) -> Range<usize> {
    let stop = BEGIN.find_at(text, begin).map_or(text.len(), |next| next.start());
    let line = memchr::memchr(b'\n', &text[begin..stop]).map_or(stop, |at| begin + at + 1);
    begin..line
}

/// Returns whether the line of a beginning ends before another beginning.
fn interrupted(text: &[u8], line: &Range<usize>) -> bool {
    line.end < text.len() && (line.is_empty() || text[line.end - 1] != b'\n')
}

/// The part of a line that is examined.
fn beginning(line: &[u8]) -> &[u8] {
    &line[..line.len().min(LONGEST)]
}

fn line_at(text: &[u8], start: usize) -> Range<usize> {
    start..memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |at| start + at + 1)
}

/// Returns the place after the last of the lines that look like a key, if there is one.
fn end_of_body(text: &[u8], begin: usize) -> Option<usize> {
    let first = first_line(text, begin);
    // What stands behind the beginning on its own line may be all of it, with \n written out.
    let mut end = BODY.is_match(beginning(&text[first.clone()])).then_some(first.end);
    if end.is_none() && !NOTHING.is_match(beginning(&text[first.clone()])) {
        return None;
    }
    if interrupted(text, &first) {
        return end;
    }
    let mut next = first.end;
    loop {
        let rest = &text[next..];
        if let Some(line) = BODY.find(rest).filter(|line| !line.is_empty()) {
            next += line.end();
            end = Some(next);
        } else if let Some(line) = BLANK.find(rest) {
            next += line.end();
        } else {
            return end;
        }
    }
}

/// Where a key begins that may not have ended yet.
pub(super) fn open_at(text: &[u8]) -> Option<usize> {
    Blocks { text, from: 0 }.find(|block| block.open).map(|block| block.begin.start)
}

/// Returns whether a key without a known end reaches up to `place`, and so perhaps beyond.
pub(super) fn reaches(text: &[u8], place: usize) -> bool {
    // One that another beginning on its line has interrupted does not continue: what follows is the other's.
    let same_line = place > 0 && text[place - 1] != b'\n';
    let interrupted = same_line && BEGIN.find_at(text, place).is_some_and(|next| next.start() == place);
    !interrupted && Blocks { text, from: 0 }.any(|block| !block.ended && block.end == Some(place))
}

/// Returns how much of a text that follows lines of a key belongs to it, and whether the key has ended. A line counts if
/// it is complete, or if nothing follows (`complete`).
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
