//! A client's sandboxes: one table, one namespace of ids.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use wardian::{Builder, Engine, PoolOptions, Sandbox, Snapshot, UsageNow};

use crate::budget;
use crate::callback::Callbacks;
use crate::lane::{Hold, Lane, Turn};
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::rpc::{INVALID_REQUEST, RpcError};
use crate::tenant::Tenant;

/// The maximum number of snapshots per client: no call drops one.
const SNAPSHOTS: usize = 4096;

/// What all clients of a server share.
pub(crate) struct Shared {
    /// Where states are written that are too long for a line.
    pub(crate) state_dir: Option<PathBuf>,
    /// Capacity for sandboxes.
    pub(crate) room: Arc<Semaphore>,
    pub(crate) max_sandboxes: usize,
    pub(crate) max_clients: usize,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clients: Clients,
    /// Memory for answers.
    pub(crate) answers: Arc<budget::Shared>,
    /// Memory for requests while they arrive.
    pub(crate) requests: Arc<budget::Shared>,
    /// Turns for work that takes long for its size: see [`Session::heavy`].
    pub(crate) heavy: Arc<Semaphore>,
    /// Turns for work on a line that takes as long as the line is: see [`Session::aside`].
    pub(crate) aside: Arc<Semaphore>,
    /// Memory for requests that wait for runs.
    pub(crate) waiting_kib: Arc<Semaphore>,
}

/// All clients, by number.
#[derive(Default)]
pub(crate) struct Clients {
    last: AtomicU64,
    sessions: Mutex<BTreeMap<u64, Weak<Session>>>,
}

/// The most shells that a client can have kept ready, and warm.
const POOL_MIN_MAX: usize = 64;
const POOL_MAX_MAX: usize = 1024;

impl Clients {
    /// Returns as many shells as any of them wants.
    fn pool(&self) -> PoolOptions {
        let sessions: Vec<Arc<Session>> = self.sessions.lock().values().filter_map(Weak::upgrade).collect();
        let wanted = sessions.iter().filter_map(|session| *session.pool.lock());
        let larger = |one: PoolOptions, other: PoolOptions| PoolOptions {
            min_size: one.min_size.max(other.min_size),
            max_size: one.max_size.max(other.max_size),
        };
        wanted.reduce(larger).unwrap_or_default()
    }

    /// Returns what all their sandboxes use now.
    pub(crate) fn usage(&self) -> UsageNow {
        let sessions: Vec<Arc<Session>> = self.sessions.lock().values().filter_map(Weak::upgrade).collect();
        let mut sum = UsageNow::default();
        for used in sessions.iter().map(|session| session.usage()) {
            sum.processes += used.processes;
            sum.memory_bytes += used.memory_bytes;
        }
        sum
    }
}

/// How many KiB of requests of all clients may wait for runs, beyond the first of each client.
pub(crate) const WAITING_KIB: usize = 512 << 10;

/// Returns how many may do work of one kind at once: the other half of the processors is for everything else.
pub(crate) fn half_of_the_processors() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

/// A turn for heavy work.
pub(crate) type Heavy = (Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>);

/// What a client has.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    /// Its number, for the log.
    pub(crate) client: u64,
    /// Whose states it reads and writes.
    tenant: Mutex<Tenant>,
    pub(crate) outbox: Outbox,
    pub(crate) callbacks: Arc<Callbacks>,
    /// The longest line it may send.
    line_limit: AtomicUsize,
    /// One piece of work of each kind at a time, so that clients take turns.
    heavy: Arc<Semaphore>,
    aside: Arc<Semaphore>,
    /// How many shells it wants to be kept ready.
    pool: Mutex<Option<PoolOptions>>,
    table: Mutex<Table>,
}

/// The longest line a client may send by default.
const LINE_LIMIT: usize = 8 << 20;

#[derive(Default)]
struct Table {
    root: Option<Arc<Entry>>,
    /// How `create` created the root: named sandboxes are created the same way.
    builder: Option<Builder>,
    /// Whether the client stores states.
    storage: bool,
    others: BTreeMap<u64, Arc<Entry>>,
    snapshots: BTreeMap<u64, (Arc<Entry>, Snapshot)>,
    last_id: u64,
    last_snapshot: u64,
    closed: bool,
}

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
    buried: Mutex<Vec<Snapshot>>,
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

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, RpcError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| RpcError::internal("the request failed: see the server's log"))
}

