//! `grep`: prints the lines that match.
//!
//! ```text
//! options.rs  the command line
//! files.rs    which files are searched, and which are left out
//! print.rs    what is said of a line
//! ```

mod files;
mod options;
mod print;

use options::Options;
use toolkit::Arguments;
use toolkit::args::bytes_of;

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments), None)
}

pub fn egrep(arguments: Arguments) -> i32 {
    run(bytes_of(arguments), Some('E'))
}

pub fn fgrep(arguments: Arguments) -> i32 {
    run(bytes_of(arguments), Some('F'))
}

fn run(arguments: Vec<Vec<u8>>, matcher: Option<char>) -> i32 {
    match Options::parse(arguments, matcher) {
        Ok(options) => files::search_all(options),
        Err(code) => code,
    }
}
