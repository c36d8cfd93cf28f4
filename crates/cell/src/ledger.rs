//! What was ordered from a cell, and whether a report can be an answer.
//!
//! Pure bookkeeping: no process, no clock of its own. A report that names a request that is not open, answers one of
//! another kind, exceeds a limit or a window, or comes at the wrong time is [`Nonsense`], and the cell that sent it is
//! killed. So a cell can do nothing by a report but answer what it was asked, once.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::message::{
    Limits, MOST_INPUT, MOST_TEXT, NotStarted, PIECE, Piece, Refusal, Report, RequestId, RunEnd, RunSpec,
    SandboxId, SandboxSpec, Seal, Stream, VERSION, WINDOW, cost,
};

/// How many requests may be open at once.
pub const MOST_OPEN: usize = 1024;
/// How long a cell may take for a request that is no run.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The output that may still come of a run when it is overdue: what an honest cell had on its way.
pub const MOST_LATE: usize = 4 << 20;
/// How long a run's command may take to begin: a sandbox has one at a time.
pub const TO_BEGIN: Duration = Duration::from_secs(1);

/// A report that cannot be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it sent nonsense: {0}")]
pub struct Nonsense(pub &'static str);

/// What a report means.
#[derive(Debug)]
pub enum Meaning<R, D> {
    /// The cell is sealed.
    Ready(Seal),
    /// It is not, and will not be.
    NotStarted(NotStarted),
    /// A request that is no run was answered.
    Done(D, Result<(), Refusal>),
    /// Something about a run that goes on.
    Running(RequestId, Progress),
    /// A run is over.
    Ended(R, Result<Box<RunEnd>, Refusal>),
}

/// What a run did.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Its command began.
    Began,
    /// It wants at most this many bytes of input.
    WantInput(usize),
    /// It has written.
    Output(Piece),
}

/// Open requests of a cell. `R` and `D` say who waits for a run, and for another request.
#[derive(Debug)]
pub struct Ledger<R, D> {
    started: bool,
    next: u64,
    sandboxes: HashMap<SandboxId, Limits>,
    busy: HashSet<SandboxId>,
    open: HashMap<RequestId, Entry<R, D>>,
}

#[derive(Debug)]
enum Entry<R, D> {
    Simple { whose: D, becomes: Becomes, due: Instant },
    Run(Running<R>),
}

/// What a request changes if it is done.
#[derive(Debug)]
enum Becomes {
    There(SandboxId, Limits),
    Gone,
}

#[derive(Debug)]
struct Running<R> {
    whose: R,
    sandbox: SandboxId,
    /// Bytes that may still come, by stream.
    left: [u64; 2],
    cut: [bool; 2],
    /// What may still come before more is granted.
    window: usize,
    /// What has come and was not granted again.
    owed: usize,
    may_ask: bool,
    asked: bool,
    began: bool,
    cancelled: bool,
    timeout: Option<Duration>,
    /// When the cell must have ended it.
    due: Option<Instant>,
    /// Bytes of output that came after that.
    late: usize,
}

impl<R, D> Default for Ledger<R, D> {
    fn default() -> Ledger<R, D> {
        Ledger {
            started: false,
            next: 1,
            sandboxes: HashMap::new(),
            busy: HashSet::new(),
            open: HashMap::new(),
        }
    }
}

/// A request that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// Too many requests are open.
    #[error("too many requests are open")]
    TooMany,
    /// There is no such sandbox.
    #[error("there is no such sandbox")]
    NoSandbox,
    /// It runs a command.
    #[error("the sandbox runs a command")]
    Busy,
}

impl<R, D> Ledger<R, D> {
    fn number(&mut self) -> Result<u64, NotNow> {
        if self.open.len() >= MOST_OPEN {
            return Err(NotNow::TooMany);
        }
        self.next += 1;
        Ok(self.next)
    }

    /// Notes a sandbox that is to be created; returns the numbers of the request and of the sandbox.
    pub fn create(
        &mut self,
        whose: D,
        spec: &SandboxSpec,
        now: Instant,
    ) -> Result<(RequestId, SandboxId), NotNow> {
        let number = self.number()?;
        let becomes = Becomes::There(number, spec.limits);
        self.open.insert(number, Entry::Simple { whose, becomes, due: now + PATIENCE });
        Ok((number, number))
    }

    /// Notes a fork; returns the numbers of the request and of the new sandbox.
    pub fn fork(
        &mut self,
        whose: D,
        sandbox: SandboxId,
        now: Instant,
    ) -> Result<(RequestId, SandboxId), NotNow> {
        let limits = *self.sandboxes.get(&sandbox).ok_or(NotNow::NoSandbox)?;
        if self.busy.contains(&sandbox) {
            return Err(NotNow::Busy);
        }
        let number = self.number()?;
        let becomes = Becomes::There(number, limits);
        self.open.insert(number, Entry::Simple { whose, becomes, due: now + PATIENCE });
        Ok((number, number))
    }

