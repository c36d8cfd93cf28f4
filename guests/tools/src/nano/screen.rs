//! What the editor shows.

use super::text::{Place, Text, unit, width};

/// Which part of the text is shown.
#[derive(Clone, Copy, Default)]
pub struct View {
    pub rows: usize,
    pub columns: usize,
    /// The first line and the first column of it.
    pub top: usize,
    pub left: usize,
    /// Lines have their numbers before them.
    pub numbers: bool,
    /// There is nothing around the text but a line at the foot.
    pub plain: bool,
}

/// What the two lines at the foot say; shown where there is room for them.
const HELP: [&str; 2] = [
    "^G Help   ^O Write Out  ^W Where Is  ^K Cut    ^U Paste  ^C Location",
    "^X Exit   ^S Save       ^\\ Replace   ^_ Go To  M-U Undo  M-E Redo",
];

impl View {
    /// How many lines of text there are.
    pub fn text_rows(&self) -> usize {
        let around = match self.plain {
            true => 1,
            false if self.rows >= 10 => 4,
            false => 2,
        };
        self.rows.saturating_sub(around).max(1)
    }

    fn number_width(&self, text: &Text) -> usize {
        if self.numbers { text.lines.len().to_string().len() + 1 } else { 0 }
    }

    fn text_columns(&self, text: &Text) -> usize {
        self.columns.saturating_sub(self.number_width(text)).max(1)
    }

    /// Moves so that the cursor is seen.
    fn follow(&mut self, text: &Text) {
        let (rows, columns) = (self.text_rows(), self.text_columns(text));
        let row = text.cursor.row;
        if row < self.top || row >= self.top + rows {
            self.top = row.saturating_sub(rows / 2);
        }
        let column = text.column(text.cursor);
        if column < self.left || column >= self.left + columns {
            self.left = column.saturating_sub(columns / 2);
        }
        // Near the start there is no reason to hide it.
        if column < columns.saturating_sub(1) {
            self.left = 0;
        }
    }

    /// Everything on the screen, and the cursor in its place.
    pub fn draw(&mut self, text: &Text, title: &str, status: &str) -> Vec<u8> {
        self.follow(text);
        let mut out = b"\x1b[?25l\x1b[H".to_vec();
        let state = if text.is_modified() { "Modified" } else { "" };
        let room = self.columns.saturating_sub(state.len() + 2);
        let title = clip(&format!("  nano   {title}"), room);
        out.extend(format!("\x1b[7m{title}{state}  \x1b[m\x1b[K").bytes());
        let rows = self.text_rows();
        for row in self.top..self.top + rows {
            out.extend(b"\r\n");
            if row < text.lines.len() {
                if self.numbers {
                    let number = toolkit::pad::before(row + 1, ' ', self.number_width(text) - 1);
                    out.extend(format!("\x1b[2m{number} \x1b[m").bytes());
                }
                self.draw_line(text, row, &mut out);
            }
            out.extend(b"\x1b[K");
        }
        out.extend(b"\r\n");
        if !status.is_empty() {
            out.extend(format!("\x1b[7m{}\x1b[m", clip(status, self.columns).trim_end()).bytes());
        }
        out.extend(b"\x1b[K");
        if self.rows >= 10 {
            for line in HELP {
                out.extend(format!("\r\n{}\x1b[K", clip(line, self.columns).trim_end()).bytes());
            }
        }
        let column = text.column(text.cursor) - self.left + self.number_width(text);
        let row = text.cursor.row - self.top;
        out.extend(format!("\x1b[{};{}H\x1b[?25h", row + 2, column + 1).bytes());
        out
    }

    /// The text and a line at the foot, and the cursor in its place. Lines that are selected stand out.
    pub fn draw_plain(&mut self, text: &Text, status: &str, selection: Option<(Place, Place)>) -> Vec<u8> {
        self.follow(text);
        let mut out = b"\x1b[?25l\x1b[H".to_vec();
        for row in self.top..self.top + self.text_rows() {
            let chosen = selection.is_some_and(|(from, to)| (from.row..=to.row).contains(&row));
            if chosen {
                out.extend(b"\x1b[7m");
            }
            match row < text.lines.len() {
                true => self.draw_line(text, row, &mut out),
                false => out.push(b'~'),
            }
            if chosen {
                out.extend(b"\x1b[m");
            }
            out.extend(b"\x1b[K\r\n");
        }
        let status = clip(status, self.columns.saturating_sub(1));
        out.extend(format!("{}\x1b[K", status.trim_end()).bytes());
        let column = text.column(text.cursor) - self.left;
        let row = text.cursor.row - self.top;
        out.extend(format!("\x1b[{};{}H\x1b[?25h", row + 1, column + 1).bytes());
        out
    }

    /// A question in the line at the foot, of an editor that has nothing else there.
    pub fn draw_foot(&self, question: &str) -> Vec<u8> {
        let skip = question.chars().count().saturating_sub(self.columns.saturating_sub(1));
        let shown: String =
            question.chars().skip(skip).map(|char| if char.is_control() { '?' } else { char }).collect();
        format!("\x1b[{};1H{shown}\x1b[K\x1b[?25h", self.text_rows() + 1).into_bytes()
    }

