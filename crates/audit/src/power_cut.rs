//! The power cut at any moment: the log is opened again with whatever may have reached the disk by then.
//!
//! A tape has everything that was done to the disk. What a cut leaves is made from it by the rules that file systems
//! keep: what was synced is there; of names, what was done since the last sync is there up to some step; of a file's bytes,
//! any of the sectors written since may be there, with zeros or what was there before in the place of the others; and it
//! may be shorter.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::disk::Disk;
use super::head::{Found, read};
use super::{AuditLog, Rotation, verify_audit};

const SECTOR: usize = 512;

/// Something that was done to the disk.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A file was given a name, unless it had it before.
    Create(PathBuf, u64),
    Write(u64, u64, Vec<u8>),
    SetLen(u64, u64),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    Sync(u64),
    SyncNames,
}

/// All that was done to the disk in one boot of the machine.
pub(crate) struct Tape {
    boot: String,
    events: Mutex<Vec<Event>>,
}

pub(super) fn number_of(file: &File) -> u64 {
    file.metadata().expect("an open file").ino()
}

pub(super) fn length_of(file: &File) -> u64 {
    file.metadata().expect("an open file").len()
}

impl Tape {
    fn new(boot: u64) -> Arc<Tape> {
        Arc::new(Tape { boot: format!("{boot:08}-0000-4000-8000-000000000000"), events: Mutex::default() })
    }

    pub(super) fn boot(&self) -> &str {
        &self.boot
    }

    pub(super) fn add(&self, event: Event) {
        self.events.lock().push(event);
    }

    fn len(&self) -> usize {
        self.events.lock().len()
    }
}

/// Random numbers that are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

/// A file, as it is on the disk for sure and as programs see it.
#[derive(Clone, Default)]
struct Contents {
    safe: Vec<u8>,
    seen: Vec<u8>,
    /// Sectors written since the last sync, in order.
    sectors: Vec<(usize, Vec<u8>)>,
}

