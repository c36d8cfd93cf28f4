//! What is written to a process and not read yet.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use wardian_kernel::{Input, Source, SourceRead};

/// How many bytes may wait before the host does.
const INPUT: usize = 64 << 10;

/// A bounded queue of bytes, with an end.
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Notified when there is something to read, or the end.
    filled: Notify,
    /// Notified when there is room, or nobody may write any more. Not the same: a writer must not wake itself.
    emptied: Notify,
}

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    closed: bool,
}

impl Queue {
    pub(crate) fn new() -> Arc<Queue> {
        Arc::new(Queue { state: Mutex::default(), filled: Notify::new(), emptied: Notify::new() })
    }

    /// Returns an input that reads from a queue; an empty one if there is none.
    pub(crate) fn input(queue: Option<&Arc<Queue>>) -> Arc<Input> {
        queue.map_or_else(Input::empty, |queue| Input::source(Reader(queue.clone())))
    }

    /// Adds bytes, as there is room for them. Fails if the queue is closed.
    pub(crate) async fn write(&self, mut bytes: &[u8]) -> Result<(), ()> {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            {
                let mut state = self.state.lock();
                if state.closed {
                    return Err(());
                }
                let (now, later) = bytes.split_at(bytes.len().min(INPUT - state.bytes.len()));
                state.bytes.extend(now);
                bytes = later;
            }
            self.filled.notify_waiters();
            if bytes.is_empty() {
                return Ok(());
            }
            emptied.await;
        }
    }

    /// Nothing more is written; what is there can still be read.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_waiters();
        self.emptied.notify_waiters();
    }
}

struct Reader(Arc<Queue>);

impl Source for Reader {
    fn read(&self, max: usize) -> SourceRead<'_> {
        Box::pin(async move {
            loop {
                let mut filled = std::pin::pin!(self.0.filled.notified());
                filled.as_mut().enable();
                let (read, closed) = {
                    let mut state = self.0.state.lock();
                    let count = state.bytes.len().min(max);
                    (state.bytes.drain(..count).collect::<Vec<u8>>(), state.closed)
                };
                if !read.is_empty() || closed {
                    self.0.emptied.notify_waiters();
                    return Ok(read);
                }
                filled.await;
            }
        })
    }

    fn is_ready(&self) -> Option<bool> {
        let state = self.0.state.lock();
        Some(!state.bytes.is_empty() || state.closed)
    }
}
