//! `ifeq`, `ifneq`, `ifdef`, `ifndef`, `else`, `endif`.

use crate::make::{Make, Res};
use crate::text;

/// One condition that is open.
struct Open {
    /// Lines count at this moment.
    active: bool,
    /// A branch was chosen already, or none may be.
    decided: bool,
    seen_else: bool,
}

/// The conditions around a line.
#[derive(Default)]
pub struct Conditions(Vec<Open>);

impl Conditions {
    /// Whether lines count.
    pub fn active(&self) -> bool {
        self.0.iter().all(|open| open.active)
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_empty()
    }

    /// Handles a line that is about conditions; answers whether it is one.
    pub fn take(&mut self, make: &mut Make, line: &[u8]) -> Res<bool> {
        let (word, rest) = split_word(line);
        match word {
            b"ifeq" | b"ifneq" | b"ifdef" | b"ifndef" => {
                let outer = self.active();
                let active = outer && holds(make, word, rest)?;
                self.0.push(Open { active, decided: active || !outer, seen_else: false });
            }
            b"else" => self.otherwise(make, rest)?,
            b"endif" => {
                if !rest.is_empty() {
                    make.warn("extraneous text after 'endif' directive");
                }
                if self.0.pop().is_none() {
                    return Err(make.fatal("extraneous 'endif'"));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn otherwise(&mut self, make: &mut Make, rest: &[u8]) -> Res<()> {
        let outer = self.0.iter().rev().skip(1).all(|open| open.active);
        let Some(open) = self.0.last_mut() else { return Err(make.fatal("extraneous 'else'")) };
        if open.seen_else {
            return Err(make.fatal("only one 'else' per conditional"));
        }
        let (word, condition) = split_word(rest);
        let further = matches!(word, b"ifeq" | b"ifneq" | b"ifdef" | b"ifndef");
        if !further && !rest.is_empty() {
            make.warn("extraneous text after 'else' directive");
        }
        open.seen_else = !further;
        open.active = outer && !open.decided && (!further || holds(make, word, condition)?);
        open.decided |= open.active;
        Ok(())
    }
}

/// The first word of a line and what follows it.
pub fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    let line = text::trim(line);
    let end = line.iter().position(|&byte| text::is_blank(byte)).unwrap_or(line.len());
    // `ifeq(…` is taken as it was meant by nobody: GNU make wants the blank.
    (&line[..end], text::trim_start(&line[end..]))
}

fn holds(make: &mut Make, word: &[u8], rest: &[u8]) -> Res<bool> {
    match word {
        b"ifdef" | b"ifndef" => {
            let expanded = make.expand(rest)?;
            let name = text::trim(&expanded);
            if name.is_empty() || text::words(name).count() > 1 {
                return Err(make.fatal("invalid syntax in conditional"));
            }
            let defined = make.look_up(name).is_some_and(|variable| !variable.value.is_empty());
            Ok(defined == (word == b"ifdef"))
        }
        _ => {
            let Some((left, right)) = operands(rest) else {
                return Err(make.fatal("invalid syntax in conditional"));
            };
            let equal = make.expand(left)? == make.expand(right)?;
            Ok(equal == (word == b"ifeq"))
        }
    }
}

/// `(a,b)`, `"a" "b"` or `'a' 'b'`.
fn operands(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    match rest.first()? {
        b'(' => {
            let inner = &rest[1..];
            let comma = text::find_outside(inner, |byte| byte == b',')?;
            let after = &inner[comma + 1..];
            let mut depth = 0usize;
            let close = after.iter().position(|&byte| {
                match byte {
                    b'(' => depth += 1,
                    b')' if depth == 0 => return true,
                    b')' => depth -= 1,
                    _ => {}
                }
                false
            })?;
            Some((text::trim_end(&inner[..comma]), text::trim_start(&after[..close])))
        }
        quote @ (b'"' | b'\'') => {
            let inner = &rest[1..];
            let end = inner.iter().position(|byte| byte == quote)?;
            let after = text::trim_start(&inner[end + 1..]);
            let quote = after.first().filter(|byte| b"\"'".contains(byte))?;
            let close = after[1..].iter().position(|byte| byte == quote)?;
            Some((&inner[..end], &after[1..=close]))
        }
        _ => None,
    }
}
