//! A sandbox as a value: fork, snapshot, restore.

use std::sync::{Arc, Weak};

use wardian_kernel::{AtRest, Session};
use wardian_vfs::Tree;

use crate::audit::Event;
use crate::error::{Error, lost};
use crate::history::History;
use crate::options::Limits;
use crate::sandbox::{RestOfAll, Sandbox, SessionGuard, bury};
use crate::system::System;

/// A saved state of a sandbox: its files, its shell, its history. Cloning it is cheap, and so is keeping many: they
/// share what they have in common.
#[derive(Clone)]
pub struct Snapshot {
    value: Arc<Value>,
    /// What it belongs to.
    system: Weak<System>,
}

pub(crate) struct Value {
    pub(crate) tree: Tree,
    pub(crate) rest: RestOfAll,
    pub(crate) history: History,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("bytes", &self.value.tree.usage().total()).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Returns how many bytes of memory it keeps that `other` does not; without another, all that a sandbox has of its
    /// own. That includes a flat amount, and files that are mounted as bytes. Takes a while if much differs: not for an
    /// async worker.
    pub fn bytes_beyond(&self, other: Option<&Snapshot>) -> u64 {
        let files = match other {
            Some(other) => self.value.tree.bytes_beyond(&other.value.tree),
            None => self.value.tree.usage().total(),
        };
        let (ours, theirs) = (&self.value.rest, other.map(|other| &other.value.rest));
        let shell = ours.shell.bytes_beyond(theirs.map(|theirs| &theirs.shell));
        let interpreter = |(name, rest): (&String, &AtRest)| {
            rest.bytes_beyond(theirs.and_then(|all| all.interpreters.get(name)))
        };
        let interpreters: u64 = ours.interpreters.iter().map(interpreter).sum();
        files + shell + interpreters + self.value.history.bytes()
    }
}

/// Gives a tree from elsewhere the limits of a sandbox. It may have more than they allow only if it had as little room before: or
/// a small sandbox would keep what only a large one may have.
pub(crate) fn limited(mut tree: Tree, limits: &Limits, what: &[u8]) -> Result<Tree, Error> {
    let (had, quota, used) = (tree.quota(), limits.quota(), tree.usage());
    if used.total() > quota.bytes && had.bytes > quota.bytes {
        return Err(Error::limit_reached(what, "fsLimitBytes", quota.bytes));
    }
    if used.inodes > quota.inodes && had.inodes > quota.inodes {
        return Err(Error::limit_reached(what, "fileCount", quota.inodes));
    }
    tree.set_quota(quota);
    Ok(tree)
}

impl Sandbox {
    /// Forks the sandbox: returns a copy of its current state. Waits for a command in progress; background processes are
    /// not copied.
    pub async fn fork(&self) -> Result<Sandbox, Error> {
        let session = self.session().await?;
        self.fork_at_rest(&self.value(&session).await?).await
    }

    /// Forks the sandbox `count` times.
    pub async fn fork_many(&self, count: usize) -> Result<Vec<Sandbox>, Error> {
        let value = {
            let session = self.session().await?;
            self.value(&session).await?
        };
        let mut forks = Vec::with_capacity(count);
        for number in 0..count {
            forks.push(self.fork_at_rest(&value).await?);
            if number % 64 == 63 {
                // Many forks take a while: others on this thread have their turn in between.
                tokio::task::yield_now().await;
            }
        }
        Ok(forks)
    }

    async fn fork_at_rest(&self, value: &Value) -> Result<Sandbox, Error> {
        self.check_audit()?;
        let fork = self.beside(value.tree.clone(), &value.rest, value.history.clone()).await?;
        self.inner().record(Event::Fork { child: fork.id() });
        Ok(fork)
    }

    /// Saves the current state. Waits for a command in progress; background processes are not part of it.
    pub async fn snapshot(&self) -> Result<Snapshot, Error> {
        let session = self.session().await?;
        let (value, system) = (self.value(&session).await?, Arc::downgrade(&self.inner().system));
        Ok(Snapshot { value: Arc::new(value), system })
    }

    /// Restores a state of this sandbox or of another. Waits for a command in progress and kills background processes. ENOSPC if
    /// the other has more files than this one may have.
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<(), Error> {
        let session = self.session().await?;
        let Value { tree, rest, history } = &*snapshot.value;
        if !std::ptr::eq(snapshot.system.as_ptr(), Arc::as_ptr(&self.inner().system)) {
            return Err(Error::OtherEngine("snapshot"));
        }
        let tree = limited(tree.clone(), self.limits(), b"snapshot")?;
        let old = self.become_value(session, tree, rest, history.clone()).await?;
        bury(&old).await;
        self.committed(None, b"restore", None).await
    }

    /// Its value between two commands.
    pub(crate) async fn value(&self, session: &SessionGuard) -> Result<Value, Error> {
        let mut tree = self.machine().tree().await.clone();
        let rest = {
            let interpreters = self.inner().interpreters.lock();
            let interpreters =
                interpreters.iter().map(|(name, each): (&String, &Session)| (name.clone(), each.at_rest()));
            RestOfAll { shell: session.at_rest(), interpreters: interpreters.collect() }
        };
        let history = self.inner().history.lock().clone();
        if !rest.all().any(AtRest::is_large) {
            AtRest::take_along(rest.all(), &mut tree);
            return Ok(Value { tree, rest, history });
        }
        let taking = self.kernel().spawn_blocking(move || {
            AtRest::take_along(rest.all(), &mut tree);
            Value { tree, rest, history }
        });
        taking.await.map_err(lost)
    }
}
