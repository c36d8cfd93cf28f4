//! Words: quoting and where expansions stand.

use super::*;
use crate::arith::Arith;

/// Pieces being collected.
#[derive(Default)]
pub(super) struct Builder {
    pieces: Vec<Piece>,
    pub(super) text: Vec<u8>,
}

impl Builder {
    pub(super) fn push(&mut self, piece: Piece) {
        self.flush();
        match (self.pieces.last_mut(), piece) {
            (Some(Piece::Quoted(last)), Piece::Quoted(more)) => last.extend(more),
            (_, piece) => self.pieces.push(piece),
        }
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(&mut self.text)));
        }
    }

    /// The unquoted text the word starts with.
    fn first_text(&self) -> &[u8] {
        match self.pieces.first() {
            None => &self.text,
            Some(Piece::Text(text)) => text,
            Some(_) => b"",
        }
    }

    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.text.is_empty()
    }

    pub(super) fn finish(mut self) -> Word {
        self.flush();
        Word { pieces: self.pieces, raw: None }
    }
}

/// Where an unquoted word ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// At a blank or operator.
    Meta,
    /// The same, and a tilde counts after each colon.
    Value,
    /// At the bracket that closes a subscript.
    Bracket,
    /// Nowhere: all of the text is the word.
    Whole,
    /// At a brace, in `${x:-word}`.
    Brace,
    /// At a slash or brace, in `${x/pattern/…}`.
    Slash,
    /// At the parenthesis that closes an extended pattern.
    Paren,
    /// At a blank outside parentheses, in `[[ x =~ regex ]]`.
    Regex,
}

/// How deep `((` may be found to be no arithmetic after all and be read again as commands.
const RETRIED_DEPTH: usize = 16;

impl Parser {
    /// A word, or none when an operator stands here.
    pub(super) fn word(&mut self) -> Parsed<Option<Word>> {
        self.word_until(Stop::Meta)
    }

    /// The words a word becomes by brace expansion.
    pub(super) fn words(&mut self) -> Parsed<Option<Vec<Word>>> {
        let Some(word) = self.word()? else { return Ok(None) };
        if self.dialect.braces && brace::may_expand(&word) {
            let raw = word.raw.clone().unwrap_or_else(|| word.as_literal().unwrap_or_default().into());
            let mut words = self.expand_braces(word)?;
            words.iter_mut().for_each(tilde_first);
            for (at, word) in words.iter_mut().enumerate() {
                word.raw = Some(if at == 0 { raw.clone() } else { Box::default() });
            }
            return Ok(Some(words));
        }
        Ok(Some(vec![word]))
    }

    pub(super) fn expand_braces(&self, word: Word) -> Parsed<Vec<Word>> {
        brace::expand(word).map_err(|_| self.other("brace expansion: too many words"))
    }

    /// What follows `name=`.
    pub(super) fn value_word(&mut self) -> Parsed<Word> {
        Ok(self.word_until(Stop::Value)?.unwrap_or_default())
    }

    pub(super) fn regex_word(&mut self) -> Parsed<Option<Word>> {
        self.word_until(Stop::Regex)
    }

    fn word_until(&mut self, stop: Stop) -> Parsed<Option<Word>> {
        let mut builder = Builder::default();
        let start = self.at;
        self.unquoted(&mut builder, stop)?;
        if builder.is_empty() && self.at == start {
            return Ok(None);
        }
        Ok(Some(self.with_raw(builder.finish(), start)))
    }

    /// A word that is more than text also keeps how it was written.
    fn with_raw(&self, mut word: Word, start: usize) -> Word {
        if word.as_plain().is_none() {
            word.raw = self.src.get(start..self.at).map(|raw| self.respell(raw, start).into());
        }
        word
    }

    /// Text as bash keeps it: `$'…'` is the text it stands for, and `$"…"` has lost its dollar sign.
    fn respell(&self, raw: &[u8], start: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(raw.len());
        let mut at = start;
        for (from, to, spelling) in &self.respelled {
            if *from >= at && *to <= start + raw.len() {
                text.extend_from_slice(&raw[at - start..from - start]);
                text.extend_from_slice(spelling);
                at = *to;
            }
        }
        text.extend_from_slice(&raw[at - start..]);
        text
    }

