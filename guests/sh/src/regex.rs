//! POSIX extended regular expressions for `[[ =~ ]]`: a machine that tries all ways at once, so that no pattern
//! takes longer than its length times the text's. The match is the leftmost and longest. Only a pattern that refers
//! back to its groups is tried one way after another, and not forever.

use crate::pattern::{char_at, class_contains};

pub struct Regex {
    program: Vec<Inst>,
    groups: usize,
    fold: bool,
    utf8: bool,
    refers_back: bool,
}

#[derive(Debug, Clone)]
enum Inst {
    Char(u32),
    Any,
    Set(Box<Set>),
    Start,
    End,
    Word(u8),
    /// What a group matched, again.
    Back(usize),
    Save(usize),
    Split(usize, usize),
    Jump(usize),
    Match,
}

#[derive(Debug, Clone, Default)]
struct Set {
    negated: bool,
    ranges: Vec<(u32, u32)>,
    classes: Vec<Vec<u8>>,
}

enum Node {
    Empty,
    Inst(Inst),
    Group(usize, Box<Node>),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    Repeat(Box<Node>, usize, Option<usize>),
}

/// Programs longer than this come from counts too large to be meant.
const MAX_PROGRAM: usize = 50_000;
const MAX_DEPTH: usize = 200;
/// Steps after which a pattern with references is taken not to match.
const MAX_STEPS: usize = 1_000_000;

type Captures = Vec<Option<usize>>;

impl Regex {
    /// Compiles a pattern; none when it is wrong.
    pub fn new(text: &[u8], fold: bool, utf8: bool) -> Option<Regex> {
        let mut parser = Parser { text, at: 0, groups: 0, utf8, depth: 0 };
        let node = parser.alternation()?;
        if parser.at < text.len() {
            return None;
        }
        let mut program = Vec::new();
        emit(&node, &mut program)?;
        program.push(Inst::Match);
        let refers_back = program.iter().any(|inst| matches!(inst, Inst::Back(_)));
        Some(Regex { program, groups: parser.groups + 1, fold, utf8, refers_back })
    }

    /// The first match: the bounds of the whole and of each group.
    pub fn find(&self, text: &[u8]) -> Option<Vec<Option<(usize, usize)>>> {
        let mut start = 0;
        loop {
            if let Some(captures) = self.match_at(text, start) {
                let bound = |group: usize| match (captures[group * 2], captures[group * 2 + 1]) {
                    (Some(from), Some(to)) => Some((from, to)),
                    _ => None,
                };
                return Some((0..self.groups).map(bound).collect());
            }
            if start >= text.len() {
                return None;
            }
            start += char_at(text, start, self.utf8).1;
        }
    }

    fn match_at(&self, text: &[u8], start: usize) -> Option<Captures> {
        if self.refers_back {
            return self.match_by_trial(text, start);
        }
        let mut best: Option<Captures> = None;
        let mut threads: Vec<(usize, Captures)> = Vec::new();
        let mut seen = vec![usize::MAX; self.program.len()];
        let mut captures = vec![None; self.groups * 2];
        captures[0] = Some(start);
        self.follow(&mut threads, &mut seen, 0, text, start, captures);
        let mut at = start;
        loop {
            let mut next = Vec::new();
            let c = (at < text.len()).then(|| char_at(text, at, self.utf8));
            let after = at + c.map_or(1, |(_, len)| len);
            for (pc, captures) in threads {
                match &self.program[pc] {
                    Inst::Match => {
                        if best.as_ref().is_none_or(|best| best[1] < Some(at)) {
                            let mut captures = captures;
                            captures[1] = Some(at);
                            best = Some(captures);
                        }
                    }
                    inst => {
                        if let Some((c, _)) = c
                            && self.one(inst, c)
                        {
                            self.follow(&mut next, &mut seen, pc + 1, text, after, captures);
                        }
                    }
                }
            }
            if next.is_empty() {
                return best;
            }
            threads = next;
            at = after;
        }
    }

