//! A socket: what `socket` creates and descriptors share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use wardian_vfs::{Errno, Result};

use super::channel::{Channel, Ready};
use super::inbox::Inbox;
use super::options::Options;
use super::tables::Entry;
use super::{Address, Domain, Network, next_id};
use crate::limits::Charge;
use crate::proc::Pid;

/// What a socket costs in addition to what it keeps for its user.
const OVERHEAD: usize = 2048;

/// How a socket passes bytes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Stream,
    Datagram,
}

/// What a socket is, whatever has become of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) domain: Domain,
    pub(crate) kind: Kind,
    pub(crate) nonblocking: bool,
}

impl Shape {
    /// A number for archives.
    pub(crate) fn to_number(self) -> u8 {
        let domain = match self.domain {
            Domain::Unix => 0,
            Domain::V4 => 1,
            Domain::V6 => 2,
        };
        domain | u8::from(self.kind == Kind::Datagram) << 2 | u8::from(self.nonblocking) << 3
    }

    /// The shape with this number, if there is one.
    pub(crate) fn from_number(number: u8) -> Option<Shape> {
        let domain = [Domain::Unix, Domain::V4, Domain::V6].into_iter().nth(usize::from(number & 3))?;
        let kind = if number & 4 == 0 { Kind::Stream } else { Kind::Datagram };
        let shape = Shape { domain, kind, nonblocking: number & 8 != 0 };
        (shape.to_number() == number).then_some(shape)
    }
}

pub(crate) struct Socket {
    id: u64,
    domain: Domain,
    kind: Kind,
    /// Who created it, listens at it or connected it.
    pid: AtomicU32,
    pub(super) network: Arc<Network>,
    /// Notified when something about it changes.
    pub(super) changed: Arc<Notify>,
    nonblocking: AtomicBool,
    pub(super) listening: AtomicBool,
    pub(super) inbox: Inbox,
    pub(super) options: Mutex<Options>,
    pub(super) state: Mutex<State>,
    _charge: Charge,
}

pub(super) struct State {
    pub(super) local: Option<Address>,
    pub(super) entry: Option<Entry>,
    pub(super) phase: Phase,
    /// What the next call that can report it reports.
    pub(super) error: Option<Errno>,
    /// A connect that did not wait has succeeded, and nobody was told so.
    pub(super) unannounced: bool,
    /// The process at the other end.
    pub(super) peer_pid: Pid,
    /// `shutdown` of a datagram socket.
    pub(super) shut: (bool, bool),
}

pub(super) enum Phase {
    Fresh,
    Listening(Pending),
    /// Waits for a listener, or for the outside.
    Connecting(Option<AbortHandle>),
    Connected(Connection),
    /// A datagram socket, and where it sends to.
    Datagram(Option<Peer>),
    /// Its other end was left behind in another machine.
    Lost,
    Closed,
}

/// Connections that wait to be accepted, and those who wait for that.
pub(super) struct Pending {
    pub(super) most: usize,
    pub(super) queue: VecDeque<SocketFd>,
    pub(super) waiting: VecDeque<(Weak<Socket>, Address)>,
}

/// Both directions of a stream.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) incoming: Arc<Channel>,
    pub(super) outgoing: Arc<Channel>,
    pub(super) peer: Address,
}

/// Where a datagram socket is connected to.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(super) address: Address,
    /// The socket itself, where the address does not say which.
    pub(super) socket: Option<Weak<Socket>>,
}

/// A socket in an open file: closed when this is dropped.
pub(crate) struct SocketFd(Box<dyn Held>);

/// A socket behind a trait object: sockets hold open files and open files sockets, and a compiler that has to see through all
/// of it to know that a sandbox can be sent to another thread gives up.
trait Held: Send + Sync {
    fn socket(&self) -> &Arc<Socket>;
}

impl Held for Arc<Socket> {
    fn socket(&self) -> &Arc<Socket> {
        self
    }
}

impl SocketFd {
    fn new(socket: Arc<Socket>) -> SocketFd {
        SocketFd(Box::new(socket))
    }

    pub(crate) fn socket(&self) -> &Arc<Socket> {
        self.0.socket()
    }
}

impl Drop for SocketFd {
    fn drop(&mut self) {
        self.socket().close();
    }
}

impl Network {
    /// Creates a socket. Returns ENOBUFS if the sandbox has no memory for it.
    pub(crate) fn socket(self: &Arc<Self>, domain: Domain, kind: Kind, pid: Pid) -> Result<SocketFd> {
        let charge = self.meter.hold(OVERHEAD).ok_or(Errno::ENOBUFS)?;
        let phase = match kind {
            Kind::Stream => Phase::Fresh,
            Kind::Datagram => Phase::Datagram(None),
        };
        Ok(SocketFd::new(self.new_socket(domain, kind, pid, phase, charge)))
    }

