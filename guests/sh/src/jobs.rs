//! Children: those waited for at once, and those in the background.
//!
//! With `set -m` every pipeline is a job: a process group of its own, which the terminal listens to while it is in
//! front, and which can be stopped and continued. Without, children stay in the shell's group.

use crate::shell::Shell;
use std::collections::HashMap;
use std::time::Duration;
use wardian_abi as abi;

pub const SIGINT: i32 = 2;
pub const SIGCHLD: i32 = 17;
const SIGTERM: i32 = 15;
const SIGCONT: i32 = 18;

pub struct Job {
    pub id: usize,
    pub pids: Vec<abi::Pid>,
    /// Its process group, when it has one of its own.
    pub group: Option<abi::Pid>,
    pub text: Vec<u8>,
    /// The exit code of the last process, when all have ended.
    pub status: Option<i32>,
    /// The signal that ended the last process.
    pub signal: Option<i32>,
    /// The signal that stopped it.
    pub stopped: Option<i32>,
    /// It was waited for, or shown to have ended or stopped.
    pub known: bool,
}

/// What a job is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Running,
    Stopped,
    Done,
}

/// Why a name is no job's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    Missing,
    Ambiguous,
}

#[derive(Default)]
pub struct Jobs {
    pub list: Vec<Job>,
    /// How processes ended, until somebody asks.
    ended: HashMap<abi::Pid, abi::Status>,
    /// Children that nobody waits for at once, as far as is known still running: jobs and process substitutions.
    live: Vec<abi::Pid>,
    /// Jobs that died of a signal that is worth a message, which is not out yet.
    deaths: Vec<(Vec<abi::Pid>, Vec<abi::Status>, Vec<u8>)>,
    /// Commands run while there were any.
    commands: u8,
    /// The list is that of the shell this one was copied from: to be shown, not waited for.
    pub foreign: bool,
    /// Jobs by when something was last done with them, the current one last.
    recent: Vec<usize>,
}

/// Which process group the next child joins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Launch {
    /// The shell's own.
    #[default]
    Inside,
    /// One of its own, which others will join; in front or in the background.
    Lead { front: bool },
    /// That of the job's first process.
    Join(abi::Pid),
}

impl Launch {
    pub fn group(self) -> abi::Group {
        match self {
            Launch::Inside => abi::Group::Caller,
            Launch::Lead { front: true } => abi::Group::Foreground,
            Launch::Lead { front: false } => abi::Group::New,
            Launch::Join(group) => abi::Group::Of(group),
        }
    }
}

impl Jobs {
    pub fn add(&mut self, pids: Vec<abi::Pid>, text: Vec<u8>) -> usize {
        if self.foreign {
            *self = Jobs::default();
        }
        let id = self.list.iter().map(|job| job.id).max().unwrap_or(0) + 1;
        let job =
            Job { id, pids, group: None, text, status: None, signal: None, stopped: None, known: false };
        self.live.extend(job.pids.iter().filter(|pid| !self.ended.contains_key(pid)));
        self.list.push(job);
        self.touch(id);
        id
    }

    pub fn get_mut(&mut self, id: usize) -> Option<&mut Job> {
        self.list.iter_mut().find(|job| job.id == id)
    }

    /// Makes a job the current one.
    pub fn touch(&mut self, id: usize) {
        self.recent.retain(|other| *other != id);
        self.recent.push(id);
    }

    /// Notes that a child ended.
    fn note_end(&mut self, pid: abi::Pid, status: abi::Status) {
        self.live.retain(|live| *live != pid);
        self.ended.insert(pid, status);
        let Some(job) = self.list.iter_mut().find(|job| job.pids.contains(&pid)) else { return };
        if job.pids.iter().all(|pid| self.ended.contains_key(pid)) {
            let last = job.pids.last().and_then(|last| self.ended.get(last)).copied();
            job.status = last.map(abi::Status::shell_code);
            job.signal = last.and_then(abi::Status::signal);
            job.stopped = None;
            if job.signal.is_some_and(|signal| death_text(signal).is_some() && signal != SIGTERM) {
                let status = |pid: &abi::Pid| self.ended.get(pid).copied().unwrap_or(abi::Status(0));
                let statuses = job.pids.iter().map(status).collect();
                self.deaths.push((job.pids.clone(), statuses, job.text.clone()));
            }
            job.known = false;
        }
    }

