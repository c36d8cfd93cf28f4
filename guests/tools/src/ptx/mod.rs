//! `ptx`: an index of words, each between what stands around it.
//!
//! ```text
//! options ──► words     what is a word, and where a sentence ends
//!    │          │
//!    │          ▼
//!    │        index     the words that are wanted, in order
//!    ▼          │
//! print ◄── layout      what of a sentence has room in a line
//! ```
//!
//! All of it counts in bytes, as GNU's does.

mod index;
mod layout;
mod options;
mod print;
mod words;

use self::index::Index;
use self::layout::Layout;
use self::options::Settings;
use self::print::Printer;
use self::words::Words;
use std::collections::HashSet;
use toolkit::args::{Parsed, bytes_of};
use toolkit::{Arguments, complain, input, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, open_flags};

/// An input file.
struct Text {
    /// Empty for standard input.
    name: Vec<u8>,
    bytes: Vec<u8>,
}

pub fn main(arguments: Arguments) -> i32 {
    match run(bytes_of(arguments)) {
        Ok(()) => 0,
        Err(code) => code,
    }
}

fn run(arguments: Vec<Vec<u8>>) -> Result<(), i32> {
    let mut parsed = options::TOOL.parse(arguments)?;
    let settings = Settings::from_options(std::mem::take(&mut parsed.options))?;
    let inputs = inputs(&settings, parsed)?;
    let words = Words::new(&settings)?;
    let ignored = word_list(&settings, settings.ignore_file.as_deref())?;
    let only = word_list(&settings, settings.only_file.as_deref())?;
    let mut index = Index::new(&settings, &words, ignored, only);
    for name in inputs {
        let bytes = read(if name.is_empty() { b"-" } else { &name })?;
        index.add(Text { name, bytes })?;
    }
    index.sort();
    let layout = Layout::new(&settings, &words, &index);
    let mut printer = Printer::new(&layout);
    index.occurrences.iter().for_each(|occurrence| printer.print(occurrence));
    Ok(())
}

/// The names of the files to read. In System V's way a second one is that of the output.
fn inputs(settings: &Settings, parsed: Parsed) -> Result<Vec<Vec<u8>>, i32> {
    let mut names = input::or_stdin(parsed.operands);
    if settings.traditional {
        if let Some(output) = names.get(1) {
            redirect(output)?;
        }
        if let Some(extra) = names.get(2) {
            return Err(options::TOOL.wrong(format_args!("extra operand {}", quote::word(extra))));
        }
        names.truncate(1);
    }
    names.iter_mut().filter(|name| *name == b"-").for_each(Vec::clear);
    Ok(names)
}

/// Makes a file standard output.
fn redirect(path: &[u8]) -> Result<(), i32> {
    let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::TRUNC;
    abi::open(Dir::CWD, path, flags, 0o666).and_then(|fd| abi::dup2(fd, 1, false)).map_err(|error| {
        complain("ptx", format_args!("{}: {error}", quote::if_needed(path)));
        1
    })
}

fn read(name: &[u8]) -> Result<Vec<u8>, i32> {
    input::read("ptx", name).ok_or(1)
}

/// The words of a list, one in a line.
fn word_list(settings: &Settings, file: Option<&[u8]>) -> Result<Option<HashSet<Vec<u8>>>, i32> {
    let Some(file) = file else { return Ok(None) };
    let lines = read(file)?;
    let words = lines.split(|&byte| byte == b'\n').filter(|word| !word.is_empty());
    Ok(Some(words.map(|word| settings.folded(word)).collect()))
}
