//! The streams from a command to its caller. Its input is in `input.rs`.
//!
//! An [`Output`] takes the first bytes of each stream up to a cap and counts the rest; it keeps them, or hands them on to
//! a listener. It is one for both streams, since their order is the order of the calls that write them. Processes come
//! to it by way of an outlet (`outlet.rs`), which leads to the output of whichever command runs.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use wardian_vfs::Errno;

use crate::order::{Order, Stream};

/// Which of the three.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Standard {
    /// Descriptor 0.
    Input,
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Error,
}

impl Standard {
    /// Which of the two it is where only those are meant that are written.
    pub(crate) fn stream(self) -> Stream {
        if self == Standard::Error { Stream::Stderr } else { Stream::Stdout }
    }
}

/// The most of one write that is handed on to a listener: what waits for a slow one is bounded by the pieces that may
/// wait, whatever a guest writes at once. The guest asks again for the rest.
const PIECE: usize = 256 * 1024;

/// A piece of output on its way to a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// Which stream it was written to.
    pub stream: Stream,
    /// Whole characters, unless the guest wrote none.
    pub bytes: Vec<u8>,
    /// Whether this is the last of the stream that is within its cap, and more was written.
    pub cut: bool,
}

/// Where the bytes of one stream go.
pub enum Sink {
    /// They are kept for the end.
    Keep,
    /// To a listener of this stream's own.
    Own(mpsc::Sender<Vec<u8>>),
    /// To a listener that may have the other stream, too, in the order in which both were written.
    Shared(mpsc::Sender<Piece>),
}

/// Where a command's output goes: both of its streams, in the order in which they are written.
pub struct Output {
    state: Mutex<State>,
    caps: [usize; 2],
    /// Gone once the run is over, so that a listener sees the end even if somebody still has this.
    sinks: Mutex<Option<[Sink; 2]>>,
    closing: Notify,
}

#[derive(Default)]
struct State {
    channels: [Channel; 2],
    /// Of what is kept.
    order: Order,
    closed: bool,
}

/// One of the two streams.
#[derive(Default)]
struct Channel {
    kept: Vec<u8>,
    /// The beginning of a character whose end has not come yet.
    held: Vec<u8>,
    /// Bytes that found room under the cap.
    passed: usize,
    /// Bytes written in all.
    total: u64,
    ends_inside_line: bool,
}

impl Channel {
    fn is_cut(&self) -> bool {
        self.total > self.passed as u64
    }

    /// The part of `data` that is within the cap, and whether it is the first that is not whole.
    fn admit<'d>(&mut self, data: &'d [u8], cap: usize) -> (&'d [u8], bool) {
        // What was cut stays cut: nothing after a gap.
        let was_cut = self.is_cut();
        let room = if was_cut { 0 } else { cap - self.passed };
        let admitted = &data[..room.min(data.len())];
        self.total += data.len() as u64;
        self.passed += admitted.len();
        self.ends_inside_line = admitted.last().map_or(self.ends_inside_line, |&last| last != b'\n');
        (admitted, !was_cut && self.is_cut())
    }

    /// The whole characters of what was held and `data`, to be handed on.
    fn next_piece(&mut self, data: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(data);
        let rest = self.held.split_off(whole_characters(&self.held));
        std::mem::replace(&mut self.held, rest)
    }

    /// Keeps the whole characters of what was held and `data`; returns how many bytes those are.
    fn keep(&mut self, data: &[u8]) -> usize {
        let before = self.kept.len();
        if self.held.is_empty() {
            let (whole, rest) = data.split_at(whole_characters(data));
            self.kept.extend_from_slice(whole);
            self.held.extend_from_slice(rest);
        } else {
            let piece = self.next_piece(data);
            self.kept.extend_from_slice(&piece);
        }
        self.kept.len() - before
    }
}

impl State {
    fn keep(&mut self, stream: Stream, data: &[u8], cap: usize) {
        let channel = &mut self.channels[stream as usize];
        let (admitted, cut) = channel.admit(data, cap);
        let kept = channel.keep(admitted);
        self.order.add(stream, kept);
        if cut {
            self.order.cut(stream);
        }
    }
}

/// What is left of an output when its run is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What was kept of standard output: all of it, its beginning, or nothing where somebody listened.
    pub stdout: Vec<u8>,
    /// The same of standard error, and the kernel's note.
    pub stderr: Vec<u8>,
    /// Whether more was written than the caps allow, to standard output and to standard error.
    pub cut: [bool; 2],
    /// The order of what was kept.
    pub order: Order,
}

