//! The content of a file in an archive.

use super::format::{self, BZIP2, DEFLATED, Entry, STORED, ZSTD};
use crate::codec::{Decode, Flaw, bzip2, gzip, zstd};
use crate::stream::{CHUNK, Input};
use flate2::{Crc, Decompress};
use std::io::{self, Read, Write};
use wardian_abi as abi;
use wardian_abi::{Errno, Fd};

/// A part of a file.
pub struct Section {
    pub fd: Fd,
    pub at: u64,
    pub left: u64,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = abi::pread(self.fd, &mut buffer[..most], self.at)?;
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Why a file did not come out of an archive.
pub enum Trouble {
    /// No local record is where it should be.
    Lost,
    Method,
    Damaged,
    Cut,
    /// The checksum that was found.
    Checksum(u32),
    Output(Errno),
    Input(Errno),
}

struct Inflate(Decompress, bool);

impl Decode for Inflate {
    fn decode(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Flaw> {
        while !self.1 {
            let (count, ended) = gzip::inflate(&mut self.0, input, out)?;
            self.1 = ended;
            if count > 0 {
                return Ok(count);
            }
        }
        Ok(0)
    }
}

struct Plain;

impl Decode for Plain {
    fn decode(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Flaw> {
        Ok(input.read(out)?)
    }
}

/// Copies a file's content out of an archive, and checks it.
pub fn copy(fd: Fd, entry: &Entry, mut sink: Option<&mut dyn Write>) -> Result<(), Trouble> {
    let mut decoder: Box<dyn Decode> = match entry.method {
        STORED => Box::new(Plain),
        DEFLATED => Box::new(Inflate(Decompress::new(false), false)),
        BZIP2 => Box::new(bzip2::Decoder::new()),
        ZSTD => Box::new(zstd::Decoder::new()),
        _ => return Err(Trouble::Method),
    };
    let at = format::content_at(fd, entry).map_err(|_| Trouble::Lost)?;
    let mut input = Input::new(Section { fd, at, left: entry.packed });
    let mut crc = Crc::new();
    let mut total = 0u64;
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = match decoder.decode(&mut input, &mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(Flaw::Cut) if entry.unpacked == 0 && entry.packed == 0 => break,
            Err(Flaw::Cut) => return Err(Trouble::Cut),
            Err(Flaw::Unreadable(error)) => return Err(Trouble::Input(error)),
            Err(_) => return Err(Trouble::Damaged),
        };
        total += count as u64;
        // More than was announced is no file of this archive, but may be a bomb.
        if total > entry.unpacked {
            return Err(Trouble::Damaged);
        }
        crc.update(&buffer[..count]);
        if let Some(sink) = &mut sink {
            sink.write_all(&buffer[..count]).map_err(|error| Trouble::Output(error.into()))?;
        }
    }
    if crc.sum() != entry.crc {
        return Err(Trouble::Checksum(crc.sum()));
    }
    if total != entry.unpacked {
        return Err(Trouble::Cut);
    }
    Ok(())
}
