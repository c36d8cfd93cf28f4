//! Traps: commands run when a signal arrives, or when the shell exits, fails, steps or returns.

use crate::shell::{Exec, Flow, Shell};
use std::collections::BTreeMap;
use wardian_abi as abi;

pub const EXIT: i32 = 0;
pub const ERR: i32 = -1;
pub const DEBUG: i32 = -2;
pub const RETURN: i32 = -3;

#[derive(Default, Clone)]
pub struct Traps {
    /// Commands by signal; an empty command ignores it.
    commands: BTreeMap<i32, Vec<u8>>,
    /// Whether any signal is to be looked for between commands.
    pub watching: bool,
    /// What a subshell inherited and only shows.
    shown: BTreeMap<i32, Vec<u8>>,
}

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

    pub fn set(&mut self, signal: i32, command: Vec<u8>) {
        self.shown.clear();
        if signal > 0 {
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
            }
        }
    }

    pub fn reset(&mut self, signal: i32) {
        self.shown.clear();
        if self.commands.remove(&signal).is_some() && signal > 0 {
            let _ = abi::sigaction(signal, abi::Disposition::Default);
        }
        self.watch();
    }

    fn watch(&mut self) {
        self.watching = self.commands.iter().any(|(signal, command)| *signal > 0 && !command.is_empty());
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
        hidden.into_iter().filter_map(|signal| Some((signal, self.commands.remove(&signal)?))).collect()
    }

    /// After the function: what it did not set itself is as before.
    pub fn show_again(&mut self, hidden: Vec<(i32, Vec<u8>)>) {
        for (signal, command) in hidden {
            self.commands.entry(signal).or_insert(command);
        }
    }

    /// In a subshell: traps are gone, ignored signals stay ignored.
    pub fn enter_child(&mut self, keep_errors: bool, keep_debug: bool) {
        let shown = self.commands.clone();
        for (signal, command) in &self.commands {
            if *signal > 0 && !command.is_empty() {
                let _ = abi::sigaction(*signal, abi::Disposition::Default);
            }
        }
        self.commands.retain(|signal, command| {
            command.is_empty() && *signal > 0
                || (keep_errors && *signal == ERR)
                || (keep_debug && matches!(*signal, DEBUG | RETURN))
        });
        self.shown = shown;
        self.watch();
    }
}

impl Shell {
    /// Runs the traps of signals that have arrived.
    pub fn run_pending_traps(&mut self) -> Exec<()> {
        let pending = abi::sigpending();
        if pending == 0 {
            return Ok(());
        }
        for signal in 1..64 {
            if pending >> signal & 1 == 1 {
                self.run_trap(signal)?;
            }
        }
        Ok(())
    }

    /// Runs a trap; what it does to `$?` does not show.
    pub fn run_trap(&mut self, signal: i32) -> Exec<()> {
        let Some(command) = self.traps.get(signal).filter(|command| !command.is_empty()).cloned() else {
            return Ok(());
        };
        let (status, line) = (self.status, self.line);
        let pipe_status = self.pipe_status.clone();
        self.in_trap += 1;
        let first_line = if signal == EXIT { 1 } else { line };
        let result = self.run_text(command, first_line);
        self.in_trap -= 1;
        self.status = status;
        self.line = line;
        self.pipe_status = pipe_status;
        result.map(drop)
    }

    /// The EXIT trap, once. Answers the exit code: `exit` inside the trap changes it.
    pub fn run_exit_trap(&mut self, code: i32) -> i32 {
        let Some(command) = self.traps.get(EXIT).cloned() else { return code };
        self.traps.reset(EXIT);
        if command.is_empty() {
            return code;
        }
        self.status = code;
        self.in_trap += 1;
        let result = self.run_text(command, 1);
        self.in_trap -= 1;
        match result {
            Err(Flow::Exit(code)) => code,
            Err(Flow::Return(code)) => code,
            _ => code,
        }
    }
}
