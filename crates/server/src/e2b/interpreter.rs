//! The code interpreter: `/execute` and `/contexts`, over the interpreters that stay in a sandbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};
use wardian::{OutputPiece, OutputStream, Python, PythonResult, PythonValue, Run, Sandbox};

use super::Asked;
use super::allowance::Allowance;
use super::answer::{Refused, empty, json_page, object};
use super::hosted::Hosted;
use super::rpc::at_home;
use super::stream::{Pieces, streamed};
use crate::params::text;

/// The longest request.
const BODY: usize = 4 << 20;
/// How many contexts a sandbox may have beside the first: it has at most sixteen interpreters.
const CONTEXTS: usize = 15;
/// How many pieces of output may wait for the client.
const PIECES: usize = 4;
/// The default context.
const FIRST: &str = "main";

/// What is known of a sandbox's contexts.
#[derive(Default)]
pub(super) struct Contexts(Mutex<Table>);

#[derive(Clone, Default)]
struct Table {
    last: u64,
    /// By id: language and directory.
    known: BTreeMap<String, (Language, String)>,
    executions: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Bash,
}

impl Language {
    fn read(value: Option<&Value>) -> Result<Language, Refused> {
        match value.and_then(Value::as_str) {
            None | Some("python") => Ok(Language::Python),
            Some("bash") => Ok(Language::Bash),
            Some(other) => {
                let shown: String = other.chars().take(32).collect();
                Err(Refused::bad(format!("there is no language \"{shown}\" here: only python and bash")))
            }
        }
    }

    fn name(self) -> &'static str {
        if self == Language::Python { "python" } else { "bash" }
    }
}

impl Contexts {
    /// A fork has the contexts of what it was forked from.
    pub(super) fn copy_from(&self, other: &Contexts) {
        let table = other.0.lock().clone();
        *self.0.lock() = table;
    }

    /// Returns them as they are saved with a sandbox.
    pub(super) fn to_json(&self) -> Value {
        let table = self.0.lock();
        let known = table.known.iter().map(|(id, (language, cwd))| json!([id, language.name(), cwd]));
        json!({ "last": table.last, "known": known.collect::<Vec<_>>(), "executions": table.executions })
    }

    /// Reads what [`Contexts::to_json`] wrote.
    pub(super) fn from_json(saved: &Value) -> Contexts {
        let mut table = Table { last: saved["last"].as_u64().unwrap_or(0), ..Table::default() };
        for one in saved["known"].as_array().into_iter().flatten().take(CONTEXTS + 1) {
            let (id, cwd) = (one[0].as_str().unwrap_or_default(), one[2].as_str().unwrap_or_default());
            if let Ok(language) = Language::read(Some(&one[1])) {
                table.known.insert(id.to_owned(), (language, cwd.to_owned()));
            }
        }
        let executions = saved["executions"].as_object().into_iter().flatten();
        table.executions = executions.filter_map(|(id, count)| Some((id.clone(), count.as_u64()?))).collect();
        Contexts(Mutex::new(table))
    }

    fn count(&self, context: &str) -> u64 {
        let mut table = self.0.lock();
        let count = table.executions.entry(context.to_owned()).or_default();
        *count += 1;
        *count
    }
}

pub(super) async fn answer<H: Unpin + Send + 'static>(
    asked: Asked<'_>,
    method: &Method,
    path: &str,
    holds: H,
) -> Result<Response, Refused> {
    let Asked { hosted, sandbox, allowance, body } = asked;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match (method.as_str(), &parts[..]) {
        ("GET", ["health"]) => Ok(json_page(StatusCode::OK, &json!("OK"))),
        ("POST", ["execute"]) => {
            let asked = object(allowance, body, BODY).await?;
            execute(hosted, sandbox, allowance, &asked.fields, holds)
        }
        ("GET", ["contexts"]) => Ok(json_page(StatusCode::OK, &list(hosted))),
        ("POST", ["contexts"]) => {
            create(hosted, &sandbox, &object(allowance, body, BODY).await?.fields).await
        }
        ("DELETE", ["contexts", id]) => remove(hosted, &sandbox, id).await,
        ("POST", ["contexts", id, "restart"]) => restart(hosted, &sandbox, id).await,
        _ => Err(Refused::new(StatusCode::NOT_FOUND, "not found")),
    }
}

