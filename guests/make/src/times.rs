//! When files were changed, and where they are.

use wardian_abi::{self as abi, Dir};

use crate::make::{Make, Res};
use crate::rules::FileId;
use crate::text;

/// The time of a file that was just made but does not exist: later than all others.
pub const NEW: i64 = i64::MAX;
/// The time of a file that is taken to be old.
pub const OLD: i64 = i64::MIN;

/// The time, as files have it.
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

fn time_of(path: &[u8]) -> Option<i64> {
    abi::stat(Dir::CWD, path, true).ok().map(|stat| stat.mtime)
}

impl Make {
    /// When a file was changed; `None` if it does not exist.
    pub fn time(&mut self, id: FileId) -> Res<Option<i64>> {
        if let Some(time) = self.files[id].time {
            return Ok(time);
        }
        let name = self.files[id].name.clone();
        let mut time = time_of(&name);
        if time.is_none() && !self.files[id].phony {
            self.files[id].found_at = self.search(&name)?;
            time = self.files[id].found_at.as_ref().and_then(|path| time_of(path));
        }
        self.notice_skew(&name, time);
        if self.options.new_files.contains(&name) {
            time = Some(NEW);
        } else if self.options.old_files.contains(&name) {
            time = Some(OLD);
        }
        self.files[id].time = Some(time);
        Ok(time)
    }

    /// Says that a file is from the future: what was made from it looks older than it is.
    fn notice_skew(&mut self, name: &[u8], time: Option<i64>) {
        let ahead = time.map_or(0, |time| time.saturating_sub(now()));
        if ahead <= 0 {
            return;
        }
        let seconds = ahead as f64 / 1e9;
        let seconds = match seconds {
            99.0.. => format!("{seconds:.0}"),
            10.0.. => format!("{seconds:.0}"),
            1.0.. => format!("{seconds:.1}"),
            _ => format!("{seconds:.2}"),
        };
        let name = text::shown(name);
        self.complain(&format!("Warning: File '{name}' has modification time {seconds} s in the future"));
        self.clock_skew = true;
    }

    /// Whether a name is a file, here or on a search path.
    pub fn exists(&mut self, name: &[u8]) -> bool {
        time_of(name).is_some() || self.search(name).is_ok_and(|found| found.is_some())
    }

    /// Looks for a file where `vpath` and `VPATH` say, and for `-lNAME` where libraries are.
    fn search(&mut self, name: &[u8]) -> Res<Option<Vec<u8>>> {
        if name.starts_with(b"/") {
            return Ok(None);
        }
        let mut directories: Vec<Vec<u8>> = Vec::new();
        for (pattern, more) in &self.search_paths {
            if pattern.stem(name).is_some() {
                directories.extend(more.iter().cloned());
            }
        }
        let general = match self.globals.contains_key(&b"VPATH"[..]) {
            true => self.value(b"VPATH")?,
            false => Vec::new(),
        };
        let general = general.split(|&byte| byte == b':' || text::is_blank(byte));
        directories.extend(general.filter(|directory| !directory.is_empty()).map(<[u8]>::to_vec));
        let paths = directories.iter().map(|directory| toolkit::files::join(directory, name));
        Ok(paths.into_iter().find(|path| time_of(path).is_some()))
    }

    /// The path of a file as recipes see it.
    pub fn path(&self, id: FileId) -> &[u8] {
        let file = &self.files[id];
        file.found_at.as_deref().unwrap_or(&file.name)
    }
}
