//! Mounts: directories of the tree that are backed by something else.
//!
//! ```text
//! /home/user/data   Files     in-memory files, charged as long as they are mounted
//! /src              Host      a host directory, read-only or read-write
//! /work             Overlay   a host directory below, the sandbox's changes above, in memory
//! /proc             Virtual   whatever the embedder computes
//! ```
//! The first and third have inodes in the tree: entering them is entering another directory. The others are queried each
//! time, by path.

use crate::dir::Dir;
use crate::host::HostDir;
use crate::inode::{Body, Inode};
use crate::name::PATH_MAX;
use crate::place::{Ino, MountId, MountSpot, Spot};
use crate::quota::{Usage, given_inodes};
use crate::recover::{Recovery, recover};
use crate::state::state_directory;
use crate::{Caller, Content, Errno, FileKind, HostRefusal, HostRoots, Place, Result, Tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Something to mount.
#[derive(Clone)]
pub enum Mount {
    /// Files given as paths below the mount and contents; the sandbox's user owns them.
    Files(Vec<(Vec<u8>, Content)>),
    /// The same, but every change returns `EROFS`.
    ReadOnlyFiles(Vec<(Vec<u8>, Content)>),
    /// The same with modes, empty directories and links.
    Entries {
        /// Each with its path below the mount.
        entries: Vec<(Vec<u8>, NewEntry)>,
        /// Whether changes are allowed; otherwise every change returns `EROFS`.
        writable: bool,
    },
    /// A host directory: see [`Mount::host`].
    Host(HostMount),
    /// Files that are computed on demand.
    Virtual(Arc<dyn Virtual>),
}

/// Something to put into a mount.
#[derive(Clone)]
pub enum NewEntry {
    /// A file.
    File {
        /// Its content.
        content: Content,
        /// Its permission bits.
        mode: u32,
    },
    /// A directory, empty or with other entries below it.
    Dir {
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link to this target.
    Symlink(Vec<u8>),
}

impl NewEntry {
    fn file(content: Content) -> NewEntry {
        NewEntry::File { content, mode: 0o644 }
    }

    fn len(&self) -> u64 {
        match self {
            NewEntry::File { content, .. } => content.len(),
            NewEntry::Dir { .. } => 0,
            NewEntry::Symlink(target) => target.len() as u64,
        }
    }
}

/// An opened host directory and how the sandbox may access it.
#[derive(Clone)]
pub struct HostMount {
    dir: Arc<HostDir>,
    access: HostAccess,
    recovery: Recovery,
}

impl HostMount {
    /// Returns what was found of an earlier, interrupted [`Tree::apply`] to this directory.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }
}

/// How the sandbox may access a host directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAccess {
    /// Every change returns `EROFS`.
    ReadOnly,
    /// Changes happen on the host.
    ReadWrite,
    /// Changes stay in the sandbox: see [`Tree::diff`].
    Overlay,
}

impl Mount {
    /// Mounts a host directory. It is opened immediately: whatever its path leads to later, the mount stays on this
    /// directory. Unless it is read-only, an earlier [`Tree::apply`] that was interrupted is undone or finished first:
    /// see [`HostMount::recovery`]. Journals are kept in [`state_directory`].
    pub fn host(path: &Path, access: HostAccess) -> Result<Mount> {
        Mount::host_with_state(path, access, state_directory())
    }

    /// Does the same with another directory for the journals of [`Tree::apply`], which must belong to this user and be
    /// writable by no one else. Without one, changes cannot be applied.
    pub fn host_with_state(path: &Path, access: HostAccess, state: Option<PathBuf>) -> Result<Mount> {
        Mount::host_below(path, access, state, None).map_err(|refusal| match refusal {
            HostRefusal::Failed(errno) => errno,
            _ => Errno::EACCES,
        })
    }

    /// Does the same, if the directory is below one of `roots`.
    pub fn host_below(
        path: &Path,
        access: HostAccess,
        state: Option<PathBuf>,
        roots: Option<&HostRoots>,
    ) -> std::result::Result<Mount, HostRefusal> {
        let dir = HostDir::open(path, access, state, roots)?;
        let recovery = recover(&dir, access == HostAccess::ReadOnly || dir.is_read_only())?;
        Ok(Mount::Host(HostMount { dir: Arc::new(dir), access, recovery }))
    }
}

/// Files that are computed on demand: the hook for `/proc`. Paths are relative to the mount, without leading slash; the
/// mount's root is the empty path.
pub trait Virtual: Send + Sync {
    /// Returns a directory's names, without `.` and `..`.
    fn list(&self, who: &Caller, path: &[u8]) -> Result<Vec<(Vec<u8>, FileKind)>>;
    /// Returns a file's whole content, fetched when it is opened.
    fn read(&self, who: &Caller, path: &[u8]) -> Result<Vec<u8>>;
    /// Returns a symbolic link's target.
    fn read_link(&self, who: &Caller, path: &[u8]) -> Result<Vec<u8>>;
    /// Returns the file's metadata, or `ENOENT`.
    fn stat(&self, who: &Caller, path: &[u8]) -> Result<VirtualStat>;
}

/// The metadata of a file of a [`Virtual`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualStat {
    /// Its kind.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size to show; `/proc` shows 0.
    pub size: u64,
    /// Inode number; 0 to derive one from the path.
    pub ino: u64,
    /// A symbolic link that stands for something a path cannot name, such as `/proc/self/fd/0`. As the last part of a
    /// path it is not followed: looking it up returns the link's own [`Place`], opening it a [`Handle`](crate::Handle)
    /// of kind `Symlink`, whose `place().mount_path()` tells which link it is.
    pub magic: bool,
}

