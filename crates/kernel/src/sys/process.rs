//! Processes: fork, spawn, exec, wait, kill and related calls.

use std::sync::atomic::Ordering;
use std::time::Duration;

use wardian_vfs::{Errno, Result};

use super::MODULE;
use crate::call::{Call, Fail, Outcome, number_call, quick_calls, waiting_calls};
use crate::cwd::Cwd;
use crate::fd::{Allowance, Fd};
use crate::foreign;
use crate::imports::Imports;
use crate::instance::Stop;
use crate::pause::pause;
use crate::proc::Pid;
use crate::signal::{self, Disposition};
use crate::spawn::{FdMove, Group, Request};
use crate::strings::{MAX_ARGUMENTS, Strings};
use crate::{fork as forking, spawn as spawning, wait as waiting};

pub(super) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    waiting_calls! { imports, MODULE;
        fork(entry: u32, data: u32, pid: u32);
        spawn(request: u32, pid: u32);
        exec(request: u32);
        exec_wasi(request: u32, preopens: u32, count: u32);
        wait(target: i32, flags: u32, status: u32, pid: u32);
        kill(target: i32, signal: i32);
    }
    quick_calls! { imports, MODULE;
        getpgid(pid: u32, group: u32);
        setpgid(pid: u32, group: u32);
        getsid(pid: u32, session: u32);
        setsid();
        sigaction(signal: i32, disposition: i32, old: u32);
        sigpending(mask: u32);
        sigword(word: u32);
        alarm(nanos: i64, left: u32);
        times(out: u32);
        getrlimit(which: u32, out: u32);
        setrlimit(which: u32, limits: u32);
    }
    number_call!(imports, MODULE, "getpid", |ctx| ctx.process.pid);
    number_call!(imports, MODULE, "getppid", |ctx| {
        ctx.machine.table().get(ctx.process.pid).map_or(0, |entry| entry.parent)
    });
    Ok(())
}

async fn fork(call: &mut Call<'_>, entry: u32, data: u32, pid: u32) -> Outcome {
    call.bytes(pid, 4)?;
    let child = forking::fork(&mut call.caller, entry, data).await?;
    Ok(call.put_u32(pid, child)?)
}

async fn spawn(call: &mut Call<'_>, request: u32, pid: u32) -> Outcome {
    call.bytes(pid, 4)?;
    let words = RequestWords::read(call, request)?;
    let moves = words.moves(call)?;
    let cwd = words.cwd(call).await?;
    let group = words.group(call)?;
    let request = words.find(call).await?;
    let (machine, process) = (call.machine().clone(), call.process().clone());
    let child = spawning::spawn(&machine, &process, request, &moves, cwd, group)?;
    Ok(call.put_u32(pid, child)?)
}

async fn exec(call: &mut Call<'_>, request: u32) -> Outcome {
    let words = RequestWords::read(call, request)?;
    let moves = words.moves(call)?;
    let cwd = words.cwd(call).await?;
    let request = words.find(call).await?;
    replace(call, request, &moves, cwd)
}

/// Like `exec`, for a WASI program that may access only the given directories.
async fn exec_wasi(call: &mut Call<'_>, request: u32, preopens: u32, count: u32) -> Outcome {
    let words = RequestWords::read(call, request)?;
    let moves = words.moves(call)?;
    let preopens = preopen_list(call, preopens, count).await?;
    let cwd = words.cwd(call).await?;
    let mut request = words.find(call).await?;
    if !request.program.is_wasi() {
        return Err(Errno::EINVAL.into());
    }
    request.preopens = Some(preopens);
    replace(call, request, &moves, cwd)
}

/// The directories of `exec_wasi`: three words each, a descriptor and a name.
/// They become descriptors, so there can be no more of them than of those.
async fn preopen_list(call: &mut Call<'_>, at: u32, count: u32) -> Result<Vec<Fd>> {
    let most = (call.process().fds.lock().open.soft).saturating_sub(3).min(u64::from(u32::MAX)) as u32;
    let list = call.list(at, (count, 12), most, Errno::EMFILE).map(<[u8]>::to_vec);
    let list = list.inspect_err(|errno| {
        if *errno == Errno::EMFILE {
            call.hit("openFiles");
        }
    })?;
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let (machine, process) = (call.machine().clone(), call.process().clone());
    let mut preopens = Vec::new();
    for words in list.chunks_exact(12) {
        let name = call.path(word(&words[4..8]), word(&words[8..]))?;
        let directory = call.file(word(&words[..4]))?;
        preopens.push(foreign::given(&machine, &process, directory, name).await?);
        pause().await;
    }
    Ok(preopens)
}

/// The point of no return: the process now belongs to the new program.
fn replace(call: &mut Call<'_>, request: Request, moves: &[FdMove], cwd: Option<Cwd>) -> Outcome {
    let process = call.process();
    let fds = spawning::inherited(&process.fds.lock(), moves)?;
    *process.fds.lock() = fds;
    if let Some(cwd) = cwd {
        *process.cwd.lock() = cwd;
    }
    let signals = process.signals.lock().for_new_program();
    *process.signals.lock() = signals;
    process.runs_own_program.store(true, Ordering::Relaxed);
    Err(Fail::Stop(Stop::Exec(Box::new(request))))
}

