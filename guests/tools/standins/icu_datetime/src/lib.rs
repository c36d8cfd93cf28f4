//! Stands in for the `icu_datetime` crate, from which uutils' tools take the names of months and days.
//!
//! The sandbox has one locale, C.UTF-8. A caller who learns that there are no names for a language falls back to
//! English, so nothing more is needed here than to say so.

use std::convert::Infallible;
use std::marker::PhantomData;

use icu_locale_core::Locale;

/// What of a date to name.
pub mod fieldsets {
    /// The month.
    #[derive(Clone, Copy, Debug)]
    pub struct M;

    /// The day of the week.
    #[derive(Clone, Copy, Debug)]
    pub struct E;

    macro_rules! lengths {
        ($($part:ty)*) => {
            $(impl $part {
                /// Its full name.
                pub const fn long() -> Self {
                    Self
                }
                /// Its abbreviation.
                pub const fn medium() -> Self {
                    Self
                }
                /// Its shortest form.
                pub const fn short() -> Self {
                    Self
                }
            })*
        };
    }

    lengths!(M E);
}

/// The language asked for.
#[derive(Clone, Copy, Debug)]
pub struct DateTimeFormatterPreferences;

impl From<Locale> for DateTimeFormatterPreferences {
    fn from(_locale: Locale) -> Self {
        Self
    }
}

/// The answer to every request for a formatter.
#[derive(Debug)]
pub struct NoSuchLanguage;

/// Would name parts of dates; there never is one.
#[derive(Debug)]
pub struct DateTimeFormatter<Part> {
    never: Infallible,
    part: PhantomData<Part>,
}

impl<Part> DateTimeFormatter<Part> {
    /// There are no names for any language.
    pub fn try_new(_language: DateTimeFormatterPreferences, _part: Part) -> Result<Self, NoSuchLanguage> {
        Err(NoSuchLanguage)
    }

    /// The name of a part of the date.
    pub fn format<Date>(&self, _date: &Date) -> String {
        match self.never {}
    }
}
