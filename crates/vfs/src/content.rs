//! A regular file's bytes, in chunks that clones share until one of them writes.
//!
//! ```text
//! small file    [ chunk 0 ]                       one reference-counted vector, as long as the file
//! large file    0 -> [64 KiB]  1 -> [64 KiB]  7 -> [..]    what is missing is a hole and reads as zeros
//! system file   bytes shared by every tree of the process, perhaps unpacked only when first read
//! lower file    still on the host, under an overlay
//! ```
//! The quota charges a chunk up to its own end or the end of the file, whichever comes first: a file without holes is
//! charged its size, a hole of whole chunks nothing.

use crate::chunk::Chunk;
use crate::place::MountSpot;
use crate::quota::CHUNK_MAP;
use crate::record_bytes::Writer;
use crate::{Errno, Result};
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The size of a chunk: the most that the first write after a clone copies.
pub(crate) const CHUNK: u64 = 64 * 1024;
/// With this many chunks, a file may have one more that is not full without using much more than it is charged.
const FILLED: u64 = 8;
/// The largest file: Linux's own limit.
pub(crate) const SIZE_MAX: u64 = i64::MAX as u64;

type Load = Arc<dyn Fn() -> Result<Arc<[u8]>> + Send + Sync>;

/// The bytes passed to [`Tree::install`](crate::Tree::install).
#[derive(Clone)]
pub enum Content {
    /// The bytes themselves, shared with other holders.
    Bytes(Arc<[u8]>),
    /// Bytes that are fetched when first read, once for all trees that share the file.
    Lazy {
        /// Their length. If `load` returns another number of bytes, the file is unreadable (`EIO`).
        len: u64,
        /// Fetches them, for example by unpacking a program.
        load: Load,
    },
}

impl Content {
    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Lazy { len, .. } => *len,
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Content::Lazy { len, .. } => write!(f, "Lazy({len})"),
        }
    }
}

/// Bytes to fetch once.
pub(crate) struct Lazy {
    load: Load,
    loaded: OnceLock<Result<Arc<[u8]>>>,
}

impl Lazy {
    fn bytes(&self, len: u64) -> Result<&Arc<[u8]>> {
        let loaded = self.loaded.get_or_init(|| match (self.load)() {
            Ok(bytes) if bytes.len() as u64 == len => Ok(bytes),
            Ok(_) => Err(Errno::EIO),
            Err(errno) => Err(errno),
        });
        loaded.as_ref().map_err(|errno| *errno)
    }
}

/// Returns a version for content that has just changed. There is one counter for the whole process: equal versions mean
/// equal content in any tree.
pub(crate) fn new_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[derive(Clone)]
enum Data {
    /// Nothing except, perhaps, one hole.
    Hole,
    /// Only chunk 0: every small file, without the cost of a map.
    One(Chunk),
    /// By chunk number.
    Many(OrdMap<u64, Chunk>),
    Shared(Arc<[u8]>),
    Lazy(Arc<Lazy>),
    Lower(MountSpot),
}

/// The content of a file, as it was recorded.
pub(crate) enum Recorded {
    /// The tree's own: chunks by number, the rest a hole.
    Chunks(Vec<(u64, Chunk)>),
    /// Given from outside, all of it.
    Given(Vec<Chunk>),
    /// On the host.
    Lower(MountSpot),
}

/// The content of a regular file.
#[derive(Clone)]
pub(crate) struct FileBody {
    size: u64,
    version: u64,
    data: Data,
}

impl FileBody {
    pub(crate) fn empty() -> FileBody {
        FileBody { size: 0, version: new_version(), data: Data::Hole }
    }

    pub(crate) fn installed(content: Content) -> FileBody {
        let (size, data) = match content {
            Content::Bytes(bytes) => (bytes.len() as u64, Data::Shared(bytes)),
            Content::Lazy { len, load } => {
                (len, Data::Lazy(Arc::new(Lazy { load, loaded: OnceLock::new() })))
            }
        };
        FileBody { size, version: new_version(), data }
    }

