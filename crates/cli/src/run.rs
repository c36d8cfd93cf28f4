//! `wardian run`: a script in a new sandbox.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use wardian::{Builder, FileChanges, Input, Limits, MountMode, Run, Sandbox};
use wardian_hosttools::git_sync::{FileChange, GitOptions, GitSync};
use wardian_hosttools::{Mode, PoolConfig, ToolSandbox, WorkerPool};
use wardian_server::result_object;

use crate::mount::Mount;
use crate::out::{remark, say};
use crate::streams::{Stdin, copy_output};
use crate::{duration, mount, out, tools};

/// Run a script in a new sandbox and exit with its code.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wardian run 'echo hello | wc -c'
  wardian run --timeout 200ms 'while :; do :; done'      # exits with 124
  wardian run --mount .:/src:ro 'ls /src | head -3'
  wardian run --mount .:/src --tool git 'cd /src; git log --oneline | head -3'
  wardian run --json 'echo hi'
  wardian run --mount .:/src:overlay --diff 'sed -i s/colour/color/ /src/*.md'     # a patch; your files stay as they are
  wardian run --mount .:/src:overlay --apply 'cd /src && sh fix.sh'     # all it changed if it succeeds, else nothing
  wardian run --mount .:/src:overlay --commit agent/fix 'cd /src && sh fix.sh'     # the same, as a commit on a branch
  echo 'echo from standard input' | wardian run -")]
pub(crate) struct Arguments {
    /// The script, or - to read it from standard input.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    script: Option<String>,
    /// Read the script from a file.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Timeout (200ms, 1.5s, 2m); 0 for none.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "30s")]
    timeout: Duration,
    /// Mount a host directory: HOST:PATH[:ro|rw|overlay].
    #[arg(long = "mount", value_name = "MOUNT", value_parser = mount::parse)]
    mounts: Vec<Mount>,
    /// Expose a host program as a command, working in a mounted directory: NAME, or NAME@PATH if there is more than one
    /// mount.
    #[arg(long = "tool", value_name = "TOOL")]
    tools: Vec<String>,
    /// Set an environment variable: NAME=VALUE.
    #[arg(long = "env", value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Print the result as one JSON object instead of passing output through.
    #[arg(long)]
    json: bool,
    /// Print the overlays' changes as a patch afterwards.
    #[arg(long, conflicts_with = "json")]
    diff: bool,
    /// Apply the overlays' changes to the host directories, atomically per mount, only if the script exits with 0.
    #[arg(long)]
    apply: bool,
    /// Commit the overlays' changes to this branch of their Git repositories, only if the script exits with 0. The branch
    /// must not be checked out; work tree, index and HEAD do not change.
    #[arg(long, value_name = "BRANCH")]
    commit: Option<String>,
    /// Commit message.
    #[arg(long, value_name = "TEXT", requires = "commit", default_value = "Changes made in a sandbox")]
    message: String,
}

/// Runs it; answers the exit code.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(run(arguments));
    // What a command in the background began to compile is kept for the next start.
    wardian::finish_preparing();
    code
}

async fn run(arguments: Arguments) -> Result<u8> {
    let (script, stdin) = script(&arguments)?;
    let overlays = overlays(&arguments)?;
    let mut builder = Sandbox::builder()
        .limits(limits(arguments.json))
        .timeout((!arguments.timeout.is_zero()).then_some(arguments.timeout))
        .progress(|step| remark!("wardian: {step}"));
    for pair in &arguments.env {
        let (name, value) = pair.split_once('=').with_context(|| format!("not NAME=VALUE: '{pair}'"))?;
        builder = builder.env(name, value);
    }
    builder = with_tools(builder, &arguments.tools, &arguments.mounts)?;
    for mount in arguments.mounts.iter().cloned() {
        builder = builder.mount(mount.host, mount.path, mount.mode);
    }
    let sandbox = builder.build().await?;
    let run = Run::new(script).stdin(stdin).last();
    let code =
        if arguments.json { print_json(&sandbox, run).await? } else { pass_through(&sandbox, run).await? };
    for Mount { host, path, .. } in &overlays {
        if let Some(branch) = arguments.commit.as_deref().filter(|_| code == 0) {
            let changes = sandbox.file_changes(path).await?;
            commit(host, changes, branch, &arguments.message)
                .await
                .with_context(|| format!("{path}: nothing was committed"))?;
        }
        if arguments.diff {
            out::write(&sandbox.diff_text(path).await?)?;
        }
        if arguments.apply && code == 0 {
            let changes =
                sandbox.apply(path, false).await.with_context(|| format!("{path}: nothing was applied"))?;
            let plural = if changes.len() == 1 { "" } else { "s" };
            remark!("wardian: {path}: {} change{plural} applied", changes.len());
        }
    }
    Ok(code)
}

