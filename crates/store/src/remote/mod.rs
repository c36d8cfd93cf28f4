//! A store whose sandboxes other machines can open: an object store (S3 and what is compatible with it) behind the local one.
//!
//! ```text
//!   commit ──► local part: SQLite, fsync ──► acknowledged
//!                   │  queue: in the same transaction
//!                   ▼
//!              uploader: packs ──► records ──► head, if it is as it was                       heads/ns/name
//! ```
//!
//! The local part is an ordinary store, which is also the queue: what is not uploaded is in its tables (`tables.rs`), so
//! a crash loses nothing that was acknowledged on this machine, and uploading goes on when the store is opened again. One
//! process of those that have a local part open uploads for all of them.
//!
//! | file | |
//! |---|---|
//! | `bucket.rs`, `http.rs` | requests, with their caps and deadlines |
//! | `wire.rs`, `pack.rs`, `regions.rs` | what is in the object store |
//! | `heads.rs` | heads and commits of other machines, into the local part |
//! | `claims.rs` | names and leases |
//! | `upload.rs`, `fetch.rs` | objects, there and back |
//!
//! Everything here is asynchronous and runs on two threads of its own; callers wait on a channel, whatever runtime they
//! are on.

mod attach;
mod bucket;
mod claims;
mod fetch;
mod heads;
mod http;
mod pack;
mod regions;
pub(crate) mod tables;
mod upload;
mod wire;
mod worker;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::runtime::Runtime;

use self::bucket::{Bucket, Version};
use crate::lease::OwnerRow;
use crate::names::Kind;
use crate::pages::Pages;
use crate::seal::Sealer;
use crate::{CommitId, Hash, StoreError, full_name};

/// How long what was read of a head is believed to be so, by those who only look.
const FRESH: Duration = Duration::from_secs(2);

/// What is not uploaded yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// Commits.
    pub commits: u64,
    /// Objects that are new in them.
    pub objects: u64,
    /// Their bytes, without those of memories that are files.
    pub bytes: u64,
    /// When the oldest of these commits was made, in milliseconds since 1970.
    pub oldest_ms: Option<u64>,
    /// Why the last attempt of this process failed, if it did.
    pub error: Option<String>,
}

impl Waiting {
    /// Returns whether everything is uploaded.
    pub fn is_nothing(&self) -> bool {
        self.commits == 0 && self.objects == 0
    }
}

/// The object store of a store.
pub(crate) struct Remote {
    inner: Arc<Inner>,
    runtime: Option<Runtime>,
}

pub(crate) struct Inner {
    bucket: Bucket,
    sealer: Arc<Sealer>,
    pages: Pages,
    database: Mutex<Connection>,
    /// This local part, and how a lease that it holds is described to others.
    node: [u8; 16],
    holder: String,
    /// When this node last said that it is alive.
    beaten: Mutex<Option<Instant>>,
    /// When the packs were last listed.
    listed: tokio::sync::Mutex<Option<Instant>>,
    /// When heads were last looked at; all of them under the empty name.
    looked: Mutex<HashMap<String, Instant>>,
    worker: worker::State,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.bucket.fmt(f)
    }
}

impl Drop for Remote {
    /// Does not wait: what is not uploaded is in the local part.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Inner {
    fn transact<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut database = self.database.lock();
        let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    fn is_fresh(&self, name: &str) -> bool {
        self.looked.lock().get(name).is_some_and(|looked| looked.elapsed() < FRESH)
    }

    fn note_look(&self, name: &str) {
        let mut looked = self.looked.lock();
        looked.retain(|_, looked| looked.elapsed() < FRESH);
        looked.insert(name.to_owned(), Instant::now());
    }

    /// Looks at one head, unless this node has its lease or that was done a moment ago.
    async fn look(&self, name: &str) -> Result<(), StoreError> {
        let is_held = self.known(name)?.is_some_and(|known| known.held);
        if is_held || self.is_fresh(name) {
            return Ok(());
        }
        self.pull(name).await?;
        self.note_look(name);
        Ok(())
    }

    /// Looks at all heads.
    async fn look_at_all(&self) -> Result<(), StoreError> {
        if self.is_fresh("") {
            return Ok(());
        }
        let listed = self.bucket.list("heads").await?;
        let mut there = std::collections::HashSet::new();
        let mut changed = Vec::new();
        for head in listed {
            if full_name(&head.name).as_deref() != Ok(&head.name) {
                tracing::warn!("{} has an object that is not a head: heads/{}", self.bucket.url(), head.name);
                continue;
            }
            let known: Option<Version> = self.known(&head.name)?.map(|known| known.version);
            if known.is_none() || known != head.version {
                changed.push(head.name.clone());
            }
            there.insert(head.name);
        }
        for step in changed.chunks(heads::AT_ONCE) {
            let pulling = step.iter().cloned().map(|name| async move { self.pull(&name).await });
            for result in futures_util::future::join_all(pulling).await {
                result?;
            }
        }
        for name in self.uploaded_names()? {
            if !there.contains(&name) {
                self.pull(&name).await?;
            }
        }
        self.note_look("");
        Ok(())
    }