impl Contents {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        self.seen.resize(self.seen.len().max(end), 0);
        self.seen[at..end].copy_from_slice(bytes);
        for sector in at / SECTOR..end.div_ceil(SECTOR) {
            let whole = &self.seen[sector * SECTOR..self.seen.len().min((sector + 1) * SECTOR)];
            self.sectors.push((sector, whole.to_vec()));
        }
    }

    fn set_len(&mut self, length: usize) {
        self.seen.resize(length, 0);
        self.sectors.retain(|(sector, _)| sector * SECTOR < length);
    }

    fn sync(&mut self) {
        self.safe.clone_from(&self.seen);
        self.sectors.clear();
    }

    /// What a cut may leave of it.
    fn left(&self, dice: &mut Dice) -> Vec<u8> {
        let (mut left, all) = (self.safe.clone(), dice.roll(3) == 0);
        for (sector, bytes) in &self.sectors {
            if all || dice.roll(2) == 0 {
                let at = sector * SECTOR;
                left.resize(left.len().max(at + bytes.len()), 0);
                left[at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
        // It was made shorter, and that may or may not have reached the disk.
        if self.seen.len() < self.safe.len() && dice.roll(2) == 0 {
            left.truncate(self.seen.len());
        }
        left
    }
}

/// The disk after the first `cut` events, as a directory.
fn after_cut(before: &Path, tape: &Tape, cut: usize, dice: &mut Dice) -> tempfile::TempDir {
    let mut files: BTreeMap<u64, Contents> = BTreeMap::new();
    let mut names: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for entry in std::fs::read_dir(before).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        let number = entry.metadata().unwrap().ino() | 1 << 63;
        files.insert(number, Contents { safe: bytes.clone(), seen: bytes, sectors: Vec::new() });
        names.insert(entry.file_name().into(), number);
    }
    // A tape knows the files by numbers of its own: those that were there before are found by their names.
    let mut known: BTreeMap<u64, u64> = BTreeMap::new();
    let name = |path: &Path| PathBuf::from(path.file_name().unwrap());
    let (mut safe_names, mut steps) = (names.clone(), Vec::new());
    for event in &tape.events.lock()[..cut] {
        match event {
            Event::Create(path, number) => {
                let own = *names.entry(name(path)).or_insert(*number);
                known.insert(*number, own);
                files.entry(own).or_default();
                steps.push(names.clone());
            }
            Event::Rename(from, to) => {
                let number = names.remove(&name(from)).unwrap();
                names.insert(name(to), number);
                steps.push(names.clone());
            }
            Event::Remove(path) => {
                names.remove(&name(path));
                steps.push(names.clone());
            }
            Event::SyncNames => {
                safe_names.clone_from(&names);
                steps.clear();
            }
            Event::Write(number, at, bytes) => {
                files.get_mut(&known[number]).unwrap().write(*at as usize, bytes);
            }
            Event::SetLen(number, length) => {
                let own = known.get(number).copied().unwrap_or_else(|| names[Path::new("audit")]);
                files.get_mut(&own).unwrap().set_len(*length as usize);
            }
            Event::Sync(number) => files.get_mut(&known[number]).unwrap().sync(),
        }
    }
    steps.insert(0, safe_names);
    let names = &steps[dice.roll(steps.len())];
    let after = directory();
    for (name, number) in names {
        std::fs::write(after.path().join(name), files[number].left(dice)).unwrap();
    }
    after
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// All records of a log, the oldest first.
fn records(file: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> = super::file::parts(file).into_iter().map(|(_, part)| part).collect();
    files.reverse();
    files.push(file.to_owned());
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Writes records with these names, as one boot of the machine. Returns the tape, and after how many of
/// its events each record was acknowledged.
fn boot(
    file: &Path,
    number: u64,
    names: std::ops::Range<u64>,
    rotation: Rotation,
) -> (Arc<Tape>, Vec<(u64, usize)>) {
    let tape = Tape::new(number);
    let log = AuditLog::on_disk(file, rotation, Disk::taped(tape.clone())).unwrap();
    let mut acknowledged = Vec::new();
    for name in names {
        let mut data = Map::new();
        data.insert("text".into(), "x".repeat(name as usize * 37 % 300).into());
        log.record(&name.to_string(), "test", data).unwrap();
        acknowledged.push((name, tape.len()));
    }
    (tape, acknowledged)
}

/// Records that were acknowledged before a cut, and those of them that were synced then.
struct Known {
    names: Vec<u64>,
    synced: Vec<u64>,
}

impl Known {
    fn at(tape: &Tape, acknowledged: &[(u64, usize)], cut: usize) -> Known {
        let events = tape.events.lock();
        let is_log = |number: &u64| {
            let writes = |event: &Event| matches!(event, Event::Write(n, _, bytes) if n == number && bytes.starts_with(b"{"));
            events.iter().any(writes)
        };
        let sync = events[..cut].iter().rposition(|event| matches!(event, Event::Sync(n) if is_log(n)));
        let by = |end| acknowledged.iter().filter(move |(_, at)| *at <= end).map(|(name, _)| *name).collect();
        Known { names: by(cut), synced: by(sync.unwrap_or(0)) }
    }

    fn and(mut self, later: Known) -> Known {
        self.synced.extend(later.synced);
        self.names.extend(later.names);
        self
    }
}

/// The log goes on by itself. Every record that was synced is there, or let go by rotation. Others may be lost, the last
/// ones first; if the head knew of them, the log says so.
fn assert_whole(file: &Path, number: u64, known: &Known, rotation: Rotation, what: &str) {
    let head_file = file.with_extension("head");
    let listed = File::open(&head_file).ok().map(|head| read(&head).unwrap());
    let on_disk = std::fs::read_to_string(file).unwrap_or_default().lines().count() as u64;
    let tape = Tape::new(number);
    let log = AuditLog::on_disk(file, rotation, Disk::taped(tape)).unwrap_or_else(|e| panic!("{what}: {e}"));
    log.record("last", "test", Map::new()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let verified = verify_audit(file).unwrap_or_else(|e| panic!("{what}: {e}"));
    let there = records(file);
    assert_eq!(there.len() as u64, verified.records, "{what}");
    let names: Vec<u64> =
        there.iter().filter_map(|record| record["session"].as_str()?.parse().ok()).collect();
    assert!(names.is_sorted(), "{what}: {names:?}");
    let kept = |name: &u64| names.first().is_some_and(|first| name >= first) || verified.first == 1;
    let missing: Vec<u64> =
        known.names.iter().copied().filter(|name| kept(name) && !names.contains(name)).collect();
    assert!(missing.iter().all(|name| !known.synced.contains(name)), "{what}: {missing:?} were synced");
    let told = there.iter().any(|record| record["data"]["lost"].is_object());
    if let Some(Found::Written(head)) = listed
        && verified.first == 1
        && rotation.max_bytes > 10_000
    {
        assert!(
            told || head.last <= on_disk,
            "{what}: the head knew of record {}, the log has {on_disk}",
            head.last
        );
    }
    let aside = std::fs::read_dir(file.parent().unwrap()).unwrap();
    let aside = aside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for name in aside.filter(|name| name.contains(".torn-")) {
        let told =
            there.iter().flat_map(|record| record["data"]["setAside"].as_array().into_iter().flatten());
        assert!(
            verified.first > 1 || told.clone().any(|aside| aside["file"] == name.as_str()),
            "{what}: nothing reports {name}"
        );
    }
}

const ROTATIONS: [Rotation; 3] = [
    Rotation { max_bytes: 1 << 20, kept: 2 },
    Rotation { max_bytes: 1500, kept: 2 },
    Rotation { max_bytes: 1500, kept: 0 },
];

#[test]
fn after_a_power_failure_at_any_moment_a_log_continues_and_reports_what_is_lost() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut with_loss = 0;
    for rotation in ROTATIONS {
        let (empty, live) = (directory(), directory());
        let (tape, acknowledged) = boot(&live.path().join("audit"), 1, 1..20, rotation);
        for cut in 0..=tape.len() {
            let known = Known::at(&tape, &acknowledged, cut);
            for attempt in 0..8 {
                let after = after_cut(empty.path(), &tape, cut, &mut dice);
                let file = after.path().join("audit");
                let what = format!("{rotation:?}, cut after {cut}, attempt {attempt}");
                assert_whole(&file, 2, &known, rotation, &what);
                with_loss += usize::from(verify_audit(&file).unwrap().lost > 0);
            }
        }
    }
    assert!(with_loss > 100, "a cut often takes records: {with_loss}");
}

#[test]
fn a_second_power_cut_while_recovering_from_the_first_is_recovered_from_too() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    for rotation in ROTATIONS {
        let (empty, live) = (directory(), directory());
        let (tape, acknowledged) = boot(&live.path().join("audit"), 1, 1..14, rotation);
        for cut in (0..=tape.len()).step_by(3) {
            let once = after_cut(empty.path(), &tape, cut, &mut dice);
            // Recovered in a copy, with a tape of it.
            let work = directory();
            for entry in std::fs::read_dir(once.path()).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), work.path().join(entry.file_name())).unwrap();
            }
            let (second, later) = boot(&work.path().join("audit"), 2, 100..103, rotation);
            for again in 0..=second.len() {
                let twice = after_cut(once.path(), &second, again, &mut dice);
                let known = Known::at(&tape, &acknowledged, cut).and(Known::at(&second, &later, again));
                let what = format!("{rotation:?}, cut after {cut}, then after {again}");
                assert_whole(&twice.path().join("audit"), 3, &known, rotation, &what);
            }
        }
    }
}

