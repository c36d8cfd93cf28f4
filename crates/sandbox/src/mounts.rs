//! Mounts: host directories, and files given as bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wardian_vfs::{
    Change, Content, DiffBounds, Errno, HostAccess, HostRoots, Mount, NewEntry, Recovery, Tree,
};

use crate::error::Error;
use crate::limit::Limit;
use crate::sandbox::Sandbox;

/// How a host directory is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MountMode {
    /// Read-only.
    ReadOnly,
    /// Read-write: changes are made on the host.
    ReadWrite,
    /// Changes stay in the sandbox: see [`Sandbox::diff`] and [`Sandbox::apply`].
    Overlay,
}

/// Something in a mount of files given as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MountEntry {
    /// A file.
    File {
        /// Its content.
        content: Vec<u8>,
        /// Its permission bits.
        mode: u32,
    },
    /// A directory, empty or with other entries below it.
    Dir {
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Symlink {
        /// Where it leads, in the sandbox.
        target: String,
    },
}

impl MountEntry {
    /// A file that everybody may read and its owner may write.
    pub fn file(content: impl Into<Vec<u8>>) -> MountEntry {
        MountEntry::File { content: content.into(), mode: 0o644 }
    }

    fn into_entry(self) -> NewEntry {
        match self {
            MountEntry::File { content, mode } => {
                NewEntry::File { content: Content::Bytes(Arc::from(content)), mode }
            }
            MountEntry::Dir { mode } => NewEntry::Dir { mode },
            MountEntry::Symlink { target } => NewEntry::Symlink(target.into_bytes()),
        }
    }
}

/// A host directory in the sandbox.
#[derive(Clone, Debug)]
pub(crate) struct HostMount {
    pub(crate) host: PathBuf,
    pub(crate) path: String,
    pub(crate) mode: MountMode,
}

/// Something to mount.
#[derive(Clone)]
pub(crate) enum NewMount {
    Host(HostMount),
    Files { path: String, entries: Vec<(Vec<u8>, NewEntry)>, writable: bool },
}

impl NewMount {
    pub(crate) fn files<N: Into<String>, B: Into<Vec<u8>>>(
        path: impl Into<String>,
        files: impl IntoIterator<Item = (N, B)>,
        writable: bool,
    ) -> NewMount {
        NewMount::entries(
            path,
            files.into_iter().map(|(name, bytes)| (name, MountEntry::file(bytes))),
            writable,
        )
    }

    pub(crate) fn entries<N: Into<String>>(
        path: impl Into<String>,
        entries: impl IntoIterator<Item = (N, MountEntry)>,
        writable: bool,
    ) -> NewMount {
        let entry = |(name, entry): (N, MountEntry)| (name.into().into_bytes(), entry.into_entry());
        NewMount::Files { path: path.into(), entries: entries.into_iter().map(entry).collect(), writable }
    }

    /// Returns whether mounting it may have to wait for a disk.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self, NewMount::Host(_))
    }

    /// Mounts it.
    pub(crate) fn add_to(&self, tree: &mut Tree, outside: &Outside<'_>) -> Result<(), Error> {
        let (path, mount) = match self {
            NewMount::Host(mount) => (&mount.path, mount.open(outside)?),
            NewMount::Files { path, entries, writable } => {
                (path, Mount::Entries { entries: entries.clone(), writable: *writable })
            }
        };
        if !path.starts_with('/') || path.split('/').any(|name| name == "..") {
            return Err(Error::Option(format!("not a path to mount at: {path:?}")));
        }
        if let NewMount::Files { entries, .. } = self
            && entries.iter().any(|(name, _)| !is_plain(name))
        {
            return Err(Error::Option(format!("a file to mount at {path} has a name that leads elsewhere")));
        }
        tree.mount(path.as_bytes(), mount).map_err(|errno| match errno {
            Errno::EBUSY if path.bytes().all(|byte| byte == b'/') => Error::refused(
                errno,
                b"cannot mount at /: it is the sandbox's root (use a directory such as /src)",
            ),
            Errno::EBUSY => Error::refused(
                errno,
                format!("cannot mount at {path}: it is already a mount point").as_bytes(),
            ),
            Errno::ENOSPC => self.full(tree, path),
            errno => Error::refused(errno, path.as_bytes()),
        })
    }

    /// Returns the error for files for which there is no space.
    fn full(&self, tree: &Tree, path: &str) -> Error {
        let (used, quota) = (tree.usage(), tree.quota());
        let new = if let NewMount::Files { entries, .. } = self { entries.len() as u64 } else { 0 };
        let (limit, value) = match used.inodes.saturating_add(new) > quota.inodes {
            true => (Limit::FileCount, quota.inodes),
            false => (Limit::FsBytes, quota.bytes),
        };
        Error::limit_reached(path.as_bytes(), limit.name(), value)
    }
}

