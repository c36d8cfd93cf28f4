//! A world that operations happen in. Both kinds answer in the same words, so that answers can be compared.

use crate::ops::{KEEP, NOW, Op, PathArg, SLOTS, digest, flags, pattern};
use std::collections::HashMap;
use wardian_vfs::*;

pub trait World {
    /// Does one operation and says what came of it.
    fn run(&mut self, op: &Op) -> String;
    /// Everything below the working area, in words. Opens up all permissions on the way.
    fn dump(&mut self) -> String;
}

/// One line of a dump.
pub struct Line {
    pub kind: char,
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    /// Nanoseconds.
    pub mtime: i64,
}

impl Line {
    pub fn text(&self) -> String {
        let size = if self.kind == 'd' { 0 } else { self.size };
        format!(
            "{} {:o} n{} {}:{} {size} {}",
            self.kind,
            self.mode,
            self.nlink,
            self.uid,
            self.gid,
            shown_time(self.mtime)
        )
    }
}

/// The tests set times long past; what is not such a time is the time of the test.
pub fn shown_time(ns: i64) -> String {
    if ns < 1_000_000_000_000_000_000 { ns.to_string() } else { "now".to_string() }
}

/// The tree under test.
pub struct Ours {
    pub tree: Tree,
    pub who: Caller,
    /// A handle rather than a place, so that a removed directory stays one to stand in.
    cwd: Handle,
    slots: [Option<Handle>; SLOTS],
}

impl Ours {
    /// Starts in `/w`, which is there already.
    pub fn new(tree: Tree, who: Caller) -> Ours {
        let mut tree = tree;
        let flags = OpenFlags::PATH | OpenFlags::DIRECTORY;
        let cwd = tree.open(&Caller::ROOT, &tree.root(), b"/w", flags, 0).expect("/w is there");
        Ours { tree, who, cwd, slots: [const { None }; SLOTS] }
    }

    /// The same world, apart from now on.
    pub fn fork(&self) -> Ours {
        Ours { tree: self.tree.clone(), who: self.who, cwd: self.cwd.clone(), slots: self.slots.clone() }
    }

    /// Closes everything, and goes back to `/w`.
    pub fn close_all(&mut self) {
        for slot in &mut self.slots {
            if let Some(handle) = slot.take() {
                self.tree.close(handle);
            }
        }
        let flags = OpenFlags::PATH | OpenFlags::DIRECTORY;
        let area = self.tree.open(&Caller::ROOT, &self.tree.root(), b"/w", flags, 0).expect("/w stays");
        let old = std::mem::replace(&mut self.cwd, area);
        self.tree.close(old);
    }

    fn at(&self, path: &PathArg) -> Place {
        match path.at.and_then(|slot| self.slots[slot].as_ref()) {
            Some(handle) => handle.place(),
            None => self.cwd.place(),
        }
    }

    fn handle(&self, slot: usize) -> Result<&Handle> {
        self.slots[slot].as_ref().ok_or(Errno::EBADF)
    }

