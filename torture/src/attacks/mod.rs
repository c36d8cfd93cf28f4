//! Ways to attack. Each is a function of an attacker; what it returns was wrong.

mod archives;
mod e2b;
mod files;
mod floods;
mod forks;
mod http;
mod locks;
mod modules;
mod named;
mod ports;
mod processes;
mod python;
mod scripts;

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::client::Client;
use crate::dice::Dice;

/// What each attacker's sandbox may have; a whole attack may have no more than their sum.
pub(crate) const MEMORY_BYTES: usize = 64 << 20;
pub(crate) const FILE_BYTES: usize = 32 << 20;
/// The outputs, a request and its answer, what the guest's end of a connection holds.
pub(crate) const TALK_BYTES: usize = 24 << 20;

/// A way to attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// How many sandboxes it has at most.
    pub(crate) sandboxes: usize,
    pub(crate) run: fn(&mut Attacker<'_>) -> Result<Vec<String>>,
}

const ATTACKS: &[Attack] = &[
    Attack { name: "script", sandboxes: 1, run: scripts::hostile },
    Attack { name: "random-script", sandboxes: 1, run: scripts::random },
    Attack { name: "cancel", sandboxes: 1, run: scripts::cancelled },
    Attack { name: "vanish", sandboxes: 1, run: scripts::vanished },
    Attack { name: "calls", sandboxes: 1, run: modules::calls },
    Attack { name: "module", sandboxes: 1, run: modules::hostile },
    Attack { name: "garbled-module", sandboxes: 1, run: modules::garbled },
    Attack { name: "forks", sandboxes: forks::MOST, run: forks::many },
    Attack { name: "storm", sandboxes: forks::MOST, run: forks::storm },
    Attack { name: "abandoned-storm", sandboxes: 2 * forks::MOST, run: forks::abandoned_storm },
    Attack { name: "process", sandboxes: 1, run: processes::beside_the_shell },
    Attack { name: "locks", sandboxes: 1, run: locks::contended },
    Attack { name: "named", sandboxes: 3, run: named::reopened },
    Attack { name: "e2b", sandboxes: e2b::MOST, run: e2b::without_manners },
    Attack { name: "rest", sandboxes: http::MOST, run: http::rest },
    Attack { name: "websocket", sandboxes: 1, run: http::websocket },
    Attack { name: "mcp", sandboxes: http::MOST_OF_MODELS, run: http::mcp },
    Attack { name: "ports", sandboxes: 1, run: ports::streams },
    Attack { name: "python", sandboxes: 2, run: python::sessions },
    Attack { name: "snapshots", sandboxes: forks::MOST, run: forks::snapshots },
    Attack { name: "archive", sandboxes: 2, run: archives::exchanged },
    Attack { name: "garbled-archive", sandboxes: 1, run: archives::garbled },
    Attack { name: "lines", sandboxes: 1, run: floods::lines },
    Attack { name: "requests", sandboxes: 1, run: floods::requests },
    Attack { name: "connections", sandboxes: 0, run: floods::connections },
    Attack { name: "deaf", sandboxes: 1, run: floods::deaf },
    Attack { name: "listings", sandboxes: files::MOST, run: files::listings },
    Attack { name: "sparse", sandboxes: 1, run: files::sparse },
    Attack { name: "kept", sandboxes: files::MOST, run: files::kept },
    Attack { name: "rewritten-snapshots", sandboxes: 2, run: files::snapshots },
];

/// All attacks, or the one with this name.
pub(crate) fn named(name: Option<&str>) -> Result<Vec<&'static Attack>> {
    let chosen: Vec<_> =
        ATTACKS.iter().filter(|attack| name.is_none_or(|name| name == attack.name)).collect();
    if chosen.is_empty() {
        let names: Vec<_> = ATTACKS.iter().map(|attack| attack.name).collect();
        bail!("no attack is called '{}'; there are {}", name.unwrap_or_default(), names.join(", "));
    }
    Ok(chosen)
}

/// Somebody who means harm.
pub(crate) struct Attacker<'a> {
    pub(crate) socket: &'a Path,
    pub(crate) http: SocketAddr,
    pub(crate) dice: Dice,
}

impl Attacker<'_> {
    /// A client that has its sandbox.
    fn client(&self) -> Result<Client> {
        let mut client = Client::connect(self.socket)?;
        client.call("create", limits())?;
        Ok(client)
    }
}

fn limits() -> Value {
    json!({
        "timeoutMs": 400,
        "fsLimitBytes": FILE_BYTES,
        "limits": { "memoryBytes": MEMORY_BYTES },
    })
}

