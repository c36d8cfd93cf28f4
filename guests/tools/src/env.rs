//! `env`: runs a program in a changed environment, or prints the environment.

use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, program, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "env",
    short: "+C:iS:u:v0",
    long: &[
        ("ignore-environment", 'i'),
        ("null", '0'),
        ("unset=", 'u'),
        ("chdir=", 'C'),
        ("split-string=", 'S'),
        ("debug", 'v'),
    ],
    help: "\
Usage: env [OPTION]... [-] [NAME=VALUE]... [COMMAND [ARG]...]
Set each NAME to VALUE in the environment and run COMMAND.

  -i, --ignore-environment  start with an empty environment
  -0, --null           end each output line with NUL, not newline
  -u, --unset=NAME     remove variable from the environment
  -C, --chdir=DIR      change working directory to DIR
  -S, --split-string=S  process and split S into separate arguments;
                        used to pass multiple arguments on shebang lines
  -v, --debug          print verbose information for each processing step
      --help        display this help and exit
      --version     output version information and exit

A mere - implies -i.  If no COMMAND, print the resulting environment.
",
    misuse: CANCELED,
};

const CANCELED: i32 = 125;

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let Parsed { options, mut operands } = parse(arguments)?;
    let has = |letter| options.iter().any(|option| option.0 == letter);
    let dash = operands.first().is_some_and(|word| word == b"-");
    if dash {
        operands.remove(0);
    }
    let mut environment = if has('i') || dash { Vec::new() } else { abi::environ() };
    let mut directory = None;
    for (letter, text) in &options {
        match (letter, text) {
            ('u', Some(name)) => unset(&mut environment, name)?,
            ('C', Some(path)) => directory = Some(path),
            _ => {}
        }
    }
    let assignments = operands.iter().take_while(|word| word.contains(&b'=')).count();
    let command = operands.split_off(assignments);
    operands.into_iter().for_each(|pair| set(&mut environment, pair));
    if command.is_empty() {
        if directory.is_some() {
            return Err(TOOL.wrong("must specify command with --chdir (-C)"));
        }
        print(&environment, if has('0') { b"\0" } else { b"\n" });
        return Ok(0);
    }
    if has('0') {
        return Err(TOOL.wrong("cannot specify --null (-0) with command"));
    }
    if let Some(path) = directory {
        change_directory(path)?;
    }
    if has('v') {
        explain(&command);
    }
    Err(start(&command, &environment))
}

/// The options, with every `-S` replaced by what it stands for, which may be options again.
fn parse(mut arguments: Vec<Vec<u8>>) -> Result<Parsed, i32> {
    loop {
        let Some((at, text, after)) = split_option(&arguments) else { return TOOL.parse(arguments) };
        let mut replaced = arguments[..at].to_vec();
        replaced.extend(split(&text)?);
        replaced.extend_from_slice(&arguments[after..]);
        arguments = replaced;
    }
}

/// The first `-S` before the operands: where it is, its text, and where the arguments after it start.
fn split_option(arguments: &[Vec<u8>]) -> Option<(usize, Vec<u8>, usize)> {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        if let Some(text) = word.strip_prefix(b"--split-string=") {
            return Some((at, text.to_vec(), at + 1));
        }
        let takes_next = matches!(word.as_slice(), b"--unset" | b"--chdir");
        if word == b"--split-string" {
            return Some((at, arguments.get(at + 1)?.clone(), at + 2));
        } else if word == b"--" || !word.starts_with(b"-") || word == b"-" {
            return None;
        }
        at += 1 + usize::from(takes_next);
        if word.starts_with(b"--") {
            continue;
        }
        let Some(letter) = word.iter().position(|byte| b"uCS".contains(byte)) else { continue };
        let attached = &word[letter + 1..];
        match (word[letter], attached.is_empty()) {
            (b'S', true) => return Some((at - 1, arguments.get(at)?.clone(), at + 1)),
            (b'S', false) => return Some((at - 1, attached.to_vec(), at)),
            (_, true) => at += 1,
            _ => {}
        }
    }
    None
}

