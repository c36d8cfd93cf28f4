//! gzip: deflated members, one after the other, each with a header, a checksum and a length.

use super::{Decode, Encode, Flaw};
use crate::stream::{CHUNK, Input};
use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};
use std::io::{self, Write};

/// What a member says of the file it was made from.
#[derive(Default, Clone)]
pub struct Header {
    pub name: Option<Vec<u8>>,
    /// Seconds since 1970; 0 when unknown.
    pub time: u32,
}

const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

/// Names longer than any file system's are no names.
const LONGEST_NAME: usize = 4096;

enum Place {
    Header,
    Data,
    Trailer,
    End,
}

pub struct Decoder {
    place: Place,
    inflate: Decompress,
    crc: Crc,
    members: u64,
    garbage: bool,
    /// Of the first member.
    pub header: Header,
    /// The checksum and length of the last member, as it states them.
    pub trailer: (u32, u32),
}

impl Decoder {
    pub fn new() -> Decoder {
        Decoder {
            place: Place::Header,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            members: 0,
            garbage: false,
            header: Header::default(),
            trailer: (0, 0),
        }
    }

    /// Starts the next member, if one is there.
    pub fn start(&mut self, input: &mut Input) -> Result<bool, Flaw> {
        let start = input.peek(2)?;
        match start {
            [0x1f, 0x8b, ..] => {}
            [] if self.members > 0 => return Ok(false),
            [] => return Err(Flaw::Cut),
            [0, ..] if self.members > 0 => {
                // Tapes are filled up with zeros.
                while let Some(byte) = input.byte()? {
                    if byte != 0 {
                        self.garbage = true;
                        break;
                    }
                }
                return Ok(false);
            }
            _ if self.members > 0 => {
                self.garbage = true;
                return Ok(false);
            }
            [_] => return Err(Flaw::Cut),
            _ => return Err(Flaw::Foreign),
        }
        let header = read_header(input)?;
        if self.members == 0 {
            self.header = header;
        }
        self.members += 1;
        self.inflate.reset(false);
        self.crc.reset();
        self.place = Place::Data;
        Ok(true)
    }

    fn check_trailer(&mut self, input: &mut Input) -> Result<(), Flaw> {
        let mut trailer = [0; 8];
        for byte in &mut trailer {
            *byte = input.byte()?.ok_or(Flaw::Cut)?;
        }
        let word =
            |at: usize| u32::from_le_bytes([trailer[at], trailer[at + 1], trailer[at + 2], trailer[at + 3]]);
        self.trailer = (word(0), word(4));
        if self.crc.sum() != word(0) {
            return Err(Flaw::Damaged("invalid compressed data--crc error"));
        }
        if self.crc.amount() != word(4) {
            return Err(Flaw::Damaged("invalid compressed data--length error"));
        }
        self.place = Place::Header;
        Ok(())
    }
}

