//! `envsubst`: the values of variables in place of their names.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::program::value_of;
use toolkit::{Arguments, complain, files};
use wardian_abi as abi;

const TOOL: Tool = Tool {
    name: "envsubst",
    short: "vhV",
    long: &[("variables", 'v')],
    help: "\
Usage: envsubst [OPTION] [SHELL-FORMAT]

Substitutes the values of environment variables.

  -v, --variables             output the variables occurring in SHELL-FORMAT
      --help                  display this help and exit
      --version               output version information and exit

In normal operation mode, standard input is copied to standard output,
with references to environment variables of the form $VARIABLE or ${VARIABLE}
being replaced with the corresponding values.  If a SHELL-FORMAT is given,
only those environment variables that are referenced in SHELL-FORMAT are
substituted.
",
    misuse: 1,
};

/// A text with references to variables.
enum Piece<'a> {
    Text(&'a [u8]),
    /// A reference, and the name in it.
    Variable(&'a [u8], &'a [u8]),
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut out = Out::new("envsubst");
    if parsed.operands.len() > 1 {
        complain("envsubst", "too many arguments");
        return Err(1);
    }
    let format = parsed.operands.first();
    let names = format.map(|format| names_in(format));
    if !parsed.options.is_empty() {
        let Some(names) = names else {
            complain("envsubst", "missing arguments");
            return Err(1);
        };
        names.iter().for_each(|name| out.put([name, b"\n".as_slice()].concat()));
        return Ok(0);
    }
    let content = files::read_fd(0).map_err(|error| {
        complain("envsubst", format_args!("error while reading \"standard input\": {error}"));
        1
    })?;
    let environment = abi::environ();
    for piece in pieces_of(&content) {
        match piece {
            Piece::Text(text) => out.put(text),
            Piece::Variable(whole, name) => {
                let wanted = names.as_ref().is_none_or(|names| names.iter().any(|known| known == name));
                match wanted {
                    true => out.put(value_of(&environment, name).unwrap_or_default()),
                    false => out.put(whole),
                }
            }
        }
    }
    Ok(0)
}

fn names_in(format: &[u8]) -> Vec<Vec<u8>> {
    let name = |piece| match piece {
        Piece::Variable(_, name) => Some(name.to_vec()),
        Piece::Text(_) => None,
    };
    pieces_of(format).into_iter().filter_map(name).collect()
}

fn pieces_of(text: &[u8]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let plain = rest.iter().position(|&byte| byte == b'$').unwrap_or(rest.len());
        if plain > 0 {
            pieces.push(Piece::Text(&rest[..plain]));
            rest = &rest[plain..];
            continue;
        }
        let braced = rest.get(1) == Some(&b'{');
        let start = 1 + usize::from(braced);
        let length = name_length(&rest[start..]);
        let closed = !braced || rest.get(start + length) == Some(&b'}');
        let end = if length > 0 && closed { start + length + usize::from(braced) } else { 1 };
        pieces.push(match end {
            1 => Piece::Text(&rest[..1]),
            _ => Piece::Variable(&rest[..end], &rest[start..start + length]),
        });
        rest = &rest[end..];
    }
    pieces
}

fn name_length(text: &[u8]) -> usize {
    match text.first() {
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => {
            text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
        }
        _ => 0,
    }
}
