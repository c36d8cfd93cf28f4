//! Where the shell writes: standard output, or the file that `.output` or `.once` named.

use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags};

/// Buffered, as C's standard output is: what goes to standard error meanwhile comes before it.
pub struct Output {
    fd: Fd,
    /// What `.show` calls it.
    pub name: Vec<u8>,
    buffer: Vec<u8>,
    by_line: bool,
}

const ENOUGH: usize = 4096;

impl Output {
    pub fn standard() -> Output {
        Output { fd: 1, name: b"stdout".to_vec(), buffer: Vec::new(), by_line: abi::isatty(1) }
    }

    pub fn put(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= ENOUGH || self.by_line && bytes.contains(&b'\n') {
            self.flush();
        }
    }

    /// Writes what is kept. Where standard output is gone there is nobody to go on for.
    pub fn flush(&mut self) {
        let written = abi::write_all(self.fd, &self.buffer);
        self.buffer.clear();
        if let Err(error) = written {
            if self.fd == 1 {
                if error != Errno::PIPE {
                    toolkit::complain("sqlite3", format_args!("write error: {error}"));
                }
                abi::exit(1);
            }
            let name = String::from_utf8_lossy(&self.name);
            toolkit::complain("Error", format_args!("cannot write to \"{name}\": {error}"));
        }
    }

    /// Goes on in a file.
    pub fn open(&mut self, file: &[u8]) -> Result<(), Errno> {
        self.reset();
        if file == b"stdout" {
            return Ok(());
        }
        let fd = match file {
            b"stderr" => 2,
            b"off" => abi::open(Dir::CWD, b"/dev/null", open_flags::WRONLY, 0)?,
            file => {
                let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::TRUNC;
                abi::open(Dir::CWD, file, flags, 0o666)?
            }
        };
        (self.fd, self.name, self.by_line) = (fd, file.to_vec(), fd == 2);
        Ok(())
    }

    /// Goes back to standard output.
    pub fn reset(&mut self) {
        self.flush();
        if self.fd > 2 {
            // Everything is written; what closing says about it comes too late to act on.
            let _ = abi::close(self.fd);
        }
        (self.fd, self.name, self.by_line) = (1, b"stdout".to_vec(), abi::isatty(1));
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.reset();
    }
}

/// Says something on standard error, in one write.
pub fn complain(message: impl AsRef<[u8]>) {
    // There is nowhere left to say that this failed.
    let _ = abi::write_all(2, message.as_ref());
}
