//! The options a sandbox is built with.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wardian_audit::AuditLog;
use wardian_hosttools::ToolSandbox;
use wardian_kernel::{Allowlist, Rules};
use wardian_net::{Gateway, NetworkPolicy, OnRequest, Resolve};
use wardian_vfs::{Quota, Tree};

use crate::checks;
use crate::durable::{NewName, Store};
use crate::engine::Engine;
use crate::env::keep_last;
use crate::error::{Error, lost};
use crate::extension::{self, Extension};
use crate::host_tool::HostTool;
use crate::mounts::{HostMount, MountEntry, MountMode, NewMount};
use crate::sandbox::Sandbox;
use crate::system::System;

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
    unsupported: Option<&'static str>,
    pub(crate) persist: Option<NewName>,
    pub(crate) image: Option<(Store, String)>,
    progress: Option<fn(&str)>,
    state: Option<PathBuf>,
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
            unsupported: None,
            persist: None,
            image: None,
            progress: None,
            state: wardian_vfs::state_directory(),
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
        door: &ToolSandbox,
        name: impl Into<String>,
        mount: impl Into<String>,
    ) -> Builder {
        self.host_tools.push(HostTool::new(door, name.into(), mount.into()));
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

    /// Sets who decides about each HTTP request that the policy allows.
    pub fn on_request(mut self, decides: impl OnRequest + 'static) -> Builder {
        self.network_options.on_request = Some(Arc::new(decides));
        self
    }

    /// Sets who looks up names outside, instead of the system.
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

    /// Moves state to and from external storage. Not supported yet: [`Builder::build`] returns an error.
    pub fn storage(mut self) -> Builder {
        self.unsupported = Some("storage");
        self
    }

    /// Sets the directory for the journals of [`Sandbox::apply`], which repair host directories after a crash. Only this
    /// user may be able to write to it; it is created if missing. The default is `wardian` in `$XDG_STATE_HOME` or
    /// `~/.local/state`. It must not be inside a mounted directory.
    pub fn state_directory(mut self, path: impl Into<PathBuf>) -> Builder {
        self.state = Some(path.into());
        self
    }

    /// Sets a callback that is called, once per machine, when a program must be compiled first, and when an earlier
    /// apply to a mounted directory was interrupted.
    pub fn progress(mut self, progress: fn(&str)) -> Builder {
        self.progress = Some(progress);
        self
    }

    /// Builds the sandbox.
    pub async fn build(mut self) -> Result<Sandbox, Error> {
        let (persist, image) = (self.persist.take(), self.image.take());
        let sandbox = match image {
            Some((store, name)) => store.start_image(&name, self).await?,
            None => self.build_alone().await?,
        };
        match persist {
            Some(name) => name.attach(sandbox).await,
            None => Ok(sandbox),
        }
    }

    pub(crate) fn has_extensions(&self) -> bool {
        !self.extensions.is_empty() || !self.host_tools.is_empty()
    }

    pub(crate) fn has_mounts(&self) -> bool {
        !self.mounts.is_empty()
    }

    /// Returns the engine's system that it will be built from, starting it if necessary.
    pub(crate) async fn find_system(&self) -> Result<Arc<System>, Error> {
        let chosen = self.engine.as_ref().map(|engine| engine.system().clone());
        Ok(match chosen.or_else(System::started) {
            Some(system) => system,
            None => {
                let progress = self.progress.unwrap_or(|_| ());
                // Compiling takes seconds the first time: not on the caller's runtime.
                tokio::task::spawn_blocking(move || System::shared(&progress)).await.map_err(lost)??
            }
        })
    }

    async fn build_alone(self) -> Result<Sandbox, Error> {
        let system = self.find_system().await?;
        let (setup, tree, env) = self.set_up_all(&system).await?;
        Sandbox::start(system, setup, tree, env).await
    }

    /// Builds everything but the shell; returns the files and the shell's environment as well.
    pub(crate) async fn set_up_all(self, system: &Arc<System>) -> Result<(Setup, Tree, Vec<Vec<u8>>), Error> {
        let mut env = self.environment()?;
        let (mut setup, tree) = self.set_up(system).await?;
        // Variables that stand for secrets, which only the gateway knows.
        if let Some(gateway) = &setup.gateway {
            env.extend(
                gateway
                    .placeholders()
                    .into_iter()
                    .map(|(name, value)| format!("{name}={value}").into_bytes()),
            );
        }
        setup.environment.clone_from(&env);
        Ok((setup, tree, env))
    }

    /// Returns what it will be built from, to wait on: see [`crate::blocking`].
    pub(crate) fn system(&self) -> Result<Arc<System>, Error> {
        match &self.engine {
            Some(engine) => Ok(engine.system().clone()),
            None => System::shared(&self.progress.unwrap_or(|_| ())),
        }
    }

    /// Builds the files and everything else but the shell.
    pub(crate) async fn set_up(mut self, system: &Arc<System>) -> Result<(Setup, Tree), Error> {
        if let Some(option) = self.unsupported {
            return Err(Error::Unsupported(option));
        }
        if self.nice > 19 {
            return Err(Error::Option(format!("nice is from 0 to 19, not {}", self.nice)));
        }
        checks::limits(&self.limits)?;
        checks::paths(&self.cwd, self.writable_paths.as_deref())?;
        let names = self.tool_list.iter().flatten().map(|name| name.len() + size_of::<String>());
        check_length("toolAllowlist", names.sum(), TOOL_NAMES)?;
        for tool in std::mem::take(&mut self.host_tools) {
            self.extensions.push(tool.into_extension(&self.mounts)?);
        }
        let gateway = self.gateway().await?;
        let saved = self.to_saved();
        let mut tree = system.tree(self.limits.quota());
        let host_programs = extension::install(&mut tree, system, &self.extensions)?;
        let base = tree.clone();
        if self.mounts.iter().any(NewMount::is_host) {
            let (mounts, state) = (self.mounts, self.state.clone());
            let progress = self.progress.unwrap_or(|_| ());
            let mounting = tokio::task::spawn_blocking(move || {
                let mut mount = |mount: &NewMount| mount.add_to(&mut tree, state.as_deref(), &progress);
                mounts.iter().try_for_each(&mut mount).map(|()| tree)
            });
            tree = mounting.await.map_err(lost)??;
        } else {
            let mut mount = |mount: &NewMount| mount.add_to(&mut tree, None, &|_| ());
            self.mounts.iter().try_for_each(&mut mount)?;
        }
        if let Some(list) = &self.tool_allowlist {
            checks::allowlist(list, &tree)?;
        }
        if let Some(paths) = self.writable_paths {
            tree.set_writable_paths(Some(paths.into_iter().map(String::into_bytes).collect()));
        }
        let setup = Setup {
            limits: self.limits,
            timeout: self.timeout,
            background_timeout: self.background_timeout,
            on_kill: self.on_kill,
            cwd: self.cwd,
            environment: Vec::new(),
            rules: Rules {
                allowed: self.tool_allowlist,
                host_programs,
                nice: self.nice,
                spares: Some(system.pool.spares().clone()),
                family: Arc::default(),
                outside: None,
            },
            gateway,
            audit: self.audit,
            state: self.state,
            fresh: tree.clone(),
            base,
            saved,
        };
        Ok((setup, tree))
    }

    /// Creates the gateway that the policy asks for. Reading certificates may have to wait for a disk.
    async fn gateway(&mut self) -> Result<Option<Gateway>, Error> {
        let Some(policy) = self.network.take() else { return Ok(None) };
        let options = self.network_options.clone();
        let creating = tokio::task::spawn_blocking(move || Gateway::new(policy, options));
        let gateway = creating.await.map_err(lost)?;
        gateway.map(Some).map_err(|error| Error::Option(format!("network: {error}")))
    }

    /// Returns the shell's initial environment.
    fn environment(&self) -> Result<Vec<Vec<u8>>, Error> {
        let defaults = [
            ("HOME", "/home/user"),
            ("USER", "user"),
            ("LOGNAME", "user"),
            // The last is where pip puts commands.
            ("PATH", "/bin:/usr/bin:/home/user/.local/bin"),
            ("SHELL", "/bin/bash"),
            ("LANG", "C.UTF-8"),
        ];
        let defaults = defaults.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut all: Vec<(String, String)> = defaults.into();
        let given =
            self.env.iter().map(|(name, value)| name.len() + value.len() + size_of::<(String, String)>());
        check_length("env", given.sum(), ENVIRONMENT)?;
        for (name, value) in &self.env {
            check_variable(name, value)?;
            all.push((name.clone(), value.clone()));
        }
        keep_last(&mut all, |(name, _)| name.as_bytes());
        self.add_python_path(&mut all)?;
        Ok(all.into_iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect())
    }
}

