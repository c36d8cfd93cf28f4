//! Retrying when all workers are busy.

use std::time::Duration;

use crate::error::ToolError;

/// How to wait between attempts: twice as long each time, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait before the second attempt.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// The total number of attempts.
    pub attempts: u32,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(5), attempts: 10 }
    }
}

impl Backoff {
    /// Calls until the result is anything but busy workers, or the attempts are used up.
    ///
    /// ```
    /// # use wardian_hosttools::{Backoff, ToolError};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # runtime.block_on(async {
    /// let mut busy = 2;
    /// let answer = Backoff::default().retry(async || {
    ///     busy -= 1;
    ///     if busy > 0 { Err(ToolError::WorkerUnavailable { queued: 10 }) } else { Ok("done") }
    /// });
    /// assert_eq!(answer.await.unwrap(), "done");
    /// # });
    /// ```
    pub async fn retry<T>(self, mut call: impl AsyncFnMut() -> Result<T, ToolError>) -> Result<T, ToolError> {
        let mut wait = self.first;
        for _ in 1..self.attempts {
            match call().await {
                Err(ToolError::WorkerUnavailable { .. }) => tokio::time::sleep(wait).await,
                answer => return answer,
            }
            wait = (wait * 2).min(self.longest);
        }
        call().await
    }
}
