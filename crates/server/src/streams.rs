//! A client's connections to ports of its sandboxes.
//!
//! ```text
//!  net.write ─► at most WRITES bytes unanswered ─► the guest's socket
//!  net.data  ◄─ at most WINDOW bytes unacknowledged ◄─ the guest's socket
//! ```
//! Neither side makes the server keep more than that: a client that does not acknowledge is sent nothing more, a client that
//! sends too much is refused, and then the guest's own socket fills up and the guest waits.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::ready;

use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use wardian::{Errno, PortStream};

use crate::entry::Entry;
use crate::hibernation::Awake;
use crate::lane::{Lane, Turn};
use crate::outbox::Outbox;
use crate::params::encode;
use crate::rpc::RpcError;

/// How many connections one client may have.
pub(crate) const CONNECTIONS: usize = 256;
/// How many all clients may have together, beyond the first of each.
pub(crate) const SHARED: usize = 4096;
const OWN: usize = 8;
/// How many bytes may be on their way to the client, of one connection, before it acknowledges them.
pub(crate) const WINDOW: usize = 256 << 10;
/// How many bytes a client may have sent to one connection that the guest has not taken.
pub(crate) const WRITES: usize = 1 << 20;
/// The longest piece that is sent at once.
const PIECE: usize = 16 << 10;

/// All connections of a client, by number.
pub(crate) struct Streams {
    table: Mutex<Table>,
    /// How many there are or are about to be. Not in the table: the last to let go of a connection may hold its lock.
    count: AtomicUsize,
    own: Arc<Semaphore>,
    shared: Arc<Semaphore>,
}

#[derive(Default)]
struct Table {
    last: u64,
    open: BTreeMap<u64, Arc<Stream>>,
    closed: bool,
}

/// A place for one connection, before there is one and as long as there is.
pub(crate) struct Place {
    streams: Arc<Streams>,
    _room: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.streams.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One connection.
pub(crate) struct Stream {
    number: u64,
    /// What is written, in the order of the lines.
    lane: Lane,
    writer: tokio::sync::Mutex<Option<WriteHalf<PortStream>>>,
    /// How many bytes the client has sent that the guest has not taken.
    unwritten: AtomicUsize,
    /// How many bytes may be sent to the client now.
    window: watch::Sender<usize>,
    closed: watch::Sender<bool>,
    /// Which of its directions have ended.
    ended: Mutex<Ended>,
    _place: Place,
}

#[derive(Default)]
struct Ended {
    reading: bool,
    writing: bool,
}

impl Streams {
    pub(crate) fn new(shared: Arc<Semaphore>) -> Arc<Streams> {
        let own = Arc::new(Semaphore::new(OWN));
        Arc::new(Streams { table: Mutex::default(), count: AtomicUsize::new(0), own, shared })
    }

    /// Returns a place for one more, if there is one.
    pub(crate) fn place(self: &Arc<Streams>) -> Result<Place, RpcError> {
        if self.table.lock().closed {
            return Err(RpcError::internal("the server is shutting down"));
        }
        let own = || self.own.clone().try_acquire_owned();
        let room = own().or_else(|_| self.shared.clone().try_acquire_owned());
        let Ok(_room) = room else {
            let why = "ENFILE: the clients of this server have too many connections";
            return Err(RpcError::refused("ENFILE", why));
        };
        let one_more = |count: usize| (count < CONNECTIONS).then_some(count + 1);
        match self.count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more) {
            Ok(_) => Ok(Place { streams: self.clone(), _room }),
            Err(_) => {
                let why = format!("EMFILE: a client has at most {CONNECTIONS} connections");
                Err(RpcError::refused("EMFILE", why))
            }
        }
    }

    /// Adds a connection.
    pub(crate) fn add(self: &Arc<Streams>, writer: WriteHalf<PortStream>, place: Place) -> Arc<Stream> {
        let mut table = self.table.lock();
        table.last += 1;
        let stream = Arc::new(Stream {
            number: table.last,
            lane: Lane::default(),
            writer: tokio::sync::Mutex::new(Some(writer)),
            unwritten: AtomicUsize::new(0),
            window: watch::Sender::new(WINDOW),
            closed: watch::Sender::new(table.closed),
            ended: Mutex::default(),
            _place: place,
        });
        if !table.closed {
            table.open.insert(stream.number, stream.clone());
        }
        stream
    }

    /// Returns an open connection.
    pub(crate) fn get(&self, id: &str) -> Result<Arc<Stream>, RpcError> {
        let table = self.table.lock();
        match parse(id) {
            Some(number) if table.open.contains_key(&number) => Ok(table.open[&number].clone()),
            Some(number) if (1..=table.last).contains(&number) => {
                Err(RpcError::refused("EBADF", format!("EBADF: the connection {id} is closed")))
            }
            _ => Err(unknown(id)),
        }
    }

    /// Closes a connection, whatever waits for it. One that is closed already stays so.
    pub(crate) fn close(&self, id: &str) -> Result<(), RpcError> {
        let mut table = self.table.lock();
        let number =
            parse(id).filter(|number| (1..=table.last).contains(number)).ok_or_else(|| unknown(id))?;
        if let Some(stream) = table.open.remove(&number) {
            stream.closed.send_replace(true);
        }
        Ok(())
    }

    /// Closes all of them, and those that are being made.
    pub(crate) fn end(&self) {
        let mut table = self.table.lock();
        table.closed = true;
        for stream in std::mem::take(&mut table.open).into_values() {
            stream.closed.send_replace(true);
        }
    }

    fn forget(&self, number: u64) {
        self.table.lock().open.remove(&number);
    }
}

