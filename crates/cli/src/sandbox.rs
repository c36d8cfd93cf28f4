//! The options of a new sandbox, for those commands that create one.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use wardian::{Builder, Limits, MountMode, Sandbox};
use wardian_hosttools::ToolSandbox;

use crate::mount::{self, Mount};
use crate::network::NetworkOptions;
use crate::out::{self, remark};
use crate::{audit, preparing, size, tools};

#[derive(clap::Args)]
pub(crate) struct SandboxOptions {
    /// Mount a host directory: HOST:PATH[:ro|rw|overlay].
    #[arg(long = "mount", value_name = "MOUNT", value_parser = mount::parse)]
    pub(crate) mounts: Vec<Mount>,
    /// Expose a host program as a command, working in a mounted directory: NAME, or NAME@PATH if there is more than one
    /// mount.
    #[arg(long = "tool", value_name = "TOOL")]
    tools: Vec<String>,
    #[command(flatten)]
    network: NetworkOptions,
    /// Set an environment variable: NAME=VALUE.
    #[arg(long = "env", value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Start in this directory of the sandbox.
    #[arg(long, value_name = "PATH")]
    cwd: Option<String>,
    /// Memory of all processes together (64M, 2G); 1G by default.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,
    /// Maximum number of processes at once; 256 by default.
    #[arg(long, value_name = "N")]
    processes: Option<usize>,
    /// Maximum number of files, directories and links; 1,000,000 by default.
    #[arg(long, value_name = "N")]
    files: Option<u64>,
    /// Size of all files together, mounts not included (64M, 1G); 256M by default.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    disk: Option<u64>,
    /// Record what it does in this log: commands, connections, requests, refusals. It is hash-chained: `wardian audit
    /// verify` tells whether anything was changed.
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Print the overlays' changes as a patch afterwards.
    #[arg(long)]
    pub(crate) diff: bool,
    /// Apply the overlays' changes to the host directories, atomically per mount, only if the exit code is 0.
    #[arg(long)]
    pub(crate) apply: bool,
}

impl SandboxOptions {
    /// Returns a builder with them. `limits` are those of the command itself.
    pub(crate) fn builder(&self, limits: Limits) -> Result<Builder> {
        let mut builder = Sandbox::builder().limits(self.limits(limits)).progress(preparing::tell);
        for (name, value) in self.variables()? {
            builder = builder.env(name, value);
        }
        if let Some(cwd) = &self.cwd {
            builder = builder.cwd(cwd);
        }
        if let Some(policy) = self.network.policy()? {
            builder = builder.network(policy);
        }
        if let Some(file) = &self.audit {
            builder = builder.audit(&audit::open(file)?);
        }
        builder = self.with_tools(builder)?;
        for mount in self.mounts.iter().cloned() {
            builder = builder.mount(mount.host, mount.path, mount.mode);
        }
        Ok(builder)
    }

    /// Returns the environment variables.
    pub(crate) fn variables(&self) -> Result<Vec<(String, String)>> {
        let pairs = self.env.iter().map(|pair| {
            let (name, value) = pair.split_once('=').with_context(|| format!("not NAME=VALUE: '{pair}'"))?;
            Ok((name.to_owned(), value.to_owned()))
        });
        pairs.collect()
    }

    /// Returns the initial directory, if it was given.
    pub(crate) fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    /// Returns an option that was given and that a sandbox in a process of its own cannot have yet.
    pub(crate) fn beyond_a_cell(&self) -> Option<&'static str> {
        let given = [
            ("--mount", !self.mounts.is_empty()),
            ("--tool", !self.tools.is_empty()),
            ("--audit", self.audit.is_some()),
            ("--diff", self.diff),
            ("--apply", self.apply),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name).or_else(|| self.network.given())
    }

    /// Returns an option that was given and that a named sandbox keeps.
    pub(crate) fn kept(&self) -> Option<&'static str> {
        let given = [
            ("--mount", !self.mounts.is_empty()),
            ("--tool", !self.tools.is_empty()),
            ("--env", !self.env.is_empty()),
            ("--cwd", self.cwd.is_some()),
            ("--memory", self.memory.is_some()),
            ("--processes", self.processes.is_some()),
            ("--files", self.files.is_some()),
            ("--disk", self.disk.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Returns whether a variable is among them.
    pub(crate) fn sets(&self, name: &str) -> bool {
        self.env.iter().any(|pair| pair.split_once('=').is_some_and(|(set, _)| set == name))
    }

    pub(crate) fn limits(&self, limits: Limits) -> Limits {
        Limits {
            memory_bytes: self.memory.unwrap_or(limits.memory_bytes),
            processes: self.processes.unwrap_or(limits.processes),
            file_count: self.files.unwrap_or(limits.file_count),
            fs_bytes: self.disk.unwrap_or(limits.fs_bytes),
            ..limits
        }
    }

    /// Native programs as commands, each on the directory mounted for it.
    fn with_tools(&self, mut builder: Builder) -> Result<Builder> {
        let mut doors: HashMap<&str, ToolSandbox> = HashMap::new();
        let mounts = &self.mounts[..];
        for tool in &self.tools {
            let (name, path) = match (tool.split_once('@'), mounts) {
                (Some((name, path)), _) => (name, path),
                (None, [only]) => (tool.as_str(), only.path.as_str()),
                (None, []) => bail!("--tool {tool} needs a --mount to work on"),
                (None, _) => bail!("--tool {tool}: say on which mount, as in {tool}@{}", mounts[0].path),
            };
            let mount = mounts.iter().find(|mount| mount.path == path);
            let mount = mount.with_context(|| format!("--tool {tool}: nothing is mounted at {path}"))?;
            let door = match doors.get(path) {
                Some(door) => door,
                None => doors
                    .entry(path)
                    .or_insert(tools::door_to(&mount.host, mount.mode == MountMode::Overlay)?),
            };
            let programs = &door.policy().programs;
            if !programs.contains_key(name) {
                let hint = wardian::did_you_mean(name, programs.keys().map(String::as_str));
                bail!("--tool {name}: not listed in the policy{hint}; wardian tools policy show prints it");
            }
            builder = builder.host_tool(door, name, path);
        }
        Ok(builder)
    }

    /// Overlays, if an option asks for something to be done with their changes.
    pub(crate) fn overlays(&self, commit: bool) -> Result<Vec<Mount>> {
        if !self.diff && !self.apply && !commit {
            return Ok(Vec::new());
        }
        let overlays = self.mounts.iter().filter(|mount| mount.mode == MountMode::Overlay);
        let overlays: Vec<Mount> = overlays.cloned().collect();
        if overlays.is_empty() {
            bail!("--diff, --apply and --commit need an overlay: --mount HOST:PATH:overlay");
        }
        Ok(overlays)
    }

    /// Shows and applies what has changed in an overlay, as far as that was asked for.
    pub(crate) async fn settle(&self, sandbox: &Sandbox, path: &str, code: u8) -> Result<()> {
        if self.diff {
            out::write(&sandbox.diff_text(path).await?)?;
        }
        if !self.apply {
            return Ok(());
        }
        if code == 0 {
            let changes =
                sandbox.apply(path, false).await.with_context(|| format!("{path}: nothing was applied"))?;
            let plural = if changes.len() == 1 { "" } else { "s" };
            remark!("wardian: {path}: {} change{plural} applied", changes.len());
        } else if !sandbox.diff(path).await?.is_empty() {
            remark!("wardian: {path}: nothing was applied, because the exit code is {code}");
        }
        Ok(())
    }
}
