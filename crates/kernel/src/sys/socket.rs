//! Sockets. Addresses are `struct sockaddr` as Linux has it, and so are the numbers of families, types, flags and options.

use std::net::IpAddr;
use std::sync::Arc;

use wardian_vfs::{Access, Errno, FileKind, Result, Tree};

use super::MODULE;
use super::message::{recv, send};
use crate::call::{Call, Outcome, quick_calls, waiting_calls};
use crate::fd::{Fd, OpenFile};
use crate::imports::Imports;
use crate::net::{
    Address, Domain, FileKey, Kind, LONGEST_ADDRESS, LONGEST_NAME, LONGEST_OPTION, MOST_ADDRESSES, Name,
    Socket, SocketFd, UnixName,
};

/// The new descriptor is closed when another program is started.
const CLOEXEC: u32 = 1;
/// Calls on the new socket do not wait.
const NONBLOCK: u32 = 2;
/// An address of a look-up: its family, and its bytes.
const FOUND: u32 = 20;

pub(super) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    quick_calls! { imports, MODULE;
        socket(family: u32, kind: u32, protocol: u32, flags: u32, fd: u32);
        socketpair(family: u32, kind: u32, protocol: u32, flags: u32, fds: u32);
        listen(fd: u32, backlog: i32);
        shutdown(fd: u32, how: u32);
        getsockname(fd: u32, addr: u32, room: u32, need: u32);
        getpeername(fd: u32, addr: u32, room: u32, need: u32);
        getsockopt(fd: u32, level: u32, option: u32, buf: u32, room: u32, need: u32);
        setsockopt(fd: u32, level: u32, option: u32, buf: u32, len: u32);
        look_up(name: u32, len: u32, out: u32, room: u32, need: u32);
    }
    waiting_calls! { imports, MODULE;
        bind(fd: u32, addr: u32, len: u32);
        accept(fd: u32, flags: u32, new: u32, addr: u32, room: u32, need: u32);
        connect(fd: u32, addr: u32, len: u32);
        send(fd: u32, iovs: u32, count: u32, flags: u32, addr: u32, len: u32, rights: u32, rights_count: u32, out: u32);
        recv(fd: u32, iovs: u32, count: u32, flags: u32, addr: u32, room: u32, rights: u32, rights_room: u32, out: u32);
    }
    Ok(())
}

impl Call<'_> {
    pub(super) fn socket(&self, fd: u32) -> Result<Arc<Socket>> {
        match &*self.file(fd)? {
            OpenFile::Socket(socket) => Ok(socket.socket().clone()),
            _ => Err(Errno::ENOTSOCK),
        }
    }

    /// An address that a guest gives.
    pub(super) fn address(&mut self, ptr: u32, len: u32, domain: Domain) -> Result<Address> {
        if len > LONGEST_ADDRESS {
            return Err(Errno::EINVAL);
        }
        Address::decode(self.bytes(ptr, len)?, domain)
    }

    /// Gives a guest an address, as much of it as there is room for, and its length.
    fn put_address(&mut self, address: &[u8], addr: u32, room: u32, need: u32) -> Result<()> {
        let len = address.len().min(room as usize);
        self.put(addr, &address[..len])?;
        self.put_u32(need, address.len() as u32)
    }

    fn new_socket(&self, kind: Kind, domain: Domain) -> Result<SocketFd> {
        let made = self.machine().network().socket(domain, kind, self.process().pid);
        made.inspect_err(|_| self.hit("memoryBytes"))
    }

    fn insert_socket(&self, socket: SocketFd, flags: u32) -> Result<u32> {
        socket.socket().set_nonblocking(flags & NONBLOCK != 0);
        let entry = Fd { cloexec: flags & CLOEXEC != 0, ..Fd::new(OpenFile::Socket(socket)) };
        let inserted = self.process().fds.lock().insert(entry, 0);
        inserted.inspect_err(|_| self.hit("openFiles"))
    }

    /// Finds the socket that a Unix name stands for.
    pub(super) async fn unix_socket(&mut self, name: &UnixName) -> Result<Name> {
        match name {
            UnixName::Unnamed => Err(Errno::EINVAL),
            UnixName::Abstract(name) => Ok(Name::Abstract(name.clone())),
            UnixName::Path(path) => {
                let (at, caller) = (self.process().place(), self.process().caller());
                let (from, path) = (at.clone(), path.clone());
                let name = path.clone();
                let guard = self.guard(true);
                let find = move |tree: &mut Tree| {
                    let name = guard.path(tree, &caller, &from, name)?;
                    let stat = tree.stat(&caller, &from, &name, true)?;
                    tree.access(&caller, &from, &name, Access::W)?;
                    match stat.kind {
                        FileKind::Socket => Ok(Name::File(FileKey { dev: stat.dev, ino: stat.ino })),
                        _ => Err(Errno::ECONNREFUSED),
                    }
                };
                self.machine().clone().at_path(&at, &path, find).await
            }
        }
    }

    /// Creates the file of a Unix socket.
    async fn socket_file(&mut self, path: &[u8]) -> Result<Name> {
        let (at, caller) = (self.process().place(), self.process().caller());
        let (from, name) = (at.clone(), path.to_vec());
        let guard = self.guard(false);
        let make = move |tree: &mut Tree| {
            let name = guard.path(tree, &caller, &from, name)?;
            tree.mksocket(&caller, &from, &name, 0o777)?;
            let stat = tree.stat(&caller, &from, &name, false)?;
            Ok(Name::File(FileKey { dev: stat.dev, ino: stat.ino }))
        };
        let made = self.machine().clone().at_path(&at, path, make).await;
        match self.noted(made).await {
            Err(Errno::EEXIST) => Err(Errno::EADDRINUSE),
            made => made,
        }
    }
}

