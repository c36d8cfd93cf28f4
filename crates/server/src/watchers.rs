//! A client's watchers of directories: each looks for itself (`watching`), and tells what it found.
//!
//! A watcher that has something to tell waits for room in the outbox before it looks again, so of one that is not listened to there is
//! one notification, and what it remembers, for which its sandbox is charged.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use wardian::{Error, Sandbox};

use crate::entry::Entry;
use crate::lane::Turn;
use crate::outbox::Outbox;
use crate::params::text;
use crate::rpc::RpcError;
use crate::watching::{Event, PAUSE, Seen, What, compare};

/// How many watchers one client may have.
pub(crate) const WATCHERS: usize = 64;
/// How many all clients may have together, beyond the first of each.
pub(crate) const SHARED: usize = 4096;
const OWN: usize = 8;
/// How much is told at once: so many events, or about so many bytes of them.
const EVENTS: usize = 256;
const BYTES: usize = 32 << 10;
/// How deep one looks that looks at everything.
const DEEP: usize = 4096;

/// All watchers of a client: how to stop each, by number.
pub(crate) struct Watchers {
    table: Mutex<Table>,
    own: Arc<Semaphore>,
    shared: Arc<Semaphore>,
}

#[derive(Default)]
struct Table {
    last: u64,
    known: BTreeMap<u64, Arc<Notify>>,
    closed: bool,
}

/// A watcher's place, as long as there is one.
pub(crate) struct Place {
    watchers: Arc<Watchers>,
    number: u64,
    stop: Arc<Notify>,
    _room: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.watchers.table.lock().known.remove(&self.number);
    }
}

impl Watchers {
    pub(crate) fn new(shared: Arc<Semaphore>) -> Arc<Watchers> {
        Arc::new(Watchers { table: Mutex::default(), own: Arc::new(Semaphore::new(OWN)), shared })
    }

    /// Returns a place for one more, if there is one.
    pub(crate) fn place(self: &Arc<Watchers>) -> Result<Place, RpcError> {
        let mut table = self.table.lock();
        if table.closed {
            return Err(RpcError::internal("the server is shutting down"));
        }
        if table.known.len() >= WATCHERS {
            let why = format!("EAGAIN: a client has at most {WATCHERS} watchers");
            return Err(RpcError::refused("EAGAIN", why));
        }
        let own = self.own.clone().try_acquire_owned();
        let Ok(_room) = own.or_else(|_| self.shared.clone().try_acquire_owned()) else {
            let why = "EAGAIN: the clients of this server have too many watchers";
            return Err(RpcError::refused("EAGAIN", why));
        };
        table.last += 1;
        let (number, stop) = (table.last, Arc::<Notify>::default());
        table.known.insert(number, stop.clone());
        Ok(Place { watchers: self.clone(), number, stop, _room })
    }

    /// Stops one; says whether there was one.
    pub(crate) fn stop(&self, id: &str) -> bool {
        let number = id.parse().ok().filter(|number: &u64| number.to_string() == id);
        let stop = number.and_then(|number| self.table.lock().known.remove(&number));
        stop.inspect(|stop| stop.notify_one()).is_some()
    }

    /// Stops all of them.
    pub(crate) fn end(&self) {
        let mut table = self.table.lock();
        table.closed = true;
        std::mem::take(&mut table.known).into_values().for_each(|stop| stop.notify_one());
    }
}

/// One that has looked for the first time.
pub(crate) struct Watcher {
    place: Place,
    entry: Arc<Entry>,
    path: Vec<u8>,
    depth: usize,
    seen: Arc<Seen>,
}

/// Why a watcher looks no more.
enum End {
    /// Somebody stopped it, and need not be told.
    Stopped,
    /// The directory is gone, or its sandbox, or something is wrong.
    Told(Option<Error>),
}

impl Watcher {
    pub(crate) async fn new(
        place: Place,
        entry: &Arc<Entry>,
        sandbox: &Sandbox,
        path: Vec<u8>,
        recursive: bool,
    ) -> Result<Watcher, Error> {
        let depth = if recursive { DEEP } else { 1 };
        let seen = entry.pace.look(sandbox, &path, depth).await?;
        Ok(Watcher { place, entry: entry.clone(), path, depth, seen })
    }

    pub(crate) fn id(&self) -> String {
        self.place.number.to_string()
    }

