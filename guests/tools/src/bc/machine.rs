//! Runs a program's steps.

use super::code::{Argument, Binary, Body, Code, Function, Literal, Own, Place, Step};
use super::lexer::Lexer;
use super::library;
use super::number::{Impossible, Number};
use super::output::Output;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;
use wardian_abi as abi;

type Array = Rc<RefCell<HashMap<usize, Number>>>;

/// The least index that no array has.
const INDEX_END: i64 = 16_777_216;
/// The greatest scale that there is memory to work with.
const MOST_DIGITS: usize = 100_000_000;
/// How deep calls may be in each other.
const MOST_CALLS: usize = 1_000_000;

/// A function, or the line itself, on its way.
struct Frame {
    code: Rc<Code>,
    at: usize,
    /// Nothing is the line itself.
    function: Option<usize>,
}

/// Why a line does not run to its end.
enum Stop {
    /// With no words if they have been said.
    Error(String),
    Halt,
}

pub struct Machine {
    stack: Vec<Number>,
    frames: Vec<Frame>,
    /// Each with the values that calls hide.
    variables: HashMap<usize, Vec<Number>>,
    arrays: HashMap<usize, Vec<Array>>,
    functions: Vec<Rc<Function>>,
    pub scale: usize,
    input_base: u32,
    output_base: u32,
    last: Number,
    history: Number,
    pub out: Output,
}

impl Machine {
    pub fn new() -> Machine {
        Machine {
            stack: Vec::new(),
            frames: Vec::new(),
            variables: HashMap::new(),
            arrays: HashMap::new(),
            functions: Vec::new(),
            scale: 0,
            input_base: 10,
            output_base: 10,
            last: Number::zero(),
            history: Number::from(-1),
            out: Output::new(),
        }
    }

    pub fn define(&mut self, number: usize, function: Function) {
        while self.functions.len() <= number {
            let name = String::new();
            let (parameters, autos) = (Vec::new(), Vec::new());
            let undefined = Function { name, parameters, autos, body: Body::Undefined };
            self.functions.push(Rc::new(undefined));
        }
        self.functions[number] = Rc::new(function);
    }

    /// Runs a line; answers whether the program goes on. `names` are those of arrays and functions, for messages.
    pub fn run(&mut self, code: Code, lexer: &mut Lexer, names: &Names<'_>) -> bool {
        self.frames.push(Frame { code: Rc::new(code), at: 0, function: None });
        let stopped = loop {
            let Some(frame) = self.frames.last_mut() else { break None };
            let code = frame.code.clone();
            let Some(step) = code.steps.get(frame.at) else {
                self.frames.pop();
                break None;
            };
            frame.at += 1;
            if let Err(stop) = self.take(step, lexer, names) {
                break Some(stop);
            }
        };
        let goes_on = match stopped {
            None => true,
            Some(Stop::Halt) => false,
            Some(Stop::Error(message)) => {
                if !message.is_empty() {
                    self.out.flush();
                    self.tell("error", &message, 0);
                }
                true
            }
        };
        while let Some(frame) = self.frames.pop() {
            self.forget_own(frame.function);
        }
        self.stack.clear();
        self.out.flush();
        goes_on
    }

    /// Says what happened, and where: at the end of the step that is being taken, or so much before it.
    fn tell(&self, kind: &str, message: &str, before: usize) {
        let Some(frame) = self.frames.last() else { return };
        let name = frame.function.map_or("(main)", |function| &self.functions[function].name);
        let address = frame.code.ends[frame.at - 1] - before;
        let text = format!("Runtime {kind} (func={name}, adr={address}): {message}\n");
        // There is nowhere left to say that this failed.
        let _ = abi::write_all(2, text.as_bytes());
    }

    fn warn(&mut self, message: &str) {
        self.out.flush();
        self.tell("warning", message, 0);
    }

    fn pop(&mut self) -> Number {
        self.stack.pop().unwrap_or_else(Number::zero)
    }

