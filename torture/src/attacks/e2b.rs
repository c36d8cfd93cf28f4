//! E2B's protocol, by a client that begins much and finishes little.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::Attacker;
use crate::client::PATIENCE;

/// How many sandboxes such an attacker has, counting what its requests may hold as some of them.
pub(super) const MOST: usize = 12;

/// A key, and one of its sandboxes.
struct Guest {
    http: SocketAddr,
    key: String,
    id: String,
    token: String,
}

/// Bodies that drip or are never finished, watchers of a directory that changes, forks, processes; and what is well behaved
/// is still answered.
pub(super) fn without_manners(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let guest = Guest::new(attacker.http, format!("torture-{}", attacker.dice.next()))?;
    let mut open = Vec::new();
    for _ in 0..25 {
        match attacker.dice.below(6) {
            0 => open.push(guest.begin("/files", "multipart/form-data; boundary=x", 60 << 20, b"--x\r\n")?),
            1 => {
                let half = vec![b' '; 2 << 20];
                open.push(guest.begin("/process.Process/List", "application/json", 4 << 20, &half)?);
            }
            2 => open.push(guest.stream("filesystem.Filesystem/WatchDir", &json!({ "path": "/tmp" }))?),
            3 => {
                let command =
                    *attacker.dice.pick(&["sleep 1000", "yes", "for i in {1..500}; do : > /tmp/f$i; done"]);
                let process = json!({ "cmd": "bash", "args": ["-c", command] });
                open.push(guest.stream("process.Process/Start", &json!({ "process": process }))?);
            }
            4 => {
                let values = format!("{{\"path\":\"/tmp\",\"x\":[{}0]}}", "[],".repeat(1 << 20));
                open.push(guest.begin(
                    "/filesystem.Filesystem/Stat",
                    "application/json",
                    values.len(),
                    values.as_bytes(),
                )?);
            }
            _ => {
                let path = format!("/sandboxes/{}/fork", guest.id);
                guest.control("POST", &path, &json!({ "count": 2, "timeout": 60 }))?;
            }
        }
    }
    let mut wrong = Vec::new();
    let stat = json!({ "path": "/tmp" }).to_string();
    let stream =
        guest.begin("/filesystem.Filesystem/Stat", "application/json", stat.len(), stat.as_bytes())?;
    let (status, told) = answer(stream).context("beside its own bad manners")?;
    if status != 200 {
        wrong.push(format!("a request of the same key was answered {status}: {told}"));
    }
    drop(open);
    guest.remove_all()?;
    Ok(wrong)
}

impl Guest {
    fn new(http: SocketAddr, key: String) -> Result<Guest> {
        let mut guest = Guest { http, key, id: String::new(), token: String::new() };
        let made = guest.control("POST", "/sandboxes", &json!({ "templateID": "base", "timeout": 120 }))?;
        guest.id = made["sandboxID"].as_str().context("a sandbox has an id")?.to_owned();
        guest.token = made["envdAccessToken"].as_str().context("a sandbox has a token")?.to_owned();
        Ok(guest)
    }

    /// Sends a request and part of its body.
    fn begin(&self, path: &str, kind: &str, length: usize, part: &[u8]) -> Result<TcpStream> {
        let mut stream = connect(self.http)?;
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nE2b-Sandbox-Id: {}\r\nX-Access-Token: {}\r\n\
             Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n",
            self.id, self.token
        )?;
        // As much as it takes at once: it may have no room for more.
        stream.set_write_timeout(Some(Duration::from_millis(200)))?;
        let _ = stream.write_all(part);
        Ok(stream)
    }

    /// A call that is answered by a stream, of which only the beginning is read.
    fn stream(&self, method: &str, message: &Value) -> Result<TcpStream> {
        let message = message.to_string();
        let length = u32::try_from(message.len())?.to_be_bytes();
        let frame = [&[0][..], &length, message.as_bytes()].concat();
        let mut stream =
            self.begin(&format!("/{method}"), "application/connect+json", frame.len(), &frame)?;
        ensure!(stream.read(&mut [0; 64])? > 0, "{method} is not answered");
        Ok(stream)
    }

    /// Calls the control plane; what it answers.
    fn control(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let mut stream = connect(self.http)?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-API-KEY: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        )?;
        let (status, told) = answer(stream)?;
        ensure!(status < 500, "{method} {path}: {status} {told}");
        Ok(serde_json::from_str(&told).unwrap_or_default())
    }

    fn remove_all(&self) -> Result<()> {
        let all = self.control("GET", "/sandboxes", &json!({}))?;
        for one in all.as_array().into_iter().flatten() {
            let path = format!("/sandboxes/{}", one["sandboxID"].as_str().unwrap_or_default());
            self.control("DELETE", &path, &json!({}))?;
        }
        Ok(())
    }
}

pub(super) fn connect(http: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(http).context("the server does not let a client in")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// The status and the body of the answer.
pub(super) fn answer(mut stream: TcpStream) -> Result<(u16, String)> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).context("no answer")?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
    Ok((status, text.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned())))
}
