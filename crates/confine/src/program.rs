//! Confining a native program: in the child of a fork, before exec, in this order: privileges, files, limits, calls.
//! What is the same for all programs is done once, in the process that forks.
//!
//! Files: the jail to read and perhaps write, the system's programs to read, nothing else. Calls: no sockets unless
//! allowed; no tracing, mounting, modules or namespaces; no access to other processes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::privileges::Privileges;
use crate::{landlock, limits, seccomp};

/// What the operating system lets a program do.
///
/// `Jail` represents the directory it works in: an opened directory where the program is started, nothing if the rest is
/// sent to another process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Confinement<Jail> {
    /// The directory whose files it may access, in addition to the system's programs and libraries.
    pub jail: Jail,
    /// More files and directories it may read.
    #[serde(with = "paths")]
    pub readable: Vec<PathBuf>,
    /// More directories it may read and change.
    #[serde(with = "paths")]
    pub writable: Vec<PathBuf>,
    /// Whether it may change files in the jail.
    pub write: bool,
    /// Whether it may also change mode, owner, times and attributes of files by path: of any file the user owns, since
    /// landlock does not cover these. It may always do so for a file it has open.
    pub attributes: bool,
    /// Whether it may open sockets.
    pub network: bool,
    /// Whether it may start other programs.
    pub children: bool,
    /// Maximum bytes of address space.
    pub memory: u64,
    /// Maximum number of open descriptors.
    pub files: u64,
    /// Maximum number of its user's processes.
    pub processes: u64,
    /// Maximum bytes of a file it writes.
    pub file_size: u64,
    /// What must be in force for the program to run.
    pub required: Required,
}

/// What must be in force before a program runs. The caller may opt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Required {
    /// Landlock: files outside the jail are inaccessible.
    pub landlock: bool,
    /// Seccomp: system calls that it does not need are blocked.
    pub seccomp: bool,
}

impl Default for Required {
    fn default() -> Required {
        Required { landlock: true, seccomp: true }
    }
}

impl<Jail> Confinement<Jail> {
    /// Returns the same for another jail.
    pub fn in_jail<Other>(&self, jail: Other) -> Confinement<Other> {
        Confinement {
            jail,
            readable: self.readable.clone(),
            writable: self.writable.clone(),
            write: self.write,
            attributes: self.attributes,
            network: self.network,
            children: self.children,
            memory: self.memory,
            files: self.files,
            processes: self.processes,
            file_size: self.file_size,
            required: self.required,
        }
    }

    fn granted(&self) -> seccomp::Granted {
        seccomp::Granted {
            write: self.write,
            // Who may write nothing changes nothing else either.
            attributes: self.attributes && self.write,
            network: self.network,
            children: self.children,
        }
    }

    fn limits(&self, others: &limits::OtherProcesses) -> limits::Limits {
        limits::Limits {
            memory: self.memory,
            files: self.files,
            processes: others.beside(self.processes),
            file_size: self.file_size,
            processor_seconds: None,
        }
    }
}

/// Paths as bytes: serde's own implementation refuses those that are not UTF-8.
mod paths {
    use super::{Deserialize, OsString, PathBuf, Serialize};

    pub fn serialize<S: serde::Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        paths.iter().map(|path| path.as_os_str()).collect::<Vec<_>>().serialize(to)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<OsString>::deserialize(from)?.into_iter().map(PathBuf::from).collect())
    }
}

/// What is already in force in this process, or prepared before a fork, for many programs.
pub struct Prepared {
    privileges: Privileges,
    forbidden_for_all: io::Result<()>,
    filters: seccomp::Filters,
    others: limits::OtherProcesses,
    /// For the next program, if there was time.
    files: Option<landlock::Common>,
}

/// The half of the file rules that is prepared for one program: in its child they become that program's, and the parent
/// must drop them.
pub struct Files(io::Result<landlock::Common>);

impl Prepared {
    /// Prepares, and confines this process as well, as far as one that only starts programs can be.
    pub fn new() -> io::Result<Prepared> {
        Ok(Prepared {
            privileges: Privileges::limit()?,
            forbidden_for_all: seccomp::forbid_for_all(),
            filters: seccomp::Filters::default(),
            others: limits::OtherProcesses::default(),
            files: None,
        })
    }

    /// Before a fork: does what would take time after it.
    pub fn prepare<Jail>(&mut self, rules: &Confinement<Jail>) -> Files {
        self.filters.prepare(rules.granted());
        self.others.prepare();
        let ready = self.files.take().filter(landlock::Common::is_fresh);
        Files(ready.map_or_else(landlock::Common::new, Ok))
    }

    /// Prepares for the next program, when there is time.
    pub fn refresh(&mut self) {
        self.others.refresh();
        // Where this fails it fails again for the next program, who is told.
        self.files = landlock::Common::new().ok();
    }

    /// In the child: drops all privileges except those over files.
    pub fn drop_privileges(&self) -> io::Result<()> {
        self.privileges.drop()
    }

    /// In the child: restricts file access to the jail, the system's programs and `program`.
    pub fn restrict_files(
        &self,
        files: Files,
        program: &OsStr,
        rules: &Confinement<impl AsFd>,
    ) -> io::Result<()> {
        match files.0.and_then(|common| common.restrict(program, rules)) {
            // An error without errno: this kernel does not have it.
            Err(error) if error.raw_os_error().is_none() && !rules.required.landlock => Ok(()),
            result => result,
        }
    }

    /// In the child: sets the resource limits.
    pub fn set_limits<Jail>(&self, rules: &Confinement<Jail>) -> io::Result<()> {
        rules.limits(&self.others).set()
    }

    /// In the child: blocks system calls that the program does not need.
    pub fn restrict_calls<Jail>(&self, rules: &Confinement<Jail>) -> io::Result<()> {
        let for_all = match &self.forbidden_for_all {
            Ok(()) => Ok(()),
            Err(error) => Err(error
                .raw_os_error()
                .map_or_else(|| io::Error::other("there is no seccomp"), io::Error::from_raw_os_error)),
        };
        match for_all.and_then(|()| self.filters.apply(rules.granted())) {
            Err(error) if error.raw_os_error().is_none() && !rules.required.seccomp => Ok(()),
            result => result,
        }
    }
}
