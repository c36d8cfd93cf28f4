//! Running commands.

mod absent;
mod compound;
mod condition;
mod coproc;
mod function;
mod pipeline;
mod program;
mod simple;

pub use coproc::Running;
pub use program::{lookup, lookup_all, lookup_any};

use crate::ast::{AndOr, Command, Compound, CompoundKind, Connector, List};
use crate::shell::{Exec, Flow, Shell};
use wardian_abi as abi;

/// Nesting of commands beyond this is an error rather than a stack that runs out.
pub const MAX_DEPTH: u32 = 1500;

impl Shell {
    pub fn run_list(&mut self, list: &List) -> Exec {
        let mut status = 0;
        for item in &list.items {
            status = self.run_and_or(item)?;
            // `set -n` holds for the rest of its line too.
            if self.options.noexec && !self.interactive {
                break;
            }
        }
        Ok(status)
    }

    fn run_and_or(&mut self, item: &AndOr) -> Exec {
        if item.background {
            return self.run_background(item);
        }
        if item.rest.is_empty() {
            return self.run_pipeline(&item.first, true);
        }
        let last = item.rest.len() - 1;
        let mut status = self.unchecked(|shell| shell.run_pipeline(&item.first, false))?;
        for (at, (connector, pipeline)) in item.rest.iter().enumerate() {
            if (*connector == Connector::And) != (status == 0) {
                continue;
            }
            status = if at == last {
                self.run_pipeline(pipeline, true)?
            } else {
                self.unchecked(|shell| shell.run_pipeline(pipeline, false))?
            };
        }
        Ok(status)
    }

    /// Runs something whose failure `set -e` does not act on.
    fn unchecked<T>(&mut self, run: impl FnOnce(&mut Shell) -> Exec<T>) -> Exec<T> {
        self.unchecked += 1;
        let result = run(self);
        self.unchecked -= 1;
        result
    }

    /// A condition: its failure is an answer, not an error.
    fn run_condition(&mut self, list: &List) -> Exec {
        self.unchecked(|shell| shell.run_list(list))
    }

    /// Notes a command's status, and acts on a failure as `set -e` and the ERR trap ask.
    /// The trap must have been there before the command.
    fn finish_command(&mut self, status: i32, trapped: bool) -> Exec {
        self.status = status;
        if status != 0 && self.unchecked == 0 {
            self.command_failed(status, trapped)?;
        }
        Ok(status)
    }

    #[cold]
    fn command_failed(&mut self, status: i32, trapped: bool) -> Exec<()> {
        if trapped {
            self.run_trap(crate::traps::ERR)?;
        }
        if self.options.errexit {
            self.leaves_by_error = true;
            return Err(Flow::Exit(status));
        }
        Ok(())
    }

    fn run_command(&mut self, command: &Command) -> Exec {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.depth -= 1;
            self.complain(b"maximum nesting level exceeded");
            return Err(Flow::Discard(1));
        }
        if self.jobs.has_live() && self.jobs.is_time_to_look() {
            self.reap_ended();
        }
        let result = match command {
            Command::Simple(simple) => self.run_simple(simple),
            Command::Compound(compound) => self.run_compound(compound),
            Command::Function(function) => self.define_function(function),
            Command::Coproc(coproc) => self.run_coproc(coproc),
        };
        self.depth -= 1;
        if self.traps.watching {
            self.run_pending_traps()?;
        }
        result
    }

    /// Whether `set -e` looks at this kind of command itself, rather than at what is in it.
    fn is_checked(command: &Command) -> bool {
        match command {
            Command::Simple(_) => true,
            Command::Compound(compound) => Self::is_checked_kind(&compound.kind),
            Command::Function(_) | Command::Coproc(_) => false,
        }
    }

    fn is_checked_kind(kind: &CompoundKind) -> bool {
        matches!(kind, CompoundKind::Subshell(_) | CompoundKind::Arith(_) | CompoundKind::Condition(_))
    }

    // --- in a new process ---

    /// Makes a forked shell a subshell.
    pub fn enter_child(&mut self) {
        self.subshell_level += 1;
        self.interrupted = false;
        self.traps.enter_child(self.options.errtrace, self.options.functrace);
        self.jobs.enter_child();
        self.process_fds.clear();
        self.coprocs.clear();
        self.pending_level = false;
        self.random.set(self.random.get() ^ (abi::getpid() as u32).wrapping_mul(2_654_435_761) >> 8);
    }

    /// Runs a list as the last thing this process does; answers its exit code.
    pub fn run_child_list(&mut self, list: &List) -> i32 {
        if let Some(simple) = self.only_program(list) {
            let status = self.exec_simple(simple);
            return self.run_exit_trap(self.exit_code(status));
        }
        let result = self.run_list(list);
        let code = self.exit_code(result);
        self.run_exit_trap(code)
    }

    /// Runs a command as the last thing this process does.
    pub fn run_child_command(&mut self, command: &Command) -> i32 {
        match command {
            Command::Simple(simple) if self.is_program(simple) => {
                let status = self.exec_simple(simple);
                return self.exit_code(status);
            }
            Command::Simple(_) => {}
            // The process made for it is the subshell: a signal sent to it must not find another one behind it.
            Command::Compound(compound) if matches!(compound.kind, CompoundKind::Subshell(_)) => {
                return self.become_subshell(compound);
            }
            Command::Compound(compound) => return self.run_child_compound(compound),
            _ => self.loops = 0,
        }
        let result = self.run_command(command);
        let code = self.exit_code(result);
        self.run_exit_trap(code)
    }

    /// The same for a compound, whose redirections are the process's own.
    fn run_child_compound(&mut self, compound: &Compound) -> i32 {
        // Loops outside are out of reach from inside a compound.
        self.loops = 0;
        let code = match self.redirect_for_good(&compound.redirects) {
            Ok(Ok(())) => {
                let result = self.run_kind(compound);
                self.exit_code(result)
            }
            Ok(Err(_)) => 1,
            Err(flow) => self.exit_code(Err(flow)),
        };
        // As bash has it, only a group's process says goodbye.
        if matches!(compound.kind, CompoundKind::Group(_)) { self.run_exit_trap(code) } else { code }
    }

    /// The exit code of a process that ended this way.
    pub fn exit_code(&self, result: Exec) -> i32 {
        match result {
            Ok(status) | Err(Flow::Exit(status) | Flow::Return(status) | Flow::Discard(status)) => {
                status & 0xff
            }
            Err(Flow::Break(_) | Flow::Continue(_)) => self.status & 0xff,
        }
    }
}
