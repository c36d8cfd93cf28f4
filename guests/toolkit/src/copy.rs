//! Copying files and trees, for `cp`, `mv` and `install`.

use super::backup::Backup;
use super::out::Out;
use super::{complain, files, quote};
use std::collections::{HashMap, HashSet};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Stat, open_flags as flags};

/// Which symbolic links are looked through.
#[derive(Clone, Copy, PartialEq)]
pub enum Follow {
    Nothing,
    Operands,
    All,
}

/// What happens to a file that is there already.
#[derive(Clone, Copy, PartialEq)]
pub enum Existing {
    Overwrite,
    Ask,
    Keep,
}

/// What a copy is.
#[derive(Clone, Copy, PartialEq)]
pub enum Make {
    Copies,
    HardLinks,
    SymbolicLinks,
}

/// What a copy keeps of its source besides its contents.
#[derive(Clone, Copy, Default)]
pub struct Preserve {
    pub mode: bool,
    pub owner: bool,
    pub times: bool,
    pub links: bool,
    /// The mode is to be as if the file had been made anew.
    pub new_mode: bool,
}

pub struct Copier {
    pub name: &'static str,
    pub follow: Follow,
    pub recursive: bool,
    pub make: Make,
    pub preserve: Preserve,
    pub existing: Existing,
    /// Only over what is older.
    pub update: bool,
    /// Removes what cannot be opened, and tries again.
    pub force: bool,
    pub remove_destination: bool,
    pub attributes_only: bool,
    pub one_system: bool,
    pub verbose: bool,
    pub backup: Backup,
    pub out: Out,
    pub code: i32,
    /// What this run made, which it does not write over.
    made: HashSet<Vec<u8>>,
    /// Where files with several names went.
    links: HashMap<(u64, u64), Vec<u8>>,
    umask: u32,
}

impl Copier {
    pub fn new(name: &'static str) -> Copier {
        let umask = abi::umask(0);
        abi::umask(umask);
        Copier {
            name,
            follow: Follow::All,
            recursive: false,
            make: Make::Copies,
            preserve: Preserve::default(),
            existing: Existing::Overwrite,
            update: false,
            force: false,
            remove_destination: false,
            attributes_only: false,
            one_system: false,
            verbose: false,
            backup: Backup::none(),
            out: Out::new(name),
            code: 0,
            made: HashSet::new(),
            links: HashMap::new(),
            umask,
        }
    }

    /// Says what went wrong, after what was printed before.
    pub fn fail(&mut self, message: impl std::fmt::Display) -> bool {
        self.out.flush();
        complain(self.name, message);
        self.code = 1;
        false
    }

    /// Copies an operand to a path.
    pub fn copy_operand(&mut self, from: &[u8], to: &[u8]) -> bool {
        self.copy(from, to, self.follow != Follow::Nothing, None)
    }

    fn copy(&mut self, from: &[u8], to: &[u8], follow: bool, device: Option<u64>) -> bool {
        let stat = match abi::stat(Dir::CWD, from, follow) {
            Ok(stat) => stat,
            Err(error) => return self.fail(format_args!("cannot stat {}: {error}", quote::always(from))),
        };
        if stat.is_dir() && !self.recursive {
            return self.fail(format_args!("-r not specified; omitting directory {}", quote::always(from)));
        }
        if self.one_system && device.is_some_and(|device| device != stat.dev) {
            return true;
        }
        let there = abi::stat(Dir::CWD, to, false).ok();
        match self.permits(from, &stat, to, there.as_ref()) {
            Some(Permit::Skip) => return true,
            Some(Permit::Refused) | None => return false,
            Some(Permit::Go) => {}
        }
        if stat.is_dir() {
            return self.copy_directory(from, &stat, to, device);
        }
        if there.is_some() && from != to && self.backup.would_destroy(&stat, to) {
            let (from, to) = (quote::always(from), quote::always(to));
            return self.fail(format_args!("backing up {to} might destroy source;  {from} not copied"));
        }
        // A file that is to be copied over itself stays where it is: the backup is the copy.
        if from == to
            && let Some(name) = self.backup.name(to)
        {
            let backup = std::mem::replace(&mut self.backup, Backup::none());
            let copied = self.copy(from, &name, follow, device);
            self.backup = backup;
            return copied;
        }
        let (mut there, backup) = match self.clear(to, there) {
            Ok(cleared) => cleared,
            Err(error) => {
                return self.fail(format_args!("cannot remove {}: {error}", quote::always(to)));
            }
        };
        if self.verbose {
            self.say(from, to, backup.as_deref());
        }
        let made = self.make_one(from, &stat, to, &mut there);
        if made && self.make == Make::Copies {
            self.made.insert(to.to_vec());
            return self.keep_attributes(&stat, to, there.is_none());
        }
        made
    }

