//! Descriptors: pipes, copies, the close-on-exec flag, terminals.

use std::sync::Arc;

use wardian_vfs::{Errno, Result};

use super::MODULE;
use crate::call::{Call, Outcome, quick_calls, waiting_calls};
use crate::fd::{Fd, OpenFile};
use crate::imports::Imports;
use crate::pipe;
use crate::proc::Pid;
use crate::tty::{MODE_SIZE, Mode, Terminal};

/// The new descriptor is closed when another program is started.
const CLOEXEC: u32 = 1;

pub(super) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    quick_calls! { imports, MODULE;
        pipe(fds: u32, flags: u32);
        dup(fd: u32, min: u32, flags: u32, new: u32);
        dup2(from: u32, to: u32, flags: u32);
        cloexec(fd: u32, value: i32, old: u32);
        isatty(fd: u32);
        winsize(fd: u32, out: u32);
        setwinsize(fd: u32, rows: u32, columns: u32);
        tcgetattr(fd: u32, out: u32);
        tcgetpgrp(fd: u32, group: u32);
    }
    waiting_calls! { imports, MODULE;
        tcsetattr(fd: u32, flush: u32, mode: u32);
        tcsetpgrp(fd: u32, group: u32);
    }
    Ok(())
}

fn pipe(call: &mut Call<'_>, out: u32, flags: u32) -> Outcome {
    call.bytes(out, 8)?;
    let cloexec = flags & CLOEXEC != 0;
    let made = pipe::pipe(call.machine().meter());
    let (reader, writer) = made.ok_or_else(|| {
        call.process().run.lock().hit("memoryBytes");
        Errno::ENFILE
    })?;
    let entry = |file| Fd { cloexec, ..Fd::new(file) };
    let (read, write) = {
        let mut fds = call.process().fds.lock();
        let read = fds.insert(entry(OpenFile::Reader(reader)), 0);
        let read = read.inspect_err(|_| call.process().run.lock().hit("openFiles"))?;
        let write = fds.insert(entry(OpenFile::Writer(writer)), 0);
        match write {
            Ok(write) => (read, write),
            Err(errno) => {
                fds.remove(read)?;
                call.process().run.lock().hit("openFiles");
                return Err(errno.into());
            }
        }
    };
    call.put_u32(out, read)?;
    Ok(call.put_u32(out + 4, write)?)
}

fn dup(call: &mut Call<'_>, fd: u32, min: u32, flags: u32, new: u32) -> Outcome {
    call.bytes(new, 4)?;
    let entry = Fd { cloexec: flags & CLOEXEC != 0, ..call.fd(fd)? };
    let at = call.process().fds.lock().insert(entry, min);
    let at = at.inspect_err(|e| {
        if *e == Errno::EMFILE {
            call.process().run.lock().hit("openFiles")
        }
    })?;
    Ok(call.put_u32(new, at)?)
}

fn dup2(call: &mut Call<'_>, from: u32, to: u32, flags: u32) -> Outcome {
    let entry = Fd { cloexec: flags & CLOEXEC != 0, ..call.fd(from)? };
    let replaced = call.process().fds.lock().put(to, entry)?;
    if let Some(replaced) = replaced.filter(|_| from != to) {
        call.machine().closed(call.process(), &replaced.file);
    }
    Ok(())
}

fn cloexec(call: &mut Call<'_>, fd: u32, value: i32, old: u32) -> Outcome {
    call.bytes(old, 4)?;
    let before = {
        let mut fds = call.process().fds.lock();
        let entry = fds.get_mut(fd)?;
        let before = entry.cloexec;
        match value {
            0 | 1 => entry.cloexec = value == 1,
            -1 => {}
            _ => return Err(Errno::EINVAL.into()),
        }
        before
    };
    Ok(call.put_u32(old, u32::from(before))?)
}

/// The terminal behind a descriptor.
fn terminal(call: &Call<'_>, fd: u32) -> Result<Arc<Terminal>> {
    match &*call.file(fd)? {
        OpenFile::Terminal(terminal, ..) => Ok(terminal.clone()),
        _ => Err(Errno::ENOTTY),
    }
}

fn isatty(call: &mut Call<'_>, fd: u32) -> Outcome {
    terminal(call, fd)?;
    Ok(())
}

fn winsize(call: &mut Call<'_>, fd: u32, out: u32) -> Outcome {
    let (rows, columns) = terminal(call, fd)?.size();
    Ok(call.put(out, &[rows.to_le_bytes(), columns.to_le_bytes()].concat())?)
}

fn setwinsize(call: &mut Call<'_>, fd: u32, rows: u32, columns: u32) -> Outcome {
    let size = |n: u32| u16::try_from(n).map_err(|_| Errno::EINVAL);
    let (rows, columns) = (size(rows)?, size(columns)?);
    terminal(call, fd)?.resize(rows, columns);
    Ok(())
}

fn tcgetattr(call: &mut Call<'_>, fd: u32, out: u32) -> Outcome {
    let mode = terminal(call, fd)?.mode();
    Ok(call.put(out, &mode.to_abi())?)
}

async fn tcsetattr(call: &mut Call<'_>, fd: u32, flush: u32, mode: u32) -> Outcome {
    let mode = Mode::from_abi(&call.words::<{ MODE_SIZE as usize }>(mode)?)?;
    let terminal = terminal(call, fd)?;
    in_front(call, &terminal).await?;
    terminal.set_mode(mode, flush == 1);
    Ok(())
}

fn tcgetpgrp(call: &mut Call<'_>, fd: u32, group: u32) -> Outcome {
    let foreground = terminal(call, fd)?.foreground().ok_or(Errno::ENOTTY)?;
    Ok(call.put_u32(group, foreground)?)
}

async fn tcsetpgrp(call: &mut Call<'_>, fd: u32, group: u32) -> Outcome {
    let terminal = terminal(call, fd)?;
    let group: Pid = group;
    let exists = call.machine().table().iter().any(|(_, entry)| entry.group == group);
    if !exists {
        return Err(Errno::EPERM.into());
    }
    in_front(call, &terminal).await?;
    terminal.set_foreground(group);
    Ok(())
}

/// A process that changes the terminal from the background is stopped until it is in the foreground.
async fn in_front(call: &Call<'_>, terminal: &Terminal) -> Result<()> {
    let (machine, process) = (call.machine().clone(), call.process().clone());
    process.interruptible(terminal.wait_to_change(&machine, &process)).await
}
