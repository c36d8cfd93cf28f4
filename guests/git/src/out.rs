//! Standard output, buffered, and standard error behind it.

use std::cell::RefCell;
use std::fmt::Display;

use wardian_abi as abi;

/// So much is written at once.
const ENOUGH: usize = 64 * 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes bytes.
pub fn put(bytes: impl AsRef<[u8]>) {
    let full = BUFFER.with_borrow_mut(|buffer| {
        buffer.extend_from_slice(bytes.as_ref());
        buffer.len() >= ENOUGH
    });
    if full {
        flush();
    }
}

/// Writes a line of text.
pub fn line(text: impl Display) {
    put(format!("{text}\n"));
}

/// Writes bytes and a line feed.
pub fn bytes_line(bytes: &[u8]) {
    put(bytes);
    put(b"\n");
}

/// Hands over what has gathered. Where nobody reads any more the program ends, as a signal would end it.
pub fn flush() {
    let bytes = BUFFER.take();
    if abi::write_all(1, &bytes).is_err() {
        abi::exit(141);
    }
}

/// Says bytes on standard error as they are.
pub fn say(text: &[u8]) {
    // There is nowhere left to say that this failed.
    let _ = abi::write_all(2, text);
}

/// Says a line on standard error. As with native git, what was written before to something else than a terminal may come later.
pub fn complain(text: impl Display) {
    if abi::isatty(1) {
        flush();
    }
    // There is nowhere left to say that this failed.
    let _ = abi::write_all(2, format!("{text}\n").as_bytes());
}
