//! What the local part knows of the object store: tables beside those of `schema.rs`.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::bucket::Version;
use super::wire::Name;
use crate::{CommitId, Hash, StoreError};

pub(crate) const TABLES: &str = "
    CREATE TABLE remote_pack (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
    -- Where each uploaded object is.
    CREATE TABLE remote_object (hash BLOB PRIMARY KEY, pack INTEGER NOT NULL) WITHOUT ROWID;
    -- Objects that are not uploaded yet, with the commit that brought them.
    CREATE TABLE remote_unsent (number INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (number, hash)) WITHOUT ROWID;
    CREATE INDEX remote_unsent_object ON remote_unsent (hash);
    -- Commits that no record in the object store has yet.
    CREATE TABLE remote_queue (number INTEGER PRIMARY KEY, sandbox INTEGER NOT NULL);
    CREATE INDEX remote_queue_of ON remote_queue (sandbox);
    -- The names of commits, which are the same everywhere, and their numbers here.
    CREATE TABLE remote_commit (name BLOB PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX remote_commit_number ON remote_commit (number);
    CREATE TABLE remote_record (sandbox INTEGER NOT NULL, name BLOB NOT NULL, PRIMARY KEY (sandbox, name)) WITHOUT ROWID;
    -- Heads as they were last seen, or with an empty version: not uploaded yet. `trail`: the newest records. `held`: this
    -- node has the lease.
    CREATE TABLE remote_head (
        sandbox INTEGER PRIMARY KEY, id BLOB NOT NULL, generation INTEGER NOT NULL, version TEXT NOT NULL,
        trail BLOB NOT NULL, held INTEGER NOT NULL, holder TEXT);
    -- Roots below which nothing is missing here.
    CREATE TABLE remote_whole (root BLOB PRIMARY KEY) WITHOUT ROWID;
    -- Leases that somebody else took, who that was, and where the commits are that were not uploaded.
    CREATE TABLE remote_moved (token INTEGER PRIMARY KEY, holder TEXT NOT NULL, aside TEXT);
";

/// A head as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownHead {
    pub(super) sandbox: i64,
    pub(super) id: [u8; 16],
    pub(super) generation: u64,
    pub(super) version: Version,
    /// The newest records, newest first.
    pub(super) trail: Vec<Name>,
    pub(super) held: bool,
    pub(super) holder: Option<String>,
}

/// Returns a head as it was last seen; `None` of one that is not uploaded yet.
pub(super) fn known_head(connection: &Connection, sandbox: i64) -> Result<Option<KnownHead>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, generation, version, trail, held, holder FROM remote_head
         WHERE sandbox = ? AND version <> ''",
    )?;
    let found = statement.query_row([sandbox], |row| {
        let trail: Vec<u8> = row.get(3)?;
        Ok(KnownHead {
            sandbox,
            id: row.get(0)?,
            generation: row.get::<_, i64>(1)?.max(0) as u64,
            version: Version(row.get(2)?),
            trail: trail.chunks_exact(32).filter_map(|name| name.try_into().ok()).collect(),
            held: row.get(4)?,
            holder: row.get(5)?,
        })
    });
    Ok(found.optional()?)
}

/// Returns a sandbox's id everywhere, which it can have before it is uploaded.
pub(super) fn id_of(connection: &Connection, sandbox: i64) -> Result<Option<[u8; 16]>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT id FROM remote_head WHERE sandbox = ?")?;
    Ok(statement.query_row([sandbox], |row| row.get(0)).optional()?)
}

/// Notes how a head was seen, unless somebody on this machine has seen a later one.
pub(super) fn note_head(connection: &Connection, head: &KnownHead) -> Result<(), StoreError> {
    let known = known_head(connection, head.sandbox)?;
    if known.is_some_and(|known| known.id == head.id && known.generation > head.generation) {
        return Ok(());
    }
    connection.prepare_cached("INSERT OR REPLACE INTO remote_head VALUES (?, ?, ?, ?, ?, ?, ?)")?.execute(
        params![
            head.sandbox,
            head.id,
            i64::try_from(head.generation).unwrap_or(i64::MAX),
            head.version.0,
            head.trail.concat(),
            head.held,
            head.holder,
        ],
    )?;
    Ok(())
}

pub(super) fn sandbox_of(connection: &Connection, name: &str) -> Result<Option<i64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT id FROM sandbox WHERE name = ?")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// Returns the number of a commit here.
pub(super) fn number_of(connection: &Connection, name: &Name) -> Result<Option<CommitId>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT number FROM remote_commit WHERE name = ?")?;
    Ok(statement.query_row([&name[..]], |row| row.get(0)).optional()?)
}

/// Returns the name of a commit everywhere.
pub(super) fn name_of(connection: &Connection, number: CommitId) -> Result<Option<Name>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT name FROM remote_commit WHERE number = ?")?;
    Ok(statement.query_row([number], |row| row.get(0)).optional()?)
}

/// Returns how many commits of a sandbox are not uploaded.
pub(super) fn queued(connection: &Connection, sandbox: i64) -> Result<i64, StoreError> {
    let mut statement = connection.prepare_cached("SELECT count(*) FROM remote_queue WHERE sandbox = ?")?;
    Ok(statement.query_row([sandbox], |row| row.get(0))?)
}

