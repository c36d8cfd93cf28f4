//! A run that was recorded can be repeated without a network.

use wardian_net::NetworkPolicy;

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
