//! Options as GNU's `getopt_long` takes them, and its words for what is wrong with them.

use super::{Arguments, complain_of_usage, quote};
use std::ffi::OsString;

/// A tool's command line.
pub struct Tool {
    pub name: &'static str,
    /// As for `getopt`: a letter, `:` after one that takes an argument, `::` after one that may. A leading `+`
    /// ends the options at the first operand; a leading `-` makes each operand the argument of [`OPERAND`], for
    /// tools to which the order matters.
    pub short: &'static str,
    /// Long names, each with the letter it stands for: `name`, `name=` with an argument, `name[=` with or without.
    pub long: &'static [(&'static str, char)],
    /// What `--help` prints.
    pub help: &'static str,
    /// The exit code after a wrong option.
    pub misuse: i32,
}

/// The option that an operand is to a tool with a leading `-` in its letters.
pub const OPERAND: char = '\u{1}';

/// A command line, taken apart.
pub struct Parsed {
    /// The options in order, by letter.
    pub options: Vec<(char, Option<Vec<u8>>)>,
    pub operands: Vec<Vec<u8>>,
}

/// Why there is no command line to work on.
pub enum Refusal {
    /// What is wrong with it.
    Wrong(String),
    /// It asks for `--help`.
    Help,
    /// It asks for `--version`.
    Version,
}

#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Argument,
    MaybeArgument,
}

/// The arguments as bytes, without the tool's name.
pub fn bytes_of(arguments: Arguments) -> Vec<Vec<u8>> {
    arguments.skip(1).map(OsString::into_encoded_bytes).collect()
}

/// Answers `--help` and `--version` for a tool whose options are not GNU's; with the exit code, if one is asked for.
pub fn answer_help(name: &'static str, help: &'static str, arguments: &[Vec<u8>]) -> Option<i32> {
    let tool = Tool { name, short: "", long: &[], help, misuse: 2 };
    match arguments.first()?.as_slice() {
        b"--help" => Some(tool.answer(Refusal::Help)),
        b"--version" => Some(tool.answer(Refusal::Version)),
        _ => None,
    }
}

impl Tool {
    /// Takes a command line apart. The error is the exit code: what there was to say has been said.
    pub fn parse(&self, arguments: Vec<Vec<u8>>) -> Result<Parsed, i32> {
        self.try_parse(arguments).map_err(|refusal| self.answer(refusal))
    }

    /// Says why there is nothing to be done; answers the exit code.
    pub fn answer(&self, refusal: Refusal) -> i32 {
        match refusal {
            Refusal::Wrong(message) => self.wrong(message),
            Refusal::Help => self.print(self.help),
            Refusal::Version => {
                self.print(&format!("{} (Wardian) {}\n", self.name, env!("CARGO_PKG_VERSION")))
            }
        }
    }

    /// As [`parse`](Tool::parse), for those who have more to say about what is wrong.
    pub fn try_parse(&self, arguments: Vec<Vec<u8>>) -> Result<Parsed, Refusal> {
        let (short, stops_early) = match self.short.strip_prefix('+') {
            Some(rest) => (rest, true),
            None => (self.short, std::env::var_os("POSIXLY_CORRECT").is_some()),
        };
        let in_order = short.starts_with('-');
        let mut parsed = Parsed { options: Vec::new(), operands: Vec::new() };
        let mut rest = arguments.into_iter();
        while let Some(word) = rest.next() {
            if word == b"--" {
                match in_order {
                    true => parsed.options.extend(rest.map(|word| (OPERAND, Some(word)))),
                    false => parsed.operands.extend(rest),
                }
                break;
            } else if let Some(long) = word.strip_prefix(b"--") {
                self.take_long(long, &mut rest, &mut parsed)?;
            } else if word.len() > 1 && word[0] == b'-' {
                self.take_short(short, &word[1..], &mut rest, &mut parsed)?;
            } else if in_order {
                parsed.options.push((OPERAND, Some(word)));
            } else {
                parsed.operands.push(word);
                if stops_early {
                    parsed.operands.extend(rest);
                    break;
                }
            }
        }
        Ok(parsed)
    }

    fn take_short(
        &self,
        short: &str,
        letters: &[u8],
        rest: &mut impl Iterator<Item = Vec<u8>>,
        parsed: &mut Parsed,
    ) -> Result<(), Refusal> {
        for (at, &letter) in letters.iter().enumerate() {
            let letter = char::from(letter);
            let found =
                short.split_once(letter).filter(|_| letter != ':' && letter != '-').map(|(_, after)| after);
            let Some(after) = found else {
                return Err(Refusal::Wrong(format!("invalid option -- '{letter}'")));
            };
            if !after.starts_with(':') {
                parsed.options.push((letter, None));
                continue;
            }
            let attached = letters.get(at + 1..).filter(|text| !text.is_empty()).map(<[u8]>::to_vec);
            let argument = match attached {
                None if !after.starts_with("::") => match rest.next() {
                    None => return Err(Refusal::Wrong(format!("option requires an argument -- '{letter}'"))),
                    next => next,
                },
                attached => attached,
            };
            parsed.options.push((letter, argument));
            break;
        }
        Ok(())
    }

