//! Children of the shell: starting them, waiting for them, and whom the terminal listens to.

use super::*;

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
        self.report_death(status)
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
            return pids.iter().map(|pid| self.wait_for(*pid)).collect();
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
