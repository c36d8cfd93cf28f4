//! Servers that lie: whatever they send, curl and wget end by themselves, with an exit code of theirs and little memory.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Serves whatever stands in `reply` to each connection, and closes it.
fn serve(reply: Arc<Mutex<Vec<u8>>>, stop: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let bytes = reply.lock().expect("not poisoned").clone();
            let _ = stream.write_all(&bytes);
        }
    });
    port
}

/// Runs a program within 512 MiB of address space; its exit code, or the signal that ended it.
fn run(arguments: &[&str]) -> Result<i32, i32> {
    let quoted: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let script = format!("ulimit -v 524288; exec {} {}", env!("CARGO_BIN_EXE_net"), quoted.join(" "));
    let status = Command::new("/bin/bash")
        .args(["-c", &script])
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("it starts");
    status.code().ok_or_else(|| status.signal().unwrap_or(0))
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

const PARTS: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 200\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/9.9 200 OK\r\n",
    b"HTTP/1.1 99\r\n",
    b"HTTP/1.1 302 x\r\n",
    b"HTTP/1.1 401 x\r\n",
    b"HTTP/1.1 304 x\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Content-Length: 9223372036854775807\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 5\r\nContent-Length: 6\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Content-Encoding: deflate\r\n",
    b"Content-Encoding: br\r\n",
    b"Location: //\r\n",
    b"Location: http://[\r\n",
    b"Location: \xff\r\n",
    b"Set-Cookie: a=\x01\r\n",
    b"Set-Cookie: ;;;=\r\n",
    b"Set-Cookie: a=b; Max-Age=99999999999999999999\r\n",
    b"Set-Cookie: a=b; Expires=Nov 99 99:99:99 99999\r\n",
    b" folded\r\n",
    b": none\r\n",
    b"\xc3\xa9: \xff\r\n",
    b"\r\n",
    b"\n",
    b"5\r\nhello\r\n",
    b"ffffffffffffffff\r\n",
    b"7fffffffffffffff\r\nx",
    b"0\r\n\r\n",
    b"0\r\nX: y\r\n",
    b"g\r\n",
    b"\x1f\x8b\x08\x00",
    b"\0\0\0",
    b"hello",
    b"Content-Disposition: attachment; filename=\"/\"\r\n",
    b"WWW-Authenticate: Basic\r\n",
    b"Connection: close\r\n",
    b"Content-Range: bytes -1-\r\n",
    b"Last-Modified: x\r\n",
    b"Content-Type: text/html\r\n",
    b"<a href=\"",
    b"<!--",
];

#[test]
fn random_responses_give_an_exit_code() {
    let reply = Arc::new(Mutex::new(Vec::new()));
    let stop = Arc::new(AtomicBool::new(false));
    let port = serve(reply.clone(), stop.clone());
    let url = format!("http://127.0.0.1:{port}/x");
    let curl = [0, 1, 3, 6, 7, 8, 18, 22, 23, 27, 28, 33, 47, 52, 55, 56, 61, 63];
    let wget = [0, 1, 3, 4, 6, 7, 8];
    let rounds: usize =
        std::env::var("WARDIAN_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(250);
    for seed in 0..rounds {
        let mut random = Random(seed as u64);
        let mut bytes = if seed % 4 == 0 { Vec::new() } else { b"HTTP/1.1 200 OK\r\n".to_vec() };
        for _ in 0..random.below(12) {
            bytes.extend_from_slice(PARTS[random.below(PARTS.len())]);
        }
        if random.below(3) == 0 && !bytes.is_empty() {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        reply.lock().expect("not poisoned").clone_from(&bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let code = run(&[
            "curl",
            "-sS",
            "-L",
            "--max-redirs",
            "2",
            "-m",
            "10",
            "--compressed",
            "-b",
            "",
            "-i",
            &url,
        ]);
        assert!(code.is_ok_and(|code| curl.contains(&code)), "seed {seed}: curl: {code:?}: {text:?}");
        if seed % 5 == 0 {
            let code = run(&["wget", "-q", "-t", "1", "-T", "10", "--max-redirect=2", "-O", "-", &url]);
            assert!(code.is_ok_and(|code| wget.contains(&code)), "seed {seed}: wget: {code:?}: {text:?}");
        }
    }
    stop.store(true, Ordering::SeqCst);
    let _ = TcpStream::connect(("127.0.0.1", port));
}

/// A body that unpacks to 1 GiB goes through in pieces.
#[test]
fn a_bomb_goes_through_in_pieces() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..1024 {
        encoder.write_all(&zeros).expect("it is memory");
    }
    let body = encoder.finish().expect("it is memory");
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len())
            .into_bytes();
    bytes.extend_from_slice(&body);
    let port = serve(Arc::new(Mutex::new(bytes)), Arc::new(AtomicBool::new(false)));
    let url = format!("http://127.0.0.1:{port}/x");
    assert_eq!(run(&["curl", "-sS", "--compressed", "-m", "120", "-o", "/dev/null", &url]), Ok(0));
}
