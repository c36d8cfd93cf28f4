//! `diff`: what two files, or two directories, do not have in common.
//!
//! ```text
//! text.rs     a file as lines, and when two lines are the same
//! compare.rs  which lines differ
//! show.rs     how that is printed
//! sdiff.rs    two files side by side, merged by asking
//! diff3.rs    what two files made of a third
//! ```

mod compare;
pub mod diff3;
pub mod sdiff;
mod show;
mod text;

use compare::Hunk;
use show::{Format, Pair, Sides, Style};
use std::collections::BTreeSet;
use text::{Ignored, Text};
use toolkit::args::{Tool, bytes_of};
use toolkit::clock::Clock;
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, glob, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Stat};
use wardian_regex::{Regex, Syntax};

const TOOL: Tool = Tool {
    name: "diff",
    short: "abBcC:dD:eEF:hHiI:lL:nNpPqrsS:tTuU:vwW:x:X:yZ0123456789",
    long: &[
        ("brief", 'q'),
        ("color[=", 'Ĉ'),
        ("context[=", 'Ċ'),
        ("-presume-output-tty", 'Ť'),
        ("horizon-lines=", 'H'),
        ("ifdef=", 'D'),
        ("palette=", 'Π'),
        ("suppress-blank-empty", 'ß'),
        ("ed", 'e'),
        ("exclude=", 'x'),
        ("exclude-from=", 'X'),
        ("expand-tabs", 't'),
        ("from-file=", 'Ḟ'),
        ("ignore-all-space", 'w'),
        ("ignore-blank-lines", 'B'),
        ("ignore-case", 'i'),
        ("ignore-matching-lines=", 'I'),
        ("ignore-space-change", 'b'),
        ("ignore-tab-expansion", 'E'),
        ("ignore-trailing-space", 'Z'),
        ("initial-tab", 'T'),
        ("label=", 'L'),
        ("left-column", 'Ł'),
        ("minimal", 'd'),
        ("new-file", 'N'),
        ("no-dereference", 'Ñ'),
        ("normal", 'Ń'),
        ("recursive", 'r'),
        ("rcs", 'n'),
        ("report-identical-files", 's'),
        ("show-c-function", 'p'),
        ("show-function-line=", 'F'),
        ("side-by-side", 'y'),
        ("speed-large-files", 'H'),
        ("starting-file=", 'S'),
        ("strip-trailing-cr", 'Ŕ'),
        ("suppress-common-lines", 'Ś'),
        ("text", 'a'),
        ("to-file=", 'Ṫ'),
        ("unidirectional-new-file", 'P'),
        ("unified[=", 'Ŭ'),
        ("width=", 'W'),
    ],
    help: "\
Usage: diff [OPTION]... FILES
Compare FILES line by line.

      --normal                  output a normal diff (the default)
  -q, --brief                   report only when files differ
  -s, --report-identical-files  report when two files are the same
  -c, -C NUM, --context[=NUM]   output NUM (default 3) lines of copied context
  -u, -U NUM, --unified[=NUM]   output NUM (default 3) lines of unified context
  -e, --ed                      output an ed script
  -n, --rcs                     output an RCS format diff
  -y, --side-by-side            output in two columns
  -W, --width=NUM               output at most NUM (default 130) print columns
      --left-column             output only the left column of common lines
      --suppress-common-lines   do not output common lines
  -D, --ifdef=NAME              output merged file with '#ifdef NAME' diffs
      --suppress-blank-empty    suppress space or tab before empty output lines
      --palette=PALETTE         the colors to use when --color is active
      --horizon-lines=NUM       taken for compatibility: all lines are compared
  -t, --expand-tabs             expand tabs to spaces in output
  -T, --initial-tab             make tabs line up by prepending a tab
  -p, --show-c-function         show which C function each change is in
  -F, --show-function-line=RE   show the most recent line matching RE
      --color[=WHEN]            color output; WHEN is never, always or auto
      --label LABEL             use LABEL instead of file name and timestamp
  -r, --recursive                 recursively compare any subdirectories found
      --no-dereference            don't follow symbolic links
  -N, --new-file                  treat absent files as empty
      --unidirectional-new-file   treat absent first files as empty
  -x, --exclude=PAT               exclude files that match PAT
  -X, --exclude-from=FILE         exclude files that match any pattern in FILE
  -S, --starting-file=FILE        start with FILE when comparing directories
      --from-file=FILE1           compare FILE1 to all operands
      --to-file=FILE2             compare all operands to FILE2
  -i, --ignore-case               ignore case differences in file contents
  -E, --ignore-tab-expansion      ignore changes due to tab expansion
  -Z, --ignore-trailing-space     ignore white space at line end
  -b, --ignore-space-change       ignore changes in the amount of white space
  -w, --ignore-all-space          ignore all white space
  -B, --ignore-blank-lines        ignore changes where lines are all blank
  -I, --ignore-matching-lines=RE  ignore changes where all lines match RE
  -a, --text                      treat all files as text
      --strip-trailing-cr         strip trailing carriage return on input
  -d, --minimal            try hard to find a smaller set of changes
      --help               display this help and exit
      --version            output version information and exit

FILES are 'FILE1 FILE2' or 'DIR1 DIR2' or 'DIR FILE' or 'FILE DIR'.
If --from-file or --to-file is given, there are no restrictions on FILE(s).
If a FILE is '-', read standard input.
Exit status is 0 if inputs are the same, 1 if different, 2 if trouble.
",
    misuse: 2,
};

