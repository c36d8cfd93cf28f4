//! The gateway itself: nine stages, in order.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wardian_audit::{AuditLog, Rotation};

use crate::arguments;
use crate::audit::{Owed, Recorder};
use crate::config::{Config, ConfigError};
use crate::environment;
use crate::error::ToolError;
use crate::flags;
use crate::gate;
use crate::jail::Jail;
use crate::output::{Relay, cleaned};
use crate::policy::{FlagRules, Policy, ProgramPolicy, locate};
use crate::pool::{Stats, WorkerPool};
use crate::redact::Redactor;
use crate::request::Request;
use crate::spec::{Confinement, ExecSpec, Finished, HeldDirectory};
use crate::subcommand;

/// The host-tool gateway: runs native programs for an agent, as far as the policy allows. Cloning the handle shares it.
#[derive(Clone)]
pub struct ToolSandbox(Arc<Door>);

impl std::fmt::Debug for ToolSandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let enabled = self.0.inside.is_some();
        f.debug_struct("ToolSandbox").field("enabled", &enabled).finish_non_exhaustive()
    }
}

struct Door {
    config: Config,
    policy: Policy,
    redactor: Redactor,
    recorder: Recorder,
    passed_env: Vec<(String, std::ffi::OsString)>,
    /// None if the gateway is disabled: then nothing needs them.
    inside: Option<Inside>,
}

struct Inside {
    jail: Jail,
    pool: WorkerPool,
}

impl ToolSandbox {
    /// Opens a gateway with the policy and the audit log named in the settings. Must be called inside a tokio runtime,
    /// on which the pool then runs.
    pub fn open(config: Config) -> Result<ToolSandbox, OpenError> {
        ToolSandbox::open_or(config, Policy::standard)
    }

    /// Does the same, with this policy if the settings name none.
    pub fn open_or(config: Config, default: impl FnOnce() -> Policy) -> Result<ToolSandbox, OpenError> {
        let policy = match &config.policy {
            Some(file) => Policy::from_file(file)?,
            None => default(),
        };
        let Some(file) = &config.audit else {
            return Err(
                ConfigError("audit: a log is needed, nothing runs without a record".to_owned()).into()
            );
        };
        let log = AuditLog::to_file(file, Rotation::default())
            .map_err(|error| ToolError::AuditFailed(error.to_string()))?;
        ToolSandbox::with(config, policy, log)
    }

    /// Opens a gateway with this policy and this audit log.
    pub fn with(config: Config, policy: Policy, log: AuditLog) -> Result<ToolSandbox, OpenError> {
        let passed_env = environment::passed(&config.pass_env);
        let redactor = Redactor::new(environment::secrets(&config.secrets, &passed_env))?;
        let recorder = Recorder::new(log, redactor.clone());
        let inside = match gate::open(&config) {
            Ok(()) => Some(Inside::open(&config)?),
            Err(_) => None,
        };
        Ok(ToolSandbox(Arc::new(Door { config, policy, redactor, recorder, passed_env, inside })))
    }

    /// Returns a gateway with the same settings, policy, log and pool whose jail is another directory. Blocks.
    pub fn within(&self, jail: &Path) -> Result<ToolSandbox, ToolError> {
        let door = &self.0;
        let pool = door.inside()?.pool.clone();
        let config = Config { jail: Some(jail.to_owned()), ..door.config.clone() };
        let jail = Jail::open(jail, config.allow_without_openat2)?;
        Ok(ToolSandbox(Arc::new(Door {
            config,
            policy: door.policy.clone(),
            redactor: door.redactor.clone(),
            recorder: door.recorder.clone(),
            passed_env: door.passed_env.clone(),
            inside: Some(Inside { jail, pool }),
        })))
    }

    /// Returns what would be run: stages 1 to 6, without running or recording anything. It accesses files, so it blocks.
    pub fn check(&self, request: &Request) -> Result<ExecSpec, ToolError> {
        self.0.prepare(request)
    }

    /// Runs a program: all nine stages. Dropping the future kills the program, which is recorded as well.
    pub async fn run(&self, request: Request) -> Result<Finished, ToolError> {
        let (request, spec, owed) = self.admitted(request).await?;
        let ran = self.execute(&request, spec).await;
        let recorded = match &ran {
            Ok(finished) => owed.complete(finished),
            Err(error) => owed.failed(error),
        };
        recorded.map_err(|error| ToolError::RecordLost(error.to_string()))?;
        ran
    }

    /// Stages 1 to 7. They access files, which must not block the runtime.
    async fn admitted(&self, request: Request) -> Result<(Request, ExecSpec, Owed), ToolError> {
        let door = self.0.clone();
        let admit = move || {
            let unrecorded = |error: wardian_audit::AuditError| ToolError::AuditFailed(error.to_string());
            match door.prepare(&request) {
                Ok(spec) => {
                    let owed = door.recorder.start(&request, &spec).map_err(unrecorded)?;
                    Ok((request, spec, owed))
                }
                Err(refusal) => {
                    door.recorder.refused(&request, &refusal).map_err(unrecorded)?;
                    Err(refusal)
                }
            }
        };
        let lost = |error: tokio::task::JoinError| ToolError::AuditFailed(error.to_string());
        tokio::task::spawn_blocking(admit).await.map_err(lost)?
    }

