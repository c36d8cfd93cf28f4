//! The stacks guests run on, kept for reuse.
//!
//! Every process needs a fiber stack of nine mebibytes, of which most touch a few pages. Mapping, guarding and unmapping
//! one costs more than a small program's whole run, so a limited number is kept. A later guest cannot read what an
//! earlier one left on a stack: compiled WebAssembly never reads a native stack slot that it has not written.

use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use parking_lot::Mutex;
use wasmtime::{StackCreator, StackMemory};

const PAGE: usize = 4096;
/// Stacks begin at multiples of this, so that any address in one leads to the whole.
const SPACING: usize = 16 << 20;
/// The stack of the fiber a guest runs on.
pub(crate) const FIBER_STACK: usize = 9 << 20;
const _: () = assert!(FIBER_STACK + PAGE <= SPACING);
/// How many idle stacks are kept.
const KEPT: usize = 64;
/// How much memory an idle stack keeps: enough for a small program.
const RESIDENT: usize = 32 * 1024;

/// Returns an address in the stack that the caller runs on.
#[inline(never)]
pub(crate) fn here() -> usize {
    let local = 0u8;
    std::ptr::from_ref(std::hint::black_box(&local)) as usize
}

/// Returns the guest's stack that has this address in it; an empty range if it is in none.
pub(crate) fn around(address: usize) -> Range<usize> {
    let base = address - address % SPACING;
    let stack = base + PAGE..base + PAGE + FIBER_STACK;
    if stack.contains(&address) { stack } else { 0..0 }
}

/// Idle stacks.
#[derive(Default)]
pub(crate) struct StackPool {
    idle: Arc<Mutex<Vec<Mapping>>>,
}

/// A mapping: one guard page, then the stack.
struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is owned memory; whichever thread holds it may use or unmap it.
unsafe impl Send for Mapping {}
// SAFETY: nothing can be done with a shared reference but read its address and length.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(size: usize) -> io::Result<Mapping> {
        let len = size.next_multiple_of(PAGE) + PAGE;
        if len > SPACING {
            return Err(io::Error::other("a stack that is too large"));
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let (all, access) = (len + SPACING, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing that exists.
        let start = unsafe { libc::mmap(ptr::null_mut(), all, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = start.cast::<u8>();
        let before = (start as usize).next_multiple_of(SPACING) - start as usize;
        let base = NonNull::new(start.wrapping_add(before))
            .ok_or_else(|| io::Error::other("mapped at address zero"))?;
        let mapping = Mapping { base, len };
        // SAFETY: both ranges lie inside the mapping made above, outside of what is kept of it.
        unsafe {
            if before > 0 {
                libc::munmap(start.cast(), before);
            }
            libc::munmap(start.add(before + len).cast(), all - before - len);
            // A deep page must not bring two mebibytes along. A failure only means that it may.
            libc::madvise(base.as_ptr().cast(), len, libc::MADV_NOHUGEPAGE);
        }
        // SAFETY: the first page of the mapping made above.
        if unsafe { libc::mprotect(base.as_ptr().cast(), PAGE, libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(mapping)
    }

    /// Returns all memory but the top, so that one deep recursion does not keep its pages forever.
    fn trim(&self) {
        let deep = self.len - PAGE - RESIDENT;
        // SAFETY: the range lies inside this mapping, above its guard page, and no fiber runs on it any more. A failure
        // only means that the pages stay.
        unsafe { libc::madvise(self.base.as_ptr().add(PAGE).cast(), deep, libc::MADV_DONTNEED) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and what ran on it is gone.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// A stack in use; it returns to the pool when dropped.
struct Stack {
    mapping: Option<Mapping>,
    idle: Arc<Mutex<Vec<Mapping>>>,
}

impl Stack {
    fn bounds(&self) -> (*mut u8, usize) {
        self.mapping.as_ref().map_or((ptr::null_mut(), PAGE), |m| (m.base.as_ptr(), m.len))
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let Some(mapping) = self.mapping.take() else { return };
        mapping.trim();
        let mut idle = self.idle.lock();
        if idle.len() < KEPT {
            idle.push(mapping);
        }
    }
}

// SAFETY: each stack is a mapping of its own with a guard page below it, owned by the caller until it is dropped.
unsafe impl StackCreator for StackPool {
    fn new_stack(&self, size: usize, _zeroed: bool) -> wasmtime::Result<Box<dyn StackMemory>> {
        let kept = self.idle.lock().pop();
        let mapping = match kept {
            Some(mapping) => mapping,
            None => Mapping::new(size)?,
        };
        Ok(Box::new(Stack { mapping: Some(mapping), idle: self.idle.clone() }))
    }
}

// SAFETY: the ranges are those of the mapping that this stack owns, page-aligned, with the guard page below.
unsafe impl StackMemory for Stack {
    fn top(&self) -> *mut u8 {
        let (base, len) = self.bounds();
        base.wrapping_add(len)
    }

    fn range(&self) -> Range<usize> {
        let (base, len) = self.bounds();
        base as usize + PAGE..base as usize + len
    }

    fn guard_range(&self) -> Range<*mut u8> {
        let (base, _) = self.bounds();
        base..base.wrapping_add(PAGE)
    }
}
