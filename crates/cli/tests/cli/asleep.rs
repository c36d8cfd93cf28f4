//! A server that is killed while its sandboxes leave memory and come back.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// How many sandboxes there are, and how many places in memory, one of which the first sandbox has.
const NAMES: usize = 5;
const PLACES: usize = 3;
const ROUNDS: usize = 25;

struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start(store: &Path) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_wardian"))
            .args(["serve", "--stdio", "--max-sandboxes", &PLACES.to_string(), "--store"])
            .arg(store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut server = Server { child, stdin, stdout: BufReader::new(stdout) };
        server.call("create", json!({}));
        server
    }

    /// Returns the answer, or nothing if the server was killed before it gave one.
    fn ask(&mut self, method: &str, params: Value) -> Option<Value> {
        writeln!(self.stdin, "{}", json!({ "id": 1, "method": method, "params": params })).ok()?;
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("text");
        line.ends_with('\n').then(|| serde_json::from_str(&line).expect("an answer"))
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).expect("the server lives");
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Kills it after a while. Its number is its own until it is waited for.
    fn kill_after(&self, time: Duration) -> std::thread::JoinHandle<()> {
        let pid = Pid::from_child(&self.child);
        std::thread::spawn(move || {
            std::thread::sleep(time);
            kill_process(pid, Signal::KILL).expect("it is killed");
        })
    }
}

/// Numbers that look random, the same in every run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What the shell and a file of a sandbox count to, which is the same.
fn count(server: &mut Server, id: &Value) -> u64 {
    let counted = server.call("run", json!({ "command": "echo $n; cat f", "sandboxId": id }));
    let text = counted["stdout"].as_str().expect("text");
    let (shell, file) = text.split_once('\n').expect("two lines");
    assert_eq!(shell, file.trim_end(), "the shell and the files are of one commit");
    shell.parse().expect("a number")
}

#[test]
fn a_server_killed_while_sandboxes_leave_and_return_loses_nothing_that_it_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut dice = Dice(19);
    // What each counts to, and may count to as well.
    let mut counts = [(0, 0); NAMES];
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let mut server = Server::start(directory.path());
        let mut ids = Vec::new();
        for (number, (least, most)) in counts.iter_mut().enumerate() {
            let name = format!("box{number}");
            let id = if round == 0 {
                let persistence = json!({ "persistence": { "name": name } });
                let id = server.call("sandbox.create", persistence)["sandboxId"].clone();
                server.call("run", json!({ "command": "n=0; echo $n > f", "sandboxId": id }));
                id
            } else {
                server.call("sandbox.open", json!({ "name": name }))["sandboxId"].clone()
            };
            let found = count(&mut server, &id);
            assert!(
                (*least..=*most).contains(&found),
                "round {round}: {name} is at {found}, not {least}..={most}"
            );
            (*least, *most) = (found, found);
            ids.push(id);
        }
        let listed = server.call("sandbox.list", json!({}));
        let asleep = listed.as_array().expect("a list").iter().filter(|one| one["asleep"] == true).count();
        assert_eq!(asleep, NAMES + 1 - PLACES, "each call to one that sleeps puts another aside");

        let killer = server.kill_after(Duration::from_millis(dice.below(300)));
        loop {
            let which = dice.below(NAMES as u64) as usize;
            let (least, most) = &mut counts[which];
            *most = *least + 1;
            let command = json!({ "command": "n=$((n + 1)); echo $n > f; echo $n", "sandboxId": ids[which] });
            let Some(answer) = server.ask("run", command) else { break };
            assert_eq!(answer["result"]["stdout"], format!("{most}\n"), "{answer}");
            *least = *most;
            acknowledged += 1;
        }
        killer.join().expect("it is killed");
        server.child.wait().expect("it ends");
    }
    assert!(acknowledged > 0, "it was always killed before it could do anything");
}
