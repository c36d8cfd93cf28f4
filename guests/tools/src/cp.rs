//! `cp`: copies files and directories.

use toolkit::args::{Tool, bytes_of};
use toolkit::copy::{Copier, Existing, Follow, Make, Preserve};
use toolkit::target::Target;
use toolkit::{Arguments, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "cp",
    short: "abdfHilLnprst:uvxPRS:TZ",
    long: &[
        ("archive", 'a'),
        ("attributes-only", 'A'),
        ("backup[=", 'B'),
        ("force", 'f'),
        ("interactive", 'i'),
        ("link", 'l'),
        ("dereference", 'L'),
        ("no-clobber", 'n'),
        ("no-dereference", 'P'),
        ("no-preserve=", 'N'),
        ("no-target-directory", 'T'),
        ("one-file-system", 'x'),
        ("parents", 'D'),
        ("preserve[=", 'K'),
        ("recursive", 'R'),
        ("reflink[=", 'Z'),
        ("remove-destination", 'X'),
        ("sparse=", 'Z'),
        ("strip-trailing-slashes", '/'),
        ("suffix=", 'S'),
        ("symbolic-link", 's'),
        ("target-directory=", 't'),
        ("update", 'u'),
        ("verbose", 'v'),
        ("context[=", 'Z'),
    ],
    help: "\
Usage: cp [OPTION]... [-T] SOURCE DEST
  or:  cp [OPTION]... SOURCE... DIRECTORY
  or:  cp [OPTION]... -t DIRECTORY SOURCE...
Copy SOURCE to DEST, or multiple SOURCE(s) to DIRECTORY.

  -a, --archive                same as -dR --preserve=all
      --attributes-only        don't copy the file data, just the attributes
      --backup[=CONTROL]       make a backup of each existing destination file
  -b                           like --backup but does not accept an argument
  -d                           same as --no-dereference --preserve=links
  -f, --force                  if an existing destination file cannot be
                                 opened, remove it and try again
  -i, --interactive            prompt before overwrite
  -H                           follow command-line symbolic links in SOURCE
  -l, --link                   hard link files instead of copying
  -L, --dereference            always follow symbolic links in SOURCE
  -n, --no-clobber             do not overwrite an existing file
  -P, --no-dereference         never follow symbolic links in SOURCE
  -p                           same as --preserve=mode,ownership,timestamps
      --preserve[=ATTR_LIST]   preserve the specified attributes (default:
                                 mode,ownership,timestamps), if possible
                                 additional attributes: links, all
      --no-preserve=ATTR_LIST  don't preserve the specified attributes
      --parents                use full source file name under DIRECTORY
  -R, -r, --recursive          copy directories recursively
      --remove-destination     remove each existing destination file before
                                 attempting to open it
      --strip-trailing-slashes  remove any trailing slashes from each SOURCE
                                 argument
  -s, --symbolic-link          make symbolic links instead of copying
  -S, --suffix=SUFFIX          override the usual backup suffix
  -t, --target-directory=DIRECTORY  copy all SOURCE arguments into DIRECTORY
  -T, --no-target-directory    treat DEST as a normal file
  -u, --update                 copy only when the SOURCE file is newer
                                 than the destination file or when the
                                 destination file is missing
  -v, --verbose                explain what is being done
  -x, --one-file-system        stay on this file system
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
    let mut copier = Copier::new("cp");
    let (mut target, mut follow) = (Target::default(), None);
    let (mut parents, mut strips) = (false, false);
    for (letter, text) in parsed.options {
        match letter {
            'a' => {
                copier.preserve =
                    Preserve { mode: true, owner: true, times: true, links: true, new_mode: false };
                (copier.recursive, follow) = (true, Some(Follow::Nothing));
            }
            'b' => copier.backup.set(None, &TOOL)?,
            'B' => copier.backup.set(text.as_deref(), &TOOL)?,
            'S' => copier.backup.set_suffix(&text.unwrap_or_default()),
            'd' => {
                copier.preserve.links = true;
                follow = Some(Follow::Nothing);
            }
            'H' => follow = Some(Follow::Operands),
            'L' => follow = Some(Follow::All),
            'P' => follow = Some(Follow::Nothing),
            'p' => set_preserve(&mut copier.preserve, b"mode,ownership,timestamps", true)?,
            'K' => {
                let list = text.unwrap_or_else(|| b"mode,ownership,timestamps".to_vec());
                set_preserve(&mut copier.preserve, &list, true)?;
            }
            'N' => set_preserve(&mut copier.preserve, &text.unwrap_or_default(), false)?,
            't' => target.directory = text,
            'T' => target.is_file = true,
            'D' => parents = true,
            '/' => strips = true,
            letter => set(&mut copier, letter),
        }
    }
    let usual = if copier.recursive { Follow::Nothing } else { Follow::All };
    copier.follow = follow.unwrap_or(usual);
    let mut operands = parsed.operands;
    if strips {
        let last = operands.len().saturating_sub(usize::from(target.directory.is_none()));
        operands[..last].iter_mut().for_each(strip_slashes);
    }
    if parents {
        copy_with_parents(&mut copier, &target, operands)?;
    } else {
        for (from, to) in target.pairs(operands, &TOOL)? {
            copier.copy_operand(&from, &to);
        }
    }
    Ok(copier.code)
}

