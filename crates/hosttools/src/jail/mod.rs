//! Stage 6: every path stays inside the jail.
//!
//! The checks here are made before the program runs, and the program then opens its files by name again. Landlock
//! prevents it from being misled if those names change in between, which is why calls are refused without landlock.

mod resolve;
mod walk;

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use crate::arguments::Candidate;
use crate::error::ToolError;
use crate::spec::HeldDirectory;
pub(crate) use resolve::openat2_works;
use resolve::{Place, Resolver};

/// The longest path on Linux, with its NUL.
const PATH_MAX: usize = 4096;
/// The longest name in a directory.
const NAME_MAX: usize = 255;
/// Outside every jail, and harmless.
const NOTHING: &str = "/dev/null";

/// The directory whose files programs may access.
#[derive(Clone, Debug)]
pub(crate) struct Jail {
    root: HeldDirectory,
    resolver: Resolver,
}

impl Jail {
    /// Opens the directory and holds it.
    pub(crate) fn open(path: &Path, without_openat2: bool) -> Result<Jail, ToolError> {
        let unusable = |why: String| ToolError::JailUnusable { jail: path.to_owned(), why };
        let real = path.canonicalize().map_err(|error| unusable(error.to_string()))?;
        if real == Path::new("/") {
            return Err(unusable("the root directory cannot be a jail".to_owned()));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = open(&real, flags, Mode::empty()).map_err(|error| unusable(error.to_string()))?;
        let resolver = Resolver::choose(without_openat2)?;
        Ok(Jail { root: HeldDirectory::new(real, descriptor), resolver })
    }

    pub(crate) fn root(&self) -> &HeldDirectory {
        &self.root
    }

    /// Opens a directory inside and holds it: what its name leads to later does not matter.
    pub(crate) fn directory(&self, path: &Path) -> Result<HeldDirectory, ToolError> {
        let denied = |why: String| ToolError::PathDenied { path: path.display().to_string(), why };
        let relative = self.relative(Path::new(""), path).ok_or_else(|| denied(OUTSIDE.to_owned()))?;
        let (descriptor, real) = self.resolver.open_directory(&self.root, &relative).map_err(denied)?;
        Ok(HeldDirectory::new(real, descriptor))
    }

    /// Refuses a path that leads out, as seen from a working directory inside.
    pub(crate) fn check(&self, cwd: &HeldDirectory, candidate: &Candidate) -> Result<(), ToolError> {
        let denied = |why: &str| ToolError::PathDenied {
            path: candidate.argument.to_owned(),
            why: if candidate.path == candidate.argument {
                why.to_owned()
            } else {
                format!("has '{}' in it, which {why}", candidate.path)
            },
        };
        if candidate.path == NOTHING || is_only_a_long_name(candidate.path) {
            return Ok(());
        }
        let inside = cwd.path().strip_prefix(self.root.path()).map_err(|_| denied("is seen from outside"))?;
        let relative = self.relative(inside, Path::new(candidate.path)).ok_or_else(|| denied(OUTSIDE))?;
        if relative.as_os_str().len() >= PATH_MAX {
            return Err(denied("is too long to be checked"));
        }
        match self.resolver.place(&self.root, &relative) {
            Place::Inside => Ok(()),
            Place::Outside => Err(denied(OUTSIDE)),
            Place::Unknown(why) => Err(denied(&format!("cannot be resolved: {why}"))),
        }
    }

    /// Returns the path as seen from the root; `..` is left in, since resolving it requires knowing the links.
    fn relative(&self, cwd: &Path, path: &Path) -> Option<PathBuf> {
        let relative = match path.is_absolute() {
            true => path.strip_prefix(self.root.path()).ok()?.to_owned(),
            false => cwd.join(path),
        };
        Some(if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative })
    }
}

const OUTSIDE: &str = "leads outside the jail";

/// No file can have such a name, and it contains no other path.
fn is_only_a_long_name(path: &str) -> bool {
    path.len() > NAME_MAX && !path.contains('/')
}
