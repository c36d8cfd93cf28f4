//! `uniq`: lines without their repetitions.

use memchr::memchr;
use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::source::Source;
use toolkit::{Arguments, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, open_flags};

const TOOL: Tool = Tool {
    name: "uniq",
    short: "cdDf:is:uw:z0123456789",
    long: &[
        ("count", 'c'),
        ("repeated", 'd'),
        ("all-repeated[=", 'D'),
        ("group[=", 'g'),
        ("ignore-case", 'i'),
        ("unique", 'u'),
        ("skip-fields=", 'f'),
        ("skip-chars=", 's'),
        ("check-chars=", 'w'),
        ("zero-terminated", 'z'),
    ],
    help: "\
Usage: uniq [OPTION]... [INPUT [OUTPUT]]
Of lines that are the same and follow each other, print the first.

  -c, --count             before each line, how often it came
  -d, --repeated          print only lines that are repeated, one of each
  -D                      print only lines that are repeated, all of them
      --all-repeated[=METHOD]  the same; an empty line before each group
                          (prepend), between two (separate) or nowhere (none)
      --group[=METHOD]    print all lines; an empty line before each group of the
                          same (prepend), behind it (append), both, or between
                          two (separate)
  -u, --unique            print only lines that are not repeated
  -f, --skip-fields=N     compare without the first N fields
  -s, --skip-chars=N      compare without the first N bytes
  -w, --check-chars=N     compare N bytes at most
  -i, --ignore-case       compare without regard to case
  -z, --zero-terminated   lines end with NUL, not newline
      --help        display this help and exit
      --version     output version information and exit

A field is blanks and what follows up to the next blank; fields are skipped first.
",
    misuse: 1,
};

/// Where an empty line stands among groups of lines.
#[derive(Clone, Copy, PartialEq)]
enum Gap {
    Nowhere,
    Before,
    Behind,
    Both,
    Between,
}

const REPEATED_GAPS: [(&str, Gap); 3] =
    [("none", Gap::Nowhere), ("prepend", Gap::Before), ("separate", Gap::Between)];
const GROUP_GAPS: [(&str, Gap); 4] =
    [("prepend", Gap::Before), ("append", Gap::Behind), ("separate", Gap::Between), ("both", Gap::Both)];

/// What is compared, and what is printed.
struct Job {
    skipped_fields: usize,
    skipped_bytes: usize,
    compared_bytes: usize,
    ignores_case: bool,
    counts: bool,
    /// Which lines are printed: those that come once, the first of others, all but the first of others.
    once: bool,
    first: bool,
    later: bool,
    repeated_gap: Gap,
    groups: Option<Gap>,
    line_end: u8,
}

pub fn main(arguments: Arguments) -> i32 {
    let checked =
        TOOL.parse(bytes_of(arguments)).and_then(|parsed| Ok((read_options(&parsed)?, parsed.operands)));
    match checked {
        Ok((job, operands)) => job.run(&operands),
        Err(code) => code,
    }
}

fn read_options(parsed: &Parsed) -> Result<Job, i32> {
    let mut job = Job {
        skipped_fields: 0,
        skipped_bytes: 0,
        compared_bytes: usize::MAX,
        ignores_case: false,
        counts: false,
        once: true,
        first: true,
        later: false,
        repeated_gap: Gap::Nowhere,
        groups: None,
        line_end: b'\n',
    };
    let mut old_fields = None;
    for (letter, argument) in &parsed.options {
        let text = argument.as_deref().unwrap_or_default();
        match letter {
            'c' => job.counts = true,
            'd' => job.once = false,
            'D' => {
                (job.once, job.later) = (false, true);
                if argument.is_some() {
                    job.repeated_gap = TOOL.choose("--all-repeated", text, &REPEATED_GAPS)?;
                }
            }
            'g' => {
                job.groups = Some(
                    argument
                        .as_ref()
                        .map_or(Ok(Gap::Between), |_| TOOL.choose("--group", text, &GROUP_GAPS))?,
                )
            }
            'u' => job.first = false,
            'f' => (job.skipped_fields, old_fields) = (number(text, "fields to skip")?, None),
            's' => job.skipped_bytes = number(text, "bytes to skip")?,
            'w' => job.compared_bytes = number(text, "bytes to compare")?,
            'i' => job.ignores_case = true,
            'z' => job.line_end = 0,
            // The old way: -12 is -f 12.
            digit => {
                let digit = digit.to_digit(10).unwrap_or_default() as usize;
                let fields = old_fields.unwrap_or(0_usize).saturating_mul(10).saturating_add(digit);
                (job.skipped_fields, old_fields) = (fields, Some(fields));
            }
        }
    }
    let chooses = parsed.options.iter().any(|(letter, _)| "cdDu".contains(*letter));
    if let [_, _, extra, ..] = &parsed.operands[..] {
        return Err(TOOL.wrong(format_args!("extra operand {}", quote::word(extra))));
    }
    if job.groups.is_some() && chooses {
        return Err(TOOL.wrong("--group is mutually exclusive with -c/-d/-D/-u"));
    }
    if job.counts && job.later {
        return Err(TOOL.wrong("printing all duplicated lines and repeat counts is meaningless"));
    }
    Ok(job)
}

/// A number; one that is too large is as good as the largest.
fn number(text: &[u8], what: &str) -> Result<usize, i32> {
    let Some(number) = toolkit::count::saturating(text) else {
        toolkit::complain(
            "uniq",
            format_args!("{}: invalid number of {what}", String::from_utf8_lossy(text)),
        );
        return Err(1);
    };
    Ok(number)
}

