//! When to upload: after every commit, by one process at a time, and again later if it did not work.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use super::{Inner, Remote, Waiting};
use crate::StoreError;

/// How long after a failed attempt the next one is made: twice as long each time, at most.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often to look whether other processes have left something to upload, or a lease.
const LOOK: Duration = Duration::from_secs(1);

/// From how many commits before the most they are counted.
const NEARLY: u64 = 256;

pub(super) struct State {
    /// Something is to be uploaded.
    wake: Notify,
    /// Somebody waits for it, and not until the pause is over.
    hurry: Notify,
    error: Mutex<Option<String>>,
    /// How many commits wait, nearly.
    commits: AtomicI64,
    /// Who uploads has it locked.
    lock: File,
}

impl State {
    pub(super) fn open(directory: &Path) -> Result<State, StoreError> {
        let path = directory.join("upload.lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        let (wake, hurry, error) = (Notify::new(), Notify::new(), Mutex::default());
        Ok(State { wake, hurry, error, commits: AtomicI64::new(0), lock })
    }
}

/// Starts uploading, and saying that this node is alive.
pub(super) fn start(inner: &Arc<Inner>, runtime: &Runtime) -> Result<(), StoreError> {
    let waiting = inner.waiting()?;
    inner.worker.commits.store(i64::try_from(waiting.commits).unwrap_or(i64::MAX), Ordering::Relaxed);
    runtime.spawn(run(inner.clone()));
    let inner = inner.clone();
    runtime.spawn(async move {
        loop {
            tokio::time::sleep(super::claims::BEAT / 4).await;
            let beaten = match inner.holds_any() {
                Ok(true) => inner.beat().await,
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = beaten {
                tracing::warn!(%error, "others may take over what this machine has open");
            }
        }
    });
    Ok(())
}

async fn run(inner: Arc<Inner>) {
    let mut pause = PAUSE;
    loop {
        match inner.turn().await {
            Ok(()) => {
                *inner.worker.error.lock() = None;
                pause = PAUSE;
                let _ = tokio::time::timeout(LOOK, inner.worker.wake.notified()).await;
            }
            Err(error) => {
                tracing::warn!(%error, "commits could not be uploaded: trying again");
                *inner.worker.error.lock() = Some(error.to_string());
                let _ = tokio::time::timeout(pause, inner.worker.hurry.notified()).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

impl Inner {
    /// Uploads what there is, unless another process is doing so.
    async fn turn(&self) -> Result<(), StoreError> {
        if !self.has_work()? {
            return Ok(());
        }
        match self.worker.lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let done = self.upload().await;
        self.worker.lock.unlock()?;
        let waiting = self.count("SELECT count(*) FROM remote_queue")?;
        self.worker.commits.store(waiting, Ordering::Relaxed);
        done
    }

    fn count(&self, query: &str) -> Result<i64, StoreError> {
        Ok(self.database.lock().query_row(query, [], |row| row.get(0))?)
    }

    fn has_work(&self) -> Result<bool, StoreError> {
        let waiting = "SELECT EXISTS (SELECT 1 FROM remote_queue) OR EXISTS (SELECT 1 FROM remote_unsent)";
        Ok(self.count(waiting)? != 0 || !self.abandoned()?.is_empty())
    }

    pub(super) fn waiting(&self) -> Result<Waiting, StoreError> {
        let database = self.database.lock();
        let sums = "SELECT (SELECT count(*) FROM remote_queue), count(*), coalesce(sum(length(body)), 0),
                           (SELECT min(time) FROM commits JOIN remote_queue ON number = id)
                    FROM (SELECT DISTINCT hash FROM remote_unsent) JOIN object USING (hash)";
        let (commits, objects, bytes, oldest): (i64, i64, i64, Option<i64>) =
            database.query_row(sums, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        Ok(Waiting {
            commits: commits.max(0) as u64,
            objects: objects.max(0) as u64,
            bytes: bytes.max(0) as u64,
            oldest_ms: oldest.map(|oldest| oldest.max(0) as u64),
            error: self.worker.error.lock().clone(),
        })
    }

    async fn flush(&self, most: Option<Duration>) -> Result<(), StoreError> {
        let began = Instant::now();
        self.worker.hurry.notify_one();
        while self.has_work()? {
            if most.is_some_and(|most| began.elapsed() >= most) {
                return Err(self.behind()?);
            }
            self.worker.wake.notify_one();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    fn behind(&self) -> Result<StoreError, StoreError> {
        let Waiting { commits, error, .. } = self.waiting()?;
        let url = self.bucket.url().to_owned();
        let why = error.unwrap_or_else(|| "they are on their way".to_owned());
        Ok(StoreError::Behind { url, commits, why })
    }
}

impl Remote {
    /// Says that there is something to upload.
    pub(crate) fn wake(&self) {
        self.inner.worker.wake.notify_one();
    }

    /// Returns a way to do so, when a commit was made.
    pub(crate) fn waker(&self) -> impl FnOnce() + Send + 'static {
        let inner = self.inner.clone();
        move || {
            inner.worker.commits.fetch_add(1, Ordering::Relaxed);
            inner.worker.wake.notify_one();
        }
    }

    /// Refuses a commit if too many wait already: the disk is not for what an object store does not take.
    pub(crate) fn check_room(&self, most: u64) -> Result<(), StoreError> {
        let waiting = self.inner.worker.commits.load(Ordering::Relaxed);
        // It is only nearly right, as commits are made while others are counted.
        if u64::try_from(waiting).unwrap_or(0) + NEARLY < most {
            return Ok(());
        }
        let waiting = self.inner.count("SELECT count(*) FROM remote_queue")?;
        if u64::try_from(waiting).unwrap_or(0) < most { Ok(()) } else { Err(self.inner.behind()?) }
    }

    pub(crate) fn waiting(&self) -> Result<Waiting, StoreError> {
        self.inner.waiting()
    }

    pub(crate) fn flush(&self, most: Option<Duration>) -> Result<(), StoreError> {
        self.wait(|inner| async move { inner.flush(most).await })
    }
}
