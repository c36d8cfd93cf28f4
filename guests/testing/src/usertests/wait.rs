//! wait: any child, one child, a group, now or later.

use wardian_abi::{self as abi, Errno, WaitFlags, Who};

use crate::kit::*;

const NOW: WaitFlags = WaitFlags { no_hang: true, stopped: false };
const BLOCK: WaitFlags = WaitFlags { no_hang: false, stopped: false };

tests! {
    fn waiting_without_children_is_an_error() {
        for who in [Who::Any, Who::OwnGroup, Who::Child(1), Who::Child(abi::getpid()), Who::Group(abi::getpid())] {
            assert_eq!(abi::wait(who, BLOCK), Err(Errno::CHILD), "{who:?}");
            assert_eq!(abi::wait(who, NOW), Err(Errno::CHILD), "{who:?}");
        }
    }

    fn any_child_is_answered_once() {
        let mut children: Vec<_> = (0..5).map(|_| child(|| ())).collect();
        for _ in 0..5 {
            let (pid, status) = abi::wait(Who::Any, BLOCK).expect("wait").expect("a child");
            assert_eq!(status.code(), Some(0));
            let at = children.iter().position(|&known| known == pid).expect("a child of ours, once");
            children.remove(at);
        }
        assert_eq!(abi::wait(Who::Any, BLOCK), Err(Errno::CHILD));
    }

    fn one_child_is_waited_for_among_others() {
        let other = child(|| ());
        let gate = Gate::new();
        let pid = abi::fork(|| {
            gate.pass();
            9
        }).expect("fork");
        gate.open();
        assert_eq!(ended(pid).code(), Some(9));
        succeeded(other);
        assert_eq!(abi::wait(Who::Child(pid), BLOCK), Err(Errno::CHILD), "once only");
    }

    fn somebody_elses_child_cannot_be_waited_for() {
        let gate = Gate::new();
        let told = pipe();
        let middle = child(|| {
            let inner = child(|| gate.pass());
            abi::write_all(told.write, &inner.to_le_bytes()).expect("write");
            succeeded(inner);
        });
        let mut bytes = [0; 4];
        assert_eq!(abi::read(told.read, &mut bytes), Ok(4));
        let inner = abi::Pid::from_le_bytes(bytes);
        assert_eq!(abi::wait(Who::Child(inner), BLOCK), Err(Errno::CHILD));
        gate.open();
        succeeded(middle);
    }

    fn no_hang_answers_at_once() {
        let gate = Gate::new();
        let pid = child(|| gate.pass());
        assert_eq!(abi::wait(Who::Child(pid), NOW), Ok(None));
        assert_eq!(abi::wait(Who::Any, NOW), Ok(None));
        gate.open();
        let mut answer = None;
        eventually(|| {
            answer = abi::wait(Who::Any, NOW).expect("wait");
            answer.is_some()
        });
        assert_eq!(answer.map(|(who, status)| (who, status.code())), Some((pid, Some(0))));
        assert_eq!(abi::wait(Who::Any, NOW), Err(Errno::CHILD));
    }

    fn a_group_is_waited_for() {
        let here = child(|| ());
        let apart = sleeper();
        abi::setpgid(apart, 0).expect("setpgid");
        let with_it = sleeper();
        abi::setpgid(with_it, apart).expect("setpgid");
        assert_eq!(abi::wait(Who::Group(apart), NOW), Ok(None));
        assert_eq!(abi::wait(Who::OwnGroup, BLOCK).map(|news| news.map(|(pid, _)| pid)), Ok(Some(here)));
        assert_eq!(abi::wait(Who::OwnGroup, BLOCK), Err(Errno::CHILD), "none is left in this group");
        abi::kill(Who::Group(apart), TERM).expect("kill");
        for _ in 0..2 {
            let (pid, status) = abi::wait(Who::Group(apart), BLOCK).expect("wait").expect("a child");
            assert!(pid == apart || pid == with_it);
            assert_eq!(status.signal(), Some(TERM));
        }
        assert_eq!(abi::wait(Who::Group(apart), BLOCK), Err(Errno::CHILD));
    }

    fn a_flagged_signal_interrupts() {
        flag(USR1);
        let pid = sleeper();
        let answer = interrupted_by(USR1, || abi::wait(Who::Child(pid), BLOCK));
        assert_eq!(answer, Err(Errno::INTR));
        assert_eq!(taken(), [USR1]);
        finish(pid);
    }

    fn an_ignored_signal_does_not_interrupt() {
        ignore(USR1);
        let gate = Gate::new();
        let pid = child(|| gate.pass());
        let answer = interrupted_by(USR1, || {
            let opener = child(|| {
                std::thread::sleep(MOMENT);
                gate.open();
            });
            let answer = abi::wait(Who::Child(pid), BLOCK);
            succeeded(opener);
            answer
        });
        assert_eq!(answer.map(|news| news.map(|(who, status)| (who, status.code()))), Ok(Some((pid, Some(0)))));
    }

    fn how_it_ended_is_told_exactly() {
        assert_eq!(ended(abi::fork(|| 3).expect("fork")).0, 3 << 8);
        let pid = sleeper();
        kill(pid, TERM);
        let status = ended(pid);
        assert_eq!((status.signal(), status.code(), status.shell_code()), (Some(TERM), None, 143));
    }

    fn a_waiter_wakes_when_its_child_ends_later() {
        let gate = Gate::new();
        let pid = child(|| gate.pass());
        let opener = child(|| {
            std::thread::sleep(MOMENT);
            gate.open();
        });
        succeeded(pid);
        succeeded(opener);
    }
}
