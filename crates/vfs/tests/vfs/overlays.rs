//! Overlays: changes stay in the sandbox, can be listed, read as a patch, and taken over.

use crate::ops::{OP_LEN, Op, decode};
use crate::properties::unreadable;
use crate::support::*;
use crate::world::{Ours, World};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use wardian_vfs::*;

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";

pub fn lower() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    fs::create_dir_all(at("sub/deep")).unwrap();
    fs::write(at("text"), TEXT).unwrap();
    fs::write(at("script"), "#!/bin/sh\n").unwrap();
    fs::write(at("sub/a"), "a\n").unwrap();
    fs::write(at("sub/deep/b"), "b\n").unwrap();
    fs::write(at("binary"), [0, 1, 2, 255]).unwrap();
    symlink("text", at("link")).unwrap();
    dir
}

pub fn overlay(dir: &Path) -> Tree {
    let mut tree = user_tree(Quota::NONE);
    tree.mount(b"/w", host_mount(dir, HostAccess::Overlay)).unwrap();
    tree
}

/// The same for user 1000 to apply, where the tests run as root.
fn overlay_for_user(dir: &Path) -> Tree {
    let state = if is_root() { state_of(1000) } else { state() };
    let mut tree = user_tree(Quota::NONE);
    let mount = Mount::host_with_state(dir, HostAccess::Overlay, Some(state)).unwrap();
    tree.mount(b"/w", mount).unwrap();
    tree
}

/// Paths with contents, targets and permission bits of everything in a host directory.
pub fn snapshot(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let what = if metadata.is_symlink() {
                format!("-> {:?}", fs::read_link(&path).unwrap())
            } else if metadata.is_dir() {
                pending.push(path.clone());
                format!("d {:o}", metadata.mode() & 0o777)
            } else {
                format!("{:o} {:?}", metadata.mode() & 0o777, fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(dir).unwrap().to_str().unwrap().to_string(), what);
        }
    }
    found
}

fn short(changes: &[Change]) -> Vec<String> {
    let shown = changes.iter().map(|change| {
        let letter = match change.what {
            What::Added { .. } => "A".to_string(),
            What::Modified => "M".to_string(),
            What::Deleted { .. } => "D".to_string(),
            What::Mode { from, to } => format!("{from:o}>{to:o}"),
        };
        format!("{letter} {}", String::from_utf8_lossy(&change.path))
    });
    shown.collect()
}

/// Some of everything.
pub fn change(tree: &mut Tree) {
    let root = tree.root();
    write(tree, "/w/text", TEXT.replace("five", "FIVE").as_bytes());
    write(tree, "/w/new file", b"no newline at the end");
    tree.mkdir(&USER, &root, b"/w/made", 0o755).unwrap();
    write(tree, "/w/made/inside", b"x\n");
    tree.chmod(&USER, &root, b"/w/script", true, 0o755).unwrap();
    tree.rename(&USER, &root, b"/w/sub", &root, b"/w/moved").unwrap();
    tree.unlink(&USER, &root, b"/w/link").unwrap();
    tree.symlink(&USER, b"script", &root, b"/w/link").unwrap();
    write(tree, "/w/unchanged", b"");
    tree.unlink(&USER, &root, b"/w/unchanged").unwrap();
}

#[test]
fn changes_are_listed_and_nothing_else() {
    let dir = lower();
    let before = snapshot(dir.path());
    let mut tree = overlay(dir.path());
    assert_eq!(tree.diff(b"/w").unwrap(), []);
    assert_eq!(read(&mut tree, "/w/sub/deep/b"), b"b\n");
    assert_eq!(ls(&mut tree, "/w/sub"), ["a", "deep"]);
    assert_eq!(tree.diff(b"/w").unwrap(), [], "reading changes nothing");
    assert_eq!(counts(&tree), (0, 0), "and costs nothing but what is remembered of it");
    change(&mut tree);
    let expected = [
        "M link",
        "A made",
        "A made/inside",
        "A moved",
        "A moved/a",
        "A moved/deep",
        "A moved/deep/b",
        "A new file",
        "644>755 script",
        "D sub",
        "D sub/a",
        "D sub/deep",
        "D sub/deep/b",
        "M text",
    ];
    assert_eq!(short(&tree.diff(b"/w").unwrap()), expected);
    assert_eq!(snapshot(dir.path()), before, "the host directory is as it was");
    // Writing the same again, or putting things back, is no change.
    let root = tree.root();
    tree.rename(&USER, &root, b"/w/moved", &root, b"/w/sub").unwrap();
    write(&mut tree, "/w/text", TEXT.as_bytes());
    tree.chmod(&USER, &root, b"/w/script", true, 0o644).unwrap();
    assert_eq!(short(&tree.diff(b"/w").unwrap()), ["M link", "A made", "A made/inside", "A new file"]);
    assert_eq!(tree.diff(b"/").unwrap_err(), Errno::EINVAL);
}

