//! Content encodings: gzip and deflate.

use super::{Error, Result};
use flate2::write::{DeflateDecoder, GzDecoder, ZlibDecoder};
use std::io::Write;

/// Fed so little at a time, even the densest stream gives about a MiB at once.
const PIECE: usize = 1024;

/// Takes an encoding off.
pub enum Decoder {
    Plain,
    Gzip(Box<GzDecoder<Vec<u8>>>),
    /// Deflate of which no byte has come yet: some servers send it with a header, some without.
    Deflate(Vec<u8>),
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    Raw(Box<DeflateDecoder<Vec<u8>>>),
}

impl Decoder {
    /// Returns the decoder for a `Content-Encoding`.
    pub fn named(encoding: &str) -> Result<Decoder> {
        match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" | "none" => Ok(Decoder::Plain),
            "gzip" | "x-gzip" => Ok(Decoder::Gzip(Box::new(GzDecoder::new(Vec::new())))),
            "deflate" => Ok(Decoder::Deflate(Vec::new())),
            _ => Err(Error::Encoding),
        }
    }

    /// Decodes bytes, giving what comes of them to `out` in pieces of moderate size.
    pub fn feed<E: From<Error>>(
        &mut self,
        bytes: &[u8],
        out: &mut dyn FnMut(&[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if matches!(self, Decoder::Plain) {
            return out(bytes);
        }
        for piece in bytes.chunks(PIECE) {
            self.piece(piece, out)?;
        }
        Ok(())
    }

    fn piece<E: From<Error>>(
        &mut self,
        piece: &[u8],
        out: &mut dyn FnMut(&[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match self {
            Decoder::Plain => out(piece),
            Decoder::Gzip(decoder) => {
                write(decoder.as_mut(), piece)?;
                give(decoder.get_mut(), out)
            }
            Decoder::Zlib(decoder) => {
                write(decoder.as_mut(), piece)?;
                give(decoder.get_mut(), out)
            }
            Decoder::Raw(decoder) => {
                write(decoder.as_mut(), piece)?;
                give(decoder.get_mut(), out)
            }
            Decoder::Deflate(ahead) => {
                ahead.extend_from_slice(piece);
                let [first, second, ..] = ahead[..] else { return Ok(()) };
                let whole = std::mem::take(ahead);
                let is_zlib = first & 0x0f == 8 && (u16::from(first) << 8 | u16::from(second)) % 31 == 0;
                *self = match is_zlib {
                    true => Decoder::Zlib(Box::new(ZlibDecoder::new(Vec::new()))),
                    false => Decoder::Raw(Box::new(DeflateDecoder::new(Vec::new()))),
                };
                self.piece(&whole, out)
            }
        }
    }
}

/// Gives a decoder bytes until it has taken them or is at its end.
fn write(decoder: &mut dyn Write, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match decoder.write(bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => bytes = &bytes[count.min(bytes.len())..],
            Err(error) if error.to_string().contains("header") => {
                return Err(Error::Decode("incorrect header check"));
            }
            Err(_) => return Err(Error::Decode("invalid data")),
        }
    }
    decoder.flush().map_err(|_| Error::Decode("invalid data"))
}

fn give<E>(
    decoded: &mut Vec<u8>,
    out: &mut dyn FnMut(&[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let done = if decoded.is_empty() { Ok(()) } else { out(decoded) };
    decoded.clear();
    // A burst must not cost memory for the rest of the transfer.
    decoded.shrink_to(64 * 1024);
    done
}
