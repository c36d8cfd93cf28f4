//! From words to the tree, in one pass: every name is looked up where it stands, as all are defined before their use.

mod patterns;
mod scope;
mod terms;

use std::rc::Rc;

use crate::builtins;
use crate::value::Value;

use super::lexer::{self, Token, Word};
use super::modules::Library;
use super::tree::{Bind, Entry, Expr, Function, Node, Operator, Pattern, Special};
use scope::Scope;

/// A program that can be run.
pub struct Compiled {
    pub main: Entry,
}

/// What is wrong with a program, in jq's words.
pub type Problem = String;

/// Reads a program.
pub fn compile(text: &str, library: &mut Library) -> Result<Compiled, Problem> {
    let words = lexer::words(text).map_err(|(problem, at)| located(&problem, text, at, &library.origin))?;
    let mut parser = Parser::new(text, words, library);
    let main = parser.program()?;
    Ok(Compiled { main })
}

/// The program for yq's `eval-all`: what begins with the input begins with each of all documents.
pub fn over_all_documents(program: &Compiled) -> Compiled {
    Compiled { main: over_all(program.main) }
}

fn over_all(entry: Entry) -> Entry {
    let documents = || Expr::keep(Node::Special(Special::Documents, Vec::new()));
    let from_all = |entry: Entry| Expr::keep(Node::Pipe(documents(), entry));
    match &entry.node {
        Node::Binary(operator, left, right) => {
            Expr::keep(Node::Binary(*operator, over_all(left), over_all(right)))
        }
        Node::Pipe(first, second) => Expr::keep(Node::Pipe(over_all(first), second)),
        Node::Collect(inner) => Expr::keep(Node::Collect(over_all(inner))),
        Node::Call(function, back, arguments) if function.name == "_merged" => Expr::keep(Node::Call(
            function,
            *back,
            arguments.iter().map(|argument| over_all(argument)).collect(),
        )),
        Node::Reduce(bind, init, update) => {
            let source = over_all(bind.source);
            let patterns = bind.patterns.iter().map(|_| Pattern::Variable(0)).collect();
            match bind.is_plain() {
                true => Expr::keep(Node::Reduce(Bind { source, patterns, variables: 1 }, init, update)),
                false => from_all(entry),
            }
        }
        _ => from_all(entry),
    }
}

/// Reads a text of definitions: each function with its name.
pub fn compile_definitions(
    text: &str,
    library: &mut Library,
) -> Result<Vec<(String, &'static Function)>, Problem> {
    let words = lexer::words(text).map_err(|(problem, at)| located(&problem, text, at, &library.origin))?;
    let mut parser = Parser::new(text, words, library);
    parser.definitions()
}

/// A problem with the line it was met in, and blanks after that to where it was.
fn located(problem: &str, text: &str, at: usize, origin: &str) -> Problem {
    let at = at.min(text.len());
    let start = text[..at].rfind('\n').map_or(0, |line_break| line_break + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let number = 1 + text[..at].matches('\n').count();
    format!("jq: error: {problem} at {origin}, line {number}:\n{line}{}", " ".repeat(at - start))
}

/// How deep expressions may lie in each other: all are walked by functions that call themselves.
const DEEPEST: usize = 1000;
/// How many operators may follow each other, for the same reason.
const LONGEST: usize = 4000;

pub(super) struct Parser<'a> {
    text: &'a str,
    words: Rc<[Word]>,
    at: usize,
    scope: Scope,
    library: &'a mut Library,
    depth: usize,
}

