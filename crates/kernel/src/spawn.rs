//! spawn and exec: finding a program in the file system and running it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wardian_vfs::{Access, Caller, Errno, FileKind, OpenFlags, Place, Result, Tree};

use crate::cwd::Cwd;
use crate::fd::{Fd, FdTable, OpenFile, TreeFile};
use crate::host_program::HostProgram;
use crate::instance::{Ending, Instance, Tenant};
use crate::machine::Machine;
use crate::proc::{Pid, Process, Seed, Status};
use crate::program::{Known, Later, Program};
use crate::room::Berth;
use crate::signal::SIGKILL;
use crate::start_image::Started;
use crate::strings::{MAX_ARGUMENTS, Strings};
use crate::{foreign, host_program, start_image, task, user_program};

/// The most strings, arguments and environment together, that a host program is given: each becomes several small
/// allocations there.
const MAX_HOST_STRINGS: usize = 16 * 1024;
/// The longest first line of a script.
const MAX_INTERPRETER: usize = 4096;
/// How much of an unknown file is read to identify it: a whole first line of a script, and more than it may have.
const HEAD: usize = MAX_INTERPRETER + 4;
/// The interpreter of a script may be a script itself, but not indefinitely.
const MAX_INTERPRETERS: usize = 5;

/// What a process can run.
#[derive(Clone)]
pub(crate) enum Executable {
    /// WebAssembly.
    Guest(Arc<Program>),
    /// A host function.
    Host(Arc<dyn HostProgram>),
    /// WebAssembly that cannot be run: it only says why.
    Refused(Arc<str>),
}

impl Executable {
    /// An ordinary WASI program, which does not know Wardian's interface.
    pub(crate) fn is_wasi(&self) -> bool {
        matches!(self, Executable::Guest(program) if !program.native)
    }
}

/// A program, found and compiled, with what it will be given.
pub(crate) struct Request {
    pub(crate) program: Executable,
    pub(crate) argv: Strings,
    pub(crate) env: Strings,
    /// The only directories a WASI program gets, if specified.
    pub(crate) preopens: Option<Vec<Fd>>,
    /// The absolute path of its file, links resolved.
    pub(crate) exe: Arc<[u8]>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("argv", &self.argv).finish_non_exhaustive()
    }
}

/// Which group a new process joins.
#[derive(Clone, Copy)]
pub(crate) enum Group {
    Parents,
    Own,
    /// Its own group, which is the terminal's foreground group from the start: before it could read.
    Foreground,
    Existing(Pid),
    /// Its own, in a session of its own.
    Session,
}

/// A change to the descriptors a child inherits: `to` becomes the parent's `from`, or is closed.
pub(crate) struct FdMove {
    pub(crate) to: u32,
    pub(crate) from: Option<u32>,
}

/// Finds the program at `path`, follows `#!`, compiles it if necessary.
pub(crate) async fn find(
    machine: &Arc<Machine>,
    process: &Process,
    path: Vec<u8>,
    argv: Strings,
    env: Strings,
) -> Result<Request> {
    let run = process.run();
    let charged = |argv: Strings| match argv.size() + env.size() {
        ..=MAX_ARGUMENTS => argv.charged_with(&env, machine.meter(), &run),
        _ => Err(Errno::E2BIG),
    };
    let (mut path, mut argv) = (path, charged(argv)?);
    for _ in 0..=MAX_INTERPRETERS {
        let called = argv.first().unwrap_or(&path);
        match load(machine, process, &path, called).await? {
            Loaded::Program(Executable::Host(_), _) if argv.len() + env.len() > MAX_HOST_STRINGS => {
                return Err(Errno::E2BIG);
            }
            Loaded::Program(program, exe) => return Ok(Request { program, argv, env, exe, preopens: None }),
            Loaded::Script { interpreter, argument } => {
                let front = [Some(&interpreter[..]), argument.as_deref(), Some(&path[..])];
                let front: Vec<&[u8]> = front.into_iter().flatten().collect();
                argv = charged(argv.with_front(&front))?;
                path = interpreter;
            }
        }
    }
    Err(Errno::ELOOP)
}

enum Loaded {
    Program(Executable, Arc<[u8]>),
    Script { interpreter: Vec<u8>, argument: Option<Vec<u8>> },
}

