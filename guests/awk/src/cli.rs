//! The command line: options as gawk has them.

use crate::compile::compile;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::parser::{self, Source};
use toolkit::options::{Fault, Found, Grammar};
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
    /// To say how it is called.
    Misuse,
}

/// Runs `awk`: the arguments, its name first, in; its exit code out.
pub fn main(arguments: Vec<Vec<u8>>) -> i32 {
    match run(arguments) {
        Ok(code) => code,
        Err(error) => {
            let name = crate::error::program_name();
            let text = format!(
                "{name}: {}\n",
                error.message.replace("\ncmd. line", &format!("\n{name}: cmd. line"))
            );
            // There is nowhere left to say that this failed.
            let _ = abi::write_all(2, text.as_bytes());
            error.code
        }
    }
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32> {
    let path = arguments.first().map_or(&b"awk"[..], Vec::as_slice);
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path).to_vec();
    crate::error::set_program_name(&name);
    let mut options = match parse(arguments)? {
        Request::Run(options) => *options,
        Request::Print(text) => {
            let _ = abi::write_all(1, text.as_bytes());
            return Ok(0);
        }
        Request::Misuse => {
            let _ = abi::write_all(2, HELP.as_bytes());
            return Ok(1);
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
    find_source(name.as_bytes())
        .map_err(|error| format!("cannot open included file `{name}' for reading: {error}"))
}

/// The text of a source: the file, or the one of that name, with `.awk` behind it or without, in a directory of `AWKPATH`.
fn find_source(name: &[u8]) -> abi::Result<Vec<u8>> {
    let first = match read_file(name) {
        Err(error) if name != b"-" && !name.contains(&b'/') => error,
        answer => return answer,
    };
    let path = std::env::var_os("AWKPATH").map(std::ffi::OsString::into_encoded_bytes);
    let path = path.unwrap_or_else(|| b".:/usr/local/share/awk".to_vec());
    for suffix in [&b""[..], b".awk"] {
        for directory in path.split(|&byte| byte == b':') {
            let directory = if directory.is_empty() { b"." } else { directory };
            if let Ok(text) = read_file(&[directory, b"/", name, suffix].concat()) {
                return Ok(text);
            }
        }
    }
    Err(first)
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
    let text = find_source(name).map_err(|error| {
        Error::fatal(format_args!("cannot open source file `{shown}' for reading: {error}"))
    })?;
    Ok(Source { name: Some(shown), text })
}

/// The long options, with the letter each stands for.
const LONG: &[(&str, char)] = &[
    ("file=", 'f'),
    ("field-separator=", 'F'),
    ("assign=", 'v'),
    ("source=", 'e'),
    ("exec=", 'E'),
    ("include=", 'i'),
    ("csv", 'k'),
    ("help", 'h'),
    ("version", 'V'),
    ("copyright", 'C'),
    ("dump-variables[=", 'd'),
    ("debug[=", 'D'),
    ("gen-pot", 'g'),
    ("trace", 'I'),
    ("load=", 'l'),
    ("lint[=", 'L'),
    ("lint-old", 't'),
    ("pretty-print[=", 'o'),
    ("profile[=", 'p'),
    ("posix", 'P'),
    ("traditional", 'c'),
    ("re-interval", 'r'),
    ("characters-as-bytes", 'b'),
    ("use-lc-numeric", 'N'),
    ("non-decimal-data", 'n'),
    ("optimize", 'O'),
    ("no-optimize", 's'),
    ("sandbox", 'S'),
    ("bignum", 'M'),
];

/// Reads the command line. As in gawk, an option that is none ends the options and is left to the program; without a
/// program it is an error.
fn parse(arguments: Vec<Vec<u8>>) -> Result<Request> {
    let mut options = Options::default();
    let mut grammar = Grammar::new("+f:F:v:e:E:i:khVCd::D::gIl:L::to::p::PcrbNnOsSM");
    LONG.iter().for_each(|(name, letter)| grammar.name(name, u32::from(*letter)));
    let words = &arguments[1.min(arguments.len())..];
    let looked_at = std::cell::Cell::new(0);
    let counted = words.iter().cloned().inspect(|_| looked_at.set(looked_at.get() + 1));
    let mut scan = grammar.scan(counted);
    let mut begun = 0;
    while let Some(found) = scan.next() {
        let (letter, argument) = match found {
            Ok(Found::Operand(word)) => {
                options.operands.push(word);
                options.operands.extend(scan.rest());
                break;
            }
            Ok(Found::Letter(letter, argument)) => (letter, argument),
            Ok(Found::Name(at, argument)) => (LONG[at].1, argument),
            Err(Fault::LetterNeedsArgument(letter)) => return Err(needs_argument(letter)),
            Err(Fault::NameNeedsArgument(at, _) | Fault::NameTakesNone(at, _)) => {
                return Err(needs_argument(LONG[at].1));
            }
            Err(_) if options.has_program => {
                options.operands.extend(words[begun..].iter().cloned());
                break;
            }
            Err(_) => return Ok(Request::Misuse),
        };
        if let Some(text) = options.take(letter, argument.unwrap_or_default())? {
            return Ok(Request::Print(text));
        }
        if letter == 'E' {
            options.operands.extend(scan.rest());
            break;
        }
        begun = looked_at.get();
    }
    Ok(Request::Run(Box::new(options)))
}

fn needs_argument(letter: char) -> Error {
    Error { message: format!("option requires an argument -- {letter}\n{}", HELP.trim_end()), code: 1 }
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
            'P' | 'c' | 'r' | 'N' | 'O' | 's' | 't' => {}
            letter => return Err(Error::fatal(format_args!("-{letter} is not supported"))),
        }
        Ok(None)
    }
}
