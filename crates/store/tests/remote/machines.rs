//! Several machines on one object store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::memory::InMemory;
use wardian_store::{Commit, Key, Kind, Note, Options, Retention, Store, StoreError};

use super::{Machine, commit, content, flush, options};

#[test]
fn another_machine_opens_what_one_has_saved() {
    let bucket = Arc::new(InMemory::new());
    let (one, two) = (Machine::new(&bucket), Machine::new(&bucket));
    let store = one.open();
    let lease = store.create("team/box", "meta").expect("created");
    let first = commit(&store, &lease, None, b"one").expect("committed");
    let second = commit(&store, &lease, Some(first), &[2; 300_000]).expect("committed");
    let image = store.create_as("py", Kind::Image, "script").expect("created");
    commit(&store, &image, None, b"an image").expect("committed");
    flush(&store);
    assert!(store.pending().expect("pending").is_nothing());
    store.tag("team/box", "good", first).expect("tagged");
    drop((lease, image));
    flush(&store);
    drop(store);

    let store = two.open();
    assert_eq!(store.list(Kind::Sandbox).expect("a list")[0].name, "team/box");
    assert_eq!(store.list(Kind::Image).expect("a list")[0].meta, "script");
    assert_eq!(content(&store, "team/box").expect("read"), [2; 300_000]);
    assert_eq!(content(&store, "py").expect("read"), b"an image");
    let log = store.log("team/box", None, 10).expect("a log");
    assert_eq!(log.iter().map(|commit| commit.id).collect::<Vec<_>>(), [second, first]);
    assert_eq!((log[1].note.command.as_slice(), log[1].note.exit_code), (&b"one"[..], Some(0)));
    assert_eq!(log[0].parent, Some(first));
    assert_eq!(store.find_commit("team/box", "good").expect("tagged").id, first);
    let lease = store.lease("team/box").expect("free");
    commit(&store, &lease, Some(second), b"three").expect("committed");
    drop(lease);
    flush(&store);
    assert!(store.verify().expect("verified").is_whole());

    let store = one.open();
    assert_eq!(content(&store, "team/box").expect("read"), b"three");
    assert_eq!(store.log("team/box", None, 10).expect("a log").len(), 3);
}

