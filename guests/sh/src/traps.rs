//! Traps: commands run when a signal arrives, or when the shell exits, fails, steps or returns.

use crate::jobs::{SIGCHLD, SIGINT};
use crate::shell::{Exec, Flow, Shell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use wardian_abi as abi;

pub const EXIT: i32 = 0;
pub const ERR: i32 = -1;
pub const DEBUG: i32 = -2;
pub const RETURN: i32 = -3;

/// Signals that arrived and were taken from the kernel, but not acted on yet.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

/// Takes note of signals that arrived. Until that is done, no call waits any more.
pub fn collect() {
    ARRIVED.fetch_or(abi::sigpending(), Ordering::Relaxed);
}

/// The signals that arrived since this was last asked.
pub fn arrived() -> u64 {
    collect();
    ARRIVED.swap(0, Ordering::Relaxed)
}

/// What an interactive shell does not die or stop of. Flagged rather than ignored: programs it starts do not inherit it.
const ENDURED: [i32; 6] = [SIGINT, 3, 15, 20, 21, 22];

#[derive(Default, Clone)]
pub struct Traps {
    /// Commands by signal; an empty command ignores it.
    commands: BTreeMap<i32, Vec<u8>>,
    /// Whether any signal is to be looked for between commands.
    pub watching: bool,
    /// Whether there is a trap on failures, and one on steps.
    pub on_error: bool,
    pub on_step: bool,
    /// What a subshell inherited and only shows.
    shown: BTreeMap<i32, Vec<u8>>,
    /// Signals that were ignored when the shell started: no trap changes that.
    ignored_from_start: Vec<i32>,
    /// Signals without a trap that are caught all the same, so that the EXIT trap runs before they end the shell.
    fatal: Vec<i32>,
    /// Signals that have arrived and were seen, their traps not yet run.
    arrived: u64,
    /// Children that ended since the trap on that last ran.
    children: u32,
    /// Events whose traps are running and do not run inside themselves: the shell's own, and the end of a child.
    running: Vec<i32>,
    /// How many traps on signals are running, one inside another.
    nested: u32,
    /// Signals that the shell sent itself: their traps run at once, however deep.
    own: u64,
    /// The shell is interactive, and endures what would end others.
    enduring: bool,
}

/// Signals that end a shell, and that it can say goodbye on: HUP, INT, USR1, USR2, ALRM and TERM.
const FATAL: [i32; 6] = [1, 2, 10, 12, 14, 15];

/// How deep traps run inside each other on signals from outside. More than that wait: whoever sends signals faster than
/// their trap runs must not use up the stack.
const MAX_NESTED: u32 = 8;

/// A signal, or one of the shell's own events, by name or number.
pub fn signal_number(name: &[u8]) -> Option<i32> {
    if !name.is_empty() && name.iter().all(u8::is_ascii_digit) {
        let number: i32 = std::str::from_utf8(name).ok()?.parse().ok()?;
        return (number <= 64).then_some(number);
    }
    let upper = name.to_ascii_uppercase();
    let bare = upper.strip_prefix(b"SIG").unwrap_or(&upper);
    match bare {
        b"EXIT" => Some(EXIT),
        b"ERR" => Some(ERR),
        b"DEBUG" => Some(DEBUG),
        b"RETURN" => Some(RETURN),
        _ => abi::SIGNALS.iter().find(|(_, name)| name.as_bytes() == bare).map(|(number, _)| *number),
    }
}

/// How bash writes a signal's name.
pub fn signal_name(number: i32) -> String {
    match number {
        EXIT => "EXIT".into(),
        ERR => "ERR".into(),
        DEBUG => "DEBUG".into(),
        RETURN => "RETURN".into(),
        _ => match abi::SIGNALS.iter().find(|(signal, _)| *signal == number) {
            Some((_, name)) => format!("SIG{name}"),
            None => number.to_string(),
        },
    }
}

impl Traps {
    pub fn get(&self, signal: i32) -> Option<&Vec<u8>> {
        self.commands.get(&signal)
    }

    /// All commands, by signal.
    pub fn commands(&self) -> BTreeMap<i32, Vec<u8>> {
        self.commands.clone()
    }

    pub fn set(&mut self, signal: i32, command: Vec<u8>) {
        self.shown.clear();
        if self.ignored_from_start.contains(&signal) {
            return;
        }
        // The trap on the end of a child runs when the shell learns of it, not when the signal comes.
        if signal > 0 && signal != SIGCHLD {
            let disposition =
                if command.is_empty() { abi::Disposition::Ignore } else { abi::Disposition::Flag };
            let _ = abi::sigaction(signal, disposition);
        }
        self.commands.insert(signal, command);
        self.watch();
    }

    /// Signals that were ignored when the shell started stay so, and are listed.
    pub fn note_ignored(&mut self) {
        for signal in [1, 2, 3, 10, 12, 13, 15] {
            if abi::disposition(signal) == Ok(abi::Disposition::Ignore) {
                self.commands.insert(signal, Vec::new());
                self.ignored_from_start.push(signal);
            }
        }
    }

    pub fn reset(&mut self, signal: i32) {
        self.shown.clear();
        if self.ignored_from_start.contains(&signal) {
            return;
        }
        if self.commands.remove(&signal).is_some() && signal > 0 && signal != SIGCHLD {
            let endured = self.enduring && ENDURED.contains(&signal);
            let back = if endured { abi::Disposition::Flag } else { abi::Disposition::Default };
            let _ = abi::sigaction(signal, back);
        }
        self.watch();
    }

    fn watch(&mut self) {
        let says_goodbye = self.commands.get(&EXIT).is_some_and(|command| !command.is_empty());
        for signal in FATAL {
            let caught = self.fatal.contains(&signal);
            let endured = self.enduring && ENDURED.contains(&signal);
            let wanted = says_goodbye && !endured && !self.commands.contains_key(&signal);
            if wanted && !caught {
                let _ = abi::sigaction(signal, abi::Disposition::Flag);
            } else if caught && !endured && !says_goodbye && !self.commands.contains_key(&signal) {
                let _ = abi::sigaction(signal, abi::Disposition::Default);
            }
        }
        self.fatal = match says_goodbye {
            true => FATAL
                .into_iter()
                .filter(|signal| !self.commands.contains_key(signal))
                .filter(|signal| !(self.enduring && ENDURED.contains(signal)))
                .collect(),
            false => Vec::new(),
        };
        self.watching = self.enduring
            || !self.fatal.is_empty()
            || self.commands.iter().any(|(signal, command)| *signal > 0 && !command.is_empty());
        self.on_error = self.commands.get(&ERR).is_some_and(|command| !command.is_empty());
        self.on_step = self.commands.get(&DEBUG).is_some_and(|command| !command.is_empty());
    }

    /// Notes that the shell sends itself a signal.
    pub fn sends_itself(&mut self, signal: i32) {
        if (1..64).contains(&signal) {
            self.own |= 1 << signal;
        }
    }

    /// Counts a child that ended, if a trap wants to know.
    pub fn child_ended(&mut self) {
        let trapped = self.commands.get(&SIGCHLD).is_some_and(|command| !command.is_empty());
        if trapped && !self.running.contains(&SIGCHLD) {
            self.children += 1;
        }
    }

    /// Traps to list: in a subshell that set none, its parent's.
    pub fn listed(&self) -> impl Iterator<Item = (i32, &Vec<u8>)> {
        let map = if self.shown.is_empty() { &self.commands } else { &self.shown };
        // EXIT first, then signals, then the rest in bash's order: DEBUG, ERR, RETURN.
        let mut list: Vec<(i32, &Vec<u8>)> = map.iter().map(|(signal, command)| (*signal, command)).collect();
        list.sort_by_key(|(signal, _)| match *signal {
            DEBUG => 1000,
            ERR => 1001,
            RETURN => 1002,
            signal => signal,
        });
        list.into_iter()
    }

    /// A function does not inherit the traps on errors, steps and returns, unless asked to.
    pub fn hide_from_function(&mut self, keep_errors: bool, keep_debug: bool) -> Vec<(i32, Vec<u8>)> {
        if self.commands.is_empty() {
            return Vec::new();
        }
        let hide = |signal: i32| match signal {
            ERR => !keep_errors,
            DEBUG | RETURN => !keep_debug,
            _ => false,
        };
        let hidden: Vec<i32> = [ERR, DEBUG, RETURN].into_iter().filter(|signal| hide(*signal)).collect();
        let hidden: Vec<_> =
            hidden.into_iter().filter_map(|signal| Some((signal, self.commands.remove(&signal)?))).collect();
        if !hidden.is_empty() {
            self.watch();
        }
        hidden
    }

    /// Takes the trap on steps away for a while.
    pub fn hide_steps(&mut self) -> Vec<(i32, Vec<u8>)> {
        let Some(command) = self.commands.remove(&DEBUG) else { return Vec::new() };
        self.watch();
        vec![(DEBUG, command)]
    }

    /// After the function: what it did not set itself is as before.
    pub fn show_again(&mut self, hidden: Vec<(i32, Vec<u8>)>) {
        if hidden.is_empty() {
            return;
        }
        for (signal, command) in hidden {
            self.commands.entry(signal).or_insert(command);
        }
        self.watch();
    }

    /// An interactive shell lives on whatever is typed at it.
    pub fn endure(&mut self) {
        for signal in ENDURED {
            if !self.commands.contains_key(&signal) {
                let _ = abi::sigaction(signal, abi::Disposition::Flag);
            }
        }
        self.enduring = true;
        self.watch();
    }

    /// In a subshell: traps are gone, ignored signals stay ignored.
    pub fn enter_child(&mut self, keep_errors: bool, keep_debug: bool) {
        let shown = self.commands.clone();
        ARRIVED.store(0, Ordering::Relaxed);
        if std::mem::take(&mut self.enduring) {
            for signal in ENDURED {
                if !self.commands.contains_key(&signal) {
                    let _ = abi::sigaction(signal, abi::Disposition::Default);
                }
            }
        }
        for (signal, command) in &self.commands {
            if *signal > 0 && *signal != SIGCHLD && !command.is_empty() {
                let _ = abi::sigaction(*signal, abi::Disposition::Default);
            }
        }
        self.commands.retain(|signal, command| {
            command.is_empty() && *signal > 0
                || (keep_errors && *signal == ERR)
                || (keep_debug && matches!(*signal, DEBUG | RETURN))
        });
        self.shown = shown;
        self.arrived = 0;
        self.own = 0;
        self.children = 0;
        // What runs in the parent is no depth of the child's.
        self.nested = 0;
        self.watch();
    }
}

impl Shell {
    /// Runs the traps of signals that have arrived.
    pub fn run_pending_traps(&mut self) -> Exec<()> {
        self.take_pending_traps().map(drop)
    }

    /// Runs the traps of signals that have arrived; answers one of them.
    pub fn take_pending_traps(&mut self) -> Exec<Option<i32>> {
        let pending = std::mem::take(&mut self.traps.arrived) | arrived();
        let own = std::mem::take(&mut self.traps.own);
        let mut taken = None;
        if self.interactive && pending >> SIGINT & 1 == 1 && self.traps.get(SIGINT).is_none() {
            self.interrupted = true;
        }
        if self.interrupted {
            return Err(Flow::Discard(128 + SIGINT));
        }
        if pending >> SIGCHLD & 1 == 1 {
            self.reap_ended();
        }
        for _ in 0..std::mem::take(&mut self.traps.children) {
            self.run_trap(SIGCHLD)?;
        }
        if pending == 0 {
            return Ok(None);
        }
        for signal in (1..64).filter(|signal| *signal != SIGCHLD && pending >> signal & 1 == 1) {
            if self.traps.fatal.contains(&signal) {
                self.die_of(signal);
            }
            if self.traps.nested >= MAX_NESTED && own >> signal & 1 == 0 {
                self.traps.arrived |= 1 << signal;
                continue;
            }
            if self.traps.get(signal).is_some() {
                self.traps.nested += 1;
                let result = self.run_trap(signal);
                self.traps.nested -= 1;
                result?;
                taken = Some(signal);
            }
        }
        Ok(taken)
    }

    /// Looks at the signals that have arrived while a child is waited for: one that ends the shell does so at once,
    /// traps are left for when the child is done.
    pub fn note_signals(&mut self) {
        self.traps.arrived |= arrived();
        let arrived = self.traps.arrived;
        if let Some(signal) = self.traps.fatal.iter().copied().find(|signal| arrived >> signal & 1 == 1) {
            self.die_of(signal);
        }
    }

    /// Ends the shell as a signal would have, after its EXIT trap.
    fn die_of(&mut self, signal: i32) -> ! {
        let code = self.run_exit_trap(128 + signal);
        let _ = abi::sigaction(signal, abi::Disposition::Default);
        let _ = abi::kill(abi::Who::from_number(abi::getpid()), signal);
        abi::exit(code)
    }

    /// Runs a trap; what it does to `$?` does not show. Answers the status of its last command.
    pub fn run_trap(&mut self, signal: i32) -> Exec {
        let Some(command) = self.traps.get(signal).filter(|command| !command.is_empty()).cloned() else {
            return Ok(0);
        };
        if self.traps.running.contains(&signal) || signal == RETURN && self.traps.running.contains(&DEBUG) {
            return Ok(0);
        }
        let (status, line) = (self.status, self.line);
        let pipe_status = self.pipe_status.clone();
        if signal < 0 || signal == SIGCHLD {
            self.traps.running.push(signal);
        }
        self.trace_depth += 1;
        let result = self.run_trap_text(command, (signal != DEBUG).then_some(status), line);
        self.trace_depth -= 1;
        self.traps.running.retain(|running| *running != signal);
        self.status = status;
        self.line = line;
        self.pipe_status = pipe_status;
        result
    }

    fn run_trap_text(&mut self, command: Vec<u8>, before: Option<i32>, line: u32) -> Exec {
        // A trap may set itself off.
        if self.depth + 20 > crate::exec::MAX_DEPTH {
            self.complain(b"maximum trap nesting level exceeded");
            return Err(Flow::Discard(1));
        }
        let saved = std::mem::replace(&mut self.status_before_trap, before);
        let reading = std::mem::take(&mut self.reading);
        (self.in_trap, self.depth) = (self.in_trap + 1, self.depth + 20);
        let result = self.run_text(command, line);
        (self.in_trap, self.depth) = (self.in_trap.saturating_sub(1), self.depth.saturating_sub(20));
        self.reading = reading;
        self.status_before_trap = saved;
        result
    }

    /// The EXIT trap, once. Answers the exit code: `exit` inside the trap changes it.
    pub fn run_exit_trap(&mut self, code: i32) -> i32 {
        let Some(command) = self.traps.get(EXIT).cloned() else { return code };
        self.traps.reset(EXIT);
        if command.is_empty() {
            return code;
        }
        self.status = code;
        match self.run_trap_text(command, Some(code), 1) {
            Err(Flow::Exit(code)) => code,
            Err(Flow::Return(code)) => code,
            _ => code,
        }
    }

    /// What is about to run, for `BASH_COMMAND`, and the trap on steps. Says whether to run it: with `extdebug` the
    /// trap decides.
    #[cold]
    pub fn step(&mut self, line: u32, text: impl FnOnce() -> Vec<u8>) -> Exec<bool> {
        self.line = line;
        if self.in_trap == 0 {
            let text = text();
            self.command_text = Some(std::rc::Rc::new(move || text.clone()));
        }
        if !self.traps.on_step {
            return Ok(true);
        }
        let answer = self.run_trap(DEBUG)?;
        if !self.shopt.get("extdebug") {
            return Ok(true);
        }
        if answer == 2 && !self.frames.is_empty() {
            return Err(Flow::Return(self.status));
        }
        Ok(answer == 0)
    }

    /// Whether steps are of interest to anyone.
    pub fn watches_steps(&self) -> bool {
        self.keeps_command || self.traps.on_step
    }
}
