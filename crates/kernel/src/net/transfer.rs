//! Sending and receiving.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use wardian_vfs::{Errno, Result};

use super::address::within;
use super::inbox::{Refusal, check_length};
use super::rights::Rights;
use super::socket::{Connection, Kind, Peer, Phase, Socket};
use super::{Address, Domain, UnixName};
use crate::proc::Process;

/// Linux's flags of `send` and `recv`, as far as they mean something here.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Flags {
    /// Leaves what is received where it is.
    pub(crate) peek: bool,
    /// Returns the length of a datagram, also of one that was cut.
    pub(crate) truncated: bool,
    /// Returns EAGAIN instead of waiting.
    pub(crate) dont_wait: bool,
    /// Receives as much as was asked for.
    pub(crate) wait_all: bool,
    /// Sends no SIGPIPE.
    pub(crate) no_signal: bool,
    /// Descriptors that are received close on exec.
    pub(crate) cloexec: bool,
}

impl Flags {
    /// Decodes them. Returns ENOTSUP for urgent data, EINVAL for what means nothing.
    pub(crate) fn from_bits(bits: u32) -> Result<Flags> {
        const OOB: u32 = 1;
        // MSG_MORE says that more will be sent: here it is sent at once, which is always allowed.
        const KNOWN: u32 = 0x2 | 0x20 | 0x40 | 0x100 | 0x4000 | 0x8000 | 0x4000_0000;
        if bits & OOB != 0 {
            return Err(Errno::ENOTSUP);
        }
        if bits & !KNOWN != 0 {
            return Err(Errno::EINVAL);
        }
        Ok(Flags {
            peek: bits & 0x2 != 0,
            truncated: bits & 0x20 != 0,
            dont_wait: bits & 0x40 != 0,
            wait_all: bits & 0x100 != 0,
            no_signal: bits & 0x4000 != 0,
            cloexec: bits & 0x4000_0000 != 0,
        })
    }
}

/// What was received.
#[derive(Default)]
pub(crate) struct Received {
    /// The bytes in the buffer.
    pub(crate) count: usize,
    /// The length of the datagram.
    pub(crate) whole: usize,
    /// Who sent it, where that is not known anyway.
    pub(crate) from: Option<Address>,
    pub(crate) rights: Option<Rights>,
}

impl Socket {
    fn connection(&self, receiving: bool) -> Result<Connection> {
        let mut state = self.state.lock();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let unix = self.domain() == Domain::Unix;
        match &state.phase {
            Phase::Connected(connection) => Ok(connection.clone()),
            Phase::Lost => Err(Errno::ECONNRESET),
            Phase::Connecting(_) => Err(Errno::EAGAIN),
            _ if receiving => Err(if unix { Errno::EINVAL } else { Errno::ENOTCONN }),
            _ => Err(if unix { Errno::ENOTCONN } else { Errno::EPIPE }),
        }
    }

    /// Receives what is there; `None` if there is nothing yet.
    pub(crate) fn try_receive(&self, buf: &mut [u8], peek: bool) -> Option<Result<Received>> {
        if self.kind() == Kind::Datagram {
            return self.try_receive_datagram(buf, peek);
        }
        let connection = match self.connection(true) {
            Ok(connection) => connection,
            Err(Errno::EAGAIN) => return None,
            Err(errno) => return Some(Err(errno)),
        };
        let received = connection.incoming.try_receive(buf, peek)?;
        Some(received.map(|(count, rights)| Received { count, whole: count, from: None, rights }))
    }

    fn try_receive_datagram(&self, buf: &mut [u8], peek: bool) -> Option<Result<Received>> {
        let shut = {
            let mut state = self.state.lock();
            if matches!(state.phase, Phase::Lost) {
                return Some(Err(Errno::ECONNRESET));
            }
            if let Some(error) = state.error.take() {
                return Some(Err(error));
            }
            state.shut.0
        };
        match self.inbox.take(buf, peek) {
            Some((from, count, whole, rights)) => {
                Some(Ok(Received { count, whole, from: Some(from), rights }))
            }
            None if shut => Some(Ok(Received::default())),
            None => None,
        }
    }

