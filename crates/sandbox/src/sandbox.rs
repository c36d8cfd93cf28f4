//! A sandbox: a current value and, while a command runs, the machine that computes the next one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMappedMutexGuard, OwnedMutexGuard, Semaphore};
use wardian_kernel::{AtRest, Machine, Rules, Session};
use wardian_vfs::{Quota, Tree};

use crate::audit::{self, Event};
use crate::directory::Directory;
use crate::durable::Persist;
use crate::engine::Engine;
use crate::error::{Error, lost};
use crate::history::History;
use crate::network::Way;
use crate::options::{Builder, Limits, Setup};
use crate::python;
use crate::snapshot::Value;
use crate::system::System;

/// A sandbox. Cloning the handle shares it; [`Sandbox::fork`] creates another. Dropping the last handle destroys it.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

pub(crate) struct Inner {
    id: String,
    pub(crate) system: Arc<System>,
    pub(crate) setup: Arc<Setup>,
    pub(crate) way: Arc<Way>,
    /// Replaced by [`Sandbox::restore`], which drops the old machine with everything that ran on it.
    machine: Mutex<Arc<Machine>>,
    /// Locked while running or forking: commands queue here, in order. `None` once destroyed.
    session: Arc<AsyncMutex<Option<Session>>>,
    /// How to cancel the running command.
    pub(crate) running: Arc<Mutex<Option<Arc<Notify>>>>,
    pub(crate) history: Mutex<History>,
    /// Where relative paths start.
    pub(crate) directory: Directory,
    /// The interpreters, by name. The lock on the shell covers them, too.
    pub(crate) interpreters: Mutex<BTreeMap<String, Session>>,
    destroyed: AtomicBool,
    /// Where it is saved, if it is.
    pub(crate) persist: Mutex<Option<Arc<Persist>>>,
}

/// The resident programs of a sandbox: its shell and its interpreters.
type Residents = (Session, BTreeMap<String, Session>);

/// All of them between two commands.
#[derive(Clone)]
pub(crate) struct RestOfAll {
    pub(crate) shell: AtRest,
    pub(crate) interpreters: BTreeMap<String, AtRest>,
}

impl RestOfAll {
    pub(crate) fn all(&self) -> impl Iterator<Item = &AtRest> {
        std::iter::once(&self.shell).chain(self.interpreters.values())
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").field("id", &self.0.id).finish_non_exhaustive()
    }
}

/// The shell, while no one else has it.
pub(crate) type SessionGuard = OwnedMappedMutexGuard<Option<Session>, Session>;

impl Inner {
    /// Frees the shell's instance, unless someone is about to use it.
    pub(crate) fn cool(&self) {
        if let Ok(mut session) = self.session.try_lock()
            && let Some(session) = session.as_mut()
        {
            session.cool();
            self.interpreters.lock().values_mut().for_each(Session::cool);
        }
    }

    /// Runs once for each sandbox, when it is destroyed or its last handle is dropped.
    fn note_end(&self, how: &Event) {
        self.system.alive.fetch_sub(1, Ordering::SeqCst);
        if let Some(audit) = &self.setup.audit {
            audit::record(audit, &self.id, how);
        }
    }

    pub(crate) fn record(&self, event: Event) {
        if let Some(audit) = &self.setup.audit {
            audit::record(audit, &self.id, &event);
        }
    }
}

/// Makes sure that the end is recorded, even if no one waits for it.
struct Ending<'a>(&'a Inner, Event<'a>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.note_end(&self.1);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.machine.get_mut().close();
        if !*self.destroyed.get_mut() {
            self.note_end(&Event::Destroy);
        }
    }
}

impl Sandbox {
    /// Returns a builder; every option has a default.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the first command's shell, in a fresh machine.
    pub(crate) async fn start(
        system: Arc<System>,
        setup: Setup,
        tree: Tree,
        env: Vec<Vec<u8>>,
    ) -> Result<Sandbox, Error> {
        let setup = Arc::new(setup);
        let id = new_id();
        let way = Way::of(&id, setup.gateway.as_ref(), setup.audit.as_ref());
        let machine = new_machine(&system, &setup, &way, tree);
        let cwd = setup.cwd.clone().into_bytes();
        let session = match system.pool.session(&system, &machine, env, &cwd).await.map_err(lost)? {
            Ok(session) => session,
            Err(errno) => return Err(Error::refused(errno, &cwd)),
        };
        let sandbox =
            Sandbox::over(system, setup, (id, way), machine, (session, BTreeMap::new()), History::default());
        sandbox.check_audit()?;
        sandbox.inner().record(Event::Create);
        Ok(sandbox)
    }

