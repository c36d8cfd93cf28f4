//! `rm`: removes files and trees.

use std::io::IsTerminal;
use toolkit::args::{Refusal, Tool, bytes_of};
use toolkit::copy::is_agreed;
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Stat};

const TOOL: Tool = Tool {
    name: "rm",
    short: "dfirvIR",
    long: &[
        ("-presume-input-tty", 't'),
        ("force", 'f'),
        ("interactive[=", 'A'),
        ("one-file-system", 'x'),
        ("no-preserve-root", 'n'),
        ("preserve-root[=", 'p'),
        ("recursive", 'r'),
        ("dir", 'd'),
        ("verbose", 'v'),
    ],
    help: "\
Usage: rm [OPTION]... [FILE]...
Remove (unlink) the FILE(s).

  -f, --force           ignore nonexistent files and arguments, never prompt
  -i                    prompt before every removal
  -I                    prompt once before removing more than three files, or
                          when removing recursively
      --interactive[=WHEN]  prompt according to WHEN: never, once (-I), or
                          always (-i); without WHEN, prompt always
      --one-file-system  when removing a hierarchy recursively, skip any
                          directory that is on a file system different from
                          that of the corresponding command line argument
      --no-preserve-root  do not treat '/' specially
      --preserve-root[=all]  do not remove '/' (default);
                              with 'all', reject any command line argument
                              on a separate device from its parent
  -r, -R, --recursive   remove directories and their contents recursively
  -d, --dir             remove empty directories
  -v, --verbose         explain what is being done
      --help        display this help and exit
      --version     output version information and exit

To remove a file whose name starts with a '-', for example '-foo',
use one of these commands:
  rm -- -foo
  rm ./-foo
",
    misuse: 1,
};

#[derive(Clone, Copy, PartialEq)]
enum Ask {
    /// Only before a file that is write-protected, and only someone who sits there.
    Protected,
    Never,
    Once,
    Always,
}

struct Remover {
    ask: Ask,
    ignore_missing: bool,
    recursive: bool,
    directories: bool,
    one_file_system: bool,
    keep_root: bool,
    keep_mounts: bool,
    verbose: bool,
    presumes_terminal: bool,
    out: Out,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.try_parse(arguments.clone()).map_err(|refusal| match refusal {
        Refusal::Wrong(message) => explain(&message, &arguments),
        other => TOOL.answer(other),
    })?;
    let mut remover = Remover::new(parsed.options)?;
    if parsed.operands.is_empty() {
        return if remover.ignore_missing { Ok(0) } else { Err(TOOL.wrong("missing operand")) };
    }
    if remover.ask == Ask::Once && !remover.is_agreed_once(parsed.operands.len()) {
        return Ok(0);
    }
    let mut all = true;
    for operand in parsed.operands {
        all &= remover.remove_operand(&operand) != Outcome::Failed;
    }
    Ok(i32::from(!all))
}

/// Whoever has a file called `-foo` is told how to remove it.
fn explain(message: &str, arguments: &[Vec<u8>]) -> i32 {
    let is_file = |word: &&Vec<u8>| word.starts_with(b"-") && abi::stat(Dir::CWD, word, false).is_ok();
    let Some(file) = arguments.iter().take_while(|word| *word != b"--").find(is_file) else {
        return TOOL.wrong(message);
    };
    let path = quote::if_needed(&files::join(b".", file));
    TOOL.wrong(format_args!("{message}\nTry 'rm {path}' to remove the file {}.", quote::always(file)))
}

impl Remover {
    fn new(options: Vec<(char, Option<Vec<u8>>)>) -> Result<Remover, i32> {
        let mut remover = Remover {
            ask: Ask::Protected,
            ignore_missing: false,
            recursive: false,
            directories: false,
            one_file_system: false,
            keep_root: true,
            keep_mounts: false,
            verbose: false,
            presumes_terminal: false,
            out: Out::new("rm"),
        };
        for (letter, argument) in options {
            match letter {
                'f' => (remover.ask, remover.ignore_missing) = (Ask::Never, true),
                'i' => (remover.ask, remover.ignore_missing) = (Ask::Always, false),
                'I' => (remover.ask, remover.ignore_missing) = (Ask::Once, false),
                'A' => remover.ask = when(argument.as_deref())?,
                'r' | 'R' => remover.recursive = true,
                't' => remover.presumes_terminal = true,
                'd' => remover.directories = true,
                'x' => remover.one_file_system = true,
                'n' => remover.keep_root = false,
                'p' => match argument.as_deref() {
                    None => remover.keep_root = true,
                    Some(b"all") => (remover.keep_root, remover.keep_mounts) = (true, true),
                    Some(other) => {
                        let message =
                            format!("unrecognized --preserve-root argument: {}", quote::word(other));
                        complain("rm", message);
                        return Err(1);
                    }
                },
                _ => remover.verbose = true,
            }
        }
        Ok(remover)
    }

