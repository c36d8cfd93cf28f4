//! The guest's end of a connection: what was read of it and not used yet, and what is written to it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::head::{BadRequest, head_length};

/// Read at once while a connection waits for a request.
const WAITING: usize = 2 << 10;

/// Most that is read at once while a body comes. It starts small, and doubles while it is filled.
const FLOWING: usize = 256 << 10;

/// Reads from a guest.
pub(crate) struct Reader<R> {
    io: R,
    pub(crate) buffer: BytesMut,
    room: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(io: R) -> Reader<R> {
        Reader { io, buffer: BytesMut::new(), room: WAITING }
    }

    async fn read(&mut self, room: usize) -> io::Result<bool> {
        if self.buffer.is_empty() && self.buffer.capacity() > 2 * room {
            // What a large body needed is not kept while nothing comes.
            self.buffer = BytesMut::new();
        }
        self.buffer.reserve(room);
        Ok((&mut self.io).take(room as u64).read_buf(&mut self.buffer).await? > 0)
    }

    /// Waits for a little, with no buffer meanwhile: most connections wait most of the time.
    async fn wait(&mut self) -> io::Result<bool> {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
        let Reader { io, buffer, .. } = self;
        poll_fn(|context| {
            let mut space = [0; WAITING];
            let mut read = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut *io).poll_read(context, &mut read))?;
            buffer.extend_from_slice(read.filled());
            Poll::Ready(Ok(!read.filled().is_empty()))
        })
        .await
    }

    /// Reads more of a body; false at the end.
    pub(crate) async fn more(&mut self) -> io::Result<bool> {
        let before = self.buffer.len();
        let more = self.read(self.room).await?;
        let filled = self.buffer.len() - before == self.room;
        self.room = if filled { (2 * self.room).min(FLOWING) } else { (self.room / 2).max(WAITING) };
        Ok(more)
    }

    /// Waits until so many bytes are there, and returns what is there: less at the end.
    pub(crate) async fn peek(&mut self, length: usize) -> io::Result<&[u8]> {
        while self.buffer.len() < length {
            if !self.wait().await? {
                break;
            }
        }
        Ok(&self.buffer)
    }

    /// Returns the head of the next request, or `None` if the guest sends no more.
    pub(crate) async fn head(&mut self) -> io::Result<Result<Option<Bytes>, BadRequest>> {
        loop {
            // A client may send an empty line after a body.
            while self.buffer.starts_with(b"\r\n") {
                let _ = self.buffer.split_to(2);
            }
            match head_length(&self.buffer) {
                Err(bad) => return Ok(Err(bad)),
                Ok(Some(length)) => return Ok(Ok(Some(self.buffer.split_to(length).freeze()))),
                Ok(None) => {}
            }
            if !self.wait().await? {
                return match self.buffer.is_empty() {
                    true => Ok(Ok(None)),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }
}

/// How the body of a response is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framed {
    /// There is none.
    Empty,
    /// As long as the Content-Length header says.
    Length(u64),
    /// In chunks.
    Chunked,
    /// Until the connection ends.
    UntilEnd,
}

/// Returns the head of a response. `headers` must have no framing of their own.
pub(crate) fn response_head(
    status: http::StatusCode,
    reason: &str,
    headers: &HeaderMap,
    framed: Framed,
    close: bool,
) -> Vec<u8> {
    let mut head = Vec::with_capacity(512);
    head.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).as_bytes());
    for (name, value) in headers {
        title_case(name.as_str(), &mut head);
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    match framed {
        Framed::Length(length) => head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes()),
        Framed::Chunked => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framed::Empty | Framed::UntilEnd => {}
    }
    if close {
        head.extend_from_slice(b"Connection: close\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Writes the name of a header as people expect to read it.
fn title_case(name: &str, out: &mut Vec<u8>) {
    let mut upper = true;
    for byte in name.bytes() {
        out.push(if upper { byte.to_ascii_uppercase() } else { byte });
        upper = byte == b'-';
    }
}

/// Writes a part of a body.
pub(crate) async fn write_data(
    writer: &mut (impl AsyncWrite + Unpin),
    before: &mut Vec<u8>,
    data: &[u8],
    framed: Framed,
) -> io::Result<()> {
    /// Copied behind the head rather than written separately: one wake-up of the guest.
    const SMALL: usize = 8 << 10;
    if data.is_empty() {
        return Ok(());
    }
    let chunked = framed == Framed::Chunked;
    if chunked {
        before.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
    }
    if data.len() <= SMALL {
        before.extend_from_slice(data);
    } else {
        flush(writer, before).await?;
        writer.write_all(data).await?;
    }
    if chunked {
        before.extend_from_slice(b"\r\n");
    }
    flush(writer, before).await
}

/// Writes the end of a body.
pub(crate) fn end_of_body(before: &mut Vec<u8>, trailers: &HeaderMap, framed: Framed) {
    if framed != Framed::Chunked {
        return;
    }
    before.extend_from_slice(b"0\r\n");
    for (name, value) in
        trailers.iter().filter(|(name, _)| !is_hop_by_hop(name.as_str()) && *name != header::CONTENT_LENGTH)
    {
        title_case(name.as_str(), before);
        before.extend_from_slice(b": ");
        before.extend_from_slice(value.as_bytes());
        before.extend_from_slice(b"\r\n");
    }
    before.extend_from_slice(b"\r\n");
}

/// Writes what was collected.
pub(crate) async fn flush(writer: &mut (impl AsyncWrite + Unpin), before: &mut Vec<u8>) -> io::Result<()> {
    if !before.is_empty() {
        writer.write_all(before).await?;
        before.clear();
    }
    writer.flush().await
}

/// Tells whether a header is about one connection and is not passed on.
pub(crate) fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "http2-settings"
            | "alt-svc"
    )
}

