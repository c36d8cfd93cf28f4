//! The operations, one after the other.

use super::{Flow, Frame, Machine, Origin, OriginVar, key_of};
use crate::array::{Array, new_array};
use crate::ast::{Arith, Relation};
use crate::code::{Code, Dest, Op, Place, Step, StepAnswer, special};
use crate::error::{Error, Result};
use crate::number;
use crate::streams::Kind;
use crate::text::{Str, char_count};
use crate::value::Value;
use std::cmp::Ordering;
use std::rc::Rc;

/// The greatest number of a field.
const LAST_FIELD: f64 = 10_000_000.0;

#[inline]
fn arith(op: Arith, left: f64, right: f64) -> Result<f64> {
    Ok(match op {
        Arith::Add => left + right,
        Arith::Sub => left - right,
        Arith::Mul => left * right,
        Arith::Div if right == 0.0 => return Err(Error::fatal("division by zero attempted")),
        Arith::Div => left / right,
        Arith::Mod if right == 0.0 => return Err(Error::fatal("division by zero attempted in `%'")),
        Arith::Mod => remainder(left, right),
        Arith::Pow => power(left, right),
    })
}

/// What C's `fmod` answers; of integers the machine knows it better than the library.
#[inline]
fn remainder(left: f64, right: f64) -> f64 {
    match (number::as_integer(left), number::as_integer(right)) {
        (Some(left), Some(right)) => (left % right) as f64,
        _ => left % right,
    }
}

/// By squaring for integers, which keeps what is exact exact.
fn power(base: f64, exponent: f64) -> f64 {
    match number::as_integer(exponent) {
        Some(integer) if integer.unsigned_abs() <= 1024 => {
            let (mut result, mut square, mut rest) = (1.0, base, integer.unsigned_abs());
            while rest > 0 {
                if rest & 1 == 1 {
                    result *= square;
                }
                square *= square;
                rest >>= 1;
            }
            if integer < 0 { 1.0 / result } else { result }
        }
        _ => base.powf(exponent),
    }
}

#[inline]
fn holds_num(relation: Relation, left: f64, right: f64) -> bool {
    match relation {
        Relation::Less => left < right,
        Relation::LessEqual => left <= right,
        Relation::Equal => left == right,
        Relation::NotEqual => left != right,
        Relation::Greater => left > right,
        Relation::GreaterEqual => left >= right,
    }
}

#[inline]
fn holds(relation: Relation, order: Ordering) -> bool {
    match relation {
        Relation::Less => order == Ordering::Less,
        Relation::LessEqual => order != Ordering::Greater,
        Relation::Equal => order == Ordering::Equal,
        Relation::NotEqual => order != Ordering::Equal,
        Relation::Greater => order == Ordering::Greater,
        Relation::GreaterEqual => order != Ordering::Less,
    }
}

#[inline]
fn truth(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

/// The place in the code, kept where the processor has it at hand; the one who asked learns it at the end.
struct Counter<'a> {
    pc: usize,
    place: &'a mut usize,
}

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        *self.place = self.pc;
    }
}

impl Machine {
    /// Runs the code from a place to where it ends.
    pub(super) fn run(&mut self, entry: u32) -> Result<Flow> {
        let marks =
            (self.values.len(), self.nums.len(), self.frames.len(), self.loops.len(), self.origins.len());
        let base = self.base;
        let mut pc = entry as usize;
        let code = Rc::clone(&self.code);
        let flow = self.steps(&code, &mut pc);
        // What ends in the middle leaves things behind.
        self.values.truncate(marks.0);
        self.nums.truncate(marks.1);
        self.frames.truncate(marks.2);
        self.loops.truncate(marks.3);
        self.origins.truncate(marks.4);
        self.base = base;
        match flow {
            Err(error) if error.code == super::input::EXITING => Ok(Flow::Exit),
            Err(error) if error.message.starts_with("fatal: ") => Err(self.locate(error, pc - 1)),
            flow => flow,
        }
    }

