//! `tree`: directories as a drawing.

use std::collections::HashSet;
use toolkit::args::{Tool, bytes_of};
use toolkit::mode;
use toolkit::out::Out;
use toolkit::size::human;
use toolkit::{Arguments, complain, files, glob, input};
use wardian_abi as abi;
use wardian_abi::{Dir, Stat};

const TOOL: Tool = Tool {
    name: "tree",
    short: "adfFiJL:I:P:shpnCNQrtUvl",
    long: &[
        ("noreport", 'R'),
        ("dirsfirst", 'D'),
        ("prune", 'E'),
        ("charset=", 'S'),
        ("filelimit=", 'M'),
        ("ignore-case", 'c'),
    ],
    help: "\
usage: tree [-adfFiprstCNQ] [-L level] [-I pattern] [-P pattern] [-h] [-s]
            [--noreport] [--dirsfirst] [--prune] [directory ...]
  -a            All files are listed.
  -d            List directories only.
  -f            Print the full path prefix for each file.
  -F            Appends '/', '=', '*', '@' or '|' as per ls -F.
  -i            Don't print indentation lines.
  -L level      Descend only level directories deep.
  -P pattern    List only those files that match the pattern given.
  -I pattern    Do not list files that match the given pattern.
  -p            Print the protections for each file.
  -s            Print the size in bytes of each file.
  -h            Print the size in a more human readable way.
  -r            Sort files in reverse order.
  -t            Sort files by last modification time.
  -U            Leave files unsorted.
  -v            Sort files by version numbers in their names.
  -l            Follow symbolic links to directories.
  -Q            Put names in double quotes.
  -J            Print a description in JSON.
  --charset X   Draw with ASCII characters if X is not UTF-8.
  --filelimit # Do not descend directories with more than # files.
  --dirsfirst   List directories before files.
  --prune       Prune empty directories from the output.
  --noreport    Turn off file/directory count at end of tree listing.
",
    misuse: 1,
};

#[derive(Default)]
struct Options {
    all: bool,
    directories_only: bool,
    full_path: bool,
    classify: bool,
    plain: bool,
    level: Option<usize>,
    wanted: Vec<Vec<u8>>,
    unwanted: Vec<Vec<u8>>,
    size: bool,
    human: bool,
    protections: bool,
    reverse: bool,
    by_time: bool,
    directories_first: bool,
    prune: bool,
    no_report: bool,
    fold: bool,
    is_unsorted: bool,
    by_version: bool,
    follows: bool,
    quotes: bool,
    json: bool,
    ascii: bool,
    most_files: Option<usize>,
}

struct Tree {
    options: Options,
    out: Out,
    directories: usize,
    files: usize,
    /// The directories that were shown.
    visited: HashSet<(u64, u64)>,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut options = Options::default();
    for (letter, text) in parsed.options {
        options.set(letter, text.unwrap_or_default())?;
    }
    let operands = if parsed.operands.is_empty() { vec![b".".to_vec()] } else { parsed.operands };
    let mut tree = Tree { options, out: Out::new("tree"), directories: 0, files: 0, visited: HashSet::new() };
    let mut code = 0;
    let json = tree.options.json;
    if json {
        tree.put_json("[", "");
    }
    for (at, operand) in operands.iter().enumerate() {
        if json && at > 0 {
            tree.out.put(",");
        }
        code |= tree.operand(operand);
    }
    match (json, tree.options.no_report) {
        (true, no_report) => tree.end_json(!no_report),
        (false, false) => tree.report(),
        (false, true) => {}
    }
    Ok(code)
}

/// Which file a path leads to.
fn place(path: &[u8]) -> Option<(u64, u64)> {
    abi::stat(Dir::CWD, path, true).ok().map(|stat| (stat.dev, stat.ino))
}

