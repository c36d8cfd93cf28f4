//! The options a sandbox is built with. `options/build.rs` builds it, `options/saved.rs` keeps them in a store.

mod build;
mod saved;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wardian_audit::AuditLog;
use wardian_hosttools::ToolSandbox;
use wardian_kernel::{Allowlist, Rules};
use wardian_net::{Gateway, NetworkPolicy, OnRequest, Resolve};
use wardian_vfs::{HostRoots, Quota, Tree};

use crate::durable::{NewName, Store};
use crate::engine::Engine;
use crate::extension::Extension;
use crate::host_tool::HostTool;
use crate::mounts::{HostMount, MountEntry, MountMode, NewMount};

pub(crate) use build::ENVIRONMENT;

/// The limits of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of standard output kept from a run.
    pub stdout_bytes: usize,
    /// Maximum bytes of standard error kept from a run.
    pub stderr_bytes: usize,
    /// Maximum length of a command.
    pub command_bytes: usize,
    /// Maximum bytes of files, including their inodes and names.
    pub fs_bytes: u64,
    /// Maximum number of files, directories and links.
    pub file_count: u64,
    /// Maximum memory of all processes, beyond what their programs start with.
    pub memory_bytes: u64,
    /// Maximum number of processes at once, up to 32,000.
    pub processes: usize,
    /// Maximum number of descriptors per process, up to 4,096.
    pub open_files: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            stdout_bytes: 1 << 20,
            stderr_bytes: 1 << 20,
            command_bytes: 64 << 10,
            fs_bytes: 256 << 20,
            file_count: 1_000_000,
            memory_bytes: 1 << 30,
            processes: 256,
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

/// What happens to the files when a command is killed before it finishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnKill {
    /// Keeps every write that was completed, and none in part.
    #[default]
    Keep,
    /// Restores the files from before the command. Host directories mounted read-write are not restored.
    Rollback,
}

/// Builds a sandbox. Every option has a default.
#[derive(Clone)]
pub struct Builder {
    limits: Limits,
    timeout: Option<Duration>,
    background_timeout: Option<Duration>,
    on_kill: OnKill,
    env: Vec<(String, String)>,
    cwd: String,
    mounts: Vec<NewMount>,
    writable_paths: Option<Vec<String>>,
    /// Shared by all sandboxes that are built with it.
    tool_allowlist: Option<Arc<Allowlist>>,
    /// Its names.
    tool_list: Option<Vec<String>>,
    extensions: Vec<Extension>,
    host_tools: Vec<HostTool>,
    nice: u8,
    audit: Option<AuditLog>,
    engine: Option<Engine>,
    network: Option<NetworkPolicy>,
    network_options: wardian_net::Options,
    python_path: Vec<String>,
    pub(crate) persist: Option<NewName>,
    pub(crate) image: Option<(Store, String)>,
    progress: Option<fn(&str)>,
    state: Option<PathBuf>,
    roots: Option<HostRoots>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the variables, which may hold secrets.
        let (limits, cwd) = (&self.limits, &self.cwd);
        f.debug_struct("Builder").field("limits", limits).field("cwd", cwd).finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            limits: Limits::default(),
            timeout: Some(Duration::from_secs(30)),
            background_timeout: Some(Duration::from_secs(600)),
            on_kill: OnKill::default(),
            env: Vec::new(),
            cwd: "/home/user".to_owned(),
            mounts: Vec::new(),
            writable_paths: None,
            tool_allowlist: None,
            tool_list: None,
            extensions: Vec::new(),
            host_tools: Vec::new(),
            nice: 0,
            audit: None,
            engine: None,
            network: None,
            network_options: wardian_net::Options::default(),
            python_path: Vec::new(),
            persist: None,
            image: None,
            progress: None,
            state: wardian_vfs::state_directory(),
            roots: None,
        }
    }
}

