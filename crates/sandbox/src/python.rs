//! The stateful interpreter: Python that stays from call to call, beside the shell.
//!
//! An interpreter is a second resident program of the sandbox (`Session`): idle, it is part of the sandbox's value, so that
//! forks, snapshots and archives have it, and a call that is killed leaves it as it was before. It shares the files with the
//! shell and nothing else; calls and commands of a sandbox queue for the same lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc};
use wardian_kernel::{
    AtRest, Command, Finished, Input, Machine, Piece, SIGKILL, Session, Stream, Usage, Verdict,
};
use wardian_vfs::Errno;

use crate::audit::Event;
use crate::error::{Error, lost};
use crate::result::RunResult;
use crate::run::Run;
use crate::sandbox::{Sandbox, SessionGuard};
use crate::system::System;

/// The most interpreters of a sandbox.
pub(crate) const MOST_INTERPRETERS: usize = 16;
/// Its file, which an allowlist may name.
const EXECUTABLE: &[u8] = b"/bin/python3";
/// The longest name of one.
const LONGEST_NAME: usize = 64;
/// What an answer may have beyond what its parts may: names, quotes, the lines of a traceback.
const ANSWER_FRAME: usize = 1 << 20;

/// Code for an interpreter, with everything one can say about it.
#[derive(Debug)]
pub struct Python {
    context: String,
    run: Run,
}

impl Python {
    /// Code, for the interpreter `main`, without input.
    pub fn new(code: impl Into<Vec<u8>>) -> Python {
        Python { context: "main".to_owned(), run: Run::new(code) }
    }

    /// Which interpreter runs it. Each has variables of its own, and is started at its first use.
    pub fn context(mut self, name: impl Into<String>) -> Python {
        self.context = name.into();
        self
    }

    /// Its standard input.
    pub fn stdin(self, input: Arc<Input>) -> Python {
        Python { run: self.run.stdin(input), ..self }
    }

    /// How long it may take, instead of what the sandbox was made with; `None` for ever.
    pub fn timeout(self, timeout: Option<Duration>) -> Python {
        Python { run: self.run.timeout(timeout), ..self }
    }

    /// Ends it when `cancel` is notified; see [`Run::cancelled_by`].
    pub fn cancelled_by(self, cancel: Arc<Notify>) -> Python {
        Python { run: self.run.cancelled_by(cancel), ..self }
    }

    /// Gets both streams as they come; see [`Run::on_output`].
    pub fn on_output(self, listener: mpsc::Sender<Piece>) -> Python {
        Python { run: self.run.on_output(listener), ..self }
    }

    /// Calls `callback` with both streams as they come; see [`Run::on_output_call`].
    pub fn on_output_call(self, callback: impl FnMut(Stream, &[u8]) + Send + 'static) -> Python {
        Python { run: self.run.on_output_call(callback), ..self }
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PythonResult {
    /// Output, duration and usage, as of a command. The exit code is 0, or 1 after an error, or what `exit()` was given.
    pub run: RunResult,
    /// The value of the last expression, if there is one and it is not `None`.
    pub value: Option<PythonValue>,
    /// What was given to `display()`.
    pub displays: Vec<PythonValue>,
    /// What was raised and not caught.
    pub error: Option<PythonError>,
    /// A value or a traceback was longer than `stdoutBytes`, which they may have together.
    pub truncated: bool,
}

/// A value, as it describes itself.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PythonValue {
    /// `repr()`.
    pub repr: String,
    /// `_repr_html_()`.
    pub html: Option<String>,
    /// `_repr_png_()`, in base64.
    pub png: Option<String>,
    /// `_repr_json_()`.
    pub json: Option<Value>,
}

/// An uncaught exception.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PythonError {
    /// Its type: `ValueError`, `json.decoder.JSONDecodeError`.
    pub name: String,
    /// Its message.
    pub message: String,
    /// The traceback as Python prints it, line by line.
    pub traceback: Vec<String>,
}

/// Refuses a name that no interpreter can have.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(Error::Option(format!("a context has a name of 1 to {LONGEST_NAME} bytes")));
    }
    Ok(())
}

/// Restores idle interpreters in a machine.
pub(crate) fn restore(
    system: &System,
    machine: &Arc<Machine>,
    interpreters: &BTreeMap<String, AtRest>,
) -> Result<BTreeMap<String, Session>, Error> {
    let mut restored = BTreeMap::new();
    for (name, rest) in interpreters {
        // A sandbox that has the state of one has loaded it.
        let program =
            system.known_python().ok_or(Error::Unsupported("an interpreter without its program"))?;
        let session = Session::restore(machine, program, rest);
        restored.insert(name.clone(), session.map_err(|errno| Error::refused(errno, b"python"))?);
    }
    Ok(restored)
}

impl Sandbox {
    /// Runs code in the sandbox's interpreter `main`, whose variables live from call to call.
    pub async fn python(&self, code: impl Into<Vec<u8>>) -> Result<PythonResult, Error> {
        self.python_with(Python::new(code)).await
    }

    /// Runs code with its input, timeout and listeners. It waits for commands and calls of the same sandbox that came
    /// before. Dropping the future ends it.
    pub async fn python_with(&self, python: Python) -> Result<PythonResult, Error> {
        check_name(&python.context)?;
        let (run, answer) = self.execute(python.run, Some(python.context)).await?;
        Ok(PythonResult::read(run, answer.as_deref()))
    }

