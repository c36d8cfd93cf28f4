//! Reads a program and turns it into steps, one line or one function at a time.

use super::code::{Argument, Binary, Body, Code, Function, Literal, Own, Place, Step};
use super::lexer::{Lexer, Token};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

/// How deep statements and expressions may be in each other.
const DEPTH: usize = 1000;

/// What the parser says about what is not POSIX's.
#[derive(Clone, Copy, PartialEq)]
pub enum Strictness {
    Lax,
    Warn,
    Refuse,
}

/// What is to be done next.
pub enum Item {
    Run(Code),
    Define(usize, Function),
    /// A line that cannot be run, or has nothing to run.
    Nothing,
    Quit,
}

/// A line that is wrong has been complained about.
struct Wrong;

type Parsed<T> = Result<T, Wrong>;

/// What an expression is, besides a value.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    /// Not shown, where it is a statement.
    Assignment,
    Comparison,
    Void,
}

/// The jumps out of a loop, and to its next round.
struct Loop {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

pub struct Parser {
    pub lexer: Lexer,
    token: Token,
    code: Code,
    loops: Vec<Loop>,
    in_function: bool,
    is_void: bool,
    had_error: bool,
    quits: bool,
    depth: usize,
    strictness: Strictness,
    variables: HashMap<String, usize>,
    arrays: HashMap<String, usize>,
    pub functions: HashMap<String, usize>,
    void_functions: Vec<usize>,
    pub array_names: Vec<String>,
}

fn is_keyword(word: &str) -> bool {
    const KEYWORDS: [&str; 22] = [
        "define", "break", "quit", "length", "return", "for", "if", "while", "sqrt", "scale", "ibase",
        "obase", "auto", "else", "read", "halt", "last", "history", "print", "continue", "limits", "void",
    ];
    KEYWORDS.contains(&word)
}

impl Parser {
    pub fn new(lexer: Lexer, strictness: Strictness) -> Parser {
        Parser {
            lexer,
            token: Token::Newline,
            code: Code::default(),
            loops: Vec::new(),
            in_function: false,
            is_void: false,
            had_error: false,
            quits: false,
            depth: 0,
            strictness,
            variables: HashMap::new(),
            arrays: HashMap::new(),
            functions: HashMap::new(),
            void_functions: Vec::new(),
            array_names: Vec::new(),
        }
    }

    /// Reads the next line or function; nothing at the end.
    pub fn item(&mut self) -> Option<Item> {
        (self.code, self.had_error, self.depth) = (Code::default(), false, 0);
        self.lexer.had_error = false;
        self.advance();
        self.loops.clear();
        (self.in_function, self.is_void) = (false, false);
        let item = match &self.token {
            Token::End => return None,
            Token::Newline => return Some(Item::Nothing),
            Token::Word(word) if word == "define" => self.function(),
            _ => self.line(),
        };
        if self.quits {
            return Some(Item::Quit);
        }
        match item {
            Ok(_) if self.had_error || self.lexer.had_error => Some(Item::Nothing),
            Ok(item) => Some(item),
            Err(Wrong) => {
                while !self.quits && !matches!(self.token, Token::Newline | Token::End) {
                    self.advance();
                }
                Some(if self.quits { Item::Quit } else { Item::Nothing })
            }
        }
    }

    fn advance(&mut self) {
        self.token = self.lexer.next();
        // It acts as soon as it is read, whatever it is a part of.
        if self.token == Token::Word("quit".into()) {
            self.quits = true;
            self.token = Token::End;
        }
    }

    fn wrong<T>(&mut self) -> Parsed<T> {
        if !self.quits {
            self.lexer.complain("syntax error");
        }
        Err(Wrong)
    }

    /// Something that does not keep the rest from being read, but the line from being run.
    fn error(&mut self, message: &str) {
        self.lexer.complain(message);
        self.had_error = true;
    }

    /// Says that something is not POSIX's, to those who want to know.
    fn extension(&mut self, what: &str) {
        match self.strictness {
            Strictness::Lax => {}
            Strictness::Warn => self.lexer.complain(&format!("(Warning) {what}")),
            Strictness::Refuse => self.error(&format!("Error: {what}")),
        }
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(&self.token, Token::Sign(found) if *found == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(found) if found == word)
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.accept(sign) { Ok(()) } else { self.wrong() }
    }

