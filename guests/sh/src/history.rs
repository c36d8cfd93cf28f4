//! What was typed: the list, what is kept in it, and its file.

use crate::shell::Shell;
use wardian_abi as abi;

/// A command that was typed, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub text: Vec<u8>,
    /// Seconds since 1970, 0 where it is not known.
    pub time: i64,
}

/// The commands that were typed, the oldest first.
#[derive(Default)]
pub struct History {
    events: Vec<Event>,
    /// The number of the first one: older ones are gone.
    first: usize,
    /// How many, from the end, the history file does not have.
    new: usize,
    /// How many lines of the file have been read.
    file_lines: usize,
    /// The file of a script's history was read.
    loaded: bool,
}

/// What became of a line that was typed.
pub enum Taken {
    Whole {
        text: Vec<u8>,
        /// What the history keeps of it.
        kept: Option<Vec<u8>>,
    },
    Unfinished(Vec<u8>),
    /// An error was reported, or there is nothing to run.
    Refused,
}

impl History {
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// The number of the event at `index`.
    pub fn number(&self, index: usize) -> usize {
        self.first + index + 1
    }

    /// Where the event with this number is.
    pub fn index(&self, number: i64) -> Option<usize> {
        let index = usize::try_from(number).ok()?.checked_sub(self.first + 1)?;
        (index < self.events.len()).then_some(index)
    }

    pub fn text(&self, index: usize) -> Option<&[u8]> {
        self.events.get(index).map(|event| event.text.as_slice())
    }

    pub fn push(&mut self, text: Vec<u8>) {
        let time = crate::dynamic::since_epoch().as_secs() as i64;
        self.events.push(Event { text, time });
        self.new += 1;
    }

    pub fn remove(&mut self, index: usize) {
        if index + self.new >= self.events.len() {
            self.new -= 1;
        }
        self.events.remove(index);
    }

    pub fn clear(&mut self) {
        *self = History { file_lines: self.file_lines, ..History::default() };
    }

    /// What another session typed, before this one begins.
    pub fn load(&mut self, lines: Vec<Vec<u8>>) {
        self.events.splice(0..0, lines.into_iter().map(|text| Event { text, time: 0 }));
    }

    /// Forgets the oldest beyond so many.
    pub fn limit(&mut self, size: usize) {
        let extra = self.events.len().saturating_sub(size);
        self.events.drain(..extra);
        self.first += extra;
        self.new = self.new.min(self.events.len());
    }

    // --- the file ---

    /// Adds what a history file has; with `only_new`, what came into it since it was last read.
    pub fn read_file(&mut self, path: &[u8], only_new: bool) -> abi::Result<()> {
        let flags = abi::open_flags::RDONLY | abi::open_flags::CLOEXEC;
        let fd = abi::open(abi::Dir::CWD, path, flags, 0)?;
        let text = crate::builtins::read_file(fd);
        let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        let skip = if only_new { self.file_lines } else { 0 };
        let mut time = 0;
        for line in lines.iter().skip(skip).filter(|line| !line.is_empty()) {
            match timestamp(line) {
                Some(stamp) => time = stamp,
                None => self.events.push(Event { text: line.to_vec(), time: std::mem::take(&mut time) }),
            }
        }
        self.file_lines = lines.len().saturating_sub(1);
        Ok(())
    }

    /// Writes to the file: all of it anew, or what it does not have yet.
    pub fn write_file(&mut self, path: &[u8], append: bool, stamps: bool) -> abi::Result<()> {
        use abi::open_flags::{APPEND, CLOEXEC, CREAT, TRUNC, WRONLY};
        let how = if append { APPEND } else { TRUNC };
        let fd = abi::open(abi::Dir::CWD, path, WRONLY | CREAT | CLOEXEC | how, 0o600)?;
        let from = if append { self.events.len() - self.new } else { 0 };
        let mut text = Vec::new();
        for event in &self.events[from..] {
            if stamps {
                text.extend_from_slice(format!("#{}\n", event.time).as_bytes());
            }
            text.extend_from_slice(&event.text);
            text.push(b'\n');
        }
        let lines = text.iter().filter(|&&byte| byte == b'\n').count();
        let written = abi::write_all(fd, &text);
        let _ = abi::close(fd);
        written?;
        self.file_lines = if append { self.file_lines + lines } else { lines };
        if append {
            self.new = 0;
        }
        Ok(())
    }
}

