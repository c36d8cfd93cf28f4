//! The main input, file by file, and `getline`.

use super::{Flow, Machine};
use crate::array::KeyRef;
use crate::code::{From, special};
use crate::error::{Error, Result};
use crate::input::Reader;
use crate::streams::open_to_read;
use crate::value::Value;
use wardian_abi as abi;

/// Where the main input stands.
#[derive(Default)]
pub(super) struct MainInput {
    reader: Option<Reader>,
    /// The argument to look at next; 0 before the first.
    next_argument: usize,
    /// Whether any argument named a file: if none does, standard input is read.
    named_a_file: bool,
}

impl Machine {
    /// Reads all records and tries the rules on each.
    pub(super) fn process_input(&mut self, rules: Option<u32>) -> Result<()> {
        loop {
            match self.next_record() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if error.code == EXITING => return Ok(()),
                Err(error) => return Err(error),
            }
            let Some(rules) = rules else { continue };
            match self.run(rules)? {
                Flow::Exit => return Ok(()),
                Flow::NextFile => self.end_file()?,
                Flow::Done | Flow::Next => {}
            }
        }
    }

    /// Makes the next record of the main input the record. At the end the last one stays.
    fn next_record(&mut self) -> Result<bool> {
        let got = self.read_main()?;
        if got {
            std::mem::swap(self.record.renew(), &mut self.incoming);
        }
        Ok(got)
    }

    /// Reads a record of the main input, and counts it.
    fn read_main(&mut self) -> Result<bool> {
        loop {
            if self.main.reader.is_none() && !self.open_next()? {
                return Ok(false);
            }
            let Some(reader) = &mut self.main.reader else { continue };
            self.incoming.clear();
            match reader.read(&self.separator, &mut self.incoming, &mut self.terminator) {
                Ok(true) => {
                    self.nr += 1.0;
                    self.fnr += 1.0;
                    self.note_terminator();
                    return Ok(true);
                }
                Ok(false) => self.end_file()?,
                Err(error) => {
                    let name = self.special_text(special::FILENAME);
                    let name = String::from_utf8_lossy(&name).into_owned();
                    if error != abi::Errno::ISDIR {
                        return Err(Error::fatal(format_args!("error reading input file `{name}': {error}")));
                    }
                    self.warn(&format!("command line argument `{name}' is a directory: skipped"));
                    self.end_file()?;
                }
            }
        }
    }

    fn note_terminator(&mut self) {
        self.globals[special::RT as usize] = Value::text(&self.terminator);
    }

    /// Ends the file that is being read.
    fn end_file(&mut self) -> Result<()> {
        if let Some(end_file) = self.code.end_file {
            self.run_file_action(end_file)?;
        }
        if let Some(reader) = self.main.reader.take() {
            reader.close();
        }
        Ok(())
    }

    /// Runs the actions around a file; answers whether to skip it.
    fn run_file_action(&mut self, action: u32) -> Result<bool> {
        match self.run(action)? {
            Flow::Exit => Err(Error { message: String::new(), code: EXITING }),
            Flow::NextFile => Ok(true),
            Flow::Next | Flow::Done => Ok(false),
        }
    }

    /// Opens the next file, on the way doing the assignments among the arguments; answers whether there is one.
    fn open_next(&mut self) -> Result<bool> {
        loop {
            let Some(argument) = self.next_argument() else {
                if self.main.named_a_file {
                    return Ok(false);
                }
                self.main.named_a_file = true;
                return self.open_file(b"-");
            };
            let text = argument.to_str(&self.convfmt).as_bytes().to_vec();
            if text.is_empty() {
                continue;
            }
            if let Some((name, value)) = assignment(&text) {
                self.assign(&name, &value)?;
                continue;
            }
            self.main.named_a_file = true;
            if self.open_file(&text)? {
                return Ok(true);
            }
        }
    }

    /// The next element of `ARGV`, by what `ARGC` says now.
    fn next_argument(&mut self) -> Option<Value> {
        let count = self.globals[special::ARGC as usize].to_num();
        loop {
            self.main.next_argument = self.main.next_argument.max(1);
            let index = self.main.next_argument;
            if index as f64 >= count {
                return None;
            }
            self.main.next_argument += 1;
            self.globals[special::ARGIND as usize] = Value::Num(index as f64);
            let Value::Array(array) = &self.globals[special::ARGV as usize] else { return None };
            let found = array.borrow().get(KeyRef::Int(index as i64)).cloned();
            if found.is_some() {
                return found;
            }
        }
    }

    fn open_file(&mut self, path: &[u8]) -> Result<bool> {
        self.globals[special::FILENAME as usize] = Value::outside(path);
        self.fnr = 0.0;
        let opened = open_to_read(path);
        let mut skip = false;
        if let Some(begin_file) = self.code.begin_file {
            let error = opened.err().map_or(String::new(), |error| error.to_string());
            self.globals[special::ERRNO as usize] = Value::text(error.as_bytes());
            skip = self.run_file_action(begin_file)?;
        }
        match opened {
            Ok(fd) => {
                self.main.reader = Some(Reader::new(fd));
                if skip {
                    self.end_file()?;
                }
                Ok(!skip)
            }
            Err(_) if skip => Ok(false),
            Err(error) => {
                let name = String::from_utf8_lossy(path);
                Err(Error {
                    message: format!("fatal: cannot open file `{name}' for reading: {error}"),
                    code: 2,
                })
            }
        }
    }

    /// `getline` into the record: 1, 0 at the end, -1 if it cannot be read.
    pub(super) fn getline(&mut self, from: From) -> Result<f64> {
        if from == From::Main {
            return Ok(if self.next_record()? { 1.0 } else { 0.0 });
        }
        let mut text = Vec::new();
        let answer = self.read_named(from, &mut text)?;
        if answer > 0.0 {
            std::mem::swap(self.record.renew(), &mut text);
        }
        Ok(answer)
    }

    /// `getline` into a variable: leaves the number, and the text if there is one.
    pub(super) fn getline_var(&mut self, from: From) -> Result<bool> {
        let mut text = Vec::new();
        let answer = match from {
            From::Main if self.read_main()? => {
                std::mem::swap(&mut text, &mut self.incoming);
                1.0
            }
            From::Main => 0.0,
            from => self.read_named(from, &mut text)?,
        };
        self.nums.push(answer);
        if answer > 0.0 {
            self.values.push(Value::Strnum(text.into()));
        }
        Ok(answer > 0.0)
    }

    fn read_named(&mut self, from: From, text: &mut Vec<u8>) -> Result<f64> {
        let name = self.pop().to_str(&self.convfmt);
        let (globals, convfmt) = (&self.globals, &self.convfmt);
        let environment = || super::environment(globals, convfmt);
        if from == From::Coprocess && self.streams.is_half_closed(name.as_bytes(), false) {
            return Err(Error::fatal("getline: attempt to read from closed read end of two-way pipe"));
        }
        let reader = match from {
            From::Coprocess => self.streams.coprocess_reader(name.as_bytes(), &environment),
            from => self.streams.reader(name.as_bytes(), from == From::Command, &environment),
        };
        let read = reader.and_then(|reader| reader.read(&self.separator, text, &mut self.terminator));
        match read {
            Ok(true) => {
                self.note_terminator();
                Ok(1.0)
            }
            Ok(false) => Ok(0.0),
            Err(error) => {
                self.globals[special::ERRNO as usize] = Value::text(error.to_string().as_bytes());
                Ok(-1.0)
            }
        }
    }
}

/// The code of the error that is none: an `exit` on its way out through calls that can only fail.
pub(super) const EXITING: i32 = -1;

/// An operand that assigns: `name=value`, its escapes replaced by the one who assigns it.
fn assignment(text: &[u8]) -> Option<(String, Vec<u8>)> {
    let at = memchr::memchr(b'=', text)?;
    let name = &text[..at];
    let is_name = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && name.first().is_some_and(|byte| !byte.is_ascii_digit());
    is_name.then(|| (String::from_utf8_lossy(name).into_owned(), text[at + 1..].to_vec()))
}
