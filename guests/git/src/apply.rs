//! Patches: read from text, and applied to contents.

use crate::fail::{Res, fatal};
use crate::files::text;
use crate::lines;

/// What a patch does to one file. Paths are without the prefix (`a/`); none where the file is not there.
#[derive(Default, Debug, Clone)]
pub struct FilePatch {
    pub old: Option<Vec<u8>>,
    pub new: Option<Vec<u8>>,
    pub old_mode: Option<u32>,
    pub new_mode: Option<u32>,
    pub copies: bool,
    pub renames: bool,
    pub score: u32,
    pub binary: bool,
    pub hunks: Vec<Hunk>,
}

#[derive(Default, Debug, Clone)]
pub struct Hunk {
    pub old_start: usize,
    pub new_start: usize,
    /// The line with `@@` as it was.
    pub head: Vec<u8>,
    /// Each with its sign; without a line feed where the file has none.
    pub lines: Vec<(u8, Vec<u8>)>,
}

impl FilePatch {
    pub fn path(&self) -> &[u8] {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or(b"")
    }

    pub fn counts(&self) -> (usize, usize) {
        let count =
            |sign: u8| self.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|(own, _)| *own == sign).count();
        (count(b'+'), count(b'-'))
    }

    /// The same backwards.
    pub fn reversed(mut self) -> FilePatch {
        std::mem::swap(&mut self.old, &mut self.new);
        std::mem::swap(&mut self.old_mode, &mut self.new_mode);
        for hunk in &mut self.hunks {
            std::mem::swap(&mut hunk.old_start, &mut hunk.new_start);
            for (sign, _) in &mut hunk.lines {
                *sign = match *sign {
                    b'+' => b'-',
                    b'-' => b'+',
                    sign => sign,
                };
            }
            // Of neighbours what goes stands before what comes.
            let mut at = 0;
            while at < hunk.lines.len() {
                let end = (at..hunk.lines.len()).find(|end| hunk.lines[*end].0 == b' ');
                let end = end.unwrap_or(hunk.lines.len());
                hunk.lines[at..end].sort_by_key(|(sign, _)| *sign != b'-');
                at = end + 1;
            }
        }
        self
    }
}

struct Parser<'a> {
    lines: Vec<&'a [u8]>,
    at: usize,
    strip: usize,
}

/// Reads all patches in a text; what is between them does not matter. `strip` names are taken off each path.
pub fn parse(content: &[u8], strip: usize) -> Res<Vec<FilePatch>> {
    let mut parser = Parser { lines: lines::split(content), at: 0, strip };
    let mut files = Vec::new();
    while parser.at < parser.lines.len() {
        let line = parser.lines[parser.at];
        if line.starts_with(b"diff --git ") {
            files.push(parser.git()?);
        } else if line.starts_with(b"--- ") && parser.peek(1).starts_with(b"+++ ") {
            let mut file = FilePatch::default();
            parser.names(&mut file)?;
            parser.hunks(&mut file)?;
            files.push(file);
        } else if line.starts_with(b"@@ -") {
            fatal!(
                "patch fragment without header at line {}: {}",
                parser.at + 1,
                text(line.trim_ascii_end())
            );
        } else {
            parser.at += 1;
        }
    }
    Ok(files)
}

