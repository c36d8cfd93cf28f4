//! Every system call and every error path, from inside: `usertests` runs all tests, `usertests NAME…` some of them (a
//! test, or a file of tests), `usertests --list` names them.
//!
//! What a test expects is what Linux does: the same program, built natively, passes there. The few that ask for what
//! only the sandbox has are compiled for it alone.
//!
//! Each test is a child with a process group, a directory and a deadline of its own, so that one that fails, hangs or
//! leaves things behind spoils no other.

mod alarm;
mod descriptors;
mod dev;
mod directories;
mod exec;
mod fifos;
mod files;
mod groups;
mod kit;
mod limits;
mod links;
mod locks;
mod pipes;
mod poll;
mod processes;
mod procfs;
mod programs;
mod signals;
mod sockets;
mod stopping;
mod times;
mod wait;
#[cfg(target_os = "wasi")]
mod wasi_calls;

use std::process::ExitCode;

use wardian_abi as abi;

use kit::Test;

/// The files of tests, in the order in which they build on one another.
const FILES: &[(&str, &[Test])] = &[
    ("processes", processes::TESTS),
    ("wait", wait::TESTS),
    ("exec", exec::TESTS),
    ("descriptors", descriptors::TESTS),
    ("pipes", pipes::TESTS),
    ("fifos", fifos::TESTS),
    ("poll", poll::TESTS),
    ("sockets", sockets::TESTS),
    ("signals", signals::TESTS),
    ("stopping", stopping::TESTS),
    ("alarm", alarm::TESTS),
    ("groups", groups::TESTS),
    ("files", files::TESTS),
    ("directories", directories::TESTS),
    ("links", links::TESTS),
    ("locks", locks::TESTS),
    ("times", times::TESTS),
    ("limits", limits::TESTS),
    ("dev", dev::TESTS),
    ("procfs", procfs::TESTS),
    #[cfg(target_os = "wasi")]
    ("wasi", wasi_calls::TESTS),
];

fn main() -> ExitCode {
    abi::link();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(program) = words.first().and_then(|word| programs::named(word)) {
        return program(&words[1..]);
    }
    kit::start_clean();
    let all = FILES.iter().flat_map(|(file, tests)| tests.iter().map(move |test| (*file, test)));
    let chosen = |file: &str, test: &Test| {
        words.is_empty() || words.iter().any(|word| word == file || word == test.name)
    };
    if words.iter().any(|word| word == "--list") {
        all.for_each(|(file, test)| println!("{file} {}", test.name));
        return ExitCode::SUCCESS;
    }
    let (mut run, mut failed) = (0, 0);
    for (_, test) in all.filter(|(file, test)| chosen(file, test)) {
        run += 1;
        match kit::attempt(test) {
            Ok(()) => println!("{}: ok", test.name),
            Err(why) => {
                failed += 1;
                println!("{}: FAILED {why}", test.name);
            }
        }
    }
    println!("{run} tests, {failed} failed");
    if run == 0 || failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
