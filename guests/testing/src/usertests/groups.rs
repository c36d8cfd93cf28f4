//! Process groups.

use wardian_abi::{self as abi, Errno, Spawn, Who};

use crate::kit::*;

tests! {
    fn a_child_is_in_its_parents_group() {
        let group = abi::getpgid(0).expect("getpgid");
        assert_eq!(group, abi::getpid(), "each test has a group of its own");
        succeeded(child(|| assert_eq!(abi::getpgid(0), Ok(group))));
    }

    fn a_process_leaves_by_itself_or_is_moved() {
        let gate = Gate::new();
        let pid = child(|| {
            abi::setpgid(0, 0).expect("setpgid");
            assert_eq!(abi::getpgid(0), Ok(abi::getpid()));
            gate.open();
            sleep_for_ever();
        });
        gate.pass();
        assert_eq!(abi::getpgid(pid), Ok(pid));
        let other = sleeper();
        abi::setpgid(other, pid).expect("setpgid");
        assert_eq!(abi::getpgid(other), Ok(pid));
        abi::setpgid(other, abi::getpgid(0).expect("getpgid")).expect("back");
        assert_eq!(abi::getpgid(other), abi::getpgid(0));
        finish(pid);
        finish(other);
    }

    fn a_signal_reaches_the_whole_group() {
        let leader = sleeper();
        abi::setpgid(leader, 0).expect("setpgid");
        let members: Vec<_> = (0..3).map(|_| sleeper()).collect();
        members.iter().for_each(|&pid| abi::setpgid(pid, leader).expect("setpgid"));
        let outsider = sleeper();
        abi::kill(Who::Group(leader), USR1).expect("kill");
        for pid in members.into_iter().chain([leader]) {
            assert_eq!(ended(pid).signal(), Some(USR1));
        }
        assert_eq!(abi::kill(Who::Child(outsider), 0), Ok(()));
        finish(outsider);
        assert_eq!(abi::kill(Who::Group(leader), USR1), Err(Errno::SRCH));
    }

    fn a_signal_to_ones_own_group_includes_oneself() {
        let pid = child(|| {
            abi::setpgid(0, 0).expect("setpgid");
            flag(USR1);
            let gate = Gate::new();
            let inner = child(|| {
                gate.open();
                while taken().is_empty() {
                    std::thread::sleep(MOMENT / 10);
                }
            });
            gate.pass();
            abi::kill(Who::OwnGroup, USR1).expect("kill");
            assert_eq!(taken(), [USR1]);
            succeeded(inner);
        });
        succeeded(pid);
    }

    fn a_group_lives_as_long_as_a_member() {
        let leader = child(|| ());
        let _ = abi::setpgid(leader, 0);
        let member = sleeper();
        abi::setpgid(member, 0).expect("setpgid");
        let second = sleeper();
        abi::setpgid(second, member).expect("setpgid");
        succeeded(leader);
        finish(member);
        assert_eq!(abi::getpgid(second), Ok(member), "the leader is gone, the group is not");
        assert_eq!(abi::kill(Who::Group(member), 0), Ok(()));
        finish(second);
        assert_eq!(abi::kill(Who::Group(member), 0), Err(Errno::SRCH));
    }

    fn what_cannot_be_moved_says_why() {
        let pid = sleeper();
        assert_eq!(abi::setpgid(pid, 1 << 20), Err(Errno::PERM), "no such group");
        assert_eq!(abi::setpgid(pid, -1), Err(Errno::INVAL));
        assert_eq!(abi::setpgid(-1, 0), Err(Errno::INVAL), "that would be its group, too");
        assert_eq!(abi::setpgid(-1, pid), Err(Errno::SRCH));
        assert_eq!(abi::setpgid(1 << 20, 0), Err(Errno::SRCH));
        assert_eq!(abi::setpgid(abi::getppid(), 0), Err(Errno::SRCH), "not a child");
        assert_eq!(abi::getpgid(1 << 20), Err(Errno::SRCH));
        assert_eq!(abi::getpgid(-1), Err(Errno::SRCH));
        finish(pid);
    }

    fn a_session_is_inherited_and_left() {
        let session = abi::getsid(0).expect("getsid");
        succeeded(child(|| {
            assert_eq!(abi::getsid(0), Ok(session));
            abi::setsid().expect("setsid");
            let me = abi::getpid();
            assert_eq!((abi::getsid(0), abi::getpgid(0), abi::getsid(me)), (Ok(me), Ok(me), Ok(me)));
            assert_eq!(abi::setsid(), Err(Errno::PERM), "it leads one");
            assert_eq!(abi::setpgid(0, 0), Err(Errno::PERM), "it leads one");
            succeeded(child(|| assert_eq!(abi::getsid(0), Ok(me))));
        }));
        assert_eq!(abi::getsid(1 << 20), Err(Errno::SRCH));
    }

    fn a_child_that_became_a_program_moves_only_itself() {
        let (program, argv) = (crate::programs::path(), b"usertests\0--sleep\0");
        let pid = abi::spawn(&Spawn { path: &program, argv, ..Spawn::default() }).expect("spawn");
        assert_eq!(abi::setpgid(pid, 0), Err(Errno::ACCES));
        finish(pid);
    }
}
