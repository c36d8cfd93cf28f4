//! Which files are searched, and which are left out.

use super::options::{Binary, Directories, Listing, Options};
use super::print::{Printer, SELECTED};
use crate::lines::{Search, Wanted};
use std::collections::HashSet;
use toolkit::out::Out;
use toolkit::{complain, files, glob};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Stat, open_flags};

/// Patterns for names: `--include` and `--exclude`. The last that matches counts.
#[derive(Default)]
pub struct Globs(Vec<(Vec<u8>, bool)>);

impl Globs {
    pub fn add(&mut self, pattern: Vec<u8>, includes: bool) {
        self.0.push((pattern, includes));
    }

    /// Whether a name is left out. One from the command line may match with any part behind a slash.
    fn leave_out(&self, name: &[u8], is_operand: bool) -> bool {
        let Some(first) = self.0.first() else { return false };
        let fits = |pattern: &[u8]| {
            let later = name.iter().enumerate().filter(|(_, byte)| is_operand && **byte == b'/');
            glob::matches(pattern, name, false)
                || later.into_iter().any(|(at, _)| glob::matches(pattern, &name[at + 1..], false))
        };
        let matching = self.0.iter().rev().find(|(pattern, _)| fits(pattern));
        matching.map_or(first.1, |(_, includes)| !includes)
    }
}

/// Searches what the command line names; answers the exit code.
pub fn search_all(options: Options) -> i32 {
    if options.is_hopeless {
        return 1;
    }
    let recursive = options.directories == Directories::Recurse;
    let mut operands = options.operands.clone();
    let from_here = operands.is_empty() && recursive;
    if operands.is_empty() {
        operands.push(if recursive { b".".to_vec() } else { b"-".to_vec() });
    }
    let with_name = options.with_names.unwrap_or(operands.len() > 1 || recursive && is_below(&operands[0]));
    let output = abi::fstat(1).ok().filter(|stat| stat.is_file());
    let mut walk = Walk {
        options: &options,
        out: Out::new("grep"),
        with_name,
        from_here,
        output,
        has_printed: false,
        found: false,
        failed: false,
    };
    for operand in &operands {
        if !walk.operand(operand) {
            break;
        }
    }
    walk.out.flush();
    if options.regex.gave_up() {
        complain("grep", "exceeded the limit of steps for matching a pattern");
        return 2;
    }
    match (walk.failed, walk.found) {
        (true, found) if !(found && options.quiet) => 2,
        (_, true) => 0,
        (_, false) => 1,
    }
}

/// Whether there may be several files at an operand.
fn is_below(operand: &[u8]) -> bool {
    operand != b"-" && abi::stat(Dir::CWD, operand, true).is_ok_and(|stat| stat.is_dir())
}

/// What a search found.
struct Found {
    /// How many lines were selected; 1 stands for some where more need not be known.
    lines: u64,
    /// There was something to print that is not text.
    is_binary: bool,
}

struct Walk<'a> {
    options: &'a Options,
    out: Out,
    with_name: bool,
    /// Names are told without the `./` that nobody wrote.
    from_here: bool,
    /// The file that is written to.
    output: Option<Stat>,
    has_printed: bool,
    found: bool,
    failed: bool,
}

