//! A session: a program that lives from command to command, at rest in between.
//!
//! Between commands no frame is on its stack, so all of it is data: the image of its memory and what the kernel keeps
//! for the process. That is [`AtRest`], the half of a sandbox's value that is not files. A running instance is only a
//! cache of it: kept warm for the next command, rebuilt from the image when a command had to be killed.

use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use wardian_vfs::{Caller, Errno, Handle, Tree};

use crate::cwd::Cwd;
use crate::fd::{Fd, FdTable, OpenFile};
use crate::image::Image;
use crate::instance::{Ending, Instance};
use crate::machine::Machine;
use crate::proc::{Process, Seed, Status};
use crate::program::Program;
use crate::run::{Run, Usage};
use crate::signal::Signals;
use crate::spawn;
use crate::stream::{Input, Output, Standard};
use crate::task::{self, Task};
use crate::tty::Terminal;

/// A command for a session to run.
pub struct Command {
    /// The script.
    pub script: Vec<u8>,
    /// Descriptor 0.
    pub input: Arc<Input>,
    /// Descriptor 1.
    pub stdout: Arc<Output>,
    /// Descriptor 2.
    pub stderr: Arc<Output>,
    /// What the three of them are instead, if it runs at a terminal.
    pub terminal: Option<Arc<Terminal>>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Notified to end it early.
    pub cancel: Arc<Notify>,
}

impl Command {
    /// What stands for one of the three streams.
    fn stream(&self, which: Standard) -> OpenFile {
        match (&self.terminal, which) {
            (Some(terminal), which) => OpenFile::Terminal(terminal.clone(), which),
            (None, Standard::Input) => OpenFile::Input(self.input.clone()),
            (None, Standard::Output) => OpenFile::Output(self.stdout.clone(), Standard::Output),
            (None, Standard::Error) => OpenFile::Output(self.stderr.clone(), Standard::Error),
        }
    }
}

/// What of a session program is called.
#[derive(Clone, Copy)]
enum Export {
    Run,
    Ask,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It ran to its end; the shell's exit code.
    Exited(u8),
    /// Its time was up.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// The session's own program was ended by a signal or a trap; it is as it was before the command.
    Killed(u8),
}

/// What came of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub verdict: Verdict,
    /// The first limit it ran into.
    pub limit: Option<&'static str>,
    /// What it used.
    pub usage: Usage,
}

/// A session program's state between commands: a value.
#[derive(Clone)]
pub struct AtRest {
    image: Arc<Image>,
    env: Arc<Vec<Vec<u8>>>,
    cwd: Cwd,
    umask: u32,
    signals: Signals,
    fds: Vec<(u32, FdAtRest)>,
}

/// A descriptor between commands.
#[derive(Clone)]
enum FdAtRest {
    /// A file of the tree, at its offset.
    File { open: Arc<OpenFile>, handle: Handle, cloexec: bool },
    /// A stream of whichever command runs next.
    Stream(Standard, bool),
    /// The end of a pipe. Held loosely: a copy kept here must not keep a pipe open that the shell has closed.
    Pipe { open: Weak<OpenFile>, cloexec: bool },
}

/// A resident program in a machine.
pub struct Session {
    machine: Arc<Machine>,
    process: Arc<Process>,
    program: Arc<Program>,
    rest: AtRest,
    warm: Option<Instance>,
}

