//! `date`: prints the time, any time, in any form.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::when;
use toolkit::{Arguments, clock, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};
use wardian_clock::{Dialect, When, Zone};

const TOOL: Tool = Tool {
    name: "date",
    short: "d:f:I::r:Rs:u",
    long: &[
        ("date=", 'd'),
        ("debug", 'D'),
        ("file=", 'f'),
        ("iso-8601[=", 'I'),
        ("reference=", 'r'),
        ("resolution", 'e'),
        ("rfc-email", 'R'),
        ("rfc-822", 'R'),
        ("rfc-2822", 'R'),
        ("rfc-3339=", '3'),
        ("set=", 's'),
        ("uct", 'u'),
        ("utc", 'u'),
        ("universal", 'u'),
    ],
    help: "\
Usage: date [OPTION]... [+FORMAT]
Print the time in a FORMAT; with -d, -f or -r another time than now.

  -d, --date=STRING          the time that STRING describes
      --debug                accepted, and ignored
  -f, --file=DATEFILE        like --date, once for each line of DATEFILE
  -I[FMT], --iso-8601[=FMT]  in ISO 8601 format; FMT is 'date' (the default),
                               'hours', 'minutes', 'seconds' or 'ns'
      --resolution           print how fine the clock is
  -R, --rfc-email            in the format of mail, RFC 5322
      --rfc-3339=FMT         in RFC 3339 format; FMT is 'date', 'seconds' or 'ns'
  -r, --reference=FILE       the time FILE was last modified
  -s, --set=STRING           refused: nobody here may set the clock
  -u, --utc, --universal     in Coordinated Universal Time (UTC)
      --help                 display this help and exit
      --version              output version information and exit

STRING may be '2024-02-29 12:00', '@1709208000', 'next friday', '2 days ago',
'tomorrow 10:00' and the like.  FORMAT has these sequences:

  %%   a literal %                       %a %A  the weekday, short or whole
  %b %B  the month, short or whole       %c   date and time (Thu Mar  3 23:05:25 2005)
  %C   the century                       %d %e  the day, with 0 or a space before it
  %D   the same as %m/%d/%y              %F   the same as %+4Y-%m-%d
  %g %G  the year of the ISO week        %H %I  the hour, of 24 or 12
  %j   the day of the year               %k %l  the hour, with a space before it
  %m   the month                         %M   the minute
  %n %t  a newline, a tab                %N   nanoseconds
  %p %P  AM or PM, am or pm              %q   the quarter
  %r   the time of 12 hours              %R %T  the time without and with seconds
  %s   seconds since 1970                %S   the second
  %u %w  the weekday from Monday 1, or from Sunday 0
  %U %V %W  the week, from Sunday, by ISO, from Monday
  %x %X  the date, the time              %y %Y  the year, short or whole
  %z %:z %::z %:::z  the zone as +hhmm, +hh:mm, +hh:mm:ss, as short as may be
  %Z   the zone by name

After % may come a flag: '-' no padding, '_' spaces, '0' zeros, '+' zeros and a
sign, '^' capitals, '#' the other case; then a width.
",
    misuse: 1,
};

/// Where the times come from.
enum Source {
    Now,
    Text(Vec<u8>),
    Lines(Vec<u8>),
    File(Vec<u8>),
    Resolution,
}

struct Options {
    source: Source,
    format: Option<Vec<u8>>,
    utc: bool,
    sets: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let options = Options::new(parsed.options, &parsed.operands)?;
    let zone = if options.utc { Zone::utc() } else { Zone::local() };
    if options.sets {
        complain("date", "cannot set date: Operation not permitted");
        return Ok(1);
    }
    let format = options.format.unwrap_or_else(|| usual_format().to_vec());
    let printer = Printer { zone, format, now: now() };
    printer.print(&options.source)
}

/// What C's locale has for `%c` with the zone.
fn usual_format() -> &'static [u8] {
    b"%a %b %e %H:%M:%S %Z %Y"
}

fn now() -> When {
    moment(clock::now())
}

fn moment(nanos: i64) -> When {
    When::from_nanos(nanos)
}

impl Options {
    fn new(given: Vec<(char, Option<Vec<u8>>)>, operands: &[Vec<u8>]) -> Result<Options, i32> {
        let mut options = Options { source: Source::Now, format: None, utc: false, sets: false };
        let mut sources: Vec<char> = Vec::new();
        for (letter, argument) in given {
            if "dfre".contains(letter) {
                sources.push(letter);
            }
            let text = argument.clone().unwrap_or_default();
            match letter {
                'd' => options.source = Source::Text(text),
                'f' => options.source = Source::Lines(text),
                'r' => options.source = Source::File(text),
                'e' => options.source = Source::Resolution,
                'I' => options.set_format(iso_format(argument.as_deref())?)?,
                '3' => options.set_format(rfc_format(&text)?)?,
                'R' => options.set_format(b"%a, %d %b %Y %H:%M:%S %z".to_vec())?,
                's' => options.sets = true,
                'u' => options.utc = true,
                _ => {}
            }
        }
        sources.dedup();
        if sources.len() > 1 {
            let message = "the options to specify dates for printing are mutually exclusive";
            return Err(TOOL.wrong(message));
        }
        if !sources.is_empty() && options.sets {
            let message = "the options to print and set the time may not be used together";
            return Err(TOOL.wrong(message));
        }
        options.take_operands(operands, !sources.is_empty())?;
        Ok(options)
    }

