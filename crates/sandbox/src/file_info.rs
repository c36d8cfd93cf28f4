//! Everything about files that a listing can tell: owner, permissions, times, where links lead.

use wardian_vfs::{Errno, FileKind, Place, Stat, Tree};

use crate::error::Error;
use crate::files::{USER, each_name};
use crate::sandbox::Sandbox;

/// The most bytes of paths, those that links have included, that a list has.
const PATHS: usize = 8 << 20;

/// A file as `stat` sees it. Links are not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileInfo {
    /// Its absolute path, as it was asked for.
    pub path: Vec<u8>,
    /// Its kind.
    pub kind: FileKind,
    /// Its length in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last change of content, in nanoseconds since 1970.
    pub mtime: i64,
    /// Last change of content or metadata.
    pub ctime: i64,
    /// Which file it is, whatever its name.
    pub inode: (u64, u64),
    /// Of a link: where it leads, as it is written.
    pub target: Option<Vec<u8>>,
    /// Of a link: the kind of what is there, if there is something.
    pub target_kind: Option<FileKind>,
}

impl FileInfo {
    /// Returns the last part of its path.
    pub fn name(&self) -> &[u8] {
        self.path.rsplit(|&byte| byte == b'/').find(|name| !name.is_empty()).unwrap_or(b"/")
    }
}

impl Sandbox {
    /// Makes a path absolute: one that is not starts where the shell is now.
    pub fn absolute_path(&self, path: impl AsRef<[u8]>) -> Vec<u8> {
        self.absolute(path)
    }

    /// Returns everything about one file.
    pub async fn file_info(&self, path: impl AsRef<[u8]>) -> Result<FileInfo, Error> {
        self.at(path, false, |tree, root, path| {
            let stat = tree.stat(&USER, root, path, false)?;
            Ok(describe(tree, root, path, path.to_vec(), &stat))
        })
        .await
    }

    /// Lists a directory and, up to `depth` levels in all, those in it; sorted by path. `EFBIG` if there are more than `most`
    /// entries, or more than 8 MiB of paths.
    pub async fn file_infos(
        &self,
        path: impl AsRef<[u8]>,
        depth: usize,
        most: usize,
    ) -> Result<Vec<FileInfo>, Error> {
        self.at(path, true, move |tree, root, path| list(tree, root, path, depth, most)).await
    }
}

fn list(
    tree: &mut Tree,
    root: &Place,
    path: &[u8],
    depth: usize,
    most: usize,
) -> wardian_vfs::Result<Vec<FileInfo>> {
    let mut found: Vec<FileInfo> = Vec::new();
    let mut start = path.to_vec();
    while start.last() == Some(&b'/') {
        start.pop();
    }
    let mut bytes = 0;
    // Not by recursion: trees can be deeper than stacks.
    let mut to_do = vec![(tree.lookup(&USER, root, path, true)?, start, 1)];
    while let Some((dir, prefix, level)) = to_do.pop() {
        let mut below = Vec::new();
        each_name(tree, &dir, |tree, name| {
            // A name may go between being listed and being looked at only on the host.
            let Ok(stat) = tree.stat(&USER, &dir, &name, false) else { return Ok(()) };
            let full = [&prefix[..], b"/", &name].concat();
            bytes += full.len();
            if stat.kind == FileKind::Dir && level < depth {
                below.push((name.clone(), full.clone()));
            }
            let info = describe(tree, &dir, &name, full, &stat);
            bytes += info.target.as_ref().map_or(0, Vec::len);
            found.push(info);
            if found.len() > most || bytes > PATHS { Err(Errno::EFBIG) } else { Ok(()) }
        })?;
        for (name, full) in below {
            // A directory that may not be read is listed, and what is in it is not.
            if let Ok(inner) = tree.lookup(&USER, &dir, &name, false) {
                to_do.push((inner, full, level + 1));
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn describe(tree: &Tree, at: &Place, name: &[u8], path: Vec<u8>, stat: &Stat) -> FileInfo {
    let is_link = stat.kind == FileKind::Symlink;
    let target = if is_link { tree.read_link(&USER, at, name).ok() } else { None };
    let target_kind =
        if is_link { tree.stat(&USER, at, name, true).ok().map(|stat| stat.kind) } else { None };
    FileInfo {
        path,
        kind: stat.kind,
        size: stat.size,
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        mtime: stat.mtime,
        ctime: stat.ctime,
        inode: (stat.dev, stat.ino),
        target,
        target_kind,
    }
}
