//! What a store in an object store promises: nothing is between two commits, nothing damaged is loaded, one machine writes.

mod damage;
mod faults;
mod machines;
mod s3;
mod steps;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use object_store::memory::InMemory;
use wardian_store::{Commit, CommitId, Lease, Note, Options, Store, StoreError};

use faults::Faulty;

/// A machine: a directory of its own, and a way to the same object store.
struct Machine {
    directory: tempfile::TempDir,
    way: Arc<Faulty>,
}

impl Machine {
    fn new(bucket: &Arc<InMemory>) -> Machine {
        Machine { directory: tempfile::tempdir().expect("a directory"), way: Faulty::over(bucket) }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn open(&self) -> Store {
        self.try_open(options()).expect("a store")
    }

    fn try_open(&self, options: Options) -> Result<Store, StoreError> {
        Store::on_object_store(self.way.clone(), self.path(), options)
    }
}

fn options() -> Options {
    Options { sync: false, ..Options::default() }
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
    let note = Note { command: bytes[..bytes.len().min(100)].to_vec(), exit_code: Some(0) };
    store.commit(Commit { lease, parent, root, batch, note })
}

/// Reads what the newest commit leads to.
fn content(store: &Store, name: &str) -> Result<Vec<u8>, StoreError> {
    let root = store.get(&store.head(name)?.root)?;
    Ok(store.get(&root.links[0])?.bytes)
}

fn flush(store: &Store) {
    store.flush(Some(Duration::from_secs(20))).expect("uploaded");
}