/// The mounts of a tree.
#[derive(Clone, Default)]
pub(crate) struct Mounts {
    by_id: BTreeMap<MountId, MountPoint>,
    last_id: MountId,
    host: usize,
    /// The number of mounts of in-memory files that must not change.
    frozen: usize,
}

#[derive(Clone)]
pub(crate) struct MountPoint {
    /// The directory it covers.
    pub(crate) covered: Ino,
    pub(crate) source: Source,
    /// What the quota counts for files given as bytes, until they are unmounted.
    pub(crate) charge: Usage,
}

#[derive(Clone)]
pub(crate) enum Source {
    Files { root: Ino, writable: bool },
    Host { dir: Arc<HostDir>, writable: bool },
    Overlay { dir: Arc<HostDir>, root: Ino },
    Virtual(Arc<dyn Virtual>),
}

impl Source {
    pub(crate) fn host_dir(&self) -> Option<&Arc<HostDir>> {
        match self {
            Source::Host { dir, .. } | Source::Overlay { dir, .. } => Some(dir),
            Source::Files { .. } | Source::Virtual(_) => None,
        }
    }

    fn is_frozen(&self) -> bool {
        matches!(self, Source::Files { writable: false, .. })
    }
}

impl Mounts {
    /// Puts mounts together again.
    pub(crate) fn of(points: Vec<(MountId, MountPoint)>, last_id: MountId) -> Mounts {
        let host = points.iter().filter(|(_, point)| point.source.host_dir().is_some()).count();
        let frozen = points.iter().filter(|(_, point)| point.source.is_frozen()).count();
        Mounts { by_id: points.into_iter().collect(), last_id, host, frozen }
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = (MountId, &MountPoint)> {
        self.by_id.iter().map(|(id, point)| (*id, point))
    }

    pub(crate) fn last_id(&self) -> MountId {
        self.last_id
    }

    /// Returns what the quota counts for files given as bytes.
    pub(crate) fn charge(&self) -> Usage {
        self.by_id.values().fold(Usage::default(), |sum, point| sum + point.charge)
    }
}

/// Files with the usual mode.
fn plain(files: Vec<(Vec<u8>, Content)>) -> Vec<(Vec<u8>, NewEntry)> {
    files.into_iter().map(|(path, content)| (path, NewEntry::file(content))).collect()
}

impl Tree {
    /// Returns whether any host directory is mounted.
    pub fn has_host_mounts(&self) -> bool {
        self.mounts.host > 0
    }

    /// Mounts `mount` over the directory `path`, which is created (as by [`Tree::install_dir`]) if it does not exist.
    /// Returns `EBUSY` over another mount or the root, and `ENOSPC` if files given as bytes exceed the quota. After an
    /// error nothing has changed.
    pub fn mount(&mut self, path: &[u8], mount: Mount) -> Result<()> {
        if path.len() >= PATH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let before = self.clone();
        let mounted = self.try_mount(path, mount);
        if mounted.is_err() {
            *self = before;
        }
        mounted
    }

