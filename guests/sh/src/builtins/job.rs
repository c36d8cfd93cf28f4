//! Background jobs.

use super::{Options, fail, invalid_option, number, output};
use crate::jobs::{Lookup, State};
use crate::shell::{Exec, Shell};
use wardian_abi as abi;

pub fn wait(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut any, mut variable) = (false, None);
    while let Some(letter) = options.next() {
        match letter {
            b'n' => any = true,
            b'p' => {
                let Some(name) = options.argument() else {
                    fail(shell, b"wait", &[b"-p: option requires an argument"], 2);
                    let _ = abi::write_all(2, b"wait: usage: wait [-fn] [-p var] [id ...]\n");
                    return Ok(2);
                };
                variable = Some(name.to_vec());
            }
            b'f' => {}
            other => {
                return Ok(invalid_option(shell, b"wait", &[b'-', other], "wait [-fn] [-p var] [id ...]"));
            }
        }
    }
    let operands = options.rest();
    if shell.jobs.foreign {
        shell.jobs = crate::jobs::Jobs::default();
    }
    if let Some(variable) = &variable {
        shell.vars.remove(variable);
    }
    let waited = wait_for_those(shell, any, operands);
    // Also those that were found to have ended before anybody waited.
    shell.forget_coprocs();
    let (pid, status) = waited?;
    if let Some(variable) = variable
        && pid > 0
    {
        shell.assign(&variable, pid.to_string().as_bytes())?;
    }
    Ok(status)
}

/// Waits for the children that the operands name: who ended last, and how.
fn wait_for_those(shell: &mut Shell, any: bool, operands: &[Vec<u8>]) -> Exec<(abi::Pid, i32)> {
    if any {
        return wait_any(shell, operands);
    }
    if operands.is_empty() {
        return Ok((0, wait_all(shell)?));
    }
    let mut last = (0, 0);
    for operand in operands {
        last = wait_one(shell, operand)?;
    }
    Ok(last)
}

/// Waits for a child, giving way to traps: those end the wait with 128 plus the signal.
fn wait_interruptibly(shell: &mut Shell, who: abi::Who) -> Exec<Result<(abi::Pid, i32), i32>> {
    loop {
        match shell.reap(who, abi::WaitFlags::default()) {
            Ok(Some((pid, status))) => {
                let code = status.shell_code();
                shell.jobs.note_status(pid, status);
                return Ok(Ok((pid, code)));
            }
            Ok(None) => return Ok(Err(127)),
            Err(abi::Errno::INTR) => {
                if let Some(signal) = shell.take_pending_traps()? {
                    return Ok(Err(128 + signal));
                }
            }
            Err(_) => return Ok(Err(127)),
        }
    }
}

fn wait_all(shell: &mut Shell) -> Exec {
    shell.reap_ended();
    for job in shell.jobs.list.iter().filter(|job| job.status.is_none() && job.stopped.is_some()) {
        let pid = job.pids.last().copied().unwrap_or(0);
        let text = format!("warning: job {}[{pid}] stopped", job.id);
        fail(shell, b"wait", &[text.as_bytes()], 0);
    }
    let running: Vec<abi::Pid> = shell
        .jobs
        .list
        .iter()
        .filter(|job| job.status.is_none() && job.stopped.is_none())
        .flat_map(|job| job.pids.iter().copied())
        .collect();
    for pid in running {
        if shell.jobs.ended(pid).is_some() {
            continue;
        }
        match wait_interruptibly(shell, abi::Who::Child(pid))? {
            Ok(_) => {}
            Err(127) => shell.jobs.note_lost(pid),
            Err(status) => return Ok(status),
        }
    }
    shell.jobs.list.retain(|job| job.status.is_none());
    Ok(0)
}