/// The eleven words of a request to start a program.
struct RequestWords {
    path: (u32, u32),
    argv: (u32, u32),
    env: (u32, u32),
    cwd: (u32, u32),
    moves: (u32, u32),
    group: i32,
}

impl RequestWords {
    fn read(call: &mut Call<'_>, at: u32) -> Result<RequestWords> {
        let raw = call.words::<44>(at)?;
        let word = |i: usize| u32::from_le_bytes(raw[i * 4..i * 4 + 4].try_into().expect("four bytes"));
        let pair = |i: usize| (word(i), word(i + 1));
        Ok(RequestWords {
            path: pair(0),
            argv: pair(2),
            env: pair(4),
            cwd: pair(6),
            moves: pair(8),
            group: word(10) as i32,
        })
    }

    fn moves(&self, call: &mut Call<'_>) -> Result<Vec<FdMove>> {
        let (ptr, count) = self.moves;
        // Each descriptor there can be, once.
        let most = u32::try_from(call.machine().limits().open_files).unwrap_or(u32::MAX);
        let raw = call.list(ptr, (count, 8), most, Errno::EINVAL)?;
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let moves = raw.chunks_exact(8).map(|pair| {
            let from = word(&pair[4..]);
            FdMove { to: word(&pair[..4]), from: (from as i32 >= 0).then_some(from) }
        });
        Ok(moves.collect())
    }

    fn group(&self, call: &Call<'_>) -> Result<Group> {
        match self.group {
            -1 => Ok(Group::Parents),
            0 => Ok(Group::Own),
            -2 => Ok(Group::Foreground),
            -3 => Ok(Group::Session),
            1.. => {
                let group = self.group as Pid;
                let exists = call.machine().table().iter().any(|(_, entry)| entry.group == group);
                if exists { Ok(Group::Existing(group)) } else { Err(Errno::EPERM) }
            }
            _ => Err(Errno::EINVAL),
        }
    }

    async fn cwd(&self, call: &mut Call<'_>) -> Result<Option<Cwd>> {
        match self.cwd {
            (_, 0) => Ok(None),
            (ptr, len) => Ok(Some(call.working_directory(ptr, len).await?)),
        }
    }

    async fn find(&self, call: &mut Call<'_>) -> Result<Request> {
        let path = call.path(self.path.0, self.path.1)?;
        if self.argv.1.saturating_add(self.env.1) as usize > MAX_ARGUMENTS {
            return Err(Errno::E2BIG);
        }
        let argv = Strings::copied(call.bytes(self.argv.0, self.argv.1)?)?;
        let env = Strings::copied(call.bytes(self.env.0, self.env.1)?)?;
        let (machine, process) = (call.machine().clone(), call.process().clone());
        spawning::find(&machine, &process, path, argv, env).await
    }
}

async fn wait(call: &mut Call<'_>, target: i32, flags: u32, status: u32, pid: u32) -> Outcome {
    call.bytes(status, 4)?;
    call.bytes(pid, 4)?;
    let (machine, process) = (call.machine().clone(), call.process().clone());
    let (child, word) = waiting::wait(&machine, &process, target, flags).await?.unwrap_or((0, 0));
    call.put_u32(status, word)?;
    Ok(call.put_u32(pid, child)?)
}

async fn kill(call: &mut Call<'_>, target: i32, signal: i32) -> Outcome {
    let signal = if signal == 0 { None } else { Some(signal::checked(signal)?) };
    let (machine, process) = (call.machine().clone(), call.process().clone());
    let victims: Vec<_> = {
        let table = machine.table();
        let spared = |pid: Pid| target == -1 && pid == process.pid;
        table
            .matching(process.pid, target)
            .filter(|(p, _)| !spared(**p))
            .map(|(_, e)| e.process.clone())
            .collect()
    };
    if victims.is_empty() {
        return Err(Errno::ESRCH.into());
    }
    for victim in signal.iter().flat_map(|_| &victims) {
        let body = machine.signal(victim, signal.unwrap_or_default());
        if let Some(body) = body {
            // Never on a guest's own stack.
            machine.kernel().runtime().spawn(async move { drop(body) });
        }
    }
    process.task().pause_if_stopped().await;
    Ok(())
}

fn getpgid(call: &mut Call<'_>, pid: u32, group: u32) -> Outcome {
    let pid = if pid == 0 { call.process().pid } else { pid };
    let found = call.machine().table().get(pid).map(|entry| entry.group).ok_or(Errno::ESRCH)?;
    Ok(call.put_u32(group, found)?)
}

