//! The host's terminal while the sandbox has it: raw, every byte passed on in both directions.

use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, SetArg, Termios};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use wardian::Terminal;

use crate::out;

nix::ioctl_read_bad!(
    /// Asks a terminal for its rows and columns.
    window_size,
    nix::libc::TIOCGWINSZ,
    nix::libc::winsize
);

/// How often the window's size is looked at.
const SIZE_CHECK: Duration = Duration::from_millis(100);
/// What an unknown window is taken for.
const USUAL_SIZE: (u16, u16) = (24, 80);

/// The host's terminal.
pub(super) struct Screen {
    runtime: Handle,
    /// How it was found.
    before: Termios,
}

impl Screen {
    pub(super) fn new(runtime: Handle) -> Result<Screen> {
        let before = termios::tcgetattr(std::io::stdin()).context("cannot ask the terminal for its mode")?;
        Ok(Screen { runtime, before })
    }

    /// Rows and columns.
    pub(super) fn size(&self) -> (u16, u16) {
        let mut size = nix::libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the call fills in the structure behind the pointer, which is live and of the type it wants.
        let asked = unsafe { window_size(std::io::stdout().as_raw_fd(), &mut size) };
        match (size.ws_row, size.ws_col) {
            (0, _) | (_, 0) => USUAL_SIZE,
            _ if asked.is_err() => USUAL_SIZE,
            size => size,
        }
    }

    /// Does `work` while the sandbox's terminal and this one are joined.
    pub(super) fn attend<T, E>(
        &self,
        terminal: &Terminal,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T>
    where
        anyhow::Error: From<E>,
    {
        let (rows, columns) = self.size();
        terminal.resize(rows, columns);
        let _raw = self.raw()?;
        let mut keyboard = Keyboard::listen()?;
        // What was read and does not fit into the sandbox's terminal yet.
        let ahead = RefCell::new(Vec::new());
        let done = self.runtime.block_on(async {
            let mut work = std::pin::pin!(work);
            // Beside the rest: a command that does not read what is typed must still be seen to write and to end.
            let mut typing = std::pin::pin!(async {
                while let Some(bytes) = keyboard.bytes.recv().await {
                    ahead.replace(bytes.clone());
                    terminal.type_bytes(&bytes).await;
                    ahead.take();
                }
                std::future::pending::<()>().await;
            });
            let mut size = tokio::time::interval(SIZE_CHECK);
            loop {
                tokio::select! {
                    biased;
                    done = &mut work => break Ok(done),
                    () = &mut typing => {}
                    Some(shown) = terminal.shown() => {
                        if let Err(error) = self.show(&shown) {
                            break Err(error);
                        }
                    }
                    _ = size.tick() => {
                        let (rows, columns) = self.size();
                        terminal.resize(rows, columns);
                    }
                }
            }
        })?;
        // The keyboard's pieces are typed wholly or not at all.
        terminal.type_now(&ahead.take());
        for bytes in keyboard.stop() {
            terminal.type_now(&bytes);
        }
        self.show(&terminal.take_shown())?;
        Ok(done?)
    }

    fn raw(&self) -> Result<RestoreOnDrop<'_>> {
        let mut raw = self.before.clone();
        termios::cfmakeraw(&mut raw);
        termios::tcsetattr(std::io::stdin(), SetArg::TCSADRAIN, &raw)
            .context("cannot make the terminal raw")?;
        Ok(RestoreOnDrop(&self.before))
    }

    pub(super) fn show(&self, bytes: &[u8]) -> Result<()> {
        Ok(out::write(bytes)?)
    }

    /// A line that was typed ahead, after its prompt.
    pub(super) fn show_line(&self, prompt: &[u8], line: &str) -> Result<()> {
        let prompt: Vec<u8> = prompt.iter().copied().filter(|byte| !matches!(byte, 1 | 2)).collect();
        self.show(&[&prompt, line.as_bytes(), b"\n"].concat())
    }
}

/// Gives the terminal back as it was.
struct RestoreOnDrop<'a>(&'a Termios);

impl Drop for RestoreOnDrop<'_> {
    fn drop(&mut self) {
        // Nobody is left to be told if that fails.
        let _ = termios::tcsetattr(std::io::stdin(), SetArg::TCSADRAIN, self.0);
    }
}

/// A thread that reads what is typed until it is told to stop, and not a byte more.
struct Keyboard {
    bytes: mpsc::Receiver<Vec<u8>>,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    fn listen() -> Result<Keyboard> {
        let (stopped, stop) = nix::unistd::pipe().context("cannot create a pipe")?;
        let (sender, bytes) = mpsc::channel(16);
        let thread = std::thread::spawn(move || read_until(&stopped, &sender));
        Ok(Keyboard { bytes, stop: Some(stop), thread: Some(thread) })
    }

    /// Stops; answers what was read and not passed on yet.
    fn stop(mut self) -> Vec<Vec<u8>> {
        self.end();
        let mut rest = Vec::new();
        while let Ok(bytes) = self.bytes.try_recv() {
            rest.push(bytes);
        }
        rest
    }

    fn end(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.bytes.close();
        self.end();
    }
}

/// Reads standard input until the other end of `stopped` is closed.
fn read_until(stopped: &OwnedFd, sender: &mpsc::Sender<Vec<u8>>) {
    let stdin = std::io::stdin();
    let mut buf = [0; 4096];
    loop {
        let mut fds =
            [PollFd::new(stopped.as_fd(), PollFlags::POLLIN), PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => continue,
            Err(_) => return,
        }
        let stop = fds[0].revents().is_some_and(|events| !events.is_empty());
        if stop {
            return;
        }
        // Past std's own buffer: what is not read here belongs to the line editor.
        match nix::unistd::read(stdin.as_fd(), &mut buf) {
            Ok(0) => return,
            Ok(n) => {
                if sender.blocking_send(buf[..n].to_vec()).is_err() {
                    return;
                }
            }
            Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => {}
            Err(_) => return,
        }
    }
}
