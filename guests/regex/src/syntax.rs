//! From the text of a pattern to its tree.

use crate::text::{Unit, char_len, unit};
use crate::tree::{Node, Place, Set};
use crate::{Options, Syntax};
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, HirKind};

/// Groups nested deeper than this are refused: what follows recurses as deep.
const DEEPEST: usize = 200;

/// The most an interval may repeat, as in GNU's matcher.
const MOST: u32 = 32767;

const UNMATCHED_BRACKET: &str = "Unmatched [, [^, [:, [., or [=";
const TOO_BIG: &str = "Regular expression too big";

/// What a pattern says.
pub struct Parsed {
    /// Its tree.
    pub tree: Node,
    /// The number of its last group.
    pub groups: u32,
    /// What GNU's grep warns of.
    pub warnings: Vec<String>,
}

/// Reads a pattern whose groups are numbered after `groups` others.
pub fn parse(pattern: &[u8], options: &Options, groups: u32) -> Result<Parsed, String> {
    let mut parser = Parser {
        text: pattern,
        at: 0,
        depth: 0,
        first_group: groups,
        groups,
        complete: Vec::new(),
        warnings: Vec::new(),
        options,
    };
    let tree = match options.syntax {
        Syntax::Fixed => parser.fixed(),
        _ => parser.alternation()?,
    };
    match parser.peek() {
        Some(_) => Err("Unmatched ) or \\)".into()),
        None => Ok(Parsed { tree, groups: parser.groups, warnings: parser.warnings }),
    }
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
    first_group: u32,
    groups: u32,
    /// The groups that have been closed.
    complete: Vec<u32>,
    warnings: Vec<String>,
    options: &'t Options,
}

/// What a piece of a pattern means, before it is known whether it may stand there.
#[derive(Clone, Copy, PartialEq)]
enum Token {
    Open,
    Close,
    Or,
    Repeat(u8),
    Caret,
    Dollar,
    Dot,
    Bracket,
    Escape,
    Plain,
}

/// The members of a bracket expression while they are gathered.
#[derive(Default)]
struct Members {
    chars: Vec<ClassUnicodeRange>,
    bytes: Vec<ClassBytesRange>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn is_basic(&self) -> bool {
        matches!(self.options.syntax, Syntax::Basic | Syntax::Emacs)
    }

    fn is_emacs(&self) -> bool {
        self.options.syntax == Syntax::Emacs
    }

    fn is_awk(&self) -> bool {
        self.options.syntax == Syntax::Awk
    }

    /// Every character for itself.
    fn fixed(&mut self) -> Node {
        let mut parts = Vec::new();
        while self.at < self.text.len() {
            parts.push(Node::Unit(self.unit()));
        }
        Node::Sequence(parts)
    }

    /// What stands here, and how many bytes the sign for it has.
    fn token(&self) -> Option<(Token, usize)> {
        let byte = self.peek()?;
        let is_emacs = self.is_emacs();
        let (sign, length) = match (byte, self.text.get(self.at + 1)) {
            (b'+' | b'?', _) if is_emacs => return Some((Token::Repeat(byte), 1)),
            (b'\\', Some(b'+' | b'?' | b'{')) if is_emacs => return Some((Token::Escape, 1)),
            (b'\\', Some(next)) if self.is_basic() && b"(){|+?".contains(next) => (*next, 2),
            (b'(' | b')' | b'{' | b'|' | b'+' | b'?', _) if self.is_basic() => {
                return Some((Token::Plain, 1));
            }
            _ => (byte, 1),
        };
        let token = match sign {
            b'(' => Token::Open,
            b')' => Token::Close,
            b'|' => Token::Or,
            b'*' | b'+' | b'?' | b'{' => Token::Repeat(sign),
            b'^' => Token::Caret,
            b'$' => Token::Dollar,
            b'.' => Token::Dot,
            b'[' => Token::Bracket,
            b'\\' => Token::Escape,
            _ => Token::Plain,
        };
        Some((token, length))
    }

