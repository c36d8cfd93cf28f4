//! Puts files into an archive.

use super::header::{BLOCK, Format, Kind, Member};
use super::list::{Lister, complain, quoted};
use super::options::{Options, Tag, fatal, misuse, shown};
use super::transform::Target;
use super::writer::{PaxTimes, Writer};
use super::{Report, Sink, enter, fatal_only};
use crate::squeeze::Opened;
use crate::stream::CHUNK;
use std::collections::HashMap;
use std::time::Instant;
use toolkit::files;
use toolkit::names::Names;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Stat, Whence};

/// Members on their way into an archive.
pub struct Adder<'a> {
    options: &'a Options,
    report: &'a mut Report,
    pub writer: Writer,
    lister: Lister,
    users: Names,
    groups: Names,
    /// The first name of each file that has several.
    links: HashMap<(u64, u64), Vec<u8>>,
    /// The archive itself, which is not put into it.
    archive: Option<(u64, u64)>,
    /// Files to remove in the end, directories after what is in them.
    done: Vec<(Vec<u8>, bool)>,
    /// What the archive has already, for `-u`.
    known: HashMap<Vec<u8>, i64>,
    buffer: Vec<u8>,
    /// How many of the patterns count: those that stood before the name that is being added.
    excludes: usize,
    recursion: bool,
}

/// The archive cannot be written any more; it was said why.
pub struct Over(pub i32);

pub fn create(options: &Options, report: &mut Report) -> Result<(), i32> {
    check_verify(options)?;
    let began = Instant::now();
    let start = abi::getcwd().unwrap_or_default();
    let (sink, writer) = Sink::create(options)?;
    let mut adder = Adder::new(options, report, writer, sink.fd(), HashMap::new());
    adder.add_all()?;
    let written = adder.finish(options)?;
    sink.finish().map_err(|error| write_failed(options, Errno::from(error)).0)?;
    if options.totals {
        super::tell_total("written", written, began);
    }
    if options.verify_compare {
        enter(b".", &start)?;
        super::diff::verify(options, report)?;
    }
    Ok(())
}

/// Only a plain file can be read again.
fn check_verify(options: &Options) -> Result<(), i32> {
    if options.sparse && options.format != Format::Gnu {
        return Err(fatal("--sparse: holes can be left out only with --format=gnu here"));
    }
    if options.verify_compare && options.packing.is_some() {
        return Err(misuse("Cannot verify compressed archives"));
    }
    if options.verify_compare && options.archive == b"-" {
        return Err(fatal("Cannot verify stdin/stdout archive"));
    }
    Ok(())
}

fn write_failed(options: &Options, error: Errno) -> Over {
    let name = if options.archive == b"-" { "-".to_owned() } else { quoted(&options.archive) };
    complain(format_args!("{name}: Cannot write: {error}"));
    Over(fatal_only())
}

