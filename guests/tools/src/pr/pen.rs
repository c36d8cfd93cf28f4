//! Writing with blanks that are not written before something follows them, so that tabs can take their place.

use super::layout::{Layout, to_tab};
use toolkit::out::Out;

pub struct Pen<'a> {
    out: &'a mut Out,
    tabify: bool,
    tab: (u8, i64),
    separator: Vec<u8>,
    /// The column that was reached.
    pub column: i64,
    /// Blanks and separators that are to be written before anything else.
    pub blanks: i64,
    pub separators: i64,
}

impl<'a> Pen<'a> {
    pub fn new(layout: &Layout, out: &'a mut Out) -> Pen<'a> {
        let separator = layout.separator.clone();
        let (tabify, tab) = (layout.tabify, layout.output_tab);
        Pen { out, tabify, tab, separator, column: 0, blanks: 0, separators: 0 }
    }

    /// Forgets what was to be written: a line begins.
    pub fn begin_line(&mut self) {
        (self.column, self.blanks, self.separators) = (0, 0, 0);
    }

    pub fn put(&mut self, byte: u8) {
        if self.tabify {
            if byte == b' ' {
                self.blanks += 1;
                return;
            }
            if self.blanks > 0 {
                self.put_blanks();
            }
            // What does not print takes no room.
            match byte {
                0x08 => self.column -= 1,
                b' '..=b'~' => self.column += 1,
                _ => {}
            }
        }
        self.out.put([byte]);
    }

    /// Writes as it is.
    pub fn put_text(&mut self, text: impl AsRef<[u8]>) {
        self.out.put(text);
    }

    /// Blanks, as they are.
    pub fn put_spaces(&mut self, count: usize) {
        self.out.put_many(b' ', count);
    }

    /// A tab behind the number of a line.
    pub fn skip_to_tab(&mut self) {
        self.column += to_tab(self.tab.1, self.column);
    }

    /// Goes on to a column.
    pub fn move_to(&mut self, column: i64) {
        if self.tabify {
            self.blanks = column - self.column;
            return;
        }
        for _ in self.column..column {
            self.out.put(" ");
        }
        self.column = column;
    }

    /// Writes the blanks that are still to be written, as tabs where that is shorter.
    pub fn put_blanks(&mut self) {
        let goal = self.column + self.blanks;
        let (sign, width) = self.tab;
        let mut column = self.column;
        while goal - column > 1 && column + to_tab(width, column) <= goal {
            self.out.put([sign]);
            column += to_tab(width, column);
        }
        for _ in column..goal {
            self.out.put(" ");
        }
        self.column = goal;
        self.blanks = 0;
    }

    /// Writes the separator, if columns came before; several that are empty have one together.
    pub fn put_separator(&mut self) {
        if self.separators <= 0 {
            if self.blanks > 0 {
                self.put_blanks();
            }
            return;
        }
        for at in 0..self.separator.len() {
            let byte = self.separator[at];
            if byte == b' ' {
                self.blanks += 1;
                continue;
            }
            if self.blanks > 0 {
                self.put_blanks();
            }
            self.out.put([byte]);
            self.column += 1;
        }
        if self.blanks > 0 {
            self.put_blanks();
        }
        self.separators = 0;
    }
}
