//! Children: those waited for at once, and those in the background.
//!
//! With `set -m` every pipeline is a job: a process group of its own, which the terminal listens to while it is in
//! front, and which can be stopped and continued. Without, children stay in the shell's group.

mod children;

use crate::shell::Shell;
use std::collections::HashMap;
use std::time::Duration;
use wardian_abi as abi;

pub const SIGINT: i32 = 2;
pub const SIGCHLD: i32 = 17;
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
