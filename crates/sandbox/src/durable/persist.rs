//! A sandbox that is saved: who may save it, when, and what was saved last.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value as Json;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, oneshot};
use wardian_kernel::AtRest;
use wardian_store::{Commit, CommitId, Lease, Note, StoreError};
use wardian_vfs::Tree;

use super::load;
use super::save::{Programs, Saved, save};
use super::store::Store;
use crate::error::{Error, lost};
use crate::options::Builder;
use crate::sandbox::{Sandbox, SessionGuard, bury, read_id, written_id};
use crate::snapshot::Value;

/// When a sandbox is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// When asked: [`Sandbox::save`].
    Session,
    /// After every command and every other change.
    #[default]
    Persistent,
}

/// How soon a change is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Before the command or call returns.
    #[default]
    Command,
    /// At most so long after it has returned: a crash loses what was done since the last save.
    Interval(Duration),
}

/// A name that a sandbox is to get.
#[derive(Clone)]
pub(crate) struct NewName {
    store: Store,
    name: String,
    mode: Mode,
    durability: Durability,
}

impl Builder {
    /// Saves the sandbox in a store, under a new name (`namespace/name`; without a namespace, `default`).
    /// [`Store::resume`] opens it again. Fails if the name exists.
    pub fn persist(mut self, store: &Store, name: impl Into<String>) -> Builder {
        let (mode, durability) = (Mode::default(), Durability::default());
        self.persist = Some(NewName { store: store.clone(), name: name.into(), mode, durability });
        self
    }

    /// Sets when it is saved. Only after [`Builder::persist`].
    pub fn persistence_mode(mut self, mode: Mode) -> Builder {
        if let Some(persist) = &mut self.persist {
            persist.mode = mode;
        }
        self
    }

    /// Sets how soon changes are saved. Only after [`Builder::persist`].
    pub fn durability(mut self, durability: Durability) -> Builder {
        if let Some(persist) = &mut self.persist {
            persist.durability = durability;
        }
        self
    }

    /// Starts from an image of a store instead of from an empty sandbox.
    pub fn image(mut self, store: &Store, name: impl Into<String>) -> Builder {
        self.image = Some((store.clone(), name.into()));
        self
    }
}

impl NewName {
    /// Gives a new sandbox its name, and saves it for the first time.
    pub(crate) async fn attach(self, sandbox: Sandbox) -> Result<Sandbox, Error> {
        self.give(&sandbox, Json::Null).await?;
        Ok(sandbox)
    }

    async fn give(self, sandbox: &Sandbox, note: Json) -> Result<(), Error> {
        let NewName { store, name, mode, durability } = self;
        let lease = {
            let store = store.clone();
            let meta = match durability {
                Durability::Command => "command".to_owned(),
                Durability::Interval(time) => format!("interval {}", time.as_millis()),
            };
            let meta = if mode == Mode::Session { "session".to_owned() } else { meta };
            tokio::task::spawn_blocking(move || store.inner.create(&name, &meta)).await.map_err(lost)??
        };
        let saved = Saved { note, ..Saved::nothing(&sandbox.inner().setup.base) };
        let persist = Persist::new(store, Arc::new(lease), mode, durability, saved);
        *sandbox.inner().persist.lock() = Some(Arc::new(persist));
        sandbox.save().await?;
        Ok(())
    }
}

/// A sandbox that is asleep: see [`Sandbox::hibernate`]. Dropping it lets go of the name.
#[derive(Clone, Debug)]
pub struct Dormant {
    pub(super) lease: Arc<Lease>,
    /// Not as text: a server has many that are asleep.
    pub(super) id: u64,
}

impl Dormant {
    /// Returns the name under which it is saved.
    pub fn name(&self) -> &str {
        self.lease.name()
    }

    /// Returns the sandbox's id, which it keeps.
    pub fn id(&self) -> String {
        written_id(self.id)
    }
}

/// Where a sandbox is saved.
pub(crate) struct Persist {
    store: Store,
    /// Also with the sandbox while it is asleep.
    lease: Arc<Lease>,
    mode: Mode,
    durability: Durability,
    saved: Arc<AsyncMutex<Saved>>,
    /// A change that is not saved yet, with a save on its way.
    waiting: Mutex<Option<Note>>,
    /// How many changes there were that the files do not show, and saves; and how many of these the last save has.
    changes: AtomicU64,
    changes_saved: AtomicU64,
}

impl Persist {
    pub(crate) fn new(
        store: Store,
        lease: Arc<Lease>,
        mode: Mode,
        durability: Durability,
        saved: Saved,
    ) -> Persist {
        let saved = Arc::new(AsyncMutex::new(saved));
        Persist {
            store,
            lease,
            mode,
            durability,
            saved,
            waiting: Mutex::default(),
            changes: AtomicU64::new(0),
            changes_saved: AtomicU64::new(0),
        }
    }

    /// Returns whether something is not saved. Processes may have written since the last command.
    async fn differs(&self, tree: &Tree) -> bool {
        let saved = self.saved.lock().await;
        self.changes.load(Ordering::SeqCst) != self.changes_saved.load(Ordering::SeqCst)
            || saved.commit.is_none()
            || !tree.changed_groups(&saved.tree).is_empty()
    }

