//! The state directory: whole sandboxes as files, each client's in a directory of its own. What all of them take has one
//! limit, since nobody can be kept from being several clients.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;
use tempfile::NamedTempFile;

use crate::rpc::RpcError;
use crate::tenant::{Tenant, create_private, tenants};

/// The most states that the directory may have.
const STATES_MAX: usize = 10_000;

/// Where a server keeps the states of its clients.
pub(crate) struct StateDirectory {
    path: PathBuf,
    /// How many bytes all of them may have.
    max_bytes: u64,
    /// Held from checking whether there is room until it is used.
    writing: Mutex<()>,
}

/// The states of one client.
pub(crate) struct States {
    all: Arc<StateDirectory>,
    directory: PathBuf,
}

/// A state in the directory.
pub(crate) struct KeptState {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) modified_ms: u64,
}

/// One of them, by name, whether it exists or not.
pub(crate) struct StateFile {
    states: States,
    name: String,
}

impl StateDirectory {
    pub(crate) fn new(path: PathBuf, max_bytes: u64) -> StateDirectory {
        StateDirectory { path, max_bytes, writing: Mutex::new(()) }
    }

    /// Returns the states of a client.
    pub(crate) fn of(self: &Arc<StateDirectory>, tenant: &Tenant) -> std::result::Result<States, RpcError> {
        Ok(States { directory: tenant.directory(&self.path)?, all: self.clone() })
    }

    /// Checks that there is room for `bytes` in place of what is at `path`.
    fn check_room(&self, path: &Path, bytes: u64) -> Result<()> {
        let (mut count, mut total) = (0, bytes);
        for directory in tenants(&self.path)?.into_iter().chain([self.path.clone()]) {
            for state in read(&directory)?.iter().filter(|state| directory.join(&state.name) != path) {
                count += 1;
                total = total.saturating_add(state.bytes);
            }
        }
        if count >= STATES_MAX {
            return Err(full(format!("there are {STATES_MAX} states already")));
        }
        if total > self.max_bytes {
            return Err(full(format!(
                "the states would take {total} bytes, limit state-bytes {}",
                self.max_bytes
            )));
        }
        Ok(())
    }
}

fn full(why: String) -> Error {
    Error::new(ErrorKind::QuotaExceeded, why)
}

/// Returns the states in a directory, by name.
fn read(directory: &Path) -> Result<Vec<KeptState>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut states = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'));
        let about = match entry.metadata() {
            // Removed in the meantime.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            other => other?,
        };
        if let Some(name) = name.filter(|_| about.is_file()) {
            let modified = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            states.push(KeptState { name, bytes: about.len(), modified_ms: modified.as_millis() as u64 });
        }
    }
    states.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(states)
}

impl States {
    /// Returns the state with this name.
    pub(crate) fn file(self, name: String) -> std::result::Result<StateFile, RpcError> {
        // One name, and not a hidden one: those are for files being written.
        if name.is_empty() || name.starts_with('.') || name.len() > 255 || name.contains(['/', '\0']) {
            return Err(RpcError::params("file must be a plain file name"));
        }
        Ok(StateFile { states: self, name })
    }

    /// Lists them by name. Blocks, like everything here that uses the disk.
    pub(crate) fn list(&self) -> std::result::Result<Vec<KeptState>, RpcError> {
        read(&self.directory).map_err(|error| RpcError::internal(format!("the states: {error}")))
    }
}

impl StateFile {
    /// Writes all of it or nothing; only this user can read it.
    pub(crate) fn write(&self, state: &[u8]) -> std::result::Result<(), RpcError> {
        self.told(|states, name| {
            create_private(&states.directory)?;
            let path = states.directory.join(name);
            let _writing = states.all.writing.lock();
            states.all.check_room(&path, state.len() as u64)?;
            let mut written = NamedTempFile::new_in(&states.directory)?;
            written.write_all(state)?;
            // Before it has its name: a power failure leaves the old state or the new one.
            written.as_file().sync_all()?;
            written.persist(path)?;
            sync(&states.directory)
        })
    }

    pub(crate) fn read(&self, max: u64) -> std::result::Result<Vec<u8>, RpcError> {
        self.told(|states, name| {
            let opened = File::open(states.directory.join(name))?;
            if opened.metadata()?.len() > max {
                let limits = "what fsLimitBytes and memoryBytes of this sandbox allow";
                return Err(Error::other(format!("it is longer than {limits}, {max}")));
            }
            let mut state = Vec::new();
            opened.take(max).read_to_end(&mut state)?;
            Ok(state)
        })
    }

    pub(crate) fn remove(&self) -> std::result::Result<(), RpcError> {
        self.told(|states, name| {
            std::fs::remove_file(states.directory.join(name))?;
            sync(&states.directory)
        })
    }

    /// Does something with the disk; an error says which state it is about.
    fn told<T>(&self, work: impl FnOnce(&States, &str) -> Result<T>) -> std::result::Result<T, RpcError> {
        let name = &self.name;
        work(&self.states, name).map_err(|error| match error.kind() {
            ErrorKind::NotFound => RpcError::params(format!("file: state {name} not found")),
            ErrorKind::QuotaExceeded => {
                RpcError::refused("ENOSPC", format!("ENOSPC: the state {name}: {error}"))
            }
            _ => RpcError::internal(format!("the state {name}: {error}")),
        })
    }
}

/// Makes a change of names in a directory last.
fn sync(directory: &Path) -> Result<()> {
    File::open(directory)?.sync_all()
}
