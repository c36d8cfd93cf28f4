//! tar in and out: GNU tar is the oracle, and archives may be hostile.

use crate::ops::{OP_LEN, digest, sequence};
use crate::support::*;
use crate::world::{Ours, World};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::path::Path;
use std::process::Command;
use wardian_vfs::*;

const FORMATS: [TarFormat; 2] = [TarFormat::Gnu, TarFormat::Pax];

fn area(quota: Quota) -> Tree {
    let mut tree = Tree::new(quota);
    tree.install_dir(b"/w", 0o755).unwrap();
    tree.chown(&ROOT, &tree.root(), b"/w", true, Some(1000), Some(1000)).unwrap();
    tree
}

/// What is below `/w`, without `/w` itself.
fn dump(tree: &Tree) -> String {
    let text = Ours::new(tree.clone(), ROOT).dump();
    text.split_once('\n').unwrap().1.to_string()
}

fn export(tree: &Tree, format: TarFormat) -> Vec<u8> {
    let mut archive = Vec::new();
    tree.export_tar(b"/w", TarOptions { format, own_only: false }, &mut archive).unwrap();
    archive
}

fn random_tree(bytes: &[u8]) -> Tree {
    let mut world = Ours::new(area(Quota::NONE), USER);
    for op in sequence(bytes, false) {
        world.run(&op);
    }
    world.close_all();
    world.tree
}

/// Something of every kind, with long names, holes and odd times.
fn sample() -> Tree {
    let mut tree = area(Quota::NONE);
    let root = tree.root();
    let long = format!("/w/{}/{}", "d".repeat(150), "e".repeat(200));
    tree.mkdir(&USER, &root, format!("/w/{}", "d".repeat(150)).as_bytes(), 0o755).unwrap();
    tree.mkdir(&USER, &root, long.as_bytes(), 0o500).unwrap();
    tree.chmod(&USER, &root, long.as_bytes(), true, 0o700).unwrap();
    write(&mut tree, &format!("{long}/file"), b"at the end of a long path");
    tree.chmod(&USER, &root, long.as_bytes(), true, 0o500).unwrap();
    write(&mut tree, "/w/plain", &[7; 100_000]);
    write(&mut tree, "/w/empty", b"");
    write(&mut tree, "/w/\u{fc}ml\u{e4}ut name", b"x");
    tree.link(&USER, &root, b"/w/plain", true, &root, b"/w/second").unwrap();
    tree.symlink(&USER, b"plain", &root, b"/w/soft").unwrap();
    tree.symlink(&USER, &[b'l'; 300], &root, b"/w/softlong").unwrap();
    tree.mkfifo(&USER, &root, b"/w/pipe", 0o640).unwrap();
    tree.chmod(&USER, &root, b"/w/empty", true, 0o4751).unwrap();
    let at = SetTime::At(123_456_789_000_000_000);
    tree.utimes(&USER, &root, b"/w/plain", true, at, at).unwrap();
    let holes = open(&mut tree, "/w/holes", OpenFlags::CREATE | OpenFlags::WRITE).unwrap();
    for i in 0..30 {
        tree.pwrite(&holes, b"piece", i * 200_000).unwrap();
    }
    tree.truncate(&holes, 1 << 33).unwrap();
    tree.truncate(&holes, 7_000_000).unwrap();
    tree.close(holes);
    tree
}