impl Job {
    fn run(&self, operands: &[Vec<u8>]) -> i32 {
        let input = operands.first().map_or(&b"-"[..], |name| name);
        let opened =
            Source::open(input).map_err(|error| (input, error)).and_then(|source| match operands.get(1) {
                Some(output) if output != b"-" => {
                    redirect(output).map(|()| source).map_err(|error| (&output[..], error))
                }
                _ => Ok(source),
            });
        let source = match opened {
            Ok(source) => source,
            Err((name, error)) => {
                toolkit::complain("uniq", format_args!("{}: {error}", quote::if_needed(name)));
                return 1;
            }
        };
        let mut out = Out::new("uniq");
        let mut reader = Reader { job: self, held: None, repeats: 0, has_groups: false };
        let read = source.for_lines(self.line_end, |block| {
            reader.take(block, out.buffer());
            out.settle();
        });
        if read.is_err() {
            out.complain(format_args!("error reading {}", quote::always(input)));
            return 1;
        }
        reader.finish(out.buffer());
        0
    }

    /// What of a line is compared.
    fn key<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let mut at = 0;
        for _ in 0..self.skipped_fields {
            if at == line.len() {
                break;
            }
            let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n');
            at += line[at..].iter().position(|byte| !is_blank(byte)).unwrap_or(line.len() - at);
            at += line[at..].iter().position(is_blank).unwrap_or(line.len() - at);
        }
        let rest = &line[at.saturating_add(self.skipped_bytes).min(line.len())..];
        &rest[..self.compared_bytes.min(rest.len())]
    }

    fn is_same(&self, one: &[u8], other: &[u8]) -> bool {
        let (one, other) = (self.key(one), self.key(other));
        if self.ignores_case { one.eq_ignore_ascii_case(other) } else { one == other }
    }
}

/// Standard output becomes the file.
fn redirect(output: &[u8]) -> abi::Result<()> {
    let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::TRUNC | open_flags::CLOEXEC;
    let file = abi::open(Dir::CWD, output, flags, 0o666)?;
    abi::dup2(file, 1, false)?;
    abi::close(file)
}

/// How far the input was read.
struct Reader<'a> {
    job: &'a Job,
    /// The line to compare the next with.
    held: Option<Vec<u8>>,
    /// How often it came again.
    repeats: u64,
    /// Whether a group was printed.
    has_groups: bool,
}

impl Reader<'_> {
    /// Goes through whole lines. Within them the line held is one of them; it is copied only at the end.
    fn take(&mut self, block: &[u8], out: &mut Vec<u8>) {
        let before = self.held.take();
        let mut held = before.as_deref();
        let mut rest = block;
        while !rest.is_empty() {
            let length = memchr(self.job.line_end, rest).unwrap_or(rest.len());
            let line = &rest[..length];
            rest = rest.get(length + 1..).unwrap_or_default();
            held = Some(match self.job.groups {
                Some(gap) => self.in_groups(gap, held, line, out),
                None => self.compare(held, line, out),
            });
        }
        self.held = held.map(<[u8]>::to_vec);
    }

    /// Prints every line, with empty ones among the groups.
    fn in_groups<'l>(
        &mut self,
        gap: Gap,
        held: Option<&'l [u8]>,
        line: &'l [u8],
        out: &mut Vec<u8>,
    ) -> &'l [u8] {
        let is_new = held.is_none_or(|held| !self.job.is_same(held, line));
        let gaps_here = match gap {
            Gap::Before | Gap::Both => true,
            Gap::Behind | Gap::Between => self.has_groups,
            Gap::Nowhere => false,
        };
        if is_new && gaps_here {
            out.push(self.job.line_end);
        }
        self.print(line, out);
        self.has_groups = true;
        line
    }

    /// Prints the line held if the next is another, or all are wanted. Answers which is held from now on.
    fn compare<'l>(&mut self, held: Option<&'l [u8]>, line: &'l [u8], out: &mut Vec<u8>) -> &'l [u8] {
        let Some(held) = held else { return line };
        let is_same = self.job.is_same(held, line);
        if is_same {
            self.repeats += 1;
            let gap = self.job.repeated_gap;
            if self.repeats == 1 && (gap == Gap::Before || gap == Gap::Between && self.has_groups) {
                out.push(self.job.line_end);
            }
        } else if self.repeats > 0 {
            self.has_groups = true;
        }
        if is_same && !self.job.later {
            return held;
        }
        self.print_if_wanted(held, is_same, out);
        if !is_same {
            self.repeats = 0;
        }
        line
    }

    fn print_if_wanted(&self, line: &[u8], goes_on: bool, out: &mut Vec<u8>) {
        let wanted = match self.repeats {
            0 => self.job.once,
            _ if goes_on => self.job.later,
            _ => self.job.first,
        };
        if wanted {
            if self.job.counts {
                push_count(self.repeats + 1, out);
            }
            self.print(line, out);
        }
    }

    fn print(&self, line: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(line);
        out.push(self.job.line_end);
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        match (self.job.groups, self.held.take()) {
            (Some(Gap::Behind | Gap::Both), Some(_)) => out.push(self.job.line_end),
            (None, Some(held)) => self.print_if_wanted(&held, false, out),
            _ => {}
        }
    }
}

/// A count in seven columns, and a blank.
fn push_count(count: u64, out: &mut Vec<u8>) {
    let mut digits = [b' '; 20];
    let (mut at, mut rest) = (digits.len(), count);
    while rest > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[at.min(digits.len() - 7)..]);
    out.push(b' ');
}
