//! Processes: making, ending and waiting for them, signals, limits.

use crate::{Fd, Result, sys};

/// A process number.
pub type Pid = i32;

/// Makes a child that is a copy of this process and runs `child`; its answer is the child's exit code.
///
/// The parent goes on with the child's number. What the closure borrows is the child's own copy.
pub fn fork<F: FnOnce() -> i32>(child: F) -> Result<Pid> {
    sys::fork(child)
}

/// A program to start, for [`spawn`] and [`exec`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Spawn<'a> {
    /// Its file. There is no search in `PATH`.
    pub path: &'a [u8],
    /// Its arguments, the name it is called by first, each followed by a NUL: see [`StringList`].
    pub argv: &'a [u8],
    /// Its environment, `NAME=VALUE` each followed by a NUL.
    pub env: &'a [u8],
    /// Its working directory; empty for the caller's.
    pub cwd: &'a [u8],
    /// What its descriptors become, beyond those the caller has open and not marked close-on-exec.
    pub fds: &'a [FdMap],
    /// The process group it joins.
    pub group: Group,
}

/// In the new program, descriptor `to` is the caller's `from`; a `from` of -1 closes `to`.
///
/// All `from` mean the caller's descriptors, so the order of a list of these does not matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct FdMap {
    /// The number in the new program.
    pub to: Fd,
    /// The number in the caller, or -1.
    pub from: Fd,
}

/// The process group a spawned program joins.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Group {
    /// The caller's.
    #[default]
    Caller,
    /// A new one with the program's own number.
    New,
    /// An existing one.
    Of(Pid),
    /// A new one, which the terminal listens to from the start.
    Foreground,
}

/// Strings one after another, each followed by a NUL: how `argv` and `env` travel.
#[derive(Clone, Default, Debug)]
pub struct StringList(Vec<u8>);

impl StringList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a string. What follows a NUL inside it is lost, as in C.
    pub fn push(&mut self, text: &[u8]) {
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        self.0.extend_from_slice(&text[..end]);
        self.0.push(0);
    }

    /// Appends `name=value`.
    pub fn push_pair(&mut self, name: &[u8], value: &[u8]) {
        self.0.extend_from_slice(name);
        self.0.push(b'=');
        self.push(value);
    }

    /// The block, for [`Spawn`].
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for StringList {
    fn from_iter<I: IntoIterator<Item = T>>(strings: I) -> Self {
        let mut list = Self::new();
        strings.into_iter().for_each(|text| list.push(text.as_ref()));
        list
    }
}

/// Starts a program as a child.
pub fn spawn(request: &Spawn<'_>) -> Result<Pid> {
    sys::spawn(request)
}

/// Replaces this program by another, which keeps its number and descriptors. Returns only on failure.
pub fn exec(request: &Spawn<'_>) -> crate::Errno {
    sys::exec(request)
}

/// A directory that a WASI program is given, and the name it knows it by.
#[derive(Clone, Copy, Debug)]
pub struct Preopen<'a> {
    /// The directory, open here.
    pub fd: Fd,
    /// Its name there.
    pub name: &'a [u8],
}

/// Replaces this program by a WASI program that reaches these directories and no other file, and inherits no
/// descriptor but 0, 1 and 2 (as the request's map leaves them). Returns only on failure; `EINVAL` for a program that
/// imports `wardian`, which no preopen could confine.
pub fn exec_wasi(request: &Spawn<'_>, preopens: &[Preopen<'_>]) -> crate::Errno {
    sys::exec_wasi(request, preopens)
}

/// Ends this process at once: no destructors, no buffers flushed.
pub fn exit(code: i32) -> ! {
    sys::exit(code)
}

/// Which processes [`wait`] and [`kill`] mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The one with this number.
    Child(Pid),
    /// Any child; for `kill`, every process but the sender.
    Any,
    /// Those in the caller's own group.
    OwnGroup,
    /// Those in this group.
    Group(Pid),
}

impl Who {
    pub(crate) fn number(self) -> Pid {
        match self {
            Who::Child(pid) => pid,
            Who::Any => -1,
            Who::OwnGroup => 0,
            Who::Group(group) => -group,
        }
    }

    /// The reading Unix gives to a number: positive, 0, -1, or a negated group.
    pub fn from_number(number: i32) -> Who {
        match number {
            -1 => Who::Any,
            0 => Who::OwnGroup,
            n if n > 0 => Who::Child(n),
            n => Who::Group(n.wrapping_neg()),
        }
    }
}

/// How [`wait`] waits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WaitFlags {
    /// Answers `None` at once when no child is ready.
    pub no_hang: bool,
    /// Also answers for children that stopped.
    pub stopped: bool,
}

/// How a child ended: Linux's status word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(pub i32);

impl Status {
    /// The exit code, when it exited.
    pub fn code(self) -> Option<i32> {
        (self.0 & 0x7f == 0).then_some((self.0 >> 8) & 0xff)
    }

