//! The one thread that writes: what arrives together becomes one transaction, and waits for the disk once.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, TransactionBehavior};

use crate::commit::{self, CommitId, Pending};
use crate::{StoreError, lease};

/// How many commits share a transaction at most.
const TOGETHER: usize = 256;
/// How often leases are renewed.
const RENEWAL: Duration = Duration::from_secs(10);
/// From how many pages on the log is moved into the database when there is nothing else to do, and when in any case.
const LOG_PAGES: i64 = 1_000;
const LOG_PAGES_MOST: i64 = 16_000;

pub(crate) type Answer = Box<dyn FnOnce(Result<CommitId, StoreError>) + Send>;
type Work = Box<dyn FnOnce(&mut Connection) + Send>;

enum Message {
    Commit(Box<Pending>, Answer),
    /// Anything else, in a place of its own.
    Work(Work),
}

/// The way to the thread. Dropping it ends the thread once everything was written.
pub(crate) struct Writer {
    messages: Mutex<Option<Sender<Message>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, owner: i64, sync: bool) -> Result<Writer, StoreError> {
        let (sender, messages) = channel();
        let thread = std::thread::Builder::new().name("wardian-store".to_owned()).spawn(move || {
            Thread { connection, owner, sync, renewed: Instant::now(), transactions: 0 }.run(&messages)
        })?;
        Ok(Writer { messages: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)) })
    }

    fn send(&self, message: Message) -> Result<(), StoreError> {
        let sent = self.messages.lock().as_ref().and_then(|messages| messages.send(message).ok());
        sent.ok_or_else(|| StoreError::Io("the writer has ended".to_owned()))
    }

    pub(crate) fn commit(&self, pending: Pending, answer: Answer) -> Result<(), StoreError> {
        self.send(Message::Commit(Box::new(pending), answer))
    }

    /// Does something with the writer's connection, and waits for it.
    pub(crate) fn perform<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, answer) = channel();
        self.send(Message::Work(Box::new(move |connection| {
            let _ = sender.send(work(connection));
        })))?;
        answer.recv().unwrap_or_else(|_| Err(StoreError::Io("the writer has ended".to_owned())))
    }

    /// Does something later, and does not wait for it.
    pub(crate) fn perform_later(&self, work: impl FnOnce(&mut Connection) + Send + 'static) {
        // Without a writer there is nothing to be done any more.
        let _ = self.send(Message::Work(Box::new(work)));
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.messages.get_mut().take();
        if let Some(thread) = self.thread.get_mut().take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

struct Thread {
    connection: Connection,
    owner: i64,
    sync: bool,
    renewed: Instant,
    /// How many transactions there were since the log was last moved.
    transactions: u32,
}

impl Thread {
    fn run(mut self, messages: &Receiver<Message>) {
        loop {
            self.renew();
            match messages.recv_timeout(RENEWAL) {
                Ok(Message::Work(work)) => work(&mut self.connection),
                Ok(Message::Commit(pending, answer)) => {
                    let next = self.commit_together(messages, vec![(pending, answer)]);
                    if let Some(work) = next {
                        work(&mut self.connection);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.check_log(1);
    }

    /// Commits what has arrived by now. Returns what else came.
    fn commit_together(
        &mut self,
        messages: &Receiver<Message>,
        mut all: Vec<(Box<Pending>, Answer)>,
    ) -> Option<Work> {
        let mut other = None;
        while all.len() < TOGETHER {
            match messages.try_recv() {
                Ok(Message::Commit(pending, answer)) => all.push((pending, answer)),
                Ok(Message::Work(work)) => {
                    other = Some(work);
                    break;
                }
                Err(_) => break,
            }
        }
        let (pending, answers): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let idle = other.is_none();
        match self.transact(&pending) {
            Ok(results) => answers.into_iter().zip(results).for_each(|(answer, result)| answer(result)),
            Err(error) => answers.into_iter().for_each(|answer| answer(Err(error.clone()))),
        }
        self.check_log(if idle { LOG_PAGES } else { LOG_PAGES_MOST });
        other
    }

    /// Makes all of them in one transaction; each succeeds or fails by itself.
    fn transact(&mut self, all: &[Box<Pending>]) -> Result<Vec<Result<CommitId, StoreError>>, StoreError> {
        let mut transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut results = Vec::with_capacity(all.len());
        for pending in all {
            let savepoint = transaction.savepoint()?;
            let result = commit::apply(&savepoint, pending);
            match result {
                Ok(_) => savepoint.commit()?,
                // A full disk ends the whole transaction.
                Err(StoreError::Full) => return Err(StoreError::Full),
                // Dropping it rolls it back.
                Err(_) => drop(savepoint),
            }
            results.push(result);
        }
        transaction.commit()?;
        self.transactions += 1;
        Ok(results)
    }

    fn renew(&mut self) {
        if self.renewed.elapsed() >= RENEWAL {
            self.renewed = Instant::now();
            if let Err(error) = lease::renew(&self.connection, self.owner) {
                tracing::warn!(%error, "leases could not be renewed");
            }
        }
    }

    /// Moves the log into the database if it has this many pages. Only what is synced may be moved, so that takes an
    /// `fsync` or two; nobody waits for it.
    fn check_log(&mut self, pages: i64) {
        let log = self.connection.path().map(|path| format!("{path}-wal"));
        let length = log.and_then(|log| std::fs::metadata(log).ok()).map_or(0, |file| file.len());
        // Of a simulated file nothing is known.
        let long = if length == 0 { self.transactions >= 20 } else { (length / 4096) as i64 >= pages };
        if long {
            self.transactions = 0;
            let mode = if self.sync && length / 4096 > LOG_PAGES_MOST as u64 { "RESTART" } else { "PASSIVE" };
            let moved = self
                .connection
                .query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get::<_, i64>(0));
            if let Err(error) = moved {
                tracing::warn!(%error, "the log could not be moved into the database");
            }
        }
    }
}
