//! Confining a native program: in the child of a fork, before exec, in this order: privileges, files, limits, calls.
//! What is the same for all programs is done once, in the process that forks.
//!
//! Files: the jail to read and perhaps write, the system's programs to read, nothing else. Calls: no sockets unless
//! granted; no tracing, mounting, modules, namespaces; nothing of other processes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::privileges::Privileges;
use crate::{landlock, limits, seccomp};

/// What the operating system lets a program do.
///
/// `Jail` is whatever stands for the directory it works in: an opened directory where the program is started, nothing
/// where the rest travels to another process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Confinement<Jail> {
    /// The one directory whose files it may reach, besides the system's programs and libraries.
    pub jail: Jail,
    /// More files and directories it may read.
    #[serde(with = "paths")]
    pub readable: Vec<PathBuf>,
    /// More directories it may read and change.
    #[serde(with = "paths")]
    pub writable: Vec<PathBuf>,
    /// Whether it may change files in the jail.
    pub write: bool,
    /// Whether it may, besides, change mode, owner, times and attributes of files by their path: of any the user owns,
    /// since landlock does not hold these. Of a file it has open it may without.
    pub attributes: bool,
    /// Whether it may open sockets.
    pub network: bool,
    /// Whether it may start other programs.
    pub children: bool,
    /// Bytes of address space.
    pub memory: u64,
    /// Open descriptors.
    pub files: u64,
    /// Processes of its user.
    pub processes: u64,
    /// Bytes of a file it writes.
    pub file_size: u64,
    /// What must be in force, or nothing runs.
    pub required: Required,
}

/// What must be in force before a program runs. Opting out is the caller's to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Required {
    /// Landlock: files beyond the jail cannot be reached.
    pub landlock: bool,
    /// Seccomp: system calls it has no use for do not work.
    pub seccomp: bool,
}

impl Default for Required {
    fn default() -> Required {
        Required { landlock: true, seccomp: true }
    }
}

impl<Jail> Confinement<Jail> {
    /// The same in another jail.
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

/// Paths as the bytes they are: serde's own refuses those that are not UTF-8.
mod paths {
    use super::{Deserialize, OsString, PathBuf, Serialize};

    pub fn serialize<S: serde::Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        paths.iter().map(|path| path.as_os_str()).collect::<Vec<_>>().serialize(to)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<OsString>::deserialize(from)?.into_iter().map(PathBuf::from).collect())
    }
}

/// What is in force in this process already, or prepared before a fork, for many programs.
pub struct Prepared {
    privileges: Privileges,
    forbidden_for_all: io::Result<()>,
    filters: seccomp::Filters,
    others: limits::OtherProcesses,
    /// For the next program, if there was time.
    files: Option<landlock::Common>,
}

/// The half of the rules on files that is prepared for one program: in its child they become that program's, and the
/// parent must let go of them.
pub struct Files(io::Result<landlock::Common>);

impl Prepared {
    /// Confines this process, too, as far as one that only starts programs can be.
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

    /// In the child: no privilege but over files.
    pub fn drop_privileges(&self) -> io::Result<()> {
        self.privileges.drop()
    }

    /// In the child: it reaches the jail, the system's programs and `program`, and no other file.
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

    /// In the child: it takes no more than this.
    pub fn set_limits<Jail>(&self, rules: &Confinement<Jail>) -> io::Result<()> {
        rules.limits(&self.others).set()
    }

    /// In the child: calls a program has no use for fail.
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
