//! Durable values: content-addressed objects, commits and heads, in one directory, and in an object store if several
//! machines are to have them.
//!
//! ```text
//! head "team/box" ──► commit 7 ──► commit 6 ──► …        each: root, command, time, exit code, bytes
//!                        │            │
//!                        ▼            ▼
//!                       root         root                 an object: links to others, and bytes
//!                      ╱    ╲       ╱    ╲
//!                     …      shared       …               named by the hash of both: equal ones exist once
//! ```
//!
//! An object is named by the BLAKE3 hash of its links and bytes, so a root names everything below it, and what two
//! commits, sandboxes or images have in common is stored once. The store knows nothing of what the bytes mean: links are
//! enough to collect what nothing leads to any more, and to find damage.
//!
//! Objects, commits and heads are rows of one SQLite database, so a commit is one transaction: after a crash a head is at
//! its last commit or at the one before, never between. Commits of many sandboxes that arrive together share one `fsync`.
//! Memories that should be mapped are files of their own (`pages.rs`), written before the commit that needs them.
//!
//! SQLite rather than redb because several processes can use a store at once (a shell in one terminal, a command in another);
//! redb allows one. `cargo xtask bench store` measures what commits and resuming cost.
//!
//! [`Store::object_store`] puts a bucket of S3 behind the directory (`remote/mod.rs`): commits are acknowledged once they
//! are in the directory, and uploaded afterwards.
//!
//! ```
//! use wardian_store::{Batch, Commit, Note, Options, Store};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! let store = Store::open(directory.path(), Options::default())?;
//! let mut batch = store.batch();
//! let root = batch.put(&[], b"hello");
//! let lease = store.create("demo/box", "")?;
//! store.commit(Commit { lease: &lease, parent: None, root, batch, note: Note::default() })?;
//! assert_eq!(store.get(&store.head("demo/box")?.root)?.bytes, b"hello");
//! # Ok::<(), wardian_store::StoreError>(())
//! ```

#![deny(missing_debug_implementations)]

mod batch;
mod collect;
mod commit;
mod error;
mod hash;
mod index;
mod lease;
mod names;
mod pages;
mod remote;
mod schema;
mod seal;
mod store;
mod verify;
mod writer;

pub use batch::{Batch, Object};
pub use collect::{Collected, Retention};
pub use commit::{Commit, CommitId, CommitInfo, Note};
pub use error::StoreError;
pub use hash::Hash;
pub use index::Index;
pub use lease::Lease;
pub use names::{DEFAULT_NAMESPACE, Entry, Kind, full_name};
pub use remote::Waiting;
pub use seal::Key;
pub use store::{Options, Store};
pub use verify::{Damage, Repaired, Verified};
