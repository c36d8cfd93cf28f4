//! jq's command line, which is like nobody else's.

use std::path::PathBuf;

use crate::json::{self, Layout, Reader, Tree};
use crate::value::Value;

use super::USAGE;

/// What was asked for.
#[derive(Default)]
pub struct Options {
    pub program: String,
    pub files: Vec<Vec<u8>>,
    pub null_input: bool,
    pub raw_input: bool,
    pub slurp: bool,
    pub stream: bool,
    pub stream_errors: bool,
    pub exit_status: bool,
    pub search: Vec<PathBuf>,
    pub named: Vec<(String, Value)>,
    pub positional: Vec<Value>,
    pub output: Output,
}

/// How results are to be written.
#[derive(Default)]
pub struct Output {
    pub raw: bool,
    pub join: bool,
    pub nul: bool,
    pub ascii: bool,
    pub sorted: bool,
    pub seq: bool,
    pub unbuffered: bool,
    /// `None`: on a terminal only.
    pub color: Option<bool>,
    pub layout: Option<Layout>,
}

/// What operands after the program are.
#[derive(Clone, Copy, PartialEq)]
enum Operands {
    Files,
    Strings,
    Json,
}

struct Parser {
    options: Options,
    program: Option<Vec<u8>>,
    from_file: bool,
    operands: Operands,
    rest: std::vec::IntoIter<Vec<u8>>,
}

const HELP: &str = include_str!("help.txt");

/// Takes a command line apart. The error is the exit code: what there was to say has been said.
pub fn parse(arguments: Vec<Vec<u8>>) -> Result<Options, i32> {
    let mut rest = arguments.into_iter();
    rest.next();
    let mut parser = Parser {
        options: Options::default(),
        program: None,
        from_file: false,
        operands: Operands::Files,
        rest,
    };
    while let Some(word) = parser.rest.next() {
        if word == b"--" {
            while let Some(operand) = parser.rest.next() {
                parser.operand(operand)?;
            }
        } else if let Some(name) = word.strip_prefix(b"--") {
            parser.long(&String::from_utf8_lossy(name))?;
        } else if word.starts_with(b"-") && word.get(1).is_some_and(u8::is_ascii_alphabetic) {
            parser.short(&word)?;
        } else {
            parser.operand(word)?;
        }
    }
    parser.finish()
}

fn print(text: &str) -> i32 {
    match wardian_abi::write_all(1, text.as_bytes()) {
        Ok(()) => 0,
        Err(_) => USAGE,
    }
}

fn wrong(problem: &str) -> i32 {
    toolkit::complain(
        "jq",
        format_args!(
            "{problem}\nUse jq --help for help with command-line options,\n\
             or see the jq manpage, or online docs  at https://jqlang.github.io/jq"
        ),
    );
    USAGE
}

impl Parser {
    fn operand(&mut self, word: Vec<u8>) -> Result<(), i32> {
        if self.program.is_none() {
            self.program = Some(word);
            return Ok(());
        }
        match self.operands {
            Operands::Files => self.options.files.push(word),
            Operands::Strings => self.options.positional.push(Value::string(String::from_utf8_lossy(&word))),
            Operands::Json => match json::parse_one(&word) {
                Ok(Some(value)) => self.options.positional.push(value),
                _ => return Err(wrong("Invalid JSON text passed to --jsonargs")),
            },
        }
        Ok(())
    }

    fn short(&mut self, word: &[u8]) -> Result<(), i32> {
        let mut letters = &word[1..];
        while let Some((&letter, rest)) = letters.split_first() {
            letters = rest;
            match letter {
                b'L' => {
                    let attached = (!rest.is_empty()).then(|| rest.to_vec());
                    let Some(directory) = attached.or_else(|| self.rest.next()) else {
                        return Err(wrong("-L takes a parameter: (e.g. -L /search/path or -L/search/path)"));
                    };
                    self.search(&directory);
                    return Ok(());
                }
                b's' => self.options.slurp = true,
                b'r' => self.options.output.raw = true,
                b'j' => self.options.output.join = true,
                b'c' => self.options.output.layout = Some(Layout::Compact),
                b'C' => self.options.output.color = Some(true),
                b'M' => self.options.output.color = Some(false),
                b'a' => self.options.output.ascii = true,
                b'S' => self.options.output.sorted = true,
                b'R' => self.options.raw_input = true,
                b'n' => self.options.null_input = true,
                b'f' => self.from_file = true,
                b'e' => self.options.exit_status = true,
                b'h' => return Err(print(HELP)),
                b'V' => return Err(print("jq-1.7\n")),
                _ => return Err(wrong(&format!("Unknown option {}", String::from_utf8_lossy(word)))),
            }
        }
        Ok(())
    }

    fn search(&mut self, directory: &[u8]) {
        self.options.search.push(PathBuf::from(String::from_utf8_lossy(directory).into_owned()));
    }

