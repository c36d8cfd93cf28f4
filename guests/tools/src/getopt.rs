//! `getopt`: options of scripts, put in order.

use toolkit::args::{Tool, bytes_of};
use toolkit::options::{Found, Grammar};
use toolkit::out::Out;
use toolkit::{Arguments, complain};

const TOOL: Tool = Tool {
    name: "getopt",
    short: "+ao:l:n:qQs:TuhV",
    long: &[
        ("options=", 'o'),
        ("longoptions=", 'l'),
        ("quiet", 'q'),
        ("quiet-output", 'Q'),
        ("shell=", 's'),
        ("test", 'T'),
        ("unquoted", 'u'),
        ("alternative", 'a'),
        ("name=", 'n'),
    ],
    help: HELP,
    misuse: 2,
};

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

/// Which shell is to read the result.
#[derive(Clone, Copy, PartialEq)]
enum Shell {
    Bash,
    Csh,
}

/// What is looked for in the parameters, and how the result is written.
struct Getopt {
    short: String,
    /// Each with 0, 1 or 2 colons after it.
    long: Vec<String>,
    name: String,
    alternative: bool,
    quiet: bool,
    silent: bool,
    unquoted: bool,
    shell: Shell,
}

pub fn main(arguments: Arguments) -> i32 {
    match Getopt::prepare(bytes_of(arguments)) {
        Ok((getopt, parameters)) => getopt.run(parameters),
        Err(code) => code,
    }
}

impl Getopt {
    fn prepare(words: Vec<Vec<u8>>) -> Result<(Getopt, Vec<Vec<u8>>), i32> {
        let mut getopt = Getopt {
            short: String::new(),
            long: Vec::new(),
            name: "getopt".to_owned(),
            alternative: false,
            quiet: false,
            silent: false,
            unquoted: false,
            shell: Shell::Bash,
        };
        let missing = || TOOL.wrong("missing optstring argument");
        let first = words.first().ok_or_else(missing)?;
        if !first.starts_with(b"-") {
            // The old way: nothing is quoted.
            (getopt.short, getopt.unquoted) = (text(first), true);
            return Ok((getopt, words[1..].to_vec()));
        }
        let mut parsed = TOOL.parse(words)?;
        let mut has_short = false;
        for (letter, argument) in parsed.options {
            let value = argument.as_deref().map(text).unwrap_or_default();
            match letter {
                'a' => getopt.alternative = true,
                'l' => getopt.add_long(&value),
                'n' => getopt.name = value,
                'o' => (getopt.short, has_short) = (value, true),
                'q' => getopt.quiet = true,
                'Q' => getopt.silent = true,
                's' => getopt.shell = shell_of(&value)?,
                'T' => return Err(4),
                'u' => getopt.unquoted = true,
                'h' => return Err(TOOL.answer(toolkit::args::Refusal::Help)),
                _ => return Err(TOOL.answer(toolkit::args::Refusal::Version)),
            }
        }
        if !has_short {
            if parsed.operands.is_empty() {
                return Err(missing());
            }
            getopt.short = text(&parsed.operands.remove(0));
        }
        Ok((getopt, parsed.operands))
    }

    fn add_long(&mut self, list: &str) {
        let names = list.split([',', ' ', '\t', '\n']).filter(|name| !name.is_empty());
        self.long.extend(names.map(str::to_owned));
    }

    fn grammar(&self) -> Grammar {
        let mut grammar = Grammar::new(&self.short);
        for (at, name) in self.long.iter().enumerate() {
            let plain = name.trim_end_matches(':');
            let takes = ["", "=", "[="][(name.len() - plain.len()).min(2)];
            grammar.name(&format!("{plain}{takes}"), at as u32);
        }
        if self.alternative {
            grammar.allow_single_dash();
        }
        grammar
    }

    fn run(&self, parameters: Vec<Vec<u8>>) -> i32 {
        let in_place = self.short.starts_with('-');
        let grammar = self.grammar();
        let (mut options, mut operands, mut failed) = (Vec::new(), Vec::new(), false);
        let mut scan = grammar.scan(parameters.into_iter());
        while let Some(found) = scan.next() {
            match found {
                Ok(Found::Operand(word)) if in_place && !scan.is_over() => options.push(self.quoted(&word)),
                Ok(Found::Operand(word)) => operands.push(self.quoted(&word)),
                Ok(Found::Letter(letter, argument)) => {
                    options.push(format!("-{letter}").into_bytes());
                    let takes_one = self.short.contains(&format!("{letter}:"));
                    options.extend(takes_one.then(|| self.quoted(&argument.unwrap_or_default())));
                }
                Ok(Found::Name(at, argument)) => {
                    let name = self.long[at].trim_end_matches(':');
                    options.push(format!("--{name}").into_bytes());
                    let takes_one = name.len() < self.long[at].len();
                    options.extend(takes_one.then(|| self.quoted(&argument.unwrap_or_default())));
                }
                Err(fault) => {
                    failed = true;
                    if !self.quiet {
                        complain(&self.name, fault);
                    }
                }
            }
        }
        if !self.silent {
            let mut line = Vec::new();
            for word in options.iter().chain([&b"--".to_vec()]).chain(&operands) {
                line.push(b' ');
                line.extend_from_slice(word);
            }
            line.push(b'\n');
            Out::new("getopt").put(line);
        }
        i32::from(failed)
    }

    /// A word as the shell reads it back.
    fn quoted(&self, word: &[u8]) -> Vec<u8> {
        if self.unquoted {
            return word.to_vec();
        }
        let mut text = vec![b'\''];
        for &byte in word {
            match byte {
                b'\'' => text.extend_from_slice(b"'\\''"),
                b'\\' if self.shell == Shell::Csh => text.extend_from_slice(b"\\\\"),
                b'!' if self.shell == Shell::Csh => text.extend_from_slice(b"'\\!'"),
                b'\n' if self.shell == Shell::Csh => text.extend_from_slice(b"\\n"),
                other if self.shell == Shell::Csh && other.is_ascii_whitespace() => {
                    text.extend_from_slice(&[b'\'', b'\\', other, b'\'']);
                }
                other => text.push(other),
            }
        }
        text.push(b'\'');
        text
    }
}

fn shell_of(name: &str) -> Result<Shell, i32> {
    match name {
        "sh" | "bash" => Ok(Shell::Bash),
        "csh" | "tcsh" => Ok(Shell::Csh),
        _ => Err(TOOL.wrong("unknown shell after -s or --shell argument")),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
