//! History expansion: `!!`, `!n`, `!string`, word designators, modifiers, `^old^new^`.

use crate::history::Quote;
use crate::shell::Shell;

/// A line after expansion.
pub struct Expanded {
    pub text: Vec<u8>,
    /// `:p`: it is shown and remembered, not run.
    pub print_only: bool,
}

/// An error, in bash's words.
type Failed = Vec<u8>;

/// One expansion in progress.
struct Expansion<'a> {
    shell: &'a Shell,
    line: &'a [u8],
    at: usize,
    out: Vec<u8>,
    print_only: bool,
    /// The last `s/old/new/`, for `&`.
    last: Option<(Vec<u8>, Vec<u8>)>,
    /// The last `?string?` and the word it was found in, for `%`.
    found: Option<Vec<u8>>,
}

impl Shell {
    /// Expands a line typed after `before`; nothing where there is nothing to expand.
    pub fn expand_history(&self, before: &[u8], line: &[u8]) -> Result<Option<Expanded>, Failed> {
        let [event, quick, comment] = self.history_chars();
        if !line.contains(&event) && line.first() != Some(&quick) {
            return Ok(None);
        }
        let mut quote = Quote::default();
        quote.scan(before);
        let mut expansion = Expansion {
            shell: self,
            line,
            at: 0,
            out: Vec::new(),
            print_only: false,
            last: self.last_substitution.borrow().clone(),
            found: None,
        };
        let changed = if line.first() == Some(&quick) && !quote.is_open() {
            expansion.quick_substitution()?;
            true
        } else {
            expansion.whole_line(event, comment, quote)?
        };
        *self.last_substitution.borrow_mut() = expansion.last.clone();
        Ok(changed.then_some(Expanded { text: expansion.out, print_only: expansion.print_only }))
    }

    /// `histchars`: what begins an expansion, a quick substitution, and a comment.
    fn history_chars(&self) -> [u8; 3] {
        let text = self.text(b"histchars").map(|text| text.to_vec()).unwrap_or_default();
        let char = |at: usize, usual: u8| text.get(at).copied().unwrap_or(usual);
        [char(0, b'!'), char(1, b'^'), char(2, b'#')]
    }
}

