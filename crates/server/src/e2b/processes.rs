//! `process.Process`: programs that run on their own, and those who listen to them.
//!
//! A process belongs to its sandbox, not to the stream that started it: every connected client gets what it writes from then on, and
//! while nobody is, what it writes is dropped. A listener that reads slowly makes it wait.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use wardian::{Process, ProcessEnd, ProcessOptions, ProcessOutput};

use super::Asked;
use super::allowance::{Allowance, Keeping};
use super::hosted::Hosted;
use super::rpc::{self, RpcFailure, at_home, text};
use super::stream::{Pieces, streamed};
use crate::params::{decode, encode};

/// How many may listen to one process.
const LISTENERS: usize = 32;
/// How many pieces may wait for one of them.
const PIECES: usize = 4;
/// How long a process may outlive its stream's timeout.
const GRACE: Duration = Duration::from_millis(100);
/// How many bytes the variables of a process may have, names included, and how many its tag.
const ENVS: usize = 128 << 10;
const TAG: usize = 256;
/// The most rows and columns of a terminal.
const SCREEN: u64 = 4096;

/// A process that runs.
pub(super) struct Running {
    process: Process,
    /// What it was started with, and room for that.
    config: Value,
    _keeping: Keeping,
    tag: Option<String>,
    /// Nobody any more once it has ended.
    listeners: Mutex<Option<Vec<mpsc::Sender<Arc<Heard>>>>>,
}

impl Running {
    /// Returns what it was started with, as text.
    pub(super) fn command(&self) -> String {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let args = self.config["args"].as_array().into_iter().flatten().map(text);
        std::iter::once(text(&self.config["cmd"])).chain(args).collect::<Vec<_>>().join(" ")
    }
}

enum Heard {
    Output(Value),
    End(Value),
}

/// Answers a call; `holds` is what a stream keeps until it is over.
pub(super) async fn answer<H: Unpin + Send + 'static>(
    asked: Asked<'_>,
    method: &str,
    headers: &HeaderMap,
    holds: H,
) -> Response {
    match method {
        "Start" | "Connect" => {
            let opened = match method {
                "Start" => start(asked, headers).await,
                _ => connect(asked).await,
            };
            match opened {
                Ok(opened) => opened.stream(headers, method == "Start", holds),
                Err(failure) => rpc::failed_stream(&failure),
            }
        }
        "StreamInput" => stream_input(asked).await,
        _ => rpc::unary(unary(asked, method).await),
    }
}

async fn unary(asked: Asked<'_>, method: &str) -> Result<Value, RpcFailure> {
    let Asked { hosted, allowance, body, .. } = asked;
    let message = rpc::message(allowance, body).await?;
    match method {
        "List" => {
            let running: Vec<_> = hosted.processes.lock().values().cloned().collect();
            let listed: Vec<Value> = running.iter().map(|running| running.listed()).collect();
            return Ok(json!({ "processes": listed }));
        }
        "SendInput" | "SendSignal" | "CloseStdin" | "Update" => {}
        _ => return Err(RpcFailure::new("unimplemented", format!("there is no process.Process/{method}"))),
    }
    let running = selected(hosted, message.get("process"))?;
    match method {
        "SendInput" => {
            let data = input(message.get("input"))?;
            drop(message);
            running.take_input(&data, allowance).await?;
        }
        "SendSignal" => running.process.signal(signal(message.get("signal"))?)?,
        "CloseStdin" => running.process.close_stdin().await?,
        _ => {
            let (rows, columns) = size(message.get("pty"))?;
            running.process.resize(rows, columns)?;
        }
    }
    Ok(json!({}))
}

/// Returns the process that a selector names.
fn selected(hosted: &Hosted, selector: Option<&Value>) -> Result<Arc<Running>, RpcFailure> {
    let selector = selector.and_then(Value::as_object);
    let wrong = || RpcFailure::argument("process must name a pid or a tag");
    let selector = selector.ok_or_else(wrong)?;
    let processes = hosted.processes.lock();
    let found = if let Some(tag) = text(selector, "tag") {
        processes.values().find(|running| running.tag.as_deref() == Some(tag))
    } else {
        let pid = selector.get("pid").and_then(Value::as_u64).ok_or_else(wrong)?;
        u32::try_from(pid).ok().and_then(|pid| processes.get(&pid))
    };
    found
        .cloned()
        .ok_or_else(|| RpcFailure::missing(format!("process {} not found", Value::Object(selector.clone()))))
}

