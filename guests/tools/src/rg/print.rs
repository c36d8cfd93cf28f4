//! What is said of a line, and of a file.

use super::json;
use super::options::{Mode, Options};
use super::walk::Target;
use crate::lines::{Position, Role, Sink, Verdict};
use memchr::memchr;
use std::time::Duration;
use toolkit::out::Out;
use wardian_abi as abi;
use wardian_regex::{Groups, Regex, char_len};

/// What was found in all files.
#[derive(Clone, Default)]
pub struct Totals {
    pub matches: u64,
    pub lines: u64,
    pub files_with_match: u64,
    pub files: u64,
    pub bytes_printed: u64,
    pub bytes_searched: u64,
    pub searching: Duration,
    /// A line was printed, of whatever file: the next file's stand apart.
    has_printed: bool,
}

const PATH: &str = "\x1b[35m";
const LINE: &str = "\x1b[32m";
const MATCH: &str = "\x1b[1m\x1b[31m";
const RESET: &str = "\x1b[0m";

/// Prints for one file.
pub struct Printer<'a> {
    pub options: &'a Options,
    regex: &'a Regex,
    pub target: &'a Target,
    with_name: bool,
    heading: bool,
    numbers: bool,
    pub out: &'a mut Out,
    totals: &'a mut Totals,
    /// What was found in this file.
    pub file: Totals,
    has_printed: bool,
    groups: Groups,
    /// Where the first zero byte is, and how many lines were selected before.
    zero: Option<(u64, u64)>,
    pub stopped_at_zero: bool,
    /// A line of JSON for each event.
    pub scratch: Vec<u8>,
}

