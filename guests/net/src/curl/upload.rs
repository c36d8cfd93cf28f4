//! What a request carries, sent as it is read.

use std::fs::File;
use std::io::Read;

/// A part of a body.
pub enum Piece {
    Text(Vec<u8>),
    /// A file of a known size.
    File(File, u64),
    /// Standard input or another stream, up to its end.
    Stream(Box<dyn Read>),
}

impl Piece {
    /// Opens a file; `-` is standard input, whole.
    pub fn file(name: &[u8]) -> std::io::Result<Piece> {
        if name == b"-" {
            return Ok(Piece::Text(toolkit::files::read_fd(0)?));
        }
        let file = File::open(toolkit::files::path(name))?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        match metadata.is_file() {
            true => Ok(Piece::File(file, metadata.len())),
            false => Ok(Piece::Stream(Box::new(file))),
        }
    }

    fn length(&self) -> Option<u64> {
        match self {
            Piece::Text(text) => Some(text.len() as u64),
            Piece::File(_, length) => Some(*length),
            Piece::Stream(_) => None,
        }
    }
}

/// A body to send.
pub struct Upload {
    pieces: Vec<Piece>,
    at: usize,
    /// How much of the current piece is sent.
    sent: u64,
    /// Its length, if it is known.
    pub length: Option<u64>,
    pub content_type: Option<String>,
}

impl Upload {
    pub fn of(pieces: Vec<Piece>, content_type: Option<String>) -> Upload {
        let length = pieces.iter().map(Piece::length).sum();
        Upload { pieces, at: 0, sent: 0, length, content_type }
    }

    /// Reads on; 0 at the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while let Some(piece) = self.pieces.get_mut(self.at) {
            let count = match piece {
                Piece::Text(text) => {
                    let rest =
                        usize::try_from(self.sent).ok().and_then(|sent| text.get(sent..)).unwrap_or_default();
                    let count = rest.len().min(buffer.len());
                    buffer[..count].copy_from_slice(&rest[..count]);
                    count
                }
                Piece::File(file, length) => {
                    // A file that grows meanwhile is sent at the length that was announced.
                    let left = usize::try_from(*length - self.sent).unwrap_or(usize::MAX).min(buffer.len());
                    let count = file.read(&mut buffer[..left])?;
                    if count == 0 && left > 0 {
                        return Err(std::io::ErrorKind::UnexpectedEof.into());
                    }
                    count
                }
                Piece::Stream(stream) => stream.read(buffer)?,
            };
            if count > 0 {
                self.sent += count as u64;
                return Ok(count);
            }
            (self.at, self.sent) = (self.at + 1, 0);
        }
        Ok(0)
    }
}
