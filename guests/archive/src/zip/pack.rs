//! `zip`.

use super::content::{self, Section};
use super::format::{self, DEFLATED, Entry, STORED, STREAMED};
use super::list::shown;
use super::percent;
use crate::codec::gzip::Deflate;
use crate::squeeze::{Opened, Product, say, umask};
use crate::stream::{CHUNK, Counted, Input, Raw};
use flate2::Crc;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::rc::Rc;
use toolkit::args::bytes_of;
use toolkit::out::Out;
use toolkit::{Arguments, files, glob};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Stat};

mod arguments;

const HELP: &str = "\
Usage: zip [OPTION]... ARCHIVE[.zip] [FILE]... [-x NAME...] [-i NAME...]
Puts files into an archive, in place of those of the same name. - as a FILE is
standard input, - as the ARCHIVE standard output.

  -0, -1 .. -9  store as it is; pack quickly .. pack small
  -@            names of files from standard input
  -d            take files out of the archive
  -D            no entries for directories
  -f, -u        only files newer than in the archive; -u also new ones
  -FS           make the archive what the files are: also take out what is gone
  -j            without the directories of names
  -m            remove the files afterwards
  -q, -v        fewer messages, more messages
  -r            all files below directories
  -sf           show what is in the archive
  -T            see whether everything can be taken out again
  -x, -i NAME   not these; only these
  -X            without times beyond the usual, owners and the like
  -y            links as links
  -h            this text
";

#[derive(Clone, Copy, PartialEq)]
enum Act {
    Add,
    Update,
    Freshen,
    Sync,
    Delete,
    ShowFiles,
}

struct Job {
    act: Act,
    archive: Vec<u8>,
    names: Vec<Vec<u8>>,
    recursive: bool,
    junk_paths: bool,
    links: bool,
    no_directories: bool,
    no_extra: bool,
    quiet: bool,
    verbose: bool,
    moves: bool,
    test: bool,
    level: u32,
    names_from_stdin: bool,
    excludes: Vec<Vec<u8>>,
    includes: Vec<Vec<u8>>,
    /// What ends so is not packed.
    stored: Vec<Vec<u8>>,
    /// The archive gets the time of its latest entry.
    as_old_as_latest: bool,
    /// Where the archive is to be written first.
    temporary: Option<Vec<u8>>,
    code: i32,
}

/// Something to be put into the archive.
struct Found {
    name: Vec<u8>,
    /// Nothing for standard input.
    path: Option<Vec<u8>>,
    stat: Stat,
}

/// The codes with which zip ends.
const NOT_A_ZIP: i32 = 3;
const NO_TEMPORARY: i32 = 10;
const NOTHING_TO_DO: i32 = 12;
const CANNOT_CREATE: i32 = 15;
const MISUSE: i32 = 16;
const CANNOT_OPEN: i32 = 18;

pub fn main(arguments: Arguments) -> i32 {
    match Job::parse(bytes_of(arguments)) {
        Ok(mut job) => job.run().unwrap_or_else(|code| code),
        Err(code) => code,
    }
}

fn error(code: i32, words: &str, detail: &[u8]) -> i32 {
    say(format!("\nzip error: {words} ({})\n", shown(detail)));
    code
}

impl Job {
    fn run(&mut self) -> Result<i32, i32> {
        let old = self.read_old()?;
        match self.act {
            Act::Delete => return self.delete(old),
            Act::ShowFiles => return Ok(show_files(&old)),
            _ => {}
        }
        let (found, unmatched) = self.find_files(&old);
        for name in &unmatched {
            say(format!("\tzip warning: name not matched: {}\n", shown(name)));
        }
        let plan = self.plan(found, &old);
        let syncs = self.act == Act::Sync;
        let removed: HashSet<Vec<u8>> = if syncs { self.missing(&plan, &old) } else { HashSet::new() };
        let works: Vec<&(Found, bool)> = plan.iter().filter(|(_, wanted)| *wanted).collect();
        if works.is_empty() && removed.is_empty() {
            if self.test && unmatched.is_empty() && !old.is_empty() {
                return self.test_archive();
            }
            if matches!(self.act, Act::Update | Act::Freshen) && !plan.is_empty() {
                return Ok(NOTHING_TO_DO);
            }
            if syncs && !plan.is_empty() {
                return Ok(self.code);
            }
            return Err(error(NOTHING_TO_DO, "Nothing to do!", &self.archive));
        }
        self.write(&old, &works, &removed)?;
        if self.test {
            self.test_archive()?;
        }
        if self.moves {
            remove_all(works.iter().map(|(found, _)| found));
        }
        Ok(self.code)
    }

