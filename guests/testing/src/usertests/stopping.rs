//! STOP and CONT.

use wardian_abi::{self as abi, Errno, WaitFlags, Who};

use crate::kit::*;

const STOPPED: WaitFlags = WaitFlags { no_hang: false, stopped: true };
const STOPPED_NOW: WaitFlags = WaitFlags { no_hang: true, stopped: true };
const ENDED_NOW: WaitFlags = WaitFlags { no_hang: true, stopped: false };

/// A child that answers each byte with the next.
struct Echo {
    pid: abi::Pid,
    there: abi::Pipe,
    back: abi::Pipe,
}

impl Echo {
    fn start(prepare: impl FnOnce()) -> Echo {
        let (there, back) = (pipe(), pipe());
        let pid = child(|| {
            close(there.write);
            prepare();
            let mut byte = [0];
            loop {
                match abi::read(there.read, &mut byte) {
                    Ok(0) => return,
                    Ok(_) => assert_eq!(abi::write(back.write, &[byte[0] + 1]), Ok(1)),
                    Err(Errno::INTR) => {}
                    Err(errno) => panic!("{errno}"),
                }
            }
        });
        let echo = Echo { pid, there, back };
        echo.ask(1);
        assert!(echo.answers(2));
        echo
    }

    fn ask(&self, byte: u8) {
        assert_eq!(abi::write(self.there.write, &[byte]), Ok(1));
    }

    fn answers(&self, byte: u8) -> bool {
        read_some(self.back.read, 1) == Ok(vec![byte])
    }

    fn is_silent(&self) -> bool {
        abi::poll_read(self.back.read, Some(MOMENT)) == Ok(false)
    }

    fn stop(&self, signal: i32) {
        kill(self.pid, signal);
        let (pid, status) = abi::wait(Who::Child(self.pid), STOPPED).expect("wait").expect("news");
        assert_eq!((pid, status.stopped()), (self.pid, Some(signal)));
        assert_eq!((status.code(), status.signal(), status.shell_code()), (None, None, 128 + signal));
    }
}

