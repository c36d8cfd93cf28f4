//! What the tests are made with.

use std::time::Duration;

use wardian_abi::{self as abi, Dir, Errno, Fd, Pid, Status, WaitFlags, Who, open_flags};

/// A test: it panics where it finds something wrong.
pub struct Test {
    pub name: &'static str,
    pub run: fn(),
}

/// Defines tests and the list of them.
macro_rules! tests {
    ($($(#[$attribute:meta])* fn $name:ident() $body:block)*) => {
        $($(#[$attribute])* fn $name() $body)*

        /// The tests of this file.
        pub const TESTS: &[crate::kit::Test] =
            &[$($(#[$attribute])* crate::kit::Test { name: stringify!($name), run: $name }),*];
    };
}
pub(crate) use tests;

/// A test that takes longer hangs.
const DEADLINE_NANOS: i64 = 120_000_000_000;

/// Runs a test in a child; the error says how it ended.
pub fn attempt(test: &Test) -> Result<(), String> {
    let place = format!("{}/usertests.{}.{}", temporary(), abi::getpid(), test.name);
    std::fs::create_dir(&place).map_err(|error| format!("cannot make {place}: {error}"))?;
    let pid = abi::fork(|| {
        let ready = abi::setpgid(0, 0).and_then(|()| abi::chdir(Dir::CWD, place.as_bytes()));
        ready.and_then(|()| abi::alarm(DEADLINE_NANOS)).expect("a child is made ready");
        (test.run)();
        0
    });
    let pid = pid.map_err(|errno| format!("cannot fork: {errno}"))?;
    let ended = abi::wait(Who::Child(pid), WaitFlags::default());
    // Whatever it left running goes with it.
    let _ = abi::kill(Who::Group(pid), KILL);
    let _ = std::fs::remove_dir_all(&place);
    match ended {
        Ok(Some((_, status))) if status.code() == Some(0) => Ok(()),
        Ok(Some((_, status))) => Err(describe(status)),
        other => Err(format!("waiting answered {other:?}")),
    }
}

fn temporary() -> String {
    std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".to_owned())
}

fn describe(status: Status) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with code {code}"),
        (_, Some(ALRM)) => "by hanging".to_owned(),
        // A panic of a test: its message is on standard error.
        (_, Some(ABRT)) => "by a panic".to_owned(),
        (_, signal) => format!("by signal {signal:?}"),
    }
}

/// As a program starts in the sandbox: an ordinary user, three descriptors, every signal as it is by itself.
#[cfg(not(target_os = "wasi"))]
pub fn start_clean() {
    use std::os::unix::process::CommandExt;
    for fd in 3..1024 {
        let _ = abi::close(fd);
    }
    for signal in (1..32).filter(|signal| ![KILL, STOP].contains(signal)) {
        abi::sigaction(signal, abi::Disposition::Default).expect("sigaction");
    }
    // Root may do what others may not; the sandbox has no root.
    if abi::getuid() == 0 {
        let words = std::env::args_os().skip(1);
        let error = std::process::Command::new("/proc/self/exe").args(words).uid(1000).gid(1000).exec();
        panic!("cannot become an ordinary user: {error}");
    }
}

#[cfg(target_os = "wasi")]
pub fn start_clean() {}

pub const HUP: i32 = 1;
pub const INT: i32 = 2;
pub const QUIT: i32 = 3;
pub const ABRT: i32 = 6;
pub const KILL: i32 = 9;
pub const USR1: i32 = 10;
pub const USR2: i32 = 12;
pub const PIPE: i32 = 13;
pub const ALRM: i32 = 14;
pub const TERM: i32 = 15;
pub const CHLD: i32 = 17;
pub const CONT: i32 = 18;
pub const STOP: i32 = 19;
pub const TSTP: i32 = 20;
pub const TTIN: i32 = 21;
pub const TTOU: i32 = 22;
pub const URG: i32 = 23;
pub const WINCH: i32 = 28;

/// Long enough for something that should not happen to happen; nothing waits for it to be right.
pub const MOMENT: Duration = Duration::from_millis(40);

/// Starts a child that does something and exits with 0.
pub fn child(work: impl FnOnce()) -> Pid {
    abi::fork(|| {
        work();
        0
    })
    .expect("fork")
}

/// A child that waits to be killed.
pub fn sleeper() -> Pid {
    child(|| sleep_for_ever())
}

pub fn sleep_for_ever() -> ! {
    loop {
        let _ = abi::poll_read(0, Some(Duration::from_secs(3600)));
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Waits for a child to end.
pub fn ended(pid: Pid) -> Status {
    loop {
        match abi::wait(Who::Child(pid), WaitFlags::default()) {
            Ok(Some((answered, status))) => {
                assert_eq!(answered, pid);
                return status;
            }
            Err(Errno::INTR) => {}
            other => panic!("waiting for {pid} answered {other:?}"),
        }
    }
}

/// Waits for a child that must end well.
pub fn succeeded(pid: Pid) {
    let status = ended(pid);
    assert_eq!(status.code(), Some(0), "status {:#x}", status.0);
}

pub fn kill(pid: Pid, signal: i32) {
    abi::kill(Who::Child(pid), signal).expect("kill");
}

/// Kills a child and takes its end.
pub fn finish(pid: Pid) {
    kill(pid, KILL);
    assert_eq!(ended(pid).signal(), Some(KILL));
}

/// Somewhere to wait for another process: a pipe that carries one byte.
pub struct Gate(pub abi::Pipe);

impl Gate {
    pub fn new() -> Gate {
        Gate(pipe())
    }

    pub fn open(&self) {
        assert_eq!(abi::write(self.0.write, b"!"), Ok(1));
    }

    /// Waits until another process opens it. That it never will shows as an end of file, if nobody else has it.
    pub fn pass(&self) {
        let mut byte = [0];
        loop {
            match abi::read(self.0.read, &mut byte) {
                Ok(1) => return,
                Err(Errno::INTR) => {}
                other => panic!("a gate answered {other:?}"),
            }
        }
    }

    /// Whether it is open, or becomes so in a moment.
    pub fn is_open(&self) -> bool {
        abi::poll_read(self.0.read, Some(MOMENT)).expect("poll")
    }
}

/// Tries until it is so; the test's deadline ends it otherwise.
pub fn eventually(mut so: impl FnMut() -> bool) {
    while !so() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn pipe() -> abi::Pipe {
    abi::pipe(false).expect("pipe")
}

pub fn close(fd: Fd) {
    abi::close(fd).expect("close");
}

pub fn open(path: &str, flags: u32) -> abi::Result<Fd> {
    abi::open(Dir::CWD, path.as_bytes(), flags, 0o644)
}

/// Opens a file that must be there.
pub fn opened(path: &str, flags: u32) -> Fd {
    open(path, flags).unwrap_or_else(|errno| panic!("{path}: {errno}"))
}

/// Makes a file with this content.
pub fn make(path: &str, content: &[u8]) {
    let fd = opened(path, open_flags::WRONLY | open_flags::CREAT | open_flags::TRUNC);
    abi::write_all(fd, content).expect("write");
    close(fd);
}

pub fn content(path: &str) -> Vec<u8> {
    let fd = opened(path, open_flags::RDONLY);
    let all = read_all(fd);
    close(fd);
    all
}

pub fn text(path: &str) -> String {
    String::from_utf8(content(path)).expect("text")
}

/// Reads to the end.
pub fn read_all(fd: Fd) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match abi::read(fd, &mut buffer).expect("read") {
            0 => return all,
            n => all.extend_from_slice(&buffer[..n]),
        }
    }
}

/// Reads once.
pub fn read_some(fd: Fd, most: usize) -> abi::Result<Vec<u8>> {
    let mut buffer = vec![0; most];
    let n = abi::read(fd, &mut buffer)?;
    buffer.truncate(n);
    Ok(buffer)
}

pub fn mkdir(path: &str) {
    abi::mkdir(Dir::CWD, path.as_bytes(), 0o755).expect("mkdir");
}

pub fn unlink(path: &str) {
    abi::unlink(Dir::CWD, path.as_bytes()).expect("unlink");
}

pub fn symlink(target: &str, path: &str) {
    abi::symlink(target.as_bytes(), Dir::CWD, path.as_bytes()).expect("symlink");
}

pub fn stat(path: &str) -> abi::Result<abi::Stat> {
    abi::stat(Dir::CWD, path.as_bytes(), true)
}

pub fn lstat(path: &str) -> abi::Result<abi::Stat> {
    abi::stat(Dir::CWD, path.as_bytes(), false)
}

pub fn flag(signal: i32) {
    abi::sigaction(signal, abi::Disposition::Flag).expect("sigaction");
}

pub fn ignore(signal: i32) {
    abi::sigaction(signal, abi::Disposition::Ignore).expect("sigaction");
}

/// The signals of a mask that `sigpending` answers.
pub fn taken() -> Vec<i32> {
    let mask = abi::sigpending();
    (1..64).filter(|signal| mask >> signal & 1 == 1).collect()
}

/// Does something that waits, while a child sends this process signals until it has ended: however late the wait
/// begins, one of them comes after that.
pub fn interrupted_by<T>(signal: i32, work: impl FnOnce() -> T) -> T {
    let me = abi::getpid();
    let pest = child(|| {
        loop {
            std::thread::sleep(Duration::from_millis(5));
            if abi::kill(Who::Child(me), signal).is_err() {
                return;
            }
        }
    });
    let answer = work();
    kill(pest, KILL);
    ended(pest);
    answer
}
