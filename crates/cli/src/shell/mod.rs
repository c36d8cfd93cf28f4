//! `wardian shell`: a sandbox to type at.
//!
//! ```text
//!   your terminal ── keyboard ─┬─► editor (a line at a time) ──► Interactive: prompt, line, complete ─┐
//!        ▲                     └─────────────────────┐                                                ├─► the sandbox's shell
//!        └───── screen (bytes, while a command runs) ◄──► Terminal ◄──────────────────────────────────┘
//! ```
//!
//! Lines are edited here, by the host; what they mean is the sandboxed shell's business. While a command runs, the
//! host's terminal is raw and every byte goes through the sandbox's own terminal device, Ctrl-C included.

mod editor;
mod history;
mod keyboard;
mod screen;

use std::io::IsTerminal;

use anyhow::{Result, bail};
use wardian::{EnteredLine as Line, Interactive, Limits, Prompt, Sandbox, Store, Terminal};

use crate::durable::named::open_named;
use crate::mount::Mount;
use crate::preparing;
use crate::sandbox::SandboxOptions;
use editor::{Editor, Typed};
use history::HistoryFile;
use screen::Screen;

/// Open an interactive shell in a new sandbox.
#[derive(clap::Args)]
#[command(after_help = "\
Ctrl-C ends the command that runs, Ctrl-Z suspends it, Ctrl-D or `exit` leaves. Files live in memory and are gone
afterwards, except in directories mounted with rw.

Examples:
  wardian shell
  wardian shell --mount .:/src:overlay         # look around and change things; your files stay as they are
  wardian shell --mount ~/notes:/notes:rw --env EDITOR=nano
  wardian shell --mount .:/src:overlay --diff  # the same, and a patch of what was changed at the end
  wardian shell --mount .:/src:overlay --apply # the changes become yours when you leave, unless by `exit 1`")]
pub(crate) struct Arguments {
    #[command(flatten)]
    sandbox: SandboxOptions,
    /// Neither read nor write the history file.
    #[arg(long)]
    no_history: bool,
}

/// Runs it; returns the exit code.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    run(&arguments, None)
}

/// Runs it in a sandbox that exists.
pub(crate) fn main_named(arguments: Arguments, store: &Store, name: &str) -> Result<u8> {
    run(&arguments, Some((store, name)))
}

fn run(arguments: &Arguments, name: Option<(&Store, &str)>) -> Result<u8> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        bail!("the shell needs a terminal (to run a script from standard input: wardian run -)");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let history = if arguments.no_history { HistoryFile::none() } else { HistoryFile::open() };
    let overlays = arguments.sandbox.overlays(false)?;
    let screen = Screen::new(runtime.handle().clone())?;
    let sandbox = runtime.block_on(start(arguments, name))?;
    let shell = sandbox.clone();
    let (rows, columns) = screen.size();
    let terminal = Terminal::new(rows, columns);
    let past: Vec<Vec<u8>> = history.lines().map(|line| line.as_bytes().to_vec()).collect();
    let starting = Interactive::start(shell, terminal.clone(), &past);
    let shell = screen.attend(&terminal, starting)?;
    let editor = Editor::new(runtime.handle().clone(), &history)?;
    let explaining = runtime.block_on(async { preparing::explain() });
    let shell = std::sync::Arc::new(shell);
    let (code, wish) = Repl { shell, screen, editor, history }.run()?;
    drop(explaining);
    runtime.block_on(async {
        for Mount { path, .. } in &overlays {
            arguments.sandbox.settle(&sandbox, path, wish.unwrap_or(code)).await?;
        }
        if name.is_some() {
            sandbox.close().await?;
        }
        Ok(code)
    })
}

async fn start(arguments: &Arguments, name: Option<(&Store, &str)>) -> Result<Sandbox> {
    let _explaining = preparing::explain();
    let limits = Limits { command_bytes: usize::MAX, ..Limits::default() };
    let mut builder = arguments.sandbox.builder(limits)?.timeout(None);
    if let Some((store, name)) = name {
        return open_named(store, name, &arguments.sandbox, builder, false).await;
    }
    if let Ok(term) = std::env::var("TERM")
        && !arguments.sandbox.sets("TERM")
    {
        builder = builder.env("TERM", term);
    }
    Ok(builder.build().await?)
}

/// Reads a command, runs it, and again.
struct Repl {
    shell: std::sync::Arc<Interactive>,
    screen: Screen,
    editor: Editor,
    history: HistoryFile,
}

impl Repl {
    /// Returns the exit code, and 0 if the user left without choosing one: that the last command failed says nothing about
    /// all that was done before.
    fn run(mut self) -> Result<(u8, Option<u8>)> {
        let mut wish = None;
        loop {
            match self.attend(self.shell.prompt())? {
                Prompt::Exit(code) => return Ok((code, wish)),
                Prompt::Ask { text, vi } => {
                    self.editor.set_vi(vi);
                    if let Some(command) = self.read_command(&text)? {
                        wish = matches!(command.trim_ascii(), b"exit" | b"logout").then_some(0);
                        self.run_command(command)?;
                    }
                }
            }
        }
    }

    /// A whole command; none where there is nothing to run after all.
    fn read_command(&mut self, prompt: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        let mut prompt = prompt.to_vec();
        loop {
            let line = match self.editor.read(&prompt, &self.shell, &self.screen)? {
                Typed::Line(line) => line,
                Typed::Interrupt => return Ok(None),
                Typed::End if text.is_empty() => return Ok(Some(b"exit".to_vec())),
                // The shell says what is missing.
                Typed::End => return Ok(Some(text)),
            };
            let shell = self.shell.clone();
            let before = text.clone();
            let taken = self.attend(async move { shell.line(&before, line.as_bytes()).await })?;
            match taken {
                Line::Whole { text, kept } => {
                    if let Some(kept) = kept.and_then(|kept| String::from_utf8(kept).ok()) {
                        self.editor.remember(&kept);
                        self.history.append(&kept);
                    }
                    return Ok(Some(text));
                }
                Line::Unfinished { text: more } => text = more,
                _ => return Ok(None),
            }
            let shell = self.shell.clone();
            prompt = self.attend(async move { shell.continuation().await })?;
        }
    }

    fn run_command(&mut self, command: Vec<u8>) -> Result<()> {
        let shell = self.shell.clone();
        let result = self.attend(async move { shell.run(command).await })?;
        // What the sandbox has to say of a command that did not end by itself.
        self.screen.show(&result.stderr)?;
        Ok(())
    }

    fn attend<T>(&self, work: impl Future<Output = Result<T, wardian::Error>>) -> Result<T> {
        self.screen.attend(self.shell.terminal(), work)
    }
}
