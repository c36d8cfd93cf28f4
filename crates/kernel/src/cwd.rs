//! A process's working directory.
//!
//! It is held open, as Linux does: a directory that is removed goes on existing for those who are in it.

use std::sync::Arc;

use wardian_vfs::{Access, Caller, Handle, OpenFlags, Place, Result, Tree};

use crate::fd::OpenFile;
use crate::machine::Machine;

/// A working directory. Copies share the hold on it.
#[derive(Clone)]
pub(crate) struct Cwd {
    handle: Handle,
    /// What it was called when it became that, for `/proc`.
    name: Arc<[u8]>,
    _hold: Arc<OpenFile>,
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
        let hold = machine.tree_fd(handle.clone(), Vec::new()).file;
        let place = handle.place();
        tree.access(who, &place, b".", Access::X)?;
        let name = tree.path_of(&place).unwrap_or_else(|_| b"(deleted)".to_vec()).into();
        Ok(Cwd { handle, name, _hold: hold })
    }

    /// Where it is.
    pub(crate) fn place(&self) -> Place {
        self.handle.place()
    }

    /// What it was called when it was entered.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// What it is open as.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The same directory in another machine, whose tree is a clone made while it was open here.
    pub(crate) fn moved_to(&self, machine: &Machine) -> Cwd {
        let hold = machine.tree_fd(self.handle.clone(), Vec::new()).file;
        Cwd { handle: self.handle.clone(), name: self.name.clone(), _hold: hold }
    }
}
