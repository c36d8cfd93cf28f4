//! The index: what the next commit will contain, and what the files of the work tree looked like when that was last compared.

use std::collections::BTreeMap;

use wardian_abi::Stat;

use crate::fail::{Res, fatal};
use crate::files::{self, Lock};
use crate::hash::{self, Oid};
use crate::object::{self, DIRECTORY, Entry as TreeEntry, FILE, Kind, LINK, PROGRAM, SUBMODULE};
use crate::odb::Odb;
use crate::repo::{Repo, env};

/// Trees deeper than this are not walked.
pub const DEEPEST: usize = 1024;

/// What a file looked like, as far as the index remembers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Look {
    ctime: (u32, u32),
    mtime: (u32, u32),
    dev: u32,
    ino: u32,
    uid: u32,
    gid: u32,
    size: u32,
}

#[allow(clippy::cast_possible_truncation, reason = "the format has 32 bits for each")]
impl Look {
    pub fn of(stat: &Stat) -> Look {
        let time =
            |nanos: i64| (nanos.div_euclid(1_000_000_000) as u32, nanos.rem_euclid(1_000_000_000) as u32);
        Look {
            ctime: time(stat.ctime),
            mtime: time(stat.mtime),
            dev: stat.dev as u32,
            ino: stat.ino as u32,
            uid: stat.uid,
            gid: stat.gid,
            size: stat.size as u32,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub path: Vec<u8>,
    pub stage: u8,
    pub mode: u32,
    pub oid: Oid,
    pub look: Look,
    pub intent_to_add: bool,
    pub assume_valid: bool,
    pub skip_worktree: bool,
}

impl Entry {
    pub fn new(path: &[u8], mode: u32, oid: Oid) -> Entry {
        Entry {
            path: path.to_vec(),
            stage: 0,
            mode,
            oid,
            look: Look::default(),
            intent_to_add: false,
            assume_valid: false,
            skip_worktree: false,
        }
    }
}

#[derive(Default)]
pub struct Index {
    /// In the order of paths, then stages.
    pub entries: Vec<Entry>,
    /// When the file was written: what changed at the same moment may have changed after it.
    written: (u32, u32),
}

/// The mode of an entry for a file.
pub fn mode_of(stat: &Stat) -> u32 {
    match () {
        () if stat.is_symlink() => LINK,
        () if stat.mode & 0o100 != 0 => PROGRAM,
        () => FILE,
    }
}

pub fn file_of(repo: &Repo) -> Vec<u8> {
    env("GIT_INDEX_FILE").unwrap_or_else(|| repo.own("index"))
}

impl Index {
    pub fn load(repo: &Repo) -> Res<Index> {
        let file = file_of(repo);
        let Some(data) = files::read_if_there(&file)? else { return Ok(Index::default()) };
        let mut index = read(&data)?;
        index.written = files::lstat(&file).map_or((0, 0), |stat| Look::of(&stat).mtime);
        Ok(index)
    }

    /// Where a path is, or would be.
    pub fn position(&self, path: &[u8], stage: u8) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path).then(entry.stage.cmp(&stage)))
    }

    pub fn get(&self, path: &[u8]) -> Option<&Entry> {
        self.position(path, 0).ok().map(|at| &self.entries[at])
    }

    /// The entries of a path in all stages.
    pub fn stages(&self, path: &[u8]) -> &[Entry] {
        let from = self.entries.partition_point(|entry| entry.path.as_slice() < path);
        let to = self.entries.partition_point(|entry| entry.path.as_slice() <= path);
        &self.entries[from..to]
    }

    pub fn has(&self, path: &[u8]) -> bool {
        !self.stages(path).is_empty()
    }

    /// Whether a directory has entries.
    pub fn has_below(&self, directory: &[u8]) -> bool {
        let prefix = [directory, b"/"].concat();
        let at = self.entries.partition_point(|entry| entry.path < prefix);
        self.entries.get(at).is_some_and(|entry| entry.path.starts_with(&prefix))
    }

    /// Puts an entry in place of all stages of its path, and of what is in its way.
    pub fn put(&mut self, entry: Entry) {
        self.remove(&entry.path);
        let below = [&entry.path[..], b"/"].concat();
        let from = self.entries.partition_point(|other| other.path < below);
        let count = self.entries[from..].iter().take_while(|other| other.path.starts_with(&below)).count();
        self.entries.drain(from..from + count);
        for (at, _) in entry.path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            self.remove(&entry.path[..at]);
        }
        self.put_stage(entry);
    }

    /// Puts an entry beside those of other stages.
    pub fn put_stage(&mut self, entry: Entry) {
        match self.position(&entry.path, entry.stage) {
            Ok(at) => self.entries[at] = entry,
            Err(at) => self.entries.insert(at, entry),
        }
    }

    pub fn remove(&mut self, path: &[u8]) -> bool {
        let from = self.entries.partition_point(|entry| entry.path.as_slice() < path);
        let to = self.entries.partition_point(|entry| entry.path.as_slice() <= path);
        self.entries.drain(from..to);
        from != to
    }

    /// Paths with more than one version.
    pub fn unmerged(&self) -> Vec<Vec<u8>> {
        let mut paths: Vec<Vec<u8>> =
            self.entries.iter().filter(|entry| entry.stage > 0).map(|entry| entry.path.clone()).collect();
        paths.dedup();
        paths
    }

    /// Whether a file looks as it did when its entry was made, so that its content need not be read.
    pub fn is_surely_same(&self, entry: &Entry, stat: &Stat) -> bool {
        let racy = self.written != (0, 0) && entry.look.mtime >= self.written;
        entry.look == Look::of(stat) && !racy
    }

    /// Writes the index in one step.
    pub fn save(&mut self, repo: &Repo) -> Res<()> {
        self.mark_racy(repo);
        let mut lock = Lock::take(&file_of(repo))?;
        lock.write(&self.encode())?;
        lock.commit()
    }

    /// An entry whose file may have changed since without looking different gets a size that no file has.
    fn mark_racy(&mut self, repo: &Repo) {
        if self.written == (0, 0) || repo.is_bare() {
            return;
        }
        let written = self.written;
        for entry in self.entries.iter_mut().filter(|entry| entry.stage == 0 && entry.look.mtime >= written) {
            let name = repo.in_tree(&entry.path);
            let Some(stat) = files::lstat(&name) else { continue };
            if Look::of(&stat) == entry.look
                && crate::worktree::hash_file(&name, &stat).ok() != Some(entry.oid)
            {
                entry.look.size = 0;
            }
        }
    }

    fn encode(&self) -> Vec<u8> {
        let extended = |entry: &Entry| entry.intent_to_add || entry.skip_worktree;
        let version: u32 = if self.entries.iter().any(extended) { 3 } else { 2 };
        let mut data = b"DIRC".to_vec();
        data.extend_from_slice(&version.to_be_bytes());
        data.extend_from_slice(&u32::try_from(self.entries.len()).unwrap_or(u32::MAX).to_be_bytes());
        for entry in &self.entries {
            let start = data.len();
            let look = &entry.look;
            let numbers = [
                look.ctime.0,
                look.ctime.1,
                look.mtime.0,
                look.mtime.1,
                look.dev,
                look.ino,
                entry.mode,
                look.uid,
                look.gid,
                look.size,
            ];
            numbers.iter().for_each(|number| data.extend_from_slice(&number.to_be_bytes()));
            data.extend_from_slice(&entry.oid.0);
            let length = u16::try_from(entry.path.len().min(0xfff)).unwrap_or(0xfff);
            let flags = u16::from(entry.assume_valid) << 15
                | u16::from(extended(entry)) << 14
                | u16::from(entry.stage) << 12
                | length;
            data.extend_from_slice(&flags.to_be_bytes());
            if extended(entry) {
                let more = u16::from(entry.skip_worktree) << 14 | u16::from(entry.intent_to_add) << 13;
                data.extend_from_slice(&more.to_be_bytes());
            }
            data.extend_from_slice(&entry.path);
            let padded = (data.len() - start) / 8 * 8 + 8;
            data.resize(start + padded, 0);
        }
        let sum = hash::sha1(&[&data]);
        data.extend_from_slice(&sum.0);
        data
    }

    /// Writes the index's trees; answers the name of the root. Entries that are only announced are left out.
    pub fn write_tree(&self, odb: &Odb) -> Res<Oid> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.stage > 0) {
            crate::out::complain(format!("{}: unmerged ({})", files::text(&entry.path), entry.oid));
            fatal!("git-write-tree: error building trees");
        }
        let entries: Vec<(&[u8], u32, Oid)> = self
            .entries
            .iter()
            .filter(|entry| !entry.intent_to_add)
            .map(|entry| (entry.path.as_slice(), entry.mode, entry.oid))
            .collect();
        write_trees(odb, &entries)
    }
}

