//! The files that a program of ours reads and that ship with it: Python's standard library.
//!
//! They lie in this binary in compressed groups; `xtask/src/cpython/library.rs` packs them and says how. A group is
//! unpacked when somebody reads one of its files, once for all sandboxes.

use std::sync::{Arc, OnceLock};

use wardian_vfs::{Content, Errno};

/// A packed library.
pub(crate) struct Library {
    /// Where its files are.
    pub(crate) directory: &'static str,
    packed: &'static [u8],
}

/// Python's standard library, and the time zones.
pub(crate) const PYTHON: Library =
    Library { directory: "/usr", packed: include_bytes!("../../../guests/dist/python3.lib") };

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
    pub(crate) fn files(&self) -> Option<Vec<(String, Content)>> {
        let (length, rest) = self.packed.split_first_chunk()?;
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
            files.push((
                format!("{}/{second}", self.directory),
                Content::Lazy { len: len as u64, load: Arc::new(load) },
            ));
        }
        Some(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_as_long_as_the_index_says() {
        let files = PYTHON.files().unwrap();
        assert!(files.len() > 1_000);
        for (path, content) in files {
            let Content::Lazy { len, load } = content else { panic!("{path} lies there unpacked") };
            assert_eq!(load().unwrap().len() as u64, len, "{path}");
        }
    }
}
