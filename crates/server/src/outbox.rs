//! Lines to a client, whole and one at a time.
//!
//! A client that does not read makes those wait who have something to tell it. Answers have more room than output does:
//! a client may well send thousands of requests before it reads the first answer, while a writer of output can wait.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::budget::{Budget, Room, Shared};
use crate::rpc;

/// How much of everything that is no answer may wait for the client.
const OUTPUT_KIB: u32 = 1 << 10;

/// Where lines to the client are put. Clones are the same box.
#[derive(Clone)]
pub(crate) struct Outbox {
    sink: Sink,
    pub(crate) budget: Budget,
    output: Arc<Semaphore>,
}

/// Who gets what is put into it.
#[derive(Clone)]
enum Sink {
    /// A connection, as lines.
    Lines(mpsc::UnboundedSender<Message>),
    /// Listeners by HTTP. Responses do not come this way.
    Listeners(Arc<Listeners>),
}

enum Message {
    /// A line, and the room it takes up until it is written.
    Line(Vec<u8>, OwnedSemaphorePermit),
    /// The same in two parts, so that a long answer is not copied.
    Answer([Vec<u8>; 2], Room),
    End,
}

/// The other side of an [`Outbox`].
pub(crate) struct Lines(mpsc::UnboundedReceiver<Message>, Budget);

impl Outbox {
    pub(crate) fn new(shared: Arc<Shared>) -> (Outbox, Lines) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let budget = Budget::new(shared);
        let output = Arc::new(Semaphore::new(OUTPUT_KIB as usize));
        (Outbox { sink: Sink::Lines(lines), budget: budget.clone(), output }, Lines(receiver, budget))
    }

    /// Returns the outbox of sandboxes that no connection has, and room for answers.
    pub(crate) fn for_listeners(listeners: Arc<Listeners>, budget: Budget) -> Outbox {
        let output = Arc::new(Semaphore::new(OUTPUT_KIB as usize));
        Outbox { sink: Sink::Listeners(listeners), budget, output }
    }

    /// Sends a notification. Returns whether the client need not confirm that it has taken it.
    pub(crate) async fn notify(&self, method: &'static str, params: Value) -> bool {
        match &self.sink {
            Sink::Lines(_) => self.tell(rpc::notification(method, params)).await,
            Sink::Listeners(listeners) => listeners.notify(method, params).await,
        }
        matches!(self.sink, Sink::Listeners(_))
    }

    fn send(&self, message: Message) {
        if let Sink::Lines(lines) = &self.sink {
            // A client that is gone does not mind.
            let _ = lines.send(message);
        }
    }

    /// Sends the answer to a request.
    pub(crate) async fn answer(&self, line: Vec<u8>) {
        if let Some(room) = self.budget.room(line.len()).await {
            self.put([line, Vec::new()], room);
        }
    }

    /// Sends a line that has its room.
    pub(crate) fn put(&self, line: [Vec<u8>; 2], room: Room) {
        self.send(Message::Answer(line, room));
    }

    /// Sends what the client did not ask for just now.
    pub(crate) async fn tell(&self, line: Vec<u8>) {
        // One that is larger than all the room there is goes when it has all of it.
        let kib = u32::try_from(line.len() / 1024 + 1).map_or(OUTPUT_KIB, |kib| kib.min(OUTPUT_KIB));
        if let Ok(room) = self.output.clone().acquire_many_owned(kib).await {
            self.send(Message::Line(line, room));
        }
    }

    /// Nothing more comes, even if there are other senders.
    pub(crate) fn end(&self) {
        self.send(Message::End);
    }
}

impl Lines {
    /// Writes line after line, up to the end.
    pub(crate) async fn write_to(mut self, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
        loop {
            let (parts, room) = match self.0.recv().await {
                Some(Message::Line(line, room)) => ([line, Vec::new()], (Some(room), None)),
                Some(Message::Answer(parts, room)) => (parts, (None, Some(room))),
                Some(Message::End) | None => break,
            };
            let writing = async {
                for part in &parts {
                    output.write_all(part).await?;
                }
                output.flush().await
            };
            tokio::select! {
                written = writing => written?,
                () = self.1.wanted_back() => {
                    tracing::warn!("a client that does not read is disconnected: others need the room");
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            drop(room);
        }
        output.shutdown().await
    }
}

/// How many notifications may wait for a listener that reads slowly, before whatever they are of does.
const WAITING: usize = 4;

/// A notification: its method and params.
pub(crate) type Notification = (&'static str, Value);

/// Who listens by HTTP: to the output of runs, by the ids of their requests, and of processes, by theirs.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<HashMap<String, mpsc::Sender<Notification>>>);

impl Listeners {
    /// Listens to a run.
    pub(crate) fn to_run(&self, request: &str) -> mpsc::Receiver<Notification> {
        self.listen(format!("run {request}"))
    }

    /// Listens to a process, in place of the previous listener.
    pub(crate) fn to_process(&self, id: &str) -> mpsc::Receiver<Notification> {
        self.listen(format!("process {id}"))
    }

    fn listen(&self, what: String) -> mpsc::Receiver<Notification> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut listeners = self.0.lock();
        listeners.retain(|_, sender| !sender.is_closed());
        listeners.insert(what, sender);
        receiver
    }

    /// Tells the listener. Without one, it is dropped.
    async fn notify(&self, method: &'static str, params: Value) {
        let what = match (params["processId"].as_str(), params["request_id"].as_str()) {
            (Some(id), _) => format!("process {id}"),
            (None, Some(id)) => format!("run {id}"),
            (None, None) => return,
        };
        let sender = self.0.lock().get(&what).cloned();
        let heard = match sender {
            Some(sender) => sender.send((method, params)).await.is_ok(),
            None => return,
        };
        let mut listeners = self.0.lock();
        if !heard && listeners.get(&what).is_some_and(mpsc::Sender::is_closed) {
            listeners.remove(&what);
        }
    }
}
