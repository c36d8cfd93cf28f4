//! `dc`: a calculator with a stack, over bc's numbers.

use crate::bc::number::{Impossible, Number};
use crate::bc::output::Output;
use num_bigint::BigInt;
use std::collections::HashMap;
use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, files, program};
use wardian_abi as abi;

const TOOL: Tool = Tool {
    name: "dc",
    short: "e:f:hV",
    long: &[("expression=", 'e'), ("file=", 'f')],
    help: "\
Usage: dc [OPTION] [file ...]
  -e, --expression=EXPR    evaluate expression
  -f, --file=FILE          evaluate contents of file
  -h, --help               display this help and exit
  -V, --version            output version information and exit

",
    misuse: 1,
};

/// What a place on the stack holds.
#[derive(Clone)]
enum Value {
    Number(Number),
    Text(Vec<u8>),
}

/// A register is a stack of its own; each of its levels has an array.
#[derive(Default)]
struct Register {
    values: Vec<Value>,
    arrays: Vec<HashMap<BigInt, Value>>,
}

/// Macros that are being executed; more are an endless recursion.
const DEEPEST: usize = 100_000;

struct Machine {
    stack: Vec<Value>,
    registers: HashMap<u8, Register>,
    scale: usize,
    input_base: u32,
    output_base: u32,
    out: Output,
    /// What is executed: texts with the places in them.
    running: Vec<(Vec<u8>, usize)>,
}

/// What ends the program.
struct Quit;

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut machine = Machine::new();
    let mut has_program = false;
    for (letter, text) in parsed.options {
        let text = text.unwrap_or_default();
        has_program = true;
        let source = match letter {
            'e' => Some(text),
            'f' => read(&text),
            'h' => return TOOL.answer(toolkit::args::Refusal::Help),
            _ => return TOOL.answer(toolkit::args::Refusal::Version),
        };
        let Some(source) = source else { continue };
        if machine.run(source).is_err() {
            return 0;
        }
    }
    let operands = match parsed.operands.is_empty() && !has_program {
        true => vec![b"-".to_vec()],
        false => parsed.operands,
    };
    for operand in operands {
        let Some(source) = read(&operand) else { continue };
        if machine.run(source).is_err() {
            return 0;
        }
    }
    0
}

fn read(file: &[u8]) -> Option<Vec<u8>> {
    let content = match file {
        b"-" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(abi::Errno::from),
    };
    let shown = String::from_utf8_lossy(file);
    content.map_err(|_| complain("dc", format_args!("Could not open file {shown}"))).ok()
}

impl Machine {
    fn new() -> Machine {
        Machine {
            stack: Vec::new(),
            registers: HashMap::new(),
            scale: 0,
            input_base: 10,
            output_base: 10,
            out: Output::new(),
            running: Vec::new(),
        }
    }

    fn run(&mut self, text: Vec<u8>) -> Result<(), Quit> {
        self.running.push((text, 0));
        let answer = loop {
            let Some((text, at)) = self.running.last_mut() else { break Ok(()) };
            let Some(&byte) = text.get(*at) else {
                self.running.pop();
                continue;
            };
            *at += 1;
            if let Err(quit) = self.step(byte) {
                break Err(quit);
            }
        };
        self.out.flush();
        answer
    }

    fn next(&mut self) -> Option<u8> {
        let (text, at) = self.running.last_mut()?;
        let byte = text.get(*at).copied();
        *at += usize::from(byte.is_some());
        byte
    }

    fn peek(&self) -> Option<u8> {
        self.running.last().and_then(|(text, at)| text.get(*at).copied())
    }

    fn complain(&mut self, message: impl std::fmt::Display) {
        self.out.flush();
        complain("dc", message);
    }

    fn pop(&mut self) -> Option<Value> {
        let value = self.stack.pop();
        if value.is_none() {
            self.complain("stack empty");
        }
        value
    }

    /// A number off the stack; anything else stays there.
    fn number(&mut self) -> Option<Number> {
        match self.pop()? {
            Value::Number(number) => Some(number),
            other => {
                self.stack.push(other);
                self.complain("non-numeric value");
                None
            }
        }
    }

