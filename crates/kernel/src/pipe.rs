//! Pipes: 64 KiB of bytes between writers and readers.
//!
//! A pipe starts with a buffer of 4 KiB that grows as it fills up, and its sandbox is charged for that until it is
//! closed. If the sandbox has no memory left, the buffer stays as small as it is: writers wait earlier, and nothing is
//! lost.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::Notify;
use wardian_vfs::{Errno, Result};

use crate::fd::OpenFile;
use crate::limits::{Charge, Meter};

/// How much a pipe holds.
pub(crate) const CAPACITY: usize = 64 * 1024;
/// Writes up to this size are never interleaved with another writer's.
pub(crate) const ATOMIC: usize = 4096;
/// The possible buffer sizes.
const SIZES: [usize; 3] = [ATOMIC, 16 * 1024, CAPACITY];
/// What a pipe costs in addition to its bytes.
const OVERHEAD: usize = 512;

/// The bytes in flight and how many hold each end.
pub(crate) struct Pipe {
    /// What `fstat` shows for its inode number.
    id: u64,
    /// The file that names it, if it is a FIFO: held open as long as the pipe is.
    file: OnceLock<Arc<OpenFile>>,
    /// Whether somebody opened it for writing by the name of a descriptor, as `>(…)` is.
    substitution: AtomicBool,
    state: Mutex<State>,
    changed_for_readers: Notify,
    changed_for_writers: Notify,
}

struct State {
    bytes: VecDeque<u8>,
    /// The current buffer size, which is charged.
    room: usize,
    /// It should have grown, but the sandbox has no memory for that.
    starved: bool,
    charge: Charge,
    readers: usize,
    writers: usize,
    /// How often each end was opened, ever: a process that waits for the other end of a FIFO must not miss one that was
    /// opened and closed.
    reader_opens: u64,
    writer_opens: u64,
    /// Bytes written and read, ever, and how many had been read when somebody last asked for more.
    written: u64,
    read: u64,
    asked_after: u64,
}

/// What can be done on one end right now, for `poll_oneoff`.
pub(crate) struct Readiness {
    /// Bytes that can be read or written without waiting.
    pub bytes: usize,
    /// The other end is gone.
    pub hangup: bool,
}

impl State {
    /// Returns the bytes that could be written immediately, if nothing else prevents it.
    fn left(&self) -> usize {
        let most = if self.starved { self.room } else { CAPACITY };
        most.saturating_sub(self.bytes.len())
    }

    /// Makes space for `more` bytes or as many as possible; returns how many those are.
    fn make_room(&mut self, more: usize) -> usize {
        let wanted = (self.bytes.len() + more).min(CAPACITY);
        if wanted > self.room || self.bytes.capacity() == 0 {
            let sizes = SIZES.into_iter().rev().filter(|size| *size > self.room);
            let enough = SIZES.into_iter().find(|size| *size >= wanted).unwrap_or(CAPACITY);
            let granted =
                sizes.filter(|size| *size <= enough).find(|size| self.charge.grow_to(OVERHEAD + size));
            self.room = granted.unwrap_or(self.room);
            self.starved = self.room < wanted;
            self.bytes.reserve_exact(self.room.saturating_sub(self.bytes.len()));
        }
        self.room.min(wanted).saturating_sub(self.bytes.len())
    }
}

/// Creates a pipe and its two ends; returns nothing if the sandbox has no memory for it.
pub(crate) fn pipe(meter: &Arc<Meter>) -> Option<(PipeReader, PipeWriter)> {
    let pipe = Pipe::unopened(meter)?;
    Some((pipe.open_reader(), pipe.open_writer()))
}

/// Creates a pipe whose other end was closed before it was used: it holds nothing, and is not charged.
pub(crate) fn ended_pipe(meter: &Arc<Meter>) -> (PipeReader, PipeWriter) {
    let pipe = Pipe::with(Charge::nothing(meter), 0);
    (pipe.open_reader(), pipe.open_writer())
}

impl Pipe {
    /// Creates a pipe without ends: a FIFO before anyone opens it.
    pub(crate) fn unopened(meter: &Arc<Meter>) -> Option<Arc<Pipe>> {
        Some(Pipe::with(meter.hold(OVERHEAD + ATOMIC)?, ATOMIC))
    }

