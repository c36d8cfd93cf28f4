//! The line discipline against Linux's: the same bytes typed into Wardian's and into a real pty, in the same modes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};

use super::line::Line;
use super::mode::{Mode, input, local, output};

/// A pty of the host's.
struct Pty {
    host: File,
    guest: File,
}

impl Pty {
    fn open(mode: &Mode) -> Pty {
        let (mut host, mut guest) = (0, 0);
        let (name, none) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: two out-pointers to live integers; the others may be null.
        let opened = unsafe { libc::openpty(&mut host, &mut guest, name, none, std::ptr::null_mut()) };
        assert_eq!(opened, 0, "a pty");
        // SAFETY: both descriptors were just made and belong to nobody else.
        let pty = unsafe { Pty { host: File::from_raw_fd(host), guest: File::from_raw_fd(guest) } };
        pty.set(mode);
        for file in [&pty.host, &pty.guest] {
            // SAFETY: sets a flag of a live descriptor.
            unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        }
        pty
    }

    fn set(&self, mode: &Mode) {
        // SAFETY: an all-zero termios is a valid one, and is filled in before it is set.
        let mut termios: libc::termios = unsafe { std::mem::zeroed() };
        termios.c_iflag = mode.input;
        termios.c_oflag = mode.output;
        termios.c_cflag = mode.control;
        termios.c_lflag = mode.local;
        termios.c_cc[..19].copy_from_slice(&mode.chars);
        // SAFETY: a live descriptor and a live structure.
        let set = unsafe { libc::tcsetattr(self.guest.as_raw_fd(), libc::TCSANOW, &termios) };
        assert_eq!(set, 0, "the mode can be set");
    }
}

