//! Ports of a sandbox by HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wardian_server::{Http, Options, PortLimits, Server};

use crate::ports::start;
use crate::support::Client;

/// Answers with the head and body it was sent, or as its path says; one connection after the other.
const SITE: &str = "
import socket, time
listener = socket.create_server(('127.0.0.1', 80), backlog=64)
def serve(one):
    data = b''
    while b'\\r\\n\\r\\n' not in data:
        data += one.recv(65536)
    head, rest = data.split(b'\\r\\n\\r\\n', 1)
    path = head.split()[1]
    if path == b'/silent':
        time.sleep(1000)
    elif path == b'/drip':
        while True:
            one.sendall(b'H')
            time.sleep(0.05)
    elif path == b'/endless':
        one.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n')
        while True:
            one.sendall(b'x' * 65536)
    elif path == b'/nonsense':
        one.sendall(b'what?\\r\\n\\r\\n')
    elif path == b'/longhead':
        one.sendall(b'HTTP/1.1 200 OK\\r\\nX: ' + b'x' * 200000 + b'\\r\\n\\r\\n')
    elif path == b'/moved':
        one.sendall(b'HTTP/1.1 302 Found\\r\\nLocation: /there\\r\\nSet-Cookie: a=b\\r\\nKeep-Alive: 5\\r\\n'
            b'Connection: X-Private\\r\\nX-Private: 1\\r\\nContent-Length: 0\\r\\n\\r\\n')
    elif path == b'/origin':
        one.sendall(b'HTTP/1.1 200 OK\\r\\nAlt-Svc: h2=\"evil.test:443\"\\r\\nClear-Site-Data: \"*\"\\r\\nNEL: {}\\r\\n'
            b'Report-To: {}\\r\\nReporting-Endpoints: a=\"https://evil.test/\"\\r\\nSet-Cookie2: a\\r\\nX-Own: 1\\r\\n'
            b'Strict-Transport-Security: max-age=9\\r\\nService-Worker-Allowed: /\\r\\nContent-Length: 0\\r\\n\\r\\n')
    elif path == b'/socket':
        one.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n')
        while data := one.recv(65536):
            one.sendall(data.upper())
        one.sendall(b'BYE')
    else:
        one.sendall(b'HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n')
        def chunk(data):
            one.sendall(b'%x\\r\\n%s\\r\\n' % (len(data), data))
        chunk(head + b'\\n')
        if b'transfer-encoding' in head.lower():
            while not rest.endswith(b'0\\r\\n\\r\\n'):
                rest += one.recv(65536)
            chunk(rest)
        one.sendall(b'0\\r\\n\\r\\n')
while True:
    one = listener.accept()[0]
    with one:
        try:
            serve(one)
        except OSError:
            pass
";

struct Site {
    client: Client,
    at: SocketAddr,
    /// The path of port 80.
    path: String,
}

const LIMITS: PortLimits = PortLimits {
    connections: 8,
    per_sandbox: 4,
    response: Duration::from_millis(300),
    idle: Duration::from_secs(60),
};

