//! Calls on paths.

use wardian_vfs::{OpenFlags, Result, Tree};

use super::MODULE;
use super::fd::{encode_filestat, set_times};
use crate::call::{Call, Outcome, waiting_calls};
use crate::imports::Imports;
use crate::procfs;

/// WASI's look-up flag that follows a final symbolic link.
const FOLLOW: u32 = 1;
/// Modes of what WASI creates, before the umask: it cannot specify one.
const FILE_MODE: u32 = 0o666;
const DIR_MODE: u32 = 0o777;

pub(super) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    waiting_calls! { imports, MODULE;
        path_open(
            dir: u32, lookup: u32, path: u32, len: u32, oflags: u32, rights: u64, inheriting: u64,
            fdflags: u32, out: u32
        );
        path_create_directory(dir: u32, path: u32, len: u32);
        path_remove_directory(dir: u32, path: u32, len: u32);
        path_unlink_file(dir: u32, path: u32, len: u32);
        path_filestat_get(dir: u32, lookup: u32, path: u32, len: u32, out: u32);
        path_filestat_set_times(
            dir: u32, lookup: u32, path: u32, len: u32, atime: u64, mtime: u64, flags: u32
        );
        path_readlink(dir: u32, path: u32, len: u32, buf: u32, buf_len: u32, out: u32);
        path_symlink(target: u32, target_len: u32, dir: u32, path: u32, len: u32);
        path_link(
            from_dir: u32, lookup: u32, from: u32, from_len: u32, to_dir: u32, to: u32, to_len: u32
        );
        path_rename(from_dir: u32, from: u32, from_len: u32, to_dir: u32, to: u32, to_len: u32);
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)] // the parameters are WASI's
async fn path_open(
    call: &mut Call<'_>,
    dir: u32,
    lookup: u32,
    path: u32,
    len: u32,
    oflags: u32,
    rights: u64,
    _inheriting: u64,
    fdflags: u32,
    out: u32,
) -> Outcome {
    call.bytes(out, 4)?;
    let (at, path) = (call.directory(dir).await?, call.path(path, len)?);
    let flags = open_flags(lookup, oflags, rights, fdflags);
    let fd = call.open_path(at, path, flags, FILE_MODE).await?;
    Ok(call.put_u32(out, fd)?)
}

/// WASI expresses what a program wants to do as rights; without any, it is reading.
fn open_flags(lookup: u32, oflags: u32, rights: u64, fdflags: u32) -> OpenFlags {
    const READ: u64 = 1 << 1;
    const WRITE: u64 = 1 << 6;
    let mut flags = OpenFlags::empty();
    flags.set(OpenFlags::CREATE, oflags & 1 != 0);
    flags.set(OpenFlags::DIRECTORY, oflags & 2 != 0);
    flags.set(OpenFlags::EXCL, oflags & 4 != 0);
    flags.set(OpenFlags::TRUNC, oflags & 8 != 0);
    flags.set(OpenFlags::APPEND, fdflags & 1 != 0);
    flags.set(OpenFlags::NONBLOCK, fdflags & 4 != 0);
    flags.set(OpenFlags::NOFOLLOW, lookup & FOLLOW == 0);
    // Directories are opened with every right there is; only files can be written.
    flags.set(OpenFlags::WRITE, rights & WRITE != 0 && oflags & 2 == 0);
    flags.set(OpenFlags::READ, rights & READ != 0 || !flags.contains(OpenFlags::WRITE));
    flags
}

async fn path_create_directory(call: &mut Call<'_>, dir: u32, path: u32, len: u32) -> Outcome {
    Ok(call.on_path(dir, path, len, |tree, caller, at, path| tree.mkdir(caller, at, path, DIR_MODE)).await?)
}

async fn path_remove_directory(call: &mut Call<'_>, dir: u32, path: u32, len: u32) -> Outcome {
    Ok(call.on_path(dir, path, len, |tree, caller, at, path| tree.rmdir(caller, at, path)).await?)
}

async fn path_unlink_file(call: &mut Call<'_>, dir: u32, path: u32, len: u32) -> Outcome {
    Ok(call.on_path(dir, path, len, |tree, caller, at, path| tree.unlink(caller, at, path)).await?)
}

async fn path_filestat_get(
    call: &mut Call<'_>,
    dir: u32,
    lookup: u32,
    path: u32,
    len: u32,
    out: u32,
) -> Outcome {
    call.bytes(out, 64)?;
    let stat = call.stat_path(dir, path, len, lookup & FOLLOW != 0).await?;
    Ok(call.put(out, &encode_filestat(&stat))?)
}

