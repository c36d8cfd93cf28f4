//! `which`: where in `PATH` a command is, as Debian's says it.

use toolkit::args::{answer_help, bytes_of};
use toolkit::options::{Fault, Found, Grammar};
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, program};
use wardian_abi as abi;

pub fn main(arguments: Arguments) -> i32 {
    let (mut all, mut silent) = (false, false);
    let names = bytes_of(arguments);
    if let Some(code) = answer_help(
        "which",
        "Usage: which [-as] NAME...\nPrint where in PATH each NAME is: all places with -a, none with -s.\n",
        &names,
    ) {
        return code;
    }
    // As `getopts` of the shell reads them, which Debian's uses.
    let grammar = Grammar::new("+as");
    let mut operands = Vec::new();
    for found in grammar.scan(names.into_iter()) {
        let wrong = match found {
            Ok(Found::Letter('a', _)) => {
                all = true;
                continue;
            }
            Ok(Found::Letter(..)) => {
                silent = true;
                continue;
            }
            Ok(Found::Operand(name)) => {
                operands.push(name);
                continue;
            }
            Err(Fault::UnknownLetter(letter)) => letter,
            Ok(Found::Name(..)) | Err(_) => '-',
        };
        complain("which", format_args!("Illegal option -{wrong}"));
        complain("Usage", "which [-as] args");
        return 2;
    }
    if operands.is_empty() {
        return 1;
    }
    let search = program::search_path(&abi::environ());
    let mut out = Out::new("which");
    let mut code = 0;
    for name in &operands {
        let found = places_of(name, &search);
        code |= i32::from(found.is_empty());
        for place in found.iter().take(if all { usize::MAX } else { 1 }).filter(|_| !silent) {
            out.put([place, b"\n".as_slice()].concat());
        }
    }
    code
}

fn places_of(name: &[u8], search: &[u8]) -> Vec<Vec<u8>> {
    let candidates: Vec<Vec<u8>> = if name.contains(&b'/') {
        vec![name.to_vec()]
    } else {
        let directories = search.split(|&byte| byte == b':');
        directories
            .map(|directory| files::join(if directory.is_empty() { b"." } else { directory }, name))
            .collect()
    };
    candidates.into_iter().filter(|path| !name.is_empty() && program::is_program(path)).collect()
}
