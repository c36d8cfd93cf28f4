//! What of a sentence has room in a line.
//!
//! The word begins in the middle of the line. What stands before it in the sentence is at its left as far as there is
//! room; if some is left over there, the end of the sentence is put there (the tail), and as its beginning (the head) at
//! the right end.
//!
//! ```text
//! reference   tail     before   word and after     head
//! ```

use super::Text;
use super::index::{Index, Occurrence, reference_length};
use super::options::Settings;
use super::words::Words;

/// A part of a text, and whether something was left out beside it.
#[derive(Clone, Copy, Default)]
pub struct Field {
    pub start: usize,
    pub end: usize,
    pub is_cut: bool,
}

impl Field {
    /// Negative where blanks were passed over that follow the end: GNU's takes them off all the same.
    pub fn length(self) -> isize {
        self.end as isize - self.start as isize
    }

    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// The fields of a line.
pub struct Line {
    pub tail: Field,
    pub before: Field,
    /// The word and what follows it.
    pub after: Field,
    pub head: Field,
    pub reference: Vec<u8>,
}

/// The widths of the fields, and what they are cut from.
pub struct Layout<'a> {
    pub settings: &'a Settings,
    pub words: &'a Words,
    index: &'a Index<'a>,
    /// Half a line: the word begins behind the first half.
    pub half: isize,
    before_width: isize,
    after_width: isize,
    pub reference_width: isize,
}

impl<'a> Layout<'a> {
    pub fn new(settings: &'a Settings, words: &'a Words, index: &'a Index<'a>) -> Layout<'a> {
        let longest = match settings.refers_to_lines {
            // With a colon behind each.
            true => (0..index.texts.len()).map(|file| longest_reference(index, file)).max().unwrap_or(0) + 1,
            false => index.longest_reference,
        };
        let reference_width = longest as isize;
        let mut width = settings.width;
        if settings.shows_references() && !settings.references_at_right {
            width = (width - reference_width - settings.gap).max(0);
        }
        let half = width / 2;
        let mark = 2 * settings.mark.len() as isize;
        let (before_width, after_width) = match settings.traditional {
            false => ((half - settings.gap - mark).max(0), half - mark),
            true => (half - settings.gap, half - mark - 1),
        };
        Layout { settings, words, index, half, before_width, after_width, reference_width }
    }

    pub fn text(&self, occurrence: &Occurrence) -> &Text {
        &self.index.texts[occurrence.file]
    }

    pub fn line(&self, occurrence: &Occurrence) -> Line {
        let text = &self.text(occurrence).bytes;
        let mut after = self.after(text, occurrence);
        let field_start = self.field_start(text, occurrence);
        let mut before = self.before(text, occurrence, field_start);
        let tail_width = self.before_width - before.length() - self.settings.gap;
        let mut tail = Field::default();
        if tail_width > 0 {
            tail = self.tail(text, occurrence, after.end, tail_width);
            after.is_cut &= tail.is_empty();
        }
        let head_width = self.after_width - after.length() - self.settings.gap;
        let mut head = Field::default();
        if head_width > 0 {
            let (fields, has_some) = self.head(text, occurrence, (field_start, before.start), head_width);
            head = fields;
            before.is_cut &= !has_some;
        }
        Line { tail, before, after, head, reference: self.reference(text, occurrence) }
    }

    fn has_mark(&self) -> bool {
        !self.settings.mark.is_empty()
    }

    /// How far pieces fit into a width; they may end there, or must end before.
    fn fitting(&self, text: &[u8], bounds: (usize, usize), width: isize, to: usize) -> usize {
        let (start, mut end) = bounds;
        let mut at = end;
        loop {
            if (at - start) as isize > width {
                return end;
            }
            end = at;
            if at >= to {
                return end;
            }
            at = self.words.skip(text, at, to);
        }
    }

    fn after(&self, text: &[u8], of: &Occurrence) -> Field {
        let end = self.fitting(text, (of.start, of.end), self.after_width, of.to);
        Field { start: of.start, end: trim_end(text, end, of.start), is_cut: self.has_mark() && end < of.to }
    }

    /// Where the left side begins: no further away than could be of use.
    fn field_start(&self, text: &[u8], of: &Occurrence) -> usize {
        let reach = self.half as usize + self.index.longest_word;
        // A blank that is a word may stand before the sentence, behind its reference.
        if of.start > of.from + reach { self.words.skip(text, of.start - reach, of.start) } else { of.from }
    }

    fn before(&self, text: &[u8], of: &Occurrence, field_start: usize) -> Field {
        let end = trim_end(text, of.start, field_start);
        let start = self.shortened(text, field_start, end, self.before_width);
        let is_cut = self.has_mark() && trim_end(text, start, 0) > of.from;
        Field { start: trim_start(text, start, text.len()), end, is_cut }
    }

    fn tail(&self, text: &[u8], of: &Occurrence, after: usize, width: isize) -> Field {
        let start = trim_start(text, after, text.len());
        let end = self.fitting(text, (start, start), width - 1, of.to);
        let is_cut = self.has_mark() && end > start && end < of.to;
        Field { start, end: trim_end(text, end, start), is_cut }
    }

    /// The head, and whether there is something in it, blanks included.
    fn head(&self, text: &[u8], of: &Occurrence, within: (usize, usize), width: isize) -> (Field, bool) {
        let end = trim_end(text, within.1, 0);
        let start = self.shortened(text, within.0, end, width);
        let has_some = end > start;
        let is_cut = self.has_mark() && has_some && start > of.from;
        (Field { start: trim_start(text, start, end), end, is_cut }, has_some)
    }

    /// Where a field begins from whose front pieces are taken until it has no more than a width.
    fn shortened(&self, text: &[u8], mut start: usize, end: usize, width: isize) -> usize {
        while start as isize + width < end as isize {
            start = self.words.skip(text, start, end);
        }
        start
    }

    fn reference(&self, text: &[u8], of: &Occurrence) -> Vec<u8> {
        if self.settings.refers_to_lines {
            return reference(&self.text(of).name, of.reference + 1);
        }
        if !self.settings.has_references {
            return Vec::new();
        }
        let end = of.reference + reference_length(&text[of.reference..of.to.max(of.reference)]);
        text[of.reference..end].to_vec()
    }
}

fn reference(name: &[u8], line: usize) -> Vec<u8> {
    [name, b":", line.to_string().as_bytes()].concat()
}

/// GNU's counts one line more than there may be.
fn longest_reference(index: &Index, file: usize) -> usize {
    reference(&index.texts[file].name, index.lines[file] + 2).len() - 1
}

/// White space as C has it.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Where a text ends without the blanks at its end, but not before a place.
pub fn trim_end(text: &[u8], end: usize, least: usize) -> usize {
    let Some(part) = text.get(least..end) else { return end };
    least + part.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |at| at + 1)
}

/// Where a text begins without the blanks at its beginning, but not behind a place.
fn trim_start(text: &[u8], start: usize, most: usize) -> usize {
    let Some(part) = text.get(start..most) else { return start };
    start + part.iter().take_while(|byte| is_blank(**byte)).count()
}
