//! awk: a compiler and a machine over byte strings.
//!
//! ```text
//! program text ─ lexer ─ parser ─ ast ─ compile ─ code ─ machine ── streams ── files, commands
//!                                                        ├ fields    $0, $1, …, NF
//!                                                        ├ input     records
//!                                                        └ regex     leftmost-longest matches
//! ```
//!
//! It speaks the language of POSIX and the extensions of gawk that people use. Text is bytes throughout; characters
//! are those of UTF-8, and a byte that belongs to none counts as one. Read in the order of the picture.
//!
//! ```
//! use wardian_awk::{Machine, compile, parse, Source};
//!
//! let source = Source { name: None, text: b"BEGIN { exit length(\"seven..\") }".to_vec() };
//! let (program, names) = parse(vec![source], &|_| Err("no files here".into()))?;
//! let mut machine = Machine::new(compile(&program, names)?, false);
//! assert_eq!(machine.execute()?, 7);
//! # Ok::<(), wardian_awk::Error>(())
//! ```
#![deny(missing_docs)]

mod array;
mod ast;
mod cli;
mod code;
mod compile;
mod error;
mod escape;
mod fields;
mod format;
mod input;
mod lexer;
mod machine;
mod number;
mod parser;
mod random;
mod regex;
mod streams;
mod text;
mod time;
mod value;

pub use ast::Program;
pub use cli::main;
pub use code::Code;
pub use compile::compile;
pub use error::{Error, Result};
pub use machine::Machine;
pub use parser::{Include, Source, parse};