    /// The word between brackets, with the closing one next.
    pub(super) fn bracket_word(&mut self, _quoted: bool) -> Parsed<Word> {
        let mut builder = Builder::default();
        let start = self.at;
        self.unquoted(&mut builder, Stop::Bracket)?;
        if self.peek().is_none() {
            return Err(self.unclosed("]"));
        }
        Ok(self.with_raw(builder.finish(), start))
    }

    fn stops(&mut self, byte: u8, stop: Stop, depth: usize) -> bool {
        match stop {
            Stop::Meta | Stop::Value => {
                is_meta(byte) && !(matches!(byte, b'<' | b'>') && self.peek_at(1) == Some(b'('))
            }
            Stop::Bracket => byte == b']' && depth == 0,
            Stop::Whole => false,
            Stop::Brace => byte == b'}',
            Stop::Slash => byte == b'}' || byte == b'/',
            Stop::Paren => byte == b')' && depth == 0,
            Stop::Regex => (matches!(byte, b' ' | b'\t' | b'\n') || byte == b')') && depth == 0,
        }
    }

    /// Pieces outside quotes, up to where `stop` says.
    pub(super) fn unquoted(&mut self, builder: &mut Builder, stop: Stop) -> Parsed<()> {
        let mut depth = 0;
        while let Some(byte) = self.peek() {
            if self.stops(byte, stop, depth) {
                break;
            }
            match byte {
                b'\\' => self.backslash(builder),
                b'\'' => {
                    let text = self.single_quoted()?;
                    builder.push(Piece::Quoted(text));
                }
                b'"' => {
                    let pieces = self.double_quoted()?;
                    builder.push(Piece::Double(pieces));
                }
                b'$' => self.dollar(builder, false)?,
                b'`' => self.backquote(builder, false)?,
                b'<' | b'>'
                    if self.peek_at(1) == Some(b'(')
                        && matches!(stop, Stop::Meta | Stop::Value | Stop::Brace) =>
                {
                    let piece = self.process_substitution()?;
                    builder.push(piece);
                }
                // In `${…}` they are text like any other: the brace ends the pattern, whatever is open in it.
                b'?' | b'*' | b'+' | b'@' | b'!'
                    if !matches!(stop, Stop::Regex | Stop::Brace | Stop::Slash)
                        && self.peek_at(1) == Some(b'(')
                        && self.extended_patterns() =>
                {
                    self.extended_pattern(builder)?;
                }
                b'~' if self.tilde_may_start(builder, stop) && self.tilde(builder, stop) => {}
                _ => {
                    match (byte, stop) {
                        (b'[', Stop::Bracket) | (b'(', Stop::Paren | Stop::Regex) => depth += 1,
                        (b']', Stop::Bracket) | (b')', Stop::Paren | Stop::Regex) => depth -= 1,
                        _ => {}
                    }
                    builder.text.push(byte);
                    self.next();
                }
            }
        }
        Ok(())
    }

    fn backslash(&mut self, builder: &mut Builder) {
        self.at += 1;
        match self.next() {
            Some(b'\n') => {}
            Some(byte) => builder.push(Piece::Quoted(vec![byte])),
            None => builder.text.push(b'\\'),
        }
    }

    fn extended_patterns(&self) -> bool {
        self.dialect.extglob || self.pattern_parens
    }

    /// `@(a|b)` and the like: one word, blanks and all.
    fn extended_pattern(&mut self, builder: &mut Builder) -> Parsed<()> {
        self.enter()?;
        builder.text.extend_from_slice(&self.src[self.at..self.at + 2]);
        self.at += 2;
        self.unquoted(builder, Stop::Paren)?;
        if self.peek().is_none() {
            return Err(self.unclosed(")"));
        }
        self.at += 1;
        builder.text.push(b')');
        self.depth -= 1;
        Ok(())
    }