/// Inodes and bytes that there are, and those that the quota counts: what ships with every sandbox is in the first two alone.
const COUNT: &str = "kill -9 -1; sleep 0.02; \
    find / -xdev -printf '%i %b\\n' | sort -u | awk '{ n++; b += $2 } END { printf \"%d %d\\n\", n, b * 512 }'; \
    df -B1 --output=iused,used / | tail -n 1";
/// What a counted inode costs in addition to its content, with its names: more than nothing, and no more than this on average.
const INODE_BYTES: i64 = 4096;
/// What the two counts differ by without anything being wrong: `df` counts in blocks, and files that ship can be removed.
const BYTES_BAND: i64 = 64 << 10;

/// What is in the files of a sandbox, and what its quota says of that.
#[derive(Debug)]
struct Files {
    inodes: i64,
    bytes: i64,
    counted_inodes: i64,
    counted_bytes: i64,
}

impl Files {
    fn of(client: &mut Client) -> Result<Option<Files>> {
        let result = client.call("run", json!({ "command": COUNT, "timeoutMs": 30_000 }))?;
        let text = result["stdout"].as_str().unwrap_or_default();
        let numbers: Vec<i64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // A sandbox that is full may not have the memory or the processes to count.
        Ok(match (&numbers[..], result["limit"].is_null()) {
            (&[inodes, bytes, counted_inodes, counted_bytes], true) => {
                Some(Files { inodes, bytes, counted_inodes, counted_bytes })
            }
            _ => None,
        })
    }

    /// What is wrong here, if all is well with `fresh`: what is there and not counted is the same in every sandbox.
    fn compared_with(&self, fresh: &Files) -> Vec<String> {
        let mut wrong = Vec::new();
        let inodes = (self.inodes - fresh.inodes) - (self.counted_inodes - fresh.counted_inodes);
        if inodes != 0 {
            wrong.push(format!("{inodes} inodes are not counted, or counted twice"));
        }
        let beyond_content = (self.counted_bytes - fresh.counted_bytes) - (self.bytes - fresh.bytes);
        let metadata = (self.counted_inodes - fresh.counted_inodes).max(0) * INODE_BYTES;
        if !(-BYTES_BAND..=metadata + BYTES_BAND).contains(&beyond_content) {
            wrong.push(format!(
                "{beyond_content} bytes are counted beyond the files' content: {self:?}, {fresh:?}"
            ));
        }
        wrong
    }
}

/// Checks that the sandbox of a client still works and that its files add up, then leaves.
fn unharmed(mut client: Client, socket: &Path) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    // What a script left in the background may do to its own session what it likes, so it goes first.
    client.ask("run", json!({ "command": "kill -9 -1", "timeoutMs": 20_000 }))?;
    let alive = client.call("run", json!({ "command": "echo alive", "timeoutMs": 20_000 }))?;
    if alive["stdout"] != "alive\n" && alive["limit"].is_null() {
        wrong.push(format!("after an attack its own sandbox answers {alive}"));
    }
    let mut fresh = Client::connect(socket)?;
    fresh.call("create", json!({}))?;
    if let (Some(here), Some(there)) = (Files::of(&mut client)?, Files::of(&mut fresh)?) {
        wrong.extend(here.compared_with(&there));
    }
    wrong.extend(client.leave());
    wrong.extend(fresh.leave());
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Files = Files { inodes: 5_000, bytes: 9 << 20, counted_inodes: 8, counted_bytes: 20 << 10 };

    /// `FRESH` with so many more files of a mebibyte, of which some are counted, with what a name and an inode cost.
    fn with(files: i64, counted_inodes: i64, counted_contents: i64) -> Files {
        Files {
            inodes: FRESH.inodes + files,
            bytes: FRESH.bytes + (files << 20),
            counted_inodes: FRESH.counted_inodes + counted_inodes,
            counted_bytes: FRESH.counted_bytes + counted_inodes * 512 + (counted_contents << 20),
        }
    }

    #[test]
    fn what_is_counted_wrongly_is_noticed() {
        for (files, inodes, contents, wrong) in [
            (0, 0, 0, 0),
            (100, 100, 100, 0),
            (100, 99, 100, 1),
            (100, 100, 99, 1),
            (100, 100, 102, 1),
            (1, 2, 3, 2),
        ] {
            let told = with(files, inodes, contents).compared_with(&FRESH);
            assert_eq!(told.len(), wrong, "{files} {inodes} {contents}: {told:?}");
        }
    }
}
