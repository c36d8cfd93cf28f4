//! `wardian store`: checking, repairing and tidying up a store.

use std::time::Duration;

use anyhow::{Context, Result};
use wardian::StoreRetention;

use super::{StoreFlags, shown_age};
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
    /// Wait until everything is uploaded to the object store; exits with 1 if it is not.
    Flush {
        #[command(flatten)]
        store: StoreFlags,
        /// Give up after so many seconds.
        #[arg(long, value_name = "N", default_value_t = 600)]
        seconds: u64,
    },
    /// Show the store's size and, of an object store, what is not uploaded.
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
        Command::Flush { store, seconds } => {
            let store = store.open()?;
            let url =
                store.url().context("the store is in a directory: there is nothing to upload")?.to_owned();
            store.flush(Some(Duration::from_secs(seconds)))?;
            say!("{url}: everything is uploaded")?;
            Ok(0)
        }
        Command::Usage { store } => {
            let store = store.open()?;
            let (objects, bytes) = store.usage()?;
            say!("{objects} objects, {bytes} bytes")?;
            if let Some(url) = store.url() {
                let waiting = store.pending()?;
                let age = waiting
                    .oldest_ms
                    .map_or(String::new(), |ms| format!(", the oldest {} old", shown_age(ms)));
                let (commits, objects, bytes) = (waiting.commits, waiting.objects, waiting.bytes);
                say!("{url}: {commits} commits with {objects} objects, {bytes} bytes not uploaded{age}")?;
            }
            Ok(0)
        }
    }
}