    /// Stage 8, and the part of stage 9 that concerns the output.
    async fn execute(&self, request: &Request, spec: ExecSpec) -> Result<Finished, ToolError> {
        let pool = &self.0.inside()?.pool;
        let max_output = spec.max_output;
        let (sink, relay) = match &request.output {
            Some(to) => {
                let (sink, relay) = Relay::new(&self.0.redactor, max_output, to.clone());
                (Some(sink), Some(relay))
            }
            None => (None, None),
        };
        let ran = pool.run(spec, request.lane, &request.session, sink).await;
        if let Some(relay) = relay {
            relay.finish(&ran).await;
        }
        cleaned(&self.0.redactor, ran?, max_output).await
    }

    /// Returns the policy in force.
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// Returns the jail, with links resolved; none if the gateway is disabled.
    pub fn jail(&self) -> Option<&Path> {
        self.0.inside.as_ref().map(|inside| inside.jail.root().path())
    }

    /// Returns the pool's statistics; nothing if the gateway is disabled.
    pub fn stats(&self) -> Option<Stats> {
        self.0.inside.as_ref().map(|inside| inside.pool.stats())
    }

    /// Returns the pool, for the caller's own housekeeping; none if the gateway is disabled.
    pub fn pool(&self) -> Option<&WorkerPool> {
        self.0.inside.as_ref().map(|inside| &inside.pool)
    }

    /// Accepts no more calls and stops the running ones.
    pub async fn shutdown(&self) {
        if let Some(inside) = &self.0.inside {
            inside.pool.shutdown().await;
        }
    }
}

impl Inside {
    fn open(config: &Config) -> Result<Inside, OpenError> {
        let Some(jail) = &config.jail else {
            return Err(ConfigError("jail: a directory to work in is needed".to_owned()).into());
        };
        Ok(Inside {
            jail: Jail::open(jail, config.allow_without_openat2)?,
            pool: WorkerPool::start(config.mode, &config.pool)?,
        })
    }
}

impl Door {
    fn inside(&self) -> Result<&Inside, ToolError> {
        self.inside.as_ref().ok_or_else(|| ToolError::Disabled("it was when it was set up".to_owned()))
    }

    /// Stages 1 to 6: each can only reject the call.
    fn prepare(&self, request: &Request) -> Result<ExecSpec, ToolError> {
        gate::open(&self.config)?;
        let jail = &self.inside()?.jail;
        let words = request.tokenized()?;
        let (name, args) =
            words.split_first().ok_or_else(|| ToolError::Syntax("empty command".to_owned()))?;
        let policy = self.policy.program(name)?;
        let program = locate(name, policy, jail.root().path())?;
        let parts = subcommand::allowed(name, policy, args)?;
        let rules = match parts.subcommand.and_then(|name| policy.subcommands.get(name)) {
            Some(own) => policy.flags.and(own),
            None => policy.flags.clone(),
        };
        flags::check(name, policy, &rules, &parts)?;
        let cwd = jail.directory(&request.cwd)?;
        for candidate in arguments::paths(policy, &rules, parts.rest)? {
            jail.check(&cwd, &candidate)?;
        }
        let args = parts.before.iter().map(String::as_str).chain(parts.subcommand);
        let args =
            args.chain(rules.insert.iter().map(String::as_str)).chain(parts.rest.iter().map(String::as_str));
        Ok(ExecSpec {
            program,
            name: name.into(),
            args: args.map(Into::into).collect(),
            env: environment::environment(
                &self.passed_env,
                policy,
                &request.env,
                jail.root().path(),
                cwd.path(),
            ),
            timeout: self.timeout(request, policy)?,
            max_output: self.config.max_output,
            confinement: self.confinement(policy, &rules, jail.root()),
            cwd,
        })
    }

    fn timeout(&self, request: &Request, policy: &ProgramPolicy) -> Result<Duration, ToolError> {
        let most = self.config.max_timeout_ms;
        match request.timeout {
            Some(asked) if asked > Duration::from_millis(most) => {
                Err(ToolError::Syntax(format!("a timeout of more than {most} ms (max_timeout_ms)")))
            }
            Some(asked) => Ok(asked),
            None => Ok(policy.timeout_ms.map_or(self.config.timeout(), Duration::from_millis)),
        }
    }

    fn confinement(&self, policy: &ProgramPolicy, rules: &FlagRules, jail: &HeldDirectory) -> Confinement {
        let limits = &self.config.limits;
        Confinement {
            jail: jail.clone(),
            readable: self.config.readable.clone(),
            writable: Vec::new(),
            write: policy.write,
            attributes: policy.attributes || rules.attributes,
            network: policy.network,
            children: policy.children,
            memory: limits.memory,
            files: limits.files,
            processes: limits.processes,
            file_size: limits.file_size,
            required: self.config.required(),
        }
    }
}

/// Why a gateway could not be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting or the policy is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The jail, the log or the pool is unavailable.
    #[error(transparent)]
    Tool(#[from] ToolError),
}
