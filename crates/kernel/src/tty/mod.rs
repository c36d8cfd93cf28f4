//! A terminal: a host types on it, guests read and write it.
//!
//! ```text
//!   host                           Terminal                            guests
//!   type_bytes ──► line discipline ──► lines, or bytes ──► read    foreground group
//!        │              │ echo                                          ▲
//!        │              ▼                                               │
//!   shown ◄──────── screen buffer ◄── output processing ◄── write       │
//!        └── ^C ^\ ^Z, a new size ──────────── signals ─────────────────┘
//! ```
//!
//! One terminal may serve many commands of a session, one after another; a process of an earlier command that still has
//! it open is then in the background.

mod line;
mod mode;
#[cfg(test)]
mod oracle;

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use wardian_vfs::{Device, Errno, FileKind, Result, Stat};

use crate::machine::Machine;
use crate::pause::pause;
use crate::pipe::Readiness;
use crate::proc::{Pid, Process};
use crate::signal::{Disposition, SIGHUP, SIGTTIN, SIGTTOU, SIGWINCH, Signal};
use line::Line;
pub(crate) use mode::MODE_SIZE;
pub use mode::Mode;
use mode::{input, local, place};

/// How much output may wait for a slow host before writers wait, and what is typed is not echoed any more.
const SCREEN: usize = 64 * 1024;
/// How much may be typed ahead before the host waits.
const TYPED: usize = 64 * 1024;

/// A terminal of a host.
pub struct Terminal {
    state: Mutex<State>,
    /// Notified when something can be read, or reading has changed.
    typed: Notify,
    /// Notified when there is output to show.
    drawn: Notify,
    /// Notified when there is space to write again.
    room: Notify,
    /// Notified when something was read.
    eaten: Notify,
    /// Notified when a process found nothing to read.
    wanted: Notify,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").finish_non_exhaustive()
    }
}

struct State {
    line: Line,
    rows: u16,
    columns: u16,
    /// What guests wrote and the host has not shown yet.
    screen: Vec<u8>,
    hung_up: bool,
    /// A process found nothing to read, and nothing was typed since.
    wanted: bool,
    /// The processes it is attached to, and its foreground group.
    machine: Weak<Machine>,
    foreground: Option<Pid>,
}

impl Terminal {
    /// How much is typed at once: a byte may cost as much as the line that it edits is long.
    pub const PIECE: usize = 256;

    /// Creates a terminal of this size, in Linux's default mode.
    pub fn new(rows: u16, columns: u16) -> Arc<Terminal> {
        let state = State {
            line: Line::default(),
            rows,
            columns,
            screen: Vec::new(),
            hung_up: false,
            wanted: false,
            machine: Weak::new(),
            foreground: None,
        };
        Arc::new(Terminal {
            state: Mutex::new(state),
            typed: Notify::new(),
            drawn: Notify::new(),
            room: Notify::new(),
            eaten: Notify::new(),
            wanted: Notify::new(),
        })
    }

    // --- for the host ---

    /// Types bytes. Waits while too much typed input is unread. Of up to [`Terminal::PIECE`] bytes all are typed or, if this is
    /// dropped, none.
    pub async fn type_bytes(&self, bytes: &[u8]) {
        for (number, piece) in bytes.chunks(Terminal::PIECE).enumerate() {
            if number > 0 {
                // Typing may never have to wait, and this thread has others to serve.
                pause().await;
            }
            loop {
                let eaten = self.eaten.notified();
                let mut eaten = std::pin::pin!(eaten);
                eaten.as_mut().enable();
                if self.has_room_for_typing() {
                    break;
                }
                eaten.await;
            }
            self.type_now(piece);
        }
    }

    fn has_room_for_typing(&self) -> bool {
        let state = self.state.lock();
        state.line.waiting() < TYPED || state.hung_up
    }

    /// Types bytes without waiting.
    pub fn type_now(&self, bytes: &[u8]) {
        let mut signals = Vec::new();
        {
            let mut state = self.state.lock();
            let state = &mut *state;
            state.wanted = false;
            let mut shown_before = state.screen.len();
            for &byte in bytes {
                let Some(signal) = state.line.receive(byte, &mut state.screen) else { continue };
                // One that is on its way does not come twice.
                if !signals.contains(&signal) {
                    signals.push(signal);
                }
                // What the interrupted would still have shown is not wanted any more.
                if !state.line.mode.local(local::NOFLSH) {
                    state.screen.drain(..shown_before);
                    shown_before = 0;
                }
            }
        }
        self.wake_all();
        for signal in signals {
            self.signal_foreground(signal);
        }
    }

    /// Returns output and echo as they arrive; `None` once it is hung up and everything is shown.
    pub async fn shown(&self) -> Option<Vec<u8>> {
        loop {
            let mut drawn = std::pin::pin!(self.drawn.notified());
            drawn.as_mut().enable();
            let shown = self.take_shown();
            if !shown.is_empty() {
                return Some(shown);
            }
            if self.state.lock().hung_up {
                return None;
            }
            drawn.await;
        }
    }

