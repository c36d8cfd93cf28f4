//! The modes that draw a grid: `column`, `table`, `box` and `markdown`.

use super::{Mode, Style, until_nul};
use crate::database::Cell;
use crate::render::quote::{blob, sql_text, sql_value};

/// A line of a grid: one piece of text for each column.
struct Line {
    pieces: Vec<Vec<u8>>,
    /// Whether the row goes on in the next line.
    goes_on: bool,
}

/// The lines that a grid is drawn with.
struct Rule {
    left: &'static str,
    dash: &'static str,
    cross: &'static str,
    right: &'static str,
}

const TABLE: Rule = Rule { left: "+", dash: "-", cross: "+", right: "+" };
const MARKDOWN: Rule = Rule { left: "|", dash: "-", cross: "|", right: "|" };
const TOP: Rule = Rule { left: "┌", dash: "─", cross: "┬", right: "┐" };
const MIDDLE: Rule = Rule { left: "├", dash: "─", cross: "┼", right: "┤" };
const BOTTOM: Rule = Rule { left: "└", dash: "─", cross: "┴", right: "┘" };

/// Draws all rows of a query.
pub fn draw(style: &Style, names: &[Vec<u8>], rows: &[Vec<Cell>]) -> Vec<u8> {
    let limit = |column: usize| match style.widths.get(column) {
        Some(&width) if width != 0 => width.unsigned_abs() as usize,
        _ => style.wrapping.width as usize,
    };
    let heading: Vec<Vec<u8>> = names
        .iter()
        .enumerate()
        .map(|(column, name)| piece(name, limit(column), style.wrapping.at_words).0)
        .collect();
    let lines: Vec<Line> = rows.iter().flat_map(|row| lines_of(row, style, &limit)).collect();
    let width_of = |column: usize| {
        let own = style.widths.get(column).map_or(0, |width| width.unsigned_abs() as usize);
        let longest = lines.iter().map(|line| length(&line.pieces[column])).max().unwrap_or(0);
        own.max(longest).max(length(&heading[column]))
    };
    let widths: Vec<usize> = (0..names.len()).map(width_of).collect();
    let mut text = above(style, &heading, &widths);
    text.extend(body(style, &lines, &widths));
    text.extend(match style.mode {
        Mode::Table => TABLE.drawn(&widths),
        Mode::Box => BOTTOM.drawn(&widths),
        _ => Vec::new(),
    });
    text
}

/// The rule at the top, the names of the columns, and the rule below them.
fn above(style: &Style, heading: &[Vec<u8>], widths: &[usize]) -> Vec<u8> {
    let bar = if style.mode == Mode::Box { "│" } else { "|" };
    match style.mode {
        Mode::Column if !style.headers => Vec::new(),
        Mode::Column => {
            let names = (0..widths.len()).map(|column| aligned(style, column, &heading[column], widths));
            let dashes = widths.iter().map(|&width| vec![b'-'; width]);
            let (names, dashes): (Vec<_>, Vec<_>) = (names.collect(), dashes.collect());
            [names.join(&b"  "[..]), b"\n".to_vec(), dashes.join(&b"  "[..]), b"\n".to_vec()].concat()
        }
        mode => {
            let (top, below) = match mode {
                Mode::Table => (TABLE.drawn(widths), TABLE.drawn(widths)),
                Mode::Markdown => (Vec::new(), MARKDOWN.drawn(widths)),
                _ => (TOP.drawn(widths), MIDDLE.drawn(widths)),
            };
            let names: Vec<Vec<u8>> =
                heading.iter().zip(widths).map(|(name, &width)| centred(name, width)).collect();
            [top, framed(&names, bar), below].concat()
        }
    }
}

fn body(style: &Style, lines: &[Line], widths: &[usize]) -> Vec<u8> {
    let bar = if style.mode == Mode::Box { "│" } else { "|" };
    let has_long_row = lines.iter().any(|line| line.goes_on);
    let mut text = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let pieces = (0..widths.len()).map(|column| aligned(style, column, &line.pieces[column], widths));
        let pieces: Vec<Vec<u8>> = pieces.collect();
        if style.mode == Mode::Column {
            text.extend(pieces.join(&b"  "[..]));
            text.push(b'\n');
        } else {
            text.extend(framed(&pieces, bar));
        }
        // Rows of several lines want something between them.
        if has_long_row && !line.goes_on && index + 1 < lines.len() {
            text.extend(match style.mode {
                Mode::Table => TABLE.drawn(widths),
                Mode::Box => MIDDLE.drawn(widths),
                Mode::Column => b"\n".to_vec(),
                _ => Vec::new(),
            });
        }
    }
    text
}

fn framed(pieces: &[Vec<u8>], bar: &str) -> Vec<u8> {
    let between = format!(" {bar} ");
    [format!("{bar} ").into_bytes(), pieces.join(between.as_bytes()), format!(" {bar}\n").into_bytes()]
        .concat()
}