#[test]
fn the_second_machine_is_told_who_holds_the_lease_and_can_read() {
    let bucket = Arc::new(InMemory::new());
    let (one, two) = (Machine::new(&bucket), Machine::new(&bucket));
    let (first, second) = (one.open(), two.open());
    let lease = first.create("box", "").expect("created");
    let id = commit(&first, &lease, None, b"one").expect("committed");
    flush(&first);
    match second.lease("box") {
        Err(StoreError::Busy { name, holder }) => {
            assert_eq!(name, "default/box");
            assert!(holder.starts_with("process ") && holder.contains(" s more"), "{holder}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(second.create("box", "").map(drop), Err(StoreError::Exists("default/box".to_owned())));
    assert!(matches!(second.remove("box"), Err(StoreError::Busy { .. })));
    assert_eq!(content(&second, "box").expect("read"), b"one");
    assert!(second.list(Kind::Sandbox).expect("a list")[0].holder.is_some());
    drop(lease);
    flush(&first);
    let lease = second.lease("box").expect("free now");
    commit(&second, &lease, Some(id), b"two").expect("committed");
    flush(&second);
    assert!(matches!(first.lease("box"), Err(StoreError::Busy { .. })));
    drop(lease);
    flush(&second);
    second.remove("box").expect("removed");
    assert_eq!(first.lease("box").map(drop), Err(StoreError::Missing("default/box".to_owned())));
    // The name is free again.
    let lease = first.create("box", "").expect("created");
    commit(&first, &lease, None, b"new").expect("committed");
    flush(&first);
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(content(&second, "box").expect("read"), b"new");
}

/// The first is cut off, the second takes over: what the first could not upload is kept under another name, and it is told.
#[test]
fn the_loser_of_two_writers_is_told_and_loses_nothing() {
    let bucket = Arc::new(InMemory::new());
    let (one, two) = (Machine::new(&bucket), Machine::new(&bucket));
    let (first, second) = (one.open(), two.open());
    let old = first.create("box", "").expect("created");
    let id = commit(&first, &old, None, b"one").expect("committed");
    flush(&first);
    one.way.fail_after(0, false);
    let late = commit(&first, &old, Some(id), b"late").expect("acknowledged here");
    assert_eq!(first.pending().expect("pending").commits, 1);
    assert!(matches!(first.flush(Some(Duration::from_millis(100))), Err(StoreError::Behind { .. })));
    let new = second.take_over("box").expect("by force");
    commit(&second, &new, Some(id), b"two").expect("committed");
    flush(&second);
    one.way.fail_after(-1, false);
    flush(&first);
    match commit(&first, &old, Some(late), b"later") {
        Err(StoreError::Elsewhere { name, holder, aside: Some(aside) }) => {
            assert_eq!(name, "default/box");
            assert!(holder.starts_with("process "), "{holder}");
            assert_eq!(content(&first, &aside).expect("kept"), b"late");
            std::thread::sleep(Duration::from_millis(2100));
            assert_eq!(content(&second, &aside).expect("uploaded"), b"late");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(content(&first, "box").expect("read"), b"two");
    assert_eq!(content(&second, "box").expect("read"), b"two");
    assert!(first.verify().expect("verified").is_whole());
    drop((old, new));
}

/// Both create the same name at the same moment.
#[test]
fn one_of_two_creators_has_the_name() {
    let bucket = Arc::new(InMemory::new());
    let machines: Vec<Machine> = (0..4).map(|_| Machine::new(&bucket)).collect();
    let stores: Vec<Store> = machines.iter().map(Machine::open).collect();
    let created: Vec<bool> = std::thread::scope(|scope| {
        let all: Vec<_> = stores
            .iter()
            .map(|store| scope.spawn(|| store.create("box", "").map(std::mem::forget).is_ok()))
            .collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    assert_eq!(created.iter().filter(|created| **created).count(), 1, "{created:?}");
}

#[test]
fn memories_that_are_files_come_along() {
    let bucket = Arc::new(InMemory::new());
    let (one, two) = (Machine::new(&bucket), Machine::new(&bucket));
    let store = one.open();
    let lease = store.create("box", "").expect("created");
    let page = |byte: u8| Box::new([byte; 4096]);
    let mut batch = store.batch();
    let pages = [(1u32, page(1)), (2, page(0)), (70, page(7)), (999, page(9))];
    let file = store.put_pages(&mut batch, 1000 * 4096, pages.into_iter().map(Ok)).expect("written");
    let root = batch.put(&[file], b"");
    let note = Note::default();
    store.commit(Commit { lease: &lease, parent: None, root, batch, note }).expect("committed");
    flush(&store);
    let other = two.open();
    let root = other.head("box").expect("a head").root;
    other.prefetch(&root).expect("fetched");
    two.way.fail_after(0, false);
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut other.open_pages(&file).expect("a file"), &mut bytes).expect("read");
    assert_eq!(bytes.len(), 1000 * 4096);
    assert_eq!((bytes[4096], bytes[70 * 4096], bytes[999 * 4096], bytes[0]), (1, 7, 9, 0));
    two.way.fail_after(-1, false);
    assert!(other.verify().expect("verified").is_whole());
}

#[test]
fn collecting_keeps_what_is_not_uploaded_and_the_rest_is_fetched_again() {
    let bucket = Arc::new(InMemory::new());
    let (one, two) = (Machine::new(&bucket), Machine::new(&bucket));
    let store = one.open();
    let lease = store.create("box", "").expect("created");
    let mut parent = None;
    for byte in 0..5u8 {
        parent = Some(commit(&store, &lease, parent, &[byte; 1000]).expect("committed"));
    }
    flush(&store);
    one.way.fail_after(0, false);
    for byte in 5..10u8 {
        parent = Some(commit(&store, &lease, parent, &[byte; 1000]).expect("committed"));
    }
    let freed = store.collect(Retention { last: 1, days: 0 }).expect("collected");
    assert_eq!(freed.commits, 5, "those that are uploaded");
    assert_eq!(store.log("box", None, 100).expect("a log").len(), 5);
    one.way.fail_after(-1, false);
    flush(&store);
    let other = two.open();
    let log = other.log("box", None, 100).expect("a log");
    assert_eq!(log.len(), 10, "the object store forgets nothing");
    for (commit, byte) in log.iter().zip((0..10u8).rev()) {
        let leaf = other.get(&commit.root).expect("a root").links[0];
        assert_eq!(other.get(&leaf).expect("a leaf").bytes, [byte; 1000]);
    }
    // What is only in the object store is no damage.
    let machine = Machine::new(&bucket);
    let third = machine.open();
    third.list(Kind::Sandbox).expect("a list");
    assert!(third.verify().expect("verified").is_whole());
    third.collect(Retention { last: 1, days: 0 }).expect("collected");
    assert_eq!(content(&third, "box").expect("read"), [9; 1000]);
}

#[test]
fn an_encrypted_object_store_shows_nothing_without_its_key() {
    let bucket = Arc::new(InMemory::new());
    let (one, two) = (Machine::new(&bucket), Machine::new(&bucket));
    let key = Key::from_bytes(&[7; 32]).expect("a key");
    let with = |key: Option<&Key>| Options { key: key.cloned(), ..options() };
    let secret = b"a secret that must not be found in the bucket".repeat(20);
    let store = one.try_open(with(Some(&key))).expect("a store");
    let lease = store.create("box", "meta that is secret, too").expect("created");
    commit(&store, &lease, None, &secret).expect("committed");
    flush(&store);
    let objects = all_objects(&bucket);
    assert!(objects.len() >= 4);
    for (name, bytes) in &objects {
        for word in [&secret[..12], b"meta that"] {
            assert!(!bytes.windows(word.len()).any(|window| window == word), "{name}");
        }
    }
    for other in [None, Some(Key::from_bytes(&[8; 32]).expect("a key"))] {
        let refused = Machine::new(&bucket).try_open(with(other.as_ref()));
        assert!(matches!(refused, Err(StoreError::Key(_))), "{refused:?}");
    }
    let store = two.try_open(with(Some(&key))).expect("a store");
    assert_eq!(content(&store, "box").expect("read"), secret);
}

fn all_objects(bucket: &Arc<InMemory>) -> Vec<(String, Vec<u8>)> {
    use futures_util::TryStreamExt;
    use object_store::{ObjectStore, ObjectStoreExt};
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let all: Vec<_> = bucket.list(None).try_collect().await.expect("a list");
        let mut objects = Vec::new();
        for meta in all {
            let found = bucket.get(&meta.location).await.expect("an object");
            objects.push((meta.location.to_string(), found.bytes().await.expect("bytes").to_vec()));
        }
        objects
    })
}

#[test]
fn a_local_part_belongs_to_one_object_store() {
    let bucket = Arc::new(InMemory::new());
    let machine = Machine::new(&bucket);
    drop(machine.open());
    let refused = Store::open(machine.path(), options()).map(drop).expect_err("refused").to_string();
    assert!(refused.contains("local part"), "{refused}");
    let plain = Machine::new(&bucket);
    drop(Store::open(plain.path(), options()).expect("a store"));
    let refused = plain.try_open(options()).map(drop).expect_err("refused").to_string();
    assert!(refused.contains("a store of its own"), "{refused}");
    // Another bucket under the same name.
    let moved = Machine { way: super::Faulty::over(&Arc::new(InMemory::new())), ..machine };
    let refused = moved.try_open(options()).map(drop).expect_err("refused").to_string();
    assert!(refused.contains("nothing is there"), "{refused}");
}

#[test]
fn a_server_without_conditional_writes_is_refused() {
    let bucket = Arc::new(InMemory::new());
    let machine = Machine { way: super::Faulty::without_conditions(&bucket), ..Machine::new(&bucket) };
    let refused = machine.try_open(options()).map(drop).expect_err("refused").to_string();
    assert!(refused.contains("If-None-Match"), "{refused}");
}

#[test]
fn commits_are_refused_when_too_many_wait() {
    let bucket = Arc::new(InMemory::new());
    let machine = Machine::new(&bucket);
    let store = machine.try_open(Options { most_waiting: 3, ..options() }).expect("a store");
    let lease = store.create("box", "").expect("created");
    machine.way.fail_after(0, false);
    let mut parent = None;
    for byte in 0..3u8 {
        parent = Some(commit(&store, &lease, parent, &[byte]).expect("committed"));
    }
    let refused = commit(&store, &lease, parent, b"x");
    assert!(matches!(refused, Err(StoreError::Behind { commits: 3, .. })), "{refused:?}");
    machine.way.fail_after(-1, false);
    flush(&store);
    let began = Instant::now();
    while commit(&store, &lease, parent, b"x").is_err() {
        assert!(began.elapsed() < Duration::from_secs(5));
        std::thread::sleep(Duration::from_millis(10));
    }
}
