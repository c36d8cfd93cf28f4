//! `mount`: files given as bytes, with directories and links.

use std::collections::BTreeMap;
use std::sync::Arc;

use wardian::MountEntry;
use wardian_contract::kinds::{MountEntry as Described, MountFile};
use wardian_contract::params::MountFiles;

use super::{Job, Prepared, asked, ok};
use crate::params::Params;
use crate::rpc::RpcError;
use crate::session::Session;

pub(super) fn mount(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, MountFiles { path, files, writable, .. }) = asked(session, params)?;
    let (files, writable) = (entries(files, "files")?, writable.unwrap_or(false));
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        turn.sandbox().await?.mount_entries(path, files, writable).await?;
        ok()
    })
}

/// Returns files as the library takes them. In messages they are called `prefix` and their name.
pub(super) fn entries(
    files: BTreeMap<String, MountFile>,
    prefix: &str,
) -> Result<Vec<(String, MountEntry)>, RpcError> {
    let entry = |(name, file)| {
        let entry = match file {
            MountFile::Content(content) => MountEntry::file(content.0),
            MountFile::Described(described) => described_entry(described, &format!("{prefix}.{name}"))?,
        };
        Ok((name, entry))
    };
    files.into_iter().map(entry).collect()
}

/// Returns the one thing that an object describes.
fn described_entry(described: Described, name: &str) -> Result<MountEntry, RpcError> {
    let Described { data, mode, dir, link } = described;
    let mode = mode.map(|mode| mode.0);
    match (data, dir.unwrap_or(false), link, mode) {
        (Some(content), false, None, mode) => {
            Ok(MountEntry::File { content: content.0, mode: mode.unwrap_or(0o644) })
        }
        (None, true, None, mode) => Ok(MountEntry::Dir { mode: mode.unwrap_or(0o755) }),
        (None, false, Some(target), None) => Ok(MountEntry::Symlink { target }),
        (None, false, Some(_), Some(_)) => {
            Err(RpcError::params(format!("{name}.mode must be left out: a link has none")))
        }
        _ => Err(RpcError::params(format!("{name} must have one of data, dir and link"))),
    }
}
