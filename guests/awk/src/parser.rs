//! From tokens to a program: rules, functions and statements. Expressions are in `parser/expr.rs`.

mod expr;

use crate::ast::{
    Case, Expr, Function, Line, Name, Pattern, Program, Redirect, RedirectKind, Rule, Stmt, StmtKind,
};
use crate::error::{Error, Result};
use crate::lexer::{Lexer, Token, Word};

/// A part of a program and where it comes from.
pub struct Source {
    /// The file's name; none for the command line.
    pub name: Option<String>,
    /// The text.
    pub text: Vec<u8>,
}

/// Reads a file that a program includes.
pub type Include<'a> = &'a dyn Fn(&str) -> std::result::Result<Vec<u8>, String>;

/// Statements and expressions may be nested so deep: what reads and compiles them recurses.
const DEEPEST: usize = 400;

/// Reads a program. The names of its sources come back with it: includes add to them.
pub fn parse(sources: Vec<Source>, include: Include<'_>) -> Result<(Program, Vec<Option<String>>)> {
    let mut parser = Parser {
        lexer: Lexer::new(Vec::new()),
        token: Token::End,
        names: Vec::new(),
        source: 0,
        program: Program::default(),
        depth: 0,
        in_function: false,
        no_greater: false,
        include,
    };
    for source in sources {
        parser.read(source)?;
    }
    Ok((parser.program, parser.names))
}

struct Parser<'a> {
    lexer: Lexer,
    token: Token,
    names: Vec<Option<String>>,
    source: u32,
    program: Program,
    depth: usize,
    in_function: bool,
    /// `>` redirects here.
    no_greater: bool,
    include: Include<'a>,
}

