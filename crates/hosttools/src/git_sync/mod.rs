//! Git sync: snapshots of chosen paths of a work tree on a separate branch, while the user works in it.
//!
//! ```text
//!  work tree ── update-index ──► a separate index ── write-tree ──► tree ── commit-tree ──► commit
//!                                                       + manifest.json                       │
//!                                           branch, if it is still where it was ◄── update-ref ┘
//! ```
//!
//! The user's index, HEAD and files are not touched: everything up to the last step happens in a temporary git directory
//! (see `workshop`) that shares only the objects with the user's. If any step is interrupted, the branch is either
//! unchanged or fully updated. Every git command runs confined, in the pool's system lane.
//!
//! ```no_run
//! use std::path::Path;
//! use wardian_hosttools::git_sync::{GitOptions, GitSync};
//! use wardian_hosttools::{Mode, PoolConfig, WorkerPool};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = WorkerPool::start(Mode::Worker, &PoolConfig::default())?;
//! let sync = GitSync::new(pool, Path::new("/home/me/project"), "wardian/archive", GitOptions::default())?;
//! let snapshot = sync.snapshot(&[Path::new("src"), Path::new("notes")], "before the refactoring").await?;
//! sync.push("origin").await?;
//! sync.restore(&snapshot.commit, Path::new("/home/me/as-it-was")).await?;
//! # Ok(())
//! # }
//! ```

mod chosen;
mod git;
mod held;
mod lock;
mod manifest;
mod workshop;

pub use manifest::{Manifest, ManifestFile};

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::error::ToolError;
use crate::pool::WorkerPool;
use chosen::Chosen;
use git::{Git, Repository};
use lock::BranchLock;
use workshop::{Entry, Workshop, is_of_a_dead_process};

/// The directory of a snapshot's tree that holds the files.
const FILES: &str = "files";
/// The file next to it that describes them.
const MANIFEST: &str = "manifest.json";

/// Keeps snapshots of a work tree on one branch.
pub struct GitSync {
    git: Git,
    branch: String,
}

impl std::fmt::Debug for GitSync {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitSync").field("branch", &self.branch).finish_non_exhaustive()
    }
}

/// How to find and run git.
#[derive(Clone, Debug)]
pub struct GitOptions {
    /// The git program.
    pub program: PathBuf,
    /// Whether it may start other programs. Git needs none except for a push, where it is always allowed; a script in
    /// its place does.
    pub children: bool,
    /// The timeout of one git command.
    pub timeout: Duration,
    /// The author of commits.
    pub author: (String, String),
}

impl Default for GitOptions {
    fn default() -> GitOptions {
        GitOptions {
            program: PathBuf::from("/usr/bin/git"),
            children: false,
            timeout: Duration::from_secs(120),
            author: ("Wardian".to_owned(), "wardian@localhost".to_owned()),
        }
    }
}

/// A snapshot that was created, or already existed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its commit.
    pub commit: String,
    /// False if nothing had changed since the last one, which this is.
    pub new: bool,
    /// Its contents.
    pub manifest: Manifest,
}

/// The result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pushed {
    /// The remote did not have the branch.
    Created,
    /// The remote's branch was fast-forwarded.
    FastForward,
    /// There was nothing to do.
    UpToDate,
}

/// A change to commit, for example what a sandbox did in an overlay. Paths are relative to the work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileChange {
    /// A file is new or its contents changed.
    Write {
        /// Its path.
        path: PathBuf,
        /// Its whole contents.
        contents: Vec<u8>,
        /// Whether it is executable.
        executable: bool,
    },
    /// A symbolic link is new or its target changed.
    Link {
        /// Its path.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// A file, or a directory with everything in it, was deleted.
    Remove {
        /// Its path.
        path: PathBuf,
    },
}

impl FileChange {
    /// Returns the same change of a file in a directory of the tree.
    pub fn below(mut self, directory: &Path) -> FileChange {
        let path = self.path_mut();
        *path = directory.join(&*path);
        self
    }

    /// Returns the same with a normalized path, if a tree can have it.
    fn with_plain_path(&self) -> Result<FileChange, SyncError> {
        let plain = inside(self.path())?;
        if plain.as_os_str().is_empty() {
            return Err(SyncError::BadPath(self.path().to_owned()));
        }
        let mut change = self.clone();
        *change.path_mut() = plain;
        Ok(change)
    }

