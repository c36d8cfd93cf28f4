//! The command line.

use toolkit::args::Tool;
use toolkit::{complain, files, input};
use wardian_abi as abi;
use wardian_abi::Errno;
use wardian_regex::{Fit, Modern, Regex};

/// A long option and the sign that stands for it; those without a letter have one from beyond ASCII.
const LONG: &[(&str, char)] = &[
    ("after-context=", 'A'),
    ("before-context=", 'B'),
    ("binary", 'α'),
    ("block-buffered", IGNORED),
    ("byte-offset", 'b'),
    ("case-sensitive", 's'),
    ("color=", 'β'),
    ("column", 'γ'),
    ("no-column", 'δ'),
    ("context=", 'C'),
    ("context-separator=", 'ε'),
    ("no-context-separator", 'ζ'),
    ("count", 'c'),
    ("count-matches", 'η'),
    ("encoding=", 'E'),
    ("field-context-separator=", 'θ'),
    ("field-match-separator=", 'ι'),
    ("file=", 'f'),
    ("files", 'κ'),
    ("files-with-matches", 'l'),
    ("files-without-match", 'λ'),
    ("fixed-strings", 'F'),
    ("no-fixed-strings", 'Ш'),
    ("follow", 'L'),
    ("no-follow", 'Ю'),
    ("glob=", 'g'),
    ("glob-case-insensitive", 'μ'),
    ("heading", 'ν'),
    ("hidden", '.'),
    ("no-hidden", 'Я'),
    ("iglob=", 'ξ'),
    ("ignore-case", 'i'),
    ("ignore-file=", 'ο'),
    ("include-zero", 'π'),
    ("invert-match", 'v'),
    ("json", 'ρ'),
    ("line-buffered", 'σ'),
    ("line-number", 'n'),
    ("line-regexp", 'x'),
    ("max-columns=", 'M'),
    ("max-columns-preview", 'τ'),
    ("max-count=", 'm'),
    ("max-depth=", 'd'),
    ("maxdepth=", 'd'),
    ("max-filesize=", 'υ'),
    ("mmap", IGNORED),
    ("multiline", 'U'),
    ("no-multiline", 'Э'),
    ("multiline-dotall", 'φ'),
    ("no-config", IGNORED),
    ("no-filename", 'I'),
    ("no-heading", 'χ'),
    ("no-ignore", 'ψ'),
    ("no-ignore-dot", 'ω'),
    ("no-ignore-exclude", 'Γ'),
    ("no-ignore-files", 'Δ'),
    ("no-ignore-global", 'Θ'),
    ("no-ignore-messages", IGNORED),
    ("no-ignore-parent", 'Λ'),
    ("no-ignore-vcs", 'Ξ'),
    ("no-line-number", 'N'),
    ("no-messages", 'Π'),
    ("no-mmap", IGNORED),
    ("no-require-git", 'Σ'),
    ("no-unicode", 'Φ'),
    ("null", '0'),
    ("null-data", 'Ψ'),
    ("one-file-system", IGNORED),
    ("only-matching", 'o'),
    ("passthru", 'Ω'),
    ("passthrough", 'Ω'),
    ("pcre2", 'P'),
    ("no-pcre2", 'Ж'),
    ("pretty", 'p'),
    ("quiet", 'q'),
    ("regexp=", 'e'),
    ("replace=", 'r'),
    ("search-zip", 'z'),
    ("smart-case", 'S'),
    ("sort=", 'Б'),
    ("sortr=", 'Г'),
    ("stats", 'Д'),
    ("text", 'a'),
    ("threads=", 'j'),
    ("trim", 'З'),
    ("type=", 't'),
    ("type-add=", 'И'),
    ("type-clear=", 'Й'),
    ("type-list", 'Л'),
    ("type-not=", 'T'),
    ("unrestricted", 'u'),
    ("vimgrep", 'П'),
    ("with-filename", 'H'),
    ("word-regexp", 'w'),
];

/// Changes nothing here.
const IGNORED: char = 'Ц';

