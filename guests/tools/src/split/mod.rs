//! `split`: cuts a file into pieces.
//!
//! `names` says what the pieces are called, `pieces` writes them to files or filters, and here is read what goes into
//! which.

mod names;
mod options;
mod pieces;

use memchr::{memchr, memchr_iter, memrchr};
use options::{Choice, Options, Way};
use pieces::Pieces;
use toolkit::args::bytes_of;
use toolkit::records::Records;
use toolkit::source;
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::{Fd, Whence};

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let options = Options::parse(arguments)?;
    let fd = source::open(&options.input).map_err(|error| {
        let shown = quote::always(&options.input);
        complain("split", format_args!("cannot open {shown} for reading: {error}"));
        1
    })?;
    let mut split = Split { fd, pieces: Pieces::new(&options, fd)?, options };
    match split.options.way {
        Way::Bytes(size) => split.by_bytes(size, None)?,
        Way::Lines(count) => split.by_lines(count)?,
        Way::LineBytes(size) => split.by_line_bytes(size)?,
        Way::Chunks(choice) => split.by_chunks(choice)?,
        Way::LineChunks(choice) => split.by_line_chunks(choice)?,
        Way::RoundRobin(choice) => split.round_robin(choice)?,
    }
    split.pieces.finish(split.options.skips_empty)
}

struct Split {
    options: Options,
    fd: Fd,
    pieces: Pieces,
}

/// How much is read at a time.
const CHUNK: usize = 64 * 1024;

