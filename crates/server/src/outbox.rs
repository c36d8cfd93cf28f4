//! Lines to a client, whole and one at a time.
//!
//! A client that does not read makes those wait who have something to tell it. Answers have more room than output does:
//! a client may well send thousands of requests before it reads the first answer, while whoever writes output can wait.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// How much of answers and of everything else may wait for the client.
const ANSWERS_KIB: u32 = 64 << 10;
const OUTPUT_KIB: u32 = 1 << 10;

/// Where lines to the client are put. Clones are the same box.
#[derive(Clone)]
pub(crate) struct Outbox {
    lines: mpsc::UnboundedSender<Message>,
    answers: Arc<Semaphore>,
    output: Arc<Semaphore>,
}

enum Message {
    /// A line, and the room it takes up until it is written.
    Line(Vec<u8>, OwnedSemaphorePermit),
    End,
}

/// The other side of an [`Outbox`].
pub(crate) struct Lines(mpsc::UnboundedReceiver<Message>);

impl Outbox {
    pub(crate) fn new() -> (Outbox, Lines) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let room = |kib: u32| Arc::new(Semaphore::new(kib as usize));
        (Outbox { lines, answers: room(ANSWERS_KIB), output: room(OUTPUT_KIB) }, Lines(receiver))
    }

    /// Sends the answer to a request.
    pub(crate) async fn answer(&self, line: Vec<u8>) {
        self.send(&self.answers, ANSWERS_KIB, line).await;
    }

    /// Sends what the client did not ask for just now.
    pub(crate) async fn tell(&self, line: Vec<u8>) {
        self.send(&self.output, OUTPUT_KIB, line).await;
    }

    async fn send(&self, room: &Arc<Semaphore>, all: u32, line: Vec<u8>) {
        // One that is larger than all the room there is goes when it has all of it.
        let kib = u32::try_from(line.len() / 1024 + 1).map_or(all, |kib| kib.min(all));
        if let Ok(room) = room.clone().acquire_many_owned(kib).await {
            // A client that is gone does not mind.
            let _ = self.lines.send(Message::Line(line, room));
        }
    }

    /// Nothing more comes, whoever else could still send.
    pub(crate) fn end(&self) {
        let _ = self.lines.send(Message::End);
    }
}

impl Lines {
    /// Writes line after line, up to the end.
    pub(crate) async fn write_to(mut self, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
        while let Some(Message::Line(line, room)) = self.0.recv().await {
            output.write_all(&line).await?;
            output.flush().await?;
            drop(room);
        }
        output.shutdown().await
    }
}
