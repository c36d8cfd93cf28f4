//! The options of a command.
//!
//! A command lists what it takes in one text: `a|all m|message= U|unified= S|gpg-sign?! NUM`. A name may have a letter before
//! it; `=` takes a value, `?` takes one only if it is attached, `!` is known to git and not supported here. `NUM` stands for
//! options such as `-3`. Every long option without a value can be negated with `no-`.

use crate::fail::{Fail, Res};
use crate::files::text;

pub type Bytes = Vec<u8>;

#[derive(Default, Debug)]
pub struct Parsed {
    /// Options in their order: name, value.
    pub options: Vec<(String, Option<Bytes>)>,
    pub args: Vec<Bytes>,
    /// How many of the arguments stood before `--`.
    pub before_dashes: Option<usize>,
}

impl Parsed {
    /// Whether an option is on: of `--x` and `--no-x` the last counts.
    pub fn has(&self, name: &str) -> bool {
        self.state(name).unwrap_or(false)
    }

    pub fn state(&self, name: &str) -> Option<bool> {
        self.options.iter().rev().find_map(|(option, _)| match option.strip_prefix("no-") {
            _ if option == name => Some(true),
            Some(rest) if rest == name => Some(false),
            _ => None,
        })
    }

    pub fn value(&self, name: &str) -> Option<&[u8]> {
        let found = self
            .options
            .iter()
            .rev()
            .find(|(option, _)| option == name || option.strip_prefix("no-") == Some(name))?;
        if found.0 == name { found.1.as_deref() } else { None }
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(text)
    }

    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.options
            .iter()
            .filter(move |(option, _)| option == name)
            .filter_map(|(_, value)| value.as_deref())
    }

    /// A value that is a number.
    pub fn number(&self, name: &str) -> Res<Option<i64>> {
        match self.text(name) {
            None => Ok(None),
            Some(value) => match value.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(Fail::Fatal(format!("'{value}': not an integer"))),
            },
        }
    }

    /// The arguments before `--` and those after it.
    pub fn sides(&self) -> (&[Bytes], Option<&[Bytes]>) {
        match self.before_dashes {
            Some(at) => (&self.args[..at], Some(&self.args[at..])),
            None => (&self.args, None),
        }
    }
}

struct Known<'a> {
    letter: Option<u8>,
    name: &'a str,
    value: bool,
    attached: bool,
    refused: bool,
}

fn known(list: &str) -> impl Iterator<Item = Known<'_>> {
    list.split_ascii_whitespace().map(|word| {
        let (word, refused) = word.strip_suffix('!').map_or((word, false), |word| (word, true));
        let (word, value) = word.strip_suffix('=').map_or((word, false), |word| (word, true));
        let (word, attached) = word.strip_suffix('?').map_or((word, false), |word| (word, true));
        let (letter, name) = match word.split_once('|') {
            Some((letter, name)) => (letter.bytes().next(), name),
            None if word.len() == 1 => (word.bytes().next(), word),
            None => (None, word),
        };
        Known { letter, name, value, attached, refused }
    })
}

/// A command, for messages.
pub struct Reader<'a> {
    pub command: &'a str,
    pub usage: &'a str,
    pub list: &'a str,
    /// Options end at the first argument.
    pub in_order: bool,
}

