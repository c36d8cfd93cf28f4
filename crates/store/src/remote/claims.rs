//! Who may move a head: leases in the head objects, and the names themselves.
//!
//! A head names the node that holds its lease: a node is a local part, on one machine. Until when a node may be believed
//! to be alive is in one object of the node's own, which it rewrites every few seconds, whatever number of leases it holds;
//! renewing each head would be a request for each sandbox that sleeps. Which process of a node has a sandbox is decided
//! among them (`lease.rs`).
//!
//! What prevents damage is not the lease but that a head is only replaced by whoever has read what is there: clocks that
//! differ can end a lease too early, and then its holder's next upload is refused.

use std::time::{Duration, Instant};

use rusqlite::params;

use super::Inner;
use super::bucket::Version;
use super::heads::head_path;
use super::tables::{self, KnownHead};
use super::wire::{self, Head, Holder, Node};
use crate::lease::{self, OwnerRow};
use crate::names::Kind;
use crate::{CommitId, StoreError, schema};

/// How long a node is believed to be alive without saying so, and how often it does.
const LASTS: i64 = 90_000;
pub(super) const BEAT: Duration = Duration::from_secs(20);
/// How often a change of a head is tried again because somebody else was quicker.
const TRIES: usize = 8;

fn node_path(node: &[u8; 16]) -> String {
    format!("nodes/{:032x}", u128::from_be_bytes(*node))
}

impl Inner {
    fn holder(&self) -> Holder {
        Holder { node: self.node, holder: self.holder.clone() }
    }

    /// Says that this node is alive, unless that was said a moment ago.
    pub(super) async fn beat(&self) -> Result<(), StoreError> {
        if self.beaten.lock().is_some_and(|beaten: Instant| beaten.elapsed() < BEAT) {
            return Ok(());
        }
        let now = Instant::now();
        let (_, node) = wire::seal(&self.sealer, &Node { expires: schema::now_ms() + LASTS })?;
        self.bucket.write(&node_path(&self.node), node).await?;
        *self.beaten.lock() = Some(now);
        Ok(())
    }

    /// Returns until when another node may be believed to be alive; `None` if it no longer is. One that says so for longer
    /// than a node ever does has another clock, and is not believed.
    async fn expiry(&self, node: &[u8; 16]) -> Result<Option<i64>, StoreError> {
        let path = node_path(node);
        let Some((bytes, _)) = self.bucket.read(&path, wire::MOST_NODE).await? else { return Ok(None) };
        let found = wire::open_node(&self.sealer, &bytes).map_err(|error| self.at(&path, error))?;
        let now = schema::now_ms();
        Ok((found.expires > now && found.expires <= now + 2 * LASTS).then_some(found.expires))
    }

    /// Changes a head: reads it, and replaces what was read. `change` says what is to be there, or `None` for no change.
    pub(super) async fn change(
        &self,
        name: &str,
        change: impl Fn(&Head) -> Result<Option<Head>, StoreError> + Send + Sync,
    ) -> Result<(Head, Version), StoreError> {
        for _ in 0..TRIES {
            let found = self.pull(name).await?;
            let (head, version) = found.ok_or_else(|| StoreError::Missing(name.to_owned()))?;
            let Some(next) = change(&head)? else { return Ok((head, version)) };
            if let Some(changed) = self.replace(&head, next, &version).await? {
                return Ok(changed);
            }
        }
        Err(StoreError::Conflict(name.to_owned()))
    }

    /// Replaces a head if it is still what was read.
    async fn replace(
        &self,
        head: &Head,
        next: Head,
        version: &Version,
    ) -> Result<Option<(Head, Version)>, StoreError> {
        let next = Head { generation: head.generation + 1, ..next };
        let (_, bytes) = wire::seal(&self.sealer, &next)?;
        let replaced = self.bucket.replace(&head_path(&head.name), bytes, version).await?;
        Ok(replaced.map(|version| (next, version)))
    }

    /// Notes a head that this node has just written.
    fn note(&self, (head, version): &(Head, Version)) -> Result<(), StoreError> {
        self.transact(|transaction| {
            let Some(sandbox) = tables::sandbox_of(transaction, &head.name)? else { return Ok(()) };
            let Some(known) = tables::known_head(transaction, sandbox)? else { return Ok(()) };
            let held = head.lease.as_ref().is_some_and(|lease| lease.node == self.node);
            let holder = head.lease.as_ref().filter(|_| !held).map(|lease| lease.holder.clone());
            let (generation, version) = (head.generation, version.clone());
            tables::note_head(transaction, &KnownHead { generation, version, held, holder, ..known })
        })
    }

    /// Takes the lease of a name for this node.
    pub(super) async fn claim(&self, name: &str, by_force: bool) -> Result<(), StoreError> {
        // What was never uploaded, nobody else can have.
        if self.read_head(name).await?.is_none() && self.is_only_here(name)? {
            return Ok(());
        }
        self.beat().await?;
        for _ in 0..TRIES {
            let found = self.pull(name).await?;
            let (head, version) = found.ok_or_else(|| StoreError::Missing(name.to_owned()))?;
            let other = head.lease.as_ref().filter(|held| held.node != self.node && !by_force);
            if let Some(held) = other
                && let Some(expires) = self.expiry(&held.node).await?
            {
                let left = (expires - schema::now_ms()).max(0).div_euclid(1000) + 1;
                let holder = format!("{} (if it ends without letting go: for {left} s more)", held.holder);
                return Err(StoreError::Busy { name: name.to_owned(), holder });
            }
            // If it is this node's it is written all the same: a process that is letting go of it notices.
            let next = Head { lease: Some(self.holder()), ..head.clone() };
            if let Some(claimed) = self.replace(&head, next, &version).await? {
                return self.note(&claimed);
            }
        }
        Err(StoreError::Conflict(name.to_owned()))
    }

