//! Shell patterns: `*`, `?`, `[…]` and, where asked for, `@(…)` and its kin.

mod compile;

use compile::Compiler;
use std::collections::BTreeSet;
use wardian_regex::class::Class;

pub use wardian_regex::class::char_at;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    tokens: Vec<Token>,
    utf8: bool,
    fold: bool,
    extended: bool,
    /// The dot that a text begins with is matched by a dot alone.
    dotted: bool,
    /// The texts before and after its star, if it is those and one star.
    around: Option<(Vec<u8>, Vec<u8>)>,
}

#[derive(Debug, Clone)]
enum Token {
    Char(u32),
    Any,
    Star,
    Set(Set),
    /// `?(…)`, `*(…)`, `+(…)`, `@(…)`, `!(…)`
    Group(u8, Vec<Vec<Token>>),
}

#[derive(Debug, Clone, Default)]
struct Set {
    negated: bool,
    ranges: Vec<(u32, u32)>,
    classes: Vec<Class>,
}

/// A set of bytes.
struct Starts([u64; 4]);

impl Starts {
    fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }
}

/// Places in a text, by byte.
type Places = BTreeSet<usize>;

/// How a pattern is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    pub extended: bool,
    pub fold: bool,
    pub utf8: bool,
}

/// The length of the character that ends at `end`.
pub fn char_before(text: &[u8], end: usize, utf8: bool) -> usize {
    if utf8 {
        for len in 1..=4.min(end) {
            if text[end - len] & 0xc0 != 0x80 {
                return if char_at(text, end - len, true).1 == len { len } else { 1 };
            }
        }
    }
    1
}

pub fn char_count(text: &[u8], utf8: bool) -> usize {
    if !utf8 || text.is_ascii() {
        return text.len();
    }
    let (mut count, mut at) = (0, 0);
    while at < text.len() {
        at += char_at(text, at, true).1;
        count += 1;
    }
    count
}

fn fold_char(c: u32) -> u32 {
    char::from_u32(c).and_then(|c| c.to_lowercase().next()).map_or(c, |c| c as u32)
}

impl Pattern {
    pub fn new(text: &[u8], style: Style) -> Pattern {
        // What is no UTF-8 itself is looked for byte by byte.
        let style = Style { utf8: style.utf8 && std::str::from_utf8(text).is_ok(), ..style };
        let mut compiler = Compiler::new(text, style);
        let tokens = compiler.sequence(false);
        let extended = tokens.iter().any(|token| matches!(token, Token::Group(..)));
        let around = if style.fold { None } else { around_star(&tokens) };
        Pattern { tokens, utf8: style.utf8, fold: style.fold, extended, dotted: false, around }
    }

