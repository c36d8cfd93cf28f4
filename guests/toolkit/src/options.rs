//! Options as GNU's `getopt_long` finds them, one after the other. All programs whose command lines follow its rules
//! stand on this; what they say about a fault is theirs, or [`Fault`]'s own words, which are GNU's.

use std::fmt;

/// What options there are.
pub struct Grammar {
    /// As for `getopt`: a letter, `:` after one that takes an argument, `::` after one that may.
    letters: String,
    names: Vec<Name>,
    /// Whether the first operand ends the options.
    stops_early: bool,
    /// Whether one dash does for a long name, unless its letters are options themselves.
    single_dash: bool,
}

/// A long option.
#[derive(Clone)]
struct Name {
    text: String,
    takes: Takes,
    /// Two names with the same meaning are one option: a beginning that fits both is not ambiguous.
    meaning: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Argument,
    MaybeArgument,
}

/// What stands on a command line.
#[derive(Debug, PartialEq)]
pub enum Found {
    Letter(char, Option<Vec<u8>>),
    /// A long option by its place among those of the grammar.
    Name(usize, Option<Vec<u8>>),
    Operand(Vec<u8>),
}

/// What is wrong with an option.
#[derive(Debug, PartialEq)]
pub enum Fault {
    UnknownLetter(char),
    LetterNeedsArgument(char),
    /// What was given, with what follows `=`.
    UnknownName(String),
    /// What was given, and the names that begin so.
    Ambiguous(String, Vec<String>),
    NameNeedsArgument(usize, String),
    NameTakesNone(usize, String),
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::UnknownLetter(letter) => write!(to, "invalid option -- '{letter}'"),
            Fault::LetterNeedsArgument(letter) => write!(to, "option requires an argument -- '{letter}'"),
            Fault::UnknownName(given) => write!(to, "unrecognized option '--{given}'"),
            Fault::Ambiguous(given, names) => {
                write!(to, "option '--{given}' is ambiguous; possibilities:")?;
                names.iter().try_for_each(|name| write!(to, " '--{name}'"))
            }
            Fault::NameNeedsArgument(_, name) => write!(to, "option '--{name}' requires an argument"),
            Fault::NameTakesNone(_, name) => write!(to, "option '--{name}' doesn't allow an argument"),
        }
    }
}

impl Grammar {
    /// With letters alone. A leading `+`, or `POSIXLY_CORRECT`, ends the options at the first operand; a leading `-` is
    /// the caller's to look at.
    pub fn new(letters: &str) -> Grammar {
        Grammar {
            letters: letters.trim_start_matches(['+', '-']).to_owned(),
            names: Vec::new(),
            stops_early: letters.starts_with('+') || std::env::var_os("POSIXLY_CORRECT").is_some(),
            single_dash: false,
        }
    }

    /// Adds a long name: `name`, `name=` with an argument, `name[=` with or without.
    pub fn name(&mut self, specification: &str, meaning: u32) {
        let (text, takes) = match (specification.strip_suffix("[="), specification.strip_suffix('=')) {
            (Some(name), _) => (name, Takes::MaybeArgument),
            (None, Some(name)) => (name, Takes::Argument),
            _ => (specification, Takes::Nothing),
        };
        self.names.push(Name { text: text.to_owned(), takes, meaning });
    }

    /// Lets one dash begin a long name.
    pub fn allow_single_dash(&mut self) {
        self.single_dash = true;
    }

    pub fn scan<W: Iterator<Item = Vec<u8>>>(&self, words: W) -> Scan<'_, W> {
        Scan { grammar: self, words, letters: Vec::new(), is_over: false }
    }

    /// The option that a name, or an unambiguous beginning of one, means.
    fn find(&self, given: &str, whole: &str) -> Result<usize, Fault> {
        if let Some(exact) = self.names.iter().position(|name| name.text == given) {
            return Ok(exact);
        }
        let fitting: Vec<usize> =
            (0..self.names.len()).filter(|&at| self.names[at].text.starts_with(given)).collect();
        match fitting[..] {
            [] => Err(Fault::UnknownName(whole.to_owned())),
            [first, ref others @ ..]
                if others.iter().all(|&other| self.names[other].meaning == self.names[first].meaning) =>
            {
                Ok(first)
            }
            _ => {
                let names = fitting.iter().map(|&at| self.names[at].text.clone()).collect();
                Err(Fault::Ambiguous(whole.to_owned(), names))
            }
        }
    }

    /// What follows a letter among the letters: the colons that say what it takes.
    fn after(&self, letter: char) -> Option<&str> {
        self.letters.split_once(letter).filter(|_| !matches!(letter, ':' | '-' | ';')).map(|(_, after)| after)
    }
}

/// A command line, read word by word. After a fault the next word is looked at as if nothing had happened.
pub struct Scan<'a, W> {
    grammar: &'a Grammar,
    words: W,
    /// The letters of the current word that are still to come.
    letters: Vec<u8>,
    is_over: bool,
}

