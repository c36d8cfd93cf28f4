//! A server that does as little as possible, in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What this program is asked to do in the process that [`Web::start`] starts.
pub(crate) const SERVER: &str = "__web";

pub(super) struct Web {
    pub(super) port: u16,
    child: Child,
}

impl Web {
    pub(super) fn start() -> Result<Web> {
        let own = std::env::current_exe().context("this program cannot be found again")?;
        let mut child = Command::new(own).arg(SERVER).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        Ok(Web { port: line.trim().parse()?, child })
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until it is killed, or its parent is gone.
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move { drop(answer(stream).await) });
    }
}

/// Answers `/bytes/N` with so many bytes, and everything else with two.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut asked = Vec::with_capacity(1_024);
    loop {
        while !asked.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut asked).await? == 0 {
                return Ok(());
            }
        }
        let path = asked.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        let size =
            path.strip_prefix(b"/bytes/").and_then(|size| std::str::from_utf8(size).ok()?.parse().ok());
        asked.clear();
        match size {
            None => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await?,
            Some(size) => bytes(&mut stream, size).await?,
        }
    }
}

async fn bytes(stream: &mut TcpStream, size: usize) -> std::io::Result<()> {
    let piece = vec![b'x'; 256 << 10];
    stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").as_bytes()).await?;
    let mut left = size;
    while left > 0 {
        let now = left.min(piece.len());
        stream.write_all(&piece[..now]).await?;
        left -= now;
    }
    Ok(())
}
