//! Pipelines and background commands.

use super::program::Spawned;
use crate::ast::{AndOr, Command, Pipeline, Timing};
use crate::jobs::Launch;
use crate::shell::{Exec, Flow, Shell};
use std::time::Instant;
use wardian_abi as abi;

/// A stage that was started, or failed to be.
enum Stage {
    Running(abi::Pid),
    Failed(i32),
}

impl Stage {
    fn pid(&self) -> Option<abi::Pid> {
        match self {
            Stage::Running(pid) => Some(*pid),
            Stage::Failed(_) => None,
        }
    }
}

fn pipeline_text(stages: &[Command]) -> Vec<u8> {
    let stages: Vec<Vec<u8>> = stages.iter().map(crate::unparse::whole_text).collect();
    stages.join(&b" | "[..])
}

impl Shell {
    /// Runs a pipeline; `checked` says whether its failure counts for `set -e`.
    pub(super) fn run_pipeline(&mut self, pipeline: &Pipeline, checked: bool) -> Exec {
        if pipeline.timed.is_some() {
            return self.run_timed(pipeline, checked);
        }
        self.run_untimed(pipeline, checked)
    }

    fn run_untimed(&mut self, pipeline: &Pipeline, checked: bool) -> Exec {
        if pipeline.negated {
            let status = self.unchecked(|shell| shell.run_stages(pipeline, false))?;
            self.status = i32::from(status == 0);
            return Ok(self.status);
        }
        self.run_stages(pipeline, checked)
    }

    fn run_stages(&mut self, pipeline: &Pipeline, checked: bool) -> Exec {
        match pipeline.stages.as_slice() {
            [] => {
                self.status = 0;
                Ok(0)
            }
            [only] => {
                let trapped = self.traps.on_error;
                let status = self.run_command(only)?;
                if Shell::is_checked(only) {
                    if self.pipe_status.len() != 1 || self.pipe_status[0] != status {
                        self.pipe_status = vec![status];
                    }
                    if checked {
                        return self.finish_command(status, trapped);
                    }
                }
                Ok(status)
            }
            stages => self.run_several(stages, checked),
        }
    }

    /// Commands with pipes between them, and what comes of it.
    #[inline(never)]
    fn run_several(&mut self, stages: &[Command], checked: bool) -> Exec {
        let trapped = self.traps.on_error;
        if trapped && let Some(line) = stages.last().and_then(Command::line) {
            self.line = line;
        }
        let status = self.run_pipes(stages)?;
        if self.traps.watching {
            self.run_pending_traps()?;
        }
        if self.keeps_command && self.in_trap == 0 {
            let text = stages.last().map(crate::unparse::command_text).unwrap_or_default();
            self.command_text = Some(std::rc::Rc::new(move || text.clone()));
        }
        if checked { self.finish_command(status, trapped) } else { Ok(status) }
    }

    fn run_pipes(&mut self, stages: &[Command]) -> Exec {
        let last_here = self.shopt.get("lastpipe") && !self.options.monitor;
        let started = if last_here { &stages[..stages.len() - 1] } else { stages };
        self.lead_job(true);
        let (children, input) =
            self.start_stages(started, last_here).inspect_err(|_| self.launch = Launch::Inside)?;
        let mut statuses: Vec<i32> = Vec::with_capacity(stages.len());
        let mut flow = None;
        let mut last_status = None;
        if let (Some(input), Some(last)) = (input, stages.last()) {
            // Where the shell has no input, the pipe's end may be in its place already.
            let saved = if input == 0 { None } else { abi::dup(0, 100, true).ok() };
            if input == 0 {
                let _ = abi::set_cloexec(0, false);
            } else {
                let _ = abi::dup2(input, 0, false);
                let _ = abi::close(input);
            }
            let result = self.unchecked(|shell| shell.run_command(last));
            match saved {
                Some(saved) => {
                    let _ = abi::dup2(saved, 0, false);
                    let _ = abi::close(saved);
                }
                None => drop(abi::close(0)),
            }
            match result {
                Ok(status) => last_status = Some(status),
                Err(stop) => flow = Some(stop),
            }
        }
        let running: Vec<abi::Pid> = children.iter().filter_map(Stage::pid).collect();
        let ended = self.wait_in_front(&running, || pipeline_text(stages));
        let mut ended = ended.into_iter();
        for child in children {
            statuses.push(match child {
                Stage::Running(_) => ended.next().unwrap_or(0),
                Stage::Failed(status) => status,
            });
        }
        statuses.extend(last_status);
        if let Some(flow) = flow {
            return Err(flow);
        }
        let mut status = statuses.last().copied().unwrap_or(0);
        if self.options.pipefail {
            status = statuses.iter().rev().copied().find(|status| *status != 0).unwrap_or(0);
        }
        self.pipe_status = statuses;
        self.status = status;
        Ok(status)
    }

