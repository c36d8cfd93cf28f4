//! A call's parameters.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::ToolError;
use crate::spec::{Lane, OutputSink};
use crate::tokenize;

/// Longer requests are rejected.
const MOST_BYTES: usize = 128 << 10;

/// A call's parameters.
#[derive(Clone, Debug)]
pub struct Request {
    command: Command,
    pub(crate) cwd: PathBuf,
    pub(crate) session: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) lane: Lane,
    pub(crate) output: Option<OutputSink>,
    pub(crate) env: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
enum Command {
    Line(String),
    Words(Vec<OsString>),
}

impl Request {
    /// Requests a line such as `git log -3`; quoting follows the shell.
    pub fn line(line: impl Into<String>) -> Request {
        Request::new(Command::Line(line.into()))
    }

    /// Requests a program's name and arguments, as they are.
    pub fn words(words: impl IntoIterator<Item = impl Into<OsString>>) -> Request {
        Request::new(Command::Words(words.into_iter().map(Into::into).collect()))
    }

    fn new(command: Command) -> Request {
        Request {
            command,
            cwd: PathBuf::new(),
            session: String::new(),
            timeout: None,
            lane: Lane::Interactive,
            output: None,
            env: Vec::new(),
        }
    }

    /// Sets the working directory, relative to the jail's root, which is the default.
    pub fn cwd(mut self, cwd: impl AsRef<Path>) -> Request {
        self.cwd = cwd.as_ref().to_owned();
        self
    }

    /// Sets the session: sessions take turns, and records name them.
    pub fn session(mut self, session: impl Into<String>) -> Request {
        self.session = session.into();
        self
    }

    /// Sets the timeout.
    pub fn timeout(mut self, timeout: Duration) -> Request {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the lane.
    pub fn lane(mut self, lane: Lane) -> Request {
        self.lane = lane;
        self
    }

    /// Sets who receives the output as it arrives, without secrets.
    pub fn output(mut self, sink: OutputSink) -> Request {
        self.output = Some(sink);
        self
    }

    /// Adds an environment variable. The gateway does not check it: never pass one that names a program or a file.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Request {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Stage 2: returns its arguments.
    pub(crate) fn tokenized(&self) -> Result<Vec<String>, ToolError> {
        let refused = |what: &str| Err(ToolError::Syntax(what.to_owned()));
        let words = match &self.command {
            Command::Line(line) if line.len() > MOST_BYTES => return refused("it is too long"),
            Command::Line(line) => tokenize::words(line)?,
            Command::Words(words) => {
                let text = |word: &OsString| word.clone().into_string();
                match words.iter().map(text).collect::<Result<Vec<String>, OsString>>() {
                    Ok(words) => words,
                    Err(_) => return refused("an argument that is not UTF-8"),
                }
            }
        };
        if words.is_empty() {
            return refused("empty command");
        }
        if words.iter().any(|word| word.contains('\0')) {
            return refused("a NUL character");
        }
        if words.iter().map(|word| word.len() + 1).sum::<usize>() > MOST_BYTES {
            return refused("it is too long");
        }
        Ok(words)
    }

    /// Returns what was requested, for the record.
    pub(crate) fn shown(&self) -> Vec<String> {
        match &self.command {
            Command::Line(line) => vec![line.clone()],
            Command::Words(words) => words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        }
    }
}
