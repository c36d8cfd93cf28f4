//! `ln`: gives files further names, and makes symbolic links.

use toolkit::args::{Tool, bytes_of};
use toolkit::backup::Backup;
use toolkit::copy::is_agreed;
use toolkit::out::Out;
use toolkit::target::Pair;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "ln",
    short: "bdfinrst:vFLPS:T",
    long: &[
        ("backup[=", 'B'),
        ("directory", 'd'),
        ("no-dereference", 'n'),
        ("no-target-directory", 'T'),
        ("force", 'f'),
        ("interactive", 'i'),
        ("suffix=", 'S'),
        ("target-directory=", 't'),
        ("logical", 'L'),
        ("physical", 'P'),
        ("relative", 'r'),
        ("symbolic", 's'),
        ("verbose", 'v'),
    ],
    help: "\
Usage: ln [OPTION]... [-T] TARGET LINK_NAME
  or:  ln [OPTION]... TARGET
  or:  ln [OPTION]... TARGET... DIRECTORY
  or:  ln [OPTION]... -t DIRECTORY TARGET...
Make hard links to files, or with -s symbolic links.

  -b, --backup[=CONTROL]      keep a copy of each file that is replaced
  -f, --force                 remove existing destination files
  -i, --interactive           ask before removing destinations
  -L, --logical               follow TARGETs that are symbolic links
  -n, --no-dereference        treat LINK_NAME as a file if it is a
                                symbolic link to a directory
  -P, --physical              link to symbolic links themselves (default)
  -r, --relative              with -s, make links relative to where they are
  -s, --symbolic              make symbolic links
  -S, --suffix=SUFFIX         the suffix of such copies
  -t, --target-directory=DIRECTORY  make the links in DIRECTORY
  -T, --no-target-directory   treat LINK_NAME as a file always
  -v, --verbose               print the name of each linked file
      --help                  display this help and exit
      --version               output version information and exit
",
    misuse: 1,
};

struct Linker {
    symbolic: bool,
    relative: bool,
    follow: bool,
    /// A link to a directory is a file to be replaced, not a place to put links into.
    link_is_file: bool,
    force: bool,
    ask: bool,
    verbose: bool,
    backup: Backup,
    directory: Option<Vec<u8>>,
    no_directory: bool,
    out: Out,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut linker = Linker::new(parsed.options)?;
    let mut all = true;
    for (target, link) in linker.pairs(parsed.operands)? {
        all &= linker.link(&target, &link);
    }
    Ok(i32::from(!all))
}

impl Linker {
    fn new(options: Vec<(char, Option<Vec<u8>>)>) -> Result<Linker, i32> {
        let mut linker = Linker {
            symbolic: false,
            relative: false,
            follow: false,
            link_is_file: false,
            force: false,
            ask: false,
            verbose: false,
            backup: Backup::none(),
            directory: None,
            no_directory: false,
            out: Out::new("ln"),
        };
        for (letter, argument) in options {
            match letter {
                'b' | 'B' => linker.backup.set(argument.as_deref(), &TOOL)?,
                'S' => linker.backup.set_suffix(&argument.unwrap_or_default()),
                'f' => (linker.force, linker.ask) = (true, false),
                'i' => (linker.force, linker.ask) = (false, true),
                'L' => linker.follow = true,
                'P' => linker.follow = false,
                'n' => linker.link_is_file = true,
                'r' => linker.relative = true,
                's' => linker.symbolic = true,
                't' => linker.directory = argument,
                'T' => linker.no_directory = true,
                'v' => linker.verbose = true,
                // The super-user's -d and -F: nobody here can link directories.
                _ => {}
            }
        }
        if linker.relative && !linker.symbolic {
            complain("ln", "cannot do --relative without --symbolic");
            return Err(1);
        }
        Ok(linker)
    }

    /// The operands as targets and the links to be made to them.
    fn pairs(&self, mut operands: Vec<Vec<u8>>) -> Result<Vec<Pair>, i32> {
        if operands.is_empty() {
            return Err(TOOL.wrong("missing file operand"));
        }
        if self.no_directory {
            return match operands.as_slice() {
                [target, link] => Ok(vec![(target.clone(), link.clone())]),
                [target] => {
                    let message = format!("missing destination file operand after {}", quote::always(target));
                    Err(TOOL.wrong(message))
                }
                [_, _, third, ..] => Err(TOOL.wrong(format_args!("extra operand {}", quote::always(third)))),
                [] => Err(1),
            };
        }
        let directory = match (&self.directory, operands.len()) {
            (Some(directory), _) => directory.clone(),
            (None, 1) => b".".to_vec(),
            (None, count) => {
                let last = operands.pop().unwrap_or_default();
                match self.place(&last) {
                    Ok(()) => last,
                    Err(_) if count == 2 => return Ok(vec![(operands.remove(0), last)]),
                    Err(error) => {
                        complain("ln", format_args!("target {}: {error}", quote::always(&last)));
                        return Err(1);
                    }
                }
            }
        };
        if self.directory.is_some()
            && let Err(error) = self.place(&directory)
        {
            complain("ln", format_args!("target directory {}: {error}", quote::always(&directory)));
            return Err(1);
        }
        let link = |target: &Vec<u8>| files::join(&directory, files::base_name(target));
        Ok(operands.into_iter().map(|target| (target.clone(), link(&target))).collect())
    }

