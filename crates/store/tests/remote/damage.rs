//! What a server returns is not believed.

use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use wardian_store::StoreError;

use super::faults::Lie;
use super::{Machine, commit, content, flush};

fn saved() -> Arc<InMemory> {
    let bucket = Arc::new(InMemory::new());
    let machine = Machine::new(&bucket);
    let store = machine.open();
    let lease = store.create("box", "").expect("created");
    commit(&store, &lease, None, &[5; 5000]).expect("committed");
    drop(lease);
    flush(&store);
    bucket
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

fn paths(bucket: &InMemory, prefix: &str) -> Vec<Path> {
    let prefix = Path::from(prefix);
    let all: Vec<_> = wait(bucket.list(Some(&prefix)).try_collect()).expect("a list");
    all.into_iter().map(|meta| meta.location).collect()
}

/// Replaces an object by what is made of it.
fn damage(bucket: &InMemory, path: &Path, change: impl Fn(&mut Vec<u8>)) {
    let mut bytes =
        wait(async { bucket.get(path).await.expect("an object").bytes().await.expect("bytes") }).to_vec();
    change(&mut bytes);
    wait(bucket.put(path, PutPayload::from(bytes))).expect("written");
}

#[test]
fn damaged_and_truncated_objects_are_named_and_not_half_loaded() {
    for kind in ["heads", "records", "packs"] {
        for how in 0..5 {
            let bucket = saved();
            let path = paths(&bucket, kind).remove(0);
            match how {
                0 => damage(&bucket, &path, |bytes| bytes.truncate(bytes.len() / 2)),
                1 => damage(&bucket, &path, |bytes| {
                    let last = bytes.len() - 1;
                    bytes[last] ^= 1;
                }),
                2 => damage(&bucket, &path, |bytes| bytes[40] ^= 0x10),
                3 => damage(&bucket, &path, |bytes| bytes.extend_from_slice(b"more")),
                _ => wait(bucket.delete(&path)).expect("deleted"),
            }
            let machine = Machine::new(&bucket);
            let store = machine.open();
            let error = content(&store, "box").expect_err("damaged");
            let message = error.to_string();
            let is_gone = how == 4 && kind != "records";
            assert!(is_gone || message.contains(kind), "{kind} {how}: {message}");
            assert!(
                matches!(
                    error,
                    StoreError::Malformed(_) | StoreError::Damaged { .. } | StoreError::Missing(_)
                ),
                "{kind} {how}: {error:?}"
            );
            if kind != "packs" {
                // Not half of it is here.
                assert!(store.log("box", None, 10).is_err(), "{kind} {how}");
            }
            // An object of a pack is whole or not there: of these two, one can be.
            let objects = store.usage().expect("usage").0;
            assert!(objects == 0 || (kind == "packs" && how == 1 && objects == 1), "{kind} {how}");
        }
    }
}

#[test]
fn endless_and_huge_answers_are_capped() {
    for kind in ["wardian-store", "heads", "records", "packs"] {
        for lie in [Lie::Endless, Lie::Huge, Lie::Half] {
            let bucket = saved();
            let machine = Machine::new(&bucket);
            *machine.way.lie.lock() = (kind, lie);
            let error = match machine.try_open(super::options()) {
                Err(error) => error,
                Ok(store) => content(&store, "box").expect_err("not believed"),
            };
            let is_named = matches!(error, StoreError::Malformed(_) | StoreError::Damaged { .. });
            assert!(is_named && error.to_string().contains(kind), "{kind} {lie:?}: {error}");
            // With an honest server it can be had.
            *machine.way.lie.lock() = ("", Lie::None);
            assert_eq!(content(&machine.open(), "box").expect("read"), [5; 5000]);
        }
    }
}

#[test]
fn a_head_that_goes_back_is_noticed() {
    let bucket = Arc::new(InMemory::new());
    let (one, two) = (Machine::new(&bucket), Machine::new(&bucket));
    let store = one.open();
    let lease = store.create("box", "").expect("created");
    let first = commit(&store, &lease, None, b"one").expect("committed");
    flush(&store);
    let path = paths(&bucket, "heads").remove(0);
    let old = wait(async { bucket.get(&path).await.expect("an object").bytes().await.expect("bytes") });
    commit(&store, &lease, Some(first), b"two").expect("committed");
    flush(&store);
    let other = two.open();
    assert_eq!(content(&other, "box").expect("read"), b"two");
    wait(bucket.put(&path, PutPayload::from(old.to_vec()))).expect("written");
    let error = other.lease("box").map(drop).expect_err("noticed").to_string();
    assert!(error.contains("went back"), "{error}");
}

/// What is damaged here, and whole there, is fetched again after a repair.
#[test]
fn what_is_damaged_here_is_repaired_from_there() {
    let bucket = saved();
    let machine = Machine::new(&bucket);
    let store = machine.open();
    let root = store.head("box").expect("a head").root;
    let leaf = store.get(&root).expect("a root").links[0];
    store.prefetch(&root).expect("fetched");
    let connection = rusqlite::Connection::open(machine.path().join("store.db")).expect("a database");
    connection.execute("UPDATE object SET body = x'00' WHERE hash = ?", [&leaf.0[..]]).expect("updated");
    assert!(matches!(store.get(&leaf), Err(StoreError::Damaged { .. })));
    let found = store.verify().expect("verified");
    assert_eq!((found.damaged.len(), found.names.len()), (1, 0));
    assert_eq!(store.repair().expect("repaired").removed, 1);
    assert_eq!(content(&store, "box").expect("fetched again"), [5; 5000]);
}
