//! What a client can make the server hold or do with calls alone: large answers, long names, much that is kept.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Attacker, unharmed};

/// How many sandboxes such an attacker has; what snapshots keep counts as one more.
pub(super) const MOST: usize = 5;

/// As many names as there is room for.
const WIDE: &str =
    "awk 'BEGIN { for (i = 0; i < 40000; i++) { f = \"/tmp/\" i; printf \"\" > f; close(f) } }'";

/// Listings of a wide directory in several forks at once, whose trees are then freed at once.
pub(super) fn listings(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    client.ask("run", json!({ "command": WIDE, "timeoutMs": 30_000 }))?;
    let forked = client.ask("sandbox.fork", json!({ "count": MOST - 1 }))?;
    let ids: Vec<Value> = forked["result"]["sandboxIds"].as_array().cloned().unwrap_or_default();
    let mut calls = Vec::new();
    for id in &ids {
        client.ask("run", json!({ "sandboxId": id, "command": "for f in /tmp/*9; do : > $f; done" }))?;
        calls.push(client.send("files.list", json!({ "sandboxId": id, "path": "/tmp" }))?);
        calls.push(client.send("persistence.export", json!({ "sandboxId": id }))?);
    }
    for id in &ids {
        calls.push(client.send("sandbox.remove", json!({ "sandboxId": id }))?);
    }
    for call in calls {
        client.answer(call)?;
    }
    unharmed(client, attacker.socket)
}

/// Files that are longer than they are.
pub(super) fn sparse(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    client.ask(
        "run",
        json!({ "command": "truncate -s 30M /tmp/a; truncate -s 4000G /tmp/b", "timeoutMs": 20_000 }),
    )?;
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(client.send("files.read", json!({ "path": "/tmp/a" }))?);
        calls.push(client.send("files.read", json!({ "path": "/tmp/b" }))?);
    }
    for call in calls {
        client.answer(call)?;
    }
    unharmed(client, attacker.socket)
}

/// Everything that the server keeps for a client, as long as it may be and longer.
pub(super) fn kept(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    let long = "x".repeat(4 << 20);
    for _ in 0..MOST - 1 {
        client.ask("sandbox.create", json!({ "label": long }))?;
        client.ask("env.set", json!({ "name": "V", "value": long }))?;
    }
    let data = STANDARD.encode(vec![7; 3 << 20]);
    for number in 0..30 {
        client.ask("mount", json!({ "path": format!("/m{number}"), "files": { "a": data } }))?;
    }
    let command = format!(": {}", "y".repeat(60_000));
    for _ in 0..200 {
        client.send("run", json!({ "command": command }))?;
    }
    client.ask("shell.history.list", json!({}))?;
    unharmed(client, attacker.socket)
}

/// Snapshots between which all files are replaced.
pub(super) fn snapshots(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    for _ in 0..20 {
        client.ask(
            "run",
            json!({ "command": "head -c 20000000 /dev/urandom > /tmp/f", "timeoutMs": 20_000 }),
        )?;
        client.ask("snapshot.create", json!({}))?;
    }
    unharmed(client, attacker.socket)
}
