//! One chunk of a file's content: bytes in memory, or bytes that a store has and that are fetched when first read.
//!
//! A chunk remembers its name in the store, so that saving a tree again names only what was written since.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::{Errno, Result};

/// A chunk's name in a store: a hash of its bytes.
pub type ChunkName = [u8; 32];

/// Where chunks are fetched from.
pub trait ChunkSource: Send + Sync {
    /// Returns the bytes of a chunk.
    fn fetch(&self, name: &ChunkName) -> Result<Vec<u8>>;
    /// Returns a number for the way in which its names are computed.
    fn naming(&self) -> u64;
}

/// A chunk. Clones share it until one of them writes.
#[derive(Clone, Default)]
pub struct Chunk(Arc<Piece>);

#[derive(Default)]
struct Piece {
    bytes: OnceLock<Vec<u8>>,
    stored: OnceLock<Box<Stored>>,
}

struct Stored {
    name: ChunkName,
    naming: u64,
    source: Option<Arc<dyn ChunkSource>>,
}

impl Clone for Piece {
    /// The copy is about to be written: it keeps the bytes alone.
    fn clone(&self) -> Piece {
        let bytes = self.bytes.get().cloned().map_or_else(OnceLock::new, OnceLock::from);
        Piece { bytes, stored: OnceLock::new() }
    }
}

/// A chunk equals itself alone, as clones of a tree share it.
impl PartialEq for Chunk {
    fn eq(&self, other: &Chunk) -> bool {
        self.is(other)
    }
}

impl Eq for Chunk {}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk").field("bytes", &self.0.bytes.get().map(Vec::len)).finish_non_exhaustive()
    }
}

impl Chunk {
    /// One that `source` has.
    pub(crate) fn stored(name: ChunkName, source: &Arc<dyn ChunkSource>) -> Chunk {
        let stored = Box::new(Stored { name, naming: source.naming(), source: Some(source.clone()) });
        Chunk(Arc::new(Piece { bytes: OnceLock::new(), stored: OnceLock::from(stored) }))
    }

    /// One with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Chunk {
        Chunk(Arc::new(Piece { bytes: OnceLock::from(bytes.to_vec()), stored: OnceLock::new() }))
    }

    pub(crate) fn is(&self, other: &Chunk) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns its bytes, fetching them if necessary. `EIO` if the store does not have them any more.
    pub fn bytes(&self) -> Result<&[u8]> {
        if let Some(bytes) = self.0.bytes.get() {
            return Ok(bytes);
        }
        let Some(stored) = self.0.stored.get() else { return Ok(&[]) };
        let bytes = match &stored.source {
            Some(source) => source.fetch(&stored.name)?,
            None => return Err(Errno::EIO),
        };
        Ok(self.0.bytes.get_or_init(|| bytes))
    }

    /// Returns its name, which `name` computes from its bytes, in the way that has the number `naming`, if it is not
    /// remembered.
    pub fn name(&self, naming: u64, name: impl FnOnce(&[u8]) -> ChunkName) -> Result<ChunkName> {
        if let Some(stored) = self.0.stored.get().filter(|stored| stored.naming == naming) {
            return Ok(stored.name);
        }
        let name = name(self.bytes()?);
        self.0.stored.get_or_init(|| Box::new(Stored { name, naming, source: None }));
        Ok(name)
    }

    /// Returns its bytes to be changed; nobody else sees that.
    pub(crate) fn make_mut(&mut self) -> Result<&mut Vec<u8>> {
        self.bytes()?;
        let piece = Arc::make_mut(&mut self.0);
        piece.stored.take();
        piece.bytes.get_or_init(Vec::new);
        piece.bytes.get_mut().ok_or(Errno::EIO)
    }
}
