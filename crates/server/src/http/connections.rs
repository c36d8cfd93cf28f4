//! Connections: accepted immediately, given limited time for a request, and closed at shutdown.
//!
//! Accepting never waits. A connection that has sent nothing, or half a request, holds a seat only until another
//! connection needs it: the one that has been silent longest goes first. A connection with a running tool keeps its
//! seat; the pool and its queue limit how many of those there can be.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

use super::ports::HEAD_BYTES;
use crate::admission::clients;

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// How long pending responses may take once shutdown begins.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long a client may be silent before it is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(60);
/// How long to wait if a connection cannot be accepted and none can be closed for it.
const PAUSE: Duration = Duration::from_millis(20);

/// Serves `router` until `end`, and then finishes the requests received before.
pub(super) async fn serve(listener: TcpListener, router: Router, end: impl Future<Output = ()>) {
    let mut end = pin!(end);
    let seats = Arc::new(Seats::new(clients()));
    let stop = watch::Sender::new(false);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    loop {
        let accepted = tokio::select! {
            () = &mut end => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely: the client that has been silent for longest is closed.
                tracing::warn!(%error, "cannot accept a client");
                seats.close_oldest();
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // Streams are many short pieces: each is sent at once, and not when the one before was acknowledged.
        let _ = stream.set_nodelay(true);
        notice_death(&stream);
        let seat = Arc::new(seats.sit());
        let service = TowerToHyperService::new(router.clone().layer(Extension(seat.clone())));
        let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let mut stopping = stop.subscribe();
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            tokio::select! {
                biased;
                () = seat.closed() => tracing::debug!("a silent connection was closed for another"),
                served = &mut connection => note(served),
                () = async { drop(stopping.wait_for(|stopping| *stopping).await) } => {
                    connection.as_mut().graceful_shutdown();
                    note(connection.await);
                }
            }
        });
    }
    drop(listener);
    // A client that is still in the middle of a request by then is abandoned.
    stop.send_replace(true);
    let _ = tokio::time::timeout(FAREWELL, stop.closed()).await;
}

/// Has the system ask a client that is silent whether it is still there: one whose machine is gone would otherwise keep its
/// WebSocket, and its sandboxes, for ever.
fn notice_death(stream: &TcpStream) {
    let keepalive = TcpKeepalive::new().with_time(SILENCE).with_interval(SILENCE / 4).with_retries(4);
    if let Err(error) = SockRef::from(stream).set_tcp_keepalive(&keepalive) {
        tracing::debug!(%error, "a dead connection will not be noticed");
    }
}

fn note(served: hyper::Result<()>) {
    if let Err(error) = served {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Seats for connections that wait for something.
struct Seats {
    most: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    /// Ordered by when they were last active.
    seats: BTreeMap<u64, Arc<Closing>>,
}

#[derive(Default)]
struct Closing {
    asked: AtomicBool,
    told: Notify,
}

impl Seats {
    fn new(most: usize) -> Seats {
        Seats { most, waiting: Mutex::default() }
    }

    /// Returns a seat for a new connection. If all are taken, the connection that has been silent longest is closed.
    fn sit(self: &Arc<Seats>) -> Seat {
        while self.waiting.lock().seats.len() >= self.most && self.close_oldest() {}
        let closing = Arc::<Closing>::default();
        let number = self.put(closing.clone());
        Seat { seats: self.clone(), number: Mutex::new(Some(number)), closing }
    }

    fn close_oldest(&self) -> bool {
        let oldest = self.waiting.lock().seats.pop_first();
        if let Some((_, closing)) = &oldest {
            closing.asked.store(true, Ordering::SeqCst);
            closing.told.notify_one();
        }
        oldest.is_some()
    }

    fn put(&self, closing: Arc<Closing>) -> u64 {
        let mut waiting = self.waiting.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.seats.insert(number, closing);
        number
    }

    fn take(&self, number: u64) -> bool {
        self.waiting.lock().seats.remove(&number).is_some()
    }
}

/// What a connection holds.
pub(super) struct Seat {
    seats: Arc<Seats>,
    /// Its number among those that wait; none while a tool runs.
    number: Mutex<Option<u64>>,
    closing: Arc<Closing>,
}

impl Seat {
    /// Notes that it has sent a request, so it was active just now.
    pub(super) fn touch(&self) {
        drop(self.keep());
    }

    /// Keeps it from being closed until this is dropped. Returns nothing if it is already being closed.
    pub(super) fn keep(&self) -> Option<Kept<'_>> {
        let number = self.number.lock().take()?;
        self.seats.take(number).then_some(Kept(self))
    }

    /// Does the same for as long as the connection passes something on.
    pub(super) fn keep_owned(self: Arc<Seat>) -> Option<KeptSeat> {
        let number = self.number.lock().take()?;
        self.seats.take(number).then(|| KeptSeat(self))
    }

    fn give_back(&self) {
        *self.number.lock() = Some(self.seats.put(self.closing.clone()));
    }

    async fn closed(&self) {
        self.closing.told.notified().await;
    }
}

/// A connection that must not be closed.
pub(super) struct Kept<'a>(&'a Seat);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

/// The same, of its own.
pub(super) struct KeptSeat(Arc<Seat>);

impl Drop for KeptSeat {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(number) = self.number.get_mut().take() {
            self.seats.take(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_closed(seat: &Seat) -> bool {
        seat.closing.asked.load(Ordering::SeqCst)
    }

    #[test]
    fn the_longest_silent_client_is_closed_first_and_busy_ones_stay() {
        let seats = Arc::new(Seats::new(3));
        let (a, b, c) = (seats.sit(), seats.sit(), seats.sit());
        let working = a.keep().unwrap();
        let d = seats.sit();
        b.touch();
        let e = seats.sit();
        assert_eq!([&a, &b, &c, &d, &e].map(is_closed), [false, false, true, false, false]);
        drop(working);
        // d, b, e, a: the newest seat was only just given back.
        let f = seats.sit();
        assert_eq!([&a, &b, &d, &e, &f].map(is_closed), [false, true, true, false, false]);
        assert!(b.keep().is_none(), "too late");
        drop((a, b, c, d, e));
        assert_eq!(seats.waiting.lock().seats.len(), 1);
    }
}
