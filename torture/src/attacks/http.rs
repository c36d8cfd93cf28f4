//! REST, WebSockets and MCP, by clients that begin much and finish little.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::Attacker;
use super::e2b::{answer, connect};
use crate::dice::Dice;

/// How many sandboxes such an attacker has, counting what its requests may hold as some of them.
pub(super) const MOST: usize = 6;
/// Those of language models have the usual limits, which are larger; what they hold here is their answers and snapshots.
pub(super) const MOST_OF_MODELS: usize = 4;

/// Commands that say much, for long, or nothing.
const COMMANDS: &[&str] =
    &["yes", "sleep 1000", "while :; do :; done", "cat", "head -c 3000000 /dev/zero", "node -e 'for(;;);'"];

/// Bodies that are nested, endless, or of many values; names that lead nowhere; streams that nobody reads.
pub(super) fn rest(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let (http, dice) = (attacker.http, &mut attacker.dice);
    let mut options = super::limits();
    options["lifetimeMs"] = json!(20_000);
    let made = request(http, "POST", "/v1/sandboxes", "", options.to_string().as_bytes())?;
    let (status, made) = answer(made)?;
    ensure!(status == 201, "a sandbox is not created: {status} {made}");
    let made: Value = serde_json::from_str(&made)?;
    let path = format!("/v1/sandboxes/{}", made["sandboxId"].as_str().context("it has an id")?);
    let mut open = Vec::new();
    let mut wrong = Vec::new();
    for _ in 0..40 {
        let events = "Accept: text/event-stream\r\n";
        let command = json!({ "command": dice.pick(COMMANDS), "timeoutMs": 3000 }).to_string();
        open.push(match dice.below(10) {
            0 => request(http, "POST", &format!("{path}/run"), events, command.as_bytes())?,
            1 => request(http, "POST", &format!("{path}/run"), "", command.as_bytes())?,
            2 => {
                let command = json!({ "command": dice.pick(COMMANDS) }).to_string();
                request(http, "POST", &format!("{path}/processes"), events, command.as_bytes())?
            }
            3 => {
                let id = dice.below(6);
                request(http, "GET", &format!("{path}/processes/{id}/output"), "", b"")?
            }
            4 => {
                let fork = json!({ "count": *dice.pick(&[1, 2, u64::MAX]) }).to_string();
                request(http, "POST", &format!("{path}/forks"), "", fork.as_bytes())?
            }
            5 => {
                let nested = [&b"{\"command\":"[..], &vec![b'['; 200_000]].concat();
                request(http, "POST", &format!("{path}/run"), "", &nested)?
            }
            6 => {
                let values =
                    format!("{{\"command\":\"\",\"env\":{{{}\"x\":1}}}}", "\"a\":\"b\",".repeat(300_000));
                request(http, "POST", &format!("{path}/run"), "", values.as_bytes())?
            }
            7 => {
                let name = *dice.pick(&["%00", "..%2f..", "s0.1", "\u{fc}", "%ff%fe", "1e9"]);
                request(http, "GET", &format!("/v1/sandboxes/{name}/files?path=%2f&path=x"), "", b"")?
            }
            8 => unfinished(http, &format!("{path}/run"), 8 << 20)?,
            _ => {
                let file = json!({ "path": "/tmp/f", "data": "QUJD".repeat(400_000) }).to_string();
                request(http, "PUT", &format!("{path}/files/content"), "", file.as_bytes())?
            }
        });
        if dice.once_in(3) {
            open.remove(dice.below(open.len()));
        }
    }
    let (status, told) = answer(request(http, "GET", &format!("{path}/usage"), "", b"")?)?;
    if status != 200 {
        wrong.push(format!("beside its own bad manners it is answered {status}: {told}"));
    }
    let gone = request(http, "DELETE", &path, "", b"")?;
    drop(open);
    let (status, told) = answer(gone)?;
    if status != 200 {
        wrong.push(format!("it is not destroyed: {status}: {told}"));
    }
    Ok(wrong)
}

