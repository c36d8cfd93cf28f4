//! Starting this program again as a helper.
//!
//! A library cannot bundle a second executable, but it can be a second program inside the first: an initialiser that the
//! C library runs before `main` checks the name the process was started under (`argv[0]`), and if that is a helper's,
//! does its work and exits. So every program that links this crate can start itself as a helper, and needs no set-up: no
//! additional file, no line in its `main`.
//!
//! The helper runs before Rust's own start-up: no signal is ignored, no guard page is known. Everything that it uses of
//! the standard library (memory, descriptors, panics, but no threads) is ready by then, since the C library is, and
//! since the standard library's own initialiser has a higher priority than this one.
//!
//! A shared library is different: the process that loads it has another executable, which would start as itself. [`can`]
//! detects that.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// The names, and what each does.
const PROGRAMS: [(&CStr, fn() -> !); 1] = [(crate::compiler::NAME, crate::compiler::helper::main)];

/// Whether the initialiser has run.
static LINKED: AtomicBool = AtomicBool::new(false);

#[used]
// SAFETY: the section is a list of functions of this type, which the C library calls once each before `main`.
#[unsafe(link_section = ".init_array")]
static HOOK: extern "C" fn(c_int, *const *const c_char) = hook;

/// Checks what this process was started as: glibc passes the arguments of `main` to every initialiser.
#[cfg(target_env = "gnu")]
extern "C" fn hook(count: c_int, arguments: *const *const c_char) {
    LINKED.store(true, Ordering::Relaxed);
    if count < 1 || arguments.is_null() {
        return;
    }
    // SAFETY: there is at least one argument, and each is a string that ends in a null.
    let name = unsafe { CStr::from_ptr(*arguments) };
    become_one(name);
}

/// Other C libraries pass nothing.
#[cfg(not(target_env = "gnu"))]
extern "C" fn hook(_: c_int, _: *const *const c_char) {
    LINKED.store(true, Ordering::Relaxed);
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    if let Ok(name) = CStr::from_bytes_until_nul(&line) {
        become_one(name);
    }
}

fn become_one(name: &CStr) {
    if let Some((_, main)) = PROGRAMS.iter().find(|(known, _)| *known == name) {
        main();
    }
}

/// Returns whether this program, started again, would reach the initialiser: it has run here, and it is part of the
/// executable itself.
pub(crate) fn can() -> bool {
    LINKED.load(Ordering::Relaxed) && in_executable(hook as *const () as usize)
}

/// Returns whether the code at this address belongs to the executable and not to a shared library.
fn in_executable(address: usize) -> bool {
    let mut asked = Asked { address, found: false };
    // SAFETY: the callback gets what it was given here, which lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut asked).cast()) };
    asked.found
}

struct Asked {
    address: usize,
    found: bool,
}

/// Called for the executable first; returns that nothing else need be examined.
extern "C" fn look(object: *mut libc::dl_phdr_info, _: usize, asked: *mut c_void) -> c_int {
    // SAFETY: the C library hands over a valid object, whose headers stay in memory; `asked` is `in_executable`'s.
    let (object, asked) = unsafe { (&*object, &mut *asked.cast::<Asked>()) };
    // SAFETY: as above: so many headers are there.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    asked.found = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).any(|header| {
        let start = (object.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        asked.address.wrapping_sub(start) < header.p_memsz as usize
    });
    1
}
