//! A run that was recorded can be repeated without a network.

use wardian_net::{Ending, NetworkPolicy};

use crate::servers;
use crate::world::{World, get, last, local};

const UPLOAD: &str =
    "POST /echo HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn what_was_recorded_is_replayed_without_a_network() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let server = servers::http().await;
    let port = server.port;
    let recorded = {
        let world =
            World::new(local(NetworkPolicy { record: Some(file.path().into()), ..Default::default() }, port));
        let again = local(NetworkPolicy { record: Some(file.path().into()), ..Default::default() }, port);
        assert!(wardian_net::Gateway::new(again, Default::default()).is_err(), "two write to one cassette");
        let pages = world
            .ask("api.test", port, &(get("/chunks/200000") + &get("/status/302") + &last("/trailers")))
            .await;
        let first = world.ask("api.test", port, &(UPLOAD.to_owned() + "first")).await;
        let second = world.ask("api.test", port, &(UPLOAD.to_owned() + "other")).await;
        [pages, first, second]
    };
    drop(server);
    // The program that recorded was ended in the middle of a line.
    let mut text = std::fs::read(file.path()).expect("a cassette");
    text.extend_from_slice(b"{\"id\":99,\"met");
    std::fs::write(file.path(), &text).expect("written");
    drop(World::new(local(NetworkPolicy { record: Some(file.path().into()), ..Default::default() }, port)));
    assert!(std::fs::read(file.path()).expect("a cassette").ends_with(b"}\n"));

    let world =
        World::new(local(NetworkPolicy { replay: Some(file.path().into()), ..Default::default() }, port));
    let second = world.ask("api.test", port, &(UPLOAD.to_owned() + "other")).await;
    let first = world.ask("api.test", port, &(UPLOAD.to_owned() + "first")).await;
    let pages = world
        .ask("api.test", port, &(get("/chunks/200000") + &get("/status/302") + &last("/trailers")))
        .await;
    let plain = |text: &str| text.chars().filter(|c| *c == 'y').count();
    assert_eq!(plain(&pages), plain(&recorded[0]));
    assert!(
        pages.contains("HTTP/1.1 302 Found") && pages.ends_with("0\r\nX-Sum: 42\r\n\r\n"),
        "{}",
        &pages[pages.len() - 300..]
    );
    assert_eq!([first, second], recorded[1..]);
    assert!(world.liar.asked.lock().is_empty());
    // Each was recorded once.
    let again = world.ask("api.test", port, &(UPLOAD.to_owned() + "first")).await;
    assert!(again.starts_with("HTTP/1.1 502") && again.contains("not in the cassette"), "{again}");
    assert_eq!(world.named("net.denied")[0]["rule"], "replay");
}

