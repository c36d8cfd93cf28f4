//! What commands do.

use super::address::{Line, Range};
use super::{Dialect, Editor, Next, Wrong, wrong};
use std::collections::VecDeque;

/// How lines are printed after a command.
#[derive(Clone, Copy, Default)]
pub struct Show {
    print: bool,
    number: bool,
    list: bool,
}

impl Show {
    fn any(self) -> bool {
        self.print || self.number || self.list
    }
}

/// The commands of ex by their names; each may be cut down to the part before the blank.
const NAMES: [(&str, &str, u8); 27] = [
    ("a", "ppend", b'a'),
    ("c", "hange", b'c'),
    ("co", "py", b't'),
    ("d", "elete", b'd'),
    ("e", "dit", b'e'),
    ("f", "ile", b'f'),
    ("g", "lobal", b'g'),
    ("i", "nsert", b'i'),
    ("j", "oin", b'j'),
    ("k", "", b'k'),
    ("l", "ist", b'l'),
    ("m", "ove", b'm'),
    ("ma", "rk", b'k'),
    ("nu", "mber", b'n'),
    ("p", "rint", b'p'),
    ("pu", "t", b'x'),
    ("q", "uit", b'q'),
    ("r", "ead", b'r'),
    ("s", "ubstitute", b's'),
    ("se", "t", b'S'),
    ("t", "", b't'),
    ("u", "ndo", b'u'),
    ("v", "global", b'v'),
    ("w", "rite", b'w'),
    ("wq", "", b'Z'),
    ("x", "it", b'X'),
    ("y", "ank", b'y'),
];

impl Editor {
    /// Runs a command. `warned` says that the last one was refused because something would have been lost.
    pub(super) fn command(&mut self, text: &[u8], warned: bool) -> Result<Next, Wrong> {
        let mut line = Line { rest: text };
        if self.dialect == Dialect::Ex {
            while line.eat(b':') || line.eat(b' ') || line.eat(b'\t') {}
            if line.peek() == Some(b'"') {
                return Ok(Next::Command);
            }
        }
        loop {
            let range = self.range(&mut line)?;
            line.skip_blanks();
            let (letter, forced) = self.name_of(&mut line)?;
            let next = self.dispatch(letter, forced || warned, range, &mut line)?;
            line.skip_blanks();
            if next == Next::Leave || self.dialect == Dialect::Ed || !line.eat(b'|') {
                return Ok(next);
            }
        }
    }

    /// The letter of a command; 0 for none, and whether an exclamation mark follows.
    fn name_of(&self, line: &mut Line<'_>) -> Result<(u8, bool), Wrong> {
        if self.dialect == Dialect::Ed {
            return Ok((line.next().unwrap_or(0), false));
        }
        let Some(first) = line.peek() else { return Ok((0, false)) };
        if first == b'|' {
            return Ok((0, false));
        }
        if !first.is_ascii_alphabetic() {
            line.next();
            return Ok((first, false));
        }
        let letters = line.rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let word = &line.rest[..letters];
        let fits = |&&(short, more, _): &&(&str, &str, u8)| {
            let whole = [short, more].concat();
            word.len() >= short.len() && whole.as_bytes().starts_with(word)
        };
        let exact = NAMES.iter().find(|name| name.0.as_bytes() == word);
        let found = exact.or_else(|| NAMES.iter().rfind(fits));
        // The letters of a pattern's delimiter or of a mark may follow at once: `ka`, `sxaxbx` is not one of them.
        let (letter, length) = match found {
            Some((_, _, letter)) => (*letter, letters),
            None if first == b'k' && letters == 2 => (b'k', 1),
            None => {
                let shown = String::from_utf8_lossy(word).into_owned();
                return Err(format!("Not an editor command: {shown}"));
            }
        };
        line.rest = &line.rest[length..];
        let forced = letter != b'!' && line.eat(b'!');
        Ok((letter, forced))
    }

