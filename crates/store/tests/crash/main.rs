//! After a crash at any point every name is at its last acknowledged commit or at the one being written, never between.
//!
//! The first tests run SQLite on a simulated disk that loses, reorders and tears what was not synced, or is full. The last
//! one kills a real process.

mod disk;
mod kill;

use disk::{Disk, Random};
use wardian_store::{Commit, CommitId, Hash, Lease, Note, Options, Retention, Store, StoreError};

const NAMES: usize = 4;

fn open(directory: &std::path::Path, disk: &Disk) -> Result<Store, StoreError> {
    Store::open(directory, Options { vfs: Some(disk.name()), ..Options::default() })
}

/// What must be there: for each name the last acknowledged root, and one that may be.
#[derive(Default)]
struct Model {
    acknowledged: [Option<Hash>; NAMES],
    in_flight: [Option<Hash>; NAMES],
}

struct Driver {
    store: Store,
    leases: Vec<Lease>,
    parents: Vec<Option<CommitId>>,
}

impl Driver {
    fn start(directory: &std::path::Path, disk: &Disk) -> Result<Driver, StoreError> {
        let store = open(directory, disk)?;
        let (mut leases, mut parents) = (Vec::new(), Vec::new());
        for number in 0..NAMES {
            let name = format!("box{number}");
            let lease = match store.create(&name, "") {
                // The process that had it is no more.
                Err(StoreError::Exists(_)) => store.take_over(&name)?,
                created => created?,
            };
            leases.push(lease);
            parents.push(store.head(&name)?.head);
        }
        Ok(Driver { store, leases, parents })
    }

    /// Commits something new to one of the names.
    fn commit(&mut self, model: &mut Model, random: &mut Random) -> Result<(), StoreError> {
        let which = random.below(NAMES);
        let mut batch = self.store.batch();
        let leaves: Vec<Hash> = (0..1 + random.below(5))
            .map(|_| batch.put(&[], &random.bytes(20 + random.clone().below(3000))))
            .collect();
        let root = batch.put(&leaves, b"root");
        model.in_flight[which] = Some(root);
        let commit = Commit {
            lease: &self.leases[which],
            parent: self.parents[which],
            root,
            batch,
            note: Note::default(),
        };
        self.parents[which] = Some(self.store.commit(commit)?);
        model.acknowledged[which] = Some(root);
        model.in_flight[which] = None;
        Ok(())
    }
}

/// Compares what is there with what must be, and adopts it.
fn check(store: &Store, model: &mut Model, context: &str) {
    for which in 0..NAMES {
        let found = match store.head(&format!("box{which}")) {
            Ok(entry) => entry.head.map(|_| entry.root),
            Err(StoreError::Missing(_)) => None,
            Err(error) => panic!("{context}: {error}"),
        };
        let allowed = [model.acknowledged[which], model.in_flight[which].or(model.acknowledged[which])];
        assert!(allowed.contains(&found), "{context}: box{which} is at {found:?}, not at one of {allowed:?}");
        (model.acknowledged[which], model.in_flight[which]) = (found, None);
        // All that it leads to is there.
        for leaf in found.iter().flat_map(|root| store.get(root).expect("a root").links) {
            store.get(&leaf).unwrap_or_else(|error| panic!("{context}: {error}"));
        }
    }
}

fn verify(store: &Store, context: &str) {
    let verified = store.verify().expect("verified");
    assert!(verified.is_whole(), "{context}: {verified:?}");
}

#[test]
fn a_crash_at_any_point_leaves_the_last_commit_or_the_next() {
    let disk = Disk::new("crash");
    let directory = tempfile::tempdir().expect("a directory");
    let mut random = Random(0x5eed);
    let mut model = Model::default();
    let (mut commits, mut crashes) = (0, 0);
    while commits < 2000 {
        // At some operation from now on the power fails.
        disk.fail_after(Some(random.below(400) as u64));
        if let Ok(mut driver) = Driver::start(directory.path(), &disk) {
            while driver.commit(&mut model, &mut random).is_ok() {
                commits += 1;
                // Collecting can be interrupted as well.
                if commits % 50 == 0 && driver.store.collect(Retention { last: 2, days: 0 }).is_err() {
                    break;
                }
            }
        }
        disk.crash(&mut random);
        crashes += 1;
        disk.fail_after(None);
        let store = open(directory.path(), &disk).expect("opens after a crash");
        let context = format!("crash {crashes}, after {commits} commits");
        check(&store, &mut model, &context);
        if crashes % 20 == 0 {
            verify(&store, &context);
        }
    }
    assert!(crashes > 50, "only {crashes} crashes");
}

/// The same without the sync: what must never happen is a commit in part. (Which one is there may be an older one.)
#[test]
fn the_simulated_disk_does_lose_what_is_not_synced() {
    let disk = Disk::new("lossy");
    let directory = tempfile::tempdir().expect("a directory");
    let mut random = Random(7);
    let mut lost = false;
    for _ in 0..20 {
        let mut model = Model::default();
        {
            let options = Options { sync: false, vfs: Some(disk.name()), ..Options::default() };
            let store = Store::open(directory.path(), options).expect("opens");
            let lease = store.create("box", "").or_else(|_| store.take_over("box")).expect("a lease");
            let parent = store.head("box").expect("a head").head;
            let mut driver = Driver { store, leases: vec![lease], parents: vec![parent] };
            let mut batch = driver.store.batch();
            let root = batch.put(&[], &random.bytes(100));
            let commit = Commit { lease: &driver.leases[0], parent, root, batch, note: Note::default() };
            driver.parents[0] = Some(driver.store.commit(commit).expect("committed"));
            model.acknowledged[0] = Some(root);
            disk.fail_after(Some(0));
        }
        disk.crash(&mut random);
        disk.fail_after(None);
        let store = open(directory.path(), &disk).expect("opens after a crash");
        lost |= store.head("box").map_or(true, |entry| Some(entry.root) != model.acknowledged[0]);
        assert!(store.verify().expect("verified").is_whole());
    }
    assert!(lost, "a disk that loses nothing proves nothing");
}

#[test]
fn a_full_disk_at_any_write_loses_nothing_committed() {
    for room in 0.. {
        let disk = Disk::new("full");
        let directory = tempfile::tempdir().expect("a directory");
        let mut random = Random(room + 1);
        let mut model = Model::default();
        disk.fill_after(Some(room));
        let mut failed = false;
        match Driver::start(directory.path(), &disk) {
            Err(error) => {
                assert_eq!(error, StoreError::Full, "room for {room} writes");
                failed = true;
            }
            Ok(mut driver) => {
                for _ in 0..6 {
                    if let Err(error) = driver.commit(&mut model, &mut random) {
                        assert_eq!(error, StoreError::Full, "room for {room} writes");
                        failed = true;
                        // With room again the same store goes on.
                        disk.fill_after(None);
                        model.in_flight = [None; NAMES];
                        driver.commit(&mut model, &mut random).expect("committed once there is room");
                        break;
                    }
                }
            }
        }
        disk.fill_after(None);
        let store = open(directory.path(), &disk).expect("opens");
        check(&store, &mut model, &format!("room for {room} writes"));
        verify(&store, &format!("room for {room} writes"));
        if !failed {
            assert!(room > 20, "only {room} writes");
            return;
        }
    }
}
