//! The thread that keeps a cell: from its process's start to its end.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::process::Process;
use super::{CellError, CellOptions, Event, Shared, State, answered};
use crate::frame::{Decoder, LONGEST_REPORT};
use crate::ledger::{Meaning, PATIENCE, Progress};
use crate::message::{NotStarted, Order, Report, Seal, Settings, VERSION};

/// How much processor time a cell may use after a deadline before it is killed.
const GRACE: Duration = Duration::from_millis(50);
/// How long that may take, whatever it uses.
const LONGEST_GRACE: Duration = Duration::from_secs(1);
/// How often its processor time is looked at then.
const LOOK: Duration = Duration::from_millis(5);
/// How much is read at once.
const READ: usize = 64 << 10;

/// Wakes a keeper: a socket that a byte is put into.
#[derive(Debug)]
pub(super) struct Wake {
    bell: UnixStream,
    heard: UnixStream,
}

impl Wake {
    fn new() -> io::Result<Wake> {
        let (bell, heard) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok(Wake { bell, heard })
    }

    pub fn now(&self) {
        // Full is as good: it wakes.
        let _ = (&self.bell).write(&[1]);
    }

    fn clear(&self) {
        let _ = (&self.heard).read(&mut [0; 256]);
    }
}

/// Says that a cell is sealed, or why not.
type Ready = oneshot::Receiver<Result<Seal, NotStarted>>;

/// Starts a keeper and its cell. The answer comes when the cell is sealed, or not at all if it ended before.
pub(super) fn start(options: CellOptions) -> Result<(Arc<Shared>, Ready), CellError> {
    let failed = |error: io::Error| CellError::Start(error.to_string());
    let (ready, answer) = oneshot::channel();
    let state = Mutex::new(State::new(ready));
    let shared = Arc::new(Shared { state, wake: Wake::new().map_err(failed)? });
    let theirs = shared.clone();
    let keep = move || {
        let why = match Keeper::start(&options, theirs.clone()) {
            Ok(keeper) => keeper.keep(),
            Err(error) => error.to_string(),
        };
        bury(&theirs, &why);
    };
    std::thread::Builder::new()
        .name("wardian-cell".to_owned())
        .stack_size(256 << 10)
        .spawn(keep)
        .map_err(failed)?;
    Ok((shared, answer))
}

/// Tells everyone who waits that the cell is gone.
fn bury(shared: &Shared, why: &str) {
    let (runs, others) = {
        let mut state = shared.state.lock();
        state.gone = Some(why.to_owned());
        state.outgoing = VecDeque::new();
        state.ready = None;
        state.ledger.drain()
    };
    for run in runs {
        let _ = run.send(Event::Gone(why.to_owned()));
    }
    for other in others {
        let _ = other.send(Err(CellError::Gone(why.to_owned())));
    }
}

struct Keeper {
    shared: Arc<Shared>,
    process: Process,
    socket: UnixStream,
    decoder: Decoder,
    /// When it must be sealed, until it is.
    starts_by: Option<Instant>,
    /// How much of the first outgoing frame was sent.
    sent: usize,
    /// Since when something is overdue, and the processor time the cell had used by then.
    overdue: Option<(Instant, Duration)>,
}

impl Keeper {
    fn start(options: &CellOptions, shared: Arc<Shared>) -> io::Result<Keeper> {
        let (process, socket) = Process::start(options)?;
        let settings = Settings {
            version: VERSION,
            supervisor: std::process::id(),
            cache: options.cache.clone(),
            threads: options.threads,
            memory: options.memory,
        };
        shared.state.lock().send(&Order::Start(settings)).map_err(io::Error::other)?;
        Ok(Keeper {
            shared,
            process,
            socket,
            decoder: Decoder::new(LONGEST_REPORT),
            starts_by: Some(Instant::now() + PATIENCE),
            sent: 0,
            overdue: None,
        })
    }

    /// Keeps it until its end; returns why that came.
    fn keep(mut self) -> String {
        let why = loop {
            match self.step() {
                Ok(()) => {}
                Err(why) => break why,
            }
        };
        let how = self.process.finish();
        match why {
            End::Itself => how,
            End::Abandoned => "nobody needs it any more".to_owned(),
            End::Ours(why) => why,
        }
    }

    /// One turn: wait, write, read, look at the clock.
    fn step(&mut self) -> Result<(), End> {
        let writes = !self.shared.state.lock().outgoing.is_empty();
        let ended = self.wait(writes).map_err(|error| End::Ours(format!("it cannot be watched: {error}")))?;
        self.shared.wake.clear();
        if self.shared.state.lock().abandoned {
            return Err(End::Abandoned);
        }
        self.write()?;
        self.read(ended)?;
        self.check_deadlines()
    }

