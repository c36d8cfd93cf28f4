//! The three streams between a command and whoever runs it.
//!
//! An [`Output`] keeps the first bytes up to a cap, counts the rest, and hands all of them on to a listener if there
//! is one. An [`Input`] is a block of bytes or a source that is asked only when the guest reads.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use wardian_vfs::Errno;

/// Which of the three.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// Descriptor 0.
    Input,
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Error,
}

/// Where a command's output goes.
pub struct Output {
    kept: Mutex<Kept>,
    cap: usize,
    streamed: bool,
    /// Gone once the run is over, so that the listener sees the end even if a background process still has this open.
    listener: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    closed: AtomicBool,
    closing: Notify,
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    total: u64,
    ends_inside_line: bool,
}

impl Output {
    /// Keeps at most `cap` bytes. A `listener` gets every byte as it comes; a full channel makes the guest wait.
    pub fn new(cap: usize, listener: Option<mpsc::Sender<Vec<u8>>>) -> Arc<Output> {
        Arc::new(Output {
            kept: Mutex::default(),
            cap,
            streamed: listener.is_some(),
            listener: Mutex::new(listener),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
        })
    }

    /// Whether somebody listens, so that nothing needs to be kept.
    pub fn is_streamed(&self) -> bool {
        self.streamed
    }

    /// Nothing a guest writes from now on is kept or handed on: the run is over. Who waits to write waits no more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.closing.notify_waiters();
    }

    /// Adds a line of ours after whatever the guest wrote, past any cap and after `close`.
    pub async fn note(&self, line: &str) {
        let text = {
            let mut kept = self.kept.lock();
            let apart = if kept.ends_inside_line { "\n" } else { "" };
            let text = format!("{apart}{line}\n").into_bytes();
            kept.bytes.extend_from_slice(&text);
            text
        };
        let listener = self.listener.lock().clone();
        if let Some(listener) = listener {
            // Nobody listening any more is no reason to fail: the run is over.
            let _ = listener.send(text).await;
        }
    }

    /// Tells the listener that nothing more comes.
    pub fn hang_up(&self) {
        self.close();
        self.listener.lock().take();
    }

    /// Takes what was kept, and says how many bytes were written in all.
    pub fn take(&self) -> (Vec<u8>, u64) {
        let mut kept = self.kept.lock();
        (std::mem::take(&mut kept.bytes), kept.total)
    }

    pub(crate) async fn write(&self, data: &[u8]) -> Result<usize, Errno> {
        let mut closing = std::pin::pin!(self.closing.notified());
        closing.as_mut().enable();
        if self.closed.load(Ordering::SeqCst) {
            return Ok(data.len());
        }
        self.keep(data);
        let listener = self.listener.lock().clone();
        let Some(listener) = listener else { return Ok(data.len()) };
        tokio::select! {
            biased;
            sent = listener.send(data.to_vec()) => sent.map_err(|_| Errno::EPIPE)?,
            () = closing => {}
        }
        Ok(data.len())
    }

    fn keep(&self, data: &[u8]) {
        let mut kept = self.kept.lock();
        kept.total += data.len() as u64;
        let room = self.cap.saturating_sub(kept.bytes.len()).min(data.len());
        kept.bytes.extend_from_slice(&data[..room]);
        kept.ends_inside_line = data.last().map_or(kept.ends_inside_line, |&last| last != b'\n');
    }
}

/// A future that a source answers with.
pub type SourceRead<'a> = Pin<Box<dyn Future<Output = std::io::Result<Vec<u8>>> + Send + 'a>>;

/// Somebody who has bytes when asked: a terminal, a file, a network peer.
pub trait Source: Send + Sync {
    /// At most `max` bytes; none at the end.
    fn read(&self, max: usize) -> SourceRead<'_>;
}

/// Where a command's input comes from.
pub struct Input {
    held: Mutex<Held>,
    source: Option<Box<dyn Source>>,
}

struct Held {
    bytes: Vec<u8>,
    taken: usize,
}

impl Input {
    /// No input at all.
    pub fn empty() -> Arc<Input> {
        Input::bytes(Vec::new())
    }

    /// These bytes, then the end.
    pub fn bytes(bytes: Vec<u8>) -> Arc<Input> {
        Arc::new(Input { held: Mutex::new(Held { bytes, taken: 0 }), source: None })
    }

    /// Whatever `source` has, asked only when the guest reads.
    pub fn source(source: impl Source + 'static) -> Arc<Input> {
        let held = Mutex::new(Held { bytes: Vec::new(), taken: 0 });
        Arc::new(Input { held, source: Some(Box::new(source)) })
    }

    pub(crate) async fn read(&self, buf: &mut [u8]) -> Result<usize, Errno> {
        let n = self.take_held(buf);
        if n > 0 || buf.is_empty() {
            return Ok(n);
        }
        let Some(source) = &self.source else { return Ok(0) };
        let more = source.read(buf.len()).await.map_err(|_| Errno::EIO)?;
        // Several readers may share this input; what does not fit here waits for the next of them.
        let mut held = self.held.lock();
        held.bytes = more;
        held.taken = 0;
        drop(held);
        Ok(self.take_held(buf))
    }

    fn take_held(&self, buf: &mut [u8]) -> usize {
        let mut held = self.held.lock();
        let n = buf.len().min(held.bytes.len() - held.taken);
        buf[..n].copy_from_slice(&held.bytes[held.taken..held.taken + n]);
        held.taken += n;
        n
    }
}
