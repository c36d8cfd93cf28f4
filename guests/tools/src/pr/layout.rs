//! What a page looks like.

/// What becomes of bytes that do not print.
#[derive(Clone, Copy, PartialEq)]
pub enum Shown {
    AsTheyAre,
    Octal,
    /// `^G`, and in octal what has no such sign.
    Hat,
}

/// The lines of a heading, and the empty ones at the end of a page.
const HEADER_LINES: i64 = 5;
pub const FOOTER_LINES: i64 = 5;

#[derive(Clone)]
pub struct Layout {
    pub columns: usize,
    pub across: bool,
    /// All files side by side.
    pub parallel: bool,
    /// Columns are filled downwards: a page must be read before it can be printed.
    pub storing: bool,
    pub page_lines: i64,
    /// Lines of text on a page.
    pub body_lines: i64,
    /// Pages have a heading and an end.
    pub extremities: bool,
    pub keeps_feeds: bool,
    pub form_feed: bool,
    pub double_space: bool,
    pub width: i64,
    pub column_width: i64,
    pub margin: i64,
    pub truncate: bool,
    pub join: bool,
    pub separator: Vec<u8>,
    pub has_separator: bool,
    pub untabify: bool,
    pub tabify: bool,
    /// The sign for a tab, and how wide it is.
    pub input_tab: (u8, i64),
    pub output_tab: (u8, i64),
    pub numbered: bool,
    /// What follows a number, and how many digits it has.
    pub number: (u8, i64),
    pub number_width: i64,
    pub first_number: i64,
    pub counts_skipped: bool,
    pub shown: Shown,
    pub header: Option<Vec<u8>>,
    pub date_format: Vec<u8>,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            columns: 1,
            across: false,
            parallel: false,
            storing: true,
            page_lines: 66,
            body_lines: 0,
            extremities: true,
            keeps_feeds: false,
            form_feed: false,
            double_space: false,
            width: 72,
            column_width: 0,
            margin: 0,
            truncate: false,
            join: false,
            separator: Vec::new(),
            has_separator: false,
            untabify: false,
            tabify: false,
            input_tab: (b'\t', 8),
            output_tab: (b'\t', 8),
            numbered: false,
            number: (b'\t', 5),
            number_width: 0,
            first_number: 1,
            counts_skipped: true,
            shown: Shown::AsTheyAre,
            header: None,
            date_format: b"%Y-%m-%d %H:%M".to_vec(),
        }
    }
}

/// How far it is to the next tab stop.
pub fn to_tab(width: i64, column: i64) -> i64 {
    width - column % width
}

impl Layout {
    /// Works out what follows from the rest, for so many files.
    pub fn settle(&mut self, files: usize) -> Result<(), String> {
        self.settle_lines();
        self.parallel &= files > 0;
        if self.parallel {
            self.columns = files;
        }
        self.settle_separator();
        if self.numbered {
            let (sign, digits) = self.number;
            self.number_width = digits + if sign == b'\t' { to_tab(8, digits) } else { 1 };
        }
        // The numbers of files side by side have a column of their own.
        let numbers = if self.parallel { self.number_width } else { 0 };
        let separators = (self.columns as i64 - 1).saturating_mul(self.separator.len() as i64);
        self.column_width = (self.width - numbers - separators) / self.columns as i64;
        if self.column_width < 1 {
            return Err("page width too narrow".into());
        }
        Ok(())
    }

    fn settle_lines(&mut self) {
        self.body_lines = self.page_lines - HEADER_LINES - FOOTER_LINES;
        if self.body_lines <= 0 {
            self.extremities = false;
            self.keeps_feeds = true;
        }
        if !self.extremities {
            self.body_lines = self.page_lines;
        }
        if self.double_space {
            self.body_lines = (self.body_lines / 2).max(1);
        }
    }

    fn settle_separator(&mut self) {
        if self.columns > 1 {
            if !self.has_separator {
                self.separator = if self.join { b"\t".to_vec() } else { b" ".to_vec() };
                self.has_separator = true;
            } else if !self.join && self.separator == b"\t" {
                // With columns that are aligned a tab makes no sense.
                self.separator = b" ".to_vec();
            }
            self.truncate = true;
            self.untabify |= self.separator != b"\t";
            self.tabify = true;
        } else {
            self.storing = false;
        }
        self.truncate &= !self.join;
    }
}
