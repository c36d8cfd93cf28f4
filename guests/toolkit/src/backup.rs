//! Copies of files that are about to be written over, as `cp`, `mv` and `install` keep them.

use super::args::Tool;
use super::files;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Simple,
    Numbered,
    /// Numbered where there is a numbered one already.
    Existing,
}

/// Whether and how backups are made.
#[derive(Clone)]
pub struct Backup {
    style: Option<Style>,
    suffix: Vec<u8>,
}

impl Backup {
    pub fn none() -> Backup {
        let suffix = std::env::var_os("SIMPLE_BACKUP_SUFFIX").map(|text| text.into_encoded_bytes());
        Backup { style: None, suffix: suffix.unwrap_or_else(|| b"~".to_vec()) }
    }

    /// What `-b` and `--backup[=CONTROL]` ask for.
    pub fn set(&mut self, control: Option<&[u8]>, tool: &Tool) -> Result<(), i32> {
        let variable = std::env::var_os("VERSION_CONTROL").map(|text| text.into_encoded_bytes());
        let control = control.map(<[u8]>::to_vec).or(variable).unwrap_or_else(|| b"existing".to_vec());
        self.style = match control.as_slice() {
            b"none" | b"off" => None,
            b"numbered" | b"t" => Some(Style::Numbered),
            b"simple" | b"never" => Some(Style::Simple),
            b"existing" | b"nil" => Some(Style::Existing),
            other => {
                let known = ["none off", "simple never", "existing nil", "numbered t"];
                return Err(tool.wrong_choice("backup type", other, &known));
            }
        };
        Ok(())
    }

    /// What `-S` asks for: a suffix, and so backups.
    pub fn set_suffix(&mut self, suffix: &[u8]) {
        self.suffix = suffix.to_vec();
        self.style = self.style.or(Some(Style::Existing));
    }

    pub fn is_wanted(&self) -> bool {
        self.style.is_some()
    }

    /// What the copy of a file is called, if one is to be made.
    pub fn name(&self, file: &[u8]) -> Option<Vec<u8>> {
        let style = self.style?;
        let last = last_number(file);
        Some(match style {
            Style::Simple => [file, &self.suffix].concat(),
            Style::Existing if last == 0 => [file, &self.suffix].concat(),
            _ => [file, format!(".~{}~", last + 1).as_bytes()].concat(),
        })
    }

    /// Whether a file's copy would take the place of the very file that is to be written over it.
    pub fn would_destroy(&self, source: &abi::Stat, file: &[u8]) -> bool {
        let there = self.name(file).and_then(|name| abi::stat(Dir::CWD, &name, false).ok());
        there.is_some_and(|there| (there.dev, there.ino) == (source.dev, source.ino))
    }

    /// Moves a file out of the way; answers its new name.
    pub fn make(&self, file: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
        let Some(name) = self.name(file) else { return Ok(None) };
        std::fs::rename(files::path(file), files::path(&name)).map_err(Errno::from)?;
        Ok(Some(name))
    }
}

/// The highest `N` of the files `FILE.~N~`; 0 when there are none.
fn last_number(file: &[u8]) -> u64 {
    let (directory, name) = (files::parent(file), files::base_name(file));
    if abi::stat(Dir::CWD, &directory, true).is_err() {
        return 0;
    }
    let number = |other: &Vec<u8>| {
        let digits = other.strip_prefix(name)?.strip_prefix(b".~")?.strip_suffix(b"~")?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    files::names_in(&directory).unwrap_or_default().iter().filter_map(number).max().unwrap_or(0)
}
