//! Sandboxes with names, which outlive the server.

use std::time::Duration;

use serde_json::{Value, json};
use wardian::Store;
use wardian_server::Options;

use crate::support::Client;
use crate::table::{check, error};

fn options(directory: &std::path::Path) -> Options {
    Options { store: Some(Store::open(directory).expect("a store")), ..Options::default() }
}

/// Opens a sandbox, once the server that had it has let go.
async fn open(client: &mut Client, name: &str) -> Value {
    for _ in 0..500 {
        let answer = client.ask("sandbox.open", json!({ "name": name })).await;
        match answer.get("result") {
            Some(opened) => return opened["sandboxId"].clone(),
            None => assert!(answer["error"]["data"]["errno"] == "EBUSY", "{answer}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name} is still in use");
}

#[tokio::test]
async fn a_named_sandbox_survives_its_server() {
    let directory = tempfile::tempdir().unwrap();
    {
        let mut client = Client::new(options(directory.path()));
        client.call("create", json!({ "persistence": { "name": "root" } })).await;
        client.stdout("x=kept; echo data > f").await;
        client.call("files.write", json!({ "path": "g", "data": "aGk=" })).await;
        let log = client.call("persistence.log", json!({ "name": "root" })).await;
        let commands: Vec<&str> = log["commits"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|commit| commit["command"].as_str())
            .collect();
        assert_eq!(commands, ["write g", "x=kept; echo data > f", ""]);
        let busy = "EBUSY: default/root is in use by this process";
        check(&mut client, vec![("sandbox.open", json!({ "name": "root" }), busy_error(busy))]).await;
    }
    let mut client = Client::new(options(directory.path()));
    client.call("create", json!({})).await;
    let id = open(&mut client, "root").await;
    let ran = client.call("run", json!({ "command": "echo $x; cat f g", "sandboxId": id })).await;
    assert_eq!(ran["stdout"], "kept\ndata\nhi");
    let log = client.call("persistence.log", json!({ "name": "root", "limit": 2 })).await;
    let before = log["commits"][1]["commit"].to_string();
    client.call("run", json!({ "command": "rm f; x=lost", "sandboxId": id })).await;
    let changes = client.call("persistence.diff", json!({ "name": "root", "from": before })).await;
    assert_eq!(changes["changes"], json!([{ "path": "/home/user/f", "change": "D" }]));
    client.call("persistence.checkout", json!({ "sandboxId": id, "commit": before })).await;
    let ran = client.call("run", json!({ "command": "echo $x; cat f", "sandboxId": id })).await;
    assert_eq!(ran["stdout"], "kept\ndata\n");
    client.call("persistence.branch", json!({ "name": "root", "newName": "other" })).await;
    let listed = client.call("persistence.sandboxes", json!({})).await;
    let names: Vec<&str> =
        listed["sandboxes"].as_array().unwrap().iter().filter_map(|each| each["name"].as_str()).collect();
    assert_eq!(names, ["default/other", "default/root"]);
    client.call("persistence.delete", json!({ "name": "other" })).await;
    let rows = vec![
        ("sandbox.open", json!({ "name": "other" }), missing("default/other")),
        ("sandbox.open", json!({}), error(-32602, "Missing required param: name")),
        (
            "sandbox.create",
            json!({ "persistence": { "name": "a", "mode": "other" } }),
            error(-32602, "persistence.mode must be \"ephemeral\", \"session\" or \"persistent\""),
        ),
        (
            "sandbox.create",
            json!({ "persistence": { "name": "a", "mode": "session", "idleSeconds": 5 } }),
            error(
                -32602,
                "persistence.idleSeconds: a sandbox of mode \"session\" is saved only when asked, so it stays in memory",
            ),
        ),
        (
            "sandbox.create",
            json!({ "persistence": { "name": "a", "mode": "session", "autosaveMs": 5 } }),
            error(
                -32602,
                "persistence: a sandbox of mode \"session\" is saved only when asked, so it has no durability and no autosaveMs",
            ),
        ),
    ];
    check(&mut client, rows).await;
    let wrong = error(-32602, "idleSeconds must be from 1 to 31622400");
    for seconds in [0, 40_000_000] {
        let params = json!({ "persistence": { "name": "a", "idleSeconds": seconds } });
        check(&mut client, vec![("sandbox.create", params, wrong.clone())]).await;
    }
    let mut without = Client::created(json!({})).await;
    let none = error(-32602, "the server was started without --store");
    check(&mut without, vec![("sandbox.open", json!({ "name": "root" }), none)]).await;
}

fn busy_error(message: &str) -> Value {
    json!({ "error": { "code": 1, "message": message, "data": { "errno": "EBUSY" } } })
}

fn missing(name: &str) -> Value {
    let message = format!("ENOENT: {name}: no such name in the store");
    json!({ "error": { "code": 1, "message": message, "data": { "errno": "ENOENT" } } })
}

/// How many of the client's sandboxes are in memory, and how many sleep.
async fn asleep(client: &mut Client) -> (u64, u64) {
    let listed = client.call("sandbox.list", json!({})).await;
    let listed = listed.as_array().expect("a list");
    let asleep = listed.iter().filter(|one| one["asleep"] == true).count() as u64;
    (listed.len() as u64 - asleep, asleep)
}

async fn until_asleep(client: &mut Client, wanted: u64) {
    for _ in 0..6_000 {
        if asleep(client).await.1 == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?} are awake and asleep, not {wanted}", asleep(client).await);
}

fn idle(directory: &std::path::Path) -> Options {
    Options { idle: Some(Duration::from_millis(1)), ..options(directory) }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_sandbox_leaves_memory_and_comes_back_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::new(idle(directory.path()));
    client.call("create", json!({})).await;
    let persistence = json!({ "label": "mine", "persistence": { "name": "a" } });
    let id = client.call("sandbox.create", persistence).await["sandboxId"].clone();
    let run = |command: &str| json!({ "command": command, "sandboxId": id });
    client.call("run", run("x=kept; cd /tmp; echo data > f; exec 7<f; read -r -n 2 -u 7 two")).await;
    client.call("python.run", json!({ "code": "y = [1, 2]", "sandboxId": id })).await;
    for _ in 0..3 {
        until_asleep(&mut client, 1).await;
        // It is listed all the same, and nobody else can have it.
        let listed = client.call("sandbox.list", json!({})).await;
        assert_eq!((&listed[0]["sandboxId"], &listed[0]["label"]), (&id, &json!("mine")));
        let (_, busy) = client.failure("sandbox.open", json!({ "name": "a" })).await;
        assert_eq!(busy, "EBUSY: default/a is in use by this process");
        let read = client.call("files.read", json!({ "path": "f", "sandboxId": id })).await;
        assert_eq!(crate::support::decode(&read["data"]), b"data\n");
    }
    until_asleep(&mut client, 1).await;
    // What only was read is not saved again.
    let log = client.call("persistence.log", json!({ "name": "a" })).await;
    assert_eq!(log["commits"].as_array().map(Vec::len), Some(3), "{log}");
    let ran = client.call("run", run("echo $x $two; pwd; cat <&7")).await;
    assert_eq!(ran["stdout"], "kept da\n/tmp\nta\n");
    let ran = client.call("python.run", json!({ "code": "y + [3]", "sandboxId": id })).await;
    assert_eq!(ran["value"]["repr"], "[1, 2, 3]", "{ran}");
    until_asleep(&mut client, 1).await;
    client.call("sandbox.remove", json!({ "sandboxId": id })).await;
    assert_eq!(asleep(&mut client).await.1, 0);
    let id = open(&mut client, "a").await;
    let ran = client.call("run", json!({ "command": "echo $x", "sandboxId": id })).await;
    assert_eq!(ran["stdout"], "kept\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_saved_stays_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::new(options(directory.path()));
    client.call("create", json!({})).await;
    let lock = "import fcntl; f = open('/tmp/lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX)";
    let listen = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 8000)); s.listen()";
    let setups = [
        ("run", "command", "sleep 1000 & true"),
        ("run", "command", "exec 5>/tmp/gone; rm /tmp/gone"),
        ("run", "command", "coproc cat"),
        ("run", "command", "exec 5< <(sleep 1000)"),
        ("run", "command", "mkfifo /tmp/p; exec 5<>/tmp/p; echo kept >&5"),
        ("python.run", "code", lock),
        ("python.run", "code", listen),
        ("python.run", "code", "import signal; left = signal.alarm(1000)"),
    ];
    let mut staying = Vec::new();
    for (number, (method, field, setup)) in setups.into_iter().enumerate() {
        let persistence = json!({ "persistence": { "name": format!("stays{number}"), "idleSeconds": 1 } });
        let id = client.call("sandbox.create", persistence).await["sandboxId"].clone();
        let ran = client.call(method, json!({ field: setup, "sandboxId": id })).await;
        // A setup that fails would prove nothing.
        let failed = if method == "run" { ran["exitCode"] != 0 } else { !ran["error"].is_null() };
        assert!(!failed, "{setup}: {ran}");
        staying.push((id, setup));
    }
    // One that can leave, last: when it has, the others were asked before it.
    let persistence = json!({ "persistence": { "name": "leaves", "idleSeconds": 1 } });
    client.call("sandbox.create", persistence).await;
    let mut left = Vec::new();
    while left.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let listed = client.call("sandbox.list", json!({})).await;
        let listed = listed.as_array().expect("a list").iter();
        left = listed.filter(|one| one["asleep"] == true).map(|one| one["sandboxId"].clone()).collect();
    }
    let wrong: Vec<&str> =
        staying.iter().filter(|(id, _)| left.contains(id)).map(|(_, setup)| *setup).collect();
    assert_eq!((wrong, left.len()), (vec![], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_meets_a_sandbox_on_its_way_waits_and_sees_one_value() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::new(idle(directory.path()));
    client.call("create", json!({})).await;
    let persistence = json!({ "persistence": { "name": "a" } });
    let id = client.call("sandbox.create", persistence).await["sandboxId"].clone();
    client.call("run", json!({ "command": "n=0", "sandboxId": id })).await;
    for number in 1..=30u64 {
        // Sometimes it is still there, sometimes on its way, sometimes gone.
        tokio::time::sleep(Duration::from_millis(number * 37 % 700)).await;
        let count = json!({ "command": "n=$((n + 1)); echo $n; echo $n > count", "sandboxId": id });
        let write = json!({ "path": format!("f{number}"), "data": "", "sandboxId": id });
        let (run, write) = (client.send("run", count).await, client.send("files.write", write).await);
        assert_eq!(client.answer(run).await["result"]["stdout"], format!("{number}\n"));
        assert!(client.answer(write).await.get("error").is_none());
    }
    let count = json!({ "command": "ls f* | wc -l; cat count", "sandboxId": id });
    assert_eq!(client.call("run", count).await["stdout"], "30\n30\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_puts_the_longest_unused_aside() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::new(Options { max_sandboxes: 3, ..options(directory.path()) });
    client.call("create", json!({})).await;
    let mut ids = Vec::new();
    for number in 0..8 {
        let persistence = json!({ "persistence": { "name": format!("s{number}") } });
        let id = client.call("sandbox.create", persistence).await["sandboxId"].clone();
        client.call("run", json!({ "command": format!("x={number}"), "sandboxId": id })).await;
        ids.push(id);
    }
    assert_eq!(asleep(&mut client).await, (2, 6));
    for (number, id) in ids.iter().enumerate() {
        let ran = client.call("run", json!({ "command": "echo $x", "sandboxId": id })).await;
        assert_eq!(ran["stdout"], format!("{number}\n"));
    }
    // Those that are not saved are not put aside.
    for _ in 0..2 {
        client.call("sandbox.create", json!({})).await;
    }
    let full = client.failure("sandbox.create", json!({})).await;
    assert_eq!(full, (-32602, "Maximum of 3 sandboxes reached".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_memory_is_short_the_longest_unused_leave() {
    let directory = tempfile::tempdir().unwrap();
    let mut client =
        Client::new(Options { awake_bytes: Some(40 << 20), max_sandboxes: 20, ..options(directory.path()) });
    client.call("create", json!({})).await;
    let mut ids = Vec::new();
    for number in 0..6 {
        let persistence = json!({ "persistence": { "name": format!("s{number}") } });
        let id = client.call("sandbox.create", persistence).await["sandboxId"].clone();
        let fill = format!("x={number}; head -c 16777216 /dev/urandom > f");
        client.call("run", json!({ "command": fill, "sandboxId": id })).await;
        ids.push(id);
    }
    let listed = loop {
        let listed = client.call("sandbox.list", json!({})).await;
        let asleep = listed.as_array().expect("a list").iter().filter(|one| one["asleep"] == true).count();
        // What they have beside their files is less than another file.
        if asleep >= 4 {
            break listed;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!((&listed[0]["asleep"], &listed[5]["asleep"]), (&json!(true), &json!(false)), "{listed}");
    for (number, id) in ids.iter().enumerate() {
        let ran = client.call("run", json!({ "command": "echo $x; wc -c < f", "sandboxId": id })).await;
        assert_eq!(ran["stdout"], format!("{number}\n16777216\n"));
    }
}

#[tokio::test]
async fn an_image_is_taken_to_another_store() {
    let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let states = tempfile::tempdir().unwrap();
    let options = |number: usize| Options {
        state_dir: Some(states.path().to_owned()),
        ..options(directories[number].path())
    };
    let mut from = Client::new(options(0));
    from.call("create", json!({})).await;
    from.stdout("x=kept; echo data > f; head -c 100000 /dev/urandom > large").await;
    from.call("image.save", json!({ "name": "base", "script": "make it" })).await;
    let data = from.call("image.export", json!({ "name": "base" })).await["data"].clone();
    from.call("image.export", json!({ "name": "base", "file": "base.image" })).await;
    let mut to = Client::new(options(1));
    to.call("create", json!({})).await;
    to.call("image.import", json!({ "name": "line", "data": data })).await;
    to.call("image.import", json!({ "name": "file", "file": "base.image" })).await;
    let listed = to.call("image.list", json!({})).await;
    let scripts: Vec<(&str, &str)> = listed["images"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| Some((one["name"].as_str()?, one["script"].as_str()?)))
        .collect();
    assert_eq!(scripts, [("default/file", "make it"), ("default/line", "make it")]);
    for image in ["line", "file"] {
        let id = to.call("sandbox.create", json!({ "image": image })).await["sandboxId"].clone();
        let ran = to.call("run", json!({ "command": "echo $x; cat f", "sandboxId": id })).await;
        assert_eq!(ran["stdout"], "kept\ndata\n", "{image}");
    }
    let refused = [
        (json!({ "name": "line", "data": data }), "EEXIST: default/line: already in the store"),
        (json!({ "name": "x" }), "Missing required param: data"),
        (json!({ "name": "x", "data": "", "file": "f" }), "data and file cannot both be given"),
        (json!({ "data": data }), "Missing required param: name"),
    ];
    for (params, message) in refused {
        assert_eq!(to.failure("image.import", params).await.1, message);
    }
    let (_, damaged) = to.failure("image.import", json!({ "name": "x", "data": "AAAA" })).await;
    assert!(damaged.contains("not an exported image"), "{damaged}");
    assert_eq!(to.call("image.list", json!({})).await["images"].as_array().map(Vec::len), Some(2));
    // A sandbox with less room takes no image that does not fit.
    let mut small = Client::new(options(1));
    small.call("create", json!({ "fsLimitBytes": 4096 })).await;
    let (_, refused) = small.failure("image.import", json!({ "name": "x", "file": "base.image" })).await;
    assert!(!refused.is_empty());
}

#[tokio::test]
async fn images_are_saved_listed_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::new(options(directory.path()));
    client.call("create", json!({})).await;
    client.stdout("x=from-image").await;
    client.call("image.save", json!({ "name": "base", "script": "x=from-image" })).await;
    let listed = client.call("image.list", json!({})).await;
    assert_eq!(listed["images"][0]["name"], "default/base");
    assert_eq!(listed["images"][0]["script"], "x=from-image");
    let id = client.call("sandbox.create", json!({ "image": "base" })).await["sandboxId"].clone();
    let ran = client.call("run", json!({ "command": "echo $x", "sandboxId": id })).await;
    assert_eq!(ran["stdout"], "from-image\n");
    let taken = client.failure("image.save", json!({ "name": "base" })).await;
    assert_eq!(taken.1, "EEXIST: default/base: already in the store");
    client.call("image.delete", json!({ "name": "base" })).await;
    assert_eq!(client.call("image.list", json!({})).await, json!({ "images": [] }));
    let gone = client.failure("sandbox.create", json!({ "image": "base" })).await;
    assert_eq!(gone.1, "ENOENT: default/base: no such name in the store");
}
