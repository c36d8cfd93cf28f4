//! The settings: from TOML, overridden by `WARDIAN_TOOLS_*`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::spec::Required;

/// How programs are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// By the workers of the pool.
    #[default]
    Worker,
    /// Each in its own helper process, without queue or lanes.
    ChildProcess,
    /// Not at all: every call is refused.
    Disabled,
}

/// The settings of the host-tool gateway. Durations are in milliseconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether the gateway is enabled; off by default.
    pub enabled: bool,
    /// How programs are run.
    pub mode: Mode,
    /// The jail: the directory programs work in and see.
    pub jail: Option<PathBuf>,
    /// A policy to use instead of the default one.
    pub policy: Option<PathBuf>,
    /// The log of calls.
    pub audit: Option<PathBuf>,
    /// The default timeout of a call.
    pub timeout_ms: u64,
    /// The longest timeout a call may ask for: each call occupies a worker.
    pub max_timeout_ms: u64,
    /// How many bytes of each stream are kept.
    pub max_output: usize,
    /// Environment variables of the host process to pass to programs.
    pub pass_env: Vec<String>,
    /// Values that must not appear in any output or record.
    pub secrets: Vec<String>,
    /// Files and directories programs may read in addition to the jail and the system's.
    pub readable: Vec<PathBuf>,
    /// Resource limits of a program.
    pub limits: ProgramLimits,
    /// The worker pool.
    pub pool: PoolConfig,
    /// Run without landlock if the kernel lacks it.
    pub allow_without_landlock: bool,
    /// Run without seccomp if the kernel lacks it.
    pub allow_without_seccomp: bool,
    /// Run without `openat2` if the kernel lacks it.
    pub allow_without_openat2: bool,
}

/// Resource limits of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgramLimits {
    /// Maximum bytes of address space.
    pub memory: u64,
    /// Maximum number of open descriptors.
    pub files: u64,
    /// Maximum number of processes of the user.
    pub processes: u64,
    /// Maximum bytes of a file it writes.
    pub file_size: u64,
}

/// The worker pool: its size, queue and grace periods.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolConfig {
    /// The helper and its arguments; by default this program with `__worker`.
    pub worker: Vec<PathBuf>,
    /// Workers for calls of agents and people; by default one less than there are cores, at most two, at least one.
    pub interactive: Option<usize>,
    /// Workers for housekeeping.
    pub system: usize,
    /// How many calls may wait in each lane.
    pub queue_depth: usize,
    /// Time from SIGTERM at the timeout to SIGKILL.
    pub kill_grace_ms: u64,
    /// How long a worker may take to confirm that a call has ended before it is replaced.
    pub confirm_grace_ms: u64,
    /// How long a shutdown may take.
    pub shutdown_grace_ms: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            enabled: false,
            mode: Mode::Worker,
            jail: None,
            policy: None,
            audit: None,
            timeout_ms: 30_000,
            max_timeout_ms: 3_600_000,
            max_output: 1 << 20,
            pass_env: Vec::new(),
            secrets: Vec::new(),
            readable: Vec::new(),
            limits: ProgramLimits::default(),
            pool: PoolConfig::default(),
            allow_without_landlock: false,
            allow_without_seccomp: false,
            allow_without_openat2: false,
        }
    }
}

impl Default for ProgramLimits {
    fn default() -> ProgramLimits {
        ProgramLimits { memory: 2 << 30, files: 256, processes: 256, file_size: 256 << 20 }
    }
}

impl Default for PoolConfig {
    fn default() -> PoolConfig {
        PoolConfig {
            worker: Vec::new(),
            interactive: None,
            system: 1,
            queue_depth: 10,
            kill_grace_ms: 5_000,
            confirm_grace_ms: 10_000,
            shutdown_grace_ms: 10_000,
        }
    }
}

impl PoolConfig {
    /// Returns how many workers serve agents and people.
    pub fn interactive_workers(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.interactive_workers_on(cores)
    }

    fn interactive_workers_on(&self, cores: usize) -> usize {
        self.interactive.unwrap_or(cores.saturating_sub(1).min(2)).max(1)
    }
}

/// An invalid setting.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

impl Config {
    /// Reads the settings from a TOML file, overridden by those of the environment.
    pub fn from_file(file: &Path) -> Result<Config, ConfigError> {
        Config::default().with_settings(Some(file))
    }

