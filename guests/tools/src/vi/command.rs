//! The line at the foot: patterns to search for, and commands of ex.

use super::{Keys, Next, Version, Vi};
use crate::ed;
use crate::nano::text::{Place, Text};
use crate::tty::Key;

impl<K: Keys> Vi<K> {
    /// Asks for a line behind a sign; `None` if that is given up.
    pub(super) fn ask(&mut self, sign: char) -> Option<Vec<u8>> {
        self.ask_from(sign, String::new())
    }

    fn ask_from(&mut self, sign: char, start: String) -> Option<Vec<u8>> {
        let mut answer = start;
        loop {
            if self.replay.is_empty() {
                let drawn = self.view.draw_foot(&format!("{sign}{answer}"));
                self.keys.put(&drawn);
            }
            match self.key() {
                Key::Enter => {
                    let answer = answer.into_bytes();
                    if sign != ':' {
                        self.ex.note_pattern(&answer);
                    }
                    return Some(answer);
                }
                Key::Escape | Key::Gone | Key::Ctrl(b'C') => return None,
                Key::Backspace if answer.is_empty() => return None,
                Key::Backspace => drop(answer.pop()),
                Key::Ctrl(b'U') => answer.clear(),
                Key::Tab => answer.push('\t'),
                Key::Char(char) => answer.push(char),
                _ => {}
            }
        }
    }

    pub(super) fn command_line(&mut self, count: Option<usize>) -> Next {
        let range = match count {
            Some(count) if count > 1 => format!(".,.+{}", count - 1),
            Some(_) => ".".to_owned(),
            None => String::new(),
        };
        self.command_line_from(range)
    }

    pub(super) fn command_line_from(&mut self, range: String) -> Next {
        match self.ask_from(':', range) {
            Some(command) => self.run_command(&command),
            None => Next::Key,
        }
    }

    /// Runs a command of ex on the text.
    pub(super) fn run_command(&mut self, command: &[u8]) -> Next {
        let word: Vec<u8> = command.iter().copied().take_while(u8::is_ascii_alphabetic).collect();
        let forced = command.get(word.len()) == Some(&b'!');
        let saves = matches!(&word[..], b"w" | b"wq" | b"x" | b"xit" | b"write");
        if saves && !forced && command.len() == word.len() && self.has_changed_outside() {
            self.status = "The file has changed since it was read: add ! to write it all the same".to_owned();
            return Next::Key;
        }
        let before = self.text.lines.clone();
        let is_empty = before.len() == 1 && before[0].is_empty();
        self.ex.set_lines(if is_empty { &[] } else { &before }, self.text.cursor.row + 1);
        self.ex.name.clone_from(&self.name);
        self.ex.modified = self.text.is_modified();
        self.ex.read_only = self.read_only;
        self.ex.printed = Some(Vec::new());
        let done = self.ex.execute(command);
        let printed = self.ex.printed.take().unwrap_or_default();
        let row = self.ex.current().saturating_sub(1);
        let loads = matches!(&word[..], b"e" | b"edit") && done.is_ok();
        if loads {
            self.text = Text::new(&self.ex.lines().join(&b'\n'), 8);
            (self.undo, self.redo) = (Vec::new(), Vec::new());
            self.version = Version::now(&self.ex.name);
        } else {
            self.text.become_lines(self.ex.lines());
        }
        self.name.clone_from(&self.ex.name);
        if saves && done.is_ok() && !self.ex.modified {
            self.text.note_saved();
            self.version = Version::now(&self.name);
        }
        if row != self.text.cursor.row {
            self.text.go(Place { row, at: 0 });
            self.text.go(self.first_of(row));
        }
        match done {
            Ok(ed::Next::Leave) => return Next::Leave(self.code),
            Ok(ed::Next::Command) => self.show_printed(&printed),
            Err(message) => {
                self.status = message;
                self.replay.clear();
            }
        }
        Next::Key
    }

    fn has_changed_outside(&self) -> bool {
        !self.name.is_empty() && Version::now(&self.name) != self.version
    }

    /// One line is shown at the foot; more take the screen until a key is pressed.
    fn show_printed(&mut self, printed: &[u8]) {
        let text = String::from_utf8_lossy(printed).into_owned();
        match text.trim_end_matches('\n').lines().count() {
            0 => {}
            1 => self.status = text.trim_end().to_owned(),
            _ => {
                let visible: String = text
                    .chars()
                    .map(|char| if char.is_control() && char != '\n' { '?' } else { char })
                    .collect();
                let mut shown = b"\x1b[2J\x1b[H".to_vec();
                shown.extend(visible.replace('\n', "\r\n").bytes());
                shown.extend(b"Press a key to continue");
                self.keys.put(&shown);
                self.keys.key();
            }
        }
    }
}
