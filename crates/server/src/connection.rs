//! One client: its lines in, the responses out.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::budget::LARGE;
use crate::line::{Line, Lines};
use crate::methods::{self, Answer, Job, Task, Work, Written};
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
/// How many KiB of them need not come out of what all clients share.
const OWN_WAITING_KIB: usize = 1024;
/// How many KiB of lines the calls in progress may have; a longer one has it to itself.
const CALLS_KIB: u32 = 16 * 1024;
/// How long a client that disconnects has to read what was sent to it.
const FAREWELL: Duration = Duration::from_secs(1);

struct Connection {
    session: Arc<Session>,
    outbox: Outbox,
    tasks: JoinSet<()>,
    calls: Arc<Semaphore>,
    calls_kib: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    waiting_kib: Arc<Semaphore>,
    own_waiting_kib: Arc<Semaphore>,
}

/// The client sent `kill`, and expects this response.
struct Kill(Option<Value>);

/// Serves a client until it disconnects.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let (outbox, lines) = Outbox::new(shared.answers.clone());
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
            calls_kib: Arc::new(Semaphore::new(CALLS_KIB as usize)),
            waiting: Arc::new(Semaphore::new(WAITING)),
            waiting_kib: Arc::new(Semaphore::new(WAITING_KIB)),
            own_waiting_kib: Arc::new(Semaphore::new(OWN_WAITING_KIB)),
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
        let (size, session) = (line.len(), self.session.clone());
        let read = if size > LARGE {
            // Parsing and decoding take as long as the line is: not on a thread that others wait for.
            let reading = self.session.aside(move || understand(&session, &line)).await;
            reading.unwrap_or_else(|error| Some(Read::Answer(Some(Value::Null), Err(error))))
        } else {
            understand(&session, &line)
        };
        match read {
            None => None,
            Some(Read::Kill(id)) => Some(Kill(id)),
            Some(Read::Answer(id, outcome)) => {
                self.answer(id, outcome).await;
                None
            }
            Some(Read::Job(id, job)) => {
                self.job(id, job, size).await;
                None
            }
        }
    }

    async fn job(&mut self, id: Option<Value>, job: Job, size: usize) {
        let kib = u32::try_from(size / 1024 + 1).unwrap_or(u32::MAX);
        match job {
            Job::Kill => {}
            Job::AtOnce(task) => {
                let place = self.calls.clone().acquire_owned().await;
                let room = self.calls_kib.clone().acquire_many_owned(kib.min(CALLS_KIB)).await;
                self.start(id, task, (place, room));
            }
            Job::InTurn(task) => match self.waiting_room(kib) {
                Some(room) => self.start(id, task, room),
                None => self.answer(id, Err(RpcError::internal("Too many requests are waiting"))).await,
            },
        }
    }

    /// Returns a place among the requests that wait, and memory for one: the client's own, or of what all share.
    fn waiting_room(&self, kib: u32) -> Option<[OwnedSemaphorePermit; 3]> {
        let place = self.waiting.clone().try_acquire_owned().ok()?;
        let room = self.waiting_kib.clone().try_acquire_many_owned(kib).ok()?;
        let shared = || self.session.shared.waiting_kib.clone().try_acquire_many_owned(kib);
        let memory = self.own_waiting_kib.clone().try_acquire_many_owned(kib).or_else(|_| shared()).ok()?;
        Some([place, room, memory])
    }

    /// Does the work concurrently; what it `holds` is released once the response is sent.
    fn start(&mut self, id: Option<Value>, task: Task, holds: impl Send + 'static) {
        let session = self.session.clone();
        self.tasks.spawn(async move {
            let outcome = survive(task.work).await;
            if let Some(id) = id {
                respond(&session, id, outcome).await;
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

/// Sends the response to a request. Room for it is there before it is built, and a long one is built aside.
async fn respond(session: &Session, id: Value, outcome: Result<Answer, RpcError>) {
    let outbox = &session.outbox;
    let outcome = match outcome {
        Ok(Answer::Written(Written { mut json, room })) => {
            json.extend_from_slice(b"}\n");
            return outbox.put([rpc::response_head(&id), json], room);
        }
        Ok(Answer::Value(value)) => Ok(value),
        Err(error) => Err(error),
    };
    let size = outcome.as_ref().map_or(0, rpc::size);
    if size <= LARGE {
        return outbox.answer(rpc::response(id, outcome)).await;
    }
    let Some(mut room) = outbox.budget.room(size).await else { return };
    if let Ok(line) = session.aside(move || rpc::response(id, outcome)).await {
        room.shrink(line.len());
        outbox.put([line, Vec::new()], room);
    }
}

/// What a line comes to.
enum Read {
    Job(Option<Value>, Job),
    Answer(Option<Value>, Result<Value, RpcError>),
    Kill(Option<Value>),
}

/// Parses a line and takes its turn; returns nothing if no response is due.
fn understand(session: &Arc<Session>, line: &Line) -> Option<Read> {
    let message = match line {
        Line::TooLong => {
            let error = RpcError::new(PARSE_ERROR, "Request too large");
            return Some(Read::Answer(Some(Value::Null), Err(error)));
        }
        Line::Whole(line) if line.trim_ascii().is_empty() => return None,
        Line::Whole(line) => rpc::parse(line),
    };
    match message {
        Ok(Message::Answer { id, outcome }) => {
            session.callbacks.answer(&id, outcome);
            None
        }
        Err(Misfit { id, error }) => Some(Read::Answer(id, Err(error))),
        Ok(Message::Request(Request { id, method, params })) => {
            Some(match methods::prepare(session, id.as_ref(), &method, Params::new(params)) {
                Err(error) => Read::Answer(id, Err(error)),
                Ok(Job::Kill) => Read::Kill(id),
                Ok(job) => Read::Job(id, job),
            })
        }
    }
}

/// Turns a panic in a request into that request's failure.
async fn survive(work: Work) -> Result<Answer, RpcError> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll,
        Err(_) => Poll::Ready(Err(RpcError::internal("the request failed: see the server's log"))),
    })
    .await
}

/// Returns the response to a line of a client that has no sandbox.
pub(crate) fn answer_without_sandbox(shared: Arc<Shared>, line: &[u8]) -> Option<Vec<u8>> {
    let (outbox, _lines) = Outbox::new(shared.answers.clone());
    let session = Session::new(shared, outbox);
    match understand(&session, &Line::Whole(line.to_vec()))? {
        Read::Answer(id, outcome) => Some(rpc::response(id?, outcome)),
        Read::Job(..) | Read::Kill(_) => None,
    }
}