impl<W: Iterator<Item = Vec<u8>>> Scan<'_, W> {
    /// Whether only operands are to come, or `--` stood before the last one.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The words that were not looked at.
    pub fn rest(self) -> W {
        self.words
    }

    fn letter(&mut self) -> Result<Found, Fault> {
        // A character that takes several bytes is no option, and is named whole.
        let text = String::from_utf8_lossy(&self.letters);
        let letter = text.chars().next().unwrap_or_default();
        let length = if letter == char::REPLACEMENT_CHARACTER { 1 } else { letter.len_utf8() };
        let attached = self.letters.split_off(length.min(self.letters.len()));
        self.letters.clear();
        let Some(after) = self.grammar.after(letter) else {
            self.letters = attached;
            return Err(Fault::UnknownLetter(letter));
        };
        if !after.starts_with(':') {
            self.letters = attached;
            return Ok(Found::Letter(letter, None));
        }
        let argument = match attached.is_empty() {
            false => Some(attached),
            true if after.starts_with("::") => None,
            true => Some(self.words.next().ok_or(Fault::LetterNeedsArgument(letter))?),
        };
        Ok(Found::Letter(letter, argument))
    }

    fn long(&mut self, word: &[u8]) -> Result<Found, Fault> {
        let text = String::from_utf8_lossy(word);
        let given = text.split('=').next().unwrap_or_default();
        let attached = word.iter().position(|&byte| byte == b'=').map(|at| word[at + 1..].to_vec());
        let at = self.grammar.find(given, &text)?;
        let name = &self.grammar.names[at];
        let argument = match (name.takes, attached) {
            (Takes::Nothing, Some(_)) => return Err(Fault::NameTakesNone(at, name.text.clone())),
            (Takes::Argument, None) => {
                let next = self.words.next();
                Some(next.ok_or_else(|| Fault::NameNeedsArgument(at, name.text.clone()))?)
            }
            (_, attached) => attached,
        };
        Ok(Found::Name(at, argument))
    }

    /// Whether the letters after one dash are meant as a long name.
    fn is_long(&self, letters: &[u8]) -> bool {
        let text = String::from_utf8_lossy(letters);
        let given = text.split('=').next().unwrap_or_default();
        self.grammar.single_dash && letters.len() > 1 && self.grammar.find(given, &text).is_ok()
    }
}

impl<W: Iterator<Item = Vec<u8>>> Iterator for Scan<'_, W> {
    type Item = Result<Found, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.letters.is_empty() {
            return Some(self.letter());
        }
        let word = self.words.next()?;
        if self.is_over || word.len() < 2 || word[0] != b'-' {
            self.is_over |= self.grammar.stops_early;
            return Some(Ok(Found::Operand(word)));
        }
        Some(match word.strip_prefix(b"--") {
            Some(b"") => {
                self.is_over = true;
                return self.next();
            }
            Some(long) => self.long(long),
            None if self.is_long(&word[1..]) => self.long(&word[1..]),
            None => {
                self.letters = word[1..].to_vec();
                self.letter()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grammar() -> Grammar {
        let mut grammar = Grammar::new("ab:c::");
        for (at, name) in ["alpha", "beta=", "gamma[=", "game"].iter().enumerate() {
            grammar.name(name, at as u32);
        }
        grammar
    }

    fn all(grammar: &Grammar, line: &str) -> Vec<Result<Found, Fault>> {
        grammar.scan(line.split(' ').map(|word| word.as_bytes().to_vec())).collect()
    }

    fn some(text: &str) -> Option<Vec<u8>> {
        Some(text.as_bytes().to_vec())
    }

    #[test]
    fn letters_bundle_and_take_what_follows() {
        let found = all(&grammar(), "-abx -b y -c -cz o -a -- -a");
        let letters = [('a', None), ('b', some("x")), ('b', some("y")), ('c', None), ('c', some("z"))];
        let mut expected: Vec<_> =
            letters.map(|(letter, argument)| Ok(Found::Letter(letter, argument))).into();
        expected.push(Ok(Found::Operand(b"o".to_vec())));
        expected.push(Ok(Found::Letter('a', None)));
        expected.push(Ok(Found::Operand(b"-a".to_vec())));
        assert_eq!(found, expected);
    }

    #[test]
    fn names_may_be_cut_short_and_faults_do_not_end_the_line() {
        let found = all(&grammar(), "--al --beta=1 --b 2 --gamma --gam -x --alpha=1 --nix=3 -a");
        assert_eq!(found[0], Ok(Found::Name(0, None)));
        assert_eq!(found[1], Ok(Found::Name(1, some("1"))));
        assert_eq!(found[2], Ok(Found::Name(1, some("2"))));
        assert_eq!(found[3], Ok(Found::Name(2, None)));
        let said: Vec<String> =
            found[4..8].iter().map(|fault| fault.as_ref().unwrap_err().to_string()).collect();
        let expected = [
            "option '--gam' is ambiguous; possibilities: '--gamma' '--game'",
            "invalid option -- 'x'",
            "option '--alpha' doesn't allow an argument",
            "unrecognized option '--nix=3'",
        ];
        assert_eq!(said, expected);
        assert_eq!(found[8], Ok(Found::Letter('a', None)));
    }
}
