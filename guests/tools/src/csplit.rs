//! `csplit`: cuts a file where its lines say.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::records::Records;
use toolkit::{Arguments, complain, count, files, quote};
use wardian_abi::Errno;
use wardian_regex::{Options, Regex, Syntax};

const TOOL: Tool = Tool {
    name: "csplit",
    short: "f:b:kn:sqz",
    long: &[
        ("digits=", 'n'),
        ("quiet", 'q'),
        ("silent", 's'),
        ("keep-files", 'k'),
        ("elide-empty-files", 'z'),
        ("prefix=", 'f'),
        ("suffix-format=", 'b'),
        ("suppress-matched", 'm'),
    ],
    help: "\
Usage: csplit [OPTION]... FILE PATTERN...
Cut FILE at the PATTERNs into the files xx00, xx01, ... and print how many bytes
each has. When FILE is -, read standard input.

  -b, --suffix-format=FORMAT  number the files by printf's FORMAT, not %02d
  -f, --prefix=PREFIX         begin their names with PREFIX, not xx
  -k, --keep-files            keep them after an error
      --suppress-matched      leave out the lines that match
  -n, --digits=N              N digits, not 2
  -s, -q, --quiet, --silent   do not print sizes
  -z, --elide-empty-files     make no empty files
      --help                  display this help and exit
      --version               output version information and exit

A PATTERN is
  N            up to, not including, line N
  /REGEX/[OFFSET]  up to, not including, a line that matches
  %REGEX%[OFFSET]  the same, and write none of it
  {N}          repeat the pattern before N times
  {*}          repeat it as often as it matches
OFFSET is + or - and a number of lines.
",
    misuse: 1,
};

/// Where a piece ends.
enum Place {
    Line(u64),
    /// Beside a line that matches; what comes before it may be left out.
    Match {
        regex: Regex,
        offset: i64,
        skips: bool,
    },
}

struct Pattern {
    place: Place,
    /// As it was written.
    text: Vec<u8>,
    /// How often it is used once more; `None` for as often as it matches.
    repeats: Option<u64>,
}

/// What ends the work before all patterns were used.
enum Stop {
    /// There is no more to be cut.
    Done,
    Failed,
    /// As failed, but the files made so far stay.
    Died,
}

struct Csplit {
    lines: Lines,
    names: Names,
    keeps: bool,
    is_quiet: bool,
    skips_empty: bool,
    leaves_out_matches: bool,
    /// The line last looked at.
    current: u64,
    /// How many files there are.
    created: u64,
    piece: Option<Piece>,
    out: Out,
}

struct Piece {
    file: BufWriter<File>,
    name: Vec<u8>,
    size: u64,
}

struct Names {
    prefix: Vec<u8>,
    format: Format,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let (mut keeps, mut is_quiet, mut skips_empty, mut leaves_out_matches) = (false, false, false, false);
    let (mut prefix, mut digits, mut format) = (b"xx".to_vec(), 2, None);
    for (letter, text) in parsed.options {
        let given = text.unwrap_or_default();
        match letter {
            'b' => format = Some(Format::parse(&given).map_err(refuse)?),
            'f' => prefix = given,
            'k' => keeps = true,
            'n' => digits = digits_in(&given).map_err(refuse)?,
            'z' => skips_empty = true,
            'm' => leaves_out_matches = true,
            _ => is_quiet = true,
        }
    }
    let (name, patterns) = match parsed.operands.as_slice() {
        [] => return Err(TOOL.wrong("missing operand")),
        [only] => return Err(TOOL.wrong(format_args!("missing operand after {}", quote::word(only)))),
        [name, patterns @ ..] => (name, parse_patterns(patterns).map_err(refuse)?),
    };
    let records = Records::open(name, b'\n')
        .map_err(|error| refuse(format!("cannot open {} for reading: {error}", quote::always(name))))?;
    let mut csplit = Csplit {
        lines: Lines { records, held: VecDeque::new(), first: 1 },
        names: Names { prefix, format: format.unwrap_or_else(|| Format::digits(digits)) },
        keeps,
        is_quiet,
        skips_empty,
        leaves_out_matches,
        current: 0,
        created: 0,
        piece: None,
        out: Out::new("csplit"),
    };
    match csplit.cut(&patterns) {
        Ok(()) | Err(Stop::Done) => Ok(0),
        Err(Stop::Failed) => {
            csplit.clean_up();
            Ok(1)
        }
        Err(Stop::Died) => Ok(1),
    }
}

