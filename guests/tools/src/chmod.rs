//! `chmod`: changes permission bits.

use toolkit::args::{Tool, bytes_of};
use toolkit::mode::{Change, letters};
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "chmod",
    short: "Rcfv",
    long: &[
        ("changes", 'c'),
        ("recursive", 'R'),
        ("no-preserve-root", 'N'),
        ("preserve-root", 'P'),
        ("quiet", 'f'),
        ("silent", 'f'),
        ("reference=", 'r'),
        ("verbose", 'v'),
    ],
    help: "\
Usage: chmod [OPTION]... MODE[,MODE]... FILE...
  or:  chmod [OPTION]... OCTAL-MODE FILE...
  or:  chmod [OPTION]... --reference=RFILE FILE...
Change the mode of each FILE to MODE.
With --reference, change the mode of each FILE to that of RFILE.

  -c, --changes          like verbose but report only when a change is made
  -f, --silent, --quiet  suppress most error messages
  -v, --verbose          output a diagnostic for every file processed
      --no-preserve-root  do not treat '/' specially (the default)
      --preserve-root    fail to operate recursively on '/'
      --reference=RFILE  use RFILE's mode instead of MODE values
  -R, --recursive        change files and directories recursively
      --help        display this help and exit
      --version     output version information and exit

Each MODE is of the form '[ugoa]*([-+=]([rwxXst]*|[ugo]))+|[-+=][0-7]+'.
",
    misuse: 1,
};

struct Job {
    change: Change,
    /// A mode such as `-w`, which the umask may have kept from doing what it says.
    looks_like_option: bool,
    umask: u32,
    recursive: bool,
    preserve_root: bool,
    silent: bool,
    verbose: bool,
    changes: bool,
    out: Out,
    failed: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    match prepare(bytes_of(arguments)) {
        Ok((mut job, files)) => {
            files.iter().for_each(|file| job.change_operand(file));
            i32::from(job.failed)
        }
        Err(code) => code,
    }
}

fn prepare(arguments: Vec<Vec<u8>>) -> Result<(Job, Vec<Vec<u8>>), i32> {
    let (minus_modes, others) = split_minus_modes(arguments);
    let parsed = TOOL.parse(others)?;
    let mut files = parsed.operands;
    let has = |letter| parsed.options.iter().any(|option| option.0 == letter);
    let reference =
        parsed.options.iter().rev().find(|option| option.0 == 'r').and_then(|option| option.1.clone());
    let looks_like_option = !minus_modes.is_empty();
    let mode = match (&reference, looks_like_option) {
        (Some(_), _) => Vec::new(),
        (None, true) => minus_modes.join(&b','),
        (None, false) if files.is_empty() => return Err(TOOL.wrong("missing operand")),
        (None, false) => files.remove(0),
    };
    if files.is_empty() {
        return Err(match reference.is_some() || looks_like_option {
            true => TOOL.wrong("missing operand"),
            false => TOOL.wrong(format_args!("missing operand after {}", quote::word(&mode))),
        });
    }
    let change = match reference {
        Some(file) => reference_mode(&file)?,
        None => Change::parse(&mode)
            .ok_or_else(|| TOOL.wrong(format_args!("invalid mode: {}", quote::word(&mode))))?,
    };
    let umask = abi::umask(0);
    abi::umask(umask);
    let job = Job {
        change,
        looks_like_option,
        umask,
        recursive: has('R'),
        preserve_root: has('P'),
        silent: has('f'),
        verbose: has('v'),
        changes: has('c'),
        out: Out::new("chmod"),
        failed: false,
    };
    Ok((job, files))
}

/// Takes `-x`, `-rw` and the like from among the options.
fn split_minus_modes(arguments: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut options_over = false;
    arguments.into_iter().partition(|word| {
        options_over |= word == b"--";
        !options_over && word.len() > 1 && word[0] == b'-' && b"rwxXstugoa,+=01234567".contains(&word[1])
    })
}