#[test]
fn synced_records_stay_verified_after_a_restart() {
    let directory = directory();
    let file = directory.path().join("audit");
    // Not all of it: the last record could be lost.
    for name in 1.. {
        boot(&file, 1, name..name + 1, Rotation::default());
        let Found::Written(head) = read(&File::open(file.with_extension("head")).unwrap()).unwrap() else {
            panic!("no head");
        };
        if name >= 30 && head.synced + 100 < head.size {
            break;
        }
    }
    let whole = std::fs::read(&file).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    // Far more than was written since the last sync.
    let edited = String::from_utf8(whole.clone()).unwrap().replace("\"session\":\"3\"", "\"session\":\"4\"");
    for (what, content) in [
        ("a truncation", lines[..10].concat()),
        ("a truncation inside a record", lines[..10].concat()[..1000].to_vec()),
        ("an edit", edited.into_bytes()),
        ("a gap", [&lines[..3].concat()[..], &lines[4..].concat()].concat()),
    ] {
        std::fs::write(&file, content).unwrap();
        let later = AuditLog::on_disk(&file, Rotation::default(), Disk::taped(Tape::new(2)));
        assert!(later.is_err(), "{what} of synced records");
    }
    // In the same boot nothing is lost to the power: even the last record must be there.
    std::fs::write(&file, lines[..lines.len() - 1].concat()).unwrap();
    assert!(AuditLog::on_disk(&file, Rotation::default(), Disk::taped(Tape::new(1))).is_err());
    let later = AuditLog::on_disk(&file, Rotation::default(), Disk::taped(Tape::new(2))).unwrap();
    later.record("after", "test", Map::new()).unwrap();
    let told = &records(&file)[lines.len() - 1];
    assert_eq!(told["event"], "log.recovered");
    assert_eq!(told["data"]["lost"]["first"], lines.len());
    assert_eq!(told["data"]["lost"]["last"], lines.len());
    assert_eq!(verify_audit(&file).unwrap().lost, 1);
}
