//! Which lines differ.

use std::borrow::Cow;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, IndentHeuristic, IndentLevel, InternedInput, Interner};

/// What of the white space counts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Space {
    #[default]
    All,
    /// `-b`: its amount does not.
    Change,
    /// `-w`: none does.
    None,
    /// `--ignore-space-at-eol`.
    AtEnd,
    /// `--ignore-cr-at-eol`.
    CarriageReturn,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// The lines of a text, each with its line feed.
pub fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

fn key(line: &[u8], space: Space) -> Cow<'_, [u8]> {
    match space {
        Space::All => Cow::Borrowed(line),
        Space::None => {
            line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<u8>>().into()
        }
        Space::AtEnd => Cow::Borrowed(line.trim_ascii_end()),
        Space::CarriageReturn => {
            let end = line.strip_suffix(b"\n").unwrap_or(line);
            Cow::Borrowed(end.strip_suffix(b"\r").unwrap_or(end))
        }
        Space::Change => {
            let mut key = Vec::new();
            for byte in line.trim_ascii_end() {
                match byte.is_ascii_whitespace() {
                    true if key.last() == Some(&b' ') => {}
                    true => key.push(b' '),
                    false => key.push(*byte),
                }
            }
            key.into()
        }
    }
}

/// The places where two texts differ, placed as people would place them where there is a choice.
pub fn hunks(old: &[&[u8]], new: &[&[u8]], space: Space) -> Vec<Hunk> {
    compare(old, new, space, true, Algorithm::Myers)
}

/// The same for merging: without regard to indentation.
pub fn plain_hunks(old: &[&[u8]], new: &[&[u8]]) -> Vec<Hunk> {
    compare(old, new, Space::All, false, Algorithm::Myers)
}

/// By another algorithm: `histogram` and `patience`, or `minimal`.
pub fn hunks_by(old: &[&[u8]], new: &[&[u8]], space: Space, name: &str) -> Vec<Hunk> {
    let algorithm = match name {
        "histogram" | "patience" => Algorithm::Histogram,
        "minimal" => Algorithm::MyersMinimal,
        _ => Algorithm::Myers,
    };
    compare(old, new, space, true, algorithm)
}

fn compare(old: &[&[u8]], new: &[&[u8]], space: Space, indent: bool, algorithm: Algorithm) -> Vec<Hunk> {
    let mut input: InternedInput<Cow<'_, [u8]>> = InternedInput {
        before: Vec::new(),
        after: Vec::new(),
        interner: Interner::new(old.len() + new.len()),
    };
    input.update_before(old.iter().map(|line| key(line, space)));
    input.update_after(new.iter().map(|line| key(line, space)));
    let mut diff = Diff::compute(algorithm, &input);
    if indent {
        diff.postprocess_with_heuristic(
            &input,
            IndentHeuristic::new(|token| {
                IndentLevel::for_ascii_line(input.interner[token].iter().copied(), 8)
            }),
        );
    } else {
        diff.postprocess_no_heuristic(&input);
    }
    let range = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| Hunk { old: range(hunk.before), new: range(hunk.after) }).collect()
}

/// Whether content is not text: it has a NUL near its start.
pub fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(8000)].contains(&0)
}
