//! `outputFile`: all of a run's output in a file of the sandbox, whatever the result keeps.

use serde_json::json;

use crate::support::{Client, base64, decode};

#[tokio::test]
async fn everything_is_in_the_file_in_order_however_little_the_result_keeps() {
    let mut client = Client::created(json!({ "limits": { "stdoutBytes": 10, "stderrBytes": 10 } })).await;
    let command = "for i in {1..2000}; do echo out $i; echo err $i >&2; done; printf 'no é line'";
    for stream in [false, true] {
        let run = json!({ "command": command, "outputFile": "all", "stream": stream });
        let result = client.call("run", run).await;
        let expected: String =
            (1..=2000).map(|i| format!("out {i}\nerr {i}\n")).collect::<String>() + "no é line";
        let file = json!({ "path": "/home/user/all", "bytes": expected.len() });
        assert_eq!((&result["outputFile"], &result["limit"]), (&file, &json!("stdoutBytes")), "{result}");
        assert_eq!(result["stdout"].as_str().map(str::len), Some(10));
        let read = client.call("files.read", json!({ "path": "all" })).await;
        assert_eq!(
            String::from_utf8(decode(&read["data"])).expect("text"),
            expected,
            "the one before is replaced"
        );
    }
    assert!(client.call("run", json!({ "command": "true" })).await.get("outputFile").is_none());
    // What Wardian says of its end is the last line.
    let killed =
        json!({ "command": "echo before; while :; do :; done", "timeoutMs": 300, "outputFile": "/tmp/f" });
    let result = client.call("run", killed).await;
    let text = "before\nwardian: timed out after 300 ms\n";
    assert_eq!(result["outputFile"], json!({ "path": "/tmp/f", "bytes": text.len() }), "{result}");
    assert_eq!(
        decode(&client.call("files.read", json!({ "path": "/tmp/f" })).await["data"]),
        text.as_bytes()
    );
}

#[tokio::test]
async fn what_cannot_be_kept_is_said_and_nothing_else_is_lost() {
    let mut client = Client::created(json!({ "fsLimitBytes": 400_000 })).await;
    let full = json!({ "command": "head -c 1000000 /dev/zero; echo done >&2", "outputFile": "/tmp/f" });
    let result = client.call("run", full).await;
    assert_eq!(result["outputFile"]["error"], "ENOSPC", "{result}");
    assert_eq!((&result["limit"], &result["exitCode"]), (&json!("fsLimitBytes"), &json!(0)));
    assert_eq!(result["stdout"].as_str().map(str::len), Some(1_000_000), "the result is as without it");
    let kept = result["outputFile"]["bytes"].as_u64().expect("a number");
    let size = client.call("files.stat", json!({ "path": "/tmp/f" })).await["size"].as_u64();
    assert!(kept < 400_000 && size == Some(kept), "{kept} {size:?}");
    client.call("files.rm", json!({ "path": "/tmp/f" })).await;
    // A command that changes the file: nothing is put after a gap, and it is said.
    for command in ["echo a; sleep 0.2; rm /tmp/f; echo b", "echo a; sleep 0.2; echo x >> /tmp/f; echo b"] {
        let result = client.call("run", json!({ "command": command, "outputFile": "/tmp/f" })).await;
        assert_eq!(result["outputFile"]["error"], "ESTALE", "{command}: {result}");
        assert_eq!((&result["stdout"], &result["exitCode"]), (&json!("a\nb\n"), &json!(0)));
    }
    let undone = json!({
        "command": "echo a; sleep 0.2; echo b; while :; do :; done", "timeoutMs": 800, "onKill": "rollback",
        "outputFile": "/tmp/undone",
    });
    let result = client.call("run", undone).await;
    assert_eq!(
        (&result["errorClass"], &result["outputFile"]["error"]),
        (&json!("TIMEOUT"), &json!("ESTALE"))
    );
}

#[tokio::test]
async fn a_place_where_no_file_can_be_is_refused_before_anything_runs() {
    let mut client = Client::created(json!({ "writablePaths": ["/tmp"] })).await;
    client.stdout("mkfifo /tmp/pipe; ln -s /tmp/pipe /tmp/link").await;
    for (path, message) in [
        ("/tmp", "EISDIR: is a directory: /tmp"),
        ("/no/such", "ENOENT: no such file or directory: /no/such"),
        ("/home/user/f", "EROFS: read-only file system: /home/user/f"),
        ("/tmp/pipe", "EINVAL: invalid argument: /tmp/pipe"),
        ("/tmp/link", "EINVAL: invalid argument: /tmp/link"),
        ("", "ENOENT: no such file or directory"),
    ] {
        let run = json!({ "command": "touch /tmp/ran", "outputFile": path });
        let (code, said) = client.failure("run", run).await;
        assert!(code == 1 && said.starts_with(message), "{path}: {said}");
    }
    let long = json!({ "command": "touch /tmp/ran", "outputFile": format!("/tmp/{}", "x".repeat(5000)) });
    assert!(client.failure("run", long).await.1.starts_with("ENAMETOOLONG: "));
    assert_eq!(client.stdout("ls /tmp").await, "link\npipe\n");
    client.call("files.write", json!({ "path": "/tmp/f", "data": base64("old and long") })).await;
    client.call("run", json!({ "command": "echo new", "outputFile": "/tmp/f" })).await;
    assert_eq!(client.stdout("cat /tmp/f").await, "new\n");
}