    /// Notes a change that the files do not show, or a save that has begun; returns its number.
    pub(crate) fn changed(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Reads what [`NewName::attach`] noted about when it is saved.
    pub(crate) fn when(meta: &str) -> (Mode, Durability) {
        match meta.split_once(' ') {
            Some(("interval", ms)) => {
                (Mode::Persistent, Durability::Interval(Duration::from_millis(ms.parse().unwrap_or(1000))))
            }
            _ if meta == "session" => (Mode::Session, Durability::Command),
            _ => (Mode::Persistent, Durability::Command),
        }
    }
}

impl Sandbox {
    /// Returns the name under which it is saved.
    pub fn name(&self) -> Option<String> {
        self.inner().persist.lock().as_ref().map(|persist| persist.lease.name().to_owned())
    }

    /// Returns when it is saved, if it is.
    pub fn persistence_mode(&self) -> Option<Mode> {
        self.inner().persist.lock().as_ref().map(|persist| persist.mode)
    }

    /// Gives a sandbox that has none a name in a store, and saves it. `note` is the caller's, and is saved with it.
    pub async fn save_as(
        &self,
        store: &Store,
        name: &str,
        mode: Mode,
        note: serde_json::Value,
    ) -> Result<(), Error> {
        if self.name().is_some() {
            return Err(Error::Unsupported("a second name for a sandbox"));
        }
        let durability = Durability::Command;
        NewName { store: store.clone(), name: name.to_owned(), mode, durability }.give(self, note).await
    }

    /// Replaces the note that is saved with it, from the next commit on.
    pub async fn set_note(&self, note: serde_json::Value) -> Result<(), Error> {
        let persist = self.inner().persist.lock().clone();
        let persist =
            persist.ok_or(Error::Unsupported("a note for a sandbox that has no name in a store"))?;
        persist.saved.lock().await.note = note;
        persist.changed();
        Ok(())
    }

    /// Saves its current value now; returns the commit's number. Does not wait for a command in progress: the files are
    /// saved as they are, the shell as it was before.
    pub async fn save(&self) -> Result<CommitId, Error> {
        let persist = self.inner().persist.lock().clone();
        let persist = persist.ok_or(Error::Unsupported("saving a sandbox that has no name in a store"))?;
        let note = persist.waiting.lock().take().unwrap_or_default();
        self.commit_to(persist, None, note).await
    }

    /// Notes a change that is not worth a commit of its own: the next has it, and it is saved before the sandbox leaves memory.
    pub(crate) fn note_change(&self) {
        if let Some(persist) = &*self.inner().persist.lock() {
            persist.changed();
        }
    }

    /// Notes that something was changed and, unless it is saved later, saves it. `session` is the shell, if the caller has
    /// it.
    pub(crate) async fn committed(
        &self,
        session: Option<&SessionGuard>,
        command: &[u8],
        exit_code: Option<i32>,
    ) -> Result<(), Error> {
        let Some(persist) = self.inner().persist.lock().clone() else { return Ok(()) };
        let note = Note { command: command.to_vec(), exit_code };
        match (persist.mode, persist.durability) {
            (Mode::Session, _) => {
                persist.changed();
                Ok(())
            }
            (Mode::Persistent, Durability::Command) => self.commit_to(persist, session, note).await.map(drop),
            (Mode::Persistent, Durability::Interval(time)) => {
                persist.changed();
                let on_its_way = persist.waiting.lock().replace(note).is_some();
                if !on_its_way {
                    let inner = Arc::downgrade(self.inner());
                    self.kernel().spawn(async move {
                        tokio::time::sleep(time).await;
                        let Some(inner) = inner.upgrade() else { return };
                        // What was closed meanwhile was saved then.
                        if inner.persist.lock().is_none() {
                            return;
                        }
                        if let Err(error) = Sandbox::of(inner).save().await {
                            tracing::warn!(%error, "a sandbox could not be saved");
                        }
                    });
                }
                Ok(())
            }
        }
    }

    async fn commit_to(
        &self,
        persist: Arc<Persist>,
        session: Option<&SessionGuard>,
        note: Note,
    ) -> Result<CommitId, Error> {
        // Held until the commit is made: the next one starts from it.
        let saved = persist.saved.clone().lock_owned().await;
        // What changes from here on may be missing in it.
        let change = persist.changed();
        let (value, is_whole) = self.value_to_save(session, &saved).await?;
        let (inner, programs) = (self.inner().clone(), self.programs());
        let work = move || {
            let mut saved: OwnedMutexGuard<Saved> = saved;
            let (root, batch, next) = save(&persist.store, &inner.setup, &programs, &saved, &value)?;
            let (sender, answer) = oneshot::channel();
            let commit = Commit { lease: &persist.lease, parent: saved.commit, root, batch, note };
            persist.store.inner.submit(commit, move |result| {
                let _ = sender.send(result);
            })?;
            let gone = || StoreError::Io("the store was closed".to_owned());
            let id = answer.blocking_recv().unwrap_or_else(|_| Err(gone()))?;
            *saved = Saved { commit: Some(id), ..next };
            // Otherwise the shell of now is still to be saved.
            if is_whole {
                persist.changes_saved.store(change, Ordering::SeqCst);
            }
            Ok::<CommitId, Error>(id)
        };
        self.kernel().spawn_blocking(work).await.map_err(lost)?
    }

