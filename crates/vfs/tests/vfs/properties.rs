//! Random sequences of operations, and what must hold whatever they are.
//!
//! `WARDIAN_SOAK_SEQUENCES` sets how many sequences each property is tried with.

use crate::ops::{OP_LEN, Op, decode, sequence};
use crate::oracle::{Answer, Oracle, confined, ids};
use crate::support::{ROOT, host_mount};
use crate::world::{Ours, World};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::RefCell;
use std::os::unix::fs::PermissionsExt;
use wardian_vfs::{Caller, HostAccess, Quota, Tree};

fn sequences() -> u32 {
    std::env::var("WARDIAN_SOAK_SEQUENCES").ok().and_then(|count| count.parse().ok()).unwrap_or(1000)
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, max_shrink_iters: 3000, ..Config::default() })
}

/// The bytes of some operations; a failure prints the operations.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        decode(&self.0, confined()).iter().try_for_each(|op| write!(f, "\n    {op:?}"))
    }
}

fn operations(max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<[u8; OP_LEN]>(), 1..max).prop_map(|ops| Bytes(ops.concat()))
}

fn user() -> Caller {
    let (uid, gid) = ids();
    Caller { uid, gid, ..Caller::USER }
}

/// A tree like the oracle's: a root nobody but root writes to, and in it `/w`.
fn tree_with_area(quota: Quota) -> Tree {
    let mut tree = Tree::new(quota);
    tree.install_dir(b"/w", 0o755).unwrap();
    tree.chown(&ROOT, &tree.root(), b"/w", true, Some(user().uid), Some(user().gid)).unwrap();
    tree
}

fn same(ops: &[Op], ours: &Answer, theirs: &Answer) -> Result<(), TestCaseError> {
    for (index, op) in ops.iter().enumerate() {
        let (our, their) = (&ours.results[index], &theirs.results[index]);
        prop_assert!(our == their, "operation {index}, {op:?}:\n  ours  {our}\n  Linux {their}");
    }
    prop_assert!(ours.dump == theirs.dump, "ours:\n{}\nLinux:\n{}", ours.dump, theirs.dump);
    Ok(())
}

/// The books must be right after every single operation.
fn run_checked(world: &mut Ours, ops: &[Op]) -> Result<Vec<String>, TestCaseError> {
    let mut results = Vec::new();
    for op in ops {
        results.push(world.run(op));
        if let Err(wrong) = world.tree.fsck() {
            return Err(TestCaseError::fail(format!("after {op:?}: {wrong}")));
        }
    }
    Ok(results)
}

