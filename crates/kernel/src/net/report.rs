//! `/proc/net`: the sockets of a sandbox as Linux lists them.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use super::address::UnixName;
use super::socket::{Kind, Phase, Socket};
use super::{Address, Domain, Network};
use crate::proc::UID;

/// The files in `/proc/net`.
pub(crate) const FILES: [&str; 5] = ["tcp", "tcp6", "udp", "udp6", "unix"];
/// The most sockets that one of them lists: it is written in one go.
const MOST: usize = 2048;

impl Network {
    /// Returns the text of one of the files.
    pub(crate) fn report(&self, file: &str) -> Option<String> {
        let (domain, kind) = match file {
            "tcp" => (Domain::V4, Some(Kind::Stream)),
            "tcp6" => (Domain::V6, Some(Kind::Stream)),
            "udp" => (Domain::V4, Some(Kind::Datagram)),
            "udp6" => (Domain::V6, Some(Kind::Datagram)),
            "unix" => (Domain::Unix, None),
            _ => return None,
        };
        let mut sockets = self.sockets();
        sockets.retain(|socket| socket.domain() == domain && kind.is_none_or(|kind| socket.kind() == kind));
        sockets.truncate(MOST);
        let mut text = match domain {
            Domain::Unix => "Num       RefCount Protocol Flags    Type St Inode Path\n".to_owned(),
            Domain::V4 => HEAD.replace("WIDE", ""),
            Domain::V6 => HEAD.replace("WIDE", "                        "),
        };
        for (number, socket) in sockets.iter().enumerate() {
            match domain {
                Domain::Unix => unix_line(socket, &mut text),
                Domain::V4 | Domain::V6 => inet_line(number, socket, &mut text),
            }
        }
        Some(text)
    }
}

const HEAD: &str = "  sl  local_addressWIDE rem_addressWIDE   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

/// An address and port as Linux prints them: each 32-bit word of the address in the machine's order.
fn hexadecimal(at: SocketAddr, domain: Domain) -> String {
    let octets = match (domain, at.ip()) {
        (Domain::V6, IpAddr::V4(ip)) => ip.to_ipv6_mapped().octets().to_vec(),
        (_, IpAddr::V4(ip)) => ip.octets().to_vec(),
        (_, IpAddr::V6(ip)) => ip.octets().to_vec(),
    };
    let mut text = String::new();
    for word in octets.chunks(4) {
        // Writing to a String cannot fail.
        for byte in word.iter().rev() {
            let _ = write!(text, "{byte:02X}");
        }
    }
    let _ = write!(text, ":{:04X}", at.port());
    text
}

/// Linux's number of a state of TCP, which it uses for other sockets as well.
fn state_number(socket: &Socket) -> u8 {
    match &socket.state.lock().phase {
        Phase::Listening(_) => 0x0a,
        Phase::Connected(_) | Phase::Datagram(Some(_)) => 0x01,
        Phase::Connecting(_) => 0x02,
        Phase::Fresh | Phase::Datagram(None) | Phase::Lost | Phase::Closed => 0x07,
    }
}

fn inet_line(number: usize, socket: &Socket, text: &mut String) {
    let domain = socket.domain();
    let nowhere = domain.nowhere();
    let inet = |address: Address| address.inet().map(|at| hexadecimal(at, domain)).unwrap_or_default();
    let (local, remote) = (inet(socket.local()), inet(socket.peer().unwrap_or(nowhere)));
    let (state, waiting) = (state_number(socket), socket.ready(false).bytes);
    let id = socket.id();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{number:4}: {local} {remote} {state:02X} 00000000:{waiting:08X} 00:00000000 00000000 {UID:5}        0 {id}"
    );
}

fn unix_line(socket: &Socket, text: &mut String) {
    let kind = if socket.kind() == Kind::Stream { 1 } else { 2 };
    let flags = if socket.is_listening() { 0x1_0000 } else { 0 };
    let state = if matches!(state_number(socket), 0x01) { 3 } else { 1 };
    let name = match socket.local() {
        Address::Unix(UnixName::Path(path)) => format!(" {}", String::from_utf8_lossy(&path)),
        Address::Unix(UnixName::Abstract(name)) => {
            format!(" @{}", String::from_utf8_lossy(&name).replace('\0', "@"))
        }
        _ => String::new(),
    };
    let id = socket.id();
    let _ =
        writeln!(text, "0000000000000000: 00000002 00000000 {flags:08X} {kind:04X} {state:02X} {id:5}{name}");
}