fn wait_one(shell: &mut Shell, operand: &[u8]) -> Exec<(abi::Pid, i32)> {
    shell.reap_ended();
    let pids = if operand.starts_with(b"%") {
        match shell.jobs.find(operand) {
            Some(job) if job.stopped.is_some() => {
                let ended = (job.pids.last().copied().unwrap_or(0), 128 + job.stopped.unwrap_or(0));
                let text = format!("warning: wait_for_job: job {} is stopped", job.id);
                shell.complain(text.as_bytes());
                return Ok(ended);
            }
            Some(job) => job.pids.clone(),
            None => {
                fail(shell, b"wait", &[operand, b": no such job"], 127);
                return Ok((0, 127));
            }
        }
    } else {
        match number(operand).and_then(|pid| abi::Pid::try_from(pid).ok()).filter(|pid| *pid > 0) {
            Some(pid) => vec![pid],
            None => {
                fail(shell, b"wait", &[b"`", operand, b"': not a pid or valid job spec"], 1);
                return Ok((0, 1));
            }
        }
    };
    let mut last = (0, 127);
    for pid in pids {
        if let Some(status) = shell.jobs.ended(pid) {
            last = (pid, status);
            continue;
        }
        match wait_interruptibly(shell, abi::Who::Child(pid))? {
            Ok(ended) => last = ended,
            Err(127) => {
                let shown = pid.to_string();
                fail(shell, b"wait", &[b"pid ", shown.as_bytes(), b" is not a child of this shell"], 127);
                last = (0, 127);
            }
            Err(status) => return Ok((0, status)),
        }
    }
    // It can be asked for by its job's number until another child is started.
    for job in shell.jobs.list.iter_mut().filter(|job| job.pids.contains(&last.0)) {
        job.known = job.status.is_some();
    }
    Ok(last)
}

/// `wait -n`: the next job to end, of those named or of all.
fn wait_any(shell: &mut Shell, operands: &[Vec<u8>]) -> Exec<(abi::Pid, i32)> {
    for operand in operands.iter().filter(|operand| operand.starts_with(b"%")) {
        if shell.jobs.find(operand).is_none() {
            fail(shell, b"wait", &[operand, b": no such job"], 127);
        }
    }
    loop {
        shell.reap_ended();
        let wanted = |job: &crate::jobs::Job| {
            operands.is_empty()
                || operands.iter().any(|operand| {
                    number(operand).is_some_and(|pid| job.pids.contains(&(pid as abi::Pid)))
                        || shell
                            .jobs
                            .find(operand)
                            .is_some_and(|found| operand.starts_with(b"%") && found.id == job.id)
                })
        };
        let mut running = false;
        let mut done = None;
        for job in shell.jobs.list.iter().filter(|job| wanted(job) && !(job.known && job.status.is_some())) {
            match job.status {
                Some(status) => {
                    done = Some((job.id, job.pids.last().copied().unwrap_or(0), status));
                    break;
                }
                None => running = true,
            }
        }
        if let Some((id, pid, status)) = done {
            shell.jobs.list.retain(|job| job.id != id);
            return Ok((pid, status));
        }
        if !running {
            return Ok((0, 127));
        }
        if let Err(status) = wait_interruptibly(shell, abi::Who::Any)? {
            return Ok((0, status));
        }
    }
}

