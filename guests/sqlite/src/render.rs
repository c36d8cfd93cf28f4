//! How rows look: one way for each output mode.

mod grid;
mod quote;

pub use quote::{insert_value, name as quoted_name, sql_text, tcl};

use crate::database::Cell;
use quote::{csv, html, json, sql_value};

/// A way to write rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mode {
    Ascii,
    Box,
    Column,
    Csv,
    Html,
    Insert,
    Json,
    Line,
    List,
    Markdown,
    Quote,
    Table,
    Tabs,
    Tcl,
}

/// Everything that decides how rows look.
#[derive(Clone)]
pub struct Style {
    pub mode: Mode,
    pub headers: bool,
    /// Whether somebody asked for headers, or for none.
    pub headers_chosen: bool,
    pub column_separator: Vec<u8>,
    pub row_separator: Vec<u8>,
    pub null: Vec<u8>,
    /// The table that `insert` names.
    pub table: Vec<u8>,
    /// Of columns; negative for those that stand at the right, 0 for those that have no width of their own.
    pub widths: Vec<i32>,
    pub wrapping: Wrapping,
}

/// What the modes that draw a grid do with long and strange text.
#[derive(Clone, Copy, PartialEq)]
pub struct Wrapping {
    /// The greatest width of a column that has none of its own; 0 is no limit.
    pub width: i32,
    pub at_words: bool,
    pub quotes: bool,
}

impl Wrapping {
    pub const OFF: Wrapping = Wrapping { width: 0, at_words: false, quotes: false };
    pub const USUAL: Wrapping = Wrapping { width: 60, at_words: false, quotes: false };
}

impl Default for Style {
    fn default() -> Style {
        Style {
            mode: Mode::List,
            headers: false,
            headers_chosen: false,
            column_separator: b"|".to_vec(),
            row_separator: b"\n".to_vec(),
            null: Vec::new(),
            table: b"table".to_vec(),
            widths: Vec::new(),
            wrapping: Wrapping::OFF,
        }
    }
}

impl Mode {
    /// What the shell calls it when it says in which mode it is.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Ascii => "ascii",
            Mode::Box => "box",
            Mode::Column => "column",
            Mode::Csv => "csv",
            Mode::Html => "html",
            Mode::Insert => "insert",
            Mode::Json => "json",
            Mode::Line => "line",
            Mode::List | Mode::Tabs => "list",
            Mode::Markdown => "markdown",
            Mode::Quote => "quote",
            Mode::Table => "table",
            Mode::Tcl => "tcl",
        }
    }

    pub fn is_grid(self) -> bool {
        matches!(self, Mode::Box | Mode::Column | Mode::Markdown | Mode::Table)
    }
}

/// Writes the rows of one statement.
pub struct Renderer<'s> {
    style: &'s Style,
    names: Vec<Vec<u8>>,
    rows: usize,
    kept: Vec<Vec<Cell>>,
}

impl<'s> Renderer<'s> {
    pub fn new(style: &'s Style, names: Vec<Vec<u8>>) -> Self {
        Renderer { style, names, rows: 0, kept: Vec::new() }
    }

    /// What one more row looks like: nothing yet, where all must be known to draw one.
    pub fn row(&mut self, row: Vec<Cell>) -> Vec<u8> {
        if self.style.mode.is_grid() {
            self.kept.push(row);
            return Vec::new();
        }
        let mut text = Vec::new();
        if self.rows == 0 {
            text.extend(self.header());
        }
        text.extend(self.one_row(&row));
        self.rows += 1;
        text
    }

    /// What comes after the last row.
    pub fn end(&mut self) -> Vec<u8> {
        match self.style.mode {
            mode if mode.is_grid() && !self.kept.is_empty() => {
                grid::draw(self.style, &self.names, &self.kept)
            }
            Mode::Json if self.rows > 0 => b"]\n".to_vec(),
            _ => Vec::new(),
        }
    }

    fn header(&self) -> Vec<u8> {
        let style = self.style;
        let joined =
            |shown: &dyn Fn(&[u8]) -> Vec<u8>| self.joined(self.names.iter().map(|name| shown(name)));
        match style.mode {
            Mode::Json => b"[".to_vec(),
            _ if !style.headers => Vec::new(),
            Mode::List | Mode::Ascii | Mode::Tabs => joined(&<[u8]>::to_vec),
            Mode::Csv => joined(&|name| csv(name, &style.column_separator)),
            Mode::Quote => joined(&|name| sql_text(name)),
            Mode::Tcl => joined(&|name| tcl(name)),
            Mode::Html => html::row(b"TH", self.names.iter().map(Vec::as_slice)),
            _ => Vec::new(),
        }
    }

    fn one_row(&self, row: &[Cell]) -> Vec<u8> {
        let style = self.style;
        let joined = |shown: &dyn Fn(&Cell) -> Vec<u8>| self.joined(row.iter().map(shown));
        match style.mode {
            Mode::Csv => joined(&|cell| match cell {
                Cell::Null => style.null.clone(),
                cell => csv(&style.text(cell), &style.column_separator),
            }),
            Mode::Quote => joined(&sql_value),
            Mode::Tcl => joined(&|cell| tcl(&style.text(cell))),
            Mode::Html => {
                let texts: Vec<Vec<u8>> = row.iter().map(|cell| style.text(cell)).collect();
                html::row(b"TD", texts.iter().map(Vec::as_slice))
            }
            Mode::Insert => self.insert(row),
            Mode::Json => json::object(&self.names, row, self.rows > 0),
            Mode::Line => self.lines(row),
            _ => joined(&|cell| style.text(cell)),
        }
    }

    fn joined(&self, texts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
        let mut line = texts.collect::<Vec<_>>().join(&self.style.column_separator[..]);
        line.extend(&self.style.row_separator);
        line
    }

    fn insert(&self, row: &[Cell]) -> Vec<u8> {
        let mut text = b"INSERT INTO ".to_vec();
        text.extend(quoted_name(&self.style.table));
        if self.style.headers {
            let names: Vec<Vec<u8>> = self.names.iter().map(|name| quoted_name(name)).collect();
            text.push(b'(');
            text.extend(names.join(&b','));
            text.push(b')');
        }
        text.extend(b" VALUES(");
        text.extend(row.iter().map(insert_value).collect::<Vec<_>>().join(&b','));
        text.extend(b");\n");
        text
    }

    fn lines(&self, row: &[Cell]) -> Vec<u8> {
        let width = self.names.iter().map(Vec::len).max().unwrap_or(0).max(5);
        let mut text = Vec::new();
        if self.rows > 0 {
            text.extend(&self.style.row_separator);
        }
        for (name, cell) in self.names.iter().zip(row) {
            text.extend(vec![b' '; width - name.len()]);
            text.extend(name);
            text.extend(b" = ");
            text.extend(self.style.text(cell));
            text.extend(&self.style.row_separator);
        }
        text
    }
}

impl Style {
    /// A value as plain text. A NUL byte ends it, as it does in the original.
    fn text(&self, cell: &Cell) -> Vec<u8> {
        cell.text().map_or_else(|| self.null.clone(), until_nul)
    }
}

/// A text up to its first NUL byte.
pub fn until_nul(mut text: Vec<u8>) -> Vec<u8> {
    if let Some(end) = text.iter().position(|&byte| byte == 0) {
        text.truncate(end);
    }
    text
}
