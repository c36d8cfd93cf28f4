//! A body as it arrives. What has arrived takes room; a body that does not go on is given up.

use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use tokio::time::Instant;

use super::answer::Refused;
use super::rpc::RpcFailure;
use crate::budget::{Budget, Room};

/// The least room that is taken at once.
const PIECE: usize = 64 << 10;
/// How much is read of one body before others go first.
const TURN: usize = 256 << 10;
/// How long a client may keep a request waiting for its body, and how many bytes earn a second more.
const PATIENCE: Duration = Duration::from_secs(30);
const BYTES_EACH_SECOND: u64 = 16 << 10;

/// Why a body could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It has more bytes than this.
    TooLong(usize),
    /// It does not go on, or so slowly that others need its room.
    TooSlow,
    /// The connection broke.
    Broken,
    /// It is not what it should be.
    Invalid(String),
}

impl Unread {
    fn message(self) -> String {
        match self {
            Unread::TooLong(most) => format!("the request has more than {most} bytes"),
            Unread::TooSlow => "the request arrives too slowly".to_owned(),
            Unread::Broken => "the request ended early".to_owned(),
            Unread::Invalid(message) => message,
        }
    }
}

impl From<Unread> for RpcFailure {
    fn from(unread: Unread) -> RpcFailure {
        let code = match unread {
            Unread::TooLong(_) | Unread::TooSlow => "resource_exhausted",
            Unread::Broken => "canceled",
            Unread::Invalid(_) => "invalid_argument",
        };
        RpcFailure::new(code, unread.message())
    }
}

impl From<Unread> for Refused {
    fn from(unread: Unread) -> Refused {
        use axum::http::StatusCode;
        let status = match unread {
            Unread::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Unread::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Unread::Broken | Unread::Invalid(_) => StatusCode::BAD_REQUEST,
        };
        Refused::new(status, unread.message())
    }
}

pub(super) struct Arriving {
    body: Body,
    budget: Budget,
    rooms: Vec<Room>,
    /// How many bytes there is room for.
    room: usize,
    buffer: Vec<u8>,
    /// Where in the buffer begins what has not been consumed.
    start: usize,
    patience: Duration,
    /// How long the client was waited for, and how much came.
    waited: Duration,
    arrived: u64,
    /// How much came since others went first.
    since: usize,
}

impl Arriving {
    pub(super) fn new(body: Body, budget: Budget) -> Arriving {
        Arriving {
            body,
            budget,
            rooms: Vec::new(),
            room: 0,
            buffer: Vec::new(),
            start: 0,
            patience: PATIENCE,
            waited: Duration::ZERO,
            arrived: 0,
            since: 0,
        }
    }