fn unknown(id: &str) -> RpcError {
    RpcError::params(format!("Unknown streamId: {id}"))
}

fn parse(id: &str) -> Option<u64> {
    id.parse().ok().filter(|number: &u64| number.to_string() == id)
}

/// Bytes waiting to be written, counted until they are.
pub(crate) struct Unwritten {
    stream: Arc<Stream>,
    bytes: usize,
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.stream.unwritten.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

impl Stream {
    pub(crate) fn id(&self) -> String {
        self.number.to_string()
    }

    pub(crate) fn turn(&self) -> Turn {
        self.lane.turn()
    }

    /// Takes note of bytes waiting to be written, unless there are too many.
    pub(crate) fn count(self: &Arc<Stream>, bytes: usize) -> Result<Unwritten, RpcError> {
        let most = |now: usize| now.checked_add(bytes).filter(|sum| *sum <= WRITES);
        match self.unwritten.fetch_update(Ordering::SeqCst, Ordering::SeqCst, most) {
            Ok(_) => Ok(Unwritten { stream: self.clone(), bytes }),
            Err(_) => {
                let why = format!("EAGAIN: more than {WRITES} bytes would wait for the guest to read them");
                Err(RpcError::refused("EAGAIN", why))
            }
        }
    }

    /// Writes bytes, when the guest takes them.
    pub(crate) async fn write(&self, bytes: &[u8]) -> Result<(), RpcError> {
        let writing = async {
            match &mut *self.writer.lock().await {
                Some(writer) => writer.write_all(bytes).await.map_err(|error| failure(&error)),
                None => Err(RpcError::refused("EPIPE", "EPIPE: the client has ended this connection")),
            }
        };
        tokio::select! {
            biased;
            () = self.is_closed() => Err(RpcError::refused("EBADF", "EBADF: the connection is closed")),
            written = writing => written,
        }
    }

    /// The client sends no more: the guest reads the end.
    pub(crate) async fn end_writing(&self) {
        if let Some(mut writer) = self.writer.lock().await.take() {
            let _ = writer.shutdown().await;
        }
        self.end(|ended| ended.writing = true);
    }

    /// The client has taken so many bytes, and can be sent as many more.
    pub(crate) fn acknowledge(&self, bytes: usize) -> Result<(), RpcError> {
        let mut fits = false;
        self.window.send_if_modified(|window| {
            fits = window.checked_add(bytes).is_some_and(|sum| sum <= WINDOW);
            *window += if fits { bytes } else { 0 };
            fits
        });
        let refusal = || RpcError::params("bytes: more than the client was sent and has not acknowledged");
        if fits { Ok(()) } else { Err(refusal()) }
    }

    async fn is_closed(&self) {
        // Its sender lives as long as this.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    fn end(&self, change: impl FnOnce(&mut Ended)) {
        let mut ended = self.ended.lock();
        change(&mut ended);
        if ended.reading && ended.writing {
            self._place.streams.forget(self.number);
        }
    }

    /// Tells the client what the guest sends, up to the end.
    pub(crate) async fn tell(
        self: Arc<Stream>,
        mut first: Turn,
        // The sandbox stays in memory as long as there is the connection.
        (entry, _awake): (Arc<Entry>, Awake),
        reader: ReadHalf<PortStream>,
        outbox: Outbox,
    ) {
        // The client must know the connection first.
        first.come().await;
        let error = tokio::select! {
            biased;
            // It has asked for that, and is told nothing more.
            () = self.is_closed() => return self.drop_writer().await,
            () = entry.ended() => Some("ECONNRESET"),
            error = self.pass_on(reader, &outbox) => error,
        };
        let mut params = json!({ "streamId": self.id() });
        if let Some(error) = error {
            params["error"] = error.into();
        }
        if error.is_some() {
            self._place.streams.forget(self.number);
            self.closed.send_replace(true);
            self.drop_writer().await;
        }
        outbox.notify("net.end", params).await;
        self.end(|ended| ended.reading = true);
    }

    /// The writer has been told to stop.
    async fn drop_writer(&self) {
        self.writer.lock().await.take();
    }

    async fn pass_on(&self, mut reader: ReadHalf<PortStream>, outbox: &Outbox) -> Option<&'static str> {
        let mut window = self.window.subscribe();
        loop {
            let room = match window.wait_for(|window| *window > 0).await {
                Ok(window) => (*window).min(PIECE),
                Err(_) => return None,
            };
            match read(&mut reader, room).await {
                Ok(piece) if piece.is_empty() => return None,
                Ok(piece) => {
                    self.window.send_modify(|window| *window -= piece.len());
                    let params = json!({ "streamId": self.id(), "data": encode(&piece) });
                    outbox.notify("net.data", params).await;
                }
                Err(error) => return Some(name(&error)),
            }
        }
    }
}

/// Reads what there is, at most `most` bytes. Has a buffer only while it looks: most connections wait most of the time.
async fn read(reader: &mut ReadHalf<PortStream>, most: usize) -> io::Result<Vec<u8>> {
    poll_fn(|context| {
        let mut space = [0; PIECE];
        let mut buffer = ReadBuf::new(&mut space[..most]);
        ready!(Pin::new(&mut *reader).poll_read(context, &mut buffer))?;
        std::task::Poll::Ready(Ok(buffer.filled().to_vec()))
    })
    .await
}

fn name(error: &io::Error) -> &'static str {
    error.raw_os_error().map_or("EIO", |number| Errno::from_raw(number).name())
}

fn failure(error: &io::Error) -> RpcError {
    let name = name(error);
    RpcError::refused(name, format!("{name}: the connection"))
}