    /// Starts stages with pipes between them. With `open_end`, the last one's output is a pipe too, whose reading end
    /// is answered.
    fn start_stages(&mut self, stages: &[Command], open_end: bool) -> Exec<(Vec<Stage>, Option<abi::Fd>)> {
        let mut children = Vec::with_capacity(stages.len());
        let mut input: Option<abi::Fd> = None;
        for (at, stage) in stages.iter().enumerate() {
            // The trap on steps runs here: a stage that is a program starts at once, without a shell of its own.
            if let Command::Simple(simple) = stage
                && self.traps.on_step
            {
                self.step(simple.line, || crate::unparse::simple_text(simple))?;
            }
            let last = at + 1 == stages.len() && !open_end;
            let pipe = if last {
                None
            } else {
                match abi::pipe(true) {
                    Ok(pipe) => Some(pipe),
                    Err(errno) => {
                        self.complain_errno(b"pipe error", errno);
                        if let Some(fd) = input {
                            let _ = abi::close(fd);
                        }
                        return Err(Flow::Discard(1));
                    }
                }
            };
            children.push(self.start_stage(stage, input, pipe)?);
            if let Some(fd) = input.take() {
                let _ = abi::close(fd);
            }
            if let Some(pipe) = pipe {
                let _ = abi::close(pipe.write);
                input = Some(pipe.read);
            }
        }
        Ok((children, input))
    }

    fn start_stage(
        &mut self,
        stage: &Command,
        input: Option<abi::Fd>,
        output: Option<abi::Pipe>,
    ) -> Exec<Stage> {
        if let Command::Simple(simple) = stage
            && self.starts_at_once(simple)
        {
            let mut map = Vec::with_capacity(4);
            map.extend(input.map(|from| abi::FdMap { to: 0, from }));
            map.extend(output.map(|pipe| abi::FdMap { to: 1, from: pipe.write }));
            return Ok(match self.spawn_simple(simple, &map)? {
                Spawned::Ok(pid) => Stage::Running(pid),
                Spawned::Err(status) => Stage::Failed(status),
            });
        }
        let forked = self.start_child(|shell| {
            abi::fork(|| {
                if let Some(fd) = input {
                    let _ = abi::dup2(fd, 0, false);
                    let _ = abi::close(fd);
                }
                if let Some(pipe) = output {
                    let _ = abi::dup2(pipe.write, 1, false);
                    let _ = abi::close(pipe.read);
                    let _ = abi::close(pipe.write);
                }
                shell.enter_job();
                shell.enter_child();
                if matches!(stage, Command::Simple(_)) {
                    shell.subshell_level -= 1;
                    shell.pending_level = true;
                    shell.stepped = shell.traps.on_step;
                }
                shell.own_input |= input.is_some() && matches!(stage, Command::Compound(_));
                shell.run_child_command(stage)
            })
        });
        Ok(match forked {
            Ok(pid) => {
                self.joined(pid);
                Stage::Running(pid)
            }
            Err(errno) => {
                self.complain_errno(b"fork", errno);
                Stage::Failed(254)
            }
        })
    }

    /// `command &`
    pub(super) fn run_background(&mut self, item: &AndOr) -> Exec {
        let mut foreground = item.clone();
        foreground.background = false;
        let text = crate::unparse::and_or_text(&foreground);
        self.lead_job(false);
        let started = self.start_background(item, &foreground);
        let launch = std::mem::take(&mut self.launch);
        let pids = started?;
        self.last_background = pids.last().copied();
        let id = self.jobs.add(pids, text);
        if let (Launch::Join(group), Some(job)) = (launch, self.jobs.get_mut(id)) {
            job.group = Some(group);
        }
        if let (true, Some(pid)) = (self.interactive && self.subshell_level == 0, self.last_background) {
            let _ = abi::write_all(2, format!("[{id}] {pid}\n").as_bytes());
        }
        self.status = 0;
        Ok(0)
    }

