//! `diff3`: what two files made of a third, and both changes in one file.

use super::compare::{self, Hunk};
use super::text::{Ignored, Text};
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;

const TOOL: Tool = Tool {
    name: "diff3",
    short: "aAeExX3imL:Tv",
    long: &[
        ("show-all", 'A'),
        ("ed", 'e'),
        ("show-overlap", 'E'),
        ("easy-only", '3'),
        ("overlap-only", 'x'),
        ("merge", 'm'),
        ("text", 'a'),
        ("strip-trailing-cr", 'c'),
        ("initial-tab", 'T'),
        ("label=", 'L'),
    ],
    help: "\
Usage: diff3 [OPTION]... MYFILE OLDFILE YOURFILE
Compare three files line by line.

  -m, --merge                 output actual merged file, according to
                                -A if no other options are given
  -A, --show-all              with -m: all changes, bracketing conflicts
  -E, --show-overlap          with -m: changes, bracketing those that overlap
  -e, --ed                    with -m: changes from OLDFILE to YOURFILE
  -3, --easy-only             with -m: only changes that do not overlap
  -x, --overlap-only          with -m: only changes that overlap
  -X                          like -x, but bracket conflicts
  -a, --text                  treat all files as text
      --strip-trailing-cr     strip trailing carriage return on input
  -T, --initial-tab           make tabs line up by prepending a tab
  -L, --label=LABEL           use LABEL instead of file name
                                (can be repeated up to three times)
      --help                  display this help and exit
      --version               output version information and exit

Scripts for ed are not written: use -m.
If a FILE is '-', read standard input.
Exit status is 0 if successful, 1 if conflicts, 2 if trouble.
",
    misuse: 2,
};

/// Which of the three files is unlike the two others.
#[derive(Clone, Copy, PartialEq)]
enum Odd {
    One(usize),
    All,
}

/// Where the files differ: the lines of each, from and to.
struct Block {
    lines: [(usize, usize); 3],
    odd: Odd,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let (mut style, mut merges, mut labels) = (None, false, Vec::new());
    let (mut ignored, mut indent) = (Ignored::default(), "  ");
    for (letter, argument) in parsed.options {
        match letter {
            'm' => merges = true,
            'A' | 'e' | 'E' | '3' | 'x' | 'X' if style.is_some() => {
                return Err(TOOL.wrong("incompatible options"));
            }
            'A' | 'e' | 'E' | '3' | 'x' | 'X' => style = Some(letter),
            'i' => return Err(TOOL.wrong("-i is not supported: scripts for ed are not written")),
            'c' => ignored.trailing_cr = true,
            'T' => indent = "\t",
            'L' => labels.push(argument.unwrap_or_default()),
            'v' => return Err(TOOL.answer(toolkit::args::Refusal::Version)),
            _ => {}
        }
    }
    if style.is_some() && !merges {
        return Err(TOOL.wrong("scripts for ed are not written; use -m to merge"));
    }
    let names = match <[Vec<u8>; 3]>::try_from(parsed.operands) {
        Ok(names) => names,
        Err(operands) => {
            return Err(match (operands.get(3), operands.last()) {
                (Some(extra), _) => TOOL.wrong(format_args!("extra operand {}", quote::plain_word(extra))),
                (None, Some(last)) => {
                    TOOL.wrong(format_args!("missing operand after {}", quote::plain_word(last)))
                }
                (None, None) => TOOL.wrong("missing operand after 'diff3'"),
            });
        }
    };
    let mut texts = Vec::new();
    for name in &names {
        texts.push(Text::new(&read(name)?, ignored));
    }
    let keys: Vec<Vec<Vec<u8>>> = texts.iter().map(|text| text.keys(ignored)).collect();
    let mut out = Out::new("diff3");
    if !merges {
        // What is listed is what differs from the third.
        let blocks = blocks(&keys, 2);
        blocks.iter().for_each(|block| list(block, &texts, indent, &mut out));
        return Ok(0);
    }
    let labels: Vec<Vec<u8>> =
        (0..3).map(|at| labels.get(at).cloned().unwrap_or_else(|| names[at].clone())).collect();
    Ok(merge(&blocks(&keys, 1), &texts, &labels, style.unwrap_or('A'), &mut out))
}

fn read(path: &[u8]) -> Result<Vec<u8>, i32> {
    let content = match path {
        b"-" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(abi::Errno::from),
    };
    content.map_err(|error| {
        complain("diff3", format_args!("{}: {error}", quote::if_needed(path)));
        2
    })
}

