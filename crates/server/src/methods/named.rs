//! Sandboxes with names, in the server's store: `sandbox.open`, `persistence.log` and their like.
//!
//! A client of a socket sees the names of its own namespace, which its `stateToken` stands for; the only client of a server
//! sees all.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wardian::{Builder, Durability, PersistenceMode, Store};
use wardian_contract::params as p;

use super::{Job, Prepared, alone, asked, ok};
use crate::params::{Params, text};
use crate::rpc::{INVALID_REQUEST, RpcError};
use crate::session::Session;
use crate::tenant::Tenant;

/// How many commits are listed by default, and at most.
const LISTED: usize = 100;
const LISTED_MOST: usize = 1000;

/// Returns the server's store.
pub(super) fn store(session: &Session) -> Result<Store, RpcError> {
    let store = session.shared.store.clone();
    store.ok_or_else(|| RpcError::params("the server was started without --store"))
}

/// Returns the full name of what a client calls `name`.
pub(super) fn full(session: &Session, name: &str) -> Result<String, RpcError> {
    match session.tenant() {
        Tenant::Owner => Ok(name.to_owned()),
        Tenant::Token(_) if name.contains('/') => {
            Err(RpcError::params("name: a client of a socket has one namespace, so a name has no '/'"))
        }
        Tenant::Token(hash) => Ok(format!("t-{}/{name}", &hash[..32])),
        Tenant::Nobody => Err(RpcError::params(
            "name: this server has many clients: pass a stateToken to create, so that your sandboxes stay yours",
        )),
    }
}

/// Returns what a client calls a sandbox, if it is its own.
pub(super) fn shown(session: &Session, name: &str) -> Option<String> {
    match session.tenant() {
        Tenant::Owner => Some(name.to_owned()),
        Tenant::Token(hash) => Some(name.strip_prefix(&format!("t-{}/", &hash[..32]))?.to_owned()),
        Tenant::Nobody => None,
    }
}

/// Where a new sandbox starts from, and under which name it is saved.
pub(super) struct Origins {
    image: Option<(Store, String)>,
    persist: Option<(Store, String, PersistenceMode, Durability)>,
    /// After how long without a call it leaves memory, if the client says so.
    pub(super) idle: Option<Duration>,
}

/// The longest that `idleSeconds` can be.
const IDLE_MOST: u64 = 366 * 24 * 3600;

/// Checks `idleSeconds`.
fn idle(given: Option<u64>) -> Result<Option<Duration>, RpcError> {
    match given {
        None => Ok(None),
        Some(seconds) if (1..=IDLE_MOST).contains(&seconds) => Ok(Some(Duration::from_secs(seconds))),
        Some(_) => Err(RpcError::params(format!("idleSeconds must be from 1 to {IDLE_MOST}"))),
    }
}

impl Origins {
    /// Reads `image` and `persistence`.
    pub(super) fn read(session: &Session, params: &mut Params) -> Result<Origins, RpcError> {
        let image = match params.string("image")? {
            Some(image) => Some((store(session)?, full(session, &image)?)),
            None => None,
        };
        let Some(mut given) = params.object("persistence")? else {
            return Ok(Origins { image, persist: None, idle: None });
        };
        let mode = given.string("mode")?;
        let durability = given.string("durability")?;
        let interval = given.number("autosaveMs")?;
        let name = given.string("name")?;
        let idle = idle(given.number("idleSeconds")?)?;
        given.done()?;
        let mode = match mode.as_deref() {
            Some("ephemeral")
                if name.is_none() && durability.is_none() && interval.is_none() && idle.is_none() =>
            {
                return Ok(Origins { image, persist: None, idle: None });
            }
            Some("ephemeral") => {
                return Err(RpcError::params("persistence: an ephemeral sandbox is not saved"));
            }
            Some("session") if durability.is_some() || interval.is_some() => {
                return Err(RpcError::params(
                    "persistence: a sandbox of mode \"session\" is saved only when asked, so it has no durability and no autosaveMs",
                ));
            }
            Some("session") if idle.is_some() => {
                return Err(RpcError::params(
                    "persistence.idleSeconds: a sandbox of mode \"session\" is saved only when asked, so it stays in memory",
                ));
            }
            Some("session") => PersistenceMode::Session,
            None | Some("persistent") => PersistenceMode::Persistent,
            Some(_) => {
                return Err(RpcError::params(
                    "persistence.mode must be \"ephemeral\", \"session\" or \"persistent\"",
                ));
            }
        };
        let durability = match (durability.as_deref(), interval) {
            (None | Some("command"), None) => Durability::Command,
            (Some("interval"), Some(ms)) if (1..=3_600_000).contains(&ms) => {
                Durability::Interval(Duration::from_millis(ms))
            }
            _ => {
                return Err(RpcError::params(
                    "persistence.durability must be \"command\", or \"interval\" with autosaveMs from 1 to 3600000",
                ));
            }
        };
        let name = name.ok_or_else(|| RpcError::params("Missing required param: persistence.name"))?;
        let persist = Some((store(session)?, full(session, &name)?, mode, durability));
        Ok(Origins { image, persist, idle })
    }

    /// Gives them to a builder.
    pub(super) fn give(&self, mut builder: Builder) -> Builder {
        if let Some((store, image)) = &self.image {
            builder = builder.image(store, image);
        }
        if let Some((store, name, mode, durability)) = &self.persist {
            builder = builder.persist(store, name).persistence_mode(*mode).durability(*durability);
        }
        builder
    }
}

