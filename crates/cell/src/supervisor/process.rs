//! The process of a cell, as its keeper has it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{PidfdFlags, pidfd_open};

use super::CellOptions;

/// A process that is killed, and waited for, when this is dropped.
pub(super) struct Process {
    child: Child,
    end: OwnedFd,
    clock: libc::clockid_t,
}

impl Process {
    /// Starts it, with one end of the socket as its standard input and nothing else. It ends with the calling thread.
    pub fn start(options: &CellOptions) -> io::Result<(Process, UnixStream)> {
        let (program, arguments) =
            options.program.split_first().ok_or_else(|| io::Error::other("no program is named"))?;
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir("/").process_group(0);
        // Where compiled programs are, if nobody says: the cell looks where this process would.
        for name in ["WARDIAN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let streams = command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = streams.spawn()?;
        match Process::watch(&child) {
            Ok((end, clock)) => Ok((Process { child, end, clock }, ours)),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    fn watch(child: &Child) -> io::Result<(OwnedFd, libc::clockid_t)> {
        let pid = rustix::process::Pid::from_child(child);
        let end = pidfd_open(pid, PidfdFlags::empty())?;
        let mut clock = 0;
        // SAFETY: writes one number, to a place for one that lives across the call.
        let failed = unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &mut clock) };
        if failed == 0 { Ok((end, clock)) } else { Err(io::Error::from_raw_os_error(failed)) }
    }

    /// Becomes readable when it ends.
    pub fn end(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    /// Returns the processor time it has used; as much as possible if it has ended.
    pub fn processor_time(&self) -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes one time, to a place for one that lives across the call. The process was not waited for, so its
        // number is still its own.
        if unsafe { libc::clock_gettime(self.clock, &mut time) } != 0 {
            return Duration::MAX;
        }
        Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
    }

    /// Kills it, if it has not ended, and returns how it ended.
    pub fn finish(mut self) -> String {
        // One that has ended by itself keeps its own end, whatever is sent after it.
        end(&mut self.child)
    }
}

fn end(child: &mut Child) -> String {
    let _ = child.kill();
    match child.wait() {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
