//! Sandboxes that are saved leave memory while nobody uses them, and come back with their next call.
//!
//! ```text
//!          idle for long, or its place or memory is needed      its session looks
//!  Live ──► Leaving ──► saved, dropped ──► Asleep (an `Entry`) ──► Sleeper (a few words)
//!   ▲          │                             │                        │
//!   └──────────┴───────── the next call ◄────┴────────────────────────┘
//! ```
//! Who uses a sandbox holds an [`Awake`]. The decision to put it aside is made under the same lock as the count of these, so
//! a call comes either before, and the sandbox stays, or after, and waits for it to come back. Nobody else can open the name
//! meanwhile.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use wardian::{Builder, Dormant, Limits, Sandbox};

use crate::entry::Entry;
use crate::quota::{self, Place, Quota, Taken};
use crate::rpc::{INVALID_REQUEST, RpcError};
use crate::session::Shared;

/// How often those that are idle are looked for.
const TICK: Duration = Duration::from_millis(500);
/// How many sandboxes can be asleep.
const ASLEEP_MOST: usize = 1 << 20;

/// What decides who sleeps, and who is awake.
pub(crate) struct Dormitory {
    /// After how long without a call a sandbox leaves memory, unless its client says otherwise.
    idle: Option<Duration>,
    /// How much memory those that could leave it may take together; beyond that the longest unused leave.
    bytes: Option<u64>,
    awake: Mutex<BTreeMap<u64, Weak<Entry>>>,
    last: AtomicU64,
    asleep: Arc<AtomicUsize>,
    watched: AtomicBool,
}

impl Dormitory {
    pub(crate) fn new(idle: Option<Duration>, bytes: Option<u64>) -> Dormitory {
        Dormitory {
            idle,
            bytes,
            awake: Mutex::default(),
            last: AtomicU64::new(0),
            asleep: Arc::default(),
            watched: AtomicBool::new(false),
        }
    }

    /// Returns how many are asleep.
    pub(crate) fn asleep(&self) -> usize {
        self.asleep.load(Ordering::SeqCst)
    }

    fn count(&self) -> Option<Counted> {
        let one_more = |count: usize| (count < ASLEEP_MOST).then_some(count + 1);
        let counted = self.asleep.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more);
        counted.is_ok().then(|| Counted(self.asleep.clone()))
    }

    /// Returns those that are awake, the longest unused first.
    fn by_use(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<Arc<Entry>> = self.awake.lock().values().filter_map(Weak::upgrade).collect();
        all.sort_by_cached_key(|entry| entry.last_used());
        all
    }
}

/// One that is asleep, counted.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// All that is kept of a sandbox that is asleep.
pub(crate) struct Asleep {
    dormant: Dormant,
    /// What of its tenant's quota it takes, awake or not.
    taken: Option<Box<Taken>>,
    _counted: Counted,
}

/// Where a sandbox sleeps, and what it is brought back with.
pub(crate) struct Bed {
    shared: Arc<Shared>,
    /// What the store does not keep: network policy, extensions.
    builder: Box<dyn Fn() -> Option<Builder> + Send + Sync>,
    idle: Option<Duration>,
    number: u64,
}

impl Bed {
    /// Returns one in which a sandbox goes to sleep after so long without a call, or after as long as the server says.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        idle: Option<Duration>,
        builder: impl Fn() -> Option<Builder> + Send + Sync + 'static,
    ) -> Arc<Bed> {
        let number = shared.dormitory.last.fetch_add(1, Ordering::Relaxed);
        Arc::new(Bed { shared: shared.clone(), builder: Box::new(builder), idle, number })
    }

    /// Returns what its client said.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.idle
    }

    /// It is awake from now on.
    pub(crate) fn enter(&self, entry: &Arc<Entry>) {
        let dormitory = &self.shared.dormitory;
        dormitory.awake.lock().insert(self.number, Arc::downgrade(entry));
        if !dormitory.watched.swap(true, Ordering::SeqCst) {
            tokio::spawn(watch(Arc::downgrade(&self.shared)));
        }
    }

    pub(crate) fn leave(&self) {
        self.shared.dormitory.awake.lock().remove(&self.number);
    }

    /// Puts a sandbox aside, if it can be.
    pub(crate) async fn put_aside(&self, sandbox: &Sandbox) -> Result<Option<Asleep>, wardian::Error> {
        let Some(_counted) = self.shared.dormitory.count() else { return Ok(None) };
        Ok(sandbox.hibernate().await?.map(|dormant| Asleep { dormant, taken: None, _counted }))
    }

    /// Brings a sandbox back, and takes a place of the server's for it.
    pub(crate) async fn bring_back(
        &self,
        asleep: &Dormant,
    ) -> Result<(Sandbox, OwnedSemaphorePermit), RpcError> {
        let gone = || RpcError::new(INVALID_REQUEST, "the sandbox could not be brought back");
        let room = self.shared.make_room(1).await?.pop().ok_or_else(gone)?;
        let store = self.shared.store.as_ref().ok_or_else(gone)?;
        let builder = (self.builder)().ok_or_else(gone)?;
        Ok((store.wake(asleep, builder).await?, room))
    }
}

