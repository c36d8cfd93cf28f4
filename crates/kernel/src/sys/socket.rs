//! Sockets. Addresses are `struct sockaddr` as Linux has it, and so are the numbers of families, types, flags and options.

use std::net::IpAddr;
use std::sync::Arc;

use wardian_vfs::{Access, Errno, FileKind, Result, Tree};

use super::MODULE;
use crate::call::{Call, Fail, Outcome, quick_calls, waiting_calls};
use crate::fd::{Fd, OpenFile};
use crate::imports::Imports;
use crate::limits::Charge;
use crate::net::{
    Address, Domain, FileKey, Flags, Kind, LONGEST_ADDRESS, LONGEST_NAME, LONGEST_OPTION, MOST_ADDRESSES,
    Name, Peer, RIGHTS_PER_MESSAGE, Received, Rights, Socket, SocketFd, UnixName,
};

/// The new descriptor is closed when another program is started.
const CLOEXEC: u32 = 1;
/// Calls on the new socket do not wait.
const NONBLOCK: u32 = 2;
/// The most that one call receives or sends, all parts together. It goes through a buffer if there are several parts.
const AT_ONCE: usize = 1 << 20;
/// The longest scatter or gather list, as on Linux.
const MAX_PARTS: u32 = 1024;
/// What `recv` writes: bytes, length of the address, descriptors, flags.
const RECEIVED: u32 = 16;
/// Something was cut: the datagram, or the descriptors.
const MSG_TRUNC: u32 = 0x20;
const MSG_CTRUNC: u32 = 0x8;
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
    fn socket(&self, fd: u32) -> Result<Arc<Socket>> {
        match &*self.file(fd)? {
            OpenFile::Socket(socket) => Ok(socket.socket().clone()),
            _ => Err(Errno::ENOTSOCK),
        }
    }

    /// An address that a guest gives.
    fn address(&mut self, ptr: u32, len: u32, domain: Domain) -> Result<Address> {
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
    async fn unix_socket(&mut self, name: &UnixName) -> Result<Name> {
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

    /// The parts of a list, as many of them as may be moved at once.
    fn message_parts(&mut self, iovs: u32, count: u32) -> Result<Vec<(u32, u32)>> {
        let raw = self.list(iovs, (count, 8), MAX_PARTS, Errno::EMSGSIZE)?;
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let parts: Vec<_> = raw.chunks_exact(8).map(|iov| (word(&iov[..4]), word(&iov[4..]))).collect();
        parts.iter().try_for_each(|(ptr, len)| self.bytes(*ptr, *len).map(drop))?;
        Ok(parts)
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

/// What is sent: in one piece of the guest's memory, or gathered.
enum Payload {
    There(u32, u32),
    Gathered(Vec<u8>, Charge),
}

impl Call<'_> {
    /// Gathers a message. A datagram that is too long is refused before it is copied; of a stream, the rest is left.
    fn payload(&mut self, iovs: u32, count: u32, whole: bool) -> Result<Payload> {
        let parts: Vec<_> =
            self.message_parts(iovs, count)?.into_iter().filter(|(_, len)| *len > 0).collect();
        match parts[..] {
            [] => return Ok(Payload::Gathered(Vec::new(), self.charge(0)?)),
            [(ptr, len)] => return Ok(Payload::There(ptr, len)),
            _ => {}
        }
        let total = parts.iter().fold(0usize, |sum, (_, len)| sum.saturating_add(*len as usize));
        if whole && total > AT_ONCE {
            return Err(Errno::EMSGSIZE);
        }
        let total = total.min(AT_ONCE);
        let charge = self.charge(total)?;
        let mut data = Vec::with_capacity(total);
        for (ptr, len) in parts {
            let left = (AT_ONCE - data.len()).min(len as usize) as u32;
            data.extend_from_slice(self.bytes(ptr, left)?);
        }
        Ok(Payload::Gathered(data, charge))
    }

    /// The descriptors that are sent along.
    fn rights_to_send(&mut self, rights: u32, count: u32, domain: Domain) -> Result<Option<Rights>> {
        if count == 0 || domain != Domain::Unix {
            return Ok(None);
        }
        let raw = self.list(rights, (count, 4), RIGHTS_PER_MESSAGE as u32, Errno::EINVAL)?.to_vec();
        let numbers = raw.chunks_exact(4).map(|fd| u32::from_le_bytes(fd.try_into().expect("four bytes")));
        let files = numbers.map(|fd| self.file(fd)).collect::<Result<Vec<_>>>()?;
        Ok(Some(Rights::new(files, self.machine().network().traffic())?))
    }

    /// Where a datagram goes that is sent with an address.
    async fn datagram_peer(&mut self, socket: &Arc<Socket>, addr: u32, len: u32) -> Result<Option<Peer>> {
        if len == 0 {
            return Ok(None);
        }
        Ok(Some(match self.address(addr, len, socket.domain())? {
            Address::Inet(to) => socket.peer_at(to)?,
            Address::Unix(name) => {
                let key = self.unix_socket(&name).await?;
                let peer = self.machine().network().named(&key).ok_or(Errno::ECONNREFUSED)?;
                Socket::unix_peer(&peer, name)?
            }
        }))
    }
}

#[allow(clippy::too_many_arguments, reason = "they are what sendmsg takes")]
async fn send(
    call: &mut Call<'_>,
    fd: u32,
    iovs: u32,
    count: u32,
    flags: u32,
    addr: u32,
    len: u32,
    rights: u32,
    rights_count: u32,
    out: u32,
) -> Outcome {
    call.bytes(out, 4)?;
    let socket = call.socket(fd)?;
    let flags = Flags::from_bits(flags)?;
    let datagram = socket.kind() == Kind::Datagram;
    if !datagram && len > 0 && socket.domain() == Domain::Unix {
        return Err(if socket.peer().is_ok() { Errno::EISCONN } else { Errno::ENOTSUP }.into());
    }
    let peer = if datagram { call.datagram_peer(&socket, addr, len).await? } else { None };
    let rights = call.rights_to_send(rights, rights_count, socket.domain())?;
    let payload = call.payload(iovs, count, datagram)?;
    let process = call.process().clone();
    let (gathered, _charge);
    let data: &[u8] = match payload {
        Payload::There(ptr, len) => call.bytes(ptr, len)?,
        Payload::Gathered(data, charge) => {
            (gathered, _charge) = (data, charge);
            &gathered
        }
    };
    let sent = match datagram {
        true => socket.send_datagram(&process, data, flags, peer, rights).await,
        false => socket.send(&process, data, flags, rights).await,
    };
    let sent = match sent {
        Err(Errno::EPIPE) if flags.no_signal => return Err(Fail::Errno(Errno::EPIPE)),
        Err(Errno::ENOBUFS) => {
            call.hit("memoryBytes");
            return Err(Errno::ENOBUFS.into());
        }
        sent => call.account(sent).await?,
    };
    if socket.is_starved() {
        call.hit("memoryBytes");
    }
    Ok(call.put_u32(out, sent as u32)?)
}

#[allow(clippy::too_many_arguments, reason = "they are what recvmsg takes")]
async fn recv(
    call: &mut Call<'_>,
    fd: u32,
    iovs: u32,
    count: u32,
    flags: u32,
    addr: u32,
    room: u32,
    rights: u32,
    rights_room: u32,
    out: u32,
) -> Outcome {
    call.bytes(out, RECEIVED)?;
    let socket = call.socket(fd)?;
    let flags = Flags::from_bits(flags)?;
    let (room, rights_room) = (room.min(LONGEST_ADDRESS), rights_room.min(RIGHTS_PER_MESSAGE as u32));
    call.bytes(addr, room)?;
    call.bytes(rights, rights_room * 4)?;
    let parts = call.message_parts(iovs, count)?;
    let received = call.receive(&socket, &parts, flags).await?;
    let Received { count, whole, from, rights: files } = received;
    call.process().run.lock().count_read(count);
    let from = from.map(|from| from.encode(socket.domain())).unwrap_or_default();
    let len = from.len().min(room as usize);
    call.put(addr, &from[..len])?;
    let mut told = if whole > count { MSG_TRUNC } else { 0 };
    let (given, cut) = call.take_rights(files, rights, rights_room, flags.cloexec)?;
    if cut {
        told |= MSG_CTRUNC;
    }
    let count = if flags.truncated { whole } else { count };
    let words = [count as u32, from.len() as u32, given, told];
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Ok(call.put(out, &words)?)
}

impl Call<'_> {
    /// Receives into one part directly, or into several through a buffer.
    async fn receive(&mut self, socket: &Socket, parts: &[(u32, u32)], flags: Flags) -> Result<Received> {
        let process = self.process().clone();
        let filled: Vec<_> = parts.iter().copied().filter(|(_, len)| *len > 0).collect();
        if let [(ptr, len)] = filled[..] {
            let buf = self.bytes(ptr, len)?;
            return socket.receive(&process, buf, flags).await;
        }
        let total = filled.iter().fold(0usize, |sum, (_, len)| sum.saturating_add(*len as usize));
        let total = total.min(AT_ONCE);
        let _charge = self.charge(total)?;
        let mut buf = vec![0; total];
        let received = socket.receive(&process, &mut buf, flags).await?;
        let mut left = &buf[..received.count];
        for (ptr, len) in filled {
            let (now, later) = left.split_at(left.len().min(len as usize));
            self.put(ptr, now)?;
            left = later;
        }
        Ok(received)
    }

    /// Gives descriptors that were received to the process, as many as it has room for. Returns how many, and whether some
    /// were closed instead.
    fn take_rights(
        &mut self,
        files: Option<Rights>,
        at: u32,
        room: u32,
        cloexec: bool,
    ) -> Result<(u32, bool)> {
        let mut files = files.map(Rights::take).unwrap_or_default();
        let all = files.len();
        files.truncate(room as usize);
        let mut given = 0;
        for file in files {
            let inserted = self.process().fds.lock().insert(Fd { file, cloexec }, 0);
            let Ok(number) = inserted else {
                self.hit("openFiles");
                break;
            };
            self.put_u32(at + 4 * given, number)?;
            given += 1;
        }
        Ok((given, (given as usize) < all))
    }
}
