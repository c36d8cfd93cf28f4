//! Programs that never heard of us: ordinary WASI modules.
//!
//! They find files through preopened directories, which libc looks for from descriptor 3 up. So before such a program
//! starts, its inherited descriptors move up to make room for `.` and every top-level directory.

use std::sync::Arc;

use wardian_vfs::{OpenFlags, Result};

use crate::fd::{Fd, FdTable, OpenFile, TreeFile};
use crate::machine::Machine;
use crate::proc::Process;

/// Lays out the process's descriptors as a foreign program expects them.
pub(crate) async fn prepare(machine: &Arc<Machine>, process: &Process) -> Result<()> {
    let preopens = preopens(machine, process).await?;
    let mut fds = process.fds.lock();
    let mut laid_out = FdTable::new(fds.limit());
    for (number, entry) in fds.iter().filter(|(number, _)| *number < 3) {
        laid_out.put(number, entry.clone())?;
    }
    for preopen in preopens {
        laid_out.insert(preopen, 3)?;
    }
    for (_, entry) in fds.iter().filter(|(number, entry)| *number >= 3 && !is_preopen(entry)) {
        laid_out.insert(entry.clone(), 3)?;
    }
    *fds = laid_out;
    Ok(())
}

fn is_preopen(entry: &Fd) -> bool {
    matches!(&*entry.file, OpenFile::Tree(file) if file.preopen.is_some())
}

async fn preopens(machine: &Arc<Machine>, process: &Process) -> Result<Vec<Fd>> {
    let (caller, cwd) = (process.caller(), process.place());
    let mut tree = machine.tree().await;
    let root = tree.root();
    let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
    let mut opened = vec![(b".".to_vec(), tree.open(&caller, &cwd, b".", flags, 0)?)];
    let listing = tree.open(&caller, &root, b"/", flags, 0)?;
    let entries = tree.read_dir(&caller, &listing, 0, usize::MAX);
    tree.close(listing);
    for entry in entries? {
        let path = [b"/", &entry.name[..]].concat();
        if entry.name.starts_with(b".") {
            continue;
        }
        if let Ok(handle) = tree.open(&caller, &root, &path, flags, 0) {
            opened.push((path, handle));
        }
    }
    Ok(opened.into_iter().map(|(name, handle)| machine.preopen_fd(name, handle)).collect())
}

impl Machine {
    fn preopen_fd(&self, name: Vec<u8>, handle: wardian_vfs::Handle) -> Fd {
        let mut file = TreeFile::new(handle, name.clone(), self.released().clone());
        file.preopen = Some(name);
        Fd::new(OpenFile::Tree(file))
    }
}