const TOOL: Tool = Tool {
    name: "rg",
    short: ".0A:B:C:E:FHILM:NPST:UVabcd:e:f:g:hij:lm:nopqr:st:uvwxz",
    long: LONG,
    help: "\
Usage: rg [OPTIONS] PATTERN [PATH ...]
       rg [OPTIONS] -e PATTERN ... [PATH ...]
       rg [OPTIONS] -f PATTERNFILE ... [PATH ...]
       rg [OPTIONS] --files [PATH ...]
       rg [OPTIONS] --type-list
       command | rg [OPTIONS] PATTERN
Search the current directory recursively for lines matching a regular
expression, as ripgrep does: files named by .gitignore, .ignore and .rgignore,
hidden files and binary files are left out.

What to look for:
  -e, --regexp=PATTERN       a pattern; may be given several times
  -f, --file=FILE            patterns from a file, one a line
  -F, --fixed-strings        patterns are plain text
  -i, --ignore-case          -s, --case-sensitive    -S, --smart-case
  -v, --invert-match         lines that do not match
  -w, --word-regexp          whole words             -x, --line-regexp  whole lines
  -P, --pcre2                look-around and back-references
  -U, --multiline            matches may span lines; --multiline-dotall: . too
  -m, --max-count=NUM        at most so many lines of a file
      --no-unicode, --null-data

Where to look:
  -g, --glob=GLOB            only (or with !, no) files that match; --iglob=GLOB
  -t, --type=TYPE            only files of a type; -T, --type-not=TYPE
      --type-list, --type-add=SPEC, --type-clear=TYPE
  -u, --unrestricted         --no-ignore; -uu: --hidden too; -uuu: --binary too
  -., --hidden               hidden files too
      --no-ignore            what ignore files name too; also --no-ignore-vcs,
                             -dot, -parent, -exclude, -global, -files
      --ignore-file=PATH, --no-require-git
  -L, --follow               follow symbolic links
  -d, --max-depth=NUM, --max-filesize=NUM[KMG]
  -a, --text                 binary files as text; --binary
      --files                print the files that would be searched

What to print:
  -A, -B, -C NUM             lines after, before, around a match
  -n, --line-number, -N, --no-line-number, --column, -b, --byte-offset
  -H, --with-filename, -I, --no-filename, --heading, --no-heading
  -c, --count, --count-matches, --include-zero
  -l, --files-with-matches, --files-without-match, -0, --null
  -o, --only-matching, -r, --replace=TEXT, --passthru, --trim
  -M, --max-columns=NUM, --max-columns-preview
  -q, --quiet, --stats, --json, --vimgrep, -p, --pretty
      --color=WHEN, --sort=KEY, --sortr=KEY, --context-separator=TEXT,
      --field-match-separator=TEXT, --field-context-separator=TEXT
      --no-messages, --line-buffered
  -h, --help     display this help and exit
  -V, --version  output version information and exit
",
    misuse: 2,
};

/// What is printed of a file.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    Lines,
    Count,
    CountMatches,
    Matching,
    NotMatching,
    Quiet,
    Json,
    /// The files that would be searched.
    Files,
    Types,
}

/// In which order files are searched.
#[derive(Clone, Copy, PartialEq)]
pub enum Sort {
    Path,
    Modified,
    Accessed,
    Created,
}

/// What the command line says.
pub struct Options {
    pub mode: Mode,
    pub patterns: Vec<String>,
    pub paths: Vec<Vec<u8>>,
    pub fixed: bool,
    pub case: char,
    pub fit: Fit,
    pub perl: bool,
    pub multiline: bool,
    pub dot_all: bool,
    pub unicode: bool,
    pub line_end: u8,
    pub invert: bool,
    pub max_count: u64,
    pub before: Option<usize>,
    pub after: Option<usize>,
    pub passthru: bool,
    pub line_numbers: Option<bool>,
    pub column: Option<bool>,
    pub byte_offset: bool,
    pub with_names: Option<bool>,
    pub heading: Option<bool>,
    pub null: bool,
    pub only_matching: bool,
    pub replacement: Option<Vec<u8>>,
    pub trim: bool,
    pub max_columns: usize,
    pub preview: bool,
    pub vimgrep: bool,
    pub stats: bool,
    pub color: bool,
    pub include_zero: bool,
    pub line_buffered: bool,
    pub silent: bool,
    pub context_separator: Option<Vec<u8>>,
    pub match_separator: Vec<u8>,
    pub field_separator: Vec<u8>,
    pub text: bool,
    pub binary: bool,
    pub walk: Walking,
}

