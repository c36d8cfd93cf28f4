//! `mount`: files given as bytes, with directories and links.

use std::sync::Arc;

use wardian::MountEntry;

use super::{Job, Prepared, entry, ok};
use crate::params::{Params, TextOrObject, decode};
use crate::rpc::RpcError;
use crate::session::Session;

pub(super) fn mount(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let (path, files, writable) = files(params)?;
    params.done()?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        turn.sandbox().await?.mount_entries(path, files, writable).await?;
        ok()
    })
}

type Files = (String, Vec<(String, MountEntry)>, bool);

/// Where the files go, what they are, and whether they are writable.
pub(super) fn files(params: &mut Params) -> Result<Files, RpcError> {
    let path = params.required_string("path")?;
    let files = params.object("files")?;
    let given = params.required("files", files)?.all_strings_or_objects()?;
    let mut files = Vec::with_capacity(given.len());
    for (name, value) in given {
        let entry = match value {
            TextOrObject::Text(text) => match decode(&text) {
                Some(content) => MountEntry::file(content),
                None => {
                    return Err(RpcError::params(format!("{}files.{name} must be base64", params.prefix())));
                }
            },
            TextOrObject::Object(object) => new_entry(object)?,
        };
        files.push((name, entry));
    }
    Ok((path, files, params.flag("writable")?.unwrap_or(false)))
}

/// Reads `{data, mode}`, `{dir: true, mode}` or `{link}`.
fn new_entry(mut object: Params) -> Result<MountEntry, RpcError> {
    let (data, mode) = (object.bytes("data")?, object.mode()?);
    let (dir, link) = (object.flag("dir")?.unwrap_or(false), object.string("link")?);
    let entry = match (data, dir, link, mode) {
        (Some(content), false, None, mode) => MountEntry::File { content, mode: mode.unwrap_or(0o644) },
        (None, true, None, mode) => MountEntry::Dir { mode: mode.unwrap_or(0o755) },
        (None, false, Some(target), None) => MountEntry::Symlink { target },
        (None, false, Some(_), Some(_)) => return Err(object.ill_typed("mode", "left out: a link has none")),
        _ => {
            let wrong =
                format!("{} must have one of data, dir and link", object.prefix().trim_end_matches('.'));
            return Err(RpcError::params(wrong));
        }
    };
    object.done_with(entry)
}