struct Differ {
    format: Format,
    sides: Sides,
    style: Style,
    ignored: Ignored,
    blank_lines: bool,
    matching: Vec<Regex>,
    labels: Vec<String>,
    brief: bool,
    reports_same: bool,
    recursive: bool,
    new_file: bool,
    new_first: bool,
    text: bool,
    keeps_links: bool,
    presumes_terminal: bool,
    excluded: Vec<Vec<u8>>,
    start: Vec<u8>,
    /// The options as given, for the headings of files in directories.
    words: String,
    clock: Clock,
    out: Out,
}

/// A file that is compared.
struct Side<'a> {
    path: &'a [u8],
    /// `None` for one that is not there and counts as empty.
    stat: Option<Stat>,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let mut words = arguments.clone();
    let parsed = TOOL.parse(arguments)?;
    for operand in parsed.operands.iter().rev() {
        if let Some(at) = words.iter().rposition(|word| word == operand) {
            words.remove(at);
        }
    }
    let (mut differ, mut from, mut to) = (Differ::new(words), None, None);
    for (letter, text) in parsed.options {
        match letter {
            'Ḟ' => from = text,
            'Ṫ' => to = text,
            letter => differ.set(letter, text)?,
        }
    }
    let operands = parsed.operands;
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = match (from, to) {
        (Some(from), _) => operands.into_iter().map(|operand| (from.clone(), operand)).collect(),
        (_, Some(to)) => operands.into_iter().map(|operand| (operand, to.clone())).collect(),
        _ => match &operands[..] {
            [] => return Err(TOOL.wrong("missing operand after 'diff'")),
            [only] => {
                return Err(TOOL.wrong(format_args!("missing operand after {}", quote::plain_word(only))));
            }
            [_, _, extra, ..] => {
                return Err(TOOL.wrong(format_args!("extra operand {}", quote::plain_word(extra))));
            }
            [old, new] => vec![(old.clone(), new.clone())],
        },
    };
    Ok(pairs.iter().map(|(old, new)| differ.operands(old, new)).max().unwrap_or(0))
}

impl Differ {
    fn new(words: Vec<Vec<u8>>) -> Differ {
        Differ {
            format: Format::Normal,
            sides: Sides { width: 130, left_only: false, without_common: false },
            style: Style::default(),
            ignored: Ignored::default(),
            blank_lines: false,
            matching: Vec::new(),
            labels: Vec::new(),
            brief: false,
            reports_same: false,
            recursive: false,
            new_file: false,
            new_first: false,
            text: false,
            keeps_links: false,
            presumes_terminal: false,
            excluded: Vec::new(),
            start: Vec::new(),
            words: words.iter().map(|word| format!(" {}", quote::if_needed(word))).collect(),
            clock: Clock::new(),
            out: Out::new("diff"),
        }
    }

