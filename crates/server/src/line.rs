//! Lines from a client, up to a maximum length.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use crate::budget::{Budget, Room, Shared};
use crate::rpc;

/// Room for a line is taken in pieces of this size.
const PIECE: usize = 1 << 20;
/// How much is read of one client before others go first.
const TURN: usize = 64 << 10;

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

    /// Returns how much memory it takes once it is parsed, about.
    pub(crate) fn weight(&self) -> usize {
        if let Line::Whole(line) = self { rpc::weight(line) } else { 0 }
    }
}

/// Reads lines. A line that is too long is discarded as it arrives, never stored; a long one takes its room as it arrives.
pub struct Lines<R> {
    input: R,
    budget: Budget,
    /// The room of the last line, until the next is wanted.
    rooms: Vec<Room>,
    /// How much was read since others went first.
    since: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Lines<R> {
        Lines::within(input, Shared::for_requests())
    }

    /// Does the same, with the memory that all clients share.
    pub(crate) fn within(input: R, shared: Arc<Shared>) -> Lines<R> {
        Lines { input, budget: Budget::new(shared), rooms: Vec::new(), since: 0 }
    }

    /// Returns the next line of at most `limit` bytes, or nothing at the end. An unterminated last line is incomplete,
    /// and is ignored.
    pub async fn next(&mut self, limit: usize) -> io::Result<Option<Line>> {
        self.rooms.clear();
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            if self.since >= TURN {
                self.since = 0;
                self.budget.pause().await;
            }
            let piece = tokio::select! {
                biased;
                piece = self.input.fill_buf() => piece?,
                () = self.budget.wanted_back() => return Err(too_slow()),
            };
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|&byte| byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            too_long |= line.len() + part.len() > limit;
            if too_long {
                line = Vec::new();
                self.rooms.clear();
            } else {
                while self.rooms.len() * PIECE < line.len() + part.len() {
                    // As long as there is none, nothing more is read. Where all wait for each other, the slowest goes.
                    let room = tokio::select! {
                        biased;
                        room = self.budget.room(PIECE - 1024) => room,
                        () = self.budget.wanted_back() => None,
                    };
                    self.rooms.push(room.ok_or_else(too_slow)?);
                }
                line.extend_from_slice(part);
            }
            let taken = part.len() + usize::from(end.is_some());
            self.input.consume(taken);
            self.since += taken;
            if end.is_some() {
                return Ok(Some(if too_long { Line::TooLong } else { Line::Whole(line) }));
            }
        }
    }
}

fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it does not finish its line, and others need the room")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncWriteExt, BufReader};

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_never_finished_gives_its_memory_to_those_who_go_on() {
        let shared = Shared::new(8 << 10, 8 << 10, Duration::from_millis(20));
        let reader = |input| Lines::within(BufReader::with_capacity(64 << 10, input), shared.clone());
        let (mut deaf, input) = tokio::io::duplex(64 << 10);
        let mut first = reader(input);
        let never = tokio::spawn(async move { first.next(16 << 20).await });
        deaf.write_all(&vec![b' '; 7 << 20]).await.expect("it is read");
        let (mut other, input) = tokio::io::duplex(64 << 10);
        let mut second = reader(input);
        let line = [vec![b'x'; 5 << 20], b"\n".to_vec()].concat();
        let writing = tokio::spawn(async move { other.write_all(&line).await.map(|()| other) });
        let read = second.next(16 << 20).await.expect("it goes on").expect("a line");
        assert_eq!(read.len(), 5 << 20);
        let ended = never.await.expect("no panic").expect_err("it was too slow");
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        drop(writing.await);
    }
}
