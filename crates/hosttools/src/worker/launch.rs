//! From an order to a running program: everything that can fail is prepared before the fork, and the rest is reported
//! through a pipe that exec closes.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::process::{Pid, Signal, set_parent_process_death_signal, setsid};

use wardian_confine::fork_exec::{self, Side, Strings};
use wardian_confine::{Confinement, Files, Prepared};

use super::wire::{Descriptors, Job, Obstacle, Step};

/// Starts programs, and keeps what does not change between them.
pub(super) struct Launcher {
    confine: Prepared,
}

impl Launcher {
    pub fn new() -> io::Result<Launcher> {
        Ok(Launcher { confine: Prepared::new()? })
    }

    /// Starts a program and returns when it runs.
    pub fn launch(&mut self, job: &Job, descriptors: &Descriptors<OwnedFd>) -> Result<Pid, Obstacle> {
        let program = Program::new(job).map_err(|error| obstacle(Step::Prepare, &error))?;
        let rules = job.confinement.in_jail(&descriptors.jail);
        let files = self.confine.prepare(&rules);
        let (mut trouble, report) = pipe().map_err(|error| obstacle(Step::Prepare, &error))?;
        match fork_exec::fork().map_err(|error| obstacle(Step::Fork, &error))? {
            Side::Child => {
                let obstacle = program.become_it(&rules, &self.confine, files, descriptors);
                let _ = File::from(report).write_all(&obstacle.to_bytes());
                fork_exec::exit_child(127)
            }
            Side::Parent(process) => {
                drop((report, files));
                let mut bytes = [0; 5];
                match trouble.read_exact(&mut bytes) {
                    Ok(()) => Err(Obstacle::from_bytes(bytes)),
                    Err(_) => Ok(process),
                }
            }
        }
    }

    /// Does preparations between two jobs, when no one waits.
    pub fn rest(&mut self) {
        self.confine.refresh();
    }
}

fn pipe() -> io::Result<(File, OwnedFd)> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    Ok((File::from(read), write))
}

/// A program in exec's format.
struct Program {
    path: CString,
    args: Strings,
    env: Strings,
}

impl Program {
    fn new(job: &Job) -> io::Result<Program> {
        let string = |word: &OsStr| Ok::<_, io::Error>(CString::new(word.as_bytes())?);
        let args = [&job.name].into_iter().chain(&job.args).map(|word| string(word));
        let env = job.env.iter().map(|(name, value)| {
            Ok::<_, io::Error>(CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())?)
        });
        Ok(Program {
            path: string(&job.program)?,
            args: Strings::new(args.collect::<io::Result<_>>()?),
            env: Strings::new(env.collect::<io::Result<_>>()?),
        })
    }

    /// In the child: gives up all rights, step by step, and executes the program. Returns only on failure.
    fn become_it(
        &self,
        rules: &Confinement<&OwnedFd>,
        prepared: &Prepared,
        files: Files,
        descriptors: &Descriptors<OwnedFd>,
    ) -> Obstacle {
        let program = OsStr::from_bytes(self.path.as_bytes());
        let all = move || -> Result<(), Obstacle> {
            let at = |step| move |error: io::Error| obstacle(step, &error);
            own_session().map_err(at(Step::Session))?;
            streams(descriptors).map_err(at(Step::Streams))?;
            fork_exec::change_directory(descriptors.cwd.as_fd()).map_err(at(Step::Directory))?;
            prepared.drop_privileges().map_err(at(Step::Privileges))?;
            prepared.restrict_files(files, program, rules).map_err(at(Step::Landlock))?;
            prepared.set_limits(rules).map_err(at(Step::Limits))?;
            prepared.restrict_calls(rules).map_err(at(Step::Seccomp))
        };
        match all() {
            Err(obstacle) => obstacle,
            Ok(()) => obstacle(Step::Exec, &fork_exec::exec(&self.path, &self.args, &self.env)),
        }
    }
}

/// Creates a new session and group, without terminal; the program does not outlive the worker even if the keeper is gone
/// as well.
fn own_session() -> io::Result<()> {
    setsid()?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    fork_exec::reset_signals()
}

fn streams(descriptors: &Descriptors<OwnedFd>) -> io::Result<()> {
    fork_exec::replace(&File::open("/dev/null")?, 0)?;
    fork_exec::replace(&descriptors.stdout, 1)?;
    fork_exec::replace(&descriptors.stderr, 2)?;
    fork_exec::close_the_rest_on_exec()
}

/// An internal error without errno means that the kernel does not support what was requested.
fn obstacle(step: Step, error: &io::Error) -> Obstacle {
    let prepared = if step == Step::Prepare { libc::EINVAL } else { 0 };
    Obstacle { step, errno: error.raw_os_error().unwrap_or(prepared) }
}