/// The time in a line such as `#1700000000`.
fn timestamp(line: &[u8]) -> Option<i64> {
    let digits = line.strip_prefix(b"#").filter(|digits| digits.first().is_some_and(u8::is_ascii_digit))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl Shell {
    pub fn set_history_defaults(&mut self) {
        let home = self.text(b"HOME").map(|home| home.to_vec()).unwrap_or_default();
        let file = [home.as_slice(), b"/.bash_history"].concat();
        for (name, value) in
            [(&b"HISTFILE"[..], file.as_slice()), (b"HISTSIZE", b"500"), (b"HISTFILESIZE", b"500")]
        {
            if self.vars.raw(name).is_none() {
                self.vars.set_raw(name, value);
            }
        }
    }

    /// When an interactive shell ends: what was typed goes into the file.
    /// With `set -o history` in a script: what is in its file is part of it, once.
    pub fn load_history(&mut self) {
        if self.interactive || std::mem::replace(&mut self.history.loaded, true) {
            return;
        }
        if let Some(file) = self.text(b"HISTFILE").map(|file| file.to_vec()).filter(|file| !file.is_empty()) {
            // A file that is not there yet is none to read.
            let _ = self.history.read_file(&file, false);
        }
    }

    pub fn save_history(&mut self) {
        if let Some(file) = self.text(b"HISTFILE").map(|file| file.to_vec())
            && !file.is_empty()
            && self.options.history
        {
            let stamps = self.text(b"HISTTIMEFORMAT").is_some();
            let append = self.shopt.get("histappend");
            let _ = self.history.write_file(&file, append, stamps);
        }
    }

    /// How many events are kept; none for no limit.
    fn history_size(&self) -> Option<usize> {
        let text = self.text(b"HISTSIZE")?;
        let size: i64 = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
        usize::try_from(size).ok()
    }

    /// Takes a line that was typed after `before`: `!` is expanded, and a whole command goes into the history.
    pub fn take_line(&mut self, before: &[u8], line: &[u8]) -> Taken {
        let mut line = line.to_vec();
        if self.options.histexpand && self.options.history {
            match self.expand_history(before, &line) {
                Ok(None) => {}
                Ok(Some(expanded)) => {
                    let _ = abi::write_all(2, &[expanded.text.as_slice(), b"\n"].concat());
                    if expanded.print_only {
                        self.remember(&expanded.text);
                        return Taken::Refused;
                    }
                    line = expanded.text;
                }
                Err(message) => {
                    let _ = abi::write_all(2, &[self.name.as_slice(), b": ", &message, b"\n"].concat());
                    return Taken::Refused;
                }
            }
        }
        let text = if before.is_empty() { line } else { [before, b"\n", &line].concat() };
        if self.is_unfinished(&text) {
            return Taken::Unfinished(text);
        }
        let kept = if self.options.history { self.remember(&text) } else { None };
        self.recorded = kept.is_some();
        if text.trim_ascii().is_empty() { Taken::Refused } else { Taken::Whole { text, kept } }
    }

    /// Puts a command into the history, unless `HISTCONTROL` or `HISTIGNORE` say not to. Answers what was kept.
    pub fn remember(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        if text.trim_ascii().is_empty() {
            return None;
        }
        let control = self.text(b"HISTCONTROL").map(|text| text.to_vec()).unwrap_or_default();
        let controls =
            |names: &[&[u8]]| control.split(|&byte| byte == b':').any(|word| names.contains(&word));
        if controls(&[b"ignorespace", b"ignoreboth"]) && text.starts_with(b" ") {
            return None;
        }
        let text = if self.shopt.get("cmdhist") && !self.shopt.get("lithist") {
            one_line(text)
        } else {
            text.to_vec()
        };
        let last = self.history.events().last().map(|event| event.text.clone());
        if controls(&[b"ignoredups", b"ignoreboth"]) && last.as_ref() == Some(&text) {
            return None;
        }
        if self.ignores(&text, last.as_deref()) {
            return None;
        }
        if controls(&[b"erasedups"]) {
            while let Some(at) = self.history.events().iter().position(|event| event.text == text) {
                self.history.remove(at);
            }
        }
        self.history.push(text.clone());
        if let Some(size) = self.history_size() {
            self.history.limit(size);
        }
        Some(text)
    }

    /// Whether a pattern of `HISTIGNORE` matches the whole line; `&` in one is the last event.
    fn ignores(&self, text: &[u8], last: Option<&[u8]>) -> bool {
        let Some(patterns) = self.text(b"HISTIGNORE").map(|text| text.to_vec()) else { return false };
        split_patterns(&patterns).into_iter().any(|pattern| {
            let mut whole = Vec::new();
            let mut at = 0;
            while at < pattern.len() {
                match pattern[at] {
                    b'\\' if pattern.get(at + 1) == Some(&b'&') => {
                        whole.extend_from_slice(b"&");
                        at += 1;
                    }
                    b'&' => whole.extend_from_slice(last.unwrap_or_default()),
                    byte => whole.push(byte),
                }
                at += 1;
            }
            let style = crate::pattern::Style { extended: true, fold: false, utf8: self.utf8() };
            crate::pattern::Pattern::new(&whole, style).matches(text)
        })
    }
}

/// Patterns apart by colons; a backslash before one keeps it.
fn split_patterns(text: &[u8]) -> Vec<Vec<u8>> {
    let mut patterns = vec![Vec::new()];
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' if text.get(at + 1) == Some(&b':') => {
                at += 1;
                patterns.last_mut().expect("never empty").push(b':');
            }
            b':' => patterns.push(Vec::new()),
            byte => patterns.last_mut().expect("never empty").push(byte),
        }
        at += 1;
    }
    patterns.retain(|pattern| !pattern.is_empty());
    patterns
}

