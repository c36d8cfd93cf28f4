//! A client's processes beside the shells of its sandboxes.
//!
//! ```text
//!  process.write  ─► at most WRITES bytes unanswered ─► the process
//!  process.output ◄─ at most WINDOW bytes unacknowledged ◄─ the process
//! ```
//! As with connections to ports, neither side makes the server keep more than that. How a process ended is kept for
//! `process.wait`, of the last so many.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use wardian::{Process, ProcessEnd};

use crate::entry::Entry;
use crate::hibernation::Awake;
use crate::lane::{Lane, Turn};
use crate::outbox::Outbox;
use crate::params::encode;
use crate::rpc::RpcError;

/// How many processes one client may have.
pub(crate) const PROCESSES: usize = 256;
/// How many all clients may have together, beyond the first of each.
pub(crate) const SHARED: usize = 4096;
const OWN: usize = 8;
/// How many bytes may be on their way to the client, of one process, before it acknowledges them.
pub(crate) const WINDOW: usize = 256 << 10;
/// How many bytes a client may have sent to one process that it has not taken.
pub(crate) const WRITES: usize = 1 << 20;
/// The longest piece that is sent at once.
const PIECE: usize = 64 << 10;
/// How many processes are remembered that have ended.
const ENDED: usize = 1024;

/// All processes of a client, by number.
pub(crate) struct Processes {
    table: Mutex<Table>,
    count: Arc<AtomicUsize>,
    own: Arc<Semaphore>,
    shared: Arc<Semaphore>,
}

#[derive(Default)]
struct Table {
    last: u64,
    known: BTreeMap<u64, Arc<Handle>>,
    /// Those that have ended, in that order.
    ended: VecDeque<u64>,
    closed: bool,
}

/// A place for one process, before there is one and as long as there is.
pub(crate) struct Place {
    count: Arc<AtomicUsize>,
    _room: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One process, running or ended.
pub(crate) struct Handle {
    number: u64,
    pub(crate) sandbox: Option<String>,
    pub(crate) pid: u32,
    /// What it was started with, as far as lists show it.
    pub(crate) shown: String,
    pub(crate) pty: bool,
    /// What is written, in the order of the lines.
    lane: Lane,
    running: Mutex<Option<Running>>,
    /// How many bytes the client has sent that it has not taken.
    unwritten: AtomicUsize,
    /// How many bytes may be sent to the client now.
    window: watch::Sender<usize>,
    /// How it ended, once the client was told everything it wrote.
    ended: watch::Sender<Option<Value>>,
}

struct Running {
    process: Process,
    _place: Place,
}

impl Processes {
    pub(crate) fn new(shared: Arc<Semaphore>) -> Arc<Processes> {
        let own = Arc::new(Semaphore::new(OWN));
        Arc::new(Processes { table: Mutex::default(), count: Arc::default(), own, shared })
    }

    /// Returns a place for one more, if there is one.
    pub(crate) fn place(&self) -> Result<Place, RpcError> {
        if self.table.lock().closed {
            return Err(RpcError::internal("the server is shutting down"));
        }
        let own = || self.own.clone().try_acquire_owned();
        let Ok(_room) = own().or_else(|_| self.shared.clone().try_acquire_owned()) else {
            let why = "EAGAIN: the clients of this server have too many processes";
            return Err(RpcError::refused("EAGAIN", why));
        };
        let one_more = |count: usize| (count < PROCESSES).then_some(count + 1);
        match self.count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more) {
            Ok(_) => Ok(Place { count: self.count.clone(), _room }),
            Err(_) => {
                let why = format!("EAGAIN: a client has at most {PROCESSES} processes");
                Err(RpcError::refused("EAGAIN", why))
            }
        }
    }

    /// Adds a process.
    pub(crate) fn add(
        &self,
        process: Process,
        sandbox: Option<String>,
        shown: String,
        place: Place,
    ) -> Arc<Handle> {
        let mut table = self.table.lock();
        table.last += 1;
        let handle = Arc::new(Handle {
            number: table.last,
            sandbox,
            pid: process.pid(),
            shown,
            pty: process.has_pty(),
            lane: Lane::default(),
            running: Mutex::new(Some(Running { process, _place: place })),
            unwritten: AtomicUsize::new(0),
            window: watch::Sender::new(WINDOW),
            ended: watch::Sender::new(None),
        });
        // Of a client that is gone nothing is kept: dropping it kills it.
        if !table.closed {
            table.known.insert(handle.number, handle.clone());
        }
        handle
    }

    pub(crate) fn get(&self, id: &str) -> Result<Arc<Handle>, RpcError> {
        let number = id.parse().ok().filter(|number: &u64| number.to_string() == id);
        let table = self.table.lock();
        let found = number.and_then(|number| table.known.get(&number).cloned());
        found.ok_or_else(|| RpcError::params(format!("Unknown processId: {id}")))
    }

    /// Returns those that run, in one sandbox.
    pub(crate) fn running(&self, sandbox: Option<&str>) -> Vec<Arc<Handle>> {
        let table = self.table.lock();
        let runs =
            |handle: &&Arc<Handle>| handle.sandbox.as_deref() == sandbox && handle.ended.borrow().is_none();
        table.known.values().filter(runs).cloned().collect()
    }

