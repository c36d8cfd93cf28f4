//! Users' own programs: from a file to compiled code.

use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest, Sha256};
use wardian_vfs::{Errno, Handle, Result, Tree};

use crate::admit::{self, Admitted, Refused, admit};
use crate::compiler::CompileError;
use crate::fd::OpenFile;
use crate::limits::Charge;
use crate::machine::Machine;
use crate::pause::pause;
use crate::proc::Process;
use crate::program::Program;
use crate::spawn::Executable;

/// How much is read at once, so that others can use the files in between.
const PIECE: usize = 4 << 20;

/// Returns the program in this file, compiled now unless it already was. A module that cannot be compiled becomes a
/// program that says why.
///
/// A sandbox compiles one module at a time, and the bytes of a module are in memory only while they are needed: programs
/// that wait for the compiler hold none.
pub(crate) async fn compiled(
    machine: &Arc<Machine>,
    process: &Process,
    file: &Arc<OpenFile>,
) -> Result<Executable> {
    match find_or_compile(machine, process, file).await {
        Ok(program) => Ok(Executable::Guest(program)),
        Err(Trouble::File(errno)) => Err(errno),
        Err(Trouble::Module(error)) => {
            tracing::debug!(%error, "cannot compile");
            if matches!(error, CompileError::TooMuch(_)) {
                process.run().hit("compile");
            }
            Ok(Executable::Refused(error.to_string().into()))
        }
    }
}

enum Trouble {
    File(Errno),
    Module(CompileError),
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Trouble {
        Trouble::Module(CompileError::Refused(refused.to_string()))
    }
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Trouble {
        Trouble::File(errno)
    }
}

impl From<CompileError> for Trouble {
    fn from(error: CompileError) -> Trouble {
        Trouble::Module(error)
    }
}

async fn find_or_compile(
    machine: &Arc<Machine>,
    process: &Process,
    file: &Arc<OpenFile>,
) -> std::result::Result<Arc<Program>, Trouble> {
    let (kernel, family) = (machine.kernel(), &machine.rules().family);
    let alone = Arc::new(machine.compiling().await?);
    let mut turn = None;
    loop {
        let Bytes { version, wasm, charge } = read(machine, process, file).await?;
        let (hash, wasm) =
            aside(machine, process, move || (<[u8; 32]>::from(Sha256::digest(&wasm)), wasm)).await?;
        if let Some(program) = kernel.program_of(family, hash, version) {
            return Ok(program);
        }
        let Some(turn) = turn.take().or_else(|| kernel.compiler().turn_now(family)) else {
            drop((wasm, charge));
            turn = Some(kernel.compiler().turn(family).await?);
            continue;
        };
        let (admitted, wasm) = aside(machine, process, move || (admit(&wasm), wasm)).await?;
        let admitted: Admitted = admitted?;
        let held = (alone.clone(), charge);
        let Some(program) = kernel.compile_user(family, wasm, admitted, turn, held).await? else {
            // It had to make room for others.
            continue;
        };
        kernel.keep_program(family, hash, version, program.clone());
        return Ok(program);
    }
}

/// Does work that cannot be interrupted on a separate thread: a deadline is still met. The time counts as the command's.
async fn aside<T: Send + 'static>(
    machine: &Machine,
    process: &Process,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let run = process.run();
    let work = move || {
        let start = Instant::now();
        let done = work();
        run.count_cpu(start.elapsed().as_nanos() as u64);
        done
    };
    machine.kernel().runtime().spawn_blocking(work).await.map_err(|_| Errno::EIO)
}

/// A module in memory.
struct Bytes {
    /// The version of its file; 0 if it has none, or was changed meanwhile.
    version: u64,
    wasm: Vec<u8>,
    charge: Charge,
}

/// All of a file, charged to the sandbox.
async fn read(
    machine: &Arc<Machine>,
    process: &Process,
    file: &Arc<OpenFile>,
) -> std::result::Result<Bytes, Trouble> {
    let caller = process.caller();
    let stat = move |tree: &mut Tree, handle: &mut Handle| tree.stat_handle(&caller, handle);
    let before = machine.on_file(file, stat).await?;
    if before.size > admit::BYTES {
        return Err(Refused::too_large(before.size).into());
    }
    let size = before.size as usize;
    let charge = machine.meter().hold_for(&process.run(), size)?;
    let mut wasm: Vec<u8> = Vec::with_capacity(size);
    while wasm.len() < size {
        let (at, most) = (wasm.len() as u64, (size - wasm.len()).min(PIECE));
        let piece = machine.on_file(file, move |tree, handle| {
            let mut piece = vec![0; most];
            let count = tree.pread(handle, &mut piece, at)?;
            piece.truncate(count);
            Ok(piece)
        });
        let piece = piece.await?;
        if piece.is_empty() {
            break;
        }
        wasm.extend(piece);
        pause().await;
    }
    let after = machine.on_file(file, stat).await?;
    let version = if after.version == before.version { before.version } else { 0 };
    Ok(Bytes { version, wasm, charge })
}
