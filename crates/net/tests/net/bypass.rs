//! Attempts to get around the rules, from a table: each has one outcome, and none of them reaches what it is after.

use wardian_net::{ConnectError, HttpRule, NetworkPolicy, Secret, SecretPlace};

use crate::servers;
use crate::world::{World, local};

const TABLE: &str = include_str!("bypass.txt");

struct Prepared {
    world: World,
    server: servers::Server,
}

/// `api.test` accepts GET and POST below /v1; `bad.wild.test` is blocked; `key.test` has a secret; many names lead inside.
async fn prepare() -> Prepared {
    let server = servers::http().await;
    let text = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let policy = NetworkPolicy {
        allowed_hosts: text(&[
            "api.test",
            "*.wild.test",
            "key.test",
            "b\u{fc}cher.test",
            "203.0.113.7",
            "10.9.0.0/16",
        ]),
        blocked_hosts: text(&["bad.wild.test", "*.deep.wild.test", "192.0.2.0/24"]),
        http_rules: vec![HttpRule {
            host: "api.test".into(),
            methods: text(&["GET", "POST"]),
            path_prefixes: text(&["/v1"]),
        }],
        secrets: vec![Secret {
            name: "KEY".into(),
            host: "key.test".into(),
            value: "the-secret-value".into(),
            place: SecretPlace::Bearer,
        }],
        connect_timeout_ms: 500,
        ..Default::default()
    };
    let world = World::new(local(policy, server.port));
    let mut answers = world.liar.answers.lock();
    for (name, address) in [
        ("ok.wild.test", "127.0.0.1"),
        ("key.test", "127.0.0.1"),
        ("xn--bcher-kva.test", "127.0.0.1"),
        ("loop.wild.test", "127.0.0.2"),
        ("zero.wild.test", "0.0.0.0"),
        ("ten.wild.test", "10.0.0.1"),
        ("meta.wild.test", "169.254.169.254"),
        ("azure.wild.test", "168.63.129.16"),
        ("cgnat.wild.test", "100.64.0.1"),
        ("six.wild.test", "::1"),
        ("ula.wild.test", "fd00:ec2::254"),
        ("link.wild.test", "fe80::1"),
        ("mapped.wild.test", "::ffff:169.254.169.254"),
        ("nat64.wild.test", "64:ff9b::a9fe:a9fe"),
        ("sixtofour.wild.test", "2002:7f00:1::"),
        ("teredo.wild.test", "2001:0:1::1"),
        ("multi.wild.test", "224.0.0.1"),
        ("broad.wild.test", "255.255.255.255"),
        ("compat.wild.test", "::7f00:2"),
        ("blocked.wild.test", "192.0.2.9"),
    ] {
        answers.insert(name.into(), vec![vec![address.parse().expect("an address")]]);
    }
    drop(answers);
    Prepared { world, server }
}

impl Prepared {
    async fn outcome(&self, kind: &str, input: &str) -> String {
        let unescaped = unescape(input).replace("PORT", &self.server.port.to_string());
        match kind {
            "lookup" => match self.world.gateway.look_up(&unescaped) {
                Ok(()) => "allowed".into(),
                Err(denied) => format!("denied {}", denied.rule),
            },
            "connect" => {
                let (host, port) = unescaped.rsplit_once(' ').expect("HOST PORT");
                match self.world.connect(host, port.parse().expect("a port")).await {
                    Ok(_) => "connected".into(),
                    Err(ConnectError::Denied(denied)) => format!("denied {}", denied.rule),
                    Err(error) => error.to_string(),
                }
            }
            // To a host, what is on the wire.
            _ => {
                let answer = self.world.ask(kind, self.server.port, &unescaped).await;
                let count = answer
                    .split("HTTP/1.1 ")
                    .skip(1)
                    .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
                    .count();
                let status = answer.get(9..12).unwrap_or("none");
                if count > 1 { format!("{status} and {} more", count - 1) } else { status.to_owned() }
            }
        }
    }
}

fn unescape(text: &str) -> String {
    let text = text
        .replace("\\r", "\r")
        .replace("\\n", "\n")
        .replace("\\t", "\t")
        .replace("\\0", "\0")
        .replace("\\v", "\u{b}");
    text.replace("\\_", " ")
}

#[tokio::test]
async fn attempts_to_bypass_the_rules_have_their_outcomes() {
    let prepared = prepare().await;
    let (mut count, mut wrong) = (0, Vec::new());
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut columns = line.split(" | ").map(str::trim);
        let (Some(kind), Some(outcome), Some(input), None) =
            (columns.next(), columns.next(), columns.next(), columns.next())
        else {
            panic!("not KIND | OUTCOME | INPUT: {line}");
        };
        let got = prepared.outcome(kind, input).await;
        if got != outcome {
            wrong.push(format!("{line}\n    was: {got}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 100, "only {count}");
    // What the server saw is what the rules allow, whatever was tried.
    for line in prepared.server.seen.lock().iter() {
        let path = line.split(' ').nth(1).expect("a path");
        assert!(path.starts_with("/v1") || path.starts_with("/ok"), "{line}");
        assert!(!line.contains("admin") && !line.contains("the-secret-value"), "{line}");
    }
    assert!(!format!("{:?}", prepared.world.events.lock()).contains("the-secret-value"));
}
