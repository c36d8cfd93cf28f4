//! The log stopped after every byte and step of what it does to the disk, and opened again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::disk::Disk;
use super::disk::fault::{Fault, Kind};
use super::{AuditLog, Rotation, VerifyError, repair_audit, verify_audit};

/// Small enough that most records begin a new file, and old ones go.
const ROTATION: Rotation = Rotation { max_bytes: 600, kept: 2 };
const PLENTY: usize = 1 << 20;

/// In memory where there is such a place: thousands are needed.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn failing(kind: Kind, budget: usize) -> (Disk, Arc<Fault>) {
    let fault = Arc::new(Fault::after(kind, budget));
    (Disk::failing(fault.clone()), fault)
}

/// Writes records `from..to` until one is not taken. Returns those that were acknowledged.
fn write(log: &AuditLog, names: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    for name in names {
        match log.record(&name.to_string(), "test", Map::new()) {
            Ok(()) => acknowledged.push(name),
            Err(_) => break,
        }
    }
    acknowledged
}

/// All records of a log, the oldest first, as (session, event, data).
fn records(file: &Path) -> Vec<(String, String, Value)> {
    let mut files: Vec<PathBuf> = super::file::parts(file).into_iter().map(|(_, part)| part).collect();
    files.reverse();
    files.push(file.to_owned());
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let text_of = |value: &Value| value.as_str().unwrap().to_owned();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|record| (text_of(&record["session"]), text_of(&record["event"]), record["data"].clone()))
        .collect()
}

/// The log can be continued and is whole; it ends with the acknowledged records, but for those rotation let go, and
/// everything that was set aside is told of.
fn assert_recovered(file: &Path, acknowledged: &[u64], what: &str) {
    let log = AuditLog::to_file(file, ROTATION).unwrap_or_else(|error| panic!("{what}: {error}"));
    log.record("last", "test", Map::new()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let verified = verify_audit(file).unwrap_or_else(|error| panic!("{what}: {error}"));
    let there = records(file);
    assert_eq!(there.len() as u64, verified.records, "{what}");
    let names: Vec<u64> = there.iter().filter_map(|(session, ..)| session.parse().ok()).collect();
    assert!(names.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{what}: {names:?}");
    let kept = acknowledged.iter().filter(|name| names.first().is_some_and(|first| *name >= first));
    assert!(kept.clone().all(|name| names.contains(name)), "{what}: {names:?} of {acknowledged:?}");
    let last = acknowledged.last().copied().unwrap_or(0);
    let let_go = verified.first > 1 && names.first().is_some_and(|first| *first > last);
    assert!(last == 0 || let_go || names.contains(&last), "{what}: {names:?} of {acknowledged:?}");
    let told: Vec<(String, u64)> = there.iter().filter(|(_, event, _)| event == "log.recovered").fold(
        Vec::new(),
        |mut told, (_, _, data)| {
            for aside in data["setAside"].as_array().into_iter().flatten() {
                told.push((aside["file"].as_str().unwrap().to_owned(), aside["bytes"].as_u64().unwrap()));
            }
            told
        },
    );
    for entry in std::fs::read_dir(file.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.contains(".torn-") && verified.first == 1 {
            let length = entry.metadata().unwrap().len();
            assert!(told.contains(&(name.clone(), length)), "{what}: nothing reports {name}: {told:?}");
        }
    }
}

/// How much a run takes that nothing stops.
fn cost(records: u64) -> usize {
    let directory = directory();
    let (disk, fault) = failing(Kind::Killed, PLENTY);
    let log = AuditLog::on_disk(&directory.path().join("audit"), ROTATION, disk).unwrap();
    assert_eq!(write(&log, 1..=records).len() as u64, records);
    PLENTY - fault.left()
}

fn crash(file: &Path, kind: Kind, budget: usize, names: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let (disk, _) = failing(kind, budget);
    match AuditLog::on_disk(file, ROTATION, disk) {
        Ok(log) => write(&log, names),
        Err(_) => Vec::new(),
    }
}

#[test]
fn interrupted_anywhere_a_log_continues_with_all_acknowledged_records() {
    const RECORDS: u64 = 9;
    for kind in [Kind::Killed, Kind::Full] {
        for budget in 0..=cost(RECORDS) {
            let directory = directory();
            let file = directory.path().join("audit");
            let acknowledged = crash(&file, kind, budget, 1..=RECORDS);
            assert_recovered(&file, &acknowledged, &format!("{kind:?} after {budget}"));
        }
    }
}

#[test]
fn an_interrupted_recovery_can_be_repeated() {
    // After each of these something else must be recovered: a torn record, a head behind, a rotation.
    let all = cost(5);
    for (number, first) in (0..all).step_by(37).enumerate() {
        for second in (number % 19..1200).step_by(19) {
            let directory = directory();
            let file = directory.path().join("audit");
            let mut acknowledged = crash(&file, Kind::Killed, first, 1..=5);
            let next = records_named(&file, &acknowledged);
            acknowledged.extend(crash(&file, Kind::Killed, second, next..next + 2));
            assert_recovered(&file, &acknowledged, &format!("killed after {first}, then after {second}"));
        }
    }
}

/// The name for the next record: one that was complete but not acknowledged counts, as recovery finds it.
fn records_named(file: &Path, acknowledged: &[u64]) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let complete = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let names = complete
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?["session"].as_str()?.parse().ok());
    names.chain(acknowledged.iter().copied()).max().unwrap_or(0) + 1
}

