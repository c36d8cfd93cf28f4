//! A memory kept in a file, to be mapped copy-on-write under instances.
//!
//! Mapping costs the same whether the memory is one mebibyte or a hundred; what an instance then writes is its own, and
//! what it only reads is shared with all instances over the same template. The file has no name and is sealed: nothing
//! can change what instances see through it. A start image's file has a name (`kept.rs`), in a directory that only this user
//! can write.
//!
//! Templates are shared by descent only: a process and its forks, a sandbox and its forks. Two that happen to be equal
//! are kept twice, since searching for equal ones among strangers would reveal to one sandbox what another has in
//! memory.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use wardian_vfs::Errno;

use crate::descriptors::{Share, Use};
use crate::instance::Instance;
use crate::memory::image::{PIECE, between_pieces};
use crate::memory::pages::{self, PAGE, Page};
use crate::stock::Stock;

/// A memory from byte `start` to byte `end`, both multiples of a page.
pub(crate) struct Template {
    file: File,
    start: usize,
    end: usize,
    /// Numbers of the pages in the file; the others are zeros.
    kept: Vec<u32>,
    /// It is a start image, which belongs to no sandbox.
    ships: bool,
    /// Instances that are mapped over it and nobody uses. They do not refer to it, so they go with it.
    idle: Mutex<Vec<Instance>>,
    /// Its name in a store, once it has one.
    name: OnceLock<[u8; 32]>,
    _descriptor: Share,
}

/// How many idle instances are kept over a template.
const IDLE: usize = 16;
/// How many are kept over all templates of sandboxes, which nobody is charged for.
const IDLE_IN_ALL: usize = 32;
/// How many there are.
static KEPT_IN_ALL: AtomicUsize = AtomicUsize::new(0);
/// An instance that wrote more pages than this is not kept: it would hold too much while idle.
const WORTH_REWINDING: usize = 768;

impl Template {
    /// Stores `memory` from the page of byte `start` up. `written` are the pages that differ from `base`, the template
    /// it is mapped over, or if there is none, from a fresh instance, whose memory is `fresh` bytes long.
    pub(crate) async fn new(
        memory: &[u8],
        start: usize,
        written: &[u32],
        base: Option<&Template>,
        fresh: usize,
    ) -> io::Result<Template> {
        let (start, end) = (start / PAGE * PAGE, memory.len());
        // A fresh instance is not all zeros: of what it starts with, zeros are kept too.
        let mut kept: Vec<u32> = ((start / PAGE) as u32..(fresh.min(end) / PAGE) as u32).collect();
        kept.extend(base.iter().flat_map(|base| &base.kept).filter(|&&n| n as usize * PAGE >= start));
        kept.extend(written);
        kept.sort_unstable();
        kept.dedup();
        let descriptor = Share::take(Use::Memory)?;
        let file = memory_file(c"wardian-template")?;
        file.set_len(end as u64)?;
        for piece in kept.chunks(PIECE) {
            for run in piece.chunk_by(|a, b| a + 1 == *b) {
                let from = run[0] as usize * PAGE;
                file.write_all_at(&memory[from..from + run.len() * PAGE], from as u64)?;
            }
            between_pieces(piece).await;
        }
        seal(&file)?;
        let name = OnceLock::new();
        Ok(Template {
            file,
            start,
            end,
            kept,
            ships: false,
            name,
            idle: Mutex::default(),
            _descriptor: descriptor,
        })
    }

    /// One that a store has under this name, in a file that nobody changes.
    pub(crate) fn stored(
        name: [u8; 32],
        file: File,
        (start, end): (usize, usize),
        kept: Vec<u32>,
    ) -> io::Result<Template> {
        let inside = |&number: &u32| (start / PAGE..end / PAGE).contains(&(number as usize));
        let whole = start.is_multiple_of(PAGE) && end.is_multiple_of(PAGE) && start <= end;
        if !whole || !kept.iter().all(inside) || !kept.is_sorted_by(|a, b| a < b) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // Beyond the end of the file there would be no memory.
        if file.metadata()?.len() < end as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut template = Template::in_file(file, start, end, kept)?;
        template.ships = false;
        template.name = OnceLock::from(name);
        Ok(template)
    }

