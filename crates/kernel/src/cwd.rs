//! A process's working directory.
//!
//! It is held open, as on Linux: a removed directory continues to exist for processes that are in it.

use std::sync::Arc;

use wardian_vfs::{Access, Caller, Errno, Handle, OpenFlags, Place, Result, Tree};

use crate::call::MAX_PATH;
use crate::fd::OpenFile;
use crate::machine::Machine;

/// A working directory. Copies share the open handle.
#[derive(Clone)]
pub(crate) struct Cwd {
    handle: Handle,
    /// Its name when it was entered, for `/proc`.
    name: Arc<[u8]>,
    /// Gone when its process has ended.
    hold: Option<Arc<OpenFile>>,
}

impl Cwd {
    /// Enters the directory at `path`.
    pub(crate) fn enter(
        machine: &Machine,
        tree: &mut Tree,
        who: &Caller,
        at: &Place,
        path: &[u8],
    ) -> Result<Cwd> {
        let handle = tree.open(who, at, path, OpenFlags::PATH | OpenFlags::DIRECTORY, 0)?;
        // From here on it is given back whatever happens.
        let hold = Some(machine.tree_fd(handle.clone()).file);
        let place = handle.place();
        tree.access(who, &place, b".", Access::X)?;
        let name = match tree.path_within(&place, MAX_PATH as usize) {
            Ok(name) => name,
            Err(Errno::ENAMETOOLONG) => b"(unreachable)".to_vec(),
            Err(_) => b"(deleted)".to_vec(),
        };
        let name = name.into();
        Ok(Cwd { handle, name, hold })
    }

    /// Where it is.
    pub(crate) fn place(&self) -> Place {
        self.handle.place()
    }

    /// Returns its name when it was entered.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// What it is open as.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The directory that `handle` of the machine's tree has open, called `name`.
    pub(crate) fn held(machine: &Machine, handle: Handle, name: Arc<[u8]>) -> Cwd {
        let hold = Some(machine.tree_fd(handle.clone()).file);
        Cwd { handle, name, hold }
    }

    /// Its name, for those who keep it.
    pub(crate) fn shared_name(&self) -> Arc<[u8]> {
        self.name.clone()
    }

    /// What holds it open.
    pub(crate) fn hold(&self) -> Option<&Arc<OpenFile>> {
        self.hold.as_ref()
    }

    /// Closes it: its process has ended, and those who are told so may count what is left.
    pub(crate) fn let_go(&mut self) {
        self.hold = None;
    }
}
