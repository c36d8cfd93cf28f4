//! TLS, which the gateway speaks: a record asks for it, a record answers, and plain bytes follow.

use super::wire::Wire;
use super::{Error, Result};

/// The first bytes of a record.
const MARK: &[u8; 6] = b"\0WTLS\x01";

/// The longest record.
const LONGEST: usize = 65_536;

/// What was agreed with the server.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct Agreed {
    pub version: String,
    pub cipher: String,
    pub alpn: Option<String>,
    /// The certificates of the server in DER and base64, its own first.
    pub certificates: Vec<String>,
}

/// Why there is no TLS.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// The connection failed.
    Wire(Error),
    /// What answered is not a gateway.
    NoGateway,
    /// The gateway says no: its code and message.
    Answer(String, String),
}

/// Asks for TLS and reads the answer.
pub fn start(
    wire: &mut Wire,
    server_name: &str,
    verify: bool,
    alpn: bool,
) -> std::result::Result<(), Refused> {
    let mut text = format!("server-name {server_name}\n");
    if !verify {
        text += "verify no\n";
    }
    if alpn {
        text += "alpn http/1.1\n";
    }
    if server_name.contains(['\n', ' ']) || text.len() > LONGEST {
        return Err(Refused::Answer("bad-request".to_owned(), "invalid server name".to_owned()));
    }
    let mut record = MARK.to_vec();
    record.extend_from_slice(&(text.len() as u32).to_be_bytes());
    record.extend_from_slice(text.as_bytes());
    wire.send(&record).map_err(Refused::Wire)?;
    let answer = read(wire).map_err(Refused::Wire)?.ok_or(Refused::NoGateway)?;
    wire.tls = Some(understand(&answer)?);
    Ok(())
}

/// Reads a record; `None` if it is something else.
fn read(wire: &mut Wire) -> Result<Option<String>> {
    let head = wire.read_exact(MARK.len() + 4)?;
    let (mark, length) = head.split_at(MARK.len());
    let length = length.iter().fold(0_usize, |sum, &byte| sum << 8 | usize::from(byte));
    if mark != MARK || length > LONGEST {
        return Ok(None);
    }
    Ok(String::from_utf8(wire.read_exact(length)?).ok())
}

fn understand(answer: &str) -> std::result::Result<Agreed, Refused> {
    let mut lines = answer.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
    match lines.next() {
        Some(("ok", _)) => {
            let mut agreed = Agreed::default();
            for (key, value) in lines {
                match key {
                    "version" => agreed.version = value.to_owned(),
                    "cipher" => agreed.cipher = value.to_owned(),
                    "alpn" => agreed.alpn = Some(value.to_owned()),
                    "certificate" => agreed.certificates.push(value.to_owned()),
                    _ => {}
                }
            }
            Ok(agreed)
        }
        Some(("error", code)) => {
            let message = lines.find(|(key, _)| *key == "message").map_or("", |(_, value)| value);
            Err(Refused::Answer(code.to_owned(), message.to_owned()))
        }
        _ => Err(Refused::NoGateway),
    }
}
