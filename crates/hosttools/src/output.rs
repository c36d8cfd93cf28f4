//! Stage 9, for the output: removes secrets, and adds a note if it was truncated. If the program was killed, the output
//! may end in a partial secret.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use crate::error::ToolError;
use crate::redact::{Redactor, StreamRedactor};
use crate::spec::{Ended, Finished, OutputChunk, OutputSink, Stream};

/// Larger output is cleaned on another thread: it takes milliseconds that others on the runtime need.
const MUCH: usize = 64 << 10;

/// Returns what is kept of a program's output, without secrets.
pub(crate) async fn cleaned(
    redactor: &Redactor,
    finished: Finished,
    max_output: usize,
) -> Result<Finished, ToolError> {
    let much = finished.stdout.len() + finished.stderr.len() > MUCH;
    let redactor = redactor.clone();
    let cleaning = aside_if(much, move || cleaned_here(&redactor, finished, max_output));
    cleaning.await.map_err(|error| ToolError::WorkerLost(error.to_string()))
}

fn cleaned_here(redactor: &Redactor, mut finished: Finished, max_output: usize) -> Finished {
    let cut_short = was_cut_short(&finished);
    for stream in [&mut finished.stdout, &mut finished.stderr] {
        let mut cleaning = Cleaning::new(redactor, max_output);
        let mut clean = cleaning.push(stream);
        clean.extend(cleaning.finish(cut_short));
        *stream = clean;
    }
    finished
}

/// One stream, piece by piece. After `max_output` bytes of the program's comes the pool's marker.
struct Cleaning {
    redacting: StreamRedactor,
    room: usize,
    marker: Vec<u8>,
}

impl Cleaning {
    fn new(redactor: &Redactor, max_output: usize) -> Cleaning {
        Cleaning { redacting: redactor.stream(), room: max_output, marker: Vec::new() }
    }

    fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let (written, marker) = piece.split_at(piece.len().min(self.room));
        self.room -= written.len();
        self.marker.extend_from_slice(marker);
        self.redacting.push(written)
    }

    fn finish(self, cut_short: bool) -> Vec<u8> {
        let mut rest = self.redacting.finish(cut_short || !self.marker.is_empty());
        rest.extend(self.marker);
        rest
    }
}

/// Returns whether a program was stopped early, perhaps in the middle of its output.
fn was_cut_short(finished: &Finished) -> bool {
    finished.timed_out || matches!(finished.status, Ended::Signal(_))
}

/// Passes output on as it arrives, without secrets.
pub(crate) struct Relay {
    passing: JoinHandle<Result<Streams, JoinError>>,
    to: OutputSink,
}

/// Standard output and standard error.
type Streams = BTreeMap<Stream, Cleaning>;

impl Relay {
    /// Returns where the pool should write, and what passes that on.
    pub(crate) fn new(redactor: &Redactor, max_output: usize, to: OutputSink) -> (OutputSink, Relay) {
        let (from_pool, chunks) = mpsc::unbounded_channel::<OutputChunk>();
        let streams =
            [Stream::Stdout, Stream::Stderr].map(|stream| (stream, Cleaning::new(redactor, max_output)));
        (from_pool, Relay { passing: tokio::spawn(pass_on(chunks, streams.into(), to.clone())), to })
    }

    /// Passes on the rest, once the pool is done.
    pub(crate) async fn finish(self, ran: &Result<Finished, ToolError>) {
        let cut_short = ran.as_ref().map_or(true, was_cut_short);
        let rest = async {
            for (stream, cleaning) in self.passing.await?? {
                let much = cleaning.redacting.held() > MUCH;
                send(&self.to, stream, aside_if(much, move || cleaning.finish(cut_short)).await?);
            }
            Ok::<_, JoinError>(())
        };
        if let Err(error) = rest.await {
            tracing::error!(%error, "output was not passed on");
        }
    }
}

/// Passes on what it can until the pool is done; returns what holds the rest.
async fn pass_on(
    mut chunks: mpsc::UnboundedReceiver<OutputChunk>,
    mut streams: Streams,
    to: OutputSink,
) -> Result<Streams, JoinError> {
    while let Some(OutputChunk { stream, bytes }) = chunks.recv().await {
        let Some(mut cleaning) = streams.remove(&stream) else { continue };
        let much = cleaning.redacting.held() + bytes.len() > MUCH;
        let push = move || (cleaning.push(&bytes), cleaning);
        let (passed, cleaning) = aside_if(much, push).await?;
        streams.insert(stream, cleaning);
        send(&to, stream, passed);
    }
    Ok(streams)
}

/// Does it here, or on a thread that may block.
async fn aside_if<T: Send + 'static>(
    much: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if much { tokio::task::spawn_blocking(work).await } else { Ok(work()) }
}

/// If the listener has gone away, the program continues.
fn send(to: &OutputSink, stream: Stream, bytes: Vec<u8>) {
    if !bytes.is_empty() {
        let _ = to.send(OutputChunk { stream, bytes });
    }
}
