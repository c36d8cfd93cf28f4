//! What the requests of one key may take of the server: memory while they arrive and while they wait, and its time.
//!
//! The room is that of the socket's lines (`budget`): a key counts as one client, however many requests it makes at once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::arriving::{Arriving, Unread};
use crate::budget::{Budget, LARGE, Room};
use crate::rpc;
use crate::session::{Shared, WAITING_KIB};
use crate::turns::{Held, Turns};

/// How many values a message may have, names and nested ones included.
const VALUES: usize = 16 << 10;

pub(crate) struct Allowance {
    budget: Budget,
    turns: Turns,
    /// Turns for work that takes long for its size.
    pub(crate) heavy: Turns,
    /// Memory for answers.
    pub(crate) answers: Budget,
    /// Requests in progress.
    places: Arc<Semaphore>,
    /// What they keep while they wait for a guest, in KiB: the key's, and that of all clients.
    kept: Arc<Semaphore>,
    all_kept: Arc<Semaphore>,
}

/// Room for what is kept while a guest is waited for.
pub(crate) struct Keeping {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Allowance {
    pub(super) fn new(shared: &Shared) -> Allowance {
        // Others can always make requests, too.
        let places = (crate::admission::clients() * 3 / 4).max(1);
        Allowance {
            budget: Budget::for_requests_at_once(shared.requests.clone()),
            turns: shared.aside.of_client(),
            heavy: shared.heavy.of_client(),
            answers: Budget::for_requests_at_once(shared.answers.clone()),
            places: Arc::new(Semaphore::new(places)),
            kept: Arc::new(Semaphore::new(WAITING_KIB / 2)),
            all_kept: shared.waiting_kib.clone(),
        }
    }

    /// Returns a place for one more request.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// Returns room for so many bytes that stay while a guest is waited for, if there is some.
    pub(crate) fn keep(&self, bytes: usize) -> Option<Keeping> {
        let kib = u32::try_from(bytes / 1024 + 1).ok()?;
        let _own = self.kept.clone().try_acquire_many_owned(kib).ok()?;
        Some(Keeping { _own, _all: self.all_kept.clone().try_acquire_many_owned(kib).ok()? })
    }

    /// Returns room for an answer of so many bytes, if there is some.
    pub(super) fn room_to_answer(&self, bytes: usize) -> Option<Room> {
        self.answers.of_request().try_room(bytes)
    }

    /// Waits for a turn to make something long.
    pub(super) async fn turn(&self) -> Result<Held, Unread> {
        self.turns.take().await.map_err(|error| Unread::Invalid(error.message))
    }

    /// Returns its turns: those for heavy work, and those for work on lines.
    pub(crate) fn turns(&self) -> [Turns; 2] {
        [self.heavy.clone(), self.turns.clone()]
    }

    /// Begins to read a body.
    pub(super) fn arriving(&self, body: axum::body::Body) -> Arriving {
        Arriving::new(body, self.budget.of_request())
    }

    /// Does work that takes as long as it has bytes: if those are many, where it holds up nobody.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unread> {
        if bytes <= LARGE {
            return Ok(work());
        }
        self.turns.run(work).await.map_err(|error| Unread::Invalid(error.message))
    }

    /// Parses a message.
    pub(super) async fn parse(&self, bytes: Vec<u8>) -> Result<Value, Unread> {
        let length = bytes.len();
        let parse = move || {
            if bytes.len() > VALUES && rpc::values(&bytes) > VALUES {
                return Err(Unread::Invalid(format!("the message has more than {VALUES} values")));
            }
            serde_json::from_slice(&bytes)
                .map_err(|error| Unread::Invalid(format!("the message is not JSON: {error}")))
        };
        self.aside(length, parse).await?
    }
}

/// The allowances of keys that have requests in progress.
#[derive(Default)]
pub(super) struct Allowances(Mutex<HashMap<String, Weak<Allowance>>>);

impl Allowances {
    pub(super) fn of(&self, key: &str, shared: &Shared) -> Arc<Allowance> {
        let mut table = self.0.lock();
        if let Some(allowance) = table.get(key).and_then(Weak::upgrade) {
            return allowance;
        }
        table.retain(|_, allowance| allowance.strong_count() > 0);
        let allowance = Arc::new(Allowance::new(shared));
        table.insert(key.to_owned(), Arc::downgrade(&allowance));
        allowance
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::{Options, Server};

    fn allowance() -> Allowance {
        Allowance::new(&Server::new(Options::default()).0)
    }

    #[tokio::test]
    async fn a_long_message_is_not_parsed_where_others_wait() {
        let allowance = allowance();
        let mut context = Context::from_waker(Waker::noop());
        let message = |length| format!("{{\"a\":\"{}\"}}", "x".repeat(length)).into_bytes();
        assert!(pin!(allowance.parse(message(1000))).poll(&mut context).is_ready());
        let turn = allowance.turns.take().await.expect("a turn");
        let mut long = pin!(allowance.parse(message(LARGE)));
        assert!(long.as_mut().poll(&mut context).is_pending(), "it was parsed without a turn");
        drop(turn);
        assert!(long.await.is_ok());
    }

    #[tokio::test]
    async fn a_message_of_too_many_values_is_refused_by_name() {
        let allowance = allowance();
        let values = |count| format!("{{\"a\":[{}0]}}", "0,".repeat(count)).into_bytes();
        assert!(allowance.parse(values(VALUES - 10)).await.is_ok());
        let refused = allowance.parse(values(VALUES)).await.expect_err("too many");
        assert_eq!(refused, Unread::Invalid("the message has more than 16384 values".to_owned()));
        // Text is no values.
        assert!(allowance.parse(format!("{{\"a\":\"{}\"}}", "[,".repeat(VALUES)).into_bytes()).await.is_ok());
    }

    #[tokio::test]
    async fn a_key_keeps_no_more_than_half_of_what_all_may() {
        let server = Server::new(Options::default());
        let (one, other) = (Allowance::new(&server.0), Allowance::new(&server.0));
        let kept: Vec<Keeping> = std::iter::from_fn(|| one.keep((1 << 20) - 1)).collect();
        assert_eq!(kept.len(), WAITING_KIB / 2 / 1024);
        assert!(other.keep(1 << 20).is_some());
        let held: Vec<_> = std::iter::from_fn(|| one.place()).collect();
        assert!(!held.is_empty() && other.place().is_some());
        drop(kept);
        assert!(one.keep(1 << 20).is_some());
    }
}