impl Session {
    /// Starts `program` in `machine`, with `env` (`NAME=VALUE`) and in the directory `cwd`.
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
        let env = Arc::new(env);
        let template = program.template.get_or_try_init(|| take_template(machine, &process, program));
        let image = template.await?.clone();
        let (umask, signals) = (process.umask.load(Ordering::Relaxed), Signals::default());
        let fds = save_fds(&process.fds.lock());
        let rest = AtRest { image, env, cwd, umask, signals, fds };
        let (machine, program) = (machine.clone(), program.clone());
        Ok(Session { machine, process, program, rest, warm: None })
    }

    /// Puts a session at rest into another machine, whose tree must be a clone of the tree it rested on.
    pub fn restore(machine: &Arc<Machine>, program: &Arc<Program>, rest: &AtRest) -> Result<Session, Errno> {
        let rest = rest.moved_to(machine);
        let process = add_process(machine, program, rest.cwd.clone())?;
        let session =
            Session { machine: machine.clone(), process, program: program.clone(), rest, warm: None };
        session.return_to_rest();
        Ok(session)
    }

    /// Its state between commands.
    pub fn at_rest(&self) -> &AtRest {
        &self.rest
    }

    /// Drops the running instance; the next command starts from the image.
    pub fn cool(&mut self) {
        self.warm = None;
        self.machine.meter().release(self.process.charged.swap(0, Ordering::SeqCst));
    }

    /// Runs a command to its end, its deadline or its cancellation. Must be called on the kernel's runtime.
    pub async fn run(&mut self, command: Command) -> Finished {
        self.perform(command, Export::Run).await.0
    }

    /// Asks the program something (`wardian_ask` in docs/abi.md): the command's script is the question. It runs as any
    /// command does, since answering may run the user's own code. `None` where it has no answer, or did not come to it.
    pub async fn ask(&mut self, question: Command) -> (Finished, Option<Vec<u8>>) {
        self.perform(question, Export::Ask).await
    }

    async fn perform(&mut self, command: Command, export: Export) -> (Finished, Option<Vec<u8>>) {
        let run = Arc::new(Run::at(command.terminal.clone()));
        *self.process.run.lock() = run.clone();
        // A signal that came while it rested had no command to end.
        self.process.survive();
        self.attach(&command);
        let (verdict, answer) = match self.instance(&command.cancel).await {
            Ok(Some(instance)) => self.execute(&run, instance, &command, export).await,
            Ok(None) => (Verdict::Cancelled, None),
            Err(_) => (Verdict::Killed(crate::signal::SIGKILL), None),
        };
        command.stdout.close();
        command.stderr.close();
        if !matches!(verdict, Verdict::Exited(_)) {
            self.machine.kill_run(&run, Some(self.process.pid));
            self.return_to_rest();
        }
        run.count_cpu(self.process.task().cpu_nanos());
        (Finished { verdict, limit: run.limit_hit(), usage: run.usage() }, answer)
    }

    async fn execute(
        &mut self,
        run: &Arc<Run>,
        instance: Instance,
        command: &Command,
        export: Export,
    ) -> (Verdict, Option<Vec<u8>>) {
        let (done, mut result) = oneshot::channel();
        let task = self.process.new_task();
        let script = command.script.clone();
        let (machine, process) = (self.machine.clone(), self.process.clone());
        let body = async move {
            let ended = run_script(&machine, &process, instance, &script, export).await;
            let _ = done.send(ended);
        };
        task::launch(self.machine.kernel(), &task, Box::pin(body));
        let deadline = command.timeout.map(|timeout| tokio::time::Instant::now() + timeout);
        let early = tokio::select! {
            biased;
            ended = &mut result => return self.settle(ended.ok()),
            () = command.cancel.notified() => Verdict::Cancelled,
            () = sleep_until(deadline) => Verdict::TimedOut,
        };
        self.machine.kill_run(run, None);
        // The body is gone when its sender is; only then may another use its process.
        let _ = result.await;
        self.process.survive();
        self.cool();
        (early, None)
    }

    /// Takes the session to its new rest after a command that ended by itself.
    fn settle(&mut self, ended: Option<Ended>) -> (Verdict, Option<Vec<u8>>) {
        let status = match ended {
            Some(Ended::Returned(answer, mut instance)) => {
                self.come_to_rest(&mut instance);
                self.warm = Some(*instance);
                return match answer {
                    Answer::Code(code) => (Verdict::Exited(code), None),
                    Answer::Text(text) => (Verdict::Exited(0), text),
                };
            }
            Some(Ended::Left(status)) if !self.process.is_doomed() => status,
            _ => Status::Signaled(self.process.survive()),
        };
        self.cool();
        let verdict = match status {
            Status::Exited(code) => {
                self.return_to_rest();
                Verdict::Exited(code)
            }
            Status::Signaled(signal) => Verdict::Killed(signal),
        };
        (verdict, None)
    }

    fn come_to_rest(&mut self, instance: &mut Instance) {
        let process = &self.process;
        self.rest = AtRest {
            image: Arc::new(Image::capture(instance, Some(&self.rest.image))),
            env: self.rest.env.clone(),
            cwd: process.cwd.lock().clone(),
            umask: process.umask.load(Ordering::Relaxed),
            signals: process.signals.lock().clone(),
            fds: save_fds(&process.fds.lock()),
        };
    }

    /// Makes the process be as it was at rest; its memory follows when it is needed.
    fn return_to_rest(&self) {
        let process = &self.process;
        let mut table = FdTable::new(self.machine.limits().open_files);
        for (number, saved) in &self.rest.fds {
            if let Some(fd) = saved.reopen() {
                // The number was in the table before, so it is within the limit.
                let _ = table.put(*number, fd);
            }
        }
        let before = std::mem::replace(&mut *process.fds.lock(), table);
        drop(before);
        *process.cwd.lock() = self.rest.cwd.clone();
        *process.argv.lock() = session_argv(&self.program);
        process.umask.store(self.rest.umask, Ordering::Relaxed);
        *process.signals.lock() = self.rest.signals.clone();
    }

    /// Points every descriptor that was the last command's stream to this command's.
    fn attach(&self, command: &Command) {
        if let Some(terminal) = &command.terminal {
            let group = self.machine.table().get(self.process.pid).map(|entry| entry.group);
            terminal.attach(&self.machine, group.unwrap_or(self.process.pid));
        }
        for (_, fd) in self.process.fds.lock().iter_mut() {
            let which = match &*fd.file {
                OpenFile::Input(_) => Standard::Input,
                OpenFile::Output(_, which) | OpenFile::Terminal(_, which) => *which,
                _ => continue,
            };
            fd.file = Arc::new(command.stream(which));
        }
    }

    /// The running program, made from the image if need be; nothing if it is cancelled while it waits for room.
    async fn instance(&mut self, cancel: &Notify) -> Result<Option<Instance>, Errno> {
        if let Some(instance) = self.warm.take() {
            return Ok(Some(instance));
        }
        let berth = tokio::select! {
            biased;
            berth = self.machine.kernel().room().wait() => berth?,
            () = cancel.notified() => return Ok(None),
        };
        let env = self.rest.env.clone();
        let mut instance = Instance::new(&self.machine, &self.process, &self.program, env, berth).await?;
        self.rest.image.restore(&mut instance).await?;
        Ok(Some(instance))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.machine.end(&self.process, Status::Exited(0));
    }
}

