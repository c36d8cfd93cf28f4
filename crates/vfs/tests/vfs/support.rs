//! What the tests share.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use wardian_vfs::{Caller, Handle, HostAccess, Mount, OpenFlags, Quota, Result, Tree, Usage};

pub const ROOT: Caller = Caller::ROOT;
pub const USER: Caller = Caller::USER;

/// Where journals of a user's go: a directory of that user's own.
pub fn state_of(uid: u32) -> PathBuf {
    let all = std::env::temp_dir().join("wardian-vfs-tests");
    if std::fs::create_dir(&all).is_ok() {
        std::fs::set_permissions(&all, std::fs::Permissions::from_mode(0o1777)).unwrap();
    }
    all.join(uid.to_string())
}

/// The same for the user who runs the tests.
pub fn state() -> PathBuf {
    // SAFETY: it only asks.
    state_of(unsafe { libc::geteuid() })
}

/// A host directory to mount, with its journals where tests keep them.
pub fn host_mount(dir: &Path, access: HostAccess) -> Mount {
    Mount::host_with_state(dir, access, Some(state())).unwrap()
}

/// A tree whose root belongs to the user.
pub fn user_tree(quota: Quota) -> Tree {
    let mut tree = Tree::new(quota);
    tree.chown(&ROOT, &tree.root(), b"/", true, Some(USER.uid), Some(USER.gid)).unwrap();
    tree
}

/// Content and files, without what names and inodes take.
pub fn counts(tree: &Tree) -> (u64, u64) {
    let Usage { bytes, inodes, .. } = tree.usage();
    (bytes, inodes)
}

pub fn open(tree: &mut Tree, path: &str, flags: OpenFlags) -> Result<Handle> {
    tree.open(&USER, &tree.root(), path.as_bytes(), flags, 0o666)
}

pub fn try_write(tree: &mut Tree, path: &str, data: &[u8]) -> Result<usize> {
    let mut file = open(tree, path, OpenFlags::CREATE | OpenFlags::WRITE | OpenFlags::TRUNC)?;
    let written = tree.write(&mut file, data);
    tree.close(file);
    written
}

pub fn write(tree: &mut Tree, path: &str, data: &[u8]) {
    assert_eq!(try_write(tree, path, data), Ok(data.len()), "{path}");
}

pub fn try_read(tree: &mut Tree, path: &str) -> Result<Vec<u8>> {
    let mut file = open(tree, path, OpenFlags::READ)?;
    let mut content = Vec::new();
    let mut buf = [0; 10_000];
    loop {
        let count = tree.read(&mut file, &mut buf)?;
        if count == 0 {
            break;
        }
        content.extend_from_slice(&buf[..count]);
    }
    tree.close(file);
    Ok(content)
}

pub fn read(tree: &mut Tree, path: &str) -> Vec<u8> {
    try_read(tree, path).unwrap_or_else(|errno| panic!("{path}: {errno}"))
}

/// Names in a directory, sorted, without `.` and `..`.
pub fn ls(tree: &mut Tree, path: &str) -> Vec<String> {
    let dir = open(tree, path, OpenFlags::READ | OpenFlags::DIRECTORY).unwrap();
    let mut names = Vec::new();
    let mut cursor = 0;
    loop {
        let entries = tree.read_dir(&USER, &dir, cursor, 7).unwrap();
        let Some(last) = entries.last() else { break };
        cursor = last.next;
        names.extend(entries.into_iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()));
    }
    tree.close(dir);
    names.retain(|name| name != "." && name != "..");
    names.sort();
    names
}
