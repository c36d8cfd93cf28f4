//! Connections to programs in the sandbox, by those who do not keep to the rules.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Attacker, unharmed};

/// Programs that listen: one that takes everything, one that never stops sending, one that never accepts.
const SERVERS: &[&str] = &[
    "nc -l -k 8000 > /dev/null",
    "while :; do yes | nc -l 8000 > /dev/null; done",
    "python3 -c 'import socket, time\ns = socket.create_server((\"\", 8000))\ntime.sleep(9)'",
    "python3 -m http.server 8000 > /dev/null 2>&1",
];

/// Many streams, writes that nobody waits for, acknowledgements of what never came, and streams that are closed twice.
pub(super) fn streams(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    let server = *attacker.dice.pick(SERVERS);
    let run = client.send("run", json!({ "command": server, "timeoutMs": 2_500 }))?;
    let large = STANDARD.encode(vec![b'x'; 1 << 20]);
    let mut streams: Vec<Value> = Vec::new();
    let mut calls = Vec::new();
    for _ in 0..200 {
        let stream = match streams.is_empty() {
            true => json!(1),
            false => attacker.dice.pick(&streams).clone(),
        };
        match attacker.dice.below(12) {
            0..=4 => {
                let port = if attacker.dice.once_in(5) { attacker.dice.below(70_000) } else { 8_000 };
                let answer = client.ask("net.connect", json!({ "port": port }))?;
                streams.extend(answer["result"].get("streamId").cloned());
            }
            5..=7 => calls.push(client.send("net.write", json!({ "streamId": stream, "data": large }))?),
            8 => {
                let bytes = *attacker.dice.pick(&[0, 1, 1 << 20, u64::MAX]);
                calls.push(client.send("net.ack", json!({ "streamId": stream, "bytes": bytes }))?);
            }
            9 => calls.push(client.send("net.closeWrite", json!({ "streamId": stream }))?),
            10 => calls.push(client.send("net.close", json!({ "streamId": stream }))?),
            _ => calls.push(client.send("net.url", json!({ "port": 8_000 }))?),
        }
    }
    // Those who are gone with their streams open are the rule.
    if attacker.dice.once_in(3) {
        return Ok(Vec::new());
    }
    client.ask("cancel", json!({}))?;
    client.answer(run)?;
    for call in calls {
        client.answer(call)?;
    }
    unharmed(client, attacker.socket)
}