    fn long(&mut self, name: &str) -> Result<(), i32> {
        let output = &mut self.options.output;
        match name {
            "slurp" => self.options.slurp = true,
            "raw-output" => output.raw = true,
            "raw-output0" => output.nul = true,
            "join-output" => output.join = true,
            "compact-output" => output.layout = Some(Layout::Compact),
            "color-output" => output.color = Some(true),
            "monochrome-output" => output.color = Some(false),
            "ascii-output" => output.ascii = true,
            "sort-keys" => output.sorted = true,
            "raw-input" => self.options.raw_input = true,
            "null-input" => self.options.null_input = true,
            "from-file" => self.from_file = true,
            "exit-status" => self.options.exit_status = true,
            "unbuffered" => output.unbuffered = true,
            "tab" => output.layout = Some(Layout::Tabs),
            "seq" => output.seq = true,
            "stream" => self.options.stream = true,
            "stream-errors" => (self.options.stream, self.options.stream_errors) = (true, true),
            "args" => self.operands = Operands::Strings,
            "jsonargs" => self.operands = Operands::Json,
            "indent" => return self.indent(),
            "arg" | "argjson" => return self.named(name),
            "slurpfile" | "rawfile" => return self.file(name),
            "library-path" => match self.rest.next() {
                Some(directory) => self.search(&directory),
                None => return Err(wrong("--library-path takes a parameter")),
            },
            "help" => return Err(print(HELP)),
            "version" => return Err(print("jq-1.7\n")),
            "build-configuration" => return Err(print("wardian\n")),
            _ => return Err(wrong(&format!("Unknown option --{name}"))),
        }
        Ok(())
    }

    fn indent(&mut self) -> Result<(), i32> {
        let Some(count) = self.rest.next() else {
            return Err(wrong("--indent takes one parameter"));
        };
        match toolkit::input::number::<i64>(&count) {
            Some(-1) => self.options.output.layout = Some(Layout::Tabs),
            Some(0) => self.options.output.layout = Some(Layout::Compact),
            Some(count @ 1..=7) => self.options.output.layout = Some(Layout::Spaces(count as usize)),
            _ => return Err(wrong("--indent takes a number between -1 and 7")),
        }
        Ok(())
    }

    /// The two words after an option.
    fn pair(&mut self) -> Option<(String, Vec<u8>)> {
        let name = self.rest.next()?;
        Some((String::from_utf8_lossy(&name).into_owned(), self.rest.next()?))
    }

    fn named(&mut self, option: &str) -> Result<(), i32> {
        let example = if option == "arg" { "value" } else { "text" };
        let Some((name, text)) = self.pair() else {
            return Err(wrong(&format!(
                "--{option} takes two parameters (e.g. --{option} varname {example})"
            )));
        };
        let value = match option {
            "arg" => Value::string(String::from_utf8_lossy(&text)),
            _ => match json::parse_one(&text) {
                Ok(Some(value)) => value,
                _ => return Err(wrong("invalid JSON text passed to --argjson")),
            },
        };
        self.options.named.push((name, value));
        Ok(())
    }

    fn file(&mut self, option: &str) -> Result<(), i32> {
        let Some((name, file)) = self.pair() else {
            return Err(wrong(&format!(
                "--{option} takes two parameters (e.g. --{option} varname filename)"
            )));
        };
        let shown = String::from_utf8_lossy(&file).into_owned();
        let bad = |why: String| {
            toolkit::complain("jq", format_args!("Bad JSON in --{option} {name} {shown}: {why}"));
            USAGE
        };
        let bytes = std::fs::read(toolkit::files::path(&file)).map_err(|error| {
            let errno =
                error.raw_os_error().map_or_else(|| error.to_string(), |code| plain_words(code, &error));
            bad(format!("Could not open {shown}: {errno}"))
        })?;
        let value = match option {
            "rawfile" => Value::string(String::from_utf8_lossy(&bytes)),
            _ => Value::array(all_values(&bytes).map_err(bad)?),
        };
        self.options.named.push((name.clone(), value));
        Ok(())
    }

    fn finish(mut self) -> Result<Options, i32> {
        let program = match self.program.take() {
            Some(program) => program,
            None if wardian_abi::isatty(0) && wardian_abi::isatty(1) => {
                let _ = wardian_abi::write_all(2, HELP.as_bytes());
                return Err(USAGE);
            }
            None => b".".to_vec(),
        };
        let text = if self.from_file {
            let shown = String::from_utf8_lossy(&program).into_owned();
            std::fs::read(toolkit::files::path(&program)).map_err(|error| {
                let why =
                    error.raw_os_error().map_or_else(|| error.to_string(), |code| plain_words(code, &error));
                toolkit::complain("jq", format_args!("error: Could not open {shown}: {why}"));
                USAGE
            })?
        } else {
            program
        };
        self.options.program = String::from_utf8_lossy(&text).into_owned();
        Ok(self.options)
    }
}

/// The system's words for an error, without Rust's number after them.
fn plain_words(code: i32, error: &std::io::Error) -> String {
    let text = error.to_string();
    text.strip_suffix(&format!(" (os error {code})")).unwrap_or(&text).to_owned()
}

/// All values of a text.
fn all_values(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let mut reader = Reader::new(Tree::default());
    let (mut at, mut values) = (0, Vec::new());
    while let Some(value) = reader.next(bytes, &mut at)? {
        values.push(value);
    }
    values.extend(reader.finish()?);
    Ok(values)
}
