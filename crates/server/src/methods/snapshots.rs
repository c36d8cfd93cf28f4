//! `snapshot.create` and `snapshot.restore`.

use std::sync::Arc;

use serde_json::json;
use wardian_contract::params::SnapshotId;

use super::{Job, Prepared, alone, asked, ok};
use crate::params::Params;
use crate::session::Session;

pub(super) fn create(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let mut turn = alone(session, params)?.in_turn();
    let session = session.clone();
    Job::in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let snapshot = sandbox.snapshot().await?;
        let limits = sandbox.limits();
        let limit = limits.fs_bytes.saturating_add(limits.memory_bytes);
        let (last, new) = (turn.entry().snapshots.lock().0.clone(), snapshot.clone());
        let bytes = session.heavily(move || new.bytes_beyond(last.as_ref())).await?;
        Ok(json!({ "id": session.keep_snapshot(turn.entry(), snapshot, bytes, limit)? }))
    })
}

/// A snapshot can be restored into any of the client's sandboxes where it fits.
pub(super) fn restore(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, SnapshotId { id, .. }) = asked(session, params)?;
    let snapshot = session.snapshot(&id)?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        turn.sandbox().await?.restore(&snapshot).await?;
        ok()
    })
}
