//! What a program is given to read, one value at a time and no more of it in memory than that value.

use std::collections::VecDeque;

use wardian_abi as abi;

use crate::json::{Events, Reader, Sink, Tree};
use crate::run::{Error, Outcome};
use crate::value::{Str, Value};

/// How bytes become values.
pub enum Form {
    Json(Reader<Tree>),
    /// `--stream`; with `--stream-errors` what is wrong with a text is a value too.
    Events(Reader<Events>, bool),
    /// `--raw-input`: lines.
    Lines(Vec<u8>),
}

/// Files, or standard input if none is named, as one series of values.
pub struct Inputs {
    files: VecDeque<Vec<u8>>,
    form: Form,
    slurp: bool,
    seq: Option<Seq>,
    ready: VecDeque<Value>,
    current: Option<abi::Fd>,
    name: Option<Str>,
    piece: Vec<u8>,
    at: usize,
    /// Line breaks in earlier pieces of the current file.
    lines: usize,
    ended: bool,
    /// Where a byte order mark may stand.
    at_start: bool,
    /// Whether a file could not be read.
    pub failed: bool,
}

/// Where in a `--seq` series the reader is.
#[derive(Clone, Copy, PartialEq)]
enum Seq {
    /// No text has begun properly yet.
    Outside,
    Inside,
}

const PIECE: usize = 64 * 1024;

impl Inputs {
    pub fn new(files: Vec<Vec<u8>>, form: Form, slurp: bool, seq: bool) -> Inputs {
        // Standard input has no name to be opened by.
        let files = if files.is_empty() { vec![Vec::new()] } else { files };
        Inputs {
            files: files.into(),
            form,
            slurp,
            seq: seq.then_some(Seq::Outside),
            ready: VecDeque::new(),
            current: None,
            name: None,
            piece: Vec::new(),
            at: 0,
            lines: 0,
            ended: false,
            at_start: true,
            failed: false,
        }
    }

    /// The file the last value came from; `null` for standard input.
    pub fn file_name(&self) -> Value {
        match &self.name {
            Some(name) if &**name != "<stdin>" => Value::String(name.clone()),
            _ => Value::Null,
        }
    }

    /// How many lines of the current file were read: the last is read to its end, wherever the value in it ends.
    pub fn line_number(&self) -> usize {
        let before = memchr::memchr_iter(b'\n', &self.piece[..self.at]).count();
        // A value that ends with the piece was not the last of its line.
        let within = match self.at {
            0 => usize::from(!self.piece.is_empty() && self.piece.contains(&b'\n') && self.name.is_some()),
            at => usize::from(self.piece[at - 1] != b'\n' && self.piece[at..].contains(&b'\n')),
        };
        self.lines + before + within
    }

    /// The place for a message.
    pub fn place(&self) -> String {
        match &self.name {
            Some(name) => format!("{name}:{}", self.line_number()),
            None => "<unknown>".into(),
        }
    }

    /// The next value. After an error there is none.
    pub fn next(&mut self) -> Outcome<Option<Value>> {
        if !self.slurp {
            return self.next_single();
        }
        self.slurp = false;
        if let Form::Lines(_) = self.form {
            return self.whole_text().map(Some);
        }
        let mut all = Vec::new();
        while let Some(value) = self.next_single()? {
            all.push(value);
        }
        Ok(Some(Value::array(all)))
    }

    fn next_single(&mut self) -> Outcome<Option<Value>> {
        loop {
            if let Some(value) = self.ready.pop_front() {
                return Ok(Some(value));
            }
            if self.ended {
                // Who asks again after the end is nowhere.
                self.name = None;
                return Ok(None);
            }
            if self.at < self.piece.len()
                && let Some(value) = self.scan()?
            {
                return Ok(Some(value));
            }
            if !self.refill() {
                self.ended = true;
                return self.last();
            }
        }
    }

    /// Reads on in the current piece.
    fn scan(&mut self) -> Outcome<Option<Value>> {
        if self.seq.is_some() {
            return self.scan_seq();
        }
        let Inputs { form, piece, at, .. } = self;
        let found = match form {
            Form::Json(reader) => scan_with(reader, piece, at),
            Form::Events(reader, _) => scan_with(reader, piece, at),
            Form::Lines(begun) => Ok(scan_line(begun, piece, at)),
        };
        found.or_else(|problem| self.wrong(problem).map(Some))
    }

    /// `--seq`: a record separator begins a text; what came before it and was not finished is given up.
    fn scan_seq(&mut self) -> Outcome<Option<Value>> {
        while self.at < self.piece.len() {
            let rest = &self.piece[self.at..];
            let end = self.at + memchr::memchr(0x1e, rest).unwrap_or(rest.len());
            if end == self.at {
                self.at += 1;
                self.seq = Some(Seq::Inside);
                continue;
            }
            if self.seq == Some(Seq::Outside) {
                self.at = end;
                continue;
            }
            let mut at = 0;
            let part = self.piece[self.at..end].to_vec();
            let Form::Json(reader) = &mut self.form else { return Ok(None) };
            let found = reader.next(&part, &mut at);
            self.at = if at == 0 { end } else { self.at + at };
            match found {
                Ok(None) if end < self.piece.len() => {
                    self.give_up("Potentially truncated top-level numeric value")
                }
                Ok(None) => {}
                Ok(value) => return Ok(value),
                Err(problem) => self.give_up(&problem),
            }
        }
        Ok(None)
    }