impl Output {
    /// Takes at most so many bytes of standard output and of standard error, and counts the rest. They are kept, or
    /// handed on as they come, in whole characters; a full channel makes the guest wait.
    pub fn new(caps: [usize; 2], sinks: [Sink; 2]) -> Arc<Output> {
        Arc::new(Output {
            state: Mutex::default(),
            caps,
            sinks: Mutex::new(Some(sinks)),
            closing: Notify::new(),
        })
    }

    /// Keeps so many bytes of each.
    pub fn kept(cap: usize) -> Arc<Output> {
        Output::new([cap; 2], [Sink::Keep, Sink::Keep])
    }

    /// Nothing is kept or handed on from now on: the run is over. Who waits to write waits no more.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.closing.notify_waiters();
    }

    /// Ends it: what is kept is cut at a character if it had to be cut, the kernel's `note` goes after standard error on a
    /// line of its own, past any cap, and listeners hear that nothing more comes.
    pub async fn end(&self, note: Option<&str>) -> Ended {
        self.close();
        let (ended, last) = self.finish(note);
        let sinks = self.sinks.lock().take();
        let Some([stdout, stderr]) = sinks else { return ended };
        let [last_out, last_err] = last;
        // Nobody listening any more is no reason to fail: the run is over. Both at once, for who reads one first.
        tokio::join!(send(stdout, Stream::Stdout, last_out), send(stderr, Stream::Stderr, last_err));
        ended
    }

    /// What was kept, and what listeners have not had.
    fn finish(&self, note: Option<&str>) -> (Ended, [Vec<u8>; 2]) {
        let keeps = match &*self.sinks.lock() {
            Some(sinks) => [0, 1].map(|i| matches!(sinks[i], Sink::Keep)),
            None => [true; 2],
        };
        let state = &mut *self.state.lock();
        let mut order = std::mem::take(&mut state.order);
        let mut end = |stream: Stream, note: Option<&str>| {
            let channel = &mut state.channels[stream as usize];
            // Half a character at the cut is no use; at the very end it is what the guest wrote.
            let mut last = std::mem::take(&mut channel.held);
            if channel.is_cut() {
                last.clear();
            }
            let mut bytes = std::mem::take(&mut channel.kept);
            if keeps[stream as usize] {
                bytes.extend_from_slice(&last);
                order.add(stream, last.len());
            }
            if let Some(note) = note {
                let apart = if channel.ends_inside_line { "\n" } else { "" };
                let line = format!("{apart}{note}\n");
                bytes.extend_from_slice(line.as_bytes());
                last.extend_from_slice(line.as_bytes());
                order.add(stream, line.len());
            }
            (bytes, last, channel.is_cut())
        };
        let (stdout, last_out, out_cut) = end(Stream::Stdout, None);
        let (stderr, last_err, err_cut) = end(Stream::Stderr, note);
        (Ended { stdout, stderr, cut: [out_cut, err_cut], order }, [last_out, last_err])
    }

    /// Takes what was kept of a stream, and says how many bytes were written to it in all.
    pub fn take(&self, stream: Stream) -> (Vec<u8>, u64) {
        let mut state = self.state.lock();
        let channel = &mut state.channels[stream as usize];
        let mut kept = std::mem::take(&mut channel.kept);
        kept.append(&mut channel.held);
        (kept, channel.total)
    }

    /// Writes to a stream; nothing once it is closed.
    pub async fn write(&self, stream: Stream, data: &[u8]) -> Result<Option<usize>, Errno> {
        let mut closing = std::pin::pin!(self.closing.notified());
        closing.as_mut().enable();
        let listener = self.listener(stream);
        let room = match &listener {
            Some(listener) => {
                // Nothing is counted before there is room: a write that is interrupted here has not happened.
                let reserved = async { listener.reserve().await.map_err(|_| Errno::EPIPE) };
                if self.state.lock().closed {
                    return Ok(None);
                }
                tokio::select! {
                    biased;
                    room = reserved => Some(room?),
                    () = closing => return Ok(None),
                }
            }
            None => None,
        };
        let mut state = self.state.lock();
        if state.closed {
            return Ok(None);
        }
        let cap = self.caps[stream as usize];
        let Some(room) = room else {
            state.keep(stream, data, cap);
            return Ok(Some(data.len()));
        };
        let data = &data[..data.len().min(PIECE)];
        let channel = &mut state.channels[stream as usize];
        let (admitted, cut) = channel.admit(data, cap);
        let bytes = channel.next_piece(admitted);
        // In the order of the lock, which is that of the writes.
        room.send(Piece { stream, bytes, cut });
        Ok(Some(data.len()))
    }

    /// Waits until a write would not: its listener can take another piece, or there is none.
    pub(crate) async fn room(&self, stream: Stream) {
        let mut closing = std::pin::pin!(self.closing.notified());
        closing.as_mut().enable();
        if let Some(listener) = self.listener(stream).filter(|_| !self.state.lock().closed) {
            tokio::select! {
                _ = listener.reserve() => {}
                () = closing => {}
            }
        }
    }

    /// Returns whether a write would return immediately.
    pub(crate) fn has_room(&self, stream: Stream) -> bool {
        let is_ready = match self.listener(stream) {
            None => true,
            Some(Listener::Own(sender)) => sender.is_closed() || sender.capacity() > 0,
            Some(Listener::Shared(sender)) => sender.is_closed() || sender.capacity() > 0,
        };
        is_ready || self.state.lock().closed
    }

    fn listener(&self, stream: Stream) -> Option<Listener> {
        match &self.sinks.lock().as_ref()?[stream as usize] {
            Sink::Keep => None,
            Sink::Own(sender) => Some(Listener::Own(sender.clone())),
            Sink::Shared(sender) => Some(Listener::Shared(sender.clone())),
        }
    }

    /// Keeps what is within the cap, without waiting.
    pub(crate) fn keep(&self, stream: Stream, data: &[u8]) {
        self.state.lock().keep(stream, data, self.caps[stream as usize]);
    }

    /// What was kept and how many bytes were not.
    pub(crate) fn into_kept(self: Arc<Output>) -> (Ended, u64) {
        let missing = |channel: &Channel| channel.total - channel.passed as u64;
        let missing = self.state.lock().channels.iter().map(missing).sum();
        (self.finish(None).0, missing)
    }
}

