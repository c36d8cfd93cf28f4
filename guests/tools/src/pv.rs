//! `pv`: passes its input on and tells how much there was.

use std::time::{Duration, Instant};
use toolkit::args::{Tool, bytes_of};
use toolkit::source::Source;
use toolkit::{Arguments, complain, count, input, quote};
use wardian_abi as abi;

const TOOL: Tool = Tool {
    name: "pv",
    short: "ptebrnqflWL:s:i:N:hV",
    long: &[
        ("progress", 'p'),
        ("timer", 't'),
        ("eta", 'e'),
        ("bytes", 'b'),
        ("rate", 'r'),
        ("numeric", 'n'),
        ("quiet", 'q'),
        ("force", 'f'),
        ("line-mode", 'l'),
        ("wait", 'W'),
        ("rate-limit=", 'L'),
        ("size=", 's'),
        ("interval=", 'i'),
        ("name=", 'N'),
    ],
    help: "\
Usage: pv [OPTION] [FILE]...
Concatenate FILE(s), or standard input, to standard output,
with monitoring.

  -p, --progress           show progress bar
  -t, --timer              show elapsed time
  -e, --eta                show estimated time of arrival (completion)
  -r, --rate               show data transfer rate counter
  -b, --bytes              show number of bytes transferred
  -n, --numeric            output percentages, not visual information
  -q, --quiet              do not output any transfer information at all
  -W, --wait               display nothing until first byte transferred
  -s, --size SIZE          set estimated data size to SIZE bytes
  -l, --line-mode          count lines instead of bytes
  -i, --interval SEC       update every SEC seconds
  -N, --name NAME          prefix visual information with NAME
  -f, --force              output even if standard error is not a terminal
  -L, --rate-limit RATE    limit transfer to RATE bytes per second
  -h, --help               show this help and exit
  -V, --version            show version information and exit
",
    misuse: 64,
};

struct Meter {
    wants: Vec<char>,
    numeric: bool,
    shows: bool,
    by_line: bool,
    size: Option<u64>,
    interval: Duration,
    limit: Option<u64>,
    name: Option<String>,
    start: Instant,
    shown: Instant,
    bytes: u64,
    lines: u64,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let now = Instant::now();
    let mut meter = Meter {
        wants: Vec::new(),
        numeric: false,
        shows: abi::isatty(2),
        by_line: false,
        size: None,
        interval: Duration::from_secs(1),
        limit: None,
        name: None,
        start: now,
        shown: now,
        bytes: 0,
        lines: 0,
    };
    let amount = |text: &[u8], option: char| {
        count::parse(text, 0..=u64::MAX, "kKmMgGtT").map_err(|_| {
            complain("pv", format_args!("-{option}: integer argument expected"));
            64
        })
    };
    let mut quiet = false;
    for (letter, argument) in parsed.options {
        let text = argument.unwrap_or_default();
        match letter {
            'n' => (meter.numeric, meter.shows) = (true, true),
            'q' => quiet = true,
            'f' => meter.shows = true,
            'l' => meter.by_line = true,
            'L' => meter.limit = Some(amount(&text, 'L')?).filter(|limit| *limit > 0),
            's' => meter.size = Some(amount(&text, 's')?),
            'i' => {
                let seconds = input::number::<f64>(&text).filter(|seconds| (0.0..=600.0).contains(seconds));
                let seconds = seconds.ok_or_else(|| TOOL.wrong("-i: numeric argument expected"))?;
                meter.interval = Duration::from_secs_f64(seconds.max(0.1));
            }
            'N' => meter.name = Some(String::from_utf8_lossy(&text).into_owned()),
            'h' => return Err(TOOL.answer(toolkit::args::Refusal::Help)),
            'V' => return Err(TOOL.answer(toolkit::args::Refusal::Version)),
            'W' => {}
            letter => meter.wants.push(letter),
        }
    }
    meter.shows &= !quiet;
    if meter.wants.is_empty() {
        meter.wants = vec!['p', 't', 'e', 'r', 'b'];
    }
    let operands = input::or_stdin(parsed.operands);
    if meter.size.is_none() {
        meter.size = size_of(&operands);
    }
    let code = meter.pass(&operands);
    if meter.shows {
        meter.show(true);
    }
    Ok(code)
}

