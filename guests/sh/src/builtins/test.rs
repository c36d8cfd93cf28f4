//! `test` and `[`.

use super::fail;
use crate::shell::{Exec, Shell};
use wardian_abi as abi;

pub fn bracket(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    match args.split_last() {
        Some((last, rest)) if last == b"]" && !rest.is_empty() => Ok(evaluate(shell, b"[", &rest[1..])),
        _ => Ok(fail(shell, b"[", &[b"missing `]'"], 2)),
    }
}

pub fn test(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    Ok(evaluate(shell, b"test", &args[1..]))
}

fn evaluate(shell: &mut Shell, name: &[u8], args: &[Vec<u8>]) -> i32 {
    let words: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    let mut evaluation = Evaluation { shell, words: &words, at: 0, depth: 0, bracket: name == b"[" };
    match evaluation.whole() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(message) => {
            let shell = evaluation.shell;
            fail(shell, name, &[&message], 2)
        }
    }
}

struct Evaluation<'s, 'w> {
    shell: &'s mut Shell,
    words: &'w [&'w [u8]],
    at: usize,
    depth: usize,
    /// It is `[`, whose last word is a bracket.
    bracket: bool,
}

type Answer = Result<bool, Vec<u8>>;

impl Evaluation<'_, '_> {
    /// POSIX decides by the number of arguments first.
    fn whole(&mut self) -> Answer {
        match *self.words {
            [] => Ok(false),
            [word] => Ok(!word.is_empty()),
            [b"!", word] => Ok(word.is_empty()),
            [operator, operand] => {
                if !is_unary(operator) {
                    return Err([operator, b": unary operator expected"].concat());
                }
                self.unary(operator, operand)
            }
            [left, operator, right] if is_binary(operator) => self.binary(left, operator, right),
            [left, b"-a", right] => Ok(!left.is_empty() && !right.is_empty()),
            [left, b"-o", right] => Ok(!left.is_empty() || !right.is_empty()),
            [b"!", ..] if self.words.len() <= 4 => {
                let words = &self.words[1..];
                let bracket = self.bracket;
                let mut inner = Evaluation { shell: &mut *self.shell, words, at: 0, depth: 0, bracket };
                inner.whole().map(|answer| !answer)
            }
            [b"(", word, b")"] => Ok(!word.is_empty()),
            [_, operator, _] => Err([operator, b": binary operator expected"].concat()),
            [b"(", first, second, b")"] => {
                let words = [first, second];
                let bracket = self.bracket;
                let mut inner =
                    Evaluation { shell: &mut *self.shell, words: &words, at: 0, depth: 0, bracket };
                inner.whole()
            }
            _ => {
                let answer = self.or()?;
                match self.peek() {
                    Some(word) if word.starts_with(b"-") => {
                        return Err([b"syntax error: `", word, b"' unexpected"].concat());
                    }
                    Some(_) => return Err(b"too many arguments".to_vec()),
                    None => {}
                }
                Ok(answer)
            }
        }
    }

    fn peek(&self) -> Option<&[u8]> {
        self.words.get(self.at).copied()
    }

    fn or(&mut self) -> Answer {
        let mut answer = self.and()?;
        while self.peek() == Some(b"-o") {
            self.at += 1;
            answer |= self.and()?;
        }
        Ok(answer)
    }

    fn and(&mut self) -> Answer {
        let mut answer = self.not()?;
        while self.peek() == Some(b"-a") {
            self.at += 1;
            answer &= self.not()?;
        }
        Ok(answer)
    }

    fn not(&mut self) -> Answer {
        self.depth += 1;
        if self.depth > 500 {
            return Err(b"too many arguments".to_vec());
        }
        let answer = match self.peek() {
            Some(b"!") => {
                self.at += 1;
                self.not().map(|answer| !answer)
            }
            _ => self.primary(),
        };
        self.depth -= 1;
        answer
    }

    fn primary(&mut self) -> Answer {
        let rest = &self.words[self.at.min(self.words.len())..];
        match *rest {
            [left, operator, right, ..] if is_binary(operator) => {
                self.at += 3;
                self.binary(left, operator, right)
            }
            [b"(", ..] => {
                self.at += 1;
                let answer = self.or()?;
                if self.peek() != Some(b")") {
                    let last: Option<&[u8]> = self.bracket.then_some(b"]");
                    let found = self.peek().or(last);
                    let found = found.map(|word| [b", found ", word].concat()).unwrap_or_default();
                    return Err([&b"`)' expected"[..], &found].concat());
                }
                self.at += 1;
                Ok(answer)
            }
            [operator, operand, ..] if is_unary(operator) => {
                self.at += 2;
                self.unary(operator, operand)
            }
            [word, ..] => {
                self.at += 1;
                Ok(!word.is_empty())
            }
            [] => Err(b"argument expected".to_vec()),
        }
    }

    fn unary(&mut self, operator: &[u8], operand: &[u8]) -> Answer {
        Ok(self.shell.test_unary(operator[1], operand))
    }

    fn binary(&mut self, left: &[u8], operator: &[u8], right: &[u8]) -> Answer {
        Ok(match operator {
            b"=" | b"==" => left == right,
            b"!=" => left != right,
            b"<" => left < right,
            b">" => left > right,
            b"-nt" | b"-ot" | b"-ef" => compare_files(left, operator, right),
            _ => compare_numbers(integer(left)?, operator, integer(right)?),
        })
    }
}

