//! Stands in for the `fluent` crate, with which uutils' tools translate their messages.
//!
//! Every tool asks for dozens of messages before it does anything, most of them help texts nobody reads. The real
//! crate parses a tool's message file at each start to answer: that cost more than all else together. Here the
//! messages were parsed when the program was built (`build.rs`), and an answer is a look-up in a sorted table. There
//! is one language, English, so the resources and locales that callers hand over do not matter.

use std::borrow::Cow;
use std::marker::PhantomData;

use fluent_syntax::parser::ParserError;
use unic_langid::LanguageIdentifier;

/// A piece of a message.
#[derive(Debug)]
pub enum Piece {
    /// Text that stands for itself.
    Text(&'static str),
    /// The argument of this name.
    Argument(&'static str),
    /// One of several patterns, by the value of an argument.
    Select {
        /// The argument's name.
        argument: &'static str,
        /// The patterns for particular values.
        variants: &'static [(&'static str, &'static [Piece])],
        /// The pattern for every other value.
        default: &'static [Piece],
    },
}

use Piece::{Argument, Select, Text};

/// Messages by identifier, in its order.
static MESSAGES: &[(&str, &[Piece])] = include!(concat!(env!("OUT_DIR"), "/messages.rs"));

/// Values for a message's arguments.
#[derive(Debug, Default)]
pub struct FluentArgs<'a>(Vec<(Cow<'a, str>, FluentValue<'a>)>);

impl<'a> FluentArgs<'a> {
    /// No arguments.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives an argument a value.
    pub fn set<K: Into<Cow<'a, str>>, V: Into<FluentValue<'a>>>(&mut self, key: K, value: V) {
        self.0.push((key.into(), value.into()));
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.0.as_ref())
    }
}

/// An argument's value, as it will be printed.
#[derive(Debug)]
pub struct FluentValue<'a>(Cow<'a, str>);

impl From<String> for FluentValue<'_> {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl<'a> From<&'a str> for FluentValue<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.into())
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl From<$number> for FluentValue<'_> {
            fn from(number: $number) -> Self {
                Self(number.to_string().into())
            }
        })*
    };
}

numbers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);

/// Would hold the text of a message file; nothing here reads it.
#[derive(Debug)]
pub struct FluentResource;

impl FluentResource {
    /// Accepts any text.
    pub fn try_new(_source: String) -> Result<Self, (Self, Vec<ParserError>)> {
        Ok(Self)
    }
}

/// What could go wrong with a message, and does not.
#[derive(Debug)]
pub enum FluentError {}

/// All messages there are.
#[derive(Debug)]
pub struct FluentBundle<R> {
    /// The languages the caller asked for.
    pub locales: Vec<LanguageIdentifier>,
    resources: PhantomData<R>,
}

impl<R> FluentBundle<R> {
    /// Needs no set-up.
    pub fn new(locales: Vec<LanguageIdentifier>) -> Self {
        Self { locales, resources: PhantomData }
    }

    /// The messages are plain text: there is nothing to isolate.
    pub fn set_use_isolating(&mut self, _value: bool) {}

    /// The messages are known already.
    pub fn add_resource_overriding(&mut self, _resource: R) {}

    /// Whether there is a message of this name.
    pub fn has_message(&self, id: &str) -> bool {
        self.get_message(id).is_some()
    }

    /// The message of this name.
    pub fn get_message(&self, id: &str) -> Option<FluentMessage> {
        let found = MESSAGES.binary_search_by_key(&id, |(name, _)| name).ok()?;
        Some(FluentMessage(MESSAGES[found].1))
    }

    /// The text of a message with its arguments' values.
    pub fn format_pattern<'a>(
        &self,
        pattern: &'a [Piece],
        args: Option<&FluentArgs<'_>>,
        _errors: &mut Vec<FluentError>,
    ) -> Cow<'a, str> {
        if let [Text(text)] = pattern {
            return Cow::Borrowed(text);
        }
        let mut text = String::new();
        append(&mut text, pattern, args);
        Cow::Owned(text)
    }
}

/// A message found.
#[derive(Debug)]
pub struct FluentMessage(&'static [Piece]);

impl FluentMessage {
    /// Its pattern.
    pub fn value(&self) -> Option<&'static [Piece]> {
        Some(self.0)
    }
}

fn append(text: &mut String, pattern: &[Piece], args: Option<&FluentArgs<'_>>) {
    let value = |name: &str| args.and_then(|args| args.get(name));
    for piece in pattern {
        match piece {
            Text(piece) => text.push_str(piece),
            Argument(name) => match value(name) {
                Some(value) => text.push_str(value),
                None => text.extend(["{$", name, "}"]),
            },
            Select { argument, variants, default } => {
                let value = value(argument).unwrap_or_default();
                // English has two plurals, and names the first for the number 1 alone.
                let is_meant = |key: &str| key == value || (key == "one" && value == "1");
                let variant =
                    variants.iter().find(|(key, _)| is_meant(key)).map_or(*default, |(_, pattern)| pattern);
                append(text, variant, args);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(id: &str, args: &[(&'static str, &'static str)]) -> String {
        let bundle = FluentBundle::<FluentResource>::new(vec![]);
        let message = bundle.get_message(id).unwrap_or_else(|| panic!("no message {id}"));
        let mut values = FluentArgs::new();
        args.iter().for_each(|(key, value)| values.set(*key, *value));
        bundle.format_pattern(message.value().unwrap(), Some(&values), &mut vec![]).into_owned()
    }

    #[test]
    fn messages_are_english() {
        assert_eq!(say("cat-error-is-directory", &[]), "Is a directory");
        assert_eq!(say("error-is-a-directory", &[("file", "x")]), "x: Is a directory");
        assert_eq!(say("checksum-bad-format", &[("count", "1")]), "1 line is improperly formatted");
        assert_eq!(say("checksum-bad-format", &[("count", "2")]), "2 lines are improperly formatted");
    }

    #[test]
    fn an_unknown_message_is_none() {
        assert!(!FluentBundle::<FluentResource>::new(vec![]).has_message("no-such-message"));
    }
}
