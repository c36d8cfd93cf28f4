//! Lines to a client, whole and one at a time.
//!
//! A client that does not read makes those wait who have something to tell it. Answers have more room than output does:
//! a client may well send thousands of requests before it reads the first answer, while a writer of output can wait.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::budget::{Budget, Room, Shared};

/// How much of everything that is no answer may wait for the client.
const OUTPUT_KIB: u32 = 1 << 10;

/// Where lines to the client are put. Clones are the same box.
#[derive(Clone)]
pub(crate) struct Outbox {
    lines: mpsc::UnboundedSender<Message>,
    pub(crate) budget: Budget,
    output: Arc<Semaphore>,
}

enum Message {
    /// A line, and the room it takes up until it is written.
    Line(Vec<u8>, OwnedSemaphorePermit),
    /// The same in two parts, so that a long answer is not copied.
    Answer([Vec<u8>; 2], Room),
    End,
}

/// The other side of an [`Outbox`].
pub(crate) struct Lines(mpsc::UnboundedReceiver<Message>, Budget);

impl Outbox {
    pub(crate) fn new(shared: Arc<Shared>) -> (Outbox, Lines) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let budget = Budget::new(shared);
        let output = Arc::new(Semaphore::new(OUTPUT_KIB as usize));
        (Outbox { lines, budget: budget.clone(), output }, Lines(receiver, budget))
    }

    /// Sends the answer to a request.
    pub(crate) async fn answer(&self, line: Vec<u8>) {
        if let Some(room) = self.budget.room(line.len()).await {
            self.put([line, Vec::new()], room);
        }
    }

    /// Sends a line that has its room.
    pub(crate) fn put(&self, line: [Vec<u8>; 2], room: Room) {
        // A client that is gone does not mind.
        let _ = self.lines.send(Message::Answer(line, room));
    }

    /// Sends what the client did not ask for just now.
    pub(crate) async fn tell(&self, line: Vec<u8>) {
        // One that is larger than all the room there is goes when it has all of it.
        let kib = u32::try_from(line.len() / 1024 + 1).map_or(OUTPUT_KIB, |kib| kib.min(OUTPUT_KIB));
        if let Ok(room) = self.output.clone().acquire_many_owned(kib).await {
            let _ = self.lines.send(Message::Line(line, room));
        }
    }

    /// Nothing more comes, even if there are other senders.
    pub(crate) fn end(&self) {
        let _ = self.lines.send(Message::End);
    }
}

impl Lines {
    /// Writes line after line, up to the end.
    pub(crate) async fn write_to(mut self, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
        loop {
            let (parts, room) = match self.0.recv().await {
                Some(Message::Line(line, room)) => ([line, Vec::new()], (Some(room), None)),
                Some(Message::Answer(parts, room)) => (parts, (None, Some(room))),
                Some(Message::End) | None => break,
            };
            let writing = async {
                for part in &parts {
                    output.write_all(part).await?;
                }
                output.flush().await
            };
            tokio::select! {
                written = writing => written?,
                () = self.1.wanted_back() => {
                    tracing::warn!("a client that does not read is disconnected: others need the room");
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            drop(room);
        }
        output.shutdown().await
    }
}
