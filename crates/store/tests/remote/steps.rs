//! A crash at each request: the object store is at an uploaded commit, and uploading goes on when the store is opened again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::memory::InMemory;
use wardian_store::{CommitId, Kind, Retention, Store};

use super::{Machine, commit, content, flush};

fn crash_after(requests: i64, is_done: bool) -> bool {
    let bucket = Arc::new(InMemory::new());
    let (one, two) = (Machine::new(&bucket), Machine::new(&bucket));
    let store = one.open();
    let lease = store.create("box", "").expect("created");
    let mut parent = commit(&store, &lease, None, b"one").expect("committed");
    flush(&store);
    one.way.fail_after(requests, is_done);
    for bytes in [&b"two"[..], b"three", b"four"] {
        parent = commit(&store, &lease, Some(parent), bytes).expect("acknowledged");
    }
    let began = Instant::now();
    while store.flush(Some(Duration::from_millis(20))).is_err() && !one.way.has_failed() {
        assert!(began.elapsed() < Duration::from_secs(20), "neither an error nor an end");
    }
    let has_failed = one.way.has_failed();
    drop((lease, store));

    let other = two.open();
    let seen = content(&other, "box").expect("whole");
    assert!([&b"one"[..], b"two", b"three", b"four"].contains(&&seen[..]), "{seen:?}");
    let log = other.log("box", None, 10).expect("a log");
    assert_eq!(log[0].note.command, seen, "the log ends where the files are");
    for entry in &log {
        other.prefetch(&entry.root).expect("each commit is whole");
    }
    drop(other);

    one.way.fail_after(-1, false);
    let store = one.open();
    assert_eq!(content(&store, "box").expect("nothing acknowledged is lost"), b"four");
    flush(&store);
    assert!(store.pending().expect("pending").is_nothing());
    assert_eq!(store.list(Kind::Sandbox).expect("a list").len(), 1, "nothing had to be set aside");
    assert_eq!(numbers(&store).len(), 4);
    let other = two.open();
    assert_eq!(content(&other, "box").expect("whole"), b"four");
    assert_eq!(numbers(&other), numbers(&store));
    assert!(other.verify().expect("verified").is_whole());
    other.collect(Retention { last: 1, days: 0 }).expect("collected");
    has_failed
}

fn numbers(store: &Store) -> Vec<CommitId> {
    store.log("box", None, 10).expect("a log").iter().map(|commit| commit.id).collect()
}

#[test]
fn after_a_crash_between_any_two_requests_uploading_goes_on() {
    for is_done in [false, true] {
        let mut requests = 0;
        while crash_after(requests, is_done) {
            requests += 1;
            assert!(requests < 60, "it never ends");
        }
        assert!(requests >= 4, "a commit takes at least a pack, a record, and reading and writing the head");
    }
}

/// Whether creating a name or taking a lease is interrupted: it can be done again.
#[test]
fn a_crash_while_a_name_is_created_leaves_it_usable() {
    for is_done in [false, true] {
        for requests in 0..6 {
            let bucket = Arc::new(InMemory::new());
            let one = Machine::new(&bucket);
            let store = one.open();
            one.way.fail_after(requests, is_done);
            let created = store.create("box", "").map(drop);
            one.way.fail_after(-1, false);
            drop(store);
            let store = one.open();
            let lease = match created {
                Ok(()) => store.lease("box"),
                // Either it is there, without a commit, or it can be created.
                Err(_) => store.create("box", "").or_else(|_| store.lease("box")),
            };
            let lease = lease.expect("usable");
            commit(&store, &lease, None, b"one").expect("committed");
            flush(&store);
            assert_eq!(content(&Machine::new(&bucket).open(), "box").expect("whole"), b"one");
        }
    }
}
