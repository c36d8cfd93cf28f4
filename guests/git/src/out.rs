//! Standard output, buffered, and standard error behind it.

use std::cell::{Cell, RefCell};
use std::fmt::Display;

use wardian_abi as abi;

/// So much is written at once.
const ENOUGH: usize = 64 * 1024;

thread_local! {
    static CAPTURING: Cell<usize> = const { Cell::new(0) };
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes bytes.
pub fn put(bytes: impl AsRef<[u8]>) {
    let full = BUFFER.with_borrow_mut(|buffer| {
        buffer.extend_from_slice(bytes.as_ref());
        buffer.len() >= ENOUGH && CAPTURING.with(Cell::get) == 0
    });
    if full {
        flush();
    }
}

/// Writes to a text of its own what is written meanwhile.
pub fn capture<T>(write: impl FnOnce() -> T) -> (T, Vec<u8>) {
    let before = BUFFER.replace(Vec::new());
    CAPTURING.with(|depth| depth.set(depth.get() + 1));
    let result = write();
    CAPTURING.with(|depth| depth.set(depth.get() - 1));
    (result, BUFFER.replace(before))
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
    if CAPTURING.with(Cell::get) > 0 {
        return;
    }
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
