//! A terminal that a program has to itself: every key as it is pressed, and the screen given back as it was.

use std::collections::VecDeque;
use std::time::Duration;
use wardian_abi as abi;
use wardian_abi::{Dir, Disposition, Errno, Fd, TerminalMode, open_flags};

/// Bits of a terminal's flags: carriage returns become newlines, stop and start characters, signals, lines, echo.
const ICRNL: u32 = 0o400;
const IXON: u32 = 0o2000;
const ISIG: u32 = 0o1;
const ICANON: u32 = 0o2;
const ECHO: u32 = 0o10;
const IEXTEN: u32 = 0o100_000;

const SIGHUP: i32 = 1;
const SIGTERM: i32 = 15;
const SIGWINCH: i32 = 28;

/// How long the rest of a key's sequence may take to come.
const SEQUENCE: Duration = Duration::from_millis(50);

/// What was pressed, or happened meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    Char(char),
    /// A byte that is no text.
    Byte(u8),
    /// With the letter in upper case, or the sign.
    Ctrl(u8),
    Alt(u8),
    Enter,
    Tab,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Escape,
    /// Something that means nothing to us.
    Unknown,
    /// The window has another size.
    Resize,
    /// The terminal is gone, or the program is told to end.
    Gone,
}

pub struct Tty {
    fd: Fd,
    usual: TerminalMode,
    alternate: bool,
    /// Whether Escape and a key that follows at once are one key, with Alt.
    alt: bool,
    signals: Vec<(i32, Disposition)>,
    /// Bytes that were read and are no part of a key yet.
    ahead: VecDeque<u8>,
}

impl Tty {
    /// Takes the terminal. With `alternate`, the screen as it was comes back at the end.
    pub fn open(alternate: bool) -> Option<Tty> {
        let fd = abi::open(Dir::CWD, b"/dev/tty", open_flags::RDWR | open_flags::CLOEXEC, 0).ok()?;
        let usual = abi::tcgetattr(fd).ok()?;
        let mut raw = usual;
        raw.input &= !(ICRNL | IXON);
        raw.local &= !(ISIG | ICANON | ECHO | IEXTEN);
        abi::tcsetattr(fd, &raw, false).ok()?;
        let flag = |signal| Some((signal, abi::sigaction(signal, Disposition::Flag).ok()?));
        let signals = [SIGHUP, SIGTERM, SIGWINCH].into_iter().filter_map(flag).collect();
        let tty = Tty { fd, usual, alternate, alt: true, signals, ahead: VecDeque::new() };
        if alternate {
            tty.put(b"\x1b[?1049h");
        }
        Some(tty)
    }

    /// Makes Escape a key of its own, even if other keys come with it in one write.
    pub fn without_alt(mut self) -> Tty {
        self.alt = false;
        self
    }

    /// Rows and columns.
    pub fn size(&self) -> (usize, usize) {
        let (rows, columns) = abi::winsize(self.fd).unwrap_or((24, 80));
        (usize::from(rows).max(1), usize::from(columns).max(1))
    }

    pub fn put(&self, bytes: &[u8]) {
        // A terminal that is gone shows when the next key is read.
        let _ = abi::write_all(self.fd, bytes);
    }

    /// Waits for the next key.
    pub fn key(&mut self) -> Key {
        let Some(byte) = self.byte(None) else { return self.interruption() };
        match byte {
            b'\r' | b'\n' => Key::Enter,
            b'\t' => Key::Tab,
            8 | 0x7f => Key::Backspace,
            0x1b => self.escape(),
            0 => Key::Ctrl(b'@'),
            1..=0x1f => Key::Ctrl(byte | 0x40),
            byte if byte < 0x80 => Key::Char(char::from(byte)),
            byte => self.character(byte),
        }
    }

    /// Why no byte came: a signal, or the end.
    fn interruption(&self) -> Key {
        let arrived = abi::sigpending();
        match arrived >> SIGWINCH & 1 == 1 && arrived & (1 << SIGHUP | 1 << SIGTERM) == 0 {
            true => Key::Resize,
            false => Key::Gone,
        }
    }

    /// The next byte, if one comes in time. None also after a signal and at the end.
    fn byte(&mut self, timeout: Option<Duration>) -> Option<u8> {
        if let Some(byte) = self.ahead.pop_front() {
            return Some(byte);
        }
        if let Some(timeout) = timeout
            && !abi::poll_read(self.fd, Some(timeout)).unwrap_or(false)
        {
            return None;
        }
        let mut block = [0; 1024];
        match abi::read(self.fd, &mut block) {
            Ok(n) if n > 0 => self.ahead.extend(&block[..n]),
            // A signal that nobody waits for ends no program.
            Err(Errno::INTR) if timeout.is_some() => return None,
            _ => return None,
        }
        self.ahead.pop_front()
    }

    /// The rest of a character of several bytes.
    fn character(&mut self, first: u8) -> Key {
        let length = match first {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return Key::Byte(first),
        };
        let mut bytes = vec![first];
        while bytes.len() < length {
            match self.byte(Some(SEQUENCE)) {
                Some(byte) if byte & 0xc0 == 0x80 => bytes.push(byte),
                Some(byte) => {
                    self.ahead.push_front(byte);
                    break;
                }
                None => break,
            }
        }
        match std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next()) {
            Some(char) => Key::Char(char),
            None => {
                for &byte in bytes[1..].iter().rev() {
                    self.ahead.push_front(byte);
                }
                Key::Byte(first)
            }
        }
    }

    fn escape(&mut self) -> Key {
        match self.byte(Some(SEQUENCE)) {
            None => Key::Escape,
            Some(b'[') => self.sequence(),
            Some(b'O') => self.function(),
            Some(byte) if self.alt => Key::Alt(byte.to_ascii_uppercase()),
            Some(byte) => {
                self.ahead.push_front(byte);
                Key::Escape
            }
        }
    }

    /// `ESC O letter`.
    fn function(&mut self) -> Key {
        let letter = self.byte(Some(SEQUENCE));
        let key = letter.map_or(Key::Unknown, named);
        if self.alt || key != Key::Unknown {
            return key;
        }
        if let Some(letter) = letter {
            self.ahead.push_front(letter);
        }
        self.ahead.push_front(b'O');
        Key::Escape
    }

    /// `ESC [ numbers letter`.
    fn sequence(&mut self) -> Key {
        let mut numbers = Vec::new();
        loop {
            match self.byte(Some(SEQUENCE)) {
                Some(byte @ (b'0'..=b'9' | b';')) if numbers.len() < 16 => numbers.push(byte),
                Some(b'~') => break,
                Some(byte) => return named(byte),
                None => return Key::Unknown,
            }
        }
        match numbers.split(|&byte| byte == b';').next() {
            Some(b"1" | b"7") => Key::Home,
            Some(b"4" | b"8") => Key::End,
            Some(b"3") => Key::Delete,
            Some(b"5") => Key::PageUp,
            Some(b"6") => Key::PageDown,
            _ => Key::Unknown,
        }
    }
}

fn named(letter: u8) -> Key {
    match letter {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => Key::Unknown,
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        if self.alternate {
            self.put(b"\x1b[?1049l");
        }
        let _ = abi::tcsetattr(self.fd, &self.usual, false);
        for &(signal, before) in &self.signals {
            let _ = abi::sigaction(signal, before);
        }
        let _ = abi::close(self.fd);
    }
}