fn set(copier: &mut Copier, letter: char) {
    match letter {
        'A' => copier.attributes_only = true,
        'f' => copier.force = true,
        'i' => copier.existing = Existing::Ask,
        'n' => copier.existing = Existing::Keep,
        'l' => copier.make = Make::HardLinks,
        's' => copier.make = Make::SymbolicLinks,
        'R' | 'r' => copier.recursive = true,
        'u' => copier.update = true,
        'v' => copier.verbose = true,
        'x' => copier.one_system = true,
        'X' => copier.remove_destination = true,
        _ => {}
    }
}

fn set_preserve(preserve: &mut Preserve, list: &[u8], value: bool) -> Result<(), i32> {
    for attribute in list.split(|&byte| byte == b',') {
        match attribute {
            b"mode" => (preserve.mode, preserve.new_mode) = (value, !value),
            b"ownership" => preserve.owner = value,
            b"timestamps" => preserve.times = value,
            b"links" => preserve.links = value,
            // There are none of these here to keep.
            b"context" | b"xattr" => {}
            b"all" => {
                let new_mode = !value;
                *preserve = Preserve { mode: value, owner: value, times: value, links: value, new_mode };
            }
            other => {
                let option = if value { "--preserve" } else { "--no-preserve" };
                let known = ["mode", "timestamps", "ownership", "links", "context", "xattr", "all"];
                return Err(TOOL.wrong_choice(option, other, &known));
            }
        }
    }
    Ok(())
}

fn strip_slashes(path: &mut Vec<u8>) {
    while path.len() > 1 && path.ends_with(b"/") {
        path.pop();
    }
}

/// Copies `a/b/c` to `DIRECTORY/a/b/c`, making the directories between.
fn copy_with_parents(copier: &mut Copier, target: &Target, mut operands: Vec<Vec<u8>>) -> Result<(), i32> {
    let directory = match &target.directory {
        Some(directory) => directory.clone(),
        None => operands.pop().ok_or_else(|| TOOL.wrong("missing file operand"))?,
    };
    if operands.is_empty() {
        let message = format!("missing destination file operand after {}", quote::always(&directory));
        return Err(TOOL.wrong(message));
    }
    if !abi::stat(Dir::CWD, &directory, true).is_ok_and(|stat| stat.is_dir()) {
        return Err(TOOL.wrong("with --parents, the destination must be a directory"));
    }
    for mut from in operands {
        strip_slashes(&mut from);
        let inner = from.iter().position(|&byte| byte != b'/').map_or(&from[..0], |at| &from[at..]).to_vec();
        let to = files::join(&directory, &inner);
        if make_parents(copier, &directory, &inner).is_ok() {
            copier.copy_operand(&from, &to);
        }
    }
    Ok(())
}

fn make_parents(copier: &mut Copier, directory: &[u8], inner: &[u8]) -> Result<(), Errno> {
    for (at, _) in inner.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        let (source, made) = (&inner[..at], files::join(directory, &inner[..at]));
        if abi::stat(Dir::CWD, &made, true).is_ok() {
            continue;
        }
        let mode = abi::stat(Dir::CWD, source, true).map_or(0o777, |stat| stat.mode & 0o777);
        if let Err(error) = abi::mkdir(Dir::CWD, &made, mode) {
            copier.fail(format_args!("cannot make directory {}: {error}", quote::always(&made)));
            return Err(error);
        }
        if copier.verbose {
            let line = format!("{} -> {}\n", String::from_utf8_lossy(source), String::from_utf8_lossy(&made));
            copier.out.put(line);
        }
    }
    Ok(())
}
