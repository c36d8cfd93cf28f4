//! Retention: which commits are kept, and freeing what no kept commit leads to.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{Connection, TransactionBehavior, params};

use crate::remote::tables;
use crate::seal::{IN_FILE, LINKS, Sealer};
use crate::store::read_object;
use crate::{CommitId, Hash, Store, StoreError};

const DAY_MS: i64 = 86_400_000;

/// Which commits of each sandbox are kept, in addition to its head, those with a tag, and those that are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The last so many.
    pub last: usize,
    /// The last one of each of the last so many days that have one.
    pub days: usize,
}

impl Default for Retention {
    /// The last 100, and one for each of 30 days.
    fn default() -> Retention {
        Retention { last: 100, days: 30 }
    }
}

/// What collecting has freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Commits that are no longer kept.
    pub commits: u64,
    /// Objects that nothing led to.
    pub objects: u64,
    /// Their bytes in the store.
    pub bytes: u64,
}

impl Store {
    /// Forgets the commits that need not be kept, and frees what only they led to. Commits wait meanwhile.
    ///
    /// Of a store in an object store this concerns the local part: what is not uploaded stays, and what is uploaded stays in
    /// the object store. Nothing deletes there: another machine may be about to commit what refers to an object that nothing
    /// leads to at this moment.
    pub fn collect(&self, retention: Retention) -> Result<Collected, StoreError> {
        let (sealer, is_part) = (self.0.sealer.clone(), self.0.remote.is_some());
        let (collected, files) =
            self.0.writer.perform(move |connection| collect(connection, &sealer, retention, is_part))?;
        for hash in files {
            if let Err(error) = self.0.pages.remove(&hash) {
                tracing::warn!(%error, %hash, "a file of the store could not be removed");
            }
        }
        Ok(collected)
    }
}

fn collect(
    connection: &mut Connection,
    sealer: &Sealer,
    retention: Retention,
    is_part: bool,
) -> Result<(Collected, Vec<Hash>), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut collected =
        Collected { commits: forget_commits(&transaction, retention, is_part)?, ..Collected::default() };
    let mut live = reachable(&transaction, sealer, is_part)?;
    if is_part {
        tables::keep(&transaction, &mut live)?;
    }
    let mut files = Vec::new();
    {
        let mut all = transaction.prepare("SELECT id, hash, kind, length(body) FROM object")?;
        let mut rows = all.query([])?;
        let mut dead = Vec::new();
        while let Some(row) = rows.next()? {
            let hash = Hash(row.get(1)?);
            if !live.contains(&hash) {
                dead.push(row.get::<_, i64>(0)?);
                collected.bytes += row.get::<_, i64>(3)? as u64;
                if row.get::<_, i64>(2)? & IN_FILE != 0 {
                    files.push(hash);
                }
            }
        }
        collected.objects = dead.len() as u64;
        let mut delete = transaction.prepare("DELETE FROM object WHERE id = ?")?;
        dead.iter().try_for_each(|id| delete.execute([id]).map(drop))?;
    }
    transaction.commit()?;
    connection.execute_batch("PRAGMA incremental_vacuum")?;
    Ok((collected, files))
}

/// Forgets the commits that the retention does not keep.
fn forget_commits(connection: &Connection, retention: Retention, is_part: bool) -> Result<u64, StoreError> {
    let mut sandboxes = connection.prepare("SELECT id, head FROM sandbox")?;
    let sandboxes: Vec<(i64, Option<CommitId>)> =
        sandboxes.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut pinned: HashSet<CommitId> = HashSet::new();
    let mut tables = vec!["SELECT commit_id FROM tag", "SELECT pinned FROM lease WHERE pinned IS NOT NULL"];
    if is_part {
        tables.push("SELECT number FROM remote_queue");
    }
    for table in tables {
        let mut statement = connection.prepare(table)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        for row in rows {
            pinned.insert(row?);
        }
    }
    let mut forgotten = 0;
    for (sandbox, head) in sandboxes {
        let mut commits =
            connection.prepare_cached("SELECT id, time FROM commits WHERE sandbox = ? ORDER BY id DESC")?;
        let commits: Vec<(CommitId, i64)> =
            commits.query_map([sandbox], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        let mut days = BTreeSet::new();
        for (place, (id, time)) in commits.iter().enumerate() {
            let is_new_day = days.len() < retention.days && days.insert(time / DAY_MS);
            let keep = place < retention.last || is_new_day || Some(*id) == head || pinned.contains(id);
            if !keep {
                connection.prepare_cached("DELETE FROM commits WHERE id = ?")?.execute(params![id])?;
                forgotten += 1;
            }
        }
    }
    Ok(forgotten)
}

/// Returns everything that the commits lead to.
fn reachable(connection: &Connection, sealer: &Sealer, is_part: bool) -> Result<HashSet<Hash>, StoreError> {
    let mut roots = connection.prepare("SELECT DISTINCT root FROM commits")?;
    let mut pending: Vec<Hash> =
        roots.query_map([], |row| row.get(0).map(Hash))?.collect::<Result<_, _>>()?;
    let mut live: HashSet<Hash> = pending.iter().copied().collect();
    while let Some(hash) = pending.pop() {
        for link in links(connection, sealer, &hash, is_part)? {
            if live.insert(link) {
                pending.push(link);
            }
        }
    }
    Ok(live)
}

/// Returns what an object leads to. Most lead to nothing and are not read.
fn links(
    connection: &Connection,
    sealer: &Sealer,
    hash: &Hash,
    is_part: bool,
) -> Result<Vec<Hash>, StoreError> {
    let mut kind = connection.prepare_cached("SELECT kind FROM object WHERE hash = ?")?;
    let kind: Option<i64> =
        rusqlite::OptionalExtension::optional(kind.query_row([&hash.0[..]], |row| row.get(0)))?;
    match kind {
        // It is in the object store, with all that is below it and not here.
        None if is_part => Ok(Vec::new()),
        // A damaged store is not collected any further than it can be read: `verify` says what is missing.
        None => Err(StoreError::Damaged { hash: *hash, why: "it is missing".to_owned() }),
        Some(kind) if kind & LINKS == 0 => Ok(Vec::new()),
        Some(_) => Ok(read_object(connection, sealer, hash)?.links),
    }
}