    /// Notes that a child is none of ours, or no more.
    pub fn note_lost(&mut self, pid: abi::Pid) {
        self.note_end(pid, abi::Status(127 << 8));
    }

    /// Notes what `wait` said of a child: that it ended, or that it stopped.
    pub fn note_status(&mut self, pid: abi::Pid, status: abi::Status) {
        let Some(signal) = status.stopped() else { return self.note_end(pid, status) };
        let Some(job) = self.list.iter_mut().find(|job| job.pids.contains(&pid)) else { return };
        if job.stopped.replace(signal).is_none() {
            job.known = false;
            let id = job.id;
            self.touch(id);
        }
    }

    pub fn ended(&self, pid: abi::Pid) -> Option<i32> {
        self.ended.get(&pid).map(|status| status.shell_code())
    }

    /// A child nobody will wait for.
    pub fn add_stray(&mut self, pid: abi::Pid) {
        self.live.push(pid);
    }

    /// Whether children may end that nobody is waiting for.
    pub fn has_live(&self) -> bool {
        !self.live.is_empty()
    }

    /// Whether jobs are running, as far as is known.
    fn has_running(&self) -> bool {
        self.has_live() && self.list.iter().any(|job| job.status.is_none())
    }

    /// Whether to look, before a command, for children that have ended. Process substitutions can wait a little.
    pub fn is_time_to_look(&mut self) -> bool {
        self.commands = self.commands.wrapping_add(1);
        self.commands.is_multiple_of(64) || self.has_running()
    }

    /// A new child may have the number of one long gone.
    fn forget_number(&mut self, pid: abi::Pid) {
        if !self.ended.is_empty() {
            self.ended.remove(&pid);
        }
    }

    /// The current job and the one before: what was last stopped, then what was last started.
    fn by_recency(&self) -> impl Iterator<Item = &Job> {
        let jobs = |stopped: bool| {
            self.recent
                .iter()
                .rev()
                .filter_map(|id| self.list.iter().find(|job| job.id == *id))
                .filter(move |job| job.stopped.is_some() == stopped)
        };
        jobs(true).chain(jobs(false))
    }

    pub fn current(&self) -> Option<&Job> {
        self.by_recency().next()
    }

    pub fn previous(&self) -> Option<&Job> {
        self.by_recency().nth(1).or(self.current())
    }

    pub fn current_id(&self) -> Option<usize> {
        self.current().map(|job| job.id)
    }

    pub fn previous_id(&self) -> Option<usize> {
        self.previous().map(|job| job.id)
    }

    /// The job that `%…` names, if it can mean only one.
    pub fn find_one(&self, spec: &[u8]) -> Result<&Job, Lookup> {
        let name = spec.strip_prefix(b"%").unwrap_or(spec);
        let by_text = !name.is_empty() && !name[0].is_ascii_digit() && !b"%+-?".contains(&name[0]);
        if by_text && self.list.iter().filter(|job| job.text.starts_with(name)).count() > 1 {
            return Err(Lookup::Ambiguous);
        }
        self.find(spec).ok_or(Lookup::Missing)
    }

    /// The mark that lists show of a job: the current one, the one before, or neither.
    pub fn mark(&self, id: usize) -> char {
        match self.by_recency().position(|job| job.id == id) {
            Some(0) => '+',
            Some(1) => '-',
            _ => ' ',
        }
    }

