//! The command line, and the patterns it gives.

use super::files::Globs;
use super::print::Colors;
use toolkit::args::Tool;
use toolkit::{complain, files, input};
use wardian_abi as abi;
use wardian_abi::Errno;
use wardian_regex::{Fit, Modern, Regex, Syntax, locale_is_utf8};

const TOOL: Tool = Tool {
    name: "grep",
    short: "0123456789A:B:C:D:EFGHILPTUVX:abcd:e:f:hiLlm:noqRrsuvwxyZz",
    long: &[
        ("basic-regexp", 'G'),
        ("extended-regexp", 'E'),
        ("fixed-regexp", 'F'),
        ("fixed-strings", 'F'),
        ("perl-regexp", 'P'),
        ("after-context=", 'A'),
        ("before-context=", 'B'),
        ("binary-files=", BINARY_FILES),
        ("binary", 'U'),
        ("byte-offset", 'b'),
        ("context=", 'C'),
        ("color[=", COLOR),
        ("colour[=", COLOR),
        ("count", 'c'),
        ("devices=", 'D'),
        ("directories=", 'd'),
        ("exclude=", EXCLUDE),
        ("exclude-from=", EXCLUDE_FROM),
        ("exclude-dir=", EXCLUDE_DIR),
        ("file=", 'f'),
        ("files-with-matches", 'l'),
        ("files-without-match", 'L'),
        ("group-separator=", SEPARATOR),
        ("ignore-case", 'i'),
        ("no-ignore-case", NO_IGNORE_CASE),
        ("include=", INCLUDE),
        ("initial-tab", 'T'),
        ("invert-match", 'v'),
        ("label=", LABEL),
        ("line-buffered", LINE_BUFFERED),
        ("line-number", 'n'),
        ("line-regexp", 'x'),
        ("max-count=", 'm'),
        ("no-filename", 'h'),
        ("no-group-separator", NO_SEPARATOR),
        ("no-messages", 's'),
        ("null", 'Z'),
        ("null-data", 'z'),
        ("only-matching", 'o'),
        ("quiet", 'q'),
        ("recursive", 'r'),
        ("dereference-recursive", 'R'),
        ("regexp=", 'e'),
        ("silent", 'q'),
        ("text", 'a'),
        ("unix-byte-offsets", 'u'),
        ("with-filename", 'H'),
        ("word-regexp", 'w'),
    ],
    help: "\
Usage: grep [OPTION]... PATTERNS [FILE]...
Search for PATTERNS in each FILE.
Example: grep -i 'hello world' menu.h main.c
PATTERNS can contain multiple patterns separated by newlines.

Pattern selection and interpretation:
  -E, --extended-regexp     PATTERNS are extended regular expressions
  -F, --fixed-strings       PATTERNS are strings
  -G, --basic-regexp        PATTERNS are basic regular expressions
  -P, --perl-regexp         PATTERNS are Perl regular expressions
  -e, --regexp=PATTERNS     use PATTERNS for matching
  -f, --file=FILE           take PATTERNS from FILE
  -i, --ignore-case         ignore case distinctions in patterns and data
      --no-ignore-case      do not ignore case distinctions (default)
  -w, --word-regexp         match only whole words
  -x, --line-regexp         match only whole lines
  -z, --null-data           a data line ends in 0 byte, not newline

Miscellaneous:
  -s, --no-messages         suppress error messages
  -v, --invert-match        select non-matching lines
  -V, --version             display version information and exit
      --help                display this help text and exit

Output control:
  -m, --max-count=NUM       stop after NUM selected lines
  -b, --byte-offset         print the byte offset with output lines
  -n, --line-number         print line number with output lines
      --line-buffered       flush output on every line
  -H, --with-filename       print file name with output lines
  -h, --no-filename         suppress the file name prefix on output
      --label=LABEL         use LABEL as the standard input file name prefix
  -o, --only-matching       show only nonempty parts of lines that match
  -q, --quiet, --silent     suppress all normal output
      --binary-files=TYPE   assume that binary files are TYPE;
                            TYPE is 'binary', 'text', or 'without-match'
  -a, --text                equivalent to --binary-files=text
  -I                        equivalent to --binary-files=without-match
  -d, --directories=ACTION  how to handle directories;
                            ACTION is 'read', 'recurse', or 'skip'
  -D, --devices=ACTION      how to handle devices, FIFOs and sockets;
                            ACTION is 'read' or 'skip'
  -r, --recursive           like --directories=recurse
  -R, --dereference-recursive  likewise, but follow all symlinks
      --include=GLOB        search only files that match GLOB (a file pattern)
      --exclude=GLOB        skip files that match GLOB
      --exclude-from=FILE   skip files that match any file pattern from FILE
      --exclude-dir=GLOB    skip directories that match GLOB
  -L, --files-without-match  print only names of FILEs with no selected lines
  -l, --files-with-matches  print only names of FILEs with selected lines
  -c, --count               print only a count of selected lines per FILE
  -T, --initial-tab         make tabs line up (if needed)
  -Z, --null                print 0 byte after FILE name

Context control:
  -B, --before-context=NUM  print NUM lines of leading context
  -A, --after-context=NUM   print NUM lines of trailing context
  -C, --context=NUM         print NUM lines of output context
  -NUM                      same as --context=NUM
      --group-separator=SEP  print SEP on line between matches with context
      --no-group-separator  do not print separator for matches with context
      --color[=WHEN],
      --colour[=WHEN]       use markers to highlight the matching strings;
                            WHEN is 'always', 'never', or 'auto'
  -U, --binary              do not strip CR characters at EOL (MSDOS/Windows)

When FILE is '-', read standard input.  With no FILE, read '.' if
recursive, '-' otherwise.  With fewer than two FILEs, assume -h.
Exit status is 0 if any line is selected, 1 otherwise;
if any error occurs and -q is not given, the exit status is 2.
",
    misuse: 2,
};

