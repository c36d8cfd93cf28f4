//! The machine that runs a compiled program.
//!
//! `run.rs` has the operations; here is what they work on: variables, the record, input, output. Functions of the
//! language are in `builtins.rs`, those on text and patterns in `text.rs`, sorting in `sort.rs`.

mod builtins;
mod input;
mod run;
mod sort;
mod text;

use crate::array::{Array, Key, KeyRef, new_array};
use crate::code::{Code, Place, special};
use crate::error::{Error, Result};
use crate::fields::{Record, Splitter, Width};
use crate::input::Separator;
use crate::number;
use crate::parser::place_name;
use crate::random::Random;
use crate::regex::{self, Regex};
use crate::streams::Streams;
use crate::value::Value;
use std::collections::HashMap;
use std::rc::Rc;
use wardian_abi as abi;

/// How a stretch of code ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    Done,
    Next,
    NextFile,
    Exit,
}

/// A call that is going on.
struct Frame {
    function: u32,
    /// Where the caller goes on; [`OUTSIDE`] if that is not in the code.
    back: u32,
    base: usize,
    loops: usize,
    origins: usize,
}

/// The place to go back to of a call that the machine itself made.
const OUTSIDE: u32 = u32::MAX;

/// Calls may be nested so deep.
const DEEPEST: usize = 1_000_000;

/// So many patterns that are made at run time are kept.
const PATTERNS_KEPT: usize = 500;

/// A variable that a parameter came from while it had no value: if the parameter becomes an array, so does it.
struct Origin {
    param: usize,
    from: OriginVar,
}

#[derive(Clone)]
enum OriginVar {
    Global(u32),
    Stack(usize),
    Element(Array, Key),
}

/// A running program.
pub struct Machine {
    code: Rc<Code>,
    regexes: Vec<Rc<Regex>>,
    values: Vec<Value>,
    nums: Vec<f64>,
    frames: Vec<Frame>,
    base: usize,
    loops: Vec<std::vec::IntoIter<Key>>,
    origins: Vec<Origin>,
    globals: Vec<Value>,
    ranges: Vec<bool>,
    record: Record,
    nr: f64,
    fnr: f64,
    convfmt: Vec<u8>,
    ofmt: Vec<u8>,
    ofs: Vec<u8>,
    ors: Vec<u8>,
    subsep: Vec<u8>,
    separator: Separator,
    /// The variable that says how fields are cut: `FS`, `FPAT` or `FIELDWIDTHS`, whichever was set last.
    cut_by: u32,
    is_csv: bool,
    ignore_case: bool,
    /// The line that is being printed.
    line: Vec<u8>,
    /// Where keys and texts are put together.
    scratch: Vec<u8>,
    /// The record that is being read, and what ended it.
    incoming: Vec<u8>,
    terminator: Vec<u8>,
    main: input::MainInput,
    streams: Streams,
    patterns: HashMap<Vec<u8>, Rc<Regex>>,
    /// The last replacement of `sub` or `gsub`, taken apart.
    replacement: text::Replacement,
    random: Random,
    exit_code: i32,
}

impl Machine {
    /// A machine about to run a program.
    pub fn new(code: Code, is_csv: bool) -> Machine {
        let code = Rc::new(code);
        let mut machine = Machine {
            regexes: code.regexes.clone(),
            values: Vec::new(),
            nums: Vec::new(),
            frames: Vec::new(),
            base: 0,
            loops: Vec::new(),
            origins: Vec::new(),
            globals: vec![Value::Uninit; code.globals.len()],
            ranges: vec![false; code.ranges],
            record: Record::new(),
            nr: 0.0,
            fnr: 0.0,
            convfmt: b"%.6g".to_vec(),
            ofmt: b"%.6g".to_vec(),
            ofs: b" ".to_vec(),
            ors: b"\n".to_vec(),
            subsep: b"\x1c".to_vec(),
            separator: if is_csv { Separator::Csv } else { Separator::Byte(b'\n') },
            cut_by: special::FS,
            is_csv,
            ignore_case: false,
            line: Vec::new(),
            scratch: Vec::new(),
            incoming: Vec::new(),
            terminator: Vec::new(),
            main: input::MainInput::default(),
            streams: Streams::new(),
            patterns: HashMap::new(),
            replacement: text::Replacement::default(),
            random: Random::new(1.0),
            exit_code: 0,
            code,
        };
        if is_csv {
            machine.record.splitter = Splitter::Csv;
        }
        machine.set_up_variables();
        machine
    }