    /// Returns the names that have a head in the object store, as far as is known.
    fn uploaded_names(&self) -> Result<Vec<String>, StoreError> {
        let database = self.database.lock();
        let mut names = database.prepare_cached(
            "SELECT name FROM sandbox JOIN remote_head ON sandbox.id = sandbox WHERE version <> ''",
        )?;
        let names = names.query_map([], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }
}

impl Remote {
    /// Does something on the threads of the object store, and waits for it.
    fn wait<T: Send + 'static, W>(&self, work: impl FnOnce(Arc<Inner>) -> W) -> Result<T, StoreError>
    where
        W: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let ended = || StoreError::Io("the store was closed".to_owned());
        let runtime = self.runtime.as_ref().ok_or_else(ended)?;
        let (sender, answer) = std::sync::mpsc::channel();
        let work = work(self.inner.clone());
        runtime.spawn(async move {
            let _ = sender.send(work.await);
        });
        answer.recv().unwrap_or_else(|_| Err(ended()))
    }

    pub(crate) fn url(&self) -> &str {
        self.inner.bucket.url()
    }

    pub(crate) fn fetch(&self, hashes: Vec<Hash>) -> Result<(), StoreError> {
        self.wait(|inner| async move { inner.fetch(&hashes).await })
    }

    pub(crate) fn complete(&self, root: Hash) -> Result<(), StoreError> {
        self.wait(|inner| async move { inner.complete(&root).await })
    }

    /// Finds out which objects are there.
    pub(crate) fn read_tables(&self) -> Result<(), StoreError> {
        self.wait(|inner| async move { inner.read_tables(Instant::now()).await.map(drop) })
    }

    /// Looks at a head. Without an answer, what is known here is all there is to say.
    pub(crate) fn look(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        offline(self.wait(|inner| async move { inner.look(&name).await }))
    }

    /// Looks at all heads.
    pub(crate) fn look_at_all(&self) -> Result<(), StoreError> {
        offline(self.wait(|inner| async move { inner.look_at_all().await }))
    }

    pub(crate) fn claim(&self, name: &str, by_force: bool) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.wait(|inner| async move { inner.claim(&name, by_force).await })
    }

    /// Creates a name with the lease of a process; returns the sandbox's number.
    pub(crate) fn create(
        &self,
        name: &str,
        kind: Kind,
        meta: &str,
        token: i64,
        owner: OwnerRow,
    ) -> Result<i64, StoreError> {
        let (name, meta) = (name.to_owned(), meta.to_owned());
        self.wait(|inner| async move { inner.create(&name, (kind, &meta), (token, owner)).await })
    }

    /// Brings what is known of a name up to date.
    pub(crate) fn pull(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.wait(|inner| async move { inner.pull(&name).await.map(drop) })
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.wait(|inner| async move { inner.remove(&name).await })
    }

    pub(crate) fn tag(&self, name: &str, tag: &str, commit: Option<CommitId>) -> Result<(), StoreError> {
        let (name, tag) = (name.to_owned(), tag.to_owned());
        self.wait(|inner| async move { inner.tag(&name, &tag, commit).await })
    }

    /// Returns who has names open on other machines, as far as is known.
    pub(crate) fn holders(connection: &Connection) -> Result<HashMap<String, String>, StoreError> {
        let mut holders = connection.prepare_cached(
            "SELECT name, holder FROM remote_head JOIN sandbox ON sandbox.id = sandbox WHERE holder IS NOT NULL",
        )?;
        let holders = holders.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(holders.collect::<Result<_, _>>()?)
    }

    /// Opens the object store of a local part.
    pub(crate) fn open(
        directory: &Path,
        url: &str,
        connection: Connection,
        sealer: &Arc<Sealer>,
        (key_check, holder): (&[u8], String),
    ) -> Result<Remote, StoreError> {
        Remote::attach(directory, Bucket::of_url(url)?, connection, sealer, (key_check, holder))
    }

    /// Does the same with an object store that is there already.
    pub(crate) fn open_with(
        directory: &Path,
        store: Arc<dyn object_store::ObjectStore>,
        connection: Connection,
        sealer: &Arc<Sealer>,
        (key_check, holder): (&[u8], String),
    ) -> Result<Remote, StoreError> {
        let bucket = Bucket::of_store(store, "test://bucket");
        Remote::attach(directory, bucket, connection, sealer, (key_check, holder))
    }
}

/// Returns the plain form of a URL, if it can be a store's.
pub(crate) fn plain_url(url: &str) -> Result<String, StoreError> {
    Ok(bucket::parse(url)?.2)
}

/// Those who only look can do without an answer: what is known here is not wrong, but may be old.
fn offline(result: Result<(), StoreError>) -> Result<(), StoreError> {
    match result {
        Err(error @ StoreError::Remote { .. }) => {
            tracing::warn!(%error, "what other machines have uploaded since is not seen");
            Ok(())
        }
        result => result,
    }
}
