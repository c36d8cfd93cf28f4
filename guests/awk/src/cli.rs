//! The command line: options as gawk has them.

use crate::compile::compile;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::parser::{self, Source};
use wardian_abi as abi;

const HELP: &str = "\
Usage: awk [POSIX or GNU style options] -f progfile [--] file ...
Usage: awk [POSIX or GNU style options] [--] 'program' file ...
POSIX options:\t\tGNU long options: (standard)
\t-f progfile\t\t--file=progfile
\t-F fs\t\t\t--field-separator=fs
\t-v var=val\t\t--assign=var=val
Short options:\t\tGNU long options: (extensions)
\t-e 'program-text'\t--source='program-text'
\t-E file\t\t\t--exec=file
\t-h\t\t\t--help
\t-i includefile\t\t--include=includefile
\t-k\t\t\t--csv
\t-V\t\t\t--version
";

const VERSION: &str = concat!("awk (Wardian) ", env!("CARGO_PKG_VERSION"), ", the language of GNU Awk 5.2\n");

/// What the command line asks for.
#[derive(Default)]
struct Options {
    sources: Vec<Source>,
    /// Whether a source is the program, not only what it includes.
    has_program: bool,
    assignments: Vec<Vec<u8>>,
    field_separator: Option<Vec<u8>>,
    is_csv: bool,
    operands: Vec<Vec<u8>>,
}

