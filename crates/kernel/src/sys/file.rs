//! Files: what Unix has and WASI lacks (modes, owners, named pipes, the working directory).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wardian_vfs::{Access, Errno, FileKind, Handle, OpenFlags, Place, Result, Stat, Tree};

use super::MODULE;
use crate::call::{Call, Outcome, number_call, waiting_calls};
use crate::cwd::Cwd;
use crate::fd::OpenFile;
use crate::imports::Imports;

/// The path flag that follows a final symbolic link.
const FOLLOW: u32 = 1;
const BLOCK: u32 = 4096;
/// The longest path that `getcwd` builds. Directories can be nested deeper; then libc walks up by itself.
const LONGEST_CWD: usize = 32 * 1024;
/// Bytes of a `stat`.
const STAT_SIZE: u32 = 96;

pub(super) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    waiting_calls! { imports, MODULE;
        stat(dir: u32, path: u32, len: u32, flags: u32, out: u32);
        fstat(fd: u32, out: u32);
        chmod(dir: u32, path: u32, len: u32, flags: u32, mode: u32);
        fchmod(fd: u32, mode: u32);
        chown(dir: u32, path: u32, len: u32, flags: u32, uid: u32, gid: u32);
        access(dir: u32, path: u32, len: u32, mode: u32);
        mkdir(dir: u32, path: u32, len: u32, mode: u32);
        mkfifo(dir: u32, path: u32, len: u32, mode: u32);
        open(dir: u32, path: u32, len: u32, flags: u32, mode: u32, fd: u32);
        statfs(dir: u32, path: u32, len: u32, out: u32);
        getcwd(buf: u32, len: u32, need: u32);
        chdir(dir: u32, path: u32, len: u32);
    }
    number_call!(imports, MODULE, "umask", |ctx, mask: u32| {
        ctx.process.umask.swap(mask & 0o777, Ordering::Relaxed)
    });
    Ok(())
}

/// Linux's type bits of a mode.
fn type_bits(kind: FileKind) -> u32 {
    match kind {
        FileKind::File => 0o100_000,
        FileKind::Dir => 0o040_000,
        FileKind::Symlink => 0o120_000,
        FileKind::Device(_) => 0o020_000,
        FileKind::Socket => 0o140_000,
        FileKind::Fifo => 0o010_000,
    }
}

fn encode(stat: &Stat) -> Vec<u8> {
    let mut out = Vec::with_capacity(STAT_SIZE as usize);
    for field in [stat.dev, stat.ino, stat.size, stat.blocks, stat.rdev] {
        out.extend(field.to_le_bytes());
    }
    for time in [stat.atime, stat.mtime, stat.ctime] {
        out.extend(time.to_le_bytes());
    }
    let mode = stat.mode | type_bits(stat.kind);
    for field in [mode, stat.nlink, stat.uid, stat.gid, BLOCK, 0] {
        out.extend(field.to_le_bytes());
    }
    out.extend(stat.version.to_le_bytes());
    out
}

async fn stat(call: &mut Call<'_>, dir: u32, path: u32, len: u32, flags: u32, out: u32) -> Outcome {
    call.bytes(out, STAT_SIZE)?;
    let stat = call.stat_path(dir, path, len, flags & FOLLOW != 0).await?;
    Ok(call.put(out, &encode(&stat))?)
}

async fn fstat(call: &mut Call<'_>, fd: u32, out: u32) -> Outcome {
    call.bytes(out, STAT_SIZE)?;
    let file = call.file(fd)?;
    let stat = call.stat_file(&file).await?;
    Ok(call.put(out, &encode(&stat))?)
}