    /// The visible part of a line. A mark at an edge says that there is more.
    fn draw_line(&self, text: &Text, row: usize, out: &mut Vec<u8>) {
        let (line, columns) = (&text.lines[row], self.text_columns(text));
        let right = self.left + columns;
        let (mut at, mut column) = (0, 0);
        let mut shown = String::new();
        while at < line.len() && column < right {
            let (length, char) = unit(line, at);
            let wide = width(char, column, text.tab);
            let is_last = at + length >= line.len();
            if column + wide > right || column + wide == right && !is_last {
                shown.push_str(&" ".repeat(right - 1 - column.min(right - 1)));
                shown.push('>');
                break;
            }
            if column >= self.left {
                match char {
                    '\t' => shown.push_str(&" ".repeat(wide)),
                    // The C1 ones as well: a terminal would obey them.
                    char if char.is_control() => {
                        shown.push('^');
                        shown.push(char::from((char as u32 as u8 & 0x7f) ^ 0x40));
                    }
                    char => shown.push(char),
                }
            } else if column + wide > self.left {
                shown.push_str(&" ".repeat(column + wide - self.left));
            }
            column += wide;
            at += length;
        }
        if self.left > 0 && !shown.is_empty() {
            shown.replace_range(..shown.chars().next().map_or(0, char::len_utf8), "<");
        }
        out.extend(shown.bytes());
    }

    /// The line at the foot as something to be filled in.
    pub fn draw_question(&self, question: &str, answer: &str) -> Vec<u8> {
        let row = 2 + self.text_rows();
        let room = self.columns.saturating_sub(1);
        let whole = format!("{question}{answer}");
        // The end of a long answer is where it is typed.
        let skip = whole.chars().count().saturating_sub(room);
        let shown: String =
            whole.chars().skip(skip).map(|char| if char.is_control() { '?' } else { char }).collect();
        format!("\x1b[{row};1H\x1b[7m{shown}\x1b[m\x1b[K\x1b[?25h").into_bytes()
    }

    /// A screen up or down.
    pub fn page(&mut self, text: &mut Text, down: bool) {
        let rows = self.text_rows().saturating_sub(2).max(1) as isize;
        text.step(if down { rows } else { -rows });
        self.top = match down {
            true => (self.top + rows as usize).min(text.lines.len() - 1),
            false => self.top.saturating_sub(rows as usize),
        };
    }

    /// Where the cursor is, in words.
    pub fn location(text: &Text) -> String {
        let Place { row, at } = text.cursor;
        let count = text.lines.len();
        let (column, length) = (text.column(text.cursor) + 1, text.column(Place { row, at: usize::MAX }) + 1);
        let before: usize = text.lines[..row].iter().map(|line| line.len() + 1).sum::<usize>() + at;
        format!("[ line {}/{count}, column {column}/{length}, byte {before} ]", row + 1)
    }
}

/// A text cut or filled up to a width.
fn clip(text: &str, columns: usize) -> String {
    let (mut shown, mut column) = (String::new(), 0);
    for char in text.chars().map(|char| if char.is_control() { '?' } else { char }) {
        let wide = width(char, column, 8);
        if column + wide > columns {
            break;
        }
        shown.push(char);
        column += wide;
    }
    shown.push_str(&" ".repeat(columns - column));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(content: &str, left: usize, columns: usize) -> String {
        let text = Text::new(content.as_bytes(), 8);
        let view = View { rows: 24, columns, top: 0, left, numbers: false, plain: false };
        let mut out = Vec::new();
        view.draw_line(&text, 0, &mut out);
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn lines_fit_the_window() {
        assert_eq!(line("short", 0, 10), "short");
        assert_eq!(line("exactly10!", 0, 10), "exactly10!");
        assert_eq!(line("more than ten", 0, 10), "more than>");
        assert_eq!(line("more than ten", 5, 10), "<han ten");
        assert_eq!(line("a\tb\x1b[2J\u{9b}1m", 0, 30), "a       b^[[2J^[1m");
        // A wide character is not cut in half.
        assert_eq!(line("漢字漢字漢字", 0, 5), "漢字>");
        assert_eq!(line("漢字漢字", 1, 10), "<字漢字");
    }

    #[test]
    fn every_row_is_within_the_window() {
        let content: String = (0..100).map(|n| format!("{n} {}\n", "xäö漢\t".repeat(n))).collect();
        let mut text = Text::new(content.as_bytes(), 8);
        for (rows, columns) in [(1, 1), (2, 3), (9, 12), (10, 80), (50, 200)] {
            let mut view = View { rows, columns, ..View::default() };
            for row in [0, 50, 99] {
                text.go(Place { row, at: usize::MAX });
                let drawn =
                    String::from_utf8(view.draw(&text, "a rather long title", "status")).expect("it is text");
                let count = drawn.matches("\r\n").count() + 1;
                assert!(count <= rows.max(3), "{count} rows in a window of {rows}");
            }
        }
    }
}
