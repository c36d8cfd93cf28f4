//! What is printed of a line: the name of its file, its number, the line or its matches, in colors if wanted.

use super::options::{Binary, Options};
use crate::lines::{Position, Role, Sink, Verdict};
use memchr::memchr;
use toolkit::out::Out;
use wardian_regex::char_len;

/// The colors of `GREP_COLORS`, as numbers for a terminal.
pub struct Colors {
    selected_match: String,
    context_match: String,
    selected_line: String,
    context_line: String,
    file_name: String,
    line_number: String,
    byte_offset: String,
    separator: String,
    /// `-v` swaps the colors of lines.
    reverse: bool,
    /// The rest of a line is not cleared.
    no_clearing: bool,
}

impl Colors {
    pub fn from_environment() -> Colors {
        let mut colors = Colors {
            selected_match: "01;31".into(),
            context_match: "01;31".into(),
            selected_line: String::new(),
            context_line: String::new(),
            file_name: "35".into(),
            line_number: "32".into(),
            byte_offset: "32".into(),
            separator: "36".into(),
            reverse: false,
            no_clearing: false,
        };
        if let Some(old) = std::env::var("GREP_COLOR").ok().filter(|color| !color.is_empty()) {
            toolkit::complain(
                "grep",
                format_args!("warning: GREP_COLOR='{old}' is deprecated; use GREP_COLORS='mt={old}'"),
            );
            colors.set("mt", &old);
        }
        for capability in std::env::var("GREP_COLORS").unwrap_or_default().split(':') {
            let (name, value) = capability.split_once('=').unwrap_or((capability, ""));
            if !value.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') {
                break;
            }
            colors.set(name, value);
        }
        colors
    }

    fn set(&mut self, name: &str, value: &str) {
        let place = match name {
            "mt" => {
                self.context_match = value.into();
                &mut self.selected_match
            }
            "ms" => &mut self.selected_match,
            "mc" => &mut self.context_match,
            "sl" => &mut self.selected_line,
            "cx" => &mut self.context_line,
            "fn" => &mut self.file_name,
            "ln" => &mut self.line_number,
            "bn" => &mut self.byte_offset,
            "se" => &mut self.separator,
            "rv" => {
                self.reverse = true;
                return;
            }
            "ne" => {
                self.no_clearing = true;
                return;
            }
            _ => return,
        };
        *place = value.into();
    }

    fn start(&self, color: &str, out: &mut Out) {
        if !color.is_empty() {
            out.put(format!("\x1b[{color}m{}", if self.no_clearing { "" } else { "\x1b[K" }));
        }
    }

    fn end(&self, color: &str, out: &mut Out) {
        if !color.is_empty() {
            out.put(if self.no_clearing { "\x1b[m" } else { "\x1b[m\x1b[K" });
        }
    }

    fn paint(&self, color: &str, text: &[u8], out: &mut Out) {
        self.start(color, out);
        out.put(text);
        self.end(color, out);
    }
}

/// The sign behind what stands before a selected line.
pub const SELECTED: u8 = b':';

/// Prints for one file.
pub struct Printer<'a> {
    pub options: &'a Options,
    pub out: &'a mut Out,
    pub name: &'a [u8],
    pub with_name: bool,
    /// Whether any line was printed, of this file or another: groups of lines are told apart.
    pub has_printed: &'a mut bool,
    /// Numbers are told so wide, as tabs are to line up.
    pub number_width: usize,
    /// How many lines were selected before a zero byte was seen.
    pub selected_before_zero: Option<u64>,
    /// There was a line to print that is not text.
    pub has_wrong_characters: bool,
}

