//! A compiler's process, as seen by its parent: starting it, sending it a module, waiting for it or killing it.
//!
//! A thread that may block owns it from start to end. That also ties the two together: the helper asks the operating
//! system to be killed when that thread ends, however it does.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::sync::oneshot;
use wardian_confine::{Budget, InForce};

use super::{CompileError, NAME, helper};
use crate::memory::pages::PAGE;

/// The most that is kept of a helper's messages.
const LONGEST_MESSAGE: u64 = 4096;

/// How to find the process in order to pause or kill it.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    /// It has reported that it is ready.
    ready: AtomicBool,
}

#[derive(Default)]
enum State {
    #[default]
    NotStarted,
    /// It may have ended, but has not been waited for: its pid is still its own.
    Running(Child),
    /// It has ended, or must not be started any more.
    Over,
}

impl Slot {
    pub(super) fn kill(&self) {
        let mut state = self.state.lock();
        match &mut *state {
            State::NotStarted => *state = State::Over,
            // It cannot fail for a child that nobody has waited for.
            State::Running(child) => drop(child.kill()),
            State::Over => {}
        }
    }

    /// Returns whether it has reported that it is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    /// Stops it where it is, or lets it go on. Returns the bytes of memory it has now; `None` if it is not running.
    pub(super) fn set_paused(&self, paused: bool) -> Option<u64> {
        let state = self.state.lock();
        let State::Running(child) = &*state else { return None };
        let process = Pid::from_child(child);
        // It cannot fail for a child that nobody has waited for.
        let _ = kill_process(process, if paused { Signal::STOP } else { Signal::CONT });
        let pages = std::fs::read_to_string(format!("/proc/{}/statm", child.id())).ok()?;
        let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
        Some(pages * PAGE as u64)
    }

    fn start(&self, command: &mut Command) -> io::Result<Pid> {
        let mut state = self.state.lock();
        if matches!(*state, State::Over) {
            return Err(io::Error::other("cancelled"));
        }
        let child = command.spawn()?;
        let process = Pid::from_child(&child);
        *state = State::Running(child);
        Ok(process)
    }

    /// Waits for its end, and returns how it ended. Only then may its pid be reused.
    fn wait(&self, process: Pid) -> io::Result<ExitStatus> {
        // Without the lock, and without taking the process away: it can be killed meanwhile.
        while let Err(error) = waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            if error != rustix::io::Errno::INTR {
                break;
            }
        }
        match std::mem::replace(&mut *self.state.lock(), State::Over) {
            State::Running(mut child) => child.wait(),
            _ => Err(io::Error::other("it was not started")),
        }
    }
}

/// Kills the process when it is dropped.
pub(super) struct Killer(pub(super) Arc<Slot>);

impl Drop for Killer {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Compiles a module in a separate process, and returns when no process is left. Calls `ready` when the helper is ready.
pub(super) fn run(
    slot: &Slot,
    wasm: &[u8],
    budget: &Budget,
    ready: oneshot::Sender<()>,
) -> Result<File, CompileError> {
    let unavailable = |error: io::Error| CompileError::Unavailable(error.to_string());
    let mut code = memory_file().map_err(unavailable)?;
    // Nothing is ever written to it: its closing says that the module is there.
    let (wait_for_it, go) = io::pipe().map_err(unavailable)?;
    let (mut told, tells) = io::pipe().map_err(unavailable)?;
    let mut command = command(budget);
    command.stdin(wait_for_it).stdout(code.try_clone().map_err(unavailable)?).stderr(tells);
    let process = slot.start(&mut command).map_err(unavailable)?;
    // Its copies of the descriptors go with it: what is read below ends when the helper does.
    drop(command);
    let said = match helper::read_ready(&mut told) {
        Ok(in_force) => {
            slot.ready.store(true, Ordering::SeqCst);
            let _ = ready.send(());
            warn_unless_whole(in_force);
            let put = code.write_all(wasm);
            drop(go);
            put.and_then(|()| listen(&mut told, slot))
        }
        Err(error) => {
            slot.kill();
            Err(error)
        }
    };
    let status = slot.wait(process).map_err(unavailable)?;
    let said = said.map_err(unavailable)?;
    judge(status, &said, budget)?;
    match code.metadata() {
        Ok(meta) if (1..=budget.file_size).contains(&meta.len()) => Ok(code),
        Ok(_) => Err(CompileError::Unavailable("the compiler returned no output".to_owned())),
        Err(error) => Err(unavailable(error)),
    }
}

/// Logs once what this machine lacks.
fn warn_unless_whole(InForce { landlock, seccomp }: InForce) {
    static SAID: Once = Once::new();
    if !(landlock && seccomp) {
        SAID.call_once(|| {
            tracing::warn!(landlock, seccomp, "this kernel cannot confine the compiler's process completely");
        });
    }
}

fn memory_file() -> io::Result<File> {
    Ok(File::from(memfd_create("wardian-code", MemfdFlags::CLOEXEC)?))
}

fn command(budget: &Budget) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(&*NAME.to_string_lossy());
    command.args([budget.memory, budget.processor_seconds, budget.file_size].map(|n| n.to_string()));
    command.env_clear();
    // An executable with libraries of its own may not start without.
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", path);
    }
    // Ctrl-C at a terminal is for the embedder, who may have other plans.
    command.process_group(0);
    command
}

/// Returns what the helper writes until it ends: nothing if all is well.
fn listen(told: &mut impl Read, slot: &Slot) -> io::Result<String> {
    let mut said = Vec::new();
    told.take(LONGEST_MESSAGE).read_to_end(&mut said)?;
    if said.len() as u64 == LONGEST_MESSAGE {
        // It has said enough, and would wait for a reader.
        slot.kill();
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

fn judge(status: ExitStatus, said: &str, budget: &Budget) -> Result<(), CompileError> {
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(helper::REFUSED), _) => Err(CompileError::Refused(said.to_owned())),
        (_, Some(libc::SIGXCPU | libc::SIGKILL)) => {
            Err(CompileError::TooMuch(format!("{} s of processor time", budget.processor_seconds)))
        }
        // What Rust does where memory cannot be had.
        (_, Some(libc::SIGABRT)) => {
            Err(CompileError::TooMuch(format!("{} of memory", mebibytes(budget.memory))))
        }
        (_, Some(libc::SIGXFSZ)) => {
            Err(CompileError::TooMuch(format!("{} of code", mebibytes(budget.file_size))))
        }
        // A stack overflow in the compiler, say.
        (_, Some(signal)) => Err(CompileError::Refused(format!("the compiler failed (signal {signal})"))),
        (Some(_) | None, None) => Err(CompileError::Unavailable(said.to_owned())),
    }
}
