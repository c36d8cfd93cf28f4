//! How the files of two commits differ.

use wardian_store::Hash;
use wardian_vfs::Tree;

use super::load::{Files, cannot_read, read_root};
use super::root::Role;
use super::store::Store;
use crate::error::Error;

/// A file that differs between two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileChange {
    /// Its path.
    pub path: Vec<u8>,
    /// What happened to it.
    pub what: FileChangeKind,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileChangeKind {
    /// It is new.
    Added,
    /// Its kind, mode, owner or content changed.
    Changed,
    /// It is gone.
    Removed,
}

impl FileChangeKind {
    /// Returns a letter for it: `A`, `M` or `D`, as in git.
    pub fn letter(self) -> char {
        match self {
            FileChangeKind::Added => 'A',
            FileChangeKind::Changed => 'M',
            FileChangeKind::Removed => 'D',
        }
    }
}

/// Compares the files of two values, sorted by path. Contents are compared by their hashes.
pub(crate) fn compare(store: &Store, from: Hash, to: Hash) -> Result<Vec<FileChange>, Error> {
    let listed = |root: Hash| {
        let root = read_root(store, &root)?;
        let shape = match root.get(&Role::Shape) {
            Some(shape) => store.inner.get(&shape)?.bytes,
            None => Vec::new(),
        };
        let files = Files::read(store, &root)?;
        let tree = Tree::from_records_alone(&shape, &files.records(store, None)).map_err(cannot_read)?;
        let batch = store.inner.batch();
        let name = |chunk: &wardian_vfs::Chunk| chunk.name(store.naming, |bytes| batch.name(&[], bytes).0);
        tree.fingerprints(name).map_err(|errno| Error::refused(errno, b"diff"))
    };
    let (before, after) = (listed(from)?, listed(to)?);
    let removed = before.keys().filter(|path| !after.contains_key(*path));
    let removed = removed.map(|path| FileChange { path: path.clone(), what: FileChangeKind::Removed });
    let others = after.iter().filter_map(|(path, new)| {
        let what = match before.get(path) {
            None => FileChangeKind::Added,
            Some(old) if old != new => FileChangeKind::Changed,
            Some(_) => return None,
        };
        Some(FileChange { path: path.clone(), what })
    });
    let mut changes: Vec<FileChange> = removed.chain(others).collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}
