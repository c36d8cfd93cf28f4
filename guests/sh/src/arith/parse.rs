//! Arithmetic's syntax: C's operators, with bash's bases and `**`.
//!
//! Read token by token as bash does, because its messages quote the text from the last token on.

use super::{Expr, Op, SLOT};
use std::rc::Rc;

/// Deeper nesting than this is an error rather than a stack that runs out.
const MAX_DEPTH: usize = 200;

const TOO_DEEP: &str = "expression recursion level exceeded";

/// `1+1+1+…` is evaluated from the inside out: a chain longer than this would be too deep as well.
const MAX_TOKENS: usize = 10_000;

/// What is wrong with an expression, the rest of the text from where it went wrong, and what was complete before.
#[derive(Debug, Clone)]
pub struct ParseError {
    pub message: &'static str,
    pub rest: Vec<u8>,
    pub before: Option<Box<Expr>>,
    /// Where the text ends as far as the message is concerned: a bad number is the last thing bash looks at.
    pub end: usize,
}

type Parsed<T = Expr> = Result<T, ParseError>;

/// Compiles an expression. Empty text is 0.
pub fn parse_text(text: &[u8]) -> Parsed {
    parse(text, false)
}

/// Compiles a script's expression, in which slots stand for expansions.
pub fn parse_slotted(text: &[u8]) -> Parsed {
    parse(text, true)
}

fn parse(text: &[u8], slotted: bool) -> Parsed {
    if text.trim_ascii().is_empty() {
        return Ok(Expr::Number(0));
    }
    let mut parser = Parser::new(text, 0, slotted);
    parser.advance()?;
    let expr = parser.comma()?;
    if parser.token != Token::End {
        let mut error = parser.error("syntax error in expression");
        error.before = Some(Box::new(expr));
        return Err(error);
    }
    Ok(expr)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    End,
    /// A number, or anything that cannot be assigned to.
    Number,
    /// A variable or an element.
    Name,
    Binary(Op),
    Assign(Option<Op>),
    /// `++` or `--` before a name, and after one.
    Before(i64),
    After(i64),
    And,
    Or,
    Not,
    Invert,
    Question,
    Colon,
    Comma,
    Open,
    Close,
}

impl Token {
    fn is_operand(self) -> bool {
        matches!(self, Token::Number | Token::Name)
    }
}

struct Parser<'t> {
    text: &'t [u8],
    /// After the current token.
    at: usize,
    /// Where the last token starts; the end of the text is none.
    start: usize,
    token: Token,
    /// The token before, or what bash takes for it after an operation.
    last: Token,
    /// The current operand.
    operand: Option<Expr>,
    /// The last name read, which is what an assignment assigns to.
    target: Option<Expr>,
    depth: usize,
    /// How many tokens were read.
    tokens: usize,
    /// The text has slots; in any other the byte that marks them is one like all others.
    slotted: bool,
}

/// Operators, the longer spellings first.
const OPERATORS: &[(&[u8], Token)] = &[
    (b"<<=", Token::Assign(Some(Op::Shl))),
    (b">>=", Token::Assign(Some(Op::Shr))),
    (b"==", Token::Binary(Op::Eq)),
    (b"!=", Token::Binary(Op::Ne)),
    (b"<=", Token::Binary(Op::Le)),
    (b">=", Token::Binary(Op::Ge)),
    (b"&&", Token::And),
    (b"||", Token::Or),
    (b"<<", Token::Binary(Op::Shl)),
    (b">>", Token::Binary(Op::Shr)),
    (b"**", Token::Binary(Op::Pow)),
    (b"*=", Token::Assign(Some(Op::Mul))),
    (b"/=", Token::Assign(Some(Op::Div))),
    (b"%=", Token::Assign(Some(Op::Rem))),
    (b"+=", Token::Assign(Some(Op::Add))),
    (b"-=", Token::Assign(Some(Op::Sub))),
    (b"&=", Token::Assign(Some(Op::BitAnd))),
    (b"^=", Token::Assign(Some(Op::BitXor))),
    (b"|=", Token::Assign(Some(Op::BitOr))),
    (b"=", Token::Assign(None)),
    (b">", Token::Binary(Op::Gt)),
    (b"<", Token::Binary(Op::Lt)),
    (b"+", Token::Binary(Op::Add)),
    (b"-", Token::Binary(Op::Sub)),
    (b"*", Token::Binary(Op::Mul)),
    (b"/", Token::Binary(Op::Div)),
    (b"%", Token::Binary(Op::Rem)),
    (b"&", Token::Binary(Op::BitAnd)),
    (b"|", Token::Binary(Op::BitOr)),
    (b"^", Token::Binary(Op::BitXor)),
    (b"!", Token::Not),
    (b"~", Token::Invert),
    (b"?", Token::Question),
    (b":", Token::Colon),
    (b",", Token::Comma),
    (b"(", Token::Open),
    (b")", Token::Close),
];

