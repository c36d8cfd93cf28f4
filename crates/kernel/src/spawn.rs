//! spawn and exec: finding a program in the file system and running it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wardian_vfs::{Access, Caller, Errno, FileKind, OpenFlags, Place, Result, Tree};

use crate::cwd::Cwd;
use crate::fd::{Fd, FdTable};
use crate::host_program::HostProgram;
use crate::instance::{Ending, Instance, Tenant};
use crate::kernel::{KernelError, KernelInner};
use crate::limits::Charge;
use crate::machine::Machine;
use crate::pause::pause;
use crate::proc::{Pid, Process, Seed, Status};
use crate::program::{Known, Later, Program};
use crate::room::Berth;
use crate::signal::SIGKILL;
use crate::strings::{MAX_ARGUMENTS, Strings};
use crate::{foreign, host_program, task};

/// The most strings, arguments and environment together, that a program of the host's is given: each becomes several
/// small allocations there.
const MAX_HOST_STRINGS: usize = 16 * 1024;
/// The largest program of a user's own that is compiled.
const MAX_PROGRAM: u64 = 32 << 20;
/// How much of a program is read without a pause.
const PROGRAM_PIECE: usize = 1 << 20;
/// The longest first line of a script.
const MAX_INTERPRETER: usize = 4096;
/// Scripts may name an interpreter that is a script, but not for ever.
const MAX_INTERPRETERS: usize = 5;

/// What a process can run.
#[derive(Clone)]
pub(crate) enum Executable {
    /// WebAssembly.
    Guest(Arc<Program>),
    /// A function of the host's.
    Host(Arc<dyn HostProgram>),
}

impl Executable {
    /// An ordinary WASI program, which knows nothing of us.
    pub(crate) fn is_wasi(&self) -> bool {
        matches!(self, Executable::Guest(program) if !program.native)
    }
}

/// A program, found and compiled, with what it is to be given.
pub(crate) struct Request {
    pub(crate) program: Executable,
    pub(crate) argv: Strings,
    pub(crate) env: Strings,
    /// The only directories a WASI program is to have, if somebody said so.
    pub(crate) preopens: Option<Vec<Fd>>,
    /// The absolute path of its file, links followed.
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
    /// Its own, and the terminal is that group's from the start: before it could read.
    Foreground,
    Existing(Pid),
}

/// A change to the descriptors a child inherits: `to` becomes the parent's `from`, or is closed.
pub(crate) struct FdMove {
    pub(crate) to: u32,
    pub(crate) from: Option<u32>,
}

/// Finds the program at `path`, follows `#!`, compiles it if it is new.
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
                None => kernel.program(stat.version).map(Opened::from),
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
            if stat.size > MAX_PROGRAM {
                return Err(Errno::ENOEXEC);
            }
            let head = beginning(tree, &caller, &cwd, &known, HEAD)?;
            Ok((Opened::Unknown { version: stat.version, size: stat.size as usize, head }, exe))
        })
        .await?;
    match opened {
        (Opened::Known(program), exe) => Ok(Loaded::Program(program, exe)),
        (Opened::Later(later), exe) => compiled(machine, exe, move |kernel| kernel.load_later(&later)).await,
        (Opened::Unknown { version, size, head }, exe) => {
            let (bytes, _charge) = match head.starts_with(b"\0asm") {
                true => whole(machine, process, path, version, size).await?,
                false => (head, None),
            };
            identify(machine, version, bytes, exe).await
        }
    }
}

/// How much of an unknown file is read to see what it is: a whole first line of a script, and more than it may have.
const HEAD: usize = MAX_INTERPRETER + 4;

/// All bytes of a program, in pieces, and the charge for them. ETXTBSY if it is changed meanwhile.
async fn whole(
    machine: &Arc<Machine>,
    process: &Process,
    path: &[u8],
    version: u64,
    size: usize,
) -> Result<(Vec<u8>, Option<Charge>)> {
    let charge = machine.meter().hold_for(&process.run(), size)?;
    let (caller, cwd) = (process.caller(), process.place());
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        let (at, known, offset) = (cwd.clone(), path.to_vec(), bytes.len());
        let piece = machine.at_path(&cwd, path, move |tree| {
            if tree.stat(&caller, &at, &known, true)?.version != version {
                return Err(Errno::ETXTBSY);
            }
            let handle = tree.open(&caller, &at, &known, OpenFlags::READ, 0)?;
            let mut piece = vec![0; PROGRAM_PIECE.min(size - offset)];
            let read = tree.pread(&handle, &mut piece, offset as u64);
            tree.close(handle);
            piece.truncate(read?);
            Ok(piece)
        });
        match piece.await? {
            piece if piece.is_empty() => break,
            piece => bytes.extend_from_slice(&piece),
        }
        pause().await;
    }
    Ok((bytes, Some(charge)))
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
    /// One of ours that nobody has started yet.
    Later(Arc<Later>),
    Unknown {
        version: u64,
        size: usize,
        head: Vec<u8>,
    },
}

impl From<Known> for Opened {
    fn from(known: Known) -> Opened {
        match known {
            Known::Ready(program) => Opened::Known(Executable::Guest(program)),
            Known::Later(later) => Opened::Later(later),
        }
    }
}

async fn identify(machine: &Arc<Machine>, version: u64, bytes: Vec<u8>, exe: Arc<[u8]>) -> Result<Loaded> {
    if let Some(line) = bytes.strip_prefix(b"#!") {
        return interpreter(line).ok_or(Errno::ENOEXEC);
    }
    if !bytes.starts_with(b"\0asm") {
        return Err(Errno::ENOEXEC);
    }
    compiled(machine, exe, move |kernel| kernel.compile_user(version, &bytes)).await
}

/// Compiling cannot be interrupted: on a thread of its own, a deadline still answers on time.
async fn compiled(
    machine: &Arc<Machine>,
    exe: Arc<[u8]>,
    compile: impl FnOnce(&KernelInner) -> std::result::Result<Arc<Program>, KernelError> + Send + 'static,
) -> Result<Loaded> {
    let kernel = machine.kernel().clone();
    match machine.kernel().runtime().spawn_blocking(move || compile(&kernel)).await {
        Ok(Ok(program)) => Ok(Loaded::Program(Executable::Guest(program), exe)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "cannot compile");
            Err(Errno::ENOEXEC)
        }
        Err(_) => Err(Errno::EIO),
    }
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
    let berth = machine.kernel().room().take()?;
    let fds = inherited(&parent.fds.lock(), moves)?;
    let cwd = cwd.unwrap_or_else(|| parent.cwd.lock().clone());
    let seed = Seed {
        run: parent.run(),
        fds,
        cwd,
        umask: parent.umask.load(Ordering::Relaxed),
        signals: parent.signals.lock().for_new_program(),
        argv: request.argv.clone(),
        exe: request.exe.clone(),
    };
    let child = {
        let mut table = machine.table();
        let member_of = match group {
            Group::Parents => table.get(parent.pid).map(|entry| entry.group),
            Group::Own | Group::Foreground => None,
            Group::Existing(pid) => Some(pid),
        };
        table.add(parent.pid, member_of, seed)?
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

/// Runs a program until it ends, through every `exec` it does; answers what is left of it, too.
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
    };
    process.confined.store(request.preopens.is_some(), Ordering::Relaxed);
    if !program.native
        && let Err(errno) = foreign::prepare(machine, process, request.preopens.as_deref()).await
    {
        tracing::debug!(%errno, "cannot prepare descriptors");
        return (Ending::Status(Status::Exited(126)), None);
    }
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