impl Rule {
    fn drawn(&self, widths: &[usize]) -> Vec<u8> {
        let parts: Vec<String> = widths.iter().map(|width| self.dash.repeat(width + 2)).collect();
        format!("{}{}{}\n", self.left, parts.join(self.cross), self.right).into_bytes()
    }
}

/// The lines that a row takes: more than one where a value has several or is too long for its column.
fn lines_of(row: &[Cell], style: &Style, limit: &impl Fn(usize) -> usize) -> Vec<Line> {
    let mut rest: Vec<Option<Vec<u8>>> = row.iter().map(|cell| Some(shown(cell, style))).collect();
    let mut lines = Vec::new();
    loop {
        let mut pieces = Vec::new();
        for (column, text) in rest.iter_mut().enumerate() {
            let (first, tail) = match text {
                Some(text) => piece(text, limit(column), style.wrapping.at_words),
                None => (Vec::new(), None),
            };
            pieces.push(first);
            *text = tail;
        }
        let goes_on = rest.iter().any(Option::is_some);
        lines.push(Line { pieces, goes_on });
        if !goes_on {
            return lines;
        }
    }
}

fn shown(cell: &Cell, style: &Style) -> Vec<u8> {
    match cell {
        Cell::Blob(bytes) if style.wrapping.quotes => blob(b'x', bytes),
        Cell::Text(text) if style.wrapping.quotes => sql_text(&until_nul(text.clone())),
        Cell::Real(_, text) if style.wrapping.quotes => text.clone(),
        cell if style.wrapping.quotes => sql_value(cell),
        cell => style.text(cell),
    }
}

/// The part of a text that fits on a line, with tabs as blanks, and what is left of it. A width of 0 is no limit.
fn piece(text: &[u8], limit: usize, at_words: bool) -> (Vec<u8>, Option<Vec<u8>>) {
    let limit = if limit == 0 { usize::MAX } else { limit };
    let at = |index: usize| text.get(index).copied().unwrap_or(0);
    let (mut end, mut columns) = (0, 0);
    while columns < limit && end < text.len() {
        match text[end] {
            b'\t' => {
                columns = (columns / 8 + 1) * 8;
                columns = columns.min(limit);
            }
            byte if byte >= b' ' => columns += 1,
            _ => break,
        }
        end += 1;
        while at(end) & 0xc0 == 0x80 {
            end += 1;
        }
    }
    let mut kept = end;
    if columns >= limit && at_words {
        (kept, end) = broken_at_word(text, end);
    }
    let rest = if columns >= limit && at(end) >= b' ' {
        Some(end)
    } else if at(end) == b'\r' && at(end + 1) == b'\n' {
        Some(end + 2)
    } else {
        Some(end + 1)
    };
    let rest = rest.filter(|&start| start < text.len()).map(|start| text[start..].to_vec());
    (with_blanks_for_tabs(&text[..kept], limit), rest)
}

/// A better place than `end` to break a line: after a blank, or between a word and what is none, if there is such a
/// place in the second half. Answers where the line ends and where the next one starts.
fn broken_at_word(text: &[u8], end: usize) -> (usize, usize) {
    let is_word = |index: usize| text.get(index).is_some_and(u8::is_ascii_alphanumeric);
    let starts_character = |index: usize| text.get(index).is_none_or(|byte| byte & 0xc0 != 0x80);
    let candidates = || (end / 2 + 1..=end).rev();
    let after_blank = candidates().find(|&at| text[at - 1].is_ascii_whitespace());
    let between = || candidates().find(|&at| is_word(at - 1) != is_word(at) && starts_character(at));
    match after_blank.or_else(between) {
        None => (end, end),
        Some(place) => {
            let blanks = text[place..].iter().take_while(|&&byte| byte == b' ').count();
            (place, place + blanks)
        }
    }
}

fn with_blanks_for_tabs(text: &[u8], limit: usize) -> Vec<u8> {
    let (mut shown, mut columns) = (Vec::new(), 0);
    for &byte in text {
        if byte != b'\t' {
            shown.push(byte);
            columns += usize::from(byte & 0xc0 != 0x80);
            continue;
        }
        loop {
            shown.push(b' ');
            columns += 1;
            if columns % 8 == 0 || columns >= limit {
                break;
            }
        }
    }
    shown
}

/// How many characters a text has.
fn length(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

fn centred(text: &[u8], width: usize) -> Vec<u8> {
    let blanks = width - length(text);
    [vec![b' '; blanks / 2], text.to_vec(), vec![b' '; blanks.div_ceil(2)]].concat()
}

fn aligned(style: &Style, column: usize, text: &[u8], widths: &[usize]) -> Vec<u8> {
    let is_right = style.widths.get(column).is_some_and(|&width| width < 0);
    padded(text, widths[column], is_right)
}

fn padded(text: &[u8], width: usize, is_right: bool) -> Vec<u8> {
    let blanks = vec![b' '; width.saturating_sub(length(text))];
    if is_right { [blanks, text.to_vec()].concat() } else { [text.to_vec(), blanks].concat() }
}
