//! Files by paths that are bytes, and files that are replaced in one step.

use std::io::{self, Write};

use toolkit::files::path;
pub use toolkit::files::{join, names_in, parent};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Stat};

use crate::fail::{Fail, Res, fatal, reason, system};

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn read(name: &[u8]) -> io::Result<Vec<u8>> {
    std::fs::read(path(name))
}

/// A file's content, or nothing if there is no such file.
pub fn read_if_there(name: &[u8]) -> Res<Option<Vec<u8>>> {
    match read(name) {
        Ok(content) => Ok(Some(content)),
        Err(error) => match Errno::from(error) {
            Errno::NOENT | Errno::NOTDIR | Errno::ISDIR => Ok(None),
            error => Err(Fail::Fatal(format!("cannot read '{}': {}", text(name), error.message()))),
        },
    }
}

pub fn write(name: &[u8], content: &[u8]) -> Res<()> {
    std::fs::write(path(name), content).map_err(system(format_args!("cannot write '{}'", text(name))))
}

pub fn exists(name: &[u8]) -> bool {
    lstat(name).is_some()
}

pub fn is_dir(name: &[u8]) -> bool {
    abi::stat(Dir::CWD, name, true).is_ok_and(|stat| stat.is_dir())
}

pub fn is_file(name: &[u8]) -> bool {
    abi::stat(Dir::CWD, name, true).is_ok_and(|stat| stat.is_file())
}

/// What is there, without following a link.
pub fn lstat(name: &[u8]) -> Option<Stat> {
    abi::stat(Dir::CWD, name, false).ok()
}

pub fn make_dirs(name: &[u8]) -> Res<()> {
    std::fs::create_dir_all(path(name))
        .map_err(system(format_args!("cannot create directory at '{}'", text(name))))
}

pub fn remove(name: &[u8]) -> io::Result<()> {
    std::fs::remove_file(path(name))
}

/// Removes a file that may not be there.
pub fn remove_if_there(name: &[u8]) -> Res<()> {
    match remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Fail::Fatal(format!("cannot remove '{}': {}", text(name), reason(error))))
        }
        _ => Ok(()),
    }
}

pub fn remove_dir_all(name: &[u8]) -> io::Result<()> {
    std::fs::remove_dir_all(path(name))
}

pub fn rmdir(name: &[u8]) -> io::Result<()> {
    std::fs::remove_dir(path(name))
}

pub fn rename(from: &[u8], to: &[u8]) -> io::Result<()> {
    std::fs::rename(path(from), path(to))
}

/// Removes directories that became empty, upwards, but not `stop`.
pub fn prune_upwards(name: &[u8], stop: &[u8]) {
    let mut directory = parent(name);
    while directory.len() > stop.len() && directory.starts_with(stop) {
        if rmdir(&directory).is_err() {
            return;
        }
        directory = parent(&directory);
    }
}

/// A file being replaced: written beside it as `NAME.lock`, which also keeps others out, then renamed over it. It is the old
/// one or the new one at every moment; dropped without [`commit`](Lock::commit) nothing has changed.
pub struct Lock {
    name: Vec<u8>,
    lock: Vec<u8>,
    file: Option<std::fs::File>,
    done: bool,
}

impl Lock {
    pub fn take(name: &[u8]) -> Res<Lock> {
        let mut lock = name.to_vec();
        lock.extend_from_slice(b".lock");
        let opened = std::fs::OpenOptions::new().write(true).create_new(true).open(path(&lock));
        match opened {
            Ok(file) => Ok(Lock { name: name.to_vec(), lock, file: Some(file), done: false }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fatal!(
                "Unable to create '{}': File exists.\n\nAnother git process seems to be running in this repository, e.g.\n\
                 an editor opened by 'git commit'. Please make sure all processes\nare terminated then try again. If it \
                 still fails, a git process\nmay have crashed in this repository earlier:\nremove the file manually to \
                 continue.",
                text(&toolkit::files::resolve(&lock))
            ),
            Err(error) => fatal!("Unable to create '{}': {}", text(&lock), reason(error)),
        }
    }

    pub fn write(&mut self, content: &[u8]) -> Res<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(content).map_err(system(format_args!("unable to write '{}'", text(&self.lock))))
    }

    pub fn commit(mut self) -> Res<()> {
        self.file = None;
        rename(&self.lock, &self.name)
            .map_err(system(format_args!("unable to write '{}'", text(&self.name))))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.done {
            self.file = None;
            // It is what a crash would leave behind too, and then a message says so.
            let _ = remove(&self.lock);
        }
    }
}

/// Replaces a file in one step.
pub fn replace(name: &[u8], content: &[u8]) -> Res<()> {
    let mut lock = Lock::take(name)?;
    lock.write(content)?;
    lock.commit()
}
