//! Times by a format: every conversion, flag and width that GNU's `date` has, or the C library's.

use crate::civil::{Civil, When, days_of};
use crate::zone::Zone;

/// The widest field that is put together in memory. Wider ones are refused: they are a mistake, and would fill it.
pub const WIDEST: usize = 1 << 24;

pub const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Says what is wrong with a format: a field that is too wide.
pub fn check(format: &[u8]) -> Result<(), String> {
    let mut rest = format;
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        let flags = rest[at + 1..].iter().take_while(|byte| b"-_0+^#".contains(byte)).count();
        let digits = &rest[at + 1 + flags..];
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let width = digits[..count]
            .iter()
            .fold(0usize, |width, digit| width.saturating_mul(10).saturating_add(usize::from(digit - b'0')));
        if width > WIDEST {
            let shown = String::from_utf8_lossy(&rest[at..at + 1 + flags + count]).into_owned();
            return Err(format!("format '{shown}': field is too wide"));
        }
        // `%%` is one sign, and begins nothing.
        rest = digits.get(count + 1..).unwrap_or_default();
    }
    Ok(())
}

/// Whose `strftime` it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// That of GNU's `date`, `ls` and `stat`: with nanoseconds, offsets with colons, and years of four digits.
    Gnu,
    /// That of the C library, which bash, awk and jq hand formats to.
    C,
}

/// A moment by a format, in a zone.
pub fn format(format: &[u8], when: When, zone: &Zone, dialect: Dialect) -> Vec<u8> {
    let local = zone.at(when.seconds);
    let civil = Civil::at(when.seconds.saturating_add(local.offset));
    let (weekday, day_of_year) = (civil.weekday(), civil.day_of_year());
    Fields { when, civil, weekday, day_of_year, offset: local.offset, zone: local.name }
        .format(format, dialect)
}

/// What stands between `%` and the letter.
#[derive(Clone, Copy, Default)]
struct Spec {
    pad: Option<u8>,
    upper: bool,
    swap: bool,
    width: Option<usize>,
    colons: usize,
}

/// A moment taken apart. The parts need not fit each other: who has them from elsewhere gets them as they are.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    pub when: When,
    pub civil: Civil,
    /// From 0 for Sunday.
    pub weekday: i64,
    /// From 1 for the first of January.
    pub day_of_year: i64,
    /// Seconds east of Greenwich.
    pub offset: i64,
    /// What the zone is called.
    pub zone: &'a str,
}

impl Fields<'_> {
    /// By a format.
    pub fn format(&self, format: &[u8], dialect: Dialect) -> Vec<u8> {
        let mut out = Vec::new();
        Writer { fields: self, dialect }.write(format, &mut out, false);
        out
    }
}

struct Writer<'a> {
    fields: &'a Fields<'a>,
    dialect: Dialect,
}

/// A name of a list; what is none of it shows as a question mark.
fn named(names: &'static [&'static str], number: i64) -> &'static str {
    usize::try_from(number).ok().and_then(|number| names.get(number)).copied().unwrap_or("?")
}

fn short(name: &str) -> &str {
    name.get(..3).unwrap_or(name)
}

