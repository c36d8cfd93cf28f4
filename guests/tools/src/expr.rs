//! `expr`: the value of an expression whose every word is an argument.

use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use toolkit::args::{Refusal, Tool, bytes_of};
use toolkit::{Arguments, complain, quote};
use wardian_regex::{Fit, Options, Regex, Syntax, char_len, locale_is_utf8};

const TOOL: Tool = Tool {
    name: "expr",
    short: "",
    long: &[],
    help: "\
Usage: expr EXPRESSION
Print the value of EXPRESSION, each part of which is an argument. What stands further down binds stronger.

  A | B                 A, or B if A is empty or 0
  A & B                 A, or 0 if one of both is empty or 0
  A < B                 1 if it is so, else 0; also <= = == != >= >
  A + B   A - B         arithmetic, of integers of any size
  A * B   A / B   A % B
  TEXT : REGEX          what \\(...\\) matches at the beginning of TEXT, or how many characters REGEX matches there
  match TEXT REGEX      the same
  substr TEXT POSITION LENGTH
  index TEXT CHARACTERS   where the first of CHARACTERS stands in TEXT
  length TEXT
  + WORD                WORD as it is, even if it is an operator
  ( EXPRESSION )
      --help        display this help and exit
      --version     output version information and exit

The exit code is 0, or 1 if the value is empty or 0, or 2 if the expression is wrong, or 3 if something else is.
",
    misuse: WRONG,
};

/// The exit codes: the value is none, the expression is wrong, and all else.
const NOTHING: i32 = 1;
const WRONG: i32 = 2;
const FAILED: i32 = 3;

/// Parentheses, and words that take values, may be nested so deep: what evaluates them recurses.
const DEEPEST: usize = 2000;

pub fn main(arguments: Arguments) -> i32 {
    let mut words = bytes_of(arguments);
    // The only options there are, and only alone: anything else is an expression.
    if let [word] = words.as_slice()
        && word.len() > 2
        && word.starts_with(b"--")
        && let Err(refusal @ (Refusal::Help | Refusal::Version)) = TOOL.try_parse(words.clone())
    {
        return TOOL.answer(refusal);
    }
    if words.first().is_some_and(|word| word == b"--") {
        words.remove(0);
    }
    if words.is_empty() {
        return TOOL.wrong("missing operand");
    }
    let mut expression = Expression { words: &words, at: 0, depth: 0, utf8: locale_is_utf8() };
    match expression.whole() {
        Ok(value) => print(&value),
        Err(message) => {
            complain("expr", message);
            WRONG
        }
    }
}

fn print(value: &Value) -> i32 {
    let mut line = value.text();
    line.push(b'\n');
    match wardian_abi::write_all(1, &line) {
        Ok(()) if value.is_nothing() => NOTHING,
        Ok(()) => 0,
        Err(error) => {
            complain("expr", format_args!("write error: {error}"));
            FAILED
        }
    }
}

/// What an expression has for a value.
enum Value {
    Number(BigInt),
    Text(Vec<u8>),
}

impl Value {
    fn count(count: usize) -> Value {
        Value::Number(count.into())
    }

    fn truth(truth: bool) -> Value {
        Value::count(usize::from(truth))
    }

    fn text(&self) -> Vec<u8> {
        match self {
            Value::Number(number) => number.to_string().into_bytes(),
            Value::Text(text) => text.clone(),
        }
    }

    /// The integer that it is, or is written as.
    fn number(&self) -> Option<BigInt> {
        match self {
            Value::Number(number) => Some(number.clone()),
            Value::Text(text) => {
                let digits = text.strip_prefix(b"-").unwrap_or(text);
                let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
                if is_number { BigInt::parse_bytes(text, 10) } else { None }
            }
        }
    }

    /// Whether it is empty, or zero however it is written.
    fn is_nothing(&self) -> bool {
        match self {
            Value::Number(number) => number.sign() == Sign::NoSign,
            Value::Text(text) => {
                let digits = text.strip_prefix(b"-").unwrap_or(text);
                text.is_empty() || !digits.is_empty() && digits.iter().all(|&digit| digit == b'0')
            }
        }
    }

