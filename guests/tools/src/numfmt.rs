//! `numfmt`: numbers to and from what people read.

use crate::extended::{Extended, ZERO};
use std::cmp::Ordering;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::records::Records;
use toolkit::{Arguments, complain, count, quote};

const TOOL: Tool = Tool {
    name: "numfmt",
    short: "d:z",
    long: &[
        ("from=", 'f'),
        ("from-unit=", 'F'),
        ("to=", 't'),
        ("to-unit=", 'T'),
        ("round=", 'r'),
        ("padding=", 'p'),
        ("suffix=", 's'),
        ("grouping", 'g'),
        ("delimiter=", 'd'),
        ("field=", 'e'),
        ("debug", 'D'),
        ("header[=", 'h'),
        ("format=", 'm'),
        ("invalid=", 'i'),
        ("zero-terminated", 'z'),
    ],
    help: "\
Usage: numfmt [OPTION]... [NUMBER]...
Convert each NUMBER, or those on standard input, from and to numbers with a
suffix.

      --debug            warn about what may be wrong
  -d, --delimiter=X      fields are separated by X, not by blanks
      --field=FIELDS     convert these fields (1), as for cut -f
      --format=FORMAT    print by FORMAT, as %f of printf with width, precision,
                         ' and a leading 0; see --padding and --grouping
      --from=UNIT        read numbers with the suffixes of UNIT; see below
      --from-unit=N      an input of 1 stands for N
      --grouping         group digits, as the locale has it
      --header[=N]       print the first N lines (1) as they are
      --invalid=MODE     after what is no number abort, fail, warn or ignore
      --padding=N        fill up to N characters on the left; -N on the right
      --round=METHOD     round up, down, from-zero (default), towards-zero, nearest
      --suffix=SUFFIX    print SUFFIX after numbers, and accept it in the input
      --to=UNIT          print numbers with the suffixes of UNIT; see below
      --to-unit=N        print N as 1
  -z, --zero-terminated  lines end in NUL
      --help             display this help and exit
      --version          output version information and exit

UNIT is
  none   no suffixes: they are an error
  auto   K is 1000, Ki is 1024, and so on (only --from)
  si     K is 1000, M is 1000000, ...
  iec    K is 1024, M is 1048576, ...
  iec-i  Ki is 1024, Mi is 1048576, ...
",
    misuse: 1,
};

#[derive(Clone, Copy, PartialEq)]
enum Scale {
    None,
    Auto,
    Si,
    Iec,
    IecI,
}

#[derive(Clone, Copy, PartialEq)]
enum Round {
    Up,
    Down,
    FromZero,
    TowardsZero,
    Nearest,
}

#[derive(Clone, Copy, PartialEq)]
enum Invalid {
    Abort,
    Fail,
    Warn,
    Ignore,
}

/// What a number is made of: the digits that can be told apart, and those that are read at all.
const SURE_DIGITS: usize = 18;
const MOST_DIGITS: usize = 27;
const SUFFIXES: &[u8] = b"KMGTPEZY";
/// The exit code after numbers that were none.
const NOT_CONVERTED: i32 = 2;

struct Numfmt {
    from: Scale,
    to: Scale,
    from_unit: u64,
    to_unit: u64,
    round: Round,
    invalid: Invalid,
    suffix: Vec<u8>,
    delimiter: Option<u8>,
    fields: Fields,
    line_end: u8,
    header: u64,
    is_grouping: bool,
    is_debugging: bool,
    format: Option<Format>,
    padding: Padding,
    /// Fields keep their width.
    pads_itself: bool,
    precision: Option<usize>,
    out: Out,
}

#[derive(Clone, Copy, Default)]
struct Padding {
    width: usize,
    is_left: bool,
    zeros: usize,
}

