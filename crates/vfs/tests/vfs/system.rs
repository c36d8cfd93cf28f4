//! The system tree, devices, read-only paths.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wardian_vfs::{Caller, Content, Device, Errno, FileKind, OpenFlags, Quota, SetTime, Tree, Usage};

fn bytes(text: &str) -> Content {
    Content::Bytes(text.as_bytes().into())
}

#[test]
fn the_system_is_charged_to_nobody_and_nobody_writes_it() {
    let mut tree = user_tree(Quota { bytes: 1000, inodes: 1 });
    let version = tree.install(b"/usr/bin/tool", 0o755, bytes("a program of some size")).unwrap();
    tree.install_link(b"/usr/bin/tool", b"/bin/alias").unwrap();
    tree.install_symlink(b"/usr/bin/tool", b"/bin/link").unwrap();
    assert_eq!(tree.usage(), Usage::default());
    let root = tree.root();
    for path in ["/usr/bin/tool", "/bin/alias", "/bin/link"] {
        let stat = tree.stat(&USER, &root, path.as_bytes(), true).unwrap();
        assert_eq!((stat.version, stat.nlink, stat.mode), (version, 2, 0o755));
        assert_eq!(try_write(&mut tree, path, b"x"), Err(Errno::EACCES));
        assert_eq!(tree.unlink(&USER, &root, path.as_bytes()), Err(Errno::EACCES));
        assert_eq!(read(&mut tree, path), b"a program of some size");
    }
    assert_eq!(try_write(&mut tree, "/bin/new", b"x"), Err(Errno::EACCES));
    write(&mut tree, "/mine", b"0123456789");
    assert_eq!(counts(&tree), (10, 1));
    let newer = tree.install(b"/usr/bin/tool", 0o755, bytes("newer")).unwrap();
    assert_ne!(newer, version);
    assert_eq!(read(&mut tree, "/bin/link"), b"newer");
}

#[test]
fn a_system_file_counts_once_it_is_written() {
    let mut tree = user_tree(Quota { bytes: 1000, inodes: 2 });
    tree.install(b"/f", 0o666, bytes("0123456789")).unwrap();
    let mut fork = tree.clone();
    let file = open(&mut tree, "/f", OpenFlags::WRITE).unwrap();
    tree.pwrite(&file, b"x", 0).unwrap();
    tree.close(file);
    assert_eq!(read(&mut tree, "/f"), b"x123456789");
    assert_eq!(read(&mut fork, "/f"), b"0123456789");
    assert_eq!(counts(&tree), (10, 1));
    assert_eq!(tree.recount(), tree.usage());
    assert_eq!(fork.usage(), Usage::default());
}

#[test]
fn lazy_content_is_loaded_once_and_only_if_read() {
    let loads = Arc::new(AtomicUsize::new(0));
    let counter = loads.clone();
    let load = Arc::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(b"unpacked"[..].into())
    });
    let mut tree = user_tree(Quota::NONE);
    tree.install(b"/bin/a", 0o755, Content::Lazy { len: 8, load }).unwrap();
    let mut fork = tree.clone();
    assert_eq!(tree.stat(&USER, &tree.root(), b"/bin/a", true).unwrap().size, 8);
    assert_eq!(loads.load(Ordering::Relaxed), 0);
    assert_eq!(read(&mut tree, "/bin/a"), b"unpacked");
    assert_eq!(read(&mut fork, "/bin/a"), b"unpacked");
    assert_eq!(loads.load(Ordering::Relaxed), 1);
    let lying = Arc::new(|| Ok(b"short"[..].into()));
    tree.install(b"/bin/b", 0o755, Content::Lazy { len: 8, load: lying }).unwrap();
    assert_eq!(try_read(&mut tree, "/bin/b"), Err(Errno::EIO));
}