    fn path_mut(&mut self) -> &mut PathBuf {
        match self {
            FileChange::Write { path, .. } | FileChange::Link { path, .. } | FileChange::Remove { path } => {
                path
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            FileChange::Write { path, .. } | FileChange::Link { path, .. } | FileChange::Remove { path } => {
                path
            }
        }
    }
}

/// Why a snapshot, push or restore failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// There is no repository.
    #[error("{}: not the top of a git work tree: {why}", .path.display())]
    NotARepository {
        /// Where it was looked for.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// The branch name is invalid.
    #[error("'{0}' is not a valid branch name")]
    BadBranch(String),
    /// A path is not in the work tree.
    #[error("'{}' is not a path inside the work tree", .0.display())]
    BadPath(PathBuf),
    /// The branch is checked out: moving it would make that index wrong.
    #[error("the branch '{0}' is checked out in a work tree; snapshots need one of their own")]
    CheckedOut(String),
    /// Someone else moved the branch meanwhile. Retry.
    #[error("the branch '{0}' was moved by someone else meanwhile: try again")]
    Moved(String),
    /// The remote's branch has commits that the local one lacks.
    #[error("'{branch}' of {remote} has gone another way ({why}): fetch it, and decide")]
    Diverged {
        /// The branch.
        branch: String,
        /// The remote.
        remote: String,
        /// Git's message.
        why: String,
    },
    /// Unknown snapshot.
    #[error("'{0}' is not a snapshot")]
    NoSuchSnapshot(String),
    /// There is no commit to start a branch from.
    #[error("'{0}' is not a commit to begin a branch with")]
    NoBase(String),
    /// A snapshot can only be restored to a new or empty directory.
    #[error("{}: already exists and is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// A git command was killed before it finished. Nothing is half done; retrying is safe.
    #[error("git {step} was interrupted: {why}")]
    CutShort {
        /// The command.
        step: &'static str,
        /// What killed it.
        why: String,
    },
    /// A git command failed.
    #[error("git {step}: {why}")]
    Git {
        /// The command.
        step: &'static str,
        /// Its message.
        why: String,
    },
    /// A git command could not be run.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// One of Wardian's own files could not be written or read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl GitSync {
    /// Keeps snapshots of the work tree whose top is `work_tree`, on `branch`, which need not exist yet.
    pub fn new(
        pool: WorkerPool,
        work_tree: &Path,
        branch: &str,
        options: GitOptions,
    ) -> Result<GitSync, SyncError> {
        if !can_be_a_branch(branch) {
            return Err(SyncError::BadBranch(branch.to_owned()));
        }
        let repository = Repository::open(work_tree)?;
        Ok(GitSync { git: Git::new(pool, repository, options), branch: branch.to_owned() })
    }

    /// Does the same for the work tree that contains a directory; also returns the directory's path in it, which is the
    /// prefix for the paths of changes in that directory ([`FileChange::below`]).
    pub fn around(
        pool: WorkerPool,
        directory: &Path,
        branch: &str,
        options: GitOptions,
    ) -> Result<(GitSync, PathBuf), SyncError> {
        let not_one = |why: String| SyncError::NotARepository { path: directory.to_owned(), why };
        let directory = directory.canonicalize().map_err(|error| not_one(error.to_string()))?;
        let top = directory.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok());
        let top = top.ok_or_else(|| not_one("nor is anything above it".to_owned()))?;
        let below = directory.strip_prefix(top).unwrap_or(Path::new("")).to_owned();
        Ok((GitSync::new(pool, top, branch, options)?, below))
    }

    /// Takes a snapshot of all files in `paths`, including ignored ones.
    pub async fn snapshot(&self, paths: &[&Path], message: &str) -> Result<Snapshot, SyncError> {
        let paths = paths.iter().map(|path| inside(path)).collect::<Result<Vec<_>, _>>()?;
        self.refuse_if_checked_out().await?;
        let parent = self.tip().await?;
        let workshop = Workshop::new(&self.git).await?;
        let chosen = self.choose(&paths).await?;
        workshop.add(&Vec::from_iter(&chosen.files)).await?;
        let files = workshop.write_tree().await?;
        let head = self.git.look_up("HEAD^{commit}").await?;
        let manifest = self.manifest(&paths, head, &workshop.list(&files).await?, chosen);
        let tree = self.write_with_manifest(&workshop, &files, &manifest).await?;
        if let Some(parent) = &parent
            && self.git.look_up(&format!("{parent}^{{tree}}")).await?.as_ref() == Some(&tree)
        {
            return Ok(Snapshot { commit: parent.clone(), new: false, manifest });
        }
        let commit = workshop.commit(&tree, parent.as_deref(), message).await?;
        self.move_branch(&commit, parent.as_deref()).await?;
        Ok(Snapshot { commit, new: true, manifest })
    }

