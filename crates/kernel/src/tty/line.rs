//! The line discipline: what happens to input before a program reads it, and to output before it is displayed.
//!
//! It matches Linux's, byte for byte; `oracle.rs` types the same things into a real pty. Nothing here waits or locks:
//! the terminal around it does.

use std::collections::VecDeque;

use super::SCREEN;
use super::mode::{Mode, input, local, output, place};
use crate::signal::Signal;

/// The longest line that can be edited, as on Linux.
const MAX_LINE: usize = 4095;
const BELL: u8 = 7;
const BACKSPACE: u8 = 8;

/// Something a program can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Byte(u8),
    /// A byte that ends a line.
    Last(u8),
    /// The end-of-file character: ends a line, and is not part of it.
    Eof,
}

/// Which part of a line an editing character removes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Erase {
    Char,
    Word,
    Line,
}

/// A terminal's two directions.
#[derive(Default)]
pub(crate) struct Line {
    pub(super) mode: Mode,
    /// The line being typed.
    editing: Vec<u8>,
    /// What can be read.
    ready: VecDeque<Key>,
    /// The next byte is taken literally.
    literal: bool,
    /// Output is held back by the stop character.
    pub(super) stopped: bool,
    /// Nothing is echoed now: the host has not shown what there is.
    full: bool,
    /// Where the cursor is, and where it was when the line being typed began.
    column: usize,
    start: usize,
}

impl Line {
    /// Handles a typed byte: echoes onto `screen`, returns the signal it sends. A screen that is full gets no echo: one byte can
    /// be worth a whole line (`REPRINT`), so neither memory nor time may depend on what is typed alone.
    pub(super) fn receive(&mut self, byte: u8, screen: &mut Vec<u8>) -> Option<Signal> {
        self.full = screen.len() >= SCREEN;
        let signal = self.handle(byte, screen);
        self.full = false;
        signal
    }

    fn handle(&mut self, byte: u8, echo: &mut Vec<u8>) -> Option<Signal> {
        let byte = if self.mode.input(input::ISTRIP) { byte & 0x7f } else { byte };
        if std::mem::take(&mut self.literal) {
            self.keep(byte, false, echo);
            return None;
        }
        if self.flow(byte) {
            return None;
        }
        if let Some(signal) = self.mode.signal(byte) {
            self.interrupt(byte, echo);
            return Some(signal);
        }
        let (byte, translated) = match byte {
            b'\r' if self.mode.input(input::IGNCR) => return None,
            b'\r' if self.mode.input(input::ICRNL) => (b'\n', true),
            b'\n' if self.mode.input(input::INLCR) => (b'\r', true),
            other => (other, false),
        };
        if !self.mode.local(local::ICANON) || !self.edit(byte, echo) {
            self.keep(byte, translated, echo);
        }
        None
    }

    /// The stop and start characters; true when the byte was one.
    fn flow(&mut self, byte: u8) -> bool {
        if !self.mode.input(input::IXON) {
            return false;
        }
        let (start, stop) = (self.mode.is(byte, place::START), self.mode.is(byte, place::STOP));
        if start || (self.stopped && self.mode.input(input::IXANY)) {
            self.stopped = false;
        } else if stop {
            self.stopped = true;
        }
        start || stop
    }

    /// Discards unread input because of a signal.
    fn interrupt(&mut self, byte: u8, echo: &mut Vec<u8>) {
        if !self.mode.local(local::NOFLSH) {
            self.flush();
            // The screen is cleared, too.
            self.full = false;
        }
        self.stopped = false;
        if self.mode.local(local::ECHO) {
            self.echo(byte, echo);
        }
    }

    /// Discards what was typed.
    pub(super) fn flush(&mut self) {
        self.editing.clear();
        self.ready.clear();
        self.literal = false;
    }

    /// The characters that edit or end a line; true when the byte was one.
    fn edit(&mut self, byte: u8, echo: &mut Vec<u8>) -> bool {
        let extended = self.mode.local(local::IEXTEN);
        let is = |place| self.mode.is(byte, place);
        if is(place::ERASE) {
            self.erase(Erase::Char, echo);
        } else if is(place::KILL) {
            self.erase(Erase::Line, echo);
        } else if extended && is(place::WERASE) {
            self.erase(Erase::Word, echo);
        } else if extended && is(place::LNEXT) {
            self.literal = true;
            if self.mode.local(local::ECHO) && self.mode.local(local::ECHOCTL) {
                self.put(b'^', echo);
                self.put(BACKSPACE, echo);
            }
        } else if extended && self.mode.local(local::ECHO) && is(place::REPRINT) {
            self.reprint(byte, echo);
        } else if byte == b'\n' {
            if self.mode.local(local::ECHO) || self.mode.local(local::ECHONL) {
                self.put(b'\n', echo);
            }
            self.finish(Key::Last(b'\n'));
        } else if is(place::EOF) {
            self.finish(Key::Eof);
        } else if is(place::EOL) || (extended && is(place::EOL2)) {
            if self.mode.local(local::ECHO) {
                self.begin();
                self.echo(byte, echo);
            }
            self.finish(Key::Last(byte));
        } else {
            return false;
        }
        true
    }