pub fn jobs(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut long, mut pids, mut running, mut stopped, mut news) = (false, false, false, false, false);
    while let Some(letter) = options.next() {
        match letter {
            b'l' => long = true,
            b'p' => pids = true,
            b'r' => running = true,
            b's' => stopped = true,
            b'n' => news = true,
            b'x' => return run_with_jobs(shell, options.rest()),
            other => {
                let usage = "jobs [-lnprs] [jobspec ...] or jobs -x command [args]";
                return Ok(invalid_option(shell, b"jobs", &[b'-', other], usage));
            }
        }
    }
    shell.reap_ended();
    let mut status = 0;
    let mut wanted = Vec::new();
    for spec in options.rest() {
        match shell.jobs.find_one(spec) {
            Ok(job) => wanted.push(job.id),
            Err(lookup) => status = no_such_job(shell, b"jobs", spec, lookup),
        }
    }
    let all = options.rest().is_empty();
    let (current, previous) = (shell.jobs.current_id(), shell.jobs.previous_id());
    let mut text = Vec::new();
    for job in &mut shell.jobs.list {
        let chosen = all || wanted.contains(&job.id);
        let over = job.known && job.status.is_some();
        if !chosen
            || over
            || (news && job.known)
            || (running && job.state() != State::Running)
            || (stopped && job.state() != State::Stopped)
        {
            continue;
        }
        job.known = job.status.is_some() || job.stopped.is_some();
        // Of a job that a signal ended the shell has spoken already.
        if job.status.is_some_and(|code| code > 128 && crate::jobs::death_text(code - 128).is_some()) {
            continue;
        }
        if pids {
            text.extend_from_slice(format!("{}\n", job.pids.first().copied().unwrap_or(0)).as_bytes());
            continue;
        }
        let mark = match job.id {
            id if Some(id) == current => '+',
            id if Some(id) == previous => '-',
            _ => ' ',
        };
        text.extend(job_line(job, mark, long));
    }
    shell.jobs.forget_known();
    let written = output(shell, b"jobs", &text);
    Ok(status.max(written))
}

/// A line of `jobs`.
fn job_line(job: &crate::jobs::Job, mark: char, long: bool) -> Vec<u8> {
    let state = match (job.state(), job.status) {
        (State::Running, _) => "Running".to_string(),
        (State::Stopped, _) => "Stopped".to_string(),
        (State::Done, Some(0) | None) => "Done".to_string(),
        (State::Done, Some(code)) => format!("Exit {code}"),
    };
    let ampersand: &[u8] = if job.state() == State::Running { b" &" } else { b"" };
    let head = match long {
        true => format!("[{}]{mark} {:>5} {state:<24}", job.id, job.pids.first().copied().unwrap_or(0)),
        false => format!("[{}]{mark}  {state:<24}", job.id),
    };
    [head.as_bytes(), &job.text, ampersand, b"\n"].concat()
}

/// `jobs -x command …`: with `%1` and the like replaced by process ids.
fn run_with_jobs(shell: &mut Shell, words: &[Vec<u8>]) -> Exec {
    let words: Vec<Vec<u8>> = words
        .iter()
        .map(|word| match shell.jobs.find(word).filter(|_| word.starts_with(b"%")) {
            Some(job) => job.pids.first().copied().unwrap_or(0).to_string().into_bytes(),
            None => word.clone(),
        })
        .collect();
    let Some(name) = words.first() else { return Ok(0) };
    if let Some(function) = shell.functions.get(name.as_slice()).cloned() {
        return shell.call_function(&function, words[1..].to_vec());
    }
    match shell.enabled_builtin(name) {
        Some(builtin) => super::run(shell, builtin, &words, &crate::ast::Simple::default()),
        None => shell.run_program_now(&words),
    }
}

/// Says that a job is not there, or that its name fits several.
fn no_such_job(shell: &Shell, builtin: &[u8], spec: &[u8], lookup: Lookup) -> i32 {
    if lookup == Lookup::Ambiguous {
        let name = spec.strip_prefix(b"%").unwrap_or(spec);
        fail(shell, builtin, &[name, b": ambiguous job spec"], 1);
    }
    fail(shell, builtin, &[spec, b": no such job"], 1)
}

/// The job `fg` and `bg` mean, or the status of there being none.
fn continued(shell: &mut Shell, name: &[u8], spec: Option<&Vec<u8>>) -> Result<usize, i32> {
    if !shell.options.monitor {
        return Err(fail(shell, name, &[b"no job control"], 1));
    }
    shell.reap_ended();
    let wanted = spec.map_or(&b"%+"[..], Vec::as_slice);
    if shell.subshell_level > 0 && matches!(wanted, b"%+" | b"%%" | b"%") {
        return Err(fail(shell, name, &[b"no current jobs"], 1));
    }
    match shell.jobs.find(wanted).map(|job| (job.id, job.status)) {
        Some((id, None)) if shell.jobs.get_mut(id).is_some_and(|job| job.group.is_none()) => {
            let text = format!("job {id} started without job control");
            Err(fail(shell, name, &[text.as_bytes()], 1))
        }
        Some((id, None)) => Ok(id),
        Some((_, Some(_))) => Err(fail(shell, name, &[b"job has terminated"], 1)),
        None => {
            let shown = spec.map_or(&b"current"[..], Vec::as_slice);
            Err(fail(shell, name, &[shown, b": no such job"], 1))
        }
    }
}

