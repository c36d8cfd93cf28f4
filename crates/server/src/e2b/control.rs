//! The control plane: sandboxes of a key, created, listed, paused, forked and ended.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::Boxes;
use super::allowance::Allowance;
use super::answer::{Object, Refused, empty, json_page, object};
use super::boxes::Kept;
use super::create::{Wanted, seconds, together};
use super::hosted::{Description, Hosted};
use super::query::Query;

/// The longest body of a request.
const BODY: usize = 1 << 20;
/// The templates that exist.
const TEMPLATES: [&str; 2] = ["base", "code-interpreter-v1"];
/// How many sandboxes a page has unless asked otherwise, and at most.
const PAGE: usize = 100;
/// How many forks can be asked for at once.
const FORKS: usize = 100;

type Answered = Result<Response, Refused>;

/// A request with the hash of the key that made it.
pub(super) struct Call<'a> {
    pub(super) boxes: &'a Arc<Boxes>,
    pub(super) key: &'a str,
    pub(super) allowance: &'a Allowance,
    pub(super) headers: &'a HeaderMap,
    pub(super) query: Query,
}

/// Answers a request.
pub(super) async fn answer(call: Call<'_>, method: Method, uri: &Uri, body: Body) -> Answered {
    let path = uri.path();
    // Versions of a path differ in what is optional, which all of them may leave out here.
    let path = ["/v2", "/v3"].iter().find_map(|version| path.strip_prefix(version)).unwrap_or(path);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match (method.as_str(), &parts[..]) {
        ("POST", ["sandboxes"]) => call.create(call.object(body).await?.fields).await,
        ("GET", ["sandboxes"]) => call.list(),
        ("GET", ["sandboxes", "metrics"]) => call.metrics_of_many().await,
        ("GET", ["sandboxes", id]) => Ok(json_page(StatusCode::OK, &call.hosted(id)?.detailed())),
        ("DELETE", ["sandboxes", id]) => call.kill(id).await,
        ("POST", ["sandboxes", id, "timeout"]) => {
            call.set_timeout(id, call.object(body).await?.fields, false)
        }
        ("POST", ["sandboxes", id, "refreshes"]) => {
            call.set_timeout(id, call.object(body).await?.fields, true)
        }
        ("POST", ["sandboxes", id, "pause"]) => call.pause(id, &call.object(body).await?.fields).await,
        ("POST", ["sandboxes", id, "resume" | "connect"]) => {
            call.connect(id, call.object(body).await?.fields).await
        }
        ("POST", ["sandboxes", id, "fork"]) => call.fork(id, call.object(body).await?.fields).await,
        ("POST", ["sandboxes", id, "snapshots"]) => call.snapshot(id, call.object(body).await?.fields).await,
        ("GET", ["sandboxes", id, "metrics"]) => {
            Ok(json_page(StatusCode::OK, &json!([call.hosted(id)?.metric().await])))
        }
        ("GET", ["sandboxes", id, "logs"]) => {
            call.hosted(id)?;
            Ok(json_page(StatusCode::OK, &json!({ "logs": [], "logEntries": [] })))
        }
        ("PUT", ["sandboxes", id, "network"]) => {
            call.hosted(id)?;
            Err(Refused::unsupported("the network of a sandbox is set when it is created"))
        }
        ("GET", ["snapshots"]) => call.snapshots(),
        ("GET", ["templates" | "default-templates"]) => Ok(json_page(StatusCode::OK, &templates())),
        ("DELETE", ["templates", id]) => call.forget(id).await,
        (_, ["templates" | "volumes" | "secrets", ..]) => {
            Err(Refused::unsupported(&format!("{} are not supported", parts[0])))
        }
        _ => Err(Refused::new(StatusCode::NOT_FOUND, "not found")),
    }
}