    fn over(
        system: Arc<System>,
        setup: Arc<Setup>,
        (id, way): (String, Arc<Way>),
        machine: Arc<Machine>,
        (session, interpreters): Residents,
        history: History,
    ) -> Sandbox {
        system.alive.fetch_add(1, Ordering::SeqCst);
        Sandbox(Arc::new(Inner {
            id,
            system,
            setup,
            way,
            machine: Mutex::new(machine),
            directory: Directory::of(&session),
            session: Arc::new(AsyncMutex::new(Some(session))),
            running: Arc::default(),
            history: Mutex::new(history),
            interpreters: Mutex::new(interpreters),
            destroyed: AtomicBool::new(false),
            persist: Mutex::default(),
        }))
    }

    /// Creates one with a value that was read from a store: another, or the one with this id, which was asleep.
    pub(crate) async fn wake(
        system: Arc<System>,
        setup: Setup,
        value: Value,
        before: Option<String>,
    ) -> Result<Sandbox, Error> {
        let (setup, is_new) = (Arc::new(setup), before.is_none());
        let id = before.unwrap_or_else(new_id);
        let way = Way::of(&id, setup.gateway.as_ref(), setup.audit.as_ref());
        let Value { tree, rest, history } = value;
        let (machine, residents) = put_in_machine(&system, &setup, &way, tree, &rest).await?;
        let sandbox = Sandbox::over(system, setup, (id, way), machine, residents, history);
        sandbox.check_audit()?;
        sandbox.inner().record(if is_new { Event::Create } else { Event::Wake });
        Ok(sandbox)
    }

    /// Returns the shell if no command runs.
    pub(crate) fn session_now(&self) -> Option<SessionGuard> {
        let session = self.0.session.clone().try_lock_owned().ok()?;
        OwnedMutexGuard::try_map(session, Option::as_mut).ok()
    }

    /// Creates another sandbox of the same system and setup, with this value.
    pub(crate) async fn beside(
        &self,
        tree: Tree,
        rest: &RestOfAll,
        history: History,
    ) -> Result<Sandbox, Error> {
        let (system, setup) = (self.0.system.clone(), self.0.setup.clone());
        let id = new_id();
        let way = Way::of(&id, self.0.way.gateway(), setup.audit.as_ref());
        let (machine, residents) = put_in_machine(&system, &setup, &way, tree, rest).await?;
        Ok(Sandbox::over(system, setup, (id, way), machine, residents, history))
    }