    fn is_agreed_once(&self, count: usize) -> bool {
        if !self.recursive && count <= 3 {
            return true;
        }
        let (noun, how) = (
            if count == 1 { "argument" } else { "arguments" },
            if self.recursive { " recursively" } else { "" },
        );
        is_agreed("rm", format_args!("remove {count} {noun}{how}? "))
    }

    fn remove_operand(&mut self, path: &[u8]) -> Outcome {
        let stat = match abi::stat(Dir::CWD, path, false) {
            Ok(stat) => stat,
            Err(error) => return self.failed(path, error),
        };
        if stat.is_dir() && self.recursive {
            if matches!(files::base_name(path), b"." | b"..") {
                let shown = quote::always(path);
                complain("rm", format_args!("refusing to remove '.' or '..' directory: skipping {shown}"));
                return Outcome::Failed;
            }
            if self.keep_root && is_root(&stat) {
                self.refuse_root(path);
                return Outcome::Failed;
            }
            let above = abi::stat(Dir::CWD, &files::join(path, b".."), true);
            if self.keep_mounts && above.is_ok_and(|above| above.dev != stat.dev) {
                let shown = quote::always(path);
                complain("rm", format_args!("skipping {shown}, since it's on a different device"));
                complain("rm", "and --preserve-root=all is in effect");
                return Outcome::Failed;
            }
            return self.remove_tree(path, &stat);
        }
        self.remove_one(path, &stat)
    }

    fn refuse_root(&self, path: &[u8]) {
        let same = if path == b"/" { String::new() } else { " (same as '/')".into() };
        complain(
            "rm",
            format_args!("it is dangerous to operate recursively on {}{same}", quote::always(path)),
        );
        complain("rm", "use --no-preserve-root to override this failsafe");
    }

    /// Removes what is no directory, or with `-d` an empty one.
    fn remove_one(&mut self, path: &[u8], stat: &Stat) -> Outcome {
        if stat.is_dir() && !self.directories {
            return self.failed(path, Errno::ISDIR);
        }
        if !self.is_agreed(path, stat, "remove") {
            return Outcome::Kept;
        }
        let removed = if stat.is_dir() { abi::rmdir(Dir::CWD, path) } else { abi::unlink(Dir::CWD, path) };
        match removed {
            Ok(()) => self.tell(path, stat.is_dir()),
            Err(error) => self.failed(path, error),
        }
    }

    /// Removes a directory with what is in it. The directories being emptied stand on a list and not on the stack:
    /// they may lie deep.
    fn remove_tree(&mut self, root: &[u8], stat: &Stat) -> Outcome {
        let mut worst = Outcome::Gone;
        let mut path = root.to_vec();
        let mut levels = match self.enter(&path, stat) {
            Entered::Level(level) => vec![level],
            Entered::Done(outcome) => return outcome,
        };
        while let Some(level) = levels.last_mut() {
            path.truncate(level.path_len);
            let outcome = match level.names.next() {
                Some(name) => {
                    path = files::join(&path, &name);
                    match self.remove_child(&path, stat.dev) {
                        Entered::Level(level) => {
                            levels.push(level);
                            continue;
                        }
                        Entered::Done(outcome) => outcome,
                    }
                }
                None => match levels.pop() {
                    Some(level) => self.leave(&path, &level),
                    None => break,
                },
            };
            if let Some(level) = levels.last_mut() {
                level.is_emptied &= outcome == Outcome::Gone;
            }
            worst = worst.max(outcome);
        }
        worst
    }

    fn remove_child(&mut self, path: &[u8], device: u64) -> Entered {
        match abi::stat(Dir::CWD, path, false) {
            Err(error) => Entered::Done(self.failed(path, error)),
            Ok(child) if child.is_dir() && self.one_file_system && child.dev != device => {
                let shown = quote::always(path);
                complain("rm", format_args!("skipping {shown}, since it's on a different device"));
                Entered::Done(Outcome::Failed)
            }
            Ok(child) if child.is_dir() => self.enter(path, &child),
            Ok(child) => Entered::Done(self.remove_one(path, &child)),
        }
    }

