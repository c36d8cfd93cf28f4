//! A whole sandbox as one file, to move it to another machine.
//!
//! ```text
//! "WARDIAN\0"  version  length  SHA-256 of what follows
//! zstd ┬ the shell: which programs it belongs to, directory, descriptors, signals, its memory's pages
//!      ├ the history
//!      ├ since version 2, the interpreters: each its name, and like the shell
//!      │ (since version 3, a descriptor can be a socket)
//!      └ the files, as a tar
//! ```
//!
//! An archive can come from anywhere, so nothing in it is trusted: it is checked, unpacked next to the sandbox within
//! its limits and a budget (`budget.rs`), and replaces the sandbox's state only once all of it is there.

mod format;

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use wardian_kernel::AtRest;
use wardian_vfs::{Errno, TarError, TarFormat, TarOptions, Tree};

use crate::audit::Event;
use crate::budget::{Stop, StopFlag, Stoppable};
use crate::error::{Error, lost};
use crate::history::History;
use crate::options::Limits;
use crate::sandbox::{RestOfAll, Sandbox, bury};
use crate::snapshot::Value;

pub(crate) use format::{Decoder, Encoder, Shell};

const MAGIC: &[u8; 8] = b"WARDIAN\0";
const VERSION: u32 = 3;
/// The oldest that can be read.
const OLDEST: u32 = 1;
/// Magic, version, length and hash.
const HEADER: usize = 8 + 4 + 8 + 32;
const COMPRESSION: i32 = 3;
/// The memory that the decompressor may use: 2 to this power bytes. Archives written by this library need 2 MiB.
const WINDOW_LOG: u32 = 24;
/// How much of a path an error shows.
const SHOWN: usize = 200;

/// Why an archive could not be imported or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It is not a Wardian archive.
    #[error("not an archive of a sandbox")]
    Foreign,
    /// This library does not know its version.
    #[error("an archive of version {0}; this library reads versions {OLDEST} to {VERSION}")]
    Version(u32),
    /// It is incomplete or damaged.
    #[error("damaged archive: {0}")]
    Damaged(String),
    /// It was made with other guest programs, so its shell cannot continue here.
    #[error(
        "the archive's shell was made with different guest programs ({theirs}, here {ours}); its files alone can be imported"
    )]
    OtherPrograms {
        /// The hash of the archive's programs.
        theirs: String,
        /// The hash of this library's programs.
        ours: String,
    },
    /// It does not fit into this sandbox.
    #[error("the archive does not fit: {0}")]
    TooLarge(String),
    /// Its files could not be imported.
    #[error("files of the archive: {0}")]
    Files(String),
    /// It is longer than its reader can take.
    #[error("the archive would be longer than {0} bytes")]
    TooLong(usize),
    /// It could not be written.
    #[error("cannot write an archive: {0}")]
    Write(std::io::Error),
}

impl From<std::io::Error> for ArchiveError {
    fn from(error: std::io::Error) -> ArchiveError {
        ArchiveError::Damaged(error.to_string())
    }
}

/// Says why files of an archive cannot be imported.
pub(crate) fn unusable(error: TarError) -> ArchiveError {
    ArchiveError::Files(error.to_string())
}

fn damaged<T>(what: &str) -> Result<T, ArchiveError> {
    Err(ArchiveError::Damaged(what.to_owned()))
}

impl Sandbox {
    /// Exports the whole sandbox as one archive: its files, its shell, its history. Waits for a command in progress.
    /// Mounts and background processes are not included.
    pub async fn export(&self) -> Result<Vec<u8>, Error> {
        self.export_within(usize::MAX).await
    }

    /// Does the same, and fails as soon as the archive is longer than `max` bytes ([`ArchiveError::TooLong`]).
    pub async fn export_within(&self, max: usize) -> Result<Vec<u8>, Error> {
        let session = self.session().await?;
        self.check_audit()?;
        let value = self.value(&session).await?;
        drop(session);
        let programs = self.hashes();
        let stop = Stop::default();
        let flag = stop.flag();
        let packing = self.kernel().spawn_blocking(move || pack(&value, &programs, max, flag));
        let archive = packing.await.map_err(lost)?.map_err(|error| cannot_write(error, max))?;
        self.inner().record(Event::Export { bytes: archive.len() });
        Ok(archive)
    }