impl Call<'_> {
    /// Returns the metadata of what is at a path; through `/dev/fd/N`, of what that descriptor has open.
    pub(crate) async fn stat_path(&mut self, dir: u32, path: u32, len: u32, follow: bool) -> Result<Stat> {
        let work = move |tree: &mut Tree, caller: &_, at: &_, path: &_| {
            let stat = tree.stat(caller, at, path, follow)?;
            // Only a link that no path can follow is still a link when followed.
            let magic = follow && stat.kind == FileKind::Symlink;
            let place = if magic { Some(tree.lookup(caller, at, path, true)?) } else { None };
            Ok((stat, place))
        };
        let (stat, magic) = self.on_path_through(dir, path, len, follow, work).await?;
        match magic {
            None => Ok(stat),
            Some(place) => {
                let file = self.descriptor_at(&place)?.0.file;
                self.stat_file(&file).await
            }
        }
    }

    /// What an open file is.
    pub(crate) async fn stat_file(&self, file: &Arc<OpenFile>) -> Result<Stat> {
        let caller = self.process().caller();
        match file.in_tree() {
            Some(file) => {
                let work = move |tree: &mut Tree, handle: &mut Handle| tree.stat_handle(&caller, handle);
                self.machine().on_file(&file, work).await
            }
            None if matches!(&**file, OpenFile::Terminal(..)) => Ok(crate::tty::stat()),
            None => Ok(match &**file {
                OpenFile::Socket(socket) => {
                    let ino = socket.socket().id();
                    Stat { kind: FileKind::Socket, mode: 0o777, ..pipe_stat(ino) }
                }
                _ => pipe_stat(file.pipe().map_or(0, |pipe| pipe.id())),
            }),
        }
    }
}

/// What a pipe or a stream looks like to `fstat`.
fn pipe_stat(ino: u64) -> Stat {
    Stat {
        dev: 0,
        ino,
        kind: FileKind::Fifo,
        mode: 0o600,
        nlink: 1,
        uid: crate::proc::UID,
        gid: crate::proc::UID,
        size: 0,
        blocks: 0,
        rdev: 0,
        atime: 0,
        mtime: 0,
        ctime: 0,
        version: 0,
    }
}

async fn chmod(call: &mut Call<'_>, dir: u32, path: u32, len: u32, flags: u32, mode: u32) -> Outcome {
    let follow = flags & FOLLOW != 0;
    let work = move |tree: &mut Tree, caller: &_, at: &_, path: &_| {
        tree.chmod(caller, at, path, follow, mode & 0o7777)
    };
    Ok(call.on_path(dir, path, len, work).await?)
}

async fn fchmod(call: &mut Call<'_>, fd: u32, mode: u32) -> Outcome {
    let file = call.file(fd)?;
    let file = file.in_tree().unwrap_or(file);
    let caller = call.process().caller();
    let work = move |tree: &mut Tree, handle: &mut Handle| tree.chmod_handle(&caller, handle, mode & 0o7777);
    match call.machine().clone().on_file(&file, work).await {
        Err(Errno::ESPIPE) => Err(Errno::EINVAL.into()),
        done => Ok(done?),
    }
}

async fn chown(
    call: &mut Call<'_>,
    dir: u32,
    path: u32,
    len: u32,
    flags: u32,
    uid: u32,
    gid: u32,
) -> Outcome {
    let given = |id: u32| (id != u32::MAX).then_some(id);
    let (uid, gid, follow) = (given(uid), given(gid), flags & FOLLOW != 0);
    let work =
        move |tree: &mut Tree, caller: &_, at: &_, path: &_| tree.chown(caller, at, path, follow, uid, gid);
    Ok(call.on_path(dir, path, len, work).await?)
}

async fn access(call: &mut Call<'_>, dir: u32, path: u32, len: u32, mode: u32) -> Outcome {
    if mode > 7 {
        return Err(Errno::EINVAL.into());
    }
    let mut wanted = Access::empty();
    wanted.set(Access::R, mode & 4 != 0);
    wanted.set(Access::W, mode & 2 != 0);
    wanted.set(Access::X, mode & 1 != 0);
    let work = move |tree: &mut Tree, caller: &_, at: &_, path: &_| tree.access(caller, at, path, wanted);
    Ok(call.on_path(dir, path, len, work).await?)
}

async fn mkdir(call: &mut Call<'_>, dir: u32, path: u32, len: u32, mode: u32) -> Outcome {
    let mode = mode & 0o7777;
    Ok(call.on_path(dir, path, len, move |tree, caller, at, path| tree.mkdir(caller, at, path, mode)).await?)
}

