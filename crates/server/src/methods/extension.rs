//! Extensions: commands in the sandbox that are functions of the client, called by `extension.invoke`.

use std::sync::Arc;

use serde_json::{Value, json};
use wardian::{Extension, ExtensionAnswer as Answer, ExtensionSpec, Invocation, PythonPackage};

use crate::callback::Callbacks;
use crate::params::{Params, text};
use crate::rpc::RpcError;

/// Reads a spec.
pub(super) fn extension(mut params: Params, callbacks: &Arc<Callbacks>) -> Result<Extension, RpcError> {
    let package = params.object("pythonPackage")?.map(python_package).transpose()?;
    let has_command = params.flag("hasCommand")?.unwrap_or(true);
    let spec = ExtensionSpec {
        name: params.required_string("name")?,
        description: params.string("description")?.unwrap_or_default(),
        usage: params.string("usage")?.unwrap_or_default(),
        examples: params.strings("examples")?.unwrap_or_default(),
        category: params.string("category")?.unwrap_or_default(),
        python_package: package,
    };
    params.done()?;
    if !has_command {
        return Ok(Extension::package(spec));
    }
    let (name, callbacks) = (spec.name.clone(), callbacks.clone());
    Ok(Extension::function(spec, move |invocation| invoke(callbacks.clone(), name.clone(), invocation)))
}

fn python_package(mut package: Params) -> Result<PythonPackage, RpcError> {
    let files = match package.object("files")? {
        Some(files) => files.all_strings()?,
        None => Vec::new(),
    };
    let read = PythonPackage {
        version: package.string("version")?.unwrap_or_default(),
        summary: package.string("summary")?.unwrap_or_default(),
        files: files.into_iter().collect(),
    };
    package.done_with(read)
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
