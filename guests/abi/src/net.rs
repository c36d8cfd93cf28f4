//! Connections, servers and datagrams as types.
//!
//! Within a sandbox there is a loopback network; any other host is reached only if the sandbox was granted it. A name is
//! looked up with [`look_up`], and the address that comes back stands for it in [`Stream::connect`].

use crate::socket::{
    self, AF_INET, AF_INET6, AF_UNIX, DATAGRAM, LONGEST_ADDRESS, MSG_NOSIGNAL, SOL_SOCKET, STREAM,
};
use crate::{Errno, Fd, Result, close, poll_write, set_nonblocking};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV6};
use std::time::Duration;

pub use crate::socket::{LookUpError, look_up};

const SO_REUSEADDR: i32 = 2;
const SO_ERROR: i32 = 4;
const SO_RCVTIMEO: i32 = if cfg!(target_os = "wasi") { 66 } else { 20 };
const SO_SNDTIMEO: i32 = if cfg!(target_os = "wasi") { 67 } else { 21 };
const BACKLOG: i32 = 128;

/// Which directions of a stream to end.
pub use std::net::Shutdown as How;

/// The bytes of a `struct sockaddr`.
pub fn encode(address: &SocketAddr) -> Vec<u8> {
    let family = if address.is_ipv4() { AF_INET } else { AF_INET6 };
    let mut out = (family as u16).to_le_bytes().to_vec();
    out.extend(address.port().to_be_bytes());
    match address {
        SocketAddr::V4(at) => {
            out.extend(at.ip().octets());
            out.extend([0; 8]);
        }
        SocketAddr::V6(at) => {
            out.extend([0; 4]);
            out.extend(at.ip().octets());
            out.extend(SocketAddrV6::scope_id(at).to_le_bytes());
        }
    }
    out
}

/// The address in the bytes of a `struct sockaddr`; nowhere, if it is of another family.
pub fn decode(raw: &[u8]) -> SocketAddr {
    let family = raw.first_chunk().map_or(0, |family| i32::from(u16::from_le_bytes(*family)));
    let port = |raw: &[u8]| u16::from_be_bytes([raw[2], raw[3]]);
    match family {
        AF_INET if raw.len() >= 8 => {
            SocketAddr::new(Ipv4Addr::new(raw[4], raw[5], raw[6], raw[7]).into(), port(raw))
        }
        AF_INET6 if raw.len() >= 24 => {
            let mut ip = [0; 16];
            ip.copy_from_slice(&raw[8..24]);
            SocketAddr::new(Ipv6Addr::from(ip).into(), port(raw))
        }
        _ => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    }
}

/// The bytes of the address of a Unix socket.
pub fn encode_unix(path: &[u8]) -> Vec<u8> {
    [&(AF_UNIX as u16).to_le_bytes()[..], path].concat()
}

/// A socket that is closed when it is dropped.
#[derive(Debug)]
struct Owned(Fd);

impl Owned {
    fn new(family: i32, kind: i32) -> Result<Owned> {
        Ok(Owned(socket::socket(family, kind, 0, true)?))
    }

    fn for_address(address: &SocketAddr, kind: i32) -> Result<Owned> {
        Owned::new(if address.is_ipv4() { AF_INET } else { AF_INET6 }, kind)
    }

    fn local(&self) -> Result<SocketAddr> {
        let mut raw = [0; LONGEST_ADDRESS];
        let len = socket::getsockname(self.0, &mut raw)?;
        Ok(decode(&raw[..len.min(raw.len())]))
    }

    fn set_timeout(&self, option: i32, time: Option<Duration>) -> Result<()> {
        // A timeout of nothing at all would be none.
        let time = time.map_or(Duration::ZERO, |time| time.max(Duration::from_micros(1)));
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let value = [seconds.to_le_bytes(), i64::from(time.subsec_micros()).to_le_bytes()].concat();
        socket::setsockopt(self.0, SOL_SOCKET, option, &value)
    }

