//! bzip2: streams of sorted blocks, one after the other.

use super::{Decode, Encode, Flaw};
use crate::stream::{CHUNK, Input};
use bzip2::{Action, Compress, Compression, Decompress, Error, Status};
use std::io::{self, Write};

pub struct Decoder {
    stream: Option<Decompress>,
    streams: u64,
    ended: bool,
    garbage: bool,
}

impl Decoder {
    pub fn new() -> Decoder {
        Decoder { stream: None, streams: 0, ended: false, garbage: false }
    }

    /// Starts the next stream, if one is there.
    fn start(&mut self, input: &mut Input) -> Result<bool, Flaw> {
        let start = input.peek(4)?;
        let is_ours = matches!(start, [b'B', b'Z', b'h', b'1'..=b'9', ..]);
        if start.is_empty() && self.streams > 0 {
            return Ok(false);
        }
        if !is_ours {
            self.garbage = self.streams > 0;
            return match self.garbage {
                true => Ok(false),
                false if b"BZh".starts_with(&start[..start.len().min(3)]) && start.len() < 4 => {
                    Err(Flaw::Cut)
                }
                false => Err(Flaw::Foreign),
            };
        }
        self.streams += 1;
        self.stream = Some(Decompress::new(false));
        Ok(true)
    }
}

impl Decode for Decoder {
    fn decode(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Flaw> {
        while !self.ended {
            let Some(stream) = &mut self.stream else {
                self.ended = !self.start(input)?;
                continue;
            };
            let ready = input.fill()?;
            let at_end = ready.is_empty();
            let before = (stream.total_in(), stream.total_out());
            let status = stream.decompress(ready, out);
            let taken = (stream.total_in() - before.0) as usize;
            let given = (stream.total_out() - before.1) as usize;
            input.consume(taken);
            match status {
                Ok(Status::StreamEnd) => self.stream = None,
                Ok(Status::MemNeeded) => return Err(Flaw::TooLarge),
                Ok(_) if at_end && given == 0 => return Err(Flaw::Cut),
                Ok(_) => {}
                Err(Error::DataMagic) => {
                    return Err(Flaw::Damaged("bad magic number (file not created by bzip2)"));
                }
                Err(_) => return Err(Flaw::Damaged("data integrity (CRC) error in data")),
            }
            if given > 0 {
                return Ok(given);
            }
        }
        Ok(0)
    }

    fn has_garbage(&self) -> bool {
        self.garbage
    }
}

pub struct Encoder {
    sink: Box<dyn Write>,
    stream: Compress,
    buffer: Vec<u8>,
}

impl Encoder {
    pub fn new(sink: Box<dyn Write>, level: u32) -> Encoder {
        let stream = Compress::new(Compression::new(level), 30);
        Encoder { sink, stream, buffer: Vec::with_capacity(CHUNK) }
    }

    fn step(&mut self, bytes: &[u8], action: Action) -> io::Result<Status> {
        let status = self.stream.compress_vec(bytes, &mut self.buffer, action).map_err(io::Error::other)?;
        if self.buffer.len() == self.buffer.capacity() {
            self.sink.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(status)
    }
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let start = self.stream.total_in();
        let mut rest = bytes;
        while !rest.is_empty() {
            self.step(rest, Action::Run)?;
            rest = &bytes[(self.stream.total_in() - start) as usize..];
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Encode for Encoder {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        while self.step(&[], Action::Finish)? != Status::StreamEnd {}
        self.sink.write_all(&self.buffer)
    }
}
