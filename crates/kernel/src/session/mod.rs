//! A session: a program that lives across commands and is idle in between.
//!
//! Between commands there is no frame on its stack, so all of it is data: the image of its memory and what the kernel
//! keeps for the process. That is [`AtRest`], the part of a sandbox's value that is not files. A running instance is
//! only a cache of it: kept warm for the next command, rebuilt from the image if a command had to be killed.

mod command;
mod descriptors;
mod job;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use wardian_vfs::{Caller, Errno};

pub use command::{Command, Finished, Verdict};
pub(crate) use job::CONTAINED;

use command::Streams;
use descriptors::{HeldFd, hold_fds, rest_fds, wake_fds};
use job::{Ended, Job, Source, do_job};

use crate::at_rest::{AtRest, Rest};
use crate::cwd::Cwd;
use crate::fd::{Fd, FdTable, OpenFile};
use crate::input::Input;
use crate::instance::{Instance, Tenant};
use crate::machine::Machine;
use crate::memory::image::Image;
use crate::outlet::Outlet;
use crate::proc::{Process, Seed, Status};
use crate::program::Program;
use crate::run::Run;
use crate::signal::Signals;
use crate::stream::Standard;
use crate::strings::Strings;
use crate::{drain, task};

/// How long the program may take at most to look up or set a variable.
const ENVIRONMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// A resident program in a machine.
pub struct Session {
    machine: Arc<Machine>,
    process: Arc<Process>,
    program: Arc<Program>,
    rest: Rest,
    cwd: Cwd,
    fds: Vec<(u32, HeldFd)>,
    /// What descriptors 1 and 2 of its processes lead to.
    outlet: Arc<Outlet>,
    warm: Option<Instance>,
    /// It was restored, and has not come to rest since.
    copy: bool,
}

impl Session {
    /// Starts `program` in `machine`, with `env` (`NAME=VALUE`) and in the directory `cwd`. Must be called on the
    /// kernel's runtime for the first session of a program, which is started once to capture its initial memory.
    pub async fn start(
        machine: &Arc<Machine>,
        program: &Arc<Program>,
        env: Vec<Vec<u8>>,
        cwd: &[u8],
    ) -> Result<Session, Errno> {
        let cwd = {
            let mut tree = machine.tree().await;
            let root = tree.root();
            Cwd::enter(machine, &mut tree, &Caller::USER, &root, cwd)?
        };
        let process = add_process(machine, program, cwd.clone())?;
        let env = Strings::given(&env)?;
        let image = if program.prepares {
            let image = machine.kernel().start_image(program).await;
            image.ok_or(Errno::ENOEXEC)?
        } else {
            let template = program.template.get_or_try_init(|| take_template(machine, &process, program));
            template.await?.clone()
        };
        let (umask, signals) = (process.umask.load(Ordering::Relaxed), Signals::default());
        let fds = hold_fds(&process.fds.lock());
        let rest = Rest { image, env, umask, signals };
        let (machine, program) = (machine.clone(), program.clone());
        let outlet = Outlet::keeping(machine.meter());
        Ok(Session { machine, process, program, rest, cwd, fds, outlet, warm: None, copy: false })
    }

    /// Restores an idle session in a machine whose tree is a clone of the one it was captured with (see
    /// [`AtRest::take_along`]).
    pub fn restore(
        machine: &Arc<Machine>,
        program: &Arc<Program>,
        at_rest: &AtRest,
    ) -> Result<Session, Errno> {
        let rest = at_rest.rest.clone();
        let cwd = Cwd::held(machine, at_rest.cwd.clone(), at_rest.cwd_name.clone());
        let fds = wake_fds(&at_rest.fds, machine)?;
        let process = add_process(machine, program, cwd.clone())?;
        let (machine, program) = (machine.clone(), program.clone());
        let outlet = Outlet::keeping(machine.meter());
        let session = Session { machine, process, program, rest, cwd, fds, outlet, warm: None, copy: true };
        session.return_to_rest();
        Ok(session)
    }

    /// Returns the name of the directory it is in between commands.
    pub fn directory(&self) -> Arc<[u8]> {
        self.cwd.shared_name()
    }

    /// Returns its state between commands.
    pub fn at_rest(&self) -> AtRest {
        AtRest {
            rest: self.rest.clone(),
            cwd: self.cwd.handle().clone(),
            cwd_name: self.cwd.shared_name(),
            fds: rest_fds(&self.fds),
        }
    }

    /// Returns whether its program can keep a command's options and traps from outliving it.
    pub fn can_contain(&self) -> bool {
        self.program.contains
    }

