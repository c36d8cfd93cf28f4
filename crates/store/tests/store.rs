//! What a store promises, on a real disk.

use proptest::prelude::*;
use wardian_store::{
    Commit, CommitId, Hash, Index, Key, Kind, Lease, Note, Options, Retention, Store, StoreError,
};

fn open(directory: &std::path::Path) -> Store {
    Store::open(directory, Options { sync: false, ..Options::default() }).expect("a store")
}

fn commit(
    store: &Store,
    lease: &Lease,
    parent: Option<CommitId>,
    bytes: &[u8],
) -> Result<CommitId, StoreError> {
    let mut batch = store.batch();
    let leaf = batch.put(&[], bytes);
    let root = batch.put(&[leaf], b"root");
    let note = Note { command: bytes.to_vec(), exit_code: Some(0) };
    store.commit(Commit { lease, parent, root, batch, note })
}

/// Reads what the newest commit leads to.
fn content(store: &Store, name: &str) -> Vec<u8> {
    let root = store.get(&store.head(name).expect("a head").root).expect("a root");
    store.get(&root.links[0]).expect("a leaf").bytes
}

#[test]
fn commits_are_there_when_the_store_is_opened_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, second) = {
        let store = open(directory.path());
        let lease = store.create("team/box", "meta").expect("created");
        let first = commit(&store, &lease, None, b"one").expect("committed");
        (first, commit(&store, &lease, Some(first), b"two").expect("committed"))
    };
    let store = open(directory.path());
    assert_eq!(content(&store, "team/box"), b"two");
    let log = store.log("team/box", None, 10).expect("a log");
    assert_eq!(log.iter().map(|commit| commit.id).collect::<Vec<_>>(), [second, first]);
    assert_eq!(log[0].note.command, b"two");
    assert_eq!(log[0].parent, Some(first));
    assert!(log[0].bytes > 0);
    assert_eq!(store.list(Kind::Sandbox).expect("a list")[0].name, "team/box");
    assert!(store.verify().expect("verified").is_whole());
}

#[test]
fn a_head_moves_only_from_the_expected_commit() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let lease = store.create("box", "").expect("created");
    let first = commit(&store, &lease, None, b"one").expect("committed");
    assert!(matches!(commit(&store, &lease, None, b"other"), Err(StoreError::Conflict(_))));
    assert_eq!(content(&store, "box"), b"one");
    commit(&store, &lease, Some(first), b"two").expect("committed");
    assert_eq!(store.create("box", "").map(drop), Err(StoreError::Exists("default/box".to_owned())));
}

/// Two stores on one directory stand for two processes.
#[test]
fn the_second_of_two_writers_learns_who_has_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (open(directory.path()), open(directory.path()));
    let lease = one.create("box", "").expect("created");
    let first = commit(&one, &lease, None, b"one").expect("committed");
    match two.lease("box") {
        Err(StoreError::Busy { name, holder }) => {
            assert_eq!((name.as_str(), holder.as_str()), ("default/box", "this process"));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(two.remove("box"), Err(StoreError::Busy { .. })));
    // Another name is free, at the same time.
    let other = two.create("other", "").expect("created");
    commit(&two, &other, None, b"x").expect("committed");
    drop(lease);
    // Letting go is done by the writer: the next request comes after it.
    one.head("box").expect("a head");
    let lease = loop {
        match two.lease("box") {
            Ok(lease) => break lease,
            Err(StoreError::Busy { .. }) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    commit(&two, &lease, Some(first), b"two").expect("committed");
    assert_eq!(content(&one, "box"), b"two");
}

/// Sets a lease's expiry, as a clock that was set forward or back would have.
fn set_expiry(directory: &std::path::Path, expires: i64) {
    let connection = rusqlite::Connection::open(directory.join("store.db")).expect("a database");
    // As if another machine had it: of this one we know that the process lives.
    connection.execute("UPDATE lease SET expires = ?, place = 'elsewhere'", [expires]).expect("updated");
}

#[test]
fn a_lease_expires_and_its_holder_can_no_longer_commit() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (open(directory.path()), open(directory.path()));
    let old = one.create("box", "").expect("created");
    let first = commit(&one, &old, None, b"one").expect("committed");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_millis()
        as i64;
    set_expiry(directory.path(), now + 30_000);
    assert!(matches!(two.lease("box"), Err(StoreError::Busy { .. })));
    set_expiry(directory.path(), now - 1);
    let new = two.lease("box").expect("expired");
    assert!(matches!(commit(&one, &old, Some(first), b"late"), Err(StoreError::Lost(_))));
    commit(&two, &new, Some(first), b"two").expect("committed");
    assert_eq!(content(&one, "box"), b"two");
}

/// A clock that was ahead when the lease was taken and goes back does not lock a sandbox for years.
#[test]
fn a_lease_from_the_future_is_not_valid() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (open(directory.path()), open(directory.path()));
    let _old = one.create("box", "").expect("created");
    set_expiry(directory.path(), i64::MAX / 2);
    two.lease("box").expect("not believed");
}

