//! `mv`: renames files, and carries them over where a name alone cannot go.

use std::collections::HashSet;
use toolkit::args::{Tool, bytes_of};
use toolkit::copy::{self, Copier, Existing, Follow, Preserve};
use toolkit::target::Target;
use toolkit::{Arguments, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Stat};

const TOOL: Tool = Tool {
    name: "mv",
    short: "bfint:uvS:TZ",
    long: &[
        ("backup[=", 'B'),
        ("force", 'f'),
        ("interactive", 'i'),
        ("no-clobber", 'n'),
        ("strip-trailing-slashes", '/'),
        ("suffix=", 'S'),
        ("target-directory=", 't'),
        ("no-target-directory", 'T'),
        ("update", 'u'),
        ("verbose", 'v'),
        ("context", 'Z'),
    ],
    help: "\
Usage: mv [OPTION]... [-T] SOURCE DEST
  or:  mv [OPTION]... SOURCE... DIRECTORY
  or:  mv [OPTION]... -t DIRECTORY SOURCE...
Rename SOURCE to DEST, or move SOURCE(s) to DIRECTORY.

      --backup[=CONTROL]       make a backup of each existing destination file
  -b                           like --backup but does not accept an argument
  -f, --force                  do not prompt before overwriting
  -i, --interactive            prompt before overwrite
  -n, --no-clobber             do not overwrite an existing file
If you specify more than one of -i, -f, -n, only the final one takes effect.
      --strip-trailing-slashes  remove any trailing slashes from each SOURCE
                                 argument
  -S, --suffix=SUFFIX          override the usual backup suffix
  -t, --target-directory=DIRECTORY  move all SOURCE arguments into DIRECTORY
  -T, --no-target-directory    treat DEST as a normal file
  -u, --update                 move only when the SOURCE file is newer
                                 than the destination file or when the
                                 destination file is missing
  -v, --verbose                explain what is being done
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let (mut target, mut strips) = (Target::default(), false);
    let mut copier = Copier::new("mv");
    (copier.follow, copier.recursive) = (Follow::Nothing, true);
    copier.preserve = Preserve { mode: true, owner: true, times: true, links: true, new_mode: false };
    for (letter, text) in parsed.options {
        match letter {
            'b' => copier.backup.set(None, &TOOL)?,
            'B' => copier.backup.set(text.as_deref(), &TOOL)?,
            'S' => copier.backup.set_suffix(&text.unwrap_or_default()),
            'f' => copier.existing = Existing::Overwrite,
            'i' => copier.existing = Existing::Ask,
            'n' => copier.existing = Existing::Keep,
            't' => target.directory = text,
            'T' => target.is_file = true,
            'u' => copier.update = true,
            'v' => copier.verbose = true,
            '/' => strips = true,
            _ => {}
        }
    }
    let mut operands = parsed.operands;
    for operand in operands.iter_mut().filter(|_| strips) {
        while operand.len() > 1 && operand.ends_with(b"/") {
            operand.pop();
        }
    }
    let mut moved = HashSet::new();
    for (from, to) in target.pairs(operands, &TOOL)? {
        if moved.contains(&to) && !copier.backup.is_wanted() && abi::stat(Dir::CWD, &from, false).is_ok() {
            let (from, to) = (quote::always(&from), quote::always(&to));
            copier.fail(format_args!("will not overwrite just-created {to} with {from}"));
        } else if move_one(&mut copier, &from, &to) {
            moved.insert(to);
        }
    }
    Ok(copier.code)
}

