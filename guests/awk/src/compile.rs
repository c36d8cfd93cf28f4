//! From a program to its code: rules and statements. Expressions are in `compile/expr.rs`.

mod expr;

use crate::ast::{Expr, Line, Name, Pattern, Program, Redirect, RedirectKind, Rule, Stmt, StmtKind};
use crate::code::{Code, Dest, FunctionCode, Op, Place, special};
use crate::error::{Error, Result};
use crate::parser::place_name;
use crate::regex;
use crate::value::Value;
use std::collections::HashMap;
use std::rc::Rc;

/// Compiles a program.
pub fn compile(program: &Program, sources: Vec<Option<String>>) -> Result<Code> {
    let mut compiler = Compiler::new(program, sources)?;
    compiler.code.begin = compiler.actions(&program.begin, Context::BeginOrEnd)?;
    compiler.code.begin_file = compiler.actions(&program.begin_file, Context::BeginFile)?;
    compiler.code.rules = compiler.rules(&program.rules)?;
    compiler.code.end_file = compiler.actions(&program.end_file, Context::BeginOrEnd)?;
    compiler.code.end = compiler.actions(&program.end, Context::BeginOrEnd)?;
    for (index, function) in program.functions.iter().enumerate() {
        compiler.line = function.line;
        compiler.locals =
            function.params.iter().enumerate().map(|(slot, name)| (name.clone(), slot as u32)).collect();
        compiler.code.functions[index].entry = compiler.here();
        compiler.context = Context::Function;
        compiler.statements(&function.body)?;
        compiler.constant(Value::Uninit);
        compiler.emit(Op::Return);
        compiler.locals.clear();
    }
    compiler.finish();
    Ok(compiler.code)
}

/// What kind of action is being compiled.
#[derive(Clone, Copy, PartialEq)]
enum Context {
    BeginOrEnd,
    BeginFile,
    Rule,
    Function,
}

/// A place to go to, which may not be known yet.
type Label = u32;

/// A statement that `break`, and `continue` if it is a loop, refer to.
struct Breakable {
    on_break: Label,
    on_continue: Option<Label>,
}

struct Compiler {
    code: Code,
    globals: HashMap<Name, u32>,
    functions: HashMap<Name, u32>,
    locals: HashMap<Name, u32>,
    labels: Vec<u32>,
    breakables: Vec<Breakable>,
    context: Context,
    line: Line,
}

/// Where a variable is.
enum Var {
    Global(u32),
    Special(u32),
    Local(u32),
}

impl Compiler {
    fn new(program: &Program, sources: Vec<Option<String>>) -> Result<Compiler> {
        let mut functions = HashMap::new();
        let mut code = Code { sources, ..Code::default() };
        for function in &program.functions {
            functions.insert(function.name.clone(), code.functions.len() as u32);
            let (name, params) = (function.name.clone(), function.params.clone());
            code.functions.push(FunctionCode { name, entry: 0, params });
        }
        code.globals = special::NAMES.iter().map(|name| Name::from(*name)).collect();
        let globals = code.globals.iter().cloned().zip(0..).collect();
        let mut compiler = Compiler {
            code,
            globals,
            functions,
            locals: HashMap::new(),
            labels: Vec::new(),
            breakables: Vec::new(),
            context: Context::Rule,
            line: Line::default(),
        };
        for function in &program.functions {
            compiler.line = function.line;
            if let Some(param) = function.params.iter().find(|param| compiler.functions.contains_key(*param))
            {
                let message = format!(
                    "function `{}': cannot use function name `{param}' as a parameter name",
                    function.name
                );
                return Err(compiler.error(&message));
            }
        }
        Ok(compiler)
    }

    fn error(&self, message: &str) -> Error {
        let name = self.code.sources.get(self.line.source as usize).cloned().flatten();
        Error::syntax(format!("{}error: {message}", place_name(name.as_deref(), self.line.number)))
    }

    fn fatal(&self, message: &str) -> Error {
        let name = self.code.sources.get(self.line.source as usize).cloned().flatten();
        Error {
            message: format!("{}fatal: {message}", place_name(name.as_deref(), self.line.number)),
            code: 2,
        }
    }

    fn here(&self) -> u32 {
        self.code.ops.len() as u32
    }

    fn emit(&mut self, op: Op) {
        self.code.ops.push(op);
        self.code.lines.push(self.line);
    }

    fn label(&mut self) -> Label {
        self.labels.push(u32::MAX);
        self.labels.len() as u32 - 1
    }

    fn bind(&mut self, label: Label) {
        self.labels[label as usize] = self.here();
    }

