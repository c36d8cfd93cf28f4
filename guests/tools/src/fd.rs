//! `fd`: finds files by their names, leaving out what `.gitignore` says and what is hidden.

use ignore::overrides::OverrideBuilder;
use ignore::{DirEntry, WalkBuilder};
use std::path::Path;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, input, program};
use wardian_abi as abi;
use wardian_regex::{Fit, Modern, Regex};

const TOOL: Tool = Tool {
    name: "fd",
    short: "HIusigFapLl0d:t:e:E:x:X:1qc:hV",
    long: &[
        ("hidden", 'H'),
        ("no-ignore", 'I'),
        ("unrestricted", 'u'),
        ("case-sensitive", 's'),
        ("ignore-case", 'i'),
        ("glob", 'g'),
        ("fixed-strings", 'F'),
        ("absolute-path", 'a'),
        ("full-path", 'p'),
        ("follow", 'L'),
        ("print0", '0'),
        ("max-depth=", 'd'),
        ("min-depth=", 'm'),
        ("exact-depth=", 'D'),
        ("type=", 't'),
        ("extension=", 'e'),
        ("exclude=", 'E'),
        ("exec=", 'x'),
        ("exec-batch=", 'X'),
        ("max-results=", 'r'),
        ("quiet", 'q'),
        ("color=", 'c'),
        ("base-directory=", 'B'),
        ("strip-cwd-prefix", 'S'),
    ],
    help: "\
Usage: fd [OPTION]... [PATTERN] [PATH]...
Find files whose names match PATTERN, a regular expression; all without one.

  -H, --hidden            search hidden files and directories
  -I, --no-ignore         do not respect .(git|fd)ignore files
  -u, --unrestricted      both of these
  -s, --case-sensitive    (without it, a PATTERN without capitals ignores case)
  -i, --ignore-case
  -g, --glob              PATTERN is a glob
  -F, --fixed-strings     PATTERN is plain text
  -p, --full-path         match the whole path
  -a, --absolute-path     print absolute paths
  -L, --follow            follow symbolic links
  -0, --print0            end each path with NUL
  -d, --max-depth N       (also --min-depth, --exact-depth)
  -t, --type TYPE         f file, d directory, l symlink, x executable, e empty
  -e, --extension EXT
  -E, --exclude GLOB
  -x, --exec COMMAND      run COMMAND for each path; {} {/} {//} {.} {/.}
  -X, --exec-batch COMMAND  run COMMAND once, with all paths
  -1, --max-results=N     stop after so many
  -q, --quiet             print nothing; exit with 0 if there is a match
  -h, --help              display this help and exit
  -V, --version           output version information and exit
",
    misuse: 1,
};

#[derive(Default)]
struct Wishes {
    hidden: bool,
    no_ignore: bool,
    case: Option<bool>,
    glob: bool,
    fixed: bool,
    absolute: bool,
    full_path: bool,
    follow: bool,
    null: bool,
    quiet: bool,
    min_depth: usize,
    max_depth: Option<usize>,
    most: usize,
    kinds: Vec<u8>,
    extensions: Vec<Vec<u8>>,
    excluded: Vec<String>,
    /// A command, and whether it is run once for all.
    command: Option<(Vec<Vec<u8>>, bool)>,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn fail(message: impl std::fmt::Display) -> i32 {
    let _ = abi::write_all(2, format!("[fd error]: {message}\n").as_bytes());
    1
}

fn run(mut arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    // A command takes all words up to `;`, or to the end.
    let is_command = |word: &Vec<u8>| matches!(word.as_slice(), b"-x" | b"-X" | b"--exec" | b"--exec-batch");
    let mut command = None;
    if let Some(at) = arguments.iter().position(is_command) {
        let end =
            arguments[at..].iter().position(|word| word == b";").map_or(arguments.len(), |end| at + end);
        let taken: Vec<Vec<u8>> = arguments.drain(at..end).collect();
        if arguments.get(at).is_some_and(|word| word == b";") {
            arguments.remove(at);
        }
        command = Some((taken[1..].to_vec(), matches!(taken[0].as_slice(), b"-X" | b"--exec-batch")));
    }
    let parsed = TOOL.parse(arguments)?;
    let mut wishes = Wishes { most: usize::MAX, command, ..Wishes::default() };
    for (letter, argument) in parsed.options {
        wishes.set(letter, argument.unwrap_or_default())?;
    }
    let mut operands = parsed.operands.into_iter();
    let pattern = operands.next().unwrap_or_default();
    let roots: Vec<Vec<u8>> = operands.collect();
    wishes.search(&String::from_utf8_lossy(&pattern), roots)
}

impl Wishes {
    fn set(&mut self, letter: char, text: Vec<u8>) -> Result<(), i32> {
        let number = || {
            let shown = String::from_utf8_lossy(&text).into_owned();
            input::number::<usize>(&text).ok_or_else(|| fail(format_args!("invalid value '{shown}'")))
        };
        match letter {
            'H' => self.hidden = true,
            'I' => self.no_ignore = true,
            'u' => (self.hidden, self.no_ignore) = (true, true),
            's' => self.case = Some(true),
            'i' => self.case = Some(false),
            'g' => self.glob = true,
            'F' => self.fixed = true,
            'a' => self.absolute = true,
            'p' => self.full_path = true,
            'L' => self.follow = true,
            '0' => self.null = true,
            'q' => self.quiet = true,
            'd' => self.max_depth = Some(number()?),
            'm' => self.min_depth = number()?,
            'D' => (self.min_depth, self.max_depth) = (number()?, Some(number()?)),
            '1' => self.most = 1,
            'r' => self.most = number()?,
            'e' => self.extensions.push(text.strip_prefix(b".").unwrap_or(&text).to_ascii_lowercase()),
            'E' => self.excluded.push(format!("!{}", String::from_utf8_lossy(&text))),
            't' => self.kinds.push(match text.as_slice() {
                b"f" | b"file" => b'f',
                b"d" | b"directory" => b'd',
                b"l" | b"symlink" => b'l',
                b"x" | b"executable" => b'x',
                b"e" | b"empty" => b'e',
                b"p" | b"pipe" => b'p',
                b"s" | b"socket" => b's',
                other => {
                    return Err(fail(format_args!(
                        "invalid value '{}' for '--type'",
                        String::from_utf8_lossy(other)
                    )));
                }
            }),
            'c' if matches!(text.as_slice(), b"never" | b"auto") => {}
            'S' => {}
            'c' => return Err(fail("only --color=never and auto are supported")),
            'l' => return Err(fail("-l is not supported: use -X ls -l")),
            'B' => abi::chdir(abi::Dir::CWD, &text).map_err(fail)?,
            'h' => return Err(TOOL.answer(toolkit::args::Refusal::Help)),
            _ => return Err(TOOL.answer(toolkit::args::Refusal::Version)),
        }
        Ok(())
    }

    fn search(&self, pattern: &str, roots: Vec<Vec<u8>>) -> Result<i32, i32> {
        let regex = self.compile(pattern)?;
        let is_here = roots.is_empty();
        let roots = if is_here { vec![b".".to_vec()] } else { roots };
        let (mut found, mut code) = (Vec::new(), 0);
        for root in &roots {
            if !abi::stat(abi::Dir::CWD, root, true).is_ok_and(|stat| stat.is_dir()) {
                let shown = String::from_utf8_lossy(root);
                fail(format_args!("Search path '{shown}' is not a directory."));
                code = 1;
                continue;
            }
            for entry in self.walker(root)?.build() {
                match entry {
                    Ok(entry) if entry.depth() > 0 && self.fits(&entry, &regex) => {
                        found.push(self.shown(&entry, is_here));
                    }
                    Ok(_) => {}
                    Err(error) => code = fail(error),
                }
                if found.len() >= self.most || self.quiet && !found.is_empty() {
                    break;
                }
            }
        }
        if self.quiet {
            return Ok(i32::from(found.is_empty()));
        }
        match &self.command {
            Some((command, at_once)) => Ok(code.max(execute(command, *at_once, &found))),
            None => {
                let mut out = Out::new("fd");
                for path in found {
                    out.put(path);
                    out.put(if self.null { "\0" } else { "\n" });
                }
                Ok(code)
            }
        }
    }

    fn compile(&self, pattern: &str) -> Result<Regex, i32> {
        let text = match (self.glob, self.fixed) {
            (true, _) => glob_pattern(pattern),
            (_, true) => wardian_regex::escape(pattern),
            _ => pattern.to_owned(),
        };
        let ignore_case = !self.case.unwrap_or_else(|| pattern.chars().any(char::is_uppercase));
        let options = Modern {
            ignore_case,
            perl: false,
            lines: None,
            multi_line: false,
            dot_all: false,
            fit: Fit::Anywhere,
            unicode: true,
        };
        Regex::modern(&text, &options).map_err(fail)
    }

    fn walker(&self, root: &[u8]) -> Result<WalkBuilder, i32> {
        let mut overrides = OverrideBuilder::new(Path::new("."));
        for glob in &self.excluded {
            overrides.add(glob).map_err(fail)?;
        }
        let mut builder = WalkBuilder::new(files::path(root));
        let respects = !self.no_ignore;
        builder
            .hidden(!self.hidden)
            .parents(respects)
            .ignore(respects)
            .git_global(respects)
            .git_ignore(respects)
            .git_exclude(respects)
            .follow_links(self.follow)
            .max_depth(self.max_depth)
            .overrides(overrides.build().map_err(fail)?)
            .sort_by_file_name(|left, right| left.cmp(right));
        if respects {
            builder.add_custom_ignore_filename(".fdignore");
        }
        Ok(builder)
    }

    fn fits(&self, entry: &DirEntry, regex: &Regex) -> bool {
        let path = entry.path().as_os_str().as_encoded_bytes();
        let name = files::base_name(path);
        let matches = match self.full_path {
            true => regex.is_match(&absolute(path)),
            false => regex.is_match(name),
        };
        let extension = name.iter().rposition(|&byte| byte == b'.').filter(|at| *at > 0);
        let extension = extension.map(|at| name[at + 1..].to_ascii_lowercase());
        let has_extension = |wanted: &Vec<u8>| {
            // An extension may have dots in it.
            extension.as_ref() == Some(wanted)
                || name.to_ascii_lowercase().ends_with(&[b".", &wanted[..]].concat())
        };
        matches
            && entry.depth() >= self.min_depth
            && (self.extensions.is_empty() || self.extensions.iter().any(has_extension))
            && self.is_of_kind(path)
    }

    fn is_of_kind(&self, path: &[u8]) -> bool {
        if self.kinds.is_empty() {
            return true;
        }
        let Ok(stat) = abi::stat(abi::Dir::CWD, path, self.follow) else { return false };
        let is_empty = || match stat.is_dir() {
            true => files::names_in(path).is_ok_and(|names| names.is_empty()),
            false => stat.is_file() && stat.size == 0,
        };
        let plain: Vec<u8> = self.kinds.iter().copied().filter(|kind| *kind != b'e').collect();
        let fits = |kind: &u8| match kind {
            b'f' => stat.is_file(),
            b'd' => stat.is_dir(),
            b'l' => stat.is_symlink(),
            b'x' => stat.is_file() && abi::access(abi::Dir::CWD, path, 1).is_ok(),
            b'p' => stat.is_fifo(),
            _ => stat.is_socket(),
        };
        (plain.is_empty() || plain.iter().any(fits)) && (!self.kinds.contains(&b'e') || is_empty())
    }

    /// A path as it is printed: a directory has a slash behind it.
    fn shown(&self, entry: &DirEntry, is_here: bool) -> Vec<u8> {
        let path = entry.path().as_os_str().as_encoded_bytes();
        let mut shown = match (self.absolute, is_here) {
            (true, _) => absolute(path),
            (_, true) => path.strip_prefix(b"./").unwrap_or(path).to_vec(),
            _ => path.to_vec(),
        };
        if entry.file_type().is_some_and(|kind| kind.is_dir()) {
            shown.push(b'/');
        }
        shown
    }
}

fn absolute(path: &[u8]) -> Vec<u8> {
    let path = path.strip_prefix(b"./").unwrap_or(path);
    match path.starts_with(b"/") {
        true => path.to_vec(),
        false => files::join(&abi::getcwd().unwrap_or_default(), path),
    }
}

/// A glob for whole names, as a regular expression.
fn glob_pattern(glob: &str) -> String {
    let mut text = String::from("^(?:");
    let mut braces = 0;
    let mut chars = glob.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '*' => {
                let is_double = chars.next_if_eq(&'*').is_some();
                text += if is_double { ".*" } else { "[^/]*" };
            }
            '?' => text += "[^/]",
            '[' => {
                text.push('[');
                if chars.next_if_eq(&'!').is_some() {
                    text.push('^');
                }
                for inner in chars.by_ref() {
                    text.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '{' => {
                braces += 1;
                text += "(?:";
            }
            '}' if braces > 0 => {
                braces -= 1;
                text.push(')');
            }
            ',' if braces > 0 => text.push('|'),
            other => text += &wardian_regex::escape(&other.to_string()),
        }
    }
    text + ")$"
}

/// Runs a command for each path, or once for all; the worst exit code.
fn execute(command: &[Vec<u8>], at_once: bool, paths: &[Vec<u8>]) -> i32 {
    if command.is_empty() {
        return fail("a command is missing");
    }
    if paths.is_empty() {
        return 0;
    }
    let mut code = 0;
    let groups: Vec<&[Vec<u8>]> = if at_once { vec![paths] } else { paths.chunks(1).collect() };
    for group in groups {
        let mut words = Vec::new();
        let has_place =
            command.iter().any(|word| PLACES.iter().any(|place| memchr::memmem::find(word, place).is_some()));
        for word in command {
            match PLACES.iter().any(|place| memchr::memmem::find(word, place).is_some()) {
                true => words.extend(group.iter().map(|path| filled(word, path))),
                false => words.push(word.clone()),
            }
        }
        if !has_place {
            words.extend(group.iter().map(|path| path.strip_suffix(b"/").unwrap_or(path).to_vec()));
        }
        match program::spawn(&words, &abi::environ(), abi::Spawn::default()) {
            Ok(child) => code = code.max(i32::from(program::wait_for(child).shell_code() != 0)),
            Err(error) => {
                complain("fd", format_args!("{}: {error}", String::from_utf8_lossy(&words[0])));
                code = 1;
            }
        }
    }
    code
}

const PLACES: [&[u8]; 5] = [b"{}", b"{/}", b"{//}", b"{.}", b"{/.}"];

/// A word with its places filled.
fn filled(word: &[u8], path: &[u8]) -> Vec<u8> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let stem = |text: &[u8]| {
        let base = text.len() - files::base_name(text).len();
        match text[base..].iter().rposition(|&byte| byte == b'.').filter(|at| *at > 0) {
            Some(at) => text[..base + at].to_vec(),
            None => text.to_vec(),
        }
    };
    let base = files::base_name(path);
    let values: [Vec<u8>; 5] = [path.to_vec(), base.to_vec(), files::parent(path), stem(path), stem(base)];
    let mut text = Vec::new();
    let mut at = 0;
    while at < word.len() {
        match PLACES.iter().position(|place| word[at..].starts_with(place)) {
            Some(which) => {
                text.extend_from_slice(&values[which]);
                at += PLACES[which].len();
            }
            None => {
                text.push(word[at]);
                at += 1;
            }
        }
    }
    text
}
