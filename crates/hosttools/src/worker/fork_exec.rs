//! The unsafe calls between fork and exec, each with its reason. The worker has one thread: after a fork the child's
//! heap and locks are as sound as the parent's, so ordinary code may run there, too.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::process::Pid;

/// Who one is after a fork.
pub(super) enum Side {
    Parent(Pid),
    Child,
}

/// Makes a copy of this process, which must have one thread.
pub(super) fn fork() -> io::Result<Side> {
    // SAFETY: `worker::main` has seen to it that there is one thread; nothing starts another.
    match unsafe { libc::fork() } {
        0 => Ok(Side::Child),
        child => {
            Pid::from_raw(child).filter(|_| child > 0).map(Side::Parent).ok_or_else(io::Error::last_os_error)
        }
    }
}

/// Takes over a descriptor this process was started with: it moves out of the way of the standard streams, closes on
/// exec, and `/dev/null` takes its place.
pub(super) fn take_descriptor(number: RawFd) -> io::Result<OwnedFd> {
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

/// Makes `number` another name of `descriptor`, which stays open across exec.
pub(super) fn replace(descriptor: &impl AsRawFd, number: RawFd) -> io::Result<()> {
    // SAFETY: `number` is one of the standard streams, which no value of this process owns.
    check(unsafe { libc::dup2(descriptor.as_raw_fd(), number) })
}

/// Lets every descriptor but the standard streams close on exec.
pub(super) fn close_the_rest_on_exec() -> io::Result<()> {
    // SAFETY: sets a flag; nothing is closed before exec replaces all that could use it.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    check(done as i32)
}

/// Signals do again what they do by default, and none is blocked.
pub(super) fn reset_signals() -> io::Result<()> {
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

/// The working directory becomes the one held, whatever its name leads to by now.
pub(super) fn change_directory(directory: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as it is borrowed.
    check(unsafe { libc::fchdir(directory.as_raw_fd()) })
}

/// Strings as exec wants them: pointers to each, and a null at the end.
pub(super) struct Strings {
    pointers: Vec<*const c_char>,
    _held: Vec<CString>,
}

impl Strings {
    pub fn new(held: Vec<CString>) -> Strings {
        let pointers = held.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Strings { pointers, _held: held }
    }
}

/// Becomes the program. Returns only with the reason why not.
pub(super) fn exec(program: &CStr, args: &Strings, env: &Strings) -> io::Error {
    // SAFETY: both lists end in a null and point to strings that `Strings` holds.
    unsafe { libc::execve(program.as_ptr(), args.pointers.as_ptr(), env.pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Ends the child of a fork without running what its parent wants run at exit.
pub(super) fn exit_child(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