/// Writes the trees for paths in order.
pub fn write_trees(odb: &Odb, entries: &[(&[u8], u32, Oid)]) -> Res<Oid> {
    // Directories that are open, from the root to the current one, each with its name and what it has so far.
    let mut open: Vec<(Vec<u8>, Vec<TreeEntry>)> = vec![(Vec::new(), Vec::new())];
    let close = |open: &mut Vec<(Vec<u8>, Vec<TreeEntry>)>| -> Res<()> {
        let Some((name, entries)) = open.pop() else { return Ok(()) };
        let oid = odb.write(Kind::Tree, &object::write_tree(entries))?;
        if let Some((_, above)) = open.last_mut() {
            above.push(TreeEntry { mode: DIRECTORY, name, oid });
        }
        Ok(())
    };
    for (path, mode, oid) in entries {
        let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
        let (name, directories) = parts.split_last().unwrap_or((&parts[0], &[]));
        let same = open[1..].iter().zip(directories).take_while(|(open, part)| open.0 == **part).count();
        while open.len() > same + 1 {
            close(&mut open)?;
        }
        for part in &directories[same..] {
            open.push((part.to_vec(), Vec::new()));
        }
        if let Some((_, entries)) = open.last_mut() {
            entries.push(TreeEntry { mode: *mode, name: name.to_vec(), oid: *oid });
        }
    }
    while open.len() > 1 {
        close(&mut open)?;
    }
    let root = open.pop().map_or(Vec::new(), |(_, entries)| entries);
    odb.write(Kind::Tree, &object::write_tree(root))
}

