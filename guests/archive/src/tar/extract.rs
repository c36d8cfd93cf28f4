//! Takes files out of an archive.
//!
//! What an archive says is not to be trusted: names that lead elsewhere are cut, and a symbolic link that could lead
//! elsewhere is made only when all else is done. Until then an empty file holds its place, so that nothing can be
//! written through it.

use super::header::{Kind, Member};
use super::list::{Lister, complain, quoted};
use super::options::{Old, Options};
use super::reader::Broken;
use super::select::{Matching, Wanted, stripped};
use super::transform::Target;
use super::{Report, Source, absolute, enter, fatal, is_excluded, tell_missing};
use crate::stream::CHUNK;
use toolkit::files;
use toolkit::names::Names;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Stat, Whence, open_flags as flags};

/// A directory whose mode and times are set when nothing more is put into it.
struct Pending {
    path: Vec<u8>,
    mode: Option<u32>,
    mtime: Option<i64>,
    owner: Option<(u32, u32)>,
}

/// A symbolic link that is made last, and the files that hold its place.
struct Delayed {
    places: Vec<Vec<u8>>,
    target: Vec<u8>,
    mtime: i64,
    owner: Option<(u32, u32)>,
    /// Of the file that holds its place.
    identity: (u64, u64),
}

struct Extractor<'a> {
    options: &'a Options,
    report: &'a mut Report,
    lister: Lister,
    start: Vec<u8>,
    here: Option<Vec<u8>>,
    umask: u32,
    keep_mode: bool,
    keep_owner: bool,
    users: Names,
    groups: Names,
    pending: Vec<Pending>,
    delayed: Vec<Delayed>,
    buffer: Vec<u8>,
}

pub fn extract(options: &Options, matching: &Matching, report: &mut Report) -> Result<(), i32> {
    let mut source = Source::open(options)?;
    let is_root = abi::getuid() == 0;
    let mut wanted = Wanted::new(&options.names, matching);
    let mut extractor = Extractor {
        options,
        report,
        lister: Lister::new(options, if options.to_stdout { 2 } else { 1 }),
        start: abi::getcwd().unwrap_or_else(|_| b"/".to_vec()),
        here: None,
        umask: crate::squeeze::umask(),
        keep_mode: options.keep_mode.unwrap_or(is_root),
        keep_owner: options.keep_owner.unwrap_or(is_root),
        users: Names::users(),
        groups: Names::groups(),
        pending: Vec::new(),
        delayed: Vec::new(),
        buffer: vec![0; CHUNK],
    };
    extractor.go(options.directory.as_deref())?;
    let result = extractor.extract_all(&mut source, &mut wanted);
    extractor.finish();
    result?;
    source.tell_total(options);
    tell_missing(&wanted, extractor.report);
    Ok(())
}