#[test]
fn only_what_is_written_is_charged() {
    let dir = lower();
    fs::write(dir.path().join("big"), vec![1; 1_000_000]).unwrap();
    let mut tree = overlay(dir.path());
    tree.set_quota(Quota { bytes: 20_000, inodes: 3 });
    let root = tree.root();
    tree.rename(&USER, &root, b"/w/big", &root, b"/w/large").unwrap();
    tree.chmod(&USER, &root, b"/w/large", true, 0o600).unwrap();
    assert_eq!(counts(&tree), (0, 0));
    let file = open(&mut tree, "/w/large", OpenFlags::WRITE).unwrap();
    assert_eq!(tree.pwrite(&file, b"x", 5), Err(Errno::ENOSPC));
    tree.close(file);
    assert_eq!(read(&mut tree, "/w/large").len(), 1_000_000);
    write(&mut tree, "/w/large", b"short");
    assert_eq!(counts(&tree), (5, 1));
    for path in ["/w/text", "/w/script", "/w/large"] {
        tree.unlink(&USER, &root, path.as_bytes()).unwrap();
    }
    assert_eq!(counts(&tree), (0, 0));
    tree.fsck().unwrap();
}

#[test]
fn an_open_file_sees_what_others_write_to_it() {
    let dir = lower();
    let mut tree = overlay(dir.path());
    let root = tree.root();
    let mut reader = open(&mut tree, "/w/text", OpenFlags::READ).unwrap();
    let ino = tree.stat_handle(&USER, &reader).unwrap().ino;
    let writer = open(&mut tree, "/w/text", OpenFlags::WRITE).unwrap();
    tree.pwrite(&writer, b"ONE", 0).unwrap();
    let mut buf = [0; 3];
    tree.read(&mut reader, &mut buf).unwrap();
    assert_eq!(&buf, b"ONE");
    assert_eq!(tree.stat(&USER, &root, b"/w/text", true).unwrap().ino, ino, "and keeps its number");
    tree.unlink(&USER, &root, b"/w/text").unwrap();
    tree.close(writer);
    assert_eq!(tree.pread(&reader, &mut buf, 0), Ok(3));
    tree.close(reader);
    assert_eq!(try_read(&mut tree, "/w/text"), Err(Errno::ENOENT));
}

#[test]
fn a_working_directory_in_an_overlay_follows_renames() {
    let dir = lower();
    let mut tree = overlay(dir.path());
    let root = tree.root();
    let cwd = tree.lookup(&USER, &root, b"/w/sub/deep", true).unwrap();
    assert_eq!(tree.path_of(&cwd).unwrap(), b"/w/sub/deep");
    tree.rename(&USER, &root, b"/w/sub", &root, b"/w/x").unwrap();
    assert_eq!(tree.path_of(&cwd).unwrap(), b"/w/x/deep");
    tree.rename(&USER, &root, b"/w/x/deep", &root, b"/w/y").unwrap();
    assert_eq!(tree.path_of(&cwd).unwrap(), b"/w/y");
    assert_eq!(tree.stat(&USER, &cwd, b"b", true).unwrap().size, 2);
    tree.unlink(&USER, &cwd, b"b").unwrap();
    tree.rmdir(&USER, &root, b"/w/y").unwrap();
    assert_eq!(tree.path_of(&cwd), Err(Errno::ENOENT));
}

fn git(dir: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).env("GIT_CEILING_DIRECTORIES", "/").env("HOME", dir);
    let output = command.output().expect("git is installed");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_patch_makes_git_do_the_same() {
    let dir = lower();
    let mut tree = overlay(dir.path());
    change(&mut tree);
    write(&mut tree, "/w/t\u{e4}b\t\"quoted\"", b"odd name\n");
    write(&mut tree, "/w/empty", b"");
    let patch = tree.diff_text(b"/w").unwrap();
    let text = String::from_utf8_lossy(&patch);
    assert!(text.contains("-five\n+FIVE\n") && text.contains("@@ -2,7 +2,7 @@"), "{text}");
    assert!(text.contains("old mode 100644\nnew mode 100755\n"), "{text}");

    let copy = tempfile::tempdir().unwrap();
    let status = Command::new("cp").arg("-a").arg(dir.path().join(".")).arg(copy.path()).status().unwrap();
    assert!(status.success());
    fs::write(copy.path().join("../patch-of-the-overlay"), &patch).unwrap();
    git(copy.path(), &["apply", "../patch-of-the-overlay"]);
    fs::remove_file(copy.path().join("../patch-of-the-overlay")).unwrap();
    tree.apply(b"/w").unwrap();
    assert_eq!(snapshot(copy.path()), snapshot(dir.path()));
}

