//! `wardian tools`: native programs through the host-tool gateway.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use wardian_hosttools::{Config, Mode, Policy, Request, State, Stream, ToolSandbox, doctor};

use crate::out::{OutputError, remark, say};
use crate::state::state_directory;
use crate::{duration, out};

/// The gateway said no.
const REFUSED: u8 = 126;
/// It took too long.
const TIMED_OUT: u8 = 124;

/// Run host programs under a policy.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wardian tools run -- git status
  wardian tools run --jail ~/project -- grep -rn TODO src
  wardian tools check -- git -c x status      # says which stage would refuse it, and why
  wardian tools policy show
  wardian tools doctor")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Run a program, if it is allowed, and exit with its code; 126 if it is not, 124 on timeout.
    Run {
        #[command(flatten)]
        door: Door,
        /// Timeout (200ms, 1.5s, 2m).
        #[arg(long, value_name = "TIME", value_parser = duration::parse)]
        timeout: Option<Duration>,
        #[command(flatten)]
        called: Called,
    },
    /// Check whether a call would be allowed; exits with 1 if not.
    Check {
        #[command(flatten)]
        door: Door,
        #[command(flatten)]
        called: Called,
    },
    /// Show the policy.
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Check which confinement features this machine supports; exits with 1 if one is missing.
    Doctor {
        #[command(flatten)]
        door: Door,
    },
}

#[derive(clap::Subcommand)]
enum PolicyCommand {
    /// Print the policy in force.
    Show {
        #[command(flatten)]
        door: Door,
    },
}

/// Where the gateway stands. WARDIAN_TOOLS_* sets the rest.
#[derive(clap::Args)]
pub(crate) struct Door {
    /// The directory programs work in and see; the current one by default.
    #[arg(long, value_name = "DIR")]
    jail: Option<PathBuf>,
    /// The policy, instead of the default one.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The log of calls; by default tools.jsonl in the user's state directory.
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Settings, as TOML.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Called {
    /// The program and its arguments, or the whole command line as one argument.
    #[arg(required = true, trailing_var_arg = true, value_name = "ARG")]
    words: Vec<OsString>,
}

/// Does it; returns the exit code.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match arguments.command {
            Command::Run { door, timeout, called } => run(door.settings()?, timeout, called).await,
            Command::Check { door, called } => check(door.settings()?, called),
            Command::Policy { command: PolicyCommand::Show { door } } => show_policy(&door.settings()?),
            Command::Doctor { door } => show_health(&door.settings()?).await,
        }
    })
}

impl Door {
    /// The settings: of the file, over them the environment's, over them the command line's.
    fn settings(self) -> Result<Config> {
        let mut config = settings(self.config.as_deref())?;
        config.jail = self.jail.or(config.jail).or(Some(PathBuf::from(".")));
        config.policy = self.policy.or(config.policy);
        config.audit = self.audit.or(config.audit);
        Ok(config)
    }
}

fn settings(file: Option<&Path>) -> Result<Config> {
    // The command implies that tools are enabled, but does not override settings that disable them.
    Ok(Config { enabled: true, ..Config::default() }.with_settings(file)?)
}

/// A gateway whose jail is this directory, for a sandbox that has it mounted: as an overlay, programs work on copies of it.
pub(crate) fn door_to(jail: &Path, overlay: bool) -> Result<ToolSandbox> {
    let config = settings(None)?;
    if !config.enabled {
        bail!("host tools are disabled (WARDIAN_TOOLS_ENABLED=false)");
    }
    if config.mode == Mode::Disabled {
        bail!("host tools are disabled (WARDIAN_TOOLS_MODE=disabled)");
    }
    let policy = if overlay { Policy::for_copies } else { Policy::standard };
    open_or(Config { jail: Some(jail.to_owned()), ..config }, policy)
}

fn open(config: Config) -> Result<ToolSandbox> {
    open_or(config, Policy::standard)
}

fn open_or(mut config: Config, policy: fn() -> Policy) -> Result<ToolSandbox> {
    if config.audit.is_none() {
        config.audit = Some(default_log()?);
    }
    Ok(ToolSandbox::open_or(config, policy)?)
}

/// The log in the user's state directory, which is made if need be.
fn default_log() -> Result<PathBuf> {
    let directory = state_directory().context("no place for a log of calls: name one with --audit")?;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(directory.join("tools.jsonl"))
}

impl Called {
    /// As it was asked for, from here if here is inside the jail.
    fn request(self, config: &Config) -> Request {
        let request = match <[OsString; 1]>::try_from(self.words) {
            Ok([line]) => match line.into_string() {
                Ok(line) => Request::line(line),
                Err(word) => Request::words([word]),
            },
            Err(words) => Request::words(words),
        };
        let jail = config.jail.as_ref().and_then(|jail| jail.canonicalize().ok());
        match (jail, std::env::current_dir().and_then(|here| here.canonicalize())) {
            (Some(jail), Ok(here)) if here.starts_with(&jail) => request.cwd(here),
            _ => request,
        }
    }
}

async fn run(config: Config, timeout: Option<Duration>, called: Called) -> Result<u8> {
    let (sink, mut chunks) = tokio::sync::mpsc::unbounded_channel();
    let mut request = called.request(&config).session("command line").output(sink);
    if let Some(timeout) = timeout {
        request = request.timeout(timeout);
    }
    let door = open(config)?;
    let showing = async {
        while let Some(chunk) = chunks.recv().await {
            match chunk.stream {
                Stream::Stdout => out::write(&chunk.bytes)?,
                Stream::Stderr => out::write_remark(&chunk.bytes),
            }
        }
        Ok::<(), OutputError>(())
    };
    // Output that cannot be written ends the call.
    let running = async { Ok(door.run(request).await) };
    let ran = tokio::try_join!(running, showing);
    door.shutdown().await;
    let (ran, ()) = ran?;
    match ran {
        Ok(finished) if finished.timed_out => {
            remark!("wardian: timed out");
            Ok(TIMED_OUT)
        }
        Ok(finished) => Ok(u8::try_from(finished.status.code()).unwrap_or(u8::MAX)),
        Err(error) => {
            remark!("wardian: {}: {error}", error.code());
            Ok(REFUSED)
        }
    }
}

fn check(config: Config, called: Called) -> Result<u8> {
    let request = called.request(&config);
    let policy = policy(&config)?;
    // Nothing is run, so nothing is recorded.
    let door = ToolSandbox::with(config, policy, wardian::AuditLog::to_callback(|_| ()))?;
    match door.check(&request) {
        Ok(spec) => {
            let args = spec.args.iter().map(|word| word.display().to_string());
            let line: Vec<String> = std::iter::once(spec.program.display().to_string()).chain(args).collect();
            say!("allowed: {} (in {})", line.join(" "), spec.cwd.path().display())?;
            Ok(0)
        }
        Err(error) => {
            say!("refused by stage '{}': {}: {error}", error.stage().name(), error.code())?;
            Ok(1)
        }
    }
}

fn policy(config: &Config) -> Result<Policy> {
    Ok(match &config.policy {
        Some(file) => Policy::from_file(file)?,
        None => Policy::standard(),
    })
}

fn show_policy(config: &Config) -> Result<u8> {
    out::write(policy(config)?.text().as_bytes())?;
    Ok(0)
}

async fn show_health(config: &Config) -> Result<u8> {
    let checks = doctor(config).await?;
    for check in &checks {
        say!("{:12} {:12} {}", check.name, check.state, check.detail)?;
    }
    Ok(u8::from(checks.iter().any(|check| check.state == State::Unavailable)))
}