    /// Whether links can be put into this.
    fn place(&self, path: &[u8]) -> Result<(), Errno> {
        let stat = abi::stat(Dir::CWD, path, !self.link_is_file)?;
        if stat.is_dir() { Ok(()) } else { Err(Errno::NOTDIR) }
    }

    fn link(&mut self, target: &[u8], link: &[u8]) -> bool {
        match self.try_link(target, link) {
            Ok(()) => true,
            Err(message) => {
                self.out.flush();
                if !message.is_empty() {
                    complain("ln", message);
                }
                false
            }
        }
    }

    /// An empty message is that of someone who said no.
    fn try_link(&mut self, target: &[u8], link: &[u8]) -> Result<(), String> {
        if !self.symbolic {
            let stat = abi::stat(Dir::CWD, target, self.follow)
                .map_err(|error| format!("failed to access {}: {error}", quote::always(target)))?;
            if stat.is_dir() {
                return Err(format!("{}: hard link not allowed for directory", quote::if_needed(target)));
            }
        }
        let backup = self.make_way(target, link)?;
        let content =
            if self.relative { files::relative(target, &files::parent(link)) } else { target.to_vec() };
        let made = if self.symbolic {
            abi::symlink(&content, Dir::CWD, link)
        } else {
            let real = if self.follow { files::resolve(target) } else { target.to_vec() };
            abi::hard_link(Dir::CWD, &real, Dir::CWD, link)
        };
        made.map_err(|error| self.refusal(target, link, error))?;
        if self.verbose {
            let before = backup.map(|name| format!("{} ~ ", quote::always(&name))).unwrap_or_default();
            let arrow = if self.symbolic { "->" } else { "=>" };
            let line = format!("{before}{} {arrow} {}\n", quote::always(link), quote::always(&content));
            self.out.put(line);
        }
        Ok(())
    }

    /// Takes away what has the link's name, where that is wanted. Answers the name it has now, if it was kept.
    fn make_way(&mut self, target: &[u8], link: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let Ok(there) = abi::stat(Dir::CWD, link, false) else { return Ok(None) };
        if !self.force && !self.ask && !self.backup.is_wanted() {
            return Ok(None);
        }
        if there.is_dir() {
            return Err(format!("{}: cannot overwrite directory", quote::if_needed(link)));
        }
        let same = abi::stat(Dir::CWD, target, self.follow)
            .is_ok_and(|stat| (stat.dev, stat.ino) == (there.dev, there.ino));
        if same && !self.symbolic && !self.backup.is_wanted() {
            let (target, link) = (quote::always(target), quote::always(link));
            return Err(format!("{target} and {link} are the same file"));
        }
        if self.ask && !is_agreed("ln", format_args!("replace {}? ", quote::always(link))) {
            return Err(String::new());
        }
        if self.backup.is_wanted() {
            let kept = self.backup.make(link);
            return kept.map_err(|error| format!("cannot backup {}: {error}", quote::always(link)));
        }
        let removed = abi::unlink(Dir::CWD, link);
        removed.map_err(|error| format!("cannot remove {}: {error}", quote::always(link)))?;
        Ok(None)
    }

    fn refusal(&self, target: &[u8], link: &[u8], error: Errno) -> String {
        let (shown, link) = (quote::always(target), quote::always(link));
        let tells_all = matches!(error, Errno::EXIST | Errno::DQUOT | Errno::NOSPC | Errno::ROFS);
        match self.symbolic {
            true if error != Errno::NAMETOOLONG && !target.is_empty() => {
                format!("failed to create symbolic link {link}: {error}")
            }
            true => format!("failed to create symbolic link {link} -> {shown}: {error}"),
            false if tells_all => format!("failed to create hard link {link}: {error}"),
            false => format!("failed to create hard link {link} => {shown}: {error}"),
        }
    }
}
