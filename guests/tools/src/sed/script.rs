//! The text of a script, and what is wrong with it.

use super::Options;
use super::command::{Action, Address, Command, End, Pattern, Range, Script};
use super::replace::{Case, Piece, Substitution, Translation};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use wardian_regex::{Regex, Syntax, char_len};

/// A part of a script: `-e` or `-f`.
pub struct Source {
    pub file: Option<Vec<u8>>,
    pub text: Vec<u8>,
}

/// What is wrong with a script, and the exit code for it.
pub struct Wrong {
    pub message: String,
    pub code: i32,
}

type Result<T> = std::result::Result<T, Wrong>;

/// Blocks deeper than this are refused.
const DEEPEST: usize = 10_000;

/// Reads a script.
pub fn parse(sources: &[Source], options: &Options) -> Result<Script> {
    let mut text = Vec::new();
    let mut starts = Vec::new();
    for source in sources {
        starts.push(text.len());
        text.extend_from_slice(&source.text);
        text.push(b'\n');
    }
    text.pop();
    let script = Script { commands: Vec::new(), written: Vec::new(), read: Vec::new(), starts_quiet: false };
    let (labels, jumps) = (HashMap::new(), Vec::new());
    let mut parser =
        Parser { text, at: 0, sources, starts, options, script, blocks: Vec::new(), labels, jumps };
    // GNU's looks no further, whatever POSIX says of the rest of the line.
    parser.script.starts_quiet = parser.text.starts_with(b"#n");
    while parser.command()? {}
    parser.finish()
}

struct Parser<'s> {
    text: Vec<u8>,
    /// How much of the text was taken.
    at: usize,
    sources: &'s [Source],
    starts: Vec<usize>,
    options: &'s Options,
    script: Script,
    /// The blocks that are open: their commands, and where they stand in the text.
    blocks: Vec<(usize, usize)>,
    labels: HashMap<Vec<u8>, usize>,
    jumps: Vec<(usize, Vec<u8>)>,
}

