//! Directories of the system that become inodes when somebody first looks at them, once for all trees.
//!
//! Thousands of files that most sandboxes never read would otherwise cost every start some milliseconds. Their inodes have
//! numbers of their own range; a tree has a copy of one only if it changed it.
//!
//! ```text
//! inodes of the tree   1 / ── 2 usr ── 3 bin
//!                               ├ PACKED     lib ── …     not in the tree's map: filled on first use, shared
//!                               └ PACKED + 1 share ── …
//! ```

use crate::content::Content;
use crate::dir::Target;
use crate::inode::Inode;
use crate::name::Name;
use crate::place::{Ino, Spot};
use crate::{Errno, Place, Quota, Result, Tree};
use imbl::OrdMap;
use std::sync::{Arc, OnceLock};

/// The first number of a packed inode: more than a tree ever hands out one by one.
pub(crate) const PACKED: Ino = 1 << 40;

type Files = Vec<(String, Content)>;
type Load = Box<dyn Fn() -> Option<Files> + Send + Sync>;

/// The packed directories of a tree.
pub(crate) struct Packed {
    load: Load,
    /// The directory they are in, and their names there.
    parent: Ino,
    names: Vec<String>,
    inodes: OnceLock<OrdMap<Ino, Arc<Inode>>>,
}

impl Packed {
    fn get(&self, ino: Ino) -> Option<&Arc<Inode>> {
        // What cannot be unpacked is not there.
        self.inodes.get_or_init(|| self.unpacked().unwrap_or_default()).get(&ino)
    }

    fn unpacked(&self) -> Result<OrdMap<Ino, Arc<Inode>>> {
        let mut tree = Tree::new(Quota::NONE);
        tree.start_numbers_at(PACKED);
        for name in &self.names {
            tree.install_dir(name.as_bytes(), 0o755)?;
        }
        tree.install_all(0o644, (self.load)().ok_or(Errno::EIO)?)?;
        for number in 0..self.names.len() as Ino {
            tree.dir_mut(PACKED + number)?.parent = self.parent;
        }
        let root = tree.root;
        tree.inodes.remove(&root);
        Ok(tree.inodes)
    }
}

impl Tree {
    /// Installs directories with these names in `parent`; `load` returns their files, by paths relative to it, when one of
    /// them is first looked at. A tree can have one such set.
    pub fn install_packed(
        &mut self,
        parent: &[u8],
        names: &[&str],
        load: impl Fn() -> Option<Vec<(String, Content)>> + Send + Sync + 'static,
    ) -> Result<()> {
        if self.packed.is_some() {
            return Err(Errno::EBUSY);
        }
        let parent = self.install_dir_at(parent, 0o755)?;
        for (number, name) in names.iter().enumerate() {
            if self.dir(parent)?.get(name.as_bytes()).is_some() {
                return Err(Errno::EEXIST);
            }
            self.put_name(parent, &Name::new(name.as_bytes()), Target::System(PACKED + number as Ino))?;
        }
        self.dir_mut(parent)?.subdirs += names.len() as u32;
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.packed = Some(Arc::new(Packed { load: Box::new(load), parent, names, inodes: OnceLock::new() }));
        Ok(())
    }

    /// Returns a packed inode that the tree has neither changed nor removed.
    pub(crate) fn packed_inode(&self, ino: Ino) -> Option<&Arc<Inode>> {
        if ino < PACKED || self.unpacked_and_gone.contains_key(&ino) {
            return None;
        }
        self.packed.as_ref()?.get(ino)
    }

    /// Gives the tree a copy of a packed inode that it is about to change.
    pub(crate) fn take_packed(&mut self, ino: Ino) {
        if ino >= PACKED
            && !self.inodes.contains_key(&ino)
            && let Some(inode) = self.packed_inode(ino).cloned()
        {
            self.inodes.insert(ino, inode);
        }
    }

    /// Remembers that an inode is gone, if there is still a packed one with its number.
    pub(crate) fn forget_packed(&mut self, ino: Ino) {
        if ino >= PACKED {
            self.unpacked_and_gone.insert(ino, ());
        }
    }

    /// Returns whether this is a packed directory and the tree has changed nothing in any of them.
    pub(crate) fn is_untouched(&self, place: &Place) -> bool {
        let Spot::Inode(ino) = place.0 else { return false };
        ino >= PACKED && self.unpacked_and_gone.is_empty() && self.inodes.range(PACKED..).next().is_none()
    }

    /// Returns every inode, packed ones as well, for checks.
    pub(crate) fn all_inodes(&self) -> impl Iterator<Item = (Ino, &Inode)> {
        let packed = self.packed.iter().filter_map(|packed| {
            packed.get(PACKED)?;
            packed.inodes.get()
        });
        let unchanged = packed
            .flatten()
            .filter(|&(ino, _)| !self.inodes.contains_key(ino) && !self.unpacked_and_gone.contains_key(ino));
        self.inodes.iter().chain(unchanged).map(|(ino, inode)| (*ino, &**inode))
    }
}
