//! `wardian audit`: looking after audit logs.

use std::path::PathBuf;

use anyhow::Result;

/// Look after audit logs.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Find any edit, gap or truncation in a log and its older parts; exits with 1 if there is one.
    #[command(after_help = "Examples:\n  wardian audit verify /var/log/agent.jsonl && echo whole")]
    Verify {
        /// The log.
        file: PathBuf,
    },
}

/// Does it; answers the exit code.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    let Command::Verify { file } = arguments.command;
    match wardian::verify_audit(&file) {
        Ok(checked) => {
            let (records, files) = (checked.records, checked.files);
            println!("{}: whole; records: {records}, files: {files}", file.display());
            Ok(0)
        }
        Err(error @ wardian::VerifyError::Io { .. }) => Err(error.into()),
        Err(error) => {
            eprintln!("wardian: {error}");
            Ok(1)
        }
    }
}
