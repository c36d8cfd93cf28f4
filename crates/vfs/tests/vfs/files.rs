//! The in-memory tree: what Unix promises about files.

use crate::support::*;
use wardian_vfs::{Access, Errno, FileKind, OpenFlags, Quota, Seek, SetTime};

#[test]
fn written_bytes_come_back() {
    let mut tree = user_tree(Quota::NONE);
    let big: Vec<u8> = (0..300_000u32).map(|i| (i * 7 % 251) as u8).collect();
    for size in [0, 1, 65_535, 65_536, 65_537, 131_072, 300_000] {
        write(&mut tree, "/f", &big[..size]);
        assert!(read(&mut tree, "/f") == big[..size], "{size}");
        assert_eq!(tree.stat(&USER, &tree.root(), b"/f", true).unwrap().size, size as u64);
    }
}

#[test]
fn holes_read_as_zeros_and_cost_nothing() {
    let mut tree = user_tree(Quota::NONE);
    let mut file = open(&mut tree, "/f", OpenFlags::CREATE | OpenFlags::WRITE | OpenFlags::READ).unwrap();
    tree.pwrite(&file, b"end", 1 << 40).unwrap();
    assert_eq!(tree.stat_handle(&USER, &file).unwrap().size, (1 << 40) + 3);
    assert_eq!(tree.usage().bytes, 3);
    let mut buf = [1; 8];
    assert_eq!(tree.pread(&file, &mut buf, (1 << 40) - 5), Ok(8));
    assert_eq!(&buf, b"\0\0\0\0\0end");
    assert_eq!(tree.seek(&mut file, Seek::Data(0)), Ok(1 << 40));
    assert_eq!(tree.seek(&mut file, Seek::Hole(1 << 40)), Ok((1 << 40) + 3));
    assert_eq!(tree.seek(&mut file, Seek::Data((1 << 40) + 3)), Err(Errno::ENXIO));
    assert_eq!(tree.seek(&mut file, Seek::Current(-1)), Ok((1 << 40) + 2));
    assert_eq!(tree.seek(&mut file, Seek::End(-(1 << 41))), Err(Errno::EINVAL));
    tree.truncate(&file, 10).unwrap();
    tree.truncate(&file, 20).unwrap();
    assert_eq!(tree.pread(&file, &mut buf, 9), Ok(8));
    assert_eq!(buf, [0; 8]);
    tree.close(file);
}

#[test]
fn an_unlinked_file_lives_until_it_is_closed() {
    let mut tree = user_tree(Quota::NONE);
    write(&mut tree, "/f", b"still here");
    let mut file = open(&mut tree, "/f", OpenFlags::READ).unwrap();
    let root = tree.root();
    tree.unlink(&USER, &root, b"/f").unwrap();
    assert_eq!(tree.stat_handle(&USER, &file).unwrap().nlink, 0);
    let mut fork = tree.clone();
    let mut buf = [0; 20];
    assert_eq!(tree.read(&mut file, &mut buf), Ok(10));
    assert_eq!(tree.usage().bytes, 10);
    tree.close(file.clone());
    assert_eq!(tree.usage().bytes, 0);
    assert_eq!(fork.usage().bytes, 10, "a clone closes its own");
    fork.close_all();
    assert_eq!(fork.usage().bytes, 0);
    assert_eq!(fork.pread(&file, &mut buf, 0), Err(Errno::ENOENT));
}

#[test]
fn cursors_survive_changes() {
    let mut tree = user_tree(Quota::NONE);
    let root = tree.root();
    for i in 0..500 {
        write(&mut tree, &format!("/stays{i}"), b"");
        write(&mut tree, &format!("/goes{i}"), b"");
    }
    let dir = open(&mut tree, "/", OpenFlags::READ).unwrap();
    let (mut cursor, mut seen, mut round) = (0, Vec::new(), 0);
    loop {
        let entries = tree.read_dir(&USER, &dir, cursor, 10).unwrap();
        let Some(last) = entries.last() else { break };
        cursor = last.next;
        // The entry the cursor stands on goes as well.
        for name in entries.iter().map(|entry| entry.name.clone()) {
            if name.starts_with(b"goes") {
                tree.unlink(&USER, &root, &name).unwrap();
            }
            seen.push(name);
        }
        write(&mut tree, &format!("/comes{round}"), b"");
        round += 1;
    }
    for i in 0..500 {
        let name = format!("stays{i}").into_bytes();
        assert_eq!(seen.iter().filter(|seen| **seen == name).count(), 1, "stays{i}");
    }
    let unique: std::collections::HashSet<_> = seen.iter().collect();
    assert_eq!(unique.len(), seen.len(), "nothing is listed twice");
    tree.close(dir);
}

#[test]
fn a_working_directory_follows_renames() {
    let mut tree = user_tree(Quota::NONE);
    let root = tree.root();
    tree.mkdir(&USER, &root, b"/a", 0o777).unwrap();
    tree.mkdir(&USER, &root, b"/a/b", 0o777).unwrap();
    tree.mkdir(&USER, &root, b"/c", 0o777).unwrap();
    let cwd = tree.lookup(&USER, &root, b"/a/b", true).unwrap();
    assert_eq!(tree.path_of(&cwd).unwrap(), b"/a/b");
    tree.rename(&USER, &root, b"/a", &root, b"/c/moved").unwrap();
    assert_eq!(tree.path_of(&cwd).unwrap(), b"/c/moved/b");
    write_at(&mut tree, &cwd, b"here");
    assert_eq!(read(&mut tree, "/c/moved/b/here"), b"x");
    tree.unlink(&USER, &cwd, b"here").unwrap();
    tree.rmdir(&USER, &root, b"/c/moved/b").unwrap();
    assert_eq!(tree.path_of(&cwd), Err(Errno::ENOENT));
    assert_eq!(tree.path_of(&tree.root()).unwrap(), b"/");
}