    /// Waits for something to do; returns whether the process has ended.
    fn wait(&self, writes: bool) -> io::Result<bool> {
        let interest = if writes { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        let mut ends = [
            PollFd::new(self.socket.as_fd(), interest),
            PollFd::new(self.shared.wake.heard.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.process.end(), PollFlags::POLLIN),
        ];
        let timeout = self.left().map_or(PollTimeout::NONE, |left| {
            // Up to the next millisecond: not several times within the last.
            PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut ends, timeout) {
            Ok(_) => Ok(ends[2].any().unwrap_or(false)),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// How long it may wait for something to happen.
    fn left(&self) -> Option<Duration> {
        if self.overdue.is_some() {
            return Some(LOOK);
        }
        let due = self.shared.state.lock().ledger.due();
        let first = due.into_iter().chain(self.starts_by).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    /// Writes as much as there is room for.
    fn write(&mut self) -> Result<(), End> {
        let mut state = self.shared.state.lock();
        while let Some(frame) = state.outgoing.front() {
            match self.socket.write(&frame[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // It has ended or closed its socket, which shows where it is read: after what it had still to say.
                Err(_) => {
                    state.outgoing.clear();
                    return Ok(());
                }
            }
            if self.sent == frame.len() {
                self.sent = 0;
                state.outgoing.pop_front();
            }
        }
        Ok(())
    }

    /// Reads once, or if the process has ended, all it has left.
    fn read(&mut self, ended: bool) -> Result<(), End> {
        let mut bytes = [0; READ];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => return Err(End::Itself),
                Ok(read) => self.decoder.push(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return if ended { Err(End::Itself) } else { Ok(()) };
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(End::Itself),
            }
            while let Some(report) =
                self.decoder.decode::<Report>().map_err(|error| End::Ours(error.to_string()))?
            {
                self.receive(report)?;
            }
            if !ended {
                return Ok(());
            }
        }
    }

    fn receive(&mut self, report: Report) -> Result<(), End> {
        let mut state = self.shared.state.lock();
        let meaning = state.ledger.receive(report, Instant::now());
        // Whoever does not listen any more has cancelled what they asked for.
        match meaning.map_err(|error| End::Ours(error.to_string()))? {
            Meaning::Ready(seal) => {
                self.starts_by = None;
                let _ = state.ready.take().map(|ready| ready.send(Ok(seal)));
            }
            Meaning::NotStarted(why) => {
                let _ = state.ready.take().map(|ready| ready.send(Err(why)));
                return Err(End::Ours("it did not start".to_owned()));
            }
            Meaning::Done(whose, outcome) => {
                let _ = whose.send(answered(outcome));
            }
            Meaning::Running(request, progress) => {
                let event = match progress {
                    Progress::Began => return Ok(()),
                    Progress::WantInput(most) => Event::WantInput(most),
                    Progress::Output(piece) => Event::Output(piece),
                };
                if let Some(run) = state.ledger.whose(request) {
                    let _ = run.send(event);
                }
            }
            Meaning::Ended(run, outcome) => {
                let _ = run.send(match outcome {
                    Ok(end) => Event::Ended(end),
                    Err(refusal) => Event::Refused(refusal.0),
                });
            }
        }
        Ok(())
    }

    /// Kills a cell that has missed a deadline, by its own time or by everyone's.
    fn check_deadlines(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if self.starts_by.is_some_and(|by| by <= now) {
            return Err(End::Ours("it did not start in time".to_owned()));
        }
        let due = self.shared.state.lock().ledger.due().filter(|due| *due <= now);
        let Some(due) = due else {
            self.overdue = None;
            return Ok(());
        };
        let used = self.process.processor_time();
        // What became due while another was overdue has its own grace.
        let (_, before) = *match &mut self.overdue {
            Some(overdue) if overdue.0 == due => overdue,
            overdue => overdue.insert((due, used)),
        };
        if used.saturating_sub(before) >= GRACE || now >= due + LONGEST_GRACE {
            return Err(End::Ours("it missed a deadline".to_owned()));
        }
        Ok(())
    }
}

/// Why a cell is at its end.
enum End {
    /// It ended, or closed its socket.
    Itself,
    /// Nobody has it.
    Abandoned,
    /// It is killed, for this reason.
    Ours(String),
}