    fn dispatch(
        &mut self,
        letter: u8,
        forced: bool,
        range: Range,
        line: &mut Line<'_>,
    ) -> Result<Next, Wrong> {
        let is_ed = self.dialect == Dialect::Ed;
        match letter {
            0 => self.print_next(range)?,
            b'p' | b'l' | b'n' => self.print_command(letter, range, line)?,
            b'#' if is_ed => {}
            b'#' => self.print_command(b'n', range, line)?,
            b'=' => self.line_number(range, line)?,
            b'a' | b'i' | b'c' => self.take_text(letter, range, line)?,
            b'd' => self.delete(range, line)?,
            b'j' => self.join(range, forced, line)?,
            b'm' | b't' => self.move_or_copy(letter, range, line)?,
            b'k' => self.set_mark(range, line)?,
            b'y' => {
                let (first, last) = lines_of(range, self.buffer.last())?;
                let show = self.suffix(line)?;
                self.cut = self.buffer.numbers(first, last);
                self.finish(show)?;
            }
            b'x' => self.put_cut(range, line)?,
            b's' => self.substitute(range, line)?,
            b'&' | b'~' if !is_ed => self.substitute_again(range, line)?,
            b'<' | b'>' if !is_ed => self.shift(letter, range, line)?,
            b'g' | b'v' => self.global(range, (letter == b'g') != (forced && !is_ed), line)?,
            b'G' | b'V' if is_ed => self.global_by_hand(range, letter == b'G', line)?,
            b'u' => self.undo_last(range, line)?,
            b'z' if is_ed => self.scroll(range, line)?,
            b'h' if is_ed => {
                self.expect_end(range, line)?;
                if !self.last_error.is_empty() {
                    let message = format!("{}\n", self.last_error);
                    self.put(message.as_bytes());
                }
            }
            b'H' if is_ed => {
                self.expect_end(range, line)?;
                self.verbose = !self.verbose;
                if self.verbose && !self.last_error.is_empty() {
                    let message = format!("{}\n", self.last_error);
                    self.put(message.as_bytes());
                }
            }
            b'P' if is_ed => {
                self.expect_end(range, line)?;
                self.prompt = if self.prompt.is_some() { None } else { Some(b"*".to_vec()) };
            }
            b'S' => self.settings(line)?,
            _ => return self.file_command(letter, forced, range, line),
        }
        Ok(Next::Command)
    }

    fn file_command(
        &mut self,
        letter: u8,
        forced: bool,
        range: Range,
        line: &mut Line<'_>,
    ) -> Result<Next, Wrong> {
        match letter {
            b'e' | b'E' => self.edit_other(letter == b'E' || forced, range, line)?,
            b'f' => self.file_name(range, line)?,
            b'r' => self.read_in(range, line)?,
            b'w' | b'W' | b'Z' | b'X' => return self.write_out(letter, forced, range, line),
            b'q' | b'Q' => {
                self.expect_end(range, line)?;
                if letter == b'q' && self.modified && !forced {
                    self.warned = true;
                    return wrong("Warning: buffer modified");
                }
                return Ok(Next::Leave);
            }
            b'!' => self.shell(range, line)?,
            _ => return wrong("Unknown command"),
        }
        Ok(Next::Command)
    }

    // --- what follows a command ---

    /// The letters that say how the current line is printed afterwards.
    pub(super) fn suffix(&self, line: &mut Line<'_>) -> Result<Show, Wrong> {
        let mut show = Show::default();
        loop {
            match line.peek() {
                Some(b'p') => show.print = true,
                Some(b'n') => show.number = true,
                Some(b'#') if self.dialect == Dialect::Ex => show.number = true,
                Some(b'l') => show.list = true,
                None => return Ok(show),
                Some(b'|') if self.dialect == Dialect::Ex => return Ok(show),
                Some(b' ' | b'\t') if self.dialect == Dialect::Ex => {}
                Some(_) => return wrong("Invalid command suffix"),
            }
            line.next();
        }
    }

    pub(super) fn expect_end(&self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        if range.given > 0 {
            return wrong("Unexpected address");
        }
        self.suffix(line).map(drop)
    }

    /// Prints the current line if that was asked for.
    pub(super) fn finish(&mut self, show: Show) -> Result<(), Wrong> {
        if show.any() {
            let current = self.buffer.current;
            if current == 0 {
                return wrong("Invalid address");
            }
            self.print(current, current, show);
        }
        Ok(())
    }

    // --- printing ---

    fn print(&mut self, first: usize, last: usize, show: Show) {
        for number in first..=last {
            let mut text = Vec::new();
            if show.number {
                text.extend(format!("{number}\t").bytes());
            }
            match show.list {
                true => list_line(self.buffer.text(number), &mut text),
                false => text.extend_from_slice(self.buffer.text(number)),
            }
            text.push(b'\n');
            self.put(&text);
        }
        self.buffer.current = last;
    }