    fn is_only_here(&self, name: &str) -> Result<bool, StoreError> {
        let database = self.database.lock();
        match tables::sandbox_of(&database, name)? {
            Some(sandbox) => Ok(tables::known_head(&database, sandbox)?.is_none()),
            None => Ok(false),
        }
    }

    /// Lets go of the lease of a name that nobody on this node has open.
    pub(super) async fn let_go(&self, name: &str) -> Result<(), StoreError> {
        let let_go = self.change(name, |head| {
            let is_ours = head.lease.as_ref().is_some_and(|lease| lease.node == self.node);
            Ok((is_ours && !self.is_open(name)?).then(|| Head { lease: None, ..head.clone() }))
        });
        match let_go.await {
            Ok(changed) => self.note(&changed),
            Err(StoreError::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn is_open(&self, name: &str) -> Result<bool, StoreError> {
        let database = self.database.lock();
        match tables::sandbox_of(&database, name)? {
            Some(sandbox) => tables::is_open(&database, sandbox),
            None => Ok(false),
        }
    }

    /// Creates a name, which nothing may have, with its lease; in the object store first.
    pub(super) async fn create(
        &self,
        name: &str,
        (kind, meta): (Kind, &str),
        (token, owner): (i64, OwnerRow),
    ) -> Result<i64, StoreError> {
        let exists = || StoreError::Exists(name.to_owned());
        if self.is_only_here(name)? {
            return Err(exists());
        }
        self.beat().await?;
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| StoreError::Io(format!("no randomness: {error}")))?;
        let about = (kind.number() as u8, schema::now_ms(), meta.to_owned());
        let mut head = Head { lease: Some(self.holder()), ..Head::new(name, id, about) };
        let (path, mut bytes) = (head_path(name), wire::seal(&self.sealer, &head)?.1);
        let mut created = self.bucket.create(&path, bytes).await?;
        for _ in 0..TRIES {
            if created.is_some() {
                break;
            }
            match self.read_head(name).await? {
                // The answer to the first try was lost.
                Some((found, version)) if found.id == id => created = Some(version),
                Some((found, version)) if found.removed => {
                    head.generation = found.generation + 1;
                    bytes = wire::seal(&self.sealer, &head)?.1;
                    created = self.bucket.replace(&path, bytes, &version).await?;
                }
                found => {
                    self.take_in(name, found.as_ref()).await?;
                    return Err(exists());
                }
            }
        }
        let version = created.ok_or_else(|| StoreError::Conflict(name.to_owned()))?;
        self.transact(|transaction| {
            self.import(transaction, (&head, &version), &[])?;
            let sandbox = tables::sandbox_of(transaction, name)?;
            let sandbox = sandbox.ok_or_else(|| StoreError::Missing(name.to_owned()))?;
            // At once: what nobody here has open is let go of.
            lease::write(transaction, (sandbox, None), token, &owner)?;
            Ok(sandbox)
        })
    }

    /// Removes a name in the object store. Its lease is this node's.
    pub(super) async fn remove(&self, name: &str) -> Result<(), StoreError> {
        if self.is_only_here(name)? {
            return Ok(());
        }
        for _ in 0..TRIES {
            let Some((head, version)) = self.pull(name).await? else { return Ok(()) };
            if head.lease.as_ref().is_some_and(|lease| lease.node != self.node) {
                return Err(StoreError::Lost(name.to_owned()));
            }
            let kept = Head::new(name, head.id, (head.kind, head.created, String::new()));
            let gone = Head { removed: true, generation: head.generation + 1, ..kept };
            let (_, bytes) = wire::seal(&self.sealer, &gone)?;
            if self.bucket.replace(&head_path(name), bytes, &version).await?.is_some() {
                return Ok(());
            }
        }
        Err(StoreError::Conflict(name.to_owned()))
    }

    /// Sets or removes a tag, of a commit that is uploaded.
    pub(super) async fn tag(
        &self,
        name: &str,
        tag: &str,
        commit: Option<CommitId>,
    ) -> Result<(), StoreError> {
        if self.is_only_here(name)? {
            let why = format!("{name} is not uploaded yet");
            return Err(StoreError::Remote { url: self.bucket.url().to_owned(), why });
        }
        let target = match commit {
            Some(commit) => {
                let named = tables::name_of(&self.database.lock(), commit)?;
                Some(named.ok_or_else(|| StoreError::Missing(format!("{name}: commit {commit}")))?)
            }
            None => None,
        };
        let changed = self.change(name, |head| {
            let mut tags = head.tags.clone();
            match target {
                Some(target) => tags.insert(tag.to_owned(), target),
                None => tags.remove(tag),
            };
            Ok((tags != head.tags).then(|| Head { tags, ..head.clone() }))
        });
        self.note(&changed.await?)
    }

    /// Returns the names whose lease this node has, though nobody on it has them open and all is uploaded.
    pub(super) fn abandoned(&self) -> Result<Vec<String>, StoreError> {
        let database = self.database.lock();
        let mut names = database.prepare_cached(
            "SELECT name FROM remote_head JOIN sandbox ON sandbox.id = sandbox
             WHERE held AND sandbox NOT IN (SELECT sandbox FROM lease WHERE expires > ?)
                   AND sandbox NOT IN (SELECT sandbox FROM remote_queue)",
        )?;
        let names = names.query_map(params![schema::now_ms()], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// Returns whether this node has any lease.
    pub(super) fn holds_any(&self) -> Result<bool, StoreError> {
        let database = self.database.lock();
        let mut held = database.prepare_cached("SELECT 1 FROM remote_head WHERE held")?;
        Ok(held.exists([])?)
    }
}
