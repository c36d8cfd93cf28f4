//! Installing the system in a tree: as root, bypassing quotas and read-only paths, charged to no one.

use crate::content::{Content, FileBody};
use crate::dir::{Dir, Target};
use crate::inode::{Body, Inode};
use crate::name::{NAME_MAX, Name, split};
use crate::place::{Ino, Spot};
use crate::{Caller, Device, Errno, FileKind, Result, Tree};
use std::collections::HashMap;

type Owner = (u32, u32);
const ROOT: Owner = (0, 0);

impl Tree {
    /// Installs a file with its directories (mode 755), replacing an existing file, and returns the version of its
    /// content. Clones of the tree share it, and so do all trees given the same bytes.
    pub fn install(&mut self, path: &[u8], mode: u32, content: Content) -> Result<u64> {
        self.install_as(path, mode, content, ROOT)
    }

    /// Installs many files, as [`Tree::install`] does each, looking for each of their directories once. None comes twice.
    pub fn install_all(
        &mut self,
        mode: u32,
        files: impl IntoIterator<Item = (String, Content)>,
    ) -> Result<()> {
        let mut directories: HashMap<Vec<u8>, (Ino, bool)> = HashMap::new();
        for (path, content) in files {
            let (dir, name) = split(path.as_bytes());
            let (dir, is_new) = match directories.get(dir) {
                Some(known) => *known,
                None => {
                    let (ino, _) = self.place_to_install(path.as_bytes(), ROOT)?;
                    let is_new = self.dir(ino)?.len() == 0 && self.dir(ino)?.lower.is_none();
                    directories.insert(dir.to_vec(), (ino, is_new));
                    (ino, is_new)
                }
            };
            let body = Body::File(FileBody::installed(content));
            if !is_new {
                self.make_way(dir, name)?;
                self.install_in(dir, name, mode, body, ROOT)?;
                continue;
            }
            // Nothing can be in the way, and nobody has seen the directory yet.
            let dev = self.inode(dir)?.dev;
            let ino =
                self.add_inode(Inode::new(body, mode & 0o7777, ROOT.0, ROOT.1, dev).into_installed())?;
            if !self.dir_mut(dir)?.put(&Name::new(name), Target::System(ino)) {
                return Err(Errno::ENOSPC);
            }
        }
        Ok(())
    }

    pub(crate) fn install_as(
        &mut self,
        path: &[u8],
        mode: u32,
        content: Content,
        owner: Owner,
    ) -> Result<u64> {
        let body = FileBody::installed(content);
        let version = body.version();
        self.install_body(path, mode, Body::File(body), owner)?;
        Ok(version)
    }

    /// Installs a directory and its parents, or sets the mode of an existing one.
    pub fn install_dir(&mut self, path: &[u8], mode: u32) -> Result<()> {
        let ino = self.install_dir_at(path, mode)?;
        self.inode_mut(ino)?.mode = mode;
        Ok(())
    }

    /// Installs a symbolic link.
    pub fn install_symlink(&mut self, target: &[u8], path: &[u8]) -> Result<()> {
        self.install_body(path, 0o777, Body::Symlink(target.into()), ROOT)?;
        Ok(())
    }

    /// Installs a directory of this owner, or sets the mode of an existing one.
    pub(crate) fn install_dir_as(&mut self, path: &[u8], mode: u32, owner: Owner) -> Result<()> {
        let ino = self.make_dirs(path, mode, owner)?;
        self.inode_mut(ino)?.mode = mode & 0o7777;
        Ok(())
    }

    /// Installs a symbolic link of this owner.
    pub(crate) fn install_symlink_as(&mut self, target: &[u8], path: &[u8], owner: Owner) -> Result<()> {
        self.install_body(path, 0o777, Body::Symlink(target.into()), owner).map(drop)
    }

    /// Installs an additional name for an installed file: a hard link.
    pub fn install_link(&mut self, existing: &[u8], path: &[u8]) -> Result<()> {
        let Spot::Inode(ino) = self.lookup(&Caller::ROOT, &self.root(), existing, true)?.0 else {
            return Err(Errno::EXDEV);
        };
        let (dir, name) = self.place_to_install(path, ROOT)?;
        if self.inode(ino)?.dir().is_some() {
            return Err(Errno::EPERM);
        }
        self.enter(dir, &name, Target::System(ino))?;
        let inode = self.inode_mut(ino)?;
        inode.nlink += 1;
        let charged = inode.charged;
        self.extra_links += u64::from(charged);
        Ok(())
    }

