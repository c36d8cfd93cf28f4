//! Archives made here are read by the real programs, and theirs here.
//!
//! A program that this machine does not have is skipped, and that is said.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

const OURS: &str = env!("CARGO_BIN_EXE_archive");

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// An empty directory that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("wardian-archive-{}-{name}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Whether the machine has a program; if not, says that a test is skipped.
fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program} > /dev/null")]).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        println!(
            "SKIPPED: this machine has no {program}; apt-get install tar gzip bzip2 xz-utils zstd zip unzip"
        );
    }
    found
}

/// Runs a program in a directory: ours if its name begins with `our-`.
fn run(directory: &Path, command: &[&str], input: Option<&[u8]>) -> Vec<u8> {
    let mut program = match command[0].strip_prefix("our-") {
        Some(name) => {
            let mut program = Command::new(OURS);
            program.arg(name);
            program
        }
        None => Command::new(command[0]),
    };
    program.args(&command[1..]).current_dir(directory).env("LC_ALL", "C.UTF-8").env("TZ", "UTC0");
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = input.unwrap_or_default().to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&bytes).ok());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}: {words}", output.status);
    output.stdout
}

fn samples() -> Vec<Vec<u8>> {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let noise =
        |dice: &mut Dice, length: usize| (0..length).map(|_| dice.roll(256) as u8).collect::<Vec<u8>>();
    let text: Vec<u8> =
        (0..60_000u32).flat_map(|line| format!("line {} of {}\n", line, line % 97).into_bytes()).collect();
    vec![
        Vec::new(),
        b"x".to_vec(),
        text,
        vec![0; 3_000_000],
        noise(&mut dice, 1),
        noise(&mut dice, 131_072),
        noise(&mut dice, 700_001),
    ]
}

fn compressors_agree(program: &'static str, arguments: &[&[&str]]) {
    if !has(program) {
        return;
    }
    let scratch = Scratch::new(program);
    let ours = format!("our-{program}");
    for sample in samples() {
        for more in arguments {
            let pack = |name: &str| run(&scratch.0, &[&[name, "-c"], *more].concat(), Some(&sample));
            let theirs_packed = pack(program);
            let ours_packed = pack(&ours);
            assert!(
                run(&scratch.0, &[program, "-dc"], Some(&ours_packed)) == sample,
                "{program} {more:?} reads ours"
            );
            assert!(
                run(&scratch.0, &[&ours, "-dc"], Some(&theirs_packed)) == sample,
                "we read {program} {more:?}"
            );
            assert!(
                run(&scratch.0, &[&ours, "-dc"], Some(&ours_packed)) == sample,
                "we read our {program} {more:?}"
            );
            // As good as theirs, or nearly so.
            let limit = theirs_packed.len() + theirs_packed.len() / 8 + 64;
            assert!(ours_packed.len() <= limit, "{program} {more:?}: {} > {limit}", ours_packed.len());
        }
    }
}

#[test]
fn gzip() {
    compressors_agree("gzip", &[&["-1"], &["-6"], &["-9"]]);
}

#[test]
fn bzip2() {
    compressors_agree("bzip2", &[&["-1"], &["-9"]]);
}

#[test]
fn xz() {
    compressors_agree("xz", &[&["-0"], &["-6"], &["--check=sha256"], &["--format=lzma"]]);
}

#[test]
fn zstd() {
    compressors_agree("zstd", &[&["-q", "-1"], &["-q"], &["-q", "-19"]]);
}

/// Fills a directory with files, links and directories of all kinds.
fn grow(directory: &Path, dice: &mut Dice, depth: u64, with_all: bool) {
    fs::create_dir_all(directory).unwrap();
    let mut files = Vec::new();
    for number in 0..2 + dice.roll(6) {
        let name = match dice.roll(6) {
            0 => format!("plain{number}"),
            1 => format!("with space {number}"),
            2 => format!("ümläut-{number}-文"),
            3 => format!("{}{number}", "long".repeat(1 + dice.roll(40) as usize)),
            4 => format!(".hidden{number}"),
            _ => format!("-dash{number}"),
        };
        let path = directory.join(&name);
        match dice.roll(8) {
            0 | 1 if depth > 0 => grow(&path, dice, depth - 1, with_all),
            2 => symlink(["a", "../b", "/nowhere", "./c/d"][dice.roll(4) as usize], &path).unwrap(),
            3 if with_all && !files.is_empty() => {
                let first: &PathBuf = &files[dice.roll(files.len() as u64) as usize];
                fs::hard_link(first, &path).unwrap();
            }
            _ => {
                let length = [0, 1, 511, 512, 513, 5_000, 200_000][dice.roll(7) as usize];
                let content: Vec<u8> =
                    (0..length).map(|at| ((at as u64).wrapping_mul(dice.0) >> 40) as u8).collect();
                fs::write(&path, content).unwrap();
                let mode = [0o644, 0o600, 0o755, 0o440][dice.roll(4) as usize];
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                let time = UNIX_EPOCH + Duration::from_secs(400_000_000 + 2 * dice.roll(500_000_000));
                fs::File::options().read(true).open(&path).unwrap().set_modified(time).unwrap();
                files.push(path);
            }
        }
    }
}

