//! The memory of an idle process: a template and the pages that differ from it.
//!
//! Restoring and forking cost what was written since the template was mapped, not the size of the memory. Capturing a
//! process that has rested before costs what was written since then: the rest is shared with the image of that time. A page
//! equal to an ancestor's is stored once.
//!
//! Bytes below the stack pointer belong to frames that have returned; they are never copied.
//!
//! A large memory is copied in pieces, and others run in between. Nothing can write it meanwhile: its process is in the
//! call that copies it. If it is killed in the middle, it drops an unfinished copy that no one else has seen.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use wardian_vfs::Errno;
use wasmtime::Memory;

use crate::instance::{Ctx, Instance, Tenant};
use crate::memory::pages::{self, PAGE, Page, page};
use crate::memory::template::{Shared, Template};
use crate::pause::pause;
use crate::room::Berth;

const WASM_PAGE: usize = 65536;
/// How many pages are copied in one go: a mebibyte.
pub(crate) const PIECE: usize = (1 << 20) / PAGE;

/// Lets others run after a whole piece. Small copies are done without a pause.
pub(crate) async fn between_pieces<T>(piece: &[T]) {
    if piece.len() >= PIECE {
        pause().await;
    }
}

/// A memory at rest.
pub struct Image {
    /// Bytes of linear memory.
    size: usize,
    stack_pointer: u32,
    /// What it is mapped over; without one, a fresh instance.
    template: Option<Arc<Template>>,
    /// The pages that differ from that, by their numbers.
    pages: Pages,
    /// How much of it began as a start image.
    start: Shared,
    /// Tells it from all others.
    number: u64,
}

type Pages = OrdMap<u32, Kept>;

/// A page's contents. Two are equal if they are one copy.
#[derive(Clone)]
struct Kept(Arc<Page>);

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

fn next_number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// Pages, each with its number.
pub(crate) type NumberedPages = Vec<(u32, Arc<Page>)>;

impl Image {
    /// Returns the bytes that it keeps and `other` does not.
    pub(crate) fn bytes_beyond(&self, other: Option<&Image>) -> u64 {
        if other.is_some_and(|other| std::ptr::eq(self, other)) {
            return 0;
        }
        let template = self.template.as_ref().filter(|template| {
            let known = other.and_then(|other| other.template.as_ref());
            !template.ships() && known.is_none_or(|known| !Arc::ptr_eq(known, template))
        });
        let pages = match other {
            None => self.pages.len(),
            Some(other) => {
                let is_own = |item: &DiffItem<'_, '_, u32, Kept>| !matches!(item, DiffItem::Remove(..));
                other.pages.diff(&self.pages).filter(is_own).count()
            }
        };
        let pages = pages + template.map_or(0, |template| template.pages());
        // The list of pages is its own, even where all of them are shared.
        (pages * size_of::<Page>() + self.pages.len() * size_of::<(u32, Kept)>()) as u64
    }

    /// Captures an instance with no frame on its stack. Pages equal to those of `ancestor` are shared with it; if that is
    /// what the instance was at its last rest, only what it wrote since then is looked at.
    pub(crate) async fn capture(instance: &mut Instance, ancestor: Option<&Image>) -> Image {
        let stack_pointer = instance.stack_pointer();
        let (number, start) = (next_number(), stack_pointer as usize);
        let Some(memory) = instance.store.data().memory else {
            let (template, pages, start) = (None, Pages::new(), Shared::default());
            return Image { size: 0, stack_pointer, template, pages, start, number };
        };
        let (bytes, ctx) = memory.data_and_store_mut(&mut instance.store);
        let (program, ground) = (ctx.program.clone(), &mut ctx.ground);
        let ancestor = ancestor.filter(|image| same(&image.template, &ground.template()));
        let last = ancestor.filter(|image| ground.was(image.number) && image.stack_pointer == stack_pointer);
        let (written, gone) = match last {
            Some(_) => ground.written_lately(bytes, start, &program.stock),
            None => (ground.written(bytes, start, &program.stock), Vec::new()),
        };
        let mut pages = last.map(|image| image.pages.clone()).unwrap_or_default();
        gone.iter().for_each(|number| drop(pages.remove(number)));
        let more = written.iter().filter(|&number| !pages.contains_key(number)).count();
        if ground.is_worth_replacing(pages.len() + more)
            && ground.replace_by(bytes, start, &union(&pages, &written)).await
        {
            pages = Pages::new();
        } else {
            let relative = if last.is_some() { None } else { ancestor };
            let changed = update(&mut pages, bytes, &written, relative).await;
            ground.watch(bytes, start, written.len() - changed, changed);
        }
        ground.is_now(number, false);
        ctx.count_image(bytes);
        let (template, start) = (ctx.ground.template(), ctx.ground.shared());
        Image { size: bytes.len(), stack_pointer, template, pages, start, number }
    }

