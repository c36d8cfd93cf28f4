//! The names of limits.

use std::fmt;

use crate::options::Limits;

/// A limit that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::stdout_bytes`].
    StdoutBytes,
    /// [`Limits::stderr_bytes`].
    StderrBytes,
    /// [`Limits::command_bytes`].
    CommandBytes,
    /// [`Limits::fs_bytes`].
    FsBytes,
    /// [`Limits::file_count`].
    FileCount,
    /// [`Limits::memory_bytes`].
    MemoryBytes,
    /// [`Limits::processes`].
    Processes,
    /// [`Limits::open_files`].
    OpenFiles,
    /// The memory of all sandboxes together: [`EngineBuilder::memory_bytes`](crate::EngineBuilder::memory_bytes).
    EngineMemoryBytes,
    /// What compiling one of the user's own programs may take: [`EngineBuilder::compile_budget`](crate::EngineBuilder::compile_budget).
    Compile,
}

/// Every limit with its name in the protocol.
const NAMES: [(Limit, &str); 10] = [
    (Limit::StdoutBytes, "stdoutBytes"),
    (Limit::StderrBytes, "stderrBytes"),
    (Limit::CommandBytes, "commandBytes"),
    (Limit::FsBytes, "fsLimitBytes"),
    (Limit::FileCount, "fileCount"),
    (Limit::MemoryBytes, "memoryBytes"),
    (Limit::Processes, "processes"),
    (Limit::OpenFiles, "openFiles"),
    (Limit::EngineMemoryBytes, "engineMemoryBytes"),
    (Limit::Compile, "compile"),
];

impl Limit {
    /// Returns its name in the protocol.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(limit, _)| *limit == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn named(name: &str) -> Option<Limit> {
        NAMES.iter().find(|(_, other)| *other == name).map(|(limit, _)| *limit)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Limits {
    /// Returns the value of a limit, if it is one of the sandbox's.
    pub fn value(&self, limit: Limit) -> Option<u64> {
        Some(match limit {
            Limit::StdoutBytes => self.stdout_bytes as u64,
            Limit::StderrBytes => self.stderr_bytes as u64,
            Limit::CommandBytes => self.command_bytes as u64,
            Limit::FsBytes => self.fs_bytes,
            Limit::FileCount => self.file_count,
            Limit::MemoryBytes => self.memory_bytes,
            Limit::Processes => self.processes as u64,
            Limit::OpenFiles => self.open_files as u64,
            Limit::EngineMemoryBytes | Limit::Compile => return None,
        })
    }
}
