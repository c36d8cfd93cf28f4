//! The store, as users of the library see it.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use wardian_store::{
    Collected, Commit, CommitId, CommitInfo, Entry, Hash, Key, Kind, Lease, Note, Options, Repaired,
    Retention, StoreError, Verified, Waiting,
};
use wardian_vfs::{ChunkName, ChunkSource, Errno};

use super::changes::{FileChange, compare};
use super::load::{self, Loaded};
use super::persist::{Dormant, Persist};
use super::root::Root;
use super::save::{NOTE, Programs, Saved};
use crate::archive::ArchiveError;
use crate::error::{Error, lost};
use crate::options::{Builder, Setup};
use crate::sandbox::{Sandbox, new_number};
use crate::snapshot::Value;
use crate::system::System;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Encrypts everything with this key; the same one is needed ever after.
    pub key: Option<Key>,
    /// Waits for the disk (`fsync`) at each commit. Without it a power failure can lose the last commits.
    pub sync: bool,
}

impl From<StoreOptions> for Options {
    fn from(StoreOptions { key, sync }: StoreOptions) -> Options {
        Options { key, sync, ..Options::default() }
    }
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions { key: None, sync: true }
    }
}

/// Sandboxes and images by name, in a directory. Cloning the handle shares it; several processes can open it.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: wardian_store::Store,
    pub(crate) chunks: Arc<dyn ChunkSource>,
    pub(crate) naming: u64,
    /// Images that were started, by their roots: the next start costs what a fork costs.
    pub(crate) images: Arc<Mutex<HashMap<Hash, Arc<Value>>>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

struct Chunks {
    store: wardian_store::Store,
    naming: u64,
}

impl ChunkSource for Chunks {
    fn fetch(&self, name: &ChunkName) -> Result<Vec<u8>, Errno> {
        let fetched = self.store.get(&Hash(*name));
        fetched.map(|object| object.bytes).map_err(|error| {
            tracing::error!(%error, "a file's content cannot be read");
            Errno::EIO
        })
    }

    fn naming(&self) -> u64 {
        self.naming
    }
}

/// A sandbox in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxInfo {
    /// `namespace/name`.
    pub name: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it was last saved.
    pub changed_ms: u64,
    /// How many commits of it are kept.
    pub commits: u64,
    /// Who has it open.
    pub holder: Option<String>,
}

impl SandboxInfo {
    fn of(entry: Entry) -> SandboxInfo {
        let Entry { name, created_ms, changed_ms, commits, holder, .. } = entry;
        SandboxInfo { name, created_ms, changed_ms, commits, holder }
    }
}

impl Store {
    /// Opens the store in this directory, which is created if it does not exist. Blocks for a moment.
    pub fn open(directory: impl AsRef<Path>) -> Result<Store, Error> {
        Store::open_with(directory, StoreOptions::default())
    }

    /// Does the same with options.
    pub fn open_with(directory: impl AsRef<Path>, options: StoreOptions) -> Result<Store, Error> {
        Ok(Store::over(wardian_store::Store::open(directory.as_ref(), options.into())?))
    }

    /// Opens a store that several machines share: a bucket of S3, or of what is compatible with it, by its URL
    /// (`s3://BUCKET/PREFIX`). Credentials and endpoint come from the environment: `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`, and `AWS_ALLOW_HTTP=true` for one without TLS. `directory` has
    /// the local part: commits are acknowledged once they are there, and uploaded afterwards ([`Store::flush`] waits for it).
    /// It belongs to this URL alone. Blocks until the server has answered.
    pub fn object_store(
        url: &str,
        directory: impl AsRef<Path>,
        options: StoreOptions,
    ) -> Result<Store, Error> {
        Ok(Store::over(wardian_store::Store::object_store(url, directory.as_ref(), options.into())?))
    }

    fn over(inner: wardian_store::Store) -> Store {
        // Names of one key are the same in every store that has it.
        let name = inner.batch().name(&[], b"naming");
        let naming = u64::from_le_bytes(name.0[..8].try_into().expect("eight bytes"));
        let chunks = Arc::new(Chunks { store: inner.clone(), naming });
        Store { inner, chunks, naming, images: Arc::default() }
    }