/// How tightly operators hold, loosest first.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Comma,
    Otherwise,
    Assign,
    Or,
    And,
    Compare,
    Add,
    Multiply,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, words: Vec<Word>, library: &'a mut Library) -> Self {
        Parser { text, words: words.into(), at: 0, scope: Scope::default(), library, depth: 0 }
    }

    fn token(&self) -> &Token {
        &self.words[self.at].token
    }

    fn token_after(&self) -> &Token {
        &self.words[(self.at + 1).min(self.words.len() - 1)].token
    }

    fn advance(&mut self) -> Token {
        let token = self.words[self.at].token.clone();
        if self.at + 1 < self.words.len() {
            self.at += 1;
        }
        token
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.token(), Token::Sign(present) if *present == sign)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.token(), Token::Name(present) if present == name)
    }

    fn skip_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        if found {
            self.advance();
        }
        found
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), Problem> {
        if self.skip_sign(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_name(&mut self, name: &str) -> Result<(), Problem> {
        if self.skip_name(name) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// What stands here should not.
    fn unexpected(&self) -> Problem {
        let what = match self.token() {
            Token::End => "end of file".to_owned(),
            Token::Name(name) if is_keyword(name) => name.clone(),
            Token::Name(_) => "IDENT".into(),
            Token::Field(_) => "FIELD".into(),
            Token::Variable(_) => "'$'".into(),
            Token::Format(_) => "FORMAT".into(),
            Token::Number(_) => "LITERAL".into(),
            Token::String(_) => "QQSTRING_START".into(),
            Token::Sign(sign) if sign.len() > 1 => (*sign).into(),
            Token::Sign(sign) => format!("'{sign}'"),
            Token::Invalid(_) => "INVALID_CHARACTER".into(),
        };
        self.problem(&format!("syntax error, unexpected {what} (Unix shell quoting issues?)"))
    }

    fn problem(&self, problem: &str) -> Problem {
        // The end is where the last word was.
        let at = match self.token() {
            Token::End => self.at.saturating_sub(1),
            _ => self.at,
        };
        located(problem, self.text, self.words[at].at, &self.library.origin)
    }

    fn program(&mut self) -> Result<Entry, Problem> {
        self.imports()?;
        let mark = self.scope.mark();
        while self.is_name("def") {
            self.definition()?;
        }
        let main = match self.token() {
            Token::End => return Err("jq: error: Top-level program not given (try \".\")".into()),
            _ => self.pipe()?,
        };
        self.scope.back_to(mark);
        match self.token() {
            Token::End => Ok(main),
            _ => Err(self.unexpected()),
        }
    }

    fn definitions(&mut self) -> Result<Vec<(String, &'static Function)>, Problem> {
        self.imports()?;
        let mut all = Vec::new();
        while self.is_name("def") {
            let function = self.definition()?;
            all.push((function.name.clone(), function));
        }
        match self.token() {
            Token::End => Ok(all),
            _ => Err(self.unexpected()),
        }
    }

    /// `module …; import …; include …;` at the head of a text.
    fn imports(&mut self) -> Result<(), Problem> {
        loop {
            if self.skip_name("module") {
                self.metadata()?;
            } else if self.is_name("import") || self.is_name("include") {
                self.import()?;
            } else {
                return Ok(());
            }
            self.expect_sign(";")?;
        }
    }

    fn import(&mut self) -> Result<(), Problem> {
        let includes = self.is_name("include");
        self.advance();
        let Token::String(pieces) = self.advance() else { return Err(self.unexpected()) };
        let [lexer::Piece::Text(path)] = &pieces[..] else {
            return Err(self.problem("Import path must be constant"));
        };
        let (mut name, mut is_data) = (None, false);
        if !includes {
            self.expect_name("as")?;
            match self.advance() {
                Token::Name(alias) => name = Some(alias),
                Token::Variable(alias) => (name, is_data) = (Some(alias), true),
                _ => return Err(self.unexpected()),
            }
        }
        let settings = if self.is_sign(";") { None } else { Some(self.metadata()?) };
        let search = settings.and_then(|settings| terms::constant_field(settings, "search"));
        let path = path.clone();
        if is_data {
            let name = name.unwrap_or_default();
            let values = self.library.data(&path, search.as_deref()).map_err(|why| self.problem(&why))?;
            let value = Expr::keep(Node::Const(Value::array(values)));
            self.scope.add_constant(format!("{name}::{name}"), value);
            self.scope.add_constant(name, value);
            return Ok(());
        }
        for (function, code) in self.functions_of(&path, search.as_deref())? {
            let full = match &name {
                Some(name) => format!("{name}::{function}"),
                None => function,
            };
            self.scope.add_function(full, code);
        }
        Ok(())
    }

    /// What a module says of itself, or an import of the module: an object, written out.
    fn metadata(&mut self) -> Result<Entry, Problem> {
        let term = self.term()?;
        match &term.node {
            Node::Object(entries) if entries.iter().all(|(_, value)| is_constant(value)) => Ok(term),
            _ if is_constant(term) => Err(self.problem("Module metadata must be an object")),
            _ => Err(self.problem("Module metadata must be constant")),
        }
    }

    fn functions_of(
        &mut self,
        path: &str,
        search: Option<&str>,
    ) -> Result<Vec<(String, &'static Function)>, Problem> {
        let (text, at, origin) = (self.text, self.words[self.at].at, self.library.origin.clone());
        self.library.functions(path, search, &|why| located(why, text, at, &origin))
    }

    /// Runs one level deeper, if that is not too deep.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Problem>) -> Result<T, Problem> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.problem("syntax error, the program is nested too deeply"));
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// A whole expression: a series of pipes, the last innermost.
    fn pipe(&mut self) -> Result<Entry, Problem> {
        self.nested(|parser| {
            let mut stages = Vec::new();
            loop {
                if stages.len() > LONGEST {
                    return Err(parser.problem("syntax error, the program is nested too deeply"));
                }
                // A definition reaches to the end.
                if parser.is_name("def") {
                    let mark = parser.scope.mark();
                    parser.definition()?;
                    stages.push(parser.pipe()?);
                    parser.scope.back_to(mark);
                    break;
                }
                stages.push(parser.operators(Level::Comma)?);
                if !parser.skip_sign("|") {
                    break;
                }
            }
            let stages = stages.into_iter().rev();
            let joined = stages.reduce(|rest, stage| Expr::keep(Node::Pipe(stage, rest)));
            joined.ok_or_else(|| parser.unexpected())
        })
    }

    /// `def NAME(PARAMETERS): BODY;`: adds it to the scope.
    fn definition(&mut self) -> Result<&'static Function, Problem> {
        self.expect_name("def")?;
        let name = match self.advance() {
            Token::Name(name) => name,
            _ => {
                self.at -= 1;
                return Err(self.unexpected());
            }
        };
        let parameters = self.parameters()?;
        self.expect_sign(":")?;
        let code =
            Function { name: name.clone(), parameters: parameters.len(), body: std::cell::OnceCell::new() };
        let function: &'static Function = Box::leak(Box::new(code));
        self.scope.add_function(name, function);
        let mark = self.scope.mark();
        let base = self.scope.depth();
        for (parameter, _) in &parameters {
            self.scope.add_closure(parameter.clone());
        }
        let by_value = parameters.iter().enumerate().filter(|(_, (_, by_value))| *by_value);
        let mut binds = Vec::new();
        for (index, (parameter, _)) in by_value {
            let source = Expr::keep(Node::Closure(self.scope.depth() - base - index - 1));
            self.scope.add_variable(parameter.clone());
            binds.push(Bind { source, patterns: vec![Pattern::Variable(0)], variables: 1 });
        }
        let mut body = self.pipe()?;
        for bind in binds.into_iter().rev() {
            body = Expr::keep(Node::Bind(bind, body));
        }
        self.scope.back_to(mark);
        self.expect_sign(";")?;
        // It was made a few lines above, and empty.
        let _ = function.body.set(body);
        Ok(function)
    }

    /// Names, and whether each is also a variable.
    fn parameters(&mut self) -> Result<Vec<(String, bool)>, Problem> {
        let mut parameters = Vec::new();
        if !self.skip_sign("(") {
            return Ok(parameters);
        }
        loop {
            match self.advance() {
                Token::Name(name) => parameters.push((name, false)),
                Token::Variable(name) => parameters.push((name, true)),
                _ => {
                    self.at -= 1;
                    return Err(self.unexpected());
                }
            }
            if self.skip_sign(")") {
                return Ok(parameters);
            }
            self.expect_sign(";")?;
        }
    }

    /// Operators of a level and tighter ones.
    fn operators(&mut self, loosest: Level) -> Result<Entry, Problem> {
        let mut left = self.operand()?;
        let mut count = 0;
        let mut last = None;
        while let Some((sign, level)) = self.operator().filter(|(_, level)| *level >= loosest) {
            if matches!(level, Level::Assign | Level::Compare) && last == Some(level) {
                return Err(self.unexpected());
            }
            count += 1;
            if count > LONGEST {
                return Err(self.problem("syntax error, the program is nested too deeply"));
            }
            self.advance();
            // yq's `*+` appends arrays where it merges.
            let sign = match self.library.is_yq && sign == "*" && self.skip_sign("+") {
                true => "*+".to_owned(),
                false => sign,
            };
            let right = self.nested(|parser| match level {
                Level::Otherwise => parser.operators(Level::Otherwise),
                Level::Comma => parser.operators(Level::Otherwise),
                Level::Assign => parser.operators(Level::Or),
                Level::Or => parser.operators(Level::And),
                Level::And => parser.operators(Level::Compare),
                Level::Compare => parser.operators(Level::Add),
                Level::Add => parser.operators(Level::Multiply),
                Level::Multiply => parser.operand(),
            })?;
            left = match sign.as_str() {
                "*+" => self.merge_appending(left, right)?,
                _ => self.combine(&sign, left, right),
            };
            last = Some(level);
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(String, Level)> {
        let (sign, level) = match self.token() {
            Token::Sign(sign) => (
                *sign,
                match *sign {
                    "," => Level::Comma,
                    "//" => Level::Otherwise,
                    "=" | "|=" | "+=" | "-=" | "*=" | "/=" | "%=" | "//=" => Level::Assign,
                    "==" | "!=" | "<" | "<=" | ">" | ">=" => Level::Compare,
                    "+" | "-" => Level::Add,
                    "*" | "/" | "%" => Level::Multiply,
                    _ => return None,
                },
            ),
            Token::Name(name) if name == "or" => ("or", Level::Or),
            Token::Name(name) if name == "and" => ("and", Level::And),
            _ => return None,
        };
        Some((sign.to_owned(), level))
    }

    fn merge_appending(&mut self, left: Entry, right: Entry) -> Result<Entry, Problem> {
        // A function of two values: the first is its input, so both are bound where they mean what they say.
        let function = self.library.prelude("_merged", 2)?.ok_or_else(|| self.unexpected())?;
        Ok(Expr::keep(Node::Call(function, self.scope.depth(), vec![left, right])))
    }

    fn combine(&mut self, sign: &str, left: Entry, right: Entry) -> Entry {
        let node = match sign {
            "," => Node::Comma(left, right),
            "//" => Node::Otherwise(left, right),
            "or" => Node::Or(left, right),
            "and" => Node::And(left, right),
            "|=" => Node::Update(left, right),
            _ if sign.ends_with('=') && !matches!(sign, "==" | "!=" | "<=" | ">=") => {
                return self.assign(&sign[..sign.len() - 1], left, right);
            }
            "==" | "!=" if self.library.is_yq && has_star(right) => {
                return matches_glob(sign == "==", left, right);
            }
            _ => Node::Binary(operator_of(sign), left, right),
        };
        Expr::keep(node)
    }

    /// `PATHS = VALUE`, `PATHS += VALUE`, …: for each value, all paths are updated with it. It stands in a function of
    /// its own, so that the paths, which were read one entry further out, mean the same.
    fn assign(&mut self, sign: &str, paths: Entry, value: Entry) -> Entry {
        let (dot, new) = (Expr::keep(Node::Identity), Expr::keep(Node::Variable(0)));
        let update = match sign {
            "" => new,
            "//" => Expr::keep(Node::Otherwise(dot, new)),
            _ => Expr::keep(Node::Binary(operator_of(sign), dot, new)),
        };
        // The parameters are the paths and the value; the variable comes third.
        let bind =
            Bind { source: Expr::keep(Node::Closure(0)), patterns: vec![Pattern::Variable(0)], variables: 1 };
        let paths_again = Expr::keep(Node::Closure(2));
        let body = Expr::keep(Node::Bind(bind, Expr::keep(Node::Update(paths_again, update))));
        let function = Function { name: "_assign".into(), parameters: 2, body: body.into() };
        Expr::keep(Node::Call(Box::leak(Box::new(function)), 0, vec![paths, value]))
    }

    /// A term with a sign before it, or one of the forms that reach to the end of the expression.
    fn operand(&mut self) -> Result<Entry, Problem> {
        if self.skip_sign("-") {
            let operand = self.nested(Self::operand)?;
            return Ok(Expr::keep(Node::Negate(operand)));
        }
        if self.skip_name("label") {
            let Token::Variable(name) = self.advance() else {
                self.at -= 1;
                return Err(self.unexpected());
            };
            self.expect_sign("|")?;
            let mark = self.scope.mark();
            self.scope.add_label(name);
            let body = self.pipe()?;
            self.scope.back_to(mark);
            return Ok(Expr::keep(Node::Label(body)));
        }
        let term = self.nested(Self::term)?;
        if !self.is_name("as") {
            return Ok(term);
        }
        let mark = self.scope.mark();
        let bind = self.bind(term)?;
        if self.library.is_yq && self.is_name("ireduce") {
            self.advance();
            return self.fold_from(mark, bind, true);
        }
        self.expect_sign("|")?;
        let body = self.pipe()?;
        self.scope.back_to(mark);
        Ok(Expr::keep(Node::Bind(bind, body)))
    }
}

fn operator_of(sign: &str) -> Operator {
    match sign {
        "+" => Operator::Add,
        "-" => Operator::Subtract,
        "*" => Operator::Multiply,
        "/" => Operator::Divide,
        "%" => Operator::Modulo,
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        _ => Operator::GreaterOrEqual,
    }
}

/// Whether yq takes a string for a pattern.
fn has_star(entry: Entry) -> bool {
    matches!(&entry.node, Node::Const(Value::String(text)) if text.contains('*'))
}

fn matches_glob(wanted: bool, left: Entry, right: Entry) -> Entry {
    let native = |name: &str, arguments| match builtins::find(name, 2) {
        Some(native) => Node::Native(native, arguments),
        None => Node::Binary(Operator::Equal, left, right),
    };
    let matches = Expr::keep(native("_matches_glob", vec![left, right]));
    let wanted = Expr::keep(Node::Const(Value::Bool(wanted)));
    Expr::keep(Node::Binary(Operator::Equal, matches, wanted))
}

fn is_constant(entry: Entry) -> bool {
    match &entry.node {
        Node::Const(_) => true,
        Node::Object(entries) => entries.iter().all(|(key, value)| is_constant(key) && is_constant(value)),
        Node::Collect(inner) | Node::Negate(inner) => is_constant(inner),
        Node::Comma(one, two) => is_constant(one) && is_constant(two),
        _ => false,
    }
}

fn is_keyword(name: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "def", "module", "import", "include", "if", "then", "else", "elif", "end", "as", "reduce", "foreach",
        "try", "catch", "label", "and", "or", "__loc__",
    ];
    KEYWORDS.contains(&name)
}
