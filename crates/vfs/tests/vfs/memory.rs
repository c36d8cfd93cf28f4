//! What files take of the host's memory, held against what they are charged.

use crate::support::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use wardian_vfs::*;

/// Counts what each thread has allocated and not freed, as malloc does: with its headers and rounding.
struct Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
}

fn count(pointer: *mut u8, sign: i64) {
    if !pointer.is_null() {
        // SAFETY: it is a pointer that malloc has returned and free has not seen yet.
        let size = unsafe { libc::malloc_usable_size(pointer.cast()) } as i64 + 8;
        // A thread that is ending has no counter any more.
        let _ = HELD.try_with(|held| held.set(held.get() + sign * size));
    }
}

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promised.
        let pointer = unsafe { System.alloc(layout) };
        count(pointer, 1);
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(pointer, -1);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(pointer, -1);
        // SAFETY: as the caller promised.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        count(if moved.is_null() { pointer } else { moved }, 1);
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn held() -> i64 {
    HELD.with(Cell::get)
}

/// What a tree may take for itself, whatever is in it.
const TREE: i64 = 64 << 10;

fn create(tree: &mut Tree, path: &str, offset: u64, data: &[u8]) {
    let file = open(tree, path, OpenFlags::CREATE | OpenFlags::WRITE).unwrap();
    if !data.is_empty() {
        assert_eq!(tree.pwrite(&file, data, offset), Ok(data.len()));
    }
    tree.close(file);
}

fn mkdir(tree: &mut Tree, path: &str) {
    tree.mkdir(&USER, &tree.root(), path.as_bytes(), 0o755).unwrap();
}

/// A way to make many small things.
type Maker = (&'static str, fn(&mut Tree));

const MANY: usize = 20_000;

const MAKERS: [Maker; 14] = [
    ("empty files", |tree| (0..MANY).for_each(|i| create(tree, &format!("/{i}"), 0, b""))),
    ("files of a byte", |tree| (0..MANY).for_each(|i| create(tree, &format!("/{i}"), 0, b"x"))),
    ("long names", |tree| (0..MANY).for_each(|i| create(tree, &format!("/{i:0>255}"), 0, b""))),
    ("names of 23 bytes", |tree| (0..MANY).for_each(|i| create(tree, &format!("/{i:0>23}"), 0, b""))),
    ("a byte behind a hole", |tree| (0..MANY).for_each(|i| create(tree, &format!("/{i}"), 65_536, b"x"))),
    ("a byte behind a large hole", |tree| {
        (0..MANY).for_each(|i| create(tree, &format!("/{i}"), 1 << 40, b"x"));
    }),
    ("two pieces", |tree| {
        for i in 0..2000 {
            create(tree, &format!("/{i}"), 0, &[1; 65_536]);
            create(tree, &format!("/{i}"), 65_536, b"x");
        }
    }),
    ("grown byte by byte", |tree| {
        for i in 0..500 {
            let mut file = open(tree, &format!("/{i}"), OpenFlags::CREATE | OpenFlags::WRITE).unwrap();
            (0..33_000 / 50).for_each(|_| assert_eq!(tree.write(&mut file, &[1; 50]), Ok(50)));
            tree.close(file);
        }
    }),
    ("empty directories", |tree| (0..MANY).for_each(|i| mkdir(tree, &format!("/{i}")))),
    ("directories of one file", |tree| {
        for i in 0..MANY {
            mkdir(tree, &format!("/{i}"));
            create(tree, &format!("/{i}/f"), 0, b"");
        }
    }),
    ("links", |tree| {
        for i in 0..MANY {
            tree.symlink(&USER, b"x", &tree.root(), format!("/{i}").as_bytes()).unwrap();
        }
    }),
    ("names of one file", |tree| {
        create(tree, "/f", 0, b"");
        for i in 0..MANY {
            let root = tree.root();
            tree.link(&USER, &root, b"/f", true, &root, format!("/{i:0>200}").as_bytes()).unwrap();
        }
    }),
    ("what is left of many", |tree| {
        (0..MANY * 4).for_each(|i| create(tree, &format!("/{i}"), 0, b""));
        for i in (0..MANY * 4).filter(|i| i % 16 > 0) {
            tree.unlink(&USER, &tree.root(), format!("/{i}").as_bytes()).unwrap();
        }
    }),
    ("removed but open", |tree| {
        for i in 0..MANY {
            // The handles themselves are counted where descriptors are.
            let file = open(tree, &format!("/{i}"), OpenFlags::CREATE | OpenFlags::WRITE).unwrap();
            tree.unlink(&USER, &tree.root(), format!("/{i}").as_bytes()).unwrap();
            std::mem::forget(file);
        }
    }),
];

#[test]
fn what_is_charged_covers_the_memory_it_takes() {
    for (what, make) in MAKERS {
        let before = held();
        let mut tree = user_tree(Quota::NONE);
        make(&mut tree);
        let (taken, charged) = (held() - before, tree.usage().total() as i64);
        println!("{what}: {taken} bytes taken, {charged} charged");
        assert!(taken <= charged + charged / 4 + TREE, "{what}: {taken} bytes are charged as {charged}");
        tree.fsck().unwrap();
        drop(tree);
        assert!(held() - before < 4096, "{what}: {} bytes are left", held() - before);
    }
}

#[test]
fn what_an_overlay_remembers_is_charged() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..3000 {
        fs::create_dir(dir.path().join(format!("d{i}"))).unwrap();
        fs::write(dir.path().join(format!("d{i}/{i:0>100}")), "x").unwrap();
    }
    let before = held();
    let mut tree = user_tree(Quota::NONE);
    tree.mount(b"/w", host_mount(dir.path(), HostAccess::Overlay)).unwrap();
    for i in 0..3000 {
        read(&mut tree, &format!("/w/d{i}/{i:0>100}"));
    }
    let (taken, charged) = (held() - before, tree.usage().total() as i64);
    println!("read through an overlay: {taken} bytes taken, {charged} charged");
    assert!(taken <= charged + charged / 4 + TREE, "{taken} bytes are charged as {charged}");
    assert_eq!(counts(&tree), (0, 0), "as files they are not counted");
    for i in 0..3000 {
        tree.unlink(&USER, &tree.root(), format!("/w/d{i}/{i:0>100}").as_bytes()).unwrap();
    }
    let (taken, charged) = (held() - before, tree.usage().total() as i64);
    assert!(taken <= charged + charged / 4 + TREE, "removed: {taken} bytes are charged as {charged}");
    tree.fsck().unwrap();
    tree.unmount(b"/w").unwrap();
    assert_eq!(tree.usage(), Usage::default());
}

