//! Compiling users' own programs.
//!
//! A module of a few kilobytes can keep a compiler busy for minutes and cost it gigabytes, and a compiler cannot be
//! interrupted. So it is a separate process, started for one module and sealed before it sees a byte of it: the
//! operating system limits its time and memory, and SIGKILL stops it when the command that needs it ends.
//!
//! ```text
//!  turns.rs      one per sandbox, few per kernel, families in turn; one that takes long is paused for others
//!    │
//!  process.rs    start /proc/self/exe again ──► helper.rs   seal, say so, wait
//!    │           put the module into the memory file ─────► compile it, put the code into the same file
//!    ▼           wait for its end ◄────────────────────────  exit
//!  Module        mapped from the memory file
//! ```
//!
//! The returned code is run as it is: the helper is trusted for that, as a compiler in this process would be. Its seal
//! protects everything else: time, memory, files, network (docs/security.md).

pub(crate) mod helper;
mod process;
mod turns;

use std::ffi::CStr;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use wardian_confine::Budget;

use crate::family::Family;
use crate::kernel::CompileBudget;
use crate::reexec;
use process::{Killer, Slot};
use turns::Turns;

pub(crate) use turns::Turn;

/// The name a helper is started under.
pub(crate) const NAME: &CStr = c"wardian-compiler";

/// How long a helper may take to report that it is ready, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often those who wait look whether somebody should make room.
const PRESSING: Duration = Duration::from_millis(50);

/// How often a helper that should make room is looked at until it has started.
const STARTING: Duration = Duration::from_millis(10);

/// How many helpers may be paused.
const MOST_PAUSED: usize = 32;

const NOT_IN_EXECUTABLE: &str = "the library is not part of the executable, which is started again as the compiler \
     (EngineBuilder::compile_in_process does without)";

/// Why a module was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CompileError {
    /// It is invalid, or uses an unsupported feature.
    #[error("{0}")]
    Refused(String),
    /// It exceeds the compiler's budget.
    #[error("compiling it exceeds {0}")]
    TooMuch(String),
    /// No compiler is available.
    #[error("programs cannot be compiled here: {0}")]
    Unavailable(String),
}

/// The compiler of a kernel.
pub(crate) struct Compiler {
    turns: Arc<Turns>,
    pauses: Pauses,
    budget: CompileBudget,
}

impl Compiler {
    pub(crate) fn new(budget: CompileBudget) -> Compiler {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // Two at least: one module that takes its time must not keep all others waiting.
        let turns = (processors / 2).max(2);
        Compiler { turns: Turns::new(turns), pauses: Pauses::default(), budget }
    }

    /// Returns a turn, if the family may have one now.
    pub(crate) fn turn_now(&self, family: &Family) -> Option<Turn> {
        self.turns.now(family.id())
    }

    /// Waits for the family's next turn. A family that has had much more is asked to yield.
    pub(crate) async fn turn(&self, family: &Family) -> Result<Turn, CompileError> {
        let mut next = self.turns.wait(family.id());
        loop {
            match tokio::time::timeout(PRESSING, &mut next).await {
                Ok(turn) => return turn.map_err(|_| shutting_down()),
                Err(_) => self.turns.press(),
            }
        }
    }

    /// Returns the module's code, in a memory file; nothing if it had to make room for others and must be compiled again.
    /// Dropping the future kills the helper; the turn and `held` are dropped when no process of it is left.
    pub(crate) async fn compile(
        &self,
        runtime: &Runtime,
        family: &Family,
        wasm: Vec<u8>,
        turn: Turn,
        held: impl Send + 'static,
    ) -> Result<Option<File>, CompileError> {
        if !reexec::can() {
            return Err(CompileError::Unavailable(NOT_IN_EXECUTABLE.to_owned()));
        }
        let slot = Arc::new(Slot::default());
        let _killed_with_this = Killer(slot.clone());
        let (ready, started) = oneshot::channel();
        runtime.spawn(kill_unless_started(slot.clone(), started));
        let CompileBudget { memory, seconds, code } = self.budget;
        let budget = Budget { memory, processor_seconds: seconds, file_size: code };
        let mut yields = turn.yields();
        let turn = Arc::new(Mutex::new(Some(turn)));
        let (process, kept) = (slot.clone(), (turn.clone(), held));
        let mut compiling = runtime.spawn_blocking(move || {
            let code = process::run(&process, &wasm, &budget, ready);
            drop(kept);
            code
        });
        loop {
            tokio::select! {
                code = &mut compiling => return code.map_err(|_| shutting_down())?.map(Some),
                () = yields.notified() => {}
            }
            // One that is still starting up is left to: it must report in time.
            while !slot.is_ready() && !compiling.is_finished() {
                tokio::time::sleep(STARTING).await;
            }
            if compiling.is_finished() {
                continue;
            }
            let Some(pause) = self.pauses.begin(&slot, memory) else {
                slot.kill();
                let _ = compiling.await;
                return Ok(None);
            };
            drop(turn.lock().take());
            let next = self.turn(family).await?;
            yields = next.yields();
            *turn.lock() = Some(next);
            drop(pause);
        }
    }
}

/// Helpers that are paused: so many, and so much memory, that a machine which can compile can keep them.
#[derive(Clone, Default)]
struct Pauses(Arc<Mutex<Paused>>);

#[derive(Default)]
struct Paused {
    helpers: usize,
    bytes: u64,
}

impl Pauses {
    /// Pauses a helper until the result is dropped. `None` if there are too many, or they have more than `most` bytes of
    /// memory together: then it goes on.
    fn begin(&self, slot: &Arc<Slot>, most: u64) -> Option<Pause> {
        let bytes = slot.set_paused(true).unwrap_or(0);
        let pause = Pause { pauses: self.clone(), slot: slot.clone(), bytes };
        let mut paused = self.0.lock();
        paused.helpers += 1;
        paused.bytes += bytes;
        let fits = paused.helpers <= MOST_PAUSED && paused.bytes <= most;
        drop(paused);
        fits.then_some(pause)
    }
}

/// A helper that is paused.
struct Pause {
    pauses: Pauses,
    slot: Arc<Slot>,
    bytes: u64,
}

impl Drop for Pause {
    fn drop(&mut self) {
        let mut paused = self.pauses.0.lock();
        paused.helpers -= 1;
        paused.bytes -= self.bytes;
        drop(paused);
        self.slot.set_paused(false);
    }
}

/// A process that is not the helper after all, or is stuck, must not be waited for.
async fn kill_unless_started(slot: Arc<Slot>, started: oneshot::Receiver<()>) {
    if tokio::time::timeout(PATIENCE, started).await.is_err() {
        slot.kill();
    }
}

fn shutting_down() -> CompileError {
    CompileError::Unavailable("the kernel is shutting down".to_owned())
}