    /// Returns whether it is what another session was at rest, and nothing since.
    pub fn is_copy(&self) -> bool {
        self.copy
    }

    /// Returns whether an instance is kept for the next command.
    pub fn is_warm(&self) -> bool {
        self.warm.is_some()
    }

    /// Drops the running instance; the next command starts from the image.
    pub fn cool(&mut self) {
        self.warm.take().map(Instance::retire);
        self.process.footprint.give_back();
    }

    /// Runs a command until it ends, times out or is cancelled. Must be called on the kernel's runtime.
    pub async fn run(&mut self, command: Command) -> Finished {
        let job = |command: &mut Command| Job::Script {
            script: std::mem::take(&mut command.script),
            around: command.around.take(),
            contained: command.contained,
        };
        self.perform(command, job).await.0
    }

    /// Asks the program a question (`wardian_ask` in docs/abi.md): the command's script is the question. It runs like
    /// any command, since answering may run the user's code. Returns `None` if there is no answer, it was not reached, or
    /// it is longer than `most` bytes.
    pub async fn ask(&mut self, question: Command, most: usize) -> (Finished, Option<Vec<u8>>) {
        self.put(question, most, false).await
    }

    /// Returns whether processes in the background wrote something between two commands, which the next one's output begins with.
    pub fn has_late_output(&self) -> bool {
        self.outlet.has_late()
    }

    /// Does the same with a program that has an answer to everything: if there is none, the session is as it was before, and the
    /// exit code is not 0.
    pub async fn ask_surely(&mut self, question: Command, most: usize) -> (Finished, Option<Vec<u8>>) {
        self.put(question, most, true).await
    }

    async fn put(&mut self, question: Command, most: usize, must: bool) -> (Finished, Option<Vec<u8>>) {
        let job =
            |command: &mut Command| Job::Ask { question: std::mem::take(&mut command.script), most, must };
        self.perform(question, job).await
    }

    async fn perform(
        &mut self,
        mut command: Command,
        job: impl FnOnce(&mut Command) -> Job,
    ) -> (Finished, Option<Vec<u8>>) {
        let run = Arc::new(Run::at(command.terminal.clone()));
        let before = if command.rolls_back { Some(self.machine.tree().await.clone()) } else { None };
        let job = job(&mut command);
        let Command { input, output, terminal, timeout, cancel, background, lets_go, .. } = command;
        let output = if terminal.is_none() { Some(output) } else { None };
        let streams = Streams { input, output, terminal, lets_go };
        let (verdict, answer) = self.work(&run, job, &streams, timeout, &cancel).await;
        match (verdict, before) {
            (Verdict::Exited(_), _) => self.machine.limit_background(&run, background),
            (_, Some(before)) => {
                // What is being taken down may still hold files open.
                run.deserted().await;
                self.machine.go_back_to(before).await;
            }
            _ => {}
        }
        run.count_cpu(self.process.task().cpu_nanos());
        let name = |limit| match limit {
            "memoryBytes" => self.machine.meter().refusing(),
            limit => limit,
        };
        let finished = Finished {
            verdict,
            limit: run.limit_hit().map(name),
            cut_short: run.was_cut_short(),
            refused: run.refused().map(name),
            waited: run.clock().stood(),
            denied: run.denied(),
            usage: run.usage(),
        };
        (finished, answer)
    }

    /// Returns the value of a variable of the program. Must be called on the kernel's runtime. Looking it up may run the
    /// user's code: it ends after `timeout` (ETIMEDOUT), after ten seconds at the latest, or when `cancel` is notified
    /// (ECANCELED).
    pub async fn get_env(
        &mut self,
        name: &[u8],
        timeout: Option<Duration>,
        cancel: &Notify,
    ) -> Result<Option<Vec<u8>>, Errno> {
        self.inquire(Job::GetEnv(name.to_vec()), timeout, cancel).await
    }

    /// Sets and exports a variable of the program, and returns the value that it now has. Otherwise like
    /// [`Session::get_env`].
    pub async fn set_env(
        &mut self,
        name: &[u8],
        value: &[u8],
        timeout: Option<Duration>,
        cancel: &Notify,
    ) -> Result<Option<Vec<u8>>, Errno> {
        self.inquire(Job::SetEnv { name: name.to_vec(), value: value.to_vec() }, timeout, cancel).await
    }

