//! `vi`: the editor of people's fingers, on a terminal. The text is nano's, the `:` commands are ex's.
//!
//! `motion.rs` says where a motion leads, `change.rs` what operators make of it, `command.rs` is the line at the foot;
//! this file reads keys in their modes.

mod change;
mod command;
mod motion;

use crate::ed::{Dialect, Editor};
use crate::nano::save::{self, Version};
use crate::nano::screen::View;
use crate::nano::text::{Place, Text, unit};
use crate::tty::{Key, Tty};
use change::Register;
use motion::Search;
use std::collections::{HashMap, VecDeque};
use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, quote};

const TOOL: Tool = Tool {
    name: "vi",
    short: "c:R",
    long: &[],
    help: "\
Usage: vi [OPTION]... [+LINE | +/PATTERN] [FILE]
Edit FILE on the terminal.  A file is replaced as a whole when it is saved.

  -c COMMAND     run an ex command first
  -R             do not write the file unless told so with :w!
      --help     display this help and exit
      --version  output version information and exit

Keys: i a I A o O R insert, Escape ends it. h j k l w b e 0 ^ $ G gg { } f t % / ? n N
move. d c y > < with a motion or doubled, x X D C s S r J ~ p P change. v and V
select, u undoes, ^R redoes, . repeats, m and ' mark, \"x names a register.
:w :q :x :e :r :s :g :! and the other commands of ex; ZZ saves and leaves.
",
    misuse: 1,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Normal,
    Insert,
    Replace,
    /// From a place on: by characters, or by lines.
    Visual(Place, bool),
}

/// Whether the editor goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Key,
    Leave(i32),
}

/// Where keys come from.
trait Keys {
    fn key(&mut self) -> Key;
    fn size(&self) -> (usize, usize);
    fn put(&mut self, bytes: &[u8]);
}

impl Keys for Tty {
    fn key(&mut self) -> Key {
        Tty::key(self)
    }

    fn size(&self) -> (usize, usize) {
        Tty::size(self)
    }

    fn put(&mut self, bytes: &[u8]) {
        Tty::put(self, bytes);
    }
}

struct Vi<K> {
    keys: K,
    view: View,
    text: Text,
    mode: Mode,
    ex: Editor,
    name: Vec<u8>,
    version: Option<Version>,
    status: String,
    registers: HashMap<char, Register>,
    /// The register that the next command is about.
    register: Option<char>,
    marks: HashMap<char, Place>,
    search: Option<Search>,
    /// The last `f`, `t`, `F` or `T`, and its character.
    find: Option<(char, char)>,
    /// Keys to be read before those of the terminal.
    replay: VecDeque<Key>,
    /// The keys of the command that is being read, and those of the last one that changed something.
    pressed: Vec<Key>,
    last_change: Vec<Key>,
    /// How many changes of the text each command made, for undoing and redoing it as one.
    undo: Vec<usize>,
    redo: Vec<usize>,
    read_only: bool,
    code: i32,
}

/// The largest number before a command.
const MOST: usize = 99_999;

pub fn main(arguments: Arguments) -> i32 {
    let mut words = bytes_of(arguments);
    let start = words.iter().position(|word| word.starts_with(b"+")).map(|at| words.remove(at));
    let parsed = match TOOL.parse(words) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if parsed.operands.len() > 1 {
        complain("vi", "only one file can be edited at a time");
        return 1;
    }
    let name = parsed.operands.first().cloned().unwrap_or_default();
    let content = match name.is_empty() {
        true => Vec::new(),
        false => match save::read(&name) {
            Ok(content) => content,
            Err(error) => {
                complain("vi", format_args!("{} {error}", quote::if_needed(&name)));
                return 1;
            }
        },
    };
    let Some(tty) = Tty::open(true).map(Tty::without_alt) else {
        complain("vi", "there is no terminal to edit on; use 'ex -s FILE' with commands on standard input");
        return 1;
    };
    let mut vi = Vi::new(tty, name, &content);
    vi.read_only = parsed.options.iter().any(|(letter, _)| *letter == 'R');
    let commands = parsed.options.iter().filter(|(letter, _)| *letter == 'c');
    let mut commands: Vec<Vec<u8>> = commands.filter_map(|(_, text)| text.clone()).collect();
    if let Some(start) = start {
        commands.insert(0, if start == b"+" { b"$".to_vec() } else { start[1..].to_vec() });
    }
    for command in commands {
        if let Next::Leave(code) = vi.run_command(&command) {
            return code;
        }
    }
    vi.run()
}

