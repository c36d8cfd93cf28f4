//! A command's input: a block of bytes, or a source that is queried when something reads.
//!
//! ```text
//!   guest: read, poll ──► Input: bytes that have come ◄── a task ◄── Source::read
//! ```
//!
//! A separate task queries the source, and the input owns what it returns. A reader that is killed or interrupted loses
//! nothing: the next one gets it. The source is queried only while no bytes are available, for as much as the reader
//! wants, and for one byte if something only asks whether there is input (`poll`). So a command takes from a host's
//! stream what it reads, plus at most what one pending read was waiting for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use wardian_vfs::Errno;

use crate::pipe::Readiness;

/// The most that a source is asked for at once.
const MOST: usize = 64 * 1024;

/// The future that a source returns.
pub type SourceRead<'a> = Pin<Box<dyn Future<Output = std::io::Result<Vec<u8>>> + Send + 'a>>;

/// Something that provides bytes on request: a terminal, a file, a network peer.
pub trait Source: Send + Sync {
    /// Returns at most `max` bytes; none at the end. The future runs to its end even if no one waits for it any more,
    /// unless the [`Input`] itself is dropped.
    fn read(&self, max: usize) -> SourceRead<'_>;

    /// Returns whether a read would return immediately; `None` if only reading can tell.
    fn is_ready(&self) -> Option<bool> {
        None
    }
}

/// Where a command's input comes from.
pub struct Input {
    shared: Arc<Shared>,
    source: Option<Arc<dyn Source>>,
    asking: Mutex<Option<AbortHandle>>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").finish_non_exhaustive()
    }
}

/// What the querying task and the readers share.
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

enum State {
    /// Nothing is available, and the source was not queried.
    Idle,
    /// The source was queried.
    Asked,
    /// What arrived and was not read yet, never empty.
    Bytes { bytes: Vec<u8>, taken: usize },
    /// The source had no more. It may have more later, like a terminal after Ctrl-D.
    End,
    /// It could not be read.
    Failed,
}

impl Input {
    /// Returns an empty input.
    pub fn empty() -> Arc<Input> {
        Input::bytes(Vec::new())
    }

    /// Returns an input of these bytes.
    pub fn bytes(bytes: Vec<u8>) -> Arc<Input> {
        Input::new(came(bytes), None)
    }

    /// Returns an input from `source`, which is queried only when the guest reads.
    pub fn source(source: impl Source + 'static) -> Arc<Input> {
        Input::new(State::Idle, Some(Arc::new(source)))
    }

    fn new(state: State, source: Option<Arc<dyn Source>>) -> Arc<Input> {
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() });
        Arc::new(Input { shared, source, asking: Mutex::new(None) })
    }

    /// Reads what there is, or waits for it; returns 0 at the end. Cancellation-safe.
    pub(crate) async fn read(&self, buf: &mut [u8]) -> Result<usize, Errno> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            if let Some(read) = self.try_read(buf) {
                return read;
            }
            changed.await;
        }
    }

    /// Returns `None` if there is nothing yet; then the source is being queried.
    fn try_read(&self, buf: &mut [u8]) -> Option<Result<usize, Errno>> {
        let mut state = self.shared.state.lock();
        match &mut *state {
            State::Asked => None,
            State::Idle => {
                *state = self.ask(buf.len());
                None
            }
            State::Bytes { bytes, taken } => {
                let n = buf.len().min(bytes.len() - *taken);
                buf[..n].copy_from_slice(&bytes[*taken..*taken + n]);
                *taken += n;
                if *taken == bytes.len() {
                    *state = self.after_news();
                }
                Some(Ok(n))
            }
            State::End => {
                *state = self.after_news();
                Some(Ok(0))
            }
            State::Failed => {
                *state = self.after_news();
                Some(Err(Errno::EIO))
            }
        }
    }

    fn after_news(&self) -> State {
        if self.source.is_some() { State::Idle } else { State::End }
    }

    /// Queries the source in a separate task.
    fn ask(&self, max: usize) -> State {
        let Some(source) = self.source.clone() else { return State::End };
        let answer = Answer { shared: self.shared.clone(), given: false };
        let task = tokio::spawn(async move {
            let read = source.read(max.min(MOST)).await;
            answer.give(read.map_or(State::Failed, came));
        });
        *self.asking.lock() = Some(task.abort_handle());
        State::Asked
    }

    /// Returns what a read would find, for `poll_oneoff`. If there is no other way to know, the source is asked for a
    /// byte.
    pub(crate) fn readiness(&self) -> Readiness {
        let mut state = self.shared.state.lock();
        match &*state {
            State::Bytes { bytes, taken } => Readiness { bytes: bytes.len() - taken, hangup: false },
            State::End | State::Failed => Readiness { bytes: 0, hangup: true },
            State::Asked => Readiness { bytes: 0, hangup: false },
            State::Idle if self.source.as_ref().is_some_and(|source| source.is_ready() == Some(true)) => {
                Readiness { bytes: 1, hangup: false }
            }
            State::Idle => {
                *state = self.ask(1);
                Readiness { bytes: 0, hangup: false }
            }
        }
    }

    /// Something came, or the end did.
    pub(crate) fn changed(&self) -> &Notify {
        &self.shared.changed
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // Nobody is left to get what it would bring.
        if let Some(asking) = self.asking.get_mut().take() {
            asking.abort();
        }
    }
}

