//! A sealed process, tried from inside: each test runs this very program again as a process that seals itself and then
//! tries what it should not be able to.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use wardian_confine::{Budget, seal};

const BUDGET: Budget = Budget { memory: 1 << 30, processor_seconds: 60, file_size: 1 << 16 };
/// Says to this program that it is the one to be sealed, and what to try.
const ATTEMPT: &str = "WARDIAN_CONFINE_ATTEMPT";

/// What an attempt came to, as an exit code: 0, or the errno it met.
fn code(result: io::Result<impl Sized>) -> i32 {
    result.err().map_or(0, |error| error.raw_os_error().unwrap_or(255))
}

fn checked(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn attempt(what: &str) -> i32 {
    let executable = || {
        let (access, kind) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, kind, -1, 0) };
        checked(if mapped == libc::MAP_FAILED { -1 } else { 0 })
    };
    match what {
        "file" => code(File::open("/etc/passwd")),
        "create" => code(File::create("/tmp/wardian-confine-made")),
        "socket" => code(std::net::UdpSocket::bind("127.0.0.1:0")),
        "pair" => code(UnixStream::pair()),
        "program" => code(Command::new("/bin/true").status()),
        "thread" => code(std::thread::Builder::new().spawn(|| {})),
        "executable" => code(executable()),
        // SAFETY: signal 0 to the parent asks whether it could be sent one.
        "signal" => code(checked(unsafe { libc::kill(libc::getppid(), 0) }.into())),
        "abort" => std::process::abort(),
        "memory" => i32::from(Vec::<u8>::new().try_reserve_exact(2 << 30).is_err()) * libc::ENOMEM,
        "output" => code(io::stdout().write_all(&[0; 1 << 17]).and_then(|()| io::stdout().flush())),
        "nothing" => {
            let mut read = String::new();
            code(io::stdin().read_to_string(&mut read).and_then(|_| io::stdout().write_all(read.as_bytes())))
        }
        other => panic!("there is no attempt '{other}'"),
    }
}

/// The program that is sealed. As a test of its own it does nothing.
#[test]
fn sealed() {
    let Some(what) = std::env::var_os(ATTEMPT) else { return };
    let in_force = seal(&BUDGET).expect("a seal");
    let code = if in_force.seccomp { attempt(&what.to_string_lossy()) } else { 254 };
    // SAFETY: ends the process at once; the harness's threads have nothing to tidy up.
    unsafe { libc::_exit(code) }
}

fn sealed_child(what: &str, stdout: impl Into<Stdio>) -> Option<ExitStatus> {
    let mut child = Command::new("/proc/self/exe");
    child.args(["--exact", "sealed", "--nocapture", "--test-threads=1"]).env(ATTEMPT, what);
    let status = child.stdin(Stdio::null()).stdout(stdout).status().expect("it starts");
    if status.code() == Some(254) {
        eprintln!("this kernel has no seccomp: nothing to see");
        return None;
    }
    Some(status)
}

#[test]
fn it_reaches_nothing_outside() {
    let refused = [libc::EPERM, libc::EACCES, libc::EMFILE];
    for what in ["file", "create", "socket", "pair", "program", "thread", "executable", "signal"] {
        let Some(status) = sealed_child(what, Stdio::null()) else { return };
        assert!(status.code().is_some_and(|code| refused.contains(&code)), "{what}: {status}");
    }
}

#[test]
fn it_takes_no_more_than_its_budget() {
    let Some(memory) = sealed_child("memory", Stdio::null()) else { return };
    assert_eq!(memory.code(), Some(libc::ENOMEM), "{memory}");
    let Some(aborted) = sealed_child("abort", Stdio::null()) else { return };
    assert_eq!(aborted.signal(), Some(libc::SIGABRT), "{aborted}");
    let output = tempfile::tempfile().expect("a file");
    let Some(status) = sealed_child("output", output.try_clone().expect("a copy")) else { return };
    assert!(!status.success(), "{status}");
    assert!(output.metadata().expect("its size").len() <= BUDGET.file_size);
}

#[test]
fn it_reads_and_writes_what_it_has_open() {
    let Some(status) = sealed_child("nothing", Stdio::null()) else { return };
    assert!(status.success(), "{status}");
}
