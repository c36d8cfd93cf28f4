//! `kill`, and the names of signals.

use super::{fail, number, output};
use crate::shell::{Exec, Shell};
use crate::traps::{signal_name, signal_number};
use wardian_abi as abi;

/// SIGCONT
const CONTINUE: i32 = 18;
const HANGUP: i32 = 1;
const TERMINATE: i32 = 15;

pub fn kill(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut operands = &args[1..];
    let mut signal = 15;
    match operands.first().map(Vec::as_slice) {
        Some(b"-l" | b"-L") => return list(shell, &operands[1..]),
        Some(option @ (b"-s" | b"-n")) => {
            let Some(name) = operands.get(1).cloned() else {
                return Ok(fail(shell, b"kill", &[option, b": option requires an argument"], 1));
            };
            match signal_number(&name) {
                Some(number) if number >= 0 => signal = number,
                _ => return Ok(fail(shell, b"kill", &[&name, b": invalid signal specification"], 1)),
            }
            operands = &operands[2.min(operands.len())..];
        }
        Some(b"--") => operands = &operands[1..],
        Some([b'-', name @ ..]) if !name.is_empty() => {
            match signal_number(name) {
                Some(number) if number >= 0 => signal = number,
                _ => return Ok(fail(shell, b"kill", &[name, b": invalid signal specification"], 1)),
            }
            operands = &operands[1..];
            if operands.first().is_some_and(|word| word == b"--") {
                operands = &operands[1..];
            }
        }
        _ => {}
    }
    if operands.is_empty() {
        let text =
            b"kill: usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]\n";
        let _ = abi::write_all(2, text);
        return Ok(2);
    }
    let mut status = 0;
    for operand in operands {
        status = status.max(kill_one(shell, operand, signal));
    }
    Ok(status)
}

fn kill_one(shell: &mut Shell, operand: &[u8], signal: i32) -> i32 {
    let pids = if operand.starts_with(b"%") {
        match shell.jobs.find(operand) {
            Some(job) => job.group.map_or_else(|| job.pids.clone(), |group| vec![-group]),
            None => return fail(shell, b"kill", &[operand, b": no such job"], 1),
        }
    } else {
        match number(operand).and_then(|pid| abi::Pid::try_from(pid).ok()) {
            Some(pid) => vec![pid],
            None if operand.is_empty() => {
                return fail(shell, b"kill", &[b"`': not a pid or valid job spec"], 1);
            }
            None => return fail(shell, b"kill", &[operand, b": arguments must be process or job IDs"], 1),
        }
    };
    let addressed = |job: &crate::jobs::Job| {
        job.pids == pids || job.group.is_some_and(|group| pids.as_slice() == [-group])
    };
    let mut wakes = false;
    for job in shell.jobs.list.iter_mut().filter(|job| addressed(job)) {
        // What is stopped must go on to die.
        wakes = job.stopped.is_some() && matches!(signal, HANGUP | TERMINATE);
        if signal == CONTINUE || wakes {
            job.stopped = None;
        }
    }
    let mut status = 0;
    for pid in pids {
        if pid == abi::getpid() {
            shell.traps.sends_itself(signal);
        }
        if let Err(errno) = abi::kill(abi::Who::from_number(pid), signal) {
            status = fail(shell, b"kill", &[b"(", operand, b") - ", errno.message().as_bytes()], 1);
        } else if wakes {
            let _ = abi::kill(abi::Who::from_number(pid), CONTINUE);
        }
    }
    status
}

fn list(shell: &mut Shell, operands: &[Vec<u8>]) -> Exec {
    if operands.is_empty() {
        list_signals(shell);
        return Ok(0);
    }
    let mut status = 0;
    for operand in operands {
        let line = match number(operand) {
            Some(code) => {
                let signal = if code > 128 { code - 128 } else { code } as i32;
                match signal {
                    0 => "EXIT".to_string(),
                    signal if !(1..=64).contains(&signal) => {
                        status = fail(shell, b"kill", &[operand, b": invalid signal specification"], 1);
                        continue;
                    }
                    _ => signal_name(signal).trim_start_matches("SIG").to_string(),
                }
            }
            None => match signal_number(operand) {
                Some(signal) => signal.to_string(),
                None => {
                    status = fail(shell, b"kill", &[operand, b": invalid signal specification"], 1);
                    continue;
                }
            },
        };
        output(shell, b"kill", format!("{line}\n").as_bytes());
    }
    Ok(status)
}

/// The table of `kill -l`.
pub fn list_signals(shell: &mut Shell) {
    let mut names: Vec<(i32, String)> =
        abi::SIGNALS.iter().map(|(n, name)| (*n, format!("SIG{name}"))).collect();
    for n in 34..=64 {
        let name = match n {
            34 => "SIGRTMIN".to_string(),
            35..=49 => format!("SIGRTMIN+{}", n - 34),
            64 => "SIGRTMAX".to_string(),
            _ => format!("SIGRTMAX-{}", 64 - n),
        };
        names.push((n, name));
    }
    let mut text = String::new();
    for (at, (number, name)) in names.iter().enumerate() {
        text += &format!("{number:2}) {name}");
        text += if at % 5 == 4 { "\n" } else { "\t" };
    }
    text += "\n";
    output(shell, b"kill", text.as_bytes());
}