impl Parser<'_> {
    /// Says where something is wrong: behind what was taken last.
    fn wrong(&self, message: impl std::fmt::Display) -> Wrong {
        self.wrong_at(self.at, message, false)
    }

    fn wrong_at(&self, at: usize, message: impl std::fmt::Display, at_no_char: bool) -> Wrong {
        // What stands at a start belongs to the source before it, whose end was read.
        let index = self.starts.iter().rposition(|start| *start < at || at == 0).unwrap_or(0);
        let start = self.starts[index];
        let message = match &self.sources[index].file {
            Some(file) => {
                let line = self.text[start..at].iter().filter(|byte| **byte == b'\n').count() + 1;
                format!("file {} line {line}: {message}", String::from_utf8_lossy(file))
            }
            None => {
                let number = self.sources[..=index].iter().filter(|source| source.file.is_none()).count();
                let char = if at_no_char { 0 } else { (at - start).min(self.sources[index].text.len()) };
                format!("-e expression #{number}, char {char}: {message}")
            }
        };
        Wrong { message, code: 1 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// The next byte that is no blank.
    fn next_nonblank(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.next()
    }

    fn put_back(&mut self, byte: Option<u8>) {
        self.at -= usize::from(byte.is_some());
    }

    /// Reads a command; says whether there was one.
    fn command(&mut self) -> Result<bool> {
        while matches!(self.peek(), Some(b';' | b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)) {
            self.at += 1;
        }
        if self.peek().is_none() {
            return Ok(false);
        }
        let (first, second) = self.addresses()?;
        let mut byte = self.next_nonblank();
        let negated = byte == Some(b'!');
        if negated {
            byte = self.next_nonblank();
            if byte == Some(b'!') {
                return Err(self.wrong("multiple `!'s"));
            }
        }
        let Some(byte) = byte.filter(|byte| *byte != b'\n') else {
            self.put_back(byte);
            return Err(self.wrong("missing command"));
        };
        let starts_at_zero = matches!(first, Some(Address::Line(0))) && second.is_some();
        let index = self.script.commands.len();
        let range = Cell::new(if starts_at_zero { Range::Inside(None) } else { Range::Outside });
        self.script.commands.push(Command { first, second, negated, range, action: Action::Nothing });
        self.script.commands[index].action = self.action(byte, index)?;
        Ok(true)
    }

    fn addresses(&mut self) -> Result<(Option<Address>, Option<End>)> {
        let first = match self.peek() {
            Some(b'+' | b'~') => {
                self.at += 1;
                self.number_here();
                return Err(self.wrong("invalid usage of +N or ~N as first address"));
            }
            Some(b'0'..=b'9') => {
                let line = self.number_here();
                let before = self.at;
                match self.next_nonblank() {
                    Some(b'~') if !self.options.posix => {
                        let next = self.next_nonblank();
                        self.put_back(next);
                        Address::Step(line, self.number_here())
                    }
                    _ => {
                        self.at = before;
                        Address::Line(line)
                    }
                }
            }
            Some(b'$') => {
                self.at += 1;
                Address::Last
            }
            Some(b'/' | b'\\') => Address::Pattern(self.address_pattern()?),
            _ => return Ok((None, None)),
        };
        let before = self.at;
        let second = match self.next_nonblank() {
            Some(b',') => Some(self.range_end()?),
            _ => {
                self.at = before;
                None
            }
        };
        if matches!(first, Address::Line(0))
            && (!matches!(second, Some(End::Pattern(_))) || self.options.posix)
        {
            // GNU's has read on to the command by then. A file can be read before the first line.
            let command = self.next_nonblank();
            if command != Some(b'r') || second.is_some() || self.options.posix {
                return Err(self.wrong("invalid usage of line address 0"));
            }
            self.put_back(command);
        }
        Ok((Some(first), second))
    }

    fn range_end(&mut self) -> Result<End> {
        let byte = self.next_nonblank();
        self.put_back(byte);
        match byte {
            Some(b'0'..=b'9') => Ok(End::Line(self.number_here())),
            Some(sign @ (b'+' | b'~')) if !self.options.posix => {
                self.at += 1;
                let next = self.next_nonblank();
                self.put_back(next);
                let number = self.number_here();
                Ok(if sign == b'+' { End::After(number) } else { End::Multiple(number) })
            }
            Some(b'$') => {
                self.at += 1;
                Ok(End::Last)
            }
            Some(b'/' | b'\\') => self.address_pattern().map(End::Pattern),
            _ => {
                if byte.is_some_and(|byte| byte != b'\n') {
                    self.at += 1;
                }
                Err(self.wrong("unexpected `,'"))
            }
        }
    }

    /// The digits that stand here, as a number; none are 0.
    fn number_here(&mut self) -> u64 {
        let mut number = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        number
    }

    fn address_pattern(&mut self) -> Result<Pattern> {
        let mut slash = self.next();
        if slash == Some(b'\\') {
            slash = self.next();
        }
        let pattern = match slash {
            Some(slash) if slash != b'\n' => self.delimited(slash, true)?,
            _ => None,
        };
        let Some(pattern) = pattern else { return Err(self.wrong("unterminated address regex")) };
        let (mut ignore_case, mut multi_line) = (false, false);
        loop {
            let before = self.at;
            match self.next_nonblank() {
                Some(b'I') if !self.options.posix => ignore_case = true,
                Some(b'M') if !self.options.posix => multi_line = true,
                _ => {
                    self.at = before;
                    return self.compile(&pattern, ignore_case, multi_line);
                }
            }
        }
    }

    /// What stands between here and the next delimiter, which is taken too; nothing if there is none. A backslash
    /// goes before a delimiter and before a newline.
    fn delimited(&mut self, slash: u8, is_pattern: bool) -> Result<Option<Vec<u8>>> {
        if !slash.is_ascii() && self.options.utf8 {
            return Err(self.wrong("delimiter character is not a single-byte character"));
        }
        let mut found = Vec::new();
        while let Some(byte) = self.next() {
            match byte {
                _ if byte == slash => return Ok(Some(found)),
                b'\n' if is_pattern => {
                    self.at -= 1;
                    return Ok(None);
                }
                b'\\' => match self.next() {
                    None => return Ok(None),
                    Some(b'n') if is_pattern && slash != b'n' => found.push(b'\n'),
                    Some(b'\n') if is_pattern => found.push(b'\n'),
                    Some(next) if next == slash && (is_pattern || next != b'&') => found.push(next),
                    Some(next) => found.extend([b'\\', next]),
                },
                b'[' if is_pattern && slash != b'[' => {
                    found.push(byte);
                    if !self.take_bracket(slash, &mut found) {
                        self.rest_of_line();
                        return Ok(None);
                    }
                }
                _ => found.push(byte),
            }
        }
        Ok(None)
    }

    /// Takes the rest of a bracket expression, if it has an end: a delimiter is one of its members.
    fn take_bracket(&mut self, slash: u8, found: &mut Vec<u8>) -> bool {
        let rest = &self.text[self.at..];
        let Some(length) = bracket_length(rest) else { return false };
        let inside = &rest[..length];
        let mut at = 0;
        while at < length {
            match inside[at..] {
                [b'\\', b'n', ..] => {
                    found.push(b'\n');
                    at += 2;
                }
                [b'\\', next, ..] if next == slash => {
                    found.push(next);
                    at += 2;
                }
                _ => {
                    found.push(inside[at]);
                    at += 1;
                }
            }
        }
        self.at += length;
        true
    }

    /// Compiles a pattern; an empty one is the last that was used.
    fn compile(&self, pattern: &[u8], ignore_case: bool, multi_line: bool) -> Result<Pattern> {
        if pattern.is_empty() {
            return match ignore_case || multi_line {
                true => Err(self.wrong("cannot specify modifiers on empty regexp")),
                false => Ok(None),
            };
        }
        let syntax = if self.options.extended { Syntax::Extended } else { Syntax::Basic };
        let how = wardian_regex::Options {
            strict: true,
            ignore_case,
            // Without line feeds at the ends of lines there are no lines in a line.
            multi_line: multi_line && self.options.line_end == b'\n',
            bytes: !self.options.utf8,
            ..wardian_regex::Options::new(syntax)
        };
        if has_recursive_escape(pattern) {
            return Err(self.wrong(RECURSIVE));
        }
        let pattern = with_characters(pattern, self.options.posix);
        Regex::new(&pattern, &how).map(|regex| Some(Rc::new(regex))).map_err(|error| self.wrong(error))
    }

    /// What the command named by a letter does.
    fn action(&mut self, letter: u8, index: usize) -> Result<Action> {
        if self.options.posix && b"eFvzQTRW".contains(&letter) {
            return Err(self.unknown(letter));
        }
        let has_address = self.script.commands[index].first.is_some();
        let action = match letter {
            b'#' if has_address => return Err(self.wrong("comments don't accept any addresses")),
            b'#' => {
                self.rest_of_line();
                return Ok(Action::Nothing);
            }
            b'{' => {
                if self.blocks.len() >= DEEPEST {
                    return Err(self.wrong("too many nested blocks"));
                }
                self.blocks.push((index, self.at));
                return Ok(Action::Block(0));
            }
            b'}' => return self.close_block(has_address),
            b':' if has_address => return Err(self.wrong(": doesn't want any addresses")),
            b':' => return self.label(index),
            b'a' => return self.text_of().map(Action::Append),
            b'i' => return self.text_of().map(Action::Insert),
            b'c' => return self.text_of().map(Action::Change),
            b'b' | b't' | b'T' => return Ok(self.jump(letter, index)),
            b'r' | b'R' | b'w' | b'W' => return self.file_command(letter),
            b's' => return self.substitute(),
            b'y' => self.translate()?,
            b'e' => return self.execute(),
            b'v' => return self.version(),
            b'l' => Action::List(self.optional_number().map(|number| number as usize)),
            b'q' | b'Q' if self.script.commands[index].second.is_some() => {
                return Err(self.wrong("command only uses one address"));
            }
            b'q' => Action::Quit(self.optional_number().unwrap_or(0) as i32),
            b'Q' => Action::QuitSilently(self.optional_number().unwrap_or(0) as i32),
            _ => plain_action(letter).ok_or_else(|| self.unknown(letter))?,
        };
        self.end_of_command()?;
        Ok(action)
    }

    fn unknown(&self, letter: u8) -> Wrong {
        self.wrong(format_args!("unknown command: `{}'", String::from_utf8_lossy(&[letter])))
    }

    fn optional_number(&mut self) -> Option<u64> {
        let next = self.next_nonblank();
        self.put_back(next);
        (matches!(next, Some(b'0'..=b'9')) && !self.options.posix).then(|| self.number_here())
    }

    /// Nothing but a separator may follow a command.
    fn end_of_command(&mut self) -> Result<()> {
        match self.next_nonblank() {
            None | Some(b'\n' | b';') => Ok(()),
            Some(b'\r') if matches!(self.peek(), None | Some(b'\n')) => Ok(()),
            byte @ Some(b'}' | b'#') => {
                self.put_back(byte);
                Ok(())
            }
            Some(_) => Err(self.wrong("extra characters after command")),
        }
    }

    fn rest_of_line(&mut self) -> Vec<u8> {
        let rest = &self.text[self.at..];
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = rest[..length].to_vec();
        self.at += length;
        line
    }

    fn close_block(&mut self, has_address: bool) -> Result<Action> {
        let Some((block, _)) = self.blocks.pop() else { return Err(self.wrong("unexpected `}'")) };
        if has_address {
            return Err(self.wrong("} doesn't want any addresses"));
        }
        self.end_of_command()?;
        self.script.commands[block].action = Action::Block(self.script.commands.len());
        Ok(Action::Nothing)
    }

    fn label(&mut self, index: usize) -> Result<Action> {
        let next = self.next_nonblank();
        self.put_back(next);
        let mut label = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| !ends_label(*byte)) {
            label.push(byte);
            self.at += 1;
        }
        if label.is_empty() {
            return Err(self.wrong("\":\" lacks a label"));
        }
        self.labels.insert(label, index);
        Ok(Action::Nothing)
    }

    fn jump(&mut self, letter: u8, index: usize) -> Action {
        let next = self.next_nonblank();
        self.put_back(next);
        let mut label = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| !ends_label(*byte)) {
            label.push(byte);
            self.at += 1;
        }
        self.jumps.push((index, label));
        match letter {
            b'b' => Action::Branch(0),
            b't' => Action::BranchIfReplaced(0),
            _ => Action::BranchUnlessReplaced(0),
        }
    }

    /// The text of `a`, `i` or `c`.
    fn text_of(&mut self) -> Result<Vec<u8>> {
        let first = self.next_nonblank();
        match first {
            None | Some(b'\n') => {
                self.put_back(first);
                return Err(self.wrong("expected \\ after `a', `c' or `i'"));
            }
            Some(b'\\') => {
                let before = self.at;
                match self.next_nonblank() {
                    None => return Ok(Vec::new()),
                    Some(b'\n') if self.options.posix && self.starts.contains(&self.at) => {
                        self.at = before;
                        return Err(self.wrong("incomplete command"));
                    }
                    Some(b'\n') => {}
                    // Blanks behind the backslash are part of the text.
                    Some(_) => self.at = before,
                }
            }
            Some(_) if self.options.posix => {
                return Err(self.wrong("expected \\ after `a', `c' or `i'"));
            }
            Some(_) => self.at -= 1,
        }
        let mut raw = Vec::new();
        while let Some(byte) = self.next().filter(|byte| *byte != b'\n') {
            raw.push(byte);
            if byte == b'\\' {
                raw.extend(self.next());
            }
        }
        let mut text = plain_text(&raw, self.options.posix);
        text.push(b'\n');
        Ok(text)
    }

    fn file_name(&mut self) -> Result<Vec<u8>> {
        let next = self.next_nonblank();
        self.put_back(next);
        let name = self.rest_of_line();
        if name.is_empty() {
            return Err(self.wrong("missing filename in r/R/w/W commands"));
        }
        Ok(name)
    }

    fn file_command(&mut self, letter: u8) -> Result<Action> {
        if self.options.sandbox {
            return Err(self.disabled());
        }
        let name = self.file_name()?;
        Ok(match letter {
            b'r' => Action::ReadFile(name),
            b'R' => Action::ReadLine(number_of(&mut self.script.read, name)),
            b'w' => Action::Write(number_of(&mut self.script.written, name)),
            _ => Action::WriteFirst(number_of(&mut self.script.written, name)),
        })
    }

    fn disabled(&self) -> Wrong {
        self.wrong("e/r/w commands disabled in sandbox mode")
    }

    /// `e`: a command, or the pattern space as one.
    fn execute(&mut self) -> Result<Action> {
        if self.options.sandbox {
            return Err(self.disabled());
        }
        let next = self.next_nonblank();
        self.put_back(next);
        match next {
            None | Some(b'\n') => Ok(Action::Execute(Vec::new())),
            Some(_) => self.text_of().map(Action::Execute),
        }
    }

    fn version(&mut self) -> Result<Action> {
        let next = self.next_nonblank();
        self.put_back(next);
        let mut version = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| !byte.is_ascii_whitespace() && *byte != b';') {
            version.push(byte);
            self.at += 1;
        }
        let text = String::from_utf8_lossy(&version).into_owned();
        let numbers: Vec<u64> = text.split('.').map(|part| part.parse().unwrap_or(0)).collect();
        if numbers[..] > [4, 9][..] {
            return Err(self.wrong("expected newer version of sed"));
        }
        self.end_of_command()?;
        Ok(Action::Nothing)
    }

    fn substitute(&mut self) -> Result<Action> {
        const UNTERMINATED: &str = "unterminated `s' command";
        let slash = self.next();
        let Some(slash) = slash.filter(|slash| !matches!(slash, b'\n' | b'\\')) else {
            self.put_back(slash);
            return Err(self.wrong(UNTERMINATED));
        };
        let Some(pattern) = self.delimited(slash, true)? else { return Err(self.wrong(UNTERMINATED)) };
        let Some(replacement) = self.delimited(slash, false)? else { return Err(self.wrong(UNTERMINATED)) };
        let mut substitution = Substitution {
            pattern: None,
            pieces: pieces_of(&replacement, self.options.posix),
            number: 0,
            all: false,
            print: 0,
            executes: false,
            prints_first: false,
            write: None,
            wants_groups: false,
            utf8: self.options.utf8,
        };
        let (ignore_case, multi_line) = self.flags(&mut substitution)?;
        if has_recursive_escape(&replacement) {
            return Err(self.wrong(RECURSIVE));
        }
        substitution.number = substitution.number.max(1);
        let highest =
            substitution.pieces.iter().map(|piece| if let Piece::Group(n) = piece { *n } else { 0 }).max();
        let highest = highest.unwrap_or(0);
        substitution.wants_groups = highest > 0;
        substitution.pattern = self.compile(&pattern, ignore_case, multi_line)?;
        if let Some(regex) = &substitution.pattern
            && highest > regex.groups()
            && !self.options.posix
        {
            return Err(self.wrong(format_args!("invalid reference \\{highest} on `s' command's RHS")));
        }
        Ok(Action::Substitute(Box::new(substitution)))
    }

    /// The flags of `s`: whether case is ignored, and whether lines count.
    fn flags(&mut self, substitution: &mut Substitution) -> Result<(bool, bool)> {
        let (mut ignore_case, mut multi_line) = (false, false);
        loop {
            match self.next() {
                None | Some(b'\n' | b';') => break,
                Some(b' ' | b'\t') => {}
                Some(b'\r') if matches!(self.peek(), None | Some(b'\n')) => {}
                byte @ Some(b'}' | b'#') => {
                    self.put_back(byte);
                    break;
                }
                Some(b'i' | b'I') if !self.options.posix => ignore_case = true,
                Some(b'm' | b'M') if !self.options.posix => multi_line = true,
                Some(b'g') if substitution.all => {
                    return Err(self.wrong("multiple `g' options to `s' command"));
                }
                Some(b'g') => substitution.all = true,
                Some(b'p') if substitution.print > 0 => {
                    return Err(self.wrong("multiple `p' options to `s' command"));
                }
                Some(b'p') => {
                    substitution.print += 1;
                    substitution.prints_first = !substitution.executes;
                }
                Some(b'e' | b'w') if self.options.sandbox => return Err(self.disabled()),
                Some(b'e') if !self.options.posix => substitution.executes = true,
                Some(b'w') => {
                    let name = self.file_name()?;
                    substitution.write = Some(number_of(&mut self.script.written, name));
                    break;
                }
                Some(b'0'..=b'9') => {
                    self.at -= 1;
                    let number = self.number_here();
                    if substitution.number > 0 {
                        return Err(self.wrong("multiple number options to `s' command"));
                    }
                    if number == 0 {
                        return Err(self.wrong("number option to `s' command may not be zero"));
                    }
                    substitution.number = number as usize;
                }
                Some(_) => return Err(self.wrong("unknown option to `s'")),
            }
        }
        Ok((ignore_case, multi_line))
    }

    fn translate(&mut self) -> Result<Action> {
        const UNTERMINATED: &str = "unterminated `y' command";
        let slash = self.next();
        let Some(slash) = slash.filter(|slash| !matches!(slash, b'\n' | b'\\')) else {
            self.put_back(slash);
            return Err(self.wrong(UNTERMINATED));
        };
        let Some(from) = self.delimited(slash, false)? else { return Err(self.wrong(UNTERMINATED)) };
        let Some(to) = self.delimited(slash, false)? else { return Err(self.wrong(UNTERMINATED)) };
        if has_recursive_escape(&from) || has_recursive_escape(&to) {
            return Err(self.wrong(RECURSIVE));
        }
        let (from, to) = (characters_of(&from, self.options), characters_of(&to, self.options));
        match Translation::new(&from, &to) {
            Some(translation) => Ok(Action::Translate(Box::new(translation))),
            None => Err(self.wrong("strings for `y' command are different lengths")),
        }
    }

    /// Looks up where the jumps go, once all labels are known.
    fn finish(mut self) -> Result<Script> {
        if let Some((_, at)) = self.blocks.last() {
            return Err(self.wrong_at(*at, "unmatched `{'", true));
        }
        let end = self.script.commands.len();
        for (index, label) in &self.jumps {
            let target = match self.labels.get(label) {
                _ if label.is_empty() => end,
                Some(target) => *target,
                None => {
                    let label = String::from_utf8_lossy(label);
                    return Err(Wrong {
                        message: format!("can't find label for jump to `{label}'"),
                        code: 4,
                    });
                }
            };
            match &mut self.script.commands[*index].action {
                Action::Branch(to) | Action::BranchIfReplaced(to) | Action::BranchUnlessReplaced(to) => {
                    *to = target
                }
                _ => {}
            }
        }
        Ok(self.script)
    }
}

