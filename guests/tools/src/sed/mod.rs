//! `sed`: edits a stream of lines.
//!
//! ```text
//! script.rs   the text of a script, and what is wrong with it
//! command.rs  what a script becomes
//! replace.rs  the right side of `s`, and `y`
//! run.rs      a line, and what the commands do with it
//! input.rs    lines from one file after the other
//! output.rs   where lines go
//! ```

mod command;
mod input;
mod output;
mod replace;
mod run;
mod script;

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, files, input as operands};
use wardian_abi as abi;
use wardian_abi::Errno;

const TOOL: Tool = Tool {
    name: "sed",
    short: "bsnrzuEe:f:l:i::",
    long: &[
        ("binary", 'b'),
        ("regexp-extended", 'E'),
        ("debug", DEBUG),
        ("in-place[=", 'i'),
        ("expression=", 'e'),
        ("file=", 'f'),
        ("line-length=", 'l'),
        ("null-data", 'z'),
        ("zero-terminated", 'z'),
        ("quiet", 'n'),
        ("posix", POSIX),
        ("silent", 'n'),
        ("sandbox", SANDBOX),
        ("separate", 's'),
        ("unbuffered", 'u'),
        ("follow-symlinks", FOLLOW),
    ],
    help: "\
Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...

  -n, --quiet, --silent
                 suppress automatic printing of pattern space
      --debug
                 annotate program execution
  -e script, --expression=script
                 add the script to the commands to be executed
  -f script-file, --file=script-file
                 add the contents of script-file to the commands to be executed
  --follow-symlinks
                 follow symlinks when processing in place
  -i[SUFFIX], --in-place[=SUFFIX]
                 edit files in place (makes backup if SUFFIX supplied)
  -l N, --line-length=N
                 specify the desired line-wrap length for the `l' command
  --posix
                 disable all GNU extensions.
  -E, -r, --regexp-extended
                 use extended regular expressions in the script
                 (for portability use POSIX -E).
  -s, --separate
                 consider files as separate rather than as a single,
                 continuous long stream.
      --sandbox
                 operate in sandbox mode (disable e/r/w commands).
  -u, --unbuffered
                 load minimal amounts of data from the input files and flush
                 the output buffers more often
  -z, --null-data
                 separate lines by NUL characters
      --help     display this help and exit
      --version  output version information and exit

If no -e, --expression, -f, or --file option is given, then the first
non-option argument is taken as the sed script to interpret.  All
remaining arguments are names of input files; if no input files are
specified, then the standard input is read.
",
    misuse: 1,
};

// What only long options stand for.
const DEBUG: char = 'δ';
const FOLLOW: char = 'φ';
const POSIX: char = 'π';
const SANDBOX: char = 'σ';

/// What the command line says.
pub struct Options {
    pub quiet: bool,
    pub extended: bool,
    pub separate: bool,
    /// Files are edited in place; what is added to the names of the old ones, if they are kept.
    pub in_place: Option<Vec<u8>>,
    pub follow_links: bool,
    pub unbuffered: bool,
    /// GNU's extensions are off.
    pub posix: bool,
    /// `N` and `n` do at the end of input as POSIX says.
    pub correct: bool,
    pub sandbox: bool,
    /// What ends a line.
    pub line_end: u8,
    /// How long the lines of `l` are.
    pub line_length: usize,
    pub utf8: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut options = Options {
        quiet: false,
        extended: false,
        separate: false,
        in_place: None,
        follow_links: false,
        unbuffered: false,
        posix: false,
        correct: std::env::var_os("POSIXLY_CORRECT").is_some(),
        sandbox: false,
        line_end: b'\n',
        line_length: 70,
        utf8: wardian_regex::locale_is_utf8(),
    };
    let mut sources = Vec::new();
    for (letter, argument) in parsed.options {
        options.set(letter, argument.unwrap_or_default(), &mut sources)?;
    }
    let mut operands = parsed.operands;
    if sources.is_empty() {
        if operands.is_empty() {
            // There is nowhere left to say that this failed.
            let _ = abi::write_all(2, TOOL.help.as_bytes());
            return Err(1);
        }
        sources.push(script::Source { file: None, text: operands.remove(0) });
    }
    let script = script::parse(&sources, &options).map_err(|error| {
        complain("sed", &error.message);
        error.code
    })?;
    options.quiet |= script.starts_quiet;
    if options.in_place.is_some() && operands.is_empty() {
        complain("sed", "no input files");
        return Err(4);
    }
    Ok(run::run(script, &options, operands::or_stdin(operands)))
}

impl Options {
    fn set(&mut self, letter: char, argument: Vec<u8>, sources: &mut Vec<script::Source>) -> Result<(), i32> {
        match letter {
            'n' => self.quiet = true,
            'E' | 'r' => self.extended = true,
            's' => self.separate = true,
            'z' => self.line_end = 0,
            'u' => self.unbuffered = true,
            'e' => sources.push(script::Source { file: None, text: argument }),
            'f' => sources.push(script::Source { text: read_script(&argument)?, file: Some(argument) }),
            'i' => {
                self.in_place = Some(argument);
                self.separate = true;
            }
            // What is no number is none, to GNU's too.
            'l' => self.line_length = operands::number(&argument).unwrap_or(0),
            POSIX => (self.posix, self.correct) = (true, true),
            SANDBOX => self.sandbox = true,
            FOLLOW => self.follow_links = true,
            DEBUG => {
                complain("sed", "--debug is not supported");
                return Err(1);
            }
            // -b is for systems whose lines end otherwise.
            _ => {}
        }
        Ok(())
    }
}

fn read_script(file: &[u8]) -> Result<Vec<u8>, i32> {
    let content = match file {
        b"-" | b"/dev/stdin" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(Errno::from),
    };
    let mut text = content.map_err(|error| {
        let name = String::from_utf8_lossy(file);
        complain("sed", format_args!("couldn't open file {name}: {error}"));
        4
    })?;
    if text.ends_with(b"\n") {
        text.pop();
    }
    Ok(text)
}