fn refuse(message: String) -> i32 {
    complain("csplit", message);
    1
}

fn digits_in(text: &[u8]) -> Result<usize, String> {
    let what = "invalid number";
    if let [b'-', rest @ ..] = text
        && count::parse(rest, 1..=u64::MAX, "").is_ok()
    {
        return Err(format!("{what}: {}: Numerical result out of range", quote::word(text)));
    }
    // No name is longer, whatever is asked for.
    count::or_complaint(what, text, 0..=i32::MAX as u64, "").map(|digits| digits.min(4096) as usize)
}

fn parse_patterns(words: &[Vec<u8>]) -> Result<Vec<Pattern>, String> {
    let (mut patterns, mut last_line) = (Vec::new(), 0);
    let mut words = words.iter().peekable();
    while let Some(text) = words.next() {
        let place = match text.first() {
            Some(b'/' | b'%') => parse_match(text)?,
            _ => Place::Line(parse_line(text, &mut last_line)?),
        };
        let mut repeats = Some(0);
        if let Some(word) = words.next_if(|word| word.starts_with(b"{")) {
            repeats = parse_repeats(word)?;
        }
        patterns.push(Pattern { place, text: text.clone(), repeats });
    }
    Ok(patterns)
}

fn parse_match(text: &[u8]) -> Result<Place, String> {
    let mark = text[0];
    let end = text.iter().rposition(|&byte| byte == mark).filter(|end| *end > 0).ok_or_else(|| {
        format!("{}: closing delimiter '{}' missing", quote::if_needed(text), char::from(mark))
    })?;
    let regex = Regex::new(&text[1..end], &Options::new(Syntax::Basic))
        .map_err(|error| format!("{}: invalid regular expression: {error}", quote::word(text)))?;
    let offset = match &text[end + 1..] {
        [] => 0,
        offset => std::str::from_utf8(offset)
            .ok()
            .and_then(|offset| offset.parse().ok())
            .ok_or_else(|| format!("{}: integer expected after delimiter", quote::word(text)))?,
    };
    Ok(Place::Match { regex, offset, skips: mark == b'%' })
}

fn parse_line(text: &[u8], last: &mut u64) -> Result<u64, String> {
    let shown = quote::word(text);
    let line = count::parse(text, 0..=u64::MAX, "").map_err(|_| format!("{shown}: invalid pattern"))?;
    if line == 0 {
        return Err(format!("{}: line number must be greater than zero", quote::if_needed(text)));
    }
    if line < *last {
        return Err(format!("line number {shown} is smaller than preceding line number, {last}"));
    }
    if line == *last {
        complain("csplit", format_args!("warning: line number {shown} is the same as preceding line number"));
    }
    *last = line;
    Ok(line)
}

fn parse_repeats(word: &[u8]) -> Result<Option<u64>, String> {
    let Some(inside) = word[1..].strip_suffix(b"}") else {
        return Err(format!("{}: '}}' is required in repeat count", quote::word(word)));
    };
    match inside {
        b"*" => Ok(None),
        number => count::parse(number, 0..=u64::MAX, "").map(Some).map_err(|_| {
            let shown = quote::word(&word[..word.len() - 1]);
            format!("{shown}}}: integer required between '{{' and '}}'")
        }),
    }
}

