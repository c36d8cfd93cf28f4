//! `wardian store`: checking, repairing and tidying up a store.

use anyhow::Result;
use wardian::StoreRetention;

use super::StoreFlags;
use crate::out::{remark, say};

/// Check, repair and tidy up a store.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Read everything and check it against its hashes; exits with 1 if something is damaged.
    Verify {
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Set sandboxes whose last commit is damaged back to their newest whole one; exits with 1 if one is lost.
    Repair {
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Forget old commits and free what only they need. Heads and tagged commits are always kept.
    Gc {
        #[command(flatten)]
        store: StoreFlags,
        /// Keep the last so many commits of each sandbox.
        #[arg(long, value_name = "N", default_value_t = StoreRetention::default().last)]
        keep: usize,
        /// Keep the last commit of so many days.
        #[arg(long, value_name = "N", default_value_t = StoreRetention::default().days)]
        days: usize,
    },
    /// Show the store's size.
    Usage {
        #[command(flatten)]
        store: StoreFlags,
    },
}

/// Executes the command; returns the exit code.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    match arguments.command {
        Command::Verify { store } => {
            let found = store.open()?.verify()?;
            for (hash, why) in &found.damaged {
                remark!("wardian: object {hash}: {why}");
            }
            for damage in &found.names {
                let can = match damage.whole {
                    Some(whole) => format!("commit {whole} is whole"),
                    None => "no commit is whole".to_owned(),
                };
                let head = if damage.head { ", the last one among them" } else { "" };
                remark!("wardian: {}: {} damaged commits{head}; {can}", damage.name, damage.commits.len());
            }
            say!("{} objects, {} commits checked", found.objects, found.commits)?;
            Ok(u8::from(!found.is_whole()))
        }
        Command::Repair { store } => {
            let repaired = store.open()?.repair()?;
            for (name, commit) in &repaired.set_back {
                say!("{name}: back at commit {commit}")?;
            }
            for name in &repaired.lost {
                remark!("wardian: {name}: nothing of it is whole");
            }
            say!("{} damaged objects, {} stray files removed", repaired.removed, repaired.files)?;
            Ok(u8::from(!repaired.lost.is_empty()))
        }
        Command::Gc { store, keep, days } => {
            let freed = store.open()?.collect(StoreRetention { last: keep, days })?;
            say!("{} commits, {} objects, {} bytes freed", freed.commits, freed.objects, freed.bytes)?;
            Ok(0)
        }
        Command::Usage { store } => {
            let (objects, bytes) = store.open()?.usage()?;
            say!("{objects} objects, {bytes} bytes")?;
            Ok(0)
        }
    }
}
