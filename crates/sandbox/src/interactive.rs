//! A shell at a terminal: what a program that reads lines from a person needs.
//!
//! Lines are edited outside the sandbox. The shell inside it answers everything that depends on their meaning: the
//! prompt, whether a line is complete, what `!!` expands to, how a word can be completed.

use std::sync::Arc;

use wardian_kernel::Terminal;

use crate::error::Error;
use crate::result::RunResult;
use crate::run::Run;
use crate::sandbox::Sandbox;

/// A sandbox whose shell is interactive, on a terminal.
pub struct Interactive {
    sandbox: Sandbox,
    terminal: Arc<Terminal>,
}

impl std::fmt::Debug for Interactive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interactive").field("sandbox", &self.sandbox).finish_non_exhaustive()
    }
}

/// What the shell expects next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A line, after this prompt. Zero-width parts are between the bytes 1 and 2.
    Ask {
        /// The prompt.
        text: Vec<u8>,
        /// `set -o vi` is active: lines are edited as in vi.
        vi: bool,
    },
    /// Nothing: it was told to exit, with this code.
    Exit(u8),
}

/// The result of entering a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnteredLine {
    /// A complete command, ready to run.
    Whole {
        /// The command, history expanded.
        text: Vec<u8>,
        /// Its history entry, if any.
        kept: Option<Vec<u8>>,
    },
    /// The command is incomplete.
    Unfinished {
        /// The text so far, history expanded.
        text: Vec<u8>,
    },
    /// The line was rejected, and the shell has printed why.
    Refused,
}

/// How a word can be completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// Where in the line the word to be replaced begins.
    pub start: usize,
    /// The candidates, each with the text to display for it.
    pub candidates: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Interactive {
    /// Makes the sandbox's shell interactive: job control, aliases, `~/.bashrc`. `history` is the earlier history.
    pub async fn start(
        sandbox: Sandbox,
        terminal: Arc<Terminal>,
        history: &[Vec<u8>],
    ) -> Result<Interactive, Error> {
        let shell = Interactive { sandbox, terminal };
        let mut question: Vec<&[u8]> = vec![b"start"];
        question.extend(history.iter().map(Vec::as_slice));
        shell.ask(&question).await?;
        Ok(shell)
    }

    /// Returns its sandbox.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Returns its terminal.
    pub fn terminal(&self) -> &Arc<Terminal> {
        &self.terminal
    }

    /// Returns what the shell expects next. Reports finished jobs and runs `PROMPT_COMMAND` first.
    pub async fn prompt(&self) -> Result<Prompt, Error> {
        let answer = self.ask(&[b"prompt"]).await?.unwrap_or_default();
        Ok(match &answer[..] {
            [state, code] if state == b"exit" => Prompt::Exit(number(code) as u8),
            [state, text] => Prompt::Ask { text: text.clone(), vi: state == b"vi" },
            // A prompt whose own commands ended the shell's answer must not end the session.
            _ => Prompt::Ask { text: b"$ ".to_vec(), vi: false },
        })
    }

    /// Returns the prompt for the rest of an unfinished command.
    pub async fn continuation(&self) -> Result<Vec<u8>, Error> {
        let answer = self.ask(&[b"continuation"]).await?;
        Ok(answer.and_then(|fields| fields.into_iter().next()).unwrap_or_else(|| b"> ".to_vec()))
    }

    /// Enters a line, after `before` (the text that [`EnteredLine::Unfinished`] returned).
    pub async fn line(&self, before: &[u8], line: &[u8]) -> Result<EnteredLine, Error> {
        let answer = self.ask(&[b"line", before, line]).await?.unwrap_or_default();
        let mut fields = answer.into_iter();
        let (what, text) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        Ok(match &what[..] {
            b"whole" => EnteredLine::Whole { text, kept: fields.next() },
            b"unfinished" => EnteredLine::Unfinished { text },
            _ => EnteredLine::Refused,
        })
    }

    /// Completes the word at byte `cursor` of `line`.
    pub async fn complete(&self, line: &[u8], cursor: usize) -> Result<Completion, Error> {
        let cursor = cursor.to_string();
        let answer = self.ask(&[b"complete", line, cursor.as_bytes()]).await?.unwrap_or_default();
        let Some((start, pairs)) = answer.split_first() else { return Ok(Completion::default()) };
        let candidates = pairs.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        Ok(Completion { start: number(start).min(line.len()), candidates })
    }

    /// Runs a complete command, without a timeout.
    pub async fn run(&self, command: Vec<u8>) -> Result<RunResult, Error> {
        self.sandbox.run_with(Run::new(command).terminal(self.terminal.clone()).timeout(None)).await
    }

    /// Asks the shell a question. Its fields and those of the answer are separated by NUL.
    async fn ask(&self, fields: &[&[u8]]) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let clean = fields.iter().map(|field| field.iter().copied().filter(|&b| b != 0).collect::<Vec<u8>>());
        let question = clean.collect::<Vec<_>>().join(&0);
        let answer = self.sandbox.ask(question, &self.terminal).await?;
        Ok(answer.map(|answer| answer.split(|&b| b == 0).map(<[u8]>::to_vec).collect()))
    }
}

fn number(text: &[u8]) -> usize {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}