#[test]
fn times_of_commits_never_go_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let lease = store.create("box", "").expect("created");
    let first = commit(&store, &lease, None, b"one").expect("committed");
    let future = 4_000_000_000_000i64;
    let connection = rusqlite::Connection::open(directory.path().join("store.db")).expect("a database");
    connection.execute("UPDATE commits SET time = ?", [future]).expect("updated");
    commit(&store, &lease, Some(first), b"two").expect("committed");
    let log = store.log("box", None, 10).expect("a log");
    assert!(log[0].time_ms >= future as u64, "the clock went back, the log did not");
}

#[test]
fn unreachable_objects_are_freed() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let lease = store.create("box", "").expect("created");
    let mut parent = None;
    let mut ids = Vec::new();
    for number in 0..20u8 {
        parent = Some(commit(&store, &lease, parent, &[number; 1000]).expect("committed"));
        ids.extend(parent);
    }
    store.tag("box", "good", ids[3]).expect("tagged");
    let (before, _) = store.usage().expect("usage");
    let freed = store.collect(Retention { last: 5, days: 0 }).expect("collected");
    assert_eq!(freed.commits, 14);
    let (after, _) = store.usage().expect("usage");
    assert_eq!(before - after, freed.objects);
    let kept: Vec<CommitId> =
        store.log("box", None, 100).expect("a log").iter().map(|commit| commit.id).collect();
    assert_eq!(kept, [ids[19], ids[18], ids[17], ids[16], ids[15], ids[3]]);
    assert_eq!(store.find_commit("box", "good").expect("tagged").id, ids[3]);
    assert!(store.verify().expect("verified").is_whole());
    // With the head kept at least.
    store.untag("box", "good").expect("untagged");
    store.collect(Retention { last: 0, days: 0 }).expect("collected");
    assert_eq!(content(&store, "box"), [19; 1000]);
    drop(lease);
    store.head("box").expect("a head");
    while matches!(store.remove("box"), Err(StoreError::Busy { .. })) {}
    store.collect(Retention::default()).expect("collected");
    assert_eq!(store.usage().expect("usage").0, 0);
}

#[test]
fn damage_is_found_named_and_never_half_loaded() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let lease = store.create("box", "").expect("created");
    let first = commit(&store, &lease, None, &[1; 5000]).expect("committed");
    let second = commit(&store, &lease, Some(first), &[2; 5000]).expect("committed");
    let other = store.create("other", "").expect("created");
    commit(&store, &other, None, b"whole").expect("committed");
    let leaf = store.get(&store.head("box").expect("a head").root).expect("a root").links[0];
    let connection = rusqlite::Connection::open(directory.path().join("store.db")).expect("a database");
    let mut body: Vec<u8> = connection
        .query_row("SELECT body FROM object WHERE hash = ?", [&leaf.0[..]], |row| row.get(0))
        .expect("an object");
    *body.last_mut().expect("bytes") ^= 1;
    connection
        .execute("UPDATE object SET body = ? WHERE hash = ?", rusqlite::params![body, &leaf.0[..]])
        .expect("updated");
    assert!(matches!(store.get(&leaf), Err(StoreError::Damaged { hash, .. }) if hash == leaf));
    let found = store.verify().expect("verified");
    assert_eq!(found.damaged.iter().map(|(hash, _)| *hash).collect::<Vec<_>>(), [leaf]);
    assert_eq!(found.names.len(), 1);
    let damage = &found.names[0];
    assert_eq!((damage.name.as_str(), damage.head, damage.whole), ("default/box", true, Some(first)));
    let repaired = store.repair().expect("repaired");
    assert_eq!(repaired.set_back, [("default/box".to_owned(), first)]);
    assert_eq!(content(&store, "box"), [1; 5000]);
    assert_eq!(content(&store, "other"), b"whole");
    assert!(store.verify().expect("verified").is_whole());
    assert!(store.find_commit("box", &second.to_string()).is_err());
    // What was damaged can be stored again.
    commit(&store, &lease, Some(first), &[2; 5000]).expect("committed");
    assert_eq!(content(&store, "box"), [2; 5000]);
}

