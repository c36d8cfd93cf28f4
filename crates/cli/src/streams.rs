//! The process's own streams, joined to a run's.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::mpsc;
use wardian::{Source, SourceRead};

/// How many pieces of output may wait for a slow terminal before the guest does.
const PIECES: usize = 16;

/// Standard input, read only when the guest asks, and no more than it asks for: the rest is left to whoever comes next.
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

/// Reads what there is, or waits for it, also where whoever started this made the stream non-blocking.
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

/// A thread that writes what the run produces, and the channel to it.
pub(crate) fn copy_to(
    mut writer: impl Write + Send + 'static,
) -> (mpsc::Sender<Vec<u8>>, JoinHandle<std::io::Result<()>>) {
    let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(PIECES);
    let thread = std::thread::spawn(move || {
        while let Some(piece) = pieces.blocking_recv() {
            // Returning closes the channel, which tells the guest, as a broken pipe would.
            writer.write_all(&piece).and_then(|()| writer.flush())?;
        }
        Ok(())
    });
    (sender, thread)
}