impl<K: Keys> Vi<K> {
    fn new(keys: K, name: Vec<u8>, content: &[u8]) -> Vi<K> {
        let version = Version::now(&name);
        let status = match (&version, name.is_empty()) {
            (_, true) => String::new(),
            (None, _) => format!("\"{}\" [New]", String::from_utf8_lossy(&name)),
            _ => {
                let lines = memchr::memchr_iter(b'\n', content).count();
                format!("\"{}\" {lines}L, {}B", String::from_utf8_lossy(&name), content.len())
            }
        };
        Vi {
            keys,
            view: View { plain: true, ..View::default() },
            text: Text::new(content, 8),
            mode: Mode::Normal,
            ex: Editor::new(Dialect::Ex, false),
            name,
            version,
            status,
            registers: HashMap::new(),
            register: None,
            marks: HashMap::new(),
            search: None,
            find: None,
            replay: VecDeque::new(),
            pressed: Vec::new(),
            last_change: Vec::new(),
            undo: Vec::new(),
            redo: Vec::new(),
            read_only: false,
            code: 0,
        }
    }

    fn run(&mut self) -> i32 {
        loop {
            self.pressed.clear();
            let next = self.step();
            self.note_changes();
            if let Next::Leave(code) = next {
                return code;
            }
        }
    }

    /// Shows everything, unless keys are being repeated that nobody waits for.
    fn draw(&mut self) {
        if !self.replay.is_empty() {
            return;
        }
        (self.view.rows, self.view.columns) = self.keys.size();
        let mode = match self.mode {
            Mode::Insert => "-- INSERT --",
            Mode::Replace => "-- REPLACE --",
            Mode::Visual(_, false) => "-- VISUAL --",
            Mode::Visual(_, true) => "-- VISUAL LINE --",
            Mode::Normal => "",
        };
        let status = if mode.is_empty() { self.status.clone() } else { mode.to_owned() };
        let drawn = self.view.draw_plain(&self.text, &status, self.selection());
        self.keys.put(&drawn);
    }

    /// What is selected, as places that belong to it.
    fn selection(&self) -> Option<(Place, Place)> {
        let Mode::Visual(start, lines) = self.mode else { return None };
        let (from, to) = (start.min(self.text.cursor), start.max(self.text.cursor));
        Some(match lines {
            true => (Place { row: from.row, at: 0 }, Place { row: to.row, at: usize::MAX }),
            false => (from, to),
        })
    }

    /// The next key: one to be repeated, or one from the terminal.
    fn key(&mut self) -> Key {
        loop {
            let key = match self.replay.pop_front() {
                Some(key) => key,
                None => self.keys.key(),
            };
            if key == Key::Resize {
                self.draw();
                continue;
            }
            self.pressed.push(key);
            return key;
        }
    }

    /// One command of the current mode, from its first key to its last.
    fn step(&mut self) -> Next {
        self.draw();
        match self.mode {
            Mode::Normal => self.normal(),
            Mode::Visual(..) => self.visual(),
            Mode::Insert | Mode::Replace => {
                self.insert_mode();
                Next::Key
            }
        }
    }

    /// A number before a command, and the key after it.
    fn count(&mut self) -> (Option<usize>, Key) {
        let mut count = None;
        loop {
            match self.key() {
                Key::Char(digit @ '1'..='9') => count = Some(add_digit(count, digit)),
                Key::Char('0') if count.is_some() => count = Some(add_digit(count, '0')),
                key => return (count, key),
            }
        }
    }

