//! Lines from a client, none of them longer than it may be.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line that was longer than allowed, and is gone.
    TooLong,
}

/// Reads lines. A line that is too long is dropped as it comes, never held.
pub struct Lines<R> {
    input: R,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Lines<R> {
        Lines { input }
    }

    /// The next line of at most `limit` bytes; nothing at the end. What follows the last line end is half a line: nobody
    /// meant it yet, and it is not answered.
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