    /// Puts the places of labels where their numbers are.
    fn finish(&mut self) {
        let labels = &self.labels;
        for op in &mut self.code.ops {
            match op {
                Op::Jump(to)
                | Op::JumpNum(_, to)
                | Op::JumpVal(_, to)
                | Op::JumpCompareNum(_, _, to)
                | Op::JumpCompare(_, _, to)
                | Op::JumpInRange(_, to)
                | Op::CaseEqual(to)
                | Op::CaseMatch(_, to)
                | Op::NextKey(to)
                | Op::GetlineVar(_, to)
                | Op::Subst { skip: to, .. } => *to = labels[*to as usize],
                _ => {}
            }
        }
    }

    fn constant(&mut self, value: Value) {
        let index = self.constant_index(value);
        self.emit(Op::Const(index));
    }

    fn constant_index(&mut self, value: Value) -> u32 {
        self.code.constants.push(value);
        self.code.constants.len() as u32 - 1
    }

    fn regex(&mut self, pattern: &[u8]) -> Result<u32> {
        let regex = regex::compile(pattern, false)
            .map_err(|error| self.error(&format!("{error}: /{}/", String::from_utf8_lossy(pattern))))?;
        self.code.regexes.push(Rc::new(regex));
        Ok(self.code.regexes.len() as u32 - 1)
    }

    fn var(&mut self, name: &Name) -> Result<Var> {
        if let Some(slot) = self.locals.get(name) {
            return Ok(Var::Local(*slot));
        }
        if self.functions.contains_key(name) {
            return Err(self.error(&format!("function `{name}' used as a variable")));
        }
        if matches!(&**name, "SYMTAB" | "FUNCTAB") {
            return Err(self.fatal(&format!("`{name}' is not supported")));
        }
        if let Some(slot) = self.globals.get(name) {
            return Ok(if *slot < special::HOOKED { Var::Special(*slot) } else { Var::Global(*slot) });
        }
        let slot = self.code.globals.len() as u32;
        self.code.globals.push(name.clone());
        self.globals.insert(name.clone(), slot);
        Ok(Var::Global(slot))
    }

    fn actions(&mut self, actions: &[Vec<Stmt>], context: Context) -> Result<Option<u32>> {
        if actions.is_empty() {
            return Ok(None);
        }
        self.context = context;
        let entry = self.here();
        for action in actions {
            self.statements(action)?;
        }
        self.emit(Op::Stop);
        Ok(Some(entry))
    }

    fn rules(&mut self, rules: &[Rule]) -> Result<Option<u32>> {
        if rules.is_empty() {
            return Ok(None);
        }
        self.context = Context::Rule;
        let entry = self.here();
        for rule in rules {
            self.line = rule.line;
            let skip = self.label();
            match &rule.pattern {
                Pattern::Always => {}
                Pattern::When(test) => self.branch(test, false, skip)?,
                Pattern::Range(first, last) => self.range(first, last, skip)?,
            }
            match &rule.action {
                Some(action) => self.statements(action)?,
                None => {
                    self.emit(Op::OutField(0));
                    self.emit(Op::EndPrint(Dest::Stdout));
                }
            }
            self.bind(skip);
        }
        self.emit(Op::Stop);
        Ok(Some(entry))
    }

    fn range(&mut self, first: &Expr, last: &Expr, skip: Label) -> Result<()> {
        let range = self.code.ranges as u32;
        self.code.ranges += 1;
        let (inside, matched) = (self.label(), self.label());
        self.emit(Op::JumpInRange(range, inside));
        self.branch(first, false, skip)?;
        self.emit(Op::SetRange(range, true));
        self.bind(inside);
        self.branch(last, false, matched)?;
        self.emit(Op::SetRange(range, false));
        self.bind(matched);
        Ok(())
    }

