//! `test` and `[`: what a file, a text or a number is.

use std::cmp::Ordering;
use toolkit::args::{self, bytes_of};
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Stat};

const HELP: &str = "\
Usage: test EXPRESSION
  or:  [ EXPRESSION ]
Exit with 0 if EXPRESSION is true, with 1 if it is false, with 2 if it is wrong.

  ( EXPRESSION )    ! EXPRESSION    EXPRESSION -a EXPRESSION    EXPRESSION -o EXPRESSION
  -n TEXT, TEXT     TEXT is not empty        -z TEXT  TEXT is empty
  A = B, A == B     the texts are equal      A != B   they are not
  A -eq B           numbers; also -ne -lt -le -gt -ge; -l TEXT is a text's length
  A -ef B           the same file            A -nt B  newer     A -ot B  older
  -e FILE           FILE exists; and is a
  -f file  -d directory  -h -L link  -p pipe  -S socket  -b block device  -c character device
  -s FILE           is not empty             -N       was changed since it was read
  -r -w -x FILE     may be read, written, run
  -u -g -k FILE     has the set-user-ID, set-group-ID, sticky bit
  -O -G FILE        is the user's, the group's own
  -t FD             is a terminal
";

pub fn main(arguments: Arguments) -> i32 {
    answer("test", bytes_of(arguments))
}

/// The one whose last argument is `]`.
pub fn bracket(arguments: Arguments) -> i32 {
    let mut words = bytes_of(arguments);
    if words.len() == 1
        && let Some(code) = args::answer_help("[", HELP, &words)
    {
        return code;
    }
    match words.pop() {
        Some(last) if last == b"]" => answer("[", words),
        _ => {
            complain("[", "missing ']'");
            2
        }
    }
}

fn answer(name: &str, words: Vec<Vec<u8>>) -> i32 {
    let mut test = Test { words, at: 0 };
    if test.words.is_empty() {
        return 1;
    }
    let value = test.posix(test.words.len()).and_then(|value| match test.words.get(test.at) {
        Some(extra) => Err(format!("extra argument {}", quote::word(extra))),
        None => Ok(value),
    });
    match value {
        Ok(value) => i32::from(!value),
        Err(message) => {
            complain(name, message);
            2
        }
    }
}

/// An expression and how far it was read.
struct Test {
    words: Vec<Vec<u8>>,
    at: usize,
}

type Answer = Result<bool, String>;

impl Test {
    fn word(&self, ahead: usize) -> Option<&[u8]> {
        self.words.get(self.at + ahead).map(Vec::as_slice)
    }

    fn is(&self, ahead: usize, text: &str) -> bool {
        self.word(ahead) == Some(text.as_bytes())
    }

    fn beyond<T>(&self) -> Result<T, String> {
        let last = self.words.last().map(Vec::as_slice).unwrap_or_default();
        Err(format!("missing argument after {}", quote::word(last)))
    }

    /// Goes on to a word that must be there.
    fn advance(&mut self) -> Result<(), String> {
        self.at += 1;
        if self.at < self.words.len() { Ok(()) } else { self.beyond() }
    }

    fn take(&mut self) -> Result<Vec<u8>, String> {
        let Some(word) = self.words.get(self.at).cloned() else { return self.beyond() };
        self.at += 1;
        Ok(word)
    }

    /// By the number of words, as POSIX has it.
    fn posix(&mut self, count: usize) -> Answer {
        match count {
            1 => self.one(),
            2 => self.two(),
            3 => self.three(),
            4 if self.is(0, "!") => {
                self.advance()?;
                Ok(!self.three()?)
            }
            4 if self.is(0, "(") && self.is(3, ")") => {
                self.at += 1;
                let value = self.two();
                self.at += 1;
                value
            }
            _ => self.any_of(),
        }
    }

    fn one(&mut self) -> Answer {
        Ok(!self.take()?.is_empty())
    }

