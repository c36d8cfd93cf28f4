//! Why a call was rejected or failed: one error for each stage, with a stable code.

use std::path::PathBuf;

/// The stages of the gateway, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// Is the gateway enabled?
    Gate,
    /// The line is split into arguments.
    Tokenize,
    /// Is the program listed?
    Policy,
    /// Is its subcommand allowed?
    Subcommand,
    /// Are none of its flags denied?
    Flags,
    /// Do all paths stay inside the jail?
    Jail,
    /// Is the call recorded?
    AuditBefore,
    /// The program runs.
    Execute,
    /// Secrets are removed, and the end is recorded.
    AuditAfter,
}

impl Stage {
    /// Returns its name in messages and records.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Gate => "gate",
            Stage::Tokenize => "tokenize",
            Stage::Policy => "policy",
            Stage::Subcommand => "subcommand",
            Stage::Flags => "flags",
            Stage::Jail => "jail",
            Stage::AuditBefore => "audit-before",
            Stage::Execute => "execute",
            Stage::AuditAfter => "audit-after",
        }
    }
}

/// Why a call was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The gateway is disabled.
    #[error("native tools are disabled: {0}")]
    Disabled(String),
    /// The line is not a plain command.
    #[error("not a plain command: {0}")]
    Syntax(String),
    /// The policy does not list the program, or it is not installed.
    #[error("{program}: {why}")]
    ProgramDenied {
        /// What was requested.
        program: String,
        /// The reason.
        why: String,
    },
    /// The program may run, but not with this subcommand.
    #[error("{program} {subcommand}: {why}")]
    SubcommandDenied {
        /// The program.
        program: String,
        /// The subcommand, empty if there was none.
        subcommand: String,
        /// The reason.
        why: String,
    },
    /// A flag is denied.
    #[error("{program}: {flag} is denied: {why}")]
    FlagDenied {
        /// The program.
        program: String,
        /// The flag as it was given.
        flag: String,
        /// The rule that denies it.
        why: String,
    },
    /// A path leads outside the jail, or it is impossible to tell that it does not.
    #[error("'{path}' {why}")]
    PathDenied {
        /// The argument.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The jail itself cannot be used.
    #[error("the jail {}: {why}", .jail.display())]
    JailUnusable {
        /// Its directory.
        jail: PathBuf,
        /// The reason.
        why: String,
    },
    /// The operating system cannot enforce what is required.
    #[error("{0} is not available here; it can be done without by configuration only")]
    ConfinementUnavailable(String),
    /// The call could not be recorded, so it did not run.
    #[error("the call was not run, because it could not be logged: {0}")]
    AuditFailed(String),
    /// All workers are busy and the queue is full. Retry later.
    #[error("all workers are busy and {queued} calls are waiting: try again later")]
    WorkerUnavailable {
        /// How many calls are waiting.
        queued: usize,
    },
    /// The pool is shutting down.
    #[error("the pool is shutting down")]
    ShuttingDown,
    /// The worker died; the pool has replaced it.
    #[error("the worker was lost: {0}")]
    WorkerLost(String),
    /// The program could not be started.
    #[error("{} could not be started: {why}", .program.display())]
    StartFailed {
        /// The program.
        program: PathBuf,
        /// The reason.
        why: String,
    },
    /// It ran, but its end could not be recorded, so its output is withheld.
    #[error("the end of the call could not be recorded: {0}")]
    RecordLost(String),
}

impl ToolError {
    /// Returns a stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            ToolError::Disabled(_) => "SANDBOX_DISABLED",
            ToolError::Syntax(_) => "SYNTAX_DENIED",
            ToolError::ProgramDenied { .. } => "PROGRAM_DENIED",
            ToolError::SubcommandDenied { .. } => "SUBCOMMAND_DENIED",
            ToolError::FlagDenied { .. } => "FLAG_DENIED",
            ToolError::PathDenied { .. } => "PATH_DENIED",
            ToolError::JailUnusable { .. } => "JAIL_UNUSABLE",
            ToolError::ConfinementUnavailable(_) => "CONFINEMENT_UNAVAILABLE",
            ToolError::AuditFailed(_) => "AUDIT_FAILED",
            ToolError::WorkerUnavailable { .. } => "WORKER_UNAVAILABLE",
            ToolError::ShuttingDown => "POOL_SHUTTING_DOWN",
            ToolError::WorkerLost(_) => "WORKER_LOST",
            ToolError::StartFailed { .. } => "START_FAILED",
            ToolError::RecordLost(_) => "RECORD_LOST",
        }
    }

    /// Returns the stage that failed.
    pub fn stage(&self) -> Stage {
        match self {
            ToolError::Disabled(_) => Stage::Gate,
            ToolError::Syntax(_) => Stage::Tokenize,
            ToolError::ProgramDenied { .. } => Stage::Policy,
            ToolError::SubcommandDenied { .. } => Stage::Subcommand,
            ToolError::FlagDenied { .. } => Stage::Flags,
            ToolError::PathDenied { .. } | ToolError::JailUnusable { .. } => Stage::Jail,
            ToolError::AuditFailed(_) => Stage::AuditBefore,
            ToolError::ConfinementUnavailable(_)
            | ToolError::WorkerUnavailable { .. }
            | ToolError::ShuttingDown
            | ToolError::WorkerLost(_)
            | ToolError::StartFailed { .. } => Stage::Execute,
            ToolError::RecordLost(_) => Stage::AuditAfter,
        }
    }
}
