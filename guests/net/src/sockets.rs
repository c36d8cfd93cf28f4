//! `ss` and `netstat`: the sockets there are, from `/proc/net`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use toolkit::args::{Parsed, Tool};
use toolkit::pad::after;

/// A socket.
struct Socket {
    protocol: &'static str,
    state: u8,
    received: u64,
    sent: u64,
    local: SocketAddr,
    remote: SocketAddr,
}

/// States by number, as `ss` and as `netstat` call them.
const STATES: [(&str, &str); 12] = [
    ("UNKNOWN", "UNKNOWN"),
    ("ESTAB", "ESTABLISHED"),
    ("SYN-SENT", "SYN_SENT"),
    ("SYN-RECV", "SYN_RECV"),
    ("FIN-WAIT-1", "FIN_WAIT1"),
    ("FIN-WAIT-2", "FIN_WAIT2"),
    ("TIME-WAIT", "TIME_WAIT"),
    ("UNCONN", ""),
    ("CLOSE-WAIT", "CLOSE_WAIT"),
    ("LAST-ACK", "LAST_ACK"),
    ("LISTEN", "LISTEN"),
    ("CLOSING", "CLOSING"),
];

const LISTENING: u8 = 10;
const UNCONNECTED: u8 = 7;

fn state(socket: &Socket) -> (&'static str, &'static str) {
    STATES.get(usize::from(socket.state)).copied().unwrap_or(STATES[0])
}

/// Reads one of the kernel's tables; none if there is no such table.
fn table(path: &str, protocol: &'static str) -> Vec<Socket> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let entry = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (sent, received) = fields.get(4)?.split_once(':')?;
        Some(Socket {
            protocol,
            local: address(fields.get(1)?)?,
            remote: address(fields.get(2)?)?,
            state: u8::from_str_radix(fields.get(3)?, 16).ok()?,
            sent: u64::from_str_radix(sent, 16).ok()?,
            received: u64::from_str_radix(received, 16).ok()?,
        })
    };
    text.lines().skip(1).filter_map(entry).collect()
}

/// An address as the kernel writes it: words of four bytes, each from its end.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let mut bytes = Vec::new();
    for at in (0..host.len()).step_by(8) {
        let word = u32::from_str_radix(host.get(at..at + 8)?, 16).ok()?;
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// What is asked for.
#[derive(Default)]
struct Wanted {
    tcp: bool,
    udp: bool,
    unix: bool,
    listening: bool,
    all: bool,
    numeric: bool,
    four: bool,
    six: bool,
    no_header: bool,
    summary: bool,
}

impl Wanted {
    fn sockets(&self) -> Vec<Socket> {
        let none = !self.tcp && !self.udp && !self.unix;
        let mut found = Vec::new();
        if self.udp || none {
            found.extend(table("/proc/net/udp", "udp"));
            found.extend(table("/proc/net/udp6", "udp6"));
        }
        if self.tcp || none {
            found.extend(table("/proc/net/tcp", "tcp"));
            found.extend(table("/proc/net/tcp6", "tcp6"));
        }
        found.retain(|socket| {
            let waits = socket.state == LISTENING
                || socket.protocol.starts_with("udp") && socket.state == UNCONNECTED;
            let fits = self.all || waits == self.listening;
            let ended = !self.all && socket.state == 6;
            let family = !(self.four && socket.local.is_ipv6() || self.six && socket.local.is_ipv4());
            fits && family && !ended
        });
        found
    }

    fn port(&self, port: u16, protocol: &str) -> String {
        match port {
            0 => "*".to_owned(),
            port if self.numeric => port.to_string(),
            port => crate::services::name(port, protocol.trim_end_matches('6')).unwrap_or(port.to_string()),
        }
    }
}

fn wanted(parsed: &Parsed, name: &str) -> Result<Wanted, i32> {
    let mut wanted = Wanted::default();
    for (letter, _) in &parsed.options {
        match letter {
            't' => wanted.tcp = true,
            'u' => wanted.udp = true,
            'x' => wanted.unix = true,
            'l' => wanted.listening = true,
            'a' => wanted.all = true,
            'n' => wanted.numeric = true,
            '4' => wanted.four = true,
            '6' => wanted.six = true,
            'H' => wanted.no_header = true,
            's' => wanted.summary = true,
            letter => {
                toolkit::complain(name, format_args!("option -{letter} is not available in this sandbox"));
                return Err(1);
            }
        }
    }
    if wanted.unix {
        toolkit::complain(name, "Unix sockets are not listed in this sandbox");
        return Err(1);
    }
    if !parsed.operands.is_empty() {
        toolkit::complain(name, "filters are not available in this sandbox");
        return Err(1);
    }
    Ok(wanted)
}

const SS: Tool = Tool {
    name: "ss",
    short: "tuxlan46Hspeomi",
    long: &[
        ("tcp", 't'),
        ("udp", 'u'),
        ("unix", 'x'),
        ("listening", 'l'),
        ("all", 'a'),
        ("numeric", 'n'),
        ("ipv4", '4'),
        ("ipv6", '6'),
        ("no-header", 'H'),
        ("summary", 's'),
        ("processes", 'p'),
    ],
    help: "Usage: ss [-tulan46H]\nList sockets.\n",
    misuse: 255,
};

pub fn ss(arguments: toolkit::Arguments) -> i32 {
    let parsed = match SS.parse(toolkit::args::bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let wanted = match wanted(&parsed, "ss") {
        Ok(wanted) => wanted,
        Err(code) => return code,
    };
    let sockets = wanted.sockets();
    let mut out = toolkit::out::Out::new("ss");
    if wanted.summary {
        let tcp = sockets.iter().filter(|socket| socket.protocol.starts_with("tcp")).count();
        out.put(format!("Total: {}\nTCP:   {tcp}\nUDP:   {}\n", sockets.len(), sockets.len() - tcp));
        return 0;
    }
    let both = !(wanted.tcp ^ wanted.udp);
    let mut rows: Vec<Vec<String>> = Vec::new();
    if !wanted.no_header {
        let heading =
            ["Netid", "State", "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port", "Process"];
        rows.push(heading.iter().map(|word| (*word).to_owned()).collect());
    }
    for socket in &sockets {
        let show = |address: &SocketAddr| {
            let host = match address.ip() {
                IpAddr::V6(ip) => format!("[{ip}]"),
                IpAddr::V4(ip) => ip.to_string(),
            };
            format!("{host}:{}", wanted.port(address.port(), socket.protocol))
        };
        rows.push(vec![
            socket.protocol.trim_end_matches('6').to_owned(),
            state(socket).0.to_owned(),
            socket.received.to_string(),
            socket.sent.to_string(),
            show(&socket.local),
            show(&socket.remote),
            String::new(),
        ]);
    }
    let skip = usize::from(!both);
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).skip(skip).map(|(cell, width)| after(cell, ' ', *width)).collect();
        out.put(format!("{}\n", cells.join(" ").trim_end()));
    }
    0
}

