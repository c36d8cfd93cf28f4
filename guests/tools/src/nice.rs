//! `nice`: runs a command with another priority. All processes of a sandbox have the same one, so it only runs it.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, program, quote};
use wardian_abi as abi;

const TOOL: Tool = Tool {
    name: "nice",
    short: "+n:",
    long: &[("adjustment=", 'n')],
    help: "\
Usage: nice [OPTION] [COMMAND [ARG]...]
Run COMMAND with an adjusted niceness. With no COMMAND, print the current
niceness, which is 0 for every process here.

  -n, --adjustment=N   add integer N to the niceness (default 10)
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: CANCELED,
};

const CANCELED: i32 = 125;

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments).into_iter().map(modern).collect()) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    for (_, text) in &parsed.options {
        let text = text.as_deref().unwrap_or_default();
        if std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok()).is_none() {
            complain("nice", format_args!("invalid adjustment {}", quote::word(text)));
            return CANCELED;
        }
    }
    if parsed.operands.is_empty() {
        if !parsed.options.is_empty() {
            return TOOL.wrong("a command must be given with an adjustment");
        }
        Out::new("nice").put("0\n");
        return 0;
    }
    let error = program::exec(&parsed.operands, &abi::environ(), b"");
    program::complain_of("nice", &parsed.operands[0], error)
}

/// `-5` and `-+5` are old forms of `-n5`.
fn modern(word: Vec<u8>) -> Vec<u8> {
    match word.strip_prefix(b"-") {
        Some(number) if number.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'+') => {
            [b"-n", number].concat()
        }
        _ => word,
    }
}