impl Split {
    /// Reads once; nothing at the end.
    fn read<'a>(&self, buffer: &'a mut [u8]) -> Result<&'a [u8], i32> {
        match source::read(self.fd, buffer) {
            Ok(count) => Ok(&buffer[..count]),
            Err(error) => {
                complain("split", format_args!("{}: {error}", quote::if_needed(&self.options.input)));
                Err(1)
            }
        }
    }

    /// Pieces of so many bytes; where their number is given, the last takes the rest.
    fn by_bytes(&mut self, size: u64, number: Option<u64>) -> Result<(), i32> {
        let (mut buffer, mut room, mut begun) = (vec![0; CHUNK], 0, 0);
        loop {
            let mut bytes = self.read(&mut buffer)?;
            if bytes.is_empty() {
                break;
            }
            while !bytes.is_empty() {
                if room == 0 && number != Some(begun) {
                    self.pieces.begin()?;
                    (room, begun) = (size, begun + 1);
                }
                let is_last = number == Some(begun);
                let fitting = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
                let taken = if is_last { bytes.len() } else { fitting };
                self.pieces.write(&bytes[..taken])?;
                room = room.saturating_sub(taken as u64);
                bytes = &bytes[taken..];
            }
            if self.pieces.are_deaf() && number == Some(begun) {
                break;
            }
        }
        self.begin_empty(begun, number.unwrap_or(0))
    }

    /// Begins those of a number of pieces that nothing was left for.
    fn begin_empty(&mut self, begun: u64, number: u64) -> Result<(), i32> {
        if !self.options.skips_empty {
            for _ in begun..number {
                self.pieces.begin()?;
            }
        }
        Ok(())
    }

    fn by_lines(&mut self, count: u64) -> Result<(), i32> {
        let (mut buffer, mut lines, mut wants_piece) = (vec![0; CHUNK], 0, true);
        loop {
            let bytes = self.read(&mut buffer)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let mut start = 0;
            for at in memchr_iter(self.options.separator, bytes) {
                lines += 1;
                if lines < count {
                    continue;
                }
                self.put(&bytes[start..=at], &mut wants_piece)?;
                (start, lines, wants_piece) = (at + 1, 0, true);
            }
            self.put(&bytes[start..], &mut wants_piece)?;
        }
    }

    /// Writes to the piece, or to the next one if that is due and there is something to write.
    fn put(&mut self, bytes: &[u8], wants_piece: &mut bool) -> Result<(), i32> {
        if bytes.is_empty() {
            return Ok(());
        }
        if std::mem::take(wants_piece) {
            self.pieces.begin()?;
        }
        self.pieces.write(bytes)
    }

    /// As many whole lines as fit into so many bytes; a line that is longer is cut.
    fn by_line_bytes(&mut self, size: u64) -> Result<(), i32> {
        let mut buffer = vec![0; CHUNK];
        let mut piece = LinePiece { size, room: size, has_line: false, wants_piece: true, held: Vec::new() };
        loop {
            let bytes = self.read(&mut buffer)?.to_vec();
            if bytes.is_empty() {
                let held = std::mem::take(&mut piece.held);
                return self.put(&held, &mut piece.wants_piece);
            }
            piece.held.extend_from_slice(&bytes);
            while piece.held.len() as u64 >= piece.room {
                self.fill_piece(&mut piece)?;
            }
            // What is not yet a whole line waits, unless it will be cut anyway.
            let whole = memrchr(self.options.separator, &piece.held).map_or(0, |at| at + 1);
            piece.has_line |= whole > 0;
            let taken = if piece.has_line { whole } else { piece.held.len() };
            self.take_held(&mut piece, taken)?;
        }
    }

    /// Writes what a piece still has room for, and goes on to the next.
    fn fill_piece(&mut self, piece: &mut LinePiece) -> Result<(), i32> {
        let room = piece.room as usize;
        let taken = match memrchr(self.options.separator, &piece.held[..room]) {
            Some(at) => at + 1,
            None if piece.has_line => 0,
            None => room,
        };
        self.take_held(piece, taken)?;
        (piece.room, piece.has_line, piece.wants_piece) = (piece.size, false, true);
        Ok(())
    }

    fn take_held(&mut self, piece: &mut LinePiece, taken: usize) -> Result<(), i32> {
        let rest = piece.held.split_off(taken);
        self.put(&piece.held, &mut piece.wants_piece)?;
        piece.room -= taken as u64;
        piece.held = rest;
        Ok(())
    }

    fn by_chunks(&mut self, choice: Choice) -> Result<(), i32> {
        let total = self.total(choice.number)?;
        let size = total / choice.number;
        let Some(wanted) = choice.only else { return self.by_bytes(size, Some(choice.number)) };
        let from = (wanted - 1) * size;
        let to = if wanted == choice.number { u64::MAX } else { from + size };
        self.skip(from)?;
        let (mut buffer, mut left) = (vec![0; CHUNK], to - from);
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK);
            let bytes = self.read(&mut buffer[..most])?;
            if bytes.is_empty() {
                break;
            }
            pieces::write_out(bytes)?;
            left -= bytes.len() as u64;
        }
        Ok(())
    }

    /// Pieces that end with the line that a piece of equal size would end in.
    fn by_line_chunks(&mut self, choice: Choice) -> Result<(), i32> {
        let Choice { only, number } = choice;
        let total = self.total(number)?;
        let size = total / number;
        // Where a piece ends at the earliest: at the last byte of its share.
        let last_byte = |piece: u64| if piece == number { total - 1 } else { piece * size - 1 };
        let (mut buffer, mut place, mut piece, mut wants_piece) = (vec![0; CHUNK], 0, 1, true);
        loop {
            let bytes = self.read(&mut buffer)?.to_vec();
            if bytes.is_empty() {
                break;
            }
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let passed = usize::try_from(last_byte(piece).saturating_sub(place)).unwrap_or(usize::MAX);
                let tail = rest.get(passed..).unwrap_or_default();
                let end = memchr(self.options.separator, tail).map(|at| passed + at + 1);
                let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
                match only {
                    Some(wanted) if wanted == piece => pieces::write_out(line)?,
                    Some(_) => {}
                    None => self.put(line, &mut wants_piece)?,
                }
                (rest, place) = (after, place + line.len() as u64);
                if end.is_none() || piece == number {
                    continue;
                }
                if only == Some(piece) {
                    return Ok(());
                }
                (piece, wants_piece) = (piece + 1, true);
                // A long line may have passed whole pieces, which are empty then.
                while piece < number && last_byte(piece) < place {
                    if only.is_none() {
                        self.begin_empty(piece - 1, piece)?;
                    }
                    piece += 1;
                }
            }
        }
        let begun = if wants_piece { piece - 1 } else { piece };
        if only.is_none() { self.begin_empty(begun, number) } else { Ok(()) }
    }

    /// Line after line to piece after piece.
    fn round_robin(&mut self, choice: Choice) -> Result<(), i32> {
        let Choice { only, number } = choice;
        let mut lines = Records::new(self.fd, self.options.separator);
        if only.is_none() {
            self.pieces.name_all(number)?;
        }
        let (mut line, mut turn) = (Vec::new(), 0);
        loop {
            line.clear();
            match lines.next_into(&mut line) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    complain("split", format_args!("{}: {error}", quote::if_needed(&self.options.input)));
                    return Err(1);
                }
            }
            match only {
                Some(wanted) if wanted == turn + 1 => pieces::write_out(&line)?,
                Some(_) => {}
                None => self.pieces.write_to(turn as usize, &line)?,
            }
            turn = (turn + 1) % number;
            if self.pieces.are_deaf() {
                break;
            }
        }
        Ok(())
    }

    /// The size of the input, or the number of pieces, if that is more.
    fn total(&self, number: u64) -> Result<u64, i32> {
        let shown = quote::if_needed(&self.options.input);
        let size = abi::fstat(self.fd).and_then(|stat| {
            let at = abi::seek(self.fd, 0, Whence::Current)?;
            Ok(stat.size.saturating_sub(at))
        });
        match size {
            Ok(size) => Ok(size.max(number)),
            Err(abi::Errno::SPIPE) => {
                complain("split", format_args!("{shown}: cannot determine file size"));
                Err(1)
            }
            Err(error) => {
                complain("split", format_args!("{shown}: cannot determine file size: {error}"));
                Err(1)
            }
        }
    }

    fn skip(&self, bytes: u64) -> Result<(), i32> {
        let offset = i64::try_from(bytes).unwrap_or(i64::MAX);
        abi::seek(self.fd, offset, Whence::Current).map(|_| ()).map_err(|error| {
            complain("split", format_args!("{}: {error}", quote::if_needed(&self.options.input)));
            1
        })
    }
}

/// The piece that [`Split::by_line_bytes`] is at.
struct LinePiece {
    /// How much each takes, and how much more this one does.
    size: u64,
    room: u64,
    /// A whole line is in it.
    has_line: bool,
    /// It has not begun.
    wants_piece: bool,
    /// What was read and not yet written.
    held: Vec<u8>,
}
