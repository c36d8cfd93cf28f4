//! Applying an overlay's changes to the host directory.
//!
//! ```text
//! 1  write all new contents to a directory of their own      nothing is changed yet; most failures are here
//! 2  write down every step to come, in a journal
//! 3  move what is deleted aside, deepest first
//! 4  move what is new in place, set modes
//! 5  note that it is done; forget the overlay's changes: they are the directory now
//! ```
//! If a step fails, the steps before it are undone, the last first; after a crash the next use of the directory does
//! that, or finishes: see `journal.rs`, `steps.rs` and `recover.rs`. In between, others see each step separately, with
//! every file either old or new.

use crate::diff::{Change, What};
use crate::disk::{Disk, sync};
use crate::host::{HostDir, stage_name};
use crate::journal::{Journal, Phase, Record};
use crate::mount::Source;
use crate::place::{MountSpot, Place};
use crate::recover::{clear, recover_locked, roll_back};
use crate::steps::{self, SYNC_EACH, Step, aside, staged};
use crate::{Caller, Errno, FileKind, Handle, Result, Seek, Tree, probe};
use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::Arc;

impl Tree {
    /// Applies the changes of the overlay mounted at `path` to the host directory and returns them; afterwards the
    /// overlay has none. Pipes, links that lead out of the directory and set-user-id bits cannot be applied: if there
    /// are any, nothing is done, and the error is `EPERM`. Files still open stay readable; working directories inside
    /// must be entered again.
    ///
    /// After a crash the directory is either unchanged or has all changes, once it is mounted again (not read-only). For
    /// that a journal is kept in Wardian's state directory; if there is none, the error is `ENOENT`. While another
    /// process applies to the same directory, this waits, for at most half a minute (`EBUSY`).
    pub fn apply(&mut self, path: &[u8]) -> Result<Vec<Change>> {
        let host = self.overlay_host(path)?;
        let journal = Journal::lock(&host)?;
        recover_locked(&host, &journal)?;
        self.apply_locked(path, &journal)
    }

    /// Does the same, unless the host has changed something since the sandbox first touched it: then nothing is done,
    /// and that path is returned.
    pub fn apply_unless_changed(&mut self, path: &[u8]) -> Result<std::result::Result<Vec<Change>, Vec<u8>>> {
        let host = self.overlay_host(path)?;
        let journal = Journal::lock(&host)?;
        recover_locked(&host, &journal)?;
        // Under the lock, so that of two who apply at once the second sees what the first has done.
        match self.overlay_conflicts(path)?.into_iter().next() {
            Some(conflict) => Ok(Err(conflict)),
            None => self.apply_locked(path, &journal).map(Ok),
        }
    }

    fn overlay_host(&self, path: &[u8]) -> Result<Arc<HostDir>> {
        let top = self.lookup(&Caller::ROOT, &self.root(), path, true)?;
        match self.mount_with_root(&top).ok_or(Errno::EINVAL)?.1.source {
            // Whoever mounted it may only read.
            Source::Overlay { dir, .. } if dir.is_read_only() => Err(Errno::EROFS),
            Source::Overlay { dir, .. } => Ok(dir),
            _ => Err(Errno::EINVAL),
        }
    }

    fn apply_locked(&mut self, path: &[u8], journal: &Journal) -> Result<Vec<Change>> {
        let top = self.lookup(&Caller::ROOT, &self.root(), path, true)?;
        let (id, point) = self.mount_with_root(&top).ok_or(Errno::EINVAL)?;
        let Source::Overlay { dir: host, root } = point.source else { return Err(Errno::EINVAL) };
        let changes = self.diff(path)?;
        let mut apply = Apply::new(self, &host, top)?;
        apply.run(&changes, journal)?;
        let covered = point.covered;
        self.remove_all_below(root)?;
        self.forget_copies(id);
        let spot = MountSpot { mount: id, path: [].into() };
        let fresh = self.overlay_root(&host, covered, spot.clone())?;
        *self.inode_mut(root)? = fresh;
        self.note_copied(spot, root);
        Ok(changes)
    }

    /// Returns what [`Tree::apply`] would do, or why it would refuse; does nothing.
    pub fn check_apply(&self, path: &[u8]) -> Result<Vec<Change>> {
        let top = self.lookup(&Caller::ROOT, &self.root(), path, true)?;
        let host = self.overlay_host(path)?;
        let changes = self.diff(path)?;
        let apply = Apply::new(self, &host, top)?;
        changes.iter().try_for_each(|change| apply.check(change).map(drop))?;
        Ok(changes)
    }
}

struct Apply<'t> {
    tree: &'t Tree,
    host: &'t Arc<HostDir>,
    top: Place,
    record: Record,
}