async fn load(machine: &Arc<Machine>, process: &Process, path: &[u8], called: &[u8]) -> Result<Loaded> {
    let (caller, cwd, run) = (process.caller(), process.place(), process.run());
    let (kernel, rules) = (machine.kernel().clone(), machine.rules().clone());
    let released = machine.released().clone();
    let (known, called) = (path.to_vec(), called.to_vec());
    let opened = machine
        .at_path(&cwd.clone(), path, move |tree| {
            let stat = tree.stat(&caller, &cwd, &known, true)?;
            match stat.kind {
                FileKind::File => tree.access(&caller, &cwd, &known, Access::X)?,
                _ => return Err(Errno::EACCES),
            }
            let program = match rules.host_programs.get(&stat.version) {
                Some(program) => Some(Opened::Known(Executable::Host(program.clone()))),
                None => kernel.program(&rules.family, stat.version).map(Opened::from),
            };
            let exe: Arc<[u8]> = tree.real_path(&caller, &cwd, &known)?.into();
            if let Some(allowed) = rules.allowed.as_deref()
                && (program.is_some() || !is_script(tree, &caller, &cwd, &known)?)
                && let Some(refused) = allowed.refuses(&exe, &called)
            {
                run.deny(refused);
                return Err(Errno::EACCES);
            }
            if let Some(program) = program {
                return Ok((program, exe));
            }
            // Held open from here on: what the name leads to later is not what was allowed.
            let handle = tree.open(&caller, &cwd, &known, OpenFlags::READ, 0)?;
            let file = Arc::new(OpenFile::Tree(TreeFile::new(handle, exe.to_vec().into(), released)));
            Ok((Opened::Unknown(file), exe))
        })
        .await?;
    match opened {
        (Opened::Known(program), exe) => Ok(Loaded::Program(program, exe)),
        (Opened::Later(later), exe) => {
            // A command does not pay for what the machine prepares once.
            let still = process.run().clock().hold();
            let loaded = machine.kernel().load_later(&later).await;
            if later.was_compiled() {
                still.counts();
            }
            let refused = |error: String| Executable::Refused(error.into());
            Ok(Loaded::Program(loaded.map_or_else(refused, Executable::Guest), exe))
        }
        (Opened::Unknown(file), exe) => identify(machine, process, &file, exe).await,
    }
}

/// A script is not a program: its interpreter is, and must be allowed.
fn is_script(tree: &mut Tree, caller: &Caller, cwd: &Place, path: &[u8]) -> Result<bool> {
    Ok(beginning(tree, caller, cwd, path, 2)? == b"#!")
}

/// The first bytes of a file, as many as there are and `most` at most.
fn beginning(tree: &mut Tree, caller: &Caller, cwd: &Place, path: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut handle = tree.open(caller, cwd, path, OpenFlags::READ, 0)?;
    let mut bytes = vec![0; most];
    let mut filled = 0;
    while filled < bytes.len() {
        match tree.read(&mut handle, &mut bytes[filled..]) {
            Ok(0) | Err(_) => break,
            Ok(n) => filled += n,
        }
    }
    tree.close(handle);
    bytes.truncate(filled);
    Ok(bytes)
}

/// What the file of a program turned out to be.
enum Opened {
    Known(Executable),
    /// One of Wardian's own that was not started yet.
    Later(Arc<Later>),
    Unknown(Arc<OpenFile>),
}

impl From<Known> for Opened {
    fn from(known: Known) -> Opened {
        match known {
            Known::Ready(program) => Opened::Known(Executable::Guest(program)),
            Known::Later(later) => match later.ready() {
                Some(program) => Opened::Known(Executable::Guest(program)),
                None => Opened::Later(later),
            },
        }
    }
}

async fn identify(
    machine: &Arc<Machine>,
    process: &Process,
    file: &Arc<OpenFile>,
    exe: Arc<[u8]>,
) -> Result<Loaded> {
    let start = machine.on_file(file, |tree, handle| {
        let mut start = vec![0; HEAD];
        let count = tree.pread(handle, &mut start, 0)?;
        start.truncate(count);
        Ok(start)
    });
    let start = start.await?;
    if let Some(line) = start.strip_prefix(b"#!") {
        return interpreter(line).ok_or(Errno::ENOEXEC);
    }
    if !start.starts_with(b"\0asm") {
        return Err(Errno::ENOEXEC);
    }
    Ok(Loaded::Program(user_program::compiled(machine, process, file).await?, exe))
}

/// The interpreter and its one argument, from the rest of a `#!` line.
fn interpreter(line: &[u8]) -> Option<Loaded> {
    let line = line.split(|&b| b == b'\n').next().filter(|line| line.len() <= MAX_INTERPRETER)?.trim_ascii();
    let (interpreter, argument) = match line.iter().position(u8::is_ascii_whitespace) {
        Some(at) => (&line[..at], Some(line[at..].trim_ascii().to_vec())),
        None => (line, None),
    };
    (!interpreter.is_empty()).then(|| Loaded::Script { interpreter: interpreter.to_vec(), argument })
}

