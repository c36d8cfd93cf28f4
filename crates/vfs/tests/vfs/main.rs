//! The file tree, tested from outside.
#![allow(missing_docs)]

mod files;
mod mounts;
mod quotas;
mod support;
mod system;
