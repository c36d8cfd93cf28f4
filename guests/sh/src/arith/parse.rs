//! Arithmetic's syntax: C's operators, with bash's bases and `**`.

use super::{Expr, Op, SLOT};
use std::rc::Rc;

/// Deeper nesting than this is an error rather than a stack that runs out.
const MAX_DEPTH: usize = 200;

/// What is wrong with an expression, and the rest of the text from where it went wrong.
#[derive(Debug, Clone)]
pub struct ParseError {
    pub message: &'static str,
    pub rest: Vec<u8>,
}

type Parsed = Result<Expr, ParseError>;

/// Compiles an expression. Empty text is 0.
pub fn parse_text(text: &[u8]) -> Parsed {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.blanks();
    if parser.at == text.len() {
        return Ok(Expr::Number(0));
    }
    let expr = parser.comma()?;
    parser.blanks();
    if parser.at < text.len() {
        let message = match expr {
            Expr::Number(_) | Expr::Slot(_) | Expr::Variable(_) if text[parser.at] == b'=' => {
                "attempted assignment to non-variable"
            }
            _ => "syntax error in expression",
        };
        return Err(parser.error(message));
    }
    Ok(expr)
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
}

/// Binary operators by binding strength, loosest first; longest spelling first within a level.
const LEVELS: &[&[(&[u8], Op)]] = &[
    &[(b"|", Op::BitOr)],
    &[(b"^", Op::BitXor)],
    &[(b"&", Op::BitAnd)],
    &[(b"==", Op::Eq), (b"!=", Op::Ne)],
    &[(b"<=", Op::Le), (b">=", Op::Ge), (b"<", Op::Lt), (b">", Op::Gt)],
    &[(b"<<", Op::Shl), (b">>", Op::Shr)],
    &[(b"+", Op::Add), (b"-", Op::Sub)],
    &[(b"*", Op::Mul), (b"/", Op::Div), (b"%", Op::Rem)],
];

const ASSIGNMENTS: &[(&[u8], Option<Op>)] = &[
    (b"<<=", Some(Op::Shl)),
    (b">>=", Some(Op::Shr)),
    (b"*=", Some(Op::Mul)),
    (b"/=", Some(Op::Div)),
    (b"%=", Some(Op::Rem)),
    (b"+=", Some(Op::Add)),
    (b"-=", Some(Op::Sub)),
    (b"&=", Some(Op::BitAnd)),
    (b"^=", Some(Op::BitXor)),
    (b"|=", Some(Op::BitOr)),
    (b"=", None),
];