    fn set_up_variables(&mut self) {
        let texts: [(u32, &[u8]); 9] = [
            (special::FS, b" "),
            (special::OFS, b" "),
            (special::ORS, b"\n"),
            (special::RS, b"\n"),
            (special::SUBSEP, b"\x1c"),
            (special::CONVFMT, b"%.6g"),
            (special::OFMT, b"%.6g"),
            (special::FPAT, b"[^[:space:]]+"),
            (special::FILENAME, b""),
        ];
        for (slot, text) in texts {
            self.globals[slot as usize] = Value::text(text);
        }
        self.globals[special::RSTART as usize] = Value::Num(0.0);
        self.globals[special::RLENGTH as usize] = Value::Num(-1.0);
        let environment = new_array();
        for pair in abi::environ() {
            let at = memchr::memchr(b'=', &pair).unwrap_or(pair.len());
            let value = Value::outside(pair.get(at + 1..).unwrap_or_default());
            environment.borrow_mut().set(KeyRef::new(&pair[..at]), value);
        }
        self.globals[special::ENVIRON as usize] = Value::Array(environment);
        let process = new_array();
        let facts: [(&[u8], f64); 6] = [
            (b"pid", f64::from(abi::getpid())),
            (b"ppid", f64::from(abi::getppid())),
            (b"uid", f64::from(abi::getuid())),
            (b"euid", f64::from(abi::getuid())),
            (b"gid", f64::from(abi::getgid())),
            (b"egid", f64::from(abi::getgid())),
        ];
        for (name, fact) in facts {
            process.borrow_mut().set(KeyRef::Text(name), Value::Num(fact));
        }
        process.borrow_mut().set(KeyRef::Text(b"version"), Value::text(b"5.2.1"));
        process.borrow_mut().set(KeyRef::Text(b"platform"), Value::text(b"posix"));
        process.borrow_mut().set(KeyRef::Text(b"FS"), Value::text(b"FS"));
        self.globals[special::PROCINFO as usize] = Value::Array(process);
    }

    /// Sets `ARGV` and `ARGC`, the program's name first.
    pub fn set_arguments(&mut self, arguments: &[Vec<u8>]) {
        let array = new_array();
        for (index, argument) in (0..).zip(arguments) {
            array.borrow_mut().set(KeyRef::Int(index), Value::outside(argument));
        }
        self.globals[special::ARGV as usize] = Value::Array(array);
        self.globals[special::ARGC as usize] = Value::Num(arguments.len() as f64);
    }

    /// Assigns to a variable by its name, as `-v` and operands do. A name the program does not have has no effect.
    pub fn assign(&mut self, name: &str, text: &[u8]) -> Result<()> {
        if self.code.functions.iter().any(|function| &*function.name == name) {
            return Err(Error::syntax(format!("error: cannot use function name `{name}' as variable name")));
        }
        let Some(slot) = self.code.globals.iter().position(|global| &**global == name) else { return Ok(()) };
        if let Value::Array(_) = self.globals[slot] {
            return Err(Error::fatal(format_args!("cannot assign to array `{name}'")));
        }
        self.set_global(slot as u32, Value::outside(&crate::escape::unescape(text)))
    }

    /// Runs the program; its exit code.
    pub fn execute(&mut self) -> Result<i32> {
        let ran = self.execute_rules();
        let closed = self.streams.close_all();
        ran?;
        match closed {
            Ok(()) => Ok(self.exit_code & 0xff),
            Err(error) => Err(Error::fatal(format_args!("error writing standard output: {error}"))),
        }
    }

