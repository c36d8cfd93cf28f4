//! A program that tries things, for the tests: the first argument says what. It prints what came of it.

mod attempts;
mod host;

use std::ffi::CString;
use std::io;
use std::process::exit;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (what, rest) = args.split_first().expect("what to try");
    match what.as_str() {
        "bomb" => bomb(),
        "daemon" => daemon(rest),
        "family" => family(number(&rest[0])),
        "flood" => flood(number(&rest[0])),
        "host" => host::main(rest),
        "linger" => {
            daemon(&["/bin/sleep".to_owned(), rest[0].clone()]);
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
        "without" => without(&rest[0], &rest[1..]),
        what => println!("{}", attempts::attempt(what, rest)),
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// Forks twice, leaves its session and group, ignores SIGTERM, and becomes another program. The first process waits
/// for a line from it only, and exits.
fn daemon(command: &[String]) {
    // SAFETY: this program has one thread, and the children call exec or exit.
    unsafe {
        if libc::fork() == 0 {
            libc::setsid();
            if libc::fork() > 0 {
                libc::_exit(0);
            }
            libc::setsid();
            libc::signal(libc::SIGTERM, libc::SIG_IGN);
            for descriptor in 0..3 {
                libc::close(descriptor);
            }
            exec(command);
            libc::_exit(1);
        }
        libc::wait(std::ptr::null_mut());
    }
}

/// Forks for ever, in every process, whatever comes of it.
fn bomb() {
    // SAFETY: this program has one thread.
    unsafe {
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
        loop {
            libc::fork();
        }
    }
}

/// A line of processes, each the child of the one before, that all wait.
fn family(generations: u64) {
    for _ in 0..generations {
        // SAFETY: this program has one thread.
        if unsafe { libc::fork() } > 0 {
            break;
        }
    }
    println!("here");
    // SAFETY: waits for a signal.
    unsafe { libc::pause() };
}

fn flood(bytes: u64) {
    use io::Write;
    let line = [b'x'; 1000];
    for _ in 0..bytes / 1000 {
        io::stdout().write_all(&line).expect("someone reads on");
    }
}

/// Runs a command in a world where a system call does not exist.
fn without(what: &str, command: &[String]) {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let call = match what {
        "landlock" => libc::SYS_landlock_create_ruleset,
        "seccomp" => libc::SYS_seccomp,
        _ => panic!("without what?"),
    };
    let machine = std::env::consts::ARCH.try_into().expect("a machine it knows");
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    let filter = SeccompFilter::new([(call, vec![])].into(), SeccompAction::Allow, missing, machine);
    let program = BpfProgram::try_from(filter.expect("a filter")).expect("a program");
    seccompiler::apply_filter(&program).expect("it is applied");
    exec(command);
    exit(1);
}

fn exec(command: &[String]) {
    let words: Vec<CString> =
        command.iter().map(|word| CString::new(word.as_str()).expect("a word")).collect();
    let pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
    // SAFETY: the list ends in a null and its strings live in `words`.
    unsafe { libc::execv(pointers[0], pointers.as_ptr()) };
}