impl Builder {
    fn add_python_path(&self, env: &mut Vec<(String, String)>) -> Result<(), Error> {
        if self.python_path.is_empty() {
            return Ok(());
        }
        check_length("pythonPath", self.python_path.iter().map(|path| path.len() + 1).sum(), PATHS)?;
        if let Some(path) = self.python_path.iter().find(|path| path.is_empty() || path.contains([':', '\0']))
        {
            return Err(Error::Option(format!("not a directory for pythonPath: {path:?}")));
        }
        let mut paths = self.python_path.join(":");
        if let Some(at) = env.iter().position(|(name, _)| name == "PYTHONPATH") {
            let (_, given) = env.remove(at);
            paths = if given.is_empty() { paths } else { format!("{paths}:{given}") };
        }
        env.push(("PYTHONPATH".to_owned(), paths));
        Ok(())
    }
}

impl Builder {
    /// Returns the options that a store keeps with a sandbox. Mounts are part of its files; what it may reach outside
    /// (network, secrets, extensions, native programs) must be granted again by the caller that opens it.
    fn to_saved(&self) -> Value {
        let millis = |time: Option<Duration>| time.map(|time| time.as_millis() as u64);
        json!({
            "stdoutBytes": self.limits.stdout_bytes,
            "stderrBytes": self.limits.stderr_bytes,
            "commandBytes": self.limits.command_bytes,
            "fsBytes": self.limits.fs_bytes,
            "fileCount": self.limits.file_count,
            "memoryBytes": self.limits.memory_bytes,
            "processes": self.limits.processes,
            "openFiles": self.limits.open_files,
            "timeoutMs": millis(self.timeout),
            "backgroundTimeoutMs": millis(self.background_timeout),
            "rollback": self.on_kill == OnKill::Rollback,
            "env": self.env,
            "cwd": self.cwd,
            "writablePaths": self.writable_paths,
            "toolAllowlist": self.tool_list,
            "nice": self.nice,
            "pythonPath": self.python_path,
        })
    }

