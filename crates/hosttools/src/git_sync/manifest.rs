//! The contents of a snapshot: `manifest.json` next to its files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::SyncError;
use super::workshop::Entry;

/// The contents of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Manifest {
    /// The version of this format.
    pub version: u32,
    /// The user's commit at the time, if there was one.
    pub head: Option<String>,
    /// The requested paths.
    pub paths: Vec<String>,
    /// The files found.
    pub files: Vec<ManifestFile>,
    /// What was requested but is not in the snapshot: pipes, sockets, devices.
    pub skipped: Vec<String>,
}

/// One file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ManifestFile {
    /// Its path. Bytes that are not UTF-8 are shown as U+FFFD; the tree has the original bytes.
    pub path: String,
    /// Its mode in git: 100644, 100755, 120000.
    pub mode: String,
    /// Its size in bytes.
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