impl Walk<'_> {
    /// Searches what an operand names; says whether to go on.
    fn operand(&mut self, operand: &[u8]) -> bool {
        if operand == b"-" {
            let label = self.options.label.clone().unwrap_or_else(|| b"(standard input)".to_vec());
            return self.file(0, &label);
        }
        let is_dir = abi::stat(Dir::CWD, operand, true).is_ok_and(|stat| stat.is_dir());
        let globs = if is_dir { &self.options.dirs } else { &self.options.files };
        let end = operand.iter().rposition(|&byte| byte != b'/').map_or(operand.len(), |at| at + 1);
        if !self.from_here && globs.leave_out(&operand[..end], true) {
            return true;
        }
        if is_dir && self.options.directories == Directories::Recurse {
            let mut above = HashSet::new();
            return self.directory(operand, &mut above);
        }
        // To open a pipe would be to wait for it.
        let is_special = |stat: Stat| !stat.is_file() && !stat.is_dir();
        let skips = self.options.skip_devices == Some(true);
        if skips && abi::stat(Dir::CWD, operand, true).is_ok_and(is_special) {
            return true;
        }
        self.path(operand)
    }

    /// Searches what is below a directory.
    fn directory(&mut self, path: &[u8], above: &mut HashSet<(u64, u64)>) -> bool {
        let Ok(stat) = abi::stat(Dir::CWD, path, true) else { return true };
        if !above.insert((stat.dev, stat.ino)) {
            if !self.options.silent {
                let name = String::from_utf8_lossy(path);
                complain("grep", format_args!("{name}: warning: recursive directory loop"));
            }
            return true;
        }
        let mut go_on = true;
        match files::names_in(path) {
            Err(error) => self.complain(path, error.message()),
            Ok(names) => {
                for name in names {
                    go_on = self.entry(&files::join(path, &name), &name, above);
                    if !go_on {
                        break;
                    }
                }
            }
        }
        above.remove(&(stat.dev, stat.ino));
        go_on
    }

    fn entry(&mut self, path: &[u8], name: &[u8], above: &mut HashSet<(u64, u64)>) -> bool {
        let stat = match abi::stat(Dir::CWD, path, self.options.follow_links) {
            Ok(stat) => stat,
            Err(error) => {
                self.complain(path, error.message());
                return true;
            }
        };
        if stat.is_symlink() {
            return true;
        }
        let globs = if stat.is_dir() { &self.options.dirs } else { &self.options.files };
        if globs.leave_out(name, false) {
            return true;
        }
        if stat.is_dir() {
            return self.directory(path, above);
        }
        // What is met and not named is not waited for.
        if !stat.is_file() && self.options.skip_devices != Some(false) {
            return true;
        }
        self.path(path)
    }

    fn path(&mut self, path: &[u8]) -> bool {
        match abi::open(Dir::CWD, path, open_flags::RDONLY, 0) {
            Err(error) => {
                self.complain(path, error.message());
                true
            }
            Ok(fd) => {
                let shown = if self.from_here { path.strip_prefix(b"./").unwrap_or(path) } else { path };
                let go_on = self.file(fd, shown);
                // What was read has been read.
                let _ = abi::close(fd);
                go_on
            }
        }
    }

    /// Searches an open file.
    fn file(&mut self, fd: Fd, name: &[u8]) -> bool {
        let options = self.options;
        let stat = abi::fstat(fd).ok();
        if stat.as_ref().is_some_and(Stat::is_dir) {
            if options.directories == Directories::Read {
                self.complain(name, Errno::ISDIR.message());
            }
            return true;
        }
        let prints_lines = !options.quiet && options.listing == Listing::Lines && !options.count;
        if let (Some(read), Some(written), true) =
            (&stat, &self.output, prints_lines && options.max_count > 1)
            && fd != 0
            && (read.dev, read.ino) == (written.dev, written.ino)
        {
            self.complain(name, "input file is also the output");
            return true;
        }
        let mut printer = self.printer(name);
        if options.initial_tab {
            let size = stat.filter(Stat::is_file).map_or(u64::MAX, |stat| stat.size);
            printer.number_width = size.saturating_add(u64::from(options.line_numbers)).to_string().len();
        }
        let lists = options.listing != Listing::Lines;
        let wanted = Wanted {
            regex: &options.regex,
            line_end: options.line_end,
            invert: options.invert,
            before: options.before,
            after: options.after,
            all: false,
            max_count: options.max_count,
            numbers: options.line_numbers,
            only_count: options.count,
            only_first: options.quiet || lists,
        };
        let found = Search::new(wanted, &mut printer).run(fd).map(|lines| {
            let told_by_zero = printer.selected_before_zero.is_some_and(|before| before < lines);
            let shows_lines = options.binary == Binary::Tell && prints_lines;
            Found { lines, is_binary: shows_lines && (told_by_zero || printer.has_wrong_characters) }
        });
        self.report(name, found)
    }

    /// Says of a whole file what there is to say; answers whether to go on.
    fn report(&mut self, name: &[u8], found: Result<Found, Errno>) -> bool {
        let options = self.options;
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                self.complain(name, error.message());
                return true;
            }
        };
        let is_listed = match options.listing {
            Listing::Lines => found.lines > 0,
            Listing::Matching => found.lines > 0,
            Listing::NotMatching => found.lines == 0,
        };
        self.found |= found.lines > 0;
        if found.is_binary && !options.silent {
            self.out.flush();
            complain("grep", format_args!("{}: binary file matches", String::from_utf8_lossy(name)));
        }
        if options.quiet {
            return !self.found;
        }
        let mut printer = self.printer(name);
        if options.listing != Listing::Lines {
            if is_listed {
                printer.file_name();
                printer.out.put(if options.null_after_name { b"\0" } else { b"\n" });
            }
        } else if options.count {
            if printer.with_name {
                printer.name_and(SELECTED);
            }
            printer.out.put(format!("{}\n", found.lines));
        }
        if options.line_buffered {
            self.out.flush();
        }
        true
    }

    fn printer<'p>(&'p mut self, name: &'p [u8]) -> Printer<'p> {
        Printer {
            options: self.options,
            out: &mut self.out,
            name,
            with_name: self.with_name,
            has_printed: &mut self.has_printed,
            number_width: 0,
            selected_before_zero: None,
            has_wrong_characters: false,
        }
    }

    fn complain(&mut self, name: &[u8], message: &str) {
        self.failed = true;
        if !self.options.silent {
            self.out.flush();
            complain("grep", format_args!("{}: {message}", String::from_utf8_lossy(name)));
        }
    }
}