pub fn fg(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    if let Some(option) = option_of(args).filter(|_| shell.options.monitor) {
        return Ok(invalid_option(shell, b"fg", option, "fg [job_spec]"));
    }
    let id = match continued(shell, b"fg", args.get(1)) {
        Ok(id) => id,
        Err(status) => return Ok(status),
    };
    let text = shell.jobs.get_mut(id).map(|job| job.text.clone()).unwrap_or_default();
    output(shell, b"fg", &[text.as_slice(), b"\n"].concat());
    Ok(shell.continue_in_front(id))
}

/// An option given to a builtin that has none.
fn option_of(args: &[Vec<u8>]) -> Option<&[u8]> {
    args.get(1).filter(|arg| arg.len() > 1 && arg.starts_with(b"-") && *arg != b"--").map(|arg| &arg[..2])
}

pub fn bg(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    if let Some(option) = option_of(args).filter(|_| shell.options.monitor) {
        return Ok(invalid_option(shell, b"bg", option, "bg [job_spec ...]"));
    }
    let specs: Vec<Option<&Vec<u8>>> =
        if args.len() < 2 { vec![None] } else { args[1..].iter().map(Some).collect() };
    let mut status = 0;
    for spec in specs {
        match continued(shell, b"bg", spec) {
            Ok(id) if shell.jobs.get_mut(id).is_some_and(|job| job.state() == State::Running) => {
                let text = format!("job {id} already in background");
                fail(shell, b"bg", &[text.as_bytes()], 0);
            }
            Ok(id) => {
                let mark = shell.jobs.mark(id);
                let text = shell.jobs.get_mut(id).map(|job| job.text.clone()).unwrap_or_default();
                let head = format!("[{id}]{mark} ");
                output(shell, b"bg", &[head.as_bytes(), &text, b" &\n"].concat());
                shell.continue_behind(id);
            }
            Err(failed) => status = failed,
        }
    }
    Ok(status)
}

pub fn suspend(shell: &mut Shell, _: &[Vec<u8>]) -> Exec {
    Ok(fail(shell, b"suspend", &[b"cannot suspend: no job control"], 1))
}

pub fn disown(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut all, mut stay) = (false, false);
    while let Some(letter) = options.next() {
        match letter {
            b'a' | b'r' => all = true,
            // Nobody sends a hangup here: such a job only stays on the list.
            b'h' => stay = true,
            other => {
                return Ok(invalid_option(
                    shell,
                    b"disown",
                    &[b'-', other],
                    "disown [-h] [-ar] [jobspec ... | pid ...]",
                ));
            }
        }
    }
    let operands = options.rest();
    if all {
        if !stay {
            shell.jobs.list.clear();
        }
        return Ok(0);
    }
    let specs = if operands.is_empty() { vec![b"%+".to_vec()] } else { operands.to_vec() };
    let mut status = 0;
    for spec in specs {
        let pid = number(&spec).map(|pid| pid as abi::Pid);
        let id = match pid {
            Some(pid) => shell.jobs.list.iter().find(|job| job.pids.contains(&pid)).map(|job| job.id),
            None => shell.jobs.find(&spec).map(|job| job.id),
        };
        match id {
            Some(_) if stay => {}
            Some(id) => shell.jobs.list.retain(|job| job.id != id),
            None => {
                let shown = if operands.is_empty() { b"current".to_vec() } else { spec };
                status = fail(shell, b"disown", &[&shown, b": no such job"], 1);
            }
        }
    }
    Ok(status)
}
