//! Attaching a local part to its object store: they must belong together.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, params};

use super::bucket::{Bucket, Version};
use super::{Inner, Remote, wire, worker};
use crate::pages::Pages;
use crate::seal::Sealer;
use crate::{Hash, StoreError};

/// The object that says what store this is.
const FORMAT: &str = "wardian-store";

impl Remote {
    pub(super) fn attach(
        directory: &Path,
        bucket: Bucket,
        connection: Connection,
        sealer: &Arc<Sealer>,
        (key_check, holder): (&[u8], String),
    ) -> Result<Remote, StoreError> {
        let node = node_of(&connection)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("wardian-remote")
            .enable_all()
            .build()?;
        let inner = Arc::new(Inner {
            bucket,
            sealer: sealer.clone(),
            pages: Pages::open(directory)?,
            database: Mutex::new(connection),
            node,
            holder,
            beaten: Mutex::default(),
            listed: tokio::sync::Mutex::default(),
            looked: Mutex::default(),
            worker: worker::State::open(directory)?,
        });
        let remote = Remote { inner, runtime: Some(runtime) };
        let check: String = key_check.iter().map(|byte| format!("{byte:02x}")).collect();
        let written = key_check.to_vec();
        remote.wait(|inner| async move { inner.meet(&check, &written).await })?;
        if let Some(runtime) = &remote.runtime {
            worker::start(&remote.inner, runtime)?;
        }
        Ok(remote)
    }
}

/// Returns the local part's id, which it gets when it is first opened.
fn node_of(connection: &Connection) -> Result<[u8; 16], StoreError> {
    let mut node = [0; 16];
    getrandom::fill(&mut node).map_err(|error| StoreError::Io(format!("no randomness: {error}")))?;
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('node', ?)", [node])?;
    Ok(connection.query_row("SELECT value FROM meta WHERE key = 'node'", [], |row| row.get(0))?)
}

impl Inner {
    /// Finds out whether the object store is the one that this local part belongs to; creates it if there is nothing yet.
    async fn meet(&self, check: &str, key_check: &[u8]) -> Result<(), StoreError> {
        let known: Option<String> = self
            .database
            .lock()
            .query_row("SELECT CAST(value AS TEXT) FROM meta WHERE key = 'remote'", [], |row| row.get(0))
            .optional()?;
        let found = match self.bucket.read(FORMAT, wire::MOST_FORMAT).await {
            Err(error @ StoreError::Remote { .. }) if known.is_some() => {
                tracing::warn!(%error, "uploading goes on when it can be reached");
                return Ok(());
            }
            found => found?,
        };
        let found = match (found, &known) {
            (Some((found, _)), _) => found.to_vec(),
            (None, Some(_)) => {
                let why = "nothing is there, though this machine has uploaded to it; is it the right bucket?";
                return Err(self.url_error(why));
            }
            (None, None) => self.create_format(key_check).await?,
        };
        let (id, their_check) = wire::read_format(&found).map_err(|error| self.at(FORMAT, error))?;
        if their_check != check {
            let why = match (their_check.as_str(), check) {
                ("", _) => "the object store is not encrypted: open it without a key",
                (_, "") => "the object store is encrypted: it needs its key",
                _ => "not the key that the object store is encrypted with",
            };
            return Err(StoreError::Key(why.to_owned()));
        }
        match known {
            Some(known) if known == id => Ok(()),
            Some(_) => {
                Err(self.url_error("another store is there than the one this machine has uploaded to"))
            }
            None => {
                self.probe(&found).await?;
                self.database.lock().execute("INSERT INTO meta VALUES ('remote', ?)", params![id])?;
                Ok(())
            }
        }
    }

    async fn create_format(&self, key_check: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut id = [0; 32];
        getrandom::fill(&mut id).map_err(|error| StoreError::Io(format!("no randomness: {error}")))?;
        let new = wire::write_format(&Hash(id).to_string()[..32], key_check);
        if self.bucket.create(FORMAT, new.clone()).await?.is_some() {
            return Ok(new);
        }
        // Another machine was quicker.
        let found = self.bucket.read(FORMAT, wire::MOST_FORMAT).await?;
        found.map(|(found, _)| found.to_vec()).ok_or_else(|| self.bucket.damaged(FORMAT, "it is gone again"))
    }

    /// Checks that the server refuses writes whose condition is not met. One that ignores conditions would let two machines
    /// overwrite each other's commits.
    async fn probe(&self, format: &[u8]) -> Result<(), StoreError> {
        let other = Version("\"0123456789abcdef0123456789abcdef\"".to_owned());
        let created = self.bucket.create(FORMAT, format.to_vec()).await?;
        let replaced = self.bucket.replace(FORMAT, format.to_vec(), &other).await?;
        for (done, header) in [(created, "If-None-Match"), (replaced, "If-Match")] {
            if done.is_some() {
                let why = format!("the server ignores {header}: two machines could overwrite each other");
                return Err(self.url_error(&why));
            }
        }
        Ok(())
    }

    fn url_error(&self, why: &str) -> StoreError {
        StoreError::Url { url: self.bucket.url().to_owned(), why: why.to_owned() }
    }
}