    fn to_stdout(&self) -> bool {
        self.archive == b"-"
    }

    fn read_old(&self) -> Result<Vec<Entry>, i32> {
        if self.to_stdout() {
            return Ok(Vec::new());
        }
        let opened = match Opened::read(&self.archive) {
            Ok(opened) => opened,
            Err(_) => {
                if matches!(self.act, Act::Delete | Act::Freshen | Act::ShowFiles) {
                    say(format!("\tzip warning: {} not found or empty\n", shown(&self.archive)));
                }
                return Ok(Vec::new());
            }
        };
        if abi::fstat(opened.0).is_ok_and(|stat| stat.size == 0) {
            return Ok(Vec::new());
        }
        match format::read(opened.0) {
            Ok(directory) => Ok(directory.entries),
            Err(_) => {
                say(
                    "\tzip warning: missing end signature--probably not a zip file (did you\n\tzip warning: remember to use binary mode when you transferred it?)\n\tzip warning: (if you are trying to read a damaged archive try -F)\n",
                );
                Err(error(NOT_A_ZIP, "Zip file structure invalid", &self.archive))
            }
        }
    }

    /// The files that the names mean, and the names that mean none.
    fn find_files(&mut self, old: &[Entry]) -> (Vec<Found>, Vec<Vec<u8>>) {
        let mut names = std::mem::take(&mut self.names);
        if self.names_from_stdin {
            let list = files::read_fd(0).unwrap_or_default();
            names.extend(
                list.split(|&byte| byte == b'\n').filter(|name| !name.is_empty()).map(<[u8]>::to_vec),
            );
        }
        // Without names, what the archive has is meant.
        if names.is_empty() && matches!(self.act, Act::Update | Act::Freshen) {
            names = old.iter().map(|entry| entry.name.clone()).collect();
        }
        let archive = abi::stat(Dir::CWD, &self.archive, true).ok().map(|stat| (stat.dev, stat.ino));
        let (mut found, mut unmatched, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for name in names {
            if name == b"-" {
                let stat = Stat {
                    mode: 0o010_600,
                    mtime: toolkit::clock::now(),
                    ..abi::fstat(0).unwrap_or_default()
                };
                found.push(Found { name, path: None, stat: Stat { mode: 0o010_600, ..stat } });
                continue;
            }
            let before = found.len();
            let is_there = self.add(&name, archive, &mut found, &mut seen);
            if !is_there && before == found.len() {
                unmatched.push(name);
            }
        }
        (found, unmatched)
    }

    /// Adds a file, and with `-r` what is below it. Answers whether it is there.
    fn add(
        &self,
        path: &[u8],
        archive: Option<(u64, u64)>,
        found: &mut Vec<Found>,
        seen: &mut HashSet<Vec<u8>>,
    ) -> bool {
        let Ok(stat) = abi::stat(Dir::CWD, path, !self.links) else { return false };
        if archive == Some((stat.dev, stat.ino)) {
            return true;
        }
        let mut name = self.name_of(path);
        if stat.is_dir() {
            if !name.is_empty() && !name.ends_with(b"/") {
                name.push(b'/');
            }
            let is_named = !self.no_directories && !self.junk_paths && !name.is_empty() && name != b"./";
            if is_named && self.is_included(&name) && seen.insert(name.clone()) {
                found.push(Found { name, path: Some(path.to_vec()), stat });
            }
            if self.recursive {
                let mut names = files::names_in(path).unwrap_or_default();
                names.sort();
                for name in names {
                    self.add(&files::join(path, &name), archive, found, seen);
                }
            }
            return true;
        }
        if (stat.is_file() || stat.is_symlink()) && self.is_included(&name) && seen.insert(name.clone()) {
            found.push(Found { name, path: Some(path.to_vec()), stat });
        }
        true
    }

    /// What a file is called in the archive: no way there from the root.
    fn name_of(&self, path: &[u8]) -> Vec<u8> {
        if self.junk_paths {
            return files::base_name(path).to_vec();
        }
        let mut rest = path;
        loop {
            rest = match rest {
                [b'/', after @ ..] | [b'.', b'/', after @ ..] => after,
                b"." => b"",
                rest => return rest.to_vec(),
            };
        }
    }

    fn is_included(&self, name: &[u8]) -> bool {
        let any = |patterns: &[Vec<u8>]| patterns.iter().any(|pattern| glob::matches(pattern, name, false));
        (self.includes.is_empty() || any(&self.includes)) && !any(&self.excludes)
    }

    /// Which of the files have to be put into the archive.
    fn plan(&self, found: Vec<Found>, old: &[Entry]) -> Vec<(Found, bool)> {
        let known: HashMap<&[u8], &Entry> = old.iter().map(|entry| (entry.name.as_slice(), entry)).collect();
        let is_wanted = |found: &Found| {
            let entry = known.get(found.name.as_slice());
            let seconds = found.stat.mtime.div_euclid(1_000_000_000);
            match (self.act, entry) {
                (Act::Freshen, None) => false,
                (Act::Update | Act::Freshen, Some(entry)) => seconds > entry.mtime,
                (Act::Sync, Some(entry)) => {
                    seconds != entry.mtime || !entry.is_dir() && found.stat.size != entry.unpacked
                }
                _ => true,
            }
        };
        found
            .into_iter()
            .map(|found| {
                let wanted = is_wanted(&found);
                (found, wanted)
            })
            .collect()
    }

    /// With `-FS`, what the archive has and the files do not.
    fn missing(&self, plan: &[(Found, bool)], old: &[Entry]) -> HashSet<Vec<u8>> {
        let there: HashSet<&[u8]> = plan.iter().map(|(found, _)| found.name.as_slice()).collect();
        old.iter()
            .filter(|entry| !there.contains(entry.name.as_slice()))
            .map(|entry| entry.name.clone())
            .collect()
    }

    fn delete(&mut self, old: Vec<Entry>) -> Result<i32, i32> {
        let mut unmatched = Vec::new();
        let mut removed = HashSet::new();
        for pattern in &self.names {
            let before = removed.len();
            removed.extend(
                old.iter()
                    .filter(|entry| glob::matches(pattern, &entry.name, false))
                    .map(|entry| entry.name.clone()),
            );
            if before == removed.len() {
                unmatched.push(pattern.clone());
            }
        }
        for name in &unmatched {
            say(format!("\tzip warning: name not matched: {}\n", shown(name)));
        }
        if removed.is_empty() {
            return Err(error(NOTHING_TO_DO, "Nothing to do!", &self.archive));
        }
        self.write(&old, &[], &removed)?;
        Ok(self.code)
    }

    /// Writes the archive anew, beside the old one, and puts it in its place.
    fn write(
        &mut self,
        old: &[Entry],
        works: &[&(Found, bool)],
        removed: &HashSet<Vec<u8>>,
    ) -> Result<(), i32> {
        let before = abi::stat(Dir::CWD, &self.archive, true).ok();
        let source = Opened::read(&self.archive).ok();
        if let Some(directory) = &self.temporary
            && let Err(cause) = abi::stat(Dir::CWD, directory, true).and_then(|stat| match stat.is_dir() {
                true => abi::access(Dir::CWD, directory, 2),
                false => Err(Errno::NOTDIR),
            })
        {
            say(format!("zip I/O error: {cause}"));
            return Err(error(
                NO_TEMPORARY,
                "Temporary file failure",
                &toolkit::files::join(directory, b"zi"),
            ));
        }
        let temporary = [self.archive.as_slice(), format!(".zi{:x}", abi::getpid()).as_bytes()].concat();
        let product = match self.to_stdout() {
            true => None,
            false => Some(Product::create(&temporary).map_err(|cause| {
                say(format!("zip I/O error: {cause}"));
                error(CANNOT_CREATE, "Could not create output file", &self.archive)
            })?),
        };
        let mut writer = Writer {
            fd: product.as_ref().map_or(1, |product| product.writer().0),
            at: 0,
            streams: self.to_stdout(),
            level: self.level,
            stored: self.stored.clone(),
            entries: Vec::new(),
        };
        self.write_entries(&mut writer, source.as_ref(), old, works, removed)?;
        let count = writer.entries.len();
        let latest = writer.entries.iter().map(|entry| entry.mtime).max();
        writer.finish().map_err(|cause| self.output_failed(cause))?;
        let Some(product) = product else { return Ok(()) };
        if count == 0 && !self.quiet {
            say("\tzip warning: zip file empty\n");
        }
        let mode = before.map_or(0o666 & !umask(), |stat| stat.mode & 0o777);
        product
            .finish_plainly(mode)
            .and_then(|()| abi::rename(Dir::CWD, &temporary, Dir::CWD, &self.archive))
            .map_err(|cause| self.output_failed(cause.into()))?;
        match latest.filter(|_| self.as_old_as_latest) {
            Some(latest) => {
                let time = Some(latest.saturating_mul(1_000_000_000));
                abi::set_times(Dir::CWD, &self.archive, true, time, time)
                    .map_err(|cause| self.output_failed(cause.into()))
            }
            None => {
                if self.as_old_as_latest {
                    say("\tzip warning: zip file is empty, can't make it as old as latest entry\n");
                }
                Ok(())
            }
        }
    }

    fn output_failed(&self, cause: io::Error) -> i32 {
        say(format!("zip I/O error: {}", Errno::from(cause)));
        error(14, "Output file write failure", &self.archive)
    }

    fn write_entries(
        &mut self,
        writer: &mut Writer,
        source: Option<&Opened>,
        old: &[Entry],
        works: &[&(Found, bool)],
        removed: &HashSet<Vec<u8>>,
    ) -> Result<(), i32> {
        let new: HashMap<&[u8], &Found> =
            works.iter().map(|(found, _)| (found.name.as_slice(), found)).collect();
        let known: HashSet<&[u8]> = old.iter().map(|entry| entry.name.as_slice()).collect();
        for entry in old {
            if removed.contains(&entry.name) {
                self.tell(format!("deleting: {}\n", shown(&entry.name)));
            } else if let Some(found) = new.get(entry.name.as_slice()) {
                let verb = if self.act == Act::Freshen { "freshening" } else { "updating" };
                self.write_one(writer, verb, found)?;
            } else if let Some(source) = source {
                writer.copy(source.0, entry).map_err(|cause| self.output_failed(cause))?;
            }
        }
        for (found, _) in works.iter().filter(|(found, _)| !known.contains(found.name.as_slice())) {
            self.write_one(writer, "  adding", found)?;
        }
        if self.verbose && !works.is_empty() {
            let sum = |size: fn(&Entry) -> u64| writer.entries.iter().map(size).sum::<u64>();
            let (unpacked, packed) = (sum(|entry| entry.unpacked), sum(|entry| entry.packed));
            let saved = percent(unpacked, packed);
            self.tell(format!("total bytes={unpacked}, compressed={packed} -> {saved}% savings\n"));
        }
        Ok(())
    }

    fn tell(&self, text: String) {
        if self.quiet {
            return;
        }
        let fd = if self.to_stdout() { 2 } else { 1 };
        // Who does not listen is still given the archive.
        let _ = abi::write_all(fd, text.as_bytes());
    }

    fn write_one(&mut self, writer: &mut Writer, verb: &str, found: &Found) -> Result<(), i32> {
        let mut entry = Entry::made_here(found.name.clone(), found.stat.mode);
        entry.mtime = found.stat.mtime.div_euclid(1_000_000_000);
        entry.atime = found.stat.atime.div_euclid(1_000_000_000);
        entry.owner = Some((found.stat.uid, found.stat.gid));
        entry.has_extra = !self.no_extra;
        let opened = match &found.path {
            Some(path) if found.stat.is_file() => match Opened::read(path) {
                Ok(opened) => Some(opened),
                Err(cause) => {
                    say(format!(
                        "\tzip warning: could not open for reading: {}\n\tzip warning: {cause}\n",
                        shown(path)
                    ));
                    self.code = CANNOT_OPEN;
                    return Ok(());
                }
            },
            _ => None,
        };
        let written = match (&found.path, &opened) {
            (None, _) => writer.pack(entry, Input::of(0), None, 0),
            (Some(_), Some(opened)) => {
                writer.pack(entry, Input::of(opened.0), Some(opened.0), found.stat.size)
            }
            (Some(path), None) if found.stat.is_symlink() => {
                let target = abi::readlink(Dir::CWD, path).unwrap_or_default();
                writer.store(entry, &target)
            }
            _ => writer.store(entry, &[]),
        };
        let entry = written.map_err(|cause| self.output_failed(cause))?;
        let how = if entry.method == STORED { "stored" } else { "deflated" };
        let (name, saved) = (shown(&entry.name), percent(entry.unpacked, entry.packed));
        self.tell(match self.verbose {
            true => {
                format!("{verb}: {name}\t(in={}) (out={}) ({how} {saved}%)\n", entry.unpacked, entry.packed)
            }
            false => format!("{verb}: {name} ({how} {saved}%)\n"),
        });
        writer.entries.push(entry);
        Ok(())
    }

    fn test_archive(&self) -> Result<i32, i32> {
        let opened = Opened::read(&self.archive)
            .map_err(|_| error(NOT_A_ZIP, "Zip file structure invalid", &self.archive))?;
        let directory = format::read(opened.0)
            .map_err(|_| error(NOT_A_ZIP, "Zip file structure invalid", &self.archive))?;
        for entry in directory.entries.iter().filter(|entry| !entry.is_encrypted()) {
            if content::copy(opened.0, entry, None).is_err() {
                self.tell(format!("test of {} FAILED\n", shown(&self.archive)));
                return Err(error(
                    8,
                    "Zip file invalid, could not spawn unzip, or wrong unzip",
                    b"original files unmodified",
                ));
            }
        }
        self.tell(format!("test of {} OK\n", shown(&self.archive)));
        Ok(self.code)
    }
}

fn show_files(old: &[Entry]) -> i32 {
    let mut out = Out::new("zip");
    out.put("Archive contains:\n");
    for entry in old {
        out.put(format!("  {}\n", shown(&entry.name)));
    }
    let total: u64 = old.iter().map(|entry| entry.unpacked).sum();
    out.put(format!("Total {} entries ({total} bytes)\n", old.len()));
    0
}

/// Removes what is in the archive now, directories last.
fn remove_all<'a>(found: impl Iterator<Item = &'a Found>) {
    let mut directories = Vec::new();
    for found in found {
        let Some(path) = &found.path else { continue };
        if found.stat.is_dir() {
            directories.push(path);
        } else if let Err(cause) = abi::unlink(Dir::CWD, path) {
            say(format!("\tzip warning: {}: {cause}\n", shown(path)));
        }
    }
    for path in directories.into_iter().rev() {
        // One that still has something in it stays.
        let _ = abi::rmdir(Dir::CWD, path);
    }
}