impl<'a> Printer<'a> {
    pub fn new(
        options: &'a Options,
        regex: &'a Regex,
        target: &'a Target,
        with_name: bool,
        out: &'a mut Out,
        totals: &'a mut Totals,
    ) -> Printer<'a> {
        let is_terminal = abi::isatty(1);
        let prints_lines = options.mode == Mode::Lines;
        let heading = options.heading.unwrap_or(is_terminal) && !options.vimgrep && prints_lines && with_name;
        let is_only_stdin = target.path().is_none() && !with_name;
        let by_default = is_terminal && !is_only_stdin || options.column == Some(true);
        let numbers = options.line_numbers.unwrap_or(by_default);
        Printer {
            options,
            regex,
            target,
            with_name,
            heading,
            numbers,
            out,
            totals,
            file: Totals::default(),
            has_printed: false,
            groups: Groups::new(),
            zero: None,
            stopped_at_zero: false,
            scratch: Vec::new(),
        }
    }

    pub fn wants_numbers(&self) -> bool {
        self.numbers || self.options.mode == Mode::Json
    }

    pub fn put(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.file.bytes_printed += bytes.len() as u64;
        self.out.put(bytes);
    }

    fn painted(&mut self, color: &str, text: &[u8]) {
        if self.options.color {
            self.put(RESET);
            self.put(color);
            self.put(text);
            self.put(RESET);
        } else {
            self.put(text);
        }
    }

    /// The matches of a line that are worth something: from, to.
    pub fn matches_in(&self, line: &[u8]) -> Vec<(usize, usize)> {
        let mut matches = Vec::new();
        let mut at = 0;
        while at <= line.len()
            && let Some((from, to)) = self.regex.find_at(line, at)
        {
            matches.push((from, to));
            at = if from < to { to } else { to + line.get(to..).map_or(1, char_len) };
        }
        matches
    }

    /// What stands before a line: the separator tells a match from context.
    fn head(&mut self, position: Position, column: Option<usize>, separator: &[u8]) {
        if self.with_name && !self.heading {
            self.painted(PATH, self.target.shown());
            self.put(if self.options.null { b"\0" } else { separator });
        }
        if self.numbers {
            self.painted(LINE, position.number.to_string().as_bytes());
            self.put(separator);
        }
        if let Some(column) = column.filter(|_| self.options.column == Some(true)) {
            self.painted("", (column + 1).to_string().as_bytes());
            self.put(separator);
        }
        if self.options.byte_offset {
            self.painted("", position.offset.to_string().as_bytes());
            self.put(separator);
        }
    }

    /// Prints a selected line.
    fn selected(&mut self, line: &[u8], position: Position) {
        let options = self.options;
        let separator = &options.match_separator;
        let matches = if options.invert { Vec::new() } else { self.matches_if_needed(line) };
        let first = matches.first().map(|found| found.0);
        if options.only_matching && !options.invert {
            for bounds in &matches {
                let offset = position.offset + bounds.0 as u64;
                self.head(Position { offset, ..position }, Some(bounds.0), separator);
                let text = self.replaced(line, *bounds).unwrap_or_else(|| line[bounds.0..bounds.1].to_vec());
                self.painted(MATCH, &text);
                self.put([options.line_end]);
            }
        } else if options.vimgrep && !options.invert {
            for bounds in &matches {
                self.head(position, Some(bounds.0), separator);
                self.content(line, std::slice::from_ref(bounds), true);
            }
        } else {
            self.head(position, first, separator);
            self.content(line, &matches, true);
        }
    }

    /// Nobody looks for matches that are not shown.
    fn matches_if_needed(&self, line: &[u8]) -> Vec<(usize, usize)> {
        let options = self.options;
        let is_needed = options.color
            || options.column == Some(true)
            || options.only_matching
            || options.replacement.is_some()
            || options.vimgrep;
        if is_needed { self.matches_in(line) } else { Vec::new() }
    }

    /// What a match becomes, if it is to be replaced.
    fn replaced(&mut self, line: &[u8], (from, _): (usize, usize)) -> Option<Vec<u8>> {
        let template = self.options.replacement.as_ref()?;
        if !self.regex.captures_at(line, from, &mut self.groups) {
            return None;
        }
        Some(expand(template, line, &self.groups, self.regex))
    }

    /// The text of a line, its matches marked or replaced.
    fn content(&mut self, line: &[u8], matches: &[(usize, usize)], is_match: bool) {
        let options = self.options;
        let (mut text, mut marks) = (Vec::new(), Vec::new());
        let mut at = 0;
        for bounds in matches {
            text.extend_from_slice(&line[at..bounds.0]);
            let start = text.len();
            match self.replaced(line, *bounds) {
                Some(replacement) => text.extend(replacement),
                None => text.extend_from_slice(&line[bounds.0..bounds.1]),
            }
            marks.push((start, text.len()));
            at = bounds.1;
        }
        text.extend_from_slice(&line[at..]);
        let trimmed = match options.trim {
            true => text.iter().take_while(|byte| byte.is_ascii_whitespace()).count(),
            false => 0,
        };
        if options.max_columns > 0 && text.len() - trimmed + 1 > options.max_columns {
            self.omitted(&text[trimmed..], is_match);
        } else {
            self.marked(&text, &marks, trimmed);
        }
        self.put([options.line_end]);
    }

    fn omitted(&mut self, text: &[u8], is_match: bool) {
        if self.options.preview {
            let shown =
                String::from_utf8_lossy(&text[..self.options.max_columns.min(text.len())]).into_owned();
            self.put(shown);
            self.put(" [... omitted end of long line]");
        } else {
            self.put(if is_match { "[Omitted long matching line]" } else { "[Omitted long context line]" });
        }
    }

    fn marked(&mut self, text: &[u8], marks: &[(usize, usize)], trimmed: usize) {
        let mut at = trimmed;
        if self.options.color {
            for (from, to) in marks.iter().filter(|(from, to)| from < to && *from >= trimmed) {
                self.put(&text[at..*from]);
                self.painted(MATCH, &text[*from..*to]);
                at = *to;
            }
        }
        self.put(&text[at..]);
    }

    /// The name above the lines of a file, or what stands between two files' lines.
    fn open_file(&mut self) {
        let options = self.options;
        if self.heading {
            if self.totals.has_printed {
                self.put(b"\n");
            }
            self.painted(PATH, self.target.shown());
            self.put(if options.null { b"\0" } else { b"\n" });
        } else if self.totals.has_printed {
            self.separator();
        }
    }

    fn separator(&mut self) {
        let options = self.options;
        let has_context = options.before.unwrap_or(0) > 0 || options.after.unwrap_or(0) > 0;
        if let Some(separator) =
            options.context_separator.as_ref().filter(|_| has_context && !options.passthru)
        {
            self.put(separator);
            self.put(b"\n");
        }
    }

    /// Says of a file what there is to say; answers whether it has what is looked for.
    pub fn finish(mut self, lines: u64, elapsed: Duration) -> bool {
        let options = self.options;
        self.file.lines = self.file.lines.max(lines);
        self.file.searching = elapsed;
        let is_match = lines > 0;
        match options.mode {
            Mode::Lines => self.tell_binary(lines),
            Mode::Count => self.count(lines),
            Mode::CountMatches => self.count(self.file.matches),
            Mode::Matching if is_match => file_name(options, self.target.shown(), self.out),
            // What is not text may have a match behind what was looked at.
            Mode::NotMatching if !is_match && !self.stopped_at_zero => {
                file_name(options, self.target.shown(), self.out)
            }
            Mode::Json => json::end(&mut self, is_match),
            _ => {}
        }
        // Programs hear only of files that had something.
        if options.mode == Mode::Json && !is_match {
            return false;
        }
        let file = &self.file;
        let totals = &mut *self.totals;
        totals.matches += file.matches;
        totals.lines += file.lines;
        totals.files += 1;
        totals.files_with_match += u64::from(is_match);
        totals.bytes_printed += file.bytes_printed;
        totals.bytes_searched += file.bytes_searched;
        totals.searching += elapsed;
        totals.has_printed |= self.has_printed;
        if options.mode == Mode::NotMatching { !is_match } else { is_match }
    }

    fn count(&mut self, number: u64) {
        if number == 0 && !self.options.include_zero {
            return;
        }
        if self.with_name {
            self.painted(PATH, self.target.shown());
            self.put(if self.options.null { b"\0" } else { b":" });
        }
        self.put(number.to_string());
        self.put([self.options.line_end]);
        // Only lines count as printed.
        self.file.bytes_printed = 0;
    }

    fn tell_binary(&mut self, lines: u64) {
        let Some((offset, before)) = self.zero else { return };
        let message = if self.stopped_at_zero {
            if lines == 0 {
                return;
            }
            "WARNING: stopped searching binary file after match"
        } else if lines > before {
            "binary file matches"
        } else {
            return;
        };
        if self.with_name {
            self.painted(PATH, self.target.shown());
            self.put(b": ");
        }
        self.put(format!("{message} (found \"\\0\" byte around offset {offset})\n"));
    }

    /// Where a file that is not text was found to be so.
    pub fn zero_offset(&self) -> Option<u64> {
        self.zero.map(|(offset, _)| offset)
    }

    /// Whether lines are printed at all.
    fn prints_lines(&self) -> bool {
        matches!(self.options.mode, Mode::Lines | Mode::Json)
    }
}

