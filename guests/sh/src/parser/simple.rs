//! Simple commands: assignments, words, redirections, and aliases.

use super::*;
use crate::arith::Arith;

/// What a redirection operator makes of its word.
type MakeAction = fn(Word) -> RedirectAction;

/// Whether text is a variable's name.
pub fn is_assignment_name(text: &[u8]) -> bool {
    match text {
        [first, rest @ ..] => {
            (first.is_ascii_alphabetic() || *first == b'_')
                && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        }
        [] => false,
    }
}

/// Builtins to which `name=value` is an assignment.
fn is_declaration(word: &[u8]) -> bool {
    matches!(word, b"declare" | b"typeset" | b"local" | b"export" | b"readonly")
}

impl Parser {
    pub(super) fn simple_or_function(&mut self, line: u32) -> Parsed<Command> {
        let mut simple = Simple { line, ..Simple::default() };
        let (mut declaration, mut verbatim) = (false, false);
        loop {
            // As bash counts, a command is on the line where its second word ends.
            if simple.words.len() + simple.assignments.len() <= 2 {
                simple.line = self.line;
            }
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            if simple.words.is_empty() && self.alias_after_assignment(&simple)? {
                continue;
            }
            if self.alias_next.is_some_and(|at| at <= self.at) {
                self.alias_next = None;
                let mut expanded = false;
                while self.alias()? {
                    expanded = true;
                }
                if expanded {
                    continue;
                }
            }
            if (simple.words.is_empty() || declaration)
                && let Some(assignment) = self.assignment()?
            {
                match declaration {
                    true => simple.words.extend(self.braced(assignment)?.into_iter().map(Arg::Assignment)),
                    false => simple.assignments.push(assignment),
                }
                continue;
            }
            if verbatim && let Some(word) = self.array_as_word()? {
                simple.words.push(Arg::Word(word));
                continue;
            }
            let Some(words) = self.words()? else { break };
            for word in words {
                if simple.words.is_empty() {
                    declaration = word.as_plain().is_some_and(is_declaration);
                    verbatim = matches!(word.as_plain(), Some(b"eval" | b"let"));
                }
                simple.words.push(Arg::Word(word));
            }
            if let [Arg::Word(name)] = simple.words.as_slice()
                && simple.assignments.is_empty()
                && simple.redirects.is_empty()
                && self.peek_after_blanks() == Some(b'(')
            {
                let name = crate::unparse::word_text(name);
                if !self.function_follows() {
                    self.blanks();
                    self.at += 1;
                    return Err(self.unexpected());
                }
                return self.function_body(name);
            }
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Command::Simple(simple))
    }

    /// `name=(…)` after `eval` and `let`: one word, whose text they read again.
    fn array_as_word(&mut self) -> Parsed<Option<Word>> {
        let rest = &self.src[self.at.min(self.src.len())..];
        let end = rest.iter().position(|&byte| !(byte.is_ascii_alphanumeric() || byte == b'_')).unwrap_or(0);
        let operator = rest[end..].strip_prefix(b"+").unwrap_or(&rest[end..]);
        if !is_assignment_name(&rest[..end]) || !operator.starts_with(b"=(") {
            return Ok(None);
        }
        let length = rest.len() - operator.len() + 2;
        let head = rest[..length].to_vec();
        self.at += length;
        self.parenthesized_word(head).map(Some)
    }