impl Csplit {
    fn cut(&mut self, patterns: &[Pattern]) -> Result<(), Stop> {
        for pattern in patterns {
            let mut repetition = 0;
            while pattern.repeats.is_none_or(|repeats| repetition <= repeats) {
                match &pattern.place {
                    Place::Line(line) => self.cut_at_line(*line, repetition)?,
                    Place::Match { regex, offset, skips } => {
                        self.cut_at_match(pattern, regex, *offset, *skips, repetition)?;
                    }
                }
                repetition += 1;
            }
        }
        self.create()?;
        self.write_rest()?;
        self.close()
    }

    fn cut_at_line(&mut self, line: u64, repetition: u64) -> Result<(), Stop> {
        self.create()?;
        let out_of_range = || {
            let text = line.to_string();
            complain_late(format!("{}: line number out of range", quote::word(text.as_bytes())), repetition);
            Stop::Failed
        };
        if self.leaves_out_matches && !self.has_more()? {
            return Err(out_of_range());
        }
        let end = line.saturating_mul(repetition + 1);
        let mut next = self.first_line()?;
        while next < end {
            let text = self.take_line()?.ok_or_else(out_of_range)?;
            self.write(&text)?;
            next += 1;
        }
        self.close()?;
        if self.leaves_out_matches {
            self.take_line()?;
        } else if !self.has_more()? {
            return Err(out_of_range());
        }
        Ok(())
    }

    fn cut_at_match(
        &mut self,
        pattern: &Pattern,
        regex: &Regex,
        offset: i64,
        skips: bool,
        repetition: u64,
    ) -> Result<(), Stop> {
        if !skips {
            self.create()?;
        }
        loop {
            self.current += 1;
            let is_match = |line: &[u8]| regex.find_at(line.strip_suffix(b"\n").unwrap_or(line), 0).is_some();
            match self.lines.get(self.current).map(|line| line.map(is_match)) {
                Ok(Some(true)) => break,
                Ok(Some(false)) => {}
                Ok(None) => return Err(self.end_without_match(pattern, skips, repetition)?),
                Err(error) => return Err(self.read_error(error)),
            }
            // A cut before the match may want these lines yet.
            if offset >= 0
                && let Some(line) = self.take_line()?
                && !skips
            {
                self.write(&line)?;
            }
        }
        let end = self.current.checked_add_signed(offset).unwrap_or(0);
        self.write_up_to(end, skips, pattern)?;
        if !skips {
            self.close()?;
        }
        if offset > 0 {
            self.current = end;
        }
        if self.leaves_out_matches {
            self.take_line()?;
        }
        Ok(())
    }

    /// No line matches any more: an error, or the end of a pattern that was to be repeated until then.
    fn end_without_match(&mut self, pattern: &Pattern, skips: bool, repetition: u64) -> Result<Stop, Stop> {
        if pattern.repeats.is_some() {
            complain_late(format!("{}: match not found", quote::word(&pattern.text)), repetition);
        }
        if !skips {
            self.write_rest()?;
            self.close()?;
        }
        Ok(if pattern.repeats.is_some() { Stop::Failed } else { Stop::Done })
    }

    /// Takes the lines before one, and writes them unless they are to be left out.
    fn write_up_to(&mut self, end: u64, skips: bool, pattern: &Pattern) -> Result<(), Stop> {
        let mut next = self.first_line()?;
        let message = format!("{}: line number out of range", quote::word(&pattern.text));
        if next > end {
            return Err(self.fail(message));
        }
        while next < end {
            let Some(line) = self.take_line()? else { return Err(self.fail(message)) };
            if !skips {
                self.write(&line)?;
            }
            next += 1;
        }
        Ok(())
    }

    fn write_rest(&mut self) -> Result<(), Stop> {
        while let Some(line) = self.take_line()? {
            self.write(&line)?;
        }
        Ok(())
    }

    fn has_more(&mut self) -> Result<bool, Stop> {
        let first = self.lines.first;
        let line = self.lines.get(first).map(|line| line.is_some());
        line.map_err(|error| self.read_error(error))
    }