    /// Ends an interpreter, with its variables; the next call of its name starts a fresh one. Waits for commands and calls that
    /// came before. Returns `false` if there is none.
    pub async fn end_interpreter(&self, name: &str) -> Result<bool, Error> {
        let _shell = self.session().await?;
        let ended = self.inner().interpreters.lock().remove(name);
        self.note_change();
        Ok(ended.is_some())
    }

    /// Makes sure that there is an interpreter of this name.
    pub(crate) async fn start_interpreter(&self, _shell: &SessionGuard, name: &str) -> Result<(), Error> {
        let inner = self.inner();
        {
            let interpreters = inner.interpreters.lock();
            if interpreters.contains_key(name) {
                return Ok(());
            }
            if interpreters.len() >= MOST_INTERPRETERS {
                return Err(Error::Option(format!("a sandbox has at most {MOST_INTERPRETERS} interpreters")));
            }
        }
        if inner
            .setup
            .rules
            .allowed
            .as_deref()
            .is_some_and(|allowed| allowed.refuses(EXECUTABLE, b"python3").is_some())
        {
            inner.record(Event::CapabilityDenied { tool: b"python3" });
            return Err(Error::refused(Errno::EACCES, b"python3"));
        }
        let (system, machine, setup) = (inner.system.clone(), self.live()?, inner.setup.clone());
        // On the kernel's own runtime, where guests run.
        let starting = self.kernel().spawn(async move {
            let program = system.python().await?;
            let started = Session::start(&machine, program, setup.environment.clone(), setup.cwd.as_bytes());
            started.await.map_err(|errno| Error::refused(errno, b"python"))
        });
        let session = starting.await.map_err(lost)??;
        inner.interpreters.lock().insert(name.to_owned(), session);
        self.note_change();
        Ok(())
    }

    /// Loads Python's program.
    pub(crate) async fn load_python(&self) -> Result<(), Error> {
        let system = self.inner().system.clone();
        self.kernel().spawn(async move { system.python().await.map(drop) }).await.map_err(lost)?
    }

    /// Has an interpreter run code. Must be called on the kernel's runtime.
    pub(crate) async fn ask_interpreter(
        &self,
        _shell: &SessionGuard,
        name: &str,
        mut command: Command,
    ) -> (Finished, Option<Vec<u8>>) {
        let most = self.limits().stdout_bytes;
        let interpreter = self.inner().interpreters.lock().remove(name);
        let Some(mut interpreter) = interpreter else {
            // It was just started, or found, by who holds the shell's lock.
            let (verdict, usage) = (Verdict::Killed(SIGKILL), Usage::default());
            let finished = Finished {
                verdict,
                limit: None,
                cut_short: false,
                refused: None,
                denied: Vec::new(),
                waited: Duration::ZERO,
                usage,
            };
            return (finished, None);
        };
        // A copy reseeds its generators (`resident.py`).
        let copy = if interpreter.is_copy() { "+" } else { "" };
        command.script = [format!("{copy}{most}\0").as_bytes(), &command.script].concat();
        let done = interpreter.ask_surely(command, most.saturating_mul(2).saturating_add(ANSWER_FRAME)).await;
        self.inner().interpreters.lock().insert(name.to_owned(), interpreter);
        done
    }
}

impl PythonResult {
    fn read(mut run: RunResult, answer: Option<&[u8]>) -> PythonResult {
        let parsed = answer.and_then(|answer| serde_json::from_slice::<Map<String, Value>>(answer).ok());
        let mut result =
            PythonResult { run, value: None, displays: Vec::new(), error: None, truncated: false };
        let Some(mut parts) = parsed else {
            // Code can do anything to its interpreter; what cannot be read is not a success.
            if answer.is_some() && result.run.exit_code == 0 {
                result.run.exit_code = 1;
                result.error = Some(PythonError {
                    name: "RuntimeError".to_owned(),
                    message: "the interpreter's answer cannot be read".to_owned(),
                    traceback: Vec::new(),
                });
            }
            return result;
        };
        run = result.run;
        result.value = parts.remove("value").and_then(PythonValue::read);
        if let Some(Value::Array(displays)) = parts.remove("displays") {
            result.displays = displays.into_iter().filter_map(PythonValue::read).collect();
        }
        result.error = parts.remove("error").and_then(PythonError::read);
        result.truncated = parts.contains_key("truncated");
        let exit = parts.get("exit").and_then(Value::as_u64).and_then(|code| u8::try_from(code).ok());
        if run.exit_code == 0 {
            run.exit_code = exit.unwrap_or(u8::from(result.error.is_some()));
        }
        PythonResult { run, ..result }
    }

    /// Returns whether it ended without an error, in time and with nothing refused.
    pub fn is_ok(&self) -> bool {
        self.run.exit_code == 0 && self.run.error_class.is_none()
    }
}

fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

impl PythonValue {
    fn read(value: Value) -> Option<PythonValue> {
        let Value::Object(mut parts) = value else { return None };
        Some(PythonValue {
            repr: text(parts.remove("repr"))?,
            html: text(parts.remove("html")),
            png: text(parts.remove("png")),
            json: parts.remove("json"),
        })
    }
}

impl PythonError {
    fn read(value: Value) -> Option<PythonError> {
        let Value::Object(mut parts) = value else { return None };
        let lines = match parts.remove("traceback") {
            Some(Value::Array(lines)) => lines.into_iter().filter_map(|line| text(Some(line))).collect(),
            _ => Vec::new(),
        };
        let name = text(parts.remove("type"))?;
        Some(PythonError { name, message: text(parts.remove("message"))?, traceback: lines })
    }
}
