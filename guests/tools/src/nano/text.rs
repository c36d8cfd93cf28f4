//! The text that is edited: lines, a cursor, and what was changed.

use unicode_width::UnicodeWidthChar;

/// A place in the text: the line, and the byte in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    pub row: usize,
    pub at: usize,
}

/// Lines that took the place of others.
struct Change {
    row: usize,
    /// What was there.
    old: Vec<Vec<u8>>,
    /// How many lines are there now.
    new: usize,
    /// Where the cursor was.
    cursor: Place,
}

/// How many bytes of former lines are kept for undoing.
const REMEMBERED: usize = 16 << 20;

pub struct Text {
    /// Never empty: a file without text has one line without text.
    pub lines: Vec<Vec<u8>>,
    pub cursor: Place,
    /// The column that moving up and down keeps to.
    wanted: Option<usize>,
    pub tab: usize,
    undo: Vec<Change>,
    redo: Vec<Change>,
    /// What is typed next belongs to the last change.
    typing: bool,
    /// How many changes there were, more or less undone ones, when the text was last saved. None if that cannot be reached.
    saved: Option<usize>,
}

/// A character, or a byte that is none: its length and what shows it.
pub fn unit(line: &[u8], at: usize) -> (usize, char) {
    let rest = &line[at..line.len().min(at + 4)];
    let valid = match std::str::from_utf8(rest) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next().map_or((1, '\u{fffd}'), |char| (char.len_utf8(), char))
}

/// How many columns a character takes at a column.
pub fn width(char: char, column: usize, tab: usize) -> usize {
    match char {
        '\t' => tab - column % tab,
        char if char.is_control() => 2,
        char => char.width().unwrap_or(0),
    }
}

impl Text {
    pub fn new(content: &[u8], tab: usize) -> Text {
        let content = content.strip_suffix(b"\n").unwrap_or(content);
        let lines = content.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        Text {
            lines,
            cursor: Place::default(),
            wanted: None,
            tab,
            undo: Vec::new(),
            redo: Vec::new(),
            typing: false,
            saved: Some(0),
        }
    }

    /// The text as a file has it: every line with its end.
    pub fn content(&self) -> Vec<u8> {
        if self.lines.len() == 1 && self.lines[0].is_empty() {
            return Vec::new();
        }
        let mut content = self.lines.join(&b'\n');
        content.push(b'\n');
        content
    }

    pub fn is_modified(&self) -> bool {
        self.saved != Some(self.undo.len())
    }

    pub fn note_saved(&mut self) {
        self.saved = Some(self.undo.len());
        self.typing = false;
    }

    pub fn line(&self) -> &[u8] {
        &self.lines[self.cursor.row]
    }

    /// The column of a byte of a line.
    pub fn column(&self, place: Place) -> usize {
        let (line, mut at, mut column) = (&self.lines[place.row], 0, 0);
        while at < place.at.min(line.len()) {
            let (length, char) = unit(line, at);
            column += width(char, column, self.tab);
            at += length;
        }
        column
    }

    /// The byte of a line that is at a column, or the last before it.
    pub fn at_column(&self, row: usize, wanted: usize) -> usize {
        let (line, mut at, mut column) = (&self.lines[row], 0, 0);
        while at < line.len() {
            let (length, char) = unit(line, at);
            let wide = width(char, column, self.tab);
            if column + wide > wanted {
                break;
            }
            column += wide;
            at += length;
        }
        at
    }

    /// The column that moving up and down keeps to, if it is not the cursor's.
    pub fn wanted(&self) -> Option<usize> {
        self.wanted
    }

    pub fn want(&mut self, column: Option<usize>) {
        self.wanted = column;
    }

    pub fn wanted_column(&self) -> usize {
        self.wanted.unwrap_or_else(|| self.column(self.cursor))
    }

    /// How many changes can be undone.
    pub fn changes(&self) -> usize {
        self.undo.len()
    }

    /// What is typed next is a change of its own.
    pub fn pause(&mut self) {
        self.typing = false;
    }

    // --- moving ---

