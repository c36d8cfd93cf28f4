//! `wardian mcp`: sandboxes as tools of a language model, by the Model Context Protocol.
//!
//! Every setting is a flag, a variable (`WARDIAN_MCP_TIMEOUT` for `--timeout`) and a key of a TOML file (`timeout`), in that
//! order of precedence.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use wardian::Limits;
use wardian_mcp::{Mount, Options};

use crate::out::Stdout;
use crate::{duration, mount, preparing, size};

/// How the variables begin.
const VARIABLES: &str = "WARDIAN_MCP_";
/// How long a configuration file may be.
const LONGEST_FILE: u64 = 1 << 20;

/// Offer sandboxes to a language model as MCP tools, on standard input and output.
#[derive(clap::Args)]
#[command(after_help = "\
Every option can also be set by a variable (WARDIAN_MCP_MAX_TIMEOUT; mounts and env separated by commas) or in the file:
  timeout = \"30s\"
  mount = [\"./src:/src:overlay\"]

Examples:
  wardian mcp                                 # sandboxes in memory, nothing of the host
  wardian mcp --mount .:/work:overlay --cwd /work
                                              # edits stay in the sandbox until apply_changes")]
pub(crate) struct Arguments {
    /// Read settings from a TOML file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// What can be set. One list for flags, variables and the file.
#[derive(clap::Args, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Settings {
    /// How long a call may run that asks for no timeout; 60s by default.
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// How long a call may run, whatever it asks for; 10m by default.
    #[arg(long, value_name = "DURATION")]
    max_timeout: Option<String>,
    /// How many characters of a result the model is shown; 30000 by default. The rest is kept in a file of the sandbox.
    #[arg(long, value_name = "N")]
    max_output: Option<usize>,
    /// Maximum number of sandboxes at once; 16 by default.
    #[arg(long, value_name = "N")]
    max_sandboxes: Option<usize>,
    /// Memory of all processes of a sandbox together (64M, 1G); 1G by default.
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Size of all files of a sandbox together, mounts not included; 256M by default.
    #[arg(long, value_name = "SIZE")]
    disk: Option<String>,
    /// Maximum number of processes of a sandbox at once.
    #[arg(long, value_name = "N")]
    processes: Option<usize>,
    /// Mount a host directory in every sandbox: HOST:PATH[:ro|rw|overlay].
    #[arg(long, value_name = "MOUNT")]
    mount: Vec<String>,
    /// Set an environment variable: NAME=VALUE.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Start in this directory of the sandbox.
    #[arg(long, value_name = "PATH")]
    cwd: Option<String>,
    /// Directory for exported states. Without it there are no tools to export and import states.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// Serves until the input ends.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config =
        arguments.config.or_else(|| std::env::var_os(format!("{VARIABLES}CONFIG")).map(PathBuf::from));
    let file = config.map(read).transpose()?.unwrap_or_default();
    let options = arguments.settings.over(from_variables(variables)?).over(file).options()?;
    let output = Stdout::asynchronous()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(wardian_mcp::serve(options, tokio::io::stdin(), output));
    // A thread may wait for standard input that never comes.
    runtime.shutdown_background();
    served?;
    Ok(0)
}

fn read(path: PathBuf) -> Result<Settings> {
    let shown = path.display();
    let length = std::fs::metadata(&path).with_context(|| format!("cannot read {shown}"))?.len();
    if length > LONGEST_FILE {
        bail!("{shown} has {length} bytes; at most {LONGEST_FILE} are read");
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
    toml::from_str(&text).with_context(|| format!("{shown} is not a configuration"))
}

/// Reads `WARDIAN_MCP_…`; one that nothing knows is refused.
fn from_variables(variables: impl Iterator<Item = (String, String)>) -> Result<Settings> {
    let mut settings = Settings::default();
    for (name, value) in variables {
        let Some(key) = name.strip_prefix(VARIABLES) else { continue };
        let number = || value.parse().with_context(|| format!("{name} must be a number, not '{value}'"));
        let list = || value.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect();
        match key {
            "CONFIG" => {}
            "TIMEOUT" => settings.timeout = Some(value),
            "MAX_TIMEOUT" => settings.max_timeout = Some(value),
            "MAX_OUTPUT" => settings.max_output = Some(number()?),
            "MAX_SANDBOXES" => settings.max_sandboxes = Some(number()?),
            "MEMORY" => settings.memory = Some(value),
            "DISK" => settings.disk = Some(value),
            "PROCESSES" => settings.processes = Some(number()?),
            "MOUNT" => settings.mount = list(),
            "ENV" => settings.env = list(),
            "CWD" => settings.cwd = Some(value),
            "STATE_DIR" => settings.state_dir = Some(value.into()),
            _ => bail!("{name} is not a setting (see wardian mcp --help)"),
        }
    }
    Ok(settings)
}

impl Settings {
    /// Returns these, and the others where these say nothing.
    fn over(self, other: Settings) -> Settings {
        let list = |these: Vec<String>, others| if these.is_empty() { others } else { these };
        Settings {
            timeout: self.timeout.or(other.timeout),
            max_timeout: self.max_timeout.or(other.max_timeout),
            max_output: self.max_output.or(other.max_output),
            max_sandboxes: self.max_sandboxes.or(other.max_sandboxes),
            memory: self.memory.or(other.memory),
            disk: self.disk.or(other.disk),
            processes: self.processes.or(other.processes),
            mount: list(self.mount, other.mount),
            env: list(self.env, other.env),
            cwd: self.cwd.or(other.cwd),
            state_dir: self.state_dir.or(other.state_dir),
        }
    }

    fn options(self) -> Result<Options> {
        let default = Options::default();
        let time = |text: Option<String>, default| match text {
            Some(text) => match duration::parse(&text).map_err(anyhow::Error::msg)? {
                Duration::ZERO => bail!("a call needs a timeout, and not of 0"),
                time => Ok(time),
            },
            None => Ok(default),
        };
        let bytes = |text: Option<String>, default| match text {
            Some(text) => size::parse(&text).map_err(anyhow::Error::msg),
            None => Ok(default),
        };
        let options = Options {
            timeout: time(self.timeout, default.timeout)?,
            max_timeout: time(self.max_timeout, default.max_timeout)?,
            max_output: self.max_output.unwrap_or(default.max_output),
            max_sandboxes: self.max_sandboxes.unwrap_or(default.max_sandboxes),
            limits: Limits {
                memory_bytes: bytes(self.memory, default.limits.memory_bytes)?,
                fs_bytes: bytes(self.disk, default.limits.fs_bytes)?,
                processes: self.processes.unwrap_or(default.limits.processes),
                ..default.limits
            },
            mounts: self.mount.iter().map(|text| mounted(text)).collect::<Result<_>>()?,
            env: self.env.iter().map(|pair| variable(pair)).collect::<Result<_>>()?,
            cwd: self.cwd,
            state_dir: self.state_dir,
            progress: preparing::tell,
            ..default
        };
        if options.timeout > options.max_timeout {
            bail!("--timeout is longer than --max-timeout");
        }
        if options.max_sandboxes == 0 || options.max_output == 0 {
            bail!("--max-sandboxes and --max-output must be at least 1");
        }
        Ok(options)
    }
}

/// A mount, whose directory must be there: the model could not do anything about it.
fn mounted(text: &str) -> Result<Mount> {
    let mount = mount::parse(text).map_err(anyhow::Error::msg)?;
    if !mount.host.is_dir() {
        bail!("cannot mount {}: not a directory", mount.host.display());
    }
    let host = std::path::absolute(&mount.host)?;
    Ok(Mount { host, path: mount.path, mode: mount.mode })
}

fn variable(pair: &str) -> Result<(String, String)> {
    let (name, value) = pair.split_once('=').with_context(|| format!("not NAME=VALUE: '{pair}'"))?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Result<Settings> {
        from_variables(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn flags_come_before_variables_and_variables_before_the_file() {
        let flags = Settings { timeout: Some("1s".to_owned()), ..Settings::default() };
        let environment = [("WARDIAN_MCP_TIMEOUT", "2s"), ("WARDIAN_MCP_MAX_OUTPUT", "200"), ("OTHER", "x")];
        let file: Settings =
            toml::from_str("timeout = '3s'\nmax-output = 300\nmemory = '64M'\nmount = ['/tmp:/src:overlay']")
                .unwrap();
        let options = flags.over(variables(&environment).unwrap()).over(file).options().unwrap();
        assert_eq!(options.timeout.as_secs(), 1);
        assert_eq!((options.max_output, options.limits.memory_bytes), (200, 64 << 20));
        assert_eq!(options.mounts[0].path, "/src");
    }

    #[test]
    fn what_nothing_knows_is_refused_by_name() {
        assert!(
            variables(&[("WARDIAN_MCP_TIMEOT", "2s")])
                .err()
                .unwrap()
                .to_string()
                .contains("WARDIAN_MCP_TIMEOT")
        );
        assert!(variables(&[("WARDIAN_MCP_MAX_OUTPUT", "many")]).is_err());
        assert!(toml::from_str::<Settings>("timeot = '3s'").is_err());
        for wrong in [
            "timeout = '11m'",
            "max-sandboxes = 0",
            "mount = ['/no/such/directory:/src']",
            "env = ['A']",
            "memory = 'much'",
        ] {
            let settings: Settings = toml::from_str(wrong).unwrap();
            assert!(settings.options().is_err(), "{wrong}");
        }
    }
}