/// A path as a patch writes it: perhaps in quotes.
fn unquoted(name: &[u8]) -> Vec<u8> {
    let Some(inner) = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")) else {
        return name.to_vec();
    };
    let mut out = Vec::new();
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b'f') => out.push(12),
            Some(b'r') => out.push(13),
            Some(b'v') => out.push(11),
            Some(digit @ b'0'..=b'3') => {
                let mut value = digit - b'0';
                for _ in 0..2 {
                    value = value.wrapping_mul(8) + (bytes.next().unwrap_or(b'0').wrapping_sub(b'0') & 7);
                }
                out.push(value);
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

fn stripped(name: &[u8], strip: usize) -> Option<Vec<u8>> {
    let mut rest = name;
    for _ in 0..strip {
        let slash = rest.iter().position(|&byte| byte == b'/')?;
        rest = &rest[slash + 1..];
    }
    Some(rest.to_vec())
}

impl<'a> Parser<'a> {
    fn peek(&self, ahead: usize) -> &'a [u8] {
        self.lines.get(self.at + ahead).copied().unwrap_or(b"")
    }

    /// The path of a `---` or `+++` line.
    fn name(&self, written: &[u8]) -> Res<Option<Vec<u8>>> {
        let end = written.iter().position(|&byte| byte == b'\t').unwrap_or(written.len());
        let written = written[..end].trim_ascii_end();
        if written == b"/dev/null" {
            return Ok(None);
        }
        match stripped(&unquoted(written), self.strip) {
            Some(name) if !name.is_empty() => Ok(Some(name)),
            _ => fatal!(
                "git diff header lacks filename information when removing {} leading pathname component (line {})",
                self.strip,
                self.at + 1
            ),
        }
    }

    fn names(&mut self, file: &mut FilePatch) -> Res<()> {
        let old = self.peek(0);
        file.old = self.name(&old[4..])?;
        self.at += 1;
        let new = self.peek(0);
        file.new = self.name(&new[4..])?;
        self.at += 1;
        Ok(())
    }

    fn git(&mut self) -> Res<FilePatch> {
        let head = self.peek(0).trim_ascii_end();
        let mut file = FilePatch::default();
        // Both names are the same unless other lines say otherwise.
        let both = self.both_names(&head[b"diff --git ".len()..]);
        (file.old, file.new) = (both.clone(), both);
        self.at += 1;
        loop {
            let line = self.peek(0);
            let end = line.trim_ascii_end();
            let mode = |prefix: &[u8]| {
                let digits = end.strip_prefix(prefix)?;
                u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
            };
            if line.starts_with(b"--- ") && self.peek(1).starts_with(b"+++ ") {
                self.names(&mut file)?;
                self.hunks(&mut file)?;
                return Ok(file);
            } else if let Some(mode) = mode(b"old mode ") {
                file.old_mode = Some(mode);
            } else if let Some(mode) = mode(b"new mode ") {
                file.new_mode = Some(mode);
            } else if let Some(mode) = mode(b"new file mode ") {
                (file.new_mode, file.old) = (Some(mode), None);
            } else if let Some(mode) = mode(b"deleted file mode ") {
                (file.old_mode, file.new) = (Some(mode), None);
            } else if let Some(name) = end.strip_prefix(b"rename from ") {
                (file.old, file.renames) = (self.plain(name), true);
            } else if let Some(name) = end.strip_prefix(b"rename to ") {
                (file.new, file.renames) = (self.plain(name), true);
            } else if let Some(name) = end.strip_prefix(b"copy from ") {
                (file.old, file.copies) = (self.plain(name), true);
            } else if let Some(name) = end.strip_prefix(b"copy to ") {
                (file.new, file.copies) = (self.plain(name), true);
            } else if let Some(number) = end.strip_prefix(b"similarity index ") {
                file.score = text(number).trim_end_matches('%').parse().unwrap_or(0);
            } else if let Some(rest) = end.strip_prefix(b"index ") {
                let words: Vec<&[u8]> = rest.split(|&byte| byte == b' ').collect();
                if let [_, digits] = words.as_slice()
                    && let Ok(mode) = u32::from_str_radix(&text(digits), 8)
                {
                    (file.old_mode, file.new_mode) = (Some(mode), Some(mode));
                }
            } else if line.starts_with(b"Binary files ") || line.starts_with(b"GIT binary patch") {
                file.binary = true;
            } else if !line.starts_with(b"dissimilarity index ") {
                return Ok(file);
            }
            self.at += 1;
        }
    }

    /// The names of a rename have no prefix, but with `-p2` and more a directory is taken off.
    fn plain(&self, name: &[u8]) -> Option<Vec<u8>> {
        stripped(&unquoted(name), self.strip.saturating_sub(1))
    }

    fn both_names(&self, names: &[u8]) -> Option<Vec<u8>> {
        if names.starts_with(b"\"") {
            let end = names[1..].iter().position(|&byte| byte == b'"')? + 2;
            return stripped(&unquoted(&names[..end]), self.strip);
        }
        let spaces = names.iter().enumerate().filter(|(_, byte)| **byte == b' ');
        spaces.map(|(at, _)| (&names[..at], &names[at + 1..])).find_map(|(left, right)| {
            let (left, right) = (stripped(left, self.strip)?, stripped(right, self.strip)?);
            (left == right).then_some(left)
        })
    }

    fn hunks(&mut self, file: &mut FilePatch) -> Res<()> {
        while self.peek(0).starts_with(b"@@ -") {
            let line = self.peek(0);
            let Some((old_start, mut old, new_start, mut new)) = range(line) else {
                fatal!("corrupt patch at line {}", self.at + 1)
            };
            let mut hunk =
                Hunk { old_start, new_start, head: line.trim_ascii_end().to_vec(), lines: Vec::new() };
            self.at += 1;
            while old > 0 || new > 0 {
                let line = self.peek(0);
                let (sign, rest) = match line.split_first() {
                    // An empty line of context may have lost its space.
                    Some((b'\n', _)) => (b' ', line),
                    Some((sign @ (b' ' | b'-' | b'+'), rest)) => (*sign, rest),
                    Some((b'\\', _)) => {
                        self.no_line_feed(&mut hunk);
                        continue;
                    }
                    _ => fatal!("corrupt patch at line {}", self.at + 1),
                };
                if sign != b'+' && old == 0 || sign != b'-' && new == 0 {
                    fatal!("corrupt patch at line {}", self.at + 1);
                }
                old -= usize::from(sign != b'+');
                new -= usize::from(sign != b'-');
                hunk.lines.push((sign, rest.to_vec()));
                self.at += 1;
            }
            if self.peek(0).starts_with(b"\\") {
                self.no_line_feed(&mut hunk);
            }
            file.hunks.push(hunk);
        }
        Ok(())
    }

    fn no_line_feed(&mut self, hunk: &mut Hunk) {
        if let Some((_, line)) = hunk.lines.last_mut() {
            line.pop();
        }
        self.at += 1;
    }
}

