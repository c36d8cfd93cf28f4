//! `wardian run`: a script in a new sandbox.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use wardian::{FileChanges, Input, Limits, Run, RunResult, Sandbox};
use wardian_hosttools::git_sync::{FileChange, GitOptions, GitSync};
use wardian_hosttools::{Mode, PoolConfig, WorkerPool};
use wardian_server::result_object;

use crate::cell::{self, Isolation};
use crate::durable::StoreFlags;
use crate::durable::named::open_named;
use crate::mount::Mount;
use crate::out::{remark, say};
use crate::sandbox::SandboxOptions;
use crate::streams::{Stdin, copy_output};
use crate::{duration, preparing};

/// Run a script in a new sandbox and exit with its code.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wardian run 'echo hello | wc -c'
  wardian run --timeout 200ms 'while :; do :; done'      # exits with 124
  wardian run --mount .:/src:ro 'ls /src | head -3'
  wardian run --mount .:/src --tool git 'cd /src; git log --oneline | head -3'
  wardian run --json 'echo hi'
  wardian run --python 'import sys; print(sys.argv[1:])' a b
  wardian run 'echo $0: $@' hello a b                    # as with bash -c: hello: a b
  wardian run --file build.sh debug                      # $0 is build.sh, $1 is debug
  wardian run --memory 512M --processes 32 --disk 1G 'seq 1000000 | sort -R | md5sum'
  wardian run --mount .:/src:overlay --diff 'sed -i s/colour/color/ /src/*.md'     # a patch; your files stay as they are
  wardian run --mount .:/src:overlay --apply 'cd /src && sh fix.sh'     # all it changed if it succeeds, else nothing
  wardian run --mount .:/src:overlay --commit agent/fix 'cd /src && sh fix.sh'     # the same, as a commit on a branch
  wardian run --isolation process 'echo hello'           # behind a second wall: docs/security.md
  echo 'echo from standard input' | wardian run -")]
pub(crate) struct Arguments {
    /// The script, or - to read it from standard input; with --file or --python, the first argument.
    #[arg(required_unless_present_any = ["file", "python"])]
    script: Option<String>,
    /// Arguments of the script: after a script, $0 $1 …, as with bash -c; after --file, $1 $2 …. Put -- before one that
    /// begins with a dash.
    #[arg(trailing_var_arg = true, value_name = "ARG")]
    arguments: Vec<String>,
    /// Read the script from a file.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Run this Python code instead of a script, as python3 -c does.
    #[arg(long, value_name = "CODE", conflicts_with = "file")]
    python: Option<String>,
    /// Timeout (200ms, 1.5s, 2m); 0 for none.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "30s")]
    timeout: Duration,
    /// What separates the sandbox from this program: WebAssembly alone (thread), or also a process that is jailed (process).
    /// A process cannot have mounts, tools, a network, a name, an image or an audit log yet.
    #[arg(long, value_name = "HOW", value_enum, default_value_t, hide_possible_values = true)]
    isolation: Isolation,
    #[command(flatten)]
    sandbox: SandboxOptions,
    /// Run it in the sandbox with this name, which is created if it does not exist, and save it.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Start from this image.
    #[arg(long, value_name = "IMAGE", conflicts_with = "name")]
    image: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// Print the result as one JSON object instead of passing output through.
    #[arg(long, conflicts_with = "diff")]
    json: bool,
    /// Commit the overlays' changes to this branch of their Git repositories, only if the script exits with 0. The branch
    /// must not be checked out; work tree, index and HEAD do not change.
    #[arg(long, value_name = "BRANCH")]
    commit: Option<String>,
    /// Commit message.
    #[arg(long, value_name = "TEXT", requires = "commit", default_value = "Changes made in a sandbox")]
    message: String,
}

