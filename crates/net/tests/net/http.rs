//! What an ordinary client does, it does through the gateway as well.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use wardian_net::{Answer, Decision, HttpRule, NetworkPolicy, RequestInfo};

use crate::servers;
use crate::world::{World, get, last, local};

#[tokio::test]
async fn requests_are_re_emitted() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let request = "POST /echo?a=1 HTTP/1.1\r\nhOsT: API.test.\r\nX-One:  1 \r\nConnection: x-hop, close\r\nX-Hop: 1\r\nProxy-Authorization: x\r\nContent-Length: 5\r\n\r\nhello";
    let answer = world.ask("api.test", server.port, request).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("POST /echo?a=1 HTTP/1.1\n")
            && answer.contains("x-one: 1\n")
            && answer.ends_with("\n\nhello"),
        "{answer}"
    );
    assert!(answer.contains(&format!("host: api.test:{}\n", server.port)), "{answer}");
    assert!(!answer.contains("x-hop") && !answer.contains("proxy-authorization"), "{answer}");
    let requests = world.named("net.request");
    assert_eq!(requests.len(), 1);
    let data = &requests[0];
    assert_eq!(
        (data["method"].as_str(), data["path"].as_str(), data["status"].as_u64()),
        (Some("POST"), Some("/echo"), Some(200))
    );
    assert_eq!(
        (data["host"].as_str(), data["rule"].as_str(), data["requestBytes"].as_u64()),
        (Some("api.test"), Some("*.test"), Some(5))
    );
    assert_eq!(world.named("net.connect")[0]["address"], format!("127.0.0.1:{}", server.port));
}

#[tokio::test]
async fn connections_are_kept_and_requests_pipelined() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let bytes = [get("/bytes/3"), get("/chunks/25000"), get("/status/204"), last("/bytes/1")].concat();
    let answer = world.ask("api.test", server.port, &bytes).await;
    assert_eq!(answer.matches("HTTP/1.1 20").count(), 4, "{answer}");
    assert!(answer.contains("Content-Length: 3\r\n\r\nxxxHTTP/1.1 200 OK"), "{answer}");
    assert_eq!(answer.matches('y').count(), 25_000);
    assert!(answer.contains("0\r\n\r\nHTTP/1.1 204 No Content\r\n"), "{}", &answer[answer.len() - 400..]);
    assert_eq!(world.named("net.connect").len(), 1);
    assert_eq!(server.seen.lock().len(), 4);
}

#[tokio::test]
async fn chunks_and_trailers_go_both_ways() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let upload = "POST /echo HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nConnection: close\r\n\r\n5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 7\r\n\r\n";
    let answer = world.ask("api.test", server.port, upload).await;
    assert!(answer.contains("\nhello world") && answer.contains("trailer x-sum: 7"), "{answer}");
    let answer = world.ask("api.test", server.port, &last("/trailers")).await;
    assert!(answer.ends_with("4\r\ndata\r\n0\r\nX-Sum: 42\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_head_request_has_a_length_and_no_body() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let bytes = "HEAD /bytes/12 HTTP/1.1\r\nHost: api.test\r\n\r\n".to_owned() + &last("/bytes/2");
    let answer = world.ask("api.test", server.port, &bytes).await;
    assert!(answer.contains("Content-Length: 12\r\n") && answer.ends_with("\r\n\r\nxx"), "{answer}");
}

#[tokio::test]
async fn old_clients_get_a_body_until_the_end() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let answer = world.ask("api.test", server.port, "GET /chunks/5 HTTP/1.0\r\n\r\n").await;
    assert!(answer.contains("Connection: close\r\n") && answer.ends_with("\r\n\r\nyyyyy"), "{answer}");
}

#[tokio::test]
async fn a_client_that_expects_100_gets_it_before_it_sends() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send("PUT /echo HTTP/1.1\r\nHost: api.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\nConnection: close\r\n\r\n").await;
    assert!(guest.until("\r\n\r\n").await.starts_with("HTTP/1.1 100 Continue"));
    guest.send("body").await;
    let answer = guest.rest().await;
    assert!(
        answer.starts_with("HTTP/1.1 200")
            && answer.contains("expect: 100-continue")
            && answer.ends_with("\nbody"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_server_that_answers_before_the_body_is_heard() {
    let server =
        servers::canned(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n")
            .await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let head = "PUT / HTTP/1.1\r\nHost: api.test\r\nExpect: 100-continue\r\nContent-Length: 400000\r\n\r\n";
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send(head).await;
    let answer = guest.rest().await;
    assert!(answer.starts_with("HTTP/1.1 413 Too Large\r\n") && answer.ends_with("no\n"), "{answer}");
}

#[tokio::test]
async fn a_websocket_is_opaque_after_its_upgrade() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send("GET /ws HTTP/1.1\r\nHost: api.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\nearly ").await;
    let head = guest.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101") && head.contains("Upgrade: websocket"), "{head}");
    assert_eq!(guest.until("EARLY ").await, "EARLY ");
    guest.send("hello").await;
    assert_eq!(guest.until("HELLO").await, "HELLO");
    guest.stream.shutdown().await.expect("a shutdown");
    guest.rest().await;
    assert_eq!(guest.ending().await, wardian_net::Ending::Closed);
    let data = &world.named("net.request")[0];
    assert_eq!(
        (data["status"].as_u64(), data["requestBytes"].as_u64(), data["responseBytes"].as_u64()),
        (Some(101), Some(11), Some(11))
    );
}

#[tokio::test]
async fn other_upgrades_are_not_passed_on() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let request = "GET /echo HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
    let answer = world.ask("api.test", server.port, request).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && !answer.contains("h2c") && !answer.contains("http2-settings"),
        "{answer}"
    );
}

