//! What ends a computation early.

use crate::value::Value;

/// Why there is no result.
#[derive(Clone, Debug)]
pub enum Error {
    /// What `error` was given, or a message of ours: `try` sees it.
    Raised(Value),
    /// `break`, on its way to the label of this number.
    Break(usize),
    /// `halt` and `halt_error`.
    Halt { code: i32, message: Option<Value> },
}

/// A value, or why there is none.
pub type Outcome<T = Value> = Result<T, Error>;

/// An error with a message.
pub fn raise<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Error::Raised(Value::from(message.into())))
}
