//! Every row of the protocol: a request and its answer, to the letter.
//!
//! `"*"` in an expected answer stands for anything. Rows of one table are sent to one server, one after the other.

use serde_json::{Value, json};
use wardian_server::Options;

use crate::support::{Client, base64};

/// A request's method and params, and the answer's `result` or `error`.
type Row = (&'static str, Value, Value);

pub(crate) fn ok() -> Value {
    json!({ "result": { "ok": true } })
}

fn result(result: Value) -> Value {
    json!({ "result": result })
}

pub(crate) fn error(code: i64, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message } })
}

fn errno(errno: &str, message: &str) -> Value {
    json!({ "error": { "code": 1, "message": message, "data": { "errno": errno } } })
}

pub(crate) fn matches(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (_, Value::String(any)) if any == "*" => true,
        (Value::Object(found), Value::Object(expected)) => {
            found.len() == expected.len()
                && expected.iter().all(|(name, value)| found.get(name).is_some_and(|f| matches(f, value)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| matches(f, e))
        }
        (found, expected) => found == expected,
    }
}

pub(crate) async fn check(client: &mut Client, rows: Vec<Row>) {
    for (method, params, expected) in rows {
        let mut answer = client.ask(method, params.clone()).await;
        let members = answer.as_object_mut().expect("an object");
        members.remove("jsonrpc");
        members.remove("id");
        assert!(matches(&answer, &expected), "{method} {params}\n  answers {answer}\n not      {expected}");
    }
}

async fn table(rows: Vec<Row>) {
    check(&mut Client::created(json!({})).await, rows).await;
}

#[tokio::test]
async fn before_create_there_is_nothing() {
    let first = "no sandbox yet: call create first";
    let rows = vec![
        ("run", json!({ "command": "echo" }), error(-32600, first)),
        ("python.run", json!({ "code": "1" }), error(-32600, first)),
        ("files.list", json!({ "path": "/" }), error(-32600, first)),
        ("cancel", json!({}), error(-32600, first)),
        ("kill", json!({}), error(-32600, first)),
        ("no.such.method", json!({}), error(-32600, first)),
        ("create", json!({ "nice": 20 }), error(-32602, "nice must be from 0 to 19")),
        ("run", json!({ "command": "echo" }), error(-32600, first)),
        ("create", json!({}), ok()),
        ("create", json!({}), error(-32600, "the sandbox is already created")),
        ("no.such.method", json!({}), error(-32601, "Method not found: no.such.method")),
    ];
    check(&mut Client::new(Options::default()), rows).await;
}

#[tokio::test]
async fn a_create_that_fails_can_be_tried_again() {
    let mut client = Client::new(Options::default());
    let bad = client.send("create", json!({ "mounts": [{ "path": "relative", "files": {} }] })).await;
    let run = client.send("run", json!({ "command": "echo" })).await;
    assert_eq!(client.answer(bad).await["error"]["code"], -32602);
    assert_eq!(client.answer(run).await["error"]["code"], -32600);
    assert_eq!(client.call("create", json!({})).await, json!({ "ok": true }));
    assert_eq!(client.stdout("echo there").await, "there\n");
}