    /// Tells what changes, once the client knows its id.
    pub(crate) async fn tell(mut self, mut told: Turn, outbox: Outbox) {
        told.come().await;
        let (stop, entry, id) = (self.place.stop.clone(), self.entry.clone(), self.id());
        let end = tokio::select! {
            biased;
            () = stop.notified() => End::Stopped,
            () = entry.ended() => End::Told(None),
            end = self.look_on(&outbox) => end,
        };
        if let End::Told(error) = end {
            let mut params = json!({ "watchId": id });
            if let Some(error) = error {
                let error = RpcError::from(error);
                params["error"] = error.errno().unwrap_or("EIO").into();
            }
            drop(self);
            outbox.notify("files.watchEnd", params).await;
        }
    }

    async fn look_on(&mut self, outbox: &Outbox) -> End {
        loop {
            tokio::time::sleep(PAUSE).await;
            // Nothing changes in one that sleeps.
            let Some(sandbox) = self.entry.glance(Sandbox::clone) else { continue };
            let now = match self.entry.pace.look(&sandbox, &self.path, self.depth).await {
                Ok(now) => now,
                // It has left memory meanwhile.
                Err(Error::Destroyed) => continue,
                Err(error) => return End::Told(Some(error)),
            };
            drop(sandbox);
            let before = std::mem::replace(&mut self.seen, now.clone());
            let mut pieces = Pieces::default();
            for event in compare(&before, &now) {
                if let Some(full) = pieces.add(&event, &self.path) {
                    self.say(outbox, full).await;
                }
            }
            if !pieces.events.is_empty() {
                self.say(outbox, pieces.events).await;
            }
        }
    }

    async fn say(&self, outbox: &Outbox, events: Vec<Value>) {
        outbox.notify("files.changed", json!({ "watchId": self.id(), "events": events })).await;
    }
}

/// What is told at once.
#[derive(Default)]
struct Pieces {
    events: Vec<Value>,
    bytes: usize,
}

impl Pieces {
    /// Adds an event; returns what is to be told before it if that is enough.
    fn add(&mut self, event: &Event<'_>, directory: &[u8]) -> Option<Vec<Value>> {
        let path = text(event.below(directory));
        let size = path.len() + 48;
        let is_full = self.events.len() >= EVENTS || (self.bytes + size > BYTES && !self.events.is_empty());
        let full = is_full.then(|| std::mem::take(&mut *self).events);
        self.bytes += size;
        let (kind, change) = (crate::methods::kind(event.kind), name(event.what));
        self.events.push(json!({ "path": path, "change": change, "type": kind }));
        full
    }
}

fn name(what: What) -> &'static str {
    match what {
        What::Create => "create",
        What::Write => "write",
        What::Remove => "remove",
        What::Rename => "rename",
        What::Chmod => "chmod",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wardian::FileKind;

    #[test]
    fn much_is_told_in_pieces() {
        let (mut pieces, mut told) = (Pieces::default(), Vec::new());
        let paths: Vec<Vec<u8>> = (0..1000).map(|number| format!("/w/{number}").into_bytes()).collect();
        for path in &paths {
            told.extend(pieces.add(&Event { path, what: What::Write, kind: FileKind::File }, b"/w"));
        }
        told.push(pieces.events);
        assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), [256, 256, 256, 232]);
        assert_eq!(told[0][0], json!({ "path": "0", "change": "write", "type": "file" }));
        let long = [b"/w/".to_vec(), vec![b'x'; BYTES]].concat();
        let mut pieces = Pieces::default();
        let mut add = || pieces.add(&Event { path: &long, what: What::Remove, kind: FileKind::Dir }, b"/w");
        assert!(add().is_none() && add().is_some_and(|full| full.len() == 1), "one that is long goes alone");
    }

    #[test]
    fn watchers_have_places_that_are_capped_and_come_back() {
        let all = Arc::new(Semaphore::new(WATCHERS));
        let watchers = Watchers::new(all.clone());
        let mut places: Vec<Place> = (0..WATCHERS).map(|_| watchers.place().expect("a place")).collect();
        let refused = watchers.place().err().expect("no place");
        assert_eq!(refused.message, "EAGAIN: a client has at most 64 watchers");
        assert!(!watchers.stop("01") && !watchers.stop("99") && watchers.stop("64"));
        places.pop();
        places.push(watchers.place().expect("a place again"));
        // Another client has its own first, and then none.
        let other = Watchers::new(Arc::new(Semaphore::new(0)));
        let own: Vec<Place> = (0..OWN).map(|_| other.place().expect("a place")).collect();
        assert!(other.place().is_err());
        drop((own, places));
        assert_eq!(all.available_permits(), WATCHERS);
        watchers.end();
        assert!(watchers.place().is_err());
    }
}