    /// Commits changes on top of the branch or, if it does not exist yet, of `base`. The tree is an ordinary one, to
    /// merge or inspect. Returns the commit; if the changes have no effect, that is the existing one.
    pub async fn commit_changes(
        &self,
        base: &str,
        changes: &[FileChange],
        message: &str,
    ) -> Result<String, SyncError> {
        let changes = changes.iter().map(FileChange::with_plain_path).collect::<Result<Vec<_>, _>>()?;
        self.refuse_if_checked_out().await?;
        let tip = self.tip().await?;
        let parent = match &tip {
            Some(tip) => tip.clone(),
            None => {
                let found = self.git.look_up(&format!("{base}^{{commit}}")).await?;
                found.ok_or_else(|| SyncError::NoBase(base.to_owned()))?
            }
        };
        let workshop = Workshop::new(&self.git).await?;
        workshop.read_tree(&parent, None).await?;
        workshop.apply(&changes).await?;
        let tree = workshop.write_tree().await?;
        if self.git.look_up(&format!("{parent}^{{tree}}")).await?.as_ref() == Some(&tree) {
            return Ok(parent);
        }
        let commit = workshop.commit(&tree, Some(&parent), message).await?;
        self.move_branch(&commit, tip.as_deref()).await?;
        Ok(commit)
    }

    /// Pushes the branch to a remote: a configured name, a URL, or the path of a repository. Only fast-forwards.
    pub async fn push(&self, remote: &str) -> Result<Pushed, SyncError> {
        let Some(tip) = self.tip().await? else {
            return Err(SyncError::NoSuchSnapshot(self.branch.clone()));
        };
        let destination = self.git.destination(remote).await?;
        let locks: Vec<BranchLock> = destination
            .repositories
            .iter()
            .map(|repository| BranchLock::before_moving(&repository.git_directory, &self.branch))
            .collect();
        let workshop = Workshop::new(&self.git).await?;
        let said = workshop.push(&tip, &destination, &self.branch).await;
        if said.is_err() {
            locks.iter().for_each(|lock| lock.after_an_interruption(&tip));
        }
        self.pushed(remote, &said?)
    }

    /// Returns what git's table says about the branch. A remote may have several URLs: the worst result counts.
    fn pushed(&self, remote: &str, said: &str) -> Result<Pushed, SyncError> {
        let mut best = None;
        for result in said.lines().filter(|line| line.contains('\t')) {
            let reason = result.rsplit('\t').next().unwrap_or_default().to_owned();
            let pushed = match result.chars().next() {
                Some('*') => Pushed::Created,
                Some(' ') => Pushed::FastForward,
                Some('=') => Pushed::UpToDate,
                Some('!') if ["non-fast-forward", "fetch first"].iter().any(|word| reason.contains(word)) => {
                    return Err(SyncError::Diverged {
                        branch: self.branch.clone(),
                        remote: remote.to_owned(),
                        why: reason,
                    });
                }
                _ => return Err(SyncError::Git { step: "push", why: reason }),
            };
            best.get_or_insert(pushed);
        }
        best.ok_or_else(|| SyncError::Git { step: "push", why: said.to_owned() })
    }

