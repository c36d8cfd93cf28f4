//! The language: from the text of a program to the tree the machine walks.

mod lexer;
mod modules;
mod parser;
mod prelude;
mod tree;

pub use modules::Library;
pub use parser::{Compiled, compile, over_all_documents};
pub use prelude::names as prelude_names;
pub use tree::{Bind, Entry, Key, Node, Operator, Part, Pattern, Special};