    /// Returns where its name in a store is noted.
    pub(crate) fn name(&self) -> &OnceLock<[u8; 32]> {
        &self.name
    }

    /// One whose contents lie in a file, where a memory would have them.
    pub(crate) fn in_file(file: File, start: usize, end: usize, kept: Vec<u32>) -> io::Result<Template> {
        let descriptor = Share::take(Use::Memory)?;
        let name = OnceLock::new();
        Ok(Template {
            file,
            start,
            end,
            kept,
            ships: true,
            name,
            idle: Mutex::default(),
            _descriptor: descriptor,
        })
    }

    /// Returns from where to where it reaches.
    pub(crate) fn range(&self) -> (usize, usize) {
        (self.start, self.end)
    }

    /// Returns the numbers of the pages it holds.
    pub(crate) fn kept(&self) -> &[u32] {
        &self.kept
    }

    /// Returns whether it is a start image.
    pub(crate) fn ships(&self) -> bool {
        self.ships
    }

    /// Returns how many pages it holds.
    pub(crate) fn pages(&self) -> usize {
        self.kept.len()
    }

    /// Maps it over `memory`, an instance's that is at least as long. Discards what was there before.
    pub(crate) fn map_over(&self, memory: &mut [u8]) -> io::Result<()> {
        let place = &mut memory[self.start..self.end];
        if place.is_empty() {
            return Ok(());
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the range is the accessible memory of one instance, borrowed mutably here, so that nothing else reads
        // or writes it meanwhile. It stays readable and writable, and lies in the reservation that wasmtime unmaps as a
        // whole with the instance: memories are allocated on demand, never from a pool.
        let mapped = unsafe {
            libc::mmap(
                place.as_mut_ptr().cast(),
                place.len(),
                protection,
                flags,
                self.file.as_raw_fd(),
                self.start as i64,
            )
        };
        if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Resets `memory`, which is mapped over it and as long, to what it was then. Pages that were written stay the
    /// instance's own: the next to write them has no page fault. Returns `None` if that is not worth it.
    fn rewind(&self, memory: &mut [u8]) -> Option<()> {
        let written = pages::written(memory, self.start);
        if written.len() > WORTH_REWINDING {
            return None;
        }
        if self.start > 0 {
            pages::forget(&mut memory[..self.start]).ok()?;
        }
        for run in written.chunk_by(|a, b| a + 1 == *b) {
            let from = run[0] as usize * PAGE;
            self.file.read_exact_at(&mut memory[from..from + run.len() * PAGE], from as u64).ok()?;
        }
        Some(())
    }

    /// Keeps an instance that is mapped over it and was reset.
    pub(crate) fn keep(&self, instance: Instance) {
        let mut idle = self.idle.lock();
        let room = self.ships || KEPT_IN_ALL.load(Ordering::Relaxed) < IDLE_IN_ALL;
        if room && idle.len() < IDLE {
            self.count(1);
            idle.push(instance);
        } else {
            drop(idle);
            drop(instance);
        }
    }

    fn count(&self, kept: usize) {
        if !self.ships {
            KEPT_IN_ALL.fetch_add(kept, Ordering::Relaxed);
        }
    }

    fn discount(&self, gone: usize) {
        if !self.ships {
            KEPT_IN_ALL.fetch_sub(gone, Ordering::Relaxed);
        }
    }

    /// Returns an instance that is mapped over it and otherwise fresh, if there is one.
    pub(crate) fn take_idle(&self) -> Option<Instance> {
        let idle = self.idle.lock().pop();
        self.discount(usize::from(idle.is_some()));
        idle
    }

    /// Returns its contents of each page, in rising order.
    pub(crate) fn contents(&self) -> impl Iterator<Item = io::Result<(u32, Box<Page>)>> + '_ {
        self.kept.iter().map(|&number| {
            let mut page = Box::new([0; PAGE]);
            self.file.read_exact_at(&mut page[..], u64::from(number) * PAGE as u64)?;
            Ok((number, page))
        })
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        let gone = self.idle.get_mut().len();
        self.discount(gone);
    }
}

fn memory_file(name: &CStr) -> io::Result<File> {
    // SAFETY: the name is a C string; the answer is a new descriptor that nothing else owns.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(fd)) }
    }
}

