//! The helper process: it starts one native program at a time and is responsible for all its descendants.
//!
//! A thread of the host could not do this: a parent-death signal fires when the *thread* that forked ends, and orphans
//! of a program belong to no one. So a helper is two small processes without threads, each able to clean up after the
//! other:
//!
//! ```text
//!  pool ══ socket ══► worker ── fork, confine, exec ──► program ──► whatever it starts
//!    ║                  ▲
//!    ╚══ lifeline ═══► keeper
//! ```
//!
//! Both are subreapers: an orphan of the program becomes a child of the worker, or of the keeper once the worker is
//! gone. The worker kills everything it has started when its socket closes or the keeper ends; the keeper does so when
//! the lifeline closes or the worker ends, however that happens. Only killing both at once can leave anything behind,
//! and not the program itself: it dies with the worker.
//!
//! Read `wire` (the messages), `serve` (the worker's loop), `launch` (from fork to exec), `family` (finding and killing
//! all descendants of a program), `keeper`. The unsafe calls are in the crate `wardian-confine`, except for taking over
//! descriptors that were sent (`wire`).

mod family;
mod keeper;
mod launch;
mod serve;
pub(crate) mod wire;

pub(crate) use family::{descendants_of_each, end_tree};

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::process::{PidfdFlags, pidfd_open};

use wardian_confine::fork_exec::{self, Side};

/// Runs as a helper until the pool is done with it. Call it first of all, before there is a thread or a runtime, in a
/// process that the pool has started: its standard input is the socket, its standard output the lifeline.
pub fn main() -> ! {
    // A panic must not unwind from the child of a fork into its parent's loop.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("wardian worker: {panic}");
        std::process::abort();
    }));
    match help() {
        Ok(()) => std::process::exit(0),
        Err(error) => {
            eprintln!("wardian worker: {error}");
            std::process::exit(1);
        }
    }
}

fn help() -> io::Result<()> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("must be started before any thread"));
    }
    let socket = UnixStream::from(fork_exec::take_descriptor(0)?);
    let lifeline = fork_exec::take_descriptor(1)?;
    // A group of our own: Ctrl-C at the terminal is for the pool's process, and its closing ends us. Not a session:
    // on a busy machine calls took milliseconds longer with one, probably because the scheduler groups by session.
    rustix::process::setpgid(None, None)?;
    become_subreaper()?;
    match fork_exec::fork()? {
        Side::Child => work(socket, lifeline),
        Side::Parent(worker) => {
            drop(socket);
            keeper::keep(&lifeline, worker)
        }
    }
}

fn work(socket: UnixStream, lifeline: OwnedFd) -> io::Result<()> {
    drop(lifeline);
    become_subreaper()?;
    let keeper = rustix::process::getppid().ok_or_else(|| io::Error::other("the keeper is gone"))?;
    let served = serve::serve(socket, &pidfd_open(keeper, PidfdFlags::empty())?);
    family::end_all(|_, _| {});
    match served {
        // Nobody is left who wants to know.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        served => served,
    }
}

fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}
