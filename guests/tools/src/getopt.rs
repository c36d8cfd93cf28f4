//! `getopt`: options of scripts, put in order.

use toolkit::args::bytes_of;
use toolkit::out::Out;
use toolkit::{Arguments, complain};

const HELP: &str = "
Usage:
 getopt <optstring> <parameters>
 getopt [options] [--] <optstring> <parameters>
 getopt [options] -o|--options <optstring> [options] [--] <parameters>

Parse command options.

Options:
 -a, --alternative             allow long options starting with single -
 -l, --longoptions <longopts>  the long options to be recognized
 -n, --name <progname>         the name under which errors are reported
 -o, --options <optstring>     the short options to be recognized
 -q, --quiet                   disable error reporting by getopt(3)
 -Q, --quiet-output            no normal output
 -s, --shell <shell>           set quoting conventions to those of <shell>
 -T, --test                    test for getopt(1) version
 -u, --unquoted                do not quote the output
     --help                    display this help
     --version                 display version
";

#[derive(Default)]
struct Getopt {
    short: String,
    /// Each with 0, 1 or 2 colons after it.
    long: Vec<(String, usize)>,
    name: String,
    alternative: bool,
    quiet: bool,
    silent: bool,
    unquoted: bool,
    failed: bool,
    options: Vec<String>,
    operands: Vec<String>,
}

pub fn main(arguments: Arguments) -> i32 {
    let words: Vec<String> =
        bytes_of(arguments).iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    match Getopt::prepare(words) {
        Ok((mut getopt, parameters)) => getopt.run(parameters),
        Err(code) => code,
    }
}

impl Getopt {
    fn prepare(words: Vec<String>) -> Result<(Getopt, Vec<String>), i32> {
        let mut getopt = Getopt { name: "getopt".to_owned(), ..Getopt::default() };
        let mut rest = words.into_iter().peekable();
        let Some(first) = rest.peek() else {
            complain("getopt", "missing optstring argument\nTry 'getopt --help' for more information.");
            return Err(2);
        };
        if !first.starts_with('-') {
            // The old way: nothing is quoted.
            (getopt.short, getopt.unquoted) = (rest.next().unwrap_or_default(), true);
            return Ok((getopt, rest.collect()));
        }
        let mut has_short = false;
        while let Some(word) = rest.peek().cloned() {
            if !word.starts_with('-') || word == "-" {
                break;
            }
            rest.next();
            if word == "--" {
                break;
            }
            let (name, attached) = split_option(&word);
            let mut value = || attached.clone().or_else(|| rest.next()).unwrap_or_default();
            match name.as_str() {
                "a" | "alternative" => getopt.alternative = true,
                "l" | "long" | "longoptions" => getopt.add_long(&value()),
                "n" | "name" => getopt.name = value(),
                "o" | "options" => (getopt.short, has_short) = (value(), true),
                "q" | "quiet" => getopt.quiet = true,
                "Q" | "quiet-output" => getopt.silent = true,
                "s" | "shell" => drop(value()),
                "T" | "test" => return Err(4),
                "u" | "unquoted" => getopt.unquoted = true,
                "h" | "help" => return Err(print(HELP)),
                "V" | "version" => {
                    return Err(print(&format!("getopt (Wardian) {}\n", env!("CARGO_PKG_VERSION"))));
                }
                other => {
                    complain(
                        "getopt",
                        format_args!(
                            "unrecognized option '{other}'\nTry 'getopt --help' for more information."
                        ),
                    );
                    return Err(2);
                }
            }
        }
        if !has_short {
            let Some(short) = rest.next() else {
                complain("getopt", "missing optstring argument\nTry 'getopt --help' for more information.");
                return Err(2);
            };
            getopt.short = short;
        }
        let mut parameters: Vec<String> = rest.collect();
        if parameters.first().is_some_and(|word| word == "--") && has_short {
            parameters.remove(0);
        }
        Ok((getopt, parameters))
    }

    fn add_long(&mut self, list: &str) {
        for name in list.split([',', ' ', '\t', '\n']).filter(|name| !name.is_empty()) {
            let plain = name.trim_end_matches(':');
            self.long.push((plain.to_owned(), name.len() - plain.len()));
        }
    }

