//! `wardian man`: manual pages, made from the same descriptions as `--help`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::out;

/// Print the manual page, or write the pages of all commands to a directory.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wardian man | man -l -
  wardian man --dir ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// Write wardian.1, wardian-run.1 and so on to this directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints or writes them; returns the exit code.
pub(crate) fn main(arguments: Arguments, command: clap::Command) -> Result<u8> {
    match arguments.dir {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            out::write(&page)?;
        }
        Some(dir) => {
            let cannot = || format!("cannot write to {}", dir.display());
            fs::create_dir_all(&dir).with_context(cannot)?;
            clap_mangen::generate_to(command, &dir).with_context(cannot)?;
        }
    }
    Ok(0)
}
