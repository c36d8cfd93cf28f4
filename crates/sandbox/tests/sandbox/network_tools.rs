//! curl, wget and the other network tools with a server outside, through the gateway. Every option of curl and wget that people use
//! is here at least once; what each of them prints, to the letter, is in the recorded cases.
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
    ("curl -sZf --fail-early $U/status/404 $U/hang", "", 22),
    ("echo \"url = $U/ok\" | curl -s -K -", "hello\n", 0),
    ("curl -s $U/close", "until the end\n", 0),
    ("curl -s --data-raw @x $U/echo", "@x", 0),
    ("curl -s -o out $U/ok; cat out", "hello\n", 0),
    ("curl -s -O $U/hello.txt; cat hello.txt", "hello\n", 0),
    ("curl -sSf $U/status/404 2>&1", "curl: (22) The requested URL returned error: 404\n", 22),
    (
        "curl -si $U/ok | tr -d '\\r' | sed -n '1p; /^Content-Type/p; $p'",
        "HTTP/1.1 200 OK\nContent-Type: text/plain\nhello\n",
        0,
    ),
    ("curl -sf $U/status/500", "", 22),
    ("curl -sk $U/ok", "hello\n", 0),
    ("curl -s --connect-timeout 5 $U/ok", "hello\n", 0),
    ("curl -sv $U/ok 2>&1 | grep -c -e '^> GET /ok HTTP/1.1' -e '^< HTTP/1.1 200 OK'", "2\n", 0),
    ("curl -s $U/ok -: -s -d x $U/echo", "hello\nx", 0),
    (
        "curl -x http://proxy.test:3128 $U/ok 2> e; code=$?; head -1 e; exit $code",
        "curl: option -x: not available in this sandbox: proxies are a matter of the sandbox's gateway\n",
        2,
    ),
    (
        "curl --resolve server.test:80:127.0.0.1 $U/ok 2> e; code=$?; head -1 e; exit $code",
        "curl: option --resolve: not available in this sandbox: names are resolved by the sandbox's gateway\n",
        2,
    ),
    ("wget -qO- $U/ok", "hello\n", 0),
    ("wget -q --post-data=x=1 -O- $U/echo", "x=1", 0),
    ("wget -q --spider $U/status/404", "", 8),
    ("wget -q -O page $U/ok; cat page", "hello\n", 0),
    ("wget -q -P dir $U/ok; cat dir/ok", "hello\n", 0),
    ("printf 01234 > range; wget -q -c $U/range; cat range", "0123456789abcdefghij", 0),
    ("wget -qS -O page $U/ok 2>&1 | sed -n 's/^ *\\(HTTP.*\\)/\\1/p'", "HTTP/1.1 200 OK\n", 0),
    ("printf \"$U/ok\\n$U/method\\n\" > list; wget -q -i list -O -", "hello\nGET\n", 0),
    ("getent hosts server.test | sed 's/198[.0-9]* */AT /'", "AT server.test\n", 0),
    ("getent hosts other.test", "", 2),
    ("host server.test | sed 's/198[.0-9]*/AT/'", "server.test has address AT\n", 0),
    ("host other.test", "Host other.test not found: 3(NXDOMAIN)\n", 1),
    ("dig +short server.test | sed 's/198[.0-9]*/AT/'", "AT\n", 0),
    ("dig other.test | grep -o 'status: [A-Z]*'", "status: NXDOMAIN\n", 0),
    ("nslookup server.test | sed -n 's/198[.0-9]*/AT/p'", "Address: AT\n", 0),
    ("nslookup other.test | grep -c 'NXDOMAIN'", "1\n", 0),
    (
        "nc -z other.test 80 2>&1",
        "nc: getaddrinfo for host \"other.test\" port 80: Non-recoverable failure in name resolution\n",
        1,
    ),
    (
        "wget -O- http://other.test/ 2>&1 | sed -n 's/^Resolving.*[.][.][.] //p'",
        "failed: Non-recoverable failure in name resolution.\n",
        0,
    ),
    ("nc -z server.test $P", "", 0),
    ("printf 'GET /ok HTTP/1.0\\r\\n\\r\\n' | nc server.test $P | tail -1", "hello\n", 0),
    (
        "exec 3<> /dev/tcp/server.test/$P; printf 'GET /ok HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3 | tail -1",
        "hello\n",
        0,
    ),
    (
        "ping -c 1 server.test 2>&1 | cut -d';' -f1; ping server.test 2> e",
        "ping: ICMP does not exist in this sandbox\n",
        2,
    ),
    ("wget -q -r -np -nH -P site $U/site/; find site -name '*.html' | sort | tr '\\n' ' '", "SITE", 0),
];

