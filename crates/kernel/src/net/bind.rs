//! The address of a socket: `bind` and `listen`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use wardian_vfs::{Errno, Result};

use super::address::canonical;
use super::socket::{Pending, Phase};
use super::tables::{Claim, Entry, Name};
use super::{Address, Domain, Kind, Socket, UnixName};
use crate::proc::Pid;

/// The most connections that wait to be accepted.
const MOST_PENDING: usize = 1024;

impl Socket {
    /// How it wants to have an address.
    fn claim(&self, at: SocketAddr) -> Claim {
        let options = self.options.lock();
        Claim {
            ip: canonical(at.ip()),
            dual: self.domain() == Domain::V6 && !options.v6_only,
            reuse_address: options.reuse_address,
            reuse_port: options.reuse_port,
        }
    }

    /// Gives it an address of its own.
    pub(crate) fn bind_inet(self: &Arc<Self>, at: SocketAddr) -> Result<()> {
        if self.state.lock().local.is_some() {
            return Err(Errno::EINVAL);
        }
        let claim = self.claim(at);
        let v6_alone = self.domain() == Domain::V6 && self.options.lock().v6_only;
        if !(claim.ip.is_loopback() || claim.ip.is_unspecified()) || (claim.ip.is_ipv4() && v6_alone) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        let port = self.network.claim_port(self, claim, at.port())?;
        self.set_bound(Address::Inet(SocketAddr::new(at.ip(), port)), Entry::Port(self.kind(), port))
    }

    /// Gives it any port, unless it has one.
    pub(super) fn bind_somewhere(self: &Arc<Self>) -> Result<()> {
        let bound = self.state.lock().local.is_some();
        match self.domain().nowhere() {
            Address::Inet(nowhere) if !bound => self.bind_inet(nowhere),
            _ => Ok(()),
        }
    }

    /// Gives a Unix socket its name.
    pub(crate) fn bind_unix(self: &Arc<Self>, address: UnixName, key: Option<Name>) -> Result<()> {
        if self.state.lock().local.is_some() {
            return Err(Errno::EINVAL);
        }
        let address = match address {
            UnixName::Unnamed => self.network.free_name()?,
            address => address,
        };
        let name = match (key, &address) {
            (Some(key), _) => key,
            (None, UnixName::Abstract(name)) => Name::Abstract(name.clone()),
            (None, _) => return Err(Errno::EINVAL),
        };
        self.network.claim_name(self, name.clone())?;
        self.set_bound(Address::Unix(address), Entry::Name(name))
    }

    /// Notes what it has. A copy of the descriptor may have been bound or closed meanwhile.
    fn set_bound(&self, local: Address, entry: Entry) -> Result<()> {
        let mut state = self.state.lock();
        if state.local.is_some() || matches!(state.phase, Phase::Closed) {
            drop(state);
            self.network.forget(self, Some(&entry));
            return Err(Errno::EINVAL);
        }
        (state.local, state.entry) = (Some(local), Some(entry));
        Ok(())
    }

    pub(crate) fn listen(self: &Arc<Self>, backlog: i32, pid: Pid) -> Result<()> {
        if self.kind() == Kind::Datagram {
            return Err(Errno::ENOTSUP);
        }
        if self.domain() != Domain::Unix {
            self.bind_somewhere()?;
        }
        let local = self.state.lock().local.clone().ok_or(Errno::EINVAL)?;
        if let Address::Inet(at) = local
            && !self.network.may_listen(self, self.claim(at), at.port())
        {
            return Err(Errno::EADDRINUSE);
        }
        // One more than asked for, as on Linux; a negative number is none at all there, which is as many as there may be.
        let most = usize::try_from(backlog).unwrap_or(MOST_PENDING).min(MOST_PENDING - 1) + 1;
        let mut state = self.state.lock();
        match &mut state.phase {
            Phase::Fresh => {
                let (queue, waiting) = (VecDeque::new(), VecDeque::new());
                state.phase = Phase::Listening(Pending { most, queue, waiting });
            }
            Phase::Listening(pending) => pending.most = most,
            _ => return Err(Errno::EINVAL),
        }
        self.listening.store(true, Ordering::SeqCst);
        self.set_pid(pid);
        Ok(())
    }
}
