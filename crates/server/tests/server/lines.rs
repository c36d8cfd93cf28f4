//! Random lines. `cargo xtask fuzz server_lines` goes on for longer.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use wardian_server::try_line;

use crate::support::Client;

/// Every method but `kill`, and some that are none.
const METHODS: [&str; 30] = [
    "create",
    "run",
    "cancel",
    "files.read",
    "files.write",
    "files.list",
    "files.mkdir",
    "files.rm",
    "files.stat",
    "env.set",
    "env.get",
    "mount",
    "snapshot.create",
    "snapshot.restore",
    "sandbox.fork",
    "sandbox.destroy",
    "sandbox.create",
    "sandbox.list",
    "sandbox.remove",
    "sandbox.suspend",
    "sandbox.resume",
    "persistence.export",
    "persistence.import",
    "offload",
    "rehydrate",
    "shell.history.list",
    "shell.history.clear",
    "",
    "run ",
    "\u{0}",
];
const PARAMS: [&str; 22] = [
    "command",
    "stream",
    "timeoutMs",
    "stdin",
    "encoding",
    "sandboxId",
    "path",
    "data",
    "name",
    "value",
    "files",
    "writable",
    "id",
    "count",
    "label",
    "file",
    "limits",
    "mounts",
    "env",
    "extensions",
    "pool",
    "nice",
];

/// So many cases, or for so long as `cargo xtask fuzz` says.
fn check<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let seconds = std::env::var("WARDIAN_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let (start, time) = (Instant::now(), Duration::from_secs(seconds.unwrap_or(0)));
    loop {
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        TestRunner::new(config).run(strategy, &test).unwrap_or_else(|error| panic!("{error}"));
        if start.elapsed() >= time {
            return;
        }
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["/tmp", "/tmp/f", "1", "2", "A", "YQ==", "base64", "echo hi", ":"])
            .prop_map(Value::from),
        (0u64..3).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((param_name(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn param_name() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(&PARAMS[..]).prop_map(str::to_owned), 1 => ".{0,6}"]
}

fn params() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((param_name(), json_value()), 0..5)
        .prop_map(|members| members.into_iter().collect())
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    (json_value(), prop::sample::select(&METHODS[..]), params()).prop_map(|(id, method, params)| {
        json!({ "id": id, "method": method, "params": params }).to_string().into_bytes()
    })
}

/// Lines from noise to nearly right.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let member = prop_oneof![
        Just("jsonrpc".to_owned()),
        Just("id".to_owned()),
        Just("method".to_owned()),
        Just("params".to_owned()),
        Just("result".to_owned()),
        Just("error".to_owned()),
        ".{0,3}"
    ];
    let object = prop::collection::vec((member, json_value()), 0..6)
        .prop_map(|members| Value::Object(members.into_iter().collect()).to_string().into_bytes());
    let damaged = (request(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut line, at, byte)| {
        let at = at.index(line.len());
        line[at] = byte;
        line
    });
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "[\\[\\]{}\",:0-9a-z\\\\]{0,80}".prop_map(String::into_bytes),
        object,
        request(),
        damaged,
    ]
}

#[test]
fn any_line_has_at_most_one_answer_and_that_is_a_message() {
    check(5000, &line(), |line| {
        let Some(answer) = try_line(&line) else { return Ok(()) };
        prop_assert_eq!(answer.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        prop_assert_eq!(&answer["jsonrpc"], "2.0");
        let code = answer["error"]["code"].as_i64().expect("without a sandbox there are only errors");
        prop_assert!([-32700, -32600, -32602].contains(&code), "{}", answer);
        // An id that could be read is the one that is answered. (Of fractions JSON promises nothing.)
        if let Ok(Value::Object(sent)) = serde_json::from_slice(&line)
            && sent.get("id").is_some_and(|id| id.is_string() || id.is_i64() || id.is_u64())
        {
            prop_assert_eq!(answer.get("id"), sent.get("id"));
        }
        Ok(())
    });
}

#[test]
fn any_request_to_a_live_server_has_one_answer() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = parking_lot::Mutex::new(runtime.block_on(Client::created(json!({ "timeoutMs": 2000 }))));
    check(300, &(prop::sample::select(&METHODS[..]), params()), |(method, mut params)| {
        // A run may take its time, but not for ever, and a suspended one would.
        params.remove("timeoutMs");
        let mut client = client.lock();
        runtime.block_on(async {
            let id = client.send(method, Value::Object(params.clone())).await;
            if method == "sandbox.suspend" {
                client.ask("sandbox.resume", json!({ "sandboxId": params.get("sandboxId") })).await;
            }
            let answer = client.answers.to(&json!(id)).await;
            assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{answer}");
            if let Some(error) = answer.get("error") {
                let code = error["code"].as_i64().expect("a code");
                assert!([-32600, -32601, -32602, 1].contains(&code), "{method} {params:?}: {error}");
            }
        });
        Ok(())
    });
    assert_eq!(runtime.block_on(client.lock().stdout("echo alive")), "alive\n");
}

#[test]
fn lines_fall_apart_as_they_were_written_however_they_arrive() {
    use wardian_server::line::{Line, Lines};
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let lines = prop::collection::vec(
        prop::collection::vec(any::<u8>().prop_filter("no end", |b| *b != b'\n'), 0..40),
        0..20,
    );
    check(500, &(lines, 1usize..50, 0usize..40), |(lines, piece, limit)| {
        let bytes: Vec<u8> = lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect();
        let mut reader = Lines::new(tokio::io::BufReader::with_capacity(piece, &bytes[..]));
        for line in lines {
            let expected = if line.len() > limit { Line::TooLong } else { Line::Whole(line) };
            prop_assert_eq!(runtime.block_on(reader.next(limit)).unwrap(), Some(expected));
        }
        prop_assert_eq!(runtime.block_on(reader.next(limit)).unwrap(), None);
        Ok(())
    });
}
