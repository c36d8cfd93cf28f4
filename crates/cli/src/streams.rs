//! The process's own streams, joined to a run's.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::mpsc;
use wardian::{
    InputRead as SourceRead, InputSource as Source, OutputPiece as Piece, OutputStream as Stream, Run,
};

use crate::out::{self, OutputError};

/// How many pieces of output may wait for a slow terminal before the guest does.
const PIECES: usize = 16;

/// Standard input, read only when the guest asks, and no more than it asks for: the rest is left to the next reader.
/// So past the buffer that the standard library keeps.
pub(crate) struct Stdin;

impl Source for Stdin {
    fn read(&self, max: usize) -> SourceRead<'_> {
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || {
                let mut buf = vec![0; max];
                let n = read(std::io::stdin().as_fd(), &mut buf)?;
                buf.truncate(n);
                Ok(buf)
            });
            reading.await.map_err(std::io::Error::other)?
        })
    }

    fn is_ready(&self) -> Option<bool> {
        wait(std::io::stdin().as_fd(), PollTimeout::ZERO).ok()
    }
}

/// Reads what there is, or waits for it, even if the parent process made the stream non-blocking.
fn read(stdin: BorrowedFd<'_>, buf: &mut [u8]) -> nix::Result<usize> {
    loop {
        match nix::unistd::read(stdin, buf) {
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => drop(wait(stdin, PollTimeout::NONE)),
            read => return read,
        }
    }
}

/// Whether a read would return at once, by the time that `timeout` has passed.
fn wait(stdin: BorrowedFd<'_>, timeout: PollTimeout) -> nix::Result<bool> {
    poll(&mut [PollFd::new(stdin, PollFlags::POLLIN)], timeout).map(|ready| ready > 0)
}

/// The threads that write what a run produces.
pub(crate) struct Copying(Vec<JoinHandle<Result<(), OutputError>>>);

impl Copying {
    /// Waits until all is written; the first that could not be is the error.
    pub(crate) fn end(self) -> Result<(), OutputError> {
        let panicked = |_| Err(OutputError::stdout(std::io::Error::other("its writer panicked")));
        let ended: Vec<_> = self.0.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect();
        ended.into_iter().collect()
    }
}

/// Copies a run's output to this process's. Where both streams are the same file outside, they are written by one thread, in the
/// order in which the run writes them; else each has its own, and a reader that is slow with one does not hold up the
/// other.
pub(crate) fn copy_output(run: Run) -> (Run, Copying) {
    if are_one(std::io::stdout().as_fd(), std::io::stderr().as_fd()) {
        let (sender, mut pieces) = mpsc::channel::<Piece>(PIECES);
        let thread = std::thread::spawn(move || {
            while let Some(Piece { stream, bytes, .. }) = pieces.blocking_recv() {
                write(stream, &bytes)?;
            }
            Ok(())
        });
        return (run.on_output(sender), Copying(vec![thread]));
    }
    let copy = |stream| {
        let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(PIECES);
        let thread = std::thread::spawn(move || {
            while let Some(piece) = pieces.blocking_recv() {
                // Returning closes the channel, which tells the guest, as a broken pipe would.
                write(stream, &piece)?;
            }
            Ok(())
        });
        (sender, thread)
    };
    let ((stdout, stdout_thread), (stderr, stderr_thread)) = (copy(Stream::Stdout), copy(Stream::Stderr));
    (run.on_stdout(stdout).on_stderr(stderr), Copying(vec![stdout_thread, stderr_thread]))
}

/// Copies output that comes in order, both streams by one thread.
pub(crate) fn copy_in_order(pieces: usize) -> (mpsc::Sender<(Stream, Vec<u8>)>, Copying) {
    let (sender, mut waiting) = mpsc::channel::<(Stream, Vec<u8>)>(pieces);
    let thread = std::thread::spawn(move || {
        while let Some((stream, bytes)) = waiting.blocking_recv() {
            write(stream, &bytes)?;
        }
        Ok(())
    });
    (sender, Copying(vec![thread]))
}

fn write(stream: Stream, bytes: &[u8]) -> Result<(), OutputError> {
    match stream {
        Stream::Stdout => {
            out::Stdout.write_all(bytes).and_then(|()| out::Stdout.flush()).map_err(OutputError::stdout)
        }
        Stream::Stderr => std::io::stderr().lock().write_all(bytes).map_err(OutputError::stderr),
    }
}

/// Whether two descriptors lead to the same file, pipe or terminal.
fn are_one(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let file = |fd: BorrowedFd<'_>| nix::sys::stat::fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino));
    let terminal = |fd: BorrowedFd<'_>| nix::sys::termios::tcgetsid(fd).ok();
    // A terminal can have two names, but it has one session.
    (file(one).is_some() && file(one) == file(other))
        || (terminal(one).is_some() && terminal(one) == terminal(other))
}