fn list(hosted: &Hosted) -> Value {
    let table = hosted.contexts.0.lock();
    let first = (FIRST.to_owned(), (Language::Python, "/home/user".to_owned()));
    let known = table.known.iter().map(|(id, context)| (id.clone(), context.clone()));
    let shown = |(id, (language, cwd)): (String, (Language, String))| json!({ "id": id, "language": language.name(), "cwd": cwd });
    std::iter::once(first).chain(known).map(shown).collect()
}

async fn create(hosted: &Hosted, sandbox: &Sandbox, body: &Map<String, Value>) -> Result<Response, Refused> {
    let language = Language::read(body.get("language"))?;
    let cwd = at_home(body.get("cwd").and_then(Value::as_str).unwrap_or_default());
    if sandbox.file_info(&cwd).await?.kind != wardian::FileKind::Dir {
        return Err(Refused::bad(format!("cwd '{cwd}' is not a directory")));
    }
    let id = {
        let mut table = hosted.contexts.0.lock();
        if table.known.len() >= CONTEXTS {
            let message = format!("a sandbox may have {CONTEXTS} contexts beside the first");
            return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, message));
        }
        table.last += 1;
        let id = format!("c{}", table.last);
        table.known.insert(id.clone(), (language, cwd.clone()));
        id
    };
    let started = enter(sandbox, &id, language, &cwd).await;
    if let Err(refused) = started {
        hosted.contexts.0.lock().known.remove(&id);
        return Err(refused);
    }
    Ok(json_page(StatusCode::OK, &json!({ "id": id, "language": language.name(), "cwd": cwd })))
}

/// Starts an interpreter in its directory.
async fn enter(sandbox: &Sandbox, id: &str, language: Language, cwd: &str) -> Result<(), Refused> {
    if language == Language::Python && cwd != "/home/user" {
        let code = format!("__import__('os').chdir({})", literal(cwd));
        let entered = sandbox.python_with(Python::new(code).context(id)).await?;
        if !entered.is_ok() {
            return Err(Refused::bad(format!("cwd '{cwd}' cannot be entered")));
        }
    }
    Ok(())
}

/// Text as Python writes it: JSON's strings are.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

fn known(hosted: &Hosted, id: &str) -> Result<(Language, String), Refused> {
    if id == FIRST {
        return Ok((Language::Python, "/home/user".to_owned()));
    }
    let missing = || Refused::new(StatusCode::NOT_FOUND, "context not found");
    hosted.contexts.0.lock().known.get(id).cloned().ok_or_else(missing)
}

async fn remove(hosted: &Hosted, sandbox: &Sandbox, id: &str) -> Result<Response, Refused> {
    known(hosted, id)?;
    sandbox.end_interpreter(id).await?;
    let mut table = hosted.contexts.0.lock();
    table.known.remove(id);
    table.executions.remove(id);
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn restart(hosted: &Hosted, sandbox: &Sandbox, id: &str) -> Result<Response, Refused> {
    let (language, cwd) = known(hosted, id)?;
    sandbox.end_interpreter(id).await?;
    hosted.contexts.0.lock().executions.remove(id);
    enter(sandbox, id, language, &cwd).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

fn execute<H: Unpin + Send + 'static>(
    hosted: &Arc<Hosted>,
    sandbox: Sandbox,
    allowance: &Allowance,
    body: &Map<String, Value>,
    holds: H,
) -> Result<Response, Refused> {
    let code =
        body.get("code").and_then(Value::as_str).ok_or_else(|| Refused::bad("code must be a string"))?;
    let context = body.get("context_id").and_then(Value::as_str);
    let (context, language) = match context {
        Some(id) => (id.to_owned(), known(hosted, id)?.0),
        None => (FIRST.to_owned(), Language::read(body.get("language"))?),
    };
    let variables = match body.get("env_vars") {
        None | Some(Value::Null) => None,
        Some(Value::Object(variables)) if variables.values().all(Value::is_string) => {
            (!variables.is_empty()).then(|| variables.clone())
        }
        Some(_) => return Err(Refused::bad("env_vars must be an object of strings")),
    };
    let lengths =
        variables.iter().flatten().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len));
    let keeping = allowance.keep(code.len() + lengths.sum::<usize>()).ok_or_else(Refused::no_room)?;
    let count = hosted.contexts.count(if language == Language::Python { &context } else { "bash" });
    let (pieces, answer) = streamed((holds, keeping));
    let execution = Execution { sandbox, code: code.to_owned(), context, language, variables, count };
    tokio::spawn(execution.run(pieces));
    Ok(([(header::CONTENT_TYPE, "application/json")], answer).into_response())
}

struct Execution {
    sandbox: Sandbox,
    code: String,
    context: String,
    language: Language,
    variables: Option<Map<String, Value>>,
    count: u64,
}

