//! Finding the parts of the arguments that may be paths.
//!
//! Every argument may be one, unless the policy says it is text: a program can take a path in many forms (`FILE`,
//! `--opt=FILE`, `-oFILE`, `@FILE`, `name=FILE,FILE`, `REV:FILE`), and treating an argument that is not a path as one
//! does no harm: it names nothing outside.

use std::collections::BTreeSet;

use crate::error::ToolError;
use crate::flags::{short, value_at};
use crate::policy::{FlagRules, Notation, ProgramPolicy};

/// Longer arguments are not searched.
const MOST_PATHS: usize = 4096;

/// A part of an argument that may be a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate<'a> {
    /// The whole argument.
    pub(crate) argument: &'a str,
    /// The part of it.
    pub(crate) path: &'a str,
}

/// Everything in the arguments that may be a path.
pub(crate) fn paths<'a>(
    policy: &ProgramPolicy,
    rules: &FlagRules,
    args: &'a [String],
) -> Result<BTreeSet<Candidate<'a>>, ToolError> {
    let mut reader = Reader {
        rules,
        notation: policy.notation,
        texts_left: text_operands(policy, args),
        only_operands: false,
        found: BTreeSet::new(),
    };
    let mut words = args.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match reader.take(word) {
            Next::Anything => {}
            Next::Text => drop(words.next()),
            Next::Value => {
                words.next().into_iter().for_each(|value| reader.any_part(value, value));
            }
        }
        if reader.found.len() > MOST_PATHS {
            return Err(ToolError::PathDenied {
                path: word.to_owned(),
                why: "is one of too many".to_owned(),
            });
        }
    }
    Ok(reader.found)
}

/// The role of the next argument.
enum Next {
    Anything,
    Text,
    Value,
}

struct Reader<'a, 'r> {
    rules: &'r FlagRules,
    notation: Notation,
    texts_left: usize,
    only_operands: bool,
    found: BTreeSet<Candidate<'a>>,
}

impl<'a> Reader<'a, '_> {
    fn take(&mut self, word: &'a str) -> Next {
        let is_flag = word.len() > 1 && word.starts_with('-');
        if !is_flag {
            self.operand(word);
            return Next::Anything;
        }
        if self.only_operands {
            self.operand(word);
            self.every_suffix(word, &word[1..]);
            return Next::Anything;
        }
        match (self.notation, word.strip_prefix("--")) {
            (Notation::Words, _) => self.whole_word(word),
            (Notation::Gnu, Some("")) => {
                self.only_operands = true;
                Next::Anything
            }
            (Notation::Gnu, Some(_)) => self.long(word),
            (Notation::Gnu, None) => self.bundle(word),
        }
    }

    fn operand(&mut self, word: &'a str) {
        if self.texts_left > 0 {
            self.texts_left -= 1;
        } else {
            self.any_part(word, word);
        }
    }

    fn whole_word(&mut self, word: &'a str) -> Next {
        let next = self.next_after(word);
        if matches!(next, Next::Anything) {
            self.every_suffix(word, &word[1..]);
        }
        next
    }

    fn long(&mut self, word: &'a str) -> Next {
        let Some((name, value)) = word.split_once('=') else {
            return self.next_after(word);
        };
        if !self.rules.texts.iter().any(|flag| flag == name) {
            self.any_part(word, value);
        }
        Next::Anything
    }

    fn bundle(&mut self, word: &'a str) -> Next {
        let letters = &word[1..];
        let Some(start) = value_at(letters, self.rules) else {
            self.every_suffix(word, letters);
            return Next::Anything;
        };
        let letter = letters[..start].chars().next_back();
        let is_text = self.rules.texts.iter().any(|flag| short(flag) == letter);
        match (is_text, &letters[start..]) {
            (true, "") => Next::Text,
            (true, _) => Next::Anything,
            (false, "") => Next::Value,
            (false, value) => {
                self.any_part(word, value);
                Next::Anything
            }
        }
    }

    fn next_after(&self, flag: &str) -> Next {
        if self.rules.texts.iter().any(|text| text == flag) {
            Next::Text
        } else if self.rules.values.iter().any(|value| value == flag) {
            Next::Value
        } else {
            Next::Anything
        }
    }

    /// An unknown flag may have its value anywhere in its argument.
    fn every_suffix(&mut self, argument: &'a str, letters: &'a str) {
        let starts = letters.char_indices().skip(1).map(|(at, _)| at).take(MOST_PATHS + 1);
        starts.for_each(|at| self.any_part(argument, &letters[at..]));
    }

    /// The text, and its parts between characters at which programs split.
    fn any_part(&mut self, argument: &'a str, text: &'a str) {
        let starts = text.match_indices(['=', ':', ',', '@']).map(|(at, _)| at + 1);
        for start in std::iter::once(0).chain(starts).take(MOST_PATHS + 1) {
            let rest = &text[start..];
            let piece = rest.split(['=', ':', ',']).next().unwrap_or(rest);
            for path in [rest, piece] {
                if !path.is_empty() && path != "-" && self.found.len() <= MOST_PATHS {
                    self.found.insert(Candidate { argument, path });
                }
            }
        }
    }
}

