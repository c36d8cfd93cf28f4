//! The network of a machine, seen from the host: its ports, its way out, what is charged for it.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use wardian_kernel::{
    Destination, HostStream, Limits, Machine, Outside, OutsideConnection, OutsideHost, Rules, Serve, Start,
    Started, Status, Stream,
};
use wardian_vfs::Errno;

use crate::support::{KERNEL, PROGRAMS, finish, machine, machine_with, put, settled};

/// Starts `usertests --echo` at port 7, for so many clients.
async fn echo(machine: &Arc<Machine>, clients: &str) -> Started {
    let start = Start::new("/bin/usertests", &["--echo", "7", clients]);
    let output = start.output.clone();
    let started = machine.start(start).await.expect("it starts");
    while output.take(Stream::Stdout).0.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    started
}

async fn exchange(mut stream: HostStream, data: &[u8]) -> Vec<u8> {
    let (mut back, sent) = (Vec::new(), data.to_vec());
    let (mut read, mut write) = tokio::io::split(&mut stream);
    let sending = async {
        write.write_all(&sent).await.expect("it is read");
        write.shutdown().await.expect("it ends");
    };
    let ((), read) = tokio::join!(sending, read.read_to_end(&mut back));
    read.expect("it answers");
    back
}

#[tokio::test]
async fn the_host_reaches_a_port_that_a_process_listens_at() {
    let machine = machine();
    assert_eq!(machine.connect(7).await.map(drop), Err(Errno::ECONNREFUSED));
    let server = echo(&machine, "2").await;
    let data: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
    for sent in [b"hello".to_vec(), data] {
        let stream = machine.connect(7).await.expect("it listens");
        assert!(exchange(stream, &sent).await == sent);
    }
    assert_eq!(server.wait().await, Status::Exited(0));
    assert_eq!(machine.connect(7).await.map(drop), Err(Errno::ECONNREFUSED));
    settled(&machine).await;
}

#[tokio::test]
async fn a_killed_server_hangs_up() {
    let machine = machine();
    let server = echo(&machine, "1").await;
    let mut stream = machine.connect(7).await.expect("it listens");
    stream.write_all(b"x").await.expect("it is read");
    assert_eq!(stream.read_u8().await.expect("it answers"), b'x');
    server.kill();
    let mut rest = Vec::new();
    assert!(matches!(stream.read_to_end(&mut rest).await, Ok(0)));
    drop(stream);
    settled(&machine).await;
}

#[tokio::test]
async fn without_a_way_out_there_is_only_the_loopback() {
    let machine = machine();
    for (host, said) in [
        ("example.com", "Refused\n"),
        ("192.0.2.1", "Connection refused\n"),
        ("198.18.1.0", "Connection refused\n"),
        ("localhost", "Connection refused\n"),
        ("no such name", "Unknown\n"),
    ] {
        let done = finish(&machine, Start::new("/bin/usertests", &["--fetch", host, "80"])).await;
        assert_eq!((done.stdout.as_str(), done.status), (said, Status::Exited(1)), "{host}");
    }
}

/// Knows one name, writes down who was connected to, and answers everything backwards.
struct Backwards(mpsc::UnboundedSender<Destination>);

impl Outside for Backwards {
    fn look_up(&self, name: &str) -> Result<(), Errno> {
        if name == "known.example" { Ok(()) } else { Err(Errno::EACCES) }
    }

    fn connect(&self, to: Destination) -> OutsideConnection {
        let allowed = to.port == 80;
        self.0.send(to).expect("the test waits");
        Box::pin(async move {
            if !allowed {
                return Err(Errno::ECONNREFUSED);
            }
            let serve: Serve = Box::new(|mut guest: HostStream| {
                Box::pin(async move {
                    let mut line = Vec::new();
                    guest.read_to_end(&mut line).await.expect("it is sent");
                    line.reverse();
                    guest.write_all(&line).await.expect("it is read");
                })
            });
            Ok(serve)
        })
    }
}

