//! `nano`: an editor for a terminal.
//!
//! `text.rs` is the text and its changes, `screen.rs` draws it, `save.rs` reads and writes files; this file turns keys into
//! what they do.

pub mod save;
pub mod screen;
pub mod text;

use crate::tty::{Key, Tty};
use save::Version;
use screen::View;
use text::{Place, Text, unit};
use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, input, quote};

const TOOL: Tool = Tool {
    name: "nano",
    short: "EilT:vw",
    long: &[
        ("tabstospaces", 'E'),
        ("autoindent", 'i'),
        ("linenumbers", 'l'),
        ("tabsize=", 'T'),
        ("view", 'v'),
        ("nowrap", 'w'),
    ],
    help: "\
Usage: nano [OPTION]... [+LINE[,COLUMN]] [FILE]
Edit FILE on the terminal.  A file is replaced as a whole when it is saved.

  -E, --tabstospaces     the Tab key inserts blanks
  -i, --autoindent       a new line begins as the one before
  -l, --linenumbers      show line numbers
  -T, --tabsize=NUMBER   tabs are NUMBER columns apart (8)
  -v, --view             do not change the file
  -w, --nowrap           do not break long lines (it never does)
      --help             display this help and exit
      --version          output version information and exit

Keys: ^S saves, ^O saves under a name, ^X leaves. ^K cuts a line, ^U pastes it.
^W searches, M-W searches on, ^\\ replaces. M-U undoes, M-E redoes. ^_ goes to a
line, ^C says where the cursor is. ^A ^E ^B ^F ^P ^N ^V ^Y and the arrow keys
move.
",
    misuse: 1,
};

/// What is undone in a prompt, and by a question.
struct Cancelled;

struct Editor {
    tty: Tty,
    view: View,
    text: Text,
    name: Vec<u8>,
    version: Option<Version>,
    status: String,
    /// Lines that were cut, and whether the next is added to them.
    cut: Vec<u8>,
    cutting: bool,
    search: Vec<u8>,
    blanks: bool,
    indents: bool,
    view_only: bool,
}

/// Whether the editor goes on.
#[derive(PartialEq)]
enum Next {
    Key,
    Leave,
}

pub fn main(arguments: Arguments) -> i32 {
    match start(bytes_of(arguments)) {
        Ok(mut editor) => editor.run(),
        Err(code) => code,
    }
}

fn start(mut words: Vec<Vec<u8>>) -> Result<Editor, i32> {
    let place = match words.iter().position(|word| word.starts_with(b"+") && word.len() > 1) {
        Some(at) => parse_place(&words.remove(at))?,
        None => Place::default(),
    };
    let parsed = TOOL.parse(words)?;
    let has = |wanted| parsed.options.iter().any(|(letter, _)| *letter == wanted);
    let mut tab = 8;
    for (letter, argument) in &parsed.options {
        if *letter == 'T' {
            let given = argument.as_deref().unwrap_or_default();
            tab = input::number(given).filter(|tab| (1..=64).contains(tab)).ok_or_else(|| {
                complain("nano", format_args!("Requested tab size {} is invalid", quote::word(given)));
                1
            })?;
        }
    }
    if parsed.operands.len() > 1 {
        complain("nano", "only one file can be edited at a time");
        return Err(1);
    }
    let name = parsed.operands.first().cloned().unwrap_or_default();
    let content = match name.is_empty() {
        true => Vec::new(),
        false => save::read(&name).map_err(|error| {
            complain("nano", format_args!("{} {error}", quote::if_needed(&name)));
            1
        })?,
    };
    let version = Version::now(&name);
    let Some(tty) = Tty::open(true) else {
        complain("nano", "there is no terminal to edit on; change files with sed -i or patch");
        return Err(1);
    };
    let mut text = Text::new(&content, tab);
    text.go(place);
    let view = View { numbers: has('l'), ..View::default() };
    let status = match version {
        None if !name.is_empty() => "[ New File ]".to_owned(),
        None => String::new(),
        Some(_) => format!("[ Read {} lines ]", text.lines.len()),
    };
    Ok(Editor {
        tty,
        view,
        text,
        name,
        version,
        status,
        cut: Vec::new(),
        cutting: false,
        search: Vec::new(),
        blanks: has('E'),
        indents: has('i'),
        view_only: has('v'),
    })
}

