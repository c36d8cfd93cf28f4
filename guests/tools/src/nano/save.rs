//! Reading and writing files so that nothing is lost: the old text stays until the new one is whole.

use toolkit::files;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Stat, open_flags};

/// The largest file that is edited: all of it is in memory, with what was changed.
const LARGEST: i64 = 32 << 20;

/// A file as it was read: to see whether somebody else has changed it since.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Version(u64, u64, i64, i64);

impl Version {
    fn of(stat: &Stat) -> Version {
        Version(stat.dev, stat.ino, stat.mtime, stat.size as i64)
    }

    /// The version that a file has now; none if there is no file.
    pub fn now(path: &[u8]) -> Option<Version> {
        abi::stat(Dir::CWD, path, true).ok().map(|stat| Version::of(&stat))
    }
}

/// Reads a file; a new one has no text.
pub fn read(path: &[u8]) -> Result<Vec<u8>, String> {
    let stat = match abi::stat(Dir::CWD, path, true) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    if stat.is_dir() {
        return Err("is a directory".to_owned());
    }
    if !stat.is_file() {
        return Err("is not a regular file".to_owned());
    }
    if stat.size as i64 > LARGEST {
        return Err(format!("is too large to edit (more than {} MiB)", LARGEST >> 20));
    }
    std::fs::read(files::path(path)).map_err(|error| Errno::from(error).to_string())
}

/// Writes a file. It has the old text or the new one, whatever happens.
pub fn write(path: &[u8], content: &[u8]) -> Result<(), Errno> {
    // A link stays, and what it leads to is replaced.
    let target = match abi::stat(Dir::CWD, path, false) {
        Ok(stat) if stat.is_symlink() => files::resolve(path),
        _ => path.to_vec(),
    };
    let old = abi::stat(Dir::CWD, &target, true).ok();
    if old.is_some_and(|stat| stat.is_dir()) {
        return Err(Errno::ISDIR);
    }
    // One with several names would lose them, and what is no file cannot be replaced.
    if old.is_some_and(|stat| !stat.is_file() || stat.nlink > 1) {
        return overwrite(&target, content);
    }
    if old.is_some() {
        // The directory may let a file be replaced that must not be written.
        abi::access(Dir::CWD, &target, 2)?;
    }
    match replace(&target, content, old) {
        // In a directory that takes no new files.
        Err(Errno::ACCES | Errno::PERM | Errno::ROFS) if old.is_some() => overwrite(&target, content),
        result => result,
    }
}

fn replace(target: &[u8], content: &[u8], old: Option<Stat>) -> Result<(), Errno> {
    let name =
        [b".", files::base_name(target), b".", abi::getpid().to_string().as_bytes(), b".nano"].concat();
    let temporary = files::join(&files::parent(target), &name);
    let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::EXCL | open_flags::CLOEXEC;
    // A file left by a process that had our number is nobody's.
    let fd = match abi::open(Dir::CWD, &temporary, flags, 0o666) {
        Err(Errno::EXIST) => {
            abi::unlink(Dir::CWD, &temporary)?;
            abi::open(Dir::CWD, &temporary, flags, 0o666)?
        }
        other => other?,
    };
    let mode = old.map_or(Ok(()), |stat| abi::fchmod(fd, stat.mode & 0o7777));
    let written = mode.and_then(|()| abi::write_all(fd, content)).and_then(|()| sync(fd));
    let closed = abi::close(fd);
    let done = written.and(closed).and_then(|()| abi::rename(Dir::CWD, &temporary, Dir::CWD, target));
    if done.is_err() {
        let _ = abi::unlink(Dir::CWD, &temporary);
    }
    done
}

/// Writes into the file itself, after making sure that there is room.
fn overwrite(target: &[u8], content: &[u8]) -> Result<(), Errno> {
    let fd = abi::open(Dir::CWD, target, open_flags::WRONLY | open_flags::CLOEXEC, 0)?;
    let written = (|| {
        let is_file = abi::fstat(fd)?.is_file();
        if is_file && !content.is_empty() {
            abi::allocate(fd, 0, content.len() as u64)?;
        }
        abi::write_all(fd, content)?;
        if is_file {
            abi::truncate(fd, content.len() as u64)?;
        }
        sync(fd)
    })();
    let closed = abi::close(fd);
    written.and(closed)
}

fn sync(fd: Fd) -> Result<(), Errno> {
    match abi::sync(fd) {
        // What keeps nothing has nothing to make sure of.
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn a_saved_file_keeps_its_mode_links_and_names() {
        let directory = std::env::temp_dir().join(format!("nano-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let place = |name: &str| directory.join(name).into_os_string().into_encoded_bytes();
        std::fs::write(directory.join("script"), "old").expect("a file");
        std::fs::set_permissions(directory.join("script"), PermissionsExt::from_mode(0o751)).expect("a mode");
        std::os::unix::fs::symlink("script", directory.join("link")).expect("a link");
        let mode = |name: &str| std::fs::metadata(directory.join(name)).expect("a file").mode() & 0o777;
        write(&place("link"), b"new\n").expect("it is written");
        assert_eq!(read(&place("script")), Ok(b"new\n".to_vec()));
        assert_eq!(mode("script"), 0o751);
        assert!(directory.join("link").is_symlink());
        std::fs::hard_link(directory.join("script"), directory.join("twin")).expect("a second name");
        write(&place("twin"), b"n\n").expect("it is written");
        assert_eq!(read(&place("script")), Ok(b"n\n".to_vec()));
        write(&place("fresh"), b"").expect("it is written");
        assert_eq!((read(&place("fresh")), read(&place("none"))), (Ok(Vec::new()), Ok(Vec::new())));
        assert_eq!(write(&place("no/where"), b"x"), Err(Errno::NOENT));
        assert_eq!(write(&directory.clone().into_os_string().into_encoded_bytes(), b"x"), Err(Errno::ISDIR));
        let mut names: Vec<_> = std::fs::read_dir(&directory)
            .expect("a listing")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["fresh", "link", "script", "twin"]);
        std::fs::remove_dir_all(&directory).expect("it goes");
    }
}
