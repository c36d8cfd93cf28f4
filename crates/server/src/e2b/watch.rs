//! Watching a directory. What changed is found by looking again and comparing, so a change that is undone in between is not seen.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use wardian::{FileInfo, FileKind, HeldMemory, Sandbox};

use super::Asked;
use super::allowance::Allowance;
use super::filesystem::{self, FEW};
use super::hosted::Hosted;
use super::rpc::{self, RpcFailure, path, text};
use super::stream::{Pieces, streamed};

/// How many watchers a sandbox may have, and how many streams.
const WATCHERS: usize = 64;
/// How often a stream looks.
const PAUSE: Duration = Duration::from_millis(200);

/// The most of the time that all watchers of a sandbox together look: one part in so many and one.
const RESTS: u32 = 4;
/// The longest that one look keeps the others waiting.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// The watchers of a sandbox, by id.
#[derive(Default)]
pub(super) struct Watchers {
    table: Mutex<(u64, BTreeMap<String, Arc<Watcher>>)>,
    streams: Arc<()>,
    pace: Arc<Pace>,
}

/// When the next of a sandbox's watchers may look: they do it one after the other.
#[derive(Default)]
struct Pace(tokio::sync::Mutex<Option<Instant>>);

struct Watcher {
    path: String,
    depth: usize,
    pace: Arc<Pace>,
    seen: tokio::sync::Mutex<Arc<Seen>>,
}

/// What a look found. The sandbox is charged for it.
struct Seen {
    files: Files,
    _held: HeldMemory,
}

type Files = BTreeMap<Box<[u8]>, Mark>;

/// What of a file is compared.
#[derive(Clone, Copy)]
struct Mark {
    inode: (u64, u64),
    mtime: i64,
    size: u64,
    mode: u32,
    kind: FileKind,
}

/// What a file takes beside its path: a mark, its share of the map, and of the sets of inodes while two looks are compared.
const EACH: usize = 192;

impl Seen {
    fn new(sandbox: &Sandbox, infos: Vec<FileInfo>) -> Result<Arc<Seen>, RpcFailure> {
        let bytes = infos.iter().map(|info| info.path.len() + EACH).sum();
        let _held = sandbox.hold_memory(bytes)?;
        let mark = |info: FileInfo| {
            let FileInfo { path, kind, size, mode, mtime, inode, .. } = info;
            (path.into_boxed_slice(), Mark { inode, mtime, size, mode, kind })
        };
        Ok(Arc::new(Seen { files: infos.into_iter().map(mark).collect(), _held }))
    }
}

impl Pace {
    async fn look(&self, sandbox: &Sandbox, path: &str, depth: usize) -> Result<Arc<Seen>, RpcFailure> {
        let mut next = self.0.lock().await;
        if let Some(next) = *next {
            tokio::time::sleep_until(next).await;
        }
        let since = Instant::now();
        let infos = filesystem::infos(sandbox, path, depth).await;
        let seen = infos.and_then(|infos| Seen::new(sandbox, infos));
        let now = Instant::now();
        *next = Some(now + ((now - since) * RESTS).min(LONGEST_REST));
        seen
    }
}

impl Watcher {
    async fn read(
        sandbox: &Sandbox,
        watchers: &Watchers,
        message: &Map<String, Value>,
    ) -> Result<Watcher, RpcFailure> {
        let path = path(message, "path")?;
        for name in ["includeEntry", "allowNetworkMounts"] {
            if message.get(name) == Some(&Value::Bool(true)) {
                return Err(RpcFailure::new("unimplemented", format!("{name} is not supported")));
            }
        }
        let recursive = message.get("recursive").and_then(Value::as_bool).unwrap_or(false);
        let depth = if recursive { 4096 } else { 1 };
        let pace = watchers.pace.clone();
        let seen = tokio::sync::Mutex::new(pace.look(sandbox, &path, depth).await?);
        Ok(Watcher { path, depth, pace, seen })
    }

    /// How much of a path is not shown.
    fn prefix(&self) -> usize {
        self.path.trim_end_matches('/').len() + 1
    }

    /// Returns what has changed since it last looked, as JSON.
    async fn changes(&self, sandbox: &Sandbox, allowance: &Allowance) -> Result<Vec<Value>, RpcFailure> {
        let mut seen = self.seen.lock().await;
        let now = self.pace.look(sandbox, &self.path, self.depth).await?;
        let (before, prefix) = (std::mem::replace(&mut *seen, now.clone()), self.prefix());
        let shown = move || compare(&before.files, &now.files).map(|event| event.shown(prefix)).collect();
        if seen.files.len() <= FEW {
            return Ok(shown());
        }
        let shown = allowance.turn().await?.run(shown).await;
        shown.map_err(|error| RpcFailure::new("internal", error.message))
    }
}

/// Something that happened to a file.
struct Event<'s> {
    path: &'s [u8],
    kind: &'static str,
}

impl Event<'_> {
    fn shown(&self, prefix: usize) -> Value {
        let name = crate::params::text(self.path.get(prefix..).unwrap_or(self.path));
        json!({ "name": name, "type": format!("EVENT_TYPE_{}", self.kind) })
    }
}

