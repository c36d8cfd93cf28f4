//! Connecting, and accepting connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Weak};

use tokio::sync::Notify;
use wardian_vfs::{Errno, Result};

use super::address::within;
use super::channel::Channel;
use super::host_stream::HostStream;
use super::outside::{Destination, OutsideHost};
use super::socket::{Connection, Kind, Peer, Phase, Socket, SocketFd, State};
use super::{Address, Domain, Name, Network};
use crate::proc::{Pid, Process};

/// How many may wait at a listener for a place among those that wait to be accepted. Each that comes looks at all of them.
const MOST_WAITING: usize = 1024;

/// The address that a connection to the outside seems to come from.
const OWN_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const OWN_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

/// The side that connects: a socket, or the host.
struct Client<'a> {
    notify: &'a Arc<Notify>,
    address: Address,
    pid: Pid,
}

impl Socket {
    /// Takes the first connection that waits.
    pub(crate) fn try_accept(&self) -> Option<Result<SocketFd>> {
        let mut state = self.state.lock();
        let Phase::Listening(pending) = &mut state.phase else { return Some(Err(Errno::EINVAL)) };
        let accepted = pending.queue.pop_front()?;
        let mut next = pending.waiting.pop_front();
        while let Some((client, to)) = next {
            // One that has given up leaves its place to the next.
            if client.upgrade().is_some_and(|client| self.admit(&mut state, &client, &to)) {
                break;
            }
            next = match &mut state.phase {
                Phase::Listening(pending) => pending.waiting.pop_front(),
                _ => None,
            };
        }
        drop(state);
        self.changed.notify_waiters();
        Some(Ok(accepted))
    }

    /// Accepts a connection, waiting for one.
    pub(crate) async fn accept(&self, process: &Process) -> Result<SocketFd> {
        if self.kind() == Kind::Datagram {
            return Err(Errno::ENOTSUP);
        }
        match self.try_accept() {
            Some(accepted) => accepted,
            None if self.is_nonblocking() => Err(Errno::EAGAIN),
            None => {
                let timeout = self.options.lock().receive_timeout;
                process.interruptible(self.until(timeout, || self.try_accept())).await
            }
        }
    }

    /// Connects a socket that waited, if it still does.
    fn admit(&self, listener: &mut State, client: &Arc<Socket>, to: &Address) -> bool {
        let waits = matches!(client.state.lock().phase, Phase::Connecting(_));
        waits && self.join(listener, client, to).is_ok()
    }

    /// Queues a connection with a socket at this listener.
    fn join(&self, listener: &mut State, client: &Arc<Socket>, to: &Address) -> Result<()> {
        let address = client.state.lock().local.clone().unwrap_or_else(|| client.domain().nowhere());
        let end = Client { notify: &client.changed, address, pid: client.pid() };
        let connection = self.queue(listener, end, to)?;
        client.set_connected(connection, self.pid());
        Ok(())
    }

    /// Queues a connection with a client; returns the client's end.
    fn queue(&self, listener: &mut State, client: Client<'_>, to: &Address) -> Result<Connection> {
        let local = match (&listener.local, to) {
            (Some(Address::Inet(bound)), Address::Inet(to)) => {
                Address::Inet(SocketAddr::new(to.ip(), bound.port()))
            }
            (Some(local), _) => local.clone(),
            (None, to) => to.clone(),
        };
        let Phase::Listening(pending) = &mut listener.phase else { return Err(Errno::ECONNREFUSED) };
        let server = self.network.socket(self.domain(), Kind::Stream, self.pid())?;
        server.socket().take_options_of(self);
        let meter = self.network.meter();
        let there = Channel::new(meter, client.notify, &server.socket().changed);
        let back = Channel::new(meter, &server.socket().changed, client.notify);
        let theirs =
            Connection { incoming: there.clone(), outgoing: back.clone(), peer: client.address.clone() };
        server.socket().state.lock().local = Some(local);
        server.socket().set_connected(theirs, client.pid);
        pending.queue.push_back(server);
        self.changed.notify_waiters();
        Ok(Connection { incoming: back, outgoing: there, peer: to.clone() })
    }

