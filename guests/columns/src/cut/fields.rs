//! Cutting lines into fields.

use super::list::{List, Span};
use memchr::{memchr, memchr2};
use toolkit::out::Out;
use toolkit::source::Source;
use wardian_abi::Errno;

/// Which fields, and what is between them.
pub struct Fields<'a> {
    pub list: &'a List,
    pub delimiter: u8,
    /// What is put between the fields that are printed.
    pub between: &'a [u8],
    pub only_delimited: bool,
    pub line_end: u8,
}

/// A line on its way: what was not yet looked at, and the number of the field that begins it.
struct Walk<'a> {
    rest: &'a [u8],
    field: u64,
    /// The line ended, and what follows is the next.
    is_over: bool,
}

impl Fields<'_> {
    /// Cuts whole lines; the last may lack its end.
    pub fn cut(&self, block: &[u8], out: &mut Vec<u8>) {
        let mut rest = block;
        while !rest.is_empty() {
            rest = self.cut_line(rest, out);
        }
    }

    /// Cuts the first line, and answers what follows it.
    fn cut_line<'a>(&self, text: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let mut walk = Walk { rest: text, field: 1, is_over: false };
        let first = self.next_field(&mut walk);
        if walk.is_over {
            if !self.only_delimited {
                out.extend_from_slice(first);
                out.push(self.line_end);
            }
            return walk.rest;
        }
        let mut is_first = true;
        if self.list.has(1) {
            out.extend_from_slice(first);
            is_first = false;
        }
        for span in self.list.spans() {
            while walk.field < span.first && !walk.is_over {
                self.next_field(&mut walk);
            }
            if walk.is_over {
                break;
            }
            self.copy_span(*span, &mut walk, &mut is_first, out);
        }
        out.push(self.line_end);
        if !walk.is_over {
            self.rest_of_line(&mut walk);
        }
        walk.rest
    }

    /// Copies the fields from here to the end of a span.
    fn copy_span(&self, span: Span, walk: &mut Walk<'_>, is_first: &mut bool, out: &mut Vec<u8>) {
        if span.last == u64::MAX && self.between == [self.delimiter] {
            if !std::mem::replace(is_first, false) {
                out.extend_from_slice(self.between);
            }
            out.extend_from_slice(self.rest_of_line(walk));
            return;
        }
        while walk.field <= span.last && !walk.is_over {
            if !std::mem::replace(is_first, false) {
                out.extend_from_slice(self.between);
            }
            out.extend_from_slice(self.next_field(walk));
        }
    }

    /// Passes over the field that begins what is left.
    #[inline]
    fn next_field<'a>(&self, walk: &mut Walk<'a>) -> &'a [u8] {
        let end = find_end(walk.rest, self.delimiter, self.line_end);
        let (field, after) = walk.rest.split_at(end);
        walk.is_over = after.first() != Some(&self.delimiter);
        walk.field += 1;
        walk.rest = after.get(1..).unwrap_or_default();
        field
    }

    fn rest_of_line<'a>(&self, walk: &mut Walk<'a>) -> &'a [u8] {
        let end = memchr(self.line_end, walk.rest).unwrap_or(walk.rest.len());
        let (rest, after) = walk.rest.split_at(end);
        walk.is_over = true;
        walk.rest = after.get(1..).unwrap_or_default();
        rest
    }

    /// Cuts a file whose lines are its fields: what ends a line is the delimiter too.
    pub fn cut_lines(&self, source: &Source, out: &mut Out) -> Result<(), Errno> {
        let mut content = Vec::new();
        source.for_blocks(|block| content.extend_from_slice(block))?;
        if content.is_empty() {
            return Ok(());
        }
        let is_ended = content.last() == Some(&self.line_end);
        if is_ended {
            content.pop();
        }
        let count = 1 + memchr::memchr_iter(self.delimiter, &content).count();
        if count == 1 && self.only_delimited && !(is_ended && self.list.has(1)) {
            return Ok(());
        }
        let whole = count == 1 && !is_ended;
        let fields = content.split(|byte| *byte == self.delimiter);
        let wanted = (1..).zip(fields).filter(|(number, _)| whole || self.list.has(*number));
        for (at, (_, field)) in wanted.enumerate() {
            if at > 0 {
                out.put(self.between);
            }
            out.put(field);
        }
        out.put([self.line_end]);
        Ok(())
    }
}

/// How far it is to either byte, or to the end.
#[inline]
fn find_end(text: &[u8], one: u8, other: u8) -> usize {
    // Most fields are short: what is within reach is found before a search could have begun.
    let near = &text[..text.len().min(16)];
    if let Some(at) = near.iter().position(|&byte| byte == one || byte == other) {
        return at;
    }
    memchr2(one, other, &text[near.len()..]).map_or(text.len(), |at| near.len() + at)
}