/// Returns whether somebody on this machine has a sandbox open.
pub(super) fn is_open(connection: &Connection, sandbox: i64) -> Result<bool, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT count(*) FROM lease WHERE sandbox = ? AND expires > ?")?;
    let count: i64 = statement.query_row([sandbox, crate::schema::now_ms()], |row| row.get(0))?;
    Ok(count > 0)
}

/// Returns which pack has an object.
pub(super) fn pack_of(connection: &Connection, hash: &Hash) -> Result<Option<Hash>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT name FROM remote_object JOIN remote_pack ON remote_pack.id = pack WHERE hash = ?",
    )?;
    Ok(statement.query_row([&hash.0[..]], |row| row.get(0).map(Hash)).optional()?)
}

/// Notes what is in a pack.
pub(super) fn note_pack(connection: &Connection, name: &Hash, objects: &[Hash]) -> Result<(), StoreError> {
    connection.execute("INSERT OR IGNORE INTO remote_pack (name) VALUES (?)", [&name.0[..]])?;
    let id: i64 =
        connection.query_row("SELECT id FROM remote_pack WHERE name = ?", [&name.0[..]], |row| row.get(0))?;
    let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO remote_object VALUES (?, ?)")?;
    objects.iter().try_for_each(|hash| insert.execute(params![&hash.0[..], id]).map(drop))?;
    Ok(())
}

/// Forgets where a pack is, and what was in it.
pub(super) fn forget_pack(connection: &Connection, name: &Hash) -> Result<(), StoreError> {
    connection.execute(
        "DELETE FROM remote_object WHERE pack = (SELECT id FROM remote_pack WHERE name = ?)",
        [&name.0[..]],
    )?;
    connection.execute("DELETE FROM remote_pack WHERE name = ?", [&name.0[..]])?;
    Ok(())
}

pub(super) fn is_whole(connection: &Connection, root: &Hash) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached("SELECT count(*) FROM remote_whole WHERE root = ?")?;
    Ok(statement.query_row([&root.0[..]], |row| row.get::<_, i64>(0))? > 0)
}

pub(super) fn note_whole(connection: &Connection, root: &Hash) -> Result<(), StoreError> {
    connection.prepare_cached("INSERT OR IGNORE INTO remote_whole VALUES (?)")?.execute([&root.0[..]])?;
    Ok(())
}

/// Notes a commit that is to be uploaded with what is new in it, in the transaction that makes it.
pub(crate) fn note_commit(
    connection: &Connection,
    (number, sandbox): (CommitId, i64),
    root: &Hash,
    new: &[Hash],
    is_new_value: bool,
) -> Result<(), StoreError> {
    let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO remote_unsent VALUES (?, ?)")?;
    new.iter().try_for_each(|hash| insert.execute(params![number, &hash.0[..]]).map(drop))?;
    connection.prepare_cached("INSERT INTO remote_queue VALUES (?, ?)")?.execute([number, sandbox])?;
    // It was made from a value in memory, and of that nothing is missing.
    if is_new_value { note_whole(connection, root) } else { Ok(()) }
}

/// Returns who took a lease, if that is known.
pub(crate) fn who_took(
    connection: &Connection,
    name: &str,
    token: i64,
) -> Result<Option<StoreError>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT holder, aside FROM remote_moved WHERE token = ?")?;
    let found = statement.query_row([token], |row| {
        Ok(StoreError::Elsewhere { name: name.to_owned(), holder: row.get(0)?, aside: row.get(1)? })
    });
    Ok(found.optional()?)
}

/// Forgets what is known of a sandbox that is gone.
pub(crate) fn forget_sandbox(connection: &Connection, sandbox: i64) -> Result<(), StoreError> {
    connection.execute(
        "DELETE FROM remote_commit WHERE number IN (SELECT id FROM commits WHERE sandbox = ?)",
        [sandbox],
    )?;
    for table in ["remote_queue", "remote_record", "remote_head"] {
        connection.execute(&format!("DELETE FROM {table} WHERE sandbox = ?"), [sandbox])?;
    }
    Ok(())
}

/// Adds what is not uploaded to what is kept, and forgets which values are whole that will not be.
pub(crate) fn keep(connection: &Connection, live: &mut HashSet<Hash>) -> Result<(), StoreError> {
    let mut unsent = connection.prepare("SELECT hash FROM remote_unsent")?;
    for hash in unsent.query_map([], |row| row.get(0).map(Hash))? {
        live.insert(hash?);
    }
    let mut whole = connection.prepare("SELECT root FROM remote_whole")?;
    let whole: Vec<Hash> = whole.query_map([], |row| row.get(0).map(Hash))?.collect::<Result<_, _>>()?;
    for root in whole.iter().filter(|root| !live.contains(root)) {
        connection.execute("DELETE FROM remote_whole WHERE root = ?", [&root.0[..]])?;
    }
    Ok(())
}

/// Returns whether an object is in the object store.
pub(crate) fn is_uploaded(connection: &Connection, hash: &Hash) -> Result<bool, StoreError> {
    Ok(pack_of(connection, hash)?.is_some())
}

/// Gives up what was repaired away: it cannot be uploaded any more.
pub(crate) fn forget_repaired(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch(
        "DELETE FROM remote_unsent WHERE hash NOT IN (SELECT hash FROM object);
         DELETE FROM remote_queue WHERE number NOT IN (SELECT id FROM commits);
         DELETE FROM remote_whole;",
    )?;
    Ok(())
}
