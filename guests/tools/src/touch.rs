//! `touch`: sets the times of files, and makes those that are not there.

use toolkit::args::{Tool, bytes_of};
use toolkit::when;
use toolkit::{Arguments, clock, complain, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, open_flags};
use wardian_clock::{Civil, When, Zone};

const TOOL: Tool = Tool {
    name: "touch",
    short: "acd:fhmr:t:",
    long: &[("time=", 'T'), ("no-create", 'c'), ("date=", 'd'), ("reference=", 'r'), ("no-dereference", 'h')],
    help: "\
Usage: touch [OPTION]... FILE...
Set the access and modification times of each FILE to now.
A FILE that does not exist is made, empty, unless -c or -h is given.
A FILE that is - is what standard output is.

  -a                     change only the access time
  -c, --no-create        do not make any files
  -d, --date=STRING      use the time that STRING describes, instead of now
  -f                     (ignored)
  -h, --no-dereference   change symbolic links, not what they point to
  -m                     change only the modification time
  -r, --reference=FILE   use the times of FILE
  -t STAMP               use [[CC]YY]MMDDhhmm[.ss]
      --time=WORD        'access', 'atime' or 'use' is as -a, 'modify' or
                           'mtime' as -m
      --help             display this help and exit
      --version          output version information and exit
",
    misuse: 1,
};

#[derive(Default)]
struct Options {
    access: bool,
    modification: bool,
    no_create: bool,
    on_links: bool,
    date: Option<Vec<u8>>,
    reference: Option<Vec<u8>>,
    stamp: Option<Vec<u8>>,
}

/// The access and the modification time, those that are to be set.
type Times = (Option<i64>, Option<i64>);

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let options = Options::new(parsed.options)?;
    let (access, modification) = options.moments()?;
    if parsed.operands.is_empty() {
        return Err(TOOL.wrong("missing file operand"));
    }
    let both = options.access == options.modification;
    let times =
        ((both || options.access).then_some(access), (both || options.modification).then_some(modification));
    let mut all = true;
    for file in &parsed.operands {
        all &= options.touch(file, times);
    }
    Ok(i32::from(!all))
}

impl Options {
    fn new(given: Vec<(char, Option<Vec<u8>>)>) -> Result<Options, i32> {
        let mut options = Options::default();
        for (letter, argument) in given {
            match letter {
                'a' => options.access = true,
                'm' => options.modification = true,
                'c' => options.no_create = true,
                'h' => options.on_links = true,
                'd' => options.date = argument,
                'r' => options.reference = argument,
                't' => options.stamp = argument,
                'T' => options.set_which(&argument.unwrap_or_default())?,
                _ => {}
            }
        }
        if options.stamp.is_some() && (options.date.is_some() || options.reference.is_some()) {
            return Err(TOOL.wrong("cannot specify times from more than one source"));
        }
        Ok(options)
    }

    fn set_which(&mut self, word: &[u8]) -> Result<(), i32> {
        let fits =
            |names: &[&str]| !word.is_empty() && names.iter().any(|name| name.as_bytes().starts_with(word));
        match () {
            () if fits(&["atime", "access", "use"]) => self.access = true,
            () if fits(&["mtime", "modify"]) => self.modification = true,
            () => return Err(TOOL.wrong_choice("--time", word, &["atime access use", "mtime modify"])),
        }
        Ok(())
    }

    /// The two times, in nanoseconds since 1970.
    fn moments(&self) -> Result<(i64, i64), i32> {
        let refuse = |message: String| {
            complain("touch", message);
            1
        };
        if let Some(stamp) = &self.stamp {
            let moment = parse_stamp(stamp)
                .ok_or_else(|| refuse(format!("invalid date format {}", quote::word(stamp))))?;
            return Ok((moment, moment));
        }
        let now = clock::now();
        let (access, modification) = match &self.reference {
            None => (now, now),
            Some(file) => {
                let stat = abi::stat(Dir::CWD, file, !self.on_links).map_err(|error| {
                    refuse(format!("failed to get attributes of {}: {error}", quote::always(file)))
                })?;
                (stat.atime, stat.mtime)
            }
        };
        let Some(date) = &self.date else { return Ok((access, modification)) };
        let read = |from: i64| {
            parse_date(date, from).ok_or_else(|| refuse(format!("invalid date format {}", quote::word(date))))
        };
        Ok((read(access)?, read(modification)?))
    }

    fn touch(&self, file: &[u8], times: Times) -> bool {
        if file == b"-" {
            return touch_output(times);
        }
        let mut made = Ok(());
        if !self.no_create && !self.on_links {
            made = make(file);
        }
        match abi::set_times(Dir::CWD, file, !self.on_links, times.0, times.1) {
            Ok(()) => true,
            Err(Errno::NOENT) if self.no_create => true,
            // The reason that it could not be made says more than that it is not there.
            Err(error) => {
                let (doing, error) = match made {
                    Err(reason) if !matches!(reason, Errno::ISDIR | Errno::NOENT if file.ends_with(b"/")) => {
                        ("cannot touch", reason)
                    }
                    _ => ("setting times of", error),
                };
                complain("touch", format_args!("{doing} {}: {error}", quote::always(file)));
                false
            }
        }
    }
}

fn make(file: &[u8]) -> Result<(), Errno> {
    let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::NONBLOCK | open_flags::CLOEXEC;
    abi::close(abi::open(Dir::CWD, file, flags, 0o666)?)
}

/// The file that standard output is, by the name under which every descriptor is a file.
fn touch_output(times: Times) -> bool {
    match abi::set_times(Dir::CWD, b"/dev/fd/1", true, times.0, times.1) {
        Ok(()) => true,
        // What has no times, such as a pipe, cannot have wrong ones.
        Err(_) if abi::fstat(1).is_ok_and(|stat| !stat.is_file()) => true,
        Err(error) => {
            complain("touch", format_args!("setting times of '-': {error}"));
            false
        }
    }
}

fn parse_date(text: &[u8], from: i64) -> Option<i64> {
    let from = When::from_nanos(from);
    let when = when::parse(std::str::from_utf8(text).ok()?, from, &Zone::local())?;
    when.seconds.checked_mul(1_000_000_000)?.checked_add(when.nanos)
}

/// `[[CC]YY]MMDDhhmm[.ss]`.
fn parse_stamp(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (digits, second) = match text.split_once('.') {
        Some((digits, second)) if second.len() == 2 => (digits, number(second)?),
        Some(_) => return None,
        None => (text, 0),
    };
    let zone = Zone::local();
    let year = match digits.len() {
        8 => zone.civil(clock::now() / 1_000_000_000).year,
        10 => match number(&digits[..2])? {
            year @ 0..69 => 2000 + year,
            year => 1900 + year,
        },
        12 => number(&digits[..4])?,
        _ => return None,
    };
    let rest = digits.get(digits.len() - 8..)?;
    let field = |at: usize| number(rest.get(at..at + 2)?);
    let civil = Civil { year, month: field(0)?, day: field(2)?, hour: field(4)?, minute: field(6)?, second };
    // A leap second is the next minute's first; anything else out of range is wrong.
    let plain = Civil { second: second.min(59), ..civil };
    if plain.normal() != Some(plain) || second > 60 {
        return None;
    }
    zone.moment(&civil)?.checked_mul(1_000_000_000)
}

fn number(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}