/// The events between two looks: first of files that were there, then of those that are, each in the order of their paths.
fn compare<'s>(before: &'s Files, now: &'s Files) -> impl Iterator<Item = Event<'s>> {
    let inodes = |files: &Files| files.values().map(|mark| mark.inode).collect::<HashSet<(u64, u64)>>();
    let (known, inodes) = (inodes(before), inodes(now));
    let gone = before.iter().filter_map(move |(path, old)| {
        let kind = match now.get(path) {
            Some(new) if new.inode == old.inode => return None,
            _ if inodes.contains(&old.inode) => "RENAME",
            _ => "REMOVE",
        };
        Some(Event { path, kind })
    });
    let there = now.iter().flat_map(move |(path, new)| {
        let kinds = match before.get(path) {
            Some(old) if old.inode == new.inode => {
                let wrote = (old.mtime, old.size) != (new.mtime, new.size) && new.kind != FileKind::Dir;
                [wrote.then_some("WRITE"), (old.mode != new.mode).then_some("CHMOD")]
            }
            _ => {
                let has_content = new.kind == FileKind::File && new.size > 0;
                [Some("CREATE"), (has_content && !known.contains(&new.inode)).then_some("WRITE")]
            }
        };
        kinds.into_iter().flatten().map(move |kind| Event { path, kind })
    });
    gone.chain(there)
}

pub(super) async fn create(
    hosted: &Hosted,
    sandbox: &Sandbox,
    message: &Map<String, Value>,
) -> Result<Value, RpcFailure> {
    let watcher = Arc::new(Watcher::read(sandbox, &hosted.watchers, message).await?);
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
    allowance: &Allowance,
    message: &Map<String, Value>,
) -> Result<Value, RpcFailure> {
    let id = text(message, "watcherId").unwrap_or_default();
    let watcher = hosted.watchers.table.lock().1.get(id).cloned();
    let watcher = watcher.ok_or_else(|| RpcFailure::missing("watcher not found"))?;
    Ok(json!({ "events": watcher.changes(sandbox, allowance).await? }))
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
        Watcher::read(&sandbox, &hosted.watchers, &message).await
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
    async fn tell(
        mut self,
        sandbox: Sandbox,
        pieces: Pieces,
        timeout: Option<Duration>,
        keepalive: Duration,
    ) {
        if !rpc::send(&pieces, &json!({ "start": {} })).await {
            return;
        }
        let prefix = self.prefix();
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
            let now = match self.pace.look(&sandbox, &self.path, self.depth).await {
                Ok(now) => now,
                // The directory itself is gone: nothing more will happen in it.
                Err(failure) if failure.code == "not_found" => return rpc::finish(&pieces, None).await,
                Err(failure) => return rpc::finish(&pieces, Some(&failure)).await,
            };
            let before = std::mem::replace(self.seen.get_mut(), now.clone());
            if Instant::now() >= alive {
                alive = Instant::now() + keepalive;
                if !rpc::send(&pieces, &json!({ "keepalive": {} })).await {
                    return;
                }
            }
            // One at a time: a client that does not read has no more of them waiting.
            for event in compare(&before.files, &now.files) {
                if !rpc::send(&pieces, &json!({ "filesystem": event.shown(prefix) })).await {
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
    fn files(letter: char, count: u64, inode: u64) -> Files {
        let file = |number: u64| {
            let (kind, inode) = (FileKind::File, (0, inode + number));
            let mark = Mark { inode, mtime: 1, size: 7, mode: 0o644, kind };
            (format!("/w/{letter}{number}").into_bytes().into_boxed_slice(), mark)
        };
        (0..count).map(file).collect()
    }

    fn kinds(before: &Files, now: &Files) -> Vec<String> {
        let shown = |event: Event| {
            let event = event.shown(3);
            format!("{} {}", event["name"].as_str().unwrap(), event["type"].as_str().unwrap())
        };
        compare(before, now).map(shown).collect()
    }

    #[tokio::test]
    async fn what_a_watcher_remembers_is_charged_and_refused_if_it_does_not_fit() {
        let limits = wardian::Limits { memory_bytes: 4 << 20, ..wardian::Limits::default() };
        let sandbox = Sandbox::builder().limits(limits).build().await.unwrap();
        let like = sandbox.file_info("/tmp").await.unwrap();
        let infos = |count: usize| {
            let named = |number| {
                let mut info = like.clone();
                info.path = format!("/tmp/{number:0250}").into_bytes();
                info
            };
            (0..count).map(named).collect::<Vec<_>>()
        };
        let before = sandbox.usage_now().memory_bytes;
        let seen = Seen::new(&sandbox, infos(4000)).unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!(sandbox.usage_now().memory_bytes, before + 4000 * (255 + EACH as u64));
        let refused = Seen::new(&sandbox, infos(9000)).err().expect("it does not fit");
        assert_eq!(refused.code, "resource_exhausted");
        drop(seen);
        assert_eq!(sandbox.usage_now().memory_bytes, before);
    }

    #[test]
    fn a_file_that_was_known_by_another_name_is_not_a_new_one() {
        let (old, new) = (files('a', 1, 7), files('b', 1, 7));
        assert_eq!(kinds(&old, &new), ["a0 EVENT_TYPE_RENAME", "b0 EVENT_TYPE_CREATE"]);
        let other = files('b', 1, 8);
        assert_eq!(
            kinds(&old, &other),
            ["a0 EVENT_TYPE_REMOVE", "b0 EVENT_TYPE_CREATE", "b0 EVENT_TYPE_WRITE"]
        );
    }

    #[test]
    fn comparing_takes_as_long_as_there_are_files_not_as_their_square() {
        let (done, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (before, now) = (files('a', 500_000, 0), files('b', 500_000, 1_000_000));
            let _ = done.send(compare(&before, &now).count());
        });
        // The square would take many times as long.
        let events = wait.recv_timeout(Duration::from_secs(60));
        assert_eq!(events, Ok(1_500_000));
    }
}