/// Frames of every kind, whole and in pieces, pings without end, answers that nobody reads, and a connection that breaks.
pub(super) fn websocket(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let dice = &mut attacker.dice;
    let mut stream = connect(attacker.http)?;
    stream.write_all(
        b"GET /rpc HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
          Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    ensure!(&head == b"HTTP/1.1 101", "no WebSocket: {}", String::from_utf8_lossy(&head));
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    let create = json!({ "id": 0, "method": "create", "params": super::limits() });
    stream.write_all(&frame(0x81, create.to_string().as_bytes()))?;
    for id in 1..10 + dice.below(200) {
        let bytes = match dice.below(9) {
            0..=2 => {
                let run = json!({ "id": id, "method": "run", "params": { "command": dice.pick(COMMANDS), "stream": true } });
                frame(0x81, run.to_string().as_bytes())
            }
            3 => frame(0x89, &[b'p'; 125]).repeat(500),
            4 => [frame(0x01, b"{\"id\":"), frame(0x00, b"").repeat(2000), frame(0x80, b"1}")].concat(),
            5 => frame(0x81, b"").repeat(2000),
            6 => frame(0x81, &vec![b'['; 100_000]),
            7 => frame(0x81, json!({ "id": id, "method": "cancel" }).to_string().as_bytes()),
            _ if dice.once_in(8) => vec![dice.below(256) as u8; 14],
            _ => frame(0x8a, b"nobody asked"),
        };
        // It may have been closed for what came before, or wait for somebody to read.
        if stream.write_all(&bytes).is_err() {
            break;
        }
    }
    // It goes without a word, in the middle of what it asked for.
    std::thread::sleep(Duration::from_millis(300));
    Ok(Vec::new())
}

/// Sessions of both kinds, answers that nobody reads, snapshots without end.
pub(super) fn mcp(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let (http, dice) = (attacker.http, &mut attacker.dice);
    let mut sessions = Vec::new();
    for _ in 0..2 {
        sessions.push(begin_session(http, dice.pick::<&str>(&["2025-06-18", "2026-07-28"]))?);
    }
    for session in &sessions {
        use_session(http, session, dice)?;
    }
    for session in &sessions {
        let head = format!("Mcp-Session-Id: {session}\r\n");
        let (status, told) = answer(request(http, "DELETE", "/mcp", &head, b"")?)?;
        ensure!(status < 500, "a session does not end: {status} {told}");
    }
    Ok(Vec::new())
}

fn begin_session(http: SocketAddr, version: &str) -> Result<String> {
    let client = json!({ "name": "torture", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let mut stream = call(http, &format!("Mcp-Protocol-Version: {version}\r\n"), &message)?;
    let mut begun = String::new();
    stream.read_to_string(&mut begun)?;
    let id = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let id = id.with_context(|| format!("no session: {}", begun.lines().next().unwrap_or_default()))?;
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    answer(call(http, &format!("Mcp-Session-Id: {id}\r\n"), &initialized)?)?;
    Ok(id.to_owned())
}

fn use_session(http: SocketAddr, session: &str, dice: &mut Dice) -> Result<()> {
    let head = format!("Mcp-Session-Id: {session}\r\n");
    let tool = |id: u64, name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": id } });
        call(http, &head, &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
    };
    // A text of which JSON takes six times as much.
    let write =
        json!({ "command": "head -c 1000000 /dev/zero | tr '\\0' '\\1' > /tmp/f; echo $RANDOM > /tmp/g" });
    answer(tool(2, "run_command", write)?)?;
    let read = |id: u64| {
        let params = json!({ "uri": "wardian://main/tmp/f" });
        call(
            http,
            &head,
            &json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params }),
        )
    };
    // What is read of an answer is read at once, and of others nothing.
    let mut unread = Vec::new();
    for id in 3..30 {
        match dice.below(6) {
            0..=2 => drop(answer(read(id)?)?),
            3 => unread.push(read(id)?),
            4 => drop(answer(tool(id, "snapshot", json!({}))?)?),
            _ => {
                let command = json!({ "command": dice.pick(COMMANDS), "timeout_seconds": 1 });
                unread.push(tool(id, "run_command", command)?);
            }
        }
    }
    Ok(())
}

fn call(http: SocketAddr, more: &str, message: &Value) -> Result<TcpStream> {
    let more = format!("Accept: application/json, text/event-stream\r\n{more}");
    request(http, "POST", "/mcp", &more, message.to_string().as_bytes())
}

/// Sends a request, as much of it as is taken at once.
fn request(http: SocketAddr, verb: &str, path: &str, more: &str, body: &[u8]) -> Result<TcpStream> {
    let mut stream = connect(http)?;
    let length = body.len();
    write!(
        stream,
        "{verb} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{more}\r\n"
    )?;
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    // It may be refused before all of it was read.
    let _ = stream.write_all(body);
    Ok(stream)
}

/// A request of which half never comes.
fn unfinished(http: SocketAddr, path: &str, length: usize) -> Result<TcpStream> {
    let mut stream = connect(http)?;
    write!(stream, "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n")?;
    stream.set_write_timeout(Some(Duration::from_millis(200)))?;
    let _ = stream.write_all(&vec![b' '; length / 2]);
    Ok(stream)
}

/// A frame with a mask that changes nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..=125 => frame.push(0x80 | length as u8),
        length => {
            frame.push(0xff);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}
