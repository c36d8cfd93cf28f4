//! Expansion: from words to the strings a command gets.

pub mod case;
mod glob;
mod param;
pub mod quote;
mod sink;
mod substitute;
mod transform;

pub use glob::list_directory;
pub use param::values;
pub use sink::Sink;

use crate::ast::{Arg, ParamName, ParamSubscript, Piece, Word};
use crate::pattern::{Pattern, Style};
use crate::shell::{Exec, Shell};
use sink::Mode;

impl Shell {
    /// The words of a command, expanded to its arguments.
    pub fn expand_args(&mut self, words: &[Arg]) -> Exec<Vec<Vec<u8>>> {
        let mut out = Vec::with_capacity(words.len());
        for word in words {
            match word {
                Arg::Word(word) => self.expand_fields(word, &mut out)?,
                Arg::Assignment(assignment) => {
                    let text = self.assignment_as_text(assignment)?;
                    out.push(text);
                }
            }
        }
        Ok(out)
    }

    pub fn expand_words(&mut self, words: &[Word]) -> Exec<Vec<Vec<u8>>> {
        let mut out = Vec::with_capacity(words.len());
        for word in words {
            self.expand_fields(word, &mut out)?;
        }
        Ok(out)
    }

    /// With `set +B`: a word whose braces were expanded when it was read is taken as it was written.
    fn expand_unbraced(&mut self, word: &Word, out: &mut Vec<Vec<u8>>) -> Exec<()> {
        let unbraced = match word.raw.as_deref() {
            // One of the other words that the one before was made into.
            Some(b"") => return Ok(()),
            Some(raw) if raw.contains(&b'{') => crate::parser::unbraced(raw, &self.dialect()),
            _ => None,
        };
        self.expand_read(unbraced.as_ref().unwrap_or(word), out)
    }

    /// A word's fields: all expansions, then splitting, then file names.
    pub fn expand_fields(&mut self, word: &Word, out: &mut Vec<Vec<u8>>) -> Exec<()> {
        if !self.options.braceexpand && word.raw.is_some() {
            return self.expand_unbraced(word, out);
        }
        self.expand_read(word, out)
    }

    /// The same for a word as it was read.
    fn expand_read(&mut self, word: &Word, out: &mut Vec<Vec<u8>>) -> Exec<()> {
        match word.pieces.as_slice() {
            [Piece::Quoted(text)] => {
                out.push(text.clone());
                return Ok(());
            }
            [Piece::Text(text)] if !text.is_empty() && !text.iter().any(|&byte| sink::is_special(byte)) => {
                out.push(text.clone());
                return Ok(());
            }
            _ => {}
        }
        let mut sink = Sink::new(Mode::Fields);
        self.expand_pieces(&word.pieces, false, &mut sink)?;
        for field in sink.into_fields() {
            self.expand_pathname(field, out)?;
        }
        Ok(())
    }

    /// A word as one string: no splitting, no file names.
    pub fn expand_string(&mut self, word: &Word) -> Exec<Vec<u8>> {
        if let [Piece::Text(text) | Piece::Quoted(text)] = word.pieces.as_slice() {
            return Ok(text.clone());
        }
        let mut sink = Sink::new(Mode::Text);
        self.expand_pieces(&word.pieces, false, &mut sink)?;
        Ok(sink.into_text())
    }

    /// A word as the value of an assignment.
    pub fn expand_value(&mut self, word: &Word) -> Exec<Vec<u8>> {
        if let [Piece::Text(text) | Piece::Quoted(text)] = word.pieces.as_slice() {
            return Ok(text.clone());
        }
        let mut sink = Sink::new(Mode::Value);
        self.expand_pieces(&word.pieces, false, &mut sink)?;
        Ok(sink.into_text())
    }

    pub fn expand_piece_to_string(&mut self, piece: &Piece) -> Exec<Vec<u8>> {
        let mut sink = Sink::new(Mode::Text);
        self.expand_pieces(std::slice::from_ref(piece), true, &mut sink)?;
        Ok(sink.into_text())
    }

    /// A word as a pattern, its quoted parts escaped.
    pub fn expand_pattern_text(&mut self, word: &Word) -> Exec<Vec<u8>> {
        let mut sink = Sink::new(Mode::Pattern);
        self.expand_pieces(&word.pieces, false, &mut sink)?;
        Ok(sink.into_text())
    }

