//! Signals: what each does by itself, ignored, and flagged.

use wardian_abi::{self as abi, Disposition, Errno, WaitFlags, Who};

use crate::kit::*;

/// Those that end a process by themselves and can be handled.
const ENDING: [i32; 8] = [HUP, INT, QUIT, USR1, USR2, PIPE, ALRM, TERM];
/// Those that do nothing by themselves.
const HARMLESS: [i32; 4] = [CHLD, CONT, URG, WINCH];

/// A child that has done something and waits for the gate; it exits with 0.
fn prepared(prepare: impl FnOnce(), after: impl FnOnce()) -> (abi::Pid, Gate) {
    let (ready, go) = (Gate::new(), Gate::new());
    let pid = child(|| {
        prepare();
        ready.open();
        go.pass();
        after();
    });
    ready.pass();
    (pid, go)
}

tests! {
    fn by_default_most_signals_end_a_process() {
        for signal in ENDING.into_iter().chain([KILL]) {
            let (pid, _gate) = prepared(|| (), || ());
            kill(pid, signal);
            assert_eq!(ended(pid).signal(), Some(signal));
        }
    }

    fn by_default_some_signals_do_nothing() {
        for signal in HARMLESS {
            let (pid, gate) = prepared(|| (), || ());
            kill(pid, signal);
            gate.open();
            succeeded(pid);
        }
    }

    fn an_ignored_signal_does_nothing() {
        for signal in ENDING.into_iter().chain(HARMLESS).chain([TSTP, TTIN, TTOU]) {
            let (pid, gate) = prepared(|| ignore(signal), || assert_eq!(taken(), []));
            kill(pid, signal);
            gate.open();
            succeeded(pid);
        }
    }

    fn a_flagged_signal_is_kept_until_it_is_taken() {
        for signal in ENDING.into_iter().chain(HARMLESS).chain([TSTP, TTIN, TTOU]) {
            let (pid, gate) = prepared(|| flag(signal), || {
                assert_eq!(taken(), [signal]);
                assert_eq!(taken(), [], "once");
            });
            kill(pid, signal);
            kill(pid, signal);
            gate.open();
            succeeded(pid);
        }
    }

    fn several_flagged_signals_come_together() {
        let (pid, gate) = prepared(|| [HUP, USR1, TERM].into_iter().for_each(flag), || {
            assert_eq!(taken(), [HUP, USR1, TERM]);
        });
        [TERM, HUP, USR1].into_iter().for_each(|signal| kill(pid, signal));
        gate.open();
        succeeded(pid);
    }

    fn kill_and_stop_cannot_be_handled() {
        for signal in [KILL, STOP] {
            for disposition in [Disposition::Default, Disposition::Ignore, Disposition::Flag] {
                assert_eq!(abi::sigaction(signal, disposition), Err(Errno::INVAL), "{signal}");
            }
            assert_eq!(abi::disposition(signal), Ok(Disposition::Default));
        }
    }

    fn numbers_that_are_no_signals_are_refused() {
        for signal in [0, -1, 65, 1000, i32::MAX, i32::MIN] {
            assert_eq!(abi::disposition(signal), Err(Errno::INVAL), "{signal}");
            assert_eq!(abi::sigaction(signal, Disposition::Ignore), Err(Errno::INVAL), "{signal}");
        }
        for signal in [-1, 65, 1000, i32::MAX, i32::MIN] {
            assert_eq!(abi::kill(Who::Child(abi::getpid()), signal), Err(Errno::INVAL), "{signal}");
            assert_eq!(abi::raise(signal), Err(Errno::INVAL), "{signal}");
        }
    }

    fn dispositions_are_answered() {
        assert_eq!(abi::disposition(USR1), Ok(Disposition::Default));
        assert_eq!(abi::sigaction(USR1, Disposition::Ignore), Ok(Disposition::Default));
        assert_eq!(abi::sigaction(USR1, Disposition::Flag), Ok(Disposition::Ignore));
        assert_eq!(abi::disposition(USR1), Ok(Disposition::Flag));
        assert_eq!(abi::sigaction(USR1, Disposition::Default), Ok(Disposition::Flag));
    }

    fn a_signal_to_nobody_is_an_error() {
        let pid = child(|| ());
        succeeded(pid);
        for signal in [0, TERM] {
            assert_eq!(abi::kill(Who::Child(pid), signal), Err(Errno::SRCH));
            assert_eq!(abi::kill(Who::Group(pid), signal), Err(Errno::SRCH));
        }
        assert_eq!(abi::kill(Who::Child(abi::getpid()), 0), Ok(()));
    }

    fn a_signal_to_oneself_acts_at_once() {
        for signal in ENDING {
            let pid = child(|| {
                let _ = abi::kill(Who::Child(abi::getpid()), signal);
                abi::exit(1);
            });
            assert_eq!(ended(pid).signal(), Some(signal));
            let pid = child(|| {
                let _ = abi::raise(signal);
                abi::exit(1);
            });
            assert_eq!(ended(pid).signal(), Some(signal), "raise");
        }
        flag(USR1);
        kill(abi::getpid(), USR1);
        assert_eq!(taken(), [USR1]);
        abi::raise(USR1).expect("raise");
        assert_eq!(taken(), [USR1]);
        ignore(USR2);
        abi::raise(USR2).expect("raise");
    }

    fn a_fork_inherits_dispositions_but_no_signals() {
        flag(USR1);
        ignore(USR2);
        kill(abi::getpid(), USR1);
        #[cfg(target_os = "wasi")]
        succeeded(child(|| assert_eq!(taken(), [])));
        succeeded(child(|| {
            assert_eq!(abi::disposition(USR1), Ok(Disposition::Flag));
            assert_eq!(abi::disposition(USR2), Ok(Disposition::Ignore));
            abi::sigaction(USR2, Disposition::Default).expect("sigaction");
        }));
        assert_eq!(abi::disposition(USR2), Ok(Disposition::Ignore), "a child changes its own");
        assert_eq!(taken(), [USR1]);
    }

    fn a_child_that_ends_is_announced() {
        flag(CHLD);
        let pid = child(|| ());
        eventually(|| abi::sigpending() >> CHLD & 1 == 1);
        succeeded(pid);
        assert_eq!(taken(), []);
    }

    fn the_announcement_interrupts() {
        flag(CHLD);
        let (ends, gate) = (pipe(), Gate::new());
        let pid = child(|| {
            gate.pass();
            std::thread::sleep(MOMENT);
        });
        gate.open();
        let mut byte = [0];
        assert_eq!(abi::read(ends.read, &mut byte), Err(Errno::INTR));
        assert_eq!(taken(), [CHLD]);
        succeeded(pid);
    }

    fn children_nobody_wants_to_hear_of_are_no_zombies() {
        ignore(CHLD);
        let gates: Vec<_> = (0..3).map(|_| {
            let gate = Gate::new();
            child(|| gate.pass());
            gate
        }).collect();
        assert_eq!(abi::wait(Who::Any, WaitFlags { no_hang: true, stopped: false }), Ok(None));
        gates.iter().for_each(Gate::open);
        // It waits until all are gone, and then has nothing to tell.
        assert_eq!(abi::wait(Who::Any, WaitFlags::default()), Err(Errno::CHILD));
    }

    fn a_signal_does_not_end_a_process_twice() {
        let pid = sleeper();
        kill(pid, TERM);
        eventually(|| abi::wait(Who::Child(pid), WaitFlags { no_hang: true, stopped: false })
            .expect("wait").is_some_and(|(_, status)| status.signal() == Some(TERM)));
        assert_eq!(abi::kill(Who::Child(pid), KILL), Err(Errno::SRCH));
    }

    fn a_zombie_takes_signals_in_silence() {
        let pid = abi::fork(|| 5).expect("fork");
        eventually(|| text(&format!("/proc/{pid}/status")).contains("State:\tZ"));
        for signal in [TERM, STOP, CONT, KILL] {
            kill(pid, signal);
        }
        assert_eq!(ended(pid).code(), Some(5));
    }

    fn a_busy_process_is_ended() {
        let pid = child(|| loop {
            std::hint::black_box(0);
        });
        std::thread::sleep(MOMENT);
        kill(pid, TERM);
        assert_eq!(ended(pid).signal(), Some(TERM));
    }

    // Elsewhere this would reach the test's neighbours.
    #[cfg(target_os = "wasi")]
    fn everybody_else_can_be_signalled() {
        flag(WINCH);
        let (pid, gate) = prepared(|| (), || assert_eq!(taken(), [WINCH]));
        abi::kill(Who::Any, WINCH).expect("kill");
        assert_eq!(taken(), [], "all but the sender");
        gate.open();
        succeeded(pid);
    }
}