/// The text around a number.
struct Format {
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Why a text is no number.
enum Wrong {
    TooLarge,
    NoNumber,
    Forbidden,
    Suffix,
    MissingI,
    /// Something follows the suffix.
    After(Vec<u8>),
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let (mut numfmt, operands) = prepare(arguments)?;
    let mut all = true;
    if operands.is_empty() {
        all = numfmt.convert_input()?;
    } else {
        if numfmt.is_debugging && numfmt.header > 0 {
            complain("numfmt", "--header ignored with command-line input");
        }
        for operand in operands {
            all &= numfmt.convert_line(&operand, true)?;
        }
    }
    numfmt.out.flush();
    if !all && numfmt.is_debugging {
        complain("numfmt", "failed to convert some of the input numbers");
    }
    let fails = !all && matches!(numfmt.invalid, Invalid::Abort | Invalid::Fail);
    Ok(if fails { NOT_CONVERTED } else { 0 })
}

fn prepare(arguments: Vec<Vec<u8>>) -> Result<(Numfmt, Vec<Vec<u8>>), i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut numfmt = Numfmt {
        from: Scale::None,
        to: Scale::None,
        from_unit: 1,
        to_unit: 1,
        round: Round::FromZero,
        invalid: Invalid::Abort,
        suffix: Vec::new(),
        delimiter: None,
        fields: Fields(Vec::new()),
        line_end: b'\n',
        header: 0,
        is_grouping: false,
        is_debugging: false,
        format: None,
        padding: Padding::default(),
        pads_itself: false,
        precision: None,
        out: Out::new("numfmt"),
    };
    let (mut format, mut has_fields) = (None, false);
    for (letter, text) in parsed.options {
        if letter == 'e' && std::mem::replace(&mut has_fields, true) {
            return Err(refuse("multiple field specifications".into()));
        }
        match letter {
            'm' => format = text,
            letter => numfmt.set(letter, text)?,
        }
    }
    numfmt.settle(format)?;
    Ok((numfmt, parsed.operands))
}

fn refuse(message: String) -> i32 {
    complain("numfmt", message);
    1
}

const FROM: [(&str, Scale); 5] = [
    ("none", Scale::None),
    ("auto", Scale::Auto),
    ("si", Scale::Si),
    ("iec", Scale::Iec),
    ("iec-i", Scale::IecI),
];
const TO: [(&str, Scale); 4] =
    [("none", Scale::None), ("si", Scale::Si), ("iec", Scale::Iec), ("iec-i", Scale::IecI)];
const ROUND: [(&str, Round); 5] = [
    ("up", Round::Up),
    ("down", Round::Down),
    ("from-zero", Round::FromZero),
    ("towards-zero", Round::TowardsZero),
    ("nearest", Round::Nearest),
];
const INVALID: [(&str, Invalid); 4] = [
    ("abort", Invalid::Abort),
    ("fail", Invalid::Fail),
    ("warn", Invalid::Warn),
    ("ignore", Invalid::Ignore),
];

impl Numfmt {
    fn set(&mut self, letter: char, text: Option<Vec<u8>>) -> Result<(), i32> {
        let given = text.as_deref().unwrap_or_default();
        let shown = || quote::word(given);
        match letter {
            'f' => self.from = TOOL.choose("--from", given, &FROM)?,
            't' => self.to = TOOL.choose("--to", given, &TO)?,
            'F' => self.from_unit = unit(given)?,
            'T' => self.to_unit = unit(given)?,
            'r' => self.round = TOOL.choose("--round", given, &ROUND)?,
            'i' => self.invalid = TOOL.choose("--invalid", given, &INVALID)?,
            'g' => self.is_grouping = true,
            'p' => {
                let width =
                    std::str::from_utf8(given).ok().and_then(|text| text.trim_start().parse::<i64>().ok());
                let fits = |width: &i64| *width != 0 && width.unsigned_abs() <= WIDEST;
                let Some(width) = width.filter(fits) else {
                    return Err(refuse(format!("invalid padding value {}", shown())));
                };
                self.padding.is_left = width < 0;
                self.padding.width = width.unsigned_abs() as usize;
            }
            'e' => self.fields = Fields::parse(given).map_err(|message| TOOL.wrong(message))?,
            'd' if given.len() > 1 => {
                return Err(refuse("the delimiter must be a single character".into()));
            }
            'd' => self.delimiter = Some(given.first().copied().unwrap_or(0)),
            's' => self.suffix = given.to_vec(),
            'D' => self.is_debugging = true,
            'h' => {
                let lines = text.as_deref().map_or(Ok(1), |text| count::parse(text, 1..=u64::MAX, ""));
                self.header = lines.map_err(|_| refuse(format!("invalid header value {}", shown())))?;
            }
            _ => self.line_end = 0,
        }
        Ok(())
    }

