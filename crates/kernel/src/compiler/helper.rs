//! The compiler's process from inside: seals itself, then compiles one module.
//!
//! | descriptor | is |
//! |---|---|
//! | 0 | a pipe that is closed when the module is there |
//! | 1 | a memory file: the module, then the code |
//! | 2 | a pipe: [`READY`] and what is in force, then why the module was refused |

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::{Signal, nice, set_parent_process_death_signal};
use wardian_confine::{Budget, InForce, fork_exec, seal};
use wasmtime::Engine;

use crate::bulk;
use crate::kernel::engine_config;

/// What a helper writes first, once it is sealed.
const READY: &[u8; 16] = b"wardian-compiler";
/// The exit code for a module that cannot be compiled.
pub(super) const REFUSED: i32 = 3;
/// Its nice value.
const NICE: i32 = 10;

/// Runs the helper, and exits.
pub(crate) fn main() -> ! {
    let code = match catch_unwind(AssertUnwindSafe(help)) {
        Ok(Ok(())) => 0,
        Ok(Err(Trouble::Module(why))) => {
            tell(&why);
            REFUSED
        }
        Ok(Err(Trouble::Ours(error))) => {
            tell(&error.to_string());
            1
        }
        // The compiler's own fault, or its own limit; the hook has said which.
        Err(_) => REFUSED,
    };
    fork_exec::exit_child(code)
}

fn tell(text: &str) {
    // There is nobody left to report it to otherwise.
    let _ = io::stderr().write_all(text.as_bytes());
}

enum Trouble {
    Module(String),
    Ours(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Ours(error)
    }
}

fn help() -> Result<(), Trouble> {
    std::panic::set_hook(Box::new(|panic| {
        let what = panic.payload_as_str().unwrap_or("no reason given");
        tell(&format!("the compiler failed: {what}"));
    }));
    // Fires when the thread that started this process ends. Where it has ended already, the module never comes.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
    // SAFETY: this process has opened nothing yet.
    unsafe { fork_exec::close_the_rest() }?;
    let _ = nice(NICE);
    // Where memory is short, this goes first.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let budget = budget()?;
    let engine = engine().map_err(io::Error::other)?;
    let in_force = seal(&budget)?;
    say_ready(in_force)?;
    io::stdin().read_to_end(&mut Vec::new())?;
    // SAFETY: descriptor 1 is the memory file, and nothing else in this process uses it.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(1) });
    let code = {
        let mut wasm = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut wasm)?;
        let wasm = bulk::in_pieces(&wasm);
        engine.precompile_module(&wasm).map_err(|error| Trouble::Module(format!("{error:#}")))?
    };
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&code)?;
    Ok(())
}

/// Reads the limits from the arguments.
fn budget() -> io::Result<Budget> {
    // Not `env::args`, which not every platform has before `main`.
    let line = std::fs::read_to_string("/proc/self/cmdline")?;
    let mut numbers = line.split('\0').skip(1).map_while(|word| word.parse().ok());
    let mut next = || numbers.next().ok_or_else(|| io::Error::other("the compiler was told no limits"));
    Ok(Budget { memory: next()?, processor_seconds: next()?, file_size: next()? })
}

/// Like the kernel's, but starts no threads.
fn engine() -> wasmtime::Result<Engine> {
    let mut config = engine_config();
    config.parallel_compilation(false);
    Engine::new(&config)
}

fn say_ready(in_force: InForce) -> io::Result<()> {
    let mut words = READY.to_vec();
    words.push(u8::from(in_force.landlock) | u8::from(in_force.seccomp) << 1);
    io::stderr().write_all(&words)
}

/// Reads what [`say_ready`] writes. An error is whatever was written instead.
pub(super) fn read_ready(from: &mut impl Read) -> io::Result<InForce> {
    let mut words = Vec::new();
    from.take(READY.len() as u64 + 1).read_to_end(&mut words)?;
    match words.split_at_checked(READY.len()) {
        Some((name, [in_force])) if name == READY => {
            Ok(InForce { landlock: in_force & 1 != 0, seccomp: in_force & 2 != 0 })
        }
        _ => {
            from.take(200).read_to_end(&mut words)?;
            let said = String::from_utf8_lossy(&words);
            Err(io::Error::other(format!("the compiler does not start: {said}")))
        }
    }
}
