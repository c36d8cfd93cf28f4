//! Arithmetic's meaning: 64-bit integers that wrap.

use super::parse::{ParseError, is_name_start, parse_text};
use super::{Arith, Expr, Op, SLOT};
use crate::shell::{Flow, Shell};
use crate::vars::{Attrs, Value};
use std::rc::Rc;

/// Why an expression has no value.
#[derive(Debug)]
pub enum ArithError {
    /// What bash says of it.
    Message(Vec<u8>),
    /// What bash says of a part of it, and the rest of the text from there; the whole text goes before it.
    Token(&'static str, Vec<u8>),
    /// It was said already: a variable that must not be assigned to.
    Reported,
    /// An expansion inside it ended the command.
    Flow(Flow),
}

impl ArithError {
    /// The same, told of the whole text.
    fn about(self, text: &[u8]) -> ArithError {
        match self {
            ArithError::Token(message, rest) => {
                let text = text.trim_ascii_start();
                let parts: [&[u8]; 6] =
                    [text, b": ", message.as_bytes(), b" (error token is \"", &rest, b"\")"];
                ArithError::Message(parts.concat())
            }
            other => other,
        }
    }
}

impl From<Flow> for ArithError {
    fn from(flow: Flow) -> Self {
        ArithError::Flow(flow)
    }
}

type Evaluated = Result<i64, ArithError>;

/// A variable's value may be an expression, whose variables' values may be, and so on: this far.
const MAX_DEPTH: u32 = 256;
/// Texts kept compiled.
const CACHE: usize = 512;

/// The values of an expression's expansions.
struct Slots<'s> {
    values: &'s [Vec<u8>],
}

/// A plain decimal number, as nearly every value is.
pub fn plain_number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let mut value: i64 = 0;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(if digits.len() < text.len() { -value } else { value })
}

impl Shell {
    /// Evaluates an expression of the script.
    pub fn arith(&mut self, arith: &Arith) -> Evaluated {
        if let Some(expr) = &arith.expr {
            if arith.slots.is_empty() {
                return self
                    .evaluate(expr, &Slots { values: &[] }, 0)
                    .map_err(|error| error.about(&arith.word.as_literal().unwrap_or_default()));
            }
            let mut values = Vec::with_capacity(arith.slots.len());
            for slot in &arith.slots {
                values.push(self.expand_piece_to_string(slot)?);
            }
            // An expansion that is more than a number changes how the text parses.
            if self.slots_are_numbers(expr, &values) {
                return self
                    .evaluate(expr, &Slots { values: &values }, 0)
                    .map_err(|error| error.about(&substitute(arith, &values)));
            }
            let text = substitute(arith, &values);
            return self.arith_text(&text);
        }
        let text = self.expand_string(&arith.word)?;
        self.arith_text(&text)
    }

    /// Evaluates text.
    pub fn arith_text(&mut self, text: &[u8]) -> Evaluated {
        self.arith_nested(text, 0)
    }

    /// An expression whose failure ends the command, as in an expansion.
    pub fn arith_or_discard(&mut self, arith: &Arith) -> Result<i64, Flow> {
        self.arith(arith).map_err(|error| self.arith_discard(b"", error))
    }

    /// Reports an error of arithmetic and gives the command up.
    pub fn arith_discard(&self, prefix: &[u8], error: ArithError) -> Flow {
        match error {
            ArithError::Flow(flow) => flow,
            error => {
                self.complain_arith(prefix, &error);
                Flow::Discard(1)
            }
        }
    }

    /// Prints what is wrong with an expression.
    pub fn complain_arith(&self, prefix: &[u8], error: &ArithError) {
        if let ArithError::Message(message) = error {
            self.complain_parts(&[prefix, message]);
        }
    }