    /// The number of the first line that was not yet taken.
    fn first_line(&mut self) -> Result<u64, Stop> {
        match self.has_more()? {
            true => Ok(self.lines.first),
            false => {
                self.fail("input disappeared".into());
                Err(Stop::Died)
            }
        }
    }

    fn take_line(&mut self) -> Result<Option<Vec<u8>>, Stop> {
        if !self.has_more()? {
            return Ok(None);
        }
        self.current = self.current.max(self.lines.first);
        self.lines.first += 1;
        Ok(self.lines.held.pop_front())
    }

    /// Begins the next piece.
    fn create(&mut self) -> Result<(), Stop> {
        let name = self.names.name(self.created);
        match File::create(files::path(&name)) {
            Ok(file) => {
                self.created += 1;
                self.piece = Some(Piece { file: BufWriter::new(file), name, size: 0 });
                Ok(())
            }
            Err(error) => {
                let error = Errno::from(error);
                Err(self.fail(format!("{}: {error}", quote::if_needed(&name))))
            }
        }
    }

    fn write(&mut self, line: &[u8]) -> Result<(), Stop> {
        let Some(piece) = &mut self.piece else { return Ok(()) };
        piece.size += line.len() as u64;
        let written = piece.file.write_all(line);
        written.map_err(|error| self.write_error(error))
    }

    /// Ends a piece, and prints its size.
    fn close(&mut self) -> Result<(), Stop> {
        let Some(mut piece) = self.piece.take() else { return Ok(()) };
        if let Err(error) = piece.file.flush() {
            return Err(self.write_error(error));
        }
        if piece.size == 0 && self.skips_empty {
            let _ = std::fs::remove_file(files::path(&piece.name));
            self.created -= 1;
        } else if !self.is_quiet {
            self.out.put(format!("{}\n", piece.size));
        }
        Ok(())
    }

    fn read_error(&mut self, error: Errno) -> Stop {
        self.fail(format!("read error: {error}"))
    }

    fn write_error(&mut self, error: std::io::Error) -> Stop {
        let error = Errno::from(error);
        let name = self.piece.as_ref().map(|piece| quote::if_needed(&piece.name)).unwrap_or_default();
        self.fail(format!("write error for {name}: {error}"))
    }

    /// Says what is wrong, after what was printed.
    fn fail(&mut self, message: String) -> Stop {
        self.out.flush();
        complain("csplit", message);
        Stop::Failed
    }

    fn clean_up(&mut self) {
        // It has failed already.
        let _ = self.close();
        if self.keeps {
            return;
        }
        for number in 0..self.created {
            let _ = std::fs::remove_file(files::path(&self.names.name(number)));
        }
    }
}

/// Says what is wrong before what was printed, as GNU's does with these.
fn complain_late(message: String, repetition: u64) {
    match repetition {
        0 => complain("csplit", message),
        repetition => complain("csplit", format_args!("{message} on repetition {repetition}")),
    }
}

/// The lines of the input from the first that was not yet taken.
struct Lines {
    records: Records,
    held: VecDeque<Vec<u8>>,
    first: u64,
}

impl Lines {
    fn get(&mut self, number: u64) -> Result<Option<&[u8]>, Errno> {
        let Some(at) = number.checked_sub(self.first) else { return Ok(None) };
        while self.held.len() as u64 <= at {
            let mut line = Vec::new();
            if !self.records.next_into(&mut line)? {
                return Ok(None);
            }
            self.held.push_back(line);
        }
        Ok(self.held.get(at as usize).map(Vec::as_slice))
    }
}

impl Names {
    fn name(&self, number: u64) -> Vec<u8> {
        [self.prefix.as_slice(), &self.format.print(number)].concat()
    }
}

/// The one conversion of `-b`, and the text around it.
struct Format {
    before: Vec<u8>,
    after: Vec<u8>,
    left: bool,
    zeros: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    conversion: u8,
}