    fn two(&mut self) -> Answer {
        if self.is(0, "!") {
            self.at += 1;
            return Ok(!self.one()?);
        }
        if self.is_switch() { self.unary() } else { self.beyond() }
    }

    fn three(&mut self) -> Answer {
        if self.word(1).is_some_and(is_binary) {
            return self.binary(false);
        }
        if self.is(0, "!") {
            self.advance()?;
            return Ok(!self.two()?);
        }
        if self.is(0, "(") && self.is(2, ")") {
            self.at += 1;
            let value = self.one();
            self.at += 1;
            return value;
        }
        match self.word(1) {
            Some(b"-a" | b"-o") => self.any_of(),
            Some(other) => Err(format!("{}: binary operator expected", quote::word(other))),
            None => self.beyond(),
        }
    }

    fn any_of(&mut self) -> Answer {
        let mut value = false;
        loop {
            value |= self.all_of()?;
            if !self.is(0, "-o") {
                return Ok(value);
            }
            self.at += 1;
        }
    }

    fn all_of(&mut self) -> Answer {
        let mut value = true;
        loop {
            value &= self.term()?;
            if !self.is(0, "-a") {
                return Ok(value);
            }
            self.at += 1;
        }
    }

    fn term(&mut self) -> Answer {
        let mut is_negated = false;
        while self.is(0, "!") {
            self.advance()?;
            is_negated = !is_negated;
        }
        let Some(word) = self.word(0) else { return self.beyond() };
        let left = self.words.len() - self.at;
        let value = if word == b"(" {
            self.parenthesis()?
        } else if left >= 4 && word == b"-l" && self.word(2).is_some_and(is_binary) {
            self.binary(true)?
        } else if left >= 3 && self.word(1).is_some_and(is_binary) {
            self.binary(false)?
        } else if self.is_switch() {
            self.unary()?
        } else {
            self.one()?
        };
        Ok(value != is_negated)
    }

    fn parenthesis(&mut self) -> Answer {
        self.advance()?;
        let left = self.words.len() - self.at;
        // What is as short as POSIX speaks of is read as it says.
        let count = (1..left.min(4)).find(|&count| self.is(count, ")")).unwrap_or(left);
        let value = self.posix(count)?;
        match self.word(0) {
            Some(b")") => {
                self.at += 1;
                Ok(value)
            }
            Some(other) => Err(format!("')' expected, found {}", quote::word(other))),
            None => Err("')' expected".into()),
        }
    }

    fn is_switch(&self) -> bool {
        matches!(self.word(0), Some([b'-', _]))
    }

    fn unary(&mut self) -> Answer {
        let switch = self.word(0).map(<[u8]>::to_vec).unwrap_or_default();
        let letter = switch.get(1).copied().unwrap_or(0);
        if !b"erwxNOGfdsScbpLhugktnz".contains(&letter) {
            return Err(format!("{}: unary operator expected", quote::word(&switch)));
        }
        self.advance()?;
        let operand = self.take()?;
        let may = |mode| abi::access(Dir::CWD, &operand, mode).is_ok();
        let is =
            |check: fn(&Stat) -> bool| abi::stat(Dir::CWD, &operand, true).is_ok_and(|stat| check(&stat));
        Ok(match letter {
            b'n' => !operand.is_empty(),
            b'z' => operand.is_empty(),
            b't' => {
                let number = Integer::parse(&operand)?;
                number.small().is_some_and(abi::isatty)
            }
            b'r' => may(4),
            b'w' => may(2),
            b'x' => may(1),
            b'L' | b'h' => abi::stat(Dir::CWD, &operand, false).is_ok_and(|stat| stat.is_symlink()),
            b'f' => is(Stat::is_file),
            b'd' => is(Stat::is_dir),
            b'S' => is(Stat::is_socket),
            b'c' => is(Stat::is_char),
            b'b' => is(Stat::is_block),
            b'p' => is(Stat::is_fifo),
            b's' => is(|stat| stat.size > 0),
            b'u' => is(|stat| stat.mode & 0o4000 != 0),
            b'g' => is(|stat| stat.mode & 0o2000 != 0),
            b'k' => is(|stat| stat.mode & 0o1000 != 0),
            b'N' => is(|stat| stat.mtime > stat.atime),
            b'O' => is(|stat| stat.uid == abi::getuid()),
            b'G' => is(|stat| stat.gid == abi::getgid()),
            _ => is(|_| true),
        })
    }