    /// Tries one way after another, and keeps the longest match.
    fn match_by_trial(&self, text: &[u8], start: usize) -> Option<Captures> {
        let mut captures = vec![None; self.groups * 2];
        captures[0] = Some(start);
        let mut best: Option<Captures> = None;
        // With each way, the branches it took since it last moved on: none twice, or a loop around nothing never ends.
        let mut ways = vec![(0, start, captures, Vec::new())];
        for _ in 0..MAX_STEPS {
            let Some((pc, at, mut captures, mut branches)) = ways.pop() else { break };
            match &self.program[pc] {
                Inst::Match => {
                    if best.as_ref().is_none_or(|best| best[1] < Some(at)) {
                        captures[1] = Some(at);
                        best = Some(captures);
                    }
                }
                Inst::Jump(to) => ways.push((*to, at, captures, branches)),
                Inst::Split(..) if branches.contains(&pc) => {}
                Inst::Split(first, second) => {
                    branches.push(pc);
                    ways.push((*second, at, captures.clone(), branches.clone()));
                    ways.push((*first, at, captures, branches));
                }
                Inst::Save(slot) => {
                    captures[*slot] = Some(at);
                    ways.push((pc + 1, at, captures, branches));
                }
                inst => {
                    if let Some(after) = self.past(inst, text, at, &captures) {
                        branches.retain(|_| after == at);
                        ways.push((pc + 1, after, captures, branches));
                    }
                }
            }
        }
        best
    }

    /// Where an instruction ends that matches here.
    fn past(&self, inst: &Inst, text: &[u8], at: usize, captures: &Captures) -> Option<usize> {
        let holds = match inst {
            Inst::Start => at == 0,
            Inst::End => at == text.len(),
            Inst::Word(kind) => word_boundary(text, at, *kind),
            Inst::Back(group) => {
                let (from, to) = (captures[group * 2]?, captures[group * 2 + 1]?);
                return text[at..].starts_with(&text[from..to]).then_some(at + to - from);
            }
            inst => {
                let (c, len) = (at < text.len()).then(|| char_at(text, at, self.utf8))?;
                return self.one(inst, c).then_some(at + len);
            }
        };
        holds.then_some(at)
    }

    /// Adds a thread, through the instructions that take no character.
    fn follow(
        &self,
        threads: &mut Vec<(usize, Captures)>,
        seen: &mut [usize],
        pc: usize,
        text: &[u8],
        at: usize,
        captures: Captures,
    ) {
        let mut stack = vec![(pc, captures)];
        while let Some((pc, mut captures)) = stack.pop() {
            if seen[pc] == at {
                continue;
            }
            seen[pc] = at;
            match &self.program[pc] {
                Inst::Jump(to) => stack.push((*to, captures)),
                Inst::Split(first, second) => {
                    stack.push((*second, captures.clone()));
                    stack.push((*first, captures));
                }
                Inst::Save(slot) => {
                    captures[*slot] = Some(at);
                    stack.push((pc + 1, captures));
                }
                Inst::Start if at == 0 => stack.push((pc + 1, captures)),
                Inst::End if at == text.len() => stack.push((pc + 1, captures)),
                Inst::Start | Inst::End => {}
                Inst::Word(kind) => {
                    if word_boundary(text, at, *kind) {
                        stack.push((pc + 1, captures));
                    }
                }
                _ => threads.push((pc, captures)),
            }
        }
    }

    fn one(&self, inst: &Inst, c: u32) -> bool {
        let fold = |c: u32| char::from_u32(c).and_then(|c| c.to_lowercase().next()).map_or(c, |c| c as u32);
        match inst {
            Inst::Char(wanted) => *wanted == c || (self.fold && fold(*wanted) == fold(c)),
            // What is no character matches nothing but itself.
            Inst::Any => c < 0x11_0000,
            Inst::Set(_) if c >= 0x11_0000 => false,
            Inst::Set(set) => {
                let upper = char::from_u32(c).and_then(|c| c.to_uppercase().next()).map_or(c, |c| c as u32);
                (set.holds(c) || (self.fold && (set.holds(fold(c)) || set.holds(upper)))) != set.negated
            }
            _ => false,
        }
    }
}

