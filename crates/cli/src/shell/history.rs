//! The lines typed in earlier shells, kept in the user's state directory.
//!
//! One command a line; a newline inside one is written `\n` and a backslash `\\`, so that each stays one line. Every
//! command is appended as it is run: two shells at once lose nothing of each other's.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::state::state_directory;

/// How many of the last commands a shell starts with.
const REMEMBERED: usize = 1000;
/// A longer file is cut back to what is remembered.
const MOST: usize = 4 * REMEMBERED;

/// The file, if there is one.
pub(super) struct HistoryFile {
    lines: Vec<String>,
    file: Option<File>,
}

impl HistoryFile {
    /// No history.
    pub(super) fn none() -> HistoryFile {
        HistoryFile { lines: Vec::new(), file: None }
    }

    /// The user's history. One that cannot be read or written is said so, and does not keep the shell from working.
    pub(super) fn open() -> HistoryFile {
        let Some(path) = path() else { return HistoryFile::none() };
        match HistoryFile::at(&path) {
            Ok(history) => history,
            Err(error) => {
                eprintln!("wardian: no history: {}: {error}", path.display());
                HistoryFile::none()
            }
        }
    }

    fn at(path: &std::path::Path) -> std::io::Result<HistoryFile> {
        if let Some(directory) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let all: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let last = &all[all.len().saturating_sub(REMEMBERED)..];
        if all.len() > MOST {
            cut_back(path, last)?;
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(HistoryFile { lines: last.iter().map(|line| decode(line)).collect(), file: Some(file) })
    }

    /// What was typed before, the oldest first.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    pub(super) fn append(&mut self, line: &str) {
        let Some(file) = &mut self.file else { return };
        // In one write, so that lines of two shells do not mix.
        if let Err(error) = file.write_all(format!("{}\n", encode(line)).as_bytes()) {
            eprintln!("wardian: the history is kept no longer: {error}");
            self.file = None;
        }
    }
}

/// Writes only `lines`, beside the file first: an interruption leaves the old one whole.
fn cut_back(path: &std::path::Path, lines: &[&str]) -> std::io::Result<()> {
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all((lines.join("\n") + "\n").as_bytes())?;
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
    }
}
