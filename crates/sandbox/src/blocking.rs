//! The same without `async`, for programs that have no runtime.
//!
//! ```
//! let sandbox = wardian::blocking::Sandbox::new(wardian::Sandbox::builder())?;
//! assert_eq!(sandbox.run("echo hello")?.stdout, b"hello\n");
//! # Ok::<(), wardian::Error>(())
//! ```
//!
//! Every call waits on the caller's thread, while guests run on threads of their own as always. Inside a runtime that
//! would stall others, so there it is an error.

use std::future::Future;
use std::path::PathBuf;

use wardian_vfs::Change;

use crate::files::{Entry, Metadata};
use crate::history::HistoryEntry;
use crate::options::Builder;
use crate::system::System;
use crate::{Error, FileChanges, MountMode, Run, RunResult, Snapshot};

/// A sandbox whose calls wait. Cloning the handle shares it.
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
    /// Makes one.
    pub fn new(builder: Builder) -> Result<Sandbox, Error> {
        wait(builder.build()).map(Sandbox)
    }

    /// The one with `async` calls; both are the same sandbox.
    pub fn asynchronous(&self) -> &crate::Sandbox {
        &self.0
    }

    /// Runs a script.
    pub fn run(&self, command: impl Into<Vec<u8>>) -> Result<RunResult, Error> {
        wait(self.0.run(command))
    }

    /// Runs a script with its input, timeout and listeners.
    pub fn run_with(&self, run: Run) -> Result<RunResult, Error> {
        wait(self.0.run_with(run))
    }

    /// Whether a command runs.
    pub fn is_running(&self) -> bool {
        self.0.is_running()
    }

    /// Ends the command that runs; `false` when none does.
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Stops all its processes where they are.
    pub fn suspend(&self) -> Result<(), Error> {
        self.0.suspend()
    }

    /// Lets them go on.
    pub fn resume(&self) -> Result<(), Error> {
        self.0.resume()
    }

    /// A second sandbox that is as this one is now.
    pub fn fork(&self) -> Result<Sandbox, Error> {
        wait(self.0.fork()).map(Sandbox)
    }

    /// So many of them, all alike.
    pub fn fork_many(&self, count: usize) -> Result<Vec<Sandbox>, Error> {
        Ok(wait(self.0.fork_many(count))?.into_iter().map(Sandbox).collect())
    }

    /// What it is now, to come back to.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        wait(self.0.snapshot())
    }

    /// Becomes what it was.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), Error> {
        wait(self.0.restore(snapshot))
    }

    /// All of it as one archive.
    pub fn export(&self) -> Result<Vec<u8>, Error> {
        wait(self.0.export())
    }

    /// Becomes what an archive holds.
    pub fn import(&self, archive: Vec<u8>) -> Result<(), Error> {
        wait(self.0.import(archive))
    }

    /// Takes only the files of an archive.
    pub fn import_files(&self, archive: Vec<u8>) -> Result<(), Error> {
        wait(self.0.import_files(archive))
    }

    /// A file's content.
    pub fn read_file(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, Error> {
        wait(self.0.read_file(path))
    }

    /// Makes a file with this content.
    pub fn write_file(&self, path: impl AsRef<[u8]>, content: impl Into<Vec<u8>>) -> Result<(), Error> {
        wait(self.0.write_file(path, content))
    }

    /// The names in a directory.
    pub fn list(&self, path: impl AsRef<[u8]>) -> Result<Vec<Entry>, Error> {
        wait(self.0.list(path))
    }

    /// Makes a directory and those above it.
    pub fn mkdir(&self, path: impl AsRef<[u8]>) -> Result<(), Error> {
        wait(self.0.mkdir(path))
    }

    /// Removes a file, or a directory with all in it.
    pub fn rm(&self, path: impl AsRef<[u8]>) -> Result<(), Error> {
        wait(self.0.rm(path))
    }

    /// What is known about a file.
    pub fn stat(&self, path: impl AsRef<[u8]>) -> Result<Metadata, Error> {
        wait(self.0.stat(path))
    }

    /// Gives a file another name.
    pub fn rename(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<(), Error> {
        wait(self.0.rename(from, to))
    }

    /// Sets permission bits.
    pub fn chmod(&self, path: impl AsRef<[u8]>, mode: u32) -> Result<(), Error> {
        wait(self.0.chmod(path, mode))
    }

    /// Makes a symbolic link at `path` that leads to `target`.
    pub fn symlink(&self, target: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<(), Error> {
        wait(self.0.symlink(target, path))
    }

    /// The value of a variable of the shell.
    pub fn get_env(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        wait(self.0.get_env(name))
    }

    /// Sets and exports a variable of the shell.
    pub fn set_env(&self, name: &str, value: &str) -> Result<(), Error> {
        wait(self.0.set_env(name, value))
    }

    /// The commands it was given.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.0.history()
    }

    /// Shows a host directory at `path`.
    pub fn mount(
        &self,
        host: impl Into<PathBuf>,
        path: impl Into<String>,
        mode: MountMode,
    ) -> Result<(), Error> {
        wait(self.0.mount(host, path, mode))
    }

    /// Shows these files at `path`.
    pub fn mount_files<N: Into<String>, B: Into<Vec<u8>>>(
        &self,
        path: impl Into<String>,
        files: impl IntoIterator<Item = (N, B)>,
        writable: bool,
    ) -> Result<(), Error> {
        wait(self.0.mount_files(path, files, writable))
    }

    /// Takes a mount away.
    pub fn unmount(&self, path: &str) -> Result<(), Error> {
        wait(self.0.unmount(path))
    }

    /// What the sandbox has changed in the overlay mounted at `path`.
    pub fn diff(&self, path: &str) -> Result<Vec<Change>, Error> {
        wait(self.0.diff(path))
    }

    /// The same with all contents, as git can commit it.
    pub fn file_changes(&self, path: &str) -> Result<FileChanges, Error> {
        wait(self.0.file_changes(path))
    }

    /// Makes those changes in the host directory itself, all of them or none.
    pub fn apply(&self, path: &str, dry_run: bool) -> Result<Vec<Change>, Error> {
        wait(self.0.apply(path, dry_run))
    }

    /// Ends everything in it and gives back what it holds.
    pub fn destroy(&self) -> Result<(), Error> {
        wait(async {
            self.0.destroy().await;
            Ok(())
        })
    }
}
