//! What the server reads of HTTP itself: the frames of a WebSocket, and queries. Everything before is hyper's.

use crate::random::Random;

#[path = "../../crates/server/src/http/frames.rs"]
#[allow(dead_code)]
mod frames;
#[path = "../../crates/server/src/e2b/query.rs"]
#[allow(dead_code, unreachable_pub)]
mod query;

use frames::{Decoder, Event, header_of};
use query::Query;

/// Frames mean the same as a whole and in pieces; a query has no more names than it was sent, and decoding makes nothing longer.
pub fn server_wire(data: &[u8]) {
    let whole = frames(data, data.len().max(1));
    for size in [1, 7] {
        assert_eq!(whole, frames(data, size), "pieces of {size} make a difference");
    }
    let text = String::from_utf8_lossy(data);
    let query = Query::parse(&text);
    assert!(query.pairs().count() <= text.split('&').count());
    // A byte that is not UTF-8 becomes a character of three.
    assert!(query.pairs().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= 3 * text.len());
}

/// What frames say that come in pieces of this size, and the code that the connection is closed with.
fn frames(data: &[u8], size: usize) -> (Vec<String>, Vec<u8>, Option<u16>) {
    let mut decoder = Decoder::default();
    let (mut said, mut message, mut given) = (Vec::new(), Vec::new(), 0);
    for piece in data.chunks(size) {
        let mut piece = piece.to_vec();
        let mut rest = &mut piece[..];
        loop {
            let (event, after) = match decoder.next(rest) {
                Ok(next) => next,
                Err(code) => return (said, message, Some(code)),
            };
            match event {
                Event::More => break,
                Event::Text(text) => {
                    assert!(!text.contains(&b'\n'), "a line ends within a message");
                    given += text.len();
                    message.extend_from_slice(text);
                }
                Event::End => said.push(format!("{:?}", std::mem::take(&mut message))),
                Event::Ping(content) => {
                    assert!(content.len() <= 125, "a ping takes {} bytes", content.len());
                    said.push(format!("ping {content:?}"));
                }
                Event::Close => return (said, message, Some(1000)),
            }
            rest = after;
        }
    }
    assert!(given <= data.len());
    (said, message, None)
}

/// Frames that are nearly right.
pub fn socket(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(8) {
        let opcode = [0, 0, 1, 1, 1, 8, 9, 10, 2, 3][random.below(10)];
        let first = opcode | if random.below(3) > 0 { 0x80 } else { 0 };
        let length = [0, 1, 5, 125, 126, 300, 70_000][random.below(7)];
        let mut head = header_of(first, length);
        head[1] |= if random.below(40) > 0 { 0x80 } else { 0 };
        if random.below(40) == 0 {
            let at = random.below(head.len());
            head[at] ^= 1 << random.below(8);
        }
        bytes.extend_from_slice(&head);
        bytes.extend((0..4 + length).map(|_| random.next() as u8));
    }
    bytes
}