    fn try_mount(&mut self, path: &[u8], mount: Mount) -> Result<()> {
        let inodes = self.inodes.len();
        let covered = self.install_dir_at(path, 0o755)?;
        if covered == self.root || self.is_mount_root(covered) {
            return Err(Errno::EBUSY);
        }
        let id = self.mounts.last_id + 1;
        let (source, files) = match mount {
            Mount::Virtual(files) => (Source::Virtual(files), Vec::new()),
            Mount::Files(files) => (self.files_source(covered, id, true)?, plain(files)),
            Mount::ReadOnlyFiles(files) => (self.files_source(covered, id, false)?, plain(files)),
            Mount::Entries { entries, writable } => (self.files_source(covered, id, writable)?, entries),
            Mount::Host(HostMount { dir, access: HostAccess::Overlay, .. }) => {
                let spot = MountSpot { mount: id, path: [].into() };
                let root = self.overlay_root(&dir, covered, spot.clone())?;
                let root = self.add_inode(root)?;
                self.note_copied(spot, root);
                (Source::Overlay { dir, root }, Vec::new())
            }
            Mount::Host(HostMount { dir, access, .. }) => {
                (Source::Host { dir, writable: access == HostAccess::ReadWrite }, Vec::new())
            }
        };
        let mounts = Arc::make_mut(&mut self.mounts);
        mounts.last_id = id;
        mounts.host += usize::from(source.host_dir().is_some());
        mounts.frozen += usize::from(source.is_frozen());
        let given = matches!(source, Source::Files { .. });
        mounts.by_id.insert(id, MountPoint { covered, source, charge: Usage::default() });
        self.dir_mut(covered)?.covered_by = Some(id);
        if given {
            let charge = self.fill_mount(path, files, inodes)?;
            self.used += charge;
            if let Some(point) = Arc::make_mut(&mut self.mounts).by_id.get_mut(&id) {
                point.charge = charge;
            }
        }
        Ok(())
    }

    /// Installs the files of a mount; returns what they cost, together with all inodes beyond the first `inodes`. Each
    /// is checked before it is installed.
    fn fill_mount(&mut self, at: &[u8], entries: Vec<(Vec<u8>, NewEntry)>, inodes: usize) -> Result<Usage> {
        let (mut charge, mut count) = (Usage::default(), 0);
        // Links last: nothing is ever put where one leads.
        let (links, others): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(_, entry)| matches!(entry, NewEntry::Symlink(_)));
        for (path, entry) in others.into_iter().chain(links) {
            let inside = path.iter().filter(|&&byte| byte == b'/').count() as u64;
            let path = crate::name::join(at, &path);
            if path.len() >= PATH_MAX {
                return Err(Errno::ENAMETOOLONG);
            }
            let is_dir = matches!(entry, NewEntry::Dir { .. });
            let dirs = (self.inodes.len() - inodes) as u64 - count + inside + u64::from(is_dir);
            count += u64::from(!is_dir);
            charge.bytes += entry.len();
            charge.metadata += path.len() as u64;
            self.check_fits(charge + given_inodes(count, dirs))?;
            self.install_entry(&path, entry)?;
            // One that replaces another adds nothing to their number.
            count = count.min((self.inodes.len() - inodes) as u64);
        }
        charge += given_inodes(count, (self.inodes.len() - inodes) as u64 - count);
        self.check_fits(charge)?;
        Ok(charge)
    }

    fn install_entry(&mut self, path: &[u8], entry: NewEntry) -> Result<()> {
        let owner = (Caller::USER.uid, Caller::USER.gid);
        match entry {
            NewEntry::File { content, mode } => self.install_as(path, mode, content, owner).map(drop),
            NewEntry::Dir { mode } => self.install_dir_as(path, mode, owner),
            NewEntry::Symlink(target) if target.is_empty() => Err(Errno::ENOENT),
            NewEntry::Symlink(target) if target.len() >= PATH_MAX => Err(Errno::ENAMETOOLONG),
            NewEntry::Symlink(target) if target.contains(&0) => Err(Errno::EINVAL),
            NewEntry::Symlink(target) => self.install_symlink_as(&target, path, owner),
        }
    }

    fn files_source(&mut self, covered: Ino, id: MountId, writable: bool) -> Result<Source> {
        Ok(Source::Files { root: self.files_root(covered, id)?, writable })
    }

