//! Mounts: given files, host directories, computed files.

use crate::support::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use wardian_vfs::*;

fn host() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("file"), "from the host").unwrap();
    fs::write(dir.path().join("sub/inner"), "deeper").unwrap();
    dir
}

fn mounted(dir: &TempDir, access: HostAccess) -> Tree {
    let mut tree = user_tree(Quota::NONE);
    assert!(!tree.has_host_mounts());
    tree.mount(b"/src", host_mount(dir.path(), access)).unwrap();
    assert!(tree.has_host_mounts());
    tree
}

#[test]
fn a_read_only_host_directory_can_be_read_and_nothing_else() {
    let dir = host();
    let mut tree = mounted(&dir, HostAccess::ReadOnly);
    let root = tree.root();
    assert_eq!(ls(&mut tree, "/src"), ["file", "sub"]);
    assert_eq!(read(&mut tree, "/src/file"), b"from the host");
    assert_eq!(read(&mut tree, "/src/sub/../sub/inner"), b"deeper");
    let stat = tree.stat(&USER, &root, b"/src/file", true).unwrap();
    assert_eq!((stat.kind, stat.size, stat.uid, stat.version), (FileKind::File, 13, 1000, 0));
    for path in ["/src/file", "/src/new"] {
        assert_eq!(try_write(&mut tree, path, b"x"), Err(Errno::EROFS), "{path}");
    }
    assert_eq!(tree.mkdir(&USER, &root, b"/src/d", 0o755), Err(Errno::EROFS));
    assert_eq!(tree.unlink(&USER, &root, b"/src/file"), Err(Errno::EROFS));
    assert_eq!(tree.rmdir(&USER, &root, b"/src/sub"), Err(Errno::EROFS));
    assert_eq!(tree.rename(&USER, &root, b"/src/file", &root, b"/src/g"), Err(Errno::EROFS));
    assert_eq!(tree.symlink(&USER, b"x", &root, b"/src/l"), Err(Errno::EROFS));
    assert_eq!(tree.link(&USER, &root, b"/src/file", true, &root, b"/src/l"), Err(Errno::EROFS));
    assert_eq!(tree.chmod(&USER, &root, b"/src/file", true, 0o777), Err(Errno::EROFS));
    assert_eq!(tree.utimes(&USER, &root, b"/src/file", true, SetTime::Now, SetTime::Now), Err(Errno::EROFS));
    assert_eq!(tree.mkfifo(&USER, &root, b"/src/p", 0o666), Err(Errno::EROFS));
    assert_eq!(tree.access(&USER, &root, b"/src/file", Access::W), Err(Errno::EROFS));
    assert_eq!(tree.rmdir(&USER, &root, b"/src"), Err(Errno::EBUSY));
    assert_eq!(tree.rename(&USER, &root, b"/src", &root, b"/dst"), Err(Errno::EBUSY));
    write(&mut tree, "/f", b"");
    assert_eq!(tree.rename(&USER, &root, b"/f", &root, b"/src/f"), Err(Errno::EXDEV));
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"from the host");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn links_in_a_host_directory_lead_within_the_sandbox() {
    let dir = host();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink(outside.path().join("secret"), dir.path().join("absolute")).unwrap();
    symlink("../../../../../../../../../../../../etc/passwd", dir.path().join("relative")).unwrap();
    symlink("/inside", dir.path().join("to_sandbox")).unwrap();
    symlink("../inside", dir.path().join("above")).unwrap();
    symlink("sub", dir.path().join("dirlink")).unwrap();
    for access in [HostAccess::ReadOnly, HostAccess::ReadWrite, HostAccess::Overlay] {
        let mut tree = mounted(&dir, access);
        write(&mut tree, "/inside", b"the sandbox's own");
        assert_eq!(try_read(&mut tree, "/src/absolute"), Err(Errno::ENOENT));
        assert_eq!(try_read(&mut tree, "/src/relative"), Err(Errno::ENOENT));
        assert_eq!(read(&mut tree, "/src/to_sandbox"), b"the sandbox's own");
        assert_eq!(read(&mut tree, "/src/above"), b"the sandbox's own");
        assert_eq!(read(&mut tree, "/src/dirlink/inner"), b"deeper");
        assert_eq!(read(&mut tree, "/src/../../../src/dirlink/../file"), b"from the host");
        let cwd = tree.lookup(&USER, &tree.root(), b"/src/dirlink", true).unwrap();
        assert_eq!(tree.path_of(&cwd).unwrap(), b"/src/sub");
        assert_eq!(tree.path_of(&tree.lookup(&USER, &cwd, b"../..", true).unwrap()).unwrap(), b"/");
    }
}