impl Format {
    fn digits(width: usize) -> Format {
        Format {
            before: Vec::new(),
            after: Vec::new(),
            left: false,
            zeros: true,
            alternate: false,
            width,
            precision: None,
            conversion: b'u',
        }
    }

    fn parse(text: &[u8]) -> Result<Format, String> {
        let (mut format, mut literal, mut rest) = (None, Vec::new(), text);
        while let [byte, after @ ..] = rest {
            rest = after;
            if *byte != b'%' {
                literal.push(*byte);
            } else if let [b'%', after @ ..] = rest {
                literal.push(b'%');
                rest = after;
            } else if format.is_some() {
                return Err("too many % conversion specifications in suffix".into());
            } else {
                let mut conversion = Format::conversion(&mut rest)?;
                conversion.before = std::mem::take(&mut literal);
                format = Some(conversion);
            }
        }
        let format = format.ok_or("missing % conversion specification in suffix")?;
        Ok(Format { after: literal, ..format })
    }

    /// What follows a `%`.
    fn conversion(rest: &mut &[u8]) -> Result<Format, String> {
        let mut format = Format { zeros: false, ..Format::digits(0) };
        let mut groups = false;
        while let [flag @ (b'-' | b'0' | b'\'' | b'#'), after @ ..] = *rest {
            match flag {
                b'-' => format.left = true,
                b'0' => format.zeros = true,
                b'#' => format.alternate = true,
                _ => groups = true,
            }
            *rest = after;
        }
        format.width = take_number(rest);
        if let [b'.', after @ ..] = *rest {
            *rest = after;
            format.precision = Some(take_number(rest));
        }
        let [conversion, after @ ..] = *rest else {
            return Err("missing conversion specifier in suffix".into());
        };
        let wrong_flag = match conversion {
            b'd' | b'i' | b'u' => format.alternate.then_some('#'),
            b'o' | b'x' | b'X' => groups.then_some('\''),
            byte if byte.is_ascii_graphic() || *byte == b' ' => {
                return Err(format!("invalid conversion specifier in suffix: {}", char::from(*byte)));
            }
            byte => return Err(format!("invalid conversion specifier in suffix: \\{byte:03o}")),
        };
        if let Some(flag) = wrong_flag {
            let conversion = char::from(*conversion);
            return Err(format!("invalid flags in conversion specification: %{flag}{conversion}"));
        }
        (format.conversion, *rest) = (*conversion, after);
        Ok(format)
    }

    fn print(&self, number: u64) -> Vec<u8> {
        let mut digits = match self.conversion {
            b'o' => format!("{number:o}"),
            b'x' => format!("{number:x}"),
            b'X' => format!("{number:X}"),
            _ if number == 0 && self.precision == Some(0) => String::new(),
            _ => number.to_string(),
        };
        if let Some(missing) = self.precision.and_then(|precision| precision.checked_sub(digits.len())) {
            digits.insert_str(0, &"0".repeat(missing));
        }
        let sign = match self.conversion {
            b'o' if self.alternate && !digits.starts_with('0') => "0",
            b'x' if self.alternate && number > 0 => "0x",
            b'X' if self.alternate && number > 0 => "0X",
            _ => "",
        };
        let missing = self.width.saturating_sub(sign.len() + digits.len());
        let number = if self.left {
            format!("{sign}{digits}{}", " ".repeat(missing))
        } else if self.zeros && self.precision.is_none() {
            format!("{sign}{}{digits}", "0".repeat(missing))
        } else {
            format!("{}{sign}{digits}", " ".repeat(missing))
        };
        [self.before.as_slice(), number.as_bytes(), &self.after].concat()
    }
}

/// Takes a number off the front, zero if there is none; no name is as long as the greatest of these.
fn take_number(rest: &mut &[u8]) -> usize {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, after) = rest.split_at(digits);
    *rest = after;
    number.iter().fold(0, |value, digit| (value * 10 + usize::from(digit - b'0')).min(4096))
}
