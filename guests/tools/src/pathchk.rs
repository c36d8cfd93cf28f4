//! `pathchk`: whether names are valid, here or on any Unix.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "pathchk",
    short: "+pP",
    long: &[("portability", 'a')],
    help: "\
Usage: pathchk [OPTION]... NAME...
Say which NAMEs are not valid, or not portable.

  -p                 for most Unix systems, not this one
  -P                 also those that are empty or have a part with a leading '-'
      --portability  both: for all Unix systems
      --help         display this help and exit
      --version      output version information and exit
",
    misuse: 1,
};

/// What a name is held against.
#[derive(Clone, Copy, Default)]
struct Rules {
    is_posix: bool,
    is_strict: bool,
}

/// The lengths that every system allows, with the end of a string; and those of this one.
const POSIX_PATH: usize = 256;
const POSIX_NAME: usize = 14;
const OUR_PATH: usize = 4096;
const OUR_NAME: usize = 255;

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut rules = Rules::default();
    for (letter, _) in parsed.options {
        rules.is_posix |= letter != 'P';
        rules.is_strict |= letter != 'p';
    }
    if parsed.operands.is_empty() {
        return Err(TOOL.wrong("missing operand"));
    }
    let mut code = 0;
    for name in parsed.operands {
        if let Err(message) = check(&name, rules) {
            complain("pathchk", message);
            code = 1;
        }
    }
    Ok(code)
}

fn check(path: &[u8], rules: Rules) -> Result<(), String> {
    let parts = || path.split(|&byte| byte == b'/').filter(|part| !part.is_empty());
    if rules.is_strict && parts().any(|part| part.starts_with(b"-")) {
        return Err(format!("leading '-' in a component of file name {}", quote::always(path)));
    }
    if rules.is_posix || rules.is_strict {
        if path.is_empty() {
            return Err("empty file name".into());
        }
        if rules.is_posix {
            check_characters(path)?;
        }
    }
    let exists = abi::stat(Dir::CWD, path, false);
    if !rules.is_posix {
        match exists {
            Ok(_) => return Ok(()),
            Err(Errno::NOENT) if !path.is_empty() => {}
            Err(error) => return Err(format!("{}: {error}", quote::if_needed(path))),
        }
    }
    let (most, most_of_part) = if rules.is_posix { (POSIX_PATH, POSIX_NAME) } else { (OUR_PATH, OUR_NAME) };
    if path.len() >= most {
        let length = path.len();
        return Err(format!(
            "limit {} exceeded by length {length} of file name {}",
            most - 1,
            quote::always(path)
        ));
    }
    match parts().find(|part| part.len() > most_of_part) {
        None => Ok(()),
        Some(part) => Err(format!(
            "limit {most_of_part} exceeded by length {} of file name component {}",
            part.len(),
            quote::word(part)
        )),
    }
}

fn check_characters(path: &[u8]) -> Result<(), String> {
    let is_portable = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-/".contains(byte);
    let Some(at) = path.iter().position(|byte| !is_portable(byte)) else { return Ok(()) };
    let end = (1..=4)
        .find(|length| path.get(at..at + length).is_some_and(|text| std::str::from_utf8(text).is_ok()));
    let character = &path[at..at + end.unwrap_or(1)];
    Err(format!("nonportable character {} in file name {}", quote::word(character), quote::always(path)))
}
