//! The visible steps of an apply, each with how to undo it.
//!
//! Undoing checks what is there, by inode number, and not what should have been done: a step that was never taken, or
//! that is already undone, is left alone, and so is whatever someone else has put in its place. So undoing is the same
//! for an error, a crash, and a crash while undoing.

use crate::disk::Disk;
use crate::name::join;
use crate::{Errno, Result};

/// One change that others can see. Paths are relative to the host directory. The number of a step determines the names
/// in the stage: `new-N` waits to be put in place, `old-N` is what was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Removes a file or link.
    TakeAway { path: Vec<u8>, ino: u64 },
    /// Removes an empty directory.
    RemoveDir { path: Vec<u8>, mode: u32 },
    /// Creates something where nothing is.
    Put { path: Vec<u8>, ino: u64, dir: bool },
    /// Replaces a file or link.
    Replace { path: Vec<u8>, old: u64, new: u64 },
    /// Changes permission bits.
    SetMode { path: Vec<u8>, from: u32, to: u32 },
}

impl Step {
    pub(crate) fn path(&self) -> &[u8] {
        match self {
            Step::TakeAway { path, .. }
            | Step::RemoveDir { path, .. }
            | Step::Put { path, .. }
            | Step::Replace { path, .. }
            | Step::SetMode { path, .. } => path,
        }
    }

    /// Takes the step, or does nothing. Returns `EBUSY` if what is there is not what was there when it was planned.
    pub(crate) fn take(&self, disk: Disk, stage: &[u8], number: usize) -> Result<()> {
        let (new, old) = (staged(stage, number), aside(stage, number));
        match self {
            Step::TakeAway { path, ino } => {
                self.expect(disk, *ino)?;
                disk.rename_new(path, &old)
            }
            Step::RemoveDir { path, .. } => disk.remove_dir(path),
            Step::Put { path, .. } => disk.rename_new(&new, path),
            Step::Replace { path, old: ino, .. } => {
                self.expect(disk, *ino)?;
                if disk.find(&old)?.is_none() {
                    // A file system without hard links: for a moment there is nothing at this name.
                    disk.rename_new(path, &old)?;
                }
                disk.rename_over(&new, path)
            }
            Step::SetMode { path, to, .. } => disk.chmod(path, *to),
        }
    }

    fn expect(&self, disk: Disk, ino: u64) -> Result<()> {
        match disk.find(self.path())? {
            Some(found) if found.ino == ino => Ok(()),
            Some(_) => Err(Errno::EBUSY),
            None => Err(Errno::ENOENT),
        }
    }

    /// Undoes it, as far as it was done. Returns false if something of someone else is in the way, so that the old
    /// content stays in the stage.
    pub(crate) fn undo(&self, disk: Disk, stage: &[u8], number: usize) -> Result<bool> {
        let (new, old) = (staged(stage, number), aside(stage, number));
        let there = disk.find(self.path())?;
        match self {
            Step::TakeAway { path, .. } => match (disk.find(&old)?, there) {
                (Some(_), None) => disk.rename_new(&old, path).map(|()| true),
                (Some(_), Some(_)) => Ok(false),
                (None, _) => Ok(true),
            },
            Step::RemoveDir { path, mode } => match there {
                None => {
                    disk.mkdir(path)?;
                    disk.chmod(path, *mode).map(|()| true)
                }
                // Made again by an undo that was cut short: empty, and closed to others.
                Some(found) if found.is_dir && found.mode == 0o700 => disk.chmod(path, *mode).map(|()| true),
                Some(found) => Ok(found.is_dir),
            },
            Step::Put { path, ino, dir } => match there {
                Some(found) if found.ino == *ino && *dir => match disk.remove_dir(path) {
                    // Somebody has put something into it.
                    Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(true),
                    done => done.map(|()| true),
                },
                Some(found) if found.ino == *ino => disk.rename_new(path, &new).map(|()| true),
                _ => Ok(true),
            },
            Step::Replace { path, new: ino, old: before } => match (disk.find(&old)?, there) {
                (Some(_), Some(found)) if found.ino == *ino => disk.rename_over(&old, path).map(|()| true),
                (Some(_), None) => disk.rename_new(&old, path).map(|()| true),
                // Never taken: the name in the stage is one more of the same file.
                (Some(_), Some(found)) if found.ino == *before => disk.remove(&old).map(|()| true),
                (Some(_), Some(_)) => Ok(false),
                (None, _) => Ok(true),
            },
            Step::SetMode { path, from, to } => match there {
                Some(found) if found.mode & 0o1777 == *to & 0o1777 && !found.is_link => {
                    disk.chmod(path, *from).map(|()| true)
                }
                _ => Ok(true),
            },
        }
    }
}

pub(crate) fn staged(stage: &[u8], number: usize) -> Vec<u8> {
    join(stage, format!("new-{number}").as_bytes())
}

/// Returns the old content of what a step removes or replaces.
pub(crate) fn aside(stage: &[u8], number: usize) -> Vec<u8> {
    join(stage, format!("old-{number}").as_bytes())
}

/// Makes every directory that the steps changed survive a power failure, and all permission bits.
pub(crate) fn sync_all(disk: Disk, steps: &[Step]) -> Result<()> {
    // A directory that was removed may have been made again, with its bits.
    let has_mode = |step: &&Step| matches!(step, Step::SetMode { .. } | Step::RemoveDir { .. });
    let modes: Vec<&[u8]> = steps.iter().filter(has_mode).map(Step::path).collect();
    let names = steps.iter().filter(|step| !matches!(step, Step::SetMode { .. }));
    let mut dirs: Vec<&[u8]> = names.map(|step| crate::name::split(step.path()).0).collect();
    dirs.sort();
    dirs.dedup();
    if dirs.len() + modes.len() > SYNC_EACH {
        return disk.sync_all();
    }
    dirs.into_iter().try_for_each(|dir| disk.sync_dir(dir))?;
    modes.into_iter().try_for_each(|path| disk.sync_mode(path))
}

/// Up to this many files or directories are synced one by one; for more, the whole file system at once.
pub(crate) const SYNC_EACH: usize = 32;
