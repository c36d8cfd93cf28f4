//! A system call in progress: the caller, its memory, and how the call can end.

use std::sync::Arc;

use wardian_vfs::{Errno, Place};
use wasmtime::Caller;

use crate::fd::{Fd, OpenFile};
use crate::instance::{Ctx, Stop};
use crate::limits::Charge;
use crate::machine::Machine;
use crate::proc::Process;
use crate::signal::SIGKILL;

/// Stands for the root directory where a descriptor is expected.
pub(crate) const ROOT_FD: u32 = 0x7fff_ff00;
/// Stands for the working directory where a descriptor is expected.
pub(crate) const CWD_FD: u32 = 0x7fff_ff01;
/// Paths are shorter than this, as on Linux.
pub(crate) const MAX_PATH: u32 = 4096;

/// Why a call did not succeed.
pub(crate) enum Fail {
    /// The guest gets an errno.
    Errno(Errno),
    /// The guest does not continue.
    Stop(Stop),
}

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Fail {
        Fail::Errno(errno)
    }
}

/// How a call ends.
pub(crate) type Outcome<T = ()> = Result<T, Fail>;

/// One system call.
pub(crate) struct Call<'a> {
    pub(crate) caller: Caller<'a, Ctx>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(caller: Caller<'a, Ctx>) -> Call<'a> {
        caller.data().process.footprint.runs_here();
        Call { caller }
    }

    pub(crate) fn machine(&self) -> &Arc<Machine> {
        &self.caller.data().machine
    }

    /// Whether the program uses the `wardian` imports, and not only WASI.
    pub(crate) fn is_native(&self) -> bool {
        self.caller.data().program.native
    }

    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.caller.data().process
    }

    /// Charges the sandbox for `bytes` that the kernel keeps for this process. Returns ENOMEM past the limit.
    pub(crate) fn charge(&self, bytes: usize) -> Result<Charge, Errno> {
        self.machine().meter().hold_for(&self.process().run.lock(), bytes)
    }

    /// Notes that a limit changed what happened.
    pub(crate) fn hit(&self, limit: &'static str) {
        self.process().run.lock().hit(limit);
    }

    /// Returns what the guest sees: an errno, or nothing any more.
    pub(crate) fn finish(&self, outcome: Outcome) -> wasmtime::Result<i32> {
        if self.process().is_doomed() {
            return Err(Stop::Signal(SIGKILL).into());
        }
        match outcome {
            Ok(()) => Ok(0),
            Err(Fail::Errno(errno)) => Ok(i32::from(crate::wasi::errno_number(errno))),
            Err(Fail::Stop(stop)) => Err(stop.into()),
        }
    }

    /// The guest's memory at `ptr`.
    pub(crate) fn bytes(&mut self, ptr: u32, len: u32) -> Result<&mut [u8], Errno> {
        let memory = self.caller.data().memory.ok_or(Errno::EFAULT)?;
        let (start, len) = (ptr as usize, len as usize);
        memory.data_mut(&mut self.caller).get_mut(start..).and_then(|m| m.get_mut(..len)).ok_or(Errno::EFAULT)
    }

    /// Copies this many of the guest's bytes at `ptr`. Whatever a guest can make longer than a few words has a separate
    /// cap ([`Call::list`], [`Call::path`]).
    pub(crate) fn words<const N: usize>(&mut self, ptr: u32) -> Result<[u8; N], Errno> {
        let mut words = [0; N];
        words.copy_from_slice(self.bytes(ptr, N as u32)?);
        Ok(words)
    }

    /// The guest's list at `ptr`: `count` entries of `size` bytes each, `most` of them or `too_many`.
    pub(crate) fn list(
        &mut self,
        ptr: u32,
        (count, size): (u32, u32),
        most: u32,
        too_many: Errno,
    ) -> Result<&[u8], Errno> {
        if count > most {
            return Err(too_many);
        }
        let len = count.checked_mul(size).ok_or(Errno::EFAULT)?;
        Ok(self.bytes(ptr, len)?)
    }

    /// Writes `data` at `ptr`.
    pub(crate) fn put(&mut self, ptr: u32, data: &[u8]) -> Result<(), Errno> {
        let len = u32::try_from(data.len()).map_err(|_| Errno::EFAULT)?;
        self.bytes(ptr, len)?.copy_from_slice(data);
        Ok(())
    }

    pub(crate) fn put_u32(&mut self, ptr: u32, value: u32) -> Result<(), Errno> {
        self.put(ptr, &value.to_le_bytes())
    }

    pub(crate) fn put_u64(&mut self, ptr: u32, value: u64) -> Result<(), Errno> {
        self.put(ptr, &value.to_le_bytes())
    }

    /// A path, copied and checked.
    pub(crate) fn path(&mut self, ptr: u32, len: u32) -> Result<Vec<u8>, Errno> {
        let path = self.name(ptr, len)?;
        self.confine(path)
    }

    /// Bytes that are no longer than a path and have no NUL in them.
    pub(crate) fn name(&mut self, ptr: u32, len: u32) -> Result<Vec<u8>, Errno> {
        if len >= MAX_PATH {
            return Err(Errno::ENAMETOOLONG);
        }
        let name = self.bytes(ptr, len)?.to_vec();
        if name.contains(&0) { Err(Errno::EINVAL) } else { Ok(name) }
    }

    /// A foreign program's paths stay below the directory they start from.
    fn confine(&self, path: Vec<u8>) -> Result<Vec<u8>, Errno> {
        if self.is_native() {
            return Ok(path);
        }
        let mut depth = 0i32;
        for part in path.split(|&b| b == b'/').filter(|part| !part.is_empty() && *part != b".") {
            depth += if part == b".." { -1 } else { 1 };
            if depth < 0 {
                return Err(Errno::EPERM);
            }
        }
        if path.starts_with(b"/") { Err(Errno::EPERM) } else { Ok(path) }
    }

    pub(crate) fn fd(&self, fd: u32) -> Result<Fd, Errno> {
        self.process().fd(fd)
    }

    pub(crate) fn file(&self, fd: u32) -> Result<Arc<OpenFile>, Errno> {
        Ok(self.fd(fd)?.file)
    }

    /// The directory that a descriptor or one of the two constants names.
    pub(crate) async fn directory(&self, fd: u32) -> Result<Place, Errno> {
        match fd {
            ROOT_FD if self.is_native() => Ok(self.machine().tree().await.root()),
            CWD_FD if self.is_native() => Ok(self.process().place()),
            _ => match &*self.file(fd)? {
                OpenFile::Tree(file) => Ok(file.place().clone()),
                _ => Err(Errno::ENOTDIR),
            },
        }
    }
}