    fn arith_nested(&mut self, text: &[u8], depth: u32) -> Evaluated {
        if let Some(value) = plain_number(text) {
            return Ok(value);
        }
        let expr = match self.arith_cache.get(text) {
            Some(expr) => expr.clone(),
            None => {
                let expr = match parse_text(text) {
                    Ok(expr) => Rc::new(expr),
                    Err(error) => return Err(self.parse_failure(text, error, depth)),
                };
                if self.arith_cache.len() >= CACHE {
                    self.arith_cache.clear();
                }
                self.arith_cache.insert(text.to_vec(), expr.clone());
                expr
            }
        };
        self.evaluate(&expr, &Slots { values: &[] }, depth).map_err(|error| error.about(text))
    }

    /// What is wrong with text, after what stands before the mistake was done.
    fn parse_failure(&mut self, text: &[u8], error: ParseError, depth: u32) -> ArithError {
        if let Some(before) = &error.before
            && let Err(earlier) = self.evaluate(before, &Slots { values: &[] }, depth)
        {
            return earlier.about(text);
        }
        let rest = error.rest.as_slice();
        let operand_missing = error.message == "syntax error: operand expected" && !rest.is_empty();
        let message = if operand_missing && is_name_start(rest[0]) {
            "syntax error in expression"
        } else {
            error.message
        };
        let text = &text[..error.end.min(text.len())];
        ArithError::Token(message, error.rest).about(text)
    }

    fn evaluate(&mut self, expr: &Expr, slots: &Slots<'_>, depth: u32) -> Evaluated {
        Ok(match expr {
            Expr::Number(value) => *value,
            Expr::Slot(slot) => slots.values.get(*slot).and_then(|text| slot_number(text)).unwrap_or(0),
            Expr::Variable(name) => return self.arith_variable(name, depth),
            Expr::Element { .. } => {
                let place = self.place(expr, slots, depth)?;
                return self.load(&place, depth);
            }
            Expr::Unary(op, operand) => {
                let value = self.evaluate(operand, slots, depth)?;
                match op {
                    b'-' => value.wrapping_neg(),
                    b'!' => i64::from(value == 0),
                    b'~' => !value,
                    _ => value,
                }
            }
            Expr::Binary(op, left, right) => {
                let left = self.evaluate(left, slots, depth)?;
                let right = self.evaluate(right, slots, depth)?;
                return binary(*op, left, right);
            }
            Expr::And(left, right) => {
                i64::from(self.evaluate(left, slots, depth)? != 0 && self.evaluate(right, slots, depth)? != 0)
            }
            Expr::Or(left, right) => {
                i64::from(self.evaluate(left, slots, depth)? != 0 || self.evaluate(right, slots, depth)? != 0)
            }
            Expr::Ternary(condition, yes, no) => {
                let chosen = if self.evaluate(condition, slots, depth)? != 0 { yes } else { no };
                return self.evaluate(chosen, slots, depth);
            }
            Expr::Checked { value, message, rest } => {
                let checked = self.evaluate(value, slots, depth)?;
                if checked < 0 && message.starts_with("exponent")
                    || checked == 0 && message.starts_with("division")
                {
                    return Err(ArithError::Token(message, fill(rest, slots.values)));
                }
                checked
            }
            Expr::Comma(left, right) => {
                self.evaluate(left, slots, depth)?;
                return self.evaluate(right, slots, depth);
            }
            // As bash has it, a plain assignment's subscript is worked out after the value.
            Expr::Assign(None, target, value) => {
                let value = self.evaluate(value, slots, depth)?;
                let place = self.place(target, slots, depth)?;
                self.store(&place, value)?;
                value
            }
            Expr::Assign(op, target, value) => {
                let place = self.place(target, slots, depth)?;
                let old = match op {
                    Some(_) => self.load(&place, depth)?,
                    None => 0,
                };
                let value = self.evaluate(value, slots, depth)?;
                let value = match op {
                    Some(op) => binary(*op, old, value)?,
                    None => value,
                };
                self.store(&place, value)?;
                value
            }
            Expr::Step { target, by, prefix } => {
                let place = self.place(target, slots, depth)?;
                let old = self.load(&place, depth)?;
                let new = old.wrapping_add(*by);
                self.store(&place, new)?;
                if *prefix { new } else { old }
            }
        })
    }