/// Removes headers that are about one connection, and those that `Connection` names.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|token| token.trim().to_ascii_lowercase())
        .collect();
    let names: Vec<header::HeaderName> = headers
        .keys()
        .filter(|name| is_hop_by_hop(name.as_str()) || named.iter().any(|other| other == name.as_str()))
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
}

/// How long a server may take to read the end of a body whose sender has left: it may be in buffers here.
const LINGER: Duration = Duration::from_secs(10);

/// Whether something of the guest's is still on its way to the server.
pub(crate) struct Sending(watch::Sender<OnItsWay>);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnItsWay {
    /// The guest may be sending.
    Something,
    /// All of it was handed on, but perhaps not sent.
    Perhaps,
    Nothing,
}

impl Sending {
    pub(crate) fn new() -> Sending {
        Sending(watch::Sender::new(OnItsWay::Something))
    }

    pub(crate) fn set(&self, state: OnItsWay) {
        self.0.send_replace(state);
    }

    /// Waits until nothing is.
    pub(crate) async fn done(&self) {
        let mut state = self.0.subscribe();
        // Its sender lives as long as this.
        let _ = state.wait_for(|state| *state != OnItsWay::Something).await;
        if *state.borrow() == OnItsWay::Perhaps {
            tokio::time::sleep(LINGER).await;
        }
    }
}

/// When something last moved, and how long nothing may.
pub(crate) struct Activity(Mutex<(Instant, Duration)>);

impl Activity {
    pub(crate) fn new(patience: Duration) -> Activity {
        Activity(Mutex::new((Instant::now(), patience)))
    }

    /// Something moved.
    pub(crate) fn touch(&self) {
        self.0.lock().0 = Instant::now();
    }

    /// From now on, wait that long.
    pub(crate) fn expect(&self, patience: Duration) {
        *self.0.lock() = (Instant::now(), patience);
    }

    /// Waits until nothing has moved for too long.
    pub(crate) async fn silence(&self) {
        loop {
            let (last, patience) = *self.0.lock();
            if last.elapsed() >= patience {
                return;
            }
            // Looked at again after half a second at the latest: the patience may have become shorter.
            let next = (last + patience).min(Instant::now() + Duration::from_millis(500));
            tokio::time::sleep_until(next).await;
        }
    }
}
