//! Everything the command itself writes, checked in one place.
//!
//! What goes to standard output is what was asked for: if it cannot be written, that is an error of the command. A reader
//! that is gone (`wardian … | head -1`) ends it quietly with 141, the code a shell shows for a program that SIGPIPE ended,
//! as it does for `cat`; a full disk or a closed descriptor is a message and [`USAGE_ERROR`]. What goes to standard error are remarks, and nobody
//! is left to be told if they cannot be written.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

use crate::{USAGE_ERROR, closed};

/// What a shell shows for a program that was ended by SIGPIPE.
const BROKEN_PIPE: u8 = 128 + 13;

/// Standard output or error could not be written.
#[derive(Debug)]
pub(crate) struct OutputError {
    stream: &'static str,
    error: io::Error,
}

impl OutputError {
    pub(crate) fn stdout(error: io::Error) -> OutputError {
        OutputError { stream: "standard output", error }
    }

    pub(crate) fn stderr(error: io::Error) -> OutputError {
        OutputError { stream: "standard error", error }
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}", self.stream, self.error)
    }
}

impl std::error::Error for OutputError {}

/// Writes a line to standard output, as `println!` would, and returns what became of it.
macro_rules! say {
    ($($argument:tt)*) => { $crate::out::write(format!("{}\n", format_args!($($argument)*)).as_bytes()) };
}

/// Writes a line to standard error.
macro_rules! remark {
    ($($argument:tt)*) => { $crate::out::write_remark(format!("{}\n", format_args!($($argument)*)).as_bytes()) };
}

pub(crate) use {remark, say};

/// Writes to standard output, all of it.
pub(crate) fn write(bytes: &[u8]) -> Result<(), OutputError> {
    Stdout.write_all(bytes).and_then(|()| Stdout.flush()).map_err(OutputError::stdout)
}

/// Standard output, which fails if it was closed from the beginning.
pub(crate) struct Stdout;

impl Stdout {
    /// Returns the same for asynchronous writing.
    pub(crate) fn asynchronous() -> Result<tokio::io::Stdout, OutputError> {
        closed::stdout().map_err(OutputError::stdout)?;
        Ok(tokio::io::stdout())
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        closed::stdout()?;
        io::stdout().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Writes to standard error what can be written.
pub(crate) fn write_remark(bytes: &[u8]) {
    let _ = io::stderr().lock().write_all(bytes);
}

/// Shows why a command failed; returns the exit code for it.
pub(crate) fn report(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<OutputError>() {
        Some(output) if output.error.kind() == ErrorKind::BrokenPipe => BROKEN_PIPE,
        _ => {
            remark!("wardian: {error:#}");
            USAGE_ERROR
        }
    }
}

/// Standard error for those who would panic if it cannot be written.
pub(crate) struct Remarks;

impl Write for Remarks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_remark(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream that remembers why it could not be written.
pub(crate) struct Checked<W> {
    inner: W,
    failure: Failure,
}

/// What a [`Checked`] stream remembers.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<io::Error>>>);

impl Failure {
    /// Takes it, if there was one.
    pub(crate) fn take(&self) -> Option<io::Error> {
        self.0.lock().ok()?.take()
    }
}

impl<W> Checked<W> {
    pub(crate) fn new(inner: W) -> (Checked<W>, Failure) {
        let failure = Failure::default();
        (Checked { inner, failure: failure.clone() }, failure)
    }

    fn note<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &polled
            && let Ok(mut failure) = self.failure.0.lock()
        {
            let again = error.raw_os_error().map(io::Error::from_raw_os_error);
            failure.get_or_insert(again.unwrap_or_else(|| error.kind().into()));
        }
        polled
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Checked<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.note(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.note(polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.note(polled)
    }
}