impl Site {
    async fn new(token: Option<&str>, ports: PortLimits) -> Site {
        let server = Server::new(Options::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let http = Http { token: token.map(str::to_owned), ports, ..Http::default() };
        let serving = server.clone();
        tokio::spawn(async move { serving.serve_http(listener, http, std::future::pending()).await });
        let mut client = Client::of(&server);
        client.call("create", json!({})).await;
        start(&mut client, SITE, 80).await;
        let url = client.call("net.url", json!({ "port": 80 })).await;
        let path = url["path"].as_str().expect("a path").trim_end_matches('/').to_owned();
        assert_eq!(url["url"], format!("http://{at}{path}/"));
        Site { client, at, path }
    }

    async fn open(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        stream
    }

    /// The whole answer to a request.
    async fn send(&self, request: &str) -> String {
        let mut answer = Vec::new();
        // A response that is cut off ends with an error.
        let _ = self.open(request).await.read_to_end(&mut answer).await;
        String::from_utf8(answer).expect("text")
    }

    async fn get(&self, path: &str) -> String {
        self.send(&format!(
            "GET {}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            self.path
        ))
        .await
    }
}

#[tokio::test]
async fn a_guest_cannot_set_browser_policy_for_the_whole_server() {
    let site = Site::new(None, LIMITS).await;
    let answer = site.get("/origin").await.to_lowercase();
    assert!(answer.starts_with("http/1.1 200 ok") && answer.contains("x-own: 1"), "{answer}");
    let kept = [
        "alt-svc",
        "clear-site-data",
        "nel:",
        "report",
        "cookie",
        "strict-transport",
        "service-worker",
        "evil",
    ];
    for kept in kept {
        assert!(!answer.contains(kept), "{kept}: {answer}");
    }
    site.client.leave().await;
}

#[tokio::test]
async fn a_page_is_passed_on_without_what_is_not_the_guests() {
    let site = Site::new(Some("0123456789abcdef"), LIMITS).await;
    let without = site.get("/").await;
    assert!(without.starts_with("HTTP/1.1 401"), "{without}");
    let path = &site.path;
    let request = format!(
        "POST {path}/a%2Fb?c=d HTTP/1.1\r\nHost: localhost\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-Stays: 2\r\n\
         Authorization: Bearer 0123456789abcdef\r\nCookie: other=secret\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n0\r\n\r\n"
    );
    let answer = site.send(&request).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 200 ok"), "{answer}");
    assert!(answer.contains("content-security-policy: sandbox allow-"), "{answer}");
    for passed in ["post /a%2fb?c=d http/1.1", "host: localhost:80", "x-stays: 2", "5\r\nhello\r\n"] {
        assert!(answer.contains(passed), "{passed}: {answer}");
    }
    for kept in ["0123456789abcdef", "other=secret", "x-hop"] {
        assert!(!answer.contains(kept), "{kept}: {answer}");
    }
    site.client.leave().await;
}

#[tokio::test]
async fn redirects_stay_below_the_prefix_and_cookies_stay_inside() {
    let site = Site::new(None, LIMITS).await;
    let answer = site.get("/moved").await.to_lowercase();
    assert!(answer.starts_with("http/1.1 302"), "{answer}");
    assert!(answer.contains(&format!("location: {}/there", site.path)), "{answer}");
    for kept in ["set-cookie", "keep-alive", "x-private"] {
        assert!(!answer.contains(kept), "{kept}: {answer}");
    }
    let answer = site.get("").await;
    assert!(
        answer.starts_with("HTTP/1.1 308") && answer.contains(&format!("{}/\r\n", site.path)),
        "{answer}"
    );
    site.client.leave().await;
}

#[tokio::test]
async fn failures_have_a_status_and_a_reason() {
    let mut site = Site::new(None, LIMITS).await;
    let name = site.path.split('/').nth(2).expect("a name").to_owned();
    let at = |path: String| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    for (path, status, code) in [
        (format!("/sandboxes/{name}/ports/81/"), 502, "NOT_LISTENING"),
        (format!("/sandboxes/{name}/ports/0/"), 404, "NO_PORT"),
        (format!("/sandboxes/{name}/ports/65536/"), 404, "NO_PORT"),
        (format!("/sandboxes/{name}/ports/080/"), 404, "NO_PORT"),
        // Neither a client's own id nor a name that is nearly right.
        ("/sandboxes/1/ports/80/".to_owned(), 404, "NO_SANDBOX"),
        (format!("/sandboxes/{}/ports/80/", &name[1..]), 404, "NO_SANDBOX"),
        (format!("/sandboxes/{name}"), 404, "NOT_FOUND"),
        (format!("{}/nonsense", site.path), 502, "BAD_RESPONSE"),
        (format!("{}/longhead", site.path), 502, "BAD_RESPONSE"),
        (format!("{}/silent", site.path), 504, "TIMEOUT"),
    ] {
        let answer = site.send(&at(path.clone())).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(code),
            "{path}: {answer}"
        );
    }
    site.client.call("run", json!({ "command": "pkill python3; sleep 0.1; true" })).await;
    site.client.leave().await;
}

#[tokio::test]
async fn a_head_that_drips_is_too_slow() {
    let site = Site::new(None, LIMITS).await;
    let answer = site.get("/drip").await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    site.client.leave().await;
}

#[tokio::test]
async fn a_websocket_is_passed_on_and_half_closed() {
    let site = Site::new(None, LIMITS).await;
    let request = format!(
        "GET {}/socket HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\n",
        site.path
    );
    let mut stream = site.open(&request).await;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a head"));
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream.write_all(b"hello").await.expect("it reads");
    let mut back = [0; 5];
    stream.read_exact(&mut back).await.expect("it answers");
    assert_eq!(&back, b"HELLO");
    stream.shutdown().await.expect("half closed");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.expect("the end");
    assert_eq!(rest, b"BYE");
    site.client.leave().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_no_other_and_ends_with_the_sandbox() {
    let limits = PortLimits { idle: Duration::from_millis(500), response: Duration::from_secs(60), ..LIMITS };
    let site = Site::new(None, limits).await;
    let get = format!("GET {}/endless HTTP/1.1\r\nHost: localhost\r\n\r\n", site.path);
    // It is cut off when nothing has moved for a while, and then the guest accepts the next.
    let idle = site.open(&get).await;
    let mut some = vec![0; 1 << 20];
    let mut reads = loop {
        let mut reads = site.open(&get).await;
        // As long as the guest serves the other one, it is answered an error.
        if reads.read_exact(&mut some).await.is_ok() {
            break reads;
        }
    };
    drop(idle);
    site.client.leave().await;
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(60), reads.read_to_end(&mut rest)).await;
    let _ = ended.expect("it ends with its sandbox");
    assert!(!rest.ends_with(b"0\r\n\r\n"), "and not as if it were complete");
}

#[tokio::test]
async fn requests_in_progress_are_capped() {
    let limits = PortLimits { response: Duration::from_secs(60), ..LIMITS };
    let site = Site::new(None, limits).await;
    let get = format!("GET {}/silent HTTP/1.1\r\nHost: localhost\r\n\r\n", site.path);
    let mut open = Vec::new();
    for _ in 0..LIMITS.per_sandbox {
        open.push(site.open(&get).await);
    }
    let refused = loop {
        let answer = tokio::time::timeout(Duration::from_millis(500), site.get("/")).await;
        if let Ok(answer) = answer {
            break answer;
        }
    };
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("TOO_MANY_CONNECTIONS"), "{refused}");
    site.client.leave().await;
    // Their sandbox is gone, and so are they.
    for mut one in open {
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(60), one.read_to_end(&mut answer)).await;
        let _ = read.expect("it ends");
    }
}