impl Options {
    fn set(&mut self, letter: char, text: Vec<u8>) -> Result<(), i32> {
        match letter {
            'a' => self.all = true,
            'd' => self.directories_only = true,
            'f' => self.full_path = true,
            'F' => self.classify = true,
            'i' => self.plain = true,
            'L' => match input::number(&text).filter(|level| *level > 0) {
                Some(level) => self.level = Some(level),
                None => {
                    complain("tree", "Invalid level, must be greater than 0.");
                    return Err(1);
                }
            },
            'I' => self.unwanted.extend(text.split(|&byte| byte == b'|').map(<[u8]>::to_vec)),
            'P' => self.wanted.extend(text.split(|&byte| byte == b'|').map(<[u8]>::to_vec)),
            's' => self.size = true,
            'h' => (self.size, self.human) = (true, true),
            'p' => self.protections = true,
            'r' => self.reverse = true,
            't' => self.by_time = true,
            'D' => self.directories_first = true,
            'E' => self.prune = true,
            'R' => self.no_report = true,
            'c' => self.fold = true,
            'U' => self.is_unsorted = true,
            'v' => self.by_version = true,
            'l' => self.follows = true,
            'Q' => self.quotes = true,
            'J' => self.json = true,
            'S' => self.ascii = !text.eq_ignore_ascii_case(b"utf-8") && !text.eq_ignore_ascii_case(b"utf8"),
            'M' => match input::number(&text) {
                Some(most) => self.most_files = Some(most).filter(|most| *most > 0),
                None => {
                    complain("tree", "missing argument to --filelimit=");
                    return Err(1);
                }
            },
            _ => {}
        }
        Ok(())
    }

    fn shows(&self, name: &[u8], is_dir: bool, stat: &Stat) -> bool {
        let matches = |pattern: &Vec<u8>| {
            let pattern = pattern.strip_suffix(b"/").unwrap_or(pattern);
            glob::matches(pattern, name, self.fold)
        };
        (self.all || !name.starts_with(b"."))
            && (is_dir || !self.directories_only)
            && (stat.is_dir() || self.wanted.is_empty() || self.wanted.iter().any(matches))
            && !self.unwanted.iter().any(matches)
    }
}

/// A file below a directory.
struct Entry {
    name: Vec<u8>,
    path: Vec<u8>,
    stat: Stat,
    /// It is one, or a link to one.
    is_dir: bool,
}

impl Tree {
    fn operand(&mut self, operand: &[u8]) -> i32 {
        let stat = abi::stat(Dir::CWD, operand, true);
        let details = match &stat {
            Ok(stat) => self.details(stat),
            Err(_) => String::new(),
        };
        if self.options.json {
            return self.operand_in_json(operand, stat.ok());
        }
        let shown = String::from_utf8_lossy(operand);
        if !stat.is_ok_and(|stat| stat.is_dir()) {
            self.out.put(format!("{details}{shown}  [error opening dir]\n"));
            return 2;
        }
        let mark = if self.options.classify && !operand.ends_with(b"/") { "/" } else { "" };
        self.count_operand(operand);
        let shown = if self.options.quotes { format!("\"{shown}\"") } else { shown.into_owned() };
        match self.opened(operand, 1) {
            Err(reason) => self.out.put(format!("{details}{shown}{mark}  [{reason}]\n")),
            Ok(entries) => {
                self.out.put(format!("{details}{shown}{mark}\n"));
                self.visited.extend(place(operand));
                self.below(entries, "", 1);
            }
        }
        0
    }

    fn entries(&self, directory: &[u8]) -> Vec<Entry> {
        let names = files::names_in(directory).unwrap_or_default();
        let entry = |name: Vec<u8>| {
            let path = files::join(directory, &name);
            let stat = abi::stat(Dir::CWD, &path, false).ok()?;
            let is_dir = abi::stat(Dir::CWD, &path, true).is_ok_and(|stat| stat.is_dir());
            self.options.shows(&name, is_dir, &stat).then_some(Entry { name, path, stat, is_dir })
        };
        let mut entries: Vec<Entry> = names.into_iter().filter_map(entry).collect();
        if self.options.is_unsorted {
            return self.pruned(entries);
        }
        entries.sort_by(|left, right| {
            let by_name = || match self.options.by_version {
                true => toolkit::version::compare(&left.name, &right.name),
                false => left.name.cmp(&right.name),
            };
            let order = match self.options.by_time {
                true => left.stat.mtime.cmp(&right.stat.mtime).then_with(by_name),
                false => by_name(),
            };
            let order = if self.options.reverse { order.reverse() } else { order };
            let first = self.options.directories_first.then(|| right.is_dir.cmp(&left.is_dir));
            first.unwrap_or(std::cmp::Ordering::Equal).then(order)
        });
        self.pruned(entries)
    }

