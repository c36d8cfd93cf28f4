//! An id for each request, and a line for each in a log of its own.
//!
//! ```text
//! {"time":"2030-01-02T03:04:05.678Z","id":"9f86d081884c7d65","token":"ci","tenant":"acme","method":"POST",
//!  "path":"/v1/sandboxes","status":201,"bytes":120,"ms":3.1,"complete":true}
//! ```
//! It is written when the answer was sent, or the client has gone. Queries, bodies, tokens and the names of sandboxes whose ports
//! are reached are not in it. A disk that is too slow delays no request: lines are lost then, and the log says how many.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Site;
use super::guard::Caller;
use crate::methods::date;

/// What a client calls its request, and what the server calls it otherwise.
const REQUEST_ID: &str = "x-request-id";
/// How long such an id may be.
const ID: usize = 64;
/// How much of a path is logged.
const PATH: usize = 512;
/// How many lines may wait to be written.
const WAITING: usize = 4096;
/// How long the last of them may take when the server ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// A log of requests. Clones are the same.
#[derive(Clone, Debug)]
pub struct AccessLog {
    lines: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Message {
    Line(String),
    /// The file was moved away.
    Reopen,
    /// Everything before this is written.
    Done(oneshot::Sender<()>),
}

impl AccessLog {
    /// Opens a file, to which lines are appended.
    pub fn open(path: &Path) -> io::Result<AccessLog> {
        let file = append(path)?;
        let (lines, messages) = sync_channel(WAITING);
        let lost = Arc::<AtomicU64>::default();
        let (path, uncounted) = (path.to_owned(), lost.clone());
        std::thread::Builder::new()
            .name("access log".to_owned())
            .spawn(move || write(&path, file, &messages, &uncounted))?;
        Ok(AccessLog { lines, lost })
    }

    /// Begins a new file if the old one was moved away.
    pub fn reopen(&self) {
        // If too many lines wait, the next signal does.
        let _ = self.lines.try_send(Message::Reopen);
    }