    /// Receives into `buf`, waiting for something.
    pub(crate) async fn receive(&self, process: &Process, buf: &mut [u8], flags: Flags) -> Result<Received> {
        let mut first = self.receive_once(process, buf, flags).await?;
        let all = flags.wait_all && !flags.peek && self.kind() == Kind::Stream;
        while all && first.count > 0 && first.count < buf.len() && first.rights.is_none() {
            match self.receive_once(process, &mut buf[first.count..], flags).await {
                Ok(Received { count: 0, .. }) | Err(_) => break,
                Ok(more) => {
                    first.count += more.count;
                    first.rights = more.rights;
                }
            }
        }
        Ok(first)
    }

    async fn receive_once(&self, process: &Process, buf: &mut [u8], flags: Flags) -> Result<Received> {
        match self.try_receive(buf, flags.peek) {
            Some(received) => received,
            None if flags.dont_wait || self.is_nonblocking() => Err(Errno::EAGAIN),
            None => {
                let timeout = self.options.lock().receive_timeout;
                process.interruptible(self.until(timeout, || self.try_receive(buf, flags.peek))).await
            }
        }
    }

    /// Sends `data` through a stream; what went into it counts, whatever happens to the rest.
    pub(crate) async fn send(
        &self,
        process: &Process,
        data: &[u8],
        flags: Flags,
        mut rights: Option<Rights>,
    ) -> Result<usize> {
        let mut sent = 0;
        let wait = match self.try_send(data, &mut sent, &mut rights) {
            Some(done) => done,
            None if flags.dont_wait || self.is_nonblocking() => Err(Errno::EAGAIN),
            None => {
                let timeout = self.options.lock().send_timeout;
                let sending = self.until(timeout, || self.try_send(data, &mut sent, &mut rights));
                process.interruptible(sending).await
            }
        };
        match wait {
            Err(errno) if sent == 0 => Err(errno),
            _ => Ok(sent),
        }
    }

    /// Sends what fits; `None` if not all of it did.
    fn try_send(&self, data: &[u8], sent: &mut usize, rights: &mut Option<Rights>) -> Option<Result<()>> {
        let connection = match self.connection(false) {
            Ok(connection) => connection,
            Err(Errno::EAGAIN) => return None,
            Err(errno) => return Some(Err(errno)),
        };
        match connection.outgoing.try_send(&data[*sent..], rights) {
            Err(Errno::EPIPE) if connection.incoming.take_reset() => Some(Err(Errno::ECONNRESET)),
            Err(errno) => Some(Err(errno)),
            Ok(more) => {
                *sent += more;
                (*sent == data.len()).then_some(Ok(()))
            }
        }
    }

    /// Returns whether its buffer is smaller than it should be, for lack of memory.
    pub(crate) fn is_starved(&self) -> bool {
        match &self.state.lock().phase {
            Phase::Connected(connection) => connection.outgoing.is_starved(),
            _ => false,
        }
    }

    /// Sends one datagram to a socket, or to where this one is connected to.
    pub(crate) async fn send_datagram(
        self: &Arc<Self>,
        process: &Process,
        data: &[u8],
        flags: Flags,
        to: Option<Peer>,
        rights: Option<Rights>,
    ) -> Result<usize> {
        let unix = self.domain() == Domain::Unix;
        check_length(unix, data.len())?;
        let (known, from) = self.sender()?;
        let peer = match to.or(known) {
            Some(peer) => peer,
            None => return Err(if unix { Errno::ENOTCONN } else { Errno::EDESTADDRREQ }),
        };
        let Some(target) = self.target(&peer, &from) else { return self.nobody_there(data) };
        let mut rights = rights;
        let mut attempt = || self.deliver(&target, &from, data, &mut rights);
        match attempt() {
            Some(done) => done,
            None if flags.dont_wait || self.is_nonblocking() => Err(Errno::EAGAIN),
            None => {
                let timeout = self.options.lock().send_timeout;
                process.interruptible(self.until(timeout, attempt)).await
            }
        }
    }

