//! Which files a snapshot takes: found here and not by git, which stops at repositories inside the work tree and passes
//! over what it cannot keep without a word.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is in the chosen paths, relative to the top of the work tree.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// Files and symbolic links.
    pub files: Vec<PathBuf>,
    /// Pipes, sockets and devices, which git cannot keep.
    pub skipped: Vec<PathBuf>,
}

impl Chosen {
    pub fn find(top: &Path, paths: &[PathBuf]) -> io::Result<Chosen> {
        let mut chosen = Chosen::default();
        for path in paths {
            // What is not there is in no snapshot; nor is what lies behind a link, which is a file itself.
            if !behind_a_link(top, path) {
                chosen.take(top, path)?;
            }
        }
        chosen.files.sort();
        chosen.files.dedup();
        Ok(chosen)
    }

    fn take(&mut self, top: &Path, path: &Path) -> io::Result<()> {
        let kind = match top.join(path).symlink_metadata() {
            Ok(found) => found.file_type(),
            // It went while we looked.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if kind.is_dir() {
            for entry in fs::read_dir(top.join(path))? {
                let name = entry?.file_name();
                if !name.as_bytes().eq_ignore_ascii_case(b".git") {
                    self.take(top, &path.join(name))?;
                }
            }
        } else if kind.is_file() || kind.is_symlink() {
            self.files.push(path.to_owned());
        } else {
            self.skipped.push(path.to_owned());
        }
        Ok(())
    }
}

fn behind_a_link(top: &Path, path: &Path) -> bool {
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    above.into_iter().any(|above| top.join(above).is_symlink())
}
