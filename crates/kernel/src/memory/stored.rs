//! The memory of an idle session in parts, as a store keeps it: the template in a file of its own, from which it is mapped
//! again, and the pages that differ from it one by one.

use std::fs::File;
use std::io;
use std::sync::Arc;

use wardian_vfs::{Errno, Result};

use crate::at_rest::AtRest;
use crate::memory::image::Image;
use crate::memory::pages::Page;
use crate::memory::template::{Shared, Template};

/// The parts of a memory.
pub struct RestingMemory<'a> {
    /// What it is mapped over; without one, a fresh instance.
    pub template: Option<RestingTemplate<'a>>,
    /// The pages that differ from that, in rising order. One that a command has not changed is the same allocation as before.
    pub pages: Vec<(u32, Arc<Page>)>,
}

/// What a memory is mapped over.
#[derive(Clone, Copy)]
pub struct RestingTemplate<'a> {
    template: &'a Template,
    start: Shared,
}

impl AtRest {
    /// Returns the parts of its memory.
    pub fn memory(&self) -> RestingMemory<'_> {
        let (template, pages, start) = self.rest.image.parts();
        RestingMemory { template: template.map(|template| RestingTemplate { template, start }), pages }
    }

    /// Returns all pages of its memory that may differ from a fresh instance's, the template's too.
    pub fn all_pages(&self) -> io::Result<Vec<(u32, Arc<Page>)>> {
        self.rest.image.flatten()
    }
}

impl<'a> RestingTemplate<'a> {
    /// Returns its name in a store, once it was noted.
    pub fn name(&self) -> Option<[u8; 32]> {
        self.template.name().get().copied()
    }

    /// Notes its name in a store.
    pub fn set_name(&self, name: [u8; 32]) {
        // Equal content has one name: the first writer recorded the same.
        let _ = self.template.name().set(name);
    }

    /// Returns what is recorded about it: from where to where it reaches, how much of it began as a start image, and which
    /// pages it has.
    pub fn describe(&self) -> Vec<u8> {
        let (start, end) = self.template.range();
        let mut described = Vec::new();
        for number in [start, end, self.start.bytes, self.start.own_pages] {
            described.extend_from_slice(&(number as u64).to_le_bytes());
        }
        self.template.kept().iter().for_each(|number| described.extend_from_slice(&number.to_le_bytes()));
        described
    }

    /// Returns where it ends.
    pub fn end(&self) -> u64 {
        self.template.range().1 as u64
    }

    /// Returns its pages, in rising order.
    pub fn pages(&self) -> impl Iterator<Item = io::Result<(u32, Box<Page>)>> + use<'a> {
        self.template.contents()
    }
}

/// A template that a store has.
#[derive(Debug)]
pub struct StoredTemplate {
    /// Its name.
    pub name: [u8; 32],
    /// Its file.
    pub file: File,
    /// What [`RestingTemplate::describe`] returned.
    pub described: Vec<u8>,
}

impl StoredTemplate {
    /// Puts a memory together; `None` if the parts cannot belong together.
    pub(crate) fn image(self, shape: (usize, u32), pages: Vec<(u32, Arc<Page>)>) -> Result<Option<Image>> {
        let (numbers, kept) = self.described.split_at_checked(32).ok_or(Errno::EINVAL)?;
        let numbers: Vec<usize> = numbers
            .chunks_exact(8)
            .map(|raw| u64::from_le_bytes(raw.try_into().expect("eight bytes")) as usize)
            .collect();
        let kept = kept.chunks_exact(4).map(|raw| u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]));
        let &[start, end, bytes, own_pages] = &numbers[..] else { return Err(Errno::EINVAL) };
        let template = Template::stored(self.name, self.file, (start, end), kept.collect());
        let template = template.map_err(|_| Errno::EINVAL)?;
        Ok(Image::from_parts(shape, Some(template), pages, Shared { bytes: bytes.min(shape.0), own_pages }))
    }
}