#[test]
fn an_encrypted_store_shows_nothing_without_its_key() {
    let directory = tempfile::tempdir().expect("a directory");
    let secret = b"a secret that must not be found on the disk".repeat(100);
    let key = Key::from_bytes(&[7; 32]).expect("a key");
    let options = |key: Option<&Key>| Options { key: key.cloned(), ..Options::default() };
    {
        let store = Store::open(directory.path(), options(Some(&key))).expect("a store");
        let lease = store.create("box", "").expect("created");
        let mut batch = store.batch();
        let root = batch.put(&[], &secret);
        let note = Note::default();
        store.commit(Commit { lease: &lease, parent: None, root, batch, note }).expect("committed");
        assert_ne!(root, Hash(*blake3::hash(&secret).as_bytes()), "a plain hash would tell what is inside");
    }
    for file in std::fs::read_dir(directory.path()).expect("a directory").flatten() {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        assert!(!bytes.windows(20).any(|window| window == &secret[..20]), "{:?}", file.path());
    }
    assert!(matches!(Store::open(directory.path(), options(None)), Err(StoreError::Key(_))));
    let other = Key::from_bytes(&[8; 32]).expect("a key");
    assert!(matches!(Store::open(directory.path(), options(Some(&other))), Err(StoreError::Key(_))));
    let store = Store::open(directory.path(), options(Some(&key))).expect("a store");
    assert_eq!(store.get(&store.head("box").expect("a head").root).expect("an object").bytes, secret);
}

#[test]
fn a_store_of_another_format_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(open(directory.path()));
    let connection = rusqlite::Connection::open(directory.path().join("store.db")).expect("a database");
    connection.pragma_update(None, "user_version", 99).expect("updated");
    drop(connection);
    let refused = Store::open(directory.path(), Options::default());
    assert_eq!(refused.map(drop), Err(StoreError::Version { found: 99, known: 1 }));
}

#[test]
fn memories_lie_in_files_that_verify_checks() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let lease = store.create("box", "").expect("created");
    let pages = [(1u32, [1u8; 4096]), (2, [0; 4096]), (7, [7; 4096])];
    let mut batch = store.batch();
    let given = pages.iter().map(|(number, page)| Ok((*number, Box::new(*page))));
    let file = store.put_pages(&mut batch, 8 * 4096, given).expect("written");
    let root = batch.put(&[file], b"");
    let note = Note::default();
    let first = store.commit(Commit { lease: &lease, parent: None, root, batch, note }).expect("committed");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut store.open_pages(&file).expect("a file"), &mut bytes).expect("read");
    assert_eq!(bytes.len(), 8 * 4096);
    assert_eq!((bytes[4096], bytes[7 * 4096], bytes[0]), (1, 7, 0));
    assert!(store.verify().expect("verified").is_whole());
    let path = directory.path().join("pages").join(file.to_string());
    bytes[4096] = 9;
    std::fs::write(&path, &bytes).expect("written");
    assert_eq!(store.verify().expect("verified").damaged[0].0, file);
    // Nothing leads to it any more: its file goes, too.
    commit(&store, &lease, Some(first), b"x").expect("committed");
    drop(lease);
    store.head("box").expect("a head");
    store.collect(Retention { last: 1, days: 0 }).expect("collected");
    assert!(!path.exists());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever order entries are set and removed in, the map is the same, and so is its root; what is read is what was
    /// written; and one change writes as many nodes as there are levels.
    #[test]
    fn an_index_depends_only_on_its_entries(
        steps in prop::collection::vec((0u64..5000, prop::option::of(0u8..4)), 1..200),
        large in prop::option::of(any::<u64>()),
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(directory.path());
        let lease = store.create("box", "").expect("created");
        let mut model = std::collections::BTreeMap::new();
        let (mut index, mut batch) = (Index::new(), store.batch());
        let leaves: Vec<Hash> = (0..4u8).map(|byte| batch.put(&[], &[byte])).collect();
        for (step, (key, value)) in steps.iter().enumerate() {
            let value = value.map(|value| leaves[usize::from(value)]);
            index.set(*key, value);
            match value {
                Some(value) => model.insert(*key, value),
                None => model.remove(key),
            };
            if step % 17 == 0 {
                index.write(&mut batch);
            }
        }
        if let Some(large) = large {
            index.set(large, Some(leaves[0]));
            model.insert(large, leaves[0]);
        }
        let root = index.write(&mut batch);
        let mut other = Index::new();
        for (key, value) in model.iter().rev() {
            other.set(*key, Some(*value));
        }
        prop_assert_eq!(other.write(&mut store.batch()), root);
        if let Some(root) = root {
            store.commit(Commit { lease: &lease, parent: None, root, batch, note: Note::default() }).expect("committed");
        }
        let read = Index::read(&store, root).expect("read");
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>());
        if let Some((key, _)) = read.iter().next() {
            let (mut changed, mut batch) = (read.clone(), store.batch());
            changed.set(key, Some(Hash([9; 32])));
            changed.write(&mut batch);
            prop_assert!(batch.len() <= 11);
        }
    }
}
