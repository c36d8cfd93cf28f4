//! `tac`: files with their last line first.

use toolkit::args::{Tool, bytes_of};
use toolkit::input;
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};
use wardian_regex::{Options, Regex, Syntax};

const TOOL: Tool = Tool {
    name: "tac",
    short: "brs:",
    long: &[("before", 'b'), ("regex", 'r'), ("separator=", 's')],
    help: "\
Usage: tac [OPTION]... [FILE]...
Write each FILE to standard output, last line first.

With no FILE, or when FILE is -, read standard input.

  -b, --before             attach the separator before instead of after
  -r, --regex              interpret the separator as a regular expression
  -s, --separator=STRING   use STRING as the separator instead of newline
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let (mut before, mut is_regex, mut separator) = (false, false, b"\n".to_vec());
    for (letter, text) in parsed.options {
        match letter {
            'b' => before = true,
            'r' => is_regex = true,
            _ => separator = text.unwrap_or_default(),
        }
    }
    if separator.is_empty() {
        if is_regex {
            complain("tac", "separator cannot be empty");
            return Err(1);
        }
        separator.push(0);
    }
    let regex = if is_regex { Some(pattern(&separator)?) } else { None };
    let mut out = Out::new("tac");
    let mut code = 0;
    for operand in input::or_stdin(parsed.operands) {
        match content(&operand) {
            Ok(content) => {
                let found = match &regex {
                    Some(regex) => matches_of(regex, &content),
                    None => places_of(&separator, &content),
                };
                reversed(&content, &found, before).iter().for_each(|record| out.put(record));
            }
            Err(message) => {
                out.flush();
                complain("tac", message);
                code = 1;
            }
        }
    }
    Ok(code)
}

fn content(operand: &[u8]) -> Result<Vec<u8>, String> {
    let name = quote::always(operand);
    if operand == b"-" {
        return files::read_fd(0).map_err(|error| format!("'standard input': read error: {error}"));
    }
    if abi::stat(Dir::CWD, operand, true).is_ok_and(|stat| stat.is_dir()) {
        return Err(format!("{}: read error: Is a directory", quote::if_needed(operand)));
    }
    std::fs::read(files::path(operand))
        .map_err(|error| format!("failed to open {name} for reading: {}", Errno::from(error)))
}

fn pattern(text: &[u8]) -> Result<Regex, i32> {
    Regex::new(text, &Options::new(Syntax::Basic)).map_err(|error| {
        complain("tac", error);
        1
    })
}

/// Where the separators start and end.
fn places_of(separator: &[u8], content: &[u8]) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(found) = find(&content[at..], separator) {
        places.push((at + found, at + found + separator.len()));
        at += found + separator.len();
    }
    places
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    match wanted {
        [byte] => text.iter().position(|other| other == byte),
        _ => text.windows(wanted.len()).position(|window| window == wanted),
    }
}

fn matches_of(regex: &Regex, content: &[u8]) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some((from, to)) = regex.find_at(content, at) {
        if from < to {
            places.push((from, to));
        }
        at = if from < to { to } else { to + 1 };
        if at > content.len() {
            break;
        }
    }
    places
}

/// The records, the last first, each with its separator.
fn reversed<'a>(content: &'a [u8], separators: &[(usize, usize)], before: bool) -> Vec<&'a [u8]> {
    let cuts = separators.iter().map(|(start, end)| if before { *start } else { *end });
    let mut bounds: Vec<usize> = [0].into_iter().chain(cuts).chain([content.len()]).collect();
    bounds.dedup();
    bounds.windows(2).rev().map(|pair| &content[pair[0]..pair[1]]).collect()
}