impl Parser<'_> {
    fn error(&self, message: &'static str) -> ParseError {
        ParseError { message, rest: self.text[self.at.min(self.text.len())..].to_vec() }
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn after(&self, offset: usize) -> u8 {
        self.text.get(self.at + offset).copied().unwrap_or(0)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn eat(&mut self, token: &[u8]) -> bool {
        self.blanks();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn comma(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("expression recursion level exceeded"));
        }
        let mut left = self.assignment()?;
        while self.eat(b",") {
            left = Expr::Comma(Box::new(left), Box::new(self.assignment()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn assignment(&mut self) -> Parsed {
        let left = self.ternary()?;
        self.blanks();
        if !matches!(left, Expr::Variable(_) | Expr::Element { .. }) {
            return Ok(left);
        }
        for &(token, op) in ASSIGNMENTS {
            let is_comparison = token == b"=" && self.after(1) == b'=';
            if !is_comparison && self.eat(token) {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(self.error("expression recursion level exceeded"));
                }
                let value = self.assignment()?;
                self.depth -= 1;
                return Ok(Expr::Assign(op, Box::new(left), Box::new(value)));
            }
        }
        Ok(left)
    }

    fn ternary(&mut self) -> Parsed {
        let condition = self.or()?;
        if !self.eat(b"?") {
            return Ok(condition);
        }
        self.blanks();
        if self.peek() == b':' {
            return Err(self.error("expression expected"));
        }
        let yes = self.comma()?;
        if !self.eat(b":") {
            return Err(self.error("`:' expected for conditional expression"));
        }
        self.blanks();
        if self.at == self.text.len() {
            return Err(self.error("expression expected"));
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("expression recursion level exceeded"));
        }
        let no = self.ternary()?;
        self.depth -= 1;
        Ok(Expr::Ternary(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    fn or(&mut self) -> Parsed {
        let mut left = self.and()?;
        while self.eat(b"||") {
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.binary(0)?;
        while self.eat(b"&&") {
            left = Expr::And(Box::new(left), Box::new(self.binary(0)?));
        }
        Ok(left)
    }

    fn binary(&mut self, level: usize) -> Parsed {
        let Some(operators) = LEVELS.get(level) else { return self.power() };
        let mut left = self.binary(level + 1)?;
        while let Some(op) = self.operator(operators) {
            let right = self.binary(level + 1)?;
            left = Expr::Binary(op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    /// Takes one of a level's operators, unless it is part of a longer token of another level.
    fn operator(&mut self, operators: &[(&[u8], Op)]) -> Option<Op> {
        self.blanks();
        for &(token, op) in operators {
            if !self.text[self.at..].starts_with(token) {
                continue;
            }
            let next = self.after(token.len());
            let longer = match token {
                b"|" | b"&" => next == token[0] || next == b'=',
                b"<" | b">" => next == token[0],
                b"*" => next == b'*' || next == b'=',
                b"<=" | b">=" | b"==" | b"!=" => false,
                _ => next == b'=',
            };
            if !longer {
                self.at += token.len();
                return Some(op);
            }
        }
        None
    }

    fn power(&mut self) -> Parsed {
        let base = self.unary()?;
        if !self.eat(b"**") {
            return Ok(base);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("expression recursion level exceeded"));
        }
        let exponent = self.power()?;
        self.depth -= 1;
        Ok(Expr::Binary(Op::Pow, Box::new(base), Box::new(exponent)))
    }

    fn unary(&mut self) -> Parsed {
        self.blanks();
        let sign = self.peek();
        let doubled = self.after(1) == sign;
        if matches!(sign, b'+' | b'-') && doubled && self.name_follows(2) {
            self.at += 2;
            self.blanks();
            let target = self.primary()?;
            let by = if sign == b'+' { 1 } else { -1 };
            return Ok(Expr::Step { target: Box::new(target), by, prefix: true });
        }
        if matches!(sign, b'+' | b'-' | b'!' | b'~') {
            self.at += 1;
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(self.error("expression recursion level exceeded"));
            }
            let operand = self.unary()?;
            self.depth -= 1;
            return Ok(Expr::Unary(sign, Box::new(operand)));
        }
        self.postfix()
    }

    fn name_follows(&self, offset: usize) -> bool {
        let rest = &self.text[(self.at + offset).min(self.text.len())..];
        rest.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|&byte| is_name_start(byte))
    }

    fn postfix(&mut self) -> Parsed {
        let value = self.primary()?;
        self.blanks();
        let sign = self.peek();
        let steps = matches!(sign, b'+' | b'-') && self.after(1) == sign;
        if steps && matches!(value, Expr::Variable(_) | Expr::Element { .. }) {
            self.at += 2;
            let by = if sign == b'+' { 1 } else { -1 };
            return Ok(Expr::Step { target: Box::new(value), by, prefix: false });
        }
        Ok(value)
    }

    fn primary(&mut self) -> Parsed {
        self.blanks();
        match self.peek() {
            b'(' => {
                self.at += 1;
                let inner = self.comma()?;
                if !self.eat(b")") {
                    return Err(self.error("missing `)'"));
                }
                Ok(inner)
            }
            SLOT => self.slot(),
            byte if byte.is_ascii_digit() => self.number(),
            byte if is_name_start(byte) => self.variable(),
            _ => Err(self.error("syntax error: operand expected")),
        }
    }

    /// A slot stands for a whole operand; beside a name or number it would be part of one.
    fn slot(&mut self) -> Parsed {
        let number = usize::from(self.after(1)).wrapping_sub(1);
        let before = self.at.checked_sub(1).map_or(b' ', |at| self.text[at]);
        self.at += 2;
        let glued = is_name(self.peek()) || matches!(self.peek(), SLOT | b'[' | b'#') || is_name(before);
        if glued {
            return Err(self.error("expansion inside a token"));
        }
        Ok(Expr::Slot(number))
    }

    fn number(&mut self) -> Parsed {
        let start = self.at;
        while is_name(self.peek()) || matches!(self.peek(), b'#' | b'@') {
            self.at += 1;
        }
        if self.peek() == SLOT {
            return Err(self.error("expansion inside a token"));
        }
        let digits = &self.text[start..self.at];
        number(digits)
            .map_err(|message| ParseError { message, rest: self.text[start..].to_vec() })
            .map(Expr::Number)
    }

    fn variable(&mut self) -> Parsed {
        let start = self.at;
        while is_name(self.peek()) {
            self.at += 1;
        }
        if self.peek() == SLOT {
            return Err(self.error("expansion inside a token"));
        }
        let name: Rc<[u8]> = self.text[start..self.at].into();
        if self.peek() != b'[' {
            return Ok(Expr::Variable(name));
        }
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
        let inner = if self.depth < MAX_DEPTH {
            let mut parser = Parser { text, at: 0, depth: self.depth + 1 };
            let parsed = parser.comma().ok();
            parser.blanks();
            parsed.filter(|_| parser.at == text.len()).map(Box::new)
        } else {
            None
        };
        Ok(Expr::Element { name, subscript: inner, text: text.into() })
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
        if text[..hash].first() == Some(&b'0') || !(2..=64).contains(&base) {
            return Err(if text[..hash].is_empty() { "invalid number" } else { "invalid arithmetic base" });
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