/// Starts the program once, to see what its memory is like then. It has read nothing of its surroundings yet.
async fn take_template(
    machine: &Arc<Machine>,
    process: &Arc<Process>,
    program: &Arc<Program>,
) -> Result<Arc<Image>, Errno> {
    let berth = machine.kernel().room().wait().await?;
    let mut instance = Instance::new(machine, process, program, Arc::default(), berth).await?;
    let started = instance.call::<(), ()>("_initialize", ()).await;
    let image = Image::capture(&mut instance, None);
    machine.meter().release(process.charged.swap(0, Ordering::SeqCst));
    started.map(|()| Arc::new(image)).map_err(|_| Errno::ENOEXEC)
}

async fn sleep_until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// How a script ended that was not killed.
enum Ended {
    /// The program returned, and can run the next.
    Returned(Answer, Box<Instance>),
    /// It left by `exit`, `exec` or a trap: the command is over, the session is as it was before it.
    Left(Status),
}

/// What a call of the program came to.
enum Answer {
    Code(u8),
    Text(Option<Vec<u8>>),
}

async fn run_script(
    machine: &Arc<Machine>,
    process: &Arc<Process>,
    mut instance: Instance,
    script: &[u8],
    export: Export,
) -> Ended {
    match call_export(&mut instance, script, export).await {
        Ok(answer) => Ended::Returned(answer, Box::new(instance)),
        Err(Ending::Status(status)) => Ended::Left(status),
        Err(Ending::Exec(request)) => {
            let berth = instance.make_way();
            Ended::Left(spawn::run_to_end(machine, process, *request, berth).await.0)
        }
    }
}

/// Hands the script or question over and has it run or answered.
async fn call_export(instance: &mut Instance, script: &[u8], export: Export) -> Result<Answer, Ending> {
    let len = script.len() as u32;
    let ptr = instance.call::<u32, u32>("wardian_alloc", len).await?;
    let memory = instance.store.data().memory;
    let place = memory
        .map(|memory| memory.data_mut(&mut instance.store))
        .and_then(|bytes| bytes.get_mut(ptr as usize..)?.get_mut(..script.len()));
    let Some(place) = place else {
        return Err(Ending::Status(Status::Signaled(crate::signal::SIGSEGV)));
    };
    place.copy_from_slice(script);
    match export {
        Export::Run => {
            let code = instance.call::<(u32, u32), i32>("wardian_run", (ptr, len)).await?;
            Ok(Answer::Code(code as u8))
        }
        Export::Ask => {
            let place = instance.call::<(u32, u32), i64>("wardian_ask", (ptr, len)).await?;
            Ok(Answer::Text(answer_at(instance, place)))
        }
    }
}

/// The answer at `pointer << 32 | length`; none for -1 or a place that is not in the program's memory.
fn answer_at(instance: &Instance, place: i64) -> Option<Vec<u8>> {
    let place = u64::try_from(place).ok()?;
    let (ptr, len) = ((place >> 32) as usize, (place & 0xffff_ffff) as usize);
    let memory = instance.store.data().memory?;
    Some(memory.data(&instance.store).get(ptr..)?.get(..len)?.to_vec())
}