/// What is run, and a line of what the server is asked.
const ASKED: &[(&str, &str)] = &[
    ("curl -s -H 'X-Own: a b' $U/ok", "> X-Own: a b"),
    ("curl -s -A agent/1 $U/ok", "> User-Agent: agent/1"),
    ("curl -s -e http://from.test/ $U/ok", "> Referer: http://from.test/"),
    ("curl -s -b 'a=1; b=2' $U/ok", "> Cookie: a=1; b=2"),
    ("curl -s -u me:pass $U/ok", "> Authorization: Basic bWU6cGFzcw=="),
    ("curl -s -r 3-5 $U/range", "> Range: bytes=3-5"),
    ("curl -s --compressed $U/gzip", "> Accept-Encoding: deflate, gzip"),
    ("curl -s --json '{}' $U/echo", "> Content-Type: application/json"),
    ("curl -s -X PATCH $U/ok", "> PATCH /ok HTTP/1.1"),
    ("curl -s -F a=b $U/echo", "Content-Disposition: form-data; name=\"a\""),
    ("curl -s -I $U/ok", "> HEAD /ok HTTP/1.1"),
    ("wget -q --header 'X-Own: c' -O - $U/ok", "> X-Own: c"),
    ("wget -q --post-data a=b -O - $U/echo", "> POST /echo HTTP/1.1"),
    ("wget -q --spider $U/ok", "> HEAD /ok HTTP/1.1"),
];

/// A sandbox that reaches the server as `server.test`: `$U` is its address, `$P` its port.
async fn client(port: u16) -> Sandbox {
    let policy = NetworkPolicy {
        allowed_hosts: vec!["server.test".into()],
        http_ports: vec![port],
        allow_private: vec!["127.0.0.0/8".parse().expect("a network")],
        ..NetworkPolicy::default()
    };
    let building = Sandbox::builder().network(policy).resolver(Here).cwd("/tmp");
    let building = building.env("U", format!("http://server.test:{port}")).env("P", port.to_string());
    building.timeout(Some(Duration::from_secs(30))).build().await.expect("a sandbox")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_asked_what_the_options_say() {
    let (server, port) = server().await;
    let sandbox = client(port).await;
    let mut wrong = Vec::new();
    for (script, line) in ASKED {
        sandbox.run(*script).await.expect("it runs");
        let asked = server.run("tr -d '\\r' < /tmp/log; : > /tmp/log").await.expect("it runs");
        let asked = String::from_utf8_lossy(&asked.stdout).into_owned();
        if !asked.lines().any(|asked| asked == *line) {
            wrong.push(format!("{script}\n{asked}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn sockets_of_the_sandbox_are_listed() {
    let sandbox = Sandbox::builder().timeout(Some(Duration::from_secs(30))).build().await.expect("a sandbox");
    let script = "nc -l -k 127.0.0.1 9000 > /dev/null < /dev/null &
        until ss -Htln | grep -q :9000; do sleep 0.01; done
        exec 3<> /dev/tcp/127.0.0.1/9000
        ss -Htln | tr -s ' '
        ss -Htn | grep -c '^ESTAB.*127.0.0.1:9000'
        netstat -tln | tail -n +3 | tr -s ' '
        grep -c -e ' 0100007F:2328 00000000:0000 0A ' -e ' 0100007F:2328 0100007F:.... 01 ' \
            -e ' 0100007F:.... 0100007F:2328 01 ' /proc/net/tcp
        kill %1";
    let result = sandbox.run(script).await.expect("it runs");
    let expected = "LISTEN 0 0 127.0.0.1:9000 0.0.0.0:*\n2\n\
                    tcp 0 0 127.0.0.1:9000 0.0.0.0:* LISTEN \n3\n";
    let stderr = String::from_utf8_lossy(&result.stderr);
    assert_eq!(String::from_utf8_lossy(&result.stdout), expected, "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_and_wget_work_through_the_gateway() {
    let (_server, port) = server().await;
    let sandbox = client(port).await;
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

/// Answers nobody before both of two clients have asked.
fn both_or_none() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        let mut clients = Vec::new();
        for _ in 0..2 {
            let Ok((mut client, _)) = listener.accept() else { return };
            let mut request = Vec::new();
            let mut piece = [0; 1024];
            while !request.ends_with(b"\r\n\r\n") {
                match std::io::Read::read(&mut client, &mut piece) {
                    Ok(0) | Err(_) => return,
                    Ok(count) => request.extend_from_slice(&piece[..count]),
                }
            }
            clients.push(client);
        }
        for mut client in clients {
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nboth\n";
            let _ = std::io::Write::write_all(&mut client, answer);
        }
    });
    port
}

#[tokio::test]
async fn curl_transfers_at_the_same_time_if_asked() {
    let port = both_or_none();
    let policy = NetworkPolicy {
        allowed_hosts: vec!["server.test".into()],
        http_ports: vec![port],
        allow_private: vec!["127.0.0.0/8".parse().expect("a network")],
        ..NetworkPolicy::default()
    };
    let sandbox = Sandbox::builder().network(policy).resolver(Here).build().await.expect("a sandbox");
    let url = format!("http://server.test:{port}/");
    let script = format!("curl -s -m 30 -Z --parallel-immediate {url} {url}");
    let result = sandbox.run(script).await.expect("it runs");
    assert_eq!((String::from_utf8_lossy(&result.stdout).as_ref(), result.exit_code), ("both\nboth\n", 0));
}