/// How many operands are text: none if a flag could mean that the text is elsewhere.
fn text_operands(policy: &ProgramPolicy, args: &[String]) -> usize {
    let elsewhere = |word: &String| {
        policy.text_words_unless.iter().any(|flag| match (word.strip_prefix("--"), short(flag)) {
            (Some(""), _) => false,
            (Some(long), None) => {
                let name = long.split_once('=').map_or(long, |(name, _)| name);
                flag.strip_prefix("--").is_some_and(|flag| flag.starts_with(name))
            }
            (None, Some(letter)) => word.starts_with('-') && word.contains(letter),
            _ => false,
        })
    };
    if args.iter().any(elsewhere) { 0 } else { policy.text_words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    /// The paths found in the arguments of a program.
    fn found(program: &str, subcommand: Option<&str>, args: &[&str]) -> Vec<String> {
        let policy = Policy::standard();
        let policy = &policy.programs[program];
        let own = subcommand.map(|name| policy.subcommands[name].clone()).unwrap_or_default();
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let rules = policy.flags.and(&own);
        let found = paths(policy, &rules, &args).unwrap();
        found.iter().map(|candidate| candidate.path.to_owned()).collect()
    }

    #[test]
    fn a_path_is_found_wherever_a_program_would_take_one() {
        for args in [
            &["/etc/x"][..],
            &["--opt=/etc/x"],
            &["--opt", "/etc/x"],
            &["-C/etc/x"],
            &["-C", "/etc/x"],
            &["-abC/etc/x"],
            &["@/etc/x"],
            &["--opt=@/etc/x"],
            &["name=a,/etc/x,b"],
            &["HEAD:/etc/x"],
            &["--", "-C/etc/x"],
            &["--", "--opt=/etc/x"],
            &["--", "/etc/x"],
            &["--a", "--b", "/etc/x"],
            &["é/etc/x", "-é/etc/x"],
        ] {
            assert!(found("cat", None, args).contains(&"/etc/x".to_owned()), "{args:?}");
        }
    }

    #[test]
    fn text_is_no_path_but_only_where_it_is_text() {
        let git_log = |args: &[&str]| found("git", Some("log"), args);
        assert!(git_log(&["--grep=/x", "--grep", "/x", "-S/x", "-G", "/x"]).is_empty());
        assert!(git_log(&["-S", "--grep", "/x"]).contains(&"/x".to_owned()));
        assert!(git_log(&["--gre=/x"]).contains(&"/x".to_owned()));
        assert!(git_log(&["-O/x"]).contains(&"/x".to_owned()));
        let grep = |args: &[&str]| found("grep", None, args);
        assert_eq!(grep(&["-r", "/x", "src"]), ["src"]);
        assert_eq!(grep(&["-A", "3", "/x", "src"]), ["3", "src"]);
        for args in [
            &["-e", "a", "/x"][..],
            &["-ie", "a", "/x"],
            &["--reg=a", "/x"],
            &["/x", "-f", "a"],
            &["/x", "--file=a"],
        ] {
            assert!(grep(args).contains(&"/x".to_owned()), "{args:?}");
        }
        assert!(grep(&["-f/x"]).contains(&"/x".to_owned()));
        assert!(grep(&["-fe/x"]).contains(&"e/x".to_owned()));
        let find = |args: &[&str]| found("find", None, args);
        assert!(!find(&[".", "-path", "/x"]).contains(&"/x".to_owned()));
        assert!(find(&["-D", "-name", "/x"]).contains(&"/x".to_owned()));
        assert!(find(&[".", "-newer", "/x"]).contains(&"/x".to_owned()));
    }

    #[test]
    fn more_than_can_be_looked_at_is_refused() {
        let many = vec![(0..5000).map(|number| format!("{number},")).collect::<String>()];
        let policy = Policy::standard();
        let error = paths(&policy.programs["cat"], &FlagRules::default(), &many).unwrap_err();
        assert_eq!(error.code(), "PATH_DENIED");
    }
}