    /// Creates the in-memory directory that is the root of a mount. It has the covered directory's name and parent.
    fn files_root(&mut self, covered: Ino, id: MountId) -> Result<Ino> {
        let under = self.dir(covered)?;
        let dir = Dir::new(under.parent, &under.name);
        let user = Caller::USER;
        let inode = Inode::new(Body::Dir(Box::new(dir)), 0o755, user.uid, user.gid, id + 1);
        self.add_inode(inode.into_installed())
    }

    /// Removes the mount at `path`, with everything written to it in memory. Returns `EINVAL` if nothing is mounted
    /// there.
    pub fn unmount(&mut self, path: &[u8]) -> Result<()> {
        let place = self.lookup(&Caller::ROOT, &self.root(), path, true)?;
        let (id, point) = self.mount_with_root(&place).ok_or(Errno::EINVAL)?;
        let inside = self.mounts.by_id.values().any(|other| {
            other.covered != point.covered && self.inode(other.covered).is_ok_and(|at| at.dev == id + 1)
        });
        if inside {
            return Err(Errno::EBUSY);
        }
        if let Source::Files { root, .. } | Source::Overlay { root, .. } = point.source {
            self.remove_all_below(root)?;
            self.unlinked(root)?;
        }
        self.forget_copies(id);
        self.used -= point.charge;
        self.dir_mut(point.covered)?.covered_by = None;
        let mounts = Arc::make_mut(&mut self.mounts);
        mounts.host -= usize::from(point.source.host_dir().is_some());
        mounts.frozen -= usize::from(point.source.is_frozen());
        mounts.by_id.remove(&id);
        Ok(())
    }

    /// Returns the paths of all mounts, oldest first, each with its type in `/proc/mounts`.
    pub fn mounts(&self) -> Vec<(Vec<u8>, &'static str)> {
        let described = self.mounts.by_id.iter().filter_map(|(id, point)| {
            let path = self.path_of(&self.mount_root(*id).ok()?).ok()?;
            let word = match &point.source {
                Source::Files { .. } => "tmpfs",
                Source::Host { writable: true, .. } => "host rw",
                Source::Host { writable: false, .. } => "host ro",
                Source::Overlay { .. } => "overlay",
                Source::Virtual(_) => "proc",
            };
            Some((path, word))
        });
        described.collect()
    }

    /// Returns whether anything is read-only for a reason other than permission bits.
    pub(crate) fn may_be_frozen(&self) -> bool {
        self.writable.is_some() || self.mounts.frozen > 0
    }

    /// Returns whether the mount that `ino` is in allows changes to it.
    pub(crate) fn check_files_writable(&self, ino: Ino) -> Result<()> {
        if self.mounts.frozen == 0 {
            return Ok(());
        }
        // An inode of the mount `id` is on the device `id + 1`.
        let mount = self.inode(ino)?.dev.checked_sub(1);
        let frozen = mount.and_then(|id| self.mounts.by_id.get(&id)).is_some_and(|at| at.source.is_frozen());
        if frozen { Err(Errno::EROFS) } else { Ok(()) }
    }

    pub(crate) fn mount_point(&self, id: MountId) -> Result<&MountPoint> {
        self.mounts.by_id.get(&id).ok_or(Errno::ENOENT)
    }

    /// Returns where one is after stepping onto a directory that a mount covers.
    pub(crate) fn mount_root(&self, id: MountId) -> Result<Place> {
        Ok(match self.mount_point(id)?.source {
            Source::Files { root, .. } | Source::Overlay { root, .. } => Place::inode(root),
            _ => Place::mounted(MountSpot { mount: id, path: [].into() }),
        })
    }

    /// Returns whether the inode is the root of an in-memory mount.
    pub(crate) fn is_mount_root(&self, ino: Ino) -> bool {
        self.mounts.by_id.values().any(|point| match point.source {
            Source::Files { root, .. } | Source::Overlay { root, .. } => root == ino,
            _ => false,
        })
    }

    pub(crate) fn mount_with_root(&self, place: &Place) -> Option<(MountId, MountPoint)> {
        let found = self.mounts.by_id.iter().find(|(id, point)| match (&place.0, &point.source) {
            (Spot::Inode(ino), Source::Files { root, .. } | Source::Overlay { root, .. }) => ino == root,
            (Spot::Mount(spot), _) => spot.mount == **id && spot.path.is_empty(),
            _ => false,
        });
        found.map(|(id, point)| (*id, point.clone()))
    }
}