#[test]
fn devices_stream_without_using_memory() {
    let mut tree = user_tree(Quota { bytes: 0, inodes: 0 });
    tree.install_dev().unwrap();
    let mut zero = open(&mut tree, "/dev/zero", OpenFlags::READ | OpenFlags::WRITE).unwrap();
    assert_eq!(zero.kind(), FileKind::Device(Device::Zero));
    let mut buf = vec![1; 1 << 20];
    for _ in 0..100 {
        assert_eq!(tree.read(&mut zero, &mut buf), Ok(1 << 20));
    }
    assert!(buf.iter().all(|byte| *byte == 0));
    assert_eq!(tree.write(&mut zero, &buf), Ok(1 << 20));
    assert_eq!(try_write(&mut tree, "/dev/null", &buf), Ok(1 << 20));
    assert_eq!(read(&mut tree, "/dev/null"), b"");
    assert_eq!(try_write(&mut tree, "/dev/full", b"x"), Err(Errno::ENOSPC));
    let mut random = open(&mut tree, "/dev/urandom", OpenFlags::READ).unwrap();
    let mut other = vec![0; 1 << 20];
    tree.read(&mut random, &mut buf).unwrap();
    tree.read(&mut random, &mut other).unwrap();
    assert_ne!(buf, other);
    assert_eq!(try_read(&mut tree, "/dev/tty"), Err(Errno::ENXIO));
    assert_eq!(tree.read_link(&USER, &tree.root(), b"/dev/stdin").unwrap(), b"/proc/self/fd/0");
    assert_eq!(tree.usage(), Usage::default());
}

#[test]
fn only_writable_paths_can_be_written() {
    let mut tree = user_tree(Quota::NONE);
    let root = tree.root();
    tree.install_dev().unwrap();
    for dir in ["/work", "/work/sub", "/other"] {
        tree.mkdir(&USER, &root, dir.as_bytes(), 0o777).unwrap();
    }
    write(&mut tree, "/other/f", b"x");
    tree.symlink(&USER, b"/other/f", &root, b"/work/escape").unwrap();
    tree.symlink(&USER, b"/work/in", &root, b"/other/entrance").unwrap();
    tree.set_writable_paths(Some(vec![b"/work/".to_vec(), b"/notes".to_vec()]));
    write(&mut tree, "/work/sub/g", b"x");
    write(&mut tree, "/notes", b"x");
    write(&mut tree, "/other/entrance", b"through a link");
    write(&mut tree, "/dev/null", b"devices are no files");
    assert_eq!(read(&mut tree, "/work/in"), b"through a link");
    for path in ["/other/f", "/other/new", "/work/escape", "/notes2", "/workshop"] {
        assert_eq!(try_write(&mut tree, path, b"y"), Err(Errno::EROFS), "{path}");
    }
    assert_eq!(tree.mkdir(&USER, &root, b"/other/d", 0o777), Err(Errno::EROFS));
    assert_eq!(tree.mkdir(&USER, &root, b"/other", 0o777), Err(Errno::EEXIST));
    assert_eq!(tree.unlink(&USER, &root, b"/other/f"), Err(Errno::EROFS));
    assert_eq!(tree.chmod(&USER, &root, b"/other/f", true, 0o600), Err(Errno::EROFS));
    assert_eq!(tree.chmod(&USER, &root, b"/work/escape", true, 0o600), Err(Errno::EROFS));
    assert_eq!(tree.rename(&USER, &root, b"/work/sub", &root, b"/sub"), Err(Errno::EROFS));
    assert_eq!(tree.rename(&USER, &root, b"/other/f", &root, b"/work/f"), Err(Errno::EROFS));
    assert_eq!(tree.link(&USER, &root, b"/other/f", true, &root, b"/work/f"), Err(Errno::EROFS));
    assert_eq!(read(&mut tree, "/other/f"), b"x");
    for (path, expected) in
        [("/other/f", Err(Errno::EROFS)), ("/work/escape", Err(Errno::EROFS)), ("/work/in", Ok(()))]
    {
        let file = open(&mut tree, path, OpenFlags::READ).unwrap();
        assert_eq!(tree.chmod_handle(&USER, &file, 0o600), expected, "{path}");
        assert_eq!(tree.utimes_handle(&USER, &file, SetTime::Now, SetTime::Now), expected, "{path}");
        tree.close(file);
    }
    tree.set_writable_paths(None);
    write(&mut tree, "/other/f", b"free again");
}

