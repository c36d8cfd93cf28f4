//! `run` and `cancel`.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use wardian::{
    Error, Input, OnKill, OutputOrder as Order, OutputPiece as Piece, OutputStream as Stream, Run, RunResult,
    Sandbox,
};
use wardian_contract::params::{self, Cancel, Encoding};

use super::{Job, Outcome, Prepared, asked};
use crate::budget::LARGE;
use crate::entry::{EnteredRun, Entry};
use crate::outbox::Outbox;
use crate::params::{Params, encode, text};
use crate::session::Session;

/// How many pieces of output may wait for the client before the guest does.
const PIECES: usize = 4;

/// Returns bytes as they travel in a line.
fn sent(bytes: &[u8], encoding: Encoding) -> String {
    if encoding == Encoding::Text { text(bytes) } else { encode(bytes) }
}

pub(super) fn run(session: &Arc<Session>, id: Option<&Value>, params: &mut Params) -> Prepared {
    let (entry, asked) = asked::<params::Run>(session, params)?;
    let mut run = Run::new(asked.command).contained(asked.contained.unwrap_or(false));
    if let Some(stdin) = asked.stdin {
        run = run.stdin(Input::bytes(stdin.0));
    }
    if let Some(timeout) = asked.timeout_ms {
        run = run.timeout(timeout.0);
    }
    for (name, value) in asked.env.unwrap_or_default() {
        run = run.env(name, value);
    }
    if let Some(cwd) = asked.cwd {
        run = run.cwd(cwd);
    }
    if let Some(on_kill) = asked.on_kill {
        run = run.on_kill(kept(on_kill));
    }
    if let Some(path) = asked.output_file {
        run = run.output_file(path);
    }
    let shape = Shape::new(asked.encoding, asked.output);
    let stream = Told::new(session, id, asked.stream, shape.encoding);
    let session = session.clone();
    in_turn(&entry, id, shape, move |sandbox, entered| async move {
        let run = run.cancelled_by(entered.cancel.clone());
        let result = match stream {
            Some(stream) => stream.run(&sandbox, run).await?,
            None => sandbox.run_with(run).await?,
        };
        drop(entered);
        // Text is checked byte by byte: not on a thread that others wait for.
        let long = result.stdout.len() + result.stderr.len() > LARGE;
        Ok(if long {
            session.aside(move || object(&result, shape)).await
        } else {
            Ok(object(&result, shape))
        })
    })
}

/// What becomes of files when a command is killed.
pub(super) fn kept(on_kill: params::OnKill) -> OnKill {
    match on_kill {
        params::OnKill::Keep => OnKill::Keep,
        params::OnKill::Rollback => OnKill::Rollback,
    }
}

/// Runs something when it is its turn among the runs of a sandbox, and answers its result. Until `work` drops the second
/// of its arguments, the run can be cancelled.
pub(super) fn in_turn<F: Future<Output = Result<Outcome, Error>> + Send>(
    entry: &Arc<Entry>,
    id: Option<&Value>,
    shape: Shape,
    work: impl FnOnce(Sandbox, EnteredRun) -> F + Send + 'static,
) -> Prepared {
    let (mut turn, entered) = (entry.in_turn(), entry.enter_run(id));
    Job::in_turn(turn.hold(), async move {
        let done = match turn.sandbox().await {
            Ok(awake) => work(Sandbox::clone(&awake), entered).await,
            // Whether it had begun when its sandbox was ended makes no difference.
            Err(_) if turn.entry().is_destroyed() => Err(Error::Destroyed),
            Err(error) => return Err(error),
        };
        match done {
            Ok(answer) => answer,
            Err(Error::Destroyed) => Ok(object(&RunResult::cancelled(), shape)),
            Err(error) => Err(error.into()),
        }
    })
}

pub(super) fn cancel(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, Cancel { request_id, .. }) = asked(session, params)?;
    let cancelled = entry.cancel(request_id.map(|id| id.0).as_ref());
    Job::at_once(None, async move { Outcome::Ok(json!({ "ok": true, "cancelled": cancelled })) })
}

/// A run whose output is told as it comes.
pub(super) struct Told {
    outbox: Outbox,
    request: Value,
    encoding: Encoding,
}

/// What a client was told.
pub(super) type Heard = (Vec<u8>, Vec<u8>, Order);