    /// The signal that ended it.
    pub fn signal(self) -> Option<i32> {
        let low = self.0 & 0x7f;
        (low != 0 && low != 0x7f).then_some(low)
    }

    /// The signal that stopped it, when it is stopped rather than ended.
    pub fn stopped(self) -> Option<i32> {
        (self.0 & 0xff == 0x7f).then_some((self.0 >> 8) & 0xff)
    }

    /// The exit code as a shell shows it: 128 plus the signal when one ended or stopped it.
    pub fn shell_code(self) -> i32 {
        self.code().or(self.signal().or(self.stopped()).map(|signal| 128 + signal)).unwrap_or(255)
    }
}

/// Waits for a child to end.
pub fn wait(who: Who, flags: WaitFlags) -> Result<Option<(Pid, Status)>> {
    sys::wait(who.number(), flags)
}

/// Sends a signal; signal 0 only checks that it could be sent.
pub fn kill(who: Who, signal: i32) -> Result<()> {
    sys::kill(who.number(), signal)
}

/// Sends this process a signal, as C's `raise` does.
pub fn raise(signal: i32) -> Result<()> {
    sys::raise(signal)
}

/// This process's number.
pub fn getpid() -> Pid {
    sys::getpid()
}

/// The number of this process's parent.
pub fn getppid() -> Pid {
    sys::getppid()
}

/// The process group of a process; 0 is this one.
pub fn getpgid(pid: Pid) -> Result<Pid> {
    sys::getpgid(pid)
}

/// Moves a process (0: this one) into a group (0: one with its own number).
pub fn setpgid(pid: Pid, group: Pid) -> Result<()> {
    sys::setpgid(pid, group)
}

/// The session of a process; 0 is this one.
pub fn getsid(pid: Pid) -> Result<Pid> {
    sys::getsid(pid)
}

/// Leaves group and session for new ones of its own. `EPERM` if it leads a group.
pub fn setsid() -> Result<()> {
    sys::setsid()
}

/// What a signal does when it arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// What the signal does by itself.
    Default,
    /// Nothing.
    Ignore,
    /// It is kept until [`sigpending`] takes it, and a call that waits answers `EINTR`.
    Flag,
}

/// Sets what a signal does, and answers what it did before.
pub fn sigaction(signal: i32, disposition: Disposition) -> Result<Disposition> {
    sys::sigaction(signal, Some(disposition))
}

/// What a signal does.
pub fn disposition(signal: i32) -> Result<Disposition> {
    sys::sigaction(signal, None)
}

/// Takes the flagged signals that arrived since the last call: bit N is signal N.
pub fn sigpending() -> u64 {
    sys::sigpending()
}

/// Asks for SIGALRM after so many nanoseconds (0: no longer); answers what was left of the last request.
pub fn alarm(nanos: i64) -> Result<i64> {
    sys::alarm(nanos)
}

/// Nanoseconds of processor time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Times {
    /// Of this process, in its own code.
    pub user: i64,
    /// Of this process, in the kernel.
    pub system: i64,
    /// Of the children waited for, in their own code.
    pub child_user: i64,
    /// Of the children waited for, in the kernel.
    pub child_system: i64,
}

/// The processor time used so far.
pub fn times() -> Times {
    sys::times()
}

/// What a [`getrlimit`] is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// The size of a file.
    FileSize = 1,
    /// The number of processes.
    Processes = 6,
    /// The number of descriptors.
    Descriptors = 7,
    /// Memory.
    Memory = 9,
}

/// A pair of limits; -1 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Limit {
    /// The one that acts.
    pub soft: i64,
    /// The highest the soft one may be set to.
    pub hard: i64,
}

/// A limit of this process.
pub fn getrlimit(which: Resource) -> Result<Limit> {
    sys::getrlimit(which)
}

/// Sets a limit of this process and its future children.
pub fn setrlimit(which: Resource, limit: Limit) -> Result<()> {
    sys::setrlimit(which, limit)
}

/// Signals by number and name, as on Linux.
pub const SIGNALS: &[(i32, &str)] = &[
    (1, "HUP"),
    (2, "INT"),
    (3, "QUIT"),
    (4, "ILL"),
    (5, "TRAP"),
    (6, "ABRT"),
    (7, "BUS"),
    (8, "FPE"),
    (9, "KILL"),
    (10, "USR1"),
    (11, "SEGV"),
    (12, "USR2"),
    (13, "PIPE"),
    (14, "ALRM"),
    (15, "TERM"),
    (16, "STKFLT"),
    (17, "CHLD"),
    (18, "CONT"),
    (19, "STOP"),
    (20, "TSTP"),
    (21, "TTIN"),
    (22, "TTOU"),
    (23, "URG"),
    (24, "XCPU"),
    (25, "XFSZ"),
    (26, "VTALRM"),
    (27, "PROF"),
    (28, "WINCH"),
    (29, "IO"),
    (30, "PWR"),
    (31, "SYS"),
];
