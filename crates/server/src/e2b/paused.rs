//! Paused sandboxes: in memory with their processes suspended; with a store, saved as well, and out of memory if nothing runs.
//!
//! What is in the store outlives the server. There a sandbox is found by `e2b-KEY/ID`, with what it was created with as its note:
//! the hash of its key, not the key, and none of its secrets. Whoever connects after a restart is told new ones.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::StatusCode;
use serde_json::{Value, json};
use wardian::{Limits, PersistenceMode, Store};

use super::answer::Refused;
use super::boxes::Boxes;
use super::create::{policy, with_policy};
use super::hosted::{Description, Hosted, is_id};
use super::interpreter::Contexts;
use crate::entry::{Entry, Origin};
use crate::hibernation::{Asleep, Awake, Bed};
use crate::quota::memory_of;
use crate::session::Shared;

/// What names in the store begin with.
const NAMESPACE: &str = "e2b-";
/// How many processes of a paused sandbox are noted, and how much of each.
const PROCESSES: usize = 64;
const COMMAND: usize = 256;

fn name_of(hosted: &Hosted) -> String {
    format!("{NAMESPACE}{}/{}", hosted.key, hosted.id)
}

impl Boxes {
    /// Pauses a sandbox; `false` if it is paused already. With a store it is saved when this returns.
    pub(super) async fn pause(self: &Arc<Boxes>, hosted: &Arc<Hosted>) -> Result<bool, Refused> {
        // By itself: whoever asks for it may be gone before it is done.
        let (boxes, hosted) = (self.clone(), hosted.clone());
        let pausing = tokio::spawn(async move { boxes.pause_now(&hosted).await });
        pausing.await.unwrap_or_else(|_| Err(failed("the sandbox could not be paused")))
    }

    async fn pause_now(&self, hosted: &Arc<Hosted>) -> Result<bool, Refused> {
        let _pausing = hosted.pausing.lock().await;
        if hosted.entry.is_destroyed() {
            return Err(Refused::no_sandbox(&hosted.id));
        }
        if hosted.is_paused() {
            return Ok(false);
        }
        hosted.set_paused(true);
        let paused = self.put_aside(hosted).await;
        if paused.is_err() {
            hosted.set_paused(false);
        }
        paused.map(|()| true)
    }

    async fn put_aside(&self, hosted: &Arc<Hosted>) -> Result<(), Refused> {
        let awake = hosted.entry.awake().await.map_err(|error| failed(&error.message))?;
        awake.suspend()?;
        let Some(store) = &self.shared.store else { return Ok(()) };
        let saved = save(hosted, &awake, store, &self.shared).await;
        if saved.is_err() || hosted.processes.lock().is_empty() {
            awake.resume()?;
        }
        saved?;
        drop(awake);
        // Unless something runs in it, or is still being read from it.
        if hosted.processes.lock().is_empty() && !hosted.entry.hibernate().await {
            hosted.entry.glance(|sandbox| sandbox.suspend()).transpose()?;
        }
        Ok(())
    }

    /// Resumes a sandbox; `false` if it is not paused.
    pub(super) async fn resume(&self, hosted: &Arc<Hosted>) -> Result<bool, Refused> {
        let _pausing = hosted.pausing.lock().await;
        if !hosted.is_paused() {
            return Ok(false);
        }
        let awake = hosted.entry.awake().await.map_err(|error| failed(&error.message))?;
        awake.resume()?;
        hosted.set_paused(false);
        hosted.live_for(Duration::from_secs(300), false);
        Ok(true)
    }

    /// Returns the sandbox, if it is not paused, or may be resumed by being used.
    pub(super) async fn running(&self, hosted: &Arc<Hosted>) -> Result<Awake, Refused> {
        let gone = || Refused::no_sandbox(&hosted.id);
        if hosted.is_paused() {
            if !hosted.described.auto_resume {
                return Err(gone());
            }
            self.resume(hosted).await?;
        }
        let awake = hosted.entry.awake().await.map_err(|error| match hosted.entry.has_ended() {
            true => gone(),
            // It is there, but cannot come back to memory now.
            false => Refused::new(StatusCode::SERVICE_UNAVAILABLE, error.message),
        })?;
        // It may have been paused meanwhile.
        if hosted.is_paused() && !hosted.described.auto_resume { Err(gone()) } else { Ok(awake) }
    }

    /// Ends a sandbox, also in the store.
    pub(super) async fn destroy(self: &Arc<Boxes>, hosted: &Arc<Hosted>) {
        let (boxes, hosted) = (self.clone(), hosted.clone());
        // By itself, as above; and after it was paused, if that is going on: what is saved then is removed.
        let ending = tokio::spawn(async move {
            boxes.remove(&hosted.id);
            let _pausing = hosted.pausing.lock().await;
            hosted.entry.end().await;
            if let Some(store) = boxes.shared.store.clone() {
                forget(&hosted, store).await;
            }
        });
        let _ = ending.await;
    }