impl Told {
    /// The listener, if the client wants progress.
    pub(super) fn new(
        session: &Session,
        id: Option<&Value>,
        stream: Option<bool>,
        encoding: Encoding,
    ) -> Option<Told> {
        // A client that sent no id cannot be told whose output it is.
        let told = |id: &Value| Told { outbox: session.outbox.clone(), request: id.clone(), encoding };
        id.filter(|_| stream == Some(true)).map(told)
    }

    async fn run(&self, sandbox: &Sandbox, run: Run) -> Result<RunResult, Error> {
        let (result, heard) = self.listen(|listener| sandbox.run_with(run.on_output(listener))).await;
        Ok(self.complete(result?, heard).await)
    }

    /// Tells the client what is written while something runs.
    pub(super) async fn listen<T, F: Future<Output = T>>(
        &self,
        start: impl FnOnce(mpsc::Sender<Piece>) -> F,
    ) -> (T, Heard) {
        let (listener, pieces) = mpsc::channel(PIECES);
        tokio::join!(start(listener), self.pass_on(pieces))
    }

    /// Puts what the client was told into the result, which has it, too.
    pub(super) async fn complete(&self, mut result: RunResult, (stdout, stderr, order): Heard) -> RunResult {
        // A command that never ran has told nobody why.
        if stderr.is_empty() && !result.stderr.is_empty() {
            self.tell(Stream::Stderr, &result.stderr).await;
        } else {
            result.stderr = stderr;
        }
        (result.stdout, result.order) = (stdout, order);
        result
    }

    /// Tells the client what comes; answers all of it, since the result has it, too.
    async fn pass_on(&self, mut pieces: mpsc::Receiver<Piece>) -> Heard {
        let (mut stdout, mut stderr, mut order) = (Vec::new(), Vec::new(), Order::default());
        while let Some(Piece { stream, bytes, cut, .. }) = pieces.recv().await {
            if !bytes.is_empty() {
                self.tell(stream, &bytes).await;
            }
            let kept = if stream == Stream::Stdout { &mut stdout } else { &mut stderr };
            kept.extend_from_slice(&bytes);
            order.add(stream, bytes.len());
            if cut {
                order.cut(stream);
            }
        }
        (stdout, stderr, order)
    }

    async fn tell(&self, stream: Stream, piece: &[u8]) {
        let data = sent(piece, self.encoding);
        let params = json!({ "request_id": self.request, "stream": stream.name(), "data": data });
        self.outbox.notify("output", params).await;
    }
}

/// The result of a run, as the protocol has it.
pub fn result_object(result: &RunResult) -> Value {
    object(result, Shape { encoding: Encoding::Text, output: false })
}

/// What a client wants of a result.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) encoding: Encoding,
    /// Both streams in one, in order.
    output: bool,
}

impl Shape {
    pub(super) fn new(encoding: Option<Encoding>, output: Option<bool>) -> Shape {
        Shape { encoding: encoding.unwrap_or_default(), output: output.unwrap_or(false) }
    }
}

pub(super) fn object(result: &RunResult, Shape { encoding, output }: Shape) -> Value {
    let mut object = Map::new();
    object.insert("exitCode".into(), json!(result.exit_code));
    object.insert("stdout".into(), Value::String(sent(&result.stdout, encoding)));
    object.insert("stderr".into(), Value::String(sent(&result.stderr, encoding)));
    if output {
        object.insert("output".into(), Value::String(sent(&result.output(), encoding)));
    }
    object.insert("executionTimeMs".into(), json!(result.duration.as_secs_f64() * 1000.0));
    if !result.waited.is_zero() {
        object.insert("waitedMs".into(), json!(result.waited.as_secs_f64() * 1000.0));
    }
    let truncated = result.truncated;
    if truncated.stdout || truncated.stderr {
        let which = json!({ "stdout": truncated.stdout, "stderr": truncated.stderr });
        object.insert("truncated".into(), which);
    }
    if let Some(class) = result.error_class {
        object.insert("errorClass".into(), json!(class.name()));
    }
    if let Some(limit) = result.limit {
        object.insert("limit".into(), json!(limit.name()));
    }
    if let Some(file) = &result.output_file {
        let mut shown = json!({ "path": text(&file.path), "bytes": file.bytes });
        if let Some(error) = file.error {
            shown["error"] = error.name().into();
        }
        object.insert("outputFile".into(), shown);
    }
    Value::Object(object)
}