    /// The job that `%…` names.
    pub fn find(&self, spec: &[u8]) -> Option<&Job> {
        let rest = spec.strip_prefix(b"%").unwrap_or(spec);
        match rest {
            b"" | b"%" | b"+" => self.current(),
            b"-" => self.previous(),
            _ => {
                if let Some(id) = std::str::from_utf8(rest).ok().and_then(|text| text.parse::<usize>().ok()) {
                    return self.list.iter().find(|job| job.id == id);
                }
                if let Some(part) = rest.strip_prefix(b"?") {
                    return self.list.iter().find(|job| crate::pattern::find(&job.text, part).is_some());
                }
                self.list.iter().find(|job| job.text.starts_with(rest))
            }
        }
    }

    /// Forgets jobs that have ended and are known to have.
    pub fn forget_known(&mut self) {
        self.list.retain(|job| !(job.status.is_some() && job.known));
    }

    /// In a new process: the parent's children are not ours.
    pub fn enter_child(&mut self) {
        self.ended.clear();
        self.live.clear();
        self.deaths.clear();
        self.foreign = true;
    }
}

impl Job {
    pub fn state(&self) -> State {
        match self.status {
            Some(_) => State::Done,
            None if self.stopped.is_some() => State::Stopped,
            None => State::Running,
        }
    }

    /// What has become of it, as lists show it.
    fn state_text(&self) -> String {
        match (self.stopped, self.signal, self.status) {
            (Some(_), ..) => "Stopped".into(),
            (None, Some(signal), _) => signal_text(signal).into(),
            (None, None, None) => "Running".into(),
            (None, None, Some(0)) => "Done".into(),
            (None, None, Some(code)) => format!("Exit {code}"),
        }
    }

    /// Its line in a list.
    pub fn line(&self, mark: char, long: bool) -> Vec<u8> {
        let number = self.pids.first().copied().unwrap_or(0);
        let head = if long {
            format!("[{}]{mark} {number:>5} {:<24}", self.id, self.state_text())
        } else {
            format!("[{}]{mark}  {:<24}", self.id, self.state_text())
        };
        let running = self.status.is_none() && self.stopped.is_none();
        [head.as_bytes(), &self.text, if running { b" &" } else { b"" }, b"\n"].concat()
    }
}

impl Shell {
    /// Makes a process, with patience where there is no room for one: children that have ended are reaped, the others
    /// get a moment to end.
    pub fn start_child(
        &mut self,
        mut start: impl FnMut(&mut Shell) -> abi::Result<abi::Pid>,
    ) -> abi::Result<abi::Pid> {
        if !self.interactive && !self.jobs.list.is_empty() {
            self.jobs.forget_known();
        }
        for pause in [0, 1, 2, 4, 8, 16, 32, 64] {
            match start(self) {
                Err(abi::Errno::AGAIN) => {}
                started => return started.inspect(|pid| self.jobs.forget_number(*pid)),
            }
            self.reap_ended();
            std::thread::sleep(Duration::from_millis(pause));
        }
        start(self).inspect(|pid| self.jobs.forget_number(*pid))
    }

    /// Waits as the kernel's call does; a child that ended counts for its trap.
    pub fn reap(
        &mut self,
        who: abi::Who,
        flags: abi::WaitFlags,
    ) -> abi::Result<Option<(abi::Pid, abi::Status)>> {
        let answer = abi::wait(who, flags)?;
        if let Some((pid, status)) = answer
            && status.stopped().is_none()
        {
            self.traps.child_ended();
            self.note_coproc(pid);
        }
        Ok(answer)
    }

    /// Learns, without waiting, which children have ended or stopped.
    pub fn reap_ended(&mut self) {
        while self.jobs.has_live() {
            match self.reap(abi::Who::Any, abi::WaitFlags { no_hang: true, stopped: true }) {
                Ok(Some((pid, status))) => self.jobs.note_status(pid, status),
                Ok(None) => return,
                Err(_) => {
                    for pid in std::mem::take(&mut self.jobs.live) {
                        self.jobs.note_lost(pid);
                    }
                }
            }
        }
    }

