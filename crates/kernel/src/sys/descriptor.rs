//! Descriptors: pipes, copies, the close-on-exec flag, terminals.

use wardian_vfs::Errno;
use wasmtime::Linker;

use super::MODULE;
use crate::call::{Call, Outcome, quick_calls};
use crate::fd::{Fd, OpenFile};
use crate::instance::Ctx;
use crate::pipe;

/// The new descriptor is closed when another program is started.
const CLOEXEC: u32 = 1;

pub(super) fn add_to_linker(linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
    quick_calls! { linker, MODULE;
        pipe(fds: u32, flags: u32);
        dup(fd: u32, min: u32, flags: u32, new: u32);
        dup2(from: u32, to: u32, flags: u32);
        cloexec(fd: u32, value: i32, old: u32);
        isatty(fd: u32);
        winsize(fd: u32, out: u32);
    }
    Ok(())
}

fn pipe(call: &mut Call<'_>, out: u32, flags: u32) -> Outcome {
    call.bytes(out, 8)?;
    let cloexec = flags & CLOEXEC != 0;
    let (reader, writer) = pipe::pipe();
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
    drop(replaced);
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

/// No stream of a run is a terminal: a host that has one attaches it as such.
fn isatty(call: &mut Call<'_>, fd: u32) -> Outcome {
    call.fd(fd)?;
    Err(Errno::ENOTTY.into())
}

fn winsize(call: &mut Call<'_>, fd: u32, _out: u32) -> Outcome {
    call.fd(fd)?;
    Err(Errno::ENOTTY.into())
}
