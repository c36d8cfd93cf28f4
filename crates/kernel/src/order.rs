//! In which order the bytes of two streams were written.
//!
//! Only lengths are kept, not bytes, each in as few bytes as its number needs: a guest that writes single bytes by turns
//! makes the order as long as its output, and never longer.

use std::fmt;

/// One of the two streams a command writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// The order in which two streams were written, without their bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Order {
    /// Numbers in groups of seven bits, the lowest first: a length, and in the lowest bit which stream. The length 0 says
    /// that the stream was cut there.
    runs: Vec<u8>,
    /// The run that may still grow.
    last: Option<(Stream, usize)>,
}

/// A part of what was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part<'a> {
    /// Bytes that one stream got in a row.
    Bytes(Stream, &'a [u8]),
    /// Here a stream was cut: nothing that was written to it later is kept.
    Cut(Stream),
}

impl Order {
    /// Notes that a stream got `len` more bytes.
    pub fn add(&mut self, stream: Stream, len: usize) {
        match &mut self.last {
            _ if len == 0 => {}
            Some((last, sum)) if *last == stream => *sum += len,
            _ => {
                self.settle();
                self.last = Some((stream, len));
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.runs.capacity()
    }

    /// Notes that a stream is cut here.
    pub fn cut(&mut self, stream: Stream) {
        self.settle();
        self.encode(stream, 0);
    }

    fn settle(&mut self) {
        if let Some((stream, len)) = self.last.take() {
            self.encode(stream, len);
        }
    }

    fn encode(&mut self, stream: Stream, len: usize) {
        let mut rest = (len as u128) << 1 | u128::from(stream == Stream::Stderr);
        while rest >= 0x80 {
            self.runs.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.runs.push(rest as u8);
    }

    /// The bytes of both streams, in order. Bytes it does not know of come last; those that are missing are left out.
    pub fn parts<'a>(&'a self, stdout: &'a [u8], stderr: &'a [u8]) -> impl Iterator<Item = Part<'a>> {
        let (mut runs, mut last) = (self.runs.as_slice(), self.last);
        let mut streams = [(Stream::Stdout, stdout), (Stream::Stderr, stderr)];
        let mut runs =
            std::iter::from_fn(move || if runs.is_empty() { last.take() } else { decode(&mut runs) });
        let parts = std::iter::from_fn(move || {
            let (stream, len) = runs.next().or_else(|| {
                let (stream, rest) = streams.iter().find(|(_, rest)| !rest.is_empty())?;
                Some((*stream, rest.len()))
            })?;
            if len == 0 {
                return Some(Part::Cut(stream));
            }
            let rest = &mut streams[usize::from(stream == Stream::Stderr)].1;
            let (bytes, after) = rest.split_at(len.min(rest.len()));
            *rest = after;
            Some(Part::Bytes(stream, bytes))
        });
        parts.filter(|part| !matches!(part, Part::Bytes(_, b"")))
    }
}

fn decode(runs: &mut &[u8]) -> Option<(Stream, usize)> {
    let (mut number, mut shift) = (0u128, 0);
    loop {
        let (&byte, rest) = runs.split_first()?;
        *runs = rest;
        number |= u128::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            let stream = if number & 1 == 0 { Stream::Stdout } else { Stream::Stderr };
            return Some((stream, (number >> 1) as usize));
        }
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Part::{Bytes, Cut};
    use Stream::{Stderr, Stdout};

    #[test]
    fn parts_come_in_the_order_they_were_added_and_neighbours_are_one() {
        let mut order = Order::default();
        order.add(Stdout, 2);
        order.add(Stdout, 1);
        order.add(Stderr, 1);
        order.add(Stdout, 0);
        order.add(Stderr, 1);
        order.cut(Stderr);
        order.add(Stdout, 200);
        let (out, err) = ([b"abc".to_vec(), vec![b'd'; 200]].concat(), b"xy");
        let parts: Vec<_> = order.parts(&out, err).collect();
        assert_eq!(
            parts,
            [Bytes(Stdout, b"abc"), Bytes(Stderr, b"xy"), Cut(Stderr), Bytes(Stdout, &[b'd'; 200])]
        );
    }

    #[test]
    fn bytes_and_order_that_do_not_fit_lose_nothing_and_invent_nothing() {
        let mut order = Order::default();
        order.add(Stderr, 5);
        order.add(Stdout, 1);
        let parts: Vec<_> = order.parts(b"abc", b"xy").collect();
        assert_eq!(parts, [Bytes(Stderr, b"xy"), Bytes(Stdout, b"a"), Bytes(Stdout, b"bc")]);
    }

    #[test]
    fn an_order_is_never_longer_than_what_it_orders() {
        for len in [1, 2, 63, 64, 8191, 8192, usize::MAX / 4] {
            let mut order = Order::default();
            for turn in 0..1000 {
                order.add(if turn % 2 == 0 { Stdout } else { Stderr }, len);
            }
            assert!(order.runs.len() <= 1000 * len.min(10), "{len}");
        }
    }
}
