//! Writing an archive.

use super::TarError;
use super::header::{BLOCK, Header, Kind, NAME_FIELD, put_number, seal};
use crate::name::PATH_MAX;
use crate::{Caller, Errno, FileKind, Handle, OpenFlags, Place, Seek, Stat, Tree};
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

/// Which dialect of tar to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TarFormat {
    /// GNU: whole seconds only, understood everywhere.
    Gnu,
    /// POSIX: times to the nanosecond.
    #[default]
    Pax,
}

/// What to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct TarOptions {
    /// The dialect.
    pub format: TarFormat,
    /// Leaves out what was installed and never changed: the archive holds what the sandbox created.
    pub own_only: bool,
}

impl Tree {
    /// Writes the directory `path` and everything below it as a tar archive, with names relative to it. Mounts below it,
    /// devices and sockets are left out. Files are ordered by name, so equal trees give equal archives.
    pub fn export_tar(&self, path: &[u8], options: TarOptions, out: impl Write) -> Result<(), TarError> {
        let top = self.lookup(&Caller::ROOT, &self.root(), path, true);
        let top = top.map_err(|errno| TarError::File { name: path.to_vec(), errno })?;
        // A clone of its own to open files in, since opening is counted.
        let mut export = Export { tree: self.clone(), options, out, links: HashMap::new() };
        export.run(top)
    }
}

struct Export<W> {
    tree: Tree,
    options: TarOptions,
    out: W,
    /// Files with several names: the one each was written under.
    links: HashMap<u64, Named>,
}

/// A directory that is being written, with the names in it that are still to come.
struct Level {
    place: Place,
    path: Arc<[u8]>,
    names: std::vec::IntoIter<Vec<u8>>,
}

/// A path whose directory is shared with its neighbours'.
#[derive(Clone)]
struct Named {
    dir: Arc<[u8]>,
    name: Vec<u8>,
}

impl Named {
    fn path(&self) -> Vec<u8> {
        crate::name::join(&self.dir, &self.name)
    }

    fn len(&self) -> usize {
        self.dir.len() + 1 + self.name.len()
    }
}

impl<W: Write> Export<W> {
    fn run(&mut self, top: Place) -> Result<(), TarError> {
        let root = Caller::ROOT;
        let failed = |name: &[u8]| {
            let name = name.to_vec();
            move |errno| TarError::File { name, errno }
        };
        let dev = self.tree.stat_place(&root, &top).map_err(failed(b"."))?.dev;
        // Depth first by hand: trees can be deeper than stacks. Each level keeps its path once, and of the names in it
        // only their own.
        let mut levels = vec![self.level(top, Arc::default()).map_err(failed(b"."))?];
        while let Some(level) = levels.last_mut() {
            let Some(child) = level.names.next() else {
                levels.pop();
                continue;
            };
            let name = Named { dir: level.path.clone(), name: child };
            if name.len() >= PATH_MAX {
                // No program could name it, and no archive that has it could be unpacked.
                return Err(failed(&name.path())(Errno::ENAMETOOLONG));
            }
            let place = self.tree.lookup(&root, &level.place, &name.name, false);
            let place = place.map_err(failed(&name.name))?;
            if self.options.own_only && self.tree.is_untouched(&place) {
                continue;
            }
            let stat = self.tree.stat_place(&root, &place).map_err(failed(&name.name))?;
            if stat.dev != dev {
                continue;
            }
            self.entry(&place, &name, &stat)?;
            if stat.kind == FileKind::Dir {
                levels.push(self.level(place, name.path().into()).map_err(failed(&name.name))?);
            }
        }
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()?;
        Ok(())
    }

    fn level(&mut self, dir: Place, path: Arc<[u8]>) -> crate::Result<Level> {
        let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        let handle = self.tree.open(&Caller::ROOT, &dir, b".", flags, 0)?;
        let listed = self.tree.read_dir(&Caller::ROOT, &handle, 2, usize::MAX);
        self.tree.close(handle);
        let mut names: Vec<Vec<u8>> = listed?.into_iter().map(|entry| entry.name).collect();
        names.sort();
        Ok(Level { place: dir, path, names: names.into_iter() })
    }