#[test]
fn a_full_disk_in_an_overlay_refuses_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..50 {
        fs::write(dir.path().join(format!("f{i}")), "x").unwrap();
    }
    let mut tree = user_tree(Quota { bytes: 20_000, inodes: 100 });
    tree.mount(b"/w", host_mount(dir.path(), HostAccess::Overlay)).unwrap();
    let root = tree.root();
    let mut renamed = 0;
    for i in 0..50 {
        let (from, to) = (format!("/w/f{i}"), format!("/w/{i:0>200}"));
        match tree.rename(&USER, &root, from.as_bytes(), &root, to.as_bytes()) {
            Ok(()) => renamed += 1,
            Err(errno) => {
                assert_eq!(errno, Errno::ENOSPC);
                assert!(tree.stat(&USER, &root, from.as_bytes(), false).is_ok(), "it has its old name");
            }
        }
        assert!(tree.usage().total() <= 20_000);
        tree.fsck().unwrap();
    }
    assert!((1..50).contains(&renamed), "{renamed}");
    assert_eq!(ls(&mut tree, "/w").len(), 50);
}

#[test]
fn a_directory_read_through_a_thousand_handles_is_kept_once() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..70_000 {
        fs::write(dir.path().join(format!("f{i}")), "").unwrap();
    }
    let mut tree = user_tree(Quota::NONE);
    tree.mount(b"/w", host_mount(dir.path(), HostAccess::ReadWrite)).unwrap();
    let before = held();
    let mut handles = Vec::new();
    for _ in 0..20 {
        let handle = open(&mut tree, "/w", OpenFlags::READ | OpenFlags::DIRECTORY).unwrap();
        assert_eq!(tree.read_dir(&USER, &handle, 0, 10).unwrap().len(), 10);
        handles.push(handle);
    }
    // One listing of 70,000 entries, as long as it is the last.
    assert!(held() - before < 70_000 * 200, "{} bytes for 20 handles", held() - before);
    // What was given up is read again, and goes on where it was.
    for handle in handles {
        let first = tree.read_dir(&USER, &handle, 0, 100).unwrap();
        let rest = tree.read_dir(&USER, &handle, first[99].next, usize::MAX).unwrap();
        assert_eq!(first.len() + rest.len(), 70_002);
        tree.close(handle);
    }
}

#[test]
fn a_million_directories_deep() {
    let mut tree = user_tree(Quota::NONE);
    let mut place = tree.root();
    for _ in 0..1_000_000 {
        tree.mkdir(&USER, &place, b"d", 0o755).unwrap();
        place = tree.lookup(&USER, &place, b"d", false).unwrap();
    }
    let deep = tree.clone();
    let files = vec![(b"f".to_vec(), Content::Bytes(b"x"[..].into()))];
    tree.mount(b"/m", Mount::Files(files)).unwrap();
    // Neither a stack nor a path is long enough for this.
    assert!(tree.path_of(&place).is_ok());
    assert!(tree.rename(&USER, &tree.root(), b"/d", &place, b"e").is_err());
    drop(tree);
    drop(deep);
}