impl Builder {
    /// Sets the sandbox's limits.
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = limits;
        self
    }

    /// Returns the limits that are set now.
    pub fn limits_now(&self) -> &Limits {
        &self.limits
    }

    /// Sets the timeout of a run; 30 seconds by default, `None` for no timeout.
    pub fn timeout(mut self, timeout: Option<Duration>) -> Builder {
        self.timeout = timeout;
        self
    }

    /// Sets how long background processes may outlive their command; 10 minutes by default, `None` for no limit.
    pub fn background_timeout(mut self, timeout: Option<Duration>) -> Builder {
        self.background_timeout = timeout;
        self
    }

    /// Sets what happens to the files when a command is killed; they are kept by default.
    pub fn on_kill(mut self, on_kill: OnKill) -> Builder {
        self.on_kill = on_kill;
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Builder {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the shell's initial directory; `/home/user` by default.
    pub fn cwd(mut self, cwd: impl Into<String>) -> Builder {
        self.cwd = cwd.into();
        self
    }

    /// Mounts a host directory at `path`.
    pub fn mount(mut self, host: impl Into<PathBuf>, path: impl Into<String>, mode: MountMode) -> Builder {
        self.mounts.push(NewMount::Host(HostMount { host: host.into(), path: path.into(), mode }));
        self
    }

    /// Mounts these files at `path`, given by their paths below it; read-only unless `writable`.
    pub fn mount_files<N: Into<String>, B: Into<Vec<u8>>>(
        mut self,
        path: impl Into<String>,
        files: impl IntoIterator<Item = (N, B)>,
        writable: bool,
    ) -> Builder {
        self.mounts.push(NewMount::files(path, files, writable));
        self
    }

    /// Does the same with modes, empty directories and links.
    pub fn mount_entries<N: Into<String>>(
        mut self,
        path: impl Into<String>,
        entries: impl IntoIterator<Item = (N, MountEntry)>,
        writable: bool,
    ) -> Builder {
        self.mounts.push(NewMount::entries(path, entries, writable));
        self
    }

    /// Makes everything outside these absolute paths read-only.
    pub fn writable_paths<P: Into<String>>(mut self, paths: impl IntoIterator<Item = P>) -> Builder {
        self.writable_paths = Some(paths.into_iter().map(Into::into).collect());
        self
    }

    /// Allows only these programs to start, each a name in `/bin` or `/usr/bin` or an absolute path. Shell builtins
    /// (`echo`, `cd`, `[ ]`) are not programs and stay available.
    pub fn tool_allowlist<N: Into<String>>(mut self, tools: impl IntoIterator<Item = N>) -> Builder {
        let tools: Vec<String> = tools.into_iter().map(Into::into).collect();
        self.tool_allowlist = Some(Arc::new(Allowlist::new(tools.clone())));
        self.tool_list = Some(tools);
        self
    }

    /// Exposes a host function as a command.
    pub fn extension(mut self, extension: Extension) -> Builder {
        self.extensions.push(extension);
        self
    }

    /// Exposes a native program as a command through the host-tool gateway, whose policy must list it under this name.
    /// It works on the host directory mounted at `mount`, which must be the gateway's jail. If that is an overlay, each call
    /// works on a private copy of what the sandbox sees there, up to 1 GiB and 200,000 files, and what it changes is made in
    /// the overlay when it exits, all of it or nothing. [`Policy::for_copies`](wardian_hosttools::Policy::for_copies) is a
    /// policy for that.
    pub fn host_tool(
        mut self,
        gateway: &ToolSandbox,
        name: impl Into<String>,
        mount: impl Into<String>,
    ) -> Builder {
        self.host_tools.push(HostTool::new(gateway, name.into(), mount.into()));
        self
    }

    /// Sets a nice value from 0 to 19: when processors are scarce, the sandbox's share is divided by 1 + `nice`.
    pub fn nice(mut self, nice: u8) -> Builder {
        self.nice = nice;
        self
    }

    /// Records what the sandbox does in this log.
    pub fn audit(mut self, log: &AuditLog) -> Builder {
        self.audit = Some(log.clone());
        self
    }

    /// Builds it from this engine instead of the one that the process shares.
    pub fn engine(mut self, engine: &Engine) -> Builder {
        self.engine = Some(engine.clone());
        self
    }

    /// Sets what the sandbox may reach outside; nothing by default. Its own processes reach each other without it.
    pub fn network(mut self, policy: NetworkPolicy) -> Builder {
        self.network = Some(policy);
        self
    }

    /// Sets a callback that decides about each HTTP request that the policy allows.
    pub fn on_request(mut self, decides: impl OnRequest + 'static) -> Builder {
        self.network_options.on_request = Some(Arc::new(decides));
        self
    }

    /// Sets the resolver of names outside, instead of the system's.
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Builder {
        self.network_options.resolver = Arc::new(resolver);
        self
    }

    /// Adds directories where Python looks for modules, before the packages of extensions and those that are ready:
    /// they stand in `PYTHONPATH`, before what [`Builder::env`] sets it to.
    pub fn python_path<P: Into<String>>(mut self, paths: impl IntoIterator<Item = P>) -> Builder {
        self.python_path.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Sets the directory for the journals of [`Sandbox::apply`](crate::Sandbox::apply), which repair host directories after a crash. Only this
    /// user may be able to write to it; it is created if missing. The default is `wardian` in `$XDG_STATE_HOME` or
    /// `~/.local/state`. It must not be inside a mounted directory.
    pub fn state_directory(mut self, path: impl Into<PathBuf>) -> Builder {
        self.state = Some(path.into());
        self
    }

    /// Mounts host directories only if they are below these, also those that a saved sandbox had: whoever says what to mount need
    /// not be trusted with the whole machine. Without this, any directory can be mounted.
    pub fn host_roots(mut self, roots: &HostRoots) -> Builder {
        self.roots = Some(roots.clone());
        self
    }

    /// Sets a callback that is called, once per machine, when a program must be compiled first, and when an earlier
    /// apply to a mounted directory was interrupted.
    pub fn progress(mut self, progress: fn(&str)) -> Builder {
        self.progress = Some(progress);
        self
    }
}

/// What a sandbox shares with all its forks.
pub(crate) struct Setup {
    pub(crate) limits: Limits,
    pub(crate) timeout: Option<Duration>,
    pub(crate) background_timeout: Option<Duration>,
    pub(crate) on_kill: OnKill,
    pub(crate) cwd: String,
    /// The variables that residents start with.
    pub(crate) environment: Vec<Vec<u8>>,
    pub(crate) rules: Rules,
    /// What the first sandbox's gateway, and so every other, is made from.
    pub(crate) gateway: Option<Gateway>,
    pub(crate) audit: Option<AuditLog>,
    /// The directory for journals.
    pub(crate) state: Option<PathBuf>,
    /// Where host directories have to be to be mounted, if not anywhere.
    pub(crate) roots: Option<HostRoots>,
    /// The files it was built with.
    pub(crate) fresh: Tree,
    /// The same without mounts: the system and its extensions. A store keeps what differs from it.
    pub(crate) base: Tree,
    /// The options that a store keeps.
    pub(crate) saved: serde_json::Value,
}
