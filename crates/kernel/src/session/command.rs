//! A command, and how it ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::fd::OpenFile;
use crate::input::Input;
use crate::outlet::Outlet;
use crate::run::Usage;
use crate::stream::{Output, Standard};
use crate::tty::Terminal;

/// A command for a session to run.
pub struct Command {
    /// The script.
    pub script: Vec<u8>,
    /// Scripts of the host to run before and after it. If the one before fails, nothing else is run.
    pub around: Option<(Vec<u8>, Vec<u8>)>,
    /// Descriptor 0.
    pub input: Arc<Input>,
    /// Descriptors 1 and 2.
    pub output: Arc<Output>,
    /// What replaces all three, if it runs on a terminal.
    pub terminal: Option<Arc<Terminal>>,
    /// Its timeout.
    pub timeout: Option<Duration>,
    /// How long its background processes may outlive it.
    pub background: Option<Duration>,
    /// Notify this to cancel it.
    pub cancel: Arc<Notify>,
    /// Whether to roll back the files if it is killed.
    pub rolls_back: bool,
    /// At its end the shell lets go of the pipes it holds, as one that exits does: what reads from them sees their end.
    pub lets_go: bool,
    /// Shell options and traps that it sets do not outlive it. The program must be able to ([`Session::can_contain`]).
    ///
    /// [`Session::can_contain`]: crate::Session::can_contain
    pub contained: bool,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It ran to its end; the shell's exit code.
    Exited(u8),
    /// It timed out.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// The session's own program was ended by a signal or a trap; the session has its state from before the command.
    Killed(u8),
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub verdict: Verdict,
    /// The limit because of which a process was killed, or else the first that was hit.
    pub limit: Option<&'static str>,
    /// Whether one of its processes could not continue because of that limit.
    pub cut_short: bool,
    /// The limit because of which a process could not be started.
    pub refused: Option<&'static str>,
    /// Programs it was not allowed to start.
    pub denied: Vec<Vec<u8>>,
    /// How long it waited for programs that ship with Wardian to be compiled, which is not part of its timeout.
    pub waited: Duration,
    /// The resources it used.
    pub usage: Usage,
}

/// A command's three streams.
pub(super) struct Streams {
    pub(super) input: Arc<Input>,
    /// None where nobody is to see what is written.
    pub(super) output: Option<Arc<Output>>,
    /// What replaces all three, if it runs on a terminal.
    pub(super) terminal: Option<Arc<Terminal>>,
    /// Whether the shell lets go of its pipes at the end.
    pub(super) lets_go: bool,
}

impl Streams {
    /// What stands for one of the three.
    pub(super) fn stream(&self, which: Standard, outlet: &Arc<Outlet>) -> OpenFile {
        match (&self.terminal, which) {
            (Some(terminal), which) => OpenFile::terminal(terminal.clone(), which),
            (None, Standard::Input) => OpenFile::input(self.input.clone()),
            (None, which) if self.output.is_some() => OpenFile::output(outlet.clone(), which),
            (None, which) => OpenFile::output(Outlet::nowhere(), which),
        }
    }
}