/// Returns whether a path is relative, without `..` and the like.
pub(crate) fn is_plain(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').all(|name| !matches!(name, b"" | b"." | b"..") && !name.contains(&0))
}

/// What mounting a host directory needs to know.
pub(crate) struct Outside<'a> {
    /// The directory for journals.
    pub(crate) state: Option<&'a Path>,
    /// Where the directory has to be, if not anywhere.
    pub(crate) roots: Option<&'a HostRoots>,
    /// Called if an earlier apply to the host directory was interrupted.
    pub(crate) tell: &'a dyn Fn(&str),
}

impl Outside<'_> {
    /// For what is not of the host.
    pub(crate) fn none() -> Outside<'static> {
        Outside { state: None, roots: None, tell: &|_| () }
    }
}

impl HostMount {
    fn open(&self, outside: &Outside<'_>) -> Result<Mount, Error> {
        let access = match self.mode {
            MountMode::ReadOnly => HostAccess::ReadOnly,
            MountMode::ReadWrite => HostAccess::ReadWrite,
            MountMode::Overlay => HostAccess::Overlay,
        };
        let host = self.host.display();
        let Outside { state, roots, tell } = *outside;
        let mount = Mount::host_below(&self.host, access, state.map(Path::to_owned), roots)
            .map_err(|why| Error::Option(format!("cannot mount {host}: {why}")))?;
        if let Mount::Host(mounted) = &mount {
            match mounted.recovery() {
                Recovery::None => {}
                Recovery::Unfinished => tell(&format!(
                    "warning: {host}: applying changes was interrupted and some of them are missing; \
                     mounting it rw or overlay undoes the rest"
                )),
                Recovery::Finished => tell(&format!("{host}: an interrupted apply was complete")),
                Recovery::RolledBack { kept: None } => {
                    tell(&format!("{host}: an interrupted apply was undone"));
                }
                Recovery::RolledBack { kept: Some(stage) } => tell(&format!(
                    "warning: {host}: an interrupted apply was undone, but files have been created in the place of \
                     old ones, which are now in {}",
                    String::from_utf8_lossy(stage)
                )),
            }
        }
        Ok(mount)
    }
}

/// How long a patch that has bounds may be the shortest.
const DIFF_PATIENCE: Duration = Duration::from_secs(5);

