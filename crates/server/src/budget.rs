//! The memory for lines: what one client may have waiting, and what all clients together may.
//!
//! ```text
//!         answers   requests
//! own       1 MiB      1 MiB   for each client, so that a client that reads is always served
//! client   64 MiB    128 MiB   for each client: the longest line there is
//! shared  128 MiB    256 MiB   for all clients: what a line takes beyond the first of these
//! ```
//! Room for an answer is reserved before it is built and freed once it is written; a request takes its room as it arrives. A
//! client that holds shared room for longer than its lines need is disconnected when others wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::rpc::RpcError;

/// The longest answer, and the most that one client has waiting.
pub(crate) const ANSWER_MAX: usize = 64 << 20;
/// More than this is built, and read, where it holds up nobody.
pub(crate) const LARGE: usize = 256 << 10;
const CLIENT_KIB: usize = ANSWER_MAX >> 10;
const OWN_KIB: usize = 1 << 10;
const SHARED_KIB: usize = 128 << 10;
/// The same for requests.
const REQUEST_KIB: usize = 128 << 10;
const SHARED_REQUEST_KIB: usize = 256 << 10;
/// How long a client may hold shared room while others wait for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many KiB earn as long again: a slow connection is not an idle one.
const KIB_EACH: u32 = 50 << 10;

/// The room that all clients share.
pub(crate) struct Shared {
    room: Arc<Semaphore>,
    client_kib: usize,
    waiting: AtomicUsize,
    patience: Duration,
    /// Turns for those who read much: see [`Budget::pause`].
    turns: Semaphore,
}

impl Shared {
    pub(crate) fn for_answers() -> Arc<Shared> {
        Shared::new(CLIENT_KIB, SHARED_KIB, PATIENCE)
    }

    pub(crate) fn for_requests() -> Arc<Shared> {
        Shared::new(REQUEST_KIB, SHARED_REQUEST_KIB, PATIENCE)
    }

    pub(crate) fn new(client_kib: usize, shared_kib: usize, patience: Duration) -> Arc<Shared> {
        let room = Arc::new(Semaphore::new(shared_kib));
        let half = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
        let (waiting, turns) = (AtomicUsize::new(0), Semaphore::new(half));
        Arc::new(Shared { room, client_kib, waiting, patience, turns })
    }
}

/// The room of one client.
#[derive(Clone)]
pub(crate) struct Budget {
    shared: Arc<Shared>,
    client: Arc<Semaphore>,
    own: Arc<Semaphore>,
    holds: Arc<Holds>,
    /// How many of the client's requests wait for room of its own, if it has several at once.
    peers: Option<Arc<AtomicUsize>>,
}

/// Since when a client has shared room without a break, and how much it was given since.
#[derive(Default)]
struct Holds(Mutex<Held>);

#[derive(Default)]
struct Held {
    count: usize,
    since: Option<Instant>,
    kib: u32,
}

impl Held {
    fn enter(&mut self, now: Instant, kib: u32) {
        if self.count == 0 {
            *self = Held { count: 0, since: Some(now), kib: 0 };
        }
        self.count += 1;
        self.kib = self.kib.saturating_add(kib);
    }

    fn overdue(&self, now: Instant, patience: Duration) -> bool {
        let allowed = patience + patience * self.kib / KIB_EACH;
        self.count > 0 && self.since.is_some_and(|since| now > since + allowed)
    }
}

impl Holds {
    fn enter(self: &Arc<Holds>, kib: u32) -> Holding {
        self.0.lock().enter(Instant::now(), kib);
        Holding(self.clone())
    }

    /// Returns whether it has taken longer than it may.
    fn overdue(&self, patience: Duration) -> bool {
        self.0.lock().overdue(Instant::now(), patience)
    }
}

/// A piece of shared room that a client has.
struct Holding(Arc<Holds>);

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.0.lock().count -= 1;
    }
}

/// Room for one line.
pub(crate) struct Room {
    kib: usize,
    client: OwnedSemaphorePermit,
    part: OwnedSemaphorePermit,
    _holds: Option<Holding>,
}