    pub fn go(&mut self, place: Place) {
        let row = place.row.min(self.lines.len() - 1);
        self.cursor = Place { row, at: place.at.min(self.lines[row].len()) };
        self.wanted = None;
        self.typing = false;
    }

    /// Up or down by lines, in the same column as far as there is one.
    pub fn step(&mut self, rows: isize) {
        let wanted = self.wanted.unwrap_or_else(|| self.column(self.cursor));
        let row = self.cursor.row.saturating_add_signed(rows).min(self.lines.len() - 1);
        let at = self.at_column(row, wanted);
        self.go(Place { row, at });
        self.wanted = Some(wanted);
    }

    pub fn forward(&mut self) {
        let Place { row, at } = self.cursor;
        if at < self.lines[row].len() {
            let (length, _) = unit(&self.lines[row], at);
            self.go(Place { row, at: at + length });
        } else if row + 1 < self.lines.len() {
            self.go(Place { row: row + 1, at: 0 });
        }
    }

    pub fn back(&mut self) {
        let Place { row, at } = self.cursor;
        if at > 0 {
            let at = self.before(row, at);
            self.go(Place { row, at });
        } else if row > 0 {
            self.go(Place { row: row - 1, at: usize::MAX });
        }
    }

    /// Where the character begins that ends at a byte.
    pub fn before(&self, row: usize, at: usize) -> usize {
        let line = &self.lines[row];
        let starts = (at.saturating_sub(4)..at).find(|&start| start + unit(line, start).0 == at);
        starts.unwrap_or(at.saturating_sub(1))
    }

    // --- changing ---

    /// Puts lines in the place of others. All changes come through here.
    fn replace(&mut self, row: usize, count: usize, lines: Vec<Vec<u8>>) {
        let new = lines.len();
        let old: Vec<Vec<u8>> = self.lines.splice(row..row + count, lines).collect();
        let continues = self.typing && count == 1 && new == 1;
        self.redo.clear();
        if continues && self.undo.last().is_some_and(|last| last.row == row && last.new == 1) {
            return;
        }
        if self.saved.is_some_and(|saved| saved > self.undo.len()) {
            self.saved = None;
        }
        self.undo.push(Change { row, old, new, cursor: self.cursor });
        self.forget();
    }

    /// Lets go of the oldest changes when there are too many.
    fn forget(&mut self) {
        let size = |change: &Change| 64 + change.old.iter().map(|line| line.len() + 24).sum::<usize>();
        let mut total: usize = self.undo.iter().map(size).sum();
        while total > REMEMBERED && self.undo.len() > 1 {
            total -= size(&self.undo.remove(0));
            self.saved = self.saved.and_then(|saved| saved.checked_sub(1));
        }
    }

    /// Puts lines in the place of others, as one change. The text keeps at least one line.
    pub fn replace_lines(&mut self, row: usize, count: usize, lines: Vec<Vec<u8>>) {
        self.typing = false;
        let empties = lines.is_empty() && count == self.lines.len();
        self.replace(row, count, if empties { vec![Vec::new()] } else { lines });
        self.go(self.cursor);
    }

    /// Makes the text what another editor made of it: one change, of the lines that differ.
    pub fn become_lines(&mut self, lines: Vec<Vec<u8>>) {
        let lines = if lines.is_empty() { vec![Vec::new()] } else { lines };
        let same = self.lines.iter().zip(&lines).take_while(|(old, new)| old == new).count();
        let room = self.lines.len().min(lines.len()) - same;
        let pairs = self.lines.iter().rev().zip(lines.iter().rev());
        let behind = pairs.take(room).take_while(|(old, new)| old == new).count();
        let (count, end) = (self.lines.len() - same - behind, lines.len() - behind);
        if count > 0 || end > same {
            self.replace_lines(same, count, lines[same..end].to_vec());
        }
    }

    /// Inserts text, which may be several lines; the cursor comes behind it.
    pub fn insert(&mut self, text: &[u8]) {
        let Place { row, at } = self.cursor;
        let mut lines: Vec<Vec<u8>> = text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        let (head, tail) = self.lines[row].split_at(at);
        let last = lines.len() - 1;
        lines[0].splice(0..0, head.iter().copied());
        let end = lines[last].len();
        lines[last].extend_from_slice(tail);
        self.replace(row, 1, lines);
        self.typing = last == 0;
        self.cursor = Place { row: row + last, at: end };
        self.wanted = None;
    }