impl Execution {
    /// Runs the code, and tells what comes of it. A client that goes away ends it.
    async fn run(self, pieces: Pieces) {
        line(&pieces, &json!({ "type": "number_of_executions", "execution_count": self.count })).await;
        let (listener, output) = mpsc::channel(PIECES);
        let cancel = Arc::new(Notify::new());
        let gone = async {
            pieces.closed().await;
            cancel.notify_one();
            std::future::pending::<()>().await;
        };
        let work = async { tokio::join!(self.execute(listener, cancel.clone()), pass_on(output, &pieces)).0 };
        let done = tokio::select! {
            done = work => done,
            () = gone => return,
        };
        match done {
            Ok(Some(result)) => {
                for value in &result.displays {
                    line(&pieces, &shown(value, false)).await;
                }
                if let Some(value) = &result.value {
                    line(&pieces, &shown(value, true)).await;
                }
                if let Some(error) = failure(&result) {
                    line(&pieces, &error).await;
                }
            }
            Ok(None) => {}
            Err(error) => line(&pieces, &problem("SandboxError", &error.to_string(), "")).await,
        }
        line(&pieces, &json!({ "type": "end_of_execution" })).await;
    }

    async fn execute(
        &self,
        listener: mpsc::Sender<OutputPiece>,
        cancel: Arc<Notify>,
    ) -> Result<Option<PythonResult>, wardian::Error> {
        if self.language == Language::Bash {
            let mut run = Run::new(self.code.as_str()).timeout(None).cancelled_by(cancel).on_output(listener);
            for (name, value) in self.variables.iter().flatten() {
                run = run.env(name, value.as_str().unwrap_or_default());
            }
            self.sandbox.run_with(run).await?;
            return Ok(None);
        }
        let python = |code: String| Python::new(code).context(self.context.as_str()).timeout(None);
        if let Some(variables) = &self.variables {
            let set = format!(
                "__import__('os').__dict__.setdefault('_wardian_before', []).append((lambda e, n: ({{k: e.get(k) for k in n}}, \
                 e.update(n))[0])(__import__('os').environ, {}))",
                Value::Object(variables.clone())
            );
            self.sandbox.python_with(python(set)).await?;
        }
        let result = self
            .sandbox
            .python_with(python(self.code.clone()).cancelled_by(cancel).on_output(listener))
            .await;
        if self.variables.is_some() {
            let reset = "for _k, _v in __import__('os')._wardian_before.pop().items():\n    \
                 __import__('os').environ.pop(_k, None) if _v is None else __import__('os').environ.__setitem__(_k, _v)\n\
                 del _k, _v";
            self.sandbox.python_with(python(reset.to_owned())).await?;
        }
        result.map(Some)
    }
}

async fn line(pieces: &Pieces, value: &Value) {
    let _ = pieces.send(Bytes::from(format!("{value}\n"))).await;
}

async fn pass_on(mut output: mpsc::Receiver<OutputPiece>, pieces: &Pieces) {
    while let Some(OutputPiece { stream, bytes, .. }) = output.recv().await {
        if bytes.is_empty() {
            continue;
        }
        let kind = if stream == OutputStream::Stdout { "stdout" } else { "stderr" };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let now = u64::try_from(now).unwrap_or_default();
        line(pieces, &json!({ "type": kind, "text": text(&bytes), "timestamp": now })).await;
    }
}

fn shown(value: &PythonValue, is_main: bool) -> Value {
    let mut shown = json!({ "type": "result", "text": value.repr, "is_main_result": is_main });
    for (name, part) in [("html", &value.html), ("png", &value.png)] {
        if let Some(part) = part {
            shown[name] = part.as_str().into();
        }
    }
    if let Some(json) = &value.json {
        shown["json"] = json.clone();
    }
    shown
}

/// What went wrong, if something did.
fn failure(result: &PythonResult) -> Option<Value> {
    if let Some(error) = &result.error {
        return Some(problem(&error.name, &error.message, &error.traceback.join("\n")));
    }
    let class = result.run.error_class.map(wardian::ErrorClass::name);
    let said = text(&result.run.stderr);
    match (class, result.run.exit_code) {
        (Some(class), _) => Some(problem(class, said.trim_end(), "")),
        (None, 0) => None,
        (None, code) => Some(problem("SystemExit", &code.to_string(), "")),
    }
}

fn problem(name: &str, value: &str, traceback: &str) -> Value {
    json!({ "type": "error", "name": name, "value": value, "traceback": traceback })
}
