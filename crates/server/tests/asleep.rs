//! How much memory a sandbox takes that sleeps. In a process of its own, since all of its heap is counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use wardian_server::{Options, Server};

/// Counts what is allocated.
struct Counting;

static BYTES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is passed on to the system's allocator; counting changes nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Client {
    output: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Client {
    async fn call(&mut self, method: &str, params: Value) -> Value {
        let line = json!({ "id": 1, "method": method, "params": params }).to_string() + "\n";
        self.output.write_all(line.as_bytes()).await.expect("the server reads");
        let answer = self.lines.next_line().await.expect("UTF-8").expect("an answer");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Makes so many, and waits until they sleep.
    async fn sleepers(&mut self, from: usize, to: usize) {
        for number in from..to {
            let name = format!("team/sandbox-{number:06}");
            self.call("sandbox.create", json!({ "persistence": { "name": name } })).await;
        }
        loop {
            let listed = self.call("sandbox.list", json!({})).await;
            if listed.as_array().expect("a list").iter().all(|one| one["asleep"] == true) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Until what was awake is dropped, and what sleeps is compact.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_sleeps_takes_at_most_300_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = wardian::StoreOptions { sync: false, ..wardian::StoreOptions::default() };
    let store = wardian::Store::open_with(directory.path(), options).expect("a store");
    let idle = Some(Duration::from_millis(1));
    let server = Server::new(Options { store: Some(store), idle, ..Options::default() });
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    tokio::spawn(async move { server.serve(input, output).await });
    let (lines, output) = tokio::io::split(ours);
    let mut client = Client { output, lines: BufReader::new(lines).lines() };
    client.call("create", json!({})).await;
    // Buffers between the two are as large as they get.
    client.call("run", json!({ "command": "head -c 1000000 /dev/zero | tr '\\0' x" })).await;
    client.sleepers(0, 200).await;
    let before = BYTES.load(Ordering::Relaxed);
    client.sleepers(200, 1200).await;
    let each = (BYTES.load(Ordering::Relaxed) - before) / 1000;
    println!("{each} bytes each");
    assert!((40..=300).contains(&each), "{each} bytes each");
}