    fn say(&mut self, from: &[u8], to: &[u8], backup: Option<&[u8]>) {
        let backup = backup.map_or(String::new(), |name| format!(" (backup: {})", quote::always(name)));
        let line = format!("{} -> {}{backup}\n", quote::always(from), quote::always(to));
        self.out.put(line);
    }

    /// Whether the target may be made; `None` after a complaint.
    fn permits(&mut self, from: &[u8], stat: &Stat, to: &[u8], there: Option<&Stat>) -> Option<Permit> {
        let Some(there) = there else { return Some(Permit::Go) };
        let reached = abi::stat(Dir::CWD, to, true).unwrap_or(*there);
        let same = |other: &Stat| (other.dev, other.ino) == (stat.dev, stat.ino);
        if stat.is_dir() && !reached.is_dir() {
            self.fail(format_args!(
                "cannot overwrite non-directory {} with directory {}",
                quote::always(to),
                quote::always(from)
            ));
            return None;
        }
        if !stat.is_dir() && there.is_dir() {
            self.fail(format_args!("cannot overwrite directory {} with non-directory", quote::always(to)));
            return None;
        }
        if stat.is_dir() {
            return Some(Permit::Go);
        }
        if self.made.contains(to) && !self.backup.is_wanted() {
            self.fail(format_args!(
                "will not overwrite just-created {} with {}",
                quote::always(to),
                quote::always(from)
            ));
            return None;
        }
        let removes = self.remove_destination || self.backup.is_wanted() || self.make != Make::Copies;
        if (same(there) || !removes) && same(&reached) {
            if self.make == Make::HardLinks || (self.remove_destination && from != to && stat.nlink > 1) {
                return Some(Permit::Skip);
            }
            if !(self.backup.is_wanted() && self.force) {
                self.fail(format_args!(
                    "{} and {} are the same file",
                    quote::always(from),
                    quote::always(to)
                ));
                return None;
            }
        }
        if self.update && there.mtime >= stat.mtime {
            return Some(Permit::Skip);
        }
        match self.existing {
            Existing::Overwrite => Some(Permit::Go),
            Existing::Keep => Some(Permit::Skip),
            Existing::Ask => {
                self.out.flush();
                let agreed = is_agreed(self.name, format_args!("overwrite {}? ", quote::always(to)));
                Some(if agreed { Permit::Go } else { Permit::Refused })
            }
        }
    }

    /// Makes room at the target where it may not be written into; answers what is still there, and the backup.
    fn clear(&mut self, to: &[u8], there: Option<Stat>) -> Result<(Option<Stat>, Option<Vec<u8>>), Errno> {
        let Some(there) = there else { return Ok((None, None)) };
        if self.backup.is_wanted() {
            return Ok((None, self.backup.make(to)?));
        }
        let replaces = self.remove_destination || self.make != Make::Copies && self.force;
        if replaces || there.is_symlink() && self.follow == Follow::Nothing && self.recursive {
            std::fs::remove_file(files::path(to))?;
            return Ok((None, None));
        }
        Ok((Some(there), None))
    }