    fn execute_rules(&mut self) -> Result<()> {
        let code = Rc::clone(&self.code);
        let flow = code.begin.map_or(Ok(Flow::Done), |begin| self.run(begin))?;
        let reads = code.rules.is_some()
            || code.end.is_some()
            || code.begin_file.is_some()
            || code.end_file.is_some();
        if flow != Flow::Exit && reads {
            self.process_input(code.rules)?;
        }
        // The end comes even after an `exit`.
        if let Some(end) = code.end {
            self.run(end)?;
        }
        Ok(())
    }

    /// An error, with the place in the program and in the input where it came up.
    fn locate(&self, error: Error, pc: usize) -> Error {
        let line = self.code.lines.get(pc).copied().unwrap_or_default();
        let source = self.code.sources.get(line.source as usize).cloned().flatten();
        let place = place_name(source.as_deref(), line.number);
        let name = self.globals[special::FILENAME as usize].to_str(&self.convfmt);
        let input = match self.fnr {
            0.0 => String::new(),
            fnr => format!("(FILENAME={} FNR={fnr}) ", String::from_utf8_lossy(name.as_bytes())),
        };
        Error { message: format!("{place}{input}{}", error.message), code: error.code }
    }

    /// Says something that does not end the program.
    fn warn(&mut self, message: &str) {
        let _ = self.streams.flush_all();
        let _ =
            abi::write_all(2, format!("{}: warning: {message}\n", crate::error::program_name()).as_bytes());
    }

    /// An array; a variable without a value becomes one.
    fn array(&mut self, place: Place) -> Result<Array> {
        let (value, name) = match place {
            Place::Global(slot) => (&mut self.globals[slot as usize], slot),
            Place::Local(slot) => return self.local_array(slot),
            Place::Stack => {
                return match self.values.pop() {
                    Some(Value::Array(array)) => Ok(array),
                    _ => Err(Error::fatal("attempt to use a scalar value as array")),
                };
            }
        };
        match value {
            Value::Array(array) => Ok(Rc::clone(array)),
            Value::Uninit => {
                let array = new_array();
                *value = Value::Array(Rc::clone(&array));
                Ok(array)
            }
            _ => {
                let name = &self.code.globals[name as usize];
                Err(Error::fatal(format_args!("attempt to use scalar `{name}' as an array")))
            }
        }
    }

    fn local_array(&mut self, slot: u32) -> Result<Array> {
        let index = self.base + slot as usize;
        match &self.values[index] {
            Value::Array(array) => Ok(Rc::clone(array)),
            Value::Uninit => Ok(self.become_array(index)),
            _ => Err(Error::fatal(format_args!(
                "attempt to use scalar parameter `{}' as an array",
                self.local_name(slot)
            ))),
        }
    }

    /// Makes an array of a parameter, and of the variables it came from.
    fn become_array(&mut self, index: usize) -> Array {
        let mut chain = vec![OriginVar::Stack(index)];
        let mut at = index;
        for origin in self.origins.iter().rev() {
            if origin.param == at {
                chain.push(origin.from.clone());
                match origin.from {
                    OriginVar::Stack(from) => at = from,
                    OriginVar::Global(_) | OriginVar::Element(..) => break,
                }
            }
        }
        let existing = chain.iter().find_map(|var| match self.origin_value(var) {
            Value::Array(array) => Some(array),
            _ => None,
        });
        let array = existing.unwrap_or_else(new_array);
        for var in chain {
            if let Value::Uninit = self.origin_value(&var) {
                let value = Value::Array(Rc::clone(&array));
                match var {
                    OriginVar::Global(slot) => self.globals[slot as usize] = value,
                    OriginVar::Stack(index) => self.values[index] = value,
                    OriginVar::Element(array, key) => array.borrow_mut().set(key.borrowed(), value),
                }
            }
        }
        array
    }

    fn origin_value(&self, var: &OriginVar) -> Value {
        match var {
            OriginVar::Global(slot) => self.globals[*slot as usize].clone(),
            OriginVar::Stack(index) => self.values[*index].clone(),
            OriginVar::Element(array, key) => array.borrow().get(key.borrowed()).cloned().unwrap_or_default(),
        }
    }

