//! `filesystem.Filesystem`: a sandbox's files.

use std::time::{Duration, SystemTime};

use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Map, Value, json};
use wardian::{Errno, Error, FileInfo, FileKind, Sandbox};

use super::Asked;
use super::allowance::Allowance;
use super::rpc::{self, RpcFailure, path};
use super::watch;
use crate::methods::date;
use crate::params::text;
use crate::watching::ENTRIES;

/// How many are listed where others wait.
pub(super) const FEW: usize = 256;

pub(super) async fn answer<H: Unpin + Send + 'static>(
    asked: Asked<'_>,
    method: &str,
    headers: &HeaderMap,
    holds: H,
) -> Response {
    if method == "WatchDir" {
        return watch::stream(asked, headers, holds).await;
    }
    rpc::unary(unary(asked, method, headers).await)
}

async fn unary(asked: Asked<'_>, method: &str, headers: &HeaderMap) -> Result<Value, RpcFailure> {
    rpc::as_root(headers)?;
    let Asked { hosted, sandbox, allowance, body } = asked;
    let (sandbox, message) = (&sandbox, rpc::message(allowance, body).await?);
    match method {
        "Stat" => Ok(json!({ "entry": entry(&sandbox.file_info(path(&message, "path")?).await?) })),
        "MakeDir" => make_dir(sandbox, &message).await,
        "Move" => {
            let (from, to) = (path(&message, "source")?, path(&message, "destination")?);
            sandbox.file_info(&from).await?;
            make_parents(sandbox, &to).await?;
            sandbox.rename(&from, &to).await?;
            Ok(json!({ "entry": entry(&sandbox.file_info(&to).await?) }))
        }
        "ListDir" => list(sandbox, allowance, &message).await,
        "Remove" => match sandbox.rm(path(&message, "path")?).await {
            // What is not there need not be removed.
            Err(error) if error.errno() == Some(Errno::ENOENT) => Ok(json!({})),
            other => Ok(other.map(|()| json!({}))?),
        },
        "CreateWatcher" => watch::create(hosted, sandbox, &message).await,
        "GetWatcherEvents" => watch::events(hosted, sandbox, allowance, &message).await,
        "RemoveWatcher" => watch::remove(hosted, &message),
        _ => Err(RpcFailure::new("unimplemented", format!("there is no filesystem.Filesystem/{method}"))),
    }
}

async fn make_dir(sandbox: &Sandbox, message: &Map<String, Value>) -> Result<Value, RpcFailure> {
    let path = path(message, "path")?;
    match sandbox.file_info(&path).await {
        Ok(info) if info.kind == FileKind::Dir => {
            return Err(RpcFailure::new("already_exists", format!("directory already exists: {path}")));
        }
        Ok(_) => {
            return Err(RpcFailure::argument(format!(
                "path already exists but it is not a directory: {path}"
            )));
        }
        Err(error) if error.errno() == Some(Errno::ENOENT) => {}
        Err(error) => return Err(error.into()),
    }
    sandbox.mkdir(&path).await?;
    Ok(json!({ "entry": entry(&sandbox.file_info(&path).await?) }))
}

async fn make_parents(sandbox: &Sandbox, path: &str) -> Result<(), RpcFailure> {
    match path.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => Ok(sandbox.mkdir(parent).await?),
        _ => Ok(()),
    }
}

async fn list(
    sandbox: &Sandbox,
    allowance: &Allowance,
    message: &Map<String, Value>,
) -> Result<Value, RpcFailure> {
    let path = path(message, "path")?;
    let depth = message.get("depth").and_then(Value::as_u64).unwrap_or(1).clamp(1, 4096) as usize;
    let entries = |infos: Vec<FileInfo>| infos.iter().map(entry).collect::<Vec<Value>>();
    let entries = match sandbox.file_infos(&path, depth, FEW).await {
        Err(error) if error.errno() == Some(Errno::EFBIG) => {
            let turn = allowance.turn().await?;
            let infos = infos(sandbox, &path, depth).await?;
            turn.run(move || entries(infos))
                .await
                .map_err(|error| RpcFailure::new("internal", error.message))?
        }
        Err(error) => return Err(unlisted(&path, error)),
        Ok(infos) => entries(infos),
    };
    Ok(json!({ "entries": entries }))
}

/// Lists a directory.
pub(super) async fn infos(sandbox: &Sandbox, path: &str, depth: usize) -> Result<Vec<FileInfo>, RpcFailure> {
    sandbox.file_infos(path, depth, ENTRIES).await.map_err(|error| unlisted(path, error))
}

pub(super) fn unlisted(path: &str, error: Error) -> RpcFailure {
    match error.errno() {
        Some(Errno::ENOTDIR) => RpcFailure::argument(format!("path is not a directory: {path}")),
        Some(Errno::EFBIG) => RpcFailure::new(
            "resource_exhausted",
            format!("{path} has more than {ENTRIES} entries, or more than 8 MiB of paths"),
        ),
        _ => error.into(),
    }
}

/// A file as the SDKs know it.
pub(super) fn entry(info: &FileInfo) -> Value {
    let kind = info.target_kind.unwrap_or(info.kind);
    let mut entry = json!({
        "name": text(info.name()),
        "type": match kind {
            FileKind::Dir => "FILE_TYPE_DIRECTORY",
            FileKind::Symlink => "FILE_TYPE_SYMLINK",
            _ => "FILE_TYPE_FILE",
        },
        "path": text(&info.path),
        "size": info.size.to_string(),
        "mode": info.mode,
        "permissions": permissions(info),
        "owner": owner(info.uid),
        "group": owner(info.gid),
        "modifiedTime": moment(info.mtime),
    });
    if let Some(target) = &info.target {
        entry["symlinkTarget"] = text(target).into();
        entry["isSymlink"] = true.into();
    }
    entry
}

fn owner(id: u32) -> String {
    match id {
        0 => "root".to_owned(),
        1000 => "user".to_owned(),
        id => id.to_string(),
    }
}

/// The time of a number of nanoseconds since 1970.
fn moment(nanos: i64) -> String {
    let since = Duration::from_nanos(u64::try_from(nanos).unwrap_or_default());
    date(SystemTime::UNIX_EPOCH + since)
}

/// Permissions as `ls` shows them, as the SDKs' own server writes them: the kind first.
fn permissions(info: &FileInfo) -> String {
    let kind = match info.kind {
        FileKind::Dir => 'd',
        FileKind::Symlink => 'L',
        _ => '-',
    };
    let bits = "rwxrwxrwx".chars().enumerate();
    let shown = bits.map(|(at, letter)| if info.mode & (0o400 >> at) == 0 { '-' } else { letter });
    std::iter::once(kind).chain(shown).collect()
}
