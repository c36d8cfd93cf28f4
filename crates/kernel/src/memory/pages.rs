//! Finds the pages of a memory that were written since it was mapped.
//!
//! A guest's memory is a file (its module's image, or a template) mapped privately, and zeros beyond it. Linux knows
//! which pages of such a mapping were written: they are present or swapped out, and not the file's. This uses
//! `PAGEMAP_SCAN` (Linux 6.7), which returns ranges, or else reads `/proc/self/pagemap`, eight bytes for each page.
//!
//! For a process that becomes idle again and again, what was written since its last command matters more. Linux notes the
//! first write to a page that was protected for that purpose, without asking anyone (`userfaultfd` in its asynchronous mode,
//! Linux 6.7). Where it cannot, pages that were not written look as if they had been.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// Bytes in a page of the host.
pub(crate) const PAGE: usize = 4096;

/// One page's bytes.
pub type Page = [u8; PAGE];

/// Page `number` of `memory`.
pub(crate) fn page(memory: &[u8], number: u32) -> &Page {
    let start = number as usize * PAGE;
    memory[start..start + PAGE].try_into().expect("a slice of one page")
}

/// Returns the numbers of the pages of `memory`, from the one that holds byte `start` up, that may have been written.
pub(crate) fn written(memory: &[u8], start: usize) -> Vec<u32> {
    pages_where(memory, start, Ask::Written)
}

/// Returns those of them that may have been written since they were last [watched](watch).
pub(crate) fn written_lately(memory: &[u8], start: usize) -> Vec<u32> {
    pages_where(memory, start, Ask::Lately)
}

/// Has Linux note which of the pages written so far, from the one that holds byte `start` up, are written again. Those up to
/// byte `known` were registered before, and nothing was mapped there since. Returns whether it does.
pub(crate) fn watch(memory: &mut [u8], start: usize, known: usize) -> bool {
    let (start, end) = (start / PAGE * PAGE, memory.len());
    let base = memory.as_ptr() as usize;
    let Some((pagemap, watcher)) = pagemap().zip(watcher()) else { return false };
    let registered = start.max(known) >= end || register(watcher, base + start.max(known)..base + end);
    registered && scan(pagemap, base + start..base + end, Ask::Watch, |_| {}).is_some()
}

/// What is asked about pages.
#[derive(Clone, Copy, PartialEq)]
enum Ask {
    /// Which were written.
    Written,
    /// Which were written since they were last watched.
    Lately,
    /// The same, and to watch them from now on.
    Watch,
}

fn pages_where(memory: &[u8], start: usize, ask: Ask) -> Vec<u32> {
    let (first, end) = (start / PAGE, memory.len() / PAGE);
    if first >= end {
        return Vec::new();
    }
    let base = memory.as_ptr() as usize;
    let found = pagemap().and_then(|pagemap| {
        let mut found = Vec::new();
        let number = |address: usize| ((address - base) / PAGE) as u32;
        let add = |range: Range<usize>| found.extend(number(range.start)..number(range.end));
        match scan(pagemap, base + first * PAGE..base + end * PAGE, ask, add) {
            Some(()) => Some(found),
            None => read(pagemap, base / PAGE, first, end),
        }
    });
    // Where the system does not say, every page counts as written.
    found.unwrap_or_else(|| (first as u32..end as u32).collect())
}

/// Returns how many bytes of the pages in this range of addresses were written since it was mapped; nothing if the system
/// does not say. The range need not be mapped.
pub(crate) fn bytes_written(range: Range<usize>) -> Option<u64> {
    if range.is_empty() {
        return Some(0);
    }
    let pagemap = pagemap()?;
    let mut bytes = 0;
    let whole = range.start - range.start % PAGE..range.end.next_multiple_of(PAGE);
    if scan(pagemap, whole.clone(), Ask::Written, |found| bytes += found.len() as u64).is_some() {
        return Some(bytes);
    }
    let pages = read(pagemap, whole.start / PAGE, 0, whole.len() / PAGE)?;
    Some((pages.len() * PAGE) as u64)
}

