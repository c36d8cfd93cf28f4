//! What is at the head of each page.

use super::layout::Layout;
use toolkit::clock;
use toolkit::source::Source;
use unicode_width::UnicodeWidthStr;
use wardian_abi as abi;
use wardian_clock::{Dialect, When, Zone};

/// A date, a title, and how many blanks there are beside the number of the page.
pub struct Heading {
    pub date: String,
    pub title: String,
    pub spare: i64,
}

impl Heading {
    /// Of a file, or of none in particular.
    pub fn new(layout: &Layout, file: Option<(&[u8], &Source)>) -> Heading {
        let changed = file.and_then(|(_, source)| abi::fstat(source.fd()).ok()).map(|stat| stat.mtime);
        let nanos = changed.unwrap_or_else(clock::now);
        let when = When::from_nanos(nanos);
        let date = wardian_clock::format(&layout.date_format, when, &Zone::local(), Dialect::Gnu);
        let title = match (&layout.header, file) {
            (Some(header), _) => header.as_slice(),
            (None, Some((name, _))) => name,
            (None, None) => b"",
        };
        let [date, title] = [&date, title].map(|text| String::from_utf8_lossy(text).into_owned());
        let spare = layout.width - date.width() as i64 - title.width() as i64;
        Heading { date, title, spare }
    }
}
