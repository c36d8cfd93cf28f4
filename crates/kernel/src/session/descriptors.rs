//! A session's descriptors between commands.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Weak};

use wardian_vfs::{Handle, Result};

use crate::at_rest::{Resting, RestingFd};
use crate::fd::{Fd, FdTable, OpenFile};
use crate::input::Input;
use crate::limits::Meter;
use crate::machine::Machine;
use crate::net::Shape;
use crate::outlet::Outlet;
use crate::run::Run;
use crate::stream::Standard;

/// A descriptor between commands, in the machine it was opened in.
pub(super) enum HeldFd {
    /// A file of the tree, at its offset.
    File { open: Arc<OpenFile>, handle: Handle, cloexec: bool },
    /// A stream of the next command.
    Stream(Standard, bool),
    /// The end of a pipe. A weak reference: a copy kept here must not keep a pipe open that the shell has closed.
    Pipe { open: Weak<OpenFile>, reads: bool, writes: bool, cloexec: bool },
    /// A socket, weakly as well.
    Socket { open: Weak<OpenFile>, shape: Shape, cloexec: bool },
}

pub(super) fn hold_fds(table: &FdTable) -> Vec<(u32, HeldFd)> {
    table.iter().filter_map(|(number, fd)| Some((number, HeldFd::hold(fd)?))).collect()
}

impl HeldFd {
    fn hold(fd: &Fd) -> Option<HeldFd> {
        let (open, cloexec) = (&fd.file, fd.cloexec);
        let end = |reads, writes| HeldFd::Pipe { open: Arc::downgrade(open), reads, writes, cloexec };
        Some(match &**open {
            OpenFile::Tree(file) => {
                let handle = file.with(|handle| Ok(handle.clone())).ok()?;
                HeldFd::File { open: open.clone(), handle, cloexec }
            }
            OpenFile::Input(..) => HeldFd::Stream(Standard::Input, cloexec),
            OpenFile::Output(_, which, _) | OpenFile::Terminal(_, which, _) => {
                HeldFd::Stream(*which, cloexec)
            }
            OpenFile::Reader(_) => end(true, false),
            OpenFile::Writer(_) => end(false, true),
            OpenFile::Both(..) => end(true, true),
            OpenFile::Socket(socket) => {
                HeldFd::Socket { open: Arc::downgrade(open), shape: socket.socket().shape(), cloexec }
            }
        })
    }

    /// Returns the descriptor as it was, in the same machine.
    pub(super) fn reopen(&self, machine: &Machine) -> Fd {
        let meter = machine.meter();
        let (file, cloexec) = match self {
            HeldFd::File { open, handle, cloexec } => {
                if let OpenFile::Tree(file) = &**open {
                    let _ = file.with(|live| {
                        live.clone_from(handle);
                        Ok(())
                    });
                }
                (open.clone(), *cloexec)
            }
            HeldFd::Stream(Standard::Input, cloexec) => (Arc::new(OpenFile::input(Input::empty())), *cloexec),
            // Until the next command's are put there.
            HeldFd::Stream(which, cloexec) => {
                (Arc::new(OpenFile::output(Outlet::nowhere(), *which)), *cloexec)
            }
            HeldFd::Pipe { open, reads, writes, cloexec } => {
                let open = open.upgrade().unwrap_or_else(|| Arc::new(ended_pipe(meter, *reads, *writes)));
                (open, *cloexec)
            }
            HeldFd::Socket { open, shape, cloexec } => {
                let lost = || Arc::new(OpenFile::Socket(machine.network().lost_socket(*shape)));
                (open.upgrade().unwrap_or_else(lost), *cloexec)
            }
        };
        Fd { file, cloexec }
    }
}

/// An end of a pipe whose other end is gone: it reads as empty, and writing to it is a broken pipe.
fn ended_pipe(meter: &Arc<Meter>, reads: bool, writes: bool) -> OpenFile {
    let (reader, writer) = crate::pipe::ended_pipe(meter);
    match (reads, writes) {
        (true, true) => OpenFile::Both(reader, writer),
        (true, false) => OpenFile::Reader(reader),
        _ => OpenFile::Writer(writer),
    }
}

/// Returns the descriptors as a value. Those that share an open file have the same number.
pub(super) fn rest_fds(held: &[(u32, HeldFd)]) -> Arc<[(u32, RestingFd)]> {
    let mut descriptions: HashMap<*const OpenFile, u32> = HashMap::new();
    let mut resting = Vec::with_capacity(held.len());
    for (number, fd) in held {
        let (what, cloexec) = match fd {
            HeldFd::File { open, handle, cloexec } => {
                let next = descriptions.len() as u32;
                let description = *descriptions.entry(Arc::as_ptr(open)).or_insert(next);
                let name = match &**open {
                    OpenFile::Tree(file) => file.shared_name(),
                    _ => Arc::default(),
                };
                (Resting::File { description, handle: handle.clone(), name }, *cloexec)
            }
            HeldFd::Stream(which, cloexec) => (Resting::Stream(*which), *cloexec),
            HeldFd::Pipe { reads, writes, cloexec, .. } => {
                (Resting::Pipe { reads: *reads, writes: *writes }, *cloexec)
            }
            HeldFd::Socket { shape, cloexec, .. } => (Resting::Socket(*shape), *cloexec),
        };
        resting.push((*number, RestingFd { what, cloexec }));
    }
    resting.into()
}

/// Opens an idle session's descriptors in a machine, and charges for them as if its processes had. Returns ENOMEM past the
/// limit.
pub(super) fn wake_fds(resting: &[(u32, RestingFd)], machine: &Machine) -> Result<Vec<(u32, HeldFd)>> {
    let run = Run::default();
    let mut opened: HashMap<u32, Arc<OpenFile>> = HashMap::new();
    let mut held = Vec::with_capacity(resting.len());
    for (number, fd) in resting {
        let cloexec = fd.cloexec;
        let woken = match &fd.what {
            Resting::File { description, handle, name } => {
                let open = match opened.entry(*description) {
                    Entry::Occupied(known) => known.get().clone(),
                    Entry::Vacant(new) => {
                        let fd = machine.charged_fd(&run, handle.clone(), name.clone())?;
                        new.insert(fd.file).clone()
                    }
                };
                HeldFd::File { open, handle: handle.clone(), cloexec }
            }
            Resting::Stream(which) => HeldFd::Stream(*which, cloexec),
            Resting::Pipe { reads, writes } => {
                HeldFd::Pipe { open: Weak::new(), reads: *reads, writes: *writes, cloexec }
            }
            Resting::Socket(shape) => HeldFd::Socket { open: Weak::new(), shape: *shape, cloexec },
        };
        held.push((*number, woken));
    }
    Ok(held)
}