    /// Reads the settings from the environment.
    pub fn from_environment() -> Result<Config, ConfigError> {
        Config::default().with_settings(None)
    }

    /// Reads the settings from a TOML file, if there is one, overridden by those of the environment. If neither says
    /// whether tools are enabled, `self` decides; the rest of `self` is ignored if there is a file.
    pub fn with_settings(self, file: Option<&Path>) -> Result<Config, ConfigError> {
        let Some(file) = file else { return self.with_environment(variables()) };
        let failed = |error: &dyn std::fmt::Display| ConfigError(format!("{}: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
        let mut config: Config = toml::from_str(&text).map_err(|error| failed(&error))?;
        let said: toml::Table = toml::from_str(&text).map_err(|error| failed(&error))?;
        if !said.contains_key("enabled") {
            config.enabled = self.enabled;
        }
        config.with_environment(variables())
    }

    /// Overrides these settings with the `WARDIAN_TOOLS_*` among `variables`.
    pub fn with_environment(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        for (name, value) in variables {
            if let Some(setting) = name.strip_prefix("WARDIAN_TOOLS_") {
                self.set(setting, &value).map_err(|why| ConfigError(format!("{name}={value}: {why}")))?;
            }
        }
        Ok(self)
    }

    fn set(&mut self, setting: &str, value: &str) -> Result<(), String> {
        match setting {
            "ENABLED" => self.enabled = truth(value)?,
            "MODE" => {
                self.mode = match value {
                    "worker" => Mode::Worker,
                    "child_process" => Mode::ChildProcess,
                    "disabled" => Mode::Disabled,
                    _ => return Err("is not worker, child_process or disabled".to_owned()),
                }
            }
            "JAIL" => self.jail = Some(value.into()),
            "POLICY" => self.policy = Some(value.into()),
            "AUDIT" => self.audit = Some(value.into()),
            "TIMEOUT_MS" => self.timeout_ms = number(value)?,
            "MAX_TIMEOUT_MS" => self.max_timeout_ms = number(value)?,
            "MAX_OUTPUT" => self.max_output = number(value)?,
            "MEMORY" => self.limits.memory = number(value)?,
            "FILES" => self.limits.files = number(value)?,
            "PROCESSES" => self.limits.processes = number(value)?,
            "FILE_SIZE" => self.limits.file_size = number(value)?,
            "INTERACTIVE_WORKERS" => self.pool.interactive = Some(number(value)?),
            "SYSTEM_WORKERS" => self.pool.system = number(value)?,
            "QUEUE_DEPTH" => self.pool.queue_depth = number(value)?,
            "KILL_GRACE_MS" => self.pool.kill_grace_ms = number(value)?,
            "CONFIRM_GRACE_MS" => self.pool.confirm_grace_ms = number(value)?,
            "SHUTDOWN_GRACE_MS" => self.pool.shutdown_grace_ms = number(value)?,
            "ALLOW_WITHOUT_LANDLOCK" => self.allow_without_landlock = truth(value)?,
            "ALLOW_WITHOUT_SECCOMP" => self.allow_without_seccomp = truth(value)?,
            "ALLOW_WITHOUT_OPENAT2" => self.allow_without_openat2 = truth(value)?,
            _ => return Err("unknown setting".to_owned()),
        }
        Ok(())
    }

    /// Returns the default timeout of a call.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// Returns what must be in force before a program runs.
    pub fn required(&self) -> Required {
        Required { landlock: !self.allow_without_landlock, seccomp: !self.allow_without_seccomp }
    }
}

/// The environment of this process.
fn variables() -> impl Iterator<Item = (String, String)> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

fn number<N: std::str::FromStr>(value: &str) -> Result<N, String> {
    value.parse().map_err(|_| "is not a number".to_owned())
}

fn truth(value: &str) -> Result<bool, String> {
    match value {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("is neither true nor false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_leave_a_core_to_others_and_are_one_or_two() {
        let usual = PoolConfig::default();
        for (cores, workers) in [(1, 1), (2, 1), (3, 2), (4, 2), (64, 2)] {
            assert_eq!(usual.interactive_workers_on(cores), workers, "{cores} cores");
        }
        let set = |interactive| PoolConfig { interactive: Some(interactive), ..PoolConfig::default() };
        assert_eq!((set(7).interactive_workers_on(2), set(0).interactive_workers_on(8)), (7, 1));
    }
}
