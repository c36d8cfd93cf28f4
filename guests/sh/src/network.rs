//! `/dev/tcp/HOST/PORT` and `/dev/udp/HOST/PORT`: no files, but what a redirection connects to.

use crate::redirect::Failed;
use crate::shell::Shell;
use abi::net::LookUpError;
use abi::socket::{AF_INET, AF_INET6, DATAGRAM, STREAM};
use std::net::{IpAddr, SocketAddr};
use wardian_abi as abi;

/// Where a redirection leads that names no file.
struct Peer<'a> {
    kind: i32,
    protocol: &'static str,
    host: &'a [u8],
    service: &'a [u8],
}

impl Peer<'_> {
    /// The peer in the name of a target. Only this spelling is one: `/dev//tcp` is a path.
    fn parse(path: &[u8]) -> Option<Peer<'_>> {
        let (kind, protocol, rest) = match path.strip_prefix(b"/dev/tcp/") {
            Some(rest) => (STREAM, "tcp", rest),
            None => (DATAGRAM, "udp", path.strip_prefix(b"/dev/udp/")?),
        };
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        Some(Peer { kind, protocol, host: &rest[..slash], service: &rest[slash + 1..] })
    }

    fn connect(&self, ip: IpAddr, port: u16) -> abi::Result<abi::Fd> {
        let family = if ip.is_ipv4() { AF_INET } else { AF_INET6 };
        let fd = abi::socket::socket(family, self.kind, 0, true)?;
        let address = abi::net::encode(&SocketAddr::new(ip, port));
        abi::socket::connect(fd, &address).map(|()| fd).inspect_err(|_| {
            let _ = abi::close(fd);
        })
    }
}

impl Shell {
    /// Connects to what `path` names. `None` if it names a file.
    pub fn open_peer(&mut self, path: &[u8]) -> Option<Result<abi::Fd, Failed>> {
        let peer = Peer::parse(path)?;
        Some(self.connect_peer(&peer).map_err(|errno| {
            self.complain_errno(path, errno);
            Failed
        }))
    }

    fn connect_peer(&mut self, peer: &Peer<'_>) -> abi::Result<abi::Fd> {
        let Some(port) = port(peer.service, peer.protocol) else {
            self.complain_parts(&[peer.service, b": Servname not supported for ai_socktype"]);
            return Err(abi::Errno::INVAL);
        };
        let found =
            std::str::from_utf8(peer.host).map_err(|_| LookUpError::Unknown).and_then(abi::net::look_up);
        let addresses = found.map_err(|error| {
            self.complain_parts(&[peer.host, b": ", reason(error).as_bytes()]);
            abi::Errno::INVAL
        })?;
        let mut last = abi::Errno::INVAL;
        for ip in addresses {
            match peer.connect(ip, port) {
                Ok(fd) => return Ok(fd),
                Err(errno) => last = errno,
            }
        }
        // Bash says this one without a line.
        let message = [&self.name, &b": connect: "[..], last.message().as_bytes(), b"\n"].concat();
        let _ = abi::write_all(2, &message);
        Err(last)
    }
}

/// In the words of `gai_strerror`.
fn reason(error: LookUpError) -> &'static str {
    match error {
        LookUpError::Unknown => "Name or service not known",
        LookUpError::Refused => "Non-recoverable failure in name resolution",
        LookUpError::Again => "Temporary failure in name resolution",
    }
}

/// The port of a service: a number or a name.
fn port(service: &[u8], protocol: &str) -> Option<u16> {
    let service = std::str::from_utf8(service).ok()?;
    // `getaddrinfo` reads numbers as C does and keeps the lowest bits: 65537 is 1, nothing is 0.
    let number = service.trim_start();
    match number.parse::<u64>().map(|number| number as i32) {
        _ if number.is_empty() => return Some(0),
        Ok(number) if number >= 0 => return Some(number as u16),
        _ => {}
    }
    let text = std::fs::read_to_string("/etc/services").ok()?;
    text.lines().find_map(|line| named_port(line, service, protocol))
}

/// The port in a line of `/etc/services`, if it is about this name and protocol.
fn named_port(line: &str, service: &str, protocol: &str) -> Option<u16> {
    let mut words = line.split('#').next()?.split_ascii_whitespace();
    let name = words.next()?;
    let (port, of) = words.next()?.split_once('/')?;
    let named = name == service || words.any(|alias| alias == service);
    (named && of == protocol).then(|| port.parse().ok()).flatten()
}