#[tokio::test]
async fn the_sandbox_a_request_is_about() {
    table(vec![
        ("files.mkdir", json!({ "path": "/tmp/a", "sandboxId": null }), ok()),
        ("files.mkdir", json!({ "path": "/tmp/a", "sandboxId": "7" }), error(-32602, "Unknown sandboxId: 7")),
        ("run", json!({ "command": "echo", "sandboxId": "x y" }), error(-32602, "Unknown sandboxId: x y")),
        ("run", json!({ "command": "echo", "sandboxId": 1 }), error(-32602, "sandboxId must be a string")),
        ("cancel", json!({ "sandboxId": [] }), error(-32602, "sandboxId must be a string")),
        ("sandbox.fork", json!({}), result(json!({ "sandboxId": "1" }))),
        ("sandbox.create", json!({ "label": "mine" }), result(json!({ "sandboxId": "2" }))),
        ("sandbox.create", json!({}), result(json!({ "sandboxId": "3" }))),
        (
            "sandbox.fork",
            json!({ "sandboxId": "2", "count": 2 }),
            result(json!({ "sandboxId": "4", "sandboxIds": ["4", "5"] })),
        ),
        ("sandbox.fork", json!({ "count": 1 }), result(json!({ "sandboxId": "6", "sandboxIds": ["6"] }))),
        ("sandbox.fork", json!({ "count": 0 }), error(-32602, "count must be at least 1")),
        (
            "sandbox.fork",
            json!({ "count": "two" }),
            error(-32602, "count must be a whole number, not negative"),
        ),
        (
            "files.list",
            json!({ "path": "/tmp", "sandboxId": "1" }),
            result(json!({ "entries": [{ "name": "a", "type": "dir", "size": "*" }] })),
        ),
        ("files.list", json!({ "path": "/tmp", "sandboxId": "2" }), result(json!({ "entries": [] }))),
        (
            "sandbox.list",
            json!({}),
            result(json!([
                { "sandboxId": "2", "label": "mine", "createdAt": "*", "asleep": false },
                { "sandboxId": "3", "label": null, "createdAt": "*", "asleep": false },
            ])),
        ),
        ("sandbox.destroy", json!({}), error(-32602, "Missing required param: sandboxId")),
        ("sandbox.destroy", json!({ "sandboxId": "2" }), error(-32602, "Unknown sandboxId: 2")),
        ("sandbox.destroy", json!({ "sandboxId": "1" }), ok()),
        ("sandbox.destroy", json!({ "sandboxId": "1" }), error(-32602, "Unknown sandboxId: 1")),
        ("files.list", json!({ "path": "/", "sandboxId": "1" }), error(-32602, "Unknown sandboxId: 1")),
        ("sandbox.remove", json!({}), error(-32602, "Missing required param: sandboxId")),
        ("sandbox.remove", json!({ "sandboxId": "2" }), ok()),
        ("sandbox.remove", json!({ "sandboxId": "2" }), error(-32602, "Unknown sandboxId: 2")),
        (
            "sandbox.list",
            json!({}),
            result(json!([{ "sandboxId": "3", "label": null, "createdAt": "*", "asleep": false }])),
        ),
        ("sandbox.create", json!({ "label": 1 }), error(-32602, "label must be a string")),
        ("sandbox.create", json!({}), result(json!({ "sandboxId": "7" }))),
    ])
    .await;
}

#[tokio::test]
async fn running() {
    let ran = |code: u8, stdout: &str, stderr: &str| json!({ "result": { "exitCode": code, "stdout": stdout, "stderr": stderr, "executionTimeMs": "*" } });
    table(vec![
        ("run", json!({ "command": "echo out; echo err >&2; exit 3" }), ran(3, "out\n", "err\n")),
        ("run", json!({ "command": "x=1; cd /tmp" }), ran(0, "", "")),
        ("run", json!({ "command": "echo $x $PWD" }), ran(0, "1 /tmp\n", "")),
        ("run", json!({ "command": "cat", "stdin": base64("a\0b") }), ran(0, "a\0b", "")),
        ("run", json!({ "command": "cat", "stdin": "YQ" }), ran(0, "a", "")),
        ("run", json!({ "command": "printf 'a\\xffb'" }), ran(0, "a\u{fffd}b", "")),
        (
            "run",
            json!({ "command": "printf 'a\\xff'; printf e >&2", "encoding": "base64" }),
            ran(0, &base64(b"a\xff"), &base64("e")),
        ),
        ("run", json!({ "command": "echo $0", "timeoutMs": 0 }), ran(0, "bash\n", "")),
        ("run", json!({ "command": "echo hi", "stream": false }), ran(0, "hi\n", "")),
        (
            "run",
            json!({ "command": "echo $A $x $PWD; x=2", "env": { "A": "it's" }, "cwd": "/etc" }),
            ran(0, "it's 1 /etc\n", ""),
        ),
        ("run", json!({ "command": "echo $A $x $PWD" }), ran(0, "2 /tmp\n", "")),
        (
            "run",
            json!({ "command": "pwd", "cwd": "/no" }),
            errno("ENOENT", "ENOENT: no such file or directory: /no"),
        ),
        (
            "run",
            json!({ "command": "pwd", "env": { "A B": "" } }),
            error(-32602, "not an environment variable: \"A B\""),
        ),
        ("run", json!({ "command": "pwd", "env": { "A": 1 } }), error(-32602, "env.A must be a string")),
        ("run", json!({ "command": "pwd", "cwd": 1 }), error(-32602, "cwd must be a string")),
        ("run", json!({}), error(-32602, "Missing required param: command")),
        ("run", json!({ "command": null }), error(-32602, "Missing required param: command")),
        ("run", json!({ "command": 7 }), error(-32602, "command must be a string")),
        ("run", json!({ "command": "echo", "stream": "yes" }), error(-32602, "stream must be true or false")),
        ("run", json!({ "command": "echo", "stdin": "*" }), error(-32602, "stdin must be base64")),
        (
            "run",
            json!({ "command": "echo", "timeoutMs": "1" }),
            error(-32602, "timeoutMs must be a number of milliseconds"),
        ),
        (
            "run",
            json!({ "command": "echo", "timeoutMs": -1 }),
            error(-32602, "timeoutMs must be a number of milliseconds"),
        ),
        (
            "run",
            json!({ "command": "echo", "encoding": "utf-16" }),
            error(-32602, "encoding must be \"utf-8\" or \"base64\""),
        ),
        ("cancel", json!({}), result(json!({ "ok": true, "cancelled": false }))),
    ])
    .await;
}