    fn peek_after_blanks(&mut self) -> Option<u8> {
        let mut at = 0;
        while matches!(self.peek_at(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        self.peek_at(at)
    }

    fn function_follows(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.peek() == Some(b'(') && self.empty_parens().is_some() {
            return true;
        }
        self.at = start;
        false
    }

    /// After `x=1` the next word is still the command's name.
    fn alias_after_assignment(&mut self, simple: &Simple) -> Parsed<bool> {
        if simple.assignments.is_empty() && simple.redirects.is_empty() { Ok(false) } else { self.alias() }
    }

    /// Puts an alias's text in place of the word here.
    pub(super) fn alias(&mut self) -> Parsed<bool> {
        let Some(aliases) = self.dialect.aliases.clone() else { return Ok(false) };
        self.peek();
        let rest = &self.src[self.at.min(self.src.len())..];
        let quoted = |byte: u8| matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`');
        let end = rest.iter().position(|&byte| is_meta(byte) || quoted(byte)).unwrap_or(rest.len());
        if end == 0 || rest.get(end).is_some_and(|&byte| quoted(byte)) {
            return Ok(false);
        }
        let name = rest[..end].to_vec();
        self.expanding.retain(|(_, until)| self.at < *until);
        if self.expanding.iter().any(|(active, _)| *active == name) {
            return Ok(false);
        }
        let Some(text) = aliases.get(&name) else { return Ok(false) };
        // A digit that ends it is no descriptor for what follows.
        let mut spaced = text.clone();
        if text.last().is_some_and(u8::is_ascii_digit) && matches!(rest.get(end), Some(b'<' | b'>')) {
            spaced.push(b' ');
        }
        let text = &spaced;
        self.src.splice(self.at..self.at + end, text.iter().copied());
        self.joined = 0;
        self.respelled.retain(|(_, to, _)| *to <= self.at);
        let ends = self.expanding.iter_mut().map(|(_, until)| until).chain(self.alias_next.as_mut());
        for until in ends {
            *until = (*until + text.len()).saturating_sub(end);
        }
        let until = self.at + text.len();
        self.aliased.iter_mut().filter(|(from, ..)| *from <= self.at).for_each(|(_, outer, _)| {
            *outer = if *outer > self.at { (*outer + text.len()).saturating_sub(end) } else { *outer };
        });
        if self.expanding.is_empty() {
            self.aliased.push((self.at, until, name.clone()));
        }
        // An alias may start with its own name; at its very end the name is a new word.
        self.expanding.push((name, until.max(self.at + 1)));
        if aliases
            .get(&self.expanding[self.expanding.len() - 1].0)
            .and_then(|text| text.last())
            .is_some_and(|byte| matches!(byte, b' ' | b'\t'))
        {
            self.alias_next = Some(until);
        }
        self.blanks();
        Ok(true)
    }

    /// An assignment that is an argument is a word, and brace expansion makes several of it.
    fn braced(&self, assignment: Assignment) -> Parsed<Vec<Assignment>> {
        let AssignedValue::Scalar(word) = &assignment.value else { return Ok(vec![assignment]) };
        if !self.dialect.braces || !brace::may_expand(word) {
            return Ok(vec![assignment]);
        }
        let with = |value| Assignment { value: AssignedValue::Scalar(value), ..assignment.clone() };
        Ok(self.expand_braces(word.clone())?.into_iter().map(with).collect())
    }

    /// `name=value`, `name+=value`, `name[sub]=value`, `name=(…)`; nothing consumed otherwise.
    pub(super) fn assignment(&mut self) -> Parsed<Option<Assignment>> {
        self.peek();
        let rest = &self.src[self.at.min(self.src.len())..];
        let end = rest.iter().position(|&byte| !(byte.is_ascii_alphanumeric() || byte == b'_'));
        let Some(end) = end.filter(|&end| is_assignment_name(&rest[..end])) else { return Ok(None) };
        let name: Rc<[u8]> = rest[..end].into();
        let start = (self.at, self.line);
        self.at += end;
        let mut subscript = None;
        if self.peek() == Some(b'[') {
            match self.subscript_of_assignment()? {
                Some(found) => subscript = Some(found),
                None => {
                    (self.at, self.line) = start;
                    return Ok(None);
                }
            }
        }
        let append = self.looking_at(b"+=");
        if !append && self.peek() != Some(b'=') {
            (self.at, self.line) = start;
            return Ok(None);
        }
        self.at += if append { 2 } else { 1 };
        let value = if self.peek() == Some(b'(') {
            let value = self.array_value().map_err(|error| match error {
                SyntaxError::Unexpected { .. } | SyntaxError::Eof { .. } => {
                    SyntaxError::InArray(Box::new(error))
                }
                other => other,
            })?;
            AssignedValue::Array(value)
        } else {
            AssignedValue::Scalar(self.value_word()?)
        };
        Ok(Some(Assignment { name, subscript, append, value }))
    }

    /// `[sub]` when an assignment operator follows it.
    fn subscript_of_assignment(&mut self) -> Parsed<Option<Subscript>> {
        let Some(end) = self.matching_bracket() else { return Ok(None) };
        let after = &self.src[end + 1..];
        if !(after.starts_with(b"=") || after.starts_with(b"+=")) {
            return Ok(None);
        }
        Ok(Some(self.subscript()?))
    }

    /// Where the `]` stands that closes the `[` here, on this line.
    fn matching_bracket(&mut self) -> Option<usize> {
        let (mut depth, mut at) = (0, self.at);
        while at < self.src.len() {
            match self.src[at] {
                b'[' => depth += 1,
                b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                b'\\' => at += 1,
                quote @ (b'\'' | b'"') => {
                    at += 1;
                    while self.src.get(at).is_some_and(|&byte| byte != quote) {
                        at += if self.src[at] == b'\\' && quote == b'"' { 2 } else { 1 };
                    }
                }
                b'\n' => return None,
                b' ' | b';' | b'|' | b'&' if depth == 0 => return None,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// `[…]`, as a key and as arithmetic.
    pub(super) fn subscript(&mut self) -> Parsed<Subscript> {
        self.at += 1;
        let (start, line) = (self.at, self.line);
        let word = self.bracket_word(false)?;
        let end = self.at;
        (self.at, self.line) = (start, line);
        let arith = self.arith_word(b"]");
        let arith = match arith {
            Ok(text) if self.at == end => Arith::new(text),
            _ => Arith::new(word.clone()),
        };
        self.at = end + 1;
        Ok(Subscript { word, arith })
    }

    /// `( … )` after `name=`.
    fn array_value(&mut self) -> Parsed<Vec<Element>> {
        let line = self.line;
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            self.blanks_and_newlines()?;
            if self.peek() == Some(b')') {
                self.at += 1;
                return Ok(elements);
            }
            if self.peek().is_none() {
                let unclosed = SyntaxError::Unclosed { line, what: ")" };
                return Err(SyntaxError::InArray(Box::new(unclosed)));
            }
            if self.peek() == Some(b'[')
                && let Some(subscript) = self.subscript_of_assignment()?
            {
                let append = self.eat(b"+");
                self.at += 1;
                let value = self.value_word()?;
                elements.push(Element { subscript: Some(subscript), append, value });
                continue;
            }
            let Some(words) = self.words()? else { return Err(self.unexpected()) };
            elements.extend(words.into_iter().map(|value| Element { subscript: None, append: false, value }));
        }
    }

    /// A redirection, if one stands here.
    pub(super) fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        self.peek();
        let rest = &self.src[self.at.min(self.src.len())..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let operator_at = |offset: usize| matches!(rest.get(offset), Some(b'<' | b'>'));
        // `2>(…)` is a word with a process substitution in it.
        if digits > 0 && operator_at(digits) && rest.get(digits + 1) == Some(&b'(') {
            return Ok(None);
        }
        let fd = if digits > 0 && operator_at(digits) {
            let number = std::str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok());
            // A number too large for a descriptor is a word.
            let Some(number) = number else { return Ok(None) };
            self.at += digits;
            RedirectFd::Number(number)
        } else if rest.first() == Some(&b'{') {
            let end = rest.iter().position(|&byte| byte == b'}').unwrap_or(0);
            if end < 2 || !operator_at(end + 1) || !is_target(&rest[1..end]) {
                return Ok(None);
            }
            let name: Rc<[u8]> = rest[1..end].into();
            self.at += end + 1;
            RedirectFd::Variable(name)
        } else if operator_at(0) || rest.starts_with(b"&>") {
            RedirectFd::Default
        } else {
            return Ok(None);
        };
        if matches!(fd, RedirectFd::Default) && (self.looking_at(b"<(") || self.looking_at(b">(")) {
            return Ok(None);
        }
        let action = self.redirect_action(&fd)?;
        Ok(Some(Redirect { fd, action }))
    }

    fn redirect_action(&mut self, fd: &RedirectFd) -> Parsed<RedirectAction> {
        use RedirectAction::*;
        if self.eat(b"<<<") {
            return Ok(HereString(self.redirect_word()?));
        }
        if self.eat(b"<<-") {
            return self.here_document(true);
        }
        if self.eat(b"<<") {
            return self.here_document(false);
        }
        let operators: [(&[u8], MakeAction); 10] = [
            (b"&>>", AppendBoth),
            (b"&>", WriteBoth),
            (b"<>", ReadWrite),
            (b"<&", DupInput),
            (b">>", Append),
            (b">|", Clobber),
            (b">&", DupOutput),
            (b"<", Read),
            (b">", Write),
            (b"", Write),
        ];
        for (operator, make) in operators {
            if self.eat(operator) {
                let action = make(self.redirect_word()?);
                return Ok(match (action, fd) {
                    (DupOutput(word), RedirectFd::Default) if !is_dup_operand(&word) => WriteBoth(word),
                    (action, _) => action,
                });
            }
        }
        Err(self.unexpected())
    }

    fn redirect_word(&mut self) -> Parsed<Word> {
        self.blanks();
        match self.word()? {
            Some(word) => Ok(word),
            None => Err(self.unexpected()),
        }
    }
}

/// A variable's name, or an element's.
fn is_target(text: &[u8]) -> bool {
    match text.iter().position(|&byte| byte == b'[') {
        Some(open) => text.ends_with(b"]") && is_assignment_name(&text[..open]),
        None => is_assignment_name(text),
    }
}

/// After `>&`: a number or `-` means a copy; a word with expansions is decided when it is known.
fn is_dup_operand(word: &Word) -> bool {
    match word.as_literal() {
        Some(text) => text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-'),
        None => true,
    }
}