/// What a tree is: kinds, modes, times, contents, and which names are one file.
fn picture(root: &Path) -> Vec<String> {
    let listing = run(
        root,
        &[
            "find",
            ".",
            "-printf",
            "%P %y %m %l %s",
            "-type",
            "f",
            "-printf",
            " %T@",
            "-o",
            "-printf",
            "",
            ",",
            "-printf",
            "\\n",
        ],
        None,
    );
    let mut lines: Vec<String> =
        String::from_utf8_lossy(&listing).lines().map(without_size_of_directories).collect();
    let sums = run(root, &["sh", "-c", "find . -type f -exec cksum {} + | sort"], None);
    lines.extend(String::from_utf8_lossy(&sums).lines().map(str::to_owned));
    lines.sort();
    lines
}

fn without_size_of_directories(line: &str) -> String {
    let is_directory = line.split(' ').rev().nth(3) == Some("d");
    if is_directory {
        line.rsplit_once(' ').map_or(line, |(start, _)| start).to_owned()
    } else {
        line.to_owned()
    }
}

fn hard_links(root: &Path) -> Vec<String> {
    let inodes = run(root, &["find", ".", "-type", "f", "-links", "+1", "-printf", "%i %P\\n"], None);
    let text = String::from_utf8_lossy(&inodes).into_owned();
    let mut groups = std::collections::BTreeMap::<&str, Vec<&str>>::new();
    for (inode, name) in text.lines().filter_map(|line| line.split_once(' ')) {
        groups.entry(inode).or_default().push(name);
    }
    let mut sets: Vec<String> = groups
        .into_values()
        .map(|mut names| {
            names.sort_unstable();
            names.join("|")
        })
        .collect();
    sets.sort();
    sets
}

#[test]
fn random_trees_through_tar() {
    if !has("tar") {
        return;
    }
    let formats = ["gnu", "pax"];
    let packings = ["", "-z", "-j", "-J", "--zstd"];
    for seed in 1..=10u64 {
        let mut dice = Dice(seed * 0x1234_5678_9abc_def1);
        let scratch = Scratch::new(&format!("tar-{seed}"));
        let tree = scratch.0.join("tree");
        grow(&tree, &mut dice, 3, true);
        let (wanted, links) = (picture(&tree), hard_links(&tree));
        let format = format!("--format={}", formats[seed as usize % 2]);
        let packing = packings[seed as usize % 5];
        for (maker, reader) in [("our-tar", "tar"), ("tar", "our-tar"), ("our-tar", "our-tar")] {
            let out = scratch.0.join(format!("{maker}-{reader}"));
            fs::create_dir(&out).unwrap();
            let mut make = vec![maker, "-cf", "x.tar", &format, "-C", "tree", "."];
            make.extend([packing].iter().filter(|packing| !packing.is_empty()));
            run(&scratch.0, &make, None);
            run(&scratch.0, &[reader, "-xpf", "x.tar", "-C", out.to_str().unwrap()], None);
            assert_eq!(picture(&out), wanted, "seed {seed}, {maker} to {reader}, {format} {packing}");
            assert_eq!(hard_links(&out), links, "seed {seed}, {maker} to {reader}");
        }
    }
}

#[test]
fn random_trees_through_zip() {
    if !has("zip") || !has("unzip") {
        return;
    }
    for seed in 1..=6u64 {
        let mut dice = Dice(seed * 0x0fed_cba9_8765_4321);
        let scratch = Scratch::new(&format!("zip-{seed}"));
        let tree = scratch.0.join("tree");
        grow(&tree, &mut dice, 3, false);
        let wanted = picture(&tree);
        for (maker, reader) in [("our-zip", "unzip"), ("zip", "our-unzip"), ("our-zip", "our-unzip")] {
            let out = scratch.0.join(format!("{maker}-{reader}"));
            fs::create_dir(&out).unwrap();
            fs::remove_file(scratch.0.join("x.zip")).ok();
            run(&tree, &[maker, "-qry", "../x.zip", "."], None);
            run(&scratch.0, &[reader, "-q", "x.zip", "-d", out.to_str().unwrap()], None);
            assert_eq!(picture(&out), wanted, "seed {seed}, {maker} to {reader}");
        }
    }
}

/// Five gigabytes with one word in them: sizes need more than 32 bits in zip and more than 33 in tar's octal.
#[test]
fn holes_and_large_sizes_are_kept() {
    if !has("tar") {
        return;
    }
    let scratch = Scratch::new("sparse");
    let file = fs::File::create(scratch.0.join("big")).unwrap();
    file.set_len(9 << 30).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"word", 5 << 30).unwrap();
    for format in ["--format=gnu", "--sparse-version=0.0", "--sparse-version=0.1", "--sparse-version=1.0"] {
        let format = if format.starts_with("--sparse") { vec!["--format=pax", format] } else { vec![format] };
        run(&scratch.0, &[&["tar", "-cSf", "x.tar"], format.as_slice(), &["big"]].concat(), None);
        fs::create_dir_all(scratch.0.join("out")).unwrap();
        run(&scratch.0, &["our-tar", "-xf", "x.tar", "-C", "out"], None);
        let copy = fs::File::open(scratch.0.join("out/big")).unwrap();
        assert_eq!(copy.metadata().unwrap().len(), 9 << 30, "{format:?}");
        let mut word = [0; 4];
        std::os::unix::fs::FileExt::read_exact_at(&copy, &mut word, 5 << 30).unwrap();
        assert_eq!(&word, b"word", "{format:?}");
        let listing = run(&scratch.0, &["our-tar", "-tvf", "x.tar"], None);
        assert!(String::from_utf8_lossy(&listing).contains(" 9663676416 "), "{format:?}");
    }
}
