//! Which files are searched: the `ignore` crate, ripgrep's own, knows the rules.

use super::complain_plainly;
use super::options::{Mode, Options, Sort, Walking};
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use ignore::{DirEntry, WalkBuilder};
use std::path::Path;
use std::time::SystemTime;
use toolkit::files;
use toolkit::out::Out;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd};

/// A file to be searched.
pub struct Target {
    /// Nothing for standard input.
    path: Option<Vec<u8>>,
    /// How much of the path's front nobody wrote.
    hidden_front: usize,
    /// It was named, not met: it is searched whatever it is.
    pub is_operand: bool,
    /// What was read of it to see whether there is anything.
    pub already_read: Vec<u8>,
}

impl Target {
    pub fn path(&self) -> Option<&[u8]> {
        self.path.as_deref()
    }

    /// Its name in messages.
    pub fn shown(&self) -> &[u8] {
        self.path.as_deref().map_or(b"<stdin>", |path| &path[self.hidden_front..])
    }
}

/// The files to search, whether their names are shown, and whether something was wrong.
pub fn targets(options: &Options) -> Result<(Vec<Target>, bool, bool), i32> {
    let mut paths = options.paths.clone();
    let is_implicit = paths.is_empty();
    let mut already_read = Vec::new();
    if is_implicit {
        let has_input = options.mode != Mode::Files && is_for_reading(0);
        if has_input {
            already_read = first_of_stdin();
        }
        paths.push(if already_read.is_empty() { b"./".to_vec() } else { b"-".to_vec() });
    }
    let is_dir = |path: &Vec<u8>| abi::stat(Dir::CWD, path, true).is_ok_and(|stat| stat.is_dir());
    let several = paths.len() > 1 || paths.iter().any(|path| path != b"-" && is_dir(path));
    let mut failed = false;
    let mut found = Vec::new();
    for path in &paths {
        match &path[..] {
            b"-" => {
                let already_read = std::mem::take(&mut already_read);
                found.push(Target { path: None, hidden_front: 0, is_operand: true, already_read });
            }
            path => failed |= !walk(options, path, if is_implicit { 2 } else { 0 }, &mut found)?,
        }
    }
    Ok((found, options.with_names.unwrap_or(several), failed))
}

/// Whether a descriptor is a pipe or a file: something that may have been meant to be read.
fn is_for_reading(fd: Fd) -> bool {
    abi::fstat(fd).is_ok_and(|stat| stat.is_file() || stat.is_fifo() || stat.is_socket())
}

/// The first of what standard input has. ripgrep would take one without anything for an empty file, but a command of
/// a sandbox that was given no input has just that, and means the directory.
fn first_of_stdin() -> Vec<u8> {
    let mut first = vec![0; 64 * 1024];
    loop {
        match abi::read(0, &mut first) {
            Err(Errno::INTR) => {}
            read => {
                first.truncate(read.unwrap_or(0));
                return first;
            }
        }
    }
}

/// Gathers the files below a path; says whether all could be looked at.
fn walk(options: &Options, path: &[u8], hidden_front: usize, found: &mut Vec<Target>) -> Result<bool, i32> {
    let mut is_fine = true;
    let mut entries = Vec::new();
    for entry in builder(options, path)?.build() {
        match entry {
            Ok(entry) if is_searched(&entry) => entries.push(entry),
            Ok(_) => {}
            Err(error) => {
                is_fine = false;
                if !options.silent {
                    complain_plainly(&described(&error));
                }
            }
        }
    }
    if let Some((key, reverse)) = options.walk.sort {
        sort(&mut entries, key);
        if reverse {
            entries.reverse();
        }
    }
    found.extend(entries.iter().map(|entry| Target {
        path: Some(entry.path().as_os_str().as_encoded_bytes().to_vec()),
        hidden_front,
        is_operand: entry.depth() == 0,
        already_read: Vec::new(),
    }));
    Ok(is_fine)
}

/// Files that were named are searched whatever they are; of the others, only ordinary ones.
fn is_searched(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Some(kind) if kind.is_dir() => false,
        Some(kind) => kind.is_file() || entry.depth() == 0,
        None => true,
    }
}