fn ends_label(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b';' | b'}' | b'#')
}

fn plain_action(letter: u8) -> Option<Action> {
    Some(match letter {
        b'=' => Action::Number,
        b'd' => Action::Delete,
        b'D' => Action::DeleteFirst,
        b'F' => Action::FileName,
        b'g' => Action::Get,
        b'G' => Action::GetMore,
        b'h' => Action::Hold,
        b'H' => Action::HoldMore,
        b'n' => Action::Next,
        b'N' => Action::NextMore,
        b'p' => Action::Print,
        b'P' => Action::PrintFirst,
        b'x' => Action::Exchange,
        b'z' => Action::Zap,
        _ => return None,
    })
}

/// The number of a file among those named so far.
fn number_of(names: &mut Vec<Vec<u8>>, name: Vec<u8>) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// How long a bracket expression is, behind its `[`, with its `]`.
fn bracket_length(text: &[u8]) -> Option<usize> {
    let mut at = usize::from(text.first() == Some(&b'^'));
    at += usize::from(text.get(at) == Some(&b']'));
    loop {
        match text.get(at)? {
            b']' => return Some(at + 1),
            b'\n' => return None,
            b'[' if matches!(text.get(at + 1), Some(b':' | b'.' | b'=')) => {
                let close = [text[at + 1], b']'];
                at += 2 + memchr::memmem::find(&text[at + 2..], &close)? + 2;
            }
            _ => at += 1,
        }
    }
}

