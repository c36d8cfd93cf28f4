//! Files: one function for each call of the system.

use std::ffi::OsString;
use std::path::Path;

use rquickjs::{Array, Ctx, Object, TypedArray, Value};
use wardian_abi::{self as abi, Dir, Errno, Fd, Stat, Whence};

use super::{Answer, Bytes, bytes, read, write};

/// How much one call reads of a file that is read as a whole.
const PIECE: usize = 256 << 10;

/// A path as the library gives it.
struct PathBytes(Vec<u8>);

impl<'js> rquickjs::FromJs<'js> for PathBytes {
    fn from_js(_: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Self> {
        Ok(PathBytes(bytes::utf8(&value)))
    }
}

/// Tries again what a signal interrupted.
fn again<T>(mut call: impl FnMut() -> abi::Result<T>) -> Answer<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return Answer(done),
        }
    }
}

fn open(path: PathBytes, flags: u32, mode: u32) -> Answer<Fd> {
    again(|| abi::open(Dir::CWD, &path.0, flags | abi::open_flags::CLOEXEC, mode))
}

fn close(fd: Fd) -> Answer<()> {
    Answer(abi::close(fd))
}

/// Reads into an array, at a place or where the file is.
fn read_some(fd: Fd, into: TypedArray<'_, u8>, at: f64) -> Answer<u32> {
    write(&into, |buffer| {
        again(|| {
            if at >= 0.0 { abi::pread(fd, buffer, at as u64) } else { abi::read(fd, buffer) }
                .map(|n| n as u32)
        })
    })
}

/// Writes an array, at a place or where the file is.
fn write_some(fd: Fd, from: TypedArray<'_, u8>, at: f64) -> Answer<u32> {
    read(&from, |bytes| {
        again(|| {
            if at >= 0.0 { abi::pwrite(fd, bytes, at as u64) } else { abi::write(fd, bytes) }
                .map(|n| n as u32)
        })
    })
}

/// Writes all of an array, and waits where a pipe is full.
fn write_all(fd: Fd, from: TypedArray<'_, u8>) -> Answer<()> {
    read(&from, |bytes| Answer(write_waiting(fd, bytes)))
}

/// Writes text as UTF-8, as `write_all`.
fn write_text(fd: Fd, text: Value<'_>) -> Answer<()> {
    Answer(write_waiting(fd, &bytes::utf8(&text)))
}

fn write_waiting(fd: Fd, mut bytes: &[u8]) -> abi::Result<()> {
    while !bytes.is_empty() {
        match abi::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count.min(bytes.len())..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => drop(abi::poll_write(fd, None)?),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// All that is left to read of a descriptor.
fn read_rest(fd: Fd) -> Answer<Bytes> {
    let size = abi::fstat(fd).map_or(0, |stat| if stat.is_file() { stat.size as usize } else { 0 });
    let (mut all, mut length) = (vec![0; size + 1], 0);
    loop {
        if length == all.len() {
            all.resize(length + PIECE.max(length / 2), 0);
        }
        match abi::read(fd, &mut all[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => match abi::poll_read(fd, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Answer(Err(errno)),
            },
            Err(errno) => return Answer(Err(errno)),
        }
    }
    all.truncate(length);
    Answer(Ok(Bytes(all)))
}

/// A description as numbers, in the order of `fs.Stats`; times are in nanoseconds, split so that none is lost.
fn numbers(stat: Stat) -> Vec<f64> {
    let split = |time: i64| [time.div_euclid(1_000_000_000) as f64, time.rem_euclid(1_000_000_000) as f64];
    let plain = [
        stat.dev as f64,
        stat.mode.into(),
        stat.nlink.into(),
        stat.uid.into(),
        stat.gid.into(),
        stat.rdev as f64,
        stat.block_size.into(),
        stat.ino as f64,
        stat.size as f64,
        stat.blocks as f64,
    ];
    plain.into_iter().chain([stat.atime, stat.mtime, stat.ctime].into_iter().flat_map(split)).collect()
}

fn stat(path: PathBytes, follow: bool) -> Answer<Vec<f64>> {
    Answer(abi::stat(Dir::CWD, &path.0, follow).map(numbers))
}

fn fstat(fd: Fd) -> Answer<Vec<f64>> {
    Answer(abi::fstat(fd).map(numbers))
}

fn path_of(bytes: &[u8]) -> OsString {
    #[cfg(unix)]
    use std::os::unix::ffi::OsStrExt;
    #[cfg(target_os = "wasi")]
    use std::os::wasi::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).to_owned()
}

/// Names and kinds of a directory's entries, in turn: 1 file, 2 directory, 3 link, 0 something else.
fn read_directory<'js>(ctx: Ctx<'js>, path: PathBytes) -> rquickjs::Result<Answer<Array<'js>>> {
    let entries = match std::fs::read_dir(Path::new(&path_of(&path.0))) {
        Ok(entries) => entries,
        Err(error) => return Ok(Answer(Err(error.into()))),
    };
    let out = Array::new(ctx)?;
    let mut count = 0;
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Ok(Answer(Err(error.into()))),
        };
        let kind = entry.file_type().map_or(0, |kind| match kind {
            _ if kind.is_file() => 1,
            _ if kind.is_dir() => 2,
            _ if kind.is_symlink() => 3,
            _ => 0,
        });
        out.set(count, entry.file_name().to_string_lossy().into_owned())?;
        out.set(count + 1, kind)?;
        count += 2;
    }
    Ok(Answer(Ok(out)))
}