    fn finish(&mut self, end: Key) {
        let line = std::mem::take(&mut self.editing);
        self.ready.extend(line.into_iter().map(Key::Byte));
        self.ready.push_back(end);
    }

    /// Takes a byte literally. A newline is echoed as one only if it was typed as a carriage return.
    fn keep(&mut self, byte: u8, translated: bool, echo: &mut Vec<u8>) {
        let lines = self.mode.local(local::ICANON);
        if self.editing.len() >= MAX_LINE {
            if self.mode.input(input::IMAXBEL) && !self.full {
                echo.push(BELL);
            }
            return;
        }
        if self.mode.local(local::ECHO) {
            if byte == b'\n' && translated {
                self.put(b'\n', echo);
            } else {
                self.begin();
                self.echo(byte, echo);
            }
        }
        if lines { self.editing.push(byte) } else { self.ready.push_back(Key::Byte(byte)) }
    }

    /// Notes where the line begins that is about to be echoed.
    fn begin(&mut self) {
        if self.editing.is_empty() {
            self.start = self.column;
        }
    }

    fn reprint(&mut self, byte: u8, echo: &mut Vec<u8>) {
        if self.full {
            return;
        }
        self.echo(byte, echo);
        self.put(b'\n', echo);
        for byte in std::mem::take(&mut self.editing) {
            self.begin();
            self.echo(byte, echo);
            self.editing.push(byte);
        }
    }

    // --- erasing ---

    fn erase(&mut self, what: Erase, echo: &mut Vec<u8>) {
        if self.editing.is_empty() {
            return;
        }
        let shown = self.mode.local(local::ECHO);
        let clean = local::ECHOK | local::ECHOKE | local::ECHOE;
        if what == Erase::Line && (!shown || self.mode.local & clean != clean) {
            self.editing.clear();
            if shown {
                self.echo(self.mode.chars[place::KILL], echo);
                if self.mode.local(local::ECHOK) {
                    self.put(b'\n', echo);
                }
            }
            return;
        }
        let mut seen_word = false;
        while let Some(char) = self.last_char() {
            let first = char[0];
            if what == Erase::Word {
                if is_word(first) {
                    seen_word = true;
                } else if seen_word {
                    break;
                }
            }
            self.editing.truncate(self.editing.len() - char.len());
            if shown {
                self.rub_out(first, what, echo);
            }
            if what == Erase::Char {
                break;
            }
        }
    }

    /// Returns the last character of the line: one byte, or a whole UTF-8 character, which is never split.
    fn last_char(&self) -> Option<Vec<u8>> {
        let mut from = self.editing.len().checked_sub(1)?;
        while self.mode.input(input::IUTF8) && from > 0 && is_continuation(self.editing[from]) {
            from -= 1;
        }
        let whole = !self.mode.input(input::IUTF8) || !is_continuation(self.editing[from]);
        whole.then(|| self.editing[from..].to_vec())
    }

    /// Erases a character, already removed from the line, from the screen.
    fn rub_out(&mut self, byte: u8, what: Erase, echo: &mut Vec<u8>) {
        if self.full {
            return;
        }
        if what == Erase::Char && !self.mode.local(local::ECHOE) {
            self.echo(self.mode.chars[place::ERASE], echo);
            return;
        }
        let steps = match byte {
            b'\t' => {
                let column = self.editing.iter().fold(self.start, |column, &byte| self.after(column, byte));
                for _ in 0..8 - column % 8 {
                    self.put(BACKSPACE, echo);
                }
                return;
            }
            byte if !is_control(byte) => 1,
            _ if self.mode.local(local::ECHOCTL) => 2,
            _ => 0,
        };
        for _ in 0..steps {
            for byte in [BACKSPACE, b' ', BACKSPACE] {
                self.put(byte, echo);
            }
        }
    }

    /// The column after echoing a byte at `column`.
    fn after(&self, column: usize, byte: u8) -> usize {
        match byte {
            b'\t' => column + 8 - column % 8,
            byte if is_control(byte) => column + if self.mode.local(local::ECHOCTL) { 2 } else { 0 },
            byte if self.mode.input(input::IUTF8) && is_continuation(byte) => column,
            _ => column + 1,
        }
    }

