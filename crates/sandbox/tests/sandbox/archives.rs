//! A sandbox out of one place and into another, and archives that lie.

use std::time::Duration;

use wardian::internals::Inside;
use wardian::{Errno, Error, Limits, Run, Sandbox};
use wardian_vfs::Caller;

use crate::support::{output, random, run, sandbox};

async fn original() -> Sandbox {
    let sandbox = sandbox().await;
    let script = "x=1; a=(p q); f() { echo f$x; }; cd /tmp; umask 027; echo one > log; exec 3>>log; exec 4<log; read line <&4; \
                  echo secret > orphan; exec 5<orphan; rm orphan; mkdir -p ~/d; ln -s d ~/link; echo hi > ~/d/hi; chmod 640 ~/d/hi; \
                  ln ~/d/hi ~/d/other; trap '' USR2; truncate -s 1M sparse; export E=e";
    output(&sandbox, script).await;
    sandbox
}

const LOOK: &str = "f; echo ${a[1]} $E; pwd; umask; cat ~/link/hi; stat -c '%a %h' ~/d/hi; trap -p; stat -c %s sparse; ls -l ~ /tmp";

#[tokio::test]
async fn everything_goes_along() {
    let sandbox = original().await;
    let before = output(&sandbox, LOOK).await;
    let usage = sandbox.machine().tree().await.usage();
    let archive = sandbox.export().await.unwrap();
    let copy = self::sandbox().await;
    output(&copy, "y=here; echo other > /tmp/other; sleep 1000 &").await;
    copy.import(archive.clone()).await.unwrap();
    assert_eq!(output(&copy, LOOK).await, before);
    assert_eq!(output(&copy, "echo ${y-unset}; ls /tmp").await, "unset\nlog\nsparse\n");
    assert_eq!(copy.machine().tree().await.usage(), usage);
    assert_eq!(copy.machine().census().processes, 1);
    output(&copy, "echo two >&3; read -r next <&4; [[ $next = two ]]").await;
    assert_eq!(output(&copy, "cat log; cat <&5").await, "one\ntwo\nsecret\n");
    assert_eq!(copy.history().len(), sandbox.history().len() + 4);
    assert_eq!(output(&sandbox, "cat /tmp/log").await, "one\n", "the original knows nothing of it");
    // Out, in and out again is the same.
    let again = self::sandbox().await;
    again.import(archive).await.unwrap();
    again.fork().await.unwrap().import(again.export().await.unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_damaged_archive_is_an_error_and_changes_nothing() {
    let archive = original().await.export().await.unwrap();
    let target = sandbox().await;
    output(&target, "x=mine; echo mine > /tmp/mine").await;
    let usage = target.machine().tree().await.usage();
    let mut damaged: Vec<(String, Vec<u8>)> = Vec::new();
    for length in [0, 1, 7, 8, 20, 51, 52, 60, archive.len() / 2, archive.len() - 1] {
        damaged.push((format!("cut to {length}"), archive[..length].to_vec()));
    }
    for at in (0..archive.len()).step_by(archive.len() / 200) {
        let mut flipped = archive.clone();
        flipped[at] ^= 0x10;
        damaged.push((format!("byte {at} flipped"), flipped));
    }
    damaged.push(("longer".into(), [&archive[..], b"x"].concat()));
    damaged.push(("foreign".into(), b"PK\x03\x04 something else entirely".to_vec()));
    for (what, archive) in damaged {
        assert!(matches!(target.import(archive.clone()).await, Err(Error::Archive(_))), "{what}");
        assert!(matches!(target.import_files(archive).await, Err(Error::Archive(_))), "{what}");
    }
    assert_eq!(target.machine().tree().await.usage(), usage);
    assert_eq!(output(&target, "echo $x; ls /tmp").await, "mine\nmine\n");
}

/// An archive of Wardian's with other contents, made to look whole.
fn resealed(archive: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let mut body = zstd::decode_all(&archive[52..]).unwrap();
    change(&mut body);
    let payload = zstd::encode_all(&body[..], 1).unwrap();
    [&archive[..12], &(payload.len() as u64).to_le_bytes(), &Sha256::digest(&payload), &payload].concat()
}

/// The rest of an archive's body, read piece by piece.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn number(&mut self) -> u64 {
        let (number, rest) = self.0.split_at(8);
        self.0 = rest;
        u64::from_le_bytes(number.try_into().unwrap())
    }

    fn bytes(&mut self) {
        let length = usize::try_from(self.number()).unwrap();
        self.0 = &self.0[length..];
    }

    fn shell(&mut self) {
        // Programs, variables, directory, umask, signals.
        self.bytes();
        for _ in 0..self.number() {
            self.bytes();
        }
        self.bytes();
        self.number();
        self.bytes();
        for _ in 0..self.number() {
            self.descriptor();
        }
        // Size of the memory, stack pointer, pages.
        self.number();
        self.number();
        let pages = usize::try_from(self.number()).unwrap();
        self.0 = &self.0[pages * (4 + 4096)..];
    }

    fn descriptor(&mut self) {
        self.number();
        self.number();
        if self.number() < 2 {
            self.number();
        } else {
            for _ in 0..3 {
                self.number();
            }
            self.bytes();
        }
    }

    fn history(&mut self) {
        self.number();
        for _ in 0..self.number() {
            self.number();
            self.number();
            self.bytes();
        }
    }
}

