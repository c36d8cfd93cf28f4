//! What tells files apart: to compare two trees without reading their content.

use std::collections::BTreeMap;

use crate::chunk::{Chunk, ChunkName};
use crate::inode::Body;
use crate::name::join;
use crate::record_bytes::Writer;
use crate::{Errno, Result, Tree};

impl Tree {
    /// Returns everything in the tree that was not installed with the system, by path, each with bytes that are equal for
    /// equal files: kind, mode, owner, size, content; not times. `name` returns a chunk's name.
    pub fn fingerprints(
        &self,
        mut name: impl FnMut(&Chunk) -> Result<ChunkName>,
    ) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        let mut all = BTreeMap::new();
        let mut pending = vec![(Vec::new(), self.root)];
        while let Some((path, dir)) = pending.pop() {
            for (entry, ino) in self.dir(dir)?.iter() {
                let path = join(&path, entry);
                let inode = match self.inode(ino) {
                    Ok(inode) => inode,
                    // Of a system that is not here.
                    Err(Errno::ENOENT) => continue,
                    Err(errno) => return Err(errno),
                };
                let mut out = Writer::default();
                out.number(inode.kind().number());
                [inode.mode, inode.uid, inode.gid].iter().for_each(|each| out.number(u64::from(*each)));
                match &inode.body {
                    Body::Dir(_) => pending.push((path.clone(), ino)),
                    Body::Symlink(target) => out.bytes(target),
                    Body::File(file) => {
                        out.number(file.size());
                        file.each_chunk(Some(file), |number, chunk| {
                            out.number(number);
                            out.bytes(&name(chunk)?);
                            Ok(())
                        })?;
                    }
                    Body::Fifo | Body::Device(_) | Body::Socket => {}
                }
                if inode.charged || !inode.installed {
                    all.insert([&b"/"[..], &path].concat(), out.into_bytes());
                }
            }
        }
        Ok(all)
    }
}