/// Brings the changes that two files made of a third together: those that overlap or touch are one.
fn blocks(keys: &[Vec<Vec<u8>>], base: usize) -> Vec<Block> {
    let others: [usize; 2] = if base == 2 { [0, 1] } else { [0, 2] };
    let hunks: Vec<Vec<Hunk>> =
        others.iter().map(|other| compare::hunks(&keys[base], &keys[*other])).collect();
    let mut at = [0, 0];
    // How far each file is ahead of the third.
    let mut shift = [0_isize, 0];
    let mut blocks = Vec::new();
    loop {
        let start = (0..2).filter_map(|side| hunks[side].get(at[side]).map(|hunk| hunk.old.0)).min();
        let Some(start) = start else { return blocks };
        let mut end = start;
        let begins = [0, 1].map(|side| (start as isize + shift[side]) as usize);
        loop {
            let touching =
                (0..2).find(|side| hunks[*side].get(at[*side]).is_some_and(|hunk| hunk.old.0 <= end));
            let Some(side) = touching else { break };
            let hunk = &hunks[side][at[side]];
            end = end.max(hunk.old.1);
            shift[side] = hunk.new.1 as isize - hunk.old.1 as isize;
            at[side] += 1;
        }
        let mut lines = [(start, end); 3];
        for (side, other) in others.iter().enumerate() {
            lines[*other] = (begins[side], (end as isize + shift[side]) as usize);
        }
        let part = |file: usize| &keys[file][lines[file].0..lines[file].1];
        let odd = match (part(0) == part(1), part(1) == part(2), part(0) == part(2)) {
            (true, ..) => Odd::One(2),
            (_, true, _) => Odd::One(0),
            (.., true) => Odd::One(1),
            _ => Odd::All,
        };
        blocks.push(Block { lines, odd });
    }
}

fn list(block: &Block, texts: &[Text], indent: &str, out: &mut Out) {
    let (mark, silent, order) = match block.odd {
        Odd::All => ("====\n".to_owned(), 3, [0, 1, 2]),
        Odd::One(odd) => {
            let order = if odd == 1 { [0, 2, 1] } else { [0, 1, 2] };
            (format!("===={}\n", odd + 1), usize::from(odd == 0), order)
        }
    };
    out.put(mark);
    for file in order {
        let (from, to) = block.lines[file];
        let place = match to - from {
            0 => format!("{from}a"),
            1 => format!("{to}c"),
            _ => format!("{},{to}c", from + 1),
        };
        out.put(format!("{}:{place}\n", file + 1));
        if file == silent {
            continue;
        }
        for line in &texts[file].lines[from..to] {
            out.put(indent);
            out.put(line);
            if !line.ends_with(b"\n") {
                out.put("\n\\ No newline at end of file\n");
            }
        }
    }
}

/// Writes the first file with the changes of the third; 1 if there are conflicts.
fn merge(blocks: &[Block], texts: &[Text], labels: &[Vec<u8>], style: char, out: &mut Out) -> i32 {
    let put = |file: usize, (from, to): (usize, usize), out: &mut Out| {
        texts[file].lines[from..to].iter().for_each(|line| out.put(line));
    };
    let mark = |sign: &str, label: &[u8], out: &mut Out| {
        out.put(sign);
        out.put([b" ", label, b"\n"].concat());
    };
    let (mut at, mut conflicts) = (0, 0);
    for block in blocks {
        let [mine, old, yours] = block.lines;
        put(0, (at, mine.0), out);
        at = mine.1;
        match (block.odd, style) {
            (Odd::One(0), _) => put(0, mine, out),
            (Odd::One(2), 'x' | 'X') => put(0, mine, out),
            (Odd::One(2), _) => put(2, yours, out),
            (Odd::One(_), 'A') => {
                conflicts = 1;
                mark("<<<<<<<", &labels[1], out);
                put(1, old, out);
                out.put("=======\n");
                put(2, yours, out);
                mark(">>>>>>>", &labels[2], out);
            }
            (Odd::One(_), _) => put(0, mine, out),
            (Odd::All, 'e' | 'x') => put(2, yours, out),
            (Odd::All, '3') => put(0, mine, out),
            (Odd::All, style) => {
                conflicts = 1;
                mark("<<<<<<<", &labels[0], out);
                put(0, mine, out);
                if style == 'A' {
                    mark("|||||||", &labels[1], out);
                    put(1, old, out);
                }
                out.put("=======\n");
                put(2, yours, out);
                mark(">>>>>>>", &labels[2], out);
            }
        }
    }
    put(0, (at, texts[0].lines.len()), out);
    conflicts
}