    fn arith_variable(&mut self, name: &[u8], depth: u32) -> Evaluated {
        match self.vars.get(name) {
            Some(var) if !var.attrs.has(Attrs::DYNAMIC) => match var.text() {
                Some(text) => {
                    if let Some(value) = plain_number(text) {
                        return Ok(value);
                    }
                    let text = text.clone();
                    self.nested(&text, depth)
                }
                None => self.unset_in_arith(name),
            },
            Some(_) => {
                let text = self.text(name).map(|text| text.to_vec()).unwrap_or_default();
                self.nested(&text, depth)
            }
            None => self.unset_in_arith(name),
        }
    }

    fn unset_in_arith(&mut self, name: &[u8]) -> Evaluated {
        // A nameref may point at an element of an array.
        let target = self.vars.resolve(name);
        if target.contains(&b'[') {
            let text = target.to_vec();
            return self.nested(&text, 0);
        }
        if self.options.nounset {
            self.complain_parts(&[name, b": unbound variable"]);
            return Err(ArithError::Flow(self.fatal()));
        }
        Ok(0)
    }

    fn nested(&mut self, text: &[u8], depth: u32) -> Evaluated {
        if depth >= MAX_DEPTH {
            let token =
                [text, b": expression recursion level exceeded (error token is \"", text, b"\")"].concat();
            return Err(ArithError::Message(token));
        }
        self.arith_nested(text, depth + 1)
    }

    /// Where an assignable expression points.
    fn place(&mut self, expr: &Expr, slots: &Slots<'_>, depth: u32) -> Result<Place, ArithError> {
        match expr {
            Expr::Variable(name) => Ok(Place { name: name.clone(), key: None }),
            Expr::Element { name, subscript, text } => {
                let associative =
                    matches!(self.vars.get(name), Some(var) if matches!(var.value, Value::Assoc(_)));
                let key = if associative {
                    Key::Text(fill(&strip_quotes(text), slots.values))
                } else if let Some(subscript) = subscript {
                    Key::Number(self.evaluate(subscript, slots, depth)?)
                } else {
                    let text = fill(text, slots.values);
                    Key::Number(self.nested(&text, depth)?)
                };
                Ok(Place { name: name.clone(), key: Some(key) })
            }
            _ => Err(ArithError::Message(b"attempted assignment to non-variable".to_vec())),
        }
    }

    fn load(&mut self, place: &Place, depth: u32) -> Evaluated {
        let Some(key) = &place.key else { return self.arith_variable(&place.name, depth) };
        let Some(var) = self.var(&place.name) else {
            return if self.options.nounset { self.unset_in_arith(&place.name) } else { Ok(0) };
        };
        let text = match (&var.value, key) {
            (Value::Indexed(array), Key::Number(index)) => {
                let index = if *index < 0 { array.end().wrapping_add(*index) } else { *index };
                array.get(index).cloned()
            }
            (Value::Assoc(array), Key::Text(key)) => array.get(key).cloned(),
            (Value::Scalar(text), Key::Number(0 | -1)) => Some(text.clone()),
            _ => None,
        };
        match text {
            Some(text) => match plain_number(&text) {
                Some(value) => Ok(value),
                None => self.nested(&text, depth),
            },
            None => Ok(0),
        }
    }

    fn store(&mut self, place: &Place, value: i64) -> Result<(), ArithError> {
        let mut digits = [0_u8; 20];
        let text = decimal(value, &mut digits);
        let assigned = match &place.key {
            None => self.assign(&place.name, text),
            Some(Key::Number(index)) => self.assign_index(&place.name, *index, text.to_vec(), false),
            Some(Key::Text(key)) => self.assign_key(&place.name, key.clone(), text.to_vec(), false),
        };
        assigned.map_err(|flow| match flow {
            Flow::Discard(_) => ArithError::Reported,
            flow => ArithError::Flow(flow),
        })
    }
}

