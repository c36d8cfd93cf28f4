//! `timeout`: runs a command and kills it after a time limit.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, program, quote};
use wardian_abi as abi;
use wardian_abi::{Disposition, Errno, Pid, Spawn, Status, WaitFlags, Who};

const TOOL: Tool = Tool {
    name: "timeout",
    short: "+k:s:v",
    long: &[
        ("kill-after=", 'k'),
        ("signal=", 's'),
        ("verbose", 'v'),
        ("foreground", 'f'),
        ("preserve-status", 'p'),
    ],
    help: "\
Usage: timeout [OPTION] DURATION COMMAND [ARG]...
Start COMMAND, and kill it if still running after DURATION.

      --preserve-status
                 exit with the same status as COMMAND, even when the
                   command times out
      --foreground
                 when not running timeout directly from a shell prompt,
                   allow COMMAND to read from the TTY and get TTY signals;
                   in this mode, children of COMMAND will not be timed out
  -k, --kill-after=DURATION
                 also send a KILL signal if COMMAND is still running
                   this long after the initial signal was sent
  -s, --signal=SIGNAL
                 specify the signal to be sent on timeout;
                   SIGNAL may be a name like 'HUP' or a number;
                   see 'kill -l' for a list of signals
  -v, --verbose  diagnose to stderr any signal sent upon timeout
      --help        display this help and exit
      --version     output version information and exit

DURATION is a floating point number with an optional suffix:
's' for seconds (the default), 'm' for minutes, 'h' for hours or 'd' for days.
A duration of 0 disables the associated timeout.

Upon timeout, send the TERM signal to COMMAND, if no other SIGNAL specified.
The exit status is 124 if COMMAND times out, 125 if timeout itself fails, 126
if COMMAND cannot be invoked, 127 if it cannot be found, 137 if the KILL
signal was sent, and the status of COMMAND otherwise.
",
    misuse: CANCELED,
};

const TIMED_OUT: i32 = 124;
const CANCELED: i32 = 125;
const HUP: i32 = 1;
const INT: i32 = 2;
const QUIT: i32 = 3;
const KILL: i32 = 9;
const ALRM: i32 = 14;
const TERM: i32 = 15;
const CONT: i32 = 18;

struct Watch {
    signal: i32,
    kill_after: i64,
    foreground: bool,
    preserve_status: bool,
    verbose: bool,
    command: Vec<u8>,
    timed_out: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut watch = Watch {
        signal: TERM,
        kill_after: 0,
        foreground: false,
        preserve_status: false,
        verbose: false,
        command: Vec::new(),
        timed_out: false,
    };
    for (letter, text) in parsed.options {
        let text = text.unwrap_or_default();
        match letter {
            'k' => watch.kill_after = interval(&text)?,
            's' => {
                watch.signal = program::signal_number(&text)
                    .ok_or_else(|| TOOL.wrong(format_args!("{}: invalid signal", quote::word(&text))))?;
            }
            'v' => watch.verbose = true,
            'f' => watch.foreground = true,
            _ => watch.preserve_status = true,
        }
    }
    let [duration, command @ ..] = &parsed.operands[..] else { return Err(missing()) };
    if command.is_empty() {
        return Err(missing());
    }
    watch.command = command[0].clone();
    watch.over(interval(duration)?, command)
}

/// GNU says no more than this.
fn missing() -> i32 {
    let _ = abi::write_all(2, b"Try 'timeout --help' for more information.\n");
    CANCELED
}

fn interval(text: &[u8]) -> Result<i64, i32> {
    program::duration(text)
        .ok_or_else(|| TOOL.wrong(format_args!("invalid time interval {}", quote::word(text))))
}

impl Watch {
    /// Runs the command under the clock.
    fn over(&mut self, nanos: i64, command: &[Vec<u8>]) -> Result<i32, i32> {
        if !self.foreground {
            // A group of their own, so that what the command starts ends with it. Who leads one has that already.
            let _ = abi::setpgid(0, 0);
        }
        for signal in [HUP, INT, QUIT, ALRM, TERM, self.signal] {
            if signal != KILL && abi::disposition(signal) != Ok(Disposition::Ignore) {
                let _ = abi::sigaction(signal, Disposition::Flag);
            }
        }
        let child = program::spawn(command, &abi::environ(), Spawn::default())
            .map_err(|error| program::complain_of("timeout", &command[0], error))?;
        self.set_alarm(nanos);
        let status = self.wait_for(child);
        Ok(self.code_of(status))
    }

    fn set_alarm(&self, nanos: i64) {
        if nanos > 0 && abi::alarm(nanos).is_err() {
            complain("timeout", "warning: timer_settime: Invalid argument");
        }
    }

    fn wait_for(&mut self, child: Pid) -> Status {
        loop {
            self.pass_on(child, abi::sigpending());
            match abi::wait(Who::Child(child), WaitFlags::default()) {
                Ok(Some((_, status))) => return status,
                Ok(None) | Err(Errno::INTR) => {}
                Err(_) => return Status(CANCELED << 8),
            }
        }
    }

    /// The signals that arrived go to the command; the alarm becomes the signal asked for.
    fn pass_on(&mut self, child: Pid, pending: u64) {
        for signal in (1..64).filter(|signal| pending & (1 << signal) != 0) {
            let sent = if signal == ALRM {
                self.timed_out = true;
                self.signal
            } else {
                signal
            };
            if self.verbose && signal == ALRM {
                let name =
                    abi::SIGNALS.iter().find(|(number, _)| *number == sent).map_or("EXIT", |(_, name)| name);
                complain(
                    "timeout",
                    format_args!("sending signal {name} to command {}", quote::word(&self.command)),
                );
            }
            if self.kill_after > 0 {
                let after = std::mem::take(&mut self.kill_after);
                self.set_alarm(after);
                self.signal = KILL;
            }
            self.send(child, sent);
        }
    }

    fn send(&self, child: Pid, signal: i32) {
        // A command that has just ended needs no signal.
        let _ = abi::kill(Who::Child(child), signal);
        if !self.foreground {
            let _ = abi::sigaction(signal, Disposition::Ignore);
            let _ = abi::kill(Who::OwnGroup, signal);
        }
        if signal != KILL && signal != CONT {
            let _ = abi::kill(Who::Child(child), CONT);
        }
    }

    fn code_of(&self, status: Status) -> i32 {
        let killed = status.signal() == Some(KILL);
        if self.timed_out && !self.preserve_status && !killed {
            return TIMED_OUT;
        }
        if let (Some(signal), false) = (status.signal(), self.timed_out) {
            // Ends as the command did, so that its caller sees the same.
            let _ = abi::sigaction(signal, Disposition::Default);
            let _ = abi::kill(Who::Child(abi::getpid()), signal);
        }
        status.shell_code()
    }
}
