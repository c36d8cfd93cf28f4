//! `sponge`: soaks up standard input, then writes it to a file.

use std::io::Write;
use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, files};
use wardian_abi as abi;
use wardian_abi::Errno;

const TOOL: Tool = Tool {
    name: "sponge",
    short: "ah",
    long: &[],
    help: "sponge [-a] <file>: soak up all input from stdin and write it to <file>\n",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let (append, words) = (!parsed.options.is_empty(), parsed.operands);
    let written = files::read_fd(0).and_then(|content| match words.first() {
        None => abi::write_all(1, &content),
        Some(path) => {
            let mut options = std::fs::OpenOptions::new();
            options.create(true).write(true).append(append).truncate(!append);
            let file = options.open(files::path(path));
            file.and_then(|mut file| file.write_all(&content)).map_err(Errno::from)
        }
    });
    match written {
        Ok(()) => 0,
        Err(error) => {
            let name = words.first().map_or("standard output".into(), |word| String::from_utf8_lossy(word));
            complain("sponge", format_args!("{name}: {error}"));
            1
        }
    }
}