    /// A word that begins with `head`, which opened a parenthesis, up to the one that closes it.
    pub(super) fn parenthesized_word(&mut self, head: Vec<u8>) -> Parsed<Word> {
        let start = self.at - head.len();
        let mut builder = Builder { text: head, ..Builder::default() };
        self.unquoted(&mut builder, Stop::Paren)?;
        if self.peek().is_none() {
            return Err(self.unclosed(")"));
        }
        self.at += 1;
        builder.text.push(b')');
        Ok(self.with_raw(builder.finish(), start))
    }

    /// A tilde counts at the start of a word, and in a value after `=` and `:`.
    fn tilde_may_start(&mut self, builder: &Builder, stop: Stop) -> bool {
        if builder.is_empty() {
            return matches!(stop, Stop::Meta | Stop::Value | Stop::Brace | Stop::Slash);
        }
        match (builder.text.last(), stop) {
            (Some(b':'), Stop::Value) => true,
            // An argument that looks like an assignment has its tildes expanded like one.
            (Some(b'=' | b':'), Stop::Meta) if !self.dialect.posix => {
                let equals = builder.first_text().iter().position(|&byte| byte == b'=');
                equals.is_some_and(|at| is_assignment_name(&builder.first_text()[..at]))
                    && (builder.text.last() == Some(&b':')
                        || builder.pieces.is_empty() && equals == Some(builder.text.len() - 1))
            }
            _ => false,
        }
    }

    fn tilde(&mut self, builder: &mut Builder, stop: Stop) -> bool {
        let rest = &self.src[self.at + 1..];
        let named = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+');
        let len = rest.iter().take_while(|byte| named(byte)).count();
        let ends = match rest.get(len) {
            None | Some(b'/') => true,
            Some(b':') => true,
            Some(b'}') => stop == Stop::Brace,
            Some(&byte) => is_meta(byte),
        };
        if ends {
            let user = rest[..len].to_vec();
            self.at += 1 + len;
            builder.push(Piece::Tilde(user));
        }
        ends
    }

    /// The body of a here-document.
    pub(super) fn here_word(&mut self) -> Parsed<Word> {
        let mut builder = Builder::default();
        self.in_here = true;
        while self.peek().is_some() {
            self.quoted_step(&mut builder, b"$`\\")?;
        }
        let raw = Some(self.src.as_slice().into());
        Ok(Word { pieces: vec![Piece::Double(builder.finish().pieces)], raw })
    }

    /// The word a whole text is, as a subscript.
    pub fn whole_subscript(&mut self) -> Option<Word> {
        let mut builder = Builder::default();
        self.unquoted(&mut builder, Stop::Whole).ok()?;
        Some(builder.finish())
    }

    /// An expansion, or a dollar sign that is none.
    pub(super) fn dollar(&mut self, builder: &mut Builder, quoted: bool) -> Parsed<()> {
        self.enter()?;
        self.join_token();
        let piece = match self.peek_at(1) {
            Some(b'(') => self.parenthesized()?,
            Some(b'{') => Piece::Param(Box::new(self.braced_param(quoted)?)),
            Some(b'[') => {
                self.at += 2;
                let word = self.arith_word(b"]")?;
                if !self.eat(b"]") {
                    return Err(self.unclosed("]"));
                }
                Piece::Arith(Box::new(Arith::new(word)))
            }
            Some(b'\'') if !quoted => {
                let start = self.at;
                self.at += 1;
                let text = self.ansi_c_quoted()?;
                self.respelled.push((start, self.at, crate::expand::quote::single(&text)));
                Piece::Quoted(text)
            }
            Some(b'"') if !quoted => {
                self.respelled.push((self.at, self.at + 1, Vec::new()));
                self.at += 1;
                Piece::Double(self.double_quoted()?)
            }
            Some(byte) => match self.plain_param(byte) {
                Some(param) => Piece::Param(Box::new(param)),
                None => {
                    self.at += 1;
                    builder.text.push(b'$');
                    self.depth -= 1;
                    return Ok(());
                }
            },
            None => {
                self.at += 1;
                builder.text.push(b'$');
                self.depth -= 1;
                return Ok(());
            }
        };
        builder.push(piece);
        self.depth -= 1;
        Ok(())
    }

