//! Compressed streams: one decoder and one encoder for each format, fed and emptied piece by piece.

pub mod bzip2;
pub mod gzip;
pub mod xz;
pub mod zstd;

use crate::stream::Input;
use std::io::{self, Read, Write};
use wardian_abi::Errno;

/// A format of compressed streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Gzip,
    Bzip2,
    Xz,
    /// What came before xz: no magic number to speak of, no checksum.
    Lzma,
    Zstd,
}

impl Format {
    /// The format that these first bytes announce.
    pub fn of(start: &[u8]) -> Option<Format> {
        match start {
            [0x1f, 0x8b, ..] => Some(Format::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Format::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Format::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Format::Zstd),
            _ if xz::is_lzma(start) => Some(Format::Lzma),
            _ => None,
        }
    }

    /// The format of a file with such a name, as `tar -a` guesses it.
    pub fn of_name(name: &[u8]) -> Option<Format> {
        let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix.as_bytes()));
        match () {
            () if ends(&[".gz", ".tgz", ".taz"]) => Some(Format::Gzip),
            () if ends(&[".bz2", ".tbz", ".tbz2", ".tz2", ".tb2"]) => Some(Format::Bzip2),
            () if ends(&[".xz", ".txz"]) => Some(Format::Xz),
            () if ends(&[".lzma", ".tlz"]) => Some(Format::Lzma),
            () if ends(&[".zst", ".tzst"]) => Some(Format::Zstd),
            () => None,
        }
    }

    pub fn decoder(self) -> Box<dyn Decode> {
        match self {
            Format::Gzip => Box::new(gzip::Decoder::new()),
            Format::Bzip2 => Box::new(bzip2::Decoder::new()),
            Format::Xz => Box::new(xz::Decoder::new()),
            Format::Lzma => Box::new(xz::LzmaDecoder::new()),
            Format::Zstd => Box::new(zstd::Decoder::new()),
        }
    }

    /// An encoder at the level that the format's program has by default.
    pub fn encoder(self, sink: Box<dyn Write>) -> io::Result<Box<dyn Encode>> {
        Ok(match self {
            Format::Gzip => Box::new(gzip::Encoder::new(sink, 6, &gzip::Header::default())?),
            Format::Bzip2 => Box::new(bzip2::Encoder::new(sink, 9)),
            Format::Xz => Box::new(xz::Encoder::new(sink, &xz::Settings::default())?),
            Format::Lzma => Box::new(xz::LzmaEncoder::new(sink, &xz::Settings::default())?),
            Format::Zstd => Box::new(zstd::Encoder::new(sink, &zstd::Settings::default())?),
        })
    }

    /// The program whose format it is.
    pub fn program(self) -> &'static str {
        match self {
            Format::Gzip => "gzip",
            Format::Bzip2 => "bzip2",
            Format::Xz => "xz",
            Format::Lzma => "lzma",
            Format::Zstd => "zstd",
        }
    }
}

/// What is wrong with a compressed stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// It does not begin as this format does.
    Foreign,
    /// It ends too early.
    Cut,
    /// It is damaged: what the format's program says of it.
    Damaged(&'static str),
    /// It uses what this program cannot do: its words for that.
    Unsupported(&'static str),
    /// It wants more memory than there is to be had.
    TooLarge,
    /// It cannot be read.
    Unreadable(Errno),
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Flaw {
        Flaw::Unreadable(Errno::from(error))
    }
}

/// Turns a compressed stream into what it was made from.
pub trait Decode {
    /// Gives the next bytes; none at the end.
    fn decode(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Flaw>;

    /// Whether the stream was followed by something else, which was left alone.
    fn has_garbage(&self) -> bool {
        false
    }
}

/// Compresses what is written to it.
pub trait Encode: Write {
    /// Writes what is left.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// A decoder and its input as `std` reads them. The flaw that ended it is kept.
pub struct Decoded {
    pub input: Input,
    pub decoder: Box<dyn Decode>,
    pub flaw: std::rc::Rc<std::cell::Cell<Option<Flaw>>>,
}

impl Read for Decoded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.decoder.decode(&mut self.input, out).map_err(|flaw| {
            self.flaw.set(Some(flaw));
            io::Error::from(Errno::IO)
        })
    }
}
