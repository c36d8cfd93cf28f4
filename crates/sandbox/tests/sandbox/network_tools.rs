//! curl and wget with a server outside, through the gateway.
//!
//! The server is the one that their cases were recorded with. It runs in a sandbox of its own, and a port of this machine leads
//! to it.

use std::path::Path;
use std::time::Duration;

use tokio::net::TcpListener;
use wardian::{NetworkPolicy, Sandbox};

use super::network::Here;

/// Starts the server; returns its sandbox and the port of this machine.
async fn server() -> (Sandbox, u16) {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/testing/dist/web.wasm.zst");
    let web = std::fs::read(web).expect("testing guests are prebuilt");
    let web = zstd::decode_all(&web[..]).expect("a zstd file");
    let sandbox = Sandbox::builder().timeout(Some(Duration::from_secs(30))).build().await.expect("a sandbox");
    sandbox.write_file("/tmp/web", web).await.expect("there is room");
    let script = "chmod +x /tmp/web; cd /tmp; ./web serve /tmp/port /tmp/log > /dev/null 2>&1 &
                  while ! [ -s /tmp/port ]; do sleep 0.01; done; cat /tmp/port";
    let started = sandbox.run(script).await.expect("it runs");
    let inside: u16 = String::from_utf8_lossy(&started.stdout).trim().parse().expect("a port");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let behind = sandbox.clone();
    tokio::spawn(async move {
        while let Ok((mut outside, _)) = listener.accept().await {
            let behind = behind.clone();
            tokio::spawn(async move {
                let mut inside = behind.connect(inside).await.expect("it listens");
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    });
    (sandbox, port)
}

/// What is run, what is printed, and the exit code.
const CASES: &[(&str, &str, u8)] = &[
    ("curl -s $U/ok", "hello\n", 0),
    ("curl -s $U/ok $U/method", "hello\nGET\n", 0),
    ("curl -s -X DELETE $U/method", "DELETE\n", 0),
    ("curl -s -d a=1 -d b=2 $U/echo", "a=1&b=2", 0),
    ("curl -s --data-urlencode 'a=b c' $U/echo", "a=b+c", 0),
    ("printf 'x\\ny' | curl -s --data-binary @- $U/echo", "x\ny", 0),
    ("curl -s --json '{}' $U/echo", "{}", 0),
    ("curl -s -G -d a=1 $U/named", "/named?a=1\n", 0),
    ("printf up | curl -s -T - $U/echo", "up", 0),
    ("echo part > p; curl -s -F a=b -F f=@p $U/echo | grep -c -e '^part' -e '^b'", "2\n", 0),
    ("curl -sI $U/ok | tr -d '\\r' | head -1", "HTTP/1.1 200 OK\n", 0),
    ("curl -s -o /dev/null -w '%{http_code}' $U/redirect/302?/ok", "302", 0),
    ("curl -sL -w '%{num_redirects}' $U/redirect/302?/ok", "hello\n1", 0),
    ("curl -sL --max-redirs 3 -o /dev/null $U/loop", "", 47),
    ("curl -s -u user:pass $U/auth; curl -sf $U/auth", "welcome\n", 22),
    (
        "curl -s -c jar -o /dev/null $U/cookies; grep -c server.test jar; curl -s -b jar $U/ok",
        "4\nhello\n",
        0,
    ),
    ("curl -s --compressed $U/gzip | wc -c", "1800\n", 0),
    ("curl -s -r 2-4 $U/range", "234", 0),
    ("printf 0123 > part; curl -s -C - -o part $U/range; cat part", "0123456789abcdefghij", 0),
    ("curl -s $U/chunked", "hello\nworld\n", 0),
    ("curl -s --retry 2 --retry-delay 0 $U/flaky/1", "busy\nat last\n", 0),
    ("curl -s --fail-with-body $U/status/404", "status 404\n", 22),
    ("curl -s -OJ $U/disposition?plain.txt; cat plain.txt", "named by the server\n", 0),
    ("curl -s -m 1 $U/hang", "", 28),
    ("curl -s $U/big/3000000 | md5sum; yes 0123456789 | head -c 3000000 | md5sum", "SAME", 0),
    ("curl -s $U/ok --next -s -d x $U/echo", "hello\nx", 0),
    ("curl -sZ $U/ok $U/ok", "hello\nhello\n", 0),
    ("echo \"url = $U/ok\" | curl -s -K -", "hello\n", 0),
    ("curl -s $U/close", "until the end\n", 0),
    ("wget -qO- $U/ok", "hello\n", 0),
    ("wget -q --post-data=x=1 -O- $U/echo", "x=1", 0),
    ("wget -q --spider $U/status/404", "", 8),
    ("wget -q -r -np -nH -P site $U/site/; find site -name '*.html' | sort | tr '\\n' ' '", "SITE", 0),
];

#[tokio::test(flavor = "multi_thread")]
async fn curl_and_wget_work_through_the_gateway() {
    let (_server, port) = server().await;
    let policy = NetworkPolicy {
        allowed_hosts: vec!["server.test".into()],
        http_ports: vec![port],
        allow_private: vec!["127.0.0.0/8".parse().expect("a network")],
        ..NetworkPolicy::default()
    };
    let building = Sandbox::builder().network(policy).resolver(Here).cwd("/tmp");
    let building = building.env("U", format!("http://server.test:{port}"));
    let sandbox = building.timeout(Some(Duration::from_secs(30))).build().await.expect("a sandbox");
    let mut wrong = Vec::new();
    for (script, printed, code) in CASES {
        let case = sandbox.fork().await.expect("it forks");
        let result = case.run(*script).await.expect("it runs");
        let stdout = String::from_utf8_lossy(&result.stdout);
        let is_right = match *printed {
            "SAME" => stdout.lines().count() == 2 && stdout.lines().next() == stdout.lines().last(),
            "SITE" => stdout.contains("site/deep/3.html") && !stdout.contains("up.html"),
            printed => stdout == printed,
        };
        if !is_right || result.exit_code != *code {
            let stderr = String::from_utf8_lossy(&result.stderr);
            wrong.push(format!("{script}\n  {stdout:?} {stderr:?} -> {}", result.exit_code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