    /// Looks into a directory, if that is agreed to.
    fn enter(&mut self, path: &[u8], stat: &Stat) -> Entered {
        let names = match files::names_in(path) {
            Ok(names) => names,
            // One that cannot be read may yet be empty.
            Err(error) if error == Errno::ACCES => {
                return Entered::Done(match abi::rmdir(Dir::CWD, path) {
                    Ok(()) => self.tell(path, true),
                    Err(_) => self.failed(path, error),
                });
            }
            Err(error) => return Entered::Done(self.failed(path, error)),
        };
        if !names.is_empty() && !self.is_agreed(path, stat, "descend into") {
            return Entered::Done(Outcome::Kept);
        }
        let level = Level { path_len: path.len(), names: names.into_iter(), stat: *stat, is_emptied: true };
        Entered::Level(level)
    }

    /// Removes a directory after what was in it. What was kept inside has been explained, or asked for.
    fn leave(&mut self, path: &[u8], level: &Level) -> Outcome {
        if !level.is_emptied || !self.is_agreed(path, &level.stat, "remove") {
            return Outcome::Kept;
        }
        match abi::rmdir(Dir::CWD, path) {
            Ok(()) => self.tell(path, true),
            Err(error) => self.failed(path, error),
        }
    }

    /// Whether something may go: asks where that is wanted.
    fn is_agreed(&mut self, path: &[u8], stat: &Stat, what: &str) -> bool {
        let protected = !stat.is_symlink() && abi::access(Dir::CWD, path, 2).is_err();
        let asks = match self.ask {
            Ask::Never => false,
            Ask::Always => true,
            Ask::Once | Ask::Protected => {
                protected && (self.presumes_terminal || std::io::stdin().is_terminal())
            }
        };
        if !asks {
            return true;
        }
        self.out.flush();
        let how = if protected { "write-protected " } else { "" };
        let question = format!("{what} {how}{} {}? ", kind_of(stat), quote::always(path));
        is_agreed("rm", question)
    }

    fn tell(&mut self, path: &[u8], is_directory: bool) -> Outcome {
        if self.verbose {
            let noun = if is_directory { "directory " } else { "" };
            self.out.put(format!("removed {noun}{}\n", quote::always(path)));
        }
        Outcome::Gone
    }

    /// Says why something stays; with `-f` what is not there is as good as gone.
    fn failed(&mut self, path: &[u8], error: Errno) -> Outcome {
        if self.ignore_missing && (error == Errno::NOENT || error == Errno::NOTDIR) {
            return Outcome::Gone;
        }
        self.out.flush();
        complain("rm", format_args!("cannot remove {}: {error}", quote::always(path)));
        Outcome::Failed
    }
}

/// What became of a file, from good to bad.
#[derive(Clone, Copy, PartialEq, PartialOrd, Eq, Ord)]
enum Outcome {
    Gone,
    /// Because someone said so.
    Kept,
    Failed,
}

/// A directory that is being emptied.
struct Level {
    path_len: usize,
    names: std::vec::IntoIter<Vec<u8>>,
    stat: Stat,
    is_emptied: bool,
}

enum Entered {
    Level(Level),
    Done(Outcome),
}

fn when(word: Option<&[u8]>) -> Result<Ask, i32> {
    const CHOICES: [(&str, Ask); 6] = [
        ("never", Ask::Never),
        ("no", Ask::Never),
        ("none", Ask::Never),
        ("once", Ask::Once),
        ("always", Ask::Always),
        ("yes", Ask::Always),
    ];
    word.map_or(Ok(Ask::Always), |word| TOOL.choose("--interactive", word, &CHOICES))
}

fn is_root(stat: &Stat) -> bool {
    abi::stat(Dir::CWD, b"/", false).is_ok_and(|root| (root.dev, root.ino) == (stat.dev, stat.ino))
}

fn kind_of(stat: &Stat) -> &'static str {
    match () {
        () if stat.is_file() && stat.size == 0 => "regular empty file",
        () if stat.is_file() => "regular file",
        () if stat.is_dir() => "directory",
        () if stat.is_symlink() => "symbolic link",
        () if stat.is_fifo() => "fifo",
        () if stat.is_socket() => "socket",
        () if stat.is_char() => "character special file",
        () => "block special file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_kept_unless_said_otherwise() {
        assert!(
            Remover::new(vec![('r', None), ('f', None)]).unwrap_or_else(|_| panic!("no error")).keep_root
        );
        let options = vec![('r', None), ('n', None)];
        assert!(!Remover::new(options).unwrap_or_else(|_| panic!("no error")).keep_root);
    }
}
