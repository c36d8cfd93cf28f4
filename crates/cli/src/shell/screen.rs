//! The host's terminal while the sandbox has it: raw, every byte passed on in both directions.

use std::cell::{Cell, RefCell};
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::termios::{self, SetArg, Termios};
use tokio::runtime::Handle;
use wardian::Terminal;

use super::keyboard::Keyboard;
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
    keyboard: Keyboard,
    /// How it was found.
    before: Termios,
    /// Lines are edited: the terminal can move its cursor.
    edits: bool,
    /// The last byte shown: only after a newline is the cursor surely where a line begins.
    last: Cell<u8>,
}

/// Who has the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The sandbox: every byte as it is, in both directions.
    Raw,
    /// The line editor: keys come one by one and are not echoed.
    Editing,
}

impl Screen {
    /// Takes the terminal. What is typed from now on is kept for the first prompt.
    pub(super) fn new(runtime: Handle) -> Result<Screen> {
        let before = termios::tcgetattr(std::io::stdin()).context("cannot ask the terminal for its mode")?;
        // Those that the line editor does not know either.
        let term = std::env::var("TERM").unwrap_or_default();
        let edits = !["dumb", "cons25", "emacs"].iter().any(|known| term.eq_ignore_ascii_case(known));
        if edits {
            set_mode(&before, Mode::Editing)?;
        }
        let keyboard = Keyboard::listen(&before, edits)?;
        Ok(Screen { runtime, keyboard, before, edits, last: Cell::new(b'\n') })
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
        set_mode(&self.before, Mode::Raw)?;
        // What was read and does not fit into the sandbox's terminal yet.
        let ahead = RefCell::new(Vec::new());
        let done = self.runtime.block_on(async {
            let mut work = std::pin::pin!(work);
            // Beside the rest: a command that does not read what is typed must still be seen to write and to end.
            let mut typing = std::pin::pin!(async {
                loop {
                    let keys = self.keyboard.next_for(terminal).await;
                    ahead.replace(keys.clone());
                    for piece in keys.chunks(Terminal::PIECE) {
                        terminal.type_bytes(piece).await;
                        // What is typed must not come back once more, if the work ends now.
                        ahead.borrow_mut().drain(..piece.len());
                    }
                }
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
        self.show(&terminal.take_shown())?;
        // What nobody read is left for the next reader.
        self.keyboard.put_back([terminal.take_typed(), ahead.take()].concat());
        Ok(done?)
    }

    /// Lets the line editor read a line.
    pub(super) fn edit<T>(&self, read: impl FnOnce() -> T) -> Result<T> {
        set_mode(&self.before, Mode::Editing)?;
        self.begin_line()?;
        let line = self.keyboard.edit(read);
        self.last.set(b'\n');
        Ok(line)
    }

    /// Reads a line as it comes, if this terminal is none for the line editor.
    pub(super) fn plain_line(&self, prompt: &[u8]) -> Option<Result<Option<Vec<u8>>>> {
        if self.edits {
            return None;
        }
        let prompt: Vec<u8> = prompt.iter().copied().filter(|byte| !matches!(byte, 1 | 2)).collect();
        Some(restore(&self.before).and_then(|()| self.show(&prompt)).map(|()| {
            self.last.set(b'\n');
            self.keyboard.line()
        }))
    }

    /// Begins a new line if the cursor is inside one, so that the prompt does not replace what was written there. Where the
    /// cursor is only the terminal knows: a mark and a line's worth of blanks end on the next line, except from the
    /// first column, where the prompt then covers the mark.
    fn begin_line(&self) -> Result<()> {
        if self.last.get() == b'\n' {
            return Ok(());
        }
        let (_, columns) = self.size();
        let blanks = " ".repeat(usize::from(columns).saturating_sub(1));
        self.show(format!("\x1b[7m%\x1b[27m{blanks}\r").as_bytes())
    }

    pub(super) fn show(&self, bytes: &[u8]) -> Result<()> {
        if let Some(&last) = bytes.last() {
            self.last.set(last);
        }
        Ok(out::write(bytes)?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody is left to be told if that fails.
        let _ = restore(&self.before);
    }
}

fn restore(before: &Termios) -> Result<()> {
    termios::tcsetattr(std::io::stdout(), SetArg::TCSADRAIN, before).context("cannot set the terminal's mode")
}

/// Sets the terminal's mode through standard output: standard input may be the line editor's.
fn set_mode(before: &Termios, mode: Mode) -> Result<()> {
    let mut wanted = before.clone();
    termios::cfmakeraw(&mut wanted);
    if mode == Mode::Editing {
        wanted.output_flags = before.output_flags;
    }
    termios::tcsetattr(std::io::stdout(), SetArg::TCSADRAIN, &wanted).context("cannot make the terminal raw")
}
