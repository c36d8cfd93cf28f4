//! Changes of an overlay, to the host: shown to the person at the client first, where the client can ask.

use std::fmt::Write as _;

use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputRequiredResult, ProtocolVersion, ServerRequest,
};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use wardian::Sandbox;

use crate::answer::{Answer, Mistake, halves};
use crate::arguments::Arguments;
use crate::run::shown;
use crate::server::Call;

/// How many characters of a difference a person is shown with the question.
const ASKED: usize = 8000;
/// The name of the question, and of its one field.
const QUESTION: &str = "apply";

/// What a call comes to: an answer, or a question to be answered before it is called again.
pub(crate) enum Outcome {
    Answer(Answer),
    Question(InputRequiredResult),
}

/// `apply_changes`.
pub(crate) async fn apply(call: &Call<'_>, mut arguments: Arguments) -> Result<Outcome, Mistake> {
    let overlays = call.options.overlays();
    let only = if let [only] = overlays[..] { Some(only) } else { None };
    let path = arguments.path("path", only)?;
    let dry_run = arguments.flag("dry_run")?;
    let name = arguments.name("sandbox")?;
    arguments.finish()?;
    if !overlays.contains(&path.as_str()) {
        return Err(Mistake::new(format!(
            "{path} is not an overlay of a host directory; there are {}",
            overlays.join(", ")
        )));
    }
    let (sandbox, name) = call.boxes.get(name.as_deref()).await?;
    let diff = difference(&sandbox, &path).await?;
    if diff.is_empty() {
        return Ok(Outcome::Answer(Answer::new(
            "nothing has changed",
            json!({"sandbox": name, "path": path, "applied": 0}),
        )));
    }
    if !dry_run {
        match consent(call, &path, &diff).await? {
            Consent::Given => {}
            Consent::Refused => {
                return Err(Mistake::new("the user declined; nothing was changed on the host"));
            }
            Consent::Asked(question) => return Ok(Outcome::Question(question)),
        }
        // What is applied is what was shown.
        if difference(&sandbox, &path).await? != diff {
            return Err(Mistake::new(
                "the files changed meanwhile; nothing was changed on the host: call it again",
            ));
        }
    }
    let applied = sandbox.apply(&path, dry_run).await?.len();
    let noun = if applied == 1 { "change" } else { "changes" };
    let what = if dry_run { "would be applied" } else { "applied to the host" };
    let shown = shown(call, &sandbox, diff).await;
    let data = json!({"sandbox": name, "path": path, "applied": if dry_run { 0 } else { applied }, "dry_run": dry_run});
    Ok(Outcome::Answer(Answer::new(format!("{applied} {noun} {what}\n{}", shown.text), data)))
}

async fn difference(sandbox: &Sandbox, path: &str) -> Result<String, Mistake> {
    Ok(String::from_utf8_lossy(&sandbox.diff_text(path).await?).into_owned())
}

enum Consent {
    Given,
    Refused,
    Asked(InputRequiredResult),
}

/// Asks the person at the client. A client that cannot ask decides by the tool's annotations whether to call it at all.
async fn consent(call: &Call<'_>, path: &str, diff: &str) -> Result<Consent, Mistake> {
    if call.context.client_capabilities().is_none_or(|client| client.elicitation.is_none()) {
        return Ok(Consent::Given);
    }
    let state = digest(diff);
    // Since 2026-07-28 a server asks in its answer, and is called again with the reply.
    if call.context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
        let Some(replies) = &call.replies else {
            let requests = InputRequests::from([(
                QUESTION.to_owned(),
                InputRequest::Elicitation(question(path, diff)?),
            )]);
            return Ok(Consent::Asked(InputRequiredResult::new(Some(requests), Some(state))));
        };
        if call.state.as_deref() != Some(state.as_str()) {
            return Err(Mistake::new(
                "the files changed meanwhile; nothing was changed on the host: call it again",
            ));
        }
        let reply = replies.get(QUESTION);
        let agreed =
            reply.is_some_and(|reply| reply["action"] == "accept" && reply["content"][QUESTION] == true);
        return Ok(if agreed { Consent::Given } else { Consent::Refused });
    }
    let asking = call.context.peer.send_request(ServerRequest::ElicitRequest(question(path, diff)?));
    let reply = tokio::select! {
        reply = asking => reply.map_err(|error| Mistake::new(format!("the user could not be asked: {error}")))?,
        () = call.context.ct.cancelled() => return Err(Mistake::new("cancelled by the client")),
    };
    let ClientResult::ElicitResult(reply) = reply else {
        return Err(Mistake::new("the user could not be asked: the client sent something else"));
    };
    let agreed = reply.action == ElicitationAction::Accept
        && reply.content.is_some_and(|content| content[QUESTION] == true);
    Ok(if agreed { Consent::Given } else { Consent::Refused })
}

fn question(path: &str, diff: &str) -> Result<ElicitRequest, Mistake> {
    let shown = halves(diff, ASKED).map_or_else(
        || diff.to_owned(),
        |(head, tail, missing)| format!("{head}\n[… {missing} characters left out …]\n{tail}"),
    );
    let schema = json!({
        "type": "object",
        "properties": {QUESTION: {"type": "boolean", "title": "Apply", "description": "Apply these changes to the host directory"}},
        "required": [QUESTION],
    });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema)
        .map_err(|error| Mistake::new(format!("the user could not be asked: {error}")))?;
    let message = format!("Apply these changes of {path} to the host directory?\n\n{shown}");
    Ok(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    }))
}

fn digest(diff: &str) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(diff.as_bytes()) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