/// Which files are met.
#[derive(Default)]
pub struct Walking {
    pub hidden: bool,
    pub follow: bool,
    pub max_depth: Option<usize>,
    pub max_filesize: Option<u64>,
    pub globs: Vec<String>,
    pub iglobs: Vec<String>,
    pub globs_ignore_case: bool,
    /// Types to take (`true`) or leave out, and changes to the list of types.
    pub types: Vec<(String, bool)>,
    pub type_changes: Vec<(char, String)>,
    pub ignore_files: Vec<Vec<u8>>,
    pub no_ignore: bool,
    pub no_ignore_dot: bool,
    pub no_ignore_exclude: bool,
    pub no_ignore_files: bool,
    pub no_ignore_global: bool,
    pub no_ignore_parent: bool,
    pub no_ignore_vcs: bool,
    pub no_require_git: bool,
    pub sort: Option<(Sort, bool)>,
}

impl Options {
    fn new() -> Options {
        Options {
            mode: Mode::Lines,
            patterns: Vec::new(),
            paths: Vec::new(),
            fixed: false,
            case: 's',
            fit: Fit::Anywhere,
            perl: false,
            multiline: false,
            dot_all: false,
            unicode: true,
            line_end: b'\n',
            invert: false,
            max_count: u64::MAX,
            before: None,
            after: None,
            passthru: false,
            line_numbers: None,
            column: None,
            byte_offset: false,
            with_names: None,
            heading: None,
            null: false,
            only_matching: false,
            replacement: None,
            trim: false,
            max_columns: 0,
            preview: false,
            vimgrep: false,
            stats: false,
            color: abi::isatty(1) && has_colors(),
            include_zero: false,
            line_buffered: false,
            silent: false,
            context_separator: Some(b"--".to_vec()),
            match_separator: b":".to_vec(),
            field_separator: b"-".to_vec(),
            text: false,
            binary: false,
            walk: Walking::default(),
        }
    }

    /// Takes a command line apart. The error is the exit code: what there was to say has been said.
    pub fn parse(arguments: Vec<Vec<u8>>) -> Result<Options, i32> {
        let parsed = TOOL.parse(arguments)?;
        let mut options = Options::new();
        let mut wishes = Wishes::default();
        for (letter, argument) in parsed.options {
            options.set(letter, argument.unwrap_or_default(), &mut wishes)?;
        }
        let mut operands = parsed.operands;
        let needs_pattern = !matches!(options.mode, Mode::Files | Mode::Types);
        if needs_pattern && !wishes.has_patterns {
            if operands.is_empty() {
                return Err(TOOL.wrong("a PATTERN is required"));
            }
            options.patterns.push(text_of(operands.remove(0))?);
        }
        options.paths = operands;
        options.before = options.before.or(wishes.context);
        options.after = options.after.or(wishes.context);
        if wishes.unrestricted > 0 {
            options.walk.no_ignore = true;
        }
        options.walk.hidden |= wishes.unrestricted > 1;
        options.binary |= wishes.unrestricted > 2;
        if options.vimgrep {
            options.with_names.get_or_insert(true);
            options.line_numbers.get_or_insert(true);
            options.column.get_or_insert(true);
        }
        Ok(options)
    }

    fn set(&mut self, letter: char, argument: Vec<u8>, wishes: &mut Wishes) -> Result<(), i32> {
        match letter {
            'e' => {
                self.patterns.push(text_of(argument)?);
                wishes.has_patterns = true;
            }
            'f' => {
                let text = text_of(read_file(&argument)?)?;
                self.patterns.extend(text.lines().map(str::to_owned));
                wishes.has_patterns = true;
            }
            'C' => wishes.context = Some(number(letter, &argument)?),
            'u' => wishes.unrestricted += 1,
            'h' => return Err(TOOL.parse(vec![b"--help".to_vec()]).err().unwrap_or(0)),
            'V' => return Err(TOOL.parse(vec![b"--version".to_vec()]).err().unwrap_or(0)),
            'F' => self.fixed = true,
            'Ш' => self.fixed = false,
            'i' | 's' | 'S' => self.case = letter,
            'w' => self.fit = Fit::Word,
            'x' => self.fit = Fit::Line,
            'P' => self.perl = true,
            'Ж' => self.perl = false,
            'U' => self.multiline = true,
            'Э' => self.multiline = false,
            'φ' => self.dot_all = true,
            'Φ' => self.unicode = false,
            'Ψ' => self.line_end = 0,
            'v' => self.invert = true,
            'm' => self.max_count = number(letter, &argument)? as u64,
            'a' => self.text = true,
            'α' => self.binary = true,
            _ => return self.set_output(letter, argument),
        }
        Ok(())
    }

