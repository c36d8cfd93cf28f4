//! Memories as files: uncompressed, each page where the memory has it, so that they can be mapped.
//!
//! A file is complete and synced under its final name before any commit leads to it. Its hash is checked when it is written
//! and by `verify`, not when it is mapped: that would read all of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::hash::Namer;
use crate::{Batch, Hash, Store, StoreError};

const PAGE: usize = 4096;

pub(crate) struct Pages {
    directory: PathBuf,
}

impl Pages {
    pub(crate) fn open(store: &Path) -> Result<Pages, StoreError> {
        let directory = store.join("pages");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        Ok(Pages { directory })
    }

    pub(crate) fn path(&self, hash: &Hash) -> PathBuf {
        self.directory.join(hash.to_string())
    }

    /// Returns how many bytes the files take on the disk.
    pub(crate) fn bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.blocks() * 512).sum()
    }

    /// Returns the files that are there.
    pub(crate) fn list(&self) -> Vec<Hash> {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        files.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect()
    }

    /// Returns whether a file is there and whole.
    pub(crate) fn has(&self, namer: &Namer, hash: &Hash) -> bool {
        File::open(self.path(hash)).is_ok_and(|file| check_file(namer, &file, hash).is_ok())
    }

    /// Creates a file that has no final name yet.
    pub(crate) fn create(&self) -> Result<NewPages, StoreError> {
        let mut name = [0; 8];
        getrandom::fill(&mut name).map_err(|error| StoreError::Io(format!("no randomness: {error}")))?;
        let path = self.directory.join(format!("new-{:016x}", u64::from_le_bytes(name)));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(NewPages { file, path, directory: self.directory.clone(), is_named: false })
    }

    pub(crate) fn remove(&self, hash: &Hash) -> io::Result<()> {
        fs::remove_file(self.path(hash))
    }
}

/// A file that gets its name when it is whole, and is removed otherwise.
pub(crate) struct NewPages {
    pub(crate) file: File,
    path: PathBuf,
    directory: PathBuf,
    is_named: bool,
}

impl NewPages {
    /// Gives it its name. Equal content has an equal name: replacing one by the other changes nothing.
    fn name(&mut self, hash: &Hash) -> Result<(), StoreError> {
        self.file.sync_data()?;
        fs::rename(&self.path, self.directory.join(hash.to_string()))?;
        self.is_named = true;
        Ok(File::open(&self.directory)?.sync_all()?)
    }

    /// Does so if that is what its content says.
    pub(crate) fn finish(&mut self, namer: &Namer, hash: &Hash) -> Result<(), StoreError> {
        check_file(namer, &self.file, hash)?;
        self.name(hash)
    }
}

impl Drop for NewPages {
    fn drop(&mut self) {
        if !self.is_named {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Store {
    /// Writes a memory of `size` bytes to a file, given its pages in rising order, and adds it to the batch. Returns its
    /// name. The store must not be encrypted.
    pub fn put_pages(
        &self,
        batch: &mut Batch,
        size: u64,
        pages: impl Iterator<Item = io::Result<(u32, Box<[u8; PAGE]>)>>,
    ) -> Result<Hash, StoreError> {
        if self.is_encrypted() {
            return Err(StoreError::Key("an encrypted store has no plain files".to_owned()));
        }
        let mut new = self.0.pages.create()?;
        let (hash, bytes) = write(self.namer(), &mut new.file, size, pages)?;
        new.name(&hash)?;
        batch.put_file(hash, self.0.pages.path(&hash), bytes);
        Ok(hash)
    }

    /// Adds a memory that is already there to the batch, unless it is gone.
    pub fn keep_pages(&self, batch: &mut Batch, hash: Hash) -> bool {
        let path = self.0.pages.path(&hash);
        let there = path.exists();
        if there {
            batch.put_file(hash, path, 0);
        }
        there
    }

    /// Opens a memory, to be mapped.
    pub fn open_pages(&self, hash: &Hash) -> Result<File, StoreError> {
        let path = self.0.pages.path(hash);
        if let Some(remote) = self.0.remote.as_ref().filter(|_| !path.exists()) {
            remote.fetch(vec![*hash])?;
        }
        File::open(path)
            .map_err(|error| StoreError::Damaged { hash: *hash, why: format!("its file: {error}") })
    }
}

fn write(
    namer: &Namer,
    file: &mut File,
    size: u64,
    pages: impl Iterator<Item = io::Result<(u32, Box<[u8; PAGE]>)>>,
) -> Result<(Hash, u64), StoreError> {
    file.set_len(size)?;
    let mut hasher = Hasher::new(namer, size);
    let (mut pending, mut start, mut bytes) = (Vec::with_capacity(256 * PAGE), 0u64, 0);
    for page in pages {
        let (number, contents) = page?;
        let at = u64::from(number) * PAGE as u64;
        if pending.len() >= 256 * PAGE || at != start + pending.len() as u64 {
            flush(file, start, &mut pending)?;
            start = at;
        }
        hasher.add(number, &contents[..]);
        pending.extend_from_slice(&contents[..]);
        bytes += PAGE as u64;
    }
    flush(file, start, &mut pending)?;
    Ok((hasher.finish(), bytes))
}

fn flush(file: &mut File, start: u64, pending: &mut Vec<u8>) -> io::Result<()> {
    if !pending.is_empty() {
        file.seek(SeekFrom::Start(start))?;
        file.write_all(pending)?;
        pending.clear();
    }
    Ok(())
}

/// Computes the name of a memory: of its size and every page that is not zero.
struct Hasher(blake3::Hasher);

impl Hasher {
    fn new(namer: &Namer, size: u64) -> Hasher {
        let mut hasher = namer.hasher();
        hasher.update(b"pages");
        hasher.update(&size.to_le_bytes());
        Hasher(hasher)
    }

    fn add(&mut self, number: u32, page: &[u8]) {
        if page.iter().any(|&byte| byte != 0) {
            self.0.update(&number.to_le_bytes());
            self.0.update(page);
        }
    }

    fn finish(&self) -> Hash {
        Hash(*self.0.finalize().as_bytes())
    }
}

/// Checks a file against its name.
pub(crate) fn check(store: &Store, hash: &Hash) -> Result<(), StoreError> {
    check_file(store.namer(), &store.open_pages(hash)?, hash)
}

fn check_file(namer: &Namer, file: &File, hash: &Hash) -> Result<(), StoreError> {
    let size = file.metadata()?.len();
    let mut hasher = Hasher::new(namer, size);
    let mut page = vec![0; PAGE];
    for number in 0..size.div_ceil(PAGE as u64) {
        file.read_exact_at(&mut page, number * PAGE as u64)
            .map_err(|error| StoreError::Damaged { hash: *hash, why: error.to_string() })?;
        hasher.add(number as u32, &page);
    }
    if hasher.finish() == *hash {
        Ok(())
    } else {
        Err(StoreError::Damaged { hash: *hash, why: "its content does not match its hash".to_owned() })
    }
}