    fn make_one(&mut self, from: &[u8], stat: &Stat, to: &[u8], there: &mut Option<Stat>) -> bool {
        let result = match (self.make, stat.kind()) {
            (Make::HardLinks, _) => std::fs::hard_link(files::path(from), files::path(to)).map_err(|error| {
                let (to, from) = (quote::always(to), quote::always(from));
                format!("cannot create hard link {to} to {from}: {}", Errno::from(error))
            }),
            (Make::SymbolicLinks, _) => abi::symlink(from, Dir::CWD, to).map_err(|error| {
                let (to, from) = (quote::always(to), quote::always(from));
                format!("cannot create symbolic link {to} to {from}: {error}")
            }),
            _ if self.is_linked(stat, to, there) => Ok(()),
            (_, 0o120_000) => self.copy_link(from, to, there),
            (_, 0o010_000) if self.recursive => replace(to, there)
                .and_then(|()| abi::mkfifo(Dir::CWD, to, stat.mode & 0o777 & !self.umask))
                .map_err(|error| format!("cannot create fifo {}: {error}", quote::always(to))),
            _ => self.copy_contents(from, stat, to, there),
        };
        match result {
            Ok(()) => true,
            Err(message) => self.fail(message),
        }
    }

    /// A second name of a file that was copied already becomes a second name of the copy.
    fn is_linked(&mut self, stat: &Stat, to: &[u8], there: &mut Option<Stat>) -> bool {
        if !self.preserve.links || stat.nlink < 2 {
            return false;
        }
        let key = (stat.dev, stat.ino);
        let Some(first) = self.links.get(&key) else {
            self.links.insert(key, to.to_vec());
            return false;
        };
        replace(to, there).is_ok() && std::fs::hard_link(files::path(first), files::path(to)).is_ok()
    }

    fn copy_link(&self, from: &[u8], to: &[u8], there: &mut Option<Stat>) -> Result<(), String> {
        let target = files::link_target(from)
            .map_err(|error| format!("cannot read symbolic link {}: {error}", quote::always(from)))?;
        replace(to, there)
            .and_then(|()| abi::symlink(&target, Dir::CWD, to))
            .map_err(|error| format!("cannot create symbolic link {}: {error}", quote::always(to)))
    }

    fn copy_contents(
        &mut self,
        from: &[u8],
        stat: &Stat,
        to: &[u8],
        there: &mut Option<Stat>,
    ) -> Result<(), String> {
        let input = abi::open(Dir::CWD, from, flags::RDONLY, 0)
            .map_err(|error| format!("cannot open {} for reading: {error}", quote::always(from)))?;
        let output = self.open_target(stat, to, there);
        let copied = output.and_then(|output| {
            let copied = if self.attributes_only { Ok(()) } else { pour(input, output) };
            let closed = abi::close(output);
            copied.and(closed).map_err(|error| {
                format!("error copying {} to {}: {error}", quote::always(from), quote::always(to))
            })
        });
        let _ = abi::close(input);
        copied
    }

    fn open_target(&self, stat: &Stat, to: &[u8], there: &mut Option<Stat>) -> Result<Fd, String> {
        let truncate = if self.attributes_only { 0 } else { flags::TRUNC };
        if there.is_some() {
            match abi::open(Dir::CWD, to, flags::WRONLY | truncate, 0) {
                Ok(fd) => return Ok(fd),
                Err(_) if self.force && std::fs::remove_file(files::path(to)).is_ok() => *there = None,
                Err(Errno::NOENT) if there.is_some_and(|stat| stat.is_symlink()) => {
                    return Err(format!("not writing through dangling symlink {}", quote::always(to)));
                }
                Err(error) => {
                    return Err(format!("cannot create regular file {}: {error}", quote::always(to)));
                }
            }
        }
        // Until its owner is known to be right, others get nothing that they do not get in the end.
        let wanted = if self.preserve.new_mode { 0o666 } else { stat.mode & 0o777 };
        let mode = if self.preserve.owner { wanted & 0o700 } else { wanted };
        abi::open(Dir::CWD, to, flags::WRONLY | flags::CREAT | flags::EXCL, mode).map_err(|error| {
            let error = if error == Errno::ISDIR || to.ends_with(b"/") { Errno::NOTDIR } else { error };
            format!("cannot create regular file {}: {error}", quote::always(to))
        })
    }