    /// Makes a start image of one that a program has prepared: all of it is shared by those that start from it.
    pub(crate) fn into_start(self) -> Image {
        let start = Shared { bytes: self.size, own_pages: 0 };
        Image { start, ..self }
    }

    /// A start image from its parts.
    pub(crate) fn of_template(size: usize, stack_pointer: u32, template: Template) -> Image {
        Image {
            size,
            stack_pointer,
            template: Some(Arc::new(template)),
            pages: Pages::new(),
            start: Shared::default(),
            number: next_number(),
        }
        .into_start()
    }

    /// Its template, if that is all of it.
    pub(crate) fn template_alone(&self) -> Option<&Template> {
        self.template.as_deref().filter(|_| self.pages.is_empty())
    }

    /// Returns an instance of the tenant's program that is this image: one that is mapped over its template already, if
    /// there is one. Such an instance has pages of its own that are as in the template; `sheds` gives them back, for a
    /// process of which images will be taken.
    pub(crate) async fn start(&self, tenant: Tenant, berth: Berth, sheds: bool) -> Result<Instance, Errno> {
        if let Some(template) = &self.template
            && let Some(idle) = template.take_idle()
        {
            let mut instance = idle.given_to(tenant, berth)?;
            self.restore(&mut instance, Some(template), sheds).await?;
            return Ok(instance);
        }
        let mut instance = Instance::start_at_once(tenant, berth).await?;
        self.restore(&mut instance, None, sheds).await?;
        Ok(instance)
    }

    /// Restores the image in an instance that is fresh, or mapped over its template and otherwise fresh.
    async fn restore(
        &self,
        instance: &mut Instance,
        over: Option<&Arc<Template>>,
        sheds: bool,
    ) -> Result<(), Errno> {
        let Some(memory) = instance.store.data().memory else { return Ok(()) };
        instance.store.data_mut().share_start(self.start);
        if over.is_some() {
            instance.store.data().charge_mapped(memory.data_size(&instance.store))?;
        }
        grow_to(memory, &mut instance.store, self.size).await?;
        let (bytes, ctx) = memory.data_and_store_mut(&mut instance.store);
        match over {
            Some(template) => ctx.ground.is_over(template, self.start),
            None => ctx.ground.become_like(&self.template, self.start, bytes)?,
        }
        if over.is_some() && sheds {
            self.shed(bytes)?;
        }
        ctx.count_image(bytes);
        for (count, (number, Kept(contents))) in self.pages.iter().enumerate() {
            let start = *number as usize * PAGE;
            bytes[start..start + PAGE].copy_from_slice(&contents[..]);
            if (count + 1).is_multiple_of(PIECE) {
                pause().await;
            }
        }
        ctx.ground.is_now(self.number, true);
        instance.set_stack_pointer(self.stack_pointer)
    }

    /// Gives back pages of `memory` that are its own, but as in the template.
    fn shed(&self, memory: &mut [u8]) -> Result<(), Errno> {
        let mut own = pages::written(memory, self.stack_pointer as usize);
        own.retain(|number| !self.pages.contains_key(number));
        for run in own.chunk_by(|a, b| a + 1 == *b) {
            let from = run[0] as usize * PAGE;
            pages::forget(&mut memory[from..from + run.len() * PAGE]).map_err(|_| Errno::ENOMEM)?;
        }
        Ok(())
    }

    /// Returns its size in bytes and its stack pointer.
    pub fn shape(&self) -> (usize, u32) {
        (self.size, self.stack_pointer)
    }

    /// Returns every page that may differ from a fresh instance of the program, in rising order: the image without its
    /// template, to be stored elsewhere.
    pub fn flatten(&self) -> io::Result<Vec<(u32, Arc<Page>)>> {
        let mut all = BTreeMap::new();
        if let Some(template) = &self.template {
            for kept in template.contents() {
                let (number, contents) = kept?;
                all.insert(number, Arc::from(contents));
            }
        }
        all.extend(self.pages.iter().map(|(number, contents)| (*number, contents.0.clone())));
        Ok(all.into_iter().collect())
    }

    /// Returns its parts, to be stored separately: what it is mapped over, the pages that differ from that, and how much of
    /// it began as a start image.
    pub(crate) fn parts(&self) -> (Option<&Arc<Template>>, NumberedPages, Shared) {
        let pages = self.pages.iter().map(|(number, contents)| (*number, contents.0.clone()));
        (self.template.as_ref(), pages.collect(), self.start)
    }

    /// Rebuilds an image from these parts; `None` if they cannot belong together.
    pub(crate) fn from_parts(
        (size, stack_pointer): (usize, u32),
        template: Option<Template>,
        pages: Vec<(u32, Arc<Page>)>,
        start: Shared,
    ) -> Option<Image> {
        let inside = template.as_ref().is_none_or(|template| template.range().1 <= size);
        let image = Image::rebuild(size, stack_pointer, pages).filter(|_| inside)?;
        Some(Image { template: template.map(Arc::new), start, ..image })
    }

