//! Scripts that take what they can.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::{Attacker, unharmed};
use crate::dice::Dice;

/// Each would go on for ever, or until something is used up.
const SCRIPTS: &[&str] = &[
    "f() { f | f & }; f; wait",
    "while :; do ( while :; do :; done ) & done",
    "for i in {1..60}; do while :; do :; done & done; wait",
    "for i in {1..60}; do yes | sleep 1000 & done; wait",
    "yes",
    "yes >&2 & cat /dev/zero",
    "yes > /tmp/big",
    "i=0; while :; do : > /tmp/f$i; i=$((i+1)); done",
    "i=0; while :; do ln -s $i /tmp/l$i; i=$((i+1)); done",
    "while mkdir d && cd d; do :; done",
    "x=xxxxxxxx; while :; do x=$x$x; done",
    "a=(); while :; do a+=(xxxxxxxxxxxxxxxx); done",
    "i=0; while :; do export v$i=$i; i=$((i+1)); ( : ); done",
    "f() { f; }; f",
    "f() { echo $(f) $(f); }; f",
    "truncate -s 1T /tmp/f; cat /tmp/f | sort",
    "dd if=/dev/zero of=/tmp/s bs=1 seek=1000000000 count=1; cp /tmp/s /tmp/t; cat /tmp/s > /tmp/u",
    "sort /dev/zero",
    "tail -c 1G /dev/zero",
    "awk 'BEGIN { while (1) x = x \"aaaaaaaa\" }'",
    "jq -n '[range(1e9)]'",
    "echo {1..100000000}",
    "printf '%1000000000d' 1",
    "seq 1000000000 > /dev/null",
    "trap 'kill -USR1 $$' USR1; kill -USR1 $$; while :; do :; done",
    "( sleep 1000 & ) ; kill -STOP $$",
    "mkfifo /tmp/p; cat /tmp/p & cat /tmp/p; wait",
    "exec 3<>/dev/null; while :; do exec {fd}<>/dev/null; done",
    "find / -type f -exec cat {} + | tr a b | gzip | gunzip | wc -c",
    "tar c / | tar x -C /tmp; tar c / | xz -9 > /tmp/x",
    "[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa =~ ((a*)*)*b ]]",
    "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | sed -E 's/((a*)*)*\\1b/x/'",
    "while :; do cat < /proc/self/status; ps; done",
    "cat | cat | cat | cat",
    "while :; do timeout 0.01 yes; done | wc -c",
    "coproc cat; while :; do echo x >&${COPROC[1]}; done",
    "cat <(yes) <(yes) > >(cat >&2)",
    "x=$(yes); echo $x",
    "while read -r l; do echo $l; done < <(yes)",
    "python3 -c 'import multiprocessing as m, time\nfor i in range(200): m.Process(target=time.sleep, args=(9,)).start()'",
    "python3 -c 'x = []\nwhile 1: x.append(bytearray(1 << 20))'",
    "python3 -c 'import socket\ns = []\nwhile 1: s.append(socket.socketpair()); s[-1][0].setblocking(0); s[-1][0].send(bytes(1 << 20))'",
    "python3 -c 'import socket\ns = socket.create_server((\"\", 8000))\nc = []\nwhile 1: c.append(socket.create_connection((\"\", 8000)))'",
    "nc -l -k 8000 > /dev/null & while :; do nc localhost 8000 < /dev/zero; done",
    "python3 -m http.server 8000 & while :; do curl -s localhost:8000/ > /dev/null; done",
    "while :; do : < /dev/tcp/127.0.0.1/9; done",
    "nc -u -l 8000 > /dev/null & while :; do echo x > /dev/udp/127.0.0.1/8000; done",
    "while :; do curl -s http://example.com/ http://169.254.169.254/ http://[::1]:1/; host example.com; done",
    "while :; do mv /tmp/a /tmp/b; touch /tmp/a; ln -f /tmp/a /tmp/c; rm -rf /tmp/d; cp -r /etc /tmp/d; done",
];

const JOINS: &[&str] = &["; ", " & ", " | ", " && ", " || "];

fn one(dice: &mut Dice) -> String {
    (*dice.pick(SCRIPTS)).to_owned()
}

/// A few of them put together somehow.
fn several(dice: &mut Dice) -> String {
    let mut script = one(dice);
    for _ in 0..1 + dice.below(3) {
        let other = one(dice);
        script = match dice.below(4) {
            0 => format!("( {script} ){}{{ {other}; }}", dice.pick(JOINS)),
            1 => format!("x=$( {script} ); {other}"),
            2 => format!("timeout 0.1 bash -c {} ; {other}", quoted(&script)),
            _ => format!("{{ {script}; }} & {other}"),
        };
    }
    script
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}

/// One script after the other, each to its deadline.
pub(super) fn hostile(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    for _ in 0..2 {
        client.ask("run", json!({ "command": one(&mut attacker.dice) }))?;
    }
    unharmed(client, attacker.socket)
}

/// The same with scripts that nobody has seen before.
pub(super) fn random(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    for _ in 0..2 {
        let stream = attacker.dice.once_in(2);
        client.ask("run", json!({ "command": several(&mut attacker.dice), "stream": stream }))?;
    }
    unharmed(client, attacker.socket)
}

/// Many runs that are cancelled at any time, while files are written and the sandbox is suspended.
pub(super) fn cancelled(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    for _ in 0..12 {
        let run =
            client.send("run", json!({ "command": several(&mut attacker.dice), "timeoutMs": 5_000 }))?;
        std::thread::sleep(Duration::from_micros(attacker.dice.below(60_000) as u64));
        if attacker.dice.once_in(3) {
            client.ask("sandbox.suspend", json!({}))?;
            client.ask("files.write", json!({ "path": "/tmp/w", "data": "aGVsbG8=" }))?;
            client.ask("sandbox.resume", json!({}))?;
        }
        client.ask("cancel", json!({}))?;
        client.answer(run)?;
    }
    unharmed(client, attacker.socket)
}

/// Clients that leave in the middle of what they asked for.
pub(super) fn vanished(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    for _ in 0..6 {
        let mut client = attacker.client()?;
        for _ in 0..3 {
            client.send("run", json!({ "command": several(&mut attacker.dice), "stream": true }))?;
        }
        std::thread::sleep(Duration::from_micros(attacker.dice.below(100_000) as u64));
        drop(client);
    }
    Ok(Vec::new())
}
