//! Programs that users bring: from a file to compiled code.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use wardian_vfs::{Errno, Handle, Result, Tree};

use crate::compiler::CompileError;
use crate::fd::OpenFile;
use crate::machine::Machine;
use crate::proc::Process;
use crate::program::Program;
use crate::spawn::Executable;

/// The largest program of a user's own that is compiled.
const MAX_PROGRAM: u64 = 32 << 20;
/// What is read at once, so that others get to the files in between.
const PIECE: usize = 4 << 20;

/// The program in this file, compiled now unless it was before. A module that cannot be is a program that says why.
///
/// A sandbox compiles one module at a time, and the bytes of a module are in memory only while they are looked at: a
/// crowd that waits for the compiler holds none.
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
    let alone = machine.compiling().await?;
    let mut turn = None;
    loop {
        let (version, wasm) = read(machine, process, file).await?;
        let hashing =
            kernel.runtime().spawn_blocking(move || (<[u8; 32]>::from(Sha256::digest(&wasm)), wasm));
        let (hash, wasm) = hashing.await.map_err(|_| Errno::EIO)?;
        if let Some(program) = kernel.program_of(family, hash, version) {
            return Ok(program);
        }
        let Some(turn) = turn.take().or_else(|| kernel.compiler().turn_now()) else {
            drop(wasm);
            turn = Some(kernel.compiler().turn().await?);
            continue;
        };
        let program = kernel.compile_user(family, wasm, (turn, alone)).await?;
        kernel.keep_program(family, hash, version, program.clone());
        return Ok(program);
    }
}

/// All of a file, and its version: 0 if it has none, or was changed meanwhile.
async fn read(machine: &Arc<Machine>, process: &Process, file: &Arc<OpenFile>) -> Result<(u64, Vec<u8>)> {
    let caller = process.caller();
    let stat = move |tree: &mut Tree, handle: &mut Handle| tree.stat_handle(&caller, handle);
    let before = machine.on_file(file, stat).await?;
    if before.size > MAX_PROGRAM {
        return Err(Errno::ENOEXEC);
    }
    let mut wasm: Vec<u8> = Vec::with_capacity(before.size as usize);
    loop {
        let (at, most) = (wasm.len() as u64, (MAX_PROGRAM as usize + 1 - wasm.len()).min(PIECE));
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
        if wasm.len() as u64 > MAX_PROGRAM {
            return Err(Errno::ENOEXEC);
        }
        tokio::task::yield_now().await;
    }
    let after = machine.on_file(file, stat).await?;
    Ok((if after.version == before.version { before.version } else { 0 }, wasm))
}