    /// `left_length`: the left side is `-l TEXT`.
    fn binary(&mut self, left_length: bool) -> Answer {
        if left_length {
            self.at += 1;
        }
        let (left, operator) = (self.take()?, self.take()?);
        // The right side is a length too, if a text follows.
        let right_length = self.is(0, "-l") && self.word(1).is_some() && operator.len() == 3;
        if right_length {
            self.at += 1;
        }
        let right = self.take()?;
        let changed = |path: &[u8]| abi::stat(Dir::CWD, path, true).ok().map(|stat| stat.mtime);
        let number = |text: &[u8], is_length: bool| match is_length {
            true => Ok(Integer::of(text.len())),
            false => Integer::parse(text),
        };
        match operator.as_slice() {
            b"=" | b"==" => return Ok(left == right),
            b"!=" => return Ok(left != right),
            b"-nt" | b"-ot" | b"-ef" if left_length || right_length => {
                let operator = String::from_utf8_lossy(&operator);
                return Err(format!("{operator} does not accept -l"));
            }
            b"-nt" => return Ok(changed(&left) > changed(&right)),
            b"-ot" => return Ok(changed(&left) < changed(&right)),
            b"-ef" => {
                let file =
                    |path: &[u8]| abi::stat(Dir::CWD, path, true).ok().map(|stat| (stat.dev, stat.ino));
                return Ok(file(&left).is_some() && file(&left) == file(&right));
            }
            _ => {}
        }
        let order = number(&left, left_length)?.cmp(&number(&right, right_length)?);
        Ok(match operator.as_slice() {
            b"-eq" => order.is_eq(),
            b"-ne" => order.is_ne(),
            b"-lt" => order.is_lt(),
            b"-le" => order.is_le(),
            b"-gt" => order.is_gt(),
            _ => order.is_ge(),
        })
    }
}

fn is_binary(word: &[u8]) -> bool {
    let known: [&[u8]; 12] =
        [b"=", b"!=", b"==", b"-nt", b"-ot", b"-ef", b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge"];
    known.contains(&word)
}

/// A number of any length.
#[derive(PartialEq, Eq)]
struct Integer {
    is_negative: bool,
    /// Without leading zeros.
    digits: Vec<u8>,
}

impl Integer {
    fn parse(text: &[u8]) -> Result<Integer, String> {
        let bare = text.trim_ascii();
        let digits = bare.strip_prefix(b"-").or(bare.strip_prefix(b"+")).unwrap_or(bare);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(format!("invalid integer {}", quote::word(text)));
        }
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        let digits = digits[zeros..].to_vec();
        Ok(Integer { is_negative: bare.starts_with(b"-") && !digits.is_empty(), digits })
    }

    fn of(number: usize) -> Integer {
        let digits = if number == 0 { Vec::new() } else { number.to_string().into_bytes() };
        Integer { is_negative: false, digits }
    }

    fn small(&self) -> Option<i32> {
        match self.digits.as_slice() {
            [] => Some(0),
            digits if !self.is_negative => std::str::from_utf8(digits).ok()?.parse().ok(),
            _ => None,
        }
    }
}

impl Ord for Integer {
    fn cmp(&self, other: &Integer) -> Ordering {
        let size = |number: &Integer| (number.digits.len(), number.digits.clone());
        match (self.is_negative, other.is_negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => size(self).cmp(&size(other)),
            (true, true) => size(other).cmp(&size(self)),
        }
    }
}

impl PartialOrd for Integer {
    fn partial_cmp(&self, other: &Integer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