    /// A command of normal mode, with its number and its register.
    fn normal(&mut self) -> Next {
        let (mut count, mut key) = self.count();
        self.status.clear();
        self.register = None;
        while key == Key::Char('"') {
            if let Key::Char(name) = self.key() {
                self.register = Some(name);
            }
            let (more, next) = self.count();
            count = more.or(count);
            key = next;
        }
        let count = count.map(|count| count.min(MOST));
        match key {
            Key::Gone => return Next::Leave(1),
            Key::Char('Z') => match self.key() {
                Key::Char('Z') => return self.run_command(b"x"),
                Key::Char('Q') => return self.run_command(b"q!"),
                _ => {}
            },
            Key::Char(':') => return self.command_line(count),
            Key::Char('.') => self.repeat(),
            key => {
                let before = self.text.changes();
                if self.change_command(key, count) || self.operator_command(key, count) {
                    if self.text.changes() != before
                        || self.mode == Mode::Insert
                        || self.mode == Mode::Replace
                    {
                        self.last_change.clone_from(&self.pressed);
                    }
                } else if let Some(motion) = self.motion(key, count, false) {
                    self.go(motion.to);
                } else if !self.screen_command(key, count) {
                    self.beep();
                }
            }
        }
        self.clamp();
        Next::Key
    }

    /// Goes where a motion leads; one that went there itself has kept its column.
    fn go(&mut self, place: Place) {
        if self.text.cursor != place {
            self.text.go(place);
        }
    }

    /// In normal mode the cursor is on a character.
    fn clamp(&mut self) {
        if self.mode != Mode::Normal {
            return;
        }
        let Place { row, at } = self.text.cursor;
        let length = self.text.lines[row].len();
        if at >= length && length > 0 {
            let wanted = self.text.wanted();
            let at = self.text.before(row, length);
            self.text.go(Place { row, at });
            self.text.want(wanted);
        }
    }

    fn beep(&mut self) {
        if self.replay.is_empty() {
            self.keys.put(b"\x07");
        }
        // What cannot be done ends what is being repeated.
        self.replay.clear();
    }

    /// `.`: presses the keys of the last change again.
    fn repeat(&mut self) {
        let keys = self.last_change.clone();
        self.replay.extend(keys.iter().copied());
        while !self.replay.is_empty() {
            self.step();
        }
        self.last_change = keys;
    }

    /// What was changed since the last command is one step for undoing.
    fn note_changes(&mut self) {
        // What is typed belongs to the command that began it.
        if matches!(self.mode, Mode::Insert | Mode::Replace) {
            return;
        }
        self.text.pause();
        let now = self.text.changes();
        // The oldest changes may have been let go.
        while self.undo.iter().sum::<usize>() > now {
            self.undo.remove(0);
        }
        let counted: usize = self.undo.iter().sum();
        if now > counted {
            self.undo.push(now - counted);
            self.redo.clear();
        }
    }

    /// Keys that only move what is shown.
    fn screen_command(&mut self, key: Key, count: Option<usize>) -> bool {
        let rows = self.view.text_rows().max(1);
        let times = count.unwrap_or(1) as isize;
        match key {
            Key::Ctrl(b'F') | Key::PageDown => (0..times).for_each(|_| self.view.page(&mut self.text, true)),
            Key::Ctrl(b'B') | Key::PageUp => (0..times).for_each(|_| self.view.page(&mut self.text, false)),
            Key::Ctrl(b'D') => self.text.step(count.map_or(rows as isize / 2, |count| count as isize)),
            Key::Ctrl(b'U') => self.text.step(-count.map_or(rows as isize / 2, |count| count as isize)),
            Key::Ctrl(b'E') => {
                self.view.top = (self.view.top + times as usize).min(self.text.lines.len() - 1);
                if self.text.cursor.row < self.view.top {
                    self.text.step((self.view.top - self.text.cursor.row) as isize);
                }
            }
            Key::Ctrl(b'Y') => {
                self.view.top = self.view.top.saturating_sub(times as usize);
                let last = self.view.top + rows - 1;
                if self.text.cursor.row > last {
                    self.text.step(last as isize - self.text.cursor.row as isize);
                }
            }
            Key::Ctrl(b'L') | Key::Escape | Key::Unknown => {}
            Key::Ctrl(b'G') => {
                let name = String::from_utf8_lossy(&self.name).into_owned();
                self.status = format!("\"{name}\" {}", View::location(&self.text));
            }
            Key::Char('z') => {
                let row = self.text.cursor.row;
                self.view.top = match self.key() {
                    Key::Char('t') | Key::Enter => row,
                    Key::Char('b' | '-') => row.saturating_sub(rows - 1),
                    _ => row.saturating_sub(rows / 2),
                };
            }
            Key::Char('m') => {
                if let Key::Char(name) = self.key() {
                    self.marks.insert(name, self.text.cursor);
                }
            }
            Key::Char('v') => self.mode = Mode::Visual(self.text.cursor, false),
            Key::Char('V') => self.mode = Mode::Visual(self.text.cursor, true),
            _ => return false,
        }
        true
    }