/// The four numbers of `@@ -1,2 +3,4 @@`.
fn range(line: &[u8]) -> Option<(usize, usize, usize, usize)> {
    let line = text(line);
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let pair = |word: &str| -> Option<(usize, usize)> {
        let (start, count) = word.split_once(',').unwrap_or((word, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let (old_start, old) = pair(words.next()?)?;
    let (new_start, new) = pair(words.next()?.strip_prefix('+')?)?;
    Some((old_start, old, new_start, new))
}

/// How strictly hunks must fit.
#[derive(Clone, Copy, Default)]
pub struct Fit {
    /// So many lines of context must fit; all of them if nothing is said.
    pub context: Option<usize>,
    /// Hunks may have no context at all.
    pub zero: bool,
}

/// What became of a hunk: where it was put, and how far that is from where it should be.
pub type Placed = Option<(usize, isize)>;

/// Applies hunks to a content. Hunks that do not fit are left out; what became of each is answered too.
pub fn apply(content: &[u8], hunks: &[Hunk], fit: Fit) -> (Vec<u8>, Vec<Placed>) {
    let mut image: Vec<Vec<u8>> = lines::split(content).into_iter().map(<[u8]>::to_vec).collect();
    let placed = hunks.iter().map(|hunk| apply_hunk(&mut image, hunk, fit)).collect();
    (image.concat(), placed)
}

fn apply_hunk(image: &mut Vec<Vec<u8>>, hunk: &Hunk, fit: Fit) -> Placed {
    let is_context = |(sign, _): &&(u8, Vec<u8>)| *sign == b' ';
    let mut leading = hunk.lines.iter().take_while(is_context).count();
    let mut trailing = hunk.lines.iter().rev().take_while(is_context).count();
    let side = |keep: u8| -> Vec<Vec<u8>> {
        let lines = hunk.lines.iter().filter(|(sign, _)| *sign == b' ' || *sign == keep);
        lines.map(|(_, line)| line.clone()).collect()
    };
    let (mut old, mut new) = (side(b'-'), side(b'+'));
    let mut at_start = hunk.old_start == 0 || hunk.old_start == 1 && !fit.zero;
    let mut at_end = !fit.zero && trailing == 0;
    let mut wanted = hunk.new_start.saturating_sub(1);
    if new.is_empty() && hunk.new_start > 0 {
        wanted = hunk.new_start;
    }
    let least = fit.context.unwrap_or(usize::MAX);
    let place = loop {
        if let Some(place) = find(image, &old, wanted, at_start, at_end) {
            break place;
        }
        if leading <= least && trailing <= least {
            return None;
        }
        if at_start || at_end {
            (at_start, at_end) = (false, false);
            continue;
        }
        if leading >= trailing {
            old.remove(0);
            new.remove(0);
            wanted += 1;
            leading -= 1;
        } else {
            old.pop();
            new.pop();
            trailing -= 1;
        }
    };
    image.splice(place..place + old.len(), new);
    Some((place + 1, place as isize - wanted as isize))
}

/// Where lines are, nearest to where they should be.
fn find(image: &[Vec<u8>], old: &[Vec<u8>], wanted: usize, at_start: bool, at_end: bool) -> Option<usize> {
    let last = image.len().checked_sub(old.len())?;
    let fits =
        |at: usize| (!at_start || at == 0) && (!at_end || at == last) && image[at..at + old.len()] == *old;
    let wanted = if at_start {
        0
    } else if at_end {
        last
    } else {
        wanted.min(last)
    };
    let before = (0..wanted).rev().map(Some).chain(std::iter::repeat(None));
    let after = (wanted + 1..=last).map(Some).chain(std::iter::repeat(None));
    let around = before.zip(after).take(last + 1).flat_map(|(before, after)| [before, after]).flatten();
    std::iter::once(wanted).chain(around).find(|at| fits(*at))
}
