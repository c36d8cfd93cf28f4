//! One client: its lines in, the responses out.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::line::{Line, Lines};
use crate::methods::{self, Job, Task, Work};
use crate::outbox::Outbox;
use crate::params::Params;
use crate::rpc::{self, Message, Misfit, PARSE_ERROR, Request, RpcError};
use crate::session::{Session, Shared};

/// How many calls that never wait for a run may be in progress. No more lines are read until one is done.
const CALLS: usize = 256;
/// How many requests may wait for a run to end, and how many KiB of lines they may hold. They wait for something that a
/// later line may bring (`cancel`, a callback response), so reading continues and further ones are refused.
const WAITING: usize = 16 * 1024;
const WAITING_KIB: usize = 256 * 1024;
/// How long a client that disconnects has to read what was sent to it.
const FAREWELL: Duration = Duration::from_secs(1);

struct Connection {
    session: Arc<Session>,
    outbox: Outbox,
    tasks: JoinSet<()>,
    calls: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    waiting_kib: Arc<Semaphore>,
}

/// The client sent `kill`, and expects this response.
struct Kill(Option<Value>);

/// Serves a client until it disconnects.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let (outbox, lines) = Outbox::new();
    let mut writer = tokio::spawn(lines.write_to(output));
    let mut connection = Connection::new(Session::new(shared, outbox.clone()));
    let kill = tokio::select! {
        kill = connection.read(input) => kill,
        // Nobody listens any more.
        _ = &mut writer => None,
    };
    connection.session.end().await;
    let farewell = async {
        while connection.tasks.join_next().await.is_some() {}
        if let Some(Kill(Some(id))) = kill {
            outbox.answer(rpc::response(id, Ok(json!({ "ok": true })))).await;
        }
        outbox.end();
        if !writer.is_finished() {
            let _ = (&mut writer).await;
        }
    };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
    writer.abort();
}

impl Connection {
    fn new(session: Arc<Session>) -> Connection {
        Connection {
            outbox: session.outbox.clone(),
            session,
            tasks: JoinSet::new(),
            calls: Arc::new(Semaphore::new(CALLS)),
            waiting: Arc::new(Semaphore::new(WAITING)),
            waiting_kib: Arc::new(Semaphore::new(WAITING_KIB)),
        }
    }

    /// Handles line after line until there are no more.
    async fn read(&mut self, input: impl AsyncRead + Unpin) -> Option<Kill> {
        let mut lines = Lines::new(BufReader::with_capacity(64 * 1024, input));
        loop {
            match lines.next(self.session.line_limit()).await {
                Ok(Some(line)) => {
                    if let Some(kill) = self.line(line).await {
                        return Some(kill);
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "a client can no longer be read");
                    return None;
                }
            }
            // What is done need not be kept.
            while self.tasks.try_join_next().is_some() {}
        }
    }

    async fn line(&mut self, line: Line) -> Option<Kill> {
        match understand(&line) {
            None => None,
            Some(Ok(Message::Answer { id, outcome })) => {
                self.session.callbacks.answer(&id, outcome);
                None
            }
            Some(Ok(Message::Request(request))) => {
                let size = if let Line::Whole(bytes) = line { bytes.len() } else { 0 };
                self.request(request, size).await
            }
            Some(Err(Misfit { id, error })) => {
                self.answer(id, Err(error)).await;
                None
            }
        }
    }

    async fn request(&mut self, request: Request, size: usize) -> Option<Kill> {
        let Request { id, method, params } = request;
        match methods::prepare(&self.session, id.as_ref(), &method, Params::new(params)) {
            Err(error) => self.answer(id, Err(error)).await,
            Ok(Job::Kill) => return Some(Kill(id)),
            Ok(Job::AtOnce(task)) => {
                let place = self.calls.clone().acquire_owned().await;
                self.start(id, task, place);
            }
            Ok(Job::InTurn(task)) => {
                let kib = u32::try_from(size / 1024 + 1).unwrap_or(u32::MAX);
                let place = self.waiting.clone().try_acquire_owned();
                let room = self.waiting_kib.clone().try_acquire_many_owned(kib);
                match (place, room) {
                    (Ok(place), Ok(room)) => self.start(id, task, (place, room)),
                    _ => self.answer(id, Err(RpcError::internal("Too many requests are waiting"))).await,
                }
            }
        }
        None
    }

    /// Does the work concurrently; what it `holds` is released once the response is sent.
    fn start(&mut self, id: Option<Value>, task: Task, holds: impl Send + 'static) {
        let outbox = self.outbox.clone();
        self.tasks.spawn(async move {
            let outcome = survive(task.work).await;
            if let Some(id) = id {
                outbox.answer(rpc::response(id, outcome)).await;
            }
            drop((task.hold, holds));
        });
    }

    async fn answer(&self, id: Option<Value>, outcome: Result<Value, RpcError>) {
        if let Some(id) = id {
            self.outbox.answer(rpc::response(id, outcome)).await;
        }
    }
}

/// Parses a line; returns nothing if it is blank.
fn understand(line: &Line) -> Option<Result<Message, Misfit>> {
    match line {
        Line::TooLong => {
            let error = RpcError::new(PARSE_ERROR, "Request too large");
            Some(Err(Misfit { id: Some(Value::Null), error }))
        }
        Line::Whole(line) if line.trim_ascii().is_empty() => None,
        Line::Whole(line) => Some(rpc::parse(line)),
    }
}

/// Turns a panic in a request into that request's failure.
async fn survive(work: Work) -> Result<Value, RpcError> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll,
        Err(_) => Poll::Ready(Err(RpcError::internal("the request failed: see the server's log"))),
    })
    .await
}

/// Returns the response to a line of a client that has no sandbox.
pub(crate) fn answer_without_sandbox(shared: Arc<Shared>, line: &[u8]) -> Option<Vec<u8>> {
    let (outbox, _lines) = Outbox::new();
    let session = Session::new(shared, outbox);
    match understand(&Line::Whole(line.to_vec()))? {
        Err(Misfit { id, error }) => Some(rpc::response(id?, Err(error))),
        Ok(Message::Answer { id, outcome }) => {
            session.callbacks.answer(&id, outcome);
            None
        }
        Ok(Message::Request(Request { id, method, params })) => {
            match methods::prepare(&session, id.as_ref(), &method, Params::new(params)) {
                Err(error) => Some(rpc::response(id?, Err(error))),
                Ok(_) => None,
            }
        }
    }
}