impl<'t> Apply<'t> {
    fn new(tree: &'t Tree, host: &'t Arc<HostDir>, top: Place) -> Result<Apply<'t>> {
        let record = Record { phase: Phase::Staging, stage: stage_name()?, stage_ino: 0, steps: Vec::new() };
        Ok(Apply { tree, host, top, record })
    }

    fn disk(&self) -> Disk<'t> {
        Disk(self.host)
    }

    fn run(&mut self, changes: &[Change], journal: &Journal) -> Result<()> {
        // The sandbox's view is asked for all it knows before the directory below it changes.
        let targets = changes.iter().map(|change| self.check(change)).collect::<Result<Vec<_>>>()?;
        if changes.is_empty() {
            return Ok(());
        }
        journal.write(&self.record)?;
        let done = self.prepare(changes, &targets).and_then(|()| {
            self.record.phase = Phase::Intent;
            journal.write(&self.record)?;
            self.take_steps()
        });
        if let Err(errno) = done {
            // What cannot be put back is still in the stage: better there than lost.
            let undone = roll_back(self.disk(), journal, self.record.clone());
            return Err(if undone == Ok(None) { errno } else { Errno::EIO });
        }
        self.record.phase = Phase::Done;
        self.record.steps.clear();
        journal.write(&self.record)?;
        // From here on the directory is the new one. What cannot be cleared away now is by the next who uses it.
        if clear(self.disk(), &self.record.stage).is_ok() {
            let _ = journal.remove();
        }
        Ok(())
    }

    /// Refuses what must not reach the host; for a link, returns where it leads.
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

    /// Plans every step and writes what it needs to disk: new contents, and a second name for each old file that will be
    /// replaced. None of it is visible.
    fn prepare(&mut self, changes: &[Change], targets: &[Vec<u8>]) -> Result<()> {
        self.disk().mkdir(&self.record.stage)?;
        self.record.stage_ino = self.ino(&self.record.stage)?;
        for change in changes.iter().rev() {
            if let What::Deleted { mode } = change.what {
                let path = change.path.clone();
                let step = match change.kind {
                    FileKind::Dir => Step::RemoveDir { path, mode },
                    _ => Step::TakeAway { ino: self.ino(&path)?, path },
                };
                self.record.steps.push(step);
            }
        }
        let many = changes.len() > SYNC_EACH;
        for (change, target) in changes.iter().zip(targets) {
            if matches!(change.what, What::Added { .. } | What::Modified) {
                let number = self.record.steps.len();
                self.stage_new(number, change, target, !many)?;
                let step = self.step_to(number, change)?;
                self.record.steps.push(step);
            }
        }
        // A directory's bits last of all, and of the deepest first: they may forbid what is done above.
        self.record.steps.extend(changes.iter().rev().filter_map(mode_step));
        if many {
            return self.disk().sync_all();
        }
        self.disk().sync_dir(&self.record.stage)?;
        self.disk().sync_dir(b"")
    }

    fn ino(&self, path: &[u8]) -> Result<u64> {
        Ok(self.disk().find(path)?.ok_or(Errno::ENOENT)?.ino)
    }

    /// Returns the step that moves what is staged to its place.
    fn step_to(&self, number: usize, change: &Change) -> Result<Step> {
        let (path, stage) = (change.path.clone(), &self.record.stage);
        let new = self.ino(&staged(stage, number))?;
        if change.what != What::Modified {
            return Ok(Step::Put { path, ino: new, dir: change.kind == FileKind::Dir });
        }
        let old = self.ino(&path)?;
        match self.disk().link(&path, &aside(stage, number)) {
            // Not this file, or not on this file system: it is moved aside instead.
            Ok(()) | Err(Errno::EPERM | Errno::ENOTSUP | Errno::EMLINK | Errno::ENOSYS) => {}
            Err(errno) => return Err(errno),
        }
        Ok(Step::Replace { path, old, new })
    }

    fn stage_new(&self, number: usize, change: &Change, target: &[u8], durable: bool) -> Result<()> {
        let path = staged(&self.record.stage, number);
        match change.kind {
            FileKind::Dir => return self.disk().mkdir(&path),
            FileKind::Symlink => return self.disk().symlink(target, &path),
            _ => {}
        }
        let mut tree = self.tree.clone();
        let place = self.place(change)?;
        let mut file = tree.open_place(&place)?;
        let out = self.disk().create(&path)?;
        copy(&tree, &mut file, &out)?;
        let mode = self.tree.stat_place(&Caller::ROOT, &place)?.mode;
        out.set_permissions(std::fs::Permissions::from_mode(mode & 0o1777))?;
        if durable { sync(&out) } else { Ok(()) }
    }

    fn take_steps(&self) -> Result<()> {
        let stage = &self.record.stage;
        for (number, step) in self.record.steps.iter().enumerate() {
            step.take(self.disk(), stage, number)?;
        }
        steps::sync_all(self.disk(), &self.record.steps)
    }
}

/// Copies a file's content. Holes stay holes: they cost the sandbox nothing, so they must not cost the host anything.
fn copy(tree: &Tree, from: &mut Handle, to: &File) -> Result<()> {
    let mut buf = vec![0; 64 << 10];
    let mut offset = 0;
    loop {
        match tree.seek(from, Seek::Data(offset)) {
            Ok(start) => offset = start,
            Err(Errno::ENXIO) => break,
            Err(errno) => return Err(errno),
        }
        let end = tree.seek(from, Seek::Hole(offset))?;
        while offset < end {
            let wanted = usize::try_from(end - offset).map_or(buf.len(), |left| left.min(buf.len()));
            let count = tree.pread(from, &mut buf[..wanted], offset)?;
            if count == 0 {
                break; // a lower file that has become shorter meanwhile
            }
            probe::step();
            to.write_all_at(&buf[..count], offset)?;
            offset += count as u64;
        }
        offset = end;
    }
    Ok(to.set_len(tree.seek(from, Seek::End(0))?)?)
}

fn mode_step(change: &Change) -> Option<Step> {
    let path = change.path.clone();
    match (change.kind, change.what) {
        (FileKind::Dir, What::Added { mode }) => Some(Step::SetMode { path, from: 0o700, to: mode }),
        (FileKind::File | FileKind::Dir, What::Mode { from, to }) => Some(Step::SetMode { path, from, to }),
        _ => None,
    }
}