fn kind_of(domain: Domain, kind: u32, protocol: u32) -> Result<Kind> {
    let (kind, own) = match kind {
        1 => (Kind::Stream, 6),
        2 => (Kind::Datagram, 17),
        // Raw packets, which only root may have anywhere.
        3 if domain != Domain::Unix => return Err(Errno::EPERM),
        _ => return Err(Errno::EPROTONOSUPPORT),
    };
    let fits = protocol == 0 || (domain != Domain::Unix && protocol == own);
    if fits || (domain == Domain::Unix && protocol == 1) { Ok(kind) } else { Err(Errno::EPROTONOSUPPORT) }
}

fn socket(call: &mut Call<'_>, family: u32, kind: u32, protocol: u32, flags: u32, fd: u32) -> Outcome {
    call.bytes(fd, 4)?;
    let domain = Domain::from_number(family)?;
    let made = call.new_socket(kind_of(domain, kind, protocol)?, domain)?;
    let number = call.insert_socket(made, flags)?;
    Ok(call.put_u32(fd, number)?)
}

fn socketpair(call: &mut Call<'_>, family: u32, kind: u32, protocol: u32, flags: u32, fds: u32) -> Outcome {
    call.bytes(fds, 8)?;
    let domain = Domain::from_number(family)?;
    let kind = kind_of(domain, kind, protocol)?;
    if domain != Domain::Unix {
        return Err(Errno::ENOTSUP.into());
    }
    let pair = call.machine().network().pair(kind, call.process().pid);
    let (one, other) = pair.inspect_err(|_| call.hit("memoryBytes"))?;
    let one = call.insert_socket(one, flags)?;
    let other = match call.insert_socket(other, flags) {
        Ok(other) => other,
        Err(errno) => {
            let closed = call.process().fds.lock().remove(one);
            drop(closed);
            return Err(errno.into());
        }
    };
    call.put_u32(fds, one)?;
    Ok(call.put_u32(fds + 4, other)?)
}

async fn bind(call: &mut Call<'_>, fd: u32, addr: u32, len: u32) -> Outcome {
    let socket = call.socket(fd)?;
    match call.address(addr, len, socket.domain())? {
        Address::Inet(at) => Ok(socket.bind_inet(at)?),
        Address::Unix(name @ UnixName::Path(_)) => {
            let UnixName::Path(path) = &name else { return Err(Errno::EINVAL.into()) };
            if socket.is_bound() {
                return Err(Errno::EINVAL.into());
            }
            let key = call.socket_file(path).await?;
            Ok(socket.bind_unix(name, Some(key))?)
        }
        Address::Unix(name) => Ok(socket.bind_unix(name, None)?),
    }
}

fn listen(call: &mut Call<'_>, fd: u32, backlog: i32) -> Outcome {
    Ok(call.socket(fd)?.listen(backlog, call.process().pid)?)
}

async fn accept(
    call: &mut Call<'_>,
    fd: u32,
    flags: u32,
    new: u32,
    addr: u32,
    room: u32,
    need: u32,
) -> Outcome {
    call.bytes(new, 4)?;
    call.bytes(need, 4)?;
    let room = room.min(LONGEST_ADDRESS);
    call.bytes(addr, room)?;
    let (socket, process) = (call.socket(fd)?, call.process().clone());
    let accepted = socket.accept(&process).await?;
    let peer = accepted.socket().peer().unwrap_or_else(|_| socket.domain().nowhere());
    let number = call.insert_socket(accepted, flags)?;
    call.put_address(&peer.encode(socket.domain()), addr, room, need)?;
    Ok(call.put_u32(new, number)?)
}

