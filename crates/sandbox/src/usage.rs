//! What a sandbox uses at this moment, for monitoring.

use crate::sandbox::Sandbox;

/// What a sandbox uses now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageNow {
    /// Processes, including the shell.
    pub processes: usize,
    /// Bytes charged to `Limits::memory_bytes`.
    pub memory_bytes: u64,
}

impl Sandbox {
    /// Returns how many bytes of [`Limits::fs_bytes`](crate::Limits::fs_bytes) its files take.
    pub async fn disk_usage(&self) -> u64 {
        self.machine().tree().await.usage().bytes
    }

    /// Returns what it uses now.
    pub fn usage_now(&self) -> UsageNow {
        let census = self.machine().census();
        UsageNow { processes: census.processes, memory_bytes: census.memory_charged }
    }
}
