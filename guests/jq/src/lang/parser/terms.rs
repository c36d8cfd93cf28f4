//! Terms: what operators stand between.

use crate::builtins;
use crate::lang::lexer::{Piece, Token, Word};
use crate::lang::tree::{Bind, Entry, Expr, Node, Part, Special};
use crate::object::Object;
use crate::run::ops;
use crate::value::{Str, Value};
use crate::yaml;

use super::scope::{Callee, Source};
use super::{LONGEST, Level, Parser, Problem, is_keyword};

fn text(text: impl AsRef<str>) -> Entry {
    Expr::keep(Node::Const(Value::string(text)))
}

fn dot() -> Entry {
    Expr::keep(Node::Identity)
}

impl Parser<'_> {
    /// A term with all that is hung on it.
    pub(super) fn term(&mut self) -> Result<Entry, Problem> {
        let mut term = self.term_without_suffix()?;
        for _ in 0..LONGEST {
            term = match self.token().clone() {
                Token::Field(name) => {
                    self.advance();
                    Expr::keep(Node::Index(term, text(name)))
                }
                Token::Sign(".") => match self.token_after() {
                    Token::String(_) => {
                        self.advance();
                        let key = self.term_without_suffix()?;
                        Expr::keep(Node::Index(term, key))
                    }
                    Token::Sign("[") => {
                        self.advance();
                        self.bracket(term)?
                    }
                    _ => return Err(self.unexpected()),
                },
                Token::Sign("[") => self.bracket(term)?,
                Token::Sign("?") => {
                    self.advance();
                    Expr::keep(Node::Try(term, None))
                }
                // `?//` after a term that has no `as` is two operators.
                Token::Sign("?//") => {
                    self.split_sign("?", "//");
                    continue;
                }
                _ => return Ok(term),
            };
        }
        Err(self.problem("syntax error, the program is nested too deeply"))
    }

    /// Reads a sign as the two it could be.
    fn split_sign(&mut self, first: &'static str, second: &'static str) {
        let at = self.words[self.at].at;
        let mut words = self.words.to_vec();
        words[self.at].token = Token::Sign(first);
        words.insert(self.at + 1, Word { token: Token::Sign(second), at: at + first.len() });
        self.words = words.into();
    }

    /// `[]`, `[KEY]`, `[FROM:TO]` after a term.
    fn bracket(&mut self, term: Entry) -> Result<Entry, Problem> {
        self.expect_sign("[")?;
        if self.skip_sign("]") {
            return Ok(Expr::keep(Node::Iterate(term)));
        }
        if self.skip_sign(":") {
            let to = self.pipe()?;
            self.expect_sign("]")?;
            return Ok(Expr::keep(Node::Slice(term, None, Some(to))));
        }
        let key = self.pipe()?;
        let node = if self.skip_sign(":") {
            let to = if self.is_sign("]") { None } else { Some(self.pipe()?) };
            Node::Slice(term, Some(key), to)
        } else {
            Node::Index(term, key)
        };
        self.expect_sign("]")?;
        Ok(Expr::keep(node))
    }

    pub(super) fn term_without_suffix(&mut self) -> Result<Entry, Problem> {
        let node = match self.token().clone() {
            Token::Number(value) => {
                self.advance();
                Node::Const(value)
            }
            Token::String(pieces) => {
                self.advance();
                return self.interpolated("text".into(), pieces);
            }
            Token::Format(name) => return self.format(name),
            Token::Field(name) => {
                self.advance();
                Node::Index(dot(), text(name))
            }
            Token::Variable(name) => return self.variable(&name),
            Token::Name(name) => return self.named(name),
            Token::Sign(sign) => return self.signed(sign),
            Token::Invalid(_) | Token::End => return Err(self.unexpected()),
        };
        Ok(Expr::keep(node))
    }

    fn signed(&mut self, sign: &'static str) -> Result<Entry, Problem> {
        match sign {
            "." => {
                if matches!(self.token_after(), Token::String(_)) {
                    self.advance();
                    let key = self.term_without_suffix()?;
                    return Ok(Expr::keep(Node::Index(dot(), key)));
                }
                self.advance();
                Ok(dot())
            }
            ".." => {
                self.advance();
                Ok(Expr::keep(Node::Special(Special::Recurse, Vec::new())))
            }
            "(" => {
                self.advance();
                let inner = self.pipe()?;
                self.expect_sign(")")?;
                Ok(inner)
            }
            "[" => {
                self.advance();
                if self.skip_sign("]") {
                    return Ok(Expr::keep(Node::Const(Value::array(Vec::new()))));
                }
                let inner = self.pipe()?;
                self.expect_sign("]")?;
                Ok(Expr::keep(Node::Collect(inner)))
            }
            "{" => self.object(),
            _ => Err(self.unexpected()),
        }
    }

    fn variable(&mut self, name: &str) -> Result<Entry, Problem> {
        if name == "__loc__" {
            let here = self.location();
            self.advance();
            return Ok(Expr::keep(Node::Const(here)));
        }
        let found = match self.scope.variable(name) {
            Some(Source::Entry(back)) => Some(Expr::keep(Node::Variable(back))),
            Some(Source::Constant(value)) => Some(value),
            None => self.library.global(name).map(|value| Expr::keep(Node::Const(value))),
        };
        let found = found.ok_or_else(|| self.problem(&format!("${name} is not defined")))?;
        self.advance();
        Ok(found)
    }

    fn location(&self) -> Value {
        let line = 1 + self.text[..self.words[self.at].at].matches('\n').count();
        let mut object = Object::default();
        object.insert("file".into(), Value::string(&self.library.origin));
        object.insert("line".into(), line.into());
        Value::object(object)
    }

    /// `@NAME`, alone or before a string.
    fn format(&mut self, name: String) -> Result<Entry, Problem> {
        self.advance();
        if let Token::String(pieces) = self.token().clone() {
            self.advance();
            return self.interpolated(name.into(), pieces);
        }
        match builtins::find("format", 1) {
            Some(native) => Ok(Expr::keep(Node::Native(native, vec![text(name)]))),
            None => Err(self.unexpected()),
        }
    }

    fn interpolated(&mut self, format: Str, pieces: Vec<Piece>) -> Result<Entry, Problem> {
        if let [Piece::Text(only)] = &pieces[..] {
            return Ok(text(only));
        }
        let mut parts = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) if text.is_empty() => {}
                Piece::Text(text) => parts.push(Part::Text(text.into())),
                Piece::Program(words) => parts.push(Part::Program(self.inner_program(words)?)),
            }
        }
        Ok(Expr::keep(Node::Text(format, parts)))
    }

    /// What stands in `\(…)`, in the scope of the string.
    fn inner_program(&mut self, words: Vec<Word>) -> Result<Entry, Problem> {
        let outer = std::mem::replace(&mut self.words, words.into());
        let at = std::mem::replace(&mut self.at, 0);
        let inner = self.pipe()?;
        if !matches!(self.token(), Token::End) {
            return Err(self.unexpected());
        }
        self.words = outer;
        self.at = at;
        Ok(inner)
    }

    fn named(&mut self, name: String) -> Result<Entry, Problem> {
        match name.as_str() {
            "if" => self.conditional(),
            "try" => {
                self.advance();
                let body = self.attempt()?;
                let handler = if self.skip_name("catch") { Some(self.attempt()?) } else { None };
                Ok(Expr::keep(Node::Try(body, handler)))
            }
            "reduce" | "foreach" => self.fold(name == "reduce"),
            "def" => {
                let mark = self.scope.mark();
                self.definition()?;
                let rest = self.pipe()?;
                self.scope.back_to(mark);
                Ok(rest)
            }
            "label" => self.operand(),
            "break" if matches!(self.token_after(), Token::Variable(_)) => {
                self.advance();
                let Token::Variable(label) = self.token().clone() else { return Err(self.unexpected()) };
                let back = self.scope.label(&label);
                let back = back.ok_or_else(|| self.problem(&format!("$*label-{label} is not defined")))?;
                self.advance();
                Ok(Expr::keep(Node::Break(back)))
            }
            _ if is_keyword(&name) => Err(self.unexpected()),
            _ => self.call(name),
        }
    }

    /// The body of `try`, or what `catch` leads to.
    fn attempt(&mut self) -> Result<Entry, Problem> {
        if self.is_sign("-") { self.operand() } else { self.nested(Self::term) }
    }

    fn conditional(&mut self) -> Result<Entry, Problem> {
        self.advance();
        let condition = self.pipe()?;
        self.expect_name("then")?;
        let yes = self.pipe()?;
        let no = if self.is_name("elif") {
            self.nested(Self::conditional)?
        } else if self.skip_name("else") {
            let no = self.pipe()?;
            self.expect_name("end")?;
            no
        } else {
            self.expect_name("end")?;
            dot()
        };
        Ok(Expr::keep(Node::If(condition, yes, no)))
    }

    /// `reduce SOURCE as PATTERN (INIT; UPDATE)`, and `foreach` with what it gives out.
    fn fold(&mut self, is_reduce: bool) -> Result<Entry, Problem> {
        self.advance();
        let source = self.nested(Self::term)?;
        // The start is read before the pattern is in scope, but stands after it.
        let mark = self.scope.mark();
        let bind = self.bind(source)?;
        self.fold_from(mark, bind, is_reduce)
    }

    /// The part of a fold in brackets.
    pub(super) fn fold_from(
        &mut self,
        mark: (usize, usize),
        bind: Bind,
        is_reduce: bool,
    ) -> Result<Entry, Problem> {
        self.expect_sign("(")?;
        let inner = self.scope.take_back(mark);
        let init = self.pipe()?;
        self.scope.give_again(inner);
        self.expect_sign(";")?;
        let update = self.pipe()?;
        let extract = if !is_reduce && self.skip_sign(";") { Some(self.pipe()?) } else { None };
        self.expect_sign(")")?;
        self.scope.back_to(mark);
        Ok(Expr::keep(match is_reduce {
            true => Node::Reduce(bind, init, update),
            false => Node::Foreach(bind, init, update, extract),
        }))
    }

    fn call(&mut self, name: String) -> Result<Entry, Problem> {
        let here = self.at;
        self.advance();
        if self.library.is_yq && matches!(name.as_str(), "env" | "strenv") && self.is_sign("(") {
            return self.environment(name == "env");
        }
        let mut arguments = Vec::new();
        if self.skip_sign("(") {
            loop {
                arguments.push(self.pipe()?);
                if self.skip_sign(")") {
                    break;
                }
                self.expect_sign(";")?;
            }
        }
        let callee = self.scope.callee(&name, arguments.len());
        match callee {
            Some(Callee::Closure(back)) => return Ok(Expr::keep(Node::Closure(back))),
            Some(Callee::Function(function, back)) => {
                return Ok(Expr::keep(Node::Call(function, back, arguments)));
            }
            None => {}
        }
        if self.library.is_yq
            && let Some(function) = self.library.prelude_of_yq(&name, arguments.len())?
        {
            return Ok(Expr::keep(Node::Call(function, self.scope.depth(), arguments)));
        }
        if let Some(node) = macro_of(&name, &arguments) {
            return Ok(node);
        }
        if let Some(special) = special_of(&name, arguments.len()) {
            return Ok(Expr::keep(Node::Special(special, arguments)));
        }
        if let Some(native) = builtins::find(&name, arguments.len()) {
            return Ok(Expr::keep(Node::Native(native, arguments)));
        }
        match self.library.prelude(&name, arguments.len())? {
            Some(function) => Ok(Expr::keep(Node::Call(function, self.scope.depth(), arguments))),
            None => {
                self.at = here;
                Err(self.problem(&format!("{name}/{} is not defined", arguments.len())))
            }
        }
    }

    /// yq's `env(NAME)`, read as YAML, and `strenv(NAME)`, as it is.
    fn environment(&mut self, is_yaml: bool) -> Result<Entry, Problem> {
        self.expect_sign("(")?;
        let Token::Name(name) = self.advance() else { return Err(self.unexpected()) };
        self.expect_sign(")")?;
        let Ok(text) = std::env::var(&name) else {
            return Err(self.problem(&format!("value for env variable '{name}' not provided in env()")));
        };
        if !is_yaml {
            return Ok(self::text(text));
        }
        let documents = yaml::read(&text).map_err(|problem| self.problem(&problem))?;
        let value = documents.into_iter().next().map(|document| document.value);
        Ok(Expr::keep(Node::Const(value.unwrap_or_default())))
    }

    fn object(&mut self) -> Result<Entry, Problem> {
        self.expect_sign("{")?;
        let mut entries = Vec::new();
        while !self.skip_sign("}") {
            entries.push(self.entry()?);
            if self.skip_sign("}") {
                break;
            }
            self.expect_sign(",")?;
        }
        Ok(Expr::keep(Node::Object(entries)))
    }

    fn entry(&mut self) -> Result<(Entry, Entry), Problem> {
        let field = |key: Entry| Expr::keep(Node::Index(dot(), key));
        let (key, short) = match self.token().clone() {
            Token::Name(name) => {
                self.advance();
                let key = text(&name);
                (key, Some(field(key)))
            }
            Token::Variable(name) => {
                let value = self.variable(&name)?;
                match self.is_sign(":") {
                    true => (value, None),
                    false => (text(&name), Some(value)),
                }
            }
            Token::String(_) | Token::Format(_) => {
                let key = self.term_without_suffix()?;
                (key, Some(field(key)))
            }
            Token::Sign("(") => {
                let here = self.at;
                self.advance();
                let key = self.pipe()?;
                if let Node::Const(value) = &key.node
                    && !matches!(value, Value::String(_))
                {
                    self.at = here;
                    let what = ops::described(value);
                    return Err(self.problem(&format!("Cannot use {what} as object key")));
                }
                self.expect_sign(")")?;
                (key, None)
            }
            _ => return Err(self.unexpected()),
        };
        match (self.skip_sign(":"), short) {
            (true, _) => Ok((key, self.entry_value()?)),
            (false, Some(value)) => Ok((key, value)),
            (false, None) => Err(self.unexpected()),
        }
    }

    fn entry_value(&mut self) -> Result<Entry, Problem> {
        let mut value = self.nested(|parser| parser.operators(Level::Otherwise))?;
        while self.skip_sign("|") {
            let next = self.nested(|parser| parser.operators(Level::Otherwise))?;
            value = Expr::keep(Node::Pipe(value, next));
        }
        Ok(value)
    }
}

