//! `nc`, as OpenBSD's in Debian 12: bytes between standard input and output and a socket.

use crate::http::wire;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};
use toolkit::args::{Refusal, Tool};
use wardian_abi as abi;
use wardian_abi::net::{Datagram, How, Listener, Stream, UnixListener, UnixStream};

const USAGE: &str = "usage: nc [-46CdhklNnuUvz] [-i interval] [-p source_port] [-q seconds]
\t  [-s sourceaddr] [-w timeout] [destination] [port]
";

/// Letters of OpenBSD's nc that do not work here.
const REFUSED: &str = "DFIMmOPrSTtVWXxZb";

const TOOL: Tool = Tool {
    name: "nc",
    short: "46CdhklNnuUvzi:p:q:s:w:DFI:M:m:O:P:rST:tV:W:X:x:Zb",
    long: &[],
    help: USAGE,
    misuse: 1,
};

#[derive(Default)]
struct Options {
    four: bool,
    six: bool,
    crlf: bool,
    detached: bool,
    keep: bool,
    listen: bool,
    shut: bool,
    numeric: bool,
    udp: bool,
    unix: bool,
    verbose: bool,
    zero: bool,
    interval: Option<Duration>,
    port: Option<Vec<u8>>,
    source: Option<Vec<u8>>,
    quit: Option<Duration>,
    timeout: Option<Duration>,
}

fn say(message: impl std::fmt::Display) {
    toolkit::complain("nc", message);
}

