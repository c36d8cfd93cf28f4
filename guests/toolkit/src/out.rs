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
        // What `stdbuf` asked for; a line is the least that is written at once.
        let mode = std::env::var_os("_STDBUF_O");
        let by_line = mode.is_some_and(|mode| mode == "L" || mode == "0") || abi::isatty(1);
        Out { name, buffer: Vec::new(), by_line }
    }

    /// Writes bytes. A failure ends the program: nothing that follows could be seen.
    pub fn put(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= ENOUGH || self.by_line && bytes.contains(&b'\n') {
            self.flush();
        }
    }

    /// Writes a byte many times, without having them all in memory.
    pub fn put_many(&mut self, byte: u8, mut count: usize) {
        while count > 0 {
            let some = count.min(ENOUGH);
            self.put(vec![byte; some]);
            count -= some;
        }
    }

    /// What is still to be written, for those who add to it in many small steps and then let it [`settle`](Out::settle).
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes what has gathered if it is enough, or if someone is watching.
    pub fn settle(&mut self) {
        if self.buffer.len() >= ENOUGH || self.by_line {
            self.flush();
        }
    }

    /// Says what is wrong, behind what was written before.
    pub fn complain(&mut self, message: impl std::fmt::Display) {
        self.flush();
        super::complain(self.name, message);
    }

    pub fn flush(&mut self) {
        let written = abi::write_all(1, &self.buffer);
        self.buffer.clear();
        if let Err(error) = written {
            let what = match self.name {
                "head" | "tail" => "error writing 'standard output'",
                _ => "write error",
            };
            super::complain(self.name, format_args!("{what}: {error}"));
            abi::exit(1);
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.flush();
    }
}