/// The body of the request is part of what its record is found by, also if the server answers before it has come.
#[tokio::test]
async fn an_early_answer_is_recorded_with_the_whole_request() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let server = servers::canned(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let record = NetworkPolicy { record: Some(file.path().into()), ..Default::default() };
    let world = World::new(local(record, server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("granted");
    guest.send(UPLOAD).await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    guest.send("first").await;
    assert!(guest.rest().await.ends_with("hi"));
    drop(world);
    let replay = NetworkPolicy { replay: Some(file.path().into()), ..Default::default() };
    let world = World::new(local(replay, server.port));
    assert!(world.ask("api.test", server.port, &(UPLOAD.to_owned() + "first")).await.ends_with("hi"));
}

#[tokio::test]
async fn a_fork_replays_what_is_left() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let server = servers::http().await;
    let record = NetworkPolicy { record: Some(file.path().into()), ..Default::default() };
    World::new(local(record, server.port)).ask("api.test", server.port, &last("/bytes/3")).await;
    let mut world = World::new(local(
        NetworkPolicy { replay: Some(file.path().into()), ..Default::default() },
        server.port,
    ));
    let fork = world.gateway.fork();
    assert!(world.ask("api.test", server.port, &last("/bytes/3")).await.ends_with("xxx"));
    world.gateway = fork;
    assert!(world.ask("api.test", server.port, &last("/bytes/3")).await.ends_with("xxx"));
}

/// A cassette with one response to `GET /` of api.test.
fn edited(head: &str, bodies: &[&str]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let bodies: String = bodies.iter().map(|body| format!("{{\"id\":1,\"body\":\"{body}\"}}\n")).collect();
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let text = format!(
        "{{\"id\":1,\"method\":\"GET\",\"url\":\"http://api.test/\",{head}}}\n{bodies}{{\"id\":1,\"end\":{{\"request\":\"{digest}\",\"trailers\":[]}}}}\n"
    );
    std::fs::write(file.path(), text).expect("written");
    file
}

async fn replayed(file: &tempfile::NamedTempFile, policy: NetworkPolicy) -> (String, Ending) {
    let world = World::new(local(NetworkPolicy { replay: Some(file.path().into()), ..policy }, 8080));
    let mut guest = world.connect("api.test", 80).await.expect("a connection");
    guest.send(last("/")).await;
    let answer = guest.rest().await;
    (answer, guest.ending().await)
}

#[tokio::test]
async fn what_was_edited_into_a_cassette_is_a_response_or_an_error() {
    let head = |status: u16, reason: &str, headers: &str| {
        format!("\"status\":{status},\"reason\":\"{reason}\",\"headers\":[{headers}]")
    };
    let whole = edited(&head(200, "OK", "[\"content-length\",\"5\"]"), &["aGVs", "bG8="]);
    let (answer, ending) = replayed(&whole, NetworkPolicy::default()).await;
    assert!(answer.ends_with("\r\n\r\nhello") && ending == Ending::Closed, "{answer}");
    for (head, bodies, note) in [
        (head(200, "OK\\r\\nX-Evil: 1", ""), &["aGVsbG8="][..], "a line end in the reason"),
        (head(101, "Switching Protocols", ""), &[], "a status that is not final"),
        (head(999, "Odd", ""), &[], "a status that does not exist"),
        (head(200, "OK", "[\"content-length\",\"3\"]"), &["aGVsbG8="], "a body that is too long"),
        (head(200, "OK", "[\"content-length\",\"9\"]"), &["aGVsbG8="], "a body that is too short"),
        (head(204, "No Content", ""), &["aGVsbG8="], "a body where none can be"),
    ] {
        let (answer, ending) = replayed(&edited(&head, bodies), NetworkPolicy::default()).await;
        assert!(matches!(ending, Ending::Reset(_)), "{note}: {answer} {ending:?}");
        assert!(!answer.contains("X-Evil") && !answer.contains("HTTP/1.1 101"), "{note}: {answer}");
    }
    let spoken = edited(&head(200, "OK", "[\"x-wardian-denied\",\"allowedHosts\"]"), &["aGVsbG8="]);
    assert!(!replayed(&spoken, NetworkPolicy::default()).await.0.to_lowercase().contains("denied"));
    // Limits are those of any response.
    let small = NetworkPolicy { response_bytes: 4, ..Default::default() };
    assert!(matches!(replayed(&whole, small).await.1, Ending::Reset(_)));
    let small = NetworkPolicy { total_bytes: Some(last("/").len() as u64 + 4), ..Default::default() };
    assert!(matches!(replayed(&whole, small).await.1, Ending::Reset(_)));
}

#[tokio::test]
async fn a_response_with_a_length_and_chunks_is_replayed_as_it_was() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let server = servers::canned(
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    )
    .await;
    let record = NetworkPolicy { record: Some(file.path().into()), ..Default::default() };
    let first = World::new(local(record, server.port)).ask("api.test", server.port, &last("/")).await;
    let replay = NetworkPolicy { replay: Some(file.path().into()), ..Default::default() };
    let again = World::new(local(replay, server.port)).ask("api.test", server.port, &last("/")).await;
    assert!(first.contains("5\r\nhello\r\n0\r\n\r\n") && !first.contains("Content-Length"), "{first}");
    assert_eq!(again, first);
}

#[test]
fn what_is_no_cassette_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "hello\n").expect("written");
    for policy in [
        NetworkPolicy { replay: Some(file.path().into()), ..Default::default() },
        NetworkPolicy { record: Some(file.path().into()), ..Default::default() },
        NetworkPolicy { replay: Some("/nowhere/at/all".into()), ..Default::default() },
    ] {
        assert!(wardian_net::Gateway::new(policy, Default::default()).is_err());
    }
    assert_eq!(std::fs::read(file.path()).expect("still there"), b"hello\n");
}