/// `+LINE[,COLUMN]`, both counted from 1.
fn parse_place(word: &[u8]) -> Result<Place, i32> {
    let mut numbers = word[1..].splitn(2, |&byte| byte == b',').map(input::number::<usize>);
    match (numbers.next().flatten(), numbers.next()) {
        (Some(row), None) => Ok(Place { row: row.saturating_sub(1), at: 0 }),
        (Some(row), Some(Some(at))) => Ok(Place { row: row.saturating_sub(1), at: at.saturating_sub(1) }),
        _ => {
            complain("nano", format_args!("Invalid line or column number {}", quote::word(word)));
            Err(1)
        }
    }
}

impl Editor {
    fn run(&mut self) -> i32 {
        loop {
            self.draw();
            let key = self.tty.key();
            if key == Key::Gone {
                return self.rescue();
            }
            if key != Key::Resize {
                self.status.clear();
            }
            let cutting = std::mem::replace(&mut self.cutting, false);
            if self.press(key, cutting) == Next::Leave {
                return 0;
            }
        }
    }

    fn draw(&mut self) {
        (self.view.rows, self.view.columns) = self.tty.size();
        let title = match self.name.is_empty() {
            true => "New Buffer".into(),
            false => String::from_utf8_lossy(&self.name).into_owned(),
        };
        let drawn = self.view.draw(&self.text, &title, &self.status);
        self.tty.put(&drawn);
    }

    /// The terminal is gone: what was not saved goes into a file of its own.
    fn rescue(&self) -> i32 {
        if self.text.is_modified() {
            let name: &[u8] = if self.name.is_empty() { b"nano" } else { &self.name };
            let _ = save::write(&[name, b".save"].concat(), &self.text.content());
        }
        1
    }

    fn press(&mut self, key: Key, cutting: bool) -> Next {
        if self.changes(key) && self.view_only {
            self.status = "[ Key is invalid in view mode ]".to_owned();
            return Next::Key;
        }
        match key {
            Key::Char(char) => self.text.insert(char.encode_utf8(&mut [0; 4]).as_bytes()),
            Key::Byte(byte) => self.text.insert(&[byte]),
            Key::Enter => self.new_line(),
            Key::Tab => self.insert_tab(),
            Key::Backspace => self.text.erase(),
            Key::Delete | Key::Ctrl(b'D') => self.text.delete(),
            Key::Ctrl(b'K') => self.cut_line(cutting),
            Key::Ctrl(b'U') => self.text.insert(&self.cut.clone()),
            Key::Alt(b'U') if !self.text.undo() => self.status = "[ Nothing to undo ]".to_owned(),
            Key::Alt(b'E') if !self.text.redo() => self.status = "[ Nothing to redo ]".to_owned(),
            Key::Ctrl(b'O') => drop(self.write_out()),
            Key::Ctrl(b'S') => drop(self.save()),
            Key::Ctrl(b'X') => return self.leave(),
            Key::Ctrl(b'W') => self.search(),
            Key::Alt(b'W') => self.search_on(),
            Key::Ctrl(b'\\') => drop(self.replace()),
            Key::Ctrl(b'_') => self.go_to_line(),
            Key::Ctrl(b'C') => self.status = View::location(&self.text),
            Key::Ctrl(b'G') => self.help(),
            Key::Ctrl(b'L') => self.tty.put(b"\x1b[2J"),
            key => self.travel(key),
        }
        Next::Key
    }

