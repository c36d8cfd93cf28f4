//! Memories that are files, cut into regions to be uploaded, and put together again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::wire;
use crate::seal::{IN_FILE, Sealer};
use crate::{Hash, StoreError};

/// The bit of a pack's table that says that an object is a region: no commit leads to it, so the local part does not keep it.
pub(super) const REGION: i64 = 8;
/// The size of a region, and how many are read at once.
const SIZE: u64 = 256 << 10;
pub(super) const REGIONS_AT_ONCE: usize = 32;
/// The largest memory of a WebAssembly program that has 32-bit addresses.
const LARGEST: u64 = 4 << 30;

/// What stands for a file in a pack.
#[derive(Serialize, Deserialize)]
pub(super) struct Regions {
    pub(super) size: u64,
    /// Where they are, in regions, rising; what is between is zero.
    pub(super) all: Vec<(u32, [u8; 32])>,
}

/// Cuts a file.
pub(super) struct Reader {
    file: File,
    sealer: Arc<Sealer>,
    regions: Regions,
    next: u64,
}

impl Reader {
    pub(super) fn open(path: &Path, sealer: &Arc<Sealer>) -> Result<Reader, StoreError> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(Reader { file, sealer: sealer.clone(), regions: Regions { size, all: Vec::new() }, next: 0 })
    }

    /// Returns the next regions that are not zero, at most so many; none at the end.
    pub(super) fn next(&mut self, most: usize) -> io::Result<Vec<(Hash, Vec<u8>)>> {
        let mut found = Vec::new();
        while found.len() < most && self.next * SIZE < self.regions.size {
            let at = self.next * SIZE;
            let mut bytes = vec![0; SIZE.min(self.regions.size - at) as usize];
            self.file.read_exact_at(&mut bytes, at)?;
            if bytes.iter().any(|byte| *byte != 0) {
                let hash = self.sealer.namer.name(&[], &bytes);
                self.regions.all.push((self.next as u32, hash.0));
                found.push((hash, bytes));
            }
            self.next += 1;
        }
        Ok(found)
    }

    /// Returns what stands for the file, as an object of a pack.
    pub(super) fn finish(self) -> Result<(i64, Vec<u8>), StoreError> {
        Ok((IN_FILE, wire::seal(&self.sealer, &self.regions)?.1))
    }
}

/// Reads what stands for a file.
pub(super) fn read(sealer: &Sealer, body: &[u8]) -> Result<Regions, StoreError> {
    let regions: Regions = wire::open(sealer, body)?.1;
    let count = regions.size.div_ceil(SIZE);
    let rising = regions.all.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let within = regions.all.last().is_none_or(|(last, _)| u64::from(*last) < count);
    if regions.size > LARGEST || !rising || !within {
        return Err(StoreError::Malformed("its list of regions cannot be right".to_owned()));
    }
    Ok(regions)
}

/// Writes a region where it belongs.
pub(super) fn write(file: &File, regions: &Regions, number: u32, bytes: &[u8]) -> Result<(), StoreError> {
    let at = u64::from(number) * SIZE;
    if bytes.len() as u64 != SIZE.min(regions.size.saturating_sub(at)) {
        return Err(StoreError::Malformed("a region has another size than it should".to_owned()));
    }
    Ok(file.write_all_at(bytes, at)?)
}
