//! A small web server for the recorded cases, for the real programs and for Wardian's.
//!
//! `web serve PORTFILE LOG` listens on a free port of 127.0.0.1 and logs every request; `web shell` prints the functions
//! that a case evaluates first; `web free` prints a free port. A path says what the server does: see [`answer`].

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;
use wardian_abi::net::{Listener, Stream};

mod pages;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["shell"] => std::io::stdout().write_all(include_bytes!("shell.sh")),
        ["free"] => listen().map(|(_, port)| println!("{port}")),
        ["serve", port_file, log] => serve(port_file, log),
        _ => {
            eprintln!("usage: web serve PORTFILE LOG | web shell | web free");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("web: {error}");
            ExitCode::FAILURE
        }
    }
}

fn listen() -> std::io::Result<(Listener, u16)> {
    let listener = Listener::bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

fn serve(port_file: &str, log: &str) -> std::io::Result<()> {
    let (listener, port) = listen()?;
    std::fs::write(log, "")?;
    let temporary = format!("{port_file}.new");
    std::fs::write(&temporary, format!("{port}\n"))?;
    std::fs::rename(temporary, port_file)?;
    loop {
        let (stream, _) = listener.accept()?;
        let log = log.to_owned();
        let run = move || drop(connection(stream, &log, port));
        // A sandbox has no threads: there each connection has a process.
        if cfg!(target_os = "wasi") {
            wardian_abi::fork(move || {
                run();
                0
            })?;
            reap();
        } else {
            std::thread::spawn(run);
        }
    }
}

/// Forgets the connections that have ended.
fn reap() {
    let flags = wardian_abi::WaitFlags { no_hang: true, ..Default::default() };
    while let Ok(Some(_)) = wardian_abi::wait(wardian_abi::Who::Any, flags) {}
}

/// A request as it came.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Bytes of a connection that were read and not used yet.
struct Source {
    stream: Stream,
    ahead: Vec<u8>,
}

impl Source {
    fn more(&mut self) -> std::io::Result<()> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer)? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => {
                self.ahead.extend_from_slice(&buffer[..n]);
                Ok(())
            }
        }
    }

    fn line(&mut self) -> std::io::Result<String> {
        loop {
            if let Some(end) = self.ahead.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.ahead.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned());
            }
            self.more()?;
        }
    }

    fn exactly(&mut self, count: usize) -> std::io::Result<Vec<u8>> {
        while self.ahead.len() < count {
            self.more()?;
        }
        Ok(self.ahead.drain(..count).collect())
    }
}

/// Serves requests until the client or a page ends the connection.
fn connection(stream: Stream, log: &str, port: u16) -> std::io::Result<()> {
    let mut source = Source { stream, ahead: Vec::new() };
    loop {
        let first = source.line()?;
        let mut lines = vec![first.clone()];
        let mut headers = Vec::new();
        loop {
            let line = source.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            headers.push((name.to_owned(), value.trim().to_owned()));
            lines.push(line);
        }
        let mut words = first.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut request =
            Request { method: method.to_owned(), target: target.to_owned(), headers, body: Vec::new() };
        if request.header("Expect").is_some() && target != "/no-continue" {
            source.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        request.body = read_body(&mut source, &request)?;
        note(log, &lines, &request.body)?;
        let reply = pages::answer(&request, port, log);
        source.stream.write_all(&reply.bytes)?;
        match reply.then {
            pages::Then::Keep if request.header("Connection") != Some("close") => {}
            pages::Then::Keep | pages::Then::Close => return Ok(()),
            pages::Then::Hang => {
                // Until the client gives up.
                let mut rest = [0; 1024];
                while source.stream.read(&mut rest)? > 0 {}
                return Ok(());
            }
            pages::Then::Repeat(bytes) => loop {
                source.stream.write_all(bytes)?;
            },
        }
    }
}

fn read_body(source: &mut Source, request: &Request) -> std::io::Result<Vec<u8>> {
    if request.header("Transfer-Encoding").is_some() {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(source.line()?.trim(), 16).unwrap_or(0);
            body.extend(source.exactly(size)?);
            source.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    let length = request.header("Content-Length").and_then(|text| text.parse().ok()).unwrap_or(0);
    source.exactly(length)
}

/// Appends a request to the log, in one write. A long body is only counted.
fn note(log: &str, lines: &[String], body: &[u8]) -> std::io::Result<()> {
    let mut text: Vec<u8> = Vec::new();
    for line in lines {
        text.extend_from_slice(format!("> {line}\n").as_bytes());
    }
    if body.len() > 2000 {
        text.extend_from_slice(format!(">> {} bytes\n", body.len()).as_bytes());
    } else if !body.is_empty() {
        text.extend_from_slice(body);
        text.extend_from_slice(b"<end>\n");
    }
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(log)?;
    file.write_all(&text)
}

/// Waits, for pages that are slow.
pub fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}
