//! One client: its lines in, the responses out.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::budget::{LARGE, check_length};
use crate::line::{Line, Lines};
use crate::methods::{self, Answer, Job, Task, Work, Written};
use crate::outbox::Outbox;
use crate::params::Params;
use crate::rpc::{self, Message, Misfit, PARSE_ERROR, Request, RpcError};
use crate::session::{Session, Shared};
use crate::tenant::{Member, Tenant};
use crate::trace::Trace;

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
    member: impl Into<Member>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    end: impl Future<Output = ()>,
) {
    let metrics = shared.metrics.clone();
    let _counted = metrics.client();
    let (outbox, lines) = Outbox::new(shared.answers.clone());
    let mut writer = tokio::spawn(lines.write_to(output));
    let mut connection = Connection::new(Session::new(shared, member, outbox.clone()));
    let (client, since) = (connection.session.client, Instant::now());
    tracing::info!(client, "connected");
    let (kill, why) = tokio::select! {
        kill = connection.read(input) => {
            let why = if kill.is_some() { "kill" } else { "its input ended" };
            (kill, why)
        }
        // Nobody listens any more.
        _ = &mut writer => (None, "it does not read"),
        () = end => (None, "shutdown"),
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
    connection.session.let_go_of_pool();
    wardian::return_memory();
    tracing::info!(client, why, ms = since.elapsed().as_millis(), "disconnected");
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
        let mut lines =
            Lines::within(BufReader::with_capacity(64 * 1024, input), self.session.shared.requests.clone());
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
        let (line_is_long, session) = (line.len() > LARGE, self.session.clone());
        let work = move || (line.weight(), understand(&session, &line));
        let (size, read) = if line_is_long {
            // Parsing and decoding take as long as the line is: not on a thread that others wait for.
            let reading = self.session.aside(work).await;
            reading.unwrap_or_else(|error| (0, Some(Read::Answer(Some(Value::Null), Err(error)))))
        } else {
            work()
        };
        match read {
            None => None,
            Some(Read::Kill(id)) => Some(Kill(id)),
            Some(Read::Answer(id, outcome)) => {
                self.answer(id, outcome).await;
                None
            }
            Some(Read::Job(id, job, trace)) => {
                self.job(id, job, trace, size).await;
                None
            }
        }
    }

    async fn job(&mut self, id: Option<Value>, job: Job, trace: Trace, size: usize) {
        let kib = u32::try_from(size / 1024 + 1).unwrap_or(u32::MAX);
        match job {
            Job::Kill => {}
            Job::AtOnce(task) => {
                let place = self.calls.clone().acquire_owned().await;
                let room = self.calls_kib.clone().acquire_many_owned(kib.min(CALLS_KIB)).await;
                self.start(id, task, trace, (place, room));
            }
            Job::InTurn(task) => match self.waiting_room(kib) {
                Some(room) => self.start(id, task, trace, room),
                None => {
                    let error = RpcError::internal("Too many requests are waiting");
                    trace.refused(&error);
                    self.answer(id, Err(error)).await;
                }
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
    fn start(&mut self, id: Option<Value>, task: Task, trace: Trace, holds: impl Send + 'static) {
        let session = self.session.clone();
        self.tasks.spawn(async move {
            let outcome = carry_out(&session, task.work, trace).await;
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
    match outcome {
        // A byte has at most six of JSON.
        Ok(Answer::Value(value)) if rpc::length(&value) <= LARGE / 6 => {
            outbox.answer(rpc::response(id, Ok(value))).await;
        }
        Ok(answer) => match written(session, answer).await {
            Ok(Written { mut json, room }) => {
                json.extend_from_slice(b"}\n");
                outbox.put([rpc::response_head(&id), json], room);
            }
            Err(error) => outbox.answer(rpc::response(id, Err(error))).await,
        },
        Err(error) => outbox.answer(rpc::response(id, Err(error))).await,
    }
}

/// Writes a result as JSON, within room that is there before; a long one aside.
pub(crate) async fn written(session: &Session, answer: Answer) -> Result<Written, RpcError> {
    let value = match answer {
        Answer::Written(written) => return Ok(written),
        Answer::Value(value) => value,
    };
    let (budget, gone) = (&session.outbox.budget, || RpcError::internal("the client is gone"));
    if rpc::length(&value) <= LARGE / 6 {
        let json = value.to_string().into_bytes();
        let room = budget.room(json.len()).await.ok_or_else(gone)?;
        return Ok(Written { json, room });
    }
    let (size, value) = session.aside(move || (rpc::size(&value), value)).await?;
    check_length("the result", size)?;
    let mut room = budget.room(size).await.ok_or_else(gone)?;
    let json = session.aside(move || value.to_string().into_bytes()).await?;
    room.shrink(json.len());
    Ok(Written { json, room })
}

/// What a line comes to.
enum Read {
    Job(Option<Value>, Job, Trace),
    Answer(Option<Value>, Result<Value, RpcError>),
    Kill(Option<Value>),
}

/// Parses a line and takes its turn; returns nothing if no response is due.
fn understand(session: &Arc<Session>, line: &Line) -> Option<Read> {
    let message = match line {
        Line::TooLong => {
            let error = RpcError::new(PARSE_ERROR, "Request too large");
            session.shared.metrics.refused(error.code);
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
        Err(Misfit { id, error }) => {
            session.shared.metrics.refused(error.code);
            tracing::info!(client = session.client, code = error.code, "a line was refused");
            Some(Read::Answer(id, Err(error)))
        }
        Ok(Message::Request(Request { id, method, params })) => {
            let (metrics, params) = (session.shared.metrics.clone(), Params::new(params));
            let trace = Trace::new(metrics, session.client, id.as_ref(), &method, params.peek("sandboxId"));
            Some(match methods::prepare(session, id.as_ref(), &method, params) {
                Err(error) => {
                    trace.refused(&error);
                    Read::Answer(id, Err(error))
                }
                Ok(Job::Kill) => Read::Kill(id),
                Ok(job) => Read::Job(id, job, trace),
            })
        }
    }
}

/// Does the work of a request, and takes note of it.
pub(crate) async fn carry_out(session: &Session, work: Work, trace: Trace) -> Result<Answer, RpcError> {
    let counted = session.shared.metrics.waits();
    let outcome = survive(work).await;
    drop(counted);
    trace.end(&outcome);
    outcome
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
    let session = Session::new(shared, Tenant::Owner, outbox);
    match understand(&session, &Line::Whole(line.to_vec()))? {
        Read::Answer(id, outcome) => Some(rpc::response(id?, outcome)),
        Read::Job(..) | Read::Kill(_) => None,
    }
}