    fn print_command(&mut self, letter: u8, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let (first, last) = lines_of(range, self.buffer.last())?;
        let mut show = self.suffix(line)?;
        match letter {
            b'p' => show.print = true,
            b'n' => show.number = true,
            _ => show.list = true,
        }
        self.print(first, last, show);
        Ok(())
    }

    /// An address alone prints its line; nothing at all the next one.
    fn print_next(&mut self, range: Range) -> Result<(), Wrong> {
        let line = if range.given > 0 { range.last } else { self.buffer.current + 1 };
        if line == 0 || line > self.buffer.last() {
            return wrong("Invalid address");
        }
        let first = if range.given == 2 && self.dialect == Dialect::Ex { range.first.max(1) } else { line };
        if self.printed.is_some() {
            self.buffer.current = line;
        } else {
            self.print(first, line, Show { print: true, ..Show::default() });
        }
        Ok(())
    }

    fn line_number(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let show = self.suffix(line)?;
        let number = if range.given > 0 { range.last } else { self.buffer.last() };
        self.put(format!("{number}\n").as_bytes());
        self.finish(show)
    }

    fn scroll(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let first = if range.given > 0 { range.last } else { self.buffer.current + 1 };
        if let Some(count) = line.number() {
            self.window = usize::try_from(count).unwrap_or(usize::MAX).max(1);
        }
        let mut show = self.suffix(line)?;
        if first == 0 || first > self.buffer.last() {
            return wrong("Invalid address");
        }
        show.print = true;
        let last = first.saturating_add(self.window - 1).min(self.buffer.last());
        self.print(first, last, show);
        Ok(())
    }

    // --- changing ---

    /// Lines of input up to a dot alone.
    fn text_lines(&mut self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        while let Some(line) = self.next_line() {
            if line == b"." {
                break;
            }
            lines.push(line);
        }
        lines
    }

    fn take_text(&mut self, letter: u8, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let show = self.suffix(line)?;
        if self.printed.is_some() {
            return wrong("This command needs lines that follow it: use it in a script of ex");
        }
        let mut after = range.last;
        if letter == b'c' {
            let (first, last) = lines_of(
                Range { first: range.first.max(1), last: range.last.max(1), ..range },
                self.buffer.last(),
            )?;
            let texts = self.text_lines();
            self.note_change();
            self.cut = self.buffer.remove(first, last);
            self.buffer.current = first.min(self.buffer.last());
            if texts.is_empty() {
                return self.finish(show);
            }
            after = first - 1;
            self.buffer.insert_texts(after, &texts);
            self.buffer.current = after + texts.len();
            return self.finish(show);
        }
        if letter == b'i' {
            after = after.saturating_sub(1);
        }
        let texts = self.text_lines();
        self.buffer.current = range.last;
        if !texts.is_empty() {
            self.note_change();
            self.buffer.insert_texts(after, &texts);
            self.buffer.current = after + texts.len();
        }
        self.finish(show)
    }

    fn delete(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let (first, last) = lines_of(range, self.buffer.last())?;
        let show = self.suffix(line)?;
        self.note_change();
        self.cut = self.buffer.remove(first, last);
        self.buffer.current = first.min(self.buffer.last());
        self.finish(show)
    }

    fn join(&mut self, range: Range, plain: bool, line: &mut Line<'_>) -> Result<(), Wrong> {
        let mut range = range;
        if range.given < 2 {
            (range.first, range.last) = (range.last, range.last + 1);
        }
        let show = self.suffix(line)?;
        let (first, last) = lines_of(range, self.buffer.last())?;
        if first < last {
            let mut text = self.buffer.text(first).to_vec();
            for number in first + 1..=last {
                let more = self.buffer.text(number);
                if self.dialect == Dialect::Ex && !plain {
                    let more = more.trim_ascii_start();
                    let blank = text.last().is_some_and(|byte| !matches!(byte, b' ' | b'\t'));
                    if blank && !more.is_empty() && more[0] != b')' {
                        text.push(b' ');
                    }
                    text.extend_from_slice(more);
                } else {
                    text.extend_from_slice(more);
                }
            }
            self.note_change();
            self.cut = self.buffer.remove(first, last);
            self.buffer.insert_texts(first - 1, &[text]);
            self.buffer.current = first;
        }
        self.finish(show)
    }

