//! `realpath` and `readlink`: where a path leads.

use std::collections::HashSet;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const REALPATH: Tool = Tool {
    name: "realpath",
    short: "eLmPqsz",
    long: &[
        ("canonicalize-existing", 'e'),
        ("canonicalize-missing", 'm'),
        ("relative-to=", 'r'),
        ("relative-base=", 'b'),
        ("quiet", 'q'),
        ("strip", 's'),
        ("no-symlinks", 's'),
        ("zero", 'z'),
        ("logical", 'L'),
        ("physical", 'P'),
    ],
    help: "\
Usage: realpath [OPTION]... FILE...
Print the absolute path of each FILE without links, '.' and '..'. All but its
last component must exist.

  -e, --canonicalize-existing  all components must exist
  -m, --canonicalize-missing   no component need exist
  -L, --logical                take '..' away before links are followed
  -P, --physical               follow links as they come (default)
  -q, --quiet                  say nothing of what is wrong
      --relative-to=DIR        print the way from DIR
      --relative-base=DIR      the same, for what is below DIR
  -s, --strip, --no-symlinks   do not follow links
  -z, --zero                   end each line with NUL
      --help                   display this help and exit
      --version                output version information and exit
",
    misuse: 1,
};

const READLINK: Tool = Tool {
    name: "readlink",
    short: "efmnqsvz",
    long: &[
        ("canonicalize", 'f'),
        ("canonicalize-existing", 'e'),
        ("canonicalize-missing", 'm'),
        ("no-newline", 'n'),
        ("quiet", 'q'),
        ("silent", 's'),
        ("verbose", 'v'),
        ("zero", 'z'),
    ],
    help: "\
Usage: readlink [OPTION]... FILE...
Print where each symbolic link points, or the absolute path of a file.

  -f, --canonicalize           the absolute path without links, '.' and '..';
                               all but the last component must exist
  -e, --canonicalize-existing  the same; all components must exist
  -m, --canonicalize-missing   the same; no component need exist
  -n, --no-newline             print no newline at the end
  -q, -s, --quiet, --silent    say nothing of what is wrong (default)
  -v, --verbose                say what is wrong
  -z, --zero                   end each line with NUL
      --help                   display this help and exit
      --version                output version information and exit
",
    misuse: 1,
};

/// What of a path must exist.
#[derive(Clone, Copy, PartialEq)]
enum Must {
    All,
    AllButLast,
    Nothing,
}