fn seal(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: a call on a descriptor that `file` owns.
    let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
    if sealed < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The part of a memory that began as a start image, which all who start from it share. It is charged where it is
/// written (`footprint.rs`), not where it is mapped.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shared {
    /// So many bytes from the beginning of the memory.
    pub(crate) bytes: usize,
    /// How many of these pages the process's template has of its own, at most.
    pub(crate) own_pages: usize,
}

/// What an instance's memory was when it was last mapped.
#[derive(Default)]
pub(crate) struct Ground {
    template: Option<Arc<Template>>,
    shared: Shared,
    /// Bytes of memory that a fresh instance of the program has.
    fresh: usize,
    /// The image that the memory was when its process last rested, by its number.
    image: Option<u64>,
    /// Whether it has rested as this instance, and was not only restored.
    has_rested: bool,
    /// Up to here, writes to its memory can be noted.
    watched: usize,
}

/// Fewer pages than this are faster to copy than to map.
const WORTH_MAPPING: usize = 256;
/// So few pages are faster to compare than to watch.
const WORTH_WATCHING: usize = 64;

impl Ground {
    /// The ground of a fresh instance with `bytes` of memory.
    pub(crate) fn fresh(bytes: usize) -> Ground {
        Ground { fresh: bytes, ..Ground::default() }
    }

    /// Bytes of memory that a fresh instance has.
    pub(crate) fn fresh_bytes(&self) -> usize {
        self.fresh
    }

    /// What of it is shared with others that started from the same image.
    pub(crate) fn shared(&self) -> Shared {
        self.shared
    }

    /// The template it is mapped over, if any.
    pub(crate) fn template(&self) -> Option<Arc<Template>> {
        self.template.clone()
    }

    /// Maps the template that another is based on under a fresh instance's `memory`.
    pub(crate) fn become_like(
        &mut self,
        other: &Option<Arc<Template>>,
        shared: Shared,
        memory: &mut [u8],
    ) -> Result<(), Errno> {
        if let Some(template) = other {
            template.map_over(memory).map_err(|_| Errno::ENOMEM)?;
        }
        *self = Ground { template: other.clone(), shared, fresh: self.fresh, ..Ground::default() };
        Ok(())
    }

    /// Notes that the memory of an instance that [was kept](Template::keep) is mapped over this template.
    pub(crate) fn is_over(&mut self, template: &Arc<Template>, shared: Shared) {
        *self = Ground { template: Some(template.clone()), shared, fresh: self.fresh, ..Ground::default() };
    }

    /// Resets `memory` to its template, which is returned to [keep](Template::keep) the instance; nothing if that is not
    /// worth it, or not possible: a memory cannot shrink.
    pub(crate) fn rewind(&mut self, memory: &mut [u8]) -> Option<Arc<Template>> {
        let template = self.template.take()?;
        if self.watched > 0 || memory.len() != template.end || template.idle.lock().len() >= IDLE {
            return None;
        }
        template.rewind(memory)?;
        *self = Ground { fresh: self.fresh, ..Ground::default() };
        Some(template)
    }

    /// Returns the pages of `memory` that differ from its ground, from byte `start` up. If there are many, the current
    /// memory becomes the ground, shared from now on with everything created from it, and none differ.
    pub(crate) async fn settle(&mut self, memory: &mut [u8], start: usize, stock: &Stock) -> Vec<u32> {
        let written = self.written(memory, start, stock);
        if self.replace_by(memory, start, &written).await { Vec::new() } else { written }
    }

    /// Returns the pages of `memory` that differ from its ground.
    pub(crate) fn written(&self, memory: &[u8], start: usize, stock: &Stock) -> Vec<u32> {
        self.without_fresh(pages::written(memory, start), memory, stock).0
    }

