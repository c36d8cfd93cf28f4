//! A program's output: kept up to a cap, passed on as it arrives, and always read to its end, so that the program never
//! waits for a reader.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::spec::{OutputChunk, OutputSink, Stream};

/// The most that one read takes: what a pipe holds.
const CHUNK: usize = 64 << 10;

/// A pipe: one end to read here, and one for the program to write.
pub(super) fn pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    Ok((Receiver::from_owned_fd(read)?, write))
}

/// What was kept of a stream.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub bytes: Vec<u8>,
    pub truncated: bool,
}

impl Kept {
    /// Reads a stream to its end. After `most` bytes it adds a marker, once, and drops the rest.
    pub async fn fill(&mut self, mut from: Receiver, stream: Stream, most: usize, sink: Option<&OutputSink>) {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match from.read(&mut chunk).await {
                Ok(read) if read > 0 => read,
                // A pipe has no error but its end.
                _ => return,
            };
            let room = most - self.bytes.len().min(most);
            let kept = &chunk[..read.min(room)];
            self.add(kept, stream, sink);
            if read > room && !self.truncated {
                self.truncated = true;
                self.add(marker(most).as_bytes(), stream, sink);
            }
        }
    }

    fn add(&mut self, bytes: &[u8], stream: Stream, sink: Option<&OutputSink>) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.extend_from_slice(bytes);
        if let Some(sink) = sink {
            // A listener that has gone away stops nothing.
            let _ = sink.send(OutputChunk { stream, bytes: bytes.to_vec() });
        }
    }
}

/// The marker in output that was truncated.
fn marker(most: usize) -> String {
    format!("\n[output cut at {most} bytes]\n")
}
