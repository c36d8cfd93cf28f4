//! A real directory, operated on by system calls: what Linux says.

use crate::ops::{KEEP, NOW, Op, PathArg, SLOTS, digest, flags, pattern};
use crate::world::{Line, World, shown_time};
use rustix::fs::*;
use rustix::io::{Errno, Result};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// The directory `w` that this process stands in, and the descriptors it has opened.
pub struct Real {
    slots: [Option<OwnedFd>; SLOTS],
    area: OwnedFd,
    /// The path of what the sequence takes for its root: nothing in a root of its own.
    base: PathBuf,
}

impl Real {
    pub fn new(base: PathBuf) -> Real {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY;
        let area = openat(CWD, ".", flags, Mode::empty()).expect("the working area opens");
        Real { slots: [const { None }; SLOTS], area, base }
    }

    fn at(&self, path: &PathArg) -> BorrowedFd<'_> {
        path.at.and_then(|slot| self.slots[slot].as_ref()).map_or(CWD, |fd| fd.as_fd())
    }

    fn fd(&self, slot: usize) -> Result<&OwnedFd> {
        self.slots[slot].as_ref().ok_or(Errno::BADF)
    }

    fn try_run(&mut self, op: &Op) -> Result<String> {
        match op {
            Op::Open { slot, path, flags, mode } => return self.open(*slot, path, *flags, *mode),
            Op::Close { slot } => {
                self.slots[*slot].take().ok_or(Errno::BADF)?;
            }
            Op::Read { slot, len } => {
                let mut buf = vec![0; *len];
                let count = rustix::io::read(self.fd(*slot)?, &mut buf[..])?;
                return Ok(digest(&buf[..count]));
            }
            Op::Pread { slot, len, offset } => {
                let mut buf = vec![0; *len];
                let count = rustix::io::pread(self.fd(*slot)?, &mut buf[..], *offset)?;
                return Ok(digest(&buf[..count]));
            }
            Op::Write { slot, len, fill } => {
                return Ok(rustix::io::write(self.fd(*slot)?, &pattern(*fill, *len))?.to_string());
            }
            Op::Pwrite { slot, len, fill, offset } => {
                let data = pattern(*fill, *len);
                return Ok(rustix::io::pwrite(self.fd(*slot)?, &data, *offset)?.to_string());
            }
            Op::Seek { slot, whence, by } => {
                let fd = self.fd(*slot)?;
                if FileType::from_raw_mode(fstat(fd)?.st_mode) != FileType::RegularFile {
                    return Ok("not a file".to_string());
                }
                let to = match whence {
                    0 => SeekFrom::Start(*by as u64),
                    1 => SeekFrom::Current(*by),
                    _ => SeekFrom::End(*by),
                };
                return Ok(seek(fd, to)?.to_string());
            }
            Op::Truncate { slot, len } => ftruncate(self.fd(*slot)?, *len)?,
            Op::Allocate { slot, offset, len } => {
                fallocate(self.fd(*slot)?, FallocateFlags::empty(), *offset, *len)?;
            }
            Op::Fstat { slot } => return Ok(line(&fstat(self.fd(*slot)?)?).text()),
            Op::Fchmod { slot, mode } => fchmod(self.fd(*slot)?, Mode::from_raw_mode(*mode))?,
            Op::Futimes { slot, atime, mtime } => futimens(self.fd(*slot)?, &times(*atime, *mtime))?,
            Op::Chdir { path } => {
                // fchdir to a descriptor of the directory, because there is no chdirat.
                let flags = OFlags::PATH | OFlags::DIRECTORY;
                let dir = openat(self.at(path), &path.path[..], flags, Mode::empty())?;
                rustix::process::fchdir(dir)?;
            }
            Op::Getcwd => {
                let cwd = rustix::process::getcwd(Vec::new())?.into_string().unwrap_or_default();
                return Ok(cwd.strip_prefix(self.base.to_str().unwrap_or("")).unwrap_or(&cwd).to_string());
            }
            Op::Umask { mask } => {
                rustix::process::umask(Mode::from_raw_mode(*mask));
            }
            _ => return self.try_run_path(op),
        }
        Ok("ok".to_string())
    }

    fn try_run_path(&mut self, op: &Op) -> Result<String> {
        match op {
            Op::Mkdir { path, mode } => mkdirat(self.at(path), &path.path[..], Mode::from_raw_mode(*mode))?,
            Op::Rmdir { path } => unlinkat(self.at(path), &path.path[..], AtFlags::REMOVEDIR)?,
            Op::Unlink { path } => unlinkat(self.at(path), &path.path[..], AtFlags::empty())?,
            Op::Rename { from, to } => {
                renameat(self.at(from), &from.path[..], self.at(to), &to.path[..])?;
            }
            Op::Link { from, follow, to } => {
                let follow = if *follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
                linkat(self.at(from), &from.path[..], self.at(to), &to.path[..], follow)?;
            }
            Op::Symlink { target, path } => symlinkat(&target[..], self.at(path), &path.path[..])?,
            Op::ReadLink { path } => {
                let target = readlinkat(self.at(path), &path.path[..], Vec::new())?;
                return Ok(String::from_utf8_lossy(target.to_bytes()).into_owned());
            }
            Op::Chmod { path, mode } => {
                chmodat(self.at(path), &path.path[..], Mode::from_raw_mode(*mode), AtFlags::empty())?;
            }
            Op::Chown { path, follow, uid, gid } => {
                let uid = uid.map(rustix::fs::Uid::from_raw);
                let gid = gid.map(rustix::fs::Gid::from_raw);
                chownat(self.at(path), &path.path[..], uid, gid, no_follow(*follow))?;
            }
            Op::Utimes { path, follow, atime, mtime } => {
                utimensat(self.at(path), &path.path[..], &times(*atime, *mtime), no_follow(*follow))?;
                let stat = statat(self.at(path), &path.path[..], no_follow(*follow))?;
                let accessed = stat.st_atime * 1_000_000_000;
                let shown = *atime > 0 && FileType::from_raw_mode(stat.st_mode) != FileType::Symlink;
                let atime = if shown { shown_time(accessed) } else { String::new() };
                return Ok(format!("{atime} {}", shown_time(line(&stat).mtime)));
            }
            Op::Stat { path, follow } => {
                return Ok(line(&statat(self.at(path), &path.path[..], no_follow(*follow))?).text());
            }
            Op::Access { path, wanted } => {
                let wanted = rustix::fs::Access::from_bits_retain(*wanted);
                accessat(self.at(path), &path.path[..], wanted, AtFlags::empty())?;
            }
            Op::Mkfifo { path, mode } => {
                mknodat(self.at(path), &path.path[..], FileType::Fifo, Mode::from_raw_mode(*mode), 0)?;
            }
            Op::List { path } => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let dir = openat(self.at(path), &path.path[..], flags, Mode::empty())?;
                return Ok(names(dir)?.join(" "));
            }
            other => unreachable!("{other:?} has no path"),
        }
        Ok("ok".to_string())
    }

    fn open(&mut self, slot: usize, path: &PathArg, flags: u32, mode: u32) -> Result<String> {
        let follow = flags & flags::NOFOLLOW == 0;
        let stat = statat(self.at(path), &path.path[..], no_follow(follow));
        if stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo) {
            return Ok("a pipe".to_string());
        }
        let fd = openat(self.at(path), &path.path[..], linux_flags(flags), Mode::from_raw_mode(mode))?;
        self.slots[slot] = Some(fd);
        Ok("ok".to_string())
    }
}

