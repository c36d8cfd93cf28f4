//! A sandbox that is saved: who may save it, when, and what was saved last.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, oneshot};
use wardian_kernel::AtRest;
use wardian_store::{Commit, CommitId, Lease, Note, StoreError};

use super::load;
use super::save::{Programs, Saved, save};
use super::store::Store;
use crate::error::{Error, lost};
use crate::options::Builder;
use crate::sandbox::{Sandbox, SessionGuard, bury};
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
        let saved = Saved::nothing(&sandbox.inner().setup.base);
        let persist = Persist::new(store, lease, mode, durability, saved);
        *sandbox.inner().persist.lock() = Some(Arc::new(persist));
        sandbox.save().await?;
        Ok(sandbox)
    }
}

/// Where a sandbox is saved.
pub(crate) struct Persist {
    store: Store,
    lease: Lease,
    mode: Mode,
    durability: Durability,
    saved: Arc<AsyncMutex<Saved>>,
    /// A change that is not saved yet, with a save on its way.
    waiting: Mutex<Option<Note>>,
}

impl Persist {
    pub(crate) fn new(
        store: Store,
        lease: Lease,
        mode: Mode,
        durability: Durability,
        saved: Saved,
    ) -> Persist {
        let saved = Arc::new(AsyncMutex::new(saved));
        Persist { store, lease, mode, durability, saved, waiting: Mutex::default() }
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

    /// Saves its current value now; returns the commit's number. Does not wait for a command in progress: the files are
    /// saved as they are, the shell as it was before.
    pub async fn save(&self) -> Result<CommitId, Error> {
        let persist = self.inner().persist.lock().clone();
        let persist = persist.ok_or(Error::Unsupported("saving a sandbox that has no name in a store"))?;
        let note = persist.waiting.lock().take().unwrap_or_default();
        self.commit_to(persist, None, note).await
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
            (Mode::Session, _) => Ok(()),
            (Mode::Persistent, Durability::Command) => self.commit_to(persist, session, note).await.map(drop),
            (Mode::Persistent, Durability::Interval(time)) => {
                let on_its_way = persist.waiting.lock().replace(note).is_some();
                if !on_its_way {
                    let inner = Arc::downgrade(self.inner());
                    self.kernel().spawn(async move {
                        tokio::time::sleep(time).await;
                        let Some(inner) = inner.upgrade() else { return };
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
        let value = self.value_to_save(session, &saved).await?;
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
            Ok::<CommitId, Error>(id)
        };
        self.kernel().spawn_blocking(work).await.map_err(lost)?
    }

    /// Returns the value to save: as it is between two commands or, while one runs, the files as they are and the
    /// resident programs as they were before it.
    async fn value_to_save(&self, session: Option<&SessionGuard>, saved: &Saved) -> Result<Value, Error> {
        if let Some(session) = session {
            return self.value(session).await;
        }
        if let Some(session) = self.session_now() {
            return self.value(&session).await;
        }
        let Some(rest) = saved.rest.clone() else {
            let session = self.session().await?;
            return self.value(&session).await;
        };
        let mut tree = self.live()?.tree().await.clone();
        AtRest::take_along(rest.all(), &mut tree);
        let history = self.inner().history.lock().clone();
        Ok(Value { tree, rest, history })
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

    /// Saves what is not saved yet, lets go of the name, and ends the sandbox. It stays in the store.
    pub async fn close(&self) -> Result<(), Error> {
        let persist = self.inner().persist.lock().clone();
        let saved = match &persist {
            Some(persist) if persist.mode == Mode::Session || persist.waiting.lock().is_some() => {
                self.save().await.map(drop)
            }
            _ => Ok(()),
        };
        self.destroy().await;
        drop((persist, self.inner().persist.lock().take()));
        saved
    }
}
