//! Compound commands and function definitions.

use super::*;
use crate::arith::Arith;

/// A loop's variable, and its words unless they are the parameters.
type LoopWords = (Rc<[u8]>, Option<Vec<Word>>);

impl Parser {
    pub(super) fn command_inner(&mut self) -> Parsed<Command> {
        self.blanks();
        let line = self.line;
        if self.peek() == Some(b'(') {
            let kind = match self.arith_command()? {
                Some(kind) => kind,
                None => self.subshell()?,
            };
            return self.finish(line, kind);
        }
        if self.alias()? {
            return self.command_inner();
        }
        let kind = match self.peek_keyword() {
            b"{" => self.group()?,
            b"if" => self.if_command()?,
            b"while" => self.while_command(false)?,
            b"until" => self.while_command(true)?,
            b"for" => self.for_command()?,
            b"select" => self.select_command()?,
            b"case" => self.case_command()?,
            b"[[" => self.condition_command()?,
            b"function" => return self.function_command(),
            b"coproc" => return self.coproc_command(),
            b"" | b"time" | b"-p" | b"--" | b"]]" => return self.simple_or_function(line),
            _ => return Err(self.unexpected()),
        };
        self.finish(line, kind)
    }

    /// The redirections after a compound.
    fn finish(&mut self, line: u32, kind: CompoundKind) -> Parsed<Command> {
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => break,
            }
        }
        Ok(Command::Compound(Rc::new(Compound { line, kind, redirects })))
    }

    fn subshell(&mut self) -> Parsed<CompoundKind> {
        self.at += 1;
        let list = self.some_list()?;
        if !self.eat(b")") {
            return Err(self.unexpected());
        }
        Ok(CompoundKind::Subshell(list))
    }

    /// `(( … ))`, or nothing consumed when it is a subshell in a subshell.
    fn arith_command(&mut self) -> Parsed<Option<CompoundKind>> {
        if !self.looking_at(b"((") {
            return Ok(None);
        }
        Ok(self.double_parens(2)?.map(|word| CompoundKind::Arith(Arith::new(word))))
    }

    fn group(&mut self) -> Parsed<CompoundKind> {
        self.expect(b"{")?;
        let list = self.some_list()?;
        self.expect(b"}")?;
        Ok(CompoundKind::Group(list))
    }

    fn if_command(&mut self) -> Parsed<CompoundKind> {
        self.expect(b"if")?;
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            let condition = self.some_list()?;
            self.expect(b"then")?;
            arms.push((condition, self.some_list()?));
            self.blanks();
            match self.peek_keyword() {
                b"elif" => self.at += 4,
                b"else" => {
                    self.at += 4;
                    otherwise = Some(self.some_list()?);
                    break;
                }
                _ => break,
            }
        }
        self.expect(b"fi")?;
        Ok(CompoundKind::If { arms, otherwise })
    }

    fn while_command(&mut self, until: bool) -> Parsed<CompoundKind> {
        self.at += 5;
        let condition = self.some_list()?;
        let body = self.do_body()?;
        Ok(CompoundKind::While { condition, body, until })
    }

    fn do_body(&mut self) -> Parsed<List> {
        self.blanks_and_newlines()?;
        self.expect(b"do")?;
        let body = self.some_list()?;
        self.expect(b"done")?;
        Ok(body)
    }

    /// The body of a `for`: `do … done`, or braces as bash allows.
    fn for_body(&mut self) -> Parsed<List> {
        self.blanks();
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        self.blanks_and_newlines()?;
        if self.peek_keyword() == b"{" {
            self.at += 1;
            let body = self.some_list()?;
            self.expect(b"}")?;
            return Ok(body);
        }
        self.do_body()
    }

    fn for_command(&mut self) -> Parsed<CompoundKind> {
        self.expect(b"for")?;
        self.blanks();
        if self.looking_at(b"((") {
            return self.arith_for();
        }
        let (name, words) = self.loop_words()?;
        let body = self.for_body()?;
        Ok(CompoundKind::For { name, words, body })
    }

    fn select_command(&mut self) -> Parsed<CompoundKind> {
        self.expect(b"select")?;
        let (name, words) = self.loop_words()?;
        let body = self.for_body()?;
        Ok(CompoundKind::Select { name, words, body })
    }

    /// `name [in words]`.
    fn loop_words(&mut self) -> Parsed<LoopWords> {
        self.blanks();
        let token = self.unexpected();
        // Whether it is a name is asked when the loop runs.
        let Some(name) = self.word()?.as_ref().map(crate::unparse::word_text) else { return Err(token) };
        self.blanks_and_newlines()?;
        let mut words = None;
        if self.keyword(b"in") {
            let mut list = Vec::new();
            loop {
                self.blanks();
                match self.words()? {
                    Some(more) => list.extend(more),
                    None => break,
                }
            }
            if !matches!(self.peek(), Some(b';' | b'\n')) {
                return Err(self.unexpected());
            }
            words = Some(list);
        }
        Ok((name.into(), words))
    }

    fn arith_for(&mut self) -> Parsed<CompoundKind> {
        self.at += 2;
        let line = self.line;
        let mut parts = Vec::new();
        let start = self.at;
        for stop in [b";)", b";)", b";)"] {
            let word = self.arith_word(stop)?;
            let blank = word.as_plain().is_some_and(|text| text.iter().all(u8::is_ascii_whitespace));
            parts.push((!blank).then(|| Arith::new(word)));
            if self.peek().is_none() {
                return Err(SyntaxError::Unclosed { line, what: ")" });
            }
            match (self.peek(), parts.len()) {
                (Some(b';'), 1 | 2) | (Some(b')'), 3) => self.at += 1,
                (Some(b';'), _) => return Err(self.wrong_arith_for(line, start, "`;' unexpected")),
                _ => return Err(self.wrong_arith_for(line, start, "arithmetic expression required")),
            }
        }
        if !self.eat(b")") {
            return Err(self.unexpected());
        }
        let body = self.for_body()?;
        let mut parts = parts.into_iter();
        let mut part = || parts.next().flatten();
        Ok(CompoundKind::ArithFor { first: part(), condition: part(), step: part(), body })
    }

    /// What is wrong with `for (( … ))`, of whose inside all is shown.
    fn wrong_arith_for(&mut self, line: u32, start: usize, message: &'static str) -> SyntaxError {
        let rest = &self.src[start..];
        let end = crate::pattern::find(rest, b"))").unwrap_or(rest.len());
        SyntaxError::ArithFor { line, message, text: rest[..end].to_vec() }
    }

    fn case_command(&mut self) -> Parsed<CompoundKind> {
        self.expect(b"case")?;
        self.blanks();
        let Some(word) = self.word()? else { return Err(self.unexpected()) };
        self.blanks_and_newlines()?;
        self.expect(b"in")?;
        let mut arms = Vec::new();
        loop {
            self.blanks_and_newlines()?;
            if self.keyword(b"esac") {
                return Ok(CompoundKind::Case { word, arms });
            }
            arms.push(self.case_arm()?);
        }
    }

    fn case_arm(&mut self) -> Parsed<CaseArm> {
        if self.peek() == Some(b'(') {
            self.at += 1;
        }
        let mut patterns = Vec::new();
        loop {
            self.blanks();
            let saved = std::mem::replace(&mut self.pattern_parens, true);
            let pattern = self.word();
            self.pattern_parens = saved;
            let Some(pattern) = pattern? else { return Err(self.unexpected()) };
            patterns.push(pattern);
            self.blanks();
            match self.peek() {
                Some(b'|') => self.at += 1,
                Some(b')') => {
                    self.at += 1;
                    break;
                }
                _ => return Err(self.unexpected()),
            }
        }
        let body = self.list()?;
        self.blanks_and_newlines()?;
        let end = if self.eat(b";;&") {
            CaseEnd::Continue
        } else if self.eat(b";;") {
            CaseEnd::Break
        } else if self.eat(b";&") {
            CaseEnd::FallThrough
        } else if self.peek_keyword() == b"esac" {
            CaseEnd::Break
        } else {
            return Err(self.unexpected());
        };
        Ok(CaseArm { patterns, body, end })
    }

    fn function_command(&mut self) -> Parsed<Command> {
        self.expect(b"function")?;
        self.blanks();
        let Some(name) = self.word()?.and_then(|word| word.as_literal()) else {
            return Err(self.unexpected());
        };
        self.blanks();
        if self.peek() == Some(b'(') {
            // Without `( )` the parenthesis opens the body.
            let _ = self.empty_parens();
        }
        self.function_body(name)
    }

    /// Passes `( )`, and nothing else.
    pub(super) fn empty_parens(&mut self) -> Option<()> {
        let start = self.at;
        self.at += 1;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.peek() == Some(b')') {
            self.at += 1;
            return Some(());
        }
        self.at = start;
        None
    }

    pub(super) fn function_body(&mut self, name: Vec<u8>) -> Parsed<Command> {
        let line = self.line;
        self.blanks_and_newlines()?;
        let body_follows = self.peek() == Some(b'(')
            || matches!(
                self.peek_keyword(),
                b"{" | b"if" | b"while" | b"until" | b"for" | b"select" | b"case" | b"[["
            );
        if !body_follows {
            return Err(self.unexpected());
        }
        match self.command()? {
            Command::Compound(body) => {
                let end = self.line;
                let function = Function { name: name.into(), body, line, end, source: Default::default() };
                Ok(Command::Function(Rc::new(function)))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn coproc_command(&mut self) -> Parsed<Command> {
        self.expect(b"coproc")?;
        self.blanks();
        let start = (self.at, self.line);
        let mut name: Rc<[u8]> = (*b"COPROC").into();
        if let Some(word) = self.word()? {
            self.blanks();
            let compound = self.peek() == Some(b'(')
                || matches!(
                    self.peek_keyword(),
                    b"{" | b"if" | b"while" | b"until" | b"for" | b"case" | b"[["
                );
            match word.as_plain() {
                Some(given) if compound && !given.is_empty() && !is_keyword(given) => name = given.into(),
                _ => (self.at, self.line) = start,
            }
        }
        let body = self.command()?;
        Ok(Command::Coproc(Rc::new(Coproc { name, body })))
    }
}
