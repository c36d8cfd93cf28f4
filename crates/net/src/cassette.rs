//! Requests and responses in a file, so that an agent's run can be repeated without a network.
//!
//! A line is a JSON object. An exchange is a line with the request and the head of its response, lines with parts of the body,
//! and a line that ends it. One that was not ended, because the program was, is ignored; half a line at the end is removed
//! when the file is continued.
//!
//! ```text
//! {"id":1,"method":"GET","url":"https://x.com/a","status":200,"reason":"OK","headers":[["content-type","text/plain"]]}
//! {"id":1,"body":"aGVsbG8="}
//! {"id":1,"end":{"request":"e3b0c44…","trailers":[]}}
//! ```
//!
//! Requests are recorded as the guest sent them and responses as it got them: there are no secrets in the file.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::policy::NetworkPolicy;
use crate::rules::PolicyError;

/// Most bytes of a body in one line.
const PART: usize = 64 << 10;

/// Most bytes of a line.
const LINE: usize = 1 << 20;

/// A cassette, to be recorded or replayed.
pub(crate) enum Cassette {
    Record(Arc<Mutex<Tape>>),
    Replay { file: Arc<Mutex<File>>, exchanges: Mutex<Exchanges> },
}

/// The end of a file that is being written.
pub(crate) struct Tape {
    file: File,
    next: u64,
}

/// Exchanges by request, in the order in which they were recorded.
type Exchanges = HashMap<String, VecDeque<Exchange>>;

/// Where an exchange is in the file: its lines, by position and length.
#[derive(Clone, Default)]
pub(crate) struct Exchange {
    lines: Vec<(u64, usize)>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: u64,
    #[serde(flatten)]
    head: Option<Head>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<End>,
}

/// The head of a response, and the request it is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) headers: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct End {
    /// The SHA-256 of the request's body.
    request: String,
    trailers: Vec<(String, String)>,
}

fn key(method: &str, url: &str, digest: &str) -> String {
    format!("{method} {url} {digest}")
}

impl Cassette {
    pub(crate) fn open(policy: &NetworkPolicy) -> Result<Option<Cassette>, PolicyError> {
        let wrong = |field, path: &Path, error: io::Error| {
            PolicyError::new(field, format!("{}: {error}", path.display()))
        };
        if let Some(path) = &policy.record {
            let tape = Tape::open(path).map_err(|error| wrong("record", path, error))?;
            return Ok(Some(Cassette::Record(Arc::new(Mutex::new(tape)))));
        }
        let Some(path) = &policy.replay else { return Ok(None) };
        let file = File::open(path).map_err(|error| wrong("replay", path, error))?;
        let (exchanges, ..) = index(&file).map_err(|error| wrong("replay", path, error))?;
        Ok(Some(Cassette::Replay { file: Arc::new(Mutex::new(file)), exchanges: Mutex::new(exchanges) }))
    }

    /// Returns the cassette of a fork, which replays what is left on its own.
    pub(crate) fn fork(&self) -> Cassette {
        match self {
            Cassette::Record(tape) => Cassette::Record(tape.clone()),
            Cassette::Replay { file, exchanges } => {
                Cassette::Replay { file: file.clone(), exchanges: Mutex::new(exchanges.lock().clone()) }
            }
        }
    }

    pub(crate) fn replays(&self) -> bool {
        matches!(self, Cassette::Replay { .. })
    }

    /// Starts to record an exchange; `None` in a replay.
    pub(crate) fn record(&self, head: Head) -> io::Result<Option<Recording>> {
        let Cassette::Record(tape) = self else { return Ok(None) };
        let id = {
            let mut tape = tape.lock();
            tape.next += 1;
            tape.next
        };
        let recording = Recording { tape: tape.clone(), id };
        recording.write(Line { head: Some(head), ..Line::default() })?;
        Ok(Some(recording))
    }

