//! The streams from a command to whoever runs it. Its input is in `input.rs`.
//!
//! An [`Output`] takes the first bytes up to a cap and counts the rest; it keeps them, or hands them on to a listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use wardian_vfs::Errno;

/// Which of the three.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// Descriptor 0.
    Input,
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Error,
}

/// The most of one write that is handed on to a listener: what waits for a slow one is bounded by the pieces that may
/// wait, whatever a guest writes at once. The guest asks again for the rest.
const PIECE: usize = 256 * 1024;

/// Where a command's output goes.
pub struct Output {
    state: Mutex<State>,
    cap: usize,
    streamed: bool,
    /// Gone once the run is over, so that the listener sees the end even if a background process still has this open.
    listener: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    closed: AtomicBool,
    closing: Notify,
}

#[derive(Default)]
struct State {
    kept: Vec<u8>,
    /// The beginning of a character whose end has not come yet, held back from the listener.
    held: Vec<u8>,
    /// Bytes that found room under the cap.
    passed: usize,
    /// Bytes written in all.
    total: u64,
    ends_inside_line: bool,
}

impl State {
    fn is_cut(&self) -> bool {
        self.total > self.passed as u64
    }

    /// The part of `data` that is within the cap.
    fn admit<'d>(&mut self, data: &'d [u8], cap: usize) -> &'d [u8] {
        // What was cut stays cut: nothing after a gap.
        let room = if self.is_cut() { 0 } else { cap - self.passed };
        let admitted = &data[..room.min(data.len())];
        self.total += data.len() as u64;
        self.passed += admitted.len();
        self.ends_inside_line = admitted.last().map_or(self.ends_inside_line, |&last| last != b'\n');
        admitted
    }

    /// The whole characters of what was held and `data`, to be handed on.
    fn next_piece(&mut self, data: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(data);
        let rest = self.held.split_off(whole_characters(&self.held));
        std::mem::replace(&mut self.held, rest)
    }
}

/// What is left of an output when its run is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What was kept: all of it, its beginning, or only our own note where somebody listened.
    pub bytes: Vec<u8>,
    /// Whether more was written than the cap allows.
    pub cut: bool,
}

impl Output {
    /// Takes at most `cap` bytes and counts the rest. They are kept or, with a `listener`, handed on as they come,
    /// in whole characters; a full channel makes the guest wait.
    pub fn new(cap: usize, listener: Option<mpsc::Sender<Vec<u8>>>) -> Arc<Output> {
        Arc::new(Output {
            state: Mutex::default(),
            cap,
            streamed: listener.is_some(),
            listener: Mutex::new(listener),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
        })
    }

    /// Nothing a guest writes from now on is kept or handed on: the run is over. Who waits to write waits no more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.closing.notify_waiters();
    }

    /// Ends it: what is kept is cut at a character if it had to be cut, a `note` of ours goes after it on a line of
    /// its own, past any cap, and the listener hears that nothing more comes.
    pub async fn end(&self, note: Option<&str>) -> Ended {
        self.close();
        let (ended, last) = {
            let mut state = self.state.lock();
            let cut = state.is_cut();
            let mut bytes = std::mem::take(&mut state.kept);
            // Half a character at the cut is no use; at the very end it is what the guest wrote.
            let mut last = std::mem::take(&mut state.held);
            if cut {
                bytes.truncate(whole_characters(&bytes));
                last.clear();
            }
            if let Some(note) = note {
                let apart = if state.ends_inside_line { "\n" } else { "" };
                let line = format!("{apart}{note}\n");
                bytes.extend_from_slice(line.as_bytes());
                last.extend_from_slice(line.as_bytes());
            }
            (Ended { bytes, cut }, last)
        };
        let listener = self.listener.lock().take();
        if let Some(listener) = listener.filter(|_| !last.is_empty()) {
            // Nobody listening any more is no reason to fail: the run is over.
            let _ = listener.send(last).await;
        }
        ended
    }

    /// Takes what was kept, and says how many bytes were written in all.
    pub fn take(&self) -> (Vec<u8>, u64) {
        let mut state = self.state.lock();
        (std::mem::take(&mut state.kept), state.total)
    }

    pub(crate) async fn write(&self, data: &[u8]) -> Result<usize, Errno> {
        let mut closing = std::pin::pin!(self.closing.notified());
        closing.as_mut().enable();
        if self.closed.load(Ordering::SeqCst) {
            return Ok(data.len());
        }
        let listener = self.listener.lock().clone();
        match listener {
            Some(listener) => {
                let data = &data[..data.len().min(PIECE)];
                // Nothing is counted before there is room: a write that is interrupted here has not happened.
                let room = tokio::select! {
                    biased;
                    room = listener.reserve() => room.map_err(|_| Errno::EPIPE)?,
                    () = closing => return Ok(data.len()),
                };
                let mut state = self.state.lock();
                let admitted = state.admit(data, self.cap);
                let piece = state.next_piece(admitted);
                if !piece.is_empty() {
                    room.send(piece);
                }
                return Ok(data.len());
            }
            None if self.streamed => {}
            None => {
                let mut state = self.state.lock();
                let admitted = state.admit(data, self.cap);
                state.kept.extend_from_slice(admitted);
            }
        }
        Ok(data.len())
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
        let output = Output::new(cap, Some(sender));
        for data in writes {
            assert_eq!(output.write(data).await, Ok(data.len()));
        }
        let ended = output.end(Some("note")).await;
        let mut pieces = Vec::new();
        while let Some(piece) = receiver.recv().await {
            pieces.push(piece);
        }
        (pieces, ended)
    }

    #[tokio::test]
    async fn a_character_written_in_two_halves_is_handed_on_in_one_piece() {
        let (pieces, ended) = streamed(100, &[b"a\xc3", b"\xa9\n", b"\xe2\x82"]).await;
        assert_eq!(pieces, [&b"a"[..], b"\xc3\xa9\n", b"\xe2\x82\nnote\n"], "and nothing is lost at the end");
        assert_eq!(ended, Ended { bytes: b"\nnote\n".to_vec(), cut: false });
    }

    #[tokio::test]
    async fn a_stream_is_cut_at_the_cap_and_nothing_comes_after_the_gap() {
        let (pieces, ended) = streamed(4, &["aéé".as_bytes(), b"b"]).await;
        assert_eq!(pieces, ["aé".as_bytes(), b"\nnote\n"]);
        assert!(ended.cut);
    }

    #[tokio::test]
    async fn a_large_write_is_taken_in_pieces_and_none_twice() {
        let data: Vec<u8> = (0..PIECE * 3 + 5).map(|i| b'a' + (i % 23) as u8).collect();
        let (sender, mut receiver) = mpsc::channel(1);
        let output = Output::new(usize::MAX, Some(sender));
        let (mut written, mut got) = (0, Vec::new());
        while written < data.len() {
            written += output.write(&data[written..]).await.unwrap();
            // The next piece finds no room, and its writer is interrupted.
            let rest = &data[written..];
            if !rest.is_empty() {
                let interrupted = tokio::select! {
                    biased;
                    _ = output.write(rest) => false,
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
        let output = Output::new(100, Some(sender));
        output.write(b"one").await.unwrap();
        assert!(
            tokio::time::timeout(std::time::Duration::from_millis(1), output.write(b"two")).await.is_err()
        );
        assert_eq!(receiver.recv().await.as_deref(), Some(&b"one"[..]));
        output.write(b"two").await.unwrap();
        assert_eq!(receiver.recv().await.as_deref(), Some(&b"two"[..]));
    }
}
