//! The command line.

use crate::commands::set_mode;
use crate::database;
use crate::output::complain;
use crate::render::{Mode, Wrapping};
use crate::shell::{Shell, Stats};

/// What to do, beyond how the shell is set.
#[derive(Default)]
pub struct Request {
    /// The file of `-init`.
    pub init: Option<Vec<u8>>,
    /// What follows the file of `-init`, in order.
    pub steps: Vec<Step>,
    /// SQL and commands that stand on the command line in place of input.
    pub commands: Vec<Vec<u8>>,
}

/// An option that sets something, or runs a command, once the shell's own file is read.
pub enum Step {
    Separator(Vec<u8>),
    Newline(Vec<u8>),
    Null(Vec<u8>),
    Command(Vec<u8>),
    /// An option without an argument.
    Switch(Vec<u8>),
}

const HELP: &str = "\
Usage: sqlite3 [OPTIONS] FILENAME [SQL]
FILENAME is the name of an SQLite database. A new database is created
if the file does not exist.
OPTIONS include:
   -ascii               set output mode to 'ascii'
   -bail                stop after hitting an error
   -batch               force batch I/O
   -box                 set output mode to 'box'
   -cmd COMMAND         run \"COMMAND\" before reading stdin
   -column              set output mode to 'column'
   -csv                 set output mode to 'csv'
   -echo                print inputs before execution
   -[no]header          turn headers on or off
   -help                show this message
   -html                set output mode to HTML
   -init FILENAME       read/process named file
   -interactive         force interactive I/O
   -json                set output mode to 'json'
   -line                set output mode to 'line'
   -list                set output mode to 'list'
   -markdown            set output mode to 'markdown'
   -newline SEP         set output row separator. Default: '\\n'
   -nullvalue TEXT      set text string for NULL values. Default ''
   -quote               set output mode to 'quote'
   -readonly            open the database read-only
   -safe                enable safe-mode
   -separator SEP       set output column separator. Default: '|'
   -stats               print memory stats before each finalize
   -table               set output mode to 'table'
   -tabs                set output mode to 'tabs'
   -version             show SQLite version
   -vfs NAME            use NAME as the default VFS
";

/// Options with an argument that this shell has no use for.
const WITHOUT_EFFECT: &[(&[u8], usize)] =
    &[(b"heap", 1), (b"maxsize", 1), (b"mmap", 1), (b"sorterref", 1), (b"lookaside", 2), (b"pagecache", 2)];

/// Reads the command line. The error is the exit code: what there was to say has been said.
pub fn parse(shell: &mut Shell, arguments: Vec<Vec<u8>>) -> Result<Request, u8> {
    let mut request = Request::default();
    let mut has_file = false;
    let mut rest = arguments.into_iter();
    while let Some(word) = rest.next() {
        let Some(name) = word.strip_prefix(b"-").map(|name| name.strip_prefix(b"-").unwrap_or(name)) else {
            if has_file {
                request.commands.push(word);
            } else {
                (shell.file, has_file) = (word, true);
            }
            continue;
        };
        let mut argument = || {
            rest.next().ok_or_else(|| {
                complain([b"sqlite3: Error: missing argument to ", &word[..], b"\n"].concat());
                1
            })
        };
        match name {
            b"init" => request.init = Some(argument()?),
            b"cmd" => request.steps.push(Step::Command(argument()?)),
            b"separator" => request.steps.push(Step::Separator(argument()?)),
            b"newline" => request.steps.push(Step::Newline(argument()?)),
            b"nullvalue" => request.steps.push(Step::Null(argument()?)),
            b"vfs" => shell.vfs = Some(String::from_utf8_lossy(&argument()?).into_owned()),
            b"nonce" => drop(argument()?),
            name => match WITHOUT_EFFECT.iter().find(|(known, _)| *known == name) {
                Some((_, count)) => {
                    for _ in 0..*count {
                        argument()?;
                    }
                }
                None => request.steps.extend(early(shell, name).then(|| Step::Switch(word.clone()))),
            },
        }
    }
    if has_file && shell.file.is_empty() {
        shell.file = b":memory:".to_vec();
    }
    Ok(request)
}

/// Sets what must be known before anything is opened or read; answers whether there is more to an option.
fn early(shell: &mut Shell, name: &[u8]) -> bool {
    match name {
        b"batch" => shell.interactive = false,
        b"interactive" => shell.interactive = true,
        b"bail" => shell.bail = true,
        b"readonly" => shell.read_only = true,
        b"safe" => shell.safe = true,
        _ => return true,
    }
    false
}

/// Acts on an option without an argument. The error is the exit code.
pub fn switch(shell: &mut Shell, word: &[u8]) -> Result<(), u8> {
    let style = &mut shell.style;
    let mut mode = |mode| style.mode = mode;
    match word.strip_prefix(b"--").or_else(|| word.strip_prefix(b"-")).unwrap_or(word) {
        b"box" => mode(Mode::Box),
        b"column" => mode(Mode::Column),
        b"html" => mode(Mode::Html),
        b"json" => mode(Mode::Json),
        b"line" => mode(Mode::Line),
        b"list" => mode(Mode::List),
        b"markdown" => mode(Mode::Markdown),
        b"table" => mode(Mode::Table),
        // Its rows end as they did before, other than those of `.mode csv`.
        b"csv" => (style.mode, style.column_separator) = (Mode::Csv, b",".to_vec()),
        b"ascii" => set_mode(style, Mode::Ascii, Wrapping::OFF),
        b"quote" => set_mode(style, Mode::Quote, Wrapping::OFF),
        b"tabs" => set_mode(style, Mode::Tabs, Wrapping::OFF),
        b"header" => (style.headers, style.headers_chosen) = (true, true),
        b"noheader" => (style.headers, style.headers_chosen) = (false, true),
        b"echo" => shell.echo = true,
        b"stats" => shell.stats = Stats::On,
        b"multiplex" | b"nofollow" | b"unsafe-testing" | b"memtrace" => {}
        b"help" => {
            complain(HELP);
            return Err(0);
        }
        b"version" => {
            let (version, source) = database::version();
            shell.out.put(format!("{version} {source}\n"));
            return Err(0);
        }
        _ => {
            complain(
                [b"sqlite3: Error: unknown option: ", word, b"\nUse -help for a list of options.\n"].concat(),
            );
            return Err(1);
        }
    }
    Ok(())
}