    /// Ends a text of `--seq` that is not whole.
    fn give_up(&mut self, problem: &str) {
        let Form::Json(reader) = &mut self.form else { return };
        let finished = reader.finish();
        self.seq = Some(Seq::Outside);
        match finished {
            Ok(Some(value)) => self.ready.push_back(value),
            Ok(None) => {}
            Err(_) => {
                toolkit::complain("jq", format_args!("ignoring parse error: {problem}"));
                self.form = Form::Json(Reader::new(Tree::default()));
            }
        }
    }

    /// What is left when all is read.
    fn last(&mut self) -> Outcome<Option<Value>> {
        let last = match &mut self.form {
            Form::Json(reader) => reader.finish(),
            Form::Events(reader, _) => reader.finish(),
            Form::Lines(begun) if begun.is_empty() => Ok(None),
            Form::Lines(begun) => Ok(Some(Value::string(String::from_utf8_lossy(begun)))),
        };
        match last {
            Err(problem) if self.seq.is_some() => {
                toolkit::complain("jq", format_args!("ignoring parse error: {problem}"));
                Ok(None)
            }
            other => other.or_else(|problem| self.wrong(problem).map(Some)),
        }
    }

    /// What is wrong with a text: an error, or a value where that was asked for.
    fn wrong(&mut self, problem: String) -> Outcome {
        self.ended = true;
        match &self.form {
            Form::Events(reader, true) => Ok(Value::array(vec![Value::from(problem), reader.sink.path()])),
            _ => Err(Error::Raised(Value::from(problem))),
        }
    }

    fn whole_text(&mut self) -> Outcome {
        let mut text = Vec::new();
        while self.refill() {
            text.extend_from_slice(&self.piece);
            self.at = self.piece.len();
        }
        self.ended = true;
        Ok(Value::string(String::from_utf8_lossy(&text)))
    }

    /// Gets the next piece of this file, or the first of the next.
    fn refill(&mut self) -> bool {
        loop {
            self.lines += memchr::memchr_iter(b'\n', &self.piece).count();
            self.at = 0;
            let Some(fd) = self.current else {
                self.piece.clear();
                if !self.open_next() {
                    return false;
                }
                continue;
            };
            self.piece.resize(PIECE, 0);
            match abi::read(fd, &mut self.piece) {
                Ok(0) => self.close(fd),
                Ok(count) => {
                    self.piece.truncate(count);
                    if self.at_start && self.piece.starts_with(b"\xef\xbb\xbf") {
                        self.piece.drain(..3);
                    }
                    self.at_start = false;
                    return true;
                }
                Err(error) => {
                    let name = self.name.as_deref().unwrap_or("<stdin>");
                    toolkit::complain("jq", format_args!("error: Could not read {name}: {error}"));
                    self.failed = true;
                    self.close(fd);
                }
            }
        }
    }

    fn close(&mut self, fd: abi::Fd) {
        self.piece.clear();
        self.current = None;
        if fd != 0 {
            // A file that was only read from loses nothing.
            let _ = abi::close(fd);
        }
    }

    /// Opens the next file that can be.
    fn open_next(&mut self) -> bool {
        while let Some(file) = self.files.pop_front() {
            self.lines = 0;
            if file.is_empty() || file == b"-" {
                self.name = Some("<stdin>".into());
                self.current = Some(0);
                return true;
            }
            let name = String::from_utf8_lossy(&file).into_owned();
            match abi::open(abi::Dir::CWD, &file, abi::open_flags::RDONLY, 0) {
                Ok(fd) => {
                    self.name = Some(name.into());
                    self.current = Some(fd);
                    return true;
                }
                Err(error) => {
                    toolkit::complain("jq", format_args!("error: Could not open file {name}: {error}"));
                    self.failed = true;
                }
            }
        }
        false
    }
}

fn scan_with<S: Sink>(reader: &mut Reader<S>, piece: &[u8], at: &mut usize) -> Result<Option<Value>, String> {
    let found = reader.next(piece, at);
    // A reader that has taken all of a piece begins the next at its start.
    if let Ok(None) = found {
        *at = piece.len();
    }
    found
}

fn scan_line(begun: &mut Vec<u8>, piece: &[u8], at: &mut usize) -> Option<Value> {
    let rest = &piece[*at..];
    let Some(end) = memchr::memchr(b'\n', rest) else {
        begun.extend_from_slice(rest);
        *at = piece.len();
        return None;
    };
    begun.extend_from_slice(&rest[..end]);
    *at += end + 1;
    let line = Value::string(String::from_utf8_lossy(begun));
    begun.clear();
    Some(line)
}
