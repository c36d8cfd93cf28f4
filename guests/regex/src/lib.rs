//! Regular expressions over byte strings, for every guest that has them.
//!
//! Two engines stand behind one crate. [`Regex`] is for the tools that search much text: it has all the syntaxes and lazy
//! automata, and with the feature `automata` come the tables of Unicode. [`small::Regex`] is for the programs that match
//! a name or a word now and then and must start fast (the shell, `tar --transform`, SQL's `REGEXP`): a few hundred
//! lines without any of that.
//!
//! ```text
//! awk's, GNU's basic or extended, fixed ── syntax ──► tree ──► automata    lazy DFAs: the leftmost-longest match
//!                                                        └──► backtrack   where a pattern refers back
//! Rust's, Perl's ── regex_syntax ──► automata             the leftmost match that the pattern prefers
//!             └──── perl ──► fancy_regex                  look-around and references back
//! ```
//!
//! A text need not be UTF-8: a byte that belongs to no character matches nothing but itself. A plain text is looked for
//! as such. One who only asks whether there is a match pays for one automaton; the bounds of a match take two more,
//! groups a fourth, each made when it is first wanted.
//!
//! ```
//! use wardian_regex::{Options, Regex, Syntax};
//! let regex = Regex::new(br"\(a\|ab\)\(c\|bcd\)", &Options::new(Syntax::Basic)).unwrap();
//! assert_eq!(regex.find_at(b"xabcd", 0), Some((1, 5)));
//! ```

#[cfg(feature = "automata")]
mod automata;
#[cfg(feature = "automata")]
mod backtrack;
pub mod class;
#[cfg(feature = "automata")]
mod escape;
#[cfg(feature = "automata")]
mod full;
mod locale;
#[cfg(feature = "automata")]
mod perl;
#[cfg(feature = "automata")]
mod required;
pub mod small;
#[cfg(feature = "automata")]
mod syntax;
#[cfg(feature = "automata")]
mod text;
#[cfg(feature = "automata")]
mod tree;

#[cfg(feature = "automata")]
pub use escape::byte_of;
#[cfg(feature = "automata")]
pub use full::{Fit, Modern, Options, Regex, Syntax};
#[cfg(feature = "automata")]
pub use regex_syntax::escape;
#[cfg(feature = "automata")]
pub use text::char_len;

pub use locale::locale_is_utf8;

/// The bounds of a match and of its groups: from, to, or nothing for a group that took no part.
pub type Groups = Vec<Option<(usize, usize)>>;