    /// Replaces its value by this one. Kills whatever runs. Returns the old machine, to [`bury`].
    pub(crate) async fn become_value(
        &self,
        mut session: SessionGuard,
        tree: Tree,
        rest: &RestOfAll,
        history: History,
    ) -> Result<Arc<Machine>, Error> {
        let (machine, (new, interpreters)) =
            put_in_machine(&self.0.system, &self.0.setup, &self.0.way, tree, rest).await?;
        let old = std::mem::replace(&mut *self.0.machine.lock(), machine);
        old.close();
        self.0.directory.follow(&new);
        *session = new;
        let before = std::mem::replace(&mut *self.0.interpreters.lock(), interpreters);
        drop(before);
        *self.0.history.lock() = history;
        Ok(old)
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Sandbox {
        Sandbox(inner)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// The runtime that guests run on.
    pub(crate) fn kernel(&self) -> &tokio::runtime::Handle {
        self.0.system.kernel.handle()
    }

    /// Returns the sandbox's unique id.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the engine it was built from.
    pub fn engine(&self) -> Engine {
        Engine::of(&self.0.system)
    }

    /// Returns its limits.
    pub fn limits(&self) -> &Limits {
        &self.0.setup.limits
    }

    /// Waits for the shell.
    pub(crate) async fn session(&self) -> Result<SessionGuard, Error> {
        let session = self.0.session.clone().lock_owned().await;
        OwnedMutexGuard::try_map(session, Option::as_mut).map_err(|_| Error::Destroyed)
    }

    pub(crate) fn machine(&self) -> Arc<Machine> {
        self.0.machine.lock().clone()
    }

    /// Returns the same, unless the sandbox was destroyed.
    pub(crate) fn live(&self) -> Result<Arc<Machine>, Error> {
        if self.0.destroyed.load(Ordering::SeqCst) {
            return Err(Error::Destroyed);
        }
        Ok(self.machine())
    }

    /// Makes a path from outside absolute.
    pub(crate) fn absolute(&self, path: impl AsRef<[u8]>) -> Vec<u8> {
        self.0.directory.absolute(path.as_ref(), &self.0.setup.cwd)
    }

    /// Fails if the audit log cannot be written: nothing is done that could not be recorded.
    pub(crate) fn check_audit(&self) -> Result<(), Error> {
        match &self.0.setup.audit {
            Some(audit) => Ok(audit.check()?),
            None => Ok(()),
        }
    }

    /// Returns whether a command is running.
    pub fn is_running(&self) -> bool {
        self.0.running.lock().is_some()
    }

    /// Cancels the running command, or whatever else is in progress that may take its time (an import, a variable);
    /// returns `false` if there is none.
    pub fn cancel(&self) -> bool {
        match &*self.0.running.lock() {
            Some(running) => {
                running.notify_one();
                true
            }
            None => false,
        }
    }

    /// Pauses all its processes, which cannot notice. A running command's clock stops.
    pub fn suspend(&self) -> Result<(), Error> {
        self.live()?.suspend();
        Ok(())
    }

    /// Resumes them.
    pub fn resume(&self) -> Result<(), Error> {
        self.live()?.resume();
        Ok(())
    }

    /// Stops everything in the sandbox and frees its resources, even if there are other handles: all later calls return
    /// [`Error::Destroyed`]. A command in progress returns as if it were cancelled.
    pub async fn destroy(&self) {
        if self.0.destroyed.swap(true, Ordering::SeqCst) {
            return;
        }
        let _noted = Ending(&self.0, Event::Destroy);
        self.take_down().await;
    }

    /// The same for one that is asleep from now on.
    pub(crate) async fn vanish(&self) {
        if self.0.destroyed.swap(true, Ordering::SeqCst) {
            return;
        }
        let _noted = Ending(&self.0, Event::Hibernate);
        self.take_down().await;
    }

    async fn take_down(&self) {
        self.cancel();
        // Those that wait to run find no shell when it is their turn.
        let session = self.0.session.lock().await.take();
        let interpreters = std::mem::take(&mut *self.0.interpreters.lock());
        // Memories that were written take long to unmap.
        drop_aside((session, interpreters)).await;
        // Only now: an import or a restore may have replaced it meanwhile.
        let machine = self.machine();
        machine.close();
        bury(&machine).await;
    }
}

/// How many trees are freed at once.
static BURIALS: Semaphore = Semaphore::const_new(2);

/// Frees the files of a machine that is no longer used. A wide tree takes a while: on a thread that may block.
pub(crate) async fn bury(machine: &Machine) {
    let tree = std::mem::replace(&mut *machine.tree().await, Tree::new(Quota::NONE));
    drop_aside(tree).await;
}

/// Drops something large on a thread that may block.
pub async fn drop_aside<T: Send + 'static>(value: T) {
    // Nobody closes it.
    let _turn = BURIALS.acquire().await;
    let _ = tokio::task::spawn_blocking(move || drop(value)).await;
}

fn new_machine(system: &System, setup: &Setup, way: &Arc<Way>, tree: Tree) -> Arc<Machine> {
    let rules = Rules { outside: Some(way.clone()), ..setup.rules.clone() };
    Machine::with_rules(&system.kernel, tree, setup.limits.kernel(), rules)
}

/// Opening thousands of files takes a while: then on a thread that may block.
async fn put_in_machine(
    system: &Arc<System>,
    setup: &Arc<Setup>,
    way: &Arc<Way>,
    tree: Tree,
    rest: &RestOfAll,
) -> Result<(Arc<Machine>, Residents), Error> {
    if !rest.all().any(AtRest::is_large) {
        return put_in_machine_now(system, setup, way, tree, rest);
    }
    let (system, setup, way, rest) = (system.clone(), setup.clone(), way.clone(), rest.clone());
    let kernel = system.kernel.handle().clone();
    let putting = kernel.spawn_blocking(move || put_in_machine_now(&system, &setup, &way, tree, &rest));
    putting.await.map_err(lost)?
}

fn put_in_machine_now(
    system: &System,
    setup: &Setup,
    way: &Arc<Way>,
    tree: Tree,
    rest: &RestOfAll,
) -> Result<(Arc<Machine>, Residents), Error> {
    let machine = new_machine(system, setup, way, tree);
    let session = Session::restore(&machine, &system.shell, &rest.shell);
    let session = session.map_err(|errno| Error::refused(errno, b"shell"))?;
    let interpreters = python::restore(system, &machine, &rest.interpreters)?;
    Ok((machine, (session, interpreters)))
}

/// Returns an id: 64 random bits, in hexadecimal.
pub(crate) fn new_id() -> String {
    written_id(new_number())
}

/// Returns 64 random bits. If there is no randomness, it uses the clock.
pub(crate) fn new_number() -> u64 {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        bytes = crate::history::now_ms().to_le_bytes();
    }
    u64::from_le_bytes(bytes)
}

/// Returns the id that has this number.
pub(crate) fn written_id(number: u64) -> String {
    format!("{number:016x}")
}

/// Returns the number of an id.
pub(crate) fn read_id(id: &str) -> Option<u64> {
    u64::from_str_radix(id, 16).ok().filter(|number| written_id(*number) == id)
}
