//! What a program says when it cannot go on: one line, its name first, as other Unix programs do.

use crate::{Dir, sys};
use std::fmt::{self, Display, Write};
use std::panic::PanicHookInfo;

/// Names are cut by the kernel to fewer bytes than this.
const NAME: usize = 64;

/// Makes a panic print one line that says what it is: Rust's own advice is for programmers.
pub fn report_panics() {
    std::panic::set_hook(Box::new(report));
}

fn report(panic: &PanicHookInfo) {
    let payload = panic.payload();
    let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text.as_str(),
        _ => "unknown",
    };
    // Of a collection that would be larger than the address space.
    if message == "capacity overflow" {
        out_of_memory();
    }
    match panic.location() {
        Some(place) => {
            complain(format_args!("internal error: {message} ({}:{})", place.file(), place.line()))
        }
        None => complain(format_args!("internal error: {message}")),
    }
}

/// Ends the program with a message and the exit code that the original of that name has for it. Allocates nothing.
pub fn out_of_memory() -> ! {
    complain("out of memory");
    let mut buffer = [0; NAME];
    sys::exit(match name(&mut buffer) {
        b"sed" => 4,
        b"awk" | b"bash" | b"cmp" | b"diff" | b"egrep" | b"fgrep" | b"gawk" | b"gmake" | b"grep" | b"ls" => 2,
        b"make" | b"mawk" | b"rg" | b"sh" | b"sort" | b"tar" => 2,
        _ => 1,
    })
}

fn complain(message: impl Display) {
    let mut buffer = [0; NAME];
    let name = name(&mut buffer);
    if !name.is_empty() {
        let _ = Error.write_bytes(name);
        let _ = Error.write_str(": ");
    }
    // There is nowhere left to say that this failed.
    let _ = writeln!(Error, "{message}");
}

/// The name that the program was called by; empty if the kernel cannot say it.
fn name(buffer: &mut [u8; NAME]) -> &[u8] {
    let Ok(fd) = sys::open(Dir::ROOT, b"/proc/self/comm", 0, 0) else { return b"" };
    let length = sys::read(fd, buffer).unwrap_or(0);
    let _ = sys::close(fd);
    buffer[..length].trim_ascii_end()
}

/// Standard error, without a buffer.
struct Error;

impl Error {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        crate::write_all(2, bytes).map_err(|_| fmt::Error)
    }
}

impl Write for Error {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write_bytes(text.as_bytes())
    }
}