    fn skip_newlines(&mut self) {
        while self.token == Token::Newline {
            self.advance();
        }
    }

    fn name(&mut self) -> Parsed<String> {
        match &self.token {
            Token::Word(word) if !is_keyword(word) => {
                let word = word.clone();
                if word.len() > 1 {
                    self.extension(&format!("multiple letter name - {word}"));
                }
                self.advance();
                Ok(word)
            }
            _ => self.wrong(),
        }
    }

    fn variable(&mut self, name: String) -> usize {
        let next = self.variables.len() + 5;
        *self.variables.entry(name).or_insert(next)
    }

    fn array(&mut self, name: String) -> usize {
        let next = self.arrays.len();
        let names = &mut self.array_names;
        *self.arrays.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            next
        })
    }

    pub fn function_number(&mut self, name: String) -> usize {
        let next = self.functions.len();
        *self.functions.entry(name).or_insert(next)
    }

    /// Statements up to the end of a line.
    fn line(&mut self) -> Parsed<Item> {
        loop {
            if !self.is_sign(";") && self.token != Token::Newline {
                self.statement()?;
            }
            if self.token == Token::Newline {
                return Ok(Item::Run(std::mem::take(&mut self.code)));
            }
            self.expect(";")?;
        }
    }

    /// Statements in braces, over as many lines as they take.
    fn block(&mut self) -> Parsed<()> {
        loop {
            while self.token == Token::Newline || self.is_sign(";") {
                self.advance();
            }
            if self.accept("}") {
                return Ok(());
            }
            self.statement()?;
            if !self.is_sign("}") && !self.is_sign(";") && self.token != Token::Newline {
                return self.wrong();
            }
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Parser) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            self.lexer.complain("memory exhausted");
            return Err(Wrong);
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn statement(&mut self) -> Parsed<()> {
        self.deeper(Parser::one_statement)
    }

    fn one_statement(&mut self) -> Parsed<()> {
        match self.token.clone() {
            Token::Sign("{") => {
                self.advance();
                self.block()
            }
            Token::Text(text) => {
                self.advance();
                self.code.push(Step::PrintText(text));
                Ok(())
            }
            Token::Word(word) => match word.as_str() {
                "if" => self.if_statement(),
                "while" => self.while_statement(),
                "for" => self.for_statement(),
                "print" => self.print_statement(),
                "return" => self.return_statement(),
                "break" => self.leave("Break outside a for/while", |round| &mut round.breaks),
                "continue" => {
                    self.extension("Continue statement");
                    self.leave("Continue outside a for", |round| &mut round.continues)
                }
                "halt" => {
                    self.extension("halt statement");
                    self.advance();
                    self.code.push(Step::Halt);
                    Ok(())
                }
                "limits" => {
                    self.advance();
                    self.code.push(Step::PrintText(LIMITS.to_vec()));
                    Ok(())
                }
                _ => self.expression_statement(),
            },
            _ => self.expression_statement(),
        }
    }

    fn expression_statement(&mut self) -> Parsed<()> {
        let kind = self.expression(0)?;
        if kind == Kind::Comparison {
            self.extension("comparison in expression");
        }
        self.code.push(if matches!(kind, Kind::Assignment | Kind::Void) { Step::Pop } else { Step::Show });
        Ok(())
    }

    /// A condition in parentheses; answers the jump for when it does not hold.
    fn condition(&mut self) -> Parsed<usize> {
        self.expect("(")?;
        self.value()?;
        self.expect(")")?;
        Ok(self.code.push_jump(Step::JumpIfZero))
    }

    fn if_statement(&mut self) -> Parsed<()> {
        self.advance();
        let otherwise = self.condition()?;
        self.skip_newlines();
        self.statement()?;
        if !self.is_word("else") {
            self.code.land(otherwise);
            return Ok(());
        }
        self.extension("else clause in if statement");
        self.advance();
        let end = self.code.push_jump(Step::Jump);
        self.code.land(otherwise);
        self.skip_newlines();
        self.statement()?;
        self.code.land(end);
        Ok(())
    }

    fn while_statement(&mut self) -> Parsed<()> {
        self.advance();
        let start = self.code.steps.len();
        let end = self.condition()?;
        self.skip_newlines();
        self.loops.push(Loop { breaks: vec![end], continues: Vec::new() });
        self.statement()?;
        self.end_loop(start);
        Ok(())
    }

    /// Goes back to the start of a round, where `continue` goes to as well.
    fn end_loop(&mut self, start: usize) {
        self.code.push(Step::Jump(start));
        if let Some(ended) = self.loops.pop() {
            for jump in ended.continues {
                if let Some(Step::Jump(target)) = self.code.steps.get_mut(jump) {
                    *target = start;
                }
            }
            ended.breaks.into_iter().for_each(|jump| self.code.land(jump));
        }
    }

    fn for_statement(&mut self) -> Parsed<()> {
        self.advance();
        self.expect("(")?;
        if !self.is_sign(";") {
            self.value()?;
            self.code.push(Step::Pop);
        }
        self.expect(";")?;
        let test = self.code.steps.len();
        let mut breaks = Vec::new();
        if !self.is_sign(";") {
            self.value()?;
            breaks.push(self.code.push_jump(Step::JumpIfZero));
        }
        self.expect(";")?;
        let body = self.code.push_jump(Step::Jump);
        let update = self.code.steps.len();
        if !self.is_sign(")") {
            self.value()?;
            self.code.push(Step::Pop);
        }
        self.expect(")")?;
        self.code.push(Step::Jump(test));
        self.code.land(body);
        self.skip_newlines();
        self.loops.push(Loop { breaks, continues: Vec::new() });
        self.statement()?;
        self.end_loop(update);
        Ok(())
    }

    fn leave(&mut self, outside: &str, jumps: fn(&mut Loop) -> &mut Vec<usize>) -> Parsed<()> {
        if self.loops.is_empty() {
            self.error(outside);
        }
        self.advance();
        let jump = self.code.push_jump(Step::Jump);
        if let Some(round) = self.loops.last_mut() {
            jumps(round).push(jump);
        }
        Ok(())
    }

    fn print_statement(&mut self) -> Parsed<()> {
        self.extension("print statement");
        self.advance();
        loop {
            if let Token::Text(text) = &self.token {
                let text = unescaped(text);
                self.advance();
                self.code.push(Step::PrintText(text));
            } else {
                self.value()?;
                self.code.push(Step::Print);
            }
            if !self.accept(",") {
                return Ok(());
            }
        }
    }

    fn return_statement(&mut self) -> Parsed<()> {
        self.advance();
        let ends = self.token == Token::Newline || self.is_sign(";") || self.is_sign("}");
        if ends {
            self.code.push(Step::Constant(literal("0")));
        } else {
            if !self.is_sign("(") {
                self.extension("return expression requires parenthesis");
            }
            self.value()?;
            if self.is_void {
                self.error("Return expression in a void function.");
            }
        }
        if !self.in_function {
            self.error("Return outside of a function.");
        }
        self.code.push(Step::Return);
        Ok(())
    }

    fn function(&mut self) -> Parsed<Item> {
        self.advance();
        self.is_void = self.is_word("void");
        if self.is_void {
            self.extension("void functions");
            self.advance();
        }
        let name = self.name()?;
        self.in_function = true;
        self.expect("(")?;
        let parameters = if self.is_sign(")") { Vec::new() } else { self.owned(true)? };
        self.expect(")")?;
        self.skip_newlines();
        self.expect("{")?;
        let number = self.function_number(name.clone());
        self.void_functions.retain(|void| *void != number);
        if self.is_void {
            self.void_functions.push(number);
        }
        while self.token == Token::Newline {
            self.advance();
        }
        let mut autos = Vec::new();
        while self.is_word("auto") {
            self.advance();
            autos.extend(self.owned(false)?);
            while self.token == Token::Newline || self.is_sign(";") {
                self.advance();
            }
        }
        if autos.iter().any(|own| parameters.contains(own)) {
            self.error("duplicate auto variable names");
        }
        self.block()?;
        self.code.push(Step::Constant(literal("0")));
        self.code.push(Step::Return);
        let body = Body::Written(Rc::new(std::mem::take(&mut self.code)));
        Ok(Item::Define(number, Function { name, parameters, autos, body }))
    }

    /// A list of parameters, or of a function's own variables.
    fn owned(&mut self, are_parameters: bool) -> Parsed<Vec<Own>> {
        let mut list = Vec::new();
        loop {
            let is_reference = are_parameters && (self.accept("*") || self.accept("&"));
            let name = self.name()?;
            let own = if self.accept("[") {
                self.expect("]")?;
                let array = self.array(name);
                if is_reference { Own::Reference(array) } else { Own::Array(array) }
            } else {
                Own::Variable(self.variable(name))
            };
            if list.contains(&own) {
                let what = if are_parameters { "parameter" } else { "auto variable" };
                self.error(&format!("duplicate {what} names"));
            }
            list.push(own);
            if !self.accept(",") {
                return Ok(list);
            }
        }
    }

    /// An expression that must have a value.
    fn value(&mut self) -> Parsed<Kind> {
        let kind = self.expression(0)?;
        if kind == Kind::Void {
            self.error("void expression where a value is needed");
        }
        Ok(kind)
    }

    /// A function without a value can be no operand.
    fn refuse_void(&mut self, kind: Kind, operator: &str) {
        if kind == Kind::Void {
            self.error(&format!("void expression with {operator}"));
        }
    }

    /// An expression of operators that bind at least so tightly.
    fn expression(&mut self, least: u8) -> Parsed<Kind> {
        self.deeper(|parser| parser.operators(least))
    }

    fn operators(&mut self, least: u8) -> Parsed<Kind> {
        let mut kind = self.operand()?;
        loop {
            let Token::Sign(sign) = self.token else { return Ok(kind) };
            let Some((strength, operator)) = operator(sign).filter(|(strength, _)| *strength >= least) else {
                return Ok(kind);
            };
            self.advance();
            let left = kind;
            kind = match operator {
                Some(Binary::Power) => self.right(strength, Binary::Power, sign)?,
                Some(operator) => self.right(strength + 1, operator, sign)?,
                None => self.logical(sign, strength + 1)?,
            };
            self.refuse_void(left, sign);
        }
    }

    fn right(&mut self, least: u8, operator: Binary, sign: &str) -> Parsed<Kind> {
        let kind = self.expression(least)?;
        self.refuse_void(kind, sign);
        self.code.push(Step::Binary(operator));
        let compares = operator as u8 >= Binary::Less as u8;
        Ok(if compares { Kind::Comparison } else { Kind::Plain })
    }

    /// `&&` and `||` look at their right side only if the left one has not decided.
    fn logical(&mut self, sign: &str, least: u8) -> Parsed<Kind> {
        let is_and = sign == "&&";
        self.extension(if is_and { "&& operator" } else { "|| operator" });
        self.code.push(Step::Not);
        if is_and {
            self.code.push(Step::Not);
        }
        self.code.push(Step::Duplicate);
        let decided = self.code.push_jump(Step::JumpIfZero);
        self.code.push(Step::Pop);
        let kind = self.expression(least)?;
        self.refuse_void(kind, sign);
        self.code.push(Step::Not);
        if is_and {
            self.code.push(Step::Not);
        }
        self.code.land(decided);
        if !is_and {
            self.code.push(Step::Not);
        }
        Ok(Kind::Plain)
    }

    fn operand(&mut self) -> Parsed<Kind> {
        match self.token.clone() {
            Token::Number(number) => {
                self.advance();
                self.code.push(Step::Constant(literal(&number)));
                Ok(Kind::Plain)
            }
            Token::Sign("(") => {
                self.advance();
                let kind = self.expression(0)?;
                self.expect(")")?;
                Ok(if kind == Kind::Void { kind } else { Kind::Plain })
            }
            Token::Sign("-") => {
                self.advance();
                let kind = self.expression(UNARY)?;
                self.refuse_void(kind, "unary -");
                self.code.push(Step::Negate);
                Ok(if kind == Kind::Assignment { kind } else { Kind::Plain })
            }
            Token::Sign("!") => {
                self.advance();
                let kind = self.expression(NOT + 1)?;
                self.extension("! operator");
                self.refuse_void(kind, "!");
                self.code.push(Step::Not);
                Ok(Kind::Plain)
            }
            Token::Sign(sign @ ("++" | "--")) => {
                self.advance();
                let named = self.named()?;
                self.step_by_one(named, sign, false);
                Ok(Kind::Plain)
            }
            Token::Word(word) => self.word(&word),
            _ => self.wrong(),
        }
    }

    fn word(&mut self, word: &str) -> Parsed<Kind> {
        match word {
            "length" | "sqrt" | "read" => self.builtin(word),
            "scale" | "ibase" | "obase" | "history" | "last" => {
                self.advance();
                if word == "scale" && self.is_sign("(") {
                    return self.argument(Step::ScaleOf);
                }
                let place = match word {
                    "scale" => Place::Scale,
                    "ibase" => Place::InputBase,
                    "obase" => Place::OutputBase,
                    "history" => Place::History,
                    _ => Place::Last,
                };
                self.use_of(Named::Place(place))
            }
            _ => {
                let name = self.name()?;
                if self.is_sign("(") {
                    return self.call(name);
                }
                let named = self.rest_of_name(name)?;
                self.use_of(named)
            }
        }
    }

    fn builtin(&mut self, word: &str) -> Parsed<Kind> {
        self.advance();
        match word {
            "length" => self.argument(Step::Length),
            "sqrt" => self.argument(Step::Root),
            _ => {
                self.extension("read function");
                self.expect("(")?;
                self.expect(")")?;
                self.code.push(Step::Read);
                Ok(Kind::Plain)
            }
        }
    }

    fn argument(&mut self, step: Step) -> Parsed<Kind> {
        self.expect("(")?;
        self.value()?;
        self.expect(")")?;
        self.code.push(step);
        Ok(Kind::Plain)
    }

    fn call(&mut self, name: String) -> Parsed<Kind> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.accept(")") {
            loop {
                arguments.push(self.one_argument()?);
                if !self.accept(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        let number = self.function_number(name);
        self.code.push(Step::Call(number, arguments));
        Ok(if self.void_functions.contains(&number) { Kind::Void } else { Kind::Plain })
    }

    /// A value, or a whole array: a name with nothing between its brackets.
    fn one_argument(&mut self) -> Parsed<Argument> {
        if let Token::Word(word) = self.token.clone()
            && !is_keyword(&word)
            && self.lexer.has_empty_brackets()
        {
            let name = self.name()?;
            self.expect("[")?;
            self.expect("]")?;
            return Ok(Argument::Array(self.array(name)));
        }
        self.value()?;
        Ok(Argument::Value)
    }

    /// What may stand left of an assignment. The index of an element is on the stack then.
    fn named(&mut self) -> Parsed<Named> {
        let place = match &self.token {
            Token::Word(word) => match word.as_str() {
                "scale" => Some(Place::Scale),
                "ibase" => Some(Place::InputBase),
                "obase" => Some(Place::OutputBase),
                "history" => Some(Place::History),
                "last" => Some(Place::Last),
                _ => None,
            },
            _ => None,
        };
        match place {
            Some(place) => {
                self.advance();
                Ok(Named::Place(place))
            }
            None => {
                let name = self.name()?;
                self.rest_of_name(name)
            }
        }
    }

    fn rest_of_name(&mut self, name: String) -> Parsed<Named> {
        if !self.accept("[") {
            return Ok(Named::Place(Place::Variable(self.variable(name))));
        }
        self.value()?;
        self.expect("]")?;
        Ok(Named::Element(self.array(name)))
    }

    /// A name as a value, or as what an assignment changes.
    fn use_of(&mut self, named: Named) -> Parsed<Kind> {
        let Token::Sign(sign) = self.token else {
            self.load(named);
            return Ok(Kind::Plain);
        };
        match sign {
            "=" => {
                self.advance();
                self.expression(ASSIGNMENT)?;
                self.store(named);
                Ok(Kind::Assignment)
            }
            "+=" | "-=" | "*=" | "/=" | "%=" | "^=" => {
                self.advance();
                if let Named::Element(_) = named {
                    self.code.push(Step::Duplicate);
                }
                self.load(named);
                self.expression(ASSIGNMENT)?;
                if let Some((_, Some(operator))) = operator(&sign[..1]) {
                    self.code.push(Step::Binary(operator));
                }
                self.store(named);
                Ok(Kind::Assignment)
            }
            "++" | "--" => {
                self.advance();
                self.step_by_one(named, sign, true);
                Ok(Kind::Plain)
            }
            _ => {
                self.load(named);
                Ok(Kind::Plain)
            }
        }
    }

    fn load(&mut self, named: Named) {
        self.code.push(match named {
            Named::Place(place) => Step::Load(place),
            Named::Element(array) => Step::LoadElement(array),
        });
    }

    fn store(&mut self, named: Named) {
        self.code.push(match named {
            Named::Place(place) => Step::Store(place),
            Named::Element(array) => Step::StoreElement(array),
        });
    }

    /// `++` or `--`; behind a name it leaves the value from before.
    fn step_by_one(&mut self, named: Named, sign: &str, is_behind: bool) {
        let (operator, inverse) =
            if sign == "++" { (Binary::Plus, Binary::Minus) } else { (Binary::Minus, Binary::Plus) };
        if let Named::Element(_) = named {
            self.code.push(Step::Duplicate);
        }
        self.load(named);
        self.code.push(Step::Constant(literal("1")));
        self.code.push(Step::Binary(operator));
        self.store(named);
        if is_behind {
            self.code.push(Step::Constant(literal("1")));
            self.code.push(Step::Binary(inverse));
        }
    }
}

/// What a value can be given to.
#[derive(Clone, Copy)]
enum Named {
    Place(Place),
    Element(usize),
}

const NOT: u8 = 3;
const ASSIGNMENT: u8 = 5;
const UNARY: u8 = 9;

/// How tightly an operator binds, and what it does; `&&` and `||` are none of the machine's.
fn operator(sign: &str) -> Option<(u8, Option<Binary>)> {
    Some(match sign {
        "||" => (1, None),
        "&&" => (2, None),
        "<" => (4, Some(Binary::Less)),
        "<=" => (4, Some(Binary::LessOrEqual)),
        "==" => (4, Some(Binary::Equal)),
        "!=" => (4, Some(Binary::Unequal)),
        ">=" => (4, Some(Binary::GreaterOrEqual)),
        ">" => (4, Some(Binary::Greater)),
        "+" => (6, Some(Binary::Plus)),
        "-" => (6, Some(Binary::Minus)),
        "*" => (7, Some(Binary::Times)),
        "/" => (7, Some(Binary::Over)),
        "%" => (7, Some(Binary::Modulo)),
        "^" => (8, Some(Binary::Power)),
        _ => return None,
    })
}

fn literal(text: &str) -> Literal {
    Literal { text: text.to_owned(), in_ten: OnceCell::new() }
}

/// What `print` makes of a text.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'a') => plain.push(7),
            Some(b'b') => plain.push(8),
            Some(b'f') => plain.push(12),
            Some(b'n') => plain.push(b'\n'),
            Some(b'q') => plain.push(b'"'),
            Some(b'r') => plain.push(b'\r'),
            Some(b't') => plain.push(b'\t'),
            Some(b'\\') => plain.push(b'\\'),
            // What stands for nothing is nothing.
            Some(_) | None => {}
        }
    }
    plain
}

const LIMITS: &[u8] = b"\
BC_BASE_MAX     = 2147483647
BC_DIM_MAX      = 16777215
BC_SCALE_MAX    = 2147483647
BC_STRING_MAX   = 2147483647
MAX Exponent    = 9223372036854775807
Number of vars  = 32767
";
