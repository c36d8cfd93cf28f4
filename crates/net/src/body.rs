//! Takes the body of a guest's request out of its connection, whatever way it is framed. No input or output of its own.

use bytes::{Buf, Bytes, BytesMut};
use http::header::HeaderMap;

use crate::head::{BadRequest, Framing, field};

/// Most bytes of the line before a chunk.
const SIZE_LINE: usize = 256;

/// Most bytes of all trailers.
const TRAILERS: usize = 8 << 10;

/// Takes a body apart.
#[derive(Debug)]
pub struct Decoder(State);

#[derive(Debug)]
enum State {
    Length(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
    Done,
}

/// What comes next.
#[derive(Debug)]
pub enum Step {
    /// Part of the body.
    Data(Bytes),
    /// Its trailers, which are its end.
    Trailers(HeaderMap),
    /// Nothing until there is more input.
    More,
    /// The body is complete.
    Done,
}

const fn bad(why: &'static str) -> BadRequest {
    BadRequest { status: 400, why }
}

impl Decoder {
    /// Creates one for a body that is framed like this.
    pub fn new(framing: Framing) -> Decoder {
        Decoder(match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::ChunkSize,
        })
    }

    /// Tells whether the body is complete.
    pub fn is_done(&self) -> bool {
        matches!(self.0, State::Done)
    }

    /// Takes the next part from the start of `input`.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Step, BadRequest> {
        loop {
            match &mut self.0 {
                State::Done => return Ok(Step::Done),
                State::Length(left) | State::Chunk(left) => {
                    if input.is_empty() {
                        return Ok(Step::More);
                    }
                    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                    *left -= length as u64;
                    let data = input.split_to(length).freeze();
                    if *left == 0 {
                        self.0 =
                            if matches!(self.0, State::Chunk(_)) { State::ChunkEnd } else { State::Done };
                    }
                    return Ok(Step::Data(data));
                }
                State::ChunkEnd => match input.get(..2) {
                    Some(b"\r\n") => {
                        input.advance(2);
                        self.0 = State::ChunkSize;
                    }
                    Some(_) => return Err(bad("a chunk is longer than its size")),
                    None if input.first().is_some_and(|byte| *byte != b'\r') => {
                        return Err(bad("a chunk is longer than its size"));
                    }
                    None => return Ok(Step::More),
                },
                State::ChunkSize => match line(input, SIZE_LINE)? {
                    None => return Ok(Step::More),
                    Some(line) => {
                        self.0 = match chunk_size(&line)? {
                            0 => State::Trailers,
                            size => State::Chunk(size),
                        }
                    }
                },
                State::Trailers => match trailers(input)? {
                    None => return Ok(Step::More),
                    Some(trailers) => {
                        self.0 = State::Done;
                        return Ok(if trailers.is_empty() { Step::Done } else { Step::Trailers(trailers) });
                    }
                },
            }
        }
    }
}

/// Takes a line, which must end in CR LF.
fn line(input: &mut BytesMut, most: usize) -> Result<Option<BytesMut>, BadRequest> {
    match memchr::memchr(b'\n', &input[..input.len().min(most)]) {
        Some(at) if at > 0 && input[at - 1] == b'\r' => {
            let mut line = input.split_to(at + 1);
            line.truncate(at - 1);
            match line.contains(&b'\r') {
                true => Err(bad("a line does not end in CR LF")),
                false => Ok(Some(line)),
            }
        }
        Some(_) => Err(bad("a line does not end in CR LF")),
        None if input.len() >= most => Err(bad("a line is too long")),
        None => Ok(None),
    }
}

/// Reads `SIZE[;EXTENSION]`. Extensions are dropped: nobody uses them.
fn chunk_size(line: &[u8]) -> Result<u64, BadRequest> {
    let (size, extension) = match memchr::memchr(b';', line) {
        Some(at) => line.split_at(at),
        None => (line, &line[..0]),
    };
    if size.is_empty() || size.len() > 15 || !size.iter().all(u8::is_ascii_hexdigit) {
        return Err(bad("the size of a chunk is malformed"));
    }
    if extension.iter().any(|byte| *byte < 0x20 && *byte != b'\t' || *byte == 0x7f) {
        return Err(bad("the extension of a chunk is malformed"));
    }
    let size = std::str::from_utf8(size).map_err(|_| bad("the size of a chunk is malformed"))?;
    u64::from_str_radix(size, 16).map_err(|_| bad("the size of a chunk is malformed"))
}

/// Headers that make no sense after the body, where no rule was applied to them.
const NOT_TRAILERS: [&str; 12] = [
    "host",
    "content-length",
    "transfer-encoding",
    "trailer",
    "connection",
    "authorization",
    "proxy-authorization",
    "cookie",
    "expect",
    "upgrade",
    "te",
    "content-encoding",
];

fn trailers(input: &mut BytesMut) -> Result<Option<HeaderMap>, BadRequest> {
    let end = match input.get(..2) {
        Some(b"\r\n") => 0,
        _ => match memchr::memmem::find(&input[..input.len().min(TRAILERS)], b"\r\n\r\n") {
            Some(at) => at + 2,
            None if input.len() >= TRAILERS => {
                return Err(BadRequest { status: 431, why: "the trailers are too long" });
            }
            None => return Ok(None),
        },
    };
    let mut block = input.split_to(end);
    input.advance(2);
    let mut trailers = HeaderMap::new();
    while !block.is_empty() {
        let Some(line) = line(&mut block, TRAILERS)? else { return Err(bad("a trailer is malformed")) };
        let (name, value) = field(&line)?;
        if NOT_TRAILERS.contains(&name.as_str()) {
            return Err(bad("a header that must be in the head is a trailer"));
        }
        trailers.append(name, value);
    }
    Ok(Some(trailers))
}