    /// Connects, waiting at most so long.
    fn connect(&self, address: &[u8], timeout: Option<Duration>) -> Result<()> {
        let Some(timeout) = timeout else { return retry(|| socket::connect(self.0, address)) };
        set_nonblocking(self.0, true)?;
        match socket::connect(self.0, address) {
            Err(Errno::INPROGRESS) => {
                if !retry(|| poll_write(self.0, Some(timeout)))? {
                    return Err(Errno::TIMEDOUT);
                }
                let mut error = [0; 4];
                socket::getsockopt(self.0, SOL_SOCKET, SO_ERROR, &mut error)?;
                match i32::from_le_bytes(error) {
                    0 => {}
                    error => return Err(Errno::from_linux(error)),
                }
            }
            done => done?,
        }
        set_nonblocking(self.0, false)
    }

    fn accept(&self) -> Result<(Owned, Vec<u8>)> {
        let mut raw = [0; LONGEST_ADDRESS];
        let (fd, len) = retry(|| socket::accept(self.0, true, &mut raw))?;
        Ok((Owned(fd), raw[..len.min(raw.len())].to_vec()))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = close(self.0);
    }
}

fn retry<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// Reading and writing for everything that is a stream.
macro_rules! stream {
    ($name:ident) => {
        impl $name {
            /// Its descriptor, which stays its own.
            pub fn fd(&self) -> Fd {
                self.0.0
            }

            /// Gives up its descriptor, which stays open.
            pub fn into_fd(self) -> Fd {
                let fd = self.fd();
                std::mem::forget(self);
                fd
            }

            /// Ends one or both directions.
            pub fn shutdown(&self, how: How) -> Result<()> {
                let how = match how {
                    Shutdown::Read => 0,
                    Shutdown::Write => 1,
                    Shutdown::Both => 2,
                };
                socket::shutdown(self.fd(), how)
            }

            /// Sets how long reading and writing wait: `EAGAIN` afterwards. `None`: for ever.
            pub fn set_timeouts(&self, read: Option<Duration>, write: Option<Duration>) -> Result<()> {
                self.0.set_timeout(SO_RCVTIMEO, read)?;
                self.0.set_timeout(SO_SNDTIMEO, write)
            }
        }

        impl io::Read for $name {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                (&*self).read(buffer)
            }
        }

        impl io::Read for &$name {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                Ok(socket::recv(self.fd(), buffer, 0, &mut [], &mut [])?.count)
            }
        }

        impl io::Write for $name {
            fn write(&mut self, data: &[u8]) -> io::Result<usize> {
                (&*self).write(data)
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        impl io::Write for &$name {
            fn write(&mut self, data: &[u8]) -> io::Result<usize> {
                Ok(socket::send(self.fd(), data, MSG_NOSIGNAL, &[], &[])?)
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    };
}

/// A TCP connection.
#[derive(Debug)]
pub struct Stream(Owned);

stream!(Stream);

impl Stream {
    /// Connects to an address; `ETIMEDOUT` if that takes longer.
    pub fn connect(to: &SocketAddr, timeout: Option<Duration>) -> Result<Stream> {
        let owned = Owned::for_address(to, STREAM)?;
        owned.connect(&encode(to), timeout)?;
        Ok(Stream(owned))
    }

    /// Its own address.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local()
    }

    /// The address at the other end.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        let mut raw = [0; LONGEST_ADDRESS];
        let len = socket::getpeername(self.fd(), &mut raw)?;
        Ok(decode(&raw[..len.min(raw.len())]))
    }
}

/// A TCP server.
#[derive(Debug)]
pub struct Listener(Owned);

impl Listener {
    /// Listens at an address; port 0 means any.
    pub fn bind(at: &SocketAddr) -> Result<Listener> {
        let owned = Owned::for_address(at, STREAM)?;
        socket::setsockopt(owned.0, SOL_SOCKET, SO_REUSEADDR, &1i32.to_le_bytes())?;
        socket::bind(owned.0, &encode(at))?;
        socket::listen(owned.0, BACKLOG)?;
        Ok(Listener(owned))
    }

