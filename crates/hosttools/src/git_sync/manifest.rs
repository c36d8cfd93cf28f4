//! What a snapshot holds, in words: `manifest.json` beside its files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::SyncError;
use super::workshop::Entry;

/// What a snapshot holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The version of this format.
    pub version: u32,
    /// The user's commit at the time, if there was one.
    pub head: Option<String>,
    /// What was asked for.
    pub paths: Vec<String>,
    /// What was found.
    pub files: Vec<ManifestFile>,
    /// What is not in the snapshot though it was asked for: pipes, sockets, devices.
    pub skipped: Vec<String>,
}

/// One file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Its path. Where it is not UTF-8, bytes that are not are shown as U+FFFD; the tree has them as they are.
    pub path: String,
    /// As git has it: 100644, 100755, 120000.
    pub mode: String,
    /// In bytes.
    pub size: u64,
    /// The blob of its contents.
    pub object: String,
}

impl Manifest {
    pub(super) fn of(
        paths: &[PathBuf],
        head: Option<String>,
        entries: &[Entry],
        skipped: &[PathBuf],
    ) -> Manifest {
        let names =
            |paths: &[PathBuf]| paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let file = |entry: &Entry| ManifestFile {
            path: String::from_utf8_lossy(&entry.path).into_owned(),
            mode: entry.mode.clone(),
            size: entry.size,
            object: entry.object.clone(),
        };
        Manifest {
            version: 1,
            head,
            paths: names(paths),
            files: entries.iter().map(file).collect(),
            skipped: names(skipped),
        }
    }

    pub(super) fn to_json(&self) -> Result<Vec<u8>, SyncError> {
        let mut text = serde_json::to_vec_pretty(self).map_err(std::io::Error::from)?;
        text.push(b'\n');
        Ok(text)
    }
}
