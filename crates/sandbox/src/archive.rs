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

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{Read, Write};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use wardian_kernel::{AtRest, Packed, PackedFd, PackedFile, PackedPlace, Page};
use wardian_vfs::{Caller, Errno, TarError, TarFormat, TarOptions, Tree};

use crate::audit::Event;
use crate::budget::{Budget, Stop, StopFlag, Stoppable};
use crate::error::{Error, lost};
use crate::history::{History, HistoryEntry};
use crate::options::Limits;
use crate::python::{MOST_INTERPRETERS, check_name};
use crate::sandbox::{RestOfAll, Sandbox, bury};
use crate::snapshot::Value;

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
/// By how much a shell's memory may exceed the sandbox's limit: what its program starts with.
const PROGRAM_START: u64 = 64 << 20;

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
    Files(TarError),
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
    let mut input = Decoder { input: Stoppable::new(decoder, stop), budget: Budget::new(limits) };
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

/// A shell as stored in an archive.
pub(crate) struct Shell {
    pub(crate) programs: String,
    pub(crate) packed: Packed,
}

pub(crate) struct Encoder<W: Write>(pub(crate) W);

impl<W: Write> Encoder<W> {
    fn number(&mut self, number: u64) -> std::io::Result<()> {
        self.0.write_all(&number.to_le_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.number(bytes.len() as u64)?;
        self.0.write_all(bytes)
    }

    pub(crate) fn shell(&mut self, packed: &Packed, programs: &str) -> std::io::Result<()> {
        self.bytes(programs.as_bytes())?;
        self.number(packed.env.len() as u64)?;
        packed.env.iter().try_for_each(|pair| self.bytes(pair))?;
        self.bytes(&packed.cwd)?;
        self.number(u64::from(packed.umask))?;
        self.bytes(&packed.signals)?;
        self.number(packed.fds.len() as u64)?;
        packed.fds.iter().try_for_each(|fd| self.descriptor(fd))?;
        self.number(packed.memory_size)?;
        self.number(u64::from(packed.stack_pointer))?;
        self.number(packed.pages.len() as u64)?;
        for (number, contents) in &packed.pages {
            self.0.write_all(&number.to_le_bytes())?;
            self.0.write_all(&contents[..])?;
        }
        Ok(())
    }

    fn descriptor(&mut self, fd: &PackedFd) -> std::io::Result<()> {
        self.number(u64::from(fd.number))?;
        self.number(u64::from(fd.cloexec))?;
        match &fd.what {
            PackedFile::Stream(which) => {
                self.number(0)?;
                self.number(u64::from(*which))
            }
            PackedFile::Pipe { reads, writes } => {
                self.number(1)?;
                self.number(u64::from(*reads) | u64::from(*writes) << 1)
            }
            PackedFile::Socket(shape) => {
                self.number(4)?;
                self.number(u64::from(*shape))
            }
            PackedFile::File { description, flags, offset, place } => {
                let (kind, bytes) = match place {
                    PackedPlace::Path(path) => (2, path),
                    PackedPlace::Orphan(content) => (3, content),
                };
                self.number(kind)?;
                self.number(u64::from(*description))?;
                self.number(u64::from(*flags))?;
                self.number(*offset)?;
                self.bytes(bytes)
            }
        }
    }

    pub(crate) fn history(&mut self, history: &History) -> std::io::Result<()> {
        let (last, entries) = history.parts();
        self.number(last)?;
        self.number(entries.len() as u64)?;
        for entry in entries {
            self.number(entry.index)?;
            self.number(entry.timestamp)?;
            self.bytes(&entry.command)?;
        }
        Ok(())
    }
}

pub(crate) struct Decoder<R: Read> {
    input: R,
    budget: Budget,
}

impl<'a> Decoder<&'a [u8]> {
    /// Reads what a store has kept, within the same limits as an archive.
    pub(crate) fn of_bytes(bytes: &'a [u8], limits: &Limits) -> Decoder<&'a [u8]> {
        Decoder { input: bytes, budget: Budget::new(limits) }
    }
}

impl<R: Read> Decoder<R> {
    fn number(&mut self) -> Result<u64, ArchiveError> {
        let mut bytes = [0; 8];
        self.input.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn small(&mut self) -> Result<u32, ArchiveError> {
        u32::try_from(self.number()?).or_else(|_| damaged("a number is too large"))
    }

    /// Reads some bytes of the shell, which count against its memory.
    fn bytes(&mut self) -> Result<Vec<u8>, ArchiveError> {
        let length = self.number()?;
        self.budget.take_shell(length)?;
        self.exactly(length)
    }

    /// Reads the name of a version: a hash, so anything longer is not one.
    fn name(&mut self) -> Result<String, ArchiveError> {
        const LONGEST: u64 = 256;
        let length = self.number()?;
        if length > LONGEST {
            return damaged("the name of its programs is too long");
        }
        String::from_utf8(self.exactly(length)?).or_else(|_| damaged("the name of its programs is not text"))
    }

    /// Grows as the bytes arrive: a length is only a claim, even if the budget covers it.
    fn exactly(&mut self, length: u64) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        if self.input.by_ref().take(length).read_to_end(&mut bytes)? as u64 != length {
            return damaged("it ends too early");
        }
        bytes.shrink_to_fit();
        Ok(bytes)
    }

