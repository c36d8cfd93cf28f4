//! `ls`, `dir` and `vdir`: what is in a directory.
//!
//! ```text
//! options.rs  what was asked for
//! entry.rs    one file: what is known of it, and in which order files come
//! layout.rs   how they are put on lines
//! colors.rs   and painted
//! ```

mod colors;
mod entry;
mod layout;
mod options;

use entry::Entry;
use layout::Layout;
use options::{Options, Who};
use toolkit::args::bytes_of;
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Stat};

pub fn main(arguments: Arguments) -> i32 {
    list("ls", arguments)
}

/// `dir` is `ls -C -b`.
pub fn dir(arguments: Arguments) -> i32 {
    list("dir", arguments)
}

/// `vdir` is `ls -l -b`.
pub fn vdir(arguments: Arguments) -> i32 {
    list("vdir", arguments)
}

fn list(name: &'static str, arguments: Arguments) -> i32 {
    let (options, operands) = match Options::parse(name, bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut listing = Listing {
        name,
        layout: Layout::new(&options),
        options: &options,
        out: Out::new(name),
        code: 0,
        first: true,
    };
    listing.operands(operands);
    listing.code
}

struct Listing<'a> {
    name: &'static str,
    options: &'a Options,
    layout: Layout<'a>,
    out: Out,
    code: i32,
    /// Whether nothing has been printed yet, which is when no empty line comes before a directory.
    first: bool,
}

impl Listing<'_> {
    fn operands(&mut self, operands: Vec<Vec<u8>>) {
        let operands = if operands.is_empty() { vec![b".".to_vec()] } else { operands };
        let (count, mut plain, mut directories) = (operands.len(), Vec::new(), Vec::new());
        for operand in operands {
            match self.stat_operand(&operand) {
                Ok(stat) => {
                    let entry = Entry::new(operand.clone(), operand, Some(stat), self.options);
                    let is_directory = stat.is_dir() && !self.options.directory_itself;
                    if is_directory { directories.push(entry) } else { plain.push(entry) }
                }
                Err(error) => {
                    self.fail(2, format_args!("cannot access {}: {error}", quote::always(&operand)))
                }
            }
        }
        entry::sort(&mut plain, self.options);
        entry::sort(&mut directories, self.options);
        if !plain.is_empty() {
            self.layout.print(&plain, &mut self.out);
            self.first = false;
        }
        let with_header = count > 1 || self.options.recursive;
        for directory in directories {
            self.directory(&directory.path, with_header, true, &mut Vec::new());
        }
    }

    /// A link to a directory named by hand is looked through, unless the link itself is to be described.
    fn stat_operand(&self, operand: &[u8]) -> Result<Stat, Errno> {
        let own = || abi::stat(Dir::CWD, operand, false);
        match self.options.follow {
            Who::All | Who::Operands => abi::stat(Dir::CWD, operand, true).or_else(|_| own()),
            Who::DirectoryOperands => match abi::stat(Dir::CWD, operand, true) {
                Ok(stat) if stat.is_dir() => Ok(stat),
                _ => own(),
            },
            Who::Nobody => own(),
        }
    }

    fn directory(&mut self, path: &[u8], with_header: bool, is_operand: bool, above: &mut Vec<(u64, u64)>) {
        let names = match files::names_in(path) {
            Ok(names) => names,
            Err(error) => {
                let code = if is_operand { 2 } else { 1 };
                return self
                    .fail(code, format_args!("cannot open directory {}: {error}", quote::always(path)));
            }
        };
        if with_header {
            let separator = if self.first { "" } else { "\n" };
            let shown = self.layout.header(path);
            self.out.put([separator.as_bytes(), &shown, b":\n"].concat());
        }
        self.first = false;
        let mut entries = self.entries(path, names);
        entry::sort(&mut entries, self.options);
        if self.options.shows_blocks() {
            let blocks = entries.iter().map(|entry| u128::from(entry.blocks()) * 512).sum();
            self.out.put(format!("total {}\n", self.options.block_scale.show(blocks)));
        }
        self.layout.print(&entries, &mut self.out);
        if self.options.recursive {
            self.below(path, &entries, above);
        }
    }

    fn below(&mut self, path: &[u8], entries: &[Entry], above: &mut Vec<(u64, u64)>) {
        let Ok(own) = abi::stat(Dir::CWD, path, true).map(|stat| (stat.dev, stat.ino)) else { return };
        if above.contains(&own) {
            let shown = quote::if_needed(path);
            return self.fail(2, format_args!("{shown}: not listing already-listed directory"));
        }
        above.push(own);
        for entry in
            entries.iter().filter(|entry| entry.is_dir() && entry.name != b"." && entry.name != b"..")
        {
            self.directory(&entry.path, true, false, above);
        }
        above.pop();
    }

    fn entries(&mut self, path: &[u8], names: Vec<Vec<u8>>) -> Vec<Entry> {
        let mut all = Vec::new();
        if self.options.shows_dots {
            all.extend([b".".to_vec(), b"..".to_vec()]);
        }
        all.extend(names.into_iter().filter(|name| self.options.shows(name)));
        let mut entries = Vec::with_capacity(all.len());
        for name in all {
            let file = if path == b"." { name.clone() } else { files::join(path, &name) };
            let follow = self.options.follow == Who::All;
            let stat = match abi::stat(Dir::CWD, &file, follow) {
                Err(_) if follow && !self.options.shows_blocks() => abi::stat(Dir::CWD, &file, false).ok(),
                Err(error) if follow => {
                    self.fail(1, format_args!("cannot access {}: {error}", quote::always(&file)));
                    None
                }
                Err(Errno::NOENT) => continue,
                stat => stat.ok(),
            };
            let path = files::join(path, &name);
            entries.push(Entry::new(name, path, stat, self.options));
        }
        entries
    }

    fn fail(&mut self, code: i32, message: impl std::fmt::Display) {
        self.out.flush();
        complain(self.name, message);
        self.code = self.code.max(code);
    }
}
