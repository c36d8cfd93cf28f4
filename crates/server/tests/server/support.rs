//! A client of a server in this process.

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use wardian_server::{Options, Server};

/// So long that only an answer that never comes takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// The sending side.
pub(crate) struct Requests<W> {
    output: W,
    last: u64,
}

/// The receiving side. What comes while something else is waited for is kept.
pub(crate) struct Answers<R> {
    lines: Lines<BufReader<R>>,
    kept: VecDeque<Value>,
}

pub(crate) struct Client<R = DuplexStream, W = DuplexStream> {
    pub(crate) requests: Requests<W>,
    pub(crate) answers: Answers<R>,
    pub(crate) serving: Option<JoinHandle<()>>,
}

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn decode(text: &Value) -> Vec<u8> {
    STANDARD.decode(text.as_str().expect("a string")).expect("base64")
}

impl Client {
    /// One that has not said anything yet.
    pub(crate) fn new(options: Options) -> Client {
        Client::of(&Server::new(options))
    }

    /// One of the clients of this server.
    pub(crate) fn of(server: &Server) -> Client {
        let server = server.clone();
        let (requests, input) = tokio::io::duplex(64 * 1024);
        let (output, answers) = tokio::io::duplex(64 * 1024);
        let serving = tokio::spawn(async move { server.serve(input, output).await });
        Client { serving: Some(serving), ..Client::over(answers, requests) }
    }

    /// One that has its root sandbox.
    pub(crate) async fn created(params: Value) -> Client {
        let mut client = Client::new(Options::default());
        assert_eq!(client.call("create", params).await, json!({ "ok": true }));
        client
    }

    /// Leaves, and waits until the server has noticed.
    pub(crate) async fn leave(self) {
        let Client { requests, answers, serving } = self;
        drop(requests);
        tokio::time::timeout(PATIENCE, serving.expect("a server of its own"))
            .await
            .expect("the server ends with its input")
            .expect("without a panic");
        drop(answers);
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Client<R, W> {
    pub(crate) fn over(answers: R, requests: W) -> Client<R, W> {
        let lines = BufReader::new(answers).lines();
        Client {
            requests: Requests { output: requests, last: 0 },
            answers: Answers { lines, kept: VecDeque::new() },
            serving: None,
        }
    }

    /// Sends a request; answers its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.requests.send(method, params).await
    }

    /// Sends a request to a server that may have hung up; answers its id.
    pub(crate) async fn send_if_open(&mut self, method: &str, params: Value) -> u64 {
        self.requests.last += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.requests.last, "method": method, "params": params });
        let _ = self.requests.output.write_all(format!("{request}\n").as_bytes()).await;
        self.requests.last
    }

    /// The answer to a request, whole.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.answers.to(&json!(id)).await
    }

    /// Sends a request and waits for its answer, whole.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        let answer = self.answer(id).await;
        if let (Some(result), Some(method)) = (answer.get("result"), wardian_contract::methods::find(method))
        {
            let checked = (method.check)(result.clone());
            checked.unwrap_or_else(|why| panic!("{} is not in the contract: {why}: {answer}", method.name));
        }
        answer
    }

    /// The same where it succeeds: the result.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The same where it fails: the code and the message.
    pub(crate) async fn failure(&mut self, method: &str, params: Value) -> (i64, String) {
        let answer = self.ask(method, params).await;
        let error = &answer["error"];
        let message = error["message"].as_str().unwrap_or_else(|| panic!("{method} did not fail: {answer}"));
        (error["code"].as_i64().expect("a code"), message.to_owned())
    }

    /// Runs a command in the root; its standard output.
    pub(crate) async fn stdout(&mut self, command: &str) -> String {
        let result = self.call("run", json!({ "command": command })).await;
        result["stdout"].as_str().expect("text").to_owned()
    }
}

impl<W: AsyncWrite + Unpin> Requests<W> {
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.send_as(json!(self.last), method, params).await;
        self.last
    }

    pub(crate) async fn send_as(&mut self, id: Value, method: &str, params: Value) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.line(request.to_string()).await;
    }

    pub(crate) async fn line(&mut self, line: impl AsRef<[u8]>) {
        self.raw(&[line.as_ref(), b"\n"].concat()).await;
    }

    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        tokio::time::timeout(PATIENCE, self.output.write_all(bytes))
            .await
            .expect("the server reads")
            .expect("the server is there");
    }
}

impl<R: AsyncRead + Unpin> Answers<R> {
    /// The next message; nothing when the server is gone.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        if let Some(message) = self.kept.pop_front() {
            return Some(message);
        }
        self.read().await
    }

    /// The next message that the server sends of its own accord. Answers, which may come at any time, are kept.
    pub(crate) async fn told(&mut self) -> Value {
        let is_it = |message: &Value| message.get("method").is_some();
        if let Some(at) = self.kept.iter().position(is_it) {
            return self.kept.remove(at).expect("it was found there");
        }
        loop {
            let message = self.read().await.expect("a message");
            if is_it(&message) {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    /// Whether nothing was kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    async fn read(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("a message in time");
        // A server that hangs up on us while we send is gone, too.
        let line = line.or_else(|error| {
            if error.kind() == std::io::ErrorKind::ConnectionReset { Ok(None) } else { Err(error) }
        });
        let line = line.expect("UTF-8")?;
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        Some(message)
    }

    /// The length of the next message, whatever it is.
    pub(crate) async fn next_length(&mut self) -> usize {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("a message in time");
        line.expect("UTF-8").map_or(0, |line| line.len())
    }

    /// The answer to this id. Everything else is kept for [`Answers::next`].
    pub(crate) async fn to(&mut self, id: &Value) -> Value {
        let is_it = |message: &Value| message.get("id") == Some(id) && message.get("method").is_none();
        if let Some(at) = self.kept.iter().position(is_it) {
            return self.kept.remove(at).expect("it was found there");
        }
        loop {
            let message = self.read().await.unwrap_or_else(|| panic!("no answer to {id}"));
            if is_it(&message) {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    /// The next call from the server: its id and params.
    pub(crate) async fn callback(&mut self, method: &str) -> (Value, Value) {
        let message = self.told().await;
        assert_eq!(message["method"], method, "{message}");
        (message["id"].clone(), message["params"].clone())
    }
}