#[test]
fn a_read_write_host_directory_takes_changes() {
    let dir = host();
    let mut tree = mounted(&dir, HostAccess::ReadWrite);
    let root = tree.root();
    write(&mut tree, "/src/file", b"changed");
    write(&mut tree, "/src/sub/new", b"made");
    let mut file = open(&mut tree, "/src/file", OpenFlags::WRITE | OpenFlags::APPEND).unwrap();
    assert!(file.is_host());
    tree.write(&mut file, b" more").unwrap();
    tree.truncate(&file, 10).unwrap();
    tree.close(file);
    tree.mkdir(&USER, &root, b"/src/d", 0o750).unwrap();
    tree.rename(&USER, &root, b"/src/sub/new", &root, b"/src/d/moved").unwrap();
    tree.link(&USER, &root, b"/src/file", true, &root, b"/src/d/hard").unwrap();
    tree.symlink(&USER, b"../file", &root, b"/src/d/soft").unwrap();
    tree.chmod(&USER, &root, b"/src/file", true, 0o640).unwrap();
    tree.utimes(&USER, &root, b"/src/file", true, SetTime::Keep, SetTime::At(1_500_000_000)).unwrap();
    tree.unlink(&USER, &root, b"/src/sub/inner").unwrap();
    tree.rmdir(&USER, &root, b"/src/sub").unwrap();

    let at = |path: &str| dir.path().join(path);
    assert_eq!(fs::read(at("file")).unwrap(), b"changed mo");
    assert_eq!(fs::read(at("d/moved")).unwrap(), b"made");
    assert_eq!(fs::read(at("d/hard")).unwrap(), b"changed mo");
    assert_eq!(fs::read_link(at("d/soft")).unwrap().to_str(), Some("../file"));
    assert_eq!(fs::metadata(at("file")).unwrap().permissions().mode() & 0o777, 0o640);
    let mtime = fs::metadata(at("file")).unwrap().modified().unwrap();
    assert_eq!(mtime.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos(), 1_500_000_000);
    assert!(!at("sub").exists());
    assert_eq!(tree.usage(), Usage::default(), "host files are not charged");
}

#[test]
fn a_sandbox_leaves_no_traps_on_the_host() {
    let dir = host();
    let mut tree = mounted(&dir, HostAccess::ReadWrite);
    let root = tree.root();
    for target in ["/etc/passwd", "../x", "sub/../../x", "./.."] {
        assert_eq!(tree.symlink(&USER, target.as_bytes(), &root, b"/src/l"), Err(Errno::EPERM), "{target}");
    }
    tree.symlink(&USER, b"../file", &root, b"/src/sub/ok").unwrap();
    assert_eq!(tree.rename(&USER, &root, b"/src/sub/ok", &root, b"/src/bad"), Err(Errno::EPERM));
    assert_eq!(tree.link(&USER, &root, b"/src/sub/ok", false, &root, b"/src/bad"), Err(Errno::EPERM));
    tree.mkdir(&USER, &root, b"/src/sub/deep", 0o755).unwrap();
    tree.symlink(&USER, b"../../file", &root, b"/src/sub/deep/ok").unwrap();
    assert_eq!(tree.rename(&USER, &root, b"/src/sub/deep", &root, b"/src/up"), Err(Errno::EPERM));
    assert_eq!(tree.chmod(&USER, &root, b"/src/file", true, 0o4755), Err(Errno::EPERM));
    assert_eq!(tree.mkfifo(&USER, &root, b"/src/pipe", 0o666), Err(Errno::EPERM));
}