fn put(text: &str) {
    let _ = abi::write_all(2, text.as_bytes());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn main(arguments: toolkit::Arguments) -> i32 {
    let parsed = match TOOL.try_parse(toolkit::args::bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(Refusal::Wrong(message)) => {
            say(message);
            put(USAGE);
            return 1;
        }
        Err(other) => return TOOL.answer(other),
    };
    let mut options = Options::default();
    for (letter, value) in parsed.options {
        if let Err(code) = options.set(letter, value.unwrap_or_default()) {
            return code;
        }
    }
    let operands: Vec<String> = parsed.operands.iter().map(|word| text(word)).collect();
    match run(&options, &operands) {
        Ok(code) => code,
        Err(message) => {
            say(message);
            1
        }
    }
}

impl Options {
    fn set(&mut self, letter: char, value: Vec<u8>) -> Result<(), i32> {
        let seconds = |what: &str| {
            let number = text(&value).parse::<i64>().ok();
            number.ok_or_else(|| {
                say(format_args!("{what} invalid: {}", text(&value)));
                1
            })
        };
        let duration = |seconds: i64| u64::try_from(seconds).ok().map(Duration::from_secs);
        match letter {
            '4' => self.four = true,
            '6' => self.six = true,
            'C' => self.crlf = true,
            'd' => self.detached = true,
            'k' => self.keep = true,
            'l' => self.listen = true,
            'N' => self.shut = true,
            'n' => self.numeric = true,
            'u' => self.udp = true,
            'U' => self.unix = true,
            'v' => self.verbose = true,
            'z' => self.zero = true,
            'i' => self.interval = duration(seconds("interval")?),
            'p' => self.port = Some(value),
            's' => self.source = Some(value),
            'q' => self.quit = duration(seconds("quit timer")?),
            'w' => self.timeout = duration(seconds("timeout")?),
            'h' => {
                put(USAGE);
                return Err(0);
            }
            letter if REFUSED.contains(letter) => {
                say(format_args!("option -{letter} is not available in this sandbox"));
                return Err(1);
            }
            _ => return Err(1),
        }
        Ok(())
    }
}

/// The ports of `80`, `http` or `20-25`.
fn ports(word: &str) -> Result<Vec<u16>, String> {
    let one = |word: &str| match word.parse::<u64>() {
        Ok(0) => Err(format!("port number too small: {word}")),
        Ok(number) => u16::try_from(number).map_err(|_| format!("port number too large: {word}")),
        Err(_) => super::services::port(word).ok_or(format!("port number invalid: {word}")),
    };
    match word.split_once('-').filter(|(from, _)| from.bytes().all(|byte| byte.is_ascii_digit())) {
        Some((from, to)) => {
            let (from, to) = (one(from)?, one(to)?);
            Ok((from.min(to)..=from.max(to)).collect())
        }
        None => Ok(vec![one(word)?]),
    }
}

fn run(options: &Options, operands: &[String]) -> Result<i32, String> {
    if options.unix {
        return match (operands, options.udp) {
            (_, true) => Err("datagrams over Unix sockets are not available in this sandbox".to_owned()),
            ([path], _) => unix(options, path),
            _ => usage(),
        };
    }
    if options.listen {
        let own = options.port.as_deref().map(text);
        return match (operands, own) {
            ([], Some(port)) => listen(options, None, &port),
            ([host], Some(port)) => listen(options, Some(host), &port),
            ([port], None) => listen(options, None, port),
            ([host, port], None) => listen(options, Some(host), port),
            ([], None) => Err("missing port number".to_owned()),
            _ => usage(),
        };
    }
    match operands {
        [host, port] => connect(options, host, port),
        [_] => Err("missing port number".to_owned()),
        _ => usage(),
    }
}

fn usage() -> Result<i32, String> {
    put(USAGE);
    Ok(1)
}

fn addresses(options: &Options, host: &str, port: &str) -> Result<Vec<IpAddr>, String> {
    let failed = |why: &str| format!("getaddrinfo for host \"{host}\" port {port}: {why}");
    let found = match options.numeric {
        true => host.parse::<IpAddr>().map(|address| vec![address]).map_err(|_| wire::UNKNOWN_NAME),
        false => wire::resolve(host),
    };
    let found = found.map_err(failed)?;
    let fits = |address: &IpAddr| !(options.four && address.is_ipv6() || options.six && address.is_ipv4());
    let found: Vec<IpAddr> = found.into_iter().filter(fits).collect();
    if found.is_empty() { Err(failed(wire::UNKNOWN_NAME)) } else { Ok(found) }
}

fn connect(options: &Options, host: &str, port_word: &str) -> Result<i32, String> {
    if options.source.is_some() || options.port.is_some() {
        return Err("-p and -s work only with -l in this sandbox".to_owned());
    }
    let mut code = 1;
    for port in ports(port_word)? {
        for address in addresses(options, host, port_word)? {
            let target = SocketAddr::new(address, port);
            let kind = if options.udp { "udp" } else { "tcp" };
            let opened = match options.udp {
                true => datagram(&target).map(Pipe::Datagram),
                false => Stream::connect(&target, options.timeout).map(Pipe::Tcp),
            };
            match opened {
                Err(errno) => {
                    if options.verbose {
                        let errno = if errno == abi::Errno::TIMEDOUT {
                            "Operation timed out".to_owned()
                        } else {
                            errno.to_string()
                        };
                        say(format_args!("connect to {host} port {port} ({kind}) failed: {errno}"));
                    }
                    continue;
                }
                Ok(mut pipe) => {
                    code = 0;
                    if options.verbose {
                        let service = super::services::name(port, kind).unwrap_or("*".to_owned());
                        put(&format!("Connection to {host} {port} port [{kind}/{service}] succeeded!\n"));
                    }
                    if !options.zero {
                        pump(options, &mut pipe)?;
                    }
                }
            }
            break;
        }
        if let Some(interval) = options.interval {
            crate::http::wire::pause(interval);
        }
    }
    Ok(code)
}

fn datagram(target: &SocketAddr) -> abi::Result<Datagram> {
    let any: IpAddr =
        if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = Datagram::bind(&SocketAddr::new(any, 0))?;
    socket.connect(target)?;
    Ok(socket)
}

fn listen(options: &Options, host: Option<&str>, port_word: &str) -> Result<i32, String> {
    let port = match port_word {
        "0" => 0,
        word => *ports(word)?.first().ok_or("missing port number")?,
    };
    let host = options.source.as_deref().map(text).or(host.map(str::to_owned));
    let address = match &host {
        Some(host) => *addresses(options, host, port_word)?.first().ok_or("missing address")?,
        None if options.six => Ipv6Addr::UNSPECIFIED.into(),
        None => Ipv4Addr::UNSPECIFIED.into(),
    };
    let place = SocketAddr::new(address, port);
    if options.udp {
        return listen_udp(options, &place);
    }
    let listener = Listener::bind(&place).map_err(|errno| errno.to_string())?;
    let bound = listener.local_addr().map_err(|errno| errno.to_string())?;
    if options.verbose {
        put(&format!("Listening on {} {}\n", bound.ip(), bound.port()));
    }
    loop {
        let (stream, peer) = listener.accept().map_err(|errno| format!("accept: {errno}"))?;
        if options.verbose {
            let name = match peer.ip().is_loopback() && !options.numeric {
                true => "localhost".to_owned(),
                false => peer.ip().to_string(),
            };
            put(&format!("Connection received on {name} {}\n", peer.port()));
        }
        pump(options, &mut Pipe::Tcp(stream))?;
        if !options.keep {
            return Ok(0);
        }
    }
}

/// The first to send a datagram is the peer.
fn listen_udp(options: &Options, place: &SocketAddr) -> Result<i32, String> {
    let socket = Datagram::bind(place).map_err(|errno| errno.to_string())?;
    if options.verbose {
        put(&format!("Bound on {} {}\n", place.ip(), place.port()));
    }
    let mut buffer = vec![0; 65_536];
    let (count, peer) = socket.recv_from(&mut buffer).map_err(|errno| errno.to_string())?;
    if options.verbose {
        put(&format!("Connection received on {} {}\n", peer.ip(), peer.port()));
    }
    abi::write_all(1, &buffer[..count]).map_err(|errno| errno.to_string())?;
    socket.connect(&peer).map_err(|errno| errno.to_string())?;
    pump(options, &mut Pipe::Datagram(socket))?;
    Ok(0)
}

fn unix(options: &Options, path: &str) -> Result<i32, String> {
    if !options.listen {
        let stream = UnixStream::connect(path.as_bytes()).map_err(|errno| format!("{path}: {errno}"))?;
        if !options.zero {
            pump(options, &mut Pipe::Unix(stream))?;
        }
        return Ok(0);
    }
    let listener = UnixListener::bind(path.as_bytes()).map_err(|errno| format!("{path}: {errno}"))?;
    if options.verbose {
        put(&format!("Bound on {path}\nListening on {path}\n"));
    }
    loop {
        let stream = listener.accept().map_err(|errno| format!("accept: {errno}"))?;
        if options.verbose {
            put(&format!("Connection received on {path}\n"));
        }
        pump(options, &mut Pipe::Unix(stream))?;
        if !options.keep {
            return Ok(0);
        }
    }
}

/// An open socket.
enum Pipe {
    Tcp(Stream),
    Unix(UnixStream),
    Datagram(Datagram),
}

impl Pipe {
    fn fd(&self) -> abi::Fd {
        match self {
            Pipe::Tcp(stream) => stream.fd(),
            Pipe::Unix(stream) => stream.fd(),
            Pipe::Datagram(socket) => socket.fd(),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> abi::Result<usize> {
        match self {
            Pipe::Tcp(stream) => Ok(stream.read(buffer)?),
            Pipe::Unix(stream) => Ok(stream.read(buffer)?),
            Pipe::Datagram(socket) => socket.recv_from(buffer).map(|(count, _)| count),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> abi::Result<()> {
        match self {
            Pipe::Tcp(stream) => Ok(stream.write_all(bytes)?),
            Pipe::Unix(stream) => Ok(stream.write_all(bytes)?),
            Pipe::Datagram(socket) => abi::write_all(socket.fd(), bytes),
        }
    }

    fn shut(&self) {
        // A peer that is gone needs no goodbye.
        match self {
            Pipe::Tcp(stream) => drop(stream.shutdown(How::Write)),
            Pipe::Unix(stream) => drop(stream.shutdown(How::Write)),
            Pipe::Datagram(_) => {}
        }
    }
}

/// How long one side is waited for before the other is looked at.
const GLANCE: Duration = Duration::from_millis(10);

/// Moves bytes both ways until the socket ends, or as the options say.
fn pump(options: &Options, pipe: &mut Pipe) -> Result<(), String> {
    let mut input = !options.detached;
    let mut buffer = vec![0; 16 * 1024];
    let mut last = Instant::now();
    let mut ends = None;
    loop {
        if input && abi::poll_read(0, Some(Duration::ZERO)).unwrap_or(true) {
            let count = abi::read(0, &mut buffer).unwrap_or(0);
            last = Instant::now();
            if count == 0 {
                input = false;
                if options.shut {
                    pipe.shut();
                }
                ends = options.quit.map(|time| Instant::now() + time);
            } else if pipe.write(&converted(options, &buffer[..count])).is_err() {
                return Ok(());
            } else if let Some(interval) = options.interval {
                crate::http::wire::pause(interval);
            }
        }
        let limits = [options.timeout.map(|time| last + time), ends];
        let until = limits.into_iter().flatten().min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let wait = if input { Some(left.map_or(GLANCE, |left| left.min(GLANCE))) } else { left };
        match abi::poll_read(pipe.fd(), wait) {
            Ok(true) => {
                last = Instant::now();
                match pipe.read(&mut buffer) {
                    Ok(0) if !matches!(pipe, Pipe::Datagram(_)) => return Ok(()),
                    Ok(count) => abi::write_all(1, &buffer[..count]).map_err(|errno| errno.to_string())?,
                    Err(abi::Errno::INTR) => {}
                    Err(_) => return Ok(()),
                }
            }
            Ok(false) if left.is_some_and(|left| left.is_zero()) => return Ok(()),
            Ok(false) | Err(abi::Errno::INTR) => {}
            Err(errno) => return Err(format!("poll: {errno}")),
        }
    }
}

fn converted(options: &Options, bytes: &[u8]) -> Vec<u8> {
    if !options.crlf {
        return bytes.to_vec();
    }
    let mut text = Vec::with_capacity(bytes.len() + 16);
    for (at, &byte) in bytes.iter().enumerate() {
        if byte == b'\n' && (at == 0 || bytes[at - 1] != b'\r') {
            text.push(b'\r');
        }
        text.push(byte);
    }
    text
}
