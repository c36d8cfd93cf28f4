//! `tree`: directories as a drawing.

use toolkit::args::{Tool, bytes_of};
use toolkit::mode;
use toolkit::out::Out;
use toolkit::size::human;
use toolkit::{Arguments, complain, files, glob, input};
use wardian_abi as abi;
use wardian_abi::{Dir, Stat};

const TOOL: Tool = Tool {
    name: "tree",
    short: "adfFiL:I:P:shpnCNqQrtUvlA",
    long: &[
        ("noreport", 'R'),
        ("dirsfirst", 'D'),
        ("prune", 'E'),
        ("charset=", 'x'),
        ("filelimit=", 'x'),
        ("gitignore", 'x'),
        ("matchdirs", 'x'),
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
}

struct Tree {
    options: Options,
    out: Out,
    directories: usize,
    files: usize,
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
    let mut tree = Tree { options, out: Out::new("tree"), directories: 0, files: 0 };
    let mut code = 0;
    for operand in &operands {
        code |= tree.operand(operand);
    }
    if !tree.options.no_report {
        tree.report();
    }
    Ok(code)
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
            _ => {}
        }
        Ok(())
    }

    fn shows(&self, name: &[u8], stat: &Stat) -> bool {
        let matches = |pattern: &Vec<u8>| {
            let pattern = pattern.strip_suffix(b"/").unwrap_or(pattern);
            glob::matches(pattern, name, self.fold)
        };
        (self.all || !name.starts_with(b"."))
            && (stat.is_dir() || !self.directories_only)
            && (stat.is_dir() || self.wanted.is_empty() || self.wanted.iter().any(matches))
            && !self.unwanted.iter().any(matches)
    }
}

/// A file below a directory.
struct Entry {
    name: Vec<u8>,
    path: Vec<u8>,
    stat: Stat,
}

impl Tree {
    fn operand(&mut self, operand: &[u8]) -> i32 {
        let stat = abi::stat(Dir::CWD, operand, true);
        let details = match &stat {
            Ok(stat) => self.details(stat),
            Err(_) => String::new(),
        };
        let shown = String::from_utf8_lossy(operand);
        if !stat.is_ok_and(|stat| stat.is_dir()) {
            self.out.put(format!("{details}{shown}  [error opening dir]\n"));
            return 2;
        }
        let mark = if self.options.classify && !operand.ends_with(b"/") { "/" } else { "" };
        self.out.put(format!("{details}{shown}{mark}\n"));
        self.directories += 1;
        self.below(operand, "", 1);
        0
    }

    fn entries(&self, directory: &[u8]) -> Vec<Entry> {
        let names = files::names_in(directory).unwrap_or_default();
        let entry = |name: Vec<u8>| {
            let path = files::join(directory, &name);
            let stat = abi::stat(Dir::CWD, &path, false).ok()?;
            self.options.shows(&name, &stat).then_some(Entry { name, path, stat })
        };
        let mut entries: Vec<Entry> = names.into_iter().filter_map(entry).collect();
        entries.sort_by(|left, right| {
            let by_name = || left.name.cmp(&right.name);
            let order = match self.options.by_time {
                true => left.stat.mtime.cmp(&right.stat.mtime).then_with(by_name),
                false => by_name(),
            };
            let order = if self.options.reverse { order.reverse() } else { order };
            let first = self.options.directories_first.then(|| right.stat.is_dir().cmp(&left.stat.is_dir()));
            first.unwrap_or(std::cmp::Ordering::Equal).then(order)
        });
        if self.options.prune {
            entries.retain(|entry| !entry.stat.is_dir() || self.has_files(&entry.path));
        }
        entries
    }

    fn has_files(&self, directory: &[u8]) -> bool {
        self.entries(directory).iter().any(|entry| !entry.stat.is_dir() || self.has_files(&entry.path))
    }

    fn below(&mut self, directory: &[u8], indent: &str, depth: usize) {
        if self.options.level.is_some_and(|level| depth > level) {
            return;
        }
        let entries = self.entries(directory);
        let count = entries.len();
        for (at, entry) in entries.into_iter().enumerate() {
            let (branch, next) =
                if at + 1 == count { ("└── ", "    ") } else { ("├── ", "│\u{a0}\u{a0} ") };
            let (branch, next) = if self.options.plain { ("", "") } else { (branch, next) };
            let line = format!("{indent}{branch}{}{}\n", self.details(&entry.stat), self.name(&entry));
            self.out.put(line);
            if entry.stat.is_dir() {
                self.directories += 1;
                self.below(&entry.path, &format!("{indent}{next}"), depth + 1);
            } else {
                self.files += 1;
            }
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
        let mut text = String::from_utf8_lossy(name).into_owned();
        let target = entry.stat.is_symlink().then(|| files::link_target(&entry.path).ok()).flatten();
        let mut described = Some(entry.stat);
        if let Some(target) = target {
            text += &format!(" -> {}", String::from_utf8_lossy(&target));
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