    /// Replaces the sandbox's state by an archive's, within its own options and limits. Waits for a command in progress
    /// and kills background processes. After an error the sandbox is unchanged. [`Sandbox::cancel`] ends it (`ECANCELED`),
    /// and so does dropping the future.
    pub async fn import(&self, archive: Vec<u8>) -> Result<(), Error> {
        let session = self.session().await?;
        self.check_audit()?;
        let bytes = archive.len();
        let (fresh, limits, programs) = self.import_base();
        let stop = Stop::default();
        let flag = stop.flag();
        let unpacking =
            self.kernel().spawn_blocking(move || unpack(&archive, fresh, &limits, &programs, flag));
        let unpacking = async { Ok::<_, Error>(unpacking.await.map_err(lost)??) };
        let Value { tree, rest, history } = self.unless_cancelled(&stop, unpacking).await?;
        if !rest.interpreters.is_empty() {
            self.load_python().await?;
        }
        let old = self.become_value(session, tree, &rest, history).await?;
        bury(&old).await;
        self.inner().record(Event::Import { bytes, shell: true });
        self.committed(None, b"import", None).await
    }

    /// Imports only the files of an archive, whatever programs it was made with, over the existing files. The shell is
    /// unchanged. Waits for a command in progress. After an error nothing has changed. Ends like [`Sandbox::import`].
    pub async fn import_files(&self, archive: Vec<u8>) -> Result<(), Error> {
        let _at_rest = self.session().await?;
        self.check_audit()?;
        let bytes = archive.len();
        let (_, limits, _) = self.import_base();
        let stop = Stop::default();
        let flag = stop.flag();
        let importing = move |tree: &mut Tree| Ok(unpack_files(&archive, tree, &limits, flag));
        let importing = async {
            Ok::<_, Error>(self.on_tree(importing).await.map_err(|errno| Error::refused(errno, b"import"))??)
        };
        self.unless_cancelled(&stop, importing).await?;
        self.inner().record(Event::Import { bytes, shell: false });
        self.committed(None, b"import files", None).await
    }

    /// Waits for work that `stop` ends. It is told to when it is cancelled or the sandbox destroyed, and still waited for:
    /// the next user of the session finds nothing half done.
    async fn unless_cancelled<T>(
        &self,
        stop: &Stop,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let cancel = Arc::new(Notify::new());
        let _running = self.begin(&cancel);
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = cancel.notified() => stop.now(),
        }
        match work.await {
            Ok(done) => Ok(done),
            Err(_) => Err(self.live().err().unwrap_or_else(|| Error::refused(Errno::ECANCELED, b"import"))),
        }
    }

    /// The starting point of an import: the files the sandbox was built with.
    fn import_base(&self) -> (Tree, Limits, Hashes) {
        let inner = self.inner();
        (inner.setup.fresh.clone(), inner.setup.limits, self.hashes())
    }

    fn hashes(&self) -> Hashes {
        let system = &self.inner().system;
        Hashes { shell: system.programs_hash.clone(), python: system.python_hash.clone() }
    }
}

/// Which programs an archive's residents belong to.
struct Hashes {
    shell: String,
    python: String,
}

/// Bytes in memory, up to a maximum.
struct Capped {
    bytes: Vec<u8>,
    max: usize,
    stop: StopFlag,
}