#[test]
fn what_is_not_text_is_only_named() {
    let dir = lower();
    let mut tree = overlay(dir.path());
    write(&mut tree, "/w/binary", &[0, 9]);
    let patch = String::from_utf8(tree.diff_text(b"/w").unwrap()).unwrap();
    assert_eq!(patch, "diff --git a/binary b/binary\nBinary files a/binary and b/binary differ\n");
}

#[test]
fn changes_can_be_taken_over() {
    let dir = lower();
    let mut tree = overlay(dir.path());
    change(&mut tree);
    let changes = tree.diff(b"/w").unwrap();
    assert_eq!(tree.apply(b"/w").unwrap(), changes);
    assert_eq!(tree.diff(b"/w").unwrap(), []);
    assert_eq!(tree.usage(), Usage::default());
    tree.fsck().unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("moved/deep/b")).unwrap(), "b\n");
    assert_eq!(fs::read_to_string(dir.path().join("text")).unwrap(), TEXT.replace("five", "FIVE"));
    assert_eq!(read(&mut tree, "/w/moved/deep/b"), b"b\n");
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
}

#[test]
fn holes_are_taken_over_as_holes() {
    let dir = lower();
    let mut tree = overlay(dir.path());
    let file = open(&mut tree, "/w/sparse", OpenFlags::CREATE | OpenFlags::WRITE).unwrap();
    tree.pwrite(&file, b"in between", 1 << 33).unwrap();
    tree.truncate(&file, 1 << 34).unwrap();
    tree.close(file);
    tree.apply(b"/w").unwrap();
    let made = fs::metadata(dir.path().join("sparse")).unwrap();
    assert_eq!(made.len(), 1 << 34);
    assert!(made.blocks() * 512 < 1 << 20, "{} blocks", made.blocks());
    let mut found = [0; 10];
    let host = fs::File::open(dir.path().join("sparse")).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&host, &mut found, 1 << 33).unwrap();
    assert_eq!(&found, b"in between");
}

#[test]
fn what_is_not_for_a_host_is_not_taken_over() {
    let dir = lower();
    let before = snapshot(dir.path());
    let makers: [fn(&mut Tree); 3] = [
        |tree| tree.mkfifo(&USER, &tree.root(), b"/w/pipe", 0o644).unwrap(),
        |tree| tree.symlink(&USER, b"/etc/passwd", &tree.root(), b"/w/out").unwrap(),
        |tree| tree.chmod(&USER, &tree.root(), b"/w/script", true, 0o4755).unwrap(),
    ];
    for make in makers {
        let mut tree = overlay(dir.path());
        write(&mut tree, "/w/other", b"x");
        make(&mut tree);
        assert_eq!(tree.apply(b"/w").unwrap_err(), Errno::EPERM);
        assert_eq!(snapshot(dir.path()), before);
        assert_eq!(read(&mut tree, "/w/other"), b"x", "the overlay still has its changes");
    }
}

/// A change that a directory nobody may write to, or a file of somebody else's, makes fail: each at another step.
type Doomed = (&'static str, fn(&mut Tree, &str));

const DOOMED: [Doomed; 7] = [
    ("a file is deleted", |tree, at| {
        tree.unlink(&Caller::ROOT, &tree.root(), format!("{at}/file").as_bytes()).unwrap()
    }),
    ("a link is deleted", |tree, at| {
        tree.unlink(&Caller::ROOT, &tree.root(), format!("{at}/link").as_bytes()).unwrap()
    }),
    ("a directory is deleted", |tree, at| {
        tree.rmdir(&Caller::ROOT, &tree.root(), format!("{at}/dir").as_bytes()).unwrap()
    }),
    ("a file is added", |tree, at| {
        let flags = OpenFlags::CREATE | OpenFlags::WRITE;
        let file =
            tree.open(&Caller::ROOT, &tree.root(), format!("{at}/new").as_bytes(), flags, 0o644).unwrap();
        tree.close(file);
    }),
    ("a directory is added", |tree, at| {
        tree.mkdir(&Caller::ROOT, &tree.root(), format!("{at}/made").as_bytes(), 0o755).unwrap()
    }),
    ("a link is added", |tree, at| {
        tree.symlink(&Caller::ROOT, b"file", &tree.root(), format!("{at}/soft").as_bytes()).unwrap()
    }),
    ("a file is changed", |tree, at| write(tree, &format!("{at}/file"), b"changed")),
];

/// `lower()` with two directories that may not be changed, one before all others and one behind them.
fn partly_locked() -> TempDir {
    let dir = lower();
    for locked in ["0", "z"] {
        let at = dir.path().join(locked);
        fs::create_dir_all(at.join("dir")).unwrap();
        fs::write(at.join("file"), "file\n").unwrap();
        symlink("file", at.join("link")).unwrap();
    }
    let chowned = Command::new("chown").args(["-hR", "1000"]).arg(dir.path()).status().unwrap();
    assert!(chowned.success() || !is_root());
    lock(dir.path(), 0o555);
    dir
}

fn lock(dir: &Path, mode: u32) {
    for locked in ["0", "z"] {
        fs::set_permissions(dir.join(locked), fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn is_root() -> bool {
    // SAFETY: it only asks.
    unsafe { libc::geteuid() == 0 }
}

/// Runs `work` as an ordinary user: root may write anywhere.
fn as_ordinary_user(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let user = scope.spawn(|| {
            if is_root() {
                // SAFETY: the bare system call changes this thread alone, which ends with the work.
                assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, 1000, -1) }, 0);
            }
            work();
        });
        user.join().unwrap();
    });
}

