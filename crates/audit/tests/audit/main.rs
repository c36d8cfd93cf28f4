//! Several writers of one log, and what becomes of a log that cannot be written. What one writer's log shows of edits is
//! tested with the sandbox, whose records it is made of there.

use serde_json::Map;
use wardian_audit::{AuditLog, Rotation, verify_audit};

#[test]
fn writers_that_do_not_know_of_each_other_take_turns() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit");
    let rotation = Rotation { max_bytes: 4000, kept: 3 };
    let writers: Vec<_> = (0..4)
        .map(|number| {
            // Each opens the file for itself, as another program would.
            let file = file.clone();
            std::thread::spawn(move || {
                let log = AuditLog::to_file(&file, rotation).unwrap();
                for _ in 0..50 {
                    log.record(&format!("writer {number}"), "test", Map::new()).unwrap();
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let checked = verify_audit(&file).unwrap();
    assert_eq!((checked.last, checked.files), (200, 4));
    AuditLog::to_file(&file, rotation).unwrap();
}

#[test]
fn a_log_that_was_opened_and_not_written_can_be_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit");
    drop(AuditLog::to_file(&file, Rotation::default()).unwrap());
    let log = AuditLog::to_file(&file, Rotation::default()).unwrap();
    log.record("", "test", Map::new()).unwrap();
    assert_eq!(verify_audit(&file).unwrap().last, 1);
}

#[test]
fn a_log_that_was_removed_takes_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit");
    let log = AuditLog::to_file(&file, Rotation::default()).unwrap();
    log.record("", "test", Map::new()).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(log.record("", "test", Map::new()).is_err());
    assert!(log.check().is_err());
    std::fs::write(&file, "").unwrap();
    assert!(log.record("", "test", Map::new()).is_err(), "not until that is looked into");
}