    fn try_run(&mut self, op: &Op) -> Result<String> {
        let who = self.who;
        let ok = Ok("ok".to_string());
        match op {
            Op::Open { slot, path, flags, mode } => self.open(*slot, path, *flags, *mode),
            Op::Close { slot } => {
                let handle = self.slots[*slot].take().ok_or(Errno::EBADF)?;
                self.tree.close(handle);
                ok
            }
            Op::Read { slot, len } => {
                let mut buf = vec![0; *len];
                let handle = self.slots[*slot].as_mut().ok_or(Errno::EBADF)?;
                let count = self.tree.read(handle, &mut buf)?;
                Ok(digest(&buf[..count]))
            }
            Op::Pread { slot, len, offset } => {
                let mut buf = vec![0; *len];
                let count = self.tree.pread(self.handle(*slot)?, &mut buf, *offset)?;
                Ok(digest(&buf[..count]))
            }
            Op::Write { slot, len, fill } => {
                let handle = self.slots[*slot].as_mut().ok_or(Errno::EBADF)?;
                let count = self.tree.write(handle, &pattern(*fill, *len))?;
                Ok(count.to_string())
            }
            Op::Pwrite { slot, len, fill, offset } => {
                let handle = self.slots[*slot].as_ref().ok_or(Errno::EBADF)?;
                Ok(self.tree.pwrite(handle, &pattern(*fill, *len), *offset)?.to_string())
            }
            Op::Seek { slot, whence, by } => {
                if self.handle(*slot)?.kind() != FileKind::File {
                    return Ok("not a file".to_string());
                }
                let to = match whence {
                    0 => Seek::Start(*by as u64),
                    1 => Seek::Current(*by),
                    _ => Seek::End(*by),
                };
                let handle = self.slots[*slot].as_mut().ok_or(Errno::EBADF)?;
                Ok(self.tree.seek(handle, to)?.to_string())
            }
            Op::Truncate { slot, len } => {
                let handle = self.slots[*slot].as_ref().ok_or(Errno::EBADF)?;
                self.tree.truncate(handle, *len)?;
                ok
            }
            Op::Allocate { slot, offset, len } => {
                let handle = self.slots[*slot].as_ref().ok_or(Errno::EBADF)?;
                self.tree.allocate(handle, *offset, *len)?;
                ok
            }
            Op::Fstat { slot } => Ok(line(&self.tree.stat_handle(&who, self.handle(*slot)?)?).text()),
            Op::Fchmod { slot, mode } => {
                let handle = self.slots[*slot].as_ref().ok_or(Errno::EBADF)?;
                self.tree.chmod_handle(&who, handle, *mode)?;
                ok
            }
            Op::Futimes { slot, atime, mtime } => {
                let handle = self.slots[*slot].as_ref().ok_or(Errno::EBADF)?;
                self.tree.utimes_handle(&who, handle, time(*atime), time(*mtime))?;
                ok
            }
            Op::Chdir { path } => {
                let flags = OpenFlags::PATH | OpenFlags::DIRECTORY;
                let dir = self.tree.open(&who, &self.at(path), &path.path, flags, 0)?;
                if let Err(errno) = self.tree.access(&who, &dir.place(), b".", Access::X) {
                    self.tree.close(dir);
                    return Err(errno);
                }
                let old = std::mem::replace(&mut self.cwd, dir);
                self.tree.close(old);
                ok
            }
            Op::Getcwd => Ok(String::from_utf8_lossy(&self.tree.path_of(&self.cwd.place())?).into_owned()),
            Op::Umask { mask } => {
                self.who.umask = *mask;
                ok
            }
            _ => self.try_run_path(op),
        }
    }

    fn try_run_path(&mut self, op: &Op) -> Result<String> {
        let who = self.who;
        match op {
            Op::Mkdir { path, mode } => self.tree.mkdir(&who, &self.at(path), &path.path, *mode)?,
            Op::Rmdir { path } => self.tree.rmdir(&who, &self.at(path), &path.path)?,
            Op::Unlink { path } => self.tree.unlink(&who, &self.at(path), &path.path)?,
            Op::Rename { from, to } => {
                self.tree.rename(&who, &self.at(from), &from.path, &self.at(to), &to.path)?;
            }
            Op::Link { from, follow, to } => {
                self.tree.link(&who, &self.at(from), &from.path, *follow, &self.at(to), &to.path)?;
            }
            Op::Symlink { target, path } => self.tree.symlink(&who, target, &self.at(path), &path.path)?,
            Op::ReadLink { path } => {
                let target = self.tree.read_link(&who, &self.at(path), &path.path)?;
                return Ok(String::from_utf8_lossy(&target).into_owned());
            }
            Op::Chmod { path, mode } => self.tree.chmod(&who, &self.at(path), &path.path, true, *mode)?,
            Op::Chown { path, follow, uid, gid } => {
                self.tree.chown(&who, &self.at(path), &path.path, *follow, *uid, *gid)?;
            }
            Op::Utimes { path, follow, atime, mtime } => {
                let at = self.at(path);
                self.tree.utimes(&who, &at, &path.path, *follow, time(*atime), time(*mtime))?;
                let stat = self.tree.stat(&who, &at, &path.path, *follow)?;
                // Linux notes when a link was last followed, even on the way to asking.
                let shown = *atime > 0 && stat.kind != FileKind::Symlink;
                let atime = if shown { shown_time(stat.atime) } else { String::new() };
                return Ok(format!("{atime} {}", shown_time(stat.mtime)));
            }
            Op::Stat { path, follow } => {
                return Ok(line(&self.tree.stat(&who, &self.at(path), &path.path, *follow)?).text());
            }
            Op::Access { path, wanted } => {
                let wanted = Access::from_bits_truncate(*wanted);
                self.tree.access(&who, &self.at(path), &path.path, wanted)?;
            }
            Op::Mkfifo { path, mode } => self.tree.mkfifo(&who, &self.at(path), &path.path, *mode)?,
            Op::List { path } => {
                let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
                let dir = self.tree.open(&who, &self.at(path), &path.path, flags, 0)?;
                let listed = names(&self.tree, &who, &dir);
                self.tree.close(dir);
                return Ok(listed?.join(" "));
            }
            other => unreachable!("{other:?} has no path"),
        }
        Ok("ok".to_string())
    }

