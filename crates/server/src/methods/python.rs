//! `python.run`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wardian::{Input, Python, PythonResult, PythonValue};
use wardian_contract::params::RunPython;

use super::run::{Shape, Told, in_turn, object};
use super::{Prepared, asked};
use crate::params::Params;
use crate::session::Session;

pub(super) fn run(session: &Arc<Session>, id: Option<&Value>, params: &mut Params) -> Prepared {
    let (entry, asked) = asked::<RunPython>(session, params)?;
    let mut python = Python::new(asked.code);
    if let Some(context) = asked.context {
        python = python.context(context);
    }
    if let Some(stdin) = asked.stdin {
        python = python.stdin(Input::bytes(stdin.0));
    }
    if let Some(timeout) = asked.timeout_ms {
        python = python.timeout(timeout.0);
    }
    let shape = Shape::new(asked.encoding, asked.output);
    let stream = Told::new(session, id, asked.stream, shape.encoding);
    let session = session.clone();
    in_turn(&entry, id, shape, move |sandbox, entered| async move {
        let python = python.cancelled_by(entered.cancel.clone());
        let result = match stream {
            Some(told) => {
                let (result, heard) =
                    told.listen(|listener| sandbox.python_with(python.on_output(listener))).await;
                let mut result = result?;
                result.run = told.complete(result.run, heard).await;
                result
            }
            None => sandbox.python_with(python).await?,
        };
        drop(entered);
        // What is shown can be as long as the output: not on a thread that others wait for.
        Ok(session.aside(move || answer(&result, shape)).await)
    })
}

/// The result of a run, and what only code in an interpreter has.
fn answer(result: &PythonResult, shape: Shape) -> Value {
    let mut answer = object(&result.run, shape);
    let Some(parts) = answer.as_object_mut() else { return answer };
    if let Some(shown) = &result.value {
        parts.insert("value".into(), value(shown));
    }
    if !result.displays.is_empty() {
        parts.insert("displays".into(), result.displays.iter().map(value).collect());
    }
    if let Some(error) = &result.error {
        let error = json!({ "type": error.name, "message": error.message, "traceback": error.traceback });
        parts.insert("error".into(), error);
    }
    if result.truncated {
        parts.insert("valueTruncated".into(), json!(true));
    }
    answer
}

fn value(value: &PythonValue) -> Value {
    let mut parts = Map::new();
    parts.insert("repr".into(), json!(value.repr));
    for (name, shown) in [("html", &value.html), ("png", &value.png)] {
        if let Some(shown) = shown {
            parts.insert(name.into(), json!(shown));
        }
    }
    if let Some(shown) = &value.json {
        parts.insert("json".into(), shown.clone());
    }
    Value::Object(parts)
}
