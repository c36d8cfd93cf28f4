//! Sandboxes with names, in the server's store: `sandbox.open`, `persistence.log` and their like.
//!
//! A client of a socket sees the names of its own namespace, which its `stateToken` stands for; the only client of a server
//! sees all.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wardian::{Builder, Durability, PersistenceMode, Store};

use super::{Job, Prepared, entry, ok};
use crate::entry::{Entry, Origin};
use crate::params::{Params, text};
use crate::rpc::{INVALID_REQUEST, RpcError};
use crate::session::Session;
use crate::tenant::Tenant;

/// How many commits are listed by default, and at most.
const LISTED: usize = 100;
const LISTED_MOST: usize = 1000;

/// Returns the server's store.
fn store(session: &Session) -> Result<Store, RpcError> {
    let store = session.shared.store.clone();
    store.ok_or_else(|| RpcError::params("the server was started without --store"))
}

/// Returns the full name of what a client calls `name`.
fn full(session: &Session, name: &str) -> Result<String, RpcError> {
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
fn shown(session: &Session, name: &str) -> Option<String> {
    match session.tenant() {
        Tenant::Owner => Some(name.to_owned()),
        Tenant::Token(hash) => Some(name.strip_prefix(&format!("t-{}/", &hash[..32]))?.to_owned()),
        Tenant::Nobody => None,
    }
}

fn name(session: &Session, params: &mut Params) -> Result<String, RpcError> {
    full(session, &params.required_string("name")?)
}

/// Where a new sandbox starts from, and under which name it is saved.
pub(super) struct Origins {
    image: Option<(Store, String)>,
    persist: Option<(Store, String, PersistenceMode, Durability)>,
}

impl Origins {
    /// Reads `image` and `persistence`.
    pub(super) fn read(session: &Session, params: &mut Params) -> Result<Origins, RpcError> {
        let image = match params.string("image")? {
            Some(image) => Some((store(session)?, full(session, &image)?)),
            None => None,
        };
        let Some(mut given) = params.object("persistence")? else {
            return Ok(Origins { image, persist: None });
        };
        let mode = given.string("mode")?;
        let durability = given.string("durability")?;
        let interval = given.number("autosaveMs")?;
        let name = given.string("name")?;
        given
            .refuse("idleSeconds", "is not supported: an open sandbox stays in memory until it is removed")?;
        given.done()?;
        let mode = match mode.as_deref() {
            Some("ephemeral") if name.is_none() && durability.is_none() && interval.is_none() => {
                return Ok(Origins { image, persist: None });
            }
            Some("ephemeral") => {
                return Err(RpcError::params("persistence: an ephemeral sandbox is not saved"));
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
        Ok(Origins { image, persist })
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
    let name = name(session, params)?;
    params.done()?;
    let store = store(session)?;
    let (mut root, builder) = (session.entry(None)?.at_once(), session.builder());
    let session = session.clone();
    Job::in_turn(None, async move {
        root.come().await;
        drop(root);
        let Some(builder) = builder else {
            return Err(RpcError::new(INVALID_REQUEST, "the sandbox could not be created"));
        };
        let room = session.room()?;
        let sandbox = store.resume_with(&name, builder).await?;
        // It has the limits that it was saved with, which may be more than those that there is room for.
        drop(room);
        let add = |room| session.add(Entry::over(Origin::Named { label: None }, sandbox.clone(), room));
        let added = session.place(sandbox.limits()).and_then(add);
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
    let entry = entry(session, params)?;
    params.done()?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move { Ok(json!({ "commit": turn.sandbox().await?.save().await? })) })
}

/// `persistence.checkout`: an open sandbox goes back to one of its commits.
pub(super) fn checkout(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let commit = params.required_string("commit")?;
    params.done()?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        Ok(json!({ "commit": turn.sandbox().await?.checkout(&commit).await? }))
    })
}

/// Does something that blocks with the store.
fn with_store(
    session: &Arc<Session>,
    work: impl FnOnce(&Store) -> Result<Value, wardian::Error> + Send + 'static,
) -> Prepared {
    let (store, session) = (store(session)?, session.clone());
    Job::at_once(None, async move { Ok(session.heavily(move || work(&store)).await??) })
}

/// `persistence.sandboxes`: the client's.
pub(super) fn sandboxes(session: &Arc<Session>, params: &mut Params) -> Prepared {
    params.done()?;
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
    let name = name(session, params)?;
    let before = params.number("before")?.map(|id| i64::try_from(id).unwrap_or(i64::MAX));
    let most = params.size("limit")?.unwrap_or(LISTED).min(LISTED_MOST);
    params.done()?;
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
    let name = name(session, params)?;
    let (from, to) = (params.required_string("from")?, params.string("to")?);
    params.done()?;
    with_store(session, move |store| {
        let changes = store.diff(&name, &from, to.as_deref())?;
        let describe = |change: &wardian::FileChange| json!({ "path": text(&change.path), "change": change.what.letter().to_string() });
        Ok(json!({ "changes": changes.iter().map(describe).collect::<Vec<_>>() }))
    })
}

/// `persistence.branch`: another sandbox, from a commit of one.
pub(super) fn branch(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let name = name(session, params)?;
    let new = full(session, &params.required_string("newName")?)?;
    let commit = params.string("commit")?;
    params.done()?;
    with_store(session, move |store| Ok(json!({ "commit": store.branch(&name, commit.as_deref(), &new)? })))
}

/// `persistence.tag`: a commit that is kept.
pub(super) fn tag(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (name, tag) = (name(session, params)?, params.required_string("tag")?);
    let commit = params.required_string("commit")?;
    params.done()?;
    let commit =
        commit.parse().map_err(|_| RpcError::params("commit must be a commit's number, as a string"))?;
    with_store(session, move |store| {
        store.tag(&name, &tag, commit)?;
        Ok(json!({ "ok": true }))
    })
}

/// `persistence.delete`: a sandbox that nobody has open goes, with all its commits.
pub(super) fn delete(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let name = name(session, params)?;
    params.done()?;
    let store = store(session)?;
    let session = session.clone();
    Job::at_once(None, async move {
        session.heavily(move || store.remove(&name)).await??;
        ok()
    })
}
