//! `persistence.…`: a whole sandbox as bytes, in a line or in a file on the server.

use std::sync::Arc;

use base64::Engine;
use serde_json::json;
use wardian::{ArchiveError, Error as SandboxError, Limits, Sandbox};
use wardian_contract::params::StateName;

use super::{Answer, Job, Prepared, Written, alone, asked, entry, ok};
use crate::budget::{ANSWER_MAX, LARGE, Room};
use crate::params::{BASE64, Params};
use crate::rpc::RpcError;
use crate::session::Session;
use crate::states::{KeptState, StateFile, States};

pub(super) fn export(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let file = state_file(session, params)?;
    params.done()?;
    let (mut turn, session) = (entry.in_turn(), session.clone());
    Job::answered_in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let Some(file) = file else { return Ok(Answer::Written(export_line(&session, &sandbox).await?)) };
        let held = session.heavy().await?;
        let state = sandbox.export().await?;
        held.run(move || file.write(&state)).await??;
        ok().map(Answer::Value)
    })
}

/// How long a state or an image may be, as bytes, that goes into a line.
pub(super) const IN_LINE: usize = ANSWER_MAX / 4 * 3 - 1024;

/// Exports a state for a line: at most so many bytes that it fits into one. What packs well takes long for its length,
/// so even a short one takes its turn.
pub(super) async fn export_for_line(session: &Session, sandbox: &Sandbox) -> Result<Vec<u8>, RpcError> {
    let _turn = session.heavy().await?;
    Ok(sandbox.export_within(IN_LINE).await?)
}

/// Exports a state as an answer. How long that is shows when it is there, so room for the longest comes first, unless
/// it is short.
async fn export_line(session: &Session, sandbox: &Sandbox) -> Result<Written, RpcError> {
    let gone = || RpcError::internal("the client is gone");
    let budget = &session.outbox.budget;
    let turn = session.heavy().await?;
    let short = sandbox.export_within(LARGE).await;
    drop(turn);
    let (state, room) = match short {
        Err(SandboxError::Archive(ArchiveError::TooLong(_))) => {
            let room = budget.room(ANSWER_MAX).await.ok_or_else(gone)?;
            (export_for_line(session, sandbox).await?, room)
        }
        other => {
            let state = other?;
            let room = budget.room(state.len() / 3 * 4 + 1024).await.ok_or_else(gone)?;
            (state, room)
        }
    };
    write_line(session, state, room).await
}

/// Writes bytes as an answer, for which there is room.
pub(super) async fn write_line(
    session: &Session,
    bytes: Vec<u8>,
    mut room: Room,
) -> Result<Written, RpcError> {
    let json = session.aside(move || in_line(&bytes)).await?;
    room.shrink(json.len() + 1024);
    Ok(Written { json, room })
}

pub(super) fn import(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let file = state_file(session, params)?;
    let data = params.bytes("data")?;
    params.done()?;
    if file.is_some() && data.is_some() {
        return Err(RpcError::params("data and file cannot both be given"));
    }
    let data = if file.is_none() { Some(params.required("data", data)?) } else { data };
    let (mut turn, session) = (entry.in_turn(), session.clone());
    Job::in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        // A short archive can unpack to much, and a file is read only when it is its turn.
        let held = session.heavy().await?;
        let state = match (data, file) {
            (Some(data), _) => data,
            (None, Some(file)) => {
                let max = state_max(&sandbox);
                held.run(move || file.read(max)).await??
            }
            (None, None) => return Err(RpcError::params("Missing required param: data")),
        };
        sandbox.import(state).await?;
        ok()
    })
}

/// How long the file of a state may be that this sandbox could have.
fn state_max(sandbox: &Sandbox) -> u64 {
    most(sandbox.limits())
}

/// Returns how long the state of a sandbox with such limits may be.
pub(super) fn most(limits: &Limits) -> u64 {
    limits.fs_bytes.saturating_add(limits.memory_bytes).saturating_add(STATE_FRAME)
}

/// What an archive may take beside files and memory.
const STATE_FRAME: u64 = 16 << 20;

fn in_line(state: &[u8]) -> Vec<u8> {
    let mut json = String::with_capacity(state.len() / 3 * 4 + 64);
    json.push_str("{\"data\":\"");
    BASE64.encode_string(state, &mut json);
    json.push_str("\"}");
    json.into_bytes()
}

/// Returns the directory of the client's states.
fn states(session: &Session) -> Result<States, RpcError> {
    let Some(directory) = &session.shared.states else {
        return Err(RpcError::params("file: the server was started without --state-dir"));
    };
    directory.of(&session.tenant())
}

/// Returns the client's state of a name.
pub(super) fn state_of(session: &Session, name: String) -> Result<StateFile, RpcError> {
    states(session)?.file(name)
}

/// Returns the state that `file` names, if any.
fn state_file(session: &Session, params: &mut Params) -> Result<Option<StateFile>, RpcError> {
    params.string("file")?.map(|name| state_of(session, name)).transpose()
}

/// `persistence.list`: the client's states.
pub(super) fn list(session: &Arc<Session>, params: &mut Params) -> Prepared {
    alone(session, params)?;
    let (states, session) = (states(session)?, session.clone());
    Job::at_once(None, async move {
        let describe = |state: KeptState| json!({ "file": state.name, "bytes": state.bytes, "modifiedMs": state.modified_ms });
        let listed = session.heavily(move || states.list()).await??;
        Ok(json!({ "states": listed.into_iter().map(describe).collect::<Vec<_>>() }))
    })
}

/// `persistence.remove`: one of them is deleted.
pub(super) fn remove(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, StateName { file: name, .. }) = asked(session, params)?;
    let (file, session) = (states(session)?.file(name)?, session.clone());
    Job::at_once(None, async move {
        session.heavily(move || file.remove()).await??;
        ok()
    })
}