fn add_process(machine: &Arc<Machine>, program: &Program, cwd: Cwd) -> Result<Arc<Process>, Errno> {
    let closed = || {
        let output = Output::new(0, None);
        output.close();
        output
    };
    let mut fds = FdTable::new(machine.limits().open_files);
    fds.put(0, Fd::new(OpenFile::Input(Input::empty())))?;
    fds.put(1, Fd::new(OpenFile::Output(closed(), Standard::Output)))?;
    fds.put(2, Fd::new(OpenFile::Output(closed(), Standard::Error)))?;
    let seed = Seed {
        run: Arc::default(),
        fds,
        cwd,
        umask: 0o022,
        signals: Signals::default(),
        argv: session_argv(program),
        exe: Arc::from(&b"/bin/bash"[..]),
    };
    machine.table().add_resident(seed)
}

fn session_argv(program: &Program) -> Arc<Vec<Vec<u8>>> {
    Arc::new(vec![program.name().as_bytes().to_vec()])
}

fn save_fds(table: &FdTable) -> Vec<(u32, FdAtRest)> {
    table.iter().filter_map(|(number, fd)| Some((number, FdAtRest::save(fd)?))).collect()
}

impl FdAtRest {
    fn save(fd: &Fd) -> Option<FdAtRest> {
        let cloexec = fd.cloexec;
        Some(match &*fd.file {
            OpenFile::Tree(file) => {
                let handle = file.with(|handle| Ok(handle.clone())).ok()?;
                FdAtRest::File { open: fd.file.clone(), handle, cloexec }
            }
            OpenFile::Input(_) => FdAtRest::Stream(Standard::Input, cloexec),
            OpenFile::Output(_, which) | OpenFile::Terminal(_, which) => FdAtRest::Stream(*which, cloexec),
            OpenFile::Reader(_) | OpenFile::Writer(_) | OpenFile::Both(..) => {
                FdAtRest::Pipe { open: Arc::downgrade(&fd.file), cloexec }
            }
        })
    }

    /// The descriptor as it was, in the same machine.
    fn reopen(&self) -> Option<Fd> {
        let (file, cloexec) = match self {
            FdAtRest::File { open, handle, cloexec } => {
                if let OpenFile::Tree(file) = &**open {
                    let _ = file.with(|live| {
                        live.clone_from(handle);
                        Ok(())
                    });
                }
                (open.clone(), *cloexec)
            }
            FdAtRest::Stream(Standard::Input, cloexec) => {
                (Arc::new(OpenFile::Input(Input::empty())), *cloexec)
            }
            FdAtRest::Stream(which, cloexec) => {
                (Arc::new(OpenFile::Output(Output::new(0, None), *which)), *cloexec)
            }
            FdAtRest::Pipe { open, cloexec } => (open.upgrade()?, *cloexec),
        };
        Some(Fd { file, cloexec })
    }

    /// The same descriptor over another machine's clone of the tree. Copies of one description stay copies of one.
    fn moved_to(&self, machine: &Machine, moved: &mut Vec<(Arc<OpenFile>, Arc<OpenFile>)>) -> FdAtRest {
        let FdAtRest::File { open, handle, cloexec } = self else {
            return match self {
                // The other end stays behind with the original: here the pipe is at its end.
                FdAtRest::Pipe { cloexec, .. } => FdAtRest::Pipe { open: Weak::new(), cloexec: *cloexec },
                other => other.clone(),
            };
        };
        let known = moved.iter().find(|(old, _)| Arc::ptr_eq(old, open)).map(|(_, new)| new.clone());
        let open = known.unwrap_or_else(|| {
            let name = match &**open {
                OpenFile::Tree(file) => file.name().to_vec(),
                _ => Vec::new(),
            };
            let new = machine.tree_fd(handle.clone(), name).file;
            moved.push((open.clone(), new.clone()));
            new
        });
        FdAtRest::File { open, handle: handle.clone(), cloexec: *cloexec }
    }
}

impl AtRest {
    fn moved_to(&self, machine: &Machine) -> AtRest {
        let mut moved = Vec::new();
        let fds = self.fds.iter().map(|(number, fd)| (*number, fd.moved_to(machine, &mut moved))).collect();
        AtRest { fds, cwd: self.cwd.moved_to(machine), ..self.clone() }
    }

    /// Makes a clone of the tree it rests on fit for it: what only processes that stay behind have open is closed.
    pub fn take_along(&self, tree: &mut Tree) {
        let mut seen: Vec<&Arc<OpenFile>> = Vec::new();
        let mut handles = vec![self.cwd.handle()];
        for (_, fd) in &self.fds {
            if let FdAtRest::File { open, handle, .. } = fd
                && !seen.iter().any(|other| Arc::ptr_eq(other, open))
            {
                seen.push(open);
                handles.push(handle);
            }
        }
        tree.close_all_but(handles.into_iter());
    }
}

impl Process {
    /// A fresh task for the next command.
    fn new_task(&self) -> Arc<Task> {
        let task = Arc::new(Task::new());
        self.set_task(task.clone());
        task
    }
}
