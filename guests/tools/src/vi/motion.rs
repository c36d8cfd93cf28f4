//! Where motions lead.

use super::{Keys, Vi, char_at};
use crate::nano::text::{Place, unit};
use crate::tty::Key;
use wardian_regex::{Options, Regex, Syntax};

/// What was searched for, and which way.
pub struct Search {
    pub regex: Regex,
    pub forward: bool,
}

/// What an operator takes in that is given a motion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Up to the character where it leads.
    Before,
    /// That character too.
    Through,
    /// Whole lines.
    Lines,
}

#[derive(Clone, Copy, Debug)]
pub struct Motion {
    pub to: Place,
    pub reach: Reach,
    /// Where it begins, for what is not a motion but a thing: `iw`, `a"`.
    pub from: Option<Place>,
}

fn motion(to: Place, reach: Reach) -> Option<Motion> {
    Some(Motion { to, reach, from: None })
}

/// Blanks, words, and what stands between them.
fn kind(char: char, big: bool) -> u8 {
    match char {
        '\n' | ' ' | '\t' => 0,
        char if big || char == '_' || char.is_alphanumeric() => 1,
        _ => 2,
    }
}

impl<K: Keys> Vi<K> {
    /// Where a key leads, if it is a motion. `pending` where an operator waits for it.
    pub(super) fn motion(&mut self, key: Key, count: Option<usize>, pending: bool) -> Option<Motion> {
        let here = self.text.cursor;
        let times = count.unwrap_or(1);
        let last = self.text.lines.len() - 1;
        match key {
            Key::Char('h') | Key::Left | Key::Backspace => {
                let at =
                    (0..times).fold(here.at, |at, _| if at > 0 { self.text.before(here.row, at) } else { 0 });
                motion(Place { at, ..here }, Reach::Before)
            }
            Key::Char('l' | ' ') | Key::Right => {
                let line = &self.text.lines[here.row];
                let step = |at: usize| if at < line.len() { at + unit(line, at).0 } else { at };
                let at = (0..times.min(line.len() + 1)).fold(here.at, |at, _| step(at));
                motion(Place { at, ..here }, Reach::Before)
            }
            Key::Char('j') | Key::Down | Key::Ctrl(b'N') => self.vertical(times as isize, pending),
            Key::Char('k') | Key::Up | Key::Ctrl(b'P') => self.vertical(-(times as isize), pending),
            Key::Char('+') | Key::Enter => motion(self.first_of(here.row + times), Reach::Lines),
            Key::Char('-') => motion(self.first_of(here.row.checked_sub(times)?), Reach::Lines),
            Key::Char('_') => motion(self.first_of(here.row + times - 1), Reach::Lines),
            Key::Char('0') | Key::Home => motion(Place { at: 0, ..here }, Reach::Before),
            Key::Char('^') => motion(self.first_of(here.row), Reach::Before),
            Key::Char('$') | Key::End => {
                let row = (here.row + times - 1).min(last);
                motion(Place { row, at: self.text.lines[row].len() }, Reach::Before)
            }
            Key::Char('|') => {
                let at = self.text.at_column(here.row, times - 1);
                motion(Place { at, ..here }, Reach::Before)
            }
            Key::Char('G') => motion(self.first_of(count.map_or(last, |line| line - 1)), Reach::Lines),
            Key::Char('g') => match self.key() {
                Key::Char('g') => motion(self.first_of(times - 1), Reach::Lines),
                Key::Char('e') => motion(self.repeated(times, |vi, at| vi.word_end_back(at)), Reach::Through),
                Key::Char('_') => {
                    let end = self.text.line().trim_ascii_end().len();
                    motion(Place { at: self.text.before(here.row, end.max(1)), ..here }, Reach::Through)
                }
                _ => None,
            },
            Key::Char(letter @ ('w' | 'W')) => {
                let to = self.repeated(times, |vi, at| vi.word(at, letter == 'W'));
                // The last word of a line does not take the line's end with it.
                let to = match pending && to.row > here.row {
                    true if self.text.lines[to.row][..to.at].trim_ascii().is_empty() => {
                        let row = (here.row..to.row)
                            .rev()
                            .find(|row| *row == here.row || !self.text.lines[*row].is_empty());
                        let row = row.unwrap_or(here.row);
                        Place { row, at: self.text.lines[row].len() }
                    }
                    _ => to,
                };
                motion(to, Reach::Before)
            }
            Key::Char(letter @ ('b' | 'B')) => {
                motion(self.repeated(times, |vi, at| vi.word_back(at, letter == 'B')), Reach::Before)
            }
            Key::Char(letter @ ('e' | 'E')) => {
                motion(self.repeated(times, |vi, at| vi.word_end(at, letter == 'E')), Reach::Through)
            }
            Key::Char('{') => motion(self.repeated(times, |vi, at| vi.paragraph(at, false)), Reach::Before),
            Key::Char('}') => motion(self.repeated(times, |vi, at| vi.paragraph(at, true)), Reach::Before),
            Key::Char('H') => motion(self.first_of((self.view.top + times - 1).min(last)), Reach::Lines),
            Key::Char('M') => motion(self.first_of(self.view.top + self.view.text_rows() / 2), Reach::Lines),
            Key::Char('L') => {
                let bottom = (self.view.top + self.view.text_rows()).saturating_sub(times);
                motion(self.first_of(bottom.min(last)), Reach::Lines)
            }
            Key::Char(letter @ ('f' | 'F' | 't' | 'T')) => {
                let Key::Char(wanted) = self.key() else { return None };
                self.find = Some((letter, wanted));
                self.find_char(letter, wanted, times, false)
            }
            Key::Char(letter @ (';' | ',')) => {
                let (mut way, wanted) = self.find?;
                if letter == ',' {
                    way =
                        if way.is_lowercase() { way.to_ascii_uppercase() } else { way.to_ascii_lowercase() };
                }
                self.find_char(way, wanted, times, true)
            }
            Key::Char('%') => self.pair(here),
            Key::Char(letter @ ('/' | '?')) => {
                let pattern = self.ask(letter)?;
                self.search_for(&pattern, letter == '/', times)
            }
            Key::Char(letter @ ('n' | 'N')) => {
                let forward = self.search.as_ref()?.forward == (letter == 'n');
                self.next_match(forward, times)
            }
            Key::Char(letter @ ('*' | '#')) => {
                let word = self.word_here()?;
                let pattern = format!("\\<{}\\>", wardian_regex::escape(&word));
                self.search_for(pattern.as_bytes(), letter == '*', times)
            }
            Key::Char(letter @ ('\'' | '`')) => {
                let Key::Char(name) = self.key() else { return None };
                let mut to = *self.marks.get(&name)?;
                to.row = to.row.min(last);
                to.at = to.at.min(self.text.lines[to.row].len());
                match letter {
                    '`' => motion(to, Reach::Before),
                    _ => motion(self.first_of(to.row), Reach::Lines),
                }
            }
            _ => None,
        }
    }

