//! `network.request`: the client's own say in each request. Nothing is connected: what is allowed comes from a cassette.

use serde_json::{Value, json};
use wardian_server::Options;

use crate::support::{Client, base64};

/// A response to `GET http://api.test/there`.
const CASSETTE: &str = r#"{"id":1,"method":"GET","url":"http://api.test/there","status":200,"reason":"OK","headers":[]}
{"id":1,"body":"cmVjb3JkZWQ="}
{"id":1,"end":{"request":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","trailers":[]}}
"#;

struct Asked {
    client: Client,
    _cassette: tempfile::NamedTempFile,
}

impl Asked {
    /// A client that is asked about requests to `api.test`, with more fields of a policy.
    async fn with(more: Value) -> Asked {
        let cassette = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(cassette.path(), CASSETTE.repeat(9)).expect("written");
        let mut network =
            json!({ "allowedHosts": ["api.test"], "onRequest": true, "replay": cassette.path() });
        network.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        Asked { client: Client::created(json!({ "network": network })).await, _cassette: cassette }
    }

    /// Has a command make a request, answers the server's question with a whole line, and returns what the command printed.
    async fn answered(&mut self, command: &str, mut line: Value) -> (String, Value) {
        let run = self.client.send("run", json!({ "command": command })).await;
        let (id, params) = self.client.answers.callback("network.request").await;
        line["jsonrpc"] = json!("2.0");
        line["id"] = id;
        self.client.requests.line(line.to_string()).await;
        let result = self.client.answer(run).await["result"].clone();
        (result["stdout"].as_str().expect("text").to_owned(), params)
    }
}

const GET: &str = "curl -s -w ' %{http_code}' http://api.test/there";

#[tokio::test]
async fn the_client_allows_denies_or_answers_each_request() {
    let mut asked = Asked::with(json!({})).await;
    let post = "curl -s -H 'X-A: 1' -H 'X-A: 2' -d body 'http://api.test/p?q=1'";
    let (said, params) =
        asked.answered(post, json!({ "result": { "action": "deny", "reason": "no" } })).await;
    assert_eq!(said, "wardian: api.test: no\n");
    for (name, value) in [("scheme", "http"), ("host", "api.test"), ("method", "POST"), ("path", "/p?q=1")] {
        assert_eq!(params[name], value, "{params}");
    }
    assert_eq!(params["port"], 80);
    let headers = params["headers"].as_array().expect("a list");
    assert!(headers.contains(&json!(["x-a", "1"])) && headers.contains(&json!(["x-a", "2"])), "{params}");
    let (said, _) = asked.answered(GET, json!({ "result": { "action": "allow" } })).await;
    assert_eq!(said, "recorded 200");
    let headers = json!({ "X-Pot": "tea", "Content-Length": "9" });
    let answer = json!({ "action": "answer", "status": 418, "headers": headers, "data": base64("mine") });
    let (said, _) = asked.answered(&format!("{GET} -i"), json!({ "result": answer })).await;
    let expected = "HTTP/1.1 418 I'm a teapot\r\nX-Pot: tea\r\nContent-Length: 4\r\n\r\nmine 418";
    assert_eq!(said, expected);
    let (said, _) = asked.answered(GET, json!({ "result": { "action": "answer" } })).await;
    assert_eq!(said, " 200");
    // It is asked for forks as well.
    let fork = asked.client.call("sandbox.fork", json!({})).await["sandboxId"].clone();
    let run = asked.client.send("run", json!({ "command": GET, "sandboxId": fork })).await;
    asked.client.answers.callback("network.request").await;
    asked.client.call("cancel", json!({ "sandboxId": fork })).await;
    assert_eq!(asked.client.answer(run).await["result"]["errorClass"], "CANCELLED");
}

#[tokio::test]
async fn whatever_is_no_decision_denies_the_request() {
    let mut asked = Asked::with(json!({ "responseBytes": 100 })).await;
    let long = base64("x".repeat(101));
    let many: serde_json::Map<_, _> = (0..129).map(|number| (format!("X-{number}"), json!("1"))).collect();
    let answers = [
        json!({ "result": null }),
        json!({ "result": {} }),
        json!({ "result": { "action": "ALLOW" } }),
        json!({ "result": { "action": true } }),
        json!({ "result": { "action": "allow", "unless": "something" } }),
        json!({ "result": { "action": "deny", "reason": 1 } }),
        json!({ "result": { "action": "answer", "status": 101 } }),
        json!({ "result": { "action": "answer", "status": 99999 } }),
        json!({ "result": { "action": "answer", "data": "no base64!" } }),
        json!({ "result": { "action": "answer", "headers": { "X": 1 } } }),
        json!({ "result": { "action": "answer", "headers": many } }),
        json!({ "result": { "action": "answer", "headers": { "X": "a".repeat(65 << 10) } } }),
        json!({ "result": { "action": "answer", "headers": { "X": "a\r\nY: b" } } }),
        json!({ "result": { "action": "answer", "data": long } }),
        json!({ "error": { "code": -32603, "message": "private details" } }),
    ];
    for answer in answers {
        let (said, _) = asked.answered(GET, answer.clone()).await;
        assert!(said.ends_with(" 403") && said.contains("onRequest"), "{answer}: {said}");
        assert!(!said.contains("private"), "{said}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_decide_denies_the_request() {
    let mut asked = Asked::with(json!({ "responseTimeoutMs": 300 })).await;
    let run = asked.client.send("run", json!({ "command": GET })).await;
    let (late, _) = asked.client.answers.callback("network.request").await;
    let result = asked.client.answer(run).await["result"].clone();
    assert_eq!(result["stdout"], "wardian: api.test: onRequest did not answer in time\n 403");
    assert_eq!(result["errorClass"], "CAPABILITY_DENIED");
    let late = json!({ "jsonrpc": "2.0", "id": late, "result": { "action": "allow" } });
    asked.client.requests.line(late.to_string()).await;
    // Leaving ends the question, too.
    asked.client.send("run", json!({ "command": GET })).await;
    asked.client.answers.callback("network.request").await;
    asked.client.leave().await;
}

#[tokio::test]
async fn on_request_is_true_or_false() {
    let mut client = Client::new(Options::default());
    let wrong = json!({ "network": { "allowedHosts": ["api.test"], "onRequest": "yes" } });
    assert_eq!(
        client.failure("create", wrong).await,
        (-32602, "network.onRequest must be true or false".to_owned())
    );
    let off = json!({ "network": { "allowedHosts": [], "onRequest": false } });
    assert_eq!(client.call("create", off).await, json!({ "ok": true }));
}