    /// Removes what is between two places.
    pub fn remove(&mut self, from: Place, to: Place) {
        let mut line = self.lines[from.row][..from.at].to_vec();
        line.extend_from_slice(&self.lines[to.row][to.at..]);
        self.replace(from.row, to.row - from.row + 1, vec![line]);
        self.typing = from.row == to.row;
        self.cursor = from;
        self.wanted = None;
    }

    /// Removes the character before the cursor, or joins the line with the one before.
    pub fn erase(&mut self) {
        let end = self.cursor;
        let typing = self.typing;
        self.back();
        self.typing = typing;
        let start = std::mem::replace(&mut self.cursor, end);
        if start < end {
            self.remove(start, end);
        }
    }

    /// Removes the character under the cursor.
    pub fn delete(&mut self) {
        let start = self.cursor;
        self.forward();
        let end = std::mem::replace(&mut self.cursor, start);
        if start < end {
            self.remove(start, end);
        }
    }

    /// Takes the line out; answers it with its end.
    pub fn cut_line(&mut self) -> Vec<u8> {
        let row = self.cursor.row;
        let mut line = self.lines[row].clone();
        let is_only = self.lines.len() == 1;
        if is_only && line.is_empty() {
            return Vec::new();
        }
        self.typing = false;
        self.replace(row, 1, if is_only { vec![Vec::new()] } else { Vec::new() });
        line.push(b'\n');
        self.go(Place { row, at: 0 });
        line
    }

    pub fn undo(&mut self) -> bool {
        let Some(change) = self.undo.pop() else { return false };
        let back = self.revert(change);
        self.redo.push(back);
        true
    }

    pub fn redo(&mut self) -> bool {
        let Some(change) = self.redo.pop() else { return false };
        let back = self.revert(change);
        self.undo.push(back);
        true
    }

    /// Undoes a change; answers the change that does it again.
    fn revert(&mut self, change: Change) -> Change {
        let Change { row, old, new, cursor } = change;
        let count = old.len();
        let was = std::mem::replace(&mut self.cursor, cursor);
        let newer: Vec<Vec<u8>> = self.lines.splice(row..row + new, old).collect();
        if self.lines.is_empty() {
            self.lines.push(Vec::new());
        }
        self.go(cursor);
        Change { row, old: newer, new: count, cursor: was }
    }

    // --- searching ---

    /// The next place after the cursor where a text is, whatever the case of its letters; from the start again after the
    /// end.
    pub fn find(&self, wanted: &[u8]) -> Option<Place> {
        let wanted = wanted.to_ascii_lowercase();
        let count = self.lines.len();
        (0..=count).find_map(|step| {
            let row = (self.cursor.row + step) % count;
            let line = self.lines[row].to_ascii_lowercase();
            let from = if step == 0 { (self.cursor.at + 1).min(line.len()) } else { 0 };
            let at = memchr::memmem::find(&line[from..], &wanted)? + from;
            Some(Place { row, at })
        })
    }