fn integer(text: &[u8]) -> Result<i64, Vec<u8>> {
    let trimmed = text.trim_ascii();
    let digits = trimmed.strip_prefix(b"+").unwrap_or(trimmed);
    match std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()) {
        Some(number) => Ok(number),
        None => Err([text, b": integer expression expected"].concat()),
    }
}

fn is_unary(operator: &[u8]) -> bool {
    matches!(operator, [b'-', letter] if b"abcdefghknoprstuvwxzGLNORS".contains(letter))
}

fn is_binary(operator: &[u8]) -> bool {
    matches!(
        operator,
        b"=" | b"=="
            | b"!="
            | b"<"
            | b">"
            | b"-eq"
            | b"-ne"
            | b"-lt"
            | b"-le"
            | b"-gt"
            | b"-ge"
            | b"-nt"
            | b"-ot"
            | b"-ef"
    )
}

pub fn compare_numbers(left: i64, operator: &[u8], right: i64) -> bool {
    match operator {
        b"-eq" => left == right,
        b"-ne" => left != right,
        b"-lt" => left < right,
        b"-le" => left <= right,
        b"-gt" => left > right,
        _ => left >= right,
    }
}

pub fn compare_files(left: &[u8], operator: &[u8], right: &[u8]) -> bool {
    let stat = |path: &[u8]| abi::stat(abi::Dir::CWD, path, true);
    match (operator, stat(left), stat(right)) {
        (b"-ef", Ok(left), Ok(right)) => (left.dev, left.ino) == (right.dev, right.ino),
        (b"-nt", Ok(left), Ok(right)) => left.mtime > right.mtime,
        (b"-nt", Ok(_), Err(_)) | (b"-ot", Err(_), Ok(_)) => true,
        (b"-ot", Ok(left), Ok(right)) => left.mtime < right.mtime,
        _ => false,
    }
}

impl Shell {
    /// A unary test, by its letter.
    pub fn test_unary(&mut self, letter: u8, operand: &[u8]) -> bool {
        let stat = || abi::stat(abi::Dir::CWD, operand, true);
        let access = |mode| !operand.is_empty() && abi::access(abi::Dir::CWD, operand, mode).is_ok();
        match letter {
            b'n' => !operand.is_empty(),
            b'z' => operand.is_empty(),
            b'a' | b'e' => !operand.is_empty() && stat().is_ok(),
            b'f' => stat().is_ok_and(|stat| stat.is_file()),
            b'd' => stat().is_ok_and(|stat| stat.is_dir()),
            b's' => stat().is_ok_and(|stat| stat.size > 0),
            b'h' | b'L' => abi::stat(abi::Dir::CWD, operand, false).is_ok_and(|stat| stat.is_symlink()),
            b'p' => stat().is_ok_and(|stat| stat.is_fifo()),
            b'S' => stat().is_ok_and(|stat| stat.is_socket()),
            b'b' => stat().is_ok_and(|stat| stat.is_block()),
            b'c' => stat().is_ok_and(|stat| stat.is_char()),
            b'r' => access(4),
            b'w' => access(2),
            b'x' => access(1),
            b'g' => stat().is_ok_and(|stat| stat.mode & 0o2000 != 0),
            b'u' => stat().is_ok_and(|stat| stat.mode & 0o4000 != 0),
            b'k' => stat().is_ok_and(|stat| stat.mode & 0o1000 != 0),
            b'O' => stat().is_ok_and(|stat| stat.uid == abi::getuid()),
            b'G' => stat().is_ok_and(|stat| stat.gid == abi::getgid()),
            b'N' => stat().is_ok_and(|stat| stat.mtime > stat.atime),
            b't' => super::number(operand).is_some_and(|fd| abi::isatty(fd as abi::Fd)),
            b'o' => self.options.by_name(operand).is_some_and(|on| *on),
            b'v' => self.is_set(operand),
            b'R' => self
                .vars
                .raw(operand)
                .is_some_and(|var| var.attrs.has(crate::vars::Attrs::NAMEREF) && var.text().is_some()),
            _ => false,
        }
    }

    /// `-v name`, where the name may have a subscript.
    fn is_set(&mut self, name: &[u8]) -> bool {
        use crate::vars::Value;
        if !name.is_empty() && name.iter().all(u8::is_ascii_digit) {
            return super::number(name).is_some_and(|at| at == 0 || at as usize <= self.params.len());
        }
        let Some(open) = name.iter().position(|&byte| byte == b'[') else { return self.text(name).is_some() };
        let written = name[open + 1..].strip_suffix(b"]").unwrap_or(b"");
        let (array, subscript) = (&name[..open], written.to_vec());
        let Some(var) = self.var(array) else { return false };
        let assoc = matches!(var.value, Value::Assoc(_));
        drop(var);
        let subscript = match assoc {
            true => self.expand_subscript(&subscript).unwrap_or_default(),
            false => subscript,
        };
        let Some(var) = self.var(array) else { return false };
        let all = matches!(subscript.as_slice(), b"@" | b"*");
        match &var.value {
            // Inside `[[ ]]` the key is expanded already.
            Value::Assoc(map) => map.get(&subscript).is_some() || map.get(written).is_some(),
            Value::Indexed(list) if all => list.len() > 0,
            Value::Scalar(_) if all => true,
            _ => {
                drop(var);
                match self.arith_text(&subscript) {
                    Ok(index) => self.element(array, index).is_ok_and(|element| element.is_some()),
                    Err(_) => false,
                }
            }
        }
    }
}
