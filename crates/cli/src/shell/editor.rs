//! The line editor: keys, history and completion, as readline's users know them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustyline::completion::{Completer, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, EditMode, Helper};
use tokio::runtime::Handle;
use wardian::Interactive;

use super::history::HistoryFile;
use super::screen::Screen;

/// How long a completion may take: it may run the user's own functions.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a person did at the prompt.
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C
    Interrupt,
    /// Ctrl-D on an empty line, or the terminal is gone.
    End,
}

pub(super) struct Editor {
    line: rustyline::Editor<Asker, MemHistory>,
}

impl Editor {
    pub(super) fn new(runtime: Handle, history: &HistoryFile) -> Result<Editor> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_dups(false)
            .context("the editor's settings")?
            .auto_add_history(false)
            .build();
        let mut line =
            rustyline::Editor::with_history(config, MemHistory::new()).context("the line editor")?;
        line.set_helper(Some(Asker { runtime, shell: None }));
        for past in history.lines() {
            let _ = line.add_history_entry(past);
        }
        Ok(Editor { line })
    }

    pub(super) fn set_vi(&mut self, vi: bool) {
        self.line.set_edit_mode(if vi { EditMode::Vi } else { EditMode::Emacs });
    }

    pub(super) fn remember(&mut self, line: &str) {
        // The history is in memory; adding to it fails only where a size is wrong.
        let _ = self.line.add_history_entry(line);
    }

    /// Reads a line.
    pub(super) fn read(&mut self, prompt: &[u8], shell: &Arc<Interactive>, screen: &Screen) -> Result<Typed> {
        if let Some(line) = screen.plain_line(prompt) {
            let text = |line: Vec<u8>| Typed::Line(String::from_utf8_lossy(&line).into_owned());
            return Ok(line?.map_or(Typed::End, text));
        }
        if let Some(helper) = self.line.helper_mut() {
            helper.shell = Some(shell.clone());
        }
        let prompt = String::from_utf8_lossy(prompt);
        // What comes before the last line of a prompt is no part of what the editor redraws.
        let (above, last) = prompt.rsplit_once('\n').map_or(("", &*prompt), |(above, last)| (above, last));
        let above = match prompt.contains('\n') {
            true => above.replace(['\u{1}', '\u{2}'], "") + "\n",
            false => String::new(),
        };
        let prompt = (visible(last), last.replace(['\u{1}', '\u{2}'], ""));
        let line = screen.edit(|| {
            screen.show(above.as_bytes())?;
            Ok::<_, anyhow::Error>(self.line.readline(&prompt))
        })??;
        match line {
            Ok(line) => Ok(Typed::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Typed::Interrupt),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(error).context("cannot read from the terminal"),
        }
    }
}

/// A prompt without what takes no room: the parts between the marks.
fn visible(prompt: &str) -> String {
    let mut inside = false;
    let shown = prompt.chars().filter(|&char| {
        match char {
            '\u{1}' => inside = true,
            '\u{2}' => inside = false,
            _ => return !inside,
        }
        false
    });
    shown.collect()
}

/// Asks the shell in the sandbox how a word may go on.
struct Asker {
    runtime: Handle,
    shell: Option<Arc<Interactive>>,
}

impl Completer for Asker {
    type Candidate = Pair;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Some(shell) = &self.shell else { return Ok((0, Vec::new())) };
        let asking = async { tokio::time::timeout(PATIENCE, shell.complete(line.as_bytes(), cursor)).await };
        let Ok(Ok(found)) = self.runtime.block_on(asking) else { return Ok((0, Vec::new())) };
        // A name that is not text cannot stand in a line of text.
        let pairs = found.candidates.into_iter().filter_map(|(replacement, display)| {
            Some(Pair {
                replacement: String::from_utf8(replacement).ok()?,
                display: String::from_utf8(display).ok()?,
            })
        });
        let start = if line.is_char_boundary(found.start) { found.start } else { cursor };
        Ok((start, pairs.collect()))
    }
}

impl Hinter for Asker {
    type Hint = String;
}
impl Highlighter for Asker {}
impl Validator for Asker {}
impl Helper for Asker {}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn colours_take_no_room() {
        assert_eq!(visible("\u{1}\x1b[32m\u{2}user\u{1}\x1b[0m\u{2}:~$ "), "user:~$ ");
    }
}
