//! The lines typed in earlier shells, kept in the user's state directory.
//!
//! One command a line; a newline inside one is written `\n` and a backslash `\\`, so that each stays one line. Every
//! command is appended as it is run: two shells at once lose nothing of each other's.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::out::remark;
use crate::state::state_directory;

/// How many of the last commands a shell starts with.
const REMEMBERED: usize = 1000;
/// A longer file is cut back to what is remembered.
const MOST: usize = 4 * REMEMBERED;

/// The file, if there is one.
pub(super) struct HistoryFile {
    lines: Vec<String>,
    path: Option<PathBuf>,
}

impl HistoryFile {
    /// No history.
    pub(super) fn none() -> HistoryFile {
        HistoryFile { lines: Vec::new(), path: None }
    }

    /// The user's history. One that cannot be read or written is said so, and does not keep the shell from working.
    pub(super) fn open() -> HistoryFile {
        let Some(path) = path() else { return HistoryFile::none() };
        match HistoryFile::at(&path) {
            Ok(history) => history,
            Err(error) => {
                remark!("wardian: no history: {}: {error}", path.display());
                HistoryFile::none()
            }
        }
    }

    fn at(path: &Path) -> std::io::Result<HistoryFile> {
        if let Some(directory) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        // Nobody adds a line between reading the old file and putting a shorter one in its place.
        let file = locked(path)?;
        let bytes = std::fs::read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let all: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let last = &all[all.len().saturating_sub(REMEMBERED)..];
        if all.len() > MOST {
            cut_back(path, last)?;
        }
        drop(file);
        Ok(HistoryFile { lines: last.iter().map(|line| decode(line)).collect(), path: Some(path.to_owned()) })
    }

    /// What was typed before, the oldest first.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    pub(super) fn append(&mut self, line: &str) {
        let Some(path) = &self.path else { return };
        if let Err(error) = append(path, line) {
            remark!("wardian: history is no longer saved: {error}");
            self.path = None;
        }
    }
}

/// The file that has this name now, locked: it may have been replaced while this waited for the lock.
fn locked(path: &Path) -> std::io::Result<File> {
    loop {
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        file.lock()?;
        let open = file.metadata()?;
        if path.metadata().is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino())) {
            return Ok(file);
        }
    }
}

fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = locked(path)?;
    let size = file.metadata()?.len();
    let mut last = [b'\n'];
    if size > 0 {
        file.read_exact_at(&mut last, size - 1)?;
    }
    // A line that was cut short stays one by itself.
    let apart = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{apart}{}\n", encode(line)).as_bytes())
}

/// Writes only `lines`, beside the file first: an interruption leaves the old one whole.
fn cut_back(path: &Path, lines: &[&str]) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all((lines.join("\n") + "\n").as_bytes())?;
    file.sync_all()?;
    std::fs::rename(beside, path)
}

fn path() -> Option<PathBuf> {
    Some(state_directory()?.join("history"))
}

fn encode(line: &str) -> String {
    line.replace('\\', "\\\\").replace('\n', "\\n")
}

fn decode(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_as_it_was() {
        for line in ["ls", "echo 'a\nb'", r"printf '\n\\'", r"a\", ""] {
            assert_eq!(decode(&encode(line)), line);
            assert!(!encode(line).contains('\n'));
        }
    }

    #[test]
    fn what_two_shells_typed_is_all_there_and_a_long_file_is_cut_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/history");
        let (mut one, mut two) = (HistoryFile::at(&path).unwrap(), HistoryFile::at(&path).unwrap());
        one.append("first");
        two.append("second\nline");
        let again = HistoryFile::at(&path).unwrap();
        assert_eq!(again.lines().collect::<Vec<_>>(), ["first", "second\nline"]);
        for n in 0..=MOST {
            one.append(&n.to_string());
        }
        let last = HistoryFile::at(&path).unwrap();
        assert_eq!(last.lines().count(), REMEMBERED);
        assert_eq!(last.lines().last(), Some(MOST.to_string().as_str()));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), REMEMBERED);
        // One that was open before goes on in the new file.
        one.append("after");
        assert_eq!(HistoryFile::at(&path).unwrap().lines().last(), Some("after"));
    }

    #[test]
    fn a_line_that_was_cut_short_does_not_spoil_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        std::fs::write(&path, "whole\nhal").unwrap();
        HistoryFile::at(&path).unwrap().append("next");
        let again = HistoryFile::at(&path).unwrap();
        assert_eq!(again.lines().collect::<Vec<_>>(), ["whole", "hal", "next"]);
    }
}
