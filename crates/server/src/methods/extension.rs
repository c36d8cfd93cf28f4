//! Extensions: commands in the sandbox that are functions of the client, called by `extension.invoke`.

use std::sync::Arc;

use serde_json::{Value, json};
use wardian::{Extension, ExtensionAnswer as Answer, ExtensionSpec, Invocation, PythonPackage};

use crate::callback::Callbacks;
use crate::params::{Params, text};
use crate::rpc::RpcError;

/// Reads a spec.
pub(super) fn extension(spec: &mut Params, callbacks: &Arc<Callbacks>) -> Result<Extension, RpcError> {
    let package = match spec.object("pythonPackage")? {
        Some(mut package) => Some(python_package(&mut package)?),
        None => None,
    };
    let has_command = spec.flag("hasCommand")?.unwrap_or(true);
    let spec = ExtensionSpec {
        name: spec.required_string("name")?,
        description: spec.string("description")?.unwrap_or_default(),
        usage: spec.string("usage")?.unwrap_or_default(),
        examples: spec.strings("examples")?.unwrap_or_default(),
        category: spec.string("category")?.unwrap_or_default(),
        python_package: package,
    };
    if !has_command {
        return Ok(Extension::package(spec));
    }
    let (name, callbacks) = (spec.name.clone(), callbacks.clone());
    Ok(Extension::function(spec, move |invocation| invoke(callbacks.clone(), name.clone(), invocation)))
}

fn python_package(package: &mut Params) -> Result<PythonPackage, RpcError> {
    let files = match package.object("files")? {
        Some(files) => files.all_strings()?,
        None => Vec::new(),
    };
    Ok(PythonPackage {
        version: package.string("version")?.unwrap_or_default(),
        summary: package.string("summary")?.unwrap_or_default(),
        files: files.into_iter().collect(),
    })
}

/// Calls the client. If the command that called it is killed meanwhile, this is dropped.
async fn invoke(callbacks: Arc<Callbacks>, name: String, invocation: Invocation) -> Answer {
    let Invocation { args, stdin, env, cwd } = invocation;
    let params = json!({ "name": name, "args": args, "stdin": text(&stdin), "env": env, "cwd": cwd });
    let answered = callbacks.call("extension.invoke", params).await;
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