impl Printer<'_> {
    fn painted(&mut self, color: impl Fn(&Colors) -> &String, text: &[u8]) {
        match &self.options.colors {
            Some(colors) => colors.paint(color(colors), text, self.out),
            None => self.out.put(text),
        }
    }

    pub fn file_name(&mut self) {
        self.painted(|colors| &colors.file_name, self.name);
    }

    /// The name and what stands behind it.
    pub fn name_and(&mut self, sign: u8) {
        self.file_name();
        match self.options.null_after_name {
            true => self.out.put(b"\0"),
            false => self.painted(|colors| &colors.separator, &[sign]),
        }
    }

    /// The line between groups of lines.
    fn group_separator(&mut self) {
        if let Some(separator) = &self.options.separator {
            self.painted(|colors| &colors.separator, separator);
            self.out.put(b"\n");
        }
    }

    fn head(&mut self, position: Position, sign: u8, is_empty: bool) {
        let options = self.options;
        if self.with_name {
            self.name_and(sign);
        }
        if options.line_numbers {
            let number = format!("{:1$}", position.number, self.number_width);
            self.painted(|colors| &colors.line_number, number.as_bytes());
            self.painted(|colors| &colors.separator, &[sign]);
        }
        if options.byte_offsets {
            let offset = format!("{:1$}", position.offset, self.number_width);
            self.painted(|colors| &colors.byte_offset, offset.as_bytes());
            self.painted(|colors| &colors.separator, &[sign]);
        }
        if options.initial_tab
            && (self.with_name || options.line_numbers || options.byte_offsets)
            && !is_empty
        {
            self.out.put(b"\t");
        }
    }

    fn print_line(&mut self, line: &[u8], position: Position, role: Role) {
        let options = self.options;
        let is_match = (role == Role::Selected) != options.invert;
        let sign = if role == Role::Selected { SELECTED } else { b'-' };
        if options.only_matching {
            if is_match {
                self.matches(line, position, sign);
            }
        } else {
            self.head(position, sign, line.is_empty());
            match &options.colors {
                Some(colors) => self.colored(colors, line, sign, is_match),
                None => self.out.put(line),
            }
            self.out.put([options.line_end]);
        }
        if options.line_buffered {
            self.out.flush();
        }
    }

    /// Each match on a line of its own.
    fn matches(&mut self, line: &[u8], position: Position, sign: u8) {
        let mut at = 0;
        while let Some((from, to)) = self.next_match(line, at) {
            let offset = position.offset + from as u64;
            self.head(Position { offset, ..position }, sign, false);
            match &self.options.colors {
                Some(colors) => {
                    let color = if sign == SELECTED { &colors.selected_match } else { &colors.context_match };
                    colors.paint(color, &line[from..to], self.out);
                }
                None => self.out.put(&line[from..to]),
            }
            self.out.put([self.options.line_end]);
            at = to;
        }
    }

    /// The next match that is not empty.
    fn next_match(&self, line: &[u8], start: usize) -> Option<(usize, usize)> {
        let mut at = start;
        while at < line.len() {
            let (from, to) = self.options.regex.find_at(line, at)?;
            if from < to {
                return Some((from, to));
            }
            at = from + line.get(from..).map_or(1, char_len);
        }
        None
    }

    fn colored(&mut self, colors: &Colors, line: &[u8], sign: u8, is_match: bool) {
        let is_selected = (sign == SELECTED) != (self.options.invert && colors.reverse);
        let line_color = if is_selected { &colors.selected_line } else { &colors.context_line };
        let match_color = if sign == SELECTED { &colors.selected_match } else { &colors.context_match };
        let mut at = 0;
        if is_match && !match_color.is_empty() {
            while let Some((from, to)) = self.next_match(line, at) {
                colors.start(line_color, self.out);
                self.out.put(&line[at..from]);
                colors.paint(match_color, &line[from..to], self.out);
                at = to;
            }
        }
        let end = line.len() - usize::from(line.len() > at && line.ends_with(b"\r"));
        if end > at {
            colors.paint(line_color, &line[at..end], self.out);
        }
        self.out.put(&line[end.max(at)..]);
    }
}

impl Sink for Printer<'_> {
    /// A zero byte makes a file binary, and ends a line in it.
    fn look(&mut self, fresh: &mut [u8], _offset: u64, selected: u64) -> Verdict {
        let options = self.options;
        if options.binary == Binary::Text || options.line_end == 0 || memchr(0, fresh).is_none() {
            return Verdict::GoOn;
        }
        if options.binary == Binary::Skip {
            return Verdict::Forget;
        }
        fresh.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = options.line_end);
        if self.selected_before_zero.is_none() {
            self.selected_before_zero = Some(selected);
        }
        if options.count { Verdict::GoOn } else { Verdict::OnlyFirst }
    }

    fn line(&mut self, line: &[u8], position: Position, role: Role) -> bool {
        let options = self.options;
        // What is printed of matches alone is text.
        let is_checked = options.utf8 && options.binary != Binary::Text && !options.only_matching;
        if is_checked && !line.is_ascii() && std::str::from_utf8(line).is_err() {
            self.has_wrong_characters = true;
            return false;
        }
        self.print_line(line, position, role);
        *self.has_printed = true;
        true
    }

    fn gap(&mut self) {
        let has_groups = self.options.before.is_some() || self.options.after.is_some();
        if has_groups && *self.has_printed {
            self.group_separator();
        }
    }
}
