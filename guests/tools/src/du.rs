//! `du`: how much room files take.

use std::collections::HashSet;
use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::clock::Clock;
use toolkit::out::Out;
use toolkit::size::Scale;
use toolkit::{Arguments, complain, files, glob, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Stat};

const TOOL: Tool = Tool {
    name: "du",
    short: "0abB:cd:DhHklLmPsSt:xX:",
    long: &[
        ("null", '0'),
        ("all", 'a'),
        ("apparent-size", 'A'),
        ("bytes", 'b'),
        ("block-size=", 'Ḃ'),
        ("total", 'c'),
        ("dereference-args", 'D'),
        ("max-depth=", 'd'),
        ("files0-from=", 'F'),
        ("human-readable", 'h'),
        ("si", 'I'),
        ("inodes", 'i'),
        ("count-links", 'l'),
        ("dereference", 'L'),
        ("no-dereference", 'P'),
        ("separate-dirs", 'S'),
        ("summarize", 's'),
        ("threshold=", 'Ṫ'),
        ("time[=", 'T'),
        ("time-style=", 'y'),
        ("one-file-system", 'x'),
        ("exclude=", 'e'),
        ("exclude-from=", 'X'),
    ],
    help: "\
Usage: du [OPTION]... [FILE]...
  or:  du [OPTION]... --files0-from=F
Summarize device usage of the set of FILEs, recursively for directories.

  -0, --null            end each output line with NUL, not newline
  -a, --all             write counts for all files, not just directories
      --apparent-size   print apparent sizes rather than device usage
  -B, --block-size=SIZE  scale sizes by SIZE before printing them
  -b, --bytes           equivalent to '--apparent-size --block-size=1'
  -c, --total           produce a grand total
  -D, -H, --dereference-args  dereference only symlinks that are listed on the
                          command line
  -d, --max-depth=N     print the total for a directory (or file, with --all)
                          only if it is N or fewer levels below the command
                          line argument;  --max-depth=0 is the same as
                          --summarize
      --files0-from=F   summarize device usage of the NUL-terminated file names
                          specified in file F; if F is -, from standard input
  -h, --human-readable  print sizes in human readable format (e.g., 1K 234M 2G)
      --inodes          list inode usage information instead of block usage
  -k                    like --block-size=1K
  -L, --dereference     dereference all symbolic links
  -l, --count-links     count sizes many times if hard linked
  -m                    like --block-size=1M
  -P, --no-dereference  don't follow any symbolic links (this is the default)
  -S, --separate-dirs   for directories do not include size of subdirectories
      --si              like -h, but use powers of 1000 not 1024
  -s, --summarize       display only a total for each argument
  -t, --threshold=SIZE  exclude entries smaller than SIZE if positive,
                          or entries greater than SIZE if negative
      --time            show time of the last modification of any file in the
                          directory, or any of its subdirectories
      --time=WORD       show time as WORD instead of modification time:
                          atime, access, use, ctime or status
      --time-style=STYLE  full-iso, long-iso, iso, or +FORMAT
  -X, --exclude-from=FILE  exclude files that match any pattern in FILE
      --exclude=PATTERN    exclude files that match PATTERN
  -x, --one-file-system    skip directories on different file systems
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

/// What is counted of a file.
#[derive(Clone, Copy, PartialEq)]
enum Measure {
    Blocks,
    Bytes,
    Inodes,
}

#[derive(Clone, Copy)]
enum Time {
    Modified,
    Accessed,
    Changed,
}

/// Which symbolic links are looked through.
#[derive(Clone, Copy, PartialEq)]
enum Follow {
    Nothing,
    Operands,
    All,
}

struct Options {
    measure: Measure,
    scale: Scale,
    all: bool,
    total: bool,
    max_depth: usize,
    follow: Follow,
    counts_links: bool,
    separate: bool,
    one_system: bool,
    threshold: Option<(bool, u64)>,
    excluded: Vec<Vec<u8>>,
    time: Option<Time>,
    time_format: String,
    end: u8,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let from =
        parsed.options.iter().rev().find(|(letter, _)| *letter == 'F').and_then(|(_, text)| text.clone());
    let options = Options::from(&parsed)?;
    let operands = match from {
        None if parsed.operands.is_empty() => vec![b".".to_vec()],
        None => parsed.operands,
        Some(_) if !parsed.operands.is_empty() => {
            complain("du", format_args!("extra operand {}", quote::always(&parsed.operands[0])));
            return Err(TOOL.wrong("file operands cannot be combined with --files0-from"));
        }
        Some(list) => names_from(&list)?,
    };
    // With one tree no directory comes twice, and a file only by another name of its own.
    let remembers_all = operands.len() > 1 || options.follow == Follow::All;
    let mut walk = Walk {
        options,
        out: Out::new("du"),
        clock: Clock::new(),
        seen: HashSet::new(),
        remembers_all,
        code: 0,
    };
    let mut total = Usage::default();
    for operand in &operands {
        let follow = walk.options.follow != Follow::Nothing;
        if let Some(usage) = walk.visit(operand, 0, follow, None) {
            total.add(usage);
        }
    }
    if walk.options.total {
        walk.print(total, b"total");
    }
    Ok(walk.code)
}

/// The names in a file, each followed by a NUL; `-` is standard input.
fn names_from(list: &[u8]) -> Result<Vec<Vec<u8>>, i32> {
    let file: &[u8] = if list == b"-" { b"/dev/stdin" } else { list };
    let text = std::fs::read(files::path(file)).map_err(|error| {
        let why = abi::Errno::from(error);
        complain("du", format_args!("cannot open {} for reading: {why}", quote::always(list)));
        1
    })?;
    Ok(text.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
}

impl Options {
    fn from(parsed: &Parsed) -> Result<Options, i32> {
        let mut options = Options {
            measure: Measure::Blocks,
            scale: default_scale(),
            all: false,
            total: false,
            max_depth: usize::MAX,
            follow: Follow::Nothing,
            counts_links: false,
            separate: false,
            one_system: false,
            threshold: None,
            excluded: Vec::new(),
            time: None,
            time_format: "%Y-%m-%d %H:%M".to_owned(),
            end: b'\n',
        };
        let mut summarize = false;
        for (letter, text) in &parsed.options {
            let text = text.as_deref().unwrap_or_default();
            match letter {
                's' => summarize = true,
                'd' => options.max_depth = depth(text)?,
                'B' => options.scale = block_size(text, "-B")?,
                'Ḃ' => options.scale = block_size(text, "--block-size")?,
                't' => options.threshold = Some(threshold(text, "-t")?),
                'Ṫ' => options.threshold = Some(threshold(text, "--threshold")?),
                'T' => options.time = Some(time_named(text)?),
                'y' => options.time_format = time_style(text)?,
                'X' => options.excluded.extend(patterns_in(text)?),
                'e' => options.excluded.push(text.to_vec()),
                letter => options.set(*letter),
            }
        }
        if summarize && options.all {
            return Err(TOOL.wrong("cannot both summarize and show all entries"));
        }
        if summarize && options.max_depth == 0 {
            complain("du", "warning: summarizing is the same as using --max-depth=0");
        } else if summarize && options.max_depth != usize::MAX {
            let depth = options.max_depth;
            return Err(TOOL.wrong(format_args!("warning: summarizing conflicts with --max-depth={depth}")));
        }
        if summarize {
            options.max_depth = 0;
        }
        Ok(options)
    }

    /// What an option without an argument sets.
    fn set(&mut self, letter: char) {
        match letter {
            '0' => self.end = 0,
            'a' => self.all = true,
            'A' => self.measure = Measure::Bytes,
            'b' => (self.measure, self.scale) = (Measure::Bytes, Scale::Blocks(1, "")),
            'c' => self.total = true,
            'D' | 'H' => self.follow = Follow::Operands,
            'h' => self.scale = Scale::Human(1024),
            'I' => self.scale = Scale::Human(1000),
            'i' => self.measure = Measure::Inodes,
            'k' => self.scale = Scale::Blocks(1024, ""),
            'l' => self.counts_links = true,
            'L' => self.follow = Follow::All,
            'm' => self.scale = Scale::Blocks(1 << 20, ""),
            'P' => self.follow = Follow::Nothing,
            'S' => self.separate = true,
            'x' => self.one_system = true,
            _ => {}
        }
    }

    fn excludes(&self, path: &[u8]) -> bool {
        // A pattern may match from the start of any component on.
        let starts = (0..path.len()).filter(|&at| at == 0 || path[at - 1] == b'/');
        let tails: Vec<&[u8]> = starts.map(|at| &path[at..]).collect();
        self.excluded.iter().any(|pattern| tails.iter().any(|tail| glob::matches(pattern, tail, false)))
    }
}

/// The unit that the environment asks for.
fn default_scale() -> Scale {
    let named = ["DU_BLOCK_SIZE", "BLOCK_SIZE", "BLOCKSIZE"].into_iter().find_map(std::env::var_os);
    match named.and_then(|text| Scale::parse(text.as_encoded_bytes())) {
        Some(scale) => scale,
        None if std::env::var_os("POSIXLY_CORRECT").is_some() => Scale::Blocks(512, ""),
        None => Scale::Blocks(1024, ""),
    }
}

fn depth(text: &[u8]) -> Result<usize, i32> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| TOOL.wrong(format_args!("invalid maximum depth {}", quote::word(text))))
}

