//! The file tree, tested from outside.
#![allow(missing_docs)]

mod archives;
mod crashes;
mod files;
mod memory;
mod mounts;
mod ops;
mod oracle;
mod overlays;
mod properties;
mod quotas;
mod real;
mod support;
mod system;
mod world;
