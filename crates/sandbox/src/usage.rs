//! What a sandbox uses at this moment, for monitoring.

use wardian_vfs::Errno;

use crate::error::Error;
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

/// Memory of the host that a sandbox is charged for, until this is dropped.
#[derive(Debug)]
pub struct HeldMemory {
    _held: wardian_kernel::HeldMemory,
}

impl Sandbox {
    /// Charges the sandbox for memory that the caller keeps on its behalf, such as what it remembers of the sandbox's files.
    /// `ENOMEM` if that would exceed [`Limits::memory_bytes`](crate::Limits::memory_bytes).
    pub fn hold_memory(&self, bytes: usize) -> Result<HeldMemory, Error> {
        let refused = || {
            let limit = self.limits().memory_bytes;
            Error::refused(Errno::ENOMEM, format!("memoryBytes limit of {limit} reached").as_bytes())
        };
        self.machine().hold_memory(bytes).map(|_held| HeldMemory { _held }).ok_or_else(refused)
    }

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