    /// A file as it was recorded.
    pub(crate) fn recorded(size: u64, recorded: Recorded) -> FileBody {
        let data = match recorded {
            Recorded::Lower(spot) => return FileBody::lower(spot, size),
            Recorded::Given(chunks) => Data::Lazy(Arc::new(Lazy {
                load: Arc::new(move || {
                    let mut bytes = Vec::new();
                    chunks.iter().try_for_each(|chunk| chunk.bytes().map(|piece| bytes.extend(piece)))?;
                    Ok(bytes.into())
                }),
                loaded: OnceLock::new(),
            })),
            Recorded::Chunks(mut chunks) => match chunks.pop() {
                None => Data::Hole,
                Some((0, chunk)) if chunks.is_empty() && size <= CHUNK => Data::One(chunk),
                Some(last) => Data::Many(chunks.into_iter().chain([last]).collect()),
            },
        };
        FileBody { size, version: new_version(), data }
    }

    /// Writes all of it but the bytes. Content that `of_base` has as well is only named.
    pub(crate) fn write(&self, out: &mut Writer, of_base: Option<&FileBody>) {
        out.number(self.size);
        match &self.data {
            Data::Shared(_) | Data::Lazy(_) if of_base.is_some_and(|base| base.version == self.version) => {
                out.number(2);
            }
            Data::Hole => out.number(0),
            Data::One(_) => [1, 1, 0].iter().for_each(|number| out.number(*number)),
            Data::Many(chunks) => {
                out.number(1);
                out.number(chunks.len() as u64);
                let mut next = 0;
                for number in chunks.keys() {
                    out.number(number - next);
                    next = number + 1;
                }
            }
            Data::Shared(_) | Data::Lazy(_) => out.number(3),
            Data::Lower(spot) => {
                out.number(4);
                out.number(u64::from(spot.mount));
                out.bytes(&spot.path);
            }
        }
    }