    fn step(&mut self, byte: u8) -> Result<(), Quit> {
        match byte {
            b'0'..=b'9' | b'A'..=b'F' | b'.' | b'_' => self.literal(byte),
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'#' => while self.next().is_some_and(|byte| byte != b'\n') {},
            b'+' | b'-' | b'*' | b'/' | b'%' | b'^' | b'~' => self.binary(byte),
            b'|' => self.modular_power(),
            b'v' => self.root(),
            b'[' => self.text(),
            b'p' | b'n' | b'P' | b'f' => self.print(byte),
            b'c' => self.stack.clear(),
            b'd' => match self.stack.last().cloned() {
                Some(value) => self.stack.push(value),
                None => self.complain("stack empty"),
            },
            b'r' => match self.stack.len() {
                0 | 1 => self.complain("stack empty"),
                length => self.stack.swap(length - 1, length - 2),
            },
            b'R' => self.rotate(),
            b's' | b'l' | b'S' | b'L' | b':' | b';' => self.register(byte),
            b'i' | b'o' | b'k' => self.set(byte),
            b'I' => self.push(self.input_base as i64),
            b'O' => self.push(self.output_base as i64),
            b'K' => self.push(self.scale as i64),
            b'z' => self.push(self.stack.len() as i64),
            b'Z' | b'X' => self.measure(byte),
            b'a' => self.as_character(),
            b'x' => self.execute(),
            b'<' | b'>' | b'=' => self.compare(byte, false),
            b'!' => match self.peek() {
                Some(sign @ (b'<' | b'>' | b'=')) => {
                    self.next();
                    self.compare(sign, true);
                }
                _ => self.system(),
            },
            b'?' => self.ask(),
            b'q' => return self.leave(2),
            b'Q' => {
                if let Some(levels) = self.number() {
                    match levels.to_i64() {
                        Some(levels @ 1..) => return self.leave_macros(levels as usize),
                        _ => self.complain("Q command requires a number >= 1"),
                    }
                }
            }
            other => {
                let shown = char::from(other);
                self.complain(format_args!("'{shown}' ({:04o}) unimplemented", other));
            }
        }
        Ok(())
    }

    /// `q`: leaves this macro and the one that called it, or the program.
    fn leave(&mut self, levels: usize) -> Result<(), Quit> {
        if self.running.len() < levels {
            return Err(Quit);
        }
        let left = self.running.len().saturating_sub(levels);
        self.running.truncate(left);
        if left == 0 { Err(Quit) } else { Ok(()) }
    }

    /// `Q`: leaves so many macros, and never the program.
    fn leave_macros(&mut self, levels: usize) -> Result<(), Quit> {
        let left = self.running.len().saturating_sub(levels).max(1);
        self.running.truncate(left);
        Ok(())
    }

    fn push(&mut self, number: i64) {
        self.stack.push(Value::Number(Number::from(number)));
    }

    fn literal(&mut self, first: u8) {
        let mut text = String::new();
        if first == b'_' {
            text.push('-');
        } else {
            text.push(char::from(first));
        }
        let mut has_point = first == b'.';
        while let Some(byte @ (b'0'..=b'9' | b'A'..=b'F' | b'.')) = self.peek() {
            if byte == b'.' && std::mem::replace(&mut has_point, true) {
                break;
            }
            self.next();
            text.push(char::from(byte));
        }
        let (sign, digits) = text.strip_prefix('-').map_or((false, text.as_str()), |digits| (true, digits));
        let number = Number::parse(digits, self.input_base);
        self.stack.push(Value::Number(if sign { number.negated() } else { number }));
    }

