//! Archives that were cut, changed or made to do harm: an error or a right answer, never a crash, and never a file
//! outside the directory that was asked for.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const OURS: &str = env!("CARGO_BIN_EXE_archive");

/// A directory with a directory to extract into and a file beside it that nobody may touch.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("wardian-hostile-{}-{name}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(path.join("in")).unwrap();
        fs::write(path.join("victim"), "untouched").unwrap();
        Place(path)
    }

    /// Runs one of our programs on an archive, inside.
    fn run(&self, arguments: &[&str], archive: &[u8]) -> Output {
        fs::write(self.0.join("archive"), archive).unwrap();
        let mut program = Command::new(OURS);
        program.args(arguments).current_dir(self.0.join("in"));
        program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = program.spawn().unwrap().wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some(), "{arguments:?} was killed: {} {words}", output.status);
        assert!(!words.contains("panicked"), "{arguments:?} panicked: {words}");
        output
    }

    /// Nothing but what was there is beside the directory.
    fn check(&self, what: &str) {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["archive", "in", "victim"], "{what}");
        assert_eq!(fs::read(self.0.join("victim")).unwrap(), b"untouched", "{what}");
        self.empty();
    }

    fn empty(&self) {
        // What was extracted may not allow to be removed.
        Command::new("chmod")
            .args(["-R", "u+rwX"])
            .arg(self.0.join("in"))
            .stderr(Stdio::null())
            .status()
            .unwrap();
        fs::remove_dir_all(self.0.join("in")).unwrap();
        fs::create_dir(self.0.join("in")).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// One of our programs, from bytes to bytes.
fn filter(arguments: &[&str], input: &[u8]) -> Output {
    let mut program = Command::new(OURS);
    program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = input.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&bytes).ok());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code().is_some() && !words.contains("panicked"),
        "{arguments:?}: {} {words}",
        output.status
    );
    output
}

