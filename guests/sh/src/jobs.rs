//! Children: those waited for at once, and those in the background.

use crate::shell::Shell;
use std::collections::HashMap;
use std::time::Duration;
use wardian_abi as abi;

pub struct Job {
    pub id: usize,
    pub pids: Vec<abi::Pid>,
    pub text: Vec<u8>,
    /// The exit code of the last process, when all have ended.
    pub status: Option<i32>,
    /// It was waited for, or shown to have ended.
    pub known: bool,
    /// A process of it is stopped.
    pub stopped: bool,
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

impl Job {
    pub fn state(&self) -> State {
        match self.status {
            Some(_) => State::Done,
            None if self.stopped => State::Stopped,
            None => State::Running,
        }
    }
}

#[derive(Default)]
pub struct Jobs {
    pub list: Vec<Job>,
    /// Exit codes of processes that ended, until somebody asks.
    ended: HashMap<abi::Pid, i32>,
    /// Children nobody waits for: reaped when they are met.
    stray: Vec<abi::Pid>,
    /// The list is that of the shell this one was copied from: to be shown, not waited for.
    pub foreign: bool,
}

impl Jobs {
    pub fn add(&mut self, pids: Vec<abi::Pid>, text: Vec<u8>) -> usize {
        if self.foreign {
            *self = Jobs::default();
        }
        let id = self.list.iter().map(|job| job.id).max().unwrap_or(0) + 1;
        self.list.push(Job { id, pids, text, status: None, known: false, stopped: false });
        id
    }

    pub fn note(&mut self, pid: abi::Pid, status: i32) {
        self.stray.retain(|stray| *stray != pid);
        self.ended.insert(pid, status);
        for job in &mut self.list {
            if job.pids.contains(&pid) {
                let all = job.pids.iter().all(|pid| self.ended.contains_key(pid));
                if all {
                    job.status = job.pids.last().and_then(|last| self.ended.get(last)).copied();
                }
            }
        }
    }

    fn note_stopped(&mut self, pid: abi::Pid) {
        for job in self.list.iter_mut().filter(|job| job.pids.contains(&pid)) {
            job.stopped = true;
        }
    }

    pub fn ended(&self, pid: abi::Pid) -> Option<i32> {
        self.ended.get(&pid).copied()
    }

    pub fn remember_stray(&mut self, pid: abi::Pid) {
        self.stray.push(pid);
    }

    /// Learns, without waiting, which children have ended.
    pub fn poll(&mut self) {
        if self.foreign {
            return;
        }
        let running: Vec<abi::Pid> = self.list.iter().flat_map(|job| job.pids.iter().copied()).collect();
        let strays = self.stray.clone();
        for pid in running.into_iter().chain(strays) {
            if self.ended.contains_key(&pid) {
                continue;
            }
            let flags = abi::WaitFlags { no_hang: true, stopped: true };
            match abi::wait(abi::Who::Child(pid), flags) {
                Ok(Some((pid, status))) if status.stopped().is_some() => self.note_stopped(pid),
                Ok(Some((pid, status))) => self.note(pid, status.shell_code()),
                Err(abi::Errno::CHILD) => self.note(pid, 127),
                _ => {}
            }
        }
        self.stray.retain(|pid| !self.ended.contains_key(pid));
    }

    /// The current and the previous job: those started last.
    pub fn current(&self) -> Option<&Job> {
        self.list.last()
    }

    pub fn previous(&self) -> Option<&Job> {
        let len = self.list.len();
        if len >= 2 { self.list.get(len - 2) } else { self.list.last() }
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
        self.stray.clear();
        self.foreign = true;
    }
}

impl Shell {
    /// Makes a process, with patience where there is no room for one: children that have ended are reaped, the others
    /// get a moment to end.
    pub fn start_child(
        &mut self,
        mut start: impl FnMut(&mut Shell) -> abi::Result<abi::Pid>,
    ) -> abi::Result<abi::Pid> {
        for pause in [0, 1, 2, 4, 8, 16, 32, 64] {
            match start(self) {
                Err(abi::Errno::AGAIN) => {}
                started => return started,
            }
            self.jobs.poll();
            std::thread::sleep(Duration::from_millis(pause));
        }
        start(self)
    }

    /// Waits for a child to end; signals that arrive are left for later.
    pub fn wait_for(&mut self, pid: abi::Pid) -> i32 {
        loop {
            match abi::wait(abi::Who::Child(pid), abi::WaitFlags::default()) {
                Ok(Some((_, status))) => return self.report_death(status),
                Err(abi::Errno::INTR) | Ok(None) => self.note_signals(),
                Err(_) => return self.jobs.ended(pid).unwrap_or(127),
            }
        }
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

/// What a shell says of a signal that ended something.
pub fn death_text(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "Hangup",
        3 => "Quit",
        4 => "Illegal instruction",
        6 => "Aborted",
        7 => "Bus error",
        8 => "Floating point exception",
        9 => "Killed",
        11 => "Segmentation fault",
        14 => "Alarm clock",
        15 => "Terminated",
        _ => return None,
    })
}