/// Binary operators by binding strength, loosest first.
const LEVELS: &[&[Op]] = &[
    &[Op::BitOr],
    &[Op::BitXor],
    &[Op::BitAnd],
    &[Op::Eq, Op::Ne],
    &[Op::Le, Op::Ge, Op::Lt, Op::Gt],
    &[Op::Shl, Op::Shr],
    &[Op::Add, Op::Sub],
    &[Op::Mul, Op::Div, Op::Rem],
];

// --- tokens ---

impl<'t> Parser<'t> {
    fn new(text: &'t [u8], depth: usize, slotted: bool) -> Parser<'t> {
        Parser {
            text,
            at: 0,
            start: 0,
            token: Token::End,
            last: Token::End,
            operand: None,
            target: None,
            depth,
            tokens: 0,
            slotted,
        }
    }

    fn error(&self, message: &'static str) -> ParseError {
        self.error_at(message, self.start)
    }

    fn error_at(&self, message: &'static str, at: usize) -> ParseError {
        let rest = self.text[at.min(self.text.len())..].trim_ascii_start().to_vec();
        ParseError { message, rest, before: None, end: self.text.len() }
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn at_slot(&self) -> bool {
        self.slotted && self.peek() == SLOT
    }

    fn after(&self, offset: usize) -> u8 {
        self.text.get(self.at + offset).copied().unwrap_or(0)
    }

    /// Reads the next token.
    fn advance(&mut self) -> Parsed<()> {
        self.tokens += 1;
        if self.tokens > MAX_TOKENS {
            return Err(self.error(TOO_DEEP));
        }
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        if self.at == self.text.len() {
            self.last = self.token;
            self.token = Token::End;
            return Ok(());
        }
        self.start = self.at;
        let token = match self.peek() {
            SLOT if self.slotted => self.slot()?,
            byte if byte.is_ascii_digit() => self.number()?,
            byte if is_name_start(byte) => self.name()?,
            _ => self.operator()?,
        };
        self.last = self.token;
        self.token = token;
        // What follows a name must be a token too, and is complained of before the name is used.
        if token == Token::Name {
            let (at, start) = (self.at, self.start);
            self.expect_token()?;
            (self.at, self.start) = (at, start);
        }
        Ok(())
    }

    /// Complains if what stands here is no token at all.
    fn expect_token(&mut self) -> Parsed<()> {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let byte = self.peek();
        if self.at == self.text.len() || self.at_slot() || is_name(byte) {
            return Ok(());
        }
        self.start = self.at;
        self.operator().map(|_| ())
    }

    fn operator(&mut self) -> Parsed<Token> {
        let sign = self.peek();
        if matches!(sign, b'+' | b'-') && self.after(1) == sign {
            let by = if sign == b'+' { 1 } else { -1 };
            if self.token == Token::Name {
                self.at += 2;
                return Ok(Token::After(by));
            }
            if self.token == Token::Number && matches!(self.last, Token::Before(_)) {
                let message =
                    if by > 0 { "++: assignment requires lvalue" } else { "--: assignment requires lvalue" };
                return Err(self.error(message));
            }
            if self.name_follows(2) {
                self.at += 2;
                return Ok(Token::Before(by));
            }
            self.at += 1;
            return Ok(Token::Binary(if by > 0 { Op::Add } else { Op::Sub }));
        }
        let rest = &self.text[self.at..];
        match OPERATORS.iter().find(|(spelling, _)| rest.starts_with(spelling)) {
            Some((spelling, token)) => {
                self.at += spelling.len();
                Ok(*token)
            }
            None if self.token.is_operand() || matches!(self.token, Token::After(_)) => {
                Err(self.error("syntax error: invalid arithmetic operator"))
            }
            None => Err(self.error("syntax error: operand expected")),
        }
    }

    fn name_follows(&self, offset: usize) -> bool {
        let rest = &self.text[(self.at + offset).min(self.text.len())..];
        rest.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|&byte| is_name_start(byte))
    }

    /// A slot stands for a whole operand; beside a name or number it would be part of one.
    fn slot(&mut self) -> Parsed<Token> {
        let number = usize::from(self.after(1)).wrapping_sub(1);
        let before = self.at.checked_sub(1).map_or(b' ', |at| self.text[at]);
        self.at += 2;
        let glued = is_name(self.peek()) || matches!(self.peek(), SLOT | b'[' | b'#') || is_name(before);
        if glued {
            return Err(self.error("expansion inside a token"));
        }
        self.operand = Some(Expr::Slot(number));
        Ok(Token::Number)
    }

    fn number(&mut self) -> Parsed<Token> {
        while is_name(self.peek()) || matches!(self.peek(), b'#' | b'@') {
            self.at += 1;
        }
        if self.at_slot() {
            return Err(self.error("expansion inside a token"));
        }
        let digits = &self.text[self.start..self.at];
        let value = number(digits).map_err(|message| ParseError {
            message,
            rest: digits.to_vec(),
            before: None,
            end: self.at,
        })?;
        self.operand = Some(Expr::Number(value));
        Ok(Token::Number)
    }

    fn name(&mut self) -> Parsed<Token> {
        while is_name(self.peek()) {
            self.at += 1;
        }
        if self.at_slot() {
            return Err(self.error("expansion inside a token"));
        }
        let name: Rc<[u8]> = self.text[self.start..self.at].into();
        let operand = if self.peek() == b'[' { self.element(name)? } else { Expr::Variable(name) };
        self.target = Some(operand.clone());
        self.operand = Some(operand);
        Ok(Token::Name)
    }

    /// `name[…]`, at its bracket.
    fn element(&mut self, name: Rc<[u8]>) -> Parsed {
        let open = self.at;
        let mut depth = 0;
        while self.at < self.text.len() {
            match self.peek() {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        if depth != 0 {
            return Err(self.error("bad array subscript"));
        }
        let text = &self.text[open + 1..self.at - 1];
        if self.depth >= MAX_DEPTH {
            return Err(self.error(TOO_DEEP));
        }
        let mut parser = Parser::new(text, self.depth + 1, self.slotted);
        let parsed = match parser.advance().and_then(|()| parser.comma()) {
            Err(error) if error.message == TOO_DEEP => return Err(error),
            parsed => parsed.ok(),
        };
        let subscript = parsed.filter(|_| parser.token == Token::End).map(Box::new);
        Ok(Expr::Element { name, subscript, text: text.into() })
    }
}

// --- grammar ---

impl Parser<'_> {
    /// Parses one level deeper.
    fn nested(&mut self, parse: fn(&mut Self) -> Parsed) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(TOO_DEEP));
        }
        let parsed = parse(self)?;
        self.depth -= 1;
        Ok(parsed)
    }

    fn comma(&mut self) -> Parsed {
        self.nested(|parser| {
            let mut left = parser.assignment()?;
            while parser.token == Token::Comma {
                match parser.advance().and_then(|()| parser.assignment()) {
                    Ok(right) => left = Expr::Comma(Box::new(left), Box::new(right)),
                    // What stands before a comma has happened by then.
                    Err(mut error) => {
                        error.before = Some(match error.before {
                            Some(more) => Box::new(Expr::Comma(Box::new(left), more)),
                            None => Box::new(left),
                        });
                        return Err(error);
                    }
                }
            }
            Ok(left)
        })
    }

    fn assignment(&mut self) -> Parsed {
        let left = self.ternary()?;
        let Token::Assign(op) = self.token else { return Ok(left) };
        let Some(target) = self.target.take().filter(|_| self.last == Token::Name) else {
            let mut error = self.error("attempted assignment to non-variable");
            error.before = Some(Box::new(left));
            return Err(error);
        };
        self.advance()?;
        let mut value = self.nested(Self::assignment)?;
        if matches!(op, Some(Op::Div | Op::Rem)) {
            value = self.checked(value, "division by 0", self.start);
        }
        let assigned = Expr::Assign(op, Box::new(target), Box::new(value));
        Ok(match left {
            Expr::Variable(_) | Expr::Element { .. } => assigned,
            // As in bash `1 + x = 5` assigns to `x`.
            other => Expr::Comma(Box::new(other), Box::new(assigned)),
        })
    }

    fn ternary(&mut self) -> Parsed {
        let condition = self.or()?;
        if self.token != Token::Question {
            return Ok(condition);
        }
        self.advance()?;
        if matches!(self.token, Token::End | Token::Colon) {
            return Err(self.error("expression expected"));
        }
        let yes = self.comma()?;
        if self.token != Token::Colon {
            return Err(self.error("`:' expected for conditional expression"));
        }
        self.advance()?;
        if self.token == Token::End {
            return Err(self.error("expression expected"));
        }
        let no = self.nested(Self::ternary)?;
        self.last = Token::Question;
        Ok(Expr::Ternary(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    fn or(&mut self) -> Parsed {
        let mut left = self.and()?;
        while self.token == Token::Or {
            self.advance()?;
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
            self.last = Token::Or;
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.binary(0)?;
        while self.token == Token::And {
            self.advance()?;
            left = Expr::And(Box::new(left), Box::new(self.binary(0)?));
            self.last = Token::And;
        }
        Ok(left)
    }

    fn binary(&mut self, level: usize) -> Parsed {
        let Some(operators) = LEVELS.get(level) else { return self.power() };
        let mut left = self.binary(level + 1)?;
        while let Token::Binary(op) = self.token
            && operators.contains(&op)
        {
            let operand = self.at;
            self.advance()?;
            let mut right = self.binary(level + 1)?;
            if matches!(op, Op::Div | Op::Rem) {
                right = self.checked(right, "division by 0", operand);
            }
            left = Expr::Binary(op, Box::new(left), Box::new(right));
            self.last = Token::Number;
        }
        Ok(left)
    }

    fn power(&mut self) -> Parsed {
        let base = self.unary()?;
        if self.token != Token::Binary(Op::Pow) {
            return Ok(base);
        }
        self.advance()?;
        let exponent = self.nested(Self::power)?;
        self.last = Token::Number;
        let exponent = self.checked(exponent, "exponent less than 0", self.start);
        Ok(Expr::Binary(Op::Pow, Box::new(base), Box::new(exponent)))
    }

    /// An operand that not every value will do for; the complaint quotes the text from `at` on.
    fn checked(&self, value: Expr, message: &'static str, at: usize) -> Expr {
        if let Expr::Number(1..) = value {
            return value;
        }
        let rest = self.text[at.min(self.text.len())..].trim_ascii_start().into();
        Expr::Checked { value: Box::new(value), message, rest }
    }

    fn unary(&mut self) -> Parsed {
        let sign = match self.token {
            Token::Not => b'!',
            Token::Invert => b'~',
            Token::Binary(Op::Sub) => b'-',
            Token::Binary(Op::Add) => b'+',
            _ => return self.operand(),
        };
        self.advance()?;
        let operand = self.nested(Self::unary)?;
        self.last = Token::Number;
        Ok(Expr::Unary(sign, Box::new(operand)))
    }

    fn operand(&mut self) -> Parsed {
        match self.token {
            Token::Before(by) => {
                self.advance()?;
                let Some(target) = self.operand.take().filter(|_| self.token == Token::Name) else {
                    let message = "identifier expected after pre-increment or pre-decrement";
                    return Err(self.error(message));
                };
                self.last = Token::Before(by);
                self.token = Token::Number;
                self.advance()?;
                Ok(Expr::Step { target: Box::new(target), by, prefix: true })
            }
            Token::Open => {
                self.advance()?;
                let inner = self.comma()?;
                if self.token != Token::Close {
                    return Err(self.error("missing `)'"));
                }
                self.advance()?;
                Ok(inner)
            }
            Token::Number | Token::Name => {
                let operand = self.operand.take().unwrap_or(Expr::Number(0));
                self.advance()?;
                let Token::After(by) = self.token else { return Ok(operand) };
                self.token = Token::Number;
                self.advance()?;
                Ok(Expr::Step { target: Box::new(operand), by, prefix: false })
            }
            _ => Err(self.error("syntax error: operand expected")),
        }
    }
}

pub fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A number in decimal, octal (`0…`), hexadecimal (`0x…`) or `base#digits`. Wraps at 64 bits.
pub fn number(text: &[u8]) -> Result<i64, &'static str> {
    if let Some(hash) = text.iter().position(|&byte| byte == b'#') {
        let base = number(&text[..hash])?;
        if text[..hash].first() == Some(&b'0') {
            return Err("invalid number");
        }
        if !(2..=64).contains(&base) {
            return Err("invalid arithmetic base");
        }
        if hash + 1 == text.len() {
            return Err("invalid integer constant");
        }
        return digits(&text[hash + 1..], base);
    }
    match text {
        [b'0', b'x' | b'X', rest @ ..] => digits(rest, 16),
        [b'0', rest @ ..] => digits(rest, 8),
        _ => digits(text, 10),
    }
}

fn digits(text: &[u8], base: i64) -> Result<i64, &'static str> {
    let mut value: i64 = 0;
    for &byte in text {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'z' => byte - b'a' + 10,
            b'A'..=b'Z' if base <= 36 => byte - b'A' + 10,
            b'A'..=b'Z' => byte - b'A' + 36,
            b'@' => 62,
            b'_' => 63,
            _ => return Err("invalid number"),
        };
        if i64::from(digit) >= base {
            return Err("value too great for base");
        }
        value = value.wrapping_mul(base).wrapping_add(i64::from(digit));
    }
    Ok(value)
}
