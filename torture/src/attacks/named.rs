//! Sandboxes with names: saved, abandoned, opened again.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{Attacker, FILE_BYTES, MEMORY_BYTES};
use crate::client::{Client, PATIENCE};

/// Whatever happens to the client, the sandbox has what it had after the last answer.
pub(super) fn reopened(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let token = format!("torture-{:020}", attacker.dice.next());
    let mut client = connected(attacker, &token, Some("work"))?;
    let mut id = Value::Null;
    let mut wrong = Vec::new();
    for round in 0..4 {
        let script = format!("echo {round} > /tmp/n; head -c 1000000 /dev/urandom > /tmp/r; x={round}");
        client.call("run", with(&id, json!({ "command": script, "timeoutMs": 20_000 })))?;
        disturb(attacker, &mut client, &id, round)?;
        // The client goes without a word, some of its requests unanswered.
        drop(client);
        client = connected(attacker, &token, None)?;
        id = opened(&mut client)?;
        let script = json!({ "command": "echo $x $(cat /tmp/n)", "timeoutMs": 20_000 });
        let found = client.call("run", with(&id, script))?;
        if found["stdout"] != format!("{round} {round}\n") {
            wrong.push(format!("a sandbox that was saved after round {round} came back as {found}"));
        }
    }
    client.ask("sandbox.destroy", json!({ "sandboxId": id }))?;
    for name in ["work", "branch0", "branch1", "branch2", "branch3"] {
        client.ask("persistence.delete", json!({ "name": name }))?;
    }
    wrong.extend(client.leave());
    Ok(wrong)
}

fn connected(attacker: &Attacker<'_>, token: &str, name: Option<&str>) -> Result<Client> {
    let mut client = Client::connect(attacker.socket)?;
    let mut params = json!({
        "stateToken": token,
        "fsLimitBytes": FILE_BYTES,
        "limits": { "memoryBytes": MEMORY_BYTES },
    });
    if let Some(name) = name {
        params["persistence"] = json!({ "name": name });
    }
    client.call("create", params)?;
    Ok(client)
}

/// Params for a sandbox, or for the client's own.
fn with(id: &Value, mut params: Value) -> Value {
    if !id.is_null() {
        params["sandboxId"] = id.clone();
    }
    params
}

/// Calls that save, look, branch and go back at once, and a command that is cut off. None of them changes what is asked
/// for afterwards, as far as it is saved at all.
fn disturb(attacker: &mut Attacker<'_>, client: &mut Client, id: &Value, round: usize) -> Result<()> {
    for _ in 0..6 {
        match attacker.dice.below(6) {
            0 => client.send("persistence.save", with(id, json!({})))?,
            1 => client.send("persistence.log", json!({ "name": "work", "limit": 5 }))?,
            2 => client.send("persistence.diff", json!({ "name": "work", "from": "1", "to": "2" }))?,
            3 => client
                .send("persistence.branch", json!({ "name": "work", "newName": format!("branch{round}") }))?,
            4 => client.send("persistence.tag", json!({ "name": "work", "tag": "t", "commit": "1" }))?,
            // Refused, since it is open. Unanswered it might be done once the client is gone.
            _ => {
                client.ask("persistence.delete", json!({ "name": "work" }))?;
                continue;
            }
        };
    }
    client.send("run", with(id, json!({ "command": "yes > /tmp/big & sleep 100" })))?;
    std::thread::sleep(Duration::from_millis(attacker.dice.below(200) as u64));
    Ok(())
}

/// Opens the sandbox, once the server has let go of it.
fn opened(client: &mut Client) -> Result<Value> {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = client.ask("sandbox.open", json!({ "name": "work" }))?;
        match answer.get("result") {
            Some(opened) => return Ok(opened["sandboxId"].clone()),
            None if answer["error"]["data"]["errno"] == "EBUSY" && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(20));
            }
            None => bail!("a sandbox that was saved cannot be opened: {answer}"),
        }
    }
}
