//! The unsafe calls between fork and exec, each with its reason. They are for processes with one thread: after a fork
//! the child's heap and locks are as sound as the parent's, so ordinary code may run there as well.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::process::Pid;

/// The two sides of a fork.
pub enum Side {
    /// The parent; the number is its child's.
    Parent(Pid),
    /// The child.
    Child,
}

/// Forks this process, which must have only one thread: that is checked.
pub fn fork() -> io::Result<Side> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with several threads cannot fork"));
    }
    // SAFETY: there is one thread, so nothing is locked or half changed that the child could meet.
    match unsafe { libc::fork() } {
        0 => Ok(Side::Child),
        child => {
            Pid::from_raw(child).filter(|_| child > 0).map(Side::Parent).ok_or_else(io::Error::last_os_error)
        }
    }
}

/// Takes over a descriptor this process was started with: it is moved away from the standard streams and marked
/// close-on-exec, and `/dev/null` replaces it.
pub fn take_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call looks at a number; that it is open is what it checks.
    let moved = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 10) };
    if moved < 0 {
        return Err(io::Error::last_os_error());
    }
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    replace(&null, number)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(moved) })
}

/// Duplicates `descriptor` as `number`, which stays open across exec.
pub fn replace(descriptor: &impl AsRawFd, number: RawFd) -> io::Result<()> {
    // SAFETY: `number` is one of the standard streams, which no value of this process owns.
    check(unsafe { libc::dup2(descriptor.as_raw_fd(), number) })
}

/// Marks every descriptor except the standard streams close-on-exec.
pub fn close_the_rest_on_exec() -> io::Result<()> {
    // SAFETY: sets a flag; nothing is closed before exec replaces all that could use it.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    check(done as i32)
}

/// Closes every descriptor except the standard streams.
///
/// # Safety
///
/// Nothing in this process may own one of them: the process must have just been started.
pub unsafe fn close_the_rest() -> io::Result<()> {
    // SAFETY: the caller has seen to it that nobody uses what is closed.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) } as i32)
}

/// Resets all signals to their defaults and unblocks them.
pub fn reset_signals() -> io::Result<()> {
    for signal in 1..libc::SIGRTMAX() {
        // SAFETY: sets a disposition that is no code. It fails for SIGKILL and SIGSTOP, which have no other.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: a signal set is plain memory that `sigemptyset` fills in before it is read.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        check(libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut()))
    }
}

/// Changes the working directory to an open one, whatever its name leads to now.
pub fn change_directory(directory: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as it is borrowed.
    check(unsafe { libc::fchdir(directory.as_raw_fd()) })
}

/// Strings in exec's format: pointers to each, and a null at the end.
pub struct Strings {
    pointers: Vec<*const c_char>,
    _held: Vec<CString>,
}

impl Strings {
    /// Holds the strings as long as exec may use them.
    pub fn new(held: Vec<CString>) -> Strings {
        let pointers = held.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Strings { pointers, _held: held }
    }
}

/// Executes the program. Returns only if that fails.
pub fn exec(program: &CStr, args: &Strings, env: &Strings) -> io::Error {
    // SAFETY: both lists end in a null and point to strings that `Strings` holds.
    unsafe { libc::execve(program.as_ptr(), args.pointers.as_ptr(), env.pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Exits the child of a fork without running the parent's exit handlers.
pub fn exit_child(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
