//! `sync`: has files written out, as far as they are on a disk: those of mounted directories are.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, open_flags};

const TOOL: Tool = Tool {
    name: "sync",
    short: "df",
    long: &[("data", 'd'), ("file-system", 'f')],
    help: "\
Usage: sync [OPTION] [FILE]...
Synchronize cached writes to persistent storage: those of each FILE, or without
one those to every mounted file system. Files in memory need none.

  -d, --data             sync only file data, no unneeded metadata
  -f, --file-system      sync the file systems that contain the files
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let has = |wanted| parsed.options.iter().any(|(letter, _)| *letter == wanted);
    if has('d') && has('f') {
        complain("sync", "cannot specify both --data and --file-system");
        return 1;
    }
    if has('d') && parsed.operands.is_empty() {
        complain("sync", "--data needs at least one argument");
        return 1;
    }
    if parsed.operands.is_empty() {
        for mount in toolkit::mounts::all() {
            let _ = sync(&mount.point);
        }
        return 0;
    }
    let mut code = 0;
    for file in &parsed.operands {
        if let Err((what, error)) = sync(file) {
            complain("sync", format_args!("error {what} {}: {error}", quote::always(file)));
            code = 1;
        }
    }
    code
}

/// Has one file or directory written out.
fn sync(path: &[u8]) -> Result<(), (&'static str, Errno)> {
    // A FIFO would be waited for.
    let flags = open_flags::RDONLY | open_flags::NONBLOCK | open_flags::CLOEXEC;
    let fd = abi::open(Dir::CWD, path, flags, 0)
        .or_else(|error| match error {
            Errno::ACCES => abi::open(Dir::CWD, path, open_flags::WRONLY | open_flags::NONBLOCK, 0),
            error => Err(error),
        })
        .map_err(|error| ("opening", error))?;
    let synced = abi::sync(fd);
    let _ = abi::close(fd);
    synced.map_err(|error| ("syncing", error))
}
