//! Bytes that no honest cell sends.

use std::io::Write;
use std::os::fd::FromRawFd;

use wardian_cell::frame::{Encoder, LONGEST_REPORT};
use wardian_cell::message::{PIECE, Piece, Refusal, Report, RunEnd, Seal, Stream, VERSION};

/// In a cell whose first request created a sandbox, and whose second is this run.
const CREATED: u64 = 2;
const RUN: u64 = 3;

/// Sends what a cell sends before it is ready, but wrong.
pub fn before_it_starts() {
    write(0, b"this is no frame at all, and longer than a header");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// Sends what is named.
pub fn send(socket: i32, what: &str) {
    let piece = |bytes: Vec<u8>| Piece { stream: Stream::Stdout, bytes, cut: false };
    let report = match what {
        "noise" => return write(socket, &[0xa5; 4096]),
        "huge" => return write(socket, &[0xff, 0xff, 0xff, 0x7f, 2, 0, 0, 0, 0, 0, 0, 0]),
        "again" => return write(socket, &frame(0, &Report::Began(RUN))),
        "skipped" => return write(socket, &frame(9, &Report::Began(RUN))),
        "trailing" => {
            let mut bytes = frame(2, &Report::Began(RUN));
            bytes[0] += 1;
            bytes.push(0);
            return write(socket, &bytes);
        }
        "half" => {
            let bytes = frame(2, &Report::Began(RUN));
            write(socket, &bytes[..bytes.len() - 1]);
            std::process::exit(0);
        }
        "flood" => return flood(socket),
        "ready" => Report::Ready(Seal { version: VERSION, namespaces: true, landlock: true, seccomp: true }),
        "other-run" => Report::Ended(RUN + 1, Ok(Box::default())),
        "wrong-kind" => Report::Done(RUN, Ok(())),
        "answered-request" => Report::Done(CREATED, Ok(())),
        "other-output" => Report::Output(77, piece(b"not mine".to_vec())),
        "long-piece" => Report::Output(RUN, piece(vec![b'x'; PIECE + 1])),
        "input-unasked" => Report::WantInput(RUN, 10),
        "long-text" => Report::Ended(RUN, Err(Refusal("x".repeat(100_000)))),
        "long-note" => {
            Report::Ended(RUN, Ok(Box::new(RunEnd { note: vec![b'x'; 100_000], ..RunEnd::default() })))
        }
        other => panic!("{other} is not known"),
    };
    write(socket, &frame(2, &report));
}

/// Sends more output than it may, without ever waiting for credit.
fn flood(socket: i32) {
    let mut encoder = Encoder::new(LONGEST_REPORT);
    for _ in 0..2 {
        encoder.encode(&Report::Began(0)).expect("a frame");
    }
    for _ in 0..100_000 {
        let piece = Piece { stream: Stream::Stdout, bytes: vec![b'x'; 1000], cut: false };
        write(socket, &encoder.encode(&Report::Output(RUN, piece)).expect("a frame"));
    }
}

fn frame(number: u64, report: &Report) -> Vec<u8> {
    let mut encoder = Encoder::new(LONGEST_REPORT);
    for _ in 0..number {
        encoder.encode(&Report::Began(0)).expect("a frame");
    }
    encoder.encode(report).expect("a frame")
}

fn write(socket: i32, bytes: &[u8]) {
    // SAFETY: the number is that of the socket, which is open as long as this process; it is not closed here.
    let mut socket = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(socket) });
    // The supervisor kills this process in the middle of it.
    let _ = socket.write_all(bytes);
}