impl Sink for Printer<'_> {
    fn look(&mut self, fresh: &mut [u8], offset: u64, selected: u64) -> Verdict {
        self.file.bytes_searched += fresh.len() as u64;
        let options = self.options;
        if options.text || options.line_end == 0 {
            return Verdict::GoOn;
        }
        let Some(at) = memchr(0, fresh) else { return Verdict::GoOn };
        if self.zero.is_none() {
            self.zero = Some((offset + at as u64, selected));
        }
        if !self.target.is_operand && !options.binary {
            self.stopped_at_zero = true;
            if offset > 0 {
                return Verdict::EndAt(at);
            }
            self.file.bytes_searched = 0;
            return Verdict::Forget;
        }
        fresh.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = options.line_end);
        if options.mode == Mode::Lines { Verdict::OnlyFirst } else { Verdict::GoOn }
    }

    fn line(&mut self, line: &[u8], position: Position, role: Role) -> bool {
        let options = self.options;
        if role == Role::Selected {
            self.file.lines += 1;
            if (options.stats || matches!(options.mode, Mode::CountMatches | Mode::Json)) && !options.invert {
                self.file.matches += self.matches_in(line).len() as u64;
            }
        }
        if !self.prints_lines() {
            return true;
        }
        if options.mode == Mode::Json {
            json::line(self, line, position, role);
            return true;
        }
        if !std::mem::replace(&mut self.has_printed, true) {
            self.open_file();
        }
        match role {
            Role::Selected => self.selected(line, position),
            Role::Context => {
                self.head(position, None, &options.field_separator);
                self.content(line, &[], false);
            }
        }
        if options.line_buffered {
            self.out.flush();
        }
        true
    }

    fn gap(&mut self) {
        if self.has_printed && self.options.mode == Mode::Lines {
            self.separator();
        }
    }
}

/// The name of a file on a line of its own.
pub fn file_name(options: &Options, name: &[u8], out: &mut Out) {
    if options.color {
        out.put(RESET);
        out.put(PATH);
    }
    out.put(name);
    if options.color {
        out.put(RESET);
    }
    out.put(if options.null { b"\0" } else { b"\n" });
}

/// A replacement with the groups in it: `$1`, `${name}`, `$$`.
fn expand(template: &[u8], text: &[u8], groups: &Groups, regex: &Regex) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < template.len() {
        if template[at] != b'$' {
            out.push(template[at]);
            at += 1;
            continue;
        }
        let rest = &template[at + 1..];
        let (name, length) = match rest {
            [b'$', ..] => {
                out.push(b'$');
                at += 2;
                continue;
            }
            [b'{', inside @ ..] => match memchr(b'}', inside) {
                Some(end) => (&inside[..end], end + 2),
                None => (&rest[..0], 0),
            },
            _ => {
                let length =
                    rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
                (&rest[..length], length)
            }
        };
        if name.is_empty() {
            out.push(b'$');
            at += 1;
            continue;
        }
        let name = String::from_utf8_lossy(name);
        let index = name.parse().ok().or_else(|| regex.group_named(&name));
        if let Some((from, to)) = index.and_then(|index: usize| groups.get(index).copied().flatten()) {
            out.extend_from_slice(&text[from..to]);
        }
        at += 1 + length;
    }
    out
}

/// `--stats`.
pub fn stats(totals: &Totals, elapsed: Duration, out: &mut Out) {
    out.put(format!(
        "\n{} matches\n{} matched lines\n{} files contained matches\n{} files searched\n{} bytes printed\n\
         {} bytes searched\n{:.6} seconds spent searching\n{:.6} seconds\n",
        totals.matches,
        totals.lines,
        totals.files_with_match,
        totals.files,
        totals.bytes_printed,
        totals.bytes_searched,
        totals.searching.as_secs_f64(),
        elapsed.as_secs_f64(),
    ));
}
