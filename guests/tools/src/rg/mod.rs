//! `rg`: searches directories for lines, as ripgrep does: what version control ignores, what is hidden and what is
//! not text is left out.
//!
//! ```text
//! options.rs    the command line
//! walk.rs       which files are searched
//! print.rs      what is said of a line, and of a file
//! json.rs       the same for programs
//! multiline.rs  matches that span lines
//! ```

mod json;
mod multiline;
mod options;
mod print;
mod walk;

use crate::lines::{Search, Wanted};
use options::{Mode, Options};
use print::{Printer, Totals};
use std::time::Instant;
use toolkit::args::bytes_of;
use toolkit::out::Out;
use toolkit::{Arguments, complain, files};
use walk::Target;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags};
use wardian_regex::Regex;

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let started = Instant::now();
    let options = Options::parse(arguments)?;
    let mut out = Out::new("rg");
    if options.mode == Mode::Types {
        walk::print_types(&options.walk, &mut out)?;
        return Ok(0);
    }
    let regex = options.compile().map_err(|error| {
        complain_plainly(&error);
        2
    })?;
    let (targets, with_names, mut failed) = walk::targets(&options)?;
    let is_listing = options.mode == Mode::Files;
    let mut totals = Totals::default();
    let mut found = is_listing && !targets.is_empty();
    for target in &targets {
        if is_listing {
            print::file_name(&options, target.shown(), &mut out);
            continue;
        }
        match search(&options, &regex, target, with_names, &mut out, &mut totals) {
            Ok(has_match) => found |= has_match,
            Err(error) => {
                failed = true;
                if !options.silent {
                    out.flush();
                    let name = String::from_utf8_lossy(target.shown());
                    complain_plainly(&format!("{name}: {}", with_number(error)));
                }
            }
        }
        if found && options.mode == Mode::Quiet && !options.stats {
            break;
        }
    }
    if targets.is_empty() && options.paths.is_empty() && !is_listing && !options.silent {
        complain_plainly(NOTHING_SEARCHED);
        failed = true;
    }
    if options.mode == Mode::Json {
        json::summary(&totals, started.elapsed(), &mut out);
    } else if options.stats && !is_listing {
        print::stats(&totals, started.elapsed(), &mut out);
    }
    if regex.gave_up() {
        complain("rg", "exceeded the limit of steps for matching a pattern");
        failed = true;
    }
    Ok(match (found, failed) {
        (true, true) if options.mode == Mode::Quiet => 0,
        (_, true) => 2,
        (true, false) => 0,
        (false, false) => 1,
    })
}

const NOTHING_SEARCHED: &str = "\
No files were searched, which means ripgrep probably applied a filter you didn't expect.
Running with --debug will show why files are being skipped.";

/// As ripgrep says it: without the name of the program.
fn complain_plainly(message: &str) {
    // There is nowhere left to say that this failed.
    let _ = abi::write_all(2, format!("{message}\n").as_bytes());
}

fn with_number(error: Errno) -> String {
    format!("{error} (os error {})", error.to_linux())
}

/// Searches one file; says whether it has what is looked for.
fn search(
    options: &Options,
    regex: &Regex,
    target: &Target,
    with_names: bool,
    out: &mut Out,
    totals: &mut Totals,
) -> Result<bool, Errno> {
    let started = Instant::now();
    let fd = match target.path() {
        None => 0,
        Some(path) => abi::open(Dir::CWD, path, open_flags::RDONLY, 0)?,
    };
    let mut printer = Printer::new(options, regex, target, with_names, out, totals);
    let searched = search_open(options, regex, fd, &mut printer, &target.already_read);
    if fd != 0 {
        // What was read has been read.
        let _ = abi::close(fd);
    }
    let lines = searched?;
    Ok(printer.finish(lines, started.elapsed()))
}

fn search_open(
    options: &Options,
    regex: &Regex,
    fd: Fd,
    printer: &mut Printer<'_>,
    already_read: &[u8],
) -> Result<u64, Errno> {
    if options.multiline {
        let text = [already_read, &files::read_fd(fd)?].concat();
        return Ok(multiline::search(options, regex, text, printer));
    }
    // Matches are counted line by line.
    let only_first = matches!(options.mode, Mode::Matching | Mode::NotMatching | Mode::Quiet);
    let wanted = Wanted {
        regex,
        line_end: options.line_end,
        invert: options.invert,
        before: options.before,
        after: options.after,
        all: options.passthru,
        max_count: options.max_count,
        numbers: printer.wants_numbers(),
        only_count: options.mode == Mode::Count && !options.stats,
        only_first: only_first && !options.stats,
    };
    Search::new(wanted, printer).after(already_read).run(fd)
}