    fn vertical(&mut self, rows: isize, pending: bool) -> Option<Motion> {
        let here = self.text.cursor;
        let row = here.row.checked_add_signed(rows).filter(|row| *row < self.text.lines.len())?;
        let wanted = self.text.wanted_column();
        let at = self.text.at_column(row, wanted);
        // The column is kept for the next step, which is why the text itself goes there.
        if !pending {
            self.text.step(rows);
        }
        motion(Place { row, at }, Reach::Lines)
    }

    pub(super) fn first_of(&self, row: usize) -> Place {
        let row = row.min(self.text.lines.len() - 1);
        let line = &self.text.lines[row];
        let at = line.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
        Place { row, at }
    }

    fn repeated(&self, times: usize, step: impl Fn(&Self, Place) -> Place) -> Place {
        let mut place = self.text.cursor;
        for _ in 0..times {
            let next = step(self, place);
            if next == place {
                break;
            }
            place = next;
        }
        place
    }

    /// The place after one; a line's end is a place as well.
    fn after(&self, place: Place) -> Option<Place> {
        let line = &self.text.lines[place.row];
        if place.at < line.len() {
            return Some(Place { at: place.at + unit(line, place.at).0, ..place });
        }
        (place.row + 1 < self.text.lines.len()).then_some(Place { row: place.row + 1, at: 0 })
    }