impl Expansion<'_> {
    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn whole_line(&mut self, event: u8, comment: u8, quote: Quote) -> Result<bool, Failed> {
        let (mut changed, mut single, mut double) =
            (false, quote.is_single(), quote.is_open() && !quote.is_single());
        // Inside `$'…'`, where a backslash hides the quote that would end it.
        let mut escapes = false;
        while let Some(byte) = self.peek() {
            let next = self.line.get(self.at + 1).copied();
            match byte {
                b'\\' if !single || escapes => {
                    self.out.push(byte);
                    self.out.extend(next);
                    self.at += 2;
                    continue;
                }
                b'\'' if !double => {
                    single = !single;
                    escapes = single && self.at > 0 && self.line[self.at - 1] == b'$';
                }
                b'"' if !single => double = !double,
                byte if byte == comment && !single && !double && self.starts_word() => {
                    self.out.extend_from_slice(&self.line[self.at..]);
                    self.at = self.line.len();
                    continue;
                }
                byte if byte == event && !single && self.is_event(next, double) => {
                    self.expand(double)?;
                    changed = true;
                    continue;
                }
                _ => {}
            }
            self.out.push(byte);
            self.at += 1;
        }
        Ok(changed)
    }

    fn starts_word(&self) -> bool {
        self.at == 0 || self.line[self.at - 1].is_ascii_whitespace()
    }

    /// Whether the `!` here begins an expansion: not before a blank, and not as part of something of the shell's.
    fn is_event(&self, next: Option<u8>, double: bool) -> bool {
        let before = self.at.checked_sub(1).map(|at| self.line[at]);
        let shells_own = match before {
            Some(b'$') => true,
            Some(b'{') => self.at >= 2 && self.line[self.at - 2] == b'$',
            Some(b'[') => true,
            _ => false,
        };
        let inert = match next {
            None | Some(b' ' | b'\t' | b'\n' | b'\r' | b'=') => true,
            Some(b'(') => self.shell.shopt.get("extglob"),
            Some(b'"') => double,
            _ => false,
        };
        !shells_own && !inert
    }

    /// `^old^new^`
    fn quick_substitution(&mut self) -> Result<(), Failed> {
        let line = self.line;
        let mark = line[0];
        self.at = 1;
        let old = self.until(mark);
        let new = self.until(mark);
        let index = self.shell.history.len().checked_sub(1);
        let event = index.and_then(|index| self.shell.history.text(index)).unwrap_or_default().to_vec();
        let text = self.substitute(&event, old, new, false, line)?;
        let text = self.modify(text)?;
        self.out.extend(text);
        let rest = self.line[self.at..].to_vec();
        self.out.extend(rest);
        Ok(())
    }

    /// Text up to an unquoted delimiter, which is passed.
    fn until(&mut self, delimiter: u8) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'\\' && self.peek() == Some(delimiter) {
                text.push(delimiter);
                self.at += 1;
            } else if byte == delimiter {
                break;
            } else {
                text.push(byte);
            }
        }
        text
    }

    /// The expansion that begins here.
    fn expand(&mut self, double: bool) -> Result<(), Failed> {
        let start = self.at;
        self.at += 1;
        let event =
            self.event(double).ok_or_else(|| [&self.line[start..self.at], b": event not found"].concat())?;
        let words = self.words(&event, start)?;
        let text = self.modify(words)?;
        self.out.extend(text);
        Ok(())
    }

    /// The event a designator names.
    fn event(&mut self, double: bool) -> Option<Vec<u8>> {
        let history = &self.shell.history;
        let nth_last = |n: usize| history.len().checked_sub(n).and_then(|index| history.text(index));
        let event = match self.peek()? {
            byte if byte == self.line[self.at - 1] => {
                self.at += 1;
                nth_last(1)?.to_vec()
            }
            b'#' => {
                self.at += 1;
                self.out.clone()
            }
            // A word designator without an event means the last one.
            b':' | b'^' | b'$' | b'*' => nth_last(1)?.to_vec(),
            b'-' if self.line.get(self.at + 1).is_some_and(u8::is_ascii_digit) => {
                self.at += 1;
                let n = self.number()?;
                nth_last(n.max(1))?.to_vec()
            }
            b'0'..=b'9' => {
                let n = self.number()?;
                history.text(history.index(n as i64)?)?.to_vec()
            }
            b'?' => {
                self.at += 1;
                let wanted = self.until_newline_or(b'?');
                let matches = |text: &&[u8]| crate::pattern::find(text, &wanted).is_some();
                let event = history.events().iter().rev().map(|event| event.text.as_slice()).find(matches)?;
                let event = event.to_vec();
                self.found =
                    split(&event).into_iter().find(|word| crate::pattern::find(word, &wanted).is_some());
                event
            }
            _ => {
                let start = self.at;
                while let Some(byte) = self.peek() {
                    if byte.is_ascii_whitespace() || b":;&()|<>".contains(&byte) || (double && byte == b'"') {
                        break;
                    }
                    self.at += 1;
                }
                let wanted = &self.line[start..self.at];
                let event = history.events().iter().rev().find(|event| event.text.starts_with(wanted))?;
                event.text.clone()
            }
        };
        Some(event)
    }

    fn until_newline_or(&mut self, delimiter: u8) -> Vec<u8> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte != delimiter && byte != b'\n') {
            self.at += 1;
        }
        let text = self.line[start..self.at].to_vec();
        if self.peek() == Some(delimiter) {
            self.at += 1;
        }
        text
    }

    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        std::str::from_utf8(&self.line[start..self.at]).ok()?.parse().ok()
    }

    /// The words of an event that a designator picks, if there is one.
    fn words(&mut self, event: &[u8], start: usize) -> Result<Vec<u8>, Failed> {
        let colon = self.peek() == Some(b':');
        let first = self.line.get(self.at + usize::from(colon)).copied();
        let begins = match first {
            Some(b'0'..=b'9' | b'x') if first != Some(b'x') => colon,
            Some(b'^' | b'$' | b'*' | b'-' | b'%') => true,
            _ => false,
        };
        if !begins {
            return Ok(event.to_vec());
        }
        self.at += usize::from(colon);
        let words = split(event);
        let last = words.len().saturating_sub(1);
        let bad = |at: usize, line: &[u8]| [&line[start..at], b": bad word specifier"].concat();
        let from = match first {
            Some(b'%') => {
                self.at += 1;
                return Ok(self.found.clone().unwrap_or_default());
            }
            Some(b'*') => {
                self.at += 1;
                return Ok(words.get(1..).unwrap_or_default().join(&b' '));
            }
            Some(b'-') => 0,
            _ => self.word_number(last),
        };
        let mut to = from;
        match self.peek() {
            Some(b'*') => {
                self.at += 1;
                to = last;
                if from == last + 1 {
                    return Ok(Vec::new());
                }
            }
            Some(b'-') => {
                self.at += 1;
                to = match self.peek() {
                    Some(b'0'..=b'9' | b'^' | b'$') => self.word_number(last),
                    _ => last.saturating_sub(1),
                };
            }
            _ => {}
        }
        if from > to || to > last {
            return Err(bad(self.at, self.line));
        }
        Ok(words[from..=to].join(&b' '))
    }

    fn word_number(&mut self, last: usize) -> usize {
        match self.peek() {
            Some(b'^') => {
                self.at += 1;
                1
            }
            Some(b'$') => {
                self.at += 1;
                last
            }
            _ => self.number().unwrap_or(0),
        }
    }

    /// Applies the modifiers that follow.
    fn modify(&mut self, mut text: Vec<u8>) -> Result<Vec<u8>, Failed> {
        let (mut quoted, mut split_quoted) = (false, false);
        while self.peek() == Some(b':') {
            let begin = self.at;
            self.at += 1;
            let (mut all, mut by_word) = (false, false);
            while let Some(byte @ (b'g' | b'a' | b'G')) = self.peek() {
                all |= byte != b'G';
                by_word |= byte == b'G';
                self.at += 1;
            }
            let Some(modifier) = self.peek() else {
                return Err([&self.line[begin..], b": unrecognized history modifier"].concat());
            };
            self.at += 1;
            text = match modifier {
                b'h' => {
                    text.iter().rposition(|&byte| byte == b'/').map_or(text.clone(), |at| text[..at].to_vec())
                }
                b't' => text
                    .iter()
                    .rposition(|&byte| byte == b'/')
                    .map_or(text.clone(), |at| text[at + 1..].to_vec()),
                b'r' => {
                    text.iter().rposition(|&byte| byte == b'.').map_or(text.clone(), |at| text[..at].to_vec())
                }
                b'e' => {
                    text.iter().rposition(|&byte| byte == b'.').map_or(text.clone(), |at| text[at..].to_vec())
                }
                b'p' => {
                    self.print_only = true;
                    text
                }
                b'q' => {
                    quoted = true;
                    text
                }
                b'x' => {
                    split_quoted = true;
                    text
                }
                b's' | b'&' => {
                    let (old, new) = if modifier == b's' {
                        let delimiter = self.peek().unwrap_or(b'/');
                        self.at += 1;
                        (self.until(delimiter), self.until(delimiter))
                    } else {
                        self.last
                            .clone()
                            .ok_or_else(|| [&self.line[begin..], b": no previous substitution"].concat())?
                    };
                    let what = self.line[begin..self.at.min(self.line.len())].to_vec();
                    if by_word {
                        let words = split(&text);
                        let each = words.iter().map(|word| {
                            self.substitute(word, old.clone(), new.clone(), false, &what)
                                .unwrap_or(word.clone())
                        });
                        let each: Vec<Vec<u8>> = each.collect();
                        each.join(&b' ')
                    } else {
                        self.substitute(&text, old, new, all, &what)?
                    }
                }
                other => return Err([&[other], &b": unrecognized history modifier"[..]].concat()),
            };
        }
        if split_quoted {
            let words: Vec<Vec<u8>> = text.split(u8::is_ascii_whitespace).map(quote_single).collect();
            return Ok(words.join(&b' '));
        }
        Ok(if quoted { quote_single(&text) } else { text })
    }

    /// Replaces `old` by `new`, in which `&` is what was replaced. An empty `old` is the last one.
    fn substitute(
        &mut self,
        text: &[u8],
        old: Vec<u8>,
        new: Vec<u8>,
        all: bool,
        shown: &[u8],
    ) -> Result<Vec<u8>, Failed> {
        let old = if old.is_empty() {
            self.last.as_ref().map(|(old, _)| old.clone()).unwrap_or_default()
        } else {
            old
        };
        let failed = || [shown, b": substitution failed"].concat();
        if old.is_empty() {
            return Err(failed());
        }
        let mut with = Vec::new();
        let mut at = 0;
        while at < new.len() {
            match new[at] {
                b'\\' if new.get(at + 1) == Some(&b'&') => {
                    with.push(b'&');
                    at += 1;
                }
                b'&' => with.extend_from_slice(&old),
                byte => with.push(byte),
            }
            at += 1;
        }
        let (mut out, mut rest, mut any) = (Vec::new(), text, false);
        while let Some(found) = crate::pattern::find(rest, &old) {
            out.extend_from_slice(&rest[..found]);
            out.extend_from_slice(&with);
            rest = &rest[found + old.len()..];
            any = true;
            if !all {
                break;
            }
        }
        out.extend_from_slice(rest);
        self.last = Some((old, new));
        if any { Ok(out) } else { Err(failed()) }
    }
}