#[test]
fn many_files_are_installed_as_each_alone_would_be() {
    let names = ["/usr/lib/x/a", "/usr/lib/x/b", "/usr/lib/x/sub/a", "/etc/passwd", "/usr/lib/x/c", "/etc/b"];
    let files = || names.map(|name| (name.to_owned(), bytes(name)));
    let mut one_by_one = Tree::new(Quota { bytes: u64::MAX, inodes: u64::MAX });
    one_by_one.install(b"/etc/passwd", 0o600, bytes("old")).unwrap();
    let mut together = one_by_one.clone();
    for (path, content) in files() {
        one_by_one.install(path.as_bytes(), 0o644, content).unwrap();
    }
    together.install_all(0o644, files()).unwrap();
    together.fsck().unwrap();
    for name in names {
        let stat = |tree: &Tree| tree.stat(&Caller::USER, &tree.root(), name.as_bytes(), true).unwrap();
        let (alone, with_others) = (stat(&one_by_one), stat(&together));
        assert_eq!(
            (alone.mode, alone.uid, alone.size),
            (with_others.mode, with_others.uid, with_others.size),
            "{name}"
        );
    }
    assert_eq!(one_by_one.usage(), together.usage());
}

#[test]
fn packed_directories_are_filled_when_looked_at_and_once() {
    let loads = Arc::new(AtomicUsize::new(0));
    let counter = loads.clone();
    let mut tree = user_tree(Quota { bytes: 100_000, inodes: 10 });
    tree.install(b"/usr/bin/tool", 0o755, bytes("tool")).unwrap();
    let load = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        let files = [("lib/a/one", "1"), ("lib/a/two", "22"), ("lib/b/three", "333"), ("share/four", "4444")];
        Some(files.map(|(path, text)| (path.to_owned(), bytes(text))).to_vec())
    };
    tree.install_packed(b"/usr", &["lib", "share"], load).unwrap();
    write(&mut tree, "/mine", b"x");
    assert_eq!(read(&mut tree, "/usr/bin/tool"), b"tool");
    assert_eq!(loads.load(Ordering::Relaxed), 0, "nobody has looked");
    let mut fork = tree.clone();
    assert_eq!(read(&mut fork, "/usr/lib/a/two"), b"22");
    assert_eq!(read(&mut tree, "/usr/share/../lib/b/three"), b"333");
    assert_eq!(loads.load(Ordering::Relaxed), 1, "for all trees");
    let root = tree.root();
    assert_eq!(tree.stat(&USER, &root, b"/usr", true).unwrap().nlink, 5);
    let at = tree.lookup(&USER, &root, b"/usr/lib/a", true).unwrap();
    assert_eq!(tree.path_of(&at).unwrap(), b"/usr/lib/a");
    assert_eq!(tree.unlink(&USER, &root, b"/usr/lib/a/one"), Err(Errno::EACCES));
    // Changes are the tree's own, and what is removed is gone.
    let handle = tree.open(&ROOT, &root, b"/usr/lib/a/two", OpenFlags::READ, 0).unwrap();
    tree.unlink(&ROOT, &root, b"/usr/lib/a/two").unwrap();
    let gone = tree.lookup(&ROOT, &root, b"/usr/lib/a/one", true).unwrap();
    tree.unlink(&ROOT, &root, b"/usr/lib/a/one").unwrap();
    assert_eq!(tree.fsck(), Ok(()));
    tree.close(handle);
    assert_eq!(tree.stat(&ROOT, &gone, b".", true), Err(Errno::ENOENT));
    tree.install(b"/usr/lib/a/new", 0o644, bytes("new")).unwrap();
    tree.rename(&ROOT, &root, b"/usr/lib/b", &root, b"/usr/lib/c").unwrap();
    assert_eq!(read(&mut tree, "/usr/lib/c/three"), b"333");
    assert_eq!(try_read(&mut tree, "/usr/lib/b/three"), Err(Errno::ENOENT));
    assert_eq!(read(&mut fork, "/usr/lib/a/two"), b"22");
    assert_eq!(try_read(&mut fork, "/usr/lib/a/new"), Err(Errno::ENOENT));
    for tree in [&tree, &fork] {
        assert_eq!(tree.fsck(), Ok(()));
        assert_eq!(counts(tree), (1, 1));
    }
}
