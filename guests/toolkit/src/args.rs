//! The command line of a tool that follows GNU's rules: its options by letter, its operands, and GNU's messages for
//! what is wrong with them.

use super::options::{Found, Grammar};
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

    /// As [`parse`](Tool::parse), for callers with their own message for a wrong option.
    pub fn try_parse(&self, arguments: Vec<Vec<u8>>) -> Result<Parsed, Refusal> {
        let in_order = self.short.starts_with('-');
        let grammar = self.grammar();
        let mut parsed = Parsed { options: Vec::new(), operands: Vec::new() };
        for found in grammar.scan(arguments.into_iter()) {
            match found.map_err(|fault| Refusal::Wrong(fault.to_string()))? {
                Found::Operand(word) if in_order => parsed.options.push((OPERAND, Some(word))),
                Found::Operand(word) => parsed.operands.push(word),
                Found::Letter(letter, argument) => parsed.options.push((letter, argument)),
                Found::Name(at, argument) => match self.long.get(at) {
                    Some((_, letter)) => parsed.options.push((*letter, argument)),
                    None if at == self.long.len() => return Err(Refusal::Help),
                    None => return Err(Refusal::Version),
                },
            }
        }
        Ok(parsed)
    }

    /// The tool's options, then the two that all tools have.
    pub fn grammar(&self) -> Grammar {
        let mut grammar = Grammar::new(self.short);
        for (name, letter) in self.long {
            grammar.name(name, u32::from(*letter));
        }
        grammar.name("help", u32::MAX);
        grammar.name("version", u32::MAX - 1);
        grammar
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
        let (given, option) = (quote::word(given), quote::word(option.as_bytes()));
        let mut message = format!("{what} argument {given} for {option}\nValid arguments are:");
        for choice in choices {
            let words: Vec<String> = choice.split(' ').map(|word| quote::word(word.as_bytes())).collect();
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
