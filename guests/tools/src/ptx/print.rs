//! The lines of the index.

use super::index::Occurrence;
use super::layout::{Field, Layout, Line, is_blank};
use super::options::Format;
use toolkit::out::Out;

pub struct Printer<'a> {
    layout: &'a Layout<'a>,
    out: Out,
}

impl<'a> Printer<'a> {
    pub fn new(layout: &'a Layout<'a>) -> Printer<'a> {
        Printer { layout, out: Out::new("ptx") }
    }

    pub fn print(&mut self, occurrence: &Occurrence) {
        let line = self.layout.line(occurrence);
        let text = &self.layout.text(occurrence).bytes;
        match self.layout.settings.format {
            Format::Plain => self.plain(text, &line),
            Format::Roff => self.roff(text, &line),
            Format::Tex => self.tex(text, &line),
        }
        self.out.put(b"\n");
    }

    fn plain(&mut self, text: &[u8], line: &Line) {
        let (settings, half) = (self.layout.settings, self.layout.half);
        let at_right = settings.references_at_right;
        if !at_right {
            self.reference(line);
            let colon: &[u8] = if settings.refers_to_lines { b":" } else { b"" };
            self.out.put(colon);
            let used = (line.reference.len() + colon.len()) as isize;
            self.spaces(self.layout.reference_width + settings.gap - used);
        }
        let left = half - settings.gap - self.width(line.before);
        if line.tail.is_empty() {
            self.spaces(left);
        } else {
            self.field_then_mark(text, line.tail);
            self.spaces(left - self.width(line.tail));
        }
        self.mark_then_field(text, line.before);
        self.spaces(settings.gap);
        self.field_then_mark(text, line.after);
        let right = half - self.width(line.after);
        if !line.head.is_empty() {
            self.spaces(right - self.width(line.head));
            self.mark_then_field(text, line.head);
        } else if settings.shows_references() && at_right {
            self.spaces(right);
        }
        if settings.shows_references() && at_right {
            self.spaces(settings.gap);
            self.reference(line);
        }
    }

    fn roff(&mut self, text: &[u8], line: &Line) {
        self.out.put([b".", self.layout.settings.macro_name.as_slice(), b" \""].concat());
        self.field_then_mark(text, line.tail);
        self.out.put(b"\" \"");
        self.mark_then_field(text, line.before);
        self.out.put(b"\" \"");
        self.field_then_mark(text, line.after);
        self.out.put(b"\" \"");
        self.mark_then_field(text, line.head);
        self.out.put(b"\"");
        if self.layout.settings.shows_references() {
            self.out.put(b" \"");
            self.reference(line);
            self.out.put(b"\"");
        }
    }

    fn tex(&mut self, text: &[u8], line: &Line) {
        let after = line.after;
        let word_end = match after.is_empty() {
            true => after.start,
            false => self.layout.words.skip(text, after.start, after.end),
        };
        let fields = [
            line.tail,
            line.before,
            Field { end: word_end, ..after },
            Field { start: word_end, ..after },
            line.head,
        ];
        self.out.put([b"\\", self.layout.settings.macro_name.as_slice(), b" "].concat());
        for field in fields {
            self.out.put(b"{");
            self.field(text, field);
            self.out.put(b"}");
        }
        if self.layout.settings.shows_references() {
            self.out.put(b"{");
            self.reference(line);
            self.out.put(b"}");
        }
    }

    /// How wide a field is, with what says that something was left out.
    fn width(&self, field: Field) -> isize {
        let mark = if field.is_cut { self.layout.settings.mark.len() } else { 0 };
        field.length() + mark as isize
    }

    fn field_then_mark(&mut self, text: &[u8], field: Field) {
        self.field(text, field);
        self.mark(field);
    }

    fn mark_then_field(&mut self, text: &[u8], field: Field) {
        self.mark(field);
        self.field(text, field);
    }

    fn mark(&mut self, field: Field) {
        if field.is_cut {
            self.out.put(&self.layout.settings.mark);
        }
    }

    fn field(&mut self, text: &[u8], field: Field) {
        self.escaped(text.get(field.start..field.end).unwrap_or_default());
    }

    fn reference(&mut self, line: &Line) {
        self.escaped(&line.reference);
    }

    /// Writes a text as the format takes it.
    fn escaped(&mut self, text: &[u8]) {
        let format = self.layout.settings.format;
        for byte in text {
            match (byte, format) {
                (blank, _) if is_blank(*blank) => self.out.put(b" "),
                (b'"', Format::Roff) => self.out.put(b"\"\""),
                (b'$' | b'%' | b'&' | b'#' | b'_', Format::Tex) => self.out.put([b'\\', *byte]),
                (b'{' | b'}', Format::Tex) => self.out.put([b'$', b'\\', *byte, b'$']),
                (b'\\', Format::Tex) => self.out.put(b"\\backslash{}"),
                _ => self.out.put([*byte]),
            }
        }
    }

    fn spaces(&mut self, count: isize) {
        self.out.put_many(b' ', usize::try_from(count).unwrap_or(0));
    }
}