fn block_size(text: &[u8], option: &str) -> Result<Scale, i32> {
    Scale::parse(text).ok_or_else(|| {
        complain("du", format_args!("invalid {option} argument {}", quote::plain_word(text)));
        1
    })
}

/// A size below, or with a minus above which nothing is shown.
fn threshold(text: &[u8], option: &str) -> Result<(bool, u64), i32> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match Scale::parse(digits) {
        Some(Scale::Blocks(size, _)) if digits[0].is_ascii_digit() => {
            Ok((negative, u64::try_from(size).unwrap_or(u64::MAX)))
        }
        _ if digits == b"0" && !negative => Ok((false, 0)),
        _ => {
            complain("du", format_args!("invalid {option} argument {}", quote::plain_word(text)));
            Err(1)
        }
    }
}

fn time_named(text: &[u8]) -> Result<Time, i32> {
    match text {
        b"" | b"mtime" => Ok(Time::Modified),
        b"atime" | b"access" | b"use" => Ok(Time::Accessed),
        b"ctime" | b"status" => Ok(Time::Changed),
        _ => Err(TOOL.wrong_choice("--time", text, &["atime access use", "ctime status"])),
    }
}

fn time_style(text: &[u8]) -> Result<String, i32> {
    Ok(match text {
        b"full-iso" => "%Y-%m-%d %H:%M:%S.%N %z".to_owned(),
        b"long-iso" => "%Y-%m-%d %H:%M".to_owned(),
        b"iso" => "%Y-%m-%d".to_owned(),
        [b'+', format @ ..] => String::from_utf8_lossy(format).into_owned(),
        _ => return Err(TOOL.wrong_choice("time style", text, &["full-iso", "long-iso", "iso"])),
    })
}

