//! Watching a directory. What changed is found by looking again and comparing, so a change that is undone in between is not seen.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use wardian::{Errno, FileInfo, FileKind, Sandbox};

use super::Asked;
use super::filesystem::ENTRIES;
use super::hosted::Hosted;
use super::rpc::{self, RpcFailure, path, text};
use super::stream::{Pieces, streamed};

/// How many watchers a sandbox may have, and how many streams.
const WATCHERS: usize = 64;
/// How often a stream looks.
const PAUSE: Duration = Duration::from_millis(200);

/// The watchers of a sandbox, by id.
#[derive(Default)]
pub(super) struct Watchers {
    table: Mutex<(u64, BTreeMap<String, Arc<Watcher>>)>,
    streams: Arc<()>,
}

struct Watcher {
    path: String,
    depth: usize,
    seen: tokio::sync::Mutex<Seen>,
}

type Seen = BTreeMap<Vec<u8>, FileInfo>;

async fn look(sandbox: &Sandbox, path: &str, depth: usize) -> Result<Seen, RpcFailure> {
    let infos = sandbox.file_infos(path, depth, ENTRIES).await.map_err(|error| match error.errno() {
        Some(Errno::ENOTDIR) => RpcFailure::argument(format!("path is not a directory: {path}")),
        Some(Errno::EFBIG) => {
            RpcFailure::new("resource_exhausted", format!("{path} has more than {ENTRIES} entries"))
        }
        _ => error.into(),
    })?;
    Ok(infos.into_iter().map(|info| (info.path.clone(), info)).collect())
}

impl Watcher {
    async fn read(sandbox: &Sandbox, message: &Map<String, Value>) -> Result<Watcher, RpcFailure> {
        let path = path(message, "path")?;
        for name in ["includeEntry", "allowNetworkMounts"] {
            if message.get(name) == Some(&Value::Bool(true)) {
                return Err(RpcFailure::new("unimplemented", format!("{name} is not supported")));
            }
        }
        let recursive = message.get("recursive").and_then(Value::as_bool).unwrap_or(false);
        let depth = if recursive { 4096 } else { 1 };
        let seen = tokio::sync::Mutex::new(look(sandbox, &path, depth).await?);
        Ok(Watcher { path, depth, seen })
    }

    /// Returns what has changed since it last looked.
    async fn changes(&self, sandbox: &Sandbox) -> Result<Vec<Value>, RpcFailure> {
        let mut seen = self.seen.lock().await;
        let now = look(sandbox, &self.path, self.depth).await?;
        let events = compare(&seen, &now, self.path.trim_end_matches('/').len() + 1);
        *seen = now;
        Ok(events)
    }
}

/// The events between two looks, in the order of paths. `prefix` is how much of a path is not shown.
fn compare(before: &Seen, now: &Seen, prefix: usize) -> Vec<Value> {
    let mut events = Vec::new();
    let mut event = |path: &[u8], kind: &str| {
        let name = crate::params::text(path.get(prefix..).unwrap_or(path));
        events.push(json!({ "name": name, "type": format!("EVENT_TYPE_{kind}") }));
    };
    let inodes = |seen: &Seen| seen.values().map(|info| info.inode).collect::<HashSet<(u64, u64)>>();
    let (known, inodes) = (inodes(before), inodes(now));
    for (path, old) in before {
        match now.get(path) {
            Some(new) if new.inode == old.inode => {}
            _ if inodes.contains(&old.inode) => event(path, "RENAME"),
            _ => event(path, "REMOVE"),
        }
    }
    for (path, new) in now {
        match before.get(path) {
            Some(old) if old.inode == new.inode => {
                let wrote = (old.mtime, old.size) != (new.mtime, new.size) && new.kind != FileKind::Dir;
                if wrote {
                    event(path, "WRITE");
                }
                if old.mode != new.mode {
                    event(path, "CHMOD");
                }
            }
            _ => {
                event(path, "CREATE");
                if new.kind == FileKind::File && new.size > 0 && !known.contains(&new.inode) {
                    event(path, "WRITE");
                }
            }
        }
    }
    events
}

pub(super) async fn create(
    hosted: &Hosted,
    sandbox: &Sandbox,
    message: &Map<String, Value>,
) -> Result<Value, RpcFailure> {
    let watcher = Arc::new(Watcher::read(sandbox, message).await?);
    let mut table = hosted.watchers.table.lock();
    if table.1.len() >= WATCHERS {
        return Err(RpcFailure::new("resource_exhausted", format!("a sandbox may have {WATCHERS} watchers")));
    }
    table.0 += 1;
    let id = format!("w{}", table.0);
    table.1.insert(id.clone(), watcher);
    Ok(json!({ "watcherId": id }))
}

