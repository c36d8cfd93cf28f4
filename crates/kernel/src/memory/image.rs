//! The memory of an idle process: a template and the pages that differ from it.
//!
//! Capturing, restoring and forking cost what was written since the template was mapped, not the size of the memory. A
//! page equal to an ancestor's is stored once.
//!
//! Bytes below the stack pointer belong to frames that have returned; they are never copied.
//!
//! A large memory is copied in pieces, and others run in between. Nothing can write it meanwhile: its process is in the
//! call that copies it. If it is killed in the middle, it drops an unfinished copy that no one else has seen.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use wardian_vfs::Errno;
use wasmtime::Memory;

use crate::instance::{Ctx, Instance};
use crate::memory::pages::{PAGE, Page, page};
use crate::memory::template::{Shared, Template};
use crate::pause::pause;

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
    /// The pages that differ from that: numbers in rising order, with their contents.
    pages: Vec<(u32, Arc<Page>)>,
    /// How much of it began as a start image.
    start: Shared,
}

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
        let known = other.map_or(&[][..], |other| &other.pages);
        let mut known = known.iter().peekable();
        let is_new = |(number, page): &&(u32, Arc<Page>)| {
            while known.next_if(|(other, _)| other < number).is_some() {}
            known.peek().is_none_or(|(other, theirs)| other != number || !Arc::ptr_eq(theirs, page))
        };
        let pages =
            self.pages.iter().filter(is_new).count() + template.map_or(0, |template| template.pages());
        // The list of pages is its own, even where all of them are shared.
        (pages * size_of::<Page>() + self.pages.len() * size_of::<(u32, Arc<Page>)>()) as u64
    }

    /// Captures an instance with no frame on its stack. Pages equal to those of `ancestor` are shared with it.
    pub(crate) async fn capture(instance: &mut Instance, ancestor: Option<&Image>) -> Image {
        let stack_pointer = instance.stack_pointer();
        let Some(memory) = instance.store.data().memory else {
            return Image {
                size: 0,
                stack_pointer,
                template: None,
                pages: Vec::new(),
                start: Shared::default(),
            };
        };
        let (bytes, ctx) = memory.data_and_store_mut(&mut instance.store);
        let program = ctx.program.clone();
        let written = ctx.ground.settle(bytes, stack_pointer as usize, &program.stock).await;
        ctx.count_image(bytes);
        let template = ctx.ground.template();
        let ancestor = ancestor.filter(|image| same(&image.template, &template));
        let mut pages = Vec::with_capacity(written.len());
        for piece in written.chunks(PIECE) {
            let copied = |&number: &u32| (number, shared_or_copied(page(bytes, number), number, ancestor));
            pages.extend(piece.iter().map(copied));
            between_pieces(piece).await;
        }
        let start = ctx.ground.shared();
        Image { size: bytes.len(), stack_pointer, template, pages, start }
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
            pages: Vec::new(),
            start: Shared::default(),
        }
        .into_start()
    }

    /// Its template, if that is all of it.
    pub(crate) fn template_alone(&self) -> Option<&Template> {
        self.template.as_deref().filter(|_| self.pages.is_empty())
    }

    /// Restores the image in a fresh instance of the same program.
    pub(crate) async fn restore(&self, instance: &mut Instance) -> Result<(), Errno> {
        let Some(memory) = instance.store.data().memory else { return Ok(()) };
        instance.store.data_mut().share_start(self.start);
        grow_to(memory, &mut instance.store, self.size).await?;
        let (bytes, ctx) = memory.data_and_store_mut(&mut instance.store);
        ctx.ground.become_like(&self.template, self.start, bytes)?;
        ctx.count_image(bytes);
        for piece in self.pages.chunks(PIECE) {
            for (number, contents) in piece {
                let start = *number as usize * PAGE;
                bytes[start..start + PAGE].copy_from_slice(&contents[..]);
            }
            between_pieces(piece).await;
        }
        instance.set_stack_pointer(self.stack_pointer)
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
        all.extend(self.pages.iter().cloned());
        Ok(all.into_iter().collect())
    }

    /// Rebuilds an image from the results of [`Image::shape`] and [`Image::flatten`]; `None` if they cannot belong
    /// together.
    pub fn rebuild(size: usize, stack_pointer: u32, pages: Vec<(u32, Arc<Page>)>) -> Option<Image> {
        let rising = pages.is_sorted_by(|(a, _), (b, _)| a < b);
        let inside = pages.last().is_none_or(|(number, _)| (*number as usize) < size / PAGE);
        let whole = size.is_multiple_of(WASM_PAGE) && size <= 1 << 32 && stack_pointer as usize <= size;
        let start = Shared::default();
        (rising && inside && whole).then_some(Image { size, stack_pointer, template: None, pages, start })
    }
}

fn same(a: &Option<Arc<Template>>, b: &Option<Arc<Template>>) -> bool {
    a.as_ref().map(Arc::as_ptr) == b.as_ref().map(Arc::as_ptr)
}

fn shared_or_copied(contents: &Page, number: u32, ancestor: Option<&Image>) -> Arc<Page> {
    let kept = ancestor.and_then(|image| {
        let at = image.pages.binary_search_by_key(&number, |(n, _)| *n).ok()?;
        Some(&image.pages[at].1).filter(|kept| ***kept == *contents)
    });
    kept.cloned().unwrap_or_else(|| Arc::new(*contents))
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
