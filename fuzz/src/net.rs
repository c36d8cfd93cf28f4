//! The gateway's reader of requests, against httparse: what it accepts means the same to another parser.

use bytes::BytesMut;
use wardian_net::Host;
use wardian_net::wire::{Decoder, FIELDS, Framing, RequestHead, Step, head_length};

use crate::random::Random;

/// A connection's bytes: heads and bodies, one after the other, as a whole and in pieces.
pub fn net_http(data: &[u8]) {
    let whole = requests(data, data.len().max(1));
    let pieces = requests(data, 7);
    assert_eq!(whole, pieces, "pieces make a difference");
}

/// Reads requests that come in pieces of this size, and returns what they mean.
fn requests(data: &[u8], size: usize) -> Vec<String> {
    let host = Host::Name("api.test".to_owned());
    let (mut buffer, mut rest, mut all) = (BytesMut::new(), data, Vec::new());
    'requests: loop {
        let head = loop {
            match head_length(&buffer) {
                Err(_) => break 'requests,
                Ok(Some(length)) => break buffer.split_to(length),
                Ok(None) if rest.is_empty() => break 'requests,
                Ok(None) => more(&mut buffer, &mut rest, size),
            }
        };
        let Ok(parsed) = RequestHead::parse(&head, &host, 80) else { break };
        agrees(&head, &parsed);
        all.push(format!("{} {}", parsed.method, parsed.target));
        let (mut decoder, mut body) = (Decoder::new(parsed.framing), Vec::new());
        loop {
            match decoder.next(&mut buffer) {
                Err(_) => break 'requests,
                Ok(Step::Done) => break,
                Ok(Step::Data(data)) => body.extend_from_slice(&data),
                Ok(Step::Trailers(trailers)) => all.push(format!("{trailers:?}")),
                Ok(Step::More) if rest.is_empty() => break 'requests,
                Ok(Step::More) => more(&mut buffer, &mut rest, size),
            }
        }
        if let Framing::Length(length) = parsed.framing {
            assert_eq!(body.len() as u64, length);
        }
        all.push(String::from_utf8_lossy(&body).into_owned());
    }
    all
}

fn more(buffer: &mut BytesMut, rest: &mut &[u8], size: usize) {
    let (piece, after) = rest.split_at(size.min(rest.len()));
    buffer.extend_from_slice(piece);
    *rest = after;
}

fn agrees(head: &[u8], parsed: &RequestHead) {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut other = httparse::Request::new(&mut fields);
    let status = other.parse(head).expect("accepted here and refused by httparse");
    assert_eq!(status, httparse::Status::Complete(head.len()));
    assert_eq!(other.method, Some(parsed.method.as_str()));
    assert!(other.path.is_some_and(|path| path.ends_with(parsed.target.trim_start_matches('/'))));
    assert_eq!(other.headers.len(), parsed.headers.len());
    for field in other.headers.iter() {
        let name = field.name.to_ascii_lowercase();
        assert!(parsed.headers.get_all(&name).iter().any(|value| value.as_bytes() == field.value), "{name}");
    }
}

/// Pieces of requests, so that heads are complete now and then.
pub fn request(random: &mut Random) -> Vec<u8> {
    const PIECES: &[&str] = &[
        "GET ",
        "POST ",
        "/",
        "/a?b=c",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        "Host: api.test\r\n",
        "\r\n",
        "\n",
        "\r",
        " ",
        "\t",
        ":",
        "Content-Length: 5\r\n",
        "Content-Length: 05\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "5\r\nhello\r\n",
        "0\r\n\r\n",
        "X: y\r\n",
        "hello",
        "Expect: 100-continue\r\n",
        "http://api.test/x",
        "\0",
        "é",
        "Trailer: x\r\n",
        "5;a=b\r\n",
        "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n",
    ];
    let count = 1 + random.below(24);
    let mut bytes = Vec::new();
    for _ in 0..count {
        bytes.extend_from_slice(PIECES[random.below(PIECES.len())].as_bytes());
    }
    bytes
}
