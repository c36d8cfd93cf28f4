//! What is typed: kept in order, and given to the current reader.
//!
//! ```text
//!   your terminal ──► keys nobody has read yet ──┬──► a pseudo-terminal ──► the line editor, a line at a time
//!                        (one thread reads)      └──► the sandbox's terminal, when something in it reads
//! ```
//!
//! The line editor reads as much as there is and drops what follows the line. So it reads from a pseudo-terminal
//! (a pty that becomes standard input), into which the keys of one line are put at a time. What a command did not read
//! goes back to the front of the keys.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, SetArg, SpecialCharacterIndices, Termios};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;
use wardian::Terminal;

/// How many keys may wait to be read before the terminal itself keeps the rest.
const KEYS: usize = 64 * 1024;
/// How many keys are passed on at a time: what the sandbox's terminal takes wholly or not at all.
const PIECE: usize = 4096;
/// How long the editor may take to say that a line is done. After that, the key that usually ends a line did not.
const LINE_DONE: Duration = Duration::from_millis(100);
/// What a terminal sends around pasted text.
const PASTE: [&[u8]; 2] = [b"\x1b[200~", b"\x1b[201~"];

pub(super) struct Keyboard {
    shared: Arc<Shared>,
    /// The other end of the editor's terminal. None where the editor is not used.
    editor: Option<OwnedFd>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when keys came, or the terminal is gone.
    arrived: Notify,
    /// Notified when keys were taken, or somebody else reads.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    keys: VecDeque<u8>,
    reader: Reader,
    /// The terminal is gone: no key will come any more.
    ended: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Reader {
    /// Nobody: the sandbox is being created. Ctrl-C ends the program.
    #[default]
    Nobody,
    Editor,
    Sandbox,
}

impl Keyboard {
    /// Listens to standard input, which is then the editor's terminal, if it is one. `before` is the mode in which the
    /// terminal was found.
    pub(super) fn listen(before: &Termios, editor: bool) -> Result<Keyboard> {
        let terminal = std::io::stdin().as_fd().try_clone_to_owned().context("cannot copy standard input")?;
        let shared =
            Arc::new(Shared { state: Mutex::default(), arrived: Notify::new(), changed: Condvar::new() });
        let keyboard = Keyboard { shared: shared.clone(), editor: editor.then(editor_terminal).transpose()? };
        let before = before.clone();
        std::thread::spawn(move || {
            read_all(&shared, &terminal, &before);
            shared.state.lock().ended = true;
            shared.arrived.notify_waiters();
            shared.changed.notify_all();
        });
        if let Some(editor) = &keyboard.editor {
            let (shared, editor) = (keyboard.shared.clone(), editor.try_clone()?);
            std::thread::spawn(move || feed_editor(&shared, &editor));
        }
        Ok(keyboard)
    }

    /// Gives the keys to the line editor while `read` runs.
    pub(super) fn edit<T>(&self, read: impl FnOnce() -> T) -> T {
        self.hand_to(Reader::Editor);
        let line = read();
        self.hand_to(Reader::Sandbox);
        self.put_back(unread());
        line
    }

    /// The next line, without an editor. None at the end.
    pub(super) fn line(&self) -> Option<Vec<u8>> {
        let mut state = self.shared.state.lock();
        loop {
            if let Some(end) = state.keys.iter().position(|&key| matches!(key, b'\n' | b'\r')) {
                let mut line: Vec<u8> = state.keys.drain(..=end).collect();
                self.shared.changed.notify_all();
                line.pop();
                return Some(line);
            }
            if state.ended {
                return None;
            }
            self.shared.changed.wait(&mut state);
        }
    }

    /// Keys for the sandbox's terminal: when something reads there, or one acts at once, as Ctrl-C does.
    pub(super) async fn next_for(&self, terminal: &Terminal) -> Vec<u8> {
        self.hand_to(Reader::Sandbox);
        loop {
            let mut arrived = std::pin::pin!(self.shared.arrived.notified());
            arrived.as_mut().enable();
            if let Some(keys) = self.take_for(terminal) {
                return keys;
            }
            tokio::select! {
                () = arrived => {}
                () = terminal.input_wanted(), if !self.shared.state.lock().keys.is_empty() => {}
            }
        }
    }

    fn take_for(&self, terminal: &Terminal) -> Option<Vec<u8>> {
        let mut state = self.shared.state.lock();
        let urgent = state.keys.iter().rposition(|&key| terminal.acts_at_once(key)).map(|last| last + 1);
        // A line at a time: what follows may be for somebody else.
        let line = state.keys.iter().position(|&key| matches!(key, b'\r' | b'\n')).map(|end| end + 1);
        let wanted = terminal.wants_input().then(|| line.unwrap_or(state.keys.len()));
        let count = wanted.max(urgent).unwrap_or(0).min(PIECE);
        let keys: Vec<u8> = state.keys.drain(..count).collect();
        self.shared.changed.notify_all();
        (!keys.is_empty()).then_some(keys)
    }

    /// Puts keys that nobody read before all others.
    pub(super) fn put_back(&self, keys: Vec<u8>) {
        let mut state = self.shared.state.lock();
        for key in keys.into_iter().rev() {
            state.keys.push_front(key);
        }
        self.shared.changed.notify_all();
    }

