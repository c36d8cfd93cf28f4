//! Signals: numbers, dispositions, and what each does to a process.
//!
//! WebAssembly code cannot be interrupted to run a handler, so a program that wants to handle a signal asks for it to be
//! *flagged*: the kernel notes it, interrupts whatever the process waits for with EINTR, and the program takes the note
//! with `sigpending` when it is ready.

use wardian_vfs::{Errno, Result};

/// A signal number, as on Linux.
pub type Signal = u8;

pub(crate) const SIGHUP: Signal = 1;
pub(crate) const SIGINT: Signal = 2;
pub(crate) const SIGQUIT: Signal = 3;
pub(crate) const SIGABRT: Signal = 6;
pub(crate) const SIGFPE: Signal = 8;
/// Kills a process, whatever it does.
pub const SIGKILL: Signal = 9;
pub(crate) const SIGSEGV: Signal = 11;
pub(crate) const SIGPIPE: Signal = 13;
pub(crate) const SIGALRM: Signal = 14;
pub(crate) const SIGCHLD: Signal = 17;
pub(crate) const SIGCONT: Signal = 18;
pub(crate) const SIGSTOP: Signal = 19;
pub(crate) const SIGTSTP: Signal = 20;
pub(crate) const SIGTTIN: Signal = 21;
pub(crate) const SIGTTOU: Signal = 22;
pub(crate) const SIGURG: Signal = 23;
pub(crate) const SIGXFSZ: Signal = 25;
pub(crate) const SIGWINCH: Signal = 28;
/// One more than the highest signal number.
pub(crate) const SIGNALS: usize = 32;

/// A process's disposition of a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Disposition {
    Default,
    Ignore,
    Flag,
}

impl Disposition {
    pub(crate) fn from_abi(value: i32) -> Result<Disposition> {
        match value {
            0 => Ok(Disposition::Default),
            1 => Ok(Disposition::Ignore),
            2 => Ok(Disposition::Flag),
            _ => Err(Errno::EINVAL),
        }
    }

    pub(crate) fn to_abi(self) -> u32 {
        match self {
            Disposition::Default => 0,
            Disposition::Ignore => 1,
            Disposition::Flag => 2,
        }
    }
}

/// The effect of delivering a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Nothing,
    Flagged,
    Terminate,
    Stop,
    Continue,
}

/// A process's dispositions and the flagged signals it has not taken yet.
#[derive(Clone)]
pub(crate) struct Signals {
    dispositions: [Disposition; SIGNALS],
    pending: u64,
    /// Those of them that an error of the process's own call has told it of: they interrupt nothing.
    told: u64,
    stopped: bool,
    /// Signals that arrived while it was stopped and will kill it when it continues.
    held: u64,
}

impl Default for Signals {
    fn default() -> Signals {
        let dispositions = [Disposition::Default; SIGNALS];
        Signals { dispositions, pending: 0, told: 0, stopped: false, held: 0 }
    }
}

impl Signals {
    pub(crate) fn disposition(&self, signal: Signal) -> Disposition {
        self.dispositions[usize::from(signal)]
    }

    /// Sets a disposition; those of KILL and STOP cannot be changed.
    pub(crate) fn set(&mut self, signal: Signal, to: Disposition) -> Result<()> {
        if signal == SIGKILL || signal == SIGSTOP {
            return Err(Errno::EINVAL);
        }
        self.dispositions[usize::from(signal)] = to;
        if to != Disposition::Flag {
            self.pending &= !(1 << signal);
        }
        Ok(())
    }

    /// Notes the signal if it is flagged, and returns what to do now: a stopped process gets most signals only when it
    /// continues.
    pub(crate) fn receive(&mut self, signal: Signal) -> Effect {
        if signal == SIGCONT {
            self.stopped = false;
        }
        match self.effect(signal) {
            Effect::Terminate if self.stopped && signal != SIGKILL => {
                self.held |= 1 << signal;
                Effect::Nothing
            }
            Effect::Stop if self.stopped => Effect::Nothing,
            effect => {
                self.stopped |= effect == Effect::Stop;
                effect
            }
        }
    }

