//! One sandbox of a client: its state, and the order of its calls.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, watch};
use wardian::{Sandbox, Snapshot, UsageNow};

use crate::lane::{Hold, Lane, Turn};
use crate::quota::Place;
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
    /// How to cancel each unfinished run, by the id of its request, in the order of their lines.
    runs: Mutex<VecDeque<(Option<Value>, Arc<Notify>)>>,
    /// The last of its snapshots, and how many bytes all of them keep.
    pub(crate) snapshots: Mutex<(Option<Snapshot>, u64)>,
    /// Snapshots to free together with it.
    pub(crate) buried: Mutex<Vec<Snapshot>>,
    /// Its name in addresses, once it has one: see `doors`.
    pub(crate) name: Mutex<Option<String>>,
    /// Room for requests to its ports by HTTP.
    http: OnceLock<Arc<Semaphore>>,
    /// Whether it was destroyed or offloaded: connections to its ports end with it.
    ended: watch::Sender<bool>,
    _room: Option<Place>,
}

impl Entry {
    pub(crate) fn new(origin: Origin, room: Option<Place>) -> Arc<Entry> {
        Arc::new(Entry {
            slot: Mutex::new(Slot::Empty),
            origin,
            created: SystemTime::now(),
            commands: Lane::default(),
            calls: Lane::default(),
            runs: Mutex::default(),
            snapshots: Mutex::default(),
            buried: Mutex::default(),
            name: Mutex::default(),
            http: OnceLock::new(),
            ended: watch::Sender::new(false),
            _room: room,
        })
    }

    pub(crate) fn over(origin: Origin, sandbox: Sandbox, room: Place) -> Arc<Entry> {
        let entry = Entry::new(origin, Some(room));
        entry.fill(sandbox);
        entry
    }

    pub(crate) fn fill(&self, sandbox: Sandbox) {
        *self.slot.lock() = Slot::Live(sandbox);
        self.ended.send_replace(false);
    }

    /// Drops the sandbox, whose state the client now stores under its id.
    pub(crate) fn offload(&self) -> Option<Sandbox> {
        let mut slot = self.slot.lock();
        let Slot::Live(sandbox) = &*slot else { return None };
        let sandbox = sandbox.clone();
        *slot = Slot::Offloaded(sandbox.id().to_owned());
        self.ended.send_replace(true);
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
        self.ended.send_replace(true);
        if let Slot::Live(sandbox) = slot {
            // One that is saved is saved for the last time, and stays in the store.
            if let Err(error) = sandbox.close().await {
                tracing::warn!(%error, "a sandbox could not be saved at its end");
            }
        }
        let snapshots =
            (std::mem::take(&mut *self.snapshots.lock()), std::mem::take(&mut *self.buried.lock()));
        if snapshots.0.0.is_some() || !snapshots.1.is_empty() {
            wardian::drop_aside(snapshots).await;
        }
    }

    /// Waits until it is destroyed or offloaded.
    pub(crate) async fn ended(&self) {
        // Its sender lives as long as this.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Returns its room for requests to its ports by HTTP, of which there are at most so many.
    pub(crate) fn http(&self, most: usize) -> Arc<Semaphore> {
        self.http.get_or_init(|| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))).clone()
    }

    /// Returns the sandbox if it is there now.
    pub(crate) fn live(&self) -> Option<Sandbox> {
        if let Slot::Live(sandbox) = &*self.slot.lock() { Some(sandbox.clone()) } else { None }
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
    pub(crate) fn enter_run(self: &Arc<Entry>, request: Option<&Value>) -> EnteredRun {
        let cancel = Arc::new(Notify::new());
        self.runs.lock().push_back((request.cloned(), cancel.clone()));
        EnteredRun { entry: self.clone(), cancel }
    }

    /// Cancels the first unfinished run, or that of a request; returns `false` if there is none.
    pub(crate) fn cancel(&self, request: Option<&Value>) -> bool {
        let runs = self.runs.lock();
        let run = match request {
            None => runs.front(),
            Some(request) => runs.iter().find(|(id, _)| id.as_ref() == Some(request)),
        };
        run.inspect(|(_, cancel)| cancel.notify_one()).is_some()
    }

    /// Returns whether there is an unfinished run.
    pub(crate) fn is_running(&self) -> bool {
        !self.runs.lock().is_empty()
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
        self.entry.runs.lock().retain(|(_, other)| !Arc::ptr_eq(other, &self.cancel));
    }
}
