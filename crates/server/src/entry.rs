//! One sandbox of a client: its state, and the order of its calls.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, Notify, Semaphore, watch};
use wardian::{Sandbox, Snapshot, UsageNow};

use crate::hibernation::{Asleep, Awake, Bed};
use crate::lane::{Hold, Lane, Turn};
use crate::quota::Place;
use crate::rpc::{INVALID_REQUEST, RpcError};
use crate::watching::Pace;

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
    /// It is being saved, to leave memory: see `hibernation`.
    Leaving(Sandbox),
    Asleep(Asleep),
    /// The client stores its state, under this name.
    Offloaded(String),
    Destroyed,
}

/// One sandbox, and the order of its calls.
pub(crate) struct Entry {
    slot: Mutex<Slot>,
    /// How many use it now, and since when nobody did. Locked after the slot.
    used: Mutex<(usize, Instant)>,
    /// Held while it leaves memory, comes back, or ends.
    moving: AsyncMutex<()>,
    /// Where it sleeps, if it can.
    bed: OnceLock<Arc<Bed>>,
    pub(crate) origin: Origin,
    pub(crate) created: SystemTime,
    /// Runs and the calls that wait for them.
    commands: Lane,
    /// File calls and the like, which never wait for a run.
    calls: Lane,
    /// When one of its watchers may look.
    pub(crate) pace: Pace,
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
    place: Mutex<Option<Place>>,
}

impl Entry {
    pub(crate) fn new(origin: Origin, place: Option<Place>) -> Arc<Entry> {
        Arc::new(Entry {
            slot: Mutex::new(Slot::Empty),
            used: Mutex::new((0, Instant::now())),
            moving: AsyncMutex::default(),
            bed: OnceLock::new(),
            origin,
            created: SystemTime::now(),
            commands: Lane::default(),
            calls: Lane::default(),
            pace: Pace::default(),
            runs: Mutex::default(),
            snapshots: Mutex::default(),
            buried: Mutex::default(),
            name: Mutex::default(),
            http: OnceLock::new(),
            ended: watch::Sender::new(false),
            place: Mutex::new(place),
        })
    }

    /// One that is asleep, and was created at that time.
    pub(crate) fn asleep(origin: Origin, created: SystemTime, asleep: Asleep, bed: Arc<Bed>) -> Arc<Entry> {
        let mut entry = Entry::new(origin, None);
        // Nobody else has it yet.
        if let Some(entry) = Arc::get_mut(&mut entry) {
            entry.created = created;
            *entry.slot.get_mut() = Slot::Asleep(asleep);
            let _ = entry.bed.set(bed);
        }
        entry
    }

    /// It can sleep there from now on.
    pub(crate) fn sleeps_in(self: &Arc<Entry>, bed: Arc<Bed>) {
        let bed = self.bed.get_or_init(|| bed);
        if matches!(*self.slot.lock(), Slot::Live(_)) {
            bed.enter(self);
        }
    }

    pub(crate) fn bed(&self) -> Option<&Arc<Bed>> {
        self.bed.get()
    }

    pub(crate) fn over(origin: Origin, sandbox: Sandbox, place: Place) -> Arc<Entry> {
        let entry = Entry::new(origin, Some(place));
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
        self.glance(Sandbox::usage_now).unwrap_or_default()
    }

    /// Destroys it, whatever runs.
    pub(crate) async fn end(&self) {
        // What leaves memory or comes back does so first.
        let moving = self.moving.lock().await;
        let slot = std::mem::replace(&mut *self.slot.lock(), Slot::Destroyed);
        self.ended.send_replace(true);
        if let Some(bed) = self.bed() {
            bed.leave();
        }
        if let Slot::Live(sandbox) | Slot::Leaving(sandbox) = slot {
            // One that is saved is saved for the last time, and stays in the store.
            if let Err(error) = sandbox.close().await {
                tracing::warn!(%error, "a sandbox could not be saved at its end");
            }
        }
        drop(moving);
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

    /// Returns whether it was destroyed or offloaded.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    pub(crate) fn is_asleep(&self) -> bool {
        matches!(*self.slot.lock(), Slot::Asleep(_))
    }

    /// It has a place from now on.
    pub(crate) fn takes(&self, place: Place) {
        *self.place.lock() = Some(place);
    }

    /// Does something with the sandbox if it is in memory now, which it need not be afterwards.
    pub(crate) fn glance<T>(&self, look: impl FnOnce(&Sandbox) -> T) -> Option<T> {
        if let Slot::Live(sandbox) | Slot::Leaving(sandbox) = &*self.slot.lock() {
            Some(look(sandbox))
        } else {
            None
        }
    }

    /// Returns how much memory its files and processes take.
    pub(crate) async fn bytes(&self) -> u64 {
        match self.glance(Sandbox::clone) {
            Some(sandbox) => sandbox.usage_now().memory_bytes + sandbox.disk_usage().await,
            None => 0,
        }
    }

