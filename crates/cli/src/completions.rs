//! `wardian completions`: what a host's shell needs to complete Wardian's command line.

use anyhow::Result;
use clap_complete::Shell;

use crate::out;

/// Print a completion script for your shell.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wardian completions bash > ~/.local/share/bash-completion/completions/wardian
  wardian completions zsh > ~/.zfunc/_wardian
  wardian completions fish > ~/.config/fish/completions/wardian.fish")]
pub(crate) struct Arguments {
    /// Which shell.
    shell: Shell,
}

/// Prints them; returns the exit code.
pub(crate) fn main(arguments: Arguments, mut command: clap::Command) -> Result<u8> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "wardian", &mut text);
    out::write(&text)?;
    Ok(0)
}
