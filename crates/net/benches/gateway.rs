//! What the gateway adds to a request, and what it takes from a download: against a direct client in the same run.
//!
//! `cargo bench -p wardian-net`

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wardian_net::{BoxFuture, Destination, Gateway, Host, NetworkPolicy, Options, Resolve};

const ROUNDS: usize = 5;
const REQUESTS: u32 = 4_000;
const DOWNLOAD: usize = 1 << 30;
const IDLE: usize = 1_000;

struct Here;

impl Resolve for Here {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

/// `/` is two bytes, anything else the download.
async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        if head.starts_with(b"GET / ") {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await?;
        } else {
            let piece = vec![b'x'; 1 << 20];
            stream
                .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {DOWNLOAD}\r\n\r\n").as_bytes())
                .await?;
            for _ in 0..DOWNLOAD / piece.len() {
                stream.write_all(&piece).await?;
            }
        }
        head.clear();
    }
}

async fn round_trip(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<Duration> {
    let start = Instant::now();
    let mut answer = Vec::with_capacity(1_000);
    for _ in 0..REQUESTS {
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: api.test\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n")
            .await?;
        answer.clear();
        while !answer.ends_with(b"\r\n\r\nok") {
            stream.read_buf(&mut answer).await?;
        }
    }
    Ok(start.elapsed() / REQUESTS)
}

async fn download(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<f64> {
    let start = Instant::now();
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: api.test\r\n\r\n").await?;
    let (mut buffer, mut got) = (vec![0; 1 << 20], 0);
    while got < DOWNLOAD {
        got += stream.read(&mut buffer).await?;
    }
    Ok(DOWNLOAD as f64 / 1e6 / start.elapsed().as_secs_f64())
}

fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0 / 1e6
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    let policy = NetworkPolicy {
        allowed_hosts: vec!["api.test".into()],
        http_ports: vec![port],
        allow_private: vec!["127.0.0.1/32".parse()?],
        response_bytes: u64::MAX,
        max_connections: 2_000,
        ..Default::default()
    };
    let gateway = Gateway::new(policy, Options { resolver: Arc::new(Here), ..Default::default() })?;
    let open = async || {
        let connection = gateway.connect(&Destination { host: Host::Name("api.test".into()), port }).await?;
        let (guest, other) = tokio::io::duplex(256 << 10);
        tokio::spawn(connection.serve(other));
        Ok::<_, Box<dyn std::error::Error>>(guest)
    };
    let mut results: [Vec<f64>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let mut direct = TcpStream::connect(("127.0.0.1", port)).await?;
        direct.set_nodelay(true)?;
        let mut guest = open().await?;
        results[0].push(round_trip(&mut direct).await?.as_secs_f64() * 1e6);
        results[1].push(round_trip(&mut guest).await?.as_secs_f64() * 1e6);
        results[2].push(download(&mut direct).await?);
        results[3].push(download(&mut guest).await?);
    }
    let [direct_trip, trip, direct_rate, rate] = results.map(median);
    println!(
        "keep-alive round trip: direct {direct_trip:.1} µs, gateway {trip:.1} µs, added {:.1} µs",
        trip - direct_trip
    );
    println!(
        "download: direct {direct_rate:.0} MB/s, gateway {rate:.0} MB/s, ratio {:.2}",
        rate / direct_rate
    );
    let before = resident();
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        let mut guest = open().await?;
        guest.write_all(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n").await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok") {
            guest.read_buf(&mut answer).await?;
        }
        idle.push(guest);
    }
    println!(
        "{IDLE} idle keep-alive connections (gateway, both ends and server): {:.1} MB",
        resident() - before
    );
    Ok(())
}