    fn hand_to(&self, reader: Reader) {
        self.shared.state.lock().reader = reader;
        self.shared.changed.notify_all();
    }
}

/// Makes a pseudo-terminal standard input; returns its other end.
fn editor_terminal() -> Result<OwnedFd> {
    let mut mode = termios::tcgetattr(std::io::stdin()).context("cannot ask the terminal for its mode")?;
    termios::cfmakeraw(&mut mode);
    // At a prompt there is nothing to suspend.
    mode.control_chars[SpecialCharacterIndices::VSUSP as usize] = 0;
    let pty = nix::pty::openpty(None, &mode).context("cannot create a terminal")?;
    fcntl(&pty.master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).context("cannot create a terminal")?;
    nix::unistd::dup2_stdin(&pty.slave).context("cannot replace standard input")?;
    Ok(pty.master)
}

/// What the editor has left in its terminal.
fn unread() -> Vec<u8> {
    let (stdin, mut left, mut buf) = (std::io::stdin(), Vec::new(), [0; PIECE]);
    loop {
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        let there = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0);
        match there.then(|| nix::unistd::read(stdin.as_fd(), &mut buf)) {
            Some(Ok(n)) if n > 0 => left.extend_from_slice(&buf[..n]),
            _ => return left,
        }
    }
}

/// Reads the terminal until it is gone.
fn read_all(shared: &Shared, terminal: &OwnedFd, before: &Termios) {
    let mut buf = [0; PIECE];
    loop {
        let keys = match nix::unistd::read(terminal, &mut buf) {
            Ok(0) => return,
            Ok(n) => &buf[..n],
            Err(Errno::EINTR | Errno::EAGAIN) => continue,
            Err(_) => return,
        };
        let mut state = shared.state.lock();
        let signal = keys.iter().find_map(|key| match key {
            0x03 => Some(2),
            0x1c => Some(3),
            _ => None,
        });
        if let (Reader::Nobody, Some(signal)) = (state.reader, signal) {
            let _ = termios::tcsetattr(terminal, SetArg::TCSADRAIN, before);
            std::process::exit(128 + signal);
        }
        state.keys.extend(keys);
        shared.arrived.notify_waiters();
        shared.changed.notify_all();
        while state.keys.len() >= KEYS {
            shared.changed.wait(&mut state);
        }
    }
}

/// Puts the keys of one line into the editor's terminal, as soon as the editor reads.
fn feed_editor(shared: &Shared, editor: &OwnedFd) {
    let mut lines = Lines::default();
    loop {
        let line = {
            let mut state = shared.state.lock();
            while state.reader != Reader::Editor || state.keys.is_empty() {
                if state.ended && state.keys.is_empty() && state.reader == Reader::Editor {
                    // Ctrl-D, as the end of the terminal would be.
                    drop(state);
                    let _ = nix::unistd::write(editor, b"\x04");
                    return;
                }
                shared.changed.wait(&mut state);
            }
            let count = lines.next(state.keys.make_contiguous());
            state.keys.drain(..count).collect::<Vec<u8>>()
        };
        let mut rest = &line[..];
        while let Ok(n) = nix::unistd::write(editor, rest)
            && n < rest.len()
        {
            rest = &rest[n..];
        }
        shared.changed.notify_all();
        if lines.ended {
            wait_for_editor(shared);
        }
    }
}

/// Waits until the editor has returned, or has not although the line should be done.
fn wait_for_editor(shared: &Shared) {
    let until = std::time::Instant::now() + LINE_DONE;
    let mut state = shared.state.lock();
    while state.reader == Reader::Editor {
        if shared.changed.wait_until(&mut state, until).timed_out() {
            return;
        }
    }
}

/// Finds where a line ends among keys that come piece by piece.
#[derive(Default)]
struct Lines {
    /// The last keys, which may be the beginning of a mark.
    recent: Vec<u8>,
    /// Inside pasted text, in which no key ends a line.
    pasting: bool,
    /// The last piece ended a line.
    ended: bool,
}

impl Lines {
    /// How many of the keys are the next piece: as many as the editor's terminal takes, up to the end of the line.
    fn next(&mut self, keys: &[u8]) -> usize {
        let mut count = 0;
        self.ended = false;
        while count < keys.len().min(PIECE / 4) && !self.ended {
            let key = keys[count];
            count += 1;
            self.recent.push(key);
            let mark = PASTE[usize::from(self.pasting)];
            if self.recent.ends_with(mark) {
                self.pasting = !self.pasting;
            }
            let spare = self.recent.len().saturating_sub(mark.len());
            self.recent.drain(..spare);
            // Enter, and Ctrl-C.
            self.ended = !self.pasting && matches!(key, b'\r' | b'\n' | 0x03);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn pasted_text_is_one_line() {
        let mut lines = Lines::default();
        assert_eq!((lines.next(b"echo one\recho two\r"), lines.ended), (9, true));
        assert_eq!((lines.next(b"not yet"), lines.ended), (7, false));
        let pasted = b"a\x1b[200~b\rc\n\x1b[201~\rnext";
        assert_eq!((lines.next(pasted), lines.ended), (pasted.len() - 4, true));
        // A mark may come in two pieces.
        for (piece, ended) in
            [(&b"\x1b[20"[..], false), (b"0~b\rc", false), (b"\x1b[201", false), (b"~\r", true)]
        {
            assert_eq!((lines.next(piece), lines.ended), (piece.len(), ended));
        }
    }
}