impl Writer<'_> {
    /// How many digits of a year are filled up with zeros.
    fn digits(&self, digits: usize) -> usize {
        if self.dialect == Dialect::C { 1 } else { digits }
    }

    fn write(&self, format: &[u8], out: &mut Vec<u8>, upper: bool) {
        let mut rest = format;
        while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
            out.extend_from_slice(&rest[..at]);
            let directive = &rest[at..];
            let length = self.directive(directive, out, upper).unwrap_or_else(|| {
                // What is none stands for itself.
                let length = unknown_length(directive);
                out.extend_from_slice(&directive[..length]);
                length
            });
            rest = &directive[length..];
        }
        out.extend_from_slice(rest);
    }

    /// Writes what a directive stands for; answers its length.
    fn directive(&self, text: &[u8], out: &mut Vec<u8>, upper: bool) -> Option<usize> {
        let (mut spec, mut at) = (Spec { upper, ..Spec::default() }, 1);
        while let Some(flag) = text.get(at) {
            match flag {
                b'+' if self.dialect == Dialect::C => break,
                b'-' | b'_' | b'0' | b'+' => spec.pad = Some(*flag),
                b'^' => spec.upper = true,
                b'#' => spec.swap = true,
                _ => break,
            }
            at += 1;
        }
        while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
            let width = spec.width.unwrap_or(0).saturating_mul(10).saturating_add(usize::from(digit - b'0'));
            spec.width = Some(width.min(WIDEST));
            at += 1;
        }
        if matches!(text.get(at), Some(b'E' | b'O')) {
            at += 1;
        }
        while text.get(at) == Some(&b':') {
            spec.colons += 1;
            at += 1;
        }
        let letter = *text.get(at)?;
        let unknown = self.dialect == Dialect::C && (spec.colons > 0 || matches!(letter, b'N' | b'q'));
        if unknown || spec.colons > 0 && letter != b'z' {
            return None;
        }
        self.conversion(letter, spec, out)?;
        Some(at + 1)
    }

    fn conversion(&self, letter: u8, spec: Spec, out: &mut Vec<u8>) -> Option<()> {
        let civil = &self.fields.civil;
        let twelve = (civil.hour + 11) % 12 + 1;
        match letter {
            b'%' => text(b"%", spec, out),
            b'n' => text(b"\n", spec, out),
            b't' => text(b"\t", spec, out),
            b'a' => name(short(named(&DAYS, self.fields.weekday)), spec, out),
            b'A' => name(named(&DAYS, self.fields.weekday), spec, out),
            b'b' | b'h' => name(short(named(&MONTHS, civil.month - 1)), spec, out),
            b'B' => name(named(&MONTHS, civil.month - 1), spec, out),
            b'p' => self.meridian(spec, spec.swap, out),
            b'P' => self.meridian(spec, true, out),
            b'Z' => {
                let name = self.fields.zone.to_owned();
                let name = if spec.swap { name.to_lowercase() } else { name };
                text(&cased(&name, spec.upper), spec, out);
            }
            b'd' => number(civil.day, 2, b'0', spec, out),
            b'e' => number(civil.day, 2, b'_', spec, out),
            b'H' => number(civil.hour, 2, b'0', spec, out),
            b'I' => number(twelve, 2, b'0', spec, out),
            b'k' => number(civil.hour, 2, b'_', spec, out),
            b'l' => number(twelve, 2, b'_', spec, out),
            b'j' => number(self.fields.day_of_year, 3, b'0', spec, out),
            b'm' => number(civil.month, 2, b'0', spec, out),
            b'M' => number(civil.minute, 2, b'0', spec, out),
            b'S' => number(civil.second, 2, b'0', spec, out),
            b'q' => number((civil.month - 1) / 3 + 1, 1, b'0', spec, out),
            b's' => number(self.fields.when.seconds, 1, b'0', spec, out),
            b'u' => number((self.fields.weekday - 1).rem_euclid(7) + 1, 1, b'0', spec, out),
            b'w' => number(self.fields.weekday, 1, b'0', spec, out),
            b'U' => number(self.week(0), 2, b'0', spec, out),
            b'W' => number(self.week(1), 2, b'0', spec, out),
            b'V' => number(self.iso_week().1, 2, b'0', spec, out),
            b'g' => number(self.iso_week().0.rem_euclid(100), 2, b'0', spec, out),
            b'G' => year(self.iso_week().0, self.digits(4), spec, out),
            b'Y' => year(civil.year, self.digits(4), spec, out),
            b'y' => number(civil.year.rem_euclid(100), 2, b'0', spec, out),
            b'C' => year(civil.year.div_euclid(100), self.digits(2), spec, out),
            b'N' => self.nanos(spec, out),
            b'z' => self.offset(spec, out)?,
            b'F' if self.dialect == Dialect::C => self.several("%Y-%m-%d", spec, out),
            b'F' => self.date(spec, out),
            b'c' => self.several("%a %b %e %H:%M:%S %Y", spec, out),
            b'D' | b'x' => self.several("%m/%d/%y", spec, out),
            b'r' => self.several("%I:%M:%S %p", spec, out),
            b'R' => self.several("%H:%M", spec, out),
            b'T' | b'X' => self.several("%H:%M:%S", spec, out),
            _ => return None,
        }
        Some(())
    }

    /// What stands for several conversions is padded as one.
    fn several(&self, format: &str, spec: Spec, out: &mut Vec<u8>) {
        let mut inner = Vec::new();
        self.write(format.as_bytes(), &mut inner, spec.upper);
        text(&inner, spec, out);
    }

    /// The width of `%F` is that of the year, and six more.
    fn date(&self, spec: Spec, out: &mut Vec<u8>) {
        let pad = spec.pad.or(Some(b'+'));
        let width = spec.width.map_or(if pad == Some(b'+') { 4 } else { 0 }, |width| width.saturating_sub(6));
        year(self.fields.civil.year, 4, Spec { pad, width: Some(width), ..spec }, out);
        self.write(b"-%m-%d", out, false);
    }

    fn meridian(&self, spec: Spec, lower: bool, out: &mut Vec<u8>) {
        let name = match (self.fields.civil.hour >= 12, lower) {
            (false, false) => "AM",
            (true, false) => "PM",
            (false, true) => "am",
            (true, true) => "pm",
        };
        text(name.as_bytes(), spec, out);
    }

    /// Weeks since the first Sunday (0) or Monday (1) of the year.
    fn week(&self, first: i64) -> i64 {
        let from_first = (self.fields.weekday - first).rem_euclid(7);
        (self.fields.day_of_year - 1 + 7 - from_first).div_euclid(7)
    }

    /// The year that a week belongs to, and its number there: a week begins on Monday, and its Thursday decides.
    fn iso_week(&self) -> (i64, i64) {
        let from_monday = (self.fields.weekday - 1).rem_euclid(7);
        let thursday = self.fields.day_of_year - 1 - from_monday + 3;
        let year = self.fields.civil.year;
        let length = |year: i64| days_of(year + 1, 1, 1) - days_of(year, 1, 1);
        if thursday < 0 {
            (year - 1, (thursday + length(year - 1)) / 7 + 1)
        } else if thursday >= length(year) {
            (year + 1, (thursday - length(year)) / 7 + 1)
        } else {
            (year, thursday / 7 + 1)
        }
    }

    /// The digits that a width asks for: the first ones.
    fn nanos(&self, spec: Spec, out: &mut Vec<u8>) {
        let digits = format!("{:09}", self.fields.when.nanos);
        let width = spec.width.filter(|width| *width > 0).unwrap_or(9);
        let kept = &digits.as_bytes()[..width.min(9)];
        match spec.pad {
            Some(b'-') => {
                let end = kept.iter().rposition(|&digit| digit != b'0').map_or(1, |at| at + 1);
                out.extend_from_slice(&kept[..end]);
            }
            Some(b'_') => {
                let end = kept.iter().rposition(|&digit| digit != b'0').map_or(1, |at| at + 1);
                out.extend_from_slice(&kept[..end]);
                out.resize(out.len() + width.saturating_sub(end), b' ');
            }
            _ => {
                out.extend_from_slice(kept);
                out.resize(out.len() + width.saturating_sub(9), b'0');
            }
        }
    }

    fn offset(&self, spec: Spec, out: &mut Vec<u8>) -> Option<()> {
        let offset = self.fields.offset;
        let sign = if offset < 0 { '-' } else { '+' };
        let (hours, minutes, seconds) = (offset.abs() / 3600, offset.abs() / 60 % 60, offset.abs() % 60);
        let after = match spec.colons {
            0 => format!("{minutes:02}"),
            1 => format!(":{minutes:02}"),
            2 => format!(":{minutes:02}:{seconds:02}"),
            3 if seconds > 0 => format!(":{minutes:02}:{seconds:02}"),
            3 if minutes > 0 => format!(":{minutes:02}"),
            3 => String::new(),
            _ => return None,
        };
        // Without colons it is one number; with them only the hours are padded.
        let (digits, least) = match spec.colons {
            0 => (format!("{}", hours * 100 + minutes), 4),
            _ => (format!("{hours}"), 2),
        };
        let tail = if spec.colons == 0 { "" } else { &after };
        let width = spec.width.unwrap_or(0).max(least + 1 + tail.len());
        let missing = width.saturating_sub(digits.len() + 1 + tail.len());
        match spec.pad {
            Some(b'-') => out.extend(format!("{sign}{digits}{tail}").bytes()),
            Some(b'_') => {
                out.resize(out.len() + missing, b' ');
                out.extend(format!("{sign}{digits}{tail}").bytes());
            }
            _ => {
                out.push(sign as u8);
                out.resize(out.len() + missing, b'0');
                out.extend(format!("{digits}{tail}").bytes());
            }
        }
        Some(())
    }
}