    fn set_output(&mut self, letter: char, argument: Vec<u8>) -> Result<(), i32> {
        match letter {
            'A' => self.after = Some(number(letter, &argument)?),
            'B' => self.before = Some(number(letter, &argument)?),
            'c' => self.mode = Mode::Count,
            'η' => self.mode = Mode::CountMatches,
            'l' => self.mode = Mode::Matching,
            'λ' => self.mode = Mode::NotMatching,
            'q' => self.mode = Mode::Quiet,
            'ρ' => self.mode = Mode::Json,
            'κ' => self.mode = Mode::Files,
            'Л' => self.mode = Mode::Types,
            'n' => self.line_numbers = Some(true),
            'N' => self.line_numbers = Some(false),
            'γ' => self.column = Some(true),
            'δ' => self.column = Some(false),
            'b' => self.byte_offset = true,
            'H' => self.with_names = Some(true),
            'I' => self.with_names = Some(false),
            'ν' => self.heading = Some(true),
            'χ' => self.heading = Some(false),
            '0' => self.null = true,
            'o' => self.only_matching = true,
            'r' => self.replacement = Some(argument),
            'З' => self.trim = true,
            'M' => self.max_columns = number(letter, &argument)?,
            'τ' => self.preview = true,
            'П' => self.vimgrep = true,
            'Ω' => self.passthru = true,
            'Д' => self.stats = true,
            'π' => self.include_zero = true,
            'σ' => self.line_buffered = true,
            'Π' => self.silent = true,
            'ε' => self.context_separator = Some(unescaped(&argument)),
            'ζ' => self.context_separator = None,
            'ι' => self.match_separator = unescaped(&argument),
            'θ' => self.field_separator = unescaped(&argument),
            'p' => {
                self.color = has_colors();
                self.heading = Some(true);
                self.line_numbers = Some(true);
            }
            'β' => {
                self.color = match &argument[..] {
                    b"always" | b"ansi" => true,
                    b"never" => false,
                    b"auto" => self.color,
                    _ => return Err(wrong_value("color", &argument)),
                };
            }
            'z' => return Err(fail("--search-zip is not supported: unpack the files first")),
            'E' if !matches!(&argument[..], b"auto" | b"none" | b"utf-8" | b"utf8" | b"UTF-8") => {
                return Err(fail("--encoding: only UTF-8 is supported; convert the files with iconv first"));
            }
            _ => return self.walk.set(letter, argument),
        }
        Ok(())
    }

    /// The pattern that stands for all of them.
    pub fn compile(&self) -> Result<Regex, String> {
        let written = self.patterns.iter().map(|pattern| match self.fixed {
            true => wardian_regex::escape(pattern),
            false => pattern.clone(),
        });
        let written: Vec<String> = written.collect();
        let whole = match &written[..] {
            [one] => one.clone(),
            // None of no patterns matches.
            [] => "[a&&b]".to_owned(),
            many => many.iter().map(|one| format!("(?:{one})")).collect::<Vec<_>>().join("|"),
        };
        let has_upper = |pattern: &String| has_upper_case(pattern, self.fixed);
        let ignore_case = match self.case {
            'i' => true,
            'S' => !self.patterns.iter().any(has_upper),
            _ => false,
        };
        let modern = Modern {
            ignore_case,
            perl: self.perl,
            lines: (!self.multiline).then_some(self.line_end),
            multi_line: true,
            dot_all: self.multiline && self.dot_all,
            fit: self.fit,
            unicode: self.unicode,
        };
        Regex::modern(&whole, &modern)
    }
}

/// Whether the terminal has colors, and they are wanted.
fn has_colors() -> bool {
    std::env::var("TERM").is_ok_and(|term| term != "dumb") && std::env::var_os("NO_COLOR").is_none()
}

/// What is gathered before it is known what it means.
#[derive(Default)]
struct Wishes {
    has_patterns: bool,
    context: Option<usize>,
    unrestricted: usize,
}

