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
use test::Finder;
use toolkit::args::bytes_of;
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Stat};

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
    pub stat: Stat,
}

fn walk_from(start: &[u8], command: &Command, finder: &mut Finder) {
    if finder.quit {
        return;
    }
    let follow = command.follow_all || command.follow_operands;
    let stat = abi::stat(Dir::CWD, start, follow).or_else(|_| abi::stat(Dir::CWD, start, false));
    match stat {
        Ok(stat) => walk(&File { path: start, start, depth: 0, stat }, command, finder, &mut Vec::new()),
        Err(error) => finder.fail(format_args!("{}: {error}", quote::word(start))),
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
    let elsewhere = command.one_system && above.first().is_some_and(|(device, _)| *device != file.stat.dev);
    if file.stat.is_dir() && !pruned && !elsewhere && !finder.quit && file.depth < command.max_depth {
        descend(file, command, finder, above);
    }
    if meets && command.depth_first && !finder.quit {
        finder.test(&command.expression, file);
    }
}

fn descend(file: &File<'_>, command: &Command, finder: &mut Finder, above: &mut Vec<(u64, u64)>) {
    let own = (file.stat.dev, file.stat.ino);
    if command.follow_all && above.contains(&own) {
        let path = quote::word(file.path);
        return finder.fail(format_args!(
            "File system loop detected; {path} is part of the same file system loop as a directory above it."
        ));
    }
    let names = match files::names_in(file.path) {
        Ok(names) => names,
        Err(error) => return finder.fail(format_args!("{}: {error}", quote::word(file.path))),
    };
    above.push(own);
    for name in names {
        if finder.quit {
            break;
        }
        let path = files::join(file.path, &name);
        let own = || abi::stat(Dir::CWD, &path, false);
        let stat =
            if command.follow_all { abi::stat(Dir::CWD, &path, true).or_else(|_| own()) } else { own() };
        match stat {
            Ok(stat) => walk(
                &File { path: &path, start: file.start, depth: file.depth + 1, stat },
                command,
                finder,
                above,
            ),
            Err(error) => finder.fail(format_args!("{}: {error}", quote::word(&path))),
        }
    }
    above.pop();
}