// What only long options stand for.
const BINARY_FILES: char = 'β';
const COLOR: char = 'κ';
const EXCLUDE: char = 'ξ';
const EXCLUDE_FROM: char = 'φ';
const EXCLUDE_DIR: char = 'δ';
const INCLUDE: char = 'ι';
const LABEL: char = 'λ';
const LINE_BUFFERED: char = 'μ';
const NO_IGNORE_CASE: char = 'ν';
const NO_SEPARATOR: char = 'σ';
const SEPARATOR: char = 'ς';

/// What is done with a file that is not text.
#[derive(Clone, Copy, PartialEq)]
pub enum Binary {
    Tell,
    Text,
    Skip,
}

/// What is done with a directory.
#[derive(Clone, Copy, PartialEq)]
pub enum Directories {
    Read,
    Skip,
    Recurse,
}

/// Whether only the names of files are printed.
#[derive(Clone, Copy, PartialEq)]
pub enum Listing {
    Lines,
    Matching,
    NotMatching,
}

/// What the command line says.
pub struct Options {
    pub regex: Regex,
    pub invert: bool,
    pub count: bool,
    pub listing: Listing,
    pub quiet: bool,
    pub silent: bool,
    pub only_matching: bool,
    pub line_numbers: bool,
    pub byte_offsets: bool,
    pub with_names: Option<bool>,
    pub null_after_name: bool,
    pub initial_tab: bool,
    pub line_buffered: bool,
    pub max_count: u64,
    pub before: Option<usize>,
    pub after: Option<usize>,
    pub separator: Option<Vec<u8>>,
    pub binary: Binary,
    pub directories: Directories,
    pub follow_links: bool,
    pub skip_devices: Option<bool>,
    pub files: Globs,
    pub dirs: Globs,
    pub label: Option<Vec<u8>>,
    pub line_end: u8,
    pub colors: Option<Colors>,
    pub utf8: bool,
    /// No line can be selected, so that no file needs to be read.
    pub is_hopeless: bool,
    pub operands: Vec<Vec<u8>>,
}

/// What is gathered before the patterns are known.
#[derive(Default)]
struct Wishes {
    patterns: Option<Vec<Vec<u8>>>,
    matcher: Option<char>,
    ignore_case: bool,
    word: bool,
    line: bool,
    context: Option<usize>,
    digits: String,
    color: Option<bool>,
}

impl Options {
    fn new(utf8: bool) -> Result<Options, i32> {
        let none = wardian_regex::Options::new(Syntax::Fixed);
        Ok(Options {
            regex: Regex::any_of(&[], &none).map_err(|_| 2)?,
            invert: false,
            count: false,
            listing: Listing::Lines,
            quiet: false,
            silent: false,
            only_matching: false,
            line_numbers: false,
            byte_offsets: false,
            with_names: None,
            null_after_name: false,
            initial_tab: false,
            line_buffered: false,
            max_count: u64::MAX,
            before: None,
            after: None,
            separator: Some(b"--".to_vec()),
            binary: Binary::Tell,
            directories: Directories::Read,
            follow_links: false,
            skip_devices: None,
            files: Globs::default(),
            dirs: Globs::default(),
            label: None,
            line_end: b'\n',
            colors: None,
            utf8,
            is_hopeless: false,
            operands: Vec::new(),
        })
    }

