//! A process's memory at rest: the pages that differ from a fresh instance of its program.
//!
//! A fresh instance's memory is the module's own image, mapped copy-on-write, and zeros. Linux knows which pages
//! were written since: in `/proc/self/pagemap` they are present (or swapped) and not file-backed. So capturing,
//! restoring and forking cost what was written, not what the memory measures. A page equal to an ancestor's is kept
//! once.
//!
//! Bytes below the stack pointer belong to frames that have returned; they are never copied.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

use wardian_vfs::Errno;
use wasmtime::Memory;

use crate::instance::Instance;

const PAGE: usize = 4096;
const WASM_PAGE: usize = 65536;

type Page = [u8; PAGE];

/// A memory at rest.
pub struct Image {
    /// Bytes of linear memory.
    size: usize,
    stack_pointer: u32,
    /// Page numbers in rising order, with their contents.
    pages: Vec<(u32, Arc<Page>)>,
}

impl Image {
    /// Takes the image of an instance with no frame on its stack. Pages that are as in `ancestor` are shared with it.
    pub(crate) fn capture(instance: &mut Instance, ancestor: Option<&Image>) -> Image {
        let stack_pointer = instance.stack_pointer();
        let Some(memory) = instance.store.data().memory else {
            return Image { size: 0, stack_pointer, pages: Vec::new() };
        };
        let bytes = memory.data(&instance.store);
        let pages = written_pages(bytes, stack_pointer as usize)
            .into_iter()
            .map(|number| (number, shared_or_copied(page(bytes, number), number, ancestor)))
            .collect();
        Image { size: bytes.len(), stack_pointer, pages }
    }

    /// Makes a fresh instance of the same program be as this image says.
    pub(crate) async fn restore(&self, instance: &mut Instance) -> Result<(), Errno> {
        let Some(memory) = instance.store.data().memory else { return Ok(()) };
        grow_to(memory, &mut instance.store, self.size).await?;
        let bytes = memory.data_mut(&mut instance.store);
        for (number, contents) in &self.pages {
            let start = *number as usize * PAGE;
            bytes[start..start + PAGE].copy_from_slice(&contents[..]);
        }
        instance.set_stack_pointer(self.stack_pointer)
    }
}

fn page(bytes: &[u8], number: u32) -> &Page {
    let start = number as usize * PAGE;
    bytes[start..start + PAGE].try_into().expect("a slice of one page")
}

fn shared_or_copied(contents: &Page, number: u32, ancestor: Option<&Image>) -> Arc<Page> {
    let kept = ancestor.and_then(|image| {
        let at = image.pages.binary_search_by_key(&number, |(n, _)| *n).ok()?;
        Some(&image.pages[at].1).filter(|kept| ***kept == *contents)
    });
    kept.cloned().unwrap_or_else(|| Arc::new(*contents))
}

/// Copies what `parent` wrote, from `stack_pointer` up, into a fresh instance's memory: the memory half of fork.
pub(crate) async fn copy_written(
    parent: &[u8],
    stack_pointer: u32,
    child: &mut Instance,
) -> Result<(), Errno> {
    let memory = child.store.data().memory.ok_or(Errno::ENOSYS)?;
    grow_to(memory, &mut child.store, parent.len()).await?;
    let bytes = memory.data_mut(&mut child.store);
    for number in written_pages(parent, stack_pointer as usize) {
        let start = number as usize * PAGE;
        bytes[start..start + PAGE].copy_from_slice(&parent[start..start + PAGE]);
    }
    child.set_stack_pointer(stack_pointer)
}

async fn grow_to(
    memory: Memory,
    store: &mut wasmtime::Store<crate::instance::Ctx>,
    size: usize,
) -> Result<(), Errno> {
    let have = memory.data_size(&*store);
    if size > have {
        let more = (size - have) / WASM_PAGE;
        memory.grow_async(&mut *store, more as u64).await.map_err(|_| Errno::ENOMEM)?;
    }
    Ok(())
}

/// Numbers of the pages from `start` up that may differ from a fresh instance's.
fn written_pages(memory: &[u8], start: usize) -> Vec<u32> {
    let (first, end) = (start / PAGE, memory.len() / PAGE);
    if first >= end {
        return Vec::new();
    }
    let Some(entries) = pagemap_entries(memory, first, end) else {
        return (first as u32..end as u32).collect();
    };
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const FILE_BACKED: u64 = 1 << 61;
    let written = |entry: u64| entry & SWAPPED != 0 || (entry & PRESENT != 0 && entry & FILE_BACKED == 0);
    let numbered = (first as u32..).zip(entries.chunks_exact(8));
    numbered
        .filter(|(_, raw)| written(u64::from_ne_bytes((*raw).try_into().expect("eight bytes"))))
        .map(|(number, _)| number)
        .collect()
}

/// The kernel's notes on each page, or `None` where it does not give them: then every page counts as written.
fn pagemap_entries(memory: &[u8], first: usize, end: usize) -> Option<Vec<u8>> {
    static PAGEMAP: OnceLock<Option<File>> = OnceLock::new();
    let pagemap = PAGEMAP.get_or_init(|| File::open("/proc/self/pagemap").ok()).as_ref()?;
    let mut entries = vec![0; (end - first) * 8];
    let page_of_memory = memory.as_ptr() as usize / PAGE;
    pagemap.read_exact_at(&mut entries, ((page_of_memory + first) * 8) as u64).ok()?;
    Some(entries)
}
