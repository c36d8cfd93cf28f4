//! Sockets: names, streams, listeners and datagrams, over `std::net`.

use crate::{Errno, Fd, Result};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net as unix;
use std::path::Path;
use std::time::Duration;

/// Why a name has no address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookUpError {
    /// There is no such name.
    NotFound,
    /// The policy does not grant the name.
    Denied,
    /// The look-up failed and may work later.
    TryAgain,
    /// The look-up failed.
    Failed,
}

impl std::fmt::Display for LookUpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LookUpError::NotFound => "Name or service not known",
            LookUpError::Denied | LookUpError::Failed => "Non-recoverable failure in name resolution",
            LookUpError::TryAgain => "Temporary failure in name resolution",
        })
    }
}

impl std::error::Error for LookUpError {}

/// Returns the addresses of a name, or the address that the text is.
pub fn look_up(host: &str) -> std::result::Result<Vec<IpAddr>, LookUpError> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    let found = (host, 0).to_socket_addrs().map_err(|error| match error.raw_os_error() {
        Some(_) => LookUpError::Failed,
        None => LookUpError::NotFound,
    })?;
    for address in found {
        if !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
    }
    if addresses.is_empty() { Err(LookUpError::NotFound) } else { Ok(addresses) }
}

/// Which direction of a stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Nothing more is read.
    Read,
    /// Nothing more is written: the peer reads the end.
    Write,
    /// Both.
    Both,
}

impl From<How> for Shutdown {
    fn from(how: How) -> Self {
        match how {
            How::Read => Shutdown::Read,
            How::Write => Shutdown::Write,
            How::Both => Shutdown::Both,
        }
    }
}

/// A timeout on connect has no error number in `std`.
fn connect_errno(error: io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::TimedOut => Errno::TIMEDOUT,
        _ => Errno::from(error),
    }
}

/// A TCP connection.
#[derive(Debug)]
pub struct Stream(TcpStream);

impl Stream {
    /// Connects to an address, within the given time if there is one.
    pub fn connect(address: &SocketAddr, timeout: Option<Duration>) -> Result<Stream> {
        let connected = match timeout {
            Some(time) => TcpStream::connect_timeout(address, time.max(Duration::from_millis(1))),
            None => TcpStream::connect(address),
        };
        let stream = connected.map_err(connect_errno)?;
        let _ = stream.set_nodelay(true);
        Ok(Stream(stream))
    }

    /// Returns the descriptor, for `poll`.
    pub fn fd(&self) -> Fd {
        self.0.as_raw_fd()
    }

    /// Ends one direction or both.
    pub fn shutdown(&self, how: How) -> Result<()> {
        Ok(self.0.shutdown(how.into())?)
    }

    /// Sets how long a read and a write may wait (`None`: for ever).
    pub fn set_timeouts(&self, read: Option<Duration>, write: Option<Duration>) -> Result<()> {
        self.0.set_read_timeout(read)?;
        Ok(self.0.set_write_timeout(write)?)
    }

    /// Returns the address of this end.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(self.0.local_addr()?)
    }

    /// Returns the address of the other end.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        Ok(self.0.peer_addr()?)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A TCP port that is listened on.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Listens on an address; port 0 is any free one.
    pub fn bind(address: &SocketAddr) -> Result<Listener> {
        Ok(Listener(TcpListener::bind(address)?))
    }

    /// Waits for a connection.
    pub fn accept(&self) -> Result<(Stream, SocketAddr)> {
        let (stream, peer) = self.0.accept()?;
        Ok((Stream(stream), peer))
    }

    /// Returns the address that is listened on.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(self.0.local_addr()?)
    }

    /// Returns the descriptor, for `poll`.
    pub fn fd(&self) -> Fd {
        self.0.as_raw_fd()
    }
}

/// A UDP socket.
#[derive(Debug)]
pub struct Datagram(UdpSocket);

impl Datagram {
    /// Binds to an address; port 0 is any free one.
    pub fn bind(address: &SocketAddr) -> Result<Datagram> {
        Ok(Datagram(UdpSocket::bind(address)?))
    }

    /// Sets where datagrams go and come from.
    pub fn connect(&self, address: &SocketAddr) -> Result<()> {
        Ok(self.0.connect(address)?)
    }

    /// Sends one datagram to an address.
    pub fn send_to(&self, bytes: &[u8], address: &SocketAddr) -> Result<usize> {
        Ok(self.0.send_to(bytes, address)?)
    }

    /// Receives one datagram, and who sent it.
    pub fn recv_from(&self, buffer: &mut [u8]) -> Result<(usize, SocketAddr)> {
        Ok(self.0.recv_from(buffer)?)
    }

    /// Returns the address it is bound to.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(self.0.local_addr()?)
    }

    /// Returns the descriptor, for `poll`.
    pub fn fd(&self) -> Fd {
        self.0.as_raw_fd()
    }
}

fn path_of(path: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(path))
}

/// A connection through a socket in the file system.
#[derive(Debug)]
pub struct UnixStream(unix::UnixStream);

impl UnixStream {
    /// Connects to the socket at a path.
    pub fn connect(path: &[u8]) -> Result<UnixStream> {
        Ok(UnixStream(unix::UnixStream::connect(path_of(path))?))
    }

    /// Returns the descriptor, for `poll`.
    pub fn fd(&self) -> Fd {
        self.0.as_raw_fd()
    }

    /// Ends one direction or both.
    pub fn shutdown(&self, how: How) -> Result<()> {
        Ok(self.0.shutdown(how.into())?)
    }
}

impl Read for UnixStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for UnixStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket in the file system that is listened on.
#[derive(Debug)]
pub struct UnixListener(unix::UnixListener);

impl UnixListener {
    /// Creates a socket at a path and listens on it.
    pub fn bind(path: &[u8]) -> Result<UnixListener> {
        Ok(UnixListener(unix::UnixListener::bind(path_of(path))?))
    }

    /// Waits for a connection.
    pub fn accept(&self) -> Result<UnixStream> {
        Ok(UnixStream(self.0.accept()?.0))
    }

    /// Returns the descriptor, for `poll`.
    pub fn fd(&self) -> Fd {
        self.0.as_raw_fd()
    }
}
