//! `$name` and `${…}`.

use super::word::{Builder, Stop};
use super::*;
use crate::arith::Arith;

impl Parser {
    /// `$name`, `$1`, `$@`, …: the byte after the dollar sign is `byte`.
    pub(super) fn plain_param(&mut self, byte: u8) -> Option<Param> {
        let name = match byte {
            b'0'..=b'9' => {
                self.at += 2;
                ParamName::Positional(usize::from(byte - b'0'))
            }
            b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' => {
                self.at += 2;
                ParamName::Special(byte)
            }
            _ if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.at += 1;
                ParamName::Variable(self.identifier())
            }
            _ => return None,
        };
        let name = self.joined_in_here(name);
        Some(Param { name, subscript: None, indirect: false, bare: true, op: ParamOp::None })
    }

    /// `${#+}` and `${?^}`: to bash these are not operators on `$#` and `$?`.
    fn is_bad_special(&mut self, name: &ParamName) -> bool {
        let (op, next) = (self.peek(), self.peek_at(1));
        match name {
            ParamName::Special(b'#')
                if matches!(op, Some(b'+' | b'%' | b'=' | b':' | b'/')) && next == Some(b'}') =>
            {
                true
            }
            ParamName::Special(b'#' | b'?' | b'-') => matches!(op, Some(b'^' | b',' | b'~')),
            _ => false,
        }
    }

    /// In a here-document `$*` is joined by spaces, as `$@` is.
    fn joined_in_here(&self, name: ParamName) -> ParamName {
        match name {
            ParamName::Special(b'*') if self.in_here => ParamName::Special(b'@'),
            name => name,
        }
    }

    fn identifier(&mut self) -> Rc<[u8]> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        self.src[start..self.at].into()
    }

    /// `${…}`, at its dollar sign.
    pub(super) fn braced_param(&mut self, quoted: bool) -> Parsed<Param> {
        let (start, opened) = (self.at, self.line);
        self.at += 2;
        let param = self.braced_inside(quoted, start)?;
        if let Some(param) = param
            && self.peek() == Some(b'}')
        {
            self.at += 1;
            return Ok(param);
        }
        self.skip_bad(start, opened)
    }

    /// A substitution that makes no sense is an error only when it is reached.
    fn skip_bad(&mut self, start: usize, opened: u32) -> Parsed<Param> {
        let mut depth = 0;
        self.at = start + 1;
        self.line = opened;
        loop {
            match self.next() {
                Some(b'{') => depth += 1,
                Some(b'}') => depth -= 1,
                Some(_) => {}
                None => return Err(SyntaxError::Unclosed { line: opened, what: "}" }),
            }
            if depth == 0 {
                break;
            }
        }
        let text = self.src[start..self.at].to_vec();
        let name = ParamName::Special(b'?');
        Ok(Param { name, subscript: None, indirect: false, bare: false, op: ParamOp::Bad(text) })
    }

    fn braced_inside(&mut self, quoted: bool, start: usize) -> Parsed<Option<Param>> {
        let length = self.peek() == Some(b'#') && self.length_follows();
        if length {
            self.at += 1;
        }
        let mut indirect = false;
        if !length && self.peek() == Some(b'!') && self.indirection_follows() {
            self.at += 1;
            indirect = true;
        }
        let Some(name) = self.param_name() else { return Ok(None) };
        let mut subscript = None;
        if self.peek() == Some(b'[') && matches!(name, ParamName::Variable(_)) {
            subscript = self.param_subscript()?;
            if subscript.is_none() {
                return Ok(None);
            }
        }
        if length {
            return Ok(Some(Param { name, subscript, indirect: false, bare: false, op: ParamOp::Length }));
        }
        if indirect && let Some(op) = self.names_or_keys(&subscript) {
            if !matches!(name, ParamName::Variable(_)) {
                return Ok(None);
            }
            return Ok(Some(Param { name, subscript, indirect: false, bare: false, op }));
        }
        if self.is_bad_special(&name) {
            return Ok(None);
        }
        let Some(op) = self.param_op(quoted, start)? else { return Ok(None) };
        let name = self.joined_in_here(name);
        if self.in_here && matches!(subscript, Some(ParamSubscript::Star)) && !matches!(op, ParamOp::None) {
            subscript = Some(ParamSubscript::At);
        }
        Ok(Some(Param { name, subscript, indirect, bare: false, op }))
    }

    /// After `${#`: a parameter whose length is meant, rather than an operator on `$#`.
    fn length_follows(&mut self) -> bool {
        match self.peek_at(1) {
            Some(b'}') | None => false,
            Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_' => true,
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => self.peek_at(2) == Some(b'}'),
            _ => false,
        }
    }

    fn indirection_follows(&mut self) -> bool {
        self.peek_at(1).is_some_and(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'@' | b'*' | b'#' | b'?' | b'$' | b'!')
        })
    }

    fn param_name(&mut self) -> Option<ParamName> {
        match self.peek()? {
            byte if byte.is_ascii_digit() => {
                let start = self.at;
                while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    self.at += 1;
                }
                let digits = std::str::from_utf8(&self.src[start..self.at]).unwrap_or("");
                Some(ParamName::Positional(digits.parse().unwrap_or(usize::MAX)))
            }
            byte @ (b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                self.at += 1;
                Some(ParamName::Special(byte))
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                Some(ParamName::Variable(self.identifier()))
            }
            _ => None,
        }
    }

    fn param_subscript(&mut self) -> Parsed<Option<ParamSubscript>> {
        if self.eat(b"[@]") {
            return Ok(Some(ParamSubscript::At));
        }
        if self.eat(b"[*]") {
            return Ok(Some(ParamSubscript::Star));
        }
        let subscript = self.subscript()?;
        if subscript.word.pieces.is_empty() {
            return Ok(None);
        }
        Ok(Some(ParamSubscript::One(Box::new(subscript))))
    }

    /// `${!prefix*}`, `${!prefix@}`, `${!name[@]}`, `${!name[*]}`.
    fn names_or_keys(&mut self, subscript: &Option<ParamSubscript>) -> Option<ParamOp> {
        let keys = match subscript {
            Some(ParamSubscript::At) => Some(false),
            Some(ParamSubscript::Star) => Some(true),
            _ => None,
        };
        if let Some(star) = keys {
            return (self.peek() == Some(b'}')).then_some(ParamOp::Keys { star });
        }
        for (token, star) in [(b"*}", true), (b"@}", false)] {
            if self.looking_at(token) {
                self.at += 1;
                return Some(ParamOp::Names { star });
            }
        }
        None
    }

    fn param_op(&mut self, quoted: bool, start: usize) -> Parsed<Option<ParamOp>> {
        let op = match self.peek() {
            Some(b'}') => ParamOp::None,
            Some(b':') => match self.peek_at(1) {
                Some(kind @ (b'-' | b'=' | b'?' | b'+')) => {
                    self.at += 2;
                    ParamOp::Alternative { kind, colon: true, word: self.operand(quoted)? }
                }
                _ => self.substring()?,
            },
            Some(kind @ (b'-' | b'=' | b'?' | b'+')) => {
                self.at += 1;
                ParamOp::Alternative { kind, colon: false, word: self.operand(quoted)? }
            }
            Some(side @ (b'#' | b'%')) => {
                self.at += 1;
                let longest = self.eat(&[side]);
                ParamOp::Remove { suffix: side == b'%', longest, pattern: self.pattern(Stop::Brace)? }
            }
            Some(b'/') => self.replacement(quoted)?,
            Some(kind @ (b'^' | b',' | b'~')) => {
                self.at += 1;
                let all = self.eat(&[kind]);
                let pattern = self.pattern(Stop::Brace)?;
                let pattern = (!pattern.pieces.is_empty()).then_some(pattern);
                ParamOp::Case { kind, all, pattern }
            }
            Some(b'@') => {
                self.at += 1;
                match self.peek() {
                    Some(kind) if b"QEPAaKkUuL".contains(&kind) => {
                        self.at += 1;
                        ParamOp::Transform(kind)
                    }
                    _ => {
                        let rest = &self.src[self.at..];
                        let len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                        self.at += len;
                        ParamOp::BadTransform([&self.src[start..self.at], b"}"].concat())
                    }
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(op))
    }

    fn operand(&mut self, quoted: bool) -> Parsed<Word> {
        let mut builder = Builder::default();
        if quoted {
            self.quoted_operand(&mut builder)?;
        } else {
            self.unquoted(&mut builder, Stop::Brace)?;
        }
        Ok(builder.finish())
    }

    /// A pattern; quotes quote in it even inside double quotes.
    fn pattern(&mut self, stop: Stop) -> Parsed<Word> {
        let saved = std::mem::replace(&mut self.pattern_parens, true);
        let mut builder = Builder::default();
        let parsed = self.unquoted(&mut builder, stop);
        self.pattern_parens = saved;
        parsed?;
        Ok(builder.finish())
    }

    fn replacement(&mut self, quoted: bool) -> Parsed<ParamOp> {
        self.at += 1;
        let anchor = match self.peek() {
            Some(b'/') => Anchor::All,
            Some(b'#') => Anchor::Start,
            Some(b'%') => Anchor::End,
            _ => Anchor::First,
        };
        if anchor != Anchor::First {
            self.at += 1;
        }
        let mut pattern = Word::default();
        // A slash right here is the pattern's first character, as in `${x//\//…}` written `${x////…}`.
        if self.peek() == Some(b'/') && anchor == Anchor::All {
            self.at += 1;
            pattern = Word { pieces: vec![Piece::Text(b"/".to_vec())], raw: None };
        }
        let rest = self.pattern(Stop::Slash)?;
        pattern.pieces.extend(rest.pieces);
        let mut with = Word::default();
        if self.peek() == Some(b'/') {
            self.at += 1;
            let mut builder = Builder::default();
            if quoted {
                self.quoted_replacement(&mut builder)?;
            } else {
                self.unquoted(&mut builder, Stop::Brace)?;
            }
            with = builder.finish();
        }
        Ok(ParamOp::Replace { anchor, pattern, with })
    }

    /// The replacement inside double quotes: quotes still quote, as bash has it.
    fn quoted_replacement(&mut self, builder: &mut Builder) -> Parsed<()> {
        self.unquoted(builder, Stop::Brace)
    }

    fn substring(&mut self) -> Parsed<ParamOp> {
        self.at += 1;
        let offset = Arith::new(self.arith_word(b":}")?);
        let mut length = None;
        if self.peek() == Some(b':') {
            self.at += 1;
            length = Some(Arith::new(self.arith_word(b"}")?));
        }
        Ok(ParamOp::Substring { offset, length })
    }
}