    fn statements(&mut self, statements: &[Stmt]) -> Result<()> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt) -> Result<()> {
        self.line = statement.line;
        match &statement.kind {
            StmtKind::Expr(expr) => self.effect(expr),
            StmtKind::Print { args, to } => self.print(args, to.as_ref()),
            StmtKind::Printf { args, to } => {
                args.iter().try_for_each(|arg| self.value(arg))?;
                let dest = self.dest(to.as_ref())?;
                self.emit(Op::Printf(args.len() as u32, dest));
                Ok(())
            }
            StmtKind::If(test, then, otherwise) => self.if_statement(test, then, otherwise.as_deref()),
            StmtKind::While(test, body) => self.loop_statement(Some(test), None, body, true),
            StmtKind::Do(body, test) => self.loop_statement(Some(test), None, body, false),
            StmtKind::For { first, test, next, body } => {
                if let Some(first) = first {
                    self.statement(first)?;
                }
                self.loop_statement(test.as_ref(), next.as_deref(), body, true)
            }
            StmtKind::ForIn { var, array, body } => self.for_in(var, array, body),
            StmtKind::Switch(value, cases) => self.switch(value, cases),
            StmtKind::Block(statements) => self.statements(statements),
            StmtKind::Delete { array, keys } => {
                let place = self.place(array)?;
                if keys.is_empty() {
                    self.emit(Op::DeleteAll(place));
                } else {
                    self.keys(keys)?;
                    self.emit(Op::Delete(place));
                }
                Ok(())
            }
            StmtKind::Exit(code) => {
                if let Some(code) = code {
                    self.number(code)?;
                }
                self.emit(Op::Exit { with_code: code.is_some() });
                Ok(())
            }
            StmtKind::Return(value) => {
                match value {
                    Some(value) => self.value(value)?,
                    None => self.constant(Value::Uninit),
                }
                self.emit(Op::Return);
                Ok(())
            }
            StmtKind::Next => self.next_statement("next", Op::Next),
            StmtKind::NextFile => self.next_statement("nextfile", Op::NextFile),
            StmtKind::Break => self.break_statement(),
            StmtKind::Continue => self.continue_statement(),
        }
    }

    fn next_statement(&mut self, name: &str, op: Op) -> Result<()> {
        let is_allowed = match self.context {
            Context::BeginOrEnd => false,
            Context::BeginFile => name == "nextfile",
            Context::Rule | Context::Function => true,
        };
        if !is_allowed {
            return Err(self.error(&format!("`{name}' used in BEGIN or END action")));
        }
        self.emit(op);
        Ok(())
    }

    fn break_statement(&mut self) -> Result<()> {
        match self.breakables.last() {
            Some(breakable) => {
                let label = breakable.on_break;
                self.emit(Op::Jump(label));
                Ok(())
            }
            None => Err(self.error("`break' is not allowed outside a loop or switch")),
        }
    }

    fn continue_statement(&mut self) -> Result<()> {
        match self.breakables.iter().rev().find_map(|breakable| breakable.on_continue) {
            Some(label) => {
                self.emit(Op::Jump(label));
                Ok(())
            }
            None => Err(self.error("`continue' is not allowed outside a loop")),
        }
    }

    fn if_statement(&mut self, test: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Result<()> {
        let (no, end) = (self.label(), self.label());
        self.branch(test, false, no)?;
        self.statement(then)?;
        if let Some(otherwise) = otherwise {
            self.emit(Op::Jump(end));
            self.bind(no);
            self.statement(otherwise)?;
        } else {
            self.bind(no);
        }
        self.bind(end);
        Ok(())
    }

    /// A loop; its test stands at the end of the code, so that each turn takes one jump.
    fn loop_statement(
        &mut self,
        test: Option<&Expr>,
        next: Option<&Stmt>,
        body: &Stmt,
        test_first: bool,
    ) -> Result<()> {
        let (top, on_continue, check, on_break) = (self.label(), self.label(), self.label(), self.label());
        if test_first && test.is_some() {
            self.emit(Op::Jump(check));
        }
        self.bind(top);
        self.breakables.push(Breakable { on_break, on_continue: Some(on_continue) });
        self.statement(body)?;
        self.breakables.pop();
        self.bind(on_continue);
        if let Some(next) = next {
            self.statement(next)?;
        }
        self.bind(check);
        match test {
            Some(test) => self.branch(test, true, top)?,
            None => self.emit(Op::Jump(top)),
        }
        self.bind(on_break);
        Ok(())
    }

    fn for_in(&mut self, var: &Expr, array: &Expr, body: &Stmt) -> Result<()> {
        let place = self.place(array)?;
        let (top, on_break, end) = (self.label(), self.label(), self.label());
        self.emit(Op::ForIn(place));
        self.bind(top);
        self.emit(Op::NextKey(end));
        self.store(var, false)?;
        self.breakables.push(Breakable { on_break, on_continue: Some(top) });
        self.statement(body)?;
        self.breakables.pop();
        self.emit(Op::Jump(top));
        self.bind(on_break);
        self.emit(Op::EndForIn);
        self.bind(end);
        Ok(())
    }

    fn switch(&mut self, value: &Expr, cases: &[crate::ast::Case]) -> Result<()> {
        self.value(value)?;
        let on_break = self.label();
        let mut default = on_break;
        let mut bodies = Vec::new();
        for case in cases {
            let body = self.label();
            bodies.push(body);
            match &case.value {
                None => default = body,
                Some(Expr::Regex(pattern) | Expr::TypedRegex(pattern)) => {
                    let regex = self.regex(pattern)?;
                    self.emit(Op::CaseMatch(regex, body));
                }
                Some(value) => {
                    self.value(value)?;
                    self.emit(Op::CaseEqual(body));
                }
            }
        }
        self.emit(Op::Drop);
        self.emit(Op::Jump(default));
        self.breakables.push(Breakable { on_break, on_continue: None });
        for (case, body) in cases.iter().zip(bodies) {
            self.bind(body);
            self.statements(&case.body)?;
        }
        self.breakables.pop();
        self.bind(on_break);
        Ok(())
    }

    fn print(&mut self, args: &[Expr], to: Option<&Redirect>) -> Result<()> {
        let is_simple = args.iter().all(is_simple) && to.is_none_or(|to| is_simple(&to.target));
        if !is_simple {
            args.iter().try_for_each(|arg| self.value(arg))?;
            let dest = self.dest(to)?;
            self.emit(Op::Print(args.len() as u32, dest));
            return Ok(());
        }
        if args.is_empty() {
            self.emit(Op::OutField(0));
        }
        for (index, arg) in args.iter().enumerate() {
            if index > 0 {
                self.emit(Op::OutSeparator);
            }
            self.out(arg)?;
        }
        let dest = self.dest(to)?;
        self.emit(Op::EndPrint(dest));
        Ok(())
    }

    /// Adds what an expression makes to the line that is being printed.
    fn out(&mut self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::Field(number) if constant_field(number).is_some() => {
                let field = constant_field(number).unwrap_or(0);
                self.emit(Op::OutField(field));
            }
            Expr::Text(text) => {
                let index = self.constant_index(Value::text(text));
                self.emit(Op::OutConst(index));
            }
            Expr::Concat(parts) => parts.iter().try_for_each(|part| match part {
                // Only by itself is a number printed by OFMT.
                part if self.is_num(part) || !matches!(part, Expr::Text(_) | Expr::Field(_)) => {
                    self.value(part)?;
                    self.emit(Op::Concat(1));
                    self.emit(Op::Out);
                    Ok(())
                }
                part => self.out(part),
            })?,
            Expr::Group(inner) => self.out(inner)?,
            expr if self.is_num(expr) => {
                self.number(expr)?;
                self.emit(Op::OutNum);
            }
            expr => {
                self.value(expr)?;
                self.emit(Op::Out);
            }
        }
        Ok(())
    }

    fn dest(&mut self, to: Option<&Redirect>) -> Result<Dest> {
        let Some(to) = to else { return Ok(Dest::Stdout) };
        self.value(&to.target)?;
        Ok(match to.kind {
            RedirectKind::File => Dest::File,
            RedirectKind::Append => Dest::Append,
            RedirectKind::Command => Dest::Command,
            RedirectKind::Coprocess => Dest::Coprocess,
        })
    }

    /// Where an array is. One that is an element of another is put on the stack.
    fn place(&mut self, array: &Expr) -> Result<Place> {
        match array {
            Expr::Var(name) => match self.var(name)? {
                Var::Local(slot) => Ok(Place::Local(slot)),
                Var::Global(slot) => Ok(Place::Global(slot)),
                Var::Special(_) => Err(self.fatal(&format!("attempt to use scalar `{name}' as an array"))),
            },
            Expr::Group(inner) => self.place(inner),
            Expr::Index(outer, keys) => {
                let outer = self.place(outer)?;
                self.keys(keys)?;
                self.emit(Op::SubArray(outer));
                Ok(Place::Stack)
            }
            _ => Err(self.error("an array is needed here")),
        }
    }
}

/// The number of a field that is written as a number.
fn constant_field(number: &Expr) -> Option<u32> {
    match number {
        Expr::Number(number) if (0.0..1e6).contains(number) => Some(*number as u32),
        Expr::Group(inner) => constant_field(inner),
        _ => None,
    }
}

/// Whether an expression can be printed piece by piece: it does nothing but answer, and cannot fail half-way.
fn is_simple(expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) | Expr::Text(_) | Expr::Var(_) => true,
        Expr::Field(inner) | Expr::Group(inner) | Expr::Negate(inner) | Expr::Plus(inner) => is_simple(inner),
        Expr::Index(array, keys) => is_simple(array) && keys.iter().all(is_simple),
        Expr::Concat(parts) => parts.iter().all(is_simple),
        Expr::Binary(_, left, right) | Expr::Compare(_, left, right) => is_simple(left) && is_simple(right),
        Expr::Cond(test, yes, no) => is_simple(test) && is_simple(yes) && is_simple(no),
        _ => false,
    }
}