    /// Numbers by what they say, all else by bytes.
    fn compare(&self, other: &Value) -> Ordering {
        match (self.number(), other.number()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => self.text().cmp(&other.text()),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Operator {
    Or,
    And,
    /// Whether it holds for less, equal, and greater.
    Compare(bool, bool, bool),
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Match,
}

impl Operator {
    /// The operator that a word is, and how strong it binds.
    fn of(word: &[u8]) -> Option<(Operator, u32)> {
        Some(match word {
            b"|" => (Operator::Or, 0),
            b"&" => (Operator::And, 1),
            b"<" => (Operator::Compare(true, false, false), 2),
            b"<=" => (Operator::Compare(true, true, false), 2),
            b"=" | b"==" => (Operator::Compare(false, true, false), 2),
            b"!=" => (Operator::Compare(true, false, true), 2),
            b">=" => (Operator::Compare(false, true, true), 2),
            b">" => (Operator::Compare(false, false, true), 2),
            b"+" => (Operator::Add, 3),
            b"-" => (Operator::Subtract, 3),
            b"*" => (Operator::Multiply, 4),
            b"/" => (Operator::Divide, 4),
            b"%" => (Operator::Remainder, 4),
            b":" => (Operator::Match, 5),
            _ => return None,
        })
    }
}

/// The error is what there is to say.
type Evaluated = Result<Value, String>;

struct Expression<'w> {
    words: &'w [Vec<u8>],
    at: usize,
    depth: usize,
    utf8: bool,
}

impl Expression<'_> {
    fn whole(&mut self) -> Evaluated {
        let value = self.operation(0, true)?;
        match self.peek() {
            None => Ok(value),
            Some(word) => Err(format!("syntax error: unexpected argument {}", quote::word(word))),
        }
    }

    fn peek(&self) -> Option<&[u8]> {
        self.words.get(self.at).map(Vec::as_slice)
    }

    fn last(&self) -> String {
        quote::word(&self.words[self.at - 1])
    }

    /// The next word, which must be there.
    fn take(&mut self) -> Result<&[u8], String> {
        let Some(word) = self.words.get(self.at) else {
            return Err(format!("syntax error: missing argument after {}", self.last()));
        };
        self.at += 1;
        Ok(word)
    }

    /// Values and the operators between them, as far as these bind strong enough. What is not `wanted` is only read:
    /// its values mean nothing, and nothing can be wrong with them.
    fn operation(&mut self, least: u32, wanted: bool) -> Evaluated {
        let mut left = self.operand(wanted)?;
        while let Some((operator, strength)) = self.peek().and_then(Operator::of)
            && strength >= least
        {
            self.at += 1;
            let right_is_wanted = match operator {
                Operator::Or => wanted && left.is_nothing(),
                Operator::And => wanted && !left.is_nothing(),
                _ => wanted,
            };
            let right = self.operation(strength + 1, right_is_wanted)?;
            if wanted {
                left = self.apply(operator, left, right)?;
            }
        }
        Ok(left)
    }

    fn apply(&self, operator: Operator, left: Value, right: Value) -> Evaluated {
        Ok(match operator {
            Operator::Or if !left.is_nothing() => left,
            Operator::Or if right.is_nothing() => Value::count(0),
            Operator::Or => right,
            Operator::And if left.is_nothing() || right.is_nothing() => Value::count(0),
            Operator::And => left,
            Operator::Compare(less, equal, greater) => Value::truth(match left.compare(&right) {
                Ordering::Less => less,
                Ordering::Equal => equal,
                Ordering::Greater => greater,
            }),
            Operator::Match => self.matched(&left.text(), &right.text())?,
            _ => compute(operator, &left, &right)?,
        })
    }

    /// A value, or what takes some: it nests.
    fn operand(&mut self, wanted: bool) -> Evaluated {
        if self.depth >= DEEPEST {
            return Err("expression is nested too deeply".into());
        }
        self.depth += 1;
        let value = self.nested(wanted);
        self.depth -= 1;
        value
    }

    fn nested(&mut self, wanted: bool) -> Evaluated {
        match self.take()? {
            b"+" => Ok(Value::Text(self.take()?.to_vec())),
            b"length" => {
                let text = self.operand(wanted)?.text();
                Ok(Value::count(self.characters(&text).count()))
            }
            b"match" => {
                let (text, regex) = (self.operand(wanted)?, self.operand(wanted)?);
                if wanted { self.matched(&text.text(), &regex.text()) } else { Ok(text) }
            }
            b"index" => {
                let (text, chars) = (self.operand(wanted)?.text(), self.operand(wanted)?.text());
                let is_one = |char: &[u8]| self.characters(&chars).any(|other| other == char);
                Ok(Value::count(self.characters(&text).position(is_one).map_or(0, |at| at + 1)))
            }
            b"substr" => {
                let text = self.operand(wanted)?.text();
                let (position, length) = (self.operand(wanted)?.number(), self.operand(wanted)?.number());
                Ok(Value::Text(self.part(&text, position, length).unwrap_or_default()))
            }
            b"(" => self.parentheses(wanted),
            b")" => Err("syntax error: unexpected ')'".into()),
            word => Ok(Value::Text(word.to_vec())),
        }
    }

    fn parentheses(&mut self, wanted: bool) -> Evaluated {
        let value = self.operation(0, wanted)?;
        match self.peek() {
            Some(b")") => self.at += 1,
            Some(word) => {
                return Err(format!("syntax error: expecting ')' instead of {}", quote::word(word)));
            }
            None => return Err(format!("syntax error: expecting ')' after {}", self.last())),
        }
        Ok(value)
    }

    /// What a regular expression matches at the beginning of a text: its first group, or else how many characters.
    fn matched(&self, text: &[u8], regex: &[u8]) -> Evaluated {
        let options = Options {
            loose_brackets: true,
            bytes: !self.utf8,
            fit: Fit::Start,
            ..Options::new(Syntax::Basic)
        };
        let regex = Regex::new(regex, &options)?;
        let mut groups = Vec::new();
        let found = regex.captures_at(text, 0, &mut groups);
        if !found && regex.gave_up() {
            return Err("the regular expression takes too many steps".into());
        }
        Ok(match groups.get(1) {
            _ if regex.groups() > 0 && !found => Value::Text(Vec::new()),
            Some(group) if found => {
                let bounds = group.unwrap_or_default();
                Value::Text(text[bounds.0..bounds.1].to_vec())
            }
            _ if !found => Value::count(0),
            _ => {
                let end = groups[0].map_or(0, |bounds| bounds.1);
                Value::count(self.characters(&text[..end]).count())
            }
        })
    }

    /// The characters of a text; a byte that belongs to none is one.
    fn characters<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = &'t [u8]> + use<'t> {
        let (utf8, mut rest) = (self.utf8, text);
        std::iter::from_fn(move || {
            let length = if utf8 { char_len(rest) } else { 1 };
            let (char, after) = rest.split_at_checked(length)?;
            rest = after;
            Some(char)
        })
    }

    /// So many characters of a text, from the one at a position on, which is counted from 1.
    fn part(&self, text: &[u8], position: Option<BigInt>, length: Option<BigInt>) -> Option<Vec<u8>> {
        let (position, length) = (position?, length?);
        if position.sign() != Sign::Plus || length.sign() != Sign::Plus {
            return None;
        }
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        Some(self.characters(text).skip(position - 1).take(length).flatten().copied().collect())
    }
}

fn compute(operator: Operator, left: &Value, right: &Value) -> Evaluated {
    let (Some(left), Some(right)) = (left.number(), right.number()) else {
        return Err("non-integer argument".into());
    };
    Ok(Value::Number(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        _ if right.sign() == Sign::NoSign => return Err("division by zero".into()),
        Operator::Divide => left / right,
        _ => left % right,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(words: Vec<Vec<u8>>) -> Result<Vec<u8>, String> {
        Expression { words: &words, at: 0, depth: 0, utf8: true }.whole().map(|value| value.text())
    }

    #[test]
    fn what_is_nested_too_deeply_is_refused() {
        for word in ["(", "length", "match", "substr"] {
            let refusal = evaluate(vec![word.into(); 1_000_000]);
            assert_eq!(refusal, Err("expression is nested too deeply".into()), "{word}");
        }
        let parentheses =
            |depth| [vec!["(".into(); depth], vec!["1".into()], vec![")".into(); depth]].concat();
        assert_eq!(evaluate(parentheses(DEEPEST - 1)), Ok(b"1".to_vec()));
    }
}
