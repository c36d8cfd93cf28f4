//! Sockets: TCP and Unix streams that never wait, UDP, and names.

use std::net::{IpAddr, SocketAddr};

use rquickjs::{Ctx, Object, TypedArray};
use wardian_abi::net::{decode, encode, encode_unix};
use wardian_abi::socket::{self, AF_INET, AF_INET6, AF_UNIX, LONGEST_ADDRESS, MSG_NOSIGNAL, SOL_SOCKET};
use wardian_abi::{self as abi, Errno, Fd};

use super::{Answer, read, write};

const SO_REUSEADDR: i32 = 2;
const SO_ERROR: i32 = 4;

/// The bytes of an address: a host and a port, or a path if the port is negative.
fn address(host: &str, port: i32) -> abi::Result<(i32, Vec<u8>)> {
    if port < 0 {
        return Ok((AF_UNIX, encode_unix(host.as_bytes())));
    }
    let ip: IpAddr = host.parse().map_err(|_| Errno::INVAL)?;
    let port = u16::try_from(port).map_err(|_| Errno::INVAL)?;
    Ok((if ip.is_ipv4() { AF_INET } else { AF_INET6 }, encode(&SocketAddr::new(ip, port))))
}

/// A new socket, which is closed again if what follows fails.
fn with_socket(family: i32, kind: i32, then: impl FnOnce(Fd) -> abi::Result<()>) -> abi::Result<Fd> {
    let fd = socket::socket(family, kind, 0, true)?;
    match abi::set_nonblocking(fd, true).and_then(|()| then(fd)) {
        Ok(()) => Ok(fd),
        Err(errno) => {
            let _ = abi::close(fd);
            Err(errno)
        }
    }
}

/// Begins to connect: the socket can be written once that is done.
fn connect(host: String, port: i32) -> Answer<Fd> {
    let begin = || {
        let (family, address) = address(&host, port)?;
        with_socket(family, socket::STREAM, |fd| match socket::connect(fd, &address) {
            Err(Errno::INPROGRESS) => Ok(()),
            done => done,
        })
    };
    Answer(begin())
}

/// The error of a connection that was begun, as Linux's number; 0 for none.
fn socket_error(fd: Fd) -> Answer<i32> {
    let mut error = [0; 4];
    Answer(socket::getsockopt(fd, SOL_SOCKET, SO_ERROR, &mut error).map(|_| i32::from_le_bytes(error)))
}

fn listen(host: String, port: i32, backlog: i32) -> Answer<Fd> {
    let begin = || {
        let (family, address) = address(&host, port)?;
        with_socket(family, socket::STREAM, |fd| {
            if family != AF_UNIX {
                socket::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &1i32.to_le_bytes())?;
            }
            socket::bind(fd, &address)?;
            socket::listen(fd, backlog)
        })
    };
    Answer(begin())
}

fn accept(fd: Fd) -> Answer<Fd> {
    let accepted = socket::accept(fd, true, &mut [0; LONGEST_ADDRESS]);
    Answer(accepted.and_then(|(fd, _)| abi::set_nonblocking(fd, true).map(|()| fd)))
}

fn datagram(host: String, port: i32) -> Answer<Fd> {
    let begin = || {
        let (family, address) = address(&host, port)?;
        with_socket(family, socket::DATAGRAM, |fd| socket::bind(fd, &address))
    };
    Answer(begin())
}

fn send(fd: Fd, bytes: TypedArray<'_, u8>) -> Answer<u32> {
    read(&bytes, |bytes| Answer(socket::send(fd, bytes, MSG_NOSIGNAL, &[], &[]).map(|count| count as u32)))
}

fn send_to(fd: Fd, bytes: TypedArray<'_, u8>, host: String, port: i32) -> Answer<u32> {
    let send = |to: Vec<u8>| {
        read(&bytes, |bytes| socket::send(fd, bytes, MSG_NOSIGNAL, &to, &[]).map(|count| count as u32))
    };
    Answer(address(&host, port).and_then(|(_, to)| send(to)))
}

fn receive(fd: Fd, into: TypedArray<'_, u8>) -> Answer<u32> {
    write(&into, |buffer| {
        Answer(socket::recv(fd, buffer, 0, &mut [], &mut []).map(|received| received.count as u32))
    })
}

/// Receives a datagram: its length, and the host and port it is from, as text.
fn receive_from(fd: Fd, into: TypedArray<'_, u8>) -> Answer<Vec<String>> {
    let mut raw = [0; LONGEST_ADDRESS];
    let received = write(&into, |buffer| socket::recv(fd, buffer, 0, &mut raw, &mut []));
    Answer(received.map(|received| {
        let from = decode(&raw[..received.address.min(raw.len())]);
        vec![received.count.to_string(), from.ip().to_string(), from.port().to_string()]
    }))
}

/// A socket's own address, or that of its peer: host, port and family, as text. A Unix socket has none.
fn name(fd: Fd, peer: bool) -> Answer<Vec<String>> {
    let mut raw = [0; LONGEST_ADDRESS];
    let length = if peer { socket::getpeername(fd, &mut raw) } else { socket::getsockname(fd, &mut raw) };
    Answer(length.map(|length| {
        if i32::from(u16::from_le_bytes([raw[0], raw[1]])) == AF_UNIX {
            return vec![];
        }
        let at = decode(&raw[..length.min(raw.len())]);
        let family = if at.is_ipv4() { "IPv4" } else { "IPv6" };
        vec![at.ip().to_string(), at.port().to_string(), family.to_owned()]
    }))
}

/// The addresses of a host; one text that begins with `!` says why there are none.
fn look_up(host: String) -> Vec<String> {
    match socket::look_up(&host) {
        Ok(found) => found.iter().map(IpAddr::to_string).collect(),
        Err(socket::LookUpError::Again) => vec!["!EAI_AGAIN".to_owned()],
        Err(_) => vec!["!ENOTFOUND".to_owned()],
    }
}

pub fn register<'js>(ctx: &Ctx<'js>, bridge: &Object<'js>) -> rquickjs::Result<()> {
    crate::functions!(ctx, bridge;
        "connect" => connect, "socketError" => socket_error, "listen" => listen, "accept" => accept,
        "datagram" => datagram, "send" => send, "sendTo" => send_to, "receive" => receive,
        "receiveFrom" => receive_from, "socketName" => name, "lookUp" => look_up,
        "shutdown" => |fd: Fd| Answer(socket::shutdown(fd, 1)),
    );
    Ok(())
}