fn read_link(path: PathBytes) -> Answer<String> {
    Answer(abi::readlink(Dir::CWD, &path.0).map(|target| String::from_utf8_lossy(&target).into_owned()))
}

/// Sets times in nanoseconds, given as seconds.
fn set_times(path: PathBytes, follow: bool, access: f64, change: f64) -> Answer<()> {
    let nanos = |seconds: f64| Some((seconds * 1000.0).round() as i64 * 1_000_000);
    Answer(abi::set_times(Dir::CWD, &path.0, follow, nanos(access), nanos(change)))
}

fn set_owner(path: PathBytes, follow: bool, uid: u32, gid: u32) -> Answer<()> {
    Answer(abi::chown(Dir::CWD, &path.0, follow, Some(uid), Some(gid)))
}

fn seek(fd: Fd, offset: f64, whence: u32) -> Answer<f64> {
    let whence = [Whence::Start, Whence::Current, Whence::End][whence.min(2) as usize];
    Answer(abi::seek(fd, offset as i64, whence).map(|at| at as f64))
}

fn file_system(path: PathBytes) -> Answer<Vec<f64>> {
    let numbers = |fs: abi::StatFs| {
        [fs.block_size, fs.blocks, fs.free_blocks, fs.files, fs.free_files].map(|n| n as f64).to_vec()
    };
    Answer(abi::statfs(Dir::CWD, &path.0).map(numbers))
}

pub fn register<'js>(ctx: &Ctx<'js>, bridge: &Object<'js>) -> rquickjs::Result<()> {
    crate::functions!(ctx, bridge;
        "open" => open, "close" => close, "read" => read_some, "write" => write_some, "writeAll" => write_all,
        "writeText" => write_text, "readRest" => read_rest, "stat" => stat, "fstat" => fstat,
        "readDirectory" => read_directory, "readLink" => read_link, "setTimes" => set_times,
        "setOwner" => set_owner, "seek" => seek, "fileSystem" => file_system,
        "mkdir" => |path: PathBytes, mode: u32| Answer(abi::mkdir(Dir::CWD, &path.0, mode)),
        "rmdir" => |path: PathBytes| Answer(abi::rmdir(Dir::CWD, &path.0)),
        "unlink" => |path: PathBytes| Answer(abi::unlink(Dir::CWD, &path.0)),
        "rename" => |from: PathBytes, to: PathBytes| Answer(abi::rename(Dir::CWD, &from.0, Dir::CWD, &to.0)),
        "link" => |from: PathBytes, to: PathBytes| Answer(abi::hard_link(Dir::CWD, &from.0, Dir::CWD, &to.0)),
        "symlink" => |target: PathBytes, path: PathBytes| Answer(abi::symlink(&target.0, Dir::CWD, &path.0)),
        "chmod" => |path: PathBytes, mode: u32| Answer(abi::chmod(Dir::CWD, &path.0, true, mode)),
        "fchmod" => |fd: Fd, mode: u32| Answer(abi::fchmod(fd, mode)),
        "access" => |path: PathBytes, mode: u32| Answer(abi::access(Dir::CWD, &path.0, mode)),
        "truncate" => |fd: Fd, size: f64| Answer(abi::truncate(fd, size as u64)),
        "sync" => |fd: Fd| Answer(abi::sync(fd)),
        "chdir" => |path: PathBytes| Answer(abi::chdir(Dir::CWD, &path.0)),
        "cwd" => || Answer(abi::getcwd().map(|path| String::from_utf8_lossy(&path).into_owned())),
        "umask" => abi::umask,
    );
    Ok(())
}