    fn before_place(&self, place: Place) -> Option<Place> {
        if place.at > 0 {
            return Some(Place { at: self.text.before(place.row, place.at), ..place });
        }
        let row = place.row.checked_sub(1)?;
        Some(Place { row, at: self.text.lines[row].len() })
    }

    fn kind_at(&self, place: Place, big: bool) -> u8 {
        kind(char_at(&self.text, place), big)
    }

    fn is_empty_line(&self, place: Place) -> bool {
        self.text.lines[place.row].is_empty()
    }

    fn word(&self, start: Place, big: bool) -> Place {
        let (mut place, first) = (start, self.kind_at(start, big));
        while self.kind_at(place, big) == first && first != 0 {
            let Some(next) = self.after(place) else { return place };
            place = next;
        }
        while self.kind_at(place, big) == 0 {
            let Some(next) = self.after(place) else { return place };
            if next.row > place.row && self.is_empty_line(next) {
                return next;
            }
            place = next;
        }
        place
    }

    pub(super) fn word_back(&self, start: Place, big: bool) -> Place {
        let Some(mut place) = self.before_place(start) else { return start };
        while self.kind_at(place, big) == 0 {
            if place.row < start.row && self.is_empty_line(place) {
                return place;
            }
            let Some(before) = self.before_place(place) else { return place };
            place = before;
        }
        let first = self.kind_at(place, big);
        while let Some(before) = self.before_place(place).filter(|before| self.kind_at(*before, big) == first)
        {
            place = before;
        }
        place
    }

    fn word_end(&self, start: Place, big: bool) -> Place {
        let Some(mut place) = self.after(start) else { return start };
        while self.kind_at(place, big) == 0 {
            let Some(next) = self.after(place) else { return place };
            place = next;
        }
        let first = self.kind_at(place, big);
        while let Some(next) = self.after(place).filter(|next| self.kind_at(*next, big) == first) {
            place = next;
        }
        place
    }

    fn word_end_back(&self, start: Place) -> Place {
        let (mut place, first) = (start, self.kind_at(start, false));
        while let Some(before) = self.before_place(place) {
            let found = self.kind_at(before, false);
            if found != 0 && (found != first || self.kind_at(place, false) == 0) {
                return before;
            }
            place = before;
        }
        place
    }

    fn paragraph(&self, start: Place, forward: bool) -> Place {
        let lines = &self.text.lines;
        let mut row = start.row;
        let is_empty = |row: usize| lines[row].is_empty();
        let step = |row: usize| {
            if forward { (row + 1 < lines.len()).then_some(row + 1) } else { row.checked_sub(1) }
        };
        while is_empty(row) {
            match step(row) {
                Some(next) => row = next,
                None => break,
            }
        }
        while !is_empty(row) {
            match step(row) {
                Some(next) => row = next,
                None => return Place { row, at: if forward { lines[row].len() } else { 0 } },
            }
        }
        Place { row, at: 0 }
    }

    /// `f`, `t`, `F`, `T`: `again` when it is repeated, and must not stay where it is.
    fn find_char(&self, way: char, wanted: char, times: usize, again: bool) -> Option<Motion> {
        let here = self.text.cursor;
        let line = &self.text.lines[here.row];
        let is_wanted = |at: usize| unit(line, at).1 == wanted;
        if way.is_lowercase() {
            let mut places = Vec::new();
            let mut at = here.at;
            while at < line.len() {
                at += unit(line, at).0;
                places.push(at);
            }
            let skip = usize::from(
                again && way == 't' && places.first().is_some_and(|at| *at < line.len() && is_wanted(*at)),
            );
            let found =
                places.into_iter().filter(|at| *at < line.len() && is_wanted(*at)).nth(skip + times - 1)?;
            let at = if way == 't' { self.text.before(here.row, found) } else { found };
            return motion(Place { at, ..here }, Reach::Through);
        }
        let (mut at, mut left) = (here.at, times);
        if again && way == 'T' && at > 0 && is_wanted(self.text.before(here.row, at)) {
            at = self.text.before(here.row, at);
        }
        while at > 0 {
            at = self.text.before(here.row, at);
            if is_wanted(at) {
                left -= 1;
                if left == 0 {
                    let at = if way == 'T' { at + unit(line, at).0 } else { at };
                    return motion(Place { at, ..here }, Reach::Before);
                }
            }
        }
        None
    }

