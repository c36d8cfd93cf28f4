//! `mkdir`: makes directories.

use toolkit::args::{Tool, bytes_of};
use toolkit::mode::Change;
use toolkit::out::Out;
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "mkdir",
    short: "m:pvZ",
    long: &[("mode=", 'm'), ("parents", 'p'), ("verbose", 'v'), ("context[=", 'Z')],
    help: "\
Usage: mkdir [OPTION]... DIRECTORY...
Create the DIRECTORY(ies), if they do not already exist.

  -m, --mode=MODE   set file mode (as in chmod), not a=rwx - umask
  -p, --parents     no error if existing, make parent directories as needed,
                      with their file modes unaffected by any -m option.
  -v, --verbose     print a message for each created directory
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

struct Maker {
    mode: Option<u32>,
    parents: bool,
    verbose: bool,
    umask: u32,
    out: Out,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let umask = abi::umask(0);
    abi::umask(umask);
    let mut maker = Maker { mode: None, parents: false, verbose: false, umask, out: Out::new("mkdir") };
    for (letter, text) in parsed.options {
        match letter {
            'm' => {
                let text = text.unwrap_or_default();
                let change = Change::parse(&text).ok_or_else(|| {
                    complain("mkdir", format_args!("invalid mode {}", quote::word(&text)));
                    1
                })?;
                maker.mode = Some(change.apply(0o777, true, umask));
            }
            'p' => maker.parents = true,
            'v' => maker.verbose = true,
            _ => {}
        }
    }
    if parsed.operands.is_empty() {
        return Err(TOOL.wrong("missing operand"));
    }
    let mut code = 0;
    for directory in &parsed.operands {
        if let Err((path, error)) = maker.make(directory) {
            maker.out.flush();
            complain("mkdir", format_args!("cannot create directory {}: {error}", quote::word(&path)));
            code = 1;
        }
    }
    Ok(code)
}

impl Maker {
    /// The error has the path that could not be made.
    fn make(&mut self, directory: &[u8]) -> Result<(), (Vec<u8>, Errno)> {
        if self.parents {
            self.make_parents(directory)?;
        }
        match abi::mkdir(Dir::CWD, directory, self.mode.unwrap_or(0o777)) {
            Ok(()) => self.say(directory),
            Err(Errno::EXIST) if self.parents && is_directory(directory) => return Ok(()),
            Err(error) => return Err((directory.to_vec(), error)),
        }
        if let Some(mode) = self.mode {
            abi::chmod(Dir::CWD, directory, true, mode).map_err(|error| (directory.to_vec(), error))?;
        }
        Ok(())
    }

    /// Makes what is missing above; their owner can go on inside, whatever the umask says.
    fn make_parents(&mut self, directory: &[u8]) -> Result<(), (Vec<u8>, Errno)> {
        let end = directory.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
        let slashes = (1..end).filter(|&at| directory[at] == b'/' && directory[at - 1] != b'/');
        for at in slashes {
            let parent = &directory[..at];
            if is_directory(parent) {
                continue;
            }
            match abi::mkdir(Dir::CWD, parent, 0o777) {
                Ok(()) => self.say(parent),
                Err(Errno::EXIST) => return Err((parent.to_vec(), Errno::NOTDIR)),
                Err(error) => return Err((parent.to_vec(), error)),
            }
            if self.umask & 0o300 != 0 {
                let mode = 0o777 & !self.umask | 0o300;
                abi::chmod(Dir::CWD, parent, true, mode).map_err(|error| (parent.to_vec(), error))?;
            }
        }
        Ok(())
    }

    fn say(&mut self, directory: &[u8]) {
        if self.verbose {
            let line = format!("mkdir: created directory {}\n", quote::always(directory));
            self.out.put(line);
        }
    }
}

fn is_directory(path: &[u8]) -> bool {
    abi::stat(Dir::CWD, path, true).is_ok_and(|stat| stat.is_dir())
}