impl World for Real {
    fn run(&mut self, op: &Op) -> String {
        self.try_run(op)
            .unwrap_or_else(|errno| wardian_vfs::Errno::from_raw(errno.raw_os_error()).name().to_string())
    }

    fn dump(&mut self) -> String {
        let mut out = format!("{}\n", line(&fstat(&self.area).expect("the area is there")).text());
        fchmod(&self.area, Mode::from_raw_mode(0o700)).expect("it is ours");
        let mut lines = Vec::new();
        list_below(&self.area, "", &mut HashMap::new(), &mut lines);
        for (dir, name, text) in lines {
            out.push_str(&text);
            out.push_str(&content(&dir, &name));
            out.push('\n');
        }
        out
    }
}

type Listed = Vec<(std::rc::Rc<OwnedFd>, String, String)>;

/// First all metadata, since reading contents may need permissions that are not there yet.
fn list_below(dir: &OwnedFd, path: &str, seen: &mut HashMap<u64, usize>, out: &mut Listed) {
    let shared = std::rc::Rc::new(dir.try_clone().expect("descriptors are left"));
    for name in names(reopened(dir)).expect("a directory that is there can be listed") {
        let stat = statat(dir, &*name, AtFlags::SYMLINK_NOFOLLOW).expect("a listed name is there");
        let next = seen.len();
        let number = *seen.entry(stat.st_ino).or_insert(next);
        out.push((shared.clone(), name.clone(), format!("{path}/{name} #{number} {}", line(&stat).text())));
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            chmodat(dir, &*name, Mode::from_raw_mode(0o700), AtFlags::empty()).expect("it is ours");
            let flags = OFlags::DIRECTORY | OFlags::RDONLY;
            let below = openat(dir, &*name, flags, Mode::empty()).expect("permission was given");
            list_below(&below, &format!("{path}/{name}"), seen, out);
        }
    }
}

