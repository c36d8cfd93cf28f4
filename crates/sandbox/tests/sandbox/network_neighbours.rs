//! A sandbox whose servers drip, never end, close half of a connection or send bombs costs its own limits, and its neighbour nothing.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wardian::{NetworkPolicy, Run, Sandbox};

use crate::network::Here;

const CONNECTIONS: u32 = 8;

/// Serves one connection by the path of its first request.
fn serve(mut client: TcpStream, bomb: &[u8], begun: &AtomicBool) -> std::io::Result<()> {
    let mut piece = [0; 4096];
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            match client.read(&mut piece)? {
                0 => return Ok(()),
                count => request.extend_from_slice(&piece[..count]),
            }
        }
        let head = String::from_utf8_lossy(&request).into_owned();
        match head.split(' ').nth(1).unwrap_or_default() {
            "/drip" => {
                client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
                loop {
                    client.write_all(b"x")?;
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            "/endless" => {
                client.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                let chunk = [b"1000\r\n".as_slice(), &[b'x'; 4096], b"\r\n"].concat();
                loop {
                    client.write_all(&chunk)?;
                }
            }
            "/half" => {
                client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")?;
                client.shutdown(Shutdown::Write)?;
                // It goes on reading, as a server does that has closed one half.
                while client.read(&mut piece)? > 0 {}
                return Ok(());
            }
            "/bomb" => {
                begun.store(true, Ordering::SeqCst);
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                    bomb.len()
                );
                client.write_all(head.as_bytes())?;
                client.write_all(bomb)?;
            }
            _ => client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")?,
        }
    }
}

/// Returns a server's port, and whether a bomb was asked for.
fn server(bomb: Vec<u8>) -> (u16, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let (bomb, begun) = (Arc::new(bomb), Arc::new(AtomicBool::new(false)));
    let told = begun.clone();
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let (bomb, told) = (bomb.clone(), told.clone());
            let _ = client.set_nodelay(true);
            // An error is a client that has left.
            std::thread::spawn(move || drop(serve(client, &bomb, &told)));
        }
    });
    (port, begun)
}

async fn sandbox(port: u16, total: Option<u64>) -> Sandbox {
    let policy = NetworkPolicy {
        allowed_hosts: vec!["server.test".into()],
        http_ports: vec![port],
        allow_private: vec!["127.0.0.0/8".parse().expect("a network")],
        max_connections: CONNECTIONS,
        total_bytes: total,
        ..NetworkPolicy::default()
    };
    let building = Sandbox::builder().network(policy).resolver(Here).timeout(Some(Duration::from_secs(300)));
    building.build().await.expect("it is built")
}

/// Returns the median of what requests on one connection take, in microseconds. The first ones do not count.
async fn round_trip(sandbox: &Sandbox, port: u16) -> u64 {
    const CODE: &str = "
import http.client, statistics, sys, time
connection = http.client.HTTPConnection('server.test', int(sys.argv[1]), timeout=120)
times = []
for _ in range(120):
    start = time.perf_counter()
    connection.request('GET', '/page')
    assert connection.getresponse().read() == b'hello'
    times.append(time.perf_counter() - start)
print(int(statistics.median(times[20:]) * 1e6))";
    sandbox.write_file("/tmp/trips.py", CODE).await.expect("there is room");
    let result = sandbox.run(format!("python3 /tmp/trips.py {port}")).await.expect("it runs");
    let (said, errors) = (String::from_utf8_lossy(&result.stdout), String::from_utf8_lossy(&result.stderr));
    said.trim().parse().unwrap_or_else(|_| panic!("{said}{errors}"))
}

/// Tells whether a sandbox can open as many connections as its policy says, and no more, once those that have ended are gone.
async fn has_all_connections(sandbox: &Sandbox, port: u16) -> bool {
    const CODE: &str = "
import socket, sys
held = []
try:
    while len(held) < 100: held.append(socket.create_connection(('server.test', int(sys.argv[1]))))
except OSError: pass
print(len(held))";
    sandbox.write_file("/tmp/held.py", CODE).await.expect("there is room");
    for _ in 0..100 {
        let result = sandbox.run(format!("python3 /tmp/held.py {port} 2> /dev/null")).await.expect("it runs");
        if String::from_utf8_lossy(&result.stdout).trim() == CONNECTIONS.to_string() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

#[tokio::test]
async fn hostile_servers_of_one_sandbox_cost_its_neighbour_nothing() {
    let maker = sandbox(80, None).await;
    let made = maker.run("head -c 50000000 /dev/zero | gzip > /tmp/bomb").await.expect("it runs");
    assert_eq!(made.exit_code, 0);
    let (port, begun) = server(maker.read_file("/tmp/bomb").await.expect("it was made").to_vec());
    // What one page moves is a few hundred bytes: this is enough for all that the neighbour asks for, and for no more.
    let (attacked, neighbour) = (sandbox(port, None).await, sandbox(port, Some(300_000)).await);
    let before = round_trip(&neighbour, port).await;
    let running = attacked.clone();
    let script = format!(
        "U=http://server.test:{port}; again() {{ while :; do \"$@\"; done > /dev/null 2>&1; }}
        again curl -s $U/drip & again curl -s $U/drip & again curl -s $U/endless & again curl -s $U/endless &
        again curl -s $U/half & again curl -s --compressed $U/bomb & wait"
    );
    let attack = tokio::spawn(async move { running.run_with(Run::new(script)).await });
    while !begun.load(Ordering::SeqCst) {
        assert!(!attack.is_finished(), "the attack ended early");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Generous, since both share this machine's processors with whatever else runs: what was waited for would be seconds.
    let during = round_trip(&neighbour, port).await;
    assert!(during < 50 * before.max(1_000), "{before} µs before, {during} µs during the attack");
    assert!(has_all_connections(&neighbour, port).await);
    assert!(!attack.is_finished(), "the attack ended early");
    attacked.cancel();
    attack.await.expect("no panic").expect("it runs");
    // The neighbour's bytes are its own, and so are those of the other.
    let after = neighbour.run(format!("curl -s http://server.test:{port}/page")).await.expect("it runs");
    assert_eq!((String::from_utf8_lossy(&after.stdout).as_ref(), after.error_class), ("hello", None));
    assert!(has_all_connections(&attacked, port).await);
}