async fn connect(call: &mut Call<'_>, fd: u32, addr: u32, len: u32) -> Outcome {
    let socket = call.socket(fd)?;
    let process = call.process().clone();
    if is_unspecified(call.bytes(addr, len.min(2))?) && socket.kind() == Kind::Datagram {
        return Ok(socket.set_peer(None)?);
    }
    match (call.address(addr, len, socket.domain())?, socket.kind()) {
        (Address::Inet(to), Kind::Stream) => Ok(socket.connect_inet(&process, to).await?),
        (Address::Inet(to), Kind::Datagram) => Ok(socket.connect_datagram(to)?),
        (Address::Unix(name), kind) => {
            let key = call.unix_socket(&name).await?;
            let to = Address::Unix(name.clone());
            if kind == Kind::Stream {
                return Ok(socket.connect_unix(&process, &key, to).await?);
            }
            let peer = call.machine().network().named(&key).ok_or(Errno::ECONNREFUSED)?;
            Socket::unix_peer(&peer, name)?;
            Ok(socket.set_peer(Some((to, Some(peer))))?)
        }
    }
}

/// AF_UNSPEC, which ends the connection of a datagram socket.
fn is_unspecified(family: &[u8]) -> bool {
    family == [0, 0]
}

fn shutdown(call: &mut Call<'_>, fd: u32, how: u32) -> Outcome {
    let socket = call.socket(fd)?;
    let (receiving, sending) = match how {
        0 => (true, false),
        1 => (false, true),
        2 => (true, true),
        _ => return Err(Errno::EINVAL.into()),
    };
    Ok(socket.shut_down(receiving, sending)?)
}

fn getsockname(call: &mut Call<'_>, fd: u32, addr: u32, room: u32, need: u32) -> Outcome {
    call.bytes(need, 4)?;
    let socket = call.socket(fd)?;
    let local = socket.local().encode(socket.domain());
    Ok(call.put_address(&local, addr, room, need)?)
}

fn getpeername(call: &mut Call<'_>, fd: u32, addr: u32, room: u32, need: u32) -> Outcome {
    call.bytes(need, 4)?;
    let socket = call.socket(fd)?;
    let peer = socket.peer()?.encode(socket.domain());
    Ok(call.put_address(&peer, addr, room, need)?)
}

fn getsockopt(
    call: &mut Call<'_>,
    fd: u32,
    level: u32,
    option: u32,
    buf: u32,
    room: u32,
    need: u32,
) -> Outcome {
    call.bytes(need, 4)?;
    call.bytes(buf, room.min(LONGEST_OPTION))?;
    let value = call.socket(fd)?.option(level, option)?;
    let len = value.len().min(room as usize);
    call.put(buf, &value[..len])?;
    Ok(call.put_u32(need, len as u32)?)
}

fn setsockopt(call: &mut Call<'_>, fd: u32, level: u32, option: u32, buf: u32, len: u32) -> Outcome {
    let socket = call.socket(fd)?;
    let value = call.bytes(buf, len.min(LONGEST_OPTION))?.to_vec();
    Ok(socket.set_option(level, option, &value)?)
}

fn look_up(call: &mut Call<'_>, name: u32, len: u32, out: u32, room: u32, need: u32) -> Outcome {
    call.bytes(need, 4)?;
    if len > LONGEST_NAME + 1 {
        return Err(Errno::ENOENT.into());
    }
    let name = call.bytes(name, len)?.to_vec();
    let room = room.min(MOST_ADDRESSES as u32);
    call.bytes(out, room * FOUND)?;
    let found = call.machine().network().look_up(&name)?;
    for (ip, at) in found.iter().zip((out..).step_by(FOUND as usize)).take(room as usize) {
        let mut entry = [0; FOUND as usize];
        match ip {
            IpAddr::V4(ip) => {
                entry[..4].copy_from_slice(&u32::from(Domain::V4.number()).to_le_bytes());
                entry[4..8].copy_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                entry[..4].copy_from_slice(&u32::from(Domain::V6.number()).to_le_bytes());
                entry[4..].copy_from_slice(&ip.octets());
            }
        }
        call.put(at, &entry)?;
    }
    Ok(call.put_u32(need, found.len().min(room as usize) as u32)?)
}
