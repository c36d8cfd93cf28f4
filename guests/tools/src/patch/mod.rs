//! `patch`: does to files what a diff says.
//!
//! ```text
//! parse.rs  the diff: files and hunks
//! apply.rs  where a hunk belongs
//! ```

mod apply;
mod parse;

use parse::{FilePatch, Hunk, Kind};
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, input};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "patch",
    short: "bcd:eEfF:i:lnNo:p:r:RstuV:z:B:",
    long: &[
        ("strip=", 'p'),
        ("input=", 'i'),
        ("reverse", 'R'),
        ("forward", 'N'),
        ("dry-run", 'D'),
        ("directory=", 'd'),
        ("output=", 'o'),
        ("reject-file=", 'r'),
        ("remove-empty-files", 'E'),
        ("force", 'f'),
        ("fuzz=", 'F'),
        ("backup", 'b'),
        ("suffix=", 'z'),
        ("quiet", 's'),
        ("silent", 's'),
        ("verbose", 'v'),
        ("batch", 't'),
        ("unified", 'u'),
        ("normal", 'n'),
        ("binary", 'y'),
        ("ignore-whitespace", 'l'),
        ("no-backup-if-mismatch", 'M'),
        ("merge", 'm'),
    ],
    help: "\
Usage: patch [OPTION]... [ORIGFILE [PATCHFILE]]

  -p NUM  --strip=NUM  Strip NUM leading components from file names.
  -F LINES  --fuzz LINES  Set the fuzz factor to LINES for inexact matching.
  -N  --forward  Ignore patches that appear to be reversed or already applied.
  -R  --reverse  Assume patches were created with old and new files swapped.
  -i PATCHFILE  --input=PATCHFILE  Read patch from PATCHFILE instead of stdin.
  -o FILE  --output=FILE  Output patched files to FILE.
  -r FILE  --reject-file=FILE  Output rejects to FILE.
  -E  --remove-empty-files  Remove output files that are empty after patching.
  -b  --backup  Back up the original contents of each file.
  -z SUFFIX  --suffix=SUFFIX  Append SUFFIX to backup file names.
  -d DIR  --directory=DIR  Change the working directory to DIR first.
  -s  --quiet  --silent  Work silently unless an error occurs.
  -f  --force  Like -t, but ignore bad-Prereq patches, and assume unreversed.
  -t  --batch  Ask no questions.
      --dry-run  Do not actually change any files; just print what would happen.
      --help  Output this help.
      --version  Output version info.

Unified and normal diffs are understood.
",
    misuse: 2,
};

#[derive(Default)]
struct Options {
    strip: Option<usize>,
    reverse: bool,
    forward: bool,
    dry_run: bool,
    output: Option<Vec<u8>>,
    rejects: Option<Vec<u8>>,
    remove_empty: bool,
    force: bool,
    batch: bool,
    fuzz: usize,
    backup: bool,
    suffix: Vec<u8>,
    quiet: bool,
    keeps_no_mismatch: bool,
}

struct Patcher {
    options: Options,
    out: Out,
    code: i32,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut options = Options { fuzz: 2, suffix: b".orig".to_vec(), ..Options::default() };
    let (mut source, mut directory) = (None, None);
    for (letter, text) in parsed.options {
        let text = text.unwrap_or_default();
        match letter {
            'p' => options.strip = Some(number(&text, "strip count")?),
            'F' => options.fuzz = number(&text, "fuzz factor")?,
            'i' => source = Some(text),
            'd' => directory = Some(text),
            'o' => options.output = Some(text),
            'r' => options.rejects = Some(text),
            'z' => (options.suffix, options.backup) = (text, true),
            letter => options.set(letter),
        }
    }
    if let Some(directory) = directory {
        abi::chdir(Dir::CWD, &directory).map_err(|error| {
            complain(
                "patch",
                format_args!(
                    "**** Can't change to directory {} : {error}",
                    String::from_utf8_lossy(&directory)
                ),
            );
            2
        })?;
    }
    let original = parsed.operands.first().cloned();
    let source = source.or_else(|| parsed.operands.get(1).cloned()).unwrap_or_else(|| b"-".to_vec());
    let content = match source.as_slice() {
        b"-" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(Errno::from),
    };
    let content = content.map_err(|error| {
        complain(
            "patch",
            format_args!("**** Can't open patch file {} : {error}", String::from_utf8_lossy(&source)),
        );
        2
    })?;
    let mut patcher = Patcher { options, out: Out::new("patch"), code: 0 };
    let patches = parse::parse(&content).map_err(|line| {
        complain("patch", format_args!("**** malformed patch at line {line}: {}", line_of(&content, line)));
        2
    })?;
    if patches.is_empty() && !content.is_empty() {
        complain("patch", "**** Only garbage was found in the patch input.");
        return Err(2);
    }
    for patch in &patches {
        patcher.file(patch, original.as_deref())?;
    }
    Ok(patcher.code)
}

