//! All sandboxes and snapshots of all keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wardian::{Limits, Sandbox};

use super::allowance::{Allowance, Allowances};
use super::answer::Refused;
use super::hosted::{Description, Hosted};
use super::paused;
use crate::quota::{Place, Quota, Quotas};
use crate::session::Shared;
use crate::tenant::hashed;

/// How many sandboxes a key may have, and how many snapshots.
const SANDBOXES: usize = 1024;
const SNAPSHOTS: usize = 256;

/// A state that sandboxes can be created from: a sandbox at rest that nothing runs in.
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) names: Vec<String>,
    pub(super) origin: String,
    pub(super) described: Description,
    pub(super) sandbox: Sandbox,
    pub(super) _room: Place,
}

pub(crate) struct Boxes {
    pub(super) shared: Arc<Shared>,
    /// Room for requests in progress, streams included.
    pub(crate) requests: Arc<Semaphore>,
    allowances: Allowances,
    quotas: Quotas,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    hosted: BTreeMap<String, Arc<Hosted>>,
    kept: BTreeMap<String, Arc<Kept>>,
    closed: bool,
}

impl Boxes {
    pub(crate) fn new(shared: Arc<Shared>, quotas: Quotas) -> Arc<Boxes> {
        let requests = Arc::new(Semaphore::new(crate::admission::clients()));
        let allowances = Allowances::default();
        Arc::new(Boxes { shared, requests, allowances, quotas, table: Mutex::default() })
    }

    /// Returns what the requests of an owner may take, who has this key.
    pub(crate) fn allowance(&self, owner: &str) -> Arc<Allowance> {
        self.allowance_of_key(&hashed(owner))
    }

    /// Does the same for one of which only the key's hash is known.
    pub(super) fn allowance_of_key(&self, key: &str) -> Arc<Allowance> {
        self.allowances.of(key, &self.shared)
    }

    /// Returns what the tenant of a key may take, if the server says so. Like all that follow, it takes the key's hash.
    pub(super) fn quota(&self, key: &str) -> Option<Arc<Quota>> {
        self.quotas.of(key)
    }

    /// Returns a sandbox by its id, without checking who asks: the token is checked later.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Hosted>> {
        self.table.lock().hosted.get(id).cloned()
    }

    /// Returns a sandbox of a key.
    pub(super) fn of(&self, key: &str, id: &str) -> Result<Arc<Hosted>, Refused> {
        self.find(id).filter(|hosted| hosted.key == key).ok_or_else(|| Refused::no_sandbox(id))
    }

    /// Returns all sandboxes of a key, in the order of their creation.
    pub(super) fn all_of(&self, key: &str) -> Vec<Arc<Hosted>> {
        let mut all: Vec<_> =
            self.table.lock().hosted.values().filter(|hosted| hosted.key == key).cloned().collect();
        all.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        all
    }

    /// Returns the sandbox that signed for something: see `transfer`.
    pub(super) fn signed_by(&self, is_it: impl Fn(&Hosted) -> bool) -> Option<Arc<Hosted>> {
        let all: Vec<_> = self.table.lock().hosted.values().cloned().collect();
        all.into_iter().find(|hosted| is_it(hosted))
    }

    /// Takes room for so many more sandboxes of a key.
    pub(super) async fn room(&self, key: &str, count: usize) -> Result<Vec<Place>, Refused> {
        let has = self.table.lock().hosted.values().filter(|hosted| hosted.key == key).count();
        if has + count > SANDBOXES {
            let message = format!("a key may have {SANDBOXES} sandboxes");
            return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, message));
        }
        // All of them have the usual limits.
        let quota = self.quota(key);
        let limits = Limits::default();
        let places = self.shared.places(quota.as_ref(), &limits, count);
        places.await.map_err(|error| Refused::new(StatusCode::TOO_MANY_REQUESTS, error.message))
    }

    /// Adds a sandbox, and watches over it.
    pub(super) fn add(self: &Arc<Boxes>, hosted: &Arc<Hosted>) -> Result<(), Refused> {
        let mut table = self.table.lock();
        if table.closed {
            return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down"));
        }
        table.hosted.insert(hosted.id.clone(), hosted.clone());
        tokio::spawn(hosted.clone().watch_over(self.clone()));
        Ok(())
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<Hosted>> {
        self.table.lock().hosted.remove(id)
    }

    /// Keeps a snapshot.
    pub(super) fn keep(&self, kept: Kept) -> Result<Value, Refused> {
        let mut table = self.table.lock();
        if table.kept.values().filter(|other| other.key == kept.key).count() >= SNAPSHOTS {
            let message = format!("a key may have {SNAPSHOTS} snapshots");
            return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, message));
        }
        let shown = kept.shown();
        table.kept.insert(kept.id.clone(), Arc::new(kept));
        Ok(shown)
    }

    /// Returns a snapshot of a key, by its id or one of its names.
    pub(super) fn kept(&self, key: &str, name: &str) -> Option<Arc<Kept>> {
        let table = self.table.lock();
        let mine = |kept: &&Arc<Kept>| kept.key == key;
        let by_id = table.kept.get(name).filter(mine).cloned();
        by_id.or_else(|| {
            table
                .kept
                .values()
                .filter(mine)
                .find(|kept| kept.names.iter().any(|other| other == name))
                .cloned()
        })
    }

    pub(super) fn all_kept(&self, key: &str) -> Vec<Arc<Kept>> {
        self.table.lock().kept.values().filter(|kept| kept.key == key).cloned().collect()
    }

    pub(super) fn forget_kept(&self, kept: &Kept) {
        self.table.lock().kept.remove(&kept.id);
    }

    /// Destroys everything.
    pub(crate) async fn end(&self) {
        let (hosted, kept) = {
            let mut table = self.table.lock();
            table.closed = true;
            (std::mem::take(&mut table.hosted), std::mem::take(&mut table.kept))
        };
        let mut ending = JoinSet::new();
        for hosted in hosted.into_values() {
            let store = self.shared.store.clone();
            ending.spawn(async move { paused::end(&hosted, store).await });
        }
        for kept in kept.into_values() {
            ending.spawn(async move { kept.sandbox.destroy().await });
        }
        ending.join_all().await;
    }
}

impl Kept {
    pub(super) fn shown(&self) -> Value {
        json!({ "snapshotID": self.id, "names": self.names })
    }
}