    /// Learns of each child by itself which of them have ended: in a session that was copied or put back some are not
    /// there any more.
    pub fn reap_each(&mut self) {
        for pid in self.jobs.live.clone() {
            match self.reap(abi::Who::Child(pid), abi::WaitFlags { no_hang: true, stopped: true }) {
                Ok(Some((pid, status))) => self.jobs.note_status(pid, status),
                Ok(None) => {}
                Err(_) => self.jobs.note_lost(pid),
            }
        }
    }

    /// Waits for a child to end; signals that arrive are left for later.
    pub fn wait_for(&mut self, pid: abi::Pid) -> i32 {
        let status = self.wait_change(pid, false);
        self.forget_coprocs();
        status.shell_code()
    }

    /// Waits until a child ends or, if asked, stops. Others that do so meanwhile are noted: somebody may be watching
    /// their numbers.
    fn wait_change(&mut self, pid: abi::Pid, stopped: bool) -> abi::Status {
        loop {
            if let Some(status) = self.jobs.ended.remove(&pid) {
                return status;
            }
            let who = if self.jobs.has_live() { abi::Who::Any } else { abi::Who::Child(pid) };
            match self.reap(who, abi::WaitFlags { no_hang: false, stopped }) {
                Ok(Some((found, status))) if found == pid => return status,
                Ok(Some((other, status))) => self.jobs.note_status(other, status),
                Err(abi::Errno::INTR) | Ok(None) => self.note_signals(),
                Err(_) => return abi::Status(127 << 8),
            }
        }
    }

    // --- job control ---

    /// Whether this shell makes jobs of what it runs.
    pub fn controls_jobs(&self) -> bool {
        self.options.monitor && self.subshell_level == 0
    }

    /// The next children are one job.
    pub fn lead_job(&mut self, front: bool) {
        self.launch = if self.controls_jobs() { Launch::Lead { front } } else { Launch::Inside };
    }

    /// In a new process: joins its job. Before the signals are as a child's, since taking the terminal needs that.
    pub fn enter_job(&mut self) {
        match std::mem::take(&mut self.launch) {
            Launch::Inside => {}
            Launch::Lead { front } => {
                let _ = abi::setpgid(0, 0);
                if front {
                    self.give_terminal(abi::getpid());
                }
            }
            Launch::Join(group) => {
                let _ = abi::setpgid(0, group);
            }
        }
    }

    /// In the shell: a child was started. It may not have come to joining its group itself.
    pub fn joined(&mut self, pid: abi::Pid) {
        match self.launch {
            Launch::Inside => {}
            Launch::Lead { front } => {
                let _ = abi::setpgid(pid, pid);
                if front {
                    self.give_terminal(pid);
                }
                self.launch = Launch::Join(pid);
            }
            Launch::Join(group) => {
                let _ = abi::setpgid(pid, group);
            }
        }
    }

    fn give_terminal(&self, group: abi::Pid) {
        if let Some(terminal) = self.terminal {
            let _ = abi::tcsetpgrp(terminal, group);
        }
    }

    /// Waits for a job in front; `text` is what lists show if it stops. Answers each process's status.
    pub fn wait_in_front(&mut self, pids: &[abi::Pid], text: impl FnOnce() -> Vec<u8>) -> Vec<i32> {
        let launch = std::mem::take(&mut self.launch);
        if launch == Launch::Inside {
            return self.wait_inside(pids, text);
        }
        let (statuses, stopped) = self.wait_group(pids);
        if let Some(signal) = stopped {
            let running: Vec<abi::Pid> = pids.to_vec();
            let id = self.jobs.add(running, text());
            if let Some(job) = self.jobs.get_mut(id) {
                job.group = pids.first().copied();
                job.stopped = Some(signal);
            }
            self.report_stop(id);
        }
        statuses
    }

    /// Waits for processes that are no job, and says so if the last of them died.
    fn wait_inside(&mut self, pids: &[abi::Pid], text: impl FnOnce() -> Vec<u8>) -> Vec<i32> {
        let statuses: Vec<abi::Status> = pids.iter().map(|pid| self.wait_change(*pid, false)).collect();
        self.forget_coprocs();
        match statuses.last().and_then(|status| status.signal()) {
            Some(signal) if signal != SIGTERM && !self.interactive && death_text(signal).is_some() => {
                self.tell_of_death(pids, &statuses, &text());
            }
            _ => {
                if let Some(last) = statuses.last() {
                    self.report_death(*last);
                }
            }
        }
        self.tell_of_deaths();
        statuses.into_iter().map(abi::Status::shell_code).collect()
    }