impl Parser<'_> {
    fn read(&mut self, source: Source) -> Result<()> {
        let before = std::mem::replace(&mut self.lexer, Lexer::new(source.text));
        let outer = self.source;
        self.source = self.names.len() as u32;
        self.names.push(source.name);
        self.advance()?;
        self.skip_terminators()?;
        while self.token != Token::End {
            self.item()?;
            self.skip_terminators()?;
        }
        self.lexer = before;
        self.source = outer;
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        match self.lexer.next() {
            Ok(token) => {
                self.token = token;
                Ok(())
            }
            Err(message) => Err(self.error(&message)),
        }
    }

    fn line(&self) -> Line {
        // A newline that is the current token has been counted already.
        let number = self.lexer.line - u32::from(self.token == Token::Newline);
        Line { source: self.source, number }
    }

    /// What is wrong here, below the line it is wrong in.
    fn error(&self, message: &str) -> Error {
        let (text, column) = self.lexer.place();
        let name = self.names.get(self.source as usize).cloned().flatten();
        let at = place_name(name.as_deref(), self.line().number);
        Error::syntax(format!("{at}{text}\n{at}{}^ {message}", " ".repeat(column)))
    }

    fn unexpected(&self) -> Error {
        match self.token {
            Token::End | Token::Newline => self.error("unexpected newline or end of string"),
            _ => self.error("syntax error"),
        }
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.token, Token::Mark(found) if found == mark)
    }

    fn take(&mut self, mark: &str) -> Result<bool> {
        let found = self.is(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, mark: &str) -> Result<()> {
        if self.take(mark)? { Ok(()) } else { Err(self.unexpected()) }
    }

    fn skip_newlines(&mut self) -> Result<()> {
        while self.token == Token::Newline {
            self.advance()?;
        }
        Ok(())
    }

    fn skip_terminators(&mut self) -> Result<()> {
        while self.token == Token::Newline || self.is(";") {
            self.advance()?;
        }
        Ok(())
    }

    /// Goes one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("nested too deeply"));
        }
        let answer = read(self);
        self.depth -= 1;
        answer
    }

    fn item(&mut self) -> Result<()> {
        let mut is_closed = true;
        match self.token {
            Token::Word(Word::Begin) => {
                let action = self.special_action()?;
                self.program.begin.push(action);
            }
            Token::Word(Word::End) => {
                let action = self.special_action()?;
                self.program.end.push(action);
            }
            Token::Word(Word::BeginFile) => {
                let action = self.special_action()?;
                self.program.begin_file.push(action);
            }
            Token::Word(Word::EndFile) => {
                let action = self.special_action()?;
                self.program.end_file.push(action);
            }
            Token::Word(Word::Function) => self.function()?,
            Token::Mark("@") => return self.directive(),
            _ => is_closed = self.rule()?,
        }
        // Only behind a brace may the next one follow on the same line.
        if is_closed || self.is(";") || matches!(self.token, Token::Newline | Token::End) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    /// `@include "file"`.
    fn directive(&mut self) -> Result<()> {
        self.advance()?;
        let word = match &self.token {
            Token::Name(name) => name.clone(),
            _ => return Err(self.unexpected()),
        };
        if &*word != "include" {
            return Err(self.error(&format!("@{word} is not supported")));
        }
        self.advance()?;
        let Token::Text(file) = self.token.clone() else { return Err(self.unexpected()) };
        let name = String::from_utf8_lossy(&file).into_owned();
        let text = (self.include)(&name).map_err(|error| self.error(&error))?;
        if self.names.len() > 200 {
            return Err(self.error("too many files included"));
        }
        self.nested(|parser| parser.read(Source { name: Some(name), text }))?;
        self.advance()
    }

    fn special_action(&mut self) -> Result<Vec<Stmt>> {
        self.advance()?;
        if !self.is("{") {
            return Err(self.unexpected());
        }
        self.block()
    }

    fn function(&mut self) -> Result<()> {
        let line = self.line();
        self.advance()?;
        let name = match self.token.clone() {
            Token::Name(name) | Token::Call(name) => name,
            _ => return Err(self.unexpected()),
        };
        if self.program.functions.iter().any(|function| function.name == name) {
            return Err(self.error(&format!("function name `{name}' previously defined")));
        }
        self.advance()?;
        self.expect("(")?;
        let mut params: Vec<Name> = Vec::new();
        while !self.is(")") {
            let Token::Name(param) = self.token.clone() else { return Err(self.unexpected()) };
            if param == name || params.contains(&param) {
                return Err(self.error(&format!("function `{name}': parameter `{param}' is used twice")));
            }
            params.push(param);
            self.advance()?;
            if self.take(",")? {
                self.skip_newlines()?;
            } else if !self.is(")") {
                return Err(self.unexpected());
            }
        }
        self.advance()?;
        self.skip_newlines()?;
        self.in_function = true;
        let body = self.block()?;
        self.in_function = false;
        self.program.functions.push(Function { name, params, body, line });
        Ok(())
    }

    /// A pattern and its action; answers whether there is one.
    fn rule(&mut self) -> Result<bool> {
        let line = self.line();
        let pattern = if self.is("{") {
            Pattern::Always
        } else {
            let first = self.expression()?;
            if self.take(",")? {
                self.skip_newlines()?;
                Pattern::Range(first, self.expression()?)
            } else {
                Pattern::When(first)
            }
        };
        let action = if self.is("{") { Some(self.block()?) } else { None };
        let has_action = action.is_some();
        self.program.rules.push(Rule { pattern, action, line });
        Ok(has_action)
    }

    /// Statements in braces.
    fn block(&mut self) -> Result<Vec<Stmt>> {
        self.expect("{")?;
        let mut statements = Vec::new();
        self.skip_terminators()?;
        while !self.is("}") {
            statements.push(self.nested(Self::statement)?);
            self.skip_terminators()?;
        }
        self.advance()?;
        Ok(statements)
    }

    fn statement(&mut self) -> Result<Stmt> {
        let line = self.line();
        let kind = match self.token {
            Token::Mark("{") => StmtKind::Block(self.block()?),
            Token::Mark(";") => {
                self.advance()?;
                StmtKind::Block(Vec::new())
            }
            Token::Word(Word::If) => self.if_statement()?,
            Token::Word(Word::While) => {
                let test = self.test()?;
                if self.take(";")? {
                    StmtKind::While(test, Box::new(Stmt { line, kind: StmtKind::Block(Vec::new()) }))
                } else {
                    StmtKind::While(test, self.body()?)
                }
            }
            Token::Word(Word::Do) => self.do_statement()?,
            Token::Word(Word::For) => self.for_statement()?,
            Token::Word(Word::Switch) => self.switch_statement()?,
            _ => {
                let statement = self.simple_statement()?;
                self.end_of_statement()?;
                return Ok(statement);
            }
        };
        Ok(Stmt { line, kind })
    }

    fn end_of_statement(&mut self) -> Result<()> {
        match self.token {
            Token::Newline | Token::Mark(";") => self.advance(),
            Token::Mark("}") => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    /// The word that opens a statement and its test in parentheses.
    fn test(&mut self) -> Result<Expr> {
        self.advance()?;
        self.expect("(")?;
        let test = self.expression()?;
        self.expect(")")?;
        Ok(test)
    }

    fn body(&mut self) -> Result<Box<Stmt>> {
        self.skip_newlines()?;
        Ok(Box::new(self.nested(Self::statement)?))
    }

    fn if_statement(&mut self) -> Result<StmtKind> {
        let test = self.test()?;
        let then = self.body()?;
        self.skip_terminators()?;
        let otherwise = if self.token == Token::Word(Word::Else) {
            self.advance()?;
            Some(self.body()?)
        } else {
            None
        };
        Ok(StmtKind::If(test, then, otherwise))
    }

    fn do_statement(&mut self) -> Result<StmtKind> {
        self.advance()?;
        let body = self.body()?;
        self.skip_terminators()?;
        if self.token != Token::Word(Word::While) {
            return Err(self.unexpected());
        }
        let test = self.test()?;
        self.end_of_statement()?;
        Ok(StmtKind::Do(body, test))
    }

    fn for_statement(&mut self) -> Result<StmtKind> {
        self.advance()?;
        self.expect("(")?;
        let first = if self.is(";") { None } else { Some(Box::new(self.simple_statement()?)) };
        if self.is(")") {
            return match first.map(|statement| statement.kind) {
                Some(StmtKind::Expr(Expr::In(mut keys, array)))
                    if matches!(keys.as_slice(), [Expr::Var(_) | Expr::Index(..) | Expr::Field(_)]) =>
                {
                    self.advance()?;
                    let var = keys.remove(0);
                    Ok(StmtKind::ForIn { var, array: *array, body: self.body()? })
                }
                _ => Err(self.unexpected()),
            };
        }
        self.expect(";")?;
        self.skip_newlines()?;
        let test = if self.is(";") { None } else { Some(self.expression()?) };
        self.expect(";")?;
        self.skip_newlines()?;
        let next = if self.is(")") { None } else { Some(Box::new(self.simple_statement()?)) };
        self.expect(")")?;
        let body = if self.take(";")? {
            Box::new(Stmt { line: self.line(), kind: StmtKind::Block(Vec::new()) })
        } else {
            self.body()?
        };
        Ok(StmtKind::For { first, test, next, body })
    }

    fn switch_statement(&mut self) -> Result<StmtKind> {
        let value = self.test()?;
        self.skip_newlines()?;
        self.expect("{")?;
        self.skip_newlines()?;
        let mut cases = Vec::new();
        while !self.is("}") {
            let value = match self.token {
                Token::Word(Word::Case) => {
                    self.advance()?;
                    Some(self.expression()?)
                }
                Token::Word(Word::Default) => {
                    self.advance()?;
                    None
                }
                _ => return Err(self.unexpected()),
            };
            self.expect(":")?;
            self.skip_terminators()?;
            let mut body = Vec::new();
            while !self.is("}") && !matches!(self.token, Token::Word(Word::Case | Word::Default)) {
                body.push(self.nested(Self::statement)?);
                self.skip_terminators()?;
            }
            cases.push(Case { value, body });
        }
        self.advance()?;
        Ok(StmtKind::Switch(value, cases))
    }

    /// A statement without statements in it, up to where it ends.
    fn simple_statement(&mut self) -> Result<Stmt> {
        let line = self.line();
        let kind = match self.token {
            Token::Word(Word::Print | Word::Printf) => self.print_statement()?,
            Token::Word(Word::Delete) => self.delete_statement()?,
            Token::Word(Word::Exit) => StmtKind::Exit(self.operand()?),
            Token::Word(Word::Return) => {
                if !self.in_function {
                    return Err(self.error("`return' used outside function context"));
                }
                StmtKind::Return(self.operand()?)
            }
            Token::Word(Word::Next) => self.word(StmtKind::Next)?,
            Token::Word(Word::NextFile) => self.word(StmtKind::NextFile)?,
            Token::Word(Word::Break) => self.word(StmtKind::Break)?,
            Token::Word(Word::Continue) => self.word(StmtKind::Continue)?,
            _ => StmtKind::Expr(self.expression()?),
        };
        Ok(Stmt { line, kind })
    }

    fn word(&mut self, kind: StmtKind) -> Result<StmtKind> {
        self.advance()?;
        Ok(kind)
    }

    fn is_end_of_statement(&self) -> bool {
        matches!(self.token, Token::Newline | Token::End | Token::Mark(";" | "}" | ")"))
    }

    /// The expression after `exit` or `return`, if there is one.
    fn operand(&mut self) -> Result<Option<Expr>> {
        self.advance()?;
        if self.is_end_of_statement() { Ok(None) } else { self.expression().map(Some) }
    }

    fn delete_statement(&mut self) -> Result<StmtKind> {
        self.advance()?;
        let parenthesised = self.take("(")?;
        let target = self.array_or_element()?;
        if parenthesised {
            self.expect(")")?;
        }
        Ok(match target {
            Expr::Index(array, keys) => StmtKind::Delete { array: *array, keys },
            array => StmtKind::Delete { array, keys: Vec::new() },
        })
    }

    fn print_statement(&mut self) -> Result<StmtKind> {
        let is_format = self.token == Token::Word(Word::Printf);
        self.advance()?;
        let is_redirect = |parser: &Self| [">", ">>", "|", "|&"].iter().any(|mark| parser.is(mark));
        let mut args = Vec::new();
        if !self.is_end_of_statement() && !is_redirect(self) {
            let outer = std::mem::replace(&mut self.no_greater, true);
            args = self.expressions()?;
            self.no_greater = outer;
        }
        if let [Expr::List(_)] = args.as_slice()
            && let Some(Expr::List(list)) = args.pop()
        {
            args = list;
        }
        if is_format && args.is_empty() {
            return Err(Error { code: 2, ..self.error("fatal: printf: no arguments") });
        }
        let kind = match self.token {
            Token::Mark(">") => Some(RedirectKind::File),
            Token::Mark(">>") => Some(RedirectKind::Append),
            Token::Mark("|") => Some(RedirectKind::Command),
            Token::Mark("|&") => Some(RedirectKind::Coprocess),
            _ => None,
        };
        let to = match kind {
            None => None,
            Some(kind) => {
                self.advance()?;
                let outer = std::mem::replace(&mut self.no_greater, true);
                let target = self.concatenation()?;
                self.no_greater = outer;
                Some(Redirect { kind, target })
            }
        };
        Ok(if is_format { StmtKind::Printf { args, to } } else { StmtKind::Print { args, to } })
    }
}

/// Where a message comes from: `cmd. line:1: ` or `file:1: `.
pub fn place_name(source: Option<&str>, line: u32) -> String {
    match source {
        None => format!("cmd. line:{line}: "),
        Some(name) => format!("{name}:{line}: "),
    }
}