    fn run(&mut self, parameters: Vec<String>) -> i32 {
        let (in_place, stops) = (self.short.starts_with('-'), self.short.starts_with('+'));
        let stops = stops || std::env::var_os("POSIXLY_CORRECT").is_some();
        let short = self.short.trim_start_matches(['-', '+']).to_owned();
        let mut rest = parameters.into_iter();
        while let Some(word) = rest.next() {
            if word == "--" {
                self.operands.extend(rest.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                self.take_long(long, &mut rest);
            } else if word.len() > 1 && word.starts_with('-') {
                let letters = &word[1..];
                let is_long = self.alternative && letters.len() > 1 && self.find(letters).len() == 1;
                if is_long {
                    self.take_long(letters, &mut rest)
                } else {
                    self.take_short(&short, letters, &mut rest)
                }
            } else if in_place {
                let shown = self.quoted(&word);
                self.options.push(shown);
            } else {
                self.operands.push(word);
                if stops {
                    self.operands.extend(rest.by_ref());
                }
            }
        }
        if !self.silent {
            let operands: Vec<String> = self.operands.iter().map(|word| self.quoted(word)).collect();
            let words: Vec<String> = self
                .options
                .iter()
                .cloned()
                .chain(["--".to_owned()])
                .chain(operands)
                .map(|word| format!(" {word}"))
                .collect();
            Out::new("getopt").put(words.concat() + "\n");
        }
        i32::from(self.failed)
    }

    fn take_short(&mut self, short: &str, letters: &str, rest: &mut impl Iterator<Item = String>) {
        for (at, letter) in letters.char_indices() {
            let Some((_, after)) = short.split_once(letter).filter(|_| letter != ':') else {
                self.fail(format!("invalid option -- '{letter}'"));
                continue;
            };
            let attached = &letters[at + letter.len_utf8()..];
            let colons = after.len() - after.trim_start_matches(':').len();
            if colons == 0 {
                self.options.push(format!("-{letter}"));
                continue;
            }
            let value = match (attached.is_empty(), colons) {
                (false, _) => Some(attached.to_owned()),
                (true, 1) => rest.next(),
                _ => Some(String::new()),
            };
            match value {
                Some(value) => {
                    let shown = self.quoted(&value);
                    self.options.extend([format!("-{letter}"), shown]);
                }
                None => self.fail(format!("option requires an argument -- '{letter}'")),
            }
            return;
        }
    }

    /// The long options that a name may mean.
    fn find(&self, word: &str) -> Vec<(String, usize)> {
        let name = word.split('=').next().unwrap_or_default();
        let exact = self.long.iter().find(|(known, _)| known == name);
        match exact {
            Some(exact) => vec![exact.clone()],
            None => self.long.iter().filter(|(known, _)| known.starts_with(name)).cloned().collect(),
        }
    }

    fn take_long(&mut self, word: &str, rest: &mut impl Iterator<Item = String>) {
        let attached = word.split_once('=').map(|(_, value)| value.to_owned());
        let given = word.split('=').next().unwrap_or_default();
        let (name, colons) = match &self.find(word)[..] {
            [only] => only.clone(),
            [] => return self.fail(format!("unrecognized option '--{given}'")),
            several => {
                let all: String = several.iter().map(|(name, _)| format!(" '--{name}'")).collect();
                return self.fail(format!("option '--{given}' is ambiguous; possibilities:{all}"));
            }
        };
        let value = match (colons, attached) {
            (0, Some(_)) => return self.fail(format!("option '--{name}' doesn't allow an argument")),
            (0, None) => None,
            (1, None) => match rest.next() {
                None => return self.fail(format!("option '--{name}' requires an argument")),
                value => value,
            },
            (_, attached) => Some(attached.unwrap_or_default()),
        };
        self.options.push(format!("--{name}"));
        if let Some(value) = value {
            let shown = self.quoted(&value);
            self.options.push(shown);
        }
    }

    fn quoted(&self, word: &str) -> String {
        if self.unquoted { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    }

    fn fail(&mut self, message: String) {
        self.failed = true;
        if !self.quiet {
            complain(&self.name, message);
        }
    }
}

/// The name of an option of our own, and what is attached to it.
fn split_option(word: &str) -> (String, Option<String>) {
    match word.strip_prefix("--") {
        Some(long) => match long.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (long.to_owned(), None),
        },
        None => {
            let letters = &word[1..];
            let (first, rest) = letters.split_at(letters.chars().next().map_or(0, char::len_utf8));
            (first.to_owned(), (!rest.is_empty()).then(|| rest.to_owned()))
        }
    }
}

fn print(text: &str) -> i32 {
    Out::new("getopt").put(text);
    0
}