async fn mkfifo(call: &mut Call<'_>, dir: u32, path: u32, len: u32, mode: u32) -> Outcome {
    let mode = mode & 0o7777;
    Ok(call
        .on_path(dir, path, len, move |tree, caller, at, path| tree.mkfifo(caller, at, path, mode))
        .await?)
}

async fn open(call: &mut Call<'_>, dir: u32, path: u32, len: u32, flags: u32, mode: u32, fd: u32) -> Outcome {
    call.bytes(fd, 4)?;
    let (at, path) = (call.directory(dir).await?, call.path(path, len)?);
    let opened = call.open_path(at, path, unix_flags(flags)?, mode & 0o7777).await?;
    call.process().fds.lock().get_mut(opened)?.cloexec = flags & O_CLOEXEC != 0;
    Ok(call.put_u32(fd, opened)?)
}

const O_CLOEXEC: u32 = 0o2_000_000;

/// Linux's `O_*` bits.
fn unix_flags(bits: u32) -> Result<OpenFlags> {
    let mut flags = match bits & 3 {
        0 => OpenFlags::READ,
        1 => OpenFlags::WRITE,
        2 => OpenFlags::READ | OpenFlags::WRITE,
        _ => return Err(Errno::EINVAL),
    };
    let table = [
        (0o100, OpenFlags::CREATE),
        (0o200, OpenFlags::EXCL),
        (0o1000, OpenFlags::TRUNC),
        (0o2000, OpenFlags::APPEND),
        (0o4000, OpenFlags::NONBLOCK),
        (0o200_000, OpenFlags::DIRECTORY),
        (0o400_000, OpenFlags::NOFOLLOW),
    ];
    for (bit, flag) in table {
        flags.set(flag, bits & bit != 0);
    }
    Ok(flags)
}

async fn statfs(call: &mut Call<'_>, dir: u32, path: u32, len: u32, out: u32) -> Outcome {
    call.bytes(out, 48)?;
    let work = |tree: &mut Tree, caller: &_, at: &_, path: &_| {
        tree.stat(caller, at, path, true)?;
        Ok((tree.quota(), tree.usage()))
    };
    let (quota, usage) = call.on_path(dir, path, len, work).await?;
    let block = u64::from(BLOCK);
    let fields = [
        block,
        quota.bytes / block,
        quota.bytes.saturating_sub(usage.total()) / block,
        quota.inodes,
        quota.inodes.saturating_sub(usage.inodes),
        255,
    ];
    let bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
    Ok(call.put(out, &bytes)?)
}

async fn getcwd(call: &mut Call<'_>, buf: u32, len: u32, need: u32) -> Outcome {
    call.bytes(need, 4)?;
    call.bytes(buf, len)?;
    let cwd = call.process().place();
    let path = call.machine().tree().await.path_within(&cwd, LONGEST_CWD)?;
    call.put_u32(need, path.len() as u32)?;
    if path.len() > len as usize {
        return Err(Errno::ERANGE.into());
    }
    Ok(call.put(buf, &path)?)
}

async fn chdir(call: &mut Call<'_>, dir: u32, path: u32, len: u32) -> Outcome {
    let at = call.directory(dir).await?;
    let path = if len == 0 { b".".to_vec() } else { call.path(path, len)? };
    let cwd = call.directory_at(at, path).await?;
    *call.process().cwd.lock() = cwd;
    Ok(())
}

impl Call<'_> {
    /// Returns the directory at a path relative to the working directory, for a child that starts there.
    pub(super) async fn working_directory(&mut self, ptr: u32, len: u32) -> Result<Cwd> {
        let path = self.path(ptr, len)?;
        let cwd = self.process().place();
        self.directory_at(cwd, path).await
    }

    /// A directory one may enter.
    async fn directory_at(&self, at: Place, path: Vec<u8>) -> Result<Cwd> {
        let (caller, machine) = (self.process().caller(), self.machine().clone());
        let (from, name) = (at.clone(), path.clone());
        let enter = move |tree: &mut Tree| Cwd::enter(&machine, tree, &caller, &from, &name);
        self.machine().at_path(&at, &path, enter).await
    }
}