    fn with(charge: Charge, room: usize) -> Arc<Pipe> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let state = State {
            bytes: VecDeque::new(),
            room,
            starved: false,
            charge,
            readers: 0,
            writers: 0,
            reader_opens: 0,
            writer_opens: 0,
            written: 0,
            read: 0,
            asked_after: 0,
        };
        Arc::new(Pipe {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            file: OnceLock::new(),
            substitution: AtomicBool::new(false),
            state: Mutex::new(state),
            changed_for_readers: Notify::new(),
            changed_for_writers: Notify::new(),
        })
    }

    pub(crate) fn open_reader(self: &Arc<Pipe>) -> PipeReader {
        let mut state = self.state.lock();
        state.readers += 1;
        state.reader_opens += 1;
        drop(state);
        self.changed_for_writers.notify_waiters();
        PipeReader { pipe: self.clone(), nonblocking: AtomicBool::new(false) }
    }

    pub(crate) fn open_writer(self: &Arc<Pipe>) -> PipeWriter {
        let mut state = self.state.lock();
        state.writers += 1;
        state.writer_opens += 1;
        drop(state);
        self.changed_for_readers.notify_waiters();
        PipeWriter { pipe: self.clone(), nonblocking: AtomicBool::new(false) }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The file in the tree that names it.
    pub(crate) fn file(&self) -> Option<&Arc<OpenFile>> {
        self.file.get()
    }

    /// Sets the file that names it; the first call counts, the others say the same.
    pub(crate) fn set_file(&self, file: Arc<OpenFile>) {
        let _ = self.file.set(file);
    }

    /// Returns whether it is smaller than it should be, for lack of memory.
    pub(crate) fn is_starved(&self) -> bool {
        self.state.lock().starved
    }

    pub(crate) fn has_readers(&self) -> bool {
        self.state.lock().readers > 0
    }

    /// Says that it is that of `>(…)`.
    pub(crate) fn set_substitution(&self) {
        self.substitution.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_substitution(&self) -> bool {
        self.substitution.load(Ordering::Relaxed)
    }

    /// How many bytes were ever written to it.
    pub(crate) fn written(&self) -> u64 {
        self.state.lock().written
    }

    /// Whether the first `mark` bytes have been dealt with: their reader came back for more or, where no more can
    /// come, has closed it.
    pub(crate) fn is_drained(&self, mark: u64) -> bool {
        let state = self.state.lock();
        state.readers == 0 || (state.writers > 0 && state.asked_after >= mark)
    }

    /// Waits until someone opens it for writing, unless someone has.
    pub(crate) async fn writer_opened(&self) -> Result<()> {
        let (there, before) = {
            let state = self.state.lock();
            (state.writers > 0, state.writer_opens)
        };
        if !there {
            wait_until(&self.changed_for_readers, || self.state.lock().writer_opens != before).await;
        }
        Ok(())
    }

    /// Waits until someone opens it for reading, unless someone has.
    pub(crate) async fn reader_opened(&self) -> Result<()> {
        let (there, before) = {
            let state = self.state.lock();
            (state.readers > 0, state.reader_opens)
        };
        if !there {
            wait_until(&self.changed_for_writers, || self.state.lock().reader_opens != before).await;
        }
        Ok(())
    }
}

/// Waits for changes until one made `happened` true.
async fn wait_until(changed: &Notify, happened: impl Fn() -> bool) {
    loop {
        let mut next = std::pin::pin!(changed.notified());
        next.as_mut().enable();
        if happened() {
            return;
        }
        next.await;
    }
}

/// The read end.
pub(crate) struct PipeReader {
    pipe: Arc<Pipe>,
    nonblocking: AtomicBool,
}

/// The write end.
pub(crate) struct PipeWriter {
    pipe: Arc<Pipe>,
    nonblocking: AtomicBool,
}

impl PipeReader {
    pub(crate) fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }

    /// Whether a read returns EAGAIN instead of waiting.
    pub(crate) fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nonblocking(&self, value: bool) {
        self.nonblocking.store(value, Ordering::Relaxed);
    }

    /// Reads what is there, or waits for it; returns 0 at the end.
    pub(crate) async fn read(&self, buf: &mut [u8]) -> Result<usize> {
        loop {
            if let Some(n) = self.try_read(buf) {
                return Ok(n);
            }
            let mut changed = std::pin::pin!(self.pipe.changed_for_readers.notified());
            changed.as_mut().enable();
            if let Some(n) = self.try_read(buf) {
                return Ok(n);
            }
            changed.await;
        }
    }

    /// `None` when there is nothing to read yet.
    pub(crate) fn try_read(&self, buf: &mut [u8]) -> Option<usize> {
        let mut state = self.pipe.state.lock();
        state.asked_after = state.read;
        if state.bytes.is_empty() && state.writers > 0 && !buf.is_empty() {
            return None;
        }
        let was_full = state.left() < ATOMIC;
        let n = take_front(&mut state.bytes, buf);
        state.read += n as u64;
        drop(state);
        // A writer waits only on a pipe too full for it, so the wake-up can be spared otherwise.
        if was_full && n > 0 {
            self.pipe.changed_for_writers.notify_waiters();
        }
        Some(n)
    }

    pub(crate) fn readiness(&self) -> Readiness {
        let mut state = self.pipe.state.lock();
        state.asked_after = state.read;
        Readiness { bytes: state.bytes.len(), hangup: state.writers == 0 }
    }

    pub(crate) fn changed(&self) -> &Notify {
        &self.pipe.changed_for_readers
    }
}