    /// `$(…)` or `$((…))`.
    fn parenthesized(&mut self) -> Parsed<Piece> {
        if self.peek_at(2) == Some(b'(')
            && let Some(word) = self.double_parens(3)?
        {
            return Ok(Piece::Arith(Box::new(Arith::new(word))));
        }
        let start = self.at;
        self.at += 2;
        let substitution = self.substituted_list()?;
        self.respell_substitution(start, b"$(", &substitution.list);
        Ok(Piece::Command(Rc::new(substitution)))
    }

    /// The commands up to the closing parenthesis, and past it.
    fn substituted_list(&mut self) -> Parsed<Substitution> {
        let patterns = std::mem::replace(&mut self.pattern_parens, false);
        let here = std::mem::replace(&mut self.in_here, false);
        let outer = std::mem::take(&mut self.pending);
        let nested = std::mem::replace(&mut self.in_substitution, true);
        let list = self.list().map_err(|error| match error {
            SyntaxError::Condition { line, message, .. } => {
                SyntaxError::Condition { line, message, inside: true }
            }
            other => other,
        })?;
        self.pattern_parens = patterns;
        self.in_here = here;
        self.in_substitution = nested;
        self.blanks();
        match self.peek() {
            Some(b')') => self.at += 1,
            None => return Err(self.unclosed(")")),
            _ => return Err(self.unexpected()),
        }
        let inner = std::mem::replace(&mut self.pending, outer);
        if !inner.is_empty() {
            let plural = if inner.len() == 1 { "" } else { "s" };
            let text =
                format!("warning: command substitution: {} unterminated here-document{plural}", inner.len());
            self.warnings.push((self.line, text.into_bytes()));
        }
        self.pending.extend(inner);
        let file = file_only(&list);
        Ok(Substitution { list, file, unread: None })
    }

    /// As bash keeps it, a substitution is written as its commands are printed.
    fn respell_substitution(&mut self, start: usize, open: &[u8], list: &List) {
        self.respelled.retain(|(from, to, _)| *to <= start || *from >= self.at);
        let text = crate::unparse::substitution_text(list);
        // A subshell inside must not be taken for arithmetic.
        let gap: &[u8] = if text.starts_with(b"(") { b" " } else { b"" };
        self.respelled.push((start, self.at, [open, gap, &text, b")"].concat()));
    }

    fn process_substitution(&mut self) -> Parsed<Piece> {
        self.enter()?;
        let start = self.at;
        let reads = self.next() == Some(b'<');
        self.at += 1;
        let body = Rc::new(self.substituted_list()?.list);
        self.respell_substitution(start, if reads { b"<(" } else { b">(" }, &body);
        self.depth -= 1;
        Ok(Piece::Process { reads, body })
    }

