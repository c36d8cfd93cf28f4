//! New objects on their way into the store.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::seal::Sealer;
use crate::{Hash, StoreError};

/// What a hash stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What it leads to.
    pub links: Vec<Hash>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Objects to be stored with a commit. They are compressed and encrypted when the commit is made, those that are already
/// there not at all.
pub struct Batch {
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) new: Vec<(Hash, Object)>,
    /// Objects that are files, which are already there.
    pub(crate) files: Vec<(Hash, PathBuf)>,
    known: HashSet<Hash>,
    bytes: u64,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("objects", &self.new.len()).field("bytes", &self.bytes).finish()
    }
}

impl Batch {
    pub(crate) fn new(sealer: &Arc<Sealer>) -> Batch {
        Batch { sealer: sealer.clone(), new: Vec::new(), files: Vec::new(), known: HashSet::new(), bytes: 0 }
    }

    /// Returns the name of an object without storing it.
    pub fn name(&self, links: &[Hash], bytes: &[u8]) -> Hash {
        self.sealer.namer.name(links, bytes)
    }

    /// Adds an object and returns its name.
    pub fn put(&mut self, links: &[Hash], bytes: &[u8]) -> Hash {
        let hash = self.name(links, bytes);
        self.put_named(hash, links, bytes);
        hash
    }

    /// Adds an object whose name is known.
    pub fn put_named(&mut self, hash: Hash, links: &[Hash], bytes: &[u8]) {
        if self.known.insert(hash) {
            self.bytes += bytes.len() as u64;
            self.new.push((hash, Object { links: links.to_vec(), bytes: bytes.to_vec() }));
        }
    }

    pub(crate) fn put_file(&mut self, hash: Hash, path: PathBuf, bytes: u64) {
        if self.known.insert(hash) {
            self.bytes += bytes;
            self.files.push((hash, path));
        }
    }

    /// Returns how many bytes were added, before compression.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how many objects were added.
    pub fn len(&self) -> usize {
        self.new.len() + self.files.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Compresses and encrypts all objects.
    pub(crate) fn seal(self) -> Result<Sealed, StoreError> {
        let seal = |(hash, object): &(Hash, Object)| {
            let (kind, body) = self.sealer.seal(hash, &object.links, &object.bytes)?;
            Ok((*hash, kind, body))
        };
        let objects: Result<_, StoreError> = self.new.iter().map(seal).collect();
        Ok(Sealed { objects: objects?, files: self.files })
    }
}

/// The same, ready to be written.
pub(crate) struct Sealed {
    pub(crate) objects: Vec<(Hash, i64, Vec<u8>)>,
    pub(crate) files: Vec<(Hash, PathBuf)>,
}