    /// Rebuilds an image from the results of [`Image::shape`] and [`Image::flatten`]; `None` if they cannot belong
    /// together.
    pub fn rebuild(size: usize, stack_pointer: u32, pages: Vec<(u32, Arc<Page>)>) -> Option<Image> {
        let rising = pages.is_sorted_by(|(a, _), (b, _)| a < b);
        let inside = pages.last().is_none_or(|(number, _)| (*number as usize) < size / PAGE);
        let whole = size.is_multiple_of(WASM_PAGE) && size <= 1 << 32 && stack_pointer as usize <= size;
        (rising && inside && whole).then(|| Image {
            size,
            stack_pointer,
            template: None,
            pages: pages.into_iter().map(|(number, contents)| (number, Kept(contents))).collect(),
            start: Shared::default(),
            number: next_number(),
        })
    }
}

fn same(a: &Option<Arc<Template>>, b: &Option<Arc<Template>>) -> bool {
    a.as_ref().map(Arc::as_ptr) == b.as_ref().map(Arc::as_ptr)
}

/// The numbers of both, in rising order.
fn union(pages: &Pages, written: &[u32]) -> Vec<u32> {
    let mut all: Vec<u32> = pages.keys().chain(written).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Brings `pages` up to date with the `written` pages of `memory`, sharing what is equal with `relative`. Returns how many
/// had changed.
async fn update(pages: &mut Pages, memory: &[u8], written: &[u32], relative: Option<&Image>) -> usize {
    let (mut changed, mut copied) = (0, 0_usize);
    for piece in written.chunks(PIECE) {
        for &number in piece {
            let contents = page(memory, number);
            let is_same = |kept: &&Kept| *kept.0 == *contents;
            if pages.get(&number).as_ref().is_some_and(is_same) {
                continue;
            }
            let shared = relative.and_then(|image| image.pages.get(&number)).filter(is_same).cloned();
            let kept = shared.unwrap_or_else(|| {
                if copied.is_multiple_of(COPIES_AT_ONCE) {
                    make_room();
                }
                copied += 1;
                Kept(Arc::new(*contents))
            });
            pages.insert(number, kept);
            changed += 1;
        }
        between_pieces(piece).await;
    }
    changed
}

/// For so many copies of pages room is made at once: less than the allocator returns to the system when it is free.
const COPIES_AT_ONCE: usize = 28;

/// glibc extends a thread's arena by exactly what is asked for, with a system call each time. So that a copy of many pages does
/// not make as many calls, a large piece is asked for first, and given back to be cut up.
fn make_room() {
    let room: Vec<u8> = Vec::with_capacity(COPIES_AT_ONCE * (PAGE + 64));
    drop(std::hint::black_box(room));
}

/// What a child must be given of its parent's memory: the memory half of fork.
pub(crate) struct Inheritance {
    size: usize,
    stack_pointer: u32,
    template: Option<Arc<Template>>,
    written: Vec<u32>,
    start: Shared,
}

impl Inheritance {
    /// Determines what the caller wrote, from `stack_pointer` up.
    pub(crate) async fn of(
        parent: &mut wasmtime::Caller<'_, Ctx>,
        memory: Memory,
        stack_pointer: u32,
    ) -> Inheritance {
        let (bytes, ctx) = memory.data_and_store_mut(&mut *parent);
        let program = ctx.program.clone();
        let written = ctx.ground.settle(bytes, stack_pointer as usize, &program.stock).await;
        ctx.count_image(bytes);
        let (template, start) = (ctx.ground.template(), ctx.ground.shared());
        Inheritance { size: bytes.len(), stack_pointer, template, written, start }
    }

    /// Copies it to a fresh instance, `parent` being the memory it comes from.
    pub(crate) async fn give(&self, parent: &[u8], child: &mut Instance) -> Result<(), Errno> {
        let memory = child.store.data().memory.ok_or(Errno::ENOSYS)?;
        child.store.data_mut().share_start(self.start);
        grow_to(memory, &mut child.store, self.size).await?;
        let (bytes, ctx) = memory.data_and_store_mut(&mut child.store);
        ctx.ground.become_like(&self.template, self.start, bytes)?;
        ctx.count_image(bytes);
        for piece in self.written.chunks(PIECE) {
            for number in piece {
                let start = *number as usize * PAGE;
                bytes[start..start + PAGE].copy_from_slice(&parent[start..start + PAGE]);
            }
            between_pieces(piece).await;
        }
        child.set_stack_pointer(self.stack_pointer)
    }
}

async fn grow_to(memory: Memory, store: &mut wasmtime::Store<Ctx>, size: usize) -> Result<(), Errno> {
    let have = memory.data_size(&*store);
    if size > have {
        let more = (size - have) / WASM_PAGE;
        memory.grow_async(&mut *store, more as u64).await.map_err(|_| Errno::ENOMEM)?;
    }
    Ok(())
}