    fn keep_attributes(&mut self, stat: &Stat, to: &[u8], is_new: bool) -> bool {
        if self.preserve.times
            && let Err(error) = abi::set_times(Dir::CWD, to, false, Some(stat.atime), Some(stat.mtime))
        {
            return self.fail(format_args!("preserving times for {}: {error}", quote::always(to)));
        }
        if self.preserve.owner {
            // Only root may give files away; the rest keep what they can, silently, as cp does.
            let both = abi::chown(Dir::CWD, to, false, Some(stat.uid), Some(stat.gid));
            if both.is_err() {
                let _ = abi::chown(Dir::CWD, to, false, None, Some(stat.gid));
            }
        }
        let wants_mode = self.preserve.mode || (is_new && self.preserve.owner);
        if wants_mode && !stat.is_symlink() {
            let mask = if self.preserve.mode { 0 } else { self.umask };
            let mode = if self.preserve.new_mode { 0o666 } else { stat.mode & 0o7777 };
            if let Err(error) = abi::chmod(Dir::CWD, to, true, mode & !mask) {
                return self.fail(format_args!("preserving permissions for {}: {error}", quote::always(to)));
            }
        }
        true
    }

    fn copy_directory(&mut self, from: &[u8], stat: &Stat, to: &[u8], device: Option<u64>) -> bool {
        if is_below(stat, to) {
            return self.fail(format_args!(
                "cannot copy a directory, {}, into itself, {}",
                quote::always(from),
                quote::always(to)
            ));
        }
        let is_new = abi::stat(Dir::CWD, to, true).is_err();
        if is_new {
            // Its owner can fill it, whatever it will be.
            if let Err(error) = abi::mkdir(Dir::CWD, to, stat.mode & 0o777 | 0o700) {
                return self.fail(format_args!("cannot create directory {}: {error}", quote::always(to)));
            }
            if self.verbose {
                self.say(from, to, None);
            }
        }
        let names = match files::names_in(from) {
            Ok(names) => names,
            Err(error) => return self.fail(format_args!("cannot access {}: {error}", quote::always(from))),
        };
        let mut all = true;
        for name in names {
            let follow = self.follow == Follow::All;
            let device = device.or(Some(stat.dev));
            all &= self.copy(&files::join(from, &name), &files::join(to, &name), follow, device);
        }
        if is_new && !self.preserve.mode {
            let mode = if self.preserve.new_mode { 0o777 } else { stat.mode & 0o777 };
            let _ = abi::chmod(Dir::CWD, to, true, mode & !self.umask);
        }
        self.keep_attributes(stat, to, false) && all
    }
}

enum Permit {
    Go,
    Skip,
    Refused,
}

/// Asks on standard error; only an answer that begins with `y` is a yes.
pub fn is_agreed(name: &str, question: impl std::fmt::Display) -> bool {
    let _ = abi::write_all(2, format!("{name}: {question}").as_bytes());
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && answer.starts_with(['y', 'Y'])
}

/// Takes away what is there, for something that cannot be written into it.
fn replace(to: &[u8], there: &mut Option<Stat>) -> Result<(), Errno> {
    if there.take().is_some() {
        std::fs::remove_file(files::path(to))?;
    }
    Ok(())
}

/// Whether a path that may not be there yet lies in a directory, or is it.
pub fn is_below(directory: &Stat, path: &[u8]) -> bool {
    let mut above = match std::fs::canonicalize(files::path(path)) {
        Ok(path) => path,
        Err(_) => match std::fs::canonicalize(files::path(&files::parent(path))) {
            Ok(parent) => parent,
            Err(_) => return false,
        },
    };
    loop {
        let stat = abi::stat(Dir::CWD, above.as_os_str().as_encoded_bytes(), true);
        if stat.is_ok_and(|stat| (stat.dev, stat.ino) == (directory.dev, directory.ino)) {
            return true;
        }
        if !above.pop() {
            return false;
        }
    }
}

/// Copies all that can be read.
pub fn pour(input: Fd, output: Fd) -> Result<(), Errno> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match abi::read(input, &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => abi::write_all(output, &buffer[..count])?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}