fn word_boundary(text: &[u8], at: usize, kind: u8) -> bool {
    let is_word = |at: Option<usize>| {
        at.and_then(|at| text.get(at)).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let (before, after) = (is_word(at.checked_sub(1)), is_word(Some(at)));
    match kind {
        b'<' => !before && after,
        b'>' => before && !after,
        b'b' => before != after,
        _ => before == after,
    }
}

impl Set {
    fn holds(&self, c: u32) -> bool {
        self.ranges.iter().any(|&(low, high)| low <= c && c <= high)
            || self.classes.iter().any(|class| class_contains(class, c).unwrap_or(false))
    }
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    groups: usize,
    utf8: bool,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn alternation(&mut self) -> Option<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut branches = vec![self.concatenation()?];
        while self.peek() == Some(b'|') {
            self.at += 1;
            branches.push(self.concatenation()?);
        }
        self.depth -= 1;
        if branches.len() == 1 { branches.pop() } else { Some(Node::Alternate(branches)) }
    }

    fn concatenation(&mut self) -> Option<Node> {
        let mut parts = Vec::new();
        while let Some(byte) = self.peek() {
            if byte == b'|' || (byte == b')' && self.depth > 1) {
                break;
            }
            let atom = self.atom(parts.is_empty())?;
            let repeated = matches!(self.peek(), Some(b'*' | b'+' | b'?' | b'{'));
            if repeated && matches!(atom, Node::Inst(Inst::Start)) {
                return None;
            }
            parts.push(self.repetition(atom)?);
        }
        Some(if parts.is_empty() { Node::Empty } else { Node::Concat(parts) })
    }

    fn atom(&mut self, first: bool) -> Option<Node> {
        let byte = self.peek()?;
        Some(match byte {
            b'(' => {
                self.at += 1;
                self.groups += 1;
                let group = self.groups;
                let inner = self.alternation()?;
                if self.peek() != Some(b')') {
                    return None;
                }
                self.at += 1;
                Node::Group(group, Box::new(inner))
            }
            b'.' => {
                self.at += 1;
                Node::Inst(Inst::Any)
            }
            b'^' => {
                self.at += 1;
                Node::Inst(Inst::Start)
            }
            b'$' => {
                self.at += 1;
                Node::Inst(Inst::End)
            }
            b'[' => Node::Inst(Inst::Set(Box::new(self.set()?))),
            b'*' | b'+' | b'?' | b'{' if first => return None,
            b'\\' => return self.escape(),
            _ => Node::Inst(self.char()),
        })
    }

    fn char(&mut self) -> Inst {
        let (c, len) = char_at(self.text, self.at, self.utf8);
        self.at += len;
        Inst::Char(c)
    }

    fn escape(&mut self) -> Option<Node> {
        self.at += 1;
        let byte = self.peek()?;
        let class = |negated: bool, name: &[u8]| {
            let mut set = Set { negated, classes: vec![name.to_vec()], ..Set::default() };
            if name == b"alnum" {
                set.ranges.push((u32::from(b'_'), u32::from(b'_')));
            }
            Node::Inst(Inst::Set(Box::new(set)))
        };
        let node = match byte {
            b'<' | b'>' | b'b' | b'B' => Node::Inst(Inst::Word(byte)),
            b'1'..=b'9' if usize::from(byte - b'0') > self.groups => return None,
            b'1'..=b'9' => Node::Inst(Inst::Back(usize::from(byte - b'0'))),
            b'w' => class(false, b"alnum"),
            b'W' => class(true, b"alnum"),
            b's' => class(false, b"space"),
            b'S' => class(true, b"space"),
            _ => return Some(Node::Inst(self.char())),
        };
        self.at += 1;
        Some(node)
    }

    fn repetition(&mut self, atom: Node) -> Option<Node> {
        let mut node = atom;
        loop {
            let (low, high) = match self.peek() {
                Some(b'*') => (0, None),
                Some(b'+') => (1, None),
                Some(b'?') => (0, Some(1)),
                Some(b'{') => {
                    self.at += 1;
                    if !self.peek().is_some_and(|byte| byte.is_ascii_digit() || byte == b',') {
                        return None;
                    }
                    let low = self.count().unwrap_or(0);
                    let mut high = Some(low);
                    if self.peek() == Some(b',') {
                        self.at += 1;
                        high = self.count();
                    }
                    if self.peek() != Some(b'}') || high.is_some_and(|high| high < low) || low > 32767 {
                        return None;
                    }
                    (low, high)
                }
                _ => return Some(node),
            };
            self.at += 1;
            node = Node::Repeat(Box::new(node), low, high);
        }
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
                let end = crate::pattern::find(rest, b":]")?;
                class_contains(&rest[..end], 0)?;
                set.classes.push(rest[..end].to_vec());
                self.at += end + 4;
                continue;
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
                let end = crate::pattern::find(rest, close).filter(|end| *end > 0)?;
                self.at += end + 4;
                return Some(char_at(rest, 0, self.utf8).0);
            }
        }
        // A quoted character of the shell's word arrives with a backslash.
        if self.peek() == Some(b'\\') && self.at + 1 < self.text.len() {
            self.at += 1;
        }
        self.peek()?;
        let (c, len) = char_at(self.text, self.at, self.utf8);
        self.at += len;
        Some(c)
    }
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
