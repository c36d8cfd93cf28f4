//! Where lines go: standard output, files of `w`, the new text of a file edited in place.

use toolkit::complain;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags};

/// Written to a file when so much has gathered.
const ENOUGH: usize = 64 * 1024;

/// A file that is written.
pub struct Output {
    name: Vec<u8>,
    fd: Fd,
    buffer: Vec<u8>,
    /// The last line had no newline; one is due should another follow.
    lacks_newline: bool,
    /// Nothing is held back for longer than a line.
    by_line: bool,
}

impl Output {
    pub fn new(name: &[u8], fd: Fd, by_line: bool) -> Output {
        Output { name: name.to_vec(), fd, buffer: Vec::new(), lacks_newline: false, by_line }
    }

    /// Makes a file for `w`. The error is the exit code.
    pub fn create(name: &[u8], by_line: bool) -> Result<Output, i32> {
        let fd = match name {
            b"/dev/stderr" => Ok(2),
            _ => {
                let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::TRUNC;
                abi::open(Dir::CWD, name, flags, 0o666)
            }
        };
        match fd {
            Ok(fd) => Ok(Output::new(name, fd, by_line)),
            Err(error) => {
                let name = String::from_utf8_lossy(name);
                complain("sed", format_args!("couldn't open file {name}: {error}"));
                Err(4)
            }
        }
    }

    pub fn fd(&self) -> Fd {
        self.fd
    }

    /// A line and, if it had one, its end.
    #[inline]
    pub fn line(&mut self, line: &[u8], end: Option<u8>) {
        self.end_line();
        self.buffer.extend_from_slice(line);
        match end {
            Some(end) => self.buffer.push(end),
            None => self.lacks_newline = true,
        }
        self.flush_if_due();
    }

    /// A text as it is.
    pub fn text(&mut self, text: &[u8]) {
        self.end_line();
        self.buffer.extend_from_slice(text);
        self.flush_if_due();
    }

    #[inline]
    fn end_line(&mut self) {
        if std::mem::take(&mut self.lacks_newline) {
            self.buffer.push(b'\n');
        }
    }

    #[inline]
    fn flush_if_due(&mut self) {
        if self.buffer.len() >= ENOUGH || self.by_line {
            self.flush();
        }
    }

    /// Writes what was held back. A failure ends the program.
    pub fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let written = abi::write_all(self.fd, &self.buffer);
        self.buffer.clear();
        if let Err(error) = written {
            fail_to_write(&self.name, error);
        }
    }
}

fn fail_to_write(name: &[u8], error: Errno) -> ! {
    let name = String::from_utf8_lossy(name);
    complain("sed", format_args!("couldn't write 1 item to {name}: {error}"));
    abi::exit(4)
}
