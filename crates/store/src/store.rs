//! The store: a directory, its writer, and connections that read.

use std::fmt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension};

use crate::hash::Namer;
use crate::lease::Owner;
use crate::pages::Pages;
use crate::seal::{IN_FILE, Sealer};
use crate::writer::Writer;
use crate::{Batch, Entry, Hash, Key, Kind, Object, StoreError, full_name, schema};

/// How many idle connections are kept for readers.
const IDLE_READERS: usize = 4;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Encrypts everything with this key.
    pub key: Option<Key>,
    /// Waits for the disk at each commit (`fsync`). Without it a crash of the machine can lose the last commits, but
    /// never leaves one half done.
    pub sync: bool,
    /// The file layer that SQLite uses, by its registered name: for tests that crash it.
    #[doc(hidden)]
    pub vfs: Option<&'static str>,
}

impl Default for Options {
    fn default() -> Options {
        Options { key: None, sync: true, vfs: None }
    }
}

/// A store in a directory. Cloning the handle shares it; other processes can open it at the same time.
#[derive(Clone)]
pub struct Store(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) database: PathBuf,
    options: Options,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) pages: Pages,
    readers: Mutex<Vec<Connection>>,
    pub(crate) owner: Owner,
    pub(crate) writer: Writer,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("database", &self.0.database).finish_non_exhaustive()
    }
}

impl Store {
    /// Returns the directory that it is in.
    pub fn directory(&self) -> &Path {
        self.0.database.parent().unwrap_or(Path::new("."))
    }

    /// Opens the store in this directory, which is created if it does not exist and then only this user can enter.
    pub fn open(directory: &Path, options: Options) -> Result<Store, StoreError> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let database = directory.join("store.db");
        let sealer = Arc::new(Sealer::new(options.key.as_ref()));
        let mut connection = schema::connect(&database, &options)?;
        schema::prepare(&mut connection, &key_check(&sealer))?;
        let pages = Pages::open(directory)?;
        let owner = Owner::of_this_process()?;
        let writer = Writer::start(connection, owner.id, options.sync)?;
        let readers = Mutex::default();
        Ok(Store(Arc::new(Shared { database, options, sealer, pages, readers, owner, writer })))
    }

    /// Returns whether what it holds is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.0.sealer.encrypts()
    }

    /// Starts collecting objects for a commit.
    pub fn batch(&self) -> Batch {
        Batch::new(&self.0.sealer)
    }

    pub(crate) fn namer(&self) -> &Namer {
        &self.0.sealer.namer
    }

    /// Reads with a connection of its own. With a simulated file layer there is only the writer's.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.0.options.vfs.is_some() {
            return self.0.writer.perform(move |connection| work(connection));
        }
        let idle = self.0.readers.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => schema::connect(&self.0.database, &self.0.options)?,
        };
        let done = work(&connection);
        let mut readers = self.0.readers.lock();
        if readers.len() < IDLE_READERS {
            readers.push(connection);
        }
        done
    }

    /// Returns an object.
    pub fn get(&self, hash: &Hash) -> Result<Object, StoreError> {
        let (hash, sealer) = (*hash, self.0.sealer.clone());
        self.read(move |connection| read_object(connection, &sealer, &hash))
    }

    /// Returns many objects, in their order.
    pub fn get_all(&self, hashes: &[Hash]) -> Result<Vec<Object>, StoreError> {
        let (hashes, sealer) = (hashes.to_vec(), self.0.sealer.clone());
        self.read(move |connection| {
            hashes.iter().map(|hash| read_object(connection, &sealer, hash)).collect()
        })
    }

    /// Returns what a name stands for.
    pub fn head(&self, name: &str) -> Result<Entry, StoreError> {
        let name = full_name(name)?;
        let mut found = self.entries("WHERE sandbox.name = ?1", name.clone())?;
        found.pop().ok_or(StoreError::Missing(name))
    }

    /// Returns all names of a kind, sorted.
    pub fn list(&self, kind: Kind) -> Result<Vec<Entry>, StoreError> {
        self.entries("WHERE sandbox.kind = ?1 ORDER BY sandbox.name", kind.number())
    }

    fn entries(
        &self,
        which: &'static str,
        value: impl rusqlite::ToSql + Send + 'static,
    ) -> Result<Vec<Entry>, StoreError> {
        let now = schema::now_ms();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT sandbox.name, sandbox.kind, sandbox.head, commits.root, sandbox.created,
                        coalesce(commits.time, sandbox.created),
                        (SELECT count(*) FROM commits AS all_of WHERE all_of.sandbox = sandbox.id),
                        sandbox.meta, CASE WHEN lease.expires > {now} THEN lease.holder END
                 FROM sandbox LEFT JOIN commits ON commits.id = sandbox.head
                              LEFT JOIN lease ON lease.sandbox = sandbox.id {which}"
            ))?;
            let rows = statement.query_map([value], |row| {
                Ok(Entry {
                    name: row.get(0)?,
                    kind: Kind::of(row.get(1)?),
                    head: row.get(2)?,
                    root: row.get::<_, Option<[u8; 32]>>(3)?.map_or(Hash([0; 32]), Hash),
                    created_ms: row.get::<_, i64>(4)?.max(0) as u64,
                    changed_ms: row.get::<_, i64>(5)?.max(0) as u64,
                    commits: row.get::<_, i64>(6)?.max(0) as u64,
                    meta: row.get(7)?,
                    holder: row.get(8)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Returns how many objects there are, and how many bytes they take.
    pub fn usage(&self) -> Result<(u64, u64), StoreError> {
        let (objects, bytes) = self.read(|connection| {
            let sums = "SELECT count(*), coalesce(sum(length(body)), 0) FROM object";
            Ok(connection.query_row(sums, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?)
        })?;
        Ok((objects as u64, bytes as u64 + self.0.pages.bytes()))
    }
}

pub(crate) fn read_object(
    connection: &Connection,
    sealer: &Sealer,
    hash: &Hash,
) -> Result<Object, StoreError> {
    let mut statement = connection.prepare_cached("SELECT kind, body FROM object WHERE hash = ?")?;
    let found = statement
        .query_row([&hash.0[..]], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))
        .optional()?;
    match found {
        Some((kind, _)) if kind & IN_FILE != 0 => Ok(Object { links: Vec::new(), bytes: Vec::new() }),
        Some((kind, body)) => sealer.open(hash, kind, &body),
        None => Err(StoreError::Damaged { hash: *hash, why: "it is missing".to_owned() }),
    }
}

/// What tells whether a key is the store's: empty for none.
fn key_check(sealer: &Sealer) -> Vec<u8> {
    if sealer.encrypts() { sealer.namer.name(&[], b"the key of this store").0.to_vec() } else { Vec::new() }
}
