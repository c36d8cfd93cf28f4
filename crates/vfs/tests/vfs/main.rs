//! The file tree, tested from outside.
#![allow(missing_docs)]

mod files;
mod mounts;
mod ops;
mod oracle;
mod properties;
mod quotas;
mod real;
mod support;
mod system;
mod world;