    fn alternation(&mut self) -> Result<Node, String> {
        let mut branches = vec![self.branch()?];
        while let Some((Token::Or, length)) = self.token() {
            self.at += length;
            branches.push(self.branch()?);
        }
        Ok(if branches.len() == 1 { branches.remove(0) } else { Node::Either(branches) })
    }

    fn branch(&mut self) -> Result<Node, String> {
        let mut parts = Vec::new();
        let mut repeatable = false;
        let start = self.at;
        while let Some((token, length)) = self.token() {
            match token {
                Token::Or => break,
                Token::Close if self.depth > 0 => break,
                Token::Close if self.is_basic() || self.is_awk() || self.options.strict => {
                    return Err("Unmatched ) or \\)".into());
                }
                Token::Repeat(sign) => {
                    if let Some((least, most)) = self.repetition(sign, length, repeatable)? {
                        let is_start = matches!(parts.last(), Some(Node::Place(Place::LineStart)));
                        let last = if repeatable || is_start { parts.pop() } else { None };
                        parts.push(repeat(last.unwrap_or(Node::Empty), least, most)?);
                        repeatable = true;
                        continue;
                    }
                }
                _ => {}
            }
            let (part, can_repeat) = self.atom(token, length, self.at == start)?;
            parts.push(part);
            repeatable = can_repeat;
        }
        Ok(match parts.len() {
            0 => Node::Empty,
            1 => parts.remove(0),
            _ => Node::Sequence(parts),
        })
    }

    /// The repetition that stands here; nothing where the sign stands for itself.
    fn repetition(
        &mut self,
        sign: u8,
        length: usize,
        repeatable: bool,
    ) -> Result<Option<(u32, Option<u32>)>, String> {
        if !repeatable && !self.may_stand_alone(sign)? {
            return Ok(None);
        }
        let bounds = match sign {
            b'*' => (0, None),
            b'+' => (1, None),
            b'?' => (0, Some(1)),
            _ => {
                let bounds = self.interval(length)?;
                if bounds.is_some() && !repeatable {
                    self.warnings.push("{...} at start of expression".into());
                }
                return Ok(bounds);
            }
        };
        if !repeatable {
            self.warnings.push(format!("{} at start of expression", char::from(sign)));
        }
        self.at += length;
        Ok(Some(bounds))
    }

    /// Whether a sign of repetition with nothing before it is one: it then repeats nothing.
    fn may_stand_alone(&self, sign: u8) -> Result<bool, String> {
        match self.options.syntax {
            Syntax::Basic if sign == b'{' && self.options.strict => {
                Err("Invalid preceding regular expression".into())
            }
            Syntax::Extended if self.options.strict => Err("Invalid preceding regular expression".into()),
            Syntax::Extended => Ok(true),
            _ => Ok(false),
        }
    }

    /// `{2}`, `{2,}`, `{,3}` or `{2,3}`; a brace that begins none of these stands for itself, or is an error.
    fn interval(&mut self, length: usize) -> Result<Option<(u32, Option<u32>)>, String> {
        let rest = &self.text[self.at + length..];
        let close: &[u8] = if self.is_basic() { b"\\}" } else { b"}" };
        let must_be_one = self.is_basic() || self.options.strict && !self.is_awk();
        let Some(end) = memchr::memmem::find(rest, close) else {
            return if must_be_one { Err(unclosed_interval(rest)) } else { Ok(None) };
        };
        let inside = &rest[..end];
        let is_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
        let (low, high) = match inside.iter().position(|&byte| byte == b',') {
            Some(at) => (&inside[..at], Some(&inside[at + 1..])),
            None => (inside, None),
        };
        let is_empty = low.is_empty() && (high.is_none() || self.is_awk() && high == Some(b""));
        if is_empty || !is_digits(low) || !is_digits(high.unwrap_or_default()) {
            return if must_be_one { Err("Invalid content of \\{\\}".into()) } else { Ok(None) };
        }
        let least = if low.is_empty() { 0 } else { number(low)? };
        let most = match high {
            None => Some(least),
            Some(b"") => None,
            Some(high) => Some(number(high)?),
        };
        if most.is_some_and(|most| most < least) {
            return Err("Invalid content of \\{\\}".into());
        }
        if least > MOST || most.is_some_and(|most| most > MOST) {
            return Err(TOO_BIG.into());
        }
        self.at += length + end + close.len();
        Ok(Some((least, most)))
    }

