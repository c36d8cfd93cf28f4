//! What a sandbox is made with.

use std::path::PathBuf;
use std::time::Duration;

use wardian_vfs::{Errno, HostAccess, Mount, Quota, Tree};

use crate::error::Error;
use crate::sandbox::Sandbox;
use crate::system::System;

/// What a sandbox may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of standard output kept from a run.
    pub stdout_bytes: usize,
    /// Bytes of standard error kept from a run.
    pub stderr_bytes: usize,
    /// The longest command.
    pub command_bytes: usize,
    /// Bytes of files.
    pub fs_bytes: u64,
    /// Files, directories and links.
    pub file_count: u64,
    /// Memory of all processes, beyond what their programs start with.
    pub memory_bytes: u64,
    /// Processes at once.
    pub processes: usize,
    /// Descriptors of one process.
    pub open_files: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            stdout_bytes: 1 << 20,
            stderr_bytes: 1 << 20,
            command_bytes: 64 << 10,
            fs_bytes: 256 << 20,
            file_count: u64::MAX,
            memory_bytes: 256 << 20,
            processes: 64,
            open_files: 256,
        }
    }
}

impl Limits {
    pub(crate) fn quota(&self) -> Quota {
        Quota { bytes: self.fs_bytes, inodes: self.file_count }
    }

    pub(crate) fn kernel(&self) -> wardian_kernel::Limits {
        wardian_kernel::Limits {
            memory_bytes: self.memory_bytes,
            processes: self.processes,
            open_files: self.open_files,
        }
    }
}

/// What may be done to a mounted host directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountMode {
    /// Read it.
    ReadOnly,
    /// Change it, on the host.
    ReadWrite,
    /// Change a copy that stays in the sandbox.
    Overlay,
}

/// A host directory in the sandbox.
#[derive(Clone, Debug)]
struct HostMount {
    host: PathBuf,
    path: String,
    mode: MountMode,
}

/// Makes a sandbox. Every option has a default.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) limits: Limits,
    pub(crate) timeout: Option<Duration>,
    env: Vec<(String, String)>,
    cwd: String,
    mounts: Vec<HostMount>,
    progress: Option<fn(&str)>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            limits: Limits::default(),
            timeout: Some(Duration::from_secs(30)),
            env: Vec::new(),
            cwd: "/home/user".to_owned(),
            mounts: Vec::new(),
            progress: None,
        }
    }
}

impl Builder {
    /// What it may use.
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = limits;
        self
    }

    /// How long a run may take; 30 seconds by default, `None` for ever.
    pub fn timeout(mut self, timeout: Option<Duration>) -> Builder {
        self.timeout = timeout;
        self
    }

    /// An environment variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Builder {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The directory the shell starts in; `/home/user` by default.
    pub fn cwd(mut self, cwd: impl Into<String>) -> Builder {
        self.cwd = cwd.into();
        self
    }

    /// Shows a host directory at `path`.
    pub fn mount(mut self, host: impl Into<PathBuf>, path: impl Into<String>, mode: MountMode) -> Builder {
        self.mounts.push(HostMount { host: host.into(), path: path.into(), mode });
        self
    }

    /// Is told, once per machine, when a program must be compiled first.
    pub fn progress(mut self, progress: fn(&str)) -> Builder {
        self.progress = Some(progress);
        self
    }

    /// Makes it.
    pub async fn build(self) -> Result<Sandbox, Error> {
        let progress = self.progress.unwrap_or(|_| ());
        // Compiling takes seconds the first time: not on the caller's runtime.
        let starting = tokio::task::spawn_blocking(move || System::get(&progress));
        let system = starting.await.map_err(|e| Error::Lost(e.to_string()))??;
        let mut tree = system.tree(self.limits.quota());
        for mount in &self.mounts {
            mount.add_to(&mut tree)?;
        }
        Sandbox::start(system, tree, &self).await
    }

    pub(crate) fn cwd_bytes(&self) -> &[u8] {
        self.cwd.as_bytes()
    }

    /// The environment the shell starts with.
    pub(crate) fn environment(&self) -> Result<Vec<Vec<u8>>, Error> {
        let defaults = [
            ("HOME", "/home/user"),
            ("USER", "user"),
            ("LOGNAME", "user"),
            ("PATH", "/bin:/usr/bin"),
            ("SHELL", "/bin/bash"),
            ("LANG", "C.UTF-8"),
        ];
        let defaults = defaults.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut all: Vec<(String, String)> = defaults.into();
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(Error::Option(format!("not an environment variable: {name:?}")));
            }
            all.retain(|(other, _)| other != name);
            all.push((name.clone(), value.clone()));
        }
        Ok(all.into_iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect())
    }
}

impl HostMount {
    fn add_to(&self, tree: &mut Tree) -> Result<(), Error> {
        let access = match self.mode {
            MountMode::ReadOnly => HostAccess::ReadOnly,
            MountMode::ReadWrite => HostAccess::ReadWrite,
            MountMode::Overlay => HostAccess::Overlay,
        };
        let mount = Mount::host(&self.host, access)
            .map_err(|errno| Error::Option(format!("cannot mount {}: {errno}", self.host.display())))?;
        tree.mount(self.path.as_bytes(), mount)
            .map_err(|errno: Errno| Error::Option(format!("cannot mount at {}: {errno}", self.path)))
    }
}