/// An archive being written.
struct Writer {
    fd: Fd,
    at: u64,
    /// Whether what was written cannot be changed any more.
    streams: bool,
    level: u32,
    stored: Vec<Vec<u8>>,
    entries: Vec<Entry>,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        abi::write_all(self.fd, bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Takes an entry over from another archive, as it is.
    fn copy(&mut self, from: Fd, old: &Entry) -> io::Result<()> {
        let at = format::content_at(from, old).map_err(|_| io::Error::from(Errno::IO))?;
        let mut entry = old.clone();
        entry.offset = self.at;
        // The first bytes of what is encrypted depend on it.
        let keeps_descriptor = entry.is_encrypted() && entry.flags & STREAMED != 0;
        if !keeps_descriptor {
            entry.flags &= !STREAMED;
        }
        self.put(&entry.local())?;
        let mut section = Section { fd: from, at, left: entry.packed };
        self.pour(&mut section)?;
        if keeps_descriptor {
            self.put(&entry.descriptor())?;
        }
        self.entries.push(entry);
        Ok(())
    }

    fn pour(&mut self, source: &mut dyn Read) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        loop {
            match source.read(&mut buffer)? {
                0 => return Ok(()),
                count => self.put(&buffer[..count])?,
            }
        }
    }

    /// Stores a few bytes that are known.
    fn store(&mut self, mut entry: Entry, content: &[u8]) -> io::Result<Entry> {
        let mut crc = Crc::new();
        crc.update(content);
        (entry.crc, entry.packed, entry.unpacked) = (crc.sum(), content.len() as u64, content.len() as u64);
        entry.offset = self.at;
        self.put(&entry.local())?;
        self.put(content)?;
        Ok(entry)
    }