    fn set_format(&mut self, format: Vec<u8>) -> Result<(), i32> {
        wardian_clock::check(&format).map_err(|message| {
            complain("date", message);
            1
        })?;
        if self.format.replace(format).is_some() {
            complain("date", "multiple output formats specified");
            return Err(1);
        }
        Ok(())
    }

    /// A format, or the time to be set to, which we only read.
    fn take_operands(&mut self, operands: &[Vec<u8>], prints: bool) -> Result<(), i32> {
        if let [_, extra, ..] = operands {
            return Err(TOOL.wrong(format_args!("extra operand {}", quote::word(extra))));
        }
        match operands.first() {
            None => Ok(()),
            Some(operand) => match operand.strip_prefix(b"+") {
                Some(format) => self.set_format(format.to_vec()),
                None if self.sets || prints => {
                    let word = quote::word(operand);
                    Err(TOOL.wrong(format_args!(
                        "the argument {word} lacks a leading '+';\nwhen using an option to specify date(s), \
                         any non-option\nargument must be a format string beginning with '+'"
                    )))
                }
                None if is_stamp(operand) => {
                    self.sets = true;
                    Ok(())
                }
                None => {
                    complain("date", format_args!("invalid date {}", quote::word(operand)));
                    Err(1)
                }
            },
        }
    }
}

/// `MMDDhhmm[[CC]YY][.ss]`.
fn is_stamp(text: &[u8]) -> bool {
    let (digits, seconds) = match text.iter().position(|&byte| byte == b'.') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b"00".as_slice()),
    };
    let all_digits = digits.iter().chain(seconds).all(u8::is_ascii_digit);
    all_digits && seconds.len() == 2 && matches!(digits.len(), 8 | 10 | 12)
}

const ISO: [(&str, &[u8]); 5] = [
    ("hours", b"%Y-%m-%dT%H%:z"),
    ("minutes", b"%Y-%m-%dT%H:%M%:z"),
    ("date", b"%Y-%m-%d"),
    ("seconds", b"%Y-%m-%dT%H:%M:%S%:z"),
    ("ns", b"%Y-%m-%dT%H:%M:%S,%N%:z"),
];

fn iso_format(word: Option<&[u8]>) -> Result<Vec<u8>, i32> {
    TOOL.choose("--iso-8601", word.unwrap_or(b"date"), &ISO).map(<[u8]>::to_vec)
}

fn rfc_format(word: &[u8]) -> Result<Vec<u8>, i32> {
    const RFC: [(&str, &[u8]); 3] =
        [("date", b"%Y-%m-%d"), ("seconds", b"%Y-%m-%d %H:%M:%S%:z"), ("ns", b"%Y-%m-%d %H:%M:%S.%N%:z")];
    TOOL.choose("--rfc-3339", word, &RFC).map(<[u8]>::to_vec)
}

struct Printer {
    zone: Zone,
    format: Vec<u8>,
    now: When,
}

impl Printer {
    fn print(&self, source: &Source) -> Result<i32, i32> {
        let mut out = Out::new("date");
        match source {
            Source::Now => self.put(&mut out, self.now),
            Source::Resolution => out.put("0.000000001\n"),
            Source::Text(text) => match self.read(text) {
                Some(when) => self.put(&mut out, when),
                None => return Err(invalid(text)),
            },
            Source::File(file) => match abi::stat(Dir::CWD, file, true) {
                Ok(stat) => self.put(&mut out, moment(stat.mtime)),
                Err(error) => {
                    complain("date", format_args!("{}: {error}", quote::if_needed(file)));
                    return Err(1);
                }
            },
            Source::Lines(file) => return self.print_lines(file, &mut out),
        }
        Ok(0)
    }

    fn print_lines(&self, file: &[u8], out: &mut Out) -> Result<i32, i32> {
        let content = match file {
            b"-" => files::read_fd(0),
            path => std::fs::read(files::path(path)).map_err(Errno::from),
        };
        let content = content.map_err(|error| {
            complain("date", format_args!("{}: {error}", quote::if_needed(file)));
            1
        })?;
        let mut code = 0;
        for line in content.split_inclusive(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            match self.read(line) {
                Some(when) => self.put(out, when),
                None => {
                    out.flush();
                    code = invalid(line);
                }
            }
        }
        Ok(code)
    }

    fn read(&self, text: &[u8]) -> Option<When> {
        when::parse(std::str::from_utf8(text).ok()?, self.now, &self.zone)
    }

    fn put(&self, out: &mut Out, when: When) {
        out.put(wardian_clock::format(&self.format, when, &self.zone, Dialect::Gnu));
        out.put("\n");
    }
}

fn invalid(text: &[u8]) -> i32 {
    complain("date", format_args!("invalid date {}", quote::word(text)));
    1
}