    fn set(&mut self, letter: char, text: Option<Vec<u8>>) -> Result<(), i32> {
        let bytes = text.clone().unwrap_or_default();
        let number = |default: usize| match &text {
            None => Ok(default),
            Some(text) => number(text),
        };
        match letter {
            'a' => self.text = true,
            'b' => self.ignored.space_change = true,
            'B' => self.blank_lines = true,
            'c' | 'C' | 'Ċ' => self.format = Format::Context(self.most_context(number(3)?)),
            'e' => (self.format, self.ignored.last_newline) = (Format::Ed, true),
            'E' => self.ignored.tab_expansion = true,
            'i' => self.ignored.case = true,
            'I' => self.matching.push(pattern(&bytes)?),
            'L' => self.labels.push(String::from_utf8_lossy(&bytes).into_owned()),
            'Ł' => self.sides.left_only = true,
            'n' => self.format = Format::Rcs,
            'N' => self.new_file = true,
            'P' => self.new_first = true,
            'Ñ' => self.keeps_links = true,
            'Ń' => self.format = Format::Normal,
            'F' => self.style.functions.push(pattern(&bytes)?),
            'p' => {
                self.style.functions.push(pattern(b"^[[:alpha:]$_]")?);
                if self.format == Format::Normal {
                    self.format = Format::Context(3);
                }
            }
            'q' => self.brief = true,
            'r' => self.recursive = true,
            'Ŕ' => self.ignored.trailing_cr = true,
            's' => self.reports_same = true,
            'S' => self.start = bytes,
            'Ś' => self.sides.without_common = true,
            't' => self.style.expands_tabs = true,
            'T' => self.style.initial_tab = true,
            'Ĉ' => {
                self.style.colors = match text.as_deref() {
                    Some(b"always") => true,
                    None | Some(b"auto") => self.presumes_terminal || abi::isatty(1),
                    Some(b"never") => false,
                    Some(other) => {
                        return Err(TOOL.wrong(format_args!("invalid color {}", quote::plain_word(other))));
                    }
                }
            }
            'u' | 'U' | 'Ŭ' => self.format = Format::Unified(self.most_context(number(3)?)),
            'w' => self.ignored.all_space = true,
            'W' => self.sides.width = number(130)?,
            'x' => self.excluded.push(bytes),
            'X' => {
                let list = std::fs::read(files::path(&bytes)).map_err(|error| {
                    complain("diff", format_args!("{}: {}", quote::if_needed(&bytes), Errno::from(error)));
                    2
                })?;
                self.excluded.extend(list.split(|&byte| byte == b'\n').map(<[u8]>::to_vec));
            }
            'ß' => self.style.bare_empty_lines = true,
            'Ť' => self.presumes_terminal = true,
            'Π' => self.style.set_palette(&bytes),
            'H' if text.is_some() => drop(number(0)?),
            'D' => {
                self.format = Format::Ifdef;
                self.style.macro_name = bytes;
            }
            'y' => self.format = Format::SideBySide,
            'Z' => self.ignored.trailing_space = true,
            digit @ '0'..='9' => self.add_digit(digit),
            'v' => {
                self.out.put(format!("diff (Wardian) {}\n", env!("CARGO_PKG_VERSION")));
                return Err(0);
            }
            _ => {}
        }
        Ok(())
    }

    /// Of several numbers of lines around a change the greatest holds.
    fn most_context(&self, lines: usize) -> usize {
        match self.format {
            Format::Context(before) | Format::Unified(before) => lines.max(before),
            _ => lines,
        }
    }