impl Decode for Decoder {
    fn decode(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Flaw> {
        loop {
            match self.place {
                Place::End => return Ok(0),
                Place::Header => {
                    if !self.start(input)? {
                        self.place = Place::End;
                    }
                }
                Place::Trailer => self.check_trailer(input)?,
                Place::Data => {
                    let (count, ended) = inflate(&mut self.inflate, input, out)?;
                    self.crc.update(&out[..count]);
                    if ended {
                        self.place = Place::Trailer;
                    }
                    if count > 0 {
                        return Ok(count);
                    }
                }
            }
        }
    }

    fn has_garbage(&self) -> bool {
        self.garbage
    }
}

/// Inflates some bytes: how many, and whether those were the last.
pub fn inflate(inflate: &mut Decompress, input: &mut Input, out: &mut [u8]) -> Result<(usize, bool), Flaw> {
    loop {
        let ready = input.fill()?;
        let at_end = ready.is_empty();
        let before = (inflate.total_in(), inflate.total_out());
        let status = inflate
            .decompress(ready, out, FlushDecompress::None)
            .map_err(|_| Flaw::Damaged("invalid compressed data--format violated"))?;
        let taken = (inflate.total_in() - before.0) as usize;
        let given = (inflate.total_out() - before.1) as usize;
        input.consume(taken);
        if status == Status::StreamEnd {
            return Ok((given, true));
        }
        if given > 0 {
            return Ok((given, false));
        }
        if at_end {
            return Err(Flaw::Cut);
        }
        if taken == 0 {
            return Err(Flaw::Damaged("invalid compressed data--format violated"));
        }
    }
}

fn read_header(input: &mut Input) -> Result<Header, Flaw> {
    let mut next = || input.byte().map_err(Flaw::from)?.ok_or(Flaw::Cut);
    let mut fixed = [0; 10];
    for byte in &mut fixed {
        *byte = next()?;
    }
    let [_, _, method, flags, time @ .., _, _] = fixed;
    if method != 8 {
        return Err(Flaw::Unsupported("unknown method -- not supported"));
    }
    if flags & RESERVED != 0 {
        return Err(Flaw::Unsupported("has flags that are not supported"));
    }
    if flags & HAS_EXTRA != 0 {
        let length = u16::from_le_bytes([next()?, next()?]);
        for _ in 0..length {
            next()?;
        }
    }
    let mut text = |wanted: u8| -> Result<Option<Vec<u8>>, Flaw> {
        if flags & wanted == 0 {
            return Ok(None);
        }
        let mut text = Vec::new();
        loop {
            match next()? {
                0 => return Ok(Some(text)),
                byte if text.len() < LONGEST_NAME => text.push(byte),
                _ => {}
            }
        }
    };
    let name = text(HAS_NAME)?;
    text(HAS_COMMENT)?;
    if flags & HAS_CRC != 0 {
        next()?;
        next()?;
    }
    Ok(Header { name, time: u32::from_le_bytes(time) })
}

pub struct Encoder {
    sink: Box<dyn Write>,
    deflate: Deflate,
    crc: Crc,
}

impl Encoder {
    pub fn new(mut sink: Box<dyn Write>, level: u32, header: &Header) -> io::Result<Encoder> {
        let flags = if header.name.is_some() { HAS_NAME } else { 0 };
        let speed = match level {
            1 => 4,
            9 => 2,
            _ => 0,
        };
        const UNIX: u8 = 3;
        let mut bytes = vec![0x1f, 0x8b, 8, flags];
        bytes.extend(header.time.to_le_bytes());
        bytes.extend([speed, UNIX]);
        if let Some(name) = &header.name {
            bytes.extend(name);
            bytes.push(0);
        }
        sink.write_all(&bytes)?;
        Ok(Encoder { sink, deflate: Deflate::new(level), crc: Crc::new() })
    }
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.crc.update(bytes);
        self.deflate.write(bytes, &mut self.sink)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Encode for Encoder {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.deflate.finish(&mut self.sink)?;
        self.sink.write_all(&self.crc.sum().to_le_bytes())?;
        self.sink.write_all(&self.crc.amount().to_le_bytes())
    }
}

/// Deflated bytes, without anything around them.
pub struct Deflate {
    compress: Compress,
    buffer: Vec<u8>,
}

impl Deflate {
    pub fn new(level: u32) -> Deflate {
        // The crate's first level is a third larger than the real programs'; its second is like their first.
        let level = if level == 1 { 2 } else { level };
        Deflate { compress: Compress::new(Compression::new(level), false), buffer: Vec::with_capacity(CHUNK) }
    }

    pub fn write(&mut self, mut bytes: &[u8], sink: &mut dyn Write) -> io::Result<()> {
        while !bytes.is_empty() {
            let before = self.compress.total_in();
            self.step(bytes, FlushCompress::None, sink)?;
            bytes = &bytes[(self.compress.total_in() - before) as usize..];
        }
        Ok(())
    }

    pub fn finish(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        while self.step(&[], FlushCompress::Finish, sink)? != Status::StreamEnd {}
        sink.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn step(&mut self, bytes: &[u8], flush: FlushCompress, sink: &mut dyn Write) -> io::Result<Status> {
        let status = self.compress.compress_vec(bytes, &mut self.buffer, flush).map_err(io::Error::other)?;
        if self.buffer.len() == self.buffer.capacity() {
            sink.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(status)
    }
}