    /// Looks at what goes together once all options are known.
    fn settle(&mut self, format: Option<Vec<u8>>) -> Result<(), i32> {
        if format.is_some() && self.is_grouping {
            return Err(refuse("--grouping cannot be combined with --format".into()));
        }
        let converts = self.from != Scale::None
            || self.to != Scale::None
            || self.is_grouping
            || self.padding.width > 0
            || format.is_some();
        if self.is_debugging && !converts {
            complain("numfmt", "no conversion option specified");
        }
        if let Some(format) = format {
            self.format = Some(self.parse_format(&format).map_err(refuse)?);
        }
        if self.is_grouping {
            if self.to != Scale::None {
                return Err(refuse("grouping cannot be combined with --to".into()));
            }
            if self.is_debugging {
                complain("numfmt", "grouping has no effect in this locale");
            }
        }
        self.pads_itself = self.padding.width == 0 && self.delimiter.is_none();
        Ok(())
    }

    /// `%f` with width and precision, and the text around it.
    fn parse_format(&mut self, text: &[u8]) -> Result<Format, String> {
        let shown = quote::word(text);
        let (mut at, mut before) = (0, 0);
        loop {
            match &text[at..] {
                [b'%', b'%', ..] => at += 2,
                [b'%', ..] => break,
                [] => return Err(format!("format {shown} has no % directive")),
                _ => at += 1,
            }
            before += 1;
        }
        at += 1;
        let mut zeros = false;
        while let Some(flag @ (b' ' | b'\'' | b'0')) = text.get(at) {
            self.is_grouping |= *flag == b'\'';
            zeros |= *flag == b'0';
            at += 1;
        }
        let (width, length) =
            signed_number(&text[at..]).ok_or_else(|| format!("invalid format {shown} (width overflow)"))?;
        at += length;
        if width.unsigned_abs() > WIDEST {
            return Err(format!("invalid format {shown} (width overflow)"));
        }
        if width != 0 {
            if self.is_debugging && self.padding.width > 0 && !(zeros && width > 0) {
                complain("numfmt", "--format padding overriding --padding");
            }
            let size = width.unsigned_abs() as usize;
            match (width < 0, zeros) {
                (true, _) => (self.padding.width, self.padding.is_left) = (size, true),
                (false, true) => self.padding.zeros = size,
                (false, false) => self.padding.width = size,
            }
        }
        if at == text.len() {
            return Err(format!("format {shown} ends in %"));
        }
        if text[at] == b'.' {
            at += 1;
            let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let is_wrong = matches!(text.get(at), Some(b'-' | b'+' | b' ' | b'\t'));
            let precision = count::parse(&text[at..at + digits], 0..=i64::MAX as u64, "");
            self.precision = match precision {
                _ if is_wrong => return Err(format!("invalid precision in format {shown}")),
                _ if digits == 0 => Some(0),
                Ok(precision) if precision <= WIDEST => Some(precision as usize),
                _ => return Err(format!("invalid precision in format {shown}")),
            };
            at += digits;
        }
        if text.get(at) != Some(&b'f') {
            return Err(format!("invalid format {shown}, directive must be %[0]['][-][N][.][N]f"));
        }
        let after = &text[at + 1..];
        let mut rest = after;
        while let Some(sign) = rest.iter().position(|&byte| byte == b'%') {
            if rest.get(sign + 1) != Some(&b'%') {
                return Err(format!("format {shown} has too many % directives"));
            }
            rest = &rest[sign + 2..];
        }
        // GNU's takes as many bytes of the text before as that has characters when `%%` is one.
        Ok(Format { before: text[..before].to_vec(), after: after.to_vec() })
    }

    fn convert_input(&mut self) -> Result<bool, i32> {
        let mut lines = Records::new(0, self.line_end);
        let (mut line, mut all, mut header) = (Vec::new(), true, self.header);
        loop {
            line.clear();
            match lines.next_into(&mut line) {
                Ok(true) => {}
                Ok(false) => return Ok(all),
                Err(error) => return Err(refuse(format!("error reading input: {error}"))),
            }
            if header > 0 {
                header -= 1;
                self.out.put(&line);
                continue;
            }
            let text = line.strip_suffix(&[self.line_end]);
            all &= self.convert_line(text.unwrap_or(&line), text.is_some())?;
        }
    }

    /// Converts the fields wanted; says whether all were numbers.
    fn convert_line(&mut self, line: &[u8], newline: bool) -> Result<bool, i32> {
        let (mut rest, mut number, mut all) = (line, 0, true);
        loop {
            number += 1;
            let end = self.field_end(rest);
            all &= self.convert_field(&rest[..end], number)?;
            let Some(after) = rest.get(end + 1..) else { break };
            self.out.put([self.delimiter.unwrap_or(b' ')]);
            rest = after;
        }
        if newline {
            self.out.put([self.line_end]);
        }
        Ok(all)
    }