    /// `-u5` and `-5 -u`, as old scripts have it.
    fn add_digit(&mut self, digit: char) {
        let add = |lines: usize| lines * 10 + digit.to_digit(10).unwrap_or(0) as usize;
        self.format = match self.format {
            Format::Unified(3) => Format::Unified(add(0)),
            Format::Unified(lines) => Format::Unified(add(lines)),
            Format::Context(3) => Format::Context(add(0)),
            Format::Context(lines) => Format::Context(add(lines)),
            other => other,
        };
    }

    /// Compares what was named; a file with a directory is compared with the one of its name in there.
    fn operands(&mut self, old: &[u8], new: &[u8]) -> i32 {
        let (old_stat, new_stat) = (self.stat(old), self.stat(new));
        let is_dir = |stat: &Result<Stat, Errno>| stat.as_ref().is_ok_and(Stat::is_dir);
        match (is_dir(&old_stat), is_dir(&new_stat)) {
            (true, false) if new_stat.is_ok() && new != b"-" => {
                let old = files::join(old, files::base_name(new));
                self.pair(&old, self.stat(&old), new, new_stat, false)
            }
            (false, true) if old_stat.is_ok() && old != b"-" => {
                let new = files::join(new, files::base_name(old));
                let stat = self.stat(&new);
                self.pair(old, old_stat, &new, stat, false)
            }
            _ => self.pair(old, old_stat, new, new_stat, false),
        }
    }

    fn stat(&self, path: &[u8]) -> Result<Stat, Errno> {
        if path == b"-" { abi::fstat(0) } else { abi::stat(Dir::CWD, path, !self.keeps_links) }
    }

    fn pair(
        &mut self,
        old: &[u8],
        old_stat: Result<Stat, Errno>,
        new: &[u8],
        new_stat: Result<Stat, Errno>,
        inside: bool,
    ) -> i32 {
        let absent = |stat: &Result<Stat, Errno>, other: &Result<Stat, Errno>, allowed: bool| {
            matches!(stat, Err(Errno::NOENT)) && other.is_ok() && allowed
        };
        let new_file = self.new_file;
        let old_absent = absent(&old_stat, &new_stat, new_file || self.new_first);
        let new_absent = absent(&new_stat, &old_stat, new_file);
        let mut failed = false;
        for (path, stat, absent) in [(old, &old_stat, old_absent), (new, &new_stat, new_absent)] {
            if let (Err(error), false) = (stat, absent) {
                self.out.flush();
                complain("diff", format_args!("{}: {error}", quote::if_needed(path)));
                failed = true;
            }
        }
        if failed {
            return 2;
        }
        let (old, new) = (Side { path: old, stat: old_stat.ok() }, Side { path: new, stat: new_stat.ok() });
        let is_dir = |side: &Side<'_>| side.stat.is_some_and(|stat| stat.is_dir());
        match (is_dir(&old), is_dir(&new)) {
            (true, true) => self.directories(&old, &new, inside),
            (true, false) if new.stat.is_none() => self.directories(&old, &new, inside),
            (false, true) if old.stat.is_none() => self.directories(&old, &new, inside),
            (false, false) => self.files(&old, &new, inside),
            _ => self.different_kinds(&old, &new),
        }
    }

