//! `files.…`: access to a sandbox's files from outside. These calls act immediately, even while a command runs.

use std::sync::Arc;

use serde_json::json;
use wardian::FileKind;

use super::{Job, Prepared, entry, ok};
use crate::params::{Params, encode, text};
use crate::session::Session;

pub(super) fn read(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let path = params.required_string("path")?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        let content = turn.sandbox().await?.read_file(path).await?;
        Ok(json!({ "data": encode(&content) }))
    })
}

pub(super) fn write(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let (path, data) = (params.required_string("path")?, params.required_bytes("data")?);
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.write_file(path, data).await?;
        ok()
    })
}

pub(super) fn list(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let path = params.required_string("path")?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        let entries = turn.sandbox().await?.list(path).await?;
        let entry = |entry: &wardian::Entry| json!({ "name": text(&entry.name), "type": kind(entry.kind), "size": entry.size });
        Ok(json!({ "entries": entries.iter().map(entry).collect::<Vec<_>>() }))
    })
}

pub(super) fn mkdir(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let path = params.required_string("path")?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.mkdir(path).await?;
        ok()
    })
}

pub(super) fn rm(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let path = params.required_string("path")?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.rm(path).await?;
        ok()
    })
}

pub(super) fn stat(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let path = params.required_string("path")?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        let file = turn.sandbox().await?.stat(path).await?;
        Ok(json!({
            "name": text(&file.name),
            "type": kind(file.kind),
            "size": file.size,
            "mode": file.mode,
            "mtimeMs": file.mtime_ms,
        }))
    })
}

/// Devices and pipes are reported as files: the protocol has three kinds.
fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Dir => "dir",
        FileKind::Symlink => "symlink",
        _ => "file",
    }
}