/// Overlays, if something is to be done with their changes.
fn overlays(arguments: &Arguments) -> Result<Vec<Mount>> {
    if !arguments.diff && !arguments.apply && arguments.commit.is_none() {
        return Ok(Vec::new());
    }
    let overlays = arguments.mounts.iter().filter(|mount| mount.mode == MountMode::Overlay);
    let overlays: Vec<Mount> = overlays.cloned().collect();
    if overlays.is_empty() {
        bail!("--diff, --apply and --commit need an overlay: --mount HOST:PATH:overlay");
    }
    Ok(overlays)
}

/// Commits what has changed to a branch of the repository around a host directory.
async fn commit(host: &Path, found: FileChanges, branch: &str, message: &str) -> Result<()> {
    for path in &found.skipped {
        remark!("wardian: {} is not committed: git cannot store it", path.display());
    }
    let pool = WorkerPool::start(Mode::Worker, &PoolConfig::default())?;
    let committed = async {
        let (sync, below) = GitSync::around(pool.clone(), host, branch, GitOptions::default())?;
        let changes: Vec<FileChange> = found.changes.into_iter().map(|change| change.below(&below)).collect();
        sync.commit_changes("HEAD", &changes, message).await
    };
    let committed = committed.await;
    pool.shutdown().await;
    remark!("wardian: {branch} is at {}", committed?);
    Ok(())
}

/// Native programs as commands, each on the directory mounted for it.
fn with_tools(mut builder: Builder, wanted: &[String], mounts: &[Mount]) -> Result<Builder> {
    let mut doors: HashMap<&str, ToolSandbox> = HashMap::new();
    for tool in wanted {
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
            None => {
                doors.entry(path).or_insert(tools::door_to(&mount.host, mount.mode == MountMode::Overlay)?)
            }
        };
        builder = builder.host_tool(door, name, path);
    }
    Ok(builder)
}

/// Output that only passes through needs no cap.
fn limits(kept: bool) -> Limits {
    let limits = Limits { command_bytes: usize::MAX, ..Limits::default() };
    if kept { limits } else { Limits { stdout_bytes: usize::MAX, stderr_bytes: usize::MAX, ..limits } }
}

/// The script and what is left for it to read.
fn script(arguments: &Arguments) -> Result<(Vec<u8>, std::sync::Arc<Input>)> {
    if let Some(file) = &arguments.file {
        let script = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        return Ok((script, Input::source(Stdin)));
    }
    match arguments.script.as_deref() {
        Some("-") => {
            let mut script = Vec::new();
            std::io::stdin().read_to_end(&mut script).context("cannot read standard input")?;
            Ok((script, Input::empty()))
        }
        Some(script) => Ok((script.as_bytes().to_vec(), Input::source(Stdin))),
        None => bail!("no script"),
    }
}

async fn pass_through(sandbox: &Sandbox, run: Run) -> Result<u8> {
    let (run, copying) = copy_output(run);
    let result = sandbox.run_with(run).await;
    // The senders are gone with the run, so the threads end when they have written what there was.
    let copied = copying.end();
    let code = result?.exit_code;
    copied?;
    Ok(code)
}

async fn print_json(sandbox: &Sandbox, run: Run) -> Result<u8> {
    let result = sandbox.run_with(run).await?;
    say!("{}", result_object(&result))?;
    Ok(result.exit_code)
}