    fn take(&mut self, step: &Step, lexer: &mut Lexer, names: &Names<'_>) -> Result<(), Stop> {
        match step {
            Step::Constant(literal) => self.stack.push(self.value_of(literal)),
            Step::Load(place) => self.stack.push(self.load(*place)),
            Step::Store(place) => {
                let value = self.pop();
                self.store(*place, &value);
                self.stack.push(value);
            }
            Step::LoadElement(array) => {
                let index = self.index(*array, names)?;
                let value = self.array(*array).borrow().get(&index).cloned();
                self.stack.push(value.unwrap_or_else(Number::zero));
            }
            Step::StoreElement(array) => {
                let value = self.pop();
                let index = self.index(*array, names)?;
                self.array(*array).borrow_mut().insert(index, value.clone());
                self.stack.push(value);
            }
            Step::Duplicate => self.stack.extend(self.stack.last().cloned()),
            Step::Pop => drop(self.pop()),
            Step::Binary(operator) => {
                let (right, left) = (self.pop(), self.pop());
                let result = self.calculate(*operator, &left, &right)?;
                self.stack.push(result);
            }
            Step::Negate => {
                let value = self.pop();
                self.stack.push(value.negated());
            }
            Step::Not => {
                let value = self.pop();
                self.stack.push(Number::from(i64::from(value.is_zero())));
            }
            Step::Jump(target) => self.jump(*target),
            Step::JumpIfZero(target) => {
                if self.pop().is_zero() {
                    self.jump(*target);
                }
            }
            Step::Length => {
                let value = self.pop();
                self.stack.push(Number::from(value.length() as i64));
            }
            Step::ScaleOf => {
                let value = self.pop();
                self.stack.push(Number::from(value.scale as i64));
            }
            Step::Root => {
                self.check_scale()?;
                let value = self.pop();
                let root = value.root(self.scale).map_err(|why| Stop::Error(reason(&why).into()))?;
                self.stack.push(root);
            }
            Step::Read => {
                self.out.flush();
                let number = self.read(lexer);
                self.stack.push(number);
            }
            Step::Call(function, arguments) => self.call(*function, arguments, names)?,
            Step::Return => self.leave(),
            Step::Show => {
                let value = self.pop();
                self.out.number(&value, self.output_base);
                self.out.text(b"\n");
                self.last = value;
            }
            Step::Print => {
                let value = self.pop();
                self.out.number(&value, self.output_base);
                self.last = value;
            }
            Step::PrintText(text) => self.out.text(text),
            Step::Halt => return Err(Stop::Halt),
        }
        Ok(())
    }