    /// Returns the output to show now.
    pub fn take_shown(&self) -> Vec<u8> {
        let mut state = self.state.lock();
        if state.line.stopped {
            return Vec::new();
        }
        let shown = std::mem::take(&mut state.screen);
        drop(state);
        self.room.notify_waiters();
        shown
    }

    /// Returns what was typed and not read.
    pub fn take_typed(&self) -> Vec<u8> {
        let typed = self.state.lock().line.take_all();
        self.eaten.notify_waiters();
        typed
    }

    /// Returns whether a process is waiting for input, or found none when it looked.
    pub fn wants_input(&self) -> bool {
        self.state.lock().wanted
    }

    /// Waits until a process wants input. A host that types no earlier shows nobody's input as a command's output.
    pub async fn input_wanted(&self) {
        loop {
            let mut wanted = std::pin::pin!(self.wanted.notified());
            wanted.as_mut().enable();
            if self.wants_input() {
                return;
            }
            wanted.await;
        }
    }

    /// Returns whether typing `byte` has an effect before anyone reads it: it sends a signal, or stops or starts output.
    pub fn acts_at_once(&self, byte: u8) -> bool {
        let mode = self.mode();
        let flow = [place::START, place::STOP].into_iter().any(|place| mode.is(byte, place));
        mode.signal(byte).is_some() || (flow && mode.input(input::IXON))
    }

    /// Notes that a process found nothing to read.
    fn note_wanted(&self) {
        self.state.lock().wanted = true;
        self.wanted.notify_waiters();
    }

    /// Changes the window size.
    pub fn resize(&self, rows: u16, columns: u16) {
        let mut state = self.state.lock();
        let changed = (state.rows, state.columns) != (rows, columns);
        (state.rows, state.columns) = (rows, columns);
        drop(state);
        if changed {
            self.signal_foreground(SIGWINCH);
        }
    }

    /// Returns rows and columns.
    pub fn size(&self) -> (u16, u16) {
        let state = self.state.lock();
        (state.rows, state.columns)
    }

    /// Returns its mode.
    pub fn mode(&self) -> Mode {
        self.state.lock().line.mode
    }

    /// Sets its mode; `flush` discards what was typed.
    pub fn set_mode(&self, mode: Mode, flush: bool) {
        let mut state = self.state.lock();
        if flush {
            state.line.flush();
        }
        state.line.set_mode(mode);
        drop(state);
        self.wake_all();
    }

    /// Hangs up: readers see the end, writers fail, the foreground group is signalled.
    pub fn hang_up(&self) {
        self.state.lock().hung_up = true;
        self.wake_all();
        self.signal_foreground(SIGHUP);
    }

    fn wake_all(&self) {
        self.typed.notify_waiters();
        self.drawn.notify_waiters();
        self.room.notify_waiters();
        self.eaten.notify_waiters();
    }

    fn signal_foreground(&self, signal: Signal) {
        let (machine, group) = {
            let state = self.state.lock();
            (state.machine.upgrade(), state.foreground)
        };
        if let (Some(machine), Some(group)) = (machine, group) {
            machine.signal_group(group, signal);
        }
    }

    // --- for the kernel ---

    /// Attaches it to the processes of `machine`, with the foreground group `foreground`.
    pub(crate) fn attach(&self, machine: &Arc<Machine>, foreground: Pid) {
        let mut state = self.state.lock();
        state.machine = Arc::downgrade(machine);
        state.foreground = Some(foreground);
        // What an earlier command wanted is nothing to this one.
        state.wanted = false;
    }

    pub(crate) fn foreground(&self) -> Option<Pid> {
        self.state.lock().foreground
    }

    pub(crate) fn set_foreground(&self, group: Pid) {
        self.state.lock().foreground = Some(group);
    }