/// Counts someone who waits, however that ends.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Waiting<'a> {
        count.fetch_add(1, Ordering::SeqCst);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Budget {
    pub(crate) fn new(shared: Arc<Shared>) -> Budget {
        let room = |kib| Arc::new(Semaphore::new(kib));
        let (client, own) = (room(shared.client_kib), room(OWN_KIB));
        Budget { client, own, holds: Arc::default(), shared, peers: None }
    }

    /// Returns the room of a client that has several requests at once. Each takes its own from it, with
    /// [`Budget::of_request`].
    pub(crate) fn for_requests_at_once(shared: Arc<Shared>) -> Budget {
        Budget { peers: Some(Arc::default()), ..Budget::new(shared) }
    }

    /// Returns the room of one of its requests: out of the client's, but each is too slow by itself alone.
    pub(crate) fn of_request(&self) -> Budget {
        Budget { holds: Arc::default(), ..self.clone() }
    }

    /// Waits for room. A line that is longer than all the room there is goes when it has all of it.
    pub(crate) async fn room(&self, bytes: usize) -> Option<Room> {
        let kib = kib(bytes);
        let client = {
            let _waits = self.peers.as_deref().map(Waiting::new);
            self.client.clone().acquire_many_owned(kib).await.ok()?
        };
        if let Ok(part) = self.own.clone().try_acquire_many_owned(kib) {
            return Some(Room { kib: kib as usize, client, part, _holds: None });
        }
        let _waits = Waiting::new(&self.shared.waiting);
        let part = self.shared.room.clone().acquire_many_owned(kib).await.ok()?;
        Some(Room { kib: kib as usize, client, part, _holds: Some(self.holds.enter(kib)) })
    }

    /// Returns room if there is some now.
    pub(crate) fn try_room(&self, bytes: usize) -> Option<Room> {
        let kib = kib(bytes);
        let client = self.client.clone().try_acquire_many_owned(kib).ok()?;
        if let Ok(part) = self.own.clone().try_acquire_many_owned(kib) {
            return Some(Room { kib: kib as usize, client, part, _holds: None });
        }
        let part = self.shared.room.clone().try_acquire_many_owned(kib).ok()?;
        Some(Room { kib: kib as usize, client, part, _holds: Some(self.holds.enter(kib)) })
    }

    /// Lets others go first. A client that sends without a pause would otherwise be read for as long as the runtime lets a
    /// task go on, which is megabytes, and a thousand such clients one after the other. Only a few of them are ever
    /// in the runtime's queue; the others wait here, in order.
    pub(crate) async fn pause(&self) {
        let _turn = self.shared.turns.acquire().await;
        tokio::task::yield_now().await;
    }

    /// Ends when the client has taken too long, over all its lines, and others need the room that it has.
    pub(crate) async fn wanted_back(&self) {
        let patience = self.shared.patience;
        loop {
            tokio::time::sleep(patience / 10).await;
            let waits = |count: &AtomicUsize| count.load(Ordering::SeqCst) > 0;
            let others_wait = waits(&self.shared.waiting) || self.peers.as_deref().is_some_and(waits);
            if others_wait && self.holds.overdue(patience) {
                return;
            }
        }
    }
}

fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX).min(CLIENT_KIB as u32)
}

impl Room {
    pub(crate) fn covers(&self, bytes: usize) -> bool {
        kib(bytes) as usize <= self.kib
    }

    /// Frees what a line of so many bytes does not need.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let surplus = self.kib.saturating_sub(kib(bytes) as usize);
        drop((self.client.split(surplus), self.part.split(surplus)));
        self.kib -= surplus;
    }
}

/// Refuses an answer that would be too long, before it is built.
pub(crate) fn check_length(what: &str, bytes: usize) -> Result<(), RpcError> {
    if bytes < ANSWER_MAX { Ok(()) } else { Err(too_long(what)) }
}

pub(crate) fn too_long(what: &str) -> RpcError {
    let message = format!("EFBIG: {what}: the answer would be longer than answerBytes, {ANSWER_MAX}");
    RpcError::refused("EFBIG", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn many_clients_together_stay_within_the_capacity() {
        let shared = Shared::for_answers();
        let clients: Vec<Budget> = (0..64).map(|_| Budget::new(shared.clone())).collect();
        let rooms: Vec<Room> = clients.iter().filter_map(|client| client.try_room(8 << 20)).collect();
        assert!((1..=SHARED_KIB >> 13).contains(&rooms.len()), "{} have room", rooms.len());
        // A client that reads is served all the same.
        assert!(clients.iter().all(|client| client.try_room(1 << 19).is_some()));
        drop(rooms);
        assert!(clients[0].try_room(ANSWER_MAX).is_some());
    }

    #[tokio::test]
    async fn room_that_is_not_needed_is_free() {
        let shared = Shared::for_answers();
        let (one, other) = (Budget::new(shared.clone()), Budget::new(shared));
        let mut rooms = [one.try_room(ANSWER_MAX).unwrap(), other.try_room(ANSWER_MAX - 1024).unwrap()];
        assert!(one.try_room(8 << 20).is_none());
        rooms[0].shrink(1 << 20);
        assert!(one.try_room(8 << 20).is_some());
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_gives_back_what_others_need() {
        let patience = Duration::from_millis(20);
        let shared = Shared::new(CLIENT_KIB, SHARED_KIB, patience);
        let [deaf, idle, waits] = [(); 3].map(|()| Budget::new(shared.clone()));
        let room = deaf.room(ANSWER_MAX).await;
        let patient = tokio::time::timeout(patience * 10, deaf.wanted_back());
        assert!(patient.await.is_err(), "nobody needs it");
        let (_rest, _small) = (idle.room(ANSWER_MAX - 1024).await, waits.room(1 << 19).await);
        let mut waiting = Box::pin(waits.room(8 << 20));
        assert!(tokio::time::timeout(patience, &mut waiting).await.is_err());
        tokio::select! {
            () = deaf.wanted_back() => drop(room),
            _ = &mut waiting => panic!("there is no room"),
        }
        assert!(waiting.await.is_some());
        let innocent = Budget::new(shared);
        assert!(tokio::time::timeout(patience * 10, innocent.wanted_back()).await.is_err(), "it has none");
    }

    #[test]
    fn a_client_that_reads_lines_slowly_is_too_slow_as_well() {
        let (start, patience) = (Instant::now(), Duration::from_secs(10));
        // Always one line of two megabytes on its way, the next before the last is gone.
        for (pause, too_slow) in [(8_000, true), (100, false)] {
            let mut held = Held::default();
            let mut now = start;
            held.enter(now, 2048);
            let slow = (0..1000).any(|_| {
                now += Duration::from_millis(pause);
                held.enter(now, 2048);
                held.count -= 1;
                held.overdue(now, patience)
            });
            assert_eq!(slow, too_slow, "a line each {pause} ms");
            held.count = 0;
            assert!(!held.overdue(now + patience * 100, patience), "it has none");
        }
    }
}
