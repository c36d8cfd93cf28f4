//! JSON as text: reading it as it arrives, and writing it.

mod events;
mod read;
mod tree;
mod write;

pub use events::Events;
pub use read::{Reader, Sink, Token, parse_one};
pub use tree::Tree;
pub use write::{Colors, Layout, Style, to_text, write};

/// How deep arrays and objects may lie in each other in a text that is read (each key counts too) or written.
pub const DEEPEST: usize = 256;
