//! Extensions: commands in the sandbox that are functions of the client, called by `extension.invoke`.

use std::sync::Arc;

use serde_json::{Value, json};
use wardian::{Extension, ExtensionAnswer as Answer, ExtensionSpec, Invocation, PythonPackage};
use wardian_contract::params;

use crate::callback::Callbacks;
use crate::params::{Params, text};
use crate::rpc::RpcError;

/// Returns what a spec describes.
pub(super) fn extension(given: params::Extension, callbacks: &Arc<Callbacks>) -> Extension {
    let spec = ExtensionSpec {
        name: given.name,
        description: given.description.unwrap_or_default(),
        usage: given.usage.unwrap_or_default(),
        examples: given.examples.unwrap_or_default(),
        category: given.category.unwrap_or_default(),
        python_package: given.python_package.map(python_package),
    };
    if !given.has_command.unwrap_or(true) {
        return Extension::package(spec);
    }
    let (name, callbacks) = (spec.name.clone(), callbacks.clone());
    Extension::function(spec, move |invocation| invoke(callbacks.clone(), name.clone(), invocation))
}

fn python_package(given: params::PythonPackage) -> PythonPackage {
    PythonPackage {
        version: given.version.unwrap_or_default(),
        summary: given.summary.unwrap_or_default(),
        files: given.files.unwrap_or_default().into_iter().collect(),
    }
}

/// Calls the client. If the command that called it is killed meanwhile, this is dropped.
async fn invoke(callbacks: Arc<Callbacks>, name: String, invocation: Invocation) -> Answer {
    let Invocation { args, stdin, env, cwd, .. } = invocation;
    let words = args.iter().map(|arg| arg.len() + 8).sum::<usize>()
        + env.iter().map(|(name, value)| name.len() + value.len() + 8).sum::<usize>();
    let (bytes, called) = (stdin.len() + words + cwd.len(), name.clone());
    let params = move || {
        // Moved, not copied: it can be long.
        let input = Value::String(String::from_utf8(stdin).unwrap_or_else(|error| text(error.as_bytes())));
        let mut params = json!({ "name": called, "args": args, "env": env, "cwd": cwd });
        params["stdin"] = input;
        params
    };
    let answered = callbacks.call("extension.invoke", bytes, params).await;
    match answered.and_then(read_answer) {
        Ok(answer) => answer,
        Err(message) => Answer::failure(1, format!("{name}: {message}\n")),
    }
}

/// Reads the client's response. What it leaves out is empty, and success.
fn read_answer(answer: Value) -> Result<Answer, String> {
    let Value::Object(answer) = answer else {
        return Err("the client's answer is not an object".to_owned());
    };
    let mut answer = Params::new(answer);
    let ill_typed = |error: RpcError| format!("the client's answer: {}", error.message);
    let code = answer.integer("exitCode").map_err(ill_typed)?.unwrap_or(0);
    Ok(Answer {
        // As `exit` has it: -1 is 255.
        exit_code: (code & 0xff) as u8,
        stdout: answer.string("stdout").map_err(ill_typed)?.unwrap_or_default().into_bytes(),
        stderr: answer.string("stderr").map_err(ill_typed)?.unwrap_or_default().into_bytes(),
    })
}