/// Who listens to a stream.
enum Listener {
    Own(mpsc::Sender<Vec<u8>>),
    Shared(mpsc::Sender<Piece>),
}

/// Room for one piece at a listener.
enum Room<'a> {
    Own(mpsc::Permit<'a, Vec<u8>>),
    Shared(mpsc::Permit<'a, Piece>),
}

impl Listener {
    async fn reserve(&self) -> Result<Room<'_>, mpsc::error::SendError<()>> {
        Ok(match self {
            Listener::Own(sender) => Room::Own(sender.reserve().await?),
            Listener::Shared(sender) => Room::Shared(sender.reserve().await?),
        })
    }
}

impl Room<'_> {
    fn send(self, piece: Piece) {
        match self {
            Room::Own(room) if !piece.bytes.is_empty() => room.send(piece.bytes),
            Room::Shared(room) if !piece.bytes.is_empty() || piece.cut => room.send(piece),
            Room::Own(_) | Room::Shared(_) => {}
        }
    }
}

async fn send(sink: Sink, stream: Stream, bytes: Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    match sink {
        Sink::Keep => {}
        Sink::Own(sender) => drop(sender.send(bytes).await),
        Sink::Shared(sender) => drop(sender.send(Piece { stream, bytes, cut: false }).await),
    }
}