pub(super) async fn events(
    hosted: &Hosted,
    sandbox: &Sandbox,
    message: &Map<String, Value>,
) -> Result<Value, RpcFailure> {
    let id = text(message, "watcherId").unwrap_or_default();
    let watcher = hosted.watchers.table.lock().1.get(id).cloned();
    let watcher = watcher.ok_or_else(|| RpcFailure::missing("watcher not found"))?;
    Ok(json!({ "events": watcher.changes(sandbox).await? }))
}

pub(super) fn remove(hosted: &Hosted, message: &Map<String, Value>) -> Result<Value, RpcFailure> {
    let id = text(message, "watcherId").unwrap_or_default();
    let removed = hosted.watchers.table.lock().1.remove(id);
    removed.map(|_| json!({})).ok_or_else(|| RpcFailure::missing("watcher not found"))
}

pub(super) async fn stream<H: Unpin + Send + 'static>(
    asked: Asked<'_>,
    headers: &HeaderMap,
    holds: H,
) -> Response {
    let Asked { hosted, sandbox, allowance, body } = asked;
    let place = hosted.watchers.streams.clone();
    let opened = async {
        rpc::as_root(headers)?;
        // The table's own is one.
        if Arc::strong_count(&place) > WATCHERS + 1 {
            return Err(RpcFailure::new(
                "resource_exhausted",
                format!("a sandbox may have {WATCHERS} watchers"),
            ));
        }
        let message = rpc::first_frame(allowance, body).await?;
        Watcher::read(&sandbox, &message).await
    };
    match opened.await {
        Err(failure) => rpc::failed_stream(&failure),
        Ok(watcher) => {
            let (pieces, body) = streamed((holds, place));
            let (timeout, keepalive) = (rpc::timeout(headers), rpc::keepalive(headers));
            tokio::spawn(watcher.tell(sandbox, pieces, timeout, keepalive));
            rpc::stream(body)
        }
    }
}

impl Watcher {
    async fn tell(self, sandbox: Sandbox, pieces: Pieces, timeout: Option<Duration>, keepalive: Duration) {
        if !rpc::send(&pieces, &json!({ "start": {} })).await {
            return;
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut alive = Instant::now() + keepalive;
        loop {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let late = RpcFailure::new("deadline_exceeded", "the timeout has passed");
                return rpc::finish(&pieces, Some(&late)).await;
            }
            tokio::select! {
                () = pieces.closed() => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
            let events = match self.changes(&sandbox).await {
                Ok(events) => events,
                // The directory itself is gone: nothing more will happen in it.
                Err(failure) if failure.code == "not_found" => return rpc::finish(&pieces, None).await,
                Err(failure) => return rpc::finish(&pieces, Some(&failure)).await,
            };
            if Instant::now() >= alive {
                alive = Instant::now() + keepalive;
                if !rpc::send(&pieces, &json!({ "keepalive": {} })).await {
                    return;
                }
            }
            for event in events {
                if !rpc::send(&pieces, &json!({ "filesystem": event })).await {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many files: their paths begin with a letter, and their inodes with a number.
    fn files(like: &FileInfo, letter: char, count: u64, inode: u64) -> Seen {
        let file = |number: u64| {
            let mut info = like.clone();
            (info.path, info.inode) = (format!("/w/{letter}{number}").into_bytes(), (0, inode + number));
            (info.path.clone(), info)
        };
        (0..count).map(file).collect()
    }

    async fn a_file() -> FileInfo {
        let sandbox = Sandbox::builder().build().await.unwrap();
        sandbox.write_file("/tmp/a", "content").await.unwrap();
        sandbox.file_info("/tmp/a").await.unwrap()
    }

    fn kinds(before: &Seen, now: &Seen) -> Vec<String> {
        let shown = |event: &Value| {
            format!("{} {}", event["name"].as_str().unwrap(), event["type"].as_str().unwrap())
        };
        compare(before, now, 3).iter().map(shown).collect()
    }

    #[tokio::test]
    async fn a_file_that_was_known_by_another_name_is_not_a_new_one() {
        let like = a_file().await;
        let (old, new) = (files(&like, 'a', 1, 7), files(&like, 'b', 1, 7));
        assert_eq!(kinds(&old, &new), ["a0 EVENT_TYPE_RENAME", "b0 EVENT_TYPE_CREATE"]);
        let other = files(&like, 'b', 1, 8);
        assert_eq!(
            kinds(&old, &other),
            ["a0 EVENT_TYPE_REMOVE", "b0 EVENT_TYPE_CREATE", "b0 EVENT_TYPE_WRITE"]
        );
    }

    #[tokio::test]
    async fn comparing_takes_as_long_as_there_are_files_not_as_their_square() {
        let like = a_file().await;
        let (done, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (before, now) = (files(&like, 'a', 500_000, 0), files(&like, 'b', 500_000, 1_000_000));
            let _ = done.send(compare(&before, &now, 3).len());
        });
        // The square would take many times as long.
        let events = wait.recv_timeout(Duration::from_secs(60));
        assert_eq!(events, Ok(1_500_000));
    }
}