    /// Takes the next response to a request off the tape.
    pub(crate) fn replay(&self, method: &str, url: &str, digest: &str) -> Option<Replay> {
        let Cassette::Replay { file, exchanges } = self else { return None };
        let exchange = exchanges.lock().get_mut(&key(method, url, digest))?.pop_front()?;
        Some(Replay { file: file.clone(), lines: exchange.lines.into() })
    }
}

impl Tape {
    fn open(path: &Path) -> io::Result<Tape> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        file.try_lock().map_err(|_| io::Error::other("another program records to it"))?;
        let (_, next, whole) = index(&file)?;
        file.set_len(whole)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Tape { file, next })
    }
}

/// An exchange that is being recorded.
pub(crate) struct Recording {
    tape: Arc<Mutex<Tape>>,
    id: u64,
}

impl Recording {
    fn write(&self, line: Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(&Line { id: self.id, ..line })?;
        text.push(b'\n');
        // One write for a line: other exchanges go on in between.
        self.tape.lock().file.write_all(&text)
    }

    pub(crate) fn body(&self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(PART) {
            self.write(Line { body: Some(STANDARD.encode(part)), ..Line::default() })?;
        }
        Ok(())
    }

    pub(crate) fn end(self, digest: String, trailers: &HeaderMap) -> io::Result<()> {
        self.write(Line {
            end: Some(End { request: digest, trailers: to_texts(trailers) }),
            ..Line::default()
        })
    }
}

/// A response from the tape.
pub(crate) struct Replay {
    file: Arc<Mutex<File>>,
    lines: VecDeque<(u64, usize)>,
}

/// A part of it.
pub(crate) enum Part {
    Head(Head),
    Body(Vec<u8>),
    End(HeaderMap),
}

impl Replay {
    /// Returns the next part.
    pub(crate) fn next(&mut self) -> io::Result<Part> {
        let (at, length) = self.lines.pop_front().ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut text = vec![0; length];
        {
            let mut file = self.file.lock();
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut text)?;
        }
        match serde_json::from_slice(&text)? {
            Line { head: Some(head), .. } => Ok(Part::Head(head)),
            Line { body: Some(body), .. } => STANDARD.decode(body).map(Part::Body).map_err(io::Error::other),
            Line { end: Some(end), .. } => Ok(Part::End(to_headers(&end.trailers))),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Reads a whole file: its exchanges, the highest id, and how many bytes are whole lines.
fn index(file: &File) -> io::Result<(Exchanges, u64, u64)> {
    let mut reader = BufReader::new(file);
    let (mut exchanges, mut open) = (Exchanges::new(), HashMap::<u64, (Head, Exchange)>::new());
    let (mut at, mut last) = (0u64, 0u64);
    let mut text = Vec::new();
    loop {
        text.clear();
        let length = (&mut reader).take(LINE as u64 + 1).read_until(b'\n', &mut text)?;
        if length > LINE {
            return Err(io::Error::other("not a cassette: a line is too long"));
        }
        if !text.ends_with(b"\n") {
            return Ok((exchanges, last, at));
        }
        let line: Line = serde_json::from_slice(&text)
            .map_err(|error| io::Error::other(format!("not a cassette: {error}")))?;
        last = last.max(line.id);
        if let Some(head) = line.head {
            open.insert(line.id, (head, Exchange::default()));
        }
        if let Some((_, exchange)) = open.get_mut(&line.id) {
            exchange.lines.push((at, length));
        }
        if let Some(end) = line.end
            && let Some((head, exchange)) = open.remove(&line.id)
        {
            exchanges.entry(key(&head.method, &head.url, &end.request)).or_default().push_back(exchange);
        }
        at += length as u64;
    }
}

/// Writes headers byte by byte as Latin-1: not all of them are UTF-8.
pub(crate) fn to_texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| value.as_bytes().iter().map(|byte| char::from(*byte)).collect();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

pub(crate) fn to_headers(texts: &[(String, String)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in texts {
        let bytes: Option<Vec<u8>> = value.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let value = bytes.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
        if let (Ok(name), Some(value)) = (HeaderName::from_bytes(name.as_bytes()), value) {
            headers.append(name, value);
        }
    }
    headers
}
