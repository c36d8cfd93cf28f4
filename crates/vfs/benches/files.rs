//! The tree against tmpfs, in the same run: `cargo bench -p wardian-vfs`.
//!
//! Prints one row per measurement with its goal. tmpfs is reached by system calls, as a program would.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wardian_vfs::{Caller, Handle, OpenFlags, Quota, Tree};

/// Counts the memory in use, for the cost of a file.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size() + 16, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() + 16, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        IN_USE.fetch_add(size, Ordering::Relaxed);
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FILES: usize = 100_000;
const BIG: usize = 100 << 20;
const STEP: usize = 64 << 10;
const WHO: Caller = Caller::ROOT;

/// A tmpfs directory that goes away again.
struct Shm(PathBuf);

impl Shm {
    fn new() -> Shm {
        let path = PathBuf::from(format!("/dev/shm/wardian-vfs-bench-{}", std::process::id()));
        fs::create_dir(&path).expect("/dev/shm is writable");
        Shm(path)
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn main() {
    let shm = Shm::new();
    println!("{:<42} {:>12} {:>12} {:>8}  goal", "", "tree", "tmpfs", "ratio");
    clones();
    sequential(&shm);
    random_writes(&shm);
    creates(&shm);
    memory();
}

fn row(what: &str, ours: Duration, theirs: Option<Duration>, goal: &str) {
    let shown = |time: Duration| match time.as_nanos() {
        ns if ns < 10_000 => format!("{ns} ns"),
        ns if ns < 10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        ns => format!("{:.1} ms", ns as f64 / 1e6),
    };
    let (tmpfs, ratio) = match theirs {
        Some(theirs) => (shown(theirs), format!("{:.2}", ours.as_secs_f64() / theirs.as_secs_f64())),
        None => (String::new(), String::new()),
    };
    println!("{what:<42} {:>12} {tmpfs:>12} {ratio:>8}  {goal}", shown(ours));
}

/// The best of a few: what the work costs, not what else the machine was doing.
fn best<T>(times: usize, mut work: impl FnMut() -> (Duration, T)) -> Duration {
    (0..times).map(|_| work().0).min().expect("at least one")
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

fn create(tree: &mut Tree, path: &str) -> Handle {
    let flags = OpenFlags::CREATE | OpenFlags::READ | OpenFlags::WRITE;
    tree.open(&WHO, &tree.root(), path.as_bytes(), flags, 0o644).expect("a file can be made")
}

fn tree_of(files: usize) -> Tree {
    let mut tree = Tree::new(Quota::NONE);
    for i in 0..files {
        if i % 1000 == 0 {
            tree.mkdir(&WHO, &tree.root(), format!("/d{}", i / 1000).as_bytes(), 0o755).expect("mkdir");
        }
        let mut file = create(&mut tree, &format!("/d{}/f{i}", i / 1000));
        tree.write(&mut file, b"some bytes").expect("write");
        tree.close(file);
    }
    tree
}

fn clones() {
    for files in [100, FILES] {
        let tree = tree_of(files);
        let time = best(5, || timed(|| (0..1000).for_each(|_| drop(black_box(tree.clone())))));
        row(&format!("clone and drop, {files} files"), time / 1000, None, "< 10 us, whatever the size");
    }
    let tree = tree_of(FILES);
    let write = |tree: &mut Tree, path: &str| {
        let file = tree.open(&WHO, &tree.root(), path.as_bytes(), OpenFlags::WRITE, 0).expect("open");
        let result = timed(|| tree.pwrite(&file, b"changed", 0).expect("write"));
        tree.close(file);
        result
    };
    let small = best(200, || write(&mut tree.clone(), "/d50/f50500"));
    row("first write after a clone, small file", small, None, "");
    let mut tree = tree;
    let mut file = create(&mut tree, "/big");
    tree.write(&mut file, &vec![1; 10 << 20]).expect("write");
    tree.close(file);
    let large = best(200, || write(&mut tree.clone(), "/big"));
    row("first write after a clone, 10 MB file", large, None, "");
}

fn sequential(shm: &Shm) {
    let data: Vec<u8> = (0..STEP).map(|i| i as u8).collect();
    let mut buf = vec![0; STEP];
    let mut tree = Tree::new(Quota { bytes: 1 << 30, inodes: 100 });
    let mut ours = (Duration::MAX, Duration::MAX);
    let mut theirs = ours;
    let path = shm.0.join("big");
    for _ in 0..7 {
        let mut file = create(&mut tree, "/big");
        let write = timed(|| {
            (0..BIG / STEP).for_each(|_| {
                tree.write(&mut file, &data).expect("write");
            })
        });
        tree.seek(&mut file, wardian_vfs::Seek::Start(0)).expect("seek");
        let read = timed(|| while tree.read(&mut file, &mut buf).expect("read") > 0 {});
        ours = (ours.0.min(write.0), ours.1.min(read.0));
        tree.close(file);
        tree.unlink(&WHO, &tree.root(), b"/big").expect("unlink");

        let mut file = File::create(&path).expect("create");
        let write = timed(|| (0..BIG / STEP).for_each(|_| file.write_all(&data).expect("write")));
        let mut file = File::open(&path).expect("open");
        let read = timed(|| while file.read(&mut buf).expect("read") > 0 {});
        theirs = (theirs.0.min(write.0), theirs.1.min(read.0));
        fs::remove_file(&path).expect("remove");
    }
    row("write 100 MB, 64 KiB at a time", ours.0, Some(theirs.0), "< 1.5");
    row("read 100 MB, 64 KiB at a time", ours.1, Some(theirs.1), "< 1.5");
}

fn random_writes(shm: &Shm) {
    const WRITES: u64 = 25_600;
    let page = vec![7; 4096];
    let offset = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % (BIG as u64 / 4096) * 4096;
    let mut tree = Tree::new(Quota { bytes: 1 << 30, inodes: 100 });
    let mut file = create(&mut tree, "/big");
    tree.write(&mut file, &vec![1; BIG]).expect("write");
    let path = shm.0.join("big");
    fs::write(&path, vec![1; BIG]).expect("write");
    let real = OpenOptions::new().write(true).open(&path).expect("open");
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        ours = ours.min(
            timed(|| {
                (0..WRITES).for_each(|i| {
                    tree.pwrite(&file, &page, offset(i)).expect("write");
                })
            })
            .0,
        );
        theirs = theirs
            .min(timed(|| (0..WRITES).for_each(|i| real.write_all_at(&page, offset(i)).expect("write"))).0);
    }
    row("random 4 KiB writes into 100 MB, each", ours / WRITES as u32, Some(theirs / WRITES as u32), "< 1.5");
    let after_clone = best(3, || {
        let clone = tree.clone();
        let result = timed(|| {
            (0..WRITES).for_each(|i| {
                tree.pwrite(&file, &page, offset(i)).expect("write");
            })
        });
        drop(clone);
        result
    });
    row("the same after a clone, each", after_clone / WRITES as u32, None, "");
    tree.close(file);
}

fn creates(shm: &Shm) {
    let names: Vec<String> = (0..FILES).map(|i| format!("f{i}")).collect();
    let (mut ours, mut theirs) = ((Duration::MAX, Duration::MAX), (Duration::MAX, Duration::MAX));
    let dir = shm.0.join("many");
    for _ in 0..3 {
        let mut tree = Tree::new(Quota { bytes: 1 << 30, inodes: 1 << 20 });
        let root = tree.root();
        let flags = OpenFlags::CREATE | OpenFlags::WRITE;
        let made = timed(|| {
            for name in &names {
                let file = tree.open(&WHO, &root, name.as_bytes(), flags, 0o644).expect("create");
                tree.close(file);
            }
        });
        let gone = timed(|| {
            for name in &names {
                tree.unlink(&WHO, &root, name.as_bytes()).expect("unlink");
            }
        });
        ours = (ours.0.min(made.0), ours.1.min(gone.0));

        fs::create_dir(&dir).expect("mkdir");
        std::env::set_current_dir(&dir).expect("chdir");
        let made = timed(|| names.iter().for_each(|name| drop(File::create(name).expect("create"))));
        let gone = timed(|| names.iter().for_each(|name| fs::remove_file(name).expect("unlink")));
        theirs = (theirs.0.min(made.0), theirs.1.min(gone.0));
        std::env::set_current_dir("/").expect("chdir");
        fs::remove_dir(&dir).expect("rmdir");
    }
    let each = FILES as u32;
    row("100,000 creates, each", ours.0 / each, Some(theirs.0 / each), "< 1");
    row("100,000 unlinks, each", ours.1 / each, Some(theirs.1 / each), "< 1");
}

fn memory() {
    let mut tree = Tree::new(Quota::NONE);
    let before = IN_USE.load(Ordering::Relaxed);
    for i in 0..FILES {
        let file = create(&mut tree, &format!("/file{i}"));
        tree.close(file);
    }
    let each = (IN_USE.load(Ordering::Relaxed) - before) / FILES;
    println!("{:<42} {each:>8} bytes {:>23}< 400", "memory per empty file", "");
}