/// An archive as version 1 wrote it: nothing about interpreters between the history and the files.
fn of_version_1(archive: &[u8]) -> Vec<u8> {
    let mut old = resealed(archive, |body| {
        let mut rest = Rest(body);
        rest.shell();
        rest.history();
        let at = body.len() - rest.0.len();
        assert_eq!(rest.number(), 0, "it has no interpreters");
        body.drain(at..at + 8);
    });
    old[8..12].copy_from_slice(&1u32.to_le_bytes());
    old
}

#[tokio::test]
async fn an_archive_of_version_1_is_read() {
    let sandbox = original().await;
    let before = output(&sandbox, LOOK).await;
    let old = of_version_1(&sandbox.export().await.unwrap());
    let copy = self::sandbox().await;
    copy.import(old.clone()).await.unwrap();
    assert_eq!(output(&copy, LOOK).await, before);
    assert_eq!(output(&copy, "cat log; cat <&5").await, "one\nsecret\n");
    // Its number decides how it is read.
    let mut wrong = old.clone();
    wrong[8] = 2;
    assert!(matches!(copy.import(wrong).await, Err(Error::Archive(_))));
    let files = self::sandbox().await;
    files.import_files(old).await.unwrap();
    assert_eq!(output(&files, "cat ~/d/hi").await, "hi\n");
}

/// Changes a few places of an archive: the same for the same seed.
fn garble(body: &mut Vec<u8>, seed: usize) {
    for change in 0..=random(seed) % 3 {
        let chance = random(seed * 8 + change);
        // The shell and the first files: what lies behind is much of a kind.
        let at = (chance >> 8) % body.len().min(400_000);
        let end = (at + 1 + (chance >> 40) % 600).min(body.len());
        match chance % 6 {
            0 => body[at] = body[at].wrapping_add(1 + (chance >> 3) as u8 % 255),
            1 => body.truncate(at.max(1)),
            2 => drop(body.drain(at..end)),
            3 => {
                let again = body[at..end].to_vec();
                body.splice(at..at, again);
            }
            4 => {
                // A number, if there is one here, that is as large as can be, or nothing, or negative.
                let number = [u64::MAX, 0, 1 << 63, 1 << 32][(chance >> 3) % 4].to_le_bytes();
                let end = (at + 8).min(body.len());
                body[at..end].copy_from_slice(&number[..end - at]);
            }
            _ => body[at..end].fill(b'/'),
        }
    }
}