    /// Where a field ends: blanks before it are part of it.
    fn field_end(&self, text: &[u8]) -> usize {
        let is_blank = |byte: &u8| b" \t\n".contains(byte);
        match self.delimiter {
            Some(delimiter) => text.iter().position(|&byte| byte == delimiter).unwrap_or(text.len()),
            None => {
                let start = text.iter().position(|byte| !is_blank(byte)).unwrap_or(text.len());
                text[start..].iter().position(is_blank).map_or(text.len(), |at| start + at)
            }
        }
    }

    fn convert_field(&mut self, field: &[u8], number: usize) -> Result<bool, i32> {
        if !self.fields.contains(number) {
            self.out.put(field);
            return Ok(true);
        }
        let text = match field.strip_suffix(self.suffix.as_slice()) {
            Some(rest) if !self.suffix.is_empty() && !rest.is_empty() => rest,
            _ => field,
        };
        let start = text.iter().position(|byte| !b" \t".contains(byte)).unwrap_or(text.len());
        if self.pads_itself {
            self.padding.width = if start > 0 || number > 1 { text.len() } else { 0 };
        }
        let converted = match self.value_of(&text[start..]) {
            Ok((value, precision)) => self.print(value, precision),
            Err(wrong) => Err(wrong.message(&text[start..])),
        };
        match converted {
            Ok(shown) => {
                let format = self.format.as_ref();
                self.out.put(format.map_or(b"".as_slice(), |format| &format.before));
                self.out.put(shown);
                self.out.put(format.map_or(b"".as_slice(), |format| &format.after));
                Ok(true)
            }
            Err(message) => {
                if self.invalid != Invalid::Ignore {
                    self.out.flush();
                    complain("numfmt", message);
                }
                if self.invalid == Invalid::Abort {
                    return Err(NOT_CONVERTED);
                }
                self.out.put(text);
                Ok(false)
            }
        }
    }

    /// A number and how many digits it has behind the point.
    fn value_of(&self, text: &[u8]) -> Result<(Extended, usize), Wrong> {
        let mut reader = Reader { rest: text, has_lost: false };
        let (mut value, mut precision) = reader.fraction()?;
        let mut base = if matches!(self.from, Scale::Iec | Scale::IecI) { 1024u64 } else { 1000 };
        let mut power = 0;
        if !reader.rest.is_empty() {
            let blanks = reader.rest.iter().take_while(|byte| b" \t".contains(byte)).count();
            reader.rest = &reader.rest[blanks..];
            let letter =
                reader.rest.first().and_then(|letter| SUFFIXES.iter().position(|other| other == letter));
            let letter = letter.ok_or(Wrong::Suffix)?;
            if self.from == Scale::None {
                return Err(Wrong::Forbidden);
            }
            (power, precision) = (letter + 1, 0);
            reader.rest = &reader.rest[1..];
            if self.from == Scale::Auto && reader.rest.first() == Some(&b'i') {
                base = 1024;
                reader.rest = &reader.rest[1..];
            }
        }
        if self.from == Scale::IecI {
            reader.rest = reader.rest.strip_prefix(b"i").ok_or(Wrong::MissingI)?;
        }
        for _ in 0..power {
            value = value.times(Extended::from(base));
        }
        if !reader.rest.is_empty() {
            return Err(Wrong::After(reader.rest.to_vec()));
        }
        if reader.has_lost && self.is_debugging {
            let shown = quote::word(text);
            complain("numfmt", format_args!("large input value {shown}: possible precision loss"));
        }
        if (self.from_unit, self.to_unit) != (1, 1) {
            value = value.times(Extended::from(self.from_unit)).over(Extended::from(self.to_unit));
        }
        Ok((value, precision))
    }

    fn print(&self, value: Extended, precision: usize) -> Result<Vec<u8>, String> {
        let precision = self.precision.unwrap_or(precision);
        let (_, digits) = normalized(value, 10);
        let shown = || {
            let sign = if value.is_negative() { "-" } else { "" };
            format!("{sign}{}", value.general(6, false))
        };
        if self.to == Scale::None && digits + precision > SURE_DIGITS {
            return Err(match precision {
                0 => format!("value too large to be printed: '{}' (consider using --to)", shown()),
                _ => format!(
                    "value/precision too large to be printed: '{}/{precision}' (consider using --to)",
                    shown()
                ),
            });
        }
        if digits > MOST_DIGITS - 1 {
            return Err(format!(
                "value too large to be printed: '{}' (cannot handle values > 999Y)",
                shown()
            ));
        }
        let mut text = self.scaled(value, precision);
        text.extend_from_slice(&self.suffix);
        let missing = self.padding.width.saturating_sub(text.len());
        let blanks = std::iter::repeat_n(b' ', missing);
        match self.padding.is_left {
            true => text.extend(blanks),
            false => drop(text.splice(..0, blanks)),
        }
        Ok(text)
    }