pub fn readlink(arguments: Arguments) -> i32 {
    print_links(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn print_links(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = READLINK.parse(arguments)?;
    let (mut must, mut newline, mut end) = (None, true, b'\n');
    let mut is_verbose = std::env::var_os("POSIXLY_CORRECT").is_some();
    for (letter, _) in parsed.options {
        match letter {
            'f' => must = Some(Must::AllButLast),
            'e' => must = Some(Must::All),
            'm' => must = Some(Must::Nothing),
            'n' => newline = false,
            'v' => is_verbose = true,
            'z' => end = 0,
            _ => is_verbose = false,
        }
    }
    if parsed.operands.is_empty() {
        return Err(READLINK.wrong("missing operand"));
    }
    if parsed.operands.len() > 1 && !newline {
        complain("readlink", "ignoring --no-newline with multiple arguments");
        newline = true;
    }
    let (mut out, mut code) = (Out::new("readlink"), 0);
    for operand in parsed.operands {
        let target = match must {
            Some(must) => canonical(&operand, must, true),
            None => abi::readlink(Dir::CWD, &operand),
        };
        match target {
            Ok(target) => {
                out.put(target);
                if newline {
                    out.put([end]);
                }
            }
            Err(error) => {
                code = 1;
                if is_verbose {
                    out.flush();
                    complain("readlink", format_args!("{}: {error}", quote::if_needed(&operand)));
                }
            }
        }
    }
    Ok(code)
}

/// How `realpath` finds a path, and what it prints of it.
struct Finder {
    must: Must,
    follows: bool,
    /// `..` is taken away before links are followed.
    is_logical: bool,
    relative_to: Option<Vec<u8>>,
    relative_base: Option<Vec<u8>>,
}

pub fn main(arguments: Arguments) -> i32 {
    print_paths(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn print_paths(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = REALPATH.parse(arguments)?;
    let mut finder = Finder {
        must: Must::AllButLast,
        follows: true,
        is_logical: false,
        relative_to: None,
        relative_base: None,
    };
    let (mut is_quiet, mut end) = (false, b'\n');
    for (letter, text) in parsed.options {
        match letter {
            'e' => finder.must = Must::All,
            'm' => finder.must = Must::Nothing,
            'L' => (finder.follows, finder.is_logical) = (false, true),
            's' => (finder.follows, finder.is_logical) = (false, false),
            'P' => (finder.follows, finder.is_logical) = (true, false),
            'q' => is_quiet = true,
            'r' => finder.relative_to = text,
            'b' => finder.relative_base = text,
            _ => end = 0,
        }
    }
    if parsed.operands.is_empty() {
        return Err(REALPATH.wrong("missing operand"));
    }
    finder.settle_directories()?;
    let (mut out, mut code) = (Out::new("realpath"), 0);
    for operand in parsed.operands {
        match finder.find(&operand) {
            Ok(path) => {
                out.put(finder.shown(path));
                out.put([end]);
            }
            Err(error) => {
                code = 1;
                if !is_quiet {
                    out.flush();
                    complain("realpath", format_args!("{}: {error}", quote::if_needed(&operand)));
                }
            }
        }
    }
    Ok(code)
}

impl Finder {
    fn find(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let found = canonical(path, self.must, self.follows)?;
        if self.is_logical { canonical(&found, self.must, true) } else { Ok(found) }
    }

    /// Makes the directories that paths are relative to absolute, and leaves out those without effect.
    fn settle_directories(&mut self) -> Result<(), i32> {
        let to = self.relative_to.take().or_else(|| self.relative_base.clone());
        let to = to.map(|to| self.directory(&to)).transpose()?;
        let base = self.relative_base.take().map(|base| self.directory(&base)).transpose()?;
        (self.relative_to, self.relative_base) = match (to, base) {
            (Some(to), Some(base)) if !is_below(&to, &base) => (None, None),
            settled => settled,
        };
        Ok(())
    }

    fn directory(&self, path: &[u8]) -> Result<Vec<u8>, i32> {
        let found = self.find(path).and_then(|found| match self.must {
            Must::All if !abi::stat(Dir::CWD, &found, true).is_ok_and(|stat| stat.is_dir()) => {
                Err(Errno::NOTDIR)
            }
            _ => Ok(found),
        });
        found.map_err(|error| {
            complain("realpath", format_args!("{}: {error}", quote::if_needed(path)));
            1
        })
    }

    fn shown(&self, path: Vec<u8>) -> Vec<u8> {
        let Some(to) = &self.relative_to else { return path };
        match &self.relative_base {
            Some(base) if !is_below(&path, base) => path,
            _ => way_between(to, &path),
        }
    }
}

fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|part| !part.is_empty())
}

/// Whether a path is a directory or in it.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    let mut rest = parts(path);
    parts(directory).all(|part| rest.next() == Some(part))
}

/// The way from one absolute path to another.
fn way_between(from: &[u8], to: &[u8]) -> Vec<u8> {
    let (from, to): (Vec<&[u8]>, Vec<&[u8]>) = (parts(from).collect(), parts(to).collect());
    let shared = from.iter().zip(&to).take_while(|(left, right)| left == right).count();
    let up = std::iter::repeat_n(b"..".as_slice(), from.len() - shared);
    let way: Vec<&[u8]> = up.chain(to[shared..].iter().copied()).collect();
    if way.is_empty() { b".".to_vec() } else { way.join(&b'/') }
}

/// The absolute path without `.`, `..` and, if they are followed, links.
fn canonical(path: &[u8], must: Must, follows: bool) -> Result<Vec<u8>, Errno> {
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut done = if path.starts_with(b"/") { b"/".to_vec() } else { abi::getcwd()? };
    let mut rest = path.to_vec();
    let mut followed = HashSet::new();
    loop {
        let start = rest.iter().position(|&byte| byte != b'/').unwrap_or(rest.len());
        let length = rest[start..].iter().position(|&byte| byte == b'/').unwrap_or(rest.len() - start);
        if length == 0 {
            return Ok(done);
        }
        let name = rest[start..start + length].to_vec();
        rest.drain(..start + length);
        match name.as_slice() {
            b"." => continue,
            b".." => {
                done = files::parent(&done);
                continue;
            }
            _ => {}
        }
        let here = files::join(&done, &name);
        let link = if follows { abi::readlink(Dir::CWD, &here) } else { Err(Errno::INVAL) };
        match link {
            Ok(target) if followed.insert((here.clone(), rest.clone())) => {
                if target.starts_with(b"/") {
                    done = b"/".to_vec();
                }
                rest.splice(..0, target);
                continue;
            }
            Ok(_) if must != Must::Nothing => return Err(Errno::LOOP),
            Ok(_) => {}
            Err(error) => check(&here, &rest, must, follows, error)?,
        }
        done = here;
    }
}

/// Whether a component that is no link may be as it is: `error` says what came of reading it as one.
fn check(here: &[u8], rest: &[u8], must: Must, follows: bool, error: Errno) -> Result<(), Errno> {
    if must == Must::Nothing {
        return Ok(());
    }
    let exists = if wants_directory(rest) {
        abi::stat(Dir::CWD, &[here, b"/"].concat(), true).map(|_| ())
    } else if follows {
        if error == Errno::INVAL { Ok(()) } else { Err(error) }
    } else if rest.is_empty() {
        abi::stat(Dir::CWD, here, true).map(|_| ())
    } else {
        Ok(())
    };
    match exists {
        Err(Errno::NOENT) if must == Must::AllButLast && rest.iter().all(|&byte| byte == b'/') => Ok(()),
        exists => exists,
    }
}

/// Whether what follows a component makes sense only if that is a directory: a slash at the end, `.` there, or `..`.
fn wants_directory(rest: &[u8]) -> bool {
    if rest.is_empty() {
        return false;
    }
    let mut names = parts(rest).skip_while(|part| *part == b".");
    matches!(names.next(), None | Some(b".."))
}