/// The byte that an escape (without its backslash) stands for, and how long the escape is.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let number = |base: u32, digits: usize| {
        let digits =
            text[1..].iter().take(digits).take_while(|byte| char::from(**byte).is_digit(base)).count();
        let code = std::str::from_utf8(&text[1..1 + digits]).ok()?;
        Some((u32::from_str_radix(code, base).ok()? as u8, digits + 1))
    };
    match text.first()? {
        b'a' => Some((0x07, 1)),
        b'f' => Some((0x0c, 1)),
        b'n' => Some((b'\n', 1)),
        b'r' => Some((b'\r', 1)),
        b't' => Some((b'\t', 1)),
        b'v' => Some((0x0b, 1)),
        b'c' if text[1..].starts_with(b"\\\\") => Some((0x1c, 3)),
        b'c' => text.get(1).map(|char| (char.to_ascii_uppercase() ^ 0x40, 2)),
        b'd' => number(10, 3),
        b'o' => number(8, 3),
        b'x' => number(16, 2),
        _ => None,
    }
}

const RECURSIVE: &str = "recursive escaping after \\c not allowed";

/// Whether a control character is to be made of another escape.
fn has_recursive_escape(text: &[u8]) -> bool {
    let mut at = 0;
    while at + 1 < text.len() {
        match &text[at..] {
            [b'\\', b'c', b'\\', b'\\', ..] => at += 4,
            [b'\\', b'c', b'\\', _, ..] => return true,
            [b'\\', ..] => at += 2,
            _ => at += 1,
        }
    }
    false
}