fn reference_mode(file: &[u8]) -> Result<Change, i32> {
    match abi::stat(Dir::CWD, file, true) {
        Ok(stat) => Ok(Change::exactly(stat.mode)),
        Err(error) => {
            complain("chmod", format_args!("failed to get attributes of {}: {error}", quote::always(file)));
            Err(1)
        }
    }
}

impl Job {
    fn fail(&mut self, message: impl std::fmt::Display) {
        self.failed = true;
        if !self.silent {
            self.out.flush();
            complain("chmod", message);
        }
    }

    fn change_operand(&mut self, file: &[u8]) {
        if self.recursive && self.preserve_root && file.iter().all(|&byte| byte == b'/') {
            self.fail("it is dangerous to operate recursively on '/'\nchmod: use --no-preserve-root to override this failsafe");
            return;
        }
        let name = quote::always(file);
        match abi::stat(Dir::CWD, file, true) {
            Ok(stat) => self.change_file(file, stat.mode),
            Err(Errno::NOENT) if abi::stat(Dir::CWD, file, false).is_ok() => {
                self.fail(format_args!("cannot operate on dangling symlink {name}"));
            }
            Err(error) => {
                self.fail(format_args!("cannot access {name}: {error}"));
                if self.verbose {
                    self.out.put(format!(
                        "failed to change mode of {name} from 0000 (---------) to 0000 (---------)\n"
                    ));
                }
            }
        }
    }

    fn change_file(&mut self, file: &[u8], old: u32) {
        let is_dir = old & 0o170_000 == 0o040_000;
        let new = self.change.apply(old, is_dir, self.umask);
        match abi::chmod(Dir::CWD, file, true, new) {
            Ok(()) => self.report(file, old, new),
            Err(error) => {
                self.fail(format_args!("changing permissions of {}: {error}", quote::always(file)));
                if self.verbose {
                    self.out.put(format!(
                        "failed to change mode of {} from {} to {}\n",
                        quote::always(file),
                        shown(old),
                        shown(new)
                    ));
                }
            }
        }
        self.check_umask(file, old, new, is_dir);
        if self.recursive && is_dir {
            self.change_below(file);
        }
    }

    fn report(&mut self, file: &[u8], old: u32, new: u32) {
        let name = quote::always(file);
        if old & 0o7777 != new {
            if self.verbose || self.changes {
                self.out.put(format!("mode of {name} changed from {} to {}\n", shown(old), shown(new)));
            }
        } else if self.verbose {
            self.out.put(format!("mode of {name} retained as {}\n", shown(new)));
        }
    }

    /// A mode that reads like an option ought to do all it says.
    fn check_umask(&mut self, file: &[u8], old: u32, new: u32, is_dir: bool) {
        let meant = self.change.apply_without_umask(old, is_dir);
        if self.looks_like_option && new & !meant != 0 {
            let (new, meant) = (letters(new), letters(meant));
            let name = quote::if_needed(file);
            self.fail(format_args!("{name}: new permissions are {}, not {}", &new[1..], &meant[1..]));
        }
    }

    fn change_below(&mut self, directory: &[u8]) {
        let names = match files::names_in(directory) {
            Ok(names) => names,
            Err(error) => {
                return self
                    .fail(format_args!("cannot read directory {}: {error}", quote::always(directory)));
            }
        };
        for name in names {
            let file = files::join(directory, &name);
            match abi::stat(Dir::CWD, &file, false) {
                Ok(stat) if stat.is_symlink() => {
                    if self.verbose {
                        let name = quote::always(&file);
                        self.out.put(format!("neither symbolic link {name} nor referent has been changed\n"));
                    }
                }
                Ok(stat) => self.change_file(&file, stat.mode),
                Err(error) => self.fail(format_args!("cannot access {}: {error}", quote::always(&file))),
            }
        }
    }
}

/// `0644 (rw-r--r--)`.
fn shown(mode: u32) -> String {
    format!("{:04o} ({})", mode & 0o7777, &letters(mode)[1..])
}
