//! Consistency checks of a tree. Tests and fuzzers run them after every operation.

use crate::inode::Body;
use crate::place::Ino;
use crate::tree::Tree;
use std::collections::HashMap;

impl Tree {
    /// Checks that the tree's bookkeeping is right: names and link counts, parents, handles, quota counters. Returns
    /// what is wrong; nothing ever should be.
    pub fn fsck(&self) -> std::result::Result<(), String> {
        let mut names: HashMap<Ino, u32> = HashMap::new();
        for (ino, inode) in self.all_inodes() {
            let Body::Dir(dir) = &inode.body else { continue };
            let mut subdirs = 0;
            for (name, child) in dir.iter() {
                let found = self.inode(child).map_err(|_| format!("{name:?} in {ino}: no inode {child}"))?;
                *names.entry(child).or_default() += 1;
                if let Some(below) = found.dir() {
                    subdirs += 1;
                    if below.parent != ino || *below.name != **name {
                        return Err(format!("directory {child} is {name:?} in {ino} but does not know it"));
                    }
                }
            }
            if dir.lower.is_none() && dir.subdirs != subdirs {
                return Err(format!("directory {ino} counts {} subdirectories of {subdirs}", dir.subdirs));
            }
            if inode.nlink == 0 && dir.len() > 0 {
                return Err(format!("directory {ino} is removed but not empty"));
            }
        }
        self.check_links(&names)?;
        if self.usage() != self.recount() {
            return Err(format!("usage is {:?}, a recount gives {:?}", self.usage(), self.recount()));
        }
        Ok(())
    }

    fn check_links(&self, names: &HashMap<Ino, u32>) -> std::result::Result<(), String> {
        let mut extra_links = 0;
        for (ino, inode) in self.all_inodes() {
            let counted = names.get(&ino).copied().unwrap_or(0);
            if ino == self.root || self.is_mount_root(ino) {
                continue;
            }
            if inode.nlink != counted {
                return Err(format!("inode {ino} has {counted} names and counts {}", inode.nlink));
            }
            if inode.nlink == 0 && !self.opens.contains_key(&ino) {
                return Err(format!("inode {ino} has neither name nor handle"));
            }
            if inode.charged {
                extra_links += u64::from(inode.nlink.saturating_sub(1));
            }
        }
        match self.opens.keys().find(|ino| self.inode(**ino).is_err()) {
            Some(ino) => Err(format!("inode {ino} is open but gone")),
            None if extra_links != self.extra_links => {
                Err(format!("{extra_links} additional names, counted as {}", self.extra_links))
            }
            None => Ok(()),
        }
    }
}