/// How much of an unknown directive is taken as it stands.
fn unknown_length(text: &[u8]) -> usize {
    let is_flag = |byte: &u8| b"-_0+^#:".contains(byte) || byte.is_ascii_digit();
    let flags = text[1..].iter().take_while(|byte| is_flag(byte)).count();
    (flags + 2).min(text.len())
}

fn cased(name: &str, upper: bool) -> Vec<u8> {
    if upper { name.to_uppercase().into_bytes() } else { name.as_bytes().to_vec() }
}

/// A name: `#` makes it capitals as `^` does.
fn name(name: &str, spec: Spec, out: &mut Vec<u8>) {
    text(&cased(name, spec.upper || spec.swap), spec, out);
}

fn text(text: &[u8], spec: Spec, out: &mut Vec<u8>) {
    let missing = spec.width.unwrap_or(0).saturating_sub(text.len());
    if spec.pad != Some(b'-') {
        let filler = if matches!(spec.pad, Some(b'0' | b'+')) { b'0' } else { b' ' };
        out.resize(out.len() + missing, filler);
    }
    out.extend_from_slice(text);
}

/// A year shows a plus sign where it has more digits than it should and that is asked for.
fn year(value: i64, digits: usize, spec: Spec, out: &mut Vec<u8>) {
    let length = value.unsigned_abs().to_string().len();
    let wide = length > digits || spec.width.is_some_and(|width| width > digits);
    if spec.pad == Some(b'+') && value >= 0 && wide {
        out.push(b'+');
        let width = spec.width.map(|width| width.saturating_sub(1));
        return number(value, digits, b'0', Spec { pad: Some(b'0'), width, ..spec }, out);
    }
    let pad = spec.pad.map(|pad| if pad == b'+' { b'0' } else { pad });
    number(value, digits, b'0', Spec { pad, ..spec }, out);
}

fn number(value: i64, digits: usize, usual: u8, spec: Spec, out: &mut Vec<u8>) {
    let shown = value.unsigned_abs().to_string();
    let sign = if value < 0 { "-" } else { "" };
    let width = spec.width.unwrap_or(0).max(digits);
    match spec.pad.unwrap_or(usual) {
        b'-' => out.extend(format!("{sign}{shown}").bytes()),
        b'_' => {
            let blanks = width.saturating_sub(shown.len() + sign.len());
            out.extend(format!("{}{sign}{shown}", " ".repeat(blanks)).bytes());
        }
        _ => {
            let zeros = width.saturating_sub(shown.len() + sign.len());
            out.extend(format!("{sign}{}{shown}", "0".repeat(zeros)).bytes());
        }
    }
}
