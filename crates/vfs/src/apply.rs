//! Taking an overlay's changes over into the host directory.
//!
//! ```text
//! 1  write all new contents to a directory of their own      nothing is changed yet; most failures are here
//! 2  move what is deleted aside, deepest first
//! 3  make directories and links, move the contents in place
//! 4  set modes, forget the overlay's changes: they are the directory now
//! ```
//! Each step says how it is undone. When one fails, those before it are undone, the last first.

use crate::diff::{Change, What};
use crate::handle::OpenFlags;
use crate::host::HostDir;
use crate::mount::Source;
use crate::name::join;
use crate::place::{MountSpot, Place};
use crate::{Caller, Errno, FileKind, Result, Tree};
use cap_std::fs::FileExt;
use std::sync::Arc;

impl Tree {
    /// Makes the changes of the overlay mounted at `path` in the host directory itself, and says which they
    /// were; after that the overlay has none. Pipes, links that lead out of the directory and
    /// set-user-id bits are not for a host: with any of them nothing is done, and the error is `EPERM`.
    /// Files still open stay readable; working directories inside have to be entered again.
    pub fn apply(&mut self, path: &[u8]) -> Result<Vec<Change>> {
        let top = self.lookup(&Caller::ROOT, &self.root(), path, true)?;
        let (id, point) = self.mount_with_root(&top).ok_or(Errno::EINVAL)?;
        let Source::Overlay { dir: host, root } = point.source else { return Err(Errno::EINVAL) };
        let changes = self.diff(path)?;
        let mut apply = Apply { tree: self, host: &host, top, stage: stage_name(&host)?, undo: Vec::new() };
        let done = apply.run(&changes);
        if done.is_err() && !apply.undo_all() {
            // What could not be put back is still in the stage: better there than lost.
            return Err(Errno::EIO);
        }
        // Whatever is left of it; what was moved in place is not.
        apply.clean_up();
        done?;
        let covered = point.covered;
        self.remove_all_below(root)?;
        self.forget_copies(id);
        let spot = MountSpot { mount: id, path: [].into() };
        let fresh = self.overlay_root(&host, covered, spot.clone())?;
        *self.inode_mut(root)? = fresh;
        self.note_copied(spot, root);
        Ok(changes)
    }

    /// What [`Tree::apply`] would do, or why it would refuse; nothing is done.
    pub fn check_apply(&self, path: &[u8]) -> Result<Vec<Change>> {
        let top = self.lookup(&Caller::ROOT, &self.root(), path, true)?;
        let (_, point) = self.mount_with_root(&top).ok_or(Errno::EINVAL)?;
        let Source::Overlay { dir: host, .. } = point.source else { return Err(Errno::EINVAL) };
        let changes = self.diff(path)?;
        let apply = Apply { tree: self, host: &host, top, stage: Vec::new(), undo: Vec::new() };
        changes.iter().try_for_each(|change| apply.check(change).map(drop))?;
        Ok(changes)
    }
}

/// How a step is undone.
enum Undo {
    Rename { from: Vec<u8>, to: Vec<u8> },
    Remove(Vec<u8>),
    MakeDir { path: Vec<u8>, mode: u32 },
    MakeLink { target: Vec<u8>, path: Vec<u8> },
    SetMode { path: Vec<u8>, mode: u32 },
}

struct Apply<'t> {
    tree: &'t Tree,
    host: &'t Arc<HostDir>,
    top: Place,
    /// Where new contents wait, and old ones until all is done.
    stage: Vec<u8>,
    undo: Vec<Undo>,
}

