//! Sandboxes as values: creating, forking, snapshots, destroying.

use serde_json::json;

use crate::answer::{Answer, Mistake};
use crate::arguments::Arguments;
use crate::server::Call;

/// `create_sandbox`.
pub(crate) async fn create(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let label = arguments.name("label")?.unwrap_or_default();
    arguments.finish()?;
    let name = call.boxes.create(label).await?;
    Ok(Answer::new(format!("created the sandbox {name}"), json!({"sandbox": name})))
}

/// `list_sandboxes`.
pub(crate) fn list(call: &Call<'_>, arguments: Arguments) -> Result<Answer, Mistake> {
    arguments.finish()?;
    let boxes = call.boxes.list();
    let line = |one: &serde_json::Value| {
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        let running = if one["running"] == true { ", running a command" } else { "" };
        let label = text("label");
        let label = if label.is_empty() { label } else { format!(" ({label})") };
        format!("{}{label}{running}", text("sandbox"))
    };
    let mut text: Vec<String> = boxes.iter().map(line).collect();
    if text.is_empty() {
        text.push("none yet; a call that names no sandbox creates 'main'".to_owned());
    }
    Ok(Answer::new(text.join("\n"), json!({"sandboxes": boxes})))
}

/// `destroy_sandbox`.
pub(crate) async fn destroy(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let name = arguments.name("sandbox")?.ok_or_else(|| Mistake::new("the argument 'sandbox' is missing"))?;
    arguments.finish()?;
    call.boxes.destroy(&name).await?;
    Ok(Answer::new(format!("destroyed the sandbox {name}"), json!({"sandbox": name})))
}

/// `fork_sandbox`.
pub(crate) async fn fork(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let name = arguments.name("sandbox")?;
    let most = call.options.max_sandboxes as u64;
    let count = arguments.number("count", 1, most)?.unwrap_or(1);
    arguments.finish()?;
    let count = usize::try_from(count).map_err(|_| Mistake::new("too many forks"))?;
    let forks = call.boxes.fork(name.as_deref(), count).await?;
    Ok(Answer::new(format!("forked: {}", forks.join(", ")), json!({"sandboxes": forks})))
}

/// `snapshot`.
pub(crate) async fn snapshot(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let name = arguments.name("sandbox")?;
    arguments.finish()?;
    let snapshot = call.boxes.snapshot(name.as_deref()).await?;
    Ok(Answer::new(format!("took the snapshot {snapshot}"), json!({"snapshot": snapshot})))
}

/// `restore`.
pub(crate) async fn restore(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let snapshot = arguments.text("snapshot", 256)?;
    let name = arguments.name("sandbox")?;
    arguments.finish()?;
    let name = call.boxes.restore(name.as_deref(), &snapshot).await?;
    Ok(Answer::new(
        format!("{name} is as it was in {snapshot}"),
        json!({"sandbox": name, "snapshot": snapshot}),
    ))
}