    fn open(&mut self, slot: usize, path: &PathArg, flags: u32, mode: u32) -> Result<String> {
        let at = self.at(path);
        let follow = flags & flags::NOFOLLOW == 0;
        let fifo = self.tree.stat(&self.who, &at, &path.path, follow);
        if fifo.is_ok_and(|stat| stat.kind == FileKind::Fifo) {
            return Ok("a pipe".to_string());
        }
        let handle = self.tree.open(&self.who, &at, &path.path, our_flags(flags), mode)?;
        if let Some(old) = self.slots[slot].replace(handle) {
            self.tree.close(old);
        }
        Ok("ok".to_string())
    }

    fn dump_dir(&mut self, place: &Place, path: &str, seen: &mut HashMap<u64, usize>, out: &mut String) {
        let root = Caller::ROOT;
        let dir = match self.tree.open(&root, place, b".", OpenFlags::READ | OpenFlags::DIRECTORY, 0) {
            Ok(dir) => dir,
            Err(errno) => panic!("{path}: {errno}"),
        };
        let names = names(&self.tree, &root, &dir).expect("a directory that is there can be listed");
        self.tree.close(dir);
        for name in names {
            let stat = self.tree.stat(&root, place, name.as_bytes(), false).expect("a listed name is there");
            let next = seen.len();
            let number = *seen.entry(stat.ino).or_insert(next);
            let mut text = line(&stat).text();
            match stat.kind {
                FileKind::File => text += &format!(" {}", self.content(place, name.as_bytes())),
                FileKind::Symlink => {
                    let target = self.tree.read_link(&root, place, name.as_bytes()).expect("a link reads");
                    text += &format!(" -> {}", String::from_utf8_lossy(&target));
                }
                _ => {}
            }
            out.push_str(&format!("{path}/{name} #{number} {text}\n"));
            if stat.kind == FileKind::Dir {
                let below = self.tree.lookup(&root, place, name.as_bytes(), false).expect("it is there");
                self.dump_dir(&below, &format!("{path}/{name}"), seen, out);
            }
        }
    }

    fn content(&mut self, place: &Place, name: &[u8]) -> String {
        let root = Caller::ROOT;
        let mut file = self.tree.open(&root, place, name, OpenFlags::READ, 0).expect("root opens all");
        let mut content = Vec::new();
        let mut buf = vec![0; 100_000];
        loop {
            match self.tree.read(&mut file, &mut buf).expect("a file reads") {
                0 => break,
                count => content.extend_from_slice(&buf[..count]),
            }
        }
        self.tree.close(file);
        digest(&content)
    }
}

impl World for Ours {
    fn run(&mut self, op: &Op) -> String {
        self.try_run(op).unwrap_or_else(|errno| errno.name().to_string())
    }

    fn dump(&mut self) -> String {
        let mut out = String::new();
        let place = self.tree.lookup(&Caller::ROOT, &self.tree.root(), b"/w", true).expect("/w stays");
        out.push_str(&format!("{}\n", line(&self.tree.stat_place(&Caller::ROOT, &place).unwrap()).text()));
        self.dump_dir(&place, "", &mut HashMap::new(), &mut out);
        out
    }
}

fn names(tree: &Tree, who: &Caller, dir: &Handle) -> Result<Vec<String>> {
    let (mut names, mut cursor) = (Vec::new(), 0);
    loop {
        let entries = tree.read_dir(who, dir, cursor, 3)?;
        let Some(last) = entries.last() else { break };
        cursor = last.next;
        names.extend(entries.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()));
    }
    names.retain(|name| name != "." && name != "..");
    names.sort();
    Ok(names)
}

fn time(time: i64) -> SetTime {
    match time {
        KEEP => SetTime::Keep,
        NOW => SetTime::Now,
        seconds => SetTime::At(seconds * 1_000_000_000),
    }
}

fn our_flags(bits: u32) -> OpenFlags {
    let pairs = [
        (flags::READ, OpenFlags::READ),
        (flags::WRITE, OpenFlags::WRITE),
        (flags::CREATE, OpenFlags::CREATE),
        (flags::EXCL, OpenFlags::EXCL),
        (flags::TRUNC, OpenFlags::TRUNC),
        (flags::APPEND, OpenFlags::APPEND),
        (flags::DIRECTORY, OpenFlags::DIRECTORY),
        (flags::NOFOLLOW, OpenFlags::NOFOLLOW),
    ];
    pairs.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, flag)| *flag).collect()
}

fn line(stat: &Stat) -> Line {
    let kind = match stat.kind {
        FileKind::File => 'f',
        FileKind::Dir => 'd',
        FileKind::Symlink => 'l',
        FileKind::Fifo => 'p',
        FileKind::Device(_) => 'c',
        FileKind::Socket => 's',
    };
    let Stat { mode, nlink, uid, gid, size, mtime, .. } = *stat;
    Line { kind, mode, nlink, uid, gid, size, mtime }
}
