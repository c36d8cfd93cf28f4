//! `run` and `cancel`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use wardian::{Error, ErrorClass, Input, Order, Piece, Run, RunResult, Sandbox, Stream, Truncated, Usage};

use super::{Job, Outcome, Prepared, entry};
use crate::outbox::Outbox;
use crate::params::{Params, encode, text};
use crate::rpc::{self, RpcError};
use crate::session::Session;

/// How many pieces of output may wait for the client before the guest does.
const PIECES: usize = 4;

/// How bytes travel in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Text,
    Base64,
}

impl Encoding {
    fn of(params: &mut Params) -> Result<Encoding, RpcError> {
        match params.string("encoding")?.as_deref() {
            None | Some("utf-8") => Ok(Encoding::Text),
            Some("base64") => Ok(Encoding::Base64),
            Some(_) => Err(RpcError::params("encoding must be \"utf-8\" or \"base64\"")),
        }
    }

    fn string(self, bytes: &[u8]) -> String {
        if self == Encoding::Text { text(bytes) } else { encode(bytes) }
    }
}

pub(super) fn run(session: &Arc<Session>, id: Option<&Value>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let mut run = Run::new(params.required_string("command")?);
    if let Some(stdin) = params.bytes("stdin")? {
        run = run.stdin(Input::bytes(stdin));
    }
    if let Some(timeout) = params.timeout("timeoutMs")? {
        run = run.timeout(timeout);
    }
    run = run.contained(params.flag("contained")?.unwrap_or(false));
    let encoding = Encoding::of(params)?;
    let shape = Shape { encoding, output: params.flag("output")?.unwrap_or(false) };
    let streams = params.flag("stream")?.unwrap_or(false);
    // Whoever sent no id cannot be told whose output it is.
    let stream = id.filter(|_| streams).map(|id| Told {
        outbox: session.outbox.clone(),
        request: id.clone(),
        encoding,
    });
    let (mut turn, entered) = (entry.in_turn(), entry.enter_run());
    let run = run.cancelled_by(entered.cancel.clone());
    Job::in_turn(turn.hold(), async move {
        let result = match (turn.sandbox().await, stream) {
            // Whether it had begun when its sandbox was ended makes no difference.
            (Err(_), _) if turn.entry().is_destroyed() => Err(Error::Destroyed),
            (Err(error), _) => return Err(error),
            (Ok(sandbox), Some(stream)) => stream.run(&sandbox, run).await,
            (Ok(sandbox), None) => sandbox.run_with(run).await,
        };
        drop(entered);
        match result {
            Ok(result) => Ok(object(&result, shape)),
            Err(Error::Destroyed) => Ok(object(&cancelled(), shape)),
            Err(error) => Err(error.into()),
        }
    })
}

/// The result of a run that never began, and never will.
fn cancelled() -> RunResult {
    RunResult {
        exit_code: 125,
        stdout: Vec::new(),
        stderr: b"wardian: cancelled\n".to_vec(),
        order: Order::default(),
        duration: Duration::ZERO,
        waited: Duration::ZERO,
        truncated: Truncated::default(),
        error_class: Some(ErrorClass::Cancelled),
        limit: None,
        usage: Usage::default(),
    }
}

pub(super) fn cancel(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let cancelled = entry(session, params)?.cancel();
    Job::at_once(None, async move { Outcome::Ok(json!({ "ok": true, "cancelled": cancelled })) })
}

/// A run whose output is told as it comes.
struct Told {
    outbox: Outbox,
    request: Value,
    encoding: Encoding,
}

impl Told {
    async fn run(&self, sandbox: &Sandbox, run: Run) -> Result<RunResult, Error> {
        let (listener, pieces) = mpsc::channel(PIECES);
        let running = sandbox.run_with(run.on_output(listener));
        let (result, (stdout, stderr, order)) = tokio::join!(running, self.pass_on(pieces));
        let mut result = result?;
        // A command that never ran has told nobody why.
        if stderr.is_empty() && !result.stderr.is_empty() {
            self.tell(Stream::Stderr, &result.stderr).await;
        } else {
            result.stderr = stderr;
        }
        (result.stdout, result.order) = (stdout, order);
        Ok(result)
    }

    /// Tells the client what comes; answers all of it, since the result has it, too.
    async fn pass_on(&self, mut pieces: mpsc::Receiver<Piece>) -> (Vec<u8>, Vec<u8>, Order) {
        let (mut stdout, mut stderr, mut order) = (Vec::new(), Vec::new(), Order::default());
        while let Some(Piece { stream, bytes, cut }) = pieces.recv().await {
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
        let data = self.encoding.string(piece);
        let params = json!({ "request_id": self.request, "stream": stream.name(), "data": data });
        self.outbox.tell(rpc::notification("output", params)).await;
    }
}

/// The result of a run, as the protocol has it.
pub fn result_object(result: &RunResult) -> Value {
    object(result, Shape { encoding: Encoding::Text, output: false })
}

/// What a client wants of a result.
#[derive(Clone, Copy)]
struct Shape {
    encoding: Encoding,
    /// Both streams in one, in order.
    output: bool,
}

fn object(result: &RunResult, Shape { encoding, output }: Shape) -> Value {
    let mut object = Map::new();
    object.insert("exitCode".into(), json!(result.exit_code));
    object.insert("stdout".into(), json!(encoding.string(&result.stdout)));
    object.insert("stderr".into(), json!(encoding.string(&result.stderr)));
    if output {
        object.insert("output".into(), json!(encoding.string(&result.output())));
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
        object.insert("limit".into(), json!(limit));
    }
    Value::Object(object)
}
