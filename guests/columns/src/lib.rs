//! The tools that look at every byte of what they read, line after line or column after column.
//!
//! They are a crate of their own so that they are compiled for speed, where the other tools are compiled for size.
//! Each is a module with a `main` that takes the arguments and answers the exit code; the program that has their names
//! is `tools`.

// Only our own program uses it, from the same tree: names that speak for themselves need no more words.
#![allow(missing_docs)]

pub mod base;
pub mod cut;
pub mod fold;
pub mod paste;
pub mod tabs;
pub mod tr;
pub mod uniq;