    fn pruned(&self, mut entries: Vec<Entry>) -> Vec<Entry> {
        if self.options.prune {
            entries.retain(|entry| !entry.stat.is_dir() || self.has_files(&entry.path));
        }
        entries
    }

    fn has_files(&self, directory: &[u8]) -> bool {
        self.entries(directory).iter().any(|entry| !entry.stat.is_dir() || self.has_files(&entry.path))
    }

    /// What a directory holds, unless that is not to be shown: nothing then, and the reason.
    fn opened(&self, directory: &[u8], depth: usize) -> Result<Vec<Entry>, String> {
        if self.options.level.is_some_and(|level| depth > level) {
            return Ok(Vec::new());
        }
        let entries = self.entries(directory);
        match self.options.most_files {
            Some(most) if entries.len() > most => {
                Err(format!("{} entries exceeds filelimit, not opening dir", entries.len()))
            }
            _ => Ok(entries),
        }
    }

    /// Whether a directory is descended: a link to one only if asked for, and if that was not shown yet.
    fn descends(&mut self, entry: &Entry) -> Result<bool, &'static str> {
        if !entry.is_dir || !(entry.stat.is_dir() || self.options.follows) {
            return Ok(false);
        }
        let is_new = place(&entry.path).is_none_or(|place| self.visited.insert(place));
        match is_new || entry.stat.is_dir() {
            true => Ok(true),
            false => Err("recursive, not followed"),
        }
    }

    fn below(&mut self, entries: Vec<Entry>, indent: &str, depth: usize) {
        let count = entries.len();
        for (at, entry) in entries.into_iter().enumerate() {
            let (branch, next) = match (at + 1 == count, self.options.ascii) {
                _ if self.options.plain => ("", ""),
                (true, false) => ("└── ", "    "),
                (false, false) => ("├── ", "│\u{a0}\u{a0} "),
                (true, true) => ("`-- ", "    "),
                (false, true) => ("|-- ", "|   "),
            };
            let line = format!("{indent}{branch}{}{}", self.details(&entry.stat), self.name(&entry));
            self.count(&entry);
            let inside = match self.descends(&entry) {
                Ok(true) => self.opened(&entry.path, depth + 1),
                Ok(false) => Ok(Vec::new()),
                Err(reason) => Err(reason.to_owned()),
            };
            match inside {
                Err(reason) => self.out.put(format!("{line}  [{reason}]\n")),
                Ok(inside) => {
                    self.out.put(line + "\n");
                    self.below(inside, &format!("{indent}{next}"), depth + 1);
                }
            }
        }
    }

    /// A directory that was named counts unless it is empty.
    fn count_operand(&mut self, operand: &[u8]) {
        let is_empty = self.opened(operand, 1).is_ok_and(|entries| entries.is_empty());
        self.directories += usize::from(!is_empty);
    }

    fn count(&mut self, entry: &Entry) {
        if entry.is_dir {
            self.directories += 1;
        } else {
            self.files += 1;
        }
    }

    /// What is known of a file, in brackets.
    fn details(&self, stat: &Stat) -> String {
        let mut parts = Vec::new();
        if self.options.protections {
            parts.push(mode::letters(stat.mode));
        }
        if self.options.size {
            parts.push(match self.options.human {
                true => format!("{:>4}", human(u128::from(stat.size), 1024)),
                false => format!("{:>11}", stat.size),
            });
        }
        if parts.is_empty() { String::new() } else { format!("[{}]  ", parts.join(" ")) }
    }

    fn name(&self, entry: &Entry) -> String {
        let name = if self.options.full_path { &entry.path } else { &entry.name };
        let quoted = |text: &[u8]| match self.options.quotes {
            true => format!("\"{}\"", String::from_utf8_lossy(text)),
            false => String::from_utf8_lossy(text).into_owned(),
        };
        let mut text = quoted(name);
        let target = entry.stat.is_symlink().then(|| files::link_target(&entry.path).ok()).flatten();
        let mut described = Some(entry.stat);
        if let Some(target) = target {
            text += &format!(" -> {}", quoted(&target));
            described = abi::stat(Dir::CWD, &entry.path, true).ok();
        }
        if let Some(stat) = described.filter(|_| self.options.classify) {
            text += match stat.kind() {
                0o040_000 => "/",
                0o010_000 => "|",
                0o140_000 => "=",
                0o100_000 if stat.mode & 0o111 != 0 => "*",
                _ => "",
            };
        }
        text
    }

    fn report(&mut self) {
        let (directories, files) = (self.directories, self.files);
        let directories = format!("{directories} director{}", if directories == 1 { "y" } else { "ies" });
        let files = format!(", {files} file{}", if files == 1 { "" } else { "s" });
        let files = if self.options.directories_only { String::new() } else { files };
        self.out.put(format!("\n{directories}{files}\n"));
    }
}

