//! `rev`: lines with their last character first.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, input};

const TOOL: Tool = Tool {
    name: "rev",
    short: "0hV",
    long: &[("zero", '0')],
    help: "
Usage:
 rev [options] [file ...]

Reverse lines characterwise.

Options:
 -0, --zero    use the nul character as line separator
     --help    display this help and exit
     --version display version and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let end = if parsed.options.iter().any(|(letter, _)| *letter == '0') { 0 } else { b'\n' };
    let mut out = Out::new("rev");
    let mut code = 0;
    for operand in input::or_stdin(parsed.operands) {
        let Some(content) = input::read_to_open("rev", &operand) else {
            code = 1;
            continue;
        };
        for line in content.split_inclusive(|&byte| byte == end) {
            let text = line.strip_suffix(&[end]).unwrap_or(line);
            out.put(reversed(text));
            out.put(&line[text.len()..]);
        }
    }
    code
}

fn reversed(text: &[u8]) -> Vec<u8> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for chunk in text.utf8_chunks() {
        pieces.extend(chunk.valid().chars().map(|char| char.to_string().into_bytes()));
        pieces.extend(chunk.invalid().iter().map(|&byte| vec![byte]));
    }
    pieces.reverse();
    pieces.concat()
}