    /// Returns the sandbox, which stays in memory as long as it is used. One that sleeps is woken.
    pub(crate) async fn awake(self: &Arc<Entry>) -> Result<Awake, RpcError> {
        if let Some(awake) = self.awake_now()? {
            return Ok(awake);
        }
        let _moving = self.moving.lock().await;
        if let Some(awake) = self.awake_now()? {
            return Ok(awake);
        }
        let dormant = match &*self.slot.lock() {
            Slot::Asleep(asleep) => asleep.dormant().clone(),
            _ => return Err(RpcError::internal("the sandbox is being saved: try again")),
        };
        let bed = self.bed().ok_or_else(|| RpcError::internal("nothing to make a sandbox from"))?;
        let (sandbox, room) = bed.bring_back(&dormant).await?;
        if let Slot::Asleep(asleep) = std::mem::replace(&mut *self.slot.lock(), Slot::Live(sandbox)) {
            *self.place.lock() = Some(asleep.come_back(room));
        }
        bed.enter(self);
        self.awake_now()?.ok_or_else(|| RpcError::internal("the sandbox is being saved: try again"))
    }

    /// Returns the sandbox if it is in memory; the caller has waited for its turn, so a missing one will not appear by itself.
    fn awake_now(self: &Arc<Entry>) -> Result<Option<Awake>, RpcError> {
        let slot = self.slot.lock();
        match &*slot {
            Slot::Live(sandbox) => {
                self.used.lock().0 += 1;
                Ok(Some(Awake::new(sandbox.clone(), self.clone())))
            }
            Slot::Leaving(_) | Slot::Asleep(_) => Ok(None),
            Slot::Empty => Err(RpcError::new(INVALID_REQUEST, "the sandbox could not be created")),
            Slot::Destroyed => Err(wardian::Error::Destroyed.into()),
            Slot::Offloaded(_) => {
                Err(RpcError::refused("EBUSY", "EBUSY: the sandbox is offloaded: call rehydrate first"))
            }
        }
    }

    /// One use of it is over.
    pub(crate) fn let_go(&self) {
        let mut used = self.used.lock();
        *used = (used.0 - 1, Instant::now());
    }

    /// Returns when it was last used: now, while it is.
    pub(crate) fn last_used(&self) -> Instant {
        let used = self.used.lock();
        if used.0 > 0 { Instant::now() } else { used.1 }
    }

    /// Leaves memory, unless it is used or has to stay; returns whether it did.
    pub(crate) async fn hibernate(self: &Arc<Entry>) -> bool {
        // By itself: whoever asks for it may be gone before it has left.
        tokio::spawn(self.clone().leave()).await.unwrap_or(false)
    }

    async fn leave(self: Arc<Entry>) -> bool {
        let (Some(bed), Ok(_moving)) = (self.bed(), self.moving.try_lock()) else { return false };
        let sandbox = {
            let mut slot = self.slot.lock();
            let Slot::Live(sandbox) = &*slot else { return false };
            let sandbox = sandbox.clone();
            if self.used.lock().0 > 0 || self.is_running() {
                return false;
            }
            *slot = Slot::Leaving(sandbox.clone());
            sandbox
        };
        let put_aside = bed.put_aside(&sandbox).await;
        let asleep = put_aside.unwrap_or_else(|error| {
            tracing::warn!(%error, "a sandbox stays in memory: it could not be saved");
            None
        });
        let Some(mut asleep) = asleep else {
            *self.slot.lock() = Slot::Live(sandbox);
            // It is asked again when it has been idle for as long again.
            self.used.lock().1 = Instant::now();
            return false;
        };
        asleep.leave(self.place.lock().take());
        *self.slot.lock() = Slot::Asleep(asleep);
        bed.leave();
        true
    }

    /// Returns what is left of one that sleeps, if that is all there is to it; else all of it.
    pub(crate) fn into_asleep(mut self) -> Result<(Origin, SystemTime, Asleep, Arc<Bed>), Box<Entry>> {
        let plain = self.snapshots.get_mut().0.is_none()
            && self.name.get_mut().is_none()
            && self.buried.get_mut().is_empty();
        let slot = std::mem::replace(self.slot.get_mut(), Slot::Empty);
        match (slot, self.bed.take()) {
            (Slot::Asleep(asleep), Some(bed)) if plain => Ok((self.origin, self.created, asleep, bed)),
            (slot, bed) => {
                *self.slot.get_mut() = slot;
                self.bed = bed.map_or_else(OnceLock::new, OnceLock::from);
                Err(Box::new(self))
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

    /// Waits for its turn, and returns the sandbox.
    pub(crate) async fn sandbox(&mut self) -> Result<Awake, RpcError> {
        self.come().await;
        self.entry.awake().await
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

    /// Waits for its turn, and returns the sandbox.
    pub(crate) async fn sandbox(&mut self) -> Result<Awake, RpcError> {
        self.come().await;
        self.entry.awake().await
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