fn number(text: &[u8], what: &str) -> Result<usize, i32> {
    input::number(text).ok_or_else(|| {
        complain("patch", format_args!("**** {what} {} is not a number", String::from_utf8_lossy(text)));
        2
    })
}

fn line_of(content: &[u8], line: usize) -> String {
    let found = content.split(|&byte| byte == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
    format!("{}\n", String::from_utf8_lossy(found))
}

impl Options {
    fn set(&mut self, letter: char) {
        match letter {
            'R' => self.reverse = true,
            'N' => self.forward = true,
            'D' => self.dry_run = true,
            'E' => self.remove_empty = true,
            'f' => (self.force, self.batch) = (true, true),
            't' => self.batch = true,
            'b' => self.backup = true,
            's' => self.quiet = true,
            'M' => self.keeps_no_mismatch = true,
            _ => {}
        }
    }

    /// A name of the patch as a path here.
    fn stripped(&self, name: &[u8]) -> Option<Vec<u8>> {
        let parts: Vec<&[u8]> = name.split(|&byte| byte == b'/').collect();
        match self.strip {
            None => parts.last().map(|name| name.to_vec()),
            Some(0) => Some(name.to_vec()),
            Some(count) => {
                let kept: Vec<&[u8]> =
                    parts.into_iter().skip(count).skip_while(|part| part.is_empty()).collect();
                (!kept.is_empty()).then(|| kept.join(&b'/'))
            }
        }
    }
}

/// Nobody answers, and no answer is a no.
const ASKED: &str = "  Assume -R? [n] \nApply anyway? [n] \nSkipping patch.\n";
const SKIPPED: &str = "  Skipping patch.\n";

/// What hunks made of a file.
struct Patched {
    lines: Vec<Vec<u8>>,
    /// Each with the number that it has in the patch.
    failed: Vec<(usize, Hunk)>,
    /// What there is to say of the others.
    notes: Vec<String>,
}

impl Patcher {
    fn say(&mut self, text: String) {
        if !self.options.quiet {
            self.out.put(text);
        }
    }

    fn file(&mut self, patch: &FilePatch, original: Option<&[u8]>) -> Result<(), i32> {
        let (old_name, new_name) = match self.options.reverse {
            false => (&patch.old_name, &patch.new_name),
            true => (&patch.new_name, &patch.old_name),
        };
        let stripped = |name: &Option<Vec<u8>>| name.as_ref().and_then(|name| self.options.stripped(name));
        let (old, new) = (stripped(old_name), stripped(new_name));
        let (creates, removes) =
            (old_name.is_none() && new_name.is_some(), new_name.is_none() && old_name.is_some());
        let exists = |path: &Vec<u8>| abi::stat(Dir::CWD, path, true).is_ok_and(|stat| stat.is_file());
        let path = match original {
            Some(path) => path.to_vec(),
            None if creates => match new {
                Some(path) => path,
                None => return self.cannot_find(patch),
            },
            None => match [old, new].into_iter().flatten().find(exists) {
                Some(path) => path,
                None => return self.cannot_find(patch),
            },
        };
        let name = String::from_utf8_lossy(&path).into_owned();
        let content = match std::fs::read(files::path(&path)).map_err(Errno::from) {
            Ok(content) => content,
            Err(Errno::NOENT) if creates => Vec::new(),
            Err(error) => {
                complain("patch", format_args!("**** Can't open file {name} : {error}"));
                return Err(2);
            }
        };
        if creates && !content.is_empty() && !self.options.force {
            self.out.put(format!(
                "The next patch would create the file {name},\nwhich already exists!{}{} out of {} hunk{} ignored\n",
                if self.options.forward { SKIPPED } else { ASKED },
                patch.hunks.len(),
                patch.hunks.len(),
                if patch.hunks.len() == 1 { "" } else { "s" }
            ));
            self.code = 1;
            return Ok(());
        }
        let verb = if self.options.dry_run { "checking" } else { "patching" };
        match &self.options.output {
            Some(output) => {
                let output = String::from_utf8_lossy(output).into_owned();
                self.say(format!("{verb} file {output} (read from {name})\n"));
            }
            None => self.say(format!("{verb} file {name}\n")),
        }
        let lines: Vec<Vec<u8>> =
            content.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        let oriented =
            |hunk: &Hunk| if self.options.reverse { hunk.reversed() } else { hunk.reversed().reversed() };
        let hunks: Vec<Hunk> = patch.hunks.iter().map(oriented).collect();
        if self.is_applied(&hunks, &lines) {
            self.skip_applied(&path, patch, hunks);
            return Ok(());
        }
        let patched = apply_all(hunks, &lines, self.options.fuzz);
        for note in &patched.notes {
            self.say(note.clone());
        }
        let mismatch = !patched.notes.is_empty();
        let empties = patched.lines.is_empty() && (removes || self.options.remove_empty);
        if !self.options.dry_run {
            let original_name = [&path[..], &self.options.suffix].concat();
            let keeps = self.options.backup
                || mismatch && !self.options.keeps_no_mismatch && self.options.output.is_none();
            self.write(&path, &content, patched.lines, empties, keeps.then_some(original_name))?;
        }
        self.reject(&path, patch, patched.failed, patch.hunks.len(), "FAILED")
    }

    /// Whether the first hunk does not fit but would the other way round.
    fn is_applied(&self, hunks: &[Hunk], lines: &[Vec<u8>]) -> bool {
        let Some(first) = hunks.first().filter(|_| !self.options.force) else { return false };
        let expected = first.old_start as isize - 1;
        if first.side(Kind::Added).is_empty() && !lines.is_empty() && first.old_start == 0 {
            return true;
        }
        apply::place(first, lines, expected.max(0), 0, self.options.fuzz).is_none()
            && !first.side(Kind::Removed).is_empty()
            && apply::place(&first.reversed(), lines, first.new_start as isize - 1, 0, 0).is_some()
    }

    fn skip_applied(&mut self, path: &[u8], patch: &FilePatch, hunks: Vec<Hunk>) {
        let what = if self.options.reverse {
            "Unreversed (or not yet applied)"
        } else {
            "Reversed (or previously applied)"
        };
        let question = match (self.options.forward, self.options.reverse) {
            (true, _) => SKIPPED,
            (_, true) => "  Ignore -R? [n] \nApply anyway? [n] \nSkipping patch.\n",
            _ => ASKED,
        };
        self.out.put(format!("{what} patch detected!{question}"));
        let total = hunks.len();
        let failed = hunks.into_iter().enumerate().map(|(at, hunk)| (at + 1, hunk)).collect();
        let _ = self.reject(path, patch, failed, total, "ignored");
    }

    fn cannot_find(&mut self, patch: &FilePatch) -> Result<(), i32> {
        let shown: String =
            patch.heading.iter().map(|line| format!("|{}\n", String::from_utf8_lossy(line))).collect();
        let hint = match self.options.strip {
            None => "Perhaps you should have used the -p or --strip option?",
            Some(_) => "Perhaps you used the wrong -p or --strip option?",
        };
        let rule = "--------------------------";
        let question = if self.options.batch {
            "No file to patch.  Skipping patch.\n"
        } else {
            "File to patch: \nSkip this patch? [y] \nSkipping patch.\n"
        };
        let count = patch.hunks.len();
        let plural = if count == 1 { "" } else { "s" };
        self.out.put(format!(
            "can't find file to patch at input line {}\n{hint}\nThe text leading up to this was:\n{rule}\n{shown}{rule}\n{question}{count} out of {count} hunk{plural} ignored\n",
            patch.at_line
        ));
        self.code = 1;
        Ok(())
    }

    fn write(
        &self,
        path: &[u8],
        before: &[u8],
        lines: Vec<Vec<u8>>,
        empties: bool,
        kept: Option<Vec<u8>>,
    ) -> Result<(), i32> {
        let failed = |error: std::io::Error| {
            complain(
                "patch",
                format_args!(
                    "**** Can't write file {} : {}",
                    String::from_utf8_lossy(path),
                    Errno::from(error)
                ),
            );
            2
        };
        let mode = abi::stat(Dir::CWD, path, true).map(|stat| stat.mode & 0o7777);
        if let Some(kept) = kept.filter(|_| mode.is_ok() || self.options.backup) {
            std::fs::write(files::path(&kept), before).map_err(failed)?;
        }
        let target = self.options.output.as_deref().unwrap_or(path);
        if empties && self.options.output.is_none() {
            std::fs::remove_file(files::path(path)).map_err(failed)?;
            remove_empty_parents(path);
            return Ok(());
        }
        let parent = files::parent(target);
        std::fs::create_dir_all(files::path(&parent)).map_err(failed)?;
        std::fs::write(files::path(target), lines.concat()).map_err(failed)?;
        if let Ok(mode) = mode {
            let _ = abi::chmod(Dir::CWD, target, true, mode);
        }
        Ok(())
    }

    /// Says which hunks went nowhere, and keeps them in a file.
    fn reject(
        &mut self,
        path: &[u8],
        patch: &FilePatch,
        failed: Vec<(usize, Hunk)>,
        total: usize,
        how: &str,
    ) -> Result<(), i32> {
        if failed.is_empty() {
            return Ok(());
        }
        self.code = 1;
        let rejects = self.options.rejects.clone().unwrap_or_else(|| [path, b".rej"].concat());
        let plural = if total == 1 { "" } else { "s" };
        let saved = match self.options.dry_run || rejects == b"-" {
            true => String::new(),
            false => format!(" -- saving rejects to file {}", String::from_utf8_lossy(&rejects)),
        };
        self.out.put(format!("{} out of {total} hunk{plural} {how}{saved}\n", failed.len()));
        if saved.is_empty() {
            return Ok(());
        }
        let heading: Vec<&Vec<u8>> = patch.heading.iter().rev().take(2).collect();
        let mut text: Vec<u8> = heading.iter().rev().flat_map(|line| [&line[..], b"\n"].concat()).collect();
        failed.iter().for_each(|(_, hunk)| text.extend(shown(hunk)));
        std::fs::write(files::path(&rejects), text).map_err(|error| {
            complain("patch", format_args!("**** Can't write rejects : {}", Errno::from(error)));
            2
        })
    }
}

fn remove_empty_parents(path: &[u8]) {
    let mut parent = files::parent(path);
    while parent != b"." && parent != b"/" && std::fs::remove_dir(files::path(&parent)).is_ok() {
        parent = files::parent(&parent);
    }
}

fn apply_all(hunks: Vec<Hunk>, lines: &[Vec<u8>], fuzz: usize) -> Patched {
    let mut patched = Patched { lines: Vec::new(), failed: Vec::new(), notes: Vec::new() };
    // How far the file has moved from what the patch expects, and how much of it is done.
    let (mut offset, mut done) = (0_isize, 0);
    for (index, hunk) in hunks.into_iter().enumerate() {
        let has_old = !hunk.side(Kind::Added).is_empty();
        let first = if has_old { hunk.old_start as isize - 1 } else { hunk.old_start as isize };
        let grown = patched.lines.len() as isize - done as isize;
        let number = index + 1;
        match apply::place(&hunk, lines, first + offset, done, fuzz) {
            Some(placed) => {
                patched.lines.extend_from_slice(&lines[done..placed.at]);
                let (used, replacement) = apply::replacement(&hunk, lines, placed.at);
                patched.lines.extend(replacement);
                done = placed.at + used;
                let moved = placed.at as isize - first;
                if placed.fuzz > 0 || moved != 0 {
                    let with =
                        if placed.fuzz > 0 { format!(" with fuzz {}", placed.fuzz) } else { String::new() };
                    let plural = if moved.abs() == 1 { "" } else { "s" };
                    let by =
                        if moved != 0 { format!(" (offset {moved} line{plural})") } else { String::new() };
                    let at = placed.at as isize + grown + 1;
                    patched.notes.push(format!("Hunk #{number} succeeded at {at}{with}{by}.\n"));
                }
                offset = moved;
            }
            None => {
                let at = first + offset + grown + 1;
                patched.notes.push(format!("Hunk #{number} FAILED at {at}.\n"));
                patched.failed.push((number, hunk));
            }
        }
    }
    patched.lines.extend_from_slice(&lines[done..]);
    patched
}

/// A hunk as it was written.
fn shown(hunk: &Hunk) -> Vec<u8> {
    let range =
        |start: usize, count: usize| if count == 1 { start.to_string() } else { format!("{start},{count}") };
    let (old, new) = (hunk.side(Kind::Added).len(), hunk.side(Kind::Removed).len());
    let mut text =
        format!("@@ -{} +{} @@\n", range(hunk.old_start, old), range(hunk.new_start, new)).into_bytes();
    for (kind, line) in &hunk.lines {
        text.push(match kind {
            Kind::Context => b' ',
            Kind::Removed => b'-',
            Kind::Added => b'+',
        });
        text.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            text.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
    text
}
