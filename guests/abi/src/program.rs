//! What a program is given, and what it offers the kernel.

use crate::sys;

/// Makes the linker keep this crate, and with it the path look-up described at the top, and a panic print one plain line.
pub fn link() {
    crate::failure::report_panics();
    sys::link();
}

/// The arguments the program was started with, its name first.
pub fn args() -> Vec<Vec<u8>> {
    sys::args()
}

/// The environment the program was started with, as `NAME=VALUE`.
///
/// It asks the kernel each time: a session program's memory is kept from before it had an environment.
pub fn environ() -> Vec<Vec<u8>> {
    sys::environ()
}

/// The user a process runs as: real and effective are the same.
pub fn getuid() -> u32 {
    sys::getuid()
}

/// The group a process runs as.
pub fn getgid() -> u32 {
    sys::getgid()
}

/// A session program: one that lives from run to run and is at rest between them.
pub trait Session {
    /// Runs a script and answers its exit code.
    fn run(script: &[u8]) -> i32;
    /// Runs a script whose settings (options and traps, for a shell) end with it.
    fn run_contained(script: &[u8]) -> i32;
    /// The value of a variable.
    fn getenv(name: &[u8]) -> Option<Vec<u8>>;
    /// Sets and exports a variable.
    fn setenv(name: &[u8], value: &[u8]);
    /// Answers a question, if there is an answer; fields of both are apart by NUL.
    fn ask(question: &[u8]) -> Option<Vec<u8>>;
}

/// Exports a type that is a [`Session`] to the kernel: `_initialize`, `wardian_run`, `wardian_run_contained`,
/// `wardian_alloc`, `wardian_getenv`, `wardian_setenv` and `wardian_ask`. Once in a program, in its binary; nothing on
/// the native backend.
#[macro_export]
macro_rules! session {
    ($session:ty) => {
        // Also where nothing is exported, so that the type is used and checked.
        const _: fn(&[u8]) -> i32 = <$session as $crate::Session>::run;
        const _: fn(&[u8]) -> Option<Vec<u8>> = <$session as $crate::Session>::ask;

        #[cfg(target_os = "wasi")]
        mod wardian_session_exports {
            use super::*;
            use $crate::session_support as support;

            #[unsafe(no_mangle)]
            extern "C" fn _initialize() {
                $crate::call_constructors();
                support::start();
            }

            #[unsafe(no_mangle)]
            extern "C" fn wardian_alloc(len: usize) -> *mut u8 {
                support::alloc(len)
            }

            #[unsafe(no_mangle)]
            extern "C" fn wardian_run(_pointer: *const u8, len: usize) -> i32 {
                <$session as $crate::Session>::run(&support::take(len))
            }

            #[unsafe(no_mangle)]
            extern "C" fn wardian_run_contained(_pointer: *const u8, len: usize) -> i32 {
                <$session as $crate::Session>::run_contained(&support::take(len))
            }

            #[unsafe(no_mangle)]
            extern "C" fn wardian_getenv(_pointer: *const u8, len: usize) -> i64 {
                support::give(<$session as $crate::Session>::getenv(&support::take(len)))
            }

            #[unsafe(no_mangle)]
            extern "C" fn wardian_ask(_pointer: *const u8, len: usize) -> i64 {
                support::give(<$session as $crate::Session>::ask(&support::take(len)))
            }

            #[unsafe(no_mangle)]
            extern "C" fn wardian_setenv(_pointer: *const u8, len: usize) {
                let pair = support::take(len);
                let cut = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
                <$session as $crate::Session>::setenv(&pair[..cut], pair.get(cut + 1..).unwrap_or(b""));
            }
        }
    };
}

/// What [`session!`] expands to, kept out of the macro so that it is compiled and read once.
#[doc(hidden)]
pub mod session_support {
    use std::cell::RefCell;

    thread_local! {
        /// The argument of the next call, between `wardian_alloc` and that call.
        static ARGUMENT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        /// The last answer given out, alive until the next.
        static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }

    /// What [`link`](crate::link) does for a program that has a `main`.
    pub fn start() {
        crate::failure::report_panics();
    }

    /// A buffer of `len` bytes; never null, even for none.
    pub fn alloc(len: usize) -> *mut u8 {
        ARGUMENT.with_borrow_mut(|argument| {
            *argument = vec![0; len.max(1)];
            argument.as_mut_ptr()
        })
    }

    /// The argument the kernel wrote into the buffer.
    pub fn take(len: usize) -> Vec<u8> {
        let mut argument = ARGUMENT.take();
        argument.truncate(len);
        argument
    }

    /// An answer as `pointer << 32 | length`, or -1.
    pub fn give(answer: Option<Vec<u8>>) -> i64 {
        let Some(answer) = answer else { return -1 };
        ANSWER.with_borrow_mut(|kept| {
            *kept = answer;
            ((kept.as_ptr() as usize as i64) << 32) | kept.len() as i64
        })
    }
}
