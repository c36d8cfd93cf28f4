//! The columns of a page.

use super::layout::Layout;

#[derive(Clone, Copy, PartialEq)]
pub enum State {
    Open,
    /// A form feed was read ahead of what is printed.
    FeedFound,
    /// A form feed ended its part of this page.
    OnHold,
    Closed,
}

/// A column of the page.
pub struct Column {
    /// Which of the files it shows: all the same, unless they are side by side.
    pub file: usize,
    pub state: State,
    /// Which of the stored lines comes next, and how many there are.
    pub next: usize,
    pub stored: usize,
    /// How many lines of this page are still to be printed.
    pub left: i64,
    /// The column of the page it begins in, with the separator before it; 0 for anywhere.
    pub start: i64,
    pub numbered: bool,
    /// The page before was full: a form feed that follows ends it, and not another.
    pub page_was_full: bool,
}

/// The columns of a page, and where each begins.
pub fn columns_of(layout: &Layout, shown: &[usize]) -> Vec<Column> {
    let separator = layout.separator.len() as i64;
    let mut start = layout.margin;
    let mut columns = Vec::new();
    for at in 0..layout.columns {
        columns.push(Column {
            // Columns of one file all show it.
            file: shown.get(at).copied().unwrap_or(0),
            state: State::Open,
            next: 0,
            stored: 0,
            left: 0,
            // The first has no separator, but counts as if it had.
            start: if at == 0 { start + separator } else { start },
            numbered: layout.numbered && (!layout.parallel || at == 0),
            page_was_full: false,
        });
        let numbers = if layout.parallel && at == 0 { layout.number_width } else { 0 };
        // Lines that are not cut end anywhere, and so the next begins anywhere.
        start = if layout.truncate { start + layout.column_width + numbers + separator } else { 0 };
    }
    columns
}