    fn directories(&mut self, old: &Side<'_>, new: &Side<'_>, inside: bool) -> i32 {
        if inside && !self.recursive {
            let (old, new) = (quote::if_needed(old.path), quote::if_needed(new.path));
            self.out.put(format!("Common subdirectories: {old} and {new}\n"));
            return 0;
        }
        let names = |side: &Side<'_>| match side.stat {
            Some(_) => files::names_in(side.path),
            None => Ok(Vec::new()),
        };
        let (old_names, new_names) = match (names(old), names(new)) {
            (Ok(old), Ok(new)) => (old, new),
            (result, other) => {
                let path = if result.is_err() { old.path } else { new.path };
                let error = result.err().or(other.err()).unwrap_or(Errno::IO);
                self.out.flush();
                complain("diff", format_args!("{}: {error}", quote::if_needed(path)));
                return 2;
            }
        };
        let excluded =
            |name: &Vec<u8>| self.excluded.iter().any(|pattern| glob::matches(pattern, name, false));
        let (old_names, new_names): (BTreeSet<_>, BTreeSet<_>) = (
            old_names.into_iter().filter(|name| !excluded(name)).collect(),
            new_names.into_iter().filter(|name| !excluded(name)).collect(),
        );
        let all: Vec<Vec<u8>> = old_names.union(&new_names).cloned().collect();
        let (mut code, start) = (0, self.start.clone());
        for name in all.iter().filter(|name| **name >= start) {
            let (in_old, in_new) = (old_names.contains(name), new_names.contains(name));
            let fills = self.new_file || (self.new_first && in_new);
            if !(fills || in_old && in_new) {
                let place = if in_old { old.path } else { new.path };
                self.out.put(format!("Only in {}: {}\n", quote::if_needed(place), quote::if_needed(name)));
                code = code.max(1);
                continue;
            }
            let (left, right) = (files::join(old.path, name), files::join(new.path, name));
            let (left_stat, right_stat) = (self.stat(&left), self.stat(&right));
            code = code.max(self.pair(&left, left_stat, &right, right_stat, true));
        }
        code
    }

    fn files(&mut self, old: &Side<'_>, new: &Side<'_>, inside: bool) -> i32 {
        let links = [old, new].map(|side| side.stat.is_some_and(|stat| stat.is_symlink()));
        if links == [true, true] {
            return self.links(old, new);
        }
        if links != [false, false] && old.stat.is_some() && new.stat.is_some() {
            return self.different_kinds(old, new);
        }
        let same_file = matches!((&old.stat, &new.stat), (Some(a), Some(b)) if (a.dev, a.ino) == (b.dev, b.ino))
            && old.path != b"-";
        let (left, right) = match (content(old), content(new)) {
            _ if same_file && !matches!(self.format, Format::SideBySide | Format::Ifdef) => {
                (Vec::new(), Vec::new())
            }
            (Ok(left), Ok(right)) => (left, right),
            (left, right) => {
                self.out.flush();
                for (path, error) in [(old.path, left.err()), (new.path, right.err())] {
                    if let Some(error) = error {
                        complain("diff", format_args!("{}: {error}", quote::if_needed(path)));
                    }
                }
                return 2;
            }
        };
        let shows_same = matches!(self.format, Format::SideBySide | Format::Ifdef) && !self.brief;
        let differ = (left != right || shows_same) && self.contents(old, &left, new, &right, inside);
        if !differ && self.reports_same {
            let (old, new) = (quote::if_needed(old.path), quote::if_needed(new.path));
            self.out.put(format!("Files {old} and {new} are identical\n"));
        }
        i32::from(differ)
    }

    /// Compares contents that are not the same bytes, and prints the differences that count.
    fn contents(&mut self, old: &Side<'_>, left: &[u8], new: &Side<'_>, right: &[u8], inside: bool) -> bool {
        let (left, right) = (Text::new(left, self.ignored), Text::new(right, self.ignored));
        let (old_name, new_name) = (quote::if_needed(old.path), quote::if_needed(new.path));
        let is_binary = (left.is_binary || right.is_binary) && !self.text;
        if is_binary && !self.brief {
            self.out.put(format!("Binary files {old_name} and {new_name} differ\n"));
            return true;
        }
        let mut hunks = match is_binary {
            true => vec![Hunk { old: (0, 1), new: (0, 1) }],
            false => compare::hunks(&left.keys(self.ignored), &right.keys(self.ignored)),
        };
        let counts = |hunk: &Hunk| !self.is_ignored(hunk, &left, &right);
        let differ = hunks.iter().any(counts);
        if self.brief {
            if differ {
                self.out.put(format!("Files {old_name} and {new_name} differ\n"));
            }
            return differ;
        }
        if !differ && !matches!(self.format, Format::SideBySide | Format::Ifdef) {
            return false;
        }
        if !matches!(self.format, Format::Unified(_) | Format::Context(_)) {
            hunks.retain(counts);
        }
        if inside {
            let (old_name, new_name) = (name_in_heading(old.path), name_in_heading(new.path));
            let line = format!("diff{} {old_name} {new_name}\n", self.words);
            self.out.put(line);
        }
        let pair = Pair {
            old: &left,
            new: &right,
            old_heading: self.heading(old, 0),
            new_heading: self.heading(new, 1),
            style: &self.style,
        };
        pair.show(&hunks, self.format, self.sides, &mut self.out);
        differ
    }

    /// Whether all lines of a hunk are of a kind that does not count.
    fn is_ignored(&self, hunk: &Hunk, old: &Text, new: &Text) -> bool {
        if !self.blank_lines && self.matching.is_empty() {
            return false;
        }
        let is_blank = |line: &[u8]| match self.ignored.all_space || self.ignored.space_change {
            true => line.iter().all(u8::is_ascii_whitespace),
            false => line.is_empty(),
        };
        let matches = |line: &[u8]| self.matching.iter().any(|regex| regex.is_match(line));
        let mut lines = (hunk.old.0..hunk.old.1)
            .map(|at| old.line(at))
            .chain((hunk.new.0..hunk.new.1).map(|at| new.line(at)));
        lines.all(|line| (self.blank_lines && is_blank(line)) || matches(line))
    }

    fn heading(&self, side: &Side<'_>, at: usize) -> String {
        if let Some(label) = self.labels.get(at) {
            return label.clone();
        }
        let time = match side.stat {
            None => 0,
            Some(_) if side.path == b"-" => toolkit::clock::now(),
            Some(stat) => stat.mtime,
        };
        let time = match self.format {
            Format::Context(_) if std::env::var("POSIXLY_CORRECT").is_ok() => {
                self.clock.format(time, "%a %b %e %H:%M:%S %Y")
            }
            _ => self.clock.full(time),
        };
        format!("{}\t{time}", name_in_heading(side.path))
    }

    fn different_kinds(&mut self, old: &Side<'_>, new: &Side<'_>) -> i32 {
        let (old_name, new_name) = (quote::if_needed(old.path), quote::if_needed(new.path));
        let line = format!("File {old_name} is a {} while file {new_name} is a {}\n", kind(old), kind(new));
        self.out.put(line);
        1
    }

    fn links(&mut self, old: &Side<'_>, new: &Side<'_>) -> i32 {
        let differ = files::link_target(old.path) != files::link_target(new.path);
        if differ {
            let (old, new) = (quote::if_needed(old.path), quote::if_needed(new.path));
            self.out.put(format!("Symbolic links {old} and {new} differ\n"));
        }
        i32::from(differ)
    }
}

