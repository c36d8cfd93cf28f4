//! `files.watch` and `files.unwatch`: being told of what changes below a directory.

use std::sync::Arc;

use serde_json::{Value, json};
use wardian_contract::params::{Watch, WatchId};

use super::{Job, Prepared, asked, ok};
use crate::lane::Lane;
use crate::params::Params;
use crate::rpc::RpcError;
use crate::session::Session;
use crate::watchers::Watcher;

pub(super) fn watch(session: &Arc<Session>, id: Option<&Value>, params: &mut Params) -> Prepared {
    let (entry, Watch { path, recursive, .. }) = asked(session, params)?;
    if id.is_none() {
        return Err(RpcError::params("files.watch needs an id: its answer names the watcher"));
    }
    let place = session.watchers.place()?;
    let (mut turn, session) = (entry.at_once(), session.clone());
    let lane = Lane::default();
    // Nothing is told before the answer is sent.
    let (answer, told) = (lane.turn(), lane.turn());
    Job::at_once(answer.hold(), async move {
        let sandbox = turn.sandbox().await?;
        drop((turn, answer));
        // A name that leads elsewhere from another directory does so from now on, too.
        let path = sandbox.absolute_path(&path);
        let watcher = tokio::select! {
            () = entry.ended() => return Err(wardian::Error::Destroyed.into()),
            watcher = Watcher::new(place, &entry, &sandbox, path, recursive.unwrap_or(false)) => watcher?,
        };
        let answer = json!({ "watchId": watcher.id() });
        tokio::spawn(watcher.tell(told, session.outbox.clone()));
        Ok(answer)
    })
}

pub(super) fn unwatch(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, WatchId { watch_id, .. }) = asked(session, params)?;
    if !session.watchers.stop(&watch_id) {
        let shown: String = watch_id.chars().take(100).collect();
        return Err(RpcError::refused("ENOENT", format!("ENOENT: no such watcher: {shown}")));
    }
    Job::at_once(None, async { ok() })
}