impl Asleep {
    /// One that was found in the store, of a tenant with this quota.
    pub(crate) fn found(shared: &Shared, dormant: Dormant, taken: Option<Taken>) -> Option<Asleep> {
        Some(Asleep { dormant, taken: taken.map(Box::new), _counted: shared.dormitory.count()? })
    }

    pub(crate) fn dormant(&self) -> &Dormant {
        &self.dormant
    }

    /// It has left memory: its place is the server's again, but not its tenant's.
    pub(crate) fn leave(&mut self, place: Option<Place>) {
        self.taken = place.and_then(Place::leave).map(Box::new);
    }

    /// It is in memory again, with a place of the server's.
    pub(crate) fn come_back(self, room: OwnedSemaphorePermit) -> Place {
        Place::new(room, self.taken.map(|taken| *taken))
    }
}

/// A sandbox that stays in memory as long as this is held.
pub(crate) struct Awake {
    sandbox: Sandbox,
    entry: Arc<Entry>,
}

impl Awake {
    /// The caller has counted it, with the lock held that says that it is there.
    pub(crate) fn new(sandbox: Sandbox, entry: Arc<Entry>) -> Awake {
        Awake { sandbox, entry }
    }
}

impl Deref for Awake {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.entry.let_go();
    }
}

impl Shared {
    /// Reserves places for this many more sandboxes with these limits.
    pub(crate) async fn places(
        &self,
        quota: Option<&Arc<Quota>>,
        limits: &Limits,
        count: usize,
    ) -> Result<Vec<Place>, RpcError> {
        // Before anything is done for each of them: a client says how many.
        if count > self.max_sandboxes {
            return Err(self.full());
        }
        // What a tenant may not have makes nobody sleep.
        let take = |_| quota.map(|quota| quota.place(quota::memory_of(limits))).transpose();
        let taken = (0..count).map(take).collect::<Result<Vec<_>, _>>()?;
        let room = self.make_room(count).await?;
        Ok(room.into_iter().zip(taken).map(|(room, taken)| Place::new(room, taken)).collect())
    }

    /// Reserves capacity for this many more sandboxes. If there is none, those sleep that were not used for the longest time.
    async fn make_room(&self, count: usize) -> Result<Vec<OwnedSemaphorePermit>, RpcError> {
        if let Some(room) = self.try_room(count) {
            return Ok(room);
        }
        for entry in self.dormitory.by_use() {
            entry.hibernate().await;
            if let Some(room) = self.try_room(count) {
                return Ok(room);
            }
        }
        Err(self.full())
    }

    fn full(&self) -> RpcError {
        RpcError::params(format!("Maximum of {} sandboxes reached", self.max_sandboxes))
    }

    /// Puts the longest unused aside until what is saved takes no more memory than this.
    async fn relieve(&self, bytes: u64) {
        let (mut awake, mut sum) = (Vec::new(), 0u64);
        for entry in self.dormitory.by_use() {
            let takes = entry.bytes().await;
            sum = sum.saturating_add(takes);
            awake.push((entry, takes));
        }
        for (entry, takes) in awake {
            if sum <= bytes {
                return;
            }
            if entry.hibernate().await {
                sum -= takes;
            }
        }
    }

    /// Takes all of it or nothing.
    fn try_room(&self, count: usize) -> Option<Vec<OwnedSemaphorePermit>> {
        let mut all = self.room.clone().try_acquire_many_owned(u32::try_from(count).ok()?).ok()?;
        (0..count).map(|_| all.split(1)).collect()
    }
}

/// Looks for those that can sleep, as long as there is the server.
async fn watch(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(TICK).await;
        let Some(shared) = shared.upgrade() else { return };
        sweep(&shared).await;
    }
}

async fn sweep(shared: &Shared) {
    let now = Instant::now();
    for entry in shared.dormitory.by_use() {
        let idle = entry.bed().and_then(|bed| bed.idle).or(shared.dormitory.idle);
        if idle.is_some_and(|idle| now.duration_since(entry.last_used()) >= idle) {
            entry.hibernate().await;
        }
    }
    if let Some(bytes) = shared.dormitory.bytes {
        shared.relieve(bytes).await;
    }
    shared.clients.settle();
}
