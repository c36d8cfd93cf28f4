//! `install`: copies files into place and sets their modes.

use toolkit::args::{Tool, bytes_of};
use toolkit::copy::{Copier, Follow, Preserve};
use toolkit::mode::Change;
use toolkit::names::Names;
use toolkit::target::Target;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "install",
    short: "bcCdDg:m:o:pst:vS:TZ",
    long: &[
        ("backup[=", 'B'),
        ("compare", 'C'),
        ("directory", 'd'),
        ("group=", 'g'),
        ("mode=", 'm'),
        ("owner=", 'o'),
        ("preserve-timestamps", 'p'),
        ("strip", 's'),
        ("suffix=", 'S'),
        ("target-directory=", 't'),
        ("no-target-directory", 'T'),
        ("verbose", 'v'),
        ("context[=", 'Z'),
    ],
    help: "\
Usage: install [OPTION]... [-T] SOURCE DEST
  or:  install [OPTION]... SOURCE... DIRECTORY
  or:  install [OPTION]... -t DIRECTORY SOURCE...
  or:  install [OPTION]... -d DIRECTORY...

This install program copies files (often just compiled) into destination
locations you choose.

      --backup[=CONTROL]  make a backup of each existing destination file
  -b                  like --backup but does not accept an argument
  -c                  (ignored)
  -C, --compare       compare content of source and destination files, and
                        if no change to content, ownership, and permissions,
                        do not modify the destination at all
  -d, --directory     treat all arguments as directory names; create all
                        components of the specified directories
  -D                  create all leading components of DEST except the last,
                        or all components of --target-directory,
                        then copy SOURCE to DEST
  -g, --group=GROUP   set group ownership, instead of process' current group
  -m, --mode=MODE     set permission mode (as in chmod), instead of rwxr-xr-x
  -o, --owner=OWNER   set ownership
  -p, --preserve-timestamps   apply access/modification times of SOURCE files
                        to corresponding destination files
  -S, --suffix=SUFFIX  override the usual backup suffix
  -t, --target-directory=DIRECTORY  copy all SOURCE arguments into DIRECTORY
  -T, --no-target-directory  treat DEST as a normal file
  -v, --verbose       print the name of each created file or directory
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

struct Options {
    mode: u32,
    owner: Option<u32>,
    group: Option<u32>,
    compares: bool,
    verbose: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut options = Options { mode: 0o755, owner: None, group: None, compares: false, verbose: false };
    let mut copier = Copier::new("install");
    (copier.follow, copier.remove_destination) = (Follow::All, true);
    let (mut target, mut makes_directories, mut makes_parents) = (Target::default(), false, false);
    for (letter, text) in parsed.options {
        let text = text.as_deref();
        match letter {
            'b' => copier.backup.set(None, &TOOL)?,
            'B' => copier.backup.set(text, &TOOL)?,
            'S' => copier.backup.set_suffix(text.unwrap_or_default()),
            'C' => options.compares = true,
            'd' => makes_directories = true,
            'D' => makes_parents = true,
            'm' => options.mode = mode_from(text.unwrap_or_default())?,
            'o' => options.owner = Some(owner(&Names::users(), text.unwrap_or_default(), "user")?),
            'g' => options.group = Some(owner(&Names::groups(), text.unwrap_or_default(), "group")?),
            'p' => copier.preserve = Preserve { times: true, ..Preserve::default() },
            't' => target.directory = text.map(<[u8]>::to_vec),
            'T' => target.is_file = true,
            'v' => options.verbose = true,
            _ => {}
        }
    }
    if makes_directories {
        return options.directories(&mut copier, &parsed.operands);
    }
    copier.verbose = options.verbose;
    if makes_parents {
        let leading = match (&target.directory, parsed.operands.last()) {
            (Some(directory), _) => directory.clone(),
            (None, Some(last)) if parsed.operands.len() > 1 => files::parent(last),
            _ => b".".to_vec(),
        };
        options.make_all(&mut copier, &leading, 0o755);
    }
    for (from, to) in target.pairs(parsed.operands, &TOOL)? {
        options.install(&mut copier, &from, &to);
    }
    Ok(copier.code)
}

fn mode_from(text: &[u8]) -> Result<u32, i32> {
    let change = Change::parse(text).ok_or_else(|| {
        complain("install", format_args!("invalid mode {}", quote::word(text)));
        1
    })?;
    Ok(change.apply(0, false, 0))
}

fn owner(names: &Names, text: &[u8], what: &str) -> Result<u32, i32> {
    let text = String::from_utf8_lossy(text);
    names.find(&text).or_else(|| text.parse().ok()).ok_or_else(|| {
        complain("install", format_args!("invalid {what} {}", quote::word(text.as_bytes())));
        1
    })
}

impl Options {
    fn directories(&self, copier: &mut Copier, operands: &[Vec<u8>]) -> Result<i32, i32> {
        if operands.is_empty() {
            return Err(TOOL.wrong("missing file operand"));
        }
        for directory in operands {
            if self.make_all(copier, directory, 0o755) {
                self.finish(copier, directory);
            }
        }
        Ok(copier.code)
    }

    /// Makes a directory and what is missing above it.
    fn make_all(&self, copier: &mut Copier, directory: &[u8], mode: u32) -> bool {
        let ends = (1..=directory.len()).filter(|&at| at == directory.len() || directory[at] == b'/');
        for end in ends {
            let part = &directory[..end];
            match abi::mkdir(Dir::CWD, part, mode) {
                Ok(()) if self.verbose => {
                    let line = format!("install: creating directory {}\n", quote::always(part));
                    copier.out.put(line);
                }
                Ok(()) => {}
                Err(Errno::EXIST) if abi::stat(Dir::CWD, part, true).is_ok_and(|stat| stat.is_dir()) => {}
                Err(error) => {
                    return copier
                        .fail(format_args!("cannot create directory {}: {error}", quote::always(part)));
                }
            }
        }
        true
    }

    fn install(&self, copier: &mut Copier, from: &[u8], to: &[u8]) {
        if abi::stat(Dir::CWD, from, true).is_ok_and(|stat| stat.is_dir()) {
            copier.fail(format_args!("omitting directory {}", quote::always(from)));
            return;
        }
        if self.compares && self.is_unchanged(from, to) {
            return;
        }
        if copier.copy_operand(from, to) {
            self.finish(copier, to);
        }
    }

    fn is_unchanged(&self, from: &[u8], to: &[u8]) -> bool {
        let has_mode = abi::stat(Dir::CWD, to, false)
            .is_ok_and(|stat| stat.is_file() && stat.mode & 0o7777 == self.mode);
        let read = |path: &[u8]| std::fs::read(files::path(path)).ok();
        has_mode && read(from).is_some_and(|content| Some(content) == read(to))
    }

    fn finish(&self, copier: &mut Copier, path: &[u8]) {
        if (self.owner.is_some() || self.group.is_some())
            && let Err(error) = abi::chown(Dir::CWD, path, false, self.owner, self.group)
        {
            copier.fail(format_args!("cannot change ownership of {}: {error}", quote::always(path)));
        }
        if let Err(error) = abi::chmod(Dir::CWD, path, true, self.mode) {
            copier.fail(format_args!("cannot change permissions of {}: {error}", quote::always(path)));
        }
    }
}