    fn text(&mut self) {
        let mut depth = 1;
        let mut text = Vec::new();
        while let Some(byte) = self.next() {
            match byte {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            text.push(byte);
        }
        self.stack.push(Value::Text(text));
    }

    fn binary(&mut self, sign: u8) {
        if self.stack.len() < 2 {
            self.complain("stack empty");
            return;
        }
        let Some(right) = self.number() else { return };
        let Some(left) = self.number() else {
            self.stack.push(Value::Number(right));
            return;
        };
        let scale = self.scale;
        let result = match sign {
            b'+' => Ok(vec![left.plus(&right)]),
            b'-' => Ok(vec![left.minus(&right)]),
            b'*' => Ok(vec![left.times(&right, scale)]),
            b'/' => left.over(&right, scale).map(|result| vec![result]),
            b'%' => left.modulo(&right, scale).map(|result| vec![result]),
            b'~' => {
                left.over(&right, scale).and_then(|quotient| Ok(vec![quotient, left.modulo(&right, scale)?]))
            }
            _ => match right.to_i64() {
                Some(exponent) => left.to_the(exponent, scale).map(|result| vec![result]),
                None => Err(Impossible::TooLarge),
            },
        };
        if sign == b'^' && right.scale > 0 {
            self.out.flush();
            let _ = abi::write_all(2, b"Runtime warning: non-zero scale in exponent\n");
        }
        match result {
            Ok(results) => self.stack.extend(results.into_iter().map(Value::Number)),
            Err(why) => {
                self.stack.extend([Value::Number(left), Value::Number(right)]);
                self.refuse(why);
            }
        }
    }

    fn refuse(&mut self, why: Impossible) {
        self.complain(match why {
            Impossible::DivideByZero | Impossible::PowerOfZero => "divide by zero",
            Impossible::ModuloByZero => "remainder by zero",
            Impossible::NegativeRoot => "square root of negative number",
            Impossible::TooLarge => "number too large",
        });
    }

    fn modular_power(&mut self) {
        if self.stack.len() < 3 {
            self.complain("stack empty");
            return;
        }
        let (Some(modulus), Some(exponent), Some(base)) = (self.number(), self.number(), self.number())
        else {
            return;
        };
        let (modulus, exponent, base) = (modulus.integer(), exponent.integer(), base.integer());
        let zero = BigInt::from(0);
        if modulus == zero {
            self.complain("remainder by zero");
        } else if exponent < zero {
            self.complain("negative exponent");
        } else {
            self.stack.push(Value::Number(Number::new(base.modpow(&exponent, &modulus), 0)));
        }
    }

    fn root(&mut self) {
        let Some(number) = self.number() else { return };
        match number.root(self.scale) {
            Ok(root) => self.stack.push(Value::Number(root)),
            Err(why) => {
                self.stack.push(Value::Number(number));
                self.refuse(why);
            }
        }
    }

    fn show(&mut self, value: &Value) {
        match value {
            Value::Number(number) => self.out.number(number, self.output_base),
            Value::Text(text) => self.out.raw(text),
        }
    }

    fn print(&mut self, letter: u8) {
        match letter {
            b'f' => {
                for value in self.stack.clone().iter().rev() {
                    self.show(value);
                    self.out.raw(b"\n");
                }
            }
            b'p' => match self.stack.last().cloned() {
                Some(value) => {
                    self.show(&value);
                    self.out.raw(b"\n");
                }
                None => self.complain("stack empty"),
            },
            b'n' => {
                if let Some(value) = self.pop() {
                    self.show(&value);
                }
            }
            _ => match self.pop() {
                Some(Value::Text(text)) => self.out.raw(&text),
                // The bytes of the number, the most significant first.
                Some(Value::Number(number)) => {
                    let (_, bytes) = number.integer().to_bytes_be();
                    self.out.raw(&bytes);
                }
                None => {}
            },
        }
    }

    fn rotate(&mut self) {
        let Some(count) = self.number().and_then(|number| number.to_i64()) else { return };
        let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(self.stack.len());
        let from = self.stack.len() - size;
        match count {
            1.. => self.stack[from..].rotate_left(1.min(size)),
            _ => self.stack[from..].rotate_right(1.min(size)),
        }
    }

    fn register(&mut self, letter: u8) {
        let Some(name) = self.next() else {
            self.complain("unexpected end of input");
            return;
        };
        let shown = format!("'{}' ({name:04o})", char::from(name));
        match letter {
            b's' => {
                let Some(value) = self.pop() else { return };
                let register = self.registers.entry(name).or_default();
                match register.values.last_mut() {
                    Some(last) => *last = value,
                    None => register.values.push(value),
                }
            }
            b'S' => {
                let Some(value) = self.pop() else { return };
                let register = self.registers.entry(name).or_default();
                register.values.push(value);
                register.arrays.push(HashMap::new());
            }
            b'l' => match self.registers.get(&name).and_then(|register| register.values.last().cloned()) {
                Some(value) => self.stack.push(value),
                None => self.push(0),
            },
            b'L' => {
                let register = self.registers.entry(name).or_default();
                register.arrays.pop();
                match register.values.pop() {
                    Some(value) => self.stack.push(value),
                    None => self.complain(format_args!("stack register {shown} is empty")),
                }
            }
            b':' => {
                let Some(index) = self.number() else { return };
                let Some(value) = self.pop() else { return };
                let register = self.registers.entry(name).or_default();
                if register.arrays.is_empty() {
                    register.arrays.push(HashMap::new());
                }
                if let Some(array) = register.arrays.last_mut() {
                    array.insert(index.integer(), value);
                }
            }
            _ => {
                let Some(index) = self.number() else { return };
                let array = self.registers.get(&name).and_then(|register| register.arrays.last());
                let value = array.and_then(|array| array.get(&index.integer()).cloned());
                self.stack.push(value.unwrap_or(Value::Number(Number::from(0))));
            }
        }
    }

    fn set(&mut self, letter: u8) {
        let Some(number) = self.number() else { return };
        let value = number.to_i64().unwrap_or(i64::MAX);
        match (letter, value) {
            (b'i', 2..=16) => self.input_base = value as u32,
            (b'i', _) => self.complain("input base must be a number between 2 and 16 (inclusive)"),
            (b'o', 2..=0x7fff_ffff) => self.output_base = value as u32,
            (b'o', _) => self.complain("output base must be a number greater than 1"),
            (_, 0..=100_000) => self.scale = value as usize,
            (_, ..0) => self.complain("scale must be a nonnegative number"),
            _ => self.complain("scale is too large"),
        }
    }

    fn measure(&mut self, letter: u8) {
        let Some(value) = self.pop() else { return };
        let size = match (&value, letter) {
            (Value::Text(text), b'Z') => text.len(),
            (Value::Number(number), b'Z') => number.length(),
            (Value::Number(number), _) => number.scale,
            (Value::Text(_), _) => 0,
        };
        self.push(size as i64);
    }

    fn as_character(&mut self) {
        let byte = match self.pop() {
            Some(Value::Text(text)) => text.first().copied(),
            Some(Value::Number(number)) => number.integer().to_bytes_be().1.last().copied(),
            None => return,
        };
        self.stack.push(Value::Text(byte.into_iter().collect()));
    }

    fn execute(&mut self) {
        match self.pop() {
            Some(Value::Text(text)) => self.call(text),
            Some(number) => self.stack.push(number),
            None => {}
        }
    }

    /// Begins a macro. One whose caller has nothing left to do takes its place, so that loops need no room.
    fn call(&mut self, text: Vec<u8>) {
        while self.running.len() > 1
            && self.running.last().is_some_and(|(text, at)| text[*at..].iter().all(u8::is_ascii_whitespace))
        {
            self.running.pop();
        }
        if self.running.len() >= DEEPEST {
            self.complain("macros are nested too deeply");
            self.running.truncate(1);
            return;
        }
        self.running.push((text, 0));
    }

    fn compare(&mut self, sign: u8, negated: bool) {
        let Some(name) = self.next() else {
            self.complain("unexpected end of input");
            return;
        };
        if self.stack.len() < 2 {
            self.complain("stack empty");
            return;
        }
        let Some(top) = self.number() else { return };
        let Some(below) = self.number() else { return };
        let difference = top.minus(&below);
        let holds = match sign {
            b'=' => difference.is_zero(),
            b'<' => difference.is_negative(),
            _ => !difference.is_negative() && !difference.is_zero(),
        };
        if holds == negated {
            return;
        }
        let value = self.registers.get(&name).and_then(|register| register.values.last().cloned());
        match value {
            Some(Value::Text(text)) => self.call(text),
            Some(number) => self.stack.push(number),
            None => self.complain(format_args!("register '{}' ({name:04o}) is empty", char::from(name))),
        }
    }

    /// `!`: the rest of the line is a command for the shell.
    fn system(&mut self) {
        let mut line = Vec::new();
        while let Some(byte) = self.next().filter(|byte| *byte != b'\n') {
            line.push(byte);
        }
        self.out.flush();
        let words = [b"sh".to_vec(), b"-c".to_vec(), line];
        match program::spawn(&words, &abi::environ(), abi::Spawn::default()) {
            Ok(child) => drop(program::wait_for(child)),
            Err(error) => self.complain(error),
        }
    }

    /// `?`: executes a line of standard input.
    fn ask(&mut self) {
        self.out.flush();
        let mut line = Vec::new();
        let mut byte = [0];
        while let Ok(1) = toolkit::source::read(0, &mut byte) {
            if byte[0] == b'\n' {
                break;
            }
            line.push(byte[0]);
        }
        self.call(line);
    }
}