/// Stops a comparison that nobody waits for.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Sandbox {
    /// Mounts a host directory at `path`. Waits for a command in progress.
    pub async fn mount(
        &self,
        host: impl Into<PathBuf>,
        path: impl Into<String>,
        mode: MountMode,
    ) -> Result<(), Error> {
        self.add_mount(NewMount::Host(HostMount { host: host.into(), path: path.into(), mode })).await
    }

    /// Mounts these files at `path`; read-only unless `writable`. Waits for a command in progress.
    pub async fn mount_files<N: Into<String>, B: Into<Vec<u8>>>(
        &self,
        path: impl Into<String>,
        files: impl IntoIterator<Item = (N, B)>,
        writable: bool,
    ) -> Result<(), Error> {
        self.add_mount(NewMount::files(path, files, writable)).await
    }

    /// Does the same with modes, empty directories and links.
    pub async fn mount_entries<N: Into<String>>(
        &self,
        path: impl Into<String>,
        entries: impl IntoIterator<Item = (N, MountEntry)>,
        writable: bool,
    ) -> Result<(), Error> {
        self.add_mount(NewMount::entries(path, entries, writable)).await
    }

    async fn add_mount(&self, mount: NewMount) -> Result<(), Error> {
        let at_rest = self.session().await?;
        let setup = self.inner().setup.clone();
        let adding = move |tree: &mut Tree| {
            let (state, roots) = (setup.state.as_deref(), setup.roots.as_ref());
            Ok(mount.add_to(tree, &Outside { state, roots, tell: &|_| () }))
        };
        self.on_tree(adding).await.map_err(|errno| Error::refused(errno, b"mount"))??;
        self.committed(Some(&at_rest), b"mount", None).await
    }

    /// Removes a mount and what was written to it in memory. Waits for a command in progress.
    pub async fn unmount(&self, path: &str) -> Result<(), Error> {
        let at_rest = self.session().await?;
        let path = self.absolute(path);
        let at = path.clone();
        let unmount = move |tree: &mut Tree| {
            // `/proc` is the machine's own.
            let system = tree.real_path(&wardian_vfs::Caller::ROOT, &tree.root(), &at)? == b"/proc";
            if system { Err(Errno::EPERM) } else { tree.unmount(&at) }
        };
        self.on_tree(unmount).await.map_err(|errno| Error::refused(errno, &path))?;
        self.committed(Some(&at_rest), b"unmount", None).await
    }

    /// Returns what the sandbox has changed in the overlay mounted at `path`.
    pub async fn diff(&self, path: &str) -> Result<Vec<Change>, Error> {
        let path = self.absolute(path);
        let at = path.clone();
        self.on_tree(move |tree| tree.diff(&at)).await.map_err(|errno| Error::refused(errno, &path))
    }

    /// Does the same if there are at most so many changes, with at most so many bytes of paths: otherwise `EFBIG`. Stops when it is
    /// dropped.
    pub async fn diff_within(&self, path: &str, changes: usize, bytes: usize) -> Result<Vec<Change>, Error> {
        self.compared(path, (changes, bytes), |tree, at, bounds| tree.diff_within(at, bounds)).await
    }

    /// Returns the same as a patch for `git apply` of at most so many bytes. After a few seconds it is no longer the shortest.
    pub async fn diff_text_within(&self, path: &str, changes: usize, bytes: usize) -> Result<Vec<u8>, Error> {
        self.compared(path, (changes, bytes), |tree, at, bounds| tree.diff_text_within(at, bounds)).await
    }

    async fn compared<T: Send + 'static>(
        &self,
        path: &str,
        (changes, bytes): (usize, usize),
        compare: fn(&Tree, &[u8], DiffBounds<'_>) -> wardian_vfs::Result<T>,
    ) -> Result<T, Error> {
        self.live()?;
        let path = self.absolute(path);
        let (at, stop) = (path.clone(), StopOnDrop::default());
        let stopped = stop.0.clone();
        let comparing = move |tree: &mut Tree| {
            compare(tree, &at, DiffBounds { changes, bytes, patience: DIFF_PATIENCE, stop: &stopped })
        };
        let compared = self.on_tree(comparing).await;
        drop(stop);
        compared.map_err(|errno| Error::refused(errno, &path))
    }

    /// Returns the same as a patch for `git apply`.
    pub async fn diff_text(&self, path: &str) -> Result<Vec<u8>, Error> {
        let path = self.absolute(path);
        let at = path.clone();
        self.on_tree(move |tree| tree.diff_text(&at)).await.map_err(|errno| Error::refused(errno, &path))
    }

    /// Applies the changes of the overlay mounted at `path` to the host directory, all of them or none, and returns
    /// them. Fails (`EBUSY`, with the path) if the host has changed a file since the sandbox first touched it. With
    /// `dry_run` everything is checked and nothing is done. Waits for a command in progress, and for another process
    /// that applies to the same directory.
    ///
    /// After a crash the directory is either unchanged or has all changes, once it is mounted again (not read-only): see
    /// [`Builder::state_directory`](crate::Builder::state_directory). Until then, and while this runs, other programs
    /// can see some of the changes without the others; each single file is old or new.
    pub async fn apply(&self, path: &str, dry_run: bool) -> Result<Vec<Change>, Error> {
        let at_rest = self.session().await?;
        let path = self.absolute(path);
        let at = path.clone();
        if self.inner().setup.state.is_none() {
            let needed = "apply needs a directory for its journal: set HOME or XDG_STATE_HOME";
            return Err(Error::Option(needed.to_owned()));
        }
        let applying = move |tree: &mut Tree| {
            if !dry_run {
                return tree.apply_unless_changed(&at);
            }
            match tree.overlay_conflicts(&at)?.into_iter().next() {
                Some(conflict) => Ok(Err(conflict)),
                None => tree.check_apply(&at).map(Ok),
            }
        };
        match self.on_tree(applying).await {
            Ok(Ok(changes)) => {
                if !dry_run {
                    self.committed(Some(&at_rest), b"apply", None).await?;
                }
                Ok(changes)
            }
            Ok(Err(conflict)) => Err(Error::refused(Errno::EBUSY, &conflict)),
            Err(errno) => Err(Error::refused(errno, &path)),
        }
    }

    /// Runs `work` on the files on a thread that may block.
    pub(crate) async fn on_tree<T, F>(&self, work: F) -> wardian_vfs::Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree) -> wardian_vfs::Result<T> + Send + 'static,
    {
        self.machine().aside(work).await
    }
}