impl<'a> Adder<'a> {
    pub fn new(
        options: &'a Options,
        report: &'a mut Report,
        writer: Writer,
        archive: abi::Fd,
        known: HashMap<Vec<u8>, i64>,
    ) -> Adder<'a> {
        let is_stdout = options.archive == b"-";
        let stat = abi::fstat(archive).ok().filter(Stat::is_file);
        Adder {
            options,
            report,
            writer,
            lister: Lister::new(options, if is_stdout { 2 } else { 1 }),
            users: Names::users(),
            groups: Names::groups(),
            links: HashMap::new(),
            archive: stat.map(|stat| (stat.dev, stat.ino)),
            done: Vec::new(),
            known,
            buffer: vec![0; CHUNK],
            excludes: 0,
            recursion: true,
        }
    }

    /// Adds all that was named, each from its directory.
    pub fn add_all(&mut self) -> Result<(), i32> {
        let start = abi::getcwd().unwrap_or_else(|_| b"/".to_vec());
        let mut here: Option<Vec<u8>> = None;
        for named in &self.options.names {
            if named.directory != here {
                enter(named.directory.as_deref().unwrap_or(b"."), &start)?;
                here = named.directory.clone();
            }
            let name = named.name.as_slice();
            let end = name.iter().rposition(|&byte| byte != b'/').map_or(name.len().min(1), |at| at + 1);
            (self.excludes, self.recursion) = (named.excludes, named.recursion);
            self.add(&name[..end], None).map_err(|Over(code)| code)?;
        }
        if !self.options.idle.is_empty() {
            complain(
                "The following options were used after any non-optional arguments in archive create or update mode.  These options are positional and affect only arguments that follow them.  Please, rearrange them properly.",
            );
            for option in &self.options.idle {
                self.report.fail(format_args!("{option} has no effect"));
            }
        }
        Ok(())
    }

    /// Marks the end of the archive; answers how long it became. Then removes what was to be moved into it.
    pub fn finish(mut self, options: &Options) -> Result<u64, i32> {
        let record = options.record;
        let written = self.writer.written;
        self.writer.finish().map_err(|error| write_failed(options, Errno::from(error)).0)?;
        self.done.reverse();
        for (path, is_dir) in self.done {
            let removed = if is_dir { abi::rmdir(Dir::CWD, &path) } else { abi::unlink(Dir::CWD, &path) };
            if let Err(error) = removed {
                let what = if is_dir { "Cannot rmdir" } else { "Cannot unlink" };
                self.report.fail(format_args!("{}: {what}: {error}", quoted(&path)));
            }
        }
        Ok((written + 1024).next_multiple_of(record))
    }

    fn add(&mut self, path: &[u8], device: Option<u64>) -> Result<(), Over> {
        if self.options.excludes[..self.excludes].iter().any(|pattern| pattern.matches(path)) {
            return Ok(());
        }
        let stat = match abi::stat(Dir::CWD, path, self.options.dereference) {
            Ok(stat) => stat,
            Err(error) => {
                self.fail_to_read(path, "Cannot stat", error);
                return Ok(());
            }
        };
        if Some((stat.dev, stat.ino)) == self.archive {
            complain(format_args!("{}: file is the archive; not dumped", quoted(path)));
            return Ok(());
        }
        if self.options.one_file_system && device.is_some_and(|device| device != stat.dev) {
            return Ok(());
        }
        if stat.is_dir() {
            return self.add_directory(path, &stat, device);
        }
        if self.is_old(&stat) {
            if self.lister.level() > 0 {
                complain(format_args!("{}: file is unchanged; not dumped", quoted(path)));
            }
            return Ok(());
        }
        if self.is_known(path, &stat) {
            return Ok(());
        }
        if self.add_link(path, &stat)? {
            return Ok(());
        }
        match stat.mode & 0o170_000 {
            0o100_000 => self.add_file(path, &stat)?,
            0o120_000 => match abi::readlink(Dir::CWD, path) {
                Ok(target) => {
                    let mut member = self.member(path, &stat, Kind::Symlink);
                    member.link = self.options.transform.apply(&target, Target::Symlink);
                    self.put_header(path, &stat, &member)?;
                }
                Err(error) => self.fail_to_read(path, "Cannot readlink", error),
            },
            0o140_000 => {
                complain(format_args!("{}: socket ignored", quoted(path)));
                return Ok(());
            }
            0o010_000 => self.add_special(path, &stat, Kind::Fifo)?,
            0o020_000 => self.add_special(path, &stat, Kind::Character)?,
            0o060_000 => self.add_special(path, &stat, Kind::BlockDevice)?,
            _ => {
                self.report.fail(format_args!("{}: Unknown file type; file ignored", quoted(path)));
                return Ok(());
            }
        }
        self.remember(path, &stat);
        Ok(())
    }

    fn fail_to_read(&mut self, path: &[u8], what: &str, error: Errno) {
        if self.options.ignore_failed_read {
            complain(format_args!("{}: Warning: {what}: {error}", quoted(path)));
            return;
        }
        self.report.fail(format_args!("{}: {what}: {error}", quoted(path)));
    }

    /// Whether a file is older than the date that was asked for.
    fn is_old(&self, stat: &Stat) -> bool {
        let latest = if self.options.newer_by_change { stat.mtime.max(stat.ctime) } else { stat.mtime };
        self.options.newer.is_some_and(|newer| latest < newer)
    }

    /// Whether the archive to be updated has this file, no older.
    fn is_known(&mut self, path: &[u8], stat: &Stat) -> bool {
        if self.known.is_empty() {
            return false;
        }
        let name = self.stored_name(path);
        // Archives keep whole seconds.
        self.known
            .get(&name)
            .is_some_and(|known| stat.mtime.div_euclid(1_000_000_000) <= known.div_euclid(1_000_000_000))
    }

    fn stored_name(&mut self, path: &[u8]) -> Vec<u8> {
        let safe = self.report.safe_name(path, self.options.absolute, "member names");
        self.options.transform.apply(&safe, Target::Name)
    }

    fn add_directory(&mut self, path: &[u8], stat: &Stat, device: Option<u64>) -> Result<(), Over> {
        let tag = self.options.tags.iter().find(|(tag, _)| {
            abi::stat(Dir::CWD, &files::join(path, tag), true).is_ok_and(|stat| stat.is_file())
        });
        if tag.is_some_and(|(_, kind)| *kind == Tag::Nothing) {
            self.tell_tag(path, tag, "directory not dumped");
            return Ok(());
        }
        let member = self.member(path, stat, Kind::Directory);
        if !self.is_known_directory(&member, stat) && !self.try_header(path, stat, &member)? {
            return Ok(());
        }
        if self.options.remove {
            self.done.push((path.to_vec(), true));
        }
        if let Some((file, kind)) = tag {
            self.tell_tag(path, tag, "contents not dumped");
            let file = file.clone();
            return if *kind == Tag::WithItself {
                self.add(&files::join(path, &file), device)
            } else {
                Ok(())
            };
        }
        if !self.recursion {
            return Ok(());
        }
        let mut names = match files::names_in(path) {
            Ok(names) => names,
            Err(error) => {
                self.fail_to_read(path, "Cannot open", error);
                return Ok(());
            }
        };
        // A directory has no order of its own that anybody could rely on.
        names.sort();
        for name in names {
            self.add(&files::join(path, &name), device.or(Some(stat.dev)))?;
        }
        Ok(())
    }

    fn tell_tag(&self, path: &[u8], tag: Option<&(Vec<u8>, Tag)>, words: &str) {
        let file = tag.map_or(b"".as_slice(), |(file, _)| file);
        complain(format_args!("{}/: contains a cache directory tag {}; {words}", quoted(path), shown(file)));
    }

    fn is_known_directory(&self, member: &Member, stat: &Stat) -> bool {
        let known = self.known.get(&member.name);
        known.is_some_and(|known| stat.mtime.div_euclid(1_000_000_000) <= known.div_euclid(1_000_000_000))
    }

    /// Whether a file may be met under another name: it has several, is reached through links, or was named twice.
    fn may_come_again(&self, stat: &Stat) -> bool {
        let has_one_name = stat.nlink < 2 && !self.options.dereference && self.options.names.len() < 2;
        !has_one_name && !self.options.hard_dereference
    }

    /// Remembers a file that is in the archive now.
    fn remember(&mut self, path: &[u8], stat: &Stat) {
        if self.may_come_again(stat) {
            let safe = self.report.safe_name(path, self.options.absolute, "hard link targets");
            self.links.insert((stat.dev, stat.ino), safe);
        }
    }

    /// Adds a further name of a file that is in the archive already.
    fn add_link(&mut self, path: &[u8], stat: &Stat) -> Result<bool, Over> {
        if !self.may_come_again(stat) {
            return Ok(false);
        }
        let Some(first) = self.links.get(&(stat.dev, stat.ino)).cloned() else { return Ok(false) };
        let mut member = self.member(path, stat, Kind::HardLink);
        member.link = self.options.transform.apply(&first, Target::HardLink);
        self.put_header(path, stat, &member)?;
        self.mark_done(path);
        Ok(true)
    }

    fn mark_done(&mut self, path: &[u8]) {
        if self.options.remove {
            self.done.push((path.to_vec(), false));
        }
    }

    fn add_special(&mut self, path: &[u8], stat: &Stat, kind: Kind) -> Result<(), Over> {
        let mut member = self.member(path, stat, kind);
        if kind != Kind::Fifo {
            member.device = toolkit::size::device(stat.rdev);
        }
        self.put_header(path, stat, &member)
    }

    fn add_file(&mut self, path: &[u8], stat: &Stat) -> Result<(), Over> {
        let opened = match Opened::read(path) {
            Ok(opened) => opened,
            Err(error) => {
                self.fail_to_read(path, "Cannot open", error);
                return Ok(());
            }
        };
        let mut member = self.member(path, stat, Kind::File);
        (member.size, member.stored) = (stat.size, stat.size);
        // One that cannot be looked through is told of when it is put in.
        if self.options.sparse
            && let Ok(Some(map)) = self.pieces_of(&opened, stat.size)
        {
            member.kind = Kind::Sparse;
            member.stored = map.iter().map(|(_, length)| length).sum();
            member.map = Some(map);
        }
        if !self.try_header(path, stat, &member)? {
            return Ok(());
        }
        let whole = [(0, stat.size)];
        for &(offset, length) in member.map.as_deref().unwrap_or(&whole) {
            if member.map.is_some() {
                let _ = abi::seek(opened.0, i64::try_from(offset).unwrap_or(i64::MAX), Whence::Start);
            }
            self.put_content(path, &opened, length)?;
        }
        self.writer.pad(member.stored).map_err(|error| write_failed(self.options, error.into()))?;
        self.mark_done(path);
        Ok(())
    }

    /// Puts exactly as much as the header says, whatever happens to the file meanwhile.
    fn put_content(&mut self, path: &[u8], opened: &Opened, size: u64) -> Result<(), Over> {
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let count = match abi::read(opened.0, &mut self.buffer[..most]) {
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(error) => {
                    self.report.fail(format_args!("{}: Cannot read: {error}", quoted(path)));
                    0
                }
            };
            if count == 0 {
                let plural = if left == 1 { "" } else { "s" };
                self.report.differ(format_args!(
                    "{}: File shrank by {left} byte{plural}; padding with zeros",
                    quoted(path)
                ));
                self.buffer.fill(0);
                while left > 0 {
                    let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
                    self.put(most)?;
                    left -= most as u64;
                }
                break;
            }
            self.put(count)?;
            left -= count as u64;
        }
        Ok(())
    }

    /// Where a file has something other than zeros, in whole blocks; nothing if there are no holes in it.
    fn pieces_of(&mut self, opened: &Opened, size: u64) -> Result<Option<Vec<(u64, u64)>>, Errno> {
        let (mut map, mut at): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
        while at < size {
            let most = usize::try_from(size - at).unwrap_or(CHUNK).min(CHUNK);
            let count = abi::pread(opened.0, &mut self.buffer[..most], at)?;
            if count == 0 {
                break;
            }
            // A block that was cut short is read again with the next.
            let whole = if count < most { count / BLOCK * BLOCK } else { count };
            for block in self.buffer[..if whole == 0 { count } else { whole }].chunks(BLOCK) {
                let length = block.len() as u64;
                match map.last_mut() {
                    _ if block.iter().all(|&byte| byte == 0) => {}
                    Some((offset, before)) if *offset + *before == at => *before += length,
                    _ => map.push((at, length)),
                }
                at += length;
            }
        }
        let kept: u64 = map.iter().map(|(_, length)| length).sum();
        // A hole at the end is told by a piece of nothing behind it.
        if map.last().is_none_or(|(offset, length)| offset + length < size) {
            map.push((size, 0));
        }
        Ok((kept < size).then_some(map))
    }

    fn put(&mut self, count: usize) -> Result<(), Over> {
        self.writer.put(&self.buffer[..count]).map_err(|error| write_failed(self.options, error.into()))
    }

    fn put_header(&mut self, path: &[u8], stat: &Stat, member: &Member) -> Result<(), Over> {
        if self.try_header(path, stat, member)? && member.kind != Kind::HardLink {
            self.mark_done(path);
        }
        Ok(())
    }

    /// Writes a header; answers whether the format can say it.
    fn try_header(&mut self, path: &[u8], stat: &Stat, member: &Member) -> Result<bool, Over> {
        if self.options.format == Format::Pax {
            let with_fraction = |time: i64| Some(time).filter(|_| self.options.pax_times);
            self.writer.pax = PaxTimes { atime: with_fraction(stat.atime), ctime: with_fraction(stat.ctime) };
        }
        if self.writer.is_link_too_long(member) {
            self.report.fail(format_args!("{}: link name is too long; not dumped", quoted(&member.link)));
        }
        match self.writer.member(member) {
            Err(words) => {
                self.report.fail(format_args!("{}: {words}", quoted(&member.name)));
                return Ok(false);
            }
            Ok(written) => written.map_err(|error| write_failed(self.options, error.into()))?,
        }
        if self.lister.level() > 0 {
            let mut name = if self.options.show_transformed { member.name.clone() } else { path.to_vec() };
            if member.kind == Kind::Directory && !name.ends_with(b"/") {
                name.push(b'/');
            }
            self.lister.show(member, &name, self.lister.level() > 1);
        }
        Ok(true)
    }

    fn member(&mut self, path: &[u8], stat: &Stat, kind: Kind) -> Member {
        let mut member = Member::named(&self.stored_name(path), kind);
        if kind == Kind::Directory && !member.name.ends_with(b"/") {
            member.name.push(b'/');
        }
        let options = self.options;
        member.mode = match &options.mode {
            Some(change) => change.apply(stat.mode, stat.is_dir(), crate::squeeze::umask()),
            _ => stat.mode & 0o7777,
        };
        member.uid = options.owner.id.unwrap_or(u64::from(stat.uid));
        member.gid = options.group.id.unwrap_or(u64::from(stat.gid));
        if !options.numeric {
            let name_of = |names: &Names, id: u32| names.get(id).unwrap_or_default().as_bytes().to_vec();
            member.owner = options.owner.name.clone().unwrap_or_else(|| name_of(&self.users, stat.uid));
            member.group = options.group.name.clone().unwrap_or_else(|| name_of(&self.groups, stat.gid));
        }
        member.mtime = match options.mtime {
            Some(mtime) if !options.clamp || stat.mtime > mtime => mtime,
            _ => stat.mtime,
        };
        member
    }
}
