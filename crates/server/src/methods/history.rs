//! `shell.history.…`: the commands that were run in a sandbox.

use std::sync::Arc;

use serde_json::json;

use super::{Job, Prepared, alone, ok};
use crate::params::{Params, text};
use crate::session::Session;

pub(super) fn list(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let mut turn = alone(session, params)?.at_once();
    Job::at_once(turn.hold(), async move {
        let history = turn.sandbox().await?.history();
        let entry = |entry: &wardian::HistoryEntry| json!({ "index": entry.index, "command": text(&entry.command), "timestamp": entry.timestamp });
        Ok(json!({ "entries": history.iter().map(entry).collect::<Vec<_>>() }))
    })
}

pub(super) fn clear(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let mut turn = alone(session, params)?.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.clear_history();
        ok()
    })
}
