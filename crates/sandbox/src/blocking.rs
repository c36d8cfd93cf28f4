//! The same API without `async`, for programs that have no runtime.
//!
//! ```
//! let sandbox = wardian::blocking::Sandbox::new(wardian::Sandbox::builder())?;
//! assert_eq!(sandbox.run("echo hello")?.stdout, b"hello\n");
//! # Ok::<(), wardian::Error>(())
//! ```
//!
//! Every call blocks the caller's thread, while guests run on their own threads as always. Inside an async runtime that
//! would stall other tasks, so there it is an error.

use std::future::Future;
use std::path::PathBuf;

use wardian_vfs::Change;

use crate::files::{Entry, Metadata};
use crate::history::HistoryEntry;
use crate::options::Builder;
use crate::system::System;
use crate::{Error, FileChanges, MountMode, Python, PythonResult, Run, RunResult, Snapshot};

/// A sandbox with blocking calls. Cloning the handle shares the sandbox.
#[derive(Clone)]
pub struct Sandbox(crate::Sandbox);

/// Waits for `work` on this thread.
fn wait<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return Err(Error::InsideRuntime);
    }
    let system = System::get(&|_| ())?;
    system.kernel.handle().block_on(work)
}

impl Sandbox {
    /// Creates a sandbox.
    pub fn new(builder: Builder) -> Result<Sandbox, Error> {
        wait(builder.build()).map(Sandbox)
    }

    /// Returns the handle with `async` calls, for the same sandbox.
    pub fn asynchronous(&self) -> &crate::Sandbox {
        &self.0
    }

    /// Runs a script.
    pub fn run(&self, command: impl Into<Vec<u8>>) -> Result<RunResult, Error> {
        wait(self.0.run(command))
    }

    /// Runs a script with input, timeout and listeners.
    pub fn run_with(&self, run: Run) -> Result<RunResult, Error> {
        wait(self.0.run_with(run))
    }

    /// Runs code in the sandbox's interpreter.
    pub fn python(&self, code: impl Into<Vec<u8>>) -> Result<PythonResult, Error> {
        wait(self.0.python(code))
    }

    /// Runs code with input, timeout and listeners.
    pub fn python_with(&self, python: Python) -> Result<PythonResult, Error> {
        wait(self.0.python_with(python))
    }

    /// Returns whether a command is running.
    pub fn is_running(&self) -> bool {
        self.0.is_running()
    }

    /// Cancels the running command; returns `false` if there is none.
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Pauses all its processes.
    pub fn suspend(&self) -> Result<(), Error> {
        self.0.suspend()
    }

    /// Resumes them.
    pub fn resume(&self) -> Result<(), Error> {
        self.0.resume()
    }

    /// Forks the sandbox: returns a copy of its current state.
    pub fn fork(&self) -> Result<Sandbox, Error> {
        wait(self.0.fork()).map(Sandbox)
    }

    /// Forks the sandbox `count` times.
    pub fn fork_many(&self, count: usize) -> Result<Vec<Sandbox>, Error> {
        Ok(wait(self.0.fork_many(count))?.into_iter().map(Sandbox).collect())
    }

    /// Saves the current state.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        wait(self.0.snapshot())
    }

    /// Restores a saved state.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), Error> {
        wait(self.0.restore(snapshot))
    }

    /// Exports the whole sandbox as one archive.
    pub fn export(&self) -> Result<Vec<u8>, Error> {
        wait(self.0.export())
    }

    /// Replaces the sandbox's state by an archive's.
    pub fn import(&self, archive: Vec<u8>) -> Result<(), Error> {
        wait(self.0.import(archive))
    }

    /// Imports only the files of an archive.
    pub fn import_files(&self, archive: Vec<u8>) -> Result<(), Error> {
        wait(self.0.import_files(archive))
    }

    /// Reads a file.
    pub fn read_file(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, Error> {
        wait(self.0.read_file(path))
    }

    /// Writes a file.
    pub fn write_file(&self, path: impl AsRef<[u8]>, content: impl Into<Vec<u8>>) -> Result<(), Error> {
        wait(self.0.write_file(path, content))
    }

    /// Lists a directory.
    pub fn list(&self, path: impl AsRef<[u8]>) -> Result<Vec<Entry>, Error> {
        wait(self.0.list(path))
    }

    /// Creates a directory and its parents.
    pub fn mkdir(&self, path: impl AsRef<[u8]>) -> Result<(), Error> {
        wait(self.0.mkdir(path))
    }

    /// Removes a file, or a directory recursively.
    pub fn rm(&self, path: impl AsRef<[u8]>) -> Result<(), Error> {
        wait(self.0.rm(path))
    }

    /// Returns a file's metadata.
    pub fn stat(&self, path: impl AsRef<[u8]>) -> Result<Metadata, Error> {
        wait(self.0.stat(path))
    }

    /// Renames a file.
    pub fn rename(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<(), Error> {
        wait(self.0.rename(from, to))
    }

    /// Sets permission bits.
    pub fn chmod(&self, path: impl AsRef<[u8]>, mode: u32) -> Result<(), Error> {
        wait(self.0.chmod(path, mode))
    }

    /// Creates a symbolic link at `path` that points to `target`.
    pub fn symlink(&self, target: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<(), Error> {
        wait(self.0.symlink(target, path))
    }

    /// Returns the value of a shell variable.
    pub fn get_env(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        wait(self.0.get_env(name))
    }

    /// Sets and exports a shell variable.
    pub fn set_env(&self, name: &str, value: &str) -> Result<(), Error> {
        wait(self.0.set_env(name, value))
    }

    /// Returns the commands that were run.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.0.history()
    }

    /// Mounts a host directory at `path`.
    pub fn mount(
        &self,
        host: impl Into<PathBuf>,
        path: impl Into<String>,
        mode: MountMode,
    ) -> Result<(), Error> {
        wait(self.0.mount(host, path, mode))
    }

    /// Mounts these files at `path`.
    pub fn mount_files<N: Into<String>, B: Into<Vec<u8>>>(
        &self,
        path: impl Into<String>,
        files: impl IntoIterator<Item = (N, B)>,
        writable: bool,
    ) -> Result<(), Error> {
        wait(self.0.mount_files(path, files, writable))
    }

    /// Removes a mount.
    pub fn unmount(&self, path: &str) -> Result<(), Error> {
        wait(self.0.unmount(path))
    }

    /// Returns what the sandbox has changed in the overlay mounted at `path`.
    pub fn diff(&self, path: &str) -> Result<Vec<Change>, Error> {
        wait(self.0.diff(path))
    }

    /// Returns the same changes with all contents, ready for a git commit.
    pub fn file_changes(&self, path: &str) -> Result<FileChanges, Error> {
        wait(self.0.file_changes(path))
    }

    /// Applies those changes to the host directory, all of them or none.
    pub fn apply(&self, path: &str, dry_run: bool) -> Result<Vec<Change>, Error> {
        wait(self.0.apply(path, dry_run))
    }

    /// Stops everything in the sandbox and frees its resources.
    pub fn destroy(&self) -> Result<(), Error> {
        wait(async {
            self.0.destroy().await;
            Ok(())
        })
    }
}
