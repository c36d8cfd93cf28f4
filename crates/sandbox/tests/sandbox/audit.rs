//! The record of what happened, and whether anyone could change it unseen.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wardian::{AuditLog, AuditRotation as Rotation, Limits, Run, Sandbox, verify_audit};

use crate::support::run;

async fn some_history(log: &AuditLog) -> Sandbox {
    let limits = Limits { command_bytes: 100, ..Limits::default() };
    let builder = Sandbox::builder().audit(log).limits(limits).tool_allowlist(["true"]);
    let sandbox = builder.build().await.unwrap();
    run(&sandbox, "exit 3").await;
    run(&sandbox, "ls").await;
    run(&sandbox, &"x".repeat(101)).await;
    sandbox.run_with(Run::new("while :; do :; done").timeout(Some(Duration::from_millis(20)))).await.unwrap();
    let running = sandbox.clone();
    let task = tokio::spawn(async move { running.run("while :; do :; done").await });
    while !sandbox.cancel() {
        tokio::task::yield_now().await;
    }
    task.await.unwrap().unwrap();
    sandbox
}

#[tokio::test]
async fn events_come_in_order_with_session_number_and_time() {
    let records = Arc::new(Mutex::new(Vec::new()));
    let kept = records.clone();
    let log = AuditLog::to_callback(move |record| kept.lock().unwrap().push(record.clone()));
    let sandbox = some_history(&log).await;
    let fork = sandbox.fork().await.unwrap();
    let archive = fork.export().await.unwrap();
    fork.import(archive).await.unwrap();
    let ids = (sandbox.id().to_owned(), fork.id().to_owned());
    fork.destroy().await;
    drop(sandbox);
    let records = records.lock().unwrap();
    let events: Vec<(&str, bool)> =
        records.iter().map(|record| (record.event, record.session == ids.0)).collect();
    let expected = [
        ("sandbox.create", true),
        ("command.start", true),
        ("command.complete", true),
        ("command.start", true),
        ("capability.denied", true),
        ("command.complete", true),
        ("limit.exceeded", true),
        ("command.start", true),
        ("command.timeout", true),
        ("command.start", true),
        ("command.cancelled", true),
        ("sandbox.fork", true),
        ("state.export", false),
        ("state.import", false),
        ("sandbox.destroy", false),
        ("sandbox.destroy", true),
    ];
    assert_eq!(events, expected);
    assert!(records.iter().zip(1..).all(|(record, number)| record.sequence == number));
    assert!(
        records.windows(2).all(|pair| pair[1].previous == pair[0].hash && pair[1].time_ms >= pair[0].time_ms)
    );
    assert_eq!(records[2].data["exitCode"], 3);
    assert_eq!(records[4].data["tool"], "ls");
    assert_eq!(records[11].data["child"], ids.1.as_str());
}

/// A log of a few dozen records, in several files.
async fn written(directory: &Path) -> std::path::PathBuf {
    let file = directory.join("audit.jsonl");
    let log = AuditLog::to_file(&file, Rotation { max_bytes: 2000, kept: 100 }).unwrap();
    let sandbox = some_history(&log).await;
    for _ in 0..5 {
        run(&sandbox, "true").await;
    }
    file
}

#[tokio::test]
async fn a_whole_log_is_found_whole() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path()).await;
    let checked = verify_audit(&file).unwrap();
    assert_eq!((checked.first, checked.records, checked.last), (1, 22, 22));
    assert!(checked.files > 1);
    // It goes on where it ended.
    let log = AuditLog::to_file(&file, Rotation::default()).unwrap();
    drop(Sandbox::builder().audit(&log).build().await.unwrap());
    assert_eq!(verify_audit(&file).unwrap().last, 24);
}

#[tokio::test]
async fn every_edit_gap_and_truncation_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path()).await;
    let whole = std::fs::read(&file).unwrap();
    let older = std::fs::read(file.with_extension("jsonl.1")).unwrap();
    let found = |what: &str, content: &[u8]| {
        std::fs::write(&file, content).unwrap();
        assert!(verify_audit(&file).is_err(), "{what}");
        assert!(AuditLog::to_file(&file, Rotation::default()).is_err(), "{what}: nor is it gone on with");
    };
    for at in 0..whole.len() {
        let mut edited = whole.clone();
        edited[at] ^= 1;
        std::fs::write(&file, &edited).unwrap();
        assert!(verify_audit(&file).is_err(), "byte {at}");
    }
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    assert!(lines.len() >= 2);
    found("the last record is missing", &lines[..lines.len() - 1].concat());
    found("half of the last record is missing", &whole[..whole.len() - 30]);
    found("the last newline is missing", &whole[..whole.len() - 1]);
    found("the first record is missing", &lines[1..].concat());
    found("everything is missing", b"");
    found("a record twice", &[lines[0], &whole[..]].concat());
    let mut swapped = lines.clone();
    swapped.swap(0, 1);
    found("two records swapped", &swapped.concat());
    std::fs::write(&file, &whole).unwrap();
    assert!(verify_audit(&file).is_ok());
    std::fs::write(file.with_extension("jsonl.1"), &older[..older.len() / 2]).unwrap();
    assert!(verify_audit(&file).is_err(), "an older part is cut");
    std::fs::remove_file(file.with_extension("jsonl.1")).unwrap();
    assert!(verify_audit(&file).is_err(), "an older part is missing");
}

#[tokio::test]
async fn rotation_lets_the_oldest_go_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit");
    let log = AuditLog::to_file(&file, Rotation { max_bytes: 1000, kept: 2 }).unwrap();
    let sandbox = Sandbox::builder().audit(&log).build().await.unwrap();
    for _ in 0..20 {
        run(&sandbox, ":").await;
    }
    let checked = verify_audit(&file).unwrap();
    assert_eq!((checked.files, checked.last), (3, 41));
    assert!(checked.first > 1);
}

#[tokio::test]
async fn what_cannot_be_recorded_is_not_done() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit");
    let log = AuditLog::to_file(&file, Rotation { max_bytes: 1, kept: 1 }).unwrap();
    let sandbox = Sandbox::builder().audit(&log).build().await.unwrap();
    run(&sandbox, "echo fine").await;
    // The next rotation fails: its target is a directory that is not empty.
    drop(directory);
    run(&sandbox, "echo the record of this one is lost").await;
    assert!(matches!(sandbox.run("touch /tmp/never").await, Err(wardian::Error::Audit(_))));
    assert!(sandbox.read_file("/tmp/never").await.is_err());
}