fn setpgid(call: &mut Call<'_>, pid: u32, group: u32) -> Outcome {
    let me = call.process().pid;
    let pid = if pid == 0 { me } else { pid };
    let group = if group == 0 { pid } else { group };
    if (group as i32) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut table = call.machine().table();
    let exists = group == pid || table.iter().any(|(_, entry)| entry.group == group);
    let entry = table.get_mut(pid).filter(|e| pid == me || e.parent == me).ok_or(Errno::ESRCH)?;
    if pid != me && entry.process.runs_own_program.load(Ordering::Relaxed) {
        return Err(Errno::EACCES.into());
    }
    // A session's first process stays the first of its group.
    if !exists || entry.session == pid {
        return Err(Errno::EPERM.into());
    }
    entry.group = group;
    Ok(())
}

fn getsid(call: &mut Call<'_>, pid: u32, session: u32) -> Outcome {
    let pid = if pid == 0 { call.process().pid } else { pid };
    let found = call.machine().table().get(pid).map(|entry| entry.session).ok_or(Errno::ESRCH)?;
    Ok(call.put_u32(session, found)?)
}

fn setsid(call: &mut Call<'_>) -> Outcome {
    let me = call.process().pid;
    let mut table = call.machine().table();
    if table.iter().any(|(_, entry)| entry.group == me) {
        return Err(Errno::EPERM.into());
    }
    let entry = table.get_mut(me).ok_or(Errno::ESRCH)?;
    (entry.group, entry.session) = (me, me);
    Ok(())
}

fn sigaction(call: &mut Call<'_>, signal: i32, disposition: i32, old: u32) -> Outcome {
    call.bytes(old, 4)?;
    let signal = signal::checked(signal)?;
    let before = call.process().signals.lock().disposition(signal);
    if disposition != -1 {
        let disposition = Disposition::from_abi(disposition)?;
        call.process().signals.lock().set(signal, disposition)?;
    }
    Ok(call.put_u32(old, before.to_abi())?)
}

fn sigpending(call: &mut Call<'_>, mask: u32) -> Outcome {
    call.bytes(mask, 8)?;
    let pending = call.process().signals.lock().take_pending();
    Ok(call.put_u64(mask, pending)?)
}

/// Where the program looks, while it computes, for signals that wait for it.
fn sigword(call: &mut Call<'_>, word: u32) -> Outcome {
    call.bytes(word, 4)?;
    call.caller.data_mut().signal_word = Some(word);
    Ok(())
}

fn alarm(call: &mut Call<'_>, nanos: i64, left: u32) -> Outcome {
    call.bytes(left, 8)?;
    let nanos = u64::try_from(nanos).map_err(|_| Errno::EINVAL)?;
    let after = (nanos > 0).then(|| Duration::from_nanos(nanos));
    let (machine, process) = (call.machine().clone(), call.process().clone());
    let remaining = machine.set_alarm(&process, after);
    Ok(call.put_u64(left, remaining.as_nanos() as u64)?)
}

fn times(call: &mut Call<'_>, out: u32) -> Outcome {
    let process = call.process();
    // The part of this very turn is not counted yet; it is at most a tick.
    let (own, children) = (process.task().cpu_nanos(), process.children_cpu.load(Ordering::Relaxed));
    let fields = [own, 0, children, 0];
    let bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
    Ok(call.put(out, &bytes)?)
}

/// Resources of `getrlimit`, with Linux's numbers.
const RLIMIT_NPROC: u32 = 6;
const RLIMIT_NOFILE: u32 = 7;
const RLIMIT_AS: u32 = 9;
const RLIMIT_FSIZE: u32 = 1;

fn getrlimit(call: &mut Call<'_>, which: u32, out: u32) -> Outcome {
    call.bytes(out, 16)?;
    let Allowance { soft, hard } = rlimit(call, which)?;
    call.put_u64(out, soft)?;
    Ok(call.put_u64(out + 8, hard)?)
}

fn rlimit(call: &Call<'_>, which: u32) -> Result<Allowance> {
    let limits = call.machine().limits();
    let fixed = |limit: u64| Allowance { soft: limit, hard: limit };
    Ok(match which {
        RLIMIT_FSIZE => call.process().fds.lock().file_size,
        RLIMIT_NOFILE => call.process().fds.lock().open,
        RLIMIT_NPROC => fixed(limits.processes as u64),
        RLIMIT_AS => fixed(limits.memory_bytes),
        _ => return Err(Errno::EINVAL),
    })
}

/// Descriptors and the size of files are the process's own; the rest belongs to the sandbox.
fn setrlimit(call: &mut Call<'_>, which: u32, limits: u32) -> Outcome {
    let raw = call.words::<16>(limits)?;
    let half = |at: usize| u64::from_le_bytes(raw[at..at + 8].try_into().expect("eight bytes"));
    let wanted = Allowance { soft: half(0), hard: half(8) };
    let current = rlimit(call, which)?;
    let mut fds = call.process().fds.lock();
    match which {
        RLIMIT_FSIZE => Ok(fds.file_size.set(wanted)?),
        RLIMIT_NOFILE => Ok(fds.open.set(wanted)?),
        _ if wanted == current => Ok(()),
        _ => Err(Errno::EPERM.into()),
    }
}
