//! The allowlist of programs that a sandbox may start.
//!
//! Several tools are one file under many names, and the name a program is called by (`argv[0]`) decides what it does. So
//! both must be allowed: the file, by its path after all links are resolved, and the name it is called by.

use std::collections::BTreeSet;

/// Where an allowed name means the program of that name: directories a guest cannot write to.
const PROGRAM_DIRECTORIES: [&[u8]; 2] = [b"/bin", b"/usr/bin"];

/// The programs that may be started; all others may not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowlist(BTreeSet<Vec<u8>>);

impl Allowlist {
    /// Allows these, each a name (`ls`: the one in `/bin` or `/usr/bin`) or an absolute path.
    pub fn new<N: Into<Vec<u8>>>(names: impl IntoIterator<Item = N>) -> Allowlist {
        Allowlist(names.into_iter().map(Into::into).collect())
    }

    /// Returns what is refused, if anything: the program by its own name, or the name it is called by.
    pub fn refuses<'a>(&self, real_path: &'a [u8], called: &'a [u8]) -> Option<&'a [u8]> {
        let (directory, name) = split(real_path);
        let named = PROGRAM_DIRECTORIES.contains(&directory) && self.0.contains(name);
        if !named && !self.0.contains(real_path) {
            return Some(name);
        }
        let called = split(called).1;
        // A login shell is called with a dash before its name.
        let called = called.strip_prefix(b"-").unwrap_or(called);
        (called != name && !self.0.contains(called)).then_some(called)
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

#[cfg(test)]
mod tests {
    use super::Allowlist;

    #[test]
    fn the_file_and_the_name_it_is_called_by_must_both_be_allowed() {
        let list = Allowlist::new(["ls", "cat", "/opt/tool"]);
        assert_eq!(list.refuses(b"/bin/ls", b"ls"), None);
        assert_eq!(list.refuses(b"/usr/bin/cat", b"/usr/bin/cat"), None);
        assert_eq!(list.refuses(b"/opt/tool", b"./tool"), None);
        assert_eq!(list.refuses(b"/bin/rm", b"rm"), Some(&b"rm"[..]));
        assert_eq!(list.refuses(b"/bin/ls", b"rm"), Some(&b"rm"[..]), "the name decides what it does");
        assert_eq!(list.refuses(b"/bin/rm", b"ls"), Some(&b"rm"[..]), "a link does not help");
        assert_eq!(list.refuses(b"/tmp/ls", b"ls"), Some(&b"ls"[..]), "nor does a copy");
        assert_eq!(list.refuses(b"/bin/ls", b"cat"), None);
    }
}
