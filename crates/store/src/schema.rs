//! The database: its tables, and how a connection is set up.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::remote::tables;
use crate::{Options, StoreError};

/// The format of the store: a version that does not know it refuses it.
pub(crate) const FORMAT: i64 = 1;
/// That of the local part of an object store: a version that does not know of those would collect what is not uploaded.
const FORMAT_OF_PART: i64 = 2;
/// How long to wait for another process that is writing.
const PATIENCE: Duration = Duration::from_secs(30);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS object (
        id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS sandbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL,
        head INTEGER, created INTEGER NOT NULL, meta TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS commits (
        id INTEGER PRIMARY KEY AUTOINCREMENT, sandbox INTEGER NOT NULL, parent INTEGER, root BLOB NOT NULL,
        time INTEGER NOT NULL, command BLOB NOT NULL, exit_code INTEGER, bytes INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS commits_of ON commits (sandbox, id);
    CREATE TABLE IF NOT EXISTS tag (
        sandbox INTEGER NOT NULL, name TEXT NOT NULL, commit_id INTEGER NOT NULL, PRIMARY KEY (sandbox, name)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS lease (
        sandbox INTEGER PRIMARY KEY, token INTEGER NOT NULL, owner INTEGER NOT NULL, holder TEXT NOT NULL,
        place TEXT NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL, pinned INTEGER, expires INTEGER NOT NULL);
";

/// Opens a connection, creating the database if it does not exist.
pub(crate) fn connect(path: &Path, options: &Options) -> Result<Connection, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(64);
    let synchronous = if options.sync { "FULL" } else { "NORMAL" };
    // The writer moves the log into the database when it has time: see `writer.rs`.
    connection.execute_batch(&format!(
        "{} PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous};
         PRAGMA wal_autocheckpoint=0; PRAGMA trusted_schema=OFF; PRAGMA temp_store=MEMORY;",
        // Without shared memory, as a simulated file layer has none.
        if options.vfs.is_some() { "PRAGMA locking_mode=EXCLUSIVE;" } else { "" },
    ))?;
    Ok(connection)
}

/// Creates the tables, or checks that they are of a format that this version knows.
pub(crate) fn prepare(
    connection: &mut Connection,
    key_check: &[u8],
    url: Option<&str>,
) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match found {
        0 => {
            transaction.execute_batch(TABLES)?;
            transaction.execute("INSERT INTO meta VALUES ('key', ?)", [key_check])?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
            if let Some(url) = url {
                transaction.execute_batch(tables::TABLES)?;
                transaction.execute("INSERT INTO meta VALUES ('url', ?)", [url])?;
                transaction.pragma_update(None, "user_version", FORMAT_OF_PART)?;
            }
        }
        FORMAT | FORMAT_OF_PART => check_url(&transaction, url)?,
        found => return Err(StoreError::Version { found, known: FORMAT }),
    }
    let check: Option<Vec<u8>> =
        transaction.query_row("SELECT value FROM meta WHERE key = 'key'", [], |row| row.get(0)).optional()?;
    if check.as_deref() != Some(key_check) {
        let why = match (check.as_deref(), key_check) {
            (Some(b""), _) => "the store is not encrypted: open it without a key",
            (_, b"") => "the store is encrypted: it needs its key",
            _ => "not the key that the store is encrypted with",
        };
        return Err(StoreError::Key(why.to_owned()));
    }
    Ok(transaction.commit()?)
}

/// Checks that a directory is what it is opened as: a store of its own, or the local part of an object store.
fn check_url(connection: &Connection, url: Option<&str>) -> Result<(), StoreError> {
    let query = "SELECT CAST(value AS TEXT) FROM meta WHERE key = 'url'";
    let found: Option<String> = connection.query_row(query, [], |row| row.get(0)).optional()?;
    let directory = connection.path().unwrap_or_default().trim_end_matches("/store.db");
    let why = match (found.as_deref(), url) {
        (found, url) if found == url => return Ok(()),
        (Some(found), None) => format!("{directory} is the local part of it: open it by this URL ({found})"),
        (Some(found), Some(_)) => format!("{directory} is the local part of another one: {found}"),
        (None, _) => format!("{directory} already is a store of its own: give another directory"),
    };
    let url = url.map_or_else(|| found.unwrap_or_default(), str::to_owned);
    Err(StoreError::Url { url, why })
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