/// All files of a tree.
pub type Files = BTreeMap<Vec<u8>, (u32, Oid)>;

pub fn flatten(odb: &Odb, tree: &Oid) -> Res<Files> {
    let mut files = Files::new();
    flatten_into(odb, tree, b"", 0, &mut files)?;
    Ok(files)
}

fn flatten_into(odb: &Odb, tree: &Oid, prefix: &[u8], depth: usize, files: &mut Files) -> Res<()> {
    if depth > DEEPEST {
        fatal!("tree is nested too deeply");
    }
    for entry in odb.tree(tree)? {
        let path = [prefix, &entry.name].concat();
        if entry.is_tree() {
            flatten_into(odb, &entry.oid, &[&path[..], b"/"].concat(), depth + 1, files)?;
        } else {
            files.insert(path, (canonical_mode(entry.mode), entry.oid));
        }
    }
    Ok(())
}

pub fn canonical_mode(mode: u32) -> u32 {
    match mode & 0o170_000 {
        0o100_000 if mode & 0o100 != 0 => PROGRAM,
        0o120_000 => LINK,
        0o160_000 => SUBMODULE,
        0o040_000 => DIRECTORY,
        _ => FILE,
    }
}

fn read(data: &[u8]) -> Res<Index> {
    let number =
        |at: usize| data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let Some(end) = data.len().checked_sub(20).filter(|_| data.starts_with(b"DIRC")) else {
        fatal!("index file corrupt");
    };
    let sum = &data[end..];
    if sum != [0; 20] && hash::sha1(&[&data[..end]]).0 != sum {
        crate::out::complain("error: bad index file sha1 signature");
        fatal!("index file corrupt");
    }
    let version = number(4).unwrap_or(0);
    if !(2..=4).contains(&version) {
        fatal!("index file corrupt: bad index version {version}");
    }
    let count = number(8).unwrap_or(0);
    let mut index = Index::default();
    let mut at = 12;
    let mut previous = Vec::new();
    for _ in 0..count {
        let Some((entry, next)) = read_entry(&data[..end], at, version, &previous) else {
            fatal!("index file corrupt")
        };
        let ordered =
            index.entries.last().is_none_or(|last| (&last.path, last.stage) < (&entry.path, entry.stage));
        if !ordered || !is_safe(&entry.path) {
            fatal!("index file corrupt: unordered or invalid path '{}'", files::text(&entry.path));
        }
        previous.clone_from(&entry.path);
        index.entries.push(entry);
        at = next;
    }
    refuse_extensions(&data[..end], at)?;
    Ok(index)
}

