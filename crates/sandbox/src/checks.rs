//! Options that cannot work are refused when a sandbox is built, by name and with what would work.

use wardian_kernel::{Allowlist, Limits as Kernel};
use wardian_vfs::{Caller, Tree};

use crate::error::Error;
use crate::options::Limits;
use crate::suggest::did_you_mean;

/// The memory that a shell and a few small tools at once need.
const MEMORY_MIN: u64 = 2 << 20;
/// The descriptors that a shell needs for a redirection: three streams, and those it sets aside from 10 up.
const OPEN_FILES_MIN: usize = 16;
/// The most that the names of writable paths take.
const WRITABLE_PATHS: usize = 64 << 10;
/// Where programs are found by name.
const PROGRAMS: [&str; 2] = ["/bin", "/usr/bin"];
/// How the commands of the shell itself are written, a name and a colon first: no allowlist is needed for them, but people
/// name them.
const SYNOPSES: &str = include_str!("../../../guests/sh/src/builtins/synopses.txt");

/// Checks that a shell can work within these limits, and that they are limits that can be kept.
pub(crate) fn limits(limits: &Limits) -> Result<(), Error> {
    let least = |name: &str, given: u64, least: u64| {
        if given >= least {
            return Ok(());
        }
        Err(Error::Option(format!("{name} is {given}, which is too little for a shell: at least {least}")))
    };
    least("memoryBytes", limits.memory_bytes, MEMORY_MIN)?;
    least("processes", limits.processes as u64, 1)?;
    least("openFiles", limits.open_files as u64, OPEN_FILES_MIN as u64)?;
    let most = |name: &str, given: usize, most: usize| {
        if given <= most { Ok(()) } else { Err(Error::Option(format!("{name} is {given}: at most {most}"))) }
    };
    most("processes", limits.processes, Kernel::MOST_PROCESSES)?;
    most("openFiles", limits.open_files, Kernel::MOST_OPEN_FILES)
}

/// Checks that paths are absolute and in the form that they are compared in.
pub(crate) fn paths(cwd: &str, writable: Option<&[String]>) -> Result<(), Error> {
    if !cwd.starts_with('/') || cwd.contains('\0') {
        return Err(Error::Option(format!("cwd is not an absolute path: {cwd:?}")));
    }
    let Some(writable) = writable else { return Ok(()) };
    check_length(
        "writablePaths",
        writable.iter().map(|path| path.len() + size_of::<String>()).sum(),
        WRITABLE_PATHS,
    )?;
    match writable.iter().find(|path| !is_clean(path)) {
        None => Ok(()),
        Some(path) => Err(Error::Option(format!(
            "writablePaths has {path:?}, which is not an absolute path without '.', '..' and '//'"
        ))),
    }
}

fn is_clean(path: &str) -> bool {
    let below = path.strip_prefix('/').map(|below| below.strip_suffix('/').unwrap_or(below));
    below.is_some_and(|below| below.is_empty() || crate::mounts::is_plain(below.as_bytes()))
}

/// Checks that every name on an allowlist is a program, so that a slip is noticed now and not by what is refused later.
/// A path outside `/bin` and `/usr/bin` may be for a program that is still to come.
pub(crate) fn allowlist(list: &Allowlist, tree: &Tree) -> Result<(), Error> {
    for entry in list.iter() {
        let name = String::from_utf8_lossy(entry);
        let exists = |path: &str| tree.stat(&Caller::ROOT, &tree.root(), path.as_bytes(), true).is_ok();
        let known = match name.rsplit_once('/') {
            None => {
                PROGRAMS.iter().any(|directory| exists(&format!("{directory}/{name}")))
                    || SYNOPSES
                        .lines()
                        .any(|line| line.strip_prefix(&*name).is_some_and(|rest| rest.starts_with(": ")))
            }
            Some((directory, _)) => !PROGRAMS.contains(&directory) || exists(&name),
        };
        if !known {
            let programs = tree_programs(tree);
            let wanted = name.rsplit('/').next().unwrap_or_default();
            let hint = did_you_mean(wanted, programs.iter().map(String::as_str));
            return Err(Error::Option(format!("toolAllowlist: there is no program called {name:?}{hint}")));
        }
    }
    Ok(())
}

/// Returns the names of all programs.
fn tree_programs(tree: &Tree) -> Vec<String> {
    let mut tree = tree.clone();
    let root = tree.root();
    let mut names = Vec::new();
    for directory in PROGRAMS {
        if let Ok(place) = tree.lookup(&Caller::ROOT, &root, directory.as_bytes(), true) {
            names.extend(crate::files::names_in(&mut tree, &place).unwrap_or_default());
        }
    }
    names.into_iter().filter_map(|name| String::from_utf8(name).ok()).collect()
}

/// Checks that an option that is kept for each sandbox is not too long.
pub(crate) fn check_length(option: &str, bytes: usize, limit: usize) -> Result<(), Error> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::Option(format!("{option} takes {bytes} bytes, limit {limit}")))
}

/// Checks that a shell can have this environment variable.
pub(crate) fn check_variable(name: &str, value: &str) -> Result<(), Error> {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic());
    if !begins || !letters.all(|c| c == '_' || c.is_ascii_alphanumeric()) || value.contains('\0') {
        return Err(Error::Option(format!("not an environment variable: {name:?}")));
    }
    Ok(())
}
