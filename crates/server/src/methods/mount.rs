//! `mount`: files given as bytes.

use std::sync::Arc;

use super::{Job, Prepared, entry, ok};
use crate::params::Params;
use crate::rpc::RpcError;
use crate::session::Session;

pub(super) fn mount(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let (path, files, writable) = files(params)?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        turn.sandbox().await?.mount_files(path, files, writable).await?;
        ok()
    })
}

type Files = (String, Vec<(String, Vec<u8>)>, bool);

/// Where the files go, what they are, and whether they are writable.
pub(super) fn files(params: &mut Params) -> Result<Files, RpcError> {
    let path = params.required_string("path")?;
    let files = params.object("files")?;
    let files = params.required("files", files)?.all_bytes()?;
    Ok((path, files, params.flag("writable")?.unwrap_or(false)))
}