    // --- output ---

    /// Echoes a byte that was typed; control characters as `^C`.
    fn echo(&mut self, byte: u8, out: &mut Vec<u8>) {
        if is_control(byte) && byte != b'\t' && self.mode.local(local::ECHOCTL) {
            self.put(b'^', out);
            self.put(byte ^ 0x40, out);
        } else {
            self.put(byte, out);
        }
    }

    /// Processes a byte on its way to the screen.
    pub(super) fn put(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.full {
            return;
        }
        if !self.mode.output(output::OPOST) {
            out.push(byte);
            return;
        }
        match byte {
            b'\n' => {
                if self.mode.output(output::ONLCR) {
                    out.push(b'\r');
                }
                if self.mode.output(output::ONLRET) {
                    self.column = 0;
                }
                if self.mode.output(output::ONLCR) {
                    (self.column, self.start) = (0, 0);
                }
                out.push(b'\n');
            }
            b'\r' if self.mode.output(output::ONOCR) && self.column == 0 => {}
            b'\r' if self.mode.output(output::OCRNL) => {
                if self.mode.output(output::ONLRET) {
                    self.column = 0;
                }
                out.push(b'\n');
            }
            b'\r' => {
                (self.column, self.start) = (0, 0);
                out.push(b'\r');
            }
            b'\t' => {
                let spaces = 8 - self.column % 8;
                self.column += spaces;
                if self.mode.output & output::XTABS == output::XTABS {
                    out.extend(std::iter::repeat_n(b' ', spaces));
                } else {
                    out.push(b'\t');
                }
            }
            BACKSPACE => {
                self.column = self.column.saturating_sub(1);
                out.push(BACKSPACE);
            }
            byte => {
                let inner = self.mode.input(input::IUTF8) && is_continuation(byte);
                if !is_control(byte) && !inner {
                    self.column += 1;
                }
                out.push(byte);
            }
        }
    }

    // --- reading ---

    /// Returns how many bytes a read would get now; `Some(0)` if it would see the end of file.
    pub(super) fn readable(&self) -> Option<usize> {
        if !self.mode.local(local::ICANON) {
            let bytes = self.ready.iter().filter(|key| **key != Key::Eof).count();
            return (bytes > 0).then_some(bytes);
        }
        let end = self.ready.iter().position(|key| !matches!(key, Key::Byte(_)))?;
        Some(if self.ready[end] == Key::Eof { end } else { end + 1 })
    }

    /// Returns the number of bytes typed and not read.
    pub(super) fn waiting(&self) -> usize {
        self.ready.len() + self.editing.len()
    }

    /// Reads at most one line, or in raw mode whatever there is.
    pub(super) fn take(&mut self, buf: &mut [u8]) -> usize {
        let lines = self.mode.local(local::ICANON);
        let mut n = 0;
        while let Some(key) = self.ready.front().copied() {
            match key {
                Key::Eof if lines => {
                    self.ready.pop_front();
                    break;
                }
                Key::Eof => {
                    self.ready.pop_front();
                    continue;
                }
                _ if n == buf.len() => break,
                Key::Byte(byte) | Key::Last(byte) => {
                    self.ready.pop_front();
                    buf[n] = byte;
                    n += 1;
                    if lines && matches!(key, Key::Last(_)) {
                        break;
                    }
                }
            }
        }
        n
    }

    /// Returns everything that was typed and not read, the unfinished line last.
    pub(super) fn take_all(&mut self) -> Vec<u8> {
        let ready = std::mem::take(&mut self.ready);
        let bytes = ready.into_iter().filter_map(|key| match key {
            Key::Byte(byte) | Key::Last(byte) => Some(byte),
            Key::Eof => None,
        });
        bytes.chain(std::mem::take(&mut self.editing)).collect()
    }

    /// Changes the mode. Typed input stays: as one line when line mode begins, as it is when it ends.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        let (before, after) = (self.mode.local(local::ICANON), mode.local(local::ICANON));
        if before && !after {
            let line = std::mem::take(&mut self.editing);
            self.ready.extend(line.into_iter().map(Key::Byte));
        } else if after
            && !before
            && let Some(Key::Byte(last)) = self.ready.pop_back()
        {
            self.ready.push_back(Key::Last(last));
        }
        if !mode.input(input::IXON) {
            self.stopped = false;
        }
        self.mode = mode;
    }
}

fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

/// Returns whether Linux treats a byte as part of a word: letters by Latin-1, which most UTF-8 characters begin like.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || (byte >= 0xc0 && byte != 0xd7 && byte != 0xf7)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