    pub(crate) fn shell(&mut self, limits: &Limits) -> Result<Shell, ArchiveError> {
        let programs = self.name()?;
        let mut env = Vec::new();
        for _ in 0..self.number()? {
            env.push(self.bytes()?);
        }
        let cwd = self.bytes()?;
        let umask = self.small()?;
        let signals = self.bytes()?;
        let mut fds = Vec::new();
        let count = self.number()?;
        if count > limits.open_files as u64 {
            return Err(ArchiveError::TooLarge(format!("its shell has {count} files open")));
        }
        for _ in 0..count {
            self.budget.take_shell(size_of::<PackedFd>() as u64)?;
            fds.push(self.descriptor()?);
        }
        let memory_size = self.number()?;
        if memory_size > limits.memory_bytes.saturating_add(PROGRAM_START) {
            return Err(ArchiveError::TooLarge(format!("its shell has {memory_size} bytes of memory")));
        }
        let stack_pointer = self.small()?;
        let pages = self.pages(memory_size)?;
        let packed = Packed { env, cwd, umask, signals, fds, memory_size, stack_pointer, pages };
        Ok(Shell { programs, packed })
    }

    fn interpreters(&mut self, limits: &Limits) -> Result<Vec<(String, Shell)>, ArchiveError> {
        let count = self.number()?;
        if count > MOST_INTERPRETERS as u64 {
            return Err(ArchiveError::TooLarge(format!("it has {count} interpreters")));
        }
        let mut all = Vec::new();
        for _ in 0..count {
            let name = String::from_utf8(self.bytes()?).or_else(|_| damaged("an interpreter has no name"))?;
            if check_name(&name).is_err() {
                return damaged("an interpreter has no name");
            }
            all.push((name, self.shell(limits)?));
        }
        Ok(all)
    }

    fn pages(&mut self, memory_size: u64) -> Result<Vec<(u32, Arc<Page>)>, ArchiveError> {
        let count = self.number()?;
        if count > memory_size / size_of::<Page>() as u64 {
            return damaged("its shell has more pages than memory");
        }
        let mut pages = Vec::new();
        for _ in 0..count {
            let (mut number, mut contents) = ([0; 4], [0; size_of::<Page>()]);
            self.budget.take_shell(size_of::<Page>() as u64)?;
            self.input.read_exact(&mut number)?;
            self.input.read_exact(&mut contents)?;
            pages.push((u32::from_le_bytes(number), Arc::new(contents)));
        }
        Ok(pages)
    }

    fn descriptor(&mut self) -> Result<PackedFd, ArchiveError> {
        let (number, cloexec) = (self.small()?, self.number()? != 0);
        let what = match self.number()? {
            0 => PackedFile::Stream(self.small()?.min(255) as u8),
            1 => {
                let ends = self.number()?;
                PackedFile::Pipe { reads: ends & 1 != 0, writes: ends & 2 != 0 }
            }
            kind @ (2 | 3) => {
                let (description, flags, offset) = (self.small()?, self.small()?, self.number()?);
                let place = if kind == 2 {
                    PackedPlace::Path(self.bytes()?)
                } else {
                    let length = self.number()?;
                    self.budget.take_open(length)?;
                    PackedPlace::Orphan(self.exactly(length)?)
                };
                PackedFile::File { description, flags, offset, place }
            }
            4 => PackedFile::Socket(self.small()?.min(255) as u8),
            _ => return damaged("it has a descriptor of an unknown kind"),
        };
        Ok(PackedFd { number, cloexec, what })
    }

    pub(crate) fn history(&mut self) -> Result<History, ArchiveError> {
        let last = self.number()?;
        if last > History::LAST_MAX {
            return damaged("its history has more commands than anybody could have entered");
        }
        let mut entries = Vec::new();
        for _ in 0..self.number()? {
            let (index, timestamp) = (self.number()?, self.number()?);
            entries.push(HistoryEntry { index, timestamp, command: self.bytes()? });
        }
        Ok(History::from_parts(last, entries))
    }

    /// Imports the files as the sandbox's own user: an archive cannot create anything where a guest could not.
    fn files(&mut self, tree: &mut Tree) -> Result<(), ArchiveError> {
        match tree.import_tar(&Caller::USER, b"/", &mut self.input) {
            Ok(_) => Ok(()),
            Err(TarError::File { name, errno: Errno::ENOSPC }) => {
                Err(ArchiveError::TooLarge(format!("no space for {}", String::from_utf8_lossy(&name))))
            }
            Err(error) => Err(ArchiveError::Files(error)),
        }
    }
}