/// A member of an archive: its header, by hand.
fn member(name: &str, kind: u8, link: &str, content: &[u8]) -> Vec<u8> {
    let mut block = vec![0u8; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(b"0000644\0");
    block[108..116].copy_from_slice(b"0001750\0");
    block[116..124].copy_from_slice(b"0001750\0");
    block[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
    block[136..148].copy_from_slice(b"13615715762\0");
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[257..265].copy_from_slice(b"ustar\x0000");
    seal(&mut block);
    block.extend(content);
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

fn seal(block: &mut [u8]) {
    block[148..156].fill(b' ');
    let sum: u32 = block[..512].iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = members.concat();
    bytes.extend([0; 1024]);
    bytes
}

fn small_tar() -> Vec<u8> {
    archive(&[
        member("d/", b'5', "", b""),
        member("d/a", b'0', "", b"alpha\n"),
        member("x", b'x', "", b"30 path=d/a-long-name-instead\n"),
        member("d/b", b'0', "", b"beta\n"),
        member("d/l", b'2', "a", b""),
        member("d/h", b'1', "d/a", b""),
    ])
}

fn small_zip() -> Vec<u8> {
    let place = Place::new("make-zip");
    fs::create_dir(place.0.join("in/d")).unwrap();
    fs::write(place.0.join("in/d/a"), "alpha alpha alpha alpha alpha alpha\n").unwrap();
    fs::write(place.0.join("in/b"), "b").unwrap();
    place.run(&["zip", "-qr", "x.zip", "d", "b"], b"");
    fs::read(place.0.join("in/x.zip")).unwrap()
}

#[test]
fn archives_cut_at_every_byte() {
    let place = Place::new("cut");
    let tar = small_tar();
    // Every place within the first members, then one here and there.
    for length in (0..1100).chain((1100..tar.len()).step_by(97)) {
        place.run(&["tar", "-xf", "../archive"], &tar[..length]);
        place.check(&format!("tar of {length}"));
    }
    let zip = small_zip();
    for length in 0..zip.len() {
        let output = place.run(&["unzip", "-o", "../archive"], &zip[..length]);
        assert!(!output.status.success(), "a zip file of {length} bytes is not whole");
        place.check(&format!("zip of {length}"));
    }
}

#[test]
fn streams_cut_at_every_byte() {
    let text = b"some text, some more text, and some text again\n".repeat(3);
    for program in ["gzip", "bzip2", "xz", "zstd", "lzma"] {
        let packed = filter(&[program, "-c"], &text).stdout;
        assert_eq!(filter(&[program, "-dc"], &packed).stdout, text, "{program}");
        for length in 0..packed.len() {
            let output = filter(&[program, "-dc"], &packed[..length]);
            // The oldest format has no end that could be missed, if all of the content is there.
            let is_whole = program == "lzma" && output.stdout == text;
            assert!(!output.status.success() || is_whole, "{program}: {length} of {} bytes", packed.len());
            assert!(text.starts_with(&output.stdout), "{program}: {length} bytes gave something else");
        }
    }
}

#[test]
fn bits_flipped_in_streams() {
    let text = b"some text, some more text, and some text again\n".repeat(3);
    for program in ["gzip", "bzip2", "xz", "zstd"] {
        let packed = filter(&[program, "-c"], &text).stdout;
        for at in 0..packed.len() * 8 {
            let mut changed = packed.clone();
            changed[at / 8] ^= 1 << (at % 8);
            let output = filter(&[program, "-dc"], &changed);
            // A header has bits that do not matter; the rest is found out.
            assert!(!output.status.success() || output.stdout == text, "{program}: bit {at}");
        }
    }
}

#[test]
fn bits_flipped_in_archives() {
    let place = Place::new("flip");
    let (tar, zip) = (small_tar(), small_zip());
    for at in (0..tar.len() * 8).step_by(13) {
        let mut changed = tar.clone();
        changed[at / 8] ^= 1 << (at % 8);
        place.run(&["tar", "-xf", "../archive"], &changed);
        place.check(&format!("tar, bit {at}"));
    }
    for at in (0..zip.len() * 8).step_by(3) {
        let mut changed = zip.clone();
        changed[at / 8] ^= 1 << (at % 8);
        place.run(&["unzip", "-o", "../archive"], &changed);
        place.check(&format!("zip, bit {at}"));
    }
}

#[test]
fn names_that_lead_out() {
    let place = Place::new("names");
    for name in [
        "../victim",
        "/tmp/wardian-evil",
        "a/../../victim",
        "..",
        "/",
        "../../../../../../tmp/wardian-evil",
        "./../victim",
    ] {
        for kind in [b'0', b'5', b'2', b'1', b'6'] {
            let bytes = archive(&[member("in-first", b'0', "", b"x"), member(name, kind, "in-first", b"")]);
            place.run(&["tar", "-xf", "../archive"], &bytes);
            place.check(&format!("{name} of kind {}", char::from(kind)));
            assert!(!Path::new("/tmp/wardian-evil").exists());
        }
    }
}

#[test]
fn links_that_lead_out() {
    let place = Place::new("links");
    let up = |name: &str, target: &str| member(name, b'2', target, b"");
    let file = |name: &str| member(name, b'0', "", b"evil");
    let hard = |name: &str, target: &str| member(name, b'1', target, b"");
    let cases: Vec<Vec<Vec<u8>>> = vec![
        vec![up("l", ".."), file("l/victim")],
        vec![up("l", "../victim"), file("l")],
        vec![up("l", "../victim"), hard("h", "l"), file("h")],
        vec![up("a", "."), up("a/b", ".."), file("a/b/victim"), file("b/victim")],
        vec![member("d/", b'5', "", b""), up("d/x", "../.."), file("d/x/victim")],
        vec![hard("h", "../victim"), file("h")],
        vec![hard("h", "/etc/passwd"), file("h")],
        vec![up("s", "../in/../victim"), file("s")],
        vec![up("x", "y"), up("y", ".."), file("x/victim")],
        vec![up("l", ".."), hard("m", "l"), file("m/victim"), member("m/e/", b'5', "", b"")],
    ];
    for (number, members) in cases.iter().enumerate() {
        for more in
            [&["-xf"][..], &["--overwrite", "-xf"], &["-U", "-xf"], &["--keep-directory-symlink", "-xf"]]
        {
            let arguments = [&["tar"], more, &["../archive"]].concat();
            place.run(&arguments, &archive(members));
            place.check(&format!("case {number} with {more:?}"));
        }
    }
}

#[test]
fn sizes_that_lie() {
    let place = Place::new("sizes");
    for size in [
        &b"77777777777\0"[..],
        b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        for kind in [b'0', b'x', b'g', b'L', b'K', b'S'] {
            let mut bytes = member("big", kind, "", b"little");
            bytes[124..136].copy_from_slice(size);
            seal(&mut bytes);
            let output = place.run(&["tar", "-xf", "../archive"], &archive(&[bytes]));
            assert!(!output.status.success(), "kind {}", char::from(kind));
            place.check("a large size");
        }
    }
    for record in
        ["999999999999 path=x\n", "1 path=x\n", "12 size=9999999999999999999999\n", "22 GNU.sparse.map=1,2\n"]
    {
        let bytes = archive(&[member("p", b'x', "", record.as_bytes()), member("f", b'0', "", b"content")]);
        place.run(&["tar", "-xf", "../archive"], &bytes);
        place.check(record);
    }
}

#[test]
fn sparse_maps_that_lie() {
    let place = Place::new("sparse");
    for map in ["9223372036854775807,10", "5,18446744073709551615", "10,5,0,5", "0,99999999999"] {
        let record = |text: &str| {
            let mut length = text.len() + 3;
            while format!("{length} {text}").len() != length {
                length += 1;
            }
            format!("{length} {text}")
        };
        let records = record("GNU.sparse.size=4000\n") + &record(&format!("GNU.sparse.map={map}\n"));
        let bytes = archive(&[member("p", b'x', "", records.as_bytes()), member("f", b'0', "", b"content")]);
        let output = place.run(&["tar", "-xf", "../archive"], &bytes);
        assert!(!output.status.success(), "{map}");
        place.check(map);
    }
}

/// Much from little: what is streamed takes no more memory for it.
#[test]
fn bombs_are_streamed() {
    let zeros = vec![0u8; 1 << 20];
    for program in ["gzip", "bzip2", "xz", "zstd"] {
        let bomb = filter(&[program, "-c"], &zeros).stdout.repeat(160);
        let limited = format!("ulimit -v 140000; {OURS} {program} -dc | wc -c");
        let mut child = Command::new("bash")
            .args(["-c", &limited])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bomb).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), (160 << 20).to_string(), "{program}");
    }
}

#[test]
fn a_zip_entry_gives_no_more_than_it_says() {
    let place = Place::new("zip-bomb");
    let mut zip = small_zip();
    // The size in the directory: 24 bytes into its record.
    let name = zip.windows(3).rposition(|bytes| bytes == b"d/a").unwrap();
    let record = zip[..name].windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
    zip[record + 24..record + 28].copy_from_slice(&1u32.to_le_bytes());
    let output = place.run(&["unzip", "-o", "../archive"], &zip);
    assert!(!output.status.success());
    place.check("a small size");
}
