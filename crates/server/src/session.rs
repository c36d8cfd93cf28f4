//! A client's sandboxes: one table, one namespace of ids.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wardian::{
    AuditLog, Builder, Engine, HostRoots, Limits, PersistenceMode, PoolOptions, Sandbox, Snapshot, Store,
    UsageNow,
};

use crate::budget;
use crate::callback::Callbacks;
use crate::doors::Doors;
use crate::entry::{Entry, Origin};
use crate::hibernation::{Asleep, Bed, Dormitory};
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::processes::Processes;
use crate::quota::{Place, Quota};
use crate::rpc::RpcError;
use crate::states::StateDirectory;
use crate::streams::Streams;
use crate::tenant::{Member, Tenant};
use crate::turns::{Held, Turns};
use crate::watchers::Watchers;
use crate::{ClientNetwork, MountRoots};

/// The maximum number of snapshots per client: no call drops one.
const SNAPSHOTS: usize = 4096;

/// What all clients of a server share.
pub(crate) struct Shared {
    /// Where states are written that are too long for a line.
    pub(crate) states: Option<Arc<StateDirectory>>,
    /// Where sandboxes with names are saved.
    pub(crate) store: Option<Store>,
    /// Where everything is recorded that sandboxes do.
    pub(crate) audit: Option<AuditLog>,
    /// Capacity for sandboxes.
    pub(crate) room: Arc<Semaphore>,
    pub(crate) max_sandboxes: usize,
    pub(crate) network: ClientNetwork,
    pub(crate) mounts: MountRoots,
    pub(crate) max_clients: usize,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clients: Clients,
    /// Memory for answers.
    pub(crate) answers: Arc<budget::Shared>,
    /// Memory for requests while they arrive.
    pub(crate) requests: Arc<budget::Shared>,
    /// Turns for work that takes long for its size: see [`Session::heavy`].
    pub(crate) heavy: Turns,
    /// Turns for work on a line that takes as long as the line is: see [`Session::aside`].
    pub(crate) aside: Turns,
    /// Memory for requests that wait for runs.
    pub(crate) waiting_kib: Arc<Semaphore>,
    /// Room for connections to ports of sandboxes.
    pub(crate) streams: Arc<Semaphore>,
    /// Room for processes beside the shells.
    pub(crate) processes: Arc<Semaphore>,
    /// Room for watchers of directories.
    pub(crate) watchers: Arc<Semaphore>,
    /// The sandboxes whose ports can be reached by HTTP.
    pub(crate) doors: Doors,
    /// Who of those that are saved is in memory.
    pub(crate) dormitory: Dormitory,
}

impl Shared {
    /// Returns a builder with what is the same for all sandboxes.
    pub(crate) fn new_builder(&self) -> Builder {
        // No client mounts directories of this machine, also not those of a saved sandbox, unless the server says so.
        let builder = Sandbox::builder().host_roots(&HostRoots::default());
        match &self.audit {
            Some(log) => builder.audit(log),
            None => builder,
        }
    }
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

    /// Those that sleep, and that nobody looks at, take no more than they need.
    pub(crate) fn settle(&self) {
        let sessions: Vec<Arc<Session>> = self.sessions.lock().values().filter_map(Weak::upgrade).collect();
        sessions.iter().for_each(|session| session.settle());
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

/// What a client has.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    /// Its number, for the log.
    pub(crate) client: u64,
    /// Whose states it reads and writes.
    tenant: Mutex<Tenant>,
    /// What it may take with others of its tenant, if the server says so.
    pub(crate) quota: Option<Arc<Quota>>,
    /// What it may grant its sandboxes.
    network: ClientNetwork,
    /// From where it may mount directories of this machine.
    roots: HostRoots,
    pub(crate) outbox: Outbox,
    pub(crate) callbacks: Arc<Callbacks>,
    /// Its connections to ports of its sandboxes.
    pub(crate) streams: Arc<Streams>,
    /// Its processes beside the shells of its sandboxes.
    pub(crate) processes: Arc<Processes>,
    /// Its watchers of directories.
    pub(crate) watchers: Arc<Watchers>,
    /// The longest line it may send.
    line_limit: AtomicUsize,
    heavy: Turns,
    aside: Turns,
    /// How many shells it wants to be kept ready.
    pool: Mutex<Option<PoolOptions>>,
    table: Mutex<Table>,
}

/// The longest line a client may send by default.
const LINE_LIMIT: usize = 8 << 20;
/// The longest line there can be; the one that started the server may send one as its first, with all its mounts.
const LONGEST_LINE: usize = 128 << 20;

#[derive(Default)]
struct Table {
    root: Option<Arc<Entry>>,
    /// How `create` created the root: named sandboxes are created the same way.
    builder: Option<Builder>,
    /// Whether the client stores states.
    storage: bool,
    others: BTreeMap<u64, Arc<Entry>>,
    /// Those that sleep; none of them is among the others.
    asleep: BTreeMap<u64, Box<Sleeper>>,
    snapshots: BTreeMap<u64, (Arc<Entry>, Snapshot)>,
    last_id: u64,
    last_snapshot: u64,
    closed: bool,
}

/// What is left of a sandbox that sleeps.
struct Sleeper {
    asleep: Asleep,
    label: Option<Box<str>>,
    /// In milliseconds since 1970.
    created: u64,
    /// In seconds.
    idle: Option<u32>,
}

impl Sleeper {
    fn new(
        asleep: Asleep,
        label: Option<String>,
        created: SystemTime,
        idle: Option<Duration>,
    ) -> Box<Sleeper> {
        let created = created.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let idle = idle.map(|idle| u32::try_from(idle.as_secs()).unwrap_or(u32::MAX));
        Box::new(Sleeper { asleep, label: label.map(String::into_boxed_str), created, idle })
    }