/// Extensions in capitals may be ignored; the others change what the entries mean.
fn refuse_extensions(data: &[u8], mut at: usize) -> Res<()> {
    while let Some(header) = data.get(at..at + 8) {
        let size = u32::from_be_bytes([header[4], header[5], header[6], header[7]]) as usize;
        if !header[0].is_ascii_uppercase() {
            fatal!("index uses {} extension, which is not supported here", files::text(&header[..4]));
        }
        at = at.saturating_add(8 + size);
    }
    Ok(())
}

/// A path that stays within the work tree and out of the repository.
pub fn is_safe(path: &[u8]) -> bool {
    let bad =
        |part: &[u8]| part.is_empty() || part == b"." || part == b".." || part.eq_ignore_ascii_case(b".git");
    !path.split(|&byte| byte == b'/').any(bad)
}

fn read_entry(data: &[u8], start: usize, version: u32, previous: &[u8]) -> Option<(Entry, usize)> {
    let number = |n: usize| {
        let at = start + n * 4;
        data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
    };
    let short = |at: usize| data.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let look = Look {
        ctime: (number(0)?, number(1)?),
        mtime: (number(2)?, number(3)?),
        dev: number(4)?,
        ino: number(5)?,
        uid: number(7)?,
        gid: number(8)?,
        size: number(9)?,
    };
    let oid = Oid::from_bytes(data.get(start + 40..start + 60)?)?;
    let flags = short(start + 60)?;
    let extended = flags & 0x4000 != 0;
    let more = if extended { short(start + 62)? } else { 0 };
    let mut at = start + if extended { 64 } else { 62 };
    let mut path = Vec::new();
    if version == 4 {
        let (mut drop, mut byte) = (0usize, *data.get(at)?);
        at += 1;
        drop |= usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *data.get(at)?;
            at += 1;
            drop = drop.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
        }
        path.extend_from_slice(previous.get(..previous.len().checked_sub(drop)?)?);
    }
    let end = at + data.get(at..)?.iter().position(|&byte| byte == 0)?;
    path.extend_from_slice(&data[at..end]);
    let next = if version == 4 { end + 1 } else { start + (end - start) / 8 * 8 + 8 };
    let entry = Entry {
        path,
        stage: (flags >> 12 & 3) as u8,
        mode: number(6)?,
        oid,
        look,
        intent_to_add: more & 0x2000 != 0,
        assume_valid: flags & 0x8000 != 0,
        skip_worktree: more & 0x4000 != 0,
    };
    Some((entry, next))
}
