//! Quotas are exact, whatever happens.

use crate::support::*;
use wardian_vfs::{Errno, OpenFlags, Quota, Tree};

/// Room for three files or additional names, and 100 bytes in two of the files.
fn small() -> Tree {
    let mut model = user_tree(Quota::NONE);
    for name in ["/f", "/g"] {
        write(&mut model, name, b"");
    }
    user_tree(Quota { bytes: 100 + model.usage().metadata, inodes: 3 })
}

/// Room for a few files, whatever they hold.
fn roomy() -> Tree {
    user_tree(Quota { bytes: 1 << 20, inodes: 3 })
}

#[test]
fn bytes_are_counted_to_the_last_one() {
    let mut tree = small();
    write(&mut tree, "/g", b"");
    write(&mut tree, "/f", &[1; 100]);
    assert_eq!(counts(&tree), (100, 2));
    assert_eq!(try_write(&mut tree, "/g", b"x"), Err(Errno::ENOSPC));
    assert_eq!(try_write(&mut tree, "/h", b""), Err(Errno::ENOSPC), "a name takes space, too");
    write(&mut tree, "/f", &[2; 60]);
    assert_eq!(counts(&tree), (60, 2));
    assert_eq!(try_write(&mut tree, "/g", &[3; 50]), Ok(40), "what fits is written");
    assert_eq!(read(&mut tree, "/g"), [3; 40]);
    let file = open(&mut tree, "/f", OpenFlags::WRITE).unwrap();
    assert_eq!(tree.pwrite(&file, &[4; 60], 0), Ok(60), "overwriting needs no room");
    assert_eq!(tree.truncate(&file, 61), Err(Errno::ENOSPC));
    tree.truncate(&file, 10).unwrap();
    tree.close(file);
    assert_eq!(counts(&tree), (50, 2));
    assert_eq!(tree.usage(), tree.recount());
}

#[test]
fn inodes_are_counted_once_however_many_names() {
    let mut tree = roomy();
    let root = tree.root();
    write(&mut tree, "/a", b"12345");
    tree.mkdir(&USER, &root, b"/d", 0o755).unwrap();
    tree.link(&USER, &root, b"/a", true, &root, b"/d/b").unwrap();
    assert_eq!(counts(&tree), (5, 2));
    tree.symlink(&USER, b"123", &root, b"/l").unwrap();
    assert_eq!(counts(&tree), (8, 3));
    assert_eq!(tree.mkdir(&USER, &root, b"/e", 0o755), Err(Errno::ENOSPC));
    assert_eq!(try_write(&mut tree, "/e", b""), Err(Errno::ENOSPC));
    tree.unlink(&USER, &root, b"/a").unwrap();
    assert_eq!(counts(&tree), (8, 3), "it has another name");
    tree.rename(&USER, &root, b"/l", &root, b"/d/b").unwrap();
    assert_eq!(counts(&tree), (3, 2), "the last name went with the rename");
    assert_eq!(tree.usage(), tree.recount());
}

#[test]
fn hard_links_are_not_free_for_ever() {
    let mut tree = roomy();
    let root = tree.root();
    write(&mut tree, "/a", b"");
    for i in 0..3 {
        tree.link(&USER, &root, b"/a", true, &root, format!("/l{i}").as_bytes()).unwrap();
    }
    assert_eq!(tree.link(&USER, &root, b"/a", true, &root, b"/l3"), Err(Errno::ENOSPC));
    tree.unlink(&USER, &root, b"/l0").unwrap();
    tree.link(&USER, &root, b"/a", true, &root, b"/l3").unwrap();
}

#[test]
fn writing_beyond_the_end_counts_the_gap_it_fills() {
    let mut tree = user_tree(Quota::NONE);
    let file = open(&mut tree, "/f", OpenFlags::CREATE | OpenFlags::WRITE).unwrap();
    tree.pwrite(&file, b"x", 0).unwrap();
    tree.pwrite(&file, b"x", 131_072 + 9).unwrap();
    tree.set_quota(Quota { bytes: 200_000 + tree.usage().metadata, inodes: 10 });
    // The first block up to its end, nothing for the second, ten bytes of the third.
    assert_eq!(tree.usage().bytes, 65_536 + 10);
    tree.allocate(&file, 0, 131_082).unwrap();
    assert_eq!(tree.usage().bytes, 131_082);
    assert_eq!(tree.allocate(&file, 0, 200_001), Err(Errno::ENOSPC));
    assert_eq!(tree.pwrite(&file, &[1; 100_000], 150_000), Ok(50_000));
    assert_eq!(tree.usage(), tree.recount());
    assert_eq!(tree.usage().bytes, 200_000);
    tree.close(file);
}

#[test]
fn clones_count_for_themselves() {
    let mut tree = small();
    write(&mut tree, "/f", &[1; 90]);
    let mut fork = tree.clone();
    write(&mut fork, "/f", &[1; 10]);
    assert_eq!((tree.usage().bytes, fork.usage().bytes), (90, 10));
    tree = fork.clone();
    assert_eq!(tree.usage().bytes, 10);
}
