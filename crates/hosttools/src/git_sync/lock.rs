//! Git's lock on a branch. A git that is killed while it holds one leaves it behind, and no git ever takes it away: every
//! later attempt would fail. So we do, where it is known that nobody holds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Git holds a lock for moments; one this old is nobody's.
const ABANDONED: Duration = Duration::from_secs(60);
/// Times of files lag behind the clock a little.
const LAG: Duration = Duration::from_secs(1);

pub(super) struct BranchLock {
    path: PathBuf,
    /// When our own git began.
    since: SystemTime,
}

impl BranchLock {
    /// The lock on a branch in a git directory. One that nobody holds any more is cleared away first.
    pub fn before_moving(git_directory: &Path, branch: &str) -> BranchLock {
        let path = git_directory.join(format!("refs/heads/{branch}.lock"));
        let lock = BranchLock { path, since: SystemTime::now() - LAG };
        let is_old = |age: Duration| age > ABANDONED;
        if lock.written().and_then(|when| when.elapsed().ok()).is_some_and(is_old) {
            lock.clear();
        }
        lock
    }

    /// Our git is no more, and was to set the branch to `commit`: what it left goes.
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
