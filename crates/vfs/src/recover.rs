//! Recovery after a crash: undoes what an apply left half done and cleans up what it left behind.

use crate::disk::Disk;
use crate::host::HostDir;
use crate::journal::{Journal, Phase, Record};
use crate::name::join;
use crate::steps;
use crate::{Errno, Result};

/// What was found of an apply to a host directory that was interrupted by a crash or a power failure.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Recovery {
    /// There was none.
    #[default]
    None,
    /// There was one, and the directory is still as it left it, because it was opened read-only.
    Unfinished,
    /// It had made all its changes: they stay.
    Finished,
    /// It had not: the directory is as it was before.
    RolledBack {
        /// Where old contents are, below the directory, if someone else has since taken their place.
        kept: Option<Vec<u8>>,
    },
}

/// Looks for an interrupted apply to `host` and, unless the directory is opened read-only, repairs it.
pub(crate) fn recover(host: &HostDir, read_only: bool) -> Result<Recovery> {
    match Journal::left_behind(host, !read_only)? {
        None => Ok(Recovery::None),
        Some(_) if read_only => Ok(Recovery::Unfinished),
        Some(journal) => recover_locked(host, &journal),
    }
}

/// Does the same for a caller that holds the lock.
pub(crate) fn recover_locked(host: &HostDir, journal: &Journal) -> Result<Recovery> {
    let Some(record) = journal.read()? else { return Ok(Recovery::None) };
    let disk = Disk(host);
    let there = is_there(disk, &record)?;
    let recovery = match record.phase {
        Phase::Done => {
            if there {
                clear(disk, &record.stage)?;
            }
            Recovery::Finished
        }
        _ if there => return Ok(Recovery::RolledBack { kept: roll_back(disk, journal, record)? }),
        Phase::Undone => Recovery::RolledBack { kept: None },
        // Nothing was made yet, or another directory has the inode number of one that is gone.
        Phase::Staging | Phase::Intent => Recovery::None,
    };
    journal.remove()?;
    Ok(recovery)
}

/// Returns whether the stage is still the directory that the journal names.
fn is_there(disk: Disk, record: &Record) -> Result<bool> {
    let Some(found) = disk.find(&record.stage)? else { return Ok(false) };
    let ours = found.is_dir && found.mode & 0o077 == 0 && found.uid == rustix::process::geteuid().as_raw();
    // Before the steps were written down, it is only known by its name.
    let unknown = record.stage_ino == 0 && record.steps.is_empty();
    Ok(ours && (unknown || found.ino == record.stage_ino))
}

/// Undoes every step, the last first, and removes the stage and the journal. Returns where the stage is if something has
/// to stay there. After an error the journal stays as well: the next use of the directory tries again.
pub(crate) fn roll_back(disk: Disk, journal: &Journal, record: Record) -> Result<Option<Vec<u8>>> {
    let mut all = true;
    if record.phase == Phase::Intent {
        for (number, step) in record.steps.iter().enumerate().rev() {
            all &= step.undo(disk, &record.stage, number)?;
        }
        steps::sync_all(disk, &record.steps)?;
    }
    if all {
        // From here on inode numbers mean nothing any more: others may be given those of what is removed.
        let record = Record { phase: Phase::Undone, steps: Vec::new(), ..record };
        journal.write(&record)?;
        clear(disk, &record.stage)?;
        journal.remove()?;
        return Ok(None);
    }
    journal.remove()?;
    for number in 0..record.steps.len() {
        discard(disk, &steps::staged(&record.stage, number))?;
    }
    Ok(Some(record.stage))
}

/// Removes the stage with its contents: files, links and empty directories under the names used there.
pub(crate) fn clear(disk: Disk, stage: &[u8]) -> Result<()> {
    let names = match disk.list(stage) {
        Err(Errno::ENOENT) => return Ok(()),
        names => names?,
    };
    for name in names.iter().filter(|name| name.starts_with(b"new-") || name.starts_with(b"old-")) {
        discard(disk, &join(stage, name))?;
    }
    match disk.remove_dir(stage) {
        // Something that is not ours, which nobody may lose.
        Err(Errno::ENOENT | Errno::ENOTEMPTY | Errno::EEXIST) => Ok(()),
        // Before the journal goes, or a power failure could leave a stage that nothing leads to.
        done => done.and_then(|()| disk.sync_dir(b"")),
    }
}

fn discard(disk: Disk, path: &[u8]) -> Result<()> {
    match disk.find(path)? {
        None => Ok(()),
        Some(found) if found.is_dir => match disk.remove_dir(path) {
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(()),
            done => done,
        },
        Some(_) => disk.remove(path),
    }
}