#[test]
fn pipes_and_sockets_of_the_host_are_not_opened() {
    let dir = host();
    let pipe = std::ffi::CString::new(dir.path().join("pipe").to_str().unwrap()).unwrap();
    // SAFETY: the path is a valid C string.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o666) }, 0);
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    for access in [HostAccess::ReadOnly, HostAccess::ReadWrite] {
        let mut tree = mounted(&dir, access);
        for name in ["/src/pipe", "/src/socket"] {
            assert_eq!(try_read(&mut tree, name), Err(Errno::ENXIO), "{name}");
        }
        assert_eq!(ls(&mut tree, "/src"), ["file", "pipe", "socket", "sub"]);
    }
}

#[test]
fn what_touches_the_host_is_known_beforehand() {
    let dir = host();
    let mut tree = mounted(&dir, HostAccess::ReadOnly);
    let root = tree.root();
    tree.mkdir(&USER, &root, b"/d", 0o755).unwrap();
    tree.symlink(&USER, b"/src/sub", &root, b"/d/into").unwrap();
    for path in ["/src", "/src/file", "/src/none", "/d/into", "/d/into/x", "/d/../src/file"] {
        assert!(tree.touches_host(&root, path.as_bytes()), "{path}");
    }
    for path in ["/", "/d", "/d/none", "/none", "/src/..", "d"] {
        assert!(path == "/src/.." || !tree.touches_host(&root, path.as_bytes()), "{path}");
    }
    let cwd = tree.lookup(&USER, &root, b"/src/sub", true).unwrap();
    assert!(tree.touches_host(&cwd, b"inner"));
    assert!(!tree.touches_host(&cwd, b"/d"));
}

#[test]
fn an_overlay_may_ask_the_host_about_any_name_in_it() {
    let dir = host();
    let mut tree = mounted(&dir, HostAccess::Overlay);
    let root = tree.root();
    write(&mut tree, "/src/mine", b"in memory, but what is below it?");
    tree.mkdir(&USER, &root, b"/src/own", 0o755).unwrap();
    write(&mut tree, "/src/own/f", b"");
    let own = tree.lookup(&USER, &root, b"/src/own", true).unwrap();
    assert!(tree.touches_host(&root, b"/src/mine"));
    assert!(!tree.touches_host(&own, b"f"), "a directory of its own has nothing below");
}

