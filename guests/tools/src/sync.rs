//! `sync`: has files written out. What is written here is written; only the names are looked at.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::Dir;

const TOOL: Tool = Tool {
    name: "sync",
    short: "df",
    long: &[("data", 'd'), ("file-system", 'f')],
    help: "\
Usage: sync [OPTION] [FILE]...
Synchronize cached writes to persistent storage. The files of a sandbox have
no cache before them: there is nothing to wait for.

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
    let mut code = 0;
    for file in &parsed.operands {
        if let Err(error) = abi::stat(Dir::CWD, file, true) {
            complain("sync", format_args!("error opening {}: {error}", quote::always(file)));
            code = 1;
        }
    }
    code
}
