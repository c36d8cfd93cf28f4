//! Calls from the server to the client: `cb_1`, `cb_2`, ….

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::budget::{ANSWER_MAX, LARGE};
use crate::outbox::Outbox;
use crate::rpc;

/// The client's response; `Err` has its message.
type Outcome = Result<Value, String>;

/// The calls that wait for a response.
pub(crate) struct Callbacks {
    outbox: Outbox,
    last: AtomicU64,
    waiting: Mutex<HashMap<String, oneshot::Sender<Outcome>>>,
}

impl Callbacks {
    pub(crate) fn new(outbox: Outbox) -> Callbacks {
        Callbacks { outbox, last: AtomicU64::new(0), waiting: Mutex::default() }
    }

    /// Calls the client and waits for its response. To stop waiting, drop this: a late response is ignored.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Outcome {
        let id = format!("cb_{}", self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().insert(id.clone(), sender);
        let waiting = Waiting { callbacks: self, id };
        let size = rpc::size(&params);
        if size >= ANSWER_MAX {
            return Err(format!("{method} would be longer than answerBytes, {ANSWER_MAX}"));
        }
        if size <= LARGE {
            self.outbox.tell(rpc::call(&waiting.id, method, params)).await;
        } else if let Some(room) = self.outbox.budget.room(size).await {
            let (id, method) = (waiting.id.clone(), method.to_owned());
            let writing = tokio::task::spawn_blocking(move || rpc::call(&id, &method, params));
            let line = writing.await.map_err(|_| "the call could not be written".to_owned())?;
            self.outbox.put([line, Vec::new()], room);
        }
        receiver.await.unwrap_or_else(|_| Err("the client is gone".to_owned()))
    }

    /// Accepts a response from the client. One that no one waits for is ignored.
    pub(crate) fn answer(&self, id: &str, outcome: Outcome) {
        match self.waiting.lock().remove(id) {
            // Whoever waited may have stopped just now.
            Some(sender) => drop(sender.send(outcome)),
            None => tracing::debug!(id, "an answer that nobody asked for"),
        }
    }

    /// Ends all waiting: no more responses will come.
    pub(crate) fn hang_up(&self) {
        self.waiting.lock().clear();
    }
}

/// Removes a call when no one waits for it any more.
struct Waiting<'a> {
    callbacks: &'a Callbacks,
    id: String,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.callbacks.waiting.lock().remove(&self.id);
    }
}
