//! `run` and `cancel`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use wardian::{Error, ErrorClass, Input, Run, RunResult, Sandbox, Truncated, Usage};

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
    let encoding = Encoding::of(params)?;
    let streams = params.flag("stream")?.unwrap_or(false);
    // Whoever sent no id cannot be told whose output it is.
    let stream = id.filter(|_| streams).map(|id| Stream {
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
            Ok(result) => Ok(object(&result, encoding)),
            Err(Error::Destroyed) => Ok(object(&cancelled(), encoding)),
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
        duration: Duration::ZERO,
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
struct Stream {
    outbox: Outbox,
    request: Value,
    encoding: Encoding,
}

impl Stream {
    async fn run(&self, sandbox: &Sandbox, run: Run) -> Result<RunResult, Error> {
        let (stdout, stdout_pieces) = mpsc::channel(PIECES);
        let (stderr, stderr_pieces) = mpsc::channel(PIECES);
        let running = sandbox.run_with(run.on_stdout(stdout).on_stderr(stderr));
        let (result, (stdout, stderr)) = tokio::join!(running, self.pass_on(stdout_pieces, stderr_pieces));
        let mut result = result?;
        // A command that never ran has told nobody why.
        if stderr.is_empty() && !result.stderr.is_empty() {
            self.tell("stderr", &result.stderr).await;
        } else {
            result.stderr = stderr;
        }
        result.stdout = stdout;
        Ok(result)
    }

    /// Tells the client what comes; answers all of it, since the result has it, too.
    async fn pass_on(
        &self,
        mut stdout: mpsc::Receiver<Vec<u8>>,
        mut stderr: mpsc::Receiver<Vec<u8>>,
    ) -> (Vec<u8>, Vec<u8>) {
        let (mut kept_stdout, mut kept_stderr) = (Vec::new(), Vec::new());
        loop {
            tokio::select! {
                Some(piece) = stdout.recv() => {
                    self.tell("stdout", &piece).await;
                    kept_stdout.extend_from_slice(&piece);
                }
                Some(piece) = stderr.recv() => {
                    self.tell("stderr", &piece).await;
                    kept_stderr.extend_from_slice(&piece);
                }
                else => return (kept_stdout, kept_stderr),
            }
        }
    }

    async fn tell(&self, stream: &str, piece: &[u8]) {
        let data = self.encoding.string(piece);
        let params = json!({ "request_id": self.request, "stream": stream, "data": data });
        self.outbox.tell(rpc::notification("output", params)).await;
    }
}

/// The result of a run, as the protocol has it.
pub fn result_object(result: &RunResult) -> Value {
    object(result, Encoding::Text)
}

fn object(result: &RunResult, encoding: Encoding) -> Value {
    let mut object = Map::new();
    object.insert("exitCode".into(), json!(result.exit_code));
    object.insert("stdout".into(), json!(encoding.string(&result.stdout)));
    object.insert("stderr".into(), json!(encoding.string(&result.stderr)));
    object.insert("executionTimeMs".into(), json!(result.duration.as_secs_f64() * 1000.0));
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