/// What to do after the command line was read.
enum Request {
    Run(Box<Options>),
    Print(&'static str),
}

/// Runs `awk`: the arguments, its name first, in; its exit code out.
pub fn main(arguments: Vec<Vec<u8>>) -> i32 {
    match run(arguments) {
        Ok(code) => code,
        Err(error) => {
            let text = format!("awk: {}\n", error.message.replace("\ncmd. line", "\nawk: cmd. line"));
            // There is nowhere left to say that this failed.
            let _ = abi::write_all(2, text.as_bytes());
            error.code
        }
    }
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32> {
    let path = arguments.first().map_or(&b"awk"[..], Vec::as_slice);
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path).to_vec();
    let mut options = match parse(arguments)? {
        Request::Run(options) => *options,
        Request::Print(text) => {
            let _ = abi::write_all(1, text.as_bytes());
            return Ok(0);
        }
    };
    if !options.has_program {
        if options.operands.is_empty() {
            let _ = abi::write_all(2, HELP.as_bytes());
            return Ok(1);
        }
        options.sources.push(Source { name: None, text: options.operands.remove(0) });
    }
    let (program, names) = parser::parse(options.sources, &include)?;
    let mut machine = Machine::new(compile(&program, names)?, options.is_csv);
    let mut argv = vec![name];
    argv.extend(options.operands);
    machine.set_arguments(&argv);
    if let Some(separator) = options.field_separator {
        machine.assign("FS", &separator)?;
    }
    for assignment in options.assignments {
        let at = assignment.iter().position(|&byte| byte == b'=');
        let name = at.map(|at| String::from_utf8_lossy(&assignment[..at]).into_owned());
        match (name.filter(|name| is_name(name)), at) {
            (Some(name), Some(at)) => machine.assign(&name, &assignment[at + 1..])?,
            _ => {
                let shown = String::from_utf8_lossy(&assignment).into_owned();
                let code = if at.is_some() { 2 } else { 1 };
                let message = format!("fatal: `{shown}' argument to `-v' not in `var=value' form");
                return Err(Error { message, code });
            }
        }
    }
    let code = machine.execute();
    // The process is about to end: to take apart what it holds would be in vain.
    std::mem::forget(machine);
    code
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|char: char| char.is_ascii_digit())
        && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

fn include(name: &str) -> std::result::Result<Vec<u8>, String> {
    let with_suffix = format!("{name}.awk");
    read_file(name.as_bytes())
        .or_else(|_| read_file(with_suffix.as_bytes()))
        .map_err(|error| format!("cannot open included file `{name}' for reading: {error}"))
}

fn read_file(name: &[u8]) -> abi::Result<Vec<u8>> {
    let fd = crate::streams::open_to_read(name)?;
    let mut text = Vec::new();
    let mut chunk = [0; 8192];
    let answer = loop {
        match abi::read(fd, &mut chunk) {
            Ok(0) => break Ok(text),
            Ok(count) => text.extend_from_slice(&chunk[..count]),
            Err(abi::Errno::INTR) => {}
            Err(error) => break Err(error),
        }
    };
    if fd != 0 {
        // It was only read: nothing can be lost.
        let _ = abi::close(fd);
    }
    answer
}

fn source_file(name: &[u8]) -> Result<Source> {
    let shown = String::from_utf8_lossy(name).into_owned();
    let text = read_file(name).map_err(|error| {
        Error::fatal(format_args!("cannot open source file `{shown}' for reading: {error}"))
    })?;
    Ok(Source { name: Some(shown), text })
}

/// The long options, with the letter each stands for and whether it takes an argument.
const LONG: &[(&str, char, bool)] = &[
    ("file", 'f', true),
    ("field-separator", 'F', true),
    ("assign", 'v', true),
    ("source", 'e', true),
    ("exec", 'E', true),
    ("include", 'i', true),
    ("csv", 'k', false),
    ("help", 'h', false),
    ("version", 'V', false),
    ("posix", 'P', false),
    ("traditional", 'c', false),
    ("re-interval", 'r', false),
    ("characters-as-bytes", 'b', false),
    ("use-lc-numeric", 'N', false),
    ("non-decimal-data", 'n', false),
    ("optimize", 'O', false),
    ("no-optimize", 's', false),
    ("sandbox", 'S', false),
    ("lint", 't', false),
    ("bignum", 'M', false),
];

fn parse(arguments: Vec<Vec<u8>>) -> Result<Request> {
    let mut options = Options::default();
    let mut rest = arguments.into_iter().skip(1);
    while let Some(word) = rest.next() {
        if word == b"--" {
            options.operands.extend(rest);
            break;
        }
        if word.len() < 2 || word[0] != b'-' {
            options.operands.push(word);
            options.operands.extend(rest);
            break;
        }
        let (letter, argument) = match word.strip_prefix(b"--") {
            Some(long) => long_option(long, &mut rest)?,
            None => match short_options(&word[1..], &mut rest, &mut options)? {
                Some(last) => last,
                None => continue,
            },
        };
        if let Some(text) = options.take(letter, argument)? {
            return Ok(Request::Print(text));
        }
        if letter == 'E' {
            options.operands.extend(rest);
            break;
        }
    }
    Ok(Request::Run(Box::new(options)))
}

type Rest<'a> = dyn Iterator<Item = Vec<u8>> + 'a;

fn long_option(word: &[u8], rest: &mut Rest<'_>) -> Result<(char, Vec<u8>)> {
    let text = String::from_utf8_lossy(word).into_owned();
    let given = text.split('=').next().unwrap_or_default();
    let exact = LONG.iter().find(|(name, ..)| *name == given);
    let mut begun = LONG.iter().filter(|(name, ..)| name.starts_with(given));
    let found = exact.or_else(|| begun.next().filter(|_| begun.next().is_none()));
    let Some((_, letter, takes)) = found else {
        return Err(Error {
            message: format!("unrecognized option '--{given}'\n{}", HELP.trim_end()),
            code: 1,
        });
    };
    let attached = word.iter().position(|&byte| byte == b'=').map(|at| word[at + 1..].to_vec());
    let argument = match (attached, takes) {
        (Some(argument), _) => argument,
        (None, true) => rest.next().ok_or_else(|| needs_argument(given))?,
        (None, false) => Vec::new(),
    };
    Ok((*letter, argument))
}

fn needs_argument(option: &str) -> Error {
    Error { message: format!("option requires an argument -- {option}"), code: 1 }
}

/// Takes letters up to one that has an argument, or the last.
fn short_options(
    letters: &[u8],
    rest: &mut Rest<'_>,
    options: &mut Options,
) -> Result<Option<(char, Vec<u8>)>> {
    for (at, &letter) in letters.iter().enumerate() {
        let letter = char::from(letter);
        if matches!(letter, 'f' | 'F' | 'v' | 'e' | 'E' | 'i') {
            let attached = letters[at + 1..].to_vec();
            let argument = match attached.is_empty() {
                true => rest.next().ok_or_else(|| needs_argument(&letter.to_string()))?,
                false => attached,
            };
            return Ok(Some((letter, argument)));
        }
        if matches!(letter, 'h' | 'V') {
            return Ok(Some((letter, Vec::new())));
        }
        options.take(letter, Vec::new())?;
    }
    Ok(None)
}

impl Options {
    /// Takes one option over; answers what to print if that is what it asks for.
    fn take(&mut self, letter: char, argument: Vec<u8>) -> Result<Option<&'static str>> {
        match letter {
            'f' | 'E' => {
                self.sources.push(source_file(&argument)?);
                self.has_program = true;
            }
            'e' => {
                self.sources.push(Source { name: None, text: argument });
                self.has_program = true;
            }
            'i' if argument == b"inplace" => {
                return Err(Error::fatal(
                    "-i inplace is not supported: write to another file and move it, or use sed -i",
                ));
            }
            'i' => {
                let name = String::from_utf8_lossy(&argument).into_owned();
                let text = include(&name).map_err(Error::fatal)?;
                self.sources.push(Source { name: Some(name), text });
            }
            'F' => self.field_separator = Some(argument),
            'v' => self.assignments.push(argument),
            'k' => self.is_csv = true,
            'h' => return Ok(Some(HELP)),
            'V' => return Ok(Some(VERSION)),
            'M' => {
                return Err(Error::fatal("-M is not supported: numbers are doubles; use bc for more digits"));
            }
            // These ask for what is so anyway, or for less than there is.
            'P' | 'c' | 'r' | 'N' | 'n' | 'O' | 's' | 't' => {}
            'b' | 'S' => return Err(Error::fatal(format_args!("-{letter} is not supported"))),
            letter => {
                return Err(Error {
                    message: format!("invalid option -- '{letter}'\n{}", HELP.trim_end()),
                    code: 1,
                });
            }
        }
        Ok(None)
    }
}
