//! `mount` and what `create` mounts: files given as bytes, with directories and links, and directories of this machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use wardian::{MountEntry, MountMode};
use wardian_contract::kinds::{MountEntry as Described, MountFile};
use wardian_contract::params::{HostMode, HostMount, MountFiles};

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

/// The most directories of this machine that a sandbox is created with: each holds a descriptor.
const HOST_MOUNTS: usize = 16;

/// A directory of this machine to mount.
pub(super) struct Host {
    pub(super) host: String,
    pub(super) path: String,
    pub(super) mode: MountMode,
}

/// Returns the directories of this machine to mount. Whether each of them may be is decided where it is opened, by
/// [`wardian::HostRoots`].
pub(super) fn hosts(session: &Session, wanted: Vec<HostMount>) -> Result<Vec<Host>, RpcError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    if session.roots().is_empty() {
        return Err(RpcError::params(
            "hostMounts: this server lets its client mount no directories (wardian serve --allow-mount)",
        ));
    }
    if wanted.len() > HOST_MOUNTS {
        return Err(RpcError::params(format!("hostMounts must have at most {HOST_MOUNTS} directories")));
    }
    let host = |HostMount { host, path, mode }| {
        let mode = match mode.unwrap_or(HostMode::Ro) {
            HostMode::Ro => MountMode::ReadOnly,
            HostMode::Rw => MountMode::ReadWrite,
            HostMode::Overlay => MountMode::Overlay,
        };
        Host { host, path, mode }
    };
    Ok(wanted.into_iter().map(host).collect())
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
