//! `node` and `js`: JavaScript on QuickJS, with Node's modules written for the sandbox.
//!
//! ```text
//! main.rs ── engine.rs    the interpreter: its limits, its module loader
//!        ├── library.rs   the JavaScript of Node's modules, in lib/
//!        └── native/      what those modules ask of the system
//! ```
//!
//! In a sandbox the interpreter is prepared once on a machine, with the modules that every script needs, and each process
//! starts from a copy of that memory (`docs/abi.md`, start images). Natively both steps happen one after the other.

mod engine;
mod library;
mod native;

use engine::Engine;

fn main() {
    wardian_abi::link();
    let engine = Engine::new().unwrap_or_else(|message| fail(&message));
    std::process::exit(engine.run());
}

fn fail(message: &str) -> ! {
    let _ = wardian_abi::write_all(2, format!("node: {message}\n").as_bytes());
    wardian_abi::exit(1);
}

/// The start from an image.
#[cfg(target_os = "wasi")]
mod image {
    use super::{Engine, fail};
    use std::cell::RefCell;

    thread_local! {
        /// The engine that was prepared, as part of the image.
        static PREPARED: RefCell<Option<Engine>> = const { RefCell::new(None) };
    }

    #[unsafe(no_mangle)]
    extern "C" fn wardian_prepare() {
        wardian_abi::call_constructors();
        wardian_abi::link();
        let engine = Engine::new().unwrap_or_else(|message| fail(&message));
        PREPARED.set(Some(engine));
    }

    #[unsafe(no_mangle)]
    extern "C" fn wardian_start() {
        if let Some(engine) = PREPARED.take() {
            wardian_abi::exit(engine.run());
        }
    }
}
