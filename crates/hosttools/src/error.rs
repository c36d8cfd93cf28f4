//! Why a call was not run, or not to its end: one error for each stage, with a code that does not change.

use std::path::PathBuf;

/// The stages of the door, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Is the door open at all?
    Gate,
    /// The line becomes words.
    Tokenize,
    /// Is the program known?
    Policy,
    /// Is its subcommand allowed?
    Subcommand,
    /// Is none of its flags denied?
    Flags,
    /// Do all paths stay inside?
    Jail,
    /// Is it on record?
    AuditBefore,
    /// It runs.
    Execute,
    /// Secrets are taken out, the end is recorded.
    AuditAfter,
}

impl Stage {
    /// Its name in messages and records.
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
pub enum ToolError {
    /// The door is off.
    #[error("native tools are switched off: {0}")]
    Disabled(String),
    /// The line is not a plain command.
    #[error("not a plain command: {0}")]
    Syntax(String),
    /// The policy does not know the program, or it is not installed.
    #[error("{program}: {why}")]
    ProgramDenied {
        /// What was asked for.
        program: String,
        /// Why not.
        why: String,
    },
    /// The program may run, but not with this subcommand.
    #[error("{program} {subcommand}: {why}")]
    SubcommandDenied {
        /// The program.
        program: String,
        /// The subcommand, empty where none was given.
        subcommand: String,
        /// Why not.
        why: String,
    },
    /// A flag is denied.
    #[error("{program}: {flag} is denied: {why}")]
    FlagDenied {
        /// The program.
        program: String,
        /// The flag as it was given.
        flag: String,
        /// Which rule it meets.
        why: String,
    },
    /// A path leads out of the jail, or nobody can tell that it does not.
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
        /// Why not.
        why: String,
    },
    /// The operating system cannot hold what is required of it.
    #[error("{0} is not available here; it can be done without by configuration only")]
    ConfinementUnavailable(String),
    /// Nothing runs that is not on record.
    #[error("nothing was run: {0}")]
    AuditFailed(String),
    /// All workers are busy and the queue is full. Trying again later helps.
    #[error("all workers are busy and {queued} calls are waiting: try again later")]
    WorkerUnavailable {
        /// How many wait already.
        queued: usize,
    },
    /// The pool is closing.
    #[error("the pool is shutting down")]
    ShuttingDown,
    /// The worker died; the pool has another.
    #[error("the worker was lost: {0}")]
    WorkerLost(String),
    /// The program could not be started.
    #[error("{} could not be started: {why}", .program.display())]
    StartFailed {
        /// Which program.
        program: PathBuf,
        /// Why not.
        why: String,
    },
    /// It ran, but its end could not be recorded: what it wrote is withheld.
    #[error("the end of the call could not be recorded: {0}")]
    RecordLost(String),
}

impl ToolError {
    /// A name for programs; it does not change.
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

    /// Which stage said so.
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