fn take_front(bytes: &mut VecDeque<u8>, buf: &mut [u8]) -> usize {
    let n = buf.len().min(bytes.len());
    let (front, back) = bytes.as_slices();
    let from_front = n.min(front.len());
    buf[..from_front].copy_from_slice(&front[..from_front]);
    buf[from_front..n].copy_from_slice(&back[..n - from_front]);
    bytes.drain(..n);
    n
}

impl PipeWriter {
    pub(crate) fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }

    /// Whether a write returns EAGAIN instead of waiting.
    pub(crate) fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nonblocking(&self, value: bool) {
        self.nonblocking.store(value, Ordering::Relaxed);
    }

    /// Writes all of `data` from `written` on, waiting for space; returns EPIPE if no one can read it any more. Updates
    /// `written` as it goes, so that it is right even if the wait is interrupted.
    pub(crate) async fn write(&self, data: &[u8], written: &mut usize) -> Result<()> {
        loop {
            *written += self.try_write(&data[*written..])?;
            if *written == data.len() {
                return Ok(());
            }
            let mut changed = std::pin::pin!(self.pipe.changed_for_writers.notified());
            changed.as_mut().enable();
            let more = self.try_write(&data[*written..])?;
            *written += more;
            if *written == data.len() {
                return Ok(());
            }
            if more == 0 {
                changed.await;
            }
        }
    }

    /// Writes as much as fits, perhaps nothing.
    pub(crate) fn try_write(&self, data: &[u8]) -> Result<usize> {
        let mut state = self.pipe.state.lock();
        if state.readers == 0 {
            return Err(Errno::EPIPE);
        }
        let room = state.make_room(data.len());
        let n = if data.len() <= ATOMIC && room < data.len() { 0 } else { room.min(data.len()) };
        let was_empty = state.bytes.is_empty();
        state.bytes.extend(&data[..n]);
        state.written += n as u64;
        drop(state);
        if was_empty && n > 0 {
            self.pipe.changed_for_readers.notify_waiters();
        }
        Ok(n)
    }

    pub(crate) fn readiness(&self) -> Readiness {
        let state = self.pipe.state.lock();
        let room = state.left();
        Readiness { bytes: if room >= ATOMIC { room } else { 0 }, hangup: state.readers == 0 }
    }

    pub(crate) fn changed(&self) -> &Notify {
        &self.pipe.changed_for_writers
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        let mut state = self.pipe.state.lock();
        state.readers -= 1;
        if state.readers == 0 {
            if state.writers == 0 {
                state.bytes = VecDeque::new();
            }
            drop(state);
            self.pipe.changed_for_writers.notify_waiters();
        }
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        let mut state = self.pipe.state.lock();
        state.writers -= 1;
        if state.writers == 0 {
            if state.readers == 0 {
                state.bytes = VecDeque::new();
            }
            drop(state);
            self.pipe.changed_for_readers.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> (PipeReader, PipeWriter) {
        super::pipe(&Arc::new(Meter::new(1 << 20))).expect("there is memory for one")
    }

    #[test]
    fn a_pipe_is_charged_for_its_buffer_until_it_is_closed() {
        let meter = Arc::new(Meter::new(1 << 20));
        let (reader, writer) = super::pipe(&meter).expect("there is memory");
        assert_eq!(meter.used(), (OVERHEAD + ATOMIC) as u64);
        assert_eq!(writer.try_write(&[1; CAPACITY + 1]), Ok(CAPACITY));
        assert_eq!(meter.used(), (OVERHEAD + CAPACITY) as u64);
        drop(reader);
        drop(writer);
        assert_eq!(meter.used(), 0);
    }

    #[test]
    fn a_pipe_without_memory_is_smaller_and_loses_nothing() {
        let meter = Arc::new(Meter::new((OVERHEAD + SIZES[1]) as u64));
        let (reader, writer) = super::pipe(&meter).expect("there is memory");
        assert!(super::pipe(&meter).is_some(), "for a second small one");
        assert_eq!(writer.try_write(&[1; CAPACITY]), Ok(SIZES[1]));
        assert!(writer.pipe.is_starved() && super::pipe(&meter).is_none());
        assert_eq!(writer.try_write(&[1; 1]), Ok(0));
        assert_eq!(writer.readiness().bytes, 0);
        let mut buf = [0; CAPACITY];
        assert_eq!(reader.try_read(&mut buf[..ATOMIC]), Some(ATOMIC));
        assert_eq!(writer.readiness().bytes, ATOMIC);
        assert_eq!(writer.try_write(&[2; ATOMIC]), Ok(ATOMIC));
        assert_eq!(reader.try_read(&mut buf), Some(SIZES[1]));
    }

    #[test]
    fn a_small_write_is_never_torn() {
        let (_reader, writer) = pipe();
        assert_eq!(writer.try_write(&[1; CAPACITY - 10]), Ok(CAPACITY - 10));
        assert_eq!(writer.try_write(&[2; 11]), Ok(0));
        assert_eq!(writer.try_write(&[2; ATOMIC + 1]), Ok(10));
    }

    #[test]
    fn the_last_reader_leaving_breaks_the_pipe() {
        let (reader, writer) = pipe();
        assert_eq!(writer.try_write(b"x"), Ok(1));
        drop(reader);
        assert_eq!(writer.try_write(b"x"), Err(Errno::EPIPE));
    }

    #[test]
    fn the_last_writer_leaving_ends_the_stream_after_its_bytes() {
        let (reader, writer) = pipe();
        assert_eq!(writer.try_write(b"ab"), Ok(2));
        let mut buf = [0; 8];
        drop(writer);
        assert_eq!(reader.try_read(&mut buf), Some(2));
        assert_eq!(reader.try_read(&mut buf), Some(0));
    }

    #[test]
    fn a_pipe_is_drained_when_its_reader_comes_back_for_more_or_is_gone() {
        let (reader, writer) = pipe();
        let mut buf = [0; 8];
        assert_eq!(writer.try_write(b"ab"), Ok(2));
        let mark = reader.pipe.written();
        assert!(!reader.pipe.is_drained(mark), "nobody has read it");
        assert_eq!(reader.try_read(&mut buf), Some(2));
        assert!(!reader.pipe.is_drained(mark), "its reader has it still");
        assert_eq!(writer.try_write(b"c"), Ok(1));
        assert_eq!(reader.try_read(&mut buf), Some(1));
        assert!(reader.pipe.is_drained(mark), "what came later does not count");
        drop(writer);
        assert_eq!(reader.try_read(&mut buf), Some(0));
        let pipe = reader.pipe.clone();
        assert!(!pipe.is_drained(mark), "at the end it may have something to say yet");
        drop(reader);
        assert!(pipe.is_drained(mark));
    }

    #[tokio::test]
    async fn everything_written_is_read_in_order() {
        let (reader, writer) = pipe();
        let sent: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
        let expected = sent.clone();
        let task = tokio::spawn(async move {
            for chunk in sent.chunks(7_001) {
                writer.write(chunk, &mut 0).await.unwrap();
            }
        });
        let mut got = Vec::new();
        let mut buf = [0; 3_333];
        loop {
            let n = reader.read(&mut buf).await.unwrap();
            if n == 0 {
                break;
            }
            got.extend_from_slice(&buf[..n]);
        }
        task.await.unwrap();
        assert!(got == expected);
    }
}
