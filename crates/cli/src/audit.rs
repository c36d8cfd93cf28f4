//! `wardian audit`: checking and repairing audit logs; and `--audit`, which writes one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use wardian::{AuditLog, AuditRotation};
use wardian::{AuditRepaired as Repaired, AuditVerified as Verified, AuditVerifyError as VerifyError};

use crate::out::{OutputError, remark, say};

/// Check and repair audit logs.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Find any edit, gap or truncation in a log and its older parts; exits with 1 if there is one.
    #[command(after_help = "Examples:\n  wardian audit verify /var/log/agent.jsonl && echo intact")]
    Verify {
        /// The log.
        file: PathBuf,
    },
    /// Complete a log whose last write was interrupted, or whose head is missing or damaged.
    #[command(after_help = "\
An incomplete last record is moved to FILE.torn-N, a record that the head does not know of is adopted, and a head that is
missing or damaged is rebuilt from the records; a record in the log says what was done. Programs that write to the log
do the first two themselves when they open it. An edit, a gap or a truncation is refused, and nothing is changed: exits
with 1.

Examples:
  wardian audit repair /var/log/agent.jsonl")]
    Repair {
        /// The log.
        file: PathBuf,
    },
}

/// Opens a log to record in, and begins it if it does not exist.
pub(crate) fn open(file: &Path) -> Result<AuditLog> {
    AuditLog::to_file(file, AuditRotation::default()).with_context(|| format!("--audit {}", file.display()))
}

/// Executes the command; returns the exit code.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    let shown = match arguments.command {
        Command::Verify { file } => wardian::verify_audit(&file).map(|checked| show(&file, &checked)),
        Command::Repair { file } => wardian::repair_audit(&file)
            .map(|(repaired, checked)| tell(&file, &repaired).and_then(|()| show(&file, &checked))),
    };
    match shown {
        Ok(shown) => {
            shown?;
            Ok(0)
        }
        Err(error @ VerifyError::Io { .. }) => Err(error.into()),
        Err(error @ VerifyError::Interrupted { .. }) => {
            remark!("wardian: {error}; `wardian audit repair` completes it");
            Ok(1)
        }
        Err(error) => {
            remark!("wardian: {error}");
            Ok(1)
        }
    }
}

fn show(file: &Path, checked: &Verified) -> Result<(), OutputError> {
    let (file, Verified { records, files, lost, .. }) = (file.display(), checked);
    say!("{file}: intact; records: {records}, files: {files}")?;
    if *lost > 0 {
        say!("{file}: records lost to a full disk or a power failure, as the log itself says: {lost}")?;
    }
    Ok(())
}

fn tell(file: &Path, repaired: &Repaired) -> Result<(), OutputError> {
    let file = file.display();
    if repaired.is_nothing() {
        return say!("{file}: nothing to repair");
    }
    for aside in &repaired.set_aside {
        say!("{file}: incomplete record moved to {}", aside.display())?;
    }
    if let Some(record) = repaired.adopted {
        say!("{file}: record {record} was complete but missing from the head, and has been added")?;
    }
    if let Some(lost) = &repaired.lost {
        say!(
            "{file}: records {} to {} did not reach the disk before the machine was restarted; the log now says so",
            lost.first,
            lost.last
        )?;
    }
    if repaired.head_rebuilt {
        say!(
            "{file}: the head was rebuilt; whether records after the last one are missing cannot be determined"
        )?;
    }
    Ok(())
}
