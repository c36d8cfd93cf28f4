//! Clocks and processor time.

use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime};

use wardian_abi as abi;

use crate::kit::*;

/// Works until the process has used some processor time.
fn work() {
    let start = abi::times();
    while abi::times().user + abi::times().system - start.user - start.system < 20_000_000 {
        black_box((0..10_000u64).fold(0, |sum, i| sum ^ black_box(i)));
    }
}

tests! {
    fn the_steady_clock_never_runs_back() {
        let mut last = Instant::now();
        for _ in 0..1000 {
            let now = Instant::now();
            assert!(now >= last);
            last = now;
        }
    }

    fn the_wall_clock_is_of_this_century() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
        assert!((1_700_000_000..4_000_000_000).contains(&now), "{now}");
    }

    fn a_sleep_is_not_too_short() {
        let start = Instant::now();
        std::thread::sleep(Duration::from_millis(30));
        assert!(start.elapsed() >= Duration::from_millis(30));
    }

    fn new_files_have_the_time_of_the_wall_clock() {
        let second = 1_000_000_000;
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_nanos() as i64;
        let before = now();
        make("file", b"");
        let stat = stat("file").expect("stat");
        assert!(stat.mtime >= before - second && stat.mtime <= now() + second);
    }

    fn work_is_counted() {
        let before = abi::times();
        work();
        let after = abi::times();
        assert!(after.user + after.system > before.user + before.system);
        assert_eq!((after.child_user, after.child_system), (before.child_user, before.child_system));
    }

    fn a_childs_work_is_counted_when_it_is_waited_for() {
        let gate = Gate::new();
        let pid = child(|| {
            work();
            gate.open();
        });
        gate.pass();
        let used = |times: abi::Times| times.child_user + times.child_system;
        let before = used(abi::times());
        succeeded(pid);
        assert!(used(abi::times()) >= before + 10_000_000);
    }

    fn a_child_starts_at_zero() {
        work();
        work();
        succeeded(child(|| {
            let times = abi::times();
            assert!(times.user + times.system < 40_000_000);
            assert_eq!((times.child_user, times.child_system), (0, 0));
        }));
    }
}