    /// What is typed in insert and replace mode, up to Escape.
    fn insert_mode(&mut self) {
        let typed_over = self.mode == Mode::Replace;
        loop {
            match self.key() {
                Key::Escape | Key::Gone => break,
                Key::Ctrl(b'C') => break,
                Key::Char(char) => {
                    if typed_over && self.text.cursor.at < self.text.line().len() {
                        self.text.delete();
                    }
                    self.text.insert(char.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Key::Byte(byte) => self.text.insert(&[byte]),
                Key::Tab => self.text.insert(b"\t"),
                Key::Enter => self.text.insert(b"\n"),
                Key::Backspace => self.text.erase(),
                Key::Delete => self.text.delete(),
                Key::Ctrl(b'W') => {
                    let end = self.text.cursor;
                    let start = self.word_back(end, false).max(Place { row: end.row, at: 0 });
                    if start < end {
                        self.text.remove(start, end);
                    }
                }
                Key::Ctrl(b'U') => {
                    let end = self.text.cursor;
                    self.text.remove(Place { row: end.row, at: 0 }, end);
                }
                Key::Up => self.text.step(-1),
                Key::Down => self.text.step(1),
                Key::Left => self.text.back(),
                Key::Right => self.text.forward(),
                Key::Home => self.text.go(Place { at: 0, ..self.text.cursor }),
                Key::End => self.text.go(Place { at: usize::MAX, ..self.text.cursor }),
                _ => {}
            }
            self.draw();
        }
        self.mode = Mode::Normal;
        self.last_change.extend_from_slice(&self.pressed);
        if self.text.cursor.at > 0 {
            self.text.back();
        }
    }

    fn visual(&mut self) -> Next {
        let Mode::Visual(start, lines) = self.mode else { return Next::Key };
        let (count, key) = self.count();
        self.status.clear();
        match key {
            Key::Gone => return Next::Leave(1),
            Key::Escape | Key::Ctrl(b'C') => self.mode = Mode::Normal,
            Key::Char('"') => {
                if let Key::Char(name) = self.key() {
                    self.register = Some(name);
                }
                return Next::Key;
            }
            Key::Char('v') if !lines => self.mode = Mode::Normal,
            Key::Char('V') if lines => self.mode = Mode::Normal,
            Key::Char('v') => self.mode = Mode::Visual(start, false),
            Key::Char('V') => self.mode = Mode::Visual(start, true),
            Key::Char('o') => {
                self.mode = Mode::Visual(self.text.cursor, lines);
                self.text.go(start);
            }
            Key::Char(':') => {
                let (from, to) = (start.min(self.text.cursor), start.max(self.text.cursor));
                self.mode = Mode::Normal;
                return self.command_line_from(format!("{},{}", from.row + 1, to.row + 1));
            }
            key => {
                if let Some(motion) = self.motion(key, count, false) {
                    self.go(motion.to);
                } else if !self.operate_on_selection(key, start, lines, count)
                    && !self.screen_command(key, count)
                {
                    self.beep();
                }
            }
        }
        self.clamp();
        Next::Key
    }
}

fn add_digit(count: Option<usize>, digit: char) -> usize {
    let digit = digit.to_digit(10).unwrap_or(0) as usize;
    (count.unwrap_or(0) * 10 + digit).min(MOST)
}

/// The character at a place; a line end behind the last.
fn char_at(text: &Text, place: Place) -> char {
    let line = &text.lines[place.row];
    if place.at < line.len() { unit(line, place.at).1 } else { '\n' }
}

#[cfg(test)]
mod tests;
