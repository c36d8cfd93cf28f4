//! Syntax: from bytes to the form of [`crate::ast`], one complete command at a time.

mod brace;
mod compound;
mod condition;
mod heredoc;
mod param;
mod quotes;
mod scan;
mod simple;
mod word;

pub use quotes::ansi_c;
pub use simple::is_assignment_name;

use crate::ast::*;
use std::collections::HashMap;
use std::rc::Rc;

/// Deeper nesting than this is a syntax error rather than a stack that runs out.
const MAX_DEPTH: usize = 420;

/// What the shell's options mean to the syntax.
#[derive(Clone, Default)]
pub struct Dialect {
    pub extglob: bool,
    pub braces: bool,
    /// `set -o posix`.
    pub posix: bool,
    /// `shopt -s extquote`: `$'…'` is known in `"${x-…}"`.
    pub extquote: bool,
    /// The aliases, when they are to be expanded.
    pub aliases: Option<Rc<HashMap<Vec<u8>, Vec<u8>>>>,
}

#[derive(Debug, Clone)]
pub enum SyntaxError {
    /// A token where none may stand.
    Unexpected { line: u32, token: Vec<u8>, text: Vec<u8> },
    /// The script ended in the middle of something.
    Eof { line: u32 },
    /// The script ended inside a quotation or bracket.
    Unclosed { line: u32, what: &'static str },
    /// A test of `[[ ]]` that is none; bash ends a script there without counting it as a failure, unless it stands
    /// inside a substitution.
    Condition { line: u32, message: String, inside: bool },
    /// A token where none may stand in `name=( … )`: bash gives up the line, not the script.
    InArray(Box<SyntaxError>),
    /// `for (( … ))` with too many parts, or too few.
    ArithFor { line: u32, message: &'static str, text: Vec<u8> },
    /// Anything else.
    Other { line: u32, message: String },
}

impl SyntaxError {
    /// The lines bash prints, each without the shell's name, with its line number.
    pub fn messages(&self) -> Vec<(u32, Vec<u8>)> {
        match self {
            SyntaxError::Unexpected { line, token, text } => {
                let near = [b"syntax error near unexpected token `", token.as_slice(), b"'"].concat();
                let shown = [b"`", text.as_slice(), b"'"].concat();
                vec![(*line, near), (*line, shown)]
            }
            SyntaxError::InArray(error) => error.messages(),
            SyntaxError::Eof { line } => vec![(*line, b"syntax error: unexpected end of file".to_vec())],
            SyntaxError::Unclosed { line, what } => {
                vec![(*line, format!("unexpected EOF while looking for matching `{what}'").into_bytes())]
            }
            SyntaxError::ArithFor { line, message, text } => {
                let shown = [b"syntax error: `((", text.as_slice(), b"))'"].concat();
                vec![(*line, format!("syntax error: {message}").into_bytes()), (*line, shown)]
            }
            SyntaxError::Condition { message, .. } if message.is_empty() => Vec::new(),
            SyntaxError::Condition { line, message, .. } | SyntaxError::Other { line, message } => {
                vec![(*line, message.clone().into_bytes())]
            }
        }
    }
}

pub type Parsed<T> = Result<T, SyntaxError>;

/// Where more of a script comes from: standard input is read a line at a time, so that commands find the rest.
pub type Refill = Box<dyn FnMut() -> Option<Vec<u8>>>;

pub struct Parser {
    src: Vec<u8>,
    at: usize,
    pub line: u32,
    depth: usize,
    pending: Vec<Rc<HereDocument>>,
    dialect: Dialect,
    refill: Option<Refill>,
    /// Up to where continued lines have been joined.
    joined: usize,
    /// Aliases being expanded, with the end of their text: they are not expanded again inside it.
    expanding: Vec<(Vec<u8>, usize)>,
    /// Where a word starts that is to be tried as an alias because the last alias ended in a blank.
    alias_next: Option<usize>,
    /// In `case` patterns and `[[ ]]`, extended patterns need no option.
    pattern_parens: bool,
    /// Inside the body of a here-document.
    in_here: bool,
    /// Inside `$(…)` or `<(…)`.
    in_substitution: bool,
    /// The text speaks of `BASH_COMMAND`, so that it is worth keeping.
    pub mentions_command: bool,
    /// How much of the text `set -v` has shown.
    shown: usize,
    /// Pieces of the text that bash keeps in another spelling: from, to, and as what.
    respelled: Vec<(usize, usize, Vec<u8>)>,
    /// The status of the last command, if it could not be read but what follows can.
    pub given_up: Option<i32>,
    /// What is to be said about the text although it can be run, with the lines it is about.
    pub warnings: Vec<(u32, Vec<u8>)>,
}

impl Parser {
    pub fn new(src: Vec<u8>, line: u32) -> Parser {
        Parser {
            mentions_command: crate::pattern::find(&src, b"BASH_COMMAND").is_some(),
            src,
            at: 0,
            line,
            depth: 0,
            pending: Vec::new(),
            dialect: Dialect::default(),
            refill: None,
            joined: 0,
            expanding: Vec::new(),
            alias_next: None,
            pattern_parens: false,
            in_here: false,
            in_substitution: false,
            shown: 0,
            respelled: Vec::new(),
            given_up: None,
            warnings: Vec::new(),
        }
    }

    /// A parser of a whole script, whose last line is a line even if it has no newline.
    pub fn script(mut text: Vec<u8>, line: u32) -> Parser {
        if text.last().is_some_and(|&last| last != b'\n' && last != b'\\') {
            text.push(b'\n');
        }
        Parser::new(text, line)
    }

    /// What was read since this was last asked.
    pub fn newly_read(&mut self) -> &[u8] {
        let from = std::mem::replace(&mut self.shown, self.at).min(self.at);
        &self.src[from..self.at.min(self.src.len())]
    }

    pub fn with_refill(refill: Refill) -> Parser {
        Parser { refill: Some(refill), ..Parser::new(Vec::new(), 1) }
    }

    /// The next complete command (a line, and what its compounds span), or none at the end.
    pub fn next_command(&mut self, dialect: &Dialect) -> Parsed<Option<List>> {
        self.dialect = dialect.clone();
        self.depth = 0;
        self.respelled.clear();
        self.forget_consumed();
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.newline()?,
                None => return Ok(None),
                _ => break,
            }
        }
        let list = self.line_of_commands()?;
        Ok(Some(list))
    }