    fn entry(&mut self, place: &Place, named: &Named, stat: &Stat) -> Result<(), TarError> {
        let name = &named.path()[..];
        if self.options.own_only && !self.tree.is_charged(place) {
            return Ok(());
        }
        let failed = |errno| TarError::File { name: name.to_vec(), errno };
        let (kind, link) = match stat.kind {
            FileKind::Device(_) | FileKind::Socket => return Ok(()),
            _ if stat.nlink > 1 && stat.kind != FileKind::Dir && self.links.contains_key(&stat.ino) => {
                (Kind::HardLink, self.links[&stat.ino].path())
            }
            FileKind::File => (Kind::File, Vec::new()),
            FileKind::Dir => (Kind::Dir, Vec::new()),
            FileKind::Fifo => (Kind::Fifo, Vec::new()),
            FileKind::Symlink => {
                let target = self.tree.link_target(&Caller::ROOT, place).map_err(failed)?;
                (Kind::Symlink, target.unwrap_or_default())
            }
        };
        if stat.nlink > 1 && stat.kind != FileKind::Dir && kind != Kind::HardLink {
            self.links.insert(stat.ino, named.clone());
        }
        let mut shown = name.to_vec();
        if kind == Kind::Dir {
            shown.push(b'/');
        }
        if kind != Kind::File {
            return self.header(kind, shown, link, stat, 0, &[]);
        }
        let file = self.tree.open_place(place).map_err(failed)?;
        let result = self.file(&file, shown, stat);
        self.tree.close(file);
        result
    }

    fn file(&mut self, file: &Handle, name: Vec<u8>, stat: &Stat) -> Result<(), TarError> {
        let pieces = self.pieces(file, stat.size);
        let stored: u64 = pieces.iter().map(|(_, len)| len).sum();
        let kind = if stored < stat.size { Kind::Sparse } else { Kind::File };
        let shown = if kind == Kind::Sparse { &pieces[..] } else { &[] };
        self.header(kind, name.clone(), Vec::new(), stat, stored, shown)?;
        let mut buf = vec![0; 64 << 10];
        for (mut offset, mut len) in pieces {
            while len > 0 {
                let step = usize::try_from(len).map_or(buf.len(), |len| len.min(buf.len()));
                let count = self.tree.pread(file, &mut buf[..step], offset);
                match count.map_err(|errno| TarError::File { name: name.clone(), errno })? {
                    // A host file that shrank meanwhile: what was promised is filled up.
                    0 => {
                        buf[..step].fill(0);
                        self.out.write_all(&buf[..step])?;
                        (offset, len) = (offset + step as u64, len - step as u64);
                    }
                    count => {
                        self.out.write_all(&buf[..count])?;
                        (offset, len) = (offset + count as u64, len - count as u64);
                    }
                }
            }
        }
        self.pad(stored)
    }

    /// The parts of a file that are not holes.
    fn pieces(&self, file: &Handle, size: u64) -> Vec<(u64, u64)> {
        let mut pieces = Vec::new();
        let mut probe = file.clone();
        let mut offset = 0;
        while let Ok(start) = self.tree.seek(&mut probe, Seek::Data(offset)) {
            let end = self.tree.seek(&mut probe, Seek::Hole(start)).unwrap_or(size).min(size);
            if end <= start {
                break;
            }
            pieces.push((start, end - start));
            offset = end;
        }
        if offset < size {
            // GNU tar takes the end of the last piece for the file's.
            pieces.push((size, 0));
        }
        pieces
    }

