//! Text in columns.

use super::out::Out;

#[derive(Clone, Copy, PartialEq)]
pub enum Align {
    Left,
    Right,
}

/// Rows below titles; each column as wide as its widest cell.
pub struct Table {
    columns: Vec<(usize, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new() -> Table {
        Table { columns: Vec::new(), rows: vec![Vec::new()] }
    }

    /// Adds a column that is at least so wide.
    pub fn column(&mut self, title: String, least: usize, align: Align) {
        self.columns.push((least, align));
        self.rows[0].push(title);
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub fn print(&self, out: &mut Out) {
        let width = |text: &str| text.chars().count();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|at| self.rows.iter().map(|row| width(&row[at])).max().unwrap_or(0).max(self.columns[at].0))
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let missing = " ".repeat(widths[at] - width(cell));
                let is_last = at + 1 == row.len();
                match self.columns[at].1 {
                    Align::Left if is_last => line += cell,
                    Align::Left => line.extend([cell.as_str(), &missing]),
                    Align::Right => line.extend([&missing, cell.as_str()]),
                }
                if !is_last {
                    line.push(' ');
                }
            }
            out.put(line + "\n");
        }
    }
}
