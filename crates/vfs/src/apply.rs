//! Taking an overlay's changes over into the host directory.
//!
//! ```text
//! 1  write all new contents to a directory of their own      nothing is changed yet; most failures are here
//! 2  remove what is deleted, deepest first
//! 3  make directories and links, move the contents in place
//! 4  set modes, forget the overlay's changes: they are the directory now
//! ```

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
        let mut apply = Apply { tree: self, host: &host, top, stage: stage_name(&host)? };
        let done = apply.run(&changes);
        // Whatever is left of it; what was moved in place is not.
        apply.clean_up();
        done?;
        let covered = point.covered;
        self.remove_all_below(root)?;
        self.forget_copies(id);
        let spot = MountSpot { mount: id, path: [].into() };
        let fresh = self.overlay_root(&host, covered, spot.clone())?;
        *self.inode_mut(root)? = fresh;
        self.copied.insert(spot, root);
        Ok(changes)
    }
}

struct Apply<'t> {
    tree: &'t Tree,
    host: &'t Arc<HostDir>,
    top: Place,
    /// Where new contents wait.
    stage: Vec<u8>,
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
        for change in changes.iter().rev() {
            if matches!(change.what, What::Deleted { .. }) {
                self.host.remove(&change.path)?;
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

    fn put_in_place(&self, number: usize, change: &Change, target: &[u8]) -> Result<()> {
        match (change.kind, change.what) {
            (FileKind::File, _) if brings_content(change) => {
                self.host.rename(&self.staged(number), &change.path)
            }
            (FileKind::Dir, What::Added { .. }) => self.host.mkdir(&change.path, 0o700),
            (FileKind::Symlink, What::Added { .. }) => self.host.symlink(target, &change.path),
            (FileKind::Symlink, What::Modified) => {
                self.host.remove(&change.path)?;
                self.host.symlink(target, &change.path)
            }
            _ => Ok(()),
        }
    }

    fn set_mode(&self, change: &Change) -> Result<()> {
        match (change.kind, change.what) {
            (FileKind::Dir, What::Added { mode })
            | (FileKind::File | FileKind::Dir, What::Mode { to: mode, .. }) => {
                self.host.chmod(&change.path, mode)
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