    #[inline]
    fn pop_num(&mut self) -> f64 {
        self.nums.pop().unwrap_or(0.0)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Value {
        self.values.pop().unwrap_or_default()
    }

    #[inline]
    fn push_if(&mut self, keep: bool, number: f64) {
        if keep {
            self.nums.push(number);
        }
    }

    /// Operation after operation. Where it ended is in `place`, whatever ended it.
    fn steps(&mut self, code: &Code, place: &mut usize) -> Result<Flow> {
        let mut counter = Counter { pc: *place, place };
        loop {
            let op = code.ops[counter.pc];
            counter.pc += 1;
            match op {
                Op::Num(number) => self.nums.push(number),
                Op::Const(index) => self.values.push(code.constants[index as usize].clone()),
                Op::Regex(index) => self.values.push(Value::Regex(Rc::clone(&self.regexes[index as usize]))),
                Op::GlobalNum(slot) => {
                    let number = match &self.globals[slot as usize] {
                        Value::Num(number) => *number,
                        Value::Array(_) => return Err(self.is_array(Place::Global(slot))),
                        other => other.to_num(),
                    };
                    self.nums.push(number);
                }
                Op::LocalNum(slot) => {
                    let number = match &self.values[self.base + slot as usize] {
                        Value::Num(number) => *number,
                        Value::Array(_) => return Err(self.is_array(Place::Local(slot))),
                        other => other.to_num(),
                    };
                    self.nums.push(number);
                }
                Op::CounterNum(slot) => {
                    let number = self.counter(slot);
                    self.nums.push(number);
                }
                Op::FieldNum(index) => {
                    let number = self.record.number(index as usize);
                    self.nums.push(number);
                }
                Op::FieldAtNum => {
                    let index = self.pop_field()?;
                    let number = self.record.number(index);
                    self.nums.push(number);
                }
                Op::ElemNum(place) => {
                    let number = self.with_element(place, |element| element.to_num())?;
                    self.nums.push(number);
                }
                Op::Global(slot) => match &self.globals[slot as usize] {
                    Value::Array(_) => return Err(self.is_array(Place::Global(slot))),
                    value => self.values.push(value.clone()),
                },
                Op::Local(slot) => match &self.values[self.base + slot as usize] {
                    Value::Array(_) => return Err(self.is_array(Place::Local(slot))),
                    value => {
                        let value = value.clone();
                        self.values.push(value);
                    }
                },
                Op::Field(index) => {
                    let value = self.record.value(index as usize);
                    self.values.push(value);
                }
                Op::FieldAt => {
                    let index = self.pop_field()?;
                    let value = self.record.value(index);
                    self.values.push(value);
                }
                Op::Elem(place) => {
                    let value = self.with_element(place, |element| element.clone())?;
                    self.values.push(value);
                }
                Op::ArgGlobal(_) | Op::ArgLocal(_) => self.push_argument(op),
                Op::ArgElem(place) => self.push_element(place)?,
                Op::Array(place) => {
                    let array = self.array(place)?;
                    self.values.push(Value::Array(array));
                }
                Op::SubArray(place) => self.push_sub_array(place)?,
                Op::JoinKeys(count) => self.join_keys(count as usize),

                Op::Box => {
                    let number = self.pop_num();
                    self.values.push(Value::Num(number));
                }
                Op::Unbox => {
                    let number = self.pop().to_num();
                    self.nums.push(number);
                }
                Op::Drop => drop(self.pop()),
                Op::DropNum => drop(self.pop_num()),

                Op::Add => self.binary(|left, right| left + right),
                Op::Sub => self.binary(|left, right| left - right),
                Op::Mul => self.binary(|left, right| left * right),
                Op::Arith(op) => {
                    let right = self.pop_num();
                    let left = self.pop_num();
                    self.nums.push(arith(op, left, right)?);
                }
                Op::Negate => {
                    let number = self.pop_num();
                    self.nums.push(-number);
                }
                Op::CompareNum(relation) => {
                    self.binary(|left, right| truth(holds_num(relation, left, right)))
                }
                Op::Compare(relation) => {
                    let holds = self.compare(relation);
                    self.nums.push(truth(holds));
                }
                Op::Concat(count) => self.concat(count as usize),
                Op::Match { regex, negated } => {
                    let subject = self.pop().to_str(&self.convfmt);
                    let found = self.regexes[regex as usize].is_match(subject.as_bytes());
                    self.nums.push(truth(found != negated));
                }
                Op::MatchField { field, regex, negated } => {
                    let found = self.regexes[regex as usize].is_match(self.record.bytes(field as usize));
                    self.nums.push(truth(found != negated));
                }
                Op::MatchDynamic { negated } => {
                    let pattern = self.pop();
                    let regex = self.pattern_of(&pattern)?;
                    let subject = self.pop().to_str(&self.convfmt);
                    self.nums.push(truth(regex.is_match(subject.as_bytes()) != negated));
                }
                Op::In(place) => {
                    let key = self.pop();
                    let array = self.array(place)?;
                    let found = array.borrow().contains(key_of(&key, &mut self.scratch, &self.convfmt));
                    self.nums.push(truth(found));
                }

                Op::SetGlobal(slot, keep) => {
                    let value = self.pop();
                    if keep {
                        self.values.push(value.clone());
                    }
                    let variable = &mut self.globals[slot as usize];
                    if let Value::Array(_) = variable {
                        return Err(self.is_array(Place::Global(slot)));
                    }
                    *variable = value;
                }
                Op::SetLocal(slot, keep) => {
                    let value = self.pop();
                    if keep {
                        self.values.push(value.clone());
                    }
                    let variable = &mut self.values[self.base + slot as usize];
                    if let Value::Array(_) = variable {
                        return Err(self.is_array(Place::Local(slot)));
                    }
                    *variable = value;
                }
                Op::SetSpecial(slot, keep) => {
                    let value = self.pop();
                    if keep {
                        self.values.push(value.clone());
                    }
                    self.set_special(slot, value)?;
                }
                Op::SetField(keep) => {
                    let index = self.pop_field()?;
                    let value = self.pop();
                    if keep {
                        self.values.push(value.clone());
                    }
                    self.record.set(index, value);
                }
                Op::SetElem(place, keep) => self.set_element(place, keep)?,
                Op::SetGlobalNum(slot, keep) => {
                    let number = self.pop_num();
                    self.push_if(keep, number);
                    let variable = &mut self.globals[slot as usize];
                    if let Value::Array(_) = variable {
                        return Err(self.is_array(Place::Global(slot)));
                    }
                    *variable = Value::Num(number);
                }
                Op::SetLocalNum(slot, keep) => {
                    let number = self.pop_num();
                    self.push_if(keep, number);
                    let variable = &mut self.values[self.base + slot as usize];
                    if let Value::Array(_) = variable {
                        return Err(self.is_array(Place::Local(slot)));
                    }
                    *variable = Value::Num(number);
                }
                Op::AppendGlobal(slot, keep) => {
                    let more = self.pop();
                    let variable = std::mem::take(&mut self.globals[slot as usize]);
                    self.globals[slot as usize] = self.appended(variable, &more, Place::Global(slot))?;
                    if keep {
                        let value = self.globals[slot as usize].clone();
                        self.values.push(value);
                    }
                }
                Op::AppendLocal(slot, keep) => {
                    let more = self.pop();
                    let index = self.base + slot as usize;
                    let variable = std::mem::take(&mut self.values[index]);
                    self.values[index] = self.appended(variable, &more, Place::Local(slot))?;
                    if keep {
                        let value = self.values[index].clone();
                        self.values.push(value);
                    }
                }
                Op::UpdateGlobal(slot, op, keep) => {
                    let number = self.pop_num();
                    let variable = &mut self.globals[slot as usize];
                    if let Value::Array(_) = variable {
                        return Err(self.is_array(Place::Global(slot)));
                    }
                    let number = arith(op, variable.to_num(), number)?;
                    *variable = Value::Num(number);
                    self.push_if(keep, number);
                }
                Op::UpdateLocal(slot, op, keep) => {
                    let number = self.pop_num();
                    let variable = &mut self.values[self.base + slot as usize];
                    if let Value::Array(_) = variable {
                        return Err(self.is_array(Place::Local(slot)));
                    }
                    let number = arith(op, variable.to_num(), number)?;
                    *variable = Value::Num(number);
                    self.push_if(keep, number);
                }
                Op::UpdateSpecial(slot, op, keep) => {
                    let number = self.pop_num();
                    let number = arith(op, self.special_number(slot), number)?;
                    self.set_special(slot, Value::Num(number))?;
                    self.push_if(keep, number);
                }
                Op::UpdateField(op, keep) => {
                    let index = self.pop_field()?;
                    let number = self.pop_num();
                    let number = arith(op, self.record.number(index), number)?;
                    self.record.set(index, Value::Num(number));
                    self.push_if(keep, number);
                }
                Op::UpdateElem(place, op, keep) => {
                    let number = self.pop_num();
                    let number = self.with_element(place, |element| {
                        let number = arith(op, element.to_num(), number)?;
                        *element = Value::Num(number);
                        Ok(number)
                    })??;
                    self.push_if(keep, number);
                }
                Op::StepGlobal(slot, step) => {
                    let variable = &mut self.globals[slot as usize];
                    if let Value::Array(_) = variable {
                        return Err(self.is_array(Place::Global(slot)));
                    }
                    let old = take_step(variable, step);
                    self.answer_step(step, old);
                }
                Op::StepLocal(slot, step) => {
                    let variable = &mut self.values[self.base + slot as usize];
                    if let Value::Array(_) = variable {
                        return Err(self.is_array(Place::Local(slot)));
                    }
                    let old = take_step(variable, step);
                    self.answer_step(step, old);
                }
                Op::StepSpecial(slot, step) => {
                    let mut value = Value::Num(self.special_number(slot));
                    let old = take_step(&mut value, step);
                    self.set_special(slot, value)?;
                    self.answer_step(step, old);
                }
                Op::StepField(step) => {
                    let index = self.pop_field()?;
                    let mut value = Value::Num(self.record.number(index));
                    let old = take_step(&mut value, step);
                    self.record.set(index, value);
                    self.answer_step(step, old);
                }
                Op::StepElem(place, step) => {
                    let old = self.with_element(place, |element| take_step(element, step))?;
                    self.answer_step(step, old);
                }
                Op::Delete(place) => {
                    let key = self.pop();
                    let array = self.array(place)?;
                    array.borrow_mut().delete(key_of(&key, &mut self.scratch, &self.convfmt));
                }
                Op::DeleteAll(place) => self.array(place)?.borrow_mut().clear(),

                Op::Jump(to) => counter.pc = to as usize,
                Op::JumpNum(when, to) => {
                    if (self.pop_num() != 0.0) == when {
                        counter.pc = to as usize;
                    }
                }
                Op::JumpVal(when, to) => {
                    if self.pop().is_true() == when {
                        counter.pc = to as usize;
                    }
                }
                Op::JumpCompareNum(relation, when, to) => {
                    let right = self.pop_num();
                    let left = self.pop_num();
                    if holds_num(relation, left, right) == when {
                        counter.pc = to as usize;
                    }
                }
                Op::JumpCompare(relation, when, to) => {
                    if self.compare(relation) == when {
                        counter.pc = to as usize;
                    }
                }
                Op::JumpInRange(range, to) => {
                    if self.ranges[range as usize] {
                        counter.pc = to as usize;
                    }
                }
                Op::SetRange(range, inside) => self.ranges[range as usize] = inside,
                Op::CaseEqual(to) => {
                    let case = self.pop();
                    let subject = self.pop();
                    if subject.compare(&case, &self.convfmt) == Ordering::Equal {
                        counter.pc = to as usize;
                    } else {
                        self.values.push(subject);
                    }
                }
                Op::CaseMatch(regex, to) => {
                    let subject = self.pop();
                    let text = subject.to_str(&self.convfmt);
                    if self.regexes[regex as usize].is_match(text.as_bytes()) {
                        counter.pc = to as usize;
                    } else {
                        self.values.push(subject);
                    }
                }
                Op::ForIn(place) => {
                    let array = self.array(place)?;
                    let keys = self.keys_in_order(&array)?;
                    self.loops.push(keys.into_iter());
                }
                Op::NextKey(end) => match self.loops.last_mut().and_then(Iterator::next) {
                    Some(key) => self.values.push(key.to_value()),
                    None => {
                        self.loops.pop();
                        counter.pc = end as usize;
                    }
                },
                Op::EndForIn => drop(self.loops.pop()),
                Op::Call { function, args } => {
                    counter.pc = self.enter(function, args as usize, counter.pc as u32)?
                }
                Op::CallNamed { args } => {
                    let name = self.pop().to_str(&self.convfmt);
                    let function = self.function_named(name.as_bytes(), args as usize)?;
                    counter.pc = self.enter(function, args as usize, counter.pc as u32)?;
                }
                Op::Return => match self.leave() {
                    super::OUTSIDE => return Ok(Flow::Done),
                    back => counter.pc = back as usize,
                },
                Op::Next => return Ok(Flow::Next),
                Op::NextFile => return Ok(Flow::NextFile),
                Op::Exit { with_code } => {
                    if with_code {
                        self.exit_code = self.pop_num() as i64 as i32;
                    }
                    return Ok(Flow::Exit);
                }
                Op::Stop => return Ok(Flow::Done),

                Op::Getline(from) => {
                    let answer = self.getline(from)?;
                    self.nums.push(answer);
                }
                Op::GetlineVar(from, skip) => {
                    if !self.getline_var(from)? {
                        counter.pc = skip as usize;
                    }
                }
                Op::OutField(index) => self.line.extend_from_slice(self.record.bytes(index as usize)),
                Op::OutConst(index) => code.constants[index as usize].append_to(&mut self.line, b""),
                Op::Out => {
                    let value = self.pop();
                    value.append_to(&mut self.line, &self.ofmt);
                }
                Op::OutNum => {
                    let number = self.pop_num();
                    number::append(&mut self.line, number, &self.ofmt);
                }
                Op::OutSeparator => self.line.extend_from_slice(&self.ofs),
                Op::EndPrint(dest) => {
                    self.line.extend_from_slice(&self.ors);
                    self.send_line(dest)?;
                }
                Op::Print(count, dest) => self.print(count as usize, dest)?,
                Op::Printf(count, dest) => self.printf(count as usize, dest)?,
                Op::LengthField(index) => {
                    let length = char_count(self.record.bytes(index as usize));
                    self.nums.push(length as f64);
                }
                Op::Builtin(builtin, args) => self.builtin(builtin, args as usize)?,
                Op::Subst { global, skip } => {
                    if !self.substitute(global)? {
                        counter.pc = skip as usize;
                    }
                }
            }
        }
    }

    #[inline]
    fn binary(&mut self, op: impl FnOnce(f64, f64) -> f64) {
        let right = self.pop_num();
        let left = self.pop_num();
        self.nums.push(op(left, right));
    }

    fn is_array(&self, place: Place) -> Error {
        match place {
            Place::Global(slot) => {
                let name = &self.code.globals[slot as usize];
                Error::fatal(format_args!("attempt to use array `{name}' in a scalar context"))
            }
            Place::Local(slot) => {
                let name = self.local_name(slot);
                Error::fatal(format_args!("attempt to use array `{name}' in a scalar context"))
            }
            Place::Stack => Error::fatal("attempt to use an array in a scalar context"),
        }
    }

    /// The number of a field.
    fn pop_field(&mut self) -> Result<usize> {
        let number = self.pop_num();
        if number < 0.0 {
            return Err(Error::fatal(format_args!("attempt to access field {}", number.trunc())));
        }
        if number > LAST_FIELD {
            return Err(Error::fatal(format_args!("field {number}: out of memory")));
        }
        Ok(number as usize)
    }

    fn special_number(&mut self, slot: u32) -> f64 {
        if slot < special::COUNTERS { self.counter(slot) } else { self.globals[slot as usize].to_num() }
    }

    fn compare(&mut self, relation: Relation) -> bool {
        let right = self.pop();
        let left = self.pop();
        if let (Some(left), Some(right)) = (left.numeric(), right.numeric()) {
            return holds_num(relation, left, right);
        }
        if self.ignore_case {
            let folded = |value: &Value| {
                String::from_utf8_lossy(value.to_str(&self.convfmt).as_bytes()).to_lowercase()
            };
            return holds(relation, folded(&left).cmp(&folded(&right)));
        }
        holds(relation, left.compare(&right, &self.convfmt))
    }

    /// Does something to the element whose subscript is on the stack; it is made if it is not there.
    #[inline]
    fn with_element<T>(&mut self, place: Place, act: impl FnOnce(&mut Value) -> T) -> Result<T> {
        let key = self.pop();
        let array = self.array(place)?;
        let mut table = array.borrow_mut();
        let element = table.entry(key_of(&key, &mut self.scratch, &self.convfmt));
        match element {
            Value::Array(_) => Err(self.is_array(Place::Stack)),
            element => Ok(act(element)),
        }
    }

    fn set_element(&mut self, place: Place, keep: bool) -> Result<()> {
        let key = self.pop();
        let array = self.array(place)?;
        let value = self.pop();
        if keep {
            self.values.push(value.clone());
        }
        let mut table = array.borrow_mut();
        match table.entry(key_of(&key, &mut self.scratch, &self.convfmt)) {
            Value::Array(_) => Err(self.is_array(Place::Stack)),
            element => {
                *element = value;
                Ok(())
            }
        }
    }

    fn push_sub_array(&mut self, place: Place) -> Result<()> {
        let key = self.pop();
        let outer = self.array(place)?;
        let mut table = outer.borrow_mut();
        let element = table.entry(key_of(&key, &mut self.scratch, &self.convfmt));
        let array: Array = match element {
            Value::Array(array) => Rc::clone(array),
            Value::Uninit => {
                let array = new_array();
                *element = Value::Array(Rc::clone(&array));
                array
            }
            _ => return Err(Error::fatal("attempt to use a scalar value as array")),
        };
        self.values.push(Value::Array(array));
        Ok(())
    }

    fn push_argument(&mut self, op: Op) {
        let (value, from) = match op {
            Op::ArgGlobal(slot) => (self.globals[slot as usize].clone(), OriginVar::Global(slot)),
            Op::ArgLocal(slot) => {
                let index = self.base + slot as usize;
                (self.values[index].clone(), OriginVar::Stack(index))
            }
            _ => return,
        };
        if let Value::Uninit = value {
            self.origins.push(Origin { param: self.values.len(), from });
        }
        self.values.push(value);
    }

    fn push_element(&mut self, place: Place) -> Result<()> {
        let key = self.pop();
        let array = self.array(place)?;
        let key = key_of(&key, &mut self.scratch, &self.convfmt);
        let value = array.borrow_mut().entry(key).clone();
        if let Value::Uninit = value {
            let from = OriginVar::Element(Rc::clone(&array), key.to_key());
            self.origins.push(Origin { param: self.values.len(), from });
        }
        self.values.push(value);
        Ok(())
    }

    /// Forgets where values came from that are no longer on the stack.
    pub(super) fn forget_origins(&mut self, from: usize) {
        while self.origins.last().is_some_and(|origin| origin.param >= from) {
            self.origins.pop();
        }
    }

    fn join_keys(&mut self, count: usize) {
        let mut key = Vec::new();
        let start = self.values.len() - count;
        for (index, value) in self.values.drain(start..).enumerate() {
            if index > 0 {
                key.extend_from_slice(&self.subsep);
            }
            value.append_to(&mut key, &self.convfmt);
        }
        self.values.push(Value::Str(key.into()));
    }

    fn concat(&mut self, count: usize) {
        self.scratch.clear();
        let start = self.values.len() - count;
        for value in self.values.drain(start..) {
            value.append_to(&mut self.scratch, &self.convfmt);
        }
        self.values.push(Value::Str(Str::new(&self.scratch)));
    }

    /// A variable's value with more behind it.
    fn appended(&mut self, variable: Value, more: &Value, place: Place) -> Result<Value> {
        let mut text = match variable {
            Value::Str(text) | Value::Strnum(text) => text,
            Value::Array(_) => return Err(self.is_array(place)),
            other => other.to_str(&self.convfmt),
        };
        match more {
            Value::Str(more) | Value::Strnum(more) => text.push(more.as_bytes()),
            more => text.push(more.to_str(&self.convfmt).as_bytes()),
        }
        Ok(Value::Str(text))
    }

    #[inline]
    fn answer_step(&mut self, step: Step, old: f64) {
        match step.answer {
            StepAnswer::None => {}
            StepAnswer::Old => self.nums.push(old),
            StepAnswer::New => self.nums.push(if step.up { old + 1.0 } else { old - 1.0 }),
        }
    }

    /// Begins a call whose arguments are on the stack; answers where the function begins.
    fn enter(&mut self, function: u32, args: usize, back: u32) -> Result<usize> {
        if self.frames.len() >= super::DEEPEST {
            return Err(Error::fatal("function calls are nested too deeply"));
        }
        self.forget_origins(self.values.len());
        let called = &self.code.functions[function as usize];
        let (entry, params) = (called.entry as usize, called.params.len());
        let origins = self.origins.iter().rposition(|origin| origin.param + args < self.values.len());
        let base = self.values.len() - args;
        self.frames.push(Frame {
            function,
            back,
            base: self.base,
            loops: self.loops.len(),
            origins: origins.map_or(0, |at| at + 1),
        });
        self.base = base;
        self.values.resize(base + params, Value::Uninit);
        Ok(entry)
    }

    /// Ends a call, its answer on the stack; answers where the caller goes on.
    fn leave(&mut self) -> u32 {
        let answer = self.pop();
        self.values.truncate(self.base);
        let Some(frame) = self.frames.pop() else { return super::OUTSIDE };
        self.base = frame.base;
        self.loops.truncate(frame.loops);
        self.origins.truncate(frame.origins);
        self.values.push(answer);
        frame.back
    }

    /// Calls a function from outside of the code.
    pub(super) fn call(&mut self, function: u32, args: Vec<Value>) -> Result<Value> {
        let count = args.len();
        self.values.extend(args);
        let entry = self.enter(function, count, super::OUTSIDE)?;
        // `enter` made the frame that `leave` takes away, which the marks of `run` must not count.
        let code = Rc::clone(&self.code);
        let mut pc = entry;
        match self.steps(&code, &mut pc)? {
            Flow::Done => Ok(self.pop()),
            _ => {
                Err(Error::fatal("a function that compares cannot end the program or go to the next record"))
            }
        }
    }

    pub(super) fn function_named(&self, name: &[u8], args: usize) -> Result<u32> {
        let shown = String::from_utf8_lossy(name);
        let found = self.code.functions.iter().position(|function| function.name.as_bytes() == name);
        let index = found.ok_or_else(|| Error::fatal(format_args!("function `{shown}' not defined")))?;
        if args > self.code.functions[index].params.len() {
            return Err(Error::fatal(format_args!(
                "function `{shown}' called with more arguments than declared"
            )));
        }
        Ok(index as u32)
    }

    /// Sends the line that was put together to where it goes.
    fn send_line(&mut self, dest: Dest) -> Result<()> {
        if dest == Dest::Stdout {
            let written = self.streams.print(&self.line);
            self.line.clear();
            return written
                .map_err(|error| Error::fatal(format_args!("print to \"standard output\" failed: {error}")));
        }
        let line = std::mem::take(&mut self.line);
        let name = self.pop().to_str(&self.convfmt);
        let (kind, verb) = match dest {
            Dest::Command => (Kind::Command, "open pipe"),
            Dest::Coprocess => (Kind::Coprocess, "open two way pipe"),
            Dest::Append => (Kind::Append, "redirect to"),
            _ => (Kind::File, "redirect to"),
        };
        if name.as_bytes().is_empty() {
            return Err(Error::fatal("expression for redirection has null string value"));
        }
        let (globals, convfmt) = (&self.globals, &self.convfmt);
        let environment = || super::environment(globals, convfmt);
        if kind == Kind::Coprocess && self.streams.is_half_closed(name.as_bytes(), true) {
            return Err(Error::fatal("print: attempt to write to closed write end of two-way pipe"));
        }
        let written = self.streams.print_to(name.as_bytes(), kind, &line, &environment);
        self.line = line;
        self.line.clear();
        written.map_err(|error| {
            Error::fatal(format_args!(
                "cannot {verb} `{}': {error}",
                String::from_utf8_lossy(name.as_bytes())
            ))
        })
    }

    /// The values below where the output goes, taken off the stack.
    fn printed(&mut self, count: usize, dest: Dest) -> (Vec<Value>, Option<Value>) {
        let target = (dest != Dest::Stdout).then(|| self.pop());
        let start = self.values.len() - count;
        (self.values.split_off(start), target)
    }

    fn print(&mut self, count: usize, dest: Dest) -> Result<()> {
        let (values, target) = self.printed(count, dest);
        if values.is_empty() {
            self.line.extend_from_slice(self.record.text());
        }
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.line.extend_from_slice(&self.ofs);
            }
            value.append_to(&mut self.line, &self.ofmt);
        }
        self.line.extend_from_slice(&self.ors);
        self.values.extend(target);
        self.send_line(dest)
    }

    fn printf(&mut self, count: usize, dest: Dest) -> Result<()> {
        let (values, target) = self.printed(count, dest);
        let text = self.format(&values)?;
        self.line.extend_from_slice(&text);
        self.values.extend(target);
        self.send_line(dest)
    }
}

/// Adds or takes one; answers the number before.
#[inline]
fn take_step(variable: &mut Value, step: Step) -> f64 {
    let old = variable.to_num();
    *variable = Value::Num(if step.up { old + 1.0 } else { old - 1.0 });
    old
}
