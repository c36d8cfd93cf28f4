//! Which members count: patterns to leave out, names to take, and names made safe.

use super::options::Named;
use toolkit::glob;

/// How patterns match, as the options before them say; `None` for what is usual.
#[derive(Clone, Default)]
pub struct Matching {
    pub wildcards: Option<bool>,
    pub anchored: Option<bool>,
    pub fold_case: bool,
    pub stars_match_slash: Option<bool>,
}

/// A pattern of names.
pub struct Pattern {
    text: Vec<u8>,
    wildcards: bool,
    anchored: bool,
    fold_case: bool,
    stars_stop_at_slash: bool,
}

impl Pattern {
    /// A pattern of names to leave out: with wildcards, at any component.
    pub fn to_exclude(text: &[u8], matching: &Matching) -> Pattern {
        Pattern {
            text: without_slashes(text).to_vec(),
            wildcards: matching.wildcards.unwrap_or(true),
            anchored: matching.anchored.unwrap_or(false),
            fold_case: matching.fold_case,
            stars_stop_at_slash: !matching.stars_match_slash.unwrap_or(true),
        }
    }

    /// A name of members to take: as it is, from the start.
    fn to_take(text: &[u8], matching: &Matching) -> Pattern {
        Pattern {
            text: without_slashes(text).to_vec(),
            wildcards: matching.wildcards.unwrap_or(false),
            anchored: matching.anchored.unwrap_or(true),
            fold_case: matching.fold_case,
            stars_stop_at_slash: !matching.stars_match_slash.unwrap_or(true),
        }
    }

    /// Whether a name, or a directory above it, matches.
    pub fn matches(&self, name: &[u8]) -> bool {
        let name = without_slashes(name);
        let starts = std::iter::once(0).chain(
            name.iter()
                .enumerate()
                .filter_map(|(at, &byte)| (byte == b'/' && !self.anchored).then_some(at + 1)),
        );
        for start in starts {
            let rest = &name[start..];
            let ends = rest.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
            if ends.chain(std::iter::once(rest.len())).any(|end| self.is(&rest[..end])) {
                return true;
            }
        }
        false
    }

    fn is(&self, name: &[u8]) -> bool {
        if !self.wildcards {
            return if self.fold_case { name.eq_ignore_ascii_case(&self.text) } else { name == self.text };
        }
        if !self.stars_stop_at_slash {
            return glob::matches(&self.text, name, self.fold_case);
        }
        // Component by component: no star reaches from one into the next.
        let parts = |text: &[u8]| text.split(|&byte| byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>();
        let (pattern, name) = (parts(&self.text), parts(name));
        let fits = |(pattern, name): (&Vec<u8>, &Vec<u8>)| glob::matches(pattern, name, self.fold_case);
        pattern.len() == name.len() && pattern.iter().zip(&name).all(fits)
    }
}

fn without_slashes(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|&byte| byte != b'/').map_or(name.len().min(1), |at| at + 1);
    &name[..end]
}

/// A name given on the command line.
struct Name {
    pattern: Pattern,
    text: Vec<u8>,
    directory: Option<Vec<u8>>,
    found: bool,
}

/// The names given on the command line, and whether each was found.
pub struct Wanted {
    names: Vec<Name>,
    everything: bool,
    wildcards_unset: bool,
}

impl Wanted {
    pub fn new(names: &[Named], matching: &Matching) -> Wanted {
        let names: Vec<Name> = names
            .iter()
            .map(|named| Name {
                pattern: Pattern::to_take(&named.name, matching),
                text: named.name.clone(),
                directory: named.directory.clone(),
                found: false,
            })
            .collect();
        Wanted { everything: names.is_empty(), wildcards_unset: matching.wildcards.is_none(), names }
    }

    /// Whether a member is wanted, and where it goes.
    pub fn find(&mut self, name: &[u8]) -> Option<Option<&[u8]>> {
        if self.everything {
            return Some(None);
        }
        let found = self.names.iter_mut().find(|wanted| wanted.pattern.matches(name))?;
        found.found = true;
        Some(found.directory.as_deref())
    }

    /// The names that were not found.
    pub fn missing(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().filter(|name| !name.found).map(|name| name.text.as_slice())
    }

    /// Whether someone seems to have taken names for patterns.
    pub fn looks_like_patterns(&self) -> bool {
        let has_marks = |name: &[u8]| name.iter().any(|byte| b"*?[".contains(byte));
        self.wildcards_unset && self.missing().any(has_marks)
    }
}

/// How much of a name must go so that it stays below the directory it is meant from: `/`, and all up to the last `..`.
pub fn unsafe_prefix(name: &[u8]) -> usize {
    let mut prefix = 0;
    let mut at = 0;
    for component in name.split(|&byte| byte == b'/') {
        let end = at + component.len();
        if component == b".." {
            prefix = end;
        }
        at = end + 1;
    }
    while name.get(prefix) == Some(&b'/') {
        prefix += 1;
    }
    prefix
}

/// A name without its first components; `None` when nothing is left.
pub fn stripped(name: &[u8], count: usize) -> Option<&[u8]> {
    let mut rest = name;
    for _ in 0..count {
        let slash = rest.iter().position(|&byte| byte == b'/')?;
        let after = rest[slash..].iter().position(|&byte| byte != b'/')?;
        rest = &rest[slash + after..];
    }
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_safe() {
        let safe = |name: &'static str| &name[unsafe_prefix(name.as_bytes())..];
        assert_eq!(safe("a/b"), "a/b");
        assert_eq!(safe("//etc/passwd"), "etc/passwd");
        assert_eq!(safe("../../x"), "x");
        assert_eq!(safe("a/../b/../c"), "c");
        assert_eq!(safe("a/..b"), "a/..b");
        assert_eq!(safe(".."), "");
    }

    #[test]
    fn patterns_match_as_tar_has_them() {
        let excluded = |pattern: &str, name: &str| {
            Pattern::to_exclude(pattern.as_bytes(), &Matching::default()).matches(name.as_bytes())
        };
        assert!(excluded("*.o", "a/b.o") && excluded("b", "a/b/c") && excluded("a/*", "x/a/b/c"));
        assert!(!excluded("b", "a/bc") && !excluded("./a", "a"));
        let taken = |pattern: &str, name: &str| {
            Pattern::to_take(pattern.as_bytes(), &Matching::default()).matches(name.as_bytes())
        };
        assert!(taken("d", "d/x") && taken("d/", "d/") && !taken("x", "d/x") && !taken("d*", "d"));
    }
}
