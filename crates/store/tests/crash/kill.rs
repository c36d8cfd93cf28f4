//! A real process, killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use wardian_store::{Commit, Note, Options, Store, StoreError};

use crate::disk::Random;

/// The variable that tells the test binary to be the victim.
const VICTIM: &str = "WARDIAN_STORE_TEST_VICTIM";

/// Commits without end, and says so after each: the number that it has committed.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(VICTIM) else { return };
    let store = Store::open(Path::new(&directory), Options::default()).expect("a store");
    let lease = match store.create("box", "") {
        Err(StoreError::Exists(_)) => store.lease("box").expect("the last victim is dead"),
        created => created.expect("created"),
    };
    let mut parent = store.head("box").expect("a head").head;
    let mut number = parent.map_or(0, |_| read_number(&store));
    loop {
        number += 1;
        let mut batch = store.batch();
        let large = batch.put(&[], &vec![number as u8; 200_000]);
        let root = batch.put(&[large], &number.to_le_bytes());
        let commit = Commit { lease: &lease, parent, root, batch, note: Note::default() };
        parent = Some(store.commit(commit).expect("committed"));
        println!("committed {number}");
    }
}

fn read_number(store: &Store) -> u64 {
    let root = store.get(&store.head("box").expect("a head").root).expect("a root");
    let number = u64::from_le_bytes(root.bytes.try_into().expect("a number"));
    assert_eq!(store.get(&root.links[0]).expect("its content").bytes, vec![number as u8; 200_000]);
    number
}

#[test]
fn a_killed_process_leaves_the_last_commit_or_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut random = Random(11);
    let mut last = 0;
    for _ in 0..12 {
        let mut victim = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "kill::victim", "--nocapture"])
            .env(VICTIM, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut lines = BufReader::new(victim.stdout.take().expect("a pipe")).lines();
        let commits = 1 + random.below(15);
        let mut acknowledged = last;
        for _ in 0..commits {
            let line = lines.by_ref().map_while(Result::ok).find_map(|line| {
                line.strip_prefix("committed ").and_then(|number| number.trim().parse::<u64>().ok())
            });
            acknowledged = line.expect("the victim commits");
        }
        std::thread::sleep(Duration::from_micros(random.below(8000) as u64));
        victim.kill().expect("killed");
        victim.wait().expect("dead");
        // What it said before it died.
        for line in lines.map_while(Result::ok) {
            if let Some(number) =
                line.strip_prefix("committed ").and_then(|number| number.trim().parse().ok())
            {
                acknowledged = number;
            }
        }
        let store = Store::open(directory.path(), Options::default()).expect("opens");
        let found = read_number(&store);
        assert!(
            found == acknowledged || found == acknowledged + 1,
            "at {found}, acknowledged {acknowledged}"
        );
        assert!(store.verify().expect("verified").is_whole());
        last = found;
    }
}
