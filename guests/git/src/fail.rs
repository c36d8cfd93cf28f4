//! How a command ends other than well.

/// Why a command stops, and with it the exit code.
#[derive(Debug)]
pub enum Fail {
    /// `fatal: …`, exit code 128.
    Fatal(String),
    /// `error: …`, exit code 1.
    Error(String),
    /// `error: …`, how the command is called, exit code 129.
    Usage(String),
    /// All was said already.
    Code(i32),
}

pub type Res<T> = Result<T, Fail>;

/// Stops with `fatal: …`.
macro_rules! fatal {
    ($($text:tt)*) => { return Err($crate::fail::Fail::Fatal(format!($($text)*))) };
}

/// Stops with `error: …`.
macro_rules! error {
    ($($text:tt)*) => { return Err($crate::fail::Fail::Error(format!($($text)*))) };
}

pub(crate) use {error, fatal};

impl Fail {
    /// Says what is left to be said, and answers the exit code.
    pub fn report(self) -> i32 {
        match self {
            Fail::Fatal(text) => {
                crate::out::complain(format!("fatal: {text}"));
                128
            }
            Fail::Error(text) => {
                crate::out::complain(format!("error: {text}"));
                1
            }
            Fail::Usage(text) => {
                crate::out::complain(text);
                129
            }
            Fail::Code(code) => code,
        }
    }
}

/// A failed system call as a fatal error: `fatal: WHAT: WHY`.
pub fn system(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Fail {
    move |error| Fail::Fatal(format!("{what}: {}", reason(error)))
}

/// The words of `strerror` for it.
pub fn reason(error: std::io::Error) -> String {
    wardian_abi::Errno::from(error).message().to_owned()
}
