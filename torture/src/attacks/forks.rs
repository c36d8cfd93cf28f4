//! Families of sandboxes, alive all at once.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Attacker, unharmed};

/// How many sandboxes such an attacker has.
pub(super) const MOST: usize = 9;

const FILL: &str = "x=$(head -c 4000000 /dev/zero | tr '\\0' x); head -c 8000000 /dev/zero > /tmp/f; y=$x";

/// Forks of a large sandbox that all write, some of them destroyed meanwhile.
pub(super) fn many(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    client.ask("run", json!({ "command": FILL }))?;
    let forked = client.ask("sandbox.fork", json!({ "count": MOST - 1 }))?;
    let ids: Vec<Value> = forked["result"]["sandboxIds"].as_array().cloned().unwrap_or_default();
    let mut runs = Vec::new();
    for id in &ids {
        let script = *attacker.dice.pick(&[
            "x=$x$x$x; yes > /tmp/g",
            "( x=$x$x; sleep 1000 ) & ( x=$x$x; sleep 1000 ) & wait",
            "rm /tmp/f; while :; do ( : ); done",
        ]);
        runs.push(client.send("run", json!({ "sandboxId": id, "command": script }))?);
        if attacker.dice.once_in(3) {
            client.send("sandbox.destroy", json!({ "sandboxId": attacker.dice.pick(&ids) }))?;
        }
    }
    for run in runs {
        client.answer(run)?;
    }
    unharmed(client, attacker.socket)
}

/// Many forks of a shell with some megabytes, which all copy a part of it at once. Together they have less than
/// [`MOST`] sandboxes may.
pub(super) fn storm(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    client.ask("run", json!({ "command": "printf -v x '%3000000s' y" }))?;
    let forked = client.ask("sandbox.fork", json!({ "count": 60 }))?;
    let ids: Vec<Value> = forked["result"]["sandboxIds"].as_array().cloned().unwrap_or_default();
    let mut calls = Vec::new();
    for id in &ids {
        let script = *attacker.dice.pick(&["x=b$x", "( x=b$x ); : ", "y=1"]);
        calls.push(client.send("run", json!({ "sandboxId": id, "command": script }))?);
    }
    for id in &ids {
        calls.push(client.send("sandbox.destroy", json!({ "sandboxId": id }))?);
    }
    for call in calls {
        client.answer(call)?;
    }
    unharmed(client, attacker.socket)
}

/// Forks of a larger shell, far more of them; the client leaves while they run. Most of them share what they have.
pub(super) fn abandoned_storm(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    client.ask("run", json!({ "command": "printf -v x '%8000000s' y" }))?;
    let forked = client.ask("sandbox.fork", json!({ "count": 220 }))?;
    let ids: Vec<Value> = forked["result"]["sandboxIds"].as_array().cloned().unwrap_or_default();
    for id in &ids {
        let script =
            *attacker.dice.pick(&["x=b$x", "y=1", "y=1 ", "while :; do :; done", "sleep 100", "( : )"]);
        client.send("run", json!({ "sandboxId": id, "command": script }))?;
    }
    if let Some(id) = ids.last() {
        client.ask("files.stat", json!({ "sandboxId": id, "path": "/tmp" }))?;
    }
    Ok(Vec::new())
}

/// Snapshots taken and restored in between.
pub(super) fn snapshots(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    let mut kept = Vec::new();
    for round in 0..MOST - 1 {
        client.ask(
            "run",
            json!({ "command": format!("echo {round} > /tmp/n; head -c 1000000 /dev/zero > /tmp/z") }),
        )?;
        let taken = client.ask("snapshot.create", json!({}))?;
        if let Some(id) = taken["result"].get("id") {
            kept.push(id.clone());
        }
        if !kept.is_empty() && attacker.dice.once_in(2) {
            client.ask("snapshot.restore", json!({ "id": attacker.dice.pick(&kept) }))?;
        }
    }
    unharmed(client, attacker.socket)
}
