//! How a terminal processes input and output: the flags and characters of Linux's `struct termios`.

use wardian_vfs::{Errno, Result};

use crate::signal::Signal;

/// Flags of [`Mode::input`].
pub(super) mod input {
    pub(crate) const ISTRIP: u32 = 0o40;
    pub(crate) const INLCR: u32 = 0o100;
    pub(crate) const IGNCR: u32 = 0o200;
    pub(crate) const ICRNL: u32 = 0o400;
    pub(crate) const IXON: u32 = 0o2000;
    pub(crate) const IXANY: u32 = 0o4000;
    pub(crate) const IMAXBEL: u32 = 0o20000;
    pub(crate) const IUTF8: u32 = 0o40000;
}

/// Flags of [`Mode::output`].
pub(super) mod output {
    pub(crate) const OPOST: u32 = 0o1;
    pub(crate) const ONLCR: u32 = 0o4;
    pub(crate) const OCRNL: u32 = 0o10;
    pub(crate) const ONOCR: u32 = 0o20;
    pub(crate) const ONLRET: u32 = 0o40;
    pub(crate) const XTABS: u32 = 0o14000;
}

/// Flags of [`Mode::local`].
pub(super) mod local {
    pub(crate) const ISIG: u32 = 0o1;
    pub(crate) const ICANON: u32 = 0o2;
    pub(crate) const ECHO: u32 = 0o10;
    pub(crate) const ECHOE: u32 = 0o20;
    pub(crate) const ECHOK: u32 = 0o40;
    pub(crate) const ECHONL: u32 = 0o100;
    pub(crate) const NOFLSH: u32 = 0o200;
    pub(crate) const TOSTOP: u32 = 0o400;
    pub(crate) const ECHOCTL: u32 = 0o1000;
    pub(crate) const ECHOKE: u32 = 0o4000;
    pub(crate) const IEXTEN: u32 = 0o100000;
}

/// Places in [`Mode::chars`].
pub(super) mod place {
    pub(crate) const INTR: usize = 0;
    pub(crate) const QUIT: usize = 1;
    pub(crate) const ERASE: usize = 2;
    pub(crate) const KILL: usize = 3;
    pub(crate) const EOF: usize = 4;
    pub(crate) const TIME: usize = 5;
    pub(crate) const MIN: usize = 6;
    pub(crate) const START: usize = 8;
    pub(crate) const STOP: usize = 9;
    pub(crate) const SUSP: usize = 10;
    pub(crate) const EOL: usize = 11;
    pub(crate) const REPRINT: usize = 12;
    pub(crate) const WERASE: usize = 14;
    pub(crate) const LNEXT: usize = 15;
    pub(crate) const EOL2: usize = 16;
}

/// The size in bytes of a mode as guests see it.
pub(crate) const MODE_SIZE: u32 = 36;

/// The settings of a terminal, with Linux's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    /// `c_iflag`: how each typed byte is processed.
    pub input: u32,
    /// `c_oflag`: how each written byte is processed.
    pub output: u32,
    /// `c_cflag`: stored, but meaningless without a serial line.
    pub control: u32,
    /// `c_lflag`: lines, echo, signals.
    pub local: u32,
    /// `c_cc`: the special characters.
    pub chars: [u8; 19],
}

impl Default for Mode {
    /// Returns the mode of a new Linux terminal, with UTF-8: lines with echo, signals, newlines written as CR LF.
    fn default() -> Mode {
        use local::*;
        let mut chars = [0; 19];
        let given = [
            (place::INTR, 0x03),
            (place::QUIT, 0x1c),
            (place::ERASE, 0x7f),
            (place::KILL, 0x15),
            (place::EOF, 0x04),
            (place::MIN, 1),
            (place::START, 0x11),
            (place::STOP, 0x13),
            (place::SUSP, 0x1a),
            (place::REPRINT, 0x12),
            (13, 0x0f),
            (place::WERASE, 0x17),
            (place::LNEXT, 0x16),
        ];
        for (place, char) in given {
            chars[place] = char;
        }
        Mode {
            input: input::ICRNL | input::IXON | input::IUTF8,
            output: output::OPOST | output::ONLCR,
            control: 0o277,
            local: ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
            chars,
        }
    }
}

impl Mode {
    pub(super) fn input(&self, flag: u32) -> bool {
        self.input & flag != 0
    }

    pub(super) fn output(&self, flag: u32) -> bool {
        self.output & flag != 0
    }

    pub(super) fn local(&self, flag: u32) -> bool {
        self.local & flag != 0
    }

    /// Returns whether `byte` is the character at `place`. A NUL there means that there is none.
    pub(super) fn is(&self, byte: u8, place: usize) -> bool {
        byte != 0 && self.chars[place] == byte
    }

    /// Returns the signal that typing `byte` sends.
    pub(super) fn signal(&self, byte: u8) -> Option<Signal> {
        if !self.local(local::ISIG) {
            return None;
        }
        let signals = [
            (place::INTR, crate::signal::SIGINT),
            (place::QUIT, crate::signal::SIGQUIT),
            (place::SUSP, crate::signal::SIGTSTP),
        ];
        signals.into_iter().find(|(place, _)| self.is(byte, *place)).map(|(_, signal)| signal)
    }

    /// Returns it as a guest sees it: the four flag words, then the characters.
    pub(crate) fn to_abi(self) -> Vec<u8> {
        let words = [self.input, self.output, self.control, self.local];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(self.chars);
        bytes.push(0);
        bytes
    }

    pub(crate) fn from_abi(bytes: &[u8]) -> Result<Mode> {
        let word = |i: usize| -> Result<u32> {
            let raw = bytes.get(i * 4..i * 4 + 4).ok_or(Errno::EINVAL)?;
            Ok(u32::from_le_bytes(raw.try_into().map_err(|_| Errno::EINVAL)?))
        };
        let chars = bytes.get(16..35).and_then(|chars| chars.try_into().ok()).ok_or(Errno::EINVAL)?;
        Ok(Mode { input: word(0)?, output: word(1)?, control: word(2)?, local: word(3)?, chars })
    }
}
