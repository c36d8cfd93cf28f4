//! `network.request`: the client's own say in each HTTP request of its sandboxes.

use std::sync::Arc;

use serde_json::{Value, json};
use wardian::net::{Answer, BoxFuture, Decision, OnRequest, RequestInfo};

use crate::callback::Callbacks;
use crate::params::{Params, text};

/// The most headers of an answer, and the most bytes that they have together.
const HEADERS: usize = 128;
const HEADER_BYTES: usize = 64 << 10;

/// Asks the client. Whatever is not a clear answer denies the request: an error, nonsense, or that the client is gone.
pub(super) struct AskClient(Arc<Callbacks>);

impl AskClient {
    pub(super) fn new(callbacks: &Arc<Callbacks>) -> AskClient {
        AskClient(callbacks.clone())
    }
}

impl OnRequest for AskClient {
    fn on_request<'a>(&'a self, request: &'a RequestInfo) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let headers = request.headers.iter().map(|(name, value)| name.len() + value.len() + 8);
            let bytes = request.target.len() + headers.sum::<usize>();
            let asked = request.clone();
            let answered = self.0.call("network.request", bytes, move || describe(&asked)).await;
            answered.and_then(read).unwrap_or_else(|why| {
                // Not for the guest: it is about the client.
                tracing::warn!(why, "network.request was not answered; the request is denied");
                Decision::Deny("onRequest failed".into())
            })
        })
    }
}

/// The params of a call.
fn describe(request: &RequestInfo) -> Value {
    let headers = request.headers.iter().map(|(name, value)| json!([name, text(value)]));
    json!({
        "scheme": request.scheme,
        "host": request.host,
        "port": request.port,
        "method": request.method,
        "path": request.target,
        "headers": headers.collect::<Vec<_>>(),
    })
}

/// Reads the client's answer. An error says what is wrong with it.
fn read(answer: Value) -> Result<Decision, String> {
    let Value::Object(answer) = answer else { return Err("the answer is not an object".into()) };
    let mut answer = Params::new(answer);
    let decision = match answer.required_string("action").map_err(message)?.as_str() {
        "allow" => Decision::Allow,
        "deny" => {
            let reason = answer.string("reason").map_err(message)?;
            Decision::Deny(reason.unwrap_or_else(|| "denied by onRequest".into()))
        }
        "answer" => Decision::Answer(read_answer(&mut answer)?),
        _ => return Err("action must be \"allow\", \"deny\" or \"answer\"".into()),
    };
    answer.done_with(decision).map_err(message)
}

fn read_answer(answer: &mut Params) -> Result<Answer, String> {
    let status = answer.number("status").map_err(message)?.unwrap_or(200);
    let status = u16::try_from(status).ok().filter(|status| (200..600).contains(status));
    let headers = match answer.object("headers").map_err(message)? {
        Some(headers) => headers.all_strings().map_err(message)?,
        None => Vec::new(),
    };
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if headers.len() > HEADERS || bytes > HEADER_BYTES {
        return Err(format!("more than {HEADERS} headers, or {HEADER_BYTES} bytes of them"));
    }
    Ok(Answer {
        status: status.ok_or("status must be from 200 to 599")?,
        headers,
        body: answer.bytes("data").map_err(message)?.unwrap_or_default().into(),
    })
}

fn message(error: crate::rpc::RpcError) -> String {
    error.message
}
