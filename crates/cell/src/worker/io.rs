//! What a run reads and writes, and the thread that sends it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use crate::frame::{Encoder, LONGEST_REPORT};
use crate::message::{MOST_INPUT, PIECE, Piece, Report, RequestId, Stream, WINDOW, cost};

/// How many reports may wait for the supervisor to read them.
const REPORTS: usize = 16;

/// The other side does not listen any more, or has nothing to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// What a run gets of its input.
type Came = Result<Vec<u8>, Gone>;

/// An outbox before there are threads.
pub(super) struct Unstarted {
    socket: File,
    encoder: Encoder,
}

/// Where reports go. Cloning shares it.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    reports: mpsc::Sender<Report>,
    socket: Arc<File>,
}

impl Outbox {
    /// Sends a report; waits while many wait already.
    pub async fn send(&self, report: Report) {
        // The thread ends with the process.
        let _ = self.reports.send(report).await;
    }
}

impl Unstarted {
    pub fn new(socket: File) -> Unstarted {
        Unstarted { socket, encoder: Encoder::new(LONGEST_REPORT) }
    }

    /// Writes a report, and blocks until it is written.
    pub fn write_now(mut self, report: &Report) -> io::Result<()> {
        self.write(report)
    }

    /// Starts the thread that writes reports, the first of them this one.
    pub fn start(mut self, first: &Report) -> io::Result<Outbox> {
        let (reports, mut waiting) = mpsc::channel(REPORTS);
        let socket = Arc::new(self.socket.try_clone()?);
        self.write(first)?;
        std::thread::Builder::new().name("wardian-outbox".to_owned()).spawn(move || {
            while let Some(report) = waiting.blocking_recv() {
                if self.write(&report).is_err() {
                    // There is nobody to work for.
                    wardian_confine::fork_exec::exit_child(1);
                }
            }
        })?;
        Ok(Outbox { reports, socket })
    }

    fn write(&mut self, report: &Report) -> io::Result<()> {
        let frame = self.encoder.encode(report).map_err(io::Error::other)?;
        self.socket.write_all(&frame)
    }
}

/// What a run reads and writes. Cloning shares it.
#[derive(Clone, Debug)]
pub struct RunIo(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    request: RequestId,
    outbox: Outbox,
    /// Output that may be sent.
    window: Semaphore,
    /// Who waits for input.
    asked: Mutex<Option<oneshot::Sender<Came>>>,
    cancel: Arc<Notify>,
}

impl RunIo {
    pub(super) fn new(request: RequestId, outbox: Outbox) -> RunIo {
        RunIo(Arc::new(Inner {
            request,
            outbox,
            window: Semaphore::new(WINDOW),
            asked: Mutex::default(),
            cancel: Arc::default(),
        }))
    }

    /// Notified when the run is to be cancelled.
    pub fn cancelled(&self) -> &Arc<Notify> {
        &self.0.cancel
    }

    /// Says that the command begins.
    pub async fn began(&self) {
        self.0.outbox.send(Report::Began(self.0.request)).await;
    }

    /// Sends output, in pieces. Waits while too much of it is on its way.
    pub async fn write(&self, stream: Stream, bytes: &[u8], cut: bool) {
        let mut pieces = bytes.chunks(PIECE).peekable();
        if pieces.peek().is_none() && cut {
            self.send(Piece { stream, bytes: Vec::new(), cut }).await;
        }
        while let Some(piece) = pieces.next() {
            let last = pieces.peek().is_none();
            self.send(Piece { stream, bytes: piece.to_vec(), cut: cut && last }).await;
        }
    }

    async fn send(&self, piece: Piece) {
        let cost = cost(piece.bytes.len()) as u32;
        // It is never closed.
        if let Ok(room) = self.0.window.acquire_many(cost).await {
            room.forget();
            self.0.outbox.send(Report::Output(self.0.request, piece)).await;
        }
    }

    /// Asks for input, and waits for it; nothing at its end. One at a time.
    pub async fn read(&self, most: usize) -> Result<Vec<u8>, Gone> {
        let (sender, came) = oneshot::channel();
        *self.0.asked.lock() = Some(sender);
        let most = most.clamp(1, MOST_INPUT) as u32;
        self.0.outbox.send(Report::WantInput(self.0.request, most)).await;
        came.await.unwrap_or(Err(Gone))
    }

    pub(super) fn came(&self, input: Came) {
        if let Some(asked) = self.0.asked.lock().take() {
            let _ = asked.send(input);
        }
    }

    pub(super) fn grant(&self, bytes: usize) {
        self.0.window.add_permits(bytes.min(WINDOW));
    }

    pub(super) fn socket(&self) -> &File {
        &self.0.outbox.socket
    }
}
