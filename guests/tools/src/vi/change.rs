//! Commands that change the text: operators over a motion, and their short forms.

use super::motion::{Motion, Reach};
use super::{Keys, Mode, Vi};
use crate::nano::text::{Place, unit};
use crate::tty::Key;

/// Text that was taken, to be put elsewhere.
#[derive(Clone, Default)]
pub struct Register {
    text: Vec<u8>,
    /// It is whole lines.
    lines: bool,
}

/// A part of the text: places up to which (not with which) it goes, or whole lines.
#[derive(Clone, Copy)]
struct Span {
    from: Place,
    to: Place,
    lines: bool,
}

impl<K: Keys> Vi<K> {
    /// Commands of one key, without a motion. Says whether the key is one.
    pub(super) fn change_command(&mut self, key: Key, count: Option<usize>) -> bool {
        let times = count.unwrap_or(1);
        let here = self.text.cursor;
        let end = Place { at: self.text.line().len(), ..here };
        match key {
            Key::Char('i') => self.mode = Mode::Insert,
            Key::Char('a') => {
                if here.at < end.at {
                    self.text.forward();
                }
                self.mode = Mode::Insert;
            }
            Key::Char('I') => self.insert_at(self.first_of(here.row)),
            Key::Char('A') => self.insert_at(end),
            Key::Char('o') => {
                self.text.replace_lines(here.row + 1, 0, vec![Vec::new()]);
                self.insert_at(Place { row: here.row + 1, at: 0 });
            }
            Key::Char('O') => {
                self.text.replace_lines(here.row, 0, vec![Vec::new()]);
                self.insert_at(Place { row: here.row, at: 0 });
            }
            Key::Char('R') => self.mode = Mode::Replace,
            Key::Char('x') | Key::Delete => self.short_form('d', Key::Char('l'), count),
            Key::Char('X') => self.short_form('d', Key::Char('h'), count),
            Key::Char('D') => self.short_form('d', Key::Char('$'), count),
            Key::Char('C') => self.short_form('c', Key::Char('$'), count),
            Key::Char('s') => self.short_form('c', Key::Char('l'), count),
            Key::Char('S') => self.short_form('c', Key::Char('_'), count),
            Key::Char('Y') => self.short_form('y', Key::Char('_'), count),
            Key::Char('r') => self.replace_chars(times),
            Key::Char('~') => {
                let end = self.chars_from(here, times);
                self.change_case(Span { from: here, to: end, lines: false }, '~');
                self.text.go(end);
            }
            Key::Char('J') => self.join(times.max(2) - 1),
            Key::Char('p') => self.put(true, times),
            Key::Char('P') => self.put(false, times),
            Key::Char('u') => self.undo_or_redo(true, times),
            Key::Ctrl(b'R') => self.undo_or_redo(false, times),
            _ => return false,
        }
        true
    }

    fn insert_at(&mut self, place: Place) {
        self.text.go(place);
        self.mode = Mode::Insert;
    }

    fn short_form(&mut self, operator: char, key: Key, count: Option<usize>) {
        match self.motion(key, count, true) {
            Some(motion) => self.operate(operator, motion),
            None => self.beep(),
        }
    }

    /// An operator and its motion. Says whether the key is one.
    pub(super) fn operator_command(&mut self, key: Key, count: Option<usize>) -> bool {
        let operator = match key {
            Key::Char(letter @ ('d' | 'c' | 'y' | '<' | '>')) => letter,
            Key::Char('g') => match self.key() {
                Key::Char(letter @ ('u' | 'U' | '~')) => letter,
                other => {
                    // It is the motion's to read.
                    self.pressed.pop();
                    self.replay.push_front(other);
                    return false;
                }
            },
            _ => return false,
        };
        let (more, key) = self.count();
        let count = match (count, more) {
            (Some(one), Some(other)) => Some(one.saturating_mul(other).min(super::MOST)),
            (one, other) => one.or(other),
        };
        let here = self.text.cursor;
        let motion = match key {
            // Doubled, it is for the line; `gUU` and `gUgU` as well.
            Key::Char(letter) if letter == operator => self.motion(Key::Char('_'), count, true),
            Key::Char('i') => self.thing(false),
            Key::Char('a') => self.thing(true),
            // `cw` on a word goes to its end, and leaves the blank behind it.
            Key::Char(letter @ ('w' | 'W'))
                if operator == 'c' && !matches!(super::char_at(&self.text, here), ' ' | '\t' | '\n') =>
            {
                self.change_word(letter == 'W', count.unwrap_or(1))
            }
            key => self.motion(key, count, true),
        };
        match motion {
            Some(motion) => self.operate(operator, motion),
            None => self.beep(),
        }
        true
    }

