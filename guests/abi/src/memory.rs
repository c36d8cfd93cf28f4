//! Running out of memory: a program that is refused memory says so in a line and exits.

/// Runs code that may be refused memory and deals with that itself, such as `Vec::try_reserve`. Elsewhere, a program in
/// a sandbox that is refused memory ends with a message.
pub fn fallible<T>(allocate: impl FnOnce() -> T) -> T {
    #[cfg(target_os = "wasi")]
    return in_sandbox::fallible(allocate);
    #[cfg(not(target_os = "wasi"))]
    allocate()
}

#[cfg(target_os = "wasi")]
mod in_sandbox {
    use crate::failure::out_of_memory;
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// Whether a refusal is returned to the program.
    static FALLIBLE: AtomicBool = AtomicBool::new(false);

    pub fn fallible<T>(allocate: impl FnOnce() -> T) -> T {
        let before = FALLIBLE.swap(true, Relaxed);
        let done = allocate();
        FALLIBLE.store(before, Relaxed);
        done
    }

    /// The system's allocator; what Rust does when it fails is to abort with advice for programmers.
    struct Allocator;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    fn checked(pointer: *mut u8) -> *mut u8 {
        if pointer.is_null() && !FALLIBLE.load(Relaxed) {
            out_of_memory();
        }
        pointer
    }

    // SAFETY: every call goes to the system's allocator as it came.
    unsafe impl GlobalAlloc for Allocator {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller's promises are those that the system's allocator asks for; likewise below.
            checked(unsafe { System.alloc(layout) })
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: as above.
            checked(unsafe { System.alloc_zeroed(layout) })
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: as above.
            checked(unsafe { System.realloc(pointer, layout, size) })
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            // SAFETY: as above.
            unsafe { System.dealloc(pointer, layout) }
        }
    }
}