const NETSTAT: Tool = Tool {
    name: "netstat",
    short: "tuxlan46pres",
    long: &[
        ("tcp", 't'),
        ("udp", 'u'),
        ("unix", 'x'),
        ("listening", 'l'),
        ("all", 'a'),
        ("numeric", 'n'),
        ("programs", 'p'),
    ],
    help: "Usage: netstat [-tulan46]\nList sockets.\n",
    misuse: 1,
};

pub fn netstat(arguments: toolkit::Arguments) -> i32 {
    let parsed = match NETSTAT.parse(toolkit::args::bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let wanted = match wanted(&parsed, "netstat") {
        Ok(wanted) if wanted.summary => {
            toolkit::complain("netstat", "option -s is not available in this sandbox");
            return 1;
        }
        Ok(wanted) => wanted,
        Err(code) => return code,
    };
    let which = match (wanted.all, wanted.listening) {
        (true, _) => "servers and established",
        (_, true) => "only servers",
        _ => "w/o servers",
    };
    let mut out = toolkit::out::Out::new("netstat");
    out.put(format!("Active Internet connections ({which})\n"));
    out.put("Proto Recv-Q Send-Q Local Address           Foreign Address         State      \n");
    let mut sockets = wanted.sockets();
    // Here TCP comes first.
    sockets.sort_by_key(|socket| socket.protocol.starts_with("udp"));
    for socket in &sockets {
        let show = |address: &SocketAddr| {
            after(format!("{}:{}", address.ip(), wanted.port(address.port(), socket.protocol)), ' ', 23)
        };
        out.put(format!(
            "{} {:6} {:6} {} {} {}\n",
            after(socket.protocol, ' ', 5),
            socket.received,
            socket.sent,
            show(&socket.local),
            show(&socket.remote),
            after(state(socket).1, ' ', 11)
        ));
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        assert_eq!(address("0100007F:1F90"), "127.0.0.1:8080".parse().ok());
        assert_eq!(address("00000000000000000000000001000000:0050"), "[::1]:80".parse().ok());
        for wrong in ["", ":", "x:1", "0100007F", "0100007F:zzzz", "01:1", "é100007F:1"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }
}