    /// What a script's shell says of processes of which the last died of a signal: where, and which they were.
    fn tell_of_death(&self, pids: &[abi::Pid], statuses: &[abi::Status], text: &[u8]) {
        let mut stages: Vec<&[u8]> = vec![text];
        if pids.len() > 1 {
            stages = split_stages(text, pids.len());
        }
        let mut lines = Vec::new();
        for (at, (pid, stage)) in pids.iter().zip(stages).enumerate() {
            let status = statuses.get(at).copied();
            let state = match status.map(|status| (status.signal(), status.shell_code())) {
                Some((Some(signal), _)) => signal_text(signal).to_owned(),
                Some((None, code)) if code != 0 => format!("Exit {code}"),
                _ => "Done".to_owned(),
            };
            let (margin, pipe) = if at == 0 { ("", "") } else { ("     ", "| ") };
            lines.push([format!("{margin}{pid:>5} {state:<24}{pipe}").as_bytes(), stage].concat());
        }
        // Outside of functions bash speaks of the line where it stopped reading.
        let in_function = self.frames.iter().any(|frame| frame.function.is_some());
        self.complain_at(if in_function { self.line } else { self.list_end }, &lines.join(&b'\n'));
    }

    /// Says of jobs in the background that they died, as a script's shell does where it notices.
    pub fn tell_of_deaths(&mut self) {
        for (pids, statuses, text) in std::mem::take(&mut self.jobs.deaths) {
            if !self.interactive && !self.options.monitor {
                self.tell_of_death(&pids, &statuses, &text);
            }
        }
    }

    /// Waits for the processes of a group in front, and takes the terminal back. Says by which signal it was stopped.
    fn wait_group(&mut self, pids: &[abi::Pid]) -> (Vec<i32>, Option<i32>) {
        let before = self.terminal.and_then(|terminal| abi::tcgetattr(terminal).ok());
        let (mut statuses, mut stopped, mut died) = (Vec::new(), None, false);
        for &pid in pids {
            let status = self.wait_change(pid, true);
            match status.stopped() {
                Some(signal) => stopped = Some(signal),
                None => self.jobs.note_status(pid, status),
            }
            died |= status.signal().is_some();
            if status.signal() == Some(SIGINT) && self.interactive {
                self.interrupted = true;
                statuses.push(128 + SIGINT);
            } else {
                statuses.push(if stopped.is_some() {
                    status.shell_code()
                } else {
                    self.report_death(status)
                });
            }
        }
        self.take_terminal();
        if let (Some(terminal), Some(before), true) = (self.terminal, before, died || stopped.is_some()) {
            // Whoever dies or stops has no chance to leave the terminal as it was.
            let _ = abi::tcsetattr(terminal, &before, false);
        }
        (statuses, stopped)
    }

    pub fn take_terminal(&self) {
        if let Ok(own) = abi::getpgid(0) {
            self.give_terminal(own);
        }
    }

    fn report_stop(&mut self, id: usize) {
        let mark = self.jobs.mark(id);
        if let Some(job) = self.jobs.get_mut(id) {
            job.known = true;
            let _ = abi::write_all(2, &[b"\n", job.line(mark, false).as_slice()].concat());
        }
    }

    /// `fg`: continues a job in front, and waits for it.
    pub fn continue_in_front(&mut self, id: usize) -> i32 {
        let Some(job) = self.jobs.get_mut(id) else { return 1 };
        job.stopped = None;
        let (pids, group) = (job.pids.clone(), job.group);
        if let Some(group) = group {
            self.give_terminal(group);
            let _ = abi::kill(abi::Who::Group(group), SIGCONT);
        }
        let (statuses, stopped) = self.wait_group(&pids);
        match stopped {
            Some(signal) => {
                if let Some(job) = self.jobs.get_mut(id) {
                    job.stopped = Some(signal);
                }
                self.jobs.touch(id);
                self.report_stop(id);
            }
            None => self.jobs.list.retain(|job| job.id != id),
        }
        statuses.last().copied().unwrap_or(0)
    }