    fn forget_oldest(&self, ended: u64) {
        let mut table = self.table.lock();
        table.ended.push_back(ended);
        if table.ended.len() > ENDED
            && let Some(oldest) = table.ended.pop_front()
        {
            table.known.remove(&oldest);
        }
    }

    /// Ends all of them.
    pub(crate) fn end(&self) {
        let known = {
            let mut table = self.table.lock();
            table.closed = true;
            std::mem::take(&mut table.known)
        };
        for handle in known.into_values() {
            let running = handle.running.lock().take();
            drop(running);
        }
    }
}

/// Bytes waiting to be written, counted until they are.
pub(crate) struct Unwritten {
    handle: Arc<Handle>,
    bytes: usize,
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.handle.unwritten.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

impl Handle {
    pub(crate) fn id(&self) -> String {
        self.number.to_string()
    }

    pub(crate) fn turn(&self) -> Turn {
        self.lane.turn()
    }

    /// Returns the process, if it has not ended.
    pub(crate) fn process(&self) -> Result<Process, RpcError> {
        let running = self.running.lock();
        let process = running.as_ref().map(|running| running.process.clone());
        process
            .ok_or_else(|| RpcError::refused("ESRCH", format!("ESRCH: the process {} has ended", self.id())))
    }

    /// Takes note of bytes waiting to be written, unless there are too many.
    pub(crate) fn count(self: &Arc<Handle>, bytes: usize) -> Result<Unwritten, RpcError> {
        let most = |now: usize| now.checked_add(bytes).filter(|sum| *sum <= WRITES);
        match self.unwritten.fetch_update(Ordering::SeqCst, Ordering::SeqCst, most) {
            Ok(_) => Ok(Unwritten { handle: self.clone(), bytes }),
            Err(_) => {
                let why = format!("EAGAIN: more than {WRITES} bytes would wait for the process to read them");
                Err(RpcError::refused("EAGAIN", why))
            }
        }
    }

    /// The client has taken so many bytes, and can be sent as many more.
    pub(crate) fn acknowledge(&self, bytes: usize) -> Result<(), RpcError> {
        let mut fits = false;
        self.window.send_if_modified(|window| {
            fits = window.checked_add(bytes).is_some_and(|sum| sum <= WINDOW);
            *window += if fits { bytes } else { 0 };
            fits
        });
        let refusal = || RpcError::params("bytes: more than the client was sent and has not acknowledged");
        if fits { Ok(()) } else { Err(refusal()) }
    }

    /// Waits until it has ended and the client was told everything it wrote.
    pub(crate) async fn wait(&self) -> Result<Value, RpcError> {
        let mut ended = self.ended.subscribe();
        let end = ended.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        end.ok_or_else(|| RpcError::internal("the server is shutting down"))
    }

    /// Tells the client what it writes, and how it ends.
    pub(crate) async fn tell(
        self: Arc<Handle>,
        processes: Arc<Processes>,
        mut first: Turn,
        // The sandbox stays in memory as long as there is something to tell.
        (entry, _awake): (Arc<Entry>, Awake),
        outbox: Outbox,
    ) {
        // The client must know the process first.
        first.come().await;
        let Ok(process) = self.process() else { return };
        tokio::select! {
            biased;
            () = self.pass_on(&process, &outbox) => {}
            () = entry.ended() => process.kill(),
        }
        let drained = async { while process.next_output().await.is_some() {} };
        let (end, ()) = tokio::join!(process.wait(), drained);
        let end = end_object(&end);
        let mut params = end.clone();
        params["processId"] = self.id().into();
        outbox.notify("process.exit", params).await;
        drop(process);
        let running = self.running.lock().take();
        drop(running);
        self.ended.send_replace(Some(end));
        processes.forget_oldest(self.number);
    }

    async fn pass_on(&self, process: &Process, outbox: &Outbox) {
        let mut window = self.window.subscribe();
        while let Some(output) = process.next_output().await {
            let mut left = &output.bytes[..];
            while !left.is_empty() {
                // The sender lives as long as this.
                let Ok(room) = window.wait_for(|window| *window > 0).await.map(|window| *window) else {
                    return;
                };
                let (now, later) = left.split_at(left.len().min(room).min(PIECE));
                left = later;
                self.window.send_modify(|window| *window -= now.len());
                let params = json!({
                    "processId": self.id(), "stream": output.stream.name(), "data": encode(now),
                });
                if outbox.notify("process.output", params).await {
                    self.window.send_modify(|window| *window += now.len());
                }
            }
        }
    }
}

fn end_object(end: &ProcessEnd) -> Value {
    let mut object = json!({
        "exitCode": end.exit_code,
        "executionTimeMs": end.duration.as_secs_f64() * 1000.0,
    });
    if let Some(signal) = end.signal {
        object["signal"] = signal.into();
    }
    if let Some(class) = end.error_class {
        object["errorClass"] = class.name().into();
    }
    if let Some(limit) = end.limit {
        object["limit"] = limit.name().into();
    }
    object
}
