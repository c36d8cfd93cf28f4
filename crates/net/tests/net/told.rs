//! What an embedder is told of refusals within connections, and what becomes of its own answers.

use std::sync::Arc;

use parking_lot::Mutex;
use wardian_net::{Answer, Decision, Host, HttpRule, NetworkPolicy, Options, RequestInfo};

use crate::servers;
use crate::world::{World, last, local};

type Told = Arc<Mutex<Vec<String>>>;

/// Has refusals written down.
fn listening(told: &Told) -> impl FnOnce(&mut Options) {
    let told = told.clone();
    move |options| {
        options.on_denied = Some(Arc::new(move |denied, port| {
            told.lock().push(format!("{} {port:?} {}: {}", denied.host, denied.rule, denied.why));
        }));
    }
}

#[tokio::test]
async fn refusals_within_a_connection_are_reported_and_those_before_it_are_not() {
    let server = servers::http().await;
    let rule = HttpRule { host: "api.test".into(), methods: vec!["GET".into()], path_prefixes: vec![] };
    let policy = NetworkPolicy { http_rules: vec![rule], request_bytes: 3, ..Default::default() };
    let told = Told::default();
    let world = World::with(local(policy, server.port), listening(&told));
    let port = Some(server.port);
    world
        .ask("api.test", server.port, "POST /x HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n")
        .await;
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send(b"\x16\x03\x01\x00\x05hello").await;
    guest.bytes().await;
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    assert!(guest.tls("api.test", false, &[]).await.starts_with("error denied"));
    let expected = [
        format!("api.test {port:?} httpRules: no HTTP rule allows POST /x"),
        format!(
            "api.test {port:?} rawHosts: TLS is the gateway's: ask for it with a control record, or have the host \
             granted as raw"
        ),
        format!("api.test {port:?} tls: the policy does not allow TLS without verification"),
    ];
    assert_eq!(*told.lock(), expected);
    // The caller gets these as errors, and mistakes of a guest are no decision of the policy.
    assert!(world.gateway.look_up("example.org").is_err());
    assert!(world.connect("api.test", 25).await.is_err());
    world.ask("api.test", server.port, "nonsense\r\n\r\n").await;
    assert_eq!(told.lock().len(), 3);
    assert_eq!(world.named("net.denied").len(), 6);
}

#[tokio::test]
async fn connections_above_a_limit_are_recorded_with_its_name() {
    let server = servers::http().await;
    let policy = NetworkPolicy { max_connections: 1, total_bytes: Some(1), ..Default::default() };
    let told = Told::default();
    let world = World::with(local(policy, server.port), listening(&told));
    let host = Host::Name("API.test".into());
    // A name without an address is no decision.
    let unknown = world.connect("nowhere.test", server.port).await.err().expect("no such name");
    assert!(unknown.denied(&host).is_none() && world.named("net.denied").is_empty());
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    let refused = world.connect("API.test", server.port).await.err().expect("one is open");
    let denied = refused.denied(&host).expect("a decision");
    assert_eq!(denied.to_string(), "api.test: maxConnections is used up");
    // Nothing was moved so far: the first request uses up what there is.
    guest.send(last("/echo")).await;
    guest.rest().await;
    guest.ending().await;
    told.lock().clear();
    let refused = world.connect("api.test", server.port).await.err().expect("nothing is left");
    assert_eq!(refused.denied(&host).expect("a decision").rule, "totalBytes");
    let records: Vec<String> = world
        .named("net.denied")
        .iter()
        .map(|record| format!("{} {} {} {}", record["host"], record["port"], record["rule"], record["why"]))
        .collect();
    let record = |rule: &str| format!("\"api.test\" {} \"{rule}\" \"{rule} is used up\"", server.port);
    assert_eq!(records.first(), Some(&record("maxConnections")));
    assert_eq!(records.last(), Some(&record("totalBytes")));
    // Whoever connects has the error, and is not told a second time.
    assert!(told.lock().is_empty());
}

#[tokio::test]
async fn an_answer_of_the_embedder_must_be_one() {
    let server = servers::http().await;
    let decide = |request: &RequestInfo| {
        let answer = |status, value: &str, length| {
            let headers = vec![("X-A".to_owned(), value.to_owned())];
            Decision::Answer(Answer { status, headers, body: vec![b'x'; length].into() })
        };
        match request.target.as_str() {
            "/long" => answer(200, "1", 11),
            "/status" => answer(101, "1", 0),
            "/header" => answer(200, "1\r\nX-B: 2", 0),
            _ => answer(200, "1", 10),
        }
    };
    let policy = NetworkPolicy { response_bytes: 10, ..Default::default() };
    let world = World::with(local(policy, server.port), |options| {
        options.on_request = Some(Arc::new(decide));
    });
    for (path, why) in [
        ("/long", "larger than responseBytes"),
        ("/status", "no status from 200 to 599"),
        ("/header", "a malformed header"),
    ] {
        let answer = world.ask("api.test", server.port, &last(path)).await;
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(why), "{path}: {answer}");
    }
    assert!(world.ask("api.test", server.port, &last("/")).await.ends_with("xxxxxxxxxx"));
    assert!(server.seen.lock().is_empty());
}
