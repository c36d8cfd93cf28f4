//! Lines to a client, whole and one at a time.
//!
//! A client that does not read makes those wait who have something to tell it: there is room for a few lines only.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// How many lines may wait for the client.
const LINES: usize = 64;

/// Where lines to the client are put. Clones are the same box.
#[derive(Clone)]
pub(crate) struct Outbox(mpsc::Sender<Option<Vec<u8>>>);

/// The other side of an [`Outbox`].
pub(crate) struct Lines(mpsc::Receiver<Option<Vec<u8>>>);

impl Outbox {
    pub(crate) fn new() -> (Outbox, Lines) {
        let (sender, receiver) = mpsc::channel(LINES);
        (Outbox(sender), Lines(receiver))
    }

    /// Sends a line; waits while the client does not read. A client that is gone does not mind.
    pub(crate) async fn send(&self, line: Vec<u8>) {
        let _ = self.0.send(Some(line)).await;
    }

    /// Nothing more comes, whoever else could still send.
    pub(crate) async fn end(&self) {
        let _ = self.0.send(None).await;
    }
}

impl Lines {
    /// Writes line after line, up to the end.
    pub(crate) async fn write_to(mut self, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
        while let Some(Some(line)) = self.0.recv().await {
            output.write_all(&line).await?;
            output.flush().await?;
        }
        output.shutdown().await
    }
}
