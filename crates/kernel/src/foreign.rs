//! Programs that do not know Wardian's interface: ordinary WASI modules.
//!
//! They find files through preopened directories, which libc looks for from descriptor 3 up. So before such a program
//! starts, its inherited descriptors move up to make space for `.` and every top-level directory.
//!
//! A caller can restrict a program to some directories (`exec_wasi`); then it has these and its three streams, and no
//! path, link or `..` leads out of them.

use std::sync::Arc;

use wardian_vfs::{Caller, Errno, FileKind, OpenFlags, Place, Result, Tree};

use crate::fd::{Fd, FdTable, OpenFile, TreeFile};
use crate::machine::Machine;
use crate::proc::Process;
use crate::run::Run;

/// Lays out the process's descriptors as a foreign program expects them; with `only`, just these directories.
pub(crate) async fn prepare(machine: &Arc<Machine>, process: &Process, only: Option<&[Fd]>) -> Result<()> {
    let preopens = match only {
        Some(given) => given.to_vec(),
        None => preopens(machine, process).await?,
    };
    let mut fds = process.fds.lock();
    let mut laid_out: FdTable = fds.emptied();
    for (number, entry) in fds.iter().filter(|(number, _)| *number < 3) {
        laid_out.put(number, entry.clone())?;
    }
    for preopen in preopens {
        laid_out.insert(preopen, 3)?;
    }
    let inherited = |(number, entry): &(u32, &Fd)| only.is_none() && *number >= 3 && !is_preopen(entry);
    for (_, entry) in fds.iter().filter(inherited) {
        laid_out.insert(entry.clone(), 3)?;
    }
    *fds = laid_out;
    Ok(())
}

fn is_preopen(entry: &Fd) -> bool {
    matches!(&*entry.file, OpenFile::Tree(file) if file.preopen_name().is_some())
}

async fn preopens(machine: &Arc<Machine>, process: &Process) -> Result<Vec<Fd>> {
    let (caller, cwd) = (process.caller(), process.place());
    let mut tree = machine.tree().await;
    let root = tree.root();
    let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
    let mut opened = vec![(b".".to_vec(), tree.open(&caller, &cwd, b".", flags, 0)?)];
    let listing = tree.open(&caller, &root, b"/", flags, 0)?;
    // More of them than it may have descriptors are of no use.
    let entries = tree.read_dir(&caller, &listing, 0, process.fds.lock().open.soft as usize);
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
    drop(tree);
    let run = process.run();
    opened.into_iter().map(|(name, handle)| machine.preopen_fd(&run, name, handle)).collect()
}

/// A directory that a caller passes as a descriptor, with a name.
pub(crate) async fn given(
    machine: &Arc<Machine>,
    process: &Process,
    directory: Arc<OpenFile>,
    name: Vec<u8>,
) -> Result<Fd> {
    let caller = process.caller();
    let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
    let opened = machine.on_file(&directory, move |tree, handle| tree.reopen(&caller, handle, flags)).await;
    let handle = opened.map_err(|errno| if errno == Errno::ESPIPE { Errno::ENOTDIR } else { errno })?;
    machine.preopen_fd(&process.run(), name, handle)
}

/// More links than this in one path are a loop, as on Linux.
const MAX_LINKS: usize = 40;
/// More steps than this, through links that lead to long paths, are a loop as well. A path by itself has half as many.
const MAX_STEPS: usize = 4096;

/// Returns the same path without links, if none of them, and no `..`, leads out of the directory it starts from. The
/// last part stays a link unless links are followed.
pub(crate) fn beneath(tree: &Tree, who: &Caller, at: &Place, path: &[u8], follow: bool) -> Result<Vec<u8>> {
    let enters = path.ends_with(b"/");
    let mut rest = parts_reversed(path);
    // Each part with the place it leads to, or why it leads nowhere: what is not there yet may be made.
    let mut walked: Vec<(Vec<u8>, Result<Place>)> = Vec::new();
    let (mut links, mut steps) = (0, 0);
    while let Some(part) = rest.pop() {
        steps += 1;
        if steps > MAX_STEPS {
            return Err(Errno::ELOOP);
        }
        let here = walked.last().map_or_else(|| Ok(at.clone()), |(_, place)| place.clone());
        if part == b".." {
            if tree.stat_place(who, &here?)?.kind != FileKind::Dir {
                return Err(Errno::ENOTDIR);
            }
            if walked.pop().is_none() {
                return Err(Errno::EPERM);
            }
            continue;
        }
        let place = here.clone().and_then(|here| tree.lookup(who, &here, &part, false));
        let looked_through = follow || enters || !rest.is_empty();
        let kind = place.clone().and_then(|place| Ok(tree.stat_place(who, &place)?.kind));
        if !looked_through || kind != Ok(FileKind::Symlink) {
            walked.push((part, place));
            continue;
        }
        links += 1;
        let target = tree.read_link(who, &here?, &part)?;
        match target.starts_with(b"/") {
            true => return Err(Errno::EPERM),
            false if links > MAX_LINKS => return Err(Errno::ELOOP),
            false => rest.extend(parts_reversed(&target)),
        }
    }
    let walked: Vec<Vec<u8>> = walked.into_iter().map(|(part, _)| part).collect();
    let mut resolved = joined(&walked);
    if enters {
        resolved.push(b'/');
    }
    Ok(resolved)
}

fn parts_reversed(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    parts.rev().map(<[u8]>::to_vec).collect()
}

fn joined(parts: &[Vec<u8>]) -> Vec<u8> {
    if parts.is_empty() { b".".to_vec() } else { parts.join(&b'/') }
}

impl Machine {
    fn preopen_fd(&self, run: &Run, name: Vec<u8>, handle: wardian_vfs::Handle) -> Result<Fd> {
        self.charged(run, TreeFile::new(handle, name.into(), self.released().clone()).preopened())
    }
}