#[test]
fn what_goes_out_comes_in_again() {
    let tree = sample();
    for format in FORMATS {
        let archive = export(&tree, format);
        let mut back = area(Quota::NONE);
        back.import_tar(&ROOT, b"/w", &archive[..]).unwrap();
        assert_eq!(dump(&back), dump(&tree), "{format:?}");
        assert_eq!(back.usage(), tree.usage(), "holes stay holes");
        assert!(archive.len() < 3_000_000);
        back.fsck().unwrap();
    }
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let ops = vec(any::<[u8; OP_LEN]>(), 1..80).prop_map(|ops| ops.concat());
    runner
        .run(&ops, |bytes| {
            let tree = random_tree(&bytes);
            for format in FORMATS {
                let mut back = area(Quota::NONE);
                let imported = back.import_tar(&ROOT, b"/w", &export(&tree, format)[..]);
                imported.map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert_eq!(dump(&back), dump(&tree));
                back.fsck().map_err(TestCaseError::fail)?;
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_user_who_unpacks_owns_the_files_and_gets_no_set_id_bits() {
    let archive = export(&sample(), TarFormat::Pax);
    let mut tree = area(Quota::NONE);
    let who = Caller { uid: 7, gid: 7, ..USER };
    tree.chown(&ROOT, &tree.root(), b"/w", true, Some(7), Some(7)).unwrap();
    tree.import_tar(&who, b"/w", &archive[..]).unwrap();
    let stat = tree.stat(&ROOT, &tree.root(), b"/w/empty", true).unwrap();
    assert_eq!((stat.uid, stat.gid, stat.mode), (7, 7, 0o751));
    assert_eq!(tree.stat(&ROOT, &tree.root(), b"/w/plain", true).unwrap().mtime, 123_456_789_000_000_000);
}

/// A directory with the same words as [`dump`] has for a tree.
fn dump_host(dir: &Path) -> String {
    let mut tree = Tree::new(Quota::NONE);
    tree.mount(b"/w", host_mount(dir, HostAccess::ReadOnly)).unwrap();
    dump(&tree)
}

fn assert_same(left: &str, right: &str) {
    for (left, right) in left.lines().zip(right.lines()) {
        assert_eq!(left, right);
    }
    assert_eq!(left.len(), right.len());
}

fn tar(args: &[&str], dir: &Path) {
    let output = Command::new("tar").args(args).current_dir(dir).output().expect("GNU tar is installed");
    assert!(output.status.success(), "tar {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn gnu_tar_unpacks_what_is_exported() {
    let tree = sample();
    for format in FORMATS {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.tar"), export(&tree, format)).unwrap();
        let out = dir.path().join("out");
        std::fs::create_dir(&out).unwrap();
        tar(&["-xpf", "../a.tar"], &out);
        assert_same(&dump_host(&out), &dump(&tree));
    }
}

#[test]
fn what_gnu_tar_packs_is_imported() {
    let tree = sample();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(dir.path().join("a.tar"), export(&tree, TarFormat::Gnu)).unwrap();
    tar(&["-xpf", "../a.tar"], &out);
    for format in ["--format=gnu", "--format=pax"] {
        for sparse in ["--sparse", "--no-recursion"] {
            let mut args = vec!["-cf", "../b.tar", format, "--owner=1000", "--group=1000", "."];
            if sparse == "--sparse" {
                args.insert(0, sparse);
            }
            tar(&args, &out);
            let mut back = area(Quota::NONE);
            let archive = std::fs::File::open(dir.path().join("b.tar")).unwrap();
            back.import_tar(&ROOT, b"/w", archive).unwrap();
            assert_eq!(dump(&back), dump_host(&out), "{format} {sparse}");
        }
    }
    for version in ["0.1", "1.0"] {
        let version = format!("--sparse-version={version}");
        tar(&["-cf", "../b.tar", "--format=pax", "--sparse", &version, "holes"], &out);
        let mut back = area(Quota::NONE);
        let archive = std::fs::read(dir.path().join("b.tar")).unwrap();
        back.import_tar(&ROOT, b"/w", &archive[..]).unwrap();
        assert_eq!(digest(&read(&mut back, "/w/holes")), digest(&std::fs::read(out.join("holes")).unwrap()));
        assert!(back.usage().bytes < 3_000_000, "{version}: {:?}", back.usage());
    }
}

/// One entry's header, and its content padded.
fn entry(kind: u8, name: &str, link: &str, size: u64, content: &[u8]) -> Vec<u8> {
    let mut block = [0u8; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..107].copy_from_slice(b"0000644");
    block[108..115].copy_from_slice(b"0001750");
    block[116..123].copy_from_slice(b"0001750");
    if size < 1 << 33 {
        block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    } else {
        block[124] = 0x80;
        block[128..136].copy_from_slice(&size.to_be_bytes());
    }
    block[136..147].copy_from_slice(b"00000000000");
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut out = block.to_vec();
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

fn file(name: &str, content: &[u8]) -> Vec<u8> {
    entry(b'0', name, "", content.len() as u64, content)
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), vec![0; 1024]].concat()
}

fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let good = file("good", b"fine");
    let lying = entry(b'0', "big", "", 1 << 40, b"only this");
    let mut broken = archive(std::slice::from_ref(&good));
    broken[3] ^= 1;
    vec![
        ("absolute name", archive(&[good.clone(), file("/etc/passwd", b"x")])),
        ("name that climbs", archive(&[good.clone(), file("../etc/passwd", b"x")])),
        ("name that climbs later", archive(&[good.clone(), file("a/../../etc/passwd", b"x")])),
        ("file behind a link", archive(&[entry(b'2', "l", "/etc", 0, b""), file("l/passwd", b"x")])),
        (
            "file behind a relative link",
            archive(&[entry(b'2', "l", "../etc", 0, b""), file("l/passwd", b"x")]),
        ),
        ("hard link to outside", archive(&[good.clone(), entry(b'1', "h", "/etc/passwd", 0, b"")])),
        ("hard link that climbs", archive(&[good.clone(), entry(b'1', "h", "../etc/passwd", 0, b"")])),
        (
            "hard link behind a link",
            archive(&[entry(b'2', "l", "/etc", 0, b""), entry(b'1', "h", "l/passwd", 0, b"")]),
        ),
        ("hard link to a directory", archive(&[entry(b'5', "d", "", 0, b""), entry(b'1', "h", "d", 0, b"")])),
        ("character device", archive(&[good.clone(), entry(b'3', "null", "", 0, b"")])),
        ("block device", archive(&[good.clone(), entry(b'4', "sda", "", 0, b"")])),
        ("unknown kind", archive(&[good.clone(), entry(b'Z', "what", "", 0, b"")])),
        ("size that lies", archive(&[good.clone(), lying])),
        ("size that lies low", archive(&[entry(b'0', "big", "", 3, &[b'x'; 2000])])),
        ("long name that is none", archive(&[entry(b'L', "", "", 1 << 40, b"")])),
        ("records that are none", archive(&[entry(b'x', "", "", 9, b"999 a=b\n\n"), good.clone()])),
        ("endless records", archive(&[entry(b'x', "", "", 1 << 40, b"")])),
        ("no end mark", good.clone()),
        ("cut in a header", archive(std::slice::from_ref(&good))[..300].to_vec()),
        ("broken header", broken),
        ("not a tar at all", b"PK\x03\x04".repeat(500)),
        ("nothing", Vec::new()),
        ("file in place of a directory", archive(&[file("d/f", b"x"), file("d", b"x")])),
        ("file as directory", archive(&[file("f", b"x"), file("f/g", b"x")])),
        ("too much", archive(&[good.clone(), file("big", &[1; 200_000])])),
        ("too many", archive(&(0..20).map(|i| file(&format!("f{i}"), b"")).collect::<Vec<_>>())),
    ]
}

#[test]
fn hostile_archives_change_nothing() {
    let mut tree = area(Quota { bytes: 100_000, inodes: 10 });
    tree.install(b"/etc/passwd", 0o666, Content::Bytes(b"root"[..].into())).unwrap();
    write(&mut tree, "/w/kept", b"as it was");
    for (what, archive) in hostile() {
        for who in [ROOT, USER] {
            let (before, used) = (dump(&tree), tree.usage());
            let error = tree.import_tar(&who, b"/w", &archive[..]).expect_err(what);
            assert_eq!((dump(&tree), tree.usage()), (before, used), "{what}: {error}");
            assert_eq!(read(&mut tree, "/etc/passwd"), b"root", "{what}");
            tree.fsck().unwrap();
        }
    }
}

#[test]
fn ten_gigabytes_of_zeros_stop_at_the_quota() {
    let mut tree = area(Quota { bytes: 1 << 20, inodes: 10 });
    let head = entry(b'0', "zeros", "", 10 << 30, b"");
    let endless = std::io::Read::chain(&head[..], std::io::repeat(0));
    let error = tree.import_tar(&USER, b"/w", endless).unwrap_err();
    assert!(matches!(error, TarError::File { errno: Errno::ENOSPC, .. }), "{error}");
    assert_eq!(tree.usage(), Usage::default());
    // A sparse file may be as long as it likes, since it holds nothing.
    let mut sparse = area(Quota::NONE);
    let file = open(&mut sparse, "/w/huge", OpenFlags::CREATE | OpenFlags::WRITE).unwrap();
    sparse.truncate(&file, 1 << 50).unwrap();
    sparse.close(file);
    for format in FORMATS {
        tree.import_tar(&USER, b"/w", &export(&sparse, format)[..]).unwrap();
        assert_eq!(tree.stat(&USER, &tree.root(), b"/w/huge", true).unwrap().size, 1 << 50);
        assert_eq!(counts(&tree), (0, 1));
    }
}

/// The same bytes again and again, as long as anyone reads them.
struct Endless {
    bytes: Vec<u8>,
    read: usize,
}

impl std::io::Read for &mut Endless {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let rest = &self.bytes[self.read % self.bytes.len()..];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        self.read += count;
        Ok(count)
    }
}

/// What is repeated costs no quota, so the work itself must have an end.
#[test]
fn an_archive_that_repeats_itself_ends_at_about_the_quota() {
    const QUOTA: usize = 64 << 20;
    let comment = [b"524288 comment=".to_vec(), vec![b'x'; 524_288 - 16], b"\n".to_vec()].concat();
    let records = entry(b'x', "", "", comment.len() as u64, &comment);
    let deep = |name: &str| {
        let path = [name; 1000].join("/");
        [entry(b'L', "", "", path.len() as u64 + 1, &[path.as_bytes(), b"\0"].concat()), file("cut", b"")]
            .concat()
    };
    let pieces = {
        // Four pieces of one byte each.
        let mut header = entry(b'S', "sparse", "", 4, b"1234");
        for piece in 0..4 {
            let numbers = format!("{:011o}\0{:011o}\0", piece * 4096, 1);
            header[386 + 24 * piece..][..24].copy_from_slice(numbers.as_bytes());
        }
        header[483..495].copy_from_slice(format!("{:011o}\0", 16384).as_bytes());
        header[148..156].fill(b' ');
        let sum: u32 = header[..512].iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header
    };
    for (what, bytes, most) in [
        ("one name", file("same", b""), 2 * QUOTA),
        ("one directory", entry(b'5', "same/", "", 0, b""), QUOTA),
        ("records of no file", records.clone(), 3 * QUOTA),
        ("long records", [records, file("same", b"")].concat(), 3 * QUOTA),
        ("two deep directories", [deep("a"), deep("b")].concat(), QUOTA),
        ("short pieces", pieces, 2 * QUOTA),
    ] {
        let mut tree = area(Quota { bytes: QUOTA as u64, inodes: 1_000_000 });
        let mut endless = Endless { bytes, read: 0 };
        let error = tree.import_tar(&USER, b"/w", &mut endless).expect_err(what);
        assert!(endless.read < most, "{what}: {} bytes, {error}", endless.read);
        assert_eq!(tree.usage(), Usage::default(), "{what}");
    }
}

#[test]
fn the_last_of_equal_names_stays_and_is_counted_once() {
    let mut tree = area(Quota { bytes: 3000, inodes: 3 });
    write(&mut tree, "/w/other", b"original");
    let root = tree.root();
    tree.link(&USER, &root, b"/w/other", true, &root, b"/w/same").unwrap();
    let entries: Vec<_> = (0..50).map(|i| file("same", &[i; 900])).collect();
    tree.import_tar(&USER, b"/w", &archive(&entries)[..]).unwrap();
    assert_eq!(read(&mut tree, "/w/same"), [49; 900]);
    assert_eq!(read(&mut tree, "/w/other"), b"original", "not written through the hard link");
    assert_eq!(counts(&tree), (908, 2));
}

#[test]
fn damage_anywhere_is_an_error_or_does_no_harm() {
    let good = export(&sample(), TarFormat::Pax);
    let mut runner = TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() });
    let damage = (vec((0..good.len(), any::<u8>()), 0..4), 0..=good.len());
    runner
        .run(&damage, |(changes, len)| {
            let mut archive = good[..len].to_vec();
            for (at, byte) in changes {
                if let Some(place) = archive.get_mut(at) {
                    *place = byte;
                }
            }
            let mut tree = area(Quota { bytes: 8 << 20, inodes: 100 });
            let before = dump(&tree);
            if tree.import_tar(&ROOT, b"/w", &archive[..]).is_err() {
                prop_assert_eq!(dump(&tree), before);
            }
            tree.fsck().map_err(TestCaseError::fail)
        })
        .unwrap();
}

#[test]
fn what_was_installed_can_be_left_out() {
    let mut tree = area(Quota::NONE);
    tree.install(b"/w/system", 0o644, Content::Bytes(b"x"[..].into())).unwrap();
    write(&mut tree, "/w/mine", b"y");
    let mut archive = Vec::new();
    let options = TarOptions { own_only: true, ..TarOptions::default() };
    tree.export_tar(b"/w", options, &mut archive).unwrap();
    let mut back = area(Quota::NONE);
    back.import_tar(&USER, b"/w", &archive[..]).unwrap();
    assert_eq!(ls(&mut back, "/w"), ["mine"]);
}
