//! The same over HTTP, with a server that speaks S3.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::mpsc::channel;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use wardian_store::{Kind, Store, StoreError};

use super::{commit, content, flush, options};

/// Runs a server in a thread of its own until the process ends.
fn serve(directory: &std::path::Path) -> SocketAddr {
    let files = FileSystem::new(directory).expect("a directory");
    let mut builder = S3ServiceBuilder::new(files);
    builder.set_auth(SimpleAuth::from_single("reader", "of-tests"));
    let service = builder.build();
    let (sender, address) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            sender.send(listener.local_addr().expect("an address")).expect("sent");
            while let Ok((socket, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
            }
        });
    });
    address.recv().expect("an address")
}

/// Runs a test of this program that needs an environment of its own.
fn run_in(environment: &[(&str, &str)], test: &str) {
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["--exact", "--ignored", "--nocapture", test]);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_")) {
        command.env_remove(name);
    }
    let out = command.envs(environment.iter().copied()).output().expect("it runs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("1 passed"), "{said}");
}

fn credentials(endpoint: &str) -> Vec<(&str, &str)> {
    vec![
        ("AWS_ENDPOINT", endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "reader"),
        ("AWS_SECRET_ACCESS_KEY", "of-tests"),
    ]
}

#[test]
fn a_store_in_s3_is_opened_on_another_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("bucket")).expect("a bucket");
    let endpoint = format!("http://{}", serve(directory.path()));
    run_in(&credentials(&endpoint), "s3::round_trip");
    let mut wrong = credentials(&endpoint);
    wrong.push(("AWS_SECRET_ACCESS_KEY", "another"));
    run_in(&wrong, "s3::wrong_key");
}

#[test]
#[ignore = "run by another test, which starts the server"]
fn round_trip() {
    let (one, two) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let url = "s3://bucket/a/prefix";
    let store = Store::object_store(url, one.path(), options()).expect("a store");
    assert_eq!(store.url(), Some(url));
    let lease = store.create("box", "").expect("created");
    let first = commit(&store, &lease, None, b"one").expect("committed");
    // Larger than a pack, and not compressible.
    let mut large = vec![0; 9 << 20];
    getrandom::fill(&mut large).expect("randomness");
    let second = commit(&store, &lease, Some(first), &large).expect("committed");
    flush(&store);
    let other = Store::object_store(url, two.path(), options()).expect("a store");
    assert!(matches!(other.lease("box"), Err(StoreError::Busy { .. })));
    assert_eq!(content(&other, "box").expect("read"), large);
    assert_eq!(other.list(Kind::Sandbox).expect("a list").len(), 1);
    drop(lease);
    flush(&store);
    let lease = other.lease("box").expect("free");
    commit(&other, &lease, Some(second), b"three").expect("committed");
    flush(&other);
    assert!(matches!(store.lease("box"), Err(StoreError::Busy { .. })));
    assert_eq!(content(&store, "box").expect("read"), b"three");
}

#[test]
#[ignore = "run by another test, which starts the server"]
fn wrong_key() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = Store::object_store("s3://bucket/b", directory.path(), options());
    let message = refused.map(drop).expect_err("refused").to_string();
    assert!(message.contains("AWS_SECRET_ACCESS_KEY"), "{message}");
}

/// A server that answers everything with bytes without end, or says nothing at all.
#[test]
fn an_endless_answer_over_http_is_cut_off() {
    let (sender, address) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            sender.send(listener.local_addr().expect("an address")).expect("sent");
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    let _ = socket.read(&mut request).await;
                    let head = "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nLast-Modified: Thu, 19 Nov 2026 21:00:00 GMT\r\nTransfer-Encoding: chunked\r\n\r\n";
                    let _ = socket.write_all(head.as_bytes()).await;
                    let chunk = [b"10000\r\n".to_vec(), vec![b'x'; 65536], b"\r\n".to_vec()].concat();
                    while socket.write_all(&chunk).await.is_ok() {}
                });
            }
        });
    });
    let endpoint = format!("http://{}", address.recv().expect("an address"));
    run_in(&credentials(&endpoint), "s3::endless");
}

#[test]
#[ignore = "run by another test, which starts the server"]
fn endless() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = Store::object_store("s3://bucket/b", directory.path(), options());
    let message = refused.map(drop).expect_err("refused").to_string();
    assert!(message.contains("more than"), "{message}");
}
