//! Archives that are larger than they look, or not what they were.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{Attacker, unharmed};
use crate::client::Client;

/// Content that packs well: many files, long runs of zeros.
const FILL: &str =
    "mkdir /tmp/d; for i in {1..300}; do : > /tmp/d/$i; done; head -c 25000000 /dev/zero > /tmp/f";

/// What one sandbox exports, another with less room imports.
pub(super) fn exchanged(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut large = attacker.client()?;
    large.ask("run", json!({ "command": FILL }))?;
    let exported = large.ask("persistence.export", json!({}))?;
    let data = exported["result"]["data"].clone();
    let mut small = Client::connect(attacker.socket)?;
    let limit = 1 << (12 + attacker.dice.below(10));
    small.call("create", json!({ "fsLimitBytes": limit, "limits": { "memoryBytes": 32 << 20 } }))?;
    for _ in 0..4 {
        small.ask("persistence.import", json!({ "data": data }))?;
    }
    let mut wrong = unharmed(large, attacker.socket)?;
    wrong.extend(unharmed(small, attacker.socket)?);
    Ok(wrong)
}

/// A good archive with a few bytes changed, cut or repeated.
pub(super) fn garbled(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    client.ask("run", json!({ "command": "echo hello > /tmp/x; y=1" }))?;
    let exported = client.ask("persistence.export", json!({}))?;
    let good = STANDARD.decode(exported["result"]["data"].as_str().unwrap_or_default()).unwrap_or_default();
    for _ in 0..20 {
        let mut bad = good.clone();
        for _ in 0..1 + attacker.dice.below(4) {
            let at = attacker.dice.below(bad.len());
            match attacker.dice.below(3) {
                0 if !bad.is_empty() => bad[at] ^= 1 << attacker.dice.below(8),
                1 => bad.truncate(at),
                _ => bad.extend_from_slice(&good[at.min(good.len())..]),
            }
        }
        client.ask("persistence.import", json!({ "data": STANDARD.encode(bad) }))?;
    }
    unharmed(client, attacker.socket)
}
