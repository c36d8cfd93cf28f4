//! alarm.

use std::time::Duration;

use wardian_abi::{self as abi, Errno};

use crate::kit::*;

const MILLISECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600_000 * MILLISECOND;

tests! {
    fn an_alarm_ends_a_process() {
        let pid = child(|| {
            abi::alarm(10 * MILLISECOND).expect("alarm");
            sleep_for_ever();
        });
        assert_eq!(ended(pid).signal(), Some(ALRM));
    }

    fn an_alarm_ends_a_busy_process() {
        let pid = child(|| {
            abi::alarm(10 * MILLISECOND).expect("alarm");
            loop {
                std::hint::black_box(0);
            }
        });
        assert_eq!(ended(pid).signal(), Some(ALRM));
    }

    fn a_flagged_alarm_interrupts() {
        flag(ALRM);
        let ends = pipe();
        abi::alarm(20 * MILLISECOND).expect("alarm");
        assert_eq!(read_some(ends.read, 1), Err(Errno::INTR));
        assert_eq!(taken(), [ALRM]);
        abi::set_nonblocking(ends.read, true).expect("nonblocking");
        assert_eq!(abi::poll_read(ends.read, Some(MOMENT)), Ok(false), "it comes once");
    }

    fn a_new_alarm_replaces_the_old_and_tells_what_was_left() {
        abi::alarm(0).expect("alarm");
        assert_eq!(abi::alarm(HOUR), Ok(0));
        let left = abi::alarm(2 * HOUR).expect("alarm");
        assert!(left > HOUR / 2 && left <= HOUR, "{left}");
        let left = abi::alarm(0).expect("alarm");
        assert!(left > HOUR && left <= 2 * HOUR, "{left}");
        assert_eq!(abi::alarm(0), Ok(0));
    }

    fn a_cleared_alarm_does_not_come() {
        let pid = child(|| {
            abi::alarm(30 * MILLISECOND).expect("alarm");
            abi::alarm(0).expect("alarm");
            std::thread::sleep(Duration::from_millis(60));
        });
        succeeded(pid);
    }

    fn a_child_does_not_inherit_it() {
        abi::alarm(HOUR).expect("alarm");
        succeeded(child(|| assert_eq!(abi::alarm(0), Ok(0))));
        assert!(abi::alarm(0).expect("alarm") > 0);
    }

    fn time_does_not_run_backwards() {
        assert_eq!(abi::alarm(-1_000_000_000), Err(Errno::INVAL));
        assert_eq!(abi::alarm(i64::MIN), Err(Errno::INVAL));
    }
}
