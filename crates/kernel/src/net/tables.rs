//! Which socket has which port, file or abstract name.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use wardian_vfs::{Errno, Result};

use super::socket::{Kind, Socket};
use super::{Address, Network, UnixName};

/// Ports that a socket gets without asking for one, as on Linux.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// How many abstract names a socket can get without asking for one.
const NAMES: u32 = 1 << 20;

/// How many sockets may share a port. Each datagram looks at all of them, and so does each that is closed.
const AT_A_PORT: usize = 1024;

/// A file in the tree: its device and inode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FileKey {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
}

/// What a Unix socket is found by.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Name {
    File(FileKey),
    Abstract(Vec<u8>),
}

/// What a socket has in the tables.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Port(Kind, u16),
    Name(Name),
}

/// How a socket wants to have a port.
#[derive(Clone, Copy)]
pub(super) struct Claim {
    pub(super) ip: IpAddr,
    /// An unspecified IPv6 address also stands for those of IPv4.
    pub(super) dual: bool,
    pub(super) reuse_address: bool,
    pub(super) reuse_port: bool,
}

struct Bound {
    claim: Claim,
    socket: Weak<Socket>,
}

#[derive(Default)]
pub(super) struct Tables {
    ports: HashMap<(Kind, u16), Vec<Bound>>,
    names: HashMap<Name, Weak<Socket>>,
    sockets: BTreeMap<u64, Weak<Socket>>,
    next_port: u16,
    next_name: u32,
    turns: usize,
}

impl Claim {
    fn covers(&self, ip: IpAddr) -> bool {
        match self.ip {
            own if own == ip => true,
            IpAddr::V4(own) => own.is_unspecified() && ip.is_ipv4(),
            IpAddr::V6(own) => own.is_unspecified() && (ip.is_ipv6() || self.dual),
        }
    }

    fn overlaps(&self, other: &Claim) -> bool {
        self.covers(other.ip) || other.covers(self.ip)
    }
}

impl Tables {
    pub(super) fn add(&mut self, socket: &Arc<Socket>) {
        self.sockets.insert(socket.id(), Arc::downgrade(socket));
    }

    pub(super) fn all(&self) -> Vec<Arc<Socket>> {
        self.sockets.values().filter_map(Weak::upgrade).collect()
    }

    /// Returns whether a socket may have a port with those that have it. `listens`: for listening.
    fn is_free(
        &self,
        kind: Kind,
        port: u16,
        claim: &Claim,
        own: Option<&Arc<Socket>>,
        listens: bool,
    ) -> bool {
        let others = self.ports.get(&(kind, port)).into_iter().flatten();
        others.filter(|bound| bound.claim.overlaps(claim)).all(|bound| {
            let Some(socket) = bound.socket.upgrade() else { return true };
            let own = own.is_some_and(|own| Arc::ptr_eq(own, &socket));
            let shares_port = bound.claim.reuse_port && claim.reuse_port;
            let taken = kind == Kind::Stream && socket.is_listening();
            let shares_address = (listens || (bound.claim.reuse_address && claim.reuse_address)) && !taken;
            own || shares_port || shares_address
        })
    }

    fn ephemeral(&mut self, kind: Kind) -> Result<u16> {
        let (first, last) = (*EPHEMERAL.start(), *EPHEMERAL.end());
        for _ in EPHEMERAL {
            let port = self.next_port.clamp(first, last);
            self.next_port = if port == last { first } else { port + 1 };
            if !self.ports.contains_key(&(kind, port)) {
                return Ok(port);
            }
        }
        Err(Errno::EADDRINUSE)
    }

    /// Looks for a free name, from the one after the last on: those that were given before need not be passed again. Returns also
    /// how many were looked at.
    fn free_name(&mut self) -> (Result<Vec<u8>>, u32) {
        for looked_at in 1..=NAMES {
            let name = format!("{:05x}", self.next_name).into_bytes();
            self.next_name = (self.next_name + 1) % NAMES;
            if !self.names.contains_key(&Name::Abstract(name.clone())) {
                return (Ok(name), looked_at);
            }
        }
        (Err(Errno::ENOSPC), NAMES)
    }

    fn forget(&mut self, socket: &Socket, entry: Option<&Entry>) {
        self.sockets.remove(&socket.id());
        let is_it = |weak: &Weak<Socket>| std::ptr::eq(weak.as_ptr(), socket);
        match entry {
            Some(Entry::Port(kind, port)) => {
                if let Some(bound) = self.ports.get_mut(&(*kind, *port)) {
                    bound.retain(|bound| !is_it(&bound.socket));
                    if bound.is_empty() {
                        self.ports.remove(&(*kind, *port));
                    }
                }
            }
            // The file may be another socket's by now.
            Some(Entry::Name(name)) if self.names.get(name).is_some_and(is_it) => {
                self.names.remove(name);
            }
            _ => {}
        }
    }
}

