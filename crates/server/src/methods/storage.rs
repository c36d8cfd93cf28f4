//! `offload` and `rehydrate`: moves a sandbox's state to the client's storage, and back.

use std::sync::Arc;

use serde_json::{Value, json};

use super::persistence::export_for_line;
use super::{Job, Prepared, alone, ok};
use crate::params::{Params, decode, encode};
use crate::rpc::RpcError;
use crate::session::Session;

/// Saves the state with the client and frees everything that the sandbox holds here.
pub(super) fn offload(session: &Arc<Session>, params: &mut Params) -> Prepared {
    check_storage(session)?;
    let mut turn = alone(session, params)?.in_turn();
    let (callbacks, session) = (session.callbacks.clone(), session.clone());
    Job::in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let state = export_for_line(&session, &sandbox).await?;
        let state = session.aside(move || encode(&state)).await?;
        let (bytes, id) = (state.len(), sandbox.id().to_owned());
        let params = move || {
            let mut params = json!({ "sandbox_id": id });
            params["state"] = Value::String(state);
            params
        };
        let saved = callbacks.call("storage.save", bytes, params).await;
        saved.map_err(|message| failed("storage.save", &message))?;
        if let Some(sandbox) = turn.entry().offload() {
            sandbox.destroy().await;
        }
        ok()
    })
}

/// Recreates the sandbox from the client's copy of its state.
pub(super) fn rehydrate(session: &Arc<Session>, params: &mut Params) -> Prepared {
    check_storage(session)?;
    let mut turn = alone(session, params)?.in_turn();
    let session = session.clone();
    Job::in_turn(turn.hold(), async move {
        turn.come().await;
        let Some(name) = turn.entry().offloaded() else {
            return Err(RpcError::params("the sandbox is not offloaded"));
        };
        let loaded = session.callbacks.call("storage.load", 0, move || json!({ "sandbox_id": name })).await;
        let state = match loaded.map_err(|message| failed("storage.load", &message))? {
            Value::String(state) => session.aside(move || decode(&state)).await?,
            _ => None,
        };
        let state = state.ok_or_else(|| failed("storage.load", "the answer must be the state, as base64"))?;
        let Some(builder) = session.builder() else {
            return Err(RpcError::internal("nothing to make a sandbox from"));
        };
        let sandbox = builder.build().await?;
        let importing = session.heavy().await?;
        sandbox.import(state).await?;
        drop(importing);
        turn.entry().fill(sandbox);
        ok()
    })
}

fn check_storage(session: &Session) -> Result<(), RpcError> {
    if session.has_storage() { Ok(()) } else { Err(RpcError::params("storage was not enabled in create")) }
}

/// The client's storage failed.
fn failed(call: &str, message: &str) -> RpcError {
    RpcError::refused("EIO", format!("EIO: {call}: {message}"))
}