    /// Returns the directory that it is in.
    pub fn directory(&self) -> &Path {
        self.inner.directory()
    }

    /// Opens a sandbox as it was last saved, with the options it was built with. Until the returned sandbox and all its
    /// handles are dropped or closed, no one else can open it.
    pub async fn resume(&self, name: &str) -> Result<Sandbox, Error> {
        self.resume_with(name, Builder::default()).await
    }

    /// Does the same with what a store does not keep: engine, audit log, network policy, extensions and native programs
    /// are the builder's.
    pub async fn resume_with(&self, name: &str, builder: Builder) -> Result<Sandbox, Error> {
        let (store, full) = (self.clone(), name.to_owned());
        let leasing = move || {
            let lease = store.inner.lease(&full)?;
            Ok::<_, Error>((lease, store.inner.head(&full)?))
        };
        let (lease, entry) = tokio::task::spawn_blocking(leasing).await.map_err(lost)??;
        self.open_head(Arc::new(lease), entry, builder, None).await
    }

    /// Brings back a sandbox that [`Sandbox::hibernate`] put aside, with what a store does not keep from the builder. It has its id
    /// again. If this fails or is given up, it is still asleep.
    pub async fn wake(&self, dormant: &Dormant, builder: Builder) -> Result<Sandbox, Error> {
        let (store, full) = (self.clone(), dormant.name().to_owned());
        let entry = tokio::task::spawn_blocking(move || store.inner.head(&full)).await.map_err(lost)??;
        self.open_head(dormant.lease.clone(), entry, builder, Some(dormant.id())).await
    }

    /// Takes a sandbox as it sleeps in the store, to [`Store::wake`] it later. Returns the note that was saved with it, too. Until
    /// it is dropped, nobody else can open it. Blocks for a moment.
    pub fn asleep(&self, name: &str) -> Result<(Dormant, serde_json::Value), Error> {
        let lease = Arc::new(self.inner.lease(name)?);
        let entry = self.inner.head(name)?;
        entry.head.ok_or_else(|| StoreError::Missing(format!("{}: a commit", entry.name)))?;
        let note = load::read_root(self, &entry.root)?.options[NOTE].clone();
        Ok((Dormant { lease, id: new_number() }, note))
    }

    async fn open_head(
        &self,
        lease: Arc<Lease>,
        entry: Entry,
        builder: Builder,
        id: Option<String>,
    ) -> Result<Sandbox, Error> {
        if entry.kind == Kind::Image {
            return Err(Error::Option(format!("{} is an image: start a sandbox from it", entry.name)));
        }
        let head = entry.head.ok_or_else(|| StoreError::Missing(format!("{}: a commit", entry.name)))?;
        let (sandbox, mut saved) = self.load_value(entry.root, builder, id).await?;
        saved.commit = Some(head);
        let (mode, durability) = Persist::when(&entry.meta);
        let persist = Persist::new(self.clone(), lease, mode, durability, saved);
        *sandbox.inner().persist.lock() = Some(Arc::new(persist));
        Ok(sandbox)
    }

    /// Returns a copy of a sandbox as it was at a commit, given by its number or tag, or as it was last saved. It is not saved
    /// anywhere, and nobody has to let go of the name for it.
    pub async fn view(&self, name: &str, commit: Option<&str>) -> Result<Sandbox, Error> {
        let root = self.root_of(name, commit).await?;
        Ok(self.load_value(root, Builder::default(), None).await?.0)
    }

    pub(crate) async fn root_of(&self, name: &str, commit: Option<&str>) -> Result<Hash, Error> {
        let (store, name, commit) = (self.inner.clone(), name.to_owned(), commit.map(str::to_owned));
        let finding = move || -> Result<Hash, StoreError> {
            let Some(commit) = commit else {
                let entry = store.head(&name)?;
                let head = entry.head.map(|_| entry.root);
                return head.ok_or_else(|| StoreError::Missing(format!("{}: a commit", entry.name)));
            };
            Ok(store.find_commit(&name, &commit)?.root)
        };
        Ok(tokio::task::spawn_blocking(finding).await.map_err(lost)??)
    }