/// `cargo xtask fuzz archive` goes on for longer.
#[tokio::test]
async fn archives_that_lie_are_refused() {
    let seconds = std::env::var("WARDIAN_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let archive = original().await.export().await.unwrap();
    let good = sandbox().await.export().await.unwrap();
    let target = sandbox().await;
    let usage = target.machine().tree().await.usage();
    let start = std::time::Instant::now();
    let more = |number| match seconds {
        Some(seconds) => start.elapsed().as_secs() < seconds,
        None => number < 300,
    };
    let mut taken = 0;
    for number in (0..).take_while(|number| more(*number)) {
        let lying = resealed(&archive, |body| garble(body, number));
        // Some bytes mean nothing to us, a letter of a variable's value; but never a crash, and never half of it.
        if target.import(lying).await.is_err() {
            assert_eq!(target.machine().tree().await.usage(), usage, "archive {number}");
            continue;
        }
        taken += 1;
        target.machine().tree().await.fsck().unwrap();
        let run = Run::new("echo whatever").timeout(Some(Duration::from_secs(2)));
        target.run_with(run).await.unwrap();
        target.import(good.clone()).await.unwrap();
    }
    assert!(taken > 0 || seconds.is_some(), "all were refused: nothing was tried behind the first check");
    let huge = resealed(&archive, |body| body[..8].copy_from_slice(&u64::MAX.to_le_bytes()));
    assert!(matches!(target.import(huge).await, Err(Error::Archive(_))));
}

#[tokio::test]
async fn other_programs_are_refused_but_their_files_can_be_had() {
    let archive = original().await.export().await.unwrap();
    let other = resealed(&archive, |body| body[8] = if body[8] == b'0' { b'1' } else { b'0' });
    let target = sandbox().await;
    output(&target, "x=mine; echo mine > /tmp/mine").await;
    let message = target.import(other.clone()).await.err().unwrap().to_string();
    assert!(message.contains("different guest programs") && message.contains("files alone"), "{message}");
    target.import_files(other).await.unwrap();
    assert_eq!(output(&target, "echo $x; cat /tmp/mine ~/d/hi").await, "mine\nmine\nhi\n");
}

#[tokio::test]
async fn an_archive_must_fit() {
    let archive = {
        let sandbox = sandbox().await;
        output(&sandbox, "head -c 100000 /dev/urandom > ~/big; x=$(head -c 3000000 /dev/zero | tr '\\0' x)")
            .await;
        sandbox.export().await.unwrap()
    };
    for limits in
        [Limits { fs_bytes: 50_000, ..Limits::default() }, Limits { file_count: 0, ..Limits::default() }]
    {
        let target = Sandbox::builder().limits(limits).build().await.unwrap();
        let error = target.import(archive.clone()).await.err().unwrap();
        assert!(matches!(error, Error::Archive(_)), "{error}");
        assert_eq!(target.machine().tree().await.usage().inodes, 0);
    }
}

#[tokio::test]
async fn an_archive_cannot_put_anything_where_a_guest_could_not() {
    let archive = sandbox().await.export().await.unwrap();
    for path in ["bin/ls", "etc/passwd", "usr/bin/new", "../escape", "/abs/../../x", "proc/self/mem"] {
        let lying = resealed(&archive, |body| {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_ustar();
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(4);
            header.set_mode(0o4755);
            header.set_uid(0);
            header.set_gid(0);
            header.set_cksum();
            builder.append(&header, &b"evil"[..]).unwrap();
            // What was there is an empty tar: two blocks of zeros.
            body.truncate(body.len() - 1024);
            body.extend(builder.into_inner().unwrap());
        });
        let target = sandbox().await;
        assert!(matches!(target.import(lying.clone()).await, Err(Error::Archive(_))), "{path}");
        assert!(target.import_files(lying).await.is_err(), "{path}");
        assert_eq!(
            run(&target, "ls /bin/ls /etc/passwd && [ ! -e /usr/bin/new ] && [ ! -e /escape ]")
                .await
                .exit_code,
            0
        );
    }
}

/// An archive whose body is written as it is compressed: bombs do not fit into memory.
fn sealed(head: &[u8], write: impl FnOnce(&mut dyn std::io::Write)) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    write(&mut encoder);
    let payload = encoder.finish().unwrap();
    [&head[..12], &(payload.len() as u64).to_le_bytes(), &Sha256::digest(&payload), &payload].concat()
}