/// A command of several lines as one: `;` where that is the same, newlines where only they will do.
fn one_line(text: &[u8]) -> Vec<u8> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let mut joined = lines.next().unwrap_or_default().to_vec();
    let mut quote = Quote::default();
    quote.scan(&joined);
    let mut document = has_document(&joined);
    for line in lines {
        if quote.is_open() || document {
            joined.push(b'\n');
        } else if let Some(cut) = joined.strip_suffix(b"\\") {
            joined = cut.to_vec();
        } else {
            joined.extend_from_slice(separator(&joined, line));
        }
        joined.extend_from_slice(line);
        quote.scan(line);
        document |= has_document(line);
    }
    if document && joined.contains(&b'\n') {
        // So that the last line of its body is one.
        joined.push(b'\n');
    }
    joined
}

fn has_document(line: &[u8]) -> bool {
    crate::pattern::find(line, b"<<").is_some_and(|at| line.get(at + 2) != Some(&b'<'))
}

/// What stands between two lines of a command: nothing but a blank after a word or operator that goes on.
fn separator(before: &[u8], line: &[u8]) -> &'static [u8] {
    let before = before.trim_ascii_end();
    if line.trim_ascii().is_empty() {
        return b"";
    }
    let last = before.rsplit(|byte| b" \t;&|(".contains(byte)).next().unwrap_or_default();
    let goes_on =
        [&b"then"[..], b"do", b"else", b"elif", b"if", b"while", b"until", b"in", b"{", b"!", b"time"];
    let operator = before.last().is_some_and(|byte| b";&|(".contains(byte));
    if operator
        || goes_on.contains(&last)
        || (before.ends_with(b")") && before.contains(&b'(') && is_function(before))
    {
        b" "
    } else {
        b"; "
    }
}

/// `name ()`, whose body is on the next line.
fn is_function(before: &[u8]) -> bool {
    before
        .strip_suffix(b"()")
        .is_some_and(|name| !name.trim_ascii_end().is_empty() && !name.trim_ascii_end().contains(&b'$'))
}

/// Which quotation a text ends in.
#[derive(Clone, Copy, Default)]
pub struct Quote(Option<u8>);

impl Quote {
    pub fn is_open(self) -> bool {
        self.0.is_some()
    }

    pub fn is_single(self) -> bool {
        self.0 == Some(b'\'')
    }

    pub fn scan(&mut self, text: &[u8]) {
        let mut at = 0;
        while at < text.len() {
            match (self.0, text[at]) {
                (None | Some(b'"'), b'\\') => at += 1,
                (None, quote @ (b'\'' | b'"')) => self.0 = Some(quote),
                (Some(open), quote) if open == quote => self.0 = None,
                _ => {}
            }
            at += 1;
        }
    }
}
