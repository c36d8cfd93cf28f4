//! `wardian serve`: sandboxes for other programs.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};
use wardian_server::{Options, Server};

/// Serve sandboxes to other programs, by JSON-RPC 2.0, one message a line.
#[derive(clap::Args)]
#[command(
    group = clap::ArgGroup::new("where").required(true).args(["stdio", "socket"]),
    after_help = "\
Examples:
  wardian serve --stdio                       # one client: the program that started it
  wardian serve --socket ~/.wardian.sock      # many clients of this user, each with its own sandboxes"
)]
pub(crate) struct Arguments {
    /// Talk over standard input and output, and end when the input does.
    #[arg(long)]
    stdio: bool,
    /// Listen at a Unix socket that only this user can open.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Where clients may keep the states of sandboxes, by name.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// How many named sandboxes and forks there may be at once.
    #[arg(long, value_name = "N", default_value_t = Options::default().max_sandboxes)]
    max_sandboxes: usize,
}

/// Serves to the end.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    if let Some(dir) = &arguments.state_dir
        && !dir.is_dir()
    {
        bail!("not a directory: {}", dir.display());
    }
    let server =
        Server::new(Options { state_dir: arguments.state_dir, max_sandboxes: arguments.max_sandboxes });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async move {
        match arguments.socket {
            Some(path) => server.serve_socket(&path, asked_to_end()?).await?,
            None => server.serve(tokio::io::stdin(), tokio::io::stdout()).await,
        }
        Ok(0)
    });
    // A thread may wait for standard input that never comes.
    runtime.shutdown_background();
    served
}

/// Comes when somebody wants this process to end.
fn asked_to_end() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
