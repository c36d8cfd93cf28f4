//! Processes beside the shell: started, written to, signalled and abandoned in any order.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Attacker, unharmed};

/// Some read, some write without end, some can hardly be ended, some end by themselves.
const COMMANDS: &[&str] = &[
    "cat",
    "cat > /dev/null",
    "yes",
    "yes >&2",
    "sleep 1000",
    "trap '' TERM INT HUP; while :; do :; done",
    "( sleep 1000 & ); exit 3",
    "read x; kill -STOP $$",
    "f() { f | f & }; f; wait",
    "head -c 3000000 /dev/zero; exit 0",
    "exec 0<&- 1>&- 2>&-; sleep 1000",
];
const SIGNALS: &[&str] = &["TERM", "KILL", "STOP", "CONT", "INT", "HUP", "WINCH", "NONE", ""];

/// A flood of all calls there are for them.
pub(super) fn beside_the_shell(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    // The second makes a terminal show a long line again and again.
    let floods = [vec![b'x'; 900_000], [vec![1; 4095], vec![0x12; 100_000]].concat()];
    let floods = floods.map(|flood| STANDARD.encode(flood));
    let mut ids: Vec<Value> = Vec::new();
    for _ in 0..250 {
        let id = if ids.is_empty() { json!("1") } else { attacker.dice.pick(&ids).clone() };
        match attacker.dice.below(12) {
            0..=3 => {
                let mut params = json!({ "command": attacker.dice.pick(COMMANDS), "stdin": true });
                if attacker.dice.once_in(4) {
                    params["pty"] = json!({ "rows": 24, "columns": attacker.dice.below(300) });
                }
                if attacker.dice.once_in(20) {
                    let many = (0..18_000).map(|number| (format!("v{number}"), json!("")));
                    params["env"] =
                        Value::Object(many.chain([("PATH".to_owned(), json!(":".repeat(300)))]).collect());
                    params["command"] = Value::Null;
                    params["argv"] = json!(["x".repeat(60_000)]);
                }
                if attacker.dice.once_in(3) {
                    params["timeoutMs"] = json!(attacker.dice.below(300) + 1);
                }
                let started = client.ask("process.start", params)?;
                ids.extend(started["result"].get("processId").cloned());
            }
            4..=5 => {
                let flood = attacker.dice.pick(&floods);
                client.send("process.write", json!({ "processId": id, "data": flood }))?;
            }
            6 => drop(client.send("process.write", json!({ "processId": id, "data": "eAo=" }))?),
            7..=8 => {
                let signal = *attacker.dice.pick(SIGNALS);
                client.send("process.signal", json!({ "processId": id, "signal": signal }))?;
            }
            9 => {
                let bytes = *attacker.dice.pick(&[1, 65_536, 262_144, u64::MAX]);
                client.send("process.ack", json!({ "processId": id, "bytes": bytes }))?;
            }
            10 => drop(client.send("process.closeStdin", json!({ "processId": id }))?),
            _ => drop(client.send("process.resize", json!({ "processId": id, "rows": 0, "columns": 9 }))?),
        }
    }
    // Those who are gone with their processes running are the rule.
    if attacker.dice.once_in(2) {
        return Ok(Vec::new());
    }
    for id in &ids {
        client.send("process.signal", json!({ "processId": id, "signal": "KILL" }))?;
    }
    unharmed(client, attacker.socket)
}
