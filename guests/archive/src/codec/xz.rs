//! xz, and the lzma format that it replaced.

use super::{Decode, Encode, Flaw};
use crate::stream::Input;
use lzma_rust2::{
    Action, CheckType, LzmaOptions, LzmaStream, LzmaWriter, Status, StreamResult, XzOptions, XzStream,
    XzWriter,
};
use std::io::{self, ErrorKind, Write};

/// What decoding may take, in KiB: a sandbox has 256 MiB unless told otherwise.
const MOST_MEMORY: u32 = 160 << 10;

/// The largest dictionary we compress with: an encoder takes about twelve times as much, and level 9's 64 MiB would
/// be more than a whole sandbox has.
const LARGEST_DICTIONARY: u32 = 8 << 20;

/// What a stream of xz begins with.
const MAGIC: &[u8] = b"\xfd7zXZ\0";
const HEADER_LENGTH: usize = 12;

/// Whether a file begins as lzma's do: the properties everyone uses, and a plausible dictionary.
pub fn is_lzma(start: &[u8]) -> bool {
    let [properties, a, b, c, d, size @ ..] = start else { return false };
    let dictionary = u32::from_le_bytes([*a, *b, *c, *d]);
    let is_usual = dictionary.is_power_of_two() || (dictionary / 3).is_power_of_two() && dictionary % 3 == 0;
    let known_size = size.get(..8).is_some_and(|size| size == [0xff; 8] || size[5..] == [0; 3]);
    *properties < 225 && is_usual && dictionary >= 4096 && known_size
}

/// Streams, one after the other, each a number of blocks and an index of them.
pub struct Decoder {
    stream: XzStream,
    streams: u64,
    inside: bool,
}

impl Decoder {
    pub fn new() -> Decoder {
        Decoder { stream: XzStream::new_mem_limit(false, MOST_MEMORY), streams: 0, inside: false }
    }

    /// Starts the next stream, if one is there.
    fn start(&mut self, input: &mut Input) -> Result<bool, Flaw> {
        // Streams may be filled up with zeros, four at a time.
        while self.streams > 0 && input.peek(4)?.starts_with(&[0; 4]) {
            input.consume(4);
        }
        let start = input.peek(HEADER_LENGTH)?;
        let is_ours = start.starts_with(MAGIC);
        if self.streams > 0 && !is_ours {
            return match start.len() {
                0 => Ok(false),
                length if length < HEADER_LENGTH && !start.contains(&0) => Err(Flaw::Cut),
                _ => Err(Flaw::Damaged("Compressed data is corrupt")),
            };
        }
        if !is_ours {
            return Err(Flaw::Foreign);
        }
        self.stream = XzStream::new_mem_limit(false, MOST_MEMORY);
        self.streams += 1;
        Ok(true)
    }
}

impl Decode for Decoder {
    fn decode(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Flaw> {
        loop {
            if !self.inside {
                if !self.start(input)? {
                    return Ok(0);
                }
                self.inside = true;
            }
            let stream = &mut self.stream;
            let (given, ended) = step(input, |ready, action| stream.process(ready, out, action))?;
            self.inside = !ended;
            if given > 0 {
                return Ok(given);
            }
        }
    }
}

/// Takes one step of a stream: how much it gave, and whether that was the last.
fn step(
    input: &mut Input,
    process: impl FnOnce(&[u8], Action) -> io::Result<StreamResult>,
) -> Result<(usize, bool), Flaw> {
    let ready = input.fill()?;
    let at_end = ready.is_empty();
    let step =
        process(ready, if at_end { Action::Finish } else { Action::Run }).map_err(|error| flaw(&error))?;
    input.consume(step.bytes_consumed);
    let ended = step.status == Status::StreamEnd;
    if step.bytes_consumed == 0 && step.bytes_produced == 0 && !ended {
        return Err(if at_end { Flaw::Cut } else { Flaw::Damaged("Compressed data is corrupt") });
    }
    Ok((step.bytes_produced, ended))
}

fn flaw(error: &io::Error) -> Flaw {
    match error.kind() {
        ErrorKind::UnexpectedEof => Flaw::Cut,
        ErrorKind::OutOfMemory => Flaw::TooLarge,
        ErrorKind::Unsupported => Flaw::Unsupported("Unsupported options"),
        _ => Flaw::Damaged("Compressed data is corrupt"),
    }
}

pub struct LzmaDecoder {
    stream: LzmaStream,
    ended: bool,
    started: bool,
}

impl LzmaDecoder {
    pub fn new() -> LzmaDecoder {
        let stream = LzmaStream::new_mem_limit(MOST_MEMORY, None);
        LzmaDecoder { stream, ended: false, started: false }
    }
}

impl Decode for LzmaDecoder {
    fn decode(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Flaw> {
        if !self.started && !is_lzma(input.peek(13)?) {
            return Err(Flaw::Foreign);
        }
        self.started = true;
        while !self.ended {
            let stream = &mut self.stream;
            let (given, ended) = step(input, |ready, action| stream.process(ready, out, action))?;
            self.ended = ended;
            if ended && !input.fill()?.is_empty() {
                return Err(Flaw::Damaged("Compressed data is corrupt"));
            }
            if given > 0 {
                return Ok(given);
            }
        }
        Ok(0)
    }
}

/// How to compress.
pub struct Settings {
    pub level: u32,
    pub extreme: bool,
    pub check: CheckType,
    /// How much there is to compress, where that is known: no dictionary need be larger.
    pub size: Option<u64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { level: 6, extreme: false, check: CheckType::Crc64, size: None }
    }
}

impl Settings {
    fn options(&self) -> LzmaOptions {
        let mut options = LzmaOptions::with_preset(self.level);
        let enough = self.size.and_then(|size| u32::try_from(size).ok()).map(u32::next_power_of_two);
        let most = enough.unwrap_or(u32::MAX).clamp(4096, LARGEST_DICTIONARY);
        options.dict_size = options.dict_size.min(most);
        if self.extreme {
            options.mode = lzma_rust2::EncodeMode::Normal;
            options.mf = lzma_rust2::MfType::Bt4;
            options.nice_len = if matches!(self.level, 3 | 5) { 192 } else { LzmaOptions::NICE_LEN_MAX };
            options.depth_limit = if matches!(self.level, 3 | 5) { 0 } else { 512 };
        }
        options
    }
}

pub struct Encoder(XzWriter<Box<dyn Write>>);

impl Encoder {
    pub fn new(sink: Box<dyn Write>, settings: &Settings) -> io::Result<Encoder> {
        let mut options = XzOptions::with_preset(settings.level);
        options.lzma_options = settings.options();
        options.set_check_sum_type(settings.check);
        Ok(Encoder(XzWriter::new(sink, options)?))
    }
}

pub struct LzmaEncoder(LzmaWriter<Box<dyn Write>>);

impl LzmaEncoder {
    pub fn new(sink: Box<dyn Write>, settings: &Settings) -> io::Result<LzmaEncoder> {
        // As the real one: it does not say how much there is, but marks the end.
        Ok(LzmaEncoder(LzmaWriter::new(sink, &settings.options(), true, true, None)?))
    }
}

macro_rules! encode {
    ($encoder:ty) => {
        impl Write for $encoder {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes)
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        impl Encode for $encoder {
            fn finish(self: Box<Self>) -> io::Result<()> {
                self.0.finish().map(drop)
            }
        }
    };
}

encode!(Encoder);
encode!(LzmaEncoder);
