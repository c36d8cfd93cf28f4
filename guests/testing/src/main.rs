//! Small programs that push against the kernel, for its tests: `testing NAME ARGUMENT…`, or linked under the name.
//!
//! ```text
//! exit N                  exits with N
//! kill SIGNAL             sends itself a signal, then exits with 0 if it is still there
//! args, env               prints the arguments, the environment, one a line
//! fds                     prints the numbers of its open descriptors
//! spin                    runs for ever and calls nothing
//! sleep MS                sleeps
//! deep [bare]             recurses for ever, with variables in memory or, bare, only in registers
//! grow [MIB]              takes memory until it has so much or is refused; prints how much it got
//! secret HEX [THEN]       fills 8 MiB of heap and half its stack with the bytes; THEN is exit, hang, spin, search or abort
//! search HEX [MIB]        grows by MIB, looks for the bytes in all its memory; 1 if it has them
//! fork N [HOW]            N children, HOW: one after another (the default), together, or nested in one another
//! pipes BYTES [STAGES]    sends bytes from a child through a chain of children, and checks what arrives
//! cat                     copies standard input to standard output
//! write BYTES             writes so many bytes to standard output
//! drain                   reads standard input to its end and prints how much it was
//! ```

mod load;
mod memory;
mod processes;

use std::process::ExitCode;
use std::time::Duration;

use wardian_abi as abi;

type Outcome = Result<u8, String>;

fn main() -> ExitCode {
    abi::link();
    let mut words: Vec<String> = std::env::args().collect();
    let called = words.first().map(|path| path.rsplit('/').next().unwrap_or_default());
    if called.is_none_or(|name| name.starts_with("testing")) && !words.is_empty() {
        words.remove(0);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("testing: {}: {message}", words.join(" "));
            ExitCode::from(2)
        }
    }
}

fn run(words: &[&str]) -> Outcome {
    let (name, arguments) = words.split_first().ok_or("which program?")?;
    let first = arguments.first().copied().unwrap_or_default();
    let second = arguments.get(1).copied();
    match name.rsplit('/').next().unwrap_or_default() {
        "exit" => number(first),
        "kill" => kill(number(first)?),
        "args" => lines(arguments.iter().map(|argument| (*argument).to_owned())),
        "env" => lines(std::env::vars().map(|(name, value)| format!("{name}={value}"))),
        "fds" => lines((0..1024).filter(|&fd| abi::cloexec(fd).is_ok()).map(|fd| fd.to_string())),
        "spin" => load::spin(),
        "sleep" => {
            std::thread::sleep(Duration::from_millis(number(first)?));
            Ok(0)
        }
        "deep" if first == "bare" => Ok(load::deep_bare(0) as u8),
        "deep" => load::deep(0),
        "grow" => load::grow(if first.is_empty() { u32::MAX } else { number(first)? }),
        "secret" => memory::secret(first, second.unwrap_or("exit")),
        "digest" => memory::digest(),
        "search" => memory::search(first, number(second.unwrap_or("0"))?),
        "fork" | "forker" => processes::fork(number(first)?, second.unwrap_or("each")),
        "pipes" => processes::pipes(number(first)?, number(second.unwrap_or("0"))?),
        "cat" => load::cat(),
        "write" => load::write(number(first)?),
        "drain" => load::drain(),
        _ => Err("no such program".into()),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("not a number in range: '{text}'"))
}

fn lines(lines: impl Iterator<Item = String>) -> Outcome {
    lines.for_each(|line| println!("{line}"));
    Ok(0)
}

fn kill(signal: i32) -> Outcome {
    abi::kill(abi::Who::Child(abi::getpid()), signal).map_err(|error| error.message().to_owned())?;
    Ok(0)
}