/// `sandbox.open`: a saved sandbox, with the client's network policy and extensions.
pub(super) fn open(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, asked) = asked::<p::OpenStored>(session, params)?;
    let (name, idle) = (full(session, &asked.name)?, idle(asked.idle_seconds)?);
    let store = store(session)?;
    let (mut root, builder) = (session.entry(None)?.at_once(), session.builder());
    let session = session.clone();
    Job::in_turn(None, async move {
        root.come().await;
        drop(root);
        let Some(builder) = builder else {
            return Err(RpcError::new(INVALID_REQUEST, "the sandbox could not be created"));
        };
        let room = session.room(1).await?;
        let sandbox = store.resume_with(&name, builder).await?;
        // It has the limits that it was saved with, which may be more than those that there is room for.
        drop(room);
        let added = match session.places(sandbox.limits(), 1).await {
            Ok(mut places) => match places.pop() {
                Some(place) => session.add_named(None, sandbox.clone(), place, idle),
                None => Err(RpcError::new(INVALID_REQUEST, "the sandbox could not be opened")),
            },
            Err(error) => Err(error),
        };
        match added {
            Ok(id) => Ok(json!({ "sandboxId": id })),
            Err(error) => {
                sandbox.close().await?;
                Err(error)
            }
        }
    })
}

/// `persistence.save`: a commit now.
pub(super) fn save(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let mut turn = alone(session, params)?.at_once();
    Job::at_once(turn.hold(), async move { Ok(json!({ "commit": turn.sandbox().await?.save().await? })) })
}

/// `persistence.checkout`: an open sandbox goes back to one of its commits.
pub(super) fn checkout(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, p::Checkout { commit, .. }) = asked(session, params)?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        Ok(json!({ "commit": turn.sandbox().await?.checkout(&commit).await? }))
    })
}

/// Does something that blocks with the store.
pub(super) fn with_store(
    session: &Arc<Session>,
    work: impl FnOnce(&Store) -> Result<Value, wardian::Error> + Send + 'static,
) -> Prepared {
    let (store, session) = (store(session)?, session.clone());
    Job::at_once(None, async move { Ok(session.heavily(move || work(&store)).await??) })
}

/// `persistence.sandboxes`: the client's.
pub(super) fn sandboxes(session: &Arc<Session>, params: &mut Params) -> Prepared {
    alone(session, params)?;
    let asking = session.clone();
    with_store(session, move |store| {
        let describe = |found: wardian::SandboxInfo| {
            Some(json!({
                "name": shown(&asking, &found.name)?,
                "commits": found.commits,
                "createdMs": found.created_ms,
                "changedMs": found.changed_ms,
                "holder": found.holder,
            }))
        };
        Ok(json!({ "sandboxes": store.list()?.into_iter().filter_map(describe).collect::<Vec<_>>() }))
    })
}

/// `persistence.log`: what was done in a sandbox, newest first.
pub(super) fn log(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, asked) = asked::<p::Log>(session, params)?;
    let name = full(session, &asked.name)?;
    let before = asked.before.map(|id| i64::try_from(id).unwrap_or(i64::MAX));
    let most = asked.limit.map_or(LISTED, |most| usize::try_from(most).unwrap_or(LISTED_MOST));
    let most = most.min(LISTED_MOST);
    with_store(session, move |store| {
        let commits = store.log(&name, before, most)?;
        let describe = |commit: &wardian::CommitInfo| {
            json!({
                "commit": commit.id,
                "parent": commit.parent,
                "timeMs": commit.time_ms,
                "command": text(&commit.note.command),
                "exitCode": commit.note.exit_code,
                "bytes": commit.bytes,
                "tags": commit.tags,
            })
        };
        Ok(json!({ "commits": commits.iter().map(describe).collect::<Vec<_>>() }))
    })
}

/// `persistence.diff`: which files differ between two commits.
pub(super) fn diff(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, p::Diff { name, from, to, .. }) = asked(session, params)?;
    let name = full(session, &name)?;
    with_store(session, move |store| {
        let changes = store.diff(&name, &from, to.as_deref())?;
        let describe = |change: &wardian::FileChange| json!({ "path": text(&change.path), "change": change.what.letter().to_string() });
        Ok(json!({ "changes": changes.iter().map(describe).collect::<Vec<_>>() }))
    })
}

/// `persistence.branch`: another sandbox, from a commit of one.
pub(super) fn branch(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, p::Branch { name, new_name, commit, .. }) = asked(session, params)?;
    let (name, new) = (full(session, &name)?, full(session, &new_name)?);
    with_store(session, move |store| Ok(json!({ "commit": store.branch(&name, commit.as_deref(), &new)? })))
}

/// `persistence.tag`: a commit that is kept.
pub(super) fn tag(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, p::Tag { name, tag, commit, .. }) = asked(session, params)?;
    let name = full(session, &name)?;
    let commit =
        commit.parse().map_err(|_| RpcError::params("commit must be a commit's number, as a string"))?;
    with_store(session, move |store| {
        store.tag(&name, &tag, commit)?;
        Ok(json!({ "ok": true }))
    })
}

/// `persistence.delete`: a sandbox that nobody has open goes, with all its commits.
pub(super) fn delete(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, p::StoredName { name, .. }) = asked(session, params)?;
    let name = full(session, &name)?;
    let store = store(session)?;
    let session = session.clone();
    Job::at_once(None, async move {
        session.heavily(move || store.remove(&name)).await??;
        ok()
    })
}