    /// Writes a snapshot's files to a new or empty directory: all of them or, if anything fails, none.
    pub async fn restore(&self, snapshot: &str, into: &Path) -> Result<(), SyncError> {
        let missing = || SyncError::NoSuchSnapshot(snapshot.to_owned());
        if snapshot.starts_with('-') {
            return Err(missing());
        }
        self.git.look_up(&format!("{snapshot}:{MANIFEST}")).await?.ok_or_else(missing)?;
        // A snapshot of nothing has no directory of files.
        let files = self.git.look_up(&format!("{snapshot}:{FILES}")).await?;
        let into = &std::path::absolute(into)?;
        if fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_some()) || into.is_file() {
            return Err(SyncError::NotEmpty(into.to_owned()));
        }
        let partial = Partial::beside(into)?;
        if let Some(files) = files {
            let workshop = Workshop::new(&self.git).await?;
            workshop.read_tree(&files, None).await?;
            workshop.check_out(&partial.path).await?;
        }
        // Over an empty directory, too: that is what rename does.
        fs::rename(&partial.path, into)?;
        Ok(())
    }

    /// Returns the commit of the branch.
    pub async fn tip(&self) -> Result<Option<String>, SyncError> {
        self.git.look_up(&format!("refs/heads/{}^{{commit}}", self.branch)).await
    }

    async fn refuse_if_checked_out(&self) -> Result<(), SyncError> {
        let line = format!("branch refs/heads/{}", self.branch);
        let trees = self.git.run("worktree", &["list", "--porcelain"]).await?;
        match trees.lines().any(|said| said == line) {
            true => Err(SyncError::CheckedOut(self.branch.clone())),
            false => Ok(()),
        }
    }

    /// Finds the files, off the runtime: there may be many.
    async fn choose(&self, paths: &[PathBuf]) -> Result<Chosen, SyncError> {
        let (top, paths) = (self.git.work_tree().to_owned(), paths.to_owned());
        let found = tokio::task::spawn_blocking(move || Chosen::find(&top, &paths)).await;
        Ok(found.map_err(io::Error::other)??)
    }

    /// Returns what is in a snapshot, and what is missing: git skips names that mean `.git` elsewhere.
    fn manifest(
        &self,
        paths: &[PathBuf],
        head: Option<String>,
        entries: &[Entry],
        mut chosen: Chosen,
    ) -> Manifest {
        for entry in entries {
            chosen.files.remove(Path::new(OsStr::from_bytes(&entry.path)));
        }
        let is_there = |path: &PathBuf| self.git.work_tree().join(path).symlink_metadata().is_ok();
        chosen.skipped.extend(chosen.files.into_iter().filter(is_there));
        Manifest::of(paths, head, entries, &Vec::from_iter(chosen.skipped))
    }

    async fn write_with_manifest(
        &self,
        workshop: &Workshop<'_>,
        files: &str,
        manifest: &Manifest,
    ) -> Result<String, SyncError> {
        workshop.empty_index().await?;
        workshop.read_tree(files, Some(FILES)).await?;
        let change =
            FileChange::Write { path: MANIFEST.into(), contents: manifest.to_json()?, executable: false };
        workshop.apply(&[change]).await?;
        workshop.write_tree().await
    }

    /// The last step, and the only one visible in the user's repository: moves the branch if it has not changed.
    async fn move_branch(&self, commit: &str, from: Option<&str>) -> Result<(), SyncError> {
        let reference = format!("refs/heads/{}", self.branch);
        // Forty or sixty-four zeros: there must be none yet.
        let nothing = "0".repeat(commit.len());
        let expected = from.unwrap_or(&nothing);
        let lock = BranchLock::before_moving(&self.git.repository.common, &self.branch);
        let moved = self.git.run("update-ref", &["-m", "wardian", &reference, commit, expected]).await;
        let Err(error) = moved else { return Ok(()) };
        if !matches!(error, SyncError::Git { .. }) {
            lock.after_an_interruption(commit);
        }
        match (self.tip().await, error) {
            // It was ended after it had done its work.
            (Ok(Some(tip)), _) if tip == commit => Ok(()),
            (Ok(tip), SyncError::Git { why, .. }) if tip.as_deref() != from => {
                tracing::debug!("update-ref: {why}");
                Err(SyncError::Moved(self.branch.clone()))
            }
            (_, error) => Err(error),
        }
    }
}

/// A directory next to the restore target, which is removed unless it was renamed.
struct Partial {
    path: PathBuf,
}

impl Partial {
    fn beside(into: &Path) -> io::Result<Partial> {
        let (Some(name), Some(parent)) = (into.file_name(), into.parent()) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a new directory cannot be created there",
            ));
        };
        let parent = parent.canonicalize()?;
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".wardian-");
        clear_abandoned(&parent, &prefix);
        prefix.push(format!("{}-{}", std::process::id(), uuid::Uuid::new_v4()));
        let path = parent.join(prefix);
        fs::create_dir(&path)?;
        Ok(Partial { path })
    }
}

/// Removes what dead processes have left here.
fn clear_abandoned(directory: &Path, prefix: &OsStr) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.as_bytes().strip_prefix(prefix.as_bytes()).map(OsStr::from_bytes);
        if rest.is_some_and(is_of_a_dead_process) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Returns whether a commit can contain a path: it must be relative, lead nowhere else, and have no part that is git's
/// own.
pub fn can_be_committed(path: &Path) -> bool {
    inside(path).is_ok_and(|plain| !plain.as_os_str().is_empty())
}

/// Normalizes a path of the work tree.
fn inside(path: &Path) -> Result<PathBuf, SyncError> {
    let bad = || SyncError::BadPath(path.to_owned());
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) if means_git(name.as_bytes()) => return Err(bad()),
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            _ => return Err(bad()),
        }
    }
    Ok(plain)
}

/// Returns whether a name means `.git` on some file system: a tree cannot contain those.
fn means_git(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'\\').any(|part| {
        let stream = part.iter().position(|byte| *byte == b':').unwrap_or(part.len());
        let end = part[..stream].iter().rposition(|byte| !b". ".contains(byte)).map_or(0, |at| at + 1);
        [&b".git"[..], b"git~1"].iter().any(|git| part[..end].eq_ignore_ascii_case(git))
    })
}

/// Git's rules for branch names, as far as they keep a name from meaning something else.
fn can_be_a_branch(name: &str) -> bool {
    let parts_are_fine =
        name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"));
    let forbidden = |character: char| character.is_control() || " ~^:?*[\\".contains(character);
    let bad_bit = ["..", "@{"].iter().any(|bit| name.contains(bit)) || name.contains(forbidden);
    parts_are_fine
        && !bad_bit
        && !name.starts_with('-')
        && !name.ends_with('.')
        && name != "@"
        && name != "HEAD"
}
