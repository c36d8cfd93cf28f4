//! The command as it is typed: a real process, its real streams and exit code.

mod asleep;
mod audit;
mod http;
mod input;
mod isolation;
mod machine;
mod mounts;
mod network;
mod outputs;
mod readme;
mod run;
mod serve;
mod shell;
mod tools;

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// `wardian WORDS…` with this input.
fn wardian_with(words: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wardian"))
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // A command that does not read its input may have ended already.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

fn wardian(words: &[&str]) -> Output {
    wardian_with(words, b"")
}

/// Exit code, standard output, standard error without our own progress lines.
fn shown(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let stderr: String = text(output.stderr)
        .lines()
        .filter(|line| !line.starts_with("wardian: preparing"))
        .map(|line| format!("{line}\n"))
        .collect();
    (output.status.code().expect("an exit code"), text(output.stdout), stderr)
}