fn patterns_in(file: &[u8]) -> Result<Vec<Vec<u8>>, i32> {
    let source: &[u8] = if file == b"-" { b"/dev/stdin" } else { file };
    let text = std::fs::read(files::path(source)).map_err(|error| {
        complain("du", format_args!("{}: {}", quote::if_needed(file), abi::Errno::from(error)));
        1
    })?;
    Ok(text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
}

/// What a file or a directory with all below it takes, and when any of it last changed.
#[derive(Clone, Copy, Default)]
struct Usage {
    size: u64,
    time: Option<i64>,
}

impl Usage {
    fn add(&mut self, other: Usage) {
        self.size = self.size.saturating_add(other.size);
        self.time = self.time.max(other.time);
    }
}

struct Walk {
    options: Options,
    out: Out,
    clock: Clock,
    seen: HashSet<(u64, u64)>,
    remembers_all: bool,
    code: i32,
}

impl Walk {
    /// What is at a path, printed if asked for; `None` when it does not count.
    fn visit(&mut self, path: &[u8], depth: usize, follow: bool, device: Option<u64>) -> Option<Usage> {
        if self.options.excludes(path) {
            return None;
        }
        let stat = match abi::stat(Dir::CWD, path, follow) {
            Ok(stat) => stat,
            Err(error) => {
                self.fail(format_args!("cannot access {}: {error}", quote::always(path)));
                return None;
            }
        };
        let elsewhere = self.options.one_system && device.is_some_and(|device| device != stat.dev);
        if elsewhere || self.is_repeated(&stat) {
            return None;
        }
        let own = self.usage_of(&stat);
        let mut whole = own;
        let mut shown = own;
        if stat.is_dir() {
            let (all, plain) = self.below(path, depth, device.unwrap_or(stat.dev));
            whole.add(all);
            shown.add(if self.options.separate { plain } else { all });
        }
        let is_shown = stat.is_dir() || self.options.all || depth == 0;
        if is_shown && depth <= self.options.max_depth {
            self.print(shown, path);
        }
        Some(if self.options.separate && !stat.is_dir() { own } else { whole })
    }

    /// What the entries of a directory take: all of them, and those that are no directories.
    fn below(&mut self, path: &[u8], depth: usize, device: u64) -> (Usage, Usage) {
        let (mut all, mut plain) = (Usage::default(), Usage::default());
        let names = match files::names_in(path) {
            Ok(names) => names,
            Err(error) => {
                self.fail(format_args!("cannot read directory {}: {error}", quote::always(path)));
                return (all, plain);
            }
        };
        for name in names {
            let file = files::join(path, &name);
            let follow = self.options.follow == Follow::All;
            if let Some(usage) = self.visit(&file, depth + 1, follow, Some(device)) {
                all.add(usage);
                let is_dir = self.options.separate
                    && abi::stat(Dir::CWD, &file, follow).is_ok_and(|stat| stat.is_dir());
                if !is_dir {
                    plain.add(usage);
                }
            }
        }
        (all, plain)
    }

    /// Whether a file was counted already, under this name or another.
    fn is_repeated(&mut self, stat: &Stat) -> bool {
        let may_come_again = self.remembers_all || (stat.nlink > 1 && !stat.is_dir());
        let counts = self.options.counts_links && !stat.is_dir();
        may_come_again && !counts && !self.seen.insert((stat.dev, stat.ino))
    }

    fn usage_of(&self, stat: &Stat) -> Usage {
        let size = match self.options.measure {
            Measure::Blocks => stat.blocks.saturating_mul(512),
            Measure::Bytes => stat.size,
            Measure::Inodes => 1,
        };
        let time = self.options.time.map(|time| match time {
            Time::Modified => stat.mtime,
            Time::Accessed => stat.atime,
            Time::Changed => stat.ctime,
        });
        Usage { size, time }
    }

    fn print(&mut self, usage: Usage, name: &[u8]) {
        let hidden = match self.options.threshold {
            Some((true, most)) => usage.size > most,
            Some((false, least)) => usage.size < least,
            None => false,
        };
        if hidden {
            return;
        }
        let mut line = match (self.options.measure, self.options.scale) {
            (Measure::Inodes, Scale::Blocks(..)) => usage.size.to_string(),
            (_, scale) => scale.show(u128::from(usage.size)),
        };
        if let Some(time) = usage.time {
            line += "\t";
            line += &self.clock.format(time, &self.options.time_format);
        }
        line += "\t";
        self.out.put([line.as_bytes(), name, &[self.options.end]].concat());
    }

    fn fail(&mut self, message: impl std::fmt::Display) {
        self.out.flush();
        complain("du", message);
        self.code = 1;
    }
}
