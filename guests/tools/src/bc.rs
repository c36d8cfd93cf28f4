//! `bc`: a calculator with numbers of any length, and a small language around it, as GNU bc 1.07 has it.

mod code;
mod lexer;
mod library;
mod machine;
pub mod number;
pub mod output;
mod parser;

use code::{Body, Function, Own};
use lexer::{Lexer, Source};
use machine::{Machine, Names};
use parser::{Item, Parser, Strictness};
use toolkit::Arguments;
use toolkit::args::{Tool, bytes_of};

const TOOL: Tool = Tool {
    name: "bc",
    short: "hilqswv",
    long: &[("interactive", 'i'), ("mathlib", 'l'), ("quiet", 'q'), ("standard", 's'), ("warn", 'w')],
    help: "\
Usage: bc [OPTION]... [FILE]...
Calculate what the FILEs say, then what standard input does.

  -i, --interactive  as at a terminal
  -l, --mathlib      load sine, cosine, logarithm and their kin; scale is 20
  -q, --quiet        no greeting
  -s, --standard     refuse what POSIX does not know
  -w, --warn         warn of what POSIX does not know
  -h, --help         display this help and exit
  -v, --version      output version information and exit
",
    misuse: 1,
};

/// The digits after the point that the library works with until told otherwise.
const LIBRARY_SCALE: usize = 20;

pub fn main(arguments: Arguments) -> i32 {
    let from_environment = std::env::var("BC_ENV_ARGS").unwrap_or_default();
    let words = from_environment.split_whitespace().map(|word| word.as_bytes().to_vec());
    let parsed = match TOOL.parse(words.chain(bytes_of(arguments)).collect()) {
        Ok(parsed) => parsed,
        Err(code) => {
            if code != 0 {
                // There is nowhere left to say that this failed.
                let _ = wardian_abi::write_all(1, TOOL.help.as_bytes());
            }
            return code;
        }
    };
    let mut strictness = Strictness::Lax;
    let mut wants_library = false;
    for (letter, _) in &parsed.options {
        match letter {
            'h' => return TOOL.parse(vec![b"--help".to_vec()]).err().unwrap_or(0),
            'v' => return TOOL.parse(vec![b"--version".to_vec()]).err().unwrap_or(0),
            'l' => wants_library = true,
            's' => strictness = Strictness::Refuse,
            'w' => strictness = Strictness::Warn,
            _ => {}
        }
    }
    let mut parser = Parser::new(Lexer::new(Source::new(parsed.operands)), strictness);
    let mut machine = Machine::new();
    if wants_library {
        load_library(&mut parser, &mut machine);
    }
    run(&mut parser, &mut machine);
    0
}

fn run(parser: &mut Parser, machine: &mut Machine) {
    while let Some(item) = parser.item() {
        match item {
            Item::Run(code) => {
                let names = Names { arrays: &parser.array_names, functions: &parser.functions };
                if !machine.run(code, &mut parser.lexer, &names) {
                    return;
                }
            }
            Item::Define(number, function) => machine.define(number, function),
            Item::Nothing => {}
            Item::Quit => return,
        }
    }
}

fn load_library(parser: &mut Parser, machine: &mut Machine) {
    machine.scale = LIBRARY_SCALE;
    for letter in ['e', 'l', 's', 'c', 'a', 'j'] {
        let number = parser.function_number(letter.to_string());
        let parameters: Vec<Own> = Vec::new();
        let body = Body::Library(letter);
        let function = Function { name: letter.to_string(), parameters, autos: Vec::new(), body };
        machine.define(number, function);
    }
}
