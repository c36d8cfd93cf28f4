//! A run's output in a file of the sandbox, all of it, whatever is kept of it for the result.
//!
//! ```text
//! processes ─► an output without caps ─► the file ─► the output with the caps of the sandbox, and its listeners
//! ```
//! The file is one of the sandbox's own: it counts against its limits, and commands see it grow.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wardian_kernel::{Machine, Output, Piece, Sink, Stream};
use wardian_vfs::{Errno, FileKind, OpenFlags, Tree};

use crate::error::{Error, lost};
use crate::files::USER;
use crate::sandbox::Sandbox;

/// How many pieces may be on their way to the file before the guest waits.
const PIECES: usize = 4;

/// What became of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputFile {
    /// Its absolute path.
    pub path: Vec<u8>,
    /// How many bytes of the output it has.
    pub bytes: u64,
    /// Why the rest is not in it: `ENOSPC` if there was no room; `ESTALE` if something else has changed it, or it was undone with
    /// everything that a killed command did.
    pub error: Option<Errno>,
}

/// Copies output on its way.
pub(crate) struct Copying {
    /// What processes write to.
    from: Arc<Output>,
    copy: JoinHandle<Copier>,
}

struct Copier {
    machine: Arc<Machine>,
    file: OutputFile,
    ends_inside_line: bool,
}

impl Copying {
    /// Creates the file, or empties it, and begins. What processes write is then to go to the first that is returned.
    pub(crate) async fn start(
        sandbox: &Sandbox,
        path: &str,
        to: &Arc<Output>,
    ) -> Result<(Arc<Output>, Copying), Error> {
        let create = |tree: &mut Tree, root: &wardian_vfs::Place, path: &[u8]| {
            match tree.stat(&USER, root, path, true) {
                Ok(found) if found.kind == FileKind::Dir => return Err(Errno::EISDIR),
                Ok(found) if found.kind != FileKind::File => return Err(Errno::EINVAL),
                _ => {}
            }
            let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNC;
            let handle = tree.open(&USER, root, path, flags, 0o644)?;
            tree.close(handle);
            Ok(())
        };
        sandbox.at(path, false, create).await?;
        let (sender, pieces) = mpsc::channel(PIECES);
        let sinks = [Sink::Shared(sender.clone()), Sink::Shared(sender)];
        let from = Output::new([usize::MAX; 2], sinks);
        let file = OutputFile { path: sandbox.absolute(path), bytes: 0, error: None };
        let copy = Copier { machine: sandbox.machine(), file, ends_inside_line: false };
        let copy = sandbox.kernel().spawn(copy.all(pieces, to.clone()));
        Ok((from.clone(), Copying { from, copy }))
    }

    /// Ends it, with the kernel's note as the last line.
    pub(crate) async fn end(self, note: Option<&str>) -> Result<OutputFile, Error> {
        self.from.end(None).await;
        let mut copy = self.copy.await.map_err(lost)?;
        if let Some(note) = note {
            let apart = if copy.ends_inside_line { "\n" } else { "" };
            copy.append(format!("{apart}{note}\n").as_bytes()).await;
        }
        copy.check().await;
        Ok(copy.file)
    }
}

impl Copier {
    async fn all(mut self, mut pieces: mpsc::Receiver<Piece>, to: Arc<Output>) -> Copier {
        while let Some(Piece { stream, bytes, .. }) = pieces.recv().await {
            self.append(&bytes).await;
            self.ends_inside_line = bytes.last().map_or(self.ends_inside_line, |&last| last != b'\n');
            pass_on(&to, stream, &bytes).await;
        }
        self
    }

    /// Adds to the file, unless something went wrong before: nothing comes after a gap.
    async fn append(&mut self, bytes: &[u8]) {
        if self.file.error.is_some() {
            return;
        }
        let (path, size, bytes) = (self.file.path.clone(), self.file.bytes, bytes.to_vec());
        let adding = move |tree: &mut Tree| Ok(add(tree, &path, size, &bytes));
        let added = self.with_file(adding).await;
        let (written, error) = added.unwrap_or_else(|errno| (0, Some(errno)));
        self.file.bytes += written;
        self.file.error = error;
    }

    /// Looks whether the file is what was written.
    async fn check(&mut self) {
        let (path, size) = (self.file.path.clone(), self.file.bytes);
        let looking = move |tree: &mut Tree| Ok(tree.stat(&USER, &tree.root(), &path, true)?.size == size);
        if self.with_file(looking).await != Ok(true) && self.file.error.is_none() {
            self.file.error = Some(Errno::ESTALE);
        }
    }

    async fn with_file<T, F>(&self, work: F) -> wardian_vfs::Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree) -> wardian_vfs::Result<T> + Send + 'static,
    {
        let root = self.machine.tree().await.root();
        self.machine.at_path(&root, &self.file.path, work).await
    }
}

/// Adds to a file of this size; returns how much, and why not all of it.
fn add(tree: &mut Tree, path: &[u8], size: u64, bytes: &[u8]) -> (u64, Option<Errno>) {
    let handle = match tree.open(&USER, &tree.root(), path, OpenFlags::WRITE | OpenFlags::NONBLOCK, 0) {
        Ok(handle) => handle,
        // Somebody has removed it.
        Err(Errno::ENOENT) => return (0, Some(Errno::ESTALE)),
        Err(errno) => return (0, Some(errno)),
    };
    let is_ours = tree.stat_handle(&USER, &handle).is_ok_and(|stat| stat.size == size);
    let mut done = 0;
    let mut error = (!is_ours).then_some(Errno::ESTALE);
    while error.is_none() && done < bytes.len() {
        match tree.pwrite(&handle, &bytes[done..], size + done as u64) {
            Ok(0) => error = Some(Errno::EIO),
            Ok(count) => done += count,
            Err(errno) => error = Some(errno),
        }
    }
    tree.close(handle);
    (done as u64, error)
}

/// Passes on what a process wrote. That nobody listens any more is no reason to lose the file.
async fn pass_on(to: &Output, stream: Stream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match to.write(stream, bytes).await {
            Ok(Some(count)) if count > 0 => bytes = &bytes[count..],
            _ => return,
        }
    }
}