    fn move_or_copy(&mut self, letter: u8, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let (first, last) = lines_of(range, self.buffer.last())?;
        line.skip_blanks();
        let target = self.address(line)?.unwrap_or(self.buffer.current as i64);
        let show = self.suffix(line)?;
        let Some(target) = usize::try_from(target).ok().filter(|target| *target <= self.buffer.last()) else {
            return wrong("Invalid address");
        };
        let count = last - first + 1;
        if letter == b't' {
            self.note_change();
            let numbers = self.buffer.numbers(first, last);
            let copies = self.buffer.copies(&numbers);
            self.buffer.insert(target, &copies);
            self.buffer.current = target + count;
            return self.finish(show);
        }
        if (first..last).contains(&target) {
            return wrong("Invalid destination");
        }
        if target == last || target + 1 == first {
            self.buffer.current = last;
            return self.finish(show);
        }
        self.note_change();
        let numbers = self.buffer.remove(first, last);
        let target = if target > last { target - count } else { target };
        self.buffer.insert(target, &numbers);
        self.buffer.current = target + count;
        self.finish(show)
    }

    fn put_cut(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let show = self.suffix(line)?;
        if self.cut.is_empty() {
            return wrong("Nothing to put");
        }
        self.note_change();
        let cut = self.cut.clone();
        let copies = self.buffer.copies(&cut);
        self.buffer.insert(range.last, &copies);
        self.buffer.current = range.last + copies.len();
        self.finish(show)
    }

    fn set_mark(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        if self.dialect == Dialect::Ex {
            line.skip_blanks();
        }
        let name = line.next();
        if range.last == 0 {
            return wrong("Invalid address");
        }
        let Some(name) = name.filter(u8::is_ascii_lowercase) else { return wrong("Invalid mark character") };
        let show = self.suffix(line)?;
        self.buffer.set_mark(name, range.last);
        self.finish(show)
    }

    /// `>` and `<`: eight columns to the right or left.
    fn shift(&mut self, letter: u8, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let mut times = 1;
        while line.eat(letter) {
            times += 1;
        }
        let (first, last) = lines_of(range, self.buffer.last())?;
        let show = self.suffix(line)?;
        self.note_change();
        let shifted: Vec<Vec<u8>> =
            (first..=last).map(|number| shifted(self.buffer.text(number), letter == b'>', times)).collect();
        self.buffer.remove(first, last);
        self.buffer.insert_texts(first - 1, &shifted);
        self.buffer.current = last;
        self.finish(show)
    }

    fn undo_last(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        if range.given > 0 {
            return wrong("Unexpected address");
        }
        let show = self.suffix(line)?;
        let Some(snapshot) = self.undo.take() else { return wrong("Nothing to undo") };
        self.undo = Some(self.buffer.restore(snapshot, &mut self.modified));
        self.finish(show)
    }

    /// Options of ex: what scripts set first, and what changes nothing here.
    fn settings(&mut self, line: &mut Line<'_>) -> Result<(), Wrong> {
        const HARMLESS: [&str; 13] = [
            "nu",
            "number",
            "nonu",
            "nonumber",
            "nocompatible",
            "nocp",
            "hlsearch",
            "nohlsearch",
            "hls",
            "nohls",
            "ai",
            "autoindent",
            "showmode",
        ];
        let text = String::from_utf8_lossy(line.rest).into_owned();
        line.rest = b"";
        match text.split_whitespace().find(|word| !HARMLESS.contains(word)) {
            None => Ok(()),
            Some(word) => Err(format!("Unknown option: {word}")),
        }
    }

    // --- global ---

    fn global(&mut self, range: Range, matching: bool, line: &mut Line<'_>) -> Result<(), Wrong> {
        let numbers = self.matching_lines(range, matching, line)?;
        let mut commands = vec![std::mem::take(&mut line.rest).to_vec()];
        while ends_with_backslash(&commands[commands.len() - 1]) {
            commands.last_mut().map(Vec::pop);
            commands.push(self.next_line().ok_or("Unexpected end-of-file")?);
        }
        if commands == [b""] {
            commands = vec![b"p".to_vec()];
        }
        for number in numbers {
            let Some(line) = self.buffer.find(number, self.buffer.current.saturating_sub(1)) else {
                continue;
            };
            self.buffer.current = line;
            self.run_list(commands.iter().cloned().collect())?;
        }
        Ok(())
    }

