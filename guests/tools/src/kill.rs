//! `kill`: sends a signal to processes.

use toolkit::args::bytes_of;
use toolkit::out::Out;
use toolkit::{Arguments, complain, program, quote};
use wardian_abi as abi;
use wardian_abi::Who;

const USAGE: &str = "
Usage:
 kill [options] <pid> [...]

Options:
 <pid> [...]            send signal to every <pid> listed
 -<signal>, -s, --signal <signal>
                        specify the <signal> to be sent
 -l, --list=[<signal>]  list all signal names, or convert one to a name
 -L, --table            list all signal names in a nice table

 -h, --help     display this help and exit
 -V, --version  output version information and exit
";

const TERM: i32 = 15;

pub fn main(arguments: Arguments) -> i32 {
    let arguments = bytes_of(arguments);
    let mut signal = TERM;
    let mut rest = arguments.as_slice();
    while let [word, others @ ..] = rest {
        let Some(option) = word.strip_prefix(b"-").filter(|option| !option.is_empty()) else { break };
        rest = others;
        let (name, attached) = match option.iter().position(|&byte| byte == b'=') {
            Some(at) => (&option[..at], Some(&option[at + 1..])),
            None => (option, None),
        };
        let text = match name {
            b"-" => break,
            b"l" | b"-list" => return list(attached.or(others.first().map(Vec::as_slice))),
            b"L" | b"-table" => return table(),
            b"h" | b"-help" => return print(USAGE),
            b"V" | b"-version" => return print(concat!("kill (Wardian) ", env!("CARGO_PKG_VERSION"), "\n")),
            b"s" | b"-signal" if attached.is_none() => match others {
                [text, others @ ..] => {
                    rest = others;
                    text.as_slice()
                }
                [] => return misused(),
            },
            b"-signal" => attached.unwrap_or_default(),
            _ => option
                .strip_prefix(b"s")
                .filter(|text| program::signal_number(text).is_some())
                .unwrap_or(option),
        };
        let Some(number) = program::signal_number(text) else {
            complain("kill", format_args!("unknown signal name {}", String::from_utf8_lossy(text)));
            return 1;
        };
        signal = number;
    }
    if rest.is_empty() { misused() } else { send_to_all(rest, signal) }
}

fn misused() -> i32 {
    let _ = abi::write_all(2, USAGE.as_bytes());
    1
}

fn print(text: &str) -> i32 {
    Out::new("kill").put(text);
    0
}

fn send_to_all(targets: &[Vec<u8>], signal: i32) -> i32 {
    let mut code = 0;
    for target in targets {
        let Some(pid) = std::str::from_utf8(target).ok().and_then(|text| text.parse::<i32>().ok()) else {
            complain("kill", format_args!("failed to parse argument: {}", quote::word(target)));
            return 1;
        };
        if let Err(error) = abi::kill(Who::from_number(pid), signal) {
            complain("kill", format_args!("({pid}): {error}"));
            code = 1;
        }
    }
    code
}

/// All names, or the other form of one: a name for a number, also for an exit code, a number for a name.
fn list(which: Option<&[u8]>) -> i32 {
    let Some(which) = which else {
        let names: Vec<&str> = abi::SIGNALS.iter().map(|(number, name)| shown(*number, name)).collect();
        let (first, second) = names.split_at(names.len().min(16));
        return print(&format!("{}\n{}\n", first.join(" "), second.join(" ")));
    };
    let number = program::signal_number(which).or_else(|| {
        let code = std::str::from_utf8(which).ok()?.parse::<i32>().ok()?;
        Some(code & 0x7f)
    });
    let is_number = which.first().is_some_and(u8::is_ascii_digit);
    let name = abi::SIGNALS.iter().find(|(known, _)| Some(*known) == number);
    match (name, number) {
        (Some((_, name)), _) if is_number => print(&format!("{name}\n")),
        (_, Some(number)) => print(&format!("{number}\n")),
        _ => {
            complain("kill", format_args!("unknown signal name {}", String::from_utf8_lossy(which)));
            1
        }
    }
}

/// Here one signal has another name than elsewhere.
fn shown(number: i32, name: &'static str) -> &'static str {
    if number == 29 { "POLL" } else { name }
}

fn table() -> i32 {
    let mut text = String::new();
    for (at, (number, name)) in abi::SIGNALS.iter().enumerate() {
        let name = shown(*number, name);
        text += &if at % 7 == 6 { format!("{number:2} {name}\n") } else { format!("{number:2} {name:<8}") };
    }
    print(&(text + "\n"))
}