/// Everything that is there. Linux hands bytes on in a task of its own: a moment without any is not the end.
fn drain(file: &mut File, expected: usize) -> Vec<u8> {
    let (mut all, mut buf) = (Vec::new(), [0; 65536]);
    for _ in 0..400 {
        match file.read(&mut buf) {
            Ok(n) => all.extend_from_slice(&buf[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if all.len() >= expected {
                    return all;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
    all
}

/// What is read, call by call, with a buffer of `size`: `None` where a read would wait.
fn reads_of_ours(line: &mut Line, size: usize) -> Vec<Vec<u8>> {
    let mut reads = Vec::new();
    while line.readable().is_some() {
        let mut buf = vec![0; size];
        let n = line.take(&mut buf);
        buf.truncate(n);
        reads.push(buf);
    }
    reads
}

fn reads_of_linux(pty: &mut Pty, size: usize, expected: usize) -> Vec<Vec<u8>> {
    let mut reads = Vec::new();
    for _ in 0..400 {
        let mut buf = vec![0; size];
        match pty.guest.read(&mut buf) {
            Ok(n) => {
                buf.truncate(n);
                reads.push(buf);
            }
            Err(_) if reads.len() >= expected => return reads,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
    reads
}

/// Types `typed` into both, after `written` was written, and compares the echo and what can be read.
fn compare(mode: &Mode, written: &[u8], typed: &[u8], size: usize) {
    let mut line = Line::default();
    line.set_mode(*mode);
    let mut shown = Vec::new();
    for &byte in written {
        line.put(byte, &mut shown);
    }
    let mut pty = Pty::open(mode);
    pty.guest.write_all(written).expect("a pty takes it");
    assert_eq!(drain(&mut pty.host, shown.len()), shown, "written {written:?} in {mode:?}");
    let mut echo = Vec::new();
    for &byte in typed {
        line.receive(byte, &mut echo);
    }
    pty.host.write_all(typed).expect("a pty takes it");
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let linux = drain(&mut pty.host, echo.len());
    assert_eq!(
        show(&echo),
        show(&linux),
        "the echo of {:?} after {:?} in {mode:?}",
        show(typed),
        show(written)
    );
    let ours = reads_of_ours(&mut line, size);
    let theirs = reads_of_linux(&mut pty, size, ours.len());
    assert_eq!(ours, theirs, "reading {:?} by {size} in {mode:?}", show(typed));
}

/// A mode with some local flags turned off or on.
fn with(change: impl Fn(&mut Mode)) -> Mode {
    let mut mode = Mode::default();
    change(&mut mode);
    mode
}

#[test]
fn lines_are_edited_as_on_linux() {
    let typed: [&[u8]; 16] = [
        b"hello\n",
        b"hello\r",
        b"helo\x7flo\n",
        b"two words\x17three\n",
        b"a.b-c_d\x17\x17x\n",
        b"never mind\x15this\n",
        "na\u{ef}ve \u{1f600}\x7f\x7f\n".as_bytes(),
        b"a\tb\x7f\x7fc\n",
        b"\t\t\x7f\x7f\x7f\n",
        b"ctrl \x01\x02\x7f\x7f\n",
        b"liter\x16\x03al\x16\x7f\n",
        b"again\x12\n",
        b"ab\x04cd\n",
        b"\x04",
        b"ab\x04\x04",
        b"unfinished",
    ];
    for typed in typed {
        for size in [1, 2, 4, 100] {
            compare(&Mode::default(), b"", typed, size);
            compare(&Mode::default(), b"prompt> ", typed, size);
        }
    }
}

#[test]
fn flags_mean_what_they_mean_on_linux() {
    let modes = [
        with(|mode| mode.local &= !local::ECHO),
        with(|mode| mode.local = mode.local & !local::ECHO | local::ECHONL),
        with(|mode| mode.local &= !local::ECHOE),
        with(|mode| mode.local &= !local::ECHOK),
        with(|mode| mode.local &= !local::ECHOKE),
        with(|mode| mode.local &= !local::ECHOCTL),
        with(|mode| mode.local &= !local::IEXTEN),
        with(|mode| mode.local &= !local::ICANON),
        with(|mode| mode.local &= !(local::ICANON | local::ECHO | local::ISIG)),
        with(|mode| mode.input &= !input::ICRNL),
        with(|mode| mode.input |= input::IGNCR),
        with(|mode| mode.input |= input::INLCR),
        with(|mode| mode.input |= input::ISTRIP),
        with(|mode| mode.input &= !input::IUTF8),
        with(|mode| mode.output &= !output::OPOST),
        with(|mode| mode.output &= !output::ONLCR),
        with(|mode| mode.output |= output::OCRNL),
        with(|mode| mode.output |= output::ONOCR),
        with(|mode| mode.output |= output::ONLRET),
        with(|mode| mode.output |= output::XTABS),
    ];
    let typed: [&[u8]; 5] = [
        b"ab\x7fc\r\n",
        b"word one\x17\x15x\ty\x7f\x7f\n",
        b"\x01\x02\x7f\n",
        "\u{e9}\u{e9}\x7f\n".as_bytes(),
        b"a\x04",
    ];
    for mode in modes {
        for typed in typed {
            compare(&mode, b"at\ta\r\nline\r> ", typed, 64);
        }
    }
}

/// A small generator, so that a failure comes back with its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

#[test]
fn random_typing_agrees_with_linux() {
    // Everything but what sends signals (nobody is there to get them) or holds output back (it would wait for ever).
    let keys = b"ab _.\t\x7f\x7f\x17\x15\x16\x12\x04\n\r\x01\xc3\xa9\xf0\x9f\x98\x80";
    let flags = [
        local::ECHO,
        local::ECHOE,
        local::ECHOK,
        local::ECHOKE,
        local::ECHOCTL,
        local::IEXTEN,
        local::ICANON,
    ];
    for seed in 0..1000 {
        let mut dice = Dice(seed);
        let mode = with(|mode| {
            mode.local &= !local::ISIG;
            mode.input &= !input::IXON;
        });
        let mode = flags.iter().fold(mode, |mut mode, flag| {
            if dice.roll(5) == 0 {
                mode.local &= !flag;
            }
            mode
        });
        let typed: Vec<u8> = (0..dice.roll(30)).map(|_| keys[dice.roll(keys.len())]).collect();
        compare(&mode, b"$ ", &typed, 1 + dice.roll(8));
    }
}