    /// `bg`: continues a job where it is.
    pub fn continue_behind(&mut self, id: usize) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.stopped = None;
        let pids = job.pids.clone();
        let targets: Vec<abi::Who> = match job.group {
            Some(group) => vec![abi::Who::Group(group)],
            None => pids.iter().map(|pid| abi::Who::Child(*pid)).collect(),
        };
        for target in targets {
            let _ = abi::kill(target, SIGCONT);
        }
        self.last_background = pids.last().copied();
    }

    /// Before a prompt: what became of jobs since the last.
    pub fn tell_of_jobs(&mut self) {
        self.reap_ended();
        let mut text = Vec::new();
        for at in 0..self.jobs.list.len() {
            let mark = self.jobs.mark(self.jobs.list[at].id);
            let job = &mut self.jobs.list[at];
            if !job.known && (job.status.is_some() || job.stopped.is_some()) {
                job.known = true;
                text.extend(job.line(mark, false));
            }
        }
        let _ = abi::write_all(2, &text);
        self.jobs.forget_known();
    }

    /// Names the signal that ended a command, as bash does for those a user would not expect.
    fn report_death(&self, status: abi::Status) -> i32 {
        if let Some(signal) = status.signal()
            && let Some(text) = death_text(signal)
        {
            let _ = abi::write_all(2, &[text.as_bytes(), b"\n"].concat());
        }
        status.shell_code()
    }
}

/// The stages of a pipeline's text.
fn split_stages(text: &[u8], count: usize) -> Vec<&[u8]> {
    let (mut stages, mut rest) = (Vec::new(), text);
    while stages.len() + 1 < count
        && let Some(at) = crate::pattern::find(rest, b" | ")
    {
        stages.push(&rest[..at]);
        rest = &rest[at + 3..];
    }
    stages.push(rest);
    stages
}

/// While it is there, a child that ends interrupts calls that wait for something else.
pub struct ChildWatch;

impl ChildWatch {
    /// A watch, if there is anything to watch.
    pub fn over(jobs: &Jobs) -> Option<ChildWatch> {
        let watch = jobs.has_running() && abi::sigaction(SIGCHLD, abi::Disposition::Flag).is_ok();
        watch.then_some(ChildWatch)
    }
}

impl Drop for ChildWatch {
    fn drop(&mut self) {
        let _ = abi::sigaction(SIGCHLD, abi::Disposition::Default);
    }
}

/// What is said of a foreground command's death: nothing where the user did it, or a pipe.
pub fn death_text(signal: i32) -> Option<&'static str> {
    match signal {
        SIGINT | 13 => None,
        signal => Some(signal_text(signal)),
    }
}

/// A signal in words.
pub fn signal_text(signal: i32) -> &'static str {
    match signal {
        1 => "Hangup",
        2 => "Interrupt",
        3 => "Quit",
        4 => "Illegal instruction",
        5 => "Trace/breakpoint trap",
        6 => "Aborted",
        7 => "Bus error",
        8 => "Floating point exception",
        9 => "Killed",
        10 => "User defined signal 1",
        11 => "Segmentation fault",
        12 => "User defined signal 2",
        13 => "Broken pipe",
        14 => "Alarm clock",
        15 => "Terminated",
        16 => "Stack fault",
        23 => "Urgent I/O condition",
        24 => "CPU time limit exceeded",
        25 => "File size limit exceeded",
        26 => "Virtual timer expired",
        27 => "Profiling timer expired",
        28 => "Window changed",
        29 => "I/O possible",
        30 => "Power failure",
        31 => "Bad system call",
        _ => "Unknown signal",
    }
}