    /// Compresses a file, or stores it where that makes it no smaller and it can be read again.
    fn pack(
        &mut self,
        mut entry: Entry,
        mut input: Input,
        again: Option<Fd>,
        size: u64,
    ) -> io::Result<Entry> {
        entry.offset = self.at;
        entry.large = again.is_none() || size >= 0xf000_0000;
        let is_packed = self.stored.iter().any(|suffix| entry.name.ends_with(suffix));
        let stays = self.level == 0 || is_packed || size == 0 && again.is_some();
        entry.method = if stays { STORED } else { DEFLATED };
        if entry.method == DEFLATED {
            entry.flags = match self.level {
                1 | 2 => 4,
                8 | 9 => 2,
                _ => 0,
            };
        }
        if self.streams {
            entry.flags |= STREAMED;
        }
        let header = entry.local();
        self.put(&header)?;
        let content_at = self.at;
        self.put_content(&mut entry, &mut input)?;
        entry.packed = self.at - content_at;
        let is_worse = entry.method == DEFLATED && entry.packed >= entry.unpacked;
        if let Some(fd) = again.filter(|_| is_worse && !self.streams) {
            abi::seek(fd, 0, abi::Whence::Start)?;
            abi::seek(self.fd, content_at as i64, abi::Whence::Start)?;
            abi::truncate(self.fd, content_at)?;
            self.at = content_at;
            (entry.method, entry.flags) = (STORED, 0);
            self.put_content(&mut entry, &mut Input::of(fd))?;
            entry.packed = self.at - content_at;
        }
        if self.streams {
            self.put(&entry.descriptor())?;
        } else {
            let mut header = entry.local();
            let mut at = entry.offset;
            while !header.is_empty() {
                let count = abi::pwrite(self.fd, &header, at)?;
                header.drain(..count);
                at += count as u64;
            }
        }
        Ok(entry)
    }

