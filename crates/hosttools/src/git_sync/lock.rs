//! Git's lock on a branch. A git that is killed while it holds the lock leaves it behind, and no git ever removes it:
//! every later attempt would fail. So Wardian removes it, if it is known that no one holds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Git holds a lock only briefly; one this old has been abandoned.
const ABANDONED: Duration = Duration::from_secs(60);
/// File times lag slightly behind the clock.
const LAG: Duration = Duration::from_secs(1);

pub(super) struct BranchLock {
    path: PathBuf,
    /// When Wardian's own git started.
    since: SystemTime,
}

impl BranchLock {
    /// Returns the lock on a branch in a git directory. An abandoned one is removed first.
    pub fn before_moving(git_directory: &Path, branch: &str) -> BranchLock {
        let path = git_directory.join(format!("refs/heads/{branch}.lock"));
        let lock = BranchLock { path, since: SystemTime::now() - LAG };
        let is_old = |age: Duration| age > ABANDONED;
        if lock.written().and_then(|when| when.elapsed().ok()).is_some_and(is_old) {
            lock.clear();
        }
        lock
    }

    /// Wardian's git, which was to set the branch to `commit`, is gone: removes what it left.
    pub fn after_an_interruption(&self, commit: &str) {
        // Git writes the commit as soon as it has the lock.
        let is_ours = fs::read(&self.path)
            .is_ok_and(|says| says.is_empty() || says.trim_ascii_end() == commit.as_bytes());
        if is_ours && self.written().is_some_and(|when| when >= self.since) {
            self.clear();
        }
    }

    fn written(&self) -> Option<SystemTime> {
        let found = self.path.symlink_metadata().ok()?;
        // No lock of git's is anything else or longer than a name of a commit.
        (found.is_file() && found.len() <= 128).then(|| found.modified().ok())?
    }

    fn clear(&self) {
        tracing::info!("{}: the lock of a git that was killed is taken away", self.path.display());
        let _ = fs::remove_file(&self.path);
    }
}
