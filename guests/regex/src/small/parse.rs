//! Reading the patterns of the small engine, and making programs of them.

use super::{Inst, MAX_DEPTH, MAX_PROGRAM, Manner, Node, Set, Style};
use crate::class::{Class, char_at};

/// The program of a pattern and the number of its groups, the whole match among them; none when it is wrong.
pub fn program(text: &[u8], manner: Manner) -> Option<(Vec<Inst>, usize)> {
    let mut parser = Parser { text, at: 0, groups: 0, manner, depth: 0 };
    let node = parser.alternation()?;
    if parser.at < text.len() {
        return None;
    }
    let mut program = Vec::new();
    emit(&node, &mut program)?;
    program.push(Inst::Match);
    Some((program, parser.groups + 1))
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    groups: usize,
    manner: Manner,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn is_basic(&self) -> bool {
        self.manner.style == Style::Basic
    }

    /// The operator that stands here, and its length: what needs a backslash in a basic pattern has none in others.
    fn operator(&self) -> Option<(u8, usize)> {
        match (self.peek()?, self.text.get(self.at + 1)) {
            (b'*', _) => Some((b'*', 1)),
            (b'\\', Some(byte @ (b'(' | b')' | b'{' | b'}' | b'|' | b'+' | b'?'))) if self.is_basic() => {
                Some((*byte, 2))
            }
            (byte @ (b'(' | b')' | b'{' | b'}' | b'|' | b'+' | b'?'), _) if !self.is_basic() => {
                Some((byte, 1))
            }
            _ => None,
        }
    }

    fn takes(&mut self, operator: u8) -> bool {
        match self.operator() {
            Some((found, length)) if found == operator => {
                self.at += length;
                true
            }
            _ => false,
        }
    }

    fn alternation(&mut self) -> Option<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut branches = vec![self.concatenation()?];
        while self.takes(b'|') {
            branches.push(self.concatenation()?);
        }
        self.depth -= 1;
        if branches.len() == 1 { branches.pop() } else { Some(Node::Alternate(branches)) }
    }

    fn concatenation(&mut self) -> Option<Node> {
        let mut parts = Vec::new();
        while self.peek().is_some() {
            let operator = self.operator().map(|(byte, _)| byte);
            if operator == Some(b'|') || operator == Some(b')') && (self.depth > 1 || self.is_basic()) {
                break;
            }
            let is_start = |part: &Node| matches!(part, Node::Inst(Inst::Start));
            let first = parts.is_empty() || self.is_basic() && parts.len() == 1 && is_start(&parts[0]);
            let atom = self.atom(first, parts.is_empty())?;
            let repeated = matches!(self.operator(), Some((b'*' | b'+' | b'?' | b'{', _)));
            if repeated && is_start(&atom) {
                if self.is_basic() {
                    parts.push(atom);
                    continue;
                }
                return None;
            }
            parts.push(self.repetition(atom)?);
        }
        Some(if parts.is_empty() { Node::Empty } else { Node::Concat(parts) })
    }

    /// `first` where there is nothing yet to repeat, `start` where there is nothing at all.
    fn atom(&mut self, first: bool, start: bool) -> Option<Node> {
        match self.operator() {
            Some((b'(', length)) => {
                self.at += length;
                self.groups += 1;
                let group = self.groups;
                let inner = self.alternation()?;
                return self.takes(b')').then(|| Node::Group(group, Box::new(inner)));
            }
            Some((b'*', _)) if first && self.is_basic() => return Some(Node::Inst(self.char())),
            Some((b'*' | b'+' | b'?' | b'{', _)) if first => return None,
            Some((_, 2)) => return None,
            _ => {}
        }
        let inst = match self.peek()? {
            b'.' => Inst::Any,
            b'^' if start || !self.is_basic() => Inst::Start,
            b'$' if !self.is_basic() || self.ends_after_this() => Inst::End,
            b'[' => return Some(Node::Inst(Inst::Set(Box::new(self.set()?)))),
            b'\\' => return self.escape(),
            _ => return Some(Node::Inst(self.char())),
        };
        self.at += 1;
        Some(Node::Inst(inst))
    }

    /// Whether the pattern, or a part of it, ends after the next byte.
    fn ends_after_this(&self) -> bool {
        let rest = &self.text[self.at + 1..];
        rest.is_empty() || rest.starts_with(b"\\)") || rest.starts_with(b"\\|")
    }

    fn char(&mut self) -> Inst {
        let (c, len) = char_at(self.text, self.at, self.manner.utf8);
        self.at += len;
        Inst::Char(c)
    }

    fn escape(&mut self) -> Option<Node> {
        self.at += 1;
        let byte = self.peek()?;
        if let Some(class) = self.class_escape(byte) {
            self.at += 1;
            let set = Set { classes: vec![class], ..Set::default() };
            return Some(Node::Inst(Inst::Set(Box::new(set))));
        }
        let inst = match byte {
            b'<' | b'>' | b'b' | b'B' if self.manner.style != Style::Sql || byte == b'b' => Inst::Word(byte),
            b'1'..=b'9' if usize::from(byte - b'0') > self.groups => return None,
            b'1'..=b'9' => Inst::Back(usize::from(byte - b'0')),
            _ => return self.char_escape().map(|c| Node::Inst(Inst::Char(c))),
        };
        self.at += 1;
        Some(Node::Inst(inst))
    }

    /// The class that a letter after a backslash stands for, and whether its members are meant.
    fn class_escape(&self, byte: u8) -> Option<(Class, bool)> {
        let class = match byte.to_ascii_lowercase() {
            b'w' => Class::Word,
            b's' => Class::Space,
            b'd' if self.manner.style == Style::Sql => Class::Digit,
            _ => return None,
        };
        Some((class, byte.is_ascii_lowercase()))
    }

    /// The character that what follows a backslash stands for.
    fn char_escape(&mut self) -> Option<u32> {
        let byte = self.peek()?;
        let style = self.manner.style;
        let plain = match byte {
            b'n' if style != Style::Shell => Some(b'\n'),
            b't' if style != Style::Shell => Some(b'\t'),
            b'a' if style == Style::Sql => Some(7),
            b'f' if style == Style::Sql => Some(12),
            b'r' if style == Style::Sql => Some(b'\r'),
            b'v' if style == Style::Sql => Some(11),
            _ => None,
        };
        if let Some(plain) = plain {
            self.at += 1;
            return Some(u32::from(plain));
        }
        let digits = match byte {
            b'x' if style == Style::Sql => 2,
            b'u' if style == Style::Sql => 4,
            _ => {
                let (c, length) = char_at(self.text, self.at, self.manner.utf8);
                self.at += length;
                return Some(c);
            }
        };
        let digits = self.text.get(self.at + 1..self.at + 1 + digits)?;
        self.at += 1 + digits.len();
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    fn repetition(&mut self, atom: Node) -> Option<Node> {
        let mut node = atom;
        loop {
            let (low, high) = match self.operator() {
                Some((b'*', _)) => (0, None),
                Some((b'+', _)) => (1, None),
                Some((b'?', _)) => (0, Some(1)),
                Some((b'{', length)) => {
                    self.at += length;
                    node = self.interval(node)?;
                    continue;
                }
                _ => return Some(node),
            };
            self.at += self.operator().map_or(0, |(_, length)| length);
            node = Node::Repeat(Box::new(node), low, high);
        }
    }

    /// What stands after the opening brace: `2`, `2,`, `,3` or `2,3`, and the closing one.
    fn interval(&mut self, node: Node) -> Option<Node> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit() || byte == b',') {
            return None;
        }
        let low = self.count().unwrap_or(0);
        let mut high = Some(low);
        if self.peek() == Some(b',') {
            self.at += 1;
            high = self.count();
        }
        if !self.takes(b'}') || high.is_some_and(|high| high < low) || low > 32767 {
            return None;
        }
        Some(Node::Repeat(Box::new(node), low, high))
    }

    fn count(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        std::str::from_utf8(&self.text[start..self.at]).ok()?.parse().ok()
    }

    fn set(&mut self) -> Option<Set> {
        let mut set = Set::default();
        self.at += 1;
        if self.peek() == Some(b'^') {
            set.negated = true;
            self.at += 1;
        }
        let mut first = true;
        loop {
            let byte = self.peek()?;
            if byte == b']' && !first {
                self.at += 1;
                return Some(set);
            }
            first = false;
            if byte == b'[' && self.text.get(self.at + 1) == Some(&b':') {
                let rest = &self.text[self.at + 2..];
                let end = find(rest, b":]")?;
                set.classes.push((Class::named(&rest[..end])?, true));
                self.at += end + 4;
                continue;
            }
            if byte == b'\\' && self.manner.style == Style::Sql {
                let class = self.text.get(self.at + 1).and_then(|byte| self.class_escape(*byte));
                if let Some(class) = class {
                    set.classes.push(class);
                    self.at += 2;
                    continue;
                }
            }
            let low = self.set_char()?;
            let range =
                self.peek() == Some(b'-') && self.text.get(self.at + 1).is_some_and(|byte| *byte != b']');
            if range {
                self.at += 1;
                let high = self.set_char().filter(|high| *high >= low)?;
                set.ranges.push((low, high));
            } else {
                set.ranges.push((low, low));
            }
        }
    }

    fn set_char(&mut self) -> Option<u32> {
        for (open, close) in [(b"[.", b".]"), (b"[=", b"=]")] {
            if self.text[self.at..].starts_with(open) {
                let rest = &self.text[self.at + 2..];
                let end = find(rest, close).filter(|end| *end > 0)?;
                self.at += end + 4;
                return Some(char_at(rest, 0, self.manner.utf8).0);
            }
        }
        if self.peek() == Some(b'\\') && self.at + 1 < self.text.len() {
            let next = self.text[self.at + 1];
            match self.manner.style {
                // A quoted character of the shell's word arrives with a backslash.
                Style::Shell => self.at += 1,
                Style::Sql => {
                    self.at += 1;
                    return self.char_escape();
                }
                Style::Basic | Style::Extended if matches!(next, b'n' | b't') => {
                    self.at += 1;
                    return self.char_escape();
                }
                Style::Basic | Style::Extended => {}
            }
        }
        self.peek()?;
        let (c, len) = char_at(self.text, self.at, self.manner.utf8);
        self.at += len;
        Some(c)
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

fn emit(node: &Node, program: &mut Vec<Inst>) -> Option<()> {
    if program.len() > MAX_PROGRAM {
        return None;
    }
    match node {
        Node::Empty => {}
        Node::Inst(inst) => program.push(inst.clone()),
        Node::Group(group, inner) => {
            program.push(Inst::Save(group * 2));
            emit(inner, program)?;
            program.push(Inst::Save(group * 2 + 1));
        }
        Node::Concat(parts) => {
            for part in parts {
                emit(part, program)?;
            }
        }
        Node::Alternate(branches) => {
            let mut jumps = Vec::new();
            for (at, branch) in branches.iter().enumerate() {
                let last = at + 1 == branches.len();
                let split = program.len();
                if !last {
                    program.push(Inst::Split(split + 1, 0));
                }
                emit(branch, program)?;
                if !last {
                    jumps.push(program.len());
                    program.push(Inst::Jump(0));
                    let next = program.len();
                    program[split] = Inst::Split(split + 1, next);
                }
            }
            let end = program.len();
            for jump in jumps {
                program[jump] = Inst::Jump(end);
            }
        }
        Node::Repeat(inner, low, high) => {
            for _ in 0..*low {
                emit(inner, program)?;
            }
            match high {
                None => {
                    let split = program.len();
                    program.push(Inst::Split(0, 0));
                    emit(inner, program)?;
                    program.push(Inst::Jump(split));
                    let end = program.len();
                    program[split] = Inst::Split(split + 1, end);
                }
                Some(high) => {
                    let mut splits = Vec::new();
                    for _ in *low..*high {
                        splits.push(program.len());
                        program.push(Inst::Split(0, 0));
                        emit(inner, program)?;
                    }
                    let end = program.len();
                    for split in splits {
                        program[split] = Inst::Split(split + 1, end);
                    }
                }
            }
        }
    }
    (program.len() <= MAX_PROGRAM).then_some(())
}
