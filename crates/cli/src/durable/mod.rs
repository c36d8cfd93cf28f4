//! What outlives the command: named sandboxes (`wardian sandbox`), images (`wardian image`), and the store they are in
//! (`wardian store`).

pub(crate) mod image;
pub(crate) mod named;
mod shared;
pub(crate) mod store;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use wardian::{Builder, Limits, Sandbox, Store, StoreKey, StoreOptions};

pub(crate) use self::shared::finish;
use crate::out::remark;
use crate::size;
use crate::state::state_directory;

/// The variable with the store's directory or URL.
const DIRECTORY: &str = "WARDIAN_STORE";
/// The variable with its key.
const KEY: &str = "WARDIAN_STORE_KEY";

/// Which store.
#[derive(clap::Args, Clone)]
pub(crate) struct StoreFlags {
    /// The store's directory, or s3://BUCKET/PREFIX with the credentials in AWS_…; by default $WARDIAN_STORE, or `store` in
    /// Wardian's state directory.
    #[arg(long = "store", value_name = "DIR|URL")]
    place: Option<PathBuf>,
    /// The directory for what is not uploaded to s3://… yet, and for copies of what is; by default in Wardian's state directory.
    #[arg(long = "store-local", value_name = "DIR")]
    local: Option<PathBuf>,
    /// A file with the key of an encrypted store: 32 bytes, or 64 hexadecimal digits. By default the digits in
    /// $WARDIAN_STORE_KEY, if it is set.
    #[arg(long = "store-key", value_name = "FILE")]
    key: Option<PathBuf>,
}

impl StoreFlags {
    /// Those for a directory or a URL.
    pub(crate) fn of(place: PathBuf, local: Option<PathBuf>, key: Option<PathBuf>) -> StoreFlags {
        StoreFlags { place: Some(place), local, key }
    }

    /// Returns whether one was named.
    pub(crate) fn is_given(&self) -> bool {
        self.place.is_some() || self.key.is_some()
    }

    /// Opens it.
    pub(crate) fn open(&self) -> Result<Store> {
        let from_variable =
            || std::env::var_os(DIRECTORY).filter(|value| !value.is_empty()).map(PathBuf::from);
        let by_default = || state_directory().map(|state| state.join("store"));
        let place = self.place.clone().or_else(from_variable).or_else(by_default);
        let place = place.context("no directory for the store: set WARDIAN_STORE, or HOME")?;
        let key = match (&self.key, std::env::var(KEY)) {
            (Some(file), _) => {
                let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
                Some(StoreKey::from_bytes(&bytes)?)
            }
            (None, Ok(digits)) if !digits.is_empty() => Some(StoreKey::from_bytes(digits.as_bytes())?),
            _ => None,
        };
        let options = StoreOptions { key, ..StoreOptions::default() };
        match place.to_str().filter(|place| place.contains("://")) {
            Some(url) => shared::open(url, self.local.as_deref(), options),
            None if self.local.is_some() => bail!("--store-local is for a store in s3://…"),
            None => Ok(Store::open_with(&place, options)?),
        }
        .with_context(|| format!("store {}", place.display()))
    }
}

/// How much there may be in what is exported or imported.
#[derive(clap::Args)]
pub(crate) struct MovingLimits {
    /// Memory of its shell and interpreters together (64M, 2G); 1G by default.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,
    /// Maximum number of files, directories and links; 1,000,000 by default.
    #[arg(long, value_name = "N")]
    files: Option<u64>,
    /// Size of all files together (64M, 1G); 256M by default.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    disk: Option<u64>,
}

impl MovingLimits {
    fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            memory_bytes: self.memory.unwrap_or(usual.memory_bytes),
            file_count: self.files.unwrap_or(usual.file_count),
            fs_bytes: self.disk.unwrap_or(usual.fs_bytes),
            ..usual
        }
    }

    fn builder(&self) -> Builder {
        Sandbox::builder().limits(self.limits())
    }
}

/// The longest file that is imported.
const IMPORTED: u64 = 4 << 30;

/// Waits for something.
fn at_once<T>(work: impl Future<Output = Result<T, wardian::Error>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(work)?)
}

/// Writes a file that does not exist: all of it, or nothing that has its name.
fn write_new(file: &Path, content: &[u8]) -> Result<()> {
    let write = || {
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut new = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
        new.write_all(content)?;
        new.as_file().sync_all()?;
        new.persist_noclobber(file)?;
        std::io::Result::Ok(())
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}

/// Reads a file to import.
fn read(file: &Path) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = || std::fs::File::open(file)?.take(IMPORTED + 1).read_to_end(&mut content);
    let length = { read }().with_context(|| format!("cannot read {}", file.display()))?;
    anyhow::ensure!(length as u64 <= IMPORTED, "{} is longer than {IMPORTED} bytes", file.display());
    Ok(content)
}

/// Says under which name something was imported, if nobody said that it should have it.
fn say_name(is_news: bool, name: &str) {
    if is_news {
        remark!("wardian: imported as {name}");
    }
}

/// Returns a time as `2026-11-18 14:05:09`, in UTC.
pub(crate) fn shown_time(ms: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(ms);
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date_of(days as i64);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Returns how long ago a time was, in the largest unit.
pub(crate) fn shown_age(ms: u64) -> String {
    let age = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_millis(ms)).unwrap_or_default();
    match age.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// Returns year, month and day of a number of days since 1970, in the calendar that repeats every 400 years.
fn date_of(days: i64) -> (i64, i64, i64) {
    // Counted from 1 March of the year 0, so that leap days come last.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let in_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, in_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against `date -u`.
    #[test]
    fn times_are_those_of_date() {
        for seconds in [0, 951_782_400, 1_709_164_800, 1_735_689_599, 4_107_542_399] {
            let out = std::process::Command::new("date")
                .args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%d %H:%M:%S"])
                .output()
                .expect("date runs");
            assert_eq!(shown_time(seconds * 1000), String::from_utf8_lossy(&out.stdout).trim());
        }
    }
}