    /// What stands here, and whether it can be repeated.
    fn atom(&mut self, token: Token, length: usize, is_first: bool) -> Result<(Node, bool), String> {
        match token {
            Token::Open => return self.group(length).map(|group| (group, true)),
            Token::Bracket => return self.bracket().map(|set| (set, true)),
            Token::Escape => return self.escape(),
            Token::Caret if !self.is_basic() || is_first => {
                self.at += 1;
                return Ok((Node::Place(Place::LineStart), false));
            }
            Token::Dollar if !self.is_basic() || self.ends_branch(self.at + 1) => {
                self.at += 1;
                return Ok((Node::Place(Place::LineEnd), !self.is_basic()));
            }
            Token::Dot => {
                self.at += 1;
                return Ok((Node::Set(Members::default().into_set(true, self.options)), true));
            }
            // A sign that stands for itself, without what made it one.
            Token::Repeat(_) => self.at += length - 1,
            _ => {}
        }
        Ok((Node::Unit(self.unit()), true))
    }

    /// Whether a basic pattern, or a branch or group in it, ends at a place.
    fn ends_branch(&self, at: usize) -> bool {
        let rest = &self.text[at..];
        rest.is_empty() || rest.starts_with(b"\\|") || rest.starts_with(b"\\)")
    }

