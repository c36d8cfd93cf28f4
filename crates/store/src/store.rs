//! The store: a directory, its writer, and connections that read.

use std::fmt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension};

use crate::hash::Namer;
use crate::lease::Owner;
use crate::pages::Pages;
use crate::remote::{self, Remote};
use crate::seal::{IN_FILE, Sealer};
use crate::writer::Writer;
use crate::{Batch, Entry, Hash, Key, Kind, Object, StoreError, Waiting, full_name, schema};

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
    /// How many commits may wait to be uploaded to an object store before further ones are refused.
    pub most_waiting: u64,
    /// The file layer that SQLite uses, by its registered name: for tests that crash it.
    #[doc(hidden)]
    pub vfs: Option<&'static str>,
}

impl Default for Options {
    fn default() -> Options {
        Options { key: None, sync: true, most_waiting: 10_000, vfs: None }
    }
}

/// A store in a directory. Cloning the handle shares it; other processes can open it at the same time.
#[derive(Clone)]
pub struct Store(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) database: PathBuf,
    pub(crate) options: Options,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) pages: Pages,
    readers: Mutex<Vec<Connection>>,
    pub(crate) owner: Owner,
    /// Before the writer: it goes first.
    pub(crate) remote: Option<Remote>,
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
        Store::open_part(directory, options, None, |_, _, _| Ok(None))
    }

    /// Opens a store in an object store, given its URL: `s3://BUCKET/PREFIX`. `directory` has the local part, which is the
    /// log of what is not uploaded yet and a cache of the rest; it belongs to this URL alone. Credentials and endpoint come
    /// from the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`, …). Blocks until the object store has answered; without an
    /// answer, only what has been opened before can be.
    pub fn object_store(url: &str, directory: &Path, options: Options) -> Result<Store, StoreError> {
        let url = remote::plain_url(url)?;
        Store::open_part(directory, options, Some(&url), |connection, sealer, about| {
            Remote::open(directory, &url, connection, sealer, about).map(Some)
        })
    }

    /// Does the same with an object store that is there already.
    #[doc(hidden)]
    pub fn on_object_store(
        store: Arc<dyn object_store::ObjectStore>,
        directory: &Path,
        options: Options,
    ) -> Result<Store, StoreError> {
        Store::open_part(directory, options, Some("test://bucket"), |connection, sealer, about| {
            Remote::open_with(directory, store, connection, sealer, about).map(Some)
        })
    }

    fn open_part(
        directory: &Path,
        options: Options,
        url: Option<&str>,
        attach: impl FnOnce(Connection, &Arc<Sealer>, (&[u8], String)) -> Result<Option<Remote>, StoreError>,
    ) -> Result<Store, StoreError> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let database = directory.join("store.db");
        let sealer = Arc::new(Sealer::new(options.key.as_ref()));
        let mut connection = schema::connect(&database, &options)?;
        let check = key_check(&sealer);
        schema::prepare(&mut connection, &check, url)?;
        let pages = Pages::open(directory)?;
        let owner = Owner::of_this_process()?;
        let remote = match url {
            Some(_) => {
                attach(schema::connect(&database, &options)?, &sealer, (&check, owner.holder.clone()))?
            }
            None => None,
        };
        let writer = Writer::start(connection, owner.id, options.sync)?;
        let readers = Mutex::default();
        Ok(Store(Arc::new(Shared { database, options, sealer, pages, readers, owner, remote, writer })))
    }

    /// Returns the URL of the object store, if it is in one.
    pub fn url(&self) -> Option<&str> {
        self.0.remote.as_ref().map(Remote::url)
    }

    /// Returns what is not uploaded to the object store yet: what is lost if this machine's disk is. Of a store that is not
    /// in one, nothing.
    pub fn pending(&self) -> Result<Waiting, StoreError> {
        self.0.remote.as_ref().map_or_else(|| Ok(Waiting::default()), Remote::waiting)
    }

    /// Waits until everything is uploaded and the leases that nobody needs are let go of; at most so long, and then it is an
    /// error that says what is in the way.
    pub fn flush(&self, most: Option<Duration>) -> Result<(), StoreError> {
        let Some(remote) = &self.0.remote else { return Ok(()) };
        // Leases that were dropped are let go of by the writer.
        self.0.writer.perform(|_| Ok(()))?;
        remote.flush(most)
    }

    /// Makes everything below a root local, so that reading it does not wait for an object store.
    pub fn prefetch(&self, root: &Hash) -> Result<(), StoreError> {
        self.0.remote.as_ref().map_or(Ok(()), |remote| remote.complete(*root))
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
        let mut found = self.get_all(&[*hash])?;
        found.pop().ok_or_else(|| missing(hash))
    }

    /// Returns many objects, in their order.
    pub fn get_all(&self, hashes: &[Hash]) -> Result<Vec<Object>, StoreError> {
        let read = |hashes: Vec<Hash>, sealer: Arc<Sealer>| {
            self.read(move |connection| {
                let mut absent = Vec::new();
                let mut objects = Vec::with_capacity(hashes.len());
                for hash in &hashes {
                    match find_object(connection, &sealer, hash)? {
                        Some(object) => objects.push(object),
                        None => absent.push(*hash),
                    }
                }
                Ok((objects, absent))
            })
        };
        let (objects, absent) = read(hashes.to_vec(), self.0.sealer.clone())?;
        match (absent.first(), &self.0.remote) {
            (None, _) => return Ok(objects),
            (Some(hash), None) => return Err(missing(hash)),
            (Some(_), Some(remote)) => remote.fetch(absent)?,
        }
        let (objects, absent) = read(hashes.to_vec(), self.0.sealer.clone())?;
        absent.first().map_or(Ok(objects), |hash| Err(missing(hash)))
    }

    /// Returns what a name stands for.
    pub fn head(&self, name: &str) -> Result<Entry, StoreError> {
        let name = full_name(name)?;
        if let Some(remote) = &self.0.remote {
            remote.look(&name)?;
        }
        let mut found = self.entries("WHERE sandbox.name = ?1", name.clone())?;
        found.pop().ok_or(StoreError::Missing(name))
    }

    /// Returns all names of a kind, sorted.
    pub fn list(&self, kind: Kind) -> Result<Vec<Entry>, StoreError> {
        if let Some(remote) = &self.0.remote {
            remote.look_at_all()?;
        }
        self.entries("WHERE sandbox.kind = ?1 ORDER BY sandbox.name", kind.number())
    }

    fn entries(
        &self,
        which: &'static str,
        value: impl rusqlite::ToSql + Send + 'static,
    ) -> Result<Vec<Entry>, StoreError> {
        let now = schema::now_ms();
        let has_others = self.0.remote.is_some();
        self.read(move |connection| {
            let mut elsewhere = if has_others { Remote::holders(connection)? } else { Default::default() };
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
            let mut entries: Vec<Entry> = rows.collect::<Result<_, _>>()?;
            for entry in &mut entries {
                entry.holder = entry.holder.take().or_else(|| elsewhere.remove(&entry.name));
            }
            Ok(entries)
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
    find_object(connection, sealer, hash)?.ok_or_else(|| missing(hash))
}

fn missing(hash: &Hash) -> StoreError {
    StoreError::Damaged { hash: *hash, why: "it is missing".to_owned() }
}

fn find_object(connection: &Connection, sealer: &Sealer, hash: &Hash) -> Result<Option<Object>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT kind, body FROM object WHERE hash = ?")?;
    let found = statement
        .query_row([&hash.0[..]], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))
        .optional()?;
    match found {
        Some((kind, _)) if kind & IN_FILE != 0 => Ok(Some(Object { links: Vec::new(), bytes: Vec::new() })),
        Some((kind, body)) => sealer.open(hash, kind, &body).map(Some),
        None => Ok(None),
    }
}

/// What tells whether a key is the store's: empty for none.
fn key_check(sealer: &Sealer) -> Vec<u8> {
    if sealer.encrypts() { sealer.namer.name(&[], b"the key of this store").0.to_vec() } else { Vec::new() }
}