/// A pattern with the escapes replaced that regular expressions do not know; in a bracket expression, POSIX has none.
fn with_characters(pattern: &[u8], posix: bool) -> Vec<u8> {
    let mut plain = Vec::with_capacity(pattern.len());
    let mut at = 0;
    while at < pattern.len() {
        match pattern[at..] {
            [b'[', ..] if posix => {
                let length = bracket_length(&pattern[at + 1..]).unwrap_or(0);
                plain.extend_from_slice(&pattern[at..=at + length]);
                at += length + 1;
            }
            [b'\\', next, ..] => match escape(&pattern[at + 1..]) {
                Some((byte, length)) => {
                    if byte == b'\\' {
                        plain.push(byte);
                    }
                    plain.push(byte);
                    at += 1 + length;
                }
                None => {
                    plain.extend([b'\\', next]);
                    at += 2;
                }
            },
            _ => {
                plain.push(pattern[at]);
                at += 1;
            }
        }
    }
    plain
}

/// A text for `a`, `i` and `c`: its escapes replaced, and other backslashes gone.
fn plain_text(raw: &[u8], posix: bool) -> Vec<u8> {
    let mut plain = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        if raw[at] != b'\\' {
            plain.push(raw[at]);
            at += 1;
            continue;
        }
        at += 1;
        let found = if posix { None } else { escape(&raw[at..]) };
        match found {
            Some((byte, length)) => {
                plain.push(byte);
                at += length;
            }
            None => {
                plain.extend(raw.get(at));
                at += 1;
            }
        }
    }
    plain
}