    async fn inquire(
        &mut self,
        job: Job,
        timeout: Option<Duration>,
        cancel: &Notify,
    ) -> Result<Option<Vec<u8>>, Errno> {
        let streams = Streams { input: Input::empty(), output: None, terminal: None, lets_go: false };
        let run = Arc::default();
        let timeout = timeout.map_or(ENVIRONMENT_TIMEOUT, |timeout| timeout.min(ENVIRONMENT_TIMEOUT));
        match self.work(&run, job, &streams, Some(timeout), cancel).await {
            (Verdict::Exited(_), answer) => Ok(answer),
            (Verdict::Cancelled, _) => Err(Errno::ECANCELED),
            (Verdict::TimedOut, _) => Err(Errno::ETIMEDOUT),
            _ if run.limit_hit().is_some() => Err(Errno::ENOMEM),
            _ => Err(Errno::EIO),
        }
    }

    /// Does a job in a separate run, and leaves the session idle whatever happens.
    async fn work(
        &mut self,
        run: &Arc<Run>,
        job: Job,
        streams: &Streams,
        timeout: Option<Duration>,
        cancel: &Notify,
    ) -> (Verdict, Option<Vec<u8>>) {
        self.machine.reaped().await;
        *self.process.run.lock() = run.clone();
        self.machine.meter().reset_peak();
        // A signal that came while it rested had no command to end.
        self.process.survive();
        self.attach(streams);
        let done = match self.source(cancel).await {
            Ok(Some(source)) => self.execute(run, source, job, streams, (timeout, cancel)).await,
            Ok(None) => (Verdict::Cancelled, None),
            Err(_) => (Verdict::Killed(crate::signal::SIGKILL), None),
        };
        let killed = !matches!(done.0, Verdict::Exited(_));
        if killed {
            // First, so that what its processes are about to write is not kept for the next command.
            self.machine.kill_run(run, Some(self.process.pid));
        }
        if let Some(output) = &streams.output {
            self.outlet.detach(self.machine.meter());
            output.close();
        }
        if killed {
            self.return_to_rest();
        }
        done
    }

    async fn execute(
        &mut self,
        run: &Arc<Run>,
        source: Source,
        job: Job,
        streams: &Streams,
        (timeout, cancel): (Option<Duration>, &Notify),
    ) -> (Verdict, Option<Vec<u8>>) {
        let (done, mut result) = oneshot::channel();
        let task = self.process.new_task();
        let (machine, process) = (self.machine.clone(), self.process.clone());
        let before = self.rest.image.clone();
        let (outlet, output, lets_go) = (self.outlet.clone(), streams.output.clone(), streams.lets_go);
        // Making an instance and taking its image is the process's own work: it has turns for it as for any other, and
        // can be killed at it.
        let body = async move {
            if let Some(output) = &output {
                outlet.attach(output).await;
            }
            let ended = match source.instance().await {
                Ok(instance) => do_job(&machine, &process, instance, job, &before).await,
                Err(_) => Ended::Left(Status::Signaled(crate::signal::SIGKILL)),
            };
            if output.is_some() {
                if lets_go || matches!(ended, Ended::Left(_)) {
                    drain::let_go_of_pipes(&process, &outlet);
                }
                drain::drained(&machine, &process.run(), process.pid).await;
            }
            let _ = done.send(ended);
        };
        task::launch(self.machine.kernel(), &task, Box::pin(body));
        let early = tokio::select! {
            biased;
            ended = &mut result => return self.settle(ended.ok()),
            () = cancel.notified() => Verdict::Cancelled,
            () = sleep(&self.machine, run, timeout) => Verdict::TimedOut,
        };
        self.machine.kill_run(run, None);
        // The body is gone when its sender is; only then may another use its process.
        let _ = result.await;
        self.process.survive();
        self.cool();
        (early, None)
    }

    /// Brings the session to its new idle state after a command that ended by itself.
    fn settle(&mut self, ended: Option<Ended>) -> (Verdict, Option<Vec<u8>>) {
        let status = match ended {
            Some(Ended::Returned { code, answer, instance, image }) => {
                self.come_to_rest(image);
                self.warm = Some(*instance);
                return (Verdict::Exited(code), answer);
            }
            Some(Ended::Left(status)) if !self.process.is_doomed() => status,
            _ => Status::Signaled(self.process.survive()),
        };
        self.cool();
        match status {
            Status::Exited(code) => {
                self.return_to_rest();
                (Verdict::Exited(code), None)
            }
            Status::Signaled(signal) => (Verdict::Killed(signal), None),
        }
    }