/// Splits the text of `-S` into words.
fn split(text: &[u8]) -> Result<Vec<Vec<u8>>, i32> {
    let refuse = |why: String| {
        complain("env", why);
        CANCELED
    };
    let mut words: Vec<Vec<u8>> = Vec::new();
    let (mut word, mut quote_mark): (Option<Vec<u8>>, Option<u8>) = (None, None);
    let mut rest = text.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match (byte, quote_mark) {
            (b'\'' | b'"', None) => {
                quote_mark = Some(byte);
                word.get_or_insert_default();
            }
            (byte, Some(mark)) if byte == mark => quote_mark = None,
            (b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, None) => words.extend(word.take()),
            (b'#', None) if word.is_none() => break,
            (b'\\', Some(b'\'')) if !matches!(rest.peek(), Some(b'\\' | b'\'')) => {
                word.get_or_insert_default().push(b'\\')
            }
            (b'\\', _) => {
                let escape =
                    rest.next().ok_or_else(|| refuse("invalid backslash at end of string in -S".into()))?;
                match escape {
                    b'c' if quote_mark.is_some() => {
                        return Err(refuse("'\\c' must not appear in double-quoted -S string".into()));
                    }
                    b'c' => break,
                    b'_' if quote_mark.is_none() => words.extend(word.take()),
                    escape => {
                        let byte = escaped(escape).ok_or_else(|| {
                            refuse(format!("invalid sequence '\\{}' in -S", char::from(escape)))
                        })?;
                        word.get_or_insert_default().push(byte);
                    }
                }
            }
            (b'$', None | Some(b'"')) => {
                let here = &text[text.len() - rest.len() - 1..];
                let name = variable_name(&mut rest).ok_or_else(|| {
                    let here = String::from_utf8_lossy(here);
                    refuse(format!("only ${{VARNAME}} expansion is supported, error at: {here}"))
                })?;
                let value = program::value_of(&abi::environ(), &name).map(<[u8]>::to_vec);
                if let Some(value) = value {
                    word.get_or_insert_default().extend(value);
                }
            }
            (byte, _) => word.get_or_insert_default().push(byte),
        }
    }
    if quote_mark.is_some() {
        return Err(refuse("no terminating quote in -S string".into()));
    }
    words.extend(word);
    Ok(words)
}

fn escaped(letter: u8) -> Option<u8> {
    Some(match letter {
        b'_' => b' ',
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'#' | b'$' | b'"' | b'\'' | b'\\' => letter,
        _ => return None,
    })
}

/// Takes `{NAME}`.
fn variable_name(rest: &mut impl Iterator<Item = u8>) -> Option<Vec<u8>> {
    rest.next().filter(|&byte| byte == b'{')?;
    let mut name = Vec::new();
    loop {
        match rest.next()? {
            b'}' => return Some(name).filter(|name| !name.is_empty()),
            byte if byte.is_ascii_alphanumeric() || byte == b'_' => name.push(byte),
            _ => return None,
        }
    }
}

fn is_named(pair: &[u8], name: &[u8]) -> bool {
    pair.strip_prefix(name).is_some_and(|rest| rest.starts_with(b"="))
}

fn unset(environment: &mut Vec<Vec<u8>>, name: &[u8]) -> Result<(), i32> {
    if name.is_empty() || name.contains(&b'=') {
        complain("env", format_args!("cannot unset {}: Invalid argument", quote::word(name)));
        return Err(CANCELED);
    }
    environment.retain(|pair| !is_named(pair, name));
    Ok(())
}

fn set(environment: &mut Vec<Vec<u8>>, pair: Vec<u8>) {
    let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
    match environment.iter_mut().find(|known| is_named(known, name)) {
        Some(known) => *known = pair,
        None => environment.push(pair),
    }
}

fn print(environment: &[Vec<u8>], end: &[u8]) {
    let mut out = Out::new("env");
    environment.iter().for_each(|pair| out.put([pair, end].concat()));
}

fn change_directory(path: &[u8]) -> Result<(), i32> {
    abi::chdir(Dir::CWD, path).map_err(|error| {
        complain("env", format_args!("cannot change directory to {}: {error}", quote::always(path)));
        CANCELED
    })
}

fn explain(command: &[Vec<u8>]) {
    let mut text = format!("executing: {}\n", String::from_utf8_lossy(&command[0]));
    for (at, word) in command.iter().enumerate() {
        text += &format!("   arg[{at}]= {}\n", quote::word(word));
    }
    let _ = abi::write_all(2, text.as_bytes());
}

fn start(command: &[Vec<u8>], environment: &[Vec<u8>]) -> i32 {
    let error = program::exec(command, environment, b"");
    complain("env", format_args!("{}: {error}", quote::word(&command[0])));
    if error == Errno::NOENT && command[0].iter().any(u8::is_ascii_whitespace) {
        complain("env", "use -[v]S to pass options in shebang lines");
    }
    program::code_for(error)
}
