//! `wardian image`: images to start sandboxes from.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use wardian::Run;

use super::{MovingLimits, StoreFlags, at_once, read, say_name, shown_time, write_new};
use crate::out::{remark, say};
use crate::preparing;
use crate::sandbox::SandboxOptions;
use crate::streams::copy_output;

/// Manage images to start sandboxes from.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Run a script in a new sandbox and save the result as an image.
    #[command(after_help = "\
Examples:
  wardian image build -f setup.sh --name py-data
  wardian image build -f more.sh --name py-more --base py-data
  wardian run --image py-data 'python3 -c \"import mymodule\"'")]
    Build(Box<Build>),
    /// List images.
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Show what an image was made from.
    Inspect {
        /// The image.
        name: String,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Write an image to a file, to take it to another store.
    Export {
        /// The image.
        name: String,
        /// The file, which must not exist.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        limits: MovingLimits,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Import an image from a file that `wardian image export` or `wardian sandbox export` wrote.
    Import {
        /// The file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The image's name, if not the one it had.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        limits: MovingLimits,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Remove an image. Sandboxes that were started from it stay as they are.
    Rm {
        /// The image.
        name: String,
        #[command(flatten)]
        store: StoreFlags,
    },
}

#[derive(clap::Args)]
struct Build {
    /// The script.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// The image's name.
    #[arg(long)]
    name: String,
    /// Start from this image.
    #[arg(long, value_name = "IMAGE")]
    base: Option<String>,
    #[command(flatten)]
    sandbox: SandboxOptions,
    #[command(flatten)]
    store: StoreFlags,
}

/// Executes the command; returns the exit code.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    match arguments.command {
        Command::Build(build) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(make(&build))
        }
        Command::List { store } => {
            for image in store.open()?.images()? {
                say!("{}  {}  {}", image.name, shown_time(image.created_ms), image.base.unwrap_or_default())?;
            }
            Ok(0)
        }
        Command::Inspect { name, store } => {
            let image = store.open()?.image(&name)?;
            say!("name     {}", image.name)?;
            say!("made     {}", shown_time(image.created_ms))?;
            say!("base     {}", image.base.as_deref().unwrap_or("none"))?;
            say!("version  {}", image.version)?;
            say!("script\n{}", image.script.trim_end())?;
            Ok(0)
        }
        Command::Export { name, file, limits, store } => {
            let store = store.open()?;
            let _explaining = preparing::explain();
            let exported = at_once(store.export_image(&name, limits.limits()))?;
            write_new(&file, &exported)?;
            Ok(0)
        }
        Command::Import { file, name, limits, store } => {
            let store = store.open()?;
            let exported = read(&file)?;
            let _explaining = preparing::explain();
            let made = at_once(store.import_image(exported, name.as_deref(), limits.builder()))?;
            say_name(name.is_none(), &made);
            Ok(0)
        }
        Command::Rm { name, store } => {
            store.open()?.remove_image(&name)?;
            Ok(0)
        }
    }
}

async fn make(build: &Build) -> Result<u8> {
    let Build { file, name, base, sandbox, store } = build;
    let script = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    if sandbox.diff || sandbox.apply {
        bail!("--diff and --apply are for commands, not for images");
    }
    let store = store.open()?;
    if store.image(name).is_ok() {
        bail!("image {name} exists: remove it first, or take another name");
    }
    let mut builder = sandbox.builder(wardian::Limits::default())?.timeout(None);
    if let Some(base) = base {
        builder = builder.image(&store, base);
    }
    let _explaining = preparing::explain();
    let sandbox = builder.build().await?;
    let (run, copying) = copy_output(Run::new(script.clone()));
    let result = sandbox.run_with(run).await;
    copying.end()?;
    let code = result?.exit_code;
    if code != 0 {
        remark!("wardian: the script ended with {code}: no image was made");
        return Ok(code);
    }
    store.save_image(&sandbox, name, &script, base.as_deref()).await?;
    Ok(0)
}