fn unknown(id: &str) -> RpcError {
    RpcError::params(format!("Unknown sandboxId: {id}"))
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, tenant: Tenant, outbox: Outbox) -> Arc<Session> {
        let client = shared.clients.last.fetch_add(1, Ordering::Relaxed) + 1;
        let tenant = Mutex::new(tenant);
        let callbacks = Arc::new(Callbacks::new(outbox.clone(), shared.aside.clone()));
        let line_limit = AtomicUsize::new(LINE_LIMIT);
        let session = Arc::new(Session {
            shared,
            client,
            tenant,
            outbox,
            callbacks,
            line_limit,
            heavy: Arc::new(Semaphore::new(1)),
            aside: Arc::new(Semaphore::new(1)),
            pool: Mutex::default(),
            table: Mutex::default(),
        });
        session.shared.clients.sessions.lock().insert(client, Arc::downgrade(&session));
        session
    }

    /// Returns whose states it reads and writes.
    pub(crate) fn tenant(&self) -> Tenant {
        self.tenant.lock().clone()
    }

    pub(crate) fn set_tenant(&self, tenant: Tenant) {
        *self.tenant.lock() = tenant;
    }

    /// Returns what its sandboxes use now.
    fn usage(&self) -> UsageNow {
        let table = self.table.lock();
        let mut sum = UsageNow::default();
        for entry in table.others.values().chain(&table.root) {
            if let Slot::Live(sandbox) = &*entry.slot.lock() {
                let used = sandbox.usage_now();
                sum.processes += used.processes;
                sum.memory_bytes += used.memory_bytes;
            }
        }
        sum
    }

    /// Waits for a turn for work that takes long for its size. Whoever has one must not wait for a client.
    pub(crate) async fn heavy(&self) -> Heavy {
        let own = self.heavy.clone().acquire_owned().await.ok();
        (own, self.shared.heavy.clone().acquire_owned().await.ok())
    }

    /// Waits for a turn to read or write a long line or file: that takes as long as it is, so such turns are short, and do
    /// not wait for the others.
    pub(crate) async fn line_turn(&self) -> Heavy {
        let own = self.aside.clone().acquire_owned().await.ok();
        (own, self.shared.aside.clone().acquire_owned().await.ok())
    }

    /// Does work on a line on a thread that may block.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        let _turn = self.line_turn().await;
        blocking(work).await
    }

    /// Does work that takes long for its size.
    pub(crate) async fn heavily<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        let _turn = self.heavy().await;
        blocking(work).await
    }

    /// Sets how many shells it wants to be kept ready. All sandboxes of the server are of one engine, which keeps as many as
    /// any of its clients wants.
    pub(crate) fn set_pool(&self, engine: &Engine, pool: Option<PoolOptions>) -> Result<(), wardian::Error> {
        if let Some(pool) = pool {
            pool.check()?;
        }
        *self.pool.lock() = pool.map(|pool| PoolOptions {
            min_size: pool.min_size.min(POOL_MIN_MAX),
            max_size: pool.max_size.min(POOL_MAX_MAX),
        });
        engine.set_pool(self.shared.clients.pool())
    }

    /// The client is gone, and with it what it wanted to be kept ready.
    pub(crate) fn let_go_of_pool(&self) {
        if self.pool.lock().is_some()
            && let Ok(engine) = Engine::shared()
            && let Err(error) = self.set_pool(&engine, None)
        {
            tracing::warn!(%error, "the pool stays as it is");
        }
    }

    /// Returns the longest line to accept from the client now.
    pub(crate) fn line_limit(&self) -> usize {
        self.line_limit.load(Ordering::Relaxed)
    }

    pub(crate) fn is_created(&self) -> bool {
        self.table.lock().root.is_some()
    }

    /// Reserves the entry of the root, to be filled.
    pub(crate) fn begin_root(
        &self,
        builder: &Builder,
        line_limit: Option<usize>,
        storage: bool,
    ) -> Result<Arc<Entry>, RpcError> {
        let root = Entry::new(Origin::Root, self.room(1)?.pop());
        let line_limit = line_limit.map_or(LINE_LIMIT, |bytes| bytes.clamp(1 << 10, 128 << 20));
        self.line_limit.store(line_limit, Ordering::Relaxed);
        let mut table = self.table.lock();
        table.root = Some(root.clone());
        table.builder = Some(builder.clone());
        table.storage = storage;
        Ok(root)
    }

    /// It could not be created: another `create` may follow.
    pub(crate) fn forget_root(&self) {
        let mut table = self.table.lock();
        // What it was to be made of may be large.
        (table.root, table.builder) = (None, None);
    }

    pub(crate) fn has_storage(&self) -> bool {
        self.table.lock().storage
    }

    pub(crate) fn builder(&self) -> Option<Builder> {
        self.table.lock().builder.clone()
    }

    /// Returns the sandbox a request is about.
    pub(crate) fn entry(&self, id: Option<&str>) -> Result<Arc<Entry>, RpcError> {
        let table = self.table.lock();
        let found = match id {
            None => table.root.as_ref(),
            Some(id) => number(id).and_then(|number| table.others.get(&number)),
        };
        found.cloned().ok_or_else(|| unknown(id.unwrap_or("null")))
    }

    /// Reserves capacity for this many more sandboxes.
    pub(crate) fn room(&self, count: usize) -> Result<Vec<OwnedSemaphorePermit>, RpcError> {
        let take = || self.shared.room.clone().try_acquire_owned();
        let room: Result<Vec<_>, _> = (0..count).map(|_| take()).collect();
        room.map_err(|_| {
            RpcError::params(format!("Maximum of {} sandboxes reached", self.shared.max_sandboxes))
        })
    }

    /// Adds a sandbox to the table; returns its id.
    pub(crate) fn add(&self, entry: Arc<Entry>) -> Result<String, RpcError> {
        let mut table = self.table.lock();
        if table.closed {
            return Err(RpcError::internal("the server is shutting down"));
        }
        table.last_id += 1;
        let id = table.last_id;
        table.others.insert(id, entry);
        Ok(id.to_string())
    }

    /// Removes a sandbox from the table, with its snapshots, if `wanted`.
    pub(crate) fn remove(&self, id: &str, wanted: fn(&Origin) -> bool) -> Result<Arc<Entry>, RpcError> {
        let mut table = self.table.lock();
        let key = number(id).filter(|key| table.others.get(key).is_some_and(|entry| wanted(&entry.origin)));
        let entry = key.and_then(|key| table.others.remove(&key)).ok_or_else(|| unknown(id))?;
        let gone = table.snapshots.extract_if(.., |_, (owner, _)| Arc::ptr_eq(owner, &entry));
        entry.buried.lock().extend(gone.map(|(_, (_, snapshot))| snapshot));
        Ok(entry)
    }

    /// Returns the named sandboxes.
    pub(crate) fn named(&self) -> Vec<(String, Arc<Entry>)> {
        let table = self.table.lock();
        let named = table.others.iter().filter(|(_, entry)| matches!(entry.origin, Origin::Named { .. }));
        named.map(|(id, entry)| (id.to_string(), entry.clone())).collect()
    }

    /// Keeps a snapshot, which takes `bytes` more than the one before it, unless all of a sandbox then take more than
    /// `limit`.
    pub(crate) fn keep_snapshot(
        &self,
        owner: &Arc<Entry>,
        snapshot: Snapshot,
        bytes: u64,
        limit: u64,
    ) -> Result<String, RpcError> {
        let mut table = self.table.lock();
        if table.snapshots.len() >= SNAPSHOTS {
            return Err(RpcError::params(format!("Maximum of {SNAPSHOTS} snapshots reached")));
        }
        let mut held = owner.snapshots.lock();
        let total = held.1.saturating_add(bytes);
        if total > limit {
            let what = "the snapshots of this sandbox would keep";
            let message = format!("ENOSPC: {what} {total} bytes, limit snapshotBytes {limit}");
            return Err(RpcError::refused("ENOSPC", message));
        }
        *held = (Some(snapshot.clone()), total);
        table.last_snapshot += 1;
        let id = table.last_snapshot;
        table.snapshots.insert(id, (owner.clone(), snapshot));
        Ok(id.to_string())
    }

    pub(crate) fn snapshot(&self, id: &str) -> Result<Snapshot, RpcError> {
        let table = self.table.lock();
        let found = number(id).and_then(|key| table.snapshots.get(&key));
        found
            .map(|(_, snapshot)| snapshot.clone())
            .ok_or_else(|| RpcError::params(format!("Unknown snapshot: {id}")))
    }

    /// Destroys every sandbox. Running commands return as cancelled.
    pub(crate) async fn end(&self) {
        let entries: Vec<Arc<Entry>> = {
            let mut table = self.table.lock();
            table.closed = true;
            let snapshots = std::mem::take(&mut table.snapshots);
            if let Some(root) = &table.root {
                root.buried.lock().extend(snapshots.into_values().map(|(_, snapshot)| snapshot));
            }
            let others = std::mem::take(&mut table.others);
            others.into_values().chain(table.root.take()).collect()
        };
        self.callbacks.hang_up();
        let mut ending = JoinSet::new();
        for entry in entries {
            ending.spawn(async move { entry.end().await });
        }
        ending.join_all().await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.clients.sessions.lock().remove(&self.client);
    }
}

/// Parses the number of an id; `01` and `+1` are invalid.
fn number(id: &str) -> Option<u64> {
    id.parse().ok().filter(|number: &u64| number.to_string() == id)
}