    /// The text a pattern without special characters matches.
    pub fn as_literal(&self) -> Option<Vec<u8>> {
        if self.fold {
            return None;
        }
        let mut text = Vec::new();
        for token in &self.tokens {
            match token {
                Token::Char(c) if self.utf8 && (0x80..0x11_0000).contains(c) => {
                    let character = char::from_u32(*c)?;
                    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Token::Char(c) => text.push(*c as u8),
                _ => return None,
            }
        }
        Some(text)
    }

    /// Whether it is nothing, or nothing but stars.
    pub fn is_stars(&self) -> bool {
        self.tokens.iter().all(|token| matches!(token, Token::Star))
    }

    pub fn matches(&self, text: &[u8]) -> bool {
        if let Some((before, after)) = &self.around {
            return text.len() >= before.len() + after.len()
                && text.starts_with(before)
                && text.ends_with(after);
        }
        if self.simple() {
            let mut found = false;
            self.run(text, &mut |end| found = end == text.len());
            return found;
        }
        if !self.extended {
            return self.matches_long(text);
        }
        self.ends(&self.tokens, text, Places::from([0])).contains(&text.len())
    }

    /// The same for the name of a file that begins with a dot, which only a dot matches that is written.
    pub fn matches_dotted(&self, text: &[u8]) -> bool {
        let dotted = Pattern { dotted: true, ..self.clone() };
        dotted.ends(&self.tokens, text, Places::from([0])).contains(&text.len())
    }

    /// A pattern with too many states for a word: what was tried before the last star need not be tried again.
    fn matches_long(&self, text: &[u8]) -> bool {
        let (mut at, mut state) = (0, 0);
        let mut last_star = None;
        loop {
            match self.tokens.get(state) {
                Some(Token::Star) => {
                    state += 1;
                    last_star = Some((state, at));
                    continue;
                }
                None if at == text.len() => return true,
                Some(token) if at < text.len() => {
                    let (c, len) = char_at(text, at, self.utf8);
                    if self.one(token, c) {
                        (state, at) = (state + 1, at + len);
                        continue;
                    }
                }
                _ => {}
            }
            let Some((after, from)) = last_star.filter(|(_, from)| *from < text.len()) else { return false };
            let from = from + char_at(text, from, self.utf8).1;
            last_star = Some((after, from));
            (state, at) = (after, from);
        }
    }

    /// The end of the longest or shortest match at the start of text.
    pub fn prefix(&self, text: &[u8], longest: bool) -> Option<usize> {
        if let ([token @ (Token::Set(_) | Token::Any)], Some(_)) = (self.tokens.as_slice(), text.first()) {
            let (c, len) = char_at(text, 0, self.utf8);
            return self.one(token, c).then_some(len);
        }
        if let Some((before, after)) = &self.around {
            let rest = text.strip_prefix(before.as_slice())?;
            let end = match (after.is_empty(), longest) {
                (true, true) => rest.len(),
                (true, false) => 0,
                (false, true) => find_last(rest, after)?,
                (false, false) => find(rest, after)?,
            };
            return Some(before.len() + end + after.len());
        }
        if !self.simple() {
            let ends = self.ends(&self.tokens, text, Places::from([0]));
            return if longest { ends.last().copied() } else { ends.first().copied() };
        }
        let mut best: Option<usize> = None;
        let mut take = |end: usize| {
            let better = best.is_none_or(|best| if longest { end > best } else { end < best });
            if better {
                best = Some(end);
            }
        };
        self.run_until(text, &mut |end| {
            take(end);
            !longest
        });
        best
    }

    /// The start of the longest or shortest match at the end of text.
    pub fn suffix(&self, text: &[u8], longest: bool) -> Option<usize> {
        if self.simple() && !self.tokens.iter().any(|token| matches!(token, Token::Star)) {
            return self.fixed_suffix(text);
        }
        let mut starts: Vec<usize> = Vec::new();
        let mut at = text.len();
        loop {
            starts.push(at);
            if at == 0 {
                break;
            }
            at -= char_before(text, at, self.utf8);
        }
        if longest {
            starts.reverse();
        }
        starts.into_iter().find(|&start| self.matches(&text[start..]))
    }

    /// A pattern without `*` matches a fixed number of characters.
    fn fixed_suffix(&self, text: &[u8]) -> Option<usize> {
        let mut at = text.len();
        for _ in &self.tokens {
            if at == 0 {
                return None;
            }
            at -= char_before(text, at, self.utf8);
        }
        self.matches(&text[at..]).then_some(at)
    }

    /// Whether the states of a match fit a word.
    fn simple(&self) -> bool {
        !self.extended && self.tokens.len() < 127
    }

    fn run(&self, text: &[u8], accept: &mut dyn FnMut(usize)) {
        self.run_until(text, &mut |end| {
            accept(end);
            false
        });
    }

    /// Walks text with the set of all states at once, telling each end of a match until `accept` says stop.
    fn run_until(&self, text: &[u8], accept: &mut dyn FnMut(usize) -> bool) {
        let last = self.tokens.len();
        let mut states: u128 = self.through_stars(1);
        let mut at = 0;
        loop {
            if states >> last & 1 == 1 && accept(at) {
                return;
            }
            if at == text.len() || states & !(1 << last) == 0 {
                return;
            }
            let (c, len) = char_at(text, at, self.utf8);
            let mut next: u128 = 0;
            let mut rest = states & !(1 << last);
            while rest != 0 {
                let state = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                match &self.tokens[state] {
                    Token::Star => next |= 1 << state,
                    token if self.one(token, c) => next |= 1 << (state + 1),
                    _ => {}
                }
            }
            states = self.through_stars(next);
            at += len;
        }
    }

    /// A state before a star is also the state after it.
    fn through_stars(&self, mut states: u128) -> u128 {
        let mut rest = states;
        while rest != 0 {
            let state = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if matches!(self.tokens.get(state), Some(Token::Star)) && states >> (state + 1) & 1 == 0 {
                states |= 1 << (state + 1);
                rest |= 1 << (state + 1);
            }
        }
        states
    }

    /// The bytes that a match can begin with, if it has to begin with one of some.
    fn starts(&self) -> Option<Starts> {
        let first = match self.tokens.first()? {
            Token::Star | Token::Any | Token::Group(..) => return None,
            first => first,
        };
        let mut starts = Starts([0; 4]);
        for byte in 0..=255_u8 {
            // Those of several bytes are left to the match itself.
            if byte >= 0x80 || self.one(first, u32::from(byte)) {
                starts.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
            }
        }
        Some(starts)
    }

    fn one(&self, token: &Token, c: u32) -> bool {
        match token {
            Token::Char(wanted) => *wanted == c || (self.fold && fold_char(*wanted) == fold_char(c)),
            Token::Any => true,
            Token::Set(set) => set.contains(c, self.fold),
            Token::Star | Token::Group(..) => false,
        }
    }

    /// Every place where a match of `tokens` that starts at one of `starts` can end. All ways to match are followed at
    /// once, so that neither the text nor the number of ways makes this deep or slow.
    fn ends(&self, tokens: &[Token], text: &[u8], starts: Places) -> Places {
        tokens.iter().fold(starts, |places, token| self.through(token, text, &places))
    }

    fn through(&self, token: &Token, text: &[u8], places: &Places) -> Places {
        // Nothing but a dot goes past the first place.
        let stuck = self.dotted && places.contains(&0) && !matches!(token, Token::Char(_));
        if stuck && !matches!(token, Token::Group(b'?' | b'*' | b'+' | b'@', _)) {
            let others: Places = places.iter().copied().filter(|&at| at > 0).collect();
            let mut reached =
                if others.is_empty() { Places::new() } else { self.through(token, text, &others) };
            if matches!(token, Token::Star) {
                reached.insert(0);
            }
            return reached;
        }
        match token {
            Token::Star => places.first().map(|&first| self.from(first, text).collect()).unwrap_or_default(),
            Token::Group(kind, alternatives) => self.through_group(*kind, alternatives, text, places),
            token => {
                let inside = places.iter().filter(|&&at| at < text.len());
                let matched = inside.filter_map(|&at| {
                    let (c, len) = char_at(text, at, self.utf8);
                    self.one(token, c).then_some(at + len)
                });
                matched.collect()
            }
        }
    }

    fn through_group(&self, kind: u8, alternatives: &[Vec<Token>], text: &[u8], places: &Places) -> Places {
        let any_of = |places: &Places| -> Places {
            alternatives.iter().flat_map(|tokens| self.ends(tokens, text, places.clone())).collect()
        };
        let mut reached = match kind {
            b'!' => {
                let others = |&at: &usize| {
                    let excluded = any_of(&Places::from([at]));
                    self.from(at, text).filter(move |end| !excluded.contains(end))
                };
                return places.iter().flat_map(others).collect();
            }
            b'@' => return any_of(places),
            b'?' => return any_of(places).union(places).copied().collect(),
            b'*' => places.clone(),
            _ => Places::new(),
        };
        let mut fresh = places.clone();
        while !fresh.is_empty() {
            fresh = any_of(&fresh).difference(&reached).copied().collect();
            reached.extend(&fresh);
        }
        reached
    }

    /// `at` and every place after it where a character starts, the end of text included.
    fn from<'a>(&self, at: usize, text: &'a [u8]) -> impl Iterator<Item = usize> + use<'a> {
        let utf8 = self.utf8;
        std::iter::successors(Some(at), move |&at| (at < text.len()).then(|| at + char_at(text, at, utf8).1))
    }

    /// Replaces matches in text; `with` is told the matched part, and appends what takes its place.
    pub fn replace(&self, text: &[u8], all: bool, with: &dyn Fn(&[u8], &mut Vec<u8>)) -> Vec<u8> {
        if let Some(literal) = self.as_literal() {
            let mut to = Vec::new();
            with(&literal, &mut to);
            return replace_literal(text, &literal, all, &to);
        }
        let starts = self.starts();
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while at <= text.len() {
            if let Some(starts) = &starts {
                let skipped = text[at..].iter().position(|byte| starts.contains(*byte));
                let skipped = skipped.unwrap_or(text.len() - at);
                out.extend_from_slice(&text[at..at + skipped]);
                at += skipped;
            }
            if at == text.len() && at > 0 {
                break;
            }
            let found = self.prefix(&text[at..], true);
            if let Some(len) = found {
                with(&text[at..at + len], &mut out);
                at += len;
                if !all {
                    break;
                }
                if len > 0 {
                    continue;
                }
            }
            // After a match of nothing the next character stays, as without a match.
            if at == text.len() {
                break;
            }
            let len = char_at(text, at, self.utf8).1;
            out.extend_from_slice(&text[at..at + len]);
            at += len;
        }
        out.extend_from_slice(&text[at.min(text.len())..]);
        out
    }
}