    /// Says that a connect did not succeed.
    pub(super) fn fail(&self, errno: Errno) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Connecting(_)) {
            (state.phase, state.error) = (Phase::Fresh, Some(errno));
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Checks that it can be connected. Returns true if an earlier attempt has succeeded.
    fn check_connectable(&self) -> Result<bool> {
        let mut state = self.state.lock();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        match state.phase {
            Phase::Fresh => Ok(false),
            Phase::Connected(_) if state.unannounced => {
                state.unannounced = false;
                Ok(true)
            }
            Phase::Listening(_) if self.domain() == Domain::Unix => Err(Errno::EINVAL),
            Phase::Connected(_) | Phase::Listening(_) => Err(Errno::EISCONN),
            Phase::Connecting(_) => Err(Errno::EALREADY),
            Phase::Lost => Err(Errno::ECONNRESET),
            Phase::Datagram(_) | Phase::Closed => Err(Errno::EINVAL),
        }
    }

    /// Connects a stream socket to an address and port.
    pub(crate) async fn connect_inet(self: &Arc<Self>, process: &Process, to: SocketAddr) -> Result<()> {
        if self.check_connectable()? {
            return Ok(());
        }
        self.set_pid(process.pid);
        let begun = match within(to.ip()) {
            Some(ip) => self.connect_within(ip, to),
            None => self.connect_outside(to),
        };
        match (begun, self.is_nonblocking()) {
            // As on Linux, who does not want to wait learns nothing at once.
            (Ok(()), true) => {
                self.state.lock().unannounced = true;
                Err(Errno::EINPROGRESS)
            }
            (Err(errno @ (Errno::ECONNREFUSED | Errno::ENETUNREACH)), true) => {
                self.state.lock().error = Some(errno);
                self.changed.notify_waiters();
                Err(Errno::EINPROGRESS)
            }
            (Ok(()), false) => self.connected(process).await,
            (Err(errno), _) => Err(errno),
        }
    }

    /// Waits until a connect has succeeded or failed.
    async fn connected(&self, process: &Process) -> Result<()> {
        let done = || {
            let mut state = self.state.lock();
            match state.phase {
                Phase::Connecting(_) => None,
                _ => Some(state.error.take().map_or(Ok(()), Err)),
            }
        };
        if let Some(done) = done() {
            return done;
        }
        let timeout = self.options.lock().send_timeout;
        match process.interruptible(self.until(timeout, done)).await {
            Err(Errno::EAGAIN) => Err(Errno::EINPROGRESS),
            other => other,
        }
    }

    fn connect_within(self: &Arc<Self>, ip: IpAddr, to: SocketAddr) -> Result<()> {
        let listener = self.network.listener_at(ip, to.port()).ok_or(Errno::ECONNREFUSED)?;
        self.bind_somewhere()?;
        self.come_from(match ip {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
        listener.take_in(self, &Address::Inet(SocketAddr::new(ip, to.port())), true)
    }

    /// Says where an unspecified local address really is, once that is known.
    fn come_from(&self, ip: IpAddr) {
        let mut state = self.state.lock();
        if let Some(Address::Inet(local)) = &mut state.local
            && local.ip().is_unspecified()
        {
            local.set_ip(ip);
        }
    }

    /// Connects a Unix stream socket to the one with this name.
    pub(crate) async fn connect_unix(
        self: &Arc<Self>,
        process: &Process,
        name: &Name,
        to: Address,
    ) -> Result<()> {
        if self.check_connectable()? {
            return Ok(());
        }
        self.set_pid(process.pid);
        let listener = self.network.named(name).ok_or(Errno::ECONNREFUSED)?;
        if listener.kind() != Kind::Stream {
            return Err(Errno::EPROTOTYPE);
        }
        listener.take_in(self, &to, !self.is_nonblocking())?;
        self.connected(process).await
    }

    /// Queues a client here or, if there are too many, lets it wait. Returns EAGAIN if it must not.
    fn take_in(&self, client: &Arc<Socket>, to: &Address, may_wait: bool) -> Result<()> {
        let mut state = self.state.lock();
        let Phase::Listening(pending) = &mut state.phase else { return Err(Errno::ECONNREFUSED) };
        if pending.queue.len() < pending.most {
            return self.join(&mut state, client, to);
        }
        if !may_wait {
            return Err(Errno::EAGAIN);
        }
        pending.waiting.retain(|(waiting, _)| waiting.strong_count() > 0);
        if pending.waiting.len() >= MOST_WAITING {
            return Err(Errno::ECONNREFUSED);
        }
        client.state.lock().phase = Phase::Connecting(None);
        pending.waiting.push_back((Arc::downgrade(client), to.clone()));
        Ok(())
    }

    /// Starts to connect to something outside the sandbox.
    fn connect_outside(self: &Arc<Self>, to: SocketAddr) -> Result<()> {
        let host = match self.network.name_of(to.ip()) {
            Some(name) => OutsideHost::Name(name),
            None => OutsideHost::Ip(super::address::canonical(to.ip())),
        };
        let outside = self.network.outside.clone().ok_or(Errno::ECONNREFUSED)?;
        if matches!(host, OutsideHost::Ip(ip) if super::names::is_placeholder(ip)) {
            outside.refuse(Destination { host, port: to.port() });
            return Err(Errno::ECONNREFUSED);
        }
        self.bind_somewhere()?;
        self.come_from(match self.domain() {
            Domain::V6 => OWN_V6.into(),
            _ => OWN_V4.into(),
        });
        let attempt = outside.connect(Destination { host, port: to.port() });
        let socket = Arc::downgrade(self);
        self.state.lock().phase = Phase::Connecting(None);
        let task = self.network.spawn(self.pid(), async move {
            let connected = attempt.await;
            let Some((serve, stream)) = meet(&socket, connected, to) else { return };
            drop(socket);
            serve(stream).await;
        });
        if let Phase::Connecting(attempt) = &mut self.state.lock().phase {
            *attempt = Some(task);
        }
        Ok(())
    }

    /// Says where datagrams go that are sent without an address, and come from.
    pub(crate) fn set_peer(&self, peer: Option<(Address, Option<Arc<Socket>>)>) -> Result<()> {
        let mut state = self.state.lock();
        match &mut state.phase {
            Phase::Datagram(known) => {
                *known = peer.map(|(address, socket)| Peer {
                    address,
                    socket: socket.map(|socket| Arc::downgrade(&socket)),
                });
                Ok(())
            }
            Phase::Lost => Err(Errno::ECONNRESET),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Connects a UDP socket: only within the sandbox.
    pub(crate) fn connect_datagram(self: &Arc<Self>, to: SocketAddr) -> Result<()> {
        let ip = within(to.ip()).ok_or(Errno::ENETUNREACH)?;
        self.bind_somewhere()?;
        self.come_from(match ip {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
        self.set_peer(Some((Address::Inet(SocketAddr::new(ip, to.port())), None)))
    }
}

/// Gives a socket that waited for the outside its connection, or its error.
fn meet(
    socket: &Weak<Socket>,
    connected: Result<super::Serve>,
    to: SocketAddr,
) -> Option<(super::Serve, HostStream)> {
    let socket = socket.upgrade()?;
    let serve = match connected {
        Ok(serve) => serve,
        Err(errno) => {
            socket.fail(errno);
            return None;
        }
    };
    let notify = Arc::new(Notify::new());
    let meter = socket.network.meter();
    let out = Channel::new(meter, &socket.changed, &notify);
    let back = Channel::new(meter, &notify, &socket.changed);
    let own = Connection { incoming: back.clone(), outgoing: out.clone(), peer: Address::Inet(to) };
    if !matches!(socket.state.lock().phase, Phase::Connecting(_)) {
        return None;
    }
    socket.set_connected(own, 0);
    Some((serve, HostStream::new(out, back, notify)))
}

impl Network {
    /// Connects the host to a port that a process listens at; waits while too many others do. Returns ECONNREFUSED if none
    /// listens.
    pub(crate) async fn connect_host(&self, port: u16) -> Result<HostStream> {
        let notify = Arc::new(Notify::new());
        loop {
            let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            let found = addresses.into_iter().find_map(|ip| Some((ip, self.listener_at(ip, port)?)));
            let (ip, listener) = found.ok_or(Errno::ECONNREFUSED)?;
            let mut changed = std::pin::pin!(listener.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = listener.state.lock();
                let Phase::Listening(pending) = &state.phase else { return Err(Errno::ECONNREFUSED) };
                if pending.queue.len() < pending.most {
                    let address = Address::Inet(SocketAddr::new(ip, self.passing_port()?));
                    let client = Client { notify: &notify, address, pid: 0 };
                    let to = Address::Inet(SocketAddr::new(ip, port));
                    let Connection { incoming, outgoing, .. } = listener.queue(&mut state, client, &to)?;
                    return Ok(HostStream::new(incoming, outgoing, notify));
                }
            }
            changed.await;
        }
    }
}
