//! The supervisor's end of a cell.
//!
//! Each cell has one thread here (`keeper`), which starts the process, reads what it sends, kills it when it must, and
//! waits for its end. The cell ends with that thread, and so with this process, however that ends. Nobody else ever waits
//! for a cell: callers hold channels.

mod keeper;
mod process;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::frame::{Encoder, FrameError, LONGEST_ORDER};
use crate::ledger::{Ledger, NotNow};
use crate::message::{
    NotStarted, Order, Piece, Refusal, RequestId, RunEnd, RunSpec, SandboxId, SandboxSpec, Seal,
};
use keeper::Wake;

/// How to start a cell.
#[derive(Clone, Debug)]
pub struct CellOptions {
    /// The program and its arguments: one that calls [`worker::main`](crate::worker::main) first of all.
    pub program: Vec<PathBuf>,
    /// Where compiled programs are kept, if not where they usually are.
    pub cache: Option<String>,
    /// How many guests may run at once; by default one per processor.
    pub threads: Option<u32>,
    /// The most private memory of the cell, in bytes (`RLIMIT_DATA`).
    pub memory: u64,
    /// What must be in force.
    pub required: Required,
}

/// What must hold a cell. By default landlock and seccomp: without one of them, a cell does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Required {
    /// Namespaces of its own.
    pub namespaces: bool,
    /// Landlock.
    pub landlock: bool,
    /// Seccomp.
    pub seccomp: bool,
}

impl Default for Required {
    fn default() -> Required {
        Required { namespaces: false, landlock: true, seccomp: true }
    }
}

impl CellOptions {
    /// A cell of this program, with the defaults.
    pub fn new(program: Vec<PathBuf>) -> CellOptions {
        let required = Required::default();
        CellOptions { program, cache: None, threads: None, memory: 8 << 30, required }
    }
}

/// Why something could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// Its process could not be started.
    #[error("the cell cannot be started: {0}")]
    Start(String),
    /// A program that it needs was not compiled on this machine yet.
    #[error("{0} has not been compiled on this machine yet")]
    NotCompiled(String),
    /// This machine lacks what must hold a cell.
    #[error("a cell needs {0}, which this machine does not have")]
    NotHeld(&'static str),
    /// The cell is gone, and everything in it.
    #[error("the cell has ended: {0}")]
    Gone(String),
    /// The cell refused.
    #[error("{0}")]
    Refused(String),
    /// It cannot be asked for now.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// It is too long for a message.
    #[error("it is too long for a cell: {0}")]
    TooLong(FrameError),
}

type Answer = oneshot::Sender<Result<(), CellError>>;

/// A cell. Cloning shares it; the process ends with the last clone and the last run.
#[derive(Clone, Debug)]
pub struct Cell(Arc<Owned>);

/// Ends the cell when nobody has it any more.
#[derive(Debug)]
struct Owned(Arc<Shared>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.state.lock().abandoned = true;
        self.0.wake.now();
    }
}

/// What callers and the keeper share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Wake,
}

#[derive(Debug)]
struct State {
    ledger: Ledger<mpsc::UnboundedSender<Event>, Answer>,
    encoder: Encoder,
    /// Frames to be sent. There are no more than requests, credits and inputs that are open.
    outgoing: std::collections::VecDeque<Vec<u8>>,
    /// Who waits for it to be sealed.
    ready: Option<oneshot::Sender<Result<Seal, NotStarted>>>,
    /// Nobody has it any more.
    abandoned: bool,
    /// Why it is gone, once it is.
    gone: Option<String>,
}

/// What a run reports.
#[derive(Debug)]
pub enum Event {
    /// It has written.
    Output(Piece),
    /// It wants at most so many bytes of input: see [`Run::input`].
    WantInput(usize),
    /// It is over.
    Ended(Box<RunEnd>),
    /// It was refused.
    Refused(String),
    /// Its cell is gone, for this reason.
    Gone(String),
}

impl Cell {
    /// Starts a cell, and waits until it is sealed.
    pub async fn start(options: CellOptions) -> Result<Cell, CellError> {
        let required = options.required;
        let (shared, ready) = keeper::start(options)?;
        let cell = Cell(Arc::new(Owned(shared)));
        match ready.await {
            Ok(Ok(seal)) => required.met_by(&seal).map(|()| cell),
            Ok(Err(NotStarted::NotCompiled(program))) => Err(CellError::NotCompiled(program)),
            Ok(Err(NotStarted::Other(why))) => Err(CellError::Start(why)),
            Err(_) => Err(CellError::Start(cell.why_gone())),
        }
    }

    /// Creates a sandbox.
    pub async fn create(&self, spec: SandboxSpec) -> Result<SandboxId, CellError> {
        let (answer, done) = oneshot::channel();
        let sandbox = self.order(|state| {
            let (request, sandbox) = state.ledger.create(answer, &spec, Instant::now())?;
            Ok((Order::Create(request, sandbox, Box::new(spec)), sandbox))
        })?;
        self.wait(done).await.map(|()| sandbox)
    }

    /// Forks a sandbox, which must not run a command; returns the new one.
    pub async fn fork(&self, sandbox: SandboxId) -> Result<SandboxId, CellError> {
        let (answer, done) = oneshot::channel();
        let child = self.order(|state| {
            let (request, child) = state.ledger.fork(answer, sandbox, Instant::now())?;
            Ok((Order::Fork(request, sandbox, child), child))
        })?;
        self.wait(done).await.map(|()| child)
    }

