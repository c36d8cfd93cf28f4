//! Parts of files, for those that are too long to be held whole, and whole trees of names.

use std::io::Write;

use wardian_vfs::{Errno, FileKind, OpenFlags, Place, Stat, Tree};

use crate::error::Error;
use crate::files::{AT_ONCE, DirectoryListing, LONG_PATH, USER, each_name, make_directories, readable};
use crate::sandbox::Sandbox;

/// How a file is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Creates missing directories on the way.
    pub parents: bool,
    /// Sets the file's permission bits.
    pub mode: Option<u32>,
    /// Replaces everything from this offset on, which must not be beyond the file's end, and keeps what is before it.
    pub offset: Option<u64>,
}

impl Sandbox {
    /// Writes at most `length` bytes of a file, from `offset` on, to `out`. Returns it with the size of the whole file. It
    /// is the file of one moment. Returns `EIO` if `out` fails.
    pub async fn read_range_into<W>(
        &self,
        path: impl AsRef<[u8]>,
        offset: u64,
        length: u64,
        mut out: W,
    ) -> Result<(W, u64), Error>
    where
        W: Write + Send + 'static,
    {
        self.at(path, length > AT_ONCE, move |tree, root, path| {
            let stat = tree.stat(&USER, root, path, true)?;
            readable(&stat)?;
            let handle = tree.open(&USER, root, path, OpenFlags::READ, 0)?;
            let read = read_range(tree, &handle, offset, length, &mut out);
            tree.close(handle);
            read.map(|()| (out, stat.size))
        })
        .await
    }

    /// Writes a file: all of `content` or nothing.
    pub async fn write_file_with(
        &self,
        path: impl AsRef<[u8]>,
        content: impl Into<Vec<u8>>,
        options: WriteOptions,
    ) -> Result<(), Error> {
        let content = content.into();
        let large = content.len() as u64 > AT_ONCE || path.as_ref().len() > LONG_PATH;
        self.changing("write", path, large, move |tree, root, path| {
            // In memory a clone is free: without room for all of it everything stays as it was.
            let before = (!tree.touches_host(root, path)).then(|| tree.clone());
            let written = write_with(tree, root, path, &content, options);
            if let (Err(_), Some(before)) = (&written, before) {
                *tree = before;
            }
            written
        })
        .await
    }

    /// Lists everything below a directory, each by its path in it, sorted; links are not followed. Returns `EFBIG` as soon
    /// as the paths, with [`DirectoryListing::ENTRY`] bytes for each, take more than `max` bytes.
    pub async fn list_all_within(
        &self,
        path: impl AsRef<[u8]>,
        max: usize,
    ) -> Result<DirectoryListing, Error> {
        self.at(path, true, move |tree, root, path| list_all(tree, root, path, max)).await
    }
}

fn read_range(
    tree: &Tree,
    handle: &wardian_vfs::Handle,
    offset: u64,
    length: u64,
    out: &mut impl Write,
) -> wardian_vfs::Result<()> {
    let mut piece = vec![0; 64 * 1024];
    let mut done = 0;
    while done < length {
        let wanted = usize::try_from(length - done).map_or(piece.len(), |left| left.min(piece.len()));
        let at = offset.checked_add(done).ok_or(Errno::EINVAL)?;
        let count = tree.pread(handle, &mut piece[..wanted], at)?;
        if count == 0 {
            break;
        }
        out.write_all(&piece[..count]).map_err(|_| Errno::EIO)?;
        done += count as u64;
    }
    Ok(())
}

fn write_with(
    tree: &mut Tree,
    root: &Place,
    path: &[u8],
    content: &[u8],
    options: WriteOptions,
) -> wardian_vfs::Result<()> {
    let size = match tree.stat(&USER, root, path, true) {
        Err(Errno::ENOENT) => {
            if let Some(end) = path.iter().rposition(|&byte| byte == b'/').filter(|_| options.parents) {
                make_directories(tree, root, &path[..end])?;
            }
            0
        }
        stat => size_of_readable(&stat?)?,
    };
    let offset = options.offset.unwrap_or(0);
    if offset > size {
        return Err(Errno::EINVAL);
    }
    let flags = OpenFlags::WRITE | OpenFlags::CREATE;
    let handle = tree.open(&USER, root, path, flags, options.mode.unwrap_or(0o666) & 0o7777)?;
    let mut write = || {
        tree.truncate(&handle, offset)?;
        let mut done = 0;
        while done < content.len() {
            done += tree.pwrite(&handle, &content[done..], offset + done as u64)?;
        }
        match options.mode {
            Some(mode) => tree.chmod_handle(&USER, &handle, mode & 0o7777),
            None => Ok(()),
        }
    };
    let written = write();
    tree.close(handle);
    written
}

fn size_of_readable(stat: &Stat) -> wardian_vfs::Result<u64> {
    readable(stat).map(|()| stat.size)
}

fn list_all(tree: &mut Tree, root: &Place, path: &[u8], max: usize) -> wardian_vfs::Result<DirectoryListing> {
    let mut listing = DirectoryListing::default();
    // Not by recursion: trees can be deeper than stacks. Each with its path below the first.
    let mut to_do = vec![(tree.lookup(&USER, root, path, true)?, Vec::new())];
    let mut waiting = 0;
    while let Some((dir, prefix)) = to_do.pop() {
        waiting -= prefix.len().min(waiting);
        each_name(tree, &dir, |tree, name| {
            // A name may go between being listed and being looked at only on the host.
            let Ok(stat) = tree.stat(&USER, &dir, &name, false) else { return Ok(()) };
            let below = if prefix.is_empty() { name.clone() } else { [&prefix[..], b"/", &name].concat() };
            listing.push(&below, stat.kind, stat.size);
            if stat.kind == FileKind::Dir {
                waiting += below.len();
                to_do.push((tree.lookup(&USER, &dir, &name, false)?, below));
            }
            if listing.bytes() + waiting > max { Err(Errno::EFBIG) } else { Ok(()) }
        })?;
    }
    listing.sort();
    Ok(listing)
}
