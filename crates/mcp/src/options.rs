//! What the server is told when it starts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wardian::{AuditLog, Builder, Limits, MountMode, Sandbox};

use crate::gate::Gate;

/// A host directory, and where every sandbox has it.
#[derive(Clone, Debug)]
pub struct Mount {
    /// The directory on the host.
    pub host: PathBuf,
    /// Its path in the sandboxes.
    pub path: String,
    /// What a sandbox may do with it.
    pub mode: MountMode,
}

/// The options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The limits of each sandbox.
    pub limits: Limits,
    /// How long a call may run that asks for no timeout.
    pub timeout: Duration,
    /// How long a call may run whatever it asks for.
    pub max_timeout: Duration,
    /// How many bytes a file may have that is read as a resource.
    pub longest_resource: u64,
    /// How many characters of a result a model is shown.
    pub max_output: usize,
    /// How many sandboxes there may be at once.
    pub max_sandboxes: usize,
    /// What is mounted in each sandbox.
    pub mounts: Vec<Mount>,
    /// The shell's variables.
    pub env: Vec<(String, String)>,
    /// Where the shell starts.
    pub cwd: Option<String>,
    /// Where states are exported to. Without it there are no tools for that.
    pub state_dir: Option<PathBuf>,
    /// Where everything is recorded that sandboxes do.
    pub audit: Option<AuditLog>,
    /// Who is asked before a sandbox is created or something is run.
    pub gate: Option<Arc<dyn Gate>>,
    /// Called with what a command waits for.
    pub progress: fn(&str),
}

impl Default for Options {
    fn default() -> Options {
        Options {
            // A result that is cut is kept whole in a file: so more is kept than a model is shown.
            limits: Limits { stdout_bytes: 8 << 20, stderr_bytes: 8 << 20, ..Limits::default() },
            timeout: Duration::from_secs(60),
            max_timeout: Duration::from_secs(600),
            longest_resource: 8 << 20,
            max_output: 30_000,
            max_sandboxes: 16,
            mounts: Vec::new(),
            env: Vec::new(),
            cwd: None,
            state_dir: None,
            audit: None,
            gate: None,
            progress: |_| {},
        }
    }
}

impl Options {
    /// Returns a builder for a sandbox.
    pub(crate) fn builder(&self) -> Builder {
        let mut builder =
            Sandbox::builder().limits(self.limits).timeout(Some(self.timeout)).progress(self.progress);
        if let Some(log) = &self.audit {
            builder = builder.audit(log);
        }
        for (name, value) in &self.env {
            builder = builder.env(name, value);
        }
        if let Some(cwd) = &self.cwd {
            builder = builder.cwd(cwd);
        }
        for mount in &self.mounts {
            builder = builder.mount(&mount.host, &mount.path, mount.mode);
        }
        builder
    }

    /// Returns the paths of the overlays.
    pub(crate) fn overlays(&self) -> Vec<&str> {
        let overlays = self.mounts.iter().filter(|mount| mount.mode == MountMode::Overlay);
        overlays.map(|mount| mount.path.as_str()).collect()
    }
}