#[allow(clippy::too_many_arguments)] // the parameters are WASI's
async fn path_filestat_set_times(
    call: &mut Call<'_>,
    dir: u32,
    lookup: u32,
    path: u32,
    len: u32,
    atime: u64,
    mtime: u64,
    flags: u32,
) -> Outcome {
    let (atime, mtime) = set_times(atime, mtime, flags)?;
    let follow = lookup & FOLLOW != 0;
    let work = move |tree: &mut Tree, caller: &_, at: &_, path: &_| {
        tree.utimes(caller, at, path, follow, atime, mtime)
    };
    Ok(call.on_path_through(dir, path, len, follow, work).await?)
}

async fn path_readlink(
    call: &mut Call<'_>,
    dir: u32,
    path: u32,
    len: u32,
    buf: u32,
    buf_len: u32,
    out: u32,
) -> Outcome {
    call.bytes(buf, buf_len)?;
    call.bytes(out, 4)?;
    let machine = call.machine().clone();
    let work = move |tree: &mut Tree, caller: &_, at: &_, path: &_| {
        let mut target = tree.read_link(caller, at, path)?;
        if procfs::is_deleted(&machine, tree, &tree.lookup(caller, at, path, false)?) {
            target.extend(b" (deleted)");
        }
        Ok(target)
    };
    let mut target = call.on_path(dir, path, len, work).await?;
    target.truncate(buf_len as usize);
    call.put(buf, &target)?;
    Ok(call.put_u32(out, target.len() as u32)?)
}

async fn path_symlink(
    call: &mut Call<'_>,
    target: u32,
    target_len: u32,
    dir: u32,
    path: u32,
    len: u32,
) -> Outcome {
    let target = call.name(target, target_len)?;
    let work = move |tree: &mut Tree, caller: &_, at: &_, path: &_| tree.symlink(caller, &target, at, path);
    Ok(call.on_path(dir, path, len, work).await?)
}

#[allow(clippy::too_many_arguments)] // the parameters are WASI's
async fn path_link(
    call: &mut Call<'_>,
    from_dir: u32,
    lookup: u32,
    from: u32,
    from_len: u32,
    to_dir: u32,
    to: u32,
    to_len: u32,
) -> Outcome {
    let follow = lookup & FOLLOW != 0;
    two_paths(
        call,
        (from_dir, from, from_len),
        follow,
        (to_dir, to, to_len),
        move |tree, caller, from, to| tree.link(caller, from.0, from.1, follow, to.0, to.1),
    )
    .await
}

async fn path_rename(
    call: &mut Call<'_>,
    from_dir: u32,
    from: u32,
    from_len: u32,
    to_dir: u32,
    to: u32,
    to_len: u32,
) -> Outcome {
    two_paths(call, (from_dir, from, from_len), false, (to_dir, to, to_len), |tree, caller, from, to| {
        tree.rename(caller, from.0, from.1, to.0, to.1)
    })
    .await
}

type Spot<'a> = (&'a wardian_vfs::Place, &'a [u8]);

/// Does something that takes two paths; it may block if either is on the host.
async fn two_paths<F>(
    call: &mut Call<'_>,
    from: (u32, u32, u32),
    follow: bool,
    to: (u32, u32, u32),
    work: F,
) -> Outcome
where
    F: FnOnce(&mut Tree, &wardian_vfs::Caller, Spot<'_>, Spot<'_>) -> Result<()> + Send + 'static,
{
    let (from_at, from) = (call.directory(from.0).await?, call.path(from.1, from.2)?);
    let (to_at, to) = (call.directory(to.0).await?, call.path(to.1, to.2)?);
    let caller = call.process().caller();
    let (source, target) = ((from_at.clone(), from.clone()), (to_at.clone(), to.clone()));
    let (guard, guard_of_target) = (call.guard(follow), call.guard(false));
    let work = move |tree: &mut Tree| {
        let from = guard.path(tree, &caller, &from_at, from)?;
        let to = guard_of_target.path(tree, &caller, &to_at, to)?;
        work(tree, &caller, (&from_at, &from), (&to_at, &to))
    };
    let paths: [Spot<'_>; 2] = [(&source.0, &source.1), (&target.0, &target.1)];
    let done = call.machine().clone().at_paths(&paths, work).await;
    Ok(call.noted(done).await?)
}
