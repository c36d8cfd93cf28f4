//! The inside of `[[ ]]`.

use super::*;

impl Parser {
    pub(super) fn condition_command(&mut self) -> Parsed<CompoundKind> {
        self.expect(b"[[")?;
        let condition = self.condition_or()?;
        self.blanks_and_newlines()?;
        if !self.keyword(b"]]") {
            return Err(match self.peek() {
                None => self.unexpected(),
                Some(_) => self.wrong_condition("syntax error in conditional expression"),
            });
        }
        Ok(CompoundKind::Condition(condition))
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
                return Err(self.unexpected());
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
            return Err(self.unexpected());
        }
        let Some(left) = self.condition_word()? else { return Err(self.unexpected()) };
        let line = self.line;
        self.blanks_and_newlines()?;
        if let Some(operator) = left.as_plain().filter(|text| is_unary(text)).map(<[u8]>::to_vec)
            && self.operand_follows()
        {
            return match self.condition_word()? {
                Some(operand) => Ok(Condition::Unary(operator, operand)),
                None => Err(self.unexpected()),
            };
        }
        if left.as_plain().is_some_and(is_unary) && self.peek_keyword() == b"]]" {
            return Err(self.wrong_condition("unexpected argument `]]' to conditional unary operator"));
        }
        let Some(operator) = self.binary_operator() else {
            return if self.test_ends() {
                Ok(Condition::Word(left))
            } else if matches!(self.peek(), None | Some(b'\n')) {
                let message = "unexpected token `newline', conditional binary operator expected".into();
                Err(SyntaxError::Other { line, message })
            } else {
                Err(self.wrong_condition("conditional binary operator expected"))
            };
        };
        self.blanks();
        let right = match operator.as_slice() {
            b"=~" => self.regex_word()?,
            _ => {
                let saved = std::mem::replace(&mut self.pattern_parens, true);
                let word = self.condition_word();
                self.pattern_parens = saved;
                word?
            }
        };
        match right {
            Some(right) if right.as_plain() != Some(b"]]") => Ok(Condition::Binary(left, operator, right)),
            Some(_) => Err(self.wrong_condition("unexpected argument `]]' to conditional binary operator")),
            None => Err(self.unexpected()),
        }
    }

    fn condition_word(&mut self) -> Parsed<Option<Word>> {
        self.word()
    }

    /// Whether something follows that a unary operator can act on, so that `[[ -f ]]` tests the word `-f`.
    fn operand_follows(&mut self) -> bool {
        !(self.peek_keyword() == b"]]"
            || self.looking_at(b"&&")
            || self.looking_at(b"||")
            || self.peek() == Some(b')'))
    }

    /// Whether a word alone is a test here.
    fn test_ends(&mut self) -> bool {
        self.peek_keyword() == b"]]"
            || self.looking_at(b"&&")
            || self.looking_at(b"||")
            || self.peek() == Some(b')')
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