    /// Reads a value and starts a sandbox with it.
    async fn load_value(
        &self,
        root: Hash,
        builder: Builder,
        id: Option<String>,
    ) -> Result<(Sandbox, Saved), Error> {
        let system = builder.find_system().await?;
        let store = self.clone();
        let reading = move || load::read_root(&store, &root);
        let root = tokio::task::spawn_blocking(reading).await.map_err(lost)??;
        let builder = builder.with_saved(&root.options);
        if root.sessions().any(|name| !name.is_empty()) {
            let (system, kernel) = (system.clone(), system.kernel.handle().clone());
            kernel.spawn(async move { system.python().await.map(drop) }).await.map_err(lost)??;
        }
        let (setup, _, env) = builder.set_up_all(&system).await?;
        let (store, programs) = (self.clone(), programs_of(&system));
        let kernel = system.kernel.handle().clone();
        let (setup, loaded) = kernel
            .spawn_blocking(move || {
                let loaded = load_or_take_files(&store, &setup, &programs, &root);
                (setup, loaded)
            })
            .await
            .map_err(lost)?;
        match loaded? {
            Found::Value(loaded) => {
                let sandbox = Sandbox::wake(system, setup, loaded.value, id).await?;
                // A machine has a `/proc` of its own, which is not saved. Having got one is no change.
                let tree = sandbox.machine().tree().await.clone();
                Ok((sandbox, Saved { tree, ..loaded.saved }))
            }
            Found::Files(tree) => {
                let saved = Saved::nothing(&setup.base);
                Ok((Sandbox::start(system, setup, *tree, env).await?, saved))
            }
        }
    }

    /// Returns the value of an image, which is kept for the next start if `keep` says so.
    pub(crate) async fn image_value(
        &self,
        (hash, root): (Hash, Root),
        system: &Arc<System>,
        setup: Setup,
        keep: bool,
    ) -> Result<(Setup, Value), Error> {
        let copy = |value: &Value| {
            let (tree, rest) = (value.tree.clone(), value.rest.clone());
            Value { tree, rest, history: value.history.clone() }
        };
        let known = self.images.lock().get(&hash).cloned();
        if let Some(value) = known.filter(|_| keep) {
            return Ok((setup, copy(&value)));
        }
        let (store, programs) = (self.clone(), programs_of(system));
        let reading = move || {
            if !load::fits(&store, &setup, &root) {
                let why = "the image was made over another system or with other extensions: build it again";
                return Err(Error::Option(why.to_owned()));
            }
            let loaded = load::load(&store, &setup, &programs, &root)?;
            Ok((setup, loaded.value))
        };
        let (setup, value) = system.kernel.handle().spawn_blocking(reading).await.map_err(lost)??;
        if keep {
            self.images.lock().insert(hash, Arc::new(copy(&value)));
        }
        Ok((setup, value))
    }

    /// Returns all sandboxes, sorted by name. Blocks for a moment, like all that follow.
    pub fn list(&self) -> Result<Vec<SandboxInfo>, Error> {
        Ok(self.inner.list(Kind::Sandbox)?.into_iter().map(SandboxInfo::of).collect())
    }

    /// Returns the commits of a sandbox, newest first: at most `most`, those before `before`.
    pub fn log(&self, name: &str, before: Option<CommitId>, most: usize) -> Result<Vec<CommitInfo>, Error> {
        Ok(self.inner.log(name, before, most)?)
    }

    /// Makes a commit of a sandbox that nobody has open its newest again.
    pub fn checkout(&self, name: &str, commit: &str) -> Result<CommitId, Error> {
        let lease = self.inner.lease(name)?;
        let found = self.inner.find_commit(name, commit)?;
        let parent = self.inner.head(name)?.head;
        let note = Note { command: format!("restore {}", found.id).into_bytes(), exit_code: None };
        let commit = Commit { lease: &lease, parent, root: found.root, batch: self.inner.batch(), note };
        Ok(self.inner.commit(commit)?)
    }