/// How many bytes of a text are whole characters: all, unless it ends inside one. Bytes that are not UTF-8 count as
/// characters of their own.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.iter().rev().take(4).position(|&b| b & 0xc0 != 0x80);
    let Some(back) = tail else { return bytes.len() };
    let start = bytes.len() - 1 - back;
    let needed = match bytes[start] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    if back + 1 < needed { start } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Part;

    #[test]
    fn only_half_a_character_is_left_out() {
        let text = "aé€😀";
        for end in 0..=text.len() {
            let whole = (0..=end).rev().find(|&i| text.is_char_boundary(i)).unwrap();
            assert_eq!(whole_characters(&text.as_bytes()[..end]), whole, "cut at {end}");
        }
        assert_eq!(whole_characters(&[0x80; 9]), 9, "bytes that are no text are left alone");
    }

    async fn streamed(cap: usize, writes: &[&[u8]]) -> (Vec<Vec<u8>>, Ended) {
        let (sender, mut receiver) = mpsc::channel(100);
        let output = Output::new([0, cap], [Sink::Keep, Sink::Own(sender)]);
        for data in writes {
            assert_eq!(output.write(Stream::Stderr, data).await, Ok(Some(data.len())));
        }
        let ended = output.end(Some("note")).await;
        let mut pieces = Vec::new();
        while let Some(piece) = receiver.recv().await {
            pieces.push(piece);
        }
        (pieces, ended)
    }

    fn to_stdout(cap: usize, listener: mpsc::Sender<Vec<u8>>) -> Arc<Output> {
        Output::new([cap; 2], [Sink::Own(listener), Sink::Keep])
    }

    #[tokio::test]
    async fn both_streams_come_in_the_order_of_their_writes_and_say_where_they_were_cut() {
        let writes: [(Stream, &[u8]); 7] = [
            (Stream::Stdout, b"a"),
            (Stream::Stderr, b"\xc3"),
            (Stream::Stdout, b"bcd"),
            (Stream::Stderr, b"\xa9x"),
            (Stream::Stdout, b"e"),
            (Stream::Stdout, b"f"),
            (Stream::Stderr, b"y"),
        ];
        let (sender, mut receiver) = mpsc::channel(100);
        let heard = Output::new([5, 100], [Sink::Shared(sender.clone()), Sink::Shared(sender)]);
        let kept = Output::new([5, 100], [Sink::Keep, Sink::Keep]);
        for (stream, data) in writes {
            assert_eq!(heard.write(stream, data).await, Ok(Some(data.len())));
            assert_eq!(kept.write(stream, data).await, Ok(Some(data.len())));
        }
        assert_eq!(heard.end(None).await.cut, [true, false]);
        let ended = kept.end(None).await;
        let mut pieces = Vec::new();
        while let Some(piece) = receiver.recv().await {
            pieces.push((piece.stream.name(), String::from_utf8(piece.bytes).unwrap(), piece.cut));
        }
        let expected = [
            ("stdout", "a", false),
            ("stdout", "bcd", false),
            ("stderr", "éx", false),
            ("stdout", "e", false),
            ("stdout", "", true),
            ("stderr", "y", false),
        ];
        assert_eq!(pieces, expected.map(|(stream, text, cut)| (stream, text.to_owned(), cut)));
        let parts: Vec<_> = ended.order.parts(&ended.stdout, &ended.stderr).collect();
        let expected = [
            Part::Bytes(Stream::Stdout, b"abcd"),
            Part::Bytes(Stream::Stderr, "éx".as_bytes()),
            Part::Bytes(Stream::Stdout, b"e"),
            Part::Cut(Stream::Stdout),
            Part::Bytes(Stream::Stderr, b"y"),
        ];
        assert_eq!(parts, expected);
    }

    #[tokio::test]
    async fn a_million_alternating_bytes_take_little_memory() {
        let output = Output::kept(1 << 20);
        for _ in 0..500_000 {
            output.write(Stream::Stdout, b"o").await.unwrap();
            output.write(Stream::Stderr, b"e").await.unwrap();
        }
        let ended = output.end(None).await;
        assert_eq!(ended.order.parts(&ended.stdout, &ended.stderr).count(), 1_000_000);
        let room = ended.stdout.capacity() + ended.stderr.capacity() + ended.order.room();
        assert!(room <= 4 << 20, "{room} bytes");
    }

    #[tokio::test]
    async fn a_character_written_in_two_halves_is_handed_on_in_one_piece() {
        let (pieces, ended) = streamed(100, &[b"a\xc3", b"\xa9\n", b"\xe2\x82"]).await;
        assert_eq!(pieces, [&b"a"[..], b"\xc3\xa9\n", b"\xe2\x82\nnote\n"], "and nothing is lost at the end");
        assert_eq!((&ended.stderr[..], ended.cut), (&b"\nnote\n"[..], [false; 2]));
    }

    #[tokio::test]
    async fn a_stream_is_cut_at_the_cap_and_nothing_comes_after_the_gap() {
        let (pieces, ended) = streamed(4, &["aéé".as_bytes(), b"b"]).await;
        assert_eq!(pieces, ["aé".as_bytes(), b"\nnote\n"]);
        assert_eq!(ended.cut, [false, true]);
    }

    #[tokio::test]
    async fn a_large_write_is_taken_in_pieces_and_none_twice() {
        let data: Vec<u8> = (0..PIECE * 3 + 5).map(|i| b'a' + (i % 23) as u8).collect();
        let (sender, mut receiver) = mpsc::channel(1);
        let output = to_stdout(usize::MAX, sender);
        let (mut written, mut got) = (0, Vec::new());
        while written < data.len() {
            written += output.write(Stream::Stdout, &data[written..]).await.unwrap().unwrap();
            // The next piece finds no room, and its writer is interrupted.
            let rest = &data[written..];
            if !rest.is_empty() {
                let interrupted = tokio::select! {
                    biased;
                    _ = output.write(Stream::Stdout, rest) => false,
                    () = std::future::ready(()) => true,
                };
                assert!(interrupted);
            }
            let piece = receiver.recv().await.unwrap();
            assert!(piece.len() <= PIECE);
            got.extend(piece);
        }
        assert!(got == data);
    }

    #[tokio::test]
    async fn a_write_that_is_interrupted_has_not_happened() {
        let (sender, mut receiver) = mpsc::channel(1);
        let output = to_stdout(100, sender);
        output.write(Stream::Stdout, b"one").await.unwrap();
        let writing = output.write(Stream::Stdout, b"two");
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), writing).await.is_err());
        assert_eq!(receiver.recv().await.as_deref(), Some(&b"one"[..]));
        output.write(Stream::Stdout, b"two").await.unwrap();
        assert_eq!(receiver.recv().await.as_deref(), Some(&b"two"[..]));
    }
}
