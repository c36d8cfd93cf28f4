//! What a sandbox has used of the network, and the brakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::policy::NetworkPolicy;

/// Counters of one sandbox.
pub(crate) struct Limits {
    /// Free connections.
    pub(crate) connections: Arc<Semaphore>,
    used: AtomicU64,
    total: u64,
    bytes: Option<Bucket>,
    requests: Option<Bucket>,
}

/// All the bytes that the sandbox may move were moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Limits {
    pub(crate) fn new(policy: &NetworkPolicy, used: u64) -> Limits {
        Limits {
            connections: Arc::new(Semaphore::new(policy.max_connections as usize)),
            used: AtomicU64::new(used),
            total: policy.total_bytes.unwrap_or(u64::MAX),
            bytes: policy.bytes_per_second.map(Bucket::new),
            requests: policy.requests_per_second.map(|rate| Bucket::new(rate.into())),
        }
    }

    /// Returns how many bytes were moved.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Tells whether nothing more may be moved.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.used() >= self.total
    }

    /// Counts bytes that are about to be passed on, and waits as long as their rate demands. Calls `waiting` meanwhile, since
    /// a connection that is slowed down is not idle.
    pub(crate) async fn take(&self, bytes: usize, waiting: impl Fn()) -> Result<(), Exhausted> {
        let bytes = bytes as u64;
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.total {
            return Err(Exhausted);
        }
        if let Some(bucket) = &self.bytes {
            bucket.take(bytes, waiting).await;
        }
        Ok(())
    }

    /// Waits for the turn of a request.
    pub(crate) async fn take_request(&self) {
        if let Some(bucket) = &self.requests {
            bucket.take(1, || ()).await;
        }
    }
}

/// A rate. A second's worth may be taken at once; what is taken beyond is waited for afterwards.
struct Bucket {
    per_second: u64,
    /// When all that was taken is paid for.
    paid: Mutex<Option<Instant>>,
}

impl Bucket {
    fn new(per_second: u64) -> Bucket {
        Bucket { per_second, paid: Mutex::new(None) }
    }

    async fn take(&self, amount: u64, waiting: impl Fn()) {
        let until = self.reserve(amount, Instant::now());
        while until > Instant::now() {
            waiting();
            let slice = Instant::now() + Duration::from_millis(100);
            tokio::time::sleep_until(slice.min(until)).await;
        }
    }

    /// Takes an amount, and returns when it may be used.
    fn reserve(&self, amount: u64, now: Instant) -> Instant {
        let cost = Duration::from_secs_f64((amount as f64 / self.per_second as f64).min(86_400.0));
        let mut paid = self.paid.lock();
        let from = paid.map_or(now, |paid| paid.max(now));
        // Bounded, whatever is asked: an `Instant` that is too far away would overflow.
        let until = from.checked_add(cost).unwrap_or(from);
        *paid = Some(until);
        until.checked_sub(Duration::from_secs(1)).map_or(now, |until| until.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_lets_a_second_through_and_then_waits() {
        let bucket = Bucket::new(100);
        let now = Instant::now();
        let waits: Vec<u128> = (0..300).map(|_| (bucket.reserve(1, now) - now).as_millis()).collect();
        assert!(waits[..100].iter().all(|wait| *wait == 0));
        assert!((990..=1_010).contains(&waits[199]) && (1_990..=2_010).contains(&waits[299]), "{waits:?}");
        let later = now + Duration::from_secs(10);
        assert_eq!(bucket.reserve(100, later), later);
    }

    #[tokio::test]
    async fn the_total_is_a_total() {
        let limits = Limits::new(&NetworkPolicy { total_bytes: Some(10), ..Default::default() }, 4);
        assert_eq!(limits.take(6, || ()).await, Ok(()));
        assert_eq!(limits.take(1, || ()).await, Err(Exhausted));
        assert!(limits.is_exhausted());
    }
}