    pub fn expand_pattern(&mut self, word: &Word, fold: bool) -> Exec<Pattern> {
        let text = self.expand_pattern_text(word)?;
        Ok(Pattern::new(&text, Style { extended: true, fold, utf8: self.utf8() }))
    }

    /// What a match is replaced by, the special characters of its quoted parts escaped.
    fn expand_replacement(&mut self, word: &Word) -> Exec<Vec<u8>> {
        let mut sink = Sink::new(Mode::Replacement);
        self.expand_pieces(&word.pieces, false, &mut sink)?;
        Ok(sink.into_text())
    }

    /// A word as a regular expression, its quoted parts escaped.
    pub fn expand_regex(&mut self, word: &Word) -> Exec<Vec<u8>> {
        let mut sink = Sink::new(Mode::Regex);
        self.expand_pieces(&word.pieces, false, &mut sink)?;
        Ok(sink.into_text())
    }

    /// Pieces one after another. `quoted` says whether they stand inside double quotes.
    fn expand_pieces(&mut self, pieces: &[Piece], quoted: bool, sink: &mut Sink) -> Exec<()> {
        for piece in pieces {
            match piece {
                Piece::Text(text) if quoted => sink.quoted(text),
                Piece::Text(text) => sink.literal(text),
                Piece::Quoted(text) => {
                    sink.start();
                    sink.quoted(text);
                }
                Piece::Double(inner) => self.expand_double(inner, sink)?,
                Piece::Tilde(user) => {
                    let home = self.tilde(user);
                    sink.start();
                    sink.quoted(&home);
                }
                Piece::Param(param) => self.expand_param(param, quoted, sink)?,
                Piece::Command(substitution) => {
                    let text = self.substitute_command(substitution)?;
                    self.emit(&text, quoted, sink);
                }
                Piece::Arith(arith) => {
                    let value = self.arith_or_discard(arith)?;
                    self.emit(value.to_string().as_bytes(), quoted, sink);
                }
                Piece::Process { reads, body } => {
                    let path = self.substitute_process(*reads, body)?;
                    sink.start();
                    sink.quoted(&path);
                }
            }
        }
        Ok(())
    }

    /// The result of an expansion: split unless it is quoted.
    fn emit(&mut self, text: &[u8], quoted: bool, sink: &mut Sink) {
        if quoted {
            sink.quoted(text);
        } else {
            if sink.wants_ifs() {
                sink.set_ifs(self.ifs(), self.utf8());
            }
            sink.split(text);
        }
    }

    /// `"…"` makes a field even when it is empty, unless all that was in it is `$@` without parameters.
    fn expand_double(&mut self, inner: &[Piece], sink: &mut Sink) -> Exec<()> {
        let lists = inner.iter().any(is_list);
        if !lists {
            sink.start();
        }
        self.expand_pieces(inner, true, sink)
    }

    /// The directory a tilde stands for.
    fn tilde(&self, user: &[u8]) -> Vec<u8> {
        let variable = |name: &[u8]| self.vars.text(name).cloned();
        let found = match user {
            b"" => Some(variable(b"HOME").unwrap_or_else(|| b"/home/user".to_vec())),
            b"+" => variable(b"PWD"),
            b"-" => variable(b"OLDPWD"),
            [b'0'..=b'9', ..] | [b'+' | b'-', b'0'..=b'9', ..] => {
                let digits = std::str::from_utf8(user).unwrap_or_default();
                let (below, digits) = match digits.strip_prefix('-') {
                    Some(digits) => (true, digits),
                    None => (false, digits.strip_prefix('+').unwrap_or(digits)),
                };
                let all = self.directories();
                let at: Option<usize> = digits.parse().ok();
                let at = if below { at.and_then(|at| all.len().checked_sub(at + 1)) } else { at };
                at.and_then(|at| all.get(at).cloned())
            }
            b"root" => Some(b"/root".to_vec()),
            _ if variable(b"USER").as_deref() == Some(user) => variable(b"HOME"),
            _ => None,
        };
        found.unwrap_or_else(|| [b"~", user].concat())
    }
}

/// Whether a piece is `$@` or `${a[@]}`, which inside quotes may be several fields or none.
fn is_list(piece: &Piece) -> bool {
    match piece {
        Piece::Param(param) => {
            param.name == ParamName::Special(b'@')
                || matches!(param.subscript, Some(ParamSubscript::At))
                || matches!(param.op, crate::ast::ParamOp::Names { star: false })
        }
        _ => false,
    }
}