impl Walking {
    fn set(&mut self, letter: char, argument: Vec<u8>) -> Result<(), i32> {
        match letter {
            '.' => self.hidden = true,
            'Я' => self.hidden = false,
            'L' => self.follow = true,
            'Ю' => self.follow = false,
            'd' => self.max_depth = Some(number(letter, &argument)?),
            'υ' => self.max_filesize = Some(file_size(&argument)?),
            'g' => self.globs.push(text_of(argument)?),
            'ξ' => self.iglobs.push(text_of(argument)?),
            'μ' => self.globs_ignore_case = true,
            't' => self.types.push((text_of(argument)?, true)),
            'T' => self.types.push((text_of(argument)?, false)),
            'И' | 'Й' => self.type_changes.push((letter, text_of(argument)?)),
            'ο' => self.ignore_files.push(argument),
            'ψ' => self.no_ignore = true,
            'ω' => self.no_ignore_dot = true,
            'Γ' => self.no_ignore_exclude = true,
            'Δ' => self.no_ignore_files = true,
            'Θ' => self.no_ignore_global = true,
            'Λ' => self.no_ignore_parent = true,
            'Ξ' => self.no_ignore_vcs = true,
            'Σ' => self.no_require_git = true,
            'Б' | 'Г' => {
                let key = match &argument[..] {
                    b"path" => Some(Sort::Path),
                    b"modified" => Some(Sort::Modified),
                    b"accessed" => Some(Sort::Accessed),
                    b"created" => Some(Sort::Created),
                    b"none" => None,
                    _ => return Err(wrong_value("sort", &argument)),
                };
                self.sort = key.map(|key| (key, letter == 'Г'));
            }
            // Threads, maps and buffers make no difference to what is found.
            _ => {}
        }
        Ok(())
    }
}

/// Whether a pattern asks for upper case: escapes like `\W` do not.
fn has_upper_case(pattern: &str, fixed: bool) -> bool {
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' if !fixed => {
                let is_property = matches!(chars.next(), Some('p' | 'P'));
                if is_property && chars.clone().next() == Some('{') {
                    chars.by_ref().find(|char| *char == '}');
                }
            }
            char if char.is_uppercase() => return true,
            _ => {}
        }
    }
    false
}

fn text_of(bytes: Vec<u8>) -> Result<String, i32> {
    String::from_utf8(bytes).map_err(|_| fail("a pattern, glob or type must be valid UTF-8"))
}

fn read_file(file: &[u8]) -> Result<Vec<u8>, i32> {
    let content = match file {
        b"-" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(Errno::from),
    };
    content.map_err(|error| {
        let name = String::from_utf8_lossy(file);
        super::complain_plainly(&format!("{name}: {}", super::with_number(error)));
        2
    })
}

fn number(letter: char, text: &[u8]) -> Result<usize, i32> {
    input::number(text).ok_or_else(|| {
        let given = String::from_utf8_lossy(text);
        fail(&format!("error parsing -{letter}: '{given}' is not a number"))
    })
}

/// A number of bytes, with `K`, `M` or `G` behind it.
fn file_size(text: &[u8]) -> Result<u64, i32> {
    let (digits, unit) = match text {
        [digits @ .., b'K'] => (digits, 1 << 10),
        [digits @ .., b'M'] => (digits, 1 << 20),
        [digits @ .., b'G'] => (digits, 1u64 << 30),
        digits => (digits, 1),
    };
    let size = input::number(digits).and_then(|number: u64| number.checked_mul(unit));
    size.ok_or_else(|| wrong_value("max-filesize", text))
}

/// `\t`, `\n`, `\\` and `\x41` in a separator.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let escaped = if text[at] == b'\\' { wardian_regex::byte_of(&text[at + 1..]) } else { None };
        match escaped {
            Some((byte, length)) => {
                plain.push(byte);
                at += 1 + length;
            }
            None => {
                at += usize::from(text[at..].starts_with(b"\\\\"));
                plain.push(text[at]);
                at += 1;
            }
        }
    }
    plain
}

fn wrong_value(option: &str, given: &[u8]) -> i32 {
    fail(&format!("'{}' isn't a valid value for '--{option}'", String::from_utf8_lossy(given)))
}

fn fail(message: &str) -> i32 {
    complain("rg", message);
    2
}