fn replace_literal(text: &[u8], from: &[u8], all: bool, to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    if !from.is_empty() {
        while let Some(found) = find(&text[at..], from) {
            out.extend_from_slice(&text[at..at + found]);
            out.extend_from_slice(to);
            at += found + from.len();
            if !all {
                break;
            }
        }
    }
    out.extend_from_slice(&text[at..]);
    out
}

/// The texts around the only star, if there is nothing else. They are ASCII, so that bytes are characters.
fn around_star(tokens: &[Token]) -> Option<(Vec<u8>, Vec<u8>)> {
    let star = tokens.iter().position(|token| matches!(token, Token::Star))?;
    let literal = |tokens: &[Token]| -> Option<Vec<u8>> {
        tokens
            .iter()
            .map(|token| if let Token::Char(c @ 0..128) = token { Some(*c as u8) } else { None })
            .collect()
    };
    Some((literal(&tokens[..star])?, literal(&tokens[star + 1..])?))
}

/// Where one byte string last stands in another.
fn find_last(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let (&last, rest) = wanted.split_last()?;
    let mut end = text.len();
    while let Some(at) = text[..end].iter().rposition(|&byte| byte == last) {
        if text[..at].ends_with(rest) {
            return Some(at - rest.len());
        }
        end = at;
    }
    None
}

/// Where one byte string first stands in another.
pub fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let (&first, rest) = wanted.split_first()?;
    let mut at = 0;
    while let Some(offset) = text[at..].iter().position(|&byte| byte == first) {
        at += offset;
        if text[at + 1..].starts_with(rest) {
            return Some(at);
        }
        at += 1;
    }
    None
}

impl Set {
    fn contains(&self, c: u32, fold: bool) -> bool {
        let holds = |c: u32| {
            self.ranges.iter().any(|&(low, high)| low <= c && c <= high)
                || self.classes.iter().any(|class| class.contains(c))
        };
        let other_case = || {
            let upper = char::from_u32(c).and_then(|c| c.to_uppercase().next()).map_or(c, |c| c as u32);
            holds(fold_char(c)) || holds(upper)
        };
        (holds(c) || (fold && other_case())) != self.negated
    }
}
