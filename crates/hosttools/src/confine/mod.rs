//! What the operating system holds a program to, whatever the policy let through: applied in the child of the worker's
//! fork, in this order, before exec; what is the same for all programs, in the worker, once.
//!
//! | what | file | holds |
//! |---|---|---|
//! | privileges | `privileges` | no new ones by exec (`no_new_privs`), and of root's only those on files |
//! | files | `landlock` | the jail to read and perhaps write, the system's programs to read, nothing else |
//! | limits | `limits` | address space, descriptors, processes, size of a file, no core dumps |
//! | calls | `seccomp` | no sockets and no children unless granted; no tracing, mounting, modules, namespaces, …; nothing of other processes |
//!
//! `doctor` looks what is in force on a machine.

mod landlock;
mod limits;
mod privileges;
mod seccomp;

pub(crate) use privileges::KEPT_CAPABILITIES;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;

use crate::worker::wire::Job;
use privileges::Privileges;

/// What one program is held to.
pub(crate) struct Rules<'a> {
    pub program: &'a OsString,
    pub jail: &'a OwnedFd,
    pub readable: &'a [OsString],
    pub writable: &'a [OsString],
    pub write: bool,
    pub attributes: bool,
    pub network: bool,
    pub children: bool,
    pub limits: limits::Limits,
    pub require_landlock: bool,
    pub require_seccomp: bool,
}

impl<'a> Rules<'a> {
    pub fn of(job: &'a Job, jail: &'a OwnedFd) -> Rules<'a> {
        Rules {
            program: &job.program,
            jail,
            readable: &job.readable,
            writable: &job.writable,
            write: job.write,
            attributes: job.attributes,
            network: job.network,
            children: job.children,
            limits: limits::Limits {
                memory: job.memory,
                files: job.files,
                processes: job.processes,
                file_size: job.file_size,
            },
            require_landlock: job.require_landlock,
            require_seccomp: job.require_seccomp,
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
}

/// What is in force in the worker already, or made ready before a fork, for many programs.
pub(crate) struct Prepared {
    privileges: Privileges,
    forbidden_for_all: io::Result<()>,
    filters: seccomp::Filters,
    others: limits::OtherProcesses,
    /// For the next program, if there was time.
    files: Option<landlock::Common>,
}

/// The half of the rules on files that is made ready for one program: in its child they become that program's, and the
/// worker must let go of them.
pub(crate) struct Files(io::Result<landlock::Common>);

impl Prepared {
    /// Confines this process, too, as far as a worker can do without.
    pub fn new() -> io::Result<Prepared> {
        Ok(Prepared {
            privileges: Privileges::limit()?,
            forbidden_for_all: seccomp::forbid_for_all(),
            filters: seccomp::Filters::default(),
            others: limits::OtherProcesses::default(),
            files: None,
        })
    }

    pub fn prepare(&mut self, rules: &Rules<'_>) -> Files {
        self.filters.prepare(rules.granted());
        self.others.prepare();
        let ready = self.files.take().filter(landlock::Common::is_fresh);
        Files(ready.map_or_else(landlock::Common::new, Ok))
    }

    /// When there is time.
    pub fn refresh(&mut self) {
        self.others.refresh();
        // Where this fails it fails again for the next program, who is told.
        self.files = landlock::Common::new().ok();
    }

    pub fn drop_privileges(&self) -> io::Result<()> {
        self.privileges.drop()
    }

    pub fn restrict_files(&self, files: Files, rules: &Rules<'_>) -> io::Result<()> {
        match files.0.and_then(|common| common.restrict(rules)) {
            // An error without errno: this kernel does not have it.
            Err(error) if error.raw_os_error().is_none() && !rules.require_landlock => Ok(()),
            result => result,
        }
    }

    pub fn set_limits(&self, rules: &Rules<'_>) -> io::Result<()> {
        limits::set(&rules.limits, &self.others)
    }

    pub fn restrict_calls(&self, rules: &Rules<'_>) -> io::Result<()> {
        let for_all = match &self.forbidden_for_all {
            Ok(()) => Ok(()),
            Err(error) => Err(error
                .raw_os_error()
                .map_or_else(|| io::Error::other("there is no seccomp"), io::Error::from_raw_os_error)),
        };
        match for_all.and_then(|()| self.filters.apply(rules.granted())) {
            Err(error) if error.raw_os_error().is_none() && !rules.require_seccomp => Ok(()),
            result => result,
        }
    }
}