    /// Takes a command line apart. The error is the exit code: what there was to say has been said.
    pub fn parse(arguments: Vec<Vec<u8>>, matcher: Option<char>) -> Result<Options, i32> {
        let parsed = TOOL.parse(arguments)?;
        let mut options = Options::new(locale_is_utf8())?;
        let mut wishes = Wishes { matcher, ..Wishes::default() };
        for (letter, argument) in parsed.options {
            options.set(letter, argument.unwrap_or_default(), &mut wishes)?;
        }
        options.operands = parsed.operands;
        if let Some(digits) = Some(&wishes.digits).filter(|digits| !digits.is_empty()) {
            wishes.context = Some(context_length(digits.as_bytes())?);
        }
        options.before = options.before.or(wishes.context);
        options.after = options.after.or(wishes.context);
        if wishes.color.unwrap_or(false) {
            options.colors = Some(Colors::from_environment());
        }
        let patterns = match wishes.patterns.take() {
            Some(patterns) => patterns,
            None if options.operands.is_empty() => return Err(usage()),
            None => lines_of(&options.operands.remove(0)),
        };
        let matches_all = patterns == [b""] && !wishes.word && !wishes.line;
        let lists_others = options.listing == Listing::NotMatching;
        options.is_hopeless = !lists_others && (options.max_count == 0 || matches_all && options.invert);
        options.regex = compile(&patterns, &wishes, &options)?;
        Ok(options)
    }

    fn set(&mut self, letter: char, argument: Vec<u8>, wishes: &mut Wishes) -> Result<(), i32> {
        match letter {
            '0'..='9' => wishes.digits.push(letter),
            'E' | 'F' | 'G' | 'P' => {
                if wishes.matcher.is_some_and(|other| other != letter) {
                    complain("grep", "conflicting matchers specified");
                    return Err(2);
                }
                wishes.matcher = Some(letter);
            }
            'e' => wishes.patterns.get_or_insert_default().extend(lines_of(&argument)),
            'f' => {
                let content = read_list(&argument)?;
                let content = content
                    .strip_suffix(b"\n")
                    .map_or((&content[..], content.is_empty()), |text| (text, false));
                let patterns = wishes.patterns.get_or_insert_default();
                if !content.1 {
                    patterns.extend(lines_of(content.0));
                }
            }
            'i' | 'y' => wishes.ignore_case = true,
            NO_IGNORE_CASE => wishes.ignore_case = false,
            'w' => wishes.word = true,
            'x' => wishes.line = true,
            'A' => self.after = Some(context_length(&argument)?),
            'B' => self.before = Some(context_length(&argument)?),
            'C' => wishes.context = Some(context_length(&argument)?),
            COLOR => wishes.color = Some(wants_color(&argument)?),
            EXCLUDE => self.files.add(argument, false),
            INCLUDE => self.files.add(argument, true),
            EXCLUDE_FROM => lines_of(&read_list(&argument)?)
                .into_iter()
                .filter(|line| !line.is_empty())
                .for_each(|line| self.files.add(line, false)),
            EXCLUDE_DIR => {
                let end = argument.iter().rposition(|&byte| byte != b'/').map_or(argument.len(), |at| at + 1);
                self.dirs.add(argument[..end].to_vec(), false);
            }
            'V' => return Err(TOOL.parse(vec![b"--version".to_vec()]).err().unwrap_or(0)),
            _ => return self.set_output(letter, argument),
        }
        Ok(())
    }

    fn set_output(&mut self, letter: char, argument: Vec<u8>) -> Result<(), i32> {
        match letter {
            'D' => {
                self.skip_devices = Some(match &argument[..] {
                    b"read" => false,
                    b"skip" => true,
                    _ => return Err(fail("unknown devices method")),
                });
            }
            'd' => {
                self.directories = match &argument[..] {
                    b"read" => Directories::Read,
                    b"skip" => Directories::Skip,
                    b"recurse" => Directories::Recurse,
                    _ => {
                        TOOL.wrong_choice("--directories", &argument, &["read", "recurse", "skip"]);
                        return Err(1);
                    }
                };
            }
            'r' | 'R' => {
                self.directories = Directories::Recurse;
                self.follow_links = letter == 'R';
            }
            BINARY_FILES => {
                self.binary = match &argument[..] {
                    b"binary" => Binary::Tell,
                    b"text" => Binary::Text,
                    b"without-match" => Binary::Skip,
                    _ => return Err(fail("unknown binary-files type")),
                };
            }
            'a' => self.binary = Binary::Text,
            'I' => self.binary = Binary::Skip,
            'm' => self.max_count = max_count(&argument)?,
            'H' => self.with_names = Some(true),
            'h' => self.with_names = Some(false),
            'T' => self.initial_tab = true,
            'Z' => self.null_after_name = true,
            'b' => self.byte_offsets = true,
            'c' => self.count = true,
            'L' => self.listing = Listing::NotMatching,
            'l' => self.listing = Listing::Matching,
            'n' => self.line_numbers = true,
            'o' => self.only_matching = true,
            'q' => self.quiet = true,
            's' => self.silent = true,
            'v' => self.invert = true,
            'z' => self.line_end = 0,
            LABEL => self.label = Some(argument),
            LINE_BUFFERED => self.line_buffered = true,
            SEPARATOR => self.separator = Some(argument),
            NO_SEPARATOR => self.separator = None,
            'u' => complain("grep", "warning: --unix-byte-offsets (-u) is obsolete"),
            // -U is for systems whose lines end otherwise.
            _ => {}
        }
        Ok(())
    }
}

