//! Two hundred sandboxes on one connection, everything at once: nothing is lost, nothing goes to the wrong place.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Client, base64};

const SANDBOXES: usize = 200;

/// What a request must come to.
enum Expected {
    Ok,
    Stdout(String),
    Cancelled,
    Data(String),
}

/// What is asked of one sandbox, in this order.
fn requests(number: usize, sandbox: &Value) -> Vec<(&'static str, Value, Expected)> {
    let run =
        |command: String, stream: bool| json!({ "command": command, "stream": stream, "sandboxId": sandbox });
    let echo = |text: String| {
        (run(format!("x={number}; echo {text}"), false), Expected::Stdout(format!("{text}\n")))
    };
    let lines: String = (0..5).map(|line| format!("{number}.{line}\n")).collect();
    let (first, first_says) = echo(format!("first-{number}"));
    let (last, last_says) =
        (run("echo $x; cat f".into(), false), Expected::Stdout(format!("{number}\nfile-{number}")));
    let data = base64(format!("file-{number}"));
    let mut all = vec![
        ("run", run("echo endless; sleep 1000".into(), number.is_multiple_of(2)), Expected::Cancelled),
        ("cancel", json!({ "sandboxId": sandbox }), Expected::Ok),
        ("run", first, first_says),
        ("files.write", json!({ "path": "f", "data": data, "sandboxId": sandbox }), Expected::Ok),
        ("run", run(format!("for i in 0 1 2 3 4; do echo {number}.$i; done"), true), Expected::Stdout(lines)),
        ("files.read", json!({ "path": "f", "sandboxId": sandbox }), Expected::Data(data.clone())),
        ("run", last, last_says),
    ];
    if number.is_multiple_of(3) {
        // Ended with everything above still on its way, perhaps; so nothing above is asked of it.
        all = vec![
            ("run", run("while :; do echo spinning; done > /dev/null".into(), true), Expected::Cancelled),
            ("sandbox.destroy", json!({ "sandboxId": sandbox }), Expected::Ok),
        ];
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_sandboxes_at_once() {
    let mut client = Client::created(json!({ "timeoutMs": 0 })).await;
    let named = client.call("sandbox.create", json!({})).await["sandboxId"].clone();
    let fork = json!({ "count": SANDBOXES, "sandboxId": named });
    let ids = client.call("sandbox.fork", fork).await["sandboxIds"].as_array().unwrap().clone();
    let mut queues: Vec<_> =
        ids.iter().enumerate().map(|(number, id)| requests(number, id).into_iter()).collect();
    let mut expected = BTreeMap::new();
    let Client { requests: mut sender, mut answers, serving } = client;
    // Interleaved: some of each, round and round, a different number each time.
    let mut lines = Vec::new();
    for round in 0.. {
        let before = lines.len();
        for (number, queue) in queues.iter_mut().enumerate() {
            for (method, params, outcome) in queue.by_ref().take((round + number) % 3 + 1) {
                let id = format!("{number}-{}", lines.len());
                lines.push((id.clone(), method, params));
                expected.insert(id, outcome);
            }
        }
        if lines.len() == before {
            break;
        }
    }
    let sending = tokio::spawn(async move {
        for (id, method, params) in lines {
            sender.send_as(json!(id), method, params).await;
        }
        sender
    });
    let mut streamed: BTreeMap<String, String> = BTreeMap::new();
    while !expected.is_empty() {
        let message = answers.next().await.expect("an answer");
        if message["method"] == "output" {
            let id = message["params"]["request_id"].as_str().unwrap().to_owned();
            assert!(expected.contains_key(&id), "output of {id} after its answer");
            streamed.entry(id).or_default().push_str(message["params"]["data"].as_str().unwrap());
            continue;
        }
        let id = message["id"].as_str().unwrap();
        let outcome = expected.remove(id).unwrap_or_else(|| panic!("nobody waits for {message}"));
        let result = &message["result"];
        match outcome {
            Expected::Ok => assert_eq!(result["ok"], true, "{message}"),
            Expected::Stdout(text) => assert_eq!(result["stdout"], text, "{message}"),
            Expected::Cancelled => assert_eq!(result["errorClass"], "CANCELLED", "{message}"),
            Expected::Data(data) => assert_eq!(result["data"], data, "{message}"),
        }
        if let Some(text) = streamed.remove(id) {
            let kept = [result["stdout"].as_str().unwrap(), result["stderr"].as_str().unwrap()].concat();
            assert_eq!(text.len(), kept.len(), "{message}");
        }
    }
    assert!(streamed.is_empty(), "output of nobody's run");
    let mut sender = sending.await.unwrap();
    sender.send("kill", json!({})).await;
    assert_eq!(answers.next().await.unwrap()["result"], json!({ "ok": true }));
    serving.unwrap().await.unwrap();
}
