//! What is sent and received through sockets: bytes, datagrams, and descriptors with them.

use std::sync::Arc;

use wardian_vfs::{Errno, Result};

use crate::call::{Call, Fail, Outcome};
use crate::fd::Fd;
use crate::limits::Charge;
use crate::net::{
    Address, Domain, Flags, Kind, LONGEST_ADDRESS, Peer, RIGHTS_PER_MESSAGE, Received, Rights, Socket,
};

/// The most that one call receives or sends, all parts together. It goes through a buffer if there are several parts.
const AT_ONCE: usize = 1 << 20;
/// The longest scatter or gather list, as on Linux.
const MAX_PARTS: u32 = 1024;
/// What `recv` writes: bytes, length of the address, descriptors, flags.
const RECEIVED: u32 = 16;
/// Something was cut: the datagram, or the descriptors.
const MSG_TRUNC: u32 = 0x20;
const MSG_CTRUNC: u32 = 0x8;

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

    /// The parts of a list, as many of them as may be moved at once.
    fn message_parts(&mut self, iovs: u32, count: u32) -> Result<Vec<(u32, u32)>> {
        let raw = self.list(iovs, (count, 8), MAX_PARTS, Errno::EMSGSIZE)?;
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let parts: Vec<_> = raw.chunks_exact(8).map(|iov| (word(&iov[..4]), word(&iov[4..]))).collect();
        parts.iter().try_for_each(|(ptr, len)| self.bytes(*ptr, *len).map(drop))?;
        Ok(parts)
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
pub(super) async fn send(
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
pub(super) async fn recv(
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