/// Starts `request` as a child of `parent`.
pub(crate) fn spawn(
    machine: &Arc<Machine>,
    parent: &Process,
    request: Request,
    moves: &[FdMove],
    cwd: Option<Cwd>,
    group: Group,
) -> Result<Pid> {
    let berth = machine.kernel().room().take(machine.gate().sandbox())?;
    let fds = inherited(&parent.fds.lock(), moves)?;
    let cwd = cwd.unwrap_or_else(|| parent.cwd.lock().clone());
    let seed = Seed::of_parent(parent, fds, cwd).with_program(request.argv.clone(), request.exe.clone());
    let child = {
        let mut table = machine.table();
        let member_of = match group {
            Group::Parents => table.get(parent.pid).map(|entry| entry.group),
            Group::Own | Group::Foreground | Group::Session => None,
            Group::Existing(pid) => Some(pid),
        };
        let child = table.add(parent.pid, member_of, seed)?;
        if let (Group::Session, Some(entry)) = (group, table.get_mut(child.pid)) {
            entry.session = child.pid;
        }
        child
    };
    child.runs_own_program.store(true, Ordering::Relaxed);
    if matches!(group, Group::Foreground)
        && let Some(terminal) = child.run().terminal()
    {
        terminal.set_foreground(child.pid);
    }
    let body = run_program(machine.clone(), child.clone(), request, berth);
    task::launch(machine.kernel(), &child.task(), Box::pin(body));
    Ok(child.pid)
}

pub(crate) fn inherited(parent: &FdTable, moves: &[FdMove]) -> Result<FdTable> {
    let mut fds = parent.clone();
    fds.close_on_exec();
    for change in moves {
        match change.from {
            None => drop(fds.remove(change.to)),
            Some(from) => {
                let mut entry = parent.get(from)?.clone();
                entry.cloexec = false;
                fds.put(change.to, entry)?;
            }
        }
    }
    Ok(fds)
}

/// Runs a program in `process` to its end, and ends the process.
pub(crate) async fn run_program(
    machine: Arc<Machine>,
    process: Arc<Process>,
    request: Request,
    berth: Berth,
) {
    let _guard = machine.end_with_body(&process);
    let (status, instance) = run_to_end(&machine, &process, request, berth).await;
    // The parent is told first and goes on while this task tidies up.
    machine.end(&process, status);
    instance.map(Instance::retire);
}

/// Runs a program until it ends, through every `exec`; also returns what is left of it.
pub(crate) async fn run_to_end(
    machine: &Arc<Machine>,
    process: &Arc<Process>,
    mut request: Request,
    mut berth: Berth,
) -> (Status, Option<Instance>) {
    loop {
        // The process alone holds them, and what is charged for them, so that both end with it.
        *process.argv.lock() = std::mem::take(&mut request.argv);
        *process.exe.lock() = request.exe.clone();
        match run_once(machine, process, &request, berth).await {
            (Ending::Exec(next), Some(instance)) => {
                request = *next;
                match instance.retire() {
                    Some(freed) => berth = freed,
                    None => return (Status::Signaled(SIGKILL), None),
                }
            }
            (Ending::Status(status), instance) => return (status, instance),
            (Ending::Exec(_), None) => return (Status::Signaled(SIGKILL), None),
        }
    }
}

async fn run_once(
    machine: &Arc<Machine>,
    process: &Arc<Process>,
    request: &Request,
    berth: Berth,
) -> (Ending, Option<Instance>) {
    let program = match &request.program {
        Executable::Guest(program) => program,
        Executable::Host(program) => {
            return (Ending::Status(host_program::run(machine, process, program, request).await), None);
        }
        Executable::Refused(why) => {
            let name = request.argv.first().map_or(&request.exe[..], |name| name);
            return (Ending::Status(host_program::refuse(machine, process, name, why).await), None);
        }
    };
    process.confined.store(request.preopens.is_some(), Ordering::Relaxed);
    if !program.native
        && let Err(errno) = foreign::prepare(machine, process, request.preopens.as_deref()).await
    {
        tracing::debug!(%errno, "cannot prepare descriptors");
        return (Ending::Status(Status::Exited(126)), None);
    }
    let berth = match start_image::start(machine, process, program, &request.env, berth).await {
        Started::Ended(ending, instance) => return (ending, instance),
        Started::Not(berth) => berth,
    };
    let tenant = Tenant::new(machine, process, program, request.env.clone());
    let Ok(mut instance) = Instance::start_at_once(tenant, berth).await else {
        process.run().cut_short();
        return (Ending::Status(Status::Signaled(SIGKILL)), None);
    };
    let ending = match instance.call::<(), ()>("_start", ()).await {
        Ok(()) => Ending::Status(Status::Exited(0)),
        Err(ending) => ending,
    };
    (ending, Some(instance))
}