    /// A socket whose other end was left behind: the first call says so. It keeps nothing, and is not charged.
    pub(crate) fn lost_socket(self: &Arc<Self>, shape: Shape) -> SocketFd {
        let socket = self.new_socket(shape.domain, shape.kind, 0, Phase::Lost, Charge::nothing(&self.meter));
        socket.set_nonblocking(shape.nonblocking);
        SocketFd::new(socket)
    }

    fn new_socket(
        self: &Arc<Self>,
        domain: Domain,
        kind: Kind,
        pid: Pid,
        phase: Phase,
        charge: Charge,
    ) -> Arc<Socket> {
        let state = State {
            local: None,
            entry: None,
            phase,
            error: None,
            unannounced: false,
            peer_pid: 0,
            shut: (false, false),
        };
        let socket = Arc::new(Socket {
            id: next_id(),
            domain,
            kind,
            pid: AtomicU32::new(pid),
            network: self.clone(),
            changed: Arc::default(),
            nonblocking: AtomicBool::new(false),
            listening: AtomicBool::new(false),
            inbox: Inbox::new(domain == Domain::Unix),
            options: Mutex::default(),
            state: Mutex::new(state),
            _charge: charge,
        });
        self.add(&socket);
        socket
    }

    /// Creates two Unix sockets that are connected with each other.
    pub(crate) fn pair(self: &Arc<Self>, kind: Kind, pid: Pid) -> Result<(SocketFd, SocketFd)> {
        let (a, b) = (self.socket(Domain::Unix, kind, pid)?, self.socket(Domain::Unix, kind, pid)?);
        let nowhere = Domain::Unix.nowhere();
        match kind {
            Kind::Stream => {
                let there = Channel::new(&self.meter, &a.socket().changed, &b.socket().changed);
                let back = Channel::new(&self.meter, &b.socket().changed, &a.socket().changed);
                let peer = nowhere;
                let one = Connection { incoming: back.clone(), outgoing: there.clone(), peer: peer.clone() };
                a.socket().set_connected(one, pid);
                b.socket().set_connected(Connection { incoming: there, outgoing: back, peer }, pid);
            }
            Kind::Datagram => {
                for (one, other) in [(&a, &b), (&b, &a)] {
                    let socket = Some(Arc::downgrade(other.socket()));
                    let mut state = one.socket().state.lock();
                    state.phase = Phase::Datagram(Some(Peer { address: nowhere.clone(), socket }));
                    state.peer_pid = pid;
                }
            }
        }
        Ok((a, b))
    }
}

impl Socket {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn domain(&self) -> Domain {
        self.domain
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape { domain: self.domain, kind: self.kind, nonblocking: self.is_nonblocking() }
    }

    pub(super) fn is_tcp(&self) -> bool {
        self.kind == Kind::Stream && self.domain != Domain::Unix
    }