    fn put_content(&mut self, entry: &mut Entry, input: &mut Input) -> io::Result<()> {
        let count = Rc::new(Cell::new(0));
        let mut sink = Counted { inner: Raw(self.fd), count: count.clone() };
        let mut deflate = (entry.method == DEFLATED).then(|| Deflate::new(self.level));
        let (mut crc, mut total) = (Crc::new(), 0u64);
        let mut buffer = vec![0; CHUNK];
        loop {
            let length = input.read(&mut buffer)?;
            if length == 0 {
                break;
            }
            if total == 0 && self.level > 0 {
                entry.is_text = is_text(&buffer[..length]);
            }
            total += length as u64;
            crc.update(&buffer[..length]);
            match &mut deflate {
                Some(deflate) => deflate.write(&buffer[..length], &mut sink)?,
                None => sink.write_all(&buffer[..length])?,
            }
        }
        if let Some(deflate) = &mut deflate {
            deflate.finish(&mut sink)?;
        }
        self.at += count.get();
        (entry.crc, entry.unpacked) = (crc.sum(), total);
        Ok(())
    }

    /// Writes the directory.
    fn finish(&mut self) -> io::Result<()> {
        let start = self.at;
        let records: Vec<u8> = self.entries.iter().flat_map(Entry::central).collect();
        self.put(&records)?;
        let end = format::end(self.entries.len() as u64, start, records.len() as u64, &[]);
        self.put(&end)
    }
}

/// Whether bytes look like text, as zip decides it.
fn is_text(bytes: &[u8]) -> bool {
    let is_bad = |byte: &u8| matches!(byte, 0..=6 | 14..=25 | 28..=31);
    let is_good = |byte: &u8| matches!(byte, 9 | 10 | 13 | 32..);
    !bytes.iter().any(is_bad) && bytes.iter().any(is_good)
}
