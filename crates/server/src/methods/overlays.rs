//! `mount.diff` and `mount.apply`: what a sandbox has changed in an overlay over a directory of this machine.

use std::sync::Arc;

use serde_json::{Value, json};
use wardian::{OverlayChange, OverlayChangeKind as Kind};
use wardian_contract::params::{ApplyOverlay, DiffOverlay};

use super::files::kind;
use super::{Job, Outcome, Prepared, asked};
use crate::params::{Params, text};
use crate::rpc::RpcError;
use crate::session::Session;

/// The most changes that are told or applied, and the most bytes of their paths and of a patch.
const CHANGES: usize = 100_000;
const BYTES: usize = 8 << 20;

pub(super) fn diff(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, DiffOverlay { path, patch, .. }) = asked(session, params)?;
    let (mut turn, session) = (entry.at_once(), session.clone());
    Job::at_once(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let held = session.heavy().await?;
        let comparing = async {
            let changes = sandbox.diff_within(&path, CHANGES, BYTES).await?;
            let text = match patch {
                Some(true) => Some(sandbox.diff_text_within(&path, CHANGES, BYTES).await?),
                _ => None,
            };
            Ok::<_, wardian::Error>((changes, text))
        };
        let (changes, patch) = tokio::select! {
            () = entry.ended() => return Err(wardian::Error::Destroyed.into()),
            compared = comparing => compared?,
        };
        held.run(move || {
            let mut answer = json!({ "changes": told(&changes) });
            if let Some(patch) = patch {
                answer["patch"] = Value::String(text(&patch));
            }
            answer
        })
        .await
    })
}

pub(super) fn apply(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, ApplyOverlay { path, dry_run, .. }) = asked(session, params)?;
    let (mut turn, session) = (entry.in_turn(), session.clone());
    Job::in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let held = session.heavy().await?;
        // What is applied is told, so it is as much as can be told.
        tokio::select! {
            () = entry.ended() => return Err(wardian::Error::Destroyed.into()),
            counted = sandbox.diff_within(&path, CHANGES, BYTES) => drop(counted?),
        }
        let dry_run = dry_run.unwrap_or(false);
        // By itself: once it has begun it comes to its end, and so that the next to apply sees all of it, whoever waits for it.
        let applying = tokio::spawn(async move { (sandbox.apply(&path, dry_run).await, turn) });
        let (changes, _turn) = applying.await.map_err(|error| RpcError::internal(error.to_string()))?;
        let changes = changes?;
        held.run(move || Outcome::Ok(json!({ "changes": told(&changes) }))).await?
    })
}

fn told(changes: &[OverlayChange]) -> Value {
    let change = |change: &OverlayChange| {
        let (letter, mode) = match change.what {
            Kind::Added { mode } => ("A", Some(mode)),
            Kind::Modified => ("M", None),
            Kind::Deleted { mode } => ("D", Some(mode)),
            Kind::Mode { to, .. } => ("P", Some(to)),
        };
        let mut told = json!({ "path": text(&change.path), "change": letter, "type": kind(change.kind) });
        if let Some(mode) = mode {
            told["mode"] = mode.into();
        }
        told
    };
    changes.iter().map(change).collect()
}