    fn run_list(&mut self, commands: VecDeque<Vec<u8>>) -> Result<(), Wrong> {
        self.list = Some(commands);
        while let Some(command) = self.list.as_mut().and_then(VecDeque::pop_front) {
            if self.command(&command, false)? == Next::Leave {
                break;
            }
        }
        self.list = None;
        Ok(())
    }

    /// The numbers of the lines that a global command is for.
    fn matching_lines(
        &mut self,
        range: Range,
        matching: bool,
        line: &mut Line<'_>,
    ) -> Result<Vec<u32>, Wrong> {
        if self.list.is_some() {
            return wrong("Cannot nest global commands");
        }
        let range =
            if range.given > 0 { range } else { Range { given: 2, first: 1, last: self.buffer.last() } };
        let delimiter = line.next().filter(|byte| !matches!(byte, b' ' | b'\n'));
        let delimiter = delimiter.ok_or("Invalid pattern delimiter")?;
        let (pattern, _) = line.pattern(delimiter)?;
        let regex = self.regex(pattern, delimiter, false)?;
        if self.buffer.last() == 0 {
            return Ok(Vec::new());
        }
        let (first, last) = lines_of(range, self.buffer.last())?;
        let numbers = self.buffer.numbers(first, last);
        let lines = (first..=last).zip(numbers);
        let chosen = lines.filter(|(line, _)| regex.is_match(self.buffer.text(*line)) == matching);
        Ok(chosen.map(|(_, number)| number).collect())
    }

    /// `G` and `V`: shows each line and asks what to do with it.
    fn global_by_hand(&mut self, range: Range, matching: bool, line: &mut Line<'_>) -> Result<(), Wrong> {
        let numbers = self.matching_lines(range, matching, line)?;
        let show = self.suffix(line)?;
        for number in numbers {
            let Some(line) = self.buffer.find(number, self.buffer.current.saturating_sub(1)) else {
                continue;
            };
            self.print(line, line, Show { print: true, ..show });
            let mut command = self.next_line().ok_or("Unexpected end-of-file")?;
            if command == b"&" {
                if self.interactive_list.is_empty() {
                    return wrong("No previous command");
                }
                command = self.interactive_list.clone();
            } else if command.is_empty() {
                continue;
            } else {
                self.interactive_list = command.clone();
            }
            self.run_list(VecDeque::from([command]))?;
        }
        Ok(())
    }
}

/// The lines of a range: there must be some.
pub fn lines_of(range: Range, last: usize) -> Result<(usize, usize), Wrong> {
    if range.first == 0 || range.first > range.last || range.last > last {
        return wrong("Invalid address");
    }
    Ok((range.first, range.last))
}

pub fn ends_with_backslash(line: &[u8]) -> bool {
    line.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

fn shifted(text: &[u8], right: bool, times: usize) -> Vec<u8> {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let columns =
        text[..blanks].iter().fold(0, |at, byte| if *byte == b'\t' { (at / 8 + 1) * 8 } else { at + 1 });
    let columns: usize =
        if right { columns + 8 * times.min(1000) } else { columns.saturating_sub(8 * times) };
    if text.len() == blanks && right {
        return text.to_vec();
    }
    let mut line = vec![b'\t'; columns / 8];
    line.resize(line.len() + columns % 8, b' ');
    line.extend_from_slice(&text[blanks..]);
    line
}

/// A line with all that cannot be seen written out, folded where a screen ends.
fn list_line(text: &[u8], out: &mut Vec<u8>) {
    let mut column = 0;
    for &byte in text {
        let shown = match byte {
            7 => "\\a".to_owned(),
            8 => "\\b".to_owned(),
            9 => "\\t".to_owned(),
            11 => "\\v".to_owned(),
            12 => "\\f".to_owned(),
            13 => "\\r".to_owned(),
            b'\\' => "\\\\".to_owned(),
            b'$' => "\\$".to_owned(),
            32..=126 => char::from(byte).to_string(),
            byte => format!("\\{byte:03o}"),
        };
        if column + shown.len() > 79 {
            out.extend(b"\\\n");
            column = 0;
        }
        column += shown.len();
        out.extend(shown.bytes());
    }
    out.push(b'$');
}