    pub(crate) async fn read(&self, machine: &Machine, process: &Process, buf: &mut [u8]) -> Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let (min, time) = {
            let chars = self.mode().chars;
            (usize::from(chars[place::MIN]), Duration::from_millis(100) * u32::from(chars[place::TIME]))
        };
        loop {
            self.wait_for_foreground(machine, process, SIGTTIN).await?;
            let mut typed = std::pin::pin!(self.typed.notified());
            typed.as_mut().enable();
            let (readable, lines, hung_up) = {
                let state = self.state.lock();
                (state.line.readable(), state.line.mode.local(local::ICANON), state.hung_up)
            };
            // Nothing is taken before the read is to return: one that is interrupted or killed takes nothing along.
            let there = readable.unwrap_or(0);
            let done = match lines {
                true => readable.is_some(),
                false => there >= buf.len() || (there >= min && (there > 0 || time.is_zero())),
            };
            if done || hung_up {
                return Ok(self.take(buf));
            }
            self.note_wanted();
            // The timer of raw mode runs from the call where nothing need come, else from the first byte.
            let timed = !lines && !time.is_zero() && (min == 0 || there > 0);
            if !timed {
                typed.await;
            } else if tokio::time::timeout(time, typed).await.is_err() {
                return Ok(self.take(buf));
            }
        }
    }

    /// Returns what was typed, if it can be read.
    fn take(&self, buf: &mut [u8]) -> usize {
        let taken = {
            let mut state = self.state.lock();
            state.line.readable().map_or(0, |_| state.line.take(buf))
        };
        self.eaten.notify_waiters();
        taken
    }

    pub(crate) async fn write(&self, machine: &Machine, process: &Process, data: &[u8]) -> Result<usize> {
        loop {
            if self.mode().local(local::TOSTOP) {
                self.wait_for_foreground(machine, process, SIGTTOU).await?;
            }
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            {
                let mut state = self.state.lock();
                if state.hung_up {
                    return Err(Errno::EIO);
                }
                if state.screen.len() < SCREEN && !state.line.stopped {
                    let state = &mut *state;
                    let mut taken = 0;
                    // A tab may become eight bytes.
                    while taken < data.len() && state.screen.len() < SCREEN {
                        state.line.put(data[taken], &mut state.screen);
                        taken += 1;
                    }
                    self.drawn.notify_waiters();
                    return Ok(taken);
                }
            }
            room.await;
        }
    }

    /// Stops a process outside the foreground group until it is in it. One that ignores the signal fails.
    async fn wait_for_foreground(&self, machine: &Machine, process: &Process, signal: Signal) -> Result<()> {
        loop {
            let group = machine.table().get(process.pid).map(|entry| entry.group);
            let foreground = self.foreground();
            let Some(group) = group.filter(|group| foreground.is_some_and(|front| front != *group)) else {
                return Ok(());
            };
            if process.signals.lock().disposition(signal) == Disposition::Ignore {
                return if signal == SIGTTIN { Err(Errno::EIO) } else { Ok(()) };
            }
            machine.signal_group(group, signal);
            // A stopped process is not polled again before it is continued.
            pause().await;
        }
    }

    /// Waits until `process` may change the terminal: it is in the foreground, or ignores or flags SIGTTOU. A shell
    /// takes its terminal back that way.
    pub(crate) async fn wait_to_change(&self, machine: &Machine, process: &Process) -> Result<()> {
        let defiant = process.signals.lock().disposition(SIGTTOU) != Disposition::Default;
        if defiant { Ok(()) } else { self.wait_for_foreground(machine, process, SIGTTOU).await }
    }

    pub(crate) fn readiness(&self) -> Readiness {
        let state = self.state.lock();
        let (readable, hung_up) = (state.line.readable(), state.hung_up);
        drop(state);
        if readable.is_none() {
            self.note_wanted();
        }
        Readiness { bytes: readable.unwrap_or(0), hangup: hung_up || readable == Some(0) }
    }

    pub(crate) fn changed(&self) -> &Notify {
        &self.typed
    }

    /// Returns whether a write would return immediately.
    pub(crate) fn has_room(&self) -> bool {
        let state = self.state.lock();
        state.hung_up || (state.screen.len() < SCREEN && !state.line.stopped)
    }

    /// There may be room for a write.
    pub(crate) fn drained(&self) -> &Notify {
        &self.room
    }
}

/// What a terminal looks like to `fstat`.
pub(crate) fn stat() -> Stat {
    Stat {
        dev: 0,
        ino: 0,
        kind: FileKind::Device(Device::Tty),
        mode: 0o620,
        nlink: 1,
        uid: crate::proc::UID,
        gid: crate::proc::UID,
        size: 0,
        blocks: 0,
        rdev: Device::Tty.rdev(),
        atime: 0,
        mtime: 0,
        ctime: 0,
        version: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line as long as it gets, and what makes the most of it: it is shown again, erased, or rings the bell.
    fn floods() -> [Vec<u8>; 4] {
        let line = [1; 4095].to_vec();
        let again = |byte: u8, times: usize| [line.clone(), vec![byte; times]].concat();
        [again(0x12, 4096), again(b'x', 200_000), again(0x15, 1).repeat(40), b"\t\x7f".repeat(100_000)]
    }

    #[tokio::test]
    async fn echo_to_an_unread_screen_is_bounded_by_the_screen() {
        for flood in floods() {
            let terminal = Terminal::new(24, 80);
            terminal.type_bytes(&flood).await;
            let shown = terminal.take_shown();
            assert!(!shown.is_empty() && shown.len() < SCREEN + 8 * 4096, "{} bytes", shown.len());
            // The reader sees what comes next.
            terminal.type_bytes(b"\x15hello").await;
            assert!(terminal.take_shown().ends_with(b"hello"));
        }
    }

    #[tokio::test]
    async fn an_interrupt_is_shown_on_a_full_screen_and_clears_it() {
        let terminal = Terminal::new(24, 80);
        terminal.type_bytes(&floods()[0]).await;
        terminal.type_bytes(b"\x03").await;
        assert_eq!(terminal.take_shown(), b"^C");
    }

    #[tokio::test]
    async fn much_typing_lets_others_run_in_between() {
        let terminal = Terminal::new(24, 80);
        let flood = floods()[0].clone();
        let typing = terminal.type_bytes(&flood);
        let mut turns = 0;
        let others = async {
            loop {
                turns += 1;
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = typing => {}
            () = others => {}
        }
        assert!(turns >= flood.len() / Terminal::PIECE, "{turns} turns");
    }
}