    /// Returns the pages of `memory` that may differ from the image it was at its last rest, and those that are again what
    /// they are in a fresh instance.
    pub(crate) fn written_lately(&self, memory: &[u8], start: usize, stock: &Stock) -> (Vec<u32>, Vec<u32>) {
        self.without_fresh(pages::written_lately(memory, start), memory, stock)
    }

    fn without_fresh(&self, written: Vec<u32>, memory: &[u8], stock: &Stock) -> (Vec<u32>, Vec<u32>) {
        match self.template {
            Some(_) => (written, Vec::new()),
            None => stock.leave_out_fresh(written, memory),
        }
    }

    /// Makes the current memory the ground, of which `written` differ from the present one, if these are many. That pays off:
    /// the ground is captured again only when a quarter of it was written.
    pub(crate) async fn replace_by(&mut self, memory: &mut [u8], start: usize, written: &[u32]) -> bool {
        if !self.is_worth_replacing(written.len()) {
            return false;
        }
        let taken = self.take_anew(memory, start, written).await;
        // If there are no more files or mappings, copying page by page still works.
        taken.inspect_err(|error| tracing::debug!(%error, "no template")).is_ok()
    }

    /// Returns whether so many pages differ from it that it should be captured again.
    pub(crate) fn is_worth_replacing(&self, written: usize) -> bool {
        let known = self.template.as_ref().map_or(0, |template| template.pages());
        written >= WORTH_MAPPING.max(known / 4)
    }

    /// Returns whether the memory was this image, over this ground, when its process last rested.
    pub(crate) fn was(&self, image: u64) -> bool {
        self.image == Some(image)
    }

    /// Notes that the memory is this image now: it was `restored` from it, or the process rests and it was captured.
    pub(crate) fn is_now(&mut self, image: u64, restored: bool) {
        self.image = Some(image);
        self.has_rested = !restored;
    }

    /// Has Linux note what is written of `memory` from now on, if that pays off: at this rest, `same` of the pages that were
    /// compared had not changed since the last, and `changed` had. Each of these is going to cost a page fault if it is
    /// written again; so a process that writes the same pages in each command is left alone.
    pub(crate) fn watch(&mut self, memory: &mut [u8], start: usize, same: usize, changed: usize) {
        if self.has_rested && same > changed + WORTH_WATCHING && pages::watch(memory, start, self.watched) {
            self.watched = memory.len();
        }
    }

    /// Resets `memory` to that of a fresh instance. Returns `None` if it is not worth it, or not possible: a memory
    /// cannot shrink, and a template is not removed from under it.
    pub(crate) fn wipe(&self, memory: &mut [u8], stock: &Stock) -> Option<()> {
        if self.template.is_some() || memory.len() != self.fresh {
            return None;
        }
        stock.wipe(memory)
    }

    async fn take_anew(&mut self, memory: &mut [u8], start: usize, written: &[u32]) -> io::Result<()> {
        let template = Template::new(memory, start, written, self.template.as_deref(), self.fresh).await?;
        template.map_over(memory)?;
        self.template = Some(Arc::new(template));
        (self.image, self.watched) = (None, 0);
        let shared_pages = self.shared.bytes / PAGE;
        let own = written.partition_point(|&number| (number as usize) < shared_pages);
        self.shared.own_pages = (self.shared.own_pages + own).min(shared_pages);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Lets others run after each mebibyte.
    #[test]
    fn a_large_memory_is_kept_in_pieces() {
        let memory = vec![7; 64 << 20];
        let all: Vec<u32> = (0..(memory.len() / PAGE) as u32).collect();
        let mut made = pin!(Template::new(&memory, 0, &all, None, 0));
        let mut cx = Context::from_waker(Waker::noop());
        let mut turns = 0;
        let template = loop {
            match made.as_mut().poll(&mut cx) {
                Poll::Ready(template) => break template.expect("a template"),
                Poll::Pending => turns += 1,
            }
        };
        assert_eq!(turns, 64);
        assert!(template.contents().all(|page| page.is_ok_and(|(_, bytes)| *bytes == [7; PAGE])));
    }
}