fn input(value: Option<&Value>) -> Result<Vec<u8>, RpcFailure> {
    let data =
        value.and_then(|input| input.get("stdin").or_else(|| input.get("pty"))).and_then(Value::as_str);
    data.and_then(decode).ok_or_else(|| RpcFailure::argument("input must have stdin or pty, in base64"))
}

fn signal(value: Option<&Value>) -> Result<u8, RpcFailure> {
    match value {
        Some(Value::String(name)) if name == "SIGNAL_SIGTERM" => Ok(15),
        Some(Value::String(name)) if name == "SIGNAL_SIGKILL" => Ok(9),
        Some(Value::Number(number)) if number.as_u64() == Some(15) => Ok(15),
        Some(Value::Number(number)) if number.as_u64() == Some(9) => Ok(9),
        _ => Err(RpcFailure::argument("signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL")),
    }
}

fn size(pty: Option<&Value>) -> Result<(u16, u16), RpcFailure> {
    let size = pty.and_then(|pty| pty.get("size"));
    let side = |name: &str| {
        let given = size.and_then(|size| size.get(name)).and_then(Value::as_u64);
        given.filter(|side| (1..=SCREEN).contains(side)).and_then(|side| u16::try_from(side).ok())
    };
    let wrong = || RpcFailure::argument(format!("pty.size must have rows and cols from 1 to {SCREEN}"));
    Ok((side("rows").ok_or_else(wrong)?, side("cols").ok_or_else(wrong)?))
}

/// A process, and the receiver of the stream that answers.
struct Opened {
    running: Arc<Running>,
    heard: mpsc::Receiver<Arc<Heard>>,
}

/// What a client wants to be started.
struct Wanted {
    options: ProcessOptions,
    cwd: String,
    tag: Option<String>,
    /// What is told of it, and how many bytes that has.
    config: Value,
    bytes: usize,
}

impl Wanted {
    fn read(message: &Map<String, Value>, hosted: &Hosted, limit: usize) -> Result<Wanted, RpcFailure> {
        let none = Map::new();
        let config = message.get("process").and_then(Value::as_object).unwrap_or(&none);
        let wrong = |what: &str| RpcFailure::argument(format!("process.{what}"));
        let mut argv = vec![text(config, "cmd").ok_or_else(|| wrong("cmd is missing"))?.to_owned()];
        for arg in config.get("args").and_then(Value::as_array).into_iter().flatten() {
            argv.push(arg.as_str().ok_or_else(|| wrong("args must be strings"))?.to_owned());
        }
        let command: usize = argv.iter().map(String::len).sum();
        if command > limit {
            return Err(RpcFailure::argument(format!("the command is too long: limit {limit}")));
        }
        let mut options = ProcessOptions::program(argv);
        for (name, value) in &hosted.described.env {
            options = options.env(name, value);
        }
        let mut envs = 0;
        for (name, value) in config.get("envs").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().ok_or_else(|| wrong("envs must be strings"))?;
            envs += name.len() + value.len();
            options = options.env(name, value);
        }
        if envs > ENVS {
            return Err(wrong(&format!("envs may have {ENVS} bytes, and has {envs}")));
        }
        let tag = text(message, "tag").map(str::to_owned);
        if tag.as_ref().is_some_and(|tag| tag.len() > TAG) {
            return Err(RpcFailure::argument(format!("tag may have {TAG} bytes")));
        }
        options = match message.get("pty") {
            Some(pty) if !pty.is_null() => {
                let (rows, columns) = size(Some(pty))?;
                options.pty(rows, columns)
            }
            // Clients that do not say want one.
            _ => options.stdin(message.get("stdin").and_then(Value::as_bool).unwrap_or(true)),
        };
        let cwd = at_home(text(config, "cwd").unwrap_or_default());
        let told = ["cmd", "args", "envs", "cwd"].into_iter();
        let told = told.filter_map(|name| Some((name.to_owned(), config.get(name)?.clone())));
        let bytes = command + envs + cwd.len() + TAG;
        Ok(Wanted { options, cwd, tag, config: Value::Object(told.collect()), bytes })
    }
}