impl Reader<'_> {
    pub fn read(&self, arguments: &[Bytes]) -> Res<Parsed> {
        let mut parsed = Parsed::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_slice() {
                b"--" => {
                    parsed.before_dashes = Some(parsed.args.len());
                    parsed.args.extend(rest.cloned());
                    break;
                }
                b"-h" | b"--help" if !known(self.list).any(|one| one.letter == Some(b'h')) => {
                    crate::out::line(format_args!("usage: {}", self.usage));
                    return Err(Fail::Code(129));
                }
                [b'-', b'-', long @ ..] => self.long(long, &mut rest, &mut parsed)?,
                [b'-', letters @ ..] if !letters.is_empty() => {
                    self.letters(letters, &mut rest, &mut parsed)?
                }
                _ => {
                    parsed.args.push(argument.clone());
                    if self.in_order {
                        parsed.args.extend(rest.cloned());
                        break;
                    }
                }
            }
        }
        Ok(parsed)
    }

    pub fn bad(&self, message: impl std::fmt::Display) -> Fail {
        let message = message.to_string();
        let gap = if message.is_empty() { "" } else { "\n" };
        Fail::Usage(format!("{message}{gap}usage: {}\n", self.usage))
    }

    fn refuse(&self, option: &str) -> Fail {
        Fail::Fatal(format!("git {}: option '{option}' is not supported here", self.command))
    }

    fn long(&self, long: &[u8], rest: &mut std::slice::Iter<Bytes>, parsed: &mut Parsed) -> Res<()> {
        let equals = long.iter().position(|&byte| byte == b'=');
        let name = text(&long[..equals.unwrap_or(long.len())]);
        let value = equals.map(|at| long[at + 1..].to_vec());
        let (option, negated) = match self.find(&name) {
            Found::One(option, negated) => (option, negated),
            Found::None => return Err(self.bad(format_args!("error: unknown option `{name}'"))),
            Found::Many(first, second) => {
                let message = format!("error: ambiguous option: {name} (could be --{first} or --{second})");
                return Err(self.bad(message));
            }
        };
        if option.refused {
            return Err(self.refuse(&format!("--{name}")));
        }
        let full = if negated { format!("no-{}", option.name) } else { option.name.to_owned() };
        let value = match value {
            Some(_) if negated || !(option.value || option.attached) => {
                return Err(self.bad(format_args!("error: option `{full}' takes no value")));
            }
            None if option.value && !negated => match rest.next() {
                Some(next) => Some(next.clone()),
                None => return Err(self.bad(format_args!("error: option `{full}' requires a value"))),
            },
            value => value,
        };
        parsed.options.push((full, value));
        Ok(())
    }

    fn find<'a>(&'a self, name: &str) -> Found<'a> {
        if let Some(option) = known(self.list).find(|option| option.name == name && name.len() > 1) {
            return Found::One(option, false);
        }
        if let Some(positive) = name.strip_prefix("no-")
            && let Some(option) = known(self.list).find(|option| option.name == positive)
        {
            return Found::One(option, true);
        }
        let mut fitting = known(self.list)
            .filter(|option| option.name.len() > 1 && option.name.starts_with(name) && option.name != "NUM");
        match (fitting.next(), fitting.next()) {
            (Some(one), None) => Found::One(one, false),
            (Some(one), Some(two)) => Found::Many(one.name, two.name),
            _ => Found::None,
        }
    }

    fn letters(&self, letters: &[u8], rest: &mut std::slice::Iter<Bytes>, parsed: &mut Parsed) -> Res<()> {
        let numeric =
            letters.iter().all(u8::is_ascii_digit) && known(self.list).any(|option| option.name == "NUM");
        if numeric {
            parsed.options.push(("NUM".to_owned(), Some(letters.to_vec())));
            return Ok(());
        }
        let mut letters = letters;
        while let [letter, after @ ..] = letters {
            let shown = char::from(*letter);
            let Some(option) = known(self.list).find(|option| option.letter == Some(*letter)) else {
                return Err(self.bad(format_args!("error: unknown switch `{shown}'")));
            };
            if option.refused {
                return Err(self.refuse(&format!("-{shown}")));
            }
            let value = match after {
                [] if option.value => match rest.next() {
                    Some(next) => Some(next.clone()),
                    None => return Err(self.bad(format_args!("error: switch `{shown}' requires a value"))),
                },
                [_, ..] if option.value || option.attached => Some(after.to_vec()),
                _ => None,
            };
            letters = if value.is_some() { &[] } else { after };
            parsed.options.push((option.name.to_owned(), value));
        }
        Ok(())
    }
}

enum Found<'a> {
    None,
    One(Known<'a>, bool),
    Many(&'a str, &'a str),
}
