//! A sandbox and its forks, as the owner of what is compiled for it.
//!
//! Code that was compiled for a tenant is kept for the tenant's next start, is charged to it alone, and goes with the
//! last of its sandboxes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crate::kernel::KernelInner;

/// The most code that may be in memory for a family, kept or running: enough for the largest programs there are.
const MOST_CODE: u64 = 512 << 20;

/// Those who share compiled programs. A machine that is made with the rules of another belongs to its family.
pub struct Family {
    id: u64,
    machines: AtomicUsize,
    /// Bytes of code in memory.
    code: Arc<AtomicU64>,
}

impl Default for Family {
    fn default() -> Family {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Family { id, machines: AtomicUsize::new(0), code: Arc::default() }
    }
}

impl Family {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Charges a family for code that is in memory; `None` if that would be too much.
    pub(crate) fn charge(&self, bytes: u64) -> Option<CodeCharge> {
        let charge = CodeCharge { code: self.code.clone(), bytes };
        let before = self.code.fetch_add(bytes, Ordering::Relaxed);
        // Dropping the charge takes it back.
        (before.saturating_add(bytes) <= MOST_CODE).then_some(charge)
    }
}

/// Code in memory.
pub(crate) struct CodeCharge {
    code: Arc<AtomicU64>,
    bytes: u64,
}

impl CodeCharge {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for CodeCharge {
    fn drop(&mut self) {
        self.code.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A machine's place in its family. With the last one go the programs that were kept for them.
pub(crate) struct Membership {
    family: Arc<Family>,
    kernel: Weak<KernelInner>,
}

impl Membership {
    pub(crate) fn new(family: &Arc<Family>, kernel: &Arc<KernelInner>) -> Membership {
        family.machines.fetch_add(1, Ordering::SeqCst);
        Membership { family: family.clone(), kernel: Arc::downgrade(kernel) }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if self.family.machines.fetch_sub(1, Ordering::SeqCst) == 1
            && let Some(kernel) = self.kernel.upgrade()
        {
            kernel.forget_programs_of(&self.family);
        }
    }
}