#[tokio::test]
async fn rules_are_about_methods_and_paths() {
    let server = servers::http().await;
    let rule = |methods: &[&str], paths: &[&str]| HttpRule {
        host: "api.test".into(),
        methods: methods.iter().map(ToString::to_string).collect(),
        path_prefixes: paths.iter().map(ToString::to_string).collect(),
    };
    let policy = NetworkPolicy {
        http_rules: vec![rule(&["GET"], &["/echo"]), rule(&["POST"], &[])],
        ..Default::default()
    };
    let world = World::new(local(policy, server.port));
    let answer =
        world.ask("api.test", server.port, &(get("/echo/x") + &get("/bytes/1") + &last("/echo"))).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("HTTP/1.1 403 Forbidden\r\n") && answer.contains("X-Wardian-Denied: httpRules\r\n"),
        "{answer}"
    );
    assert!(answer.contains("wardian: api.test: no HTTP rule allows GET /bytes/1\n"), "{answer}");
    assert_eq!(*server.seen.lock(), ["GET /echo/x HTTP/1.1", "GET /echo HTTP/1.1"]);
    assert_eq!(world.named("net.request")[0]["rule"], "*.test httpRules[0]");
    assert_eq!(world.named("net.denied")[0]["rule"], "httpRules");
    let other = "DELETE /echo HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n";
    assert!(world.ask("other.test", server.port, other).await.starts_with("HTTP/1.1 200"));
    // A host with rules is not reached where they cannot be enforced.
    assert!(world.connect("api.test", 9999).await.is_err());
}

#[tokio::test]
async fn the_embedder_decides_last() {
    let server = servers::http().await;
    let decide = |request: &RequestInfo| match request.target.as_str() {
        "/no" => Decision::Deny("not today".into()),
        "/mine" => Decision::Answer(Answer {
            status: 201,
            headers: vec![("X-From".into(), "me".into())],
            body: "made up".into(),
        }),
        _ => Decision::Allow,
    };
    let world = World::with(local(NetworkPolicy::default(), server.port), |options| {
        options.on_request = Some(Arc::new(decide))
    });
    let bytes = [get("/no"), get("/mine"), last("/echo")].concat();
    let answer = world.ask("api.test", server.port, &bytes).await;
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("not today"), "{answer}");
    assert!(
        answer.contains("HTTP/1.1 201 Created\r\nX-From: me\r\nContent-Length: 7\r\n\r\nmade up"),
        "{answer}"
    );
    assert!(answer.contains("GET /echo HTTP/1.1") && server.seen.lock().len() == 1, "{answer}");
    // A host that does not exist can be answered for; nothing else about it is possible.
    let answer = world.ask("nowhere.test", 80, "GET /mine HTTP/1.1\r\nHost: nowhere.test\r\n\r\nGET /x HTTP/1.1\r\nHost: nowhere.test\r\nConnection: close\r\n\r\n").await;
    assert!(
        answer.contains("made up") && answer.contains("HTTP/1.1 502") && answer.contains("name not found"),
        "{answer}"
    );
}

#[tokio::test]
async fn limits_end_a_response_and_say_so() {
    let server = servers::http().await;
    let policy = NetworkPolicy {
        response_bytes: 20_000,
        request_bytes: 10,
        total_bytes: Some(100_000),
        max_connections: 2,
        ..Default::default()
    };
    let world = World::new(local(policy, server.port));
    let answer = world.ask("api.test", server.port, &last("/bytes/20001")).await;
    assert!(
        answer.starts_with("HTTP/1.1 502") && answer.contains("X-Wardian-Denied: responseBytes"),
        "{answer}"
    );
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send(last("/chunks/1000000")).await;
    let answer = guest.rest().await;
    assert!(answer.len() < 40_000 && !answer.ends_with("0\r\n\r\n"), "{}", answer.len());
    assert!(matches!(guest.ending().await, wardian_net::Ending::Reset(_)));
    let long =
        "POST /echo HTTP/1.1\r\nHost: api.test\r\nContent-Length: 11\r\nConnection: close\r\n\r\nhello world";
    assert!(world.ask("api.test", server.port, long).await.starts_with("HTTP/1.1 413"));
    let long = "POST /echo HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nb\r\nhello world\r\n0\r\n\r\n";
    let answer = world.ask("api.test", server.port, long).await;
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.contains("X-Wardian-Denied: requestBytes"),
        "{answer}"
    );
    let (one, two) =
        (world.connect("api.test", server.port).await, world.connect("api.test", server.port).await);
    assert!(one.is_ok() && two.is_ok());
    let third = world.connect("api.test", server.port).await;
    assert!(matches!(third, Err(wardian_net::ConnectError::Limit("maxConnections"))));
    drop((one, two));
    for _ in 0..50 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if let Ok(mut guest) = world.connect("api.test", server.port).await {
            guest.send(last("/bytes/20000")).await;
            guest.rest().await;
        }
        if world.gateway.bytes_moved() > 100_000 {
            break;
        }
    }
    assert!(matches!(
        world.connect("api.test", server.port).await,
        Err(wardian_net::ConnectError::Limit("totalBytes"))
    ));
    assert!(matches!(
        world
            .gateway
            .fork()
            .connect(&wardian_net::Destination {
                host: wardian_net::Host::Name("api.test".into()),
                port: server.port
            })
            .await,
        Err(wardian_net::ConnectError::Limit("totalBytes"))
    ));
}