    fn changes(&self, key: Key) -> bool {
        let letters = [b'D', b'K', b'U', b'S', b'\\'];
        matches!(
            key,
            Key::Char(_)
                | Key::Byte(_)
                | Key::Enter
                | Key::Tab
                | Key::Backspace
                | Key::Delete
                | Key::Alt(b'U' | b'E')
        ) || matches!(key, Key::Ctrl(letter) if letters.contains(&letter))
    }

    fn travel(&mut self, key: Key) {
        let row = self.text.cursor.row;
        match key {
            Key::Up | Key::Ctrl(b'P') => self.text.step(-1),
            Key::Down | Key::Ctrl(b'N') => self.text.step(1),
            Key::Left | Key::Ctrl(b'B') => self.text.back(),
            Key::Right | Key::Ctrl(b'F') => self.text.forward(),
            Key::Home | Key::Ctrl(b'A') => self.text.go(Place { row, at: 0 }),
            Key::End | Key::Ctrl(b'E') => self.text.go(Place { row, at: usize::MAX }),
            Key::PageUp | Key::Ctrl(b'Y') => self.view.page(&mut self.text, false),
            Key::PageDown | Key::Ctrl(b'V') => self.view.page(&mut self.text, true),
            Key::Alt(b'\\') => self.text.go(Place::default()),
            Key::Alt(b'/') => self.text.go(Place { row: usize::MAX, at: usize::MAX }),
            _ => {}
        }
    }

    // --- changing ---

    fn new_line(&mut self) {
        let mut text = b"\n".to_vec();
        if self.indents {
            let line = self.text.line();
            let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            text.extend_from_slice(&line[..blanks.min(self.text.cursor.at)]);
        }
        self.text.insert(&text);
    }

    fn insert_tab(&mut self) {
        if !self.blanks {
            return self.text.insert(b"\t");
        }
        let column = self.text.column(self.text.cursor);
        self.text.insert(" ".repeat(self.text.tab - column % self.text.tab).as_bytes());
    }

    fn cut_line(&mut self, cutting: bool) {
        if !cutting {
            self.cut.clear();
        }
        self.cut.extend(self.text.cut_line());
        self.cutting = true;
    }

    // --- files ---

    /// Saves under the name it has. Says whether the text is safe.
    fn save(&mut self) -> bool {
        if self.name.is_empty() {
            return self.write_out();
        }
        if self.view_only {
            self.status = "[ Key is invalid in view mode ]".to_owned();
            return false;
        }
        let name = self.name.clone();
        self.write_to(name)
    }

    /// Saves under a name that is asked for.
    fn write_out(&mut self) -> bool {
        let name = self.name.clone();
        match self.ask("File Name to Write: ", &name) {
            Ok(name) if !name.is_empty() => self.write_to(name),
            _ => {
                self.status = "[ Cancelled ]".to_owned();
                false
            }
        }
    }

    fn write_to(&mut self, name: Vec<u8>) -> bool {
        let now = Version::now(&name);
        let question = match (name == self.name, now) {
            (false, Some(_)) => Some("File exists; OVERWRITE? "),
            (true, now) if now.is_some() && now != self.version => {
                Some("File was changed by another program; save over it? ")
            }
            _ => None,
        };
        if let Some(question) = question
            && self.confirm(question) != Some(true)
        {
            self.status = "[ Cancelled ]".to_owned();
            return false;
        }
        let shown = String::from_utf8_lossy(&name).into_owned();
        match save::write(&name, &self.text.content()) {
            Ok(()) => {
                self.text.note_saved();
                self.version = Version::now(&name);
                self.name = name;
                self.status = format!("[ Wrote {} lines ]", self.text.lines.len());
                true
            }
            Err(error) => {
                self.status = format!("[ Error writing {shown}: {error} ]");
                false
            }
        }
    }

    fn leave(&mut self) -> Next {
        if !self.text.is_modified() {
            return Next::Leave;
        }
        let done = match self.confirm("Save modified buffer? ") {
            Some(true) => self.write_out(),
            Some(false) => true,
            None => {
                self.status = "[ Cancelled ]".to_owned();
                false
            }
        };
        if done { Next::Leave } else { Next::Key }
    }

