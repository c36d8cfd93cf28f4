//! `process.…`: processes beside the shell, several at once.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wardian::{ProcessOptions, Sandbox};
use wardian_contract::params::{
    About, AckProcess, Nothing, ProcessId, ResizeProcess, SignalProcess, StartProcess, WriteProcess,
};

use super::{Job, Outcome, Prepared, asked, ok};
use crate::lane::Lane;
use crate::params::{Params, text};
use crate::processes::{Handle, WRITES};
use crate::rpc::RpcError;
use crate::session::Session;

/// How much of what was started is listed.
const SHOWN: usize = 256;

pub(super) fn start(session: &Arc<Session>, id: Option<&Value>, params: &mut Params) -> Prepared {
    let (entry, asked) = asked::<StartProcess>(session, params)?;
    let sandbox_id = asked.sandbox_id.clone();
    let (options, command_bytes) = options(asked)?;
    if id.is_none() {
        return Err(RpcError::params("process.start needs an id: its answer names the process"));
    }
    let place = session.processes.place()?;
    let (mut turn, session) = (entry.at_once(), session.clone());
    let lane = Lane::default();
    let (answer, told) = (lane.turn(), lane.turn());
    // It may wait for room, which a later line may make.
    Job::in_turn(answer.hold(), async move {
        let sandbox = turn.sandbox().await?;
        drop((turn, answer));
        check_command(&sandbox, command_bytes)?;
        let process = tokio::select! {
            () = entry.ended() => return Err(wardian::Error::Destroyed.into()),
            started = sandbox.start_process(options) => started?,
        };
        let shown = process.argv().join(&b' ');
        let shown = text(&shown[..shown.len().min(SHOWN)]);
        let handle = session.processes.add(process, sandbox_id, shown, place);
        let answer = json!({ "processId": handle.id(), "pid": handle.pid });
        tokio::spawn(handle.tell(session.processes.clone(), told, (entry, sandbox), session.outbox.clone()));
        Ok(answer)
    })
}

/// Reads what to start, and how long its command is.
fn options(asked: StartProcess) -> Result<(ProcessOptions, usize), RpcError> {
    let (mut options, length) = match (asked.command, asked.argv) {
        (Some(command), None) => (ProcessOptions::command(command.as_str()), command.len()),
        (None, Some(argv)) if !argv.is_empty() => {
            let length = argv.iter().map(String::len).sum();
            (ProcessOptions::program(argv), length)
        }
        _ => return Err(RpcError::params("process.start needs a command, or an argv that is not empty")),
    };
    for (name, value) in asked.env.unwrap_or_default() {
        options = options.env(name, value);
    }
    if let Some(cwd) = asked.cwd {
        options = options.cwd(cwd);
    }
    options = options.stdin(asked.stdin.unwrap_or(false));
    if let Some(screen) = asked.pty {
        options = options.pty(screen.rows.0, screen.columns.0);
    }
    if let Some(timeout) = asked.timeout_ms {
        options = options.timeout(timeout.0);
    }
    Ok((options, length))
}

fn check_command(sandbox: &Sandbox, bytes: usize) -> Result<(), RpcError> {
    let limit = sandbox.limits().command_bytes;
    if bytes <= limit {
        return Ok(());
    }
    Err(RpcError::refused(
        "E2BIG",
        format!("E2BIG: the command has {bytes} bytes, limit commandBytes {limit}"),
    ))
}

/// Reads params that are about a process. The ids of processes are a client's own, so a sandbox need not be named; if it is, there
/// has to be one.
fn of_process<T: About + DeserializeOwned>(
    session: &Arc<Session>,
    params: &mut Params,
) -> Result<T, RpcError> {
    asked(session, params).map(|(_, read)| read)
}

pub(super) fn write(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let WriteProcess { process_id: id, data, .. } = of_process(session, params)?;
    let data = data.0;
    let handle = session.processes.get(&id)?;
    if data.len() > WRITES {
        return Err(RpcError::params(format!("data must have at most {WRITES} bytes")));
    }
    let counted = handle.count(data.len())?;
    in_order(handle, move |handle| async move {
        let written = handle.process()?.write(&data).await;
        drop(counted);
        written?;
        ok()
    })
}

pub(super) fn close_stdin(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let ProcessId { process_id: id, .. } = of_process(session, params)?;
    let handle = session.processes.get(&id)?;
    in_order(handle, |handle| async move {
        handle.process()?.close_stdin().await?;
        ok()
    })
}

/// Does something after what was written before.
fn in_order<F: Future<Output = Outcome> + Send>(
    handle: Arc<Handle>,
    work: impl FnOnce(Arc<Handle>) -> F + Send + 'static,
) -> Prepared {
    let mut turn = handle.turn();
    Job::in_turn(turn.hold(), async move {
        turn.come().await;
        work(handle).await
    })
}

pub(super) fn ack(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let AckProcess { process_id: id, bytes, .. } = of_process(session, params)?;
    let handle = session.processes.get(&id)?;
    handle.acknowledge(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    Job::at_once(None, async { ok() })
}

pub(super) fn signal(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let SignalProcess { process_id: id, signal: name, .. } = of_process(session, params)?;
    let handle = session.processes.get(&id)?;
    let number = signal_number(&name)
        .ok_or_else(|| RpcError::params("signal must be the name of a signal, such as TERM"))?;
    handle.process()?.signal(number)?;
    Job::at_once(None, async { ok() })
}

/// Returns the number of a signal, with or without `SIG`.
fn signal_number(name: &str) -> Option<u8> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = name.strip_prefix("SIG").unwrap_or(name);
    NAMES.iter().position(|known| *known == name).and_then(|at| u8::try_from(at + 1).ok())
}

pub(super) fn wait(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let ProcessId { process_id: id, .. } = of_process(session, params)?;
    let handle = session.processes.get(&id)?;
    Job::in_turn(None, async move { handle.wait().await })
}

pub(super) fn resize(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let ResizeProcess { process_id: id, rows, columns, .. } = of_process(session, params)?;
    let handle = session.processes.get(&id)?;
    handle.process()?.resize(rows.0, columns.0)?;
    Job::at_once(None, async { ok() })
}

pub(super) fn list(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, Nothing { sandbox_id }) = asked(session, params)?;
    let (mut turn, session) = (entry.at_once(), session.clone());
    Job::at_once(turn.hold(), async move {
        turn.come().await;
        let running = session.processes.running(sandbox_id.as_deref());
        let listed = running.iter().map(|handle| {
            json!({ "processId": handle.id(), "pid": handle.pid, "command": handle.shown, "pty": handle.pty })
        });
        Ok(json!({ "processes": listed.collect::<Value>() }))
    })
}
