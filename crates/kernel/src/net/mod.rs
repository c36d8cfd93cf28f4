//! The network of a sandbox: sockets between its processes, and a way out if the host offers one.
//!
//! ```text
//!  Socket ── Channel ──► Socket      a stream: two channels, one for each direction
//!     │   ◄── Channel ──
//!     ├─ Inbox                       a datagram socket: what it was sent
//!     └─ Network                     which socket has which port, file or abstract name
//!           └─ Outside ── HostStream ──► the host's side of a connection that leaves the sandbox
//! ```
//!
//! Each sandbox has a loopback network of its own (127.0.0.0/8 and ::1) and nothing else: ports are not the host's, and a
//! connection to any other address goes to the [`Outside`], if the machine has one. Names outside stand for placeholder
//! addresses (`names.rs`), so that no guest needs to resolve anything.
//!
//! Locks are taken in this order: a listening socket, another socket, then the network's tables, a channel or an inbox. None
//! is held across an `await`.

mod address;
mod bind;
mod channel;
mod connect;
mod host_stream;
mod inbox;
mod names;
mod options;
mod outside;
mod report;
mod rights;
mod socket;
mod tables;
mod transfer;

pub(crate) use address::{Address, Domain, LONGEST as LONGEST_ADDRESS, UnixName};
pub(crate) use channel::Ready;
pub use host_stream::HostStream;
pub(crate) use names::{LONGEST_NAME, MOST_ADDRESSES};
pub(crate) use options::LONGEST as LONGEST_OPTION;
pub use outside::{Destination, Outside, OutsideConnection, OutsideHost, Serve};
pub(crate) use report::FILES as REPORTS;
pub(crate) use rights::{PER_MESSAGE as RIGHTS_PER_MESSAGE, Rights};
pub(crate) use socket::{Kind, Peer, Shape, Socket, SocketFd};
pub(crate) use tables::{FileKey, Name};
pub(crate) use transfer::{Flags, Received};

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet};

use crate::limits::Meter;
use crate::proc::Pid;
use names::Names;
use rights::Traffic;
use tables::Tables;

/// A sandbox's network.
pub(crate) struct Network {
    tables: Mutex<Tables>,
    names: Mutex<Names>,
    meter: Arc<Meter>,
    outside: Option<Arc<dyn Outside>>,
    runtime: tokio::runtime::Handle,
    /// Connections that leave the sandbox: they end with it.
    leaving: Mutex<Leaving>,
    traffic: Arc<Traffic>,
}

/// Connections that leave a sandbox, and the processes that made them.
#[derive(Default)]
struct Leaving {
    tasks: JoinSet<()>,
    makers: HashMap<tokio::task::Id, (Pid, AbortHandle)>,
}

impl Leaving {
    fn forget_ended(&mut self) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
            self.makers.remove(&id);
        }
    }
}

/// The number of a new socket: what `fstat` shows for its inode.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Network {
    pub(crate) fn new(
        meter: Arc<Meter>,
        outside: Option<Arc<dyn Outside>>,
        runtime: tokio::runtime::Handle,
    ) -> Arc<Network> {
        Arc::new(Network {
            tables: Mutex::default(),
            names: Mutex::default(),
            meter,
            outside,
            runtime,
            leaving: Mutex::default(),
            traffic: Arc::default(),
        })
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Counts the descriptors that are on their way through sockets.
    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Runs something for a connection of a process that leaves the sandbox, until it ends or the sandbox does.
    fn spawn(&self, maker: Pid, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut leaving = self.leaving.lock();
        leaving.forget_ended();
        let task = leaving.tasks.spawn_on(work, &self.runtime);
        leaving.makers.insert(task.id(), (maker, task.clone()));
        task
    }

    /// Drops what these processes have connected to outside, at once: they are being killed, and nobody waits for what is
    /// still on its way.
    pub(crate) fn cut_off(&self, condemned: impl Fn(Pid) -> bool) {
        let mut leaving = self.leaving.lock();
        leaving.forget_ended();
        leaving.makers.values().filter(|(maker, _)| condemned(*maker)).for_each(|(_, task)| task.abort());
    }

    /// Ends what leaves the sandbox, and drops descriptors on their way: a socket that was sent through itself would
    /// otherwise never go.
    pub(crate) fn close(&self) {
        let leaving = std::mem::take(&mut *self.leaving.lock());
        drop(leaving);
        let sockets = self.tables.lock().all();
        sockets.iter().for_each(|socket| socket.forget_rights());
    }
}