impl Arguments {
    /// Returns an option that was given and that a sandbox in a process of its own cannot have yet.
    fn beyond_a_cell(&self) -> Option<&'static str> {
        let given = [
            ("--name", self.name.is_some()),
            ("--image", self.image.is_some()),
            ("--store", self.store.is_given()),
            ("--commit", self.commit.is_some()),
        ];
        let given = given.into_iter().find(|(_, given)| *given).map(|(name, _)| name);
        given.or_else(|| self.sandbox.beyond_a_cell())
    }

    /// Returns the script if it is the name of a file outside the sandbox, and no command was found under this name.
    fn misplaced_file(&self, code: u8) -> Option<&str> {
        const NOT_FOUND: u8 = 127;
        let script = self.script.as_deref().filter(|_| self.file.is_none() && self.python.is_none())?;
        (code == NOT_FOUND && Path::new(script).is_file()).then_some(script)
    }
}

/// Runs it; returns the exit code.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    start(arguments, None)
}

/// Runs it in a sandbox that exists.
pub(crate) fn main_named(arguments: Arguments, name: &str) -> Result<u8> {
    if arguments.name.is_some() || arguments.image.is_some() {
        bail!("--name and --image are for wardian run");
    }
    start(arguments, Some(name))
}

fn start(arguments: Arguments, existing: Option<&str>) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(run(arguments, existing));
    // What a command in the background began to compile is kept for the next start.
    wardian::finish_preparing();
    code
}

async fn run(arguments: Arguments, existing: Option<&str>) -> Result<u8> {
    let (script, reads) = script(&arguments)?;
    if arguments.isolation == Isolation::Process {
        return run_in_cell(&arguments, script, reads, existing).await;
    }
    let stdin = if reads { Input::source(Stdin) } else { Input::empty() };
    let name = existing.or(arguments.name.as_deref());
    if name.is_none() && arguments.image.is_none() && arguments.store.is_given() {
        bail!("--store needs --name or --image");
    }
    let overlays = arguments.sandbox.overlays(arguments.commit.is_some())?;
    let builder = arguments.sandbox.builder(limits(arguments.json))?;
    let explaining = preparing::explain();
    let timeout = (!arguments.timeout.is_zero()).then_some(arguments.timeout);
    let builder = builder.timeout(timeout);
    let sandbox = match (name, &arguments.image) {
        (Some(name), _) => {
            open_named(&arguments.store.open()?, name, &arguments.sandbox, builder, existing.is_none())
                .await?
        }
        (None, Some(image)) => builder.image(&arguments.store.open()?, image).build().await?,
        (None, None) => builder.build().await?,
    };
    let mut run = Run::new(script).stdin(stdin).timeout(timeout);
    if name.is_none() {
        run = run.last();
    }
    let code =
        if arguments.json { print_json(&sandbox, run).await? } else { pass_through(&sandbox, run).await? };
    drop(explaining);
    if let Some(file) = arguments.misplaced_file(code) {
        remark!("wardian: {file} is a file on this machine; to run it, use wardian run --file {file}");
    }
    for Mount { host, path, .. } in &overlays {
        if let Some(branch) = arguments.commit.as_deref().filter(|_| code == 0) {
            let changes = sandbox.file_changes(path).await?;
            commit(host, changes, branch, &arguments.message)
                .await
                .with_context(|| format!("{path}: nothing was committed"))?;
        }
        arguments.sandbox.settle(&sandbox, path, code).await?;
    }
    if name.is_some() {
        sandbox.close().await?;
    }
    Ok(code)
}