#[tokio::test]
async fn connections_leave_through_what_the_host_offers() {
    let (sender, mut connected) = mpsc::unbounded_channel();
    let rules = Rules { outside: Some(Arc::new(Backwards(sender))), ..Rules::default() };
    let machine = Machine::with_rules(&KERNEL, PROGRAMS.tree(&KERNEL), Limits::default(), rules);
    let fetch = async |host: &str, port: &str| {
        finish(&machine, Start::new("/bin/usertests", &["--fetch", host, port])).await.stdout
    };
    assert_eq!(fetch("Known.Example.", "80").await, "\nedisni morf");
    let known = OutsideHost::Name("known.example".to_owned());
    assert_eq!(connected.recv().await, Some(Destination { host: known.clone(), port: 80 }));
    assert_eq!(fetch("known.example", "81").await, "Connection refused\n");
    assert_eq!(connected.recv().await, Some(Destination { host: known, port: 81 }));
    assert_eq!(fetch("other.example", "80").await, "Refused\n");
    assert_eq!(fetch("192.0.2.1", "80").await, "\nedisni morf");
    let ip = OutsideHost::Ip("192.0.2.1".parse().expect("an address"));
    assert_eq!(connected.recv().await, Some(Destination { host: ip, port: 80 }));
    settled(&machine).await;
}

/// A program that makes so many sockets of this kind, does `each` with the descriptor of each at 16, and exits with the errno of
/// the first that fails; with 0 if none does. Of those that succeed it counts up to `enough`, and exits with 200 if there are fewer.
fn crowd(kind: u32, count: u32, enough: u32, first: &str, each: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
        (import "wardian" "socket" (func $socket (param i32 i32 i32 i32 i32) (result i32)))
        (import "wardian" "setsockopt" (func $setsockopt (param i32 i32 i32 i32 i32) (result i32)))
        (import "wardian" "getsockopt" (func $getsockopt (param i32 i32 i32 i32 i32 i32) (result i32)))
        (import "wardian" "bind" (func $bind (param i32 i32 i32) (result i32)))
        (import "wardian" "listen" (func $listen (param i32 i32) (result i32)))
        (import "wardian" "connect" (func $connect (param i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (data (i32.const 64) "\02\00\15\b3\7f\00\00\01\00\00\00\00\00\00\00\00")
        (data (i32.const 96) "\01\00\00\00")
        (func $new
          (drop (call $socket (i32.const 2) (i32.const {kind}) (i32.const 0) (i32.const 2) (i32.const 16))))
        (func (export "_start") (local $n i32) (local $errno i32)
          {first}
          (loop $again
            (call $new)
            (local.set $errno {each})
            (if (local.get $errno) (then
              (if (i32.lt_u (local.get $n) (i32.const {enough})) (then (call $exit (i32.const 200))))
              (call $exit (local.get $errno))))
            (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $n) (i32.const {count}))))))"#
    );
    wat::parse_str(&text).expect("a module")
}

#[tokio::test]
async fn so_many_sockets_share_a_port_or_wait_at_a_listener_and_no_more() {
    const EADDRINUSE: u8 = 3;
    let machine = machine_with(Limits { open_files: 4096, ..Limits::default() });
    let shares = "(drop (call $setsockopt (i32.load (i32.const 16)) (i32.const 1) (i32.const 15) (i32.const 96) (i32.const 4)))
        ";
    let bind = "(call $bind (i32.load (i32.const 16)) (i32.const 64) (i32.const 16))";
    let each = format!("(block (result i32) {shares} {bind})");
    put(&machine, b"/tmp/shares", &crowd(2, 1025, 1024, "", &each)).await;
    assert_eq!(finish(&machine, Start::new("/tmp/shares", &[])).await.status, Status::Exited(EADDRINUSE));
    // One is accepted into the backlog; then so many wait, and the next one is refused (Linux's number, from SO_ERROR).
    let first =
        format!("(call $new) (drop {bind}) (drop (call $listen (i32.load (i32.const 16)) (i32.const 0)))");
    let connect = "(block (result i32)
        (drop (call $connect (i32.load (i32.const 16)) (i32.const 64) (i32.const 16)))
        (drop (call $getsockopt (i32.load (i32.const 16)) (i32.const 1) (i32.const 4) (i32.const 128) (i32.const 4) (i32.const 132)))
        (i32.load (i32.const 128)))";
    put(&machine, b"/tmp/waits", &crowd(1, 1026, 1025, &first, connect)).await;
    let refused = u8::try_from(Errno::ECONNREFUSED.raw()).expect("small");
    assert_eq!(finish(&machine, Start::new("/tmp/waits", &[])).await.status, Status::Exited(refused));
    settled(&machine).await;
}