#[test]
fn the_tree_does_what_linux_does() {
    let oracle = RefCell::new(Oracle::start());
    let result = runner(sequences()).run(&operations(60), |bytes| {
        let mut oracle = oracle.borrow_mut();
        oracle.new_world();
        let theirs = oracle.run(&bytes);
        let ops = sequence(&bytes, confined());
        let mut world = Ours::new(tree_with_area(Quota::NONE), user());
        let ours = Answer { results: run_checked(&mut world, &ops)?, dump: world.dump() };
        same(&ops, &ours, &theirs)?;
        world.close_all();
        world.tree.fsck().map_err(TestCaseError::fail)
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn an_overlay_does_what_a_copy_does_and_leaves_the_original_alone() {
    let oracle = RefCell::new(Oracle::start());
    let result = runner(sequences()).run(&(operations(40), operations(50)), |(before, bytes)| {
        let mut oracle = oracle.borrow_mut();
        let lower = oracle.new_world();
        let before = lower_ops(&before);
        oracle.run(&before);
        oracle.copy_to_lower();
        let lower_before = listing(&lower);
        let theirs = as_user(oracle.go_on(&bytes));
        let ops = decode(&bytes, confined());

        let mut tree = Tree::new(Quota::NONE);
        tree.mount(b"/w", host_mount(&lower, HostAccess::Overlay)).unwrap();
        let mut world = Ours::new(tree, Caller::USER);
        let mut ours = Answer { results: run_checked(&mut world, &ops)?, dump: world.dump() };
        excuse_devices(&mut ours, &theirs);
        same(&ops, &ours, &theirs)?;
        prop_assert_eq!(listing(&lower), lower_before);
        world.close_all();
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_read_write_mount_does_what_a_directory_does() {
    let oracle = RefCell::new(Oracle::start());
    let result = runner(sequences()).run(&operations(50), |bytes| {
        let bytes = host_ops(&bytes);
        let mut oracle = oracle.borrow_mut();
        oracle.new_world();
        let theirs = as_user(oracle.run(&bytes));
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let mut tree = Tree::new(Quota::NONE);
        tree.mount(b"/w", host_mount(dir.path(), HostAccess::ReadWrite)).unwrap();
        let mut world = Ours::new(tree, Caller::USER);
        let ops = sequence(&bytes, confined());
        let mut ours = Answer { results: run_checked(&mut world, &ops)?, dump: world.dump() };
        excuse_devices(&mut ours, &theirs);
        same(&ops, &ours, &theirs)
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}

/// What a host directory is meant to answer as Linux does: not the traps it refuses to set, and not from a
/// directory that is renamed while somebody stands in it.
fn host_ops(bytes: &[u8]) -> Vec<u8> {
    let kept = bytes.chunks(OP_LEN).filter(|chunk| {
        let traps = |mode: &u32| mode & 0o6000 != 0 || unreadable(*mode);
        !decode(chunk, confined()).iter().any(|op| match op {
            Op::Mkfifo { .. }
            | Op::Chown { .. }
            | Op::Symlink { .. }
            | Op::Chdir { .. }
            | Op::Umask { .. } => true,
            Op::Open { mode, path, .. } | Op::Mkdir { mode, path } | Op::Chmod { mode, path } => {
                traps(mode) || path.at.is_some()
            }
            Op::Fchmod { .. } | Op::Futimes { .. } => true,
            Op::Rmdir { path } | Op::Unlink { path } | Op::ReadLink { path } | Op::List { path } => {
                path.at.is_some()
            }
            Op::Utimes { path, .. } | Op::Stat { path, .. } | Op::Access { path, .. } => path.at.is_some(),
            Op::Rename { from, to } | Op::Link { from, to, .. } => from.at.is_some() || to.at.is_some(),
            _ => false,
        })
    });
    kept.collect::<Vec<_>>().concat()
}

/// Would a host file of this mode be closed to the user who runs the tests, so that it could not be looked at
/// afterwards?
pub fn unreadable(mode: u32) -> bool {
    confined() && mode & 0o700 != 0o700
}

/// Host files all show as user 1000's, regardless of who runs the tests.
fn as_user(answer: Answer) -> Answer {
    let (uid, gid) = ids();
    let shown = |text: &String| text.replace(&format!(" {uid}:{gid} "), " 1000:1000 ");
    Answer { results: answer.results.iter().map(shown).collect(), dump: shown(&answer.dump) }
}

/// The real directory is on one device with the one above it, a mount is not.
fn excuse_devices(ours: &mut Answer, theirs: &Answer) {
    for (our, their) in ours.results.iter_mut().zip(&theirs.results) {
        if our == "EXDEV" && their.starts_with('E') {
            *our = their.clone();
        }
    }
}

/// For the lower layer, only what an overlay is meant to preserve: no second names for one file, and
/// nothing that the process running the tests could not read.
fn lower_ops(bytes: &[u8]) -> Vec<u8> {
    let kept = bytes.chunks(OP_LEN).filter(|chunk| {
        !decode(chunk, true)
            .iter()
            .any(|op| matches!(op, Op::Link { .. } | Op::Chmod { .. } | Op::Fchmod { .. }))
    });
    kept.collect::<Vec<_>>().concat()
}

/// A host directory in words.
fn listing(dir: &std::path::Path) -> Vec<String> {
    use std::os::unix::fs::MetadataExt;
    let mut out = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(path) = pending.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let (mode, mtime) = (metadata.mode(), (metadata.mtime(), metadata.mtime_nsec()));
        let content = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        out.push(format!("{path:?} {mode:o} {mtime:?} {}", crate::ops::digest(&content)));
        if metadata.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    out.sort();
    out
}

#[test]
fn clones_never_see_each_others_writes() {
    let strategy = (operations(30), operations(30), operations(30));
    let result = runner(sequences()).run(&strategy, |(before, one, other)| {
        let mut world = Ours::new(tree_with_area(Quota::NONE), user());
        let before = sequence(&before, confined());
        run_checked(&mut world, &before)?;
        let mut first = world.fork();
        let mut second = world.fork();
        // What each should come to: the same operations with nobody else around.
        let alone = |ops: &[u8]| {
            let mut world = Ours::new(tree_with_area(Quota::NONE), user());
            run_checked(&mut world, &before)?;
            let results = run_checked(&mut world, &decode(ops, confined()))?;
            Ok::<_, TestCaseError>(Answer { results, dump: world.dump() })
        };
        let kept = world.dump();
        let mut ours = (Vec::new(), Vec::new());
        // Turn by turn, so that each writes to what the other still shares.
        let turns = one.chunks(OP_LEN).count().max(other.chunks(OP_LEN).count());
        for turn in 0..turns {
            for (world, ops, results) in [(&mut first, &one, &mut ours.0), (&mut second, &other, &mut ours.1)]
            {
                if let Some(chunk) = ops.chunks(OP_LEN).nth(turn) {
                    results.extend(run_checked(world, &decode(chunk, confined()))?);
                }
            }
        }
        prop_assert_eq!(world.dump(), kept);
        let expected = (alone(&one)?, alone(&other)?);
        prop_assert_eq!(&ours.0, &expected.0.results);
        prop_assert_eq!(&ours.1, &expected.1.results);
        prop_assert_eq!(first.dump(), expected.0.dump);
        prop_assert_eq!(second.dump(), expected.1.dump);
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_full_tree_refuses_and_stays_as_it_was() {
    let strategy = (operations(60), 0..150_000u64, 0..8u64);
    let result = runner(sequences()).run(&strategy, |(bytes, limit, inodes)| {
        let quota = Quota { bytes: limit, inodes };
        let mut world = Ours::new(tree_with_area(quota), user());
        for op in sequence(&bytes, confined()) {
            let before = world.dump();
            let result = world.run(&op);
            world.tree.fsck().map_err(TestCaseError::fail)?;
            let used = world.tree.usage();
            prop_assert!(used.total() <= limit && used.inodes <= inodes, "{op:?}: {used:?} of {quota:?}");
            if result == "ENOSPC" {
                prop_assert_eq!(world.dump(), before, "{:?}", op);
            }
        }
        let root = world.tree.root();
        world.close_all();
        clear(&mut world.tree, &root, b"/w");
        prop_assert_eq!(world.tree.usage(), Default::default(), "everything is given back");
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}

fn clear(tree: &mut Tree, at: &wardian_vfs::Place, path: &[u8]) {
    use wardian_vfs::{FileKind, OpenFlags};
    let dir = tree.open(&ROOT, at, path, OpenFlags::READ | OpenFlags::DIRECTORY, 0).unwrap();
    let place = dir.place();
    for entry in tree.read_dir(&ROOT, &dir, 2, usize::MAX).unwrap() {
        if entry.kind == FileKind::Dir {
            clear(tree, &place, &entry.name);
            tree.rmdir(&ROOT, &place, &entry.name).unwrap();
        } else {
            tree.unlink(&ROOT, &place, &entry.name).unwrap();
        }
    }
    tree.close(dir);
}