#[tokio::test]
async fn files() {
    let missing = "ENOENT: no such file or directory: /tmp/no";
    table(vec![
        ("files.write", json!({ "path": "/tmp/f", "data": base64("hello") }), ok()),
        ("files.read", json!({ "path": "/tmp/f" }), result(json!({ "data": base64("hello") }))),
        ("files.write", json!({ "path": "rel", "data": "" }), ok()),
        ("files.read", json!({ "path": "/home/user/rel" }), result(json!({ "data": "" }))),
        ("files.mkdir", json!({ "path": "/tmp/d/e" }), ok()),
        ("files.mkdir", json!({ "path": "/tmp/d/e" }), ok()),
        ("run", json!({ "command": "ln -s f /tmp/l" }), json!({ "result": "*" })),
        (
            "files.list",
            json!({ "path": "/tmp" }),
            result(json!({ "entries": [
            { "name": "d", "type": "dir", "size": "*" },
            { "name": "f", "type": "file", "size": 5 },
            { "name": "l", "type": "symlink", "size": 1 },
        ] })),
        ),
        (
            "files.stat",
            json!({ "path": "/tmp/f" }),
            result(json!({ "name": "f", "type": "file", "size": 5, "mode": 0o644, "mtimeMs": "*" })),
        ),
        (
            "files.stat",
            json!({ "path": "/tmp/l" }),
            result(json!({ "name": "l", "type": "symlink", "size": 1, "mode": 0o777, "mtimeMs": "*" })),
        ),
        ("files.rm", json!({ "path": "/tmp/d" }), ok()),
        ("files.rm", json!({ "path": "/tmp/f" }), ok()),
        ("files.rm", json!({ "path": "/tmp/no" }), errno("ENOENT", missing)),
        ("files.read", json!({ "path": "/tmp/no" }), errno("ENOENT", missing)),
        ("files.list", json!({ "path": "/tmp/no" }), errno("ENOENT", missing)),
        ("files.stat", json!({ "path": "/tmp/no" }), errno("ENOENT", missing)),
        ("files.read", json!({ "path": "/tmp" }), errno("EISDIR", "EISDIR: is a directory: /tmp")),
        (
            "files.write",
            json!({ "path": "/etc/f", "data": "" }),
            errno("EACCES", "EACCES: permission denied: /etc/f"),
        ),
        (
            "files.write",
            json!({ "path": "/tmp/no/f", "data": "" }),
            errno("ENOENT", "ENOENT: no such file or directory: /tmp/no/f"),
        ),
        (
            "files.mkdir",
            json!({ "path": "/etc/passwd/d" }),
            errno("ENOTDIR", "ENOTDIR: not a directory: /etc/passwd/d"),
        ),
        ("files.read", json!({}), error(-32602, "Missing required param: path")),
        ("files.write", json!({ "path": "/tmp/f" }), error(-32602, "Missing required param: data")),
        ("files.write", json!({ "path": "/tmp/f", "data": "é" }), error(-32602, "data must be base64")),
        ("files.write", json!({ "path": "/tmp/f", "data": 1 }), error(-32602, "data must be a string")),
        ("files.list", json!({ "path": 1 }), error(-32602, "path must be a string")),
        ("files.mkdir", json!({}), error(-32602, "Missing required param: path")),
        ("files.rm", json!({ "path": {} }), error(-32602, "path must be a string")),
        ("files.stat", json!({ "path": false }), error(-32602, "path must be a string")),
    ])
    .await;
}

