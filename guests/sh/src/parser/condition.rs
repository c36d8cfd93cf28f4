//! The inside of `[[ ]]`.

use super::*;

impl Parser {
    pub(super) fn condition_command(&mut self) -> Parsed<CompoundKind> {
        self.expect(b"[[")?;
        let condition = self.condition_or()?;
        self.blanks_and_newlines()?;
        if self.keyword(b"]]") {
            return Ok(CompoundKind::Condition(condition));
        }
        Err(match self.condition_token() {
            None => self.unexpected(),
            Some(token) if token.starts_with(b")") => {
                self.wrong_condition("syntax error in conditional expression: unexpected token `)'")
            }
            Some(_) => self.wrong_condition("syntax error in conditional expression"),
        })
    }

    fn condition_or(&mut self) -> Parsed<Condition> {
        self.enter()?;
        let mut left = self.condition_and()?;
        loop {
            self.blanks_and_newlines()?;
            if !self.eat(b"||") {
                self.depth -= 1;
                return Ok(left);
            }
            left = Condition::Or(Box::new(left), Box::new(self.condition_and()?));
        }
    }

    fn condition_and(&mut self) -> Parsed<Condition> {
        let mut left = self.condition_not()?;
        loop {
            self.blanks_and_newlines()?;
            if !self.eat(b"&&") {
                return Ok(left);
            }
            left = Condition::And(Box::new(left), Box::new(self.condition_not()?));
        }
    }

    fn condition_not(&mut self) -> Parsed<Condition> {
        self.enter()?;
        self.blanks_and_newlines()?;
        let result = if self.keyword(b"!") {
            Condition::Not(Box::new(self.condition_not()?))
        } else if self.peek() == Some(b'(') {
            self.at += 1;
            let inner = self.condition_or()?;
            self.blanks_and_newlines()?;
            if !self.eat(b")") {
                return Err(self.misplaced("unexpected token `", "', expected `)'"));
            }
            Condition::Group(Box::new(inner))
        } else {
            self.condition_test()?
        };
        self.depth -= 1;
        Ok(result)
    }

    fn condition_test(&mut self) -> Parsed<Condition> {
        if self.peek_keyword() == b"]]" {
            return Err(self.wrong_condition(""));
        }
        let Some(left) = self.word()? else {
            return Err(self.misplaced("unexpected token `", "' in conditional command"));
        };
        self.blanks();
        let unary = left.as_plain().filter(|text| is_unary(text)).map(<[u8]>::to_vec);
        if let Some(operator) = unary {
            return match self.condition_operand()? {
                Some(operand) => Ok(Condition::Unary(operator, operand)),
                None => Err(self.misplaced("unexpected argument `", "' to conditional unary operator")),
            };
        }
        if self.test_ends() {
            return Ok(Condition::Word(left));
        }
        self.binary_test(left)
    }

    /// A test of two words, behind the first.
    fn binary_test(&mut self, left: Word) -> Parsed<Condition> {
        let Some(operator) = self.binary_operator() else {
            let plain = self.word_follows();
            return Err(match plain {
                true => self.wrong_condition("conditional binary operator expected"),
                false => self.misplaced("unexpected token `", "', conditional binary operator expected"),
            });
        };
        self.blanks();
        let right = match operator.as_slice() {
            b"=~" => self.regex_word()?,
            _ => {
                let saved = std::mem::replace(&mut self.pattern_parens, true);
                let word = self.condition_operand();
                self.pattern_parens = saved;
                word?
            }
        };
        match right {
            Some(right) if right.as_plain() != Some(b"]]") => Ok(Condition::Binary(left, operator, right)),
            Some(_) => Err(self.wrong_condition("unexpected argument `]]' to conditional binary operator")),
            None => Err(self.misplaced("unexpected argument `", "' to conditional binary operator")),
        }
    }

    /// A word that is not the end of the command.
    fn condition_operand(&mut self) -> Parsed<Option<Word>> {
        if self.peek_keyword() == b"]]" { Ok(None) } else { self.word() }
    }

    /// The token that stands here.
    fn condition_token(&mut self) -> Option<Vec<u8>> {
        match self.unexpected() {
            SyntaxError::Unexpected { token, .. } => Some(token),
            _ => None,
        }
    }

    /// The error of a token that may not stand here, which is named.
    fn misplaced(&mut self, before: &str, after: &str) -> SyntaxError {
        match self.condition_token() {
            // The newline may be all that was left.
            Some(token) if token == b"newline" && self.peek_at(1).is_none() => {
                self.other(&format!("{before}newline{after}"))
            }
            Some(token) => {
                self.wrong_condition(&format!("{before}{}{after}", String::from_utf8_lossy(&token)))
            }
            None => self.unexpected(),
        }
    }

    /// Whether a word alone is a test here.
    fn test_ends(&mut self) -> bool {
        self.peek_keyword() == b"]]"
            || self.looking_at(b"&&")
            || self.looking_at(b"||")
            || self.peek() == Some(b')')
    }

    fn word_follows(&mut self) -> bool {
        self.peek().is_some_and(|byte| !is_meta(byte))
    }

    fn binary_operator(&mut self) -> Option<Vec<u8>> {
        self.peek();
        let rest = &self.src[self.at.min(self.src.len())..];
        if rest.starts_with(b"<(") || rest.starts_with(b">(") {
            return None;
        }
        if rest.starts_with(b"<") || rest.starts_with(b">") {
            self.at += 1;
            return Some(vec![self.src[self.at - 1]]);
        }
        let end = rest.iter().position(|&byte| is_meta(byte)).unwrap_or(rest.len());
        let operators: [&[u8]; 13] = [
            b"=", b"==", b"!=", b"=~", b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge", b"-nt", b"-ot", b"-ef",
        ];
        let found = operators.iter().find(|operator| **operator == &rest[..end])?;
        self.at += found.len();
        Some(found.to_vec())
    }
}

fn is_unary(text: &[u8]) -> bool {
    matches!(text, [b'-', letter] if b"abcdefghknoprstuvwxzGLNORS".contains(letter))
}