impl Network {
    /// Returns whether there is any socket.
    pub(crate) fn is_any(&self) -> bool {
        !self.tables.lock().all().is_empty()
    }

    pub(super) fn add(&self, socket: &Arc<Socket>) {
        self.tables.lock().add(socket);
    }

    /// Forgets a socket that is closed.
    pub(super) fn forget(&self, socket: &Socket, entry: Option<&Entry>) {
        self.tables.lock().forget(socket, entry);
    }

    pub(super) fn sockets(&self) -> Vec<Arc<Socket>> {
        self.tables.lock().all()
    }

    /// Gives a socket a port; 0 means any. Returns which.
    pub(super) fn claim_port(&self, socket: &Arc<Socket>, claim: Claim, port: u16) -> Result<u16> {
        let mut tables = self.tables.lock();
        let kind = socket.kind();
        let port = if port == 0 { tables.ephemeral(kind)? } else { port };
        if !tables.is_free(kind, port, &claim, None, false) {
            return Err(Errno::EADDRINUSE);
        }
        let bound = Bound { claim, socket: Arc::downgrade(socket) };
        let at_port = tables.ports.entry((kind, port)).or_default();
        if at_port.len() >= AT_A_PORT {
            return Err(Errno::EADDRINUSE);
        }
        at_port.push(bound);
        Ok(port)
    }

    /// Returns whether a socket may listen at the port it has.
    pub(super) fn may_listen(&self, socket: &Arc<Socket>, claim: Claim, port: u16) -> bool {
        self.tables.lock().is_free(socket.kind(), port, &claim, Some(socket), true)
    }

    /// A port for someone who is no socket.
    pub(super) fn passing_port(&self) -> Result<u16> {
        self.tables.lock().ephemeral(Kind::Stream)
    }

    /// Returns the socket that listens at an address.
    pub(super) fn listener_at(&self, ip: IpAddr, port: u16) -> Option<Arc<Socket>> {
        self.best(Kind::Stream, ip, port, |socket| socket.is_listening())
    }

    /// Returns the socket that gets datagrams from `from` to an address.
    pub(super) fn receiver_at(&self, ip: IpAddr, port: u16, from: &Address) -> Option<Arc<Socket>> {
        self.best(Kind::Datagram, ip, port, |socket| socket.takes_from(from))
    }

    /// Returns the socket that has an address, rather than all of them, and of several in turn.
    fn best(
        &self,
        kind: Kind,
        ip: IpAddr,
        port: u16,
        wanted: impl Fn(&Socket) -> bool,
    ) -> Option<Arc<Socket>> {
        let (candidates, turn) = {
            let mut tables = self.tables.lock();
            tables.turns = tables.turns.wrapping_add(1);
            let bound = tables.ports.get(&(kind, port))?;
            let covering = bound.iter().filter(|bound| bound.claim.covers(ip));
            let found: Vec<_> =
                covering.filter_map(|bound| Some((bound.claim.ip == ip, bound.socket.upgrade()?))).collect();
            (found, tables.turns)
        };
        let (exact, rest): (Vec<_>, Vec<_>) =
            candidates.into_iter().filter(|(_, socket)| wanted(socket)).partition(|(exact, _)| *exact);
        let mut best = if exact.is_empty() { rest } else { exact };
        if best.is_empty() {
            return None;
        }
        let at = turn % best.len();
        Some(best.swap_remove(at).1)
    }

    /// Gives a Unix socket a name. Returns EADDRINUSE if an abstract one is taken; a file was created just now.
    pub(super) fn claim_name(&self, socket: &Arc<Socket>, name: Name) -> Result<()> {
        let mut tables = self.tables.lock();
        let taken = tables.names.get(&name).is_some_and(|known| known.strong_count() > 0);
        if taken && matches!(name, Name::Abstract(_)) {
            return Err(Errno::EADDRINUSE);
        }
        tables.names.insert(name, Arc::downgrade(socket));
        Ok(())
    }

    /// Returns an abstract name that nobody has: five hexadecimal digits, as on Linux.
    pub(super) fn free_name(&self) -> Result<UnixName> {
        self.tables.lock().free_name().0.map(UnixName::Abstract)
    }

    /// Returns the socket with this name.
    pub(crate) fn named(&self, name: &Name) -> Option<Arc<Socket>> {
        self.tables.lock().names.get(name).and_then(Weak::upgrade)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_given_without_looking_at_all_that_were_given() {
        let mut tables = Tables::default();
        for number in 0..2000 {
            let (name, looked_at) = tables.free_name();
            let name = name.expect("a name");
            assert_eq!((name.clone(), looked_at), (format!("{number:05x}").into_bytes(), 1));
            tables.names.insert(Name::Abstract(name), Weak::new());
        }
        tables.next_name = NAMES - 1;
        assert_eq!(tables.free_name().0, Ok(b"fffff".to_vec()));
        assert_eq!(tables.free_name(), (Ok(b"007d0".to_vec()), 2001), "the first that nobody has");
    }
}