    fn come_to_rest(&mut self, image: Arc<Image>) {
        self.copy = false;
        let process = &self.process;
        self.fds = hold_fds(&process.fds.lock());
        self.cwd = process.cwd.lock().clone();
        self.rest = Rest {
            image,
            env: self.rest.env.clone(),
            umask: process.umask.load(Ordering::Relaxed),
            signals: process.signals.lock().clone(),
        };
    }

    /// Resets the process to its idle state; its memory follows when it is needed.
    fn return_to_rest(&self) {
        let process = &self.process;
        let mut table = FdTable::new(self.machine.limits().open_files);
        for (number, held) in &self.fds {
            // The number was in the table before, so it is within the limit.
            let _ = table.put(*number, held.reopen(&self.machine));
        }
        let before = std::mem::replace(&mut *process.fds.lock(), table);
        drop(before);
        self.machine.locks().release_process(process.pid);
        *process.cwd.lock() = self.cwd.clone();
        *process.argv.lock() = session_argv(&self.program);
        process.umask.store(self.rest.umask, Ordering::Relaxed);
        *process.signals.lock() = self.rest.signals.clone();
    }

    /// Redirects every descriptor that was the last command's stream to this command's.
    fn attach(&self, streams: &Streams) {
        if let Some(terminal) = &streams.terminal {
            let group = self.machine.table().get(self.process.pid).map(|entry| entry.group);
            terminal.attach(&self.machine, group.unwrap_or(self.process.pid));
        }
        for (_, fd) in self.process.fds.lock().iter_mut() {
            let which = match &*fd.file {
                OpenFile::Input(..) => Standard::Input,
                OpenFile::Output(_, which, _) | OpenFile::Terminal(_, which, _) => *which,
                _ => continue,
            };
            fd.file = Arc::new(streams.stream(which, &self.outlet));
        }
    }

    /// Returns what the running program is created from; nothing if it is cancelled while it waits for capacity.
    async fn source(&mut self, cancel: &Notify) -> Result<Option<Source>, Errno> {
        if let Some(instance) = self.warm.take() {
            return Ok(Some(Source::Warm(Box::new(instance))));
        }
        let berth = tokio::select! {
            biased;
            berth = self.machine.kernel().room().wait(self.machine.gate().sandbox()) => berth?,
            () = cancel.notified() => return Ok(None),
        };
        let env = self.rest.env.clone();
        let tenant = Tenant::new(&self.machine, &self.process, &self.program, env);
        Ok(Some(Source::Cold { tenant, berth, image: self.rest.image.clone() }))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.machine.end(&self.process, Status::Exited(0));
        if let Some(instance) = self.warm.take() {
            // Cleaning up takes longer than the one who drops a session should wait. One at a time: when hundreds of
            // sandboxes go at once, the workers have other things to do in between.
            let kernel = self.machine.kernel().clone();
            self.machine.kernel().runtime().spawn(async move {
                let _turn = kernel.tidying().acquire().await;
                instance.retire();
            });
        }
    }
}

/// Starts the program once, to capture its initial memory. It has not read anything of its environment yet.
async fn take_template(
    machine: &Arc<Machine>,
    process: &Arc<Process>,
    program: &Arc<Program>,
) -> Result<Arc<Image>, Errno> {
    let berth = machine.kernel().room().wait(machine.gate().sandbox()).await?;
    let mut instance =
        Instance::new(Tenant::new(machine, process, program, Strings::default()), berth).await?;
    let started = instance.call::<(), ()>("_initialize", ()).await;
    let image = Image::capture(&mut instance, None).await;
    process.footprint.give_back();
    started.map(|()| Arc::new(image)).map_err(|_| Errno::ENOEXEC)
}

async fn sleep(machine: &Machine, run: &Run, timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => run.clock().sleep(machine.gate(), timeout).await,
        None => std::future::pending().await,
    }
}

pub(crate) fn add_process(
    machine: &Arc<Machine>,
    program: &Program,
    cwd: Cwd,
) -> Result<Arc<Process>, Errno> {
    let mut fds = FdTable::new(machine.limits().open_files);
    fds.put(0, Fd::new(OpenFile::input(Input::empty())))?;
    fds.put(1, Fd::new(OpenFile::output(Outlet::nowhere(), Standard::Output)))?;
    fds.put(2, Fd::new(OpenFile::output(Outlet::nowhere(), Standard::Error)))?;
    let exe: &[u8] = if program.prepares { b"/bin/python3" } else { b"/bin/bash" };
    let seed = Seed::of_host(Arc::default(), fds, cwd, session_argv(program), exe);
    machine.table().add_resident(seed)
}

fn session_argv(program: &Program) -> Strings {
    Strings::one(program.name().as_bytes())
}
