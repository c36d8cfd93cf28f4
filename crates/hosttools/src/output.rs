//! Stage 9, for the output: secrets out, and a word where it was cut.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::ToolError;
use crate::redact::{Redactor, StreamRedactor};
use crate::spec::{Finished, OutputChunk, OutputSink, Stream};

/// More than this is cleaned aside: it takes milliseconds that belong to others on the runtime.
const MUCH: usize = 64 << 10;

/// What is kept of a program's output, without secrets.
pub(crate) async fn cleaned(
    redactor: &Redactor,
    finished: Finished,
    max_output: usize,
) -> Result<Finished, ToolError> {
    if finished.stdout.len() + finished.stderr.len() <= MUCH {
        return Ok(cleaned_here(redactor, finished, max_output));
    }
    let redactor = redactor.clone();
    let cleaning = tokio::task::spawn_blocking(move || cleaned_here(&redactor, finished, max_output));
    cleaning.await.map_err(|error| ToolError::WorkerLost(error.to_string()))
}

fn cleaned_here(redactor: &Redactor, mut finished: Finished, max_output: usize) -> Finished {
    for stream in [&mut finished.stdout, &mut finished.stderr] {
        let mut cleaning = Cleaning::new(redactor, max_output);
        let mut clean = cleaning.push(stream);
        clean.extend(cleaning.finish());
        *stream = clean;
    }
    finished
}

/// One stream, piece by piece. Behind `max_output` bytes of the program's comes the pool's marker.
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

    fn finish(self) -> Vec<u8> {
        let mut rest = self.redacting.finish(!self.marker.is_empty());
        rest.extend(self.marker);
        rest
    }
}

/// Passes output on as it comes, without secrets.
pub(crate) struct Relay(JoinHandle<()>);

impl Relay {
    /// Where the pool is to write, and what passes that on.
    pub(crate) fn new(redactor: &Redactor, max_output: usize, to: OutputSink) -> (OutputSink, Relay) {
        let (from_pool, mut chunks) = mpsc::unbounded_channel::<OutputChunk>();
        let mut streams =
            [Stream::Stdout, Stream::Stderr].map(|stream| (stream, Cleaning::new(redactor, max_output)));
        let task = tokio::spawn(async move {
            while let Some(chunk) = chunks.recv().await {
                for (stream, cleaning) in streams.iter_mut().filter(|(stream, _)| *stream == chunk.stream) {
                    send(&to, *stream, cleaning.push(&chunk.bytes));
                }
            }
            streams.into_iter().for_each(|(stream, cleaning)| send(&to, stream, cleaning.finish()));
        });
        (from_pool, Relay(task))
    }

    /// Waits until all of it is passed on, once the pool is done.
    pub(crate) async fn finish(self) {
        if let Err(error) = self.0.await {
            tracing::error!(%error, "output was not passed on");
        }
    }
}

/// A listener that has gone away stops nothing.
fn send(to: &OutputSink, stream: Stream, bytes: Vec<u8>) {
    if !bytes.is_empty() {
        let _ = to.send(OutputChunk { stream, bytes });
    }
}