    /// Replaces a text everywhere, as one change; answers how often it was there.
    pub fn replace_all(&mut self, wanted: &[u8], new: &[u8]) -> usize {
        let wanted = wanted.to_ascii_lowercase();
        let (mut count, mut lines) = (0, Vec::with_capacity(self.lines.len()));
        for line in &self.lines {
            let (folded, mut changed, mut from) = (line.to_ascii_lowercase(), Vec::new(), 0);
            for at in memchr::memmem::find_iter(&folded, &wanted) {
                changed.extend_from_slice(&line[from..at]);
                changed.extend_from_slice(new);
                from = at + wanted.len();
                count += 1;
            }
            changed.extend_from_slice(&line[from..]);
            lines.push(changed);
        }
        if count > 0 {
            self.typing = false;
            self.replace(0, self.lines.len(), lines);
            self.go(self.cursor);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str) -> Text {
        Text::new(content.as_bytes(), 8)
    }

    fn shown(text: &Text) -> String {
        String::from_utf8_lossy(&text.content()).into_owned()
    }

    #[test]
    fn characters_are_whole_whatever_they_are() {
        let mut text = Text::new("aä€😀\u{301}".as_bytes(), 8);
        for at in [1, 3, 6, 10, 12] {
            text.forward();
            assert_eq!(text.cursor, Place { row: 0, at });
        }
        for at in [10, 6, 3, 1, 0] {
            text.back();
            assert_eq!(text.cursor, Place { row: 0, at });
        }
        // What is no text is kept, byte by byte.
        let mut text = Text::new(b"\xff\xc3x\xe2\x82", 8);
        text.go(Place { row: 0, at: usize::MAX });
        for _ in 0..3 {
            text.erase();
        }
        assert_eq!(text.lines, [b"\xff\xc3"]);
        text.undo();
        assert_eq!(text.lines, [b"\xff\xc3x\xe2\x82"]);
    }

    #[test]
    fn lines_are_split_joined_cut_and_brought_back() {
        let mut text = text("one\ntwo\nthree");
        assert!(!text.is_modified());
        text.go(Place { row: 1, at: 1 });
        text.insert(b"\n");
        assert_eq!((shown(&text).as_str(), text.cursor), ("one\nt\nwo\nthree\n", Place { row: 2, at: 0 }));
        text.erase();
        assert_eq!(shown(&text), "one\ntwo\nthree\n");
        text.go(Place { row: 0, at: 3 });
        text.delete();
        assert_eq!(shown(&text), "onetwo\nthree\n");
        let cut = text.cut_line();
        assert_eq!((shown(&text).as_str(), &cut[..]), ("three\n", &b"onetwo\n"[..]));
        text.go(Place { row: 0, at: 5 });
        text.insert(b" 3");
        text.insert(b"!");
        for content in
            ["three\n", "onetwo\nthree\n", "one\ntwo\nthree\n", "one\nt\nwo\nthree\n", "one\ntwo\nthree\n"]
        {
            assert!(text.undo());
            assert_eq!(shown(&text), content);
        }
        assert!(!text.is_modified() && !text.undo());
        for _ in 0..5 {
            assert!(text.redo());
        }
        assert_eq!(shown(&text), "three 3!\n");
        assert!(text.is_modified() && !text.redo());
        text.note_saved();
        text.undo();
        assert!(text.is_modified());
        text.insert(b"x");
        text.undo();
        text.undo();
        assert!(text.is_modified());
    }

    #[test]
    fn the_last_line_goes_and_comes_back() {
        let mut text = text("only\n");
        assert_eq!(text.cut_line(), b"only\n");
        assert_eq!((shown(&text).as_str(), text.cut_line()), ("", Vec::new()));
        assert!(text.undo());
        assert_eq!(shown(&text), "only\n");
        let mut text = Text::new(b"a\nb", 8);
        text.go(Place { row: 1, at: 0 });
        text.cut_line();
        assert_eq!((shown(&text).as_str(), text.cursor.row), ("a\n", 0));
    }

    #[test]
    fn the_column_is_kept_and_text_is_found() {
        let mut text = text("long line\n\tx\nanother one");
        text.go(Place { row: 0, at: 9 });
        text.step(1);
        assert_eq!(text.cursor, Place { row: 1, at: 2 });
        text.step(1);
        assert_eq!(text.cursor, Place { row: 2, at: 9 });
        assert_eq!(text.find(b"LINE"), Some(Place { row: 0, at: 5 }));
        // Also before the cursor, in its own line.
        assert_eq!(text.find(b"one"), Some(Place { row: 2, at: 8 }));
        assert_eq!(text.find(b"nowhere"), None);
        assert_eq!(text.column(Place { row: 1, at: 1 }), 8);
        assert_eq!(text.replace_all(b"N", b"mm"), 4);
        assert_eq!(shown(&text), "lommg limme\n\tx\nammother omme\n");
        text.undo();
        assert_eq!(shown(&text), "long line\n\tx\nanother one\n");
    }
}