/// How much all files have together, if all are files.
fn size_of(operands: &[Vec<u8>]) -> Option<u64> {
    let sizes = operands.iter().map(|operand| {
        let stat = match operand.as_slice() {
            b"-" => abi::fstat(0),
            path => abi::stat(abi::Dir::CWD, path, true),
        };
        stat.ok().filter(abi::Stat::is_file).map(|stat| stat.size)
    });
    sizes.sum()
}

impl Meter {
    fn pass(&mut self, operands: &[Vec<u8>]) -> i32 {
        let mut code = 0;
        // A limit is kept in small steps, so that it is one at any time.
        let step = self.limit.map_or(128 << 10, |limit| (limit / 10).clamp(1, 128 << 10) as usize);
        let mut buffer = vec![0; step];
        for operand in operands {
            let source = match Source::open(operand) {
                Ok(source) => source,
                Err(error) => {
                    complain("pv", format_args!("{}: {error}", quote::if_needed(operand)));
                    code |= 10;
                    continue;
                }
            };
            loop {
                match source.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => {
                        if abi::write_all(1, &buffer[..count]).is_err() {
                            return code | 4;
                        }
                        self.add(&buffer[..count]);
                    }
                    Err(error) => {
                        complain("pv", format_args!("{}: {error}", quote::if_needed(operand)));
                        code |= 2;
                        break;
                    }
                }
            }
        }
        code
    }

    fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        if self.by_line {
            self.lines += memchr::memchr_iter(b'\n', piece).count() as u64;
        }
        if let Some(limit) = self.limit {
            let due = Duration::from_secs_f64(self.bytes as f64 / limit as f64);
            std::thread::sleep(due.saturating_sub(self.start.elapsed()));
        }
        if self.shows && self.shown.elapsed() >= self.interval {
            self.shown = Instant::now();
            self.show(false);
        }
    }

    fn show(&self, is_last: bool) {
        let done = if self.by_line { self.lines } else { self.bytes };
        let share = self.size.filter(|size| *size > 0).map(|size| (done as f64 / size as f64).min(1.0));
        if self.numeric {
            let line = match share {
                Some(share) => format!("{}\n", (share * 100.0) as u64),
                None => format!("{done}\n"),
            };
            let _ = abi::write_all(2, line.as_bytes());
            return;
        }
        let seconds = self.start.elapsed().as_secs_f64();
        let rate = done as f64 / seconds.max(1e-3);
        let mut parts = Vec::new();
        parts.extend(self.name.as_ref().map(|name| format!("{name}:")));
        for (letter, part) in [
            ('b', amount(done as f64, self.by_line)),
            ('t', clock(seconds)),
            ('r', format!("[{}/s]", amount(rate, self.by_line))),
        ] {
            parts.extend(self.wants.contains(&letter).then_some(part));
        }
        if let Some(share) = share {
            let bar = format!("[{:<20}] {:>3}%", "=".repeat((share * 20.0) as usize), (share * 100.0) as u64);
            parts.extend(self.wants.contains(&'p').then_some(bar));
            if self.wants.contains(&'e') && !is_last && share > 0.0 {
                parts.push(format!("ETA {}", clock(seconds / share - seconds)));
            }
        }
        let end = if is_last { "\n" } else { "" };
        let _ = abi::write_all(2, format!("\r{}{end}", parts.join(" ")).as_bytes());
    }
}

fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// An amount with three digits and a unit.
fn amount(mut value: f64, is_lines: bool) -> String {
    let (base, units) = if is_lines {
        (1000.0, ["", "k", "M", "G", "T"])
    } else {
        (1024.0, ["B", "KiB", "MiB", "GiB", "TiB"])
    };
    let mut at = 0;
    while value >= base && at + 1 < units.len() {
        value /= base;
        at += 1;
    }
    let digits = if value >= 100.0 || at == 0 { 0 } else { 1 + usize::from(value < 10.0) };
    format!("{value:.digits$}{}", units[at])
}