    /// Gives up the line being read.
    pub fn skip_line(&mut self) {
        self.pending.clear();
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    /// Takes what has not been parsed, and the line it begins on.
    pub fn take_rest(&mut self) -> (Vec<u8>, u32) {
        let rest = self.src.split_off(self.at.min(self.src.len()));
        (rest, self.line)
    }

    /// Where more of the source would come from, for who reads on instead.
    pub fn take_refill(&mut self) -> Option<Refill> {
        self.refill.take()
    }

    /// Drops the source already parsed when more of it keeps coming.
    fn forget_consumed(&mut self) {
        if self.refill.is_some() && self.at == self.src.len() {
            self.src.clear();
            self.at = 0;
            self.shown = 0;
            self.joined = 0;
            self.expanding.clear();
        }
    }

    /// Commands up to the end of the line.
    fn line_of_commands(&mut self) -> Parsed<List> {
        let mut items = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                None => break,
                Some(b'\n') => {
                    self.newline()?;
                    break;
                }
                _ => {}
            }
            // An alias may stand for a comment.
            if self.alias()? && matches!(self.peek(), None | Some(b'\n')) {
                continue;
            }
            items.push(self.and_or()?);
            self.blanks();
            match self.peek() {
                Some(b'\n') | None => {}
                Some(b';') if !self.looking_at(b";;") && !self.looking_at(b";&") => self.at += 1,
                Some(b'&') if items.last().is_some_and(|item: &AndOr| item.background) => {
                    return Err(self.unexpected());
                }
                _ if items.last().is_some_and(|item: &AndOr| item.background) => {}
                _ => return Err(self.unexpected()),
            }
        }
        self.read_pending_bodies()?;
        Ok(List { items })
    }

    /// Commands up to a word or bracket that closes a compound.
    fn list(&mut self) -> Parsed<List> {
        self.enter()?;
        let mut items = Vec::new();
        loop {
            self.blanks_and_newlines()?;
            // An alias may stand for the word that closes the list.
            self.alias()?;
            if self.at_closer() {
                break;
            }
            items.push(self.and_or()?);
            self.blanks();
            match self.peek() {
                Some(b'\n') => items.iter_mut().last().into_iter().for_each(|item| item.ends_line = true),
                Some(b';') if !self.looking_at(b";;") && !self.looking_at(b";&") => self.at += 1,
                _ if items.last().is_some_and(|item: &AndOr| item.background) => {}
                _ => {
                    self.blanks();
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(List { items })
    }

    /// A list that must not be empty.
    fn some_list(&mut self) -> Parsed<List> {
        let list = self.list()?;
        if list.items.is_empty() { Err(self.unexpected()) } else { Ok(list) }
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.other("maximum nesting level exceeded"));
        }
        Ok(())
    }

    fn at_closer(&mut self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => self.looking_at(b";;") || self.looking_at(b";&"),
            _ => matches!(
                self.peek_keyword(),
                b"then" | b"else" | b"elif" | b"fi" | b"do" | b"done" | b"esac" | b"}"
            ),
        }
    }

    fn and_or(&mut self) -> Parsed<AndOr> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.blanks();
            let connector = if self.looking_at(b"&&") {
                Connector::And
            } else if self.looking_at(b"||") {
                Connector::Or
            } else {
                break;
            };
            self.at += 2;
            self.blanks_and_newlines()?;
            rest.push((connector, self.pipeline()?));
        }
        let background = self.peek() == Some(b'&');
        if background {
            self.at += 1;
        }
        Ok(AndOr { first, rest, background, ends_line: false })
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let (mut negated, mut marked, mut timed) = (false, false, None);
        loop {
            self.blanks();
            match self.peek_keyword() {
                b"!" => {
                    self.at += 1;
                    negated = !negated;
                    marked = true;
                }
                b"time" if self.time_is_keyword() => {
                    self.at += 4;
                    timed = Some(Timing::Bash);
                    self.blanks();
                    if self.peek_keyword() == b"-p" {
                        self.at += 2;
                        timed = Some(Timing::Posix);
                        self.blanks();
                        if self.peek_keyword() == b"--" {
                            self.at += 2;
                        }
                    }
                }
                _ => break,
            }
        }
        self.blanks();
        let nothing = matches!(self.peek(), None | Some(b'\n' | b';' | b'&' | b')' | b'|'));
        if nothing && (timed.is_some() || (marked && !matches!(self.peek(), Some(b'|' | b'&')))) {
            return Ok(Pipeline { negated, timed, stages: Vec::new() });
        }
        let mut stages = vec![self.command()?];
        loop {
            self.blanks();
            if self.looking_at(b"||") || self.peek() != Some(b'|') {
                break;
            }
            self.at += 1;
            if self.peek() == Some(b'&') {
                self.at += 1;
                if let Some(stage) = stages.last_mut() {
                    join_stderr(stage);
                }
            }
            self.blanks_and_newlines()?;
            stages.push(self.command()?);
        }
        Ok(Pipeline { negated, timed, stages })
    }

    /// `time` as a word of its own; in bash it is always the keyword there, except before an option.
    fn time_is_keyword(&self) -> bool {
        let mut at = self.at + 4;
        while matches!(self.src.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        self.src.get(at) != Some(&b'-') || self.src[at..].starts_with(b"-p")
    }

    fn command(&mut self) -> Parsed<Command> {
        self.enter()?;
        let command = self.command_inner();
        self.depth -= 1;
        command
    }
}