fn write_at(tree: &mut wardian_vfs::Tree, at: &wardian_vfs::Place, name: &[u8]) {
    let mut file = tree.open(&USER, at, name, OpenFlags::CREATE | OpenFlags::WRITE, 0o644).unwrap();
    tree.write(&mut file, b"x").unwrap();
    tree.close(file);
}

#[test]
fn links_loop_only_so_often() {
    let mut tree = user_tree(Quota::NONE);
    let root = tree.root();
    write(&mut tree, "/l0", b"end");
    for i in 1..=41 {
        tree.symlink(&USER, format!("l{}", i - 1).as_bytes(), &root, format!("/l{i}").as_bytes()).unwrap();
    }
    assert_eq!(read(&mut tree, "/l40"), b"end");
    assert_eq!(try_read(&mut tree, "/l41"), Err(Errno::ELOOP));
    tree.symlink(&USER, b"self", &root, b"/self").unwrap();
    assert_eq!(try_read(&mut tree, "/self"), Err(Errno::ELOOP));
    assert_eq!(try_write(&mut tree, "/self", b""), Err(Errno::ELOOP));
    assert_eq!(try_read(&mut tree, "/self/x"), Err(Errno::ELOOP));
}

#[test]
fn permission_bits_bind_the_user_and_not_root() {
    let mut tree = user_tree(Quota::NONE);
    let root = tree.root();
    write(&mut tree, "/f", b"x");
    tree.chmod(&USER, &root, b"/f", true, 0o000).unwrap();
    assert_eq!(try_read(&mut tree, "/f"), Err(Errno::EACCES));
    assert_eq!(tree.access(&USER, &root, b"/f", Access::R), Err(Errno::EACCES));
    assert_eq!(tree.access(&USER, &root, b"/f", Access::empty()), Ok(()));
    assert_eq!(tree.access(&ROOT, &root, b"/f", Access::R | Access::W), Ok(()));
    assert_eq!(tree.access(&ROOT, &root, b"/f", Access::X), Err(Errno::EACCES));
    tree.chown(&ROOT, &root, b"/f", true, Some(0), Some(0)).unwrap();
    assert_eq!(tree.chmod(&USER, &root, b"/f", true, 0o777), Err(Errno::EPERM));
    assert_eq!(tree.chown(&USER, &root, b"/f", true, Some(1000), None), Err(Errno::EPERM));
    assert_eq!(tree.utimes(&USER, &root, b"/f", true, SetTime::At(0), SetTime::At(0)), Err(Errno::EPERM));
    assert_eq!(tree.utimes(&USER, &root, b"/f", true, SetTime::Now, SetTime::Now), Err(Errno::EACCES));
    assert_eq!(tree.link(&USER, &root, b"/f", true, &root, b"/g"), Err(Errno::EPERM));
    // A sticky directory such as /tmp protects foreign files.
    tree.install_dir(b"/tmp", 0o1777).unwrap();
    tree.install(b"/tmp/theirs", 0o666, wardian_vfs::Content::Bytes(b"x"[..].into())).unwrap();
    write(&mut tree, "/tmp/mine", b"");
    assert_eq!(tree.unlink(&USER, &root, b"/tmp/theirs"), Err(Errno::EPERM));
    assert_eq!(tree.rename(&USER, &root, b"/tmp/mine", &root, b"/tmp/theirs"), Err(Errno::EPERM));
    tree.unlink(&USER, &root, b"/tmp/mine").unwrap();
}

#[test]
fn names_and_paths_have_linuxs_limits() {
    let mut tree = user_tree(Quota::NONE);
    let root = tree.root();
    write(&mut tree, &format!("/{}", "n".repeat(255)), b"");
    assert_eq!(try_write(&mut tree, &format!("/{}", "n".repeat(256)), b""), Err(Errno::ENAMETOOLONG));
    let dots = "./".repeat(2046) + "fi";
    assert_eq!(dots.len(), 4094);
    write(&mut tree, &dots, b"");
    write(&mut tree, &(dots.clone() + "l"), b"");
    assert_eq!(try_write(&mut tree, &(dots + "le"), b""), Err(Errno::ENAMETOOLONG));
    let odd: Vec<u8> = (1..=255).filter(|&byte| byte != b'/').collect();
    tree.mkdir(&USER, &root, &odd, 0o755).unwrap();
    assert_eq!(tree.stat(&USER, &root, &odd, true).unwrap().kind, FileKind::Dir);
    assert_eq!(tree.mkdir(&USER, &root, b"nul\0", 0o755), Err(Errno::EINVAL));
}

#[test]
fn every_change_of_content_has_a_version_of_its_own() {
    let mut tree = user_tree(Quota::NONE);
    let version = |tree: &wardian_vfs::Tree| tree.stat(&USER, &tree.root(), b"/f", true).unwrap().version;
    write(&mut tree, "/f", b"one");
    let first = version(&tree);
    let mut fork = tree.clone();
    assert_eq!(version(&fork), first);
    write(&mut fork, "/f", b"two");
    write(&mut tree, "/f", b"two");
    assert!(version(&fork) != first && version(&tree) != first && version(&fork) != version(&tree));
    let before = version(&tree);
    let root = tree.root();
    tree.chmod(&USER, &root, b"/f", true, 0o600).unwrap();
    assert_eq!(version(&tree), before);
}