    fn header(
        &mut self,
        kind: Kind,
        name: Vec<u8>,
        link: Vec<u8>,
        stat: &Stat,
        size: u64,
        pieces: &[(u64, u64)],
    ) -> Result<(), TarError> {
        let gnu = self.options.format == TarFormat::Gnu;
        let header = Header {
            kind,
            name,
            link,
            mode: stat.mode,
            uid: u64::from(stat.uid),
            gid: u64::from(stat.gid),
            size,
            mtime: stat.mtime.div_euclid(1_000_000_000),
        };
        // Old GNU headers carry the map of a sparse file in either dialect's archives: all readers know them.
        if gnu || kind == Kind::Sparse {
            self.long_text(Kind::LongName, &header.name)?;
            self.long_text(Kind::LongLink, &header.link)?;
        }
        if !gnu {
            self.records(&header, stat.mtime)?;
        }
        let mut block = header.block(gnu || kind == Kind::Sparse);
        if kind != Kind::Sparse {
            seal(&mut block);
            return Ok(self.out.write_all(&block)?);
        }
        put_number(&mut block[483..495], stat.size);
        let (first, rest) = pieces.split_at(pieces.len().min(4));
        put_pieces(&mut block[386..482], first);
        block[482] = u8::from(!rest.is_empty());
        seal(&mut block);
        self.out.write_all(&block)?;
        let mut rest = rest;
        while !rest.is_empty() {
            let (some, more) = rest.split_at(rest.len().min(21));
            let mut block = [0; BLOCK];
            put_pieces(&mut block[..504], some);
            block[504] = u8::from(!more.is_empty());
            self.out.write_all(&block)?;
            rest = more;
        }
        Ok(())
    }

    fn long_text(&mut self, kind: Kind, text: &[u8]) -> Result<(), TarError> {
        if text.len() <= NAME_FIELD {
            return Ok(());
        }
        self.extra(kind, &[text, b"\0"].concat())
    }

    /// Writes what does not fit into the header, and the full time.
    fn records(&mut self, header: &Header, mtime: i64) -> Result<(), TarError> {
        let mut text = Vec::new();
        if header.name.len() > NAME_FIELD {
            record(&mut text, "path", &header.name);
        }
        if header.link.len() > NAME_FIELD {
            record(&mut text, "linkpath", &header.link);
        }
        if mtime % 1_000_000_000 != 0 {
            let sign = if mtime < 0 { "-" } else { "" };
            let (whole, nanos) = (mtime.unsigned_abs() / 1_000_000_000, mtime.unsigned_abs() % 1_000_000_000);
            record(&mut text, "mtime", format!("{sign}{whole}.{nanos:09}").as_bytes());
        }
        if text.is_empty() { Ok(()) } else { self.extra(Kind::Pax, &text) }
    }

    /// An entry that is about the next one.
    fn extra(&mut self, kind: Kind, content: &[u8]) -> Result<(), TarError> {
        let header = Header {
            kind,
            name: if kind == Kind::Pax { b"PaxHeader".to_vec() } else { b"././@LongLink".to_vec() },
            link: Vec::new(),
            mode: 0o644,
            uid: 0,
            gid: 0,
            size: content.len() as u64,
            mtime: 0,
        };
        let mut block = header.block(kind != Kind::Pax);
        seal(&mut block);
        self.out.write_all(&block)?;
        self.out.write_all(content)?;
        self.pad(content.len() as u64)
    }

    fn pad(&mut self, len: u64) -> Result<(), TarError> {
        let padding = (len.next_multiple_of(BLOCK as u64) - len) as usize;
        Ok(self.out.write_all(&[0; BLOCK][..padding])?)
    }
}

fn put_pieces(table: &mut [u8], pieces: &[(u64, u64)]) {
    for (entry, (offset, len)) in table.chunks_exact_mut(24).zip(pieces) {
        put_number(&mut entry[..12], *offset);
        put_number(&mut entry[12..], *len);
    }
}

/// Appends "LENGTH KEY=VALUE\n", where LENGTH counts itself.
fn record(text: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut len = rest + 1;
    while len != rest + len.to_string().len() {
        len = rest + len.to_string().len();
    }
    text.extend_from_slice(format!("{len} {key}=").as_bytes());
    text.extend_from_slice(value);
    text.push(b'\n');
}
