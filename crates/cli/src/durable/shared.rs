//! Stores in an object store: where their local part is, and what is uploaded before a command ends.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use wardian::{Store, StoreOptions};

use crate::out::remark;
use crate::state::state_directory;

/// How long the end of a command waits for uploads, and how often it looks whether that makes sense.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(500);

/// Those that this command has opened.
static OPENED: Mutex<Vec<Store>> = Mutex::new(Vec::new());

/// Opens the store of a URL.
pub(super) fn open(url: &str, local: Option<&Path>, options: StoreOptions) -> Result<Store> {
    let directory = match local {
        Some(local) => local.to_owned(),
        None => {
            let state = state_directory()
                .context("no directory for the local part: give --store-local, or set HOME")?;
            // Names of buckets and prefixes have no comma.
            let name = url.trim_end_matches('/').replace("://", ",").replace('/', ",");
            state.join("object-stores").join(name)
        }
    };
    let store = Store::object_store(url, directory, options)?;
    OPENED.lock().push(store.clone());
    Ok(store)
}

/// Waits until what the command has saved is uploaded, or says that it is not. It is saved on this machine in any case.
pub(crate) fn finish() {
    for store in std::mem::take(&mut *OPENED.lock()) {
        let began = Instant::now();
        while let Err(error) = store.flush(Some(LOOK)) {
            let has_failed = store.pending().is_ok_and(|waiting| waiting.error.is_some());
            if has_failed || began.elapsed() >= PATIENCE {
                remark!("wardian: {error}; saved on this machine: `wardian store flush` tries again");
                break;
            }
        }
    }
}