    /// A number with its suffix.
    fn scaled(&self, value: Extended, precision: usize) -> Vec<u8> {
        if self.to == Scale::None {
            let rounded = self.rounded(value, precision);
            return self.digits(rounded, precision).into_bytes();
        }
        let base = if self.to == Scale::Si { 1000 } else { 1024 };
        let ten = Extended::from(10);
        let (mut value, mut power) = normalized(value, base);
        let adjust = match self.precision {
            Some(precision) => precision.min(power * 3),
            None => usize::from(value.absolute().compare(ten) == Ordering::Less),
        };
        value = self.rounded(value, adjust);
        // What was rounded up may need the next suffix.
        if value.absolute().compare(Extended::from(base)) != Ordering::Less {
            value = value.over(Extended::from(base));
            power += 1;
        }
        let is_small = !value.is_zero() && value.absolute().compare(ten) == Ordering::Less && power > 0;
        let mut text = self.digits(value, self.precision.unwrap_or(usize::from(is_small))).into_bytes();
        if power > 0 {
            text.push(SUFFIXES.get(power - 1).copied().unwrap_or(b'?'));
            if self.to == Scale::IecI {
                text.push(b'i');
            }
        }
        text
    }

    fn digits(&self, value: Extended, precision: usize) -> String {
        let sign = if value.has_minus() { "-" } else { "" };
        let digits = value.fixed(precision);
        let missing = self.padding.zeros.saturating_sub(sign.len() + digits.len());
        format!("{sign}{}{digits}", "0".repeat(missing))
    }

    /// Rounds to so many digits behind the point.
    fn rounded(&self, value: Extended, digits: usize) -> Extended {
        let power = power_of_ten(digits);
        self.to_whole(value.times(power)).over(power)
    }

    fn to_whole(&self, value: Extended) -> Extended {
        let one = if value.is_negative() { Extended::from(1).opposite() } else { Extended::from(1) };
        let (whole, is_exact) = value.whole();
        let away = match self.round {
            Round::Nearest => return value.plus(one.over(Extended::from(2))).whole().0,
            Round::Up => !value.is_negative(),
            Round::Down => value.is_negative(),
            Round::FromZero => true,
            Round::TowardsZero => false,
        };
        if !is_exact && away { whole.plus(one) } else { whole }
    }
}

/// No more than this, whatever is asked for.
const WIDEST: u64 = toolkit::pad::WIDEST as u64;

fn unit(text: &[u8]) -> Result<u64, i32> {
    let refuse = || refuse(format!("invalid unit size: {}", quote::word(text)));
    // `Ki` is 1024, where `K` is 1000.
    let (digits, base) = match text {
        [digits @ .., letter, b'i'] if SUFFIXES.contains(letter) => (&text[..digits.len() + 1], 1024u64),
        _ => (text, 1000),
    };
    let (digits, power) = match digits {
        [digits @ .., letter] if SUFFIXES.contains(letter) => {
            (digits, SUFFIXES.iter().position(|other| other == letter).map_or(0, |at| at as u32 + 1))
        }
        digits => (digits, 0),
    };
    let number = if digits.is_empty() && power > 0 { Ok(1) } else { count::parse(digits, 1..=u64::MAX, "") };
    let number = number.map_err(|_| refuse())?;
    base.checked_pow(power).and_then(|unit| number.checked_mul(unit)).ok_or_else(refuse)
}

/// A number with a sign, zero if there is none, and its length; nothing if it is too large.
fn signed_number(text: &[u8]) -> Option<(i64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return Some((0, 0));
    }
    let number: i64 = std::str::from_utf8(&text[..sign + digits]).ok()?.parse().ok()?;
    Some((number, sign + digits))
}

fn power_of_ten(power: usize) -> Extended {
    (0..power).fold(Extended::from(1), |value, _| value.times(Extended::from(10)))
}

/// A number divided by a base until it is less than that, and how often it was.
fn normalized(mut value: Extended, base: u64) -> (Extended, usize) {
    let base = Extended::from(base);
    let mut power = 0;
    while value.is_finite() && value.absolute().compare(base) != Ordering::Less {
        value = value.over(base);
        power += 1;
    }
    (value, power)
}

