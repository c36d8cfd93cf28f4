//! Names: `namespace/name`, for sandboxes and images.

use crate::{CommitId, Hash, StoreError};

/// The namespace of a name without one.
pub const DEFAULT_NAMESPACE: &str = "default";
const LONGEST: usize = 200;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sandbox, whose head moves.
    Sandbox,
    /// An image to start others from.
    Image,
}

impl Kind {
    pub(crate) fn number(self) -> i64 {
        match self {
            Kind::Sandbox => 0,
            Kind::Image => 1,
        }
    }

    pub(crate) fn of(number: i64) -> Kind {
        if number == 1 { Kind::Image } else { Kind::Sandbox }
    }
}

/// A name in the store, and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// `namespace/name`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The commit it is at; `None` if there is none yet.
    pub head: Option<CommitId>,
    /// That commit's root.
    pub root: Hash,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When the last commit was made.
    pub changed_ms: u64,
    /// How many commits there are.
    pub commits: u64,
    /// What its creator noted about it.
    pub meta: String,
    /// Who has it open.
    pub holder: Option<String>,
}

/// Checks a name and completes it with the default namespace.
pub fn full_name(name: &str) -> Result<String, StoreError> {
    let bad = || StoreError::Name(name.chars().take(LONGEST).collect());
    let full = if name.contains('/') { name.to_owned() } else { format!("{DEFAULT_NAMESPACE}/{name}") };
    let parts: Vec<&str> = full.split('/').collect();
    let plain = |part: &&str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    if full.len() > LONGEST || parts.len() != 2 || !parts.iter().all(plain) {
        return Err(bad());
    }
    Ok(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_namespace() {
        assert_eq!(full_name("box").as_deref(), Ok("default/box"));
        assert_eq!(full_name("team/box-1.2_x").as_deref(), Ok("team/box-1.2_x"));
        for bad in ["", "/", "a/", "/a", "a/b/c", "..", "a/..", "-rf", "a b", "ä", "a\0b", &"x".repeat(300)]
        {
            assert!(full_name(bad).is_err(), "{bad:?}");
        }
    }
}