    /// The name of a parameter of the function that runs.
    fn local_name(&self, slot: u32) -> &str {
        let function = self.frames.last().map(|frame| &self.code.functions[frame.function as usize]);
        function.and_then(|function| function.params.get(slot as usize)).map_or("", |name| name)
    }

    /// Sets a global variable, and lets the machine act on it.
    fn set_global(&mut self, slot: u32, value: Value) -> Result<()> {
        if slot < special::HOOKED {
            return self.set_special(slot, value);
        }
        let variable = &mut self.globals[slot as usize];
        if let Value::Array(_) = variable {
            let name = &self.code.globals[slot as usize];
            return Err(Error::fatal(format_args!("attempt to use array `{name}' in a scalar context")));
        }
        *variable = value;
        Ok(())
    }

    /// Sets one of the variables that say how the machine works.
    fn set_special(&mut self, slot: u32, value: Value) -> Result<()> {
        if slot < special::COUNTERS {
            return self.set_counter(slot, value.to_num());
        }
        let text = value.to_str(&self.convfmt).as_bytes().to_vec();
        self.globals[slot as usize] = value;
        match slot {
            special::OFS => {
                self.record.rebuild();
                self.record.ofs.clone_from(&text);
                self.ofs = text;
            }
            special::ORS => self.ors = text,
            special::SUBSEP => self.subsep = text,
            special::OFMT => self.ofmt = text,
            special::CONVFMT => {
                self.record.convfmt.clone_from(&text);
                self.convfmt = text;
            }
            special::RS => {
                if !self.is_csv {
                    self.separator = self.separator_of(&text)?;
                    self.set_splitter(self.cut_by)?;
                }
            }
            special::IGNORECASE => self.set_ignore_case()?,
            _ => self.set_splitter(slot)?,
        }
        Ok(())
    }

    fn set_counter(&mut self, slot: u32, number: f64) -> Result<()> {
        match slot {
            special::NR => self.nr = number,
            special::FNR => self.fnr = number,
            _ if number < 0.0 => return Err(Error::fatal("NF set to negative value")),
            _ => self.record.set_count(number.min(MOST_FIELDS) as usize),
        }
        Ok(())
    }

    fn counter(&mut self, slot: u32) -> f64 {
        match slot {
            special::NR => self.nr,
            special::FNR => self.fnr,
            _ => self.record.count() as f64,
        }
    }

    fn special_text(&self, slot: u32) -> Vec<u8> {
        self.globals[slot as usize].to_str(&self.convfmt).as_bytes().to_vec()
    }

    /// Takes over how fields are cut from the variable that was set last; the fields of this record stay.
    fn set_splitter(&mut self, slot: u32) -> Result<()> {
        self.record.split_all();
        if self.is_csv {
            return Ok(());
        }
        self.cut_by = slot;
        let text = self.special_text(slot);
        self.record.splitter = match slot {
            special::FIELDWIDTHS => Splitter::Widths(widths(&text)?),
            special::FPAT => Splitter::Pattern(self.pattern(&text)?),
            _ => {
                // In paragraphs a newline separates fields, too.
                let paragraph = matches!(self.separator, Separator::Paragraph);
                match self.splitter_of(&text)? {
                    Splitter::Byte(byte) if paragraph && byte != b'\n' => {
                        let mut both = b"[\n".to_vec();
                        both.extend(if byte == b'\\' || byte == b'^' || byte == b']' {
                            &b"\\"[..]
                        } else {
                            b""
                        });
                        both.extend([byte, b']']);
                        Splitter::Regex(self.pattern(&both)?)
                    }
                    splitter => splitter,
                }
            }
        };
        Ok(())
    }

    /// How a text, the value of `FS` or an argument of `split`, cuts.
    fn splitter_of(&mut self, text: &[u8]) -> Result<Splitter> {
        Ok(match text {
            b" " => Splitter::Blanks,
            b"" => Splitter::Chars,
            // A letter is that letter, whatever IGNORECASE says.
            [byte] => Splitter::Byte(*byte),
            text => Splitter::Regex(self.pattern(text)?),
        })
    }