    fn put(&self, line: &Value) {
        if self.lines.try_send(Message::Line(format!("{line}\n"))).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything is written.
    pub(super) async fn end(&self) {
        let (done, is_done) = oneshot::channel();
        if self.lines.try_send(Message::Done(done)).is_ok() {
            let _ = tokio::time::timeout(FAREWELL, is_done).await;
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(path)
}

fn write(path: &Path, mut file: File, messages: &Receiver<Message>, lost: &AtomicU64) {
    let mut is_failing = false;
    for message in messages {
        let line = match message {
            Message::Line(line) => line,
            Message::Reopen => {
                match append(path) {
                    Ok(new) => file = new,
                    Err(error) => tracing::warn!(%error, "the access log goes on in the old file"),
                }
                continue;
            }
            Message::Done(done) => {
                let _ = done.send(());
                continue;
            }
        };
        let missing = lost.swap(0, Ordering::Relaxed);
        let text = if missing > 0 { format!("{}\n{line}", json!({ "lost": missing })) } else { line };
        match file.write_all(text.as_bytes()) {
            Ok(()) => is_failing = false,
            Err(error) => {
                lost.fetch_add(missing + 1, Ordering::Relaxed);
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(%error, "the access log cannot be written");
                }
            }
        }
    }
}

/// Gives each request its id, and takes note of it.
pub(super) async fn record(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let mut asked = Asked {
        log: site.http.access_log.clone(),
        since: Instant::now(),
        id: id_of(&request),
        caller: None,
        method: request.method().clone(),
        path: shown(request.uri().path()),
        status: 0,
    };
    let mut response = next.run(request).await;
    if let Ok(id) = HeaderValue::from_str(&asked.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    asked.caller = response.extensions_mut().remove::<Caller>();
    asked.status = response.status().as_u16();
    let (head, body) = response.into_parts();
    let length =
        head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let wanted = length.or_else(|| body.size_hint().exact());
    Response::from_parts(head, Body::new(Counted { body, asked, bytes: 0, wanted, is_over: false }))
}

/// Returns the client's id for a request, if it is one, or a new one.
fn id_of(request: &Request) -> String {
    let fits = |id: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        (1..=ID).contains(&id.len()) && id.bytes().all(is_plain)
    };
    if let Some(id) = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(fits) {
        return id.to_owned();
    }
    let mut random = [0; 8];
    // One without randomness is still answered.
    let _ = getrandom::fill(&mut random);
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns what is logged of a path: the names of sandboxes whose ports are reached are secrets.
fn shown(path: &str) -> String {
    let shown = match path.strip_prefix("/sandboxes/").map(|rest| rest.splitn(4, '/').collect::<Vec<_>>()) {
        Some(parts) if parts.get(1) == Some(&"ports") => {
            format!("/sandboxes/*/ports/{}", parts.get(2).unwrap_or(&""))
        }
        Some(_) => "/sandboxes/*".to_owned(),
        None => path.to_owned(),
    };
    shown.chars().take(PATH).collect()
}

/// A request whose answer is on its way.
struct Asked {
    log: Option<AccessLog>,
    since: Instant,
    id: String,
    caller: Option<Caller>,
    method: Method,
    path: String,
    status: u16,
}

impl Asked {
    fn end(&self, bytes: u64, complete: bool) {
        let Asked { id, method, path, status, .. } = self;
        let ms = self.since.elapsed().as_secs_f64() * 1000.0;
        tracing::debug!(%id, %method, %path, status, bytes, ms, complete, "answered");
        let Some(log) = &self.log else { return };
        let known = self.caller.as_ref().and_then(|caller| caller.known.as_ref());
        log.put(&json!({
            "time": date(SystemTime::now()),
            "id": id,
            "token": known.map(|known| &known.name),
            "tenant": known.map(|known| &known.tenant),
            "method": method.as_str(),
            "path": path,
            "status": status,
            "bytes": bytes,
            "ms": (ms * 1000.0).round() / 1000.0,
            "complete": complete,
        }));
    }
}

/// The body of an answer, which is counted.
struct Counted {
    body: Body,
    asked: Asked,
    bytes: u64,
    /// How many there are in all, if that is known.
    wanted: Option<u64>,
    is_over: bool,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            None => self.is_over = true,
            Some(Ok(frame)) => self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64),
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let is_head = self.asked.method == Method::HEAD;
        self.asked.end(self.bytes, self.is_over || is_head || self.wanted == Some(self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_secrets_are_not_shown() {
        let cases = [
            ("/v1/sandboxes/s1/run", "/v1/sandboxes/s1/run"),
            ("/sandboxes/SECRET/ports/80/a/b", "/sandboxes/*/ports/80"),
            ("/sandboxes/SECRET", "/sandboxes/*"),
            ("/sandboxes/SECRET/other", "/sandboxes/*"),
        ];
        for (path, expected) in cases {
            assert_eq!(shown(path), expected);
        }
        assert_eq!(shown(&"é".repeat(1000)).chars().count(), PATH);
    }

    #[test]
    fn only_plain_ids_are_taken_over() {
        let id = |given: &str| {
            let request = Request::builder().header("x-request-id", given).body(Body::empty());
            id_of(&request.expect("a request"))
        };
        assert_eq!(id("abc-1.2_3"), "abc-1.2_3");
        for wrong in ["", "a b", "é", "\"", &"x".repeat(65)] {
            assert_eq!(id(wrong).len(), 16, "{wrong}");
        }
        assert_ne!(id(""), id(""));
    }

    #[tokio::test]
    async fn lines_go_on_in_a_new_file_once_the_old_one_was_moved_away() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, moved) = (directory.path().join("log"), directory.path().join("old"));
        let log = AccessLog::open(&path).expect("a log");
        log.put(&json!({ "id": "a" }));
        log.end().await;
        std::fs::rename(&path, &moved).expect("it can be moved");
        log.reopen();
        log.lost.fetch_add(3, Ordering::Relaxed);
        log.put(&json!({ "id": "b" }));
        log.end().await;
        let text = |path| std::fs::read_to_string(path).expect("it is there");
        assert_eq!(text(&moved), "{\"id\":\"a\"}\n");
        assert_eq!(text(&path), "{\"lost\":3}\n{\"id\":\"b\"}\n");
    }
}