    /// Calls `each` with the chunks that [`FileBody::write`] leaves out, unless `of_base` has them.
    pub(crate) fn each_chunk(
        &self,
        of_base: Option<&FileBody>,
        mut each: impl FnMut(u64, &Chunk) -> Result<()>,
    ) -> Result<()> {
        match &self.data {
            Data::One(chunk) => each(0, chunk),
            Data::Many(chunks) => chunks.iter().try_for_each(|(number, chunk)| each(*number, chunk)),
            Data::Shared(_) | Data::Lazy(_) if of_base.is_none_or(|base| base.version != self.version) => {
                let all = self.flat()?.unwrap_or_default();
                let pieces = all.chunks(CHUNK as usize).enumerate();
                pieces.into_iter().try_for_each(|(number, piece)| each(number as u64, &Chunk::of(piece)))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether it has this chunk at this place.
    pub(crate) fn has_chunk(&self, number: u64, chunk: &Chunk) -> bool {
        self.chunk(number).is_some_and(|known| known.is(chunk))
    }

    /// A file of an overlay whose metadata is in the tree but whose bytes are still below.
    pub(crate) fn lower(spot: MountSpot, size: u64) -> FileBody {
        FileBody { size, version: 0, data: Data::Lower(spot) }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns where the bytes are, if not here.
    pub(crate) fn lower_spot(&self) -> Option<&MountSpot> {
        match &self.data {
            Data::Lower(spot) => Some(spot),
            _ => None,
        }
    }

    /// Returns whether the tree owns the bytes, so that they may be written.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.data, Data::Hole | Data::One(_) | Data::Many(_))
    }

    /// Returns what the quota charges for the content.
    pub(crate) fn charge(&self) -> u64 {
        self.charge_at_size(self.size)
    }

    /// Returns what the quota would charge if the file were longer. (Shorter files never cost more.)
    pub(crate) fn charge_at_size(&self, size: u64) -> u64 {
        match &self.data {
            Data::Hole | Data::Shared(_) | Data::Lazy(_) | Data::Lower(_) => 0,
            Data::One(_) => size.min(CHUNK),
            Data::Many(chunks) => {
                let has_last = size > 0 && chunks.contains_key(&((size - 1) / CHUNK));
                charge(chunks.len() as u64, size, has_last)
            }
        }
    }

    /// Returns how many bytes of content it keeps that `other` does not.
    pub(crate) fn bytes_beyond(&self, other: &FileBody) -> u64 {
        match (&self.data, &other.data) {
            (Data::Many(ours), Data::Many(theirs)) => {
                let is_new = |change: &DiffItem<'_, '_, u64, Chunk>| match change {
                    DiffItem::Add(..) => true,
                    DiffItem::Update { old: (_, old), new: (_, new) } => !old.is(new),
                    DiffItem::Remove(..) => false,
                };
                let changed = theirs.diff(ours).filter(is_new).count() as u64;
                (changed * CHUNK).min(self.charge())
            }
            (Data::One(ours), Data::One(theirs)) if ours.is(theirs) => 0,
            (Data::Shared(ours), Data::Shared(theirs)) if Arc::ptr_eq(ours, theirs) => 0,
            _ => self.kept(),
        }
    }

    /// Returns how many bytes of content it keeps in memory, regardless of who is charged for them.
    pub(crate) fn kept(&self) -> u64 {
        match &self.data {
            Data::Shared(bytes) => bytes.len() as u64,
            _ => self.charge(),
        }
    }

    /// Returns the memory that the content uses in addition to its bytes.
    pub(crate) fn metadata(&self) -> u64 {
        match &self.data {
            Data::Many(_) => CHUNK_MAP,
            Data::Lower(spot) => spot.path.len() as u64,
            _ => 0,
        }
    }

    /// Returns the cost of a map of chunks, if content up to `end` needs one that does not exist yet.
    pub(crate) fn map_cost(&self, end: u64) -> u64 {
        if end > CHUNK && !matches!(self.data, Data::Many(_)) { CHUNK_MAP } else { 0 }
    }

    fn chunk(&self, number: u64) -> Option<&Chunk> {
        match &self.data {
            Data::One(chunk) if number == 0 => Some(chunk),
            Data::Many(chunks) => chunks.get(&number),
            _ => None,
        }
    }

    fn chunk_count(&self) -> u64 {
        match &self.data {
            Data::One(_) => 1,
            Data::Many(chunks) => chunks.len() as u64,
            _ => 0,
        }
    }

    /// Returns the charge if `[offset, end)`, which lies within one chunk, were written.
    fn charge_with(&self, offset: u64, end: u64) -> u64 {
        let number = offset / CHUNK;
        let has = self.chunk(number).is_some();
        let size = self.size.max(end);
        let last = (size - 1) / CHUNK;
        let has_last = last == number || self.chunk(last).is_some();
        charge(self.chunk_count() + u64::from(!has), size, has_last)
    }

    /// Copies from `offset` into `buf`, up to the end of the file.
    pub(crate) fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        if offset >= self.size {
            return Ok(0);
        }
        let wanted = usize::try_from(self.size - offset).map_or(buf.len(), |left| left.min(buf.len()));
        let buf = &mut buf[..wanted];
        match &self.data {
            Data::Shared(bytes) => copy_flat(bytes, buf, offset),
            Data::Lazy(lazy) => copy_flat(lazy.bytes(self.size)?, buf, offset),
            Data::Lower(_) => return Err(Errno::EIO), // the caller goes to the host instead
            Data::Hole | Data::One(_) | Data::Many(_) => self.read_chunks(buf, offset)?,
        }
        Ok(wanted)
    }

    fn read_chunks(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            let within = (offset % CHUNK) as usize;
            let take = buf.len().min(CHUNK as usize - within);
            let (piece, rest) = buf.split_at_mut(take);
            let chunk = self.chunk(offset / CHUNK).map_or(Ok(&[][..]), Chunk::bytes)?;
            let stored = chunk.get(within..).unwrap_or(&[]);
            let have = stored.len().min(take);
            piece[..have].copy_from_slice(&stored[..have]);
            piece[have..].fill(0);
            buf = rest;
            offset += take as u64;
        }
        Ok(())
    }

    /// Writes as much of `data` at `offset` as `room` more bytes of charge allow, and returns how much. `EIO` if what is
    /// there cannot be fetched.
    pub(crate) fn write_at(&mut self, mut data: &[u8], mut offset: u64, mut room: u64) -> Result<usize> {
        let mut written = 0;
        match room.checked_sub(self.map_cost(offset.saturating_add(data.len() as u64))) {
            Some(left) => room = left,
            // There is none for a map, but there may be for what the first chunk takes.
            None => data = &data[..data.len().min(CHUNK.saturating_sub(offset) as usize)],
        }
        while !data.is_empty() {
            let within = offset % CHUNK;
            let take = data.len().min((CHUNK - within) as usize);
            let before = self.charge();
            let fits = self.fitting(offset, take as u64, before, room);
            if fits == 0 {
                break;
            }
            let (piece, rest) = data.split_at(fits as usize);
            self.write_piece(piece, offset)?;
            room -= self.charge() - before;
            written += piece.len();
            offset += fits;
            data = rest;
            if (fits as usize) < take {
                break;
            }
        }
        if written > 0 {
            self.version = new_version();
        }
        Ok(written)
    }

    /// Returns how many of `len` bytes at `offset` (within one chunk) may be written for `room` more charge.
    fn fitting(&self, offset: u64, len: u64, before: u64, room: u64) -> u64 {
        let cost = |len: u64| self.charge_with(offset, offset + len) - before;
        let excess = cost(len).saturating_sub(room);
        if excess == 0 {
            return len;
        }
        // Beyond the end of the file each byte costs one, so leaving out `excess` bytes may be enough.
        match len.checked_sub(excess) {
            Some(fewer) if fewer > 0 && cost(fewer) <= room => fewer,
            _ => 0,
        }
    }

    fn write_piece(&mut self, piece: &[u8], offset: u64) -> Result<()> {
        let within = (offset % CHUNK) as usize;
        let number = offset / CHUNK;
        let end = within + piece.len();
        let others = self.chunk_count();
        let chunk = self.chunk_mut(number).make_mut()?;
        if chunk.len() < within {
            grow(chunk, others, within);
            chunk.resize(within, 0);
        }
        let overlap = chunk.len().min(end) - within;
        chunk[within..within + overlap].copy_from_slice(&piece[..overlap]);
        if overlap < piece.len() {
            grow(chunk, others, end);
            chunk.extend_from_slice(&piece[overlap..]);
        }
        self.size = self.size.max(offset + piece.len() as u64);
        Ok(())
    }

    fn chunk_mut(&mut self, number: u64) -> &mut Chunk {
        if let (Data::Hole, 0) = (&self.data, number) {
            self.data = Data::One(Chunk::default());
        }
        match (&self.data, number) {
            (Data::One(chunk), 1..) => self.data = Data::Many(OrdMap::unit(0, chunk.clone())),
            (Data::One(_) | Data::Many(_), _) => {}
            _ => self.data = Data::Many(OrdMap::new()),
        }
        match &mut self.data {
            Data::One(chunk) => chunk,
            Data::Many(chunks) => chunks.entry(number).or_default(),
            _ => unreachable!("made writable above"),
        }
    }

    /// Sets the size; new bytes are a hole. The caller has checked that the charge allows it.
    pub(crate) fn set_size(&mut self, size: u64) -> Result<()> {
        if size < self.size {
            self.cut(size)?;
        }
        self.size = size;
        self.version = new_version();
        Ok(())
    }

    fn cut(&mut self, size: u64) -> Result<()> {
        let keep = (size % CHUNK) as usize;
        match &mut self.data {
            Data::One(chunk) if size < CHUNK => {
                if size == 0 {
                    self.data = Data::Hole;
                } else {
                    shorten(chunk, keep)?;
                }
            }
            Data::Many(chunks) => {
                *chunks = chunks.split(&size.div_ceil(CHUNK)).0;
                if let Some(chunk) = chunks.get_mut(&(size / CHUNK)) {
                    shorten(chunk, keep)?;
                }
                if chunks.is_empty() {
                    self.data = Data::Hole;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns all of it in one piece, if the tree does not own it: the starting point of a first write.
    pub(crate) fn flat(&self) -> Result<Option<Arc<[u8]>>> {
        match &self.data {
            Data::Shared(bytes) => Ok(Some(bytes.clone())),
            Data::Lazy(lazy) => lazy.bytes(self.size).map(|bytes| Some(bytes.clone())),
            _ => Ok(None),
        }
    }

    /// Allocates memory for every chunk of `[offset, end)`, as `fallocate` promises; the size does not change here.
    pub(crate) fn fill_holes(&mut self, offset: u64, end: u64) {
        for number in offset / CHUNK..end.div_ceil(CHUNK) {
            self.chunk_mut(number);
        }
    }

    /// Returns the charge after [`FileBody::fill_holes`] and with a size of at least `end`.
    pub(crate) fn charge_filled(&self, offset: u64, end: u64) -> u64 {
        let size = self.size.max(end);
        let wanted = offset / CHUNK..end.div_ceil(CHUNK);
        let present = match &self.data {
            Data::Many(chunks) => chunks.range(wanted.clone()).count() as u64,
            Data::One(_) => u64::from(wanted.contains(&0)),
            _ => 0,
        };
        let last = (size - 1) / CHUNK;
        let has_last = wanted.contains(&last) || self.chunk(last).is_some();
        charge(self.chunk_count() + (wanted.end - wanted.start) - present, size, has_last)
    }

    /// Returns the first byte at or after `offset` that is (or is not) in a hole; `None` past the last one.
    pub(crate) fn find(&self, offset: u64, data: bool) -> Option<u64> {
        if offset >= self.size {
            return None;
        }
        if !matches!(self.data, Data::Hole | Data::One(_) | Data::Many(_)) {
            return if data { Some(offset) } else { Some(self.size) };
        }
        let number = offset / CHUNK;
        if self.chunk(number).is_some() == data {
            return Some(offset);
        }
        let next = match (&self.data, data) {
            (Data::Many(chunks), true) => chunks.get_next(&number).map(|(number, _)| *number)?,
            (_, true) => return None,
            (_, false) => (number..).find(|number| self.chunk(*number).is_none())?,
        };
        Some((next * CHUNK).min(self.size))
    }
}

/// `count` chunks, of which the last may reach beyond the end of the file.
fn charge(count: u64, size: u64, has_last: bool) -> u64 {
    let beyond = if has_last { size.div_ceil(CHUNK) * CHUNK - size } else { 0 };
    count * CHUNK - beyond
}

/// Makes space for `len` bytes. The quota counts bytes, not capacity, so a chunk has at most a quarter more than it
/// needs. A chunk of a file that has `others` as well is likely to be filled, and growing it in steps would copy it
/// again and again.
fn grow(chunk: &mut Vec<u8>, others: u64, len: usize) {
    if chunk.capacity() >= len {
        return;
    }
    let more = if others >= FILLED { CHUNK as usize } else { chunk.capacity() + chunk.capacity() / 4 };
    chunk.reserve_exact(more.clamp(len, CHUNK as usize) - chunk.len());
}

fn shorten(chunk: &mut Chunk, len: usize) -> Result<()> {
    if chunk.bytes()?.len() <= len {
        return Ok(());
    }
    let chunk = chunk.make_mut()?;
    chunk.truncate(len);
    if len < chunk.capacity() / 2 {
        chunk.shrink_to_fit();
    }
    Ok(())
}

fn copy_flat(bytes: &[u8], buf: &mut [u8], offset: u64) {
    // Callers have cut `buf` to what the file holds beyond `offset`.
    let from = offset as usize;
    buf.copy_from_slice(&bytes[from..from + buf.len()]);
}