impl Write for Capped {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        self.stop.check()?;
        if piece.len() > self.max.saturating_sub(self.bytes.len()) {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Says why an archive was not written: a file that cannot be in one is the sandbox's own fault.
fn cannot_write(error: TarError, max: usize) -> Error {
    match error {
        TarError::File { name, errno } => {
            let (shown, more) = if name.len() > SHOWN { (&name[..SHOWN], "...") } else { (&name[..], "") };
            Error::refused(errno, &[&b"/"[..], shown, more.as_bytes()].concat())
        }
        TarError::Io(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
            ArchiveError::TooLong(max).into()
        }
        TarError::Io(error) => ArchiveError::Write(error).into(),
        error => ArchiveError::Write(std::io::Error::other(error)).into(),
    }
}

fn pack(value: &Value, programs: &Hashes, max: usize, stop: StopFlag) -> Result<Vec<u8>, TarError> {
    let mut archive = Capped { bytes: vec![0; HEADER], max, stop };
    let mut out = Encoder(zstd::stream::write::Encoder::new(&mut archive, COMPRESSION)?);
    out.shell(&value.rest.shell.pack(&value.tree)?, &programs.shell)?;
    out.history(&value.history)?;
    out.number(value.rest.interpreters.len() as u64)?;
    for (name, rest) in &value.rest.interpreters {
        out.bytes(name.as_bytes())?;
        out.shell(&rest.pack(&value.tree)?, &programs.python)?;
    }
    let options = TarOptions { format: TarFormat::Pax, own_only: true };
    value.tree.export_tar(b"/", options, &mut out.0)?;
    out.0.finish()?;
    let mut archive = archive.bytes;
    let payload = &archive[HEADER..];
    let header =
        [&MAGIC[..], &VERSION.to_le_bytes(), &(payload.len() as u64).to_le_bytes(), &Sha256::digest(payload)];
    let header = header.concat();
    archive[..HEADER].copy_from_slice(&header);
    Ok(archive)
}

/// Returns the version and the payload of a complete, undamaged archive.
fn payload(archive: &[u8]) -> Result<(u32, &[u8]), ArchiveError> {
    let rest = archive.strip_prefix(MAGIC).ok_or(ArchiveError::Foreign)?;
    let Some((header, payload)) = rest.split_at_checked(HEADER - MAGIC.len()) else {
        return damaged("it ends in its header");
    };
    let (version, rest) = header.split_at(4);
    let (length, hash) = rest.split_at(8);
    let version = u32::from_le_bytes(version.try_into().expect("four bytes"));
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(ArchiveError::Version(version));
    }
    if u64::from_le_bytes(length.try_into().expect("eight bytes")) != payload.len() as u64 {
        return damaged("it is not as long as it says");
    }
    if Sha256::digest(payload)[..] != *hash {
        return damaged("its checksum does not match");
    }
    Ok((version, payload))
}

/// An archive up to its files.
struct Opened<'a> {
    input: Decoder<Stoppable<zstd::stream::read::Decoder<'static, &'a [u8]>>>,
    shell: Shell,
    history: History,
    interpreters: Vec<(String, Shell)>,
}

fn open<'a>(archive: &'a [u8], limits: &Limits, stop: StopFlag) -> Result<Opened<'a>, ArchiveError> {
    let (version, payload) = payload(archive)?;
    let mut decoder = zstd::stream::read::Decoder::with_buffer(payload)?;
    decoder.window_log_max(WINDOW_LOG)?;
    let mut input = Decoder::new(Stoppable::new(decoder, stop), limits);
    let shell = input.shell(limits)?;
    let history = input.history()?;
    let interpreters = if version >= 2 { input.interpreters(limits)? } else { Vec::new() };
    Ok(Opened { input, shell, history, interpreters })
}

fn unpack(
    archive: &[u8],
    mut tree: Tree,
    limits: &Limits,
    programs: &Hashes,
    stop: StopFlag,
) -> Result<Value, ArchiveError> {
    let Opened { mut input, shell, history, interpreters } = open(archive, limits, stop)?;
    let python = interpreters.iter().map(|(_, each)| (each, &programs.python));
    for (found, ours) in std::iter::once((&shell, &programs.shell)).chain(python) {
        if found.programs != *ours {
            return Err(ArchiveError::OtherPrograms { theirs: found.programs.clone(), ours: ours.clone() });
        }
    }
    input.files(&mut tree)?;
    let mut wake = |packed| AtRest::unpack(packed, &mut tree).map_err(cannot_wake);
    let shell = wake(shell.packed)?;
    let mut all = BTreeMap::new();
    for (name, each) in interpreters {
        all.insert(name, wake(each.packed)?);
    }
    Ok(Value { tree, rest: RestOfAll { shell, interpreters: all }, history })
}

fn cannot_wake(errno: Errno) -> ArchiveError {
    match errno {
        Errno::ENOSPC => ArchiveError::TooLarge("there is no space for a file the shell has open".to_owned()),
        errno => ArchiveError::Damaged(format!("its shell cannot be put together: {errno}")),
    }
}

fn unpack_files(
    archive: &[u8],
    tree: &mut Tree,
    limits: &Limits,
    stop: StopFlag,
) -> Result<(), ArchiveError> {
    open(archive, limits, stop)?.input.files(tree)
}
