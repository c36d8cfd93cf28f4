//! `cut`: parts of each line, by bytes or by fields.

mod fields;
mod list;

use fields::Fields;
use list::{List, Noun, Span};
use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::source::for_operands;
use toolkit::{Arguments, input};

const TOOL: Tool = Tool {
    name: "cut",
    short: "b:c:d:f:nsz",
    long: &[
        ("bytes=", 'b'),
        ("characters=", 'c'),
        ("delimiter=", 'd'),
        ("fields=", 'f'),
        ("complement", 'C'),
        ("only-delimited", 's'),
        ("output-delimiter=", 'o'),
        ("zero-terminated", 'z'),
    ],
    help: "\
Usage: cut OPTION... [FILE]...
Print parts of each line of the FILEs, or of standard input (also as -).

  -b, --bytes=LIST        print these bytes
  -c, --characters=LIST   the same
  -f, --fields=LIST       print these fields, and lines without a delimiter whole
  -d, --delimiter=DELIM   fields end at DELIM, not at a tab
  -s, --only-delimited    leave out lines without a delimiter
  -n                      (ignored)
      --complement        print everything but the LIST
      --output-delimiter=STRING  put STRING between what is printed
  -z, --zero-terminated   lines end with NUL, not newline
      --help        display this help and exit
      --version     output version information and exit

A LIST is made of N, N-, -M and N-M, apart by commas; what is printed keeps its order.
",
    misuse: 1,
};

/// What is to be done with each line.
struct Job {
    list: List,
    is_fields: bool,
    delimiter: u8,
    output_delimiter: Option<Vec<u8>>,
    only_delimited: bool,
    line_end: u8,
}

pub fn main(arguments: Arguments) -> i32 {
    let parsed = TOOL.parse(bytes_of(arguments));
    let checked = parsed.and_then(|parsed| Ok((read_options(&parsed)?, input::or_stdin(parsed.operands))));
    match checked {
        Ok((job, operands)) => job.run(&operands),
        Err(code) => code,
    }
}

fn read_options(parsed: &Parsed) -> Result<Job, i32> {
    let (mut list, mut is_fields, mut complement, mut delimiter) = (None, false, false, None);
    let mut output_delimiter = None;
    let (mut only_delimited, mut line_end) = (false, b'\n');
    for (letter, argument) in &parsed.options {
        let text = argument.as_deref().unwrap_or_default();
        match letter {
            'b' | 'c' | 'f' => {
                if list.replace(text).is_some() {
                    return Err(TOOL.wrong("only one list may be specified"));
                }
                is_fields = *letter == 'f';
            }
            'd' if text.len() > 1 => return Err(TOOL.wrong("the delimiter must be a single character")),
            'd' => delimiter = Some(text.first().copied().unwrap_or(0)),
            // As with -d, nothing stands for NUL.
            'o' => output_delimiter = Some(if text.is_empty() { b"\0".to_vec() } else { text.to_vec() }),
            'C' => complement = true,
            's' => only_delimited = true,
            'z' => line_end = 0,
            _ => {}
        }
    }
    let Some(list) = list else {
        return Err(TOOL.wrong("you must specify a list of bytes, characters, or fields"));
    };
    if delimiter.is_some() && !is_fields {
        return Err(TOOL.wrong("an input delimiter may be specified only when operating on fields"));
    }
    if only_delimited && !is_fields {
        let message = "suppressing non-delimited lines makes sense\n\tonly when operating on fields";
        return Err(TOOL.wrong(message));
    }
    let noun = if is_fields { Noun::Field } else { Noun::Byte };
    let list = List::parse(list, noun).map_err(|message| TOOL.wrong(message))?;
    let list = if complement { list.complement() } else { list };
    let delimiter = delimiter.unwrap_or(b'\t');
    Ok(Job { list, is_fields, delimiter, output_delimiter, only_delimited, line_end })
}

impl Job {
    fn run(&self, operands: &[Vec<u8>]) -> i32 {
        let mut out = Out::new("cut");
        if !self.is_fields {
            return for_operands(&mut out, operands, |out, source| {
                let mut bytes = Bytes { job: self, at: 0 };
                source.for_blocks(|block| {
                    bytes.cut(block, out.buffer());
                    out.settle();
                })?;
                if bytes.at > 0 {
                    out.put([self.line_end]);
                }
                Ok(())
            });
        }
        let between = self.output_delimiter.clone().unwrap_or_else(|| vec![self.delimiter]);
        let fields = Fields {
            list: &self.list,
            delimiter: self.delimiter,
            between: &between,
            only_delimited: self.only_delimited,
            line_end: self.line_end,
        };
        for_operands(&mut out, operands, |out, source| {
            if self.delimiter == self.line_end {
                return fields.cut_lines(source, out);
            }
            source.for_lines(self.line_end, |block| {
                fields.cut(block, out.buffer());
                out.settle();
            })
        })
    }
}

/// Cuts lines by bytes, however long they are: what is known of one is how far it was read.
struct Bytes<'a> {
    job: &'a Job,
    /// How many bytes of the line came before this block.
    at: u64,
}

impl Bytes<'_> {
    fn cut(&mut self, block: &[u8], out: &mut Vec<u8>) {
        let mut rest = block;
        while let Some(length) = memchr::memchr(self.job.line_end, rest) {
            self.cut_piece(&rest[..length], out);
            out.push(self.job.line_end);
            self.at = 0;
            rest = &rest[length + 1..];
        }
        self.cut_piece(rest, out);
        self.at += rest.len() as u64;
    }

    /// Takes what is wanted from a part of a line.
    fn cut_piece(&self, piece: &[u8], out: &mut Vec<u8>) {
        let (from, to) = (self.at, self.at + piece.len() as u64);
        for (number, span) in self.job.list.spans().iter().enumerate() {
            let Span { first, last } = *span;
            // Bytes are numbered from 1.
            let (start, end) = ((first - 1).max(from), last.min(to));
            if first > to {
                break;
            }
            if start >= end {
                continue;
            }
            if let Some(between) = &self.job.output_delimiter
                && number > 0
                && start == first - 1
            {
                out.extend_from_slice(between);
            }
            out.extend_from_slice(&piece[(start - from) as usize..(end - from) as usize]);
        }
    }
}