    fn created(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.created)
    }
}

/// A named sandbox, as lists show it.
pub(crate) struct Named {
    pub(crate) id: String,
    pub(crate) label: Option<String>,
    pub(crate) created: SystemTime,
    pub(crate) asleep: bool,
}

fn unknown(id: &str) -> RpcError {
    RpcError::params(format!("Unknown sandboxId: {id}"))
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, member: impl Into<Member>, outbox: Outbox) -> Arc<Session> {
        let turns = [shared.heavy.of_client(), shared.aside.of_client()];
        Session::with_turns(shared, member.into(), outbox, turns)
    }

    /// Does the same for one that shares its turns, for heavy work and for that on lines, with others.
    pub(crate) fn with_turns(
        shared: Arc<Shared>,
        Member { tenant, quota, is_tenant }: Member,
        outbox: Outbox,
        turns: [Turns; 2],
    ) -> Arc<Session> {
        let client = shared.clients.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (network, line_limit) = match tenant {
            Tenant::Owner => (ClientNetwork::Full, LONGEST_LINE),
            _ => (shared.network, LINE_LIMIT),
        };
        let roots = if is_tenant { &shared.mounts.of_tenants } else { &shared.mounts.of_others };
        let (roots, tenant) = (roots.clone(), Mutex::new(tenant));
        let [heavy, aside] = turns;
        let callbacks = Arc::new(Callbacks::new(outbox.clone(), shared.aside.clone()));
        let line_limit = AtomicUsize::new(line_limit);
        let streams = Streams::new(shared.streams.clone());
        let processes = Processes::new(shared.processes.clone());
        let watchers = Watchers::new(shared.watchers.clone());
        let session = Arc::new(Session {
            shared,
            client,
            tenant,
            quota,
            network,
            roots,
            outbox,
            callbacks,
            streams,
            processes,
            watchers,
            line_limit,
            heavy,
            aside,
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

    /// Returns a builder with what the server gives to all sandboxes.
    pub(crate) fn new_builder(&self) -> Builder {
        self.shared.new_builder().host_roots(&self.roots)
    }

    /// Returns from where it may mount directories of this machine.
    pub(crate) fn roots(&self) -> &HostRoots {
        &self.roots
    }

    /// Returns what it may grant its sandboxes.
    pub(crate) fn network(&self) -> ClientNetwork {
        self.network
    }

    pub(crate) fn set_tenant(&self, tenant: Tenant) {
        *self.tenant.lock() = tenant;
    }

    /// Returns what its sandboxes use now.
    fn usage(&self) -> UsageNow {
        let table = self.table.lock();
        let mut sum = UsageNow::default();
        for entry in table.others.values().chain(&table.root) {
            let used = entry.usage();
            sum.processes += used.processes;
            sum.memory_bytes += used.memory_bytes;
        }
        sum
    }

    /// Waits for a turn for work that takes long for its size. What has one must not wait for a client. There are none for a client
    /// that is gone.
    pub(crate) async fn heavy(&self) -> Result<Held, RpcError> {
        self.heavy.take().await
    }

    /// Does such work on a thread that may block.
    pub(crate) async fn heavily<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        self.heavy.run(work).await
    }

    /// Waits for a turn to read or write a long line or file: that takes as long as it is, so such turns are short, and do
    /// not wait for the others.
    pub(crate) async fn line_turn(&self) -> Result<Held, RpcError> {
        self.aside.take().await
    }

    /// Does such work on a thread that may block.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        self.aside.run(work).await
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
        let root = Entry::new(Origin::Root, None);
        let line_limit = line_limit.map_or(LINE_LIMIT, |bytes| bytes.clamp(1 << 10, LONGEST_LINE));
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
    pub(crate) fn entry(self: &Arc<Session>, id: Option<&str>) -> Result<Arc<Entry>, RpcError> {
        let mut table = self.table.lock();
        let found = match id {
            None => table.root.clone(),
            Some(id) => number(id).and_then(|number| self.look_up(&mut table, number)),
        };
        found.ok_or_else(|| unknown(id.unwrap_or("null")))
    }

    fn look_up(self: &Arc<Session>, table: &mut Table, number: u64) -> Option<Arc<Entry>> {
        if let Some(sleeper) = table.asleep.remove(&number) {
            let created = sleeper.created();
            let Sleeper { asleep, label, idle, .. } = *sleeper;
            let (origin, idle) = (Origin::Named { label: label.map(String::from) }, idle.map(u64::from));
            let bed = self.bed(idle.map(Duration::from_secs));
            table.others.insert(number, Entry::asleep(origin, created, asleep, bed));
        }
        table.others.get(&number).cloned()
    }

    /// Returns where a sandbox that is saved sleeps.
    pub(crate) fn bed(self: &Arc<Session>, idle: Option<Duration>) -> Arc<Bed> {
        let session = Arc::downgrade(self);
        Bed::new(&self.shared, idle, move || session.upgrade()?.builder())
    }

    /// Keeps only what is necessary of those that sleep.
    fn settle(&self) {
        let mut table = self.table.lock();
        let numbers: Vec<u64> = {
            let sleeps = |entry: &Arc<Entry>| entry.bed().is_some() && entry.is_asleep();
            table.others.iter().filter(|(_, entry)| sleeps(entry)).map(|(number, _)| *number).collect()
        };
        for number in numbers {
            let Some(entry) = table.others.remove(&number) else { continue };
            // One that somebody has looked up stays: it may be about to wake.
            let entry = match Arc::try_unwrap(entry) {
                Ok(entry) => entry,
                Err(entry) => {
                    table.others.insert(number, entry);
                    continue;
                }
            };
            match entry.into_asleep() {
                Ok((Origin::Named { label }, created, asleep, bed)) => {
                    table.asleep.insert(number, Sleeper::new(asleep, label, created, bed.idle()));
                }
                // Only named ones have beds, and the root, which is not here.
                Ok((origin, created, asleep, bed)) => {
                    table.others.insert(number, Entry::asleep(origin, created, asleep, bed));
                }
                Err(entry) => {
                    table.others.insert(number, Arc::new(*entry));
                }
            }
        }
    }

    /// Reserves places for this many more sandboxes with the options of the first.
    pub(crate) async fn room(&self, count: usize) -> Result<Vec<Place>, RpcError> {
        let builder = self.builder();
        let builder = builder.ok_or_else(|| RpcError::internal("the client is gone"))?;
        self.places(builder.limits_now(), count).await
    }

    /// Does the same for sandboxes with these limits.
    pub(crate) async fn places(&self, limits: &Limits, count: usize) -> Result<Vec<Place>, RpcError> {
        self.shared.places(self.quota.as_ref(), limits, count).await
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

    /// Adds one with a label perhaps, which can sleep if it is saved; returns its id.
    pub(crate) fn add_named(
        self: &Arc<Session>,
        label: Option<String>,
        sandbox: Sandbox,
        place: Place,
        idle: Option<Duration>,
    ) -> Result<String, RpcError> {
        let saved = sandbox.persistence_mode() == Some(PersistenceMode::Persistent);
        let entry = Entry::over(Origin::Named { label }, sandbox, place);
        if saved {
            entry.sleeps_in(self.bed(idle));
        }
        self.add(entry)
    }

    /// Removes a sandbox from the table, with its snapshots, if `wanted`.
    pub(crate) fn remove(
        self: &Arc<Session>,
        id: &str,
        wanted: fn(&Origin) -> bool,
    ) -> Result<Arc<Entry>, RpcError> {
        let mut table = self.table.lock();
        number(id).and_then(|number| self.look_up(&mut table, number));
        let key = number(id).filter(|key| table.others.get(key).is_some_and(|entry| wanted(&entry.origin)));
        let entry = key.and_then(|key| table.others.remove(&key)).ok_or_else(|| unknown(id))?;
        let gone = table.snapshots.extract_if(.., |_, (owner, _)| Arc::ptr_eq(owner, &entry));
        entry.buried.lock().extend(gone.map(|(_, (_, snapshot))| snapshot));
        Ok(entry)
    }

    /// Returns the named sandboxes, in the order of their creation.
    pub(crate) fn named(&self) -> Vec<Named> {
        let table = self.table.lock();
        let awake = table.others.iter().filter_map(|(id, entry)| {
            let Origin::Named { label } = &entry.origin else { return None };
            Some((*id, label.clone(), entry.created, entry.is_asleep()))
        });
        let asleep = table.asleep.iter();
        let asleep =
            asleep.map(|(id, one)| (*id, one.label.as_deref().map(str::to_owned), one.created(), true));
        let mut all: Vec<_> = awake.chain(asleep).collect();
        all.sort_by_key(|(id, ..)| *id);
        let named = |(id, label, created, asleep): (u64, _, _, _)| {
            let id = id.to_string();
            Named { id, label, created, asleep }
        };
        all.into_iter().map(named).collect()
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
        self.heavy.close();
        let entries: Vec<Arc<Entry>> = {
            let mut table = self.table.lock();
            table.closed = true;
            let snapshots = std::mem::take(&mut table.snapshots);
            if let Some(root) = &table.root {
                root.buried.lock().extend(snapshots.into_values().map(|(_, snapshot)| snapshot));
            }
            // Dropping those that sleep lets go of their names.
            drop(std::mem::take(&mut table.asleep));
            let others = std::mem::take(&mut table.others);
            others.into_values().chain(table.root.take()).collect()
        };
        self.callbacks.hang_up();
        self.streams.end();
        self.processes.end();
        self.watchers.end();
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