/// Defines calls that may wait, or that touch the files: each `name(args)` is the `async fn name` in scope.
macro_rules! waiting_calls {
    ($imports:expr, $module:expr; $( $name:ident ( $($arg:ident : $ty:ty),* $(,)? ); )*) => { $(
        $imports.note(
            $module,
            stringify!($name),
            &[$((stringify!($arg), <$ty as $crate::imports::Word>::LETTER)),*],
        );
        $imports.linker.func_wrap_async(
            $module,
            stringify!($name),
            |caller: wasmtime::Caller<'_, $crate::instance::Ctx>, ($($arg,)*): ($($ty,)*)| Box::new(async move {
                let mut call = $crate::call::Call::new(caller);
                let outcome = $name(&mut call, $($arg),*).await;
                call.process().task().pause_if_due().await;
                call.finish(outcome)
            }),
        )?;
    )* };
}

/// Defines calls that return immediately. They look whether the turn is over as well: a straight line of them comes to no other place
/// that does.
macro_rules! quick_calls {
    ($imports:expr, $module:expr; $( $name:ident ( $($arg:ident : $ty:ty),* $(,)? ); )*) => { $(
        $imports.note(
            $module,
            stringify!($name),
            &[$((stringify!($arg), <$ty as $crate::imports::Word>::LETTER)),*],
        );
        $imports.linker.func_wrap_async(
            $module,
            stringify!($name),
            |caller: wasmtime::Caller<'_, $crate::instance::Ctx>, ($($arg,)*): ($($ty,)*)| Box::new(async move {
                let mut call = $crate::call::Call::new(caller);
                let outcome = $name(&mut call, $($arg),*);
                call.process().task().pause_if_due().await;
                call.finish(outcome)
            }),
        )?;
    )* };
}

/// Defines a call that returns a number of its own, and never fails: `|ctx, args| number`.
macro_rules! number_call {
    ($imports:expr, $module:expr, $name:literal, |$ctx:ident $(, $arg:ident : $ty:ty)*| $number:expr) => {
        $imports.note(
            $module,
            $name,
            &[$((stringify!($arg), <$ty as $crate::imports::Word>::LETTER)),*],
        );
        $imports.linker.func_wrap_async(
            $module,
            $name,
            |caller: wasmtime::Caller<'_, $crate::instance::Ctx>, ($($arg,)*): ($($ty,)*)| Box::new(async move {
                let $ctx = caller.data();
                let number: u32 = $number;
                $ctx.process.task().pause_if_due().await;
                number
            }),
        )?;
    };
}

pub(crate) use {number_call, quick_calls, waiting_calls};