    /// Finds those that were paused when an earlier server ended.
    pub(crate) async fn find_paused(self: &Arc<Boxes>) {
        let Some(store) = self.shared.store.clone() else { return };
        let boxes = self.clone();
        let finding = tokio::task::spawn_blocking(move || match store.list() {
            Ok(all) => all.into_iter().filter_map(|one| find(&boxes, &store, &one.name)).collect(),
            Err(error) => {
                tracing::error!(%error, "paused sandboxes cannot be found");
                Vec::new()
            }
        });
        for hosted in finding.await.unwrap_or_default() {
            let _ = self.add(&hosted);
        }
    }
}

fn failed(why: &str) -> Refused {
    Refused::new(StatusCode::INTERNAL_SERVER_ERROR, why)
}

/// Ends a sandbox with the server: one that is paused stays in the store.
pub(super) async fn end(hosted: &Hosted, store: Option<Store>) {
    let paused = hosted.is_paused();
    hosted.entry.end().await;
    if let Some(store) = store.filter(|_| !paused) {
        forget(hosted, store).await;
    }
}

async fn forget(hosted: &Hosted, store: Store) {
    // It is only there if it was ever paused.
    if hosted.entry.bed().is_none() {
        return;
    }
    let name = name_of(hosted);
    let removed = tokio::task::spawn_blocking(move || store.remove(&name)).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, "a sandbox stays in the store");
    }
}

async fn save(
    hosted: &Arc<Hosted>,
    awake: &Awake,
    store: &Store,
    shared: &Arc<Shared>,
) -> Result<(), wardian::Error> {
    let note = note(hosted);
    // First: what has a bed is removed from the store when it is killed.
    hosted.entry.sleeps_in(bed(shared, hosted.described.clone()));
    if awake.name().is_some() {
        awake.set_note(note).await?;
        awake.save().await?;
        return Ok(());
    }
    awake.save_as(store, &name_of(hosted), PersistenceMode::Session, note).await
}

fn bed(shared: &Arc<Shared>, described: Description) -> Arc<Bed> {
    let weak = Arc::downgrade(shared);
    Bed::new(shared, None, move || {
        let shared = weak.upgrade()?;
        let granted = policy(described.allowed, &described.network, shared.network);
        // What this server does not grant any more it does not have.
        let granted = granted.ok().and_then(|(policy, _)| policy);
        Some(with_policy(shared.new_builder(), granted.as_ref()))
    })
}

/// What is saved with a sandbox.
fn note(hosted: &Hosted) -> Value {
    let described = &hosted.described;
    let processes = hosted.processes.lock();
    let processes = processes.iter().take(PROCESSES).map(|(pid, running)| {
        let command: String = running.command().chars().take(COMMAND).collect();
        json!({ "pid": pid, "cmd": command })
    });
    json!({
        "template": described.template,
        "metadata": described.metadata,
        "env": described.env,
        "autoPause": described.auto_pause,
        "autoResume": described.auto_resume,
        "allowed": described.allowed,
        "internet": described.internet,
        "public": described.public,
        "network": described.network,
        "idempotency": described.idempotency,
        "createdMs": hosted.created.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64,
        "contexts": hosted.contexts.to_json(),
        "processes": processes.collect::<Vec<_>>(),
    })
}

fn described(note: &Value) -> Description {
    let flag = |name: &str| note[name].as_bool().unwrap_or(false);
    let pair = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
    Description {
        template: note["template"].as_str().unwrap_or_default().to_owned(),
        metadata: note["metadata"].as_object().cloned().unwrap_or_default(),
        env: note["env"].as_array().into_iter().flatten().filter_map(pair).collect(),
        auto_pause: flag("autoPause"),
        auto_resume: flag("autoResume"),
        allowed: note["allowed"].as_bool(),
        internet: flag("internet"),
        public: flag("public"),
        network: note["network"].clone(),
        idempotency: note["idempotency"].as_str().map(str::to_owned),
    }
}

/// Returns the paused sandbox of this name in the store, if it is one and nobody else has it.
fn find(boxes: &Boxes, store: &Store, name: &str) -> Option<Arc<Hosted>> {
    let (key, id) = name.strip_prefix(NAMESPACE)?.split_once('/')?;
    if !is_id(id) {
        return None;
    }
    let (dormant, note) = match store.asleep(name) {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, name, "a paused sandbox cannot be had");
            return None;
        }
    };
    let described = described(&note);
    let created = UNIX_EPOCH + Duration::from_millis(note["createdMs"].as_u64().unwrap_or(0));
    // What it takes of a quota it took before the server was started.
    let taken = boxes.quota(key).map(|quota| quota.count(memory_of(&Limits::default())));
    let asleep = Asleep::found(&boxes.shared, dormant, taken)?;
    let bed = bed(&boxes.shared, described.clone());
    let entry = Entry::asleep(Origin::Named { label: None }, SystemTime::now(), asleep, bed);
    let contexts = Contexts::from_json(&note["contexts"]);
    let hosted = Hosted::found((id, key), (described, created), contexts, entry)?;
    *hosted.lost.lock() = note["processes"].as_array().cloned().unwrap_or_default();
    Some(hosted)
}