    /// To the end of this word, or of one further on.
    fn change_word(&mut self, big: bool, times: usize) -> Option<Motion> {
        let start = self.text.cursor;
        // Seen from the character before, the end of this word is the next end even if it is one letter long.
        let mut place = start;
        for time in 0..times {
            let from = if time == 0 { self.before_word(place) } else { Some(place) };
            self.text.cursor = from.unwrap_or(place);
            let key = Key::Char(if big { 'E' } else { 'e' });
            let found = if from.is_none() {
                self.first_word_end(big)
            } else {
                self.motion(key, None, true).map(|motion| motion.to)
            };
            place = found.unwrap_or(place).max(place);
        }
        self.text.cursor = start;
        Some(Motion { to: place, reach: Reach::Through, from: None })
    }

    fn before_word(&self, place: Place) -> Option<Place> {
        (place.at > 0).then(|| Place { at: self.text.before(place.row, place.at), ..place })
    }

    /// The end of the word that the line begins with.
    fn first_word_end(&mut self, big: bool) -> Option<Place> {
        let row = self.text.cursor.row;
        let line = &self.text.lines[row];
        let kind = |at: usize| {
            let char = unit(line, at).1;
            match char {
                ' ' | '\t' => 0,
                char if big || char == '_' || char.is_alphanumeric() => 1,
                _ => 2,
            }
        };
        let (first, mut end) = (kind(0), 0);
        while end < line.len() && kind(end) == first {
            end += unit(line, end).0;
        }
        Some(Place { row, at: self.text.before(row, end) })
    }

    /// What a motion takes in.
    fn span(&self, motion: Motion) -> Span {
        let start = motion.from.unwrap_or(self.text.cursor);
        let (from, mut to) = (start.min(motion.to), start.max(motion.to));
        if motion.reach == Reach::Through {
            let line = &self.text.lines[to.row];
            to.at += if to.at < line.len() { unit(line, to.at).0 } else { 0 };
        }
        Span { from, to, lines: motion.reach == Reach::Lines }
    }

    fn operate(&mut self, operator: char, motion: Motion) {
        let span = self.span(motion);
        self.operate_on(operator, span);
    }

    fn operate_on(&mut self, operator: char, span: Span) {
        match operator {
            'y' => {
                self.keep(span);
                self.text.go(if span.lines {
                    Place { row: span.from.row, ..self.text.cursor }
                } else {
                    span.from
                });
            }
            'd' => {
                self.keep(span);
                self.remove(span);
                if span.lines {
                    let row = span.from.row.min(self.text.lines.len() - 1);
                    self.text.go(self.first_of(row));
                }
            }
            'c' => {
                self.keep(span);
                if span.lines {
                    let count = span.to.row - span.from.row + 1;
                    self.text.replace_lines(span.from.row, count, vec![Vec::new()]);
                    self.text.go(Place { row: span.from.row, at: 0 });
                } else {
                    self.remove(span);
                }
                self.mode = Mode::Insert;
            }
            '<' | '>' => {
                let range = format!("{},{}{operator}", span.from.row + 1, span.to.row + 1);
                self.run_command(range.as_bytes());
                self.text.go(self.first_of(span.from.row));
            }
            _ => {
                self.change_case(span, operator);
                self.text.go(span.from);
            }
        }
    }

    fn taken(&self, span: Span) -> Vec<u8> {
        let Span { from, to, lines } = span;
        let rows = &self.text.lines[from.row..=to.row];
        if lines {
            return rows.join(&b'\n');
        }
        let whole = rows.join(&b'\n');
        let end = whole.len() - (self.text.lines[to.row].len() - to.at.min(self.text.lines[to.row].len()));
        whole[from.at.min(end)..end].to_vec()
    }

    fn keep(&mut self, span: Span) {
        let register = Register { text: self.taken(span), lines: span.lines };
        if let Some(name) = self.register.take() {
            // A capital adds to what is there.
            let kept = self.registers.entry(name.to_ascii_lowercase()).or_default();
            if name.is_ascii_uppercase() {
                if kept.lines || register.lines {
                    kept.text.push(b'\n');
                    kept.lines = true;
                }
                kept.text.extend_from_slice(&register.text);
            } else {
                *kept = register.clone();
            }
        }
        self.registers.insert('"', register);
    }

    fn remove(&mut self, span: Span) {
        if span.lines {
            self.text.replace_lines(span.from.row, span.to.row - span.from.row + 1, Vec::new());
        } else if span.from < span.to {
            self.text.remove(span.from, span.to);
        }
        self.text.go(span.from);
    }

    fn change_case(&mut self, span: Span, how: char) {
        let to = if span.lines {
            Place { row: span.to.row, at: self.text.lines[span.to.row].len() }
        } else {
            span.to
        };
        let from = if span.lines { Place { row: span.from.row, at: 0 } } else { span.from };
        let text = self.taken(Span { from, to, lines: false });
        let changed: Vec<u8> = match String::from_utf8(text.clone()) {
            Ok(text) => {
                let change = |char: char| match how {
                    'u' => char.to_lowercase().collect::<String>(),
                    'U' => char.to_uppercase().collect(),
                    _ if char.is_uppercase() => char.to_lowercase().collect(),
                    _ => char.to_uppercase().collect(),
                };
                text.chars().map(change).collect::<String>().into_bytes()
            }
            // What is no text has no letters but ASCII's.
            Err(_) if how == 'u' => text.to_ascii_lowercase(),
            Err(_) => text.to_ascii_uppercase(),
        };
        if changed != text {
            self.text.remove(from, to);
            self.text.go(from);
            self.text.insert(&changed);
        }
    }

