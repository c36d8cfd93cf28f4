//! A connection with a buffer for reading and a deadline.
//!
//! This is the only place that knows how sockets are called.

use super::{Error, Result};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use wardian_abi as abi;
use wardian_abi::Errno;
use wardian_abi::net::{LookUpError, Stream, UnixStream};

/// Where bytes go and come from.
enum Io {
    Tcp(Stream),
    Unix(UnixStream),
}

const BUFFER: usize = 16 * 1024;

/// An open connection.
pub struct Wire {
    io: Io,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// When reads and writes stop waiting.
    pub deadline: Option<Instant>,
    /// The addresses of both ends, where there are any.
    pub local: Option<SocketAddr>,
    pub peer: Option<SocketAddr>,
    /// What the gateway said about TLS.
    pub tls: Option<super::tls::Agreed>,
}

/// Returns the addresses of a host name or literal address; an empty list if there are none.
pub fn addresses(host: &str) -> Vec<IpAddr> {
    resolve(host).unwrap_or_default()
}

/// Returns the addresses of a host name or literal address, or what the C library says instead.
pub fn resolve(host: &str) -> std::result::Result<Vec<IpAddr>, &'static str> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![address]);
    }
    match abi::net::look_up(host) {
        Ok(addresses) if addresses.is_empty() => Err(UNKNOWN_NAME),
        Ok(addresses) => Ok(addresses),
        Err(LookUpError::Unknown) => Err(UNKNOWN_NAME),
        Err(LookUpError::Refused) => Err("Non-recoverable failure in name resolution"),
        Err(LookUpError::Again) => Err("Temporary failure in name resolution"),
    }
}

/// What the C library says of a name that nobody has.
pub const UNKNOWN_NAME: &str = "Name or service not known";

/// What ends all waiting, and is asked from time to time while something waits.
static INTERRUPT: OnceLock<fn() -> bool> = OnceLock::new();
const SLICE: Duration = Duration::from_millis(250);

/// Ends all waiting of this process, with EINTR, once the function says so. It is set once.
pub fn interrupt_if(asked: fn() -> bool) {
    let _ = INTERRUPT.set(asked);
}

fn interrupted() -> bool {
    INTERRUPT.get().is_some_and(|asked| asked())
}

/// Waits, for pauses between attempts.
pub fn pause(time: Duration) {
    let slice = if INTERRUPT.get().is_some() { SLICE } else { time };
    let until = Instant::now() + time;
    while !interrupted() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(slice));
    }
}

impl Wire {
    /// Connects to an address.
    pub fn connect(address: &SocketAddr, timeout: Option<Duration>) -> std::result::Result<Wire, Errno> {
        let stream = Stream::connect(address, timeout)?;
        let local = stream.local_addr().ok();
        Ok(Wire::over(Io::Tcp(stream), local, Some(*address)))
    }

    /// Connects to a socket in the file system.
    pub fn connect_unix(path: &[u8]) -> std::result::Result<Wire, Errno> {
        Ok(Wire::over(Io::Unix(UnixStream::connect(path)?), None, None))
    }

    fn over(io: Io, local: Option<SocketAddr>, peer: Option<SocketAddr>) -> Wire {
        Wire { io, buffer: vec![0; BUFFER], start: 0, end: 0, deadline: None, local, peer, tls: None }
    }

    fn fd(&self) -> abi::Fd {
        match &self.io {
            Io::Tcp(stream) => stream.fd(),
            Io::Unix(stream) => stream.fd(),
        }
    }

    /// Waits for one direction until the deadline, or for ever without one.
    fn wait(&self, poll: fn(abi::Fd, Option<Duration>) -> abi::Result<bool>) -> Result<()> {
        if self.deadline.is_none() && INTERRUPT.get().is_none() {
            return Ok(());
        }
        loop {
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Error::Timeout);
            }
            if interrupted() {
                return Err(Error::Receive(Errno::INTR));
            }
            let slice = if INTERRUPT.get().is_some() { SLICE } else { Duration::MAX };
            let left = left.unwrap_or(slice).min(slice);
            // A whole millisecond, so that a short rest is not polled for again and again.
            match poll(self.fd(), Some(left.max(Duration::from_millis(1)))) {
                Ok(true) => return Ok(()),
                Ok(false) | Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::Receive(errno)),
            }
        }
    }

    /// Returns whether a response begins within a time.
    pub fn answers_within(&self, time: Duration) -> bool {
        self.start < self.end || abi::poll_read(self.fd(), Some(time)).unwrap_or(true)
    }

    /// Returns what was read and not used yet.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Marks bytes of the buffer as used.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Reads more if the buffer is empty; `false` at the end of the stream.
    pub fn fill(&mut self) -> Result<bool> {
        if self.start < self.end {
            return Ok(true);
        }
        loop {
            self.wait(abi::poll_read)?;
            let read = match &mut self.io {
                Io::Tcp(stream) => stream.read(&mut self.buffer),
                Io::Unix(stream) => stream.read(&mut self.buffer),
            };
            match read.map_err(Errno::from) {
                Ok(count) => {
                    (self.start, self.end) = (0, count.min(BUFFER));
                    return Ok(self.end > 0);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::Receive(errno)),
            }
        }
    }

    /// Writes all of it.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            self.wait(abi::poll_write)?;
            let some = &bytes[..bytes.len().min(BUFFER)];
            let written = match &mut self.io {
                Io::Tcp(stream) => stream.write(some),
                Io::Unix(stream) => stream.write(some),
            };
            match written.map_err(Errno::from) {
                Ok(0) => return Err(Error::Send(Errno::PIPE)),
                Ok(count) => bytes = &bytes[count.min(bytes.len())..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::Send(errno)),
            }
        }
        Ok(())
    }

    /// Reads up to and with a newline into `line`, of at most `limit` bytes; `false` at the end of the stream.
    pub fn read_line(&mut self, line: &mut Vec<u8>, limit: usize) -> Result<bool> {
        line.clear();
        loop {
            if !self.fill()? {
                return Ok(false);
            }
            let ahead = self.buffered();
            let newline = ahead.iter().position(|&byte| byte == b'\n');
            let take = newline.map_or(ahead.len(), |at| at + 1);
            if line.len() + take > limit {
                return Err(Error::LineTooLong);
            }
            line.extend_from_slice(&ahead[..take]);
            self.consume(take);
            if newline.is_some() {
                return Ok(true);
            }
        }
    }

    /// Reads exactly so many bytes.
    pub fn read_exact(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            if !self.fill()? {
                return Err(Error::Receive(Errno::CONNRESET));
            }
            let take = self.buffered().len().min(count - bytes.len());
            bytes.extend_from_slice(&self.buffered()[..take]);
            self.consume(take);
        }
        Ok(bytes)
    }
}
