//! Linux as an ordinary user, in a process of its own.
//!
//! Root never sees `EACCES`, so the real side must not be root; and paths such as `/w/../a` must mean the
//! same on both sides, so it wants a root directory of its own. The test program starts itself once more as
//! a server; for each sequence the server forks a child, which enters the directory as its root, becomes
//! user 1000, and answers. Where the tests run as an ordinary user, the child stays that user and the
//! sequences are kept from climbing out (see `confined`).

use crate::ops::{Op, decode, sequence};
use crate::real::Real;
use crate::world::World;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const SERVE: &str = "WARDIAN_VFS_ORACLE";

/// What a sequence of operations came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub results: Vec<String>,
    pub dump: String,
}

/// The server, from the test's side.
pub struct Oracle {
    socket: UnixStream,
    server: Child,
}

impl Oracle {
    pub fn start() -> Oracle {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let server = Command::new(std::env::current_exe().unwrap())
            .args(["oracle::serve", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(SERVE, "1")
            // A socket goes both ways, and the test harness writes to standard output.
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Oracle { socket: ours, server }
    }

    fn ask(&mut self, request: &[u8]) -> String {
        send(&mut self.socket, request);
        String::from_utf8(receive(&mut self.socket).expect("the oracle answers")).unwrap()
    }

    /// Starts afresh with an empty directory `w`. The path is where [`Oracle::copy_to_lower`] copies to.
    pub fn new_world(&mut self) -> PathBuf {
        PathBuf::from(self.ask(b"N")).join("lower")
    }

    /// Runs the prelude and then operations in `w`.
    pub fn run(&mut self, bytes: &[u8]) -> Answer {
        self.answer(&[b"P", bytes].concat())
    }

    /// Runs operations in `w` as it is.
    pub fn go_on(&mut self, bytes: &[u8]) -> Answer {
        self.answer(&[b"R", bytes].concat())
    }

    fn answer(&mut self, request: &[u8]) -> Answer {
        let answer = self.ask(request);
        let (results, dump) = answer.split_once("\n===\n").unwrap_or_else(|| panic!("{answer}"));
        Answer { results: results.split('\n').map(str::to_string).collect(), dump: dump.to_string() }
    }

    /// Copies `w`, as it is, to `lower`.
    pub fn copy_to_lower(&mut self) {
        self.ask(b"L");
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.server.wait();
    }
}

/// Must sequences be kept from leaving the directory by `..` and absolute paths?
pub fn confined() -> bool {
    !rustix::process::geteuid().is_root()
}

/// Whom the real side acts as.
pub fn ids() -> (u32, u32) {
    if confined() {
        (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
    } else {
        (1000, 1000)
    }
}

#[test]
#[ignore = "not a test: the other side of the property tests"]
fn serve() {
    if std::env::var_os(SERVE).is_none() {
        return;
    }
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let mut base: Option<TempDir> = None;
    while let Some(request) = receive(&mut socket) {
        match request[0] {
            b'N' => {
                drop_world(base.take());
                let new = new_base();
                send(&mut socket, new.path().to_str().unwrap().as_bytes());
                base = Some(new);
            }
            b'L' => {
                let base = base.as_ref().unwrap().path();
                copy(&base.join("root/w"), &base.join("lower"));
                send(&mut socket, b"");
            }
            kind => {
                let ops = if kind == b'P' { sequence } else { decode };
                let root = base.as_ref().unwrap().path().join("root");
                run_in_child(&mut socket, &root, &ops(&request[1..], confined()));
            }
        }
    }
    drop_world(base);
}

/// tmpfs if there is one, since some file systems (overlays of containers) count links differently.
fn new_base() -> TempDir {
    let shm = Path::new("/dev/shm");
    let base = tempfile::Builder::new().prefix("wardian-vfs-").tempdir_in(shm);
    let base = base.or_else(|_| tempfile::tempdir()).unwrap();
    let area = base.path().join("root/w");
    std::fs::create_dir_all(&area).unwrap();
    for dir in [base.path(), &base.path().join("root")] {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(&area, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (uid, gid) = ids();
    chown(&area, Some(uid), Some(gid)).unwrap();
    base
}

fn run_in_child(socket: &mut UnixStream, root: &Path, ops: &[Op]) {
    // SAFETY: the child uses this thread only, and leaves by _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child > 0 {
        let mut status = 0;
        // SAFETY: waits for the child just made.
        unsafe { libc::waitpid(child, &mut status, 0) };
        return;
    }
    let answer = std::panic::catch_unwind(|| {
        let mut world = Real::new(enter(root));
        let results: Vec<String> = ops.iter().map(|op| world.run(op)).collect();
        format!("{}\n===\n{}", results.join("\n"), world.dump())
    });
    send(socket, answer.unwrap_or_else(|_| "the oracle's child panicked".to_string()).as_bytes());
    // SAFETY: ends the child without running what the parent has registered.
    unsafe { libc::_exit(0) };
}

/// Makes `root` the root if that is possible, and leaves root's powers behind. Says by which path the
/// process now knows its root's content.
fn enter(root: &Path) -> PathBuf {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    if confined() {
        std::env::set_current_dir(root.join("w")).unwrap();
        return root.to_path_buf();
    }
    let (uid, gid) = ids();
    std::os::unix::fs::chroot(root).unwrap();
    std::env::set_current_dir("/w").unwrap();
    // SAFETY: plain system calls, in a process with one thread.
    unsafe {
        assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
        assert_eq!(libc::setgid(gid), 0);
        assert_eq!(libc::setuid(uid), 0);
    }
    PathBuf::new()
}

fn drop_world(base: Option<TempDir>) {
    let Some(base) = base else { return };
    open_up(base.path());
    base.close().unwrap();
}

/// Gives an ordinary user back the permissions to remove the directories.
fn open_up(dir: &Path) {
    let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            open_up(&entry.path());
        }
    }
}

/// A copy with modes, owners and times.
fn copy(from: &Path, to: &Path) {
    let metadata = from.symlink_metadata().unwrap();
    let kind = metadata.file_type();
    if kind.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(from).unwrap(), to).unwrap();
    } else if kind.is_dir() {
        std::fs::create_dir(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            copy(&from.join(&name), &to.join(&name));
        }
    } else if kind.is_file() {
        std::fs::copy(from, to).unwrap();
    } else {
        let path = std::ffi::CString::new(to.to_str().unwrap()).unwrap();
        // SAFETY: the path is a valid C string.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }, 0);
    }
    std::os::unix::fs::lchown(to, Some(metadata.uid()), Some(metadata.gid())).unwrap();
    if !kind.is_symlink() {
        std::fs::set_permissions(to, metadata.permissions()).unwrap();
    }
    let spec = |sec, nsec| rustix::fs::Timespec { tv_sec: sec, tv_nsec: nsec };
    let times = rustix::fs::Timestamps {
        last_access: spec(metadata.atime(), metadata.atime_nsec()),
        last_modification: spec(metadata.mtime(), metadata.mtime_nsec()),
    };
    rustix::fs::utimensat(rustix::fs::CWD, to, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn send(socket: &mut UnixStream, message: &[u8]) {
    socket.write_all(&(message.len() as u32).to_le_bytes()).unwrap();
    socket.write_all(message).unwrap();
}

fn receive(socket: &mut UnixStream) -> Option<Vec<u8>> {
    let mut len = [0; 4];
    socket.read_exact(&mut len).ok()?;
    let mut message = vec![0; u32::from_le_bytes(len) as usize];
    socket.read_exact(&mut message).ok()?;
    Some(message)
}
