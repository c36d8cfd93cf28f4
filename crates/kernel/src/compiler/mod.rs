//! Compiling users' own programs.
//!
//! A module of a few kilobytes can keep a compiler busy for minutes and cost it gigabytes, and a compiler cannot be
//! interrupted. So it is a separate process, started for one module and sealed before it sees a byte of it: the
//! operating system limits its time and memory, and SIGKILL stops it when the command that needs it ends.
//!
//! ```text
//!  turns.rs      one per sandbox, few per kernel, families in turn
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

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use wardian_confine::Budget;

use crate::family::Family;
use crate::kernel::CompileBudget;
use crate::reexec;
use process::{Killer, Slot};
use turns::{Turn, Turns};

/// The name a helper is started under.
pub(crate) const NAME: &CStr = c"wardian-compiler";

/// How long a helper may take to report that it is ready, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(20);

const NOT_IN_EXECUTABLE: &str = "the library is not part of the executable, which is started again as the compiler \
     (KernelConfig::compile_in_process does without)";

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
    budget: CompileBudget,
}

impl Compiler {
    pub(crate) fn new(budget: CompileBudget) -> Compiler {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // Two at least: one module that takes its time must not keep all others waiting.
        let turns = (processors / 2).max(2);
        Compiler { turns: Turns::new(turns), budget }
    }

    /// Returns a turn, if the family may have one now.
    pub(crate) fn turn_now(&self, family: &Family) -> Option<Turn> {
        self.turns.now(family.id())
    }

    /// Waits for the family's next turn.
    pub(crate) async fn turn(&self, family: &Family) -> Result<Turn, CompileError> {
        self.turns.wait(family.id()).await.map_err(|_| shutting_down())
    }

    /// Returns the module's code, in a memory file. Dropping the future kills the helper; `held` is dropped when no
    /// process of it is left.
    pub(crate) async fn compile(
        &self,
        runtime: &Runtime,
        wasm: Vec<u8>,
        held: impl Send + 'static,
    ) -> Result<File, CompileError> {
        if !reexec::can() {
            return Err(CompileError::Unavailable(NOT_IN_EXECUTABLE.to_owned()));
        }
        let slot = Arc::new(Slot::default());
        let _killed_with_this = Killer(slot.clone());
        let (ready, started) = oneshot::channel();
        runtime.spawn(kill_unless_started(slot.clone(), started));
        let CompileBudget { memory, seconds, code } = self.budget;
        let budget = Budget { memory, processor_seconds: seconds, file_size: code };
        let compiling = runtime.spawn_blocking(move || {
            let code = process::run(&slot, &wasm, &budget, ready);
            drop(held);
            code
        });
        compiling.await.map_err(|_| shutting_down())?
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
