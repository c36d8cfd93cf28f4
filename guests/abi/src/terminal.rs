//! Terminals: size, mode, and which process group is in front.

use crate::{Fd, Pid, Result, sys};

/// How a terminal treats what is typed and written: Linux's `struct termios`, with its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct TerminalMode {
    /// `c_iflag`
    pub input: u32,
    /// `c_oflag`
    pub output: u32,
    /// `c_cflag`
    pub control: u32,
    /// `c_lflag`
    pub local: u32,
    /// `c_cc`
    pub chars: [u8; 19],
    /// Nothing.
    pub pad: u8,
}

/// Whether a descriptor is a terminal.
pub fn isatty(fd: Fd) -> bool {
    sys::isatty(fd).is_ok()
}

/// Rows and columns of a terminal.
pub fn winsize(fd: Fd) -> Result<(u16, u16)> {
    sys::winsize(fd)
}

/// Tells a terminal its rows and columns.
pub fn set_winsize(fd: Fd, rows: u16, columns: u16) -> Result<()> {
    sys::set_winsize(fd, rows, columns)
}

/// The mode of a terminal.
pub fn tcgetattr(fd: Fd) -> Result<TerminalMode> {
    sys::tcgetattr(fd)
}

/// Sets the mode of a terminal; `flush` forgets what was typed and not read.
pub fn tcsetattr(fd: Fd, mode: &TerminalMode, flush: bool) -> Result<()> {
    sys::tcsetattr(fd, mode, flush)
}

/// The process group that a terminal listens to.
pub fn tcgetpgrp(fd: Fd) -> Result<Pid> {
    sys::tcgetpgrp(fd)
}

/// Puts a process group in front.
pub fn tcsetpgrp(fd: Fd, group: Pid) -> Result<()> {
    sys::tcsetpgrp(fd, group)
}