pub const KEYWORDS: &[&[u8]] = &[
    b"if",
    b"then",
    b"else",
    b"elif",
    b"fi",
    b"do",
    b"done",
    b"case",
    b"esac",
    b"while",
    b"until",
    b"for",
    b"select",
    b"in",
    b"function",
    b"time",
    b"{",
    b"}",
    b"!",
    b"[[",
    b"]]",
    b"coproc",
    b"-p",
    b"--",
];

/// Whether a byte ends a word when unquoted.
fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

fn is_word_byte(byte: u8) -> bool {
    !is_meta(byte)
}

/// `a |& b` is `a 2>&1 | b`.
fn join_stderr(stage: &mut Command) {
    let redirect = Redirect {
        fd: RedirectFd::Number(2),
        action: RedirectAction::DupOutput(Word { pieces: vec![Piece::Text(b"1".to_vec())], raw: None }),
    };
    match stage {
        Command::Simple(simple) => simple.redirects.push(redirect),
        Command::Compound(compound) => {
            let mut changed = (**compound).clone();
            changed.redirects.push(redirect);
            *compound = Rc::new(changed);
        }
        Command::Function(_) | Command::Coproc(_) => {}
    }
}

/// Whether a word names a reserved word, for `type`.
pub fn is_keyword(word: &[u8]) -> bool {
    !word.starts_with(b"-") && KEYWORDS.contains(&word)
}

/// Parses text as the inside of double quotes, to the end.
pub fn parse_quoted(text: Vec<u8>, dialect: &Dialect) -> Parsed<Word> {
    let mut parser = Parser::new(text, 1);
    parser.dialect = dialect.clone();
    parser.here_word()
}

/// The words a word becomes by brace expansion, if it has braces and they do not become too many.
pub fn expand_braces(word: &Word) -> Option<Vec<Word>> {
    if brace::may_expand(word) { brace::expand(word.clone()).ok() } else { None }
}

/// The word that was written, before its braces were expanded.
pub fn unbraced(raw: &[u8], dialect: &Dialect) -> Option<Word> {
    let mut parser = Parser::new(raw.to_vec(), 1);
    parser.dialect = Dialect { braces: false, ..dialect.clone() };
    parser.word().ok().flatten()
}