fn move_one(copier: &mut Copier, from: &[u8], to: &[u8]) -> bool {
    let stat = match abi::stat(Dir::CWD, from, false) {
        Ok(stat) => stat,
        Err(error) => return copier.fail(format_args!("cannot stat {}: {error}", quote::always(from))),
    };
    let there = abi::stat(Dir::CWD, to, false).ok();
    if let Some(there) = &there
        && let Err(done) = permits(copier, from, &stat, to, there)
    {
        return done;
    }
    if stat.is_dir() && copy::is_below(&stat, to) {
        return copier.fail(format_args!(
            "cannot move {} to a subdirectory of itself, {}",
            quote::always(from),
            quote::always(to)
        ));
    }
    if there.is_some() && copier.backup.would_destroy(&stat, to) {
        let (from, to) = (quote::always(from), quote::always(to));
        return copier.fail(format_args!("backing up {to} might destroy source;  {from} not moved"));
    }
    let backup = match there.map(|_| copier.backup.make(to)) {
        Some(Err(error)) => {
            return copier.fail(format_args!("cannot backup {}: {error}", quote::always(to)));
        }
        made => made.and_then(Result::ok).flatten(),
    };
    match std::fs::rename(files::path(from), files::path(to)).map_err(Errno::from) {
        Ok(()) => {
            if copier.verbose {
                let kept =
                    backup.map_or(String::new(), |name| format!(" (backup: {})", quote::always(&name)));
                let line = format!("renamed {} -> {}{kept}\n", quote::always(from), quote::always(to));
                copier.out.put(line);
            }
            true
        }
        Err(Errno::XDEV) => carry(copier, from, &stat, to),
        Err(error) => {
            copier.fail(format_args!("cannot move {} to {}: {error}", quote::always(from), quote::always(to)))
        }
    }
}

/// Whether what is there may be replaced; the error is whether that is all right.
fn permits(copier: &mut Copier, from: &[u8], stat: &Stat, to: &[u8], there: &Stat) -> Result<(), bool> {
    // Two names of one file as well: renaming would do nothing. A backup makes room for the other name.
    let is_same = (stat.dev, stat.ino) == (there.dev, there.ino)
        && (!copier.backup.is_wanted() || is_one_entry(from, to));
    if is_same || is_last_target(copier, from, stat, there) {
        let (from, to) = (quote::always(from), quote::always(to));
        return Err(copier.fail(format_args!("{from} and {to} are the same file")));
    }
    if copier.update && there.mtime >= stat.mtime && !stat.is_dir() {
        return Err(true);
    }
    if there.is_dir() != stat.is_dir() {
        let (from, to) = (quote::always(from), quote::always(to));
        return Err(match stat.is_dir() {
            true => copier.fail(format_args!("cannot overwrite non-directory {to} with directory {from}")),
            false => copier.fail(format_args!("cannot overwrite directory {to} with non-directory")),
        });
    }
    match copier.existing {
        Existing::Keep => Err(true),
        Existing::Ask => {
            copier.out.flush();
            let agreed = copy::is_agreed("mv", format_args!("overwrite {}? ", quote::always(to)));
            if agreed { Ok(()) } else { Err(false) }
        }
        Existing::Overwrite => Ok(()),
    }
}

/// Whether two paths are the same name in the same directory.
fn is_one_entry(from: &[u8], to: &[u8]) -> bool {
    let directory =
        |path: &[u8]| abi::stat(Dir::CWD, &files::parent(path), true).map(|stat| (stat.dev, stat.ino));
    files::base_name(from) == files::base_name(to) && directory(from) == directory(to)
}

/// Whether a symbolic link would take the place of the file that it leads to: nothing would be left of that.
fn is_last_target(copier: &Copier, from: &[u8], stat: &abi::Stat, there: &abi::Stat) -> bool {
    let leads_there = || {
        abi::stat(Dir::CWD, from, true)
            .is_ok_and(|reached| (reached.dev, reached.ino) == (there.dev, there.ino))
    };
    stat.is_symlink() && there.nlink == 1 && !copier.backup.is_wanted() && leads_there()
}

/// Copies to another file system and removes the original once all of it is there.
fn carry(copier: &mut Copier, from: &[u8], stat: &Stat, to: &[u8]) -> bool {
    let (existing, update) = (copier.existing, copier.update);
    (copier.existing, copier.update, copier.remove_destination) = (Existing::Overwrite, false, true);
    let copied = copier.copy_operand(from, to);
    (copier.existing, copier.update) = (existing, update);
    if !copied {
        return false;
    }
    let path = files::path(from);
    let removed = if stat.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Ok(()) => true,
        Err(error) => {
            copier.fail(format_args!("cannot remove {}: {}", quote::always(from), Errno::from(error)))
        }
    }
}
