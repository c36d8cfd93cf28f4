//! One sandbox of a key: it outlives connections and ends by its timeout, by being deleted, or with the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex as AsyncMutex, watch};
use wardian::Sandbox;

use super::Boxes;
use super::answer::Refused;
use super::interpreter::Contexts;
use super::processes::Running;
use super::watch::Watchers;
use crate::entry::{Entry, Origin};
use crate::methods::date;

/// The features of this version of envd all work, but for those that docs/e2b.md names.
pub(super) const ENVD: &str = "0.6.1";
/// When one that could not be paused is paused again.
const RETRY: Duration = Duration::from_secs(10);
/// The longest a sandbox may be asked to live.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// What a sandbox is created with, and shown with.
#[derive(Clone, Default)]
pub(super) struct Description {
    pub(super) template: String,
    pub(super) metadata: Map<String, Value>,
    /// Variables of its processes, in addition to those its shell started with.
    pub(super) env: Vec<(String, String)>,
    pub(super) auto_pause: bool,
    pub(super) auto_resume: bool,
    /// What was asked for, and so what is granted by this server.
    pub(super) allowed: Option<bool>,
    pub(super) internet: bool,
    /// Whether its ports are open to everybody who knows its id.
    pub(super) public: bool,
    pub(super) network: Value,
    pub(super) idempotency: Option<String>,
}

pub(super) struct Hosted {
    pub(super) id: String,
    /// Whose it is: the hash of a key.
    pub(super) key: String,
    /// The secret that clients of this sandbox must send.
    pub(super) token: String,
    pub(super) traffic: String,
    pub(super) described: Description,
    pub(super) created: SystemTime,
    pub(super) entry: Arc<Entry>,
    end: watch::Sender<SystemTime>,
    paused: AtomicBool,
    /// Held while it is paused or resumed.
    pub(super) pausing: AsyncMutex<()>,
    /// The processes that ran when it was paused and ended with the server.
    pub(super) lost: Mutex<Vec<Value>>,
    pub(super) processes: Mutex<BTreeMap<u32, Arc<Running>>>,
    pub(super) watchers: Watchers,
    pub(super) contexts: Contexts,
}

impl Hosted {
    pub(super) fn new(
        key: &str,
        described: Description,
        sandbox: Sandbox,
        room: crate::quota::Place,
        timeout: Duration,
    ) -> Result<Arc<Hosted>, Refused> {
        let random = || Refused::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "there is no randomness");
        let name = |bytes| secret(bytes).ok_or_else(random);
        Ok(Arc::new(Hosted {
            id: format!("i{}", name(16)?),
            key: key.to_owned(),
            token: name(32)?,
            traffic: name(32)?,
            described,
            created: SystemTime::now(),
            entry: Entry::over(Origin::Named { label: None }, sandbox, room),
            end: watch::Sender::new(SystemTime::now() + timeout.min(LONGEST)),
            paused: AtomicBool::new(false),
            pausing: AsyncMutex::default(),
            lost: Mutex::default(),
            processes: Mutex::default(),
            watchers: Watchers::default(),
            contexts: Contexts::default(),
        }))
    }

    /// Returns one that was paused before the server was started, as it is in the store.
    pub(super) fn found(
        (id, key): (&str, &str),
        (described, created): (Description, SystemTime),
        contexts: Contexts,
        entry: Arc<Entry>,
    ) -> Option<Arc<Hosted>> {
        Some(Arc::new(Hosted {
            id: id.to_owned(),
            key: key.to_owned(),
            token: secret(32)?,
            traffic: secret(32)?,
            described,
            created,
            entry,
            end: watch::Sender::new(SystemTime::now()),
            paused: AtomicBool::new(true),
            pausing: AsyncMutex::default(),
            lost: Mutex::default(),
            processes: Mutex::default(),
            watchers: Watchers::default(),
            contexts,
        }))
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }

    /// Who watches over it looks again.
    pub(super) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::SeqCst);
        self.end.send_modify(|_| ());
    }

    /// Sets when it ends; or, if it may only be longer, no earlier than it would have.
    pub(super) fn live_for(&self, timeout: Duration, only_longer: bool) {
        let end = SystemTime::now() + timeout.min(LONGEST);
        self.end.send_modify(|now| {
            if !only_longer || end > *now {
                *now = end;
            }
        });
    }

    /// Ends it when its time has come.
    pub(super) async fn watch_over(self: Arc<Hosted>, boxes: Arc<Boxes>) {
        let mut end = self.end.subscribe();
        loop {
            let left = end.borrow_and_update().duration_since(SystemTime::now()).unwrap_or_default();
            let paused = self.is_paused();
            tokio::select! {
                () = self.entry.ended() => return,
                changed = end.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(left), if !paused => {
                    if self.described.auto_pause {
                        if let Err(refused) = boxes.pause(&self).await {
                            tracing::warn!(why = refused.message, "a sandbox could not be paused: it goes on");
                            self.live_for(RETRY, false);
                        }
                    } else {
                        return boxes.destroy(&self).await;
                    }
                }
            }
        }
    }

    pub(super) fn state(&self) -> &'static str {
        if self.is_paused() { "paused" } else { "running" }
    }

    /// What a client that creates it, or connects to it, is told.
    pub(super) fn access(&self) -> Value {
        json!({
            "sandboxID": self.id,
            "templateID": self.described.template,
            "alias": self.described.template,
            "clientID": "wardian",
            "envdVersion": ENVD,
            "envdAccessToken": self.token,
            "trafficAccessToken": self.traffic,
            "domain": null,
        })
    }

    /// What lists tell of it.
    pub(super) fn listed(&self) -> Value {
        let limits = self.entry.glance(|sandbox| *sandbox.limits()).unwrap_or_default();
        json!({
            "sandboxID": self.id,
            "templateID": self.described.template,
            "alias": self.described.template,
            "clientID": "wardian",
            "startedAt": date(self.created),
            "endAt": date(*self.end.borrow()),
            "cpuCount": cpus(),
            "memoryMB": limits.memory_bytes >> 20,
            "diskSizeMB": limits.fs_bytes >> 20,
            "metadata": self.described.metadata,
            "state": self.state(),
            "envdVersion": ENVD,
        })
    }

    /// What is told of it alone.
    pub(super) fn detailed(&self) -> Value {
        let mut detail = self.listed();
        detail["envdAccessToken"] = self.token.as_str().into();
        detail["domain"] = Value::Null;
        detail["allowInternetAccess"] = self.described.internet.into();
        if self.described.network.is_object() {
            detail["network"] = self.described.network.clone();
        }
        detail["lifecycle"] = json!({
            "onTimeout": if self.described.auto_pause { "pause" } else { "kill" },
            "autoResume": self.described.auto_resume,
        });
        detail
    }

    /// What it uses now.
    pub(super) async fn metric(&self) -> Value {
        let Some(sandbox) = self.entry.glance(Sandbox::clone) else { return Value::Null };
        let (used, disk, limits) = (sandbox.usage_now(), sandbox.disk_usage().await, sandbox.limits());
        let now = SystemTime::now();
        json!({
            "timestamp": date(now),
            "timestampUnix": now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs(),
            "cpuCount": cpus(),
            "cpuUsedPct": 0.0,
            "memUsed": used.memory_bytes,
            "memTotal": limits.memory_bytes,
            "memCache": 0,
            "diskUsed": disk,
            "diskTotal": limits.fs_bytes,
        })
    }
}

/// Whether this looks like the id of a sandbox.
pub(super) fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix('i').unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Random bytes as letters and digits that a host name can have.
fn secret(bytes: usize) -> Option<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).ok()?;
    Some(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
