//! File names: any bytes except `/` and NUL, at most 255 of them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The maximum length of a name.
pub const NAME_MAX: usize = 255;
/// The maximum length of a path, counting C's final NUL as Linux does.
pub const PATH_MAX: usize = 4096;

/// Names up to this length need no allocation.
pub(crate) const INLINE: usize = 22;

/// A name in 24 bytes. Most names are short and stored inline, which saves an allocation per file and a reference count
/// per copied directory node. Long ones are shared.
#[derive(Clone)]
pub(crate) enum Name {
    Short { len: u8, bytes: [u8; INLINE] },
    Long(Arc<[u8]>),
}

impl Name {
    pub(crate) fn new(name: &[u8]) -> Name {
        if name.len() > INLINE {
            return Name::Long(name.into());
        }
        let mut bytes = [0; INLINE];
        bytes[..name.len()].copy_from_slice(name);
        Name::Short { len: name.len() as u8, bytes }
    }
}

impl Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Name::Short { len, bytes } => &bytes[..usize::from(*len)],
            Name::Long(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(self), f)
    }
}

/// Joins `dir` and `name` with a slash, unless `dir` is empty.
pub(crate) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(dir.len() + 1 + name.len());
    path.extend_from_slice(dir);
    if !dir.is_empty() && !dir.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Splits a relative path into its directory and last name: `a/b/c` is `a/b` and `c`.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}