    /// What has arrived and was not consumed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
    }

    /// Takes what comes next; `false` at the end. There are at most `most` bytes at once.
    pub(super) async fn more(&mut self, most: usize) -> Result<bool, Unread> {
        if self.since >= TURN {
            self.since = 0;
            self.budget.pause().await;
        }
        let patience = self.patience + Duration::from_secs(self.arrived / BYTES_EACH_SECOND);
        let left = patience.saturating_sub(self.waited);
        let start = Instant::now();
        let next = self.next(left).await;
        self.waited += start.elapsed();
        let Some(data) = next? else { return Ok(false) };
        if self.bytes().len() + data.len() > most {
            return Err(Unread::TooLong(most));
        }
        self.arrived += data.len() as u64;
        self.since += data.len();
        self.add(&data, most).await?;
        Ok(true)
    }

    /// The next piece, unless that takes longer than there is time, or than others can wait.
    async fn next(&mut self, left: Duration) -> Result<Option<Bytes>, Unread> {
        let body = &mut self.body;
        let frame =
            std::future::poll_fn(|context| hyper::body::Body::poll_frame(Pin::new(&mut *body), context));
        let frame = tokio::select! {
            biased;
            frame = frame => frame,
            () = self.budget.wanted_back() => return Err(Unread::TooSlow),
            () = tokio::time::sleep(left) => return Err(Unread::TooSlow),
        };
        match frame {
            None => Ok(None),
            // Trailers are nothing.
            Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
            Some(Err(_)) => Err(Unread::Broken),
        }
    }

    async fn add(&mut self, data: &[u8], most: usize) -> Result<(), Unread> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let (length, capacity) = (self.buffer.len() + data.len(), self.buffer.capacity());
        if length > capacity {
            let capacity = length.max(PIECE).max((2 * capacity).min(most));
            self.take_room(capacity).await?;
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    /// Takes room for so many bytes in all. As long as there is none, nothing more is read.
    pub(super) async fn take_room(&mut self, bytes: usize) -> Result<(), Unread> {
        let Some(missing) = bytes.checked_sub(self.room).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let room = tokio::select! {
            biased;
            room = self.budget.room(missing - 1) => room,
            () = self.budget.wanted_back() => None,
        };
        self.rooms.push(room.ok_or(Unread::TooSlow)?);
        self.room = bytes;
        Ok(())
    }

    /// Gives back the room of what was taken or consumed, if that is everything.
    pub(super) fn release(&mut self) {
        if self.bytes().is_empty() {
            (self.buffer, self.start) = (Vec::new(), 0);
            self.rooms.clear();
            self.room = 0;
        }
    }

    /// Does the same as `more` for a body of many messages: between two of them the client may take its time.
    pub(super) async fn more_messages(&mut self, most: usize) -> Result<bool, Unread> {
        self.release();
        if !self.bytes().is_empty() {
            return self.more(most).await;
        }
        self.waited = Duration::ZERO;
        let Some(data) = self.next(Duration::MAX).await? else { return Ok(false) };
        self.arrived = data.len() as u64;
        self.since += data.len();
        self.add(&data, most).await?;
        Ok(true)
    }

    /// Reads all of it.
    pub(super) async fn whole(&mut self, most: usize) -> Result<Vec<u8>, Unread> {
        while self.more(most).await? {}
        Ok(self.take())
    }

    /// Returns what has arrived; its room stays taken.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.buffer.drain(..self.start);
        self.start = 0;
        std::mem::take(&mut self.buffer)
    }

    /// Returns the room that it takes.
    pub(super) fn into_rooms(self) -> Vec<Room> {
        self.rooms
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll};

    use hyper::body::Frame;

    use super::*;
    use crate::budget::Shared;

    const MIB: usize = 1 << 20;

    /// A body that has so many bytes at once and then nothing more, without an end.
    struct Stalls {
        left: usize,
        read: Arc<AtomicUsize>,
    }

    impl hyper::body::Body for Stalls {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let piece = self.left.min(64 << 10);
            if piece == 0 {
                return Poll::Pending;
            }
            self.left -= piece;
            self.read.fetch_add(piece, Ordering::SeqCst);
            Poll::Ready(Some(Ok(Frame::data(vec![b' '; piece].into()))))
        }
    }

    /// Starts to read so many bodies of a key, which all have so many bytes and no end.
    fn stalled(
        count: usize,
        each: usize,
        key: &Budget,
    ) -> (Arc<AtomicUsize>, Vec<tokio::task::JoinHandle<Unread>>) {
        let read = Arc::<AtomicUsize>::default();
        let start = |_| {
            let body = Body::new(Stalls { left: each, read: read.clone() });
            let mut arriving = Arriving::new(body, key.of_request());
            tokio::spawn(async move { arriving.whole(64 * MIB).await.expect_err("it has no end") })
        };
        let tasks = (0..count).map(start).collect();
        (read, tasks)
    }

    async fn until_nothing_is_read(read: &AtomicUsize) -> usize {
        let mut last = usize::MAX;
        while last != read.load(Ordering::SeqCst) {
            last = read.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        last
    }

    #[tokio::test]
    async fn half_bodies_of_a_key_hold_no_more_than_a_key_may() {
        let shared = Shared::new(32 << 10, 64 << 10, Duration::from_secs(1000));
        let key = Budget::for_requests_at_once(shared.clone());
        let (read, tasks) = stalled(300, 3 * MIB, &key);
        let most = until_nothing_is_read(&read).await;
        // What is read of each before its room is waited for is one piece.
        assert!((8 * MIB..=32 * MIB + 300 * (64 << 10)).contains(&most), "{most} bytes");
        let other = Budget::for_requests_at_once(shared);
        let mut arriving = Arriving::new(Body::from(vec![b'x'; 20 * MIB]), other.of_request());
        assert_eq!(arriving.whole(64 * MIB).await.map(|body| body.len()), Ok(20 * MIB));
        tasks.iter().for_each(|task| task.abort());
    }

    #[tokio::test]
    async fn stalled_bodies_give_their_memory_to_active_ones_of_the_same_key() {
        let shared = Shared::new(16 << 10, 64 << 10, Duration::from_millis(20));
        let key = Budget::for_requests_at_once(shared);
        let (read, tasks) = stalled(2, 7 * MIB, &key);
        until_nothing_is_read(&read).await;
        let mut arriving = Arriving::new(Body::from(vec![b'x'; 12 * MIB]), key.of_request());
        assert_eq!(arriving.whole(64 * MIB).await.map(|body| body.len()), Ok(12 * MIB));
        assert!(tasks.iter().any(|task| task.is_finished()), "the room came from one of them");
        tasks.iter().for_each(|task| task.abort());
    }

    #[tokio::test]
    async fn a_body_that_never_comes_is_given_up() {
        let key = Budget::for_requests_at_once(Shared::for_requests());
        let body = Body::new(Stalls { left: 100, read: Arc::default() });
        let mut arriving = Arriving::new(body, key.of_request());
        arriving.patience = Duration::from_millis(50);
        assert_eq!(arriving.whole(MIB).await, Err(Unread::TooSlow));
    }
}