    /// Removes what has this name, if anything does; not a directory.
    pub fn uninstall(&mut self, path: &[u8]) -> Result<()> {
        self.place_to_install(path, ROOT).map(drop)
    }

    /// Installs a device.
    pub fn install_device(&mut self, path: &[u8], mode: u32, device: Device) -> Result<()> {
        self.install_body(path, mode, Body::Device(device), ROOT)?;
        Ok(())
    }

    /// Installs the usual `/dev`: `null zero full random urandom tty`, and `stdin stdout stderr fd` as links
    /// into `/proc/self/fd`.
    pub fn install_dev(&mut self) -> Result<()> {
        let devices = [
            ("null", Device::Null),
            ("zero", Device::Zero),
            ("full", Device::Full),
            ("random", Device::Random),
            ("urandom", Device::Urandom),
            ("tty", Device::Tty),
        ];
        for (name, device) in devices {
            self.install_device(format!("/dev/{name}").as_bytes(), 0o666, device)?;
        }
        let links = [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")];
        for (name, rest) in links {
            let target = format!("/proc/self/fd{rest}");
            self.install_symlink(target.as_bytes(), format!("/dev/{name}").as_bytes())?;
        }
        Ok(())
    }

    fn install_body(&mut self, path: &[u8], mode: u32, body: Body, owner: Owner) -> Result<Ino> {
        let (dir, name) = self.place_to_install(path, owner)?;
        self.install_in(dir, &name, mode, body, owner)
    }

    fn install_in(&mut self, dir: Ino, name: &[u8], mode: u32, body: Body, owner: Owner) -> Result<Ino> {
        let inode = Inode::new(body, mode & 0o7777, owner.0, owner.1, self.inode(dir)?.dev);
        let ino = self.add_inode(inode.into_installed())?;
        self.enter(dir, name, Target::System(ino))?;
        Ok(ino)
    }

    /// Returns the directory for a new file, created if necessary, and removes anything with the file's name.
    fn place_to_install(&mut self, path: &[u8], owner: Owner) -> Result<(Ino, Vec<u8>)> {
        let (dir, name) = split(path);
        if matches!(name, b"" | b"." | b"..") {
            return Err(Errno::EINVAL);
        }
        let dir = self.make_dirs(dir, 0o755, owner)?;
        self.make_way(dir, name)?;
        Ok((dir, name.to_vec()))
    }

    /// Removes what has the name of a file that will be installed.
    fn make_way(&mut self, dir: Ino, name: &[u8]) -> Result<()> {
        let parent = crate::Place::inode(dir);
        match self.child(&Caller::ROOT, &parent, name) {
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno),
            Ok(place) if self.stat_place(&Caller::ROOT, &place)?.kind == FileKind::Dir => {
                return Err(Errno::EISDIR);
            }
            Ok(place) => {
                let Spot::Inode(ino) = self.own(&place)?.0 else { return Err(Errno::EROFS) };
                self.leave(dir, name, false)?;
                self.unlinked(ino)?;
            }
        }
        Ok(())
    }

    /// Returns the directory `path`, creating it and its parents if they do not exist.
    pub(crate) fn install_dir_at(&mut self, path: &[u8], mode: u32) -> Result<Ino> {
        self.make_dirs(path, mode, ROOT)
    }

    fn make_dirs(&mut self, path: &[u8], mode: u32, owner: Owner) -> Result<Ino> {
        let mut dir = self.root;
        let names: Vec<&[u8]> = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).collect();
        for (index, name) in names.iter().enumerate() {
            if name.len() > NAME_MAX {
                return Err(Errno::ENAMETOOLONG);
            }
            dir = match self.lookup(&Caller::ROOT, &crate::Place::inode(dir), name, true) {
                Ok(place) => match self.own(&place)?.0 {
                    Spot::Inode(ino) if self.inode(ino)?.dir().is_some() => ino,
                    Spot::Inode(_) => return Err(Errno::ENOTDIR),
                    Spot::Mount(spot) if index + 1 == names.len() && spot.path.is_empty() => {
                        return Err(Errno::EBUSY);
                    }
                    Spot::Mount(_) => return Err(Errno::EROFS),
                },
                Err(Errno::ENOENT) => {
                    let mode = if index + 1 == names.len() { mode } else { 0o755 };
                    self.install_in(dir, name, mode, Body::Dir(Box::new(Dir::new(dir, name))), owner)?
                }
                Err(errno) => return Err(errno),
            };
        }
        Ok(dir)
    }
}