    fn chars_from(&self, place: Place, count: usize) -> Place {
        let line = &self.text.lines[place.row];
        let mut at = place.at;
        for _ in 0..count {
            if at >= line.len() {
                break;
            }
            at += unit(line, at).0;
        }
        Place { at, ..place }
    }

    fn replace_chars(&mut self, times: usize) {
        let here = self.text.cursor;
        let new = match self.key() {
            Key::Char(char) => char.to_string().into_bytes(),
            Key::Tab => b"\t".to_vec(),
            Key::Enter => b"\n".to_vec(),
            _ => return,
        };
        let count = String::from_utf8_lossy(&self.text.line()[here.at..]).chars().count();
        if count < times {
            return self.beep();
        }
        self.text.remove(here, self.chars_from(here, times));
        self.text.insert(&if new == b"\n" { new } else { new.repeat(times) });
        if self.text.cursor.at > 0 {
            self.text.back();
        }
    }

    fn join(&mut self, times: usize) {
        let row = self.text.cursor.row;
        let last = (row + times).min(self.text.lines.len() - 1);
        if last == row {
            return self.beep();
        }
        let at = self.text.lines[row].len();
        self.run_command(format!("{},{}j", row + 1, last + 1).as_bytes());
        self.text.go(Place { row, at });
    }

    fn put(&mut self, behind: bool, times: usize) {
        let name = self.register.take().unwrap_or('"').to_ascii_lowercase();
        let Some(register) = self.registers.get(&name).cloned() else { return self.beep() };
        // What is put so often that it would fill the memory is a mistake.
        if register.text.len().saturating_mul(times) > 32 << 20 {
            return self.beep();
        }
        let here = self.text.cursor;
        if register.lines {
            let lines: Vec<Vec<u8>> =
                register.text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
            let row = here.row + usize::from(behind);
            self.text.replace_lines(row, 0, std::iter::repeat_n(lines, times).flatten().collect());
            self.text.go(self.first_of(row));
            return;
        }
        if behind && here.at < self.text.line().len() {
            self.text.forward();
        }
        let start = self.text.cursor;
        self.text.insert(&register.text.repeat(times));
        match register.text.contains(&b'\n') {
            true => self.text.go(start),
            false => self.text.back(),
        }
    }

    fn undo_or_redo(&mut self, undo: bool, times: usize) {
        for _ in 0..times {
            let steps = if undo { self.undo.pop() } else { self.redo.pop() };
            let Some(steps) = steps else { return self.beep() };
            for _ in 0..steps {
                if undo {
                    self.text.undo()
                } else {
                    self.text.redo()
                };
            }
            if undo { self.redo.push(steps) } else { self.undo.push(steps) }
        }
    }

    /// An operator on what is selected. Says whether the key is one.
    pub(super) fn operate_on_selection(
        &mut self,
        key: Key,
        start: Place,
        lines: bool,
        count: Option<usize>,
    ) -> bool {
        let (from, to) = (start.min(self.text.cursor), start.max(self.text.cursor));
        let reach = if lines { Reach::Lines } else { Reach::Through };
        let span = self.span(Motion { to, reach, from: Some(from) });
        let whole = Span { lines: true, ..span };
        self.mode = Mode::Normal;
        match key {
            Key::Char(letter @ ('d' | 'c' | 'y' | 'u' | 'U' | '~')) => self.operate_on(letter, span),
            Key::Char('x') | Key::Delete => self.operate_on('d', span),
            Key::Char('s') => self.operate_on('c', span),
            Key::Char('D' | 'X') => self.operate_on('d', whole),
            Key::Char('C' | 'S' | 'R') => self.operate_on('c', whole),
            Key::Char('Y') => self.operate_on('y', whole),
            Key::Char(letter @ ('<' | '>')) => self.operate_on(letter, whole),
            Key::Char('J') => {
                self.text.go(from);
                self.join((to.row - from.row).max(1));
            }
            Key::Char('p' | 'P') => {
                let kept = self.registers.get(&'"').cloned();
                self.operate_on('d', span);
                if let Some(kept) = kept {
                    self.registers.insert('"', kept);
                    self.put(false, count.unwrap_or(1));
                }
            }
            Key::Char('i' | 'a') => {
                self.mode = Mode::Visual(start, lines);
                if let Some(thing) = self.thing(key == Key::Char('a')) {
                    let end = self.span(thing).to;
                    self.mode = Mode::Visual(thing.from.unwrap_or(start), lines);
                    let at = if end.at > 0 { self.text.before(end.row, end.at) } else { 0 };
                    self.text.go(Place { at, ..end });
                }
            }
            _ => {
                self.mode = Mode::Visual(start, lines);
                return false;
            }
        }
        true
    }
}
