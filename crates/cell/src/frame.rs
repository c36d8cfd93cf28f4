//! Frames: a length (`u32`), a sequence number (`u64`), both little-endian, and a `postcard` message.
//!
//! Both sides count their frames. A frame that is too long, out of sequence, or not exactly one message is an error, and
//! nothing after it is read. The length is checked before anything is allocated for it.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes before each message.
pub const HEADER: usize = 12;
/// The longest message to a cell: a script, or a sandbox's environment.
pub const LONGEST_ORDER: usize = 16 << 20;
/// The longest message from a cell.
pub const LONGEST_REPORT: usize = 256 << 10;

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It is longer than any message.
    #[error("a message is too long")]
    TooLong,
    /// Its number is not the next one.
    #[error("a message is out of sequence")]
    OutOfSequence,
    /// It is no message, or more than one.
    #[error("a message cannot be read")]
    Malformed,
}

/// Makes frames, in sequence.
#[derive(Debug)]
pub struct Encoder {
    longest: usize,
    next: u64,
}

impl Encoder {
    /// Makes frames whose messages have at most `longest` bytes.
    pub fn new(longest: usize) -> Encoder {
        Encoder { longest, next: 0 }
    }

    /// Returns the frame of a message. One that is too long is refused, and does not count.
    pub fn encode(&mut self, message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
        let mut frame = postcard::to_extend(message, vec![0; HEADER]).map_err(|_| FrameError::Malformed)?;
        let length = frame.len() - HEADER;
        if length > self.longest {
            return Err(FrameError::TooLong);
        }
        frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
        frame[4..HEADER].copy_from_slice(&self.next.to_le_bytes());
        self.next += 1;
        Ok(frame)
    }
}

/// Takes frames apart, as their bytes come.
#[derive(Debug)]
pub struct Decoder {
    longest: usize,
    next: u64,
    bytes: Vec<u8>,
    /// What of `bytes` was decoded.
    taken: usize,
}

impl Decoder {
    /// Reads frames whose messages have at most `longest` bytes.
    pub fn new(longest: usize) -> Decoder {
        Decoder { longest, next: 0, bytes: Vec::new(), taken: 0 }
    }

    /// Adds bytes that have come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next message; `None` until all of it is there. After an error there is no next.
    pub fn decode<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        let rest = &self.bytes[self.taken..];
        let Some((header, body)) = rest.split_first_chunk::<HEADER>() else { return Ok(None) };
        let (length, number) = header.split_at(4);
        let length = u32::from_le_bytes(length.try_into().map_err(|_| FrameError::Malformed)?) as usize;
        let number = u64::from_le_bytes(number.try_into().map_err(|_| FrameError::Malformed)?);
        if length > self.longest {
            return Err(FrameError::TooLong);
        }
        if number != self.next {
            return Err(FrameError::OutOfSequence);
        }
        let Some(body) = body.get(..length) else { return Ok(None) };
        let (message, left) = postcard::take_from_bytes(body).map_err(|_| FrameError::Malformed)?;
        if !left.is_empty() {
            return Err(FrameError::Malformed);
        }
        self.taken += HEADER + length;
        self.next += 1;
        Ok(Some(message))
    }

    /// Returns how many bytes wait for the rest of their frame.
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.taken
    }
}