fn quote_single(text: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for &byte in text {
        if byte == b'\'' { out.extend_from_slice(b"'\\''") } else { out.push(byte) }
    }
    out.push(b'\'');
    out
}

/// The words of a command, as history counts them: quotations stay whole, operators are words.
pub fn split(text: &[u8]) -> Vec<Vec<u8>> {
    const OPERATORS: [&[u8]; 16] = [
        b"<<<", b"<<-", b"&>>", b"&&", b"||", b";;", b">>", b"<<", b"<&", b">&", b"&>", b">|", b"<>", b"|&",
        b";&", b"$(",
    ];
    let mut words = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if text[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let start = at;
        if b"<>;&|()".contains(&text[at]) {
            let operator = OPERATORS.iter().find(|operator| text[at..].starts_with(operator));
            at += operator.map_or(1, |operator| operator.len());
        } else {
            at = word_end(text, at);
        }
        words.push(text[start..at].to_vec());
    }
    words
}

/// The end of the word at `at`.
fn word_end(text: &[u8], mut at: usize) -> usize {
    let (mut quote, mut depth) = (None, 0);
    while at < text.len() {
        let byte = text[at];
        match quote {
            None if depth == 0 && (byte.is_ascii_whitespace() || b"<>;&|()".contains(&byte)) => break,
            None | Some(b'"') if byte == b'\\' => at += 1,
            None if byte == b'$' && text.get(at + 1) == Some(&b'(') => {
                depth += 1;
                at += 1;
            }
            None if depth > 0 && byte == b'(' => depth += 1,
            None if depth > 0 && byte == b')' => depth -= 1,
            None if b"'\"`".contains(&byte) => quote = Some(byte),
            Some(open) if open == byte => quote = None,
            _ => {}
        }
        at += 1;
    }
    at.min(text.len())
}
