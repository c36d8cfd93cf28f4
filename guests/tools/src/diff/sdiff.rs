//! `sdiff`: two files side by side, and merged by asking.

use super::compare::{self, Hunk};
use super::text::{Ignored, Text};
use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;

const TOOL: Tool = Tool {
    name: "sdiff",
    short: "o:iEZbWBI:alw:stdHv",
    long: &[
        ("output=", 'o'),
        ("ignore-case", 'i'),
        ("ignore-tab-expansion", 'E'),
        ("ignore-trailing-space", 'Z'),
        ("ignore-space-change", 'b'),
        ("ignore-all-space", 'W'),
        ("ignore-blank-lines", 'B'),
        ("ignore-matching-lines=", 'I'),
        ("strip-trailing-cr", 'c'),
        ("text", 'a'),
        ("width=", 'w'),
        ("left-column", 'l'),
        ("suppress-common-lines", 's'),
        ("expand-tabs", 't'),
        ("minimal", 'd'),
        ("speed-large-files", 'H'),
    ],
    help: "\
Usage: sdiff [OPTION]... FILE1 FILE2
Side-by-side merge of differences between FILE1 and FILE2.

  -o, --output=FILE            operate interactively, sending output to FILE
  -i, --ignore-case            consider upper- and lower-case to be the same
  -E, --ignore-tab-expansion   ignore changes due to tab expansion
  -Z, --ignore-trailing-space  ignore white space at line end
  -b, --ignore-space-change    ignore changes in the amount of white space
  -W, --ignore-all-space       ignore all white space
  -B, --ignore-blank-lines     ignore changes whose lines are all blank
  -I, --ignore-matching-lines=RE  ignore changes all whose lines match RE
      --strip-trailing-cr      strip trailing carriage return on input
  -a, --text                   treat all files as text
  -w, --width=NUM              output at most NUM (default 130) print columns
  -l, --left-column            output only the left column of common lines
  -s, --suppress-common-lines  do not output common lines
  -t, --expand-tabs            expand tabs to spaces in output
  -d, --minimal                try hard to find a smaller set of changes
      --help                   display this help and exit
      --version                output version information and exit

With -o, answer l or r to take the left or the right lines, 1 and 2 for the
same, s and v to print common lines or not, and q to stop.
Exit status is 0 if inputs are the same, 1 if different, 2 if trouble.
",
    misuse: 2,
};

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut words: Vec<Vec<u8>> = vec![b"-y".to_vec()];
    let (mut ignored, mut output) = (Ignored::default(), None);
    for (letter, argument) in &parsed.options {
        let word: &[u8] = match letter {
            'o' => {
                output = argument.clone();
                continue;
            }
            'W' => b"-w",
            'w' => b"-W",
            'l' => b"--left-column",
            's' => b"--suppress-common-lines",
            'c' => b"--strip-trailing-cr",
            'v' => return Err(TOOL.answer(toolkit::args::Refusal::Version)),
            letter => &format!("-{letter}").into_bytes(),
        };
        match letter {
            'i' => ignored.case = true,
            'E' => ignored.tab_expansion = true,
            'Z' => ignored.trailing_space = true,
            'b' => ignored.space_change = true,
            'W' => ignored.all_space = true,
            'c' => ignored.trailing_cr = true,
            _ => {}
        }
        words.push(word.to_vec());
        words.extend(argument.clone());
    }
    match &parsed.operands[..] {
        [] => return Err(TOOL.wrong("missing operand after 'sdiff'")),
        [only] => return Err(TOOL.wrong(format_args!("missing operand after {}", quote::plain_word(only)))),
        [_, _, extra, ..] => {
            return Err(TOOL.wrong(format_args!("extra operand {}", quote::plain_word(extra))));
        }
        [left, right] => {
            if let Some(output) = output {
                return merge(left, right, &output, ignored);
            }
            words.extend([b"--".to_vec(), left.clone(), right.clone()]);
        }
    }
    super::run(words)
}

fn read(path: &[u8]) -> Result<Vec<u8>, i32> {
    let content = match path {
        b"-" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(abi::Errno::from),
    };
    content.map_err(|error| {
        complain("sdiff", format_args!("{}: {error}", quote::if_needed(path)));
        2
    })
}

/// Shows each difference and asks which lines are to be taken.
fn merge(left: &[u8], right: &[u8], output: &[u8], ignored: Ignored) -> Result<i32, i32> {
    let (left, right) = (Text::new(&read(left)?, ignored), Text::new(&read(right)?, ignored));
    let hunks = compare::hunks(&left.keys(ignored), &right.keys(ignored));
    let (mut merged, mut at) = (Vec::new(), 0);
    for hunk in &hunks {
        (at..hunk.old.0).for_each(|line| merged.extend_from_slice(&left.lines[line]));
        merged.extend(chosen(&left, &right, hunk)?);
        at = hunk.old.1;
    }
    (at..left.lines.len()).for_each(|line| merged.extend_from_slice(&left.lines[line]));
    std::fs::write(files::path(output), merged).map_err(|error| {
        complain("sdiff", format_args!("{}: {}", quote::if_needed(output), abi::Errno::from(error)));
        2
    })?;
    Ok(i32::from(!hunks.is_empty()))
}

fn chosen(left: &Text, right: &Text, hunk: &Hunk) -> Result<Vec<u8>, i32> {
    let lines = |text: &Text, range: (usize, usize)| text.lines[range.0..range.1].concat();
    let (old, new) = (lines(left, hunk.old), lines(right, hunk.new));
    let mut shown = Vec::new();
    shown.extend(old.split_inclusive(|&byte| byte == b'\n').flat_map(|line| [b"< ", line].concat()));
    shown.extend(new.split_inclusive(|&byte| byte == b'\n').flat_map(|line| [b"> ", line].concat()));
    let _ = abi::write_all(1, &shown);
    loop {
        let _ = abi::write_all(1, b"%");
        let mut answer = Vec::new();
        let mut byte = [0];
        while let Ok(1) = toolkit::source::read(0, &mut byte) {
            if byte[0] == b'\n' {
                break;
            }
            answer.push(byte[0]);
        }
        match answer.trim_ascii() {
            b"l" | b"1" => return Ok(old),
            b"r" | b"2" => return Ok(new),
            b"s" | b"v" => {}
            b"q" => return Err(1),
            b"" if byte[0] != b'\n' => return Err(2),
            _ => {
                let _ = abi::write_all(1, b"l: take left lines; r: take right lines; q: stop\n");
            }
        }
    }
}