    /// Creates another sandbox from a commit of one, or from what was last saved. Nothing is copied.
    pub fn branch(&self, name: &str, commit: Option<&str>, new: &str) -> Result<CommitId, Error> {
        let (root, meta) = {
            let entry = self.inner.head(name)?;
            match commit {
                Some(commit) => (self.inner.find_commit(name, commit)?.root, entry.meta),
                None => (entry.root, entry.meta),
            }
        };
        let lease = self.inner.create(new, &meta)?;
        let note = Note { command: format!("branch of {name}").into_bytes(), exit_code: None };
        let batch = self.inner.batch();
        Ok(self.inner.commit(Commit { lease: &lease, parent: None, root, batch, note })?)
    }

    /// Returns how the files of two commits of a sandbox differ; without a second one, from what was last saved.
    pub fn diff(&self, name: &str, from: &str, to: Option<&str>) -> Result<Vec<FileChange>, Error> {
        let from = self.inner.find_commit(name, from)?.root;
        let to = match to {
            Some(to) => self.inner.find_commit(name, to)?.root,
            None => self.inner.head(name)?.root,
        };
        compare(self, from, to)
    }

    /// Names a commit: it is kept as long as it has a tag.
    pub fn tag(&self, name: &str, tag: &str, commit: CommitId) -> Result<(), Error> {
        Ok(self.inner.tag(name, tag, commit)?)
    }

    /// Removes a tag; returns whether there was one.
    pub fn untag(&self, name: &str, tag: &str) -> Result<bool, Error> {
        Ok(self.inner.untag(name, tag)?)
    }

    /// Returns the tags of a sandbox with their commits.
    pub fn tags(&self, name: &str) -> Result<Vec<(String, CommitId)>, Error> {
        Ok(self.inner.tags(name)?)
    }

    /// Removes a sandbox that nobody has open, with all its commits.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        Ok(self.inner.remove(name)?)
    }

    /// Forgets commits that need not be kept, and frees what only they led to.
    pub fn collect(&self, retention: Retention) -> Result<Collected, Error> {
        Ok(self.inner.collect(retention)?)
    }

    /// Reads everything and says what is damaged.
    pub fn verify(&self) -> Result<Verified, Error> {
        Ok(self.inner.verify()?)
    }

    /// Sets sandboxes whose last commit is damaged back to one that is whole.
    pub fn repair(&self) -> Result<Repaired, Error> {
        Ok(self.inner.repair()?)
    }

    /// Returns the URL of the object store that it is in, if it is in one.
    pub fn url(&self) -> Option<&str> {
        self.inner.url()
    }

    /// Returns what is not uploaded to its object store yet: what is lost if this machine's disk is.
    pub fn pending(&self) -> Result<Waiting, Error> {
        Ok(self.inner.pending()?)
    }

    /// Waits until everything is uploaded to its object store, at most so long; then it is an error that says what is in the
    /// way. Returns at once if it is in none.
    pub fn flush(&self, most: Option<Duration>) -> Result<(), Error> {
        Ok(self.inner.flush(most)?)
    }

    /// Returns how many objects there are, and how many bytes they take.
    pub fn usage(&self) -> Result<(u64, u64), Error> {
        Ok(self.inner.usage()?)
    }
}

fn programs_of(system: &System) -> Programs {
    Programs { shell: system.programs_hash.clone(), python: system.python_hash.clone() }
}

enum Found {
    Value(Box<Loaded>),
    Files(Box<wardian_vfs::Tree>),
}

/// Reads a value or, if it was saved with other programs, its files alone, and says so.
fn load_or_take_files(
    store: &Store,
    setup: &Setup,
    programs: &Programs,
    root: &Root,
) -> Result<Found, Error> {
    let why = if load::fits(store, setup, root) {
        match load::load(store, setup, programs, root) {
            Ok(loaded) => return Ok(Found::Value(Box::new(loaded))),
            Err(Error::Archive(ArchiveError::OtherPrograms { .. })) => "its shell belongs to other programs",
            Err(error) => return Err(error),
        }
    } else {
        "it was saved over another system"
    };
    tracing::warn!("{why}: its files are used, but its shell starts afresh");
    Ok(Found::Files(Box::new(load::load_files(store, setup, root)?)))
}
