//! The files that a program of Wardian's reads and that ship with it: Python's standard library, the packages that are ready,
//! numpy and pandas.
//!
//! They lie in this binary in compressed groups; `xtask/src/cpython/library.rs` packs them and says how. Even the list of
//! them is unpacked only when somebody looks for one; a group, when somebody reads one of its files; each once for all
//! sandboxes.

use std::sync::{Arc, OnceLock};

use wardian_vfs::{Content, Errno};

/// A packed library. Its paths are relative to `/usr`.
pub(crate) struct Library(&'static [u8]);

/// Python's standard library, and the time zones.
const PYTHON: Library = Library(include_bytes!("../../../guests/dist/python3.lib"));
/// The packages that are ready: a library of their commands, with its length before it, and one of all else.
const PACKAGES: &[u8] = include_bytes!("../../../guests/dist/python3-packages.lib");
/// The Python files of numpy and pandas.
const SCIENCE: Library = Library(include_bytes!("../../../guests/dist/python3-science.lib"));

/// The directories of `/usr` that files of libraries lie in, other than the commands'.
pub(crate) const DIRECTORIES: &[&str] = &["lib", "share"];

/// The commands that come with packages: `pip`, `pytest`.
pub(crate) fn commands() -> Option<Vec<(String, Content)>> {
    packages()?.0.files()
}

/// All other files.
pub(crate) fn files() -> Option<Vec<(String, Content)>> {
    let mut files = PYTHON.files()?;
    files.extend(packages()?.1.files()?);
    files.extend(SCIENCE.files()?);
    Some(files)
}

fn packages() -> Option<(Library, Library)> {
    let (length, rest) = PACKAGES.split_first_chunk()?;
    let (commands, others) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((Library(commands), Library(others)))
}

/// Files that are unpacked together.
struct Group {
    packed: &'static [u8],
    files: OnceLock<Option<Vec<u8>>>,
}

impl Group {
    fn bytes(&self) -> Result<&[u8], Errno> {
        let files = self.files.get_or_init(|| zstd::decode_all(self.packed).ok());
        files.as_deref().ok_or(Errno::EIO)
    }
}

impl Library {
    /// Its files, by their paths. Nothing but the list of them is unpacked.
    fn files(&self) -> Option<Vec<(String, Content)>> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (index, mut groups) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let index = String::from_utf8(zstd::decode_all(index).ok()?).ok()?;
        let mut files = Vec::new();
        let mut group: Option<Arc<Group>> = None;
        let mut start = 0;
        for line in index.lines() {
            let (first, second) = line.split_once(' ')?;
            if first == "group" {
                let (packed, others) = groups.split_at_checked(second.parse().ok()?)?;
                groups = others;
                group = Some(Arc::new(Group { packed, files: OnceLock::new() }));
                start = 0;
                continue;
            }
            let (group, len) = (group.clone()?, first.parse::<usize>().ok()?);
            let range = start..start + len;
            start = range.end;
            let load = move || Ok(Arc::from(group.bytes()?.get(range.clone()).ok_or(Errno::EIO)?));
            files.push((second.to_owned(), Content::Lazy { len: len as u64, load: Arc::new(load) }));
        }
        Some(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_as_long_as_the_index_says() {
        let files: Vec<_> = files().unwrap().into_iter().chain(commands().unwrap()).collect();
        assert!(files.len() > 4_000);
        for (path, content) in files {
            let Content::Lazy { len, load } = content else { panic!("{path} lies there unpacked") };
            assert_eq!(load().unwrap().len() as u64, len, "{path}");
        }
    }
}
