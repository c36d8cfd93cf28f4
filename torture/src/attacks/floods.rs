//! Too much of everything on the wire.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::{Attacker, unharmed};

/// Lines that are no requests, some of them long.
pub(super) fn lines(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    client.line(&vec![b'x'; 9 << 20])?;
    client.line("[".repeat(200_000).as_bytes())?;
    client.line(
        format!("{{\"id\":\"a\",\"method\":\"run\",\"params\":{{\"command\":\"{}\"}}}}", "y".repeat(100_000))
            .as_bytes(),
    )?;
    for _ in 0..500 {
        let length = attacker.dice.below(300);
        let line: Vec<u8> =
            (0..length).map(|_| attacker.dice.next() as u8).filter(|&byte| byte != b'\n').collect();
        client.line(&line)?;
    }
    unharmed(client, attacker.socket)
}

/// Thousands of requests at once.
pub(super) fn requests(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    for number in 0..3_000 {
        match number % 3 {
            0 => client.send("run", json!({ "command": ":" }))?,
            1 => client.send("files.stat", json!({ "path": "/tmp" }))?,
            _ => client.send("no.such.method", json!({}))?,
        };
    }
    unharmed(client, attacker.socket)
}

/// Connections that say nothing, or half of something.
pub(super) fn connections(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut open = Vec::new();
    for _ in 0..150 {
        let mut stream = UnixStream::connect(attacker.socket)?;
        if attacker.dice.once_in(2) {
            stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"cre")?;
        }
        open.push(stream);
    }
    std::thread::sleep(Duration::from_millis(300));
    Ok(Vec::new())
}

/// A client that never reads what it asks for.
pub(super) fn deaf(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut stream = UnixStream::connect(attacker.socket)?;
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    let create = json!({ "id": 0, "method": "create", "params": super::limits() });
    writeln!(stream, "{create}")?;
    for id in 1..2_000 {
        let run = json!({ "id": id, "method": "run", "params": { "command": "yes", "stream": true } });
        if writeln!(stream, "{run}").is_err() {
            break;
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    Ok(Vec::new())
}
