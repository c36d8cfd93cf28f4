//! Secrets reach their server and nobody else.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wardian_net::{Decision, NetworkPolicy, RequestInfo, Roots, Secret, SecretPlace};

use crate::servers::{self, Authority};
use crate::world::{World, local};

const VALUE: &str = "sk-very-secret/value";

fn policy(file: &tempfile::NamedTempFile, port: u16, place: SecretPlace) -> NetworkPolicy {
    let secret = Secret { name: "API_KEY".into(), host: "api.test".into(), value: VALUE.into(), place };
    let policy = NetworkPolicy {
        roots: Roots::CaFile,
        ca_file: Some(file.path().into()),
        secrets: vec![secret],
        allow_unverified_tls: true,
        ..Default::default()
    };
    local(policy, port)
}

/// Sends a request and returns what the guest sees, and checks that no record has the secret.
async fn ask(world: &World, port: u16, host: &str, tls: Option<bool>, request: &str) -> String {
    let mut guest = world.connect(host, port).await.expect("a connection");
    if let Some(verify) = tls {
        assert!(guest.tls(host, verify, &[]).await.starts_with("ok\n"));
    }
    guest.send(request).await;
    let answer = guest.rest().await;
    let records = format!("{:?}", world.events.lock());
    assert!(!records.contains(VALUE) && !records.contains("sk-very"), "{records}");
    assert!(!answer.contains(VALUE), "{answer}");
    answer
}

#[tokio::test]
async fn a_secret_is_sent_over_verified_tls_to_its_host_alone_and_masked() {
    let authority = Authority::new();
    let (file, server) = (authority.file(), authority.https(&["api.test", "other.test"], &[]).await);
    let stars = "*".repeat(VALUE.len());
    let request = |host: &str| {
        format!(
            "GET /echo?k=1 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer mine\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
        )
    };
    let world = World::new(policy(&file, server.port, SecretPlace::Bearer));
    let answer = ask(&world, server.port, "api.test", Some(true), &request("api.test")).await;
    assert!(
        answer.contains(&format!("authorization: Bearer {stars}\n"))
            && answer.contains("accept-encoding: identity"),
        "{answer}"
    );
    let answer = ask(&world, server.port, "api.test", Some(false), &request("api.test")).await;
    assert!(!answer.contains("authorization"), "{answer}");
    let answer = ask(&world, server.port, "other.test", Some(true), &request("other.test")).await;
    assert!(answer.contains("authorization: Bearer mine\n"), "{answer}");
    let world = World::new(policy(&file, server.port, SecretPlace::Query("key".into())));
    let answer = ask(&world, server.port, "api.test", Some(true), &request("api.test")).await;
    assert!(answer.contains("GET /echo?k=1&key=**********************"), "{answer}");
    assert!(server.seen.lock().iter().any(|line| line.contains("key=sk-very-secret%2Fvalue")));
}

#[tokio::test]
async fn placeholders_are_replaced_and_seen_by_the_embedder_as_such() {
    let authority = Authority::new();
    let (file, server) = (authority.file(), authority.https(&["api.test", "other.test"], &[]).await);
    let targets: Arc<parking_lot::Mutex<Vec<String>>> = Arc::default();
    let log = targets.clone();
    let watch = move |request: &RequestInfo| {
        log.lock().push(format!("{request:?}"));
        Decision::Allow
    };
    let world = World::with(policy(&file, server.port, SecretPlace::Placeholder), |options| {
        options.on_request = Some(Arc::new(watch))
    });
    let (name, placeholder) = world.gateway.placeholders().remove(0);
    assert_eq!(name, "API_KEY");
    let request = |host: &str| {
        format!(
            "POST /{placeholder}?q={placeholder} HTTP/1.1\r\nHost: {host}\r\nX-Key: {placeholder}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{placeholder}",
            placeholder.len()
        )
    };
    let answer = ask(&world, server.port, "api.test", Some(true), &request("api.test")).await;
    assert!(answer.contains(&format!("x-key: {}\n", "*".repeat(VALUE.len()))), "{answer}");
    assert!(
        answer.ends_with(&format!("\n{placeholder}"))
            && answer.contains(&format!("POST /{placeholder}?q=***")),
        "{answer}"
    );
    let answer = ask(&world, server.port, "other.test", Some(true), &request("other.test")).await;
    assert!(answer.contains(&format!("x-key: {placeholder}\n")), "{answer}");
    assert!(!format!("{targets:?}").contains(VALUE));
}

#[tokio::test]
async fn hosts_with_secrets_are_reached_by_http_alone() {
    let authority = Authority::new();
    let file = authority.file();
    let mut policy = policy(&file, 8080, SecretPlace::Bearer);
    policy.ports.push(5432);
    let world = World::new(policy.clone());
    let denied = world.connect("api.test", 5432).await.err().expect("denied");
    assert!(denied.to_string().contains("HTTP rules or secrets"), "{denied}");
    policy.raw_hosts = vec!["api.test".into()];
    assert!(wardian_net::Gateway::new(policy, Default::default()).is_err());
}

#[tokio::test]
async fn another_servers_pieces_come_at_once_and_tell_nothing_of_a_secret() {
    let authority = Authority::new();
    let file = authority.file();
    // A server of the guest's own, which sends beginnings of the secret and then waits.
    let other = servers::raw(|mut stream| async move {
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        for length in 1..=VALUE.len() {
            let _ = stream.write_all(format!("{length:x}\r\n{}\r\n", &VALUE[..length]).as_bytes()).await;
            // The next waits for the guest to have got this one.
            let _ = stream.read(&mut [0; 64]).await;
        }
    })
    .await;
    let world = World::new(policy(&file, other.port, SecretPlace::Bearer));
    let mut guest = world.connect("other.test", other.port).await.expect("a connection");
    let head = "GET / HTTP/1.1\r\nHost: other.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    guest.send(head).await;
    guest.until("\r\n\r\n").await;
    for length in 1..VALUE.len() {
        let got = guest.until(&format!("{length:x}\r\n{}\r\n", &VALUE[..length])).await;
        assert!(got.starts_with(&format!("{length:x}")), "{got}");
        guest.send("1\r\nx\r\n").await;
    }
    // All of it in one piece is masked, wherever it comes from.
    guest.until(&"*".repeat(VALUE.len())).await;
}