    fn group(&mut self, length: usize) -> Result<Node, String> {
        self.at += length;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(TOO_BIG.into());
        }
        self.groups += 1;
        let index = self.groups;
        let inside = self.alternation()?;
        let Some((Token::Close, length)) = self.token() else {
            return Err("Unmatched ( or \\(".into());
        };
        self.at += length;
        self.depth -= 1;
        self.complete.push(index);
        Ok(Node::Group(Box::new(inside), index))
    }

    /// Takes the next character as it is.
    fn unit(&mut self) -> Unit {
        let (unit, length) = unit(&self.text[self.at..], self.options.bytes).unwrap_or((Unit::Char('\\'), 0));
        self.at += length;
        unit
    }

    /// A backslash and what it makes of the next character.
    fn escape(&mut self) -> Result<(Node, bool), String> {
        let Some(&byte) = self.text.get(self.at + 1) else {
            return Err("Trailing backslash".into());
        };
        let place = match byte {
            b'y' if self.is_awk() => Place::WordEdge,
            b'b' if !self.is_awk() => Place::WordEdge,
            b'B' => Place::NoWordEdge,
            b'<' => Place::WordStart,
            b'>' => Place::WordEnd,
            b'`' => Place::TextStart,
            b'\'' => Place::TextEnd,
            b'w' | b'W' | b's' | b'S' => {
                self.at += 2;
                return Ok((Node::Set(self.named_set(byte)?), true));
            }
            b'1'..=b'9' if !self.is_awk() => {
                self.at += 2;
                let group = self.first_group + u32::from(byte - b'0');
                let is_complete = self.complete.contains(&group);
                return if is_complete {
                    Ok((Node::Again(group), true))
                } else {
                    Err("Invalid back reference".into())
                };
            }
            _ => return Ok((Node::Unit(self.escaped_unit()), true)),
        };
        self.at += 2;
        Ok((Node::Place(place), false))
    }

    /// `\w`, `\s`, and their opposites.
    fn named_set(&self, letter: u8) -> Result<Set, String> {
        let mut members = Members::default();
        let is_word = letter.eq_ignore_ascii_case(&b'w');
        members.add_class(if is_word { "alnum" } else { "space" })?;
        if is_word {
            members.add(Unit::Char('_'), Unit::Char('_'))?;
        }
        Ok(members.into_set(
            letter.is_ascii_uppercase(),
            &Options { ignore_case: false, multi_line: false, ..self.options.clone() },
        ))
    }

    /// The character that a backslash and what follows it stand for.
    fn escaped_unit(&mut self) -> Unit {
        self.at += 1;
        if self.is_awk()
            && let Some((byte, length)) = crate::escape::byte_of(&self.text[self.at..])
        {
            self.at += length;
            return if byte.is_ascii() { Unit::Char(char::from(byte)) } else { Unit::Byte(byte) };
        }
        self.unit()
    }

    fn bracket(&mut self) -> Result<Node, String> {
        self.refuse_bare_class()?;
        self.at += 1;
        let negated = self.peek() == Some(b'^');
        self.at += usize::from(negated);
        let mut members = Members::default();
        let first = self.at;
        if self.peek().is_none() && !self.is_awk() {
            return Err("Invalid regular expression".into());
        }
        loop {
            match self.peek() {
                None => return Err(UNMATCHED_BRACKET.into()),
                Some(b']') if self.at > first => break,
                // Emacs' syntax has no classes: `[[:space:]]` is a set of letters, and a bracket.
                Some(b'[') if self.text.get(self.at + 1) == Some(&b':') && !self.is_emacs() => {
                    let rest = &self.text[self.at + 2..];
                    let end = memchr::memmem::find(rest, b":]").ok_or(UNMATCHED_BRACKET)?;
                    let mut name = String::from_utf8_lossy(&rest[..end]).into_owned();
                    if self.options.ignore_case && matches!(&*name, "upper" | "lower") {
                        name = "alpha".into();
                    }
                    members.add_class(&name)?;
                    self.at += end + 4;
                }
                Some(_) => {
                    let low = self.member()?;
                    let is_range = self.peek() == Some(b'-')
                        && self.text.get(self.at + 1).is_some_and(|byte| *byte != b']');
                    let high = if is_range {
                        self.at += 1;
                        self.member()?
                    } else {
                        low
                    };
                    let is_empty = (self.options.loose_brackets || self.is_emacs()) && ends_before(low, high);
                    if !is_empty {
                        members.add(low, high)?;
                    }
                }
            }
        }
        self.at += 1;
        // Emacs' `[^a]` matches line feeds, its `.` does not.
        let multi_line = self.options.multi_line && !self.is_emacs();
        Ok(Node::Set(members.into_set(negated, &Options { multi_line, ..self.options.clone() })))
    }

    /// `[:space:]` without the outer brackets is a mistake that GNU's grep knows.
    fn refuse_bare_class(&self) -> Result<(), String> {
        let rest = &self.text[self.at..];
        let is_grep =
            !self.is_awk() && !self.is_emacs() && !self.options.strict && !self.options.loose_brackets;
        if !is_grep || !rest.starts_with(b"[:") {
            return Ok(());
        }
        match rest.iter().position(|&byte| byte == b']') {
            Some(end) if end > 2 && rest[end - 1] == b':' => {
                Err("character class syntax is [[:space:]], not [:space:]".into())
            }
            _ => Ok(()),
        }
    }

    /// One member of a bracket expression, or one end of a range.
    fn member(&mut self) -> Result<Unit, String> {
        for (open, close) in [(b"[.", b".]"), (b"[=", b"=]")] {
            if self.text[self.at..].starts_with(open) {
                let rest = &self.text[self.at + 2..];
                let end = memchr::memmem::find(rest, close).filter(|end| *end == char_len(rest));
                let end = end.ok_or("Invalid collation character")?;
                self.at += 2;
                let unit = self.unit();
                self.at += end + 2 - char_len(rest);
                return Ok(unit);
            }
        }
        match self.peek() {
            None => Err(UNMATCHED_BRACKET.into()),
            Some(b'\\') if self.is_awk() && self.at + 1 < self.text.len() => Ok(self.escaped_unit()),
            Some(_) => Ok(self.unit()),
        }
    }
}

/// A part, repeated. Signs of repetition one after the other are one, so that a row of them nests nothing.
fn repeat(part: Node, least: u32, most: Option<u32>) -> Result<Node, String> {
    let is_sign = |least: u32, most: Option<u32>| least <= 1 && most.is_none_or(|most| most == 1);
    match part {
        Node::Repeat(inside, inner_least, inner_most)
            if is_sign(least, most) && is_sign(inner_least, inner_most) =>
        {
            let most = inner_most.and(most);
            Ok(Node::Repeat(inside, least * inner_least, most))
        }
        part if depth_of_repeats(&part) > DEEPEST => Err(TOO_BIG.into()),
        part => Ok(Node::Repeat(Box::new(part), least, most)),
    }
}

