//! `find`: walks directories and does something with what it meets.
//!
//! ```text
//! parse.rs   the expression, from the command line
//! test.rs    what an expression says of one file, and the actions
//! format.rs  -printf and -ls
//! ```

mod format;
mod parse;
mod test;

use parse::Command;
use std::cell::OnceCell;
use test::Finder;
use toolkit::args::bytes_of;
use toolkit::files::Entry;
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Stat, open_flags};

/// The type bits of a symbolic link.
const LINK: u32 = 0o120_000;

pub fn main(arguments: Arguments) -> i32 {
    let command = match Command::parse(bytes_of(arguments)) {
        Ok(command) => command,
        Err(message) if message.is_empty() => return 0,
        Err(message) => {
            complain("find", message);
            return 1;
        }
    };
    let mut finder = match Finder::new(Out::new("find"), &command) {
        Ok(finder) => finder,
        Err(message) => {
            complain("find", message);
            return 1;
        }
    };
    for start in &command.starts {
        walk_from(start, &command, &mut finder);
    }
    if let Some(file) = &command.starts_from
        && let Err(error) = walk_from_list(file, &command, &mut finder)
    {
        finder.fail(format_args!("cannot open {} for reading: {error}", quote::word(file)));
    }
    finder.finish(&command.expression);
    finder.out.flush();
    finder.code
}

/// One file that was met.
pub struct File<'a> {
    pub path: &'a [u8],
    /// The operand it was found below.
    pub start: &'a [u8],
    pub depth: usize,
    /// Where it is looked up: its name in the directory it was met in, or its path.
    place: (Dir, &'a [u8]),
    /// The type bits of its mode.
    kind: u32,
    /// All about it, from when it is first asked for: most expressions care for names and kinds alone.
    stat: OnceCell<Stat>,
}

impl<'a> File<'a> {
    fn is_dir(&self) -> bool {
        self.stat().is_dir()
    }

    /// What is known of it: its kind at least.
    pub fn stat(&self) -> Stat {
        let kind_alone = || Stat { mode: self.kind, ..Stat::default() };
        self.stat.get().copied().unwrap_or_else(kind_alone)
    }

    /// All about it. An error if it went away since its directory was read.
    pub fn look(&self) -> Result<Stat, Errno> {
        if self.stat.get().is_none() {
            let _ = self.stat.set(abi::stat(self.place.0, self.place.1, false)?);
        }
        Ok(self.stat())
    }
}

/// Walks from each name in a file, which NUL ends.
fn walk_from_list(file: &[u8], command: &Command, finder: &mut Finder) -> Result<(), Errno> {
    let mut names = toolkit::records::Records::open(file, 0)?;
    let mut number = 0;
    let mut name = Vec::new();
    while names.next_into(&mut name)? {
        number += 1;
        match name.strip_suffix(b"\0").unwrap_or(&name) {
            b"" => finder.fail(format_args!("{}:{number}: invalid zero-length file name", quote::word(file))),
            name => walk_from(name, command, finder),
        }
        name.clear();
    }
    Ok(())
}

fn walk_from(start: &[u8], command: &Command, finder: &mut Finder) {
    if finder.quit {
        return;
    }
    let follow = command.follow_all || command.follow_operands;
    let place = (Dir::CWD, start);
    match stat(place, follow) {
        Ok(stat) => {
            let file = File { path: start, start, depth: 0, place, kind: stat.kind(), stat: stat.into() };
            walk(&file, command, finder, &mut Vec::new());
        }
        Err(error) => finder.fail(format_args!("{}: {error}", quote::word(start))),
    }
}

/// A link that leads nowhere is not followed; one that leads to itself is an error.
fn stat((directory, name): (Dir, &[u8]), follow: bool) -> Result<Stat, Errno> {
    match abi::stat(directory, name, follow) {
        Err(Errno::NOENT | Errno::NOTDIR) if follow => abi::stat(directory, name, false),
        other => other,
    }
}

/// Meets a file, then what is below it; in the other order when asked.
fn walk(file: &File<'_>, command: &Command, finder: &mut Finder, above: &mut Vec<(u64, u64)>) {
    finder.prune = false;
    let meets = file.depth >= command.min_depth;
    if meets && !command.depth_first {
        finder.test(&command.expression, file);
    }
    let pruned = finder.prune && !command.depth_first;
    if file.is_dir() && !pruned && !finder.quit && file.depth < command.max_depth {
        descend(file, command, finder, above);
    }
    if meets && command.depth_first && !finder.quit {
        finder.test(&command.expression, file);
    }
}

fn descend(file: &File<'_>, command: &Command, finder: &mut Finder, above: &mut Vec<(u64, u64)>) {
    let stat = match file.look() {
        Ok(stat) => stat,
        Err(error) => return finder.fail(format_args!("{}: {error}", quote::word(file.path))),
    };
    if command.one_system && above.first().is_some_and(|(device, _)| *device != stat.dev) {
        return;
    }
    let own = (stat.dev, stat.ino);
    if command.follow_all && above.contains(&own) {
        let path = quote::word(file.path);
        return finder.fail(format_args!(
            "File system loop detected; {path} is part of the same file system loop as a directory above it."
        ));
    }
    let entries = match files::entries_in(file.path) {
        Ok(entries) => entries,
        Err(error) => return finder.fail(format_args!("{}: {error}", quote::word(file.path))),
    };
    above.push(own);
    let held = Held::open(file);
    let mut path = files::join(file.path, b"");
    let name_at = path.len();
    for entry in entries {
        if finder.quit {
            break;
        }
        path.truncate(name_at);
        path.extend_from_slice(&entry.name);
        let place = held.place(&path, name_at);
        match entry_kind(&entry, place, command.follow_all) {
            Ok((kind, stat)) => walk(
                &File { path: &path, start: file.start, depth: file.depth + 1, place, kind, stat },
                command,
                finder,
                above,
            ),
            Err(error) => finder.fail(format_args!("{}: {error}", quote::word(&path))),
        }
    }
    above.pop();
}

/// What kind of file an entry is, and all about it if that was needed to know.
fn entry_kind(entry: &Entry, place: (Dir, &[u8]), follow: bool) -> Result<(u32, OnceCell<Stat>), Errno> {
    match entry.kind {
        Some(kind) if !(follow && kind == LINK) => Ok((kind, OnceCell::new())),
        _ => stat(place, follow).map(|stat| (stat.kind(), stat.into())),
    }
}

/// A directory that is kept open while what is in it is met: a name is looked up faster than a path.
struct Held(Option<Fd>);

/// Deeper directories are not kept open, for there may be more of them than descriptors.
const DEEPEST_HELD: usize = 32;

impl Held {
    fn open(directory: &File<'_>) -> Held {
        let flags = open_flags::RDONLY | open_flags::DIRECTORY | open_flags::CLOEXEC;
        let held = directory.depth < DEEPEST_HELD;
        Held(held.then(|| abi::open(Dir::CWD, directory.path, flags, 0).ok()).flatten())
    }

    /// Where to look up what is at a path, whose last name begins at a place.
    fn place<'a>(&self, path: &'a [u8], name_at: usize) -> (Dir, &'a [u8]) {
        self.0.map_or((Dir::CWD, path), |fd| (Dir(fd), &path[name_at..]))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(fd) = self.0 {
            let _ = abi::close(fd);
        }
    }
}
