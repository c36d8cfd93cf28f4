//! The worker's loop: an order, a program, a report.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, pidfd_open};
use uuid::Uuid;

use super::family;
use super::launch::Launcher;
use super::wire::{self, Descriptors, Ending, Job, Obstacle, Order, Report, Step};

/// The program that runs now.
struct Running {
    id: Uuid,
    process: Pid,
    /// Becomes readable when the program ends.
    end: OwnedFd,
    /// None if it is beyond the clock's range.
    ceiling: Option<Instant>,
}

/// Executes orders until the socket closes or the keeper is gone.
pub(super) fn serve(mut socket: UnixStream, keeper: &OwnedFd) -> io::Result<()> {
    let mut launcher = Launcher::new()?;
    let mut running = None;
    wire::report(&mut socket, &Report::Ready(wire::VERSION))?;
    loop {
        match wait(&socket, keeper, running.as_ref()) {
            Event::Order => match wire::receive(&mut socket) {
                Ok(Some((Order::Run(job), descriptors))) if running.is_none() => {
                    running = start(&mut launcher, &job, descriptors, &mut socket)?;
                }
                Ok(Some((order, _))) => obey(&order, running.as_ref()),
                // The pool is gone or talks nonsense: either way it does not want this any more.
                _ => return Ok(()),
            },
            Event::Ended => {
                if let Some(job) = running.take() {
                    let ending = end(&job);
                    wire::report(&mut socket, &Report::Ended(job.id, ending))?;
                    launcher.rest();
                }
            }
            Event::Orphaned => return Ok(()),
        }
    }
}

/// Starts a job's program, or reports why not.
fn start(
    launcher: &mut Launcher,
    job: &Job,
    descriptors: Option<Descriptors<OwnedFd>>,
    socket: &mut UnixStream,
) -> io::Result<Option<Running>> {
    let started = descriptors
        .ok_or(Obstacle { step: Step::Prepare, errno: libc::EBADF })
        .and_then(|descriptors| launcher.launch(job, &descriptors))
        .and_then(|process| Running::new(job.id, process, Duration::from_millis(job.ceiling_ms)));
    match started {
        Ok(started) => Ok(Some(started)),
        Err(obstacle) => {
            family::end_all(|_, _| {});
            wire::report(socket, &Report::NotStarted(job.id, obstacle))?;
            Ok(None)
        }
    }
}

impl Running {
    fn new(id: Uuid, process: Pid, ceiling: Duration) -> Result<Running, Obstacle> {
        let end = pidfd_open(process, PidfdFlags::empty())
            .map_err(|error| Obstacle { step: Step::Fork, errno: error.raw_os_error() })?;
        Ok(Running { id, process, end, ceiling: Instant::now().checked_add(ceiling) })
    }

    fn left(&self) -> Option<Duration> {
        self.ceiling.map(|ceiling| ceiling.saturating_duration_since(Instant::now()))
    }
}

fn watch(end: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::new(end, PollFlags::POLLIN)
}

enum Event {
    Order,
    /// The program has ended, or must be stopped.
    Ended,
    /// The keeper is gone.
    Orphaned,
}

fn wait(socket: &UnixStream, keeper: &OwnedFd, running: Option<&Running>) -> Event {
    loop {
        let mut ends = vec![watch(socket.as_fd()), watch(keeper.as_fd())];
        ends.extend(running.map(|running| watch(running.end.as_fd())));
        let left = running.and_then(Running::left);
        let timeout =
            left.map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        let polled = poll(&mut ends, timeout);
        let ready = |end: usize| ends.get(end).is_some_and(|end| end.any().unwrap_or(false));
        match polled {
            Err(Errno::EINTR) => {}
            _ if ready(2) => return Event::Ended,
            _ if ready(1) => return Event::Orphaned,
            // A time too long for one wait is waited for in several.
            Ok(0) if running.and_then(Running::left).is_some_and(|left| !left.is_zero()) => {}
            Ok(0) => return Event::Ended,
            // An error shows again, and is dealt with, where the socket is read.
            _ => return Event::Order,
        }
    }
}

/// Sends a signal to the running job; one for another job is too late.
fn obey(order: &Order, running: Option<&Running>) {
    let Some(running) = running else { return };
    match order {
        Order::Terminate(id) if *id == running.id => {
            family::signal_all(Signal::TERM);
            // One that is stopped would not notice.
            family::signal_all(Signal::CONT);
        }
        Order::Kill(id) if *id == running.id => family::signal_all(Signal::KILL),
        _ => {}
    }
}

/// Kills what is left of a job whose program has ended (or, at the ceiling, is killed), and reports how the program
/// ended.
fn end(job: &Running) -> Ending {
    let mut ending = Ending::Signal(Signal::KILL.as_raw());
    family::end_all(|process, status| {
        if process == job.process {
            ending = how(status);
        }
    });
    ending
}

fn how(status: WaitStatus) -> Ending {
    match status.terminating_signal() {
        Some(signal) => Ending::Signal(signal),
        None => Ending::Exit(status.exit_status().unwrap_or_default()),
    }
}
