//! Sandboxes that outlive their process: their values in a store (`wardian-store`).
//!
//! ```text
//! command ends ──► value ──► what differs from the last commit ──► one transaction ──► the command's answer
//!                            groups of inodes, chunks, pages       objects, commit, head
//! ```
//!
//! A value is an object with links, each with a role: the shape of the system it is over, an index of the files, the
//! history, and for each resident program what the kernel keeps for it, an index of its pages, and what they are mapped over.
//! What a command has not touched keeps its name, and is neither read nor written.

mod changes;
mod image;
mod load;
mod persist;
mod root;
mod save;
mod store;
mod transfer;

pub use changes::{FileChange, FileChangeKind};
pub use image::ImageInfo;
pub use persist::{Dormant, Durability, Mode};
pub(crate) use persist::{NewName, Persist};
pub use store::{SandboxInfo, Store, StoreOptions};