/// Numbers and lengths are written like this.
fn put(out: &mut dyn std::io::Write, numbers: &[u64]) {
    numbers.iter().for_each(|number| out.write_all(&number.to_le_bytes()).unwrap());
}

const MIB: u64 = 1 << 20;

fn zeros(out: &mut dyn std::io::Write, mib: u64) {
    (0..mib).for_each(|_| out.write_all(&[0; MIB as usize]).unwrap());
}

/// A way to say a lot in few bytes; each comes to gigabytes, or would if it were believed.
pub type Bomb = (&'static str, fn(&mut dyn std::io::Write));

/// What stands between the programs and the files of an archive that has nothing in it.
const EMPTY_SHELL: [u64; 11] = [0, 0, 0o22, 0, 0, 0, 0, 0, 0, 0, 0];

fn tar_header(name: &str, kind: u8, size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(size);
    header.set_mode(0o755);
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_cksum();
    header.as_bytes().to_vec()
}

pub const BOMBS: [Bomb; 9] = [
    ("an environment", |out| {
        put(out, &[250]);
        for _ in 0..250 {
            put(out, &[4 * MIB]);
            zeros(out, 4);
        }
    }),
    ("an environment of empty strings", |out| {
        put(out, &[1 << 40]);
        zeros(out, 400);
    }),
    ("descriptors", |out| {
        put(out, &[0, 0, 0o22, 0, 1 << 40]);
        zeros(out, 400);
    }),
    ("removed files that are open", |out| {
        put(out, &[0, 0, 0o22, 0, 40]);
        for number in 0..40 {
            put(out, &[number, 0, 3, number, 0, 0, 30 * MIB]);
            zeros(out, 30);
        }
    }),
    ("memory", |out| {
        put(out, &[0, 0, 0o22, 0, 0, 4 << 30, 0, 1 << 20]);
        zeros(out, 1024);
    }),
    ("a history", |out| {
        put(out, &[0, 0, 0o22, 0, 0, 0, 0, 0, 20, 20]);
        for number in 0..20 {
            put(out, &[number, number, 60 * MIB]);
            zeros(out, 60);
        }
    }),
    ("empty files", |out| {
        put(out, &EMPTY_SHELL);
        for number in 0..2_000_000 {
            out.write_all(&tar_header(&format!("tmp/{number}"), b'0', 0)).unwrap();
        }
    }),
    ("one directory again and again", |out| {
        put(out, &EMPTY_SHELL);
        let header = tar_header("tmp/d/", b'5', 0);
        (0..2_000_000).for_each(|_| out.write_all(&header).unwrap());
    }),
    ("a file over and over", |out| {
        put(out, &EMPTY_SHELL);
        for _ in 0..60 {
            out.write_all(&tar_header("tmp/f", b'0', 20 * MIB)).unwrap();
            zeros(out, 20);
        }
    }),
];

/// An archive whose import goes on until the quota ends it.
async fn long_to_import(target: &Sandbox) -> Vec<u8> {
    let good = target.export().await.unwrap();
    let body = zstd::decode_all(&good[52..]).unwrap();
    let programs = u64::from_le_bytes(body[..8].try_into().unwrap());
    sealed(&good, |out| {
        out.write_all(&body[..8 + programs as usize]).unwrap();
        put(out, &EMPTY_SHELL);
        let header = tar_header("tmp/f", b'0', 0);
        (0..600_000).for_each(|_| out.write_all(&header).unwrap());
    })
}

#[tokio::test]
async fn an_import_can_be_cancelled_and_ends_with_its_sandbox() {
    let target = sandbox().await;
    output(&target, "x=mine; echo mine > /tmp/mine").await;
    let archive = long_to_import(&target).await;
    for files_alone in [false, true] {
        let (target, archive) = (target.clone(), archive.clone());
        let importing = {
            let target = target.clone();
            tokio::spawn(async move {
                if files_alone { target.import_files(archive).await } else { target.import(archive).await }
            })
        };
        while !target.is_running() && !importing.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(target.cancel());
        assert_eq!(importing.await.unwrap().unwrap_err().errno(), Some(Errno::ECANCELED), "{files_alone}");
        assert!(!target.is_running());
        assert_eq!(output(&target, "echo $x; ls /tmp").await, "mine\nmine\n");
    }
    let importing = {
        let target = target.clone();
        tokio::spawn(async move { target.import(archive).await })
    };
    while !target.is_running() && !importing.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    target.destroy().await;
    assert!(matches!(importing.await.unwrap(), Err(Error::Destroyed)));
}

#[tokio::test]
async fn a_tree_too_deep_for_an_archive_is_an_error_with_the_path() {
    let sandbox = sandbox().await;
    {
        let machine = sandbox.machine();
        let mut tree = machine.tree().await;
        let mut place = tree.lookup(&Caller::USER, &tree.root(), b"/tmp", true).unwrap();
        for _ in 0..5000 {
            tree.mkdir(&Caller::USER, &place, b"d", 0o755).unwrap();
            place = tree.lookup(&Caller::USER, &place, b"d", false).unwrap();
        }
    }
    let error = sandbox.export().await.unwrap_err();
    assert_eq!(error.errno(), Some(Errno::ENAMETOOLONG), "{error}");
    let text = error.to_string();
    assert!(text.contains(" /tmp/d/d/d/") && text.len() < 300, "{text}");
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// An archive that this sandbox might have written, up to where the bomb begins.
pub async fn armed(target: &Sandbox, (_, write): Bomb) -> Vec<u8> {
    let good = target.export().await.unwrap();
    let programs = u64::from_le_bytes(zstd::decode_all(&good[52..]).unwrap()[..8].try_into().unwrap());
    let head = zstd::decode_all(&good[52..]).unwrap()[..8 + programs as usize].to_vec();
    sealed(&good, |out| {
        out.write_all(&head).unwrap();
        write(out);
    })
}

/// In a process of its own, since the peak of memory is the process's.
#[tokio::test]
#[ignore = "not a test: what the test of bombs starts"]
async fn bomb_child() {
    let Ok(number) = std::env::var("WARDIAN_BOMB") else { return };
    let bomb = BOMBS[number.parse::<usize>().unwrap()];
    let what = bomb.0;
    let limits = Limits { fs_bytes: 32 * MIB, memory_bytes: 32 * MIB, ..Limits::default() };
    let target = Sandbox::builder().limits(limits).build().await.unwrap();
    output(&target, "x=mine").await;
    let bomb = armed(&target, bomb).await;
    // Forgets what was the peak until now.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    let error = target.import(bomb.clone()).await.err().map(|error| error.to_string());
    let error_of_files = target.import_files(bomb.clone()).await.err().map(|error| error.to_string());
    let grown = status("VmHWM:").saturating_sub(before);
    println!("{what}: {} bytes, at most {} MiB more, {error:?}, {error_of_files:?}", bomb.len(), grown / MIB);
    assert!(error.is_some() && error_of_files.is_some(), "{what} was taken");
    // Both limits, what removed files that are open take once more, and the allowance: see `budget.rs`.
    assert!(grown < (32 + 32 + 32 + 128) * MIB, "{what}: {} MiB", grown / MIB);
    assert_eq!(output(&target, "echo $x; ls /tmp").await, "mine\n", "{what}");
}

#[test]
fn bombs_stay_within_the_limits() {
    for (number, bomb) in BOMBS.iter().enumerate() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["archives::bomb_child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env("WARDIAN_BOMB", number.to_string())
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        println!("{text}");
        assert!(output.status.success(), "{}: {text}", bomb.0);
    }
}
