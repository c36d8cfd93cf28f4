//! Locks on files that many want at once.

use anyhow::Result;
use serde_json::json;

use super::{Attacker, unharmed};

/// What each of several processes does with `f`, which is `/tmp/l`.
const PROGRAMS: &[&str] = &[
    // Taken and given back without end.
    "while 1: fcntl.flock(f, 2); fcntl.flock(f, 8)",
    "while 1: fcntl.lockf(f, 2); fcntl.lockf(f, 8)",
    // Taken by one, waited for by all others, for ever.
    "fcntl.flock(f, 2); time.sleep(9)",
    "fcntl.lockf(f, 2); time.sleep(9)",
    // Shared, and then wanted alone by all.
    "fcntl.flock(f, 1); time.sleep(0.2); fcntl.flock(f, 2)",
    // Many at once, each a byte.
    "for i in range(100000): fcntl.lockf(f, 6, 1, 2 * i + me)",
    // One that is cut into pieces.
    "fcntl.lockf(f, 1, 100000)\nfor i in range(100000): fcntl.lockf(f, 8, 1, 2 * i)",
    // Each waits for the next.
    "fcntl.lockf(f, 2, 1, me); time.sleep(0.1); fcntl.lockf(f, 2, 1, (me + 1) % 6)",
    // A new description of the file for each.
    "k = []\nwhile 1: k.append(open('/tmp/l', 'r+')); fcntl.flock(k[-1], 1)",
];

/// Several processes that want the same locks. They end by a deadline, some of them with locks they have or wait for.
pub(super) fn contended(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    for _ in 0..2 {
        let program = *attacker.dice.pick(PROGRAMS);
        let start = "import fcntl, sys, time\nme = int(sys.argv[1])\nf = open('/tmp/l', 'r+')";
        let script = format!(
            "cat > /tmp/p.py << 'END'\n{start}\n{program}\nEND\n: > /tmp/l\n\
             for i in 0 1 2 3 4 5; do python3 /tmp/p.py $i 2> /dev/null & done; wait"
        );
        let run = client.send("run", json!({ "command": script, "timeoutMs": 2_500 }))?;
        if attacker.dice.once_in(4) {
            return Ok(Vec::new());
        }
        client.answer(run)?;
        // Locks go with those who have them.
        let again = "kill -9 -1; sleep 0.05; timeout 5 python3 -c 'import fcntl\n\
             f = open(\"/tmp/l\", \"r+\"); fcntl.flock(f, 6); fcntl.lockf(f, 6)' && echo free";
        let free = client.call("run", json!({ "command": again, "timeoutMs": 20_000 }))?;
        if free["stdout"] != "free\n" && free["limit"].is_null() {
            return Ok(vec![format!("a lock outlives its owner: {free}")]);
        }
    }
    unharmed(client, attacker.socket)
}
