//! Files as a value.
//!
//! A [`Tree`] is a Unix file tree in memory. Cloning it takes constant time and copies nothing; clones share what
//! neither has written since. That makes a snapshot an assignment and a fork a clone.
//!
//! ```text
//!  Tree ──clone──▶ Tree                 O(1): both point at the same maps
//!   │               │
//!   ▼               ▼
//!  inodes          inodes'              a write copies one node of the map,
//!   1 dir ─ 2 dir   1 ─ 2               one inode,
//!          └ 3 file     └ 3'
//!              │           │
//!           [chunk][chunk][chunk']      and one 64 KiB chunk of content
//! ```
//!
//! The calls are those of Unix, with Linux's errors in Linux's order; paths and names are bytes. Quotas on bytes and
//! inodes are exact. Host directories, overlays over them and computed files can be mounted.
//!
//! ```
//! use wardian_vfs::{Caller, OpenFlags, Quota, Tree};
//!
//! let mut tree = Tree::new(Quota { bytes: 1 << 20, inodes: 1000 });
//! let (who, root) = (Caller::ROOT, tree.root());
//! let mut file = tree.open(&who, &root, b"/notes", OpenFlags::CREATE | OpenFlags::WRITE, 0o644)?;
//! tree.write(&mut file, b"hello")?;
//!
//! let mut fork = tree.clone();
//! tree.write(&mut file, b" world")?;
//! assert_eq!(tree.stat(&who, &root, b"/notes", true)?.size, 11);
//! assert_eq!(fork.stat(&who, &root, b"/notes", true)?.size, 5);
//! fork.close(file.clone());
//! tree.close(file);
//! # Ok::<(), wardian_vfs::Errno>(())
//! ```

mod apply;
mod attr;
mod caller;
mod chunk;
mod conflict;
mod content;
mod dev;
mod diff;
mod dir;
mod disk;
mod errno;
mod fingerprint;
mod fsck;
mod handle;
mod held;
mod host;
mod inode;
mod install;
mod io;
mod journal;
mod list;
mod lookup;
mod mount;
mod name;
mod names;
mod open;
mod overlay;
mod packed;
mod place;
#[doc(hidden)]
pub mod probe;
mod quota;
mod record;
mod record_bytes;
mod recover;
mod rename;
mod roots;
mod stat;
mod state;
mod steps;
mod tar;
mod tree;

pub use caller::{Access, Caller};
pub use chunk::{Chunk, ChunkName, ChunkSource};
pub use content::Content;
pub use diff::{Change, DiffBounds, What};
pub use errno::{Errno, Result};
pub use handle::{Handle, OpenFlags};
pub use io::Seek;
pub use list::DirEntry;
pub use mount::{HostAccess, HostMount, Mount, NewEntry, Virtual, VirtualStat};
pub use name::{NAME_MAX, PATH_MAX};
pub use place::Place;
pub use quota::{Quota, Usage};
pub use record::{ChunkSink, RecordError, Records};
pub use recover::Recovery;
pub use roots::{HostRefusal, HostRoots};
pub use stat::{Device, FileKind, SetTime, Stat};
pub use state::state_directory;
pub use tar::{Imported, TarError, TarFormat, TarOptions};
pub use tree::Tree;