    fn separator_of(&mut self, text: &[u8]) -> Result<Separator> {
        Ok(match text {
            b"" => Separator::Paragraph,
            [byte] if !(self.ignore_case && byte.is_ascii_alphabetic()) => Separator::Byte(*byte),
            text => Separator::Regex(self.pattern(text)?),
        })
    }

    /// Compiles all patterns anew, with or without regard to case.
    fn set_ignore_case(&mut self) -> Result<()> {
        let ignore_case = self.globals[special::IGNORECASE as usize].is_true();
        if ignore_case == self.ignore_case {
            return Ok(());
        }
        self.ignore_case = ignore_case;
        self.patterns.clear();
        for regex in &mut self.regexes {
            let again = regex::compile(regex.source(), ignore_case).map_err(Error::fatal)?;
            *regex = Rc::new(again);
        }
        let text = self.special_text(special::RS);
        self.separator = self.separator_of(&text)?;
        self.set_splitter(self.cut_by)
    }

    /// The pattern that a text is, compiled once.
    fn pattern(&mut self, text: &[u8]) -> Result<Rc<Regex>> {
        if let Some(regex) = self.patterns.get(text) {
            return Ok(Rc::clone(regex));
        }
        if self.patterns.len() >= PATTERNS_KEPT {
            self.patterns.clear();
        }
        let regex = regex::compile(text, self.ignore_case).map_err(|error| {
            Error::fatal(format_args!("invalid regexp: {error}: /{}/", String::from_utf8_lossy(text)))
        })?;
        let regex = Rc::new(regex);
        self.patterns.insert(text.to_vec(), Rc::clone(&regex));
        Ok(regex)
    }

    /// The pattern that a value is.
    fn pattern_of(&mut self, value: &Value) -> Result<Rc<Regex>> {
        match value {
            Value::Regex(regex) => Ok(Rc::clone(regex)),
            Value::Str(text) | Value::Strnum(text) => self.pattern(text.as_bytes()),
            other => {
                let text = other.to_str(&self.convfmt);
                self.pattern(text.as_bytes())
            }
        }
    }
}

/// The environment for commands: what `ENVIRON` holds.
fn environment(globals: &[Value], convfmt: &[u8]) -> abi::StringList {
    let mut list = abi::StringList::new();
    if let Value::Array(array) = &globals[special::ENVIRON as usize] {
        for (key, value) in array.borrow().iter() {
            list.push_pair(key.to_str().as_bytes(), value.to_str(convfmt).as_bytes());
        }
    }
    list
}

/// More fields than this no record can have.
const MOST_FIELDS: f64 = 10_000_000.0;

/// Reads `FIELDWIDTHS`: widths, each maybe with characters to skip before it, and maybe a last `*`.
fn widths(text: &[u8]) -> Result<Rc<[Width]>> {
    let text = String::from_utf8_lossy(text).into_owned();
    let invalid = |word: &str| Error::fatal(format_args!("invalid FIELDWIDTHS value, near `{word}'"));
    let mut widths = Vec::new();
    for word in text.split_whitespace() {
        let (skip, length) = word.split_once(':').unwrap_or(("0", word));
        let skip = skip.parse().map_err(|_| invalid(word))?;
        let length = match length {
            "*" => usize::MAX,
            digits => digits.parse().ok().filter(|length| *length > 0).ok_or_else(|| invalid(word))?,
        };
        widths.push(Width { skip, length });
    }
    Ok(widths.into())
}

/// A subscript from a value; numbers make their text in `scratch`.
#[inline]
fn key_of<'a>(value: &'a Value, scratch: &'a mut Vec<u8>, convfmt: &[u8]) -> KeyRef<'a> {
    match value {
        Value::Num(number) => match number::as_integer(*number) {
            Some(integer) if integer.unsigned_abs() < 100_000_000_000_000_000 => KeyRef::Int(integer),
            _ => {
                scratch.clear();
                number::append(scratch, *number, convfmt);
                KeyRef::new(scratch)
            }
        },
        Value::Str(text) | Value::Strnum(text) => KeyRef::new(text.as_bytes()),
        Value::Regex(regex) => KeyRef::new(regex.source()),
        Value::Uninit | Value::Array(_) => KeyRef::Text(b""),
    }
}