    /// Notes that a sandbox is to be destroyed. From here on it is not there.
    pub fn destroy(&mut self, whose: D, sandbox: SandboxId, now: Instant) -> Result<RequestId, NotNow> {
        if !self.sandboxes.contains_key(&sandbox) {
            return Err(NotNow::NoSandbox);
        }
        let number = self.number()?;
        self.sandboxes.remove(&sandbox);
        self.open.insert(number, Entry::Simple { whose, becomes: Becomes::Gone, due: now + PATIENCE });
        Ok(number)
    }

    /// Notes a run.
    pub fn run(
        &mut self,
        whose: R,
        sandbox: SandboxId,
        run: &RunSpec,
        now: Instant,
    ) -> Result<RequestId, NotNow> {
        let limits = *self.sandboxes.get(&sandbox).ok_or(NotNow::NoSandbox)?;
        if self.busy.contains(&sandbox) {
            return Err(NotNow::Busy);
        }
        let number = self.number()?;
        self.busy.insert(sandbox);
        let due = run.timeout.and_then(|timeout| now.checked_add(TO_BEGIN + timeout));
        let running = Running {
            whose,
            sandbox,
            // What the sandbox itself says of a run is past any limit.
            left: [limits.stdout_bytes, limits.stderr_bytes]
                .map(|most| most.saturating_add(MOST_TEXT as u64)),
            cut: [false; 2],
            window: WINDOW,
            owed: 0,
            may_ask: run.input,
            asked: false,
            began: false,
            cancelled: false,
            timeout: run.timeout,
            due,
            late: 0,
        };
        self.open.insert(number, Entry::Run(running));
        Ok(number)
    }

    /// Notes that a run is to be cancelled: from now on it is due. Returns whether it is open and was not cancelled before.
    pub fn cancel(&mut self, request: RequestId, now: Instant) -> bool {
        let Some(Entry::Run(run)) = self.open.get_mut(&request) else { return false };
        run.due = Some(run.due.map_or(now, |due| due.min(now)));
        !std::mem::replace(&mut run.cancelled, true)
    }

    /// Notes that a run's input is sent. Returns whether it was asked for.
    pub fn answer(&mut self, request: RequestId) -> bool {
        match self.open.get_mut(&request) {
            Some(Entry::Run(run)) => std::mem::take(&mut run.asked),
            _ => false,
        }
    }

    /// Notes that its reader has taken so much of a run's output. Returns the credit to send, if it is worth a message.
    pub fn took(&mut self, request: RequestId, bytes: usize, now: Instant) -> Option<u32> {
        let Some(Entry::Run(run)) = self.open.get_mut(&request) else { return None };
        run.owed += cost(bytes);
        if run.owed < WINDOW / 4 {
            return None;
        }
        let credit = std::mem::take(&mut run.owed);
        // While it waited for its reader, nothing was due.
        run.due = run.due.map(|due| if run.is_held_up() { due.max(now) } else { due });
        run.window += credit;
        u32::try_from(credit).ok()
    }

    /// Returns who waits for a run.
    pub fn whose(&self, request: RequestId) -> Option<&R> {
        match self.open.get(&request)? {
            Entry::Run(run) => Some(&run.whose),
            Entry::Simple { .. } => None,
        }
    }

    /// Returns when something is due next.
    pub fn due(&self) -> Option<Instant> {
        let due = |entry: &Entry<R, D>| match entry {
            Entry::Simple { due, .. } => Some(*due),
            Entry::Run(run) => run.due.filter(|_| !run.is_held_up()),
        };
        self.open.values().filter_map(due).min()
    }

    /// Returns everyone who waits: the cell is gone.
    pub fn drain(&mut self) -> (Vec<R>, Vec<D>) {
        let (mut runs, mut others) = (Vec::new(), Vec::new());
        for (_, entry) in self.open.drain() {
            match entry {
                Entry::Run(run) => runs.push(run.whose),
                Entry::Simple { whose, .. } => others.push(whose),
            }
        }
        (runs, others)
    }