/// Functions that are only another way to write something.
fn macro_of(name: &str, arguments: &[Entry]) -> Option<Entry> {
    let native =
        |name: &str| builtins::find(name, 0).map(|native| Expr::keep(Node::Native(native, Vec::new())));
    let each = || Expr::keep(Node::Iterate(dot()));
    let map = |f: Entry| Expr::keep(Node::Collect(Expr::keep(Node::Pipe(each(), f))));
    match (name, arguments) {
        ("map", [f]) => Some(map(f)),
        ("map_values", [f]) => Some(Expr::keep(Node::Update(each(), f))),
        ("null", []) => Some(Expr::keep(Node::Const(Value::Null))),
        ("true", []) => Some(Expr::keep(Node::Const(Value::Bool(true)))),
        ("false", []) => Some(Expr::keep(Node::Const(Value::Bool(false)))),
        ("with_entries", [f]) => {
            let inner = Expr::keep(Node::Pipe(map(f), native("from_entries")?));
            Some(Expr::keep(Node::Pipe(native("to_entries")?, inner)))
        }
        ("del", [paths]) => {
            let all = Expr::keep(Node::Collect(Expr::keep(Node::Special(Special::Path, vec![*paths]))));
            Some(Expr::keep(Node::Native(builtins::find("delpaths", 1)?, vec![all])))
        }
        _ => None,
    }
}

fn special_of(name: &str, arguments: usize) -> Option<Special> {
    Some(match (name, arguments) {
        ("empty", 0) => Special::Empty,
        ("path", 1) => Special::Path,
        ("getpath", 1) => Special::GetPath,
        ("select", 1) => Special::Select,
        ("_limit", 2) => Special::Limit,
        ("first", 1) => Special::First,
        ("_range", 3) => Special::Range,
        ("inputs", 0) => Special::Inputs,
        ("recurse", 0) => Special::Recurse,
        _ => return None,
    })
}

/// The text of a field of an object that is written out.
pub(super) fn constant_field(term: Entry, name: &str) -> Option<String> {
    let Node::Object(entries) = &term.node else { return None };
    entries.iter().find_map(|(key, value)| match (&key.node, &value.node) {
        (Node::Const(Value::String(key)), Node::Const(Value::String(value))) if **key == *name => {
            Some(value.to_string())
        }
        _ => None,
    })
}
