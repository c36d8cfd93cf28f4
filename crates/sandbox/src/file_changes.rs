//! What a sandbox has changed in an overlay, as changes that git can commit: see `wardian_hosttools::git_sync`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use wardian_hosttools::git_sync::{FileChange, can_be_committed};
use wardian_vfs::{Caller, Change, FileKind, OpenFlags, Tree, What};

use crate::error::Error;
use crate::files::read_all;
use crate::sandbox::Sandbox;

/// The changes in an overlay that git can store. Paths are relative to the mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileChanges {
    /// The changes, in the order in which they can be made.
    pub changes: Vec<FileChange>,
    /// Changes that cannot be committed: pipes, and git's own files.
    pub skipped: Vec<PathBuf>,
}

impl Sandbox {
    /// Returns what the sandbox has changed in the overlay mounted at `path`, with all contents, for
    /// [`commit_changes`](wardian_hosttools::git_sync::GitSync::commit_changes). Directories and permissions other than
    /// execute are not included: git does not store them.
    pub async fn file_changes(&self, path: &str) -> Result<FileChanges, Error> {
        let path = self.absolute(path);
        let at = path.clone();
        self.on_tree(move |tree| FileChanges::of(tree, &at))
            .await
            .map_err(|errno| Error::refused(errno, &path))
    }
}

impl FileChanges {
    fn of(tree: &mut Tree, mount: &[u8]) -> wardian_vfs::Result<FileChanges> {
        let mut all = FileChanges::default();
        // What has changed is in memory already, but for the holes of sparse files.
        let mut room = tree.quota().bytes;
        for change in tree.diff(mount)? {
            let path = PathBuf::from(OsString::from_vec(change.path.clone()));
            if matters(&change) {
                match can_be_committed(&path) {
                    true => all.take(tree, mount, &change, path, &mut room)?,
                    false => all.skipped.push(path),
                }
            }
        }
        Ok(all)
    }

    fn take(
        &mut self,
        tree: &mut Tree,
        mount: &[u8],
        change: &Change,
        path: PathBuf,
        room: &mut u64,
    ) -> wardian_vfs::Result<()> {
        let inside = [mount, b"/", &change.path].concat();
        let root = tree.root();
        let made = match (change.what, change.kind) {
            (What::Deleted { .. }, _) => FileChange::Remove { path },
            (_, FileKind::File) => {
                let executable = tree.stat(&Caller::ROOT, &root, &inside, false)?.mode & 0o100 != 0;
                let handle = tree.open(&Caller::ROOT, &root, &inside, OpenFlags::READ, 0)?;
                let contents = read_all(tree, &handle, *room);
                tree.close(handle);
                let contents = contents?;
                *room -= contents.len() as u64;
                FileChange::Write { path, contents, executable }
            }
            (_, FileKind::Symlink) => {
                let target = tree.read_link(&Caller::ROOT, &root, &inside)?;
                FileChange::Link { path, target: OsString::from_vec(target).into() }
            }
            _ => {
                self.skipped.push(path);
                return Ok(());
            }
        };
        // New contents and a new mode are two changes of one file.
        if self.changes.last() != Some(&made) {
            self.changes.push(made);
        }
        Ok(())
    }
}

/// Returns whether git would see the path.
fn matters(change: &Change) -> bool {
    match (change.what, change.kind) {
        (What::Deleted { .. }, _) => true,
        (_, FileKind::Dir) => false,
        (What::Mode { from, to }, kind) => kind == FileKind::File && (from ^ to) & 0o100 != 0,
        _ => true,
    }
}