/// Whether a range ends before it begins.
fn ends_before(low: Unit, high: Unit) -> bool {
    match (low, high) {
        (Unit::Char(low), Unit::Char(high)) => low > high,
        (Unit::Byte(low), Unit::Byte(high)) => low > high,
        _ => false,
    }
}

fn depth_of_repeats(mut part: &Node) -> usize {
    let mut depth = 0;
    while let Node::Repeat(inside, ..) = part {
        part = inside;
        depth += 1;
    }
    depth
}

fn number(digits: &[u8]) -> Result<u32, String> {
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(|| TOO_BIG.into())
}

/// An interval without its end may be wrong before that.
fn unclosed_interval(rest: &[u8]) -> String {
    let is_fine = rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b',');
    if is_fine { "Unmatched \\{" } else { "Invalid content of \\{\\}" }.into()
}

impl Members {
    fn add(&mut self, low: Unit, high: Unit) -> Result<(), String> {
        match (low, high) {
            (Unit::Char(low), Unit::Char(high)) if low <= high => {
                self.chars.push(ClassUnicodeRange::new(low, high));
            }
            (Unit::Byte(low), Unit::Byte(high)) if low <= high => {
                self.bytes.push(ClassBytesRange::new(low, high));
            }
            (Unit::Char(low), Unit::Byte(high)) => {
                self.chars.push(ClassUnicodeRange::new(low, '\u{7f}'.max(low)));
                self.bytes.push(ClassBytesRange::new(0x80, high));
            }
            _ => return Err("Invalid range end".into()),
        }
        Ok(())
    }

    fn add_class(&mut self, name: &str) -> Result<(), String> {
        // What the C library calls so, as far as Unicode's own properties say the same.
        let property = match name {
            "alpha" => r"\p{Alphabetic}",
            "digit" => "[0-9]",
            "alnum" => r"[\p{Alphabetic}0-9]",
            "upper" => r"\p{Uppercase}",
            "lower" => r"\p{Lowercase}",
            "space" => {
                r"[\t\n\x0B\f\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200A}\x{2028}\x{2029}\x{205F}\x{3000}]"
            }
            "blank" => r"[\t \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200A}\x{205F}\x{3000}]",
            "punct" => r"[!-/:-@\[-`{-~\p{P}\p{S}]",
            "cntrl" => r"\p{Cc}",
            "xdigit" => "[0-9A-Fa-f]",
            "graph" => r"[^\p{Cc}\p{Cn}\p{Z}]",
            "print" => r"[^\p{Cc}\p{Cn}\p{Zl}\p{Zp}]",
            _ => return Err("Invalid character class name".into()),
        };
        let parsed = regex_syntax::parse(property).map_err(|error| error.to_string())?;
        if let HirKind::Class(Class::Unicode(class)) = parsed.kind() {
            self.chars.extend(class.ranges());
        }
        Ok(())
    }

    fn into_set(self, negated: bool, options: &Options) -> Set {
        let mut set = Set { chars: ClassUnicode::new(self.chars), bytes: ClassBytes::new(self.bytes) };
        if options.ignore_case {
            set.fold_case(options.bytes);
        }
        if negated {
            set.chars.negate();
            set.bytes.negate();
            if options.multi_line {
                set.remove('\n');
            }
        }
        // A byte beyond ASCII is a character where all are, and otherwise none: nothing but itself matches it.
        let beyond = ClassBytes::new([ClassBytesRange::new(0x80, 0xff)]);
        if options.bytes {
            set.bytes.intersect(&beyond);
            set.chars.intersect(&ClassUnicode::new([ClassUnicodeRange::new('\0', '\x7f')]));
        } else if negated {
            set.bytes = ClassBytes::empty();
        }
        set
    }
}
