//! Coprocesses: a command in the background with both its ends in an array.

use crate::ast::Coproc;
use crate::shell::{Exec, Shell};
use std::rc::Rc;
use wardian_abi as abi;

/// A coprocess at work.
pub struct Running {
    pid: abi::Pid,
    name: Rc<[u8]>,
    ends: [abi::Fd; 2],
    ended: bool,
}

impl Shell {
    /// `coproc NAME command`: both its ends in an array.
    pub(super) fn run_coproc(&mut self, coproc: &Rc<Coproc>) -> Exec {
        if !crate::parser::is_assignment_name(&coproc.name) {
            self.complain_parts(&[b"`", &coproc.name, b"': not a valid identifier"]);
            self.status = 1;
            return Ok(1);
        }
        let (Ok(input), Ok(output)) = (abi::pipe(true), abi::pipe(true)) else {
            self.complain(b"cannot make pipe for coproc");
            return Ok(1);
        };
        let forked = abi::fork(|| {
            let _ = abi::dup2(input.read, 0, false);
            let _ = abi::dup2(output.write, 1, false);
            for fd in [input.read, input.write, output.read, output.write] {
                let _ = abi::close(fd);
            }
            self.enter_child();
            let code = self.run_child_command(&coproc.body);
            self.run_exit_trap(code)
        });
        let _ = abi::close(input.read);
        let _ = abi::close(output.write);
        let pid = match forked {
            Ok(pid) => pid,
            Err(errno) => {
                self.complain_errno(b"fork", errno);
                return Ok(254);
            }
        };
        let high = |fd: abi::Fd, from: abi::Fd| match abi::dup(fd, from, true) {
            Ok(copy) => {
                let _ = abi::close(fd);
                copy
            }
            Err(_) => fd,
        };
        let (read, write) = (high(output.read, 63), high(input.write, 60));
        self.assign_index(&coproc.name, 0, read.to_string().into_bytes(), false)?;
        self.assign_index(&coproc.name, 1, write.to_string().into_bytes(), false)?;
        self.assign(&pid_name(&coproc.name), pid.to_string().as_bytes())?;
        let name = Rc::from(coproc.name.as_ref());
        self.coprocs.push(Running { pid, name, ends: [read, write], ended: false });
        self.last_background = Some(pid);
        let text = crate::unparse::command_text(&crate::ast::Command::Coproc(coproc.clone()));
        self.jobs.add(vec![pid], text);
        self.status = 0;
        Ok(0)
    }

    /// Notes that a descriptor was closed which may be an end of a coprocess.
    pub fn note_closed(&mut self, fd: abi::Fd) {
        let mut closed = Vec::new();
        for coproc in &mut self.coprocs {
            for (at, end) in coproc.ends.iter_mut().enumerate().filter(|(_, end)| **end == fd) {
                *end = -1;
                closed.push((coproc.name.clone(), at));
            }
        }
        for (name, at) in closed {
            // A script that made its array something else keeps it.
            let _ = self.assign_index(&name, at as i64, b"-1".to_vec(), false);
        }
    }

    /// Notes that a child ended which may be a coprocess.
    pub fn note_coproc(&mut self, pid: abi::Pid) {
        for coproc in self.coprocs.iter_mut().filter(|coproc| coproc.pid == pid) {
            coproc.ended = true;
        }
    }

    /// After a wait: the array of a coprocess that ended is gone, and its ends are closed.
    pub fn forget_coprocs(&mut self) {
        while let Some(at) = self.coprocs.iter().position(|coproc| coproc.ended) {
            let coproc = self.coprocs.remove(at);
            for fd in coproc.ends.into_iter().filter(|fd| *fd >= 0) {
                let _ = abi::close(fd);
            }
            self.vars.remove(&coproc.name);
            self.vars.remove(&pid_name(&coproc.name));
        }
    }
}

/// The variable that holds a coprocess's process id.
fn pid_name(name: &[u8]) -> Vec<u8> {
    [name, b"_PID"].concat()
}
