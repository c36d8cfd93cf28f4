//! Sandboxes that no connection has: they belong to a token and end by their lifetime, by request, or with the server.
//!
//! Each is a session of its own, as that of a client of the socket, so every method means the same here. Its forks are `ID.1`,
//! `ID.2` and so on, and end with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::e2b::{Allowance, Refused};
use crate::http::guard::Caller;
use crate::methods::date;
use crate::outbox::{Listeners, Outbox};
use crate::session::{Session, Shared};

/// How many a token may have, forks not counted.
const SANDBOXES: usize = 1024;
/// How long one lives unless something else is asked for, and at most.
pub(super) const LIFETIME: Duration = Duration::from_secs(300);
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// One sandbox with its forks.
pub(super) struct Host {
    pub(super) id: String,
    /// Whose it is: a token.
    owner: String,
    pub(super) session: Arc<Session>,
    pub(super) listeners: Arc<Listeners>,
    created: SystemTime,
    end: watch::Sender<SystemTime>,
    requests: AtomicU64,
}

impl Host {
    /// Returns an id for a request.
    pub(super) fn request(&self) -> String {
        (self.requests.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    pub(super) fn live_for(&self, lifetime: Duration) {
        self.end.send_replace(SystemTime::now() + lifetime.min(LONGEST));
    }

    pub(super) fn shown(&self) -> Value {
        json!({ "sandboxId": self.id, "createdAt": date(self.created), "endAt": date(*self.end.borrow()) })
    }

    async fn close(&self) {
        self.session.end().await;
        self.session.let_go_of_pool();
    }
}

/// All of them.
#[derive(Default)]
pub(in crate::http) struct Hosts {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    hosts: BTreeMap<String, Arc<Host>>,
    closed: bool,
}

/// Returns a session without a sandbox, and who listens to it.
pub(super) fn session(
    shared: &Arc<Shared>,
    caller: &Caller,
    allowance: &Allowance,
) -> (Arc<Session>, Arc<Listeners>) {
    let listeners = Arc::<Listeners>::default();
    let outbox = Outbox::for_listeners(listeners.clone(), allowance.answers.of_request());
    (Session::with_turns(shared.clone(), caller.member(), outbox, allowance.turns()), listeners)
}

impl Hosts {
    /// Adds a sandbox that is about to be created.
    pub(super) fn add(
        self: &Arc<Hosts>,
        owner: &str,
        (session, listeners): (Arc<Session>, Arc<Listeners>),
    ) -> Result<Arc<Host>, Refused> {
        let mut random = [0; 16];
        let no_randomness = |_| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "there is no randomness");
        getrandom::fill(&mut random).map_err(no_randomness)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let host = Arc::new(Host {
            id: format!("s{name}"),
            owner: owner.to_owned(),
            session,
            listeners,
            created: SystemTime::now(),
            // Until it is there.
            end: watch::Sender::new(SystemTime::now() + LONGEST),
            requests: AtomicU64::new(0),
        });
        let mut table = self.table.lock();
        if table.closed {
            return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down"));
        }
        if table.hosts.values().filter(|other| other.owner == owner).count() >= SANDBOXES {
            let message = format!("a token may have {SANDBOXES} sandboxes");
            return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, message));
        }
        table.hosts.insert(host.id.clone(), host.clone());
        tokio::spawn(watch_over(host.clone(), self.clone()));
        Ok(host)
    }

    /// Returns a token's sandbox.
    pub(super) fn of(&self, owner: &str, id: &str) -> Option<Arc<Host>> {
        self.table.lock().hosts.get(id).filter(|host| host.owner == owner).cloned()
    }

    /// Returns all sandboxes of a token, in the order of their creation.
    pub(super) fn all_of(&self, owner: &str) -> Vec<Arc<Host>> {
        let table = self.table.lock();
        let mut all: Vec<_> = table.hosts.values().filter(|host| host.owner == owner).cloned().collect();
        all.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        all
    }

    /// Destroys a sandbox with its forks: to its end, also if nobody waits for that.
    pub(super) async fn destroy(&self, host: Arc<Host>) {
        // Its watcher notices that it is gone.
        self.table.lock().hosts.remove(&host.id);
        host.end.send_replace(SystemTime::UNIX_EPOCH);
        let _ = tokio::spawn(async move { host.close().await }).await;
    }

    /// Destroys all of them.
    pub(in crate::http) async fn end(&self) {
        let hosts = {
            let mut table = self.table.lock();
            table.closed = true;
            std::mem::take(&mut table.hosts)
        };
        let mut ending = JoinSet::new();
        for host in hosts.into_values() {
            host.end.send_replace(SystemTime::UNIX_EPOCH);
            ending.spawn(async move { host.close().await });
        }
        ending.join_all().await;
    }
}

/// Destroys a sandbox when its time has come.
async fn watch_over(host: Arc<Host>, hosts: Arc<Hosts>) {
    let mut end = host.end.subscribe();
    loop {
        let left = end.borrow_and_update().duration_since(SystemTime::now()).unwrap_or_default();
        tokio::select! {
            changed = end.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(left) => break,
        }
    }
    if hosts.table.lock().hosts.remove(&host.id).is_some() {
        host.close().await;
    }
}