    // --- looking ---

    fn search(&mut self) {
        let question = match self.search.is_empty() {
            true => "Search: ".to_owned(),
            false => format!("Search [{}]: ", String::from_utf8_lossy(&self.search)),
        };
        match self.ask(&question, b"") {
            Ok(wanted) => {
                if !wanted.is_empty() {
                    self.search = wanted;
                }
                self.search_on();
            }
            Err(Cancelled) => self.status = "[ Cancelled ]".to_owned(),
        }
    }

    fn search_on(&mut self) {
        let found = match self.search.is_empty() {
            true => None,
            false => self.text.find(&self.search),
        };
        match found {
            Some(place) => {
                if place <= self.text.cursor {
                    self.status = "[ Search Wrapped ]".to_owned();
                }
                self.text.go(place);
            }
            None => self.status = format!("[ \"{}\" not found ]", String::from_utf8_lossy(&self.search)),
        }
    }

    /// Replaces one text by another, everywhere or at the next place.
    fn replace(&mut self) -> Result<(), Cancelled> {
        let wanted = self.ask("Search (to replace): ", b"")?;
        if wanted.is_empty() {
            return Ok(());
        }
        let new = self.ask("Replace with: ", b"")?;
        let all = self.confirm("Replace all instances? (N: the next only) ").ok_or(Cancelled)?;
        let count = match all {
            true => self.text.replace_all(&wanted, &new),
            false => match self.text.find(&wanted) {
                Some(place) => {
                    self.text.go(place);
                    self.text.remove(place, Place { row: place.row, at: place.at + wanted.len() });
                    self.text.insert(&new);
                    1
                }
                None => 0,
            },
        };
        self.status = format!("[ Replaced {count} occurrences ]");
        Ok(())
    }

    fn go_to_line(&mut self) {
        match self.ask("Enter line number: ", b"").ok().and_then(|text| input::number::<usize>(&text)) {
            Some(number) => self.text.go(Place { row: number.saturating_sub(1), at: 0 }),
            None => self.status = "[ Cancelled ]".to_owned(),
        }
    }

    fn help(&mut self) {
        let shown = TOOL.help.replace('\n', "\r\n");
        self.tty.put(format!("\x1b[H\x1b[2J{shown}\r\n(press a key)").as_bytes());
        let _ = self.tty.key();
    }

    // --- questions ---

    /// Asks for a text at the foot of the screen.
    fn ask(&mut self, question: &str, given: &[u8]) -> Result<Vec<u8>, Cancelled> {
        let mut answer = given.to_vec();
        loop {
            self.draw();
            let drawn = self.view.draw_question(question, &String::from_utf8_lossy(&answer));
            self.tty.put(&drawn);
            match self.tty.key() {
                Key::Enter => return Ok(answer),
                Key::Char(char) => answer.extend(char.encode_utf8(&mut [0; 4]).bytes()),
                Key::Byte(byte) => answer.push(byte),
                Key::Tab => answer.push(b'\t'),
                Key::Backspace => {
                    let last = (answer.len().saturating_sub(4)..answer.len())
                        .find(|&at| at + unit(&answer, at).0 == answer.len());
                    answer.truncate(last.unwrap_or(answer.len().saturating_sub(1)));
                }
                Key::Ctrl(b'U') => answer.clear(),
                Key::Ctrl(b'C') | Key::Escape | Key::Gone => return Err(Cancelled),
                _ => {}
            }
        }
    }

    /// Yes or no; none if it is cancelled.
    fn confirm(&mut self, question: &str) -> Option<bool> {
        loop {
            self.draw();
            let drawn = self.view.draw_question(question, "(Y/N, ^C cancels)");
            self.tty.put(&drawn);
            match self.tty.key() {
                Key::Char('y' | 'Y') => return Some(true),
                Key::Char('n' | 'N') => return Some(false),
                Key::Ctrl(b'C') | Key::Escape | Key::Gone => return None,
                _ => {}
            }
        }
    }
}