    /// Destroys a sandbox. What it runs is cancelled.
    pub async fn destroy(&self, sandbox: SandboxId) -> Result<(), CellError> {
        let (answer, done) = oneshot::channel();
        self.order(|state| {
            let request = state.ledger.destroy(answer, sandbox, Instant::now())?;
            Ok((Order::Destroy(request, sandbox), ()))
        })?;
        self.wait(done).await
    }

    /// Begins a run. Dropping it cancels it.
    pub fn run(&self, sandbox: SandboxId, spec: RunSpec) -> Result<Run, CellError> {
        let (sender, events) = mpsc::unbounded_channel();
        let request = self.order(|state| {
            let request = state.ledger.run(sender, sandbox, &spec, Instant::now())?;
            Ok((Order::Run(request, sandbox, Box::new(spec)), request))
        })?;
        Ok(Run { cell: self.clone(), request, events, taken: None, over: false })
    }

    /// Returns why the cell is gone, if it is.
    pub fn gone(&self) -> Option<String> {
        self.shared().state.lock().gone.clone()
    }

    fn shared(&self) -> &Shared {
        &self.0.0
    }

    fn why_gone(&self) -> String {
        self.gone().unwrap_or_else(|| "it is gone".to_owned())
    }

    /// Makes an order and sends it. What was noted for one that cannot be sent is of no use, so the cell goes.
    fn order<T>(&self, make: impl FnOnce(&mut State) -> Result<(Order, T), NotNow>) -> Result<T, CellError> {
        let mut state = self.shared().state.lock();
        if let Some(why) = &state.gone {
            return Err(CellError::Gone(why.clone()));
        }
        let (order, made) = make(&mut state)?;
        state.send(&order).map_err(CellError::TooLong)?;
        drop(state);
        self.shared().wake.now();
        Ok(made)
    }

    async fn wait(&self, done: oneshot::Receiver<Result<(), CellError>>) -> Result<(), CellError> {
        done.await.unwrap_or_else(|_| Err(CellError::Gone(self.why_gone())))
    }
}

impl Required {
    fn met_by(self, seal: &Seal) -> Result<(), CellError> {
        let missing = [
            ("namespaces", self.namespaces && !seal.namespaces),
            ("landlock", self.landlock && !seal.landlock),
            ("seccomp", self.seccomp && !seal.seccomp),
        ];
        match missing.into_iter().find(|(_, missing)| *missing) {
            Some((name, _)) => Err(CellError::NotHeld(name)),
            None => Ok(()),
        }
    }
}

impl State {
    fn new(ready: oneshot::Sender<Result<Seal, NotStarted>>) -> State {
        State {
            ready: Some(ready),
            ledger: Ledger::default(),
            encoder: Encoder::new(LONGEST_ORDER),
            outgoing: std::collections::VecDeque::new(),
            abandoned: false,
            gone: None,
        }
    }

    fn send(&mut self, order: &Order) -> Result<(), FrameError> {
        let frame = self.encoder.encode(order)?;
        self.outgoing.push_back(frame);
        Ok(())
    }
}

/// A run in a cell. It ends with [`Event::Ended`], [`Event::Refused`] or [`Event::Gone`].
#[derive(Debug)]
pub struct Run {
    cell: Cell,
    request: RequestId,
    events: mpsc::UnboundedReceiver<Event>,
    /// The length of the last piece of output: whoever asks for the next event is done with it.
    taken: Option<usize>,
    over: bool,
}

impl Run {
    /// Waits for the next event. Who does not ask makes the guest wait: only so much output is ever on its way.
    /// Cancellation-safe.
    pub async fn next(&mut self) -> Event {
        self.grant();
        let event = self.events.recv().await;
        self.note(event)
    }

    fn grant(&mut self) {
        let Some(bytes) = self.taken.take() else { return };
        let request = self.request;
        self.tell(|state| {
            let credit = state.ledger.took(request, bytes, Instant::now())?;
            Some(Order::Credit(request, credit))
        });
    }

    fn note(&mut self, event: Option<Event>) -> Event {
        let event = event.unwrap_or_else(|| Event::Gone(self.cell.why_gone()));
        match &event {
            Event::Output(piece) => self.taken = Some(piece.bytes.len()),
            Event::WantInput(_) => {}
            Event::Ended(_) | Event::Refused(_) | Event::Gone(_) => self.over = true,
        }
        event
    }

    /// Answers [`Event::WantInput`], with no bytes at the end of the input. More than was wanted, or what was not asked
    /// for, is dropped.
    pub fn input(&self, bytes: Vec<u8>) {
        self.answer(Order::Input(self.request, bytes));
    }

    /// Answers it where the input cannot be read.
    pub fn input_failed(&self) {
        self.answer(Order::InputFailed(self.request));
    }

    fn answer(&self, order: Order) {
        let request = self.request;
        self.tell(|state| state.ledger.answer(request).then_some(order));
    }

    /// Cancels it. It ends as any other, and soon: the cell is killed if it does not do it.
    pub fn cancel(&self) {
        let request = self.request;
        self.tell(|state| state.ledger.cancel(request, Instant::now()).then_some(Order::Cancel(request)));
    }

    fn tell(&self, order: impl FnOnce(&mut State) -> Option<Order>) {
        let mut state = self.cell.shared().state.lock();
        if state.gone.is_some() {
            return;
        }
        if let Some(order) = order(&mut state) {
            // None of these is long, except for an input that nobody asked for.
            let _ = state.send(&order);
            drop(state);
            self.cell.shared().wake.now();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.over {
            self.cancel();
        }
    }
}

/// The answer to a request that is no run.
fn answered(outcome: Result<(), Refusal>) -> Result<(), CellError> {
    outcome.map_err(|Refusal(why)| CellError::Refused(why))
}