/// The right side of `s`, taken apart.
fn pieces_of(text: &[u8], posix: bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (piece, length) = match text[at..] {
            [b'&', ..] => (Piece::Group(0), 1),
            [b'\\', digit @ b'0'..=b'9', ..] => (Piece::Group(usize::from(digit - b'0')), 2),
            [b'\\', b'U', ..] if !posix => (Piece::Case(Case::Upper), 2),
            [b'\\', b'L', ..] if !posix => (Piece::Case(Case::Lower), 2),
            [b'\\', b'E', ..] if !posix => (Piece::Case(Case::End), 2),
            [b'\\', b'u', ..] if !posix => (Piece::Case(Case::NextUpper), 2),
            [b'\\', b'l', ..] if !posix => (Piece::Case(Case::NextLower), 2),
            [b'\\', b'c'] if !posix => {
                plain.push(b'\\');
                at += 2;
                continue;
            }
            [b'\\', next, ..] => {
                let found = if posix && next != b'n' { None } else { escape(&text[at + 1..]) };
                let (byte, length) = found.unwrap_or((next, 1));
                plain.push(byte);
                at += 1 + length;
                continue;
            }
            _ => {
                plain.push(text[at]);
                at += 1;
                continue;
            }
        };
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(piece);
        at += length;
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    pieces
}

/// The characters of a side of `y`.
fn characters_of(text: &[u8], options: &Options) -> Vec<Vec<u8>> {
    let mut characters = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if let [b'\\', next, ..] = text[at..] {
            if next == b'\\' {
                characters.push(vec![b'\\']);
                at += 2;
                continue;
            }
            if let Some((byte, length)) = escape(&text[at + 1..]) {
                characters.push(vec![byte]);
                at += 1 + length;
                continue;
            }
        }
        let length = if options.utf8 { char_len(&text[at..]) } else { 1 };
        characters.push(text[at..at + length].to_vec());
        at += length;
    }
    characters
}
