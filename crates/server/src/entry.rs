//! One sandbox of a client: its state, and the order of its calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use wardian::{Sandbox, Snapshot, UsageNow};

use crate::lane::{Hold, Lane, Turn};
use crate::rpc::{INVALID_REQUEST, RpcError};

/// How a sandbox was created.
pub(crate) enum Origin {
    Root,
    Named { label: Option<String> },
    Fork,
}

/// The state of a sandbox.
enum Slot {
    /// It is being created, or could not be.
    Empty,
    Live(Sandbox),
    /// The client stores its state, under this name.
    Offloaded(String),
    Destroyed,
}

/// One sandbox, and the order of its calls.
pub(crate) struct Entry {
    slot: Mutex<Slot>,
    pub(crate) origin: Origin,
    pub(crate) created: SystemTime,
    /// Runs and the calls that wait for them.
    commands: Lane,
    /// File calls and the like, which never wait for a run.
    calls: Lane,
    /// How to cancel each unfinished run, in the order of their lines.
    runs: Mutex<VecDeque<Arc<Notify>>>,
    /// The last of its snapshots, and how many bytes all of them keep.
    pub(crate) snapshots: Mutex<(Option<Snapshot>, u64)>,
    /// Snapshots to free together with it.
    pub(crate) buried: Mutex<Vec<Snapshot>>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Entry {
    pub(crate) fn new(origin: Origin, room: Option<OwnedSemaphorePermit>) -> Arc<Entry> {
        Arc::new(Entry {
            slot: Mutex::new(Slot::Empty),
            origin,
            created: SystemTime::now(),
            commands: Lane::default(),
            calls: Lane::default(),
            runs: Mutex::default(),
            snapshots: Mutex::default(),
            buried: Mutex::default(),
            _room: room,
        })
    }

    pub(crate) fn over(origin: Origin, sandbox: Sandbox, room: OwnedSemaphorePermit) -> Arc<Entry> {
        let entry = Entry::new(origin, Some(room));
        entry.fill(sandbox);
        entry
    }

    pub(crate) fn fill(&self, sandbox: Sandbox) {
        *self.slot.lock() = Slot::Live(sandbox);
    }

    /// Drops the sandbox, whose state the client now stores under its id.
    pub(crate) fn offload(&self) -> Option<Sandbox> {
        let mut slot = self.slot.lock();
        let Slot::Live(sandbox) = &*slot else { return None };
        let sandbox = sandbox.clone();
        *slot = Slot::Offloaded(sandbox.id().to_owned());
        Some(sandbox)
    }

    /// Returns the name under which the client stores its state, if it is offloaded.
    pub(crate) fn offloaded(&self) -> Option<String> {
        if let Slot::Offloaded(name) = &*self.slot.lock() { Some(name.clone()) } else { None }
    }

    pub(crate) fn is_destroyed(&self) -> bool {
        matches!(*self.slot.lock(), Slot::Destroyed)
    }

    /// Returns what it uses now, if it is there.
    pub(crate) fn usage(&self) -> UsageNow {
        if let Slot::Live(sandbox) = &*self.slot.lock() { sandbox.usage_now() } else { UsageNow::default() }
    }

    /// Destroys it, whatever runs.
    pub(crate) async fn end(&self) {
        let slot = std::mem::replace(&mut *self.slot.lock(), Slot::Destroyed);
        if let Slot::Live(sandbox) = slot {
            sandbox.destroy().await;
        }
        let snapshots =
            (std::mem::take(&mut *self.snapshots.lock()), std::mem::take(&mut *self.buried.lock()));
        if snapshots.0.0.is_some() || !snapshots.1.is_empty() {
            wardian::drop_aside(snapshots).await;
        }
    }

    /// Returns the sandbox; the caller has waited for its turn, so a missing one will not appear by itself.
    fn sandbox(&self) -> Result<Sandbox, RpcError> {
        match &*self.slot.lock() {
            Slot::Live(sandbox) => Ok(sandbox.clone()),
            Slot::Empty => Err(RpcError::new(INVALID_REQUEST, "the sandbox could not be created")),
            Slot::Destroyed => Err(wardian::Error::Destroyed.into()),
            Slot::Offloaded(_) => {
                Err(RpcError::refused("EBUSY", "EBUSY: the sandbox is offloaded: call rehydrate first"))
            }
        }
    }

    /// Takes a turn for a call that does not wait for runs.
    pub(crate) fn at_once(self: &Arc<Entry>) -> AtOnce {
        AtOnce { entry: self.clone(), turn: self.calls.turn() }
    }

    /// Takes a turn among the runs, after all earlier ones.
    pub(crate) fn in_turn(self: &Arc<Entry>) -> InTurn {
        InTurn { entry: self.clone(), calls: Some(self.calls.turn()), turn: self.commands.turn() }
    }

    /// Adds a run to those that [`Entry::cancel`] can cancel.
    pub(crate) fn enter_run(self: &Arc<Entry>) -> EnteredRun {
        let cancel = Arc::new(Notify::new());
        self.runs.lock().push_back(cancel.clone());
        EnteredRun { entry: self.clone(), cancel }
    }

    /// Cancels the first unfinished run; returns `false` if there is none.
    pub(crate) fn cancel(&self) -> bool {
        let runs = self.runs.lock();
        runs.front().inspect(|run| run.notify_one()).is_some()
    }
}

/// A call that does not wait for runs, but is still in the order of the lines.
pub(crate) struct AtOnce {
    entry: Arc<Entry>,
    turn: Turn,
}

impl AtOnce {
    pub(crate) fn hold(&self) -> Hold {
        self.turn.hold()
    }

    /// Waits for its turn.
    pub(crate) async fn come(&mut self) {
        self.turn.come().await;
    }

    pub(crate) async fn sandbox(&mut self) -> Result<Sandbox, RpcError> {
        self.come().await;
        self.entry.sandbox()
    }
}

/// A run, or a call that waits for runs.
pub(crate) struct InTurn {
    entry: Arc<Entry>,
    /// Earlier file calls are done first; later ones need not wait for this.
    calls: Option<Turn>,
    turn: Turn,
}

impl InTurn {
    pub(crate) fn hold(&self) -> Hold {
        self.turn.hold()
    }

    /// Waits for its turn.
    pub(crate) async fn come(&mut self) {
        if let Some(mut calls) = self.calls.take() {
            calls.come().await;
        }
        self.turn.come().await;
    }

    pub(crate) async fn sandbox(&mut self) -> Result<Sandbox, RpcError> {
        self.come().await;
        self.entry.sandbox()
    }

    pub(crate) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }
}

/// An unfinished run. Dropping it marks it as finished.
pub(crate) struct EnteredRun {
    entry: Arc<Entry>,
    pub(crate) cancel: Arc<Notify>,
}

impl Drop for EnteredRun {
    fn drop(&mut self) {
        self.entry.runs.lock().retain(|other| !Arc::ptr_eq(other, &self.cancel));
    }
}