/// A variable, or an element of one.
struct Place {
    name: Rc<[u8]>,
    key: Option<Key>,
}

enum Key {
    Number(i64),
    Text(Vec<u8>),
}

/// The digits of a number, written from the end of a buffer.
pub fn decimal(value: i64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    &buffer[at..]
}

fn binary(op: Op, left: i64, right: i64) -> Evaluated {
    Ok(match op {
        Op::Add => left.wrapping_add(right),
        Op::Sub => left.wrapping_sub(right),
        Op::Mul => left.wrapping_mul(right),
        Op::Div | Op::Rem if right == 0 => return Err(ArithError::Token("division by 0", b"0".to_vec())),
        Op::Div => left.wrapping_div(right),
        Op::Rem => left.wrapping_rem(right),
        Op::Shl => left.wrapping_shl(right as u32),
        Op::Shr => left.wrapping_shr(right as u32),
        Op::Lt => i64::from(left < right),
        Op::Le => i64::from(left <= right),
        Op::Gt => i64::from(left > right),
        Op::Ge => i64::from(left >= right),
        Op::Eq => i64::from(left == right),
        Op::Ne => i64::from(left != right),
        Op::BitAnd => left & right,
        Op::BitXor => left ^ right,
        Op::BitOr => left | right,
        Op::Pow if right < 0 => return Err(ArithError::Token("exponent less than 0", Vec::new())),
        Op::Pow => power(left, right),
    })
}

fn power(mut base: i64, mut exponent: i64) -> i64 {
    let mut result: i64 = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

fn slot_number(text: &[u8]) -> Option<i64> {
    plain_number(text).or_else(|| plain_number(text.trim_ascii()))
}

impl Shell {
    /// Whether every slot used as an operand holds a plain number. Negative ones do not: `-$x` must not meet `-1`.
    fn slots_are_numbers(&self, expr: &Expr, values: &[Vec<u8>]) -> bool {
        let all = |parts: &[&Expr]| parts.iter().all(|part| self.slots_are_numbers(part, values));
        match expr {
            Expr::Slot(slot) => {
                values.get(*slot).is_some_and(|text| slot_number(text).is_some_and(|value| value >= 0))
            }
            // A key is text, whatever it looks like.
            Expr::Element { name, .. } if self.is_assoc(name) => true,
            Expr::Element { subscript, .. } => subscript.as_deref().is_none_or(|inner| all(&[inner])),
            Expr::Unary(_, operand) | Expr::Checked { value: operand, .. } => all(&[operand]),
            Expr::Binary(_, left, right)
            | Expr::And(left, right)
            | Expr::Or(left, right)
            | Expr::Comma(left, right)
            | Expr::Assign(_, left, right) => all(&[left, right]),
            Expr::Ternary(condition, yes, no) => all(&[condition, yes, no]),
            Expr::Step { target, .. } => all(&[target]),
            Expr::Number(_) | Expr::Variable(_) => true,
        }
    }
}

/// Text with the slots' values in their places.
fn fill(text: &[u8], values: &[Vec<u8>]) -> Vec<u8> {
    if values.is_empty() {
        return text.to_vec();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            SLOT => {
                let slot = bytes.next().map_or(0, |number| usize::from(*number).wrapping_sub(1));
                out.extend_from_slice(values.get(slot).map_or(&[], Vec::as_slice));
            }
            _ => out.push(byte),
        }
    }
    out
}

fn strip_quotes(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !matches!(byte, b'\'' | b'"')).collect()
}

fn substitute(arith: &Arith, values: &[Vec<u8>]) -> Vec<u8> {
    let (mut text, mut slots) = (Vec::new(), Vec::new());
    super::flatten(&arith.word.pieces, &mut text, &mut slots);
    fill(&text, values)
}