impl Extractor<'_> {
    fn go(&mut self, directory: Option<&[u8]>) -> Result<(), i32> {
        if self.here.as_deref() != directory
            && let Some(directory) = directory
        {
            enter(directory, &self.start)?;
            self.here = Some(directory.to_vec());
        }
        Ok(())
    }

    fn extract_all(&mut self, source: &mut Source, wanted: &mut Wanted) -> Result<(), i32> {
        let mut started = self.options.start.is_none();
        while let Some(member) = source.next(self.report)? {
            started |= self.options.start.as_ref() == Some(&member.name);
            if !started || is_excluded(self.options, &member.name) {
                continue;
            }
            let Some(directory) = wanted.find(&member.name) else { continue };
            let directory = directory.map(<[u8]>::to_vec);
            self.go(directory.as_deref())?;
            if self.is_refused(&member) {
                continue;
            }
            let Some(name) = self.target_name(&member) else { continue };
            if self.lister.level() > 0 {
                let mut shown =
                    if self.options.show_transformed { name.clone() } else { member.name.clone() };
                if member.kind == Kind::Directory && !shown.ends_with(b"/") {
                    shown.push(b'/');
                }
                self.lister.show(&member, &shown, self.lister.level() > 1);
            }
            self.extract_member(source, &member, &name)?;
        }
        Ok(())
    }

    /// Names that lead up are not only cut, but left alone: what they meant is somewhere else.
    fn is_refused(&mut self, member: &Member) -> bool {
        let leads_up =
            !self.options.absolute && member.name.split(|&byte| byte == b'/').any(|part| part == b"..");
        if leads_up {
            self.report.safe_name(&member.name, false, "member names");
            self.fail(&member.name, "Member name contains '..'");
        }
        leads_up
    }

    /// The file that a member becomes.
    fn target_name(&mut self, member: &Member) -> Option<Vec<u8>> {
        let changed = self.options.transform.apply(&member.name, Target::Name);
        let rest = stripped(&changed, self.options.strip)?;
        let safe = self.report.safe_name(rest, self.options.absolute, "member names");
        let end = safe.iter().rposition(|&byte| byte != b'/').map_or(safe.len().min(1), |at| at + 1);
        Some(safe[..end].to_vec())
    }

    fn fail(&mut self, name: &[u8], what: impl std::fmt::Display) {
        self.report.fail(format_args!("{}: {what}", quoted(name)));
    }

    fn extract_member(&mut self, source: &mut Source, member: &Member, name: &[u8]) -> Result<(), i32> {
        if self.options.to_stdout {
            return match member.kind {
                Kind::File => self.copy_out(source, member, 1, name),
                _ => Ok(()),
            };
        }
        if name.contains(&0) {
            self.fail(name, "Member name contains a NUL");
            return Ok(());
        }
        if self.is_kept(member, name) {
            return Ok(());
        }
        if self.options.unlink_first {
            match remove(name, self.options.recursive_unlink) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => self.fail(name, format_args!("Cannot unlink: {error}")),
            }
        }
        match member.kind {
            Kind::File | Kind::Sparse | Kind::Unknown(_) => return self.extract_file(source, member, name),
            Kind::Directory => self.extract_directory(member, name),
            Kind::Symlink => self.extract_symlink(member, name),
            Kind::HardLink => self.extract_hard_link(member, name),
            Kind::Fifo => {
                let mode = member.mode & 0o777 & !self.umask;
                self.make(name, "Cannot mkfifo", |name| abi::mkfifo(Dir::CWD, name, mode));
                self.set_attributes(member, name);
            }
            Kind::Character | Kind::BlockDevice => self.fail(name, "Cannot mknod: Operation not permitted"),
            Kind::VolumeLabel => {}
        }
        Ok(())
    }

    /// Whether what is there stays, with a word about it where one is due.
    fn is_kept(&mut self, member: &Member, name: &[u8]) -> bool {
        if member.kind == Kind::Directory || !matches!(self.options.old, Old::Skip | Old::KeepNewer) {
            return false;
        }
        let Ok(there) = abi::stat(Dir::CWD, name, false) else { return false };
        if self.options.old == Old::Skip {
            if self.options.verbose > 1 {
                complain(format_args!("{}: skipping existing file", quoted(name)));
            }
            return true;
        }
        let is_newer = there.mtime >= member.mtime;
        if is_newer {
            complain(format_args!("Current {} is newer or same age", toolkit::quote::word(name)));
        }
        is_newer
    }

    /// Makes something, after making room for it and the directories above it.
    fn make<T>(&mut self, name: &[u8], what: &str, make: impl Fn(&[u8]) -> Result<T, Errno>) -> Option<T> {
        let mut result = make(name);
        if matches!(result, Err(Errno::NOENT)) && self.make_parents(name) {
            result = make(name);
        }
        if matches!(result, Err(Errno::EXIST | Errno::LOOP | Errno::ISDIR)) && self.may_remove() {
            let removed = remove(name, self.options.recursive_unlink);
            if removed.is_ok() {
                result = make(name);
            } else if removed == Err(Errno::NOTEMPTY) {
                self.fail(name, format_args!("{what}: {}", Errno::EXIST));
                return None;
            }
        }
        match result {
            Ok(made) => Some(made),
            Err(error) => {
                self.fail(name, format_args!("{what}: {error}"));
                None
            }
        }
    }

    fn may_remove(&self) -> bool {
        self.options.old != Old::Keep
    }

    /// Makes the directories above a name that no member made.
    fn make_parents(&self, name: &[u8]) -> bool {
        let mut made = false;
        for (at, _) in name.iter().enumerate().filter(|(at, byte)| **byte == b'/' && *at > 0) {
            match abi::mkdir(Dir::CWD, &name[..at], 0o777) {
                Ok(()) => made = true,
                Err(Errno::EXIST) => {}
                Err(_) => return made,
            }
        }
        made
    }

    fn extract_file(&mut self, source: &mut Source, member: &Member, name: &[u8]) -> Result<(), i32> {
        if let Kind::Unknown(letter) = member.kind {
            complain(format_args!(
                "{}: Unknown file type '{}', extracted as normal file",
                quoted(name),
                quoted(&[letter])
            ));
        }
        let how = match self.options.old {
            Old::Overwrite => flags::TRUNC | flags::NOFOLLOW,
            _ => flags::EXCL,
        };
        // Others may read it when it has the mode that it ends up with.
        let mode = member.mode & 0o700 | 0o600;
        let open = |name: &[u8]| {
            abi::open(Dir::CWD, name, flags::WRONLY | flags::CREAT | flags::CLOEXEC | how, mode)
        };
        let Some(fd) = self.make(name, "Cannot open", open) else { return Ok(()) };
        let copied = self.copy_out(source, member, fd, name);
        if let Err(error) = abi::fchmod(fd, self.mode_of(member)) {
            self.fail(name, format_args!("Cannot change mode to {:04o}: {error}", self.mode_of(member)));
        }
        if let Err(error) = abi::close(fd) {
            self.fail(name, format_args!("Cannot close: {error}"));
        }
        self.set_owner(member, name);
        self.set_time(member, name);
        copied
    }

    fn mode_of(&self, member: &Member) -> u32 {
        if self.keep_mode { member.mode } else { member.mode & 0o777 & !self.umask }
    }

    /// Copies a member's content, with its holes.
    fn copy_out(&mut self, source: &mut Source, member: &Member, fd: Fd, name: &[u8]) -> Result<(), i32> {
        let whole = [(0, member.stored)];
        let map = member.map.as_deref().unwrap_or(&whole);
        let is_stream = self.options.to_stdout;
        let mut at = 0;
        for &(offset, length) in map {
            let in_order = offset >= at
                && offset.checked_add(length).is_some_and(|end| end <= member.size.max(member.stored));
            if !in_order {
                self.fail(name, "invalid sparse archive member");
                return Ok(());
            }
            if !self.leave_hole(fd, offset - at, is_stream, name)?
                || !self.copy_part(source, fd, length, name)?
            {
                return Ok(());
            }
            at = offset + length;
        }
        if member.map.is_none() {
            return Ok(());
        }
        if is_stream {
            self.leave_hole(fd, member.size.saturating_sub(at), true, name)?;
        } else if let Err(error) = abi::truncate(fd, member.size) {
            self.fail(name, format_args!("Cannot truncate: {error}"));
        }
        Ok(())
    }

    /// Goes past a hole. Answers whether that went well.
    fn leave_hole(&mut self, fd: Fd, length: u64, is_stream: bool, name: &[u8]) -> Result<bool, i32> {
        if length == 0 {
            return Ok(true);
        }
        if !is_stream {
            let moved = i64::try_from(length)
                .map_err(|_| Errno::INVAL)
                .and_then(|length| abi::seek(fd, length, Whence::Current));
            if let Err(error) = moved {
                self.fail(name, format_args!("Cannot seek: {error}"));
            }
            return Ok(moved.is_ok());
        }
        self.buffer.fill(0);
        let mut left = length;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            if !self.write(fd, count, name)? {
                return Ok(false);
            }
            left -= count as u64;
        }
        Ok(true)
    }

    fn copy_part(&mut self, source: &mut Source, fd: Fd, length: u64, name: &[u8]) -> Result<bool, i32> {
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let count = match source.reader.read_content(&mut self.buffer[..most]) {
                Ok(0) => return Err(self.cut_short(source, Broken::Cut)),
                Ok(count) => count,
                Err(broken) => return Err(self.cut_short(source, broken)),
            };
            if !self.write(fd, count, name)? {
                return Ok(false);
            }
            left -= count as u64;
        }
        Ok(true)
    }

    fn cut_short(&mut self, source: &Source, broken: Broken) -> i32 {
        if matches!(broken, Broken::Cut) {
            complain("Unexpected EOF in archive");
        }
        source.give_up(broken)
    }

    /// Writes from the buffer. A file that cannot be written is left as it is, and the next one is tried.
    fn write(&mut self, fd: Fd, count: usize, name: &[u8]) -> Result<bool, i32> {
        match abi::write_all(fd, &self.buffer[..count]) {
            Ok(()) => Ok(true),
            Err(Errno::PIPE) if fd == 1 => Err(2),
            Err(error) if fd == 1 => Err(fatal(format_args!("-: Cannot write: {error}"))),
            Err(error) => {
                self.fail(name, format_args!("Cannot write: {error}"));
                Ok(false)
            }
        }
    }

    fn extract_directory(&mut self, member: &Member, name: &[u8]) {
        let there = abi::stat(Dir::CWD, name, false).ok();
        let is_kept_link = self.options.keeps_directory_links
            && there.is_some_and(|there| there.is_symlink())
            && abi::stat(Dir::CWD, name, true).is_ok_and(|stat| stat.is_dir());
        let is_there = there.is_some_and(|there| there.is_dir()) || is_kept_link;
        if !is_there {
            // Its owner can fill it, whatever it will be.
            let mode = member.mode & 0o777 | 0o700;
            if self.make(name, "Cannot mkdir", |name| abi::mkdir(Dir::CWD, name, mode)).is_none() {
                return;
            }
        } else if is_kept_link
            || matches!(self.options.old, Old::ReplaceButDirectories | Old::Keep | Old::Skip)
        {
            return;
        } else if there.is_some_and(|there| there.mode & 0o700 != 0o700) {
            // What will be said of it later is said anew.
            let _ = abi::chmod(Dir::CWD, name, false, 0o700);
        }
        self.pending.push(Pending {
            path: self.seen_from_root(name),
            mode: Some(self.mode_of(member)),
            mtime: (!self.options.touch).then_some(member.mtime),
            owner: self.owner_of(member),
        });
    }

    /// A path that means the same from every directory.
    fn seen_from_root(&self, name: &[u8]) -> Vec<u8> {
        match &self.here {
            _ if name.starts_with(b"/") => name.to_vec(),
            Some(here) => files::join(&absolute(here, &self.start), name),
            None => files::join(&self.start, name),
        }
    }

    fn extract_symlink(&mut self, member: &Member, name: &[u8]) {
        let target = self.options.transform.apply(&member.link, Target::Symlink);
        let may_lead_out =
            target.starts_with(b"/") || target.split(|&byte| byte == b'/').any(|part| part == b"..");
        if may_lead_out && !self.options.absolute {
            self.delay_symlink(member, name, target);
            return;
        }
        let what = format!("Cannot create symlink to ‘{}’", quoted(&target));
        if self.make(name, &what, |name| abi::symlink(&target, Dir::CWD, name)).is_some() {
            self.set_owner(member, name);
            self.set_time(member, name);
        }
    }

    fn delay_symlink(&mut self, member: &Member, name: &[u8], target: Vec<u8>) {
        let how = flags::WRONLY | flags::CREAT | flags::EXCL | flags::CLOEXEC;
        let what = format!("Cannot create symlink to ‘{}’", quoted(&target));
        let Some(fd) = self.make(name, &what, |name| abi::open(Dir::CWD, name, how, 0)) else { return };
        let stat = abi::fstat(fd);
        // An empty file has nothing to lose.
        let _ = abi::close(fd);
        let Ok(stat) = stat else { return };
        self.delayed.push(Delayed {
            places: vec![self.seen_from_root(name)],
            target,
            mtime: member.mtime,
            owner: self.owner_of(member),
            identity: (stat.dev, stat.ino),
        });
    }

    fn extract_hard_link(&mut self, member: &Member, name: &[u8]) {
        let target = self.options.transform.apply(&member.link, Target::HardLink);
        let Some(target) = stripped(&target, self.options.strip).map(<[u8]>::to_vec) else { return };
        let target = self.report.safe_name(&target, self.options.absolute, "hard link targets");
        let first = abi::stat(Dir::CWD, &target, false).ok();
        let there = abi::stat(Dir::CWD, name, false).ok();
        let identity = |stat: &Stat| (stat.dev, stat.ino);
        if first.is_some() && first.as_ref().map(identity) == there.as_ref().map(identity) {
            return;
        }
        let what = format!("Cannot hard link to ‘{}’", quoted(&target));
        if first.is_none() {
            self.make_parents(name);
        }
        if self.make(name, &what, |name| abi::hard_link(Dir::CWD, &target, Dir::CWD, name)).is_none() {
            return;
        }
        // A name of a file that only holds a place holds it, too.
        let path = self.seen_from_root(name);
        let held = first.as_ref().map(identity);
        if let Some(delayed) = self.delayed.iter_mut().find(|delayed| Some(delayed.identity) == held) {
            delayed.places.push(path);
        }
    }

    fn owner_of(&self, member: &Member) -> Option<(u32, u32)> {
        if !self.keep_owner {
            return None;
        }
        let find = |names: &Names, name: &[u8], id: u64| {
            let by_name = (!self.options.numeric && !name.is_empty())
                .then(|| names.find(&String::from_utf8_lossy(name)))
                .flatten();
            by_name.or(u32::try_from(id).ok())
        };
        find(&self.users, &member.owner, member.uid).zip(find(&self.groups, &member.group, member.gid))
    }

    fn set_attributes(&mut self, member: &Member, name: &[u8]) {
        // Those that cannot be set were not promised.
        let _ = abi::chmod(Dir::CWD, name, false, self.mode_of(member));
        self.set_owner(member, name);
        self.set_time(member, name);
    }

    fn set_owner(&mut self, member: &Member, name: &[u8]) {
        let Some((uid, gid)) = self.owner_of(member) else { return };
        if let Err(error) = abi::chown(Dir::CWD, name, false, Some(uid), Some(gid)) {
            self.fail(name, format_args!("Cannot change ownership to uid {uid}, gid {gid}: {error}"));
            return;
        }
        // A new owner clears the set-id bits.
        if member.mode & 0o6000 != 0 && self.keep_mode && member.kind == Kind::File {
            let _ = abi::chmod(Dir::CWD, name, false, member.mode);
        }
    }

    fn set_time(&mut self, member: &Member, name: &[u8]) {
        if self.options.touch {
            return;
        }
        let ahead = member.mtime.saturating_sub(toolkit::clock::now());
        if ahead > 0 && self.options.tells_future {
            let time = toolkit::clock::Clock::new().format(member.mtime, "%Y-%m-%d %H:%M:%S");
            let (seconds, rest) = (ahead / 1_000_000_000, ahead % 1_000_000_000);
            complain(format_args!(
                "{}: time stamp {time} is {seconds}.{rest:09} s in the future",
                quoted(name)
            ));
        }
        if let Err(error) = abi::set_times(Dir::CWD, name, false, None, Some(member.mtime)) {
            self.fail(name, format_args!("Cannot utime: {error}"));
        }
    }

    /// Makes the links that waited, then gives directories what is theirs, the deepest first.
    fn finish(&mut self) {
        for delayed in std::mem::take(&mut self.delayed) {
            for place in &delayed.places {
                self.make_delayed(&delayed, place);
            }
        }
        for pending in std::mem::take(&mut self.pending).into_iter().rev() {
            let path = &pending.path;
            if !abi::stat(Dir::CWD, path, false).is_ok_and(|stat| stat.is_dir()) {
                continue;
            }
            if let Some((uid, gid)) = pending.owner {
                // As with files, but there is no one left to tell.
                let _ = abi::chown(Dir::CWD, path, false, Some(uid), Some(gid));
            }
            if let Some(mtime) = pending.mtime
                && let Err(error) = abi::set_times(Dir::CWD, path, false, None, Some(mtime))
            {
                self.fail(path, format_args!("Cannot utime: {error}"));
            }
            if let Some(mode) = pending.mode
                && let Err(error) = abi::chmod(Dir::CWD, path, true, mode)
            {
                self.fail(path, format_args!("Cannot change mode to {mode:04o}: {error}"));
            }
        }
    }

    fn make_delayed(&mut self, delayed: &Delayed, place: &[u8]) {
        // Unless something else has taken the place meanwhile.
        let is_held =
            abi::stat(Dir::CWD, place, false).is_ok_and(|stat| (stat.dev, stat.ino) == delayed.identity);
        if !is_held {
            return;
        }
        let made = abi::unlink(Dir::CWD, place).and_then(|()| abi::symlink(&delayed.target, Dir::CWD, place));
        if let Err(error) = made {
            self.fail(place, format_args!("Cannot create symlink to ‘{}’: {error}", quoted(&delayed.target)));
            return;
        }
        if let Some((uid, gid)) = delayed.owner {
            let _ = abi::chown(Dir::CWD, place, false, Some(uid), Some(gid));
        }
        if !self.options.touch {
            let _ = abi::set_times(Dir::CWD, place, false, None, Some(delayed.mtime));
        }
    }
}

/// Removes what is there: a file, an empty directory, or with `deeply` all that is in one.
fn remove(name: &[u8], deeply: bool) -> Result<(), Errno> {
    match abi::unlink(Dir::CWD, name) {
        Err(Errno::ISDIR | Errno::PERM) if deeply => {
            std::fs::remove_dir_all(files::path(name)).map_err(Errno::from)
        }
        Err(Errno::ISDIR | Errno::PERM) => abi::rmdir(Dir::CWD, name),
        result => result,
    }
}