impl Call<'_> {
    async fn object(&self, body: Body) -> Result<Object, Refused> {
        object(self.allowance, body, BODY).await
    }

    fn hosted(&self, id: &str) -> Result<Arc<Hosted>, Refused> {
        // Older clients add their own name.
        self.boxes.of(self.key, id.split('-').next().unwrap_or(id))
    }

    async fn create(&self, body: Map<String, Value>) -> Answered {
        let wanted = Wanted::read(body, self.headers, self.boxes.shared.network)?;
        if let Some(key) = &wanted.described.idempotency {
            let same = |hosted: &Arc<Hosted>| hosted.described.idempotency.as_ref() == Some(key);
            if let Some(made) = self.boxes.all_of(self.key).into_iter().find(same) {
                return Ok(json_page(StatusCode::CREATED, &made.access()));
            }
        }
        let room = self.boxes.room(self.key, 1).await?.pop();
        let template = wanted.described.template.clone();
        let (sandbox, described) = match self.boxes.kept(self.key, &template) {
            Some(kept) => {
                let env = together(&kept.described.env, &wanted.described.env)?;
                (kept.sandbox.fork().await?, Description { env, ..wanted.described })
            }
            None if TEMPLATES.contains(&template.split(':').next().unwrap_or_default()) => {
                let sandbox = wanted.give(self.boxes.shared.new_builder()).build().await?;
                (sandbox, Description { env: Vec::new(), ..wanted.described })
            }
            None => {
                let shown: String = template.chars().take(64).collect();
                let message =
                    format!("template '{shown}' not found; there are {} and snapshots", TEMPLATES.join(", "));
                return Err(Refused::new(StatusCode::NOT_FOUND, message));
            }
        };
        let room = room.ok_or_else(|| Refused::new(StatusCode::TOO_MANY_REQUESTS, "there is no room"))?;
        let hosted = Hosted::new(self.key, described, sandbox, room, wanted.timeout)?;
        self.boxes.add(&hosted)?;
        Ok(json_page(StatusCode::CREATED, &hosted.access()))
    }

    fn list(&self) -> Answered {
        let wanted = Query::parse(self.query.get("metadata").unwrap_or_default());
        let states: Option<HashSet<&str>> = self.query.get("state").map(|states| states.split(',').collect());
        let template = self.query.get("template");
        let after = self.query.get("startedAfter");
        let fits = |hosted: &Arc<Hosted>| {
            wanted.pairs().all(|(name, value)| {
                hosted.described.metadata.get(name).and_then(Value::as_str) == Some(value)
            }) && states.as_ref().is_none_or(|states| states.contains(hosted.state()))
                && template.is_none_or(|template| hosted.described.template == template)
                // Both are written alike, so they compare as text.
                && after.is_none_or(|after| crate::methods::date(hosted.created).as_str() > after)
        };
        let mut all: Vec<_> = self.boxes.all_of(self.key).into_iter().filter(fits).collect();
        if self.query.get("order") != Some("asc") {
            all.reverse();
        }
        let (page, next) = self.page(&all, |hosted| &hosted.id)?;
        let listed: Vec<Value> = page.iter().map(|hosted| hosted.listed()).collect();
        with_next(json_page(StatusCode::OK, &Value::Array(listed)), next)
    }

    /// Returns the page that is asked for, and the token of the next.
    fn page<'p, T>(
        &self,
        all: &'p [T],
        id: impl Fn(&T) -> &String,
    ) -> Result<(&'p [T], Option<String>), Refused> {
        let limit = match self.query.get("limit") {
            None => PAGE,
            Some(limit) => match limit.parse::<usize>() {
                Ok(limit) if limit > 0 => limit.min(PAGE),
                _ => return Err(Refused::bad("limit must be a number from 1")),
            },
        };
        let start = match self.query.get("nextToken") {
            None => 0,
            // The last of the page before; if it is gone meanwhile, the list starts again.
            Some(token) => all.iter().position(|one| id(one) == token).map_or(0, |at| at + 1),
        };
        let page = &all[start..(start + limit).min(all.len())];
        let next = page.last().filter(|_| start + limit < all.len()).map(|last| id(last).clone());
        Ok((page, next))
    }

    async fn metrics_of_many(&self) -> Answered {
        let ids = self.query.get("sandbox_ids").unwrap_or_default();
        let mut metrics = Map::new();
        for id in ids.split(',').take(PAGE) {
            if let Ok(hosted) = self.hosted(id) {
                metrics.insert(hosted.id.clone(), hosted.metric().await);
            }
        }
        Ok(json_page(StatusCode::OK, &json!({ "sandboxes": metrics })))
    }

    async fn kill(&self, id: &str) -> Answered {
        let hosted = self.hosted(id)?;
        self.boxes.destroy(&hosted).await;
        Ok(empty(StatusCode::NO_CONTENT))
    }

    fn set_timeout(&self, id: &str, mut body: Map<String, Value>, refresh: bool) -> Answered {
        let hosted = self.hosted(id)?;
        let name = if refresh { "duration" } else { "timeout" };
        let timeout = seconds(body.remove(name))?;
        let timeout = match timeout {
            None if refresh => Duration::from_secs(15),
            timeout => timeout.ok_or_else(|| Refused::bad("timeout is missing"))?,
        };
        hosted.live_for(timeout, refresh);
        Ok(empty(StatusCode::NO_CONTENT))
    }

    async fn pause(&self, id: &str, body: &Map<String, Value>) -> Answered {
        let hosted = self.hosted(id)?;
        if body.get("memory") == Some(&Value::Bool(false)) {
            return Err(Refused::bad("a pause always keeps the memory here: see docs/e2b.md"));
        }
        match self.boxes.pause(&hosted).await? {
            true => Ok(empty(StatusCode::NO_CONTENT)),
            false => Err(Refused::new(StatusCode::CONFLICT, "the sandbox is already paused")),
        }
    }

    async fn connect(&self, id: &str, mut body: Map<String, Value>) -> Answered {
        let hosted = self.hosted(id)?;
        if body.get("memory") == Some(&Value::Bool(false)) {
            return Err(Refused::bad("a sandbox cannot be rebooted here: see docs/e2b.md"));
        }
        let timeout = seconds(body.remove("timeout"))?;
        let resumed = self.boxes.resume(&hosted).await?;
        if let Some(timeout) = timeout {
            hosted.live_for(timeout, !resumed);
        }
        let status = if resumed { StatusCode::CREATED } else { StatusCode::OK };
        let mut access = hosted.access();
        let lost = std::mem::take(&mut *hosted.lost.lock());
        if !lost.is_empty() {
            access["lostProcesses"] = lost.into();
        }
        Ok(json_page(status, &access))
    }

    async fn fork(&self, id: &str, mut body: Map<String, Value>) -> Answered {
        let hosted = self.hosted(id)?;
        let timeout = seconds(body.remove("timeout"))?.unwrap_or(Duration::from_secs(15));
        let count = match body.remove("count") {
            None | Some(Value::Null) => 1,
            Some(count) => match count.as_u64().and_then(|count| usize::try_from(count).ok()) {
                Some(count) if (1..=FORKS).contains(&count) => count,
                _ => return Err(Refused::bad(format!("count must be from 1 to {FORKS}"))),
            },
        };
        let sandbox = self.boxes.running(&hosted).await?;
        let rooms = self.boxes.room(self.key, count).await?;
        let forks = sandbox.fork_many(count).await?;
        let mut made = Vec::with_capacity(count);
        for (fork, room) in forks.into_iter().zip(rooms) {
            let described = Description { idempotency: None, ..hosted.described.clone() };
            let fork = Hosted::new(self.key, described, fork, room, timeout)?;
            fork.contexts.copy_from(&hosted.contexts);
            self.boxes.add(&fork)?;
            made.push(json!({ "sandbox": fork.access() }));
        }
        Ok(json_page(StatusCode::CREATED, &Value::Array(made)))
    }

    async fn snapshot(&self, id: &str, mut body: Map<String, Value>) -> Answered {
        let hosted = self.hosted(id)?;
        if body.get("memory") == Some(&Value::Bool(false)) {
            return Err(Refused::bad(
                "a snapshot always has the memory of resident programs: see docs/e2b.md",
            ));
        }
        let names = match body.remove("name") {
            Some(Value::String(name)) if name.len() <= 128 => vec![name],
            None | Some(Value::Null) => Vec::new(),
            Some(_) => return Err(Refused::bad("name must be a string of at most 128 bytes")),
        };
        let sandbox = self.boxes.running(&hosted).await?;
        let room = self.boxes.room(self.key, 1).await?.pop();
        let _room = room.ok_or_else(|| Refused::new(StatusCode::TOO_MANY_REQUESTS, "there is no room"))?;
        let fork = sandbox.fork().await?;
        let kept = Kept {
            id: format!("s{}", fork.id()),
            key: self.key.to_owned(),
            names,
            origin: hosted.id.clone(),
            described: hosted.described.clone(),
            sandbox: fork,
            _room,
        };
        Ok(json_page(StatusCode::CREATED, &self.boxes.keep(kept)?))
    }

    fn snapshots(&self) -> Answered {
        let (origin, name) = (self.query.get("sandboxID"), self.query.get("name"));
        let mut all = self.boxes.all_kept(self.key);
        all.retain(|kept| {
            origin.is_none_or(|origin| kept.origin == origin)
                && name.is_none_or(|name| kept.names.iter().any(|other| other == name))
        });
        let (page, next) = self.page(&all, |kept| &kept.id)?;
        let listed: Vec<Value> = page.iter().map(|kept| kept.shown()).collect();
        with_next(json_page(StatusCode::OK, &Value::Array(listed)), next)
    }

    /// Snapshots are removed like the templates they are.
    async fn forget(&self, id: &str) -> Answered {
        let missing = || Refused::new(StatusCode::NOT_FOUND, "snapshot not found");
        let kept = self.boxes.kept(self.key, id).ok_or_else(missing)?;
        self.boxes.forget_kept(&kept);
        kept.sandbox.destroy().await;
        Ok(empty(StatusCode::NO_CONTENT))
    }
}

fn with_next(mut response: Response, next: Option<String>) -> Answered {
    if let Some(next) = next.and_then(|next| HeaderValue::from_str(&next).ok()) {
        response.headers_mut().insert("x-next-token", next);
    }
    Ok(response)
}

fn templates() -> Value {
    let since = crate::methods::date(SystemTime::UNIX_EPOCH);
    let one = |name: &&str| {
        json!({
            "templateID": name, "aliases": [name], "names": [name], "public": true, "buildID": "", "buildStatus": "ready",
            "cpuCount": 1, "memoryMB": 1024, "diskSizeMB": 256, "createdAt": since, "updatedAt": since,
            "lastSpawnedAt": null, "spawnCount": 0, "buildCount": 1, "createdBy": null, "envdVersion": super::hosted::ENVD,
        })
    };
    TEMPLATES.iter().map(one).collect()
}