/// Discards what was written to these pages: they are again what is mapped there.
pub(crate) fn forget(pages: &mut [u8]) -> io::Result<()> {
    // SAFETY: the range is borrowed mutably, so that nothing else looks at it; its private pages become those of the file
    // below, or zeros, which are bytes like any other.
    let done = unsafe { libc::madvise(pages.as_mut_ptr().cast(), pages.len(), libc::MADV_DONTNEED) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Opens what this module asks, while this process may still open it. Both describe the process that opened them: never
/// inherited.
pub(crate) fn open() {
    let _ = (pagemap(), watcher());
}

fn pagemap() -> Option<&'static File> {
    static PAGEMAP: OnceLock<Option<File>> = OnceLock::new();
    PAGEMAP.get_or_init(|| File::open("/proc/self/pagemap").ok()).as_ref()
}

/// `struct pm_scan_arg` of Linux.
#[repr(C)]
#[derive(Default)]
struct ScanRequest {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    ranges: u64,
    ranges_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region` of Linux.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ScanRange {
    start: u64,
    end: u64,
    categories: u64,
}

/// Asks for ranges of addresses; returns `None` if this Linux does not support it.
fn scan(pagemap: &File, among: Range<usize>, ask: Ask, mut found: impl FnMut(Range<usize>)) -> Option<()> {
    const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
    const PROTECT_MATCHING: u64 = 1 << 0;
    // Of pages that are not watched, Linux says that they were.
    const IS_WRITTEN: u64 = 1 << 1;
    const IS_FILE: u64 = 1 << 2;
    const IS_PRESENT: u64 = 1 << 3;
    const IS_SWAPPED: u64 = 1 << 4;
    const IS_ZERO_PAGE: u64 = 1 << 5;
    const RANGES: usize = 128;
    let mut ranges = [ScanRange::default(); RANGES];
    let flags = if ask == Ask::Watch { PROTECT_MATCHING } else { 0 };
    let lately = if ask == Ask::Written { 0 } else { IS_WRITTEN };
    let Range { start: mut from, end } = among;
    while from < end {
        let mut request = ScanRequest {
            size: size_of::<ScanRequest>() as u64,
            flags,
            start: from as u64,
            end: end as u64,
            ranges: ranges.as_mut_ptr() as u64,
            ranges_len: RANGES as u64,
            category_inverted: IS_FILE | IS_ZERO_PAGE,
            category_mask: IS_FILE | IS_ZERO_PAGE | lately,
            category_anyof_mask: IS_PRESENT | IS_SWAPPED,
            return_mask: IS_FILE,
            ..ScanRequest::default()
        };
        // SAFETY: the request and the ranges it points to live across the call and have the lengths given.
        let answered = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &mut request) };
        let answered = usize::try_from(answered).ok().filter(|&n| n <= RANGES)?;
        for range in &ranges[..answered] {
            found(range.start as usize..range.end as usize);
        }
        if request.walk_end as usize <= from {
            return None;
        }
        from = request.walk_end as usize;
    }
    Some(())
}

/// What notes writes for this process: one descriptor for all memories. None where Linux cannot, or does not let this user.
fn watcher() -> Option<&'static OwnedFd> {
    static WATCHER: OnceLock<Option<OwnedFd>> = OnceLock::new();
    WATCHER.get_or_init(|| new_watcher().ok()).as_ref()
}

fn new_watcher() -> io::Result<OwnedFd> {
    const USER_MODE_ONLY: i32 = 1;
    const UFFDIO_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
    const API: u64 = 0xaa;
    const WRITES_ARE_NOTED: u64 = 1 << 15;
    // The version, the features wanted, and the calls that it then offers.
    let mut request = [API, WRITES_ARE_NOTED, 0];
    // SAFETY: the first call returns a new descriptor that nothing else owns; the second reads and writes the request, which
    // has the length that the call expects.
    unsafe {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
        let fd = libc::syscall(libc::SYS_userfaultfd, flags) as i32;
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = OwnedFd::from_raw_fd(fd);
        if libc::ioctl(fd.as_raw_fd(), UFFDIO_API, &mut request) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(fd)
    }
}

/// Says that pages at these addresses may be watched.
fn register(watcher: &OwnedFd, range: Range<usize>) -> bool {
    const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
    const WRITES: u64 = 1 << 1;
    // Where, how long, what for, and the calls that are then possible.
    let mut request = [range.start as u64, range.len() as u64, WRITES, 0];
    // SAFETY: the request lives across the call and has the length that it expects. A write to a page that is watched is
    // noted and goes on: registering changes nothing that the program can see.
    unsafe { libc::ioctl(watcher.as_raw_fd(), UFFDIO_REGISTER, &mut request) == 0 }
}

/// Reads the entry of each page.
fn read(pagemap: &File, base_page: usize, first: usize, end: usize) -> Option<Vec<u32>> {
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const FILE_BACKED: u64 = 1 << 61;
    let mut notes = vec![0; (end - first) * 8];
    pagemap.read_exact_at(&mut notes, ((base_page + first) * 8) as u64).ok()?;
    let written = |note: u64| note & SWAPPED != 0 || (note & PRESENT != 0 && note & FILE_BACKED == 0);
    let numbered = (first as u32..).zip(notes.chunks_exact(8));
    let found = numbered
        .filter(|(_, raw)| written(u64::from_ne_bytes((*raw).try_into().expect("eight bytes"))))
        .map(|(number, _)| number);
    Some(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mapping of `pages` pages of zeros.
    fn mapping(pages: usize) -> &'static mut [u8] {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping that nothing else knows of; it is leaked, so the slice stays valid.
        unsafe {
            let base = libc::mmap(std::ptr::null_mut(), pages * PAGE, protection, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            libc::madvise(base, pages * PAGE, libc::MADV_NOHUGEPAGE);
            std::slice::from_raw_parts_mut(base.cast(), pages * PAGE)
        }
    }

    #[test]
    fn both_questions_find_what_was_written_and_no_more() {
        let memory = mapping(1_000);
        // More separate ranges than one answer holds.
        let expected: Vec<u32> = (3..1_000)
            .step_by(3)
            .chain([4, 5])
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        for &number in &expected {
            memory[number as usize * PAGE + 7] = 1;
        }
        assert_eq!(written(memory, 0), expected);
        assert_eq!(
            read(pagemap().expect("a pagemap"), memory.as_ptr() as usize / PAGE, 0, 1_000),
            Some(expected.clone())
        );
        let later: Vec<u32> = expected.iter().copied().filter(|&n| n >= 10).collect();
        assert_eq!(written(memory, 10 * PAGE + 99), later);
        assert_eq!(written(memory, 1_000 * PAGE), Vec::<u32>::new());
    }

    #[test]
    fn pages_that_are_watched_are_found_when_they_are_written_again() {
        let memory = mapping(600);
        (0..600).step_by(2).for_each(|number| memory[number * PAGE] = 1);
        assert_eq!(written_lately(memory, 0), written(memory, 0), "nothing is watched yet");
        if !watch(memory, PAGE, 0) {
            // This Linux cannot: what follows would not be true.
            return;
        }
        assert_eq!(written_lately(memory, 0), [0], "below what is watched");
        assert_eq!(written(memory, 0).len(), 300);
        memory[4 * PAGE + 9] = 2;
        memory[5 * PAGE] = 1;
        assert_eq!(memory[8 * PAGE], 1, "reading is not writing");
        // By the system's own hand.
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(&[7; 10], 0).expect("written");
        file.read_exact_at(&mut memory[10 * PAGE..10 * PAGE + 10], 0).expect("read");
        assert_eq!(written_lately(memory, PAGE), [4, 5, 10]);
        assert_eq!(written_lately(memory, PAGE), [4, 5, 10], "asking changes nothing");
        assert!(watch(memory, PAGE, 600 * PAGE));
        assert_eq!(written_lately(memory, PAGE), Vec::<u32>::new());
        assert_eq!(written(memory, 0).len(), 301);
        assert_eq!((memory[4 * PAGE + 9], memory[10 * PAGE]), (2, 7));
    }
}
