//! Expressions: as numbers, as values, as conditions, or for their effect alone.

use super::{Compiler, Label, Var, constant_field, is_simple};
use crate::ast::{Arith, Builtin, Expr, Name, Source};
use crate::code::{From, Op, Place, Step, StepAnswer, special};
use crate::error::Result;
use crate::number;
use crate::value::Value;

/// Which stack an expression's answer is on.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Num,
    Val,
}

impl Compiler {
    /// Whether an expression makes a number by itself.
    pub(super) fn is_num(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Number(_)
            | Expr::Update(..)
            | Expr::Step { .. }
            | Expr::And(..)
            | Expr::Or(..)
            | Expr::Not(_)
            | Expr::In(..)
            | Expr::Match { .. }
            | Expr::Compare(..)
            | Expr::Binary(..)
            | Expr::Negate(_)
            | Expr::Plus(_)
            | Expr::Regex(_)
            | Expr::Getline { .. } => true,
            Expr::Assign(target, value) => self.is_plain_var(target) && self.is_num(value),
            Expr::Cond(_, yes, no) => self.is_num(yes) && self.is_num(no),
            Expr::Group(inner) => self.is_num(inner),
            Expr::Builtin(builtin, _) => builtin.is_numeric(),
            Expr::Var(name) => self.counter(name).is_some(),
            _ => false,
        }
    }

    fn is_plain_var(&self, target: &Expr) -> bool {
        let Expr::Var(name) = target else { return false };
        self.locals.contains_key(name) || self.globals.get(name).is_none_or(|slot| *slot >= special::HOOKED)
    }

    /// The place of `NF`, `NR` or `FNR`.
    fn counter(&self, name: &Name) -> Option<u32> {
        let slot = *self.globals.get(name)?;
        (slot < special::COUNTERS && !self.locals.contains_key(name)).then_some(slot)
    }

    /// Compiles an expression to leave a number.
    pub(super) fn number(&mut self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::Group(inner) => return self.number(inner),
            Expr::Text(text) => self.emit(Op::Num(number::parse(text))),
            Expr::Var(name) => match self.var(name)? {
                Var::Global(slot) => self.emit(Op::GlobalNum(slot)),
                Var::Local(slot) => self.emit(Op::LocalNum(slot)),
                Var::Special(slot) if slot < special::COUNTERS => self.emit(Op::CounterNum(slot)),
                Var::Special(slot) => self.emit(Op::GlobalNum(slot)),
            },
            Expr::Field(index) => match constant_field(index) {
                Some(field) => self.emit(Op::FieldNum(field)),
                None => {
                    self.number(index)?;
                    self.emit(Op::FieldAtNum);
                }
            },
            Expr::Index(array, keys) => {
                let place = self.place(array)?;
                self.keys(keys)?;
                self.emit(Op::ElemNum(place));
            }
            expr => {
                if self.native(expr, true)? == Kind::Val {
                    self.emit(Op::Unbox);
                }
            }
        }
        Ok(())
    }

    /// Compiles an expression to leave a value.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<()> {
        if let Expr::Number(number) = expr {
            self.constant(Value::Num(*number));
        } else if self.native(expr, true)? == Kind::Num {
            self.emit(Op::Box);
        }
        Ok(())
    }

    /// Compiles an expression for what it does.
    pub(super) fn effect(&mut self, expr: &Expr) -> Result<()> {
        if let Expr::Group(inner) = expr {
            return self.effect(inner);
        }
        let leaves_nothing = matches!(expr, Expr::Assign(..) | Expr::Update(..) | Expr::Step { .. });
        let kind = self.native(expr, false)?;
        if !leaves_nothing {
            self.emit(if kind == Kind::Num { Op::DropNum } else { Op::Drop });
        }
        Ok(())
    }

    /// Compiles an expression to leave whatever it makes by itself; one that stores, only if `keep` says so.
    fn native(&mut self, expr: &Expr, keep: bool) -> Result<Kind> {
        let kind = if self.is_num(expr) { Kind::Num } else { Kind::Val };
        match expr {
            Expr::Number(number) => self.emit(Op::Num(*number)),
            Expr::Text(text) => self.constant(Value::text(text)),
            Expr::Regex(pattern) => {
                let regex = self.regex(pattern)?;
                self.emit(Op::MatchField { field: 0, regex, negated: false });
            }
            Expr::TypedRegex(pattern) => {
                let regex = self.regex(pattern)?;
                self.emit(Op::Regex(regex));
            }
            Expr::Var(_) | Expr::Field(_) | Expr::Index(..) => self.load(expr)?,
            Expr::Assign(target, value) => self.assign(target, value, keep)?,
            Expr::Update(op, target, value) => self.update(*op, target, value, keep)?,
            Expr::Step { target, up, prefix } => {
                let answer = match (keep, prefix) {
                    (false, _) => StepAnswer::None,
                    (true, true) => StepAnswer::New,
                    (true, false) => StepAnswer::Old,
                };
                self.step(target, Step { up: *up, answer })?;
            }
            Expr::Cond(test, yes, no) => self.conditional(kind, test, yes, no)?,
            Expr::And(..) | Expr::Or(..) | Expr::Not(_) => self.truth(expr)?,
            Expr::In(keys, array) => {
                let place = self.place(array)?;
                self.keys(keys)?;
                self.emit(Op::In(place));
            }
            Expr::Match { negated, subject, pattern } => self.matching(*negated, subject, pattern)?,
            Expr::Compare(relation, left, right) => {
                if self.is_num(left) && self.is_num(right) {
                    self.number(left)?;
                    self.number(right)?;
                    self.emit(Op::CompareNum(*relation));
                } else {
                    self.value(left)?;
                    self.value(right)?;
                    self.emit(Op::Compare(*relation));
                }
            }
            Expr::Concat(parts) => {
                parts.iter().try_for_each(|part| self.value(part))?;
                self.emit(Op::Concat(parts.len() as u32));
            }
            Expr::Binary(op, left, right) => self.binary(*op, left, right)?,
            Expr::Negate(inner) => match &**inner {
                Expr::Number(number) => self.emit(Op::Num(-number)),
                inner => {
                    self.number(inner)?;
                    self.emit(Op::Negate);
                }
            },
            Expr::Plus(inner) => self.number(inner)?,
            Expr::Group(inner) => return self.native(inner, keep),
            Expr::List(_) => return Err(self.error("a list stands where one value is needed")),
            Expr::Call(name, args, line) => {
                self.line = *line;
                self.call(name, args)?;
            }
            Expr::CallNamed(name, args) => {
                args.iter().try_for_each(|arg| self.argument(arg))?;
                self.load(&Expr::Var(name.clone()))?;
                self.emit(Op::CallNamed { args: args.len() as u32 });
            }
            Expr::Builtin(builtin, args) => self.builtin(*builtin, args)?,
            Expr::Getline { from, var } => self.getline(from, var.as_deref())?,
        }
        Ok(kind)
    }

    /// The value of a variable, a field or an element.
    fn load(&mut self, target: &Expr) -> Result<()> {
        match target {
            Expr::Var(name) => match self.var(name)? {
                Var::Local(slot) => self.emit(Op::Local(slot)),
                Var::Special(slot) if slot < special::COUNTERS => self.emit(Op::CounterNum(slot)),
                Var::Global(slot) | Var::Special(slot) => self.emit(Op::Global(slot)),
            },
            Expr::Index(array, keys) => {
                let place = self.place(array)?;
                self.keys(keys)?;
                self.emit(Op::Elem(place));
            }
            Expr::Field(index) => match constant_field(index) {
                Some(field) => self.emit(Op::Field(field)),
                None => {
                    self.number(index)?;
                    self.emit(Op::FieldAt);
                }
            },
            _ => return Err(self.not_assignable()),
        }
        Ok(())
    }

    fn not_assignable(&self) -> crate::error::Error {
        self.error("only a variable, a field or an element can be assigned to")
    }

    fn conditional(&mut self, kind: Kind, test: &Expr, yes: &Expr, no: &Expr) -> Result<()> {
        let (otherwise, end) = (self.label(), self.label());
        let answer = if kind == Kind::Num { Self::number } else { Self::value };
        self.branch(test, false, otherwise)?;
        answer(self, yes)?;
        self.emit(Op::Jump(end));
        self.bind(otherwise);
        answer(self, no)?;
        self.bind(end);
        Ok(())
    }

    /// A condition as 1 or 0.
    fn truth(&mut self, expr: &Expr) -> Result<()> {
        let (no, end) = (self.label(), self.label());
        self.branch(expr, false, no)?;
        self.emit(Op::Num(1.0));
        self.emit(Op::Jump(end));
        self.bind(no);
        self.emit(Op::Num(0.0));
        self.bind(end);
        Ok(())
    }

    /// Goes to a label if an expression holds, or if it does not.
    pub(super) fn branch(&mut self, expr: &Expr, when: bool, to: Label) -> Result<()> {
        match expr {
            Expr::Group(inner) => self.branch(inner, when, to)?,
            Expr::Not(inner) => self.branch(inner, !when, to)?,
            Expr::And(left, right) | Expr::Or(left, right) => {
                let is_and = matches!(expr, Expr::And(..));
                if is_and == when {
                    let past = self.label();
                    self.branch(left, !when, past)?;
                    self.branch(right, when, to)?;
                    self.bind(past);
                } else {
                    self.branch(left, when, to)?;
                    self.branch(right, when, to)?;
                }
            }
            Expr::Compare(relation, left, right) if self.is_num(left) && self.is_num(right) => {
                self.number(left)?;
                self.number(right)?;
                self.emit(Op::JumpCompareNum(*relation, when, to));
            }
            Expr::Compare(relation, left, right) => {
                self.value(left)?;
                self.value(right)?;
                self.emit(Op::JumpCompare(*relation, when, to));
            }
            expr if self.is_num(expr) => {
                self.number(expr)?;
                self.emit(Op::JumpNum(when, to));
            }
            expr => {
                self.value(expr)?;
                self.emit(Op::JumpVal(when, to));
            }
        }
        Ok(())
    }

    fn binary(&mut self, op: Arith, left: &Expr, right: &Expr) -> Result<()> {
        if let (Expr::Number(_), Expr::Number(0.0)) = (left, right)
            && matches!(op, Arith::Div | Arith::Mod)
        {
            let suffix = if op == Arith::Mod { " in `%'" } else { "" };
            return Err(self.error(&format!("division by zero attempted{suffix}")));
        }
        self.number(left)?;
        self.number(right)?;
        self.emit(match op {
            Arith::Add => Op::Add,
            Arith::Sub => Op::Sub,
            Arith::Mul => Op::Mul,
            op => Op::Arith(op),
        });
        Ok(())
    }

    fn matching(&mut self, negated: bool, subject: &Expr, pattern: &Expr) -> Result<()> {
        match pattern {
            Expr::Regex(pattern) | Expr::TypedRegex(pattern) => {
                let regex = self.regex(pattern)?;
                if let Expr::Field(index) = subject
                    && let Some(field) = constant_field(index)
                {
                    self.emit(Op::MatchField { field, regex, negated });
                } else {
                    self.value(subject)?;
                    self.emit(Op::Match { regex, negated });
                }
            }
            pattern => {
                self.value(subject)?;
                self.value(pattern)?;
                self.emit(Op::MatchDynamic { negated });
            }
        }
        Ok(())
    }

    /// The subscript of an element, as one value.
    pub(super) fn keys(&mut self, keys: &[Expr]) -> Result<()> {
        keys.iter().try_for_each(|key| self.value(key))?;
        if keys.len() > 1 {
            self.emit(Op::JoinKeys(keys.len() as u32));
        }
        Ok(())
    }

    fn assign(&mut self, target: &Expr, value: &Expr, keep: bool) -> Result<()> {
        if let Expr::Var(name) = target
            && self.is_plain_var(target)
        {
            if let Expr::Concat(parts) = value
                && matches!(&parts[0], Expr::Var(first) if first == name)
                && parts[1..].iter().all(is_simple)
            {
                return self.append(name, &parts[1..], keep);
            }
            if self.is_num(value) {
                self.number(value)?;
                match self.var(name)? {
                    Var::Local(slot) => self.emit(Op::SetLocalNum(slot, keep)),
                    Var::Global(slot) | Var::Special(slot) => self.emit(Op::SetGlobalNum(slot, keep)),
                }
                return Ok(());
            }
        }
        self.value(value)?;
        self.store(target, keep)
    }

    /// `x = x …`: of what a variable gets appended to itself, only the new part is copied.
    fn append(&mut self, name: &Name, parts: &[Expr], keep: bool) -> Result<()> {
        parts.iter().try_for_each(|part| self.value(part))?;
        if parts.len() > 1 {
            self.emit(Op::Concat(parts.len() as u32));
        }
        match self.var(name)? {
            Var::Local(slot) => self.emit(Op::AppendLocal(slot, keep)),
            Var::Global(slot) | Var::Special(slot) => self.emit(Op::AppendGlobal(slot, keep)),
        }
        Ok(())
    }

    /// Stores the value on the stack.
    pub(super) fn store(&mut self, target: &Expr, keep: bool) -> Result<()> {
        match target {
            Expr::Var(name) => match self.var(name)? {
                Var::Local(slot) => self.emit(Op::SetLocal(slot, keep)),
                Var::Global(slot) => self.emit(Op::SetGlobal(slot, keep)),
                Var::Special(slot) => self.emit(Op::SetSpecial(slot, keep)),
            },
            Expr::Field(index) => {
                self.number(index)?;
                self.emit(Op::SetField(keep));
            }
            Expr::Index(array, keys) => {
                let place = self.place(array)?;
                self.keys(keys)?;
                self.emit(Op::SetElem(place, keep));
            }
            _ => return Err(self.not_assignable()),
        }
        Ok(())
    }

    fn update(&mut self, op: Arith, target: &Expr, value: &Expr, keep: bool) -> Result<()> {
        self.number(value)?;
        match target {
            Expr::Var(name) => match self.var(name)? {
                Var::Local(slot) => self.emit(Op::UpdateLocal(slot, op, keep)),
                Var::Global(slot) => self.emit(Op::UpdateGlobal(slot, op, keep)),
                Var::Special(slot) => self.emit(Op::UpdateSpecial(slot, op, keep)),
            },
            Expr::Index(array, keys) => {
                let place = self.place(array)?;
                self.keys(keys)?;
                self.emit(Op::UpdateElem(place, op, keep));
            }
            Expr::Field(index) => {
                self.number(index)?;
                self.emit(Op::UpdateField(op, keep));
            }
            _ => return Err(self.not_assignable()),
        }
        Ok(())
    }

    fn step(&mut self, target: &Expr, step: Step) -> Result<()> {
        match target {
            Expr::Var(name) => match self.var(name)? {
                Var::Local(slot) => self.emit(Op::StepLocal(slot, step)),
                Var::Global(slot) => self.emit(Op::StepGlobal(slot, step)),
                Var::Special(slot) => self.emit(Op::StepSpecial(slot, step)),
            },
            Expr::Index(array, keys) => {
                let place = self.place(array)?;
                self.keys(keys)?;
                self.emit(Op::StepElem(place, step));
            }
            Expr::Field(index) => {
                self.number(index)?;
                self.emit(Op::StepField(step));
            }
            _ => return Err(self.not_assignable()),
        }
        Ok(())
    }

    fn call(&mut self, name: &Name, args: &[Expr]) -> Result<()> {
        let Some(&function) = self.functions.get(name) else {
            return Err(self.fatal(&format!("function `{name}' not defined")));
        };
        let params = self.code.functions[function as usize].params.len();
        args.iter().try_for_each(|arg| self.argument(arg))?;
        // Those without a parameter are evaluated in vain.
        args.iter().skip(params).for_each(|_| self.emit(Op::Drop));
        self.emit(Op::Call { function, args: args.len().min(params) as u32 });
        Ok(())
    }

    /// An argument for a function of the program's: a variable goes as it is, be it an array.
    pub(super) fn argument(&mut self, arg: &Expr) -> Result<()> {
        if let Expr::Var(name) = arg {
            match self.var(name)? {
                Var::Local(slot) => self.emit(Op::ArgLocal(slot)),
                Var::Global(slot) => self.emit(Op::ArgGlobal(slot)),
                Var::Special(_) => self.value(arg)?,
            }
            return Ok(());
        }
        if let Expr::Index(array, keys) = arg {
            let place = self.place(array)?;
            self.keys(keys)?;
            self.emit(Op::ArgElem(place));
            return Ok(());
        }
        self.value(arg)
    }

    fn builtin(&mut self, builtin: Builtin, args: &[Expr]) -> Result<()> {
        use Builtin::{Asort, Asorti, Gensub, Gsub, Isarray, Length, Match, Patsplit, Split, Sub, Typeof};
        if matches!(builtin, Sub | Gsub) {
            return self.substitution(builtin == Gsub, args);
        }
        let length_of = match args {
            [] => Some(0),
            [Expr::Field(index)] => constant_field(index),
            _ => None,
        };
        if let (Length, Some(field)) = (builtin, length_of) {
            self.emit(Op::LengthField(field));
            return Ok(());
        }
        for (index, arg) in args.iter().enumerate() {
            match (builtin, index) {
                (Split | Patsplit, 1 | 3) | (Match, 2) | (Asort | Asorti, 0 | 1) => {
                    let place = self.place(arg)?;
                    // One on the stack already is where it is wanted.
                    if place != Place::Stack {
                        self.emit(Op::Array(place));
                    }
                }
                (Split | Patsplit, 2) | (Match, 1) | (Gensub, 0) => self.pattern(arg)?,
                (Length | Isarray | Typeof, _) => self.argument(arg)?,
                _ => self.value(arg)?,
            }
        }
        self.emit(Op::Builtin(builtin, args.len() as u32));
        Ok(())
    }

    /// An argument that is a pattern: written as one, or a string to be taken as one.
    fn pattern(&mut self, arg: &Expr) -> Result<()> {
        match arg {
            Expr::Regex(pattern) | Expr::TypedRegex(pattern) => {
                let regex = self.regex(pattern)?;
                self.emit(Op::Regex(regex));
                Ok(())
            }
            arg => self.value(arg),
        }
    }

    fn substitution(&mut self, global: bool, args: &[Expr]) -> Result<()> {
        let record = Expr::Field(Box::new(Expr::Number(0.0)));
        let target = args.get(2).unwrap_or(&record);
        self.pattern(&args[0])?;
        self.value(&args[1])?;
        self.value(target)?;
        let skip = self.label();
        self.emit(Op::Subst { global, skip });
        match target {
            Expr::Var(_) | Expr::Field(_) | Expr::Index(..) => self.store(target, false)?,
            // What cannot be assigned to is changed in vain.
            _ => self.emit(Op::Drop),
        }
        self.bind(skip);
        Ok(())
    }

    fn getline(&mut self, from: &Source, var: Option<&Expr>) -> Result<()> {
        let from = match from {
            Source::Main => From::Main,
            Source::File(name) => {
                self.value(name)?;
                From::File
            }
            Source::Command(command) => {
                self.value(command)?;
                From::Command
            }
            Source::Coprocess(command) => {
                self.value(command)?;
                From::Coprocess
            }
        };
        match var {
            None => self.emit(Op::Getline(from)),
            Some(var) => {
                let skip = self.label();
                self.emit(Op::GetlineVar(from, skip));
                self.store(var, false)?;
                if let Expr::Index(..) = var {
                    // The element that was named is there, and its subscript was worked out, also if nothing was read.
                    let end = self.label();
                    self.emit(Op::Jump(end));
                    self.bind(skip);
                    self.value(var)?;
                    self.emit(Op::Drop);
                    self.bind(end);
                } else {
                    self.bind(skip);
                }
            }
        }
        Ok(())
    }
}