    /// `` `…` ``: its text is unescaped, then parsed by itself.
    pub(super) fn backquote(&mut self, builder: &mut Builder, quoted: bool) -> Parsed<()> {
        let opened = self.line;
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.next() {
                Some(b'`') => break,
                Some(b'\\') => match self.peek() {
                    Some(byte @ (b'$' | b'`' | b'\\')) => {
                        self.at += 1;
                        text.push(byte);
                    }
                    Some(b'"') if quoted => {
                        self.at += 1;
                        text.push(b'"');
                    }
                    // The line goes on, wherever between the quotes that is.
                    Some(b'\n') => drop(self.next()),
                    _ => text.push(b'\\'),
                },
                Some(byte) => text.push(byte),
                None => return Err(SyntaxError::Unclosed { line: opened, what: "`" }),
            }
        }
        let list = match self.inner_list(&text, opened) {
            Err(error @ SyntaxError::Other { .. }) => return Err(error),
            // Bash would only read it now: what is wrong is said when it is run.
            Err(_) => {
                let list = List::default();
                builder.push(Piece::Command(Rc::new(Substitution { list, file: None, unread: Some(text) })));
                return Ok(());
            }
            Ok(list) => list,
        };
        let file = file_only(&list);
        builder.push(Piece::Command(Rc::new(Substitution { list, file, unread: None })));
        Ok(())
    }

    /// The commands that all of a text is.
    fn inner_list(&self, text: &[u8], line: u32) -> Parsed<List> {
        let mut inner = Parser::new(text.to_vec(), line);
        inner.dialect = self.dialect.clone();
        inner.depth = self.depth;
        let list = inner.list()?;
        if inner.peek().is_some() {
            return Err(inner.unexpected());
        }
        inner.read_pending_bodies()?;
        Ok(list)
    }

    /// Arithmetic between double parentheses, `skip` bytes on; nothing consumed when it is not that.
    pub(super) fn double_parens(&mut self, skip: usize) -> Parsed<Option<Word>> {
        let (at, line, depth) = (self.at, self.line, self.depth);
        self.at += skip;
        match self.arith_word(b")") {
            Ok(word) if self.eat(b"))") => return Ok(Some(word)),
            Ok(_) if self.peek().is_none() => return Err(SyntaxError::Unclosed { line, what: ")" }),
            // Each level that is read a second time doubles the work of those around it: deep inside an error is one.
            Err(error) if depth > RETRIED_DEPTH || matches!(error, SyntaxError::Other { .. }) => {
                return Err(error);
            }
            _ => {}
        }
        (self.at, self.line, self.depth) = (at, line, depth);
        Ok(None)
    }

    /// Arithmetic text up to one of `stop` outside brackets; `:` does not stop it after `?`.
    pub(super) fn arith_word(&mut self, stop: &[u8]) -> Parsed<Word> {
        let mut builder = Builder::default();
        let start = self.at;
        let (mut nesting, mut questions, mut subscripts) = (0, 0, 0);
        while let Some(byte) = self.peek() {
            if nesting == 0 && stop.contains(&byte) && !(byte == b':' && questions > 0) {
                break;
            }
            match byte {
                b'(' => nesting += 1,
                b'[' => (nesting, subscripts) = (nesting + 1, subscripts + 1),
                b')' if nesting > 0 => nesting -= 1,
                b']' if nesting > 0 => (nesting, subscripts) = (nesting - 1, subscripts - 1),
                b'?' if nesting == 0 => questions += 1,
                b':' if nesting == 0 => questions -= 1,
                b'"' => {
                    let pieces = self.double_quoted()?;
                    builder.push(Piece::Double(pieces));
                    continue;
                }
                b'\'' if subscripts > 0 => {
                    let text = self.single_quoted()?;
                    builder.push(Piece::Quoted(text));
                    continue;
                }
                _ => {}
            }
            self.quoted_step(&mut builder, b"$`\"\\")?;
        }
        Ok(self.with_raw(builder.finish(), start))
    }
}

/// Braces are expanded before tildes, and may bring one to the front: `{~,x}`.
fn tilde_first(word: &mut Word) {
    let Some(Piece::Text(text)) = word.pieces.first_mut() else { return };
    let Some(rest) = text.strip_prefix(b"~") else { return };
    let named = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'-' | b'.' | b'+');
    let len = rest.iter().take_while(named).count();
    let (user, after) = (rest[..len].to_vec(), rest[len..].to_vec());
    if !matches!(after.first(), None | Some(b'/' | b':')) || after.is_empty() && word.pieces.len() > 1 {
        return;
    }
    word.pieces[0] = Piece::Tilde(user);
    if !after.is_empty() {
        word.pieces.insert(1, Piece::Text(after));
    }
}

/// The word of `$(<word)`.
fn file_only(list: &List) -> Option<Word> {
    let [AndOr { first, rest, background: false, .. }] = list.items.as_slice() else { return None };
    let [Command::Simple(simple)] = first.stages.as_slice() else { return None };
    let plain = rest.is_empty() && !first.negated && simple.words.is_empty() && simple.assignments.is_empty();
    match simple.redirects.as_slice() {
        [
            Redirect { fd: RedirectFd::Default | RedirectFd::Number(0), action: RedirectAction::Read(word) },
        ] if plain => Some(word.clone()),
        _ => None,
    }
}
