//! Stands in for the `icu_collator` crate, with which uutils' tools sort by the rules of a language.
//!
//! The sandbox has one locale, C.UTF-8, in which strings compare as their bytes do; the tables for all the others
//! were an eighth of the program.

use std::cmp::Ordering;
use std::convert::Infallible;

use icu_locale_core::Locale;
use options::CollatorOptions;

/// Choices of how to compare, all of which come out the same here.
pub mod options {
    /// Whether punctuation counts.
    #[derive(Clone, Copy, Debug)]
    pub enum AlternateHandling {
        /// It does.
        NonIgnorable,
        /// It decides only between strings that are otherwise equal.
        Shifted,
    }

    /// Whether case has a level of its own.
    #[derive(Clone, Copy, Debug)]
    pub enum CaseLevel {
        /// It does not.
        Off,
        /// It does.
        On,
    }

    /// Which characters count as punctuation.
    #[derive(Clone, Copy, Debug)]
    pub enum MaxVariable {
        /// White space.
        Space,
        /// And punctuation.
        Punctuation,
        /// And symbols.
        Symbol,
        /// And currency signs.
        Currency,
    }

    /// Down to which differences to compare.
    #[derive(Clone, Copy, Debug)]
    pub enum Strength {
        /// Letters.
        Primary,
        /// And accents.
        Secondary,
        /// And case.
        Tertiary,
        /// And punctuation.
        Quaternary,
        /// And everything else.
        Identical,
    }

    /// The choices together.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct CollatorOptions {
        /// Whether punctuation counts.
        pub alternate_handling: Option<AlternateHandling>,
        /// Whether case has a level of its own.
        pub case_level: Option<CaseLevel>,
        /// Which characters count as punctuation.
        pub max_variable: Option<MaxVariable>,
        /// Down to which differences to compare.
        pub strength: Option<Strength>,
    }
}

/// The language asked for.
#[derive(Clone, Copy, Debug)]
pub struct CollatorPreferences;

impl From<Locale> for CollatorPreferences {
    fn from(_locale: Locale) -> Self {
        Self
    }
}

/// Compares strings.
#[derive(Debug)]
pub struct CollatorBorrowed;

impl CollatorBorrowed {
    /// One for any language.
    pub fn try_new(_language: CollatorPreferences, _options: CollatorOptions) -> Result<Self, Infallible> {
        Ok(Self)
    }

    /// Which string comes first.
    pub fn compare_utf8(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.cmp(right)
    }

    /// Bytes that compare as the strings do: the string's own.
    pub fn write_sort_key_utf8_to(&self, string: &[u8], key: &mut Vec<u8>) -> Result<(), Infallible> {
        key.extend_from_slice(string);
        Ok(())
    }
}
