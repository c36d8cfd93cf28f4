//! Lines from a client, up to a maximum length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its line end.
    Whole(Vec<u8>),
    /// A line that was too long, and was discarded.
    TooLong,
}

impl Line {
    /// Returns how many bytes of it there are.
    pub(crate) fn len(&self) -> usize {
        if let Line::Whole(line) = self { line.len() } else { 0 }
    }
}

/// Reads lines. A line that is too long is discarded as it arrives, never stored.
pub struct Lines<R> {
    input: R,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Lines<R> {
        Lines { input }
    }

    /// Returns the next line of at most `limit` bytes, or nothing at the end. An unterminated last line is incomplete,
    /// and is ignored.
    pub async fn next(&mut self, limit: usize) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let piece = self.input.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|&byte| byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            too_long |= line.len() + part.len() > limit;
            if too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(part);
            }
            let taken = part.len() + usize::from(end.is_some());
            self.input.consume(taken);
            if end.is_some() {
                return Ok(Some(if too_long { Line::TooLong } else { Line::Whole(line) }));
            }
        }
    }
}