fn content(dir: &OwnedFd, name: &str) -> String {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).expect("a listed name is there");
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            chmodat(dir, name, Mode::from_raw_mode(0o600), AtFlags::empty()).expect("it is ours");
            let file = openat(dir, name, OFlags::RDONLY, Mode::empty()).expect("permission was given");
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut bytes).expect("a file reads");
            format!(" {}", digest(&bytes))
        }
        FileType::Symlink => {
            let target = readlinkat(dir, name, Vec::new()).expect("a link reads");
            format!(" -> {}", String::from_utf8_lossy(target.to_bytes()))
        }
        _ => String::new(),
    }
}

fn reopened(dir: &OwnedFd) -> OwnedFd {
    openat(dir, ".", OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty()).expect("permission was given")
}

fn names(dir: OwnedFd) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::new(dir)? {
        names.push(String::from_utf8_lossy(entry?.file_name().to_bytes()).into_owned());
    }
    names.retain(|name| name != "." && name != "..");
    names.sort();
    Ok(names)
}

fn no_follow(follow: bool) -> AtFlags {
    if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW }
}

fn times(atime: i64, mtime: i64) -> Timestamps {
    let spec = |time| match time {
        KEEP => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        NOW => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        seconds => Timespec { tv_sec: seconds, tv_nsec: 0 },
    };
    Timestamps { last_access: spec(atime), last_modification: spec(mtime) }
}

fn linux_flags(bits: u32) -> OFlags {
    let access = match bits & (flags::READ | flags::WRITE) {
        flags::READ => OFlags::RDONLY,
        flags::WRITE => OFlags::WRONLY,
        _ => OFlags::RDWR,
    };
    let pairs = [
        (flags::CREATE, OFlags::CREATE),
        (flags::EXCL, OFlags::EXCL),
        (flags::TRUNC, OFlags::TRUNC),
        (flags::APPEND, OFlags::APPEND),
        (flags::DIRECTORY, OFlags::DIRECTORY),
        (flags::NOFOLLOW, OFlags::NOFOLLOW),
    ];
    pairs.iter().filter(|(bit, _)| bits & bit != 0).fold(access, |all, (_, flag)| all | *flag)
}

fn line(stat: &Stat) -> Line {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => 'f',
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        FileType::Socket => 's',
        _ => '?',
    };
    Line {
        kind,
        mode: stat.st_mode & 0o7777,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: stat.st_size as u64,
        mtime: stat.st_mtime * 1_000_000_000 + stat.st_mtime_nsec as i64,
    }
}