/// While the sandbox uses `/src/d/secret`, the host swaps `d` for links to another directory and back.
#[test]
fn no_race_leads_out_of_a_host_directory() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "outside").unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    fs::write(dir.path().join("real/secret"), "inside").unwrap();
    for (name, target) in
        [("link1", outside.path()), ("link2", &Path::new("..").join(outside.path().file_name().unwrap()))]
    {
        symlink(target, dir.path().join(name)).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for name in ["real", "link1", "link2"] {
                    let _ = fs::rename(dir.path().join(name), dir.path().join("d"));
                    std::thread::yield_now();
                    let _ = fs::rename(dir.path().join("d"), dir.path().join(name));
                }
            }
        });
        let (mut inside, start) = (0, std::time::Instant::now());
        let mut tree = mounted(&dir, HostAccess::ReadWrite);
        let root = tree.root();
        while start.elapsed() < std::time::Duration::from_millis(1500) {
            if let Ok(content) = try_read(&mut tree, "/src/d/secret") {
                assert_ne!(content, b"outside");
                inside += usize::from(content == b"inside");
            }
            if let Ok(file) = open(&mut tree, "/src/d/secret", OpenFlags::WRITE) {
                let _ = tree.pwrite(&file, b"inside", 0);
                tree.close(file);
            }
            let _ = try_write(&mut tree, "/src/d/new", b"x");
            let _ = tree.chmod(&USER, &root, b"/src/d/secret", true, 0o666);
            let _ = tree.rename(&USER, &root, b"/src/d/new", &root, b"/src/d/newer");
            let _ = tree.link(&USER, &root, b"/src/d/secret", true, &root, b"/src/d/hard");
            let _ = tree.unlink(&USER, &root, b"/src/d/hard");
            let _ = tree.mkdir(&USER, &root, b"/src/d/sub", 0o755);
        }
        done.store(true, Ordering::Relaxed);
        assert!(inside > 0, "the race never got going");
    });
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "outside");
    assert_eq!(fs::metadata(outside.path().join("secret")).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn given_files_are_the_users_and_charged_while_they_are_mounted() {
    let mut tree = user_tree(Quota { bytes: 20_000, inodes: 8 });
    let root = tree.root();
    let files = vec![
        (b"a.txt".to_vec(), Content::Bytes(b"alpha"[..].into())),
        (b"sub/b.txt".to_vec(), Content::Bytes(b"beta"[..].into())),
    ];
    tree.mount(b"/data", Mount::Files(files.clone())).unwrap();
    // The directory that it covers, its root, and three inside.
    assert_eq!(counts(&tree), (9, 5));
    assert_eq!(tree.usage(), tree.recount());
    assert_eq!(ls(&mut tree, "/data"), ["a.txt", "sub"]);
    assert_eq!(read(&mut tree, "/data/sub/b.txt"), b"beta");
    write(&mut tree, "/data/sub/b.txt", b"changed");
    write(&mut tree, "/data/sub/c.txt", b"new");
    assert_eq!(counts(&tree), (19, 7));
    assert_eq!(tree.rename(&USER, &root, b"/data/a.txt", &root, b"/a"), Err(Errno::EXDEV));
    assert_eq!(tree.mount(b"/data", Mount::Files(vec![])), Err(Errno::EBUSY));
    let fork = tree.clone();
    tree.unmount(b"/data").unwrap();
    assert_eq!(tree.usage(), Usage::default());
    assert_eq!(ls(&mut tree, "/data"), Vec::<String>::new());
    assert_eq!(counts(&fork), (19, 7));
    assert_eq!(tree.unmount(b"/data"), Err(Errno::EINVAL));
    // What does not fit changes nothing, not even by the directories on the way.
    let before = ls(&mut tree, "/");
    for number in 0..100 {
        let large = vec![(b"a/b/c".to_vec(), Content::Bytes(vec![0; 30_000].into()))];
        let deep = vec![(b"d/".repeat(1000), Content::Bytes(b"x"[..].into()))];
        let path = format!("/new/{number}").into_bytes();
        assert_eq!(tree.mount(&path, Mount::Files(large)), Err(Errno::ENOSPC));
        assert!(tree.mount(&path, Mount::Files(deep)).is_err());
        assert_eq!(tree.mount(&b"/x".repeat(3000), Mount::Files(vec![])), Err(Errno::ENAMETOOLONG));
    }
    assert_eq!((tree.usage(), ls(&mut tree, "/")), (Usage::default(), before));
}

#[test]
fn given_entries_keep_modes_links_and_empty_directories() {
    let mut tree = user_tree(Quota { bytes: 20_000, inodes: 12 });
    let root = tree.root();
    let content = |text: &[u8]| Content::Bytes(text.into());
    let entries = vec![
        (b"to-etc".to_vec(), NewEntry::Symlink(b"/etc".to_vec())),
        (b"run.sh".to_vec(), NewEntry::File { content: content(b"true"), mode: 0o755 }),
        (b"empty".to_vec(), NewEntry::Dir { mode: 0o700 }),
        (b"sub/a".to_vec(), NewEntry::File { content: content(b"a"), mode: 0o600 }),
        (b"sub".to_vec(), NewEntry::Dir { mode: 0o711 }),
    ];
    let mount = |entries: &Vec<_>| Mount::Entries { entries: entries.clone(), writable: false };
    tree.mount(b"/m", mount(&entries)).unwrap();
    assert_eq!(tree.usage(), tree.recount());
    let mode = |path: &[u8]| tree.stat(&USER, &root, path, false).unwrap().mode & 0o7777;
    let modes = [&b"/m/run.sh"[..], b"/m/empty", b"/m/sub", b"/m/sub/a"].map(mode);
    assert_eq!(modes, [0o755, 0o700, 0o711, 0o600]);
    assert_eq!(tree.read_link(&USER, &root, b"/m/to-etc").unwrap(), b"/etc");
    assert_eq!(tree.mkdir(&USER, &root, b"/m/empty/x", 0o777), Err(Errno::EROFS));
    tree.unmount(b"/m").unwrap();
    assert_eq!(tree.usage(), Usage::default());
    // Whatever the order, nothing is put where a link leads.
    for at in 0..2 {
        let mut through = vec![
            (b"l".to_vec(), NewEntry::Symlink(b"/etc".to_vec())),
            (b"l/planted".to_vec(), NewEntry::File { content: content(b"x"), mode: 0o644 }),
        ];
        through.rotate_left(at);
        assert_eq!(tree.mount(b"/m", mount(&through)), Err(Errno::EISDIR));
        assert!(tree.stat(&USER, &root, b"/etc/planted", false).is_err());
    }
    for (target, errno) in
        [(&b""[..], Errno::ENOENT), (b"a\0b", Errno::EINVAL), (&[b'x'; 5000], Errno::ENAMETOOLONG)]
    {
        let entries = vec![(b"l".to_vec(), NewEntry::Symlink(target.to_vec()))];
        assert_eq!(tree.mount(b"/m", mount(&entries)), Err(errno));
    }
    assert_eq!(tree.usage(), Usage::default());
}

struct Proc;

impl Virtual for Proc {
    fn list(&self, _: &Caller, path: &[u8]) -> Result<Vec<(Vec<u8>, FileKind)>> {
        match path {
            b"" => Ok(vec![(b"self".to_vec(), FileKind::Symlink), (b"7".to_vec(), FileKind::Dir)]),
            b"7" => Ok(vec![(b"name".to_vec(), FileKind::File), (b"fd".to_vec(), FileKind::Symlink)]),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn read(&self, who: &Caller, _: &[u8]) -> Result<Vec<u8>> {
        Ok(format!("asked by {}", who.pid).into_bytes())
    }

    fn read_link(&self, who: &Caller, path: &[u8]) -> Result<Vec<u8>> {
        Ok(if path == b"self" { who.pid.to_string().into_bytes() } else { b"pipe:[1]".to_vec() })
    }

    fn stat(&self, _: &Caller, path: &[u8]) -> Result<VirtualStat> {
        let (kind, mode) = match path {
            b"" | b"7" => (FileKind::Dir, 0o555),
            b"self" | b"7/fd" => (FileKind::Symlink, 0o777),
            b"7/name" => (FileKind::File, 0o444),
            _ => return Err(Errno::ENOENT),
        };
        Ok(VirtualStat { kind, mode, uid: 0, gid: 0, size: 0, ino: 0, magic: path == b"7/fd" })
    }
}

#[test]
fn computed_files_know_who_asks() {
    let mut tree = user_tree(Quota::NONE);
    let root = tree.root();
    tree.mount(b"/proc", Mount::Virtual(Arc::new(Proc))).unwrap();
    assert!(!tree.has_host_mounts());
    let who = Caller { pid: 7, ..USER };
    let mut file = tree.open(&who, &root, b"/proc/self/name", OpenFlags::READ, 0).unwrap();
    let mut buf = [0; 64];
    assert_eq!(tree.read(&mut file, &mut buf), Ok(10));
    assert_eq!(&buf[..10], b"asked by 7");
    assert_eq!(tree.read(&mut file, &mut buf), Ok(0));
    tree.close(file);
    assert_eq!(ls(&mut tree, "/proc"), ["7", "self"]);
    assert_eq!(ls(&mut tree, "/proc/7"), ["fd", "name"]);
    assert_eq!(tree.open(&who, &root, b"/proc/7/name", OpenFlags::WRITE, 0).unwrap_err(), Errno::EACCES);
    assert_eq!(tree.open(&who, &root, b"/proc/none", OpenFlags::READ, 0).unwrap_err(), Errno::ENOENT);
    // A link to something without a path gives itself away.
    let magic = tree.open(&who, &root, b"/proc/self/fd", OpenFlags::READ, 0).unwrap();
    assert_eq!((magic.kind(), magic.place().mount_path()), (FileKind::Symlink, Some(&b"7/fd"[..])));
    assert_eq!(tree.read_link(&who, &root, b"/proc/self/fd").unwrap(), b"pipe:[1]");
}
