//! Locks on files, of both kinds.

use std::sync::Arc;

use wardian_vfs::{Errno, OpenFlags, Result};

use super::MODULE;
use crate::call::{Call, Outcome, waiting_calls};
use crate::fd::{OpenFile, TreeFile};
use crate::imports::Imports;
use crate::locks::{Extent, Held, Owner};

/// Operations of `flock`, with Linux's numbers.
const SHARED: u32 = 1;
const EXCLUSIVE: u32 = 2;
const NO_WAIT: u32 = 4;
const UNLOCK: u32 = 8;

/// Kinds of a lock of a range, with Linux's numbers.
const READ: u32 = 0;
const WRITE: u32 = 1;
const NONE: u32 = 2;

/// Commands of `lock`: to ask, to set, to set and wait. The lock is the process's, or with `DESCRIPTION` the description's.
const GET: u32 = 0;
const SET: u32 = 1;
const WAIT: u32 = 2;
const DESCRIPTION: u32 = 4;

pub(super) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    waiting_calls! { imports, MODULE;
        flock(fd: u32, operation: u32);
        lock(fd: u32, command: u32, range: u32);
    }
    Ok(())
}

/// The file of the tree behind a descriptor: others have nothing to lock.
fn tree_file(file: &Arc<OpenFile>) -> Result<&TreeFile> {
    match &**file {
        OpenFile::Tree(file) => Ok(file),
        _ => Err(Errno::EINVAL),
    }
}

async fn flock(call: &mut Call<'_>, fd: u32, operation: u32) -> Outcome {
    let (machine, process) = (call.machine().clone(), call.process().clone());
    let open = call.file(fd)?;
    let file = tree_file(&open)?;
    flags_of(file)?;
    let (locks, meter) = (machine.locks(), machine.meter());
    let (place, owner) = (file.place(), file.owner(locks));
    let exclusive = match operation & !NO_WAIT {
        SHARED => false,
        EXCLUSIVE => true,
        UNLOCK => return Ok(locks.unlock(place, owner, Extent::Whole, meter)?),
        _ => return Err(Errno::EINVAL.into()),
    };
    let wanted = Held { owner, extent: Extent::Whole, exclusive };
    Ok(locks.lock(&process, place, wanted, operation & NO_WAIT == 0, meter).await?)
}

/// How a file was opened; a descriptor that only stands for a path cannot be locked.
fn flags_of(file: &TreeFile) -> Result<OpenFlags> {
    let flags = file.with(|handle| Ok(handle.flags()))?;
    if flags.contains(OpenFlags::PATH) { Err(Errno::EBADF) } else { Ok(flags) }
}

async fn lock(call: &mut Call<'_>, fd: u32, command: u32, range: u32) -> Outcome {
    let raw = call.words::<24>(range)?;
    let kind = u32::from_le_bytes(raw[..4].try_into().expect("four bytes"));
    let number = |at: usize| i64::from_le_bytes(raw[at..at + 8].try_into().expect("eight bytes"));
    let extent = extent(number(8), number(16))?;
    let (machine, process) = (call.machine().clone(), call.process().clone());
    let open = call.file(fd)?;
    let file = tree_file(&open)?;
    let flags = flags_of(file)?;
    let (locks, meter, place) = (machine.locks(), machine.meter(), file.place());
    let owner = match command & DESCRIPTION {
        0 => Owner::Process(process.pid),
        _ => file.owner(locks),
    };
    let wanted = Held { owner, extent, exclusive: kind == WRITE };
    match (command & !DESCRIPTION, kind) {
        (GET, READ | WRITE) => {
            let answer = answer(&raw, locks.obstacle(place, &wanted));
            Ok(call.put(range, &answer)?)
        }
        (SET | WAIT, NONE) => Ok(locks.unlock(place, owner, extent, meter)?),
        (SET | WAIT, READ) if !flags.contains(OpenFlags::READ) => Err(Errno::EBADF.into()),
        (SET | WAIT, WRITE) if !flags.contains(OpenFlags::WRITE) => Err(Errno::EBADF.into()),
        (SET | WAIT, READ | WRITE) => {
            let waits = command & !DESCRIPTION == WAIT;
            Ok(locks.lock(&process, place, wanted, waits, meter).await?)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

/// The bytes from `start`, `length` of them or, for none, all that follow.
fn extent(start: i64, length: i64) -> Result<Extent> {
    let start = u64::try_from(start).map_err(|_| Errno::EINVAL)?;
    let length = u64::try_from(length).map_err(|_| Errno::EINVAL)?;
    let end = match length {
        0 => u64::MAX,
        length => start + length,
    };
    if length > 0 && end > i64::MAX as u64 + 1 {
        Err(Errno::EOVERFLOW)
    } else {
        Ok(Extent::Range(start, end))
    }
}

/// What is asked about, as the lock that is in its way: or as none.
fn answer(asked: &[u8; 24], obstacle: Option<Held>) -> [u8; 24] {
    let mut answer = *asked;
    let Some(held) = obstacle else {
        answer[..4].copy_from_slice(&NONE.to_le_bytes());
        return answer;
    };
    let kind = if held.exclusive { WRITE } else { READ };
    // A description's lock is nobody's in particular.
    let pid = if let Owner::Process(pid) = held.owner { pid } else { u32::MAX };
    if let Extent::Range(start, end) = held.extent {
        let length = if end == u64::MAX { 0 } else { end - start };
        answer[8..16].copy_from_slice(&start.to_le_bytes());
        answer[16..].copy_from_slice(&length.to_le_bytes());
    }
    answer[..4].copy_from_slice(&kind.to_le_bytes());
    answer[4..8].copy_from_slice(&pid.to_le_bytes());
    answer
}
