//! What the fuzzers try, as plain functions of bytes: a panic is a finding.
//!
//! ```text
//! cargo xtask fuzz vfs_tar --seconds 60                        guided by coverage; needs a C++ compiler
//! cargo run --release -- vfs_tar --seconds 60                  random inputs; needs nothing
//! cargo run --release -- vfs_tar artifacts/vfs_tar-0123abcd    once more what was found
//! ```

pub mod net;
pub mod random;
pub mod server;
pub mod shell;

#[path = "../../crates/vfs/tests/vfs/ops.rs"]
#[allow(dead_code)]
mod ops;
#[path = "../../crates/vfs/tests/vfs/world.rs"]
#[allow(dead_code)]
mod world;

use random::Random;
use std::sync::OnceLock;
use wardian_vfs::{Caller, OpenFlags, Quota, SetTime, TarFormat, TarOptions, Tree};
use world::{Ours, World};

/// Something to fuzz.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Tries one input.
    pub run: fn(&[u8]),
    /// Makes one.
    pub input: fn(&mut Random) -> Vec<u8>,
}

/// All there is.
pub const TARGETS: [Target; 6] = [
    Target { name: "net_http", run: net::net_http, input: net::request },
    Target { name: "server_wire", run: server::server_wire, input: server::socket },
    Target { name: "shell_parse", run: shell_parse, input: shell::tokens },
    Target { name: "shell_cases", run: shell_parse, input: shell::mutated_case },
    Target { name: "vfs_operations", run: vfs_operations, input: Random::noise },
    Target { name: "vfs_tar", run: vfs_tar, input: mutated_archive },
];

/// A script is read to its end or to its first error, however it is made.
pub fn shell_parse(data: &[u8]) {
    shell::on_a_deep_stack(|| {
        wardian_sh::check_syntax(data);
    });
}

fn mutated_archive(random: &mut Random) -> Vec<u8> {
    static SAMPLE: OnceLock<Vec<u8>> = OnceLock::new();
    random.archive(SAMPLE.get_or_init(sample_archive))
}

fn area(quota: Quota) -> Tree {
    let mut tree = Tree::new(quota);
    tree.install_dir(b"/w", 0o755).expect("an empty tree takes a directory");
    let root = tree.root();
    tree.chown(&Caller::ROOT, &root, b"/w", true, Some(1000), Some(1000)).expect("root gives it away");
    tree
}

/// A stream of operations, with a clone taken in the middle: the books are right after each, quotas hold,
/// and the clone stays as it was.
pub fn vfs_operations(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let quota = match first {
        0..=127 => Quota::NONE,
        few => Quota { bytes: u64::from(*few) * 500, inodes: u64::from(*few % 16) },
    };
    let mut world = Ours::new(area(quota), Caller::USER);
    let ops = ops::sequence(bytes, false);
    let mut kept = None;
    for (index, op) in ops.iter().enumerate() {
        if index == ops.len() / 2 {
            let mut clone = world.fork();
            let dump = clone.dump();
            kept = Some((clone, dump));
        }
        world.run(op);
        world.tree.fsck().unwrap_or_else(|wrong| panic!("after {op:?}: {wrong}"));
        let used = world.tree.usage();
        assert!(used.total() <= quota.bytes && used.inodes <= quota.inodes, "{op:?}: {used:?} of {quota:?}");
    }
    if let Some((mut clone, dump)) = kept {
        assert_eq!(clone.dump(), dump, "a clone saw what the original wrote");
    }
    world.close_all();
    world.tree.fsck().expect("all is well after closing");
}

/// An archive, as it is and with its checksums put right (or hardly any would get past the first header).
pub fn vfs_tar(data: &[u8]) {
    import(data);
    let mut fixed = data.to_vec();
    for block in fixed.chunks_exact_mut(512) {
        if block[257..262] == *b"ustar" {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    import(&fixed);
}

fn import(data: &[u8]) {
    let quota = Quota { bytes: 1 << 20, inodes: 50 };
    let mut tree = area(quota);
    let before = export(&tree);
    let result = tree.import_tar(&Caller::ROOT, b"/w", data);
    tree.fsck().unwrap_or_else(|wrong| panic!("after an import: {wrong}"));
    assert!(tree.usage().total() <= quota.bytes && tree.usage().inodes <= quota.inodes);
    let after = export(&tree);
    if result.is_err() {
        assert_eq!(after, before, "a failed import left something");
        return;
    }
    // What has come in can go out and come in again.
    let mut again = area(quota);
    again.import_tar(&Caller::ROOT, b"/w", &after[..]).expect("what was exported can be imported");
    assert_eq!(export(&again), after);
}

fn export(tree: &Tree) -> Vec<u8> {
    let mut archive = Vec::new();
    let options = TarOptions { format: TarFormat::Pax, own_only: false };
    tree.export_tar(b"/w", options, &mut archive).expect("a tree in memory can be exported");
    archive
}

/// An archive with something of every kind, for mutations to start from.
pub fn sample_archive() -> Vec<u8> {
    let mut tree = area(Quota::NONE);
    let (who, root) = (Caller::USER, tree.root());
    let long = ["/w/".as_bytes(), &[b'd'; 120]].concat();
    tree.mkdir(&who, &root, &long, 0o755).expect("mkdir");
    let flags = OpenFlags::CREATE | OpenFlags::WRITE;
    for (name, offset) in [("/w/a", 0), ("/w/sparse", 300_000)] {
        let file = tree.open(&who, &root, name.as_bytes(), flags, 0o644).expect("create");
        tree.pwrite(&file, b"some content", offset).expect("write");
        tree.close(file);
    }
    tree.link(&who, &root, b"/w/a", true, &root, b"/w/hard").expect("link");
    tree.symlink(&who, b"a", &root, b"/w/soft").expect("symlink");
    tree.mkfifo(&who, &root, b"/w/pipe", 0o600).expect("mkfifo");
    let time = SetTime::At(1_234_567_890_123_456_789);
    tree.utimes(&who, &root, b"/w/a", true, time, time).expect("utimes");
    export(&tree)
}
