//! Commands and Python.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use serde_json::json;
use tokio::time::{MissedTickBehavior, interval_at};
use wardian::{Error, Input, Python, PythonResult, Run, RunResult, Sandbox, WriteOptions};

use crate::answer::{Answer, Mistake, halves};
use crate::arguments::Arguments;
use crate::server::Call;

/// How often a client is told about a call that runs.
const TICK: Duration = Duration::from_millis(500);
/// How much input a command may be given.
const LONGEST_INPUT: usize = 4 << 20;
/// How long code may be.
const LONGEST_CODE: usize = 1 << 20;
/// How many outputs that were cut are kept in a sandbox; then the oldest is replaced.
const KEPT: u64 = 32;

/// `run_command`.
pub(crate) async fn command(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let command = arguments.text("command", call.options.limits.command_bytes)?;
    let name = arguments.name("sandbox")?;
    let timeout =
        arguments.seconds("timeout_seconds", call.options.max_timeout)?.unwrap_or(call.options.timeout);
    let cwd = arguments.optional_text("cwd", 4096)?;
    let stdin = arguments.optional_text("stdin", LONGEST_INPUT)?;
    let env = arguments.variables("env")?;
    arguments.finish()?;
    let (sandbox, name) = call.boxes.get(name.as_deref()).await?;
    // What one command sets for itself, such as `set -e`, must not break the ones after it.
    let mut run =
        Run::new(command).timeout(Some(timeout)).contained(true).on_output_call(call.progress.listener());
    if let Some(cwd) = cwd {
        run = run.cwd(cwd);
    }
    if let Some(stdin) = stdin {
        run = run.stdin(Input::bytes(stdin.into_bytes()));
    }
    for (variable, value) in env {
        run = run.env(variable, value);
    }
    let result = watched(call, sandbox.run_with(run)).await?;
    let shown = shown(call, &sandbox, call.progress.output(&result)).await;
    Ok(answer(&name, &result, shown, String::new()))
}

/// `run_python`.
pub(crate) async fn python(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let code = arguments.text("code", LONGEST_CODE)?;
    let name = arguments.name("sandbox")?;
    let context = arguments.name("context")?;
    let timeout =
        arguments.seconds("timeout_seconds", call.options.max_timeout)?.unwrap_or(call.options.timeout);
    arguments.finish()?;
    let (sandbox, name) = call.boxes.get(name.as_deref()).await?;
    let mut python = Python::new(code).timeout(Some(timeout)).on_output_call(call.progress.listener());
    if let Some(context) = context {
        python = python.context(context);
    }
    let result = watched(call, sandbox.python_with(python)).await?;
    let shown = shown(call, &sandbox, whole(call.progress.output(&result.run), &result)).await;
    let mut answer = answer(&name, &result.run, shown, String::new());
    answer.data["value"] = json!(
        result.value.as_ref().map(|value| &value.repr).filter(|repr| repr.len() <= call.options.max_output)
    );
    answer.data["error"] = json!(result.error.as_ref().map(|error| &error.name));
    answer.failed = answer.failed || result.error.is_some();
    let values = result.displays.into_iter().chain(result.value);
    answer.images = values.filter_map(|value| value.png).collect();
    Ok(answer)
}

/// What a notebook would show: the output, then the values, then the traceback.
fn whole(output: String, result: &PythonResult) -> String {
    let mut text = output;
    let mut add = |more: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(more);
    };
    for display in &result.displays {
        add(&display.repr);
    }
    if let Some(value) = &result.value {
        add(&value.repr);
    }
    if let Some(error) = &result.error {
        add(&error.traceback.join("\n"));
    }
    text
}

/// Waits for a run, tells the client of it now and then, and drops it, which kills it, when the client gives up.
pub(crate) async fn watched<T>(
    call: &Call<'_>,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Mistake> {
    let mut work = pin!(work);
    let mut tick = interval_at(tokio::time::Instant::now() + TICK, TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done?),
            () = call.context.ct.cancelled() => return Err(Mistake::new("cancelled by the client")),
            _ = tick.tick() => call.progress.tell(call.context).await,
        }
    }
}

/// Output as the model sees it, and where the whole is if that was too long.
pub(crate) struct Shown {
    pub(crate) text: String,
    pub(crate) file: Option<String>,
}

/// Cuts output that is too long for a model in the middle, and keeps the whole in a file of the sandbox.
pub(crate) async fn shown(call: &Call<'_>, sandbox: &Sandbox, output: String) -> Shown {
    let Some((head, tail, missing)) = halves(&output, call.options.max_output) else {
        return Shown { text: output, file: None };
    };
    let path = format!("/tmp/output-{}.txt", call.next_output() % KEPT + 1);
    let options = WriteOptions { parents: true, ..WriteOptions::default() };
    let (note, file) = match sandbox.write_file_with(&path, output.as_bytes(), options).await {
        Ok(()) => (format!("the whole output is in {path}"), Some(path)),
        Err(error) => (format!("the whole output could not be kept: {error}"), None),
    };
    Shown { text: format!("{head}\n[… {missing} characters left out; {note} …]\n{tail}"), file }
}

/// The answer for a run.
fn answer(name: &str, result: &RunResult, shown: Shown, before: String) -> Answer {
    let mut text = before + shown.text.trim_end_matches('\n');
    if !text.is_empty() {
        text.push('\n');
    }
    let class = result.error_class.map(wardian::ErrorClass::name);
    let limit = result.limit.map(wardian::Limit::name);
    text.push_str(&format!("[exit code {}", result.exit_code));
    for note in
        [class.map(str::to_owned), limit.map(|limit| format!("limit reached: {limit}"))].into_iter().flatten()
    {
        text.push_str(", ");
        text.push_str(&note);
    }
    text.push(']');
    let data = json!({
        "sandbox": name,
        "exit_code": result.exit_code,
        "output": shown.text,
        "output_file": shown.file,
        "truncated": result.truncated.stdout || result.truncated.stderr,
        "error_class": class,
        "limit": limit,
        "duration_ms": u64::try_from(result.duration.as_millis()).unwrap_or(u64::MAX),
    });
    // A command that fails is news for the model, not a failure of the tool; one that was stopped is one.
    Answer { failed: result.error_class.is_some(), ..Answer::new(text, data) }
}