    /// The bracket that belongs to the next one on the line.
    fn pair(&self, here: Place) -> Option<Motion> {
        const PAIRS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];
        let mut place = here;
        let (own, other, forward) = loop {
            let char = char_at(&self.text, place);
            let opens = PAIRS.iter().find(|pair| pair.0 == char);
            let closes = PAIRS.iter().find(|pair| pair.1 == char);
            match (opens, closes) {
                (Some(pair), _) => break (pair.0, pair.1, true),
                (_, Some(pair)) => break (pair.1, pair.0, false),
                _ => place = self.after(place).filter(|next| next.row == here.row)?,
            }
        };
        let mut depth = 0;
        loop {
            let char = char_at(&self.text, place);
            depth += isize::from(char == own) - isize::from(char == other);
            if depth == 0 {
                return motion(place, Reach::Through);
            }
            place = if forward { self.after(place)? } else { self.before_place(place)? };
        }
    }

    fn word_here(&self) -> Option<String> {
        let here = self.text.cursor;
        let line = &self.text.lines[here.row];
        let is_word = |at: usize| kind(unit(line, at).1, false) == 1;
        let mut start = here.at;
        while start < line.len() && !is_word(start) {
            start += unit(line, start).0;
        }
        if start >= line.len() {
            return None;
        }
        while start > 0 && is_word(self.text.before(here.row, start)) {
            start = self.text.before(here.row, start);
        }
        let mut end = start;
        while end < line.len() && is_word(end) {
            end += unit(line, end).0;
        }
        Some(String::from_utf8_lossy(&line[start..end]).into_owned())
    }

    // --- searching ---

    pub(super) fn search_for(&mut self, pattern: &[u8], forward: bool, times: usize) -> Option<Motion> {
        if !pattern.is_empty() {
            match Regex::new(pattern, &Options::new(Syntax::Basic)) {
                Ok(regex) => self.search = Some(Search { regex, forward }),
                Err(error) => {
                    self.status = error;
                    return None;
                }
            }
        }
        if let Some(search) = &mut self.search {
            search.forward = forward;
        }
        self.next_match(forward, times)
    }

    fn next_match(&mut self, forward: bool, times: usize) -> Option<Motion> {
        let mut place = self.text.cursor;
        for _ in 0..times.min(1000) {
            match self.match_from(place, forward) {
                Some(found) => place = found,
                None => {
                    let shown = String::from_utf8_lossy(self.search.as_ref()?.regex.source()).into_owned();
                    self.status = format!("Pattern not found: {shown}");
                    return None;
                }
            }
        }
        motion(place, Reach::Before)
    }

    /// The next match after a place, or the one before it, around the ends of the text.
    fn match_from(&self, place: Place, forward: bool) -> Option<Place> {
        let regex = &self.search.as_ref()?.regex;
        let count = self.text.lines.len();
        for step in 0..=count {
            let row = if forward { place.row + step } else { place.row + count - step % count } % count;
            let line = &self.text.lines[row];
            let (mut from, mut last) = (0, None);
            while from <= line.len() {
                let Some((start, end)) = regex.find_at(line, from) else { break };
                let counts = match (forward, step) {
                    (true, 0) => start > place.at,
                    (false, 0) => start < place.at,
                    _ => true,
                };
                if counts && forward {
                    return Some(Place { row, at: start });
                }
                if counts {
                    last = Some(start);
                }
                from = if end > start {
                    end
                } else {
                    end + if end < line.len() { unit(line, end).0 } else { 1 }
                };
            }
            if let Some(at) = last {
                return Some(Place { row, at });
            }
        }
        None
    }

    // --- things ---

    /// `iw`, `a"`, `i(`: what an operator takes that is given `i` or `a`.
    pub(super) fn thing(&mut self, around: bool) -> Option<Motion> {
        let Key::Char(what) = self.key() else { return None };
        let here = self.text.cursor;
        let (from, to) = match what {
            'w' | 'W' => self.word_thing(here, around, what == 'W')?,
            '"' | '\'' | '`' => self.quoted_thing(here, around, what as u8)?,
            '(' | ')' | 'b' => self.bracket_thing(here, around, '(', ')')?,
            '[' | ']' => self.bracket_thing(here, around, '[', ']')?,
            '{' | '}' | 'B' => self.bracket_thing(here, around, '{', '}')?,
            '<' | '>' => self.bracket_thing(here, around, '<', '>')?,
            'p' => {
                let is_empty = |row: &usize| self.text.lines[*row].is_empty();
                let rows = self.text.lines.len();
                let first = (0..here.row).rev().find(is_empty).map_or(0, |row| row + 1);
                let mut last = (here.row..rows).find(is_empty).unwrap_or(rows);
                while around && last < rows && is_empty(&last) {
                    last += 1;
                }
                let to = Place { row: last.max(first + 1) - 1, at: 0 };
                return Some(Motion { to, reach: Reach::Lines, from: Some(Place { row: first, at: 0 }) });
            }
            _ => return None,
        };
        Some(Motion { to, reach: Reach::Before, from: Some(from) })
    }

    fn word_thing(&self, here: Place, around: bool, big: bool) -> Option<(Place, Place)> {
        let line = &self.text.lines[here.row];
        let kind_of = |at: usize| kind(unit(line, at).1, big);
        if here.at >= line.len() {
            return None;
        }
        let (mut from, mut to, own) = (here.at, here.at, kind_of(here.at));
        while from > 0 && kind_of(self.text.before(here.row, from)) == own {
            from = self.text.before(here.row, from);
        }
        let run = |mut to: usize, own: u8| {
            while to < line.len() && kind_of(to) == own {
                to += unit(line, to).0;
            }
            to
        };
        to = run(to, own);
        if around {
            let end = if own == 0 && to < line.len() { run(to, kind_of(to)) } else { run(to, 0) };
            if end == to && own != 0 {
                while from > 0 && kind_of(self.text.before(here.row, from)) == 0 {
                    from = self.text.before(here.row, from);
                }
            }
            to = end;
        }
        Some((Place { at: from, ..here }, Place { at: to, ..here }))
    }

    fn quoted_thing(&self, here: Place, around: bool, quote: u8) -> Option<(Place, Place)> {
        let line = &self.text.lines[here.row];
        let places: Vec<usize> = memchr::memchr_iter(quote, line).collect();
        let pair = places.as_chunks::<2>().0.iter().find(|pair| here.at <= pair[1])?;
        let (from, to) = if around { (pair[0], pair[1] + 1) } else { (pair[0] + 1, pair[1]) };
        Some((Place { at: from, ..here }, Place { at: to, ..here }))
    }

    fn bracket_thing(&self, here: Place, around: bool, open: char, close: char) -> Option<(Place, Place)> {
        let (mut start, mut depth) = (here, 0);
        loop {
            let char = char_at(&self.text, start);
            if char == open && depth == 0 {
                break;
            }
            depth += isize::from(char == close && start != here) - isize::from(char == open);
            start = self.before_place(start)?;
        }
        let (mut end, mut depth) = (start, 0);
        loop {
            let char = char_at(&self.text, end);
            depth += isize::from(char == open) - isize::from(char == close);
            if depth == 0 {
                break;
            }
            end = self.after(end)?;
        }
        Some(if around {
            (start, self.after(end).filter(|next| next.row == end.row).unwrap_or(end))
        } else {
            (self.after(start)?, end)
        })
    }
}
