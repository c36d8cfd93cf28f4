//! One file of a listing, and the order of files.

use super::options::{Options, Order, Time};
use std::cmp::Ordering;
use toolkit::files;
use wardian_abi as abi;
use wardian_abi::{Dir, Stat};

pub struct Entry {
    pub name: Vec<u8>,
    /// How to reach it from here.
    pub path: Vec<u8>,
    /// `None` when it could not be asked for.
    pub stat: Option<Stat>,
    pub target: Option<Target>,
    pub time: i64,
}

/// Where a symbolic link points, and what is there.
pub struct Target {
    pub name: Vec<u8>,
    pub stat: Option<Stat>,
}

impl Entry {
    pub fn new(name: Vec<u8>, path: Vec<u8>, stat: Option<Stat>, options: &Options) -> Entry {
        let is_link = stat.is_some_and(|stat| stat.is_symlink());
        let wants_target = options.format == super::options::Format::Long || options.color;
        let target = (is_link && wants_target).then(|| Target {
            name: files::link_target(&path).unwrap_or_default(),
            stat: abi::stat(Dir::CWD, &path, true).ok(),
        });
        let time = stat.map_or(0, |stat| match options.time {
            Time::Modified => stat.mtime,
            Time::Accessed => stat.atime,
            Time::Changed => stat.ctime,
        });
        Entry { name, path, stat, target, time }
    }

    pub fn is_dir(&self) -> bool {
        self.stat.is_some_and(|stat| stat.is_dir())
    }

    pub fn blocks(&self) -> u64 {
        self.stat.map_or(0, |stat| stat.blocks)
    }

    fn size(&self) -> u64 {
        self.stat.map_or(0, |stat| stat.size)
    }

    fn leads_to_dir(&self) -> bool {
        self.is_dir() || self.target.as_ref().and_then(|target| target.stat).is_some_and(|stat| stat.is_dir())
    }
}

/// How many columns a name takes on the screen.
fn width(name: &[u8]) -> usize {
    unicode_width::UnicodeWidthStr::width(&*String::from_utf8_lossy(name))
}

pub fn sort(entries: &mut [Entry], options: &Options) {
    if options.order == Order::Directory {
        return;
    }
    entries.sort_by(|left, right| {
        let groups = options.directories_first.then(|| right.leads_to_dir().cmp(&left.leads_to_dir()));
        let by_name = || left.name.cmp(&right.name);
        let order = match options.order {
            Order::Size => right.size().cmp(&left.size()).then_with(by_name),
            Order::Time => right.time.cmp(&left.time).then_with(by_name),
            Order::Extension => extension(&left.name).cmp(extension(&right.name)).then_with(by_name),
            Order::Width => width(&left.name).cmp(&width(&right.name)).then_with(by_name),
            Order::Version => toolkit::version::compare(&left.name, &right.name).then_with(by_name),
            Order::Name | Order::Directory => by_name(),
        };
        groups.unwrap_or(Ordering::Equal).then(if options.reverse { order.reverse() } else { order })
    });
}

fn extension(name: &[u8]) -> &[u8] {
    name.iter().rposition(|&byte| byte == b'.').map_or(b"", |dot| &name[dot..])
}
