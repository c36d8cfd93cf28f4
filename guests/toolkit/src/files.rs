//! Paths as bytes, and what `std` does with them.

use std::ffi::OsStr;
#[cfg(unix)]
use std::os::unix::ffi::OsStrExt;
#[cfg(target_os = "wasi")]
use std::os::wasi::ffi::OsStrExt;
use std::path::Path;
use wardian_abi::Errno;

/// A path for `std`.
pub fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The names in a directory, in the order it has them, without `.` and `..`.
pub fn names_in(directory: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path(directory)).map_err(Errno::from)? {
        names.push(entry.map_err(Errno::from)?.file_name().as_bytes().to_vec());
    }
    Ok(names)
}

/// What a directory says of one entry: its name, and what kind of file it is (the type bits of a mode) where it knows.
pub struct Entry {
    pub name: Vec<u8>,
    pub kind: Option<u32>,
}

/// The entries of a directory, in the order it has them, without `.` and `..`.
pub fn entries_in(directory: &[u8]) -> Result<Vec<Entry>, Errno> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path(directory)).map_err(Errno::from)? {
        let entry = entry.map_err(Errno::from)?;
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_file() => Some(0o100_000),
            Ok(kind) if kind.is_dir() => Some(0o040_000),
            Ok(kind) if kind.is_symlink() => Some(0o120_000),
            _ => None,
        };
        entries.push(Entry { name: entry.file_name().into_encoded_bytes(), kind });
    }
    Ok(entries)
}

/// Everything that a descriptor still has to give.
pub fn read_fd(fd: wardian_abi::Fd) -> Result<Vec<u8>, Errno> {
    let mut content = Vec::new();
    // Where the size is known growing would take twice the room; a size that is too large is none.
    if let Ok(stat) = wardian_abi::fstat(fd)
        && stat.is_file()
    {
        let size = usize::try_from(stat.size).unwrap_or(0);
        let _ = wardian_abi::fallible(|| content.try_reserve_exact(size));
    }
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match wardian_abi::read(fd, &mut buffer) {
            Ok(0) => return Ok(content),
            Ok(count) => content.extend_from_slice(&buffer[..count]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Where a symbolic link points.
pub fn link_target(link: &[u8]) -> Result<Vec<u8>, Errno> {
    let target = std::fs::read_link(path(link)).map_err(Errno::from)?;
    Ok(target.as_os_str().as_bytes().to_vec())
}

/// `directory/name`.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = directory.to_vec();
    if !joined.ends_with(b"/") {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// The last component, without slashes at its end; `/` for the root.
pub fn base_name(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(path.len().min(1), |at| at + 1);
    let start = path[..end].iter().rposition(|&byte| byte == b'/').filter(|_| end > 1).map_or(0, |at| at + 1);
    &path[start..end]
}

/// What comes before the last component; `.` when there is nothing.
pub fn parent(path: &[u8]) -> Vec<u8> {
    match path.iter().rposition(|&byte| byte == b'/') {
        None => b".".to_vec(),
        Some(0) => b"/".to_vec(),
        Some(at) => path[..at].to_vec(),
    }
}

/// A path without links, `.` and `..`; what is not there is taken as it is written.
pub fn resolve(path: &[u8]) -> Vec<u8> {
    if let Ok(whole) = std::fs::canonicalize(self::path(path)) {
        return whole.as_os_str().as_bytes().to_vec();
    }
    let last = base_name(path);
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
    let above = &path[..end.saturating_sub(last.len())];
    let directory = match above {
        [] => wardian_abi::getcwd().unwrap_or_else(|_| b"/".to_vec()),
        above => resolve(above),
    };
    match last {
        b"." | b"" | b"/" => directory,
        b".." => parent(&directory),
        last => join(&directory, last),
    }
}

/// The way from a directory to a path.
pub fn relative(path: &[u8], from: &[u8]) -> Vec<u8> {
    let (path, from) = (resolve(path), resolve(from));
    let parts = |path: &[u8]| -> Vec<Vec<u8>> {
        path.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let (path, from) = (parts(&path), parts(&from));
    let shared = path.iter().zip(&from).take_while(|(left, right)| left == right).count();
    let up = std::iter::repeat_n(b"..".to_vec(), from.len() - shared);
    let way: Vec<Vec<u8>> = up.chain(path[shared..].iter().cloned()).collect();
    if way.is_empty() { b".".to_vec() } else { way.join(&b'/') }
}