/// A name with blanks or quotes in it is written as in C.
fn name_in_heading(path: &[u8]) -> String {
    let is_plain = path.iter().all(|byte| !byte.is_ascii_control() && !b" \"\\".contains(byte));
    if is_plain { String::from_utf8_lossy(path).into_owned() } else { quote::in_c(path, true) }
}

fn kind(side: &Side<'_>) -> &'static str {
    match side.stat.map(|stat| (stat.kind(), stat.size)) {
        Some((0o040_000, _)) => "directory",
        Some((0o120_000, _)) => "symbolic link",
        Some((0o010_000, _)) => "fifo",
        Some((0o020_000, _)) => "character special file",
        Some((0o100_000, 0)) => "regular empty file",
        _ => "regular file",
    }
}

fn content(side: &Side<'_>) -> Result<Vec<u8>, Errno> {
    match (side.stat, side.path) {
        (None, _) => Ok(Vec::new()),
        (_, b"-") => files::read_fd(0),
        (_, path) => std::fs::read(files::path(path)).map_err(Errno::from),
    }
}

fn number(text: &[u8]) -> Result<usize, i32> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| TOOL.wrong(format_args!("invalid context length {}", quote::plain_word(text))))
}

fn pattern(text: &[u8]) -> Result<Regex, i32> {
    Regex::new(text, &wardian_regex::Options::new(Syntax::Basic)).map_err(|error| {
        complain("diff", format_args!("{}: {error}", String::from_utf8_lossy(text)));
        2
    })
}