    pub(crate) fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nonblocking(&self, value: bool) {
        self.nonblocking.store(value, Ordering::Relaxed);
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::SeqCst)
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid.load(Ordering::Relaxed)
    }

    pub(super) fn set_pid(&self, pid: Pid) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    /// Waits for a change after which `attempt` returns something; EAGAIN if that takes longer than `timeout`.
    pub(super) async fn until<T>(
        &self,
        timeout: Option<Duration>,
        mut attempt: impl FnMut() -> Option<Result<T>>,
    ) -> Result<T> {
        let deadline = timeout.map(|timeout| tokio::time::Instant::now() + timeout);
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(done) = attempt() {
                return done;
            }
            match deadline {
                None => changed.await,
                Some(at) => tokio::time::timeout_at(at, changed).await.map_err(|_| Errno::EAGAIN)?,
            }
        }
    }

    /// Its changes, for `poll_oneoff`.
    pub(crate) fn changed(&self) -> &Notify {
        &self.changed
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.state.lock().local.is_some()
    }

    pub(crate) fn local(&self) -> Address {
        self.state.lock().local.clone().unwrap_or_else(|| self.domain.nowhere())
    }

    pub(crate) fn peer(&self) -> Result<Address> {
        match &self.state.lock().phase {
            Phase::Connected(connection) => Ok(connection.peer.clone()),
            Phase::Datagram(Some(peer)) => Ok(peer.address.clone()),
            _ => Err(Errno::ENOTCONN),
        }
    }

    /// Returns whether a datagram from this address is for it.
    pub(super) fn takes_from(&self, from: &Address) -> bool {
        match &self.state.lock().phase {
            Phase::Datagram(None) => true,
            Phase::Datagram(Some(peer)) => peer.address == *from,
            _ => false,
        }
    }

    pub(super) fn set_connected(&self, connection: Connection, peer_pid: Pid) {
        let options = self.options.lock();
        if let Some(capacity) = options.send_buffer {
            connection.outgoing.set_capacity(capacity);
        }
        if let Some(capacity) = options.receive_buffer {
            connection.incoming.set_capacity(capacity);
        }
        drop(options);
        let mut state = self.state.lock();
        (state.phase, state.peer_pid) = (Phase::Connected(connection), peer_pid);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Ends one or both directions.
    pub(crate) fn shut_down(&self, receiving: bool, sending: bool) -> Result<()> {
        let mut state = self.state.lock();
        match &state.phase {
            Phase::Connected(connection) => {
                let connection = connection.clone();
                drop(state);
                if receiving {
                    connection.incoming.stop_receiving(false);
                }
                if sending {
                    connection.outgoing.end();
                }
            }
            Phase::Datagram(peer) if peer.is_some() || self.domain == Domain::Unix => {
                state.shut = (state.shut.0 || receiving, state.shut.1 || sending);
            }
            Phase::Fresh if self.domain == Domain::Unix => {}
            Phase::Listening(_) if receiving => {
                drop(state);
                self.stop_listening();
            }
            _ => return Err(Errno::ENOTCONN),
        }
        self.changed.notify_waiters();
        Ok(())
    }

    /// What `shutdown` does to a listening socket: nobody waits any more.
    fn stop_listening(&self) {
        let mut state = self.state.lock();
        self.listening.store(false, Ordering::SeqCst);
        let phase = std::mem::replace(&mut state.phase, Phase::Fresh);
        drop(state);
        end_phase(self, phase);
    }

    fn close(&self) {
        let mut state = self.state.lock();
        self.listening.store(false, Ordering::SeqCst);
        let phase = std::mem::replace(&mut state.phase, Phase::Closed);
        let entry = state.entry.take();
        drop(state);
        self.network.forget(self, entry.as_ref());
        end_phase(self, phase);
        self.inbox.close();
        self.changed.notify_waiters();
    }

    /// Drops descriptors that were sent to it and never received.
    pub(super) fn forget_rights(&self) {
        let incoming = match &self.state.lock().phase {
            Phase::Connected(connection) => Some(connection.incoming.clone()),
            _ => None,
        };
        if let Some(incoming) = incoming {
            incoming.forget_rights();
        }
        self.inbox.forget_rights();
    }

    /// The error to report, if any.
    pub(crate) fn take_error(&self) -> Option<Errno> {
        let mut state = self.state.lock();
        if let Some(error) = state.error.take() {
            return Some(error);
        }
        match &state.phase {
            Phase::Connected(connection) if connection.incoming.take_reset() => Some(Errno::ECONNRESET),
            _ => None,
        }
    }

    /// What could be done now without waiting.
    pub(crate) fn ready(&self, write: bool) -> Ready {
        let state = self.state.lock();
        let error = state.error.is_some();
        let only =
            |ready: bool| Ready { bytes: usize::from(ready), ready: ready || error, hangup: false, error };
        match &state.phase {
            Phase::Fresh | Phase::Closed => Ready { bytes: 0, ready: write || error, hangup: true, error },
            Phase::Lost => Ready { bytes: 0, ready: true, hangup: true, error: true },
            Phase::Listening(pending) => only(!write && !pending.queue.is_empty()),
            Phase::Connecting(_) => only(false),
            Phase::Connected(connection) => {
                let (incoming, outgoing) = (connection.incoming.receivable(), connection.outgoing.sendable());
                let ready = if write { outgoing } else { incoming };
                Ready {
                    ready: ready.ready || error,
                    hangup: incoming.hangup && outgoing.hangup,
                    error: error || incoming.error,
                    ..ready
                }
            }
            Phase::Datagram(_) if !write => match self.inbox.next_len() {
                Some(len) => Ready { bytes: len, ..only(true) },
                None => only(state.shut.0),
            },
            Phase::Datagram(peer) => {
                let socket = peer.as_ref().and_then(|peer| peer.socket.clone());
                drop(state);
                let full = socket
                    .and_then(|socket| socket.upgrade())
                    .is_some_and(|socket| !socket.inbox.has_room(&self.changed));
                only(!full)
            }
        }
    }
}

/// Lets go of what a socket was doing.
fn end_phase(socket: &Socket, phase: Phase) {
    match phase {
        Phase::Connected(connection) => {
            let forgives = socket.is_tcp();
            let lingers = socket.options.lock().linger != Some(0);
            let unread = connection.incoming.stop_receiving(forgives && lingers);
            match unread || !lingers {
                true => connection.outgoing.reset(),
                false => connection.outgoing.end(),
            }
        }
        Phase::Listening(pending) => {
            // Nobody accepted them: their clients are told.
            for queued in pending.queue {
                let taken = std::mem::replace(&mut queued.socket().state.lock().phase, Phase::Fresh);
                if let Phase::Connected(connection) = taken {
                    connection.incoming.stop_receiving(false);
                    connection.outgoing.reset();
                }
            }
            for (client, _) in pending.waiting {
                if let Some(client) = client.upgrade() {
                    client.fail(Errno::ECONNREFUSED);
                }
            }
        }
        Phase::Connecting(Some(attempt)) => attempt.abort(),
        Phase::Connecting(None) | Phase::Fresh | Phase::Datagram(_) | Phase::Lost | Phase::Closed => {}
    }
}