fn sort(entries: &mut [DirEntry], key: Sort) {
    let time = |entry: &DirEntry| -> Option<SystemTime> {
        let metadata = entry.metadata().ok()?;
        match key {
            Sort::Modified => metadata.modified().ok(),
            Sort::Accessed => metadata.accessed().ok(),
            Sort::Created => metadata.created().ok(),
            Sort::Path => None,
        }
    };
    // By path they are already.
    if key != Sort::Path {
        entries.sort_by_cached_key(time);
    }
}

/// What is wrong, in the crate's words but with Linux' number for it.
fn described(error: &ignore::Error) -> String {
    const MARK: &str = "(os error ";
    let text = error.to_string();
    let Some(at) = text.find(MARK).map(|at| at + MARK.len()) else { return text };
    let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
    let Ok(number) = text[at..at + digits].parse() else { return text };
    let errno = Errno::from(std::io::Error::from_raw_os_error(number));
    format!("{}{}{}", &text[..at], errno.to_linux(), &text[at + digits..])
}

fn builder(options: &Options, path: &[u8]) -> Result<WalkBuilder, i32> {
    let walking = &options.walk;
    let mut builder = WalkBuilder::new(files::path(path));
    let respects = !walking.no_ignore;
    let respects_vcs = respects && !walking.no_ignore_vcs;
    let respects_dot = respects && !walking.no_ignore_dot;
    builder
        .hidden(!walking.hidden)
        .parents(respects && !walking.no_ignore_parent)
        .ignore(respects_dot)
        .git_global(respects_vcs && !walking.no_ignore_global)
        .git_ignore(respects_vcs)
        .git_exclude(respects_vcs && !walking.no_ignore_exclude)
        .require_git(!walking.no_require_git)
        .follow_links(walking.follow)
        .max_depth(walking.max_depth)
        .max_filesize(walking.max_filesize)
        .sort_by_file_name(|left, right| left.cmp(right));
    if respects_dot {
        builder.add_custom_ignore_filename(".rgignore");
    }
    if !walking.no_ignore_files {
        for file in &walking.ignore_files {
            if let Some(error) = builder.add_ignore(files::path(file)) {
                complain_plainly(&error.to_string());
            }
        }
    }
    builder.types(types(walking)?);
    builder.overrides(overrides(walking)?);
    Ok(builder)
}

fn overrides(walking: &Walking) -> Result<ignore::overrides::Override, i32> {
    let mut builder = OverrideBuilder::new(Path::new("."));
    let add = |builder: &mut OverrideBuilder, ignore_case: bool, globs: &[String]| {
        builder.case_insensitive(ignore_case).map_err(wrong)?;
        globs.iter().try_for_each(|glob| builder.add(glob).map(|_| ()).map_err(wrong))
    };
    add(&mut builder, walking.globs_ignore_case, &walking.globs)?;
    add(&mut builder, true, &walking.iglobs)?;
    builder.build().map_err(wrong)
}

fn type_builder(walking: &Walking) -> Result<TypesBuilder, i32> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    for (letter, text) in &walking.type_changes {
        match letter {
            'Й' => _ = builder.clear(text),
            _ => builder.add_def(text).map_err(wrong)?,
        }
    }
    Ok(builder)
}

fn types(walking: &Walking) -> Result<ignore::types::Types, i32> {
    let mut builder = type_builder(walking)?;
    for (name, is_wanted) in &walking.types {
        if *is_wanted {
            builder.select(name)
        } else {
            builder.negate(name)
        };
    }
    builder.build().map_err(wrong)
}

fn wrong(error: ignore::Error) -> i32 {
    complain_plainly(&error.to_string());
    2
}

/// `--type-list`.
pub fn print_types(walking: &Walking, out: &mut Out) -> Result<(), i32> {
    for definition in type_builder(walking)?.definitions() {
        out.put(format!("{}: {}\n", definition.name(), definition.globs().join(", ")));
    }
    Ok(())
}