tests! {
    fn a_stopped_process_does_nothing_until_it_continues() {
        for signal in [STOP, TSTP, TTIN, TTOU] {
            let echo = Echo::start(|| ());
            echo.stop(signal);
            echo.ask(3);
            assert!(echo.is_silent());
            kill(echo.pid, CONT);
            assert!(echo.answers(4));
            finish(echo.pid);
        }
    }

    fn a_busy_process_stops_too() {
        let counted = pipe();
        let pid = child(|| {
            abi::set_nonblocking(counted.write, true).expect("nonblocking");
            loop {
                let _ = abi::write(counted.write, b"x");
            }
        });
        kill(pid, STOP);
        assert!(abi::wait(Who::Child(pid), STOPPED).expect("wait").is_some());
        abi::set_nonblocking(counted.read, true).expect("nonblocking");
        // It may be in the middle of a call when it is stopped; after that it is quiet.
        std::thread::sleep(MOMENT);
        while read_some(counted.read, 65_536).is_ok() {}
        std::thread::sleep(MOMENT);
        assert_eq!(read_some(counted.read, 1), Err(Errno::AGAIN));
        kill(pid, CONT);
        assert_eq!(abi::poll_read(counted.read, None), Ok(true));
        finish(pid);
    }

    fn a_stop_is_told_once() {
        let echo = Echo::start(|| ());
        echo.stop(STOP);
        assert_eq!(abi::wait(Who::Child(echo.pid), STOPPED_NOW), Ok(None));
        kill(echo.pid, STOP);
        assert_eq!(abi::wait(Who::Child(echo.pid), STOPPED_NOW), Ok(None), "it was stopped already");
        kill(echo.pid, CONT);
        echo.stop(STOP);
        finish(echo.pid);
    }

    fn who_does_not_ask_is_not_told() {
        let echo = Echo::start(|| ());
        kill(echo.pid, STOP);
        std::thread::sleep(MOMENT);
        assert_eq!(abi::wait(Who::Child(echo.pid), ENDED_NOW), Ok(None));
        assert!(abi::wait(Who::Child(echo.pid), STOPPED_NOW).expect("wait").is_some());
        finish(echo.pid);
    }

    fn a_stopped_process_can_be_killed() {
        let echo = Echo::start(|| ());
        echo.stop(STOP);
        finish(echo.pid);
    }

    fn other_signals_wait_until_it_continues() {
        let echo = Echo::start(|| ());
        echo.stop(STOP);
        kill(echo.pid, TERM);
        std::thread::sleep(MOMENT);
        assert_eq!(abi::wait(Who::Child(echo.pid), ENDED_NOW), Ok(None));
        kill(echo.pid, CONT);
        assert_eq!(ended(echo.pid).signal(), Some(TERM));
    }

    fn a_continue_takes_back_a_stop_and_the_reverse() {
        let echo = Echo::start(|| ());
        kill(echo.pid, STOP);
        kill(echo.pid, CONT);
        echo.ask(5);
        assert!(echo.answers(6));
        kill(echo.pid, CONT);
        echo.stop(STOP);
        echo.ask(7);
        assert!(echo.is_silent());
        finish(echo.pid);
    }

    fn stopping_oneself_takes_effect_at_once() {
        let (ends, me) = (pipe(), abi::getpid());
        for raise in [false, true] {
            let pid = child(|| {
                assert_ne!(abi::getpid(), me);
                let stopped = if raise { abi::raise(STOP) } else { abi::kill(Who::Child(abi::getpid()), STOP) };
                stopped.expect("stop");
                assert_eq!(abi::write(ends.write, b"x"), Ok(1));
            });
            let (_, status) = abi::wait(Who::Child(pid), STOPPED).expect("wait").expect("news");
            assert_eq!(status.stopped(), Some(STOP));
            assert_eq!(abi::poll_read(ends.read, Some(MOMENT)), Ok(false));
            kill(pid, CONT);
            assert_eq!(read_some(ends.read, 1), Ok(b"x".to_vec()));
            succeeded(pid);
        }
    }

    fn a_flagged_stop_does_not_stop() {
        let echo = Echo::start(|| [TSTP, TTIN, TTOU].into_iter().for_each(flag));
        [TSTP, TTIN, TTOU].into_iter().for_each(|signal| kill(echo.pid, signal));
        echo.ask(9);
        assert!(echo.answers(10));
        assert_eq!(abi::wait(Who::Child(echo.pid), STOPPED_NOW), Ok(None));
        finish(echo.pid);
    }

    fn a_continue_acts_however_it_is_handled() {
        for prepare in [flag as fn(i32), ignore] {
            let echo = Echo::start(|| prepare(CONT));
            echo.stop(STOP);
            echo.ask(11);
            kill(echo.pid, CONT);
            assert!(echo.answers(12));
            finish(echo.pid);
        }
    }

    fn a_group_is_stopped_and_continued() {
        let echoes: Vec<Echo> = (0..3).map(|_| Echo::start(|| ())).collect();
        let leader = echoes[0].pid;
        echoes.iter().for_each(|echo| abi::setpgid(echo.pid, leader).expect("setpgid"));
        abi::kill(Who::Group(leader), STOP).expect("kill");
        for _ in &echoes {
            assert!(abi::wait(Who::Group(leader), STOPPED).expect("wait").is_some());
        }
        echoes.iter().for_each(|echo| echo.ask(20));
        assert!(echoes.iter().all(Echo::is_silent));
        abi::kill(Who::Group(leader), CONT).expect("kill");
        assert!(echoes.iter().all(|echo| echo.answers(21)));
        echoes.iter().for_each(|echo| finish(echo.pid));
    }

    fn a_parent_is_told_of_stops_by_signal() {
        flag(CHLD);
        let echo = Echo::start(|| ());
        assert_eq!(taken(), []);
        kill(echo.pid, STOP);
        eventually(|| abi::sigpending() >> CHLD & 1 == 1);
        kill(echo.pid, CONT);
        eventually(|| abi::sigpending() >> CHLD & 1 == 1);
        finish(echo.pid);
    }
}
