//! The calls on sockets, as Linux has them: addresses are the bytes of a `struct sockaddr`, and flags, families and options
//! are Linux's numbers. [`net`](crate::net) has them as types.

use crate::{Fd, Result, sys};
use std::net::IpAddr;

/// Unix sockets.
pub const AF_UNIX: i32 = 1;
/// IPv4.
pub const AF_INET: i32 = 2;
/// IPv6.
pub const AF_INET6: i32 = 10;
/// A stream of bytes.
pub const STREAM: i32 = 1;
/// Datagrams.
pub const DATAGRAM: i32 = 2;
/// Leaves what is received where it is.
pub const MSG_PEEK: i32 = 2;
/// Says how long a datagram is, or was before it was cut.
pub const MSG_TRUNC: i32 = 0x20;
/// Does not wait.
pub const MSG_DONTWAIT: i32 = 0x40;
/// Waits for as much as was asked for.
pub const MSG_WAITALL: i32 = 0x100;
/// Sends no SIGPIPE.
pub const MSG_NOSIGNAL: i32 = 0x4000;
/// The level of options of all sockets.
pub const SOL_SOCKET: i32 = 1;
/// The longest address.
pub const LONGEST_ADDRESS: usize = 128;

/// What was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// The bytes.
    pub count: usize,
    /// The bytes of the sender's address.
    pub address: usize,
    /// The descriptors.
    pub rights: usize,
    /// Linux's flags of the message.
    pub flags: i32,
}

/// Why a name was not found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookUpError {
    /// There is no such host.
    Unknown,
    /// The name must not be looked up, or cannot.
    Refused,
    /// It may be found later.
    Again,
}

/// Creates a socket, marked close-on-exec if asked.
pub fn socket(family: i32, kind: i32, protocol: i32, cloexec: bool) -> Result<Fd> {
    sys::socket(family, kind, protocol, cloexec)
}

/// Creates two Unix sockets that are connected with each other.
pub fn socketpair(kind: i32, cloexec: bool) -> Result<(Fd, Fd)> {
    sys::socketpair(kind, cloexec)
}

/// Gives a socket its address.
pub fn bind(fd: Fd, address: &[u8]) -> Result<()> {
    sys::bind(fd, address)
}

/// Waits for connections, so many at once.
pub fn listen(fd: Fd, backlog: i32) -> Result<()> {
    sys::listen(fd, backlog)
}

/// Accepts a connection; answers its descriptor and the length of the client's address.
pub fn accept(fd: Fd, cloexec: bool, address: &mut [u8]) -> Result<(Fd, usize)> {
    sys::accept(fd, cloexec, address)
}

/// Connects a socket.
pub fn connect(fd: Fd, address: &[u8]) -> Result<()> {
    sys::connect(fd, address)
}

/// Sends, with an address (or an empty one) and descriptors; answers how many bytes.
pub fn send(fd: Fd, data: &[u8], flags: i32, address: &[u8], rights: &[Fd]) -> Result<usize> {
    sys::send(fd, data, flags, address, rights)
}

/// Receives, with the sender's address and descriptors.
pub fn recv(
    fd: Fd,
    buffer: &mut [u8],
    flags: i32,
    address: &mut [u8],
    rights: &mut [Fd],
) -> Result<Received> {
    sys::recv(fd, buffer, flags, address, rights)
}

/// Ends receiving (0), sending (1) or both (2).
pub fn shutdown(fd: Fd, how: i32) -> Result<()> {
    sys::shutdown(fd, how)
}

/// The socket's own address; answers its length.
pub fn getsockname(fd: Fd, address: &mut [u8]) -> Result<usize> {
    sys::getsockname(fd, address)
}

/// The address at the other end; answers its length.
pub fn getpeername(fd: Fd, address: &mut [u8]) -> Result<usize> {
    sys::getpeername(fd, address)
}

/// An option's value; answers its length.
pub fn getsockopt(fd: Fd, level: i32, option: i32, value: &mut [u8]) -> Result<usize> {
    sys::getsockopt(fd, level, option, value)
}

/// Sets an option.
pub fn setsockopt(fd: Fd, level: i32, option: i32, value: &[u8]) -> Result<()> {
    sys::setsockopt(fd, level, option, value)
}

/// The addresses of a host.
pub fn look_up(name: &str) -> std::result::Result<Vec<IpAddr>, LookUpError> {
    sys::look_up(name)
}
