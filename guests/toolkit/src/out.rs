//! Standard output, buffered.

use wardian_abi as abi;

/// Standard output of a tool: 64 KiB at a time, or line by line on a terminal.
pub struct Out {
    name: &'static str,
    buffer: Vec<u8>,
    by_line: bool,
}

const ENOUGH: usize = 64 * 1024;

impl Out {
    pub fn new(name: &'static str) -> Self {
        Out { name, buffer: Vec::new(), by_line: abi::isatty(1) }
    }

    /// Writes bytes. A failure ends the program: nothing that follows could be seen.
    pub fn put(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= ENOUGH || self.by_line && bytes.contains(&b'\n') {
            self.flush();
        }
    }

    pub fn flush(&mut self) {
        let written = abi::write_all(1, &self.buffer);
        self.buffer.clear();
        if let Err(error) = written {
            super::complain(self.name, format_args!("write error: {error}"));
            abi::exit(1);
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.flush();
    }
}
