//! Interpreters that stay, used by those who do not mean well.

use anyhow::Result;
use serde_json::json;

use super::{Attacker, unharmed};

const CODE: &[&str] = &[
    "while True: pass",
    "x = []\nwhile True: x.append(bytearray(1 << 20))",
    "x = 'a' * (1 << 24)\nx",
    "def f(): f()\nf()",
    "import threading\nfor i in range(1000): threading.Thread(target=print, args=(i,)).start()",
    "import multiprocessing as m, time\nfor i in range(200): m.Process(target=time.sleep, args=(9,)).start()",
    "import socket\ns = []\nwhile True:\n  s.append(socket.socketpair())\n  s[-1][0].setblocking(0)\n  s[-1][0].send(bytes(1 << 20))",
    "import subprocess\nwhile True: subprocess.run(['true'])",
    "import signal, os\nos.kill(os.getpid(), signal.SIGKILL)",
    "import os\nos._exit(3)",
    "raise Exception('x' * (1 << 24))",
    "10 ** 10 ** 8",
    "y = range(10)\nlist(y)",
];

/// Calls in several interpreters, some cancelled, and a fork of what is left of them.
pub(super) fn sessions(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    for _ in 0..5 {
        let code = *attacker.dice.pick(CODE);
        let context = format!("c{}", attacker.dice.below(3));
        let run = client.send("python.run", json!({ "code": code, "context": context }))?;
        if attacker.dice.once_in(4) {
            client.ask("cancel", json!({}))?;
        }
        client.answer(run)?;
    }
    let forked = client.ask("sandbox.fork", json!({ "count": 1 }))?;
    if let Some(fork) = forked["result"]["sandboxIds"].get(0) {
        client.ask("python.run", json!({ "sandboxId": fork, "code": "x = 1\nx" }))?;
        client.ask("sandbox.destroy", json!({ "sandboxId": fork }))?;
    }
    unharmed(client, attacker.socket)
}
