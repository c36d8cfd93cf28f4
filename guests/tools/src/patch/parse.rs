//! A patch: which files, and which lines of them.

/// A run of lines and what becomes of it.
pub struct Hunk {
    /// The first line it is about, counted from 1; 0 in an empty file.
    pub old_start: usize,
    pub new_start: usize,
    pub lines: Vec<(Kind, Vec<u8>)>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Context,
    Removed,
    Added,
}

/// The changes of one file.
pub struct FilePatch {
    pub old_name: Option<Vec<u8>>,
    pub new_name: Option<Vec<u8>>,
    /// The lines that named them, for complaints.
    pub heading: Vec<Vec<u8>>,
    /// The line of the patch where its hunks begin.
    pub at_line: usize,
    pub hunks: Vec<Hunk>,
}

impl Hunk {
    /// The lines it wants to find, or to leave.
    pub fn side(&self, without: Kind) -> Vec<&[u8]> {
        self.lines.iter().filter(|(kind, _)| *kind != without).map(|(_, line)| &line[..]).collect()
    }

    pub fn reversed(&self) -> Hunk {
        let turned = |(kind, line): &(Kind, Vec<u8>)| {
            let kind = match kind {
                Kind::Removed => Kind::Added,
                Kind::Added => Kind::Removed,
                Kind::Context => Kind::Context,
            };
            (kind, line.clone())
        };
        Hunk {
            old_start: self.new_start,
            new_start: self.old_start,
            lines: self.lines.iter().map(turned).collect(),
        }
    }
}

/// The patches in a text; what is none is skipped. The error is the line that makes no sense.
pub fn parse(text: &[u8]) -> Result<Vec<FilePatch>, usize> {
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let mut patches = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let is_unified = lines[at].starts_with(b"--- ")
            && lines.get(at + 1).is_some_and(|next| next.starts_with(b"+++ "))
            && lines.get(at + 2).is_some_and(|next| next.starts_with(b"@@ "));
        if is_unified {
            let mut patch = FilePatch {
                old_name: name_in(&lines[at][4..]),
                new_name: name_in(&lines[at + 1][4..]),
                heading: heading(&lines, at),
                at_line: at + 3,
                hunks: Vec::new(),
            };
            at += 2;
            while lines.get(at).is_some_and(|line| line.starts_with(b"@@ ")) {
                patch.hunks.push(unified(&lines, &mut at)?);
            }
            patches.push(patch);
        } else if let Some(command) =
            normal_command(lines[at]).filter(|_| patches.is_empty() || is_normal(&patches))
        {
            if patches.is_empty() {
                patches.push(FilePatch {
                    old_name: None,
                    new_name: None,
                    heading: Vec::new(),
                    at_line: at + 1,
                    hunks: Vec::new(),
                });
            }
            let hunk = normal(&lines, &mut at, command)?;
            patches[0].hunks.push(hunk);
        } else {
            at += 1;
        }
    }
    Ok(patches)
}

fn is_normal(patches: &[FilePatch]) -> bool {
    patches[0].old_name.is_none() && patches[0].heading.is_empty()
}

/// The lines that lead up to the hunks.
fn heading(lines: &[&[u8]], at: usize) -> Vec<Vec<u8>> {
    let is_about = |line: &&&[u8]| {
        line.starts_with(b"diff ") || line.starts_with(b"index ") || line.starts_with(b"Index:")
    };
    let before = lines[..at].iter().rev().take_while(is_about).count();
    lines[at - before..at + 2].iter().map(|line| line.strip_suffix(b"\n").unwrap_or(line).to_vec()).collect()
}

/// A name up to the tab before its time; none for what is not there.
fn name_in(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().position(|byte| matches!(byte, b'\t' | b'\n' | b'\r')).unwrap_or(text.len());
    let (name, time) = text.split_at(end);
    let is_epoch = time.starts_with(b"\t1970-01-01 ") || time.starts_with(b"\t1969-12-31 ");
    (name != b"/dev/null" && !is_epoch).then(|| name.trim_ascii_end().to_vec())
}

fn unified(lines: &[&[u8]], at: &mut usize) -> Result<Hunk, usize> {
    let (old, new) = ranges(lines[*at]).ok_or(*at + 1)?;
    *at += 1;
    let (mut old_left, mut new_left) = (old.1, new.1);
    let mut hunk = Hunk { old_start: old.0, new_start: new.0, lines: Vec::new() };
    while old_left > 0 || new_left > 0 {
        let line = *lines.get(*at).ok_or(*at)?;
        let (kind, body) = match line.split_first() {
            Some((b' ', body)) => (Kind::Context, body),
            Some((b'-', body)) => (Kind::Removed, body),
            Some((b'+', body)) => (Kind::Added, body),
            // Some mailers drop the blank of an empty line.
            Some((b'\n', _)) => (Kind::Context, line),
            Some((b'\\', _)) => {
                drop_newline(&mut hunk);
                *at += 1;
                continue;
            }
            _ => return Err(*at + 1),
        };
        old_left = old_left.checked_sub(usize::from(kind != Kind::Added)).ok_or(*at + 1)?;
        new_left = new_left.checked_sub(usize::from(kind != Kind::Removed)).ok_or(*at + 1)?;
        hunk.lines.push((kind, body.to_vec()));
        *at += 1;
    }
    if lines.get(*at).is_some_and(|line| line.starts_with(b"\\")) {
        drop_newline(&mut hunk);
        *at += 1;
    }
    Ok(hunk)
}

fn drop_newline(hunk: &mut Hunk) {
    if let Some((_, line)) = hunk.lines.last_mut()
        && line.ends_with(b"\n")
    {
        line.pop();
    }
}

/// The two ranges of `@@ -1,2 +3 @@`.
fn ranges(line: &[u8]) -> Option<((usize, usize), (usize, usize))> {
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.strip_prefix("@@ ")?.split(' ');
    Some((range(words.next()?.strip_prefix('-')?)?, range(words.next()?.strip_prefix('+')?)?))
}

fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

type Command = ((usize, usize), u8, (usize, usize));

/// `3,4c5` and its like.
fn normal_command(line: &[u8]) -> Option<Command> {
    let text = std::str::from_utf8(line).ok()?.trim_end();
    let at = text.find(['a', 'c', 'd'])?;
    let bounds = |part: &str| match part.split_once(',') {
        Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
        None => part.parse().ok().map(|line| (line, line)),
    };
    Some((bounds(&text[..at])?, text.as_bytes()[at], bounds(&text[at + 1..])?))
}

fn normal(lines: &[&[u8]], at: &mut usize, (old, letter, new): Command) -> Result<Hunk, usize> {
    *at += 1;
    let mut hunk = Hunk { old_start: old.0, new_start: new.0, lines: Vec::new() };
    while let Some(line) = lines.get(*at) {
        match line {
            [b'<', b' ', body @ ..] if letter != b'a' => hunk.lines.push((Kind::Removed, body.to_vec())),
            [b'>', b' ', body @ ..] if letter != b'd' => hunk.lines.push((Kind::Added, body.to_vec())),
            [b'\\', ..] => drop_newline(&mut hunk),
            [b'-', b'-', b'-', ..] if letter == b'c' && line.len() <= 4 => {}
            _ => break,
        }
        *at += 1;
    }
    if hunk.lines.is_empty() { Err(*at) } else { Ok(hunk) }
}
