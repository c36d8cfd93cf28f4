//! The body of a response: where it ends, and its chunks.

use super::head::Head;
use super::wire::Wire;
use super::{Error, Result};

/// How a body ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Framing {
    /// There is none.
    None,
    /// After so many bytes.
    Length(u64),
    /// After a chunk of no bytes.
    Chunked,
    /// With the connection.
    Close,
}

/// The longest line between chunks, and the most bytes of trailers.
const LONGEST_LINE: usize = 16 * 1024;
const MOST_TRAILERS: usize = 100 * 1024;

/// Says how the body of a response ends.
pub fn framing(method: &str, head: &Head) -> Result<Framing> {
    if method == "HEAD" || head.status / 100 == 1 || head.status == 204 || head.status == 304 {
        return Ok(Framing::None);
    }
    if head.lists("Transfer-Encoding", "chunked") {
        return Ok(Framing::Chunked);
    }
    let mut length = None;
    for text in head.all("Content-Length") {
        let digits = text.split(',').next().unwrap_or_default().trim();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::BadLength);
        }
        // A length beyond all numbers is no limit: the connection's end is.
        let Ok(value) = digits.parse::<i64>() else { return Ok(Framing::Close) };
        if length.is_some_and(|length| length != value) {
            return Err(Error::BadFraming);
        }
        length = Some(value);
    }
    Ok(length.map_or(Framing::Close, |length| Framing::Length(length.unsigned_abs())))
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Before the line with a chunk's size.
    Size,
    /// Within a chunk or a body with a length.
    Data(u64),
    /// After a chunk's data.
    Newline,
    Done,
}

/// A body that is being read.
pub struct Body {
    framing: Framing,
    state: State,
    /// The lines after the last chunk, as they came.
    pub trailers: Vec<u8>,
}

impl Body {
    pub fn new(framing: Framing) -> Body {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Data(length),
            Framing::Chunked => State::Size,
            Framing::Close => State::Data(u64::MAX),
        };
        Body { framing, state, trailers: Vec::new() }
    }

    /// Whether the connection ends with the body.
    pub fn ends_connection(&self) -> bool {
        self.framing == Framing::Close
    }

    /// Reads on. The answer is how many bytes at the front of the wire's buffer belong to the body; 0 at its end.
    /// Whoever calls consumes as many.
    pub fn next(&mut self, wire: &mut Wire) -> Result<usize> {
        loop {
            match self.state {
                State::Done => return Ok(0),
                State::Data(left) => {
                    if !wire.fill()? {
                        return self.ended(left);
                    }
                    let count = usize::try_from(left).unwrap_or(usize::MAX).min(wire.buffered().len());
                    self.state = match (left - count as u64, self.framing) {
                        (_, Framing::Close) => State::Data(u64::MAX),
                        (0, Framing::Chunked) => State::Newline,
                        (0, _) => State::Done,
                        (rest, _) => State::Data(rest),
                    };
                    return Ok(count);
                }
                State::Size => self.size(wire)?,
                State::Newline => self.newline(wire)?,
            }
        }
    }

    fn ended(&mut self, left: u64) -> Result<usize> {
        self.state = State::Done;
        match self.framing {
            Framing::Close => Ok(0),
            Framing::Chunked => Err(Error::ShortChunk),
            _ => Err(Error::Short(left)),
        }
    }

    fn size(&mut self, wire: &mut Wire) -> Result<()> {
        let line = self.line(wire)?;
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 {
            return Err(Error::Chunk("Illegal or missing hexadecimal sequence"));
        }
        if digits > 16 {
            return Err(Error::Chunk("Too long hexadecimal number"));
        }
        let text = std::str::from_utf8(&line[..digits]).unwrap_or_default();
        let size = i64::from_str_radix(text, 16);
        let size = size.map_err(|_| Error::Chunk("Too long hexadecimal number"))?.unsigned_abs();
        if size > 0 {
            self.state = State::Data(size);
            return Ok(());
        }
        loop {
            let line = self.line(wire)?;
            if line.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
                self.state = State::Done;
                return Ok(());
            }
            self.trailers.extend_from_slice(&line);
            if self.trailers.len() > MOST_TRAILERS {
                return Err(Error::HeadTooLarge(self.trailers.len()));
            }
        }
    }

    fn newline(&mut self, wire: &mut Wire) -> Result<()> {
        let line = self.line(wire)?;
        if !matches!(line[..], [b'\n'] | [b'\r', b'\n']) {
            return Err(Error::Chunk("Malformed encoding found"));
        }
        self.state = State::Size;
        Ok(())
    }

    fn line(&mut self, wire: &mut Wire) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        match wire.read_line(&mut line, LONGEST_LINE) {
            Ok(true) => Ok(line),
            Ok(false) => Err(Error::ShortChunk),
            Err(Error::LineTooLong) => Err(Error::Chunk("Malformed encoding found")),
            Err(error) => Err(error),
        }
    }
}