async fn start(asked: Asked<'_>, headers: &HeaderMap) -> Result<Opened, RpcFailure> {
    let Asked { hosted, sandbox, allowance, body } = asked;
    let root = rpc::as_root(headers)?;
    let message = rpc::first_frame(allowance, body).await?;
    let wanted = Wanted::read(&message, hosted, sandbox.limits().command_bytes)?;
    drop(message);
    let _keeping = allowance.keep(wanted.bytes).ok_or_else(RpcFailure::no_room)?;
    let cwd = wanted.cwd;
    if sandbox.file_infos(&cwd, 0, 0).await.is_err_and(|error| error.errno() != Some(wardian::Errno::EFBIG)) {
        let shown: String = cwd.chars().take(4096).collect();
        return Err(RpcFailure::argument(format!("cwd '{shown}' does not exist")));
    }
    // A client that has waited so long goes away by itself: the process must end without it. Just after the stream, which says why.
    let timeout = rpc::timeout(headers).map(|timeout| timeout + GRACE);
    let process = sandbox.start_process(wanted.options.root(root).cwd(cwd).timeout(timeout)).await?;
    let (listener, heard) = mpsc::channel(PIECES);
    let running = Arc::new(Running {
        process,
        config: wanted.config,
        _keeping,
        tag: wanted.tag,
        listeners: Mutex::new(Some(vec![listener])),
    });
    hosted.processes.lock().insert(running.process.pid(), running.clone());
    tokio::spawn(running.clone().pass_on(hosted.clone()));
    Ok(Opened { running, heard })
}

async fn connect(asked: Asked<'_>) -> Result<Opened, RpcFailure> {
    let Asked { hosted, allowance, body, .. } = asked;
    let message = rpc::first_frame(allowance, body).await?;
    let running = selected(hosted, message.get("process"))?;
    let (listener, heard) = mpsc::channel(PIECES);
    match &mut *running.listeners.lock() {
        Some(listeners) if listeners.len() < LISTENERS => listeners.push(listener),
        Some(_) => {
            let message = format!("a process may have {LISTENERS} listeners");
            return Err(RpcFailure::new("resource_exhausted", message));
        }
        None => return Err(RpcFailure::missing("the process has ended")),
    }
    Ok(Opened { running, heard })
}

impl Hosted {
    /// Lets go of a process that has ended. Its number may be another's by now.
    fn forget(&self, ended: &Arc<Running>) {
        let mut processes = self.processes.lock();
        if processes.get(&ended.process.pid()).is_some_and(|running| Arc::ptr_eq(running, ended)) {
            processes.remove(&ended.process.pid());
        }
    }
}

impl Running {
    fn listed(&self) -> Value {
        let mut listed = json!({ "config": self.config, "pid": self.process.pid() });
        if let Some(tag) = &self.tag {
            listed["tag"] = tag.as_str().into();
        }
        listed
    }

    /// Writes to its standard input, when it reads that.
    async fn take_input(&self, data: &[u8], allowance: &Allowance) -> Result<(), RpcFailure> {
        let _keeping = allowance.keep(data.len()).ok_or_else(RpcFailure::no_room)?;
        Ok(self.process.write(data).await?)
    }

    /// Hands on what it writes, up to its end.
    async fn pass_on(self: Arc<Running>, hosted: Arc<Hosted>) {
        while let Some(ProcessOutput { stream, bytes, .. }) = self.process.next_output().await {
            let event = json!({ "event": { "data": { stream.name(): encode(&bytes) } } });
            self.tell(Arc::new(Heard::Output(event))).await;
        }
        let end = end_event(&self.process.wait().await);
        hosted.forget(&self);
        let last = self.listeners.lock().take();
        let heard = Arc::new(Heard::End(end));
        for listener in last.into_iter().flatten() {
            let _ = listener.send(heard.clone()).await;
        }
    }

