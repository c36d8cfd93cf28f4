//! What can go wrong, in the words of gawk.

use std::fmt;

/// Why a program was not understood, or ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// What to say: lines, each without the name of the program.
    pub message: String,
    /// The exit code that says the same.
    pub code: i32,
}

impl Error {
    /// The program is wrong.
    pub fn syntax(message: impl Into<String>) -> Error {
        Error { message: message.into(), code: 1 }
    }

    /// The program cannot go on.
    pub fn fatal(message: impl fmt::Display) -> Error {
        Error { message: format!("fatal: {message}"), code: 2 }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The answer of what may fail.
pub type Result<T> = std::result::Result<T, Error>;

thread_local! {
    static NAME: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

/// What messages begin with: the name that the program was called by.
pub fn program_name() -> String {
    NAME.with_borrow(|name| if name.is_empty() { "awk".to_owned() } else { name.clone() })
}

/// Remembers the name that the program was called by.
pub fn set_program_name(name: &[u8]) {
    NAME.with_borrow_mut(|known| *known = String::from_utf8_lossy(name).into_owned());
}