    fn start_background(&mut self, item: &AndOr, foreground: &AndOr) -> Exec<Vec<abi::Pid>> {
        let alone = item.rest.is_empty() && !item.first.negated && item.first.timed.is_none();
        Ok(match (item.first.stages.as_slice(), item.rest.is_empty() && !item.first.negated) {
            ([Command::Simple(simple)], true) if self.starts_at_once(simple) => {
                let null = self.background_input();
                let map: Vec<_> = null.map(|from| abi::FdMap { to: 0, from }).into_iter().collect();
                let spawned = self.spawn_simple(simple, &map)?;
                if let Some(fd) = null {
                    let _ = abi::close(fd);
                }
                match spawned {
                    Spawned::Ok(pid) => vec![pid],
                    // As if a child had been made and failed at once.
                    Spawned::Err(status) => vec![self.fork_background(|_| status)?],
                }
            }
            _ => {
                vec![self.fork_background(|shell| {
                    if let Some(fd) = shell.background_input() {
                        let _ = abi::dup2(fd, 0, false);
                        let _ = abi::close(fd);
                    }
                    if let ([only], true) = (foreground.first.stages.as_slice(), alone) {
                        return shell.run_child_command(only);
                    }
                    shell.loops = 0;
                    let result = shell.run_and_or(foreground);
                    shell.exit_code(result)
                })?]
            }
        })
    }

    fn fork_background(&mut self, mut run: impl FnMut(&mut Shell) -> i32) -> Exec<abi::Pid> {
        let forked = self.start_child(|shell| {
            abi::fork(|| {
                shell.enter_job();
                shell.enter_child();
                run(shell)
            })
        });
        let pid = forked.map_err(|errno| {
            self.complain_errno(b"fork", errno);
            Flow::Discard(254)
        })?;
        self.joined(pid);
        Ok(pid)
    }

    /// Without job control a background command does not read the shell's input.
    fn background_input(&self) -> Option<abi::Fd> {
        let flags = abi::open_flags::RDONLY | abi::open_flags::CLOEXEC;
        if self.options.monitor || self.own_input {
            None
        } else {
            abi::open(abi::Dir::CWD, b"/dev/null", flags, 0).ok()
        }
    }

    /// `time pipeline`
    fn run_timed(&mut self, pipeline: &Pipeline, checked: bool) -> Exec {
        let (before, start) = (abi::times(), Instant::now());
        let result = self.run_untimed(pipeline, checked);
        let (after, real) = (abi::times(), start.elapsed().as_nanos() as i64);
        let user = after.user + after.child_user - before.user - before.child_user;
        let system = after.system + after.child_system - before.system - before.child_system;
        let format = match pipeline.timed {
            Some(Timing::Posix) => b"real %2R\nuser %2U\nsys %2S".to_vec(),
            _ => self
                .text(b"TIMEFORMAT")
                .map_or_else(|| b"\nreal\t%3lR\nuser\t%3lU\nsys\t%3lS".to_vec(), |text| text.to_vec()),
        };
        if !format.is_empty() {
            let mut report = time_report(&format, real, user, system);
            report.push(b'\n');
            let _ = abi::write_all(2, &report);
        }
        result
    }
}

/// `TIMEFORMAT` filled in; times are nanoseconds.
fn time_report(format: &[u8], real: i64, user: i64, system: i64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < format.len() {
        if format[at] != b'%' || at + 1 == format.len() {
            out.push(format[at]);
            at += 1;
            continue;
        }
        at += 1;
        let (mut digits, mut long) = (3, false);
        if let Some(digit @ b'0'..=b'9') = format.get(at) {
            digits = usize::from(digit - b'0').min(3);
            at += 1;
        }
        if format.get(at) == Some(&b'l') {
            long = true;
            at += 1;
        }
        let nanos = match format.get(at) {
            Some(b'R') => Some(real),
            Some(b'U') => Some(user),
            Some(b'S') => Some(system),
            Some(b'P') => {
                let percent = if real > 0 { (user + system) * 100 / real } else { 0 };
                out.extend_from_slice(format!("{percent}.00").as_bytes());
                None
            }
            Some(b'%') => {
                out.push(b'%');
                None
            }
            _ => None,
        };
        at += 1;
        if let Some(nanos) = nanos {
            out.extend_from_slice(seconds(nanos.max(0), digits, long).as_bytes());
        }
    }
    out
}

fn seconds(nanos: i64, digits: usize, long: bool) -> String {
    let fraction = nanos % 1_000_000_000 / 10_i64.pow(9 - digits as u32);
    let fraction = if digits > 0 { format!(".{fraction:0digits$}") } else { String::new() };
    let whole = nanos / 1_000_000_000;
    if long { format!("{}m{}{fraction}s", whole / 60, whole % 60) } else { format!("{whole}{fraction}") }
}