    fn take_long(
        &self,
        word: &[u8],
        rest: &mut impl Iterator<Item = Vec<u8>>,
        parsed: &mut Parsed,
    ) -> Result<(), Refusal> {
        let text = String::from_utf8_lossy(word);
        let given = text.split('=').next().unwrap_or_default();
        let attached = word.iter().position(|&byte| byte == b'=').map(|at| word[at + 1..].to_vec());
        let (name, takes, letter) = self.find_long(given, &text)?;
        let argument = match (takes, attached) {
            (Takes::Nothing, Some(_)) => {
                return Err(Refusal::Wrong(format!("option '--{name}' doesn't allow an argument")));
            }
            (Takes::Argument, None) => match rest.next() {
                None => return Err(Refusal::Wrong(format!("option '--{name}' requires an argument"))),
                next => next,
            },
            (_, attached) => attached,
        };
        match letter {
            None if name == "help" => Err(Refusal::Help),
            None => Err(Refusal::Version),
            Some(letter) => {
                parsed.options.push((letter, argument));
                Ok(())
            }
        }
    }

    /// The option that a long name, or an unambiguous start of one, means; `None` for the two that all tools have.
    fn find_long(&self, given: &str, whole: &str) -> Result<(&'static str, Takes, Option<char>), Refusal> {
        let common = [("help", Takes::Nothing, None), ("version", Takes::Nothing, None)];
        let own = self.long.iter().map(|(spec, letter)| {
            let (name, takes) = match (spec.strip_suffix("[="), spec.strip_suffix('=')) {
                (Some(name), _) => (name, Takes::MaybeArgument),
                (None, Some(name)) => (name, Takes::Argument),
                _ => (*spec, Takes::Nothing),
            };
            (name, takes, Some(*letter))
        });
        let fitting: Vec<_> = own.chain(common).filter(|option| option.0.starts_with(given)).collect();
        if let Some(exact) = fitting.iter().find(|option| option.0 == given) {
            return Ok(*exact);
        }
        match fitting[..] {
            [] => Err(Refusal::Wrong(format!("unrecognized option '--{whole}'"))),
            [first, ref others @ ..] if others.iter().all(|other| other.2 == first.2) => Ok(first),
            _ => {
                let all: String = fitting.iter().map(|option| format!(" '--{}'", option.0)).collect();
                Err(Refusal::Wrong(format!("option '--{whole}' is ambiguous; possibilities:{all}")))
            }
        }
    }

    fn print(&self, text: &str) -> i32 {
        match wardian_abi::write_all(1, text.as_bytes()) {
            Ok(()) => 0,
            Err(error) => {
                super::complain(self.name, format_args!("write error: {error}"));
                1
            }
        }
    }

    /// The choice that a word makes, or the beginning of one if it fits no other choice. Words that follow each other and
    /// mean the same are told together.
    pub fn choose<T: Copy + PartialEq>(
        &self,
        option: &str,
        given: &[u8],
        choices: &[(&str, T)],
    ) -> Result<T, i32> {
        if let Some((_, exact)) = choices.iter().find(|(word, _)| word.as_bytes() == given) {
            return Ok(*exact);
        }
        let mut fitting = choices.iter().filter(|(word, _)| word.as_bytes().starts_with(given));
        let first = fitting.next();
        if let Some((_, value)) = first
            && fitting.all(|(_, other)| other == value)
        {
            return Ok(*value);
        }
        let mut groups: Vec<String> = Vec::new();
        let mut last = None;
        for (word, value) in choices {
            match groups.last_mut().filter(|_| last == Some(*value)) {
                Some(group) => *group += &format!(" {word}"),
                None => groups.push((*word).to_owned()),
            }
            last = Some(*value);
        }
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        Err(self.refuse_choice(if first.is_none() { "invalid" } else { "ambiguous" }, option, given, &groups))
    }

    /// Says that a word is none of those an option takes. Words that mean the same stand together, apart by blanks.
    pub fn wrong_choice(&self, option: &str, given: &[u8], choices: &[&str]) -> i32 {
        self.refuse_choice("invalid", option, given, choices)
    }

    fn refuse_choice(&self, what: &str, option: &str, given: &[u8], choices: &[&str]) -> i32 {
        let mut message =
            format!("{what} argument {} for '{option}'\nValid arguments are:", quote::word(given));
        for choice in choices {
            let words: Vec<String> = choice.split(' ').map(|word| format!("'{word}'")).collect();
            message += &format!("\n  - {}", words.join(", "));
        }
        self.wrong(message)
    }

    /// Says what is wrong with the call; answers the exit code for it.
    pub fn wrong(&self, message: impl std::fmt::Display) -> i32 {
        if self.name == "sed" {
            // It tells all it knows.
            super::complain(self.name, format_args!("{message}\n{}", self.help.trim_end()));
            return self.misuse;
        }
        complain_of_usage(self.name, message);
        self.misuse
    }
}