    /// Its descriptor, which stays its own.
    pub fn fd(&self) -> Fd {
        self.0.0
    }

    /// Waits for a connection.
    pub fn accept(&self) -> Result<(Stream, SocketAddr)> {
        let (owned, from) = self.0.accept()?;
        Ok((Stream(owned), decode(&from)))
    }

    /// Where it listens.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local()
    }
}

/// A UDP socket.
#[derive(Debug)]
pub struct Datagram(Owned);

impl Datagram {
    /// Has this address; port 0 means any.
    pub fn bind(at: &SocketAddr) -> Result<Datagram> {
        let owned = Owned::for_address(at, DATAGRAM)?;
        socket::bind(owned.0, &encode(at))?;
        Ok(Datagram(owned))
    }

    /// Its descriptor, which stays its own.
    pub fn fd(&self) -> Fd {
        self.0.0
    }

    /// Gives up its descriptor, which stays open.
    pub fn into_fd(self) -> Fd {
        let fd = self.fd();
        std::mem::forget(self);
        fd
    }

    /// Exchanges datagrams with this address alone from here on: `send_to` is not needed.
    pub fn connect(&self, to: &SocketAddr) -> Result<()> {
        socket::connect(self.fd(), &encode(to))
    }

    /// Sends a datagram to an address.
    pub fn send_to(&self, data: &[u8], to: &SocketAddr) -> Result<usize> {
        retry(|| socket::send(self.fd(), data, MSG_NOSIGNAL, &encode(to), &[]))
    }

    /// Sends a datagram to where it is connected.
    pub fn send(&self, data: &[u8]) -> Result<usize> {
        retry(|| socket::send(self.fd(), data, MSG_NOSIGNAL, &[], &[]))
    }

    /// Waits for a datagram; answers how much of it is in the buffer, and who sent it.
    pub fn recv_from(&self, buffer: &mut [u8]) -> Result<(usize, SocketAddr)> {
        let mut raw = [0; LONGEST_ADDRESS];
        let received = retry(|| socket::recv(self.fd(), buffer, 0, &mut raw, &mut []))?;
        Ok((received.count, decode(&raw[..received.address.min(raw.len())])))
    }

    /// Its own address.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local()
    }

    /// Sets how long receiving and sending wait: `EAGAIN` afterwards. `None`: for ever.
    pub fn set_timeouts(&self, read: Option<Duration>, write: Option<Duration>) -> Result<()> {
        self.0.set_timeout(SO_RCVTIMEO, read)?;
        self.0.set_timeout(SO_SNDTIMEO, write)
    }
}

/// A connection between Unix sockets.
#[derive(Debug)]
pub struct UnixStream(Owned);

stream!(UnixStream);

impl UnixStream {
    /// Connects to the socket with this name.
    pub fn connect(path: &[u8]) -> Result<UnixStream> {
        let owned = Owned::new(AF_UNIX, STREAM)?;
        retry(|| socket::connect(owned.0, &encode_unix(path)))?;
        Ok(UnixStream(owned))
    }

    /// Two that are connected with each other.
    pub fn pair() -> Result<(UnixStream, UnixStream)> {
        let (one, other) = socket::socketpair(STREAM, true)?;
        Ok((UnixStream(Owned(one)), UnixStream(Owned(other))))
    }
}

/// A server at a Unix socket.
#[derive(Debug)]
pub struct UnixListener(Owned);

impl UnixListener {
    /// Creates the socket with this name and listens at it.
    pub fn bind(path: &[u8]) -> Result<UnixListener> {
        let owned = Owned::new(AF_UNIX, STREAM)?;
        socket::bind(owned.0, &encode_unix(path))?;
        socket::listen(owned.0, BACKLOG)?;
        Ok(UnixListener(owned))
    }

    /// Its descriptor, which stays its own.
    pub fn fd(&self) -> Fd {
        self.0.0
    }

    /// Waits for a connection.
    pub fn accept(&self) -> Result<UnixStream> {
        Ok(UnixStream(self.0.accept()?.0))
    }
}
