//! Calls from the server to the client: `cb_1`, `cb_2`, ….

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::budget::{ANSWER_MAX, LARGE};
use crate::outbox::Outbox;
use crate::rpc;
use crate::turns::Turns;

/// The client's response; `Err` has its message.
type Outcome = Result<Value, String>;

/// The calls that wait for a response.
pub(crate) struct Callbacks {
    outbox: Outbox,
    /// Turns to write long calls.
    aside: Turns,
    last: AtomicU64,
    /// `None` when no more responses will come.
    waiting: Mutex<Option<HashMap<String, oneshot::Sender<Outcome>>>>,
}

impl Callbacks {
    pub(crate) fn new(outbox: Outbox, aside: Turns) -> Callbacks {
        Callbacks { outbox, aside, last: AtomicU64::new(0), waiting: Mutex::new(Some(HashMap::new())) }
    }

    /// Calls the client and waits for its response. To stop waiting, drop this: a late response is ignored. `bytes` is how
    /// long the params are, about, before they are made.
    pub(crate) async fn call(
        &self,
        method: &'static str,
        bytes: usize,
        params: impl FnOnce() -> Value + Send + 'static,
    ) -> Outcome {
        if bytes >= ANSWER_MAX {
            return Err(too_long(method));
        }
        let id = format!("cb_{}", self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().as_mut().ok_or_else(gone)?.insert(id.clone(), sender);
        let waiting = Waiting { callbacks: self, id };
        // A byte has at most six of JSON.
        if bytes <= LARGE / 6 {
            self.outbox.tell(rpc::call(&waiting.id, method, params())).await;
        } else {
            self.call_aside(&waiting.id, method, bytes, params).await?;
        }
        receiver.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Writes a long call where it holds up nobody, when there is room for it.
    async fn call_aside(
        &self,
        id: &str,
        method: &'static str,
        bytes: usize,
        params: impl FnOnce() -> Value + Send + 'static,
    ) -> Result<(), String> {
        let mut room =
            self.outbox.budget.room(bytes.saturating_mul(6).min(ANSWER_MAX - 1)).await.ok_or_else(gone)?;
        let id = id.to_owned();
        let writing = self.aside.run(move || {
            let params = params();
            if rpc::size(&params) >= ANSWER_MAX {
                return Err(too_long(method));
            }
            Ok(rpc::call(&id, method, params))
        });
        let line = writing.await.map_err(|_| "the call could not be written".to_owned())??;
        room.shrink(line.len());
        self.outbox.put([line, Vec::new()], room);
        Ok(())
    }

    /// Accepts a response from the client. One that no one waits for is ignored.
    pub(crate) fn answer(&self, id: &str, outcome: Outcome) {
        match self.waiting.lock().as_mut().and_then(|waiting| waiting.remove(id)) {
            // The caller may have stopped waiting just now.
            Some(sender) => drop(sender.send(outcome)),
            None => tracing::debug!(id, "an answer that nobody asked for"),
        }
    }

    /// Ends all waiting: no more responses will come.
    pub(crate) fn hang_up(&self) {
        *self.waiting.lock() = None;
    }
}

fn gone() -> String {
    "the client is gone".to_owned()
}

fn too_long(method: &str) -> String {
    format!("{method} would be longer than answerBytes, {ANSWER_MAX}")
}

/// Removes a call when no one waits for it any more.
struct Waiting<'a> {
    callbacks: &'a Callbacks,
    id: String,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.callbacks.waiting.lock().as_mut() {
            waiting.remove(&self.id);
        }
    }
}