#[test]
fn a_takeover_that_fails_halfway_leaves_everything_as_it_was() {
    for (what, doom) in DOOMED {
        for locked in ["/w/0", "/w/z"] {
            let dir = partly_locked();
            let before = snapshot(dir.path());
            let mut tree = overlay_for_user(dir.path());
            change(&mut tree);
            doom(&mut tree, locked);
            let changes = tree.diff(b"/w").unwrap();
            as_ordinary_user(|| {
                assert_eq!(tree.apply(b"/w").unwrap_err(), Errno::EACCES, "{what} in {locked}");
                assert_eq!(snapshot(dir.path()), before, "{what} in {locked}");
                assert_eq!(tree.diff(b"/w").unwrap(), changes, "{what} in {locked}");
                lock(dir.path(), 0o755);
                tree.apply(b"/w").unwrap();
                assert_eq!(tree.diff(b"/w").unwrap(), [], "{what} in {locked}, once it may be");
            });
            tree.fsck().unwrap();
        }
    }
}

#[test]
fn a_takeover_that_fails_at_its_very_end_leaves_everything_as_it_was() {
    if !is_root() {
        // Only root can give a file away.
        return;
    }
    let dir = partly_locked();
    lock(dir.path(), 0o755);
    std::os::unix::fs::chown(dir.path().join("0/file"), Some(0), None).unwrap();
    let before = snapshot(dir.path());
    let mut tree = overlay_for_user(dir.path());
    change(&mut tree);
    tree.chmod(&Caller::ROOT, &tree.root(), b"/w/0/file", true, 0o600).unwrap();
    as_ordinary_user(|| {
        assert_eq!(tree.apply(b"/w").unwrap_err(), Errno::EPERM);
        assert_eq!(snapshot(dir.path()), before);
    });
}

/// After any sequence, the list of changes turns the directory below into what the sandbox sees: taken over,
/// there is no difference left, and the host shows what the sandbox showed.
#[test]
fn whatever_was_changed_taking_it_over_leaves_no_difference() {
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let ops = vec(any::<[u8; OP_LEN]>(), 1..60).prop_map(|ops| ops.concat());
    let result = runner.run(&ops, |bytes| {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir_all(at("a/b/c")).unwrap();
        fs::create_dir_all(at("d")).unwrap();
        fs::write(at("a/a"), TEXT).unwrap();
        fs::write(at("a/b/c/d"), "x").unwrap();
        fs::write(at("b"), "b").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut world = Ours::new(overlay(dir.path()), USER);
        for op in decode(&bytes, false) {
            // Not for a host, as another test shows; and an applied file is one, however many names it had.
            let left_out = match op {
                Op::Mkfifo { .. } | Op::Symlink { .. } | Op::Link { .. } => true,
                Op::Chmod { .. } | Op::Fchmod { .. } => true,
                Op::Open { mode, .. } | Op::Mkdir { mode, .. } => unreadable(mode),
                _ => false,
            };
            if !left_out {
                world.run(&op);
            }
        }
        world.close_all();
        // Looking opens files, which gives them inodes: look at a clone.
        let seen = contents(&mut world.fork());
        match world.tree.apply(b"/w") {
            // A file may have been made with a set-user-id bit.
            Err(Errno::EPERM) => return Ok(()),
            applied => applied.map_err(|errno| TestCaseError::fail(format!("{errno}")))?,
        };
        prop_assert_eq!(world.tree.diff(b"/w").unwrap(), vec![]);
        prop_assert_eq!(contents(&mut world), seen.clone());
        let mut fresh = Ours::new(overlay(dir.path()), USER);
        prop_assert_eq!(contents(&mut fresh), seen);
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}

/// A dump without inode numbers and times, which taking over does not preserve.
fn contents(world: &mut Ours) -> Vec<String> {
    let dump = world.dump();
    let kept = dump.lines().skip(1).map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let size = if words[2] == "d" { "" } else { words[6] };
        format!("{} {} {} {size} {:?}", words[0], words[2], words[3], words.get(8))
    });
    kept.collect()
}
