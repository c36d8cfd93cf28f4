//! The command line, and `MAKEFLAGS`, which passes it on.

use toolkit::args::{Parsed, Refusal, Tool};

use crate::text;

const HELP: &str = "\
Usage: make [options] [target] ...
Options:
  -B, --always-make           Make all targets, whether they are out of date or not.
  -C DIRECTORY, --directory=DIRECTORY
                              Change to DIRECTORY first.
  -e, --environment-overrides
                              Variables of the environment win over those of makefiles.
  -E STRING, --eval=STRING    Read STRING as a makefile.
  -f FILE, --file=FILE, --makefile=FILE
                              Read FILE as the makefile.
  -h, --help                  Print this message and exit.
  -i, --ignore-errors         Ignore errors of recipes.
  -I DIRECTORY, --include-dir=DIRECTORY
                              Search DIRECTORY for included makefiles.
  -j [N], --jobs[=N]          Run N recipes at once; without N as many as there are.
  -k, --keep-going            Keep going when some targets cannot be made.
  -n, --just-print, --dry-run, --recon
                              Print recipes, do not run them.
  -o FILE, --old-file=FILE, --assume-old=FILE
                              Take FILE to be very old and do not make it.
  -q, --question              Run nothing; exit with 1 if something is out of date.
  -r, --no-builtin-rules      Have no built-in implicit rules.
  -R, --no-builtin-variables  Have no built-in variables.
  -s, --silent, --quiet       Do not print recipes.
      --no-silent             Print recipes after all.
  -S, --no-keep-going, --stop
                              Turn off -k.
  -t, --touch                 Touch targets instead of making them.
      --trace                 Say why each target is made.
  -v, --version               Print the version and exit.
  -w, --print-directory       Print the directory before and after.
      --no-print-directory    Turn off -w.
  -W FILE, --what-if=FILE, --new-file=FILE, --assume-new=FILE
                              Take FILE to be very new.
      --warn-undefined-variables
                              Warn when an undefined variable is used.
";

const VERSION: &str =
    "GNU Make 4.3\nThis is Wardian's make: its language and messages are those of GNU Make 4.3.\n";

const NO_SILENT: char = '\u{2}';
const NO_PRINT_DIRECTORY: char = '\u{3}';
const TRACE: char = '\u{4}';
const WARN_UNDEFINED: char = '\u{5}';

const TOOL: Tool = Tool {
    name: "make",
    short: "bBC:dE:ef:hiI:j::kl::LmnNo:O::pqrRsStvwW:",
    long: &[
        ("always-make", 'B'),
        ("directory=", 'C'),
        ("debug[=", 'd'),
        ("environment-overrides", 'e'),
        ("eval=", 'E'),
        ("file=", 'f'),
        ("makefile=", 'f'),
        ("ignore-errors", 'i'),
        ("include-dir=", 'I'),
        ("jobs[=", 'j'),
        ("keep-going", 'k'),
        ("load-average[=", 'l'),
        ("max-load[=", 'l'),
        ("check-symlink-times", 'L'),
        ("just-print", 'n'),
        ("dry-run", 'n'),
        ("recon", 'n'),
        ("old-file=", 'o'),
        ("assume-old=", 'o'),
        ("output-sync[=", 'O'),
        ("print-data-base", 'p'),
        ("question", 'q'),
        ("no-builtin-rules", 'r'),
        ("no-builtin-variables", 'R'),
        ("silent", 's'),
        ("quiet", 's'),
        ("no-silent", NO_SILENT),
        ("no-keep-going", 'S'),
        ("stop", 'S'),
        ("touch", 't'),
        ("trace", TRACE),
        ("print-directory", 'w'),
        ("no-print-directory", NO_PRINT_DIRECTORY),
        ("what-if=", 'W'),
        ("new-file=", 'W'),
        ("assume-new=", 'W'),
        ("warn-undefined-variables", WARN_UNDEFINED),
    ],
    help: HELP,
    misuse: 2,
};

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub always_make: bool,
    pub directories: Vec<Vec<u8>>,
    pub environment_overrides: bool,
    pub evaluate: Vec<Vec<u8>>,
    pub makefiles: Vec<Vec<u8>>,
    pub ignore_errors: bool,
    pub include: Vec<Vec<u8>>,
    /// How many recipes run at once; none for as many as there are.
    pub jobs: Option<usize>,
    pub keep_going: bool,
    pub dry_run: bool,
    pub old_files: Vec<Vec<u8>>,
    pub new_files: Vec<Vec<u8>>,
    pub question: bool,
    pub no_builtin_rules: bool,
    pub no_builtin_variables: bool,
    pub silent: bool,
    pub touch: bool,
    pub trace: bool,
    pub print_directory: Option<bool>,
    pub warn_undefined: bool,
    /// Definitions, as they were given.
    pub definitions: Vec<Vec<u8>>,
    pub goals: Vec<Vec<u8>>,
}

/// Reads a command line; the error is the exit code.
pub fn read(arguments: Vec<Vec<u8>>) -> Result<Options, i32> {
    let mut options = Options { jobs: Some(1), ..Options::default() };
    let parsed = TOOL.try_parse(jobs_attached(arguments)).map_err(|refusal| match refusal {
        Refusal::Version => version(),
        Refusal::Wrong(message) => {
            toolkit::complain(TOOL.name, format_args!("{message}\n{}", HELP.trim_end()));
            2
        }
        refusal => TOOL.answer(refusal),
    })?;
    options.take(parsed)?;
    Ok(options)
}

