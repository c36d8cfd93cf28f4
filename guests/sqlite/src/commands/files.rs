//! Commands that go to another file: to read commands from, to write to, or as the database.

use super::arguments::option;
use super::{Outcome, Words, failed, usage};
use crate::input::{self, Lines};
use crate::output::complain;
use crate::shell::Shell;
use toolkit::files;
use wardian_abi as abi;
use wardian_abi::{Dir, open_flags};

/// How deep scripts may read each other.
const DEPTH: usize = 25;

pub fn cd(_: &mut Shell, words: &Words) -> Outcome {
    let [_, directory] = words.as_slice() else { return usage(".cd DIRECTORY") };
    match abi::chdir(Dir::CWD, directory) {
        Ok(()) => Outcome::Done,
        Err(_) => failed(&[b"Cannot change to directory \"", directory, b"\""]),
    }
}

pub fn read(shell: &mut Shell, words: &Words) -> Outcome {
    let [_, file] = words.as_slice() else { return usage(".read FILE") };
    if file.starts_with(b"|") {
        return failed(&[
            b"Error: .read starts no programs here; put the command's output into a file first",
        ]);
    }
    let opened = abi::open(Dir::CWD, file, open_flags::RDONLY | open_flags::CLOEXEC, 0);
    let fd = match opened {
        Ok(fd) if abi::fstat(fd).is_ok_and(|stat| !stat.is_dir()) => fd,
        _ => return failed(&[b"Error: cannot open \"", file, b"\""]),
    };
    if shell.depth >= DEPTH {
        return failed(&[b"Input nesting limit (25) reached at line 1. Check recursion."]);
    }
    shell.depth += 1;
    let ended = input::run(shell, &mut Lines::of(fd));
    shell.depth -= 1;
    // It was only read.
    let _ = abi::close(fd);
    match ended.quit {
        // An exit code ends everything; `.quit` and `.exit` alone end the file they stand in.
        Some(code) if code != 0 => Outcome::Quit(code),
        _ if ended.errors > 0 => Outcome::Failed,
        _ => Outcome::Done,
    }
}

pub fn output(shell: &mut Shell, words: &Words) -> Outcome {
    redirect(shell, words, false)
}

pub fn once(shell: &mut Shell, words: &Words) -> Outcome {
    redirect(shell, words, true)
}

fn redirect(shell: &mut Shell, words: &Words, is_once: bool) -> Outcome {
    shell.refuse_if_safe(format_args!("cannot run .{} in safe mode", String::from_utf8_lossy(&words[0])));
    let mut file: Option<&Vec<u8>> = None;
    for word in &words[1..] {
        match option(word) {
            Some(b"bom") => {}
            Some(b"e" | b"x") => {
                return failed(&[b"Error: writing to an editor or a spreadsheet is not supported"]);
            }
            Some(_) => return failed(&[b"ERROR: unknown option: \"", word, b"\".  Usage:"]),
            None if file.is_some() => return failed(&[b"ERROR: extra parameter: \"", word, b"\".  Usage:"]),
            None => file = Some(word),
        }
    }
    let file = file.map_or(&b"stdout"[..], Vec::as_slice);
    if file.starts_with(b"|") {
        return failed(&[
            b"Error: sqlite3 starts no programs here; write to a file instead of \"",
            file,
            b"\"",
        ]);
    }
    shell.once = if is_once { 2 } else { 0 };
    if shell.out.open(file).is_err() {
        shell.once = 0;
        complain([b"Error: cannot open \"", file, b"\"\n"].concat());
        return failed(&[b"Error: cannot write to \"", file, b"\""]);
    }
    Outcome::Done
}

/// Goes to another database, or to a new one in memory.
pub fn open(shell: &mut Shell, words: &Words) -> Outcome {
    let (mut file, mut is_new, mut read_only) = (None, false, false);
    for word in &words[1..] {
        match option(word) {
            Some(b"new") => is_new = true,
            Some(b"readonly") => read_only = true,
            Some(b"nofollow") => {}
            Some(_) => return failed(&[b"unknown option: ", word]),
            None if file.is_some() => return failed(&[b"extra argument: \"", word, b"\""]),
            None => file = Some(word.clone()),
        }
    }
    let file = file.unwrap_or_else(|| b":memory:".to_vec());
    if file != b":memory:" {
        shell.refuse_if_safe(format_args!("cannot open disk-based database files in safe mode"));
    }
    shell.database = None;
    if is_new && file != b":memory:" {
        for path in [&file[..], &[&file[..], b"-journal"].concat(), &[&file[..], b"-wal"].concat()] {
            // One that is not there is gone already.
            let _ = std::fs::remove_file(files::path(path));
        }
    }
    let before = std::mem::replace(&mut shell.file, file);
    let was_read_only = std::mem::replace(&mut shell.read_only, read_only);
    match shell.open() {
        Ok(database) => {
            shell.database = Some(database);
            Outcome::Done
        }
        Err(failure) => {
            let file = std::mem::replace(&mut shell.file, before);
            shell.read_only = was_read_only;
            shell.file = b":memory:".to_vec();
            failed(&[b"Error: unable to open database \"", &file, b"\": ", &failure.message]);
            // The shell goes on, with a database in memory.
            Outcome::Done
        }
    }
}