fn compile(patterns: &[Vec<u8>], wishes: &Wishes, options: &Options) -> Result<Regex, i32> {
    let fit = match (wishes.line, wishes.word) {
        (true, _) => Fit::Line,
        (false, true) => Fit::Word,
        (false, false) => Fit::Anywhere,
    };
    let lines = Some(options.line_end);
    if wishes.matcher == Some('P') {
        if patterns.len() > 1 {
            return Err(fail("the -P option only supports a single pattern"));
        }
        let modern = Modern {
            ignore_case: wishes.ignore_case,
            perl: true,
            lines,
            multi_line: false,
            dot_all: options.line_end == 0,
            fit,
            unicode: options.utf8,
        };
        let Some(pattern) = patterns.first() else { return Ok(Options::new(options.utf8)?.regex) };
        let pattern = String::from_utf8_lossy(pattern);
        return Regex::modern(&pattern, &modern).map_err(|error| fail(first_line(&error)));
    }
    let syntax = match wishes.matcher {
        Some('E') => Syntax::Extended,
        Some('F') => Syntax::Fixed,
        _ => Syntax::Basic,
    };
    let how = wardian_regex::Options {
        ignore_case: wishes.ignore_case,
        bytes: !options.utf8,
        lines,
        fit,
        ..wardian_regex::Options::new(syntax)
    };
    let patterns: Vec<&[u8]> = patterns.iter().map(Vec::as_slice).collect();
    let regex = Regex::any_of(&patterns, &how).map_err(|(_, error)| fail(&error))?;
    regex.warnings().iter().for_each(|warning| complain("grep", format_args!("warning: {warning}")));
    Ok(regex)
}

/// What is wrong with a Perl pattern is told in many lines; the last of them says it.
fn first_line(error: &str) -> &str {
    error.lines().rfind(|line| !line.trim().is_empty()).unwrap_or(error)
}

fn lines_of(text: &[u8]) -> Vec<Vec<u8>> {
    text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn read_list(file: &[u8]) -> Result<Vec<u8>, i32> {
    let content = match file {
        b"-" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(Errno::from),
    };
    content.map_err(|error| fail(&format!("{}: {error}", String::from_utf8_lossy(file))))
}

fn context_length(text: &[u8]) -> Result<usize, i32> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match is_number {
        // More lines than there can be are all lines.
        true => Ok(input::number(text).unwrap_or(usize::MAX)),
        false => Err(fail(&format!("{}: invalid context length argument", String::from_utf8_lossy(text)))),
    }
}

/// A negative count is no limit.
fn max_count(text: &[u8]) -> Result<u64, i32> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(fail("invalid max count"));
    }
    Ok(if digits.len() < text.len() { u64::MAX } else { input::number(digits).unwrap_or(u64::MAX) })
}

fn wants_color(when: &[u8]) -> Result<bool, i32> {
    match when {
        b"always" | b"yes" | b"force" => Ok(true),
        b"never" | b"no" | b"none" => Ok(false),
        b"" | b"auto" | b"tty" | b"if-tty" => {
            let is_dumb = std::env::var("TERM").map_or(true, |term| term == "dumb");
            Ok(abi::isatty(1) && !is_dumb)
        }
        // GNU's says how it is called, and finds nothing wrong.
        _ => Err(TOOL.parse(vec![b"--help".to_vec()]).err().unwrap_or(0)),
    }
}

fn usage() -> i32 {
    let text = b"Usage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.\n";
    // There is nowhere left to say that this failed.
    let _ = abi::write_all(2, text);
    2
}

fn fail(message: &str) -> i32 {
    complain("grep", message);
    2
}