    /// The same for a signal that comes with an error of a call, such as SIGPIPE with EPIPE. A handler would run before
    /// that call returns, so what the process waits for later is not cut short.
    pub(crate) fn receive_with_error(&mut self, signal: Signal) -> Effect {
        let effect = self.receive(signal);
        if effect == Effect::Flagged {
            self.told |= 1 << signal;
        }
        effect
    }

    fn effect(&mut self, signal: Signal) -> Effect {
        match (signal, self.disposition(signal)) {
            (SIGKILL, _) => Effect::Terminate,
            (SIGSTOP, _) => Effect::Stop,
            (SIGCONT, Disposition::Default | Disposition::Ignore) => Effect::Continue,
            (_, Disposition::Ignore) => Effect::Nothing,
            (_, Disposition::Flag) => {
                self.pending |= 1 << signal;
                self.told &= !(1 << signal);
                Effect::Flagged
            }
            (SIGCHLD | SIGURG | SIGWINCH, Disposition::Default) => Effect::Nothing,
            (SIGTSTP | SIGTTIN | SIGTTOU, Disposition::Default) => Effect::Stop,
            (_, Disposition::Default) => Effect::Terminate,
        }
    }

    /// The first signal that waited for the process to continue.
    pub(crate) fn take_held(&mut self) -> Option<Signal> {
        let held = std::mem::take(&mut self.held);
        (held != 0).then(|| held.trailing_zeros() as Signal)
    }

    /// Returns whether a flagged signal has to interrupt what the process waits for.
    pub(crate) fn interrupts(&self) -> bool {
        self.pending & !self.told != 0
    }

    /// Returns whether there are flagged signals to take.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending != 0
    }

    pub(crate) fn take_pending(&mut self) -> u64 {
        std::mem::take(&mut self.pending)
    }

    /// Returns the dispositions of a program started by this one: ignored signals stay ignored, the rest is default.
    pub(crate) fn for_new_program(&self) -> Signals {
        let mut signals = Signals::default();
        for (new, old) in signals.dispositions.iter_mut().zip(&self.dispositions) {
            if *old == Disposition::Ignore {
                *new = Disposition::Ignore;
            }
        }
        signals
    }

    /// Returns those of a fork: the same, without the parent's pending signals.
    pub(crate) fn for_fork(&self) -> Signals {
        Signals { pending: 0, told: 0, ..self.clone() }
    }
}

impl Signals {
    /// The dispositions by signal number, to be kept elsewhere.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.dispositions.iter().map(|disposition| disposition.to_abi() as u8).collect()
    }

    /// The same back.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Signals> {
        let mut signals = Signals::default();
        if bytes.len() != signals.dispositions.len() {
            return Err(Errno::EINVAL);
        }
        for (disposition, byte) in signals.dispositions.iter_mut().zip(bytes) {
            *disposition = Disposition::from_abi(i32::from(*byte))?;
        }
        Ok(signals)
    }
}

/// Checks a signal number that came from a guest.
pub(crate) fn checked(signal: i32) -> Result<Signal> {
    match signal {
        1..=31 => Ok(signal as Signal),
        _ => Err(Errno::EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_came_with_an_error_interrupts_nothing_later() {
        let mut signals = Signals::default();
        signals.set(SIGPIPE, Disposition::Flag).unwrap();
        assert_eq!(signals.receive_with_error(SIGPIPE), Effect::Flagged);
        assert!(!signals.interrupts());
        // One that somebody sends does.
        assert_eq!(signals.receive(SIGPIPE), Effect::Flagged);
        assert!(signals.interrupts());
        assert_eq!(signals.take_pending(), 1 << SIGPIPE);
        assert!(!signals.interrupts());
        // And one that came with an error is still there to be taken.
        signals.receive_with_error(SIGPIPE);
        assert_eq!(signals.take_pending(), 1 << SIGPIPE);
    }
}