    fn jump(&mut self, target: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = target;
        }
    }

    fn value_of(&self, literal: &Literal) -> Number {
        match self.input_base {
            10 => literal.in_ten.get_or_init(|| Number::parse(&literal.text, 10)).clone(),
            base => Number::parse(&literal.text, base),
        }
    }

    fn load(&self, place: Place) -> Number {
        match place {
            Place::Variable(variable) => self
                .variables
                .get(&variable)
                .and_then(|values| values.last())
                .cloned()
                .unwrap_or_else(Number::zero),
            Place::Scale => Number::from(self.scale as i64),
            Place::InputBase => Number::from(i64::from(self.input_base)),
            Place::OutputBase => Number::from(i64::from(self.output_base)),
            Place::History => self.history.clone(),
            Place::Last => self.last.clone(),
        }
    }

    fn store(&mut self, place: Place, value: &Number) {
        match place {
            Place::Variable(variable) => {
                let values = self.variables.entry(variable).or_default();
                match values.last_mut() {
                    Some(last) => *last = value.clone(),
                    None => values.push(value.clone()),
                }
            }
            Place::Scale => self.scale = self.bounded(value, "scale", 0, i64::from(i32::MAX)) as usize,
            Place::InputBase => self.input_base = self.bounded(value, "ibase", 2, 36) as u32,
            Place::OutputBase => {
                self.output_base = self.bounded(value, "obase", 2, i64::from(i32::MAX)) as u32
            }
            Place::History => self.history = value.clone(),
            Place::Last => self.last = value.clone(),
        }
    }

    /// A value within what a setting can be; one that is not is told, and replaced.
    fn bounded(&mut self, value: &Number, name: &str, least: i64, most: i64) -> i64 {
        let whole = value.integer();
        if whole < least.into() {
            let problem = if least == 0 { "negative scale".to_owned() } else { format!("{name} too small") };
            self.warn(&format!("{problem}, set to {least}"));
            return least;
        }
        if whole > most.into() {
            self.warn(&format!("{name} too large, set to {most}"));
            return most;
        }
        i64::try_from(whole).unwrap_or(most)
    }

    fn array(&mut self, array: usize) -> Array {
        let arrays = self.arrays.entry(array).or_default();
        if arrays.is_empty() {
            arrays.push(Array::default());
        }
        arrays[arrays.len() - 1].clone()
    }

    fn index(&mut self, array: usize, names: &Names<'_>) -> Result<usize, Stop> {
        let index = self.pop().to_i64().filter(|index| (0..INDEX_END).contains(index));
        index.map(|index| index as usize).ok_or_else(|| {
            let name = names.arrays.get(array).map_or("", String::as_str);
            Stop::Error(format!("Array {name} subscript out of bounds."))
        })
    }

    fn calculate(&mut self, operator: Binary, left: &Number, right: &Number) -> Result<Number, Stop> {
        let truth = |holds: bool| Ok(Number::from(i64::from(holds)));
        let order = || left.partial_cmp(right).unwrap_or(Ordering::Equal);
        let result = match operator {
            Binary::Plus => Ok(left.plus(right)),
            Binary::Minus => Ok(left.minus(right)),
            Binary::Times => Ok(left.times(right, self.scale)),
            Binary::Over | Binary::Modulo => {
                self.check_scale()?;
                if operator == Binary::Over { left.over(right, self.scale) } else { self.modulo(left, right) }
            }
            Binary::Power => self.power(left, right),
            Binary::Less => return truth(order() == Ordering::Less),
            Binary::LessOrEqual => return truth(order() != Ordering::Greater),
            Binary::Equal => return truth(order() == Ordering::Equal),
            Binary::Unequal => return truth(order() != Ordering::Equal),
            Binary::GreaterOrEqual => return truth(order() != Ordering::Less),
            Binary::Greater => return truth(order() == Ordering::Greater),
        };
        result.map_err(|why| Stop::Error(reason(&why).into()))
    }

    /// A result of more digits than there is memory for is none.
    fn check_scale(&self) -> Result<(), Stop> {
        if self.scale > MOST_DIGITS {
            return Err(Stop::Error("Out of memory for a number of so many digits".into()));
        }
        Ok(())
    }

    fn modulo(&self, left: &Number, right: &Number) -> Result<Number, Impossible> {
        if right.is_zero() { Err(Impossible::ModuloByZero) } else { left.modulo(right, self.scale) }
    }

    fn power(&mut self, base: &Number, exponent: &Number) -> Result<Number, Impossible> {
        if exponent.scale > 0 {
            self.warn("non-zero scale in exponent");
        }
        let exponent = exponent.to_i64().ok_or(Impossible::TooLarge)?;
        if base.is_zero() && exponent < 0 {
            return Err(Impossible::PowerOfZero);
        }
        base.to_the(exponent, self.scale)
    }

    /// A number from the input, or zero.
    fn read(&mut self, lexer: &mut Lexer) -> Number {
        let line = lexer.read_line().unwrap_or_default();
        let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let end =
            digits.find(|digit: char| !matches!(digit, '0'..='9' | 'A'..='Z' | '.')).unwrap_or(digits.len());
        let number = Number::parse(if end == 0 { "0" } else { &digits[..end] }, self.input_base);
        if is_negative { number.negated() } else { number }
    }

    fn call(&mut self, number: usize, arguments: &[Argument], names: &Names<'_>) -> Result<(), Stop> {
        let function =
            self.functions.get(number).cloned().filter(|found| !matches!(found.body, Body::Undefined));
        let Some(function) = function else {
            return Err(self.call_error(
                arguments.len() + 1,
                &format!("Function {} not defined.", names.function(number)),
            ));
        };
        if let Body::Library(letter) = function.body {
            return self.call_library(letter, arguments);
        }
        if arguments.len() != function.parameters.len() {
            let told_after = arguments.len().min(function.parameters.len());
            return Err(self.call_error(arguments.len() - told_after, "Parameter number mismatch"));
        }
        if self.frames.len() > MOST_CALLS {
            return Err(Stop::Error("Function calls are too deep".into()));
        }
        self.give(&function, arguments)?;
        let Body::Written(code) = &function.body else { return Ok(()) };
        self.frames.push(Frame { code: code.clone(), at: 0, function: Some(number) });
        Ok(())
    }

    /// An error that is told at so much before the end of a step.
    fn call_error(&mut self, before: usize, message: &str) -> Stop {
        self.out.flush();
        self.tell("error", message, before);
        Stop::Error(String::new())
    }

    /// Gives a function its parameters and variables.
    fn give(&mut self, function: &Function, arguments: &[Argument]) -> Result<(), Stop> {
        for (own, argument) in function.parameters.iter().zip(arguments) {
            if matches!(own, Own::Variable(_)) != (*argument == Argument::Value) {
                return Err(Stop::Error("Parameter type mismatch".into()));
            }
        }
        let mut values = self
            .stack
            .split_off(self.stack.len() - arguments.iter().filter(|a| **a == Argument::Value).count())
            .into_iter();
        for (own, argument) in function.parameters.iter().zip(arguments) {
            match (own, argument) {
                (Own::Reference(parameter), Argument::Array(array)) => {
                    let shared = self.array(*array);
                    self.array(*parameter);
                    self.arrays.entry(*parameter).or_default().push(shared);
                }
                (Own::Array(parameter), Argument::Array(array)) => {
                    let copy = self.array(*array).borrow().clone();
                    self.array(*parameter);
                    self.arrays.entry(*parameter).or_default().push(Rc::new(RefCell::new(copy)));
                }
                (Own::Variable(variable), _) => {
                    let value = values.next().unwrap_or_else(Number::zero);
                    self.hide(*variable, value);
                }
                _ => {}
            }
        }
        for own in &function.autos {
            match own {
                Own::Variable(variable) => self.hide(*variable, Number::zero()),
                Own::Array(array) | Own::Reference(array) => {
                    self.array(*array);
                    self.arrays.entry(*array).or_default().push(Array::default());
                }
            }
        }
        Ok(())
    }

    /// Gives a variable a value until the function returns.
    fn hide(&mut self, variable: usize, value: Number) {
        let values = self.variables.entry(variable).or_default();
        if values.is_empty() {
            values.push(Number::zero());
        }
        values.push(value);
    }

    fn leave(&mut self) {
        if let Some(frame) = self.frames.pop() {
            self.forget_own(frame.function);
        }
    }

    /// Lets a function's variables be what they were before its call.
    fn forget_own(&mut self, function: Option<usize>) {
        let Some(function) = function.map(|function| self.functions[function].clone()) else { return };
        for own in function.parameters.iter().chain(&function.autos) {
            match own {
                Own::Variable(variable) => drop(self.variables.entry(*variable).or_default().pop()),
                Own::Array(array) | Own::Reference(array) => {
                    self.arrays.entry(*array).or_default().pop();
                }
            }
        }
    }

    fn call_library(&mut self, letter: char, arguments: &[Argument]) -> Result<(), Stop> {
        let count = if letter == 'j' { 2 } else { 1 };
        if arguments != vec![Argument::Value; count] {
            let told_after = arguments.len().min(count);
            return Err(self.call_error(arguments.len() - told_after, "Parameter number mismatch"));
        }
        self.check_scale()?;
        let x = self.pop();
        let too_large = || Stop::Error("exponent too large in raise".into());
        let result = match letter {
            'e' => library::exponential(&x, self.scale).ok_or_else(too_large)?,
            'l' => library::logarithm(&x, self.scale),
            's' => library::sine(&x, self.scale).map_err(|why| Stop::Error(reason(&why).into()))?,
            'c' => library::cosine(&x, self.scale).map_err(|why| Stop::Error(reason(&why).into()))?,
            'a' => library::arctangent(&x, self.scale),
            _ => {
                let order = self.pop();
                library::bessel(&order, &x, self.scale).ok_or_else(too_large)?
            }
        };
        self.stack.push(result);
        Ok(())
    }
}

/// What arrays and functions are called.
pub struct Names<'a> {
    pub arrays: &'a [String],
    pub functions: &'a HashMap<String, usize>,
}

impl Names<'_> {
    fn function(&self, number: usize) -> &str {
        self.functions.iter().find(|(_, found)| **found == number).map_or("", |(name, _)| name)
    }
}

fn reason(why: &Impossible) -> &'static str {
    match why {
        Impossible::DivideByZero => "Divide by zero",
        Impossible::ModuloByZero => "Modulo by zero",
        Impossible::PowerOfZero => "divide by zero",
        Impossible::NegativeRoot => "Square root of a negative number",
        Impossible::TooLarge => "exponent too large in raise",
    }
}
