//! Locks where there is no `fcntl`: SQLite's `unix-dotfile`, a directory `FILE.lock` that one connection has at a time.
//!
//! Whoever is killed leaves that directory behind, and nobody could open the file again. So who opens a database first
//! looks whether anybody is there to hold its lock: a holder has the file open, and `/proc` says who has. Two who look
//! at the same moment see each other, and leave the lock alone; it goes away with the next one who is alone.

use crate::database::Database;
use std::time::Duration;
use toolkit::files;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

/// The name of the locks described above, which are what SQLite uses on WASI.
pub const DIRECTORIES: &str = "unix-dotfile";

/// A lock younger than this is left alone: on a directory of the host that several sandboxes share, its holder cannot
/// be seen from here.
const GRACE: Duration = Duration::from_secs(2);

/// Removes a lock that nobody holds, and lets a database with a write-ahead log be read by one at a time: what several
/// would share it through is memory that WASI has not.
pub fn prepare(database: &Database, vfs: Option<&str>) {
    let has_directories = cfg!(target_os = "wasi") && vfs.is_none() || vfs == Some(DIRECTORIES);
    let Some(file) = database.connection.path().filter(|path| has_directories && !path.is_empty()) else {
        return;
    };
    let file = file.as_bytes();
    if has_write_ahead_log(file) {
        // Fails for nobody; and without it the first query says what is wrong.
        let _ = database.run(b"PRAGMA locking_mode=exclusive");
    }
    remove_stale(file);
}

fn has_write_ahead_log(file: &[u8]) -> bool {
    let mut header = [0; 20];
    let Ok(fd) = abi::open(Dir::CWD, file, abi::open_flags::RDONLY, 0) else { return false };
    let read = abi::pread(fd, &mut header, 0);
    let _ = abi::close(fd);
    read == Ok(header.len()) && header.starts_with(b"SQLite format 3") && header[18..] == [2, 2]
}

fn remove_stale(file: &[u8]) {
    let lock = [file, b".lock"].concat();
    while let Ok(age) = age(&lock) {
        if is_open_elsewhere(file) {
            return;
        }
        if age >= GRACE {
            // Somebody else removed it, or it may not be removed: the first query finds out.
            let _ = abi::rmdir(Dir::CWD, &lock);
            return;
        }
        std::thread::sleep(GRACE - age);
    }
}

fn age(path: &[u8]) -> Result<Duration, Errno> {
    let changed =
        std::fs::metadata(files::path(path)).and_then(|metadata| metadata.modified()).map_err(Errno::from)?;
    // A time to come is that of another clock; it does not get older by waiting.
    Ok(changed.elapsed().unwrap_or(GRACE))
}

/// Whether another process has a file open.
fn is_open_elsewhere(file: &[u8]) -> bool {
    let own = abi::getpid().to_string().into_bytes();
    let names = files::names_in(b"/proc").unwrap_or_default();
    let others = names.iter().filter(|name| name.iter().all(u8::is_ascii_digit) && **name != own);
    others.into_iter().any(|process| {
        let directory = [b"/proc/", &process[..], b"/fd"].concat();
        let descriptors = files::names_in(&directory).unwrap_or_default();
        descriptors
            .iter()
            .any(|fd| files::link_target(&files::join(&directory, fd)).is_ok_and(|path| path == file))
    })
}