fn version() -> i32 {
    i32::from(wardian_abi::write_all(1, VERSION.as_bytes()).is_err())
}

/// `-j 4` is `-j4`: an optional argument that may stand apart if it is a number.
fn jobs_attached(arguments: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut result: Vec<Vec<u8>> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let number = !argument.is_empty() && argument.iter().all(u8::is_ascii_digit);
        match result.last_mut() {
            Some(last) if number && last == b"-j" => last.extend(argument),
            Some(last) if number && last == b"--jobs" => last.extend([b"=", &argument[..]].concat()),
            _ => result.push(argument),
        }
    }
    result
}

impl Options {
    /// Takes what `MAKEFLAGS` says: letters without a dash first, then words, then definitions.
    pub fn read_flags(&mut self, flags: &[u8]) -> Result<(), i32> {
        let mut words: Vec<Vec<u8>> = split_flags(flags);
        if let Some(first) = words.first_mut()
            && !first.starts_with(b"-")
            && !first.contains(&b'=')
        {
            first.insert(0, b'-');
        }
        match TOOL.try_parse(words) {
            Ok(parsed) => self.take(parsed),
            Err(_) => Ok(()),
        }
    }

    fn take(&mut self, parsed: Parsed) -> Result<(), i32> {
        for (letter, argument) in parsed.options {
            self.take_option(letter, argument)?;
        }
        for operand in parsed.operands {
            match operand.contains(&b'=') {
                true => self.definitions.push(operand),
                false => self.goals.push(operand),
            }
        }
        Ok(())
    }

    fn take_option(&mut self, letter: char, argument: Option<Vec<u8>>) -> Result<(), i32> {
        let argument = argument.unwrap_or_default();
        match letter {
            'B' => self.always_make = true,
            'C' => self.directories.push(argument),
            'e' => self.environment_overrides = true,
            'E' => self.evaluate.push(argument),
            'f' => self.makefiles.push(argument),
            'h' => return Err(TOOL.answer(Refusal::Help)),
            'i' => self.ignore_errors = true,
            'I' => self.include.push(argument),
            'j' => self.jobs = jobs(&argument)?,
            'k' => self.keep_going = true,
            'S' => self.keep_going = false,
            'n' => self.dry_run = true,
            'o' => self.old_files.push(argument),
            'q' => self.question = true,
            'r' => self.no_builtin_rules = true,
            'R' => (self.no_builtin_variables, self.no_builtin_rules) = (true, true),
            's' => self.silent = true,
            NO_SILENT => self.silent = false,
            't' => self.touch = true,
            TRACE => self.trace = true,
            'v' => return Err(version()),
            'w' => self.print_directory = Some(true),
            NO_PRINT_DIRECTORY => self.print_directory = Some(false),
            'W' => self.new_files.push(argument),
            WARN_UNDEFINED => self.warn_undefined = true,
            // GNU make takes these two for the sake of others and ignores them.
            'b' | 'm' => {}
            other => {
                let message = format!("the option -{other} is not supported in the sandbox");
                toolkit::complain(TOOL.name, message);
                return Err(2);
            }
        }
        Ok(())
    }

    /// The options as `MAKEFLAGS` has them.
    pub fn flags(&self) -> Vec<u8> {
        let letters = [
            (self.always_make, 'B'),
            (self.environment_overrides, 'e'),
            (self.ignore_errors, 'i'),
            (self.keep_going, 'k'),
            (self.dry_run, 'n'),
            (self.question, 'q'),
            (self.no_builtin_rules, 'r'),
            (self.no_builtin_variables, 'R'),
            (self.silent, 's'),
            (self.touch, 't'),
            (self.print_directory == Some(true), 'w'),
        ];
        let letters: String = letters.iter().filter(|(set, _)| *set).map(|(_, letter)| letter).collect();
        let mut words = vec![letters.into_bytes()];
        words.extend(self.include.iter().map(|directory| [b"-I", &directory[..]].concat()));
        let long = [
            (self.trace, "--trace"),
            (self.print_directory == Some(false), "--no-print-directory"),
            (self.warn_undefined, "--warn-undefined-variables"),
        ];
        words.extend(long.iter().filter(|(set, _)| *set).map(|(_, word)| word.as_bytes().to_vec()));
        // Before a word that is no letter there is a blank, even if there are no letters.
        words.join(&b' ')
    }
}

fn jobs(argument: &[u8]) -> Result<Option<usize>, i32> {
    if argument.is_empty() {
        return Ok(None);
    }
    match std::str::from_utf8(argument).ok().and_then(|text| text.parse().ok()) {
        Some(count) if count > 0 => Ok(Some(count)),
        _ => {
            let message =
                format!("the '-j' option requires a positive integer argument\n{}", HELP.trim_end());
            toolkit::complain(TOOL.name, message);
            Err(2)
        }
    }
}

/// Words in which a backslash keeps the next character.
fn split_flags(flags: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut open) = (Vec::new(), Vec::new(), false);
    let mut bytes = text::trim(flags).iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => {
                word.extend(bytes.next());
                open = true;
            }
            b' ' | b'\t' if open => {
                words.push(std::mem::take(&mut word));
                open = false;
            }
            b' ' | b'\t' => {}
            byte => {
                word.push(byte);
                open = true;
            }
        }
    }
    if open {
        words.push(word);
    }
    words
}
