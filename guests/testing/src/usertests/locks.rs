//! Locks on files: of the whole, and of ranges.

use wardian_abi::{self as abi, Errno, Lock, LockHeld, LockRange, open_flags as o};

use crate::kit::*;

const ALL: LockRange = LockRange { start: 0, length: 0 };

fn range(start: i64, length: i64) -> LockRange {
    LockRange { start, length }
}

/// What another process gets that asks for a lock and does not wait.
fn as_another(work: impl FnOnce() -> abi::Result<()>) -> abi::Result<()> {
    let status = ended(abi::fork(|| i32::from(work().is_err())).expect("fork"));
    if status.code() == Some(0) { Ok(()) } else { Err(Errno::AGAIN) }
}

tests! {
    fn a_whole_file_is_locked_by_what_opened_it() {
        make("file", b"x");
        let (first, second) = (opened("file", o::RDONLY), opened("file", o::RDONLY));
        abi::flock(first, Some(Lock::Shared), false).expect("shared");
        abi::flock(second, Some(Lock::Shared), false).expect("shared twice");
        assert_eq!(abi::flock(second, Some(Lock::Exclusive), false), Err(Errno::AGAIN));
        abi::flock(first, None, false).expect("unlocked");
        abi::flock(second, Some(Lock::Exclusive), false).expect("exclusive");
        assert_eq!(abi::flock(first, Some(Lock::Shared), false), Err(Errno::AGAIN));
        // A copy is the same opening; it goes with the last of them.
        let copy = abi::dup(second, 0, false).expect("dup");
        close(second);
        assert_eq!(abi::flock(first, Some(Lock::Shared), false), Err(Errno::AGAIN));
        close(copy);
        abi::flock(first, Some(Lock::Exclusive), false).expect("exclusive");
        assert_eq!(abi::flock(99, Some(Lock::Shared), false), Err(Errno::BADF));
    }

    fn a_childs_copy_keeps_the_lock() {
        make("file", b"x");
        let first = opened("file", o::RDONLY);
        abi::flock(first, Some(Lock::Exclusive), false).expect("exclusive");
        let pid = sleeper();
        close(first);
        let second = opened("file", o::RDONLY);
        assert_eq!(abi::flock(second, Some(Lock::Exclusive), false), Err(Errno::AGAIN));
        finish(pid);
        abi::flock(second, Some(Lock::Exclusive), true).expect("exclusive");
    }

    fn who_waits_gets_the_lock_when_it_is_free() {
        make("file", b"x");
        let gate = Gate::new();
        let pid = child(|| {
            let file = opened("file", o::RDWR);
            abi::flock(file, Some(Lock::Exclusive), false).expect("exclusive");
            abi::lock(file, Some(Lock::Exclusive), ALL, false).expect("locked");
            gate.open();
            std::thread::sleep(MOMENT);
        });
        gate.pass();
        let file = opened("file", o::RDWR);
        assert_eq!(abi::flock(file, Some(Lock::Shared), false), Err(Errno::AGAIN));
        abi::flock(file, Some(Lock::Shared), true).expect("shared");
        abi::lock(file, Some(Lock::Shared), ALL, true).expect("locked");
        succeeded(pid);
    }

    fn ranges_belong_to_processes() {
        make("file", b"0123456789");
        let file = opened("file", o::RDWR);
        abi::lock(file, Some(Lock::Exclusive), range(2, 4), false).expect("locked");
        // Not in its own way, by whatever descriptor.
        let second = opened("file", o::RDWR);
        abi::lock(second, Some(Lock::Exclusive), range(0, 3), false).expect("locked again");
        let me = abi::getpid();
        succeeded(child(|| {
            let file = opened("file", o::RDWR);
            let found = abi::lock_in_the_way(file, Lock::Shared, range(3, 1)).expect("asked");
            let held = |start, length| LockHeld { lock: Lock::Exclusive, pid: me, range: range(start, length) };
            assert!(found == Some(held(0, 6)) || found == Some(held(3, 3)), "{found:?}");
            assert_eq!(abi::lock_in_the_way(file, Lock::Shared, range(6, 0)), Ok(None));
            assert_eq!(abi::lock(file, Some(Lock::Shared), range(5, 1), false), Err(Errno::AGAIN));
            abi::lock(file, Some(Lock::Exclusive), range(6, 0), false).expect("what is free");
        }));
        // A hole in the middle.
        abi::lock(file, None, range(2, 2), false).expect("unlocked");
        for (start, free) in [(0, false), (1, false), (2, true), (3, true), (4, false), (5, false), (6, true)] {
            let got = as_another(|| abi::lock(file, Some(Lock::Exclusive), range(start, 1), false));
            assert_eq!(got.is_ok(), free, "byte {start}");
        }
        // Closing any descriptor of the file gives all of them back.
        close(second);
        assert_eq!(as_another(|| abi::lock(file, Some(Lock::Exclusive), ALL, false)), Ok(()));
    }

    fn a_lock_is_not_inherited_and_ends_with_its_process() {
        make("file", b"x");
        let file = opened("file", o::RDWR);
        abi::lock(file, Some(Lock::Exclusive), ALL, false).expect("locked");
        assert_eq!(as_another(|| abi::lock(file, Some(Lock::Shared), ALL, false)), Err(Errno::AGAIN));
        abi::lock(file, Some(Lock::Shared), ALL, false).expect("shared from now on");
        assert_eq!(as_another(|| abi::lock(file, Some(Lock::Shared), ALL, false)), Ok(()));
        abi::lock(file, Some(Lock::Exclusive), ALL, false).expect("the other has ended");
    }

    fn both_kinds_do_not_see_each_other() {
        make("file", b"x");
        let (file, other) = (opened("file", o::RDWR), opened("file", o::RDWR));
        abi::flock(file, Some(Lock::Exclusive), false).expect("exclusive");
        assert_eq!(as_another(|| abi::lock(other, Some(Lock::Exclusive), ALL, false)), Ok(()));
    }

    fn a_circle_of_waiting_is_refused() {
        make("file", b"0123456789");
        let (ready, go) = (Gate::new(), Gate::new());
        let pid = child(|| {
            let file = opened("file", o::RDWR);
            abi::lock(file, Some(Lock::Exclusive), range(1, 1), false).expect("locked");
            ready.open();
            go.pass();
            // Waits for the parent, which ends up being refused and letting go.
            abi::lock(file, Some(Lock::Exclusive), range(0, 1), true).expect("locked in the end");
        });
        let file = opened("file", o::RDWR);
        abi::lock(file, Some(Lock::Exclusive), range(0, 1), false).expect("locked");
        ready.pass();
        go.open();
        std::thread::sleep(MOMENT);
        assert_eq!(abi::lock(file, Some(Lock::Exclusive), range(1, 1), true), Err(Errno::DEADLK));
        abi::lock(file, None, ALL, false).expect("unlocked");
        succeeded(pid);
    }

    fn what_cannot_be_locked_says_why() {
        make("file", b"x");
        let (reads, writes) = (opened("file", o::RDONLY), opened("file", o::WRONLY));
        assert_eq!(abi::lock(reads, Some(Lock::Exclusive), ALL, false), Err(Errno::BADF));
        assert_eq!(abi::lock(writes, Some(Lock::Shared), ALL, false), Err(Errno::BADF));
        assert_eq!(abi::lock(reads, Some(Lock::Shared), range(-1, 1), false), Err(Errno::INVAL));
        assert_eq!(abi::lock(reads, Some(Lock::Shared), range(i64::MAX, 2), false), Err(Errno::OVERFLOW));
        assert_eq!(abi::lock(99, Some(Lock::Shared), ALL, false), Err(Errno::BADF));
    }
}
