//! `wardian sandbox`: sandboxes with names, which survive the process.

use std::path::PathBuf;

use anyhow::{Result, bail};
use wardian::{Builder, Error, Sandbox, Store, StoreError};

use super::{MovingLimits, StoreFlags, at_once, read, say_name, shown_age, shown_time, write_new};
use crate::out::say;
use crate::sandbox::SandboxOptions;
use crate::{preparing, run, shell};

/// Manage named sandboxes, which are saved after every command.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wardian sandbox new work --mount .:/src:overlay
  wardian sandbox run work 'cd /src && make'
  wardian sandbox shell work
  wardian sandbox log work
  wardian sandbox diff work 3 5
  wardian sandbox restore work 3
  wardian sandbox rm work")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List sandboxes.
    #[command(visible_alias = "list")]
    Ls {
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Create a sandbox.
    New(Box<New>),
    /// Run a script in a sandbox and exit with its code.
    Run(Box<NamedRun>),
    /// Open an interactive shell in a sandbox.
    Shell(Box<NamedShell>),
    /// Show what was done in a sandbox, newest first: commit, time, exit code, bytes changed, command.
    Log {
        /// The sandbox.
        name: String,
        /// Show at most so many.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 30)]
        most: usize,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Show which files differ between two commits; without a second one, from now.
    Diff {
        /// The sandbox.
        name: String,
        /// The first commit, by number or tag.
        from: String,
        /// The second one.
        to: Option<String>,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Go back to a commit. What was done since stays in the log.
    Restore {
        /// The sandbox.
        name: String,
        /// The commit, by number or tag.
        commit: String,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Create another sandbox from a commit of one.
    Branch {
        /// The sandbox.
        name: String,
        /// The new one.
        new: String,
        /// The commit, by number or tag; the last one by default.
        #[arg(long)]
        commit: Option<String>,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Give a commit a tag, which keeps it from being collected.
    Tag {
        /// The sandbox.
        name: String,
        /// The tag.
        tag: String,
        /// The commit's number; the last one by default.
        commit: Option<i64>,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Write a sandbox to a file, to take it to another store. Its options, its mounts and its log are not in it.
    Export {
        /// The sandbox.
        name: String,
        /// The file, which must not exist.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The commit, by number or tag; the last one by default.
        #[arg(long)]
        commit: Option<String>,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Import a sandbox from a file, with the default options except its limits.
    Import {
        /// The file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The sandbox's name, if not the one it had.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        limits: MovingLimits,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Remove a sandbox and all its commits.
    Rm {
        /// The sandbox.
        name: String,
        #[command(flatten)]
        store: StoreFlags,
    },
}

#[derive(clap::Args)]
struct New {
    /// The name: NAME or NAMESPACE/NAME.
    name: String,
    /// Start from this image.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    #[command(flatten)]
    sandbox: SandboxOptions,
    #[command(flatten)]
    store: StoreFlags,
}

#[derive(clap::Args)]
struct NamedRun {
    /// The sandbox.
    sandbox_name: String,
    #[command(flatten)]
    command: run::Arguments,
}

#[derive(clap::Args)]
struct NamedShell {
    /// The sandbox.
    sandbox_name: String,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    command: shell::Arguments,
}

/// Executes the command; returns the exit code.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    match arguments.command {
        Command::Run(named) => return run::main_named(named.command, &named.sandbox_name),
        Command::Shell(named) => {
            return shell::main_named(named.command, &named.store.open()?, &named.sandbox_name);
        }
        Command::New(new) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            return runtime.block_on(create(&new));
        }
        Command::Ls { store } => {
            for found in store.open()?.list()? {
                let holder = found.holder.map_or_else(String::new, |holder| format!("  in use by {holder}"));
                say!(
                    "{}  {} commits, {} ago{holder}",
                    found.name,
                    found.commits,
                    shown_age(found.changed_ms)
                )?;
            }
        }
        Command::Log { name, most, store } => {
            for commit in store.open()?.log(&name, None, most)? {
                let code = commit.note.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string());
                let command = String::from_utf8_lossy(&commit.note.command).replace('\n', "; ");
                let tags = if commit.tags.is_empty() {
                    String::new()
                } else {
                    format!(" [{}]", commit.tags.join(", "))
                };
                let time = shown_time(commit.time_ms);
                say!("{:>6}  {time}  {code:>3}  {:>9}  {command}{tags}", commit.id, commit.bytes)?;
            }
        }
        Command::Diff { name, from, to, store } => {
            for change in store.open()?.diff(&name, &from, to.as_deref())? {
                say!("{} {}", change.what.letter(), String::from_utf8_lossy(&change.path))?;
            }
        }
        Command::Restore { name, commit, store } => {
            let id = store.open()?.checkout(&name, &commit)?;
            say!("{name} is at commit {id}")?;
        }
        Command::Branch { name, new, commit, store } => {
            store.open()?.branch(&name, commit.as_deref(), &new)?;
        }
        Command::Tag { name, tag, commit, store } => {
            let store = store.open()?;
            let newest = || store.log(&name, None, 1).map(|log| log.first().map_or(0, |commit| commit.id));
            let commit = commit.map_or_else(newest, Ok)?;
            store.tag(&name, &tag, commit)?;
        }
        Command::Export { name, file, commit, store } => {
            let store = store.open()?;
            let _explaining = preparing::explain();
            write_new(&file, &at_once(store.export_sandbox(&name, commit.as_deref()))?)?;
        }
        Command::Import { file, name, limits, store } => {
            let store = store.open()?;
            let exported = read(&file)?;
            let _explaining = preparing::explain();
            let made = at_once(async {
                let sandbox = store.import_sandbox(exported, name.as_deref(), limits.builder()).await?;
                let name = sandbox.name().unwrap_or_default();
                sandbox.close().await?;
                Ok(name)
            })?;
            say_name(name.is_none(), &made);
        }
        Command::Rm { name, store } => store.open()?.remove(&name)?,
    }
    Ok(0)
}

async fn create(new: &New) -> Result<u8> {
    if new.sandbox.diff || new.sandbox.apply {
        bail!("--diff and --apply are for commands");
    }
    let store = new.store.open()?;
    let mut builder = new.sandbox.builder(run::limits(false))?;
    if let Some(image) = &new.image {
        builder = builder.image(&store, image);
    }
    let _explaining = preparing::explain();
    let sandbox = builder.persist(&store, &new.name).build().await?;
    say!("{}", sandbox.name().unwrap_or_default())?;
    sandbox.close().await?;
    Ok(0)
}

/// Opens the sandbox with this name or, if `create` says so, creates it. What a sandbox keeps cannot be chosen again.
pub(crate) async fn open_named(
    store: &Store,
    name: &str,
    options: &SandboxOptions,
    builder: Builder,
    create: bool,
) -> Result<Sandbox> {
    let found = store.log(name, None, 1);
    if create && matches!(&found, Err(Error::Store(StoreError::Missing(_)))) {
        return Ok(builder.persist(store, name).build().await?);
    }
    found?;
    if let Some(option) = options.kept() {
        bail!("{option}: {name} keeps the options it was created with");
    }
    Ok(store.resume_with(name, builder).await?)
}