/// Reads the digits of a number.
struct Reader<'a> {
    rest: &'a [u8],
    /// There were more digits than can be told apart.
    has_lost: bool,
}

impl Reader<'_> {
    /// A number with or without a fraction, and how many digits that has.
    fn fraction(&mut self) -> Result<(Extended, usize), Wrong> {
        let is_negative = self.rest.starts_with(b"-");
        let value = self.whole()?;
        let Some(rest) = self.rest.strip_prefix(b".") else { return Ok((value, 0)) };
        self.rest = rest;
        if rest.starts_with(b"-") {
            return Err(Wrong::NoNumber);
        }
        let fraction = self.whole()?;
        let digits = rest.len() - self.rest.len();
        let fraction = fraction.over(power_of_ten(digits));
        Ok((if is_negative { value.minus(fraction) } else { value.plus(fraction) }, digits))
    }

    fn whole(&mut self) -> Result<Extended, Wrong> {
        let is_negative = self.rest.starts_with(b"-");
        self.rest = self.rest.strip_prefix(b"-").unwrap_or(self.rest);
        let (mut value, mut digits, mut found) = (ZERO, 0, false);
        while let [digit @ b'0'..=b'9', after @ ..] = self.rest {
            (found, self.rest) = (true, after);
            digits += usize::from(digits > 0 || *digit != b'0');
            self.has_lost |= digits > SURE_DIGITS;
            if digits > MOST_DIGITS {
                return Err(Wrong::TooLarge);
            }
            value = value.times(Extended::from(10)).plus(Extended::from(u64::from(digit - b'0')));
        }
        if !found && !self.rest.starts_with(b".") {
            return Err(Wrong::NoNumber);
        }
        Ok(if is_negative { value.opposite() } else { value })
    }
}

impl Wrong {
    fn message(&self, text: &[u8]) -> String {
        let shown = quote::word(text);
        match self {
            Wrong::TooLarge => format!("value too large to be converted: {shown}"),
            Wrong::NoNumber => format!("invalid number: {shown}"),
            Wrong::Forbidden => format!("rejecting suffix in input: {shown} (consider using --from)"),
            Wrong::Suffix => format!("invalid suffix in input: {shown}"),
            Wrong::MissingI => format!("missing 'i' suffix in input: {shown} (e.g Ki/Mi/Gi)"),
            Wrong::After(rest) => format!("invalid suffix in input {shown}: {}", quote::word(rest)),
        }
    }
}

/// Ranges of fields; none are the first alone.
struct Fields(Vec<(usize, usize)>);

impl Fields {
    fn parse(text: &[u8]) -> Result<Fields, String> {
        if text == b"-" {
            return Ok(Fields(vec![(1, usize::MAX)]));
        }
        let mut ranges = Vec::new();
        for item in text.split(|byte| b", \t".contains(byte)) {
            let bound = |text: &[u8], missing: usize| match text {
                [] => Ok(missing),
                digits if digits.iter().all(u8::is_ascii_digit) => {
                    match count::parse(digits, 1..=u64::MAX - 1, "") {
                        Ok(number) => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
                        Err(count::Wrong::TooLarge) => {
                            Err(format!("field number {} is too large", quote::word(digits)))
                        }
                        Err(_) => Err("fields are numbered from 1".into()),
                    }
                }
                other => {
                    let from = other.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(0);
                    Err(format!("invalid field value {}", quote::word(&other[from..])))
                }
            };
            let range = match item.iter().position(|&byte| byte == b'-') {
                None if item.is_empty() => return Err("fields are numbered from 1".into()),
                None => {
                    let only = bound(item, 0)?;
                    (only, only)
                }
                Some(_) if item == b"-" => (1, usize::MAX),
                Some(dash) if item[dash + 1..].contains(&b'-') => return Err("invalid field range".into()),
                Some(dash) => (bound(&item[..dash], 1)?, bound(&item[dash + 1..], usize::MAX)?),
            };
            if range.0 > range.1 {
                return Err("invalid decreasing range".into());
            }
            ranges.push(range);
        }
        Ok(Fields(ranges))
    }

    fn contains(&self, number: usize) -> bool {
        match self.0.as_slice() {
            [] => number == 1,
            ranges => ranges.iter().any(|(first, last)| (*first..=*last).contains(&number)),
        }
    }
}