    async fn tell(&self, heard: Arc<Heard>) {
        let listeners = self.listeners.lock().clone().unwrap_or_default();
        let mut gone = false;
        for listener in listeners {
            gone |= listener.send(heard.clone()).await.is_err();
        }
        if gone && let Some(listeners) = &mut *self.listeners.lock() {
            listeners.retain(|listener| !listener.is_closed());
        }
    }
}

fn end_event(end: &ProcessEnd) -> Value {
    let status = match end.signal {
        None => format!("exit status {}", end.exit_code),
        Some(9) => "signal: killed".to_owned(),
        Some(15) => "signal: terminated".to_owned(),
        Some(2) => "signal: interrupt".to_owned(),
        Some(1) => "signal: hangup".to_owned(),
        Some(number) => format!("signal: {number}"),
    };
    let mut event = json!({
        "exitCode": if end.signal.is_some() { -1 } else { i32::from(end.exit_code) },
        "exited": end.signal.is_none(),
        "status": status,
    });
    if end.exit_code != 0 {
        let limit = end.limit.map(|limit| format!(" ({limit} limit reached)")).unwrap_or_default();
        event["error"] = format!("{status}{limit}").into();
    }
    json!({ "event": { "end": event } })
}

impl Opened {
    fn stream<H: Unpin + Send + 'static>(self, headers: &HeaderMap, is_start: bool, holds: H) -> Response {
        let (pieces, body) = streamed(holds);
        let (timeout, keepalive) = (rpc::timeout(headers), rpc::keepalive(headers));
        tokio::spawn(self.tell(pieces, timeout, keepalive, is_start));
        rpc::stream(body)
    }

    /// Passes on what arrives to the client. A timeout ends the process if this is the stream that started it.
    async fn tell(mut self, pieces: Pieces, timeout: Option<Duration>, keepalive: Duration, is_start: bool) {
        let start = json!({ "event": { "start": { "pid": self.running.process.pid() } } });
        if !rpc::send(&pieces, &start).await {
            return;
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let too_late = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let mut too_late = std::pin::pin!(too_late);
        loop {
            let heard = tokio::select! {
                biased;
                () = &mut too_late => {
                    if is_start {
                        self.running.process.kill();
                    }
                    let late = RpcFailure::new("deadline_exceeded", "the timeout has passed");
                    return rpc::finish(&pieces, Some(&late)).await;
                }
                heard = self.heard.recv() => heard,
                () = pieces.closed() => return,
                () = tokio::time::sleep(keepalive) => Some(Arc::new(Heard::Output(json!({ "event": { "keepalive": {} } })))),
            };
            match heard.as_deref() {
                Some(Heard::Output(event)) => {
                    if !rpc::send(&pieces, event).await {
                        return;
                    }
                }
                Some(Heard::End(event)) => {
                    rpc::send(&pieces, event).await;
                    return rpc::finish(&pieces, None).await;
                }
                None => {
                    let lost = RpcFailure::new("unavailable", "The sandbox was not found");
                    return rpc::finish(&pieces, Some(&lost)).await;
                }
            }
        }
    }
}

/// Takes input as it comes, and answers when it has ended.
async fn stream_input(asked: Asked<'_>) -> Response {
    match take_inputs(asked).await {
        Ok(()) => {
            let (pieces, body) = streamed(());
            rpc::send(&pieces, &json!({})).await;
            rpc::finish(&pieces, None).await;
            rpc::stream(body)
        }
        Err(failure) => rpc::failed_stream(&failure),
    }
}

async fn take_inputs(asked: Asked<'_>) -> Result<(), RpcFailure> {
    let Asked { hosted, allowance, body, .. } = asked;
    let mut arriving = allowance.arriving(body);
    let mut running: Option<Arc<Running>> = None;
    while let Some(message) = rpc::next_frame(allowance, &mut arriving).await? {
        if let Some(start) = message.get("start") {
            running = Some(selected(hosted, start.get("process"))?);
        } else if let Some(data) = message.get("data") {
            let no_start = || RpcFailure::argument("the stream must begin with start");
            let running = running.as_ref().ok_or_else(no_start)?;
            let data = input(data.get("input"))?;
            drop(message);
            arriving.release();
            running.take_input(&data, allowance).await?;
        }
    }
    Ok(())
}