    /// Compares a report with what was ordered.
    pub fn receive(&mut self, report: Report, now: Instant) -> Result<Meaning<R, D>, Nonsense> {
        match report {
            Report::Ready(_) | Report::NotStarted(_) if self.started => Err(Nonsense("it started twice")),
            Report::Ready(Seal { version, .. }) if version != VERSION => {
                Err(Nonsense("it is of another version"))
            }
            Report::Ready(seal) => {
                self.started = true;
                Ok(Meaning::Ready(seal))
            }
            Report::NotStarted(why) => {
                let (NotStarted::NotCompiled(text) | NotStarted::Other(text)) = &why;
                short(text.len())?;
                self.started = true;
                Ok(Meaning::NotStarted(why))
            }
            _ if !self.started => Err(Nonsense("it answers before it has started")),
            Report::Done(request, outcome) => self.done(request, outcome),
            Report::Began(request) => {
                let run = self.running(request)?;
                if std::mem::replace(&mut run.began, true) {
                    return Err(Nonsense("a command began twice"));
                }
                if let Some(due) = run.timeout.and_then(|timeout| now.checked_add(timeout)) {
                    // Not later than it was, however late the cell says so, and whether or not it was cancelled.
                    run.due = Some(run.due.map_or(due, |before| before.min(due)));
                }
                Ok(Meaning::Running(request, Progress::Began))
            }
            Report::WantInput(request, most) => {
                let run = self.running(request)?;
                let most = most as usize;
                if !run.may_ask || std::mem::replace(&mut run.asked, true) || most == 0 || most > MOST_INPUT {
                    return Err(Nonsense("it asks for input that it cannot have"));
                }
                Ok(Meaning::Running(request, Progress::WantInput(most)))
            }
            Report::Output(request, piece) => {
                self.running(request)?.admit(&piece, now)?;
                Ok(Meaning::Running(request, Progress::Output(piece)))
            }
            Report::Ended(request, outcome) => self.ended(request, outcome),
        }
    }

    fn running(&mut self, request: RequestId) -> Result<&mut Running<R>, Nonsense> {
        match self.open.get_mut(&request) {
            Some(Entry::Run(run)) => Ok(run),
            _ => Err(Nonsense("there is no such run")),
        }
    }

    fn done(&mut self, request: RequestId, outcome: Result<(), Refusal>) -> Result<Meaning<R, D>, Nonsense> {
        if let Err(refusal) = &outcome {
            short(refusal.0.len())?;
        }
        if !matches!(self.open.get(&request), Some(Entry::Simple { .. })) {
            return Err(Nonsense("there is no such request"));
        }
        let Some(Entry::Simple { whose, becomes, .. }) = self.open.remove(&request) else {
            return Err(Nonsense("there is no such request"));
        };
        if let (Becomes::There(sandbox, limits), Ok(())) = (becomes, &outcome) {
            self.sandboxes.insert(sandbox, limits);
        }
        Ok(Meaning::Done(whose, outcome))
    }

    fn ended(
        &mut self,
        request: RequestId,
        outcome: Result<Box<RunEnd>, Refusal>,
    ) -> Result<Meaning<R, D>, Nonsense> {
        match &outcome {
            Ok(end) => {
                short(end.note.len())?;
                short(end.limit.as_ref().map_or(0, String::len))?;
            }
            Err(refusal) => short(refusal.0.len())?,
        }
        let sandbox = self.running(request)?.sandbox;
        let Some(Entry::Run(run)) = self.open.remove(&request) else {
            return Err(Nonsense("there is no such run"));
        };
        self.busy.remove(&sandbox);
        Ok(Meaning::Ended(run.whose, outcome))
    }
}

impl<R> Running<R> {
    /// Returns whether it cannot send a piece because its reader is slow, which is not the cell's fault.
    fn is_held_up(&self) -> bool {
        self.window < cost(PIECE)
    }

    /// Checks a piece of output against the window and the limits.
    fn admit(&mut self, piece: &Piece, now: Instant) -> Result<(), Nonsense> {
        let at = usize::from(piece.stream == Stream::Stderr);
        let length = piece.bytes.len();
        if self.due.is_some_and(|due| due <= now) {
            self.late += cost(length);
        }
        if self.late > MOST_LATE {
            return Err(Nonsense("it goes on after a deadline"));
        }
        if length > PIECE {
            return Err(Nonsense("a piece of output is too long"));
        }
        self.window =
            self.window.checked_sub(cost(length)).ok_or(Nonsense("it sends more output than it may"))?;
        if piece.cut && std::mem::replace(&mut self.cut[at], true) {
            return Err(Nonsense("an output is cut twice"));
        }
        let left = self.left[at].checked_sub(length as u64);
        self.left[at] = left.ok_or(Nonsense("an output is longer than its limit"))?;
        Ok(())
    }
}

fn short(length: usize) -> Result<(), Nonsense> {
    if length > MOST_TEXT { Err(Nonsense("a text is too long")) } else { Ok(()) }
}