    /// Returns the value to save: as it is between two commands or, while one runs, the files as they are and the
    /// resident programs as they were before it; and whether it is all there is.
    async fn value_to_save(
        &self,
        session: Option<&SessionGuard>,
        saved: &Saved,
    ) -> Result<(Value, bool), Error> {
        if let Some(session) = session {
            return Ok((self.value(session).await?, true));
        }
        if let Some(session) = self.session_now() {
            return Ok((self.value(&session).await?, true));
        }
        let Some(rest) = saved.rest.clone() else {
            // What runs does not end while it is suspended.
            if self.live()?.is_suspended() {
                return Err(Error::Unsupported(
                    "the first save of a suspended sandbox in which a command runs",
                ));
            }
            let session = self.session().await?;
            return Ok((self.value(&session).await?, true));
        };
        let mut tree = self.live()?.tree().await.clone();
        AtRest::take_along(rest.all(), &mut tree);
        let history = self.inner().history.lock().clone();
        Ok((Value { tree, rest, history }, false))
    }

    pub(crate) fn programs(&self) -> Programs {
        let system = &self.inner().system;
        Programs { shell: system.programs_hash.clone(), python: system.python_hash.clone() }
    }

    /// Goes back to a commit of its own, given by its number or tag: that value is the next commit. Waits for a command in
    /// progress and kills background processes.
    pub async fn checkout(&self, commit: &str) -> Result<CommitId, Error> {
        let persist = self.inner().persist.lock().clone();
        let persist =
            persist.ok_or(Error::Unsupported("commits of a sandbox that has no name in a store"))?;
        let session = self.session().await?;
        let (store, name, which) =
            (persist.store.clone(), persist.lease.name().to_owned(), commit.to_owned());
        let (inner, programs) = (self.inner().clone(), self.programs());
        let reading = move || {
            let found = store.inner.find_commit(&name, &which)?;
            let root = load::read_root(&store, &found.root)?;
            if !load::fits(&store, &inner.setup, &root) {
                let why =
                    "the commit was made over another system: open it with Store::view, or branch from it";
                return Err(Error::Option(why.to_owned()));
            }
            Ok((found.id, load::load(&store, &inner.setup, &programs, &root)?))
        };
        let (id, loaded) = self.kernel().spawn_blocking(reading).await.map_err(lost)??;
        let Value { tree, rest, history } = loaded.value;
        if !rest.interpreters.is_empty() {
            self.load_python().await?;
        }
        let old = self.become_value(session, tree, &rest, history).await?;
        bury(&old).await;
        let note = Note { command: format!("restore {id}").into_bytes(), exit_code: None };
        self.commit_to(persist, None, note).await
    }

    /// Leaves memory if it is at rest and everything about it can be saved: no process but its resident programs, no
    /// connection, no lock, and nothing open that is not found again by its name. Returns what [`Store::wake`] brings it back by;
    /// meanwhile nobody else can open the name. `None` if it has to stay: a command runs, say. One of [`Mode::Session`] is
    /// saved by this.
    ///
    /// Nobody may use it meanwhile: calls by other handles return [`Error::Destroyed`].
    pub async fn hibernate(&self) -> Result<Option<Dormant>, Error> {
        let Some(persist) = self.inner().persist.lock().clone() else { return Ok(None) };
        if self.live().is_err() {
            return Ok(None);
        }
        let (Some(session), Some(id)) = (self.session_now(), read_id(self.id())) else { return Ok(None) };
        if !self.machine().is_quiet() {
            return Ok(None);
        }
        let value = self.value(&session).await?;
        // What processes wrote after their command is the beginning of the next one's output.
        let has_late = session.has_late_output()
            || self.inner().interpreters.lock().values().any(|interpreter| interpreter.has_late_output());
        if has_late || !value.rest.all().all(|rest| rest.is_movable(&value.tree)) {
            return Ok(None);
        }
        let changed = persist.differs(&value.tree).await;
        let waiting = persist.waiting.lock().take();
        if changed || waiting.is_some() {
            self.commit_to(persist.clone(), Some(&session), waiting.unwrap_or_default()).await?;
        }
        drop((session, value));
        self.vanish().await;
        drop(self.inner().persist.lock().take());
        Ok(Some(Dormant { lease: persist.lease.clone(), id }))
    }

    /// Saves what is not saved yet, lets go of the name, and ends the sandbox. It stays in the store.
    pub async fn close(&self) -> Result<(), Error> {
        let persist = self.inner().persist.lock().clone();
        let saved = match &persist {
            Some(persist) if self.live().is_ok() => {
                let tree = self.machine().tree().await.clone();
                if persist.waiting.lock().is_some() || persist.differs(&tree).await {
                    self.save().await.map(drop)
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        };
        self.destroy().await;
        drop((persist, self.inner().persist.lock().take()));
        saved
    }
}