#[tokio::test]
async fn parts_of_files_modes_parents_and_trees() {
    let part = |data: &str, size: u64| result(json!({ "data": base64(data), "size": size }));
    let write = |more: Value| {
        let mut params = json!({ "path": "/tmp/a/b/f", "data": base64("hello") });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    table(vec![
        ("files.write", write(json!({ "parents": true, "mode": 0o750 })), ok()),
        (
            "files.stat",
            json!({ "path": "/tmp/a/b/f" }),
            result(json!({ "name": "f", "type": "file", "size": 5, "mode": 0o750, "mtimeMs": "*" })),
        ),
        ("files.write", write(json!({ "offset": 5 })), ok()),
        ("files.read", json!({ "path": "/tmp/a/b/f" }), result(json!({ "data": base64("hellohello") }))),
        ("files.write", write(json!({ "offset": 2 })), ok()),
        ("files.read", json!({ "path": "/tmp/a/b/f", "offset": 0 }), part("hehello", 7)),
        ("files.read", json!({ "path": "/tmp/a/b/f", "offset": 1, "length": 3 }), part("ehe", 7)),
        ("files.read", json!({ "path": "/tmp/a/b/f", "length": 2 }), part("he", 7)),
        ("files.read", json!({ "path": "/tmp/a/b/f", "offset": 7, "length": 3 }), part("", 7)),
        ("files.read", json!({ "path": "/tmp/a/b/f", "offset": 1u64 << 62 }), part("", 7)),
        (
            "files.write",
            write(json!({ "offset": 8 })),
            errno("EINVAL", "EINVAL: invalid argument: /tmp/a/b/f"),
        ),
        (
            "files.write",
            write(json!({ "mode": 0o10000 })),
            error(-32602, "mode must be permission bits, at most 4095 (octal 7777)"),
        ),
        ("run", json!({ "command": "cd /tmp/a; ln -s b/f l; mkdir e" }), json!({ "result": "*" })),
        // Relative paths start where the shell is.
        (
            "files.list",
            json!({ "path": ".", "recursive": true }),
            result(json!({ "entries": [
                { "name": "b", "type": "dir", "size": "*" },
                { "name": "b/f", "type": "file", "size": 7 },
                { "name": "e", "type": "dir", "size": "*" },
                { "name": "l", "type": "symlink", "size": 3 },
            ] })),
        ),
        ("files.write", json!({ "path": "here", "data": "" }), ok()),
        ("files.rm", json!({ "path": "/tmp/a/here" }), ok()),
        (
            "mount",
            json!({ "path": "/m", "files": {
                "run": { "data": base64("echo ran"), "mode": 0o755 },
                "plain": base64("x"),
                "empty": { "dir": true, "mode": 0o700 },
                "link": { "link": "run" },
            } }),
            ok(),
        ),
        (
            "run",
            json!({ "command": "cd /m; stat -c '%n %a %F' empty plain; readlink link; ./link" }),
            result(json!({
                "exitCode": 0, "stderr": "", "executionTimeMs": "*",
                "stdout": "empty 700 directory\nplain 644 regular file\nrun\nran\n",
            })),
        ),
        (
            "mount",
            json!({ "path": "/n", "files": { "a": { "dir": true, "link": "x" } } }),
            error(-32602, "files.a must have one of data, dir and link"),
        ),
        (
            "mount",
            json!({ "path": "/n", "files": { "a": { "dat": "" } } }),
            error(-32602, "Unknown param: files.a.dat (did you mean data?)"),
        ),
        (
            "mount",
            json!({ "path": "/", "files": {} }),
            errno(
                "EBUSY",
                "EBUSY: device or resource busy: cannot mount at /: it is the sandbox's root (use a directory such as /src)",
            ),
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_file_longer_than_a_response_is_read_in_parts() {
    let mut client = Client::created(json!({ "limits": { "memoryBytes": 64 << 20 } })).await;
    client.stdout("head -c 60000000 /dev/zero > big; printf end >> big").await;
    let (code, message) = client.failure("files.read", json!({ "path": "big" })).await;
    assert!(code == 1 && message.starts_with("EFBIG"), "{message}");
    let tail = client.call("files.read", json!({ "path": "big", "offset": 59_999_999, "length": 100 })).await;
    assert_eq!(tail, json!({ "data": base64("\0end"), "size": 60_000_003 }));
    let too_much = json!({ "path": "big", "offset": 0, "length": 60_000_000 });
    assert_eq!(client.failure("files.read", too_much).await.0, 1, "no more than an answer holds");
}

#[tokio::test]
async fn variables_mounts_snapshots_and_history() {
    table(vec![
        ("env.set", json!({ "name": "A", "value": "it's" }), ok()),
        ("env.get", json!({ "name": "A" }), result(json!({ "value": "it's" }))),
        ("env.get", json!({ "name": "NONE" }), result(json!({ "value": null }))),
        (
            "run",
            json!({ "command": "printf() { echo no; }; export A IFS=x B=$'l\n1'; C=private; set -eu; unset -v HOME" }),
            json!({ "result": "*" }),
        ),
        (
            "env.list",
            json!({}),
            result(json!({ "variables": {
                "A": "it's", "B": "l\n1", "IFS": "x", "LANG": "*", "LOGNAME": "*", "PATH": "*", "PWD": "*",
                "SHELL": "*", "SHLVL": "*", "USER": "*",
            } })),
        ),
        (
            "env.set",
            json!({ "name": "1A", "value": "" }),
            error(-32602, "not an environment variable: \"1A\""),
        ),
        ("env.set", json!({ "name": "A" }), error(-32602, "Missing required param: value")),
        ("env.get", json!({ "name": 1 }), error(-32602, "name must be a string")),
        ("mount", json!({ "path": "/mnt/ro", "files": { "a/b": base64("x") } }), ok()),
        ("mount", json!({ "path": "/mnt/rw", "files": {}, "writable": true }), ok()),
        ("files.read", json!({ "path": "/mnt/ro/a/b" }), result(json!({ "data": base64("x") }))),
        (
            "files.write",
            json!({ "path": "/mnt/ro/a/b", "data": "" }),
            errno("EROFS", "EROFS: read-only file system: /mnt/ro/a/b"),
        ),
        ("files.write", json!({ "path": "/mnt/rw/c", "data": "" }), ok()),
        (
            "mount",
            json!({ "path": "/etc/passwd", "files": {} }),
            errno("ENOTDIR", "ENOTDIR: not a directory: /etc/passwd"),
        ),
        ("mount", json!({ "path": "m", "files": {} }), error(-32602, "not a path to mount at: \"m\"")),
        ("mount", json!({ "path": "/m" }), error(-32602, "Missing required param: files")),
        ("mount", json!({ "path": "/m", "files": { "a": 1 } }), error(-32602, "files.a must be a string")),
        (
            "mount",
            json!({ "path": "/m", "files": { "../a": "" } }),
            error(-32602, "a file to mount at /m has a name that leads elsewhere"),
        ),
        ("snapshot.create", json!({}), result(json!({ "id": "1" }))),
        ("env.set", json!({ "name": "A", "value": "later" }), ok()),
        ("files.rm", json!({ "path": "/mnt/rw/c" }), ok()),
        ("snapshot.restore", json!({ "id": "1" }), ok()),
        ("env.get", json!({ "name": "A" }), result(json!({ "value": "it's" }))),
        ("files.read", json!({ "path": "/mnt/rw/c" }), result(json!({ "data": "" }))),
        ("snapshot.restore", json!({ "id": "2" }), error(-32602, "Unknown snapshot: 2")),
        ("snapshot.restore", json!({}), error(-32602, "Missing required param: id")),
        ("shell.history.clear", json!({}), ok()),
        ("env.list", json!({}), json!({ "result": "*" })),
        ("shell.history.list", json!({}), result(json!({ "entries": [] }))),
        ("run", json!({ "command": "true" }), json!({ "result": "*" })),
        (
            "shell.history.list",
            json!({}),
            result(json!({ "entries": [{ "index": "*", "command": "true", "timestamp": "*" }] })),
        ),
        ("shell.history.clear", json!({}), ok()),
        ("shell.history.list", json!({}), result(json!({ "entries": [] }))),
        ("sandbox.suspend", json!({}), ok()),
        ("sandbox.resume", json!({}), ok()),
        ("offload", json!({}), error(-32602, "storage was not enabled in create")),
        ("rehydrate", json!({}), error(-32602, "storage was not enabled in create")),
    ])
    .await;
}

#[tokio::test]
async fn the_options_of_create() {
    let refused = [
        (
            json!({ "network": { "allowedHosts": ["http://a/"] } }),
            "network: network policy: allowedHosts: 'http://a/': invalid host name: not a network",
        ),
        (json!({ "pythonPath": ["/a:/b"] }), "not a directory for pythonPath: \"/a:/b\""),
        (json!({ "pythonPath": "/lib" }), "pythonPath must be an array of strings"),
        (json!({ "timeoutMs": true }), "timeoutMs must be a number of milliseconds"),
        (json!({ "fsLimitBytes": 0.5 }), "fsLimitBytes must be a whole number, not negative"),
        (json!({ "limits": [] }), "limits must be an object"),
        (json!({ "limits": { "processes": -1 } }), "limits.processes must be a whole number, not negative"),
        (json!({ "limits": { "rpcBytes": "8M" } }), "limits.rpcBytes must be a whole number, not negative"),
        (json!({ "mounts": [{ "path": "/m" }] }), "Missing required param: mounts[0].files"),
        (json!({ "mounts": [1] }), "mounts must be an array of objects"),
        (json!({ "mounts": [{ "path": "/m", "files": { "f": "?" } }] }), "mounts[0].files.f must be base64"),
        (json!({ "env": { "A": 1 } }), "env.A must be a string"),
        (json!({ "env": { "A B": "" } }), "not an environment variable: \"A B\""),
        (json!({ "extensions": [{}] }), "Missing required param: extensions[0].name"),
        (
            json!({ "extensions": [{ "name": "ls" }] }),
            "an extension cannot be called 'ls': /bin/ls would be found first",
        ),
        (
            json!({ "extensions": [{ "name": "a", "examples": [1] }] }),
            "extensions[0].examples must be an array of strings",
        ),
        (
            json!({ "security": { "toolAllowlist": "ls" } }),
            "security.toolAllowlist must be an array of strings",
        ),
        (json!({ "pool": { "minSize": 5, "maxSize": 2 } }), "a pool of at least 5 and at most 2 shells"),
        (json!({ "storage": "s3" }), "storage must be true or false"),
    ];
    for (params, message) in refused {
        let mut client = Client::new(Options::default());
        assert_eq!(client.failure("create", params.clone()).await, (-32602, message.to_owned()), "{params}");
    }
    let mut client = Client::created(json!({
        "timeoutMs": 20_000.0,
        "fsLimitBytes": 6000,
        "limits": { "stdoutBytes": 4, "fileCount": 6 },
        "mounts": [{ "path": "/m", "files": { "f": base64("x") } }],
        "pythonPath": [],
        "env": { "A": "given" },
        "network": null,
        "security": { "toolAllowlist": ["cat"] },
        "pool": { "minSize": 0, "maxSize": 64 },
        "nice": 3,
        "wasmDir": "/anywhere",
        "shellWasmPath": 17,
    }))
    .await;
    assert_eq!(client.stdout("cat /m/f; echo $A").await, "xgiv", "cut at four bytes");
    let full = client.failure("files.write", json!({ "path": "f", "data": base64([0; 6000]) })).await;
    assert_eq!(
        full,
        (1, "ENOSPC: no space left on device: /home/user/f: fsLimitBytes limit of 6000 reached".to_owned())
    );
    let denied = client.call("run", json!({ "command": "ls" })).await;
    assert_eq!((&denied["exitCode"], &denied["errorClass"]), (&json!(126), &json!("CAPABILITY_DENIED")));
    // A named sandbox is made the same way, a fork has the same limits.
    for (method, id) in [("sandbox.create", "1"), ("sandbox.fork", "2")] {
        assert_eq!(client.call(method, json!({})).await, json!({ "sandboxId": id }));
        let run = json!({ "command": "cat /m/f; echo $A", "sandboxId": id });
        assert_eq!(client.call("run", run).await["stdout"], "xgiv");
    }
}

#[tokio::test]
async fn no_more_sandboxes_than_there_may_be() {
    let mut client = Client::new(Options { max_sandboxes: 4, ..Options::default() });
    let full = "Maximum of 4 sandboxes reached";
    let rows = vec![
        ("create", json!({}), ok()),
        ("sandbox.fork", json!({ "count": 4 }), error(-32602, full)),
        ("sandbox.fork", json!({ "count": 2 }), json!({ "result": "*" })),
        ("sandbox.create", json!({}), json!({ "result": "*" })),
        ("sandbox.create", json!({}), error(-32602, full)),
        ("sandbox.fork", json!({}), error(-32602, full)),
        ("sandbox.fork", json!({ "count": 1u64 << 40 }), error(-32602, full)),
        ("sandbox.destroy", json!({ "sandboxId": "1" }), ok()),
        ("sandbox.fork", json!({ "sandboxId": "2" }), result(json!({ "sandboxId": "4" }))),
        ("sandbox.remove", json!({ "sandboxId": "3" }), ok()),
        ("sandbox.create", json!({}), result(json!({ "sandboxId": "5" }))),
        ("sandbox.create", json!({}), error(-32602, full)),
    ];
    check(&mut client, rows).await;
}

#[tokio::test]
async fn python() {
    let done = |code: u8, stdout: &str, more: Value| {
        let mut answer = json!({ "exitCode": code, "stdout": stdout, "stderr": "", "executionTimeMs": "*" });
        answer.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        result(answer)
    };
    let name_error = json!({ "type": "NameError", "message": "name 'x' is not defined", "traceback": "*" });
    let shown = "class S:\n  def _repr_html_(s): return '<p>'\n  def _repr_json_(s): return [1]\n  def __repr__(s): return 's'\n\
                 display(S()); S()";
    let s = json!({ "repr": "s", "html": "<p>", "json": [1] });
    table(vec![
        ("python.run", json!({ "code": "x = 20\nprint('said')" }), done(0, "said\n", json!({}))),
        ("python.run", json!({ "code": "x + 22" }), done(0, "", json!({ "value": { "repr": "42" } }))),
        ("python.run", json!({ "code": "x", "context": "b" }), done(1, "", json!({ "error": name_error }))),
        ("python.run", json!({ "code": shown }), done(0, "", json!({ "value": s, "displays": [s] }))),
        (
            "python.run",
            json!({ "code": "input() * 2", "stdin": base64("ab\n") }),
            done(0, "", json!({ "value": { "repr": "'abab'" } })),
        ),
        ("python.run", json!({ "code": "exit(7)" }), done(7, "", json!({}))),
        (
            "python.run",
            json!({ "code": "while True: pass", "timeoutMs": 100 }),
            result(json!({
                "exitCode": 124, "stdout": "", "stderr": "wardian: timed out after 100 ms\n",
                "executionTimeMs": "*", "errorClass": "TIMEOUT",
            })),
        ),
        ("python.run", json!({ "code": "x" }), done(0, "", json!({ "value": { "repr": "20" } }))),
        ("python.run", json!({}), error(-32602, "Missing required param: code")),
        ("python.run", json!({ "code": 7 }), error(-32602, "code must be a string")),
        ("python.run", json!({ "code": "1", "context": 7 }), error(-32602, "context must be a string")),
        (
            "python.run",
            json!({ "code": "1", "context": "" }),
            error(-32602, "a context has a name of 1 to 64 bytes"),
        ),
        ("python.run", json!({ "code": "1", "sandboxId": "x" }), error(-32602, "Unknown sandboxId: x")),
    ])
    .await;
}