    /// Where it is connected to, and the address that its datagrams come from.
    fn sender(self: &Arc<Self>) -> Result<(Option<Peer>, Address)> {
        self.bind_somewhere()?;
        let mut state = self.state.lock();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        match &state.phase {
            _ if state.shut.1 => Err(Errno::EPIPE),
            Phase::Datagram(peer) => {
                let from = state.local.clone().unwrap_or_else(|| self.domain().nowhere());
                Ok((peer.clone(), from))
            }
            Phase::Lost => Err(Errno::ECONNRESET),
            _ => Err(Errno::EINVAL),
        }
    }

    fn target(&self, peer: &Peer, from: &Address) -> Option<Arc<Socket>> {
        match (&peer.socket, &peer.address) {
            (Some(socket), _) => socket.upgrade(),
            (None, Address::Inet(to)) => {
                let from = Address::Inet(source(from.inet()?, to.ip()));
                self.network.receiver_at(to.ip(), to.port(), &from)
            }
            (None, Address::Unix(_)) => None,
        }
    }

    /// UDP learns of it by an answer that comes later, and only if it is connected.
    fn nobody_there(&self, data: &[u8]) -> Result<usize> {
        if self.domain() == Domain::Unix {
            return Err(Errno::ECONNREFUSED);
        }
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Datagram(Some(_))) {
            state.error = Some(Errno::ECONNREFUSED);
            drop(state);
            self.changed.notify_waiters();
        }
        Ok(data.len())
    }

    fn deliver(
        &self,
        target: &Socket,
        from: &Address,
        data: &[u8],
        rights: &mut Option<Rights>,
    ) -> Option<Result<usize>> {
        let unix = self.domain() == Domain::Unix;
        let from = match (from, target.local()) {
            (Address::Inet(from), Address::Inet(to)) => Address::Inet(source(*from, to.ip())),
            (from, _) => from.clone(),
        };
        let put = target.inbox.put(self.network.meter(), &from, data, rights);
        if put.is_ok() {
            target.changed.notify_waiters();
        }
        match put {
            Ok(()) => Some(Ok(data.len())),
            Err(Refusal::NoMemory) => Some(Err(Errno::ENOBUFS)),
            Err(Refusal::Closed) => Some(self.nobody_there(data)),
            // UDP loses what there is no space for.
            Err(Refusal::Full) if !unix => Some(Ok(data.len())),
            Err(Refusal::Full) => match target.inbox.has_room(&self.changed) {
                true => self.deliver_again(target, &from, data, rights),
                false => None,
            },
        }
    }

    /// Space came up between the attempt and the question for it. A datagram that does not fit into what is left waits.
    fn deliver_again(
        &self,
        target: &Socket,
        from: &Address,
        data: &[u8],
        rights: &mut Option<Rights>,
    ) -> Option<Result<usize>> {
        match target.inbox.put(self.network.meter(), from, data, rights) {
            Ok(()) => {
                target.changed.notify_waiters();
                Some(Ok(data.len()))
            }
            Err(_) => {
                target.inbox.wait(&self.changed);
                None
            }
        }
    }

    /// The peer that an address given to `sendto` names. Unix names are resolved by the caller.
    pub(crate) fn peer_at(&self, to: SocketAddr) -> Result<Peer> {
        let ip = within(to.ip()).ok_or(Errno::ENETUNREACH)?;
        match to.port() {
            0 => Err(Errno::EINVAL),
            port => Ok(Peer { address: Address::Inet(SocketAddr::new(ip, port)), socket: None }),
        }
    }

    /// The peer that a Unix name stands for.
    pub(crate) fn unix_peer(socket: &Arc<Socket>, name: UnixName) -> Result<Peer> {
        match socket.kind() {
            Kind::Datagram => Ok(Peer { address: Address::Unix(name), socket: Some(Arc::downgrade(socket)) }),
            Kind::Stream => Err(Errno::EPROTOTYPE),
        }
    }
}

/// The address that a datagram to `to` comes from: a socket that has all addresses uses that of the same network.
fn source(from: SocketAddr, to: IpAddr) -> SocketAddr {
    if !from.ip().is_unspecified() {
        return from;
    }
    let ip: IpAddr = match to {
        IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) if from.is_ipv4() => std::net::Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, from.port())
}