fn came(bytes: Vec<u8>) -> State {
    if bytes.is_empty() { State::End } else { State::Bytes { bytes, taken: 0 } }
}

/// What a source will return. If it panics, or is dropped with its runtime, it has failed: no one waits forever.
struct Answer {
    shared: Arc<Shared>,
    given: bool,
}

impl Answer {
    fn give(mut self, news: State) {
        self.put(news);
    }

    fn put(&mut self, news: State) {
        self.given = true;
        *self.shared.state.lock() = news;
        self.shared.changed.notify_waiters();
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.given {
            self.put(State::Failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    /// What is sent, piece by piece, never more than was asked for; and what it was asked for.
    struct Sent {
        pieces: tokio::sync::Mutex<mpsc::UnboundedReceiver<std::io::Result<Vec<u8>>>>,
        asked: mpsc::UnboundedSender<usize>,
    }

    impl Source for Sent {
        fn read(&self, max: usize) -> SourceRead<'_> {
            Box::pin(async move {
                self.asked.send(max).unwrap();
                self.pieces.lock().await.recv().await.unwrap_or(Ok(Vec::new()))
            })
        }
    }

    struct Rig {
        input: Arc<Input>,
        send: mpsc::UnboundedSender<std::io::Result<Vec<u8>>>,
        asked: mpsc::UnboundedReceiver<usize>,
    }

    fn rig() -> Rig {
        let (send, pieces) = mpsc::unbounded_channel();
        let (asking, asked) = mpsc::unbounded_channel();
        let input = Input::source(Sent { pieces: tokio::sync::Mutex::new(pieces), asked: asking });
        Rig { input, send, asked }
    }

    async fn read(input: &Input, max: usize) -> Result<Vec<u8>, Errno> {
        let mut buf = vec![0; max];
        let n = input.read(&mut buf).await?;
        buf.truncate(n);
        Ok(buf)
    }

    /// Begins to read, lets the source be asked, and gives up.
    async fn give_up_reading(rig: &mut Rig, max: usize) {
        let mut buf = vec![0; max];
        tokio::select! {
            biased;
            _ = rig.input.read(&mut buf) => panic!("nothing was sent"),
            asked = rig.asked.recv() => assert_eq!(asked, Some(max)),
        }
    }

    #[tokio::test]
    async fn what_a_reader_that_is_gone_waited_for_is_there_for_the_next() {
        let mut rig = rig();
        give_up_reading(&mut rig, 100).await;
        rig.send.send(Ok(b"two".to_vec())).unwrap();
        assert_eq!(read(&rig.input, 2).await.unwrap(), b"tw");
        assert_eq!(read(&rig.input, 100).await.unwrap(), b"o");
        assert!(rig.asked.try_recv().is_err(), "asked again though something was there");
    }

    #[tokio::test]
    async fn the_end_and_a_failure_wait_for_the_next_reader_too() {
        let mut rig = rig();
        give_up_reading(&mut rig, 100).await;
        rig.send.send(Err(std::io::Error::other("gone"))).unwrap();
        assert_eq!(read(&rig.input, 100).await, Err(Errno::EIO));
        rig.asked.try_recv().unwrap_err();
        give_up_reading(&mut rig, 7).await;
        rig.send.send(Ok(Vec::new())).unwrap();
        assert_eq!(read(&rig.input, 100).await.unwrap(), b"");
        rig.send.send(Ok(b"after Ctrl-D".to_vec())).unwrap();
        assert_eq!(read(&rig.input, 100).await.unwrap(), b"after Ctrl-D");
    }

    #[tokio::test]
    async fn poll_tells_the_truth_and_takes_one_byte() {
        let mut rig = rig();
        let found = |input: &Input| (input.readiness().bytes, input.readiness().hangup);
        assert_eq!(found(&rig.input), (0, false));
        assert_eq!(rig.asked.recv().await, Some(1));
        let mut changed = std::pin::pin!(rig.input.changed().notified());
        changed.as_mut().enable();
        assert_eq!(found(&rig.input), (0, false));
        rig.send.send(Ok(b"x".to_vec())).unwrap();
        changed.await;
        assert_eq!(found(&rig.input), (1, false));
        assert_eq!(read(&rig.input, 100).await.unwrap(), b"x");
        assert!(rig.asked.try_recv().is_err());
        rig.send.send(Ok(Vec::new())).unwrap();
        while found(&rig.input) != (0, true) {
            tokio::task::yield_now().await;
        }
        let bytes = Input::bytes(b"ab".to_vec());
        assert_eq!(found(&bytes), (2, false));
        assert_eq!(read(&bytes, 9).await.unwrap(), b"ab");
        assert_eq!((found(&bytes), read(&bytes, 9).await.unwrap()), ((0, true), Vec::new()));
    }

    #[tokio::test]
    async fn nothing_asks_any_more_once_the_input_is_gone() {
        let mut rig = rig();
        give_up_reading(&mut rig, 100).await;
        drop(rig.input);
        assert_eq!(rig.asked.recv().await, None, "the source is still held");
    }

    struct Panics;

    impl Source for Panics {
        fn read(&self, _: usize) -> SourceRead<'_> {
            Box::pin(async { panic!("a source of the host's") })
        }
    }

    #[tokio::test]
    async fn a_source_that_panics_is_an_error_for_the_reader() {
        assert_eq!(read(&Input::source(Panics), 1).await, Err(Errno::EIO));
    }
}