/// The same in JSON.
impl Tree {
    /// A piece on a line of its own, unless lines are not wanted.
    fn put_json(&mut self, text: &str, indent: &str) {
        match self.options.plain {
            true => self.out.put(text),
            false => self.out.put(format!("{indent}{text}")),
        }
    }

    fn operand_in_json(&mut self, operand: &[u8], stat: Option<Stat>) -> i32 {
        self.end_line();
        let Some(stat) = stat.filter(Stat::is_dir) else {
            let fields = stat.map(|stat| self.fields(&stat)).unwrap_or_default();
            let name = json_text(operand);
            self.put_json(&format!("{{\"type\":\"file\",\"name\":{name}{fields},\"contents\":["), "  ");
            self.put_json("{\"error\": \"error opening dir\"}", "");
            self.end_line();
            self.put_json("]}", "  ");
            self.files += usize::from(stat.is_some());
            return 2;
        };
        self.count_operand(operand);
        let fields = self.fields(&stat);
        self.put_json(&format!("{{\"type\":\"directory\",\"name\":{}{fields}", json_text(operand)), "  ");
        self.visited.extend(place(operand));
        self.contents(operand, "  ", 1);
        0
    }

    fn contents(&mut self, directory: &[u8], indent: &str, depth: usize) {
        let entries = self.opened(directory, depth).unwrap_or_default();
        if entries.is_empty() {
            self.out.put("}");
            return;
        }
        self.out.put(",\"contents\":[");
        let inner = format!("{indent}  ");
        for (at, entry) in entries.into_iter().enumerate() {
            self.out.put(if at > 0 { "," } else { "" });
            self.end_line();
            self.count(&entry);
            let name = if self.options.full_path { &entry.path } else { &entry.name };
            let target = entry.stat.is_symlink().then(|| files::link_target(&entry.path).ok()).flatten();
            let target =
                target.map(|target| format!(",\"target\":{}", json_text(&target))).unwrap_or_default();
            let (kind, fields) = (kind_of(&entry.stat), self.fields(&entry.stat));
            self.put_json(
                &format!("{{\"type\":\"{kind}\",\"name\":{}{target}{fields}", json_text(name)),
                &inner,
            );
            if self.descends(&entry) == Ok(true) {
                self.contents(&entry.path, &inner, depth + 1);
            } else {
                self.out.put("}");
            }
        }
        self.end_line();
        self.put_json("]}", indent);
    }

    fn end_line(&mut self) {
        if !self.options.plain {
            self.out.put("\n");
        }
    }

    fn fields(&self, stat: &Stat) -> String {
        let mut text = String::new();
        if self.options.protections {
            let letters = mode::letters(stat.mode);
            text += &format!(",\"mode\":\"{:04o}\",\"prot\":\"{letters}\"", stat.mode & 0o7777);
        }
        if self.options.human {
            text += &format!(",\"size\":\"{}\"", human(u128::from(stat.size), 1024));
        } else if self.options.size {
            text += &format!(",\"size\":{}", stat.size);
        }
        text
    }

    fn end_json(&mut self, reports: bool) {
        self.end_line();
        if reports {
            self.out.put(",");
            self.end_line();
            let files = match self.options.directories_only {
                true => String::new(),
                false => format!(",\"files\":{}", self.files),
            };
            self.put_json(
                &format!("{{\"type\":\"report\",\"directories\":{}{files}}}", self.directories),
                "  ",
            );
        }
        self.end_line();
        self.out.put("]\n");
    }
}

fn kind_of(stat: &Stat) -> &'static str {
    match stat.kind() {
        0o040_000 => "directory",
        0o120_000 => "link",
        0o010_000 => "fifo",
        0o140_000 => "socket",
        0o020_000 => "char",
        0o060_000 => "block",
        _ => "file",
    }
}

fn json_text(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for char in String::from_utf8_lossy(text).chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            char if char.is_control() => quoted.push_str(&format!("\\u{:04x}", char as u32)),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}