    /// Sets the options that a store has kept.
    pub(crate) fn with_saved(mut self, saved: &Value) -> Builder {
        let number = |name: &str| saved[name].as_u64();
        let size = |name: &str, default: usize| number(name).map_or(default, |value| value as usize);
        let strings = |name: &str| -> Option<Vec<String>> {
            Some(saved[name].as_array()?.iter().filter_map(|each| Some(each.as_str()?.to_owned())).collect())
        };
        let default = Limits::default();
        self.limits = Limits {
            stdout_bytes: size("stdoutBytes", default.stdout_bytes),
            stderr_bytes: size("stderrBytes", default.stderr_bytes),
            command_bytes: size("commandBytes", default.command_bytes),
            fs_bytes: number("fsBytes").unwrap_or(default.fs_bytes),
            file_count: number("fileCount").unwrap_or(default.file_count),
            memory_bytes: number("memoryBytes").unwrap_or(default.memory_bytes),
            processes: size("processes", default.processes).min(wardian_kernel::Limits::MOST_PROCESSES),
            open_files: size("openFiles", default.open_files).min(wardian_kernel::Limits::MOST_OPEN_FILES),
        };
        self.timeout = number("timeoutMs").map(Duration::from_millis);
        self.background_timeout = number("backgroundTimeoutMs").map(Duration::from_millis);
        self.on_kill = if saved["rollback"] == true { OnKill::Rollback } else { OnKill::Keep };
        let pairs = saved["env"].as_array().into_iter().flatten();
        let pair = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
        self.env = pairs.filter_map(pair).collect();
        self.cwd = saved["cwd"].as_str().unwrap_or("/home/user").to_owned();
        self.writable_paths = strings("writablePaths");
        self.nice = number("nice").unwrap_or(0).min(19) as u8;
        self.python_path = strings("pythonPath").unwrap_or_default();
        match strings("toolAllowlist") {
            Some(tools) => self.tool_allowlist(tools),
            None => self,
        }
    }
}

/// The most that the directories of `pythonPath` take.
const PATHS: usize = 64 << 10;
/// The most that the names of an allowlist take.
const TOOL_NAMES: usize = 64 << 10;
/// The most that the variables a sandbox, or one run, starts with take.
pub(crate) const ENVIRONMENT: usize = 1 << 20;

/// Checks that an option that is kept for each sandbox is not too long.
pub(crate) fn check_length(option: &str, bytes: usize, limit: usize) -> Result<(), Error> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::Option(format!("{option} takes {bytes} bytes, limit {limit}")))
}

/// Checks that a shell can have this environment variable.
pub(crate) fn check_variable(name: &str, value: &str) -> Result<(), Error> {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic());
    if !begins || !letters.all(|c| c == '_' || c.is_ascii_alphanumeric()) || value.contains('\0') {
        return Err(Error::Option(format!("not an environment variable: {name:?}")));
    }
    Ok(())
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
    /// The files it was built with.
    pub(crate) fresh: Tree,
    /// The same without mounts: the system and its extensions. A store keeps what differs from it.
    pub(crate) base: Tree,
    /// The options that a store keeps.
    pub(crate) saved: serde_json::Value,
}