impl Apply<'_> {
    fn run(&mut self, changes: &[Change]) -> Result<()> {
        // The sandbox's view is asked for all it knows before the directory below it changes.
        let targets = changes.iter().map(|change| self.check(change)).collect::<Result<Vec<_>>>()?;
        self.host.mkdir(&self.stage, 0o700)?;
        for (number, change) in changes.iter().enumerate() {
            if brings_content(change) {
                self.stage_content(number, change)?;
            }
        }
        for (number, change) in changes.iter().enumerate().rev() {
            if let What::Deleted { mode } = change.what {
                self.take_away(number, change, mode)?;
            }
        }
        for (number, (change, target)) in changes.iter().zip(&targets).enumerate() {
            self.put_in_place(number, change, target)?;
        }
        // A directory's bits last of all, and of the deepest first: they may forbid what is done above.
        for change in changes.iter().rev() {
            self.set_mode(change)?;
        }
        Ok(())
    }

    /// Refuses what must not reach the host; of a link, says where it leads.
    fn check(&self, change: &Change) -> Result<Vec<u8>> {
        let mode = match change.what {
            What::Deleted { .. } => return Ok(Vec::new()),
            What::Added { mode } | What::Mode { to: mode, .. } => mode,
            What::Modified => 0,
        };
        match change.kind {
            FileKind::File | FileKind::Dir if mode & 0o6000 == 0 => Ok(Vec::new()),
            FileKind::Symlink => {
                let target = self.tree.link_target(&Caller::ROOT, &self.place(change)?)?;
                target.filter(|target| !crate::host::leads_out(&change.path, target)).ok_or(Errno::EPERM)
            }
            _ => Err(Errno::EPERM),
        }
    }

    fn place(&self, change: &Change) -> Result<Place> {
        self.tree.lookup(&Caller::ROOT, &self.top, &change.path, false)
    }

    fn staged(&self, number: usize) -> Vec<u8> {
        join(&self.stage, number.to_string().as_bytes())
    }

    /// The old content of what a change takes away or replaces.
    fn aside(&self, number: usize) -> Vec<u8> {
        join(&self.stage, format!("old-{number}").as_bytes())
    }

    fn take_away(&mut self, number: usize, change: &Change, mode: u32) -> Result<()> {
        let path = change.path.clone();
        let undo = match change.kind {
            FileKind::Dir => {
                self.host.remove(&path)?;
                Undo::MakeDir { path, mode }
            }
            FileKind::Symlink => {
                let target = self.host.read_link(&path)?;
                self.host.remove(&path)?;
                Undo::MakeLink { target, path }
            }
            _ => {
                self.host.rename(&path, &self.aside(number))?;
                Undo::Rename { from: self.aside(number), to: path }
            }
        };
        self.undo.push(undo);
        Ok(())
    }

    /// Undoes what was done so far; false where even that fails.
    fn undo_all(&mut self) -> bool {
        let mut all = true;
        while let Some(undo) = self.undo.pop() {
            let undone = match undo {
                Undo::Rename { from, to } => self.host.rename(&from, &to),
                Undo::Remove(path) => self.host.remove(&path),
                Undo::MakeDir { path, mode } => {
                    self.host.mkdir(&path, 0o700).and_then(|()| self.host.chmod(&path, mode & 0o1777))
                }
                Undo::MakeLink { target, path } => self.host.symlink(&target, &path),
                Undo::SetMode { path, mode } => self.host.chmod(&path, mode & 0o1777),
            };
            all &= undone.is_ok();
        }
        all
    }

    fn stage_content(&self, number: usize, change: &Change) -> Result<()> {
        let mut tree = self.tree.clone();
        let place = self.place(change)?;
        let mut file = tree.open_place(&place)?;
        let out = self.host.create(&self.staged(number), OpenFlags::WRITE, 0o600)?;
        let mut buf = vec![0; 64 << 10];
        let mut offset = 0;
        loop {
            let count = tree.read(&mut file, &mut buf)?;
            if count == 0 {
                let mode = self.tree.stat_place(&Caller::ROOT, &place)?.mode;
                return self.host.chmod(&self.staged(number), mode & 0o1777);
            }
            out.write_all_at(&buf[..count], offset)?;
            offset += count as u64;
        }
    }

    fn put_in_place(&mut self, number: usize, change: &Change, target: &[u8]) -> Result<()> {
        let path = change.path.clone();
        match (change.kind, change.what) {
            (FileKind::File, What::Modified) => {
                let old = self.aside(number);
                self.host.link(&path, &old)?;
                self.host.rename(&self.staged(number), &path)?;
                self.undo.push(Undo::Rename { from: old, to: path });
            }
            (FileKind::File, What::Added { .. }) => {
                self.host.rename(&self.staged(number), &path)?;
                self.undo.push(Undo::Remove(path));
            }
            (FileKind::Dir, What::Added { .. }) => {
                self.host.mkdir(&path, 0o700)?;
                self.undo.push(Undo::Remove(path));
            }
            (FileKind::Symlink, What::Added { .. }) => {
                self.host.symlink(target, &path)?;
                self.undo.push(Undo::Remove(path));
            }
            (FileKind::Symlink, What::Modified) => {
                let old = self.host.read_link(&path)?;
                self.host.remove(&path)?;
                self.undo.push(Undo::MakeLink { target: old, path: path.clone() });
                self.host.symlink(target, &path)?;
                self.undo.push(Undo::Remove(path));
            }
            _ => {}
        }
        Ok(())
    }

    fn set_mode(&mut self, change: &Change) -> Result<()> {
        match (change.kind, change.what) {
            (FileKind::Dir, What::Added { mode }) => self.host.chmod(&change.path, mode),
            (FileKind::File | FileKind::Dir, What::Mode { from, to }) => {
                self.host.chmod(&change.path, to)?;
                self.undo.push(Undo::SetMode { path: change.path.clone(), mode: from });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn clean_up(&self) {
        for (name, ..) in self.host.list(&self.stage).unwrap_or_default() {
            let _ = self.host.remove(&join(&self.stage, &name));
        }
        let _ = self.host.remove(&self.stage);
    }
}

fn brings_content(change: &Change) -> bool {
    change.kind == FileKind::File && matches!(change.what, What::Added { .. } | What::Modified)
}

/// A name that nothing in the host directory has.
fn stage_name(host: &HostDir) -> Result<Vec<u8>> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| Errno::EIO)?;
    let name = format!(".wardian-apply-{:016x}", u64::from_le_bytes(random)).into_bytes();
    match host.stat(&name) {
        Err(Errno::ENOENT) => Ok(name),
        Err(errno) => Err(errno),
        Ok(_) => Err(Errno::EEXIST),
    }
}
