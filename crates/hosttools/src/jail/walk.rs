//! Resolving a path name by name, as the kernel does below a directory it must not leave.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::resolve::Place;
use crate::spec::HeldDirectory;

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

/// Returns where `relative` leads from `root`. A missing name counts as a directory that may yet be created, so that a
/// `..` after it is not lost.
pub(super) fn walk(root: &HeldDirectory, relative: &Path) -> Place {
    let mut here: Vec<OsString> = Vec::new();
    let mut ahead: VecDeque<OsString> = steps(relative).collect();
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            if here.pop().is_none() {
                return Place::Outside;
            }
            continue;
        }
        here.push(name);
        let path = here.iter().fold(root.path().to_owned(), |path, name| path.join(name));
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > MOST_LINKS {
                    return Place::Unknown("too many symbolic links".to_owned());
                }
                here.pop();
                match std::fs::read_link(&path) {
                    Ok(target) if target.is_absolute() => return Place::Outside,
                    Ok(target) => steps(&target).rev().for_each(|step| ahead.push_front(step)),
                    Err(error) => return Place::Unknown(error.to_string()),
                }
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Place::Unknown(error.to_string()),
        }
    }
    Place::Inside
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + use<> {
    let path = PathBuf::from(path);
    let steps: Vec<OsString> = path
        .components()
        .filter(|component| !matches!(component, Component::CurDir))
        .map(|component| component.as_os_str().to_owned())
        .collect();
    steps.into_iter()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::jail::Jail;
    use crate::jail::resolve::Resolver;

    /// A jail with files, directories and links of all kinds, beside something it must not reach.
    fn jail() -> (tempfile::TempDir, Jail) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("jail");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(directory.path().join("outside")).unwrap();
        std::fs::write(root.join("a/f"), "").unwrap();
        for (link, target) in [
            ("up", ".."),
            ("a/up", ".."),
            ("a/b/out", "../../../outside"),
            ("abs", "/etc"),
            ("self", "."),
            ("loop", "loop"),
            ("deep", "a/b"),
            ("gone", "nowhere"),
            ("a/b/gone", "../../../nowhere"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let jail = Jail::open(&root, false).unwrap();
        (directory, jail)
    }

    fn path() -> impl Strategy<Value = String> {
        let names =
            ["a", "b", "f", "up", "out", "abs", "self", "loop", "deep", "gone", "..", ".", "missing", ""];
        prop::collection::vec(prop::sample::select(names.to_vec()), 1..7).prop_map(|names| {
            let path = names.join("/");
            let path = path.trim_start_matches('/');
            if path.is_empty() { ".".to_owned() } else { path.to_owned() }
        })
    }

    #[test]
    fn links_and_dots_lead_nowhere_but_inside() {
        let (_directory, jail) = jail();
        for (path, place) in [
            ("a/f", Place::Inside),
            ("a/../a/./f", Place::Inside),
            ("a/up/a/f", Place::Inside),
            ("deep/../f", Place::Inside),
            ("gone", Place::Inside),
            ("missing/file", Place::Inside),
            ("..", Place::Outside),
            ("a/../..", Place::Outside),
            ("up", Place::Outside),
            ("abs", Place::Outside),
            ("abs/passwd", Place::Outside),
            ("a/b/out", Place::Outside),
            ("a/b/gone", Place::Outside),
            ("missing/../../outside", Place::Outside),
            ("deep/missing/../../../../outside", Place::Outside),
        ] {
            assert_eq!(Resolver::Openat2.place(jail.root(), Path::new(path)), place, "{path}");
            assert_eq!(Resolver::Walk.place(jail.root(), Path::new(path)), place, "{path}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// What the kernel calls inside, outside or endless, the walk does, too.
        #[test]
        fn the_walk_agrees_with_the_kernel(path in path()) {
            static JAIL: LazyLock<(tempfile::TempDir, Jail)> = LazyLock::new(jail);
            let (_directory, jail) = &*JAIL;
            let kernel = Resolver::Openat2.place(jail.root(), Path::new(&path));
            let own = Resolver::Walk.place(jail.root(), Path::new(&path));
            let same = match (&kernel, &own) {
                (Place::Unknown(_), Place::Unknown(_)) => true,
                // A file is no directory: the kernel stops there, the walk goes on to where that would lead.
                (Place::Inside, Place::Outside | Place::Unknown(_)) => path.contains("f/"),
                (kernel, own) => kernel == own,
            };
            prop_assert!(same, "{path}: {kernel:?}, {own:?}");
        }
    }
}