/// Runs it in a new sandbox in a process of its own.
async fn run_in_cell(
    arguments: &Arguments,
    command: Vec<u8>,
    input: bool,
    existing: Option<&str>,
) -> Result<u8> {
    if existing.is_some() {
        bail!("--isolation process: a sandbox with a name cannot be in a process of its own yet");
    }
    if let Some(option) = arguments.beyond_a_cell() {
        bail!("{option} is not supported with --isolation process yet");
    }
    let explaining = preparing::explain();
    let timeout = (!arguments.timeout.is_zero()).then_some(arguments.timeout);
    let limits = arguments.sandbox.limits(limits(arguments.json));
    let (env, cwd) = (arguments.sandbox.variables()?, arguments.sandbox.cwd().map(str::to_owned));
    let script = cell::Script { command, timeout, input };
    let result = cell::run(script, env, cwd, &limits, arguments.json).await?;
    drop(explaining);
    if arguments.json {
        say!("{}", result_object(&result))?;
    } else if let Some(line) = limit_line(&result, &limits) {
        remark!("{line}");
    }
    if let Some(file) = arguments.misplaced_file(result.exit_code) {
        remark!("wardian: {file} is a file on this machine; to run it, use wardian run --file {file}");
    }
    Ok(result.exit_code)
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

/// Output that only passes through needs no cap.
pub(crate) fn limits(kept: bool) -> Limits {
    let limits = Limits { command_bytes: usize::MAX, ..Limits::default() };
    if kept { limits } else { Limits { stdout_bytes: usize::MAX, stderr_bytes: usize::MAX, ..limits } }
}

/// The script, and whether standard input is left for it to read.
fn script(arguments: &Arguments) -> Result<(Vec<u8>, bool)> {
    let (given, rest) = (arguments.script.as_deref(), &arguments.arguments);
    if let Some(file) = &arguments.file {
        let script = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.to_string_lossy();
        let words = [name.as_ref()].into_iter().chain(given).chain(rest.iter().map(String::as_str));
        return Ok((with_arguments("bash", &script, words), true));
    }
    if let Some(code) = &arguments.python {
        let words = given.into_iter().chain(rest.iter().map(String::as_str));
        return Ok((with_arguments("python3", code.as_bytes(), words), true));
    }
    let (script, reads) = match given {
        Some("-") => {
            let mut script = Vec::new();
            std::io::stdin().read_to_end(&mut script).context("cannot read standard input")?;
            (script, false)
        }
        Some(script) => (script.as_bytes().to_vec(), true),
        None => bail!("no script"),
    };
    if rest.is_empty() {
        return Ok((script, reads));
    }
    Ok((with_arguments("bash", &script, rest.iter().map(String::as_str)), reads))
}

/// A script that runs another with its own arguments, in a process of its own: `bash -c SCRIPT WORDS…`, or the same for Python.
fn with_arguments<'a>(program: &str, script: &'a [u8], words: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut command = format!("{program} -c").into_bytes();
    for word in std::iter::once(script).chain(words.map(str::as_bytes)) {
        command.extend_from_slice(b" '");
        for byte in word {
            match byte {
                b'\'' => command.extend_from_slice(b"'\\''"),
                byte => command.push(*byte),
            }
        }
        command.push(b'\'');
    }
    command
}

async fn pass_through(sandbox: &Sandbox, run: Run) -> Result<u8> {
    let (run, copying) = copy_output(run);
    let result = sandbox.run_with(run).await;
    // The senders are gone with the run, so the threads end when they have written what there was.
    let copied = copying.end();
    let result = result?;
    copied?;
    if let Some(line) = limit_line(&result, sandbox.limits()) {
        remark!("{line}");
    }
    Ok(result.exit_code)
}

/// What to say of a limit that was hit, unless the sandbox has said it: what it says of a run is all there is in the result
/// of one whose output was passed through.
fn limit_line(result: &RunResult, limits: &Limits) -> Option<String> {
    let limit = result.limit?;
    let reached = match limits.value(limit) {
        Some(value) => format!("{limit} limit of {value} reached"),
        None => format!("{limit} limit reached"),
    };
    let said = String::from_utf8_lossy(&result.stderr).contains(&reached);
    (!said).then(|| format!("wardian: {reached}"))
}

async fn print_json(sandbox: &Sandbox, run: Run) -> Result<u8> {
    let result = sandbox.run_with(run).await?;
    say!("{}", result_object(&result))?;
    Ok(result.exit_code)
}