#[test]
fn a_full_disk_is_a_gap_that_the_log_reports_once_there_is_space() {
    let directory = directory();
    let file = directory.path().join("audit");
    let (disk, fault) = failing(Kind::Full, PLENTY);
    let log = AuditLog::on_disk(&file, Rotation::default(), disk).unwrap();
    assert_eq!(write(&log, 1..=2), [1, 2]);
    for budget in [0, 1, 100] {
        fault.refill(budget);
        assert!(write(&log, 3..=4).is_empty());
        assert!(log.check().is_err());
        assert_eq!(verify_audit(&file).unwrap().last, 2, "what was not taken is not half there");
    }
    fault.refill(PLENTY);
    assert!(log.check().is_ok());
    assert_eq!(write(&log, 5..=5), [5]);
    verify_audit(&file).unwrap();
    let there = records(&file);
    assert_eq!(there[2].1, "log.lost");
    assert_eq!(there[2].2["records"], 3);
    assert!(there[2].2["why"].as_str().unwrap().contains("audit"), "{there:?}");
    assert_eq!(there[3].0, "5");
}

#[test]
fn writers_recover_what_another_left_in_their_own_turn() {
    const WRITERS: u64 = 3;
    let directory = directory();
    let file = directory.path().join("audit");
    let rotation = Rotation { max_bytes: 3000, kept: 1000 };
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let file = file.clone();
            std::thread::spawn(move || {
                let log = AuditLog::to_file(&file, rotation).unwrap();
                for name in 0..60 {
                    // A neighbour that dies at some byte of its record, whatever that is.
                    let (disk, _) = failing(Kind::Killed, (writer as usize * 131 + name as usize * 17) % 700);
                    drop(AuditLog::on_disk(&file, rotation, disk).map(|log| write(&log, [7000])));
                    log.record(&(writer * 1000 + name).to_string(), "test", Map::new()).unwrap();
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    AuditLog::to_file(&file, rotation).unwrap();
    verify_audit(&file).unwrap();
    let there = records(&file);
    for writer in 0..WRITERS {
        let own = |(name, ..): &(String, String, Value)| {
            name.parse::<u64>().ok().filter(|name| name / 1000 == writer)
        };
        let own: Vec<u64> = there.iter().filter_map(own).collect();
        assert_eq!(own, (0..60).map(|name| writer * 1000 + name).collect::<Vec<_>>());
    }
    assert!(there.iter().any(|(_, event, data)| event == "log.recovered" && data["setAside"].is_array()));
}

/// A log of four records, whose files repair must not touch.
fn written() -> (tempfile::TempDir, PathBuf) {
    let directory = directory();
    let file = directory.path().join("audit");
    assert_eq!(write(&AuditLog::to_file(&file, Rotation::default()).unwrap(), 1..=4).len(), 4);
    (directory, file)
}

#[test]
fn repair_completes_what_was_interrupted() {
    let (_directory, file) = written();
    assert!(repair_audit(&file).unwrap().0.is_nothing());
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&whole[..], b"{\"hash\":\"12"].concat()).unwrap();
    assert!(matches!(verify_audit(&file), Err(VerifyError::Interrupted { .. })));
    let (repaired, verified) = repair_audit(&file).unwrap();
    assert_eq!(repaired.set_aside, [file.with_extension("torn-5")]);
    assert_eq!(std::fs::read(&repaired.set_aside[0]).unwrap(), b"{\"hash\":\"12");
    assert_eq!(verified.last, 5);
    assert_eq!(records(&file)[4].2["setAside"][0]["bytes"], 11);
    assert_eq!(records(&file)[4].2["setAside"][0]["sha256"], super::hash(b"{\"hash\":\"12").as_str());

    let head = std::fs::read(file.with_extension("head")).unwrap();
    assert_eq!(write(&AuditLog::to_file(&file, Rotation::default()).unwrap(), [6]), [6]);
    std::fs::write(file.with_extension("head"), head).unwrap();
    assert!(matches!(verify_audit(&file), Err(VerifyError::Interrupted { .. })));
    assert_eq!(repair_audit(&file).unwrap().0.adopted, Some(6));
    verify_audit(&file).unwrap();

    for damage in [None, Some(vec![b'x'; 1000]), Some(vec![0; 290]), Some(Vec::new())] {
        match &damage {
            None => std::fs::remove_file(file.with_extension("head")).unwrap(),
            Some(damage) => std::fs::write(file.with_extension("head"), damage).unwrap(),
        }
        assert!(matches!(verify_audit(&file), Err(VerifyError::Missing { .. } | VerifyError::Io { .. })));
        assert!(
            AuditLog::to_file(&file, Rotation::default()).is_err(),
            "only a person can say that this is fine"
        );
        let (repaired, _) = repair_audit(&file).unwrap();
        assert!(repaired.head_rebuilt);
        assert_eq!(repaired.set_aside.len(), usize::from(damage.is_some_and(|damage| !damage.is_empty())));
        assert_eq!(records(&file).last().unwrap().2["head"], "rebuilt");
        verify_audit(&file).unwrap();
    }
}

#[test]
fn repair_refuses_edits_gaps_and_truncations_and_touches_nothing() {
    let (directory, file) = written();
    let whole = std::fs::read(&file).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    let edited = String::from_utf8(whole.clone()).unwrap().replace("\"session\":\"2\"", "\"session\":\"3\"");
    let wrongs: [(&str, Vec<u8>, &str); 6] = [
        ("an edit", edited.into_bytes(), "line 2: was changed"),
        ("a gap", [lines[0], lines[2], lines[3]].concat(), "line 2: is record 3, after record 1"),
        ("a truncation", lines[..3].concat(), "ends with record 3, but should with 4"),
        ("a truncation inside a record", whole[..whole.len() - 9].to_vec(), "line 4: is truncated"),
        ("one at the beginning", lines[1..].concat(), "begins with record 2, but should with 1"),
        ("an edit before a torn record", [b"{}\n", lines[1], b"{\"ha"].concat(), "line 1: is not a record"),
    ];
    for (what, content, message) in wrongs {
        std::fs::write(&file, &content).unwrap();
        let head = std::fs::read(file.with_extension("head")).unwrap();
        for error in [verify_audit(&file).unwrap_err(), repair_audit(&file).unwrap_err()] {
            assert!(error.to_string().ends_with(message), "{what}: {error}");
        }
        assert!(AuditLog::to_file(&file, Rotation::default()).is_err(), "{what}");
        assert_eq!(std::fs::read(&file).unwrap(), content, "{what}");
        assert_eq!(std::fs::read(file.with_extension("head")).unwrap(), head, "{what}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "{what}: nothing is set aside");
    }
    assert!(matches!(repair_audit(directory.path().join("none")), Err(VerifyError::Io { .. })));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "no head for what is not a log");
}

#[test]
fn a_head_without_slots_is_gone_on_with() {
    let (_directory, file) = written();
    let text = std::fs::read_to_string(&file).unwrap();
    let hash = |line: &str| serde_json::from_str::<Value>(line).unwrap()["hash"].as_str().unwrap().to_owned();
    let old = |last: usize| format!("{:020} {last:020} {}\n", 1, hash(text.lines().nth(last - 1).unwrap()));
    std::fs::write(file.with_extension("head"), old(4)).unwrap();
    assert_eq!(verify_audit(&file).unwrap().last, 4);
    assert_eq!(write(&AuditLog::to_file(&file, Rotation::default()).unwrap(), [5]), [5]);
    assert_eq!(verify_audit(&file).unwrap().last, 5);
    // It must be what it says, like any other.
    std::fs::write(&file, text.split_inclusive('\n').take(3).collect::<String>()).unwrap();
    std::fs::write(file.with_extension("head"), old(4)).unwrap();
    assert!(repair_audit(&file).is_err());
}
